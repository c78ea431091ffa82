"""Write copies of the notebooks in plain Markdown, which GitHub, Colab and Jupyter all show.

The notebooks of the book are written in MyST. In a plain copy, theorems are quotes with a bold
title, folds are ``<details>``, references are words with links, captions stand below their figures,
and cells that exist only for the build are dropped. Boxes, exercises and figures keep their
numbers. The downloads of the book are plain copies with outputs (`pu_book.write_downloads`), the
publishing workflow commits these to the branch ``colab``, which the Colab buttons open, and
``make lab`` opens plain copies.

A directive or role that this program does not know is an error.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import nbformat
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell
from pybtex.database import Person, parse_file

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "sphinx_ext"))

from pu_book import KINDS  # noqa: E402
from pu_notebooks import kept  # noqa: E402
from pu_statements import formulas_for  # noqa: E402

from pu_lib.claims import ledger  # noqa: E402
from pu_lib.claims.formulas import insert_formulas  # noqa: E402
from pu_lib.files import replace_file  # noqa: E402

OPEN = re.compile(r"(:{3,}|`{3,})\{([\w:-]+)\}\s*(.*)")
OPTION = re.compile(r":([\w-]+):\s*(.*)")
LABEL = re.compile(r"\(([\w-]+)\)=\s*")
ROLE = re.compile(r"\{([a-z][\w:-]*)\}`([^`]*)`")
MYST = re.compile(r"^\s*(:{3,}|`{3,}\{)|\{[a-z][\w:-]*\}`", re.MULTILINE)
MARKDOWN_PAGE = re.compile(r"(?<!!)\[([^\[\]]+)\]\((?:api/)?[\w-]+\.md(?:#[^)]*)?\)")
WIDGET = "application/vnd.jupyter.widget-view+json"
HIDDEN = {"remove-input", "remove-cell", "hide-cell", "hide-input"}
"""Tags of cells whose code the book hides."""
FOLDED = {"jupyter": {"source_hidden": True}, "cellView": "form"}
"""Metadata with which Jupyter and Colab hide the code of a cell."""
CHANGED = "This line checks what the text says. If you changed a cell above, the result may differ."
"""The message of an assertion that has none."""
DIGEST = "pu_lib_digest"
"""The key of a copy's hash in its metadata."""


class Place(NamedTuple):
    """A target of references: its page and what a reference without text says."""

    page: str
    words: str


class Directive(NamedTuple):
    """A directive: name, title, options, and the lines of its body."""

    name: str
    title: str
    options: dict[str, str]
    body: list[str]


