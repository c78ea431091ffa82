"""Print the chapter on more than two actions as a separate document, ``_build/note.pdf``.

Chromium prints the page of the built book. Before that, the cited works and a section on how to
cite the chapter are appended, and links to other pages of the book are replaced by their text.
"""

from __future__ import annotations

import html
import re
import sys
from pathlib import Path
from typing import Any

import yaml
from browser import ARGUMENTS, chromium
from pdf import print_page
from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
PAGES = ROOT / "_build" / "html" / "book"
CHAPTER = "more-than-two-actions.html"
BIBLIOGRAPHY = "bibliography.html"
NOTE = ROOT / "_build" / "note.pdf"

# Return the identifiers of the cited entries. Sphinx numbers identifiers per page, so the same
# identifier may exist in the chapter. The document therefore adds a prefix to those of entries.
CITED = """(page) => [...new Set([...document.querySelectorAll(`.bd-article a[href^="${page}#"]`)]
  .map((link) => link.hash.slice(1)))]"""

ENTRIES = """(names) => [...document.querySelectorAll('.citation')]
  .filter((entry) => names.includes(entry.id))
  .map((entry) => {
    entry.querySelector('.label').remove(); // works are cited by author and year
    return [entry.id, entry.outerHTML];
  })"""

COMPLETE = """([page, ends]) => {
  const article = document.querySelector('.bd-article');
  for (const link of article.querySelectorAll('a[href]')) {
    const target = link.getAttribute('href');
    if (target.startsWith(page + '#')) link.href = '#reference-' + link.hash.slice(1);
    else if (!/^(#|https?:)/.test(target)) link.replaceWith(...link.childNodes);
  }
  (article.querySelector('section') ?? article).insertAdjacentHTML('beforeend', ends);
}"""


def work(entry: dict[str, Any]) -> str:
    """Return an entry of ``CITATION.cff`` as a line of HTML."""
    names = [
        person.get("name") or f"{person['given-names']} {person['family-names']}"
        for person in entry["authors"]
    ]
    parts = [" and ".join(names), entry["title"]]
    parts += [entry["conference"]["name"]] if "conference" in entry else []
    parts += [f"Version {entry['version']}"] if "version" in entry else []
    parts += [str(entry["year"])] if "year" in entry else []
    return ". ".join(html.escape(part) for part in parts) + "."


def citation() -> str:
    """Return the section on how to cite the chapter, from the entries of ``CITATION.cff``."""
    book = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return (
        '<section id="how-to-cite"><h2>How to cite</h2>'
        "<p>This is a chapter of the book below. Cite the book for what this chapter adds, and the "
        "paper for its own results.</p>"
        f"<ul><li>{work(book)}</li><li>{work(book['preferred-citation'])}</li></ul></section>"
    )


def references(entries: list[tuple[str, str]], cited: list[str]) -> str:
    """Return the section that lists the cited works.

    Raises
    ------
    SystemExit
        If the bibliography lacks a work that the chapter cites.
    """
    missing = sorted(set(cited) - {name for name, _ in entries})
    if missing:
        raise SystemExit(
            f"The bibliography has no entry {', '.join(missing)} that the chapter cites: "
            "the pages are from different builds. Run `make book`."
        )
    listed = "".join(re.sub(r'\bid="', 'id="reference-', text, count=1) for _, text in entries)
    return f'<section id="references"><h2>References</h2>{listed}</section>'


def complete(page: Page, bibliography: Page) -> None:
    """Append the cited works and the citation to a chapter, and remove links to other pages.

    Raises
    ------
    SystemExit
        If the bibliography lacks a work that the chapter cites.
    """
    cited = page.evaluate(CITED, BIBLIOGRAPHY)
    entries = bibliography.evaluate(ENTRIES, cited)
    page.evaluate(COMPLETE, [BIBLIOGRAPHY, references(entries, cited) + citation()])


def main() -> int:
    """Complete the page, print it and show the path of the file."""
    program = chromium()
    if program is None:
        print("The note needs Chromium: install it, or name it in the variable CHROMIUM.")
        return 1
    absent = [name for name in (CHAPTER, BIBLIOGRAPHY) if not (PAGES / name).is_file()]
    if absent:
        print(f"The note is printed from the built book, which lacks {' and '.join(absent)}.")
        print("Run `make book` first.")
        return 1
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(color_scheme="light")
        page.goto((PAGES / CHAPTER).as_uri(), timeout=120_000)
        other = browser.new_page()
        other.goto((PAGES / BIBLIOGRAPHY).as_uri())
        complete(page, other)
        print_page(page, NOTE)
        browser.close()
    print(f"The chapter is printed to {NOTE} ({NOTE.stat().st_size / 1e6:.1f} MB).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
