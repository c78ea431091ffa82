"""Test bounds, criteria and the hard chain of the literature against hand solutions."""

from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.literature import checks, earlier
from pu_lib.chapters.literature import quantities as lit
from pu_lib.chapters.what_came_after import mirror_descent as md
from pu_lib.claims import Check, Recorder, Tally
from pu_lib.domains import chain
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, softmax

ONE_STATE = FiniteMDP(np.ones((1, 2, 1)), [[1.0, 0.0]], [1.0], 0.5)
HALF = np.array([[0.5, 0.5]])


def compared(check: Check, **arguments: Any) -> dict[str, Tally]:
    """Return the tallies of a check by quantity, relation and limit."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    return {tally.compared: tally for tally in recorder.tallies.values()}


def slacks(check: Check, **arguments: Any) -> list[float]:
    """Return the slacks of the stored comparisons in increasing order."""
    tallies = compared(check, **arguments).values()
    return sorted(one.slack for tally in tallies for one in tally.worst)


def test_divergences_match_hand_solution() -> None:
    p, pi = np.array([1.0, 0.0]), np.array([0.25, 0.75])
    assert md.DIVERGENCES["di"](p, pi) == pytest.approx(0.75**2)
    assert md.DIVERGENCES["npg"](p, pi) == pytest.approx(np.log(4.0))


def test_mirror_descent_bounds_of_one_state_match_hand_solution() -> None:
    """The mismatch is 1 / (1 - gamma) = 2 in one state, and the divergence D is 1/4."""
    assert md.mismatch(ONE_STATE) == pytest.approx(2.0)
    assert md.constant_bound(ONE_STATE, "di", HALF, 0.5, 3) == pytest.approx((1.0 + 4.0) / 4)
    # The uniform policy has the value 1, and the optimal value is 2.
    expected = 0.5**2 * (1.0 + 0.25 / (0.1 * 0.5))
    assert md.geometric_bound(ONE_STATE, "di", HALF, 0.1, 2) == pytest.approx(expected)
    assert md.adaptive_bound(1.0, 0.5, 2, 0.25) == pytest.approx(0.25 * 2.0)


def test_steps_to_optimum_match_hand_solution() -> None:
    """A step of weight 0.1 moves 0.05 if the gap is 1, so 10 updates lead from 1/2 to 1."""
    assert md.advantage_gap(ONE_STATE) == pytest.approx(1.0)
    assert md.steps_to_optimum(ONE_STATE, 0.1, False) == 10
    # The occupancy of the state is 2.
    assert md.steps_to_optimum(ONE_STATE, 0.1, True) == 5
    assert md.steps_to_optimum(ONE_STATE, 0.1, False, most=3) == 3
    assert md.finite_bound(ONE_STATE, 1.0, False) == pytest.approx(2 * 2 * (2 + 4) - 1)
    assert md.finite_bound(ONE_STATE, 1.0, True) == pytest.approx(2 * 2 * 4 * 1 * 13)


def test_first_adaptive_step_matches_hand_solution() -> None:
    """The first step has size D / c = 1, since D = c = 1/4, and ends at the better action."""
    assert md.adaptive_run(ONE_STATE, "di", 1) == pytest.approx([1.0, 0.0])


def test_second_adaptive_step_matches_hand_solution() -> None:
    """If c_0 = 4, the steps 1/4 and (9/64) / (1/4) lead from 1/2 to 5/8 and to 29/32."""
    assert md.adaptive_run(ONE_STATE, "di", 2, 4.0) == pytest.approx([1.0, 3 / 4, 3 / 16])


def test_hard_chain_values_match_hand_solution() -> None:
    hard = lit.hard_chain(6, 10.0)
    best = hard.mdp.optimal()
    np.testing.assert_allclose(best.v[hard.rungs], 0.96 ** (2.0 * hard.rungs))
    np.testing.assert_array_equal(np.argmax(best.policy[1:], axis=1), 1)
    # The value of stopping at rung 3 is
    # 0.5 * 0.96^(2 + 5/6) + 0.96^2 * 0.05 * 0.5 * 0.96^(2/3).
    stop = 0.5 * 0.96 ** (2 + 5 / 6) + 0.96**2 * 0.05 * 0.5 * 0.96 ** (2 / 3)
    assert best.q[3, 0] == pytest.approx(stop)
    assert hard.copies.tolist() == [1.0, 10.0, 10.0, *[1.0] * 10]


def test_di_with_huge_weights_has_the_crossing_times_of_policy_iteration() -> None:
    """DI with a huge weight is policy iteration and solves the rungs in turn from the bottom."""
    times = lit.crossing_times("di", lit.hard_chain(4, 1.0), 1e9, 10)
    assert times[0] == times[1] == 1.0
    assert np.all(np.diff(times[1:]) <= 2.0)
    assert np.all(np.isinf(lit.crossing_times("di", lit.hard_chain(4, 1.0), 1e9, 0)[:2]))


def test_committal_matches_hand_solution() -> None:
    # PG-SM moves theta by w r (1 - pi) for the sampled action and by -w r pi for the other action.
    left = lit.committal("pg-sm", [0.5, 1.0], 0, 1)
    assert left[0] == 0.5
    assert left[1] == pytest.approx(1.0 / (1.0 + np.exp(0.5)))
    # NPG moves theta by r / pi = 1 for the sampled action only.
    assert lit.committal("npg", [0.5, 1.0], 0, 1)[1] == pytest.approx(1.0 / (1.0 + np.e))


def test_committal_never_increases() -> None:
    for name in UPDATES:
        assert np.all(np.diff(lit.committal(name, [0.5, 1.0], 0, 5)) <= 1e-12), name


def test_regret_bound_agrees_with_its_series() -> None:
    eta, gap, horizon = 0.1, 0.3, 100
    factor, term = 0.0, 2.0 / 2.0
    for n in range(30):
        factor += term
        term *= 2 * eta / (n + 3)
    expected = np.log(1 + 4 * eta * gap * horizon) / (2 * eta) + gap / (
        2 * eta * (gap - eta * factor)
    )
    assert lit.regret_bound(eta, gap, horizon) == pytest.approx(expected)
    with pytest.raises(ValueError, match="eta"):
        lit.regret_bound(0.5, 0.3, horizon)


def test_sampled_regret_of_one_sample_matches_hand_solution() -> None:
    assert lit.sampled_regret(0.1, 0.4, 1, 5).tolist() == [0.2] * 5


def test_linear_natural_gradient_matches_hand_solution() -> None:
    """The fit is (r1 - r3) / 2 times the features (1, 0, -1), which hide the best arm."""
    features, rewards = np.array([[1.0], [0.0], [-1.0]]), np.array([0.6, 1.0, 0.0])
    pi = lit.linear_natural(features, rewards, 2.0, 5)
    scores = 10 * 0.3 * features[:, 0]
    np.testing.assert_allclose(pi, np.exp(scores) / np.exp(scores).sum())
    assert lit.linear_softmax(features, rewards, 1.0, 0).tolist() == [1 / 3] * 3


def test_best_of_n_matches_hand_solution() -> None:
    # The cumulative probabilities of the values 2, 3 and 1 are 3/4, 1 and 1/4.
    np.testing.assert_allclose(
        lit.best_of_n([0.5, 0.25, 0.25], [2.0, 3.0, 1.0], 2), [1 / 2, 7 / 16, 1 / 16]
    )
    step = lit.greedy_sample_step([0.5, 0.25, 0.25], [1 / 3] * 3, [2.0, 3.0, 1.0], 1)
    np.testing.assert_allclose(step, [1 / 6, -1 / 12, -1 / 12])


def test_off_policy_step_matches_hand_solution() -> None:
    theta = np.zeros((2, 3))
    same = lit.off_policy_step(theta, np.ones((2, 3)), np.array([0.5, 0.5]), 1.0, 0.3)
    np.testing.assert_allclose(same, theta, atol=1e-15)
    away = lit.off_policy_step(np.array([[1.0, 0.0]]), np.zeros((1, 2)), np.ones(1), 2.0, 0.5)
    pi = 1.0 / (1.0 + np.exp(-1.0))
    np.testing.assert_allclose(away, [[1.0 + 0.5 - pi, pi - 0.5]])


class Short(type(UPDATES["pg-es"])):
    """The escort update with an error of -1e-6 in the first parameter."""

    def step(self, theta, q, weight=1.0, rng=None):
        return super().step(theta, q, weight, rng) - 1e-6 * np.eye(len(theta))[0]


def test_sphere_check_detects_small_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks, "make_update", lambda *_, **__: Short())
    assert slacks(checks.escort_is_the_gradient_on_the_sphere)[0] == pytest.approx(-1e-6, rel=1e-5)


def test_crossing_time_of_a_state_of_value_zero_is_zero() -> None:
    """A state of value zero has nine tenths of its value before the first step."""
    mdp = FiniteMDP(np.ones((1, 2, 1)), [[0.0, 0.0]], [1.0], 0.5)
    hard = lit.HardChain(mdp, np.array([0]), np.ones(1))
    assert lit.crossing_times("npg", hard, most=2).tolist() == [0.0]


@pytest.fixture
def halved(monkeypatch) -> list[list[float]]:
    """Mock one run with gaps 1, 1/2 and 1/4 and return the requested step sizes."""
    requested = []

    def lacking(mdp, name, etas):
        requested.append(etas.tolist())
        return np.array([1.0, 0.5, 0.25]), HALF

    monkeypatch.setattr(checks, "_random_cases", lambda *_: [(0, ONE_STATE, "di", 0.1)])
    monkeypatch.setattr(checks, "_performance_gaps", lacking)
    return requested


@pytest.mark.parametrize(("power", "bounds"), [(1.0, [6.0, 3.0, 1.5]), (2.0, [6.0, 1.5, 6 / 16])])
def test_linear_rate_slack_matches_hand_solution(power, bounds, halved) -> None:
    """The bound for doubling step sizes is (1 + D / (eta / 2)) / 2^k with D = 1/4."""
    expected = [bound * 2**k - 1.0 + checks.ROUNDING for k, bound in enumerate(bounds)]
    least = slacks(checks.growing_steps_obey_xiaos_bound, power=power)
    assert least == pytest.approx(sorted(expected), abs=1e-12)
    assert halved == [pytest.approx([0.1 * 2**k for k in range(30)])]


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_constant_step_slack_matches_hand_solution(power, halved) -> None:
    """The bound (2 D / eta + 2^2) / (k + 1), where 2 is 1 / (1 - gamma), is 9, 9/2 and 3."""
    expected = [9.0 / (k + 1) ** power * 2**k - 1.0 for k in range(3)]
    least = slacks(checks.constant_steps_obey_xiaos_bound, power=power)
    assert least == pytest.approx(sorted(expected))
    assert halved == [[0.1] * 40]


@pytest.mark.parametrize("power", [1.0, 3.0])
def test_adaptive_step_slack_matches_hand_solution(power, halved, monkeypatch) -> None:
    """The gaps are 1, 1/2 and about 0, and the bound is (1 + c / (1/2)^2) / 2^k."""
    monkeypatch.setattr(checks.md, "adaptive_run", lambda *_: np.array([1.0, 0.5, 1e-13]))
    expected = [0.4, 1.4 / 2.0**power * 2.0 - 1.0, np.inf]
    least = slacks(checks.adaptive_steps_obey_johnsons_bound, power=power)
    assert least == pytest.approx(sorted(expected))


def test_off_policy_gap_matches_independent_loop() -> None:
    """The limit is nine tenths of the gap after a tenth of the run."""
    (tally,) = compared(checks.off_policy_needs_no_ratio).values()
    mdp, gaps = checks._single_start_mdp(0), []
    theta, uniform = np.zeros((5, 3)), np.full((5, 3), 1 / 3)
    for t in range(151):
        evaluation = mdp.evaluate(softmax(theta))
        gaps.append(np.max(mdp.optimal().v - evaluation.v))
        visits = mdp.evaluate(uniform).occupancy * (1 - mdp.discount)
        theta = lit.off_policy_step(theta, evaluation.q, visits, 20.0, 0.1 / (t + 1) ** 0.12)
    (first,) = (one for one in tally.worst if one.instance == {"process": 0})
    assert first.limit == pytest.approx(0.9 * gaps[150])
    assert first.slack == first.limit - first.value


@pytest.mark.parametrize(("discount", "chance"), [(0.9, 0.05), (0.96, 0.3), (0.96, 0.9)])
def test_hard_chain_rejects_parameters_with_optimal_stopping(
    discount: float, chance: float
) -> None:
    with pytest.raises(ValueError, match="not optimal to step down all the way"):
        lit.hard_chain(8, discount=discount, chance=chance)


def test_hard_chain_rejects_height_below_three() -> None:
    with pytest.raises(ValueError, match="height: "):
        lit.hard_chain(2)


def test_adaptive_run_rejects_overflowing_weights() -> None:
    with pytest.raises(ValueError, match="n_steps: the weights of 600 steps leave the range"):
        md.adaptive_run(ONE_STATE, "di", 600)


LOG_ODDS, VALUES = np.array([np.log(3.0), 0.0]), np.array([2.0, 0.0])
"""A policy (3/4, 1/4), whose value is 3/2, so that the advantages are 1/2 and -3/2."""


@pytest.mark.parametrize(
    ("objective", "step"),
    [
        ("log-likelihood", 3 / 8),
        ("ratio", 3 / 8),
        ("all actions", 3 / 8),
        ("indicator", 3 / 4 * 1 / 4),
        ("exponential", 3 / 16 * (np.exp(0.5) - np.exp(-1.5))),
        ("softened values", 3 * np.exp(2) / (3 * np.exp(2) + 1) - 3 / 4),
        ("best of 30", 1 / 4 - 0.25**30),
    ],
)
def test_steps_of_losses_solved_by_hand(objective: str, step: float) -> None:
    assert earlier.loss_step(objective, LOG_ODDS, VALUES) == pytest.approx([step, -step])


def test_natural_step_is_the_advantage_up_to_a_constant() -> None:
    first, second = earlier.natural_step(LOG_ODDS, VALUES)
    assert first - second == pytest.approx(2.0)


def test_gaussian_policy_has_mean_and_variance() -> None:
    pi = earlier.gaussian_of(np.array([0.5]))
    actions = np.linspace(-6.0, 6.0, 241)
    assert pi @ actions == pytest.approx(0.5, abs=1e-6)
    assert pi @ (actions - 0.5) ** 2 == pytest.approx(1.0, abs=1e-6)
    # The reward is the action, so the gradient of the mean reward is 1.
    assert earlier.loss_step("all actions", np.zeros(1), actions, earlier.gaussian_of) == (
        pytest.approx([1.0], abs=1e-6)
    )


def test_likelihood_ratio_and_visits_solved_by_hand() -> None:
    """The uniform policy first walks and then jumps with probability 1/4."""
    mdp, pi = chain(3, discount=0.5), np.full((3, 2), 0.5)
    assert earlier.undiscounted_visits(mdp, pi) == pytest.approx([1.0, 0.5, 0.0])
    jump, walk = mdp.rewards[0, 0], mdp.rewards[1, 1]
    # The advantage of jumping is half of the difference of the two actions' returns.
    late = 0.5 * (mdp.rewards[1, 0] - walk)
    early = 0.5 * (jump - 0.5 * 0.5 * (mdp.rewards[1, 0] + walk))
    expected = [[0.5 * early, -0.5 * early], [0.5 * 0.5 * 0.5 * late, -0.5 * 0.5 * 0.5 * late]]
    gradient = earlier.likelihood_ratio(mdp, np.zeros((3, 2)), 2)
    assert gradient[:2] == pytest.approx(np.array(expected))
