"""Tables of claims and errata for the book, generated from `pu_lib.claims`.

Each function returns an object that notebooks display as HTML. Formulas between dollars become
elements that MathJax typesets; links lead to the chapters of the rendered book.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from pu_lib.claims.catalog import (
    Claim,
    Erratum,
    Scope,
    Severity,
    chapters,
    check_of,
    errata,
    ledger,
    row_address,
)
from pu_lib.claims.judging import recorded, sentence_of
from pu_lib.claims.proofs import Proof, proofs, proofs_of, theorem_link, version
from pu_lib.claims.recorder import Check, Status
from pu_lib.claims.render import (
    badge,
    earlier_badge,
    earlier_html,
    format_tally,
    tallies_list_html,
)
from pu_lib.formatting import to_html
from pu_lib.settings import find_name

SCOPES = {
    Scope.STATEMENT: "Statements of the paper",
    Scope.PROOF: "Steps of its proofs",
    Scope.REMARK: "Its remarks",
    Scope.CELL: "Entries of Table 1",
    Scope.EXPERIMENT: "Sentences on its experiments",
    Scope.BOOK: "Claims of this book",
}
"""The title of each scope in tables of counts."""


class Html(str):
    """A piece of HTML that notebooks display."""

    def _repr_html_(self) -> str:
        return str(self)


def chapter_title(chapter: str) -> str:
    """Return the title of a chapter."""
    return chapters()[chapter]


# Counts


def status_counts(claims: Iterable[Claim] | None = None) -> dict[Status, int]:
    """Return the number of claims (by default all) by recorded status, without zeros."""
    counts = Counter(claim.status for claim in (ledger() if claims is None else claims))
    return {status: counts[status] for status in Status if counts[status]}


def scope_counts() -> dict[Scope, dict[Status, int]]:
    """Return the number of claims by scope and recorded status, without zeros."""
    by_scope = {scope: [claim for claim in ledger() if claim.scope is scope] for scope in Scope}
    return {scope: status_counts(claims) for scope, claims in by_scope.items() if claims}


def summary() -> Html:
    """Return the counts by scope and status, each with a link to the filtered list of claims."""
    rows = "".join(
        f'<dt><strong>{sum(counts.values())}</strong> <a href="{_asking(scope)}">{SCOPES[scope]}'
        f"</a></dt><dd><ul>{_badges(scope, counts)}</ul></dd>"
        for scope, counts in scope_counts().items()
    )
    return Html(
        f"<p>{len(ledger())} claims, each with a check that runs:</p>"
        f'<dl class="ledger-summary">{rows}</dl>'
    )


def standing() -> Html:
    """Return the counts of the paper's statements by status in one line, with links to them."""
    words = {"holds": "hold", "corrected": "need a correction", "false": "are false"}
    counts = scope_counts()[Scope.STATEMENT]
    items = "".join(
        f'<li class="verdict-{status.name.lower()}"><a href="{_asking(Scope.STATEMENT, status)}">'
        f"<b>{count}</b> {words.get(status.name.lower(), status.value)}</a></li>"
        for status, count in counts.items()
    )
    total = f"<b>{sum(counts.values())} statements</b>"
    claims = f'<a href="ledger.html">{len(ledger())} claims</a>'
    return Html(
        f'<div class="standing"><p>{total}, {claims} of the paper and of this book, each with a '
        f"check</p><ul>{items}</ul></div>"
    )


def _badges(scope: Scope, counts: Mapping[Status, int]) -> str:
    return "".join(
        f'<li>{count} <a href="{_asking(scope, status)}">{badge(status)}</a></li>'
        for status, count in counts.items()
    )


def _asking(scope: Scope, status: Status | None = None) -> str:
    """Return the address of the list of claims filtered by scope and status."""
    wanted = "" if status is None else f"&amp;status={status.name.lower()}"
    return f"ledger.html?scope={scope.name.lower()}{wanted}#the-ledger"


