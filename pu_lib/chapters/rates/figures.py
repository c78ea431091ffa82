"""Figures of the chapter on rates."""

from __future__ import annotations

import numpy as np

from pu_lib.chapters.rates.quantities import (
    bandit_gaps,
    exponent,
    log_times,
    mass_limit,
    odds,
    overtaking_steps,
)
from pu_lib.drawing.style import ABOVE, GREY, INK, BookFigure, figure, line, styled
from pu_lib.updates import PAPER, EscortPolicyGradient, as_update, make_update, style_of


@styled
def draw_exponents(n_steps: int = 2500) -> BookFigure:
    """Draw the gap of every update on a bandit and label the measured exponents."""
    arms, times = (1.0, 0.6, 0.2), log_times(n_steps)
    fig, ax = figure(height=3.7)
    for name in PAPER:
        escort = isinstance(as_update(name), EscortPolicyGradient)
        update = make_update(name, p=4.0) if escort else as_update(name)
        gap = bandit_gaps(update, arms, n_steps)[times]
        drawn = {**line(name)}
        if np.isfinite(value := exponent(times, gap).value):
            drawn["label"] += f": {value:.3f}"
        if escort:
            drawn["label"] += " ($p=4$)"
        seen = gap > 1e-14
        ax.plot(times[seen], gap[seen], marker="D" if seen.sum() < 3 else None, **drawn)
    two = bandit_gaps("pg-es", arms, 60)[1:]
    ax.plot(
        np.arange(1, 61), two, color=style_of("pg-es").colour, linestyle=":", label="PG-ES ($p=2$)"
    )
    ax.set(xscale="log", yscale="log", xlabel="$t$", ylabel=r"$v_\star-v_t$", ylim=(1e-8, 2))
    ax.legend(ncols=3, **ABOVE)
    return fig


@styled
def draw_limits(n_steps: int = 3000) -> BookFigure:
    """Draw (1 - pi) t for several numbers of actions and mark the limits."""
    fig, ax = figure(height=3.2)
    t = np.arange(1, n_steps + 1)
    styles, colour = ("-", "--", "-.", (0, (1.2, 1.2))), style_of("mce").colour
    for k, n in enumerate((2, 3, 5, 10)):
        product = t / (1.0 + odds(n, n_steps)[1:])
        ax.plot(t, product, color=colour, linestyle=styles[k], label=f"$|A|={n}$")
        ax.plot([n_steps * 1.1], [mass_limit(n)], marker="<", color=colour)
    ax.set(xscale="log", xlabel="$t$", ylabel=r"$(1-\pi_t)\,t$", ylim=(0, 2.4))
    ax.legend(ncols=4, loc="upper right")
    return fig


@styled
def draw_overtaking(n_steps: int = 20) -> BookFigure:
    """Draw the gap times the sum of step sizes with and without the current step size.

    `n_steps` is at most 25.
    """
    rates, masses = overtaking_steps(n_steps)
    total = np.cumsum(rates)
    t = np.arange(n_steps)
    fig, ax = figure(height=2.9)
    ax.plot(
        t, masses * total, color=style_of("mce").colour, marker="o", label=r"sum to $t$, as printed"
    )
    ax.plot(
        t,
        masses * np.append(0.0, total[:-1]),
        color=INK,
        marker="s",
        linestyle="--",
        label="sum before $t$",
    )
    ax.plot(t, (t + 1) / 2, color=GREY, linestyle=":", label="$(t+1)/2$")
    ax.set(xlabel="$t$", ylabel="gap $\\times$ sum", xticks=range(0, n_steps, 4))
    ax.legend()
    return fig
