"""Test the figure *Build a world* in a browser: by keyboard, at three widths, light and dark."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page

from pu_lib.domains import chain
from pu_lib.explorers import BuildWorld
from pu_lib.explorers.worlds import PRESETS
from pu_lib.mdp import FiniteMDP

OpenFigure = Callable[..., Page]

DARK = """:root { --pst-color-text-base: #ced6dd; --pst-color-text-muted: #9ca4af;
--pst-color-background: #14181e; --pst-color-border: #48566b; --pst-color-primary: #83bce6; }
body { background: #14181e; color: #ced6dd; }"""
"""The colours of the book's theme in dark mode."""


def unfold(page: Page) -> None:
    """Show the controls of the run."""
    page.locator("details").evaluate("(fold) => { fold.open = true; }")


def step(page: Page) -> None:
    unfold(page)
    page.get_by_role("button", name="Step").press("Enter")


def address_of(page: Page) -> str:
    """Return the address after its last change, which may be 300 milliseconds late."""
    page.evaluate("new Promise((done) => setTimeout(done, 350))")
    return page.url


def caption(page: Page) -> str:
    """Return the caption of the figure after all steps have been computed."""
    page.wait_for_function("() => !document.querySelector('[aria-busy]')")
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


@pytest.mark.parametrize(("width", "most"), [(722, 900), (346, 844)])
def test_play_curves_and_boards_are_on_one_screen(
    open_figure: OpenFigure, width: int, most: int
) -> None:
    """The figure is as wide in the book on screens of 1280 and of 390 pixels."""
    page = open_figure(BuildWorld(), width=width, reduced_motion="reduce")
    page.get_by_role("button", name="Play").press("Enter")
    boxes = [page.locator(f".pu-live {part}").bounding_box() for part in ("", ".pu-live-lanes")]
    assert boxes[0]
    assert boxes[1]
    assert page.locator(".pu-live-board").count() == 3
    tops = {page.locator(".pu-live-board").nth(i).evaluate("(x) => x.offsetTop") for i in range(3)}
    assert len(tops) == 1  # in one row
    assert boxes[1]["y"] + boxes[1]["height"] - boxes[0]["y"] <= most
    for table in page.locator(".pu-live-scroll").all():
        assert table.evaluate("(box) => box.scrollWidth <= box.clientWidth")


def test_result_names_who_is_back(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("slider", name="update t").fill("78")
    counts = "18 updates after the reward changed: DI is back after 15, CE after 18; "
    assert f"{counts}PG-SM is not yet." in caption(page)
    page.get_by_role("checkbox", name="NPG").press("Space")
    page.get_by_role("slider", name="update t").fill("78")
    assert f"{counts}the others are not yet." in caption(page)
    page.get_by_role("slider", name="update t").fill("60")
    assert "0 updates after the reward changed: none of the updates is back yet." in caption(page)


def test_addresses_with_all_updates_still_open_them(open_figure: OpenFigure) -> None:
    text = PRESETS["The jumper"].replace("run=pg-sm,di,ce", "run=pg-sm,pg-es,di,ce,mce,npg,sce")
    page = open_figure(BuildWorld(world=text), reduced_motion="reduce")
    assert page.locator(".pu-live-board").count() == 7


def test_walls_are_not_the_brightest_things_in_dark_mode(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld())
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.add_style_tag(content=DARK)
    fill = page.locator(".pu-live-wall").first.evaluate("(wall) => getComputedStyle(wall).fill")
    lightness = float(re.findall(r"[\d.]+", fill)[0])
    assert fill.startswith("oklab")
    assert 0.25 < lightness < 0.6


@pytest.mark.parametrize("name", PRESETS)
def test_preset_runs_to_its_end(open_figure: OpenFigure, name: str) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("combobox", name="world").select_option(name)
    assert page.get_by_role("alert").inner_text() == ""
    page.get_by_role("button", name="Play").press("Enter")
    assert page.get_by_role("combobox", name="world").input_value() == name
    assert re.search(r": (none of the updates|\S+) is (there|back) ", caption(page))


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
        step(page)
    before = page.locator(".pu-live-scroll").inner_text()
    page.get_by_role("button", name="Flip its sign").press("Enter")
    assert "then=3*24*-1" in address_of(page)
    assert page.locator(".pu-live-scroll").inner_text() == before
    assert "0 updates after the reward changed" in caption(page)


def test_graph_is_edited_by_table(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("button", name="New graph").press("Enter")
    page.get_by_role("button", name="Add a state").press("Enter")
    page.get_by_role("combobox", name="state", exact=True).select_option("s0")
    leads = page.get_by_role("textbox", name="a0 leads to")
    leads.fill("s1 30 %, s2 60 %")
    leads.press("Enter")
    assert "sum to 0.9, not to 1" in page.get_by_role("alert").inner_text()
    leads = page.get_by_role("textbox", name="a0 leads to")
    leads.fill("s1 30 %, s2 70 %")
    leads.press("Enter")
    assert "move=1*0.3,2*0.7_0_" in address_of(page)
    assert page.get_by_role("alert").inner_text() == ""


def test_graph_is_drawn_by_pointer(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("button", name="New graph").click()
    board = page.get_by_role("group", name="The graph")
    box = board.bounding_box()
    assert box
    page.mouse.dblclick(box["x"] + box["width"] / 2, box["y"] + 8)
    drag(page, "state s0", "state s2")
    assert "move=2_0_" in address_of(page)
    assert "ask=" not in page.url  # the task belongs to the preset
    page.get_by_role("combobox", name="lead").select_option("there as well")
    drag(page, "state s0", "state s1")
    assert "move=2*0.5,1*0.5_0_" in address_of(page)
    assert page.get_by_role("textbox", name="a0 leads to").input_value() == "s2 50 %, s1 50 %"
    page.get_by_role("combobox", name="a drag makes").select_option("a1")
    drag(page, "state s2", "state s0")
    assert "_2_2,0" not in page.url
    assert "_2_2*0.5,0*0.5&" in address_of(page)
    assert "a1 in s2 leads to s2 and s0" in page.get_by_role("status").first.inner_text()


def drag(page: Page, start: str, end: str) -> None:
    """Drag from one state of the graph to another."""
    for i, name in enumerate((start, end)):
        box = page.get_by_role("button", name=name).bounding_box()
        assert box
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, steps=3)
        (page.mouse.up if i else page.mouse.down)()


def fill(page: Page, field: str, text: str) -> None:
    box = page.get_by_role("textbox", name=field, exact=True)
    box.fill(text)
    box.press("Enter")


def test_states_and_actions_are_named_and_removed_by_keyboard(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("button", name="New graph").press("Enter")
    alert = page.get_by_role("alert")
    fill(page, "name of the state", "room 1")
    fill(page, "name of action 1", "go")
    fill(page, "go leads to", "s1 20 %, room 1 80 %")
    assert alert.inner_text() == ""
    text = address_of(page)
    assert "states=room+1,s1&actions=go,a1" in text
    assert "move=1*0.2,0*0.8_0_" in text
    for name, message in (("s1", "already a state “s1”"), ("a, b", "without commas")):
        fill(page, "name of the state", name)
        assert message in alert.inner_text()
    page.get_by_role("button", name="Add an action").press("Enter")
    page.get_by_role("button", name="remove the action a1").press("Enter")
    assert "actions=go,a2" in address_of(page)
    page.get_by_role("button", name="state room 1").press("ArrowRight")
    page.get_by_role("button", name="state s1").press("Delete")
    assert "graph=1*2&move=0_0&" in address_of(page)
    assert page.get_by_role("button", name="Remove this state").is_disabled()
    for _ in range(3):
        page.get_by_role("button", name="Undo").press("Enter")
    assert address_of(page) == text


def test_reward_acts_while_the_slider_is_dragged(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), reduced_motion="reduce")
    page.get_by_role("button", name="row 5, column 5: goal").click()
    page.get_by_role("slider", name="update t").press("PageUp")
    learnt = page.locator(".pu-live-scroll").last.inner_text()
    control = page.get_by_role("slider", name="reward of the cell")
    control.scroll_into_view_if_needed()
    box = control.bounding_box()
    assert box
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.75 * box["width"], middle)
    page.mouse.down()
    for share in (0.6, 0.4, 0.3):
        page.mouse.move(box["x"] + share * box["width"], middle)
    assert "0 updates after the reward changed" in caption(page)  # the button is still pressed
    page.mouse.up()
    changes = re.findall(r"then=[^&]*", address_of(page))
    assert [change.count("*") for change in changes] == [2]  # the whole drag is one change
    assert page.locator(".pu-live-scroll").last.inner_text() == learnt
    page.get_by_role("button", name="Undo").press("Enter")
    assert "then=" not in address_of(page)


def test_run_starts_from_what_was_learnt(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), reduced_motion="reduce")
    page.get_by_role("button", name="Play").press("Enter")
    assert "After 200 updates" in caption(page)
    board = page.locator(".pu-live-scroll").last
    learnt = board.get_by_role("row").nth(2).inner_text().split("\t")[1:5]  # the row of MCE
    unfold(page)
    page.get_by_role("combobox", name="start from").select_option("mce")
    assert page.get_by_role("combobox", name="start from").input_value() == "learnt"
    assert "is there at once" in caption(page)
    for row in (1, 2):
        assert board.get_by_role("row").nth(row).inner_text().split("\t")[1:5] == learnt
    address = address_of(page)
    page.reload()
    assert address_of(page) == address
    unfold(page)
    page.get_by_role("combobox", name="start from").select_option("uniform")
    assert "from=" not in address_of(page)


@pytest.mark.parametrize(
    ("story", "wrong", "right"),
    [
        ("A reward that moves", "CE", "DI"),
        ("The jumper", "CE", "DI"),
        ("The trap next to the prize", "DI", "PG-SM"),
    ],
)
def test_guess_of_a_story_is_judged(
    open_figure: OpenFigure, story: str, wrong: str, right: str
) -> None:
    page = open_figure(BuildWorld(world=PRESETS[story]), reduced_motion="reduce")
    assert "Make a guess, then press Play" in caption(page)
    group = page.locator("[data-part=ask]")
    group.get_by_role("radio", name=wrong, exact=True).press("Space")
    assert "Make a guess" not in caption(page)
    page.get_by_role("button", name="Play").press("Enter")
    assert f"Not quite: you guessed “{wrong}”. " in caption(page)
    assert ("keep their length" if right == "DI" else "towards the trap") in caption(page)
    group.get_by_role("radio", name=right, exact=True).press("Space")
    assert f"Your guess, “{right}”, was right." in caption(page)


def test_teacher_hides_parts_and_asks(open_figure: OpenFigure) -> None:
    text = f"{chain(5).to_world()}&hide=edit,presets&ask=Who+is+first?&why=Because+of+me."
    page = open_figure(BuildWorld(world=text), reduced_motion="reduce")
    assert not page.get_by_role("button", name="Clear").is_visible()
    assert page.get_by_role("button", name="Copy link").is_visible()
    page.get_by_role("radio", name="PG-SM").press("Space")
    page.get_by_role("button", name="Play").press("Enter")
    assert "Not quite: you guessed “PG-SM”. Because of me." in caption(page)


def touch(page: Page, *points: tuple[float, float]) -> None:
    """Touch the first point, move over the other points and lift the finger."""
    session = page.context.new_cdp_session(page)
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": True})
    for i, (x, y) in enumerate(points):
        kind = "touchMove" if i else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    session.send("Emulation.setTouchEmulationEnabled", {"enabled": False})
    session.detach()


def middle(page: Page, name: str) -> tuple[float, float]:
    """Return the middle of a button on the screen."""
    button = page.get_by_role("button", name=name)
    button.scroll_into_view_if_needed()
    box = button.bounding_box()
    assert box
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def test_grid_and_graph_are_drawn_by_touch(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), width=390)
    page.get_by_role("combobox", name="a click makes").select_option("wall")
    touch(page, middle(page, "row 2, column 2"))
    assert page.get_by_role("button", name="row 2, column 2: wall").count() == 1
    touch(page, middle(page, "New graph"))
    touch(page, middle(page, "Add a state"))
    page.get_by_role("button", name="state s0").scroll_into_view_if_needed()
    start, end = middle(page, "state s0"), middle(page, "state s2")
    half = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
    touch(page, start, half, end)
    assert "move=2_0_" in address_of(page)


def test_flip_while_playing_goes_on_from_what_was_learnt(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]))
    page.get_by_role("button", name="row 5, column 5: goal").click()
    time = page.get_by_role("slider", name="update t")
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_function("(slider) => slider.value > 2", arg=time.element_handle())
    page.get_by_role("button", name="Flip its sign").press("Enter")
    page.wait_for_function("() => location.hash.includes('then=')")
    page.get_by_role("button", name="Pause").press("Enter")
    assert "after the reward changed" in caption(page)
    assert page.get_by_role("button", name="row 5, column 5: goal, reward -1").count() == 1


