"""Changes to the Sphinx build that the settings of Jupyter Book cannot express.

Each function below makes one change:

- `key_the_assets`: rewrite every page after an edit of a style sheet or script.
- `forget_after_warnings`: delete the environment of a build with warnings, so that the next build
  repeats the warnings instead of passing.
- `copy_assets`: copy fonts and the widgets' front end from ``node_modules``; pages load nothing
  from other hosts.
- `mend_scripts`: stop the theme from measuring every scrollable box after every change
  (``web/book.js`` measures after loading and when the width or the content changes), and remove
  anywidget's deadline of two seconds, because no kernel waits for the widget here.
- `drop_scripts`: remove the live-code extension of Jupyter Book, which adds the address of another
  host to every page, and Sphinx's MathJax, because `pu_formulas` typesets the formulas.
- `share_html_handlers`, `add_all_widgets`: support one page with all chapters, for the PDF.
- `write_in_parallel`: write pages on all processors.
- `tidy_statements`: add index entries for theorem boxes (the search finds "Theorem 5"), remove the
  second "Theorem" from titles without a number, and add a permanent link to each title.
- `keep_index_entries`: keep the search entries of pages that are not rewritten.
- `list_titles`: list statements in their index by chapter and title, not by label.
- `number_by_chapter`: number exercises by chapter, as the text refers to them.
- `publish`: derive launch buttons, canonical and preview addresses from the repository's public
  address in ``_config.yml``, or omit them if it is empty; take the author from ``CITATION.cff``.
- `write_downloads`: offer plain copies of the notebooks for download, with outputs and, if the
  repository has a public address, a cell that installs the library.
- `lead_to_rows`: let links such as ``ledger.html#thm:rates`` lead to the page that has the row.
- `keep_first_ids`: remove duplicate identifiers from a page, as HTML requires.
- `explain_terms`: show the first sentence of a glossary definition on links to its term.
- `offer_narrow_pictures`, `unpack_pictures`: provide a second image of figures for narrow screens.
- `mend_search`: rank search results (``web/search.js``), omit formulas from excerpts, where they
  would appear as LaTeX, and fix searches for words such as "constructor".
- `skip_final_collection`: end the process as soon as the last page is written.
- `ReadingPathDirective`, `add_next_on_path`: show the reading path, which ``pu_path`` in
  ``_config.yml`` defines, as a line of links and at the foot of its pages.
- `LedgerDirective`: insert tables of `pu_lib.claims.tables` into Markdown pages.
"""

from __future__ import annotations

import gc
import html
import os
import re
import shutil
import sys
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

import nbformat
import yaml
from docutils import nodes
from myst_nb.sphinx_ import NbMetadataCollector
from pu_notebooks import ROOT, digest
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.environment import BuildEnvironment
from sphinx.errors import ExtensionError
from sphinx.search import js_index
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective
from sphinx_proof.domain import ProofIndex
from sphinx_proof.nodes import NODE_TYPES, unenumerable_node

LOGGER = logging.getLogger(__name__)
MODULES = ROOT / "node_modules"
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))

ASSETS = {
    "mathjax/es5/output/chtml/fonts/woff-v2": "mathjax/output/chtml/fonts/woff-v2",
    "requirejs/require.js": "require.js",
    "@jupyter-widgets/html-manager/dist/embed-amd.js": "embed-amd.js",
    "@jupyter-widgets/html-manager/dist/*.woff2": "widgets",
    "@fontsource-variable/source-serif-4/wght.css": "serif/wght.css",
    "@fontsource-variable/source-serif-4/wght-italic.css": "serif/wght-italic.css",
    "@fontsource-variable/source-serif-4/files": "serif/files",
}
"""Files, folders and patterns in ``node_modules``, with their targets in ``_static/vendor``."""

