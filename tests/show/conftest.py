"""A page with one figure alone, whose every fault is a failure."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

PAGE = """<!doctype html><html lang="en" data-theme="light"><title>A figure</title>
<style>%s</style><main><h1>A figure</h1><div id="box"></div></main>
<script type="module">
%s
const state = %s;
const heard = {};
const model = {
  get: (key) => state[key],
  set(key, value) {
    state[key] = value;
    (heard[`change:${key}`] ?? []).forEach((act) => act());
  },
  save_changes() {},
  on: (event, act) => (heard[event] ??= []).push(act),
};
render({ model, el: document.getElementById("box") });
</script>"""


@pytest.fixture(scope="session")
def screen(browser: Browser) -> Iterator[BrowserContext]:
    """Return what the pages of the figures share."""
    with browser.new_context() as shared:
        yield shared


@pytest.fixture
def opened(screen: BrowserContext, tmp_path: Path) -> Iterator[Callable[..., Page]]:
    """Open a page with a figure alone; whatever it asks for or complains of is a fault."""
    faults: list[str] = []
    pages: list[Page] = []

    def fault(message: Any) -> None:
        faults.append(str(message))

    def open_page(widget: Any, width: int = 800, **media: Any) -> Page:
        hidden = ("_esm", "_css")
        shown = {key: value for key, value in widget.get_state().items() if key not in hidden}
        state = json.dumps(shown, default=lambda _: None)
        file = tmp_path / f"figure-{len(pages)}.html"
        file.write_text(PAGE % (widget._css, widget._esm, state), encoding="utf-8")
        page = screen.new_page()
        page.set_viewport_size({"width": width, "height": 844})
        page.emulate_media(**media)
        page.on("console", lambda told: fault(told.text) if told.type == "error" else None)
        page.on("pageerror", fault)
        page.on("request", lambda asked: None if asked.url == file.as_uri() else fault(asked.url))
        page.goto(file.as_uri())
        page.wait_for_selector(".pu-live-words:not(:empty)")
        page.wait_for_timeout(100)
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert faults == []
