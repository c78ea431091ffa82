"""An HTML list of the machine-checked theorems and the claims that they prove."""

from __future__ import annotations

import html

from pu_lib.claims import Scope, ledger
from pu_lib.claims.proofs import Proof, proofs, version
from pu_lib.claims.tables import Html
from pu_lib.formatting import to_html


def proof_list() -> Html:
    """Return an HTML list of the theorems with their claims, statements in Rocq and axioms."""
    return Html("".join(_proof(proof) for proof in proofs()))


def _proof(proof: Proof) -> str:
    statements = {claim.id: claim for claim in ledger()}
    claims = [statements[claim] for claim in proof.claims]
    says = "".join(
        f'<p><a href="{claim.chapter}.html">{html.escape(claim.number)}</a>'
        f"{'' if claim.scope is Scope.BOOK else ', as printed'}: {to_html(claim.statement)}</p>"
        for claim in claims
    )
    axioms = ", ".join(
        f"<code>{html.escape(name.split('.')[-1])}</code>" for name in proof.assumptions
    )
    return (
        f'<section class="machine-checked" id="{html.escape(proof.theorem)}">'
        f"<h3>{html.escape(proof.title)}</h3>{says}"
        f"<p>Proved as <code>{html.escape(proof.theorem)}</code>: {to_html(proof.covers)}</p>"
        f'<pre tabindex="0">{html.escape(proof.statement)}</pre>'
        f'<p class="machine-foot"><code>{html.escape(proof.file)}</code>, Rocq '
        f"{html.escape(version())}; it rests on {axioms}.</p></section>"
    )
