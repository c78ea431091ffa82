"""Test the bounds, floors and runs of Theorem 1 and its lemmas against hand solutions."""

from functools import partial
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.convergence import checks
from pu_lib.chapters.convergence import quantities as cv
from pu_lib.claims.recorder import Check, Comparison, Recorder
from pu_lib.domains import bandit, chain
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES


def worst(check: Check, **arguments: Any) -> dict[str, list[Comparison]]:
    """Return the worst comparisons of a check for each quantity, worst first."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    comparisons: dict[str, list[Comparison]] = {}
    for tally in recorder.tallies.values():
        comparisons.setdefault(tally.quantity, []).extend(tally.worst)
    return comparisons


def test_key_lemma_bound_matches_hand_solution() -> None:
    # c = 3/2 for three actions, so the bound is 1/(1/0.5 + 0.75 min(1, 0.4) 10) = 1/(2 + 3).
    assert cv.key_lemma_bound(0.5, 0.4, 3, 10.0) == pytest.approx(0.2)
    assert cv.key_lemma_bound(0.5, 7.0, 2, 3.0) == pytest.approx(1 / 5)


def test_necessity_bound_is_nearly_reached_by_one_large_step() -> None:
    assert cv.necessity_floor(0.25, 3, 2.0) == pytest.approx(0.25 * np.exp(-3.0))
    # One large step from a tiny greedy probability nearly attains the exponent of the floor.
    pi = cv.adversarial_run([1.0, 0.0], "first", [300.0], np.array([-10.0, 10.0]))
    assert np.log(pi[1, 1]) == pytest.approx(20 - 2 * 300.0, rel=1e-6)


def test_two_steps_of_mce_match_hand_solution() -> None:
    """A step of weight w multiplies the odds of the first arm by e^(2u), where u = w (1 - pi)."""
    loop = cv.looping_bandit()
    path = run(loop, UPDATES["mce"], 2, weighting=cv.fixed_weights([[1.0], [1.0]]))
    first = 1 / (1 + np.e)
    second = 1 / (1 + np.e ** (1 + 2 * first))
    np.testing.assert_allclose(path.policies[1:, 0, 1], [first, second])
    # v* = 2, and v is lower by the second arm's probability times 1 / (1 - 1/2)
    np.testing.assert_allclose(2 - path.v[1:, 0], [2 * first, 2 * second])
    np.testing.assert_allclose(path.weights, [[1.0], [1.0]])


def test_margin_matches_the_gap_left_by_a_state_without_weight() -> None:
    """The policy stays uniform in the state without weight and becomes optimal elsewhere."""
    variant = "no weight at a contested state"
    finding = checks.uncontested_states_need_no_weight.run(variant, stop_at_failure=True)
    mdp = cv.uncontested_start()
    facts = cv.structure(mdp)
    best = np.where(facts.optimal, 1.0, 0.0) / facts.optimal.sum(axis=1, keepdims=True)
    limit = best.copy()
    limit[np.flatnonzero(facts.contested)[0]] = 1 / mdp.n_actions
    first = (facts.v - mdp.evaluate(np.full(best.shape, 1 / mdp.n_actions)).v).max()
    left = (facts.v - mdp.evaluate(limit).v).max()
    assert finding.margin == pytest.approx(0.01 - left / first, abs=5e-3)
    assert finding.status == "false as stated"


def test_finite_weights_leave_a_q_gap_only_at_recurrent_states() -> None:
    gaps = worst(checks.finite_sums_leave_a_gap, everywhere=True)["gap of q at the end"]
    again = {c.instance["sum"]: c.value for c in gaps if c.instance["case"] == "entered again"}
    assert [c.value < 1e-9 for c in gaps if c.instance["case"] in checks.NOT_REENTERED] == [
        True
    ] * 2
    # The gap decreases with the sum of the weights.
    assert again[0.5] > again[2.0] > again[8.0] > 1e-9
    # The state values do not become optimal in the other two MDPs either.
    for mdp in checks.NOT_REENTERED.values():
        weights = np.full((100, mdp.n_states), 30.0)
        weights[:, 0] = 0.5 ** np.arange(100)
        path = run(mdp, UPDATES["mce"], 100, weighting=cv.fixed_weights(weights))
        assert (cv.structure(mdp).v - path.v[-1]).max() > 0.1


def test_structure_of_the_chain_with_a_tie_matches_hand_solution() -> None:
    facts = cv.structure(chain(5, discount=0.9, last_state_tie=True))
    assert facts.contested.tolist() == [True, True, True, False, False]
    assert facts.entered.tolist() == [False, True, True, True, False]


def test_added_contested_start_is_not_entered() -> None:
    """Both states pay 1 or 0 and lead to the second state, which has the value 2."""
    facts = cv.structure(cv.with_contested_start(cv.looping_bandit()))
    assert facts.contested.tolist() == [True, True]
    assert facts.entered.tolist() == [False, True]
    np.testing.assert_allclose(facts.q, [[2.0, 1.0], [2.0, 1.0]])


def test_necessity_check_refuses_an_idle_case_that_leaves_a_gap() -> None:
    """Weights of sum 2 leave the second arm a probability of at least e^-4 / 2."""
    check = checks.finite_sums_leave_a_gap
    comparisons = worst(check, idle={"loop": cv.looping_bandit()})
    (idle,) = comparisons["gap of q at the end where the state is not entered again"]
    assert idle.slack < 1e-3 - np.exp(-4.0) / 2


def test_states_after_an_uncontested_initial_state_are_contested() -> None:
    facts = cv.structure(cv.uncontested_start())
    assert not facts.contested[0]
    assert facts.contested[1:-1].all()


@pytest.mark.parametrize("name", list(cv.ADVERSARIES))
def test_adversaries_choose_only_tied_best_actions(name: str) -> None:
    pi = cv.adversarial_run([1.0, 1.0, 0.0], name, np.ones(50))
    assert (np.diff(pi[:, 2]) < 0).all()
    np.testing.assert_allclose(pi.sum(axis=1), 1.0)


def test_most_likely_adversary_gives_the_other_arms_equal_probabilities() -> None:
    pi = cv.adversarial_run([1.0, 1.0, 0.0], "most likely", np.ones(200))
    np.testing.assert_allclose(pi[:, 1], pi[:, 2])
    turns = cv.adversarial_run([1.0, 1.0, 0.0], "in turn", np.ones(200))
    assert turns[-1, 2] < 1e-12


def test_run_with_decaying_weights_matches_hand_solution() -> None:
    mass, bound, floor = cv.fading_run(1.0, 3, 1)
    # Three of the four actions are best: beta = 1/4, e0 = 1, c = 4/3, W = 1.
    assert bound[1] == pytest.approx(1 / (4 + 2 / 3))
    assert floor[1] == pytest.approx(0.25 * np.exp(-4 / 3))
    assert mass[1] == pytest.approx(1 / (3 + np.exp(4 / 3 * 0.75)))


def test_optimality_bounds_reject_unsettled_runs() -> None:
    mdp = chain(5, discount=0.9)
    trajectory = run(mdp, UPDATES["mce"], 0)
    with pytest.raises(ValueError, match="greedy actions have not settled"):
        cv.optimality_bounds(mdp, trajectory, cv.structure(mdp))


def test_optimality_bounds_of_two_arms_match_hand_solution() -> None:
    mdp = bandit([1.0, 0.0])
    facts, trajectory = cv.structure(mdp), run(mdp, UPDATES["mce"], 1, weighting="uniform")
    start, gap, now, ahead = cv.optimality_bounds(mdp, trajectory, facts)
    assert start == 0
    np.testing.assert_allclose(gap, [0.5, 1 / (1 + np.e)])
    np.testing.assert_allclose(now, gap)
    np.testing.assert_allclose(ahead, [0.5, 1 / 3])


def test_lemma_8_bounds_are_empty_if_all_actions_tie() -> None:
    trajectory = run(bandit([1.0, 1.0]), UPDATES["mce"], 3, weighting="uniform")
    lines = cv.lemma_8_lines(
        trajectory.policies[:, 0], trajectory.q[:, 0], trajectory.weights[:, 0], trajectory.q[-1, 0]
    )
    assert lines == {}


def test_lemma_8_bounds_match_hand_solution() -> None:
    """MCE makes one step of weight 1 from the uniform policy on two arms with rewards 1 and 0."""
    mdp = bandit([1.0, 0.0])
    path = run(mdp, UPDATES["mce"], 1, weighting="uniform")
    lines = cv.lemma_8_lines(path.policies[:, 0], path.q[:, 0], path.weights[:, 0], path.q[-1, 0])
    new = np.e / (1 + np.e)  # c u = 2 * 1/2
    assert lines["insert the gap"] == pytest.approx((new - 0.5) / 2)
    assert lines["pi(t+1) to pi(t)"] == pytest.approx(0.25 * (new - 0.5) * (1 - np.exp(-1)))
    halved = 0.25 * 0.5 * 0.5 * 1.0
    assert lines["1 - exp(-x) >= min(x, 1)/2"] == pytest.approx(0.125 * (1 - np.exp(-1)) - halved)


def test_tied_limit_mdp_has_an_exact_tie() -> None:
    mdp = cv.tied_limit_mdp()
    path = run(mdp, UPDATES["mce"], 20, weighting=np.array([1.0, 0.0, 0.0]))
    assert path.q[-1, 0].tolist() == [0.25, 0.25]
    assert cv.structure(mdp).optimal.sum(axis=1).tolist()[:2] == [1, 1]


def test_suboptimal_mass_is_proportional_to_the_inverse_sum_of_weights() -> None:
    """The suboptimal mass of four arms, one of them best, tends to 3/4 of 1/W."""
    mass, _, _ = cv.fading_run(0.5, 1, 3000)
    spent = float(np.sum(np.arange(1, 3001) ** -0.5))
    assert mass[-1] * spent == pytest.approx(0.75, rel=0.1)


@pytest.mark.parametrize(
    "judge", [checks.uncontested_states_need_no_weight, checks.infinite_sums_suffice]
)
@pytest.mark.parametrize("least", ["gap", "bound"])
def test_checks_fail_at_the_smallest_ratio(
    least: str, judge: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of the three ratios to the gap is 1/2, and the others are far above 1."""
    gap = np.array([1.0, 0.5, 0.25])
    low, high = gap * [4.0, 0.5, 9.0], gap * 9.0
    now, ahead = (low, high) if least == "gap" else (high, low * 9.0)
    monkeypatch.setattr(checks, "instances", lambda: {"arms": bandit([1.0, 0.0])})
    monkeypatch.setattr(checks, "optimality_bounds", lambda *_: (0, gap, now, ahead))
    finding = judge.run()
    # 1/2 - 1, or (9 x 1/4) / (9 x 1/2) - 1
    assert finding.margin == pytest.approx(0.5 - 1.0)
    assert finding.status == "false as stated"


