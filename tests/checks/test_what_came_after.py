"""What came after: counts, steps and costs against cases solved by hand."""

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.evolutionary_search import quantities as late
from pu_lib.chapters.gravity_well.escape import escape_steps, well_policy
from pu_lib.chapters.what_came_after import checks
from pu_lib.chapters.what_came_after import quantities as after
from pu_lib.claims import Check, Tally
from pu_lib.updates import UPDATES, make_update


def test_three_steps_are_undone_by_three_and_passed_by_four() -> None:
    assert after.natural_count(3, repeat(Fraction(1, 3))) == 3
    assert after.natural_count(3, repeat(Fraction(1, 3)), strict=True) == 4
    assert after.natural_count(0, repeat(Fraction(1))) == 0


def test_doubled_weights_undo_anything_in_one_step() -> None:
    """Forward 1 + 2 + 4 = 7, then back by 8."""
    assert [after.geometric_count(n, 2) for n in (1, 2, 3, 50)] == [1, 1, 1, 1]
    assert after.geometric_bound(2) == 1
    assert after.natural_count(3, [Fraction(2) ** t for t in range(5)]) == 1


@pytest.mark.parametrize("n", [1, 4, 20, 100])
def test_the_formula_with_logarithms(n: int) -> None:
    assert after.geometric_count(n, "1.1") == math.ceil(math.log(2 - 1.1**-n) / math.log(1.1))
    assert after.geometric_bound("1.1") == math.ceil(math.log(2) / math.log(1.1)) == 8


def test_the_well_of_the_chapter() -> None:
    q = np.array([1.0, 0.9, 0.0])
    assert escape_steps("npg", well_policy(1e-6), q) == 139
    assert after.escape_bounds(well_policy(1e-6), q, 1.0) == (14, 139)


def test_the_family_s_step_by_hand() -> None:
    """Index 3/2 from one half, weight 1: the roots differ by 1/2, so that y^2 + (y+1/2)^2 = 1."""
    y = (math.sqrt(7.0) - 1.0) / 4.0
    found = after.mirror_step([0.5, 0.5], [1.0, 0.0], 1.0, 1.5)
    np.testing.assert_allclose(found, [(y + 0.5) ** 2, y**2], rtol=1e-14)
    np.testing.assert_array_equal(after.mirror_step([0.5, 0.5], [9.0, 0.0], 1.0, 1.5), [1.0, 0.0])


def test_the_family_s_counts_by_hand() -> None:
    """Weight 1/4 and index 3/2: the corner is eight steps away."""
    assert [after.family_count(n, "1/4", "3/2") for n in (1, 8, 9, 100)] == [1, 8, 8, 8]
    assert after.family_count(100, "1/4", 2) == 4
    assert after.family_count(100, "1/4", 1) == 100
    assert after.family_count(100, "1/4", "3/2", strict=True) == 9
    with pytest.raises(ValueError, match="alpha: expected a number"):
        after.mirror_step([0.5, 0.5], [1.0, 0.0], 1.0, 1.0)


def test_the_natural_gradient_of_free_scores_is_the_advantage() -> None:
    pi, q = np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 2.0])
    found = after.compatible_direction(np.eye(3), pi, q)
    np.testing.assert_allclose(found - found[0], q - q[0], atol=1e-12)


def test_a_ladder_of_features_misleads_natural_gradient() -> None:
    """Features 1, 0, -1 and values 0.6, 1, 0: from the uniform policy the fit has slope 0.3."""
    found = after.compatible_direction([[1.0], [0.0], [-1.0]], np.full(3, 1 / 3), [0.6, 1.0, 0.0])
    assert found[0] == pytest.approx(0.3)


def test_operations_are_counted() -> None:
    """CE with three actions: three differences, of which it needs one, products and sums."""
    assert after.cost(UPDATES["ce"], 3)["operations"] == 9
    assert after.cost(UPDATES["npg"], 3)["operations"] == 2 + 3 * 3
    with pytest.raises(ValueError, match="has no kernel"):
        after.cost(make_update("pg-es", p=3), 3)


