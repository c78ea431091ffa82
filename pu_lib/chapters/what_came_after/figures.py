"""The figure of the chapter on later work: unlearning with growing weights."""

from __future__ import annotations

from pu_lib.chapters.unlearning.quantities import count
from pu_lib.chapters.what_came_after.quantities import geometric_bound, geometric_count
from pu_lib.drawing.style import GREY, BookFigure, figure, line, styled

NS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)


@styled
def draw_growing(ratio: str = "11/10") -> BookFigure:
    """Draw the updates n' that undo n updates, for DI, MCE and NPG with two kinds of weights."""
    fig, ax = figure(height=3.4)
    for name in ("di", "mce"):
        ax.plot(NS, [count(n, name) for n in NS], **line(name))
    ax.plot(NS, NS, **(line("npg") | {"label": "NPG, constant step sizes"}))
    growing = [geometric_count(n, ratio) for n in NS]
    ax.plot(NS, growing, **(line("npg") | {"linestyle": "-", "label": "NPG, growing step sizes"}))
    words = "bound for growing step sizes"
    ax.axhline(geometric_bound(ratio), color=GREY, linewidth=1, linestyle=":", label=words)
    ax.set(xscale="log", yscale="log", xlabel="updates $n$", ylabel="updates $n'$ to undo them")
    fig.legend(loc="outside upper center", ncols=2)
    return fig
