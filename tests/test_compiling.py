"""Compiled code on disk is used only if no source has changed."""

import gc
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from numba.core import event

import pu_lib
from pu_lib.compiling import compiled, compiled_in_memory

MODULE = """
from pu_lib.compiling import compiled
from pu_lib.engine.rows import advance

@compiled
def step(update, theta, pi, q):
    advance(update, theta, pi, q, 0, 1.0, 2)
"""

PROGRAM = """
import numpy as np
from module import step
from pu_lib.engine.rows import static_kernel
from pu_lib.kernels import pg_sm
theta = np.zeros(2)
step(static_kernel(pg_sm), theta, np.full(2, 0.5), np.array([1.0, 0.0]))
print(theta[0], sum(step.stats.cache_hits.values()))
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """Copy the package without compiled code and add a module that compiles a kernel."""
    here = Path(pu_lib.__file__).parent
    shutil.copytree(here, tmp_path / "pu_lib", ignore=shutil.ignore_patterns("__pycache__", "data"))
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


def run_program(folder: Path, **variables: str) -> tuple[float, int]:
    """Take a step of PG-SM in a new interpreter and return a parameter and the cache hits."""
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    theta, hits = done.stdout.split()
    return float(theta), int(hits)


READ_ONLY = """
import warnings
from numba.core import caching

def refuse(self):
    raise PermissionError(13, "Permission denied")

caching._CacheLocator.ensure_cache_path = refuse  # as on a read-only disk without a home
with warnings.catch_warnings(record=True) as warned:
    exec(program)
assert {str(each.message) for each in warned} == {
    "The compiled code of pu_lib cannot be kept on disk, so every session compiles it again. "
    "To keep it, set NUMBA_CACHE_DIR to a folder that you may write to."
}, warned
"""


def test_code_is_compiled_in_memory_if_no_folder_can_be_written(copied: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(copied)}
    done = subprocess.run(
        [sys.executable, "-c", f"program = {PROGRAM!r}\n{READ_ONLY}"],
        env=environment, cwd=copied, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"{run_program(copied)[0]} 0\n"


def test_concurrent_processes_do_not_mix_cached_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (compiled(lambda x: x)._cache._cache_file for _ in range(2))
    for files in (first, second):
        files._cache_path, files._index_path = str(tmp_path), str(tmp_path / files._index_name)
    late: list[tuple[str, str]] = []
    with monkeypatch.context() as held:
        held.setattr(first, "_save_data", lambda *arguments: late.append(arguments))
        held.setattr(second, "_load_index", dict)  # read before the first wrote it
        first.save("one", "the code of one")
        second.save("two", "the code of two")
    first._save_data(*late[0])
    assert second.load("two") == "the code of two"
    assert first.load("one") in (None, "the code of one")


def add_one(x: float) -> float:
    return x + 1.0


def kept_in(folder: Path) -> Any:
    """Return `add_one` as a compiled function whose code is cached in a folder."""
    function: Any = compiled(add_one)
    files = function._cache._cache_file
    files._cache_path, files._index_path = str(folder), str(folder / files._index_name)
    return function


def hits(folder: Path) -> int:
    """Call a new instance of the function and return the number of cache hits in the folder."""
    function = kept_in(folder)
    assert function(1.0) == 2.0
    return sum(function.stats.cache_hits.values())


def flip(place: float, content: bytes) -> bytes:
    """Flip a bit of the byte at a relative position in [0, 1)."""
    changed = bytearray(content)
    changed[int(place * len(content))] ^= 1
    return bytes(changed)


DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda content: b"",
    "cut to 50 bytes": lambda content: content[:50],
    "cut to 100 bytes": lambda content: content[:100],
    "last byte missing": lambda content: content[:-1],
    "junk": lambda content: b"\xb9" * 1000,
    "zeros at the end": lambda content: content[:200] + bytes(len(content) - 200),
    **{f"bit at {k}/20": partial(flip, k / 20) for k in range(20)},
}


@pytest.mark.parametrize("kind", ["nbi", "nbc"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_code_is_compiled_again(damage: str, kind: str, tmp_path: Path) -> None:
    assert (hits(tmp_path), hits(tmp_path)) == (0, 1)
    (path,) = tmp_path.glob(f"*.{kind}")
    path.write_bytes(DAMAGES[damage](path.read_bytes()))
    assert (hits(tmp_path), hits(tmp_path)) == (0, 1)


def test_code_that_cannot_be_saved_stays_in_memory(tmp_path: Path) -> None:
    function = kept_in(tmp_path / "removed")
    with pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR to a folder that you may write to"):
        assert function(1.0) == 2.0
    assert function(2.0) == 3.0


def test_functions_are_compiled_although_the_jit_is_disabled(copied: Path) -> None:
    assert run_program(copied, NUMBA_DISABLE_JIT="1") == (0.25, 0)
    assert run_program(copied, NUMBA_DISABLE_JIT="1") == (0.25, 1)
    assert run_program(copied) == (0.25, 1)


def test_code_of_other_settings_is_not_used(copied: Path) -> None:
    assert run_program(copied, NUMBA_OPT="0") == (0.25, 0)
    assert run_program(copied) == (0.25, 0)


def test_changed_kernel_is_recompiled(copied: Path) -> None:
    assert run_program(copied) == (0.25, 0)
    assert run_program(copied) == (0.25, 1)
    # Change a file different from that of the compiled function, and keep its time stamp.
    source = copied / "pu_lib" / "kernels.py"
    times = source.stat()
    text = source.read_text(encoding="utf-8")
    step = "theta[a] += weight * pi[a]"
    assert text.count(step) == 1
    source.write_text(text.replace(step, "theta[a] += 3 * weight * pi[a]"), "utf-8")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert run_program(copied) == (0.75, 0)
    source.write_text(text, encoding="utf-8")
    assert run_program(copied) == (0.25, 0)


@pytest.mark.parametrize(("usual", "compiling"), [(700, 20_000), (30_000, 30_000), (0, 0)])
def test_garbage_is_collected_less_often_during_compilation(usual: int, compiling: int) -> None:
    seen = []

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            seen.append(gc.get_threshold())

        def on_end(self, event: Any) -> None:
            pass

    before = gc.get_threshold()
    gc.set_threshold(usual, 9, 8)
    try:
        with event.install_listener("numba:compile", Listener()):
            assert compiled_in_memory(lambda x: x + 1)(1.0) == 2.0
        assert seen == [(compiling, 9, 8)]
        assert gc.get_threshold() == (usual, 9, 8)
    finally:
        gc.set_threshold(*before)
