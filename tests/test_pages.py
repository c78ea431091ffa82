"""Every page of the book works in a browser, over HTTP and from disk, without other hosts."""

import json
import re
import statistics
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import nbformat
import plain
import pytest
import yaml
from playwright.sync_api import Browser, Page, Request, Route
from pu_formulas import formulas_of

from pu_lib.claims import Scope, Status, ledger
from pu_lib.claims.tables import scope_counts, status_counts

ROOT = Path(__file__).parent.parent
EXECUTED = ROOT / "_build" / "jupyter_execute"
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
LARGEST_PAGE, LARGEST_MEDIAN, LARGEST_BOOK = 3_000_000, 1_000_000, 40_000_000
"""Largest sizes in bytes; that of the book does not count the notebooks, which no page loads."""
PAPER = 643
"""Width of a printed line on A4 in pixels; the right margin has another 75 pixels."""

TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
CHAPTERS = [chapter for part in TOC["parts"] for chapter in part["chapters"]]
ENTRIES = [entry for chapter in CHAPTERS for entry in (chapter, *chapter.get("sections", ()))]
PAGES = [TOC["root"], *(e["file"] for e in ENTRIES if "/api/" not in e["file"]), "genindex"]

TOLERATED: dict[str, str] = {}
"""Accessibility rules that pages may violate, with reasons."""


def test_book_builds(book: Path) -> None:
    assert {path.stem for path in book.glob("*.html")} >= {"index", "genindex", "search"}
    names = (book / "genindex.html").read_text("utf-8")
    assert "book/unlearning" not in PAGES or ">Theorem 5 of the paper<" in names


@pytest.fixture(scope="module")
def tab(browser: Browser) -> Iterator[Page]:
    """Yield one browser tab for all visits, so that scripts are compiled only once."""
    with browser.new_context() as context:
        context.add_init_script(AT_ONCE)
        context.add_init_script(IN_A_HURRY)
        context.add_init_script(AXE_OF_KINDS)
        yield context.new_page()


AT_ONCE = """addEventListener('DOMContentLoaded', () => {
  const still = new CSSStyleSheet();
  still.replaceSync('*, *::before, *::after { transition: none !important; }');
  document.adoptedStyleSheets.push(still);
})"""
"""Script that disables transitions, so that colours change immediately."""

IN_A_HURRY = """const {timeout} = AbortSignal;
AbortSignal.timeout = (milliseconds) => timeout.call(AbortSignal, milliseconds / 1000)"""
"""Script that divides timeouts by 1000, as if the machine were slow: no page may depend on them."""

SETTLED = "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done, 70)))"
"""Script that waits until a page has reacted to a change of width: the page receives the event with
its next frame and waits another 60 ms for further changes."""


class Visit:
    """Page that is opened without access to other hosts, and its errors."""

    def __init__(self, tab: Page, address: str, home: str) -> None:
        self.faults: list[str] = []
        self.home = home
        self.page = tab
        self.listeners: dict[Any, Callable[[Any], Any]] = {
            "console": lambda m: m.type == "error" and self.fault(f"console: {m.text}"),
            "pageerror": lambda error: self.fault(f"script: {error}"),
            "request": self._refuse_other_hosts,
            "requestfailed": lambda r: self.fault(f"failed: {r.url[-120:]}"),
            "response": lambda r: r.status >= 400 and self.fault(f"{r.status}: {r.url}"),
        }
        for event, act in self.listeners.items():
            tab.on(event, act)
        tab.emulate_media(media="screen")
        tab.set_viewport_size({"width": 1280, "height": 900})
        from_disk = home.startswith("file:")
        tab.context.set_offline(from_disk)
        tab.unroute_all()
        if not from_disk:
            tab.route("**/*", self._route)
        tab.goto(address)
        tab.wait_for_function(DRAWN, timeout=600_000)

    def _is_at_home(self, request: Request) -> bool:
        return request.url.startswith((self.home, "data:", "blob:"))

    def _refuse_other_hosts(self, request: Request) -> None:
        if not self._is_at_home(request):
            self.fault(f"asks another host: {request.url}")

    def _route(self, route: Route) -> None:
        if self._is_at_home(route.request):
            route.continue_()
        else:
            route.abort()

    def fault(self, sentence: str) -> None:
        self.faults.append(sentence)

    def close(self) -> None:
        for event, act in self.listeners.items():
            self.page.remove_listener(event, act)
        self.page.goto("about:blank")
        assert not self.faults, "\n".join(self.faults)


