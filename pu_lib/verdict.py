"""What a check returns: a status, how far it was from failing, and the evidence.

A claim is never judged by eye. A check computes a *margin*, the worst distance to a violation it
met (positive: it held with room to spare; zero: tight; negative: violated), and returns it in a
`Verdict` together with a small table of evidence and, where the claim is false, a counterexample.

Three tools serve every check:

- `Worst` keeps the instance that comes nearest to breaking a claim, and refuses what is not a
  number;
- `judged` turns the worst instances of the corrected statement, and those that only the printed
  one covers, into a verdict;
- the decorator `check` says which claim of the ledger a function judges, and how far the claim can
  be moved before the function notices:

>>> @check("thm:example", moved={"n + 2 in place of n + 1": {"extra": 2}})
... def check_example(extra: int = 1) -> Verdict:
...     worst = Worst("n' - (n + 1)")
...     for n in range(3):
...         worst.add(1 - extra, n=n)
...     return judged(worst)
>>> CHECKS["thm:example"].run().status
<Status.HOLDS: 'holds'>
>>> CHECKS.pop("thm:example").run_moved("n + 2 in place of n + 1").status
<Status.FALSE: 'false as stated'>
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, TypeVar

from pu_lib.claims.recorder import Status
from pu_lib.wording import lined, number, percent, prose, words

__all__ = ["CHECKS", "Check", "Status", "Verdict", "Worst", "badge", "check", "judged"]


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check.

    Attributes
    ----------
    status : Status
        What the check found.
    margin : float or None
        The worst distance to a violation, in the unit that `summary` names; negative when the
        claim as stated is violated, ``None`` when the claim has no quantity to measure.
    summary : str
        One sentence with the numbers that decide.
    evidence : tuple of dict
        A small table, one dictionary a row, all with the same keys.
    counterexample : dict or None
        The instance on which the claim as stated fails.
    claim : str
        The identifier of the claim in the ledger; filled in when the ledger runs the check.
    theorems : tuple of str
        The machine-checked theorems about it (`pu_lib.claims.proofs`).
    figures : mapping of str to object
        The numbers that a sentence about it may name: those of the deciding instance, ``margin``,
        ``instances`` and what else the check has to say.

    Raises
    ------
    ValueError
        If the margin is not a number.
    """

    status: Status
    margin: float | None
    summary: str
    evidence: tuple[dict[str, Any], ...] = ()
    counterexample: dict[str, Any] | None = field(default=None)
    claim: str = ""
    theorems: tuple[str, ...] = ()
    figures: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.margin is not None and math.isnan(self.margin):
            raise ValueError(f"margin: expected a number, got nan, where {self.summary!r}.")

    def require(self, *statuses: str) -> Verdict:
        """Return the verdict if its status is one of `statuses`.

        Raises
        ------
        AssertionError
            With the summary and the counterexample, if the status is another one.
        """
        wanted = [Status(status) for status in statuses]
        if self.status not in wanted:
            raise AssertionError(
                f"{self.claim or 'This'} should be {' or '.join(wanted)!r} but the check says "
                f"{self.status.value!r}: {self.summary}"
                + (f" Counterexample: {self.counterexample}." if self.counterexample else "")
            )
        return self

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" (margin {self.margin:.4g})"
        head = f"{self.claim}: " if self.claim else ""
        return f"{head}{self.status.value}{margin}. {self.summary}"

    @property
    def found(self) -> str:
        """What was measured, for people: the quantity, its worst value, where, over how many."""
        told = self.figures
        if "quantity" not in told:
            return self.summary
        one, worst = told["instances"] == 1, _extreme(told["quantity"], told["margin"])
        count = words(told["instances"])
        if self.status is Status.FALSE:
            return f"{'Here' if one else f'In the worst of {count} cases'} {worst}."
        cases = {1: "in the case tried", 2: "in both cases"}.get(
            told["instances"], f"in all {count} cases"
        )
        if "corrected quantity" not in told:
            return f"{cases.capitalize()} {worst}."
        kept = _extreme(told["corrected quantity"], told["corrected margin"])
        return f"As printed, {worst}. As corrected, {cases} {kept}."

    def figure(self, name: str) -> Any:
        """Return a figure by its name: one of `figures`, or ``<column> of row <number>``.

        With `` %`` behind its name a share is returned as a percentage.

        Parameters
        ----------
        name : str
            A key of `figures`, or a column of the evidence and a row, counted from one.

        Returns
        -------
        object
            The figure.

        Raises
        ------
        KeyError
            If there is no such figure.
        """
        if name in self.figures:
            return self.figures[name]
        if name.endswith(" %"):
            return percent(self.figure(name.removesuffix(" %")))
        column, _, row = name.rpartition(" of row ")
        if row.isdigit() and 0 < int(row) <= len(self.evidence):
            return self.evidence[int(row) - 1][column]
        raise KeyError(name)

    def _repr_html_(self) -> str:
        return (
            f'<div class="verdict verdict-{self.status.name.lower()}"><p>{badge(self.status)} '
            f'{prose(self.found)}</p><details class="how"><summary>The numbers</summary>'
            f"{self.measured()}</details></div>"
        )

    def measured(self) -> str:
        """Return the counterexample and the evidence as HTML, nothing of it twice."""
        against = f"<p>Counterexample: {prose(words(self.counterexample))}.</p>"
        told = {"margin", *(self.counterexample or ())}
        only = self.evidence[0] if len(self.evidence) == 1 else None
        # The summary names a single part, the counterexample a single instance.
        known = only is not None and ("part" in only or told.issuperset(only))
        return (against if self.counterexample else "") + ("" if known else lined(self.evidence))


