"""Results, commands, signatures and exercises are those from before the restructuring.

What is compared stands in ``tests/frozen``; its `freeze` says how it was made, and
``exceptions.toml`` lists what may differ and why. The checks themselves are run again by
``tests/frozen/gate.py``, which takes minutes, and, for the recorded verdicts, by `test_claims`; the
pages are compared in `test_frozen_pages`.
"""

import hashlib
from collections import Counter

import adapter
import collect
import pytest
import runs
from compare import compare_record, exceptions, frozen, lost, missing_controls, missing_tests

QUICK = sorted({tuple(row[k] for k in runs.KIND) for row in frozen("runs")["quick"]})


def told(differences: list[str]) -> None:
    assert not differences, "\n".join(differences)


def test_recorded_verdicts_are_the_same() -> None:
    recorded = adapter.recorded()
    assert recorded.keys() >= frozen("claims").keys()
    told(
        [
            line
            for name in frozen("claims")
            for line in compare_record(name, recorded[name]["status"], recorded[name]["margin"])
        ]
    )


def test_checks_are_still_given_the_wrong_claims_that_they_refused() -> None:
    told([line for name in frozen("claims") for line in missing_controls(name, given(name))])


def given(name: str) -> list[str]:
    return adapter.controls(name) if name in adapter.claims() else []


def test_the_table_of_runs_is_the_same() -> None:
    assert hashlib.sha256(runs.TABLE.read_bytes()).hexdigest() == frozen("runs")["sha256"]


@pytest.mark.parametrize("kind", QUICK, ids=lambda kind: " ".join(map(str, kind)))
def test_runs_are_the_same_bit_for_bit(kind: tuple[object, ...]) -> None:
    # To compile the code of all settings takes minutes: `gate.py runs` does.
    chosen = [row for row in frozen("runs")["quick"] if tuple(row[k] for k in runs.KIND) == kind]
    told([line for row in chosen for line in runs.compare_run(row)])


@pytest.mark.parametrize("words", frozen("commands"))
def test_commands_answer_the_same(words: str) -> None:
    now, before = collect.call(adapter.command(words).split()), frozen("commands")[words]
    listed = {row["call"] for row in exceptions("command")}
    assert now[0] == before[0], "the exit code"
    assert words in listed or now == before


def test_public_names_have_the_same_signatures() -> None:
    listed = {row["name"] for row in exceptions("name")}
    told([x for x in lost("names", frozen("api"), collect.api()) if x not in listed])


def test_what_notebooks_imported_can_be_imported() -> None:
    told(collect.not_importable(frozen("imports")))


def test_exercises_and_solutions_are_the_same() -> None:
    listed = {row["label"] for row in exceptions("exercise")}
    found = lost("exercise", frozen("exercises"), collect.exercises())
    told([line for line in found if not any(f" {label}: " in line for label in listed)])


def test_theorems_and_what_they_prove_are_the_same() -> None:
    def by_name(rows: list[dict[str, object]]) -> dict[str, dict[str, object]]:
        return {str(row["theorem"]): row for row in rows}

    told(lost("theorem", by_name(frozen("theorems")), by_name(adapter.theorems())))


def test_no_test_with_a_number_solved_by_hand_is_gone() -> None:
    told(missing_tests(dict(sum(collect.tests().values(), Counter()))))


@pytest.mark.parametrize(
    "kind",
    [
        "page",
        "anchor",
        "address",
        "margin",
        "sentence",
        "wrong",
        "test",
        "command",
        "name",
        "exercise",
    ],
)
def test_every_exception_has_a_reason_and_an_object(kind: str) -> None:
    keys = {
        "page": {"address", "old", "new"},
        "anchor": {"address", "id"},
        "address": {"old", "new"},
        "margin": {"claim", "old", "new"},
        "sentence": {"claim", "old", "new"},
        "wrong": {"claim", "words"},
        "test": {"old", "new"},
        "command": {"call"},
        "name": {"name"},
        "exercise": {"label"},
    }[kind]
    for row in exceptions(kind):
        assert row.keys() == keys | {"reason"}, row
        assert row.get("claim", "eq:pg") in frozen("claims"), row
        assert row.get("address", "index.html") in frozen("pages"), row
        assert kind != "address" or row["old"] in frozen("pages"), row
        assert kind != "test" or row["old"] in frozen("solved"), row
        assert kind != "wrong" or row["words"] in listed(row["claim"]), row


def listed(name: str) -> list[str]:
    return list(frozen("claims")[name]["wrong"])
