"""The notebooks as they are kept: stripped, listed, with pictures that say what they show."""

import ast
import re
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest
import toc
import yaml

from pu_lib.claims import chapters, ledger
from pu_lib.claims.tables import chapter_title

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
LONGEST_MEDIAN = 8


def cells(notebook: Path, kind: str) -> list:
    return [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == kind]


RETOLD = {
    "updates",
    "monotonicity",
    "unlearning",
    "domino",
    "gravity-well",
    "convergence",
    "rates",
    "cross-entropy",
    "stochastic-updates",
    "function-approximation",
    "what-came-after",
    "literature",
}
"""Chapters told first and checked behind."""


TOO_LONG = {"sec:conv/ce-conjecture/constant-step"}
"""Claims whose checks take too long for a page, which says how to run them."""


def only_checks(source: str) -> bool:
    """Return whether a cell only runs checks: it imports and confirms, and no more."""
    statements = [
        node
        for node in ast.parse(source).body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    return bool(statements) and all(
        isinstance(node, ast.Expr) and re.search(r"^confirm\(", ast.unparse(node))
        for node in statements
    )


@pytest.mark.parametrize(
    ("source", "verdict"),
    [
        ('from pu_lib.claims import confirm\nconfirm("a", "b")', True),
        ('print(count(5))\nconfirm("a")', False),
        ("from pu_lib.mdp import chain", False),
        ("n = 3", False),
    ],
)
def test_cells_that_only_check_are_known(source: str, verdict: bool) -> None:
    assert only_checks(source) is verdict


@pytest.mark.parametrize("chapter", sorted(RETOLD))
def test_cells_that_only_check_show_what_they_found_and_not_the_call(chapter: str) -> None:
    for cell in cells(ROOT / "book" / f"{chapter}.ipynb", "code"):
        hidden = "remove-input" in cell.metadata.get("tags", [])
        assert hidden or not only_checks(cell.source), cell.source


@pytest.mark.parametrize("chapter", sorted(RETOLD))
def test_every_claim_is_confirmed_in_its_chapter(chapter: str) -> None:
    told = "\n".join(c.source for c in cells(ROOT / "book" / f"{chapter}.ipynb", "code"))
    confirmed = "\n".join(re.findall(r"confirm\((.*?)\)", told, re.DOTALL))
    claims = [claim.id for claim in ledger() if claim.chapter == chapter]
    page = (ROOT / "book" / f"{chapter}.ipynb").read_text("utf-8").replace('\\"', '"')
    for name in claims:
        assert f'"{name}"' in confirmed or (name in TOO_LONG and f'confirm("{name}")' in page), name


def figure_cells(notebook: Path) -> list:
    return [cell for cell in cells(notebook, "code") if "mystnb" in cell.metadata]


def listed() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    return [toc["root"], *(chapter["file"] for chapter in chapters)]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(notebook: Path) -> None:
    kept = [c for c in cells(notebook, "code") if c.outputs or c.execution_count is not None]
    mend = f"jupyter nbconvert --clear-output --inplace book/{notebook.name}"
    assert not kept, f"{notebook.name} keeps the outputs of {len(kept)} cells; strip it: {mend}"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_valid_and_run_anywhere(notebook: Path) -> None:
    content = nbformat.read(notebook, 4)
    nbformat.validate(content)
    kernel = content.metadata.get("kernelspec", {}).get("name")
    assert kernel == "python3", f"{notebook.name} names no kernel python3 in its metadata"
    assert "/home/" not in notebook.read_text(), "a path of one machine"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_tell_and_the_library_computes(notebook: Path) -> None:
    lines = sorted(len(cell.source.splitlines()) for cell in cells(notebook, "code"))
    assert not lines or lines[len(lines) // 2] <= LONGEST_MEDIAN
    readers = False  # what follows "Change it" is the reader's to edit
    for cell in nbformat.read(notebook, 4).cells:
        readers = readers or bool(re.search(r"^## Change it", cell.source, re.MULTILINE))
        if cell.cell_type == "code":
            defines = re.search(r"^\s*(def|class) ", cell.source, re.MULTILINE)
            assert not defines or readers or notebook.stem == "your-update", cell.source
            assert "interact(" not in cell.source, "interact does nothing on a rendered page"


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_pictures_have_words_captions_and_names(notebook: Path) -> None:
    for cell in figure_cells(notebook):
        image, figure = cell.metadata.mystnb.image, cell.metadata.mystnb.figure
        where = f"{notebook.name}: {cell.source!r}"
        assert len(image.alt) >= 40, f"the words of the picture are too few in {where}"
        assert image.get("classes") in ("lineplot", "heatmap"), f"no class in {where}"
        assert figure.caption, f"no caption in {where}"
        assert figure.name.startswith("fig-"), f"{figure.name} in {where}"


def test_names_of_figures_are_unique() -> None:
    names = Counter(
        cell.metadata.mystnb.figure.name for path in NOTEBOOKS for cell in figure_cells(path)
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_every_page_is_listed_and_every_listed_page_exists() -> None:
    kept = [path for path in (ROOT / "book").iterdir() if path.suffix in toc.SUFFIXES]
    assert set(listed()) == {f"book/{path.stem}" for path in kept}, "run tools/toc.py"


def test_every_module_of_the_library_has_a_page_in_its_reference() -> None:
    folders = ("", "claims/", "empirical/", "chapters/*/")
    modules = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for folder in folders
        for path in (ROOT / "pu_lib").glob(f"{folder}[!_]*.py")
        if not re.match("(checks|counting|figures|inequalities|moved)", path.stem)
    }
    texts = {path.stem: path.read_text("utf-8") for path in (ROOT / "book" / "api").glob("*.md")}
    documented = re.findall(r"^```{api} (\S+)", "\n".join(texts.values()), re.MULTILINE)
    assert sorted(documented) == sorted(modules)
    pages = set(texts)
    contents = (ROOT / "_toc.yml").read_text() + (ROOT / "book" / "library.md").read_text()
    assert all(contents.count(f"api/{page}\n") == 1 for page in pages), "mend _toc.yml"
    assert all(contents.count(f"<api/{page}>") == 1 for page in pages), "mend library.md"


def test_the_table_of_contents_follows_the_ledger() -> None:
    assert (ROOT / "_toc.yml").read_text("utf-8") == toc.table(), "run tools/toc.py"
    judging = [name for name in listed() if name.removeprefix("book/") in chapters()]
    assert judging == [f"book/{name}" for name in chapters()]


def test_the_notebook_that_jupyterlab_opens_lists_the_chapters_and_runs() -> None:
    text = (ROOT / "start.ipynb").read_text("utf-8")
    assert text == toc.start(), "run tools/toc.py"
    notebook = nbformat.reads(text, 4)
    nbformat.validate(notebook)
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.findall(r"\(book/([a-z-]+)\.ipynb\)", words) == [
        name.removeprefix("book/") for name in listed() if (ROOT / f"{name}.ipynb").exists()
    ]
    # nothing that JupyterLab does not typeset by itself
    assert not re.search(r"^:::|^```\{|\{[a-z:]+\}`", words, re.MULTILINE)
    (code,) = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    exec(code, {})


def test_a_page_without_a_place_is_named(tmp_path: Path) -> None:
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    (tmp_path / "book").mkdir()
    for name in listed():
        (tmp_path / f"{name}.ipynb").touch()
    assert toc.table(tmp_path) == toc.table()
    (tmp_path / "book" / "new-chapter.ipynb").touch()
    with pytest.raises(ValueError, match=r"^book/new-chapter: not in the table of contents"):
        toc.table(tmp_path)
    (tmp_path / "book" / "new-chapter.ipynb").unlink()
    (tmp_path / "book" / "updates.ipynb").unlink()
    with pytest.raises(ValueError, match=r"^book/updates: listed"):
        toc.table(tmp_path)


def test_a_chapter_is_its_notebook_and_its_folder(tmp_path: Path) -> None:
    """In a copy of the repository these two are all that a new chapter needs."""
    for folder in ("pu_lib", "tools"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("*.parquet")
        )
    shutil.copytree(ROOT / "book", tmp_path / "book")
    shutil.copy(ROOT / "_toc.yml", tmp_path)
    shutil.copy(ROOT / "book" / "domino.ipynb", tmp_path / "book" / "detours.ipynb")
    folder = tmp_path / "pu_lib" / "chapters" / "detours"
    folder.mkdir()
    (folder / "claims.toml").write_text(
        """
title = "Detours"
order = 75

[[claim]]
id = "sec:detours"
number = "Section 9"
section = "9"
kind = "remark"
statement = "A detour takes time."
scope = "remark"
status = "open"
"""
    )

    def python(*arguments: str) -> str:
        run = subprocess.run(
            [sys.executable, *arguments],
            cwd=tmp_path,
            env={"PYTHONPATH": str(tmp_path), "PATH": ""},
            capture_output=True,
            text=True,
            check=True,
        )
        return run.stdout

    python("tools/toc.py")
    contents = (tmp_path / "_toc.yml").read_text("utf-8")
    assert re.search(r"book/unlearning\s+- file: book/detours\s+- file: book/domino", contents)
    assert "sec:detours" in python("-m", "pu_lib", "claims", "--list", "detours")
    shown = python("-c", "from pu_lib.claims.tables import *; print(ledger_table('detours'))")
    assert "A detour takes time." in shown


def test_letters_of_one_chapter_stand_there() -> None:
    page = (ROOT / "book" / "notation.md").read_text("utf-8")
    rows = page.partition(":class: letters")[2].split("* - ")[2:]
    assert rows
    for row in rows:
        letters, _, where = row.split("\n  - ")
        for chapter in re.findall(r"{doc}`(.*?)`", where):
            told = "\n".join(
                c.source for c in cells(ROOT / "book" / f"{chapter}.ipynb", "markdown")
            )
            for letter in re.findall(r"\$(.*?)\$", letters):
                assert letter in told, f"{letter} does not stand in {chapter}: mend notation.md"


def test_the_ledger_calls_the_chapters_by_their_titles() -> None:
    for chapter in chapters():
        assert cells(ROOT / "book" / f"{chapter}.ipynb", "markdown")[0].source.startswith(
            f"# {chapter_title(chapter)}\n"
        )


def test_requirements_name_no_host() -> None:
    for path in ROOT.glob("requirements*.txt"):
        text = path.read_text()
        assert "://" not in text
        assert "--hash=sha256:" in text


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_formula_lost_its_backslash(notebook: Path) -> None:
    """A backslash read as an escape leaves a control character: a bell of what was approx."""
    for cell in nbformat.read(notebook, 4).cells:
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", cell.source), cell.source


def targets(statement: ast.stmt, kind: type[ast.AST]) -> set[str]:
    """Return the names over which the loops or comprehensions in a statement run."""
    found = [node.target for node in ast.walk(statement) if isinstance(node, kind)]
    return {n.id for target in found for n in ast.walk(target) if isinstance(n, ast.Name)}


def overwritten(cells: list[tuple[str, bool]]) -> set[str]:
    """Return the names of visible cells that a hidden cell changes before a visible one reads them.

    Parameters
    ----------
    cells : list of (str, bool)
        The source of each cell, and whether the page hides it.
    """
    seen: set[str] = set()  # what visible cells have given a value
    changed: set[str] = set()  # of these, what a hidden cell has given another value since
    found: set[str] = set()
    for source, hidden in cells:
        stored, read = set(), set()
        for statement in ast.parse(source).body:
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            loops, local = targets(statement, ast.For), targets(statement, ast.comprehension)
            read |= {n.id for n in names if isinstance(n.ctx, ast.Load)} - stored - loops - local
            stored |= {n.id for n in names if isinstance(n.ctx, ast.Store)} - local
        if hidden:
            changed |= stored & seen
        else:
            found |= read & changed
            seen |= stored
            changed -= stored
    return found


def test_a_name_that_a_hidden_cell_changes_is_found() -> None:
    shown, again = ("theta = 1", False), ("print(theta)", False)
    assert overwritten([shown, ("theta = 2", True), again]) == {"theta"}
    assert overwritten([shown, ("[theta for theta in range(3)]", True), again]) == set()
    assert overwritten([shown, ("theta = 2", True), ("theta = 3\nprint(theta)", False)]) == set()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_hidden_cells_leave_the_reader_s_names_alone(notebook: Path) -> None:
    kept = [
        (cell.source, bool({"remove-cell", "remove-input"} & set(cell.metadata.get("tags", ()))))
        for cell in cells(notebook, "code")
    ]
    assert overwritten(kept) == set()
