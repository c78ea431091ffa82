"""The runs of a sweep: an SQLite database in a directory, and Parquet tables written from it.

A sweep with curves keeps them in a table of its own, which other sweeps do not have, and in the
column ``performances`` of the Parquet table. ``about.json`` has what the table does not say: the
sources of updates that are not of the library, and the versions of the last sweep.

``runs.sqlite`` identifies a run by its setting (a `Cell`), the content of its process, the version
of the engine and its number. A process that differs from an earlier process of the same name raises
an error, even if the runs are of another update or step size.

A sweep has one connection. Only the thread that calls `sweep` writes, one transaction per chunk. If
the sweep is killed, the chunks that were being computed are lost, but no chunk that was written. A
power failure may also lose the last few chunks that were written. Several sweeps on one machine may
share a database on a local disk, because SQLite's write-ahead log then needs shared memory. A
database that one program uses alone, such as that of a part of a sweep, may be on a network disk.
"""

from __future__ import annotations

import json
import math
import os
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pu_lib.arrays import as_float_array, as_int, is_unicode, safe_repr
from pu_lib.domains import DOMAINS, PAPER, Domain
from pu_lib.experiments.cells import (
    IN_COLUMNS,
    Cell,
    Chunk,
    Process,
    digest_of,
    problem_of,
    read_process,
)
from pu_lib.experiments.jekyll_hyde import engine_of
from pu_lib.experiments.options import Options, configured, describe, parse, program, scheme_of
from pu_lib.files import replace_file, replacing
from pu_lib.settings import read_settings
from pu_lib.updates import UPDATES, EscortPolicyGradient, Update

__all__ = [
    "CELL_COLUMNS",
    "COLUMNS",
    "Database",
    "DatabaseError",
    "cell_of",
    "read_about",
    "setting_text",
    "update_words",
    "words_of",
]

_WORDS, _INTS, _FLOATS = pa.dictionary(pa.int16(), pa.string()), pa.int64(), pa.float64()
COLUMNS = pa.schema(
    [
        ("experiment", _WORDS), ("domain", _WORDS), ("scheme", _WORDS), ("update", _WORDS),
        ("step_size", _FLOATS), ("n_states", pa.int32()), ("n_actions", pa.int32()),
        ("beta", _FLOATS), ("options", _WORDS), ("max_steps", _INTS), ("target", _FLOATS),
        ("seed", _INTS), ("engine", _WORDS), ("process", _WORDS), ("run", pa.int32()),
        ("steps", _INTS), ("episodes", _INTS), ("censored", pa.bool_()),
        ("final_performance", _FLOATS),
    ]
)  # fmt: skip
"""The columns of a table of runs. Known runs, as in ``critic.parquet``, may lack `process`."""

_IN_WORDS = pa.schema(
    [field.with_type(pa.string()) if field.type == _WORDS else field for field in COLUMNS]
)
CELL_COLUMNS = COLUMNS.names[: COLUMNS.names.index("engine")]
"""The columns of the setting. The others are the version of the engine, a digest of the process
(see `pu_lib.experiments.cells.digest_of`) and measurements."""

_MEASURED = COLUMNS.names[COLUMNS.names.index("run") :]
_DTYPES = {name: COLUMNS.field(name).type.to_pandas_dtype() for name in _MEASURED}
ORDER = [
    "experiment", "domain", "scheme", "beta", "n_states", "n_actions", "options", "update",
    "step_size", "seed", "max_steps", "target",
]  # fmt: skip
"""The sort order of tables."""

_KEEP = " escort_factor=keep"  # suffix of `options`; this option is newer than the tables

