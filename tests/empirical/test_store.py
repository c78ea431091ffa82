"""Merged files: every run is in the table once, whatever happens while chunks are merged."""

import errno
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pu_lib.empirical import store as storing
from pu_lib.empirical.store import COLUMNS, Cell, Chunk, Store, StoreError
from pu_lib.empirical.sweep import chunks_of, sweep

CELL = Cell("chain", "chain", "HiOffPol", "pg-es", 1.0, 6, 2, 0.8, "paper", 20_000, 0.5, 3)
CHUNKS = chunks_of([CELL, replace(CELL, update="ce"), replace(CELL, beta=np.nan)], 9, 3)
MANY = 4  # of these nine chunks, eight are merged into two files


def measured(chunk):
    """What a run might have measured: it tells the run and its cell."""
    runs = np.arange(chunk.first, chunk.first + chunk.count)
    steps = 100 * runs + len(chunk.cell.update)
    rows = {"run": runs, "steps": steps, "episodes": steps, "censored": runs % 2 == 0}
    return {**rows, "final_performance": np.sqrt(steps)}


def fill(directory, chunks=CHUNKS):
    store = Store(directory)
    for chunk in chunks:
        store.write(chunk, measured(chunk))
    return directory


@pytest.fixture
def often(monkeypatch):
    monkeypatch.setattr(storing, "MANY", MANY)


@pytest.fixture(scope="module")
def loose(tmp_path_factory):
    """A directory in which nothing has been merged."""
    return fill(tmp_path_factory.mktemp("loose"))


@pytest.fixture(scope="module")
def whole(loose):
    """Its rows."""
    rows = Store(loose).read()
    assert len(rows) == 27
    assert not list(loose.glob("runs-*"))
    return rows


@pytest.fixture
def copied(loose, tmp_path):
    return shutil.copytree(loose, tmp_path / "data")


def kinds(directory):
    """The number of chunks with a file of their own, and that of merged files."""
    names = [path.name for path in directory.iterdir() if not path.name.startswith(".")]
    merged = sum(name.startswith("runs-") for name in names)
    return len(names) - merged, merged


def assert_whole(directory, whole):
    found = Store(directory).read()
    assert found.schema.equals(whole.schema)
    pd.testing.assert_frame_equal(found.to_pandas(), whole.to_pandas(), check_exact=True)
    assert Store(directory).missing(CHUNKS) == []


@pytest.mark.parametrize("order", [1, -1])
def test_chunks_are_merged_as_they_are_written(often, whole, tmp_path, order):
    fill(tmp_path, CHUNKS[::order])
    assert kinds(tmp_path) == (1, 2)
    assert_whole(tmp_path, whole)
    frame = pd.read_parquet(tmp_path)
    assert list(frame.columns) == COLUMNS.names
    assert sorted(frame["steps"]) == sorted(whole["steps"].to_pylist())


def test_a_sweep_merges_what_it_finds_and_computes_nothing_again(often, copied, whole):
    assert sweep(CHUNKS, copied) == 0
    assert kinds(copied) == (1, 2)
    assert_whole(copied, whole)


def test_more_runs_are_added_to_merged_ones(often, tmp_path):
    cells = [CELL, replace(CELL, update="ce")]
    for runs in (5, 9, 14):
        sweep(chunks_of(cells, runs, 2), tmp_path / "grown", workers=1)
    assert kinds(tmp_path / "grown")[1] >= 3
    sweep(chunks_of(cells, 14, 2), tmp_path / "whole", workers=1)
    tables = [Store(tmp_path / name).read().to_pandas() for name in ("grown", "whole")]
    pd.testing.assert_frame_equal(*tables, check_exact=True)


# Killed, at every point


class Killed(BaseException):
    """The end of a process; nothing that it would clean up is cleaned up."""


