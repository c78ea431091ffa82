"""Figures of the chapter on more than two actions."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pu_lib.chapters.more_than_two_actions.checks import ROWS, measured
from pu_lib.chapters.more_than_two_actions.quantities import (
    HISTORIES,
    cascade,
    count,
    mce_share,
    pair_range,
    return_bound,
    return_floor,
    steps_back,
    sums,
)
from pu_lib.chapters.stochastic_updates.quantities import (
    alternation_share,
    factor,
    train,
    updates_back,
)
from pu_lib.drawing.style import GREY, INK, figure, line, styled
from pu_lib.updates import as_update

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


@styled
def draw_laws() -> Figure:
    """Draw n' against n with the laws: two of three actions in turn, and five with a wide range.

    The wide range comes from `cascade` for CE and from `pair_range` for SCE.
    """
    fig, (left, right) = figure(1, 2, height=4.2)
    n, history = np.array(NS), HISTORIES["two in turn, of three"]
    for name, marker in (("mce", "o"), ("sce", "s"), ("ce", "v")):
        look = line(name) | {"linestyle": "none", "marker": marker}
        left.plot(n, [count(name, history, k) for k in NS], **look)
    for size, shade, marker in ((8, INK, "D"), (64, GREY, "^")):
        maxrl = factor("MaxRL", size)
        ends = [train([0.0] * 3, [t % 2 for t in range(k)], maxrl) for k in NS]
        counts = [updates_back(theta, 2, maxrl) for theta in ends]
        left.plot(n, counts, marker, color=shade, label=f"MaxRL, $G={size}$")
        left.plot(n, alternation_share(1.0, size) * n, "--", color=shade, linewidth=1)
    left.plot(n, mce_share(1.0, 3) * n, "--", color=line("mce")["color"], linewidth=1)
    left.set(xscale="log", yscale="log", xlabel="updates $n$, two of three actions in turn")
    left.set(ylabel="updates $n'$ until the third is back", ylim=(0.7, None))
    n = 4 * np.array(NS)
    pairs = pair_range(5, int(n[-1]))[n]
    for name, thetas in (("sce", pairs), ("ce", [cascade(5, k) for k in NS])):
        look, spread = line(name), np.ptp(thetas, axis=1)
        back = [steps_back(as_update(name), theta, 1.0) for theta in thetas]
        right.plot(n, back, color=look["color"], linestyle="none", marker="sv"[name == "ce"])
        for bound in (return_floor, return_bound):
            limit = [bound(5, 1.0, each) for each in spread]
            right.plot(n, limit, "--", color=look["color"], linewidth=1)
    right.set(xscale="log", xlabel="updates $n$ that drive five actions apart")
    right.set_ylim(bottom=0)
    fig.legend(loc="outside upper center", ncols=5)
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
