r"""A random search for cycles of CE with weights that are constant in time, an open case.

Every state is updated at every step, with a weight :math:`w(s)` that is constant (``"constant"``)
or is multiplied by the discounted occupancy of the current policy (``"on-policy"``). The MDPs are
deterministic and have integer rewards and one random initial policy each. They belong to three
families:

- ``three``: three states, three actions, and uniformly drawn successors, including the end;
- ``four``: four states, and otherwise the same;
- ``near``: the transitions of the three-state cycle, with its rewards changed by -1, 0 or 1.

The discounts are 0.8, 0.9, 0.95 or 0.99. The weight of each state is log-uniform on [0.1, 100]. The
initial parameters are Gaussian with a log-uniform scale on [0.1, 20].

All drops and gaps are relative to the optimal values. A run is continued, first for 40 000 and then
for 800 000 steps, if a value drops by more than `DROP_TOLERANCE` in the second half of the last
horizon, or if the run ends farther than `FAR_GAP` from the optimum. A run is a *suspect* if it is
still farther than `FAR_GAP` from the optimum after the longest horizon, or if a value still drops
by more than `SUSPECT_DROP` in the second half of that horizon. Drops between the two tolerances
belong to convergent runs: if two actions are optimal and a third action has a probability of
:math:`10^{-6}`, which takes :math:`10^7` steps to vanish, the greedy action keeps changing and the
values change by about :math:`10^{-6}`. The search cannot find cycles that are longer than the
horizon, and it does not cover MDPs with more states or initial policies outside the drawn range. A
search without suspects is evidence, not proof.

MDPs are drawn in blocks of `BLOCK_SIZE`, each from its own seed, so that any block can be
reproduced separately. `search` sums the counts of `search_block`.
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
    "BLOCK_SIZE",
    "DROP_TOLERANCE",
    "FAMILIES",
    "FAR_GAP",
    "SUSPECT_DROP",
    "Batch",
    "SearchCounts",
    "draw",
    "load",
    "run_one",
    "search",
    "search_block",
]

BLOCK_SIZE = 1000
"""The number of MDPs in a block of the committed results."""

DROP_TOLERANCE = 1e-6
"""A run has not settled if a value drops by more than this in its second half."""

SUSPECT_DROP = 1e-3
"""A run is a suspect if a value drops by more than this late in the longest horizon."""

FAR_GAP = 0.05
"""A run that ends farther than this from the optimum is continued or, at the end, a suspect."""

HORIZONS = (2_000, 40_000, 800_000)
"""The numbers of steps; each horizon continues the runs of the previous horizon."""
WEIGHTINGS = ("constant", "on-policy")
FAMILIES = ("three", "four", "near")
"""The families of MDPs, described in the module's docstring."""

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """MDPs with the initial parameters and weights of each; a run updates `theta` in place."""

    mdps: DeterministicMDP
    theta: Floats
    weights: Floats


