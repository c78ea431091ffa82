"""The checks of the chapter on monotonicity hold, and catch what is broken."""

import numpy as np
import pytest
from flint import ctx

from pu_lib.checks import monotonicity as checks
from pu_lib.domains import bandit, chain
from pu_lib.mdp import FiniteMDP
from pu_lib.theory import monotonicity as mono
from pu_lib.updates import UPDATES, greedy_mask, make_update, softmax


@pytest.mark.parametrize(
    ("check", "status"),
    [
        (checks.check_proposition_1, "holds"),
        (checks.check_example_digits, "holds"),
        (checks.check_imbalance, "holds"),
        (checks.check_two_actions, "holds"),
        (checks.check_worst_decrease, "holds"),
        (checks.check_proposition_2, "holds"),
        (checks.check_proposition_2_attack, "holds"),
        (checks.check_proposition_2_certified, "holds"),
        (checks.check_strict_increase, "holds with a correction"),
        (checks.check_sign_condition, "holds"),
    ],
)
def test_what_the_chapter_says(check, status):
    check().require(status)


@pytest.mark.parametrize(
    "broken",
    [
        lambda: checks.check_proposition_1("mce"),
        lambda: checks.check_proposition_1("ce", (0, 0, 0)),
        lambda: checks.check_example_digits("0.98996", "0.98989"),
        lambda: checks.check_example_digits(name="mce"),
        lambda: checks.check_imbalance("mce"),
        lambda: checks.check_two_actions(n_actions=3),
        lambda: checks.check_worst_decrease(UPDATES["mce"]),
        lambda: checks.check_proposition_2(UPDATES["ce"]),
        lambda: checks.check_proposition_2(UPDATES["pg-es"]),
        lambda: checks.check_proposition_2_attack(UPDATES["ce"]),
        lambda: checks.check_proposition_2_certified("ce"),
        lambda: checks.check_strict_increase(only_moving=True),
        lambda: checks.check_sign_condition(("ce",)),
        lambda: checks.check_sign_condition(stretch=1.5),
    ],
)
def test_broken_claims_are_caught(broken):
    verdict = broken()
    assert verdict.margin < 0
    with pytest.raises(AssertionError, match=verdict.claim):
        verdict.require("holds", "holds with a correction")


@pytest.mark.parametrize("ties", ["first", "random", "leave"])
def test_proposition_2_holds_for_every_way_to_break_ties(ties):
    rng = np.random.default_rng(0)
    theta, q = 3 * rng.normal(size=(2000, 4)), rng.integers(0, 3, (2000, 4)).astype(float)
    update = make_update("mce", ties=ties)
    new = softmax(update.step(theta, q, 10 ** rng.uniform(-3, 4, 2000), rng))
    assert mono.step_advantage(softmax(theta), new, q).min() > -1e-14


def test_ball_steps_are_those_of_the_library():
    rng = np.random.default_rng(1)
    for name in ("ce", "mce"):
        theta, q = np.round(rng.normal(size=4), 3), np.round(rng.random(4), 3)
        with ctx.workprec(128):
            step = mono.certified_step(name, theta.tolist(), q.tolist(), "1.5")
            balls = [float(p) for p in step.new_pi]
        new = softmax(UPDATES[name].step(theta, q, 1.5))
        np.testing.assert_allclose(balls, new, rtol=1e-12)
    with pytest.raises(ValueError, match="only ce and mce"):
        mono.certified_step("di", [0, 0], [0, 1], 1)


def test_the_mass_gained_is_the_worst_drop_over_values():
    rng = np.random.default_rng(2)
    theta, greedy_q = 2 * rng.normal(size=(50, 4)), rng.random((50, 4))
    new = softmax(UPDATES["ce"].step(theta, greedy_q, 2.0))
    pi, mask = softmax(theta), greedy_mask(greedy_q)
    gained = mono.mass_gained(pi, new, mask)
    worst_q = np.where(mask | (new <= pi), 1.0, 0.0)
    np.testing.assert_allclose(-mono.step_advantage(pi, new, worst_q), gained, atol=1e-14)
    for _ in range(50):  # no other values with the same greedy action do worse
        q = np.where(mask, 1.0, rng.random((50, 4)))
        assert np.all(-mono.step_advantage(pi, new, q) <= gained + 1e-14)


