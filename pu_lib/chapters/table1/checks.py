"""Checks of Table 1, which compare each of the thirty entries with a measurement.

An entry holds if the measurement gives the same entry. It holds with a correction if there are
exceptions, such as another value of an open option. It is false if the measurement gives another
entry. Cases that the paper does not speak of, such as another exponent of the escort transform or a
single weight in a column about the existence of a proof, are remarks and do not change the status.
"""

from __future__ import annotations

import sys

from pu_lib.chapters.table1.quantities import COLUMNS, Entry, ExceptionalCase, measure
from pu_lib.claims.recorder import Check, Recorder

PRINTED = {
    "pg-sm": ("yes", "O(1/t)", "strong", "slow", "yes", "yes"),
    "pg-es": ("yes", "O(1/t)", "weak", "slow", "yes", "yes"),
    "di": ("yes", "exact", "none", "fast", "no", "no"),
    "ce": ("no", "O(1/t)", "none", "fast", "no", "yes"),
    "mce": ("yes", "O(1/t)", "none", "fast", "no", "yes"),
}
"""The entries that the paper prints, in the order of `COLUMNS`."""


def the_printed_entry_is_measured(
    compare: Recorder, update: str, column: str, printed: str
) -> None:
    """The measurement of a column gives the printed entry in all cases."""
    entry = measure(update, column)
    usual = {"case": "usual", "measured": entry.entry}
    quantity = "distance to another entry"
    compare.at_least(quantity, _distance(entry, printed), 0.0, limit="0", at=usual)
    for other in entry.exceptions:
        compare.at_least(
            quantity, _distance(other, printed), 0.0, limit="0", as_printed=True,
            at={"case": other.case, "measured": other.entry},
        )  # fmt: skip
    remarks = "; ".join(f"“{other.entry}” for {other.case}" for other in entry.remarks)
    compare.report(why=entry.found, remarks=remarks or "none")


def _distance(entry: Entry | ExceptionalCase, printed: str) -> float:
    """Return the margin of the measured number, or minus the margin if the entries differ."""
    # A margin of 0 must become negative, too, if the measured entry is not the printed one.
    return entry.margin if entry.entry == printed else -max(entry.margin, sys.float_info.min)


CELLS = tuple(
    Check(
        f"tab:analysis/{update}/{column.name}",
        the_printed_entry_is_measured,
        wrong={
            f"{other!r} in place of {entry!r}": {"printed": other}
            for other in column.criteria
            if other != entry
        },
        arguments={"update": update, "column": column.name, "printed": entry},
    )
    for update, entries in PRINTED.items()
    for column, entry in zip(COLUMNS.values(), entries, strict=True)
)
"""The checks of the thirty entries."""
