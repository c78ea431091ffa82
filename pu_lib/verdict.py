"""What a check returns: a status, how far it was from failing, and the evidence.

A claim is never judged by eye. A check computes a *margin*, the worst distance to a violation it
met (positive: it held with room to spare; zero: tight; negative: violated), and returns it in a
`Verdict` together with a small table of evidence and, where the claim is false, a counterexample.
"""

from __future__ import annotations

import html
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

__all__ = ["Status", "Verdict"]


class Status(StrEnum):
    """The statuses a claim can have."""

    HOLDS = "holds"
    CORRECTED = "holds with a correction"
    FALSE = "false as stated"
    OPEN = "open"
    REPRODUCED = "reproduced"
    PARTLY = "partly reproduced"
    NOT_REPRODUCED = "not reproduced"
    PENDING = "pending"


@dataclass(frozen=True)
class Verdict:
    """The outcome of one check.

    Attributes
    ----------
    claim : str
        The identifier of the claim in the ledger.
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
    """

    claim: str
    status: Status
    margin: float | None
    summary: str
    evidence: tuple[dict[str, Any], ...] = ()
    counterexample: dict[str, Any] | None = field(default=None)

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
                f"{self.claim} should be {' or '.join(wanted)!r} but the check says "
                f"{self.status.value!r}: {self.summary}"
                + (f" Counterexample: {self.counterexample}." if self.counterexample else "")
            )
        return self

    def __str__(self) -> str:
        margin = "" if self.margin is None else f" (margin {self.margin:.4g})"
        return f"{self.claim}: {self.status.value}{margin}. {self.summary}"

    def _repr_html_(self) -> str:
        parts = [
            f'<div class="verdict verdict-{self.status.name.lower()}">',
            f'<p><strong class="verdict-status">{html.escape(self.status.value)}</strong> '
            f"<code>{html.escape(self.claim)}</code></p>",
            f"<p>{html.escape(self.summary)}</p>",
        ]
        if self.margin is not None:
            parts.append(f"<p>Worst margin: {self.margin:.6g}</p>")
        if self.counterexample:
            items = ", ".join(f"{k} = {_show(v)}" for k, v in self.counterexample.items())
            parts.append(f"<p>Counterexample: {html.escape(items)}</p>")
        if self.evidence:
            parts.append(_table(self.evidence))
        parts.append("</div>")
        return "\n".join(parts)


def _show(value: Any) -> str:
    """Format a table cell: short floats, everything else as it prints."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _table(rows: tuple[dict[str, Any], ...]) -> str:
    head = "".join(f'<th scope="col">{html.escape(str(key))}</th>' for key in rows[0])
    body = "".join(
        "<tr>"
        + "".join(f"<td>{html.escape(_show(value))}</td>" for value in row.values())
        + "</tr>"
        for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
