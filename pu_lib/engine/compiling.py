"""Compilation with numba, and the cache of compiled code on disk.

Numba discards the cached code of a function if the time stamp of the function's own file changes,
but not if another file changes that defines a function it calls. Here the stamp is a digest of all
sources of compiled code. The sources can therefore be spread over modules, and cached code always
belongs to the current kernels, even after an older version is checked out.

Numba keeps the code in ``__pycache__`` beside the source, or else in the user's cache folder, or in
the folder that the variable NUMBA_CACHE_DIR names. If none of them can be written, the code is
compiled in memory, with a warning.
"""

from __future__ import annotations

import dis
import gc
import hashlib
import secrets
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event

from pu_lib.progress import note

__all__ = [
    "allocating",
    "allocating_in_memory",
    "code_digest",
    "compiled",
    "compiled_in_memory",
    "inlined",
]

_F = TypeVar("_F", bound=Callable[..., Any])
# `fastmath` is off, so that no product is fused with a sum, no sum is reordered and results have
# the same bits everywhere. `_nrt: False` turns off reference counts: numba would update them with
# atomic operations whenever an array is taken from a tuple or a row from an array, which makes the
# loop five times slower. The caller keeps all arrays alive. Wrappers for calls from C are not
# compiled, and inlined functions have no wrappers for calls from Python: this saves a tenth of the
# compile time of the loop.
_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True,
}  # fmt: skip

_ALLOCATING = {**_OPTIONS, "_nrt": True}  # new arrays need numba's runtime

INLINED: Any = {"forceinline": True, "no_cpython_wrapper": True, **_OPTIONS}
"""Options of a function that is compiled into its callers."""

inlined = cast(Callable[[_F], _F], numba.njit(**INLINED))
"""Compile a function of any size into its callers; the function cannot be called from Python."""

compiled_in_memory = cast(Callable[[_F], _F], numba.njit(**_OPTIONS))
"""Compile a function in memory; used if it calls kernels that can change between sessions."""

allocating_in_memory = cast(Callable[[_F], _F], numba.njit(**_ALLOCATING))
"""Compile in memory a function that creates arrays."""


def compiled(function: _F) -> _F:
    """Compile a function and cache its code on disk until a source of compiled code changes."""
    return cast(_F, _cached(numba.njit(**_OPTIONS)(function)))


def allocating(function: _F) -> _F:
    """Compile a function that creates arrays, and cache its code as `compiled` does."""
    return cast(_F, _cached(numba.njit(**_ALLOCATING)(function)))


def _cached(dispatcher: Any) -> Any:
    """Turn on a dispatcher's cache, replace its stamp and file names, and return the dispatcher.

    If no folder for the cache can be written, the code is compiled in memory.
    """
    try:
        dispatcher.enable_caching()
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        warnings.warn(
            "The compiled code of pu_lib cannot be kept on disk, so every session compiles it "
            "again. To keep it, set NUMBA_CACHE_DIR to a folder that you may write to.",
            stacklevel=3,
        )
        return dispatcher
    files = dispatcher._cache._cache_file
    files._source_stamp = _source_digest()
    # Numba numbers the files of a function. Two processes that save at the same time could use the
    # same number, and one of them would later load the code of the other.
    files._data_name = lambda _: f"{dispatcher.__name__}-{secrets.token_hex(8)}.nbc"
    return dispatcher


class _RarerCollection(event.Listener):
    """Collect garbage less often while numba compiles, which saves a tenth of the compile time.

    The first time that a function of the library is compiled, a line says so.

    Numba sends these events under its lock, so only one thread at a time runs this code.
    """

    def __init__(self) -> None:
        self._before: list[tuple[int, int, int]] = []
        self._told = False

    def on_start(self, event: Any) -> None:
        if not self._told and event.data["dispatcher"].py_func.__module__.startswith("pu_lib."):
            self._told = True
            note("Compiling with numba, which takes up to a minute the first time.")
        self._before.append(gc.get_threshold())
        first, *others = self._before[-1]
        gc.set_threshold(first and max(first, 20_000), *others)  # 0 disables it

    def on_end(self, event: Any) -> None:
        gc.set_threshold(*self._before.pop())


event.register("numba:compile", _RarerCollection())  # type: ignore[no-untyped-call]


@cache
def _source_digest() -> str:
    """Return a digest of the sources of all compiled code."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    outside = (package.parent / "kernels.py", package.parent / "sparse.py")
    for source in (*outside, *sorted(package.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def code_digest(kernel: Any) -> str:
    """Return a digest of the code of a kernel and of all functions and constants that it uses.

    The digest covers the instructions of the kernel (compiled or not), those of the functions that
    it calls, and the constants that these functions read. It is the same in every session of one
    Python version.
    """
    digest, seen, left = hashlib.sha256(), dict[FunctionType, int](), [kernel]
    while left:
        value = left.pop()
        value = getattr(getattr(value, "_dispatcher", value), "py_func", value)  # undo numba.njit
        if isinstance(value, tuple):
            digest.update(f"{len(value)} in all;".encode())
            left += value
        elif not isinstance(value, FunctionType):
            digest.update(f"{_written(value)!r};".encode())
        elif value in seen:
            digest.update(f"function {seen[value]};".encode())
        else:
            seen[value] = len(seen)
            steps = _instructions(value.__code__)
            digest.update(repr(steps).encode())
            left += [*(value.__defaults__ or ()), *_read(value, steps)]
    return digest.hexdigest()


@cache
def _instructions(code: CodeType) -> tuple[tuple[str, Any], ...]:
    """Return the instructions of a function and of the functions defined in it."""
    steps: list[tuple[str, Any]] = []
    for step in dis.get_instructions(code):
        if isinstance(step.argval, CodeType):
            steps += _instructions(step.argval)
        elif step.opname != "EXTENDED_ARG":  # a prefix of the next instruction
            steps.append((step.opname, step.argval))
    return tuple(steps)


def _read(function: FunctionType, steps: Iterable[tuple[str, Any]]) -> list[Any]:
    """Return the values that the instructions read from globals, closures and modules."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    found, module = [], None
    for name, argument in steps:
        if name == "LOAD_GLOBAL" and argument in function.__globals__:
            value = function.__globals__[argument]
        elif name == "LOAD_DEREF" and argument in cells:
            value = cells[argument].cell_contents
        elif name in ("LOAD_ATTR", "LOAD_METHOD") and hasattr(module, argument):
            value = getattr(module, argument)
        else:
            module = None
            continue
        module = value if isinstance(value, ModuleType) else None
        if module is None:
            found.append(value)
    return found


def _written(value: Any) -> Any:
    """Return a representation of a constant that is the same in every session.

    The `repr` of an array is abbreviated, and that of a NumPy number depends on the print options,
    so both are represented by their bytes. The `repr` of some objects contains an address; such
    objects are represented by their type.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value).__qualname__ if " at 0x" in repr(value) else value
