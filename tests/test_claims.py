"""The catalog of claims is complete, and every check reproduces its record."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pu_notebooks import kept

from pu_lib.__main__ import main
from pu_lib.chapters.table1.checks import PRINTED
from pu_lib.chapters.table1.quantities import COLUMNS
from pu_lib.claims import (
    FINDINGS,
    Check,
    Claim,
    JudgedClaims,
    Judgement,
    Recorder,
    Scope,
    Status,
    changes,
    changes_of,
    chapters,
    check_of,
    confirm,
    errata,
    judge,
    judge_wrong,
    ledger,
    record,
    recorded,
    select,
    sentence_of,
)
from pu_lib.claims.proofs import proofs_of
from pu_lib.claims.render import badge
from pu_lib.claims.tables import errata_table, ledger_table, question, versus
from pu_lib.updates import label_of

ROOT = Path(__file__).parent.parent
TABLE_1 = {f"tab:analysis/{update}/{column}" for update in PRINTED for column in COLUMNS}


def test_numbered_statements_of_the_paper_are_claims() -> None:
    numbers = {claim.number.split("(")[0].split(",")[0].strip() for claim in ledger()}
    theorems = {f"Theorem {i}" for i in range(1, 7)}
    lemmas = {f"Lemma {i}" for i in range(8, 14)}
    assert theorems | lemmas | {"Proposition 1", "Proposition 2", "Corollary 7"} <= numbers
    assert {claim.id for claim in ledger()} >= TABLE_1


def not_as_printed(claim: Claim) -> bool:
    return claim.status in (Status.CORRECTED, Status.FALSE) and claim.scope is not Scope.EXPERIMENT


@pytest.mark.parametrize("chapter", chapters())
def test_corrected_and_false_claims_have_error_severity_and_correction(
    chapter: str,
) -> None:
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    fields = {
        claim.id: (bool(claim.wrong), claim.severity is not None, bool(claim.correction))
        for claim in claims
        if claim.scope is not Scope.EXPERIMENT
    }
    expected = {c.id: (not_as_printed(c),) * 3 for c in claims if c.id in fields}
    assert fields == expected, "(wrong, severity, correction)"


@pytest.mark.parametrize("chapter", chapters())
def test_checks_have_wrong_variants(chapter: str) -> None:
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    assert [claim.id for claim in claims if not check_of(claim).wrong] == []


def test_claims_of_the_book_say_so() -> None:
    """The number of each such claim ends with "(this book)" or cites another paper by its year."""
    numbers = {claim.id: claim.number for claim in ledger() if claim.scope is Scope.BOOK}
    unmarked = {
        name: number
        for name, number in numbers.items()
        if not re.search(r"\(this book\)$|\b(?:19|20)\d\d\b", number)
    }
    assert unmarked == {}


def test_statements_of_the_paper_have_no_readings_of_the_book() -> None:
    """How the book reads a sentence of the paper stands in the claim's sentence."""
    for claim in ledger():
        if claim.scope is not Scope.BOOK:
            assert not re.search(r"\((read|asked)\b|; read\b", claim.statement), claim.id


def test_statements_of_table_1_assert_their_entries() -> None:
    """Each statement is about the update; one about the print would be true for any result."""
    for update, entries in PRINTED.items():
        for column, entry in zip(COLUMNS, entries, strict=True):
            (claim,) = select([f"tab:analysis/{update}/{column}"])
            assert claim.statement.startswith(
                ("The gap of " if entry == "O(1/t)" else "") + label_of(update)
            )
            assert entry == "O(1/t)" or claim.statement.endswith(f" (Table 1: {entry}).")


def test_claims_of_the_book_hold_or_are_open() -> None:
    statuses = {claim.id: claim.status for claim in ledger() if claim.scope is Scope.BOOK}
    assert set(statuses.values()) <= {Status.HOLDS, Status.CONSISTENT, Status.OPEN}, statuses


def test_limits_of_other_papers_are_consistent_with_finite_runs() -> None:
    """Only these claims are consistent: finite runs cannot refute limits or convergence rates."""
    status = {claim.id: claim.status for claim in ledger()}
    watched = {"lit:liu2024/rates", "lit:mei2024/any-rate", "lit:zhang2022/off-policy"}
    assert {name for name in status if status[name] is Status.CONSISTENT} == watched


