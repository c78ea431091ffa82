"""The figure *Build a world* in a browser: by keyboard, at three widths, light and dark."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from pu_lib.domains import chain
from pu_lib.mdp import FiniteMDP
from pu_lib.show.live import BuildWorld
from pu_lib.show.live.worlds import PRESETS

OpenFigure = Callable[..., Page]

DARK = """:root { --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af;
--pst-color-background: #14181e; --pst-color-border: #48566b; --pst-color-primary: #83bce6; }
body { background: #14181e; color: #ced6dd; }"""
"""The colours of the book's theme in dark mode."""


def address_of(page: Page) -> str:
    """Return the address after its last change, which may be 300 milliseconds late."""
    page.evaluate("new Promise((done) => setTimeout(done, 350))")
    return page.url


def caption(page: Page) -> str:
    return page.locator(".pu-live-words").inner_text()


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390])
def test_world_is_accessible_at_all_widths(
    open_figure: OpenFigure, violations_of: Callable[[Page], list[str]], width: int, theme: str
) -> None:
    page = open_figure(BuildWorld(), width=width)
    if theme == "dark":
        page.evaluate("document.documentElement.dataset.theme = 'dark'")
        page.add_style_tag(content=DARK)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations_of(page) == []


@pytest.mark.parametrize("name", PRESETS)
def test_preset_runs_to_its_end(open_figure: OpenFigure, name: str) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("combobox", name="world").select_option(name)
    assert page.get_by_role("alert").inner_text() == ""
    page.get_by_role("button", name="Play").press("Enter")
    assert page.get_by_role("combobox", name="world").input_value() == name
    assert "95 % of the way from the uniform policy" in caption(page)


def test_grid_is_drawn_by_keyboard_and_survives_a_reload(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), reduced_motion="reduce")
    page.get_by_role("button", name="row 1, column 1: empty").press("ArrowRight")
    page.get_by_role("button", name="row 1, column 2: empty").press("w")
    page.get_by_role("button", name="row 1, column 2: wall").press("ArrowDown")
    page.get_by_role("button", name="row 2, column 2: empty").press("t")
    assert page.get_by_role("button", name="row 2, column 2: trap, reward -1").count() == 1
    address = address_of(page)
    assert "grid=.x.../.T.../" in address
    page.reload()
    assert page.get_by_role("button", name="row 1, column 2: wall").count() == 1
    assert address_of(page) == address
    page.get_by_role("combobox", name="columns").select_option("3")
    assert "grid=.x./.T./.../.../S..&" in address_of(page)
    page.get_by_role("button", name="Undo").press("Enter")
    assert address_of(page) == address


def test_reward_changed_after_learning_keeps_what_was_learnt(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), reduced_motion="reduce")
    page.get_by_role("button", name="row 5, column 5: goal").click()
    for _ in range(3):
        page.get_by_role("button", name="Step").press("Enter")
    before = page.locator(".pu-live-scroll").inner_text()
    page.get_by_role("button", name="Flip its sign").press("Enter")
    assert "then=3*24*-1" in address_of(page)
    assert page.locator(".pu-live-scroll").inner_text() == before
    assert "0 updates after the reward changed" in caption(page)


def test_graph_is_edited_by_table(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("button", name="New graph").press("Enter")
    page.get_by_role("button", name="Add a state").press("Enter")
    leads = page.get_by_role("textbox", name="a0 leads to")
    leads.fill("s1 30 %, s2 60 %")
    leads.press("Enter")
    assert "sum to 0.9, not to 1" in page.get_by_role("alert").inner_text()
    leads = page.get_by_role("textbox", name="a0 leads to")
    leads.fill("s1 30 %, s2 70 %")
    leads.press("Enter")
    assert "move=1*0.3,2*0.7_0_" in address_of(page)
    assert page.get_by_role("alert").inner_text() == ""


def test_teacher_hides_parts_and_asks(open_figure: OpenFigure) -> None:
    text = f"{chain(5).to_world()}&hide=edit,presets&ask=Who+is+first?"
    page = open_figure(BuildWorld(world=text), reduced_motion="reduce")
    assert not page.get_by_role("button", name="Clear").is_visible()
    page.get_by_role("radio", name="MCE").press("Space")
    page.get_by_role("button", name="Play").press("Enter")
    assert "You guessed MCE" in caption(page)


def test_downloaded_file_is_the_process(open_figure: OpenFigure, tmp_path: Any) -> None:
    process = chain(5)
    page = open_figure(BuildWorld(world=process.to_world()), reduced_motion="reduce")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").press("Enter")
    download.value.save_as(tmp_path / "world.json")
    assert json.loads((tmp_path / "world.json").read_text())["discount"] == 0.99
    found = FiniteMDP.load(tmp_path / "world.json")
    assert found.optimal().performance == process.optimal().performance


def test_very_narrow_figure_has_no_negative_sizes(open_figure: OpenFigure) -> None:
    for name in ("A reward that moves", "A random MDP"):
        page = open_figure(BuildWorld(world=PRESETS[name]), width=200)
        page.set_viewport_size({"width": 120, "height": 844})
        page.evaluate("new Promise((done) => setTimeout(done, 100))")


def test_play_can_be_paused(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld())
    time = page.get_by_role("slider", name="update t")
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_function("(slider) => slider.value > 0", arg=time.element_handle())
    page.get_by_role("button", name="Pause").press("Enter")
    reached = time.input_value()
    page.wait_for_timeout(200)
    assert 0 < int(time.input_value()) == int(reached) < 160
