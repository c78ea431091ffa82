r"""A random search for cycles of CE in an open case: weights that are constant in time.

Every state is updated at every step, with a weight :math:`w(s)` that is constant (``"constant"``)
or proportional to the discounted occupancy of the current policy (``"on-policy"``). The MDPs are
deterministic, with integer rewards and one random start each, from three families:

- ``three``: three states, three actions, uniformly drawn successors (the end among them);
- ``four``: the same with four states;
- ``near``: the transitions of the three-state cycle, its rewards changed by -1, 0 or 1.

The discounts are 0.8, 0.9, 0.95 or 0.99; the weights are log-uniform on [0.1, 100], state by
state; the starts are Gaussian with a log-uniform scale on [0.1, 20].

A run is continued, for 40 000 and then for 800 000 steps, if a value *drops* by more than
`TOLERANCE` during the second half of the run before, or if it ends farther than `FAR` from the
optimum (both relative to the optimal values). A run is a *suspect* if it is still far then, or if a
value still drops by more than `SUSPECT` in the second half of the longest horizon. Drops in between
belong to convergent runs: if two actions are optimal and a third one has a probability of
:math:`10^{-6}`, which takes :math:`10^7` steps to vanish, the greedy action keeps changing and the
values move by about as much. The search cannot see loops longer than its horizon, MDPs with more
states, or starts outside the drawn ones. Absence of suspects is evidence, not proof.

MDPs are drawn in blocks of `BLOCK`, each from its own seed, so that any block can be drawn and run
again by itself: `hunt` is the sum of `hunt_block`.
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from importlib import resources
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import as_int
from pu_lib.cycle_examples import THREE_STATES
from pu_lib.deterministic import DeterministicMDP, largest_falls

__all__ = [
    "BLOCK",
    "FAMILIES",
    "FAR",
    "SUSPECT",
    "TOLERANCE",
    "Batch",
    "Record",
    "draw",
    "follow",
    "hunt",
    "hunt_block",
    "load",
]

BLOCK = 1000
"""How many MDPs a block of the committed result has."""

TOLERANCE = 1e-6
"""A value that drops by more than this in the second half of a run still moves."""

SUSPECT = 1e-3
"""A value that drops by more than this at the end of the longest horizon makes a suspect."""

FAR = 0.05
"""A run that ends further than this from the optimal values is far from them."""

HORIZONS = (2_000, 40_000, 800_000)
WEIGHTINGS = ("constant", "on-policy")
FAMILIES = ("three", "four", "near")
"""Where the MDPs come from; the module's text describes the three families."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """MDPs with a start and weights each; runs change the parameters `theta` in place."""

    mdps: DeterministicMDP
    theta: Floats
    weights: Floats


@dataclass(frozen=True)
class Record:
    """Counts over some runs; drops and gaps are relative to the largest optimal value, or to 1.

    Attributes
    ----------
    mdps : int
        How many MDPs were run.
    dropping : int
        In how many some value dropped by more than `TOLERANCE` during the first horizon.
    late : tuple of int
        How many were continued, or would be, after each horizon.
    suspects : tuple of int
        The indices of the suspects.
    largest_drop : float
        The largest drop in the second half of the longest horizon.
    largest_gap : float
        The largest remaining distance to the optimal values.
    """

    mdps: int
    dropping: int
    late: tuple[int, ...]
    suspects: tuple[int, ...]
    largest_drop: float
    largest_gap: float


def draw(family: str, seed: int, block: int, n: int = BLOCK) -> Batch:
    """Draw the MDPs of a block with their starts and weights."""
    if family not in FAMILIES:
        raise ValueError(f"family: expected one of {FAMILIES}, got {family!r}.")
    rng = np.random.default_rng([seed, FAMILIES.index(family), block])
    if family == "near":
        cycle = THREE_STATES.tables
        shift = rng.integers(-1, 2, (n, *cycle.rewards.shape))
        rewards = cycle.rewards + cycle.real * shift
        successors = np.broadcast_to(cycle.successors, rewards.shape).copy()
        n_actions = cycle.n_actions
    else:
        states = {"three": 3, "four": 4}[family]
        n_actions = np.full(states, 3)
        rewards = rng.integers(-10, 11, (n, states, 3)).astype(np.float64)
        successors = rng.integers(-1, states, (n, states, 3))
    shape = rewards.shape
    scale = 10.0 ** rng.uniform(-1.0, np.log10(20.0), (n, 1, 1))
    theta = scale * rng.standard_normal(shape)
    discounts = rng.choice([0.8, 0.9, 0.95, 0.99], n)
    mdps = DeterministicMDP(rewards, successors, n_actions, discounts)
    return Batch(mdps, theta, 10.0 ** rng.uniform(-1.0, 2.0, shape[:2]))


