"""The runs of a sweep: an SQLite database in its directory, and the Parquet tables made from it.

``runs.sqlite`` knows a run by its process, its setting (a `Cell`), the version of the engine and
its number. A process is known by its content: one that has changed under its old name is refused.

A sweep has one connection, and only its own thread writes, one chunk a transaction. A process that
is killed loses the chunks it was computing and none that was written; a power failure may also cost
the last few. Sweeps on one machine may share a database, which has to be on a local disk: SQLite's
write-ahead log needs memory that they share.

A directory of ``part-*.parquet`` or ``runs-*.parquet``, which earlier releases wrote, is imported
when it is opened. Those files are not changed. They do not say what process they belong to: it is
taken to be the one that the next sweep finds under the same name.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import secrets
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pu_lib.domains import DOMAINS
from pu_lib.experiments.cells import (
    IN_COLUMNS,
    Cell,
    Chunk,
    digest_of,
    problem_of,
    read_process,
)
from pu_lib.experiments.jekyll_hyde import engine_of
from pu_lib.experiments.options import Options, configured, describe, parse, program, scheme_of
from pu_lib.updates import UPDATES, EscortPolicyGradient, Update

__all__ = [
    "CELL_COLUMNS",
    "COLUMNS",
    "Database",
    "DatabaseError",
    "cell_of",
    "update_words",
    "words_of",
]

_WORDS, _INTS, _FLOATS = pa.dictionary(pa.int16(), pa.string()), pa.int64(), pa.float64()
COLUMNS = pa.schema(
    [
        ("experiment", _WORDS), ("domain", _WORDS), ("scheme", _WORDS), ("update", _WORDS),
        ("eta", _FLOATS), ("n_states", pa.int32()), ("n_actions", pa.int32()), ("beta", _FLOATS),
        ("preset", _WORDS), ("max_steps", _INTS), ("target", _FLOATS), ("seed", _INTS),
        ("engine", _WORDS), ("run", pa.int32()), ("steps", _INTS), ("episodes", _INTS),
        ("censored", pa.bool_()), ("final_performance", _FLOATS),
    ]
)  # fmt: skip
"""The columns of a table of runs."""

_IN_WORDS = pa.schema(
    [field.with_type(pa.string()) if field.type == _WORDS else field for field in COLUMNS]
)
CELL_COLUMNS = COLUMNS.names[: COLUMNS.names.index("engine")]
"""The columns that say what was run; the others say what was measured."""

_MEASURED = COLUMNS.names[COLUMNS.names.index("run") :]
ORDER = [
    "experiment", "domain", "scheme", "beta", "n_states", "n_actions", "preset", "update", "eta",
    "seed", "max_steps", "target",
]  # fmt: skip
"""The columns by which tables are sorted."""

_KEEP = " escort_factor=keep"  # at the end of a preset: tables are older than this option
_OLD = re.compile(r"part-[0-9a-f]{20}-[0-9]{6,}-([0-9]+)\.parquet|runs-([0-9a-f]{64})\.parquet")

# A number of type REAL would lose the sign of -0.0; one without a type keeps it.
_TABLES = """
CREATE TABLE settings (id INTEGER PRIMARY KEY, cell TEXT NOT NULL, process TEXT NOT NULL,
    engine TEXT NOT NULL, UNIQUE (cell, process, engine));
