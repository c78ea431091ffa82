"""Test the recorded times of large sparse MDPs and their table in the book."""

import json

import pytest

from pu_lib.drawing import sparse

SIZES = 2500, 40_000, 250_000


@pytest.mark.parametrize(("process", "limit"), [("grid", 1.3), ("garnet", 2.5)])
@pytest.mark.parametrize("states", SIZES)
def test_recorded_optimum_takes_little_more_time_than_quantecon(process, limit, states):
    rows = {(row["process"], row["states"], row["method"]): row for row in sparse.recorded()}
    optimum = rows[process, states, "optimal"]
    other = rows[process, states, "QuantEcon, modified policy iteration"]
    assert optimum["ratio"] == pytest.approx(optimum["seconds"] / other["seconds"])
    assert optimum["ratio"] <= limit


def test_every_recorded_row_has_its_peak_memory():
    rows = sparse.recorded()
    assert all(row["peak_gb"] > 0.05 for row in rows)
    assert {row["method"] for row in rows if row["states"] == 1_000_000} == {
        "optimal",
        "save",
        "load",
    }
    assert max(row["peak_gb"] for row in rows if row["states"] == 1_000_000) < 1.0


def test_table_shows_the_rows_of_the_record(monkeypatch, tmp_path):
    theirs = {"process": "grid", "states": 2500, "method": "QuantEcon, modified policy iteration"}
    ours = theirs | {"method": "optimal", "seconds": 0.05, "ratio": 0.25, "peak_gb": 0.5}
    alone = ours | {"states": 9_000_000, "seconds": 12.0, "ratio": None, "peak_gb": 3.25}
    rows = [theirs | {"seconds": 0.2, "ratio": 1.0, "peak_gb": 0.75}, ours, alone]
    monkeypatch.setattr(sparse, "PATH", tmp_path / "sparse.json")
    sparse.PATH.write_text(json.dumps(rows), encoding="utf-8")
    _, first, last = sparse.sparse_times().split("<tr>")[1:]
    assert first.startswith(
        "<td>slippery grid, 2,500 states</td><td>0.05 s</td><td>0.2 s</td><td>0.25</td>"
        "<td>0.50 GB</td>"
    )
    assert last.startswith(
        "<td>slippery grid, 9,000,000 states</td><td>12 s</td><td></td><td></td><td>3.25 GB</td>"
    )
