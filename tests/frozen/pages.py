"""The addresses, anchors and texts of the built book, as far as they have to stay."""

import re
from html.parser import HTMLParser
from pathlib import Path

WITHOUT_TEXT = ("book/api/", "book/trust.html", "genindex.html", "py-modindex.html", "search.html")
"""Pages of which address and anchors are compared alone.

The reference and the indices name modules. The page on trust tells figures that are measured of the
code itself: how many tests and lines there are, and how long they took.
"""

SKIPPED = {"script", "style", "svg", "button", "nav", "mjx-math", "template"}
SKIPPED_CLASSES = {"cell_input", "highlight", "code", "headerlink"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "wbr"}
INLINE = {
    "a", "abbr", "b", "cite", "code", "del", "em", "i", "kbd", "math", "mi", "mn", "mo", "mrow",
    "ms", "mspace", "mstyle", "msub", "msubsup", "msup", "mfrac", "msqrt", "mroot", "mover",
    "munder", "munderover", "mpadded", "mphantom", "mtext", "mjx-assistive-mml", "mjx-container",
    "q", "s", "semantics", "small", "span", "strong", "sub", "sup", "time", "u", "var", "wbr",
}  # fmt: skip
BETWEEN = {"msub": "_", "msup": "^", "msubsup": "_^", "mfrac": "/"}
"""What is written between the parts of a formula, so that an index is not taken for a factor."""
MEASURED, POWER = "What was measured", "What it makes of other claims"
ANCHOR = re.compile(r"<[a-zA-Z][^<>]*?\sid=\"(?!codecell\d+\")([^\"]+)\"")
ARTICLE = '<article class="bd-article"'
MATHS = re.compile(r"<mjx-math .*?</mjx-math>", re.DOTALL)


class Reader(HTMLParser):
    """Read the paragraphs of the main article of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.paragraphs: list[str] = []
        self._open: list[tuple[str, str]] = []
        self._parts: list[int] = []
        self._text: list[str] = []
        self._tables: list[int] = []
        self._skip_entry = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in INLINE:
            self._end_paragraph()
        if tag in VOID:
            return
        if self._open:
            parent, mode = self._open[-1]
            between = BETWEEN.get(parent, "")
            if mode == "read" and 0 < self._parts[-1] <= len(between):
                self._text.append(between[self._parts[-1] - 1])
            self._parts[-1] += 1
        if tag == "table":
            self._tables.append(len(self.paragraphs))
        classes = set((dict(attrs).get("class") or "").split())
        self._open.append((tag, self._mode(tag, classes)))
        self._parts.append(0)

    def _mode(self, tag: str, classes: set[str]) -> str:
        """Say whether an element is read or skipped, or only its summary is read."""
        before = self._open[-1][1] if self._open else "outside"
        if before == "outside":
            return "read" if tag == "article" and "bd-article" in classes else "outside"
        if before == "summary":
            return "read" if tag == "summary" else "skip"
        if before == "skip" or tag in SKIPPED or classes & SKIPPED_CLASSES:
            return "skip"
        if tag == "dd" and self._skip_entry:
            self._skip_entry = False
            return "skip"
        if tag == "details" and "how" in classes:
            # A claim with its verdict opens to how it was checked: its own line stays.
            return "summary" if "verdict" in classes else "skip"
        return "read"

    def handle_endtag(self, tag: str) -> None:
        if tag not in INLINE:
            self._end_paragraph()
        if tag in VOID or tag not in [name for name, _ in self._open]:
            return
        while True:
            self._parts.pop()
            if self._open.pop()[0] == tag:
                break
        if tag == "dt" and self.paragraphs[-1:] == [MEASURED]:
            self.paragraphs.pop()
            self._skip_entry = True
        if tag == "table":
            start = self._tables.pop()
            if POWER in self.paragraphs[start:]:
                del self.paragraphs[start:]

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1][1] == "read":
            self._text.append(data)

    def _end_paragraph(self) -> None:
        text = " ".join("".join(self._text).split())
        self._text.clear()
        if text:
            self.paragraphs.append(text)


def read_page(path: Path, with_text: bool) -> dict[str, list[str]]:
    """Return the anchors and the paragraphs of one page of the built book."""
    page = MATHS.sub("", path.read_text("utf-8"))
    found = {"anchors": sorted(set(ANCHOR.findall(page)))}
    if with_text:
        reader = Reader()
        reader.feed(page[max(page.find(ARTICLE), 0) :])
        reader.close()
        found["text"] = reader.paragraphs
    return found


def addresses(html: Path) -> list[str]:
    """Return the addresses of the pages of a built book."""
    found = (path.relative_to(html).as_posix() for path in html.rglob("*.html"))
    return sorted(name for name in found if not name.startswith(("_static/", "_sources/")))


def has_text(address: str) -> bool:
    """Return whether the text of a page is compared."""
    return not address.startswith(WITHOUT_TEXT)


def read_book(html: Path) -> dict[str, dict[str, list[str]]]:
    """Return the anchors and the paragraphs of every page."""
    return {name: read_page(html / name, has_text(name)) for name in addresses(html)}
