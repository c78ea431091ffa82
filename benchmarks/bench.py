"""Time the compiled loop against plain Python and C: ``make bench``.

    python -m benchmarks.bench             # print nanoseconds per step for each domain and update
    python -m benchmarks.bench --record    # also write them to the file read by the book

All implementations are timed alternately in one process on the same runs, so that other load on
the machine affects all of them equally. Each number is the smallest CPU time of several
repetitions. The compiled loop is timed with and without its exact evaluations, which the C loop
does not perform. The C loop is compiled with each set of `FLAGS`, and the fastest time is reported;
the final parameters must equal those of the compiled loop bit for bit. With `FUSED`, the parameters
must agree to 1e-9 after 1000 steps.
"""

from __future__ import annotations

import argparse
import json
import math
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import lru_cache
from importlib import metadata
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks import c_reference
from benchmarks.c_reference import ETA, FLAGS, FUSED, SCHEME
from pu_lib import domains
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.options import OPTIONS, configured
from pu_lib.experiments.problem import Problem, make_problem
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.speeds import PATH, Speeds, Timing, sources
from pu_lib.experiments.sweep import compiled_updates
from pu_lib.files import replace_file
from pu_lib.mdp import FiniteMDP

STEPS, PLAIN_STEPS, REPETITIONS = 300_000, 2_000, 25
"""Steps of a compiled run, steps of a run in plain Python, and number of repetitions."""


@lru_cache(maxsize=1)
def processes() -> dict[str, tuple[FiniteMDP, Problem]]:
    """Return the timed MDPs and their problems by name."""
    random, chain, cliff = domains.random_mdp(0), domains.chain(10), domains.cliff(7)
    return {
        "random-mdp": (random, make_problem(random, 0.95)),
        "chain": (chain, make_problem(chain, 0.5, "first")),
        "cliff": (cliff, make_problem(cliff, 0.5, "first")),
    }


def measure(
    steps: int = STEPS, plain_steps: int = PLAIN_STEPS, repetitions: int = REPETITIONS
) -> Iterator[Timing]:
    """Yield a timing for each MDP and each update that has a kernel."""
    for name, (mdp, problem) in processes().items():
        problem = out_of_reach(problem)
        for update in compiled_updates():
            yield _time(name, mdp, problem, update, steps, plain_steps, repetitions)


def out_of_reach(problem: Problem) -> Problem:
    """Return the problem with a threshold just above its optimum, so that no run ends early."""
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
        in_c = _in_c(problem, update, seeds, steps, memory, Path(directory))
        with_checks, without, *c = _fastest([*actions, *in_c.values()], repetitions, steps)
    *same_bits, fused = c or [math.nan, math.nan]
    return Timing(
        domain=name,
        update=update,
        compiled=with_checks,
        alone=without,
        c=min(same_bits),
        way=[*in_c, ()][int(np.argmin(same_bits))],
        fused=fused,
        plain=_fastest([plain], max(1, repetitions // 2), plain_steps)[0],
    )


def _fastest(actions: list[Callable[[], None]], repetitions: int, steps: int) -> list[float]:
    """Return the smallest CPU time of each action in nanoseconds per step.

    The actions alternate, so that other load on the machine affects all of them equally.
    """
    times = np.empty((repetitions, len(actions)))
    for again in times:
        for i, action in enumerate(actions):
            start = time.thread_time_ns()
            action()
            again[i] = time.thread_time_ns() - start
    return [float(least) for least in times.min(axis=0) / steps]


def _in_c(
    problem: Problem,
    update: str,
    seeds: NDArray[np.uint64],
    steps: int,
    ours: RunBuffers,
    directory: Path,
) -> dict[tuple[str, ...], Callable[[], None]]:
    """Return the run in C for each set of flags; raise an error if its results differ."""
    if shutil.which("gcc") is None or not c_reference.is_in_c(configured(update, OPTIONS["paper"])):
        return {}
    early = RunBuffers()
    simulate(problem, update, ETA, SCHEME, seeds, max_steps=1000, memory=early)
    runs: dict[tuple[str, ...], Callable[[], None]] = {}
    for flags in (*FLAGS, FUSED):
        run, memory = c_reference.build(problem, update, directory, flags), RunBuffers()

        def in_c(run: Callable[..., int] = run, memory: RunBuffers = memory) -> None:
            c_reference.simulate(run, problem, update, seeds, steps, memory)

        in_c()
        if flags == FUSED:
            theta = c_reference.simulate(run, problem, update, seeds, 1000).theta
            agrees = np.allclose(theta, early.theta, 1e-9, 1e-12)
        else:
            agrees = np.array_equal(memory.theta, ours.theta)
        if not agrees:
            raise RuntimeError(
                f"c_reference.c: the parameters of {update} differ from those of the compiled loop "
                f"with the flags {' '.join(flags)}."
            )
        runs[flags] = in_c
    return runs


def as_text(timings: Iterator[Timing]) -> Iterator[str]:
    """Yield the table header and then one line per timing."""
    yield (
        f"{'domain':<12}{'update':<19}{'ns a step':>10}{'checks':>8}{'in C':>8}{'ratio':>7}"
        f"{'fused C':>9}{'plain Python':>14}{'times faster':>14}  fastest C"
    )
    for t in timings:
        checks = max(0.0, 1.0 - t.alone / t.compiled)
        yield (
            f"{t.domain:<12}{t.update:<19}{t.compiled:>10.1f}{checks:>8.0%}{t.c:>8.1f}"
            f"{t.alone / t.c:>7.2f}{t.fused:>9.1f}{t.plain:>14,.0f}"
            f"{t.plain / t.compiled:>14.0f}  {' '.join(t.way)}"
        )


def machine() -> dict[str, str]:
    """Return the processor and the versions of Python, numba and, if installed, gcc."""
    versions = {
        "processor": _processor(),
        "Python": platform.python_version(),
        "numba": metadata.version("numba"),
    }
    if shutil.which("gcc"):
        version = ["gcc", "-dumpfullversion"]
        versions["gcc"] = subprocess.run(version, capture_output=True, text=True, check=True).stdout
    return {name: text.strip() for name, text in versions.items()}


def _processor() -> str:
    """Return the processor name, read from /proc/cpuinfo if this file exists."""
    info = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*:\s*(.+)$", info.read_text(), re.M) if info.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def record(timings: list[Timing], steps: int, path: Path = PATH) -> None:
    """Write the timings, the machine and a digest of the engine's source code to a file."""
    if any(math.isnan(timing.c) for timing in timings):
        raise ValueError("bench: --record needs the C loop; install gcc.")
    speeds = Speeds(machine(), sources(), steps, PLAIN_STEPS, REPETITIONS, tuple(timings))
    replace_file(path, json.dumps(asdict(speeds), indent=1) + "\n")


def main(argv: list[str] | None = None) -> None:
    """Print the table and, if ``--record`` is given, save it."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--steps", type=int, default=STEPS, help="steps of a compiled run")
    parser.add_argument("--record", action="store_true", help="keep the table for the book")
    arguments = parser.parse_args(argv)
    if arguments.steps < 1000:
        parser.error(f"--steps: expected at least 1000, got {arguments.steps}.")
    timings: list[Timing] = []

    def stored() -> Iterator[Timing]:
        for timing in measure(arguments.steps):
            timings.append(timing)
            yield timing

    for line in as_text(stored()):
        print(line, flush=True)
    if arguments.record:
        record(timings, arguments.steps)


if __name__ == "__main__":
    main()
