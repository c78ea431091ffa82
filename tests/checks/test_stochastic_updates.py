"""Test exact biases, limits and thresholds of sampled values against known answers."""

import math
from collections.abc import Callable
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from pu_lib.chapters.stochastic_updates import checks
from pu_lib.chapters.stochastic_updates import quantities as st
from pu_lib.claims import Recorder, Tally, errata
from pu_lib.updates import UPDATES, make_update


def compared(check: Callable[..., None], **arguments: object) -> dict[str, Tally]:
    """Return the tallies of a check by quantity, excluding those marked as printed."""
    recorder = Recorder()
    check(recorder, **arguments)
    return {t.quantity: t for t in recorder.tallies.values() if not t.as_printed}


def test_means_of_the_gamble_match_hand_solution():
    np.testing.assert_allclose(st.GAMBLE.mean, [1.0, 1.25])
    np.testing.assert_allclose(st.GAMBLE.greedy, [0.75, 0.25])
    np.testing.assert_allclose(st.gamble(0.7).mean, [1.0, 1.25])


@pytest.mark.parametrize("m", [[0.5, 0.3, 0.2], [0.9, 0.05, 0.05], [0.7, 0.3], [0.6, 0.38, 0.02]])
def test_mce_limit_minimises_its_potential(m):
    law, limit = np.array(m), st.mce_limit(m)
    assert limit.sum() == pytest.approx(1.0)
    others = np.random.default_rng(0).dirichlet(np.ones(len(m)), 5000)
    potential = np.sum(law * (1 - others) ** 2, axis=1)
    assert np.sum(law * (1 - limit) ** 2) <= potential.min() + 1e-12


def test_mean_step_vanishes_at_the_limits():
    m = st.THREE.greedy
    step = st.mean_step(UPDATES["ce"], st.ce_limit(m), st.THREE)
    np.testing.assert_allclose(step, 0.0, atol=1e-15)
    step = st.mean_step(UPDATES["mce"], st.mce_limit(m), st.THREE)
    np.testing.assert_allclose(step, 0.0, atol=1e-15)


def test_trapping_probability_is_exact():
    assert st.stuck_probability(("1/2", 1), lambda t: Fraction(1, t + 1)) == (Fraction(1, 2), 1)
    assert st.stuck_probability((0, 1), lambda t: Fraction(1, t + 1))[0] == 0


COIN = st.Law.of((0.5, (0.0, 2.0)), (0.5, (1.0, 0.0)))
"""xi = 2 or -1 with equal chances, mean 1/2."""


def test_escort_threshold_matches_hand_solution():
    # The solution of log(1 + 2k) + log(1 - k) = 0 is k = 1/2, and k max(xi) is also 1.
    assert st.escort_threshold(COIN) == pytest.approx(0.5)
    # The threshold of the gamble solves 3 log(1 - k) + log(1 + 4k) = 0, a cubic equation in k.
    k = st.escort_threshold(st.GAMBLE)
    assert (1 - k) ** 3 * (1 + 4 * k) == pytest.approx(1, abs=1e-12)
    assert st.escort_threshold(st.GAMBLE, radius=2.0) == pytest.approx(2 * k)
    # If the gap is never negative, k is limited because no step may reach zero.
    sure = st.Law.of((0.5, (0.0, 1.0)), (0.5, (0.0, 4.0)))
    assert st.escort_threshold(sure) == pytest.approx(0.25)
    # The simple bound of the theorem, Delta r0^2 / (4 B^2), is smaller.
    assert k > 0.25 * 2 / (4 * 16)
    with pytest.raises(ValueError, match="second one better"):
        st.escort_threshold(st.THREE)


def test_escort_growth_agrees_with_the_update():
    update, weight = UPDATES["pg-es"], 0.05
    theta = np.array([0.8, 1.1])
    k, second = 2 * weight / (theta @ theta), update.policy(theta)[1]
    after = update.step(theta[np.newaxis], st.GAMBLE.outcomes, weight)
    change = np.log(np.abs(after[:, 1] / after[:, 0])) - np.log(theta[1] / theta[0])
    expected = st.GAMBLE.probabilities @ change
    assert st.escort_growth(st.GAMBLE, k, second) == pytest.approx(expected, rel=1e-12)


