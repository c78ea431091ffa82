"""The ledger is whole, and every check says again what is recorded."""

import json
import re
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pu_notebooks import kept

from pu_lib import checks
from pu_lib.__main__ import main
from pu_lib.chapters.table1.checks import PRINTED
from pu_lib.chapters.table1.quantities import COLUMNS
from pu_lib.claims import (
    VERDICTS,
    Claim,
    Judgement,
    Scope,
    chapters,
    check_of,
    confirm,
    controls,
    errata,
    judge,
    ledger,
    record,
    recorded,
    select,
    sentence_of,
)
from pu_lib.claims.proofs import proofs_of
from pu_lib.verdict import CHECKS, Check, Status, Verdict, Worst, judged

ROOT = Path(__file__).parent.parent
TABLE_1 = {f"tab:analysis/{update}/{column}" for update in PRINTED for column in COLUMNS}


def test_every_numbered_statement_of_the_paper_is_in_the_ledger() -> None:
    numbers = {claim.number.split("(")[0].split(",")[0].strip() for claim in ledger()}
    theorems = {f"Theorem {i}" for i in range(1, 7)}
    lemmas = {f"Lemma {i}" for i in range(8, 14)}
    assert theorems | lemmas | {"Proposition 1", "Proposition 2", "Corollary 7"} <= numbers
    assert {claim.id for claim in ledger()} >= TABLE_1


def not_as_printed(claim: Claim) -> bool:
    return claim.status in (Status.CORRECTED, Status.FALSE) and claim.scope is not Scope.EXPERIMENT


@pytest.mark.parametrize("chapter", chapters())
def test_what_is_not_right_as_printed_says_what_is_wrong_how_bad_and_what_is_true(
    chapter: str,
) -> None:
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    told = {
        claim.id: (bool(claim.wrong), claim.severity is not None, bool(claim.correction))
        for claim in claims
        if claim.scope is not Scope.EXPERIMENT
    }
    expected = {c.id: (not_as_printed(c),) * 3 for c in claims if c.id in told}
    assert told == expected, "(wrong, severity, correction)"


@pytest.mark.parametrize("chapter", chapters())
def test_every_check_is_tried_on_a_wrong_claim(chapter: str) -> None:
    claims = [c for c in ledger() if c.chapter == chapter and c.status is not Status.PENDING]
    assert [claim.id for claim in claims if not check_of(claim).moved] == []


def test_the_book_asserts_nothing_that_is_false() -> None:
    own = {claim.id: claim.status for claim in ledger() if claim.scope is Scope.BOOK}
    assert set(own.values()) <= {Status.HOLDS, Status.OPEN}, own


@pytest.mark.parametrize("chapter", chapters())
def test_every_claim_speaks(chapter: str) -> None:
    claims = [claim for claim in ledger() if claim.chapter == chapter]
    assert [claim.id for claim in claims if not claim.sentence] == []
    told = Counter(claim.sentence for claim in claims)
    assert [sentence for sentence, count in told.items() if count > 1] == []
    for claim in claims:
        said = sentence_of(claim)
        assert said.endswith((".", ".$")), said
        assert not re.search(r"np\.|Fraction\(|e-\d\d", said), said


def test_a_sentence_with_a_place_that_nothing_fills_is_refused() -> None:
    claim = replace(ledger()[0], sentence="It takes {no such thing} steps.")
    judgement = Judgement(claim, Verdict(Status.HOLDS, 1.0, "x", figures={"n": 1}), 0.0)
    with pytest.raises(ValueError, match=r"names the figure 'no such thing'.*it has n,"):
        _ = judgement.sentence
    with pytest.raises(ValueError, match="no figure 'no such thing'"):
        sentence_of(claim)


def test_a_claim_without_a_sentence_says_what_the_ledger_says() -> None:
    claim = replace(ledger()[0], sentence="", statement="S.", wrong="", correction="")
    assert sentence_of(claim) == "S."
    assert sentence_of(replace(claim, wrong="W.", correction="C.")) == "W. C."


def test_errata_belong_to_chapters_and_claims() -> None:
    ids = {claim.id for claim in ledger()}
    for erratum in errata():
        assert erratum.chapter in chapters()
        assert not erratum.claim or erratum.claim in ids, erratum


