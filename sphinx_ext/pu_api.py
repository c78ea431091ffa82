"""The reference of the library (directives ``public``, ``api``, ``names``) and of the proofs.

``{public} run`` documents a name of `pu_lib` itself. ``{api} pu_lib.mdp`` prints the text of a
module and documents its public names (those in ``__all__``, or all that do not begin with an
underscore, in the order of their definition); names in the body of the directive select some of
them. ``{names} pu_lib.chapters.rates.quantities`` lists public names with a sentence each. Names in
the code cells of the chapters link to all of these.
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
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.ext.napoleon import GoogleDocstring
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx_codeautolink.extension import block

import pu_lib


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


def home_of(name: str) -> ModuleType:
    """Return the module that defines a name of `pu_lib.__all__`."""
    thing, module = getattr(pu_lib, name), import_module(f"pu_lib.{pu_lib._HOMES[name]}")
    return sys.modules[thing.__module__] if hasattr(thing, "__qualname__") else module


class ReferenceDirective(SphinxDirective):
    """What the directives of reference share: they write reStructuredText and have it parsed."""

    required_arguments = 1
    final_argument_whitespace = True

    def parse(self, module: ModuleType, lines: list[str]) -> list[nodes.Node]:
        """Parse lines about a module; the page is read again once the module has changed."""
        root = nodes.Element()
        self.env.note_dependency(str(inspect.getsourcefile(module)))
        # MyST parses directives in Markdown, so that reStructuredText needs a wrapper
        lines = ["```{eval-rst}", *lines, "```"]
        self.state.nested_parse(StringList(lines, source=module.__name__), 0, root)
        return root.children

    def chosen(self, module: ModuleType) -> list[str]:
        """Return the names that the body selects; all that `pu_lib` does not offer by default."""
        everything = public_names(module)
        given = " ".join(self.content).split()
        if unknown := sorted(set(given) - set(everything)):
            raise self.error(f"{module.__name__} has no public {', '.join(unknown)}.")
        return given or [
            name for name in everything if name not in pu_lib.__all__ or home_of(name) is not module
        ]


class PublicDirective(ReferenceDirective):
    """The reference of a name that `pu_lib` offers, under that name and under its module's."""

    def run(self) -> list[nodes.Node]:
        """Return one entry."""
        name = self.arguments[0]
        module = home_of(name)
        found = self.parse(module, _documented(module, name))
        signature = next(node for part in found for node in part.findall(addnodes.desc_signature))
        for prefix in signature.findall(addnodes.desc_addname):
            prefix.clear()
            prefix += nodes.Text("pu_lib.")
        place, (anchor, *_) = f"pu_lib.{name}", signature["ids"]
        signature["ids"].append(place)
        kind = signature.parent["objtype"]
        self.env.get_domain("py").note_object(place, kind, anchor, True, signature)
        return found


class ApiDirective(ReferenceDirective):
    """The reference of a module, or of some names in it."""

    has_content = True
    option_spec: ClassVar = {"no-text": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the module's text, a table of its names, and an entry for each."""
        module = import_module(self.arguments[0])
        names = self.chosen(module)
        # a variable's docstring is what follows it in the source: autodoc finds it by itself
        if "no-text" in self.options:
            lines = [f".. py:module:: {module.__name__}", ""]
        else:
            lines = [f".. automodule:: {module.__name__}", "   :no-members:", ""]
        if len(names) > 3:
            lines += [f".. py:currentmodule:: {module.__name__}", ""]
            lines += [".. autosummary::", "   :nosignatures:", ""]
            lines += [*(f"   {name}" for name in names), ""]
        for name in names:
            lines += [*_documented(module, name), ""]
        return self.parse(module, lines)


class NamesDirective(ReferenceDirective):
    """The public names of a module with a sentence each; without those in the option ``but``."""

    has_content = True
    option_spec: ClassVar = {"but": directives.unchanged}

    def run(self) -> list[nodes.Node]:
        """Return a short entry for each name."""
        module = import_module(self.arguments[0])
        left_out = self.options.get("but", "").split()
        if unknown := sorted(set(left_out) - set(public_names(module))):
            raise self.error(f"{module.__name__} has no public {', '.join(unknown)}.")
        subject = (module.__doc__ or "").splitlines()[0]
        lines = [f"``{module.__name__}``: {subject}", ""]
        if not left_out:  # otherwise another page documents the module
            lines = [f".. py:module:: {module.__name__}", "", *lines]
        for name in self.chosen(module):
            if name not in left_out:
                lines += [*_listed(module, name), ""]
        found = self.parse(module, lines)
        for part in found:
            for entry in part.findall(addnodes.desc):
                entry["classes"].append("pu-short")
            for prefix in list(part.findall(addnodes.desc_addname)):
                prefix.parent.remove(prefix)
        return found


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


def _listed(module: ModuleType, name: str) -> list[str]:
    """Return a short entry: the name and the first paragraph of its docstring."""
    thing = getattr(module, name)
    if inspect.isclass(thing):
        kind, text = "class", inspect.getdoc(thing) or ""
    elif callable(thing) and hasattr(thing, "__name__"):
        kind, text = "function", inspect.getdoc(thing) or ""
    else:
        analyser = ModuleAnalyzer.for_module(module.__name__)
        kind, text = "data", "\n".join(analyser.find_attr_docs().get(("", name), []))
    first = text.split("\n\n")[0].splitlines()
    options = [f"   :module: {module.__name__}", "   :no-contents-entry:"]
    return [f".. py:{kind}:: {name}", *options, "", *(f"   {line}" for line in first)]


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


def find_public(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.Node
) -> nodes.Node | None:
    """Let a docstring of any module name what `pu_lib` offers without the prefix."""
    if node.get("refdomain") != "py" or node["reftarget"] not in pu_lib.__all__:
        return None
    target = f"pu_lib.{node['reftarget']}"
    found: nodes.Node | None = env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, "obj", target, node, text
    )
    return found


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
    app.connect("missing-reference", find_public)
    app.add_directive("public", PublicDirective)
    app.add_directive("api", ApiDirective)
    app.add_directive("names", NamesDirective)
    app.add_directive("proofs", ProofsDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
