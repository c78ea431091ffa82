"""A chapter imports only earlier chapters, and the library imports no chapter."""

import ast
from pathlib import Path

import pytest

from pu_lib.claims import chapters, folder_of

LIBRARY = Path(__file__).parents[2] / "pu_lib"
FOLDERS = sorted(path.parent.name for path in (LIBRARY / "chapters").glob("*/__init__.py"))
# The searches have no claims; cross-entropy and what came after read their results.
ORDER = ["random_search", "evolutionary_search", *map(folder_of, chapters())]
BELOW = ("engine", "experiments", "claims", "cli")
"""Packages that import chapters only inside functions."""


def imports_of(path: Path, everywhere: bool = True) -> set[str]:
    """Return the modules that a module imports, those of its functions included or not."""
    tree = ast.parse(path.read_text("utf-8"))
    names: set[str] = set()
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def chapters_in(modules: set[str]) -> set[str]:
    """Return the folders of the chapters among modules."""
    heads = (name.split(".") for name in modules if name.startswith("pu_lib.chapters."))
    return {parts[2] for parts in heads if parts[2] in FOLDERS}


def test_chapter_order_lists_every_chapter() -> None:
    assert sorted(ORDER) == FOLDERS


@pytest.mark.parametrize("folder", ORDER)
def test_chapter_imports_only_earlier_chapters(folder: str) -> None:
    modules = [imports_of(path) for path in (LIBRARY / "chapters" / folder).glob("*.py")]
    later = chapters_in(set().union(*modules)) - set(ORDER[: ORDER.index(folder) + 1])
    assert later == set()


@pytest.mark.parametrize("package", BELOW)
def test_library_package_imports_no_chapter(package: str) -> None:
    for path in (LIBRARY / package).glob("**/*.py"):
        assert chapters_in(imports_of(path, everywhere=False)) == set(), path.name


def test_modules_of_quantities_import_no_checks_or_figures() -> None:
    for path in (LIBRARY / "chapters").glob("*/*.py"):
        if not path.stem.startswith(("checks", "figures", "parts")):
            heads = {name for name in imports_of(path) if name.startswith("pu_lib.")}
            assert not {n for n in heads if ".checks" in n or ".figures" in n}, path
            assert not {n for n in heads if n.startswith("pu_lib.show")}, path
