"""Test the balance, the constants and the late fall of CE with constant weights."""

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.cross_entropy import checks
from pu_lib.chapters.cross_entropy import constant_weights as constant
from pu_lib.chapters.cross_entropy import quantities as ce
from pu_lib.chapters.cross_entropy.cycles import FOUR_STATES, THREE_STATES
from pu_lib.claims.recorder import Comparison, Recorder
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.updates import softmax


def test_excess_entropy_of_equal_actions_matches_hand_solution() -> None:
    """The excess entropy of k equal actions is log k - (w/2)(1 - 1/k)."""
    for k in (2, 3, 7):
        excess = constant.excess_entropy(np.full(k, 1.5), np.array(0.8))
        assert excess == pytest.approx(math.log(k) - 0.4 * (1 - 1 / k), abs=1e-14)


def test_excess_entropy_equals_log_loss_on_the_cycle() -> None:
    """Log loss and excess entropy are equal, since (-u, u) and (u, -u) have the same potential."""
    u = 4.999772907541
    log_loss = math.log1p(math.exp(-2 * u))
    excess = constant.excess_entropy(np.array([-u, u]), np.array(10.0))
    assert excess == pytest.approx(log_loss, rel=1e-8)


@pytest.mark.parametrize(("state", "updates"), [(1, 110), (2, 110), (3, 110)])
def test_balance_is_zero_over_a_period_with_constant_weight(state: int, updates: int) -> None:
    theta, log_loss, excess, count = np.array(FOUR_STATES.start[state]), 0.0, 0.0, 0
    for _ in range(40):  # The initial parameters are rounded, and the cycle attracts.
        log_loss, excess, count = 0.0, 0.0, 0
        for phase in FOUR_STATES.phases:
            for _ in range(phase.updates if phase.state == state else 0):
                excess += float(constant.excess_entropy(theta, np.array(0.5)))
                theta = theta + 0.5 * (np.eye(2)[phase.greedy] - softmax(theta))
                log_loss -= float(constant.log_softmax(theta)[phase.greedy])
                count += 1
    assert count == updates
    assert log_loss > 10.0
    assert excess == pytest.approx(log_loss, abs=1e-9)


def test_balance_fails_for_varying_weights() -> None:
    """The first state of the three-state cycle has the weights 30, 10, 10 and 20."""
    theta, log_loss, excess = np.array(THREE_STATES.start[0]), 0.0, 0.0
    for phase in THREE_STATES.phases:
        if phase.state == 0:
            weight = float(phase.weight)
            excess += weight * float(constant.excess_entropy(theta, np.array(weight)))
            theta = theta + weight * (np.eye(3)[phase.greedy] - softmax(theta))
            log_loss -= weight * float(constant.log_softmax(theta)[phase.greedy])
    assert log_loss > excess + 100.0


def test_constants_match_hand_solution() -> None:
    """Two arms with rewards 1 and 0 have B = 2, gap 1, J = 3 and tolerance 1/16 at discount 1/2."""
    bandit = DeterministicMDP(np.array([[1.0, 0.0]]), np.array([[-1, -1]]), np.array([2]), 0.5)
    known = constant.constants(bandit)
    assert (known.q_range, known.gap, known.policy) == (2.0, 1.0, (0,))
    assert (known.tolerance, known.window, known.required_excess) == (1 / 16, 3, 1 / 64)
    # The threshold of two actions solves w (1 - e^(1 - w/2)) = log 64 and is below 2 log 64 = 8.3.
    assert 4.9 < known.threshold < 5.4
    left = known.threshold * (1 - math.exp(1 - known.threshold / 2))
    assert left == pytest.approx(math.log(64))


def test_threshold_is_twice_the_logarithm_if_rare_actions_are_not_rare() -> None:
    """The threshold is twice the logarithm, since y is 1/2 with 10^6 actions."""
    known = constant.Constants(1.0, 1.0, 0.0, (0,), 10**6)
    goal = math.log(2 * (10**6 - 1) / known.tolerance)
    assert goal <= known.threshold <= 2 * goal
    rare = min(0.5, (10**6 - 1) * math.exp(1 - known.threshold / 2))
    assert known.threshold * (1 - rare) == pytest.approx(goal)


def test_constants_without_terminal_successor_match_hand_solution() -> None:
    """Two arms that pay 2 and 1 and lead back to their state have B = 1 / (1 - 1/2)."""
    stay = DeterministicMDP(np.array([[2.0, 1.0]]), np.array([[0, 0]]), np.array([2]), 0.5)
    known = constant.constants(stay)
    assert (known.q_range, known.gap) == (2.0, pytest.approx(1.0))