MENDED = {
    "scripts/pydata-sphinx-theme.js": (
        re.compile(r'document\.querySelectorAll\(\["pre",[^]]+\]\.join\(", "\)\)'),
        "[]",
    ),
    "vendor/anywidget.js": (re.compile(r"AbortSignal\.timeout\(2e3\)"), "options.signal"),
}
"""Pattern and replacement by third-party script: the theme measures no boxes, and loading a widget
is aborted when the widget is removed, not after a timeout."""

KINDS = ("theorem", "proposition", "lemma", "corollary", "remark", "conjecture", "definition")
"""A title that begins with one of these words names the kind of its box."""


def key_the_assets(app: Sphinx, config: Config) -> None:
    """Store a hash of the style sheets and scripts, so that a change rewrites all pages."""
    config.pu_assets = digest("package-lock.json", "web", "sphinx_ext/typeset.cjs")


def forget_after_warnings(app: Sphinx, exception: Exception | None) -> None:
    """Delete the pickled environment of a build that failed or emitted warnings."""
    if exception is not None or app._warncount:
        (Path(app.doctreedir) / "environment.pickle").unlink(missing_ok=True)


def require_assets(app: Sphinx) -> None:
    """Raise an error before the build if browser assets are missing."""
    missing = [source for source in ASSETS if not any(MODULES.glob(source))]
    if missing:
        raise ExtensionError(
            f"node_modules lacks {', '.join(missing)}: run `npm ci` (or `make book`) first."
        )


def copy_assets(app: Sphinx, exception: Exception | None) -> None:
    """Copy the browser assets into the book's ``_static/vendor``, and delete source maps."""
    if exception is not None or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_static").rglob("*.map"):
        path.unlink()
    vendor = Path(app.outdir) / "_static" / "vendor"
    for pattern, name in ASSETS.items():
        target = vendor / name
        (target if "*" in pattern else target.parent).mkdir(parents=True, exist_ok=True)
        for source in MODULES.glob(pattern):
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            else:
                shutil.copy2(source, target)
    nbextensions = Path(sysconfig.get_path("data")) / "share" / "jupyter" / "nbextensions"
    shutil.copy2(nbextensions / "anywidget" / "index.js", vendor / "anywidget.js")


def mend_scripts(app: Sphinx, exception: Exception | None) -> None:
    """Disable the theme's measuring of scrollable boxes and anywidget's timeout.

    Measuring forces the layout of every section that the style sheet defers, and is repeated after
    each change. It takes 1.5 seconds on the ledger page.
    """
    for name, (pattern, replacement) in MENDED.items():
        script = Path(app.outdir) / "_static" / name
        if exception is None and script.exists():
            script.write_text(pattern.sub(replacement, script.read_text("utf-8")), "utf-8")


def drop_scripts(app: Sphinx) -> None:
    """Disconnect the handlers of two extensions that Jupyter Book always loads."""
    for event in app.events.listeners.values():
        event[:] = [
            listener
            for listener in event
            if not listener.handler.__module__.startswith(("sphinx_thebe", "sphinx.ext.mathjax"))
        ]


def share_html_handlers(app: Sphinx) -> None:
    """Add the node handlers of ``html`` to those of ``singlehtml``, the builder for the PDF.

    Sphinx falls back to the handlers of ``html`` only if no extension registers any for
    ``singlehtml``, and one extension does.
    """
    handlers = app.registry.translation_handlers
    handlers["singlehtml"] = handlers.get("html", {}) | handlers.get("singlehtml", {})


def add_all_widgets(app: Sphinx, pagename: str, *context: Any) -> None:
    """Add the widgets of every chapter to the PDF's single page."""
    if app.builder.name == "singlehtml":
        for docname in sorted(app.env.found_docs - {pagename}):
            for path, options in NbMetadataCollector.get_js_files(app.env, docname).values():
                app.add_js_file(path, **options)


def write_in_parallel(app: Sphinx, env: BuildEnvironment) -> None:
    """Write pages in parallel on all processors; one process reads the pages and the ledger."""
    app.parallel = 1 + (os.cpu_count() or 1)  # Sphinx uses one process to prepare pages


