"""Runs of the committed table, and how they are computed again."""

from typing import Any

import adapter
import pandas as pd

from pu_lib.experiments.cells import Chunk
from pu_lib.experiments.database import CELL_COLUMNS, cell_of
from pu_lib.experiments.sweep import run_chunk

TABLE = adapter.ROOT / "pu_lib" / "experiments" / "data" / "runs.parquet"
WORDS = ["experiment", "domain", "scheme", "update", "preset", "engine"]
KIND = ["domain", "n_actions", "update", "preset"]
"""What decides on the code that is compiled."""
RESULTS = ["run", "steps", "episodes", "censored", "final_performance"]


def table() -> pd.DataFrame:
    frame = pd.read_parquet(TABLE)
    return frame.astype(dict.fromkeys(WORDS, str))


def again(row: dict[str, Any]) -> dict[str, Any]:
    """Compute a run again and return its results."""
    # a parameter that a domain does not have is not a number
    given = {k: row[k] if row[k] is not None else float("nan") for k in CELL_COLUMNS}
    measured = run_chunk(Chunk(cell_of(given), row["run"], 1))
    return {name: adapter.plain(column[0]) for name, column in measured.items()}


def compare_run(row: dict[str, Any]) -> list[str]:
    """Return how a run that is computed again differs from the recorded one, bit for bit."""
    before, now = {name: row[name] for name in RESULTS}, again(row)
    return [] if before == now else [f"{row}: is {now}"]
