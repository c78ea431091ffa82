"""The claims of the paper and of this book, and the paper's errata, read from the chapters.

Each chapter is a folder of `pu_lib.chapters`. Its ``claims.toml`` has the chapter's title, its
position in the book, its claims with their recorded status, and its errata. The texts of a claim
may contain formulas of the chapter's ``quantities.py`` (see `pu_lib.claims.formulas`).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib import import_module, resources
from types import ModuleType
from typing import Any, TypeVar
from urllib.parse import quote

from pu_lib.arrays import safe_repr
from pu_lib.claims.formulas import Formula, insert_formulas
from pu_lib.claims.recorder import Check, Status
from pu_lib.extras import naming_the_extra
from pu_lib.settings import did_you_mean

__all__ = ["Change", "Claim", "Erratum", "Scope", "Severity", "changes", "chapters", "check_of"]
__all__ += ["changes_of", "errata", "folder_of", "formulas_of", "ledger", "row_address", "select"]


class Scope(StrEnum):
    """The kind of statement that a claim makes."""

    STATEMENT = "statement of the paper"
    PROOF = "step of a proof"
    REMARK = "remark of the paper"
    CELL = "cell of Table 1"
    EXPERIMENT = "sentence on an experiment"
    BOOK = "theorem of this book"


class Severity(StrEnum):
    """The severity of an error in the paper, from the mildest to the gravest."""

    TYPO = "typo"
    SLIP = "slip"
    CONSTANT = "constant"
    HYPOTHESIS = "missing hypothesis"
    IDEA = "idea"


@dataclass(frozen=True)
class Claim:
    """A claim of the paper or of this book.

    Attributes
    ----------
    id : str
        The paper's LaTeX label, followed by ``/i``, ``/ii`` and so on for parts of a statement; for
        a claim of this book, ``<chapter>:<name>``.
    number : str
        The number in the paper, for instance ``Theorem 4(i)``; for a claim of this book, a title
        that ends in ``(this book)``.
    section : str
        The section of the paper.
    chapter : str
        The chapter of the book that judges the claim, one of `chapters`.
    kind : str
        The kind of statement in the paper, such as proposition, theorem, equation or table.
    statement : str
        The claim as stated in this book, with LaTeX between dollars.
    scope : Scope
        The kind of statement that the claim makes; in ``claims.toml`` the lower-case name of a
        member of `Scope`, such as ``book``.
    status : Status
        The recorded status.
    severity : Severity or None
        The severity of the error, or None if the claim holds as printed; in ``claims.toml`` the
        lower-case name of a member of `Severity`.
    wrong : str
        The error in the claim; empty if the claim holds as stated.
    correction : str
        The corrected claim; empty if the claim holds as stated.
    sentence : str
        The book's sentence about the claim, with names of figures in braces (`Finding.figures`).
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


def row_address(claim: Claim) -> str:
    """Return the address of a claim's row, which stands on a page of the ledger."""
    return f"ledger-{claim.chapter}.html#{quote(claim.id, safe=':/')}"


@dataclass(frozen=True)
class Erratum:
    """An erratum of the paper.

    Attributes
    ----------
    where, printed, right, why : str
        The place in the paper, the printed text, the corrected text, and the reason.
    kind : str
        The part of the paper with the error: statement, proof, caption, label or text.
    severity : Severity
        The severity of the error.
    chapter : str
        The chapter of the book that discusses the erratum.
    claim : str
        The identifier of the claim that the erratum is about; empty if there is none.
    """

    where: str
    printed: str
    right: str
    why: str
    kind: str
    severity: Severity
    chapter: str
    claim: str = ""


@dataclass(frozen=True)
class Change:
    """A change of a criterion after its result had been seen.

    Attributes
    ----------
    commit, when : str
        The commit or version with the change, and its date.
    claims : tuple of str
        The identifiers of the claims that are judged by the criterion; empty if there are many.
    old, new : str
        The criterion before and after the change.
    before, after : str
        The status by either criterion; empty if `claims` is.
    """

    commit: str
    when: str
    claims: tuple[str, ...]
    old: str
    new: str
    before: str = ""
    after: str = ""


