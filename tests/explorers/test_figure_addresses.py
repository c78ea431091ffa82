"""Test that the address of a page stores the settings of each figure in a separate part."""

import html
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page

from pu_lib import explorers
from pu_lib.explorers import BuildWorld, Dominoes, Kept, Price, RateLimit, TakeTurns
from pu_lib.explorers.back_first import BackFirst
from pu_lib.explorers.chooser import Chooser
from pu_lib.explorers.simplex_lab import SimplexLab
from pu_lib.explorers.sweep_viewer import SweepViewer
from pu_lib.explorers.worlds import PRESETS

OpenFigure = Callable[..., Page]

NO_FIGURES = ("Kept", "Live", "module", "BuildWorld", "Opening")  # Opening has no settings
FIGURES = [getattr(explorers, name) for name in explorers.__all__ if name not in NO_FIGURES]
FIGURES += [SimplexLab, Chooser, BackFirst]

SETTLED = "new Promise((done) => setTimeout(done, 350))"
"""The address changes at most every 300 milliseconds."""


def parts(page: Page) -> dict[str, str]:
    """Return the parts of the address by the names of the figures."""
    page.evaluate(SETTLED)
    text = page.evaluate("location.hash.slice(1)")
    return {part.split("=")[0]: part for part in text.split(";") if part}


def settings(page: Page, which: int, keys: Any) -> dict[str, Any]:
    read = "([i, keys]) => Object.fromEntries(keys.map((key) => [key, models[i].get(key)]))"
    values: dict[str, Any] = page.evaluate(read, [which, list(keys)])
    return values


def reload(page: Page) -> None:
    page.reload()
    page.wait_for_selector(".pu-live-words:not(:empty)")
    page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


def other(rule: dict[str, Any], value: Any) -> Any:
    """Return a value that the rule allows and that differs from the given value."""
    if "sum" in rule:
        return [0.2, 0.3, 0.5]
    if "each" in rule:
        return [other(rule["each"], x) for x in value]
    if "values" in rule:
        return next(x for x in rule["values"] if x != value)
    if value is None:
        return 3
    least = rule["least"]
    return (least if value != least else value + 1) if "whole" in rule else (value + least + 1) / 3


def test_every_figure_has_settings() -> None:
    def kinds(kind: type) -> set[str]:
        return {kind.__name__}.union(*map(kinds, kind.__subclasses__()))

    names = {name for name in kinds(Kept) if hasattr(explorers, name)}
    names |= {"SimplexLab", "Chooser", "BackFirst"}
    assert {figure.__name__ for figure in FIGURES} == names - set(NO_FIGURES)
    assert all(figure().kept for figure in FIGURES)


def test_settings_of_all_figures_on_a_page_survive_a_reload(open_figure: OpenFigure) -> None:
    widgets = [*(figure() for figure in FIGURES), SweepViewer.of()]
    page = open_figure(*widgets)
    assert parts(page) == {}  # no setting has been changed
    wanted = []
    for i, widget in enumerate(widgets):
        values = {key: other(rule, getattr(widget, key)) for key, rule in widget.kept.items()}
        for key, value in values.items():
            if (type(widget), key) != (TakeTurns, "actions"):
                setattr(widget, key, value)  # raises if the library rejects the value
            page.evaluate("([i, key, x]) => models[i].set(key, x)", [i, key, value])
        wanted.append(values)
    addresses = parts(page)
    assert list(addresses) == [widget.address for widget in widgets]
    assert all(addresses[w.address].startswith(f"{w.address}=1&") for w in widgets)
    reload(page)
    for i, values in enumerate(wanted):
        assert settings(page, i, values) == values
    assert parts(page) == addresses


def test_figures_of_one_kind_do_not_overwrite_each_other(open_figure: OpenFigure) -> None:
    first, second = Dominoes(), Dominoes()
    world = BuildWorld(world=PRESETS["An empty grid"])
    page = open_figure(first, second, world, reduced_motion="reduce")
    for _ in range(2):
        page.get_by_role("button", name="Add a state").nth(1).press("Enter")
    page.get_by_role("button", name="row 1, column 1: empty").press("w")
    page.get_by_role("button", name="Add a state").first.press("Enter")
    addresses = parts(page)
    assert addresses[first.address] == f"{first.address}=1&states=9"
    assert addresses[second.address] == f"{second.address}=1&states=10"
    assert "grid=x..../" in addresses[world.address]
    page.evaluate("location.hash = 'a-section'")  # a link within the page
    assert set(parts(page)) == {"a-section"}
    page.get_by_role("button", name="Add a state").first.press("Enter")
    assert parts(page) == addresses | {first.address: f"{first.address}=1&states=10"}
    reload(page)
    assert [settings(page, i, ["states"])["states"] for i in range(2)] == [10, 10]
    assert page.get_by_role("button", name="row 1, column 1: wall").count() == 1


