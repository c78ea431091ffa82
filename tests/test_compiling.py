"""Compiled code on disk follows the sources, whichever of them changes."""

import ctypes
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numba
import numpy as np
import pytest

import pu_lib
from pu_lib.engine import compiling, exact, loop
from pu_lib.engine.compiling import _digest, compiled

MODULE = """
from pu_lib.engine.compiling import compiled
from pu_lib.engine.rows import advance

@compiled
def step(update, theta, pi, q):
    advance(update, theta, pi, q, 0, 1.0, 2)
"""

PROGRAM = """
import numpy as np
from module import step
from pu_lib.engine.rows import token
from pu_lib.kernels import pg_sm
theta = np.zeros(2)
step(token(pg_sm), theta, np.full(2, 0.5), np.array([1.0, 0.0]))
print(theta[0], sum(step.stats.cache_hits.values()))
"""


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of the package without compiled code, and a module that compiles a kernel."""
    here = Path(pu_lib.__file__).parent
    shutil.copytree(here, tmp_path / "pu_lib", ignore=shutil.ignore_patterns("__pycache__", "data"))
    (tmp_path / "module.py").write_text(MODULE, encoding="utf-8")
    return tmp_path


def outcome(folder: Path) -> tuple[float, int]:
    """Take a step of PG-SM in an interpreter of its own; return a parameter and the hits."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=environment, cwd=folder, capture_output=True, text=True, check=True,
    )  # fmt: skip
    theta, hits = done.stdout.split()
    return float(theta), int(hits)


def test_two_processes_that_save_at_once_keep_their_codes_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (compiled(lambda x: x)._cache._cache_file for _ in range(2))
    for files in (first, second):
        files._cache_path, files._index_path = str(tmp_path), str(tmp_path / files._index_name)
    late: list[tuple[str, str]] = []
    with monkeypatch.context() as held:
        held.setattr(first, "_save_data", lambda *given: late.append(given))
        held.setattr(second, "_load_index", dict)  # it has read the index before the first wrote it
        first.save("one", "the code of one")
        second.save("two", "the code of two")
    first._save_data(*late[0])
    assert second.load("two") == "the code of two"
    assert first.load("one") in (None, "the code of one")


@pytest.mark.parametrize("kept", [exact.process_kept, loop.run_kept], ids=["process", "loop"])
def test_the_loops_are_kept_until_a_source_of_the_engine_changes(kept: Any) -> None:
    assert kept._cache._cache_file._source_stamp == _digest()


def test_a_changed_kernel_is_compiled_anew(copied: Path) -> None:
    assert outcome(copied) == (0.25, 0)
    assert outcome(copied) == (0.25, 1)
    # Another file than the one that holds the compiled function, with the same time stamp.
    source = copied / "pu_lib" / "kernels.py"
    times = source.stat()
    text = source.read_text(encoding="utf-8")
    step = "theta[a] += weight * pi[a]"
    assert text.count(step) == 1
    source.write_text(text.replace(step, "theta[a] += 3 * weight * pi[a]"), "utf-8")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    assert outcome(copied) == (0.75, 0)
    source.write_text(text, encoding="utf-8")
    assert outcome(copied) == (0.25, 0)


SCALE, TABLE, ERF = 1.0, np.zeros(5000), ctypes.CDLL(None).abs


def inner(x):
    return SCALE * x


def outer(x):
    return inner(x)


def kernel(theta, pi, q, best, weight, n_actions):
    theta[best] += outer(weight) + TABLE[7] * math.sqrt(theta.size) + (lambda x: x + SCALE)(0.0)


def factory(c):
    def made(theta, pi, q, best, weight, n_actions, c=c):
        theta[best] += c * ERF(weight)

    return made


def test_a_kernel_is_known_by_what_it_computes(monkeypatch):
    """Whatever stands in its file today, and however deep the constant that it reads."""
    code = compiling.code_of(kernel)
    monkeypatch.setattr("inspect.getsource", lambda _: "something else")
    assert compiling.code_of(kernel) == code
    table = TABLE.copy()
    table[7] = 1e-12
    for name, value in (("SCALE", 2.0), ("TABLE", table), ("inner", abs)):
        with monkeypatch.context() as change:
            change.setitem(globals(), name, value)
            assert compiling.code_of(kernel) != code
    assert compiling.code_of(factory(1.0)) == compiling.code_of(factory(1.0))
    assert compiling.code_of(factory(1.0)) != compiling.code_of(factory(2.0))
    assert compiling.code_of(numba.njit(kernel)) == code
    made = {}
    for function in ("sin", "cos"):
        scope = {"math": math}
        exec(f"def k(theta, pi, q, best, weight, n): theta[best] += math.{function}(weight)", scope)
        made[function] = compiling.code_of(scope["k"])
    assert made["sin"] != made["cos"]


def test_the_constants_of_modules_count():
    """Through modules in modules and closures, and no others."""
    module = ModuleType("helpers")
    module.deep = ModuleType("helpers.deep")
    module.deep.rate, module.other = 1.0, 1.0

    def make(helpers):
        def k(theta, pi, q, best, weight, n_actions):
            theta[best] += helpers.deep.rate * weight * theta.size

        return k

    code = compiling.code_of(make(module))
    module.other, globals()["size"] = 2.0, 3.0
    assert compiling.code_of(make(module)) == code
    module.deep.rate = 2.0
    assert compiling.code_of(make(module)) != code


def test_functions_and_numbers_in_a_tuple_count():
    def made(steps):
        def k(theta, pi, q, best, weight, n_actions):
            theta[best] += steps[0](weight) + steps[1] * steps[2]

        return compiling.code_of(k)

    several = (
        (inner, 1, 11), (outer, 1, 11), (inner, 11, 1), (inner, 1, 11, 0), (inner, outer, inner),
        (outer, outer, inner),
    )  # fmt: skip
    assert len({made(steps) for steps in several}) == len(several)
    assert made((inner, 1, 11)) == made((inner, 1, 11))


def test_a_constant_after_hundreds_of_names_counts():
    """What has a large number among the names of a function takes two instructions."""
    scope = {f"g{i}": 0.0 for i in range(300)} | {"m": ModuleType("m")}
    names = " + ".join(name for name in scope if name != "m")
    exec(f"def k(theta, pi, q, best, weight, n):\n    theta[best] += {names} + m.c", scope)
    codes = set()
    for scope["m"].c in (1.0, 2.0):
        codes.add(compiling.code_of(scope["k"]))
    assert len(codes) == 2


def test_words_about_a_kernel_are_not_its_code():
    made = []
    for words in ("one", "another"):
        scope = {}
        text = f"def k(theta, pi, q, best, weight, n):\n    '{words}'\n    theta[best] += weight"
        exec(text, scope)
        made.append(compiling.code_of(scope["k"]))
    assert made[0] == made[1]


def test_functions_that_numba_makes_of_others_count():
    def made(c):
        @numba.vectorize
        def scaled(x):
            return c * x

        return lambda theta, pi, q, best, weight, n: scaled(weight)

    assert compiling.code_of(made(1.0)) == compiling.code_of(made(1.0))
    assert compiling.code_of(made(1.0)) != compiling.code_of(made(2.0))
