"""Print the article *What forgetting costs* to ``_build/note.pdf``.

The template ``note.md`` contains the text that is only in the article. Three commands, each on a
separate line, insert theorems and proofs from the book's chapters:

- ``{passage} LABEL ...`` inserts the statement with this label, the text before it, and everything
  up to the end of its proof, including text after the last proof of a cell.
- ``{statement} LABEL`` inserts only the statement.
- ``{cell} ID`` inserts a cell without its headings.

``{authors}`` and ``{citation}`` insert the entries of ``CITATION.cff``. Jupyter Book builds the
page with the settings of the book, and Chromium prints it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from browser import ARGUMENTS, chromium
from pdf import print_page
from playwright.sync_api import sync_playwright

from pu_lib.claims.catalog import folder_of

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
TEMPLATE = ROOT / "tools" / "note.md"
FOLDER = ROOT / "_build" / "note"
PAGE = "what-forgetting-costs"
NOTE = ROOT / "_build" / "note.pdf"

STYLE = """
html { --pst-font-size-base: 9.5pt !important; }
#jb-print-toc { display: none; }
.bd-article div.proof:not(.theorem, .lemma) { border: 0; break-inside: auto !important; }
.bd-article div:is(.proof:not(.theorem, .lemma), #proof) { padding: 0 !important; }
.bd-article div.proof:not(.theorem, .lemma) > p:last-child::after { content: " \\25a1"; }
.citation, .citation > p { display: block; margin: 0 0 0.5rem !important; padding: 0; }
.citation > :is(.label, .backrefs) { display: none; } /* works are cited by author and year */
"""
"""Changes to the printed style of the book, such as proofs that break across pages."""

FENCE = re.compile(r"(:{3,})\{([\w:]+)\} ?(.*)")
LABEL = re.compile(r"^:label: (\S+)$", re.MULTILINE)
TITLE = re.compile(r"\{prf:\w+\} (.+)\n:label: (\S+)")
COMMAND = re.compile(r"^\{(passage|statement|cell)\} (.+)$", re.MULTILINE)
REFERENCE = re.compile(r"\{prf:ref\}`([^`<]*?)\s*<([^`>]+)>`")
NUMBERED = re.compile(r"^(Theorem|Proposition|Lemma) (?=\d)")
"""The beginning of a title with a number from the paper."""


class Block(NamedTuple):
    """Part of a cell; `kind` is ``heading``, ``text``, ``proof`` or ``statement``."""

    kind: str
    text: str


def blocks(source: str) -> Iterator[Block]:
    """Yield the parts of a Markdown cell; collapsed proofs are expanded."""
    text: list[str] = []
    lines = iter(source.splitlines())
    for line in lines:
        fence = FENCE.fullmatch(line)
        is_block = fence is not None and (fence[2].startswith("prf:") or fence[2] == "dropdown")
        if not (is_block or line.startswith("#")):
            text.append(line)
            continue
        if "".join(text).strip():
            yield Block("text", "\n".join(text).strip())
        text = []
        if fence is None:
            yield Block("heading", line)
            continue
        inside = []
        for each in lines:
            if each == fence[1]:
                break
            inside.append(each)
        if fence[2] == "dropdown" and fence[3].startswith("Proof"):
            yield from blocks("\n".join(inside))
        else:
            whole = "\n".join([line, *inside, fence[1]])
            kinds = {"prf:proof": "proof", "dropdown": "text"}
            yield Block(kinds.get(fence[2], "statement"), whole)
    if "".join(text).strip():
        yield Block("text", "\n".join(text).strip())


def passages(cells: list[str]) -> Iterator[list[Block]]:
    """Yield the passages of a chapter, each with one or more statements and their proofs."""
    passage: list[Block] = []
    for cell in cells:
        for block in blocks(cell):
            kinds = [each.kind for each in passage]
            if block.kind == "heading":
                yield passage
                passage = []
            elif block.kind == "statement" and "proof" in kinds:
                end = len(kinds) - kinds[::-1].index("proof")
                yield passage[:end]
                passage = [*passage[end:], block]
            else:
                passage.append(block)
        kinds = [each.kind for each in passage]
        # a proof may be in a cell after that of its statement
        if "proof" in kinds or "statement" not in kinds:
            yield passage
            passage = []
    yield passage


class Sources:
    """Parts of the book's chapters that the article can insert."""

    def __init__(self, book: Path = BOOK) -> None:
        self.statements: dict[str, str] = {}
        self.passages: dict[str, str] = {}
        self.cells: dict[str, str] = {}
        self.titles: dict[str, str] = {}
        for path in sorted(book.glob("*.ipynb")):
            markdown = [
                (cell["id"], "".join(cell["source"]))
                for cell in json.loads(path.read_text("utf-8"))["cells"]
                if cell["cell_type"] == "markdown"
            ]
            self.titles[path.name] = markdown[0][1].partition("\n")[0].removeprefix("# ")
            for name, text in markdown:
                parts = [block.text for block in blocks(text) if block.kind != "heading"]
                self.cells[name] = _with_folder("\n\n".join(parts), path.stem)
            for passage in passages([text for _, text in markdown]):
                whole = _with_folder("\n\n".join(block.text for block in passage), path.stem)
                for block in passage:
                    if block.kind == "statement" and (label := LABEL.search(block.text)):
                        self.statements[label[1]] = _with_folder(block.text, path.stem)
                        self.passages[label[1]] = whole

    def insert(self, command: re.Match[str]) -> str:
        """Return the text that a command of the template inserts."""
        kind, names = command[1], command[2].split()
        known = {"passage": self.passages, "statement": self.statements, "cell": self.cells}[kind]
        if missing := [name for name in names if name not in known]:
            raise ValueError(f"note.md: no chapter of the book has the {kind} {missing[0]!r}.")
        return "\n\n".join(known[name] for name in names)


def _with_folder(text: str, chapter: str) -> str:
    """Return the text with the chapter folder added to the names of its formulas."""
    return re.sub(r"<<(?=\w+[:>])", f"<<{folder_of(chapter)}.", text)


def source() -> str:
    """Return the article as a Markdown page.

    Raises
    ------
    ValueError
        If the template names a part that is not in any chapter.
    """
    sources = Sources()
    text = COMMAND.sub(sources.insert, TEMPLATE.read_text("utf-8"))
    text = text.replace("{authors}", ", ".join(_people(_citation()))).replace(
        "{citation}", citation()
    )
    text = re.sub(r"^:(class: ours|nonumber:)\n", "", text, flags=re.MULTILINE)
    titles = {label: title for title, label in TITLE.findall(text)}

    def reference(match: re.Match[str]) -> str:
        title, label = NUMBERED.sub(r"the paper's \1 ", match[1]), match[2]
        if title == titles.get(label):
            title = f"*{title}*"
        return f"{title} ({{prf:ref}}`{label}`)" if label in titles else f"{title} (in the book)"

    def link(match: re.Match[str]) -> str:
        return match[1] or f"the book's chapter *{sources.titles[match[2]]}*"

    text = re.sub(r"(\{prf:\w+\} )(?=(Theorem|Proposition|Lemma) \d)", r"\1The paper's ", text)
    text = REFERENCE.sub(reference, text)
    text = re.sub(r"\[([^]]*)\]\(([\w-]+\.ipynb)\)", link, text)
    text = re.sub(r"\{ref\}`([^`<]*?)\s*<[^`>]+>`", r"\1 (in the book)", text)
    return re.sub(r" \(\{numref\}`(?!fig-note-)[^`]+`\)", "", text)


def _citation() -> dict[str, Any]:
    entries: dict[str, Any] = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    return entries


def _people(entry: dict[str, Any]) -> list[str]:
    """Return the names of the authors of an entry of ``CITATION.cff``."""
    return [
        person.get("name") or f"{person['given-names']} {person['family-names']}"
        for person in entry["authors"]
    ]


def work(entry: dict[str, Any]) -> str:
    """Return an entry of ``CITATION.cff`` as a line of text."""
    parts = [" and ".join(_people(entry)), entry["title"]]
    parts += [entry["conference"]["name"]] if "conference" in entry else []
    parts += [f"Version {entry['version']}"] if "version" in entry else []
    parts += [str(entry["year"])] if "year" in entry else []
    return ". ".join(parts) + "."


def citation() -> str:
    """Return a list of the book and the paper from the entries of ``CITATION.cff``."""
    book = _citation()
    return f"- {work(book)}\n- {work(book['references'][0])}"


def settings() -> dict[str, Any]:
    """Return the settings of the book build with absolute paths for the article build."""
    chosen: dict[str, Any] = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    chosen["logo"] = str(ROOT / chosen["logo"])
    chosen["html"]["favicon"] = str(ROOT / chosen["html"]["favicon"])
    chosen["bibtex_bibfiles"] = [str(ROOT / name) for name in chosen["bibtex_bibfiles"]]
    extensions, options = chosen["sphinx"]["local_extensions"], chosen["sphinx"]["config"]
    chosen["sphinx"]["local_extensions"] = {k: str(ROOT / name) for k, name in extensions.items()}
    options["html_static_path"] = [str(ROOT / name) for name in options["html_static_path"]]
    return chosen


def build() -> int:
    """Write the sources of the article to ``_build/note`` and build its page."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{PAGE}.md").write_text(source(), "utf-8")
    (FOLDER / "_config.yml").write_text(yaml.safe_dump(settings()), "utf-8")
    (FOLDER / "_toc.yml").write_text(f"format: jb-book\nroot: {PAGE}\n", "utf-8")
    program = Path(sys.executable).parent / "jupyter-book"
    command = [str(program), "build", str(FOLDER), "-W", "-n", "--keep-going"]
    return subprocess.run(command, cwd=ROOT, check=False).returncode


def main() -> int:
    """Build the article, print it and show the path of the file."""
    program = chromium()
    if program is None:
        print("The note needs Chromium: install it, or name it in the variable CHROMIUM.")
        return 1
    if code := build():
        return code
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(color_scheme="light")
        page.goto((FOLDER / "_build" / "html" / f"{PAGE}.html").as_uri(), timeout=120_000)
        page.add_style_tag(content=STYLE)
        print_page(page, NOTE)
        browser.close()
    print(f"The article is printed to {NOTE} ({NOTE.stat().st_size / 1e6:.1f} MB).")
    return 0


if __name__ == "__main__":
    sys.exit(main())
