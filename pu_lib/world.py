"""Worlds: processes in the forms in which the page *Build a world* reads and writes them.

The text after ``#`` in the page's address is ``name=value&...``. An example::

    world=1&graph=3*2&move=1_2*0.5,0*0.5_2_2__&pay=1*0.8&start=0&end=2&discount=0.9

It describes 3 states and 2 actions; the next states of each state-action pair in order, with their
probabilities if they are not 1; rewards at the numbers ``s * n_actions + a``; the first state, with
its probability if it is not 1; the terminal states; and the names of states and actions, if there
are any. ``pu_lib/explorers/world.js`` reads it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from pu_lib.mdp import FiniteMDP

# Limits of the page (world.js), and the length of an address that all browsers accept.
_MOST_STATES = 150
_MOST_ACTIONS = 8
_MOST_DISCOUNT = 0.999999
_MOST_CHARACTERS = 60_000


def to_text(process: FiniteMDP) -> str:
    """Return the text of a process after ``#``; raise a `ValueError` if the page rejects it."""
    n_states, n_actions = process.n_states, process.n_actions
    if n_states > _MOST_STATES or not 2 <= n_actions <= _MOST_ACTIONS:
        raise ValueError(
            f"The process has {n_states} states and {n_actions} actions; the page computes at most "
            f"{_MOST_STATES} states, and 2 to {_MOST_ACTIONS} actions."
        )
    if process.discount > _MOST_DISCOUNT:
        raise ValueError(
            f"The discount is {process.discount}; the page computes at most {_MOST_DISCOUNT}."
        )
    rows = process.transitions.reshape(-1, n_states)
    parts = {
        "world": "1",
        "graph": f"{n_states}*{n_actions}",
        "move": "_".join(_pairs(row) for row in rows),
        "pay": ",".join(
            f"{place}*{_number(value)}"
            for place, value in enumerate(process.rewards.ravel())
            if value != 0.0
        ),
        "start": _pairs(process.initial),
        "end": ",".join(str(state) for state in np.flatnonzero(process.terminal)),
        **{key: _listed(key, getattr(process, key)) for key in ("states", "actions")},
        "discount": _number(process.discount),
    }
    text = "&".join(f"{key}={value}" for key, value in parts.items() if value)
    if len(text) > _MOST_CHARACTERS:
        raise ValueError(
            f"The text of the process would have {len(text)} characters; browsers accept addresses "
            f"of about {_MOST_CHARACTERS}. Leave out states or transitions."
        )
    return text


def _listed(kind: str, names: tuple[str, ...] | None) -> str:
    """Return names as the page writes them; raise a `ValueError` if a name occurs twice."""
    for name in names or ():
        if names and names.count(name) > 1:
            raise ValueError(f"The page needs different names; two {kind} are called {name!r}.")
    return ",".join(quote(name, safe="!*'()").replace("%20", "+") for name in names or ())


def _pairs(chances: NDArray[np.float64]) -> str:
    """Return the places of the non-zero probabilities, each with its value if that is not 1."""
    places: Iterable[int] = np.flatnonzero(chances)
    return ",".join(
        str(place) if chances[place] == 1.0 else f"{place}*{_number(chances[place])}"
        for place in places
    )


def _number(value: float) -> str:
    """Return the shortest text that both Python and JavaScript read as exactly this number."""
    return repr(float(value)).removesuffix(".0")


def read_json(path: str | PathLike[str]) -> dict[str, Any] | None:
    """Return the arrays in a JSON file, or None if the file does not begin like a JSON object.

    Raises
    ------
    ValueError
        If the text is no JSON, or a value is no array of numbers or of truth values, or of names.
    """
    with Path(path).open("rb") as file:
        if not file.read(64).lstrip().startswith(b"{"):
            return None
    text = Path(path).read_text(encoding="utf-8")
    try:
        arrays = json.loads(text, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("its lists are nested too deeply") from None
    return {name: _array(name, value) for name, value in arrays.items()}


def _refuse(constant: str) -> None:
    """Raise an error for NaN, Infinity and -Infinity, which Python reads but JSON does not have."""
    raise ValueError(f"{constant} is not a number in JSON")


def _array(name: str, value: Any) -> NDArray[Any]:
    """Return a number, or nested lists of numbers, truth values or names, as an array."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(f"{name}: the lists have different lengths") from None
    kinds, expected = "biuf", "numbers or lists of numbers"
    if name in ("states", "actions"):
        kinds, expected = "U", "a list of names"
    if array.dtype.kind not in kinds:
        raise ValueError(f"{name}: expected {expected}, got {str(value)[:60]}")
    return array
