"""Checks of claims: a check makes comparisons, and a recorder stores the worst comparisons.

A check is a function decorated with the identifier of its claim. The function receives a
`Recorder` and compares values with bounds:

>>> @check("thm:example", wrong={"the square in place of the double": {"power": 2}})
... def doubling_is_fast(compare, power=1):
...     for n in (1, 2, 3):
...         compare.at_most("steps", n**power + 1, 2 * n, at={"n": n})
>>> finding = doubling_is_fast.run()
>>> finding.status, finding.margin
(<Status.HOLDS: 'holds'>, 0.0)
>>> finding.tallies[0].worst[0].instance
{'n': 1}
>>> doubling_is_fast.run("the square in place of the double").status
<Status.FALSE: 'false as stated'>

The recorder receives both sides of every comparison. It therefore measures how much a bound could
be tightened before the check fails (`Tally.sharpness`) and how often a comparison holds with
equality. Both numbers are recorded with the claim, so that a bound that is weakened by mistake
changes the record. The `wrong` variants of a check are other false claims (with another update or
without a hypothesis): the check runs the same function with other arguments, and the finding must
not have the recorded status.

There is no global state: checks are attributes of their module, and each run has its own recorder.
Checks may therefore be run by several threads. The precision of python-flint is global to a
process, so the threads take turns (`pu_lib.exact.precision`): checks run in parallel only in
separate processes.
"""

from __future__ import annotations

import math
import time
from bisect import insort
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from types import MappingProxyType
from typing import Any, TypedDict, Unpack

import numpy as np

from pu_lib.arrays import underflow_to_zero
from pu_lib.exact import precision

__all__ = ["Check", "Comparison", "Finding", "Recorder", "Status", "Tally", "check"]

KEPT_COMPARISONS = 6
"""The number of worst comparisons that a tally stores."""

LISTED_INPUTS = 12
"""The largest number of inputs with one name that a finding lists."""

_INPUT_DIGITS = 6  # significant; inputs that differ by rounding are one input

_EXACT = (bool, int, Fraction, str)
_BITS = 53  # of floats; the precision of balls where a check sets no other

TOLERANCE = 1e-9
"""Bounds below this are tolerances for rounding errors. By how much a tolerance could be tightened
depends on the processor, so tolerances have no sharpness."""


class Status(StrEnum):
    """The possible results of a check."""

    HOLDS = "holds"
    CONSISTENT = "consistent"
    CORRECTED = "holds with a correction"
    FALSE = "false as stated"
    OPEN = "open"
    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    UNDECIDED = "undecided"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True)
class Comparison:
    """A comparison of a value with a limit.

    Attributes
    ----------
    slack : float
        The amount by which the comparison holds; negative if it fails.
    value, limit : object
        The two sides of the comparison.
    instance : mapping of str to object
        The instance on which the comparison was made.
    note : mapping of str to object
        Other results for the instance, which the claim's sentence may name.
    holds : bool or None
        Whether the comparison holds; None if the data do not decide (see `Recorder.estimate`).
    """

    slack: float
    value: Any
    limit: Any
    instance: Mapping[str, Any]
    note: Mapping[str, Any]
    holds: bool | None

    @property
    def rank(self) -> tuple[int, float]:
        """A sort key that orders comparisons by failed, undecided and true, then by slack."""
        return {False: 0, None: 1, True: 2}[self.holds], self.slack


@dataclass
class Tally:
    """All comparisons of one quantity with one limit.

    Attributes
    ----------
    quantity, relation, limit : str
        The quantity, the relation and the limit that are compared.
    as_printed : bool
        Whether the comparisons test the claim as printed, if the claim is corrected.
    comparisons, failures : int
        The numbers of comparisons and of comparisons that fail.
    undecided : int
        The number of comparisons that the data do not decide.
    attained : int
        The number of comparisons of exact numbers that hold with equality.
    sharpness : float
        The smallest slack of a comparison relative to its limit: 0 if a comparison holds with
        equality, 0.5 if half the limit would still hold, infinite for limits of zero and for
        tolerances.
    worst : list of Comparison
        The comparisons with the least slack, the worst first.
    """

    quantity: str
    relation: str
    limit: str
    as_printed: bool
    comparisons: int = 0
    failures: int = 0
    undecided: int = 0
    attained: int = 0
    sharpness: float = math.inf
    worst: list[Comparison] = field(default_factory=list)

    @property
    def compared(self) -> str:
        """The quantity, the relation and the limit as one phrase."""
        return f"{self.quantity} {self.relation} {self.limit}"

    def add(self, comparison: Comparison, relative_slack: float) -> None:
        """Count a comparison, and store the comparison if it is one of the worst."""
        exact = isinstance(comparison.value, _EXACT) and isinstance(comparison.limit, _EXACT)
        self.comparisons += 1
        self.failures += comparison.holds is False
        self.undecided += comparison.holds is None
        self.attained += exact and comparison.slack == 0
        self.sharpness = min(self.sharpness, relative_slack)
        # Of equal slacks the first stays first.
        insort(self.worst, comparison, key=lambda stored: stored.rank)
        del self.worst[KEPT_COMPARISONS:]