_FOLDERS = {"table-1": "table1"}
"""Folders of chapters whose names differ from the notebook's name."""


def folder_of(chapter: str) -> str:
    """Return the name of a chapter's folder in `pu_lib.chapters`."""
    return _FOLDERS.get(chapter, chapter.replace("-", "_"))


def _chapter_in(folder: str) -> str:
    """Return the name of the chapter in a folder."""
    names = {there: name for name, there in _FOLDERS.items()}
    return names.get(folder, folder.replace("_", "-"))


_Member = TypeVar("_Member")


def _members(module: ModuleType, kind: type[_Member]) -> dict[str, _Member]:
    return {name: member for name, member in vars(module).items() if isinstance(member, kind)}


@cache
def _tables() -> tuple[dict[str, Any], ...]:
    """Return the parsed ``claims.toml`` files of all chapters, in the order of the book."""
    folders = (resources.files("pu_lib") / "chapters").iterdir()
    tables = [
        _table(_chapter_in(folder.name), file.read_text("utf-8"))
        for folder in folders
        if (file := folder / "claims.toml").is_file()
    ]
    return tuple(sorted(tables, key=lambda table: int(table["order"])))


def _table(chapter: str, text: str) -> dict[str, Any]:
    """Parse the text of a ``claims.toml`` file, with its formulas replaced by their LaTeX."""
    table = {"chapter": chapter, **tomllib.loads(text)}
    if "<<" in text:
        formulas = formulas_of(chapter)
        for row in (*table.get("claim", ()), *table.get("erratum", ())):
            row.update({name: _filled(chapter, entry, formulas) for name, entry in row.items()})
    return table


def formulas_of(chapter: str) -> dict[str, Formula]:
    """Return the formulas in the ``quantities`` module of a chapter by name."""
    with naming_the_extra():
        module = import_module(f"pu_lib.chapters.{folder_of(chapter)}.quantities")
    return _members(module, Formula)


def _filled(chapter: str, text: str, formulas: Mapping[str, Formula]) -> str:
    try:
        return insert_formulas(text, formulas)
    except ValueError as error:
        raise ValueError(f"chapters/{folder_of(chapter)}/claims.toml: {error}") from None


@cache
def chapters() -> dict[str, str]:
    """Return a dict from the name of each chapter with claims to its title, in the book's order.

    A chapter is ``book/<name>.ipynb`` and a folder of `pu_lib.chapters` with its claims,
    quantities, checks and figures. The folder's name has ``_`` in place of ``-``; the folder of
    ``book/table-1.ipynb`` is ``table1``.
    """
    return {table["chapter"]: table["title"] for table in _tables()}


@cache
def ledger() -> tuple[Claim, ...]:
    """Return every claim, in the order of the chapters.

    Returns
    -------
    tuple of Claim
        The claims.

    Raises
    ------
    ValueError
        If two claims share an identifier, or a scope, status or severity is unknown.

    Examples
    --------
    >>> next((c.number, c.status.value) for c in ledger() if c.id == "thm:domino/ii")
    ('Theorem 6(ii)', 'holds with a correction')
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
    """Return the `Claim` in a row of a ``claims.toml`` file."""
    with _naming_the_row(chapter, row.get("id")):
        scope = Scope[row["scope"].upper()]
        severity = Severity[row["severity"].upper()] if "severity" in row else None
        read = {"chapter": chapter, "scope": scope, "severity": severity}
        return Claim(**{**row, **read, "status": Status(row["status"])})


@contextmanager
def _naming_the_row(chapter: str, name: str | None) -> Iterator[None]:
    """Raise errors about a row of a chapter's ``claims.toml`` with the name of the row."""
    where = f"chapters/{folder_of(chapter)}/claims.toml: {name!r}"
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{where}: {error} is missing or unknown.") from None
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where}: {error}") from None