class Book:
    """The titles, numbers and references of the book that a single notebook lacks.

    Parameters
    ----------
    root : Path
        The folder that contains ``_toc.yml`` and ``book``.
    """

    def __init__(self, root: Path = ROOT) -> None:
        self.folder = root / "book"
        self.titles: dict[str, str] = {}
        self.places: dict[str, Place] = {}
        self.citations: dict[str, tuple[str, str, str]] = {}
        contents = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
        chapter = 0
        for part in contents.get("parts", [contents]):
            for entry in part["chapters"]:
                chapter += "numbered" in part
                pages = [_name(page["file"]) for page in (entry, *entry.get("sections", ()))]
                counts: Counter[str] = Counter()
                for page in pages:
                    self._read(page, f"{chapter}." if "numbered" in part else "", counts)
        for path in sorted(self.folder.rglob("*")):  # the first page, and pages that are not listed
            page = path.relative_to(self.folder).with_suffix("").as_posix()
            if path.suffix in (".ipynb", ".md") and page not in self.titles:
                self._read(page, "", Counter())
        entries = parse_file(str(self.folder / "references.bib")).entries
        for key, entry in entries.items():
            names = [_last_name(person) for person in entry.persons["author"]]
            who = f"{names[0]} et al." if len(names) > 2 else " and ".join(names)
            doi = entry.fields.get("doi")
            link = entry.fields.get("url") or (f"https://doi.org/{doi}" if doi else "")
            self.citations[key] = who, entry.fields["year"], link

    def _read(self, page: str, prefix: str, counts: Counter[str]) -> None:
        """Add the title, labels and numbers of a page."""

        def number(kind: str) -> str:
            counts[kind] += 1
            return f"{kind.title()} {prefix}{counts[kind]}"

        for cell in _cells(self.folder / page):
            text = "".join(cell["source"])
            if cell["cell_type"] == "code":
                figure = cell["metadata"].get("mystnb", {}).get("figure")
                if figure:
                    self.places[figure["name"]] = Place(page, number("figure"))
                continue
            if title := re.search(r"^# (.+)$", text, re.MULTILINE):
                self.titles.setdefault(page, _without_roles(title[1]))
            for label, heading in re.findall(r"^\(([\w-]+)\)=\s+#+ (.+)$", text, re.MULTILINE):
                self.places[label] = Place(page, _without_roles(heading))
            for box in _directives(text.split("\n")):
                if "label" not in box.options:
                    continue
                kind = box.name.removeprefix("prf:")
                if kind == "exercise" or "nonumber" not in box.options:
                    words = number("exercise" if kind == "exercise" else "theorem")
                    words = words.replace("Theorem", kind.title())
                elif box.title.partition(" ")[0].lower() in KINDS:
                    words = box.title
                else:
                    words = f"{kind.title()} ({box.title})"
                self.places[box.options["label"]] = Place(page, words)

    def link(self, words: str, page: str, anchor: str, here: str) -> str:
        """Return a Markdown link from the notebook `here` to a place of the book."""
        if page == here:
            return f"[{words}](#{anchor})" if anchor else words
        if not (self.folder / f"{page}.ipynb").exists():
            return words  # a page of the book without a notebook
        return f"[{words}]({page}.ipynb{'#' if anchor else ''}{anchor})"

    def role(self, here: str, match: re.Match[str]) -> str:
        """Return a role as words and links."""
        name, content = match.groups()
        titled = re.fullmatch(r"(.*?)\s*<([^>]+)>", content, re.DOTALL)
        words, target = titled.groups() if titled else ("", content)
        if name == "formula":
            return f"${insert_formulas(content, formulas_for(here, content))}$"
        if name in ("cite:t", "cite:p"):
            in_text = name == "cite:t"
            cited = []
            for key in target.split(","):
                who, year, link = self.citations[key.strip()]
                text = f"{who} ({year})" if in_text else f"{who}, {year}"
                cited.append(f"[{text}]({link})" if link else text)
            return ", ".join(cited) if in_text else f"({'; '.join(cited)})"
        if name == "doc":
            return self.link(words or self.titles[target], target, "", here)
        if name in ("ref", "prf:ref", "numref"):
            place = self.places[target]
            return self.link(words or place.words, place.page, target, here)
        raise ValueError(f"{here}: the role {name!r} is unknown.")


def _last_name(person: Person) -> str:
    return re.sub(r"[{}]", "", " ".join((*person.prelast_names, *person.last_names)))


def _name(file: str) -> str:
    return file.removeprefix("book/")


def _without_roles(text: str) -> str:
    """Return a title in which roles are words."""
    return re.sub(r"\{[\w:-]+\}`([^`<]*?)\s*(<[^>]*>)?`", r"\1", text).strip()


def _cells(page: Path) -> list[dict[str, Any]]:
    """Return the cells of a notebook, or a Markdown page as one cell."""
    notebook = page.with_name(f"{page.name}.ipynb")
    if notebook.exists():
        return list(json.loads(notebook.read_text("utf-8"))["cells"])
    text = page.with_name(f"{page.name}.md").read_text("utf-8")
    return [{"cell_type": "markdown", "source": text}]