DRAWN = """() => {
  const kind = 'application/vnd.jupyter.widget-view+json';
  const views = document.querySelectorAll(`script[type="${kind}"]`);
  const drawn = [...views].every((view) => {
    const area = view.parentElement.querySelector('.widget-subarea');
    return area && area.getBoundingClientRect().height > 20;
  });
  return drawn && document.documentElement.classList.contains('pu-settled');
}"""

UNTYPESET = """() => [...document.querySelectorAll('main .math')]
  .filter((box) => /[$\\\\]/.test(box.textContent) || box.querySelector('mjx-merror'))
  .map((box) => box.textContent.trim().slice(0, 80))"""

STRAY = """() => {  // marks of Markdown and TeX, and cells that pandas cuts
  const texts = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  const found = [];
  while (texts.nextNode()) {
    const {data, parentElement} = texts.currentNode;
    if (parentElement.closest('code, pre, script, style, mjx-container, [hidden]')) continue;
    const cut = parentElement.matches('td') && data.endsWith('...');
    if (cut || /[$]|(^|[ (])[*][a-z]+[*]/.test(data)) found.push(data.trim().slice(0, 80));
  }
  return found;
}"""


@pytest.mark.parametrize("name", PAGES)
def test_page_opened_from_disk_works(book: Path, tab: Page, name: str) -> None:
    visit = Visit(tab, (book / f"{name}.html").as_uri(), book.as_uri())
    page = visit.page
    _check_text(visit)
    page.evaluate(WITHOUT_GLYPHS)
    _check_accessibility(visit, name)
    _move_sliders(visit)
    with _unseen(page):
        page.evaluate(AS_IT_WAS)
        page.set_viewport_size({"width": 390, "height": 800})
    _check_width(visit, 390)
    _check_figures(visit)
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    with _unseen(page):
        page.emulate_media(media="print")
        page.set_viewport_size({"width": PAPER, "height": 970})
    _check_width(visit, PAPER)
    _check_tables(visit)
    _check_paper(visit)
    if name == "book/ledger":
        _check_sheets(visit)
    if name == "book/more-on-guide":
        _check_sheet_of_recommendations(visit)
    visit.close()


@contextmanager
def _unseen(page: Page) -> Iterator[None]:
    """Hide the page during several changes, so that it is laid out only once."""
    page.evaluate("document.documentElement.style.display = 'none'")
    yield
    page.evaluate("document.documentElement.style.display = ''; dispatchEvent(new Event('resize'))")


def test_page_is_complete_if_printed_immediately(book: Path, browser: Browser) -> None:
    """A page prints completely before idle callbacks have run and the figure is visible."""
    if "book/more-on-empirical" not in PAGES:
        pytest.skip("the book has no further page on the experiments")
    page = browser.new_page(color_scheme="dark", viewport={"width": 1280, "height": 400})
    page.add_init_script("window.requestIdleCallback = () => {}")
    page.goto((book / "book/more-on-empirical.html").as_uri())
    page.wait_for_selector(".pu-live", state="attached")
    assert not page.evaluate(FADES)
    assert page.evaluate(UNDRAWN) == ["pu-live pu-live-chain"]
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert page.evaluate(UNDRAWN) == []
    assert page.evaluate(FADES), "once the page has settled, the theme may animate what it likes"
    words = page.locator(".pu-live-words")
    assert words.inner_text().startswith("PG-SM reached 95 % of the best return")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert words.inner_text().endswith("press Play.")
    page.close()


@pytest.mark.parametrize("name", PAGES)
def test_identifiers_are_unique(book: Path, name: str) -> None:
    identifiers = Links(book / f"{name}.html").identifiers
    assert [name for name, count in Counter(identifiers).items() if count > 1] == []


@pytest.mark.parametrize("name", PAGES)
def test_formulas_are_typeset_in_the_page(book: Path, name: str) -> None:
    page = (book / f"{name}.html").read_text("utf-8")
    assert formulas_of(page) == []
    assert page.count('class="math ') == page.count("<mjx-container")


