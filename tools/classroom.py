"""Write sheets of exercises for a class, and keys with the solutions, to ``_build/class``.

Each chapter with exercises has a folder with two notebooks in plain Markdown: ``sheet.ipynb`` has
the exercises with an empty cell below each, and ``key.ipynb`` also has the solutions, whose code is
in cells. Both begin with a cell that imports what the solutions use. If Chromium is installed,
``sheet.pdf`` and ``key.pdf`` are the same to print.
"""

from __future__ import annotations

import argparse
import ast
import html
import json
import re
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import nbformat
import yaml
from browser import ARGUMENTS, chromium
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat.v4 import new_code_cell, new_markdown_cell
from plain import ROOT, Book, install_cell, names_of, plain_markdown
from playwright.sync_api import sync_playwright

sys.path.append(str(ROOT / "sphinx_ext"))

from pu_book import MODULES
from pu_exercises import Chapter, Exercise, chapters
from pu_formulas import typeset

from pu_lib.files import replace_file

TARGET = ROOT / "_build" / "class"
PROGRAM = re.compile(r"^```python\n(.*?)^```\n*", re.DOTALL | re.MULTILINE)
CALL = re.compile(r"`(\w+)\(")
FONTS = MODULES / "mathjax" / "es5" / "output" / "chtml" / "fonts" / "woff-v2"

RULES = re.compile(r"^\| update \|.*\n(?:\|.*\n?)+", re.MULTILINE)
"""The table of the five updates."""
SYMBOLS = r"""At one state $q$ are the values of its actions, $a_q$ is the best action, $\pi$ the
policy, $\mathrm{adv}(a)=q(a)-\sum_b\pi(b)q(b)$ the advantage, and $w$ the step size times the
weight of the state. *The wall* is the edge of the simplex, where DI stops. $n'$ is the number of
updates after which $n$ updates towards another action are undone; a *strict* count asks for one
probability strictly below its start."""
"""What the symbols of the exercises mean."""

STYLE = """
@page { size: A4; margin: 20mm 18mm; }
body { font: 10.5pt/1.5 Georgia, serif; color: #111; }
h1 { font-size: 1.7em; } h3 { margin: 1.6em 0 0.2em; break-after: avoid; }
pre { font-size: 9pt; padding: 0.6em; border: 1px solid #bbb; white-space: pre-wrap; }
table { border-collapse: collapse; } td, th { border: 1px solid #bbb; padding: 0.2em 0.6em; }
.answer { height: 45mm; border-bottom: 1px solid #ccc; break-inside: avoid; }
"""
"""How a sheet is printed: an answer has room for six lines of handwriting."""


class Words(Book):
    """The book, with references as words, because no page of the book is beside a sheet."""

    def link(self, words: str, page: str, anchor: str, here: str) -> str:
        """Return the words alone."""
        return words


def notebook(chapter: Chapter, book: Book, key: bool, repository: str = "") -> dict[str, Any]:
    """Return the sheet or the key of a chapter.

    Parameters
    ----------
    chapter : Chapter
        The chapter.
    book : Book
        The book, which has the numbers of the exercises.
    key : bool
        Whether to add the solutions.
    repository : str
        The public address of the repository. If there is one, the first cell installs the library.
    """
    minutes = sum(each.minutes for each in chapter.exercises)
    many = "One exercise" if len(chapter.exercises) == 1 else f"{len(chapter.exercises)} exercises"
    what = "exercises with solutions" if key else "exercises"
    head = f"# {chapter.title}: {what}\n\n{many}{f', about {minutes} minutes' if minutes else ''}."
    title = f"{head} Numbers of theorems and figures are those of the book."
    cells = [new_markdown_cell(title, id="title")]
    cells += [install_cell(repository)] if repository else []
    cells.append(new_markdown_cell(rules(book), id="rules"))
    cells.append(new_code_cell(f"# Run this cell first.\n{set_up(chapter)}", id="set-up"))
    for each in chapter.exercises:
        words = book.places[each.label].words
        name = f"{words}: {each.title}" if each.title else words
        rated = f"*{each.level}, {each.minutes} minutes*\n\n" if each.level else ""
        text = plain_markdown(each.text, book, each.page)
        cells.append(new_markdown_cell(f"### {name}\n\n{rated}{text}".strip(), id=each.label))
        if key:
            cells += _solution(each, book)
        elif PROGRAM.search(each.solution):
            cells.append(new_code_cell(id=f"{each.label}-answer"))
        else:
            cells.append(new_markdown_cell(id=f"{each.label}-answer"))
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.v4.new_notebook(cells=cells, metadata={"kernelspec": kernel})


def _solution(exercise: Exercise, book: Book) -> Iterator[dict[str, Any]]:
    """Yield the solution of an exercise, its text and its code in separate cells."""
    parts = PROGRAM.split(exercise.solution)  # text and code take turns
    parts[0] = f"**Solution.** {parts[0]}" if parts[0].strip() else "**Solution.**"
    for number, part in enumerate(parts):
        name = f"{exercise.label}-solution-{number}"
        if number % 2:
            yield new_code_cell(part.strip(), id=name)
        elif part.strip():
            text = plain_markdown(part, book, exercise.page)
            yield new_markdown_cell(text.strip(), id=name)


def rules(book: Book) -> str:
    """Return the table of the five updates from the chapter on them, with its symbols explained."""
    text = (ROOT / "book" / "updates.ipynb").read_text("utf-8")
    cells = ["".join(cell["source"]) for cell in json.loads(text)["cells"]]
    (table,) = (match[0] for match in map(RULES.search, cells) if match)
    return f"{plain_markdown(table, book, 'updates')}\n\n{SYMBOLS}"


