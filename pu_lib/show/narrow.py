"""Figures on a narrow screen: the panels one below the other, the text as large as on a wide one.

A picture of the text's width is shrunk to half its size by a phone, and its letters with it. A
figure is therefore drawn a second time, for a screen of 390 pixels: the same axes, narrower and
stacked. The second picture travels inside the first, in a chunk of its own that programs skip, so
that a notebook's cell still has one output; `sphinx_ext` takes it out and lets the page choose.
"""

from __future__ import annotations

import pickle
import struct
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, SubplotSpec

__all__ = ["FINE", "NARROW", "narrowed", "pack", "unpack"]

NARROW = 4.5
"""The width of the second picture, in inches."""

FINE = 160
"""Its pixels an inch: two for each of the 360 that a phone's text column has."""

SHRUNK = 5.6
"""Figures up to this width, in inches, can be read on a phone as they are."""

ROOM = 0.86
"""The share of its width that a legend may take; drawn finer, text is somewhat wider."""

CHUNK = b"puNa"
"""The chunk's name; by its letters' case a private one that editing programs may copy."""

_HEAD = 8  # bytes of a PNG file before its first chunk


def narrowed(fig: Figure) -> Figure | None:
    """Return a copy of a figure for a narrow screen, its panels one below the other.

    Parameters
    ----------
    fig : Figure
        Laid out by a grid. Panels whose two axes have one scale stand in pairs: they gain nothing
        from more width.

    Returns
    -------
    Figure or None
        The copy; none of a figure that is narrow already, or holds what cannot be copied.
    """
    if fig.get_size_inches()[0] <= SHRUNK:
        return None
    try:
        copy: Figure = pickle.loads(pickle.dumps(fig))
    except (AttributeError, TypeError, pickle.PicklingError):  # a formatter without a name
        return None
    panels = {ax: spec for ax in copy.axes if (spec := ax.get_subplotspec()) is not None}
    height = copy.get_size_inches()[1]
    if any(spec.get_gridspec().ncols > 1 for spec in panels.values()):
        height = _stack(copy, panels)
    copy.set_size_inches(NARROW, height)
    for legend in copy.legends:
        _fold(legend, copy, ROOM)
    for ax in panels:
        if (own := ax.get_legend()) is not None:
            _fold(own, copy, 0.85 * ROOM)
    if len(panels) < len(copy.axes):  # colour bars find their places in a second round
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy.draw_without_rendering()
    return copy


def _stack(fig: Figure, panels: dict[Axes, SubplotSpec]) -> float:
    """Give the panels a new grid; return how high the figure becomes, in inches."""
    width, height = fig.get_size_inches()
    rows, columns = next(iter(panels.values())).get_gridspec().get_geometry()
    drawn = [ax for ax in panels if ax.axison or ax.has_data() or ax.texts]
    abreast = 2 if all(ax.get_aspect() in (1.0, "equal") for ax in drawn) else 1
    lines = -(-len(drawn) // abreast)
    grid = GridSpec(lines, abreast, figure=fig)
    for ax in drawn:
        first = next(other for other in drawn if panels[other].rowspan == panels[ax].rowspan)
        _label(ax, first)
    for ax in panels:
        ax.set_visible(ax in drawn)
        ax.set_in_layout(ax in drawn)
        ax.set_subplotspec(grid[drawn.index(ax) if ax in drawn else 0])
    shrunk = min(1.0, (NARROW / abreast) / (width / columns)) if abreast > 1 else 1.0
    return float(height / rows * lines * shrunk)


def _label(ax: Axes, first: Axes) -> None:
    """Give a panel the labels of its vertical axis that it left to the first of its row."""
    if first is not ax:
        ax.set_ylabel(ax.get_ylabel() or first.get_ylabel())
        if ax.get_shared_y_axes().joined(first, ax):
            ax.tick_params(axis="y", labelleft=True)


def _fold(legend: Any, fig: Figure, share: float) -> None:
    """Let a legend have as many columns as there is room for in a share of the figure's width."""
    canvas: Any = FigureCanvasAgg(fig)
    renderer, title = canvas.get_renderer(), legend.get_title().get_text()
    while legend._ncols > 1 and legend.get_window_extent(renderer).width > share * fig.bbox.width:
        legend.set_ncols(legend._ncols - 1)
        # matplotlib fills the columns when it makes a legend, and not again
        legend._init_legend_box(legend.legend_handles, [text.get_text() for text in legend.texts])
        legend._set_loc(legend._loc_real)
        legend.set_title(title or None)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and the whole of every chunk of a PNG file."""
    at = _HEAD
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        yield picture[at + 4 : at + 8], picture[at : at + length + 12]
        at += length + 12


def pack(wide: bytes, narrow: bytes) -> bytes:
    """Return a PNG file with another inside.

    Parameters
    ----------
    wide, narrow : bytes
        PNG files; the first is the one that programs show.

    Returns
    -------
    bytes
        A PNG file.
    """
    body = CHUNK + narrow
    chunk = struct.pack(">I", len(narrow)) + body + struct.pack(">I", zlib.crc32(body))
    end = wide.rindex(b"IEND") - 4
    return wide[:end] + chunk + wide[end:]


def unpack(picture: bytes) -> tuple[bytes, bytes | None]:
    """Return the two files that `pack` has put together.

    Parameters
    ----------
    picture : bytes
        A PNG file.

    Returns
    -------
    bytes
        The file without the one inside.
    bytes or None
        The one inside, if there is one.
    """
    inside, kept = None, [picture[:_HEAD]]
    for name, chunk in _chunks(picture):
        if name == CHUNK:
            inside = chunk[8:-4]
        else:
            kept.append(chunk)
    return b"".join(kept), inside