def test_statements_are_numbered_by_chapter_and_have_permanent_links(book: Path) -> None:
    title = re.compile(
        r'<div class="proof \w+ ours[^>]* id="([\w-]+)">\s*<p class="admonition-title">'
        r'<span class="caption-number">\w+ (\d+)\.(\d+) </span>.*?href="#([\w-]+)"'
    )
    chapters: dict[str, list[int]] = {}
    for name in PAGES:
        page = (book / f"{name}.html").read_text("utf-8")
        boxes = title.findall(page)
        assert len(boxes) == len(re.findall(r'<div class="proof \w+ ours', page)), name
        assert all(label == anchor for label, _, _, anchor in boxes)
        if boxes:
            (chapter,) = {chapter for _, chapter, _, _ in boxes}
            seen = chapters.setdefault(chapter, [])  # a page "More on" continues its chapter
            seen += [int(number) for _, _, number, _ in boxes]
            assert seen == list(range(1, len(seen) + 1)), name
    assert len(chapters) > 5


def test_statement_can_be_cited(server: str, tab: Page) -> None:
    visit = Visit(tab, f"{server}book/unlearning.html#thm-unlearn-softmax", server)
    box = visit.page.locator("#thm-unlearn-softmax")
    number = box.locator(".caption-number").inner_text().strip()
    box.get_by_role("button", name=f"Cite {number}").click()
    link, bibtex = visit.page.locator("dialog.pu-cite pre").all_inner_texts()
    assert link.endswith("book/unlearning.html#thm-unlearn-softmax")
    assert f"companion: {number}}}" in bibtex
    assert f"url = {{{link}}}" in bibtex
    visit.page.keyboard.press("Escape")
    assert not visit.page.locator("dialog.pu-cite[open]").count()
    visit.close()


def test_numbers_of_boxes_are_unique_and_those_of_plain_notebooks(book: Path) -> None:
    """Theorems and exercises are numbered through a chapter and its page "More on"."""
    expected = {
        label: place.words
        for label, place in plain.Book().places.items()
        if re.match(r"(Exercise|Theorem|Lemma|Proposition|Conjecture) [\d.]+$", place.words)
    }
    found = {}
    for path in book.glob("book/*.html"):
        boxes = re.findall(
            r'<div class="(?:proof|exercise)[^"]* admonition" id="([^"]+)">\s*<p class="admonition-'
            r'title">(?:<a [^>]*></a>)*<span class="caption-number">([^<]+\d)\s*</span>',
            path.read_text("utf-8"),
        )
        found |= dict(boxes)
    assert found == expected
    numbered = Counter(words for words in found.values() if "." in words)
    assert max(numbered.values()) == 1, numbered.most_common(3)


