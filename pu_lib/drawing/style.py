"""The style of all figures: their sizes, colours and labels, and their display in notebooks.

`figure` creates a figure that belongs to no window and no global list. A notebook displays the
figure once, as the value of its cell, and no figure has to be closed. The settings apply only to
that figure; matplotlib's defaults are not changed.

Each update has one colour, dash and marker in the whole book. The colours are those of Okabe and
Ito, some darkened, because thin light lines fade on white. They are distinct for readers with the
common colour deficiencies and have a contrast of at least 3 to 1, both on white and, after the
style sheet inverts them, on the dark page. The dash carries the same information as the colour.
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

from pu_lib.drawing.narrow import FINE, narrowed, pack
from pu_lib.updates import UPDATES, label_of, style_of

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
"""The keywords of a legend above the axes, used if there is no space beside the curves."""

PALETTE = (*(style_of(name).colour for name in UPDATES), INK, GREY)

WIDTH, HEIGHT, DPI = 7.2, 3.8, 100
"""The default size in inches, and the pixels per inch on screen; files have twice as many."""

RC: Any = {
    # A user's own settings, such as text.usetex, are those of other figures.
    **{name: x for name, x in mpl.rcParamsDefault.items() if not name.startswith("backend")},
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
    """A figure that a notebook displays as a cell's value, for wide and for narrow screens."""

    def savefig(self, *args: Any, **kwargs: Any) -> None:
        """Save the figure in the style of the book; parameters are those of `Figure.savefig`."""
        with mpl.rc_context(RC):
            super().savefig(*args, **kwargs)

    def _repr_png_(self) -> tuple[bytes, dict[str, int]]:
        width, height = (round(side * DPI) for side in self.get_size_inches())
        with mpl.rc_context(RC):
            picture, narrow = png(self), narrowed(self)
        if narrow is not None:
            picture = pack(picture, png(narrow, dpi=FINE))
        return picture, {"width": width, "height": height}


def styled(draw: Callable[P, R]) -> Callable[P, R]:
    """Decorate `draw` so that everything it adds to its figure has the style of the book."""

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
    """Return a figure and its axes, like ``plt.subplots``, in the style of the book.

    `width` and `height` are in inches; 7.2 inches fill the text column. Other keywords, such as
    ``sharex`` or ``gridspec_kw``, are those of ``Figure.subplots``.
    """
    with mpl.rc_context(RC):
        fig = BookFigure(figsize=(width, height))
        FigureCanvasAgg(fig)
        return fig, fig.subplots(nrows, ncols, **subplots)


def line(name: str) -> dict[str, Any]:
    """Return the keywords of ``ax.plot`` that set the colour, dash and label of an update."""
    style = style_of(name)
    return {"color": style.colour, "linestyle": style.dash, "label": label_of(name)}


def png(fig: Figure, dpi: int = 2 * DPI) -> bytes:
    """Return a figure as a PNG file with a palette of 256 colours, which keeps the file small."""
    canvas: Any = FigureCanvasAgg(fig)
    screen = fig.dpi
    try:
        # ``savefig`` would draw everything twice, and encode a file that would be decoded below.
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
