"""Figures and tables of the chapter on remedies."""

from __future__ import annotations

import pandas as pd
from matplotlib.figure import Figure

from pu_lib.chapters.remedies.quantities import (
    CHANGES,
    REMEDIES,
    SampledRemedy,
    median_of,
    outcomes,
    table,
)
from pu_lib.drawing.style import GREY, INK, figure, line, styled

NS = (1, 3, 10, 30, 100, 300, 1000)


@styled
def draw_counts() -> Figure:
    """Draw the counts n' after n steps, and the regret at the change, for some remedies."""
    fig, (left, right) = figure(1, 2, height=3.8)
    looks = {
        "PG-SM": line("pg-sm"),
        "+ entropy 0.2": {"color": INK, "linestyle": "--", "label": "entropy 0.2"},
        "+ k3 in the loss 0.04": {"color": INK, "linestyle": ":", "label": "k3 in the loss 0.04"},
        "normalised advantages": {"color": GREY, "linestyle": "--", "label": "normalised"},
        "Adam 0.01": {"color": GREY, "linestyle": "-.", "label": "Adam 0.01"},
        "soft NPG 0.1": line("npg") | {"label": "soft NPG 0.1"},
        "CE": line("ce"),
        "DI": line("di"),
    }
    for label, look in looks.items():
        results = outcomes(REMEDIES[label], NS)
        left.plot(NS, [x.count for x in results], **look)
        right.plot(NS, [max(x.regret, 1e-8) for x in results], **look | {"label": None})
    left.set(xscale="log", yscale="log", xlabel="updates $n$", ylabel="updates $n'$ to unlearn")
    right.set(xscale="log", yscale="log", xlabel="updates $n$", ylabel="regret at the change")
    fig.legend(loc="outside upper center", ncols=4)
    return fig


def styled_table(three: bool = False) -> pd.DataFrame:
    """Return the table of counts, and regrets at the largest n; three actions stop at 100."""
    ns = (10, 100) if three else (10, 100, 1000)
    frame = pd.DataFrame(table(ns, three=three)).T
    regrets = frame.pop("regret")
    products = regrets * frame[f"n = {ns[-1]}"]
    whole = frame.astype(int)
    for name, column in (("count × regret", products), (f"regret at {ns[-1]}", regrets)):
        shown = column.map(lambda x: f"{x:.1e}" if x > 0 else "< 1e-300")
        whole.insert(len(ns), name, shown)
    return whole


def sampled_table(n: int = 100, n_runs: int = 100, most: int = 1000) -> pd.DataFrame:
    """Return medians of the counts of seeded runs with eight samples per step, with intervals.

    The regret is the median before the swap.
    """
    rows = {
        "PG-SM, critic": SampledRemedy("pg-sm"),
        "CE": SampledRemedy("ce"),
        "DI": SampledRemedy("di"),
        "NPG": SampledRemedy("npg"),
        "PG-SM, critic, exploration": SampledRemedy("pg-sm", exploration=0.05),
        "CE, exploration": SampledRemedy("ce", exploration=0.05),
        "DI, exploration": SampledRemedy("di", exploration=0.05),
        "NPG, exploration": SampledRemedy("npg", exploration=0.05),
        "group advantages": SampledRemedy("group"),
        "group, exploration": SampledRemedy("group", exploration=0.05),
        "group, entropy 0.1": SampledRemedy("group", entropy=0.1),
        "group, normalised": SampledRemedy("group", normalised=True),
        "group, normalised, exploration": SampledRemedy("group", normalised=True, exploration=0.05),
        "group, normalised, entropy 0.1": SampledRemedy("group", normalised=True, entropy=0.1),
    }
    cells = {}
    for label, remedy in rows.items():
        medians = {c: median_of(remedy, c, n, n_runs=n_runs, most=most) for c in CHANGES}
        cells[label] = {c: f"over {most}" if m.value > most else str(m) for c, m in medians.items()}
        cells[label] |= {f"regret at {n}": f"{medians['swap'].regret:.1e}"}
    return pd.DataFrame(cells).T
