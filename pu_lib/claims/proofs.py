"""The theorems that Rocq has checked, as recorded by the last ``make proofs``.

``make proofs`` compiles the folder ``proofs`` and writes ``proofs.json``; the tests compare the
hash of the sources in that file with the sources. A claim is *machine-checked* if a theorem states
the whole claim. If a theorem states a part of the claim, `Proof.part` names the part.
`Proof.covers` describes the result that is proved.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Proof:
    """A theorem that Rocq has checked.

    Attributes
    ----------
    theorem, title, file : str
        The name in Rocq, the name in the book, and the source file.
    claims : tuple of str
        The identifiers of the claims that the theorem is about.
    part : str
        The part of the claims that the theorem states; empty if it states the whole claims.
    covers : str
        A description of the result in plain English, with formulas between dollars.
    statement : str
        The statement as printed by Rocq.
    assumptions : tuple of str
        The axioms that the proof uses: only axioms of the classical real numbers.
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
    """Return the theorems, in the order of ``proofs.json``."""
    rows = _record()["theorems"]
    assert isinstance(rows, list)
    return tuple(
        Proof(**{**row, "claims": tuple(row["claims"]), "assumptions": tuple(row["assumptions"])})
        for row in rows
    )


def proofs_of(claim: str) -> tuple[Proof, ...]:
    """Return the theorems about the claim with the given identifier."""
    return tuple(proof for proof in proofs() if claim in proof.claims)


def theorem_link(proof: Proof) -> str:
    """Return an HTML link to a theorem, followed by the part of the claim that is proved."""
    name = html.escape(proof.theorem)
    part = f" ({html.escape(proof.part)})" if proof.part else ""
    return f'<a href="machine-checked.html#{name}"><code>{name}</code></a>{part}'


def version() -> str:
    """Return the version of Rocq that checked the theorems."""
    return str(_record()["rocq"])