def badge(status: Status) -> str:
    """Return a status as the badge that pages show."""
    return f'<span class="verdict-status verdict-{status.name.lower()}">{status.value}</span>'


_NUMBER, _MINUS = r"(\d[\d.]*(?:e-\d+)?)", r",? (?:minus|less) "

_TIED = 1e-8
"""Margins below it are what tolerances leave."""


def _room(_: re.Match[str], margin: float) -> str:
    return "it holds" if margin >= 0 else f"it fails by {number(-margin)}"


def _error(named: re.Match[str], margin: float) -> str:
    allowed = float(named[1])
    value = allowed - margin
    size = "no more than rounding" if value <= 0 else f"at most {number(value)}"
    worst = f"is {size}" if margin >= 0 else f"reaches {number(value)}"
    return f"{named[2]} {worst} (allowed: {number(allowed)})"


def _negated(named: re.Match[str], margin: float) -> str:
    size = "0" if margin == 0 else f"at most {number(-margin)}"
    return f"{named[1]} {f'is {size}' if margin >= 0 else f'reaches {number(-margin)}'}"


def _ratio(named: re.Match[str], margin: float) -> str:
    if 0 <= margin < _TIED:
        return _level(named, margin)
    worst = "at least" if margin >= 0 else "only"
    return f"{named[1]} is {worst} {number(1 + margin)} times {named[2]}"


def _least(named: re.Match[str], margin: float) -> str:
    needed, worst = float(named[2]), "at least" if margin >= 0 else "only"
    return f"{named[1]} is {worst} {number(needed + margin)} (needed: {number(needed)})"


def _lead(named: re.Match[str], margin: float) -> str:
    if margin < 0:
        return f"{named[1]} falls {number(-margin)} short of {named[2]}"
    if margin < _TIED:
        return _level(named, margin)
    return f"{named[1]} exceeds {named[2]} by at least {number(margin)}{named[3] or ''}"


def _level(named: re.Match[str], margin: float) -> str:
    return f"{named[1]} is never below {named[2]}{', up to rounding' if margin else ''}"


def _plain(named: re.Match[str], margin: float) -> str:
    if margin == 0:
        return f"{named[0]} is never negative"
    return f"{named[0]} is {'at least ' if margin >= 0 else ''}{number(margin)}"


_FORMS = tuple(
    (re.compile(form), told)
    for form, told in (
        (r"(?:the |relative )?room\b.*", _room),
        (rf"{_NUMBER} (?:minus|less|-) (.*)", _error),
        (r"minus (.*)", _negated),
        (rf"(.*) over (.*?){_MINUS}1,?", _ratio),
        (rf"(.*?){_MINUS}{_NUMBER},?", _least),
        (rf"(.*?){_MINUS}([^,]*)(, [^,]*)?,?", _lead),
        (r".*", _plain),
    )
)
"""What the name of a margin may be, and how its worst value is told: a room without a name, an
error below what is allowed, something that should be small, a ratio above one, a number above what
is needed, the lead of one thing over another, or just a quantity."""