def test_text_of_a_process_opens_it(open_figure: OpenFigure) -> None:
    figure = BuildWorld()
    assert re.fullmatch(
        r"world(-\d+)?", figure.address
    )  # the number counts the figures of this Python process
    text = chain(5).to_world().replace("world=", f"{figure.address}=")
    page = open_figure(figure, address=text)
    assert address_of(page).split("#")[1] == f"{text}"
    assert page.get_by_role("button", name="state s4, end").count() == 1
    page.evaluate("(text) => { location.hash = text; }", f"{figure.address}=1&grid=S.G")
    assert page.get_by_role("button", name="row 1, column 3: goal").count() == 1
    page.evaluate("(text) => { location.hash = text; }", f"{figure.address}=1&grid=?")
    assert "a cell “?”" in page.get_by_role("alert").inner_text()


def test_downloaded_file_is_the_process(open_figure: OpenFigure, tmp_path: Any) -> None:
    process = chain(5)
    page = open_figure(BuildWorld(world=process.to_world()), reduced_motion="reduce")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download JSON").press("Enter")
    download.value.save_as(tmp_path / "world.json")
    assert json.loads((tmp_path / "world.json").read_text())["discount"] == 0.99
    loaded = FiniteMDP.load(tmp_path / "world.json")
    assert loaded.optimal().performance == process.optimal().performance


