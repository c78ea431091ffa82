"""The picture of the chapter: how certain training made the policy, and what the way back costs."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pandas as pd

from pu_lib.chapters.reward_hack.quantities import lost_by, protocol, runs_of, summary
from pu_lib.drawing.style import GREY, INK, BookFigure, figure, styled
from pu_lib.experiments.bootstrap import interval, resampled_quantile

SIZE = 8
"""The group size of the picture."""
RESTART = "GRPO, restart"
CEILING = 6e6
"""The largest number of samples that is drawn."""

LOOKS: dict[str, tuple[str, str]] = {
    "RLOO": ("#0b6fa4", "o"),
    "GRPO": ("#b4441c", "o"),
    "GRPO, groups redrawn": ("#b4441c", "s"),
    "MaxRL": ("#00735c", "o"),
    "best of the group": ("#7a3e9d", "o"),
    "GRPO, k3 0.04": ("#b4441c", "^"),
    "Dr. GRPO, entropy 0.1": (GREY, "^"),
    "GRPO, Adam reset": (GREY, "v"),
    "best of the group, 1 of 8 from the reference": ("#7a3e9d", "D"),
}
"""The colour and the marker of each method."""


def _short(method: str) -> str:
    """Return the name of a method without the words before "1 of 8"."""
    return method[method.find("1 of 8") :] if "1 of 8" in method else method


def price_of_return() -> pd.DataFrame:
    """Return the points of the picture: a row for each method and number of updates, after a swap.

    `correct` is the median probability of the correct answer at the change; `samples`, `low` and
    `high` are the median of the samples until half and its interval.
    """
    points = []
    for method, n in product([*LOOKS, RESTART], protocol()["starts"]["updates"]):
        cell = "swap", method, SIZE, "updates", n
        samples = SIZE * runs_of(*cell).groups.to_numpy(float)
        ends = interval(resampled_quantile(samples[:, None], 0.5)[:, 0])
        points.append((method, n, summary(*cell).correct, summary(*cell).samples, *ends))
    return pd.DataFrame(points, columns=["method", "n", "correct", "samples", "low", "high"])


def lost_in_the_well() -> dict[str, float]:
    """Return the share of runs lost by method, in partial from the least certainty.

    NaN for a method that is never so certain.
    """
    plan = protocol()
    cell = SIZE, "certainty", min(plan["starts"]["certainty"]), plan["predictions"]["lost_at"]
    return {method: lost_by("partial", method, *cell) for method in [*LOOKS, RESTART]}


@styled
def draw_price_of_return() -> BookFigure:
    """Draw the samples until half against the probability of the correct answer at the change.

    The lower panel has the shares of runs that are lost if the hack still pays a half.
    """
    points, lost = price_of_return(), lost_in_the_well()
    fig, (ax, below) = figure(2, 1, height=8.2, gridspec_kw={"height_ratios": [5, 3]})
    x = np.array([1e-7, 0.1])
    ax.plot(x, math.log(2) / x, color=INK, linewidth=1)
    ax.fill_between(x, 1, math.log(2) / x, color=GREY, alpha=0.15, linewidth=0)
    ax.text(6e-7, 3e3, "not seen yet", color=INK)
    for method, (colour, marker) in LOOKS.items():
        of = points[points.method == method]
        ends = [of.samples - of.low, np.minimum(of.high, CEILING) - of.samples]
        look = {"color": colour, "linewidth": 1.2}
        ax.plot(of.correct, of.samples, marker=marker, label=_short(method), **look)
        ax.errorbar(of.correct, of.samples, yerr=ends, fmt="none", capsize=2, **look)
    restart = points[points.method == RESTART].samples.median()
    ax.axhline(restart, color=INK, linestyle="--", linewidth=1)
    ax.text(4e-7, 1.15 * restart, RESTART, color=INK)
    ax.set(xscale="log", yscale="log", xlim=(3e-7, 2e-2), ylim=(80, CEILING))
    ax.set(xlabel="probability of the correct answer", ylabel="samples until half")
    for place, method in enumerate(lost):
        share = 100 * lost[method]
        below.barh(place, share, color=LOOKS.get(method, (INK, ""))[0])
        label = "never so certain" if math.isnan(share) else f"{share:.0f} %"
        inside = share > 50
        below.text(
            share - 1 if inside else np.nan_to_num(share) + 1, place, label, va="center",
            ha="right" if inside else "left", color="white" if inside else INK,
        )  # fmt: skip
    below.set(yticks=range(len(lost)), yticklabels=map(_short, lost), xlim=(0, 100))
    below.set(xlabel="runs lost, in %")
    below.grid(visible=False, axis="y")
    below.invert_yaxis()
    fig.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return fig