@pytest.mark.parametrize("chapter", chapters())
def test_claims_have_distinct_sentences(chapter: str) -> None:
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    assert [claim.id for claim in claims if not claim.sentence] == []
    counts = Counter(claim.sentence for claim in claims)
    assert [sentence for sentence, count in counts.items() if count > 1] == []
    for claim in claims:
        sentence = sentence_of(claim)
        assert sentence.endswith((".", ".$")), sentence
        assert not re.search(r"np\.|Fraction\(|e-\d\d", sentence), sentence


def test_sentence_with_an_unknown_figure_raises() -> None:
    claim = replace(ledger()[0], sentence="It takes {no such thing} steps.")
    with pytest.raises(ValueError, match="names the figure 'no such thing'; the finding has steps"):
        _ = stub(claim).sentence
    with pytest.raises(ValueError, match="no figure 'no such thing'"):
        sentence_of(claim)
    assert "names the figure 'no such thing'" in stub(claim).differences[-1]


def test_errata_belong_to_chapters_and_claims() -> None:
    ids = {claim.id for claim in ledger()}
    for erratum in errata():
        assert erratum.chapter in chapters()
        assert not erratum.claim or erratum.claim in ids, erratum


def test_errata_are_listed_by_severity_with_typos_last() -> None:
    counts = Counter(erratum.severity.value for erratum in errata())
    tables = errata_table().split("</table>")[:-1]
    titles = [re.findall(r"<caption>(.*) \((\d+)\)</caption>", table)[0] for table in tables]
    grave_first = ["idea", "missing hypothesis", "constant", "slip", "typo"]
    assert [int(count) for _, count in titles] == [counts[name] for name in grave_first]
    assert titles[-1][0] == "Typos"
    numbers = [int(n) for n in re.findall(r'<th scope="row">(\d+)\. ', errata_table())]
    assert numbers == list(range(1, len(errata()) + 1))
    severity = {erratum.where: erratum.severity.value for erratum in errata()}
    assert severity["Theorem 4(i), assumptions"] == "slip"
    assert severity["Theorem 5(i)"] == "typo"


def test_last_change_of_a_criterion_has_the_recorded_status() -> None:
    recorded_as = {claim.id: claim.status.value for claim in ledger()}
    for chapter in chapters():
        last = {name: change for change in changes(chapter) for name in change.claims}
        after = {name: change.after for name, change in last.items()}
        assert after == {name: recorded_as[name] for name in last}
        assert {claim.id for claim in select([chapter])} >= set(last)


def test_earlier_statuses_stand_beside_the_status() -> None:
    changed = [claim for claim in ledger() if changes_of(claim)]
    assert len(changed) > 10
    assert all(change.before != c.status.value for c in changed for change in changes_of(c))
    (claim,) = select(["sec:randommdps/pg-unchanged"])
    for shown in (ledger_table(claim.chapter), confirm(claim.id)._repr_html_()):
        assert shown.count("partly reproduced</strong> <small>earlier: reproduced</small>") == 1
        fold = shown.partition("<small>earlier: reproduced</small>")[2].partition("</details>")[0]
        assert "reproduced until 23 November, 17:13. The criterion was: Factor below 2" in fold
    assert "earlier" not in confirm("sec:cliff/best")._repr_html_()


def test_table_of_statements_links_to_the_verdicts() -> None:
    name = "thm:unlearn/i/pg-sm"
    (claim,) = select([name])
    table = versus((name, "$n'\\ge n$", "True."))
    assert f'<a href="#{name}">{claim.number}</a>' in table
    assert f'id="{name}"' in confirm(name)._repr_html_()
    assert claim.status.value in table
    with pytest.raises(ValueError, match="'thm:nothing' is not in the ledger"):
        versus(("thm:nothing", "", ""))


def test_first_choice_of_a_question_is_right() -> None:
    asked = question("How many?", "thm:unlearn/i/pg-sm", ("b", "It is b."), ("a", "It is not a."))
    first, second = re.findall(r"<summary>(.*?)</summary><p>(.*?)</p>", asked)
    assert first == ("a", "<strong>Not quite.</strong> It is not a.")
    assert second[0] == "b"
    assert second[1].startswith('<strong>Right.</strong> It is b. <a href="#thm:unlearn/i/pg-sm">')
    with pytest.raises(ValueError, match="'thm:nothing' is not in the ledger"):
        question("?", "thm:nothing", ("a", "b"))


