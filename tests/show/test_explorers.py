"""Every frame of every explorer is drawn; the widget links what it says it links."""

import importlib
import pkgutil

import ipywidgets
import numpy as np
import pytest
from matplotlib.figure import Figure

import pu_lib.show
from pu_lib.show import explorers
from pu_lib.show.explorers import BUDGET, Explorer, Slider, explorer
from pu_lib.show.style import figure


def declared() -> list:
    modules = [info.name for info in pkgutil.iter_modules(pu_lib.show.__path__)]
    found = {
        f"{name}.{key}": value
        for name in modules
        for key, value in getattr(
            importlib.import_module(f"pu_lib.show.{name}"), "EXPLORERS", {}
        ).items()
    }
    return [pytest.param(value, id=name) for name, value in found.items()]


def test_a_slider_writes_its_values_and_calls_updates_as_the_figures_do() -> None:
    assert Slider("x", [0.5, [1, 2]], "{}").texts == ["0.5", "[1, 2]"]
    assert Slider("update", ["pg-sm", "di"]).texts == ["PG-SM", "DI"]


@pytest.mark.parametrize("declaration", declared())
def test_every_declared_frame_is_drawn_and_described(declaration: Explorer) -> None:
    frames = list(declaration.frames())
    assert len({frame.alt for frame in frames}) > 1, "every frame has the same words"
    assert len({frame.data for frame in frames}) > 1, "every frame is the same picture"
    weight = sum(len(frame.html(declaration.kind)) for frame in frames)
    assert weight <= BUDGET, f"{len(frames)} frames weigh {weight / 1e6:.2f} MB"


def draw(n: int, eta: float = 1.0) -> Figure:
    fig, ax = figure(width=3, height=2)
    ax.plot(np.arange(5) * n, np.arange(5) * eta)
    return fig


def alt(n: int, eta: float = 1.0) -> str:
    return f"a straight line to {4 * n} and {4 * eta}"


GRID = {"n": Slider("$n$", [1, 2, 3], start=1), "eta": Slider(r"$\eta$", [0.1, 1.0], "{:g}")}


def links(box: ipywidgets.VBox) -> list[tuple]:
    """Return every pair that the browser links, of the widgets of `box`."""
    own = {id(box)} | {id(child) for child in _descendants(box)}
    return [
        (widget.source, widget.target)
        for widget in ipywidgets.widgets.widget._instances.values()
        if isinstance(widget, ipywidgets.widgets.widget_link.Link) and id(widget.source[0]) in own
    ]


def _descendants(widget: ipywidgets.Widget) -> list:
    children = list(getattr(widget, "children", ()))
    return children + [leaf for child in children for leaf in _descendants(child)]


def test_a_second_slider_keeps_its_state_when_the_first_moves() -> None:
    box = explorer(draw, alt, **GRID)
    *rows, view = box.children
    first, second = (row.children[1] for row in rows)
    assert view.selected_index == first.index == 1
    assert [stack.selected_index for stack in view.children] == [second.index] * 3
    pairs = [(source[0], target[0]) for source, target in links(box)]
    assert (first, view) in pairs
    assert all((second, stack) in pairs for stack in view.children)


def test_frames_stand_where_the_sliders_expect_them() -> None:
    box = explorer(draw, alt, **GRID)
    view = box.children[-1]
    for i, n in enumerate(GRID["n"].values):
        for j, eta in enumerate(GRID["eta"].values):
            assert alt(n, eta) in view.children[i].children[j].value


def test_the_words_of_a_frame_are_seen_and_heard_once() -> None:
    frame = Explorer(draw, alt, GRID).frame(n=2, eta=1.0).html("lineplot")
    assert frame.count("straight line to 8 and 4.0") == 2
    assert 'alt="a straight line to 8 and 4.0"' in frame
    assert '<p class="pu-caption" aria-hidden="true">A straight line to 8 and 4.0.</p>' in frame


def test_one_slider_makes_one_stack() -> None:
    box = explorer(draw, alt, n=GRID["n"])
    assert len(box.children) == 2
    assert len(box.children[-1].children) == 3


def test_words_are_escaped() -> None:
    box = explorer(draw, lambda n: f'{alt(n)} "<script>"', n=GRID["n"])
    assert "<script>" not in box.children[-1].children[0].value


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"alt": lambda n: "short"}, "at least 20 characters, but at n=1"),
        ({"draw": lambda n: None}, "draw must return a figure, but at n=1"),
        ({"kind": "photo"}, "kind must be one of"),
        ({"grid": {}}, "one or two sliders, but 0 were given"),
    ],
)
def test_errors_are_sentences(change: dict, sentence: str) -> None:
    arguments = {"draw": draw, "alt": alt, "grid": {"n": GRID["n"]}} | change
    with pytest.raises(ValueError, match=sentence):
        Explorer(**arguments).show()


def test_a_page_cannot_be_made_too_heavy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explorers, "BUDGET", 10_000)
    with pytest.raises(ValueError, match=r"may weigh 0.01 MB, but these 6 weigh"):
        explorer(draw, alt, **GRID)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [(([1],), "at least two values"), (([1, 2], "{}", 2), r"must be an index in 0\.\.1")],
)
def test_sliders_refuse_what_they_cannot_show(arguments: tuple, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        Slider("$n$", *arguments)
