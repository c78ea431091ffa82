r"""Explorers: figures the reader moves by sliders, on the static page as well as in JupyterLab.

A rendered page has no Python behind it. `explorer` therefore draws every frame of a small grid of
parameters beforehand and stacks them; the browser alone links the sliders to the stack, and the
picture is always one that `pu_lib` computed. With two sliders the frames form a stack of stacks,
and each inner stack follows the second slider, so that moving one slider keeps the other's state.

An explorer is declared next to its drawing functions::

    EXPLORERS = {
        "race": Explorer(
            draw=draw_race,                 # draw(n, eta) -> Figure
            alt=alt_race,                   # alt(n, eta) -> what this frame shows, in words
            grid={
                "n": Slider("$n$", [1, 2, 5, 10, 20, 50]),
                "eta": Slider(r"$\eta$", [0.1, 0.3, 1, 3, 10], start=2),
            },
        ),
    }

and shown in a notebook by ``EXPLORERS["race"].show()`` or, undeclared, by
``explorer(draw, alt, n=Slider(...))``. The declared ones are all drawn, over their whole grid, by
the tests.

Applicability: 20 to 60 frames, at most two sliders. A frame weighs about 5 to 15 kB; a page may
carry 3 MB. Line plots are inverted on the dark page; pass ``kind="heatmap"`` for colour maps,
which keep a white card.
"""

from __future__ import annotations

import base64
import html
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

from matplotlib.figure import Figure

from pu_lib.show.style import DPI, png, styled
from pu_lib.updates import UPDATES, label_of

__all__ = ["BUDGET", "Explorer", "Frame", "Slider", "explorer", "frames"]

BUDGET = 3_000_000
"""The most bytes the frames of one explorer may add to a page."""

SHORTEST_ALT = 20
COLOURS_PER_FRAME = {"lineplot": 48, "heatmap": 128}
FRAME_DPI = 150


@dataclass(frozen=True)
class Slider:
    r"""One parameter of an explorer.

    Attributes
    ----------
    label : str
        What stands before the slider; ``$\eta$`` is typeset.
    values : sequence
        The values it takes, at least two.
    fmt : str
        How a value is written beside the slider; updates are written as in the figures.
    start : int
        The index of the value shown first.
    """

    label: str
    values: Sequence[Any]
    fmt: str = "{}"
    start: int = 0

    def __post_init__(self) -> None:
        if len(self.values) < 2:
            raise ValueError(
                f"values of the slider {self.label!r} must hold at least two values, "
                f"but {list(self.values)!r} was given."
            )
        if not 0 <= self.start < len(self.values):
            raise ValueError(
                f"start of the slider {self.label!r} must be an index in "
                f"0..{len(self.values) - 1}, but {self.start!r} was given."
            )

    @property
    def texts(self) -> list[str]:
        """The values as they are written beside the slider."""
        return [
            label_of(value)
            if isinstance(value, str) and value in UPDATES
            else self.fmt.format(value)
            for value in self.values
        ]


@dataclass(frozen=True)
class Frame:
    """One picture of an explorer.

    Attributes
    ----------
    params : dict
        The value of each slider, by its name.
    data : bytes
        The picture as a PNG file.
    alt : str
        What it shows, in words.
    width, height : int
        Its size on screen, in pixels.
    """

    params: dict[str, Any]
    data: bytes
    alt: str
    width: int
    height: int

    def html(self, kind: str) -> str:
        """Return the frame as an image with its words below it.

        The words follow the sliders as the picture does. Who hears the page hears them once, as the
        image's alternative text.
        """
        source = base64.b64encode(self.data).decode("ascii")
        words = html.escape(self.alt, quote=True)
        sentence = words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")
        return (
            f'<img class="{kind}" width="{self.width}" height="{self.height}" alt="{words}" '
            f'src="data:image/png;base64,{source}">'
            f'<p class="pu-caption" aria-hidden="true">{sentence}</p>'
        )