def test_confirm_displays_findings_as_data() -> None:
    names = ["prop:non-monotonicity/example", "thm:unlearn/i/pg-sm"]
    shown = confirm(*names)._repr_mimebundle_()
    assert [row["id"] for row in shown[FINDINGS]] == names
    assert [row["differences"] for row in shown[FINDINGS]] == [[], []]
    assert json.loads(json.dumps(shown)) == shown
    markup = confirm(*names)._repr_html_()
    assert 'class="verdicts"' in markup
    assert "</code> in <code>pu_lib/chapters/monotonicity/checks.py</code>" in markup


def test_stale_sentence_differs_from_the_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    judged = judge("thm:unlearn/i/pg-sm")
    assert judged.differences == []
    row = json.loads(json.dumps(judged.record()))
    row["figures"]["steps"] = "12"
    monkeypatch.setattr("pu_lib.claims.judging.recorded", lambda: {judged.claim.id: row})
    [figures] = judged.differences
    assert figures.startswith("recorded figures {")


def test_confirm_needs_a_claim() -> None:
    with pytest.raises(ValueError, match="claims: expected at least one claim"):
        confirm()


def test_claim_reads_well_without_a_style_sheet() -> None:
    text = re.sub(r"<[^>]*>", "", confirm("thm:unlearn/i/pg-sm")._repr_html_())
    assert re.match(r"[a-z ]+ Theorem 4\(i\)[^:]*: \S", text), text
    for status in Status:
        assert badge(status).startswith("<strong")


# tests/checks/test_table1.py tests the claims of Table 1, together with its measurements.
CLAIMS = [claim for claim in ledger() if claim.chapter != "table-1"]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.id)
def test_check_rejects_its_wrong_variants(claim: Claim) -> None:
    assert judge_wrong(claim)


@cache
def findings_in(path: Path) -> dict[str, dict[str, Any]]:
    """Return the findings by claim in a notebook that was executed for the current sources."""
    outputs = [o for cell in kept(path) for o in cell.get("outputs", ())]
    rows = [row for o in outputs for row in o.get("data", {}).get(FINDINGS, ())]
    return {row["id"]: row for row in rows}


@pytest.mark.parametrize("claim", ledger(), ids=lambda claim: claim.id)
def test_check_reproduces_its_record(claim: Claim) -> None:
    """The check reproduces the status, margin, instances, tallies and sentence."""
    # A chapter that was executed for the same sources has already run the check. This test runs
    # after the long one above, when all chapters have been executed.
    finding = findings_in(ROOT / "book" / f"{claim.chapter}.ipynb").get(claim.id)
    if finding is None:
        judged = judge(claim)
        finding = {"differences": judged.differences, "sentence": judged.sentence}
    assert finding["differences"] == [], f"run `python -m pu_lib claims --record {claim.id}`"
    assert finding["sentence"] == sentence_of(claim)


def bounded(compare: Recorder, steps: int = 3, most: int = 5) -> None:
    compare.at_most("steps", steps, most, at={"n": 1})


def stub(claim: Claim, **arguments: int) -> Judgement:
    """Return a claim judged by a check that 3 steps are at most 5."""
    check = Check(claim.id, bounded, {"at most 1": {"most": 1}}, arguments)
    return Judgement(claim, check, check.run())


CLAIM = Claim("x", "X", "1", "updates", "remark", "x", Scope.REMARK, Status.HOLDS)


@pytest.fixture
def catalog(monkeypatch: pytest.MonkeyPatch) -> Callable[[Check], None]:
    """Return a function that replaces the catalog by one claim, x, with a given check."""

    def put(check: Check) -> None:
        for module in ("judging", "catalog"):
            monkeypatch.setattr(f"pu_lib.claims.{module}.select", lambda _: (CLAIM,))
            monkeypatch.setattr(f"pu_lib.claims.{module}.check_of", lambda _: check)

    return put


