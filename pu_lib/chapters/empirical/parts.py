r"""Statements about a table of runs, cut into parts, and the status that follows from them.

A *part* is one inequality between a number computed from the table and a number fixed in the
check. The number comes with a 95 % bootstrap interval over runs, the same runs for all curves
(`pu_lib.experiments.bootstrap`). **A part holds if its whole interval satisfies the inequality, and
is refuted if its whole interval violates it**; otherwise the runs do not decide. Where all runs
agree, so do all resamples; the interval of a share then reaches as far as the share of runs that
do otherwise can be, exactly, without one among so many (`unseen`). A statement is

- *reproduced* if all its parts hold,
- *not reproduced* if none holds and some are refuted,
- *partly reproduced* otherwise.

The margin of a finding is that of its worst part: the base-10 logarithm of the ratio between what
was found and what was needed, for shares and decades the difference; it is negative where even the
point estimate fails. Where intervals of 90 % or of 99 % would have led to another status, the worst
part says to which: the status rests on intervals that end near their bound.

Words and numbers
-----------------
*Best* is the smallest value of a curve over the learning rates. The *range* of an update is where
its curve is within a factor 3 of its best, measured in decades of the rate by joining the points
straight on logarithmic axes; it ends where the grid ends. *Similar* is within a factor 2, *a bit*
or *slightly* is between 1 and 2, *much* is more than a factor 2, *very* more than a factor 5.

A time at the cap is only known to be that long. A ratio with such a time above the line is a lower
bound, one with such a time below it an upper bound, and one of two such times is not known at all
(`pu_lib.experiments.curves.over`): parts take the bounds and say "≥", "≤" and "unknown". A part
that is unknown decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.claims.recorder import Recorder, Status
from pu_lib.experiments.bootstrap import LEVEL, draws, interval
from pu_lib.experiments.curves import both_centres
from pu_lib.experiments.results import Curves, Runs, scale_times, swap_labels
from pu_lib.updates import PAPER, label_of

SIMILAR, MUCH, VERY = 2.0, 2.0, 5.0
SCHEMES = ("NoExplo", "LowOffPol", "HiOffPol")
# The paper speaks of the policy gradients, of the others, and of the two cross-entropy updates.
PG, CROSS = ("pg-sm", "pg-es"), ("ce", "mce")
FAST = tuple(name for name in PAPER if name not in PG)

_Wrong = dict[str, dict[str, Any]]
"""Wrong variants of a check: in words, with the table of runs that makes them."""


def _name(column: str, value: str) -> str:
    return label_of(value) if column == "update" else value


def _swapped(column: str, one: str, other: str) -> _Wrong:
    """Return the variant in which the runs with two values of a column have each other's name."""
    words = f"{_name(column, one)} and {_name(column, other)} exchanged"
    return {words: {"table": swap_labels(column, {one: other, other: one})}}


def slower(column: str, value: str, factor: float, note: str = "") -> _Wrong:
    """Return the variant in which runs with a value in a column take several times as long."""
    words = f"{_name(column, value)} takes {factor:g} times as long{note}"
    return {words: {"table": scale_times(column, value, factor)}}


DI_AND_CE_EXCHANGED = _swapped("update", "di", "ce")
GRADIENTS_EXCHANGED = _swapped("update", "pg-sm", "pg-es")
SCHEMES_EXCHANGED = _swapped("scheme", "NoExplo", "HiOffPol")
GRADIENTS_FOR_OTHERS: _Wrong = {
    "policy gradients under the names of DI and CE": {
        "table": swap_labels("update", {"pg-sm": "di", "di": "pg-sm", "ce": "pg-es", "pg-es": "ce"})
    }
}


def centres(table: Runs, panels: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Curves, Floats]]:
    """Yield words, curves and values of panels, which come with a mark for the words.

    The values are medians and then means, of shape (1 + resamples, n_updates, n_positions).
    """
    for mark, name in panels:
        for statistic, (curves,), (values,) in both_centres(table, name):
            yield f"{mark}{statistic}", curves, values


def over_runs(values: Floats) -> Floats:
    """Return the mean of one number a run, and after it those of its resamples."""
    return np.concatenate([[values.mean()], values[draws(len(values))].mean(axis=1)])