def test_constants_ignore_padding() -> None:
    known = constant.constants(THREE_STATES.tables)
    assert known.policy == (2, 0, 1)
    assert known.q_range == pytest.approx(30.0)
    assert known.gap == pytest.approx(9 / 19)  # 1 + 0.9 * 290/19 minus 1 + 0.9 * 280/19 at s0


def test_run_constant_agrees_with_run_process() -> None:
    rng = np.random.default_rng(3)
    mdp = DeterministicMDP(
        rng.uniform(-1, 1, (4, 3)), rng.integers(-1, 4, (4, 3)), np.full(4, 3), 0.8
    )
    theta, weights = rng.standard_normal((4, 3)), rng.uniform(0.5, 5.0, (1, 4))
    ours = constant.run_constant(
        DeterministicMDP(mdp.rewards[None], mdp.successors[None], mdp.n_actions, np.array([0.8])),
        theta[None],
        weights,
        50,
    )
    theirs = run_process(mdp, "ce", theta, weights, 50)
    np.testing.assert_allclose(ours.values[:-1, 0], theirs.values, atol=1e-10)
    np.testing.assert_array_equal(ours.greedy[:, 0], theirs.greedy)
    np.testing.assert_allclose(ours.theta[0], theirs.theta, atol=1e-9)


def test_late_drawdown_matches_hand_solution() -> None:
    """One update of weight 28 moves the top action from 0 to -28, below the bad action."""
    mdp, theta, weights = constant.late_fall(1000)
    value = run_process(mdp, "ce", theta, weights, 1100).values[:, 0]
    when = int(np.argmin(value[100:])) + 100
    assert 900 < when < 1100
    assert value[when] == pytest.approx(-1.0, abs=1e-3)
    assert value[when + 5 :].min() > 0.89
    # The discounted value 0.9 of the second state is greater than 0.9 (1 - 1/2000) and -1.
    np.testing.assert_allclose(mdp.optimum(), [0.9, 1.0])


def test_chatter_mdp_matches_hand_solution() -> None:
    """The values are 2 / (1 - 0.8) in the first and last state and 1 + 0.8 * 10 in between."""
    mdp, _, _ = constant.chatter()
    np.testing.assert_allclose(mdp.optimum(), [10.0, 9.0, 10.0])
    ahead = np.array([10.0, 9.0, 10.0, 0.0])[mdp.successors]  # index -1 is the end
    expected = [[1.0, 10.0, 2.0], [1 + 7.2, 1 + 8.0, 7.2], [2 + 8.0, 2 + 8.0, -1.0]]
    np.testing.assert_allclose(mdp.rewards + 0.8 * ahead, expected)
    assert constant.constants(mdp).gap == pytest.approx(0.0, abs=1e-12)
    assert constant.constants(constant.chatter(0.01)[0]).gap > 0.0


def test_excess_bound_has_the_order_of_the_largest_excess_entropy() -> None:
    """The largest excess entropy at w = 16 is (n - 1) e^(-16), and the bound is 2 % larger."""
    bound = ce.excess_bound(16.0, 3, ce.rare_mass(16.0, 3))
    top = max(top for _, w, top in checks._largest_excess_entropies(3) if abs(w - 16) < 0.01)
    assert top == pytest.approx(2 * math.exp(-16), rel=1e-3)
    assert top < bound < 1.04 * top
    assert 2 * math.exp(-16 / 2) > 2800 * bound


def test_largest_excess_entropies_agree_with_a_fine_grid() -> None:
    p = np.logspace(-8, math.log10(0.5), 20_001)[:, np.newaxis]
    w = np.linspace(0.1, 18.0, 180)
    entropy = -p * np.log(p) - (1 - p) * np.log1p(-p)
    excess = (entropy - w * p * (1 - p)).max(axis=0)
    rare = np.minimum(0.5, np.exp(1 - w / 2))
    slacks_of_w = np.exp(-w * (1 - rare)) / excess - 1.0
    slacks = [
        (ce.excess_bound(weight, 2, min(0.5, ce.rare_mass(weight, 2))) / top - 1.0, weight)
        for _, weight, top in checks._largest_excess_entropies(2)
    ]
    least, where = min(slacks)
    assert where == pytest.approx(w[slacks_of_w.argmin()])
    assert least == pytest.approx(slacks_of_w.min(), abs=1e-3)


def worst(recorder: Recorder) -> dict[str, Comparison]:
    """Return the worst comparison of each quantity."""
    return {tally.quantity: tally.worst[0] for tally in recorder.tallies.values()}


