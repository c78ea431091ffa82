"""Test the numbers of runs behind the points of the predecessor's published curve."""

import numpy as np
import pytest

from pu_lib.experiments.published import (
    CAP,
    LOOK,
    READING,
    comparison,
    possible_runs,
    published,
    runs_behind,
)

RNG = np.random.default_rng(11)


def means(n, lost=0, curves=4):
    """Return means of n runs with the error of reading them from a figure."""
    counts = 1.0 + LOOK * RNG.integers(0, CAP // LOOK, size=(curves, n))
    counts[:, n - lost :] = CAP
    return counts.mean(axis=1) + RNG.uniform(-READING, READING, size=curves) / 2


@pytest.mark.parametrize(("n", "lost"), [(60, 0), (59, 0), (57, 0), (100, 0), (100, 32), (100, 1)])
def test_possible_runs_recovers_the_number_of_runs(n, lost):
    possible = possible_runs(means(n, lost))
    assert possible[n] == 4 * lost
    # Multiples of n have the same means, but no smaller number of runs has them.
    fewest = [m for m in possible if possible[m] <= 4 * lost and m <= n]
    assert fewest == [n]


def test_possible_runs_is_empty_for_other_numbers():
    grid = means(60)
    assert 60 in possible_runs(grid)
    assert possible_runs(grid + 0.4) == {}  # between possible means of 60 runs
    assert 60 not in possible_runs(means(59))
    anything = [possible_runs(RNG.uniform(4000.0, 90_000.0, size=4)) for _ in range(50)]
    assert sum(bool(possible) for possible in anything) <= 3  # three may agree by chance
    assert not any(0 in possible.values() for possible in anything)


def test_published_points_have_the_stated_numbers_of_runs():
    n_runs = runs_behind()
    assert len(n_runs) == 25
    assert {n: sum(m == n for m in n_runs.values()) for n in n_runs.values()} == {
        60: 14,
        59: 6,
        57: 1,
        100: 4,
    }
    counts = list(n_runs.values())
    assert counts[:21] == sorted(counts[:21], reverse=True)  # all but the last four
    assert counts[21:] == [100] * 4


def test_reading_errors_are_below_the_stated_bound():
    points = published()
    n = points["step_size"].map(runs_behind())
    whole = (points["episodes_to_half_gap"] - 1.0) * n
    worst = np.abs(whole - whole.round()) / n
    assert worst.max() < READING


def test_runs_are_censored_only_at_the_largest_step_sizes():
    table = comparison()
    for which in ("their lost", "lost"):
        assert (table.loc[table["step_size"] < 300.0, which] == 0).all()
        last = table[table["step_size"] > 600.0].set_index("schedule")[which]
        assert last.filter(like="o=0.5").min() > 2 * last.filter(like="o=10").max()
    ours, theirs = (table[which].sum() for which in ("lost", "their lost"))
    assert abs(ours - theirs) < 3 * np.sqrt(ours + theirs)


def test_z_scores_account_for_both_numbers_of_runs():
    row = comparison().iloc[0]
    assert (row["their runs"], row["runs"]) == (60, 100)
    assert (row["low"] < row["ours"]) & (row["ours"] < row["high"])
    # Our interval is 3.92 standard errors wide. The variance of their mean is 100 / 60 times ours.
    error = (row["high"] - row["low"]) / 3.92 * np.sqrt(1 + 100 / 60)
    assert (row["ours"] - row["theirs"]) / error == pytest.approx(row["z"], rel=0.1)
