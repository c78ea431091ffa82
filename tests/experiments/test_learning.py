"""Learning by `reset` and `step` agrees with the compiled loop, and its results can be kept."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from numpy.testing import assert_array_equal

import pu_lib
from pu_lib.environments import Player
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.learning import Learner, _settings
from pu_lib.experiments.options import PAPER, SCHEMES, configured
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.reference import Stream, actor_of, index_at, run_reference

LIBRARY = [
    "pg-sm", "pg-es", "pg-es factor=drop", "di", "ce ties=random", "mce ties=leave", "npg", "sce",
]  # fmt: skip
FLOATS = replace(PAPER, precision="float64")


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("update", LIBRARY)
def test_learn_has_the_bits_of_the_sampled_loop_on_a_table(update, scheme):
    """The transitions and the start of CliffWalking-v1 are certain, so only the learner draws."""
    name, steps, step_size = "CliffWalking-v1", 600, 0.5
    loop = run_reference(
        pu_lib.from_gymnasium(name), np.inf, update, step_size, SCHEMES[scheme],
        seed_state(3, name, 0), FLOATS, steps,
    )  # fmt: skip
    learned = pu_lib.learn(
        name, update, steps, step_size, scheme=scheme, cut=PAPER.cut, runs=1, episodes=1, seed=3,
        evaluate_every=steps,
    )  # fmt: skip
    states = list(learned.states)
    assert len(states) > 10
    assert learned.visits.sum() == steps
    assert_array_equal(learned.q[0], np.array(loop.q)[states])
    policy = actor_of(configured(update, FLOATS), FLOATS).policy
    assert_array_equal(learned.policies[0], [policy(loop.theta[s]) for s in states])


class Table(gymnasium.Env):
    """A finite process whose transitions are drawn from the stream of the learner."""

    def __init__(self, mdp, stream):
        self.mdp, self.stream = mdp, stream
        self.action_space = gymnasium.spaces.Discrete(mdp.n_actions, start=7)

    def draw(self, probabilities):
        possible = np.flatnonzero(probabilities)
        u = self.stream.uniform() if len(possible) > 1 else 0.0
        return int(possible[index_at(u, map(float, probabilities[possible]))])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.state = self.draw(self.mdp.initial)
        return self.state, {}

    def step(self, action):
        before, action = self.state, action - 7
        self.state = self.draw(self.mdp.transitions[before, action])
        rewards = self.mdp.transition_rewards
        reward = (self.mdp.rewards if rewards is None else rewards[..., self.state])[before, action]
        return self.state, reward, bool(self.mdp.terminal[self.state]), False, {}


@pytest.mark.parametrize("critic", ["sampled", "expected"])
def test_learner_has_the_bits_of_the_sampled_loop_on_a_random_process(critic):
    mdp, seeds, steps = pu_lib.domains.as_process("random-mdp"), seed_state(0, "x", 0), 1500
    options = replace(PAPER, sarsa=critic, critic_rate=0.2)
    loop = run_reference(mdp, np.inf, "mce", 2.0, SCHEMES["HiOffPol"], seeds, options, steps)
    stream = Stream(seeds)
    player = Player(lambda: Table(mdp, stream), None, PAPER.cut)
    (setting,) = _settings(
        "CliffWalking-v1", ["mce"], [2.0], steps, "HiOffPol", critic, 0.2, mdp.discount, None,
        PAPER.cut, None, 1, 0,
    )  # fmt: skip
    learner = Learner(setting, player, stream)
    for _ in range(steps):
        learner.step()
    states = list(learner.rows)
    assert len(states) > 50
    assert_array_equal(learner.q, np.array(loop.q)[states])
    assert_array_equal(learner.theta, np.array(loop.theta)[states])


def test_learner_has_the_bits_of_the_compiled_loop():
    """The chain is certain, and its compiled loop is that of many other tests."""
    mdp, memory = pu_lib.domains.as_process("chain"), RunBuffers(record_at=[2000])
    problem, seeds = make_problem(mdp, 0.5, "first"), seed_state(0, "chain", 0)
    simulate(problem, "mce", 1.0, SCHEMES["HiOffPol"], seeds, PAPER, 2000, memory)
    (setting,) = _settings(
        "CliffWalking-v1", ["mce"], [1.0], 2000, "HiOffPol", "sampled", 0.1, mdp.discount, None,
        PAPER.cut, None, 1, 0,
    )  # fmt: skip
    stream = Stream(seeds)
    learner = Learner(setting, Player(lambda: Table(mdp, stream), None, PAPER.cut), stream)
    for _ in range(2000):
        learner.step()
    assert list(learner.rows) == list(range(9))
    assert_array_equal(learner.pi, memory.pi[:9])
    assert_array_equal(learner.q, memory.q[:9])
