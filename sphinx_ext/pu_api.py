"""The pages of reference: of the library (directives ``api``, ``moved``) and of the proofs.

``{api} pu_lib.mdp`` in a page gives a table with a line for each public name (those in
``__all__``, or all that do not begin with an underscore, in the order of their definition), the
module's own text, then each name with its signature and its whole docstring. Names in the code
cells of the chapters link here.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.util.docutils import SphinxDirective
from sphinx_codeautolink.extension import block

from pu_lib.moved import MOVED


def public_names(module: ModuleType) -> list[str]:
    """Return the public names that a module defines, in the order of their definition."""
    source = inspect.getsource(module)
    offered = getattr(module, "__all__", None) or _defined(source)
    names = [name for name in offered if _home(module, name) == module.__name__]
    return sorted(names, key=lambda name: _place(source, name))


def _defined(source: str) -> list[str]:
    """Return the public names that the statements of a module define."""
    found = []
    for part in ast.parse(source).body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            found.append(part.name)
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            found += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in found if not name.startswith("_")]


def _home(module: ModuleType, name: str) -> str:
    return getattr(getattr(module, name), "__module__", None) or module.__name__


def _place(source: str, name: str) -> int:
    """Return where a name is first defined: as a class, a function or a variable."""
    starts = [f"\nclass {name}", f"\ndef {name}(", f"\n{name} =", f"\n{name}:"]
    return min((place for start in starts if (place := source.find(start)) >= 0), default=0)


class ApiDirective(SphinxDirective):
    """The reference of one module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Write the page in reStructuredText and have it parsed."""
        name = self.arguments[0]
        module = import_module(name)
        members = public_names(module)
        # a variable's docstring is what follows it in the source: autodoc finds it by itself
        lines = [f".. py:currentmodule:: {name}", "", ".. autosummary::", "   :nosignatures:", ""]
        lines += [f"   {member}" for member in members]
        lines += ["", f".. automodule:: {name}", "   :no-members:", ""]
        for member in members:
            lines += [*_documented(module, member), ""]
        anchors = _old_anchors(module, members)
        root = nodes.Element()
        self.env.note_dependency(str(inspect.getsourcefile(module)))
        self.state.nested_parse(StringList(_as_rst(lines), source=name), 0, root)
        return [nodes.raw("", anchors, format="html"), *root.children]


class MovedDirective(SphinxDirective):
    """The anchors of a module that is now part of another one, or a package."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return them as raw HTML."""
        old = self.arguments[0].removeprefix("pu_lib.")
        module = import_module(f"pu_lib.{MOVED.get(old, old)}")
        members = public_names(module) if old in MOVED else list(module.__all__)
        return [nodes.raw("", _anchors(old, module, members), format="html")]


class ProofsDirective(SphinxDirective):
    """The machine-checked theorems beside the claims they prove."""

    def run(self) -> list[nodes.Node]:
        """Return them as raw HTML."""
        from pu_lib.show.proofs import proof_list

        return [nodes.raw("", str(proof_list()), format="html")]


def _documented(module: ModuleType, member: str) -> list[str]:
    thing, full = getattr(module, member), f"{module.__name__}.{member}"
    if inspect.isclass(thing):
        # the fields of a named tuple are told in its text
        members = [] if issubclass(thing, tuple) else ["   :members:"]
        values = (
            ["   :undoc-members:", "   :member-order: bysource"] if issubclass(thing, Enum) else []
        )
        bases = [] if thing.__bases__ == (object,) else ["   :show-inheritance:"]
        return [f".. autoclass:: {full}", *members, *values, *bases]
    if callable(thing) and hasattr(thing, "__name__"):
        return [f".. autofunction:: {full}"]
    # defaults in signatures are names: what a number is stands with the name
    return [f".. autodata:: {full}"] + ([] if isinstance(thing, int | float) else ["   :no-value:"])


