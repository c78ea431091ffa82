r"""Statements about a table of runs, cut into parts, and the verdict that follows from them.

A *part* is one inequality between a number computed from the table and a number fixed in the
check. The number comes with a 95 % bootstrap interval over runs, the same runs for all curves
(`pu_lib.empirical.bootstrap`). **A part holds if its whole interval satisfies the inequality, and
is refuted if its whole interval violates it**; otherwise the runs do not decide. Where all runs
agree, so do all resamples; the interval of a share then reaches as far as the share of runs that
do otherwise can be, exactly, without one among so many (`unseen`). A statement is

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
or *slightly* is between 1 and 2, *much* is more than a factor 2, *very* more than a factor 5.

A time at the cap is only known to be that long. A ratio with such a time above the line is a lower
bound, one with such a time below it an upper bound, and one of two such times is not known at all
(`pu_lib.empirical.curves.over`): parts take the bounds and say "≥", "≤" and "unknown". A part that
is unknown decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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
    "as_shown",
    "ends",
    "judge_parts",
    "labels",
    "over_runs",
    "share_of",
    "slower",
    "unseen",
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


def unseen(runs: int, level: float = LEVEL) -> float:
    """Return how probable something can be that no run of several has shown.

    Parameters
    ----------
    runs : int
        How many runs there are.
    level : float
        Level of the interval, in (0, 1).

    Returns
    -------
    float
        The upper end of the exact interval of Clopper and Pearson for no event in so many runs.

    Examples
    --------
    >>> round(unseen(20), 3)
    0.168
    """
    return float(1.0 - ((1.0 - level) / 2.0) ** (1.0 / runs))


@dataclass(frozen=True)
class Part:
    """One inequality of a statement.

    Attributes
    ----------
    what : str
        The number, in words.
    values : ndarray, shape (1 + resamples,) or (2, 1 + resamples)
        The number, and after it its bootstrap resamples, if any; two rows where they are known only
        between bounds, the lower ones and the upper ones.
    needed : float
        The bound.
    at_least : bool
        Whether the number has to be above the bound, or below.
    ratio : bool
        Whether the margin is a ratio (in base-10 logarithms) or a difference.
    runs : int
        How many runs the number is a share of, or a difference of shares; 0 if it is neither.
    least : float
        The smallest number possible: 0 for a share, -1 for a difference.
    """

    what: str
    values: Floats
    needed: float = 1.0
    at_least: bool = True
    ratio: bool = True
    runs: int = 0
    least: float = 0.0

    @property
    def _bounds(self) -> Floats:
        """The lower bounds first and the upper ones last; one row where the number is known."""
        return np.atleast_2d(self.values)

    @property
    def value(self) -> float:
        """The number, or the bound of it that is known; not a number if neither is."""
        low, high = self._bounds[[0, -1], 0]
        if low == 0.0 < high:
            return float(high) if np.isfinite(high) else np.nan
        return float(low)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the ends of the interval; the number itself if nothing was resampled."""
        found = [interval(x[1:] if len(x) > 1 else x, level) for x in self._bounds]
        low, high = float(found[0][0]), float(found[-1][1])
        if self.runs and low == high:
            room = unseen(self.runs, level)
            return max(low - room, self.least), min(high + room, 1.0)
        return low, high

    def holds(self, level: float = LEVEL) -> bool:
        """Return whether the whole interval satisfies the inequality."""
        low, high = self.interval(level)
        return low > self.needed if self.at_least else high < self.needed

    def refuted(self, level: float = LEVEL) -> bool:
        """Return whether the whole interval violates the inequality."""
        low, high = self.interval(level)
        return high <= self.needed if self.at_least else low >= self.needed

    @property
    def known(self) -> bool:
        """Whether anything is known of the number."""
        return not np.isnan(self.value)

    @property
    def answer(self) -> str:
        """Whether the part holds, in a word."""
        return "yes" if self.holds() else "no" if self.refuted() else "undecided"

    @property
    def margin(self) -> float:
        """How far the number is on the right side of the bound; 0 if nothing is known of it."""
        if not self.known:
            return 0.0
        gap = np.log10(self.value / self.needed) if self.ratio else self.value - self.needed
        return float(gap if self.at_least else -gap)

    @property
    def number(self) -> str:
        """The number, or what is known of it, as the table shows it."""
        return self._between(*self._bounds[[0, -1], 0])

    @property
    def span(self) -> str:
        """The interval as the table shows it."""
        if self._bounds.shape[1] == 1:
            return "not resampled"
        low, high = self.interval()
        return self._between(low, high) if self._open(low, high) else f"{low:.3g} to {high:.3g}"

    def _open(self, low: float, high: float) -> bool:
        """Return whether there is no lower bound of a number known between bounds, or no upper."""
        return self.values.ndim == 2 and (low == 0.0 or bool(np.isinf(high)))

    def _between(self, low: float, high: float) -> str:
        if not self._open(low, high):
            return f"{low:.3g}"
        if np.isinf(high):
            return f"≥ {low:.3g}" if low else "unknown"
        return f"≤ {high:.3g}"

    def row(self) -> dict[str, Any]:
        """Return the part as a row of evidence."""
        return {
            "part": self.what,
            "value": self.number,
            "95 % interval": self.span,
            "needed": f"{'>' if self.at_least else '<'} {self.needed:g}",
            "holds": self.answer,
        }


