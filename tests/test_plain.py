"""Plain copies of the notebooks have no MyST and lose nothing."""

import builtins
import json
import re
import sys
from collections import Counter
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parents[1]
sys.path.append(str(ROOT / "tools"))

import plain  # noqa: E402

NOTEBOOKS = sorted((ROOT / "book").glob("*.ipynb"))

per_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture(scope="module")
def book() -> plain.Book:
    return plain.Book()


def formulas(text: str) -> Counter:
    """Count the formulas of a text by their LaTeX without spaces."""
    text = re.sub(r"`[^`\n]*`", "", text)
    parts = re.split(r"\$\$?", text)
    assert len(parts) % 2 == 1, text
    return Counter(re.sub(r"[\s>]", "", part) for part in parts[1::2])


@per_notebook
def test_plain_copy_is_valid_and_keeps_all_formulas(path: Path, book: plain.Book) -> None:
    copy = plain.plain_notebook(path, book)
    nbformat.validate(nbformat.from_dict(copy))
    cells = {cell["id"]: "".join(cell["source"]) for cell in copy["cells"]}
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if cell["cell_type"] != "markdown":
            continue
        text = cells[cell["id"]]
        assert not plain.MYST.search(text)
        assert text.count("<details>") == text.count("</details>")
        source = "".join(cell["source"])
        # formulas in titles of folds become text, and the role `formula` adds its own
        source = re.sub(r"^(:{3,}|`{3,})\{(dropdown|admonition)\}.*$", "", source, flags=re.M)
        missing = formulas(source) - formulas(text)
        assert not missing, f"{cell['id']}: {missing}"


@per_notebook
def test_cells_of_a_plain_copy_use_only_names_of_earlier_cells(
    path: Path, book: plain.Book
) -> None:
    known = set(dir(builtins))
    for cell in plain.plain_notebook(path, book)["cells"]:
        if cell["cell_type"] == "code":
            assigned, read = plain.names_of("".join(cell["source"]))
            known |= assigned
            assert not read - known, cell["id"]


SOURCE = """(a-label)=
## Heading

See {ref}`a-label`, {doc}`domino`,
{doc}`this page <domino>`, [](unlearning.ipynb)
and [the terms](glossary.md#term-regret);
{cite:t}`laroche2022`
and {cite:p}`mei2020gravity`.

::::{prf:lemma} A bound
:label: lem-domino-none
:class: ours
:nonumber:

$$x\\ge0$$

:::{dropdown} Why $\\eta\\le1$
Because.
:::
::::

:::{prf:proof}
Easy.
:::"""

PLAIN = """<a id="a-label"></a>

## Heading

See [Heading](#a-label), [Domino](domino.ipynb),
[this page](domino.ipynb), [Unlearning](unlearning.ipynb)
and the terms;
[Laroche and Tachet des Combes (2022)](https://arxiv.org/abs/2202.07496)
and (Mei et al., 2020).

<a id="lem-domino-none"></a>

> **Lemma (A bound).**
>
> $$x\\ge0$$
>
> <details>
> <summary>Why η≤1</summary>
>
> Because.
>
> </details>

*Proof.* Easy."""


def test_each_directive_and_role_has_a_plain_form(book: plain.Book) -> None:
    book.places |= {
        "a-label": plain.Place("here", "Heading"),
        "lem-domino-none": plain.Place("here", "Lemma (A bound)"),
    }
    assert plain.plain_markdown(SOURCE, book, "here") == PLAIN
    text = r"{formula}`n'\ge<<decaying_pg_bound>>`"
    assert plain.plain_markdown(text, book, "unlearning") == r"$n'\ge3n-4\sqrt{n}+1$"


@pytest.mark.parametrize("text", [":::{figure} x.png\n:::", "{download}`x`", "::: words"])
def test_unknown_myst_raises(text: str, book: plain.Book) -> None:
    with pytest.raises(ValueError, match=r"is unknown|no plain form"):
        plain.plain_markdown(text, book, "domino")


def test_boxes_keep_the_numbers_of_the_book(book: plain.Book) -> None:
    assert book.places["ex-rates-log"].words.startswith("Exercise ")
    assert book.places["thm-domino"].words == "Theorem 6 of the paper"


def test_edited_copies_are_kept(tmp_path: Path) -> None:
    copy = plain.plain_notebook(ROOT / "book" / "domino.ipynb", plain.Book())
    path = tmp_path / "lab" / "domino.ipynb"
    assert plain.write(path, copy)
    assert plain.write(path, copy)
    edited = json.loads(path.read_text("utf-8"))
    edited["cells"][0]["source"] = ["# Mine"]
    path.write_text(json.dumps(edited), "utf-8")
    assert not plain.write(path, copy)
    assert "# Mine" in path.read_text("utf-8")


def test_outputs_replace_widgets_by_a_sentence() -> None:
    widget = {"output_type": "display_data", "data": {plain.WIDGET: {}, "text/plain": "x"}}
    stderr = {"output_type": "stream", "name": "stderr", "text": "a warning"}
    assert "interactive figure" in str(plain.without_widget(widget))
    assert plain.without_widget(stderr) is None
    assert plain.without_widget(stderr | {"name": "stdout"}) is not None


def test_assertions_explain_themselves() -> None:
    source = "π = 3\nassert π == 3  # three\nassert (\n    π < 4\n)\nassert π, 'Why?'"
    code = plain.explained(source)
    assert code.count(plain.CHANGED) == 2
    assert code.endswith("assert π, 'Why?'")
    with pytest.raises(AssertionError, match="If you changed a cell above"):
        exec(code.replace("π = 3", "π = 2"), {})


def test_tables_and_questions_become_markdown() -> None:
    name = "thm:unlearn/i/pg-sm"
    number = next(claim.number for claim in plain.ledger() if claim.id == name)
    versus = f"from x import versus\n\nversus(({name!r}, r'$|x|$', 'True.'))"
    *_, row = plain.answer_of(versus).split("\n")
    assert row.startswith(f"| **{number}**: *")
    assert row.endswith(r"* | $\vert x\vert $ | True. |")
    text = plain.answer_of(f"question('How many?', {name!r}, ('b', 'Yes.'), ('a', 'No.'))")
    assert text.startswith("How many?\n\n<details>\n<summary>a</summary>\n\n**Not quite.** No.")
    assert "<summary>b</summary>\n\n**Right.** Yes." in text
    assert plain.answer_of("draw(1)") == ""
