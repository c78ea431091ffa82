"""Compilation with numba, and the cache of compiled code on disk.

Numba discards the cached code of a function if the time stamp of the function's own file changes,
but not if another file changes that defines a function it calls. Here the stamp is a digest of all
sources of compiled code. The sources can therefore be spread over modules, and cached code always
belongs to the current kernels, even after an older version is checked out.

Numba keeps the code in ``__pycache__`` beside the source, or else in the user's cache folder, or in
the folder that the variable NUMBA_CACHE_DIR names. If none of them can be written, the code is
compiled in memory, with a warning. A damaged file is replaced.

The library compiles its functions even if NUMBA_DISABLE_JIT is set, because some of them are
written in LLVM's instructions, and the others would be thousands of times slower.
"""

from __future__ import annotations

import dis
import gc
import hashlib
import pickle
import secrets
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast

import numba
import numpy as np
from numba.core import event
from numba.core.caching import IndexDataCacheFile

from pu_lib.progress import note

_F = TypeVar("_F", bound=Callable[..., Any])
_config: Any = numba.config
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
_DIGEST = 32  # bytes of a digest
# Settings by environment variables that change machine code, but not numba's key of cached code.
_COMPILING = ("OPT", "BOUNDSCHECK", "DEBUGINFO_DEFAULT", "LOOP_VECTORIZE", "SLP_VECTORIZE")

INLINED: Any = {"forceinline": True, "no_cpython_wrapper": True, **_OPTIONS}
"""Options of a function that is compiled into its callers."""


@contextmanager
def _jit_enabled() -> Iterator[None]:
    """Compile although NUMBA_DISABLE_JIT is set."""
    disabled, _config.DISABLE_JIT = _config.DISABLE_JIT, 0
    try:
        yield
    finally:
        _config.DISABLE_JIT = disabled


def jitted(function: Callable[..., Any], **options: Any) -> Any:
    """Return ``numba.njit(**options)(function)``, also if NUMBA_DISABLE_JIT is set."""
    with _jit_enabled():
        return numba.njit(**options)(function)


def inlined(function: _F) -> _F:
    """Compile a function of any size into its callers; Python cannot call it."""
    return cast(_F, jitted(function, **INLINED))


def inlined_by_numba(function: _F) -> _F:
    """Put a function's code into its callers before they are compiled.

    A function with one caller then takes no time of its own in the compiler.
    """
    return cast(_F, jitted(function, inline="always"))


def compiled_in_memory(function: _F) -> _F:
    """Compile a function in memory; used if it calls kernels that can change between sessions."""
    return cast(_F, jitted(function, **_OPTIONS))


def allocating_in_memory(function: _F) -> _F:
    """Compile in memory a function that creates arrays."""
    return cast(_F, jitted(function, **_ALLOCATING))


def compiled(function: _F) -> _F:
    """Compile a function and cache its code on disk until a source of compiled code changes."""
    return cast(_F, _cached(jitted(function, **_OPTIONS)))


def allocating(function: _F) -> _F:
    """Compile a function that creates arrays, and cache its code as `compiled` does."""
    return cast(_F, _cached(jitted(function, **_ALLOCATING)))


def _cached(dispatcher: Any) -> Any:
    """Turn on a dispatcher's cache, replace its files, and return the dispatcher.

    If no folder for the cache can be written, the code is compiled in memory.
    """
    try:
        dispatcher.enable_caching()
    except RuntimeError as error:
        if "no locator available" not in str(error):
            raise
        _warn_of_memory()
        return dispatcher
    numba_cache, files = dispatcher._cache, cast(Any, _CacheFiles)
    # Another name than numba's, because numba could not read the files.
    name = f"{numba_cache._impl.filename_base}.sha256"
    numba_cache._cache_file = files(numba_cache._cache_path, name, _source_digest())
    return dispatcher


