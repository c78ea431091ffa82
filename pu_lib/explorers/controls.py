"""Traits of explorers, each declared in one line with its bounds and its start.

>>> from pu_lib.explorers.base import Live
>>> class Coin(Live):
...     chance = number(0, 1, 0.5)
...     tosses = whole(1, 100, 10)
...     side = one_of("heads", "tails")
>>> Coin(tosses=3).kept["tosses"]
{'least': 1, 'most': 100, 'whole': True}

The page reads bounds and values from `kept`, with ``range("tosses")`` and ``values("side")`` of
``parts.js``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import traitlets

__all__ = ["constant", "number", "one_of", "some_of", "whole"]


def whole(low: int, high: int, start: int) -> traitlets.Int[int, int]:
    """Return a trait for an integer from `low` to `high`, initially `start`."""
    return traitlets.Int(start, min=low, max=high).tag(sync=True)


def number(low: float, high: float, start: float) -> traitlets.Float[float, float]:
    """Return a trait for a number from `low` to `high`, initially `start`."""
    return traitlets.Float(start, min=low, max=high).tag(sync=True)


def one_of(*values: Any, start: Any = None) -> traitlets.Enum[Any]:
    """Return a trait for one of the values, initially `start` or else the first value."""
    return traitlets.Enum(values, values[0] if start is None else start).tag(sync=True)


def some_of(
    values: Iterable[Any], start: Iterable[Any] | None = None, least: int = 0
) -> traitlets.List[Any]:
    """Return a trait for a list of `least` or more of the values, initially `start` or else all."""
    values = tuple(values)
    chosen = list(values if start is None else start)
    return traitlets.List(traitlets.Enum(values), chosen, minlen=least).tag(sync=True)


def constant(value: Any) -> traitlets.Any:
    """Return a trait for a value that the page reads and that cannot be set."""
    return traitlets.Any(value, read_only=True).tag(sync=True)
