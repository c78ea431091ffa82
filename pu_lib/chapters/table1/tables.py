"""Table 1 with its findings, and tables of its criteria and thresholds, as HTML for the book."""

from __future__ import annotations

import html

from pu_lib.chapters.table1.checks import PRINTED
from pu_lib.chapters.table1.quantities import COLUMNS, measure, thresholds
from pu_lib.claims.catalog import Scope, ledger
from pu_lib.claims.render import badge
from pu_lib.claims.tables import Html, html_table
from pu_lib.formatting import to_html
from pu_lib.updates import PAPER, UPDATES, label_of

__all__ = ["criteria", "table_1", "thresholds_table"]


def table_1() -> Html:
    """Return Table 1 with the paper's entries and their status, then other updates as measured.

    Corrections of entries are listed below the first table. The entries of updates that are not the
    paper's are measured and not judged.
    """
    cells = {claim.id: claim for claim in ledger() if claim.scope is Scope.CELL}
    rows, notes = [], ""
    for update, entries in PRINTED.items():
        row = [label_of(update)]
        for column, entry in zip(COLUMNS.values(), entries, strict=True):
            claim = cells[f"tab:analysis/{update}/{column.name}"]
            row.append(f"{html.escape(entry)}<br>{badge(claim.status)}")
            if claim.correction:
                head = html.escape(f"{label_of(update)}, {column.title}")
                notes += f"<dt>{head}</dt><dd>{to_html(claim.correction)}</dd>"
        rows.append(tuple(row))
    others = [
        (label_of(name), *(html.escape(measure(name, column).entry) for column in COLUMNS))
        for name in UPDATES
        if name not in PAPER
    ]
    heads = ("Update", *(column.title for column in COLUMNS.values()))
    caption = "Table 1: the paper's entries, and what the measurement says of each"
    table = html_table(heads, rows, caption, kind="table-1")
    beside = "The same measurements for updates that are not the paper's; there is nothing to judge"
    return Html(
        f'{table}<dl class="table-1-notes">{notes}</dl>'
        f"{html_table(heads, others, beside, kind='table-1')}"
    )


def criteria() -> Html:
    """Return the criteria by which entries of Table 1 are measured."""
    rows = [
        (
            html.escape(column.title),
            f"<p>{html.escape(column.measured)}</p><dl>"
            + "".join(
                f"<dt>{html.escape(entry)}</dt><dd>{html.escape(words)}</dd>"
                for entry, words in column.criteria.items()
            )
            + "</dl>",
        )
        for column in COLUMNS.values()
    ]
    return html_table(
        ("Column", "What is measured, and when each entry is given"), rows, "Criteria"
    )


def thresholds_table() -> Html:
    """Return the thresholds of Table 1, and the first entry that changes if each one is moved."""

    def entry(number: tuple[float, str] | None) -> str:
        return "none" if number is None else f"{label_of(number[1])}, at {number[0]:.3g}"

    rows = [
        (
            html.escape(COLUMNS[threshold.column].title),
            html.escape(threshold.name),
            f"{threshold.value:g}",
            entry(threshold.below),
            entry(threshold.above),
        )
        for threshold in thresholds()
    ]
    head = ("Column", "Measured", "Threshold", "First to change below", "First to change above")
    return html_table(head, rows, "How far each threshold can be moved before an entry changes")
