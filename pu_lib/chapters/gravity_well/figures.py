"""Figures of the chapter on the gravity well."""

from __future__ import annotations

import numpy as np
from matplotlib.colors import ListedColormap
from numpy.typing import NDArray

from pu_lib.chapters.gravity_well.escape import escape_steps, greedy_path, well_policy
from pu_lib.chapters.gravity_well.quantities import condition_map
from pu_lib.drawing.style import ABOVE, GREY, INK, BookFigure, figure, line, styled
from pu_lib.updates import UPDATES, label_of, softmax, style_of

COLOURS = ("#f4f5f7", "#e0a33e", "#9c2f2f")
HEIGHT = np.sqrt(3) / 2
WIDTH = 130  # of the image, in pixels
PUBLISHED = np.array([1.0, 3.0, 5.0])
PUBLISHED_Q = np.array([1.0, 0.9, 0.1])


def _raster() -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the barycentric coordinates of an image of the simplex, and a mask of its interior.

    The left corner is the greedy action and the right corner the second best action, as in the live
    figures.
    """
    x, y = np.meshgrid(np.linspace(0, 1, WIDTH), np.linspace(0, 1, int(WIDTH * HEIGHT)))
    top, right = y, x - y / 2
    points = np.stack([1 - top - right, right, top], axis=-1)
    return points, np.asarray(points.min(axis=-1) > 1e-6)


@styled
def draw_maps(middle: float = 0.9, step_size: float = 0.1) -> BookFigure:
    """Draw the policies at which the condition fails or the best action loses, for each update."""
    points, inside = _raster()
    rows = -(-len(UPDATES) // 3)
    fig, axes = figure(rows, 3, height=2.5 * rows)
    for ax in axes.flat[len(UPDATES) :]:
        ax.axis("off")
    for ax, (name, update) in zip(axes.flat, UPDATES.items(), strict=False):
        picture = np.full(inside.shape, np.nan)
        picture[inside] = condition_map(update, points[inside], (1.0, middle, 0.0), step_size)
        ax.imshow(
            picture,
            origin="lower",
            extent=(0, 1, 0, HEIGHT),
            cmap=ListedColormap(COLOURS),
            vmin=0,
            vmax=2,
            interpolation="nearest",
        )
        ax.plot([0, 1, 0.5, 0], [0, 0, HEIGHT, 0], color=GREY, linewidth=1)
        ax.text(0.5, -0.2, label_of(name), ha="center", va="top", color=INK)
        ax.text(0.0, -0.03, "$1$", ha="center", va="top", fontsize=8)
        ax.text(1.0, -0.03, f"${middle:g}$", ha="center", va="top", fontsize=8)
        ax.text(0.5, HEIGHT + 0.03, "$0$", ha="center", va="bottom", fontsize=8)
        ax.set(xlim=(-0.08, 1.08), ylim=(-0.38, HEIGHT + 0.16), aspect="equal")
        ax.axis("off")
    return fig


@styled
def draw_escape(weight: float = 1.0, middle: float = 0.9) -> BookFigure:
    """Draw the number of steps to leave a well against the depth of the well."""
    depths = np.geomspace(0.2, 2e-3, 7)
    starts = np.array([well_policy(float(depth)) for depth in depths])
    q = np.broadcast_to(np.array([1.0, middle, 0.0]), starts.shape)
    fig, ax = figure(height=3.4)
    for name in UPDATES:
        steps = escape_steps(name, starts, q, weight)
        ax.loglog(1 / depths, steps, marker=style_of(name).marker, **line(name))
    ax.loglog(1 / depths, 20 / depths, color=GREY, linewidth=1, linestyle=":")
    ax.text(200, 6e3, r"$20/\varepsilon$", ha="right", color=GREY)
    ax.set(xlabel=r"depth of the well, $1/\varepsilon$", ylabel=r"steps until $\pi(a_q) \geq 1/2$")
    ax.legend(ncols=2)
    return fig


@styled
def draw_published(weight: float = 0.4, n_steps: int = 12_000) -> BookFigure:
    r"""Draw :math:`\pi(a_q)` for each step from the policy with :math:`\theta_0 = (1, 3, 5)`."""
    fig, ax = figure(height=3.2)
    for name in UPDATES:
        path = greedy_path(name, softmax(PUBLISHED), PUBLISHED_Q, weight, n_steps)
        ax.loglog(np.arange(1, len(path) + 1), path, **line(name))
    ax.set(xlabel="step (counted from 1)", ylabel=r"$\pi(a_q)$", ylim=(2e-3, 1.5))
    ax.legend(ncols=6, **ABOVE)
    return fig