def test_drift_matches_hand_solution():
    # CE moves from 1/2 to sigma(w) with probability 1/4 and to sigma(-w) with probability 3/4.
    up = 1 / (1 + np.exp(-0.4))
    expected = 0.25 * up + 0.75 * (1 - up) - 0.5
    assert st.drift(UPDATES["ce"], st.GAMBLE, 0.4, [0.5])[0] == pytest.approx(expected)
    zero = st.drift_zero(UPDATES["ce"], st.GAMBLE, 0.4)
    assert st.drift(UPDATES["ce"], st.GAMBLE, 0.4, [zero])[0] == pytest.approx(0, abs=1e-12)


def test_drift_zeros_of_the_gamble_match_known_values():
    law = st.gamble(1.0)
    np.testing.assert_allclose(st.mean_step(UPDATES["ce"], [0.75, 0.25], law), 0, atol=1e-15)
    zeros = [st.drift_zero(UPDATES["ce"], law, eta) for eta in (0.1, 0.5, 2.0)]
    np.testing.assert_allclose(zeros, [0.259, 0.286, 0.305], atol=5e-4)


def test_erratum_quotes_the_computed_bias():
    (row,) = (row for row in errata() if row.right == "within one step of the frontier")
    size = st.bias(UPDATES["di"], [0.05, 0.05, 0.9], st.THREE, 0.2)
    assert f"{size[np.argmax(np.abs(size))]:.3f}" in row.why


def test_checks_accept_update_objects():
    updates = [make_update("pg-es", p=3.0)]
    tallies = compared(checks.policy_gradients_are_symmetric.function, updates=updates)
    assert tallies["sum of the two steps"].failures == 0
    tallies = compared(checks.greedy_updates_ignore_gaps.function, updates=[UPDATES["ce"]])
    assert tallies["distance of the two steps"].worst[0].slack == 0


def test_trapping_probability_in_the_check_matches_hand_solution():
    # DI is stuck at the first action with probability 1/2, even if this is the better action.
    stuck = "probability to be stuck at the worse action"
    for rewards, probability in ((("1/2", 1), Fraction(1, 2)), ((1, "1/2"), 0)):
        tally = compared(checks.sampled_actions_may_trap_di.function, rewards=rewards)[stuck]
        assert (tally.worst[0].value, tally.worst[0].limit) == (probability, Fraction(1, 2))
    # The steps of CE for q and -q cancel at the uniform policy over two actions.
    assert checks.greedy_updates_are_asymmetric.run().margin == -1e-9


def test_ce_mean_step_is_zero_for_sampled_actions():
    pi, rewards = [0.2, 0.5, 0.3], [1, 2, 3]
    law = st.action_sample_law(pi, rewards)
    np.testing.assert_allclose(law.mean, rewards)
    np.testing.assert_allclose(st.mean_step(UPDATES["ce"], pi, law), 0.0, atol=1e-15)


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="expected a law"):
        st.Law.of((0.5, (1.0, 0.0)), (0.6, (0.0, 1.0)))
    with pytest.raises(ValueError, match="never sampled"):
        st.action_sample_law([0.0, 1.0], [1, 1])


def test_di_recovers_in_one_step_instead_of_four():
    # DI recovers from n = 10 in one step of weight 1, or in four steps of weights from 1/sqrt(11).
    (tally,) = compared(checks.constant_weights_recover_sooner.function).values()
    assert tally.worst[0].instance == {"update": "di", "eta": "1", "n": 10}
    assert tally.worst[0].note == {"constant": 1, "decaying": 4}