# A column of type REAL loses the sign of -0.0; a column without a type does not.
_TABLES = """
CREATE TABLE settings (id INTEGER PRIMARY KEY, cell TEXT NOT NULL, process TEXT NOT NULL,
    engine TEXT NOT NULL, UNIQUE (cell, process, engine));
CREATE TABLE runs (setting INTEGER NOT NULL REFERENCES settings, run INTEGER NOT NULL,
    steps INTEGER NOT NULL, episodes INTEGER NOT NULL, censored INTEGER NOT NULL,
    final_performance NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (setting, run)
) WITHOUT ROWID;
PRAGMA user_version = 1
"""
_CURVES = """
CREATE TABLE IF NOT EXISTS curves (setting INTEGER NOT NULL, run INTEGER NOT NULL,
    performances BLOB NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (setting, run)
) WITHOUT ROWID
"""
_PATIENCE = 60.0  # seconds to wait for the transaction of another sweep
_DAMAGED = "it is damaged or no database of runs; move it away, or name another directory"
_DISK = (
    "a sweep needs a directory that it may write to, on a local disk with space left; the runs in "
    "the database are safe, and the sweep can be resumed"
)
_ADVICE = {
    **dict.fromkeys((sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED), "another program uses it; wait"),
    **dict.fromkeys(
        (
            sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR,
            sqlite3.SQLITE_NOLFS, sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY,
        ),
        _DISK,
    ),
}  # fmt: skip
"""What to do about an error of SQLite, by its code. Other errors mean that the file is damaged."""

_NETWORK = {
    "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs", "lustre",
    "nfs", "nfs4", "smb3", "smbfs",
}  # fmt: skip


_CURVE, _ABOUT = "<f8", "about.json"

Words = dict[str, Any]
"""The setting of a cell as one row of a table of runs, keyed by `CELL_COLUMNS`."""


# A cell as a row of a table


def words_of(cell: Cell) -> Words:
    """Return the setting of a cell as one row of a table of runs, keyed by `CELL_COLUMNS`.

    This function is the inverse of `cell_of`. The columns `n_states`, `n_actions` and `beta` are
    parameters of the domain. If the domain lacks such a parameter, `n_states` and `n_actions` are
    the numbers of states and actions of the process, and `beta` is NaN.

    Raises
    ------
    ValueError
        If tables of runs cannot record the name or an option of the update, or a parameter of the
        domain.
    """
    parameters, source = cell.process.parameters, cell.process.source
    if isinstance(source, Domain):
        settings = cell.process.label.partition(" ")[2]
        for name, value in read_settings("parameters", settings, source.parameters).items():
            if value != parameters[name]:
                raise ValueError(
                    f"{name}: expected a parameter that a table can record, got "
                    f"{safe_repr(parameters[name])}, which is read as {value!r}."
                )
    sizes = {"n_states": parameters.get("n_states"), "n_actions": parameters.get("n_actions")}
    if None in sizes.values():
        process = problem_of(cell, 0)
        sizes = {"n_states": process.n_states, "n_actions": process.n_actions}
    update, options = update_words(cell.update, cell.options)
    return {
        "experiment": cell.experiment,
        "domain": cell.process.label,
        "scheme": cell.scheme.name,
        "update": update,
        "step_size": float(cell.step_size),
        **{
            name: parameters.get(name, usual) for name, usual in {**sizes, "beta": math.nan}.items()
        },
        "options": options,
        "max_steps": cell.max_steps,
        "target": float(cell.target),
        "seed": cell.seed,
    }


def update_words(update: Update, options: Options) -> tuple[str, str]:
    """Return the columns ``update`` and ``options``: a name and a description of the options.

    The format of tables is older than the options of updates. In tables ``pg-es`` drops its factor,
    as in the paper's program, unless ``options`` ends in ``escort_factor=keep``.
    """
    usual = UPDATES.get(update.name, update)
    if type(usual) is not type(update):
        raise ValueError(
            f"update: the name {update.name!r} is that of {type(usual).__name__}; give "
            f"{type(update).__name__} another name."
        )
    for name, value in update.options.items():
        if name not in ("factor", "ties") and not np.array_equal(value, usual.options[name]):
            raise ValueError(
                "update: tables of runs record no option but factor and ties, got "
                f"'{name}={value}'; register the setting under a name of its own."
            )
    if (ties := update.options.get("ties", options.ties)) != options.ties:
        options = replace(options, ties=ties)
    keeps = isinstance(update, EscortPolicyGradient) and update.factor == "keep"
    return update.name, describe(options) + _KEEP * keeps


