"""Notebooks have no outputs, are listed, and confirm every claim of their chapter."""

import ast
import re
from pathlib import Path

import nbformat
import pytest
import toc
import yaml

from pu_lib.claims import chapters, ledger
from pu_lib.claims.tables import chapter_title

ROOT = Path(__file__).parent.parent
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))


def cells(notebook: Path, kind: str) -> list:
    return [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == kind]


CONFIRMING = [name for name in chapters() if name not in ("table-1", "empirical")]
"""Chapters that confirm claims one by one; the other two confirm groups of claims."""

TOO_LONG = {"sec:conv/ce-conjecture/constant-step"}
"""Claims whose checks take too long for a page; the page explains how to run them."""


@pytest.mark.parametrize("chapter", CONFIRMING)
def test_claims_are_confirmed_in_their_chapter(chapter: str) -> None:
    code = "\n".join(c.source for c in cells(ROOT / "book" / f"{chapter}.ipynb", "code"))
    confirmed = "\n".join(re.findall(r"confirm\((.*?)\)", code, re.DOTALL))
    claims = [claim.id for claim in ledger() if claim.chapter == chapter]
    page = (ROOT / "book" / f"{chapter}.ipynb").read_text("utf-8").replace('\\"', '"')
    for name in claims:
        assert f'"{name}"' in confirmed or (name in TOO_LONG and f'confirm("{name}")' in page), name


FIGURES = re.compile(r"from pu_lib\.explorers[.\w]* import")


@pytest.mark.parametrize(
    "chapter",
    # In the two excluded chapters, a table is the answer.
    [name for name in chapters() if name not in ("table-1", "guide")],
)
def test_question_and_explorer_precede_the_answer(chapter: str) -> None:
    notebook = nbformat.read(ROOT / "book" / f"{chapter}.ipynb", 4)
    explorer, answer = (
        next((i for i, cell in enumerate(notebook.cells) if re.search(wanted, cell.source)), None)
        for wanted in (FIGURES, r"^## The answer")
    )
    assert explorer is not None, "no cell imports an explorer"
    assert answer is not None, "no cell has the heading 'The answer'"
    assert re.search(r"\*\*[^*]+\?\*\*", notebook.cells[0].source), "no question at the start"
    assert explorer < answer


def listed() -> list[str]:
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    chapters = [chapter for part in toc["parts"] for chapter in part["chapters"]]
    entries = [entry for c in chapters for entry in (c, *c.get("sections", ()))]
    files = [entry["file"] for entry in entries if "/api/" not in entry["file"]]
    return [toc["root"], *files]


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(notebook: Path) -> None:
    executed = [c for c in cells(notebook, "code") if c.outputs or c.execution_count is not None]
    mend = f"jupyter nbconvert --clear-output --inplace book/{notebook.name}"
    assert not executed, (
        f"{notebook.name} keeps the outputs of {len(executed)} cells; strip it: {mend}"
    )


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_valid_and_run_anywhere(notebook: Path) -> None:
    content = nbformat.read(notebook, 4)
    nbformat.validate(content)
    kernel = content.metadata.get("kernelspec", {}).get("name")
    assert kernel == "python3", f"{notebook.name} names no kernel python3 in its metadata"
    assert "/home/" not in notebook.read_text(), "a path of one machine"


def test_table_of_contents_lists_all_pages() -> None:
    pages = [path for path in (ROOT / "book").iterdir() if path.suffix in toc.SUFFIXES]
    assert set(listed()) == {f"book/{path.stem}" for path in pages}, "run tools/toc.py"


def test_table_of_contents_is_in_chapter_order() -> None:
    assert (ROOT / "_toc.yml").read_text("utf-8") == toc.table(), "run tools/toc.py"
    judging = [name for name in listed() if name.removeprefix("book/") in chapters()]
    assert judging == [f"book/{name}" for name in chapters()]


def test_pages_of_the_reading_path_are_listed() -> None:
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    path = list(config["sphinx"]["config"]["pu_path"])
    assert len(path) > 5
    assert {f"book/{name}" for name in path} <= set(listed())


def test_pages_of_the_ledger_are_up_to_date() -> None:
    for name, text in toc.ledger_pages().items():
        assert (ROOT / name).read_text("utf-8") == text, "run tools/toc.py"


def test_start_ipynb_runs_and_lists_the_chapters() -> None:
    text = (ROOT / "start.ipynb").read_text("utf-8")
    assert text == toc.start(), "run tools/toc.py"
    notebook = nbformat.reads(text, 4)
    nbformat.validate(notebook)
    words = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    assert re.findall(r"\(book/([a-z0-9-]+)\.ipynb\)", words) == [
        name.removeprefix("book/") for name in listed() if (ROOT / f"{name}.ipynb").exists()
    ]
    (code,) = (cell.source for cell in notebook.cells if cell.cell_type == "code")
    exec(code, {})


def test_chapter_titles_match_their_notebooks() -> None:
    for chapter in chapters():
        assert cells(ROOT / "book" / f"{chapter}.ipynb", "markdown")[0].source.startswith(
            f"# {chapter_title(chapter)}\n"
        )


def targets(statement: ast.stmt, kind: type[ast.AST]) -> set[str]:
    """Return the loop variables of the loops or comprehensions in a statement."""
    bound = [node.target for node in ast.walk(statement) if isinstance(node, kind)]
    return {n.id for target in bound for n in ast.walk(target) if isinstance(n, ast.Name)}


def overwritten(cells: list[tuple[str, bool]]) -> set[str]:
    """Return names of visible cells that a hidden cell reassigns before a visible one reads them.

    Parameters
    ----------
    cells : list of (str, bool)
        The source of each cell and whether the page hides it.
    """
    seen: set[str] = set()  # names assigned in visible cells
    changed: set[str] = set()  # names of `seen` reassigned in a hidden cell since
    lost: set[str] = set()
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
            lost |= read & changed
            seen |= stored
            changed -= stored
    return lost


def test_overwritten_finds_names_changed_by_hidden_cells() -> None:
    shown, again = ("theta = 1", False), ("print(theta)", False)
    assert overwritten([shown, ("theta = 2", True), again]) == {"theta"}
    assert overwritten([shown, ("[theta for theta in range(3)]", True), again]) == set()
    assert overwritten([shown, ("theta = 2", True), ("theta = 3\nprint(theta)", False)]) == set()


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_hidden_cells_change_no_variable_that_visible_cells_read(notebook: Path) -> None:
    sources = [
        (cell.source, bool({"remove-cell", "remove-input"} & set(cell.metadata.get("tags", ()))))
        for cell in cells(notebook, "code")
    ]
    assert overwritten(sources) == set()
