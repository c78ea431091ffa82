"""Directives for the API reference (``public``, ``api``, ``names``) and the proofs (``proofs``).

``{public} run`` documents a name exported by `pu_lib`. ``{api} pu_lib.mdp`` prints a module's
docstring and documents its public names in source order (``__all__``, or every name without a
leading underscore); names in the directive's body select a subset.
``{names} pu_lib.chapters.rates.quantities`` lists public names with one sentence each. Names in
code cells of the chapters link to these entries.
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
    """Return the public names defined in a module, in source order."""
    source = inspect.getsource(module)
    offered = getattr(module, "__all__", None) or _defined(source)
    names = [name for name in offered if _home(module, name) == module.__name__]
    return sorted(names, key=lambda name: _place(source, name))


def _defined(source: str) -> list[str]:
    """Return the public names defined at the top level of a module's source."""
    names = []
    for part in ast.parse(source).body:
        if isinstance(part, ast.FunctionDef | ast.ClassDef):
            names.append(part.name)
        elif isinstance(part, ast.Assign | ast.AnnAssign):
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            names += [target.id for target in targets if isinstance(target, ast.Name)]
    return [name for name in names if not name.startswith("_")]


def _home(module: ModuleType, name: str) -> str:
    return getattr(getattr(module, name), "__module__", None) or module.__name__


def _place(source: str, name: str) -> int:
    """Return the offset of the first definition of a class, function or variable."""
    starts = [f"\nclass {name}", f"\ndef {name}(", f"\n{name} =", f"\n{name}:"]
    return min((place for start in starts if (place := source.find(start)) >= 0), default=0)


def home_of(name: str) -> ModuleType:
    """Return the module that defines a name in `pu_lib.__all__`."""
    thing, module = getattr(pu_lib, name), import_module(f"pu_lib.{pu_lib._HOMES[name]}")
    return sys.modules[thing.__module__] if hasattr(thing, "__qualname__") else module


class ReferenceDirective(SphinxDirective):
    """Base class of the reference directives, which generate and parse reStructuredText."""

    required_arguments = 1
    final_argument_whitespace = True

    def parse(self, module: ModuleType, lines: list[str]) -> list[nodes.Node]:
        """Parse lines about a module and make the page depend on the module's source file."""
        root = nodes.Element()
        self.env.note_dependency(str(inspect.getsourcefile(module)))
        # MyST parses directives in Markdown, so reStructuredText needs a wrapper
        lines = ["```{eval-rst}", *lines, "```"]
        self.state.nested_parse(StringList(lines, source=module.__name__), 0, root)
        return root.children

    def selected_names(self, module: ModuleType) -> list[str]:
        """Return the names in the body or, by default, all names that `pu_lib` does not export."""
        everything = public_names(module)
        names = " ".join(self.content).split()
        if unknown := sorted(set(names) - set(everything)):
            raise self.error(f"{module.__name__} has no public {', '.join(unknown)}.")
        return names or [
            name for name in everything if name not in pu_lib.__all__ or home_of(name) is not module
        ]


class PublicDirective(ReferenceDirective):
    """Document a name exported by `pu_lib`, both as `pu_lib.NAME` and under its module."""

    def run(self) -> list[nodes.Node]:
        """Return the entry."""
        name = self.arguments[0]
        module = home_of(name)
        parsed = self.parse(module, _documented(module, name))
        signature = next(node for part in parsed for node in part.findall(addnodes.desc_signature))
        for prefix in signature.findall(addnodes.desc_addname):
            prefix.clear()
            prefix += nodes.Text("pu_lib.")
        place, (anchor, *_) = f"pu_lib.{name}", signature["ids"]
        signature["ids"].append(place)
        kind = signature.parent["objtype"]
        self.env.get_domain("py").note_object(place, kind, anchor, True, signature)
        return parsed


class ApiDirective(ReferenceDirective):
    """Document a module or selected names in it."""

    has_content = True
    option_spec: ClassVar = {"no-text": directives.flag}

    def run(self) -> list[nodes.Node]:
        """Return the module's docstring, a table of its names, and an entry for each."""
        module = import_module(self.arguments[0])
        names = self.selected_names(module)
        # autodoc reads a variable's docstring from the string below its definition
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
    """List a module's public names with one sentence each, except those in the option ``but``."""

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
        for name in self.selected_names(module):
            if name not in left_out:
                lines += [*_listed(module, name), ""]
        parsed = self.parse(module, lines)
        for part in parsed:
            for entry in part.findall(addnodes.desc):
                entry["classes"].append("pu-short")
            for prefix in list(part.findall(addnodes.desc_addname)):
                prefix.parent.remove(prefix)
        return parsed


