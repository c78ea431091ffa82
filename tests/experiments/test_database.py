"""Test that the database of a sweep loses no written run and stores no run twice."""

import errno
import itertools
import multiprocessing
import os
import random
import shutil
import signal
import sqlite3
import sys
import tempfile
import time
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pandas as pd
import pytest

from pu_lib import domains
from pu_lib.__main__ import main
from pu_lib.domains import Domain
from pu_lib.experiments import database as databases
from pu_lib.experiments import sweep as sweeping
from pu_lib.experiments.cells import Chunk
from pu_lib.experiments.database import (
    CELL_COLUMNS,
    COLUMNS,
    Database,
    DatabaseError,
    cell_of,
)
from pu_lib.experiments.options import PAPER
from pu_lib.experiments.sweep import chunks_of, grid, run_chunk, run_missing, sweep
from pu_lib.mdp import FiniteMDP

WORDS = dict(
    zip(
        CELL_COLUMNS,
        ["chain", "chain", "HiOffPol", "pg-es", 1.0, 6, 2, 0.8, "paper", 20_000, 0.5, 3],
        strict=True,
    )
)
CELL = cell_of(WORDS)
RANDOM = {"domain": "random-mdp", "update": "di", "n_states": 8, "n_actions": 3, "beta": np.nan}
DRAWN = cell_of({**WORDS, **RANDOM})
CHUNKS = chunks_of([CELL, cell_of({**WORDS, "update": "ce"}), DRAWN], 9, 3)
FORK = multiprocessing.get_context("fork")


def measured(chunk):
    """Return artificial results that identify the run and its update."""
    runs = np.arange(chunk.first, chunk.first + chunk.count)
    steps = 100 * runs + len(chunk.cell.update.name)
    rows = {"run": runs, "steps": steps, "episodes": steps, "censored": runs % 2 == 0}
    return {**rows, "final_performance": np.sqrt(steps)}


def fill(directory, chunks=CHUNKS):
    with Database(directory) as database:
        for chunk in chunks:
            database.write(chunk, measured(chunk))
    return directory


def read(directory):
    with Database(directory) as database:
        return database.read()