def tidy_statements(app: Sphinx, document: nodes.document) -> None:
    """Index every theorem-like box by its title and remove repetition from the title."""
    docname = app.env.docname
    for node in list(document.findall(_is_statement)):
        title = next(iter(node.findall(nodes.title)), None)
        name = re.sub(r"^\s*\((.*)\)\s*$", r"\1", title.astext()) if title else ""
        if not name:
            continue
        _titles(app.env)[node.get("label", "")] = name.replace("$", "")
        entries = [("single", name, node["ids"][0], "main", None)]
        number = re.match(r"(Theorem|Proposition|Lemma|Corollary) \d+", name)
        if number and number.group() != name:
            entries.append(("single", number.group(), node["ids"][0], "main", None))
        node.parent.insert(
            node.parent.index(node), addnodes.index(entries=entries, docname=docname)
        )
        # the index domain has already collected the entries of this page, so add the new ones
        app.env.get_domain("index").entries.setdefault(docname, []).extend(entries)
        if name.split()[0].lower() in KINDS and isinstance(node, unenumerable_node):
            _unwrap(title)
            node["classes"].append("named")
        link = f'<a class="headerlink" href="#{node["ids"][0]}" title="Link to this box">#</a>'
        title += nodes.raw("", link, format="html")


def _titles(env: BuildEnvironment) -> dict[str, str]:
    """Return the titles of the statements by label."""
    if not hasattr(env, "pu_titles"):
        env.pu_titles = {}
    return env.pu_titles


def list_titles(index: ProofIndex, docnames: Any = None) -> tuple[list[tuple[str, Any]], bool]:
    """List the statements by chapter and title; `sphinx_proof` lists labels."""
    env = index.domain.env
    chapters: dict[str, list[tuple[Any, ...]]] = {}
    for label, proof in getattr(env, "proof_list", {}).items():
        title = _titles(env).get(label, proof["realtype"].title())
        row = (title, 0, proof["docname"], label, "", "", "")
        chapters.setdefault(proof["docname"], []).append(row)
    order = [page for pages in env.toctree_includes.values() for page in pages]
    known = sorted(chapters, key=lambda page: order.index(page) if page in order else len(order))
    return [(env.titles[page].astext(), chapters[page]) for page in known], True


def _is_statement(node: nodes.Node) -> bool:
    return isinstance(node, (unenumerable_node, *NODE_TYPES.values()))


def _unwrap(title: nodes.title) -> None:
    """Remove the parentheses around a title that names the kind of its box."""
    texts = list(title.findall(nodes.Text))
    first, last = texts[0], texts[-1]
    if first is last:
        first.parent.replace(first, nodes.Text(first.strip().removeprefix("(").removesuffix(")")))
        return
    first.parent.replace(first, nodes.Text(first.lstrip().removeprefix("(")))
    last.parent.replace(last, nodes.Text(last.rstrip().removesuffix(")")))


def keep_index_entries(app: Sphinx) -> list[Any]:
    """Copy index entries of pages that are not rewritten from the search index on disk.

    For these pages, Sphinx copies only words and titles. Without index entries, the search cannot
    find a theorem by its number.
    """
    indexer = getattr(app.builder, "indexer", None)
    written = Path(app.outdir) / "searchindex.js"
    if indexer is not None and written.exists():
        fresh = set(indexer._index_entries)
        stored = js_index.loads(written.read_text("utf-8"))
        for entry, places in stored["indexentries"].items():
            for page, target, is_main in places:
                name = stored["docnames"][page]
                if name in indexer._titles and name not in fresh:
                    entries = indexer._index_entries.setdefault(name, [])
                    entries.append((entry, target, "main" if is_main else ""))
    return []


