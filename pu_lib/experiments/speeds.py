"""The recorded speeds of the compiled loop, which the chapter on the experiments prints.

``make bench`` measures them (``benchmarks/bench.py`` in the repository). Times depend on a machine,
so ``data/speeds.json`` also records the processor, the versions and the code that was timed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["PATH", "Speeds", "Timing", "recorded", "sources"]

PATH = Path(__file__).parent / "data" / "speeds.json"
"""The file of the recorded speeds."""


@dataclass(frozen=True)
class Timing:
    """Nanoseconds a step for one domain and update.

    Attributes
    ----------
    domain, update : str
        The process and the update.
    compiled : float
        The compiled loop, evaluations included.
    alone : float
        The compiled loop without evaluations: the same work as the C loop's.
    c : float
        The C loop with its fastest flags; not a number if there is no compiler.
    way : tuple of str
        These flags.
    fused : float
        The C loop with products and sums rounded together, which changes bits.
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
        The digest of the code that was timed, as `sources` returns it.
    steps, plain_steps, repetitions : int
        Steps of a compiled run and of a plain one; runs of which the fastest counts.
    timings : tuple of Timing
        One for each domain and update.
    """

    machine: dict[str, str]
    sources: str
    steps: int
    plain_steps: int
    repetitions: int
    timings: tuple[Timing, ...]


def sources() -> str:
    """Return a digest of the compiled loop and its kernels, in twelve hexadecimal digits."""
    package = Path(__file__).parents[1]
    digest = hashlib.sha256()
    for source in (package / "kernels.py", *sorted((package / "engine").glob("*.py"))):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def recorded(path: Path = PATH) -> Speeds:
    """Return the speeds recorded in a file."""
    read: dict[str, Any] = json.loads(path.read_text("utf-8"))
    timings = tuple(Timing(**{**row, "way": tuple(row["way"])}) for row in read["timings"])
    return Speeds(**{**read, "timings": timings})
