"""Test that the engine reproduces a random sample of the committed runs.

PU_LIB_SAMPLE selects a different sample (continuous integration sets it to the day of the year).
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pu_lib.experiments.cells import Chunk
from pu_lib.experiments.database import CELL_COLUMNS, COLUMNS, cell_of
from pu_lib.experiments.jekyll_hyde import engine_of
from pu_lib.experiments.panels import paper_chunks
from pu_lib.experiments.results import MORE, TIED, critic_runs
from pu_lib.experiments.sweep import run_chunk

DATA = Path(__file__).parents[2] / "pu_lib" / "experiments" / "data"
SAMPLE = int(os.environ.get("PU_LIB_SAMPLE", "0"))
WORDS = ["experiment", "domain", "scheme", "update", "options", "engine"]


@pytest.fixture(scope="module")
def runs():
    frame = pd.read_parquet(DATA / "runs.parquet")
    return frame.astype(dict.fromkeys(WORDS, str))


def draw_sample(runs):
    """Draw six short runs for each of six kinds of compiled code."""
    rng = np.random.default_rng(SAMPLE)
    short = runs[(runs["steps"] <= 100_000) & ~runs["censored"]]
    kinds = short[["domain", "n_actions", "update"]].drop_duplicates().sample(6, random_state=rng)
    chosen = [
        short.merge(kinds.iloc[[k]], on=["domain", "n_actions", "update"]).sample(
            6, random_state=rng
        )
        for k in range(len(kinds))
    ]
    return pd.concat(chosen)


def test_sampled_runs_are_reproduced_exactly(runs):
    for row in draw_sample(runs).itertuples():
        measured = run_chunk(Chunk(cell_of(row._asdict()), row.run, 1))
        again = {name: column[0] for name, column in measured.items() if name != "seconds"}
        assert again == {
            "run": row.run,
            "steps": row.steps,
            "episodes": row.episodes,
            "censored": row.censored,
            "final_performance": row.final_performance,
        }, row


def test_run_with_another_critic_is_reproduced_exactly():
    rows = critic_runs().astype(dict.fromkeys(WORDS, str))
    short = rows[rows["steps"] <= 60_000].sample(3, random_state=SAMPLE)
    for row in short.itertuples():
        measured = run_chunk(Chunk(cell_of(row._asdict()), row.run, 1))
        assert (measured["steps"][0], measured["episodes"][0]) == (row.steps, row.episodes), row
    assert {*rows.columns} | {"process"} == {*COLUMNS.names}  # this table lacks `process`
    counts = rows.groupby([*CELL_COLUMNS, "options"], dropna=False)["run"].agg(["count", "max"])
    assert (counts["count"] == counts["max"] + 1).all()


def test_censored_run_is_reproduced_exactly(runs):
    rng = np.random.default_rng(SAMPLE)
    censored = runs[runs["censored"] & (runs["domain"] == "chain") & (runs["update"] == "di")]
    row = next(censored.sample(1, random_state=rng).itertuples())
    measured = run_chunk(Chunk(cell_of(row._asdict()), row.run, 1))
    assert (measured["steps"][0], measured["censored"][0]) == (row.steps, True)
    assert measured["final_performance"][0] == row.final_performance


def test_committed_runs_are_complete(runs):
    assert {*runs.columns} | {"process"} == {*COLUMNS.names}  # `process` may be missing
    for _, part in runs.groupby(["update", "options"]):
        cell = cell_of(part.iloc[0])
        assert set(part["engine"].unique()) == {engine_of(cell.update, cell.options)}
    cells = CELL_COLUMNS
    counts = runs.groupby(cells, dropna=False)["run"].agg(["count", "max", "nunique"])
    assert (counts["count"] == counts["max"] + 1).all()
    assert (counts["count"] == counts["nunique"]).all()
    # An experiment beyond the paper is complete or absent.
    planned = {chunk.cell for chunk in paper_chunks()}
    here, beyond = set(runs["experiment"].unique()), (MORE, TIED)
    assert {c.experiment for c in planned if not c.experiment.endswith(beyond)} <= here
    present = {cell_of(row) for row in runs.drop_duplicates(cells).to_dict("records")}
    assert present == {cell for cell in planned if cell.experiment in here}


def test_provenance_matches_the_runs(runs):
    note = json.loads((DATA / "provenance.json").read_text())
    assert note["runs"] == len(runs)
    assert note["steps"] == runs["steps"].sum()
    engines = runs.groupby("update")["engine"].unique()
    assert note["engines"] == {update: sorted(versions) for update, versions in engines.items()}
    assert note["command"].startswith("python -m pu_lib sweep paper")
    assert note["wall_seconds"] > 0


def test_uncensored_runs_reached_the_target(runs):
    passed = runs[~runs["censored"] & (runs["options"] != "predecessor")]
    assert (passed["final_performance"] >= passed["target"] - 1e-12).all()
    # A run ends at its first evaluation at or above the target, and a censored run ends below it.
    stopped = runs[runs["censored"] & (runs["options"] != "predecessor")]
    assert (stopped["final_performance"] < stopped["target"] + 1e-12).all()
    assert (stopped["steps"] == stopped["max_steps"]).all()


def test_first_rows_equal_the_rows_of_release_0_2(runs):
    """Later releases append rows to the table but do not change rows."""
    digest = hashlib.sha256()
    for name, column in runs.iloc[:504_640].drop(columns="process", errors="ignore").items():
        values = "\n".join(column).encode() if name in WORDS else column.to_numpy().tobytes()
        digest.update(values)
    assert digest.hexdigest() == "72c65b8cdeff6cbbefff67ef71e10ad479a10c6b0b1a46fecf98ccba801f2ad7"