def set_up(chapter: Chapter) -> str:
    """Return imports from the notebooks of a chapter that its exercises and solutions use."""
    code = [c for e in chapter.exercises for c in PROGRAM.findall(e.solution)]
    read = {name for program in code for name in names_of(program)[1]}
    for each in chapter.exercises:  # names in the text, such as `recursion(...)`
        quoted = re.findall(r"`([^`]+)`", PROGRAM.sub("", f"{each.text} {each.solution}"))
        read |= {name for words in quoted for name in re.findall(r"\w+", words)}
    lines = {"import numpy as np": None, "import pu_lib": None}
    for page in {each.page: None for each in chapter.exercises}:
        for statement in imports(ROOT / "book" / f"{page}.ipynb"):
            for alias in statement.names:
                one = type(statement)(**{**vars(statement), "names": [alias]})
                name = alias.asname or alias.name.partition(".")[0]
                if name in read:
                    lines[ast.unparse(one)] = None
                    read.discard(name)
    module = f"pu_lib.chapters.{chapter.name.replace('-', '_')}.quantities"
    if (ROOT / f"{module.replace('.', '/')}.py").exists():  # what an exercise names, as `f(...)`
        called = {name for each in chapter.exercises for name in CALL.findall(each.text)} & read
        quantities = import_module(module)
        lines |= {f"from {module} import {x}": None for x in called if hasattr(quantities, x)}
    return "\n".join(lines)


def imports(path: Path) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the import statements of a notebook."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            source = re.sub(r"^%.*$", "", "".join(cell["source"]), flags=re.MULTILINE)
            for node in ast.parse(source).body:
                if isinstance(node, (ast.Import, ast.ImportFrom)):
                    yield node


def pages(notebooks: Sequence[dict[str, Any]]) -> list[str]:
    """Return notebooks as pages of HTML to print, with their formulas typeset."""
    formulas: dict[tuple[str, bool], str] = {}

    def collect(latex: str, options: dict[str, Any]) -> str:
        formulas.setdefault((latex, options["display_mode"]), "")
        return formulas[latex, options["display_mode"]]

    markdown = MarkdownIt("commonmark").enable("table")
    markdown.use(dollarmath_plugin, renderer=collect)

    def body(content: dict[str, Any]) -> str:
        return "\n".join(_printed(cell, markdown) for cell in content["cells"])

    for content in notebooks:
        body(content)
    markup, style = typeset(list(formulas))
    formulas |= dict(zip(formulas, markup, strict=True))
    style = style.replace("mathjax/output/chtml/fonts/woff-v2", FONTS.as_uri())
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><style>{STYLE}{style}</style>'
    return [f"{head}<body>{body(content)}</body></html>" for content in notebooks]


def _printed(cell: dict[str, Any], markdown: MarkdownIt) -> str:
    """Return a cell as HTML; without text, it is room for an answer."""
    text = "".join(cell["source"])
    if not text:
        return '<div class="answer"></div>'
    if cell["cell_type"] == "code":
        return f"<pre>{html.escape(text)}</pre>"
    return str(markdown.render(text))


def write(found: Sequence[Chapter], target: Path, program: str | None) -> Iterator[str]:
    """Write sheets and keys, and yield a line about each chapter.

    Parameters
    ----------
    found : sequence of Chapter
        The chapters.
    target : Path
        The folder to write to.
    program : str or None
        The path of Chromium; without it, no file is printed.
    """
    book = Words()
    settings = yaml.safe_load((ROOT / "_config.yml").read_text("utf-8"))
    repository = (settings["repository"]["url"] or "").rstrip("/")
    files = {
        target / chapter.name / name: notebook(chapter, book, name == "key", repository)
        for chapter in found
        for name in ("sheet", "key")
    }
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path.with_suffix(".ipynb"), nbformat.writes(content) + "\n")
    if program is not None:
        print_all(dict(zip(files, pages(list(files.values())), strict=True)), program)
    for chapter in found:
        n, minutes = len(chapter.exercises), sum(each.minutes for each in chapter.exercises)
        yield f"{chapter.name}: {n} exercise{'s' * (n > 1)}, {minutes} minutes"


def print_all(contents: dict[Path, str], program: str) -> None:
    """Print pages of HTML to PDF files with these paths."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
        page = browser.new_page(color_scheme="light")
        for path, content in contents.items():
            file = path.with_suffix(".html")
            file.write_text(content, "utf-8")  # fonts load only into a page with a file address
            page.goto(file.as_uri())
            page.evaluate("document.fonts.ready")
            page.pdf(path=path.with_suffix(".pdf"), format="A4", tagged=True)
            file.unlink()
        browser.close()


def main() -> int:
    """Write the sheets and keys of all chapters, or of those named."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("chapter", nargs="*", help="names of chapters; default: all")
    parser.add_argument("--target", type=Path, default=TARGET, help="folder to write to")
    arguments = parser.parse_args()
    known = {chapter.name: chapter for chapter in chapters() if chapter.exercises}
    if unknown := sorted(set(arguments.chapter) - set(known)):
        print(f"no exercises in {', '.join(unknown)}; expected {', '.join(known)}", file=sys.stderr)
        return 2
    program = chromium()
    for line in write(
        [known[name] for name in arguments.chapter or known], arguments.target, program
    ):
        print(line)
    print(f"Sheets and keys are in {arguments.target}, in a folder for each chapter.")
    if program is None:
        print("PDF files need Chromium: install it, or name it in the variable CHROMIUM.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