def test_lemma_8_bounds_apply_if_values_are_within_half_the_gap() -> None:
    """The best action's value may differ from its limit by exactly half the gap."""
    pi = np.array([[0.5, 0.5], [0.6, 0.4]])
    q = np.array([[0.5, 0.0], [1.0, 0.0]])
    lines = cv.lemma_8_lines(pi, q, np.array([1.0]), np.array([1.0, 0.0]))
    assert {len(line) for line in lines.values()} == {1}


@pytest.mark.parametrize("apart", [1.0, 2.0])
def test_gap_of_softmax_under_finite_weights_matches_loop(
    apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PG-SM on two arms whose values differ by R increases the log-odds by 2 w R pi (1 - pi).

    The remaining gap is gamma times the loss of value caused by the second arm's probability.
    """
    monkeypatch.setattr(checks, "looping_bandit", partial(cv.looping_bandit, gap=apart))
    gaps = worst(checks.others_need_infinite_sums)["gap of q at the end"]
    by_update = {each.instance["update"]: each for each in gaps}
    log_odds = 0.0
    for k in range(1, 61):
        pi = 1 / (1 + np.exp(-log_odds))
        log_odds += 2 * 2 * 0.5**k * apart * pi * (1 - pi)
    left = 0.5 * 2 * apart / (1 + np.exp(log_odds))
    # the proved floor pi_0 e^(-2MR) with M = 2, times gamma R
    floor = 0.5 * 0.5 * np.exp(-4.0 * apart) * apart
    assert by_update["pg-sm"].slack == pytest.approx(left - floor)
    # DI moves a probability of 0.45 if the gap is 0.45, so the check knows the remaining gap.
    assert by_update["di"].slack == pytest.approx(1e-9, abs=1e-12)


def test_tolerance_scales_with_the_largest_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The values are -2 and -4 in one state with rewards -1 and -3 and gamma = 1/2."""
    loss = FiniteMDP(np.ones((1, 2, 1)), [[-1.0, -3.0]], [1.0], 0.5)
    monkeypatch.setattr(checks, "instances", lambda: {"losses": loss})
    monkeypatch.setattr(checks, "ROUNDING", 1e-3)
    allowing = worst(checks.values_converge)
    monkeypatch.setattr(checks, "ROUNDING", 0.0)
    strict = worst(checks.values_converge)
    assert len(strict) == 3  # changes of q and v, and the gap to the optimum
    for quantity, (comparison,) in strict.items():
        assert allowing[quantity][0].slack - comparison.slack == pytest.approx(1e-3 * 4 / 0.5)


def test_zero_bound_is_compared_with_the_tolerance(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The tolerance is 4 ROUNDING, half of the gap, since the value is -2 and gamma = 1/2."""
    loss = FiniteMDP(np.ones((1, 2, 1)), [[-1.0, -3.0]], [1.0], 0.5)
    gap, now, ahead = np.array([[8 * checks.ROUNDING], [0.0], [1.0]])
    monkeypatch.setattr(checks, "instances", lambda: {"losses": loss})
    monkeypatch.setattr(checks, "optimality_bounds", lambda *_: (0, gap, now, ahead))
    assert checks.infinite_sums_suffice.run().margin == pytest.approx(0.5 - 1.0)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_lower_bounds_of_two_arms_match_hand_solution(factor: float) -> None:
    """One step of MCE of weight 2 from (3/4, 1/4) multiplies the odds 3 by e^(2 x 2 x 1/4).

    The values of the arms are 2 and 1, and the discount is 1/2. So the value is below the optimum
    by twice the second arm's probability. The floors are the probabilities times e^(-2 x 2).
    """
    theta0, recorder = np.log([[3.0, 1.0]]), Recorder()
    checks.compare_floors(recorder, cv.looping_bandit(), np.array([[2.0]]), theta0, factor)
    left = 1 / (1 + 3 * np.e)
    least = 0.25 * np.exp(-4.0 * factor)
    slacks = [
        np.log(4 * left) + 4.0 * factor + 3 * checks.ROUNDING,
        2 * left - least + 1e-11,
        left - least / 2 + 1e-11,
    ]
    comparisons = [tally.worst[0] for tally in recorder.tallies.values()]
    assert [each.slack for each in comparisons] == pytest.approx(slacks, rel=0, abs=3e-13)
    assert {each.instance["M"] for each in comparisons} == {2.0}


def test_finite_run_of_two_arms_matches_hand_solution() -> None:
    """The gap is the second arm's mass, and the bound is 1 / (2 + the sum of the weights)."""
    root, recorder = 0.5**0.5, Recorder()
    weights, arms = np.array([1.0, root]), bandit([1.0, 0.0])
    checks.compare_finite_run(recorder, "arms", arms, "mce", weights, at={})
    first = 1 / (1 + np.e)
    over_gap, over_masses, end = (tally.worst[0] for tally in recorder.tallies.values())
    assert end.value == pytest.approx(1 / (1 + np.e ** (1 + 2 * root * first)))
    assert end.limit == pytest.approx(1 / (3 + root))
    assert recorder.figures == {"settled (arms)": 0}
    # The bound, the mass and the gap are equal before the first update.
    assert over_gap.slack == pytest.approx(0.0, abs=1e-11)
    assert over_masses.slack == pytest.approx(0.0, abs=1e-11)


def test_structure_is_invariant_to_scale() -> None:
    small = cv.structure(bandit([1e-10, 0.0]))
    assert (small.optimal[0].tolist(), small.contested[0]) == ([True, False], True)
    long = cv.structure(chain(100, discount=0.8))
    assert long.contested.sum() == 99
    assert cv.structure(bandit([1.0, 1.0 - 1e-12])).contested.sum() == 0


def test_settling_time_is_invariant_to_scale() -> None:
    for scale in (1.0, 1e-12):
        mdp = bandit([scale, 0.0])
        path = run(mdp, "mce", 3, step_size=1 / scale)
        assert cv.settling_time(path, cv.structure(mdp)) == 0
