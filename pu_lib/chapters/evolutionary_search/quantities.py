"""An evolutionary search for late falls of values in runs of CE with constant weights.

A candidate is an MDP with three actions per state, a discount, a weight for each state and initial
parameters; all of these are coordinates of a box. CE updates every state at every step. The fitness
is the *late drawdown*: the largest fall of a state's value below its highest value so far in the
second half of the run, divided by the range of the rewards. (The total variation would also be
large for runs that merely alternate between two greedy actions.)

A fall can easily be postponed beyond a short horizon, by large initial parameters. The search
therefore has *stages*: the best candidates of a stage are the initial population of the next stage,
whose runs are ten times as long, so only falls that can be postponed again survive. Each restart
has its own seed.

An initial policy far from the uniform policy permits larger falls
(`pu_lib.chapters.cross_entropy.constant_weights`), so in a second kind of restarts the initial
policy of every run is uniform.
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
"""The largest absolute initial parameter; if it is 0, every initial policy is uniform."""
STAGES = ((2_000, 4, 80), (20_000, 1, 30), (200_000, 1, 6))
"""For each stage, the number of steps of a run, the population divided by the number of
coordinates, and the number of generations."""


def bounds(states: int, start: float = START) -> list[tuple[float, float]]:
    """Return the bounds of the rewards, successors, parameters, log weights and discount."""
    pairs = states * ACTIONS
    return [
        *[(-1.0, 1.0)] * pairs,
        *[(-1.0, states - 1e-9)] * pairs,
        *[(-start, start)] * pairs,
        *[(-1.0, 2.0)] * states,
        (0.5, 0.99),
    ]


def candidates(points: Floats, states: int) -> Batch:
    """Return the candidates that points of the box, of shape (n, 10 * states + 1), represent."""
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
    """Return the late drawdown of each candidate; `steps` is rounded down to a multiple of 2000."""
    batch = candidates(np.atleast_2d(points), states)
    _, last = largest_falls(batch.mdps, batch.theta, batch.weights, steps)
    return np.asarray(last / np.ptp(batch.mdps.rewards, axis=(1, 2)))


def _cost(columns: Any, states: int, steps: int) -> Any:
    """Return minus the drawdown of points given as columns, for the optimiser to minimise."""
    return -late_drawdown(np.asarray(columns).T, states, steps)


def evolve(
    seed: int,
    states: int = 3,
    stages: tuple[tuple[int, int, int], ...] = STAGES,
    start: float = START,
) -> list[dict[str, Any]]:
    """Search for late falls by differential evolution; return each stage's best candidate.

    `stages` has the form of `STAGES`.
    """
    rng, box = np.random.default_rng(seed), np.array(bounds(states, start))
    population, best = None, []
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
        best.append(
            {
                "steps": steps,
                "runs": int(size * (generations + 1)),
                "drawdown": float(-result.fun),
                "point": result.x.tolist(),
            }
        )
    return best


def load() -> dict[str, Any]:
    """Return the committed search, with the stages of its restarts and the best candidate."""
    path = resources.files("pu_lib.chapters.evolutionary_search") / "data" / "late-drawdown.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))
