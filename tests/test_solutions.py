"""The code in the solutions of exercises runs with the imports of its notebook."""

import ast
import re
from pathlib import Path

import nbformat
import pytest

BOOK = Path(__file__).parent.parent / "book"
SOLUTION = re.compile(r"^(:{3,})\{solution\} (\S+)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
PROGRAM = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


def programs() -> list[tuple[Path, str, str]]:
    """Return the code in the solutions of all notebooks with the labels of the exercises."""
    rows = []
    for path in sorted(BOOK.glob("*.ipynb")):
        text_cells = "\n\n".join(
            c.source for c in nbformat.read(path, 4).cells if c.cell_type != "code"
        )
        rows += [
            (path, label, program)
            for _, label, text in SOLUTION.findall(text_cells)
            for program in PROGRAM.findall(text)
        ]
    return rows


def imports(path: Path) -> str:
    """Return the import statements of a notebook."""
    code = [ast.parse(c.source) for c in nbformat.read(path, 4).cells if c.cell_type == "code"]
    statements = [node for tree in code for node in tree.body]
    imported = [node for node in statements if isinstance(node, (ast.Import, ast.ImportFrom))]
    return "\n".join(map(ast.unparse, imported))


FOUND = programs()


@pytest.mark.parametrize(("path", "label", "program"), FOUND, ids=[label for _, label, _ in FOUND])
def test_code_of_a_solution_runs(path: Path, label: str, program: str) -> None:
    exec(compile(f"{imports(path)}\n{program}", label, "exec"), {})


def test_some_chapters_have_solutions_in_code() -> None:
    assert {path.stem for path, _, _ in FOUND} >= {
        "convergence",
        "cross-entropy",
        "function-approximation",
        "gravity-well",
        "rates",
        "stochastic-updates",
    }