@pytest.mark.parametrize("allowed", [True, False], ids=["clipboard", "field"])
def test_link_to_a_figure_has_its_settings_alone(open_figure: OpenFigure, allowed: bool) -> None:
    figure, neighbour = RateLimit(), Price()
    page = open_figure(figure, neighbour)
    clipboard = (
        "{ writeText: async (text) => { window.copied = text; } }" if allowed else "undefined"
    )
    page.evaluate(f"Object.defineProperty(navigator, 'clipboard', {{ value: {clipboard} }})")
    page.get_by_role("slider", name="actions").press("ArrowRight")
    page.get_by_role("slider", name="value of a₁").press("ArrowLeft")
    page.get_by_role("button", name="Copy link").first.press("Enter")
    status = page.locator(".pu-live-keep [role=status]").first
    assert ("is copied" if allowed else "in the field below") in status.inner_text()
    field = page.get_by_role("textbox", name="The text to copy")
    link = page.evaluate("window.copied") if allowed else field.input_value()
    address, _, text = link.partition("#")
    assert address == page.url.split("#")[0]
    assert text == f"{figure.address}=1&actions=3"
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_selector(".pu-live-words:not(:empty)")
    assert settings(page, 0, ["actions"]) == {"actions": 3}


@pytest.mark.parametrize(
    "text",
    ["states=99", "states=8.5", "states=", "states=x", "eta=0.3", "eta=%", "nope=1", "states", ""],
)
def test_settings_that_the_figure_does_not_have_are_ignored(
    open_figure: OpenFigure, text: str
) -> None:
    figure = Dominoes()
    page = open_figure(figure, address=f"{figure.address}=1&{text}")
    assert settings(page, 0, ["states", "eta"]) == {"states": 8, "eta": 0.125}


def test_numbers_in_addresses_are_bounded() -> None:
    """Every number has a bound, since an address could otherwise make the page compute forever."""
    rules = [(figure, key, rule) for figure in FIGURES for key, rule in figure().kept.items()]
    unbounded = {
        (figure.__name__, key)
        for figure, key, rule in rules
        if "least" in rule and rule.get("most") is None and "each" not in rule
    }
    assert unbounded == {("SampledValues", "seed")}  # the page uses 32 bits of it


@pytest.mark.parametrize(
    ("text", "expected"),
    [("flip=9007199254740993", None), ("flip=10001", None), ("flip=-0", 0), ("flip=7", 7)],
)
def test_step_of_a_flip_in_the_address(
    open_figure: OpenFigure, text: str, expected: int | None
) -> None:
    figure = SimplexLab()
    page = open_figure(figure, address=f"{figure.address}=1&{text}")
    assert settings(page, 0, ["flip"]) == {"flip": expected}
    assert not page.evaluate("Object.is(models[0].get('flip'), -0)")


@pytest.mark.parametrize(
    "text", ["order=0,2,0,2", "order=0,1", "order=0,1,0,3", "order=0,1,0,-1", "order"]
)
def test_settings_that_do_not_go_together_are_ignored(open_figure: OpenFigure, text: str) -> None:
    figure = TakeTurns()
    page = open_figure(figure, address=f"{figure.address}=1&{text}")
    assert settings(page, 0, ["order"]) == {"order": [0, 1, 0, 1]}


def test_another_address_opens_its_settings(open_figure: OpenFigure) -> None:
    figure = Dominoes()
    page = open_figure(figure)
    with page.expect_event("load"):
        page.evaluate(f"location.hash = '{figure.address}=1&states=5'")
    page.wait_for_selector(".pu-live-words:not(:empty)")
    assert settings(page, 0, ["states"]) == {"states": 5}


LINKS = re.findall(
    r'href="[a-z-]+\.html#([a-z-]+)=1&([^"]+)"',
    (Path(__file__).parents[2] / "book" / "teaching.md").read_text("utf-8"),
)
"""The figures and settings to which the page for teachers links."""


@pytest.mark.parametrize(("name", "text"), LINKS, ids=[name for name, _ in LINKS])
def test_links_for_teachers_open_their_settings(
    open_figure: OpenFigure, name: str, text: str
) -> None:
    text = html.unescape(text)
    figures = [kind() for kind in [*FIGURES, BuildWorld]]
    figure = next(each for each in figures if each.address.rstrip("-0123456789") == name)
    page = open_figure(figure, address=f"{figure.address}=1&{text}")
    if name == "world":
        assert page.get_by_role("alert").inner_text() == ""
        assert page.locator("fieldset").filter(has_text="Which update").count() == 1
        return
    wanted = dict(part.split("=") for part in text.split("&"))
    assert {key: float(value) for key, value in wanted.items()} == settings(page, 0, wanted)
    assert any(getattr(figure, key) != float(value) for key, value in wanted.items())


def test_page_for_teachers_links_to_figures() -> None:
    assert len(LINKS) >= 4
