"""Test which settings adaptive sweeps drop, how often wrongly, and the effect on claims."""

import inspect
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import bdtr, stdtrit

from pu_lib.claims import check_of, ledger
from pu_lib.experiments import adaptive
from pu_lib.experiments.adaptive import (
    ERROR,
    EarlyStopping,
    far_from_best,
    limits,
    rounds,
    setting_of,
)
from pu_lib.experiments.bootstrap import lower_quantile
from pu_lib.experiments.cells import Chunk
from pu_lib.experiments.collect import collect
from pu_lib.experiments.curves import RANGE
from pu_lib.experiments.database import CELL_COLUMNS, Database, words_of
from pu_lib.experiments.panels import paper_chunks
from pu_lib.experiments.results import PANELS, Results, committed
from pu_lib.experiments.sweep import chunks_of, grid, run_missing

CAP = 1e6
COLUMNS = CELL_COLUMNS
TABLE = committed().table
BEYOND = 40  # runs of the experiments beyond the paper, as in the command


# Rule for dropping settings


def test_median_limits_are_order_statistics():
    times = np.arange(1.0, 101.0)[:, np.newaxis]
    low, high = limits(times, CAP)
    k = int(low[0, 0])  # the rank among 100 runs
    assert high[0, 0] == 101 - k
    assert bdtr(k - 1, 100, 0.5) <= ERROR < bdtr(k, 100, 0.5)
    few = limits(times[:10], CAP)
    assert (few[0][0, 0], few[1][0, 0]) == (0.0, np.inf)


def test_mean_limits_include_one_more_run_at_either_end():
    low, high = limits(np.full((50, 1), 200.0), CAP)
    assert high[1, 0] > (50 * 200.0 + CAP) / 51  # no run is censored, but the next may be
    assert low[1, 0] < 200.0 * 50 / 51
    # If a share p of all runs is censored, n runs contain none with probability (1 - p)^n.
    share = 1.0 - ERROR ** (1 / 50)
    assert high[1, 0] < 200.0 + share * CAP  # Student's interval is narrower
    assert high[1, 0] > 0.1 * CAP
    # One value at distance d from 50 equal values moves the mean by d / 51, the standard error.
    away = (1.0 + stdtrit(50, 1.0 - ERROR)) / 51
    assert high[1, 0] == pytest.approx(200.0 + (CAP - 200.0) * away)
    assert low[1, 0] == pytest.approx(200.0 - 200.0 * away)


def test_only_settings_far_from_the_best_are_dropped():
    rng = np.random.default_rng(3)
    best = rng.lognormal(np.log(1e4), 0.5, 100)
    lost, some = np.full(100, CAP), np.where(np.arange(100) % 2, CAP, best)
    far = far_from_best(np.stack([best, 2.5 * best, 60 * best, lost, some], axis=1), CAP)
    assert far.tolist() == [False, False, True, True, False]
    assert not far_from_best(np.stack([best, lost], axis=1)[:10], CAP).any()  # too few runs
    assert not far_from_best(np.stack([lost, lost], axis=1), CAP).any()


# Wrong decisions


def times_by_setting(table):
    """Return times of shape (runs, step sizes) of settings that differ only in the step size."""
    by_others = {}
    for values, group in table.groupby(COLUMNS, dropna=False, observed=True):
        others, step_size = setting_of(values)
        steps = group.sort_values("run")["steps"].to_numpy(dtype=float)
        by_others.setdefault((others, values[COLUMNS.index("max_steps")]), {})[step_size] = steps
    return {
        key: np.stack(list(rates.values()), axis=1)
        for key, rates in by_others.items()
        if len(rates) > 1
    }


def wrong_decisions(times, cap, rng):
    """Resample runs and return the numbers of dropped and of wrongly dropped step sizes."""
    n, settings = times.shape
    centres = np.stack([lower_quantile(times, 0.5), times.mean(axis=0)])
    right = (centres > RANGE * centres.min(axis=1, keepdims=True)).all(axis=0)
    drawn, live, left = times[rng.integers(n, size=n)], np.arange(settings), []
    for bound in (20, 40, *range(100, n, 100)):
        if bound < n and len(live) > 1:
            far = far_from_best(drawn[:bound][:, live], cap)
            left += live[far].tolist()
            live = live[~far]
    return len(left), sum(not right[x] for x in left)


def resampled(all_times, tables=5):
    """Return the numbers of dropped and of wrongly dropped step sizes in resampled tables."""
    rng = np.random.default_rng(8)
    counts = [
        wrong_decisions(times, cap, rng)
        for _ in range(tables)
        for (_, cap), times in all_times.items()
    ]
    return np.sum(counts, axis=0)


@pytest.fixture(scope="module")
def random_mdps():
    rows = TABLE[(TABLE["experiment"] == "random-mdp") & (TABLE["options"] == "paper")]
    return times_by_setting(rows[rows["scheme"] != "LowOffPol"])


def test_resampled_tables_have_no_incorrect_decision(random_mdps):
    left, wrong = resampled(random_mdps)
    assert left > 100
    assert wrong == 0


def test_larger_error_leads_to_incorrect_decisions(random_mdps, monkeypatch):
    monkeypatch.setattr(adaptive, "ERROR", 0.3)
    assert resampled(random_mdps)[1] > 0


def test_total_error_of_all_decisions_is_below_one_in_twenty():
    decisions = sum(chunk.first > 0 for chunk in paper_chunks(beyond=BEYOND))
    assert 4 * ERROR * decisions < 0.05


# Sweep


def small_chunks():
    """Return chunks with one fast step size and two step sizes that never reach the target."""
    return grid(
        "chain n_states=4",
        updates=["pg-sm", "di"],
        step_sizes=[1e-6, 1e-5, 3.0],
        runs=80,
        max_steps=20_000,
    )


