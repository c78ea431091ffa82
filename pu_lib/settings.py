"""Names and settings as text: a name, then ``key=value`` for each value that is not the default.

Domains and the options of the experiments have this form in tables, in file names and on the
command line, as in ``chain beta=0.7``. A value is read as the type of its default: booleans
are written ``True`` or ``False``.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from pu_lib.arrays import safe_repr


def as_list(values: Any) -> list[Any]:
    """Return values as a list; a text, or a value that is no collection, is a list of one.

    Examples
    --------
    >>> as_list("ce"), as_list(1.0), as_list(["ce", "mce"])
    (['ce'], [1.0], ['ce', 'mce'])
    """
    is_one = isinstance(values, str) or not isinstance(values, Iterable)
    return [values] if is_one else list(values)


def find_name(
    argument: str, value: object, names: Iterable[str], labels: Mapping[str, str] | None = None
) -> str:
    """Return the element of `names` that equals `value` up to case and ``_`` in place of ``-``.

    `labels` maps other accepted texts to names. Any other value raises a `ValueError` that suggests
    the nearest name.

    Examples
    --------
    >>> find_name("update", "PG-SM", ["pg-sm", "pg-es"])
    'pg-sm'
    >>> find_name("update", "pg-smm", ["pg-sm", "pg-es"])
    Traceback (most recent call last):
    ValueError: update: unknown 'pg-smm'; did you mean 'pg-sm'? There are: pg-sm, pg-es.
    """
    known = tuple(names)
    if isinstance(value, str):
        if value in known:
            return value
        folded = {_fold(label): name for label, name in (labels or {}).items()}
        folded |= {_fold(name): name for name in reversed(known)}
        if _fold(value) in folded:
            return folded[_fold(value)]
    raise ValueError(
        f"{argument}: unknown {safe_repr(value)}{did_you_mean(value, known)} "
        f"There are: {', '.join(known)}."
    )


def import_object(argument: str, place: str) -> Any:
    """Return the object at ``module:NAME``, or None if the module has no such name.

    Raises a `ValueError` that names `argument` and `place` if the module cannot be imported.
    """
    module, _, name = place.partition(":")
    with naming_place(argument, place, "cannot be imported"):
        return getattr(import_module(module), name, None)


@contextmanager
def naming_place(argument: str, place: str, failure: str) -> Iterator[None]:
    """Convert errors of the user's code at ``module:NAME`` to a `ValueError` that names the code.

    `SystemExit` is converted, too, because the module may be a script that ends the program.
    """
    try:
        yield
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, (ImportError, ValueError)) else f"{type(error).__name__}: "
        raise ValueError(f"{argument}: {place!r} {failure}: {kind}{error}") from error


def did_you_mean(value: object, names: Iterable[str]) -> str:
    """Return ``; did you mean 'name'?`` with the name nearest to a text, or ``.`` if none is near.

    Examples
    --------
    >>> did_you_mean("chian", ["chain", "cliff"])
    "; did you mean 'chain'?"
    >>> did_you_mean("grid", ["chain", "cliff"])
    '.'
    """
    folded = {_fold(name): name for name in names}
    near = difflib.get_close_matches(_fold(value), folded, n=1) if isinstance(value, str) else []
    return f"; did you mean {folded[near[0]]!r}?" if near else "."


def _fold(text: str) -> str:
    """Return text in a normal form for comparing names."""
    return text.strip().casefold().replace("_", "-")


def write_settings(name: str, values: Mapping[str, Any], usual: Mapping[str, Any]) -> str:
    """Return `name`, then ``key=value`` for each setting that differs from its default in `usual`.

    Examples
    --------
    >>> write_settings("chain", {"beta": 0.7, "n_states": 10}, {"n_states": 10, "beta": 0.8})
    'chain beta=0.7'
    """
    changed = [f"{key}={values[key]}" for key in usual if values.get(key, usual[key]) != usual[key]]
    return " ".join([name, *changed])


def read_settings(argument: str, text: str, usual: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values in text such as ``beta=0.7 n_states=5``, each of the type of its default.

    `argument` names the settings in error messages, and `usual` has the default of every setting. A
    setting that is unknown, repeated or of another type raises a `ValueError`.

    Examples
    --------
    >>> read_settings("domain", "beta=0.7", {"n_states": 10, "beta": 0.8})
    {'beta': 0.7}
    """
    if not isinstance(text, str):
        raise ValueError(f"{argument}: expected words such as 'option=value', got {text!r}.")
    values: dict[str, Any] = {}
    for word in text.split():
        key, equals, value = word.partition("=")
        if not equals or key not in usual:
            known = ", ".join(usual) or "nothing"
            raise ValueError(f"{argument}: {word!r} is not 'option=value' of {known}.")
        if key in values:
            raise ValueError(f"{argument}: {key!r} is given twice.")
        values[key] = _read(key, value, usual[key])
    return values


def _read(key: str, text: str, like: object) -> Any:
    """Return text as a value of the type of `like`; if `like` is text, numbers are also read."""
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
