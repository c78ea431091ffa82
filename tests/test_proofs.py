"""Tests of the record of the proofs without Rocq; `make proofs` checks the proofs."""

import json
import re
import tomllib
from pathlib import Path

import agreement
import pytest

import proofs
from pu_lib.claims import Claim, Status, ledger
from pu_lib.claims.proofs import proofs_of
from pu_lib.updates import make_update

ROOT = Path(__file__).parent.parent
RECORD = json.loads(proofs.RECORD.read_text("utf-8"))
SOURCES = {name: (proofs.PROOFS / name).read_text("utf-8") for name in proofs.sources()}


def test_record_matches_the_sources() -> None:
    assert RECORD["sources"] == proofs.digest(), "run `make proofs`"


def test_all_sources_are_listed() -> None:
    assert set(SOURCES) == {path.name for path in proofs.PROOFS.glob("*.v")}


def test_record_has_every_theorem_and_only_allowed_axioms() -> None:
    listed = [(f"proofs/{x['file']}", x["name"], x["claims"]) for x in proofs.theorems()]
    assert listed == [(x["file"], x["theorem"], x["claims"]) for x in RECORD["theorems"]]
    for entry in RECORD["theorems"]:
        assert not proofs.not_allowed(entry["assumptions"])
        assert entry["statement"]


def test_proved_claims_are_in_the_ledger() -> None:
    files = (ROOT / "pu_lib" / "chapters").glob("*/claims.toml")
    tables = [tomllib.loads(path.read_text("utf-8")) for path in files]
    known = {claim["id"] for table in tables for claim in table.get("claim", [])}
    assert {claim for entry in RECORD["theorems"] for claim in entry["claims"]} <= known


LABELS = {
    "pg_sm": "PG-SM",
    "pg_es": "PG-ES",
    "di": "DI",
    "ce": "CE",
    "mce": "MCE",
    "sce": "SCE",
    "rloo": "RLOO",
    "grpo": "GRPO",
    "maxrl": "MaxRL",
    "rejection": "rejection sampling",
}


def updates_in(text: str) -> set[str]:
    """Return the labels of the updates in a text."""
    return {label for label in LABELS.values() if re.search(rf"(?<![\w-]){label}(?![\w-])", text)}


def proved_updates(entry: dict) -> set[str]:
    """Return the labels of the updates in the statement printed by Rocq."""
    return {
        label
        for name, label in LABELS.items()
        if re.search(rf"\b{name}(_formula)?\b", entry["statement"])
    }


def exceeds_theorem(entry: dict, claim: Claim) -> bool:
    """Return whether marking a claim as machine-checked exceeds the theorem."""
    of_row, proved = updates_in(f"{claim.number} {claim.statement}"), proved_updates(entry)
    # a claim that names no update is about all updates, and the theorem must be, too
    fits = of_row <= proved if of_row else not proved
    if not entry["part"]:
        return claim.status is not Status.HOLDS or not fits
    return not fits and updates_in(entry["part"]) != proved


@pytest.mark.parametrize("entry", RECORD["theorems"], ids=lambda entry: entry["theorem"])
def test_marked_claims_do_not_exceed_their_theorem(entry: dict) -> None:
    claims = [claim for claim in ledger() if claim.id in entry["claims"]]
    assert claims
    assert [claim.id for claim in claims if exceeds_theorem(entry, claim)] == []
    # the title on the page names the updates, unless the statements of the claims do
    assert updates_in(entry["title"]) <= proved_updates(entry)
    if not all(updates_in(claim.statement) == proved_updates(entry) for claim in claims):
        assert updates_in(entry["title"]) == proved_updates(entry)


def test_marks_on_generic_or_corrected_claims_are_detected() -> None:
    entries = {entry["theorem"]: entry for entry in RECORD["theorems"]}
    claims = {claim.id: claim for claim in ledger()}
    for theorem, row in {
        "theorem_4_i_pg_sm": "thm:unlearn/i",
        "theorem_5_i_pg_sm": "thm:unlearndecay/i",
        "theorem_6_i_pg_sm": "thm:domino/i",
    }.items():
        assert exceeds_theorem(entries[theorem], claims[row])
        assert not exceeds_theorem(entries[theorem], claims[f"{row}/pg-sm"])
        assert exceeds_theorem({**entries[theorem], "part": ""}, claims[f"{row}/pg-sm"])
        assert proofs_of(row) == ()
    assert exceeds_theorem({**entries["comparison"], "part": ""}, claims["lem:comparison"])
    generic, row = entries["sign_condition_remembers"], claims["more:impossible"]
    assert not exceeds_theorem(generic, row)
    assert exceeds_theorem({**generic, "statement": "forall w, sce w"}, row)


@pytest.mark.parametrize("name", SOURCES)
def test_sources_assume_nothing(name: str) -> None:
    assert proofs.forbidden(SOURCES[name]) == []
    assert max(map(len, SOURCES[name].splitlines())) <= 100


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Lemma a : False. Admitted.", ["Admitted"]),
        ("Axiom a : False.", ["Axiom"]),
        ("Parameters a b : R.", ["Parameters"]),
        ("Proof. admit. Qed.", ["admit"]),
        ("Unset Guard Checking.", ["Unset Guard Checking"]),
        ("(* an Axiom (* nested *) of choice *) Lemma a : True.", []),
        ("Lemma a (* x *) : False. (* y *) Admitted.", ["Admitted"]),
        ("Lemma admitted_fact : True.", []),
    ],
)
def test_forbidden_finds_unproved_statements(text: str, words: list[str]) -> None:
    assert proofs.forbidden(text) == words


def test_assumptions_are_parsed() -> None:
    printed = (
        "Axioms:\nClassical_Prop.classic : forall P : Prop, P \\/ ~ P\n"
        "PrimFloat.compare\n  : PrimFloat.float -> PrimFloat.float\nMine.easy : False\n"
    )
    names = proofs.assumptions(printed)
    assert names == ["Classical_Prop.classic", "Mine.easy", "PrimFloat.compare"]
    assert proofs.not_allowed(names) == ["Mine.easy", "PrimFloat.compare"]
    assert proofs.not_allowed(["Mine.classic", "Coq.Logic.Classical_Prop.classic"]) == [
        "Mine.classic"
    ]
    assert proofs.assumptions("Closed under the global context\n") == []


def test_definitions_agree_with_the_library() -> None:
    # `make proofs` proves these goals about the definitions in Rocq
    message = "Run `python tools/agreement.py`, then `make proofs`."
    assert agreement.TARGET.read_text("utf-8") == agreement.source(), message


def test_definitions_do_not_agree_with_other_updates() -> None:
    for name, other in {
        "pg-sm": make_update("ce"),
        "pg-es": make_update("pg-es", factor="drop"),
        "ce": make_update("mce"),
        "mce": make_update("ce"),
    }.items():
        assert agreement.source({name: other}) != agreement.TARGET.read_text("utf-8")
