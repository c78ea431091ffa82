"""The claims of the paper and of this book, and the paper's slips, as the chapters list them.

Each chapter is a folder of `pu_lib.chapters` whose ``claims.toml`` has the chapter's title, its
place in the order of the book, its claims with the status that the book records, and the errata.
A text may print a formula of the chapter's ``quantities.py`` (`pu_lib.claims.formulas`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module, resources
from types import ModuleType
from typing import Any, TypeVar

from pu_lib.claims.formulas import Formula, insert_formulas
from pu_lib.claims.recorder import Check, Status

__all__ = ["Claim", "Erratum", "Scope", "Severity", "chapters", "check_of", "errata"]
__all__ += ["folder_of", "ledger", "select"]


class Scope(StrEnum):
    """What a claim is a claim of."""

    STATEMENT = "statement of the paper"
    PROOF = "step of a proof"
    REMARK = "remark of the paper"
    CELL = "cell of Table 1"
    EXPERIMENT = "sentence on an experiment"
    BOOK = "theorem of this book"


class Severity(StrEnum):
    """How bad it is if a claim is not right as printed."""

    SLIP = "slip"
    CONSTANT = "constant"
    HYPOTHESIS = "missing hypothesis"
    IDEA = "idea"


@dataclass(frozen=True)
class Claim:
    """One claim.

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
        The recorded status.
    severity : Severity or None
        How bad it is, if the claim is not right as printed.
    wrong : str
        What is wrong, if the claim does not hold as stated; empty otherwise.
    correction : str
        What is right, if the claim does not hold as stated; empty otherwise.
    sentence : str
        What the book says of it in one sentence, with names in braces that stand for figures of its
        finding (`Finding.figures`).
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
    """One slip of the paper.

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


_FOLDERS = {"claims": "table1"}
"""Chapters whose folder has another name than their notebook."""


def folder_of(chapter: str) -> str:
    """Return the name of a chapter's folder in `pu_lib.chapters`."""
    return _FOLDERS.get(chapter, chapter.replace("-", "_"))


def _chapter_in(folder: str) -> str:
    """Return the name of the chapter with that folder."""
    names = {there: name for name, there in _FOLDERS.items()}
    return names.get(folder, folder.replace("_", "-"))


_Member = TypeVar("_Member")


def _members(module: ModuleType, kind: type[_Member]) -> dict[str, _Member]:
    return {name: member for name, member in vars(module).items() if isinstance(member, kind)}


@cache
def _tables() -> tuple[dict[str, Any], ...]:
    """Return the parsed files of all chapters in the order of the book."""
    folders = (resources.files("pu_lib") / "chapters").iterdir()
    tables = [
        _table(_chapter_in(folder.name), file.read_text("utf-8"))
        for folder in folders
        if (file := folder / "claims.toml").is_file()
    ]
    return tuple(sorted(tables, key=lambda table: int(table["order"])))


def _table(chapter: str, text: str) -> dict[str, Any]:
    """Return the parsed file of a chapter; its module is imported only if it prints a formula."""
    table = {"chapter": chapter, **tomllib.loads(text)}
    if "<<" in text:
        module = import_module(f"pu_lib.chapters.{folder_of(chapter)}.quantities")
        formulas = _members(module, Formula)
        for row in (*table.get("claim", ()), *table.get("erratum", ())):
            row.update({name: _filled(chapter, entry, formulas) for name, entry in row.items()})
    return table


def _filled(chapter: str, text: str, formulas: Mapping[str, Formula]) -> str:
    try:
        return insert_formulas(text, formulas)
    except ValueError as error:
        raise ValueError(f"chapters/{folder_of(chapter)}/claims.toml: {error}") from None


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
            raise ValueError(f"claims: the identifier {claim.id!r} is used twice.")
        seen.add(claim.id)
    return claims


def _claim(chapter: str, row: dict[str, Any]) -> Claim:
    """Read one claim; scopes and severities are written by their short names."""
    where = f"chapters/{folder_of(chapter)}/claims.toml: {row.get('id')!r}"
    try:
        scope = Scope[row["scope"].upper()]
        severity = Severity[row["severity"].upper()] if "severity" in row else None
        read = {"chapter": chapter, "scope": scope, "severity": severity}
        return Claim(**{**row, **read, "status": Status(row["status"])})
    except KeyError as error:
        raise ValueError(f"{where}: {error} is missing or unknown.") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


@cache
def errata() -> tuple[Erratum, ...]:
    """Return every slip, in the order of the chapters."""
    return tuple(
        Erratum(**{**row, "chapter": table["chapter"]})
        for table in _tables()
        for row in table.get("erratum", [])
    )


def select(names: Iterable[str]) -> tuple[Claim, ...]:
    """Return the claims with the given names; all claims if none is given.

    Parameters
    ----------
    names : iterable of str
        Identifiers (``thm:unlearn/i``), heads of identifiers (``thm:unlearn``), or numbers of the
        paper (``Theorem 4``, ``Theorem 4(i)``) in any case. A head or a number stands for all its
        parts.

    Raises
    ------
    ValueError
        If a name is none of these.
    """
    names = list(names)
    if not names:
        return ledger()
    chosen: dict[str, Claim] = {}
    for name in names:
        found = [c for c in ledger() if c.id == name or c.id.startswith(f"{name}/")]
        found = found or [c for c in ledger() if _is_numbered(c, str(name))]
        if not found:
            raise ValueError(
                f"claim: {name!r} is neither an identifier, the head of one, nor a number of the "
                "paper; `python -m pu_lib claims --list` lists them all."
            )
        chosen.update({claim.id: claim for claim in found})
    return tuple(chosen.values())


def _is_numbered(claim: Claim, number: str) -> bool:
    """Return whether a claim has that number, or is a part of what has it."""
    wanted = rf"{re.escape(number.strip())}(?!\w)"
    return bool(number.strip()) and re.match(wanted, claim.number, re.IGNORECASE) is not None


def check_of(claim: Claim) -> Check:
    """Return the check of a claim; the checks of its chapter are imported.

    Raises
    ------
    ValueError
        If the chapter has no check of that claim.
    """
    checks = _checks(claim.chapter)
    if claim.id not in checks:
        module = f"pu_lib.chapters.{folder_of(claim.chapter)}.checks"
        raise ValueError(f"{module} has no function decorated with @check({claim.id!r}).")
    return checks[claim.id]


@cache
def _checks(chapter: str) -> dict[str, Check]:
    """Return the checks of a chapter by claim: attributes of its module, or of a tuple there."""
    module = import_module(f"pu_lib.chapters.{folder_of(chapter)}.checks")
    several = (many for many in _members(module, tuple).values())
    found = [*_members(module, Check).values()]
    found += [one for many in several for one in many if isinstance(one, Check)]
    checks = {one.claim: one for one in found}
    if len(checks) < len(found):
        raise ValueError(f"{module.__name__}: two checks of one claim.")
    return checks