def test_the_bounds_on_the_decrease_are_ordered_and_tend_to_one():
    for w in (0.01, 0.3, 1.0, 5.0, 20.0):
        assert 0 < mono.worst_drop_three(w) <= mono.worst_drop_any(w) < 1
    assert mono.worst_drop_three(100.0) > 0.9999
    # to first order in w: max x(1-x)(2x-1) = sqrt(3)/18 and max x^2(1-x) = 4/27
    assert mono.worst_drop_three(1e-6) / 1e-6 == pytest.approx(np.sqrt(3) / 18, rel=1e-5)
    assert mono.worst_drop_any(1e-6) / 1e-6 == pytest.approx(4 / 27, rel=1e-5)


def test_the_search_finds_the_supremum_for_other_weights():
    rng = np.random.default_rng(3)
    for w in (0.5, 3.0):
        found = mono.search_drop(UPDATES["ce"], 3, w, rng)
        assert found.value == pytest.approx(mono.worst_drop_three(w), abs=1e-4)
        assert found.policy[np.argmax(found.q)] < 1e-3 or found.policy.min() < 1e-3


def test_decreases_are_frequent_at_peaked_policies_and_rare_near_the_uniform_one():
    rates = [mono.decrease_frequency(UPDATES["ce"], 4, 1.0, scale, 5000) for scale in (0.0, 1, 4)]
    assert rates[0] == 0
    assert rates[0] < rates[1] < rates[2]
    assert mono.decrease_frequency(UPDATES["mce"], 4, 1.0, 4, 5000) == 0


def test_counts_in_random_mdps():
    rows = mono.decreases_in_random_mdps(etas=(1.0,), scales=(0.0, 3.0), n=3, steps=10)
    assert len(rows) == 2
    assert all(0 <= row["updates that lower J"] <= row["lower v somewhere"] + 1 for row in rows)
    steady = mono.decreases_in_random_mdps(UPDATES["mce"], (1.0,), (3.0,), n=3, steps=10)
    assert steady[0]["lower v somewhere"] == 0


def test_reachability():
    mdp = chain(4)
    expected = np.triu(np.ones((4, 4), dtype=bool))
    np.testing.assert_array_equal(mono.reachable(mdp), expected)
    np.testing.assert_array_equal(mono.reachable(bandit([1, 0])), np.eye(2, dtype=bool))
    moving = np.array([False, False, True, False])
    np.testing.assert_array_equal(mono.strict_states(mdp, moving), [True, True, True, False])
    np.testing.assert_array_equal(mono.strict_states(mdp, moving, only_moving=True), moving)


def test_the_performance_difference_identity():
    rng = np.random.default_rng(4)
    for _ in range(20):
        mdp: FiniteMDP = mono.small_mdp(rng)
        pi, new = rng.dirichlet(np.ones(mdp.n_actions), size=(2, mdp.n_states))
        before, after = mdp.evaluate(pi), mdp.evaluate(new)
        chain_new = np.einsum("sa,sax->sx", new, mdp.transitions)
        gain = np.linalg.solve(
            np.eye(mdp.n_states) - mdp.discount * chain_new,
            mono.step_advantage(pi, new, before.q),
        )
        np.testing.assert_allclose(after.v - before.v, gain, atol=1e-9)


def test_direct_updates_raise_by_the_squared_distance():
    rng = np.random.default_rng(5)
    pi, q = rng.dirichlet(np.ones(4), size=1000), rng.random((1000, 4))
    w = 10 ** rng.uniform(-2, 2, 1000)
    new = UPDATES["di"].step(pi, q, w)
    rise = w * mono.step_advantage(pi, new, q)
    assert np.all(rise >= np.sum((new - pi) ** 2, axis=1) - 1e-12)
