"""Settings as words: a name, and ``key=value`` for what is not as usual, as in ``paper cut=0``.

Domains and the open details of the experiments are written this way in tables, file names and on
the command line. A value is read as what it replaces: a boolean is ``True`` or ``False``, a number
is a number, and anything else is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["read_settings", "write_settings"]


def write_settings(name: str, values: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return the name followed by the values that are not as usual.

    Parameters
    ----------
    name : str
        What is set, one word.
    values : mapping
        Values of some of the settings.
    usual : mapping
        The usual value of every setting.

    Returns
    -------
    str
        The name, and ``key=value`` for each changed setting in the order of `usual`.

    Examples
    --------
    >>> write_settings("chain", {"beta": 0.7, "n_states": 10}, {"n_states": 10, "beta": 0.8})
    'chain beta=0.7'
    """
    changed = [f"{key}={values[key]}" for key in usual if values.get(key, usual[key]) != usual[key]]
    return " ".join([name, *changed])


def read_settings(what: str, text: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in words such as ``beta=0.7 n_states=5``.

    Parameters
    ----------
    what : str
        What is set, for the sentence of an error.
    text : str
        The words, without the name.
    usual : mapping
        The usual value of every setting; a value is read as one of the same type.

    Returns
    -------
    dict of str to object
        The settings that the words name, each of the type of its usual value.

    Raises
    ------
    ValueError
        If a setting is unknown or given twice, or its value is of another type.

    Examples
    --------
    >>> read_settings("domain", "beta=0.7", {"n_states": 10, "beta": 0.8})
    {'beta': 0.7}
    """
    if not isinstance(text, str):
        raise ValueError(f"{what}: expected words such as 'option=value', got {text!r}.")
    values: dict[str, Any] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or key not in usual:
            known = ", ".join(usual) or "nothing"
            raise ValueError(f"{what}: {word!r} is not 'option=value' of {known}.")
        if key in values:
            raise ValueError(f"{what}: {key!r} is given twice.")
        values[key] = _read(key, value, usual[key])
    return values


def _read(key: str, text: str, like: object) -> Any:
    """Read a value of the type of `like`; where that is a word, numbers are read as numbers."""
    if isinstance(like, bool):
        if text not in ("True", "False"):
            raise ValueError(f"{key}: expected True or False, got {text!r}.")
        return text == "True"
    try:
        value = int(text) if isinstance(like, int) else float(text)
    except ValueError:
        if isinstance(like, str):
            return text
        kind = "an integer" if isinstance(like, int) else "a number"
        raise ValueError(f"{key}: expected {kind}, got {text!r}.") from None
    if math.isnan(value):
        raise ValueError(f"{key}: expected a number, got {text!r}.")
    return value
