"""Measure the time and memory of exact solvers for large sparse MDPs.

    make bench-sparse

The script accepts options such as `--states 2500 40000`, `--repeats 5` and `--largest 1000000`.

The methods are timed alternately in one process with one BLAS thread. The table gives median times
and their ratios to the time of QuantEcon's modified policy iteration (epsilon 1e-6) or of SciPy's
BiCGSTAB (rtol 1e-13), both of which are less accurate. The time per step of a race excludes
evaluations; its ratio is to the time with 100 states. Peak memory is measured in a separate process
that loads the MDP from a file and calls the method (on Linux). The book shows the recorded table.
"""

# ruff: noqa: E402 - threads are limited before NumPy is imported

from __future__ import annotations

import os

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # read when NumPy is imported

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from pu_lib import FiniteMDP, sparse
from pu_lib.drawing.sparse import PATH
from pu_lib.experiments import jekyll_hyde
from pu_lib.experiments.options import SCHEMES
from pu_lib.experiments.problem import make_problem
from pu_lib.files import replace_file

DISCOUNT = 0.99
QUANTECON = "QuantEcon, modified policy iteration"
SCIPY = "SciPy, BiCGSTAB"
OPTIMUM = (QUANTECON, "optimal", "bounds")
EVALUATION = (SCIPY, "evaluate", "visits")
STEP = "step of a race"
STEPS = 200_000, 1_200_000  # lengths of two runs; their time difference excludes evaluations
Process = tuple[scipy.sparse.csr_array, np.ndarray]
Methods = dict[str, Callable[[], Any]]
Row = dict[str, Any]


def slippery_grid(n_states: int) -> Process:
    """Return a square grid with four moves that slip left and right with probability 0.1 each.

    State rewards are drawn uniformly from [0, 1); the last corner is terminal.
    """
    side = int(n_states**0.5)
    s = np.arange(side * side)
    x, y = s % side, s // side
    after = [
        np.clip(y + dy, 0, side - 1) * side + np.clip(x + dx, 0, side - 1)
        for dx, dy in ((1, 0), (0, 1), (-1, 0), (0, -1))
    ]
    rows, columns, data = [], [], []
    for a in range(4):
        for turn, chance in ((0, 0.8), (1, 0.1), (3, 0.1)):
            rows.append(4 * s[:-1] + a)
            columns.append(after[(a + turn) % 4][:-1])
            data.append(np.full(len(s) - 1, chance))
    matrix = scipy.sparse.csr_array(
        (np.concatenate(data), (np.concatenate(rows), np.concatenate(columns))),
        shape=(4 * len(s), len(s)),
    )
    matrix.sum_duplicates()
    rewards = np.repeat(np.random.default_rng(0).uniform(size=(len(s), 1)), 4, axis=1)
    rewards[-1] = 0.0
    return matrix, rewards


def garnet(n_states: int) -> Process:
    """Return an MDP with four actions per state and five random successors per action."""
    rng = np.random.default_rng(0)
    columns = rng.integers(n_states, size=n_states * 20)
    data = rng.dirichlet(np.ones(5), size=n_states * 4).ravel()
    rows = np.repeat(np.arange(n_states * 4), 5)
    matrix = scipy.sparse.csr_array((data, (rows, columns)), shape=(n_states * 4, n_states))
    matrix.sum_duplicates()
    return matrix, rng.uniform(size=(n_states, 4))


PROCESSES: dict[str, Callable[[int], Process]] = {"grid": slippery_grid, "garnet": garnet}