def test_proof_steps_of_a_run_match_hand_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The distances of one state's value to the optimum are 1, 1/2, 1/4, 1/16 and 1/64."""
    run = run_at_optimum(
        known=SimpleNamespace(
            q_range=2.0, discount=0.5, gap=0.4, tolerance=0.3, window=0, policy=np.array([0])
        ),
        values=1 - 2 * np.array([[1, 1 / 2, 1 / 4, 1 / 16, 1 / 64]]).T,
        log_loss=-np.log([[1 / 2, 3 / 4, 7 / 8, 3 / 4]]).T,
        greedy=np.array([[1, 1, 0, 0]]).T,
    )
    monkeypatch.setattr(checks, "_constant_runs", lambda: [run])
    compare = Recorder()
    checks.failures_cost_excess_entropy.function(compare, allowance=0.1)
    slacks = {quantity: comparison.slack for quantity, comparison in worst(compare).items()}
    # The bound is 1/2 of the last distance plus 1/5 of 1/2, 1/4, 1/8 and 1/4 (one per step).
    assert slacks["distance after a step"] == pytest.approx(0.05, abs=1e-8)
    wrong, good = "if a greedy action is not optimal", "after J + 1 good steps"
    assert slacks[f"discounted distance {wrong}"] == pytest.approx(1 / 4 - 0.2)
    assert slacks[f"discounted distance {good}"] == pytest.approx(0.2 - 1 / 8)


def run_at_optimum(log_loss: np.ndarray, **fields: Any) -> checks._ConstantRun:
    """Return a run at the optimum with some fields replaced."""
    steps, states = log_loss.shape
    usual = {
        "where": {"MDP": 0},
        "known": SimpleNamespace(
            q_range=1.0, discount=0.5, gap=1.0, tolerance=0.0, window=9, policy=(0,) * states
        ),
        "best": np.ones(states),
        "budget": np.ones(states),
        "values": np.ones((steps + 1, states)),
        "greedy": np.zeros((steps, states)),
        "excess": np.zeros((steps, states)),
    }
    return checks._ConstantRun(log_loss=log_loss, **{**usual, **fields})


def test_after_good_steps_matches_hand_solution() -> None:
    good = np.array([True, False, True, True, False, True])
    assert checks._after_good_steps(good, 2).tolist() == [False] * 4 + [True] * 2
    assert checks._after_good_steps(good, 1).tolist() == [False] + [True] * 5


@pytest.mark.parametrize(("budget", "slack"), [((2.0, 6.0), 4.0), ((0.5, 1.5), 1.5)])
def test_balance_of_a_run_matches_hand_solution(
    budget: tuple[float, float], slack: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The two states have excess entropies 4 and 6, log losses 2 and 6, and the given budgets."""
    run = run_at_optimum(
        log_loss=np.array([[1.0, 1.0], [1.0, 5.0]]),
        excess=np.array([[1.0, 2.0], [3.0, 4.0]]),
        budget=np.array(budget),
    )
    monkeypatch.setattr(checks, "_constant_runs", lambda: [run])
    compare = Recorder()
    checks.failures_cost_excess_entropy.function(compare)
    comparison = worst(compare)["what is owed beyond the excess entropy"]
    assert comparison.slack == slack
    assert comparison.instance == {"part": "the balance", "MDP": 0}


FALLS = {
    "in time": ({10: -0.9}, True),
    "just late enough": ({6: -0.9}, True),
    "just early enough": ({14: -0.9}, True),
    "too early": ({5: -0.9}, False),
    "too late": ({15: -0.9}, False),
    "for good": (dict.fromkeys(range(10, 20), -0.9), False),
    "twice": ({8: -0.9, 10: -0.9}, False),
    "twice, once by less": ({8: -0.7, 10: -0.9}, True),
    "for two steps": ({9: -0.9, 10: -0.9}, True),
    "by less": ({10: -0.7}, False),
    "once more, after twice the time": ({10: -0.9, 20: -0.9}, True),
}


@pytest.mark.parametrize(("values", "late"), FALLS.values(), ids=FALLS)
def test_late_drawdown_check_accepts_only_late_large_recovered_drawdowns(
    values: dict[int, float], late: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The value is 1 except at the given times, and twenty steps are evaluated."""
    path = np.ones((30, 1))
    for t, value in values.items():
        path[t] = value
    mdp = DeterministicMDP(np.array([[1.0, -1.0]]), np.array([[-1, -1]]), np.array([2]), 0.5)
    monkeypatch.setattr(constant, "late_fall", lambda _: (mdp, None, None))
    monkeypatch.setattr(
        checks, "run_process", lambda *arguments: SimpleNamespace(values=path[: arguments[-1]])
    )
    finding = replace(checks.a_value_may_fall_late, arguments={"horizons": (10,)}).run()
    assert (finding.status == "holds") is late
    if late:
        assert finding.tallies[0].worst[0].slack == pytest.approx(0.05)
