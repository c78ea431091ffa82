"""Theorem 1 and its lemmas: bounds, floors and runs against cases solved by hand."""

from functools import partial
from types import SimpleNamespace
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
    """Return the worst comparisons of a check by quantity, the worst first."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    found: dict[str, list[Comparison]] = {}
    for tally in recorder.tallies.values():
        found.setdefault(tally.quantity, []).extend(tally.worst)
    return found


def test_the_key_lemma_s_bound_by_hand() -> None:
    # three actions: c = 3/2, so 1/(1/0.5 + 0.75 min(1, 0.4) 10) = 1/(2 + 3)
    assert cv.key_lemma_bound(0.5, 0.4, 3, 10.0) == pytest.approx(0.2)
    assert cv.key_lemma_bound(0.5, 7.0, 2, 3.0) == pytest.approx(1 / 5)


def test_the_key_lemma_is_tight_for_two_uniform_arms_and_tiny_weights() -> None:
    pi = cv.adversarial_run([1.0, 0.0], "first", [1e-6])
    rise = 1 / pi[1, 1] - 1 / pi[0, 1]
    assert rise == pytest.approx(0.5 * 2 * 1e-6, rel=1e-5)


def test_probabilities_keep_their_floor_and_no_larger_one() -> None:
    assert cv.necessity_floor(0.25, 3, 2.0) == pytest.approx(0.25 * np.exp(-3.0))
    # one step of weight w from a tiny greedy probability comes near the floor's exponent
    pi = cv.adversarial_run([1.0, 0.0], "first", [300.0], np.array([-10.0, 10.0]))
    assert np.log(pi[1, 1]) == pytest.approx(20 - 2 * 300.0, rel=1e-6)


def test_two_arms_under_weights_of_sum_two() -> None:
    """MCE from the uniform policy in two steps of weight 1: odds e^(2u) with u = w (1 - pi)."""
    loop = cv.looping_bandit()
    path = run(loop, UPDATES["mce"], 2, weighting=cv.fixed_weights([[1.0], [1.0]]))
    first = 1 / (1 + np.e)
    second = 1 / (1 + np.e ** (1 + 2 * first))
    np.testing.assert_allclose(path.policies[1:, 0, 1], [first, second])
    # v* = 2; each visit misses the second arm's probability, discounted by 1/2
    np.testing.assert_allclose(2 - path.v[1:, 0], [2 * first, 2 * second])
    np.testing.assert_allclose(path.weights, [[1.0], [1.0]])


@pytest.mark.parametrize(("starve", "idle"), [(False, 1), (True, 2)])
def test_which_states_are_left_without_weight(starve: bool, idle: int) -> None:
    found = checks.uncontested_states_need_no_weight
    finding = found.run("no weight at a contested state" if starve else None)
    assert finding.tallies[0].worst[0].instance["states without weight"] == idle


def test_the_equivalence_is_decided_by_what_is_left_of_the_gap() -> None:
    """The gap that stays is that of the policy which is uniform at the dry state, else optimal."""
    variant = "no weight at a contested state"
    finding = checks.uncontested_states_need_no_weight.run(variant, stop_at_failure=True)
    mdp = cv.uncontested_start()
    facts = cv.structure(mdp)
    best = np.where(facts.optimal, 1.0, 0.0) / facts.optimal.sum(axis=1, keepdims=True)
    stuck = best.copy()
    stuck[np.flatnonzero(facts.contested)[0]] = 1 / mdp.n_actions
    first = (facts.v - mdp.evaluate(np.full(best.shape, 1 / mdp.n_actions)).v).max()
    left = (facts.v - mdp.evaluate(stuck).v).max()
    assert finding.margin == pytest.approx(0.01 - left / first, abs=5e-3)
    assert finding.status == "false as stated"


def test_pieces_of_theorem_1_are_found_in_its_verdict() -> None:
    whole = checks.infinite_sums_are_sufficient_and_necessary.run()
    parts = [
        checks.infinite_sums_suffice,
        checks.optimum_need_not_be_unique,
        checks.floors_hold,
        checks.uncontested_states_need_no_weight,
        checks.finite_sums_leave_a_gap,
    ]
    found = [part.run() for part in parts]
    assert whole.margin == min(finding.margin for finding in found)
    assert whole.instances == sum(finding.instances for finding in found)


def test_a_finite_sum_of_weights_does_harm_only_where_the_state_is_entered_again() -> None:
    gaps = worst(checks.finite_sums_leave_a_gap, everywhere=True)["gap of q at the end"]
    again = {c.instance["sum"]: c.value for c in gaps if c.instance["case"] == "entered again"}
    assert [c.value < 1e-9 for c in gaps if c.instance["case"] in checks.NOT_REENTERED] == [
        True
    ] * 2
    # the more weight, the smaller the gap
    assert again[0.5] > again[2.0] > again[8.0] > 1e-9
    # elsewhere the state values stay short all the same
    for mdp in checks.NOT_REENTERED.values():
        weights = np.full((100, mdp.n_states), 30.0)
        weights[:, 0] = 0.5 ** np.arange(100)
        path = run(mdp, UPDATES["mce"], 100, weighting=cv.fixed_weights(weights))
        assert (cv.structure(mdp).v - path.v[-1]).max() > 0.1


def test_structure_of_the_chain_with_a_tie() -> None:
    facts = cv.structure(chain(5, discount=0.9, last_state_tie=True))
    assert facts.contested.tolist() == [True, True, True, False, False]
    assert facts.entered.tolist() == [False, True, True, True, False]


def test_structure_behind_an_uncontested_start() -> None:
    facts = cv.structure(cv.uncontested_start())
    assert not facts.contested[0]
    assert facts.contested[1:-1].all()


@pytest.mark.parametrize("name", list(cv.ADVERSARIES))
def test_adversaries_choose_tied_actions(name: str) -> None:
    pi = cv.adversarial_run([1.0, 1.0, 0.0], name, np.ones(50))
    assert (np.diff(pi[:, 2]) < 0).all()
    np.testing.assert_allclose(pi.sum(axis=1), 1.0)


def test_an_adversary_that_names_the_likeliest_starves_the_other() -> None:
    pi = cv.adversarial_run([1.0, 1.0, 0.0], "most likely", np.ones(200))
    np.testing.assert_allclose(pi[:, 1], pi[:, 2])
    turns = cv.adversarial_run([1.0, 1.0, 0.0], "in turn", np.ones(200))
    assert turns[-1, 2] < 1e-12


def test_fading_weights_end_between_floor_and_bound() -> None:
    mass, bound, floor = cv.fading_run(1.0, 3, 1)
    # 4 actions, 3 best: beta = 1/4, e0 = 1, c = 4/3, W = 1
    assert bound[1] == pytest.approx(1 / (4 + 2 / 3))
    assert floor[1] == pytest.approx(0.25 * np.exp(-4 / 3))
    assert mass[1] == pytest.approx(1 / (3 + np.exp(4 / 3 * 0.75)))


def test_an_unsettled_run_is_refused() -> None:
    mdp = chain(5, discount=0.9)
    trajectory = run(mdp, UPDATES["mce"], 0)
    with pytest.raises(ValueError, match="greedy actions have not settled"):
        cv.optimality_bounds(mdp, trajectory, cv.structure(mdp))


def test_a_bandit_settles_at_once_and_its_gap_is_its_mass() -> None:
    mdp = bandit([1.0, 0.0])
    facts, trajectory = cv.structure(mdp), run(mdp, UPDATES["mce"], 1, weighting="uniform")
    start, gap, now, ahead = cv.optimality_bounds(mdp, trajectory, facts)
    assert start == 0
    np.testing.assert_allclose(gap, [0.5, 1 / (1 + np.e)])
    np.testing.assert_allclose(now, gap)
    np.testing.assert_allclose(ahead, [0.5, 1 / 3])


def test_lines_of_the_proof_are_empty_when_all_actions_tie() -> None:
    trajectory = run(bandit([1.0, 1.0]), UPDATES["mce"], 3, weighting="uniform")
    lines = cv.lemma_8_lines(
        trajectory.policies[:, 0], trajectory.q[:, 0], trajectory.weights[:, 0], trajectory.q[-1, 0]
    )
    assert lines == {}


def test_lines_of_the_proof_for_two_arms() -> None:
    """Uniform arms worth 1 and 0, one step of weight 1: all sides by hand."""
    mdp = bandit([1.0, 0.0])
    path = run(mdp, UPDATES["mce"], 1, weighting="uniform")
    lines = cv.lemma_8_lines(path.policies[:, 0], path.q[:, 0], path.weights[:, 0], path.q[-1, 0])
    new = np.e / (1 + np.e)  # c u = 2 x 1/2
    assert lines["insert the gap"] == pytest.approx((new - 0.5) / 2)
    assert lines["pi(t+1) to pi(t)"] == pytest.approx(0.25 * (new - 0.5) * (1 - np.exp(-1)))
    halved = 0.25 * 0.5 * 0.5 * 1.0
    assert lines["1 - exp(-x) >= min(x, 1)/2"] == pytest.approx(0.125 * (1 - np.exp(-1)) - halved)


def test_the_witness_of_the_gap_is_exact() -> None:
    mdp = cv.tied_limit_mdp()
    dry = run(mdp, UPDATES["mce"], 20, weighting=np.array([1.0, 0.0, 0.0]))
    assert dry.q[-1, 0].tolist() == [0.25, 0.25]
    assert cv.structure(mdp).optimal.sum(axis=1).tolist()[:2] == [1, 1]


def test_fading_weights_leave_what_their_sum_says() -> None:
    """Weights (t + 1)^-1/2 add up to about 2 sqrt(t): with four arms, one best, 3/4 of 1/W."""
    mass, _, _ = cv.fading_run(0.5, 1, 3000)
    spent = float(np.sum(np.arange(1, 3001) ** -0.5))
    assert mass[-1] * spent == pytest.approx(0.75, rel=0.1)


@pytest.mark.parametrize(
    "judge", [checks.uncontested_states_need_no_weight, checks.infinite_sums_suffice]
)
@pytest.mark.parametrize("least", ["gap", "room"])
def test_a_bound_is_judged_where_it_is_nearest(
    least: str, judge: Check, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bounds at three times; one is half of the gap, all others are far above it."""
    gap = np.array([1.0, 0.5, 0.25])
    low, high = gap * [4.0, 0.5, 9.0], gap * 9.0
    now, ahead = (low, high) if least == "gap" else (high, low * 9.0)
    monkeypatch.setattr(checks, "instances", lambda: {"arms": bandit([1.0, 0.0])})
    monkeypatch.setattr(checks, "optimality_bounds", lambda *_: (0, gap, now, ahead))
    finding = judge.run()
    # half less one; or 9 x 1/4 over 9 x 1/2, less one
    assert finding.margin == pytest.approx(0.5 - 1.0)
    assert finding.status == "false as stated"


