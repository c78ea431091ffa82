"""Test exact biases, limits and thresholds of sampled values against known answers."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.chapters.stochastic_updates import checks
from pu_lib.chapters.stochastic_updates import quantities as st
from pu_lib.claims import Recorder, Tally, errata
from pu_lib.updates import UPDATES, make_update


def compared(check: Callable[..., None], **arguments: object) -> dict[str, Tally]:
    """Return the tallies of a check by quantity, without those as printed."""
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
