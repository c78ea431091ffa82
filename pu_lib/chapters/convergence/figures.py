"""Figures of the chapter on convergence and optimality."""

from __future__ import annotations

import numpy as np

from pu_lib.chapters.convergence.quantities import (
    ADVERSARIES,
    adversarial_run,
    instances,
    key_lemma_bound,
    necessity_floor,
    one_way_mdp,
    optimality_bounds,
    structure,
)
from pu_lib.drawing.style import ABOVE, GREY, INK, BookFigure, figure, styled
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, style_of

SHOWN = ("chain", "duplicated chain", "random")


@styled
def draw_settled(n_steps: int = 600) -> BookFigure:
    """Draw the gap, and its proved bound after the settling time."""
    fig, axes = figure(3, 1, height=6.6, sharex=True)
    for ax, name in zip(axes, SHOWN, strict=True):
        mdp = instances()[name]
        facts = structure(mdp)
        trajectory = run(
            mdp, UPDATES["mce"], n_steps, step_size=lambda t: (t + 1.0) ** -0.5, weighting="uniform"
        )
        start, _, _, ahead = optimality_bounds(mdp, trajectory, facts)
        gap = (facts.v - trajectory.v).max(axis=1)
        t = np.arange(n_steps + 1) + 1
        ax.plot(t, gap, color=style_of("mce").colour, label="gap")
        ax.plot(t[start:], ahead, color=INK, linestyle="--", linewidth=1.2, label="proved")
        ax.axvline(t[start], color=GREY, linestyle=":", linewidth=1)
        ax.set(xscale="log", yscale="log", ylabel=r"$\max_s\,v_\star(s)-v_t(s)$")
        ax.text(0.98, 0.88, name, transform=ax.transAxes, ha="right", color=GREY)
    axes[-1].set_xlabel("$t+1$")
    axes[0].legend(loc="lower left")
    return fig


@styled
def draw_ties(n_steps: int = 1000) -> BookFigure:
    """Draw t times the suboptimal mass for each tie-breaking rule in `ADVERSARIES`."""
    fig, ax = figure(height=3.3)
    t = np.arange(n_steps + 1)
    styles = ("-", "--", (0, (1.2, 1.2)), "-.", (0, (1.2, 4)))
    for k, name in enumerate(ADVERSARIES):
        mass = adversarial_run([1.0, 1.0, 0.0], name, np.ones(n_steps))[:, 2]
        width = 3.2 if name == "first" else 1.6
        ax.plot(
            t[1:],
            np.maximum((mass * t)[1:], 1e-12),
            color=style_of("mce").colour,
            linestyle=styles[k],
            linewidth=width,
            label=name,
        )
    bound = key_lemma_bound(1 / 3, 1.0, 3, t)
    ax.plot(t[1:], (bound * t)[1:], color=INK, linewidth=1.2, label="bound")
    ax.set(xscale="log", yscale="log", xlabel="$t$", ylabel=r"$t\,\pi_t(a_3)$", ylim=(1e-6, 4))
    ax.legend(ncols=6, **ABOVE)
    return fig


@styled
def draw_one_way(n_steps: int = 300) -> BookFigure:
    """Draw the gaps of v and q if only the weights of the first state have a finite sum."""
    mdp = one_way_mdp()
    facts = structure(mdp)
    trajectory = run(mdp, UPDATES["mce"], n_steps, weighting=lambda t, _: np.array([0.5**t, 1.0]))
    t = np.arange(n_steps + 1) + 1
    fig, ax = figure(height=2.9)
    ax.plot(
        t,
        (facts.v - trajectory.v)[:, 0],
        color=style_of("mce").colour,
        label=r"$v_\star-v_t$ at $s_0$",
    )
    q_gap = (facts.q - trajectory.q).max(axis=(1, 2))
    ax.plot(t, q_gap, color=INK, linestyle="--", label=r"$\max_{s,a}\,q_\star-q_t$")
    ax.axhline(float(necessity_floor(0.5, 2, 2.0)), color=GREY, linestyle=":", label="floor")
    ax.set(xscale="log", yscale="log", xlabel="$t+1$", ylabel="gap")
    ax.legend(loc="lower left")
    return fig