def missing(directory, chunks=CHUNKS):
    with Database(directory) as database:
        return [
            (chunk.cell.update.name, chunk.first, chunk.count) for chunk in database.missing(chunks)
        ]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Return the rows of a database with all chunks."""
    return read(fill(tmp_path_factory.mktemp("whole")))


def assert_same(rows, others):
    pd.testing.assert_frame_equal(rows, others, check_exact=True)


def assert_complete(directory, whole):
    assert_same(read(directory), whole)
    assert missing(directory) == []


# Reading and writing


@pytest.mark.parametrize("order", [1, -1])
def test_table_does_not_depend_on_the_order_of_writing(whole, tmp_path, order):
    assert_complete(fill(tmp_path, CHUNKS[::order]), whole)
    assert list(whole.columns) == COLUMNS.names
    assert whole["run"].tolist() == [*range(9)] * 3


def test_new_database_has_no_runs(tmp_path):
    with Database(tmp_path / "deep" / "down") as database:
        assert database.read().empty
        assert database.missing(CHUNKS) == CHUNKS
        assert len(pd.read_parquet(database.export())) == 0


def test_numbers_are_stored_exactly(tmp_path):
    chunk, ends = Chunk(CELL, 0, 5), [-0.0, 0.1 + 0.2, 1.0, 5e-324, np.inf]
    large = 2**53 + 1 + np.arange(5)
    with Database(tmp_path) as database:
        database.write(
            chunk,
            {**measured(chunk), "steps": large, "final_performance": np.array(ends)},
        )
        database.export()
    for table in (read(tmp_path), pd.read_parquet(tmp_path / "runs.parquet")):
        assert table["steps"].tolist() == large.tolist()
        assert table["final_performance"].to_numpy().tobytes() == np.array(ends).tobytes()


def test_missing_returns_the_gaps_between_runs(tmp_path):
    fill(tmp_path, [Chunk(DRAWN, 2, 2), Chunk(DRAWN, 7, 1)])
    assert missing(tmp_path, [Chunk(DRAWN, 0, 10)]) == [("di", 0, 2), ("di", 4, 3), ("di", 8, 2)]
    assert missing(tmp_path, [Chunk(DRAWN, 2, 2)]) == []


def test_rewriting_runs_is_allowed_with_equal_results_only(whole, tmp_path):
    fill(fill(tmp_path))
    assert_complete(tmp_path, whole)
    chunk = Chunk(CELL, 7, 5)  # two of its runs are stored
    other = measured(chunk)
    other["steps"][1] += 1
    with Database(tmp_path) as database, pytest.raises(DatabaseError, match="other results of the"):
        database.write(chunk, other)
    assert_complete(tmp_path, whole)
    fill(tmp_path, [chunk])
    assert read(tmp_path).query("update == 'pg-es'")["run"].tolist() == list(range(12))


def test_failed_export_does_not_change_the_old_table(tmp_path, monkeypatch):
    fill(tmp_path, CHUNKS[:1])
    with Database(tmp_path) as database:
        assert database.export() == tmp_path / "runs.parquet"
        before = (tmp_path / "runs.parquet").read_bytes()
        database.write(CHUNKS[1], measured(CHUNKS[1]))
        with monkeypatch.context() as patched:
            patched.setattr(os, "fsync", raise_disk_full)
            with pytest.raises(
                DatabaseError, match=r"runs\.parquet: .*No space.* safe in runs\.sq"
            ):
                database.export()
        assert (tmp_path / "runs.parquet").read_bytes() == before
        database.export()
        assert_same(pd.read_parquet(tmp_path / "runs.parquet"), database.read())
    assert sorted(os.listdir(tmp_path)) == ["runs.parquet", "runs.sqlite"]


def raise_disk_full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_runs_can_be_queried_with_sqlite(tmp_path):
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection:
        rows = connection.execute(
            "SELECT json_extract(cell, '$.beta'), max(steps) "
            "FROM runs JOIN settings ON id = setting GROUP BY cell ORDER BY 1"
        ).fetchall()
    assert rows == [(None, 802), (0.8, 802), (0.8, 805)]


# Killed sweeps


def start_process(function, *arguments):
    process = FORK.Process(target=function, args=arguments)
    process.start()
    return process


def slow_sweep(chunks, directory, written, most):
    """Sweep slowly, send the index of each written chunk to a pipe, and stop after `most`."""
    write, begun = Database.write, itertools.count()

    def write_and_report(self, chunk, measured):
        write(self, chunk, measured)
        os.write(written, chunks.index(chunk).to_bytes(2, "big"))

    Database.write = write_and_report

    def run_slowly(chunk):
        time.sleep(0.01 if next(begun) < most else 3600)
        return run_chunk(chunk)

    sweeping.run_chunk = run_slowly
    run_missing(chunks, directory, workers=2)


def test_sweep_killed_twenty_times_loses_no_run(tmp_path):
    """The kills happen after a random number of chunks, some before the database is created."""
    cells = [
        cell_of({**WORDS, "update": update, "step_size": step_size})
        for update in ("di", "ce")
        for step_size in (0.1, 1.0)
    ]
    chunks = chunks_of(cells, 900, 5)
    run_missing(chunks, tmp_path / "whole")
    rng, directory, written_chunks, counts = random.Random(0), tmp_path / "killed", set(), []
    most = 35  # 20 sweeps then leave some of the 720 chunks, however late they are killed
    for number in rng.choices(range(8), k=20):
        out, into = os.pipe()
        process = start_process(slow_sweep, chunks, directory, into, most)
        os.close(into)
        with open(out, "rb") as pipe:
            indices = pipe.read(2 * number)  # waits until so many chunks are written
            time.sleep(rng.uniform(0.0, 0.02))
            process.kill()
            process.join()
            assert process.exitcode == -signal.SIGKILL
            indices += pipe.read()
        assert len(indices) >= 2 * number
        written_chunks |= {
            int.from_bytes(indices[k : k + 2], "big") for k in range(0, len(indices), 2)
        }
        with Database(directory) as database:
            lacking = database.missing(chunks)
            assert not {chunks[k] for k in written_chunks} & set(lacking), (
                "a chunk that was written is lost"
            )
            counts.append(len(database.read()))
            assert counts[-1] == 3600 - sum(chunk.count for chunk in lacking)
    assert counts == sorted(counts)
    assert 5 * len(written_chunks) <= counts[-1] < 3600
    assert len(written_chunks) > 20
    run_missing(chunks, directory)
    assert_same(read(directory), read(tmp_path / "whole"))
    tables = [(tmp_path / name / "runs.parquet").read_bytes() for name in ("killed", "whole")]
    assert tables[0] == tables[1]


# Two sweeps in one directory


def test_two_concurrent_sweeps_write_one_table(tmp_path):
    chunks = grid(
        "chain n_states=4", runs=60, step_sizes=[1.0, 3.0], updates=["di"], max_steps=2000
    )
    chunks = [Chunk(c.cell, c.first + k, 1) for c in chunks for k in range(c.count)]
    run_missing(chunks, tmp_path / "alone", workers=1)
    for order in (1, -1):
        directory = tmp_path / f"both{order}"
        sweeps = [
            start_process(partial(run_missing, workers=1), chunks[::k], directory)
            for k in (1, order)
        ]
        for process in sweeps:
            process.join()
        assert [process.exitcode for process in sweeps] == [0, 0]
        assert_same(read(directory), read(tmp_path / "alone"))
        assert_same(pd.read_parquet(directory / "runs.parquet"), read(directory))


def test_concurrent_processes_can_create_one_database(tmp_path):
    start = FORK.Event()

    def work():
        start.wait()
        for k in range(10):
            Database(tmp_path / str(k)).close()

    many = [start_process(work) for _ in range(6)]
    start.set()
    for process in many:
        process.join()
    assert [process.exitcode for process in many] == [0] * 6


# Changed MDPs


@pytest.fixture
def machine():
    """Return a function that registers a domain under the same name."""

    def make(beta, **options):
        domains._DOMAINS.pop("machine", None)
        return domains.register_domain(
            Domain("machine", lambda discount=0.99: domains.chain(6, beta, discount), **options)
        )

    yield make
    domains._DOMAINS.pop("machine", None)


SETTINGS = {"updates": ["ce"], "step_sizes": [0.1], "max_steps": 20_000}


def test_sweep_rejects_a_changed_domain_with_the_same_name(machine, tmp_path):
    machine(0.8)
    assert sweep("machine", tmp_path, runs=4, **SETTINGS).computed == 1
    before = read(tmp_path)
    machine(0.8)  # a different function with the same MDP
    assert sweep("machine", tmp_path, runs=4, **SETTINGS).computed == 0
    machine(0.3)
    for runs in (4, 8):
        with pytest.raises(DatabaseError, match="has runs of 'machine' when this was another"):
            sweep("machine", tmp_path, runs=runs, **SETTINGS)
    machine(0.8, baseline="first")  # a different threshold
    with pytest.raises(DatabaseError, match="name another directory, or give the process another"):
        sweep("machine", tmp_path, runs=4, **SETTINGS)
    assert_same(read(tmp_path), before)
    assert sweep("machine", tmp_path / "other", runs=4, **SETTINGS).computed == 1


def test_sweep_rejects_a_changed_process_for_new_settings(machine, tmp_path):
    """The settings of one name are compared in a table, so they must have the same MDP."""
    machine(0.8)
    sweep("machine", tmp_path, runs=2, **SETTINGS)
    machine(0.3)
    for new in ({"updates": ["di"]}, {"step_sizes": [0.2]}, {"seed": 1}, {"max_steps": 10}):
        with pytest.raises(DatabaseError, match="has runs of 'machine' when this was another"):
            sweep("machine", tmp_path, runs=2, **{**SETTINGS, **new})
    domains._DOMAINS.pop("machine")
    domains.register_domain(Domain("machine", lambda discount=0.99: domains.chain(7, 0.8)))
    with pytest.raises(DatabaseError, match="has runs of 'machine' when this was another"):
        sweep("machine", tmp_path, runs=2, **SETTINGS)  # even if a column differs
    machine(0.8)
    assert sweep("machine discount=0.9", tmp_path, runs=2, **SETTINGS).computed == 1
    assert sweep("machine", tmp_path, runs=2, **{**SETTINGS, "updates": ["di"]}).computed == 1


def test_settings_that_change_the_process_are_no_conflict(tmp_path):
    for process, options in [
        ("chain", {"parameters": {"n_states": [3, 4], "beta": [0.7, 0.8]}}),
        ("chain", {"options": replace(PAPER, last_state_tie=True)}),
        ("random-mdp n_states=8", {"seed": 0}),
        ("random-mdp n_states=8", {"seed": 1}),
    ]:
        assert sweep(process, tmp_path, runs=1, **SETTINGS, **options).computed >= 1
    rows = read(tmp_path)
    assert (
        rows.groupby(
            ["domain", "n_states", "beta", "options", "seed"], dropna=False, observed=True
        )["process"]
        .nunique()
        .eq(1)
        .all()
    )
    assert rows["process"].nunique() == len(rows) == 4 + 1 + 2


def test_known_runs_of_another_process_are_computed_again(machine, tmp_path):
    machine(0.8)
    sweep("machine", tmp_path / "before", runs=4, **SETTINGS)
    known = pd.read_parquet(tmp_path / "before" / "runs.parquet")
    assert sweep("machine", tmp_path / "same", runs=4, known=known, **SETTINGS).computed == 0
    machine(0.3)
    assert sweep("machine", tmp_path / "known", runs=4, known=known, **SETTINGS).computed == 1
    without = known.drop(columns="process")  # as in critic.parquet
    assert sweep("machine", tmp_path / "without", runs=4, known=without, **SETTINGS).computed == 1
    sweep("machine", tmp_path / "alone", runs=4, **SETTINGS)
    for name in ("known", "without"):
        assert_same(read(tmp_path / name), read(tmp_path / "alone"))
    runs = pd.concat([known, read(tmp_path / "alone")])
    assert sweep("machine", tmp_path / "both", runs=4, known=runs, **SETTINGS).computed == 0


def test_known_runs_without_a_process_are_taken_over_if_the_name_is_sure(tmp_path):
    for process in ("chain n_states=4", domains.chain(5)):
        sweep(process, tmp_path / "first", runs=2, target=0.5, **SETTINGS)
        known = read(tmp_path / "first").drop(columns="process")
        assert (
            sweep(process, tmp_path / "next", runs=2, known=known, target=0.5, **SETTINGS).computed
            == 0
        )
    assert_same(read(tmp_path / "next"), read(tmp_path / "first"))


def test_sweep_rejects_a_changed_drawn_domain_with_the_same_name(tmp_path):
    def register(branching):
        def make(rng, n_states=6):
            return domains.random_mdp(rng, n_states, 2, branching)

        domains._DOMAINS.pop("drawn", None)
        domains.register_domain(Domain("drawn", make, drawn=True))

    try:
        register(2)
        assert sweep("drawn", tmp_path, runs=2, **SETTINGS).computed == 1
        register(2)
        assert sweep("drawn", tmp_path, runs=4, **SETTINGS).computed == 1
        register(3)
        with pytest.raises(DatabaseError, match="when this was another process"):
            sweep("drawn", tmp_path, runs=6, **SETTINGS)
    finally:
        domains._DOMAINS.pop("drawn", None)


class Once(gymnasium.Env):
    """A bandit with two actions, the second of which has a reward."""

    observation_space, action_space = gymnasium.spaces.Discrete(1), gymnasium.spaces.Discrete(2)
    initial_state_distrib = (1.0,)

    def __init__(self, reward):
        self.P = {0: {0: [(1.0, 0, 0.0, True)], 1: [(1.0, 0, reward, True)]}}


def test_sweep_rejects_a_changed_environment_with_the_same_id(tmp_path, monkeypatch):
    monkeypatch.setattr(gymnasium.envs.registration, "registry", dict(gymnasium.registry))
    for reward in (1.0, 2.0):
        gymnasium.register("Own-v0", partial(Once, reward), disable_env_checker=True)
        if reward == 1.0:
            assert sweep("Own-v0", tmp_path, runs=2, **SETTINGS).computed == 1
    with pytest.raises(DatabaseError, match="has runs of 'Own-v0' when this was another process"):
        sweep("Own-v0", tmp_path, runs=2, **SETTINGS)


def test_runs_of_another_engine_are_rejected(tmp_path, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(databases, "engine_of", lambda update, options: "0")
        fill(tmp_path, CHUNKS[:1])
    with pytest.raises(DatabaseError, match="made by engine 0, this is 2: the code"):
        Database(tmp_path)
    with monkeypatch.context() as patched:  # as for an unknown update
        patched.setattr(databases, "engine_of", lambda update, options: "")
        assert set(read(tmp_path)["engine"]) == {"0"}


# Damaged databases


def read_or_refusal(directory):
    try:
        return read(directory), ""
    except DatabaseError as error:
        return None, str(error)


def assert_rejected(directory, sentence):
    before = (directory / "runs.sqlite").read_bytes()
    with pytest.raises(
        DatabaseError, match=rf"runs\.sqlite: .*{sentence}.*; move it away, or name"
    ):
        read(directory)
    assert (directory / "runs.sqlite").read_bytes() == before


def test_other_files_are_rejected(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.write_text("mine" * 1000)
    assert_rejected(tmp_path, "file is not a database")
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE runs (mine)")
    assert_rejected(tmp_path, "it has other tables, or is of a later release")
    path.unlink()
    fill(tmp_path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 2")
    assert_rejected(tmp_path, "is of a later release")


def test_flipped_bit_is_harmless_or_detected(whole, tmp_path):
    fill(tmp_path)
    path, detected = tmp_path / "runs.sqlite", 0
    content = path.read_bytes()
    for place in [k for k, byte in enumerate(content) if byte][::29]:
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        rows, message = read_or_refusal(tmp_path)
        if rows is None:
            assert str(path) in message
            detected += 1
        else:
            assert_same(rows, whole)
            with suppress(DatabaseError):  # the digest of an MDP has no checksum
                assert missing(tmp_path) == []
    assert detected > 50
    path.write_bytes(content[:-5000])
    with pytest.raises(DatabaseError, match="malformed"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE runs SET steps = steps + 1 WHERE run = 3", "the checksum of a run is wrong"),
        ("UPDATE runs SET setting = 9 WHERE setting = 1", "the checksum of a run is wrong"),
        ("UPDATE settings SET cell = replace(cell, '20000', '30000')", "the checksum of a run"),
        ("UPDATE settings SET cell = '{'", "a setting cannot be read"),
        ("UPDATE settings SET cell = '[]'", "a setting cannot be read"),
        ("UPDATE settings SET cell = '{\"step_size\": 1}'", "a setting cannot be read"),
        (
            "UPDATE settings SET cell = replace(cell, '\"seed\": 3', '\"seed\": true')",
            "seed: expected",
        ),
        ("UPDATE settings SET cell = replace(cell, '\"paper\"', '\"xyzzy\"')", "unknown 'xyzzy'"),
        ("UPDATE settings SET cell = CAST(x'ff00' AS TEXT)", "Could not decode to UTF-8"),
        ("ALTER TABLE runs ADD COLUMN own", r"tables were changed by another program \(runs\)"),
        ("ALTER TABLE runs DROP COLUMN episodes", "tables were changed by another program"),
        ("ALTER TABLE runs RENAME TO own; CREATE VIEW runs AS SELECT * FROM own", "were changed"),
        (
            "CREATE TRIGGER t AFTER INSERT ON runs BEGIN DELETE FROM runs; END",
            r"tables were changed by another program \(t\)",
        ),
    ],
)
def test_manual_changes_are_detected(change, sentence, tmp_path):
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
        connection.executescript(change)
    assert_rejected(tmp_path, sentence)


def test_tables_of_a_user_are_left_alone(whole, tmp_path):
    fill(tmp_path)
    with closing(sqlite3.connect(tmp_path / "runs.sqlite")) as connection, connection:
        connection.executescript("CREATE VIEW best AS SELECT min(steps) FROM runs; ANALYZE")
    assert_complete(tmp_path, whole)


def test_path_that_is_no_file_is_named(tmp_path):
    path = tmp_path / "runs.sqlite"
    path.mkdir()
    with pytest.raises(DatabaseError, match=r"runs\.sqlite: is not a file; move it away, or name"):
        Database(tmp_path)
    path.rmdir()
    path.symlink_to(tmp_path / "missing")
    with pytest.raises(DatabaseError, match=r"runs\.sqlite: is a link that does not point"):
        Database(tmp_path)
    assert path.is_symlink()


# Settings that cannot be read again


def bet(stake: int = 1, word: str = "red") -> FiniteMDP:
    return domains.chain(4)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"experiment": 2026}, "experiment: expected a text, .*, got 2026"),
        ({"experiment": True}, "experiment: expected a text, .*, got True"),
        ({"experiment": 1.5}, "experiment: expected a text, .*, got 1.5"),
        ({"experiment": ("a",)}, r"experiment: expected a text, .*, got \('a',\)"),
        ({"experiment": b"a"}, "experiment: expected a text, .*, got b'a'"),
        ({"experiment": ""}, "experiment: expected a text, .*, got ''"),
        ({"experiment": "a\ud800"}, r"experiment: expected a text, .*, got 'a\\ud800'"),
        ({"target": "0.5"}, "target: expected an array of numbers, got text"),
        ({"parameters": {"word": ["two words"]}}, "'words' is not 'option=value'"),
        ({"parameters": {"word": ["5"]}}, "word: expected .*, got '5', which is read as 5.0"),
        ({"parameters": {"stake": [1.5]}}, "stake: expected an integer, got '1.5'"),
        ({"parameters": {"stake": [float("nan")]}}, "stake: expected an integer, got 'nan'"),
    ],
)
def test_settings_that_cannot_be_read_are_not_written(settings, sentence, tmp_path, monkeypatch):
    monkeypatch.setitem(domains._DOMAINS, "bet", Domain("bet", bet))
    with pytest.raises(ValueError, match=sentence):
        sweep("bet", tmp_path, updates=["ce"], step_sizes=[1], runs=1, max_steps=9, **settings)
    assert os.listdir(tmp_path) == []


def test_numbers_of_numpy_are_stored(tmp_path):
    lengths = {"n_states": np.arange(3, 5), "beta": np.array([0.7], np.float32)}
    settings = {"updates": ["ce"], "step_sizes": np.array([1]), "max_steps": np.int64(9)}
    result = sweep("chain", tmp_path, runs=1, parameters=lengths, seed=np.int64(2), **settings)
    assert result.table["n_states"].tolist() == [3, 4]
    assert cell_of(result.table.iloc[0]).process.parameters["n_states"] == 3


def test_measurements_of_another_type_are_not_written(tmp_path):
    chunk = CHUNKS[0]
    with Database(tmp_path) as database:
        with pytest.raises(TypeError, match="Cannot cast"):
            database.write(chunk, {**measured(chunk), "steps": np.full(3, 1.5)})
        assert database.read().empty


@pytest.mark.parametrize("default", [float("nan"), "two words", "", [1]])
def test_domain_with_a_default_that_cannot_be_read_is_rejected(default):
    with pytest.raises(ValueError, match="stake: a parameter is a number, a boolean or a word"):
        domains.register_domain(Domain("own-bet", lambda stake=default: domains.chain(4)))


# Disks


def unprivileged(command):
    """Run a command as a user without permission to write to the test directories."""
    if os.getuid() == 0:
        os.setuid(65534)
    return main(command)


def test_runs_are_collected_from_a_read_only_directory(whole):
    def read_only_copy(name, *omitted):
        copy = root / name
        shutil.copytree(source, copy, ignore=shutil.ignore_patterns(*omitted))
        for path in (*copy.iterdir(), copy):
            path.chmod(0o555 if path.is_dir() else 0o444)
        return copy

    def collect_from(directory):
        collect = ["collect", str(directory), "--out", str(root / f"out of {directory.name}")]
        return run_in_process(unprivileged, collect)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o777)
        source = fill(root / "100 % #?", CHUNKS[1:])
        # The other user cannot write to the cache of compiled code either.
        run_in_process(main, ["collect", str(source), "--out", str(root / "compiled")])
        with Database(source) as database:
            database.write(CHUNKS[0], measured(CHUNKS[0]))  # in the write-ahead log
            assert collect_from(read_only_copy("opened")) == (0, "")
            code, message = collect_from(read_only_copy("torn", "*-shm"))
        assert collect_from(read_only_copy("closed")) == (0, "")
        assert code == 2
        assert "runs.sqlite-wal, which cannot be read in a read-only directory" in message
        for name in ("closed", "opened"):
            assert_same(pd.read_parquet(root / f"out of {name}" / "runs.parquet"), whole)


def test_database_opened_for_reading_is_not_written(whole, tmp_path):
    content = (fill(tmp_path) / "runs.sqlite").read_bytes()
    with Database(tmp_path, read_only=True) as database:
        assert_same(database.read(), whole)
        with pytest.raises(DatabaseError, match="readonly database; reading needs permission"):
            database.write(Chunk(CELL, 9, 3), measured(Chunk(CELL, 9, 3)))
    assert os.listdir(tmp_path) == ["runs.sqlite"]
    assert (tmp_path / "runs.sqlite").read_bytes() == content
    with pytest.raises(DatabaseError, match="unable to open database file; reading needs"):
        Database(tmp_path / "none", read_only=True)


def test_full_database_raises_and_can_be_resumed(whole, tmp_path):
    fill(tmp_path, CHUNKS[:2])
    with Database(tmp_path) as database:
        ((pages,),) = database._execute("PRAGMA page_count")
        database._execute(f"PRAGMA max_page_count = {pages}")
        large = Chunk(CELL, 9, 2000)
        with pytest.raises(DatabaseError, match=r"disk is full; a sweep needs .* can be resumed"):
            database.write(large, measured(large))
    fill(tmp_path)
    assert missing(tmp_path) == []


def run_in_process(function, *arguments):
    """Run a function in a new process and return its exit code and its last line of stderr."""
    with tempfile.TemporaryFile() as message:

        def work():
            with open(message.fileno(), "w", closefd=False) as sys.stderr:
                code = function(*arguments)
            os._exit(code)

        process = start_process(work)
        process.join()
        message.seek(0)
        return process.exitcode, (message.read().decode().splitlines() or [""])[-1]


SMALL = [
    "sweep",
    "chain n_states=3",
    "--runs",
    "200",
    "--step-size",
    "1",
    "--update",
    "di",
    "--out",
]


def test_sweep_on_a_full_disk_exits_with_an_error_message(tmp_path):
    resource = pytest.importorskip("resource")

    def limited():
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        return main([*SMALL, str(tmp_path)])

    code, message = run_in_process(limited)
    assert code == 2
    assert message.startswith(f"error: {tmp_path}/runs.sqlite: ")
    assert "on a local disk with space left" in message
    assert main([*SMALL, str(tmp_path)]) == 0


def test_sweep_in_a_read_only_directory_exits_with_an_error_message():
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o555)
        code, message = run_in_process(unprivileged, [*SMALL, directory])
        assert (code, os.listdir(directory)) == (2, [])
        assert f"{directory}: is read-only; a sweep needs a directory that it may write" in message


def test_database_rejects_a_directory_that_cannot_be_created(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DatabaseError, match="cannot be made"):
        Database(tmp_path / "file" / "data")


def test_database_rejects_network_disks(tmp_path, monkeypatch):
    assert databases._file_system(tmp_path) not in databases._NETWORK
    if Path("/proc/self/mountinfo").exists():
        assert databases._file_system(Path("/proc")) == "proc"
    monkeypatch.setattr(databases, "_file_system", lambda _: "nfs4")
    with pytest.raises(DatabaseError, match=r"network disk \(nfs4\); a sweep needs .* local disk"):
        Database(tmp_path)
    assert os.listdir(tmp_path) == []


def test_database_rejects_disks_without_write_ahead_log(tmp_path, monkeypatch):
    def without_shared_memory(path, *arguments, **options):
        return connect(f"file:{path}?vfs=unix-dotfile", *arguments, **options, uri=True)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", without_shared_memory)
    with pytest.raises(DatabaseError, match=r"no write-ahead log; a sweep needs .* a local disk"):
        Database(tmp_path)
