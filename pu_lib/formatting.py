r"""Formatting of numbers, sentences and formulas for readers.

The sentence of a claim has names of figures in braces. Braces in formulas, which are between
dollars, are braces of LaTeX:

>>> sentence = r"From $\frac14$ it takes {n'} updates, not {bound}."
>>> fill_placeholders(sentence, {"n'": 5, "bound": 3.9512})
'From $\\frac14$ it takes 5 updates, not 3.951.'
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any
from unicodedata import lookup

DIGITS = 4
"""The number of significant digits of a measured number."""

_PLACE = re.compile(r"{([^{}]+)}")
_LETTERS = re.compile("(?<![A-Za-z])(?:eta|theta|pi|epsilon|delta|kappa|gamma)(?![A-Za-z])")
_THIN = "\N{NARROW NO-BREAK SPACE}"


def format_number(value: Real | float) -> str:
    """Return a number as text, with a formula between dollars if the text needs a power of ten.

    An integer is written with all its digits, in groups of three if it has five digits or more. Any
    other number has at most four significant digits.
    """
    if isinstance(value, Integral):
        return _grouped(f"{int(value):,}").replace("-", "\N{MINUS SIGN}")
    value = float(value)
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else f"${'-' * (value < 0)}\\infty$"
    if value == int(value) and abs(value) < 10**6:
        return format_number(int(value))
    short = f"{value:.{DIGITS}g}"
    if "e" not in short:
        return short.replace("-", "\N{MINUS SIGN}")
    digits, _, power = f"{value:.1e}".partition("e")
    digits = digits.removesuffix(".0")
    factor = digits.removesuffix("1") if digits in ("1", "-1") else rf"{digits}\cdot"
    return f"${factor}10^{{{int(power)}}}$"


def percent(share: float, decimals: int | None = None) -> str:
    """Return a fraction of 1 as a percentage, with at most four significant digits by default.

    A no-break space precedes the percent sign.
    """
    written = format_number(100 * share) if decimals is None else f"{100 * share:.{decimals}f}"
    return f"{written}\N{NO-BREAK SPACE}%"


def _grouped(digits: str) -> str:
    """Return an integer with thin spaces between groups of three if it has five digits or more."""
    return digits.replace(",", _THIN if len(digits.lstrip("-")) > 5 else "")


def format_value(value: Any) -> str:
    """Return a number, boolean, string, sequence or mapping as text, with formulas in dollars.

    The name of an update is replaced by the label of the update.
    """
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)):
        return format_number(value)
    if isinstance(value, str):
        return _labelled(value)
    if isinstance(value, Mapping):
        return ", ".join(
            f"{_heading(str(key))} = {format_value(entry)}" for key, entry in value.items()
        )
    if isinstance(value, Sequence) or getattr(value, "ndim", 0) > 0:
        return f"({', '.join(format_value(entry) for entry in value)})"
    return str(value)


def _labelled(text: str) -> str:
    """Return the label of the update with the given name, or any other text unchanged."""
    from pu_lib.updates import UPDATES

    return UPDATES[text].label if text in UPDATES else text


def _heading(key: str) -> str:
    """Return the key with names of Greek letters replaced by the letters."""
    return _LETTERS.sub(lambda name: lookup(f"GREEK SMALL LETTER {name[0]}"), key)


def placeholders(sentence: str) -> list[str]:
    """Return the placeholders of a sentence, in order; braces in formulas are ignored."""
    return [name for part in sentence.split("$")[::2] for name in _PLACE.findall(part)]


def fill_placeholders(sentence: str, figures: Mapping[str, Any], where: str = "sentence") -> str:
    """Return a sentence with each placeholder replaced by the figure with the same name.

    `where` is the source of the sentence for the error message. A placeholder without a figure
    raises a `ValueError`.
    """

    def filled(place: re.Match[str]) -> str:
        if place[1] not in figures:
            known = ", ".join(figures) or "none"
            raise ValueError(
                f"{where}: no figure {place[1]!r} to fill the sentence; there are: {known}."
            )
        return format_value(figures[place[1]])

    parts = sentence.split("$")
    parts[::2] = [_PLACE.sub(filled, part) for part in parts[::2]]
    return "$".join(parts)


# Drawn as HTML


def to_html(text: str) -> str:
    """Return text as HTML, with formulas between dollars as elements that MathJax typesets."""
    pieces = text.split("$")
    return "".join(
        f'<span class="math notranslate nohighlight">\\({html.escape(piece)}\\)</span>'
        if index % 2
        else html.escape(_curled(piece))
        for index, piece in enumerate(pieces)
    )


def _curled(text: str) -> str:
    """Return text with typographic apostrophes and quotation marks; primes are unchanged."""
    text = re.sub(
        r"(?:^|(?<=[A-Za-z]))'(?=[a-z])|(?<=s)'(?= [a-z])", "\N{RIGHT SINGLE QUOTATION MARK}", text
    )
    text = re.sub(r'(?<![\w.,!?)])"(?=\S)', "\N{LEFT DOUBLE QUOTATION MARK}", text)
    return text.replace('"', "\N{RIGHT DOUBLE QUOTATION MARK}")
