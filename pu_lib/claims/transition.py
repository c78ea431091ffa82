"""Checks that still return a `Verdict`, until every chapter is rewritten."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pu_lib.claims.recorder import Check, Comparison, Finding, Status, Tally
from pu_lib.verdict import CHECKS, Verdict


@dataclass(frozen=True)
class OldFinding(Finding):
    """A verdict as a finding."""

    verdict: Verdict = field(default_factory=lambda: Verdict(Status.HOLDS, None, ""))

    @property
    def margin(self) -> float | None:
        """The margin of the verdict."""
        return self.verdict.margin

    @property
    def figures(self) -> dict[str, Any]:
        """The figures of the verdict, and those of its rows."""
        rows = {
            f"{column} of row {number}": value
            for number, row in enumerate(self.verdict.evidence, start=1)
            for column, value in row.items()
        }
        return {**rows, **self.verdict.figures}


class OldCheck(Check):
    """A check that returns a verdict."""

    def run(self, variant: str | None = None, *, stop_at_failure: bool = False) -> Finding:
        """Run it."""
        old = CHECKS[self.claim]
        if variant is None:
            verdict = old.run()
        else:
            verdict = old.refute(variant) if stop_at_failure else old.run_moved(variant)
        unit = str(verdict.figures.get("quantity", "the margin"))
        tally = Tally(unit, "≥", "0", verdict.status == Status.CORRECTED)
        where = verdict.counterexample or (verdict.evidence[0] if verdict.evidence else {})
        if verdict.margin is not None:
            margin = verdict.margin
            tally.add(Comparison(margin, margin, 0, where, {}, margin >= 0), 1.0)
        count = int(verdict.figures.get("instances", 0))
        tallies = (tally,) if verdict.margin is not None else ()
        return OldFinding(Status(verdict.status.value), tallies, count, verdict=verdict)


def old_checks() -> Mapping[str, Check]:
    """Return the checks that were imported so far."""
    return {
        name: OldCheck(name, old.function, old.moved)  # type: ignore[arg-type]
        for name, old in CHECKS.items()
    }
