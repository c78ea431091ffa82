"""A run of a method on a task, which can be copied at any update."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.engine import networks as engine
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
    pays : tuple of tuple of float
        What the two ends pay before and after the change.
    memory : int
        The number of transitions kept.
    """

    name: str
    title: str
    kind: int
    inputs: int
    actions: int
    gamma: float
    exploration: float
    pays: tuple[tuple[float, float], tuple[float, float]]
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


class Learner:
    """Two networks that learn a task.

    Parameters
    ----------
    task : Task
    method : str
        One of `pu_lib.engine.networks.METHODS`.
    step_size : float
        The step size of the actor.
    seed : int
        The seed of all randomness.
    """

    def __init__(self, task: Task, method: str, step_size: float, seed: int) -> None:
        self.name = f"{method} with step size {step_size:g} and seed {seed} on {task.name}"
        self.task, self.method = task, engine.METHODS.index(method)
        self.step_size = step_size
        self.words = seed_state(seed, "networks", 0)
        units, batch = engine.UNITS, engine.BATCH
        rows = engine.rows(task.inputs, task.actions)
        self.counts = np.zeros(2, np.int64)
        self.powers = np.ones(4)
        self.networks = np.zeros((3, rows, units))
        self.moments = np.zeros((4, rows, units))
        self.states = np.zeros((batch, 5))
        self.memory = np.zeros((task.memory, 2 * task.inputs + 3))
        self._scratch = (
            np.zeros((units, units)),
            np.zeros((3, batch, task.inputs)),
            np.zeros((6, batch, units)),
            np.zeros((8, batch, task.actions)),
            np.zeros((rows, units)),
        )
        draws = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed)))
        bias = {"pg-es": 1.0, "di fit": 1.0 / task.actions}.get(method, 0.0)
        for network, last in ((1, 0.0), (0, bias)):
            self.networks[network] = self._draw(draws, last)
        self.networks[2] = self.networks[1]
        engine.start_all(task.kind, self.states, self.words)

    def _draw(self, draws: np.random.Generator, bias: float) -> Floats:
        """Return weights of variance 1/n for n inputs, a tenth of that in the last layer's size."""
        units, task = engine.UNITS, self.task
        active = 2 if task.kind == engine.GRID else task.inputs

        def weights(count: int, fan_in: int, scale: float = 1.0) -> Floats:
            return np.asarray((2 * draws.random((count, units)) - 1) * scale * np.sqrt(3 / fan_in))

        none = np.zeros((1, units))
        last = none.copy()
        last[0, : task.actions] = bias
        return np.concatenate(
            [
                weights(task.inputs, active),
                none,
                weights(units, units),
                none,
                weights(task.actions, units, 0.1),
                last,
            ]
        )

    def learn(self, updates: int, phase: int) -> Floats:
        """Return the reward and the episodes that ended, for each ten of a number of updates.

        Raises a `ValueError` if a parameter is not finite afterwards.
        """
        task = self.task
        earned = np.zeros((-(-updates // engine.WINDOW), 2))
        engine.train(
            task.kind,
            np.array(task.pays),
            phase,
            self.method,
            self.step_size,
            task.gamma,
            task.exploration,
            updates,
            self.words,
            self.counts,
            self.powers,
            self.networks,
            self.moments,
            self.states,
            self.memory,
            *self._scratch,
            earned,
        )
        # The loop does not check them. A parameter that is not finite stays so.
        if not np.isfinite(self.networks).all():
            raise ValueError(
                f"run of {self.name}: the parameters leave the range of floats (1.8e308) within "
                f"{self.counts[0]} updates; use a smaller step size."
            )
        return earned

    def values_of_chain(self) -> Floats:
        """Return the critic's values in the inner states of a chain, shape (7, A)."""
        turns = np.pi / 8 * np.outer(np.arange(1, 8), np.arange(1, 5))
        x = np.zeros((engine.BATCH, 4))
        x[:7] = np.cos(turns)
        h1, h2 = np.zeros((2, engine.BATCH, engine.UNITS))
        values = np.zeros((engine.BATCH, 2))
        engine.forward(self.networks, 1, x, h1, h2, values)
        return values[:7]

    def copy(self) -> Learner:
        """Return a copy that shares nothing with this one."""
        return deepcopy(self)