def test_a_notebook_holds_its_verdicts_as_data() -> None:
    shown = confirm("prop:non-monotonicity/example", "thm:unlearn/i/pg-sm")._repr_mimebundle_()
    assert [row["id"] for row in shown[VERDICTS]] == [
        "prop:non-monotonicity/example",
        "thm:unlearn/i/pg-sm",
    ]
    assert json.loads(json.dumps(shown)) == shown
    both = confirm("prop:non-monotonicity/example", "thm:unlearn/i/pg-sm")._repr_html_()
    assert 'class="verdicts"' in both
    assert "</code> in <code>pu_lib/chapters/monotonicity/checks.py</code>" in both


# Those of Table 1 are in tests/checks/test_claims.py, beside what else asks for its measurements.
TRIED = [c for c in ledger() if c.chapter != "claims" and (check_of(c).moved or check_of(c).blind)]


@pytest.mark.parametrize("claim", TRIED, ids=lambda claim: claim.id)
def test_check_refuses_the_claim_moved(claim: Claim) -> None:
    controls(claim)


@cache
def confirmed(path: Path) -> dict[str, dict[str, Any]]:
    """Return what a notebook found when it was executed with the library as it is, by claim."""
    outputs = [o for cell in kept(path) for o in cell.get("outputs", ())]
    rows = [row for o in outputs for row in o.get("data", {}).get(VERDICTS, ())]
    return {row["id"]: row for row in rows}


COUNTS = re.compile(r"\d+ instances?\b|\d+ of \d+ parts hold, \d+ are refuted")


@pytest.mark.parametrize(
    "claim", [c for c in ledger() if c.status is not Status.PENDING], ids=lambda claim: claim.id
)
def test_check_says_again_what_is_recorded(claim: Claim) -> None:
    # A chapter that was executed for the same sources has just run the check. This test stands
    # behind the long one above, so that the last chapters have been executed, too.
    chapter = ROOT / "book" / f"{claim.chapter}.ipynb"
    found = confirmed(chapter).get(claim.id) or judge(claim).found
    assert found["status"] == claim.status.value, found["summary"]
    # What is false is shown to be false; what holds, or holds as corrected, is nowhere violated.
    if claim.status is Status.FALSE:
        assert found["counterexample"]
    if claim.status is Status.HOLDS:
        assert not found["counterexample"]
    assert "also as corrected" not in found["summary"]
    row = recorded().get(claim.id)
    assert found["sentence"] == sentence_of(claim), "run `python -m pu_lib claims --record`"
    assert row is not None, "run `python -m pu_lib claims --record` for this claim"
    # Margins are floating-point results of deterministic checks; another version of the linear
    # algebra may change their last digits.
    assert found["margin"] == pytest.approx(row["margin"], rel=1e-6, abs=1e-9)
    # How much was looked at is the same everywhere, and so is how much of it held.
    assert COUNTS.findall(found["summary"]) == COUNTS.findall(row["summary"])


def test_a_control_that_passes_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    claim = Claim("x", "X", "1", "updates", "remark", "x", Scope.REMARK, Status.HOLDS)
    monkeypatch.setattr("pu_lib.claims.select", lambda _: (claim,))

    def always(extra: int = 1) -> Verdict:
        return Verdict(Status.HOLDS, 1.0, "It holds.")

    moved = {"twice as much": {"extra": 2}}
    monkeypatch.setitem(CHECKS, "x", Check("x", always, {}, moved, {}))
    with pytest.raises(AssertionError, match="accepts 'twice as much'"):
        controls("x")
    monkeypatch.setitem(CHECKS, "x", Check("x", always, {}, {}, moved))
    assert "twice as much" in controls("x")._repr_html_()


def test_a_wrong_claim_is_tried_until_an_instance_breaks_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[int] = []

    def below(most: int, silent: bool = False) -> Verdict:
        worst = Worst("the room")
        for n in range(10):
            tried.append(n)
            worst.add(most - n, n=n)
        return Verdict(Status.HOLDS, 1.0, "It holds.") if silent else judged(worst)

    moved = {"too little": {"most": 3}, "too little, unheard": {"most": 3, "silent": True}}
    check = Check("x", below, {"most": 9}, moved, {})
    assert check.refute("too little").status is Status.FALSE
    assert tried == [0, 1, 2, 3, 4]
    assert check.run_moved("too little").margin == -6.0
    with pytest.raises(ValueError, match="x: the check notes a violation and says that it holds"):
        check.run_moved("too little, unheard")
    assert check.run().status is Status.HOLDS


