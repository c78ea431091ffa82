"""What is read off a tree: its commands, signatures, imports, exercises, theorems and tests."""

import ast
import contextlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import nbformat

import pu_lib
from pu_lib.__main__ import COMMANDS, main

ROOT = Path(__file__).parents[2]

# Commands

CALLS = (
    "unlearn --update di --eta 1/10 --n 3",
    "unlearn --update di --eta 1/10 --n 3 --start 9/10 --strict",
    "unlearn --update pg-sm --eta 1 --n 100",
    "unlearn --update pg-es --eta 1/2 --n 20 --p 3 --escort-factor drop",
    "unlearn --update ce --eta 0.5 --n 10 --schedule inverse-sqrt",
    "unlearn --update ce --eta 1 --n 3 --p 3",
    "unlearn --update di --eta 0 --n 3",
    "unlearn --update sgd --eta 1 --n 3",
    "unlearn",
    "domino --update di --eta 1/2 --states 3",
    "domino --update pg-es --eta 2 --states 4",
    "domino --update pg-es --eta 5 --states 7 --escort-factor drop",
    "domino --update mce --eta 1 --states 1",
    "claims prop:non-monotonicity/example thm:unlearn/i/pg-sm",
    "claims --json prop:non-monotonicity/example thm:unlearn/i/pg-sm",
    "claims thm:nothing",
    "race nowhere.npz",
    "race chain --runs 0",
    "race chain --scheme Some",
    "race FrozenLake-v1 --figure race.docx",
    "sweep chain --runs 0 --out _build/never",
    "sweep chain --preset mine --out _build/never",
    "sweep cliff --actions 5 --out _build/never",
    "collect no-such-dataset --out _build/never",
    "bench --steps 1",
    "no-such-command",
    "",
)

# Seconds are those of a clock; the last digits of margins are compared with the claims.
CHANGING = re.compile(
    r'(?<="seconds": )[\d.]+|(?<="margin": )[-\d.e]+|(?<=  )\d+\.\d+$', re.MULTILINE
)
CHOICES = re.compile(r"choose from .*?\)")
HEAD = 1500


def call(words: list[str]) -> list[Any]:
    """Return the exit code of a command and the beginning of what it prints.

    What it says of its progress, which depends on the clock, is kept only where it fails.
    """
    out, err = io.StringIO(), io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "100"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            code: Any = main(words)
        except SystemExit as ended:
            code = ended.code
    said = CHANGING.sub("*", out.getvalue()), err.getvalue() if code else ""
    # Versions of Python quote the choices of an option in different ways.
    said = tuple(CHOICES.sub(lambda found: found[0].replace("'", ""), text) for text in said)
    return [code, *(" ".join(text.split())[:HEAD] for text in said)]


def commands() -> dict[str, list[Any]]:
    """Return what the commands answer to calls for help, and to typical ones, good and bad."""
    helps = ["--help", *(f"{name} --help" for name in COMMANDS)]
    return {words: call(words.split()) for words in (*helps, *CALLS)}


# Signatures


def signature(value: Any) -> str:
    try:
        return str(inspect.signature(value))
    except (TypeError, ValueError):
        return "no signature"


