"""Sweeps: the same table whatever happens to the workers, the process and the files."""

import errno
import math
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pu_lib.empirical.options import PRESETS, describe, parse
from pu_lib.empirical.panels import ABLATIONS, paper_chunks
from pu_lib.empirical.store import COLUMNS, Cell, Store, StoreError
from pu_lib.empirical.sweep import chunks_of, problem_of, run_chunk, sweep

ROOT = Path(__file__).parents[2]

CELL = Cell(
    experiment="test",
    domain="chain",
    scheme="HiOffPol",
    update="di",
    eta=1.0,
    n_states=6,
    n_actions=2,
    beta=0.8,
    preset="paper",
    max_steps=20_000,
    target=0.5,
    seed=3,
)


def small_chunks():
    cells = [replace(CELL, update=update, eta=eta) for update in ("di", "ce") for eta in (0.1, 1.0)]
    random = replace(
        CELL, domain="random-mdp", n_states=15, n_actions=3, beta=math.nan, target=0.95
    )
    return chunks_of([*cells, random], runs=10, size=4)


def assert_same_table(table, expected):
    assert table.schema.equals(expected.schema)
    pd.testing.assert_frame_equal(table.to_pandas(), expected.to_pandas(), check_exact=True)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The table of an undisturbed sweep on one thread."""
    directory = tmp_path_factory.mktemp("whole")
    assert sweep(small_chunks(), directory, workers=1) == 15
    return Store(directory).read()


@pytest.mark.parametrize("workers", [2, 4])
def test_threads_do_not_change_the_table(whole, tmp_path, workers):
    sweep(small_chunks(), tmp_path, workers=workers)
    assert_same_table(Store(tmp_path).read(), whole)


def test_order_does_not_change_the_table(whole, tmp_path):
    sweep(small_chunks()[::-1], tmp_path, workers=1)
    assert_same_table(Store(tmp_path).read(), whole)


def test_pandas_reads_the_dataset(whole, tmp_path):
    sweep(small_chunks(), tmp_path, workers=2)
    frame = pd.read_parquet(tmp_path)
    assert list(frame.columns) == COLUMNS.names
    assert len(frame) == 50
    assert frame["steps"].to_numpy().tolist() == whole["steps"].to_pylist()
    assert frame["eta"].dtype == np.float64
    assert (frame["final_performance"][~frame["censored"]] >= 0.5).all()


def test_runs_do_not_depend_on_their_chunk(whole):
    measured = run_chunk(chunks_of([CELL], 10, 10)[0])
    rows = whole.to_pandas().query("domain == 'chain' and update == 'di' and eta == 1.0")
    assert rows.sort_values("run")["steps"].tolist() == measured["steps"].tolist()


def test_a_second_sweep_computes_nothing(tmp_path):
    assert sweep(small_chunks()[:2], tmp_path) == 2
    assert sweep(small_chunks()[:2], tmp_path) == 0


SCRIPT = """
    import sys, time
    sys.path.insert(0, {tests!r})
    import test_sweep as t
    from pu_lib.empirical import sweep as sweeping
    compute = sweeping.run_chunk
    def slow(chunk):
        time.sleep(0.05)
        return compute(chunk)
    sweeping.run_chunk = slow
    t.sweep(t.small_chunks(), {out!r}, workers=2)
