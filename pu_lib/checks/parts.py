r"""Statements about a table of runs, cut into parts, and the verdict that follows from them.

A *part* is one inequality between a number computed from the table and a number fixed in the
check. The number comes with a 95 % bootstrap interval over runs, the same runs for all curves
(`pu_lib.empirical.bootstrap`). **A part holds if its whole interval satisfies the inequality, and
is refuted if its whole interval violates it**; otherwise the runs do not decide. A statement is

- *reproduced* if all its parts hold,
- *not reproduced* if none holds and some are refuted,
- *partly reproduced* otherwise.

The margin of a verdict is that of its worst part: the base-10 logarithm of the ratio between what
was found and what was needed, for shares and decades the difference; it is negative where even the
point estimate fails. Where intervals of 90 % or of 99 % would have led to another status, the
verdict says so: it rests on intervals that end near their bound.

Words and numbers
-----------------
*Best* is the smallest value of a curve over the learning rates. The *range* of an update is where
its curve is within a factor 3 of its best, measured in decades of the rate by joining the points
straight on logarithmic axes; it ends where the grid ends. *Similar* is within a factor 2, *a bit*
or *slightly* is between 1 and 2, *much* is more than a factor 2, *very* more than a factor 5. A
median beyond the cap counts as the cap, so that a ratio to it is a lower bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.empirical.bootstrap import LEVEL, draws, interval
from pu_lib.empirical.results import exchanged, slowed
from pu_lib.updates import PAPER, label_of
from pu_lib.verdict import Status, Verdict
from pu_lib.wording import percent

__all__ = [
    "CROSS",
    "DI_AND_CE_EXCHANGED",
    "FAST",
    "GRADIENTS_EXCHANGED",
    "GRADIENTS_FOR_OTHERS",
    "MUCH",
    "PG",
    "SCHEMES",
    "SCHEMES_EXCHANGED",
    "SIMILAR",
    "VERY",
    "Part",
    "judge_parts",
    "over_runs",
    "slower",
]

SIMILAR, MUCH, VERY = 2.0, 2.0, 5.0
SCHEMES = ("NoExplo", "LowOffPol", "HiOffPol")
# The paper speaks of the policy gradients, of the others, and of the two cross-entropy updates.
PG, CROSS = ("pg-sm", "pg-es"), ("ce", "mce")
FAST = tuple(name for name in PAPER if name not in PG)

_Moved = dict[str, dict[str, Any]]

DI_AND_CE_EXCHANGED: _Moved = {
    "DI and CE exchanged": {"table": exchanged("update", {"di": "ce", "ce": "di"})}
}
GRADIENTS_EXCHANGED: _Moved = {
    "PG-SM and PG-ES exchanged": {
        "table": exchanged("update", {"pg-sm": "pg-es", "pg-es": "pg-sm"})
    }
}
GRADIENTS_FOR_OTHERS: _Moved = {
    "policy gradients under the names of DI and CE": {
        "table": exchanged("update", {"pg-sm": "di", "di": "pg-sm", "ce": "pg-es", "pg-es": "ce"})
    }
}
SCHEMES_EXCHANGED: _Moved = {
    "NoExplo and HiOffPol exchanged": {
        "table": exchanged("scheme", {"NoExplo": "HiOffPol", "HiOffPol": "NoExplo"})
    }
}


def slower(column: str, value: str, factor: float, note: str = "") -> _Moved:
    """Return the control in which some runs take several times as long.

    Parameters
    ----------
    column, value : str
        Which runs: those with this value in this column.
    factor : float
        How many times as many steps they take.
    note : str
        What to add to the words of the control.

    Returns
    -------
    dict
        One entry for `moved`: the control in words, and the argument `table` that makes it.
    """
    name = label_of(value) if column == "update" else value
    words = f"{name} takes {factor:g} times as long{note}"
    return {words: {"table": slowed(column, value, factor)}}


_NARROW, _WIDE = 0.90, 0.99


def over_runs(values: Floats) -> Floats:
    """Return the mean of one number a run, and after it those of its resamples.

    Parameters
    ----------
    values : ndarray, shape (runs,)
        The numbers.

    Returns
    -------
    ndarray, shape (1 + resamples,)
        The mean and the resampled means.
    """
    return np.concatenate([[values.mean()], values[draws(len(values))].mean(axis=1)])


@dataclass(frozen=True)
class Part:
    """One inequality of a statement.

    Attributes
    ----------
    what : str
        The number, in words.
    values : ndarray
        The number, and after it its bootstrap resamples, if any.
    needed : float
        The bound.
    at_least : bool
        Whether the number has to be above the bound, or below.
    ratio : bool
        Whether the margin is a ratio (in base-10 logarithms) or a difference.
    """

    what: str
    values: Floats
    needed: float = 1.0
    at_least: bool = True
    ratio: bool = True

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the ends of the interval; the number itself if nothing was resampled."""
        low, high = interval(self.values[1:] if len(self.values) > 1 else self.values, level)
        return float(low), float(high)

    def holds(self, level: float = LEVEL) -> bool:
        """Return whether the whole interval satisfies the inequality."""
        low, high = self.interval(level)
        return low > self.needed if self.at_least else high < self.needed

    def refuted(self, level: float = LEVEL) -> bool:
        """Return whether the whole interval violates the inequality."""
        low, high = self.interval(level)
        return high <= self.needed if self.at_least else low >= self.needed

    @property
    def margin(self) -> float:
        """How far the number is on the right side of the bound."""
        value, needed = float(self.values[0]), self.needed
        gap = np.log10(value / needed) if self.ratio else value - needed
        return float(gap if self.at_least else -gap)

    def row(self) -> dict[str, Any]:
        """Return the part as a row of evidence."""
        low, high = self.interval()
        return {
            "part": self.what,
            "value": f"{self.values[0]:.3g}",
            "95 % interval": f"{low:.3g} to {high:.3g}" if len(self.values) > 1 else "exact",
            "needed": f"{'>' if self.at_least else '<'} {self.needed:g}",
            "holds": "yes" if self.holds() else "no" if self.refuted() else "undecided",
        }


