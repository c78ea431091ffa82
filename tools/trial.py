"""Run chosen tests in forks of one process that has collected all of them.

To import the library and to collect its tests takes seconds, to try a mutant often a hundredth of
one. So the tests are collected once. A fork of that process gives the functions of a module, as
they stand in memory, the code of the mutated module, empties the caches, and runs the tests. What
a module does while it is imported is not done again: then `Collected.exchange` says so.
"""

from __future__ import annotations

import functools
import gc
import hashlib
import inspect
import math
import mmap
import os
import resource
import signal
import sys
import time
import traceback
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

__all__ = ["Collected", "forked", "hold", "run_pytest"]

_IDLE = 60.0  # seconds without a sign of work
_FIXED = ["-q", "-p", "no:cacheprovider", "-p", "no:nbmake", "-p", "no:xdist", "--no-header"]
_Place = tuple[str, str, int]


def hold(
    folder: Path, files: list[str], modules: list[str], work: Callable[[Collected], None]
) -> int:
    """Collect tests in a process of its own, and do something with them there.

    Parameters
    ----------
    folder : Path
        A copy of the repository.
    files : list of str
        Files of tests, from there.
    modules : list of str
        Modules of the library, from there; those that no test imports at once are imported, too.
    work : callable
        Is given the collected tests.

    Returns
    -------
    int
        The exit code of pytest; 0 if `work` came to its end.
    """

    class Holder:
        """A plugin of pytest: in place of running the tests, hand them over."""

        @pytest.hookimpl(tryfirst=True)
        def pytest_runtestloop(self, session: pytest.Session) -> bool:
            """Do the work."""
            try:
                for path in modules:
                    import_module(
                        path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
                    )
                tests = Collected(session, folder)
                gc.freeze()
                work(tests)
            except Exception:  # pytest would say so where nobody sees it
                traceback.print_exc()
                raise
            return True

    def collect() -> int:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return run_pytest(
            folder, ["--capture=no", "--tb=native", f"--basetemp={folder}.tmp", *files], [Holder()]
        )

    return forked(collect, None) or 0


def run_pytest(folder: Path, arguments: list[str], plugins: list[object]) -> int:
    """Run pytest in a copy of the repository, so that its library is the one that is imported."""
    tools = str(Path(__file__).parent)
    os.chdir(folder)
    os.environ["PYTHONPATH"] = str(folder)
    sys.path[:] = [str(folder), *(path for path in sys.path if not path.startswith(tools))]
    return int(pytest.main([*_FIXED, f"--rootdir={folder}", *arguments], plugins))


class Collected:
    """Collected tests, and the functions of the library in memory.

    Attributes
    ----------
    digests : dict of str to str
        The tests, as pytest names them, and what stands for the source of each.
    """

    def __init__(self, session: pytest.Session, folder: Path) -> None:
        self._session, self._folder = session, folder
        self._items = {item.nodeid: item for item in session.items}
        self._failing = mmap.mmap(-1, 4)  # shared with the forks
        self._functions: dict[_Place, list[FunctionType]] = defaultdict(list)
        self._caches = []
        library = str(folder / "pu_lib")
        for thing in gc.get_objects():
            if type(thing) is FunctionType:  # a weak reference would be asked with `isinstance`
                if thing.__code__.co_filename.startswith(library):
                    self._functions[_place(thing.__code__)].append(thing)
            elif type(thing) is functools._lru_cache_wrapper:
                self._caches.append(thing)
        self.digests = {name: _digest(item) for name, item in self._items.items()}

    def exchange(self, module: str, source: bytes) -> bool:
        """Give the functions of a module the code of another source.

        Parameters
        ----------
        module : str
            Path of the module in the folder.
        source : bytes
            The other source, with the same functions in the same order.

        Returns
        -------
        bool
            Whether that makes the difference: not where it is in what is done at import.
        """
        path = self._folder / module
        pairs = list(_pairs(path.read_bytes(), source, str(path)))
        outer = [(old, new) for old, new in pairs if "<locals>" not in old.co_qualname]
        if not outer or not all(_place(old) in self._functions for old, _ in outer):
            return False
        try:
            for old, new in pairs:
                for function in self._functions.get(_place(old), []):
                    function.__code__ = new
        except ValueError:  # it closes over other names
            return False
        for kept in self._caches:
            kept.cache_clear()
        return True

    def run(self, names: list[str], seconds: list[float] | None = None) -> bool:
        """Run tests in an order until one fails, and return whether none does.

        Parameters
        ----------
        names : list of str
            The tests.
        seconds : list of float, optional
            How much processor time each may take: beyond it the process ends.
        """
        items = [self._items[name] for name in names]
        for i, item in enumerate(items):
            following = items[i + 1] if i + 1 < len(items) else None
            if seconds is not None:
                hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
                soft = math.ceil(time.process_time() + seconds[i])
                resource.setrlimit(resource.RLIMIT_CPU, (min(soft, hard), hard))
            self._failing[:] = i.to_bytes(4, "little")
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if self._session.testsfailed:
                return False
        return True

    @property
    def last(self) -> int:
        """Which of the tests of the last `run`, here or in a fork, was the last."""
        return int.from_bytes(self._failing[:], "little")


