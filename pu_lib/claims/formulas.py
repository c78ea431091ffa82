r"""Formulas that checks evaluate and that statements print as LaTeX.

>>> from fractions import Fraction
>>> @formula
... def di_bound(h, w):
...     return 1 + (h - 1) * (floor(1 / w) + 1)
>>> di_bound(3, Fraction(1, 2))
7
>>> di_bound.latex(w=r"\eta d")
'1+(h-1)\\left(\\left\\lfloor\\frac{1}{\\eta d}\\right\\rfloor+1\\right)'

The LaTeX is generated from the source of the final ``return``. Earlier statements handle limits
(such as 0 log 0 = 0) and are not printed. Arguments may be int, Fraction, float or Arb balls. The
result is exact if the arguments are exact and the functions below return exact numbers.

The texts of a claim refer to a formula as ``<<di_bound: h=|\mathcal S|, w=\eta d>>``.
"""

from __future__ import annotations

import ast
import inspect
import math
import re
import textwrap
from collections.abc import Callable, Mapping
from functools import cache, update_wrapper
from typing import Any

__all__ = ["Formula", "ceil", "exp", "floor", "formula", "insert_formulas", "log", "log1p", "sqrt"]


def _apply(name: str, x: Any) -> Any:
    # Arb balls have these functions as methods; everything else goes through `math`.
    return getattr(x, name)() if hasattr(x, name) else getattr(math, name)(x)


def floor(x: Any) -> Any:
    """Return the largest integer <= x."""
    return _apply("floor", x)


def ceil(x: Any) -> Any:
    """Return the smallest integer >= x."""
    return _apply("ceil", x)


def sqrt(x: Any) -> Any:
    """Return the square root of x."""
    return _apply("sqrt", x)


def exp(x: Any) -> Any:
    """Return the exponential of x."""
    return _apply("exp", x)


def log(x: Any) -> Any:
    """Return the natural logarithm of x."""
    return _apply("log", x)


def log1p(x: Any) -> Any:
    """Return the natural logarithm of 1 + x, accurate for small x."""
    return _apply("log1p", x)


class Formula:
    """A function of numbers that can be printed as LaTeX, created by the decorator `formula`."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self._function = function

    def __call__(self, *numbers: Any) -> Any:
        """Return the value of the formula."""
        return self._function(*numbers)

    def latex(self, **symbols: str) -> str:
        """Return the formula as LaTeX, with the names of arguments replaced by the given symbols.

        Raises a `ValueError` if a part of the formula cannot be printed or there is no argument
        with a given name.
        """
        known = inspect.signature(self._function).parameters
        if unknown := set(symbols) - set(known):
            raise ValueError(f"{self.__name__}: no argument {', '.join(sorted(unknown))}.")  # type: ignore[attr-defined]
        return _Printer(symbols).print(_returned(self._function))


@cache
def _returned(function: Callable[..., Any]) -> ast.expr:
    """Return the expression in the ``return`` statement at the end of a function."""
    (parsed,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    final = parsed.body[-1] if isinstance(parsed, ast.FunctionDef) else parsed
    if not isinstance(final, ast.Return) or final.value is None:
        raise ValueError(f"{function}: a formula ends with a return.")
    return final.value


formula = Formula
"""The decorator that turns a function into a `Formula`."""

_FUNCTIONS = {
    "floor": r"\left\lfloor{}\right\rfloor",
    "ceil": r"\left\lceil{}\right\rceil",
    "log1p": r"\log(1+{})",
    "sqrt": r"\sqrt{{{}}}",
    "exp": "e^{{{}}}",
    "min": r"\min\{{{}\}}",
    "max": r"\max\{{{}\}}",
    "abs": "|{}|",
}


class _Printer:
    """Converts the syntax tree of an expression to LaTeX, in the order of the source."""

    def __init__(self, symbols: Mapping[str, str]) -> None:
        self._symbols = symbols

    def print(self, node: ast.expr) -> str:
        match node:
            case ast.Constant(value=value):
                return str(value)
            case ast.Name(id=name):
                return self._symbols.get(name, name)
            case ast.UnaryOp(op=ast.USub(), operand=operand):
                return f"-{self._factor(operand)}"
            case ast.BinOp(left, ast.Add(), right):
                return f"{self.print(left)}+{self.print(right)}"
            case ast.BinOp(left, ast.Sub(), right):
                return f"{self.print(left)}-{self._factor(right)}"
            case ast.BinOp(left, ast.Mult(), right):
                return self._product(self._factor(left), self._factor(right))
            case ast.BinOp(left, ast.Div(), right):
                return rf"\frac{{{self.print(left)}}}{{{self.print(right)}}}"
            case ast.BinOp(left, ast.Pow(), right):
                return f"{self._base(left)}^{{{self.print(right)}}}"
            case ast.Call(func=ast.Name(id="log"), args=[argument]):
                inner = self.print(argument)
                is_name = isinstance(argument, ast.Name)
                return rf"\log {inner}" if is_name else rf"\log{self._enclosed(inner)}"
            case ast.Call(func=ast.Name(id=name), args=arguments) if name in _FUNCTIONS:
                return _FUNCTIONS[name].format(",".join(map(self.print, arguments)))
        raise ValueError(f"formula: cannot print {ast.unparse(node)}.")

    def _factor(self, node: ast.expr) -> str:
        """Return the LaTeX of a node, in parentheses if the node is a sum."""
        inner = self.print(node)
        is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub))
        return self._enclosed(inner) if is_sum else inner

    def _base(self, node: ast.expr) -> str:
        """Return the LaTeX of a node, in parentheses if the node is a binary operation."""
        inner = self.print(node)
        return self._enclosed(inner) if isinstance(node, ast.BinOp) else inner

    @staticmethod
    def _enclosed(inner: str) -> str:
        return rf"\left({inner}\right)" if r"\frac" in inner else f"({inner})"

    @staticmethod
    def _product(left: str, right: str) -> str:
        if right[0].isdigit():
            return rf"{left}\cdot {right}"
        return left + _space_between(left, right) + right


def _space_between(left: str, right: str) -> str:
    """Return a space if a LaTeX command at the end of `left` would go on in `right`."""
    return " " if right[:1].isalpha() and re.search(r"\\[A-Za-z]+$", left) else ""


_PLACEHOLDER = re.compile(r"<<(\w+(?:\.\w+)?)(?:: (.*?))?>>")


def insert_formulas(text: str, formulas: Mapping[str, Formula]) -> str:
    """Return a text with each ``<<name: symbol=LaTeX, ...>>`` replaced by the formula's LaTeX.

    Raises a `ValueError` if there is no formula or argument with a given name.
    """

    def printed(place: re.Match[str]) -> str:
        if place[1] not in formulas:
            raise ValueError(
                f"no formula {place[1]!r}; there are: {', '.join(formulas) or 'none'}."
            )
        symbols = dict(pair.split("=", 1) for pair in (place[2] or "").split(", ") if pair)
        latex = formulas[place[1]].latex(**symbols)
        before, after = text[: place.start()], text[place.end() :]
        return _space_between(before, latex) + latex + _space_between(latex, after)

    return _PLACEHOLDER.sub(printed, text)
