"""The theorems that Rocq has checked, as the last ``make proofs`` recorded them.

``make proofs`` compiles the folder ``proofs`` and writes ``proofs.json``; the tests compare its
hash of the sources with the sources. A claim is *machine-checked* if a theorem states all of it. If
a theorem states a part of it, `Proof.part` names the part. `Proof.covers` describes what is proved.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["Proof", "proofs", "proofs_of", "theorem_link", "version"]


@dataclass(frozen=True)
class Proof:
    """A theorem that Rocq has checked.

    Attributes
    ----------
    theorem, title, file : str
        Name in Rocq, name in the book, and source file.
    claims : tuple of str
        The identifiers of the claims it is about.
    part : str
        The part of these claims that it states; empty if it states all of them.
    covers : str
        What it states, in words, with formulas between dollars.
    statement : str
        The statement as Rocq prints it.
    assumptions : tuple of str
        The axioms it rests on: only those of the classical real numbers.
    """

    theorem: str
    title: str
    file: str
    claims: tuple[str, ...]
    part: str
    covers: str
    statement: str
    assumptions: tuple[str, ...]


@cache
def _record() -> dict[str, object]:
    path = resources.files("pu_lib.claims") / "proofs.json"
    record: dict[str, object] = json.loads(path.read_text(encoding="utf-8"))
    return record


@cache
def proofs() -> tuple[Proof, ...]:
    """Return the theorems, in the order of the list."""
    rows = _record()["theorems"]
    assert isinstance(rows, list)
    return tuple(
        Proof(**{**row, "claims": tuple(row["claims"]), "assumptions": tuple(row["assumptions"])})
        for row in rows
    )


def proofs_of(claim: str) -> tuple[Proof, ...]:
    """Return the theorems about the claim with that identifier."""
    return tuple(proof for proof in proofs() if claim in proof.claims)


def theorem_link(proof: Proof) -> str:
    """Return a link to a theorem on its page, with the part of the claim that it proves."""
    name = html.escape(proof.theorem)
    part = f" ({html.escape(proof.part)})" if proof.part else ""
    return f'<a href="machine-checked.html#{name}"><code>{name}</code></a>{part}'


def version() -> str:
    """Return the version of Rocq that checked the theorems."""
    return str(_record()["rocq"])
