"""Figures of the chapter on more than two actions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pu_lib.chapters.more_than_two_actions.checks import ROWS, measured
from pu_lib.chapters.more_than_two_actions.quantities import (
    HISTORIES,
    count,
    mce_share,
    pair_range,
    sums,
)
from pu_lib.drawing.style import GREY, INK, figure, line, styled

NS = (1, 3, 10, 30, 100, 300, 1000)


@styled
def draw_counts() -> Figure:
    """Draw the counts n' after n steps in which two of three actions took turns."""
    fig, ax = figure(height=3.8)
    history = HISTORIES["two in turn, of three"]
    for name in ("npg", "pg-sm", "mce", "sce", "ce", "di"):
        ax.plot(NS, [count(name, history, n) for n in NS], **line(name))
    ax.plot(NS, mce_share(1.0, 3) * np.array(NS), ":", color=INK, label="limit for MCE")
    ax.set(xscale="log", yscale="log", xlabel="updates $n$ with two best actions in turn")
    ax.set_ylabel("updates $n'$ until the third is back")
    fig.legend(loc="outside upper center", ncols=4)
    return fig


@styled
def draw_sums(n_actions: int = 5, n: int = 3000) -> Figure:
    """Draw the sums of the largest parameters over time, if neighbouring pairs take turns."""
    fig, (left, right) = figure(1, 2, height=3.4)
    path = pair_range(n_actions, n)
    times = np.unique(np.geomspace(1, n, 200).astype(int))
    looks = [(INK, "-"), (GREY, "-"), (GREY, "--"), (INK, "--")]
    for m, (shade, dash) in enumerate(looks):
        left.plot(
            times,
            sums(path)[times, m],
            color=shade,
            linestyle=dash,
            label=f"$S_{m + 1}$",
        )
        largest = np.concatenate([[0.0], sums(path[10**m])])
        right.plot(largest, color=shade, linestyle=dash, label=f"$n={10**m}$")
    left.set(xscale="log", xlabel="updates $n$", ylabel="sum of the $m$ largest parameters")
    left.legend()
    right.set(xlabel="$m$", xticks=range(n_actions + 1))
    right.set_ylim(top=19)
    right.legend(loc="upper center", ncols=2)
    return fig


def variants() -> pd.DataFrame:
    """Return the table of SCE, its variants, CE and MCE."""
    columns = [
        "two of three in turn",
        "three of four in turn",
        "corner of 1/100",
        "corner of 1/1000",
        "adversary",
    ]
    return pd.DataFrame({label: measured(update) for label, update in ROWS.items()}, columns).T