@dataclass(frozen=True)
class SearchCounts:
    """The counts over a number of runs.

    Drops and gaps are relative to the largest absolute optimal value, or to 1 if 1 is larger.

    Attributes
    ----------
    mdps : int
        The number of MDPs.
    dropping : int
        The number of runs with a drop of more than `DROP_TOLERANCE` in the first horizon.
    late : tuple of int
        The number of runs that had not settled after each horizon.
    suspects : tuple of int
        The indices of the MDPs whose runs are suspects.
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


def draw(family: str, seed: int, block: int, n: int = BLOCK_SIZE) -> Batch:
    """Draw the MDPs of a block with their initial parameters and weights."""
    if family not in FAMILIES:
        raise ValueError(f"family: expected one of {FAMILIES}, got {family!r}.")
    rng = np.random.default_rng([seed, FAMILIES.index(family), block])
    if family == "near":
        cycle = THREE_STATES.tables
        shift = rng.integers(-1, 2, (n, *cycle.rewards.shape))
        rewards = cycle.rewards + cycle.is_action * shift
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


def _advance(batch: Batch, rows: Ints, weighting: str, steps: int) -> tuple[Floats, Floats]:
    """Continue the runs `rows` of a batch; return the largest drops in each half of the steps."""
    theta = batch.theta[rows]
    falls = largest_falls(
        batch.mdps[rows], theta, batch.weights[rows], steps, weighting == "on-policy"
    )
    batch.theta[rows] = theta
    return falls


def search_block(
    family: str, seed: int, block: int, weighting: str = "constant", n: int = BLOCK_SIZE
) -> SearchCounts:
    """Run one block of MDPs, continuing the runs that have not settled, and return the counts."""
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting: expected one of {WEIGHTINGS}, got {weighting!r}.")
    batch = draw(family, seed, block, n)
    best = batch.mdps.optimum()
    scale = np.maximum(np.abs(best).max(axis=1), 1.0)
    rows = np.arange(n)
    dropping, late = 0, []
    for steps in HORIZONS:
        first, last = (drop / scale[rows] for drop in _advance(batch, rows, weighting, steps))
        if steps == HORIZONS[0]:
            dropping = int(np.count_nonzero(np.maximum(first, last) > DROP_TOLERANCE))
        gap = (best - batch.mdps.values(batch.theta)).max(axis=1) / scale
        moving = (last > DROP_TOLERANCE) | (gap[rows] > FAR_GAP)
        rows, last = rows[moving], last[moving]
        late.append(len(rows))
    return SearchCounts(
        mdps=n,
        dropping=dropping,
        late=tuple(late),
        suspects=tuple(rows[(last > SUSPECT_DROP) | (gap[rows] > FAR_GAP)].tolist()),
        largest_drop=float(last.max(initial=0.0)),
        largest_gap=float(gap.max()),
    )


def run_one(
    family: str, seed: int, block: int, index: int, weighting: str, steps: int
) -> SearchCounts:
    """Run one MDP of a block from its initial parameters, to test if a suspect settles later.

    Each half of `steps` is rounded down to a multiple of the chunk of the compiled loop.
    `largest_drop` is the largest drop in the second half.
    """
    if weighting not in WEIGHTINGS:
        raise ValueError(f"weighting: expected one of {WEIGHTINGS}, got {weighting!r}.")
    drawn = draw(family, seed, block)
    one = slice(index, index + 1)
    batch = Batch(drawn.mdps[one], drawn.theta[one], drawn.weights[one])
    best = batch.mdps.optimum()
    scale = max(1.0, float(np.abs(best).max()))
    first, last = _advance(batch, np.array([0]), weighting, steps)
    drop, gap = float(last[0]) / scale, float((best - batch.mdps.values(batch.theta)).max()) / scale
    moving = drop > DROP_TOLERANCE or gap > FAR_GAP
    suspect = drop > SUSPECT_DROP or gap > FAR_GAP
    return SearchCounts(
        mdps=1,
        dropping=int(max(float(first[0]) / scale, drop) > DROP_TOLERANCE),
        late=(int(moving),),
        suspects=(index,) if suspect else (),
        largest_drop=drop,
        largest_gap=gap,
    )


def search(n_mdps: int, seed: int = 0, weighting: str = "constant") -> dict[str, Any]:
    """Search `n_mdps` MDPs, a third from each family, rounded up to whole blocks."""
    start = time.perf_counter()
    n_mdps, seed = as_int("n_mdps", n_mdps, low=1), as_int("seed", seed, low=0)
    blocks = -(-n_mdps // (BLOCK_SIZE * len(FAMILIES)))
    families = {}
    for family in FAMILIES:
        records = [search_block(family, seed, block, weighting) for block in range(blocks)]
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
        "command": f"python -m pu_lib.chapters.random_search --mdps {n_mdps} --seed {seed} "
        f"--weighting {weighting}",
        "seed": seed,
        "weighting": weighting,
        "horizons": list(HORIZONS),
        "tolerance": DROP_TOLERANCE,
        "suspect": SUSPECT_DROP,
        "far": FAR_GAP,
        "mdps": sum(row["mdps"] for row in families.values()),
        "seconds": round(time.perf_counter() - start, 1),
        "families": families,
    }


def load(weighting: str = "constant") -> dict[str, Any]:
    """Return the committed result of the large search, in the form that `search` returns."""
    path = resources.files("pu_lib.chapters.random_search") / "data" / f"{weighting}.json"
    return dict(json.loads(path.read_text(encoding="utf-8")))