@cache
def errata() -> tuple[Erratum, ...]:
    """Return every erratum, in the order of the chapters."""
    return tuple(
        _erratum(table["chapter"], row) for table in _tables() for row in table.get("erratum", [])
    )


def _erratum(chapter: str, row: dict[str, Any]) -> Erratum:
    """Return the `Erratum` in a row of a ``claims.toml`` file."""
    with _naming_the_row(chapter, row.get("where")):
        severity = Severity[row["severity"].upper()]
        return Erratum(**{**row, "chapter": chapter, "severity": severity})


@cache
def changes(chapter: str) -> tuple[Change, ...]:
    """Return the changes of criteria in a chapter, the oldest first."""
    return tuple(
        Change(**{**row, "claims": tuple(row["claims"])})
        for table in _tables()
        if table["chapter"] == chapter
        for row in table.get("change", [])
    )


def changes_of(claim: Claim) -> tuple[Change, ...]:
    """Return the changes of a criterion before which a claim had another status than now."""
    return tuple(
        change
        for change in changes(claim.chapter)
        if claim.id in change.claims and change.before != claim.status.value
    )


def select(names: Iterable[str]) -> tuple[Claim, ...]:
    """Return the claims with the given names; all claims if there are no names.

    A name is an identifier (``thm:unlearn/i``), the head of an identifier (``thm:unlearn``), a
    chapter (``unlearning``), or a number in the paper in any case (``Theorem 4``,
    ``Theorem 4(i)``). A head, a chapter or a number selects all claims in it. Any other name raises
    a `ValueError`.
    """
    names = list(names)
    if not names:
        return ledger()
    chosen: dict[str, Claim] = {}
    for name in names:
        matches = [c for c in ledger() if c.id == name or c.id.startswith(f"{name}/")]
        matches = matches or [c for c in ledger() if c.chapter == str(name).lower()]
        matches = matches or [c for c in ledger() if _is_numbered(c, str(name))]
        if not matches:
            raise ValueError(
                f"claim: unknown {safe_repr(name)}{did_you_mean(name, _accepted_names())} Give an "
                "identifier, the head of one, a chapter or a number of the paper; "
                "`python -m pu_lib claims --list` lists them all."
            )
        chosen.update({claim.id: claim for claim in matches})
    return tuple(chosen.values())


def _accepted_names() -> list[str]:
    """Return all names that `select` accepts."""
    names: dict[str, None] = dict.fromkeys(chapters())
    for claim in ledger():
        parts = claim.id.split("/")
        names |= dict.fromkeys("/".join(parts[: n + 1]) for n in range(len(parts)))
        names |= dict.fromkeys((claim.number, claim.number.partition("(")[0]))
    return list(names)


def _is_numbered(claim: Claim, number: str) -> bool:
    """Return whether a claim has the given number, or belongs to the statement with that number."""
    wanted = rf"{re.escape(number.strip())}(?!\w)"
    return bool(number.strip()) and re.match(wanted, claim.number, re.IGNORECASE) is not None


def check_of(claim: Claim) -> Check:
    """Return the `Check` of a claim from the checks of its chapter.

    Raises a `ValueError` if the chapter has no check of the claim.
    """
    checks = _checks(claim.chapter)
    if claim.id not in checks:
        module = f"pu_lib.chapters.{folder_of(claim.chapter)}.checks"
        raise ValueError(f"{module} has no function decorated with @check({claim.id!r}).")
    return checks[claim.id]


@cache
def _checks(chapter: str) -> dict[str, Check]:
    """Return a dict from claim identifiers to the checks in the chapter's ``checks`` module."""
    with naming_the_extra():
        module = import_module(f"pu_lib.chapters.{folder_of(chapter)}.checks")
    several = (many for many in _members(module, tuple).values())
    all_checks = [*_members(module, Check).values()]
    all_checks += [one for many in several for one in many if isinstance(one, Check)]
    checks = {one.claim: one for one in all_checks}
    if len(checks) < len(all_checks):
        raise ValueError(f"{module.__name__}: two checks of one claim.")
    return checks
