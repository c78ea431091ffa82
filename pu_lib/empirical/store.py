"""A dataset of runs: a directory of Parquet files, one a chunk of runs, each written whole or not.

A chunk is written to a hidden temporary file, flushed to the disk and renamed, so that a file under
its final name is complete, whatever happens to the process or the machine. No two writers share a
temporary file, and none is cleared that another may still be writing. Each file carries, in
its metadata, the cell and the runs that it holds; its pages have checksums. On opening a directory
every file is read: one that is torn, or is not a chunk of runs, is reported by name and left alone.
The names decide the order of the rows, so the same chunks give the same table whoever wrote them in
whatever order.

Many small files are slow to open, so that chunks are merged, `MANY` at a time, into one file. It is
written like a chunk, its name is the hash of its bytes, and its metadata list the chunks that it
has; only when it is on the disk are their own files removed. A chunk that is found in both places,
because a sweep was killed in between, is read from the merged file, and the next sweep removes the
other. Two sweeps in one directory may merge the same chunk into different files. `Store.read` takes
every chunk once; who reads the files without it should let a sweep end first.

No run is in a dataset twice: a sweep with more runs than before computes only those that no file
of the same cell holds, and a directory in which two chunks hold the same run is refused.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import secrets
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from pu_lib.empirical.jekyll_hyde import engine_of

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["COLUMNS", "MANY", "Cell", "Chunk", "Store", "StoreError", "table"]

_WORDS = pa.dictionary(pa.int16(), pa.string())
COLUMNS = pa.schema(
    [
        ("experiment", _WORDS),
        ("domain", _WORDS),
        ("scheme", _WORDS),
        ("update", _WORDS),
        ("eta", pa.float64()),
        ("n_states", pa.int32()),
        ("n_actions", pa.int32()),
        ("beta", pa.float64()),
        ("preset", _WORDS),
        ("max_steps", pa.int64()),
        ("target", pa.float64()),
        ("seed", pa.int64()),
        ("engine", _WORDS),
        ("run", pa.int32()),
        ("steps", pa.int64()),
        ("episodes", pa.int64()),
        ("censored", pa.bool_()),
        ("final_performance", pa.float64()),
    ]
)
"""The columns of the dataset."""

MANY = 256
"""Chunks that are merged into one file, once there are so many."""

_IN_WORDS = pa.schema(
    [field.with_type(pa.string()) if field.type == _WORDS else field for field in COLUMNS]
)
_MEASURED = ("run", "steps", "episodes", "censored", "final_performance")
_KEY, _MERGED_KEY = b"pu_lib.chunk", b"pu_lib.merged"
_TEMPORARY = ".writing-"
_ABANDONED = 3600.0  # seconds; a chunk is written in far less, also to a slow disk


class StoreError(ValueError):
    """A dataset that cannot be continued or written; the sentence names the file."""


class _DefectError(StoreError):
    """A file that cannot be trusted."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}.")
        self.reason = reason


@dataclass(frozen=True)
class Cell:
    """One setting, to be run many times; see `pu_lib.empirical.sweep` for the words it takes.

    Attributes
    ----------
    experiment : str
        Panel or sweep the runs belong to.
    domain : str
        The process, as `pu_lib.empirical.processes.domain_of` writes it.
    scheme : str
        Exploration scheme.
    update : str
        Policy update, without options.
    eta : float
        Learning rate of the actor.
    n_states, n_actions : int
        Size of the process.
    beta : float
        Parameter of chains; not a number where the domain has none.
    preset : str
        Description of the open details, and with it the update's options: `pu_lib.empirical.actors`
        says how a table names an update.
    max_steps : int
        Cap on the steps of a run.
    target : float
        Normalised performance to reach.
    seed : int
        Root of all randomness.
    """

    experiment: str
    domain: str
    scheme: str
    update: str
    eta: float
    n_states: int
    n_actions: int
    beta: float
    preset: str
    max_steps: int
    target: float
    seed: int


@dataclass(frozen=True)
class Chunk:
    """The runs `first` to `first + count - 1` of a cell.

    Attributes
    ----------
    cell : Cell
        The setting.
    first : int
        Number of its first run, from 0.
    count : int
        How many runs it has.
    """

    cell: Cell
    first: int
    count: int

    def identity(self) -> str:
        """Return what the chunk holds, as text."""
        return json.dumps({**asdict(self), "engine": _engine(self.cell)}, sort_keys=True)

    @property
    def file(self) -> str:
        """Name of its file."""
        return _file(self, _engine(self.cell))


