"""Time and memory of exact solutions of large sparse processes.

    make bench-sparse

The script accepts options such as `--states 2500 40000`, `--repeats 5` and `--memory 1000000`.

Methods are timed in turn in one process, with one BLAS thread. The table gives median times, and
their ratios to the time of QuantEcon's modified policy iteration (epsilon 1e-6) or of SciPy's
BiCGSTAB (rtol 1e-13), which are less exact. The peak memory of `optimal` is measured in a separate
process. All numbers are written to `benchmarks/sparse.json`.
"""

# ruff: noqa: E402 - threads are limited before NumPy is imported

from __future__ import annotations

import os

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # read when NumPy is imported

import argparse
import json
import resource
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from pu_lib import sparse
from pu_lib.files import replace_file

DISCOUNT = 0.99
RECORD = Path(__file__).with_suffix(".json")
Process = tuple[scipy.sparse.csr_array, np.ndarray]


def slippery_grid(n_states: int) -> Process:
    """Return a square grid with four moves; each turns left or right with probability 0.1.

    The rewards of the states are drawn uniformly from [0, 1); the last corner is terminal.
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
    """Return a process with four actions per state and five random successors per action."""
    rng = np.random.default_rng(0)
    columns = rng.integers(n_states, size=n_states * 20)
    data = rng.dirichlet(np.ones(5), size=n_states * 4).ravel()
    rows = np.repeat(np.arange(n_states * 4), 5)
    matrix = scipy.sparse.csr_array((data, (rows, columns)), shape=(n_states * 4, n_states))
    matrix.sum_duplicates()
    return matrix, rng.uniform(size=(n_states, 4))


PROCESSES: dict[str, Callable[[int], Process]] = {"grid": slippery_grid, "garnet": garnet}


def quantecon_problem(matrix: scipy.sparse.csr_array, rewards: np.ndarray) -> Any:
    """Return the process as a QuantEcon problem, with self-loops at terminal states."""
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


def in_turn(methods: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the median seconds of each method, called in turn, without its first call."""
    seconds: dict[str, list[float]] = {name: [] for name in methods}
    for repeat in range(repeats + 1):
        for name, method in methods.items():
            begin = perf_counter()
            method()
            if repeat:
                seconds[name].append(perf_counter() - begin)
    return {name: statistics.median(times) for name, times in seconds.items()}


def timed(name: str, n_states: int, repeats: int) -> list[dict[str, Any]]:
    """Return the rows of the table for one process."""
    matrix, rewards = PROCESSES[name](n_states)
    n, n_actions = rewards.shape
    theirs = quantecon_problem(matrix, rewards)
    found = sparse.optimal(matrix, rewards, DISCOUNT)
    uniform = scipy.sparse.csr_array(
        (
            np.full(n * n_actions, 1.0 / n_actions),
            np.arange(n * n_actions),
            np.arange(n + 1) * n_actions,
        ),
        shape=(n, n * n_actions),
    )
    chain, paid = scipy.sparse.csr_array(uniform @ matrix), rewards.mean(axis=1)
    system = scipy.sparse.csr_array(scipy.sparse.eye_array(n) - DISCOUNT * chain)
    start = np.full(n, 1.0 / n)

    def krylov(a: Any, b: np.ndarray) -> Any:
        return scipy.sparse.linalg.bicgstab(a, b, rtol=1e-13, atol=0.0)

    groups = (
        (
            "QuantEcon, modified policy iteration",
            {
                "QuantEcon, modified policy iteration": lambda: theirs.solve("mpi", epsilon=1e-6),
                "optimal": lambda: sparse.optimal(matrix, rewards, DISCOUNT),
                "bounds": lambda: sparse.bounds(matrix, rewards, DISCOUNT, found),
            },
        ),
        (
            "SciPy, BiCGSTAB",
            {
                "SciPy, BiCGSTAB": lambda: krylov(system, paid),
                "evaluate": lambda: sparse.evaluate(chain, paid, DISCOUNT),
                "visits": lambda: sparse.visits(chain, start, DISCOUNT),
            },
        ),
    )
    rows = []
    for unit, methods in groups:
        seconds = in_turn(methods, repeats)
        for method, median in seconds.items():
            row = {"process": name, "states": n, "method": method, "seconds": median}
            rows.append(row | {"ratio": median / seconds[unit], "peak_gb": None})
    return rows


def optimum_with_peak(n_states: int) -> dict[str, Any]:
    """Return the row of `optimal` on a grid, with the peak memory of this process."""
    matrix, rewards = slippery_grid(100)
    sparse.optimal(matrix, rewards, DISCOUNT)  # compiles
    matrix, rewards = slippery_grid(n_states)
    begin = perf_counter()
    sparse.optimal(matrix, rewards, DISCOUNT)
    seconds = perf_counter() - begin
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6  # kilobytes to gigabytes
    row = {"process": "grid", "states": len(rewards), "method": "optimal", "seconds": seconds}
    return row | {"ratio": None, "peak_gb": peak}


def main() -> None:
    """Time the methods, print the table and record it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--states", type=int, nargs="*", default=[2500, 40_000, 250_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--memory", type=int, default=1_000_000)
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)  # used in the separate process
    given = parser.parse_args()
    if given.peak:
        print(json.dumps(optimum_with_peak(given.peak)))
        return
    rows = [
        row
        for states in given.states
        for name in PROCESSES
        for row in timed(name, states, given.repeats)
    ]
    if given.memory:
        command = [sys.executable, __file__, "--peak", str(given.memory)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        rows.append(json.loads(done.stdout))
    print(f"{'states':>9} {'process':8} {'method':37} {'seconds':>9} {'ratio':>6} {'peak GB':>7}")
    for row in rows:
        ratio = "" if row["ratio"] is None else f"{row['ratio']:.2f}"
        peak = "" if row["peak_gb"] is None else f"{row['peak_gb']:.2f}"
        print(
            f"{row['states']:9,} {row['process']:8} {row['method']:37} {row['seconds']:9.4f} "
            f"{ratio:>6} {peak:>7}"
        )
    replace_file(RECORD, json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