def quantecon_problem(matrix: scipy.sparse.csr_array, rewards: np.ndarray) -> Any:
    """Return the MDP as a QuantEcon problem with self-loops at terminal states."""
    from quantecon.markov import DiscreteDP

    n, n_actions = rewards.shape
    ends = np.flatnonzero(np.diff(matrix.indptr) == 0)
    loops = scipy.sparse.csr_array(
        (np.ones(len(ends)), (ends, ends // n_actions)), shape=matrix.shape
    )
    return DiscreteDP(
        rewards.ravel(),
        scipy.sparse.csr_matrix(matrix + loops),
        DISCOUNT,
        np.repeat(np.arange(n), n_actions),
        np.tile(np.arange(n_actions), n),
    )


def finite_mdp(matrix: scipy.sparse.csr_array, rewards: np.ndarray) -> FiniteMDP:
    """Return the MDP as a `FiniteMDP` that starts in the first state."""
    n, n_actions = rewards.shape
    ends = np.diff(matrix.indptr)[::n_actions] == 0
    return FiniteMDP(matrix, rewards, np.eye(1, n)[0], DISCOUNT, ends)


def methods(matrix: scipy.sparse.csr_array, rewards: np.ndarray, file: Path) -> Methods:
    """Return the timed methods by name for one MDP, which `file` contains."""
    n, n_actions = rewards.shape
    theirs = cache(lambda: quantecon_problem(matrix, rewards))
    optimum = cache(lambda: sparse.optimal(matrix, rewards, DISCOUNT))
    process = cache(lambda: finite_mdp(matrix, rewards))
    start = np.full(n, 1.0 / n)

    @cache
    def chain() -> scipy.sparse.csr_array:
        pairs, first = np.arange(n * n_actions), np.arange(n + 1) * n_actions
        uniform = (np.full(len(pairs), 1.0 / n_actions), pairs, first)
        mixing = scipy.sparse.csr_array(uniform, shape=(n, n * n_actions))
        return scipy.sparse.csr_array(mixing @ matrix)

    @cache
    def system() -> scipy.sparse.csr_array:
        return scipy.sparse.csr_array(scipy.sparse.eye_array(n) - DISCOUNT * chain())

    def krylov() -> Any:
        return scipy.sparse.linalg.bicgstab(system(), rewards.mean(axis=1), rtol=1e-13, atol=0.0)

    return {
        QUANTECON: lambda: theirs().solve("mpi", epsilon=1e-6),
        "optimal": lambda: sparse.optimal(matrix, rewards, DISCOUNT),
        "bounds": lambda: sparse.bounds(matrix, rewards, DISCOUNT, optimum()),
        SCIPY: krylov,
        "evaluate": lambda: sparse.evaluate(chain(), rewards.mean(axis=1), DISCOUNT),
        "visits": lambda: sparse.visits(chain(), start, DISCOUNT),
        "save": lambda: process().save(file.with_suffix(".copy")),
        "load": lambda: FiniteMDP.load(file),
        STEP: lambda: seconds_per_step(process()),
    }


def seconds_per_step(process: FiniteMDP) -> float:
    """Return the time per step of PG-SM in seconds, excluding evaluations."""
    problem, seeds, seconds = make_problem(process, 0.95), jekyll_hyde.seed_state(0, "", 0), []
    for steps in (STEPS[0], *STEPS):  # the first run compiles
        memory, begin = jekyll_hyde.RunBuffers(record_at=[steps]), perf_counter()
        scheme = SCHEMES["HiOffPol"]
        jekyll_hyde.simulate(problem, "pg-sm", 1.0, scheme, seeds, max_steps=steps, memory=memory)
        seconds.append(perf_counter() - begin)
    return (seconds[2] - seconds[1]) / (STEPS[1] - STEPS[0])


def in_turn(called: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median time of alternating calls per method in seconds, excluding the first."""
    seconds: dict[str, list[float]] = {name: [] for name in called}
    for repeat in range(repeats + 1):
        for name, method in called.items():
            begin = perf_counter()
            method()
            if repeat:
                seconds[name].append(perf_counter() - begin)
    return {name: statistics.median(times) for name, times in seconds.items()}


def timed(name: str, n_states: int, groups: Sequence[Sequence[str]], repeats: int) -> list[Row]:
    """Return the table rows for one MDP; ratios are to the first method of a group."""
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "process.npz"
        matrix, rewards = PROCESSES[name](n_states)
        finite_mdp(matrix, rewards).save(file)
        called = methods(matrix, rewards, file)
        for group in groups:
            seconds = in_turn({method: called[method] for method in group}, repeats)
            if STEP in group:
                seconds[STEP] = statistics.median(called[STEP]() for _ in range(repeats))
            for method in group:
                command = [sys.executable, __file__, "--peak", method, str(file)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                row = {"process": name, "states": len(rewards), "method": method}
                row |= {"seconds": seconds[method], "ratio": None, "peak_gb": float(done.stdout)}
                if group in (OPTIMUM, EVALUATION):
                    row["ratio"] = seconds[method] / seconds[group[0]]
                rows.append(row)
    return rows


def peak(method: str, file: Path) -> float:
    """Return the peak memory of this process in gigabytes after calling a method."""
    small = slippery_grid(600)
    finite_mdp(*small).save(file.with_suffix(".small"))
    methods(*small, file.with_suffix(".small"))[method]()  # compiles
    if method == "load":
        FiniteMDP.load(file)
    else:
        process = FiniteMDP.load(file)
        methods(scipy.sparse.csr_array(process._matrix), process.rewards, file)[method]()
    # `ru_maxrss` would include the memory of the process that started this one.
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.split("VmHWM:")[1].split()[0]) / 1e6  # kilobytes to gigabytes


def main() -> None:
    """Time the methods, print the table and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="*", default=[2500, 40_000, 250_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--largest", type=int, default=1_000_000)
    parser.add_argument("--peak", nargs=2, help=argparse.SUPPRESS)  # for the separate processes
    arguments = parser.parse_args()
    if arguments.peak:
        print(peak(arguments.peak[0], Path(arguments.peak[1])))
        return
    rows = []
    for states in arguments.states:
        for name in PROCESSES:
            rows += timed(name, states, (OPTIMUM, EVALUATION), arguments.repeats)
    if arguments.largest:
        rows += timed("grid", arguments.largest, (("optimal", "save", "load"),), 1)
        steps = [
            timed("grid", states, ((STEP,),), arguments.repeats)[0] for states in (100, 10_000)
        ]
        rows += [row | {"ratio": row["seconds"] / steps[0]["seconds"]} for row in steps]
    print(f"{'states':>9} {'process':8} {'method':37} {'seconds':>9} {'ratio':>6} {'peak GB':>7}")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        print(
            f"{row['states']:9,} {row['process']:8} {row['method']:37} {row['seconds']:9.2g} "
            f"{ratio:>6} {row['peak_gb']:7.2f}"
        )
    replace_file(PATH, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
