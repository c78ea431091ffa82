"""Figures of the chapter on what came after: growing weights, and the way from NPG to DI."""

from __future__ import annotations

from pu_lib.show.explorers import Explorer, Slider
from pu_lib.show.style import GREY, BookFigure, figure, line, styled
from pu_lib.theory.unlearning import count
from pu_lib.theory.what_came_after import family_count, geometric_bound, geometric_count

__all__ = ["EXPLORERS", "alt_family", "draw_family", "draw_growing"]

NS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 89, 144, 233)


@styled
def draw_growing(ratio: str = "11/10") -> BookFigure:
    """Draw n' of NPG with constant and with growing weights, beside DI and MCE.

    Parameters
    ----------
    ratio : str
        The ratio of one weight to the one before, read exactly.
    """
    fig, ax = figure(height=3.4)
    for name in ("di", "mce"):
        ax.plot(NS, [count(n, name) for n in NS], **line(name))
    ax.plot(NS, NS, **(line("npg") | {"label": "NPG, constant weights"}))
    growing = [geometric_count(n, ratio) for n in NS]
    ax.plot(NS, growing, **(line("npg") | {"linestyle": "-", "label": "NPG, growing weights"}))
    ax.axhline(geometric_bound(ratio), color=GREY, linewidth=1, linestyle=":")
    ax.set(xscale="log", yscale="log", xlabel="updates $n$", ylabel="updates $n'$ to undo them")
    ax.legend(loc="upper left")
    return fig


@styled
def draw_family(alpha: str = "3/2", eta: str = "1/4") -> BookFigure:
    r"""Draw n' of mirror descent with one index, between NPG and DI.

    Parameters
    ----------
    alpha : str
        The index of the Tsallis entropy, from 1 (NPG) to 2 (DI), read exactly.
    eta : str
        The weight, read exactly.
    """
    fig, ax = figure(height=3.4, width=5.4)
    for name, end in (("npg", 1), ("di", 2)):
        ax.plot(NS, [family_count(n, eta, end) for n in NS], **line(name))
    ours = [family_count(n, eta, alpha) for n in NS]
    ax.plot(NS, ours, color=GREY, linewidth=4, alpha=0.6, label=rf"$\alpha={alpha}$")
    ax.set(xscale="log", yscale="log", xlabel="updates $n$", ylabel="updates $n'$ to undo them")
    ax.legend(loc="upper left")
    return fig


def alt_family(alpha: str = "3/2", eta: str = "1/4") -> str:
    """Say what `draw_family` shows for the same parameters.

    Parameters
    ----------
    alpha : str
        The index.
    eta : str
        The weight.

    Returns
    -------
    str
        A sentence for those who do not see the figure.
    """
    most = family_count(10**6, eta, alpha)
    where = "grows with n for ever" if most >= 10**6 else f"stops growing at {most}"
    dearest = family_count(10**6, eta, 2)
    return (
        f"Updates needed to undo n updates of mirror descent with index {alpha} and weight {eta}, "
        "for two actions a unit apart, from the uniform policy. "
        f"The count {where}; that of DI stops at {dearest}, and that of NPG is n."
    )


EXPLORERS = {
    "family": Explorer(
        draw=draw_family,
        alt=alt_family,
        grid={
            "alpha": Slider(
                r"$\alpha$", ["1", "33/32", "17/16", "9/8", "5/4", "3/2", "7/4", "2"], start=0
            ),
            "eta": Slider(r"$w$", ["1/4", "1/2", "1"]),
        },
    )
}
