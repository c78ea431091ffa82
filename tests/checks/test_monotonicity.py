"""Test changes of the value, worst decreases and certified steps against hand solutions."""

import mpmath
import numpy as np
import pytest
from flint import arb, ctx

from pu_lib.chapters.monotonicity import certified, checks
from pu_lib.chapters.monotonicity import quantities as mono
from pu_lib.chapters.monotonicity.approximate import erring_chain
from pu_lib.claims.recorder import Recorder
from pu_lib.domains import bandit, chain
from pu_lib.exact import Undecided, precision
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, as_update, make_update, softmax


@pytest.mark.parametrize("ties", ["first", "random", "leave"])
def test_mce_never_lowers_the_value_for_any_tie_breaking(ties):
    rng = np.random.default_rng(0)
    theta, q = 3 * rng.normal(size=(2000, 4)), rng.integers(0, 3, (2000, 4)).astype(float)
    update = make_update("mce", ties=ties)
    new = softmax(update.step(theta, q, 10 ** rng.uniform(-3, 4, 2000), rng))
    assert mono.step_advantage(softmax(theta), new, q).min() > -1e-14


@pytest.mark.parametrize("name", ["pg-sm", "ce", "mce"])
def test_ball_steps_agree_with_float_steps(name):
    rng = np.random.default_rng(1)
    theta, q = np.round(rng.normal(size=4), 3), np.round(rng.random(4), 3)
    with ctx.workprec(128):
        step = certified.certified_step(name, theta.tolist(), q.tolist(), "1.5")
        balls = [float(p) for p in step.new_pi]
        change = float(step.change)
    new = softmax(UPDATES[name].step(theta, q, 1.5))
    np.testing.assert_allclose(balls, new, rtol=1e-12)
    assert change == pytest.approx((new - softmax(theta)) @ q, abs=1e-14)


def test_certified_step_rejects_direct_update():
    with pytest.raises(ValueError, match="'di'"):
        certified.certified_step("di", [0, 0], [0, 1], 1)


def test_ball_softmax_is_accurate_for_large_parameters():
    """The probabilities are 1/(1 + e) and e/(1 + e) if the parameters differ by 1."""
    with ctx.workprec(53):
        policy = certified.ball_softmax([arb(2**52), arb(2**52 + 1)])
        assert max(float(p.rad()) for p in policy) < 1e-14
        assert [float(p) for p in policy] == pytest.approx([1 / (1 + np.e), np.e / (1 + np.e)])


def test_value_change_of_one_ce_step_matches_hand_solution():
    # A CE step of weight log 3 from (0, 0) leads to theta = (0.5, -0.5) log 3 and (3/4, 1/4).
    change = mono.value_change("ce", np.zeros(2), np.array([1.0, 0.0]), np.log(3.0))
    assert change == pytest.approx(0.25)
    assert mono.step_advantage(*np.array([[0.5, 0.5], [0.75, 0.25], [4.0, 2.0]])) == 0.5


def test_step_advantage_keeps_small_gaps():
    """A probability of 1/4 moves to the best action from an action whose value is 1e-20 lower."""
    q = np.array([0.0, -1e-20, -1.0])
    change = mono.step_advantage(np.array([0.5, 0.5, 0.0]), np.array([0.75, 0.25, 0.0]), q)
    assert change == pytest.approx(0.25e-20, rel=1e-12, abs=0.0)


def test_mass_gained_by_other_actions_matches_hand_solution():
    pi, new, q = np.array([[0.1, 0.6, 0.3], [0.2, 0.45, 0.35], [1.0, 0.0, 0.0]])
    assert mono.mass_gained(pi, new, q) == pytest.approx(0.05)


def test_worst_drops_are_ordered_and_have_known_limits():
    for w in (0.01, 0.3, 1.0, 5.0, 20.0):
        assert 0 < mono.worst_drop_three(w) <= mono.worst_drop_any(w) < 1
    assert mono.worst_drop_three(100.0) > 0.9999
    # The limits to first order in w are max x(1-x)(2x-1) = sqrt(3)/18 and max x^2(1-x) = 4/27.
    assert mono.worst_drop_three(1e-6) / 1e-6 == pytest.approx(np.sqrt(3) / 18, rel=1e-5)
    assert mono.worst_drop_any(1e-6) / 1e-6 == pytest.approx(4 / 27, rel=1e-5)


