r"""Inequalities between numbers computed from runs and limits, and the status of a sentence.

A check of section 4 lists inequalities. The number on the left of each inequality has a 95 %
bootstrap interval over runs; each resample uses the same runs for all curves
(`pu_lib.experiments.bootstrap`).
**An inequality holds if its whole interval satisfies it, and is refuted if its whole interval
violates it**; otherwise the inequality is undecided. If all runs agree, all resamples agree too, so
the interval of a share is widened by the Clopper-Pearson bound (`clopper_pearson_upper`). A
sentence is

- *reproduced* if all its inequalities hold,
- *undecided* if none is refuted, some are undecided, and all numbers satisfy their limits,
- *open* if no inequality is decided and some numbers violate their limits,
- *not reproduced* if no inequality holds and some are refuted,
- *partly reproduced* otherwise.

With an *undecided* sentence all point estimates agree, and there are too few runs to be certain.

The margin of a finding is the margin of its worst inequality: the base-10 logarithm of the number
over the limit, or the difference for shares and decades. The margin is negative if even the point
estimate fails. If intervals of 90 % or of 99 % lead to another status, the worst inequality reports
that status.

The paper does not say which statistic its curves show. Inequalities between times are therefore
evaluated with the median and with the restricted mean. Most inequalities on chains are evaluated
with both values of beta in the paper, if the table has both.

Words and numbers
-----------------
*Best* is the smallest value of a curve over the step sizes. The *range* of an update is the set
of step sizes at which its curve is within a factor 3 of its best value. The width of the range is
measured in decades, with linear interpolation on logarithmic axes; the range does not extend beyond
the grid. *Similar* is within a factor 2, *a bit* or *slightly* is a factor between 1 and 2, *much*
is more than a factor 2, and *very* is more than a factor 5.

Times at the cap are right-censored. A ratio is a lower bound if only its numerator is censored, an
upper bound if only its denominator is censored, and unknown if both are censored
(`pu_lib.experiments.curves.ratio_bounds`). Inequalities use the bounds and show "≥", "≤" and
"unknown". An inequality is undecided if its number is unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.claims.recorder import Check, Recorder, Status
from pu_lib.experiments.bootstrap import LEVEL, draws, interval
from pu_lib.experiments.curves import (
    best_of,
    best_of_each,
    curve_of,
    median_and_mean,
    ratio_bounds,
    value_at,
)
from pu_lib.experiments.results import (
    PANELS,
    Curves,
    Panel,
    Runs,
    results_of,
    scale_times,
    swap_labels,
)
from pu_lib.updates import PAPER, label_of

SIMILAR_FACTOR, MUCH_FACTOR, VERY_FACTOR = 2.0, 2.0, 5.0
"""Factors between times that define the paper's words "similar", "much" and "very"."""

SCHEMES = ("NoExplo", "LowOffPol", "HiOffPol")

POLICY_GRADIENTS, CROSS_ENTROPY = ("pg-sm", "pg-es"), ("ce", "mce")
DI_CE_MCE = tuple(name for name in PAPER if name not in POLICY_GRADIENTS)

WrongVariant = dict[str, dict[str, Any]]
"""A dictionary from the description of a wrong variant to its arguments, the table of runs."""


# Wrong variants: the committed runs with something changed


def swapped_labels(column: str, one: str, other: str) -> WrongVariant:
    """Return the variant in which two values of a column are exchanged."""
    words = f"{_words(column, one)} and {_words(column, other)} exchanged"
    return {words: {"table": swap_labels(column, {one: other, other: one})}}


def scaled_times(column: str, value: str, factor: float, note: str = "") -> WrongVariant:
    """Return the variant in which the times of runs with one value of a column are multiplied."""
    words = f"{_words(column, value)} takes {factor:g} times as long{note}"
    return {words: {"table": scale_times(column, value, factor)}}


def _words(column: str, value: str) -> str:
    return label_of(value) if column == "update" else value


