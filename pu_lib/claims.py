"""The ledger: every claim of the paper, the check that judges it, and the paper's slips.

The claims stand in ``chapters/*/claims.toml``, one file a chapter with its title and its place in
the order of the book, each claim with the status that the book records. The check of a claim is the
function of ``pu_lib.chapters.<chapter>.checks`` decorated with its identifier; it is imported only
when it runs, so that reading the ledger costs nothing. `judge` runs one check and says whether its
verdict is the recorded one.

What the checks last measured (margin, seconds, the deciding sentence) stands in
``ledger/verdicts.json``, written by ``python -m pu_lib claims --record``; the book's tables show it
and the test suite runs every check again and compares.
"""

from __future__ import annotations

import html
import json
import math
import time
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from importlib import import_module, resources
from typing import Any

from pu_lib.proved import proofs_of
from pu_lib.spoken import Spoken, box, listed
from pu_lib.verdict import CHECKS, Check, Status, Verdict
from pu_lib.wording import figures_in, fill
from pu_lib.wording import words as worded

__all__ = [
    "VERDICTS",
    "Claim",
    "Confirmed",
    "Controls",
    "Erratum",
    "Judgement",
    "Scope",
    "Severity",
    "chapters",
    "check_of",
    "confirm",
    "controls",
    "errata",
    "judge",
    "ledger",
    "record",
    "recorded",
    "select",
    "sentence_of",
]

VERDICTS = "application/vnd.pu-lib.verdicts+json"
"""The kind of data under which an executed notebook holds its verdicts."""


class Scope(StrEnum):
    """What a claim is a claim of."""

    STATEMENT = "statement of the paper"
    PROOF = "step of a proof"
    REMARK = "remark of the paper"
    CELL = "cell of Table 1"
    EXPERIMENT = "sentence on an experiment"
    BOOK = "theorem of this book"


class Severity(StrEnum):
    """How bad it is where a claim is not right as printed."""

    SLIP = "slip"
    CONSTANT = "constant"
    HYPOTHESIS = "missing hypothesis"
    IDEA = "idea"


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
        The chapter of the book that judges it, one of `chapters`.
    kind : str
        What it is: proposition, theorem, lemma, equation, remark, conjecture, table, empirical...
    statement : str
        What it says, in our words, with LaTeX between dollars.
    scope : Scope
        What it is a claim of.
    status : Status
        The recorded status; pending as long as there is no check.
    severity : Severity or None
        How bad it is, where the claim is not right as printed.
    wrong : str
        What is wrong, where the claim does not hold as stated; empty otherwise.
    correction : str
        What is right, where the claim does not hold as stated; empty otherwise.
    sentence : str
        What the book says of it in one sentence, with names in braces that the figures of its
        verdict fill (`pu_lib.wording.fill`).
    """

    id: str
    number: str
    section: str
    chapter: str
    kind: str
    statement: str
    scope: Scope
    status: Status
    severity: Severity | None = None
    wrong: str = ""
    correction: str = ""
    sentence: str = ""


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

    @property
    def figures(self) -> dict[str, str]:
        """What fills the claim's sentence, in words.

        Raises
        ------
        ValueError
            If the verdict has no figure of that name.
        """
        names = figures_in(self.claim.sentence)
        try:
            return {name: worded(self.verdict.figure(name)) for name in names}
        except KeyError as missing:
            known = ", ".join(self.verdict.figures)
            raise ValueError(
                f"{self.claim.id}: its sentence names the figure {missing}, which its verdict "
                f"does not have; it has {known or 'none'}, and '<column> of row <number>'."
            ) from None

    @property
    def sentence(self) -> str:
        """The claim's sentence with the figures of this verdict."""
        return _spoken(self.claim, self.figures)

    @property
    def spoken(self) -> Spoken:
        """What pages show of it."""
        check = None if self.claim.status is Status.PENDING else check_of(self.claim)
        return Spoken(self.claim.number, self.sentence, self.verdict, check, self._repeats)

    @property
    def _repeats(self) -> bool:
        """Whether the sentence says nothing but that a theorem of the book holds.

        The theorem stands above its verdict; only figures that were measured are new there.
        """
        own = self.claim.scope is Scope.BOOK and self.verdict.status is Status.HOLDS
        return own and set(figures_in(self.claim.sentence)) <= {"instances"}

    @property
    def found(self) -> dict[str, Any]:
        """What the check found, in plain values that do not differ from run to run."""
        verdict = self.verdict
        return {
            "id": self.claim.id,
            "status": verdict.status.value,
            "margin": self.row()["margin"],
            "summary": verdict.summary,
            "sentence": self.sentence,
            "counterexample": verdict.counterexample is not None,
        }

    def row(self) -> dict[str, Any]:
        """Return the judgement as plain values for JSON.

        JSON has no infinity, so that a margin that is not finite is given as null.
        """
        margin = self.verdict.margin
        return {
            "id": self.claim.id,
            "number": self.claim.number,
            "kind": self.claim.kind,
            "scope": self.claim.scope.value,
            "severity": None if self.claim.severity is None else self.claim.severity.value,
            "section": self.claim.section,
            "chapter": self.claim.chapter,
            "status": self.verdict.status.value,
            "margin": margin if margin is not None and math.isfinite(margin) else None,
            "seconds": round(self.seconds, 3),
            "machine_checked": list(self.verdict.theorems),
        }