def test_killed_anywhere_nothing_is_lost_and_nothing_twice(
    often, loose, whole, tmp_path, monkeypatch
):
    """The process dies before each call that changes the directory or waits for the disk."""
    ends = []
    for left in range(100):
        directory = shutil.copytree(loose, tmp_path / str(left))
        with monkeypatch.context() as patched:
            calls = iter(range(left))
            for owner, name in ((os, "fsync"), (os, "replace"), (Path, "unlink")):
                patched.setattr(owner, name, mortal(getattr(owner, name), calls))
            try:
                Store(directory).merge()
            except Killed:
                ends.append(kinds(directory))
            else:
                break
        assert_whole(directory, whole)
        Store(directory).merge()
        assert_whole(directory, whole)
        assert kinds(directory) == (1, 2), "what was replaced is still there"
    assert {(9, 0), (9, 1), (8, 1), (5, 1), (5, 2), (4, 2), (2, 2)} <= set(ends)


def mortal(call, calls):
    def dying(*arguments, **options):
        if next(calls, None) is None:
            raise Killed
        return call(*arguments, **options)

    return dying


def test_half_of_a_merged_file_is_no_file(often, copied, whole):
    (copied / ".writing-0-runs-0.parquet").write_bytes(b"PAR1 half")
    assert_whole(copied, whole)
    Store(copied).merge()
    assert_whole(copied, whole)


# Damaged


@pytest.fixture
def merged(often, copied):
    """A directory with merged files, and the first of these."""
    Store(copied).merge()
    return copied, min(copied.glob("runs-*"))


def refused(directory, victim, sentence=""):
    content = victim.read_bytes()
    with pytest.raises(StoreError, match=rf"1 file\(s\).*{victim.name} \(.*{sentence}"):
        Store(directory)
    assert victim.read_bytes() == content


def test_any_flipped_bit_of_a_merged_file_is_found(merged):
    directory, victim = merged
    content = victim.read_bytes()
    for place in range(0, len(content), 97):
        victim.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        refused(directory, victim, "changed since it was written")
    victim.write_bytes(content[:-100])
    refused(directory, victim, "changed since it was written")
    victim.write_bytes(content)
    Store(directory)


def test_a_damaged_merged_file_costs_nothing_while_its_chunks_are_there(
    often, copied, whole, monkeypatch
):
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: None)
    Store(copied).merge()
    monkeypatch.undo()
    assert kinds(copied) == (9, 2)
    victim = min(copied.glob("runs-*"))
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(StoreError, match=victim.name):
        sweep(CHUNKS, copied)
    assert kinds(copied) == (9, 2)
    victim.unlink()
    assert_whole(copied, whole)


def test_a_chunk_that_was_damaged_meanwhile_is_not_merged(often, copied):
    store, victim = Store(copied), min(copied.glob("part-*"))
    victim.write_bytes(victim.read_bytes()[:-100])
    with pytest.raises(StoreError, match=f"{victim.name}: torn"):
        store.merge()
    assert kinds(copied) == (9, 0)


def test_a_merged_file_under_another_name_is_refused(merged):
    directory, victim = merged
    refused(directory, victim.rename(directory / f"runs-{'0' * 64}.parquet"), "changed since")


def sealed(path, change):
    """Write a merged file again after a change of its table, under the name of its content."""
    content = storing._encoded(change(pq.read_table(path)))
    path.unlink()
    path = path.with_name(storing._named(content))
    path.write_bytes(content)
    return path


def noted(note):
    return lambda table: table.replace_schema_metadata({b"pu_lib.merged": note})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (noted(b"{"), "its note of what it holds cannot be read"),
        (noted(b"3"), "its note of what it holds cannot be read"),
        (noted(b"[3]"), "its note of what it holds cannot be read"),
        (noted(b'["part-0"]'), "its note of what it holds cannot be read"),
        (lambda t: t.replace_schema_metadata(None), "its note of what it holds cannot be read"),
        (noted(b"[]"), "holds other runs than its note says"),
        (lambda t: t.slice(1), "holds other runs than its note says"),
        (
            lambda t: t.set_column(
                t.schema.names.index("engine"), "engine", pa.array(["0"] * len(t))
            ),
            "made by engine 0, this is",
        ),
    ],
)
def test_a_merged_file_is_what_its_note_says(merged, change, sentence):
    directory, victim = merged
    refused(directory, sealed(victim, change), sentence)


