"""CE with constant weights: known answers of the balance, of the constants and of the late fall."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pu_lib.checks import cross_entropy_constant as checks
from pu_lib.theory import cross_entropy_constant as constant
from pu_lib.theory.cycles import FOUR_STATES, THREE_STATES
from pu_lib.theory.deterministic import DeterministicMDP, run_process
from pu_lib.updates import softmax


def test_the_excess_entropy_of_equal_actions() -> None:
    """With k equal actions it is log k - (w/2)(1 - 1/k)."""
    for k in (2, 3, 7):
        found = constant.excess_entropy(np.full(k, 1.5), np.array(0.8))
        assert found == pytest.approx(math.log(k) - 0.4 * (1 - 1 / k), abs=1e-14)


def test_on_the_cycle_s_second_state_each_update_pays_for_itself() -> None:
    """(-u, u) and (u, -u) have the same potential: owing and excess entropy are equal."""
    u = 4.999772907541
    owing = math.log1p(math.exp(-2 * u))
    excess = constant.excess_entropy(np.array([-u, u]), np.array(10.0))
    assert excess == pytest.approx(owing, rel=1e-8)


@pytest.mark.parametrize(("state", "updates"), [(1, 110), (2, 110), (3, 110)])
def test_over_a_period_with_one_weight_the_balance_is_zero(state: int, updates: int) -> None:
    theta, owing, excess, count = np.array(FOUR_STATES.start[state]), 0.0, 0.0, 0
    for _ in range(40):  # the start is rounded; the cycle attracts
        owing, excess, count = 0.0, 0.0, 0
        for phase in FOUR_STATES.phases:
            for _ in range(phase.updates if phase.state == state else 0):
                excess += float(constant.excess_entropy(theta, np.array(0.5)))
                theta = theta + 0.5 * (np.eye(2)[phase.greedy] - softmax(theta))
                owing -= float(constant.log_softmax(theta)[phase.greedy])
                count += 1
    assert count == updates
    assert owing > 10.0
    assert excess == pytest.approx(owing, abs=1e-9)


def test_weights_that_vary_need_not_pay() -> None:
    """At the first state of the three-state cycle, whose weights are 30, 10, 10 and 20."""
    theta, owing, excess = np.array(THREE_STATES.start[0]), 0.0, 0.0
    for phase in THREE_STATES.phases:
        if phase.state == 0:
            weight = float(phase.weight)
            excess += weight * float(constant.excess_entropy(theta, np.array(weight)))
            theta = theta + weight * (np.eye(3)[phase.greedy] - softmax(theta))
            owing -= weight * float(constant.log_softmax(theta)[phase.greedy])
    assert owing > excess + 100.0


def test_constants_by_hand() -> None:
    """Two arms that pay 1 and 0: B = 2, lead 1, K = 3 and a slack of 1/16 at discount 1/2."""
    bandit = DeterministicMDP(np.array([[1.0, 0.0]]), np.array([[-1, -1]]), np.array([2]), 0.5)
    known = constant.constants(bandit)
    assert (known.spread, known.lead, known.policy) == (2.0, 1.0, (0,))
    assert (known.slack, known.window, known.owed) == (1 / 16, 3, 1 / 64)
    assert known.threshold == pytest.approx(2 * math.log(64))


def test_columns_that_are_no_actions_do_not_count() -> None:
    known = constant.constants(THREE_STATES.tables)
    assert known.policy == (2, 0, 1)
    assert known.spread == pytest.approx(30.0)
    assert known.lead == pytest.approx(9 / 19)  # 1 + 0.9 * 290/19 against 1 + 0.9 * 280/19, at s0


def test_the_batch_is_the_compiled_process() -> None:
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


def test_the_fall_by_hand() -> None:
    """One update of weight 28 takes the top action from 0 to -28, and the bad one is then first."""
    mdp, theta, weights = constant.late_fall(1000)
    value = run_process(mdp, "ce", theta, weights, 1100).values[:, 0]
    when = int(np.argmin(value[100:])) + 100
    assert 900 < when < 1100
    assert value[when] == pytest.approx(-1.0, abs=1e-3)
    assert value[when + 5 :].min() > 0.89


def test_the_chattering_states_are_worth_ten() -> None:
    """2 / (1 - 0.8) either way, and 1 + 0.8 * 10 in the state between."""
    mdp, _, _ = constant.chatter()
    np.testing.assert_allclose(mdp.optimum(), [10.0, 9.0, 10.0])
    assert constant.constants(mdp).lead == pytest.approx(0.0, abs=1e-12)
    assert constant.constants(constant.chatter(0.01)[0]).lead > 0.0


def test_the_least_bound_of_two_actions_is_that_of_a_fine_grid() -> None:
    p = np.linspace(1e-6, 0.5, 4001)[:, np.newaxis]
    w = np.linspace(0.1, 12.0, 120)
    entropy = -p * np.log(p) - (1 - p) * np.log1p(-p)
    excess = (entropy - w * p * (1 - p)).max(axis=0)
    rooms = np.exp(-w / 2) / excess - 1.0
    least, where = checks._least_bound(2, 0.5)
    assert where == pytest.approx(w[rooms.argmin()])
    assert least == pytest.approx(rooms.min(), abs=1e-4)


def test_the_rooms_of_a_run_by_hand() -> None:
    """One state worth 1 at best, spread 2 and discount 1/2: it is away by 1, 1/2, 1/4 and 1/16."""
    course = SimpleNamespace(
        values=1 - 2 * np.array([1, 1 / 2, 1 / 4, 1 / 16])[:, None, None],
        owing=-np.log([1 / 2, 3 / 4, 7 / 8])[:, None, None],
        greedy=np.array([1, 1, 0])[:, None, None],
    )
    known = SimpleNamespace(
        spread=2.0, discount=0.5, lead=0.4, slack=0.3, window=0, policy=np.array([0])
    )
    rooms = checks._rooms(course, 0, np.array([1.0]), known, allowance=0.1, lead=1.0)
    # steps: half of what it was away by, 1/5 of 1/2, 1/4 and 1/8 more, and what it is away by then
    assert rooms.pop("a step") == pytest.approx(0.05, abs=1e-8)
    assert rooms == {
        "a greedy action that is not optimal": pytest.approx(1 / 4 - 0.2),
        "after K + 1 good steps": pytest.approx(0.2 - 1 / 8),
    }


def test_good_steps_in_a_row_count_for_all_later_ones() -> None:
    good = np.array([True, False, True, True, False, True])
    assert checks._after(good, 2).tolist() == [False] * 4 + [True] * 2
    assert checks._after(good, 1).tolist() == [False] + [True] * 5