def judge_parts(parts: Sequence[Part]) -> Verdict:
    """Return the verdict on a statement from its parts."""
    held, refuted = sum(part.holds() for part in parts), sum(part.refuted() for part in parts)
    # The worst part is one that is refuted, or else undecided, if there is one.
    worst = min(parts, key=lambda part: (part.holds() - part.refuted(), part.margin))
    low, high = worst.interval()
    span = f" ({low:.3g} to {high:.3g})" if len(worst.values) > 1 else ""
    summary = (
        f"{held} of {len(parts)} parts hold, {refuted} are refuted. The "
        f"{'tightest' if worst.holds() else 'worst'} is “{worst.what}”: "
        f"{worst.values[0]:.3g}{span}, needed "
        f"{'more' if worst.at_least else 'less'} than {worst.needed:g}.{_near(parts)}"
    )
    rows = tuple(part.row() for part in parts)
    told = {"held": held, "parts": len(parts), "value": float(worst.values[0]), "low": low}
    figures = {**told, "high": high, "needed": worst.needed}
    return Verdict(_status(parts, LEVEL), worst.margin, summary, rows, figures=figures)


def _status(parts: Sequence[Part], level: float) -> Status:
    """Return the status that follows from intervals of a level."""
    held = sum(part.holds(level) for part in parts)
    if held == len(parts):
        return Status.REPRODUCED
    refuted = any(part.refuted(level) for part in parts)
    return Status.NOT_REPRODUCED if held == 0 and refuted else Status.PARTLY


def _near(parts: Sequence[Part]) -> str:
    """Say so if intervals a little narrower or wider would have led to another status."""
    status = _status(parts, LEVEL)
    other = {level: _status(parts, level) for level in (_NARROW, _WIDE)}
    words = [
        f"{found.value} with {percent(level, 0)}"
        for level, found in other.items()
        if found != status
    ]
    if not words:
        return ""
    return f" This rests on intervals that end near their bound: {' and '.join(words)} intervals."