def test_very_narrow_figure_has_no_negative_sizes(open_figure: OpenFigure) -> None:
    for name in ("A reward that moves", "A random MDP"):
        page = open_figure(BuildWorld(world=PRESETS[name]), width=200)
        page.set_viewport_size({"width": 120, "height": 844})
        page.evaluate("new Promise((done) => setTimeout(done, 100))")


def test_world_is_printed_after_edits(open_figure: OpenFigure) -> None:
    """Printing does not draw the frames of an earlier run, and `open_figure` fails on errors."""
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("checkbox", name="PG-SM").press("Space")
    page.get_by_role("combobox", name="world").select_option("An empty grid")
    page.get_by_role("button", name="Play").press("Enter")
    before = page.locator(".pu-live-lanes svg").count()
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator(".pu-live-lanes svg").count() == before == 2


def test_play_can_be_paused(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld())
    time = page.get_by_role("slider", name="update t")
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_function("(slider) => slider.value > 0", arg=time.element_handle())
    page.get_by_role("button", name="Pause").press("Enter")
    reached = time.input_value()
    page.wait_for_timeout(200)
    assert 0 < int(time.input_value()) == int(reached) < 160


def test_selected_place_stays_within_the_world(open_figure: OpenFigure) -> None:
    """The selection stays valid if a smaller world is opened; `open_figure` fails on errors."""
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    preset = page.get_by_role("combobox", name="world")
    places = page.locator(".pu-live-square, .pu-live-node")
    for large, small in (("An empty grid", "The jumper"), ("The jumper", "A row of dominoes")):
        preset.select_option(large)
        places.last.evaluate("(node) => node.click()")
        preset.select_option(small)
        assert places.and_(page.locator("[aria-pressed=true]")).count() == 1
    page.get_by_role("button", name="New graph").press("Enter")
    page.get_by_role("button", name="Add a state").press("Enter")
    page.get_by_role("button", name="Undo").press("Enter")
    assert page.get_by_role("button", name=re.compile("^state s")).count() == 2