def test_numbers_that_count_are_added_and_divided_as_numbers_are() -> None:
    tally = [0]
    four, half = after.CountedFloat(4.0, tally), after.CountedFloat(0.5, tally)
    results = [four + 1, 1 + four, four - half, 1 - four, four * half, 2 * four, four / 8, 1 / four]
    assert [x.value for x in results] == [5.0, 5.0, 3.5, -3.0, 2.0, 8.0, 0.5, 0.25]
    assert tally == [8]
    assert four > half
    assert half < 1
    assert tally == [10]


def test_candidates_are_read_as_they_are_written() -> None:
    box = np.array(late.bounds(2))
    point = np.r_[np.arange(6) / 6, [-1.0, 0.0, 1.9, -0.5, 0.3, 1.2], np.zeros(6), [0.0, 1.0], 0.9]
    assert point.shape == (len(box),)
    batch = late.candidates(point[np.newaxis], 2)
    np.testing.assert_array_equal(batch.mdps.successors[0], [[-1, 0, 1], [-1, 0, 1]])
    np.testing.assert_allclose(batch.weights, [[1.0, 10.0]])
    assert batch.mdps.discount[0] == 0.9
    np.testing.assert_allclose(batch.mdps.rewards[0, 1], [3 / 6, 4 / 6, 5 / 6])


def test_the_corners_of_the_box_are_the_least_and_the_largest_of_everything() -> None:
    batch = late.candidates(np.array(late.bounds(2)).T, 2)
    ends = {
        "rewards": (batch.mdps.rewards, -1.0, 1.0),
        "successors": (batch.mdps.successors, -1, 1),
        "starts": (batch.theta, -30.0, 30.0),
        "weights": (batch.weights, 0.1, 100.0),
        "discounts": (batch.mdps.discount, 0.5, 0.99),
    }
    for low_and_high, low, high in ends.values():
        np.testing.assert_allclose(low_and_high[0], low)
        np.testing.assert_allclose(low_and_high[1], high)


def test_a_run_at_its_optimum_does_not_fall() -> None:
    point = np.r_[[1.0, 0.0, 0.0] * 2, [-1.0] * 6, [30.0, 0.0, 0.0] * 2, [0.0, 0.0], 0.9]
    assert late.late_drawdown(point, 2, 2000)[0] < 1e-12


@pytest.mark.parametrize(
    ("update", "sees"),
    [("ce", "the greedy action"), ("mce", "the greedy action"), ("npg", "all values")],
)
def test_who_sees_the_greedy_action_alone(update: str, sees: str) -> None:
    assert {after.cost(UPDATES[update], n)["sees"] for n in range(3, 12)} == {sees}


@pytest.mark.parametrize(
    ("step", "sees"),
    [
        (lambda _, q, w: w * q.max(), "the greedy action"),
        (lambda _, q, w: w * float(q.argmax()), "the greedy action"),
        (lambda _, q, w: w * q.sum(), "all values"),
    ],
)
def test_a_step_sees_all_values_if_it_heeds_any_but_the_best(
    step: Callable[..., float], sees: str
) -> None:
    update = SimpleNamespace(
        name="x", kernel=lambda *_: None, parametrization="softmax", parameters=np.log, step=step,
        initial=lambda _, n: np.zeros((1, n)), policy=lambda theta: np.full(2, theta),
    )  # fmt: skip
    assert after.cost(update, 3)["sees"] == sees


def test_the_committed_search_has_the_runs_of_its_stages() -> None:
    """Three states have 31 coordinates: the first stage has 4 * 31 points in 81 generations."""
    assert len(late.bounds(3)) == 31
    assert [31 * many * (more + 1) for _, many, more in late.STAGES] == [10044, 961, 217]
    stages = late.load()["restarts"][0]["stages"]
    assert [stage["runs"] for stage in stages] == [10044, 961, 217]
    steps = [stage["steps"] for stage in stages]
    assert steps == [steps for steps, *_ in late.STAGES] == [2_000, 20_000, 200_000]


