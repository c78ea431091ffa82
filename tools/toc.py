"""Update the lists of chapters in ``_toc.yml`` and ``start.ipynb``, and the pages of the ledger.

A chapter is a notebook ``book/<name>.ipynb`` with a file ``pu_lib/chapters/<name>/claims.toml``
that has a ``title`` and an ``order``. Chapters that ``_toc.yml`` lists in another part stay there.
A page ``book/more-on-<name>.ipynb`` is listed below its chapter. Each chapter has a page of the
ledger, ``book/ledger-<name>.md``, which this script writes.
``make book`` runs this script first. It exits with an error if a page is not listed or a listed
page does not exist. ``start.ipynb``, which JupyterLab opens first, lists all notebooks.
"""

from __future__ import annotations

import json
import re
import sys
from functools import partial
from pathlib import Path

import nbformat
import yaml
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from pu_lib.claims import chapters
from pu_lib.files import replace_file

ROOT = Path(__file__).resolve().parent.parent
PART = "The paper, claim by claim"
HEAD = f"# tools/toc.py writes the part '{PART}' from the ledger; edit the others here.\n"
SUFFIXES = (".ipynb", ".md")


def table(root: Path = ROOT) -> str:
    """Return the text of ``_toc.yml`` with the chapters in the order of the ledger.

    Parameters
    ----------
    root : Path
        The folder that contains ``_toc.yml`` and ``book``.

    Raises
    ------
    ValueError
        If a page is not listed, or a listed page does not exist.
    """
    contents = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    (part,) = (part for part in contents["parts"] if part["caption"] == PART)
    elsewhere = {
        chapter["file"]
        for other in contents["parts"]
        if other is not part
        for chapter in other["chapters"]
    }
    ours = [f"book/{name}" for name in chapters()]
    part["chapters"] = [{"file": file} for file in ours if file not in elsewhere]
    pages = {f"book/{path.stem}" for path in (root / "book").iterdir() if path.suffix in SUFFIXES}
    rows = [f"book/ledger-{name}" for name in chapters()]
    pages.update(rows)
    listed = [contents["root"], *rows]
    for chapter in (chapter for part in contents["parts"] for chapter in part["chapters"]):
        more = chapter["file"].replace("book/", "book/more-on-")
        if more in pages:
            chapter["sections"] = [{"file": more}]
        if chapter["file"] == "book/ledger":
            chapter["sections"] = [{"file": file} for file in rows]
        listed += [chapter["file"], *([more] if more in pages else [])]
    if lost := sorted(pages - set(listed)):
        raise ValueError(
            f"{', '.join(lost)}: not in the table of contents. A chapter needs pu_lib/chapters/"
            "<name>/claims.toml with title and order; any other page a line in _toc.yml."
        )
    if missing := sorted(set(listed) - pages):
        raise ValueError(f"{', '.join(missing)}: listed, but there is no such page.")
    return HEAD + yaml.safe_dump(contents, sort_keys=False, allow_unicode=True)


ROWS = """# Ledger: {title}

The claims of the chapter {{doc}}`{name}`. Open a status, by click or with the Enter key, to see
what is wrong with the claim, how bad that is, and what is true. {{doc}}`ledger` lists all claims
and says how they are judged.

```{{ledger}} ledger_table {name}
```

## What the checks refuse

Each check is also run on wrong variants of its claim, all of which it has to refuse.

```{{ledger}} power_table {name}
```
"""
"""The page with the claims of a chapter."""


def ledger_pages() -> dict[str, str]:
    """Return the texts of the pages of the ledger by file."""
    return {
        f"book/ledger-{name}.md": ROWS.format(name=name, title=title)
        for name, title in chapters().items()
    }


WELCOME = """# Beyond the policy gradient theorem, as notebooks

Every claim of Laroche and Tachet des Combes, *Beyond the Policy Gradient Theorem for Efficient
Policy Updates in Actor-Critic Algorithms* (AISTATS 2022), restated, run, attacked and judged: the
chapters of the book, to run and to change.

**How to start.** Run the cell below by Shift+Enter. A sentence with a badge means that all is
installed; if it fails, `pip install -e '.[notebook]'` in this folder brings what is missing. Then
open a chapter and choose *Run All Cells* from the menu *Run*.

The pages of the book, which `make book` writes to `_build/html`, show the same without Python."""

TRY = """from pu_lib.claims import confirm

confirm("prop:non-monotonicity")"""

CLOSE = """Most chapters end with exercises, and with *Change it*, cells that are made to be edited.
`make lab` writes the chapters to `_build/lab` in plain Markdown and keeps those that you have
edited; delete one to get a new copy."""


def start(root: Path = ROOT) -> str:
    """Return the text of ``start.ipynb``: an introduction and links to the chapters.

    Parameters
    ----------
    root : Path
        The folder that contains ``_toc.yml`` and ``book``.
    """
    contents = yaml.safe_load((root / "_toc.yml").read_text("utf-8"))
    lines: list[str] = []
    for part in contents["parts"]:
        entries = [entry for c in part["chapters"] for entry in (c, *c.get("sections", ()))]
        files = [root / f"{entry['file']}.ipynb" for entry in entries]
        items = [_item(file) for file in files if file.exists()]
        lines += [f"## {part['caption']}", "", *items, ""] if items else []
    cells = [
        new_markdown_cell(WELCOME),
        new_code_cell(TRY),
        new_markdown_cell("\n".join(lines).strip()),
        new_markdown_cell(CLOSE),
    ]
    for count, cell in enumerate(cells):
        cell["id"] = f"start-{count}"
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return nbformat.writes(new_notebook(cells=cells, metadata={"kernelspec": kernel})) + "\n"


def _item(file: Path) -> str:
    """Return a list item with the linked title of a notebook and its opening question."""
    opening = "".join(json.loads(file.read_text("utf-8"))["cells"][0]["source"])
    (title,) = re.findall(r"^# (.+)$", opening, re.MULTILINE)
    questions = re.findall(r"\*\*([^*]+\?)\*\*", opening)
    question = f". {' '.join(questions[0].split())}" if questions else ""
    return f"- [{title}](book/{file.name}){question}"


def main() -> int:
    """Rewrite the files that are out of date with the ledger."""
    try:
        text = table()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    files = {"_toc.yml": lambda: text, "start.ipynb": start}  # the second is read from the first
    files |= {name: partial(str, page) for name, page in ledger_pages().items()}
    for name, write in files.items():
        path, new = ROOT / name, write()
        if not path.exists() or path.read_text("utf-8") != new:
            replace_file(path, new)
            print(f"{name} was updated.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
