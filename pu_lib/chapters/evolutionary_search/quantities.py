r"""An evolutionary search for CE runs that fall late, with weights constant in time.

`pu_lib.chapters.random_search.quantities` draws MDPs at random; here they are bred. A candidate is an MDP with three
actions a state, a discount, a weight for each state and a start, all of them coordinates of a box;
CE updates every state at every step. Its fitness is the *late drawdown*: the largest fall of a
state's value from its highest point in the second half of the run, over the range of the rewards.
Chatter between two greedy actions, which fools the total variation, scores next to nothing.

What falls late within a short horizon is easy to breed: the start only has to be far away. So the
horizon is *staged*. The best of a stage are the first population of the next, which runs ten times
as long, and a family of runs that merely postpones its fall dies out there unless it can
postpone it again. Each restart has a seed of its own.

A start far from the uniform policy can pay for falls (`pu_lib.chapters.cross_entropy.constant_weights`). So
there are restarts of a second kind, whose runs all begin at the uniform policy. Whatever falls late
there has been earned on the way.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, differential_evolution

from pu_lib.deterministic import DeterministicMDP, softmax_token
from pu_lib.updates import UPDATES

__all__ = ["STAGES", "Candidates", "breed", "candidates", "late_drawdown", "load"]

Floats = NDArray[np.float64]

ACTIONS = 3
START = 30.0
"""How far the parameters of a bred start may be from zero; at 0 every run starts at the uniform
policy, which can pay for little (`pu_lib.chapters.cross_entropy.constant_weights`)."""
STAGES = ((2_000, 4, 80), (20_000, 1, 30), (200_000, 1, 6))
"""Of each stage: the steps of a run, the population as a multiple of the coordinates, and the
generations."""


@dataclass(frozen=True)
class Candidates:
    """A population, read: MDPs with their weights and starts.

    Attributes
    ----------
    mdps : DeterministicMDP
        n MDPs of S states and three actions.
    weights : ndarray, shape (n, S)
        Weights, constant in time.
    theta : ndarray, shape (n, S, 3)
        Parameters at the start.
    """

    mdps: DeterministicMDP
    weights: Floats
    theta: Floats


def bounds(states: int, start: float = START) -> list[tuple[float, float]]:
    """Return the box: rewards, successors, starts, logarithms of the weights, and the discount."""
    pairs = states * ACTIONS
    return [
        *[(-1.0, 1.0)] * pairs,
        *[(-1.0, states - 1e-9)] * pairs,
        *[(-start, start)] * pairs,
        *[(-1.0, 2.0)] * states,
        (0.5, 0.99),
    ]


def candidates(points: Floats, states: int) -> Candidates:
    """Read points of the box as candidates.

    Parameters
    ----------
    points : ndarray, shape (n, 10 states + 1)
        Rewards in [-1, 1], successors (rounded down; -1 is the end), starts in [-30, 30],
        weights as powers of ten, and the discount.
    states : int
        The number of states.

    Returns
    -------
    Candidates
        The MDPs, weights and starts.
    """
    pairs, shape = states * ACTIONS, (len(points), states, ACTIONS)
    rewards, successors, theta = (
        points[:, k * pairs : (k + 1) * pairs].reshape(shape) for k in range(3)
    )
    mdps = DeterministicMDP(
        np.ascontiguousarray(rewards),
        np.floor(successors).astype(np.int64),
        np.full(states, ACTIONS),
        np.ascontiguousarray(points[:, -1]),
    )
    return Candidates(mdps, 10.0 ** points[:, 3 * pairs : -1], np.array(theta))


def late_drawdown(points: Floats, states: int, steps: int) -> Floats:
    """Run CE and return the late drawdown of each candidate.

    Parameters
    ----------
    points : ndarray, shape (n, 10 states + 1)
        Candidates, as `candidates` reads them.
    states : int
        The number of states.
    steps : int
        Steps of the run, a multiple of 2000; falls in the second half count.

    Returns
    -------
    ndarray, shape (n,)
        The largest fall of a value in the second half over the range of the rewards.
    """
    from pu_lib.engine.exact import scan  # imports numba

    bred = candidates(np.atleast_2d(points), states)
    first, last = np.zeros(len(bred.weights)), np.zeros(len(bred.weights))
    scan(
        softmax_token(UPDATES["ce"]),
        bred.mdps.rewards,
        bred.mdps.successors,
        bred.mdps.n_actions,
        bred.mdps.discount,
        bred.theta,
        bred.weights,
        False,
        steps,
        first,
        last,
    )
    return np.asarray(last / np.ptp(bred.mdps.rewards, axis=(1, 2)))


@dataclass(frozen=True)
class _Cost:
    """What the evolution minimises: the drawdown with its sign turned, of columns."""

    states: int
    steps: int

    def __call__(self, columns: Any) -> Any:
        return -late_drawdown(np.asarray(columns).T, self.states, self.steps)


def breed(
    seed: int,
    states: int = 3,
    stages: tuple[tuple[int, int, int], ...] = STAGES,
    start: float = START,
) -> list[dict[str, Any]]:
    """Breed runs that fall late, by differential evolution through the stages.

    Parameters
    ----------
    seed : int
        Seed of the restart.
    states : int
        The number of states, at least 2.
    stages : tuple of (int, int, int)
        Horizon, population as a multiple of the coordinates, and generations, stage by stage.
    start : float
        How far the parameters of a start may be from zero.

    Returns
    -------
    list of dict
        For each stage its ``steps``, the number of ``runs``, the best ``drawdown`` and its
        ``point``.
    """
    rng, box = np.random.default_rng(seed), np.array(bounds(states, start))
    population, found = None, []
    for steps, multiple, generations in stages:
        size = multiple * len(box)
        spread = box[:, 0] + np.ptp(box, axis=1) * rng.random((size, len(box)))
        result: Any = differential_evolution(
            _Cost(states, steps),
            Bounds(box[:, 0], box[:, 1]),
            init=spread if population is None else population[:size],
            popsize=multiple,
            maxiter=generations,
            tol=0.0,
            polish=False,
            vectorized=True,
            updating="deferred",
            rng=rng,
        )
        population = result.population[np.argsort(result.population_energies)]
        found.append(
            {
                "steps": steps,
                "runs": int(size * (generations + 1)),
                "drawdown": float(-result.fun),
                "point": result.x.tolist(),
            }
        )
    return found


def load() -> dict[str, Any]:
    """Return the committed search: its restarts, stage by stage, and the best witness."""
    path = resources.files("pu_lib.chapters.evolutionary_search") / "data" / "late-drawdown.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))