def _run(batch: Batch, rows: Ints, weighting: str, steps: int) -> tuple[Floats, Floats]:
    """Continue some runs of a batch and return the largest drops in the first and second half."""
    theta = batch.theta[rows]
    falls = largest_falls(
        batch.mdps[rows], theta, batch.weights[rows], steps, weighting == "on-policy"
    )
    batch.theta[rows] = theta
    return falls


def hunt_block(
    family: str, seed: int, block: int, weighting: str = "constant", n: int = BLOCK
) -> Record:
    """Run one block of MDPs, every run for as long as it moves or is far from the optimum."""
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting: expected one of {WEIGHTINGS}, got {weighting!r}.")
    batch = draw(family, seed, block, n)
    best = batch.mdps.optimum()
    scale = np.maximum(np.abs(best).max(axis=1), 1.0)
    rows = np.arange(n)
    dropping, late = 0, []
    for steps in HORIZONS:
        first, last = (drop / scale[rows] for drop in _run(batch, rows, weighting, steps))
        if steps == HORIZONS[0]:
            dropping = int(np.count_nonzero(np.maximum(first, last) > TOLERANCE))
        gap = (best - batch.mdps.values(batch.theta)).max(axis=1) / scale
        moving = (last > TOLERANCE) | (gap[rows] > FAR)
        rows, last = rows[moving], last[moving]
        late.append(len(rows))
    return Record(
        mdps=n,
        dropping=dropping,
        late=tuple(late),
        suspects=tuple(rows[(last > SUSPECT) | (gap[rows] > FAR)].tolist()),
        largest_drop=float(last.max(initial=0.0)),
        largest_gap=float(gap.max()),
    )


def follow(family: str, seed: int, block: int, index: int, weighting: str, steps: int) -> Record:
    """Run one MDP of a block from its start: what a suspect does when it is given more time.

    The number of steps is rounded down to whole chunks of the compiled process; the drop is that of
    the second half.
    """
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting: expected one of {WEIGHTINGS}, got {weighting!r}.")
    drawn = draw(family, seed, block)
    one = slice(index, index + 1)
    batch = Batch(drawn.mdps[one], drawn.theta[one], drawn.weights[one])
    best = batch.mdps.optimum()
    scale = max(1.0, float(np.abs(best).max()))
    first, last = _run(batch, np.array([0]), weighting, steps)
    drop, gap = float(last[0]) / scale, float((best - batch.mdps.values(batch.theta)).max()) / scale
    moving = drop > TOLERANCE or gap > FAR
    suspect = drop > SUSPECT or gap > FAR
    return Record(
        mdps=1,
        dropping=int(max(float(first[0]) / scale, drop) > TOLERANCE),
        late=(int(moving),),
        suspects=(index,) if suspect else (),
        largest_drop=drop,
        largest_gap=gap,
    )


def hunt(n_mdps: int, seed: int = 0, weighting: str = "constant") -> dict[str, Any]:
    """Run a third of `n_mdps` MDPs of each family, rounded up to whole blocks, and add up."""
    start = time.perf_counter()
    n_mdps, seed = as_int("n_mdps", n_mdps, low=1), as_int("seed", seed, low=0)
    blocks = -(-n_mdps // (BLOCK * len(FAMILIES)))
    families = {}
    for family in FAMILIES:
        records = [hunt_block(family, seed, block, weighting) for block in range(blocks)]
        families[family] = {
            "mdps": sum(r.mdps for r in records),
            "dropping": sum(r.dropping for r in records),
            "late": [sum(r.late[k] for r in records) for k in range(len(HORIZONS))],
            "suspects": [[b, i] for b, r in enumerate(records) for i in r.suspects],
            "largest_drop": max(r.largest_drop for r in records),
            "largest_gap": max(r.largest_gap for r in records),
            "first_block": asdict(records[0]),
        }
    return {
        "command": f"python -m pu_lib hunt --mdps {n_mdps} --seed {seed} --weighting {weighting}",
        "seed": seed,
        "weighting": weighting,
        "horizons": list(HORIZONS),
        "tolerance": TOLERANCE,
        "suspect": SUSPECT,
        "far": FAR,
        "mdps": sum(row["mdps"] for row in families.values()),
        "seconds": round(time.perf_counter() - start, 1),
        "families": families,
    }


def load(weighting: str = "constant") -> dict[str, Any]:
    """Return the committed result of the large search."""
    path = resources.files("pu_lib.chapters.random_search") / "data" / f"hunt-{weighting}.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))