def test_wrong_variant_that_passes_raises(catalog: Callable[[Check], None]) -> None:
    catalog(Check("x", bounded, {"at most 4": {"most": 4}}))
    with pytest.raises(AssertionError, match=r"x: the check accepts what is wrong: \['at most 4'"):
        judge_wrong("x")
    catalog(Check("x", bounded, {"at most 2": {"most": 2}}))
    assert judge_wrong("x")["at most 2"].status is Status.FALSE


def test_status_that_differs_from_the_record_raises(catalog: Callable[[Check], None]) -> None:
    catalog(Check("x", bounded, arguments={"steps": 6}))
    with pytest.raises(AssertionError, match="x: recorded 'holds', but found false as stated"):
        confirm("x")


def test_changed_bound_differs_from_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A bound of 6 instead of 5 changes the margin, slack and sharpness but not the status."""
    monkeypatch.setattr("pu_lib.claims.judging.recorded", lambda: {"x": stub(CLAIM).record()})
    assert stub(CLAIM).differences == []
    assert stub(CLAIM, most=6).differences == [
        "recorded margin 2.0, but found 3.0",
        "steps ≤ the bound: recorded least slack 2.0, but found 3.0",
        "steps ≤ the bound: recorded sharpness 0.4, but found 0.5",
    ]
    monkeypatch.setattr("pu_lib.claims.judging.recorded", dict)
    assert stub(CLAIM).differences == ["nothing is recorded"]


def swept(compare: Recorder, step_sizes: tuple[str | float, ...], draws: int = 50) -> None:
    for step_size in step_sizes:
        for draw in range(draws):
            at = {"step size": step_size, "draw": draw, "schedule": "constant"}
            compare.at_most("steps", 3, 5, at=at)


def test_narrower_sweep_differs_from_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sweep with a step size removed or replaced differs, although the worst case is the same."""

    def judged(*step_sizes: str | float, draws: int = 50) -> Judgement:
        arguments = {"step_sizes": step_sizes, "draws": draws}
        check = Check("x", swept, arguments=arguments)
        return Judgement(CLAIM, check, check.run())

    row = json.loads(json.dumps(judged("1/10", 0.3, 1).record()))
    assert row["inputs"] == {
        "step size": [0.1, 0.3, 1],
        "draw": ["50 values", 0, 49],
        "schedule": ["constant"],
    }
    monkeypatch.setattr("pu_lib.claims.judging.recorded", lambda: {"x": row})
    assert judged("1/10", 0.1 + 0.2, 1).differences == []
    sizes = "recorded inputs step size = [0.1, 0.3, 1], but tried"
    assert f"{sizes} [0.1, 1]" in judged("1/10", 1).differences
    assert judged("1/10", "1/2", 1).differences == [f"{sizes} [0.1, 0.5, 1]"]
    draws = "recorded inputs draw = ['50 values', 0, 49], but tried ['40 values', 0, 39]"
    assert draws in judged("1/10", 0.3, 1, draws=40).differences


@pytest.mark.parametrize(
    ("name", "identifiers"),
    [
        ("thm:domino/ii", ["thm:domino/ii", "thm:domino/ii/ceiling"]),
        ("Theorem 6(ii)", ["thm:domino/ii"]),
        ("theorem 6(ii)", ["thm:domino/ii"]),
        (
            "Theorem 5(i)",
            ["thm:unlearndecay/i", "thm:unlearndecay/i/pg-sm", "thm:unlearndecay/i/pg-es"],
        ),
        ("Lemma 13", ["lem:XXn<"]),
    ],
)
def test_select_finds_claims_by_identifier_or_number(name: str, identifiers: list[str]) -> None:
    assert [claim.id for claim in select([name])] == identifiers


def test_statement_selects_all_its_parts() -> None:
    claims = select(["thm:domino"])
    parts = [claim.id for claim in claims]
    statement = [claim.id for claim in claims if claim.scope is not Scope.PROOF]
    assert statement == [claim.id for claim in select(["Theorem 6"])]
    assert {"thm:domino/i", "thm:domino/ii", "thm:domino/iii"} <= set(parts)
    assert [j.claim.id for j in confirm("thm:domino").judgements] == parts
    with pytest.raises(ValueError, match="'thm:domino' stands for several claims; name one of thm"):
        judge("thm:domino")


