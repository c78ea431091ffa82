"""The update of a run, what its parameters start from, and a name for the code of one's own."""

from __future__ import annotations

import hashlib
import inspect
from dataclasses import replace
from typing import Any

import numpy as np

from pu_lib.empirical.options import Options
from pu_lib.updates import Update, as_update

__all__ = ["code_of", "configured", "fingerprint", "start_of"]


def configured(update: str | Update, options: Options) -> Update:
    """Return the update of a run.

    Parameters
    ----------
    update : str or Update
        An update with its own settings, or the name of one, whose settings are then taken from
        the options of the run.
    options : Options
        ``escort_factor`` is the setting ``factor`` of an update that has one, ``ties`` is ``ties``.

    Returns
    -------
    Update
        The update with the settings of this run.
    """
    if isinstance(update, Update):
        return update
    chosen = as_update(update)
    settings = {"factor": options.escort_factor, "ties": options.ties}
    known = {name: value for name, value in settings.items() if name in chosen.options}
    return replace(chosen, **known) if known else chosen  # type: ignore[type-var]


def start_of(update: Update, n_actions: int, options: Options) -> float:
    """Return the parameter that every action of every state starts from.

    Parameters
    ----------
    update : Update
        The actor's update.
    n_actions : int
        The number of actions.
    options : Options
        The open details, for the start of escort parameters.

    Returns
    -------
    float
        The parameter, which makes the first policy uniform.
    """
    if update.parametrization == "escort":
        return options.escort_start
    return update.uniform(n_actions)


def fingerprint(update: Update) -> str:
    """Return a name for the code of an update: another one once it or a constant changes.

    Parameters
    ----------
    update : Update
        An update with a kernel.

    Returns
    -------
    str
        Twelve hexadecimal digits, of its kernel and of what else the loop asks of it.
    """
    asked = update.options, update.parametrization, [update.uniform(n) for n in (2, 3)]
    return hashlib.sha256(f"{asked!r} {code_of(update.kernel)}".encode()).hexdigest()[:12]


def code_of(kernel: Any) -> str:
    """Return a name for the code of a kernel.

    Parameters
    ----------
    kernel : callable
        The kernel, compiled by numba or not.

    Returns
    -------
    str
        A digest of its source, of that of the functions it calls, and of the constants they read.
    """
    digest, seen, left = hashlib.sha256(), set[Any](), [getattr(kernel, "py_func", kernel)]
    while left:
        function = left.pop()
        if function in seen:
            continue
        seen.add(function)
        digest.update(_source(function).encode())
        found = inspect.getclosurevars(function)
        for name, value in sorted({**found.globals, **found.nonlocals}.items()):
            value = getattr(value, "py_func", value)
            if inspect.isfunction(value):
                left.append(value)
            elif not inspect.ismodule(value):
                digest.update(f"{name} = {_bytes(value)!r}".encode())
    return digest.hexdigest()


def _source(function: Any) -> str:
    try:
        return inspect.getsource(function)
    except OSError:  # such as one that exec has made
        return repr((function.__code__.co_code, function.__code__.co_consts))


def _bytes(value: Any) -> Any:
    """Return an array as what makes it, which may be too long to print; anything else as it is."""
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return value