def cell_of(words: Mapping[Any, Any]) -> Cell:
    """Return the cell whose setting is a row of a table of runs; the inverse of `words_of`.

    Keys other than `CELL_COLUMNS` are ignored.

    Raises
    ------
    ValueError
        If the process, the update, the scheme or an option is unknown, or the process is named
        after the digest of its content.
    """
    domain, described = str(words["domain"]), str(words["options"])
    if domain.startswith("mdp-"):
        raise ValueError(
            f"{domain}: a table has no more of this process than a digest of its content; give "
            "the process itself to a sweep."
        )
    known = DOMAINS.get(domain.split(" ")[0])
    usual = {} if known is None else known.parameters
    columns = {name: type(usual[name])(words[name]) for name in IN_COLUMNS if name in usual}
    options = parse(described.removesuffix(_KEEP))
    name = str(words["update"])
    return Cell(
        process=read_process(domain, **columns),
        update=configured(name if described.endswith(_KEEP) else program(name), options),
        step_size=float(words["step_size"]),
        scheme=scheme_of(str(words["scheme"])),
        options=options,
        max_steps=int(words["max_steps"]),
        target=float(words["target"]),
        seed=int(words["seed"]),
        experiment=str(words["experiment"]),
    )


class DatabaseError(ValueError):
    """An error in reading or writing a database; the message of the error names the file."""


