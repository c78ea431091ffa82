"""The recorded speeds of the compiled loop, for the chapter on the experiments.

``make bench`` measures the speeds (``benchmarks/bench.py`` in the repository). The times depend on
the processor, the versions and the timed code, so ``data/speeds.json`` also records the processor,
the versions and a digest of the code.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PATH = Path(__file__).parent / "data" / "speeds.json"
"""The file with the recorded speeds."""


@dataclass(frozen=True)
class Timing:
    """Nanoseconds per step for one domain and update.

    Attributes
    ----------
    domain, update : str
        The process and the update.
    compiled : float
        The compiled loop, including evaluations.
    alone : float
        The compiled loop without evaluations, for comparison with the C loop, which has none.
    c : float
        The C loop with the fastest flags, or NaN if no compiler is installed.
    way : tuple of str
        The flags with which the C loop is fastest.
    fused : float
        The C loop with fused multiply-add, whose results differ in the last bits.
    plain : float
        The plain Python and NumPy loop.
    """

    domain: str
    update: str
    compiled: float
    alone: float
    c: float
    way: tuple[str, ...]
    fused: float
    plain: float


@dataclass(frozen=True)
class Speeds:
    """A recorded table of speeds.

    Attributes
    ----------
    machine : dict of str to str
        The processor, and the versions of Python, numba and gcc.
    sources : str
        The digest of the timed code. See the function `sources`.
    steps, plain_steps, repetitions : int
        Steps of a compiled run, steps of a plain run, and the number of repetitions. The time of
        the fastest repetition is recorded.
    timings : tuple of Timing
        One timing for each domain and update.
    """

    machine: dict[str, str]
    sources: str
    steps: int
    plain_steps: int
    repetitions: int
    timings: tuple[Timing, ...]


def sources() -> str:
    """Return twelve hexadecimal digits of a digest of the compiled loop and its kernels."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    beside = (package / "compiling.py", package / "kernels.py")
    for source in (*beside, *sorted((package / "engine").glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def recorded(path: Path = PATH) -> Speeds:
    """Return the speeds recorded in a file."""
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    timings = tuple(Timing(**{**row, "way": tuple(row["way"])}) for row in read["timings"])
    return Speeds(**{**read, "timings": timings})
