"""Tables of the chapter on reward hacks."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd

from pu_lib.chapters.reward_hack.quantities import (
    LOG_ODDS_STEPS,
    Summary,
    gradient_steps,
    log_odds_step,
    lost_by,
    protocol,
    summary,
    waits,
    waits_table,
)
from pu_lib.formatting import percent

LOST_BY = (30_000, 100_000)
"""The numbers of updates at which runs of the partial change are counted as lost."""


def number(value: float) -> str:
    """Return a count with groups of three digits, or the infinity sign."""
    return "∞" if math.isinf(value) else f"{value:,.0f}".replace(",", "\N{NARROW NO-BREAK SPACE}")


def power(value: float) -> str:
    """Return a small number with two digits and a power of ten, such as 2.1e-5."""
    return f"{value:.1e}".replace("e-0", "e-")


def median_with_interval(cell: Summary) -> str:
    """Return the median of the updates with its interval, and the runs that are lost."""
    if 2 * cell.reached <= cell.runs:
        return f"{cell.reached} of {cell.runs} so certain" if cell.reached else "never so certain"
    lost = f"; {cell.lost} lost" if cell.lost else ""
    return f"{number(cell.after)} [{number(cell.low)}, {number(cell.high)}]{lost}"


def at_the_change(cell: Summary) -> str:
    """Return the samples until half, and the certainty at the change."""
    if 2 * cell.reached <= cell.runs:
        return ""
    return f"{number(cell.samples)}; {power(cell.correct)}; {power(cell.regret)}"


def price_table() -> pd.DataFrame:
    """Return the way back of each method after a swap, with groups of 8.

    The columns are the median of the updates with its interval, the samples, and the probability of
    the correct answer at the change, after 1000 updates; and the updates from a certainty of 0.999.
    """
    rows: dict[str, dict[str, Any]] = {}
    for method in protocol()["methods"]:
        trained = summary("swap", method, 8, "updates", 1000)
        certain = summary("swap", method, 8, "certainty", 0.999)
        rows[method] = {
            "after 1000": median_with_interval(trained),
            "samples": number(trained.samples),
            "correct": power(trained.correct),
            "regret": power(trained.regret),
            "from 0.999": median_with_interval(certain),
        }
    return pd.DataFrame(rows).T


def change_table(change: str, size: int) -> pd.DataFrame:
    """Return the way back of each method from each start.

    A cell has the median of the updates with its interval, and the runs that are lost; below them
    the medians of the samples, of the probability of the correct answer at the change, and of the
    regret there.
    """
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for method in protocol()["methods"]:
        rows[method, "updates"], rows[method, "samples; correct; regret"] = {}, {}
        for start, levels in protocol()["starts"].items():
            for level in levels:
                cell, name = summary(change, method, size, start, level), f"{level:g}"
                rows[method, "updates"][name] = median_with_interval(cell)
                rows[method, "samples; correct; regret"][name] = at_the_change(cell)
    return pd.DataFrame(rows).T


def formula_table() -> pd.DataFrame:
    """Return the step of the log-odds, the formula and the measured mean count at step size 1."""
    rows: dict[str, dict[str, str]] = {}
    for name in LOG_ODDS_STEPS:
        rows[name] = {}
        for size in protocol()["waits"]["sizes"]:
            s, cell = log_odds_step(name, size), _measured(name, size, 1.0, 0.001)
            rows[name][f"s, G = {size}"] = f"{s:.2g}"
            rows[name][f"formula, G = {size}"] = f"{waits(s):.2f}"
            rows[name][f"measured, G = {size}"] = cell
    return pd.DataFrame(rows).T


def _measured(name: str, size: int, weight: float, seen: float) -> str:
    rows = waits_table()
    rows = rows[(rows.method == name) & (rows["size"] == size)]
    row = rows[(rows.weight == weight) & (rows.seen == seen)].iloc[0]
    return f"{row['mean']:.2f} ± {1.96 * row['error']:.2f}"


def all_waits_table() -> pd.DataFrame:
    """Return the formula and the measured mean counts of all cells, with 95 % intervals."""
    plan, rows = protocol()["waits"], {}
    for name in plan["methods"]:
        for size in plan["sizes"]:
            for weight in plan["weights"]:
                cells = {"formula": f"{waits(log_odds_step(name, size, weight)):.2f}"}
                for seen in plan["seen"]:
                    cells[f"Gε = {seen:g}"] = _measured(name, size, weight, seen)
                rows[name, size, weight] = cells
    table = pd.DataFrame(rows).T
    table.index.names = ["method", "G", "step size"]
    return table


def lost_table() -> pd.DataFrame:
    """Return the share of runs lost and the median if the hack still pays, from 0.99, G = 8."""
    rows: dict[str, dict[str, str]] = {}
    for method in protocol()["methods"]:
        cell = ("partial", method, 8, "certainty", 0.99)
        found = summary(*cell)
        if 2 * found.reached <= found.runs:
            continue
        rows[method] = {f"lost by {number(n)}": percent(lost_by(*cell, updates=n)) for n in LOST_BY}
        interval = f"{number(found.after)} [{number(found.low)}, {number(found.high)}]"
        rows[method]["median of the updates"] = interval
    return pd.DataFrame(rows).T


def reference_table() -> pd.DataFrame:
    """Return the steps of the exact gradient from references that give the hack 0.34."""
    rows = {}
    for correct in (0.015, 0.02, 0.03, 0.05, 0.1, 0.2):
        rows[f"{correct:g}"] = {
            "the hack pays a half": number(gradient_steps(0.34, correct, 0.66 - correct)),
            "it pays nothing": number(gradient_steps(0.34, correct, 0.66 - correct, pays=0.0)),
            "no failing answers": number(gradient_steps(1 - correct, correct, 0.0)),
        }
    return pd.DataFrame(rows).T
