"""What the book asks of Sphinx, on small environments."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from pu_formulas import formulas_of, typeset_pages
from sphinx.ext.napoleon import Config, GoogleDocstring, NumpyDocstring

from sphinx_ext.pu_addresses import places_of
from sphinx_ext.pu_api import read_whole
from sphinx_ext.pu_book import list_titles, number_by_chapter


def test_exercises_are_numbered_by_chapter() -> None:
    numbers = {
        "a": {"exercise": {"ex-a1": (1,), "ex-a2": (2,)}, "figure": {"fig-a": (1,)}},
        "b": {"exercise": {"ex-b1": (3,), "ex-b2": (4,)}, "figure": {"fig-b": (2,)}},
    }
    assert number_by_chapter(SimpleNamespace(), SimpleNamespace(toc_fignumbers=numbers)) == []
    assert numbers["b"]["exercise"] == {"ex-b1": (1,), "ex-b2": (2,)}
    assert numbers["b"]["figure"] == {"fig-b": (2,)}, "figures count through the book"


def test_statements_are_listed_by_title_in_the_order_of_the_chapters() -> None:
    titles = {name: SimpleNamespace(astext=name.title) for name in ("domino", "unlearning")}
    found = {
        "thm-z": {"docname": "domino", "realtype": "theorem"},
        "thm-x": {"docname": "unlearning", "realtype": "theorem"},
        "lem-y": {"docname": "unlearning", "realtype": "lemma"},
    }
    env = SimpleNamespace(
        titles=titles,
        proof_list=found,
        pu_titles={"thm-x": "X", "thm-z": "Z"},
        toctree_includes={"index": ["unlearning", "domino"]},
    )
    listed, _ = list_titles(SimpleNamespace(domain=SimpleNamespace(env=env)))
    assert [(chapter, [(row[0], row[3]) for row in rows]) for chapter, rows in listed] == [
        ("Unlearning", [("X", "thm-x"), ("Lemma", "lem-y")]),
        ("Domino", [("Z", "thm-z")]),
    ]


def test_formulas_are_typeset_where_they_stand_and_once(tmp_path: Path) -> None:
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


def test_what_precedes_a_colon_is_no_type(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "The domains: those of the paper.\n\nRaises\n------\nKeyError\n    If there is none."
    assert ":type: The domains" in str(NumpyDocstring(text, Config(), what="data", name="x"))
    monkeypatch.setattr(GoogleDocstring, "_consume_inline_attribute", read_whole)
    read = str(NumpyDocstring(text, Config(), what="data", name="x"))
    assert "The domains: those of the paper." in read
    assert ":type:" not in read
    assert ":raises KeyError: If there is none." in read


def test_old_anchors_lead_to_the_entries_of_names_now() -> None:
    def entry(page: str, anchor: str) -> SimpleNamespace:
        return SimpleNamespace(docname=page, node_id=anchor, objtype="function")

    data = {
        "modules": {"pu_lib.new": entry("book/api/topic", "module-pu_lib.new")},
        "objects": {
            "pu_lib.new.count": entry("book/api/topic", "pu_lib.new.count"),
            "pu_lib.new.other.count": entry("book/api/topic", "pu_lib.new.other.count"),
            "pu_lib.newer.count": entry("book/api/topic", "pu_lib.newer.count"),
            "pu_lib.new.run": entry("book/library", "pu_lib.new.run"),
        },
    }
    env = SimpleNamespace(get_domain=lambda name: SimpleNamespace(data=data))
    renamed = {"pu_lib.old.tally": "pu_lib.new.count", "pu_lib.oldest.tally": "pu_lib.new.count"}
    assert places_of(env, "old", ["pu_lib.new"], renamed) == {
        "module-pu_lib.old": "topic.html#module-pu_lib.new",
        "pu_lib.old.count": "topic.html#pu_lib.new.count",
        "pu_lib.old.other.count": "topic.html#pu_lib.new.other.count",
        "pu_lib.old.run": "../library.html#pu_lib.new.run",
        "pu_lib.old.tally": "topic.html#pu_lib.new.count",
    }