def unseen(runs: int, level: float = LEVEL) -> float:
    """Return how probable something can be that no run of several has shown.

    It is the upper end of the exact interval of Clopper and Pearson for no event.

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

    def decided(self, level: float = LEVEL) -> bool | None:
        """Return whether the part holds or is refuted; none if the runs do not decide."""
        low, high = self.interval(level)
        if low > self.needed if self.at_least else high < self.needed:
            return True
        return False if (high <= self.needed if self.at_least else low >= self.needed) else None

    @property
    def known(self) -> bool:
        """Whether anything is known of the number."""
        return not np.isnan(self.value)

    @property
    def margin(self) -> float:
        """How far the number is on the right side of the bound; 0 if nothing is known of it."""
        if not self.known:
            return 0.0
        gap = np.log10(self.value / self.needed) if self.ratio else self.value - self.needed
        return float(gap if self.at_least else -gap)

    @property
    def sharpness(self) -> float:
        """How far the nearer end of the interval is on the right side, as a share of the bound."""
        low, high = self.interval()
        gap = low - self.needed if self.at_least else self.needed - high
        return gap / abs(self.needed) if self.needed else np.inf

    @property
    def number(self) -> str:
        """The number, or what is known of it, as pages show it."""
        return self._between(*self._bounds[[0, -1], 0])

    @property
    def span(self) -> str:
        """The interval as pages show it."""
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


def share_of(what: str, marks: Floats, needed: float, at_least: bool = True) -> Part:
    """Return the part that asks in which share of the runs something was seen.

    `marks` has a number a run: 1 where it was seen, 0 where not, or a share within the run.
    """
    return Part(what, over_runs(marks), needed, at_least, ratio=False, runs=len(marks))


def held(parts: Iterable[Part]) -> int:
    """Return how many parts hold."""
    return sum(part.decided() is True for part in parts)


def refuted(parts: Iterable[Part]) -> int:
    """Return how many parts are refuted."""
    return sum(part.decided() is False for part in parts)


def judge_parts(compare: Recorder, parts: Sequence[Part], **figures: Any) -> Status:
    """Record each part as a comparison, and return the status of the statement.

    Reported are the `figures` and of all parts how many there are, are ``held``, ``refuted``,
    ``undecided`` and ``met`` (by the number itself, whatever its interval), with their `ends`; and
    of the worst part, a refuted one if there is one, or else an undecided one, its ``value`` with
    the interval ``low`` to ``high``.
    """
    worst = min(parts, key=lambda part: ((False, None, True).index(part.decided()), part.margin))
    for part in parts:
        compare.estimate(
            part.what,
            ">" if part.at_least else "<",
            part.number,
            part.needed,
            slack=part.margin,
            holds=part.decided(),
            sharpness=part.sharpness,
            limit=f"{part.needed:g}",
            at={"interval of 95 %": part.span} | (_other_statuses(parts) if part is worst else {}),
        )
    low, high = worst.interval()
    told: dict[str, Any] = {
        "parts": len(parts),
        "held": held(parts),
        "refuted": refuted(parts),
        "undecided": len(parts) - held(parts) - refuted(parts),
        "met": sum(part.known and part.margin > 0.0 for part in parts),
        **ends(parts),
        **{"value": as_shown(worst.value), "low": as_shown(low), "high": as_shown(high)},
    }
    compare.report(**told | figures)
    return _status(parts)


def labels(updates: Iterable[str]) -> str:
    """Return the labels of updates as one lists them: "A, B and C"; "none" without any."""
    *most, last = [label_of(update) for update in updates] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last


def as_shown(value: float) -> float:
    """Return a number with the three digits that pages show of parts."""
    return float(f"{value:.3g}")


def ends(parts: Sequence[Part], names: tuple[str, str] = ("least", "most")) -> dict[str, float]:
    """Return the smallest and the largest number of some parts; empty if nothing is known.

    Parts of which nothing is known are left out; bounds count as the numbers that they bound.
    """
    values = [part.value for part in parts if part.known]
    found = (min(values), max(values)) if values else ()
    return {name: as_shown(value) for name, value in zip(names, found, strict=False)}


def _status(parts: Sequence[Part], level: float = LEVEL) -> Status:
    """Return the status that follows from intervals of a level."""
    found = [part.decided(level) for part in parts]
    if all(found):
        return Status.REPRODUCED
    return Status.NOT_REPRODUCED if False in found and True not in found else Status.PARTLY


def _other_statuses(parts: Sequence[Part]) -> dict[str, str]:
    """Return the status that intervals a little narrower or wider lead to, if it is another."""
    found = {level: _status(parts, level) for level in (0.90, 0.99)}
    return {
        f"status with intervals of {100 * level:.0f} %": str(status)
        for level, status in found.items()
        if status != _status(parts)
    }