class _EndOfRun(Exception):  # noqa: N818
    """Raised to end a run early if a comparison fails or a requirement is not met."""


class Details(TypedDict, total=False):
    """Keyword arguments of every comparison besides the two sides.

    `at` is the instance, and `limit` is a name for the right side. `as_printed` marks comparisons
    that test a corrected claim as the paper prints it. `note` has further results that the claim's
    sentence may name.
    """

    at: Mapping[str, Any]
    limit: str
    as_printed: bool
    note: Mapping[str, Any]


class Recorder:
    """The comparisons of one run of a check.

    Parameters
    ----------
    stop_at_failure : bool
        Whether to end the run at the first failure of a comparison that is not `as_printed`.

    Attributes
    ----------
    tallies : dict
        The tallies, with keys (quantity, relation, limit, as_printed).
    figures : dict of str to object
        Numbers reported for the claim's sentence.
    instances : set of str
        The distinct instances on which the (corrected) claim was tested.
    inputs : dict of str to set
        The values of all instances (`at`) by name, as numbers with few digits or as words.
    open_because : str
        The reason why nothing can be concluded; empty unless a requirement was not met.
    """

    def __init__(self, stop_at_failure: bool = False) -> None:
        self.tallies: dict[tuple[str, str, str, bool], Tally] = {}
        self.figures: dict[str, Any] = {}
        self.instances: set[str] = set()
        self.inputs: dict[str, set[float | str]] = {}
        self.open_because = ""
        self._stop = stop_at_failure

    def at_most(
        self,
        quantity: str,
        value: Any,
        bound: Any,
        *,
        in_logs: bool = False,
        **details: Unpack[Details],
    ) -> None:
        """Compare value <= bound; with `in_logs` both are logarithms.

        Raises a `ValueError` if the difference is not a number.
        """
        slack = math.inf if _is_infinite(bound) else _lower_end(bound - value)
        relative = -math.expm1(-slack) if in_logs else _relative(slack, bound)
        self._add((quantity, "≤"), value, bound, slack, relative, slack >= 0, **details)

    def at_least(
        self,
        quantity: str,
        value: Any,
        bound: Any,
        *,
        in_logs: bool = False,
        **details: Unpack[Details],
    ) -> None:
        """Compare value >= bound; with `in_logs` both are logarithms.

        Raises a `ValueError` if the difference is not a number.
        """
        slack = math.inf if _is_infinite(value) else _lower_end(value - bound)
        relative = math.expm1(min(slack, 700.0)) if in_logs else _relative(slack, bound)
        self._add((quantity, "≥"), value, bound, slack, relative, slack >= 0, **details)

    def equal(
        self,
        quantity: str,
        value: Any,
        expected: Any,
        *,
        tolerance: float | None = None,
        **details: Unpack[Details],
    ) -> None:
        """Compare numbers or sequences, exactly or up to a tolerance.

        The slack is minus the number of entries that differ or, with a tolerance, the tolerance
        minus the largest difference. Raises a `ValueError` if the lengths differ or a
        difference is not a number.
        """
        if tolerance is None:
            slack = -float(_count_differences(value, expected))
        else:
            slack = tolerance - float(np.max(np.abs(np.subtract(value, expected))))
        self._add((quantity, "="), value, expected, slack, math.inf, slack >= 0, **details)

    def true(self, quantity: str, condition: Any, **details: Unpack[Details]) -> None:
        """Require that a condition is true."""
        slack = 0.0 if condition else -1.0
        details = {"limit": "true", **details}
        self._add((quantity, "is"), bool(condition), True, slack, math.inf, slack >= 0, **details)

    def estimate(
        self,
        quantity: str,
        relation: str,
        value: Any,
        bound: Any,
        *,
        slack: float,
        holds: bool | None,
        sharpness: float = math.inf,
        **details: Unpack[Details],
    ) -> None:
        """Compare an estimate with a bound; its error may leave the result undecided.

        `slack` is the slack of the estimate itself. `holds` is whether the comparison holds for the
        whole interval of the estimate, or None if the interval contains the bound. `sharpness` is
        the distance from the bound to the nearer end of the interval, relative to the bound.

        Raises
        ------
        ValueError
            If the slack is not a number.
        """
        self._add((quantity, relation), value, bound, slack, sharpness, holds, **details)

    def require(self, condition: Any, reason: str) -> None:
        """End the run and leave the claim open, for the given reason, unless a condition is met."""
        if not condition:
            self.open_because = reason
            raise _EndOfRun

    def report(self, **figures: Any) -> None:
        """Store numbers for the claim's sentence that do not belong to a single comparison."""
        self.figures.update(figures)

    def _add(
        self,
        compared: tuple[str, str],
        value: Any,
        bound: Any,
        slack: float,
        relative: float,
        holds: bool | None,
        *,
        at: Mapping[str, Any] = MappingProxyType({}),
        limit: str = "the bound",
        as_printed: bool = False,
        note: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        slack += 0.0  # no negative zero
        if math.isnan(slack):
            raise ValueError(
                f"{compared[0]}: cannot compare {value} with {bound} at {dict(at)}: the difference "
                "is not a number."
            )
        key = (*compared, limit, as_printed)
        tally = self.tallies.setdefault(key, Tally(*key))
        tally.add(Comparison(slack, value, bound, at, note, holds), relative)
        for name, entry in at.items():
            self.inputs.setdefault(name, set()).add(_input(entry))
        if not as_printed:
            self.instances.add(repr(at))
            if holds is False and self._stop:
                raise _EndOfRun


def _input(entry: Any) -> float | str:
    """Return an entry of an instance as it is recorded: a number with few digits, or words."""
    try:
        number = Fraction(str(entry))
    except ValueError:
        return str(entry)
    return int(number) if number.denominator == 1 else float(f"{float(number):.{_INPUT_DIGITS}g}")


def _summary(entries: Iterable[float | str]) -> list[float | str]:
    """Return the entries in order, or their number and, if they are numbers, their range."""
    ordered = sorted(entries, key=lambda entry: (isinstance(entry, str), entry))
    if len(ordered) <= LISTED_INPUTS:
        return ordered
    numbers = [entry for entry in ordered if not isinstance(entry, str)]
    return [f"{len(ordered)} values", *(numbers[:1] + numbers[-1:])]


def _is_infinite(number: Any) -> bool:
    return isinstance(number, float) and number == math.inf


def _lower_end(difference: Any) -> float:
    """Return a number, or the lower end of an Arb ball, as a float."""
    return float(difference.lower() if hasattr(difference, "lower") else difference)


def _relative(slack: float, bound: Any) -> float:
    """Return a slack relative to its bound, or infinity if the bound is a tolerance or infinite."""
    size = abs(float(bound))
    return slack / size if TOLERANCE < size < math.inf else math.inf


def _count_differences(value: Any, expected: Any) -> int:
    """Return the number of entries in which two numbers or sequences differ."""
    if not hasattr(value, "__len__") or isinstance(value, str):
        return int(value != expected)
    return sum(_count_differences(a, b) for a, b in zip(value, expected, strict=True))


@dataclass(frozen=True)
class Finding:
    """The result of a check.

    Attributes
    ----------
    status : Status
        The status of the claim.
    tallies : tuple of Tally
        The tallies of the comparisons.
    instances : int
        The number of distinct instances on which the (corrected) claim was tested.
    reported : mapping of str to object
        The numbers that the check reported for the claim's sentence.
    open_because : str
        The reason why nothing could be concluded; empty unless the status is open.
    seconds : float
        The duration of the check in seconds.
    inputs : mapping of str to list
        The values of all instances by name; of many values, their number and their range.

    Examples
    --------
    >>> @check("example")
    ... def steps_are_bounded(compare):
    ...     for n in (1, 2, 3):
    ...         compare.at_most("steps", n, 2 * n, at={"n": n})
    >>> finding = steps_are_bounded.run()
    >>> finding.status.value, float(finding.margin), finding.instance
    ('holds', 1.0, {'n': 1})
    """

    status: Status
    tallies: tuple[Tally, ...] = ()
    instances: int = 0
    reported: Mapping[str, Any] = field(default_factory=dict)
    open_because: str = ""
    seconds: float = 0.0
    inputs: Mapping[str, list[float | str]] = field(default_factory=dict)

    @property
    def deciding(self) -> Tally | None:
        """The tally with the least slack among the tallies that decide the status, or None."""
        printed = self.status in (Status.CORRECTED, Status.PARTLY)
        group = [tally for tally in self.tallies if tally.as_printed == printed] or self.tallies
        return min(group, key=lambda tally: tally.worst[0].rank, default=None)

    @property
    def margin(self) -> float | None:
        """The least slack of the deciding tally, or None if nothing was compared or concluded."""
        tally = self.deciding
        return None if tally is None or self.open_because else tally.worst[0].slack

    @property
    def instance(self) -> dict[str, Any]:
        """The worst instance of the deciding tally."""
        tally = self.deciding
        return {} if tally is None else dict(tally.worst[0].instance)

    @property
    def figures(self) -> dict[str, Any]:
        """The numbers that the claim's sentence may name.

        They are the numbers that the check reported; the instance, the notes and the two sides of
        the worst comparison of the deciding tally (the value under the name of its quantity, the
        limit under ``bound``); the worst values of other quantities under their names; and
        ``instances``, ``comparisons`` and ``margin``.
        """
        figures: dict[str, Any] = {t.quantity: t.worst[0].value for t in self.tallies}
        figures["instances"] = self.instances
        if tally := self.deciding:
            worst = tally.worst[0]
            figures |= {tally.quantity: worst.value, "bound": worst.limit}
            figures |= {"comparisons": tally.comparisons, "margin": worst.slack}
            figures |= {**worst.instance, **worst.note}
        return figures | dict(self.reported)

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" (margin {self.margin:.4g})"
        because = f": {self.open_because}" if self.open_because else ""
        where = ", ".join(f"{name} = {value}" for name, value in self.instance.items())
        decided = f"; {self.deciding.compared}" if self.deciding else ""
        return f"{self.status.value}{margin}{because}{decided}{f' at {where}' if where else ''}"


@dataclass(frozen=True)
class Check:
    """A function that judges a claim, with wrong variants that the function must reject.

    Attributes
    ----------
    claim : str
        The identifier of the claim.
    function : callable
        A function that takes a `Recorder` and makes comparisons. It may return a `Status` if the
        status does not follow from the comparisons that fail.
    wrong : mapping of str to mapping
        Descriptions of wrong variants, each with the arguments that make the function check it.
    arguments : mapping
        Arguments of the function, if several claims use the same function.
    kept, broken, failed : Status
        The status if no comparison fails, if only comparisons as printed fail, and otherwise.
    """

    claim: str
    function: Callable[..., Status | None]
    wrong: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)
    kept: Status = Status.HOLDS
    broken: Status = Status.CORRECTED
    failed: Status = Status.FALSE

    @underflow_to_zero
    def run(self, variant: str | None = None, *, stop_at_failure: bool = False) -> Finding:
        """Judge the claim, or the wrong variant with the given key in `wrong`.

        `stop_at_failure` ends the run at the first comparison that fails, which refutes a
        claim. Raises a `ValueError` if the check makes no comparison and gives no reason.
        """
        recorder, start = Recorder(stop_at_failure), time.perf_counter()
        returned, changes = None, self.wrong[variant] if variant is not None else {}
        with precision(_BITS), suppress(_EndOfRun):
            returned = self.function(recorder, **{**self.arguments, **changes})
        tallies = tuple(recorder.tallies.values())
        if not tallies and not recorder.open_because:
            raise ValueError(f"{self.claim}: the check made no comparison.")
        failed = {tally.as_printed for tally in tallies if tally.failures}
        status = self.failed if False in failed else self.broken if failed else self.kept
        return Finding(
            Status.OPEN if recorder.open_because else returned or status,
            tallies,
            len(recorder.instances),
            recorder.figures,
            recorder.open_because,
            time.perf_counter() - start,
            {name: _summary(entries) for name, entries in recorder.inputs.items()},
        )


def check(claim: str, **options: Any) -> Callable[[Callable[..., Status | None]], Check]:
    """Return a decorator that turns a function into the `Check` of the claim with an identifier.

    The options are fields of `Check`: `wrong`, `arguments`, `kept`, `broken` and `failed`.
    """
    return lambda function: Check(claim, function, **options)