@pytest.mark.parametrize("w", [1e-3, 0.7, 30.0, 1500.0, 1e6])
def test_worst_drops_agree_with_60_digit_maximisation(w):
    """Maximise over the logarithm of 1 - x with 60 digits."""

    def loss(log_rest, rate):
        rest = mpmath.exp(log_rest)
        r = mpmath.exp(-rate(rest))
        return (1 - rest) * rest * (1 - r) / (rest + (1 - rest) * r)

    with mpmath.workdps(60):
        grid = [mpmath.mpf(-7) / 10 - k * mpmath.mpf(w / 2 + 8) / 4000 for k in range(4001)]
        three = max(loss(x, lambda rest: w * (1 - 2 * rest)) for x in grid)
        many = max(loss(x, lambda rest: w * (1 - rest)) for x in grid)
    assert mono.worst_drop_three(w) == pytest.approx(float(three), rel=1e-4)
    assert mono.worst_drop_any(w) == pytest.approx(float(many), rel=1e-4)
    assert 1 >= mono.worst_drop_three(w) >= float(three) * (1 - 1e-9)


@pytest.mark.parametrize("w", [0.5, 3.0])
def test_search_finds_the_supremum(w):
    drop = mono.search_drop("ce", 3, w, seed=3)
    assert drop.value == pytest.approx(mono.worst_drop_three(w), abs=1e-6)
    assert drop.policy.min() < 1e-3
    again = -mono.value_change("ce", np.log(drop.policy), drop.q, w)
    assert again == pytest.approx(drop.value, abs=1e-9)


def test_search_finds_larger_drops_than_random_draws():
    rng = np.random.default_rng(0)
    theta, q = -rng.exponential(3, size=(200_000, 5)), rng.random((200_000, 5))
    drawn = -mono.value_change("ce", theta, q, 1.0).min()
    assert mono.search_drop("ce", 5, 1.0).value > drawn


def test_escort_safe_weight_matches_hand_solution():
    # v - q(2) = 0.9, so the weight is 10/0.9 for p = 2 and (2 * 28)/(3 * 27/28) for p = 3.
    theta, q = np.array([3.0, 1.0]), np.array([1.0, 0.0])
    assert mono.escort_safe_weight(theta, q) == pytest.approx(10 / 0.9)
    assert mono.escort_safe_weight(theta, q, p=3.0) == pytest.approx(56 / (81 / 28))
    assert mono.escort_safe_weight(theta, np.ones(2)) == np.inf
    # The parameter of an action with probability 0 does not change for any value.
    assert mono.escort_safe_weight(np.array([3.0, 0.0]), q) == np.inf


def test_escort_step_above_safe_weight_lowers_the_value():
    theta, q = np.array([3.0, 1.0]), np.array([1.0, 0.0])
    assert (
        mono.value_change("pg-es", theta, q, 12.4) > 0 > mono.value_change("pg-es", theta, q, 12.6)
    )


def test_certified_changes_of_a_chain_match_hand_solution():
    """The first state leads to the second, which pays 1 or 0 and leads to itself."""
    mdp = FiniteMDP(np.eye(2)[[[1, 1], [1, 1]]], [[0.0, 0.0], [1.0, 0.0]], [1.0, 0.0], 0.5)
    equal = np.array([True, False])
    with ctx.workprec(128):
        weight = np.array([1.0, 2.0])
        change = certified.certified_changes("mce", mdp, np.zeros((2, 2)), weight, equal)
        rise = [float(x) for x in change]
    # theta moves to (1, -1), so pi = 1/(1 + e^-2), v(s1) = 2 pi and v(s0) = pi.
    gain = 1 / (1 + np.exp(-2)) - 0.5
    np.testing.assert_allclose(rise, [gain, 2 * gain], rtol=1e-15)


def test_certified_change_of_single_action_is_zero():
    mdp = FiniteMDP(np.ones((1, 1, 1)), [[1.0]], [1.0], 0.5)
    state = np.zeros((1, 1)), np.ones(1), np.array([True])
    assert certified.certified_changes("mce", mdp, *state) == [0]


def test_random_mdps_with_equal_actions_have_two_to_five_states():
    rng, sizes = np.random.default_rng(0), set()
    for _ in range(100):
        mdp, equal = mono.mdp_with_equal_actions(rng)
        sizes.add(mdp.n_states)
        assert (np.ptp(mdp.rewards, axis=1) == 0).tolist() == equal.tolist()
    assert sizes == {2, 3, 4, 5}