def test_breeding_hands_its_best_on(monkeypatch: pytest.MonkeyPatch) -> None:
    box, given = np.array(late.bounds(2)), []

    def evolution(cost: object, bounds: object, init: np.ndarray, **how: object) -> object:
        given.append(init)
        return SimpleNamespace(
            population=init, population_energies=-np.arange(len(init)), fun=-3.0, x=init[0]
        )

    monkeypatch.setattr(late, "differential_evolution", evolution)
    found = late.evolve(0, 2, ((50, 2, 3), (70, 1, 1)))
    assert [(row["steps"], row["runs"], row["drawdown"]) for row in found] == [
        (50, 2 * len(box) * 4, 3.0),
        (70, len(box) * 2, 3.0),
    ]
    assert given[0].shape == (2 * len(box), len(box))
    assert (given[0] >= box[:, 0]).all()
    assert (given[0] <= box[:, 1]).all()
    assert np.ptp(given[0], axis=0) == pytest.approx(np.ptp(box, axis=1), rel=0.4)
    np.testing.assert_array_equal(given[1], given[0][::-1][: len(box)])


def tallies(check: Check, **arguments: Any) -> dict[str, Tally]:
    """Return the tallies of a check with these arguments, by quantity."""
    return {tally.quantity: tally for tally in replace(check, arguments=arguments).run().tallies}


def test_the_ends_of_the_family_may_be_apart_by_rounding_and_by_their_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps that are a thousandth from DI's and NPG's at the indices 2 and next to 1."""

    def mirror_step(pi: np.ndarray, q: np.ndarray, weight: float, alpha: float) -> np.ndarray:
        known = UPDATES["di"].step if alpha == 2.0 else after.natural_policy
        return known(pi, q, weight) - 1e-3 * np.eye(4)[1]

    monkeypatch.setattr(checks.after, "mirror_step", mirror_step)
    found = tallies(checks.the_family_leads_from_npg_to_di, alphas=())
    assert {quantity: tally.worst[0].slack for quantity, tally in found.items()} == {
        "distance from the step of DI": pytest.approx(1e-12 - 1e-3, rel=1e-9),
        "distance from the step of NPG": pytest.approx(1e-5 - 1e-3, rel=1e-9),
    }
    assert [tally.failures for tally in found.values()] == [100, 100]


@pytest.mark.parametrize("changed", [None, ("npg", "unlearning", "fast")])
def test_of_two_more_rows_the_changed_entry_alone_is_wrong(
    changed: tuple[str, str, str] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is measured is what the rows say, at a distance of one half."""

    def measure(update: object, column: str) -> SimpleNamespace:
        row = "npg" if update is UPDATES["npg"] else "Tsallis, 3/2"
        return SimpleNamespace(entry=checks.ROWS[row][column], margin=0.5, found="Found.")

    monkeypatch.setattr(checks, "measure", measure)
    found = tallies(checks.two_more_rows_are_measured, changed=changed)
    distance = found.pop("distance from another entry")
    assert (distance.comparisons, distance.worst[0].slack) == (10, 0.5)
    wrong = [quantity for quantity, tally in found.items() if tally.failures]
    assert wrong == (["NPG, Unlearning"] if changed else [])
    entries = [entry for row in checks.ROWS.values() for entry in row.values()]
    assert [tally.worst[0].value for tally in found.values()] == entries


def test_dominoes_are_counted_against_all_that_two_to_the_h_allows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """If strict recovery took no longer, each state would double the count: 1, 2, 4, ..."""
    monkeypatch.setattr(checks.after, "natural_count", lambda n, *_, **__: n)
    found = tallies(checks.natural_gradient_unlearns_in_n, etas=())
    expected = [-((2**h - 1) - 2 ** (h - 1)) for h in range(8, 2, -1)]
    assert list(found) == ["steps of dominoes", "steps in floats"]
    for tally in found.values():
        assert [kept.slack for kept in tally.worst] == expected
        assert (tally.comparisons, tally.failures) == (8, 7)


