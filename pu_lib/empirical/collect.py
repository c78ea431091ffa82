"""From a dataset of many files to one compact, sorted file with a note of its origin.

A sweep that was interrupted has more runs of some settings than of others. A panel (an experiment
with its domain, scheme, beta and open details) keeps only the runs that all of its settings have,
so that every comparison inside a panel is between the same runs. Settings that an adaptive sweep
left early are no reason to leave out runs of the others.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Mapping
from dataclasses import fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from pu_lib.arrays import number
from pu_lib.empirical.adaptive import Needed, setting_of
from pu_lib.empirical.panels import paper_chunks
from pu_lib.empirical.store import COLUMNS, Cell, Store

__all__ = ["collect"]

_PANEL = ["experiment", "domain", "scheme", "beta", "preset"]
_ORDER = [
    "experiment", "domain", "scheme", "beta", "n_states", "n_actions", "preset", "update", "eta",
    "seed", "run",
]  # fmt: skip


def collect(
    dataset: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    command: str = "",
    seconds: float = 0.0,
) -> str:
    """Write ``runs.parquet`` and ``provenance.json``; return a sentence about them.

    Parameters
    ----------
    dataset : path
        Directory of a sweep.
    directory : path
        Where to write; made if it does not exist.
    command : str
        The command that made the dataset.
    seconds : float
        Its wall time.

    Returns
    -------
    str
        Where the runs were written, how many they are, and the size of the file.

    Raises
    ------
    ValueError
        If there is no such dataset, it holds no run or one twice, or the files cannot be written or
        would be in it.
    """
    if not Path(dataset).is_dir():
        raise ValueError(f"{dataset}: there is no such directory.")
    target = Path(directory)
    if target.resolve().is_relative_to(Path(dataset).resolve()):
        raise ValueError(f"{target}: lies in the dataset, which holds nothing but runs.")
    seconds = number("seconds", seconds, low=0.0)
    everything = Store(dataset).read().to_pandas()
    if everything.empty:
        raise ValueError(f"{dataset}: there are no runs in it.")
    for name in COLUMNS.names:
        if isinstance(everything[name].dtype, pd.CategoricalDtype):
            everything[name] = everything[name].astype(str)
    _refuse_duplicates(everything)
    runs = _complete(everything)
    runs = runs.sort_values(_ORDER, kind="stable")
    try:
        _write(runs, target, _provenance(runs, command, seconds))
    except OSError as error:
        raise ValueError(f"{target}: could not be written ({error.strerror or error}).") from None
    size = (target / "runs.parquet").stat().st_size / 1e6
    return f"{target / 'runs.parquet'}: {len(runs)} of {len(everything)} runs, {size:.1f} MB."


def _refuse_duplicates(rows: pd.DataFrame) -> None:
    """Raise if a run of a setting stands in the table more than once."""
    names = [field.name for field in fields(Cell)]
    twice = rows[rows.duplicated([*names, "run"])]
    if len(twice):
        row = twice.iloc[0]
        raise ValueError(
            f"run {row['run']} of {row['update']} at eta = {row['eta']:g} in {row['experiment']} "
            "is in the dataset more than once."
        )


def _write(runs: pd.DataFrame, target: Path, note: dict[str, Any]) -> None:
    """Write the table and the note of its origin."""
    target.mkdir(parents=True, exist_ok=True)
    rows = pa.Table.from_pandas(runs, schema=COLUMNS, preserve_index=False)
    pq.write_table(
        rows.replace_schema_metadata(None),
        target / "runs.parquet",
        compression="zstd",
        compression_level=19,
    )
    (target / "provenance.json").write_text(json.dumps(note, indent=2) + "\n")


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep, in each panel, the first runs of every setting that was not left early."""
    cells = [field.name for field in fields(Cell)]
    # How many runs from the first on a setting has: where one lacks, the later ones do not count.
    first = rows.sort_values("run", kind="stable")
    first["on"] = first.groupby(cells, dropna=False).cumcount() == first["run"]
    counts = first.groupby(cells, dropna=False)["on"].sum().rename("runs").reset_index()
    counts["panel"] = _panels(counts)
    early = Needed(rows).left_early()
    went_on = [setting_of(values) not in early for values in counts[cells].to_numpy().tolist()]
    shared = counts[went_on].groupby("panel")["runs"].min().to_dict()
    planned: dict[str, set[str]] = {}
    for cell in {chunk.cell for chunk in paper_chunks()}:
        planned.setdefault(_panel(vars(cell)), set()).add(str(tuple(vars(cell).values())))
    for panel, group in counts.groupby("panel"):
        present = {str(tuple(cell)) for cell in group[cells].astype(object).to_numpy().tolist()}
        # A panel of the paper is left out until each of its settings has its first runs.
        if present < planned.get(str(panel), set()):
            shared[panel] = 0
    return rows[rows["run"] < _panels(rows).map(shared)]


def _panels(rows: pd.DataFrame) -> pd.Series[Any]:
    """Return the panel of each row."""
    kinds = rows[_PANEL].drop_duplicates()
    names = {tuple(map(str, kind.values())): _panel(kind) for kind in kinds.to_dict("records")}
    keys = zip(*(rows[name].map(str) for name in _PANEL), strict=True)
    return pd.Series([names[key] for key in keys], index=rows.index)


def _panel(cell: Mapping[Any, Any]) -> str:
    return "|".join(str(cell[name]) for name in _PANEL)


def _provenance(runs: pd.DataFrame, command: str, seconds: float) -> dict[str, Any]:
    """Return what made the runs, and how many runs each panel has."""
    cells = [name for name in _ORDER if name != "run"]
    counts = runs.groupby(cells, dropna=False)["run"].count().rename("runs").reset_index()
    panels = counts.groupby(["experiment", "scheme", "beta"], dropna=False)["runs"]
    return {
        "command": command,
        "engines": _engines(runs),
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
                "settings": int(group.size),
                "runs": int(group.min()),
            }
            for (experiment, scheme, beta), group in panels
        ],
    }


def _engines(runs: pd.DataFrame) -> dict[str, list[str]]:
    """Return the versions of each update's results that stand in a table."""
    found = runs.groupby("update")["engine"].unique()
    return {str(update): sorted(map(str, engines)) for update, engines in found.items()}