@dataclass(frozen=True)
class Explorer:
    """The declaration of an explorer: how to draw a frame, what it shows in words, which frames.

    Attributes
    ----------
    draw, alt : callable
        Called with one keyword a slider; return the figure, and what it shows as a sentence.
    grid : mapping of str to Slider
        One or two sliders, by the name of the parameter.
    kind : {"lineplot", "heatmap"}
        How the dark page shows the frames: inverted, or as they are on a white card.
    """

    draw: Callable[..., Figure]
    alt: Callable[..., str]
    grid: Mapping[str, Slider]
    kind: str = "lineplot"

    def __post_init__(self) -> None:
        if not 1 <= len(self.grid) <= 2:
            raise ValueError(
                f"grid must hold one or two sliders, but {len(self.grid)} were given: "
                f"{', '.join(self.grid) or 'none'}."
            )
        if self.kind not in COLOURS_PER_FRAME:
            raise ValueError(
                f"kind must be one of {', '.join(map(repr, COLOURS_PER_FRAME))}, "
                f"but {self.kind!r} was given."
            )

    def frames(self) -> Iterator[Frame]:
        """Draw the frames one by one, the last slider fastest."""
        for values in product(*(slider.values for slider in self.grid.values())):
            yield self.frame(**dict(zip(self.grid, values, strict=True)))

    def frame(self, **params: Any) -> Frame:
        """Draw the frame of one choice of parameters.

        Parameters
        ----------
        **params
            A value for each slider, by its name.

        Returns
        -------
        Frame
            The picture and its words.

        Raises
        ------
        ValueError
            If `draw` returns no figure, or `alt` hardly a word.
        """
        where = ", ".join(f"{name}={value!r}" for name, value in params.items())
        words = self.alt(**params)
        if len(words) < SHORTEST_ALT:
            raise ValueError(
                f"alt must say what the frame shows in at least {SHORTEST_ALT} characters, "
                f"but at {where} it returned {words!r}."
            )
        fig = styled(self.draw)(**params)
        if not isinstance(fig, Figure):
            raise ValueError(f"draw must return a figure, but at {where} it returned {fig!r}.")
        data = png(fig, COLOURS_PER_FRAME[self.kind], FRAME_DPI)
        width, height = (round(side * DPI) for side in fig.get_size_inches())
        return Frame(params, data, words, width, height)

    def show(self) -> Any:
        """Return the widget: sliders, play button and the stack of all frames.

        Raises
        ------
        ValueError
            If the frames together are heavier than a page may be.
        """
        drawn = list(self.frames())
        pictures = [frame.html(self.kind) for frame in drawn]
        weight = sum(map(len, pictures))
        if weight > BUDGET:
            raise ValueError(
                f"the frames of an explorer may weigh {BUDGET / 1e6:g} MB, but these "
                f"{len(pictures)} weigh {weight / 1e6:.2f} MB: take fewer values or "
                "smaller figures."
            )
        return _widget(pictures, list(self.grid.values()))


def explorer(
    draw: Callable[..., Figure],
    alt: Callable[..., str],
    *,
    kind: str = "lineplot",
    **grid: Slider,
) -> Any:
    """Return the widget that shows ``draw(**params)`` for the parameters its sliders choose.

    Parameters
    ----------
    draw : callable
        Takes the parameters by keyword, returns a figure.
    alt : callable
        Takes the same, returns what that frame shows as a sentence.
    kind : {"lineplot", "heatmap"}
        How the dark page shows the frames.
    **grid : Slider
        One or two sliders, by the name of the parameter.

    Returns
    -------
    ipywidgets.VBox
        Works in JupyterLab and, without a kernel, on the rendered page.
    """
    return Explorer(draw, alt, grid, kind).show()


def frames(explorers: Mapping[str, Explorer]) -> Iterator[tuple[str, Frame]]:
    """Draw every frame of every declared explorer, with the explorer's name (for the tests)."""
    for name, declared in explorers.items():
        for frame in declared.frames():
            yield name, frame


def _widget(pictures: list[str], sliders: list[Slider]) -> Any:
    import ipywidgets as w

    controls = [_control(slider) for slider in sliders]
    leaves = [w.HTML(picture) for picture in pictures]
    inner = len(sliders[-1].values)
    stacks = [_stack(leaves[i : i + inner]) for i in range(0, len(leaves), inner)]
    for stack in stacks:
        stack.selected_index = sliders[-1].start
        w.jslink((controls[-1], "index"), (stack, "selected_index"))
    view = stacks[0]
    if len(sliders) == 2:
        view = _stack(stacks)
        view.selected_index = sliders[0].start
        w.jslink((controls[0], "index"), (view, "selected_index"))
    rows = [w.HBox([_play(*pair), pair[0]]) for pair in zip(controls, sliders, strict=True)]
    for row in rows:
        row.add_class("pu-control")
    view.add_class("pu-frames")
    box = w.VBox([*rows, view])
    box.add_class("pu-explorer")
    return box


def _stack(children: list[Any]) -> Any:
    import ipywidgets as w

    return w.Stack(children, layout=w.Layout(overflow="hidden"))


def _control(slider: Slider) -> Any:
    import ipywidgets as w

    return w.SelectionSlider(
        options=list(zip(slider.texts, range(len(slider.values)), strict=True)),
        index=slider.start,
        description=slider.label,
        style={"description_width": "auto"},
        layout=w.Layout(flex="1 1 auto", width="auto"),
    )


def _play(control: Any, slider: Slider) -> Any:
    import ipywidgets as w

    play = w.Play(value=slider.start, min=0, max=len(slider.values) - 1, interval=600)
    play.show_repeat = False
    w.jslink((play, "value"), (control, "index"))
    return play