def test_asymmetry_check_uses_absolute_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every step subtracts 1 from each parameter, so the steps for q and -q sum to -2."""

    class Down(type(UPDATES["ce"])):
        def step(self, theta, q, weight=1.0, rng=None):
            return np.asarray(theta) - 1.0

    recorder = Recorder()
    checks.greedy_updates_are_asymmetric.function(recorder, (Down(),))
    for tally in recorder.tallies.values():
        assert tally.failures == 0
        assert tally.worst[0].slack == pytest.approx(2.0 - 1e-9)


def test_laws_include_both_signs_of_the_more_likely_gap() -> None:
    for law, mostly in zip(checks.LAWS, (False, True, True), strict=True):
        first, second = law.outcomes.T
        assert law.mean[1] > law.mean[0]
        looks_better, looks_worse = (
            law.probabilities @ which for which in (second > first, second < first)
        )
        assert looks_better + looks_worse == pytest.approx(1.0)
        assert (looks_better > 0.5) == mostly
        assert looks_worse > 0


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12, 1e16])
def test_escort_threshold_scales_with_the_values(scale: float) -> None:
    law = st.Law(st.GAMBLE.outcomes * scale, st.GAMBLE.probabilities)
    assert st.escort_threshold(law) * scale == pytest.approx(st.escort_threshold(st.GAMBLE))


@pytest.mark.parametrize("e", [1e-8, 1e-10, 1e-11, 1e-12, 1e-13])
def test_escort_threshold_of_a_small_gap_matches_hand_solution(e: float) -> None:
    # If the gap is 1 or -1 + e, (1 + k)(1 - k + k e) = 1 means e = k (1 - e), where e is rounded.
    law = st.Law.of((0.5, (0.0, 1.0)), (0.5, (0.0, -1.0 + e)))
    held = 1.0 + (-1.0 + e)
    assert st.escort_threshold(law) == pytest.approx(held / (1 - held), rel=1e-15 / e)


def test_escort_threshold_of_a_near_tie_is_accurate() -> None:
    # If the gap is 1 + e or -1, (1 + k + k e)(1 - k) = 1 means e = k (1 + e).
    e = 1.0 + 1e-12 - 1.0
    law = st.Law.of((0.5, (0.0, 1.0 + 1e-12)), (0.5, (1.0, 0.0)))
    assert st.escort_threshold(law) == pytest.approx(e / (1 + e), rel=1e-9)


def test_law_rejects_nan() -> None:
    with pytest.raises(ValueError, match="probabilities: expected a law"):
        st.Law(np.zeros((2, 2)), np.array([np.nan, 0.5]))


POLICIES = (
    ((Fraction(1, 7), Fraction(6, 7)), {0}),
    ((Fraction(1, 10), Fraction(2, 5), Fraction(1, 2)), {0, 2}),
    ((Fraction(1, 12), Fraction(1, 4), Fraction(1, 6), Fraction(1, 2)), {1, 2}),
)
"""Policies with their correct answers."""


def step_over_all_groups(pi, correct, size, advantages):
    """Return the expected step as an independent sum over all tuples of answers."""
    total = [Fraction(0)] * len(pi)
    for group in product(range(len(pi)), repeat=size):
        chance = math.prod(pi[a] for a in group)
        rewards = [Fraction(a in correct) for a in group]
        for answer, advantage in zip(group, advantages(rewards), strict=True):
            for a, p in enumerate(pi):
                total[a] += chance * advantage * ((a == answer) - p) / size
    return total


def maxrl(rewards):
    mean = sum(rewards) / len(rewards)
    return [(r - mean) / mean if mean else Fraction(0) for r in rewards]


def only_the_correct(rewards):
    n_correct = sum(rewards)
    return [r * len(rewards) / n_correct if n_correct else Fraction(0) for r in rewards]


def leave_one_out(rewards):
    others = len(rewards) - 1
    return [r - (sum(rewards) - r) / others for r in rewards]


@pytest.mark.parametrize(("pi", "correct"), POLICIES, ids=["two", "three", "four"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_expected_steps_of_groups_are_those_of_all_groups(pi, correct, size) -> None:
    p = sum(pi[a] for a in correct)
    direction = [(x / p if a in correct else 0) - x for a, x in enumerate(pi)]
    for advantage, by_hand, closed in (
        ("MaxRL", maxrl, st.maxrl_factor(p, size)),
        ("rejection sampling", only_the_correct, st.rejection_factor(p, size)),
        ("RLOO", leave_one_out, p),
    ):
        expected = step_over_all_groups(pi, correct, size, by_hand)
        assert expected == [closed * x for x in direction]
        assert st.group_factor(advantage, p, size) == closed
    one_less = step_over_all_groups(pi, correct, size - 1, only_the_correct)
    assert step_over_all_groups(pi, correct, size, maxrl) == one_less


def test_factor_of_grpo_matches_hand_solution() -> None:
    # A mixed group of two samples has probability 2p(1 - p) and the advantages 1 and -1.
    assert st.group_factor("GRPO", 0.3, 2) == pytest.approx(0.3)
    # The advantages of a mixed group of three, (sqrt 2, -1/sqrt 2, -1/sqrt 2) or their negatives,
    # add sqrt 2 / 3 to the correct answers.
    mixed = 3 * 0.3 * 0.7
    assert st.group_factor("GRPO", 0.3, 3) == pytest.approx(mixed * 2**0.5 / 3 / 0.7)


def test_step_of_one_group_matches_hand_solution() -> None:
    step = st.group_step([0.5, 0.3, 0.2], [0, 0, 2, 1], [False, False, True], "MaxRL")
    np.testing.assert_allclose(step, [-0.5, -0.25, 0.75])
    step = st.group_step([0.5, 0.3, 0.2], [0, 0, 2, 1], [False, False, True], "rejection sampling")
    np.testing.assert_allclose(step, [-0.5, -0.3, 0.8])


def plain_count(history: list[int], n_answers: int, size: int) -> int:
    """Return the number of updates until the last answer has probability 1/2, by plain loops."""
    theta = [0.0] * n_answers
    for count, answer in enumerate([*history, *[n_answers - 1] * 10_000]):
        weights = [math.exp(x) for x in theta]
        pi = [x / sum(weights) for x in weights]
        if len(history) <= count and pi[-1] >= 0.5 - 1e-12:
            return count - len(history)
        failing = sum(p for a, p in enumerate(pi) if a != answer)
        for a, p in enumerate(pi):
            # (1 - f^G)/p - 1 for the correct answer and -(1 - f^(G - 1)) for the others
            own = (1 - failing**size) / p - 1 if a == answer else failing ** (size - 1) - 1
            theta[a] += p * own
    raise AssertionError("not back")


@pytest.mark.parametrize(("size", "two", "three"), [(8, 149, 140), (64, 21, 21)])
def test_counts_after_1000_updates_are_those_of_plain_loops(size, two, three) -> None:
    assert plain_count([0] * 1000, 2, size) == two
    assert plain_count([0, 1] * 500, 3, size) == three
    maxrl_factor = st.factor("MaxRL", size)
    theta = st.train([0.0, 0.0], [0] * 1000, maxrl_factor)
    assert st.updates_back(theta, 1, maxrl_factor) == two
    theta = st.train([0.0] * 3, [0, 1] * 500, maxrl_factor)
    assert st.updates_back(theta, 2, maxrl_factor) == three


def test_counts_of_three_answers_in_turn_match_known_counts() -> None:
    assert st.period_counts(8, 1000, 5) == [221, 342, 225, 266, 261]
    assert st.period_counts(64, 1000, 5) == [29, 50, 40, 42, 42]


def test_shares_of_three_answers_in_turn_match_hand_solution() -> None:
    # x = y = 3^(1/3), and then x^3/3 + 3^(1/3) x^2/2 = 1/4 for groups of three
    first, second = st.period_shares(3, 2)
    assert first == pytest.approx(0.75)
    (x,) = [
        z.real
        for z in np.roots([1 / 3, 3 ** (1 / 3) / 2, 0, -0.25])
        if abs(z.imag) < 1e-12 and z.real > 0
    ]
    assert second == pytest.approx(x * (3 ** (1 / 3) + x) ** 2 / 4)
    assert st.period_shares(2, 9) == [1.5]
    assert st.period_limit(8) == pytest.approx(12 / 47)


def test_share_of_an_alternation_of_small_steps_is_that_of_the_uniform_policy() -> None:
    assert st.alternation_share(1e-6, 4) == pytest.approx((1 - 1 / 8) / 3, rel=1e-5)
    y = st.alternation_odds(1.0, 64)
    assert y * (1 + math.exp(-y)) == pytest.approx(1.0, rel=1e-9)


def test_updates_back_refuses_an_answer_that_never_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(st, "MOST_STEPS", 10)
    with pytest.raises(ValueError, match="answer 1 does not reach"):
        st.updates_back([9.0, 0.0], 1, st.factor("RLOO", 8))
