"""Modules and chapters import only from layers and chapters that precede them."""

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from pu_lib.claims import chapters, folder_of

LIBRARY = Path(__file__).parents[2] / "pu_lib"
FOLDERS = sorted(path.parent.name for path in (LIBRARY / "chapters").glob("*/__init__.py"))
# The searches have no claims; the chapters cross_entropy and what_came_after read their results.
CHAPTERS = ["random_search", "evolutionary_search", *map(folder_of, chapters())]

ROOMS = """
arrays exact extras files other_libraries progress settings world
compiling formatting interface kernels parametrizations updates
domains environments mdp records sparse trajectories two_action_dynamics
engine
cycle_examples deterministic
experiments
claims
drawing
chapters
explorers
cli
""".strip().splitlines()
"""Modules and packages of the library; each imports only from its own line and the lines above."""

RANK = {room: rank for rank, line in enumerate(ROOMS) for room in line.split()}


def running(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the descendants of a node, except those that only a type checker reads."""
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"):
            yield child
            yield from running(child)


def imports_of(path: Path, everywhere: bool = True) -> set[str]:
    """Return the modules that a module imports, including imports in functions if `everywhere`."""
    tree = ast.parse(path.read_text("utf-8"))
    names: set[str] = set()
    for node in running(tree) if everywhere else tree.body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}: write relative imports with their full name"
            names |= {f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names


def modules(library: Path) -> dict[str, Path]:
    """Return the files of the library by module, without ``__init__.py`` and ``__main__.py``.

    These two files of `pu_lib` import modules by names that are known only at run time. In the same
    way, `pu_lib.claims.catalog` imports the checks of the chapters.
    """
    files = {}
    for path in sorted(library.rglob("*.py")):
        parts = path.relative_to(library.parent).with_suffix("").parts
        if len(parts) > 2 or not parts[1].startswith("__"):
            files[".".join(parts).removesuffix(".__init__")] = path
    return files


def upward_imports(library: Path) -> list[str]:
    """Describe each import from a later line of `ROOMS` and each import of an unlisted name."""
    return [
        f"{module} imports {name}"
        for module, path in modules(library).items()
        for name in sorted(imports_of(path))
        if name.startswith("pu_lib.")
        and RANK.get(name.split(".")[1], len(ROOMS)) > RANK[module.split(".")[1]]
    ]


def circle(library: Path) -> list[str]:
    """Return the modules of an import cycle, or an empty list if there is none."""
    files = modules(library)
    graph = {module: imports_of(path) & files.keys() for module, path in files.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_every_module_and_package_has_a_line() -> None:
    assert {module.split(".")[1] for module in modules(LIBRARY)} == RANK.keys()


def test_imports_run_one_way() -> None:
    assert upward_imports(LIBRARY) == []
    assert circle(LIBRARY) == []


def test_import_that_runs_back_is_named(tmp_path: Path) -> None:
    library = tmp_path / "pu_lib"
    for path, text in {
        "__init__.py": "",
        "updates.py": "if TYPE_CHECKING:\n    from pu_lib.cli import race\n",
        "mdp.py": "from pu_lib import updates\ndef draw():\n    import pu_lib.drawing.style\n",
        "drawing/__init__.py": "from pu_lib import run\n",
        "drawing/style.py": "from pu_lib.updates import label_of\nfrom pu_lib.mdp import draw\n",
    }.items():
        (library / path).parent.mkdir(exist_ok=True, parents=True)
        (library / path).write_text(text)
    assert upward_imports(library) == [
        "pu_lib.drawing imports pu_lib.run",
        "pu_lib.mdp imports pu_lib.drawing.style",
    ]
    assert set(circle(library)) == {"pu_lib.mdp", "pu_lib.drawing.style"}


def chapters_in(names: set[str]) -> set[str]:
    """Return the chapter folders of modules."""
    heads = (name.split(".") for name in names if name.startswith("pu_lib.chapters."))
    return {parts[2] for parts in heads if parts[2] in FOLDERS}


def test_chapter_order_lists_every_chapter() -> None:
    assert sorted(CHAPTERS) == FOLDERS


@pytest.mark.parametrize("folder", CHAPTERS)
def test_chapter_imports_only_earlier_chapters(folder: str) -> None:
    names = [imports_of(path) for path in (LIBRARY / "chapters" / folder).glob("*.py")]
    later = chapters_in(set().union(*names)) - set(CHAPTERS[: CHAPTERS.index(folder) + 1])
    assert later == set()


def test_commands_import_chapters_only_inside_functions() -> None:
    for path in (LIBRARY / "cli").glob("*.py"):
        assert chapters_in(imports_of(path, everywhere=False)) == set(), path.name


def test_modules_of_quantities_import_no_checks_or_figures() -> None:
    for path in (LIBRARY / "chapters").glob("*/*.py"):
        if not path.stem.startswith(("checks", "figures", "tables")):
            heads = {name for name in imports_of(path) if name.startswith("pu_lib.")}
            assert not {n for n in heads if ".checks" in n or ".figures" in n}, path
            assert not {n for n in heads if n.startswith("pu_lib.drawing")}, path
