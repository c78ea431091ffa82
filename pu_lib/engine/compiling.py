"""How functions are compiled, and how compiled code on disk is kept up to date.

Numba keeps compiled code beside the source and throws it away when the time stamp of *that* file
changes, whatever the function calls in others. Here the stamp is a digest of every file the
compiled code is made from, so that it can be spread over modules; a changed kernel, or an older
version checked out again, is never answered with code of another.
"""

from __future__ import annotations

import dis
import gc
import hashlib
import secrets
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event

__all__ = ["allocating", "code_of", "compiled", "fresh", "fresh_allocating", "inlined"]

_F = TypeVar("_F", bound=Callable[..., Any])
# No product is fused with a sum and no sum is reordered: `fastmath` stays off. Arrays belong to
# the caller for as long as compiled code runs: to count the references to them, which numba does
# with atomic operations at every use in a group or as a row, makes the loop five times slower.
# What C would call is not made, nor what Python would call for a function that is compiled into
# others only: a tenth of the time it takes to compile the loop.
_OPTIONS: dict[str, Any] = {
    "nogil": True, "error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True,
}  # fmt: skip

_ALLOCATING = {**_OPTIONS, "_nrt": True}

INLINED: Any = {"forceinline": True, "no_cpython_wrapper": True, **_OPTIONS}
"""How a function is compiled into those that call it."""

inlined = cast(Callable[[_F], _F], numba.njit(**INLINED))
"""Compile a function into those that call it, whatever its size; Python must not call it."""

fresh = cast(Callable[[_F], _F], numba.njit(**_OPTIONS))
"""Compile a function in memory: it calls what may change from one session to the next."""

fresh_allocating = cast(Callable[[_F], _F], numba.njit(**_ALLOCATING))
"""Do the same for a function that makes arrays of its own."""


def compiled(function: _F) -> _F:
    """Compile a function, and keep its code on disk until a source of the engine changes."""
    return cast(_F, _stamped(numba.njit(cache=True, **_OPTIONS)(function)))


def allocating(function: _F) -> _F:
    """Do the same for a function that makes arrays of its own."""
    return cast(_F, _stamped(numba.njit(cache=True, **_ALLOCATING)(function)))


def _stamped(dispatcher: Any) -> Any:
    files = dispatcher._cache._cache_file
    files._source_stamp = _digest()
    # Numba numbers the files of a function. Two processes that save at the same time would take the
    # same number, and one of them would be answered with code of the other.
    files._data_name = lambda _: f"{dispatcher.__name__}-{secrets.token_hex(8)}.nbc"
    return dispatcher


class _SeldomGarbage(event.Listener):
    """Have garbage looked for less often while numba compiles: it takes a tenth of the time.

    Numba tells of what it compiles under its lock, one thread at a time.
    """

    def __init__(self) -> None:
        self._before: list[tuple[int, int, int]] = []

    def on_start(self, event: Any) -> None:
        self._before.append(gc.get_threshold())
        first, *others = self._before[-1]
        gc.set_threshold(first and max(first, 20_000), *others)  # 0: it is never looked for

    def on_end(self, event: Any) -> None:
        gc.set_threshold(*self._before.pop())


event.register("numba:compile", _SeldomGarbage())  # type: ignore[no-untyped-call]


@cache
def _digest() -> str:
    """Return a digest of the sources of all compiled code."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in (package.parent / "kernels.py", *sorted(package.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def code_of(kernel: Any) -> str:
    """Return a name for what a kernel computes.

    Parameters
    ----------
    kernel : callable
        The kernel, compiled by numba or not.

    Returns
    -------
    str
        A digest of its instructions, of those of the functions it calls, and of the constants that
        they read; the same in any session of one version of Python.
    """
    digest, seen, left = hashlib.sha256(), dict[FunctionType, int](), [kernel]
    while left:
        value = left.pop()
        value = getattr(getattr(value, "_dispatcher", value), "py_func", value)  # numba's
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
    """Return the instructions of a function and of those defined in it."""
    steps: list[tuple[str, Any]] = []
    for step in dis.get_instructions(code):
        if isinstance(step.argval, CodeType):
            steps += _instructions(step.argval)
        elif step.opname != "EXTENDED_ARG":  # a part of the next one
            steps.append((step.opname, step.argval))
    return tuple(steps)


def _read(function: FunctionType, steps: Iterable[tuple[str, Any]]) -> list[Any]:
    """Return what instructions read that is not the function's own, through modules if need be."""
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
    """Return what tells a constant from others in any session: no address, and no dots."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value).__qualname__ if " at 0x" in repr(value) else value
