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
import platform
import re
import secrets
import sqlite3
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import astuple
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pu_lib.arrays import as_float
from pu_lib.experiments.adaptive import Needed, setting_of
from pu_lib.experiments.cells import Cell, Chunk
from pu_lib.experiments.jekyll_hyde import engine_of
from pu_lib.experiments.panels import paper_chunks
from pu_lib.experiments.processes import digest_of

__all__ = ["COLUMNS", "Cell", "Chunk", "Database", "DatabaseError", "collect"]

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
_CELL = list(Cell.__dataclass_fields__)
_MEASURED = COLUMNS.names[COLUMNS.names.index("run") :]
_ORDER = [
    "experiment", "domain", "scheme", "beta", "n_states", "n_actions", "preset", "update", "eta",
    "seed", "max_steps", "target",
]  # fmt: skip
_PANEL = ["experiment", "domain", "scheme", "beta", "preset"]
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
        with self._errors_in_words():
            self._connection = sqlite3.connect(self.path, _PATIENCE, isolation_level=None)
        try:
            with self._errors_in_words():
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
        if (found := self._ask("PRAGMA integrity_check(1)")) != [("ok",)]:
            raise sqlite3.DatabaseError(found[0][0])
        if self._ask("SELECT 1 FROM sqlite_master") and self._ask("PRAGMA user_version") != [(1,)]:
            raise sqlite3.DatabaseError("it has other tables, or is of a later release")
        self._ask("PRAGMA synchronous = NORMAL")
        if self._turn_on_log() != "wal":
            raise sqlite3.OperationalError("no write-ahead log")
        with self._transaction():
            if not self._ask("SELECT 1 FROM sqlite_master"):
                for statement in _TABLES.split(";"):
                    self._ask(statement)
        for text, engine in self._ask("SELECT cell, engine FROM settings"):
            _require_engine(self.path, engine, _engine(_cell(text)))

    def _turn_on_log(self) -> Any:
        """Turn on the write-ahead log; SQLite itself does not wait for another sweep here."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                return self._ask("PRAGMA journal_mode = WAL")[0][0]
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        return self._connection.execute(statement, values).fetchall()

    @contextmanager
    def _errors_in_words(self) -> Iterator[None]:
        """Turn errors of SQLite into sentences."""
        try:
            yield
        except sqlite3.DatabaseError as error:
            what = _DISK if isinstance(error, sqlite3.OperationalError) else _DAMAGED
            raise DatabaseError(f"{self.path}: {error}; {what}.") from None

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Write all or nothing, while nobody else writes."""
        with self._errors_in_words():
            self._ask("BEGIN IMMEDIATE")
            try:
                yield
                self._ask("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # SQLite may have rolled back itself
                    self._ask("ROLLBACK")
                raise

    # Writing

    def missing(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the runs of some chunks that are not in the database, in the given order.

        A chunk of which some runs are there is cut into the pieces that are not.

        Parameters
        ----------
        chunks : iterable of Chunk
            The runs it should have.

        Returns
        -------
        list of Chunk
            Those it lacks.

        Raises
        ------
        DatabaseError
            If it has runs of such a setting on another process, or of another engine.
        """
        held: dict[str, set[int]] = {}
        wanted = []
        for chunk in chunks:
            key, process = _text(chunk.cell), digest_of(chunk.cell)
            if key not in held:
                with self._errors_in_words():
                    setting = self._find(chunk.cell, process, _engine(chunk.cell))
                    runs = self._ask("SELECT run FROM runs WHERE setting = ?", setting)
                held[key] = {run for (run,) in runs}
            wanted += _pieces(chunk, held[key])
        return wanted

    def _find(self, cell: Cell, process: str, engine: str) -> int | None:
        """Return the number of a setting; refuse one of another process or engine."""
        found = self._ask("SELECT id, process, engine FROM settings WHERE cell = ?", _text(cell))
        for setting, known, made in found:
            _require_engine(self.path, made, engine)
            if not known:  # imported
                self._ask("UPDATE settings SET process = ? WHERE id = ?", process, setting)
            elif process not in ("", known):
                raise DatabaseError(
                    f"{self.path}: has runs of {cell.domain!r} when this was another process: its "
                    "definition or a package has changed; name another directory, or give the "
                    "process another name."
                )
            return int(setting)
        return None

    def write(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Write a chunk, or nothing of it.

        Parameters
        ----------
        chunk : Chunk
            What was run.
        measured : mapping of str to ndarray, shape (count,)
            The measured columns, by name, one entry a run.

        Raises
        ------
        DatabaseError
            If it cannot be written, or other results of these runs are there.
        """
        process = digest_of(chunk.cell)
        with self._transaction():
            self._add(chunk.cell, process, _engine(chunk.cell), measured)

    def _add(self, cell: Cell, process: str, engine: str, measured: Any) -> int:
        """Add runs in a transaction; those that are there have to be the same."""
        if (setting := self._find(cell, process, engine)) is None:
            insert = "INSERT INTO settings (cell, process, engine) VALUES (?, ?, ?)"
            self._ask(insert, _text(cell), process, engine)
            ((setting,),) = self._ask("SELECT last_insert_rowid()")
        columns = [np.asarray(measured[name]) for name in _MEASURED]
        columns[_MEASURED.index("censored")] = columns[_MEASURED.index("censored")].astype(int)
        start = _checksum([_text(cell), engine])
        found = map(list, zip(*(column.tolist() for column in columns), strict=True))
        rows = [(setting, *row, _checksum(row, start)) for row in found]
        before = self._connection.total_changes
        insert = "INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        self._connection.executemany(insert, rows)
        added = self._connection.total_changes - before
        if added < len(rows):
            there = set(self._ask("SELECT * FROM runs WHERE setting = ?", setting))
            if not there.issuperset(rows):
                raise DatabaseError(
                    f"{self.path}: has other results of the same runs of {cell.update} at eta = "
                    f"{cell.eta:g} in {cell.experiment}; nothing was overwritten."
                )
        return added

    def take_over(self, runs: pd.DataFrame, cells: Iterable[Cell]) -> int:
        """Write the runs of some cells that a table has and the database lacks.

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
            If the table lacks a column or a number, has one that is none or impossible, or has a
            run twice.
        """
        wanted, added = {_text(cell): digest_of(cell) for cell in cells}, 0
        with self._transaction():
            for cell, engine, group in _settings(_checked(runs, "runs")):
                if engine == _engine(cell) and (process := wanted.get(_text(cell))) is not None:
                    added += self._add(cell, process, engine, group)
        return added

    def _import(self) -> None:
        """Add the runs in the files of earlier releases, each file once."""
        for path in sorted(self.directory.iterdir()):
            if (match := _OLD.fullmatch(path.name)) is None:
                continue
            with self._transaction():
                if self._ask("SELECT 1 FROM imported WHERE file = ?", path.name):
                    continue
                for cell, engine, group in _settings(_old_runs(path, *match.groups())):
                    _require_engine(path, engine, _engine(cell))
                    self._add(cell, "", engine, group)
                self._ask("INSERT INTO imported VALUES (?)", path.name)

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
        with self._errors_in_words():
            rows = self._ask("SELECT * FROM runs ORDER BY setting, run")
            known = self._ask("SELECT id, cell, engine FROM settings")
            starts = {setting: _checksum(noted) for setting, *noted in known}
            if any(_checksum(row, starts.get(i, 0)) != found for i, *row, found in rows):
                raise sqlite3.DatabaseError("the checksum of a run is wrong")
        settings = pd.DataFrame(
            [{**vars(_cell(text)), "engine": engine} for _, text, engine in known],
            [setting for setting, *_ in known],
            [*_CELL, "engine"],
        ).sort_values(_ORDER, kind="stable")
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
                _write_parquet(target, self.read())
            except OSError as error:
                raise DatabaseError(
                    f"{target}: could not be written ({error.strerror or error}); all runs are "
                    f"safe in {self.path.name}."
                ) from None
        return target


def _engine(cell: Cell) -> str:
    return engine_of(cell.update, cell.preset)


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


def _text(cell: Cell) -> str:
    """Return a cell as it stands in the database; JSON has no word for what is not a number."""
    floats = {name: float(getattr(cell, name)) for name in ("eta", "beta", "target")}
    numbers = {name: None if value != value else value for name, value in floats.items()}
    return json.dumps(vars(cell) | numbers)


def _cell(text: str) -> Cell:
    """Return the cell that stands in the database."""
    try:
        found = json.loads(text)
        numbers: dict[str, Any] = {k: math.nan if v is None else v for k, v in found.items()}
        return Cell(**numbers)
    except (ValueError, TypeError, AttributeError):
        raise sqlite3.DatabaseError("a setting cannot be read") from None


def _checksum(values: list[Any], start: int = 0) -> int:
    """Return the checksum of a setting, or of a run after its setting; SQLite itself has none."""
    return zlib.crc32(repr(values).encode(), start)


def _pieces(chunk: Chunk, held: set[int]) -> list[Chunk]:
    """Return the parts of a chunk, each as long as possible, of which no run is held."""
    lacking = [run for run in range(chunk.first, chunk.first + chunk.count) if run not in held]
    cuts = [k for k in range(1, len(lacking)) if lacking[k] > lacking[k - 1] + 1]
    pieces = np.split(np.array(lacking, int), cuts) if lacking else []
    return [Chunk(chunk.cell, int(piece[0]), len(piece)) for piece in pieces]


# Tables


def _settings(runs: pd.DataFrame) -> Iterator[tuple[Cell, str, pd.DataFrame]]:
    """Yield the settings in a table, each with its engine and its runs."""
    groups: Any = runs.groupby([*_CELL, "engine"], dropna=False, observed=True)
    for (*values, engine), group in groups:
        yield Cell(*values), engine, group


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
    if runs.duplicated([*_CELL, "engine", "run"]).any():
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


def _write_parquet(target: Path, runs: pd.DataFrame, level: int | None = None) -> None:
    """Write runs to a Parquet file."""
    sink = io.BytesIO()
    pq.write_table(_table(runs), sink, compression="zstd", compression_level=level)
    _replace(target, sink.getvalue())


def _replace(target: Path, content: bytes) -> None:
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


# The table that is published


def collect(
    dataset: str | os.PathLike[str],
    directory: str | os.PathLike[str],
    command: str = "",
    seconds: float = 0.0,
) -> str:
    """Write ``runs.parquet`` and ``provenance.json``; return a sentence about them.

    A sweep that was interrupted has more runs of some settings than of others. A panel (an
    experiment with its domain, scheme, beta and open details) keeps only the runs that all its
    settings have, so that comparisons inside a panel are between the same runs. Settings that an
    adaptive sweep left early are no reason to leave out runs of the others.

    Parameters
    ----------
    dataset : path
        Directory of a sweep.
    directory : path
        Where to write; made if it does not exist.
    command : str
        The command that made the runs.
    seconds : float
        Its wall time.

    Returns
    -------
    str
        Where the runs were written, how many they are, and the size of the file.

    Raises
    ------
    ValueError
        If there is no such directory, it has no runs, or the files cannot be written or would be
        in it.
    """
    source, target = Path(dataset), Path(directory)
    if not source.is_dir():
        raise ValueError(f"{dataset}: there is no such directory.")
    if target.resolve().is_relative_to(source.resolve()):
        raise ValueError(f"{target}: lies in the dataset, whose runs.parquet is the sweep's own.")
    seconds = as_float("seconds", seconds, low=0.0)
    everything = pd.DataFrame()
    if any(name == "runs.sqlite" or _OLD.fullmatch(name) for name in os.listdir(source)):
        with Database(source) as database:
            everything = database.read()
    if everything.empty:
        raise ValueError(f"{dataset}: there are no runs in it.")
    runs = _complete(everything)
    note = json.dumps(_provenance(runs, command, seconds), indent=2)
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write_parquet(target / "runs.parquet", runs, level=19)
        _replace(target / "provenance.json", f"{note}\n".encode())
    except OSError as error:
        raise ValueError(f"{target}: could not be written ({error.strerror or error}).") from None
    size = (target / "runs.parquet").stat().st_size / 1e6
    return f"{target / 'runs.parquet'}: {len(runs)} of {len(everything)} runs, {size:.1f} MB."


def _complete(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep, in each panel, the first runs of every setting that was not left early."""
    early = Needed(rows).left_early()
    panels: dict[str, dict[Any, pd.DataFrame]] = {}
    groups: Any = rows.groupby(_CELL, dropna=False, observed=True)
    for values, group in groups:
        panels.setdefault(_panel(values), {})[setting_of(values)] = group
    planned: dict[str, set[Any]] = {}
    for cell in {chunk.cell for chunk in paper_chunks()}:
        values = astuple(cell)
        planned.setdefault(_panel(values), set()).add(setting_of(values))
    kept: list[Any] = [np.arange(0)]
    for panel, settings in panels.items():
        # A panel of the paper is left out until each of its settings has its first runs.
        if settings.keys() < planned.get(panel, set()):
            continue
        counts = [_gapless(group) for setting, group in settings.items() if setting not in early]
        shared = min(counts, default=0)
        kept += [group.index[group["run"] < shared] for group in settings.values()]
    return rows.loc[np.sort(np.concatenate(kept))]


def _panel(values: Iterable[Any]) -> str:
    """Return the panel of a cell, of which the values are given."""
    cell = dict(zip(_CELL, values, strict=True))
    return "|".join(str(cell[name]) for name in _PANEL)


def _gapless(runs: pd.DataFrame) -> int:
    """Return how many runs there are from the first on: none counts after one that lacks."""
    numbers = np.sort(runs["run"].to_numpy())
    return int((numbers == np.arange(len(numbers))).sum())


def _provenance(runs: pd.DataFrame, command: str, seconds: float) -> dict[str, Any]:
    """Return what made the runs, and how many runs each panel has."""
    counts = runs.groupby(_ORDER, dropna=False, observed=True)["run"].count().rename("runs")
    panels = counts.reset_index().groupby(
        ["experiment", "scheme", "beta"], dropna=False, observed=True
    )
    engines = runs.groupby("update", observed=True)["engine"].unique()
    return {
        "command": command,
        "engines": {str(update): sorted(map(str, found)) for update, found in engines.items()},
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
                "settings": int(group["runs"].size),
                "runs": int(group["runs"].min()),
            }
            for (experiment, scheme, beta), group in panels
        ],
    }


def __getattr__(name: str) -> Any:
    """Say what has replaced the class of earlier releases."""
    if name == "Store":
        raise ImportError(
            "pu_lib.empirical.store.Store is gone: use pu_lib.experiments.database.Database, "
            "or read the runs.parquet that a sweep writes to its directory."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