def _warn_of_memory() -> None:
    warnings.warn(
        "The compiled code of pu_lib cannot be kept on disk, so every session compiles it "
        "again. To keep it, set NUMBA_CACHE_DIR to a folder that you may write to.",
        stacklevel=4,
    )


class _CacheFiles(IndexDataCacheFile):
    """The files with the compiled code of a function: an index, and a file for each signature.

    Each begins with a digest of numba's version, the stamp and the content. A file with another
    digest is damaged or of another version: the code is compiled again and replaces the file. If
    the file cannot be written, as on a full disk, the code stays in memory.
    """

    def save(self, key: Any, data: Any) -> None:
        try:
            super().save(key, data)  # type: ignore[no-untyped-call]
        except OSError:
            _warn_of_memory()

    def _data_name(self, number: int) -> str:
        # Numba numbers the files of a function. Two processes that save at the same time could use
        # the same number, and one of them would later load the code of the other.
        return f"{Path(self._index_name).stem}-{secrets.token_hex(8)}.nbc"

    def _load_index(self) -> Any:
        try:
            return self._read(self._index_path)
        except OSError:
            return {}

    def _save_index(self, overloads: Any) -> None:
        self._write(self._index_path, overloads)

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))  # type: ignore[no-untyped-call]

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)  # type: ignore[no-untyped-call]

    def _read(self, path: str) -> Any:
        """Return the content of a file; raise an `OSError`, as for a missing file, if damaged."""
        content = Path(path).read_bytes()
        digest = self._digest(content[_DIGEST:])
        if content[:_DIGEST] != digest:
            raise OSError(f"{path} is damaged or of another version")
        return pickle.loads(content[_DIGEST:])

    def _write(self, path: str, content: Any) -> None:
        data = self._dump(content)  # type: ignore[no-untyped-call]
        with self._open_for_write(path) as file:
            file.write(self._digest(data) + data)

    def _digest(self, data: bytes) -> bytes:
        stamp = f"{self._version} {self._source_stamp} "
        return hashlib.sha256(stamp.encode() + data).digest()


class _RarerCollection(event.Listener):
    """Collect garbage less often while numba compiles, which saves a tenth of the compile time.

    The first time that a function of the library is compiled, a line says so.

    Numba sends these events under its lock, so only one thread at a time runs this code.
    """

    def __init__(self) -> None:
        self._before: list[tuple[int, int, int]] = []
        self._disabled: list[int] = []
        self._told = False

    def on_start(self, event: Any) -> None:
        if not self._told and event.data["dispatcher"].py_func.__module__.startswith("pu_lib."):
            self._told = True
            note("Compiling with numba, which takes up to a minute the first time.")
        self._disabled.append(_config.DISABLE_JIT)
        _config.DISABLE_JIT = 0  # numba compiles parts of its own while it compiles
        self._before.append(gc.get_threshold())
        first, *others = self._before[-1]
        gc.set_threshold(first and max(first, 20_000), *others)  # 0 disables it

    def on_end(self, event: Any) -> None:
        gc.set_threshold(*self._before.pop())
        _config.DISABLE_JIT = self._disabled.pop()


event.register("numba:compile", _RarerCollection())  # type: ignore[no-untyped-call]


@cache
def _source_digest() -> str:
    """Return a digest of the sources of all compiled code, and of numba's settings."""
    package = Path(__file__).parent
    digest = hashlib.sha256(repr([getattr(_config, name) for name in _COMPILING]).encode())
    beside = (package / f"{name}.py" for name in ("compiling", "kernels", "sparse"))
    for source in (*beside, *sorted((package / "engine").glob("*.py"))):
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
    values, module = [], None
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
            values.append(value)
    return values


def _written(value: Any) -> Any:
    """Return a representation of a constant that is the same in every session.

    The `repr` of an array is abbreviated, and that of a NumPy number depends on the print options,
    so both are represented by their bytes. The `repr` of some objects contains an address; such
    objects are represented by their type.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.str, value.shape, value.tobytes()
    return type(value).__qualname__ if " at 0x" in repr(value) else value
