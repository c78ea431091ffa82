"""Every former address and anchor of the book leads to an existing place.

``addresses.json`` lists them, except for numbered anchors, which change with every build. A removed
page of the reference redirects to another page by a script, which is run for each of its anchors.
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
FORMER: dict[str, list[str]] = json.loads((HERE / "addresses.json").read_text("utf-8"))
OLD = json.loads((HERE.parent / "sphinx_ext" / "old_addresses.json").read_text("utf-8"))
REDIRECTS: dict[str, list[str]] = {
    **{f"book/api/{old}.html": pages for old, pages in OLD["pages"].items()},
    **{f"book/{old}.html": pages for old, pages in OLD["split"].items()},
}

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


def run_redirects(node: str, cases: list[tuple[Path, str]]) -> list[str]:
    """Return the targets of the scripts of removed pages, by page and anchor."""
    scripts = {page: page.read_text("utf-8").split("<script>")[1] for page, _ in cases}
    given = [[scripts[page].split("</script>")[0], anchor] for page, anchor in cases]
    done = subprocess.run(
        [node, "-e", FOLLOW], input=json.dumps(given), capture_output=True, text=True, check=True
    )
    return list(json.loads(done.stdout))


def exists(page: Path, target: str) -> bool:
    """Return whether an address relative to a page exists, with its anchor."""
    address, _, anchor = target.partition("#")
    found = page.parent / address
    return found.is_file() and (not anchor or anchor in anchors(found))


def test_former_pages_and_anchors_exist(book: Path) -> None:
    lost = [f"{address}: no such page" for address in FORMER if not (book / address).is_file()]
    for address, old in FORMER.items():
        if address not in REDIRECTS:
            lost += [
                f"{address}#{anchor}" for anchor in old if anchor not in anchors(book / address)
            ]
    assert not lost, "\n".join(lost)


def test_removed_pages_redirect_to_existing_places(book: Path, node: str) -> None:
    pages = {book / old: old for old in REDIRECTS}
    cases = [
        (page, anchor)
        for page, old in pages.items()
        for anchor in ["", "no-such-anchor", *FORMER.get(old, [])]
    ]
    targets = run_redirects(node, cases)
    lost = [
        f"{page.name}#{anchor} leads to {target}"
        for (page, anchor), target in zip(cases, targets, strict=True)
        if not exists(page, target)
    ]
    assert not lost, "\n".join(lost)
    for page, old in pages.items():
        (link,) = re.findall(r'<a href="([^"]+)">', page.read_text("utf-8"))
        assert exists(page, link)
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
def test_browser_follows_the_redirect(
    book: Path, browser: Browser, old: str, anchor: str, page: str, end: str
) -> None:
    tab: Any = browser.new_page()
    tab.goto((book / "book" / "api" / f"{old}.html").as_uri() + f"#{anchor}")
    tab.wait_for_url(f"**/book/{page}.html*")
    arrived = tab.url.partition("#")[2]
    assert arrived.endswith(f".{end}") if end else not arrived
    assert not end or tab.evaluate("document.querySelector(':target').tagName") == "DT"
    tab.close()


def test_removed_pages_are_not_in_the_search_index(book: Path) -> None:
    index = js_index.loads((book / "searchindex.js").read_text("utf-8"))
    assert "book/library" in index["docnames"]
    assert not {old.removesuffix(".html") for old in REDIRECTS} & set(index["docnames"])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("?scope=statement&status=open#the-ledger", "ledger.html?scope=statement&status=open"),
        ("#errata", "errata.html"),
        ("#table-1-recomputed", "table-1.html"),
        ("", "ledger.html"),
    ],
)
def test_split_page_leads_to_its_parts(book: Path, browser: Browser, old: str, new: str) -> None:
    tab: Any = browser.new_page()
    tab.goto((book / "book" / "claims.html").as_uri() + old)
    tab.wait_for_url(f"**/book/{new.partition('?')[0]}*")
    assert tab.url.partition("#")[0].endswith(f"/book/{new}")
    tab.close()