def test_request_to_another_host_is_an_error(tab: Page, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_text(
        '<!doctype html><html class="pu-settled"><img src="http://example.org/a.png"></html>'
    )
    visit = Visit(tab, path.as_uri(), tmp_path.as_uri())
    assert "asks another host: http://example.org/a.png" in visit.faults
    assert any(fault.startswith("failed") for fault in visit.faults), "it was not kept from it"
    visit.faults.clear()
    visit.close()


@pytest.mark.parametrize(
    "storage",
    [
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })",
        "Object.defineProperty(window, 'localStorage', { value: null })",
        "Storage.prototype.setItem = () => { throw new Error('full'); }",
        "",
    ],
    ids=["denied", "missing", "full", "usual"],
)
def test_scripts_can_store_the_colours(browser: Browser, tmp_path: Path, storage: str) -> None:
    """The theme can store the colour mode, whether or not the browser allows storage."""
    early = (ROOT / "web" / "early.js").read_text("utf-8")
    path = tmp_path / "page.html"
    path.write_text(f"<!doctype html><script>{storage};{early}</script>", encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.evaluate("localStorage.getItem('mode')") is None
    page.evaluate("localStorage.setItem('mode', 'dark')")
    assert page.evaluate("localStorage.getItem('mode')") == "dark"
    page.close()


OF_EACH_KIND = ["book/index", "book/domino", "book/empirical", "genindex"]
"""Pages tested over HTTP; the search and the ledger have separate tests."""


@pytest.mark.parametrize("name", [name for name in OF_EACH_KIND if name in PAGES])
def test_page_served_over_http_works(server: str, tab: Page, name: str) -> None:
    """One page of each kind suffices, because pages from disk have more restrictions."""
    visit = Visit(tab, f"{server}{name}.html", server)
    _check_text(visit)
    visit.close()


@pytest.mark.parametrize("disk", [False, True], ids=["http", "disk"])
def test_search_finds_a_theorem_by_its_number(
    server: str, book: Path, tab: Page, disk: bool
) -> None:
    home = book.as_uri() + "/" if disk else server
    visit = Visit(tab, f"{home}search.html?q=Theorem+5", home)
    visit.page.wait_for_selector("#search-results li a")
    titles = visit.page.locator("#search-results li a").all_inner_texts()
    if "book/unlearning" in PAGES:
        first = visit.page.locator("#search-results li a").first.get_attribute("href") or ""
        assert "book/unlearning.html" in first, titles
    if not disk:  # there are no excerpts from disk
        visit.page.wait_for_selector("#search-results p.context")
        excerpts = visit.page.locator("#search-results p.context").all_inner_texts()
        assert [excerpt for excerpt in excerpts if "\\(" in excerpt] == []
        visit.page.wait_for_load_state("networkidle")  # excerpts are read from their pages
    visit.close()


@pytest.mark.parametrize("word", ["constructor", "__proto__", "valueof", "tostring"])
def test_search_for_a_name_that_all_objects_have_ends(server: str, tab: Page, word: str) -> None:
    visit = Visit(tab, f"{server}search.html?q={word}", server)
    visit.page.wait_for_selector("#search-results .search-summary:not(:empty)")
    titles = visit.page.locator("#search-results li a").all_inner_texts()
    assert "undefined" not in titles
    visit.page.wait_for_load_state("networkidle")
    visit.close()


@pytest.mark.parametrize("fragment", ["100%", "%ff", "%E0%A4%A"])
def test_fragment_that_is_not_encoded_is_no_error(server: str, tab: Page, fragment: str) -> None:
    """The page has no errors and still detects content that scrolls after a change."""
    visit = Visit(tab, f"{server}book/index.html#{fragment}", server)
    visit.page.evaluate(
        "document.querySelector('main').insertAdjacentHTML('beforeend',"
        "'<pre id=wide style=\"overflow:auto;width:9rem\">' + 'wide '.repeat(99) + '</pre>')"
    )
    visit.page.wait_for_selector("#wide[tabindex='0']")
    visit.close()


def test_claims_can_be_filtered(server: str, tab: Page) -> None:
    visit = Visit(tab, f"{server}book/ledger.html?status=open", server)
    _check_text(visit)
    shown = visit.page.locator(".ledger-index li:not([hidden])")
    scope, status = (
        visit.page.locator(f".pu-ledger-filter [name={k}]") for k in ("scope", "status")
    )
    visit.page.wait_for_function("document.querySelector('.pu-ledger-filter [name=status]').value")
    assert shown.count() == status_counts()[Status.OPEN]
    status.select_option("")
    assert shown.count() == len(ledger())
    scope.select_option("cell")
    assert shown.count() == sum(scope_counts()[Scope.CELL].values())
    scope.select_option("")
    visit.page.locator(".pu-ledger-filter input").fill("THM:rates/limit")
    assert [shown.nth(i).get_attribute("data-status") for i in range(shown.count())] == ["holds"]
    assert visit.page.locator(".ledger-index > section:visible").count() == 1
    shown.get_by_role("link").click()
    visit.page.wait_for_url("**/ledger-rates.html#thm:rates/limit")
    visit.close()


def test_reading_path_leads_from_page_to_page(book: Path) -> None:
    config = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    path = config["sphinx"]["config"]["pu_path"]
    nav = re.compile(r'<nav class="pu-path".*?</nav>', re.DOTALL)
    link = re.compile(r'<a[^>]* href="([^"#]*)"[^>]*>([^<]*)</a>')
    (opening,) = nav.findall((book / "book" / "index.html").read_text("utf-8"))
    assert link.findall(opening) == [(f"{name}.html", title) for name, title in path.items()]
    names = list(path)
    for place, name in enumerate(names, start=1):
        (foot,) = nav.findall((book / "book" / f"{name}.html").read_text("utf-8"))
        assert f"</a> {place} of {len(path)}: " in foot
        following = names[place : place + 1]
        assert link.findall(foot) == [(f"{after}.html", path[after]) for after in following]


def test_every_link_to_a_claim_leads_to_its_row(book: Path) -> None:
    """Only the filter and links to sections of the ledger lead to the list of all claims."""
    rows = {claim.id: f"ledger-{claim.chapter}.html" for claim in ledger()}
    for name in PAGES:
        for target in Links(book / f"{name}.html").targets:
            address, place = urldefrag(target)
            if unquote(place) in rows and address.startswith("ledger"):
                assert address == rows[unquote(place)], f"{name}: {target}"


def _check_text(visit: Visit) -> None:
    for text in visit.page.evaluate(UNTYPESET):
        visit.fault(f"not typeset: {text}")
    for text in visit.page.evaluate(STRAY):
        visit.fault(f"a mark that should not be seen, or a cell that is cut: {text}")
    if visit.page.locator("main :is(pre, .output)[tabindex='-1']").count():
        visit.fault("the theme's script looks for what scrolls: see `mend_scripts`")


CUT = """() => [...document.querySelectorAll('main mjx-container:not([display], .pu-long)')]
  .filter((box) => {
    const text = box.closest('p, li, dd')?.getBoundingClientRect();
    return text && box.querySelector('mjx-math').getBoundingClientRect().right > text.right + 2;
  })
  .map((box) => box.closest('p, li, dd').textContent.trim().slice(0, 80))"""


BROAD = """() => {
  const page = document.querySelector('main').getBoundingClientRect().right;
  return [...document.querySelectorAll('main table')]
    .filter((table) => [...table.querySelectorAll('tr:first-child > *')]
      .some((cell) => cell.getBoundingClientRect().right > page + 1))
    .map((table) => table.textContent.trim().slice(0, 80));
}"""


def _check_tables(visit: Visit) -> None:
    """Report tables that are wider than their page, which lose columns in print."""
    for text in visit.page.evaluate(BROAD):
        visit.fault(f"a table is broader than its page: {text}")


CONTROLS = """() => [...document.querySelectorAll(
    'main :is(input, select, textarea, button:not(.pu-live-panel))')]
  .filter((box) => box.checkVisibility({visibilityProperty: true}) && box.offsetWidth > 1)
  .map((box) => box.outerHTML.slice(0, 80))"""
"""Script that lists visible controls, except panels of the comic, which are printed as pictures."""

UNDRAWN = """() => [...document.querySelectorAll('.pu-live')]
  .filter((box) => [...box.querySelectorAll('svg')].some((svg) => svg.childElementCount === 0))
  .map((box) => box.className)"""

INVITING = """() => [...document.querySelectorAll('.pu-live-words')].map((box) => box.textContent)
  .filter((words) => /\\b(press Play|Train them)\\b/i.test(words))"""

FADES = """() => [...document.querySelectorAll('body *')]
  .some((box) => getComputedStyle(box).transitionDuration !== '0s')"""

TWICE = """() => [...document.fonts]
  .map((face) => [face.family, face.style, face.weight, face.unicodeRange].join())
  .filter((face, index, all) => all.indexOf(face) !== index)"""

CLIPPED = """() => [...document.querySelectorAll('main mjx-math')]
  .filter((box) => box.getBoundingClientRect().right > innerWidth + 75)
  .map((box) => box.closest('[id]').id)"""


def _check_paper(visit: Visit) -> None:
    """Report faults of printed pages, such as controls, incomplete figures and clipped formulas."""
    for words, script in (
        ("a control is printed", CONTROLS),
        ("an explorer is printed empty", UNDRAWN),
        ("paper invites to press what it has not", INVITING),
        ("a typeface is declared twice, and lost in print", TWICE),
        ("a formula goes on beyond the edge of the sheet, in", CLIPPED),
    ):
        for text in visit.page.evaluate(script):
            visit.fault(f"{words}: {text}")


def _check_sheets(visit: Visit) -> None:
    """Report a fault if the list of all claims is not printed in columns."""
    sheets = visit.page.pdf(format="A4").count(b"/Type /Page\n")
    if not 5 <= sheets <= 14:
        visit.fault(f"printed on {sheets} sheets")


ALONE = """(table) => {
  for (let box = table; box !== document.body; box = box.parentElement)
    for (const other of box.parentElement.children)
      if (other !== box) other.style.setProperty('display', 'none', 'important');
}"""


def _check_sheet_of_recommendations(visit: Visit) -> None:
    """Report a fault if the guide's table does not fit on an A4 or Letter sheet or may be split."""
    table = visit.page.locator("table.advice")
    if table.evaluate("(table) => getComputedStyle(table).breakInside") != "avoid":
        visit.fault("the recommendations may be split")
    table.evaluate(ALONE)
    for size in ("A4", "Letter"):
        sheets = visit.page.pdf(format=size).count(b"/Type /Page\n")
        if sheets != 1:
            visit.fault(f"the recommendations are printed on {sheets} sheets of {size}")


LARGE = """() => [...document.querySelectorAll('.bd-article :is(img, svg, figure, .pu-live)')]
  .filter((box) => box.checkVisibility() && box.getBoundingClientRect().right > innerWidth + 1)
  .map((box) => box.outerHTML.slice(0, 120))"""


OUTSIDE = """() => [...document.querySelectorAll('.pu-live svg text')]
  .filter((box) => box.checkVisibility() && box.getBoundingClientRect().width > 0)
  .filter((box) => {
    const [text, figure] = [box, box.ownerSVGElement].map((it) => it.getBoundingClientRect());
    return text.left < figure.left - 8 || text.right > figure.right + 8;
  })
  .map((box) => box.textContent)"""


SHRUNK = """() => [...document.querySelectorAll('main figure img')]
  .filter((image) => parseFloat(image.style.width) > 560 && !image.closest('picture'))
  .map((image) => image.alt)"""


UNSAID = """() => [...document.querySelectorAll('main :is(table, pre)')]
  .filter((box) => box.checkVisibility() && box.scrollWidth > box.clientWidth + 1)
  .filter((box) => ['auto', 'scroll'].includes(getComputedStyle(box).overflowX))
  .filter((box) => box.tabIndex !== 0 || getComputedStyle(box).backgroundImage === 'none')
  .map((box) => box.textContent.trim().slice(0, 80))"""


def _check_figures(visit: Visit) -> None:
    """Report figures that are wider than the screen of a phone or too small to read.

    Wider tables and code blocks must be marked as scrollable and be reachable by keyboard.
    """
    for text in visit.page.evaluate(UNSAID):
        visit.fault(f"scrolls on a phone without a hint: {text}")
    for text in visit.page.evaluate(LARGE):
        visit.fault(f"broader than a phone: {text}")
    for text in visit.page.evaluate(OUTSIDE):
        visit.fault(f"written beyond the edge of its figure: {text}")
    for text in visit.page.evaluate(SHRUNK):
        visit.fault(f"has no picture for a phone: {text}")


def _check_width(visit: Visit, width: int) -> None:
    visit.page.evaluate(SETTLED)
    for text in visit.page.evaluate(CUT):
        visit.fault(f"a formula is cut on a screen of {width}: {text}")
    wide = visit.page.evaluate("document.documentElement.scrollWidth")
    if wide > width:
        visit.fault(f"scrolls sideways: {wide} pixels wide on a screen of {width}")


# Remove the glyphs of formulas, which are hidden from assistive technology, and their MathML. axe
# finds no violations there, but takes many times as long. The text that is read aloud remains.
WITHOUT_GLYPHS = """() => {
  window.puAway = [];
  window.puSwap = (box, other) => {
    box.replaceWith(other);
    window.puAway.push([box, other]);
  };
  const swap = (selector, make) =>
    document.querySelectorAll(selector).forEach((box) => window.puSwap(box, make(box)));
  swap('mjx-math[aria-hidden=true]', () => new Comment());
  swap('mjx-assistive-mml > math', (box) => new Text(box.textContent));
}"""

AS_IT_WAS = """() => {
  for (const [box, other] of window.puAway.reverse()) other.replaceWith(box);
}"""


# The colour rules are the slowest, because axe measures every box of the page. A page has only a
# few combinations of colours, so axe checks only the first text for each pair of style and
# background. All other boxes are removed, except those that may overlap the text and the figures,
# whose sliders are moved next.
KINDS = """() => {
  const grounds = new Map();
  const ground = (box) => {
    if (box && !grounds.has(box)) {
      const {backgroundColor, backgroundImage, opacity, position} = getComputedStyle(box);
      const plain = [backgroundColor, backgroundImage, opacity, position].join();
      const clear = plain === 'rgba(0, 0, 0, 0),none,1,static';
      grounds.set(box, ground(box.parentElement) + (clear ? '' : `;${plain}`));
    }
    return grounds.get(box) ?? '';
  };
  const hasText = (box) => box.matches('input, select, textarea')
    || [...box.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim());
  const beside = (box) => {
    if (!box.matches('a')) return '';
    const text = box.parentElement;
    return [text.tagName, getComputedStyle(text).color, text.innerText !== box.innerText].join();
  };
  const seen = new Set();
  for (const box of document.body.querySelectorAll('*')) {
    if (!hasText(box) || !box.checkVisibility({opacityProperty: true, visibilityProperty: true}))
      continue;
    const {color, fontSize, fontWeight, textShadow} = getComputedStyle(box);
    const kind = [box.tagName, color, fontSize, fontWeight, textShadow, ground(box), beside(box)]
      .join();
    if (!seen.has(kind)) box.setAttribute('data-pu-kind', '');
    seen.add(kind);
  }
}"""

WITHOUT_TWINS = """() => {
  const above = (box) => ['absolute', 'fixed', 'sticky'].includes(getComputedStyle(box).position)
    && !box.matches('mjx-assistive-mml');
  for (const box of document.body.querySelectorAll('*'))
    if (box.matches('[data-pu-kind], .widget-subarea, style, link') || above(box))
      for (let each = box; each && !each.dataset.puStays; each = each.parentElement)
        each.dataset.puStays = 'yes';
  const prune = (box) => [...box.children].forEach((child) => {
    if (!child.dataset.puStays) window.puSwap(child, new Comment());
    else if (!child.matches('.widget-subarea')) prune(child);
  });
  prune(document.body);
}"""

IN_MODE = "(mode) => { document.documentElement.dataset.theme = mode; }"

RULES = ["color-contrast", "link-in-text-block"]
COLOURS = {"runOnly": {"type": "rule", "values": RULES}}
THE_REST = {
    "runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]},
    "rules": {rule: {"enabled": False} for rule in RULES},
}


def _check_accessibility(visit: Visit, name: str) -> None:
    """Report accessibility violations; in dark mode, check only the colour rules again."""
    rest = _axe(visit.page, THE_REST)
    for mode, violations in [("light", rest), *_colours(visit.page)]:
        for violation in violations:
            places = "; ".join(node["html"][:160] for node in violation["nodes"][:3])
            line = f"{name} ({mode}): {violation['id']} x{len(violation['nodes'])}: {places}"
            if violation["id"] not in TOLERATED:
                visit.fault(line)


def _colours(page: Page) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the colour violations in each mode and leave the page in light mode."""
    for mode in ("light", "dark"):
        page.evaluate(IN_MODE, mode)
        page.evaluate(KINDS)
    page.evaluate(WITHOUT_TWINS)
    for mode in ("dark", "light"):
        page.evaluate(IN_MODE, mode)
        yield mode, _axe(page, COLOURS)


AXE_OF_KINDS = f"""{AXE.read_text()};
axe.configure({{rules: [{{id: 'color-contrast', selector: '[data-pu-kind]'}}]}});"""


def _axe(page: Page, rules: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the violations that axe finds."""
    options = {**rules, "resultTypes": ["violations"], "preload": False}
    return list(page.evaluate("async (options) => (await axe.run(options)).violations", options))


@pytest.mark.parametrize("pale", [False, True])
def test_low_contrast_among_many_similar_texts_is_detected(tab: Page, pale: bool) -> None:
    rows = ["<p>A text.</p>"] * 50
    if pale:
        rows[40] = '<div style="background: #eee"><p style="color: #999">A text.</p></div>'
    assert _colours_of(tab, "".join(rows)) == ["light color-contrast", "dark color-contrast"] * pale
    assert tab.locator("p").count() == 1 + pale
    assert tab.locator("[data-pu-kind]").count() == 1 + pale


def test_low_contrast_in_dark_mode_is_detected(tab: Page) -> None:
    style = "<style>[data-theme=dark] .late { background: #fff; color: #ddd; }</style>"
    rows = "<p>A text.</p>" * 9 + "<p class=late>A text.</p>"
    assert _colours_of(tab, style + rows) == ["dark color-contrast"]


def _colours_of(tab: Page, content: str) -> list[str]:
    """Return the mode and rule of each violation on a page with black text on white."""
    tab.set_content(f"<body style='color: #000; background: #fff'><main>{content}</main></body>")
    tab.evaluate(WITHOUT_GLYPHS)
    violations = [f"{mode} {each['id']}" for mode, faults in _colours(tab) for each in faults]
    return sorted(violations, reverse=True)


def _move_sliders(visit: Visit) -> None:
    page = visit.page
    selector = "main .widget-subarea input[type=range]"
    for index in range(page.locator(selector).count()):
        handle = page.locator(selector).nth(index)
        handle.evaluate(REMEMBER)
        handle.focus()
        for key in ["ArrowRight"] * 3 + ["ArrowLeft"] * 3 + ["Home", "End"]:
            page.keyboard.press(key)
            if page.evaluate(HAS_CHANGED, LONGEST_FRAME):
                break
        else:
            visit.fault(f"slider {index + 1} of the page moves and changes no picture")


LONGEST_FRAME = 200
"""Milliseconds within which a picture must follow its slider."""

REMEMBER = """(handle) => {
  const box = handle.closest('.widget-subarea');
  window.puPicture = () => [
    ...[...box.querySelectorAll('svg')].map((drawing) => drawing.innerHTML),
    ...[...box.querySelectorAll('canvas')].map((canvas) => canvas.toDataURL()),
    // the caption and the numbers of an explorer
    ...[...box.querySelectorAll('.pu-live-words, .pu-live-key, .pu-live td')]
      .map((words) => words.innerText),
  ].join();
  window.puBefore = window.puPicture();
}"""

HAS_CHANGED = """async (longest) => {
  const end = performance.now() + longest;
  do {
    await new Promise((resolve) => setTimeout(resolve, 20));
    if (window.puPicture() !== window.puBefore) return true;
  } while (performance.now() < end);
  return false;
}"""


class Links(HTMLParser):
    """Parser for the link targets and anchors of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.targets: set[str] = set()
        self.places: set[str] = set()
        self.identifiers: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        for key, value in attributes:
            if value and key in ("href", "src"):
                self.targets.add(value)
            if value and key in ("id", "name"):
                self.places.add(value)
            if value and key == "id":
                self.identifiers.append(value)


def test_links_have_targets(book: Path) -> None:
    pages = {book / f"{name}.html": Links(book / f"{name}.html") for name in [*PAGES, "search"]}
    lost = set()
    for path, links in pages.items():
        for target in links.targets:
            address, place = urldefrag(target)
            if urlsplit(address).scheme or target.startswith("//"):
                continue
            file = (path.parent / unquote(urlsplit(address).path)).resolve() if address else path
            if not file.exists():
                lost.add(f"{path.name}: {target}")
            elif re.match(r"[a-z-]+=1&", place):
                continue  # the settings of a figure, which tests/explorers opens
            elif place and file in pages and unquote(place) not in pages[file].places:
                lost.add(f"{path.name}: {target} (no such place)")
    assert not lost, "\n".join(sorted(lost))


def test_page_sizes_are_limited(book: Path) -> None:
    sizes = {name: (book / f"{name}.html").stat().st_size for name in PAGES}
    heavy = {name: size for name, size in sizes.items() if size > LARGEST_PAGE}
    assert not heavy, heavy
    assert statistics.median(sizes.values()) <= LARGEST_MEDIAN, sizes
    files = [path for path in book.rglob("*") if path.is_file() and path.suffix != ".ipynb"]
    assert sum(path.stat().st_size for path in files) <= LARGEST_BOOK


def test_executed_notebooks_have_no_widget_errors(book: Path) -> None:
    for path in sorted(EXECUTED.glob("book/*.ipynb")):
        notebook = nbformat.read(path, 4)
        state = notebook.metadata.get("widgets", {}).get(
            "application/vnd.jupyter.widget-state+json", {}
        )
        for widget in state.get("state", {}).values():
            for output in widget.get("state", {}).get("outputs", ()):
                assert output.get("output_type") != "error", f"{path.name}: {json.dumps(output)}"


def test_pictures_have_alt_text(book: Path) -> None:
    for path in sorted(EXECUTED.glob("book/*.ipynb")):
        for cell in nbformat.read(path, 4).cells:
            drawn = any("image/png" in output.get("data", {}) for output in cell.get("outputs", ()))
            described = cell.metadata.get("mystnb", {}).get("image", {}).get("alt")
            assert described or not drawn, f"{path.name}: no words for {cell.source!r}"
    for page in sorted((book / "book").glob("*.html")):
        for image in re.findall(r"<img\b[^>]*>", page.read_text(encoding="utf-8")):
            assert re.search(r"""\balt=\\?["'][^"'\\]""", image), f"{page.name}: {image[:200]}"
