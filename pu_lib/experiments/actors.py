"""The update of a run: how it is set, how tables name it, and where its parameters start.

A string is an update of the library, with the options that it says: ``pg-es`` is the escort
policy gradient with the exact factor, ``pg-es factor=drop`` the one that the paper runs.

Tables of runs are older than this rule. Their column ``update`` holds a name without options, and
what the paper does is not written out: ``pg-es`` with a preset such as ``paper`` drops the factor,
and ``escort_factor=keep`` at the end of a preset keeps it. `columns_of` and `run_of` translate.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace

from pu_lib.engine.compiling import code_digest
from pu_lib.experiments.options import Options, describe, parse
from pu_lib.updates import PAPER, EscortPolicyGradient, Update, as_update

__all__ = [
    "PROGRAM",
    "columns_of",
    "configured",
    "details_of",
    "fingerprint",
    "label_in_table",
    "run_of",
    "start_of",
]

PROGRAM = tuple("pg-es factor=drop" if name == "pg-es" else name for name in PAPER)
"""The paper's five updates as its experiments run them."""

_KEEP = " escort_factor=keep"


def configured(update: str | Update, options: Options) -> Update:
    """Return the update of a run.

    Parameters
    ----------
    update : str or Update
        An update with its own settings, or a string as `as_update` takes it. A string that does not
        say how ties are broken leaves that to the options of the run.
    options : Options
        The open details; ``ties`` is read.

    Returns
    -------
    Update
        The update with the settings of this run.
    """
    chosen = as_update(update)
    if isinstance(update, Update) or "ties" not in chosen.options or " ties=" in update:
        return chosen
    return replace(chosen, ties=options.ties)  # type: ignore[type-var]


def columns_of(update: str, options: Options) -> tuple[str, str]:
    """Return what the columns ``update`` and ``preset`` of tables hold for a setting.

    Parameters
    ----------
    update : str
        The update of the runs, as `as_update` takes it.
    options : Options
        Their open details.

    Returns
    -------
    update, preset : str
        The name without options, and the description of the details with those options.

    Raises
    ------
    ValueError
        If there is no such update, or it has an option for which tables have no place.
    """
    chosen = configured(update, options)
    name, *words = update.split(" ") if "=" in update else [update]
    name = name if ":" in name else chosen.name
    for word in words:
        if not word.startswith(("factor=", "ties=")):
            raise ValueError(
                f"update: tables of runs note no option but factor and ties, got {word!r}; "
                "register the setting under a name of its own."
            )
    if "ties" in chosen.options:
        options = replace(options, ties=chosen.options["ties"])
    kept = isinstance(chosen, EscortPolicyGradient) and chosen.factor == "keep"
    return name, describe(options) + _KEEP * kept


def run_of(update: str, preset: str) -> tuple[Update, Options]:
    """Return the update and the open details of runs in a table; the inverse of `columns_of`.

    Parameters
    ----------
    update, preset : str
        The columns of these names.

    Returns
    -------
    update : Update
        The update with its settings.
    options : Options
        The open details.

    Raises
    ------
    ValueError
        If there is no such update or preset.
    """
    options = details_of(preset)
    chosen = configured(update, options)
    if isinstance(chosen, EscortPolicyGradient) and " factor=" not in update:
        chosen = replace(chosen, factor="keep" if preset.endswith(_KEEP) else "drop")
    return chosen, options


def details_of(preset: str) -> Options:
    """Return the open details in the column ``preset`` of a table.

    Parameters
    ----------
    preset : str
        A value of the column.

    Returns
    -------
    Options
        The open details.
    """
    return parse(preset.removesuffix(_KEEP))


def label_in_table(update: str, preset: str) -> str:
    """Return the string that stands for the update of runs in a table, but for its ties.

    Parameters
    ----------
    update, preset : str
        The columns of these names.

    Returns
    -------
    str
        ``pg-es factor=drop`` where PG-ES drops its factor; elsewhere the name in the table.
    """
    return "pg-es factor=drop" if update == "pg-es" and not preset.endswith(_KEEP) else update


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
    return hashlib.sha256(f"{asked!r} {code_digest(update.kernel)}".encode()).hexdigest()[:12]