def members(of: type) -> dict[str, str]:
    """Return the public methods, properties and other attributes of a class of the library."""
    ours = [base for base in of.__mro__ if base.__module__.startswith("pu_lib")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    found = {}
    for name in sorted(names):
        kind = inspect.getattr_static(of, name)
        called = callable(getattr(of, name, None))
        found[name] = signature(getattr(of, name)) if called else type(kind).__name__
    return found


def api() -> dict[str, Any]:
    """Return the public names, with the signatures of what can be called."""
    found: dict[str, Any] = {"dir(pu_lib)": dir(pu_lib)}
    for name in sorted(pu_lib.__all__):
        value = getattr(pu_lib, name)
        if inspect.isclass(value):
            found[name] = {"": signature(value), **members(value)}
        elif callable(value):
            found[name] = {"": signature(value)}
        elif isinstance(value, Mapping):
            found[name] = {"": "mapping", **{str(key): "key" for key in value}}
        else:
            found[name] = {"": type(value).__name__}
    return found


# Notebooks

PROGRAM = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
EXERCISE = re.compile(r"^(:{3,})\{exercise\}[^\n]*\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
SOLUTION = re.compile(r"^(:{3,})\{solution\} (\S+)\n(.*?)^\1$", re.DOTALL | re.MULTILINE)
LABEL = re.compile(r"^:label: (\S+)$", re.MULTILINE)


def notebooks() -> Iterator[tuple[str, str, list[str]]]:
    """Yield the name, the prose and the code cells of each notebook."""
    for path in [*sorted((ROOT / "book").glob("*.ipynb")), ROOT / "start.ipynb"]:
        cells = nbformat.read(path, 4).cells
        prose = "\n\n".join(cell.source for cell in cells if cell.cell_type != "code")
        yield path.stem, prose, [cell.source for cell in cells if cell.cell_type == "code"]


def imported(source: str) -> Iterator[tuple[str, str]]:
    """Yield what a program imports from the library: module and name, the name empty if none."""
    lines = (line for line in source.splitlines() if not line.lstrip().startswith(("%", "!")))
    for node in ast.walk(ast.parse("\n".join(lines))):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from ((node.module or "", alias.name) for alias in node.names)


def imports() -> list[list[str]]:
    """Return what notebooks import from the library, in cells and in the code of solutions."""
    sources = [s for _, prose, cells in notebooks() for s in (*cells, *PROGRAM.findall(prose))]
    pairs = {pair for source in sources for pair in imported(source)}
    return sorted(list(pair) for pair in pairs if pair[0].split(".")[0] == "pu_lib")


IMPORT = """
import json, sys
from importlib import import_module
failed = []
for module, name in json.load(sys.stdin):
    try:
        found = import_module(module)
        if name and not hasattr(found, name):
            import_module(f"{module}.{name}")
    except ImportError as error:
        failed.append(f"from {module} import {name}: {error}")
print(json.dumps(failed))
"""


def not_importable(pairs: list[list[str]]) -> list[str]:
    """Import names of modules in a process of its own and return which cannot be."""
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", IMPORT]
    done = subprocess.run(
        command, cwd=ROOT, input=json.dumps(pairs), capture_output=True, text=True, check=True
    )
    failed: list[str] = json.loads(done.stdout.splitlines()[-1])
    return failed


def exercises() -> dict[str, dict[str, str]]:
    """Return the texts of exercises and solutions, by page and label."""
    found: dict[str, dict[str, str]] = {}
    for name, prose, _ in notebooks():
        for _, text in EXERCISE.findall(prose):
            label = LABEL.search(text)
            assert label, f"{name}: an exercise has no label: {text}"
            found.setdefault(name, {})[label[1]] = text.strip()
        for _, label, text in SOLUTION.findall(prose):
            found.setdefault(name, {})[f"solution of {label}"] = text.strip()
    return found


# Tests

NUMBERS = re.compile(
    r"approx\(|assert_allclose|isclose|allclose\(|array_equal|Fraction\(|fmpq|arb\("
)
WORDS = re.compile(
    r"by_hand|by_another|agree|closed_form|same_run|same_bits|_kkt_|quantecon|reference|published"
    r"|known_|worked_out|computed_again|is_that_of|those_of"
)
REFUSALS = re.compile(r"sentence|refused|errors_are|is_no_")


def tests() -> dict[str, Counter[str]]:
    """Return how often each test function is defined, by file."""
    return {
        path.relative_to(ROOT / "tests").as_posix(): Counter(name for name, _ in functions(path))
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
    }


def functions(path: Path) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the name and the syntax of each test function of a file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, node


def compares_with_a_number(function: ast.FunctionDef) -> bool:
    """Return whether an assertion compares with a number that stands in the test."""
    compared = [
        side
        for node in ast.walk(function)
        if isinstance(node, ast.Compare) and any(isinstance(op, ast.Eq) for op in node.ops)
        for side in (node.left, *node.comparators)
    ]
    parts = [part for side in compared for part in ast.walk(side)]
    return any(isinstance(p, ast.Constant) and type(p.value) in (int, float) for p in parts)


FILES = re.compile(
    r"checks/|empirical/test_(by_hand|published|data|precision|thresholds|jekyll_hyde|adaptive)"
    r"|test_(updates|mdp|exact|trajectories|domains|kernels|engine|reproducible|architecture)\."
)


def solved() -> list[str]:
    """Return the tests that hold numbers solved by hand or by independent code."""
    found = []
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        place = path.relative_to(ROOT / "tests").as_posix()
        if not FILES.search(place):
            continue
        for name, node in functions(path):
            numbers = NUMBERS.search(ast.unparse(node)) or compares_with_a_number(node)
            if (numbers or WORDS.search(name)) and not REFUSALS.search(name):
                found.append(f"tests/{place}::{name}")
    return sorted(found)
