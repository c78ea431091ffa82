"""Open pages with a single figure, on which every error fails the test."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from playwright.sync_api import Browser, Page

AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
PAGE = """<!doctype html><html lang="en" data-theme="light"><meta charset="utf-8">
<title>A figure</title><style>%s</style><main><h1>A figure</h1></main>%s"""
FIGURE = """<script type="module">
%s
const state = %s;
const listeners = {};
const model = {
  get: (key) => state[key],
  set(key, value) {
    state[key] = value;
    (listeners[`change:${key}`] ?? []).forEach((act) => act());
  },
  save_changes() {},
  on: (event, act) => (listeners[event] ??= []).push(act),
};
(window.models ??= []).push(model);
const el = document.createElement("div");
document.querySelector("main").append(el);
figure.render({ model, el });
</script>"""
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
"""Two frames: a figure measures its width in the first and is drawn in the second."""


@pytest.fixture(scope="session")
def tab(browser: Browser) -> Iterator[Page]:
    """Return the browser tab that shows the figures."""
    page = browser.new_page()
    yield page
    page.close()


@pytest.fixture
def redraw(tab: Page) -> Callable[[], None]:
    """Return a function that waits until the figure has drawn the last change."""
    return lambda: tab.evaluate(DRAWN)


@pytest.fixture
def open_figure(tab: Page, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a page; requests, errors and console errors fail the test."""
    faults: list[str] = []
    file = tmp_path / "figure.html"

    def console(message: Any) -> None:
        if message.type == "error":
            faults.append(message.text)

    def request(sent: Any) -> None:
        if re.split("[?#]", sent.url)[0] != file.as_uri():
            faults.append(sent.url)

    listeners = {
        "console": console,
        "pageerror": lambda e: faults.append(str(e)),
        "request": request,
    }

    def script(widget: Any) -> str:
        hidden = ("_esm", "_css")
        shown = {key: value for key, value in widget.get_state().items() if key not in hidden}
        module = widget._esm.replace("export default", "const figure =")
        return FIGURE % (module, json.dumps(shown, default=lambda _: None))

    def open_page(
        *widgets: Any,
        width: int = 800,
        reduced_motion: Literal["no-preference", "reduce"] = "no-preference",
        address: str = "",
        query: str = "",
    ) -> Page:
        scripts = "".join(map(script, widgets))
        file.write_text(PAGE % (widgets[0]._css, scripts), encoding="utf-8")
        tab.set_viewport_size({"width": width, "height": 844})
        tab.emulate_media(reduced_motion=reduced_motion)
        tab.goto("about:blank")  # a new fragment alone does not reload the page
        tab.goto(f"{file.as_uri()}{query}{address and '#'}{address}")
        tab.wait_for_selector(".pu-live-words:not(:empty), .pu-ledger-filter p:not(:empty)")
        tab.evaluate(DRAWN)
        return tab

    for event, act in listeners.items():
        tab.on(event, act)
    yield open_page
    for event, act in listeners.items():
        tab.remove_listener(event, act)
    tab.goto("about:blank")
    assert faults == []


@pytest.fixture
def violations_of() -> Callable[[Page], list[str]]:
    """Return a function that lists the accessibility rules that a page violates."""

    def run_axe(page: Page) -> list[str]:
        axe = AXE.read_text() + "; window.axe = window.axe || module.exports; 0"
        page.evaluate(axe)  # the 0 avoids returning the axe object
        options = {"runOnly": ["wcag2a", "wcag2aa", "wcag21aa"], "resultTypes": ["violations"]}
        violations = page.evaluate("async (x) => (await axe.run(x)).violations", options)
        return [violation["id"] for violation in violations]

    return run_axe