def _old_anchors(module: ModuleType, members: list[str]) -> str:
    """Return the anchors that a module's page had before the module moved."""
    place = module.__name__.removeprefix("pu_lib.")
    return "".join(_anchors(old, module, members) for old, new in MOVED.items() if new == place)


def _anchors(old: str, module: ModuleType, members: list[str]) -> str:
    """Return anchors for the members of a module under its old name."""
    methods = [
        f"{member}.{method}"
        for member in members
        if inspect.isclass(thing := getattr(module, member))
        for method in {**vars(thing), **inspect.get_annotations(thing)}
        if not method.startswith("_")
    ]
    title = [re.sub(r"[._]", "-", f"pu_lib.{old}")] if old in MOVED else []
    ids = [*title, f"module-pu_lib.{old}", *(f"pu_lib.{old}.{name}" for name in members + methods)]
    return "".join(f'<span id="{name}"></span>' for name in ids)


def _as_rst(lines: list[str]) -> list[str]:
    """Wrap for MyST, whose pages parse directives in Markdown."""
    return ["```{eval-rst}", *lines, "```"]


def quiet_titles(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Make rubrics of the titles in a module's text: they are no sections of the page."""
    if what == "module":
        for i in range(len(lines) - 1, 0, -1):
            if lines[i] and set(lines[i]) == {"-"} and len(lines[i]) == len(lines[i - 1]):
                lines[i - 1 : i + 1] = [f".. rubric:: {lines[i - 1]}", ""]


def no_call(app: Sphinx, what: str, name: str, thing: Any, *given: Any) -> tuple[str, str] | None:
    """Leave out the signature of an enumeration, which nobody calls."""
    return ("", "") if inspect.isclass(thing) and issubclass(thing, Enum) else None


def read_whole(text: GoogleDocstring) -> tuple[str, list[str]]:
    """Read a variable's text as it stands; napoleon takes what precedes a colon for its type."""
    return "", type(text)(text._consume_to_end(), text._config).lines()


class _Analyser(block.CodeBlockAnalyser):
    """The analyser of code cells, which takes it that every section has a title.

    The statements and proofs of the chapters are sections without one.
    """

    def visit_section(self, node: nodes.section) -> None:
        """Enter a section."""
        if _has_title(node):
            super().visit_section(node)

    def depart_section(self, node: nodes.section) -> None:
        """Leave a section."""
        if _has_title(node):
            super().depart_section(node)


def _has_title(node: nodes.section) -> bool:
    return any(isinstance(child, nodes.title) for child in node.children)


BLOCK = re.compile(
    r'<div class="[^"]*\bhighlight-[^"]*"[^>]*>\s*'
    r'<div class="highlight">.*?</pre>\s*</div>\s*</div>',
    re.DOTALL,
)
"""A block of code in a page."""


def link_blocks(document: str, folder: str, *given: Any, **options: Any) -> None:
    """Link the names in a page's code; read the code alone, for the whole page takes seconds."""
    path = Path(folder) / f"{document}.html"
    page = path.read_text("utf-8")
    path.write_text("\n".join(BLOCK.findall(page)), "utf-8")
    block.link_html(document, folder, *given, **options)
    linked = BLOCK.findall(path.read_text("utf-8"))[::-1]
    path.write_text(BLOCK.sub(lambda _: linked.pop(), page), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive and what it stands on."""
    for extension in ("sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"):
        app.setup_extension(extension)
    app.setup_extension("sphinx_codeautolink")
    # the package hides its module of that name behind a string
    linking = sys.modules["sphinx_codeautolink.extension"]
    linking.CodeBlockAnalyser, linking.link_html = _Analyser, link_blocks
    GoogleDocstring._consume_inline_attribute = read_whole
    app.connect("autodoc-process-docstring", quiet_titles)
    app.connect("autodoc-process-signature", no_call)
    app.add_directive("api", ApiDirective)
    app.add_directive("moved", MovedDirective)
    app.add_directive("proofs", ProofsDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