def _directives(lines: Sequence[str]) -> Iterator[Directive]:
    """Yield the directives of a text, inner ones after those that contain them."""
    start = 0
    while start < len(lines):
        if OPEN.match(lines[start]):
            directive, start = _directive(lines, start)
            yield directive
            yield from _directives(directive.body)
        else:
            start += 1


def _directive(lines: Sequence[str], start: int) -> tuple[Directive, int]:
    """Return the directive that starts at a line, and the line after its end."""
    match = OPEN.match(lines[start])
    assert match is not None
    fence, name, title = match.groups()
    end = next(k for k in range(start + 1, len(lines)) if lines[k].rstrip() == fence)
    body = list(lines[start + 1 : end])
    options = {}
    while body and (option := OPTION.match(body[0])):
        options[option[1]] = option[2]
        del body[0]
    text = "\n".join(body).strip("\n")
    return Directive(name, title, options, text.split("\n") if text else []), end + 1


def plain_markdown(text: str, book: Book, here: str) -> str:
    """Return the text of a Markdown cell without MyST.

    Parameters
    ----------
    text : str
        The source of the cell.
    book : Book
        The book that the cell belongs to.
    here : str
        The name of the notebook without its suffix.

    Raises
    ------
    ValueError
        If the text has a directive or role that has no plain form.
    """
    text = "\n".join(_plain_lines(text.split("\n"), book, here))
    text = ROLE.sub(partial(book.role, here), text)

    def titled(match: re.Match[str]) -> str:
        name, _, anchor = match[1].partition("#")
        page = str(Path(name).with_suffix("")) if name else here
        words = book.places[anchor].words if anchor in book.places else book.titles[page]
        return book.link(words, page, anchor, here)

    text = re.sub(r"(?<!!)\[\]\(([^)]+)\)", titled, text)
    text = MARKDOWN_PAGE.sub(r"\1", text)
    if left := MYST.search(text):
        raise ValueError(f"{here}: there is no plain form of {text[left.start() :][:60]!r}.")
    return text


def _plain_lines(lines: Sequence[str], book: Book, here: str) -> list[str]:
    """Return lines with directives and labels as plain Markdown and HTML."""
    plain: list[str] = []
    start = 0
    while start < len(lines):
        if OPEN.match(lines[start]):
            directive, start = _directive(lines, start)
            plain += _plain_directive(directive, book, here)
            continue
        label = LABEL.fullmatch(lines[start])
        plain += [f'<a id="{label[1]}"></a>', ""] if label else [lines[start]]
        start += 1
    return plain


def _plain_directive(directive: Directive, book: Book, here: str) -> list[str]:
    """Return a directive as lines of plain Markdown and HTML."""
    name, title, options = directive.name, directive.title, directive.options
    body = _plain_lines(directive.body, book, here)
    label = options.get("label", "")
    anchor = [f'<a id="{label}"></a>', ""] if label else []
    if name == "index":
        return []
    if name == "prf:proof":
        return _headed("*Proof.*", body)
    if name == "solution":
        return _fold(f"Solution of {book.places[title].words.lower()}", body)
    if name == "dropdown" or "dropdown" in options.get("class", ""):
        return _fold(title, body)
    if name == "admonition":
        return _quote([f"**{title}**", "", *body])
    if name in ("exercise", "prf:theorem", "prf:lemma", "prf:proposition", "prf:conjecture"):
        words = book.places[label].words
        named = f" ({title})" if title and title not in words else ""
        return anchor + _quote(_headed(f"**{words}{named}.**", body))
    raise ValueError(f"{here}: the directive {name!r} is unknown.")


def _headed(head: str, body: list[str]) -> list[str]:
    """Put words before the first line, or above it if it starts a list, formula or table."""
    if body and not re.match(r"\d+\. |[-*>] |\$\$|\||<|`", body[0]):
        return [f"{head} {body[0]}", *body[1:]]
    return [head, "", *body]


def _quote(lines: list[str]) -> list[str]:
    return [f"> {line}".rstrip() for line in lines]


def _fold(title: str, body: list[str]) -> list[str]:
    """Return lines that a click on the title opens; Markdown is not rendered in the title."""
    signs = {r"\\log\s*": "log ", r"\\ge\s*": "≥", r"\\le\s*": "≤", r"\\to\s*": "→"}
    signs |= {r"\\infty\s*": "∞", r"\\eta": "η", r"\\pi": "π", r"\$": "", r"\*": ""}
    title = title.replace("&", "&amp;").replace("<", "&lt;")
    for pattern, sign in signs.items():
        title = re.sub(pattern, sign, title)
    return ["<details>", f"<summary>{title}</summary>", "", *body, "", "</details>"]


def plain_notebook(path: Path, book: Book, outputs: bool = False) -> nbformat.NotebookNode:
    """Return a notebook as a plain copy.

    Parameters
    ----------
    path : Path
        The notebook.
    book : Book
        The book that it belongs to.
    outputs : bool
        Whether to add the outputs of the last execution, if they are known. A widget, which needs
        a kernel, is replaced by a sentence.
    """
    notebook = json.loads(path.read_text("utf-8"))
    executed = {cell["id"]: cell.get("outputs", []) for cell in kept(path)} if outputs else {}
    needed = needed_cells(notebook["cells"])
    cells: list[dict[str, Any]] = []
    for number, cell in enumerate(notebook["cells"]):
        text, metadata = "".join(cell["source"]), cell["metadata"]
        if cell["cell_type"] == "markdown":
            text = plain_markdown(text, book, path.stem)
            cells.append(new_markdown_cell(text, id=cell["id"]))
        elif answer := answer_of(text):
            cells.append(new_markdown_cell(answer, id=cell["id"]))
        elif number in needed:
            text = explained(text)
            is_hidden = bool(HIDDEN & set(metadata.get("tags", [])))
            shown = [without_widget(output) for output in executed.get(cell["id"], [])]
            cells.append(
                cell
                | {
                    "metadata": FOLDED if is_hidden else {},
                    "source": f"#@title Run this cell\n{text}" if is_hidden else text,
                    "outputs": [output for output in shown if output],
                }
            )
            if figure := metadata.get("mystnb", {}).get("figure"):
                name = figure["name"]
                caption = plain_markdown(figure["caption"], book, path.stem)
                text = f'<a id="{name}"></a>\n\n**{book.places[name].words}.** {caption}'
                cells.append(new_markdown_cell(text, id=f"{cell['id']}-caption"))
    return nbformat.from_dict(notebook | {"cells": cells})


def needed_cells(cells: Sequence[dict[str, Any]]) -> set[int]:
    """Return the positions of the code cells without those that only the build needs.

    A cell with the tag ``remove-cell`` is needed if a later cell that is kept uses a name that it
    assigns or imports.
    """
    needed = set()
    used: set[str] = set()
    for number in reversed(range(len(cells))):
        if cells[number]["cell_type"] != "code":
            continue
        assigned, read = names_of("".join(cells[number]["source"]))
        if "remove-cell" not in cells[number]["metadata"].get("tags", []) or assigned & used:
            needed.add(number)
            used = used | read  # an assigned name may be read before
    return needed


def explained(source: str) -> str:
    """Return code in which each assertion has a message, for readers who change a notebook."""
    lines = [line.encode() for line in source.split("\n")]  # columns count bytes
    tree = ast.parse(re.sub(r"^%.*$", "", source, flags=re.MULTILINE))
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.msg is None:
            line, column = (node.end_lineno or 0) - 1, node.end_col_offset
            lines[line] = b"%b, %b%b" % (
                lines[line][:column],
                json.dumps(CHANGED).encode(),
                lines[line][column:],
            )
    return b"\n".join(lines).decode()


