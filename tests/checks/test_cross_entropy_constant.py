"""CE with constant weights: known answers of the balance, of the constants and of the late fall."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from pu_lib.chapters.cross_entropy import checks_constant_weights as checks
from pu_lib.chapters.cross_entropy import constant_weights as constant
from pu_lib.chapters.cross_entropy.cycles import FOUR_STATES, THREE_STATES
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.updates import UPDATES, softmax


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


def test_where_nothing_ends_the_end_pays_nothing_into_the_spread() -> None:
    """Two arms that pay 2 and 1 and lead back: B = 1 / (1 - 1/2)."""
    stay = DeterministicMDP(np.array([[2.0, 1.0]]), np.array([[0, 0]]), np.array([2]), 0.5)
    known = constant.constants(stay)
    assert (known.spread, known.lead) == (2.0, pytest.approx(1.0))


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
    # 1 in the second state, and that discounted is better than 0.9 (1 - 1/2000) and -1
    np.testing.assert_allclose(mdp.optimum(), [0.9, 1.0])


def test_the_chattering_states_are_worth_ten() -> None:
    """2 / (1 - 0.8) either way, and 1 + 0.8 * 10 in the state between."""
    mdp, _, _ = constant.chatter()
    np.testing.assert_allclose(mdp.optimum(), [10.0, 9.0, 10.0])
    ahead = np.array([10.0, 9.0, 10.0, 0.0])[mdp.successors]  # the end comes last
    expected = [[1.0, 10.0, 2.0], [1 + 7.2, 1 + 8.0, 7.2], [2 + 8.0, 2 + 8.0, -1.0]]
    np.testing.assert_allclose(mdp.rewards + 0.8 * ahead, expected)
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


def test_the_adversary_of_the_balance_draws_in_one_step_of_five(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Of two actions every other draw is the one that was greedy before."""
    ce, chosen = UPDATES["ce"], []

    def step(theta: np.ndarray, q: np.ndarray, weight: np.ndarray) -> np.ndarray:
        chosen.append(q.argmax(axis=1))
        return ce.step(theta, q, weight)

    monkeypatch.setattr(checks, "UPDATES", {"ce": SimpleNamespace(step=step)})
    checks._balance(np.random.default_rng(0), (50, 2), 200, (1.0,), True, 1.0)
    assert (np.diff(chosen, axis=0) != 0).mean() == pytest.approx(0.1, abs=0.01)


def test_the_rooms_of_a_run_by_hand() -> None:
    """One state worth 1 at best, spread 2, discount 1/2: it is away by 1, 1/2, 1/4, 1/16, 1/64."""
    course = SimpleNamespace(
        values=1 - 2 * np.array([1, 1 / 2, 1 / 4, 1 / 16, 1 / 64])[:, None, None],
        owing=-np.log([1 / 2, 3 / 4, 7 / 8, 3 / 4])[:, None, None],
        greedy=np.array([1, 1, 0, 0])[:, None, None],
    )
    known = SimpleNamespace(
        spread=2.0, discount=0.5, lead=0.4, slack=0.3, window=0, policy=np.array([0])
    )
    rooms = checks._rooms(course, 0, np.array([1.0]), known, allowance=0.1, lead=1.0)
    # steps: half of what it was away by, 1/5 of 1/2, 1/4, 1/8 and 1/4 more, less what it is then
    assert rooms.pop("a step") == pytest.approx(0.05, abs=1e-8)
    assert rooms == {
        "a greedy action that is not optimal": pytest.approx(1 / 4 - 0.2),
        "after K + 1 good steps": pytest.approx(0.2 - 1 / 8),
    }


def test_good_steps_in_a_row_count_for_all_later_ones() -> None:
    good = np.array([True, False, True, True, False, True])
    assert checks._after(good, 2).tolist() == [False] * 4 + [True] * 2
    assert checks._after(good, 1).tolist() == [False] + [True] * 5


