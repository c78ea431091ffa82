"""A sweep in parts, merged, has the table of the whole sweep; a plan and an estimate precede it."""

import os
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pu_lib
from pu_lib.__main__ import main
from pu_lib.experiments import database as databases
from pu_lib.experiments.database import Database, DatabaseError
from pu_lib.experiments.sweep import grid, merge_parts, part_of, run_missing, sweep

SETTINGS = {
    "updates": ["di", "ce", "pg-sm"],
    "step_sizes": [0.1, 1.0],
    "runs": 25,
    "max_steps": 400,
}
CHAIN = "chain n_states=5"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """Return the table of a sweep on one thread, as the bytes of its file."""
    directory = tmp_path_factory.mktemp("whole")
    assert sweep(CHAIN, directory, workers=1, **SETTINGS).computed == 12
    return (directory / "runs.parquet").read_bytes()


@pytest.mark.parametrize(("count", "workers"), [(1, 7), (2, 1), (7, 2)])
def test_merged_parts_are_the_whole_sweep(
    whole: bytes, tmp_path: Path, count: int, workers: int
) -> None:
    computed = [
        sweep(CHAIN, tmp_path, part=f"{i}/{count}", workers=workers, **SETTINGS).computed
        for i in range(count, 0, -1)
    ]
    assert sum(computed) == 12
    merged = merge_parts(tmp_path)
    assert (tmp_path / "runs.parquet").read_bytes() == whole
    assert len(merged.table) == 150
    assert sweep(CHAIN, tmp_path, **SETTINGS).computed == 0
    merge_parts(tmp_path)  # again
    assert (tmp_path / "runs.parquet").read_bytes() == whole


def test_merged_parts_have_curves_and_sources(tmp_path: Path) -> None:
    class Mine(type(pu_lib.UPDATES["di"])):  # type: ignore[misc]
        name, label = "mine", "MINE"

    small = {**SETTINGS, "updates": [Mine(), "di"], "step_sizes": [0.5], "runs": 21}
    sweep(CHAIN, tmp_path / "whole", curves=True, **small)
    for part in ("1/2", "2/2"):
        sweep(CHAIN, tmp_path / "parts", part=part, curves=True, **small)
    merged = merge_parts(tmp_path / "parts")
    tables = [(tmp_path / name / "runs.parquet").read_bytes() for name in ("whole", "parts")]
    assert tables[0] == tables[1]
    assert merged.table["performances"].notna().all()
    abouts = [(tmp_path / name / "about.json").read_text() for name in ("whole", "parts")]
    assert abouts[0] == abouts[1]
    assert 'name, label = "mine"' in merged.about["sources"]["mine"]


@pytest.mark.parametrize("count", [1, 2, 5, 7, 30])
def test_parts_divide_the_chunks_and_mix_the_updates(count: int) -> None:
    chunks = grid(CHAIN, updates=["di", "ce", "pg-sm", "mce", "npg"], runs=200, max_steps=100)
    parts = [part_of(chunks, "runs", f"{i + 1}/{count}") for i in range(count)]
    taken = [chunk for part, _ in parts for chunk in part]
    assert sorted(map(id, taken)) == sorted(map(id, chunks))
    sizes = [len(part) for part, _ in parts]
    assert max(sizes) - min(sizes) <= 1
    assert {folder.name for _, folder in parts} == {
        f"part-{i + 1}-of-{count}" for i in range(count)
    }
    for part, _ in parts:
        assert len({chunk.cell.update.name for chunk in part}) == 5


@pytest.mark.parametrize("part", ["0/3", "4/3", "1", "a/b", "1/3/4", "-1/3", "1/0", "", 2])
def test_malformed_part_is_rejected(part, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="part: expected i/n with 1 <= i <= n, as in '2/3'"):
        sweep(CHAIN, tmp_path, part=part, **SETTINGS)
    assert os.listdir(tmp_path) == []


def test_adaptive_sweep_has_no_parts(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="part: an adaptive sweep compares all runs"):
        sweep(CHAIN, tmp_path, part="1/2", adaptive=True, **SETTINGS)


def test_merge_names_the_parts_that_are_not_finished(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="there are no parts in it"):
        merge_parts(tmp_path)
    small = {**SETTINGS, "updates": "di", "runs": 1, "step_sizes": [1.0]}
    for i in (1, 3):
        sweep(CHAIN, tmp_path, part=f"{i}/4", **small)
    with pytest.raises(ValueError, match="parts 2/4, 4/4 are missing or not finished"):
        merge_parts(tmp_path)
    (tmp_path / "part-3-of-4" / "runs.parquet").unlink()
    (tmp_path / "part-1-of-4" / "runs.sqlite-wal").touch()
    with pytest.raises(ValueError, match="parts 1/4, 2/4, 3/4, 4/4 are missing or not finished"):
        merge_parts(tmp_path)
    sweep(CHAIN, tmp_path, part="1/99", **small)
    with pytest.raises(ValueError, match=r"3/4, 4/4, 2/99 and 97 more are missing"):
        merge_parts(tmp_path)


