"""What a judged claim looks like on a page: a badge, a sentence, and how it was checked, folded."""

from __future__ import annotations

import html
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pu_lib.proved import proofs, theorem_link
from pu_lib.verdict import Check, Verdict, badge
from pu_lib.wording import prose

__all__ = ["Spoken", "box", "listed"]

_ROOM = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Spoken:
    """A judged claim and what is said of it.

    Attributes
    ----------
    number : str
        How the paper numbers the claim.
    sentence : str
        What is said of it, with formulas between dollars.
    verdict : Verdict
        What its check found.
    check : Check or None
        The check; none as long as there is none.
    folded : bool
        Whether the sentence only repeats the claim, so that it opens with the rest.
    """

    number: str
    sentence: str
    verdict: Verdict
    check: Check | None
    folded: bool = False

    @property
    def kind(self) -> str:
        """The classes that give it the colour of its status."""
        return f"verdict verdict-{self.verdict.status.name.lower()}"

    @property
    def line(self) -> str:
        """Badge, number and sentence as HTML; a folded one has its sentence below."""
        said = "" if self.folded else f' <span class="said">{prose(self.sentence)}</span>'
        return f"{badge(self.verdict.status)} <small>{html.escape(self.number)}</small>{said}"

    @property
    def how(self) -> str:
        """How it was checked as HTML: what was measured, what the check refuses, its code."""
        if self.check is None:
            return "<p>There is no check yet.</p>"
        proved = "".join(
            f"<p>Machine-checked: {theorem_link(proof)}.</p>"
            for proof in proofs()
            if proof.theorem in self.verdict.theorems
        )
        said = f"<p>{prose(self.sentence)}</p>" if self.folded else ""
        return (
            f"{said}<p>{prose(self.verdict.found)}</p>{self.verdict.measured()}{proved}"
            f"{_others('The same check refuses', self.check.moved)}"
            f"{_others('It does not notice', self.check.blind)}{_code(self.check)}"
        )


def box(spoken: Spoken) -> str:
    """Return one judged claim; how it was checked opens below its sentence."""
    if spoken.folded:
        return listed([spoken])
    return (
        f'<div class="{spoken.kind}"><p>{spoken.line}</p><details class="how">'
        f"<summary>How this was checked</summary>{spoken.how}</details></div>"
    )


def listed(claims: Iterable[Spoken]) -> str:
    """Return several judged claims, a line each, which opens to how it was checked."""
    lines = "".join(
        f'<details class="{spoken.kind} how"><summary>{spoken.line}</summary>{spoken.how}</details>'
        for spoken in claims
    )
    return f'<div class="verdicts">{lines}</div>'


def _others(head: str, cases: Iterable[str]) -> str:
    """Return claims that are not the one judged, in words."""
    items = "".join(f"<li>{prose(words)}</li>" for words in cases)
    return f'<p class="other">{head}:</p><ul class="other">{items}</ul>' if items else ""


def _code(check: Check) -> str:
    """Return the call that runs a check, and its source."""
    function = inspect.unwrap(check.function)
    source = html.escape(inspect.getsource(function).strip())
    file = Path(inspect.getsourcefile(function) or "").resolve()
    where = file.relative_to(_ROOM) if file.is_relative_to(_ROOM) else file
    return (
        f'<p class="other">Run it with <code>confirm("{html.escape(check.claim)}")</code>.</p>'
        f'<details class="code"><summary><code>{html.escape(function.__name__)}</code> in '
        f'<code>{where.as_posix()}</code></summary><pre tabindex="0">{source}</pre></details>'
    )
