"""The loop of the experiments in C (``c_reference.c``), compiled by gcc and called from Python.

It is an independent implementation for the tests and the baseline for the timings of ``bench.py``.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pu_lib.experiments.jekyll_hyde import RunBuffers
from pu_lib.experiments.options import OPTIONS, SCHEMES, configured
from pu_lib.experiments.problem import Problem
from pu_lib.kernels import Kernel
from pu_lib.updates import Update

SOURCE = Path(__file__).with_name("c_reference.c")
ETA = 1.0
SCHEME = SCHEMES["HiOffPol"]

_SAME_BITS = ("-ffp-contract=off", "-fno-math-errno")
_SCALARS = "-fno-tree-slp-vectorize"

FLAGS: tuple[tuple[str, ...], ...] = tuple(
    (*level, *_SAME_BITS, f"-DBRANCH={branch}")
    for level in (("-O2",), ("-O3",), ("-O3", _SCALARS))
    for branch in (0, 1)
)
"""gcc flags, besides -march=native, with which results must equal the engine's bit for bit."""

FUSED = ("-O3", _SCALARS, "-ffp-contract=fast", "-fno-math-errno", "-DBRANCH=1")
"""gcc flags that allow fused multiply-add, which rounds once instead of twice."""


def is_in_c(update: Update) -> bool:
    """Return whether the C source implements the update's kernel."""
    source = SOURCE.read_text(encoding="utf-8")
    return re.search(rf"\bKERNEL_{_kernel_name(update)}\b", source) is not None


def _kernel_name(update: Update) -> str:
    kernel: Kernel | None = update.kernel
    return "" if kernel is None else kernel.__name__


def defines(problem: Problem, update: str) -> list[str]:
    """Return the -D options that compile the C source for a problem and an update."""
    chosen = configured(update, OPTIONS["paper"])
    code = "uint16_t" if problem.code_type is np.uint16 else "uint32_t"
    return [
        f"-DKERNEL_{_kernel_name(chosen)}", f"-DPOLICY_{chosen.parametrization}",
        f"-DA={problem.n_actions}", f"-DK={problem.n_successors}", f"-DCODE={code}",
    ]  # fmt: skip


def build(
    problem: Problem, update: str, directory: Path, flags: tuple[str, ...] = FLAGS[-1]
) -> Callable[..., int]:
    """Compile the C loop for a problem and an update and return its `run` function."""
    options = [*flags, "-march=native", *defines(problem, update)]
    # Name the file after the options, because the loader reuses an open library of the same name.
    library = directory / f"{''.join(option[1:] for option in options)}.so"
    command = ["gcc", *options, "-shared", "-fPIC", str(SOURCE), "-o", str(library), "-lm"]
    subprocess.run(command, check=True)
    run = ctypes.CDLL(str(library)).run
    run.restype = ctypes.c_int64
    return run


def simulate(
    run: Callable[..., int],
    problem: Problem,
    update: str,
    seeds: NDArray[np.uint64],
    steps: int,
    memory: RunBuffers | None = None,
) -> RunBuffers:
    """Call the function returned by `build` and return the buffers after `steps` steps."""
    memory = RunBuffers() if memory is None else memory
    memory.prepare(problem, update, OPTIONS["paper"], steps)
    run(*arguments(problem, memory, seeds, steps))
    return memory


def arguments(
    problem: Problem, memory: RunBuffers, seeds: NDArray[np.uint64], steps: int
) -> list[object]:
    """Return the arguments of the C function `run` in order."""

    def address(array: np.ndarray[tuple[int, ...], np.dtype[np.generic]]) -> ctypes.c_void_p:
        return ctypes.c_void_p(array.ctypes.data)

    return [
        ctypes.c_int64(steps),
        address(problem.cumulative),
        address(problem.successor),
        address(problem.reward),
        address(problem.terminal),
        ctypes.c_double(ETA),
        ctypes.c_double(problem.discount),
        ctypes.c_int(1),
        ctypes.c_double(SCHEME.off_policy.c),
        ctypes.c_int(SCHEME.off_policy.alpha > 0.0),
        ctypes.c_double(SCHEME.epsilon.c),
        ctypes.c_int64(OPTIONS["paper"].cut),
        address(seeds),
        address(memory.theta),
        address(memory.exponent),
        address(memory.pi),
        address(memory.running),
        address(memory.q),
        address(memory.hyde),
        address(memory.visits),
        address(memory.bonus),
        address(memory.buffer),
        ctypes.c_int64(int(problem.starts[0])),
    ]