def test_parts_of_different_processes_are_not_merged(tmp_path: Path) -> None:
    transitions, rewards = [[[0, 1], [1, 0]], [[1, 0], [0, 1]]], [[0, 1], [1, 0]]
    made = [pu_lib.FiniteMDP(transitions, rewards, [1, 0], discount) for discount in (0.9, 0.8)]
    small = {"updates": "di", "step_sizes": [0.1, 1.0], "runs": 1, "max_steps": 50}
    for i, make in enumerate([lambda: made[0], lambda: made[1]]):
        pu_lib.domains.register_domain(pu_lib.domains.Domain("of-two-minds", make))
        sweep("of-two-minds", tmp_path, part=f"{i + 1}/2", **small)
        pu_lib.domains._DOMAINS.pop("of-two-minds")
    with pytest.raises(DatabaseError, match="another process"):
        merge_parts(tmp_path)


def test_parts_may_be_on_a_network_disk(
    whole: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite then uses no shared memory, in which a network disk could not be trusted."""
    monkeypatch.setattr(databases, "_file_system", lambda _: "nfs4")
    with pytest.raises(DatabaseError, match="network disk"):
        sweep(CHAIN, tmp_path, **SETTINGS)
    seen: set[str] = set()
    write = Database.write

    def watched(self, chunk, measured) -> None:
        write(self, chunk, measured)
        seen.update(os.listdir(self.directory))

    monkeypatch.setattr(Database, "write", watched)
    for i in (1, 2):
        sweep(CHAIN, tmp_path, part=f"{i}/2", **SETTINGS)
    assert seen == {"runs.sqlite", "runs.sqlite-wal"}
    merge_parts(tmp_path)
    assert (tmp_path / "runs.parquet").read_bytes() == whole
    assert sorted(os.listdir(tmp_path / "part-1-of-2")) == [
        "about.json",
        "runs.parquet",
        "runs.sqlite",
    ]


def test_part_is_used_by_one_program_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_PATIENCE", 0.05)
    with Database(tmp_path, exclusive=True) as database:
        database.export()
        with pytest.raises(DatabaseError, match="another program uses it; wait"):
            Database(tmp_path, exclusive=True)


def test_commands_sweep_and_merge_parts(
    whole: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = f"sweep chain --out {tmp_path} --update di ce pg-sm --step-size 0.1 1 --runs 25".split()
    words = [*words, "--max-steps", "400", "--states", "5"]
    assert main([*words, "--part", "1/2", "--dry-run"]) == 0
    first = re.escape(f"{tmp_path / 'part-1-of-2'}: 6 settings, ")
    planned = r"(\d+) runs in 6 chunks; \1 runs in 6 chunks are missing\.\n"
    plan = re.fullmatch(first + planned, capsys.readouterr().out)
    assert plan is not None
    assert os.listdir(tmp_path) == []
    assert main([*words, "--part", "1/2"]) == 0
    assert f"{plan[1]} runs; 6 of 6 chunks computed now" in capsys.readouterr().out
    assert main([*words, "--part", "1/2", "--dry-run"]) == 0
    assert "; 0 runs in 0 chunks are missing" in capsys.readouterr().out
    assert main(["sweep", "--merge", "--out", str(tmp_path)]) == 2
    assert "parts 2/2 are missing or not finished" in capsys.readouterr().err
    assert main([*words, "--part", "2/2"]) == 0
    assert main(["sweep", "--merge", "--out", str(tmp_path)]) == 0
    assert capsys.readouterr().out.endswith(f"{tmp_path}: 150 runs.\n")
    assert (tmp_path / "runs.parquet").read_bytes() == whole


def test_refused_combinations_of_options(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words, sentence in (
        ("sweep chain --merge", "--merge: joins the parts in --out and takes no other argument"),
        ("sweep --merge --part 1/2", "--merge: joins"),
        ("sweep", "DOMAIN: name what to sweep, or give --merge"),
        ("sweep paper --part 1/2", "part: an adaptive sweep"),
    ):
        assert main([*words.split(), "--out", str(tmp_path)]) == 2
        assert sentence in capsys.readouterr().err


def test_time_is_estimated_after_the_first_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A chunk of 20 runs of 3, 3, ..., 99 seconds: 40 others take 120 s on one thread."""

    def measured(chunk):
        columns = real(chunk)
        return {**columns, "seconds": np.array([99.0] + [3.0] * (chunk.count - 1))}

    real = pu_lib.experiments.sweep.run_chunk
    monkeypatch.setattr("pu_lib.experiments.sweep.run_chunk", measured)
    chunks = grid(CHAIN, updates="di", step_sizes=[0.1, 0.5, 1.0], max_steps=50)
    run_missing(chunks, tmp_path / "silent", workers=1)
    assert capsys.readouterr().err == ""
    run_missing(chunks, tmp_path / "estimated", workers=1, estimate=True)
    assert capsys.readouterr().err == (
        "About 2 minutes for the other 40 runs, at the pace of the first 20.\n"
    )
    run_missing(chunks[:1], tmp_path / "short", workers=1, estimate=True)
    assert capsys.readouterr().err == ""
    silent, estimated = (
        pd.read_parquet(tmp_path / name / "runs.parquet") for name in ("silent", "estimated")
    )
    pd.testing.assert_frame_equal(silent, estimated, check_exact=True)
