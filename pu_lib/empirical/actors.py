"""The update of a run, and what its parameters start from."""

from __future__ import annotations

from dataclasses import replace

from pu_lib.empirical.options import Options
from pu_lib.updates import Update, as_update

__all__ = ["configured", "start_of"]


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
