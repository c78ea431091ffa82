"""Processes that are counted out of transitions, and observations that become states."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import pu_lib
from pu_lib import environments
from pu_lib.environments import bins, estimate

Box = gymnasium.spaces.Box


class Maze(gymnasium.Env):
    """From state 0, action 0 waits or goes on to state 1 with probability 1/4, and pays 1 there.

    Action 1 ends the trajectory. In state 1, every action ends it; action 1 pays 3. After three
    steps a trajectory is truncated.
    """

    action_space = gymnasium.spaces.Discrete(2)
    observation_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state, self.taken = 0, 0
        return np.int64(0), {}

    def step(self, action):
        self.taken += 1
        assert self.taken <= 3, "a step after the end of an episode"
        over = self.taken == 3
        if self.state == 1 or action == 1:
            return 0, 3.0 * self.state * action, True, over, {}
        self.state = int(self.np_random.random() < 0.25)
        return self.state, float(self.state), False, over, {}


def test_an_estimate_tends_to_the_process():
    """The standard deviation of a relative frequency of n draws is at most 1/2 over sqrt(n)."""
    counted = estimate(Maze, 6000, discount=0.9)
    assert counted.states == (0, 1)
    assert counted.unseen == ()
    assert counted.counts.sum() == 6000
    n = counted.counts[0, 0]
    process = counted.process
    assert_allclose(process.transitions[0, 0], [0.75, 0.25, 0], atol=5 * 0.5 / np.sqrt(n))
    assert_array_equal(process.transitions[0, 1], [0, 0, 1])
    assert_array_equal(process.transitions[1], [[0, 0, 1]] * 2)
    assert_array_equal(process.transition_rewards[1, :, 2], [0, 3])
    assert_array_equal(process.transition_rewards[0, 0, :2], [0, 1])
    assert_array_equal(process.initial, [1, 0, 0])
    assert process.terminal.tolist() == [False, False, True]
    assert process.discount == 0.9


def test_an_unseen_pair_has_the_mean_outcome_of_its_state_and_is_named():
    rows, starts = {"a": 0, "b": 1}, {0: 4}
    outcomes = {(0, 0): {0: 1, -1: 2}, (0, 2): {1: 3}}
    earned = {(0, 0, 0): 5.0, (0, 0, -1): 4.0, (0, 2, 1): -6.0}
    counted = environments._counted(rows, starts, outcomes, earned, 3, 0.5)
    process = counted.process
    assert_allclose(process.transitions[0], [[1 / 3, 0, 2 / 3], [1 / 6, 1 / 2, 1 / 3], [0, 1, 0]])
    assert_allclose(process.transition_rewards[0], [[5, 0, 2], [5, -2, 2], [0, -2, 0]])
    assert process.terminal.tolist() == [False, True, True]  # no action was tried in b
    assert counted.unseen == (("a", 1), ("b", 0), ("b", 1), ("b", 2))
    assert repr(counted) == (
        "Estimate(2 states, 3 actions, 6 steps; unseen: state a action 1, state b action 0, state "
        "b action 1, state b action 2)"
    )
    # No policy gains by an unseen pair: its value is a mean of the values of the seen ones.
    q = process.optimal().q[0]
    assert q[1] < q.max()


def test_many_unseen_pairs_are_named_in_part():
    counted = estimate("CliffWalking-v1", 200)
    assert len(counted.unseen) > 6
    assert f"and {len(counted.unseen) - 5} more)" in repr(counted)
    assert all(
        counted.counts[counted.states.index(state), action] == 0 for state, action in counted.unseen
    )


def test_an_estimate_of_a_table_is_the_table():
    """Transitions of CliffWalking-v1 are certain, so that every pair that was seen is exact."""
    counted, exact = estimate("CliffWalking-v1", 20000), pu_lib.from_gymnasium("CliffWalking-v1")
    order = [*counted.states, exact.n_states - 1]
    seen = np.append(counted.counts, np.zeros((1, 4)), axis=0) > 0
    transitions = exact.transitions[order][:, :, order]
    assert_array_equal(counted.process.transitions[seen], transitions[seen])
    assert_array_equal(counted.process.rewards[seen], exact.rewards[order][seen])
    assert seen.sum() > 140


def test_the_same_seed_gives_the_same_estimate():
    first, again, other = (estimate(Maze(), 300, seed=seed) for seed in (1, 1, 2))
    assert first.process.digest == again.process.digest != other.process.digest


def test_an_interrupt_leaves_the_steps_that_were_taken():
    class Stopped(Maze):
        def step(self, action):
            self.all = getattr(self, "all", 0) + 1
            if self.all > limit:
                raise KeyboardInterrupt
            return super().step(action)

    limit = 50
    with pytest.warns(UserWarning, match="interrupted after 50 of 100 steps"):
        assert estimate(Stopped, 100).counts.sum() == 50
    limit = 0
    with pytest.raises(KeyboardInterrupt):
        estimate(Stopped, 100)


def test_a_process_from_an_estimate_can_be_raced():
    process = estimate(Maze, 500).process
    path = pu_lib.run(process, "ce", 20)
    assert path.performance[-1] > path.performance[0]


def test_estimate_refuses_arguments():
    for change, sentence in (
        ({"steps": 0}, "steps: expected an integer, at least 1"),
        ({"cut": 0}, "cut: expected an integer, at least 1"),
        ({"seed": -1}, "seed: expected an integer, at least 0"),
        ({"discount": 1.0}, "discount"),
        ({"env": dict}, "env: expected a Gymnasium environment"),
    ):
        with pytest.raises(ValueError, match=sentence):
            estimate(**{"env": Maze, "steps": 10, **change})


# Observations


def test_bins_of_finite_bounds_have_equal_width():
    encode = bins(Box(np.float32([-1, 0]), np.float32([1, 10])), [4, 5])
    assert encode(np.array([-1.0, 0.0])) == (0, 0)
    assert encode([-0.51, 1.99]) == (0, 0)
    assert encode([-0.5, 2.0]) == (1, 1)
    assert encode([1.0, 10.0]) == (3, 4)
    assert encode([-9.0, 99.0]) == (0, 4)


def test_bins_without_bounds_are_quantiles_of_the_arctangent():
    encode = bins(gymnasium.make("CartPole-v1").observation_space, [1, 6, 1, 6])
    root = np.sqrt(3.0)
    edges = [-root, -1 / root, 0.0, 1 / root, root]
    for place in (1, 3):
        assert_allclose(encode.edges[place], edges, atol=1e-12)
    assert encode([9.0, np.inf, 0.0, -np.inf]) == (0, 5, 0, 0)
    (half,) = bins(Box(0.0, np.inf, (1,)), 4).edges
    assert_allclose(half, np.tan(np.pi / 8 * np.arange(1, 4)))


def test_bins_of_an_array_are_in_the_order_of_its_entries():
    encode = bins(Box(0.0, 1.0, (2, 2)), 10)
    assert encode([[0.05, 0.15], [0.25, 0.35]]) == (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("space", "counts", "sentence"),
    [
        (gymnasium.spaces.Discrete(3), 2, "space: expected a gymnasium.spaces.Box, got Discrete"),
        (Box(0, 1, (2,)), [1, 2, 3], "counts: expected 2 numbers of bins, got 3"),
        (Box(0, 1, (2,)), 0, "counts: expected an integer, at least 1"),
        (Box(0, 1, (2,)), [1.5, 2], "counts: expected an integer, got 1.5"),
    ],
)
def test_bins_refuse_arguments(space, counts, sentence):
    with pytest.raises(ValueError, match=sentence):
        bins(space, counts)


@pytest.mark.parametrize("observation", [[0.5], [0.5, np.nan], [0.1, 0.2, 0.3]])
def test_bins_refuse_other_observations(observation):
    with pytest.raises(ValueError, match="encode: expected an observation of 2 numbers"):
        bins(Box(0, 1, (2,)), 4)(observation)


# Tables


def test_options_go_to_the_environment():
    assert pu_lib.from_gymnasium("FrozenLake-v1", 0.9, map_name="8x8").n_states == 65
    with pytest.raises(ValueError, match=r"'FrozenLake-v1' cannot be made: .*wet"):
        pu_lib.from_gymnasium("FrozenLake-v1", wet=True)
    with pytest.raises(ValueError, match="map_name: options are for the id of an environment"):
        pu_lib.from_gymnasium(gymnasium.make("FrozenLake-v1"), map_name="8x8")


def test_an_environment_without_a_table_is_told_what_to_do_next():
    for call in (pu_lib.from_gymnasium, pu_lib.race, lambda env: pu_lib.run(env, "ce", 1)):
        with pytest.raises(ValueError, match=r"pu_lib\.learn\(.*pu_lib\.compare\(.*\.estimate\("):
            call("CartPole-v1")


def test_a_state_without_outcomes_in_a_table_is_still_refused():
    table = {0: {0: [(1.0, 1, 0.0, False)], 1: [(1.0, 0, 0.0, False)]}, 1: {0: [], 1: []}}
    env = SimpleNamespace(P=table, initial_state_distrib=[1.0, 0.0])
    with pytest.raises(ValueError, match="sum to 0, not 1"):
        pu_lib.from_gymnasium(env)
