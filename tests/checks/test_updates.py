"""Test gradients, limits and paths of the updates against hand solutions."""

import numpy as np
import pytest

from pu_lib.chapters.updates import checks
from pu_lib.chapters.updates import quantities as up
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import follow
from pu_lib.updates import UPDATES, escort, make_update, softmax


def test_policies_match_the_library():
    f = np.random.default_rng(0).normal(size=(20, 4))
    np.testing.assert_allclose(up.softmax_of(f), softmax(f), rtol=1e-14)
    for p in (1.0, 2.0, 3.0):
        np.testing.assert_allclose(up.escort_of(f, p), escort(f, p), rtol=1e-13)


def test_softmax_gradient_of_two_uniform_actions_matches_hand_solution():
    expected = [[0.25, -0.25], [-0.25, 0.25]]
    np.testing.assert_allclose(up.softmax_gradient(np.zeros(2), np.eye(2)), expected)


def test_escort_gradient_agrees_with_the_quotient_rule():
    # The gradient of pi_1 = x^2 / (x^2 + y^2) at (3, -1) is (2 x y^2, -2 y x^2) / 100.
    gradient = up.escort_gradient(np.array([3.0, -1.0]), np.eye(2), p=2.0)
    np.testing.assert_allclose(gradient[:, 0], [0.06, 0.18])
    np.testing.assert_allclose(gradient.sum(axis=1), 0, atol=1e-16)
    printed = up.escort_gradient(np.array([3.0, -1.0]), np.eye(2), p=2.0, signed=False)
    np.testing.assert_allclose(printed[:, 0], [0.06, -0.18])


def test_complex_step_differentiates_a_product():
    jacobian = up.complex_step(lambda x: x[..., :1] * x[..., 1:], np.array([3.0, 5.0]))
    np.testing.assert_allclose(jacobian, [[5.0], [3.0]])


def test_middle_line_of_two_uniform_actions_matches_hand_solution():
    theta, q = np.zeros(2), np.array([1.0, 0.0])
    np.testing.assert_allclose(up.middle_line(theta, q), [0.0, -0.5])
    np.testing.assert_allclose(up.softmax_step(theta, q), [0.25, -0.25])


def test_escort_step_matches_hand_solution():
    # pi = (0.9, 0.1) and v = 0.9, so the step is 2/sqrt(10) (sqrt(0.9) 0.1, -sqrt(0.1) (-0.9)).
    step = up.escort_step(np.array([3.0, -1.0]), np.array([1.0, 0.0]), p=2.0)
    np.testing.assert_allclose(step, [0.06, 0.18])


def test_normalised_occupancy_scales_the_gradient_by_one_minus_gamma():
    finding = checks.policy_gradient_theorem_holds.run("d is a distribution, of sum one")
    assert finding.margin == pytest.approx(-0.9, abs=1e-5)


def test_doubled_escort_gradient_has_relative_error_of_its_size(monkeypatch):
    def twice(*args):
        return 2 * up.escort_gradient(*args)

    monkeypatch.setattr(checks, "escort_gradient", twice)
    rng = np.random.default_rng(2)
    p = float(rng.choice(checks.EXPONENTS))
    network, theta = up.Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
    size = np.abs(up.escort_gradient(network.scores(theta), network.gradient(theta), p)).max()
    first = checks.escort_gradient_needs_signs.run(stop_at_failure=True)
    assert first.margin == pytest.approx(-size / (1 + size), rel=1e-9)


def test_greedy_update_changes_only_one_parameter():
    np.testing.assert_allclose(up.GreedyAlone().step([0.0, 0.0], [0.0, 1.0], 1.0), [0.0, 0.5])


def test_direct_greedy_weight_matches_hand_solution():
    # The second action needs the weight (1 - 0.2 + 0.5) / (1 - 0.5) = 2.6, and the third 1.1 / 1.
    pi, q = np.array([0.2, 0.5, 0.3]), np.array([1.0, 0.5, 0.0])
    assert up.direct_greedy_weight(pi, q) == pytest.approx(2.6)
    np.testing.assert_allclose(UPDATES["di"].step(pi, q, 2.6), [1, 0, 0], atol=1e-15)
    assert UPDATES["di"].step(pi, q, 2.59)[0] < 1


def test_direct_step_below_the_greedy_weight_is_not_greedy(monkeypatch):
    """A weight w moves a probability of w/2 between two uniform actions, so w must be 1."""
    arms = np.array([[0.5, 0.5]]), np.array([[1.0, 0.0]])
    monkeypatch.setattr(checks, "_states_with_a_gap", lambda *_: arms)
    enough, too_small, *_ = checks.huge_steps_have_these_limits.run().tallies
    assert enough.worst[0].slack == checks.ROUNDING
    assert too_small.worst[0].slack == pytest.approx(0.5e-6 - 1e-13)