class ProofsDirective(SphinxDirective):
    """List the machine-checked theorems and the claims they prove."""

    def run(self) -> list[nodes.Node]:
        """Return the list as raw HTML."""
        from pu_lib.claims.tables import proof_list

        return [nodes.raw("", str(proof_list()), format="html")]


def _documented(module: ModuleType, member: str) -> list[str]:
    thing, full = getattr(module, member), f"{module.__name__}.{member}"
    if inspect.isclass(thing):
        # a named tuple's docstring describes its fields
        members = [] if issubclass(thing, tuple) else ["   :members:"]
        values = (
            ["   :undoc-members:", "   :member-order: bysource"] if issubclass(thing, Enum) else []
        )
        bases = [] if thing.__bases__ == (object,) else ["   :show-inheritance:"]
        return [f".. autoclass:: {full}", *members, *values, *bases]
    if callable(thing) and hasattr(thing, "__name__"):
        return [f".. autofunction:: {full}"]
    # signatures show defaults by name, so the entry of a number shows its value
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


def titles_to_rubrics(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Turn section titles in module docstrings into rubrics, which are not sections of the page."""
    if what == "module":
        for i in range(len(lines) - 1, 0, -1):
            if lines[i] and set(lines[i]) == {"-"} and len(lines[i]) == len(lines[i - 1]):
                lines[i - 1 : i + 1] = [f".. rubric:: {lines[i - 1]}", ""]


def omit_enum_signature(
    app: Sphinx, what: str, name: str, thing: Any, *signature: Any
) -> tuple[str, str] | None:
    """Omit the signature of an enumeration, which no code calls."""
    return ("", "") if inspect.isclass(thing) and issubclass(thing, Enum) else None


def read_unparsed(text: GoogleDocstring) -> tuple[str, list[str]]:
    """Return a variable's docstring unchanged; napoleon parses text before a colon as a type."""
    return "", type(text)(text._consume_to_end(), text._config).lines()


def find_public(
    app: Sphinx, env: BuildEnvironment, node: addnodes.pending_xref, text: nodes.Node
) -> nodes.Node | None:
    """Resolve references to names exported by `pu_lib` that lack the prefix."""
    if node.get("refdomain") != "py" or node["reftarget"] not in pu_lib.__all__:
        return None
    target = f"pu_lib.{node['reftarget']}"
    reference: nodes.Node | None = env.get_domain("py").resolve_xref(
        env, node["refdoc"], app.builder, "obj", target, node, text
    )
    return reference


class _Analyser(block.CodeBlockAnalyser):
    """Analyse code cells without assuming that every section has a title.

    Statements and proofs in the chapters are sections without titles.
    """

    def visit_section(self, node: nodes.section) -> None:
        """Enter a section if it has a title."""
        if _has_title(node):
            super().visit_section(node)

    def depart_section(self, node: nodes.section) -> None:
        """Leave a section if it has a title."""
        if _has_title(node):
            super().depart_section(node)


def _has_title(node: nodes.section) -> bool:
    return any(isinstance(child, nodes.title) for child in node.children)


BLOCK = re.compile(
    r'<div class="[^"]*\bhighlight-[^"]*"[^>]*>\s*'
    r'<div class="highlight">.*?</pre>\s*</div>\s*</div>',
    re.DOTALL,
)
"""A code block in an HTML page."""


def link_blocks(document: str, folder: str, *arguments: Any, **options: Any) -> None:
    """Link the names in a page's code blocks; parsing the whole page would take seconds."""
    path = Path(folder) / f"{document}.html"
    page = path.read_text("utf-8")
    path.write_text("\n".join(BLOCK.findall(page)), "utf-8")
    block.link_html(document, folder, *arguments, **options)
    linked = BLOCK.findall(path.read_text("utf-8"))[::-1]
    path.write_text(BLOCK.sub(lambda _: linked.pop(), page), "utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directives and the extensions they use."""
    for extension in ("sphinx.ext.autodoc", "sphinx.ext.autosummary", "sphinx.ext.napoleon"):
        app.setup_extension(extension)
    app.setup_extension("sphinx_codeautolink")
    # in the package, a string named `extension` hides the module
    linking = sys.modules["sphinx_codeautolink.extension"]
    linking.CodeBlockAnalyser, linking.link_html = _Analyser, link_blocks
    GoogleDocstring._consume_inline_attribute = read_unparsed
    app.connect("autodoc-process-docstring", titles_to_rubrics)
    app.connect("autodoc-process-signature", omit_enum_signature)
    app.connect("missing-reference", find_public)
    app.add_directive("public", PublicDirective)
    app.add_directive("api", ApiDirective)
    app.add_directive("names", NamesDirective)
    app.add_directive("proofs", ProofsDirective)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