CREATE TABLE runs (setting INTEGER NOT NULL REFERENCES settings, run INTEGER NOT NULL,
    steps INTEGER NOT NULL, episodes INTEGER NOT NULL, censored INTEGER NOT NULL,
    final_performance NOT NULL, checksum INTEGER NOT NULL, PRIMARY KEY (setting, run)
) WITHOUT ROWID;
CREATE TABLE imported (file TEXT PRIMARY KEY);
PRAGMA user_version = 1
"""
_PATIENCE = 60.0  # seconds, for another sweep to end its transaction
_DAMAGED = "it is damaged or no database of runs; move it away, or name another directory"
_DISK = (
    "a sweep needs a directory that it may write to, on a local disk with space left; the runs in "
    "the database are safe, and the sweep can be resumed"
)
_NETWORK = {
    "afs", "beegfs", "ceph", "cifs", "fuse.glusterfs", "fuse.sshfs", "glusterfs", "gpfs", "lustre",
    "nfs", "nfs4", "smb3", "smbfs",
}  # fmt: skip


Words = dict[str, Any]
"""The columns of a cell in a table, by name."""


# A cell as a row of a table


def words_of(cell: Cell) -> Words:
    """Return the columns of a cell in tables of runs; `cell_of` reads them.

    Parameters
    ----------
    cell : Cell
        The setting.

    Returns
    -------
    dict of str to value
        The values by `CELL_COLUMNS`. `n_states`, `n_actions` and `beta` are parameters of the
        domain if it has them; if not, the first two are the size of the process, and `beta` is not
        a number.

    Raises
    ------
    ValueError
        If the update has an option for which tables have no column.
    """
    given = cell.process.parameters
    sizes = {"n_states": given.get("n_states"), "n_actions": given.get("n_actions")}
    if None in sizes.values():
        process = problem_of(cell, 0)
        sizes = {"n_states": process.n_states, "n_actions": process.n_actions}
    update, preset = update_words(cell.update, cell.options)
    return {
        "experiment": cell.experiment,
        "domain": cell.process.label,
        "scheme": cell.scheme.name,
        "update": update,
        "eta": float(cell.step_size),
        **{name: given.get(name, usual) for name, usual in {**sizes, "beta": math.nan}.items()},
        "preset": preset,
        "max_steps": cell.max_steps,
        "target": float(cell.target),
        "seed": cell.seed,
    }


def update_words(update: Update, options: Options) -> tuple[str, str]:
    """Return the columns ``update`` and ``preset``: a name, and the options in words.

    Tables are older than options of updates. Their ``pg-es`` drops the factor, as the paper's
    program does, and ``escort_factor=keep`` at the end of the preset says that it does not.
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
                "update: tables of runs note no option but factor and ties, got "
                f"'{name}={value}'; register the setting under a name of its own."
            )
    if (ties := update.options.get("ties", options.ties)) != options.ties:
        options = replace(options, ties=ties)
    keeps = isinstance(update, EscortPolicyGradient) and update.factor == "keep"
    return update.name, describe(options) + _KEEP * keeps


def cell_of(words: Mapping[Any, Any]) -> Cell:
    """Return the cell that is described by the columns of a table; the inverse of `words_of`.

    Parameters
    ----------
    words : mapping of str to value
        The values of `CELL_COLUMNS`; others are ignored.

    Returns
    -------
    Cell
        The setting.

    Raises
    ------
    ValueError
        If its process, its update or one of its options is unknown here.
    """
    domain, preset = str(words["domain"]), str(words["preset"])
    if domain.startswith("mdp-"):
        raise ValueError(
            f"{domain}: a table has no more of this process than a digest of its content; sweep "
            "the process itself."
        )
    known = DOMAINS.get(domain.split(" ")[0])
    usual = {} if known is None else known.parameters
    columns = {name: type(usual[name])(words[name]) for name in IN_COLUMNS if name in usual}
    options = parse(preset.removesuffix(_KEEP))
    name = str(words["update"])
    return Cell(
        process=read_process(domain, **columns),
        update=configured(name if preset.endswith(_KEEP) else program(name), options),
        step_size=float(words["eta"]),
        scheme=scheme_of(str(words["scheme"])),
        options=options,
        max_steps=int(words["max_steps"]),
        target=float(words["target"]),
        seed=int(words["seed"]),
        experiment=str(words["experiment"]),
    )


class DatabaseError(ValueError):
    """A database that cannot be continued or written; the sentence names the file."""