def number_by_chapter(app: Sphinx, env: BuildEnvironment) -> list[str]:
    """Restart the numbering of exercises in each chapter, which Sphinx does not do.

    A page "More on" continues the numbers of its chapter.
    """
    counts: Counter[Any] = Counter()
    for page, kinds in env.toc_fignumbers.items():
        for label, (*chapter, _) in kinds.get("exercise", {}).items():
            place = tuple(chapter) or page
            counts[place] += 1
            kinds["exercise"][label] = (*chapter, counts[place])
    return []


def publish(app: Sphinx, config: Config) -> None:
    """Derive the author from ``CITATION.cff`` and public addresses from that of the repository."""
    config.author = " and ".join(author["name"] for author in CITATION["authors"])
    options = config.html_theme_options
    repository = (options.get("repository_url") or "").rstrip("/")
    if not repository:
        for option in ("use_repository_button", "use_issues_button", "use_edit_page_button"):
            options[option] = False
        options.pop("launch_buttons", None)
        options.pop("repository_url", None)
        return
    parts = urlsplit(repository)
    owner, _, name = parts.path.strip("/").partition("/")
    if not config.html_baseurl and parts.hostname == "github.com":
        config.html_baseurl = f"https://{owner}.github.io/{name}/"


def write_downloads(app: Sphinx, exception: Exception | None) -> None:
    """Write plain copies of the notebooks, with outputs, where the download buttons find them."""
    targets = sorted((Path(app.outdir) / "_sources" / "book").glob("*.ipynb"))
    if exception is not None or app.builder.name != "html" or not targets:
        return
    sys.path.append(str(ROOT / "tools"))
    from plain import Book, install_cell, plain_notebook

    repository = (app.config.html_theme_options.get("repository_url") or "").rstrip("/")
    book = Book(Path(app.srcdir))
    for target in targets:
        copy = plain_notebook(book.folder / target.name, book, outputs=True)
        if repository:
            copy["cells"].insert(0, install_cell(repository))
        target.write_text(nbformat.writes(copy) + "\n", "utf-8")


