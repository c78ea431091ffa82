"""The ledger: every claim of the paper, the check that judges it, and the paper's slips.

The claims stand in ``ledger/*.toml``, one file a chapter, each with the status that the book
records. A check is named there as ``module:function``; it takes no argument, returns a `Verdict`,
and is imported only when it runs, so that reading the ledger costs nothing. `judge` runs one check
and says whether its verdict is the recorded one.

What the checks last measured (margin, seconds, the deciding sentence) stands in
``ledger/verdicts.json``, written by ``python -m pu_lib claims --record``; the book's tables show it
and the test suite runs every check again and compares.
"""

from __future__ import annotations

import json
import math
import time
import tomllib
from dataclasses import dataclass
from functools import cache
from importlib import import_module, resources
from typing import Any

from pu_lib.verdict import Status, Verdict

__all__ = [
    "CHAPTERS",
    "Claim",
    "Erratum",
    "Judgement",
    "errata",
    "judge",
    "ledger",
    "record",
    "recorded",
    "select",
]

CHAPTERS = (
    "updates",
    "monotonicity",
    "convergence",
    "cross-entropy",
    "rates",
    "gravity-well",
    "unlearning",
    "domino",
    "stochastic-updates",
    "function-approximation",
    "claims",
    "empirical",
)
"""The chapters that hold claims, in the paper's order; each is ``book/<name>.ipynb``."""


@dataclass(frozen=True)
class Claim:
    """One claim of the paper.

    Attributes
    ----------
    id : str
        The paper's own LaTeX label, with ``/i``, ``/ii`` and so on for its parts.
    number : str
        How the paper numbers it, for instance ``Theorem 4(i)``.
    section : str
        The section of the paper that states it.
    chapter : str
        The chapter of the book that judges it, one of `CHAPTERS`.
    kind : str
        What it is: proposition, theorem, lemma, equation, remark, conjecture, table, empirical...
    statement : str
        What it says, in our words, with LaTeX between dollars.
    status : Status
        The recorded status.
    check : str or None
        ``module:function`` of the check; ``None`` while pending.
    arguments : tuple of str
        What the check is called with, for checks that serve several claims.
    correction : str
        What is right, where the claim does not hold as stated; empty otherwise.
    """

    id: str
    number: str
    section: str
    chapter: str
    kind: str
    statement: str
    status: Status
    check: str | None = None
    arguments: tuple[str, ...] = ()
    correction: str = ""


@dataclass(frozen=True)
class Erratum:
    """One slip of the paper: where it is, what is printed, what is right and why.

    Attributes
    ----------
    where, printed, right, why : str
        Place in the paper, the printed text, the corrected text, and the reason.
    kind : str
        What it touches: statement, proof, caption, label or text.
    chapter : str
        The chapter of the book that treats it.
    claim : str
        The claim it belongs to; empty if none.
    """

    where: str
    printed: str
    right: str
    why: str
    kind: str
    chapter: str
    claim: str = ""


@dataclass(frozen=True)
class Judgement:
    """A claim, what its check found, and whether that is what the ledger records.

    Attributes
    ----------
    claim : Claim
        The claim.
    verdict : Verdict
        What the check returned; pending if there is none yet.
    seconds : float
        Wall time of the check.
    """

    claim: Claim
    verdict: Verdict
    seconds: float

    @property
    def as_recorded(self) -> bool:
        """Whether the verdict has the status that the ledger records."""
        return self.verdict.status == self.claim.status

    def row(self) -> dict[str, Any]:
        """Return the judgement as plain values for JSON.

        JSON has no infinity, so that a margin that is not finite is given as null.
        """
        margin = self.verdict.margin
        return {
            "id": self.claim.id,
            "number": self.claim.number,
            "kind": self.claim.kind,
            "section": self.claim.section,
            "chapter": self.claim.chapter,
            "status": self.verdict.status.value,
            "margin": margin if margin is not None and math.isfinite(margin) else None,
            "seconds": round(self.seconds, 3),
        }


@cache
def _tables() -> tuple[dict[str, Any], ...]:
    """Return the parsed files of the ledger in the order of the chapters."""
    folder = resources.files("pu_lib") / "ledger"
    return tuple(
        {"chapter": chapter, **tomllib.loads(path.read_text(encoding="utf-8"))}
        for chapter in CHAPTERS
        if (path := folder / f"{chapter}.toml").is_file()
    )


@cache
def ledger() -> tuple[Claim, ...]:
    """Return every claim, in the order of the chapters.

    Raises
    ------
    ValueError
        If two claims share an identifier, or a claim without a check is not pending.
    """
    claims = tuple(
        Claim(
            **{
                **row,
                "chapter": table["chapter"],
                "status": Status(row["status"]),
                "arguments": tuple(row.get("arguments", ())),
            }
        )
        for table in _tables()
        for row in table.get("claim", [])
    )
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise ValueError(f"ledger: the identifier {claim.id!r} stands twice.")
        if (claim.check is None) != (claim.status is Status.PENDING):
            raise ValueError(f"ledger: {claim.id!r} must have a check or be pending, not both.")
        seen.add(claim.id)
    return claims


@cache
def errata() -> tuple[Erratum, ...]:
    """Return every slip, in the order of the chapters."""
    return tuple(
        Erratum(**{**row, "chapter": table["chapter"]})
        for table in _tables()
        for row in table.get("erratum", [])
    )


def select(ids: list[str]) -> tuple[Claim, ...]:
    """Return the claims with the given identifiers, and the parts of these; all if none is given.

    Raises
    ------
    ValueError
        If an identifier is neither a claim nor the head of one.
    """
    if not ids:
        return ledger()
    chosen: dict[str, Claim] = {}
    for wanted in ids:
        found = [c for c in ledger() if c.id == wanted or c.id.startswith(wanted + "/")]
        if not found:
            raise ValueError(f"claim: {wanted!r} is not in the ledger; `claims` lists them all.")
        chosen.update({claim.id: claim for claim in found})
    return tuple(chosen.values())


def judge(claim: Claim) -> Judgement:
    """Run the check of a claim.

    Raises
    ------
    ValueError
        If the check answers for another claim.
    """
    if claim.check is None:
        pending = Verdict(claim.id, Status.PENDING, None, "No check yet.")
        return Judgement(claim, pending, 0.0)
    module, _, function = claim.check.partition(":")
    check = getattr(import_module(module), function)
    start = time.perf_counter()
    verdict = check(*claim.arguments)
    seconds = time.perf_counter() - start
    if verdict.claim != claim.id:
        raise ValueError(f"{claim.check} answered for {verdict.claim!r}, not for {claim.id!r}.")
    return Judgement(claim, verdict, seconds)


def _records() -> Any:
    return resources.files("pu_lib") / "ledger" / "verdicts.json"


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return what the checks last measured, by claim.

    Each row is `Judgement.row` with the sentence that decided under ``summary``.
    """
    path = _records()
    if not path.is_file():
        return {}
    return {row["id"]: row for row in json.loads(path.read_text(encoding="utf-8"))}


def record(judgements: list[Judgement]) -> None:
    """Write what the checks measured over what was recorded; other claims keep their rows."""
    rows = dict(recorded())
    for judgement in judgements:
        if judgement.claim.check is not None:
            rows[judgement.claim.id] = {**judgement.row(), "summary": judgement.verdict.summary}
    kept = [rows[claim.id] for claim in ledger() if claim.id in rows]
    _records().write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    recorded.cache_clear()