def share_of(what: str, marks: Floats, needed: float, at_least: bool = True) -> Part:
    """Return the part that asks in which share of the runs something was seen.

    Parameters
    ----------
    what : str
        The share, in words.
    marks : ndarray, shape (runs,)
        1 where it was seen, 0 where not; or a share within each run.
    needed : float
        The bound.
    at_least : bool
        Whether the share has to be above the bound, or below.

    Returns
    -------
    Part
        The part.
    """
    return Part(what, over_runs(marks), needed, at_least, ratio=False, runs=len(marks))


def judge_parts(parts: Sequence[Part], figures: Mapping[str, Any] | None = None) -> Verdict:
    """Return the verdict on a statement from its parts.

    Parameters
    ----------
    parts : sequence of Part
        The parts, at least one.
    figures : mapping, optional
        More numbers for the sentence of the ledger, by name.

    Returns
    -------
    Verdict
        The verdict, with the parts as evidence and these figures: how many parts there are, are
        ``held``, ``refuted``, ``undecided``, ``decidable`` (something is known of their number) and
        ``met`` (by the number itself, whatever its interval); what `ends` returns of all of them;
        and of the worst part its ``value`` with the interval ``low`` to ``high``, and ``needed``.
    """
    held, refuted = sum(part.holds() for part in parts), sum(part.refuted() for part in parts)
    # The worst part is one that is refuted, or else undecided, if there is one.
    worst = min(parts, key=lambda part: (part.holds() - part.refuted(), part.margin))
    decidable = sum(part.known for part in parts)
    unknown = len(parts) - decidable
    told_apart = f" Of {unknown} nothing is known: both times are at the cap." if unknown else ""
    span = "" if worst.span == "not resampled" else f" ({worst.span})"
    summary = (
        f"{held} of {len(parts)} parts hold, {refuted} are refuted.{told_apart} The "
        f"{'tightest' if worst.holds() else 'worst'} is “{worst.what}”: "
        f"{worst.number}{span}, needed "
        f"{'more' if worst.at_least else 'less'} than {worst.needed:g}.{_near(parts)}"
    )
    low, high = worst.interval()
    told = {
        "parts": len(parts),
        "held": held,
        "refuted": refuted,
        "undecided": len(parts) - held - refuted,
        "decidable": decidable,
        "met": sum(part.known and part.margin > 0.0 for part in parts),
        **ends(parts),
        **{"value": as_shown(worst.value), "low": as_shown(low), "high": as_shown(high)},
        "needed": worst.needed,
        **(figures or {}),
    }
    rows = tuple(part.row() for part in parts)
    return Verdict(_status(parts, LEVEL), worst.margin, summary, rows, figures=told)


def labels(updates: Iterable[str]) -> str:
    """Return the labels of updates as one lists them.

    Parameters
    ----------
    updates : iterable of str
        Their names.

    Returns
    -------
    str
        "A, B and C"; "none" if there are none.
    """
    *most, last = [label_of(update) for update in updates] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def as_shown(value: float) -> float:
    """Return a number with the three digits that tables of parts show."""
    return float(f"{value:.3g}")


def ends(parts: Sequence[Part], names: tuple[str, str] = ("least", "most")) -> dict[str, float]:
    """Return the smallest and the largest number of some parts, as their table shows them.

    Parameters
    ----------
    parts : sequence of Part
        The parts; those of which nothing is known are left out.
    names : pair of str
        What to call the two.

    Returns
    -------
    dict of str to float
        The two numbers; bounds count as the numbers that they bound. Empty if nothing is known.
    """
    values = [part.value for part in parts if part.known]
    found = (min(values), max(values)) if values else ()
    return {name: as_shown(value) for name, value in zip(names, found, strict=False)}


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
