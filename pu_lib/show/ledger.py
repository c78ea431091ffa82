"""The ledger, the errata and Table 1 as tables of the book, all generated from `pu_lib.claims`.

Each function returns an object that notebooks display as HTML. Formulas between dollars become the
elements that the book's MathJax typesets; links lead to the chapters of the rendered book.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from pu_lib.claims import Claim, chapters, errata, ledger, recorded
from pu_lib.updates import UPDATES
from pu_lib.verdict import Status

__all__ = [
    "AXES",
    "Html",
    "chapter_title",
    "errata_table",
    "ledger_table",
    "prose",
    "statement_index",
    "status_counts",
    "summary",
    "table_1",
]

AXES = {
    "convergence": "Conv. & opt.",
    "rates": "Rates",
    "gravity-well": "Gravity well",
    "unlearning": "Unlearning",
    "stochastic": "Stochastic",
    "deep": "Deep impl.",
}
"""The columns of Table 1, by the last part of a cell's identifier."""


class Html(str):
    """A piece of HTML that notebooks display."""

    def _repr_html_(self) -> str:
        return str(self)


def chapter_title(chapter: str) -> str:
    """Return the title of a chapter."""
    return chapters()[chapter]


def status_counts(claims: Iterable[Claim] | None = None) -> dict[Status, int]:
    """Count the claims by recorded status, in the order of `Status`; unused ones are left out."""
    counts = Counter(claim.status for claim in (ledger() if claims is None else claims))
    return {status: counts[status] for status in Status if counts[status]}


def summary() -> Html:
    """Return the number of claims of each status, as a row of badges."""
    counts = status_counts()
    badges = "".join(
        f"<li><strong>{count}</strong> "
        f'<a href="claims.html?status={status.name.lower()}#the-ledger">{_badge(status)}</a></li>'
        for status, count in counts.items()
    )
    # a pending claim has no check yet
    whose = "each with " if Status.PENDING not in counts else "each but the pending ones with "
    return Html(
        f"<p>{len(ledger())} claims, {whose}a check that runs:</p>"
        f'<ul class="ledger-summary">{badges}</ul>'
    )


def ledger_table(chapter: str) -> Html:
    """Return the claims of a chapter: number, statement, status, margin, seconds.

    Raises
    ------
    ValueError
        If there is no such chapter.
    """
    if chapter not in chapters():
        raise ValueError(f"chapter: expected one of {', '.join(chapters())}, got {chapter!r}.")
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    rows = [
        (
            f"{html.escape(claim.number)}<br><code>{html.escape(claim.id)}</code>",
            prose(claim.statement) + _corrected(claim),
            _badge(claim.status),
            _measured(claim, "margin"),
            _measured(claim, "seconds"),
        )
        for claim in claims
    ]
    caption = f'<a href="{chapter}.html">{html.escape(chapter_title(chapter))}</a>'
    head = ("Claim", "Statement", "Status", "Margin", "Seconds")
    return _table(head, rows, caption, [_marks(claim) for claim in claims])


def _marks(claim: Claim) -> str:
    """Return what the ledger filter reads of a row."""
    words = f"{claim.number} {claim.id} {claim.statement} {claim.correction}".lower()
    quoted = html.escape(words, quote=True)
    return f' data-status="{claim.status.name.lower()}" data-words="{quoted}"'


def errata_table() -> Html:
    """Return every slip of the paper: where, what is printed, what is right, why."""
    rows = [
        (
            f'{prose(erratum.where)}<br><a href="{erratum.chapter}.html">'
            f"{html.escape(chapter_title(erratum.chapter))}</a>",
            html.escape(erratum.kind),
            prose(erratum.printed),
            prose(erratum.right),
            prose(erratum.why),
        )
        for erratum in errata()
    ]
    return _table(("Where", "Kind", "Printed", "Right", "Why"), rows, "Slips of the paper")


def statement_index() -> Html:
    """Return the paper's numbered statements in its own order, with the chapter of each."""
    heads: dict[str, list[Claim]] = {}
    for claim in ledger():
        head = re.match(r"(Proposition|Theorem|Corollary|Lemma) \d+", claim.number)
        if head:
            heads.setdefault(head.group(), []).append(claim)
    rows = [
        (
            f'<a href="{claims[0].chapter}.html">{number}</a>',
            html.escape(chapter_title(claims[0].chapter)),
            " ".join(_badge(status) for status in status_counts(claims)),
        )
        for number, claims in sorted(heads.items(), key=lambda item: _paper_order(item[0]))
    ]
    return _table(("Statement", "Chapter", "Status of its parts"), rows, "Statements by number")


def table_1() -> Html:
    """Return Table 1: what the paper prints, and the recorded status of each cell."""
    cells = {claim.id: claim for claim in ledger() if claim.kind == "table"}
    rows = [
        (
            f"<code>{update}</code>",
            *(_cell(cells[f"tab:analysis/{update}/{axis}"]) for axis in AXES),
        )
        for update in UPDATES
    ]
    return _table(("Update", *AXES.values()), rows, "Table 1: the paper's entry, then ours")


def _paper_order(number: str) -> tuple[int, int]:
    """Order propositions first, then the counter that all other statements share."""
    kind, _, index = number.partition(" ")
    return (0 if kind == "Proposition" else 1, int(index))


def _cell(claim: Claim) -> str:
    printed = re.sub(r"^Table 1 gives (.*) for .*$", r"\1", claim.statement)
    return f"{prose(printed)}<br>{_badge(claim.status)}{_corrected(claim)}"


def _corrected(claim: Claim) -> str:
    return f'<br><em class="correction">{prose(claim.correction)}</em>' if claim.correction else ""


def _badge(status: Status) -> str:
    return f'<span class="verdict-status verdict-{status.name.lower()}">{status.value}</span>'


def _measured(claim: Claim, key: str) -> str:
    value = recorded().get(claim.id, {}).get(key)
    return "" if value is None else f'<span class="measured">{value:.3g}</span>'


def prose(text: str) -> str:
    """Return text as HTML, with the formulas between dollars as elements for MathJax."""
    pieces = text.split("$")
    return "".join(
        f'<span class="math notranslate nohighlight">\\({html.escape(piece)}\\)</span>'
        if index % 2
        else html.escape(piece)
        for index, piece in enumerate(pieces)
    )


def _table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    caption: str,
    marks: Sequence[str] | None = None,
) -> Html:
    """Return a table; `marks` are attributes of its rows."""
    cells = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(
        f"<tr{mark}>"
        + f'<th scope="row">{row[0]}</th>'
        + "".join(f"<td>{cell}</td>" for cell in row[1:])
        + "</tr>"
        for row, mark in zip(rows, marks or [""] * len(rows), strict=True)
    )
    return Html(
        f'<table class="ledger"><caption>{caption}</caption>'
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )
