"""Find the exercises of the book, and insert tables of pages and exercises for teachers.

An exercise is a directive ``exercise`` whose title ends in its difficulty and time, such as
``DI by hand (easy, 10 minutes)``. Its solution is a directive ``solution`` in the same notebook.
``tools/classroom.py`` writes sheets and keys from what `exercises` finds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from pu_notebooks import ROOT
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

EXERCISE = re.compile(
    r"^(:{3,})\{exercise\} *([^\n]*)\n:label: (\S+)\n(.*?)^\1$", re.DOTALL | re.MULTILINE
)
SOLUTION = re.compile(
    r"^(:{3,})\{solution\} (\S+)\n(?::\w+:[^\n]*\n)*(.*?)^\1$", re.DOTALL | re.MULTILINE
)
RATED = re.compile(r"(.+) \((easy|medium|hard), (\d+) minutes\)")
HIDDEN = re.compile(
    r"^(:{3,})\{(?:dropdown|solution|exercise|index)\}.*?^\1$"
    r"|^(:{3,})\{admonition\}[^\n]*\n:class: paper dropdown.*?^\2$"
    r"|^```.*?^```$|^:[\w-]+:[^\n]*$|^\([^\n]*\)=$|\$[^$]*\$|\{[\w:-]+\}",
    re.DOTALL | re.MULTILINE,
)
"""What a reader need not read: folds, exercises, options, formulas and the names of roles."""
EXPLORER = re.compile(r"^from pu_lib\.explorers[.\w]* import (?!LedgerFilter)", re.MULTILINE)
WORDS_A_MINUTE = 120
"""Reading speed for a text with formulas and figures."""
MINUTES_TO_PLAY = 3
"""Time for an explorer, with the guess."""


class Exercise(NamedTuple):
    """An exercise of a page. Without a rating, `level` is empty and `minutes` is 0."""

    page: str
    label: str
    title: str
    level: str
    minutes: int
    text: str
    solution: str


class Chapter(NamedTuple):
    """A chapter with the page *More on ...* that belongs to it."""

    name: str
    title: str
    pages: tuple[str, ...]
    read: int
    play: int
    exercises: tuple[Exercise, ...]


def chapters(root: Path = ROOT) -> Iterator[Chapter]:
    """Yield the listed notebooks, with the minutes to read and play them and their exercises.

    Parameters
    ----------
    root : Path
        The folder that contains ``_toc.yml`` and ``book``.
    """
    contents = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    for entry in (entry for part in contents["parts"] for entry in part["chapters"]):
        files = [each["file"] for each in (entry, *entry.get("sections", ()))]
        notebooks = [file for file in files if (root / f"{file}.ipynb").exists()]
        if files[0] not in notebooks:
            continue
        pages = tuple(file.removeprefix("book/") for file in notebooks)
        first = _sources(root, pages[0])
        text, code = (
            "\n\n".join(s for kind, s in first if kind == k) for k in ("markdown", "code")
        )
        words = len(re.findall(r"[A-Za-z][\w'’-]*", HIDDEN.sub(" ", text) + code))
        title = re.search(r"^# (.+)$", text, re.MULTILINE)
        yield Chapter(
            pages[0],
            title[1] if title else pages[0],
            pages,
            5 * max(1, round(words / WORDS_A_MINUTE / 5)),
            MINUTES_TO_PLAY * len(EXPLORER.findall(code)),
            tuple(found for page in pages for found in exercises(root, page)),
        )


def exercises(root: Path, page: str) -> Iterator[Exercise]:
    """Yield the exercises of a notebook of the book."""
    text = "\n\n".join(source for kind, source in _sources(root, page) if kind == "markdown")
    solutions = {label: body.strip() for _, label, body in SOLUTION.findall(text)}
    for _, title, label, body in EXERCISE.findall(text):
        rated = RATED.fullmatch(title)
        name, level, minutes = rated.groups() if rated else (title, "", "0")
        yield Exercise(
            page, label, name, level, int(minutes), body.strip(), solutions.get(label, "")
        )


def _sources(root: Path, page: str) -> list[tuple[str, str]]:
    """Return the kind and the source of each cell of a notebook that the book shows."""
    notebook = json.loads((root / "book" / f"{page}.ipynb").read_text("utf-8"))
    return [
        (cell["cell_type"], "".join(cell["source"]))
        for cell in notebook["cells"]
        if not {"remove-cell", "hide-output"} & set(cell["metadata"].get("tags", ()))
    ]


def page_table(found: Sequence[Chapter]) -> list[str]:
    """Return a Markdown table of the pages that have an explorer or an exercise."""
    lines = ["| page | read | play | exercises |", "|:--|--:|--:|:--|"]
    for chapter in found:
        if not (chapter.play or chapter.exercises):
            continue
        total = sum(each.minutes for each in chapter.exercises)
        given = f"{len(chapter.exercises)} in {total} minutes" if chapter.exercises else ""
        play = f"{chapter.play} min" if chapter.play else ""
        lines.append(f"| {{doc}}`{chapter.name}` | {chapter.read} min | {play} | {given} |")
    return lines


def exercise_table(found: Sequence[Chapter]) -> list[str]:
    """Return a Markdown table of all exercises."""
    lines = ["| chapter | exercise | difficulty | min |", "|:--|:--|:--|--:|"]
    for chapter in found:
        for number, each in enumerate(chapter.exercises):
            page = f"{{doc}}`{chapter.name}`" if number == 0 else ""
            link = f"{{ref}}`{each.title or 'Exercise'} <{each.label}>`"
            lines.append(f"| {page} | {link} | {each.level} | {each.minutes or ''} |")
    return lines


class TeachingDirective(SphinxDirective):
    """Insert the table of ``pages`` or of ``exercises``."""

    required_arguments = 1
    tables: ClassVar = {"pages": page_table, "exercises": exercise_table}

    def run(self) -> list[nodes.Node]:
        """Return the table, which is written again when a notebook or the contents change."""
        name = self.arguments[0]
        if name not in self.tables:
            raise self.error(f"teaching: expected one of {', '.join(self.tables)}, got {name!r}.")
        self.env.note_dependency(str(ROOT / "_toc.yml"))
        for path in (ROOT / "book").glob("*.ipynb"):
            self.env.note_dependency(str(path))
        inside = nodes.container(classes=["pu-teaching"])
        lines = StringList(self.tables[name](list(chapters())), self.env.docname)
        self.state.nested_parse(lines, self.content_offset, inside)
        return inside.children


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive ``teaching``."""
    app.add_directive("teaching", TeachingDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
