"""Figures and explorer of the chapter on rates."""

from __future__ import annotations

import numpy as np

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, INK, PALETTE, BookFigure, figure, line, styled
from pu_lib.theory.rates import (
    bandit_gaps,
    exponent,
    limit_error_bound,
    log_times,
    odds,
    overtaking_steps,
)
from pu_lib.updates import PAPER, EscortPolicyGradient, as_update, look_of, make_update

__all__ = [
    "EXPLORERS",
    "alt_limit",
    "draw_exponents",
    "draw_limit",
    "draw_limits",
    "draw_overtaking",
]


@styled
def draw_exponents(n_steps: int = 2500) -> BookFigure:
    """Draw the gap of every update on a bandit, with the measured exponents.

    Parameters
    ----------
    n_steps : int
        How far to go.
    """
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
        np.arange(1, 61), two, color=look_of("pg-es").colour, linestyle=":", label="PG-ES ($p=2$)"
    )
    ax.set(xscale="log", yscale="log", xlabel="$t$", ylabel=r"$v_\star-v_t$", ylim=(1e-8, 2))
    ax.legend(loc="lower left", bbox_to_anchor=(0.0, 0.0))
    return fig


@styled
def draw_limits(n_steps: int = 3000) -> BookFigure:
    """Draw (1 - pi) t for several numbers of actions, with the limits.

    Parameters
    ----------
    n_steps : int
        How far to go.
    """
    fig, ax = figure(height=3.2)
    t = np.arange(1, n_steps + 1)
    styles = ("-", "--", "-.", (0, (1.2, 1.2)))
    for k, n in enumerate((2, 3, 5, 10)):
        product = t / (1.0 + odds(n, n_steps)[1:])
        ax.plot(t, product, color=PALETTE[k], linestyle=styles[k], label=f"$|A|={n}$")
        ax.plot([n_steps * 1.1], [(n - 1) / n], marker="<", color=PALETTE[k])
    ax.set(xscale="log", xlabel="$t$", ylabel=r"$(1-\pi_t)\,t$", ylim=(0, 2.4))
    ax.legend(ncols=4, loc="upper right")
    return fig


@styled
def draw_overtaking(n_steps: int = 20) -> BookFigure:
    """Draw the gap times the sum of step sizes, with and without the current one.

    Parameters
    ----------
    n_steps : int
        How far to go, at most 25.
    """
    rates, masses = overtaking_steps(n_steps)
    total = np.cumsum(rates)
    t = np.arange(n_steps)
    fig, ax = figure(height=2.9)
    ax.plot(
        t, masses * total, color=look_of("mce").colour, marker="o", label=r"sum to $t$, as printed"
    )
    ax.plot(
        t,
        masses * np.append(0.0, total[:-1]),
        color=look_of("pg-sm").colour,
        marker="s",
        linestyle="--",
        label="sum before $t$",
    )
    ax.plot(t, (t + 1) / 2, color=GREY, linestyle=":", label="$(t+1)/2$")
    ax.set(xlabel="$t$", ylabel="gap $\\times$ sum", xticks=range(0, n_steps, 4))
    ax.legend()
    return fig


# The explorer

N_STEPS = 2000


@styled
def draw_limit(n: int, eta: float) -> BookFigure:
    """Draw (1 - pi) eta t with the explicit interval around its limit.

    Parameters
    ----------
    n : int
        The number of actions.
    eta : float
        The step size.
    """
    t = np.arange(1, N_STEPS + 1)
    kappa = odds(n, N_STEPS, eta)
    error = limit_error_bound(kappa, n, eta)[1:]
    centre = kappa[0] + n / (n - 1) * eta * t
    low = eta * t / (1.0 + centre + error)
    high = eta * t / (1.0 + np.maximum(centre - error, 0.0))
    fig, ax = figure(width=6.0, height=3.1)
    ax.fill_between(t, low, high, color=GREY, alpha=0.2, linewidth=0, label="proved")
    ax.plot(
        t, eta * t / (1.0 + kappa[1:]), color=look_of("mce").colour, label=r"$(1-\pi_t)\,\eta t$"
    )
    ax.axhline((n - 1) / n, color=INK, linestyle="--", linewidth=1, label=r"$(|A|-1)/|A|$")
    ax.set(xscale="log", xlabel="$t$", ylim=(0, 2))
    ax.legend(loc="upper right")
    return fig


def alt_limit(n: int, eta: float) -> str:
    """Say what a frame of the explorer shows.

    Parameters
    ----------
    n : int
        Number of actions, at least 2.
    eta : float
        The weight of every step.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    product = eta * N_STEPS / (1.0 + odds(n, N_STEPS, eta)[-1])
    return (
        f"{n} actions, step size {eta:g}: after {N_STEPS} updates the suboptimal probability times "
        f"the spent weight is {product:.4f}; its limit is {(n - 1) / n:.4f}."
    )


EXPLORERS = {
    "limit": Explorer(
        draw=draw_limit,
        alt=alt_limit,
        grid={
            "n": Slider("$|A|$", [2, 3, 5, 10]),
            "eta": Slider(r"$\eta$", [0.1, 0.5, 1.0, 2.0], fmt="{:g}", start=2),
        },
    )
}
