"""The page of figures says what the file of figures holds, and what it does not."""

import json

import pytest
import report

FIGURES = report.read(report.FIGURES)
ALL = {
    "coverage": {
        "of": "3 of 9",
        "files": {"pu_lib/a.py": [9, 10, 3, 4], "pu_lib/chapters/a/b.py": [30, 30, 0, 0]},
    },
    "fuzz": {"met": {"functions": {"inputs": 12345, "answers": 12000}}},
    "kills": {"kills": 7, "same": True},
    "builds": {"same": True},
    "times": {
        "minutes": {"test": 5.5, "book": 2.0},
        "tests": 2100,
        "cores": 2,
        "python": "3.12.1",
        "machine": "x86_64",
    },
}


def test_the_page_is_that_of_the_figures() -> None:
    assert report.PAGE.read_text("utf-8") == report.page(FIGURES), "run `make report`"


def test_every_figure_is_told_and_a_missing_one_is_called_missing() -> None:
    told, silent = report.page(ALL), report.page({})
    for words in (
        "2100 passed, in 5.5 minutes on 2 cores (x86_64, Python 3.12.1)",
        "functions: inputs drawn at random | 12\u202f000 answers, 12\u202f345 inputs |",
        "7 times in the middle of a sweep; the table has the bits of an undisturbed one",
        "| the same bytes |",
        "| `pu_lib/*.py` | 90.0\N{NO-BREAK SPACE}% of 10 | 75.0\N{NO-BREAK SPACE}% of 4 |",
        "| `pu_lib/chapters` | 100.0\N{NO-BREAK SPACE}% of 30 | – of 0 |",
        "| **all** | 97.5\N{NO-BREAK SPACE}% of 40 | 75.0\N{NO-BREAK SPACE}% of 4 |",
        "**Measured with 3 of 9 files of tests and notebooks only**",
    ):
        assert words in told
        assert words not in silent
    assert silent.count(report.MISSING) == len(report.MEASURES)
    assert report.MISSING not in told


def test_what_went_wrong_is_not_kept_quiet() -> None:
    bad = {"kills": {"kills": 7, "same": False}, "builds": {"same": False}}
    assert report.page(bad).count("**not**") == 2


def test_mutants_are_counted_without_those_that_change_nothing() -> None:
    row = {"mutants": 50, "sampled": 12, "at_first": 4, "killed": 6, "equivalent": 2}
    survivors = ["pu_lib/a.py:f: 1 -> 2", "pu_lib/a.py:f: 2 -> 3"]

    def table(tried: int) -> str:
        modules = {"pu_lib/a.py": {**row, "tried": tried}}
        found = {"command": "make mutants", "modules": modules, "survivors": survivors}
        return report.mutant_table(found)

    told = table(10)
    assert (
        "| `pu_lib/*.py` | 50 | 12 | 10 | 2 | 50.0\N{NO-BREAK SPACE}% | 75.0\N{NO-BREAK SPACE}% |"
        in told
    )
    assert "sampled and not tried" in told
    assert "sampled and not tried" not in table(12)
    assert "Not tried at all: `pu_lib/chapters`" in told
    assert all(name in told for name in survivors)
    assert "not measured" in report.mutant_table({})


def test_a_whole_measurement_has_nearly_every_line() -> None:
    found = FIGURES.get("coverage", {})
    if found.get("of") != report.WHOLE:
        pytest.skip("the coverage of all tests and notebooks was not measured, as the page says")
    lines = [sum(column) for column in zip(*found["files"].values(), strict=True)]
    assert lines[0] >= 0.97 * lines[1]


def test_what_can_be_measured_is_named(tmp_path, monkeypatch, capsys) -> None:
    assert report.main(["speed"]) == 2
    assert "coverage, fuzz, kills, builds, times" in capsys.readouterr().err
    monkeypatch.setattr(report, "FIGURES", tmp_path / "report.json")
    monkeypatch.setattr(report, "PAGE", tmp_path / "trust.md")
    monkeypatch.setitem(report.MEASURES, "kills", lambda: ALL["kills"])
    assert report.main(["kills"]) == 0
    assert json.loads(report.FIGURES.read_text()) == {"kills": ALL["kills"]}
    assert "7 times" in report.PAGE.read_text("utf-8")


def test_what_was_fuzzed_is_summed(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(report, "BUILD", tmp_path)
    with pytest.raises(SystemExit, match="make fuzz writes it"):
        report.measure_fuzz()
    lines = [{"of": "files", "inputs": 3}, {"of": "files", "inputs": 4, "refused": 1}]
    (tmp_path / "fuzz.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert report.measure_fuzz() == {"met": {"files": {"inputs": 7, "refused": 1}}}


def test_coverage_is_measured_of_tests_and_notebooks() -> None:
    pieces = report.pieces()
    assert {"tests/test_report.py", "book/domino.ipynb"} <= set(pieces)
    assert all((report.ROOT / piece).is_file() for piece in pieces)
