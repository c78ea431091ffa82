"""The speeds that the last chapter shows: what `python -m pu_lib bench --record` measured last.

Times belong to a machine, and a test cannot measure them again. So the file ``speeds.json`` says
with them which processor, versions and sources they were measured on, and the page shows what the
file says.
"""

from __future__ import annotations

import hashlib
import json
import math
import platform
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

__all__ = ["Speeds", "Timing", "machine", "record", "recorded", "sources"]

_HERE = Path(__file__).parent
_KEPT = _HERE / "data" / "speeds.json"


@dataclass(frozen=True)
class Timing:
    """Nanoseconds a step for one domain and update.

    Attributes
    ----------
    domain, update : str
        What was run.
    compiled : float
        The compiled loop, evaluations included.
    alone : float
        The compiled loop without evaluations: the same work as the twin's.
    c : float
        The twin in C, without evaluations, in the fastest of its ways; not a number where there is
        no compiler.
    way : tuple of str
        Which that is.
    fused : float
        The twin with products and sums rounded together, and other bits.
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

    @property
    def checks(self) -> float:
        """Share of the compiled loop's time that goes to the evaluations."""
        return max(0.0, 1.0 - self.alone / self.compiled)

    @property
    def ratio(self) -> float:
        """The compiled loop without its evaluations, over the fastest twin of the same bits."""
        return self.alone / self.c


@dataclass(frozen=True)
class Speeds:
    """What was recorded.

    Attributes
    ----------
    machine : dict of str to str
        What the times depend on besides the code, as `machine` returns it.
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


def machine() -> dict[str, str]:
    """Return what times depend on besides the code.

    Returns
    -------
    dict of str to str
        The processor, and the versions of Python, of numba and of gcc where there is one.
    """
    return {
        "processor": _processor(),
        "Python": platform.python_version(),
        "numba": metadata.version("numba"),
        **_compiler(),
    }


def _processor() -> str:
    """Return the name of the processor, as the system knows it."""
    told = Path("/proc/cpuinfo")
    names = re.findall(r"^model name\s*:\s*(.+)$", told.read_text(), re.M) if told.exists() else []
    return names[0] if names else platform.processor() or platform.machine()


def _compiler() -> dict[str, str]:
    if shutil.which("gcc") is None:
        return {}
    told = subprocess.run(["gcc", "-dumpfullversion"], capture_output=True, text=True, check=True)
    return {"gcc": told.stdout.strip()}


def sources() -> str:
    """Return a digest of the compiled loop, its kernels and the twin in C.

    Returns
    -------
    str
        Twelve hexadecimal digits.
    """
    package = _HERE.parent
    engine = sorted((package / "engine").glob("*.py"))
    digest = hashlib.sha256()
    for source in (package / "kernels.py", *engine, _HERE / "twin.c"):
        digest.update(source.read_bytes())
    return digest.hexdigest()[:12]


def record(
    timings: Iterable[Timing], steps: int, plain_steps: int, repetitions: int, path: Path = _KEPT
) -> None:
    """Write down what was measured, for the page that shows it.

    Parameters
    ----------
    timings : iterable of Timing
        What was measured.
    steps, plain_steps, repetitions : int
        How: see `Speeds`.
    path : Path
        Where to; without it, the file of the library.

    Raises
    ------
    ValueError
        If a time is missing, as that of the twin is without gcc.
    """
    measured = tuple(timings)
    if any(math.isnan(timing.c) for timing in measured):
        raise ValueError("speeds: a record needs the twin in C, and so gcc.")
    speeds = Speeds(machine(), sources(), steps, plain_steps, repetitions, measured)
    path.write_text(json.dumps(asdict(speeds), indent=1) + "\n", encoding="utf-8")


def recorded(path: Path = _KEPT) -> Speeds:
    """Return what was written down last.

    Parameters
    ----------
    path : Path
        Where it is; without it, the file of the library.

    Returns
    -------
    Speeds
        The times, and what they were measured on.
    """
    told: dict[str, Any] = json.loads(path.read_text("utf-8"))
    timings = tuple(Timing(**{**row, "way": tuple(row["way"])}) for row in told["timings"])
    return Speeds(**{**told, "timings": timings})