def _digest(item: pytest.Item) -> str:
    try:
        source = inspect.getsource(inspect.unwrap(item.obj))
    except OSError:  # made by a tool
        source = item.nodeid
    return hashlib.sha256(source.encode()).hexdigest()[:16]


def _place(code: CodeType) -> _Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def _pairs(old: bytes, new: bytes, name: str) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield the code of each function that differs in two sources of a module, before and after."""
    before, after = (_codes(compile(text, name, "exec", dont_inherit=True)) for text in (old, new))
    for qualified, codes in before.items():
        for pair in zip(codes, after.get(qualified, []), strict=False):
            if _said(pair[0]) != _said(pair[1]):
                yield pair


def _codes(code: CodeType) -> dict[str, list[CodeType]]:
    """Return the code of the functions inside of a code, at any depth, by qualified name."""
    found: dict[str, list[CodeType]] = defaultdict(list)

    def walk(code: CodeType) -> None:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                if constant.co_flags & inspect.CO_OPTIMIZED:  # not the body of a class
                    found[constant.co_qualname].append(constant)
                walk(constant)

    walk(code)
    return found


def _said(code: CodeType) -> tuple[object, ...]:
    """Return what a code does, whatever the lines are that it stands in."""
    constants = [_said(c) if isinstance(c, CodeType) else repr(c) for c in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, code.co_exceptiontable, tuple(constants)


def forked(work: Callable[[], Any], seconds: float | None) -> int | None:
    """Do something in a forked process.

    Parameters
    ----------
    work : callable
        Returns the exit code.
    seconds : float or None
        How much processor time it may use; None if it looks after itself, and is to be seen.

    Returns
    -------
    int or None
        The exit code; None past the time, or without a sign of work for a minute.
    """
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            if seconds is not None:
                _confine(seconds)
            code = int(work())
        finally:
            os._exit(code)
    try:
        return _awaited(pid, seconds is not None)
    finally:
        if seconds is not None:
            _end(pid)


def _confine(seconds: float) -> None:
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 1, int(seconds) + 2))
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)


def _awaited(pid: int, watched: bool) -> int | None:
    """Wait for a process. Whatever it does, it comes to an end if it is watched.

    Processor time does not pass while a test waits for ever: then nothing of it can be seen at
    work. On a busy machine it may wait for the processor, too, which is no reason to end it.
    """
    last = looked = time.monotonic()
    while not watched or time.monotonic() - last < _IDLE:
        done, status = os.waitpid(pid, os.WNOHANG if watched else 0)
        if done:
            return None if os.WIFSIGNALED(status) else os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
        if time.monotonic() - looked > 1.0:
            looked = time.monotonic()
            last = looked if _at_work(pid) else last
    _end(pid)
    os.waitpid(pid, 0)
    return None


def _at_work(session: int) -> bool:
    """Return whether a process of a session runs, or waits for the processor or the disk."""
    if not Path("/proc/self/stat").exists():  # then the limit of processor time has to do
        return True
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, found = entry.read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            continue
        if int(found) == session and state in "RD":
            return True
    return False


def _end(pid: int) -> None:
    """End what a forked process has left behind in its own session."""
    with suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