def test_the_lines_start_where_all_values_are_within_half_the_gap() -> None:
    """The best value is away from its limit by exactly half of the gap at first."""
    pi = np.array([[0.5, 0.5], [0.6, 0.4]])
    q = np.array([[0.5, 0.0], [1.0, 0.0]])
    lines = cv.lemma_8_lines(pi, q, np.array([1.0]), np.array([1.0, 0.0]))
    assert {len(line) for line in lines.values()} == {1}


def test_ties_are_tried_among_two_and_three_best_arms(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = []

    def adversarial_run(rewards: list[float], *_: object) -> None:
        tried.append(rewards.count(max(rewards)))

    monkeypatch.setattr(checks, "adversarial_run", adversarial_run)
    monkeypatch.setattr(checks, "compare_key_lemma", lambda *_: None)
    monkeypatch.setattr(checks, "compare_finite_run", lambda *_: None)
    checks.optimum_need_not_be_unique.function(Recorder())
    each = len(cv.ADVERSARIES)
    assert tried == [2] * each + [3] * each + [2] * each


@pytest.mark.parametrize("apart", [1.0, 2.0])
def test_what_pg_sm_leaves_under_weights_of_sum_two(
    apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two arms that are R apart: the log-odds grow by 2 w R pi (1 - pi); the floor is proved.

    What is left of the gap is gamma times the value that the second arm's probability costs.
    """
    monkeypatch.setattr(checks, "looping_bandit", partial(cv.looping_bandit, gap=apart))
    gaps = worst(checks.others_need_infinite_sums)["gap of q at the end"]
    found = {each.instance["update"]: each for each in gaps}
    log_odds = 0.0
    for k in range(1, 61):
        pi = 1 / (1 + np.exp(-log_odds))
        log_odds += 2 * 2 * 0.5**k * apart * pi * (1 - pi)
    left = 0.5 * 2 * apart / (1 + np.exp(log_odds))
    # pi_0 e^(-2MR) with M = 2, and the range R
    floor = 0.5 * 0.5 * np.exp(-4.0 * apart) * apart
    assert found["pg-sm"].slack == pytest.approx(left - floor)
    # DI moves 0.45 from 1/2 where the gap is 0.45: what is worked out there is what is left
    assert found["di"].slack == pytest.approx(1e-9, abs=1e-12)


def test_rounding_is_allowed_in_proportion_to_the_largest_modulus(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One state, rewards -1 and -3, gamma = 1/2: the values are -2 and -4."""
    loss = FiniteMDP(np.ones((1, 2, 1)), [[-1.0, -3.0]], [1.0], 0.5)
    monkeypatch.setattr(checks, "instances", lambda: {"losses": loss})
    monkeypatch.setattr(checks, "ROUNDING", 1e-3)
    allowing = worst(checks.values_converge)
    monkeypatch.setattr(checks, "ROUNDING", 0.0)
    strict = worst(checks.values_converge)
    assert len(strict) == 2
    for quantity, (comparison,) in strict.items():
        assert allowing[quantity][0].slack - comparison.slack == pytest.approx(1e-3 * 4 / 0.5)


def test_a_bound_that_is_zero_is_as_large_as_the_rounding_that_is_allowed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The values are -2 and -4 at gamma = 1/2: four roundings, half of a gap of eight."""
    loss = FiniteMDP(np.ones((1, 2, 1)), [[-1.0, -3.0]], [1.0], 0.5)
    gap, now, ahead = np.array([[8 * checks.ROUNDING], [0.0], [1.0]])
    monkeypatch.setattr(checks, "instances", lambda: {"losses": loss})
    monkeypatch.setattr(checks, "optimality_bounds", lambda *_: (0, gap, now, ahead))
    assert checks.infinite_sums_suffice.run().margin == pytest.approx(0.5 - 1.0)


def test_the_slack_is_measured_under_weights_of_sum_thirty(monkeypatch: pytest.MonkeyPatch) -> None:
    """3 (1 + 0.9 + 0.9^2 + ...) = 30, and what stands for the limit is reached long before."""
    seen = []

    def lines(*given: np.ndarray) -> dict[str, np.ndarray]:
        seen.append(given)
        return {"falls": np.array([9.0, -len(seen)]), "rises": np.array([9.0, len(seen)])}

    monkeypatch.setattr(cv, "lemma_8_lines", lines)
    assert cv.lemma_8_slack() == {"falls": -len(seen), "rises": 1.0}
    for _, q, weights, limit in seen:
        assert weights.sum() == pytest.approx(30.0)
        np.testing.assert_allclose(q[-20:], np.tile(limit, (20, 1)), atol=1e-8)


@pytest.mark.parametrize("factor", [1.0, 0.5])
def test_the_room_above_the_floors_for_two_arms(factor: float) -> None:
    """MCE from (3/4, 1/4) in one step of weight 2: the odds 3 are multiplied by e^(2 x 2 x 1/4).

    The values of the arms are 2 and 1, discounted by 1/2 each visit misses the second arm's
    probability twice; the floors are the probabilities times e^(-2 x 2).
    """
    theta0, recorder = np.log([[3.0, 1.0]]), Recorder()
    checks.compare_floors(recorder, cv.looping_bandit(), np.array([[2.0]]), theta0, factor)
    left = 1 / (1 + 3 * np.e)
    least = 0.25 * np.exp(-4.0 * factor)
    rooms = [
        np.log(4 * left) + 4.0 * factor + 3 * checks.ROUNDING,
        2 * left - least + 1e-11,
        left - least / 2 + 1e-11,
    ]
    found = [tally.worst[0] for tally in recorder.tallies.values()]
    assert [each.slack for each in found] == pytest.approx(rooms, rel=0, abs=3e-13)
    assert {each.instance["M"] for each in found} == {2.0}


def test_the_row_of_two_arms_under_weights_that_fade_like_one_over_a_root() -> None:
    """Weights 1 and 1 / sqrt 2: the gap is the second arm's mass, the bound 1 / (2 + their sum)."""
    root, recorder = 0.5**0.5, Recorder()
    weights, arms = np.array([1.0, root]), bandit([1.0, 0.0])
    checks.compare_finite_run(recorder, "arms", arms, "mce", weights, at={})
    first = 1 / (1 + np.e)
    over_gap, over_masses, end = (tally.worst[0] for tally in recorder.tallies.values())
    assert end.value == pytest.approx(1 / (1 + np.e ** (1 + 2 * root * first)))
    assert end.limit == pytest.approx(1 / (3 + root))
    assert recorder.figures == {"settled (arms)": 0}
    # before the first update the bound is the mass itself, and the mass the gap
    assert over_gap.slack == pytest.approx(0.0, abs=1e-11)
    assert over_masses.slack == pytest.approx(0.0, abs=1e-11)


@pytest.mark.parametrize(("first", "second"), [(0.2, 0.5), (0.5, 0.2)])
def test_other_updates_are_judged_where_several_policies_are_optimal(
    first: float, second: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DI ends 1e-10 short; of PG-SM's gap a half is left on one stretch, on the other a fifth."""
    seen = []

    def path(mdp, update, n_steps, eta, weighting):
        seen.append((update.name, mdp.n_actions, n_steps, eta))
        gap = np.full(n_steps + 1, 2.0)
        gap[251:], gap[1001:] = 2 * first, 2 * first * second
        if update.name == "di":
            gap[-1] = 1e-10
        return SimpleNamespace(v=cv.structure(mdp).v - gap[:, np.newaxis])

    bandits = {"one": bandit([1.0, 0.0]), "two": bandit([1.0, 1.0, 0.0])}
    monkeypatch.setattr(checks, "instances", lambda: bandits)
    monkeypatch.setattr(checks, "run", path)
    found = worst(checks.others_need_no_unique_optimum, decay=0.5)
    (arrived,), (left,) = found["gap at the end"], found["share left after four times as long"]
    assert arrived.instance == {"MDP": "two", "update": "di"}
    assert left.instance == {"MDP": "two", "update": "pg-sm"}
    assert [arrived.slack, left.slack] == pytest.approx([9e-10, 1 / 3 - 0.5], rel=1e-4)
    assert [each[:3] for each in seen] == [("di", 3, 400), ("pg-sm", 3, 4000)]
    for *_, n_steps, eta in seen:
        np.testing.assert_allclose(eta, np.arange(1.0, n_steps + 1) ** -0.5)


def test_masses_are_of_the_order_of_time_or_of_the_sum_of_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A mass that is the sum of the weights to the power -3/2, which for x = 0 is the time's."""

    def fading_run(x: float, best: int, n_steps: int) -> tuple[np.ndarray, None, None]:
        spent = np.cumsum(np.arange(1.0, n_steps + 1) ** -x)
        return np.append(1.0, spent**-1.5), None, None

    monkeypatch.setattr(checks, "fading_run", fading_run)
    given = {"bounded_below": (0.0,), "infinite": (0.25,), "fading": 0.5}
    found = worst(checks.rate_is_the_inverse_sum_of_the_weights, **given)
    times = cv.log_times(1500)
    in_time = cv.exponent(times, fading_run(0.5, 1, 1500)[0][times]).value
    in_t, in_sum = found["exponent in t"], found["exponent in the sum of the weights"]
    # those in t are of the weights 1, and of those of the printed statement
    assert [each.value for each in in_t] == pytest.approx([1.5] * 3 + [in_time] * 3)
    assert [each.value for each in in_sum] == pytest.approx([1.5] * 3)
    assert {each.limit for each in (*in_t, *in_sum)} == {checks.FIRST_ORDER}
    tried = {(each.instance["best arms"], each.instance["x"]) for each in (*in_t, *in_sum)}
    assert tried == {(best, x) for best in (1, 2, 3) for x in (0.0, 0.25, 0.5)}


def test_what_is_optimal_does_not_depend_on_the_size_of_the_values() -> None:
    small = cv.structure(bandit([1e-10, 0.0]))
    assert (small.optimal[0].tolist(), small.contested[0]) == ([True, False], True)
    long = cv.structure(chain(100, discount=0.8))
    assert long.contested.sum() == 99
    assert cv.structure(bandit([1.0, 1.0 - 1e-12])).contested.sum() == 0


def test_a_run_is_settled_whatever_the_size_of_the_values() -> None:
    for scale in (1.0, 1e-12):
        mdp = bandit([scale, 0.0])
        path = run(mdp, "mce", 3, step_size=1 / scale)
        assert cv.settled(path, cv.structure(mdp)) == 0
