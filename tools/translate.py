"""Generate pu_lib/explorers/steps.js, the steps of the explorers, from the kernels of the updates.

The translated subset of Python has numbers, booleans and arrays indexed by action; + - * /,
comparisons, `and`, `or` and `not`; max, min, abs and sqrt; if, while and loops over a range; and
calls to other functions in this subset. IEEE 754 specifies these operations bit for bit and nothing
is reordered, so pages compute the same bits as Python. Any other construct raises an error that
names it.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FunctionType
from typing import Any, get_args

import policies

from pu_lib.interface import Parametrization
from pu_lib.kernels import greedy
from pu_lib.updates import UPDATES

STEPS = Path(__file__).parents[1] / "pu_lib" / "explorers" / "steps.js"
POLICIES = {name: getattr(policies, name) for name in get_args(Parametrization)}

# In Python, a boolean can equal a number; in JavaScript, it can with == but not with ===.
_OPERATORS: dict[type, str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Gt: ">", ast.GtE: ">=",
    ast.Lt: "<", ast.LtE: "<=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "&&", ast.Or: "||",
    ast.USub: "-", ast.Not: "!",
}  # fmt: skip
_FUNCTIONS: dict[Any, tuple[str, int]] = {  # with the number of arguments
    max: ("max", 2), min: ("min", 2), abs: ("Math.abs", 1), math.sqrt: ("Math.sqrt", 1),
}  # fmt: skip
# Words that only JavaScript reserves, and names that the generated functions use.
_RESERVED = set(re.findall(r"\w+", """
    arguments case catch const debugger default delete do enum eval export extends false function
    implements instanceof interface let new null package private protected public static super
    switch this throw true typeof undefined var void Infinity Math NaN max min
