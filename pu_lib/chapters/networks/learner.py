"""Learners: a method on a task that changes once."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.engine import networks as engine
from pu_lib.engine import ppo
from pu_lib.experiments.jekyll_hyde import seed_state


@dataclass(frozen=True)
class Task:
    """A task that changes once.

    Attributes
    ----------
    name, title : str
        The name in the table of runs, and in the text.
    kind : int
        The chain, the grid or CartPole.
    inputs, actions : int
        The numbers of features and of actions.
    gamma, exploration : float
        The discount factor, and the probability of an action drawn uniformly.
    end_rewards : tuple of tuple of float
        The rewards of the two ends, before and after the change.
    memory : int
        The number of transitions that are stored.
    """

    name: str
    title: str
    kind: int
    inputs: int
    actions: int
    gamma: float
    exploration: float
    end_rewards: tuple[tuple[float, float], tuple[float, float]]
    memory: int = engine.BATCH


TASKS = {
    task.name: task
    for task in (
        Task("chain", "chain, 0 and 1", engine.CHAIN, 4, 2, 0.9, 0.1, ((0.0, 1.0), (1.0, 0.0))),
        Task("chain .2", "chain, .2 and 1", engine.CHAIN, 4, 2, 0.9, 0.1, ((0.2, 1.0), (1.0, 0.2))),
        Task("grid", "grid", engine.GRID, 14, 4, 0.9, 0.1, ((0.2, 1.0), (1.0, 0.2))),
        Task(
            "cart pole", "CartPole", engine.POLE, 4, 2, 0.95, 0.05, ((0.0, 0.0), (0.0, 0.0)), 9600
        ),
    )
}

LARGE_GRID = Task(
    "large grid", "grid of 11 × 11", engine.LARGE, 22, 4, 0.9, 0.1, ((0.2, 1.0), (1.0, 0.2))
)
"""A task of the second protocol only."""


class Learner:
    """An actor and a critic that learn a task.

    Parameters
    ----------
    task : Task
    method : str
        One of `pu_lib.engine.networks.METHODS`.
    step_size : float
        The step size of the actor.
    seed : int
        The seed of all randomness.
    bonus : float, optional
        The weight of the entropy.
    adam : bool, optional
        Whether the actor's steps are those of Adam, and not plain gradient steps.
    """

    state: engine.TrainState | ppo.State

    def __init__(
        self,
        task: Task,
        method: str,
        step_size: float,
        seed: int,
        bonus: float = engine.BONUS,
        adam: bool = False,
    ) -> None:
        self.name = f"{method} with step size {step_size:g} and seed {seed} on {task.name}"
        self.task, self.method = task, engine.METHODS.index(method)
        self.step_size, self.bonus, self.adam = step_size, bonus, adam
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        critic = self._new_network(rng, task.actions)
        bias = {"pg-es": 1.0, "di fit": 1.0 / task.actions}.get(method, 0.0)
        actor = self._new_network(rng, task.actions, bias)
        self.state = engine.TrainState(
            words=seed_state(seed, "networks", 0),
            counts=np.zeros(2, np.int64),
            actor=actor,
            critic=critic,
            target=critic.parameters.copy(),
            tasks=np.zeros((engine.BATCH, 5)),
            transitions=np.zeros((task.memory, 2 * task.inputs + 3)),
        )
        self._workspace = engine.new_workspace(task.inputs, task.actions)
        engine.start_all(task.kind, self.state.tasks, self.state.words)

    def _new_network(
        self, rng: np.random.Generator, outputs: int, bias: float = 0.0
    ) -> engine.Network:
        """Return a network with a bias of its outputs and with random weights.

        Weights have variance 1/n for n inputs; those of the last layer are ten times smaller.
        """
        units, task = engine.UNITS, self.task
        active = 2 if task.kind in (engine.GRID, engine.LARGE) else task.inputs

        def weights(count: int, fan_in: int, scale: float = 1.0) -> Floats:
            return np.asarray((2 * rng.random((count, units)) - 1) * scale * np.sqrt(3 / fan_in))

        zeros = np.zeros((1, units))
        last = zeros.copy()
        last[0, :outputs] = bias
        parameters = np.concatenate(
            [
                weights(task.inputs, active),
                zeros,
                weights(units, units),
                zeros,
                weights(outputs, units, 0.1),
                last,
            ]
        )
        return engine.Network(parameters, np.zeros((2, *parameters.shape)), np.ones(2))

    def learn(self, updates: int, phase: int) -> Floats:
        """Make a number of updates.

        Parameters
        ----------
        updates : int
            The number of updates.
        phase : {0, 1}
            Before or after the change.

        Returns
        -------
        ndarray, shape (windows, 2)
            The sum of the rewards and the number of ended episodes in each ten updates.

        Raises
        ------
        ValueError
            If a parameter is not finite afterwards.
        """
        task = self.task
        settings = engine.Settings(
            kind=task.kind,
            phase=phase,
            end_rewards=np.array(task.end_rewards[phase]),
            gamma=task.gamma,
            exploration=task.exploration,
            method=self.method,
            step_size=self.step_size,
            bonus=self.bonus,
            adam=self.adam,
        )
        earned = np.zeros((-(-updates // engine.WINDOW), 2))
        self._train(settings, updates, earned)
        # The loop does not check the parameters. One that is not finite stays so.
        if not all(
            np.isfinite(network.parameters).all()
            for network in (self.state.actor, self.state.critic)
        ):
            raise ValueError(
                f"run of {self.name}: the parameters leave the range of floats (1.8e308) within "
                f"{self.state.counts[0]} updates; use a smaller step size."
            )
        return earned

    def _train(self, settings: engine.Settings, updates: int, earned: Floats) -> None:
        engine.train(settings, self.state, self._workspace, updates, earned)

    def values_of_chain(self) -> Floats:
        """Return the critic's values of the inner states of a chain, shape (7, A)."""
        turns = np.pi / 8 * np.outer(np.arange(1, 8), np.arange(1, 5))
        x = np.zeros((engine.BATCH, 4))
        x[:7] = np.cos(turns)
        layers = engine.new_layers(2)
        engine.forward(self.state.critic.parameters, x, layers)
        return layers.outputs[:7]

    def copy(self) -> Learner:
        """Return a deep copy."""
        return deepcopy(self)


class PPO(Learner):
    """PPO with a critic of states, rollouts of ten updates, and Adam.

    Parameters
    ----------
    task : Task
    shared : bool
        Whether actor and critic are one network.
    step_size : float
        The step size of the actor, or of the shared network.
    seed : int
        The seed of all randomness.
    bonus : float
        The weight of the entropy.
    """

    def __init__(self, task: Task, shared: bool, step_size: float, seed: int, bonus: float) -> None:
        super().__init__(task, "pg-sm", step_size, seed, bonus, adam=True)
        self.name = f"PPO with step size {step_size:g} and seed {seed} on {task.name}"
        self.shared = shared
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        critic = self._new_network(rng, task.actions + 1 if shared else 1)
        actor = critic if shared else self._new_network(rng, task.actions)
        old = self.state
        self.state = ppo.State(
            old.words, old.counts, actor, critic, old.tasks, np.arange(ppo.ROLLOUT)
        )
        self._rollout = ppo.new_workspace(task.inputs, task.actions, shared)

    def _train(self, settings: engine.Settings, updates: int, earned: Floats) -> None:
        rollouts, rest = divmod(updates, ppo.STEPS)
        if rest:
            raise ValueError(f"updates: expected a multiple of {ppo.STEPS}, got {updates}.")
        ppo.train(settings, self.shared, self.state, self._rollout, rollouts, earned)
