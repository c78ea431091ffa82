"""A race: the five updates over a grid of learning rates on one process, the reader's own.

Every update meets the same random streams at every rate. The rate that counts for an update is the
one with the smallest restricted mean time to the target; choosing it from the same runs makes that
mean a little too small, for all updates alike.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from pu_lib.empirical.options import SCHEMES, describe, parse
from pu_lib.empirical.store import Cell, Chunk
from pu_lib.empirical.sweep import load_process, run_chunk, sized
from pu_lib.empirical.thresholds import Summary, summarise
from pu_lib.updates import PAPER

__all__ = ["RACE_RATES", "Entry", "as_text", "race"]

RACE_RATES = (0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0)
"""Default grid of a race."""


@dataclass(frozen=True)
class Entry:
    """The times to the target of one update.

    Attributes
    ----------
    update : str
        Name of the update.
    summaries : dict of float to Summary
        The summary at each learning rate.
    """

    update: str
    summaries: dict[float, Summary]

    @property
    def best_rate(self) -> float:
        """The learning rate with the smallest restricted mean, the smaller of tied ones."""
        return min(self.summaries, key=lambda eta: (self.summaries[eta].mean, eta))

    @property
    def best(self) -> Summary:
        """The summary at the best rate."""
        return self.summaries[self.best_rate]


def race(
    process: str,
    scheme: str = "HiOffPol",
    rates: Sequence[float] = RACE_RATES,
    runs: int = 20,
    max_steps: int = 200_000,
    target: float = 0.95,
    preset: str = "paper",
    seed: int = 0,
    workers: int | None = None,
) -> list[Entry]:
    """Race the five updates on a process, the fastest first.

    Parameters
    ----------
    process : str
        A Gymnasium id or an ``.npz`` file of `FiniteMDP.save`.
    scheme : str
        Exploration scheme.
    rates : sequence of float
        Learning rates of the actor.
    runs, max_steps : int
        Runs of each setting, and their cap.
    target : float
        Performance to reach, normalised between the uniform and the optimal policy.
    preset : str
        The open details, as `pu_lib.empirical.options.parse` reads them.
    seed : int
        Root of all randomness.
    workers : int, optional
        Threads; as many as there are processors if missing.

    Raises
    ------
    ValueError
        If the process cannot be read, has nothing to learn, or a number is out of range.
    """
    if scheme not in SCHEMES:
        raise ValueError(f"scheme: expected one of {', '.join(SCHEMES)}, got {scheme!r}.")
    if runs < 1 or max_steps < 1:
        raise ValueError(f"runs, steps: expected at least one of each, got {runs}, {max_steps}.")
    if not rates or any(not (math.isfinite(eta) and eta > 0.0) for eta in rates):
        raise ValueError(f"eta: expected finite numbers > 0, got {list(rates)}.")
    load_process(process)  # speaks up about a process that cannot be read
    cells = [
        sized(
            Cell(
                experiment="race",
                domain=process,
                scheme=scheme,
                update=update,
                eta=eta,
                n_states=0,
                n_actions=0,
                beta=math.nan,
                preset=describe(parse(preset)),
                max_steps=max_steps,
                target=target,
                seed=seed,
            )
        )
        for update in PAPER
        for eta in rates
    ]
    with ThreadPoolExecutor(workers or os.cpu_count() or 1) as pool:
        measured = pool.map(run_chunk, [Chunk(cell, 0, runs) for cell in cells])
    summaries: dict[str, dict[float, Summary]] = {update: {} for update in PAPER}
    for cell, columns in zip(cells, measured, strict=True):
        summaries[cell.update][cell.eta] = summarise(
            columns["steps"], columns["censored"], horizon=max_steps
        )
    entries = [Entry(update, by_rate) for update, by_rate in summaries.items()]
    return sorted(entries, key=lambda entry: entry.best.mean)


def as_text(entries: Sequence[Entry]) -> str:
    """Return the table of a race."""
    lines = [
        f"{'update':<8}{'best eta':>9}{'median steps':>14}{'95 %':>22}{'mean':>12}{'95 %':>22}"
        f"{'censored':>10}"
    ]
    for entry in entries:
        best = entry.best
        lines.append(
            f"{entry.update:<8}{entry.best_rate:>9g}{best.median:>14,.0f}"
            f"{_range(best.median_low, best.median_high):>22}{best.mean:>12,.0f}"
            f"{_range(best.mean_low, best.mean_high):>22}{best.censored:>10.0%}"
        )
    return "\n".join(lines)


def _range(low: float, high: float) -> str:
    return f"{low:,.0f} to {high:,.0f}"