class Database:
    """The runs in a directory; a ``with`` statement closes it.

    Parameters
    ----------
    directory : path
        Made if it does not exist.

    Attributes
    ----------
    directory : Path
        The directory.
    path : Path
        The database in it, ``runs.sqlite``.

    Raises
    ------
    DatabaseError
        If it cannot be written, is on a network disk, is damaged or has runs of another engine, or
        an old Parquet file cannot be imported.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        self.path = self.directory / "runs.sqlite"
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise DatabaseError(f"{self.directory}: cannot be made ({error.strerror}).") from None
        if (kind := _file_system(self.directory)) in _NETWORK:
            raise DatabaseError(f"{self.directory}: is on a network disk ({kind}); {_DISK}.")
        with self._sqlite_errors():
            self._connection = sqlite3.connect(self.path, _PATIENCE, isolation_level=None)
        try:
            with self._sqlite_errors():
                self._prepare()
            self._import()
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

    def _prepare(self) -> None:
        """Check the database; make its tables if it is new."""
        if (found := self._execute("PRAGMA integrity_check(1)")) != [("ok",)]:
            raise sqlite3.DatabaseError(found[0][0])
        if self._execute("SELECT 1 FROM sqlite_master") and self._execute(
            "PRAGMA user_version"
        ) != [(1,)]:
            raise sqlite3.DatabaseError("it has other tables, or is of a later release")
        self._execute("PRAGMA synchronous = NORMAL")
        if self._turn_on_log() != "wal":
            raise sqlite3.OperationalError("no write-ahead log")
        with self._transaction():
            if not self._execute("SELECT 1 FROM sqlite_master"):
                for statement in _TABLES.split(";"):
                    self._execute(statement)
        for text, engine in self._execute("SELECT cell, engine FROM settings"):
            _require_engine(self.path, engine, _engine(_words(text)))

    def _turn_on_log(self) -> Any:
        """Turn on the write-ahead log; SQLite itself does not wait for another sweep here."""
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
        """Turn errors of SQLite into sentences."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            what = _DISK if isinstance(error, sqlite3.OperationalError) else _DAMAGED
            raise DatabaseError(f"{self.path}: {error}; {what}.") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all or nothing, while nobody else writes."""
        with self._sqlite_errors():
            self._execute("BEGIN IMMEDIATE")
            try:
                yield
                self._execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back itself
                    self._execute("ROLLBACK")
                raise

    # Writing

    def missing(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the runs of some chunks that are not in the database, in the given order.

        A chunk of which some runs are there is cut into the pieces that are not.

        Parameters
        ----------
        chunks : iterable of Chunk
            The runs that the database should have.

        Returns
        -------
        list of Chunk
            The runs that it does not have.

        Raises
        ------
        DatabaseError
            If it has runs of such a setting on another process, or of another engine.
        """
        chunks = list(chunks)
        present: dict[int, set[int]] = {}  # by id: a cell with an update of one's own may not hash
        for cell in {id(chunk.cell): chunk.cell for chunk in chunks}.values():
            with self._sqlite_errors():
                found = self._find(_setting(cell))
                runs = self._execute("SELECT run FROM runs WHERE setting = ?", found)
            present[id(cell)] = {run for (run,) in runs}
        return [piece for chunk in chunks for piece in _pieces(chunk, present[id(chunk.cell)])]

    def _find(self, setting: _Setting) -> int | None:
        """Return the number of a setting; raise if it has another process or engine here."""
        select = "SELECT id, process, engine FROM settings WHERE cell = ?"
        for number, known, engine in self._execute(select, setting.text):
            _require_engine(self.path, engine, setting.engine)
            if not known:  # imported
                update = "UPDATE settings SET process = ? WHERE id = ?"
                self._execute(update, setting.process, number)
            elif setting.process not in ("", known):
                raise DatabaseError(
                    f"{self.path}: has runs of {_words(setting.text)['domain']!r} when this was "
                    "another process: its definition or a package has changed; name another "
                    "directory, or give the process another name."
                )
            return int(number)
        return None

    def write(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Write all runs of a chunk, or none if an error occurs.

        Parameters
        ----------
        chunk : Chunk
            The runs.
        measured : mapping of str to ndarray, shape (count,)
            The measured columns by name, one entry a run.

        Raises
        ------
        DatabaseError
            If it cannot be written, or other results of these runs are there.
        """
        setting = _setting(chunk.cell)
        with self._transaction():
            self._add(setting, measured)

    def _add(self, setting: _Setting, measured: Any) -> int:
        """Add runs in a transaction; raise if other results of these runs are there."""
        if (number := self._find(setting)) is None:
            insert = "INSERT INTO settings (cell, process, engine) VALUES (?, ?, ?)"
            self._execute(insert, *setting)
            ((number,),) = self._execute("SELECT last_insert_rowid()")
        columns = {name: np.asarray(measured[name]) for name in _MEASURED}
        columns["censored"] = columns["censored"].astype(int)
        start = _checksum([setting.text, setting.engine])
        found = map(list, zip(*(column.tolist() for column in columns.values()), strict=True))
        rows = [(number, *row, _checksum(row, start)) for row in found]
        before = self._connection.total_changes
        insert = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._connection.executemany(insert, rows)
        added = self._connection.total_changes - before
        if added < len(rows):
            there = set(self._execute("SELECT * FROM runs WHERE setting = ?", number))
            if not there.issuperset(rows):
                words = _words(setting.text)
                raise DatabaseError(
                    f"{self.path}: has other results of the same runs of {words['update']} at eta "
                    f"= {words['eta']:g} in {words['experiment']}; nothing was overwritten."
                )
        return added

    def take_over(self, runs: pd.DataFrame, cells: Iterable[Cell]) -> int:
        """Write the runs of some cells that a table has and the database does not have.

        Only runs of the present engine are taken: the others would come out differently today.

        Parameters
        ----------
        runs : pandas.DataFrame
            A table with the columns `COLUMNS`, such as ``runs.parquet``.
        cells : iterable of Cell
            The settings to take.

        Returns
        -------
        int
            The number of runs that were written.

        Raises
        ------
        DatabaseError
            If a column or a number is missing, a number is impossible, or a run is there twice.
        """
        wanted = {setting.text: setting for setting in map(_setting, cells)}
        added = 0
        with self._transaction():
            for words, engine, group in _by_setting(_checked(runs, "runs")):
                setting = wanted.get(_text(words))
                if setting is not None and setting.engine == engine:
                    added += self._add(setting, group)
        return added

    def _import(self) -> None:
        """Add the runs in the files of earlier releases, each file once."""
        for path in sorted(self.directory.iterdir()):
            if (match := _OLD.fullmatch(path.name)) is None:
                continue
            with self._transaction():
                if self._execute("SELECT 1 FROM imported WHERE file = ?", path.name):
                    continue
                for words, engine, group in _by_setting(_old_runs(path, *match.groups())):
                    _require_engine(path, engine, _engine(words))
                    self._add(_Setting(_text(words), "", engine), group)
                self._execute("INSERT INTO imported VALUES (?)", path.name)

    # Reading

    def read(self) -> pd.DataFrame:
        """Return all runs, sorted by setting and number.

        Returns
        -------
        pandas.DataFrame
            One row a run, with the columns `COLUMNS`.

        Raises
        ------
        DatabaseError
            If the database is damaged.
        """
        with self._sqlite_errors():
            rows = self._execute("SELECT * FROM runs ORDER BY setting, run")
            known = self._execute("SELECT id, cell, engine FROM settings")
            starts = {setting: _checksum(noted) for setting, *noted in known}
            if any(_checksum(row, starts.get(i, 0)) != found for i, *row, found in rows):
                raise sqlite3.DatabaseError("the checksum of a run is wrong")
        settings = pd.DataFrame(
            [{**_words(text), "engine": engine} for _, text, engine in known],
            [setting for setting, *_ in known],
            [*CELL_COLUMNS, "engine"],
        ).sort_values(ORDER, kind="stable")
        words = {name: "category" for name in settings if COLUMNS.field(name).type == _WORDS}
        runs = pd.DataFrame(rows, columns=["setting", *_MEASURED, "checksum"])
        runs["setting"] = settings.index.get_indexer(pd.Index(runs["setting"]))
        runs = runs.sort_values("setting", kind="stable", ignore_index=True)
        runs[settings.columns] = settings.astype(words).iloc[runs["setting"]].set_axis(runs.index)
        frame: pd.DataFrame = _table(runs.astype({"censored": bool})).to_pandas()
        return frame

    def export(self) -> Path:
        """Write all runs to ``runs.parquet`` in the directory, in place of an older one.

        Returns
        -------
        Path
            The file, which `pandas.read_parquet` reads.

        Raises
        ------
        DatabaseError
            If it cannot be written; the database stays as it is.
        """
        target = self.directory / "runs.parquet"
        with self._transaction():  # so that the last of several sweeps writes the runs of all
            try:
                write_parquet(target, self.read())
            except OSError as error:
                raise DatabaseError(
                    f"{target}: could not be written ({error.strerror or error}); all runs are "
                    f"safe in {self.path.name}."
                ) from None
        return target


class _Setting(NamedTuple):
    """A cell as the database compares it: its words, the digest of its process, its engine."""

    text: str
    process: str
    engine: str


def _setting(cell: Cell) -> _Setting:
    return _Setting(_text(words_of(cell)), digest_of(cell), engine_of(cell.update, cell.options))


def _engine(words: Words) -> str:
    """Return the engine that would make such runs here; empty if the update is not registered."""
    update, preset = UPDATES.get(words["update"]), words["preset"].removesuffix(_KEEP)
    return "" if update is None else engine_of(update, parse(preset))


def _require_engine(path: Path, engine: str, ours: str) -> None:
    """Refuse runs of another engine; whether they are, is not known of an unknown update."""
    if ours not in ("", engine):
        raise DatabaseError(
            f"{path}: has runs made by engine {engine}, this is {ours}: the code or a setting has "
            "changed; name another directory."
        )


def _file_system(directory: Path) -> str:
    """Return the kind of a directory's file system, where Linux tells it."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    device = directory.stat().st_dev
    kinds = {mount.split()[2]: mount.split(" - ")[-1].split()[0] for mount in mounts}
    return kinds.get(f"{os.major(device)}:{os.minor(device)}", "")


def _text(words: Words) -> str:
    """Return the words of a cell as JSON, in which null stands for what is not a number."""
    floats = {name: float(words[name]) for name in ("eta", "beta", "target")}
    return json.dumps({**words, **{k: None if x != x else x for k, x in floats.items()}})


def _words(text: str) -> Words:
    """Return the words of a cell from JSON."""
    try:
        found = json.loads(text)
        if list(found) != CELL_COLUMNS:
            raise ValueError
    except (ValueError, TypeError):
        raise sqlite3.DatabaseError("a setting cannot be read") from None
    return {name: math.nan if value is None else value for name, value in found.items()}


def _checksum(values: list[Any], start: int = 0) -> int:
    """Return the checksum of a setting, or of a run after its setting; SQLite itself has none."""
    return zlib.crc32(repr(values).encode(), start)


def _pieces(chunk: Chunk, present: set[int]) -> list[Chunk]:
    """Return the parts of a chunk, each as long as possible, of which no run is present."""
    lacking = [run for run in range(chunk.first, chunk.first + chunk.count) if run not in present]
    cuts = [k for k in range(1, len(lacking)) if lacking[k] > lacking[k - 1] + 1]
    pieces = np.split(np.array(lacking, int), cuts) if lacking else []
    return [Chunk(chunk.cell, int(piece[0]), len(piece)) for piece in pieces]


# Tables


def _by_setting(runs: pd.DataFrame) -> Iterator[tuple[Words, str, pd.DataFrame]]:
    """Yield the words of each cell in a table with its engine and its runs."""
    groups: Any = runs.groupby([*CELL_COLUMNS, "engine"], dropna=False, observed=True)
    for (*values, engine), group in groups:
        yield dict(zip(CELL_COLUMNS, values, strict=True)), engine, group


def _table(runs: pd.DataFrame) -> pa.Table:
    """Return runs in the columns of a table, without what pandas notes of their types."""
    table = pa.Table.from_pandas(runs, schema=_IN_WORDS, preserve_index=False)
    return table.replace_schema_metadata(None).cast(COLUMNS)  # words numbered as they appear


def _checked(runs: pd.DataFrame, name: str) -> pd.DataFrame:
    """Return a table of runs with the usual types; refuse what is none."""
    if lacking := [column for column in COLUMNS.names if column not in runs.columns]:
        raise DatabaseError(f"{name}: the table has no column {lacking[0]!r}.")
    try:
        table = _table(runs)
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise DatabaseError(f"{name}: the table is not one of runs ({error}).") from None
    never = [field.name for field in COLUMNS if not pa.types.is_floating(field.type)]
    if any(table[column].null_count for column in (*never, "final_performance")):
        raise DatabaseError(f"{name}: the table has an empty cell.")
    runs = table.to_pandas()
    if (runs["run"] < 0).any() or (runs["episodes"] < 0).any():
        raise DatabaseError(f"{name}: the table has a negative number.")
    if runs.duplicated([*CELL_COLUMNS, "engine", "run"]).any():
        raise DatabaseError(f"{name}: the table has a run more than once.")
    if not runs["steps"].between(1, runs["max_steps"]).all():
        raise DatabaseError(f"{name}: the table has a run whose steps are none, or beyond its cap.")
    return runs


def _old_runs(path: Path, count: str | None, digest: str | None) -> pd.DataFrame:
    """Return the runs in a file of an earlier release; its name has their number or a digest."""
    try:
        content = path.read_bytes()
        file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
        table = file.read(use_threads=False)
        table.validate(full=True)  # a damaged dictionary has fewer values than are looked up in it
        whole = str(len(table)) == count or hashlib.sha256(content).hexdigest() == digest
    except (OSError, ValueError, TypeError, pa.ArrowException):
        whole = False
    if not whole:
        raise DatabaseError(
            f"{path}: is torn, or not what its name says; move it away to go on without it."
        )
    return _checked(table.replace_schema_metadata(None).to_pandas(), str(path))


def write_parquet(target: Path, runs: pd.DataFrame, level: int | None = None) -> None:
    """Write runs to a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(_table(runs), sink, compression="zstd", compression_level=level)
    replace_file(target, sink.getvalue())


def replace_file(target: Path, content: bytes) -> None:
    """Write a file beside the old one, flush it to the disk and give it its name."""
    temporary = target.with_name(f".{target.name}-{secrets.token_hex(8)}")
    try:
        with open(temporary, "wb") as sink:
            sink.write(content)
            sink.flush()
            os.fsync(sink.fileno())
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def has_runs(directory: Path) -> bool:
    """Return whether a directory has a database, or files of earlier releases."""
    return any(name == "runs.sqlite" or _OLD.fullmatch(name) for name in os.listdir(directory))


def __getattr__(name: str) -> Any:
    """Say what has replaced the class of earlier releases."""
    if name == "Store":
        raise ImportError(
            "pu_lib.empirical.store.Store is gone: use pu_lib.experiments.database.Database, "
            "or read the runs.parquet that a sweep writes to its directory."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