# The claims


def ledger_index() -> Html:
    """Return all claims by chapter, one a line, each with its status and a link to its row."""
    lists = ""
    for chapter, title in chapters().items():
        lines = "".join(_line(claim) for claim in ledger() if claim.chapter == chapter)
        head = f'<h3><a href="ledger-{chapter}.html">{html.escape(title)}</a></h3>'
        lists += f"<section>{head}<ul>{lines}</ul></section>"
    return Html(f'<div class="ledger-index">{lists}</div>')


def _line(claim: Claim) -> str:
    """Return a claim's line in the list of all claims, with the words that the filter finds."""
    words = " ".join((claim.id, claim.statement, claim.wrong, claim.correction)).lower()
    title = html.escape(claim.number.removesuffix(" (this book)"))
    if claim.scope is not Scope.BOOK:  # several claims may have the same place in the paper
        title += f" <code>{html.escape(claim.id)}</code>"
    return (
        f'<li{_marks(claim)} data-words="{html.escape(words)}"><a href="{row_address(claim)}">'
        f"{title}</a> {badge(claim.status)}</li>"
    )


def ledger_table(chapter: str) -> Html:
    """Return the table of a chapter's claims; each claim opens to show its error and correction.

    Raises a `ValueError` if there is no such chapter.
    """
    chapter = find_name("chapter", chapter, chapters())
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    rows = [
        (
            f"{html.escape(claim.number)}<br><code>{html.escape(claim.id)}</code>",
            f"<p>{to_html(claim.statement)}</p>{_judgement(claim)}",
        )
        for claim in claims
    ]
    caption = f'<a href="{chapter}.html">{html.escape(chapter_title(chapter))}</a>'
    head = ("Claim", "What it says, and what was found")
    return html_table(head, rows, caption, [_marks(claim) for claim in claims])


def _judgement(claim: Claim) -> str:
    """Return the HTML of a claim's status and sentence, which opens to show all its details."""
    row, theorems = recorded().get(claim.id, {}), proofs_of(claim.id)
    # the cells of Table 1 are one table there, not a verdict each
    place = "" if claim.scope is Scope.CELL else f"#{html.escape(claim.id)}"
    facts = {
        "Printed": html.escape(_printed(claim)),
        "What is wrong": to_html(claim.wrong),
        "How bad it is": "" if claim.severity is None else html.escape(claim.severity.value),
        "What is true": to_html(claim.correction),
        "Earlier verdict": earlier_html(claim),
        "What was measured": tallies_list_html(list(map(format_tally, row.get("tallies", ())))),
        "Machine-checked": ", ".join(theorem_link(proof) for proof in theorems),
        "Where": f'<a href="{claim.chapter}.html{place}">'
        f"{html.escape(chapter_title(claim.chapter))}</a>, "
        f"on section {html.escape(claim.section)} of the paper",
    }
    listed = "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items() if fact)
    scope = claim.scope.value + _mark(theorems)
    said = f": {to_html(sentence_of(claim))}" if claim.sentence else ""
    return (
        f'<details class="claim"><summary>{badge(claim.status)}{earlier_badge(claim)} '
        f"<small>{scope}</small>{said}</summary><dl>{listed}</dl></details>"
    )


def _mark(theorems: Sequence[Proof]) -> str:
    """Return text that says whether a claim or a part of a claim is machine-checked."""
    if not theorems:
        return ""
    whole = any(not proof.part for proof in theorems)
    return ", machine-checked" if whole else ", in part machine-checked"


def _printed(claim: Claim) -> str:
    """Return the paper's entry if a claim is about a cell of Table 1, or an empty string."""
    return str(check_of(claim).arguments["printed"]) if claim.scope is Scope.CELL else ""


