"""Tests of the Sphinx extensions: cached executions, search index, titles and formulas."""

import html
import json
import logging
import re
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import nbformat
import pu_book
import pu_notebooks
import pytest
import sphinx.cmd.build
from nbmake.pytest_items import NotebookRun
from pu_formulas import formulas_of, typeset_pages
from sphinx.search import js_index

from pu_lib.chapters.unlearning import quantities as unlearning
from pu_lib.claims.formulas import formula
from sphinx_ext.pu_book import list_titles, number_by_chapter


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in {
        "requirements.txt": "numpy==2",
        "pu_lib/updates.py": "ETA = 1",
        "package-lock.json": "{}",
        "web/book.css": "p {}",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(pu_notebooks, "ROOT", tmp_path)
    monkeypatch.setattr(pu_notebooks, "CACHES", tmp_path / "_build" / ".jupyter_cache")
    monkeypatch.setattr(pu_notebooks, "TIMES", pu_notebooks.CACHES / "seconds")
    return tmp_path


def keys() -> tuple[str, str]:
    app, config = SimpleNamespace(), SimpleNamespace()
    pu_notebooks.choose_cache(app, config)
    pu_book.key_the_assets(app, config)
    return Path(config.nb_execution_cache_path).name, config.pu_assets


@pytest.mark.parametrize("name", ["requirements.txt", "pu_lib/updates.py"])
def test_library_changes_invalidate_stored_executions(repository: Path, name: str) -> None:
    before = keys()
    (repository / name).write_text("changed")
    after = keys()
    assert after[0] != before[0]
    assert after[1] == before[1]


def test_style_changes_do_not_invalidate_stored_executions(
    repository: Path,
) -> None:
    before = keys()
    (repository / "web" / "book.css").write_text("p { margin: 0 }")
    after = keys()
    assert after[0] == before[0]
    assert after[1] != before[1]


def counting_notebook(folder: Path) -> Callable[[], pu_notebooks.Execution]:
    """Write a notebook that records each of its executions in the file ``count``."""
    code = f"open({str(folder / 'count')!r}, 'a').write('.')"
    path = folder / "counting_notebook.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)]), path)
    return lambda: pu_notebooks.Execution(path, nbformat.read(path, 4), pu_notebooks.current())


def test_tests_and_book_share_executed_notebooks(repository: Path) -> None:
    execution, count = counting_notebook(repository), repository / "count"
    by_tests = NotebookRun(execution().path, 60)
    assert by_tests.execute().error is None
    assert pu_notebooks.execute(execution(), 60) == (0.0, "")
    assert count.read_text() == "."
    (repository / "pu_lib" / "updates.py").write_text("ETA = 2")
    with ThreadPoolExecutor() as pool:
        twice = [execution(), execution()]
        waited, (seconds, failure) = sorted(pool.map(pu_notebooks.execute, twice, [60] * 2))
    assert waited == (0.0, "")
    assert seconds > 0
    assert failure == ""
    assert NotebookRun(execution().path, 60).execute().error is None
    assert count.read_text() == ".."


def test_failed_or_outdated_executions_are_not_stored(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution = counting_notebook(repository)()

    def failing(notebook: Any, **options: Any) -> SimpleNamespace:
        return SimpleNamespace(time=1.0, err=ValueError(), exc_string="no")

    def outdated(notebook: Any, **options: Any) -> SimpleNamespace:
        (repository / "pu_lib" / "updates.py").write_text("ETA = 3")
        return SimpleNamespace(time=1.0, err=None, exc_string=None)

    for run, outcome in ((failing, (1.0, "no")), (outdated, (1.0, ""))):
        monkeypatch.setattr(pu_notebooks, "single_nb_execution", run)
        assert pu_notebooks.execute(execution, 60) == outcome
        assert not execution.is_kept


@pytest.mark.parametrize(("warnings", "exists"), [(0, True), (2, False)])
def test_build_with_warnings_is_repeated(tmp_path: Path, warnings: int, exists: bool) -> None:
    pickle = tmp_path / "environment.pickle"
    pickle.write_text("x")
    app = SimpleNamespace(doctreedir=tmp_path, _warncount=warnings)
    pu_book.forget_after_warnings(app, None)
    assert pickle.exists() is exists


CONF = """
import pu_book
def setup(app):
    app.connect("html-collect-pages", pu_book.keep_index_entries)
"""


def test_incremental_build_preserves_the_search_entries(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    (source / "conf.py").write_text(CONF)

    def write(page: str, number: int) -> None:
        text = f".. index:: single: Theorem {number}; main\n\n{page}\n=======\n\n:doc:`index`\n"
        (source / f"{page}.rst").write_text(f":orphan:\n\n{text}")

    def entries() -> dict[str, list[Any]]:
        assert sphinx.cmd.build.main(["-q", str(source), str(built)]) == 0
        index = js_index.loads((built / "searchindex.js").read_text())
        return {
            entry: sorted([index["docnames"][page], *rest] for page, *rest in places)
            for entry, places in index["indexentries"].items()
        }

    write("index", 1)
    write("other", 5)
    fresh = entries()
    assert [page for page, *_ in fresh["theorem 5"]] == ["other"]
    write("index", 2)
    assert entries().keys() == {"main", "theorem 2", "theorem 5"}
    write("index", 1)
    assert entries() == fresh
    (source / "other.rst").unlink()
    write("index", 3)
    assert entries().keys() == {"main", "theorem 3"}


BOXES = """
import pu_book
extensions = ["myst_parser", "sphinx_proof", "sphinx_exercise"]
def setup(app):
    app.connect("html-page-context", pu_book.keep_first_ids)
"""
PAGE = """# Page

```{prf:theorem} Theorem 5 of the paper
:label: thm-a
:nonumber:
One.
```

```{prf:proof}
Clear.
```

```{prf:theorem} Of this book
:label: thm-b
Two, beside {prf:ref}`thm-a` and {prf:ref}`thm-b`.
```

```{prf:proof}
Clear, too.
```

```{exercise}
:label: ex-a
Do it.
```

```{exercise}
:label: ex-b
Again.
```

```{solution} ex-a
So.
```

```{solution} ex-b
So.
```
"""


def test_identifiers_of_boxes_are_unique(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    source.mkdir()
    (source / "conf.py").write_text(BOXES)
    (source / "index.md").write_text(PAGE)
    assert sphinx.cmd.build.main(["-q", str(source), str(built)]) == 0
    page = (built / "index.html").read_text("utf-8")
    identifiers = Counter(re.findall(r'\sid="([^"]*)"', page))
    assert {name for name, count in identifiers.items() if count > 1} == set()
    assert identifiers >= Counter(["thm-a", "thm-b", "ex-a", "ex-b"])
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert {"thm-a", "thm-b", "ex-a", "ex-b"} <= targets <= identifiers.keys()


def published(address: str) -> SimpleNamespace:
    options = {"repository_url": address, "use_issues_button": True, "launch_buttons": {"x": "y"}}
    config = SimpleNamespace(html_theme_options=options, html_baseurl="")
    pu_book.publish(SimpleNamespace(), config)
    return config


def test_book_without_address_does_not_link_a_repository() -> None:
    config = published("")
    assert "launch_buttons" not in config.html_theme_options
    assert config.html_theme_options["use_issues_button"] is False
    assert config.html_baseurl == ""


def test_repository_address_adds_buttons_and_a_base_url() -> None:
    config = published("https://github.com/someone/the-book/")
    assert config.html_theme_options["launch_buttons"] == {"x": "y"}
    assert config.html_baseurl == "https://someone.github.io/the-book/"


def test_downloads_install_the_library_if_there_is_an_address(tmp_path: Path) -> None:
    path = tmp_path / "_sources" / "book" / "domino.ipynb"
    path.parent.mkdir(parents=True)
    path.touch()  # Sphinx copies the notebooks that are pages
    config = SimpleNamespace(html_theme_options={"repository_url": ""})
    builder = SimpleNamespace(name="html")
    root = str(pu_notebooks.ROOT)
    app: Any = SimpleNamespace(config=config, outdir=str(tmp_path), srcdir=root, builder=builder)
    pu_book.write_downloads(app, None)
    first, *_ = json.loads(path.read_text("utf-8"))["cells"]
    assert "".join(first["source"]).startswith("# ")
    config.html_theme_options["repository_url"] = "https://github.com/someone/the-book/"
    pu_book.write_downloads(app, None)
    first, second, *_ = json.loads(path.read_text("utf-8"))["cells"]
    assert "clone --quiet --depth 1 https://github.com/someone/the-book " in "".join(
        first["source"]
    )
    assert "".join(second["source"]).startswith("# ")


def test_links_to_claims_lead_to_their_rows(caplog: pytest.LogCaptureFixture) -> None:
    links = [
        '<a href="ledger.html#thm:rates">',
        '<a href="ledger.html?scope=book#the-ledger">',
        '<a href="ledger.html#sec:conv/none">',
    ]
    context = {"body": "".join(links)}
    pu_book.LOGGER.logger.addHandler(caplog.handler)
    pu_book.lead_to_rows(None, "book/guide", "", context, None)
    pu_book.LOGGER.logger.removeHandler(caplog.handler)
    assert "book/guide links to 'sec:conv/none', which is not in the ledger" in caplog.text
    assert context["body"] == "".join(links).replace(
        "ledger.html#thm:rates", "ledger-rates.html#thm:rates"
    )


def test_pages_on_the_reading_path_link_to_the_next_page() -> None:
    path = {"argument": "The argument", "rates": "Rates & more"}
    app = SimpleNamespace(
        config=SimpleNamespace(pu_path=path), builder=SimpleNamespace(name="html")
    )
    context = {name: {"body": ""} for name in ("argument", "rates", "domino")}
    for name, given in context.items():
        pu_book.add_next_on_path(app, f"book/{name}", "", given, None)
    link = '1 of 2: next <a href="rates.html" rel="next">Rates &amp; more</a>'
    assert link in context["argument"]["body"]
    assert "2 of 2: the end" in context["rates"]["body"]
    assert context["domino"]["body"] == ""


def test_exercises_are_numbered_by_chapter() -> None:
    numbers = {
        "a": {"exercise": {"ex-a1": (1,), "ex-a2": (2,)}, "figure": {"fig-a": (1,)}},
        "b": {"exercise": {"ex-b1": (3,), "ex-b2": (4,)}, "figure": {"fig-b": (2,)}},
        "numbered": {"exercise": {"ex-c1": (7, 1), "ex-c2": (7, 2)}},
        "more-on-numbered": {"exercise": {"ex-d1": (7, 3)}},
        "next": {"exercise": {"ex-e1": (8, 4)}},
    }
    assert number_by_chapter(SimpleNamespace(), SimpleNamespace(toc_fignumbers=numbers)) == []
    assert numbers["b"]["exercise"] == {"ex-b1": (1,), "ex-b2": (2,)}
    assert numbers["numbered"]["exercise"] == {"ex-c1": (7, 1), "ex-c2": (7, 2)}
    assert numbers["more-on-numbered"]["exercise"] == {"ex-d1": (7, 3)}
    assert numbers["next"]["exercise"] == {"ex-e1": (8, 1)}
    assert numbers["b"]["figure"] == {"fig-b": (2,)}, "figures count through the book"


def test_statements_are_listed_by_title_in_chapter_order() -> None:
    titles = {name: SimpleNamespace(astext=name.title) for name in ("domino", "unlearning")}
    statements = {
        "thm-z": {"docname": "domino", "realtype": "theorem"},
        "thm-x": {"docname": "unlearning", "realtype": "theorem"},
        "lem-y": {"docname": "unlearning", "realtype": "lemma"},
    }
    env = SimpleNamespace(
        titles=titles,
        proof_list=statements,
        pu_titles={"thm-x": "X", "thm-z": "Z"},
        toctree_includes={"index": ["unlearning", "domino"]},
    )
    listed, _ = list_titles(SimpleNamespace(domain=SimpleNamespace(env=env)))
    assert [(chapter, [(row[0], row[3]) for row in rows]) for chapter, rows in listed] == [
        ("Unlearning", [("X", "thm-x"), ("Lemma", "lem-y")]),
        ("Domino", [("Z", "thm-z")]),
    ]


@pytest.mark.parametrize("latex", [r"\etaS(n)", r"\frac{1}"])
def test_formula_with_an_error_is_a_warning(
    latex: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    kind = 'class="math notranslate nohighlight"'
    (tmp_path / "page.html").write_text(f"<p><span {kind}>\\({latex}\\)</span></p>")
    app: Any = SimpleNamespace(outdir=str(tmp_path), builder=SimpleNamespace(format="html"))
    logger = logging.getLogger("sphinx.pu_formulas")
    logger.addHandler(caplog.handler)
    typeset_pages(app, None)
    logger.removeHandler(caplog.handler)
    assert f"MathJax cannot typeset: {latex}" in caplog.text


def test_typeset_pages_is_idempotent(tmp_path: Path) -> None:
    page, kind = tmp_path / "book" / "page.html", 'class="math notranslate nohighlight"'
    page.parent.mkdir()
    formulas = [f"<span {kind}>\\(a &lt; b\\)</span>", f'<div {kind} id="x">\n\\[c\\]</div>']
    page.write_text(f"<p>Where {formulas[0]}:</p>{formulas[1]}<code>\\(d\\)</code>")
    assert formulas_of(page.read_text()) == [("a < b", False), ("c", True)]
    app = SimpleNamespace(builder=SimpleNamespace(format="html"), outdir=str(tmp_path))
    typeset_pages(app, None)
    typeset = page.read_text()
    assert typeset.startswith(f'<p>Where <span class="pu-glued"><span {kind}><mjx-container')
    assert "</mjx-container></span>:</span></p>" in typeset
    assert typeset.endswith("</div><code>\\(d\\)</code>")
    assert typeset.count("<mjx-container") == 2
    assert typeset.count('<mjx-container class="MathJax" jax="CHTML" display="true"') == 1
    assert "<mi>a</mi><mo>&lt;</mo><mi>b</mi>" in typeset, "its MathML is read out"
    sheet = (tmp_path / "_static" / "vendor" / "formulas.css").read_text()
    assert "mjx-container" in sheet
    assert "://" not in sheet
    assert formulas_of(typeset) == []


THEOREM = r"""# A theorem

:::{prf:theorem} Theorem 5
(i) {formula}`n'\ge<<decaying_pg_bound>>`; (iii) $L=1$.
:::
"""

OTHER = r"""# What stands

More than {formula}`<<unlearning.decaying_pg_bound: n=k>>` and {formula}`\le<<domino.pg_bound>>`.
"""


def built_pages(folder: Path, **pages: str) -> tuple[dict[str, str], str]:
    """Build MyST pages in the folder ``book`` and return their LaTeX by page and the warnings."""
    (folder / "book").mkdir(parents=True)
    extensions = (
        'extensions = ["myst_parser", "sphinx_proof", "sphinx.ext.mathjax", "pu_statements"]'
    )
    (folder / "conf.py").write_text(
        f"{extensions}\nmyst_enable_extensions = ['colon_fence', 'dollarmath']"
    )
    (folder / "index.md").write_text("# Index\n\n```{toctree}\n:glob:\nbook/*\n```\n")
    for page, text in pages.items():
        (folder / "book" / f"{page}.md").write_text(text)
    warnings = folder / "warnings"
    arguments = ["-q", "-w", str(warnings), str(folder), str(folder / "built")]
    assert sphinx.cmd.build.main(arguments) == 0
    read = {page: (folder / "built" / "book" / f"{page}.html").read_text() for page in pages}
    latex = {page: re.findall(r"\\\((.*?)\\\)", html.unescape(text)) for page, text in read.items()}
    return latex, warnings.read_text()


def test_theorem_prints_the_bound_of_its_check(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = {"unlearning": THEOREM, "what-stands": OTHER}
    latex, warnings = built_pages(tmp_path / "before", **pages)
    assert warnings == ""
    assert latex == {
        "unlearning": [r"n'\ge3n-4\sqrt{n}+1", "L=1"],
        "what-stands": [r"3k-4\sqrt{k}+1", r"\le2^{h}-1"],
    }

    @formula
    def bound(n):
        return 2 * n + 1

    monkeypatch.setattr(unlearning, "decaying_pg_bound", bound)
    latex, _ = built_pages(tmp_path / "after", **pages)
    assert latex["unlearning"][0] == r"n'\ge2n+1"
    assert latex["what-stands"][0] == "2k+1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "<<decaying_bound>>",
            "no formula 'decaying_bound'; there are: pg_bound_printed, pg_bound",
        ),
        ("<<domino.bound>>", "no formula 'domino.bound'; there are: .*domino.pg_bound_printed"),
        ("<<dominoes.pg_bound>>", "no chapter 'dominoes'; there are: updates, .*domino"),
        ("<<pg_bound: m=2>>", "pg_bound: no argument m"),
    ],
)
def test_unknown_bound_is_an_error_of_the_build(tmp_path: Path, text: str, message: str) -> None:
    _, warnings = built_pages(tmp_path, unlearning=f"# A theorem\n\n{{formula}}`{text}`\n")
    assert re.search(f"unlearning.md:3: ERROR: formula: {message}", warnings), warnings


def test_page_that_is_no_chapter_names_the_chapter(tmp_path: Path) -> None:
    _, warnings = built_pages(tmp_path, start="# Start\n\n{formula}`<<pg_bound>>`\n")
    assert "start.md:3: ERROR: formula: no formula 'pg_bound'; there are: none." in warnings
