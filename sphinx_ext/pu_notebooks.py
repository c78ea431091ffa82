"""Execute each notebook of the book only once for the same sources.

Jupyter Book reads notebook outputs from a cache and executes missing notebooks sequentially.
This extension executes the missing notebooks in parallel, one per processor, while Jupyter Book
reads the other pages. In the tests, nbmake stores its outputs in the same cache
(`tests/conftest.py`), so ``make test`` and ``make book`` together execute a notebook once, in
either order or at the same time.

The cache is keyed by a hash of the library and the pinned requirements, so an edit of either causes
all notebooks to be executed again. Within the cache, a notebook is keyed by its code.
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
"""Timeout in seconds for waiting until another process has executed a notebook."""

LOGGER = logging.getLogger(__name__)


def digest(*names: str) -> str:
    """Return a hash of files and folders in the repository."""
    result = hashlib.sha256()
    for path in sorted(file for name in names for file in [ROOT / name, *(ROOT / name).rglob("*")]):
        if path.is_file() and "__pycache__" not in path.parts and path.suffix[:3] != ".nb":
            result.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    return result.hexdigest()[:16]


def current() -> Path:
    """Return the cache folder for the current sources, requirements and settings."""
    settings = "".join(f"-{os.environ[name]}" for name in ROUNDING if os.environ.get(name))
    return CACHES / (digest("requirements.txt", "pu_lib") + re.sub(r"\W+", "-", settings))


@contextmanager
def alone(lock: Path) -> Iterator[None]:
    """Hold a lock that excludes other threads and processes; it is released if the process ends."""
    lock.parent.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(lock, timeout=LONGEST_WAIT, isolation_level=None)) as database:
        database.execute("BEGIN EXCLUSIVE")
        yield


def normalized(executed: nbformat.NotebookNode, name: str) -> nbformat.NotebookNode:
    """Return an executed notebook without content that differs between executions.

    Parameters
    ----------
    executed : NotebookNode
        The notebook with its outputs.
    name : str
        The name from which the identifiers of widgets are derived; the original identifiers are
        random.

    Returns
    -------
    NotebookNode
        The notebook with reproducible identifiers of widgets and tables, and without memory
        addresses or nbmake's times.
    """
    for cell in executed.cells:
        cell.metadata.pop("execution", None)
    widgets = executed.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    names = {
        original: hashlib.sha256(f"{name} {count}".encode()).hexdigest()[:32]
        for count, original in enumerate(widgets)
    }
    text = re.sub(
        r"[0-9a-f]{32}", lambda match: names.get(match[0], match[0]), nbformat.writes(executed)
    )
    tables: dict[str, str] = {}  # identifiers of pandas' styled tables
    text = re.sub(
        r"\bT_[0-9a-f]{5}(?=[_\W])",
        lambda match: tables.setdefault(match[0], f"T_{len(tables)}"),
        text,
    )
    return nbformat.reads(re.sub(r" at 0x[0-9a-f]+", "", text), 4)


class Execution:
    """The execution of one notebook, locked while its context is active.

    Parameters
    ----------
    path : Path
        The path of the notebook.
    notebook : NotebookNode
        The notebook.
    folder : Path
        The cache folder, `current()`.
    """

    def __init__(self, path: Path, notebook: nbformat.NotebookNode, folder: Path) -> None:
        self.path, self.notebook, self.folder = path, notebook, folder

    def __enter__(self) -> Execution:
        """Acquire the lock of the notebook, waiting for other processes if necessary."""
        self._lock = alone(self.folder / "locks" / self.path.stem)
        self._lock.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        """Release the lock."""
        self._lock.__exit__(*raised)

    @property
    def is_kept(self) -> bool:
        """Whether the cache has the notebook's outputs."""
        with alone(self.folder / "locks" / "cache"):
            try:
                get_cache(str(self.folder)).match_cache_notebook(self.notebook)
            except KeyError:
                return False
        return True

    def keep(self, executed: nbformat.NotebookNode, seconds: float) -> None:
        """Store the executed notebook in the cache, unless a source has changed in the meantime."""
        executed = normalized(executed, self.path.stem)
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
    """Return the cells of a notebook with their outputs, or an empty list if it is not cached."""
    folder = current()
    with alone(folder / "locks" / "cache"):
        try:
            _, merged = get_cache(str(folder)).merge_match_into_notebook(nbformat.read(path, 4))
        except KeyError:
            return []
    return list(merged.cells)


def expected(path: Path) -> float:
    """Return the seconds of a notebook's last execution, or an estimate from its size."""
    try:
        return float((TIMES / path.stem).read_text())
    except (OSError, ValueError):
        return path.stat().st_size / 1000


def execute(execution: Execution, timeout: int) -> tuple[float, str]:
    """Execute a notebook and cache it, unless it is already cached.

    Parameters
    ----------
    execution : Execution
        The notebook and its cache.
    timeout : int
        The time limit of one cell, in seconds.

    Returns
    -------
    float
        The execution time in seconds; 0 if the notebook was already cached, perhaps by another
        process.
    str
        The traceback if the notebook fails, else an empty string.
    """
    with execution, TemporaryDirectory() as folder:
        if execution.is_kept:
            return 0.0, ""
        notebook = deepcopy(execution.notebook)
        result = single_nb_execution(notebook, cwd=folder, timeout=timeout, allow_errors=False)
        if result.err is None:
            execution.keep(notebook, result.time)
        return result.time, result.exc_string or ""


def notebooks(env: BuildEnvironment, docnames: Iterable[str]) -> Iterator[Execution]:
    """Yield the pages that are notebooks, stored as JSON or as text."""
    for path in (Path(env.doc2path(name)) for name in docnames):
        text = path.read_text("utf-8")
        reader = create_nb_reader(str(path), env.myst_config, env.mystnb_config, text)
        if reader is not None:
            yield Execution(path, reader.read(text), Path(env.config.nb_execution_cache_path))


class Executions:
    """Execute the notebooks that are not cached while Sphinx reads the other pages."""

    def __init__(self) -> None:
        self.running: dict[Future[tuple[float, str]], Execution] = {}
        self.due: set[str] = set()

    def begin(self, app: Sphinx, env: BuildEnvironment, docnames: list[str]) -> None:
        """Start the executions, longest first, and let Sphinx read these notebooks last."""
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
        """Wait for all executions before the first notebook is read, and log their outcomes."""
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
            message = "\n".join(f"{path} failed:\n{text}" for path, text in failed.items())
            raise ExtensionError(message)

    def end(self, app: Sphinx, exception: Exception | None) -> None:
        """Cancel the executions that are still pending if another page has failed the build."""
        for each in self.running:
            each.cancel()


def choose_cache(app: Sphinx, config: Config) -> None:
    """Select the cache for the current sources and delete all other caches."""
    folder = current()
    for stale in CACHES.glob("*"):
        if stale not in (folder, TIMES):
            shutil.rmtree(stale) if stale.is_dir() else stale.unlink()
    config.nb_execution_cache_path = str(folder)


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the handlers of the cache and the executions."""
    executions = Executions()
    app.connect("config-inited", choose_cache)
    app.connect("env-before-read-docs", executions.begin)
    app.connect("env-purge-doc", executions.wait)
    app.connect("build-finished", executions.end)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