DI_AND_CE_SWAPPED = swapped_labels("update", "di", "ce")
POLICY_GRADIENTS_SWAPPED = swapped_labels("update", "pg-sm", "pg-es")
SCHEMES_SWAPPED = swapped_labels("scheme", "NoExplo", "HiOffPol")
POLICY_GRADIENTS_FOR_DI_AND_CE: WrongVariant = {
    "policy gradients under the names of DI and CE": {
        "table": swap_labels("update", {"pg-sm": "di", "di": "pg-sm", "ce": "pg-es", "pg-es": "ce"})
    }
}


# Inequalities


def bootstrap_means(values: Floats) -> Floats:
    """Return the mean of one number per run, followed by the means of bootstrap resamples."""
    return np.concatenate([[values.mean()], values[draws(len(values))].mean(axis=1)])


def clopper_pearson_upper(n_runs: int, level: float = LEVEL) -> float:
    """Return the upper end of the Clopper-Pearson interval for an event that no run shows.

    >>> round(clopper_pearson_upper(20), 3)
    0.168
    """
    return float(1.0 - ((1.0 - level) / 2.0) ** (1.0 / n_runs))


@dataclass(frozen=True)
class Inequality:
    """A comparison of a number computed from runs with a limit.

    Attributes
    ----------
    name : str
        The description of the number.
    values : ndarray, shape (1 + resamples,) or (2, 1 + resamples)
        The number and its bootstrap resamples, if any. Two rows are lower and upper bounds.
    relation : {"<", ">"}
        "<" if the number must be below the limit, ">" if it must be above.
    limit : float
        The limit.
    ratio : bool
        Whether the number is a ratio, so the margin is a difference of base-10 logarithms.
    n_runs : int
        The number of runs if the number is a share of runs or a difference of shares, else 0.
    smallest : float
        The smallest possible number: 0 for a share, -1 for a difference of shares.
    """

    name: str
    values: Floats
    relation: str
    limit: float
    ratio: bool = True
    n_runs: int = 0
    smallest: float = 0.0

    @property
    def _bounds(self) -> Floats:
        """The lower bounds in the first row and the upper bounds in the last row."""
        return np.atleast_2d(self.values)

    @property
    def value(self) -> float:
        """The number, its known bound, or NaN if neither is known."""
        low, high = self._bounds[[0, -1], 0]
        if low == 0.0 < high:
            return float(high) if np.isfinite(high) else np.nan
        return float(low)

    @property
    def known(self) -> bool:
        """Whether the number or one of its bounds is known."""
        return not np.isnan(self.value)

    def interval(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the ends of the interval, or the number twice if there are no resamples."""
        intervals = [interval(x[1:] if len(x) > 1 else x, level) for x in self._bounds]
        low, high = float(intervals[0][0]), float(intervals[-1][1])
        if self.n_runs and low == high:
            width = clopper_pearson_upper(self.n_runs, level)
            return max(low - width, self.smallest), min(high + width, 1.0)
        return low, high

    def holds(self, level: float = LEVEL) -> bool | None:
        """Return True if the inequality holds, False if it is refuted, None if it is undecided."""
        low, high = self.interval(level)
        if low > self.limit if self.relation == ">" else high < self.limit:
            return True
        return (
            False if (high <= self.limit if self.relation == ">" else low >= self.limit) else None
        )

    @property
    def met(self) -> bool:
        """Whether the number, without regard to its interval, satisfies the inequality."""
        return self.known and self.margin > 0.0

    @property
    def margin(self) -> float:
        """The distance of the number to the limit, negative if it fails, or 0 if it is unknown."""
        if not self.known:
            return 0.0
        ratio = self.ratio and not self.n_runs
        gap = np.log10(self.value / self.limit) if ratio else self.value - self.limit
        return float(gap if self.relation == ">" else -gap)

    @property
    def sharpness(self) -> float:
        """Distance from the limit to the nearer end of the interval, relative to the limit."""
        low, high = self.interval()
        gap = low - self.limit if self.relation == ">" else self.limit - high
        return gap / abs(self.limit) if self.limit else np.inf

    @property
    def number(self) -> str:
        """The number or its known bound as text."""
        return self._format(*self._bounds[[0, -1], 0])

    @property
    def span(self) -> str:
        """The interval as text."""
        if self._bounds.shape[1] == 1:
            return "not resampled"
        low, high = self.interval()
        return self._format(low, high) if self._is_open(low, high) else f"{low:.3g} to {high:.3g}"

    def _is_open(self, low: float, high: float) -> bool:
        """Return whether the lower or the upper bound is unknown."""
        return self.values.ndim == 2 and (low == 0.0 or bool(np.isinf(high)))

    def _format(self, low: float, high: float) -> str:
        if not self._is_open(low, high):
            return f"{low:.3g}"
        if np.isinf(high):
            return f"≥ {low:.3g}" if low else "unknown"
        return f"≤ {high:.3g}"


def share(name: str, marks: Floats, relation: str, limit: float) -> Inequality:
    """Return an inequality for a share of runs.

    `marks` has one number per run: 1 if the event occurs, 0 if it does not, or a share within the
    run.
    """
    values = bootstrap_means(marks)
    return Inequality(name, values, relation, limit, n_runs=len(marks))


# Estimates of times on a panel


@dataclass(frozen=True, eq=False)
class Estimates:
    """A statistic of the times on a panel, with its bootstrap resamples.

    Methods return arrays with the point estimate and its resamples on the first axis.

    Attributes
    ----------
    panel : Panel
        The panel.
    statistic : str
        "median" or "mean".
    where : str
        The description of panel and statistic, which is a prefix of the names of inequalities.
    curves : Curves
        The times.
    values : ndarray, shape (1 + resamples, n_updates, n_positions)
        The statistic.
    """

    panel: Panel
    statistic: str
    where: str
    curves: Curves
    values: Floats

    def curve(self, update: str) -> Floats:
        """Return the curve of an update over the positions of the panel."""
        return curve_of(self.values, update)

    def best(self, update: str) -> Floats:
        """Return the smallest value of an update over the positions of the panel."""
        return best_of(self.values, update)

    def fastest(self, updates: Sequence[str]) -> Floats:
        """Return the smallest of the best values of several updates."""
        return np.asarray(best_of_each(self.values, updates).min(axis=0))

    def slowest(self, updates: Sequence[str]) -> Floats:
        """Return the largest of the best values of several updates."""
        return np.asarray(best_of_each(self.values, updates).max(axis=0))

    def at(self, update: str, step_size: float) -> Floats:
        """Return the value of an update at a step size."""
        return value_at(self.values, self.curves, update, step_size)

    def over_best(self, update: str, step_size: float) -> Floats:
        """Return bounds on the value of an update at a step size, divided by its best value."""
        return ratio_bounds(self.at(update, step_size), self.best(update), self.curves.cap)

    def above(
        self, name: str, values: Floats, limit: float = 1.0, ratio: bool = True
    ) -> Inequality:
        """Return the inequality ``values > limit``."""
        return Inequality(f"{self.where}: {name}", values, ">", limit, ratio)

    def below(self, name: str, values: Floats, limit: float) -> Inequality:
        """Return the inequality ``values < limit``."""
        return Inequality(f"{self.where}: {name}", values, "<", limit)


def estimates(table: Runs, *panels: str, label: str = "") -> Iterator[Estimates]:
    """Yield the medians and the means of each panel, for each value of beta.

    The label is a format string with attributes of the panel. By default it shows beta, or the
    scheme if the panel has no beta.
    """
    for panel in panels:
        for (estimate,) in estimates_together(table, panel):
            words = label or ("{scheme}" if estimate.panel.beta is None else "β={beta}")
            yield replace(
                estimate, where=f"{words.format(**vars(estimate.panel))}, {estimate.statistic}"
            )


def estimates_together(table: Runs, *panels: str) -> Iterator[list[Estimates]]:
    """Yield the medians of the panels together, and then their means, for each value of beta."""
    for names in with_both_betas(table, *panels):
        for statistic, curves, values in median_and_mean(table, *names):
            each = zip(names, curves, values, strict=True)
            yield [Estimates(PANELS[name], statistic, statistic, c, v) for name, c, v in each]


def with_both_betas(table: Runs, *panels: str) -> list[tuple[str, ...]]:
    """Return the names of panels, and of the same panels with beta = 0.7 if the table has them."""
    twins = tuple(f"{name}/beta=0.7" for name in panels)
    return [panels, twins] if all(map(results_of(table).has, twins)) else [panels]


# From inequalities to the status


def sentence(claim: str, **options: Any) -> Callable[[Callable[..., Iterable[Inequality]]], Check]:
    """Return a decorator that turns a function with the inequalities of a sentence into a check.

    The options are fields of `Check`, such as `wrong`.
    """

    def decorate(inequalities: Callable[..., Iterable[Inequality]]) -> Check:
        @wraps(inequalities)
        def judge(compare: Recorder, **arguments: Any) -> Status:
            return decide(compare, list(inequalities(**arguments)))

        return Check(claim, judge, **options)

    return decorate


def decide(compare: Recorder, inequalities: Sequence[Inequality], **figures: Any) -> Status:
    """Record each inequality as a comparison, and return the status of the sentence.

    The function reports the given `figures`; the number of inequalities (``parts``); the numbers of
    inequalities that are ``held``, ``refuted`` and ``undecided``, and that the point estimate
    satisfies (``met``); the smallest (``least``) and the largest (``most``) of their numbers; and
    the ``value`` of the worst inequality, with its interval from ``low`` to ``high``. Refuted
    inequalities are worse than undecided ones, and these are worse than inequalities that hold.
    """
    worst = min(
        inequalities, key=lambda each: ((False, None, True).index(each.holds()), each.margin)
    )
    for each in inequalities:
        compare.estimate(
            each.name,
            each.relation,
            each.number,
            each.limit,
            slack=each.margin,
            holds=each.holds(),
            sharpness=each.sharpness,
            limit=f"{each.limit:g}",
            at={"interval of 95 %": each.span}
            | (_other_statuses(inequalities) if each is worst else {}),
        )
    held, refuted = count(inequalities, True), count(inequalities, False)
    low, high = worst.interval()
    compare.report(
        parts=len(inequalities),
        held=held,
        refuted=refuted,
        undecided=len(inequalities) - held - refuted,
        met=sum(each.met for each in inequalities),
        **{"least": least(inequalities), "most": most(inequalities)},
        **{
            "value": three_digits(worst.value),
            "low": three_digits(low),
            "high": three_digits(high),
        },
    )
    compare.report(**figures)
    return status_of(inequalities)


def status_of(inequalities: Sequence[Inequality], level: float = LEVEL) -> Status:
    """Return the status that follows from intervals with the given confidence level."""
    outcomes = {each.holds(level) for each in inequalities}
    if outcomes == {True}:
        return Status.REPRODUCED
    if False not in outcomes and all(each.met for each in inequalities):
        return Status.UNDECIDED
    if outcomes == {None}:
        return Status.OPEN
    return Status.PARTLY if True in outcomes else Status.NOT_REPRODUCED


def _other_statuses(inequalities: Sequence[Inequality]) -> dict[str, str]:
    """Return the status for narrower and wider intervals if it differs from the status at 95 %."""
    statuses = {level: status_of(inequalities, level) for level in (0.90, 0.99)}
    return {
        f"status with intervals of {100 * level:.0f} %": str(status)
        for level, status in statuses.items()
        if status != status_of(inequalities)
    }


# Figures for sentences


def count(inequalities: Iterable[Inequality], outcome: bool | None = True) -> int:
    """Return the number of inequalities for which `holds` returns `outcome`."""
    return sum(each.holds() is outcome for each in inequalities)


def least(inequalities: Iterable[Inequality]) -> float:
    """Return the smallest known number of the inequalities, or NaN if no number is known."""
    return three_digits(min((each.value for each in inequalities if each.known), default=np.nan))


def most(inequalities: Iterable[Inequality]) -> float:
    """Return the largest known number of the inequalities, or NaN if no number is known."""
    return three_digits(max((each.value for each in inequalities if each.known), default=np.nan))


def three_digits(value: float) -> float:
    """Return a number rounded to three significant digits, as shown in the book."""
    return float(f"{value:.3g}")


def join_labels(updates: Iterable[str]) -> str:
    """Return the labels of updates as text, such as "A, B and C", or "none" if there are none."""
    *most, last = [label_of(update) for update in updates] or ["none"]
    return f"{', '.join(most)} and {last}" if most else last
