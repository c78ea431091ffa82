"""Test counts, steps and costs of later work against hand solutions."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.evolutionary_search import quantities as late
from pu_lib.chapters.function_approximation.quantities import compatible_direction
from pu_lib.chapters.gravity_well.escape import escape_steps, well_policy
from pu_lib.chapters.what_came_after import later
from pu_lib.chapters.what_came_after import quantities as after
from pu_lib.updates import UPDATES, make_update


def test_natural_count_of_three_steps_matches_hand_solution() -> None:
    assert after.natural_count(3, repeat(Fraction(1, 3))) == 3
    assert after.natural_count(3, repeat(Fraction(1, 3)), strict=True) == 4
    assert after.natural_count(0, repeat(Fraction(1))) == 0


def test_counts_with_doubling_weights_match_hand_solution() -> None:
    """One step of weight 8 undoes the forward weights 1 + 2 + 4 = 7."""
    assert [after.geometric_count(n, 2) for n in (1, 2, 3, 50)] == [1, 1, 1, 1]
    assert after.geometric_bound(2) == 1
    assert after.natural_count(3, [Fraction(2) ** t for t in range(5)]) == 1


@pytest.mark.parametrize("n", [1, 4, 20, 100])
def test_geometric_count_agrees_with_logarithms(n: int) -> None:
    assert after.geometric_count(n, "1.1") == math.ceil(math.log(2 - 1.1**-n) / math.log(1.1))
    assert after.geometric_bound("1.1") == math.ceil(math.log(2) / math.log(1.1)) == 8


def test_npg_escapes_the_gravity_well_in_139_steps() -> None:
    q = np.array([1.0, 0.9, 0.0])
    assert escape_steps("npg", well_policy(1e-6), q) == 139
    assert after.escape_bounds(well_policy(1e-6), q, 1.0) == (14, 139)


def test_mirror_step_matches_hand_solution() -> None:
    """The roots differ by 1/2 for index 3/2 and weight 1, so that y^2 + (y+1/2)^2 = 1."""
    y = (math.sqrt(7.0) - 1.0) / 4.0
    policy = after.mirror_step([0.5, 0.5], [1.0, 0.0], 1.0, 1.5)
    np.testing.assert_allclose(policy, [(y + 0.5) ** 2, y**2], rtol=1e-14)
    np.testing.assert_array_equal(after.mirror_step([0.5, 0.5], [9.0, 0.0], 1.0, 1.5), [1.0, 0.0])


def test_family_count_matches_hand_solution() -> None:
    """The corner is eight steps away for weight 1/4 and index 3/2."""
    assert [after.family_count(n, "1/4", "3/2") for n in (1, 8, 9, 100)] == [1, 8, 8, 8]
    assert after.family_count(100, "1/4", 2) == 4
    assert after.family_count(100, "1/4", 1) == 100
    assert after.family_count(100, "1/4", "3/2", strict=True) == 9
    with pytest.raises(ValueError, match="alpha: expected a number"):
        after.mirror_step([0.5, 0.5], [1.0, 0.0], 1.0, 1.0)


def test_compatible_direction_of_one_hot_features_matches_hand_solution() -> None:
    pi, q = np.array([0.2, 0.3, 0.5]), np.array([1.0, 0.0, 2.0])
    direction = compatible_direction(np.eye(3), pi, q)
    np.testing.assert_allclose(direction - direction[0], q - q[0], atol=1e-12)


def test_compatible_direction_of_one_feature_matches_hand_solution() -> None:
    """The fit of the values (0.6, 1, 0) to the features (1, 0, -1) has slope 0.3."""
    direction = compatible_direction([[1.0], [0.0], [-1.0]], np.full(3, 1 / 3), [0.6, 1.0, 0.0])
    assert direction[0] == pytest.approx(0.3)


def test_cost_counts_operations() -> None:
    """CE takes one subtraction, one multiplication and one addition for each action."""
    assert after.cost(UPDATES["ce"], 3)["operations"] == 9
    assert after.cost(UPDATES["npg"], 3)["operations"] == 2 + 3 * 3
    with pytest.raises(ValueError, match="has no kernel"):
        after.cost(make_update("pg-es", p=3), 3)


def test_counted_floats_count_arithmetic_operations_and_comparisons() -> None:
    tally = [0]
    four, half = after.CountedFloat(4.0, tally), after.CountedFloat(0.5, tally)
    results = [four + 1, 1 + four, four - half, 1 - four, four * half, 2 * four, four / 8, 1 / four]
    assert [x.value for x in results] == [5.0, 5.0, 3.5, -3.0, 2.0, 8.0, 0.5, 0.25]
    assert tally == [8]
    assert four > half
    assert half < 1
    assert tally == [10]


def test_candidates_decode_a_point() -> None:
    box = np.array(late.bounds(2))
    point = np.r_[np.arange(6) / 6, [-1.0, 0.0, 1.9, -0.5, 0.3, 1.2], np.zeros(6), [0.0, 1.0], 0.9]
    assert point.shape == (len(box),)
    batch = late.candidates(point[np.newaxis], 2)
    np.testing.assert_array_equal(batch.mdps.successors[0], [[-1, 0, 1], [-1, 0, 1]])
    np.testing.assert_allclose(batch.weights, [[1.0, 10.0]])
    assert batch.mdps.discount[0] == 0.9
    np.testing.assert_allclose(batch.mdps.rewards[0, 1], [3 / 6, 4 / 6, 5 / 6])


def test_candidates_decode_the_corners_of_the_box() -> None:
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


def test_late_drawdown_is_zero_at_the_optimum() -> None:
    point = np.r_[[1.0, 0.0, 0.0] * 2, [-1.0] * 6, [30.0, 0.0, 0.0] * 2, [0.0, 0.0], 0.9]
    assert late.late_drawdown(point, 2, 2000)[0] < 1e-12


@pytest.mark.parametrize(
    ("update", "sees"),
    [("ce", "the greedy action"), ("mce", "the greedy action"), ("npg", "all values")],
)
def test_cost_reports_which_values_an_update_uses(update: str, sees: str) -> None:
    assert {after.cost(UPDATES[update], n)["sees"] for n in range(3, 12)} == {sees}


@pytest.mark.parametrize(
    ("step", "sees"),
    [
        (lambda _, q, w: w * q.max(), "the greedy action"),
        (lambda _, q, w: w * float(q.argmax()), "the greedy action"),
        (lambda _, q, w: w * q.sum(), "all values"),
    ],
)
def test_cost_detects_dependence_on_other_values(step: Callable[..., float], sees: str) -> None:
    update = SimpleNamespace(
        name="x", kernel=lambda *_: None, parametrization="softmax", parameters=np.log, step=step,
        initial=lambda _, n: np.zeros((1, n)), policy=lambda theta: np.full(2, theta),
    )  # fmt: skip
    assert after.cost(update, 3)["sees"] == sees


def test_committed_search_has_the_runs_of_its_stages() -> None:
    """Three states have 31 coordinates, so the first stage has 4 * 31 points in 81 generations."""
    assert len(late.bounds(3)) == 31
    assert [31 * many * (more + 1) for _, many, more in late.STAGES] == [10044, 961, 217]
    stages = late.load()["restarts"][0]["stages"]
    assert [stage["runs"] for stage in stages] == [10044, 961, 217]
    steps = [stage["steps"] for stage in stages]
    assert steps == [steps for steps, *_ in late.STAGES] == [2_000, 20_000, 200_000]


def test_evolve_passes_the_best_points_to_the_next_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    box, populations = np.array(late.bounds(2)), []

    def evolution(cost: object, bounds: object, init: np.ndarray, **how: object) -> object:
        populations.append(init)
        return SimpleNamespace(
            population=init, population_energies=-np.arange(len(init)), fun=-3.0, x=init[0]
        )

    monkeypatch.setattr(late, "differential_evolution", evolution)
    stages = late.evolve(0, 2, ((50, 2, 3), (70, 1, 1)))
    assert [(row["steps"], row["runs"], row["drawdown"]) for row in stages] == [
        (50, 2 * len(box) * 4, 3.0),
        (70, len(box) * 2, 3.0),
    ]
    assert populations[0].shape == (2 * len(box), len(box))
    assert (populations[0] >= box[:, 0]).all()
    assert (populations[0] <= box[:, 1]).all()
    assert np.ptp(populations[0], axis=0) == pytest.approx(np.ptp(box, axis=1), rel=0.4)
    np.testing.assert_array_equal(populations[1], populations[0][::-1][: len(box)])


def test_natural_policy_handles_extreme_weights() -> None:
    assert after.natural_policy([0.0, 1.0], [1.0, 0.0], 1000.0).tolist() == [0.0, 1.0]
    assert after.natural_policy([0.5, 0.5], [1.0, 0.0], 5000.0).tolist() == [1.0, 0.0]


@pytest.mark.parametrize("shift", [0.0, 1e10, 1e308])
def test_natural_policy_preserves_small_differences_of_large_values(shift: float) -> None:
    """A shift of all values changes only the rounding of their difference."""
    values = np.array([shift + 1e-6, shift])
    odds = np.exp(10.0 * (values[0] - values[1]))
    policy = after.natural_policy([0.5, 0.5], values, 10.0)
    np.testing.assert_allclose(policy, [odds / (1 + odds), 1 / (1 + odds)], rtol=1e-12)


@pytest.mark.parametrize(
    ("pi", "q", "weight", "words"),
    [
        ([0.1, 0.9], [1.0, 0.0], 1e-320, "leave the range of floats"),
        ([0.1, 0.9], [1.0, 0.0, 2.0], 1.0, "two rows of one length"),
        ([[0.1, 0.9]] * 2, [[1.0, 0.0]] * 2, 1.0, "two rows of one length"),
    ],
)
def test_escape_bounds_rejects_range_and_shape(pi: Any, q: Any, weight: float, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        after.escape_bounds(pi, q, weight)


def test_escape_bounds_handle_subnormal_probabilities() -> None:
    """The bounds at odds of 1e320 are 320 log 10 = 736.8 rounded up."""
    assert after.escape_bounds([1e-320, 1.0], [1.0, 0.0], 1.0) == (737, 737)


@pytest.mark.parametrize("small", [1e-8, 1e-14, 1e-17])
def test_compatible_direction_of_a_table_is_the_centred_values(small: float) -> None:
    """The shortest of the directions, which differ by a constant, is (0, 1, 5) - 2."""
    direction = compatible_direction(np.eye(3), [0.5, 0.5 - small, small], [0.0, 1.0, 5.0])
    np.testing.assert_allclose(direction, [-2.0, -1.0, 3.0], rtol=1e-6)


@pytest.mark.parametrize(
    ("pi", "q"), [([0.0, 1.0], [1.0, 0.0]), ([0.2, 0.2, 0.6], [1.0, 1.0, 0.0])]
)
def test_escape_bounds_rejects_ties_and_zero_probability(pi: list[float], q: list[float]) -> None:
    with pytest.raises(ValueError, match="one best action, with a positive probability"):
        after.escape_bounds(pi, q, 1.0)


@pytest.mark.parametrize(("pi", "q", "weight"), [([1.0], [1.0], 1.0), ([0.4, 0.6], [1, 0], 0.0)])
def test_escape_bounds_rejects_zero_weight_and_single_action(
    pi: list[float], q: list[float], weight: float
) -> None:
    with pytest.raises(ValueError, match="a positive weight and at least two actions"):
        after.escape_bounds(pi, q, weight)


def test_escape_bounds_from_one_half_are_zero() -> None:
    assert after.escape_bounds([1.0, 0.0], [1.0, 0.0], 1.0) == (0, 0)


@pytest.mark.parametrize("count", [after.geometric_bound, lambda c: after.geometric_count(5, c)])
def test_geometric_counts_reject_ratio_one(count: Callable[[int], int]) -> None:
    with pytest.raises(ValueError, match="ratio: expected a number above 1, got 1"):
        count(1)


def test_family_rejects_invalid_index_and_weight() -> None:
    with pytest.raises(ValueError, match="alpha: expected a number of at least 1"):
        after.family_count(5, 1, "1/2")
    with pytest.raises(ValueError, match="weight: expected a positive number"):
        after.family_count(5, 0, "3/2")
    with pytest.raises(ValueError, match=r"alpha: expected a number from 1 \+ 1e-8"):
        after.mirror_step([0.5, 0.5], [1.0, 0.0], 1.0, 1.0 + 1e-12)


def test_spma_step_solved_by_hand() -> None:
    """A step for each action leads from (1/2, 1/2) to (3/4, 1/4) and to (9/16, 7/16)."""
    pi = later.mirror_ascent_step([0.5, 0.5], [1.0, 0.0], 1.0)
    assert pi.tolist() == [0.75, 0.25]
    assert later.mirror_ascent_step(pi, [0.0, 1.0], 1.0).tolist() == [0.5625, 0.4375]
    assert later.mirror_ascent_step([0.2, 0.3, 0.5], [1, 1, 1], 0.7).tolist() == [0.2, 0.3, 0.5]


def test_spma_counts_agree_with_decimals() -> None:
    for weight, n in ((Decimal("0.5"), 8), (Decimal("0.9"), 7), (Decimal("0.1"), 60)):
        x = Decimal("0.5")
        for _ in range(n):
            x *= 1 - weight * (1 - x)
        steps = 0
        while x < Decimal("0.5"):
            x, steps = x * (1 + weight * (1 - x)), steps + 1
        assert later.spma_count(n, float(weight)) == steps
    assert [later.spma_count(200, w) for w in (0.1, 0.5, 0.9)] == [220, 340, 713]
    with pytest.raises(ValueError, match="too small"):
        later.spma_count(400, 0.9)


def test_biased_baseline_step_solved_by_hand() -> None:
    """The log-odds decrease from log 9 by 0.9, 0.785 and 0.626 to -0.114."""
    x, steps = math.log(9), 0
    while x > 0:
        x, steps = x - 1 / (1 + math.exp(-x)), steps + 1
    assert later.biased_steps_to_half(0.9, 1.0) == steps == 3
    assert later.biased_steps_to_half(0.5, 1.0) == 0


def test_slopes_of_the_entropy_solved_by_hand() -> None:
    pi, q = np.array([0.7, 0.2, 0.1]), np.array([1.0, 0.5, 0.0])
    logs = [math.log(x) for x in pi]
    natural = -(0.14 * logs[0] - 0.06 * logs[1] - 0.08 * logs[2])  # the coefficients are pi * adv
    assert later.entropy_slope("npg", pi, q) == pytest.approx(natural)
    assert later.entropy_slope("pg-es", pi, q) == pytest.approx(4 * natural)
    assert later.entropy_slope("di", pi, q) == pytest.approx(-0.5 * (logs[0] - logs[2]))
    for name in ("npg", "pg-sm", "di"):
        assert later.entropy_slope(name, np.full(3, 1 / 3), q) == pytest.approx(0)


def test_divergence_of_two_policies_solved_by_hand() -> None:
    assert later.kl(np.array([0.5, 0.5]), np.array([0.25, 0.75])) == pytest.approx(
        0.5 * math.log(4 / 3)
    )
    assert later.kl(np.array([0.0, 1.0]), np.array([0.5, 0.5])) == pytest.approx(math.log(2))
    assert later.entropy(np.array([0.5, 0.5])) == pytest.approx(math.log(2))