def _marks(claim: Claim) -> str:
    """Return the HTML attributes of a row or line: what the filter reads, and its identifier."""
    read = f' data-status="{claim.status.name.lower()}" data-scope="{claim.scope.name.lower()}"'
    return f'{read} id="{html.escape(claim.id)}"'


def claim_link(name: str) -> str:
    """Return a link to a claim's row in the ledger, with its status if it does not hold.

    Raises a `ValueError` if there is no such claim.
    """
    claims = {claim.id: claim for claim in ledger()}
    claim = claims[find_name("claim", name, claims)]
    beside = "" if claim.status is Status.HOLDS else f" ({claim.status.value})"
    return f'<a href="{row_address(claim)}"><code>{html.escape(name)}</code></a>{beside}'


# Wrong variants of claims


def power_table(chapter: str) -> Html:
    """Return a table of the wrong variants that each check of a chapter rejects."""
    judged = [claim for claim in ledger() if claim.chapter == chapter]
    rows = [(f"<code>{html.escape(c.id)}</code>", _power(check_of(c))) for c in judged]
    return html_table(("Check of", "What it makes of other claims"), rows, chapter_title(chapter))


def _power(check: Check) -> str:
    refused = "".join(f"<dd>{html.escape(variant)}</dd>" for variant in check.wrong)
    return f"<dl><dt>refuses</dt>{refused}</dl>"


# Errata


_ERRATA = {
    Severity.IDEA: "Arguments and claims that fail",
    Severity.HYPOTHESIS: "Missing hypotheses",
    Severity.CONSTANT: "Constants",
    Severity.SLIP: "Slips",
    Severity.TYPO: "Typos",
}
"""The title of the table of errata of each severity, from the gravest to the mildest."""


def errata_table() -> Html:
    """Return a table of errata for each severity: place, printed and corrected text, reason."""
    tables, first = "", 1
    for severity, title in _ERRATA.items():
        some = [erratum for erratum in errata() if erratum.severity is severity]
        rows = [
            (
                f"{number}. {_place(erratum)}",
                to_html(erratum.printed),
                f"<p>{to_html(erratum.right)}</p><p>{to_html(erratum.why)}</p>",
            )
            for number, erratum in enumerate(some, start=first)
        ]
        head = ("Place", "Printed", "Right, and why")
        tables += html_table(head, rows, f"{title} ({len(some)})", kind="errata")
        first += len(some)
    return Html(tables)


def erratum_anchor(erratum: Erratum) -> str:
    """Return the identifier of an erratum's row in the table of errata."""
    return f"erratum-{1 + errata().index(erratum)}"


def _place(erratum: Erratum) -> str:
    """Return where an erratum is, its kind, and a link to its chapter."""
    title = html.escape(chapter_title(erratum.chapter))
    return (
        f'<span id="{erratum_anchor(erratum)}">{to_html(erratum.where)}</span><br>'
        f"<small>{html.escape(erratum.kind)}, "
        f'<a href="{erratum.chapter}.html">{title}</a></small>'
    )


# What was stated, and what holds


def versus(*rows: tuple[str, str, str]) -> Html:
    """Return a table of statements, of the paper or of others, beside what holds.

    Each row has the identifier of a claim, the statement and what holds, as texts with
    formulas between dollars. Raises a `ValueError` if there is no such claim.
    """
    body = []
    for name, printed, holds in rows:
        claim = _claim(name)
        head = f'<a href="#{html.escape(name)}">{html.escape(claim.number)}</a>'
        body.append(
            f'<tr><th scope="row">{head} {badge(claim.status)}</th>'
            f"<td>{to_html(printed)}</td><td>{to_html(holds)}</td></tr>"
        )
    names = ("Statement", "As stated", "What holds")
    head = "".join(f'<th scope="col">{name}</th>' for name in names)
    table = f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody>"
    return Html(f'<table class="versus">{table}</table>')