def names_of(source: str) -> tuple[set[str], set[str]]:
    """Return the names that code assigns or imports, and the names that it reads."""
    tree = ast.parse(re.sub(r"^%.*$", "", source, flags=re.MULTILINE))
    assigned: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (read if isinstance(node.ctx, ast.Load) else assigned).add(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            assigned |= {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.ExceptHandler)) and node.name:
            assigned.add(node.name)
        elif isinstance(node, ast.arg):
            assigned.add(node.arg)
    return assigned, read


def answer_of(source: str) -> str:
    """Return what `versus` or `question` shows as Markdown; for other code, nothing."""
    last = ast.parse(re.sub(r"^%.*$", "pass", source, flags=re.MULTILINE)).body[-1:]
    call = last[0].value if last and isinstance(last[0], ast.Expr) else None
    name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
    if not isinstance(call, ast.Call) or name not in ("versus", "question"):
        return ""
    claims = {claim.id: claim for claim in ledger()}
    arguments = [ast.literal_eval(argument) for argument in call.args]
    if name == "versus":
        lines = ["| Statement | As stated | What holds |", "|:--|:--|:--|"]
        for claim, printed, holds in arguments:
            head = f"**{claims[claim].number}**: *{claims[claim].status.value}*"
            lines.append(f"| {head} | {_cell(printed)} | {_cell(holds)} |")
    else:
        text, _, *choices = arguments
        lines = [text, ""]
        for choice, reply in sorted(choices):
            judged = "Right" if choice == choices[0][0] else "Not quite"
            lines += [*_fold(choice, [f"**{judged}.** {reply}"]), ""]
    return "\n".join(lines)


def _cell(text: str) -> str:
    """Return text for a cell of a Markdown table."""
    return text.replace("|", r"\vert ")


def without_widget(output: dict[str, Any]) -> dict[str, Any] | None:
    """Return an output, a sentence instead of a widget, and nothing for warnings."""
    if WIDGET in output.get("data", {}):
        said = "*An interactive figure: run this cell, or open the page in the book.*"
        return {"output_type": "display_data", "metadata": {}, "data": {"text/markdown": said}}
    return None if output.get("name") == "stderr" else output


def install_cell(repository: str) -> dict[str, Any]:
    """Return a cell that installs the library from the public URL of its repository."""
    lines = [
        f"!git clone --quiet --depth 1 {repository} /tmp/pu-lib",
        '%pip install --quiet "/tmp/pu-lib[notebook]"',
        # the clone precedes the installed library on the path, because it also has the book's runs
        "import sys; sys.path.insert(0, '/tmp/pu-lib')",
    ]
    return new_code_cell("\n".join(lines), id="install")


def write(path: Path, notebook: nbformat.NotebookNode) -> bool:
    """Write a copy unless its cells have been edited since it was written last.

    Returns whether the copy was written.
    """
    if path.exists():
        old = json.loads(path.read_text("utf-8"))
        if old["metadata"].get(DIGEST) != _digest(old["cells"]):
            return False
    notebook["metadata"] = notebook["metadata"] | {DIGEST: _digest(notebook["cells"])}
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_file(path, nbformat.writes(notebook) + "\n")
    return True


def _digest(cells: Sequence[dict[str, Any]]) -> str:
    """Return a hash of the sources of cells."""
    return hashlib.sha256("\0".join("".join(c["source"]) for c in cells).encode()).hexdigest()


def main() -> None:
    """Write plain copies of all notebooks to a folder, and keep those that a reader has edited."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("target", type=Path, help="folder to write to")
    arguments = parser.parse_args()
    book = Book()
    copies = {"start.ipynb": nbformat.read(ROOT / "start.ipynb", 4)}
    for path in sorted(book.folder.glob("*.ipynb")):
        copies[f"book/{path.name}"] = plain_notebook(path, book)
    for name, copy in copies.items():
        if not write(arguments.target / name, copy):
            print(f"{arguments.target / name} was edited and is kept; delete it for a new copy.")


if __name__ == "__main__":
    main()
