"""Settings as text: a name, then ``key=value`` for each value that is not the default.

Domains and the options of the experiments have this form in tables, in file names and on the
command line, as in ``chain beta=0.7``. A value is read as the type of its default: a boolean is
``True`` or ``False``, a number is a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

__all__ = ["read_settings", "write_settings"]


def write_settings(name: str, values: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return `name`, then ``key=value`` for each setting that differs from its default in `usual`.

    Examples
    --------
    >>> write_settings("chain", {"beta": 0.7, "n_states": 10}, {"n_states": 10, "beta": 0.8})
    'chain beta=0.7'
    """
    changed = [f"{key}={values[key]}" for key in usual if values.get(key, usual[key]) != usual[key]]
    return " ".join([name, *changed])


def read_settings(what: str, text: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in text such as ``beta=0.7 n_states=5``, each of the type of its default.

    `what` is the name of the thing that is set, for error messages, and `usual` has the default of
    every setting. A setting that is unknown, repeated or of another type raises a `ValueError`.

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
    """Return text as the type of `like`; numbers are numbers even if `like` is text."""
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
