"""Imports run one way: a chapter imports only chapters before it, and the library imports none."""

import ast
from pathlib import Path

import pytest

from pu_lib.claims import chapters, folder_of

LIBRARY = Path(__file__).parents[2] / "pu_lib"
FOLDERS = sorted(path.parent.name for path in (LIBRARY / "chapters").glob("*/__init__.py"))
# The searches have no claims; cross-entropy and what came after read their results.
ORDER = ["random_search", "evolutionary_search", *map(folder_of, chapters()), "guide"]
BELOW = ("engine", "experiments", "claims", "cli")
"""Packages that import no chapter but inside functions."""


def imported(path: Path, everywhere: bool = True) -> set[str]:
    """Return the modules that a module imports, those of its functions included or not."""
    tree = ast.parse(path.read_text("utf-8"))
    found: set[str] = set()
    for node in ast.walk(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return found


def chapters_in(modules: set[str]) -> set[str]:
    """Return the folders of the chapters among modules."""
    heads = (name.split(".") for name in modules if name.startswith("pu_lib.chapters."))
    return {parts[2] for parts in heads if parts[2] in FOLDERS}


def test_every_chapter_has_a_place_in_the_order() -> None:
    assert sorted(ORDER) == FOLDERS


@pytest.mark.parametrize("folder", ORDER)
def test_a_chapter_imports_only_chapters_before_it(folder: str) -> None:
    modules = [imported(path) for path in (LIBRARY / "chapters" / folder).glob("*.py")]
    later = chapters_in(set().union(*modules)) - set(ORDER[: ORDER.index(folder) + 1])
    assert later == set()


@pytest.mark.parametrize("package", BELOW)
def test_a_package_below_the_chapters_imports_none(package: str) -> None:
    for path in (LIBRARY / package).glob("**/*.py"):
        assert chapters_in(imported(path, everywhere=False)) == set(), path.name


def test_quantities_know_nothing_of_checks_and_figures() -> None:
    for path in (LIBRARY / "chapters").glob("*/*.py"):
        if not path.stem.startswith(("checks", "figures", "parts")):
            heads = {name for name in imported(path) if name.startswith("pu_lib.")}
            assert not {n for n in heads if ".checks" in n or ".figures" in n}, path
            assert not {n for n in heads if n.startswith("pu_lib.show")}, path