def test_states_with_a_gap_depend_on_the_seed():
    pi, q = checks._states_with_a_gap(5, 8)
    ahead = np.sort(q, axis=1)
    assert pi.shape == q.shape == (5, 4)
    assert (ahead[:, -1] - ahead[:, -2]).min() > 0.01
    assert not np.isin(checks._states_with_a_gap(5, 22)[0], pi).any()


def test_odds_change_sums_over_steps():
    """The natural gradient adds w q to the scores, which is 7 q in three steps."""
    pi, q = np.array([[0.1, 0.2, 0.3, 0.4]]), np.array([[5.0, 1.0, 2.0, 4.0]])
    change = checks._odds_change(UPDATES["npg"], pi, q, np.array([1.0, 2.0, 4.0]))
    np.testing.assert_allclose(change, [[0.0, 7.0, 21.0]], atol=1e-12)


def test_remainder_of_the_cross_entropy_step_matches_hand_solution():
    pi, q, w = np.array([0.5, 0.25, 0.25]), np.array([1.0, 0.0, 0.0]), np.array(2.0)
    ce = up.cross_entropy_leftover("ce", pi, q, w)
    mce = up.cross_entropy_leftover("mce", pi, q, w)
    np.testing.assert_allclose(ce, [np.inf, 0.5 * np.exp(-1.5), 0.5 * np.exp(-1.5)])
    np.testing.assert_allclose(mce, [np.inf, 0.5 * np.exp(-1.5), 0.5 * np.exp(-1.5)])
    with pytest.raises(ValueError, match="expected ce or mce"):
        up.cross_entropy_leftover("di", pi, q, w)


def test_large_weight_limits_match_hand_solution():
    pi, q = np.array([0.9, 0.1]), np.array([1.0, 0.0])
    # The limit is proportional to pi^(p-1) |adv|^p with adv = (0.1, -0.9), a swap if p = 2.
    np.testing.assert_allclose(up.large_weight_limit("pg-es", pi, q), [0.1, 0.9])
    cubic = up.large_weight_limit(make_update("pg-es", p=3), pi, q)
    np.testing.assert_allclose(cubic[1] / cubic[0], (0.1 / 0.9) ** 2 * 9**3)
    np.testing.assert_array_equal(up.large_weight_limit("pg-sm", pi, q), [1, 0])
    np.testing.assert_array_equal(up.large_weight_limit("di", pi, q), [1, 0])


def test_large_weight_limit_rejects_unknown_updates():
    pi, q = np.array([0.9, 0.1]), np.array([1.0, 0.0])
    with pytest.raises(ValueError, match="update: unknown"):
        up.large_weight_limit("typo", pi, q)
    with pytest.raises(ValueError, match="no limit is known"):
        up.large_weight_limit(up.GreedyAlone(), pi, q)


def test_truncated_objective_of_constant_rewards_matches_hand_solution():
    mdp = FiniteMDP(np.ones((1, 2, 1)), np.ones((1, 2)), [1.0], 0.5)
    sums, bounds = up.truncated_objective(mdp, np.full((1, 2), 0.5), 3)
    np.testing.assert_allclose(sums, [0, 1, 1.5, 1.75])
    np.testing.assert_allclose(bounds, [2, 1, 0.5, 0.25])
    grown, _ = up.truncated_objective(mdp, np.full((1, 2), 0.5), 3, growth=2.0)
    np.testing.assert_allclose(grown, [0, 1, 2, 3])


def test_halving_times_of_exponential_and_hyperbola_match_hand_solution():
    np.testing.assert_allclose(up.halving_times(0.3 * 2.0 ** (-np.arange(10) / 3)), [3, 3, 3])
    np.testing.assert_allclose(up.halving_times(1 / np.arange(1.0, 10.0)), [1, 2, 4])


def test_last_escort_halving_matches_hand_solution():
    # A small bad parameter is multiplied by 1 - 2 w / N, where N is the squared norm.
    update = make_update("pg-es", p=2.0)
    path = follow(update, [1.0, 0.0], 0.1, 160)
    factor = 1 - 0.2 / np.sum(path[-1] ** 2)
    last = up.halving_times(update.policy(path)[:, 1])[-1]
    assert last == pytest.approx(np.log(2) / (-2 * np.log(factor)), rel=1e-6)


def test_direct_steps_at_a_zero_probability_match_hand_solution():
    update = UPDATES["di"]
    wall, q = np.array([1.0, 0.0]), np.array([1.0, 0.0])
    np.testing.assert_array_equal(update.step(wall, q, 0.4), wall)
    np.testing.assert_allclose(update.step(wall, -q, 0.4), [0.8, 0.2])


def test_halving_times_skip_zeros_and_interpolate():
    np.testing.assert_allclose(up.halving_times(np.array([1.0, 0.5, 0.25, 0.0])), [1.0, 1.0])
    # Times are interpolated linearly in the logarithm.
    np.testing.assert_allclose(
        up.halving_times(np.array([1.0, 1 / 16, 1 / 64])), [0.25] * 4 + [0.5] * 2
    )
