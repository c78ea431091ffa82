"""Every address and anchor that the book once had leads somewhere in the built book.

``addresses.json`` has them; numbered anchors, which Sphinx gives out anew in every build, are left
out. A page of the reference that was removed goes on to another page by a script, which runs here
for each of its anchors.
"""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser
from sphinx.search import js_index

HERE = Path(__file__).parent
BEFORE: dict[str, list[str]] = json.loads((HERE / "addresses.json").read_text("utf-8"))
REDIRECTS: dict[str, list[str]] = json.loads(
    (HERE.parent / "sphinx_ext" / "old_addresses.json").read_text("utf-8")
)["pages"]

FOLLOW = """
const cases = JSON.parse(require("fs").readFileSync(0, "utf8"));
const follow = ([script, anchor]) => {
  let target = null;
  const location = {hash: anchor && "#" + anchor, replace: (to) => { target = to; }};
  new Function("location", script)(location);
  return target;
};
console.log(JSON.stringify(cases.map(follow)));
"""


@cache
def anchors(page: Path) -> set[str]:
    """Return the identifiers in a page."""
    return set(re.findall(r'\sid="([^"]+)"', page.read_text("utf-8")))


def follow(node: str, cases: list[tuple[Path, str]]) -> list[str]:
    """Return where the scripts of removed pages lead, by page and anchor."""
    scripts = {page: page.read_text("utf-8").split("<script>")[1] for page, _ in cases}
    given = [[scripts[page].split("</script>")[0], anchor] for page, anchor in cases]
    done = subprocess.run(
        [node, "-e", FOLLOW], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def is_there(page: Path, target: str) -> bool:
    """Return whether an address relative to a page exists, with its anchor."""
    address, _, anchor = target.partition("#")
    found = page.parent / address
    return found.is_file() and (not anchor or anchor in anchors(found))


def test_every_page_and_anchor_of_before_is_there(book: Path) -> None:
    lost = [f"{address}: no such page" for address in BEFORE if not (book / address).is_file()]
    for address, old in BEFORE.items():
        if address.removeprefix("book/api/").removesuffix(".html") not in REDIRECTS:
            lost += [
                f"{address}#{anchor}" for anchor in old if anchor not in anchors(book / address)
            ]
    assert not lost, "\n".join(lost)


def test_every_removed_page_and_each_of_its_anchors_leads_to_a_place(book: Path, node: str) -> None:
    pages = {book / "book" / "api" / f"{old}.html": old for old in REDIRECTS}
    cases = [
        (page, anchor)
        for page, old in pages.items()
        for anchor in ["", "no-such-anchor", *BEFORE.get(f"book/api/{old}.html", [])]
    ]
    targets = follow(node, cases)
    lost = [
        f"{page.name}#{anchor} leads to {target}"
        for (page, anchor), target in zip(cases, targets, strict=True)
        if not is_there(page, target)
    ]
    assert not lost, "\n".join(lost)
    for page, old in pages.items():
        (link,) = re.findall(r'<a href="([^"]+)">', page.read_text("utf-8"))
        assert is_there(page, link)
        assert f'content="0; url={link}"' in page.read_text("utf-8")
        assert (page.parent / link.partition("#")[0]).resolve() == (
            book / "book" / f"{REDIRECTS[old][0]}.html"
        )


EXAMPLES = [
    ("theory.unlearning", "pu_lib.theory.unlearning.count", "api/exact-counts", "quantities.count"),
    ("mdp", "pu_lib.mdp.FiniteMDP.optimal", "library", "mdp.FiniteMDP.optimal"),
    ("theory.cycles", "pu_lib.theory.cycles.Orbit.drift", "api/chapter-quantities", "cycles.Orbit"),
    ("verdict", "pu_lib.verdict.Verdict.margin", "library", "recorder.Finding"),
    ("empirical.store", "pu_lib.empirical.store.Cell", "api/experiments", "cells.Cell"),
    ("wording", "pu_lib.wording.number", "library", ""),
]


@pytest.mark.parametrize(("old", "anchor", "page", "end"), EXAMPLES)
def test_a_browser_arrives_at_the_entry(
    book: Path, browser: Browser, old: str, anchor: str, page: str, end: str
) -> None:
    tab: Any = browser.new_page()
    tab.goto((book / "book" / "api" / f"{old}.html").as_uri() + f"#{anchor}")
    tab.wait_for_url(f"**/book/{page}.html*")
    arrived = tab.url.partition("#")[2]
    assert arrived.endswith(f".{end}") if end else not arrived
    assert not end or tab.evaluate("document.querySelector(':target').tagName") == "DT"
    tab.close()


def test_removed_pages_are_not_in_the_search(book: Path) -> None:
    index = js_index.loads((book / "searchindex.js").read_text("utf-8"))
    assert "book/library" in index["docnames"]
    assert not {f"book/api/{old}" for old in REDIRECTS} & set(index["docnames"])
