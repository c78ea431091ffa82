"""Every unit of the paper has a verdict, and every claim of the paper judges a unit."""

import re
from collections import Counter, defaultdict
from itertools import groupby

import pytest

from pu_lib.claims import Scope, chapters, errata, ledger
from pu_lib.claims.paper import paper_map, units

VERDICTS = ("claims", "in part", "erratum", "nothing")
COUNTS = {
    "Abstract": 7, "1": 29, "2": 5, "2.1": 12, "2.2": 5, "2.3": 7, "2.4": 4, "2.5": 3, "3": 47,
    "3.1": 11, "3.2": 11, "3.3": 17, "3.4": 4, "3.4.1": 15, "3.4.2": 10, "3.4.3": 14, "3.5": 8,
    "3.6": 11, "4": 18, "4.1": 21, "4.2": 32, "4.3": 12, "5": 7, "A.1.1": 4, "A.1.2": 4, "A.2": 70,
    "A.3": 21, "A.4": 84, "A.5": 49, "B.1": 9, "B.2": 18,
}  # fmt: skip
"""Number of units by section, counted by a program that splits the paper's source at the ends of
sentences, after displays and at items; the thirty entries of Table 1 are also counted."""
STATEMENTS = (
    "Proposition 1", "Proposition 2", "Theorem 1", "Theorem 2", "Theorem 3", "Theorem 4",
    "Theorem 5", "Theorem 6", "Corollary 7", "Lemma 8", "Lemma 9", "Lemma 10", "Lemma 11",
    "Lemma 12", "Lemma 13",
)  # fmt: skip
LAST_EQUATION = 229


def places(part: str) -> set[str]:
    """Return the places of the units in a part of the paper."""
    return {unit.place for unit in units() if unit.part == part}


@pytest.mark.parametrize("section", COUNTS)
def test_units_have_verdicts(section: str) -> None:
    """Each unit names known claims, a known erratum, or the reason why it asserts nothing."""
    known = {claim.id for claim in ledger()}
    places = Counter(erratum.where for erratum in errata())
    for unit in units():
        if unit.section == section:
            assert unit.verdict in VERDICTS, unit.where
            assert unit.by, unit.where
            assert set(unit.claims) <= known, unit.where
            assert all(places[where] == 1 for where in unit.errata), unit.where


def test_claims_of_the_paper_judge_a_unit() -> None:
    named = {name for unit in units() for name in unit.claims}
    of_the_paper = {claim.id for claim in ledger() if claim.scope is not Scope.BOOK}
    assert of_the_paper - named == set()


def test_units_are_numbered_consecutively() -> None:
    """Paragraphs are numbered from 1 within a part, and units from 1 within a paragraph."""
    last: dict[tuple[str, str], tuple[int, int]] = defaultdict(lambda: (0, 0))
    for unit in units():
        part = (unit.section, unit.part)
        paragraph, number = last[part]
        here = (int(unit.paragraph), int(unit.unit))
        assert here in ((paragraph, number + 1), (paragraph + 1, 1)), unit
        last[part] = here


def test_sections_are_complete_and_in_order() -> None:
    counts = [(section, len(list(some))) for section, some in groupby(units(), lambda u: u.section)]
    assert counts == list(COUNTS.items())


def test_equations_are_complete_and_in_order() -> None:
    last = 0
    for unit in units():
        if unit.place.startswith("equation"):
            numbers = [int(number) for number in re.findall(r"\d+", unit.place)]
            assert numbers[0] == last + 1, unit
            last = numbers[-1]
    assert last == LAST_EQUATION


def test_numbered_statements_and_their_proofs_are_named() -> None:
    for name in STATEMENTS:
        assert places(name), name
        assert any(unit.part.startswith(f"proof of {name}") for unit in units()), name
    for name in ("Theorem 4", "Theorem 5", "Theorem 6"):
        assert {"(i)", "(ii)", "(iii)"} <= places(name)
        for item in ("(i)", "(ii)", "(iii)"):
            assert places(f"proof of {name}{item}")
    for update in ("PG-SM", "PG-ES", "DI", "CE", "MCE"):
        assert places(f"proof of Theorem 3, {update}")


def test_tables_figures_algorithms_and_footnotes_are_named() -> None:
    entries = {unit.by for unit in units() if unit.part == "Table 1" and unit.place != "caption"}
    assert entries == {claim.id for claim in ledger() if claim.scope is Scope.CELL}
    parts = {2: "abc", 3: "abc", 4: "abc"}
    for figure in range(1, 6):
        expected = {"caption", *(f"({letter})" for letter in parts.get(figure, ""))}
        assert places(f"Figure {figure}") == expected
    assert places("Algorithm 1") == {"caption", "lines 1 to 14"}
    assert sum(unit.part == "footnote" for unit in units()) == 2


def test_map_has_a_cell_for_each_unit() -> None:
    """Each unit has a cell, which links to claims or errata if the unit asserts something."""
    drawn = paper_map()
    links = re.findall(r'<a class="verdict-\w+(?: start)?" href="([^"]+)"', drawn)
    empty = drawn.count('<span class="nothing')
    assert len(links) == sum(unit.verdict != "nothing" for unit in units())
    assert len(links) + empty == len(units())
    pages = {f"ledger-{name}.html" for name in chapters()} | {"errata.html"}
    assert {address.partition("#")[0] for address in links} <= pages


def test_map_shows_the_worst_status() -> None:
    of_theorem_4 = next(u for u in units() if (u.part, u.place) == ("Theorem 4", "(i)"))
    row = next(row for row in paper_map().split("<a ") if of_theorem_4.where in row)
    assert 'href="ledger-unlearning.html#thm:unlearn/i/pg-es"' in row
    assert "thm:unlearn/i holds with a correction; " in row
    assert row.endswith(">✗</a>")
