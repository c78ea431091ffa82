"""How fast the loop is: nanoseconds a step, beside plain Python and the same loop in C.

All are timed in one process on the same runs, in turn, so that what else the machine does meets
all alike; each number is the smallest processor time of several repetitions. The compiled loop is
timed with its exact evaluations and without: the difference is their share. The twin in C
(``twin.c``) makes no evaluations, and is compared with the loop that makes none. It is compiled in
each of `WAYS`, and the fastest counts; each must end with the same parameters to the last bit, or
the comparison is refused. `FUSED` lets the compiler round products and sums together; bits then
differ, and what is asked instead is that parameters agree to 1e-9 after the first 1000 steps.
"""

from __future__ import annotations

import ctypes
import math
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pu_lib import domains
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.options import PRESETS, SCHEMES, configured
from pu_lib.experiments.problem import Problem, make_problem
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.speeds import Timing
from pu_lib.experiments.sweep import compiled_updates
from pu_lib.kernels import Kernel
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update

__all__ = [
    "FUSED",
    "PLAIN_STEPS",
    "REPETITIONS",
    "STEPS",
    "WAYS",
    "as_text",
    "bench",
    "build_twin",
    "has_twin",
    "out_of_reach",
    "run_twin",
]

TWIN = Path(__file__).with_name("twin.c")
ETA = 1.0
SCHEME = SCHEMES["HiOffPol"]

_SAME_BITS = ("-ffp-contract=off", "-fno-math-errno")
_SCALARS = "-fno-tree-slp-vectorize"

WAYS: tuple[tuple[str, ...], ...] = tuple(
    (*level, *_SAME_BITS, f"-DBRANCH={branch}")
    for level in (("-O2",), ("-O3",), ("-O3", _SCALARS))
    for branch in (0, 1)
)
"""Options with which gcc compiles the twin, besides -march=native."""

FUSED = ("-O3", _SCALARS, "-ffp-contract=fast", "-fno-math-errno", "-DBRANCH=1")
"""Options under which products and sums may be rounded together."""

STEPS, PLAIN_STEPS, REPETITIONS = 300_000, 2_000, 25
"""Steps of a compiled run and of a plain one; runs of which the fastest counts."""


@lru_cache(maxsize=1)
def _domains() -> dict[str, tuple[FiniteMDP, Problem]]:
    random, chain, cliff = domains.random_mdp(0), domains.chain(10), domains.cliff(7)
    return {
        "random-mdp": (random, make_problem(random, 0.95)),
        "chain": (chain, make_problem(chain, 0.5, "first")),
        "cliff": (cliff, make_problem(cliff, 0.5, "first")),
    }


def bench(
    steps: int = STEPS, plain_steps: int = PLAIN_STEPS, repetitions: int = REPETITIONS
) -> Iterator[Timing]:
    """Time every domain and update.

    Parameters
    ----------
    steps : int
        Steps of a compiled run; its threshold is out of reach.
    plain_steps : int
        Steps of a run in plain Python.
    repetitions : int
        Runs of which the fastest counts.

    Yields
    ------
    Timing
        One for each domain and each update that has a kernel; PG-ES is the paper's program.
    """
    for name, (mdp, problem) in _domains().items():
        problem = out_of_reach(problem)
        for update in compiled_updates():
            yield _time(name, mdp, problem, update, steps, plain_steps, repetitions)


def out_of_reach(problem: Problem) -> Problem:
    """Put the threshold just out of reach, so that evaluations cost what they usually do.

    Parameters
    ----------
    problem : Problem
        Any problem with a positive optimal performance.

    Returns
    -------
    Problem
        The same process, with a threshold just above its optimal performance.
    """
    return replace(problem, threshold=problem.optimal_performance * (1.0 + 1e-9))