def _extreme(quantity: str, margin: float) -> str:
    """Say what a worst margin means, in the terms of what it is the margin of."""
    return next(told(named, margin) for form, told in _FORMS if (named := form.fullmatch(quantity)))


class _Broken(Exception):  # noqa: N818
    """An instance that breaks a claim was met, where that is all that is asked for."""

    def __init__(self, worst: Worst) -> None:
        self.worst = worst


class Worst:
    """The instance that comes nearest to breaking a claim, of all that were tried.

    What it measures decides: a check that notes a negative margin cannot say that its claim holds.

    Parameters
    ----------
    unit : str
        What a margin is, for the sentence of the verdict.
    keep : int
        How many of the worst instances to keep as evidence.
    """

    stops: ClassVar[bool] = False  # at the first violated instance; see `Check.refute`
    violated: ClassVar[int] = 0  # instances so far, of all checks

    def __init__(self, unit: str = "the margin", keep: int = 6) -> None:
        self.unit = unit
        self.count = 0
        self._keep = keep
        self._cases: list[tuple[float, dict[str, Any]]] = []

    def add(self, margin: float, **instance: Any) -> None:
        """Note an instance and how far it is from breaking the claim.

        Parameters
        ----------
        margin : float
            The distance: positive if the claim holds there, infinite where nothing can break it.
        **instance
            What the instance is, in values that evidence can hold.

        Raises
        ------
        ValueError
            If the margin is not a number.
        """
        margin = float(margin)
        if math.isnan(margin):
            raise ValueError(f"margin: expected a number, got nan at {_words(instance)}.")
        self.count += 1
        self._cases.append((margin, instance))
        if margin < 0:
            Worst.violated += 1
            if Worst.stops:
                raise _Broken(self)
        if len(self._cases) > 4 * self._keep:
            self._trim()

    def _trim(self) -> None:
        self._cases.sort(key=lambda case: case[0])
        del self._cases[self._keep :]

    @property
    def margin(self) -> float:
        """The smallest margin."""
        return self._worst()[0]

    @property
    def instance(self) -> dict[str, Any]:
        """The instance with the smallest margin."""
        return self._worst()[1]

    @property
    def rows(self) -> tuple[dict[str, Any], ...]:
        """The worst instances with their margins, the worst first."""
        self._trim()
        return tuple({**instance, "margin": margin} for margin, instance in self._cases)

    def _worst(self) -> tuple[float, dict[str, Any]]:
        if not self._cases:
            raise ValueError("a check that tried no instance has no margin.")
        return min(self._cases, key=lambda case: case[0])


def judged(
    ours: Worst,
    printed: Worst | None = None,
    broken: Status = Status.CORRECTED,
    evidence: Sequence[Mapping[str, Any]] = (),
    figures: Mapping[str, Any] | None = None,
) -> Verdict:
    """Turn worst cases into a verdict.

    Parameters
    ----------
    ours : Worst
        Instances of the corrected statement; of the printed one, where nothing is corrected.
    printed : Worst, optional
        Instances that the printed statement covers and the corrected one excludes.
    broken : Status
        The status when an instance of `printed` has a negative margin.
    evidence : sequence of mappings
        The table to show; the worst instances, if it is empty.
    figures : mapping, optional
        More numbers for the sentence of the ledger, by name.

    Returns
    -------
    Verdict
        False if an instance of `ours` is violated; else `broken` if one of `printed` is; else it
        holds.
    """
    table = tuple(dict(row) for row in evidence)
    more = dict(figures or {})
    where = f" (at {_words(ours.instance)})" if ours.instance else ""
    if ours.margin < 0:
        also = ", also as corrected" if printed else ""
        summary = f"Violated{also}: {ours.unit} is {ours.margin:.4g}{where}."
        told = {**_told(ours), **more}
        return Verdict(
            Status.FALSE, ours.margin, summary, table or ours.rows, ours.instance, figures=told
        )
    instances = "1 instance" if ours.count == 1 else f"{ours.count} instances"
    found = f"over {instances} {ours.unit} is at least {ours.margin:.4g}{where}."
    if printed and printed.count and printed.margin < 0:
        summary = f"As printed, {printed.unit} is {printed.margin:.4g}; corrected, {found}"
        kept = {"corrected quantity": ours.unit, "corrected margin": ours.margin}
        told = {**_told(printed), **kept, "instances": ours.count, **more}
        return Verdict(
            broken, printed.margin, summary, table or printed.rows, printed.instance, figures=told
        )
    summary, told = found[0].upper() + found[1:], {**_told(ours), **more}
    return Verdict(Status.HOLDS, ours.margin, summary, table or ours.rows, figures=told)


