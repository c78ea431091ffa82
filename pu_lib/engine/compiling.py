"""How functions are compiled, and how compiled code on disk is kept up to date.

Numba keeps compiled code beside the source and throws it away when the time stamp of *that* file
changes, whatever the function calls in others. Here the stamp is a digest of every file the
compiled code is made from, so that it can be spread over modules; a changed kernel, or an older
version checked out again, is never answered with code of another.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

__all__ = ["allocating", "compiled", "fresh", "fresh_allocating", "inlined"]

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


@cache
def _digest() -> str:
    """Return a digest of the sources of all compiled code."""
    package = Path(__file__).parent
    digest = hashlib.sha256()
    for source in (package.parent / "kernels.py", *sorted(package.glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()