def _spoken(claim: Claim, figures: Mapping[str, str]) -> str:
    """Return the sentence of a claim; what else is said of it, as long as it has none."""
    if not claim.sentence:
        return f"{claim.wrong} {claim.correction}".strip() or claim.statement
    return fill(claim.sentence, figures, claim.id)


def sentence_of(claim: Claim) -> str:
    """Return the sentence of a claim with the figures that its check last found.

    Raises
    ------
    ValueError
        If the sentence names a figure that was not recorded.
    """
    return _spoken(claim, recorded().get(claim.id, {}).get("figures", {}))


@cache
def _tables() -> tuple[dict[str, Any], ...]:
    """Return the parsed files of the ledger in the order of the chapters."""
    folders = (resources.files("pu_lib") / "chapters").iterdir()
    tables = [
        {"chapter": _chapter(folder.name), **tomllib.loads(claims.read_text("utf-8"))}
        for folder in folders
        if (claims := folder / "claims.toml").is_file()
    ]
    return tuple(sorted(tables, key=lambda table: int(table["order"])))


_FOLDERS = {"claims": "table1"}
"""Chapters whose folder has another name than their notebook."""


def folder_of(chapter: str) -> str:
    """Return the name of a chapter's folder in `pu_lib.chapters`."""
    return _FOLDERS.get(chapter, chapter.replace("-", "_"))


def _chapter(folder: str) -> str:
    """Return the name of the chapter with that folder."""
    names = {there: name for name, there in _FOLDERS.items()}
    return names.get(folder, folder.replace("_", "-"))


@cache
def chapters() -> dict[str, str]:
    """Return the titles of the chapters that hold claims, by name, in the book's order.

    Each is ``book/<name>.ipynb`` and, with ``_`` for ``-``, a folder of `pu_lib.chapters` with its
    claims, quantities, checks and figures. The folder of ``book/claims.ipynb`` is ``table1``.
    """
    return {table["chapter"]: table["title"] for table in _tables()}


@cache
def ledger() -> tuple[Claim, ...]:
    """Return every claim, in the order of the chapters.

    Raises
    ------
    ValueError
        If two claims share an identifier, or a scope, status or severity is unknown.
    """
    claims = tuple(
        _claim(table["chapter"], row) for table in _tables() for row in table.get("claim", [])
    )
    seen: set[str] = set()
    for claim in claims:
        if claim.id in seen:
            raise ValueError(f"ledger: the identifier {claim.id!r} stands twice.")
        seen.add(claim.id)
    return claims


def _claim(chapter: str, row: dict[str, Any]) -> Claim:
    """Read one claim; scopes and severities are written by their short names."""
    try:
        scope = Scope[row["scope"].upper()]
        severity = Severity[row["severity"].upper()] if "severity" in row else None
        return Claim(
            **{
                **row,
                "chapter": chapter,
                "scope": scope,
                "status": Status(row["status"]),
                "severity": severity,
            }
        )
    except KeyError as error:
        raise ValueError(
            f"chapters/{folder_of(chapter)}/claims.toml: {row.get('id')!r}: {error} is missing, or none of its words."
        ) from None
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"chapters/{folder_of(chapter)}/claims.toml: {row.get('id')!r}: {error}"
        ) from None


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


def check_of(claim: Claim) -> Check:
    """Return the check of a claim.

    Raises
    ------
    ValueError
        If the module of its chapter has no check of that claim.
    """
    module = f"pu_lib.chapters.{folder_of(claim.chapter)}.checks"
    import_module(module)
    if claim.id not in CHECKS:
        raise ValueError(f"{module} has no function decorated with @check({claim.id!r}).")
    return CHECKS[claim.id]


def _meant(claim: Claim | str) -> Claim:
    """Return the claim itself, or the one of the ledger with that identifier."""
    if isinstance(claim, Claim):
        return claim
    for known in select([claim]):
        if known.id == claim:
            return known
    raise ValueError(f"claim: {claim!r} is the head of several claims; name one of them.")


def judge(claim: Claim | str) -> Judgement:
    """Run the check of a claim.

    Parameters
    ----------
    claim : Claim or str
        A claim of `ledger`, or its identifier.

    Returns
    -------
    Judgement
        The claim with its verdict, pending if there is no check yet, and the seconds it took.

    Raises
    ------
    ValueError
        If there is no such claim, or no check of it.
    """
    claim = _meant(claim)
    if claim.status is Status.PENDING:
        return Judgement(claim, Verdict(Status.PENDING, None, "No check yet.", claim=claim.id), 0.0)
    check = check_of(claim)
    start = time.perf_counter()
    verdict = check.run()
    seconds = time.perf_counter() - start
    theorems = tuple(proof.theorem for proof in proofs_of(claim.id))
    return Judgement(claim, replace(verdict, theorems=theorems), seconds)


