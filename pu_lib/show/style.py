"""One look for every figure: size, colours, names, and how a figure is shown.

`figure` makes a figure that belongs to no window and no global list, so that a notebook shows it
exactly once, as the value of its cell, and that nothing has to be closed. The settings apply to
that figure alone; matplotlib's own defaults are left as they were found.

Each update keeps its colour, dash and marker through the whole book. The colours are those of
Okabe and Ito, darkened where a thin line would fade on white: they can be told apart with the
common colour deficiencies, and keep a contrast of at least 3 to 1 both on the white page and,
inverted by the page's style sheet, on the dark one. The dash repeats what the colour says.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from cycler import cycler
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from pu_lib.show.narrow import FINE, narrowed, pack
from pu_lib.updates import UPDATES, label_of, look_of

__all__ = [
    "ABOVE",
    "GREY",
    "INK",
    "PALETTE",
    "RC",
    "BookFigure",
    "figure",
    "line",
    "png",
    "styled",
]

INK = "#22272e"
GREY = "#6b7480"

ABOVE: Any = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0)}
"""Where a legend stands that has no room beside the curves, least of all on a narrow screen."""

PALETTE = (*(look_of(name).colour for name in UPDATES), INK, GREY)

WIDTH, HEIGHT, DPI = 7.2, 3.8, 100
"""The default size in inches, and the screen's pixels to the inch; files hold twice as many."""

RC: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": GREY,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 10.5,
    "axes.prop_cycle": cycler(color=PALETTE),
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.constrained_layout.use": True,
    "figure.dpi": DPI,
    "font.size": 10,
    "grid.color": "#e3e6ea",
    "grid.linewidth": 0.7,
    "legend.fontsize": 9.5,
    "legend.frameon": False,
    "lines.linewidth": 1.8,
    "lines.markersize": 4.5,
    "mathtext.fontset": "cm",
    "text.color": INK,
    "xtick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.color": GREY,
    "ytick.labelcolor": INK,
}

P = ParamSpec("P")
R = TypeVar("R")


class BookFigure(Figure):
    """A figure that shows itself, once, as the value of its cell: for wide and narrow screens."""

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(side * DPI) for side in self.get_size_inches())
        picture, narrow = png(self), narrowed(self)
        if narrow is not None:
            picture = pack(picture, png(narrow, dpi=FINE))
        return picture, {"width": width, "height": height}


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Give everything `draw` adds to its figure the style of the book (a decorator)."""

    @wraps(draw)
    def wrapper(*args: P.args, **kwargs: P.kwargs) -> R:
        with mpl.rc_context(RC):
            return draw(*args, **kwargs)

    return wrapper


def figure(
    nrows: int = 1,
    ncols: int = 1,
    *,
    width: float = WIDTH,
    height: float = HEIGHT,
    **subplots: Any,
) -> tuple[BookFigure, Any]:
    """Make a figure and its axes in the style of the book, as ``plt.subplots`` would.

    Parameters
    ----------
    nrows, ncols : int
        The grid of axes.
    width, height : float
        Size in inches; 7.2 inches fill the text column.
    **subplots
        Passed on to ``Figure.subplots``: ``sharex``, ``gridspec_kw``, ``subplot_kw``, ...

    Returns
    -------
    BookFigure
        Return it from the drawing function; as the value of a notebook cell it shows once.
    Axes or array of Axes
        As ``plt.subplots`` returns them.
    """
    with mpl.rc_context(RC):
        fig = BookFigure(figsize=(width, height))
        FigureCanvasAgg(fig)
        return fig, fig.subplots(nrows, ncols, **subplots)


def line(name: str) -> dict[str, Any]:
    """Return the keywords for ``ax.plot`` that mark the update `name`: colour, dash, label."""
    look = look_of(name)
    return {"color": look.colour, "linestyle": look.dash, "label": label_of(name)}


def png(fig: Figure, dpi: int = 2 * DPI) -> bytes:
    """Render a figure as a PNG file with a palette of 256 colours.

    Parameters
    ----------
    fig : Figure
        The figure; it is left as it was.
    dpi : int
        Pixels an inch.

    Returns
    -------
    bytes
        The content of the file.
    """
    canvas: Any = FigureCanvasAgg(fig)
    screen = fig.dpi
    try:
        # ``savefig`` would draw everything twice and write a file only to be read again.
        fig.dpi = dpi
        with mpl.rc_context(RC):
            canvas.draw()
    finally:
        fig.dpi = screen
    picture = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    palette = picture.quantize(256, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
    packed = io.BytesIO()
    palette.save(packed, format="png", dpi=(dpi, dpi))
    return packed.getvalue()
