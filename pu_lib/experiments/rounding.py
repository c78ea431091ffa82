"""The effect of underflow on the escort update: runs with plain floats and with scaled parameters.

A step of PG-ES multiplies each parameter by a factor. A sequence of factors below 1 can take a
parameter below the smallest positive float, 4.9e-324. The parameter then underflows to 0 and
remains 0, because every later step multiplies it. In exact arithmetic, a product of nonzero factors
is not 0.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.experiments.cells import Cell
from pu_lib.experiments.database import cell_of
from pu_lib.experiments.jekyll_hyde import Run, RunBuffers
from pu_lib.experiments.results import PANELS, Results, Runs, results_of
from pu_lib.experiments.sweep import run_cell

ROUNDED_PANELS = (
    "random-mdp/NoExplo",
    "random-mdp/LowOffPol",
    "random-mdp/HiOffPol",
    "chain/NoExplo",
    "chain/LowOffPol",
    "chain/HiOffPol",
    "cliff",
)
"""The panels of the paper with the step size on their axis."""


def _cell(
    panel: str, step_size: float, precision: Literal["scaled", "float64"], results: Results
) -> Cell:
    """Return the setting of PG-ES in a panel, with the given precision of the parameters."""
    if panel not in PANELS:
        raise ValueError(f"panel: expected one of {', '.join(PANELS)}, got {panel!r}.")
    table = PANELS[panel].rows(results.table)
    rows = table[(table["update"] == "pg-es") & (table["step_size"] == step_size)]
    if rows.empty:
        raise ValueError(
            f"step_size: {PANELS[panel].words} has no runs of PG-ES at {step_size:g}; expected one "
            f"of {sorted(table.loc[table['update'] == 'pg-es', 'step_size'].unique().tolist())}."
        )
    cell = cell_of(rows.iloc[0].to_dict())
    return replace(cell, options=replace(cell.options, precision=precision))


@dataclass(frozen=True)
class Pair:
    """One run of PG-ES with plain floats and with scaled parameters.

    Attributes
    ----------
    floats, scaled : Run
        The outcomes of the run with plain floats and with scaled parameters.
    zeros : int
        Number of parameters that are 0 at the end with plain floats.
    smallest : float
        Base-10 logarithm of the smallest modulus of a scaled parameter at the end.
    """

    floats: Run
    scaled: Run
    zeros: int
    smallest: float


def pair(panel: str, step_size: float, run: int) -> Pair:
    """Compute a run of PG-ES with plain floats and with scaled parameters.

    Parameters
    ----------
    panel : str
        A key of `PANELS` with the step size on its axis.
    step_size : float
        A step size of the panel.
    run : int
        Number of the run, from 0.

    Returns
    -------
    Pair
        The outcomes of both runs.

    Raises
    ------
    ValueError
        If the panel is unknown or has no such step size.
    """
    results, memory = results_of(None), RunBuffers()
    floats = run_cell(_cell(panel, step_size, "float64", results), run, memory)
    zeros = int((memory.theta == 0.0).sum())
    scaled = run_cell(_cell(panel, step_size, "scaled", results), run, memory)
    return Pair(floats, scaled, zeros, float(memory.log_modulus.min()))


def smallest_along(
    panel: str, step_size: float, run: int, points: int
) -> tuple[Floats, Floats, Floats]:
    """Return the smallest parameter of each state along a run, with plain and scaled parameters.

    Parameters
    ----------
    panel, step_size, run
        As for `pair`.
    points : int
        Number of times. The times are evenly spaced up to the end of the scaled run.

    Returns
    -------
    steps : ndarray, shape (points,)
        The times.
    floats, scaled : ndarray, shape (points, n_states - 1)
        Base-10 logarithm of the smallest modulus in each state, or minus infinity for 0.
    """
    results, memory = results_of(None), RunBuffers()
    cells = [
        _cell(panel, step_size, "float64", results),
        _cell(panel, step_size, "scaled", results),
    ]
    end = run_cell(cells[1], run, memory).steps
    steps = np.unique(np.linspace(1, end, points).astype(np.int64))
    rows: list[list[Floats]] = [[], []]
    for logarithms, cell in zip(rows, cells, strict=True):
        for cap in steps:
            run_cell(replace(cell, max_steps=int(cap), target=1.0), run, memory)
            logarithms.append(memory.log_modulus[:-1].min(axis=1))
    return steps.astype(np.float64), np.array(rows[0]), np.array(rows[1])


def shares(panel: str, table: Runs = None) -> tuple[Floats, Floats, Floats]:
    """Return the step sizes of a panel and the censored shares of PG-ES in both precisions.

    Plain floats come before scaled parameters. The shares are over the runs computed in both
    precisions.
    """
    axis, floats, scaled, compared = _pairs(panel, table)
    return (
        axis,
        floats.sum(axis=0) / compared.sum(axis=0),
        scaled.sum(axis=0) / compared.sum(axis=0),
    )


def lost_and_passed(panel: str, table: Runs = None, step_size: float = 3.0) -> tuple[int, int]:
    """Return how many runs are censored with plain floats, and how many of these pass if scaled.

    Only step sizes of at least `step_size` are counted.
    """
    axis, floats, scaled, _ = _pairs(panel, table)
    lost = floats & (axis >= step_size)
    return int(lost.sum()), int((lost & ~scaled).sum())


def passed_without(panel: str, table: Runs = None, step_size: float = 3.0) -> float:
    """Return the share of the runs censored with plain floats that pass with scaled parameters.

    Only step sizes of at least `step_size` are counted. The share is 0 if no run is censored.
    """
    lost, passed = lost_and_passed(panel, table, step_size)
    return passed / max(lost, 1)


_Flags = NDArray[np.bool_]


def _pairs(panel: str, table: Runs) -> tuple[Floats, _Flags, _Flags, _Flags]:
    """Return the step sizes of a panel and three masks of the runs of PG-ES.

    The masks contain the runs censored with plain floats, the runs censored with scaled parameters,
    and the runs computed in both precisions.
    """
    results = results_of(table)
    with_exponents = results.curves(panel)
    floats = results.of(PANELS[panel].in_floats)
    n = min(with_exponents.n_runs, floats.n_runs)
    row = with_exponents.updates.index("pg-es")
    compared = floats.made[:n, 0] & with_exponents.made[:n, row]
    return (
        floats.axis,
        floats.censored[:n, 0] & compared,
        with_exponents.censored[:n, row] & compared,
        compared,
    )
