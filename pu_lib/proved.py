"""What Rocq has proved: the theorems of the folder ``proofs``, as the last check recorded them.

``make proofs`` compiles the proofs and writes ``ledger/proofs.json``; the tests compare its hash of
the sources with the sources. A claim of the ledger is *machine-checked* if a theorem says all or
part of it; `Proof.covers` says which.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from importlib import resources

__all__ = ["Proof", "proofs", "proofs_of", "version"]


@dataclass(frozen=True)
class Proof:
    """A theorem that Rocq has checked.

    Attributes
    ----------
    theorem, file : str
        Its name, and the file it stands in.
    claims : tuple of str
        The identifiers of the ledger's claims it is about; none for what only the chapters say.
    covers : str
        How much of them it says.
    statement : str
        The statement as Rocq prints it.
    assumptions : tuple of str
        The axioms it rests on: none but those of the classical real numbers.
    """

    theorem: str
    file: str
    claims: tuple[str, ...]
    covers: str
    statement: str
    assumptions: tuple[str, ...]


@cache
def _record() -> dict[str, object]:
    path = resources.files("pu_lib") / "ledger" / "proofs.json"
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


def version() -> str:
    """Return the version of Rocq that checked them."""
    return str(_record()["rocq"])
