"""A second version of each figure for narrow screens, with its panels stacked.

A phone shrinks a picture that is as wide as the text, and the letters in it, to half their size.
Each figure is therefore drawn a second time for a screen of 390 pixels, with narrower axes that are
stacked. The second PNG is stored inside the first, in a private chunk that programs ignore, so a
notebook cell still has one output. `sphinx_ext` extracts the second PNG, and the page selects one
of the two by the width of the screen.
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

NARROW = 4.5
"""The width of the second picture, in inches."""

FINE = 160
"""The resolution of the second picture, in pixels per inch: two pixels for each of the 360 CSS
pixels of a phone's text column."""

SHRUNK = 5.6
"""Figures up to this width, in inches, are legible on a phone and have no second version."""

ROOM = 0.86
"""The share of the figure's width that a legend may take; the rest is a margin, because text is
slightly wider at higher resolution."""

CHUNK = b"puNa"
"""The name of the PNG chunk; the case of its letters means not essential, private, safe to copy."""

_HEAD = 8  # the length of the signature of a PNG file, in bytes


def narrowed(fig: Figure) -> Figure | None:
    """Return a copy of a figure for a narrow screen, with its panels stacked.

    The panels must be laid out by a grid. Panels with equal scales on both axes are stacked in
    pairs, since more width would not make them more legible. The result is None if the figure is
    already narrow or cannot be copied.
    """
    if fig.get_size_inches()[0] <= SHRUNK:
        return None
    try:
        copy: Figure = pickle.loads(pickle.dumps(fig))
    except (AttributeError, TypeError, pickle.PicklingError):  # for instance a lambda as formatter
        return None
    panels = {ax: spec for ax in copy.axes if (spec := ax.get_subplotspec()) is not None}
    height = copy.get_size_inches()[1]
    if any(spec.get_gridspec().ncols > 1 for spec in panels.values()):
        height = _stack(copy, panels)
    copy.set_size_inches(NARROW, height)
    for legend in copy.legends:
        _fold(legend, copy, ROOM)
    for ax in panels:
        if (axes_legend := ax.get_legend()) is not None:
            _fold(axes_legend, copy, 0.85 * ROOM)
    if len(panels) < len(copy.axes):  # colour bars need a second pass of the layout
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            copy.draw_without_rendering()
    return copy


def _stack(fig: Figure, panels: dict[Axes, SubplotSpec]) -> float:
    """Move the panels to a new grid and return the new height of the figure, in inches."""
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
    """Add to a panel the vertical axis labels that only the first panel of its row had."""
    if first is not ax:
        ax.set_ylabel(ax.get_ylabel() or first.get_ylabel())
        if ax.get_shared_y_axes().joined(first, ax):
            ax.tick_params(axis="y", labelleft=True)


def _fold(legend: Any, fig: Figure, share: float) -> None:
    """Reduce the columns of a legend until it fits in a share of the figure's width."""
    canvas: Any = FigureCanvasAgg(fig)
    renderer, title = canvas.get_renderer(), legend.get_title().get_text()
    while legend._ncols > 1 and legend.get_window_extent(renderer).width > share * fig.bbox.width:
        legend.set_ncols(legend._ncols - 1)
        # matplotlib fills columns only when it creates a legend, so the box is created again
        legend._init_legend_box(legend.legend_handles, [text.get_text() for text in legend.texts])
        legend._set_loc(legend._loc_real)
        legend.set_title(title or None)


def _chunks(picture: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the name and bytes, including length and checksum, of every chunk of a PNG file."""
    at = _HEAD
    while at < len(picture):
        (length,) = struct.unpack(">I", picture[at : at + 4])
        yield picture[at + 4 : at + 8], picture[at : at + length + 12]
        at += length + 12


def pack(wide: bytes, narrow: bytes) -> bytes:
    """Return the PNG file `wide` with the PNG file `narrow` in a private chunk."""
    body = CHUNK + narrow
    chunk = struct.pack(">I", len(narrow)) + body + struct.pack(">I", zlib.crc32(body))
    end = wide.rindex(b"IEND") - 4
    return wide[:end] + chunk + wide[end:]


def unpack(picture: bytes) -> tuple[bytes, bytes | None]:
    """Return the two PNG files that `pack` combined, or the file and None if there is only one."""
    inside, parts = None, [picture[:_HEAD]]
    for name, chunk in _chunks(picture):
        if name == CHUNK:
            inside = chunk[8:-4]
        else:
            parts.append(chunk)
    return b"".join(parts), inside
