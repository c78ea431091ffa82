"""What Rocq has proved: the theorems of the folder ``proofs``, as the last check recorded them.

``make proofs`` compiles the proofs and writes ``proofs.json``; the tests compare its hash of the
sources with the sources. A claim of the ledger is *machine-checked* if a theorem says all of
it; where it says a part, `Proof.part` names that, and `Proof.covers` says what is proved.
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
        Its name, what the book calls it, and the file it stands in.
    claims : tuple of str
        The identifiers of the ledger's claims it is about.
    part : str
        The part of these claims that it says; empty if it says all of them.
    covers : str
        What it says, in words, with formulas between dollars.
    statement : str
        The statement as Rocq prints it.
    assumptions : tuple of str
        The axioms it rests on: none but those of the classical real numbers.
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
    """Return the theorems in the order in which they are listed."""
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
    """Return a theorem as a link to its place on the page, with the part that it proves."""
    name = html.escape(proof.theorem)
    part = f" ({html.escape(proof.part)})" if proof.part else ""
    return f'<a href="machine-checked.html#{name}"><code>{name}</code></a>{part}'


def version() -> str:
    """Return the version of Rocq that checked them."""
    return str(_record()["rocq"])