def _engine(cell: Cell) -> str:
    return engine_of(cell.update, cell.preset)


def _file(chunk: Chunk, engine: str) -> str:
    return f"part-{_digest(chunk.cell, engine)}-{chunk.first:06d}-{chunk.count}.parquet"


@lru_cache(maxsize=4096)
def _digest(cell: Cell, engine: str) -> str:
    text = json.dumps({**vars(cell), "engine": engine}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


_FILE = re.compile(r"part-([0-9a-f]{20})-([0-9]{6,})-([0-9]+)\.parquet")
_MERGED_FILE = re.compile(r"runs-([0-9a-f]{64})\.parquet")


def _runs(name: str) -> tuple[str, range]:
    """Return the digest of the cell and the runs of the chunk with this name."""
    if (match := _FILE.fullmatch(name)) is None:
        raise ValueError(name)
    return match[1], range(int(match[2]), int(match[2]) + int(match[3]))


def _size(name: str) -> int:
    """Return the number of runs of the chunk with this name."""
    return len(_runs(name)[1])


def table(chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> pa.Table:
    """Return the rows of a chunk from its measured columns.

    Parameters
    ----------
    chunk : Chunk
        What was run.
    measured : mapping of str to ndarray, shape (count,)
        The measured columns, by name, one entry a run.

    Returns
    -------
    pyarrow.Table
        One row a run, with the columns of the dataset and the chunk's identity as metadata.
    """
    constants = {**vars(chunk.cell), "engine": _engine(chunk.cell)}
    columns = []
    for field in COLUMNS:
        if field.name in _MEASURED:
            values = pa.array(np.asarray(measured[field.name]), type=field.type)
        elif field.type == _WORDS:
            indices = pa.array(np.zeros(chunk.count, np.int16))
            values = pa.DictionaryArray.from_arrays(indices, [constants[field.name]])
        else:
            values = pa.array([constants[field.name]] * chunk.count, type=field.type)
        columns.append(values)
    schema = COLUMNS.with_metadata({_KEY: chunk.identity().encode()})
    return pa.Table.from_arrays(columns, schema=schema)


class Store:
    """A directory of chunks.

    Parameters
    ----------
    directory : path
        Made if it does not exist.

    Raises
    ------
    StoreError
        If it cannot be made, or holds a file that is torn or is not a chunk, or two files that
        hold the same run.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.directory = Path(directory)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{self.directory}: cannot be made ({error.strerror}).") from None
        self._merged: dict[str, dict[str, int]] = {}
        self._check()

    def _check(self) -> None:
        """Read every file; report those that cannot be trusted; clear interrupted writes."""
        bad = []
        for path in sorted(self.directory.iterdir()):
            if path.name.startswith(_TEMPORARY):
                _clear(path)
            elif reason := self._defect(path):
                bad.append(f"{path.name} ({reason})")
        if bad:
            raise StoreError(
                f"{self.directory}: {len(bad)} file(s) are not whole chunks of runs as they would "
                "be made today, and were left as they are; move them away to go on, or name "
                f"another directory: {', '.join(bad)}."
            )
        self._held()

    def _defect(self, path: Path) -> str:
        """Return what is wrong with a file, or nothing."""
        try:
            if _MERGED_FILE.fullmatch(path.name):
                self._merged[path.name] = _read_merged(path)
            else:
                _read_chunk(path)
        except FileNotFoundError:  # another sweep has merged it into a file that is listed next
            return ""
        except _DefectError as defect:
            return defect.reason
        return ""

    def _listed(self) -> tuple[set[str], dict[str, dict[str, int]]]:
        """Return the chunks with a file of their own, and those in each merged file, with sizes."""
        # In this order: a chunk that another sweep merges in between is in either or in both.
        own = set(filter(_FILE.fullmatch, os.listdir(self.directory)))
        names = sorted(filter(_MERGED_FILE.fullmatch, os.listdir(self.directory)))
        for name in names:
            if name not in self._merged:  # a name stands for its content, for ever
                self._merged[name] = _read_merged(self.directory / name)
        return own, {name: self._merged[name] for name in names}

    def _held(self) -> dict[str, set[int]]:
        """Return the runs of each cell that the directory holds, by the digest of the cell."""
        own, merged = self._listed()
        files = {chunk: file for file, chunks in merged.items() for chunk in chunks}
        files |= {chunk: chunk for chunk in sorted(own - files.keys())}
        held: dict[str, set[int]] = {}
        for chunk, file in files.items():  # own files last: if one is in the way, it is named
            digest, here = _runs(chunk)
            runs = held.setdefault(digest, set())
            if not runs.isdisjoint(here):
                raise StoreError(
                    f"{self.directory / file}: holds runs that another file of the same setting "
                    "holds too; move one of them away to go on."
                )
            runs.update(here)
        return held

    def missing(self, chunks: Iterable[Chunk]) -> list[Chunk]:
        """Return the runs of some chunks that are not in the directory, in the given order.

        A chunk of which some runs are there is cut into the pieces that are not.
        """
        held = self._held()
        wanted = []
        for chunk in chunks:
            runs = held.get(_digest(chunk.cell, _engine(chunk.cell)), set())
            wanted += _pieces(chunk, runs)
        return wanted

    def write(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Write a chunk whole, or leave nothing under its name; merge, if there are many now.

        Parameters
        ----------
        chunk : Chunk
            What was run.
        measured : mapping of str to ndarray, shape (count,)
            The measured columns, by name, one entry a run.

        Raises
        ------
        StoreError
            If the file is there already, or cannot be written.
        """
        own, merged = self._listed()
        if chunk.file in own or any(chunk.file in chunks for chunks in merged.values()):
            raise StoreError(
                f"{self.directory / chunk.file}: appeared while it was computed; not overwritten."
            )
        self._put(chunk.file, _encoded(table(chunk, measured)))
        if len(own) + 1 >= MANY:
            self.merge()

    def _put(self, name: str, content: bytes) -> None:
        """Write a file whole, or leave nothing under its name."""
        final = self.directory / name
        temporary = self.directory / f"{_TEMPORARY}{secrets.token_hex(8)}-{name}"
        try:
            with open(temporary, "wb") as sink:
                sink.write(content)
                sink.flush()
                os.fsync(sink.fileno())
            os.replace(temporary, final)
            _flush_directory(self.directory)
        except OSError as error:
            raise StoreError(
                f"{final}: could not be written ({error.strerror or error}); "
                "the runs so far are safe and the sweep can be resumed."
            ) from None
        finally:
            temporary.unlink(missing_ok=True)

    def merge(self) -> None:
        """Merge chunks, as long as there are `MANY` to be merged, and remove their own files.

        Raises
        ------
        StoreError
            If a chunk has been damaged since the directory was opened, or the file cannot be
            written. No chunk is removed before the file that has it is whole and on the disk.
        """
        own, merged = self._listed()
        merged_already = set[str]().union(*merged.values())
        self._remove(own & merged_already)
        loose = sorted(own - merged_already)
        while len(loose) >= MANY:
            names, loose = loose[:MANY], loose[MANY:]
            try:
                content = _encoded(_merged([_read_chunk(self.directory / name) for name in names]))
            except FileNotFoundError:
                return  # another sweep is merging them
            self._put(_named(content), content)
            self._remove(names)

    def _remove(self, names: Collection[str]) -> None:
        """Remove chunks that merged files have."""
        if names:
            _flush_directory(self.directory)  # another sweep may have put such a file there
        for name in names:
            (self.directory / name).unlink(missing_ok=True)

    def take_over(self, runs: pd.DataFrame, cells: Iterable[Cell]) -> int:
        """Write the runs of some cells that a table holds and the directory lacks.

        Only runs of the present engine are taken: the others would come out differently today.

        Parameters
        ----------
        runs : pandas.DataFrame
            A table with the columns of the dataset, such as ``runs.parquet``.
        cells : iterable of Cell
            The settings to take.

        Returns
        -------
        int
            The number of runs that were written.

        Raises
        ------
        StoreError
            If the table lacks a column or a number, has one that is none or impossible, or has a
            run twice.
        """
        names = [field.name for field in fields(Cell)]
        if lacking := [name for name in COLUMNS.names if name not in runs.columns]:
            raise StoreError(f"runs: the table has no column {lacking[0]!r}.")
        try:
            table = pa.Table.from_pandas(runs, schema=COLUMNS, preserve_index=False)
        except (pa.ArrowException, ValueError, TypeError) as error:
            raise StoreError(f"runs: the table is not one of runs ({error}).") from None
        never = [field.name for field in COLUMNS if not pa.types.is_floating(field.type)]
        if any(table[name].null_count for name in (*never, "final_performance")):
            raise StoreError("runs: the table has an empty cell.")
        runs = table.replace_schema_metadata(None).to_pandas()  # else with the types it came with
        if (runs["run"] < 0).any() or (runs["episodes"] < 0).any():
            raise StoreError("runs: the table has a negative number.")
        if runs.duplicated([*names, "engine", "run"]).any():
            raise StoreError("runs: the table has a run more than once.")
        if not runs["steps"].between(1, runs["max_steps"]).all():
            raise StoreError("runs: the table has a run whose steps are none, or beyond its cap.")
        wanted = {_words(vars(cell).values()): cell for cell in cells}
        held, taken = self._held(), 0
        for values, group in runs.groupby(names, dropna=False, observed=True):
            cell = wanted.get(_words(values))
            if cell is None:
                continue
            engine = _engine(cell)
            rows = group[group["engine"] == engine].set_index("run", drop=False)
            rows = rows.sort_index()
            rows = rows.drop(index=list(held.get(_digest(cell, engine), set())), errors="ignore")
            for chunk in _stretches(cell, sorted(rows.index)):
                chosen = rows.loc[chunk.first : chunk.first + chunk.count - 1]
                self.write(chunk, {name: chosen[name].to_numpy() for name in _MEASURED})
                taken += chunk.count
        return taken

    def read(self) -> pa.Table:
        """Return all rows, in the order of the names of their chunks."""
        while True:
            own, merged = self._listed()
            with suppress(FileNotFoundError):  # another sweep has just merged a chunk
                return self._rows(
                    {**merged, **{chunk: {chunk: _size(chunk)} for chunk in sorted(own)}}
                )

    def _rows(self, files: Mapping[str, Mapping[str, int]]) -> pa.Table:
        """Return the rows of the chunks in some files, each chunk once."""
        tables, places, row = [COLUMNS.empty_table()], dict[str, range](), 0
        for file, chunks in files.items():
            path = self.directory / file
            with _reading(path):
                tables.append(_parsed(path.read_bytes()).replace_schema_metadata(None))
            for chunk, count in chunks.items():
                places.setdefault(chunk, range(row, row + count))
                row += count
        order = [np.arange(here.start, here.stop) for _, here in sorted(places.items())]
        rows = pa.concat_tables(tables).unify_dictionaries()
        rows = rows.take(np.concatenate([np.arange(0), *order]))
        # Words are numbered anew, so that their numbers do not tell which chunks were merged.
        return rows.cast(_IN_WORDS).cast(COLUMNS)


def _pieces(chunk: Chunk, held: set[int]) -> list[Chunk]:
    """Return the parts of a chunk, each as long as possible, of which no run is held."""
    runs = range(chunk.first, chunk.first + chunk.count)
    lacking = [run for run in runs if run not in held]
    return [chunk] if len(lacking) == chunk.count else _stretches(chunk.cell, lacking)


def _stretches(cell: Cell, runs: list[int]) -> list[Chunk]:
    """Return runs of a cell, in rising order, as chunks without gaps, as long as possible."""
    here = set(runs)
    starts = [run for run in runs if run - 1 not in here]
    ends = [run + 1 for run in runs if run + 1 not in here]
    return [Chunk(cell, first, end - first) for first, end in zip(starts, ends, strict=True)]


def _words(values: Iterable[object]) -> tuple[str, ...]:
    """Return the values of a cell as words, in which something that is no number equals itself."""
    return tuple(map(str, values))


def _encoded(rows: pa.Table) -> bytes:
    """Return the bytes of a file with these rows."""
    sink = io.BytesIO()
    pq.write_table(rows, sink, compression="zstd", write_page_checksum=True)
    return sink.getvalue()


def _named(content: bytes) -> str:
    """Return the name of a merged file with these bytes."""
    return f"runs-{hashlib.sha256(content).hexdigest()}.parquet"


def _merged(chunks: list[tuple[Chunk, pa.Table]]) -> pa.Table:
    """Return the rows of chunks in one table, whose metadata list the chunks."""
    rows = pa.concat_tables([table.replace_schema_metadata(None) for _, table in chunks])
    note = json.dumps([chunk.file for chunk, _ in chunks]).encode()
    return rows.unify_dictionaries().combine_chunks().replace_schema_metadata({_MERGED_KEY: note})


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """Say in a sentence what is wrong with a file, unless it is gone."""
    try:
        yield
    except (OSError, ValueError, TypeError, pa.ArrowException) as error:
        if isinstance(error, FileNotFoundError) and not path.is_symlink():
            raise
        raise _DefectError(path, "torn, or not Parquet") from None


def _parsed(content: bytes, columns: list[str] | None = None) -> pa.Table:
    """Return the rows in the bytes of a file."""
    file = pq.ParquetFile(pa.BufferReader(content), page_checksum_verification=True)
    rows = file.read(columns, use_threads=False)
    rows.validate(full=True)  # a damaged dictionary has fewer values than are looked up in it
    return rows


def _read_chunk(path: Path) -> tuple[Chunk, pa.Table]:
    """Return the chunk in a file of its own; refuse it if it is not what its name says."""
    with _reading(path):
        content = _parsed(path.read_bytes())
    text = (content.schema.metadata or {}).get(_KEY)
    if text is None:
        raise _DefectError(path, "not written by a sweep")
    try:
        chunk, engine = _read_identity(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _DefectError(path, "its note of what it holds cannot be read") from None
    _require_engine(path, engine, _engine(chunk.cell))
    if _file(chunk, engine) != path.name or not _holds(content, chunk, engine):
        raise _DefectError(path, "holds other runs than its name says")
    return chunk, content


def _read_merged(path: Path) -> dict[str, int]:
    """Return the chunks in a merged file, with sizes; refuse it if it is not as it was written."""
    with _reading(path):
        content = path.read_bytes()
    if path.name != _named(content):
        raise _DefectError(path, "torn, or changed since it was written")
    with _reading(path):
        rows = _parsed(content, ["update", "preset", "engine"])
        kinds = rows.group_by(rows.schema.names, use_threads=False).aggregate([]).to_pylist()
    try:
        names = json.loads((rows.schema.metadata or {})[_MERGED_KEY])
        chunks = {name: _size(name) for name in names}
    except (ValueError, TypeError, KeyError, RecursionError):
        raise _DefectError(path, "its note of what it holds cannot be read") from None
    for kind in kinds:
        _require_engine(path, kind["engine"], engine_of(kind["update"], kind["preset"]))
    if rows.num_rows != sum(chunks.values()):
        raise _DefectError(path, "holds other runs than its note says")
    return chunks


def _require_engine(path: Path, engine: str, ours: str) -> None:
    """Refuse runs of another engine; whether they are, is not known of an unknown update."""
    if ours not in ("", engine):
        raise _DefectError(
            path, f"made by engine {engine}, this is {ours}: the code or a setting has changed"
        )


def _read_identity(text: bytes) -> tuple[Chunk, str]:
    """Return the chunk and the engine that `Chunk.identity` wrote down."""
    note = json.loads(text)
    kinds: dict[str, Any] = {"str": str, "int": int, "float": (int, float)}
    for field in fields(Cell):
        value = note["cell"][field.name]
        if not isinstance(value, kinds[str(field.type)]) or isinstance(value, bool):
            raise TypeError(f"{field.name}: {value!r}")
    first, count = note["first"], note["count"]
    if type(first) is not int or type(count) is not int or first < 0 or count < 1:
        raise ValueError(f"first, count: {first!r}, {count!r}")
    return Chunk(Cell(**note["cell"]), first, count), str(note["engine"])


def _holds(content: pa.Table, chunk: Chunk, engine: str) -> bool:
    """Return whether a table has the columns of a dataset, and the runs of a chunk in them."""
    if not content.schema.equals(COLUMNS) or content.num_rows != chunk.count:
        return False
    if any(content[name].null_count for name in COLUMNS.names):
        return False
    constants = {**vars(chunk.cell), "engine": engine}
    for name, value in constants.items():
        column = content[name].unique().to_pylist()
        if len(column) != 1 or not _same(column[0], value):
            return False
    runs = content["run"].to_pylist()
    return bool(runs == list(range(chunk.first, chunk.first + chunk.count)))


def _same(x: object, y: object) -> bool:
    """Return whether two values are equal, or neither is a number."""
    return x == y or (x != x and y != y)


def _clear(temporary: Path) -> None:
    """Remove what an interrupted write left, unless it may be another sweep's, still at work."""
    with suppress(FileNotFoundError):  # that other sweep has just renamed it
        if time.time() - temporary.lstat().st_mtime > _ABANDONED:
            temporary.unlink()


def _flush_directory(directory: Path) -> None:
    """Make a rename last; systems that cannot open a directory need no such call."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
