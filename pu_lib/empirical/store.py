"""A dataset of runs: a directory of Parquet files, one a chunk of runs, each written whole or not.

A chunk is written to a hidden temporary file, flushed to the disk and renamed, so that a file under
its final name is complete, whatever happens to the process or the machine. No two writers share a
temporary file, and none is cleared that another may still be writing. Each file carries, in
its metadata, the cell and the runs that it holds; its pages have checksums. On opening a directory
every file is read: one that is torn, or is not a chunk of runs, is reported by name and left alone.
The names decide the order of the rows, so the same chunks give the same table whoever wrote them in
whatever order.

No run is in a dataset twice: a sweep with more runs than before computes only those that no file
of the same cell holds, and a directory in which two files hold the same run is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import asdict, astuple, dataclass, fields
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

__all__ = ["COLUMNS", "Cell", "Chunk", "Store", "StoreError", "table"]

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

_MEASURED = ("run", "steps", "episodes", "censored", "final_performance")
_KEY = b"pu_lib.chunk"
_TEMPORARY = ".writing-"
_ABANDONED = 3600.0  # seconds; a chunk is written in far less, also to a slow disk


class StoreError(ValueError):
    """A dataset that cannot be continued or written; the sentence names the file."""


@dataclass(frozen=True)
class Cell:
    """One setting, to be run many times; see `pu_lib.empirical.sweep` for the words it takes.

    Attributes
    ----------
    experiment : str
        Panel or sweep the runs belong to.
    domain : str
        The process, as `pu_lib.empirical.processes.domain_of` writes it.
    scheme, update : str
        Exploration scheme and policy update.
    eta : float
        Learning rate of the actor.
    n_states, n_actions : int
        Size of the process.
    beta : float
        Parameter of chains; not a number where the domain has none.
    preset : str
        Description of the open details.
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
        return f"part-{_digest(self.cell)}-{self.first:06d}-{self.count}.parquet"


def _engine(cell: Cell) -> str:
    return engine_of(cell.update, cell.preset)


@lru_cache(maxsize=4096)
def _digest(cell: Cell) -> str:
    text = json.dumps({**asdict(cell), "engine": _engine(cell)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:20]


_FILE = re.compile(r"part-([0-9a-f]{20})-([0-9]{6,})-([0-9]+)\.parquet")


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
    constants = {**asdict(chunk.cell), "engine": _engine(chunk.cell)}
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
        self._check()

    def _check(self) -> None:
        """Read every file; report those that cannot be trusted; clear interrupted writes."""
        bad = []
        for path in sorted(self.directory.iterdir()):
            if path.name.startswith(_TEMPORARY):
                _clear(path)
            elif reason := _defect(path):
                bad.append(f"{path.name} ({reason})")
        if bad:
            raise StoreError(
                f"{self.directory}: {len(bad)} file(s) are not complete chunks of runs and were "
                f"left as they are; move them away to go on: {', '.join(bad)}."
            )
        self._held()

    def _held(self) -> dict[str, set[int]]:
        """Return the runs of each cell that the directory holds, by the digest of the cell."""
        held: dict[str, set[int]] = {}
        for path in sorted(self.directory.glob("part-*.parquet")):
            if match := _FILE.fullmatch(path.name):
                runs = held.setdefault(match[1], set())
                here = range(int(match[2]), int(match[2]) + int(match[3]))
                if not runs.isdisjoint(here):
                    raise StoreError(
                        f"{path}: holds runs that another file of the same setting holds too; "
                        "move one of them away to go on."
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
            runs = held.get(_digest(chunk.cell), set())
            wanted += _pieces(chunk, runs)
        return wanted

    def write(self, chunk: Chunk, measured: Mapping[str, NDArray[Any]]) -> None:
        """Write a chunk whole, or leave nothing under its name.

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
        final = self.directory / chunk.file
        temporary = self.directory / f"{_TEMPORARY}{secrets.token_hex(8)}-{chunk.file}"
        if final.exists():
            raise StoreError(f"{final}: appeared while it was computed; not overwritten.")
        try:
            with open(temporary, "wb") as sink:
                pq.write_table(
                    table(chunk, measured), sink, compression="zstd", write_page_checksum=True
                )
                sink.flush()
                os.fsync(sink.fileno())
            os.replace(temporary, final)
            _flush_directory(self.directory)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise StoreError(
                f"{final}: could not be written ({error.strerror or error}); "
                "the runs so far are safe and the sweep can be resumed."
            ) from None

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
        """
        names = [field.name for field in fields(Cell)]
        wanted = {_words(astuple(cell)): cell for cell in cells}
        held, taken = self._held(), 0
        for values, group in runs.groupby(names, dropna=False, observed=True):
            cell = wanted.get(_words(values))
            if cell is None:
                continue
            rows = group[group["engine"] == _engine(cell)].set_index("run", drop=False)
            rows = rows.sort_index()
            rows = rows.drop(index=list(held.get(_digest(cell), set())), errors="ignore")
            for chunk in _stretches(cell, sorted(rows.index)):
                chosen = rows.loc[chunk.first : chunk.first + chunk.count - 1]
                self.write(chunk, {name: chosen[name].to_numpy() for name in _MEASURED})
                taken += chunk.count
        return taken

    def read(self) -> pa.Table:
        """Return all rows, in the order of the file names."""
        files = sorted(self.directory.glob("part-*.parquet"))
        if not files:
            return COLUMNS.empty_table()
        tables = [pq.read_table(path, partitioning=None) for path in files]
        rows = pa.concat_tables([part.replace_schema_metadata(None) for part in tables])
        return rows.unify_dictionaries()


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


def _defect(path: Path) -> str:
    """Return what is wrong with a file, or nothing."""
    try:
        content = pq.read_table(path, page_checksum_verification=True, partitioning=None)
        text = (content.schema.metadata or {}).get(_KEY)
    except (OSError, ValueError, TypeError, pa.ArrowException):
        return "torn, or not Parquet"
    if text is None:
        return "not written by a sweep"
    try:
        chunk, engine = _read_identity(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return "its note of what it holds cannot be read"
    if engine != _engine(chunk.cell):
        return f"made by engine {engine}, this is {_engine(chunk.cell)}"
    if chunk.file != path.name or not _holds(content, chunk):
        return "holds other runs than its name says"
    return ""


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


def _holds(content: pa.Table, chunk: Chunk) -> bool:
    """Return whether a table has the columns of a dataset, and the runs of a chunk in them."""
    if content.schema.names != COLUMNS.names or content.num_rows != chunk.count:
        return False
    if any(content[name].null_count for name in COLUMNS.names):
        return False
    constants = {**asdict(chunk.cell), "engine": _engine(chunk.cell)}
    for name, value in constants.items():
        column = content[name].unique().to_pylist()
        if len(column) != 1 or not _same(column[0], value):
            return False
    runs = content["run"].to_pylist()
    kinds = zip(content.schema.types, COLUMNS.types, strict=True)
    return runs == list(range(chunk.first, chunk.first + chunk.count)) and all(
        kind == expected or pa.types.is_dictionary(kind) for kind, expected in kinds
    )


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