def focused(page: Page) -> str:
    """Return the name of the control that has the focus."""
    name: str = page.evaluate(
        "(() => { const node = document.activeElement; return node.getAttribute('aria-label')"
        " ?? (node.closest('label') ?? node).firstChild.textContent; })()"
    )
    return name


def test_focus_stays_on_the_control_that_was_used(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    unfold(page)
    page.get_by_role("combobox", name="rows").select_option("4")
    page.get_by_role("button", name="Undo").press("Enter")  # disables the button
    assert focused(page) == "row 1, column 1: empty"
    for name in ("step size", "updates", "rows", "columns"):
        page.get_by_role("combobox", name=name, exact=True).focus()
        for key in ("ArrowUp", "ArrowUp"):
            page.keyboard.press(key)
            assert focused(page) == name
    page.get_by_role("button", name="New graph").press("Enter")
    for name in ("Add a state", "Add an action"):
        page.get_by_role("button", name=name).press("Enter")
        assert focused(page) == name
    page.get_by_role("combobox", name="state", exact=True).focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowUp")
    assert focused(page) == "state"
    for name, text, after in (
        ("name of action 1", "go", "go leads to"),
        ("go leads to", "s1", "reward of go"),
        ("reward of go", "0.5", "remove the action go"),
    ):
        page.get_by_role("textbox", name=name).fill(text)
        page.keyboard.press("Tab")
        assert focused(page) == after
    page.get_by_role("textbox", name="go leads to").fill("s2")
    page.keyboard.press("Shift+Tab")
    assert focused(page) == "name of action 1"
    page.get_by_role("button", name="remove the action a2").press("Enter")
    assert focused(page) == "state s0, start"  # there is no other action to remove


LARGE = (
    f"world=1&grid={'/'.join(['S' + '.' * 11, *['.' * 12] * 10, '.' * 11 + 'G'])}&slip=0.2"
    "&pay=143*1&run=pg-sm,pg-es,di,ce,mce,npg&steps=5000"
)
"""The largest grid, with six updates."""

MOVE = """(steps) => steps.map((t) => {
  const slider = document.querySelector("input[aria-label='update t']");
  slider.value = t;
  const begun = performance.now();
  slider.dispatchEvent(new Event("input", { bubbles: true }));
  return performance.now() - begun;
})"""
"""Move the slider of time to each step; return the milliseconds that the page was busy."""


def test_large_grid_is_drawn_within_a_frame_and_computed_in_slices(
    open_figure: OpenFigure,
) -> None:
    page = open_figure(BuildWorld(world=LARGE))
    page.evaluate(MOVE, [40])
    assert "After 40 updates" in caption(page)
    assert min(page.evaluate(MOVE, [*range(20, 40)])) < 50.0
    page.evaluate(MOVE, [5000])
    assert page.locator("[aria-busy=true]").count() == 1
    assert re.search(r"Update \d+ of 5\u202f000 is computed", page.inner_text(".pu-live-words"))
    page.get_by_role("button", name="row 3, column 5: empty").click()  # the page responds
    assert page.locator("[aria-busy=true]").count() == 1
    page.evaluate(MOVE, [7])
    assert "After 7 updates" in caption(page)
    assert page.get_by_role("slider", name="update t").input_value() == "7"


def test_reward_that_stays_the_same_is_no_change(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), reduced_motion="reduce")
    page.get_by_role("slider", name="update t").press("PageUp")
    page.get_by_role("button", name="Flip its sign").press("Enter")
    assert "no sign to flip" in page.get_by_role("alert").inner_text()
    control = page.get_by_role("slider", name="reward of the cell")
    control.press("ArrowRight")
    assert page.get_by_role("status").first.inner_text() == "The reward of the cell is now 0.05."
    assert "after the reward changed" in caption(page)
    control.press("ArrowLeft")  # restores the reward of the world
    assert "after the reward changed" not in caption(page)
    assert "then=" not in address_of(page)