@pytest.fixture(scope="module")
def both_sweeps(tmp_path_factory):
    """Return a directory with an adaptive and a full sweep."""
    directory = tmp_path_factory.mktemp("sweeps")
    run_missing(small_chunks(), directory / "adaptive", adaptive=True)
    run_missing(small_chunks(), directory / "full")
    return directory


def rows_of(directory):
    with Database(directory) as database:
        rows = database.read()
    return rows.astype({"update": str}).sort_values(
        ["update", "step_size", "run"], ignore_index=True
    )


def test_adaptive_sweep_is_a_subset_of_the_full_sweep(both_sweeps):
    least, most = rows_of(both_sweeps / "adaptive"), rows_of(both_sweeps / "full")
    assert len(most) == 480
    again = least[["update", "step_size", "run"]].merge(most)
    pd.testing.assert_frame_equal(again[least.columns], least, check_categorical=False)
    counts = least.groupby(["update", "step_size"])["run"].count()
    assert set(counts.xs(3.0, level="step_size")) == {80}
    assert set(counts.drop(3.0, level="step_size")) == {40}


def test_interrupted_adaptive_sweep_resumes_to_the_same_table(both_sweeps, tmp_path):
    first = [chunk for chunk in small_chunks() if chunk.first < 20]
    run_missing(first[1:], tmp_path, adaptive=True)
    run_missing(small_chunks(), tmp_path, adaptive=True, workers=1)
    pd.testing.assert_frame_equal(rows_of(tmp_path), rows_of(both_sweeps / "adaptive"))
    assert run_missing(small_chunks(), tmp_path, adaptive=True) == 0


def test_collect_includes_all_runs_if_a_setting_was_stopped_early(both_sweeps, tmp_path):
    assert "320 of 320 runs" in collect(both_sweeps / "adaptive", tmp_path / "left")
    # The slow step sizes of an interrupted sweep lack runs although they were not dropped.
    rows = rows_of(both_sweeps / "full")
    cut = rows[(rows["step_size"] < 1.0) | (rows["run"] < 40)]
    assert EarlyStopping(cut).left_early() == set()
    slow = rows[(rows["step_size"] > 1.0) | (rows["run"] < 40)]
    assert len(EarlyStopping(slow).left_early()) == 4
    early = rows[(rows["step_size"] > 1.0) | (rows["run"] < 10)]
    assert EarlyStopping(early).left_early() == set()


def test_chunks_of_a_round_start_at_the_same_run():
    cell = small_chunks()[0].cell
    chunks = [Chunk(cell, 0, 20), Chunk(cell, 0, 10), Chunk(cell, 20, 20), Chunk(cell, 0, 5)]
    assert [len(part) for part in rounds(chunks)] == [2, 1, 1]
    assert [len(part) for part in rounds(chunks_of([cell], 60, 20))] == [1, 1, 1]


# Committed table with the runs of an adaptive sweep only


def thinned(table, chunks):
    """Return the rows of a full table that an adaptive sweep of the chunks would compute."""
    stopping, n_runs = EarlyStopping(table), {}
    for part in rounds(chunks):
        for chunk in stopping.needed(part):
            setting = setting_of(words_of(chunk.cell).values())
            n_runs[setting] = max(n_runs.get(setting, 0), chunk.first + chunk.count)
    settings = table[COLUMNS].drop_duplicates()
    most = {
        tuple(map(str, values)): n_runs.get(setting_of(values), 0)
        for values in settings.astype(object).to_numpy().tolist()
    }
    groups = table.groupby(COLUMNS, dropna=False, observed=True)["run"]
    limit = np.concatenate([[most[tuple(map(str, v))]] * len(g) for v, g in groups])
    index = np.concatenate([g.index for _, g in groups])
    return table.loc[np.sort(index[table["run"].loc[index].to_numpy() < limit])]


@pytest.fixture(scope="module")
def adaptive_results():
    return Results(thinned(TABLE, paper_chunks(beyond=BEYOND)))


def test_adaptive_sweep_needs_less_than_two_fifths_of_the_steps(adaptive_results):
    """The greedy limit is excluded, since it has no step sizes to drop."""
    adaptive, full = (t[t["experiment"] != "sarsa-limit"] for t in (adaptive_results.table, TABLE))
    assert adaptive["steps"].sum() / full["steps"].sum() < 2 / 5


def test_curves_use_all_runs_of_each_rate(adaptive_results):
    least, most = adaptive_results, committed()
    for name in ("chain/HiOffPol", "cliff"):
        few, all_ = least.curves(name), most.curves(name)
        assert few.runs_in_words == "40 to 100"
        assert all_.runs_in_words == "100"
        best = all_.point("mean").argmin(axis=1)
        rows = np.arange(len(best))
        for statistic in ("median", "mean"):
            assert np.array_equal(
                few.estimates(statistic)[:, rows, best], all_.estimates(statistic)[:, rows, best]
            )
        panel = PANELS[name].rows(least.table)
        x = int(few.counts[0].argmin())
        one = panel[(panel["update"] == "pg-sm") & np.isclose(panel["step_size"], few.axis[x])]
        assert few.point("mean")[0, x] == one["steps"].mean()
        assert few.made[:, 0, x].sum() == len(one) == few.counts[0, x]


CLAIMS = [
    claim
    for claim in ledger()
    if claim.chapter == "empirical"
    and (check := check_of(claim))
    and "table" in inspect.signature(check.function).parameters
]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_status_of_each_claim_equals_its_status_with_the_full_table(claim, adaptive_results):
    check = check_of(claim)
    arguments = {**check.arguments, "table": adaptive_results}
    assert replace(check, arguments=arguments).run().status is claim.status
