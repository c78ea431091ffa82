r"""The role ``formula``: inline formulas with the bounds that the checks evaluate.

``{formula}`n'\ge<<decaying_pg_bound>>` `` prints the LaTeX of the function `decaying_pg_bound` in
the ``quantities.py`` of the page's chapter, so that a theorem and its check cannot differ. The
notation is that of ``claims.toml``: ``<<name: argument=LaTeX, ...>>``. The name of a function in
another chapter is prefixed with the chapter folder: ``<<unlearning.decaying_pg_bound>>``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from docutils import nodes
from sphinx.util.docutils import SphinxRole

from pu_lib.claims.catalog import chapters, folder_of, formulas_of
from pu_lib.claims.formulas import Formula, insert_formulas

if TYPE_CHECKING:
    from sphinx.application import Sphinx

CHAPTER = re.compile(r"<<(\w+)\.")


def formulas_for(page: str, text: str) -> dict[str, Formula]:
    """Return the formulas of a page's chapter and of the chapters named in a text."""
    folders = {folder_of(chapter): chapter for chapter in chapters()}
    formulas = formulas_of(page) if page in chapters() else {}
    for folder in CHAPTER.findall(text):
        if folder not in folders:
            raise ValueError(f"no chapter {folder!r}; there are: {', '.join(folders)}.")
        others = formulas_of(folders[folder])
        formulas |= {f"{folder}.{name}": formula for name, formula in others.items()}
    return formulas


class FormulaRole(SphinxRole):
    """Typeset an inline formula; an unknown function is a build error."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the formula, or an error node and its message."""
        page = self.env.docname.rpartition("/")[2]
        try:
            latex = insert_formulas(self.text, formulas_for(page, self.text))
        except ValueError as error:
            message = self.inliner.reporter.error(f"formula: {error}", line=self.lineno)
            return [self.inliner.problematic(self.rawtext, self.rawtext, message)], [message]
        return [nodes.math(self.rawtext, latex)], []


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the role."""
    app.add_role("formula", FormulaRole())
    return {"parallel_read_safe": True, "parallel_write_safe": True}