@pytest.mark.parametrize(("account", "room"), [(2.0, 4.0), (0.5, 1.5)])
def test_excess_entropy_and_the_start_pay_for_what_is_owed(
    account: float, room: float, noted: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two states: 4 and 6 of excess entropy, 2 and 6 owed, and starts that can pay 1 and 3."""
    course = SimpleNamespace(
        excess=np.array([[[1.0, 2.0]], [[3.0, 4.0]]]), owing=np.array([[[1.0, 1.0]], [[1.0, 5.0]]])
    )
    known = SimpleNamespace(policy=(0, 0), discount=0.5)
    run = checks._Runs(course, [known], np.zeros((1, 2)), np.array([[1.0, 3.0]]))
    monkeypatch.setattr(checks, "_runs", lambda *_: [run])
    monkeypatch.setattr(checks, "_rooms", lambda *_: {"a step": 7.0})
    checks.check_excess(account=account)
    assert [(margin, row["part"]) for margin, row in noted] == [
        (7.0, "a step"),
        (room, "the balance"),
    ]
    assert noted[0][1] == {"part": "a step", "states": 2, "discount": 0.5, "MDP": 0}


FALLS = {
    "in time": ({10: -0.9}, 0.05),
    "just late enough": ({6: -0.9}, 0.05),
    "just early enough": ({14: -0.9}, 0.05),
    "too early": ({5: -0.9}, -1.0),
    "too late": ({15: -0.9}, -1.0),
    "for good": (dict.fromkeys(range(10, 20), -0.9), -1.0),
    "twice": ({8: -0.9, 10: -0.9}, -1.0),
    "twice, once by less": ({8: -0.7, 10: -0.9}, 0.05),
    "for two steps": ({9: -0.9, 10: -0.9}, 0.05),
    "by less": ({10: -0.7}, -1.0),
    "once more, after twice the time": ({10: -0.9, 20: -0.9}, 0.05),
}


@pytest.mark.parametrize(("values", "room"), FALLS.values(), ids=FALLS)
def test_a_late_fall_is_one_that_is_deep_in_time_and_made_up_for(
    values: dict[int, float], room: float, noted: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rewards of 1 and -1; the value is 1, but at some times. The first twenty are looked at."""
    path = np.ones((30, 1))
    for t, value in values.items():
        path[t] = value
    mdp = DeterministicMDP(np.array([[1.0, -1.0]]), np.array([[-1, -1]]), np.array([2]), 0.5)
    monkeypatch.setattr(checks, "late_fall", lambda _: (mdp, None, None))
    monkeypatch.setattr(
        checks, "run_process", lambda *given: SimpleNamespace(values=path[: given[-1]])
    )
    checks.check_late_fall((10,))
    assert noted[0][0] == pytest.approx(room)


def test_chatter_is_measured_in_the_second_half_of_each_horizon(
    noted: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The greedy action changes at two steps in three, and values fall by 1/1000 each time."""
    t = np.arange(5000)
    greedy = np.stack([0 * t, 0 * t, t % 3 == 0], axis=1).astype(int)
    values = np.where(t % 3 == 0, -1e-3, 0.0)[:, np.newaxis] * [0.0, 1.0, 0.5]
    theta = np.zeros((3, 2))
    run = SimpleNamespace(greedy=greedy, values=values, theta=theta)
    monkeypatch.setattr(checks, "chatter", lambda _: (None, None, None))
    monkeypatch.setattr(checks, "run_process", lambda *_: run)
    checks.check_chatter(n_steps=5000)
    rooms = {(row["part"], row["horizon"]): room for room, row in noted}
    for horizon in (10, 100, 1000, 5000):
        changes = np.mean(
            [greedy[i, 2] != greedy[i + 1, 2] for i in range(horizon // 2, horizon - 1)]
        )
        assert rooms["changes", horizon] == pytest.approx(changes - 0.3)
        assert rooms["falls", horizon] == pytest.approx(1.0 - 1e-3 * horizon / 30.0)
    # two equal actions: log 2 less half of 1 - 1/2
    assert rooms["mixture", 5000] == pytest.approx(math.log(2.0) - 0.25 - 0.1)


def test_large_weights_are_up_to_half_above_the_threshold(
    noted: list, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a threshold of 2 between 2 and 3; a distance of 1/4 is 1/16 of a spread of 4."""
    tried = []

    def late_run(_: object, weights: np.ndarray, theta: np.ndarray, n_steps: int) -> object:
        tried.append((weights.min(), weights.max(), n_steps))
        assert np.abs(theta).max() < 3.0 * 3.0 * 5.0
        return SimpleNamespace(shortfall=np.array([0.0, 0.25]))

    known = SimpleNamespace(threshold=2.0, spread=4.0)
    monkeypatch.setattr(checks, "constants", lambda _: known)
    monkeypatch.setattr(checks, "late_run", late_run)
    checks.check_large_weights(n_mdps=5, n_steps=7)
    assert [room for room, _ in noted] == [checks.NEAR - 1 / 16] * 5 * len(checks.SIZES)
    low, high, steps = zip(*tried, strict=True)
    assert 2.0 < min(low) < 2.2 < 2.8 < max(high) < 3.0
    assert set(steps) == {7}
