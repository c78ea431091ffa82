"""An evolutionary search for CE runs that fall late, with weights constant in time.

A candidate is an MDP with three actions a state, a discount, a weight for each state and a start,
all of them coordinates of a box. CE updates every state at every step. The fitness is the *late
drawdown*: the largest fall of a state's value from its highest point in the second half of the run,
divided by the range of the rewards. (The total variation would be large for runs that merely
alternate between two greedy actions.)

A fall can easily be postponed beyond a short horizon, by a start that is far away. The search
therefore has *stages*: the best candidates of a stage are the initial population of the next, whose
runs are ten times as long, so that only falls that can be postponed again survive. Each restart has
its own seed.

A start far from the uniform policy can pay for falls
(`pu_lib.chapters.cross_entropy.constant_weights`), so restarts of a second kind start all runs at
the uniform policy.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, differential_evolution

from pu_lib.chapters.random_search.quantities import Batch
from pu_lib.deterministic import DeterministicMDP, largest_falls

__all__ = ["STAGES", "candidates", "evolve", "late_drawdown", "load"]

Floats = NDArray[np.float64]

ACTIONS = 3
START = 30.0
"""The largest absolute parameter of a start; at 0 all runs start at the uniform policy."""
STAGES = ((2_000, 4, 80), (20_000, 1, 30), (200_000, 1, 6))
"""For each stage: the steps of a run, the population over the number of coordinates, and the number
of generations.
"""


def bounds(states: int, start: float = START) -> list[tuple[float, float]]:
    """Return the bounds of rewards, successors, starts, log weights and the discount."""
    pairs = states * ACTIONS
    return [
        *[(-1.0, 1.0)] * pairs,
        *[(-1.0, states - 1e-9)] * pairs,
        *[(-start, start)] * pairs,
        *[(-1.0, 2.0)] * states,
        (0.5, 0.99),
    ]


def candidates(points: Floats, states: int) -> Batch:
    """Decode points of the box, shape (n, 10 states + 1), as candidates."""
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
    return Batch(mdps, np.array(theta), 10.0 ** points[:, 3 * pairs : -1])


def late_drawdown(points: Floats, states: int, steps: int) -> Floats:
    """Return the late drawdown of each candidate, over runs of a multiple of 2000 steps."""
    batch = candidates(np.atleast_2d(points), states)
    _, last = largest_falls(batch.mdps, batch.theta, batch.weights, steps)
    return np.asarray(last / np.ptp(batch.mdps.rewards, axis=(1, 2)))


def _cost(columns: Any, states: int, steps: int) -> Any:
    """Return minus the drawdown of points given as columns, as the optimiser minimises."""
    return -late_drawdown(np.asarray(columns).T, states, steps)


def evolve(
    seed: int,
    states: int = 3,
    stages: tuple[tuple[int, int, int], ...] = STAGES,
    start: float = START,
) -> list[dict[str, Any]]:
    """Search for runs that fall late by differential evolution; return each stage's best candidate.

    `stages` has the form of `STAGES`.
    """
    rng, box = np.random.default_rng(seed), np.array(bounds(states, start))
    population, found = None, []
    for steps, multiple, generations in stages:
        size = multiple * len(box)
        spread = box[:, 0] + np.ptp(box, axis=1) * rng.random((size, len(box)))
        result: Any = differential_evolution(
            _cost,
            Bounds(box[:, 0], box[:, 1]),
            args=(states, steps),
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
