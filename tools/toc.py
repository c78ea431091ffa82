"""Write the chapters into ``_toc.yml``: their order stands in the ledger, and nowhere else.

A chapter is a notebook ``book/<name>.ipynb`` and a ledger file ``pu_lib/ledger/<name>.toml`` with
its ``title`` and ``order``. One that stands in another part stays there. ``make book`` runs this
program first; it stops with a sentence where a page is in neither place, or a ledger file has no
notebook.
"""

from __future__ import annotations

import sys
from pathlib import Path

import yaml

from pu_lib.claims import chapters

ROOT = Path(__file__).resolve().parent.parent
PART = "The paper, claim by claim"
HEAD = f"# tools/toc.py writes the part '{PART}' from the ledger; edit the others here.\n"
SUFFIXES = (".ipynb", ".md")


def table(root: Path = ROOT) -> str:
    """Return the text of ``_toc.yml``, with the chapters in the ledger's order.

    Parameters
    ----------
    root : Path
        The folder that holds ``_toc.yml`` and ``book``.

    Raises
    ------
    ValueError
        If a page of the book has no place, or a place has no page.
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
    listed = [
        contents["root"],
        *(c["file"] for part in contents["parts"] for c in part["chapters"]),
    ]
    pages = {f"book/{path.stem}" for path in (root / "book").iterdir() if path.suffix in SUFFIXES}
    if lost := sorted(pages - set(listed)):
        raise ValueError(
            f"{', '.join(lost)}: not in the table of contents. A chapter needs pu_lib/ledger/"
            "<name>.toml with title and order; any other page a line in _toc.yml."
        )
    if missing := sorted(set(listed) - pages):
        raise ValueError(f"{', '.join(missing)}: listed, but there is no such page.")
    return HEAD + yaml.safe_dump(contents, sort_keys=False, allow_unicode=True)


def main() -> int:
    """Write the file anew if it is not in step."""
    try:
        text = table()
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    path = ROOT / "_toc.yml"
    if path.read_text("utf-8") != text:
        path.write_text(text, "utf-8")
        print("_toc.yml follows the ledger again.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
