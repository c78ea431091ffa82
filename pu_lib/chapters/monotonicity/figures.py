"""Figures of the chapter on monotonicity."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pu_lib.chapters.monotonicity.quantities import (
    decrease_frequency,
    search_drop,
    value_change,
    worst_drop_any,
    worst_drop_three,
)
from pu_lib.chapters.updates.figures import place, simplex_axes, starts
from pu_lib.drawing.style import GREY, INK, figure, styled
from pu_lib.updates import UPDATES, label_of, softmax, style_of

Floats = NDArray[np.float64]
SHADES = (INK, GREY, "#8b929b")


@styled
def draw_mass_moved() -> Figure:
    """Draw the change in each probability under CE and MCE in the example of the paper."""
    fig, axes = figure(1, 2, height=3.0, sharey=True)
    theta, q = np.array([10.0, 0.0, 0.0]), np.array([0.99, 1.0, 0.0])
    for ax, name in zip(axes, ("ce", "mce"), strict=True):
        moved = 1e4 * (softmax(UPDATES[name].step(theta, q, 1.0)) - softmax(theta))
        bars = ax.bar([0, 1, 2], moved, color=style_of(name).colour, width=0.55)
        ax.bar_label(bars, fmt="%+.4f", padding=2)
        ax.axhline(0, color=INK, lw=0.8)
        ax.set_xticks([0, 1, 2], [f"$a_{a + 1}$\n$q={value:g}$" for a, value in enumerate(q)])
        ax.set_xlabel(label_of(name))
        ax.margins(y=0.16)
        ax.grid(axis="x", visible=False)
    axes[0].set_ylabel(r"$10^4\,(\pi'-\pi)$")
    return fig


@styled
def draw_decrease_region(
    weights: Sequence[float] = (0.1, 0.5, 1.5), q: Sequence[float] = (0.9, 1.0, 0.0)
) -> Figure:
    """Shade the policies at which one CE step decreases the value, with one panel per weight."""
    fig, axes = figure(1, len(weights), height=2.9)
    pi = starts(120)
    for ax, weight in zip(axes, weights, strict=True):
        drop = -value_change("ce", np.log(pi), np.asarray(q), weight)
        top = max(float(drop.max()), 1e-6)
        shades = ax.tricontourf(*place(pi), drop, levels=np.linspace(0, top, 9), cmap="YlOrBr")
        simplex_axes(ax, list(q), size=8.5)
        ax.text(0.98, 0.80, f"$w = {weight:g}$", ha="center", size=10)
        bar = fig.colorbar(shades, ax=ax, orientation="horizontal", shrink=0.8, pad=0.02)
        bar.set_ticks([0, top])
        bar.ax.set_xticklabels(["0", f"{top:.2g}"])
    return fig


@styled
def draw_worst_decrease() -> Figure:
    """Draw bounds and search results for the largest decrease by one CE step against the weight."""
    fig, ax = figure()
    weights = np.geomspace(0.01, 100, 120)
    three, many = (
        np.array([bound(w) for w in weights]) for bound in (worst_drop_three, worst_drop_any)
    )
    ax.plot(weights, many, color=GREY, ls="--", label=r"$D_\infty(w)$: any number of actions")
    ax.plot(weights, three, color=style_of("ce").colour, label="$D_3(w)$: three actions")
    tried = [0.03, 0.1, 0.3, 1, 2, 5, 10]
    for k, marker in ((3, "o"), (6, "s")):
        drops = [search_drop("ce", k, w, rounds=250, restarts=1).value for w in tried]
        ax.plot(tried, drops, marker, color=INK, mfc="none", label=f"found by search, {k} actions")
    ax.set(xscale="log", yscale="log", xlabel=r"weight $w=\eta\,d(s)$")
    ax.set_ylabel("largest decrease of $v$ (values of range 1)")
    ax.legend()
    return fig


@styled
def draw_frequency(
    n_actions: Sequence[int] = (3, 4, 10), weights: Sequence[float] = (0.01, 1.0, 10.0)
) -> Figure:
    """Draw the share of random states whose value decreases in a CE step, one panel per weight."""
    fig, axes = figure(1, len(weights), height=2.9, sharey=True)
    scales = np.linspace(0, 10, 11)
    for ax, weight in zip(axes, weights, strict=True):
        for k, marker, shade in zip(n_actions, "osD", SHADES, strict=True):
            rates = [decrease_frequency("ce", k, weight, s, n=3000) for s in scales]
            ax.plot(scales, rates, color=shade, marker=marker, markevery=2, label=f"$|A| = {k}$")
        ax.set_xlabel(f"spread of $\\theta$   ($w = {weight:g}$)")
    axes[0].set_ylabel("share of CE steps that lower $v$")
    axes[0].legend()
    return fig
