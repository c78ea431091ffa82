"""Figures of the three domains of the paper's experiments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pu_lib.domains import random_mdp
from pu_lib.drawing.style import GREY, INK, BookFigure, figure, styled
from pu_lib.updates import style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_STATES, _SHOWN = 6, 12


@styled
def draw_domains(seed: int = 3) -> BookFigure:
    """Draw the chain, the cliff and a small Random MDP with the given seed, from top to bottom."""
    fig, axes = figure(3, 1, width=6.0, height=6.6, gridspec_kw={"height_ratios": (1, 1.3, 2.2)})
    _draw_row(axes[0], "The chain", cliff=False)
    _draw_row(axes[1], "The cliff", cliff=True)
    _draw_random(axes[2], seed)
    return fig


def _arrow(ax: Axes, start: Any, end: Any, colour: str, bend: float = 0.0) -> None:
    style = {"arrowstyle": "-|>", "color": colour, "shrinkA": 9, "shrinkB": 9}
    ax.annotate("", end, start, arrowprops={**style, "connectionstyle": f"arc3,rad={bend}"})


def _node(ax: Axes, place: Any, words: str, goal: bool = False) -> None:
    edge, width = (style_of("ce").colour, 3.0) if goal else (INK, 1.0)
    box = {"boxstyle": "circle,pad=0.25", "facecolor": "white", "edgecolor": edge, "lw": width}
    ax.text(place[0], place[1], words, ha="center", va="center", fontsize=8.5, bbox=box)


def _draw_row(ax: Axes, title: str, cliff: bool) -> None:
    """Draw states in a row; arrows to the right show a_2, arrows up a_1 and arrows down a_3."""
    for s in range(_STATES - 1):
        _arrow(ax, (s, 0.0), (s + 1, 0.0), INK)
        _arrow(ax, (s, 0.0), (s, 0.8), GREY)
        if cliff:
            _arrow(ax, (s, 0.0), (s, -0.8), GREY)
        _node(ax, (s, 0.0), f"$s_{s}$")
    _node(ax, (_STATES - 1, 0.0), "end")
    ax.text(_STATES - 1.5, 0.22, "pays 1", ha="center", fontsize=8.5)
    jump = r"$a_1$ jumps off: ends, pays $\beta\gamma^{|\mathcal{S}|-2}$"
    ax.text(0.0, 0.92, jump, ha="left", fontsize=8.5)
    ax.text(0.5, 0.12, "$a_2$", ha="center", fontsize=8.5)
    if cliff:
        ax.text(0.0, -1.12, "$a_3$ falls off: ends, pays 0", ha="left", fontsize=8.5)
    ax.set(xlim=(-0.6, _STATES - 0.4), ylim=(-1.25 if cliff else -0.4, 1.25))
    ax.set_title(title, loc="left", fontsize=9.5)
    ax.set_axis_off()


def _draw_random(ax: Axes, seed: int) -> None:
    """Draw the transitions between the states of a Random MDP."""
    mdp = random_mdp(seed, n_states=_SHOWN)
    angles = np.pi / 2 - 2 * np.pi * np.arange(_SHOWN) / _SHOWN
    places = np.stack([1.6 * np.cos(angles), np.sin(angles)], axis=1)
    for s, after in np.argwhere(mdp.transitions.sum(axis=1) > 0.0):
        if s != after and not mdp.terminal[s]:
            _arrow(ax, places[s], places[after], GREY, bend=0.12)
    for s, place in enumerate(places):
        words = "start" if mdp.initial[s] > 0.0 else "goal" if mdp.terminal[s] else f"$s_{{{s}}}$"
        _node(ax, place, words, goal=bool(mdp.terminal[s]))
    ax.set(xlim=(-2.1, 2.1), ylim=(-1.3, 1.3))
    ax.set_title("A Random MDP of 12 states, in place of 100", loc="left", fontsize=9.5)
    ax.set_axis_off()