def question(text: str, claim: str, *choices: tuple[str, str]) -> Html:
    """Return a multiple-choice question whose answer is a claim.

    Each choice has a text and the reply to readers who choose it. The first choice is right; the
    choices are shown in alphabetical order. They open without a script. Raises a `ValueError` if
    there is no such claim.
    """
    answer_link = f' <a href="#{html.escape(claim)}">{html.escape(_claim(claim).number)}</a>'
    items = []
    for choice, reply in sorted(choices):
        is_right = choice == choices[0][0]
        judged = f"<strong>{'Right' if is_right else 'Not quite'}.</strong>"
        items.append(
            f'<details name="{html.escape(claim)}"><summary>{to_html(choice)}</summary>'
            f"<p>{judged} {to_html(reply)}{answer_link if is_right else ''}</p></details>"
        )
    return Html(f'<div class="question"><p>{to_html(text)}</p>{"".join(items)}</div>')


def _claim(name: str) -> Claim:
    """Return the claim with an identifier."""
    claims = {claim.id: claim for claim in ledger()}
    if name not in claims:
        raise ValueError(f"claim: {name!r} is not in the ledger.")
    return claims[name]


# Statements by number


def statement_index() -> Html:
    """Return a table of the paper's numbered statements, in the paper's order, with their status.

    The status of a theorem is the status of its statement. Steps of the proof and additions of this
    book are counted separately.
    """
    heads: dict[str, list[Claim]] = {}
    for claim in ledger():
        head = re.search(r"(Proposition|Theorem|Corollary|Lemma) \d+", claim.number)
        if head and not re.search(r"\(\d{4}\)", claim.number):  # a year: another paper's theorem
            heads.setdefault(head.group(), []).append(claim)
    rows = [
        (f'<a href="{heads[number][0].chapter}.html">{number}</a>', _statement(heads[number]))
        for number in sorted(heads, key=_paper_order)
    ]
    return html_table(("Number", "Statement and status"), rows, "Statements by number")


def what_stands() -> Html:
    """Return each statement of the paper as printed, with its finding, correction and proof.

    Statements that hold as printed are in a second table, which is folded.
    """
    stated = sorted((c for c in ledger() if c.scope is Scope.STATEMENT), key=_by_number)
    corrected = [claim for claim in stated if claim.correction]
    as_printed = [claim for claim in stated if not claim.correction]
    cells = [claim for claim in ledger() if claim.scope is Scope.CELL]
    counted = f"<p>Its {len(cells)} entries, each measured: {_plain_counts(cells)}.</p>"
    table = '<p><a href="table-1.html">All entries</a></p>'
    rows = [*map(_standing_row, corrected), ("Table 1", counted + table)]
    title = f"{len(as_printed)} statements hold as printed"
    names = html.escape("; ".join(_names(as_printed, corrected)))
    return Html(
        _stands_table(rows, "What stands with a correction, and what fails")
        + '<details class="sd-sphinx-override sd-dropdown sd-card sd-mb-3">'
        f'<summary class="sd-summary-title sd-card-header">{title}: {names}</summary>'
        '<div class="sd-summary-content sd-card-body">'
        f"{_stands_table(list(map(_standing_row, as_printed)), title)}</div></details>"
    )


def _names(as_printed: Sequence[Claim], corrected: Sequence[Claim]) -> Iterable[str]:
    """Return the names of statements that hold as printed, beside those that need a correction."""
    partly = {_head(claim) for claim in corrected}
    heads = [c.number if _head(c) in partly else _head(c) for c in as_printed]
    for head, parts in Counter(heads).items():
        if parts > 1:
            yield f"{head} ({parts} parts)"
        elif any(claim.number.startswith(f"{head}, ") for claim in corrected):
            yield f"{head} in general"  # not for a named update
        else:
            yield head


def _head(claim: Claim) -> str:
    """Return the number of a statement without its part, as "Theorem 3" of "Theorem 3 (CE)"."""
    head = re.match(r"\w+ \d+(?!\.)", claim.number)
    return head.group() if head else claim.number