def _told(worst: Worst) -> dict[str, Any]:
    """Return the deciding instance with what was measured there."""
    measured = {"quantity": worst.unit, "margin": worst.margin, "instances": worst.count}
    return {**worst.instance, **measured}


def _words(instance: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{key} = {value:.6g}" if isinstance(value, float) else f"{key} = {value}"
        for key, value in instance.items()
    )


@dataclass(frozen=True)
class Check:
    """What judges a claim, and how far the claim can be moved before that notices.

    Attributes
    ----------
    claim : str
        The identifier of the claim in the ledger.
    function : callable
        Returns a `Verdict`.
    arguments : mapping
        What the function is called with, where it serves several claims.
    moved : mapping of str to mapping
        Claims that are wrong, in words, and the arguments that make the function check them: it
        must not return the recorded status.
    blind : mapping of str to mapping
        Other claims that the function cannot tell from this one, in words with the reason, and
        their arguments: it returns the recorded status for them too.
    """

    claim: str
    function: Callable[..., Verdict]
    arguments: Mapping[str, Any]
    moved: Mapping[str, Mapping[str, Any]]
    blind: Mapping[str, Mapping[str, Any]]

    def run(self, **changes: Any) -> Verdict:
        """Run the check, with other arguments in place of its own if any are given.

        Raises
        ------
        ValueError
            If it says that the claim holds and has noted an instance that violates it.
        """
        before = Worst.violated
        verdict = self.function(**{**self.arguments, **changes})
        if verdict.status is Status.HOLDS and Worst.violated > before:
            raise ValueError(f"{self.claim}: the check notes a violation and says that it holds.")
        return replace(verdict, claim=self.claim)

    def run_moved(self, words: str) -> Verdict:
        """Run the check on one of the claims in `moved` or `blind`."""
        return self.run(**{**self.moved, **self.blind}[words])

    def refute(self, words: str) -> Verdict:
        """Run the check on one of the claims in `moved`, until an instance breaks that claim.

        One such instance refutes a claim that is said to hold. Whether others are worse, which
        `run_moved` would find, is not asked; where no instance breaks the claim, both are the same.
        """
        Worst.stops = True
        try:
            return self.run_moved(words)
        except _Broken as broken:
            return replace(judged(broken.worst), claim=self.claim)
        finally:
            Worst.stops = False


CHECKS: dict[str, Check] = {}
"""The checks of the modules imported so far, by claim."""

_Function = TypeVar("_Function", bound=Callable[..., Verdict])


def check(
    claim: str,
    moved: Mapping[str, Mapping[str, Any]] | None = None,
    blind: Mapping[str, Mapping[str, Any]] | None = None,
    **arguments: Any,
) -> Callable[[_Function], _Function]:
    """Register a function as the check of a claim (a decorator).

    Parameters
    ----------
    claim, moved, blind, **arguments
        See `Check`. A function may serve several claims: decorate it once for each.

    Returns
    -------
    callable
        The decorator, which returns the function as it is.

    Raises
    ------
    ValueError
        If another function is already the check of that claim.
    """

    def register(function: _Function) -> _Function:
        if claim in CHECKS and CHECKS[claim].function.__qualname__ != function.__qualname__:
            raise ValueError(f"check: {claim!r} is already judged by {CHECKS[claim].function}.")
        CHECKS[claim] = Check(claim, function, arguments, moved or {}, blind or {})
        return function

    return register
