"""Checks of Table 1: each of its thirty entries against the measurement of its column.

What is measured, and what each entry asks for, stands in `pu_lib.chapters.table1.quantities`; here stands what
is printed, and the rule that compares the two. An entry *holds* if the measurement gives it; it
holds *with a correction* if the measurement gives it with exceptions (another option that the paper
leaves open, or a single weight); it is *false* if the measurement gives another one.
"""

from __future__ import annotations

from pu_lib.chapters.table1.quantities import COLUMNS, measure
from pu_lib.updates import label_of
from pu_lib.verdict import Status, Verdict, check

__all__ = ["PRINTED", "check_cell"]

PRINTED = {
    "pg-sm": ("yes", "O(1/t)", "strong", "slow", "yes", "yes"),
    "pg-es": ("yes", "O(1/t)", "weak", "slow", "yes", "yes"),
    "di": ("yes", "exact", "none", "fast", "no", "no"),
    "ce": ("no", "O(1/t)", "none", "fast", "no", "yes"),
    "mce": ("yes", "O(1/t)", "none", "fast", "no", "yes"),
}
"""What the paper prints, in the order of `COLUMNS`."""


def check_cell(
    update: str, column: str, printed: str | None = None, measured: str | None = None
) -> Verdict:
    """Compare an entry of Table 1 with the measurement of its column.

    Parameters
    ----------
    update : str
        The row, one of `PRINTED`.
    column : str
        The column, one of `COLUMNS`.
    printed : str, optional
        Another entry than the one in the paper.
    measured : str, optional
        Another update to measure in the row's place.

    Raises
    ------
    ValueError
        If there is no such row, column or entry.
    """
    if update not in PRINTED:
        raise ValueError(f"update: expected one of {', '.join(PRINTED)}, got {update!r}.")
    found = measure(measured or update, column)
    entries = COLUMNS[column].criteria
    entry = printed or PRINTED[update][list(COLUMNS).index(column)]
    if entry not in entries:
        raise ValueError(f"printed: expected one of {', '.join(entries)}, got {entry!r}.")
    words = f"Printed: {entry}; measured: {found.entry}. {found.found}"
    figures = {"why": found.found}
    if found.entry != entry:
        return Verdict(
            Status.FALSE,
            -found.margin,
            words,
            counterexample={"update": label_of(measured or update), "measured": found.entry},
        )
    if not found.exceptions:
        return Verdict(Status.HOLDS, found.margin, words, figures=figures)
    listed = "; ".join(f"{other.entry} with {other.case}" for other in found.exceptions)
    margin = -max(other.margin for other in found.exceptions)
    return Verdict(Status.CORRECTED, margin, f"{words} But: {listed}.", figures=figures)


for _update, _entries in PRINTED.items():
    for _column, _entry in zip(COLUMNS.values(), _entries, strict=True):
        _others = {
            f"{other!r} in place of {_entry!r}": {"printed": other}
            for other in _column.criteria
            if other != _entry
        }
        check(
            f"tab:analysis/{_update}/{_column.name}",
            moved=_others,
            update=_update,
            column=_column.name,
        )(check_cell)