"""))  # fmt: skip


def _assigned(node: ast.AST) -> list[ast.Name]:
    """Return all nodes that are names to which the code assigns."""
    names = [inner for inner in ast.walk(node) if isinstance(inner, ast.Name)]
    return [name for name in names if isinstance(name.ctx, ast.Store)]


class _Translation:
    """The JavaScript of one function (`text`) and the functions that it calls (`called`)."""

    def __init__(self, function: FunctionType) -> None:
        self.function, self.called = function, dict[str, FunctionType]()
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        match tree.body:
            case [ast.FunctionDef(name, ast.arguments([], rows, None, [], [], None, []), body, [])]:
                pass
            case _:
                raise self.error("its signature or decorator")
        if function.__closure__:
            raise self.error("a function inside a function")
        loops = {id(node.target) for node in ast.walk(tree) if isinstance(node, ast.For)}
        stored = {node.id for node in _assigned(tree) if id(node) not in loops}
        arguments = [row.arg for row in rows]
        variables = sorted(stored - set(arguments))
        self.names = {*arguments, *variables}
        if reserved := _RESERVED & {name, *self.names}:
            raise self.error(f"the name {min(reserved)}, which JavaScript reserves")
        lines = [f"let {', '.join(variables)};"] if variables else []
        lines += [line for node in body for line in self.statement(node)]
        head = f"function {name}({', '.join(arguments)}) {{\n"
        self.text = head + textwrap.indent("\n".join(lines), "  ") + "\n}"

    def error(self, source: ast.AST | str) -> ValueError:
        words = ast.unparse(source) if isinstance(source, ast.AST) else source
        return ValueError(f"{self.function.__name__}: cannot translate {words}.")

    def block(self, head: str, body: list[ast.stmt]) -> Iterator[str]:
        yield f"{head} {{"
        for node in body:
            yield from (f"  {line}" for line in self.statement(node))
        yield "}"

    def statement(self, node: ast.stmt) -> Iterator[str]:
        """Yield the lines of a statement."""
        bare = self.bare
        match node:
            case ast.Expr(ast.Constant(str())):
                return  # a docstring
            case ast.Assign([ast.Name() | ast.Subscript() as place], value):
                yield f"{bare(place)} = {bare(value)};"
            case ast.Assign([ast.Tuple(targets)], ast.Tuple(values)) if len(targets) == len(values):
                # JavaScript assigns one after the other, so no value may read an assigned name.
                names = {target.id for target in targets if isinstance(target, ast.Name)}
                read = {name.id for name in ast.walk(node.value) if isinstance(name, ast.Name)}
                if len(names) < len(targets) or names & read:
                    raise self.error(node)
                for target, value in zip(targets, values, strict=True):
                    yield f"{bare(target)} = {bare(value)};"
            case ast.AugAssign(place, op, value) if type(op) in _OPERATORS:
                yield f"{bare(place)} {_OPERATORS[type(op)]}= {bare(value)};"
            case ast.For(ast.Name(name), ast.Call(range_, [*start, end], []), body, []) if (
                self.called_object(range_) is range and len(start) < 2
            ):
                first = bare(start[0]) if start else "0"
                self.require_fixed(node, end)
                loop = f"for (let {name} = {first}; {name} < {bare(end)}; {name} += 1)"
                self.names.add(name)
                yield from self.block(loop, body)
                self.names.remove(name)  # after the loop, Python's variable has a different value
            case ast.While(test, body, []):
                yield from self.block(f"while ({bare(test)})", body)
            case ast.If(test, body, other):
                yield from self.block(f"if ({bare(test)})", body)
                if other:
                    yield from self.block("else", other)
            case ast.Break():
                yield "break;"
            case ast.Return(value) if value is not None:
                yield f"return {bare(value)};"
            case _:
                raise self.error(node)

    def require_fixed(self, loop: ast.For, end: ast.expr) -> None:
        """Raise an error if the loop changes its end or variable; Python evaluates a range once."""
        assert isinstance(loop.target, ast.Name)
        changed = {name.id for inner in loop.body for name in _assigned(inner)}
        for part in ast.walk(end):
            if isinstance(part, ast.Subscript | ast.Call) or getattr(part, "id", "") in changed:
                raise self.error(f"the end of a loop that may change, {ast.unparse(end)}")
        if loop.target.id in self.names | changed | _RESERVED:
            raise self.error(f"the loop variable {loop.target.id}, which has another use")

    def bare(self, node: ast.expr) -> str:
        """Return an expression without enclosing parentheses."""
        text = self.expression(node)
        return text[1:-1] if text.startswith("(") else text

    def expression(self, node: ast.expr) -> str:
        """Return an expression, in parentheses if it has an operator."""
        say = self.expression
        match node:
            case ast.Constant(value):
                return self.number(value, node)
            case ast.Name(name):
                if name in self.names:
                    return name
                return self.number(self.function.__globals__.get(name), node)
            case ast.Subscript(ast.Name() as row, place) if not isinstance(place, ast.UnaryOp):
                return f"{say(row)}[{self.bare(place)}]"  # in Python, -1 counts from the end
            case ast.UnaryOp(op, value) if type(op) in _OPERATORS:
                return f"({_OPERATORS[type(op)]}{say(value)})"
            case ast.BinOp(left, op, right) | ast.Compare(left, [op], [right]) if (
                type(op) in _OPERATORS
            ):
                return f"({say(left)} {_OPERATORS[type(op)]} {say(right)})"
            case ast.BoolOp(op, values):
                return f"({f' {_OPERATORS[type(op)]} '.join(map(say, values))})"
            case ast.IfExp(test, one, other):
                return f"({say(test)} ? {say(one)} : {say(other)})"
            case ast.Call(function, values, []):
                return f"{self.callee(node, function)}({', '.join(map(self.bare, values))})"
        raise self.error(node)

    def number(self, value: Any, node: ast.expr) -> str:
        """Return a number literal that has the same value in both languages."""
        if type(value) not in (int, float) or not math.isfinite(value) or float(value) != value:
            raise self.error(node)
        return repr(value) if value >= 0 else f"({value!r})"

    def called_object(self, node: ast.expr) -> Any:
        """Return the Python object to which a name or a module attribute refers, or None."""
        known = self.function.__globals__
        match node:
            case ast.Name(name) if name not in self.names:
                return known.get(name, getattr(builtins, name, None))
            case ast.Attribute(ast.Name(module), name) if module not in self.names:
                return getattr(known.get(module), name, None)
        return None

    def callee(self, call: ast.Call, node: ast.expr) -> str:
        """Return the JavaScript name of a called function; add a Python function to `called`."""
        function = self.called_object(node)
        if isinstance(function, FunctionType):
            self.called[function.__name__] = function
            return function.__name__
        for known, (name, count) in _FUNCTIONS.items():
            if function is known and len(call.args) == count:
                return name
        raise self.error(call)


def javascript(*functions: Callable[..., Any]) -> str:
    """Return the functions and all functions that they call in JavaScript.

    Raises
    ------
    ValueError
        If a function is not in the translated subset, or two functions have the same name.
    """
    waiting, done = list(functions), dict[str, tuple[Any, str]]()
    while waiting:
        function = waiting.pop(0)
        name = function.__name__
        if not isinstance(function, FunctionType):
            raise ValueError(f"{name}: expected a function, got {type(function).__name__}.")
        if name not in done:
            translation = _Translation(function)
            done[name] = function, translation.text
            waiting += translation.called.values()
        elif done[name][0] is not function:
            raise ValueError(f"{name}: two functions have this name; rename one.")
    return "\n\n".join(text for _, text in done.values())


_SCRIPT = """\
// Made by tools/translate.py from the kernels of the updates; `make steps` makes it again.

const steps = (() => {{
// Math.max and Math.min differ from Python's functions for zeros of different signs.
const max = (x, y) => (y > x ? y : x);
const min = (x, y) => (y < x ? y : x);

{functions}

return {{
  greedy,
  policies: {{ {policies} }},
  updates: {{
{updates}
  }},
}};
}})();
"""


def steps() -> str:
    """Return the text of steps.js, which contains every update with a kernel."""
    kernels = {name: update.kernel for name, update in UPDATES.items() if update.kernel is not None}
    return _SCRIPT.format(
        functions=javascript(greedy, *POLICIES.values(), *kernels.values()),
        policies=", ".join(POLICIES),
        updates="\n".join(
            f'    "{name}": {{ kernel: {kernel.__name__}, '
            f'parametrization: "{UPDATES[name].parametrization}" }},'
            for name, kernel in kernels.items()
        ),
    )


if __name__ == "__main__":
    STEPS.write_text(steps(), encoding="utf-8")