@pytest.mark.parametrize("name", ["Lemma 1", "", " ", "Theo", "thm:dom"])
def test_select_rejects_prefixes(name: str) -> None:
    with pytest.raises(ValueError, match=f"claim: unknown '{name}'.*Give an identifier"):
        select([name])


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("thm:unlern", "thm:unlearn"), ("Therem 4", "Theorem 4"), ("thm:domino/iv", "thm:domino/i")],
)
def test_select_suggests_similar_names(name: str, suggestion: str) -> None:
    with pytest.raises(ValueError, match=f"claim: unknown '{name}'; did you mean '{suggestion}'"):
        select([name])


@pytest.mark.parametrize(
    "function", [confirm, judge, judge_wrong], ids=["confirm", "judge", "wrong"]
)
def test_unknown_claim_raises(function: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="claim: unknown 'thm:nothing'"):
        function("thm:nothing")


def test_machine_checked_claims_are_marked(capsys: pytest.CaptureFixture[str]) -> None:
    main(["claims", "--json", "thm:unlearn/i/pg-sm", "prop:non-monotonicity/example"])
    checked, other = json.loads(capsys.readouterr().out)
    assert checked["machine_checked"] == ["theorem_4_i_pg_sm"]
    assert other["machine_checked"] == []
    shown = confirm(checked["id"])._repr_html_()
    assert "machine-checked.html#theorem_4_i_pg_sm" in shown
    assert 'class="verdicts"' not in shown


def test_record_does_not_change_the_rows_of_other_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    request.addfinalizer(recorded.cache_clear)  # other tests read the real record
    request.addfinalizer(monkeypatch.undo)
    monkeypatch.setattr("pu_lib.claims.judging._record_of", lambda name: tmp_path / name)
    recorded.cache_clear()
    assert recorded() == {}
    first, second = (replace(claim, sentence="") for claim in ledger()[:2])
    assert first.chapter == second.chapter == "updates"
    record([stub(second), stub(first)])
    record([stub(second, most=9)])
    # rows are in the order of the catalog
    assert {name: row["margin"] for name, row in recorded().items()} == {
        first.id: 2.0,
        second.id: 6.0,
    }
    assert list(recorded()) == [first.id, second.id]
    before = (tmp_path / "updates").read_text("utf-8").splitlines()
    assert f'"id": "{first.id}"' in before[1]
    record([stub(second, most=7)])
    after = (tmp_path / "updates").read_text("utf-8").splitlines()
    same = [new == old for old, new in zip(before, after, strict=True)]
    # opening bracket, a line for each claim and one for its tally, closing bracket
    assert same == [True, True, True, False, False, True]


def test_html_of_a_claim_shows_comparisons_and_wrong_variants() -> None:
    judged = stub(replace(CLAIM, sentence="It takes $n$ < 5 steps."))
    line, _, folded = JudgedClaims((judged,))._repr_html_().partition("<details")
    assert "It takes" in line
    assert "&lt; 5 steps" in line
    cells = re.findall(r"<td>(.*?)</td>", folded)
    assert cells == [
        "steps ≤ the bound",
        "holds",
        "3 and 5",
        "n = 1",
        "fails if tightened by more than 40\N{NO-BREAK SPACE}%",
    ]
    assert "at most 1" in folded
    assert "def bounded" in folded
    # wrong variants do not have the badge of the claim
    assert (line + folded).count("verdict-status") == 1


def test_proofs_of_returns_the_proofs_of_a_claim() -> None:
    names = {claim.id: [proof.theorem for proof in proofs_of(claim.id)] for claim in ledger()}
    assert names["thm:unlearn/i/pg-sm"] == ["theorem_4_i_pg_sm"]
    assert names["prop:non-monotonicity/example"] == []
    assert sum(map(bool, names.values())) < len(names) / 2


def test_claims_can_be_judged_in_several_threads():
    names = [
        "book:two-actions",
        "thm:domino/iii",
        "thm:unlearn/i/pg-es",
    ]

    def outcome(name):
        judged = judge(name)
        wrong = {variant: result.status for variant, result in judge_wrong(name).items()}
        return judged.record(), wrong

    alone = [outcome(name) for name in names]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # switch threads more often than by default
    try:
        with ThreadPoolExecutor(5) as pool:
            assert list(pool.map(outcome, 3 * names)) == 3 * alone
    finally:
        sys.setswitchinterval(before)