def test_a_foreign_file_with_such_a_name_is_refused(tmp_path):
    content = b"no Parquet"
    (tmp_path / storing._named(content)).write_bytes(content)
    refused(tmp_path, tmp_path / storing._named(content), "not Parquet")


def test_a_file_that_leads_nowhere_is_refused(tmp_path):
    (tmp_path / CHUNKS[0].file).symlink_to(tmp_path / "gone")
    with pytest.raises(StoreError, match="torn"):
        Store(tmp_path)


def test_a_disk_that_fills_up_while_chunks_are_merged(often, copied, whole, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(StoreError, match=r"runs-.*No space left.*can be resumed"):
            sweep(CHUNKS, copied)
    assert sorted(path.name for path in copied.iterdir()) == sorted(c.file for c in CHUNKS)
    assert_whole(copied, whole)


# Two sweeps in one directory


def test_a_chunk_in_two_merged_files_is_read_once(often, copied, whole, tmp_path):
    """Two sweeps merged at the same time, and the second saw one chunk more."""
    other = fill(tmp_path / "other", [*CHUNKS[:2], *CHUNKS[7:]])
    assert kinds(other) == (0, 1)
    Store(copied).merge()
    shutil.copytree(other, copied, dirs_exist_ok=True)
    assert kinds(copied) == (1, 3)
    assert_whole(copied, whole)
    assert sweep(CHUNKS, copied) == 0
    assert_whole(copied, whole)


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_two_sweeps_that_merge_at_once(often, copied, whole, monkeypatch, call):
    first, plain = Store(copied), getattr(os, call)

    def meanwhile(*arguments):
        monkeypatch.undo()
        monkeypatch.setattr(storing, "MANY", 3)
        Store(copied).merge()
        monkeypatch.setattr(storing, "MANY", MANY)
        plain(*arguments)

    monkeypatch.setattr(os, call, meanwhile)
    first.merge()
    assert kinds(copied)[0] == 0
    assert_whole(copied, whole)


def test_what_another_sweep_merges_while_it_is_read_is_read_there(often, copied, whole):
    """A chunk is gone when it is to be read: in opening, in merging, and in reading."""
    for reader in (lambda _: Store(copied), Store.merge, Store.read):
        store, met = Store(copied), []

        def meanwhile(path, plain=Path.read_bytes, met=met):
            if not met and path.name.startswith("part-"):
                met.append(path)
                with pytest.MonkeyPatch.context() as patched:
                    patched.setattr(Path, "read_bytes", plain)
                    Store(copied).merge()
            return plain(path)

        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Path, "read_bytes", meanwhile)
            found = reader(store)
        assert met
        assert not met[0].exists()
        if reader is Store.read:
            pd.testing.assert_frame_equal(found.to_pandas(), whole.to_pandas())
        assert_whole(copied, whole)
        for path in copied.iterdir():
            path.unlink()
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(storing, "MANY", 100)
            fill(copied)


def test_a_chunk_that_another_sweep_has_merged_is_not_written_again(often, copied):
    late = Store(copied)
    Store(copied).merge()
    merged = [chunk for chunk in CHUNKS if not (copied / chunk.file).exists()]
    assert len(merged) == 8
    with pytest.raises(StoreError, match=f"{merged[0].file}: appeared while"):
        late.write(merged[0], measured(merged[0]))


def test_a_run_in_a_merged_and_in_another_file_is_refused(merged):
    directory, _ = merged
    rest = Chunk(CELL, 5, 6)
    store = Store(directory)
    store.write(rest, measured(rest))
    with pytest.raises(StoreError, match=rf"{rest.file}: holds runs that another file"):
        Store(directory)