def preview(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add preview tags for shared links and make the Colab buttons open the branch ``colab``."""
    title = re.sub(r"<[^>]*>", "", str(context.get("title", ""))) or app.config.html_title
    base = app.config.html_baseurl
    image = f"{base}_static/social.png" if base else context["pathto"]("_static/social.png", 1)
    tags = {
        "og:title": title,
        "og:site_name": app.config.html_title,
        "og:type": "article",
        "og:image": image,
        "og:image:alt": "The title of the book beside paths of policies on the simplex",
    }
    if base:
        tags["og:url"] = f"{base}{pagename}.html"
    cited = {
        "citation_title": CITATION["title"],
        "citation_author": app.config.author,
        "citation_publication_date": app.config.copyright,
        "citation_version": CITATION["version"],
    }
    lines = [f'<meta property="{key}" content="{value}">' for key, value in tags.items()]
    lines += [f'<meta name="{key}" content="{value}">' for key, value in cited.items()]
    lines.append('<meta name="twitter:card" content="summary_large_image">')
    context["metatags"] = context.get("metatags", "") + "\n".join(lines)
    for group in context.get("header_buttons", []):
        for button in group.get("buttons", []) if isinstance(group, dict) else ():
            if button.get("text") == "Colab":
                button["url"] = re.sub(r"/blob/[^/]+/", "/blob/colab/", button["url"])


def explain_terms(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Set the title of links to glossary terms to the first sentence of the definition."""
    for reference in doctree.findall(nodes.reference):
        target = reference.get("refuri", "") or "#" + reference.get("refid", "")
        term = target.partition("#term-")[2]
        if term:
            sentence = _definitions(app.env).get(f"term-{term}")
            if sentence:
                reference["reftitle"] = sentence


def _definitions(env: BuildEnvironment) -> dict[str, str]:
    """Return the first sentence of each glossary definition by the identifier of its term."""
    if not hasattr(env, "pu_definitions"):
        env.pu_definitions = {
            identifier: item.next_node(nodes.definition).astext().split(". ")[0].rstrip(".") + "."
            for name in env.found_docs
            if name.endswith("glossary")
            for item in env.get_doctree(name).findall(nodes.definition_list_item)
            for term in item.findall(nodes.term)
            for identifier in term["ids"]
        }
    return env.pu_definitions


def clear_definitions(app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Clear the cached definitions if the glossary has changed."""
    if docname.endswith("glossary") and hasattr(env, "pu_definitions"):
        del env.pu_definitions


def mend_search(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add the script that changes the search to the search page."""
    if pagename == "search":
        app.add_js_file("search.js")  # it must listen before Sphinx's script does


ROW = re.compile(r'href="ledger\.html#([^"]*:[^"]*)"')


def lead_to_rows(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Make links to claims lead to the page of the ledger with the claim's row.

    The ledger has a page for each chapter. Text need not know the chapter of a claim: it may link
    to ``ledger.html#thm:rates``, and readers may, too, because the list of all claims has the same
    identifiers.
    """
    from pu_lib.claims.catalog import ledger, row_address

    addresses = {claim.id: row_address(claim) for claim in ledger()}

    def row(match: re.Match[str]) -> str:
        name = html.unescape(unquote(match[1]))
        if name not in addresses:
            LOGGER.warning("%s links to %r, which is not in the ledger", pagename, name)
            return match[0]
        return f'href="{addresses[name]}"'

    if "body" in context:
        context["body"] = ROW.sub(row, context["body"])


IDENTIFIER = re.compile(r'(<[a-zA-Z][^<>]*?)\sid="([^"]*)"')


def keep_first_ids(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Keep only the first occurrence of each identifier on a page, which is the target of links.

    The extensions for theorems and exercises repeat the identifier of a box on its title and use
    the same identifier in every box.
    """
    seen: set[str] = set()

    def first(match: re.Match[str]) -> str:
        new = match[2] not in seen
        seen.add(match[2])
        return match[0] if new else match[1]

    if "body" in context:
        context["body"] = IDENTIFIER.sub(first, context["body"])


PICTURE = re.compile(r'<img\b[^>]*?\bsrc="([^"]*?_images/([^"/]+))\.png"[^>]*>')


def offer_narrow_pictures(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Use the embedded second image of a figure on narrow screens."""
    from pu_lib.drawing.narrow import unpack

    places = {name: path for path, (_, name) in app.env.images.items()}

    def with_narrow(match: re.Match[str]) -> str:
        path = Path(app.srcdir) / places.get(f"{match[2]}.png", "")
        if not path.is_file() or unpack(path.read_bytes())[1] is None:
            return match[0]
        narrow = f'<source media="screen and (max-width: 36rem)" srcset="{match[1]}-narrow.png">'
        return f"<picture>{narrow}{match[0]}</picture>"

    if "body" in context:
        context["body"] = PICTURE.sub(with_narrow, context["body"])


def unpack_pictures(app: Sphinx, exception: Exception | None) -> None:
    """Write the embedded images for narrow screens to files beside the originals."""
    from pu_lib.drawing.narrow import unpack

    if exception is not None or app.builder.format != "html":
        return
    for path in (Path(app.outdir) / "_images").glob("*.png"):
        wide, narrow = unpack(path.read_bytes())
        if narrow is not None:
            path.write_bytes(wide)
            path.with_name(f"{path.stem}-narrow.png").write_bytes(narrow)


def skip_final_collection(app: Sphinx, exception: Exception | None) -> None:
    """Skip the final garbage collection, which takes seconds."""
    gc.freeze()


class ReadingPathDirective(SphinxDirective):
    """Insert the reading path as a line of links."""

    def run(self) -> list[nodes.Node]:
        """Return the links as raw HTML."""
        items = "".join(
            f'<li><a href="{name}.html">{html.escape(title)}</a></li>'
            for name, title in self.config.pu_path.items()
        )
        line = f"<p>Reading path</p><ol>{items}</ol>"
        path = f'<nav class="pu-path" id="reading-path" aria-label="Reading path">{line}</nav>'
        return [nodes.raw("", path, format="html")]


def add_next_on_path(
    app: Sphinx, pagename: str, template: str, context: dict[str, Any], doctree: Any
) -> None:
    """Add the place on the reading path and a link to the next page to the pages on the path."""
    path = app.config.pu_path
    name = pagename.removeprefix("book/")
    if name not in path or "body" not in context or app.builder.name == "singlehtml":
        return
    place = list(path).index(name) + 1
    start = '<a href="index.html#reading-path">Reading path</a>'
    following = dict(zip(path, list(path)[1:], strict=False)).get(name)
    link = "the end"
    if following:
        link = f'next <a href="{following}.html" rel="next">{html.escape(path[following])}</a>'
    context["body"] += (
        '<nav class="pu-path" aria-label="Reading path">'
        f"<p>{start} {place} of {len(path)}: {link}</p></nav>"
    )


class LedgerDirective(SphinxDirective):
    """Insert the table that a function of `pu_lib.claims.tables`, such as ``summary``, returns."""

    required_arguments = 1
    optional_arguments = 1
    tables: ClassVar = (
        "errata_table",
        "ledger_table",
        "power_table",
        "standing",
        "statement_index",
        "summary",
        "what_stands",
    )

    def run(self) -> list[nodes.Node]:
        """Return the table as raw HTML."""
        from pu_lib.claims import tables as ledger

        name, *arguments = self.arguments
        if name not in self.tables:
            raise self.error(f"ledger: expected one of {', '.join(self.tables)}, got {name!r}.")
        return [nodes.raw("", str(getattr(ledger, name)(*arguments)), format="html")]


def setup(app: Sphinx) -> dict[str, Any]:
    """Connect the handlers and add the directive, scripts and style sheets."""
    # Pages are trees of millions of small objects. Garbage collection takes a fifth of the build
    # time; without it, the build needs 1.2 GB of memory instead of 0.6 GB.
    gc.disable()
    ProofIndex.generate = list_titles
    ProofIndex.localname = "Statements by chapter"
    app.add_config_value("pu_assets", "", "html", str)
    app.add_config_value("pu_path", {}, "env", dict)
    app.add_directive("ledger", LedgerDirective)
    app.add_directive("reading-path", ReadingPathDirective)
    app.connect("config-inited", key_the_assets)
    app.connect("config-inited", publish, priority=900)
    app.connect("builder-inited", require_assets)
    app.connect("builder-inited", drop_scripts, priority=1)
    app.connect("builder-inited", share_html_handlers)
    app.connect("env-check-consistency", write_in_parallel)
    app.connect("env-purge-doc", clear_definitions)
    app.connect("env-get-updated", number_by_chapter, priority=900)
    app.connect("doctree-read", tidy_statements)
    app.connect("doctree-resolved", explain_terms)
    app.connect("html-collect-pages", keep_index_entries)
    app.connect("html-page-context", add_all_widgets)
    app.connect("html-page-context", mend_search)
    app.connect("html-page-context", add_next_on_path)
    app.connect("html-page-context", lead_to_rows)
    app.connect("html-page-context", keep_first_ids)
    app.connect("html-page-context", offer_narrow_pictures)
    app.connect("html-page-context", preview, priority=900)
    app.connect("build-finished", copy_assets)
    app.connect("build-finished", mend_scripts)
    app.connect("build-finished", write_downloads)
    app.connect("build-finished", unpack_pictures)
    app.connect("build-finished", forget_after_warnings, priority=900)
    app.connect("build-finished", skip_final_collection, priority=950)
    app.add_js_file("early.js", priority=1)
    app.add_js_file("book.js", loading_method="defer")
    serif = ("vendor/serif/wght.css", "vendor/serif/wght-italic.css")
    for sheet in (*serif, "book.css", "landing.css"):
        app.add_css_file(sheet, priority=900)
    return {"version": "1", "parallel_read_safe": False, "parallel_write_safe": True}