def test_natural_policies_far_out() -> None:
    assert after.natural_policy([0.0, 1.0], [1.0, 0.0], 1000.0).tolist() == [0.0, 1.0]
    assert after.natural_policy([0.5, 0.5], [1.0, 0.0], 5000.0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("shift", [0.0, 1e10, 1e308])
def test_natural_policies_keep_small_differences_of_large_values(shift: float) -> None:
    """A shift of all values changes nothing; what is left of the difference decides."""
    values = np.array([shift + 1e-6, shift])
    odds = np.exp(10.0 * (values[0] - values[1]))
    found = after.natural_policy([0.5, 0.5], values, 10.0)
    np.testing.assert_allclose(found, [odds / (1 + odds), 1 / (1 + odds)], rtol=1e-12)


@pytest.mark.parametrize(
    ("pi", "q", "weight", "words"),
    [
        ([0.1, 0.9], [1.0, 0.0], 1e-320, "leave the range of floats"),
        ([0.1, 0.9], [1.0, 0.0, 2.0], 1.0, "two rows of one length"),
        ([[0.1, 0.9]] * 2, [[1.0, 0.0]] * 2, 1.0, "two rows of one length"),
    ],
)
def test_an_escape_out_of_range_or_shape_is_refused(
    pi: Any, q: Any, weight: float, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        after.escape_bounds(pi, q, weight)


def test_an_escape_from_the_smallest_floats_is_bounded() -> None:
    """Odds of 1e320 to one: log 10 times 320 is 736.8."""
    assert after.escape_bounds([1e-320, 1.0], [1.0, 0.0], 1.0) == (737, 737)


@pytest.mark.parametrize("small", [1e-8, 1e-14, 1e-17])
def test_the_compatible_direction_of_a_table_is_the_values(small: float) -> None:
    """Up to a constant, of which the shortest has mean zero: (0, 1, 5) less 2."""
    found = after.compatible_direction(np.eye(3), [0.5, 0.5 - small, small], [0.0, 1.0, 5.0])
    np.testing.assert_allclose(found, [-2.0, -1.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("pi", "q"), [([0.0, 1.0], [1.0, 0.0]), ([0.2, 0.2, 0.6], [1.0, 1.0, 0.0])]
)
def test_an_escape_needs_one_best_action_with_a_chance(pi: list[float], q: list[float]) -> None:
    with pytest.raises(ValueError, match="one best action, with a positive probability"):
        after.escape_bounds(pi, q, 1.0)


@pytest.mark.parametrize(("pi", "q", "weight"), [([1.0], [1.0], 1.0), ([0.4, 0.6], [1, 0], 0.0)])
def test_an_escape_needs_steps_and_actions(pi: list[float], q: list[float], weight: float) -> None:
    with pytest.raises(ValueError, match="a positive weight and at least two actions"):
        after.escape_bounds(pi, q, weight)


@pytest.mark.parametrize("gains", [(0.3, 0.2), (0.2, 0.3)])
def test_a_well_pulls_to_the_second(
    gains: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = np.array([*gains, -sum(gains)])
    monkeypatch.setattr(after, "natural_policy", lambda pi, q, total_weight: pi + moved)
    check = checks.natural_gradient_leaves_wells_in_logarithmic_time
    pull = tallies(check)["gain of the second best action"]
    assert pull.worst[0].slack == pytest.approx(gains[1] - gains[0])


def test_from_one_half_nothing_is_left_to_escape() -> None:
    assert after.escape_bounds([1.0, 0.0], [1.0, 0.0], 1.0) == (0, 0)


@pytest.mark.parametrize("count", [after.geometric_bound, lambda c: after.geometric_count(5, c)])
def test_growing_weights_grow(count: Callable[[int], int]) -> None:
    with pytest.raises(ValueError, match="ratio: expected a number above 1, got 1"):
        count(1)


def test_an_index_below_one_and_one_too_near_are_refused() -> None:
    with pytest.raises(ValueError, match="alpha: expected a number of at least 1"):
        after.family_count(5, 1, "1/2")
    with pytest.raises(ValueError, match="weight: expected a positive number"):
        after.family_count(5, 0, "3/2")
    with pytest.raises(ValueError, match=r"alpha: expected a number from 1 \+ 1e-8"):
        after.mirror_step([0.5, 0.5], [1.0, 0.0], 1.0, 1.0 + 1e-12)