def _time(
    name: str,
    mdp: FiniteMDP,
    problem: Problem,
    update: str,
    steps: int,
    plain_steps: int,
    repetitions: int,
) -> Timing:
    seeds, memory = seed_state(0, name, 0), RunBuffers()
    far = replace(problem, threshold=math.inf)

    def compiled(checked: Problem) -> None:
        simulate(checked, update, ETA, SCHEME, seeds, max_steps=steps, memory=memory)

    def plain() -> None:
        run_reference(
            mdp,
            problem.threshold,
            update,
            ETA,
            SCHEME,
            seeds,
            max_steps=plain_steps,
            first_gap=25 if problem.acyclic else 100,
        )

    compiled(problem)
    actions = [lambda: compiled(problem), lambda: compiled(far)]
    with tempfile.TemporaryDirectory() as directory:
        twins = _twins(problem, update, seeds, steps, memory, Path(directory))
        with_checks, without, *c = _fastest([*actions, *twins.values()], repetitions, steps)
    *same_bits, fused = c or [math.nan, math.nan]
    return Timing(
        domain=name,
        update=update,
        compiled=with_checks,
        alone=without,
        c=min(same_bits),
        way=[*twins, ()][int(np.argmin(same_bits))],
        fused=fused,
        plain=_fastest([plain], max(1, repetitions // 2), plain_steps)[0],
    )


def _fastest(actions: list[Callable[[], None]], repetitions: int, steps: int) -> list[float]:
    """Return the smallest processor time of each action, taken in turn, in nanoseconds a step."""
    times = np.empty((repetitions, len(actions)))
    for again in times:
        for i, action in enumerate(actions):
            start = time.thread_time_ns()
            action()
            again[i] = time.thread_time_ns() - start
    return [float(least) for least in times.min(axis=0) / steps]


def _twins(
    problem: Problem,
    update: str,
    seeds: NDArray[np.uint64],
    steps: int,
    ours: RunBuffers,
    directory: Path,
) -> dict[tuple[str, ...], Callable[[], None]]:
    """Return the runs of the twin in each way, after checking that each ends where it must."""
    if shutil.which("gcc") is None or not has_twin(configured(update, PRESETS["paper"])):
        return {}
    early = RunBuffers()
    simulate(problem, update, ETA, SCHEME, seeds, max_steps=1000, memory=early)
    twins: dict[tuple[str, ...], Callable[[], None]] = {}
    for way in (*WAYS, FUSED):
        run, memory = build_twin(problem, update, directory, way), RunBuffers()

        def twin(run: Callable[..., int] = run, memory: RunBuffers = memory) -> None:
            memory.prepare(problem, update, PRESETS["paper"], steps)
            run(*_c_arguments(problem, memory, seeds, steps))

        twin()
        agrees = (
            np.allclose(run_twin(run, problem, update, seeds, 1000).theta, early.theta, 1e-9, 1e-12)
            if way == FUSED
            else np.array_equal(memory.theta, ours.theta)
        )
        if not agrees:
            raise RuntimeError(f"twin.c: {update} ends at other parameters than the compiled loop.")
        twins[way] = twin
    return twins


def has_twin(update: Update) -> bool:
    """Return whether the update is one of those written in C.

    Parameters
    ----------
    update : Update
        An update with its settings.

    Returns
    -------
    bool
        True if C code of its kernel exists, with these settings.
    """
    source = TWIN.read_text(encoding="utf-8")
    return re.search(rf"\bKERNEL_{_kernel_name(update)}\b", source) is not None


def _kernel_name(update: Update) -> str:
    kernel: Kernel | None = update.kernel
    return "" if kernel is None else kernel.__name__


def build_twin(
    problem: Problem, update: str, directory: Path, way: tuple[str, ...] = WAYS[-1]
) -> Callable[..., int]:
    """Compile the twin in C for a problem and an update, and return its function `run`.

    Parameters
    ----------
    problem : Problem
        The process; its numbers of actions and successors are compiled in.
    update : str
        Name of an update that `has_twin`.
    directory : Path
        Where the library is written.
    way : tuple of str
        Options of gcc.

    Returns
    -------
    callable
        The compiled function, for `run_twin`.
    """
    chosen = configured(update, PRESETS["paper"])
    name = "".join(option[1:] for option in way)
    library = (
        directory / f"{_kernel_name(chosen)}-{problem.n_actions}-{problem.n_successors}-{name}.so"
    )
    code = "uint16_t" if problem.code_type is np.uint16 else "uint32_t"
    subprocess.run(
        [
            "gcc", *way, "-march=native", "-shared", "-fPIC",
            f"-DKERNEL_{_kernel_name(chosen)}", f"-DPOLICY_{chosen.parametrization}",
            f"-DA={problem.n_actions}", f"-DK={problem.n_successors}", f"-DCODE={code}",
            str(TWIN), "-o", str(library), "-lm",
        ],
        check=True,
    )  # fmt: skip
    run = ctypes.CDLL(str(library)).run
    run.restype = ctypes.c_int64
    return run


def run_twin(
    run: Callable[..., int],
    problem: Problem,
    update: str,
    seeds: NDArray[np.uint64],
    steps: int,
) -> RunBuffers:
    """Run the twin and return the memory it ends with.

    Parameters
    ----------
    run : callable
        What `build_twin` returned for the problem and the update.
    problem : Problem
        The process.
    update : str
        The update's name.
    seeds : ndarray of uint64, shape (4,)
        Start of the random stream.
    steps : int
        Length of the run.

    Returns
    -------
    RunBuffers
        The final state of the run.
    """
    memory = RunBuffers()
    memory.prepare(problem, update, PRESETS["paper"], steps)
    run(*_c_arguments(problem, memory, seeds, steps))
    return memory


def _c_arguments(
    problem: Problem,
    memory: RunBuffers,
    seeds: NDArray[np.uint64],
    steps: int,
) -> list[object]:
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
        ctypes.c_int64(PRESETS["paper"].cut),
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


def as_text(timings: Iterator[Timing]) -> Iterator[str]:
    """Yield the lines of the table as they are measured."""
    yield (
        f"{'domain':<12}{'update':<19}{'ns a step':>10}{'checks':>8}{'in C':>8}{'ratio':>7}"
        f"{'fused C':>9}{'plain Python':>14}{'times faster':>14}  fastest C"
    )
    for timing in timings:
        yield (
            f"{timing.domain:<12}{timing.update:<19}{timing.compiled:>10.1f}{timing.checks:>8.0%}"
            f"{timing.c:>8.1f}{timing.ratio:>7.2f}{timing.fused:>9.1f}"
            f"{timing.plain:>14,.0f}{timing.plain / timing.compiled:>14.0f}  {' '.join(timing.way)}"
        )
