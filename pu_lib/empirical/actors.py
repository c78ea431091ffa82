"""The update of a run, what its parameters start from, and a name for the code of one's own."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pu_lib.empirical.options import Options
from pu_lib.engine.compiling import code_of
from pu_lib.updates import Update, as_update

__all__ = ["configured", "fingerprint", "start_of"]


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
    asked = update.options, update.parametrization, [update.uniform(n) for n in range(2, 8)]
    return hashlib.sha256(f"{asked!r} {code_of(update.kernel)}".encode()).hexdigest()[:12]
