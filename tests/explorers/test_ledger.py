"""Test that the ledger lists each claim with its status, error, severity and correction."""

import html
import re
from collections.abc import Callable

import pytest
from playwright.sync_api import Page

from pu_lib.chapters.table1.quantities import COLUMNS
from pu_lib.chapters.table1.tables import criteria, table_1
from pu_lib.claims import Scope, Status, chapters, confirm, ledger
from pu_lib.claims.catalog import row_address
from pu_lib.claims.tables import (
    claim_link,
    ledger_index,
    ledger_table,
    power_table,
    scope_counts,
    statement_index,
    summary,
    to_html,
    what_stands,
)
from pu_lib.explorers.ledger_filter import LedgerFilter


def rows(table: str) -> list[str]:
    return table.split("<tr data-")[1:]


@pytest.mark.parametrize("chapter", chapters())
def test_row_shows_claim_error_and_correction(chapter: str) -> None:
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    shown = rows(ledger_table(chapter))
    assert len(shown) == len(claims)
    for claim, row in zip(claims, shown, strict=True):
        details = row.partition("<details")[2]
        assert claim.status.value in details.split("</summary>")[0]
        assert to_html(claim.statement) in row
        for text in (claim.wrong, claim.correction):
            assert to_html(text) in details
        if claim.severity is not None:
            assert claim.severity.value in details
        if claim.scope is Scope.CELL:
            assert "<dt>Printed</dt>" in details
        assert f'scope="{claim.scope.name.lower()}"' in row


def test_list_has_a_line_for_each_claim() -> None:
    shown = ledger_index()
    lines = [line.partition("</li>")[0] for line in shown.split("<li data-")[1:]]
    assert len(lines) == len(ledger())
    for line, claim in zip(lines, ledger(), strict=True):
        assert f'id="{html.escape(claim.id)}"' in line
        assert f'href="ledger-{claim.chapter}.html#' in line
        assert claim.status.value in line
        assert html.escape(claim.statement.lower()) in line
    texts = [re.sub("<[^>]*>", "", line.partition(">")[2]) for line in lines]
    assert len(set(texts)) == len(texts), "each line names another claim"
    assert len(" ".join(texts).split()) < 8 * len(ledger())


def test_claim_has_one_address() -> None:
    claim = next(claim for claim in ledger() if claim.id == "thm:unlearn/i/pg-sm")
    address = "ledger-unlearning.html#thm:unlearn/i/pg-sm"
    assert row_address(claim) == address
    assert f'href="{address}"' in claim_link(claim.id)
    assert f'href="{address}"' in confirm(claim.id)._repr_html_()


def test_counts_by_scope_link_to_the_claims() -> None:
    counts = scope_counts()
    assert sum(sum(by.values()) for by in counts.values()) == len(ledger())
    assert counts[Scope.CELL][Status.HOLDS] == 27
    for scope, by in counts.items():
        for status, count in by.items():
            link = f"scope={scope.name.lower()}&amp;status={status.name.lower()}"
            assert re.search(rf"<li>{count} <a href=[^>]*{link}#the-ledger", summary())


def test_statement_index_is_in_the_papers_order() -> None:
    index = statement_index()
    numbers = re.findall(r">(\w+ \d+)</a></th>", index)
    assert numbers[:3] == ["Proposition 1", "Proposition 2", "Theorem 1"]
    assert numbers[-1] == "Lemma 13"
    assert len(numbers) == 15
    # The error in the proof of Theorem 3 does not change the status of the theorem.
    (third,) = (row for row in index.split('<tr><th scope="row">') if ">Theorem 3</a>" in row)
    assert "verdict-false" not in third
    assert "Steps of its proofs" in third


def test_power_table_lists_wrong_variants() -> None:
    table = html.unescape(power_table("table-1"))
    assert table.count("<dt>refuses</dt>") == 30
    assert "'fast' in place of 'slow'" in table


def test_table_1_and_its_criteria_agree() -> None:
    text = html.unescape(criteria())
    for column in COLUMNS.values():
        assert column.title in html.unescape(table_1())
        assert column.measured in text
        assert all(words in text for words in column.criteria.values())


def test_ledger_table_rejects_unknown_chapter() -> None:
    with pytest.raises(ValueError, match=r"chapter: unknown 'poetry'. There are: updates"):
        ledger_table("poetry")


def test_status_summary_has_a_row_for_every_statement() -> None:
    table = what_stands()
    stated = [claim for claim in ledger() if claim.scope is Scope.STATEMENT]
    heads = re.findall(r'<th scope="row">([^<]*)<br>', table)
    assert sorted(heads) == sorted(html.escape(claim.number) for claim in stated)
    shown, _, folded = table.partition("<details")
    assert re.findall(r'<th scope="row">([^<]*)<br>', shown)[:2] == ["Theorem 2", "Theorem 4(i)"]
    heads = re.findall(r'<th scope="row">([^<]*)<br>', folded)
    assert heads[:3] == ["Proposition 1", "Proposition 2", "Theorem 1"]
    assert f"{len(heads)} statements hold as printed: Proposition 1; " in folded
    # all parts of Theorem 3 hold, but only one of Theorem 5
    assert "; Theorem 1; Theorem 3 (6 parts); Theorem 5(ii); Theorem 6(i) in general; " in folded
    assert "; Lemma 13; Section 3.1, uniqueness</summary>" in folded
    assert table.count("<dt>Printed</dt>") == len(stated)
    corrected = [claim for claim in stated if claim.correction]
    assert table.count("<dt>What stands</dt>") == len(stated)
    assert all(to_html(claim.correction) in shown for claim in corrected)
    assert len(heads) == len(stated) - len(corrected)
    assert table.count("<small>") == len(corrected)
    assert '<th scope="row">Table 1</th>' in table


@pytest.mark.parametrize("key", ["scope", "status"])
def test_filter_ignores_unknown_names_in_the_address(
    open_figure: Callable[..., Page], key: str
) -> None:
    model = f"window.models[0].get('{key}')"
    known = next(
        iter(LedgerFilter.class_traits()[{"scope": "scopes", "status": "statuses"}[key]].default())
    )
    for name in ("constructor", "toString", "__proto__", "", "%", "a" * 10_000):
        page = open_figure(LedgerFilter(), query=f"?{key}={name}&{key}={known}")
        assert page.evaluate(model) == ""
    page = open_figure(LedgerFilter(), query=f"?{key}={known}&{key}=constructor")
    assert page.evaluate(model) == known