def _stands_table(rows: Sequence[tuple[str, ...]], caption: str) -> Html:
    head = ("Statement", "What it says, and what stands")
    return html_table(head, rows, caption, kind="ledger stands")


def _standing_row(claim: Claim) -> tuple[str, str]:
    return f"{html.escape(claim.number)}<br>{_how_bad(claim)}", _standing(claim)


def _how_bad(claim: Claim) -> str:
    bad = (
        "" if claim.severity is None else f"<br><small>{html.escape(claim.severity.value)}</small>"
    )
    return badge(claim.status) + bad


def _standing(claim: Claim) -> str:
    """Return a statement as printed, with the failure, the correction and a link to the proof."""
    theorems = " and ".join(map(theorem_link, proofs_of(claim.id)))
    sentence = sentence_of(claim)
    facts = {
        "Printed": to_html(claim.statement),
        "What fails": to_html(sentence) if claim.correction else "",
        "What stands": to_html(claim.correction or sentence),
        "Proved": f'<a href="{claim.chapter}.html">{html.escape(chapter_title(claim.chapter))}</a>'
        + (f", by machine: {theorems}" if theorems else ""),
    }
    listed = "".join(f"<dt>{name}</dt><dd>{fact}</dd>" for name, fact in facts.items() if fact)
    return f"<dl>{listed}</dl>"


def _by_number(claim: Claim) -> tuple[int, int, str]:
    """Return a key that sorts statements by the paper's numbers; unnumbered statements are last."""
    head = re.match(r"(Proposition|Theorem|Corollary|Lemma) \d+", claim.number)
    return (*(_paper_order(head.group()) if head else (2, 0)), claim.id)


def _statement(claims: Sequence[Claim]) -> str:
    statements = [claim for claim in claims if claim.scope is Scope.STATEMENT]
    parts = "".join(f"<p>{to_html(claim.statement)}</p>{_judgement(claim)}" for claim in statements)
    beside = {
        words: [claim for claim in claims if claim.scope is scope]
        for scope, words in SCOPES.items()
        if scope is not Scope.STATEMENT
    }
    counted = "".join(
        f"<p><small>{words}: {_plain_counts(some)}</small></p>"
        for words, some in beside.items()
        if some
    )
    return parts + counted


def _plain_counts(claims: Sequence[Claim]) -> str:
    return ", ".join(f"{status.value} ({count})" for status, count in status_counts(claims).items())


def _paper_order(number: str) -> tuple[int, int]:
    """Return a key that sorts propositions before other statements, and each by number."""
    kind, _, index = number.partition(" ")
    return (0 if kind == "Proposition" else 1, int(index))


# Machine-checked theorems


def proof_list() -> Html:
    """Return an HTML list of the theorems with their claims, statements in Rocq and axioms."""
    by_id = {claim.id: claim for claim in ledger()}
    entries = (_proof_entry(proof, [by_id[name] for name in proof.claims]) for proof in proofs())
    return Html("".join(entries))


def _proof_entry(proof: Proof, claims: Sequence[Claim]) -> str:
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


# Pieces


def html_table(
    head: tuple[str, ...],
    rows: Sequence[tuple[str, ...]],
    caption: str,
    marks: Sequence[str] | None = None,
    kind: str = "ledger",
) -> Html:
    """Return an HTML table with CSS class `kind`; `marks` has the attributes of each row."""
    cells = "".join(f'<th scope="col">{name}</th>' for name in head)
    body = "".join(
        f"<tr{mark}>"
        + f'<th scope="row">{row[0]}</th>'
        + "".join(f"<td>{cell}</td>" for cell in row[1:])
        + "</tr>"
        for row, mark in zip(rows, marks or [""] * len(rows), strict=True)
    )
    return Html(
        f'<table class="{kind}"><caption>{caption}</caption>'
        f"<thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>"
    )