@pytest.mark.parametrize(("status", "margin"), [(Status.HOLDS, -1.0), (Status.OPEN, -6.0)])
def test_controls_of_a_claim_that_holds_end_with_the_first_instance_that_breaks_them(
    status: Status, margin: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The rooms are 3, 2, ..., -6."""
    claim = Claim("x", "X", "1", "updates", "remark", "x", Scope.REMARK, status)
    monkeypatch.setattr("pu_lib.claims.select", lambda _: (claim,))

    def below(most: int) -> Verdict:
        worst = Worst("the room")
        for n in range(10):
            worst.add(most - n, n=n)
        return judged(worst)

    monkeypatch.setitem(CHECKS, "x", Check("x", below, {}, {"too little": {"most": 3}}, {}))
    assert controls("x").refused["too little"].margin == margin


@pytest.mark.parametrize(
    ("scope", "status", "sentence", "folded"),
    [
        (Scope.BOOK, Status.HOLDS, "It holds.", True),
        (Scope.BOOK, Status.HOLDS, "It holds on {instances} instances.", True),
        (Scope.BOOK, Status.HOLDS, "It takes {steps} steps.", False),
        (Scope.BOOK, Status.OPEN, "Nobody knows.", False),
        (Scope.REMARK, Status.HOLDS, "It holds.", False),
    ],
)
def test_a_sentence_is_folded_where_it_says_no_more_than_that_a_theorem_of_the_book_holds(
    scope: Scope, status: Status, sentence: str, folded: bool
) -> None:
    claim = replace(ledger()[0], scope=scope, status=status, sentence=sentence)
    verdict = Verdict(status, 1.0, "Found.", figures={"instances": 3, "steps": 4})
    assert Judgement(claim, verdict, 0.0).spoken.folded is folded


@pytest.mark.parametrize("ask", [confirm, controls], ids=["confirm", "controls"])
def test_one_claim_is_asked_for_by_its_whole_identifier(ask: Callable[[str], object]) -> None:
    with pytest.raises(ValueError, match="'thm:nothing' is not in the ledger"):
        ask("thm:nothing")
    with pytest.raises(ValueError, match="'thm:domino' is the head of several claims"):
        ask("thm:domino")


def test_a_part_is_found_by_its_head() -> None:
    found = {claim.id for claim in select(["thm:domino"])}
    assert found >= {"thm:domino/i", "thm:domino/ii", "thm:domino/iii"}
    assert all(name.startswith("thm:domino/") for name in found)


def test_unknown_claim_is_one_sentence_and_exit_code_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["claims", "thm:nothing"]) == 2
    assert "thm:nothing" in capsys.readouterr().err


def test_json_rows_have_the_promised_keys(capsys: pytest.CaptureFixture[str]) -> None:
    main(["claims", "--json", "prop:non-monotonicity/example"])
    (row,) = json.loads(capsys.readouterr().out)
    assert list(row) == [
        "id",
        "number",
        "kind",
        "scope",
        "severity",
        "section",
        "chapter",
        "status",
        "margin",
        "seconds",
        "machine_checked",
    ]


def test_machine_checked_claims_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    main(["claims", "--json", "thm:unlearn/i/pg-sm", "prop:non-monotonicity/example"])
    checked, other = json.loads(capsys.readouterr().out)
    assert checked["machine_checked"] == ["theorem_4_i_pg_sm"]
    assert other["machine_checked"] == []
    shown = confirm(checked["id"])._repr_html_()
    assert "machine-checked.html#theorem_4_i_pg_sm" in shown
    assert 'class="verdicts"' not in shown


def test_a_verdict_that_is_not_the_recorded_one_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = Claim("x", "X", "1", "updates", "remark", "x", Scope.REMARK, Status.HOLDS)
    monkeypatch.setattr("pu_lib.cli.claims.select", lambda _: (claim,))
    broken = Check("x", lambda: Verdict(Status.FALSE, -1.0, "It fails."), {}, {}, {})
    monkeypatch.setitem(CHECKS, "x", broken)
    assert main(["claims"]) == 1
    assert "recorded 'holds'" in capsys.readouterr().err


def test_a_record_keeps_what_was_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    path = tmp_path / "verdicts.json"
    request.addfinalizer(recorded.cache_clear)  # whatever happens: other tests read the true record
    request.addfinalizer(monkeypatch.undo)
    monkeypatch.setattr("pu_lib.claims._records", lambda: path)
    recorded.cache_clear()
    assert recorded() == {}
    first, second, third = (replace(claim, sentence="") for claim in ledger()[:3])
    record([Judgement(c, Verdict(Status.HOLDS, 1.0, "Old."), 0.5) for c in (second, first)])
    new = Verdict(Status.HOLDS, 2.0, "New.")
    pending = replace(third, status=Status.PENDING)
    record([Judgement(second, new, 0.25), Judgement(pending, new, 0.0)])
    # in the ledger's order, the pending one left out
    assert list(recorded()) == [first.id, second.id]
    kept = {name: (row["summary"], row["margin"]) for name, row in recorded().items()}
    assert kept == {first.id: ("Old.", 1.0), second.id: ("New.", 2.0)}
    text = json.dumps(list(recorded().values()), indent=1, ensure_ascii=False)
    assert path.read_text("utf-8") == text + "\n"


def test_require_names_the_claim_and_the_counterexample() -> None:
    verdict = Verdict(Status.FALSE, -0.5, "It fails.", counterexample={"n": 3}, claim="x")
    with pytest.raises(AssertionError, match=r"x should be 'holds'.*n.*3"):
        verdict.require("holds")
    assert verdict.require("false as stated", "open") is verdict


def test_verdict_box_escapes_and_shows_its_table() -> None:
    rows = ({"n": 1, "gap": 0.25}, {"n": 2, "gap": 0.5})
    box = Verdict(Status.HOLDS, 1.0, "a < b", evidence=rows)._repr_html_()
    assert "a &lt; b" in box
    assert "<td>0.25</td>" in box


def test_a_margin_that_is_not_a_number_is_refused() -> None:
    with pytest.raises(ValueError, match="nan"):
        Verdict(Status.HOLDS, float("nan"), "It holds.")
    worst = Worst()
    with pytest.raises(ValueError, match=r"nan at n = 3"):
        worst.add(float("nan"), n=3)


def test_a_check_that_tried_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="no instance"):
        judged(Worst())


def test_the_worst_instance_decides() -> None:
    ours, printed = Worst("room", keep=2), Worst("room")
    for n in range(20):
        ours.add(abs(n - 7) + 1, n=n)
    assert judged(ours).status is Status.HOLDS
    assert (ours.margin, ours.instance, ours.count) == (1.0, {"n": 7}, 20)
    assert len(ours.rows) == 2
    printed.add(-2.0, n=0)
    corrected = judged(ours, printed)
    assert corrected.status is Status.CORRECTED
    assert corrected.counterexample == {"n": 0}
    ours.add(-1.0, n=99)
    assert judged(ours, printed).status is Status.FALSE


def test_the_check_of_a_claim_is_looked_for_in_the_module_of_its_chapter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a_chapter.py").write_text(
        "from pu_lib.verdict import CHECKS, Check\n\n"
        "CHECKS['a-claim'] = Check('a-claim', lambda: None, {}, {}, {})\n"
    )
    monkeypatch.setattr(checks, "__path__", [*checks.__path__, str(tmp_path)])
    claim = Claim("a-claim", "X", "1", "a-chapter", "remark", "x", Scope.REMARK, Status.HOLDS)
    try:
        assert check_of(claim).claim == "a-claim"
    finally:
        CHECKS.pop("a-claim", None)
        sys.modules.pop("pu_lib.checks.a_chapter", None)


def test_a_proof_belongs_to_the_claims_that_it_names() -> None:
    names = {claim.id: [proof.theorem for proof in proofs_of(claim.id)] for claim in ledger()}
    assert names["thm:unlearn/i/pg-sm"] == ["theorem_4_i_pg_sm"]
    assert names["prop:non-monotonicity/example"] == []
    assert sum(map(bool, names.values())) < len(names) / 2
