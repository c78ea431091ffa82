"""What rounding does to the escort update: a run in plain floats beside the same run without.

A step of PG-ES multiplies each parameter by a number. Numbers below 1 that follow each other take a
parameter of floats below the smallest of them, 4.9e-324, and then it is 0 and stays 0, whatever it
is multiplied by. The process itself has no such end.
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

__all__ = ["ROUNDED_PANELS", "Pair", "lost_and_passed", "pair", "passed_without", "shares"]
__all__ += ["smallest_along"]

ROUNDED_PANELS = (
    "random-mdp/NoExplo",
    "random-mdp/LowOffPol",
    "random-mdp/HiOffPol",
    "chain/NoExplo",
    "chain/LowOffPol",
    "chain/HiOffPol",
    "cliff",
)
"""The panels of the paper with the learning rate on their axis."""


def _cell(
    panel: str, eta: float, precision: Literal["scaled", "float64"], results: Results
) -> Cell:
    """Return the setting of PG-ES in a panel, with its parameters kept in a way."""
    if panel not in PANELS:
        raise ValueError(f"panel: expected one of {', '.join(PANELS)}, got {panel!r}.")
    table = PANELS[panel].rows(results.table)
    rows = table[(table["update"] == "pg-es") & (table["eta"] == eta)]
    if rows.empty:
        raise ValueError(f"eta: {PANELS[panel].words} has no runs of PG-ES at {eta:g}.")
    cell = cell_of(rows.iloc[0].to_dict())
    return replace(cell, options=replace(cell.options, precision=precision))


@dataclass(frozen=True)
class Pair:
    """One run of PG-ES twice: with parameters that are plain floats, and with exponents.

    Attributes
    ----------
    floats, scaled : Run
        How the run ended.
    zeros : int
        Parameters that are 0 at the end in plain floats; with exponents there are none.
    smallest : float
        The logarithm, to base 10, of the smallest modulus at the end with exponents.
    """

    floats: Run
    scaled: Run
    zeros: int
    smallest: float


def pair(panel: str, eta: float, run: int) -> Pair:
    """Compute one run of PG-ES in a panel twice, now.

    Parameters
    ----------
    panel : str
        A key of `PANELS` with the learning rate on its axis.
    eta : float
        A learning rate of the panel.
    run : int
        Number of the run, from 0.

    Returns
    -------
    Pair
        The run in plain floats and without rounding to 0.

    Raises
    ------
    ValueError
        If there is no such panel, or no such rate in it.
    """
    results, memory = results_of(None), RunBuffers()
    floats = run_cell(_cell(panel, eta, "float64", results), run, memory)
    zeros = int((memory.theta == 0.0).sum())
    scaled = run_cell(_cell(panel, eta, "scaled", results), run, memory)
    return Pair(floats, scaled, zeros, float(memory.log_modulus.min()))


def smallest_along(panel: str, eta: float, run: int, points: int) -> tuple[Floats, Floats, Floats]:
    """Return the smallest parameter of the states along a run, in floats and with exponents.

    Parameters
    ----------
    panel, eta, run
        As for `pair`.
    points : int
        How many times, evenly spaced up to the end of the run with exponents.

    Returns
    -------
    steps : ndarray, shape (points,)
        The times.
    floats, scaled : ndarray, shape (points, n_states - 1)
        The logarithm, to base 10, of the smallest modulus in each state; minus infinity for 0.
    """
    results, memory = results_of(None), RunBuffers()
    cells = [_cell(panel, eta, "float64", results), _cell(panel, eta, "scaled", results)]
    end = run_cell(cells[1], run, memory).steps
    steps = np.unique(np.linspace(1, end, points).astype(np.int64))
    rows: list[list[Floats]] = [[], []]
    for kept, cell in zip(rows, cells, strict=True):
        for cap in steps:
            run_cell(replace(cell, max_steps=int(cap), target=1.0), run, memory)
            kept.append(memory.log_modulus[:-1].min(axis=1))
    return steps.astype(np.float64), np.array(rows[0]), np.array(rows[1])


def shares(panel: str, table: Runs = None) -> tuple[Floats, Floats, Floats]:
    """Return the censored shares of PG-ES in a panel, in floats and with exponents.

    Parameters
    ----------
    panel : str
        One of `ROUNDED_PANELS`.
    table : Runs
        The runs, or `None` for the committed ones.

    Returns
    -------
    axis : ndarray
        The learning rates.
    floats, scaled : ndarray, shape (rates,)
        The shares, over the runs that both have.
    """
    axis, floats, scaled, both = _pairs(panel, table)
    return axis, floats.sum(axis=0) / both.sum(axis=0), scaled.sum(axis=0) / both.sum(axis=0)


def lost_and_passed(panel: str, table: Runs = None, eta: float = 3.0) -> tuple[int, int]:
    """Return how many runs are lost in floats at large rates, and how many of them pass otherwise.

    Parameters
    ----------
    panel : str
        One of `ROUNDED_PANELS`.
    table : Runs
        The runs, or `None` for the committed ones.
    eta : float
        From where a rate counts as large.

    Returns
    -------
    lost, passed : int
        Runs that plain floats lose; those among them that pass with exponents.
    """
    axis, floats, scaled, _ = _pairs(panel, table)
    lost = floats & (axis >= eta)
    return int(lost.sum()), int((lost & ~scaled).sum())


def passed_without(panel: str, table: Runs = None, eta: float = 3.0) -> float:
    """Return the share of the runs lost in floats at large rates that pass with exponents.

    Parameters
    ----------
    panel, table, eta
        As for `lost_and_passed`.

    Returns
    -------
    float
        The share; 0 where no run is lost.
    """
    lost, passed = lost_and_passed(panel, table, eta)
    return passed / max(lost, 1)


_Flags = NDArray[np.bool_]


def _pairs(panel: str, table: Runs) -> tuple[Floats, _Flags, _Flags, _Flags]:
    """Return rates and, run by rate, which are lost in floats, with exponents, and made in both."""
    results = results_of(table)
    with_exponents = results.curves(panel)
    floats = results.of(PANELS[panel].in_floats)
    n = min(with_exponents.n_runs, floats.n_runs)
    row = with_exponents.updates.index("pg-es")
    both = floats.made[:n, 0] & with_exponents.made[:n, row]
    return (
        floats.axis,
        floats.censored[:n, 0] & both,
        with_exponents.censored[:n, row] & both,
        both,
    )
