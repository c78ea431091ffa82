"""Collect the runs of a sweep in one Parquet file for publication, and record their provenance."""

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
    words_of,
    write_parquet,
)
from pu_lib.experiments.panels import paper_chunks
from pu_lib.experiments.results import MORE
from pu_lib.files import replace_file

_PANEL = ["experiment", "domain", "scheme", "beta", "options"]


def collect(
    dataset: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    command: str = "",
    seconds: float = 0.0,
) -> str:
    """Write ``runs.parquet`` and ``provenance.json``, and return a summary.

    After an interrupted sweep some settings have more runs than others. The runs of a panel (an
    experiment with its domain, scheme, beta and options) are written only up to the number of runs
    that all settings of the panel have, so that comparisons within a panel use the same runs. This
    number does not depend on settings that were dropped by an adaptive sweep. Each update that is
    not in the paper counts as a panel of its own. A panel of the paper is omitted if one of its
    settings has no runs.

    Parameters
    ----------
    dataset : path
        Directory of a sweep.
    directory : path
        Output directory, which is created if it does not exist.
    command : str
        The command that computed the runs.
    seconds : float
        Wall time of the command.

    Returns
    -------
    str
        The path of the Parquet file, the number of runs in it and its size.

    Raises
    ------
    ValueError
        If `dataset` is not a directory or has no runs, `directory` is inside `dataset` or cannot be
        written, or `seconds` is not a finite number >= 0.
    DatabaseError
        If the database of `dataset` cannot be read.
    """
    source, target = Path(dataset), Path(directory)
    if not source.is_dir():
        raise ValueError(f"{dataset}: there is no such directory.")
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{target}: lies in the dataset {dataset}; give a directory outside it.")
    seconds = as_float("seconds", seconds, low=0.0)
    everything = pd.DataFrame()
    if "runs.sqlite" in os.listdir(source):
        with Database(source, read_only=True) as database:
            everything = database.read()
    if everything.empty:
        raise ValueError(f"{dataset}: there are no runs in it; give the directory of a sweep.")
    runs = _complete(everything)
    note = json.dumps(_provenance(runs, command, seconds), indent=2)
    try:
        target.mkdir(parents=True, exist_ok=True)
        write_parquet(target / "runs.parquet", runs, level=19)
        replace_file(target / "provenance.json", f"{note}\n")
    except OSError as error:
        raise ValueError(f"{target}: could not be written ({error.strerror or error}).") from None
    size = (target / "runs.parquet").stat().st_size / 1e6
    return f"{target / 'runs.parquet'}: {len(runs)} of {len(everything)} runs, {size:.1f} MB."


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Return the runs of each panel whose numbers occur in all settings that were not dropped."""
    early = EarlyStopping(rows).left_early()
    panels: dict[str, dict[Any, pd.DataFrame]] = {}
    groups: Any = rows.groupby(CELL_COLUMNS, dropna=False, observed=True)
    for values, group in groups:
        panels.setdefault(_panel(values), {})[setting_of(values)] = group
    planned: dict[str, set[Any]] = {}
    for cell in {chunk.cell for chunk in paper_chunks()}:
        values = words_of(cell).values()
        planned.setdefault(_panel(values), set()).add(setting_of(values))
    labels: list[Any] = [np.arange(0)]
    for panel, settings in panels.items():
        # Omit a panel of the paper if one of its settings has no runs yet.
        if settings.keys() < planned.get(panel, set()):
            continue
        counts = [_gapless(group) for setting, group in settings.items() if setting not in early]
        shared = min(counts, default=0)
        labels += [group.index[group["run"] < shared] for group in settings.values()]
    return rows.loc[np.sort(np.concatenate(labels))]


def _panel(values: Iterable[Any]) -> str:
    """Return the key of the panel of a cell with these column values."""
    cell = dict(zip(CELL_COLUMNS, values, strict=True))
    beyond = [cell["update"]] if str(cell["experiment"]).endswith(MORE) else []
    return "|".join([*(str(cell[name]) for name in _PANEL), *beyond])


def _gapless(runs: pd.DataFrame) -> int:
    """Return the number of runs before the first missing run."""
    numbers = np.sort(runs["run"].to_numpy())
    return int((numbers == np.arange(len(numbers))).sum())


def _provenance(runs: pd.DataFrame, command: str, seconds: float) -> dict[str, Any]:
    """Return the provenance of the runs and the number of runs of each panel."""
    counts = runs.groupby(ORDER, dropna=False, observed=True)["run"].count().rename("runs")
    panels = counts.reset_index().groupby(
        ["experiment", "scheme", "beta"], dropna=False, observed=True
    )
    engines = runs.groupby("update", observed=True)["engine"].unique()
    return {
        "command": command,
        "engines": {
            str(update): sorted(map(str, versions)) for update, versions in engines.items()
        },
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
                "beta": None if beta != beta else beta,  # NaN if the domain has no beta
                "settings": int(group["runs"].size),
                "runs": int(group["runs"].min()),
            }
            for (experiment, scheme, beta), group in panels
        ],
    }