def test_decrease_frequency_grows_with_the_scale():
    rates = [mono.decrease_frequency("ce", 4, 1.0, scale, 5000) for scale in (0.0, 1, 4)]
    assert rates[0] == 0
    assert rates[0] < rates[1] < rates[2]
    assert mono.decrease_frequency("mce", 4, 1.0, 4, 5000) == 0


def test_value_decreases_in_random_mdps_are_consistent_and_absent_for_mce():
    rows = mono.decreases_in_random_mdps(step_sizes=(1.0,), scales=(0.0, 3.0), n=3, steps=10)
    assert len(rows) == 2
    assert all(0 <= row["updates that lower J"] <= row["lower v somewhere"] + 1 for row in rows)
    steady = mono.decreases_in_random_mdps("mce", (1.0,), (3.0,), n=3, steps=10)
    assert steady[0]["lower v somewhere"] == 0


def test_reachable_and_improving_states_of_a_chain_match_hand_solution():
    mdp = chain(4)
    expected = np.triu(np.ones((4, 4), dtype=bool))
    np.testing.assert_array_equal(mono.reachable(mdp), expected)
    np.testing.assert_array_equal(mono.reachable(bandit([1, 0])), np.eye(2, dtype=bool))
    moving = np.array([False, False, True, False])
    np.testing.assert_array_equal(mono.improving_states(mdp, moving), [True, True, True, False])
    np.testing.assert_array_equal(mono.improving_states(mdp, moving, only_updated=True), moving)


def test_di_raises_the_value_by_the_squared_distance():
    rng = np.random.default_rng(5)
    pi, q = rng.dirichlet(np.ones(4), size=1000), rng.random((1000, 4))
    w = 10 ** rng.uniform(-2, 2, 1000)
    new = UPDATES["di"].step(pi, q, w)
    rise = w * mono.step_advantage(pi, new, q)
    assert np.all(rise >= np.sum((new - pi) ** 2, axis=1) - 1e-12)


def test_zero_step_size_lowers_no_value():
    (row,) = mono.decreases_in_random_mdps("ce", step_sizes=(0.0,), scales=(0.0,), n=1, steps=2)
    assert (row["updates that lower J"], row["lower v somewhere"]) == (0.0, 0.0)


def test_incorrect_step_advantage_fails_by_the_relative_change(monkeypatch):
    """The margin is the relative change of the values if the step advantage is zero."""
    monkeypatch.setattr(checks, "step_advantage", lambda pi, new, q: 0.0 * q[:, 0])
    first = checks.step_advantage_gives_the_change.run(stop_at_failure=True)
    rng = np.random.default_rng(4)
    mdp = mono.small_mdp(rng)
    pi, new = rng.dirichlet(np.ones(mdp.n_actions), size=(2, mdp.n_states))
    before, after = mdp.evaluate(pi).v, mdp.evaluate(new).v
    expected = 1e-11 - np.abs(after - before).max() / (1 + np.abs(before).max())
    assert first.margin == pytest.approx(expected)


def test_small_mdps_have_all_sizes_and_discounts():
    drawn = [mono.small_mdp(np.random.default_rng(seed)) for seed in range(300)]
    assert {mdp.n_states for mdp in drawn} == {1, 2, 3, 4, 5, 6}
    assert {mdp.n_actions for mdp in drawn} == {2, 3, 4, 5}
    assert {mdp.discount for mdp in drawn} == {0.0, 0.5, 0.9, 0.99}


class Away(type(UPDATES["ce"])):
    """CE with the negated action values."""

    def step(self, theta, q, weight=1.0, rng=None):
        return super().step(theta, -np.asarray(q), weight, rng)


@pytest.mark.parametrize("update", [UPDATES["mce"], Away()])
def test_advantage_check_detects_missing_term(monkeypatch, update):
    right = checks.greedy_mask

    def two(q):
        mask = right(q).copy()
        mask[int(np.argmax(mask)) - 1] |= len(q) > 2
        return mask

    monkeypatch.setattr(checks, "greedy_mask", two)
    compare = Recorder()
    checks.advantage_is_a_sum_of_gains.function(compare, update)
    sums = next(tally for tally in compare.tallies.values() if tally.quantity == "advantage")
    assert sums.failures > sums.comparisons / 2