"""


def test_killed_and_resumed(whole, tmp_path):
    script = textwrap.dedent(SCRIPT.format(tests=str(Path(__file__).parent), out=str(tmp_path)))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment)
    deadline = time.monotonic() + 60
    while len(list(tmp_path.glob("part-*"))) < 4 and time.monotonic() < deadline:
        time.sleep(0.005)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    # What a kill in the middle of a write leaves behind:
    (tmp_path / ".writing-part-0").write_bytes(b"PAR1 half")
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("part-*")}
    assert 4 <= len(before) < 15
    assert sweep(small_chunks(), tmp_path) == 15 - len(before)
    assert_same_table(Store(tmp_path).read(), whole)
    after = {path.name: path.stat().st_mtime_ns for path in tmp_path.glob("part-*")}
    assert after.items() >= before.items(), "a finished chunk was written again"


def test_a_torn_file_is_named_and_kept(tmp_path):
    sweep(small_chunks()[:2], tmp_path)
    victim = sorted(tmp_path.glob("part-*"))[0]
    content = victim.read_bytes()[:-100]
    victim.write_bytes(content)
    with pytest.raises(StoreError, match=victim.name):
        sweep(small_chunks(), tmp_path)
    assert victim.read_bytes() == content
    assert len(list(tmp_path.iterdir())) == 2


def test_a_flipped_bit_is_found(tmp_path):
    sweep(small_chunks()[:1], tmp_path)
    victim = next(tmp_path.glob("part-*"))
    content = bytearray(victim.read_bytes())
    page = pq.ParquetFile(victim).metadata.row_group(0).column(14)
    content[page.data_page_offset + page.total_compressed_size - 3] ^= 1
    victim.write_bytes(content)
    with pytest.raises(StoreError, match=victim.name):
        Store(tmp_path)


@pytest.mark.parametrize("name", ["notes.txt", "part-0.parquet"])
def test_a_foreign_file_is_named_and_kept(tmp_path, name):
    if name.endswith("parquet"):
        pq.write_table(pa.table({"x": [1]}), tmp_path / name)
    else:
        (tmp_path / name).write_text("mine")
    content = (tmp_path / name).read_bytes()
    with pytest.raises(StoreError, match=name):
        sweep(small_chunks(), tmp_path)
    assert (tmp_path / name).read_bytes() == content


def test_a_renamed_chunk_is_foreign(tmp_path):
    first, second = small_chunks()[:2]
    sweep([first], tmp_path)
    (tmp_path / first.file).rename(tmp_path / second.file)
    with pytest.raises(StoreError, match="holds other runs"):
        Store(tmp_path)


def test_another_engines_chunk_is_not_mixed_in(tmp_path, monkeypatch):
    monkeypatch.setattr("pu_lib.empirical.store.ENGINE", "0")
    sweep(small_chunks()[:1], tmp_path)
    monkeypatch.undo()
    with pytest.raises(StoreError, match="made by engine 0"):
        Store(tmp_path)


def test_a_full_disk_is_an_error(tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreError, match=r"part-.*No space left"):
        sweep(small_chunks(), tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not os.access("/dev/full", os.W_OK), reason="needs /dev/full")
def test_a_device_without_space_is_an_error(tmp_path):
    chunk = small_chunks()[0]
    (tmp_path / f".writing-{chunk.file}").symlink_to("/dev/full")
    store = Store.__new__(Store)  # opening would clear the link
    store.directory = tmp_path
    with pytest.raises(StoreError, match="No space left"):
        store.write(chunk, run_chunk(chunk))
    assert not list(tmp_path.glob("part-*"))


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be made"):
        Store(tmp_path / "file" / "data")


def test_the_same_stream_and_process_for_every_setting():
    random = replace(CELL, domain="random-mdp", n_states=15, n_actions=3, beta=math.nan)
    other = replace(random, update="ce", eta=3.0, scheme="NoExplo")
    assert problem_of(random, 4) is problem_of(other, 4)
    assert problem_of(random, 4) is not problem_of(random, 5)
    assert problem_of(CELL, 4) is problem_of(CELL, 5)


def test_no_runs_get_a_sentence():
    with pytest.raises(ValueError, match="runs: expected at least one"):
        chunks_of([CELL], 0, 10)
    with pytest.raises(ValueError, match="workers: expected at least one"):
        sweep([], "unused", workers=0)


@pytest.mark.parametrize("options", [*PRESETS.values(), *ABLATIONS], ids=describe)
def test_descriptions_of_options_can_be_read_back(options):
    assert parse(describe(options)) == options


def test_the_papers_panels():
    chunks = paper_chunks()
    runs = {}
    for chunk in chunks:
        cell = chunk.cell
        runs[cell] = runs.get(cell, 0) + chunk.count
    panels = {}
    for cell, count in runs.items():
        panels.setdefault((cell.experiment, cell.scheme, str(cell.beta)), set()).add(count)
    assert panels["random-mdp", "NoExplo", "nan"] == {1000}
    assert panels["chain", "NoExplo", "0.8"] == panels["chain", "HiOffPol", "0.7"] == {100}
    assert panels["cliff", "HiOffPol", "0.8"] == {100}
    assert panels["chain-length", "LowOffPol", "0.7"] == {40}
    assert len({chunk.file for chunk in chunks}) == len(chunks)
    assert {cell.n_states for cell in runs if cell.experiment == "chain-length"} == set(
        range(3, 26)
    )


@pytest.fixture
def cluster(monkeypatch):
    """A Dask scheduler with two worker processes."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with distributed.LocalCluster(
        n_workers=2,
        threads_per_worker=1,
        processes=True,
        dashboard_address=None,
        silence_logs="CRITICAL",
    ) as cluster:
        yield cluster


def test_a_lost_worker_does_not_change_the_table(cluster, tmp_path):
    sweep(small_chunks(), tmp_path / "threads", workers=1)
    killed = []

    def kill_one():
        while len(list((tmp_path / "cluster").glob("part-*"))) < 3:
            time.sleep(0.005)
        worker = next(iter(cluster.workers.values()))
        killed.append(worker.pid)
        os.kill(worker.pid, 9)

    (tmp_path / "cluster").mkdir()
    killer = threading.Thread(target=kill_one, daemon=True)
    killer.start()
    sweep(small_chunks(), tmp_path / "cluster", scheduler=cluster.scheduler_address)
    killer.join(timeout=10)
    assert killed
    assert_same_table(Store(tmp_path / "cluster").read(), Store(tmp_path / "threads").read())


def test_an_unreachable_scheduler_gets_a_sentence(tmp_path, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("pu_lib.empirical.sweep._PATIENCE", "1s")
    with pytest.raises(ValueError, match="cannot be reached"):
        sweep(small_chunks(), tmp_path, scheduler="tcp://127.0.0.1:9")
