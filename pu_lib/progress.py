"""Progress of long computations, on standard error."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm


def in_terminal() -> bool:
    """Return whether standard error is a terminal, and not a file or the log of a CI job."""
    return sys.stderr is not None and sys.stderr.isatty()


def in_notebook() -> bool:
    """Return whether the code runs in the kernel of a notebook."""
    get_ipython = getattr(sys.modules.get("IPython"), "get_ipython", None)
    return get_ipython is not None and hasattr(get_ipython(), "kernel")


def progress_bar(total: int, shown: bool | None) -> tqdm[Any]:
    """Return a bar that counts runs; if `shown` is None, terminals and notebooks show the bar."""
    if shown is None:
        shown = in_terminal() or in_notebook()
    return tqdm(total=total, unit="run", disable=not shown, smoothing=0.02)


def steps(n: int) -> Iterable[int]:
    """Return ``range(n)``; terminals show a bar if the loop takes more than two seconds."""
    return tqdm(range(n), unit="step", delay=2.0, leave=False) if in_terminal() else range(n)


def note(line: str) -> None:
    """Print a line if standard error is a terminal, above any progress bar."""
    if in_terminal():
        tqdm.write(line, file=sys.stderr)
