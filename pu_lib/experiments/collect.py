"""The table that is published: the runs of a sweep in one file, with a note of their origin."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pu_lib.arrays import as_float
from pu_lib.experiments.adaptive import EarlyStopping, setting_of
from pu_lib.experiments.database import (
    CELL_COLUMNS,
    ORDER,
    Database,
    has_runs,
    replace_file,
    words_of,
    write_parquet,
)
from pu_lib.experiments.panels import paper_chunks

__all__ = ["collect"]

_PANEL = ["experiment", "domain", "scheme", "beta", "preset"]


def collect(
    dataset: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    command: str = "",
    seconds: float = 0.0,
) -> str:
    """Write ``runs.parquet`` and ``provenance.json``; return a sentence about them.

    A sweep that was interrupted has more runs of some settings than of others. A panel (an
    experiment with its domain, scheme, beta and open details) keeps only the runs that all its
    settings have, so that comparisons inside a panel are between the same runs. Settings that an
    adaptive sweep left early are no reason to leave out runs of the others.

    Parameters
    ----------
    dataset : path
        Directory of a sweep.
    directory : path
        Where to write; made if it does not exist.
    command : str
        The command that made the runs.
    seconds : float
        Its wall time.

    Returns
    -------
    str
        Where the runs were written, how many they are, and the size of the file.

    Raises
    ------
    ValueError
        If there is no such directory, it has no runs, or the files cannot be written or would be
        in it.
    """
    source, target = Path(dataset), Path(directory)
    if not source.is_dir():
        raise ValueError(f"{dataset}: there is no such directory.")
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{target}: lies in the dataset, whose runs.parquet is the sweep's own.")
    seconds = as_float("seconds", seconds, low=0.0)
    everything = pd.DataFrame()
    if has_runs(source):
        with Database(source) as database:
            everything = database.read()
    if everything.empty:
        raise ValueError(f"{dataset}: there are no runs in it.")
    runs = _complete(everything)
    note = json.dumps(_provenance(runs, command, seconds), indent=2)
    try:
        target.mkdir(parents=True, exist_ok=True)
        write_parquet(target / "runs.parquet", runs, level=19)
        replace_file(target / "provenance.json", f"{note}\n".encode())
    except OSError as error:
        raise ValueError(f"{target}: could not be written ({error.strerror or error}).") from None
    size = (target / "runs.parquet").stat().st_size / 1e6
    return f"{target / 'runs.parquet'}: {len(runs)} of {len(everything)} runs, {size:.1f} MB."


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep, in each panel, the first runs of every setting that was not left early."""
    early = EarlyStopping(rows).left_early()
    panels: dict[str, dict[Any, pd.DataFrame]] = {}
    groups: Any = rows.groupby(CELL_COLUMNS, dropna=False, observed=True)
    for values, group in groups:
        panels.setdefault(_panel(values), {})[setting_of(values)] = group
    planned: dict[str, set[Any]] = {}
    for cell in {chunk.cell for chunk in paper_chunks()}:
        values = words_of(cell).values()
        planned.setdefault(_panel(values), set()).add(setting_of(values))
    kept: list[Any] = [np.arange(0)]
    for panel, settings in panels.items():
        # A panel of the paper is left out until each of its settings has its first runs.
        if settings.keys() < planned.get(panel, set()):
            continue
        counts = [_gapless(group) for setting, group in settings.items() if setting not in early]
        shared = min(counts, default=0)
        kept += [group.index[group["run"] < shared] for group in settings.values()]
    return rows.loc[np.sort(np.concatenate(kept))]


def _panel(values: Iterable[Any]) -> str:
    """Return the panel of a cell, of which the values are given."""
    cell = dict(zip(CELL_COLUMNS, values, strict=True))
    return "|".join(str(cell[name]) for name in _PANEL)


def _gapless(runs: pd.DataFrame) -> int:
    """Return how many runs there are from the first on: none counts after one that lacks."""
    numbers = np.sort(runs["run"].to_numpy())
    return int((numbers == np.arange(len(numbers))).sum())


def _provenance(runs: pd.DataFrame, command: str, seconds: float) -> dict[str, Any]:
    """Return what made the runs, and how many runs each panel has."""
    counts = runs.groupby(ORDER, dropna=False, observed=True)["run"].count().rename("runs")
    panels = counts.reset_index().groupby(
        ["experiment", "scheme", "beta"], dropna=False, observed=True
    )
    engines = runs.groupby("update", observed=True)["engine"].unique()
    return {
        "command": command,
        "engines": {str(update): sorted(map(str, found)) for update, found in engines.items()},
        "seed": sorted(int(seed) for seed in runs["seed"].unique()),
        "runs": len(runs),
        "steps": int(runs["steps"].sum()),
        "wall_seconds": round(seconds),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} processors",
        "packages": {name: version(name) for name in ("numpy", "scipy", "numba", "pyarrow")},
        "panels": [
            {
                "experiment": experiment,
                "scheme": scheme,
                "beta": None if beta != beta else beta,  # not a number where there is none
                "settings": int(group["runs"].size),
                "runs": int(group["runs"].min()),
            }
            for (experiment, scheme, beta), group in panels
        ],
    }
