"""Pages have short cells, described figures, clean text and a complete reference."""

import ast
import re
from collections import Counter
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))
LONGEST_MEDIAN = 8
"""Largest median number of lines of the code cells in a notebook."""

per_notebook = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


def cells(notebook: Path, kind: str) -> list:
    return [cell for cell in nbformat.read(notebook, 4).cells if cell.cell_type == kind]


def figure_cells(notebook: Path) -> list:
    return [c for c in cells(notebook, "code") if "figure" in c.metadata.get("mystnb", {})]


def only_confirms(source: str) -> bool:
    """Return whether a cell only imports and confirms claims."""
    statements = [
        node
        for node in ast.parse(source).body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
    ]
    return bool(statements) and all(ast.unparse(s).startswith("confirm(") for s in statements)


@per_notebook
def test_cells_that_only_confirm_claims_hide_their_code(notebook: Path) -> None:
    for cell in cells(notebook, "code"):
        hidden = "remove-input" in cell.metadata.get("tags", [])
        assert hidden or not only_confirms(cell.source), cell.source


@per_notebook
def test_only_one_page_says_how_to_install(notebook: Path) -> None:
    """The page *Cite, license, contact, run* does; the search for *install* finds it."""
    texts = [cell.source for cell in cells(notebook, "markdown") if "pip install" in cell.source]
    assert not texts, texts


@per_notebook
def test_cells_are_short_and_define_nothing(notebook: Path) -> None:
    lines = sorted(len(cell.source.splitlines()) for cell in cells(notebook, "code"))
    assert not lines or lines[len(lines) // 2] <= LONGEST_MEDIAN
    for cell in nbformat.read(notebook, 4).cells:
        if re.search(r"^## Change it", cell.source, re.MULTILINE):
            break  # readers may edit the cells below
        if cell.cell_type == "code" and notebook.stem != "your-update":
            assert not re.search(r"^\s*(def|class) ", cell.source, re.MULTILINE), cell.source


@per_notebook
def test_figures_have_alt_text_caption_and_name(notebook: Path) -> None:
    for cell in figure_cells(notebook):
        image, figure = cell.metadata.mystnb.image, cell.metadata.mystnb.figure
        assert len(image.alt) >= 40, cell.source
        assert image.get("classes") in ("lineplot", "heatmap"), cell.source
        assert figure.caption, cell.source
        assert figure.name.startswith("fig-"), cell.source


def test_names_of_figures_are_unique() -> None:
    names = Counter(
        cell.metadata.mystnb.figure.name for path in NOTEBOOKS for cell in figure_cells(path)
    )
    assert [name for name, count in names.items() if count > 1] == []


@per_notebook
def test_cells_have_no_control_characters(notebook: Path) -> None:
    """Cells do not contain an unescaped backslash, such as in \\approx, which becomes a bell."""
    for cell in nbformat.read(notebook, 4).cells:
        assert not re.search(r"[\x00-\x09\x0b-\x1f]", cell.source), cell.source


def test_symbols_listed_for_a_chapter_appear_in_it() -> None:
    page = (ROOT / "book" / "notation.md").read_text("utf-8")
    rows = page.partition(":class: letters")[2].split("* - ")[2:]
    assert rows
    for row in rows:
        letters, _, where = row.split("\n  - ")
        for chapter in re.findall(r"{doc}`(.*?)`", where):
            prose = cells(ROOT / "book" / f"{chapter}.ipynb", "markdown")
            text = "\n".join(cell.source for cell in prose)
            for letter in re.findall(r"\$(.*?)\$", letters):
                assert letter in text, f"{letter} does not appear in {chapter}"
