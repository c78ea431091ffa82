"""What a mutant is: one place in a module, and the small mistake that is put there.

A mistake is one that a person could make and a reader could miss: a neighbouring comparison, a plus
for a minus, a number that is one larger, ``any`` for ``all``, a statement left out. Not mutated are
words (documentation, annotations, messages of errors, formatted text), the looks of curves, the
seeds of random generators, and of checks the arguments of decorators, the defaults and what is
drawn by `rng` and its scale, which say what a check looks at and not what it concludes.
"""

from __future__ import annotations

import ast
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Mutant", "functions", "mutants"]

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
_OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Add,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
}
_PAIRS = (
    ("any", "all"), ("min", "max"), ("minimum", "maximum"), ("argmin", "argmax"),
    ("floor", "ceil"), ("nanmin", "nanmax"), ("log", "log1p"), ("exp", "expm1"),
)  # fmt: skip
_NAMES = dict(_PAIRS) | {b: a for a, b in _PAIRS}
# What is drawn, and how something is drawn in a figure.
_LEFT_ALONE = ("default_rng", "SeedSequence", "Random", "PlotStyle", "TypeVar")


@dataclass(frozen=True)
class Mutant:
    """A module with one mistake in it.

    Attributes
    ----------
    module : str
        The path of the module from the repository's root.
    function : str
        The qualified name of the function the place is in; empty outside of functions.
    line : int
        Where, for a reader; it is no part of the name.
    change : str
        ``before -> after``, as source.
    number : int
        Which of the equal changes in that function it is, from 0.
    start, end : int
        The bytes of the module that are replaced.
    text : str
        What they are replaced by.
    """

    module: str
    function: str
    line: int
    change: str
    number: int
    start: int
    end: int
    text: str

    @property
    def name(self) -> str:
        """A name that stays the same as long as the function does."""
        number = f" #{self.number}" if self.number else ""
        return f"{self.module}:{self.function}: {self.change}{number}"

    def rank(self, seed: int) -> str:
        """Return what samples are sorted by: it depends on the seed and the name alone."""
        return hashlib.sha256(f"{seed} {self.name}".encode()).hexdigest()

    def apply(self, source: bytes) -> bytes:
        """Return the source of the module with the mistake in it."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(root: Path, module: str) -> list[Mutant]:
    """Return every mutant of a module.

    Parameters
    ----------
    root : Path
        The repository.
    module : str
        A path from there, such as ``pu_lib/exact.py``.

    Returns
    -------
    list of Mutant
        In the order of the source.
    """
    source = (root / module).read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found: list[Mutant] = []
    seen: Counter[tuple[str, str]] = Counter()
    for node, function, after in _Places(module).visit_all(ast.parse(source)):
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        text = after if isinstance(node, ast.stmt) else f"({after})"
        change = f"{ast.unparse(node)} -> {after}"
        number = seen[function, change]
        seen[function, change] += 1
        found.append(Mutant(module, function, node.lineno, change, number, start, end, text))
    return found


def functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    """Yield the qualified name and the node of every function of a module."""

    def walk(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.FunctionDef]]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                name = f"{prefix}{child.name}"
                if isinstance(child, ast.FunctionDef):
                    yield name, child
                yield from walk(child, f"{name}.")
            else:
                yield from walk(child, prefix)

    return walk(tree, "")


_Place = tuple[ast.expr | ast.stmt, str, str]


class _Places:
    """Goes through a module and yields (node, function, what it becomes)."""

    def __init__(self, module: str) -> None:
        self.defaults = not re.match(r"pu_lib/chapters/\w+/checks", module)

    def visit_all(self, tree: ast.Module) -> Iterator[_Place]:
        for statement in tree.body:
            yield from self.statement(statement, "")

    def statement(self, node: ast.stmt, function: str) -> Iterator[_Place]:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from self.definition(node, f"{function}.{node.name}" if function else node.name)
            return
        if _is_words(node):
            return
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield node, function, "pass"
        if isinstance(node, ast.AugAssign) and type(node.op) in _OPERATIONS:
            after = ast.AugAssign(node.target, _OPERATIONS[type(node.op)](), node.value)
            yield node, function, ast.unparse(after)
        skipped = {"annotation"} if isinstance(node, ast.AnnAssign) else set()
        for name, value in ast.iter_fields(node):
            if name not in skipped:
                yield from self.inside(value, function)

    def definition(self, node: ast.FunctionDef | ast.ClassDef, name: str) -> Iterator[_Place]:
        if isinstance(node, ast.FunctionDef) and self.defaults:
            yield from self.inside([*node.args.defaults, *node.args.kw_defaults], name)
        for statement in node.body:
            yield from self.statement(statement, name)

    def inside(self, value: object, function: str) -> Iterator[_Place]:
        """Go through the value of a field: a node, a list of nodes or anything else."""
        if isinstance(value, list):
            for entry in value:
                yield from self.inside(entry, function)
        elif isinstance(value, ast.stmt):
            yield from self.statement(value, function)
        elif isinstance(value, ast.AST):
            if isinstance(value, ast.JoinedStr) or _is_left_alone(value):
                return
            if not self.defaults and _is_drawn(value):
                return
            if isinstance(value, ast.expr):
                for after in _changes(value):
                    yield value, function, after
            for _, child in ast.iter_fields(value):
                yield from self.inside(child, function)


def _is_words(node: ast.stmt) -> bool:
    """Whether a statement is documentation, an error, an import, or only for the type checker."""
    if isinstance(node, (ast.Raise, ast.Import, ast.ImportFrom)):
        return True
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return True
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return True
    return isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"


def _is_left_alone(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).split(".")[-1] in _LEFT_ALONE


def _is_drawn(node: ast.AST) -> bool:
    """Whether a value is drawn, or made of such values and numbers, which are their scale."""
    if isinstance(node, ast.BinOp):
        sides = node.left, node.right
        rest = [side for side in sides if not _is_drawn(side)]
        return len(rest) < 2 and all(isinstance(side, ast.Constant) for side in rest)
    return isinstance(node, ast.Call) and ast.unparse(node.func).startswith("rng.")


def _changes(node: ast.expr) -> Iterator[str]:
    """Yield what an expression becomes, once for every mistake at its outermost level."""
    if isinstance(node, ast.Compare):
        for i, operator in enumerate(node.ops):
            for kind in _COMPARISONS[type(operator)]:
                operators = [*node.ops[:i], kind(), *node.ops[i + 1 :]]
                yield ast.unparse(ast.Compare(node.left, operators, node.comparators))
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        if not _is_text(node.left) and not _is_text(node.right):
            yield ast.unparse(ast.BinOp(node.left, _OPERATIONS[type(node.op)](), node.right))
    elif isinstance(node, ast.BoolOp):
        other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.unparse(ast.BoolOp(other, node.values))
    elif isinstance(node, ast.UnaryOp) and not isinstance(node.op, ast.UAdd):
        yield ast.unparse(node.operand)
    elif isinstance(node, ast.Constant):
        yield from _constants(node.value)
    elif isinstance(node, ast.Call):
        yield from _calls(node)


def _constants(value: object) -> Iterator[str]:
    if isinstance(value, bool):
        yield repr(not value)
    elif isinstance(value, (int, float)):
        yield repr(value + 1)


def _calls(node: ast.Call) -> Iterator[str]:
    """Yield calls of the opposite function, and the argument without ``abs``."""
    called = node.func
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    if name in _NAMES:
        other = (
            ast.Attribute(called.value, _NAMES[name])
            if isinstance(called, ast.Attribute)
            else ast.Name(_NAMES[name])
        )
        yield ast.unparse(ast.Call(other, node.args, node.keywords))
    if name == "abs" and len(node.args) == 1:
        yield ast.unparse(node.args[0])


def _is_text(node: ast.expr) -> bool:
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