@pytest.mark.parametrize("n_actions", [3, 5])
def test_decrease_with_many_actions_matches_hand_solution(n_actions):
    """The greedy action has a tiny probability, so the likely action loses to the others."""
    losses = []
    for likely in np.linspace(0.5, 0.999, 60):
        pi = np.r_[0.0, likely, np.full(n_actions - 2, (1 - likely) / (n_actions - 2))]
        powers = pi * np.exp(-2.0 * pi)
        losses.append(likely - powers[1] / powers.sum())
    decrease = checks._decrease_with_many_actions("ce", 2.0, n_actions)
    assert decrease == pytest.approx(max(losses), rel=1e-9)


def test_tiny_certified_change_counts_as_zero():
    assert [checks._sign(x) for x in (arb(1e-45), arb(-1e-45), arb(0), arb(0, 1e-41))] == [
        1,
        -1,
        0,
        0,
    ]
    with pytest.raises(Undecided, match="256 bits"):
        checks._sign(arb(0, 1e-39))


def test_mdp_with_given_values_has_these_values():
    rng = np.random.default_rng(0)
    pi, q = rng.dirichlet(np.ones(3), size=4), rng.normal(size=(4, 3))
    for discount in (0.0, 0.9):
        values = mono.mdp_with_values(rng, pi, q, discount).evaluate(pi).q
        np.testing.assert_allclose(values, q, atol=1e-12)


def test_decrease_in_a_loop_is_that_of_one_state_over_one_minus_gamma():
    """The value decreases by 1 / (1 - gamma) times the decrease of the reward in one state."""
    drop = mono.search_drop("ce", 3, 1.0, rounds=250)
    loop = mono.mdp_with_values(np.random.default_rng(0), drop.policy[None], drop.q[None], 0.9)
    new = UPDATES["ce"].step(np.log(drop.policy), drop.q, 1.0)
    loss = float(loop.evaluate(drop.policy[None]).v[0] - loop.evaluate(softmax(new)[None]).v[0])
    assert loss == pytest.approx(10 * drop.value, rel=1e-9)
    assert 0.9999 < loss / (10 * mono.worst_drop_three(1.0)) < 1


@pytest.mark.parametrize("scale", [1e-100, 1e100])
def test_escort_safe_weight_scales_with_squared_parameters(scale: float) -> None:
    theta, q = np.array([1.0, 0.5]), np.array([1.0, 0.0])
    unit = mono.escort_safe_weight(theta, q, 4.0)
    assert mono.escort_safe_weight(scale * theta, q, 4.0) == pytest.approx(unit * scale**2)


def test_errors_on_the_chain_of_two_states_add_up() -> None:
    """Staying in state 2 has the value -g_2 / (1 - gamma) with g_2 = 1 + gamma."""
    with precision(512):
        run = erring_chain("0.5", 2)
        assert float(run.gap) == pytest.approx(1.5 / 0.5)
        assert float(run.error) == pytest.approx(0.5)
        assert len(run.weights) == 4
        assert all(abs(float(weight) - 100.0) < 1e-9 for weight in run.weights)  # X (1 + e^-X)


def test_mce_on_the_erring_chain_in_floats() -> None:
    """The library's MCE makes the steps of the period if the action values have errors of 1/2."""
    gamma, lead, n = 0.9, 30.0, 3
    g = [1.0, 1.9, 2.71]
    mce, theta = as_update("mce"), np.tile([lead / 2, -lead / 2], (n, 1))
    worst, off = 0.0, 0.0
    for state, action in [(0, 1), (1, 1), (0, 0), (2, 1), (1, 0), (2, 0)] * 3:
        pi, v = softmax(theta), np.zeros(n)
        for k in range(n):  # each state leads to itself or to the state before it
            below = gamma * v[k - 1] if k else 0.0
            v[k] = (pi[k, 0] * below - pi[k, 1] * g[k]) / (1 - gamma * pi[k, 1])
        q = np.array([gamma * v[state - 1] if state else 0.0, -g[state] + gamma * v[state]])
        off, worst = max(off, (q[1 - action] - q[action]) / 2), max(worst, -v[-1])
        seen = q + np.where(np.arange(2) == action, 0.5 + 1e-9, -0.5)
        weight = lead * (1 + np.exp(-lead))
        theta[state] = mce.step(theta[state], seen, weight)
        assert np.argmax(theta[state]) == action
    np.testing.assert_allclose(theta[:, 0] - theta[:, 1], lead, atol=1e-6)
    assert off == pytest.approx(0.5, abs=1e-6)
    assert worst == pytest.approx(2.71 / 0.1, abs=1e-6)
