"""The machine-checked theorems beside the claims they prove, as a part of a page."""

from __future__ import annotations

import html

from pu_lib.claims import ledger
from pu_lib.proved import Proof, proofs, version
from pu_lib.show.ledger import Html, prose

__all__ = ["proof_list"]


def proof_list() -> Html:
    """Return each theorem: what the book says, what Rocq has proved, what that rests on."""
    return Html("".join(_proof(proof) for proof in proofs()))


def _proof(proof: Proof) -> str:
    statements = {claim.id: claim for claim in ledger()}
    claims = [statements[claim] for claim in proof.claims]
    says = "".join(
        f'<p><a href="{claim.chapter}.html">{html.escape(claim.number)}</a> '
        f"<code>{html.escape(claim.id)}</code>: {prose(claim.statement)}"
        + (f" <em>{prose(claim.correction)}</em>" if claim.correction else "")
        + "</p>"
        for claim in claims
    )
    axioms = ", ".join(
        f"<code>{html.escape(name.split('.')[-1])}</code>" for name in proof.assumptions
    )
    return (
        f'<section class="machine-checked" id="{html.escape(proof.theorem)}">'
        f"<h3><code>{html.escape(proof.theorem)}</code></h3>"
        f"{says}<p>What is proved: {html.escape(proof.covers)}</p>"
        f'<pre tabindex="0">{html.escape(proof.statement)}</pre>'
        f'<p class="machine-foot"><code>{html.escape(proof.file)}</code>, Rocq '
        f"{html.escape(version())}; it rests on {axioms}.</p></section>"
    )
