"""The units of the paper, each with the claims that judge it, and a map of them.

A unit is a sentence with the formulas displayed in it, the rest of a sentence after a display, an
item of a list, an entry of Table 1, the caption of a part of a figure, or the lines of Algorithm 1.
``paper.csv`` has one row for each unit, in the paper's order, with the tables and figures at the
end of their section. It has none of the paper's text.

section, part
    The place of the unit. The part is a statement, a proof, a table, a figure, an algorithm or a
    footnote; it is empty for the running text.
paragraph, unit
    The number of the paragraph in the part, and of the unit in the paragraph. The paragraphs of
    Table 1 are its rows and its caption, those of a figure its parts and its caption.
place
    The equations, items or entries in the unit, or one or two words that help to find it.
verdict, by
    ``claims`` or ``in part``, and the identifiers of the claims that judge the unit or a part of
    it; ``erratum``, and the places of the errata (`Erratum.where`), with semicolons between them;
    or ``nothing``, and why the unit asserts nothing.
"""

from __future__ import annotations

import csv
import html
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import groupby

from pu_lib.claims.catalog import Claim, errata, ledger, row_address
from pu_lib.claims.recorder import Status
from pu_lib.claims.tables import Html, erratum_anchor

__all__ = ["Unit", "paper_map", "units"]

_MARKS = {
    Status.FALSE: "✗",
    Status.NOT_REPRODUCED: "✗",
    Status.OPEN: "?",
    Status.UNDECIDED: "?",
    Status.PARTLY: "≈",
    Status.CORRECTED: "≈",
    Status.CONSISTENT: "✓",
    Status.REPRODUCED: "✓",
    Status.HOLDS: "✓",
}
"""The marks of statuses in the map; a unit has the first status among those of its claims."""

_LEGEND = {
    "✓": "holds, reproduced or consistent",
    "≈": "holds with a correction, or partly reproduced",
    "✗": "false as stated, or not reproduced",
    "?": "open or undecided",
    "½": "a part has no verdict",
    "e": "an erratum alone",
    "·": "asserts nothing",
}


@dataclass(frozen=True)
class Unit:
    """A unit of the paper; the module's docstring describes the attributes."""

    section: str
    part: str
    paragraph: str
    unit: str
    place: str
    verdict: str
    by: str

    @property
    def claims(self) -> tuple[str, ...]:
        """The identifiers of the claims that judge the unit."""
        return tuple(self.by.split()) if self.verdict in ("claims", "in part") else ()

    @property
    def errata(self) -> tuple[str, ...]:
        """The places of the errata about the unit."""
        return tuple(self.by.split("; ")) if self.verdict == "erratum" else ()

    @property
    def where(self) -> str:
        """The place in the paper, in words."""
        kind = {"A": "Appendix ", "B": "Appendix "}.get(self.section.split(".")[0], "Section ")
        section = self.section if self.section == "Abstract" else kind + self.section
        numbered = f"paragraph {self.paragraph}, unit {self.unit}"
        return ", ".join(filter(None, (section, self.part, numbered, self.place)))


@cache
def units() -> tuple[Unit, ...]:
    """Return every unit of the paper, in the order of ``paper.csv``."""
    text = (resources.files("pu_lib") / "claims" / "paper.csv").read_text("utf-8")
    _, *rows = csv.reader(text.splitlines())
    return tuple(Unit(*row) for row in rows)


def paper_map() -> Html:
    """Return a map of the paper: for each section one cell per unit, and the counts.

    A cell has the mark and colour of the worst status among the unit's claims, and links to the row
    of that claim in the ledger, or to the first erratum.
    """
    claims = {claim.id: claim for claim in ledger()}
    cells = {unit: _cell(unit, claims) for unit in units()}
    counts = Counter(mark for mark, _ in cells.values())
    rows = "".join(
        _row(section, list(some), cells) for section, some in groupby(units(), lambda u: u.section)
    )
    legend = "".join(
        f'<li><b aria-hidden="true">{mark}</b> {meaning}: {counts[mark]}</li>'
        for mark, meaning in _LEGEND.items()
        if counts[mark]
    )
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Section", "Units", *_COUNTED))
    return Html(
        f'<table class="paper-map"><caption>The {len(cells)} units of the paper</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody>"
        f'<tfoot><tr><th scope="row">Paper</th><td></td>{_counts(units())}</tr></tfoot></table>'
        f'<ul class="paper-map-legend">{legend}</ul>'
    )


_COUNTED = ("Assert", "Judged")


def _counts(some: Sequence[Unit]) -> str:
    """Return cells with the numbers of units that assert something and that are wholly judged."""
    asserting = [unit for unit in some if unit.verdict != "nothing"]
    judged = sum(unit.verdict != "in part" for unit in asserting)
    return f"<td>{len(asserting)}</td><td>{judged}</td>"


def _row(section: str, some: Sequence[Unit], cells: dict[Unit, tuple[str, str]]) -> str:
    drawn = "".join(cells[unit][1] for unit in some)
    return f'<tr><th scope="row">{section}</th><td>{drawn}</td>{_counts(some)}</tr>'


def _cell(unit: Unit, claims: dict[str, Claim]) -> tuple[str, str]:
    """Return the mark of a unit and the HTML of its cell."""
    first = " start" if unit.unit == "1" else ""
    if unit.verdict == "nothing":
        words = html.escape(f"{unit.where}: asserts nothing ({unit.by})")
        return "·", (
            f'<span class="nothing{first}" role="img" aria-label="{words}" title="{words}">·</span>'
        )
    if unit.verdict == "erratum":
        mark, kind = "e", "corrected"
        erratum = next(erratum for erratum in errata() if erratum.where == unit.errata[0])
        address = f"errata.html#{erratum_anchor(erratum)}"
        words = f"{unit.where}: " + ("an erratum" if len(unit.errata) == 1 else "errata")
    else:
        some = [claims[name] for name in unit.claims]
        worst = min(some, key=lambda claim: list(_MARKS).index(claim.status))
        mark = "½" if unit.verdict == "in part" else _MARKS[worst.status]
        kind = worst.status.name.lower()
        address = row_address(worst)
        judged = "; ".join(f"{claim.id} {claim.status.value}" for claim in some)
        words = f"{unit.where}: {judged}"
    words = html.escape(words)
    return mark, (
        f'<a class="verdict-{kind}{first}" href="{address}" aria-label="{words}" '
        f'title="{words}">{mark}</a>'
    )