@dataclass(frozen=True)
class Confirmed:
    """Claims whose checks found what the ledger records, as notebooks display them.

    Attributes
    ----------
    judgements : tuple of Judgement
        The claims with their verdicts.
    """

    judgements: tuple[Judgement, ...]

    @property
    def evidence(self) -> tuple[dict[str, Any], ...]:
        """The evidence of all verdicts, row by row."""
        return tuple(row for judged in self.judgements for row in judged.verdict.evidence)

    def __str__(self) -> str:
        return "\n".join(
            f"{judged.claim.number}: {judged.verdict.status.value}. {judged.sentence}"
            for judged in self.judgements
        )

    __repr__ = __str__  # what an editor that shows no HTML puts below the cell

    def _repr_html_(self) -> str:
        said = [judged.spoken for judged in self.judgements]
        return box(*said) if len(said) == 1 else listed(said)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the verdicts as data, which a program finds in the executed notebook."""
        return {VERDICTS: [judged.found for judged in self.judgements]}


def confirm(*claims: Claim | str) -> Confirmed:
    """Run the checks of claims and show what they found, if it is what the ledger records.

    Parameters
    ----------
    *claims : Claim or str
        Claims of `ledger`, or their identifiers.

    Returns
    -------
    Confirmed
        Displayed as a badge with a sentence; how it was checked opens below.

    Raises
    ------
    AssertionError
        If a verdict has another status than the ledger records.
    ValueError
        If there is no such claim, or no check of it.
    """
    judgements = tuple(judge(claim) for claim in claims)
    for judged in judgements:
        judged.verdict.require(judged.claim.status)
    return Confirmed(judgements)


@dataclass(frozen=True)
class Controls:
    """What a check makes of claims that are not the one it judges.

    Attributes
    ----------
    claim : Claim
        The claim.
    refused : dict of str to Verdict
        Its verdicts on wrong claims, by what is wrong in them: none is the recorded one.
    unnoticed : dict of str to Verdict
        Its verdicts on claims that it cannot tell from the one it judges, by what is different.
    """

    claim: Claim
    refused: dict[str, Verdict]
    unnoticed: dict[str, Verdict]

    def _repr_html_(self) -> str:
        refused = "".join(
            f"<li>{html.escape(words)}: {html.escape(verdict.summary)}</li>"
            for words, verdict in self.refused.items()
        )
        unnoticed = "".join(f"<li>{html.escape(words)}</li>" for words in self.unnoticed)
        parts = [f"<p>The check refuses what is wrong:</p><ul>{refused}</ul>" if refused else ""]
        parts += [f"<p>It does not notice:</p><ul>{unnoticed}</ul>" if unnoticed else ""]
        return (
            f'<details class="controls"><summary>Controls of <code>{html.escape(self.claim.id)}'
            f"</code></summary>{''.join(parts)}</details>"
        )


def controls(claim: Claim | str) -> Controls:
    """Run the check of a claim on other claims, and return what it says of them.

    Where the claim holds, a wrong one is tried no further than the first instance that breaks it.

    Raises
    ------
    AssertionError
        If it accepts one that is wrong, or notices one that it is said not to.
    ValueError
        If there is no such claim, or no check of it.
    """
    claim = _meant(claim)
    judging = check_of(claim)
    refuse = judging.refute if claim.status is Status.HOLDS else judging.run_moved
    refused = {words: refuse(words) for words in judging.moved}
    unnoticed = {words: judging.run_moved(words) for words in judging.blind}
    for words, verdict in refused.items():
        if verdict.status == claim.status:
            raise AssertionError(f"{claim.id}: the check accepts {words!r}: {verdict.summary}")
    for words, verdict in unnoticed.items():
        if verdict.status != claim.status:
            raise AssertionError(f"{claim.id}: the check notices {words!r}: {verdict.summary}")
    return Controls(claim, refused, unnoticed)


def _records() -> Any:
    return resources.files("pu_lib") / "ledger" / "verdicts.json"


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return what the checks last measured, by claim.

    Each row is `Judgement.row` with the sentence that decided under ``summary``, the same for
    people under ``found``, and under ``figures`` what fills the claim's own sentence.
    """
    path = _records()
    if not path.is_file():
        return {}
    return {row["id"]: row for row in json.loads(path.read_text(encoding="utf-8"))}


def record(judgements: list[Judgement]) -> None:
    """Write what the checks measured over what was recorded; other claims keep their rows."""
    rows = dict(recorded())
    for judgement in judgements:
        if judgement.claim.status is not Status.PENDING:
            rows[judgement.claim.id] = {
                **judgement.row(),
                "summary": judgement.verdict.summary,
                "found": judgement.verdict.found,
                "figures": judgement.figures,
            }
    kept = [rows[claim.id] for claim in ledger() if claim.id in rows]
    _records().write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    recorded.cache_clear()