def test_task_goes_with_the_changes_it_is_about(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    unfold(page)
    for name, value in (("rows", "6"), ("updates", "50")):
        page.get_by_role("combobox", name=name, exact=True).select_option(value)
        assert "have been removed" in page.get_by_role("alert").inner_text()
        assert not page.get_by_text("Which update is back first?").count()
        page.get_by_role("button", name="Undo").press("Enter")
        assert page.get_by_text("Which update is back first?").count() == 1
    page.get_by_role("slider", name="update t").fill("30")
    page.get_by_role("slider", name="reward of the cell").press("ArrowRight")
    assert not page.get_by_text("Which update is back first?").count()
    assert re.search(r"then=30\*0\*0\.05&t=30$", address_of(page))  # there is no task


def test_address_stays_until_something_changes(open_figure: OpenFigure) -> None:
    figure = BuildWorld(world=PRESETS["An empty grid"])
    broken = f"{figure.address}=1&grid=zz"
    page = open_figure(figure, address=broken, reduced_motion="reduce")
    assert "a cell “z”" in page.get_by_role("alert").inner_text()
    assert address_of(page).endswith(f"#{broken}")
    page.evaluate("location.hash = 'how-to-use-it'")
    page.get_by_role("button", name="row 1, column 3: empty").click()
    assert address_of(page).endswith("#how-to-use-it")  # only the selection has changed
    page.get_by_role("button", name="row 1, column 3: empty").press("w")
    assert "grid=..x.G/" in address_of(page)
    page.evaluate("(text) => { location.hash = text; }", f"{figure.address}=1&grid=zz")
    page.wait_for_function("() => document.querySelector('[role=alert]').textContent")
    page.evaluate("(text) => { location.hash = text; }", f"{figure.address}=1&grid=S.G&pay=2*1")
    page.wait_for_function("() => !document.querySelector('[role=alert]').textContent")
    assert page.get_by_role("button", name="row 1, column 3: goal, reward 1").count() == 1
    page.get_by_role("button", name="Undo").press("Enter")  # restores the previous world
    assert "grid=..x.G/" in address_of(page)


def test_step_is_in_the_address(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("slider", name="update t").fill("90")
    assert "after the reward changed" in caption(page)
    words, address = caption(page), address_of(page)
    assert "&t=90" in address
    page.reload()
    page.wait_for_selector(".pu-live-words:not(:empty)")
    assert caption(page) == words
    assert address_of(page) == address
    unfold(page)
    page.get_by_role("combobox", name="step size").select_option("3")
    assert "An update is there when" in caption(page)
    page.get_by_role("button", name="Undo").press("Enter")
    assert caption(page) == words


def test_long_names_stay_within_the_page(open_figure: OpenFigure) -> None:
    name = "W" * 60
    text = f"world=1&graph=2*2&move=1_1__&start=0&end=1&states={name},b&actions={name}x,c"
    page = open_figure(BuildWorld(world=text), width=390, reduced_motion="reduce")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    fill(page, "name of the state", "b")
    page.get_by_role("textbox", name=f"{name}x leads to").fill(f"{name}, {name[:50]}")
    page.keyboard.press("Enter")
    assert len(page.get_by_role("alert").inner_text()) < 150
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for field in ("name of the state", "name of action 1"):
        assert page.get_by_role("textbox", name=field).get_attribute("maxlength") == "40"


def test_fields_read_what_they_write(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("button", name="New graph").press("Enter")
    alert = page.get_by_role("alert")
    for text, pairs in (
        ("s1 99.9999999 %, s0 0.0000001 %", "1*0.999999999,0*9.999999999999999e-10"),
        ("s1 1/3, s0 2/3", "1*0.3333333333333333,0*0.6666666666666666"),
    ):
        fill(page, "a0 leads to", text)
        assert alert.inner_text() == ""
        page.get_by_role("textbox", name="a0 leads to").press("End")
        page.keyboard.type(" ")
        page.keyboard.press("Enter")
        assert alert.inner_text() == ""
        address = address_of(page)
        assert re.search(r"move=([^_]*)_", address)[1].count("*") == 2  # type: ignore[index]
        assert f"move={pairs}_" in address
    fill(page, "a0 leads to", "s0 100 %, s1 0 %")
    page.get_by_role("combobox", name="state", exact=True).select_option("s1")
    page.get_by_role("button", name="Remove this state").press("Enter")
    assert alert.inner_text() == ""
    page.get_by_role("button", name="Undo").press("Enter")
    page.get_by_role("combobox", name="state", exact=True).select_option("s0")
    fill(page, "a0 leads to", "s1 0 %, s0 -1 %")
    assert "There is no state" in alert.inner_text()
    fill(page, "reward of a0", "1/4")
    assert "pay=0*0.25" in address_of(page)
    fill(page, "reward of a0", "0,5")
    assert alert.inner_text() == "“0,5” is not a number. Write it like 0.5, 1e-7 or 1/3."


def test_small_and_large_rewards_have_true_axes(open_figure: OpenFigure) -> None:
    """The optimal policy has the value 20 units, and the uniform policy has the value 15 units."""
    for unit, labels in (("e-11", ["1.5·10⁻¹⁰", "2·10⁻¹⁰"]), ("e3", ["1.5·10⁴", "2·10⁴"])):
        text = f"world=1&graph=1*2&move=0_0&pay=0*2{unit},1*1{unit}&start=0&discount=0.9"
        page = open_figure(BuildWorld(world=text))
        shown = page.locator("svg text").all_text_contents()
        assert [label for label in labels if label in shown] == labels
        assert "0 of 1 right" in page.locator(".pu-live-board").first.inner_text()


def test_screen_readers_hear_each_change(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    status = page.get_by_role("status").first
    page.get_by_role("button", name="New graph").press("Enter")
    fill(page, "a0 leads to", "s0")
    assert status.inner_text() == "a0 in s0 leads to s0."
    fill(page, "reward of a0", "0.5")
    assert status.inner_text() == "The reward of a0 is now 0.5."
    fill(page, "name of action 1", "go")
    assert status.inner_text() == "a0 is now called go."
    page.get_by_role("checkbox", name="end").press("Space")
    assert status.inner_text() == "s0 is now an end."
    page.get_by_role("slider", name="discount").press("ArrowLeft")
    assert status.inner_text() == "The discount is now 0.89."
    unfold(page)
    page.get_by_role("combobox", name="step size").select_option("3")
    assert status.inner_text() == "The step size is now 3."
    heard = set()
    for _ in range(2):
        page.get_by_role("button", name="Undo").press("Enter")
        heard.add(status.evaluate("(node) => node.textContent"))
    assert len(heard) == 2  # a screen reader does not repeat the same text


def test_start_states_are_ticked(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(), reduced_motion="reduce")
    page.get_by_role("button", name="New graph").press("Enter")
    page.get_by_role("button", name="Add a state").press("Enter")
    tick = page.get_by_role("checkbox", name="start")
    tick.press("Space")
    assert "start=0*0.5,2*0.5" in address_of(page)
    tick.press("Space")
    assert "start=0&" in address_of(page)
    page.get_by_role("combobox", name="state", exact=True).select_option("s0")
    tick.press("Space")
    assert "A state must be the start" in page.get_by_role("alert").inner_text()
    assert tick.is_checked()
    page.get_by_role("button", name="Remove this state").press("Enter")
    assert "The start is now s2." in page.get_by_role("status").first.inner_text()  # s1 is terminal


def test_walls_are_painted_by_a_drag(open_figure: OpenFigure) -> None:
    page = open_figure(BuildWorld(world=PRESETS["An empty grid"]), reduced_motion="reduce")
    page.set_viewport_size({"width": 800, "height": 1800})  # the page does not scroll
    page.get_by_role("combobox", name="a click makes").select_option("wall")
    points = [middle(page, f"row 1, column {column}") for column in (1, 2, 3)]
    for i, point in enumerate(points):
        page.mouse.move(*point)
        if i == 0:
            page.mouse.down()
    page.mouse.up()
    assert "grid=xxx../" in address_of(page)
    page.get_by_role("button", name="Undo").press("Enter")
    assert "grid=...../" in address_of(page)
    page.get_by_role("combobox", name="a click makes").select_option("goal")
    page.get_by_role("button", name="row 5, column 5: goal").click()
    page.get_by_role("slider", name="reward of the cell").press("ArrowLeft")
    page.get_by_role("button", name="row 5, column 5: goal, reward 0.95").click()
    assert "pay=24*0.95" in address_of(page)  # a goal cell keeps its reward
