"""The notebooks of the book, each executed once for the same sources.

Jupyter Book takes what a notebook puts out from a cache, and executes one after another the
notebooks that it does not find there. Here these are executed while it reads the other pages, as
many at a time as there are processors; and in the tests nbmake keeps in the same cache what it
has executed (`tests/conftest.py`). So ``make test`` and ``make book`` execute a notebook once,
whichever of them comes first and even if both run at a time.

The cache stands under a hash of the library and of the pinned requirements: an edit of either
executes every notebook again. Within it a notebook is known by its code.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sqlite3
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import closing, contextmanager
from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import nbformat
from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from jupyter_cache.executors.utils import single_nb_execution
from myst_nb.core.read import create_nb_reader
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.util import logging

ROOT = Path(__file__).resolve().parent.parent
CACHES = ROOT / "_build" / ".jupyter_cache"
TIMES = CACHES / "seconds"
WIDGETS = "application/vnd.jupyter.widget-state+json"
ROUNDING = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", "PU_LIB_ROUNDING")
"""Variables that change the last digits of results."""
LONGEST_WAIT = 3600.0
"""Seconds after which to give up waiting for another process that executes a notebook."""

LOGGER = logging.getLogger(__name__)


def digest(*names: str) -> str:
    """Return a hash of files and folders of the repository."""
    found = hashlib.sha256()
    for path in sorted(file for name in names for file in [ROOT / name, *(ROOT / name).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix[:3] != ".nb":
            found.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def current() -> Path:
    """Return the folder of notebooks executed with these sources, requirements and settings."""
    settings = "".join(f"-{os.environ[name]}" for name in ROUNDING if os.environ.get(name))
    return CACHES / (digest("requirements.txt", "pu_lib") + re.sub(r"\W+", "-", settings))


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Keep other threads and processes out; a process that ends, however it ends, lets them in."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(lock, timeout=LONGEST_WAIT, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield


def settled(executed: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """Return an executed notebook without what differs from one execution to the next.

    Parameters
    ----------
    executed : NotebookNode
        The notebook with its outputs.
    name : str
        What it is called; its widgets, whose names are drawn at random, are numbered below it, and
        so are styled tables.

    Returns
    -------
    NotebookNode
        The notebook with settled names of widgets and tables, without addresses in memory and
        nbmake's times.
    """
    for cell in executed.cells:
        cell.metadata.pop("execution", None)
    widgets = executed.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    names = {
        drawn: hashlib.sha256(f"{name} {count}".encode()).hexdigest()[:32]
        for count, drawn in enumerate(widgets)
    }
    text = re.sub(
        r"[0-9a-f]{32}", lambda found: names.get(found[0], found[0]), nbformat.writes(executed)
    )
    tables: dict[str, str] = {}  # those that pandas has styled
    text = re.sub(
        r"\bT_[0-9a-f]{5}(?=[_\W])",
        lambda found: tables.setdefault(found[0], f"T_{len(tables)}"),
        text,
    )
    return nbformat.reads(re.sub(r" at 0x[0-9a-f]+", "", text), 4)


class Execution:
    """The execution of one notebook, entered by one process at a time.

    Parameters
    ----------
    path : Path
        Where the notebook stands.
    notebook : NotebookNode
        The notebook.
    folder : Path
        The folder of the cache, `current()`.
    """

    def __init__(self, path: Path, notebook: nbformat.NotebookNode, folder: Path) -> None:
        self.path, self.notebook, self.folder = path, notebook, folder

    def __enter__(self) -> Execution:
        """Wait until no other process executes the notebook."""
        self._lock = alone(self.folder / "locks" / self.path.stem)
        self._lock.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        """Let other processes in."""
        self._lock.__exit__(*raised)

    @property
    def is_kept(self) -> bool:
        """Whether the cache has what the notebook puts out."""
        with alone(self.folder / "locks" / "cache"):
            try:
                get_cache(str(self.folder)).match_cache_notebook(self.notebook)
            except KeyError:
                return False
        return True

    def keep(self, executed: nbformat.NotebookNode, seconds: float) -> None:
        """Put the executed notebook into the cache, unless a source has changed meanwhile."""
        executed = settled(executed, self.path.stem)
        if current() == self.folder:
            bundle = CacheBundleIn(
                executed, str(self.path), data={"execution_seconds": round(seconds, 2)}
            )
            with alone(self.folder / "locks" / "cache"):
                cache = get_cache(str(self.folder))
                cache.cache_notebook_bundle(bundle, check_validity=False, overwrite=True)
            TIMES.mkdir(exist_ok=True)
            (TIMES / self.path.stem).write_text(str(seconds))


def kept(path: Path) -> list[nbformat.NotebookNode]:
    """Return the cells of a notebook with what they put out, none if the cache has them not."""
    folder = current()
    with alone(folder / "locks" / "cache"):
        try:
            _, merged = get_cache(str(folder)).merge_match_into_notebook(nbformat.read(path, 4))
        except KeyError:
            return []
    return list(merged.cells)


def expected(path: Path) -> float:
    """Return how long a notebook took when it was executed last, else a guess from its size."""
    try:
        return float((TIMES / path.stem).read_text())
    except (OSError, ValueError):
        return path.stat().st_size / 1000


def execute(execution: Execution, timeout: int) -> tuple[float, str]:
    """Execute a notebook that is not in the cache, and keep it there.

    Parameters
    ----------
    execution : Execution
        What is to be executed.
    timeout : int
        The longest that one cell may take, in seconds.

    Returns
    -------
    float
        Seconds; 0 where the cache had it, perhaps from another process that came first.
    str
        The traceback of a notebook that fails, else empty.
    """
    with execution, TemporaryDirectory() as place:
        if execution.is_kept:
            return 0.0, ""
        notebook = deepcopy(execution.notebook)
        result = single_nb_execution(notebook, cwd=place, timeout=timeout, allow_errors=False)
        if result.err is None:
            execution.keep(notebook, result.time)
        return result.time, result.exc_string or ""


def notebooks(env: BuildEnvironment, docnames: Iterable[str]) -> Iterator[Execution]:
    """Yield the notebooks among pages, whether they are kept as JSON or as text."""
    for path in (Path(env.doc2path(name)) for name in docnames):
        text = path.read_text("utf-8")
        reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, text)
        if reader is not None:
            yield Execution(path, reader.read(text), Path(env.config.nb_execution_cache_path))


class Executions:
    """Executes the notebooks among the pages to be read, while Sphinx reads the other pages."""

    def __init__(self) -> None:
        self.running: dict[Future[tuple[float, str]], Execution] = {}
        self.due: set[str] = set()

    def begin(self, app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
        """Start the longest first, and have the other pages read before the notebooks."""
        due = [execution for execution in notebooks(env, docnames) if not execution.is_kept]
        if not due:
            return
        due.sort(key=lambda execution: expected(execution.path), reverse=True)
        LOGGER.info(f"executing notebooks: {len(due)}, {os.cpu_count()} at a time")
        pool = ThreadPoolExecutor(os.cpu_count())
        timeout = app.config.nb_execution_timeout
        self.running = {pool.submit(execute, execution, timeout): execution for execution in due}
        pool.shutdown(wait=False)
        self.due = {env.path2doc(str(execution.path)) or "" for execution in due}
        docnames.sort(key=lambda name: name in self.due)

    def wait(self, app: Sphinx, env: BuildEnvironment, docname: str) -> None:
        """Wait for all of them before the first one is read, and say how each ended."""
        if docname not in self.due:
            return
        self.due = set()
        failed = {}
        for count, done in enumerate(as_completed(self.running), 1):
            seconds, traceback = done.result()
            path = self.running[done].path.relative_to(app.srcdir)
            outcome = "failed after" if traceback else "executed in"
            LOGGER.info(f"[{count} of {len(self.running)}] {path} {outcome} {seconds:.0f} s")
            if traceback:
                failed[path] = traceback
        if failed:
            told = "\n".join(f"{path} failed:\n{text}" for path, text in failed.items())
            raise ExtensionError(told)

    def end(self, app: Sphinx, exception: Exception | None) -> None:
        """Do not begin another one where the build has failed on one of the other pages."""
        for each in self.running:
            each.cancel()


def choose_cache(app: Sphinx, config: Config) -> None:
    """Point Jupyter Book to the cache of the sources as they are, and drop those of others."""
    folder = current()
    for stale in CACHES.glob("*"):
        if stale not in (folder, TIMES):
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
    config.nb_execution_cache_path = str(folder)


def setup(app: Sphinx) -> dict[str, Any]:
    """Execute before the first notebook is read."""
    executions = Executions()
    app.connect("config-inited", choose_cache)
    app.connect("env-before-read-docs", executions.begin)
    app.connect("env-purge-doc", executions.wait)
    app.connect("build-finished", executions.end)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