class Database:
    """The runs in a directory; a context manager that closes the database on exit.

    Parameters
    ----------
    directory : path
        The directory. Unless `read_only` is true, it is created if it does not exist.
    read_only : bool, optional
        Whether to open the database for reading alone, which needs no permission to write.
    exclusive : bool, optional
        Whether no other program may use the database meanwhile; it may then be on a network disk.

    Attributes
    ----------
    directory : Path
        The directory.
    path : Path
        The database file, ``runs.sqlite``.

    Raises
    ------
    DatabaseError
        If the database cannot be created, is on a network disk, is damaged, has other tables or has
        runs of another engine.
    """

    def __init__(
        self,
        directory: str | os.PathLike[str],
        read_only: bool = False,
        exclusive: bool = False,
    ) -> None:
        self.directory, self._read_only = Path(directory), read_only
        self._exclusive = exclusive
        self.path = self.directory / "runs.sqlite"
        self._processes: dict[tuple[Any, ...], str] = {}  # digests, by `_process_key`
        self._last_setting = 0  # the last id whose process is in `_processes`
        if not read_only:
            self._make_directory()
        if (self.path.exists() or self.path.is_symlink()) and not self.path.is_file():
            fault = (
                "a link that does not point to a file" if self.path.is_symlink() else "not a file"
            )
            raise DatabaseError(
                f"{self.path}: is {fault}; move it away, or name another directory."
            )
        if not read_only:
            self._require_writable()
        with self._sqlite_errors():
            self._connection = self._connect()
        try:
            with self._sqlite_errors():
                self._prepare()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Database:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _make_directory(self) -> None:
        """Make the directory if it does not exist."""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseError(
                f"{self.directory}: cannot be made ({error.strerror}); name another directory."
            ) from None

    def _require_writable(self) -> None:
        """Raise an error, before runs are computed, if they could not be written."""
        for path in (self.directory, self.path):
            if path.exists() and not os.access(path, os.W_OK):
                raise DatabaseError(f"{path}: is read-only; {_DISK}.")
        if not self._exclusive and (kind := _file_system(self.directory)) in _NETWORK:
            raise DatabaseError(f"{self.directory}: is on a network disk ({kind}); {_DISK}.")

    def _connect(self) -> sqlite3.Connection:
        """Open the file; nothing is written if it is opened for reading alone."""
        if not self._read_only:
            connection = sqlite3.connect(self.path, _PATIENCE, isolation_level=None)
            if self._exclusive:  # before the first access, so that no shared memory is used
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            return connection
        address = f"{self.path.resolve().as_uri()}?mode=ro"
        log, shared = (self.path.with_name(f"{self.path.name}-{x}") for x in ("wal", "shm"))
        writable = os.access(self.directory, os.W_OK)
        if not log.exists() or (log.stat().st_size == 0 and not writable):
            address += "&immutable=1"  # there is no writer; SQLite then creates no files beside it
        elif not shared.exists() and not writable:
            raise DatabaseError(
                f"{self.path}: the last runs are in {log.name}, which cannot be read in a "
                "read-only directory; copy the directory, and read the copy."
            )
        return sqlite3.connect(address, _PATIENCE, isolation_level=None, uri=True)

    def _prepare(self) -> None:
        """Check the database, and create its tables if it is new."""
        if (report := self._execute("PRAGMA integrity_check(1)")) != [("ok",)]:
            raise sqlite3.DatabaseError(report[0][0])
        if self._execute("SELECT 1 FROM sqlite_master"):
            self._require_tables()
        if not self._read_only:
            self._execute("PRAGMA synchronous = NORMAL")
            if self._turn_on_log() != "wal":
                raise DatabaseError(f"{self.path}: no write-ahead log; {_DISK}.")
            with self._transaction():
                if not self._execute("SELECT 1 FROM sqlite_master"):
                    for statement in _TABLES.split(";"):
                        self._execute(statement)
        for text, engine in self._execute("SELECT cell, engine FROM settings"):
            _require_engine(self.path, engine, _engine(_words(text)))

    def _require_tables(self) -> None:
        """Raise an error unless the tables, with their columns and triggers, are those of sweeps.

        A user's own tables, views and indices are no error.
        """
        schema = (
            "SELECT type, name, sql FROM sqlite_master WHERE type != 'index' "
            "AND tbl_name IN ('settings', 'runs') ORDER BY name"
        )
        with closing(sqlite3.connect(":memory:")) as usual:
            usual.executescript(_TABLES)
            expected = usual.execute(schema).fetchall()
        version, tables = self._execute("PRAGMA user_version"), self._execute(schema)
        if version != [(1,)] or not {row[1] for row in expected} & {row[1] for row in tables}:
            raise sqlite3.DatabaseError("it has other tables, or is of a later release")
        if tables != expected:
            names = sorted({row[1] for row in set(tables) ^ set(expected)})
            raise sqlite3.DatabaseError(
                f"its tables were changed by another program ({', '.join(names)})"
            )

    def _turn_on_log(self) -> Any:
        """Turn on the write-ahead log and return the journal mode.

        If another sweep has locked the database, wait: SQLite's own timeout does not apply to this
        statement.
        """
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._execute("PRAGMA journal_mode = WAL")[0][0]
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _sqlite_errors(self) -> Iterator[None]:
        """Convert errors of SQLite to `DatabaseError`."""
        try:
            yield
        except (sqlite3.Error, UnicodeError) as error:
            code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
            advice = _ADVICE.get(code, _DAMAGED)
            if self._read_only and advice == _DISK:
                advice = "reading needs permission to read the file and its directory"
            raise DatabaseError(f"{self.path}: {error}; {advice}.") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Begin an exclusive transaction; commit the transaction, or roll it back on an error."""
        with self._sqlite_errors():
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back the transaction already
                    self._execute("ROLLBACK")
                raise

    # Writing

    def missing(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the runs of the chunks that are not in the database, in the given order.

        A chunk is split if some of its runs are in the database. If a chunk has curves, a run
        without its curve is missing.

        Parameters
        ----------
        chunks : iterable of Chunk
            The runs to look up.

        Returns
        -------
        list of Chunk
            The missing runs.

        Raises
        ------
        DatabaseError
            If the database has runs of one of these settings with another process or engine.
        """
        chunks = list(chunks)
        # By id: a cell with a user's own update may not hash.
        keys = [(id(chunk.cell), chunk.curves) for chunk in chunks]
        present: dict[tuple[int, bool], set[int]] = {}
        for key, chunk in dict(zip(keys, chunks, strict=True)).items():
            with self._sqlite_errors():
                setting = self._find(_setting(chunk.cell))
                if not chunk.curves:
                    runs = self._execute("SELECT run FROM runs WHERE setting = ?", setting)
                elif self._has_curves():
                    runs = self._execute("SELECT run FROM curves WHERE setting = ?", setting)
                else:
                    runs = []
            present[key] = {run for (run,) in runs}
        pairs = zip(keys, chunks, strict=True)
        return [piece for key, chunk in pairs for piece in _pieces(chunk, present[key])]

    def _has_curves(self) -> bool:
        return bool(self._execute("SELECT 1 FROM sqlite_master WHERE name = 'curves'"))

    def _find(self, setting: _Setting) -> int | None:
        """Return the id of a setting; raise an error if its process or engine differs."""
        self._require_process(setting)
        select = "SELECT id, engine FROM settings WHERE cell = ?"
        for number, engine in self._execute(select, setting.text):
            _require_engine(self.path, engine, setting.engine)
            return int(number)
        return None

    def _require_process(self, setting: _Setting) -> None:
        """Raise an error if the database has runs of the same name with another process.

        All settings are compared, because tables and figures compare the updates and step sizes of
        one process.
        """
        select = "SELECT id, cell, process FROM settings WHERE id > ?"
        for number, text, process in self._execute(select, self._last_setting):
            self._last_setting = max(self._last_setting, number)
            self._processes.setdefault(_process_key(_words(text)), process)
        words = _words(setting.text)
        if setting.process != self._processes.setdefault(_process_key(words), setting.process):
            raise DatabaseError(
                f"{self.path}: has runs of {words['domain']!r} when this was another process: its "
                "definition or a package has changed; name another directory, or give the process "
                "another name."
            )

    def write(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Write all runs of a chunk, or none if an error occurs.

        Parameters
        ----------
        chunk : Chunk
            The runs.
        measured : mapping of str to ndarray, shape (count,)
            The measured columns by name. With curves there are also ``performances``, of shape
            (count, checkpoints).

        Raises
        ------
        DatabaseError
            If the database cannot be written, has runs of this setting with another process or
            engine, or has different results for these runs.
        """
        setting = _setting(chunk.cell)
        with self._transaction():
            self._add(setting, measured)
            if "performances" in measured:
                self._add_curves(setting, measured)

    def _add_curves(self, setting: _Setting, measured: Any) -> None:
        """Add the curves of runs that are in the database, within a transaction."""
        number, start = self._find(setting), _checksum([setting.text, setting.engine])
        rows = []
        for run, curve in zip(measured["run"].tolist(), measured["performances"], strict=True):
            values = [number, run, np.asarray(curve, _CURVE).tobytes()]
            rows.append((*values, _checksum(values[1:], start)))
        self._execute(_CURVES)
        insert = "INSERT INTO curves VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._connection.executemany(insert, rows)
        there = set(self._execute("SELECT * FROM curves WHERE setting = ?", number))
        if not there.issuperset(rows):
            raise DatabaseError(f"{self.path}: {_differs(setting)}")

    def _add(self, setting: _Setting, measured: Any) -> int:
        """Add runs within a transaction; return the number of runs that were not already present.

        Raise an error if the database has different results for these runs.
        """
        if (number := self._find(setting)) is None:
            insert = "INSERT INTO settings (cell, process, engine) VALUES (?, ?, ?)"
            self._execute(insert, *setting)
            ((number,),) = self._execute("SELECT last_insert_rowid()")
        columns = {
            name: np.asarray(measured[name]).astype(dtype, casting="same_kind")
            for name, dtype in _DTYPES.items()
        }
        columns["censored"] = columns["censored"].astype(int)
        start = _checksum([setting.text, setting.engine])
        values = map(list, zip(*(column.tolist() for column in columns.values()), strict=True))
        rows = [(number, *row, _checksum(row, start)) for row in values]
        before = self._connection.total_changes
        insert = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._connection.executemany(insert, rows)
        added = self._connection.total_changes - before
        if added < len(rows):
            there = set(self._execute("SELECT * FROM runs WHERE setting = ?", number))
            if not there.issuperset(rows):
                raise DatabaseError(f"{self.path}: {_differs(setting)}")
        return added

    def take_over(self, runs: pd.DataFrame, cells: Iterable[Cell]) -> int:
        """Write the runs of the given cells that are in a table but not in the database.

        Only runs of the current engine and the same process are written, because other runs may
        differ. If the table does not record processes, only runs of the domains of the library and
        of processes that are named after their content are written.

        Parameters
        ----------
        runs : pandas.DataFrame
            A table with the columns `COLUMNS`, such as ``runs.parquet``.
        cells : iterable of Cell
            The settings to write.

        Returns
        -------
        int
            The number of runs written.

        Raises
        ------
        DatabaseError
            If a column or value is missing or out of range, a run is listed twice, or the database
            cannot be written or has different results of a run.
        """
        wanted = {setting.text: (setting, cell) for cell in cells for setting in [_setting(cell)]}
        added = 0
        with self._transaction():
            for words, engine, process, group in _by_setting(_checked(runs)):
                setting, cell = wanted.get(setting_text(words), (None, None))
                if setting is None or cell is None or setting.engine != engine:
                    continue
                if process == setting.process or (not process and _never_changes(cell.process)):
                    added += self._add(setting, group)
        return added

    def add(self, runs: pd.DataFrame) -> None:
        """Write all runs of a table that are not in the database, with their curves.

        Parameters
        ----------
        runs : pandas.DataFrame
            A table with the columns `COLUMNS`, such as the result of `read`.

        Raises
        ------
        DatabaseError
            If the table is not valid, or the database cannot be written, has runs of another
            process or engine, or has different results of a run.
        """
        with self._transaction():
            for words, engine, process, group in _by_setting(_checked(runs)):
                setting = _Setting(setting_text(words), process, engine)
                self._add(setting, group)
                if "performances" in group and len(kept := group[group["performances"].notna()]):
                    self._add_curves(setting, kept)

    # Reading

    def read(self) -> pd.DataFrame:
        """Return all runs, sorted by setting and by the number of the run.

        Returns
        -------
        pandas.DataFrame
            One row per run, with the columns `COLUMNS`, and ``performances`` if the database has
            curves: an array for each run, or None if a run has no curve.

        Raises
        ------
        DatabaseError
            If the database is damaged.
        """
        with self._sqlite_errors():
            rows = self._execute("SELECT * FROM runs ORDER BY setting, run")
            curves = self._execute("SELECT * FROM curves") if self._has_curves() else []
            known = self._execute("SELECT id, cell, engine, process FROM settings")
            starts = {setting: _checksum([text, engine]) for setting, text, engine, _ in known}
            if any(_checksum(row, starts.get(i, 0)) != checksum for i, *row, checksum in rows):
                raise sqlite3.DatabaseError("the checksum of a run is wrong")
            if any(_checksum(row, starts.get(i, 0)) != checksum for i, *row, checksum in curves):
                raise sqlite3.DatabaseError("the checksum of a curve is wrong")
        settings = pd.DataFrame(
            [{**_words(text), "engine": made, "process": of} for _, text, made, of in known],
            [setting for setting, *_ in known],
            [*CELL_COLUMNS, "engine", "process"],
        ).sort_values(ORDER, kind="stable")
        words = {name: "category" for name in settings if COLUMNS.field(name).type == _WORDS}
        runs = pd.DataFrame(rows, columns=["setting", *_MEASURED, "checksum"])
        if curves:
            by_run = {(i, run): np.frombuffer(curve, _CURVE) for i, run, curve, _ in curves}
            keys = zip(runs["setting"], runs["run"], strict=True)
            runs["performances"] = pd.Series([by_run.get(key) for key in keys], dtype=object)
        runs["setting"] = settings.index.get_indexer(pd.Index(runs["setting"]))
        runs = runs.sort_values("setting", kind="stable", ignore_index=True)
        runs[settings.columns] = settings.astype(words).iloc[runs["setting"]].set_axis(runs.index)
        frame: pd.DataFrame = _table(runs.astype({"censored": bool})).to_pandas()
        return frame

    def export(self, about: Mapping[str, Mapping[str, str]] | None = None) -> Path:
        """Write all runs to ``runs.parquet`` in the directory and replace an existing file.

        Parameters
        ----------
        about : mapping, optional
            What `pu_lib.records.made_by` returns, to be written to ``about.json``. The sources of
            other updates in this file are kept.

        Returns
        -------
        Path
            The path of the file, which `pandas.read_parquet` can read.

        Raises
        ------
        DatabaseError
            If the database is damaged or the file cannot be written. The database is not changed.
        """
        target = self.directory / "runs.parquet"
        with self._transaction():  # so that the last of several sweeps exports the runs of them all
            try:
                write_parquet(target, self.read())
                if about is not None:
                    sources = {**read_about(self.directory).get("sources", {}), **about["sources"]}
                    text = json.dumps({**about, "sources": sources}, indent=2)
                    replace_file(target.with_name(_ABOUT), f"{text}\n")
            except OSError as error:
                raise DatabaseError(
                    f"{target}: could not be written ({error.strerror or error}); all runs are "
                    f"safe in {self.path.name}."
                ) from None
        return target


def read_about(directory: Path) -> dict[str, Any]:
    """Return the content of the ``about.json`` of a directory, or nothing if there is no file."""
    path = directory / _ABOUT
    try:
        about = json.loads(path.read_text("utf-8"))
        if not isinstance(about, dict) or not isinstance(about.get("sources", {}), dict):
            raise ValueError("it has no sources")
    except FileNotFoundError:
        return {}
    except (ValueError, RecursionError) as error:
        raise DatabaseError(f"{path}: cannot be read ({error}); move it away.") from None
    return about


class _Setting(NamedTuple):
    """The identity of a setting: its columns as JSON, the digest of its process, and its engine."""

    text: str
    process: str
    engine: str


def _differs(setting: _Setting) -> str:
    """Return the sentence about other results of the same runs."""
    words = _words(setting.text)
    return (
        f"has other results of the same runs of {words['update']} at step size "
        f"{words['step_size']:g} in {words['experiment']}; nothing was overwritten."
    )


def _process_key(words: Words) -> tuple[Any, ...]:
    """Return the columns on which the process of a setting depends, with their values."""
    domain = DOMAINS.get(words["domain"].partition(" ")[0])
    if domain is None:  # an environment, or a process named after its content
        return (words["domain"],)
    options = parse(words["options"].removesuffix(_KEEP))
    return (
        words["domain"],
        *(words[name] for name in IN_COLUMNS if name in domain.parameters),
        *(getattr(options, name) for name in domain.details),
        words["seed"] if domain.drawn else None,
    )


def _never_changes(process: Process) -> bool:
    """Return whether the name is that of a domain of the paper or of the content of a process."""
    if isinstance(process.source, Domain):
        return process.name in PAPER
    return process.name.startswith("mdp-")


def _setting(cell: Cell) -> _Setting:
    return _Setting(
        setting_text(words_of(cell)), digest_of(cell), engine_of(cell.update, cell.options)
    )


def _engine(words: Words) -> str:
    """Return the current engine of a setting, or "" if the update is not registered."""
    update, described = UPDATES.get(words["update"]), words["options"].removesuffix(_KEEP)
    return "" if update is None else engine_of(update, parse(described))


def _require_engine(path: Path, engine: str, ours: str) -> None:
    """Raise an error if `engine` differs from `ours`, unless `ours` is ""."""
    if ours not in ("", engine):
        raise DatabaseError(
            f"{path}: has runs made by engine {engine}, this is {ours}: the code or a setting has "
            "changed; name another directory."
        )


def _file_system(directory: Path) -> str:
    """Return the type of the file system of a directory, or "" if the system is not Linux."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    device = directory.stat().st_dev
    kinds = {mount.split()[2]: mount.split(" - ")[-1].split()[0] for mount in mounts}
    return kinds.get(f"{os.major(device)}:{os.minor(device)}", "")


def _checked_words(words: Words) -> Words:
    """Return a setting with the types of `CELL_COLUMNS`; raise a `ValueError` that names a column.

    The setting is checked before it is written and after it is read.
    """
    checked = {}
    for name in CELL_COLUMNS:
        value, kind = words[name], COLUMNS.field(name).type
        if kind == _WORDS:
            if not (isinstance(value, str) and value and is_unicode(value)):
                raise ValueError(
                    f"{name}: expected a text, not empty and without lone surrogates, got "
                    f"{safe_repr(value)}."
                )
        elif pa.types.is_integer(kind):
            value = as_int(name, value, low=0, high=2 ** (kind.bit_width - 1) - 1)
        elif name != "beta" or value == value:  # beta is NaN if the domain has no such parameter
            value = float(as_float_array(name, value, shape=(), infinite=True))
        checked[name] = value
    parse(checked["options"].removesuffix(_KEEP))
    return checked


def setting_text(words: Words) -> str:
    """Return the setting of a cell as JSON, with null for NaN.

    Raises
    ------
    ValueError
        If a column has another type than in `COLUMNS`; the message names the column.
    """
    checked = _checked_words(words)
    return json.dumps({name: None if x != x else x for name, x in checked.items()})


def _words(text: str) -> Words:
    """Return the setting of a cell from JSON."""
    try:
        setting = json.loads(text)
        if list(setting) != CELL_COLUMNS:
            raise ValueError("it has other columns")
        return _checked_words({k: math.nan if x is None else x for k, x in setting.items()})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise sqlite3.DatabaseError(f"a setting cannot be read ({error})") from None


def _checksum(values: list[Any], start: int = 0) -> int:
    """Return the checksum of a list of values, computed from the checksum `start`.

    The checksum of a run starts from the checksum of its setting. SQLite itself stores no checksums
    of rows.
    """
    return zlib.crc32(repr(values).encode(), start)


def _pieces(chunk: Chunk, present: set[int]) -> list[Chunk]:
    """Return the missing runs of a chunk, in as few chunks as possible."""
    lacking = [run for run in range(chunk.first, chunk.first + chunk.count) if run not in present]
    cuts = [k for k in range(1, len(lacking)) if lacking[k] > lacking[k - 1] + 1]
    pieces = np.split(np.array(lacking, int), cuts) if lacking else []
    return [replace(chunk, first=int(piece[0]), count=len(piece)) for piece in pieces]


# Tables


def _by_setting(runs: pd.DataFrame) -> Iterator[tuple[Words, str, str, pd.DataFrame]]:
    """Yield the setting of each cell in a table, with its engine, its process and its runs."""
    groups: Any = runs.groupby([*CELL_COLUMNS, "engine", "process"], dropna=False, observed=True)
    for (*values, engine, process), group in groups:
        yield dict(zip(CELL_COLUMNS, values, strict=True)), engine, process, group


def _table(runs: pd.DataFrame) -> pa.Table:
    """Return runs as an Arrow table with the schema `COLUMNS`, without pandas metadata.

    Curves become one more column.
    """
    table = pa.Table.from_pandas(runs, schema=_IN_WORDS, preserve_index=False)
    table = table.replace_schema_metadata(None).cast(COLUMNS)  # categories in order of appearance
    if "performances" not in runs.columns:
        return table
    curves = pa.array(runs["performances"], pa.list_(_FLOATS), from_pandas=True)
    return table.append_column("performances", curves)


def _checked(runs: pd.DataFrame) -> pd.DataFrame:
    """Validate a table of runs and return it with the types of `COLUMNS`.

    The column `process` is empty if the table does not record processes.
    """
    known = runs["process"].astype(object).fillna("") if "process" in runs.columns else ""
    runs = runs.assign(process=known)
    if lacking := [column for column in COLUMNS.names if column not in runs.columns]:
        raise DatabaseError(f"runs: the table has no column {lacking[0]!r}.")
    try:
        table = _table(runs)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DatabaseError(f"runs: the table is not one of runs ({error}).") from None
    never = [field.name for field in COLUMNS if not pa.types.is_floating(field.type)]
    if any(table[column].null_count for column in (*never, "final_performance")):
        raise DatabaseError("runs: the table has an empty cell.")
    runs = table.to_pandas()
    if (runs["run"] < 0).any() or (runs["episodes"] < 0).any():
        raise DatabaseError("runs: the table has a negative number.")
    if runs.duplicated([*CELL_COLUMNS, "engine", "process", "run"]).any():
        raise DatabaseError("runs: the table has a run more than once.")
    if not runs["steps"].between(1, runs["max_steps"]).all():
        raise DatabaseError("runs: the table has a run whose steps are none, or beyond its cap.")
    return runs


def write_parquet(target: Path, runs: pd.DataFrame, level: int | None = None) -> None:
    """Write runs to a Parquet file."""
    with replacing(target) as file:
        pq.write_table(_table(runs), file, compression="zstd", compression_level=level)
