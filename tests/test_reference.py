"""Every public name has an entry and an example in the reference, and the examples run."""

import doctest
import re
from pathlib import Path

import pytest
import yaml

import pu_lib

ROOT = Path(__file__).parent.parent
LIBRARY = ROOT / "book" / "library.md"
TOPICS = sorted((ROOT / "book" / "api").glob("*.md"))
EXAMPLE = re.compile(r"^```pycon\n(.*?)^```$", re.MULTILINE | re.DOTALL)

WITH_EXAMPLES = [page for page in (LIBRARY, *TOPICS) if EXAMPLE.search(page.read_text("utf-8"))]


def test_public_names_have_a_summary_and_an_entry_with_an_example() -> None:
    text = LIBRARY.read_text("utf-8")
    listed = re.findall(r"^\| {py:obj}`~pu_lib\.(\w+)`", text, re.MULTILINE)
    entries = re.findall(r"^```{public} (\w+)$", text, re.MULTILINE)
    assert sorted(listed) == sorted(entries) == sorted(pu_lib.__all__)
    parts = re.split(r"^```{public} (\w+)$", text, flags=re.MULTILINE)
    for name, part in zip(parts[1::2], parts[2::2], strict=True):
        (example,) = EXAMPLE.findall(part)
        assert re.search(rf"\bpu_lib\.{name}\b|\bpath\.", example), name


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.stem)
def test_reference_examples_run(page: Path) -> None:
    registered = dict(pu_lib.UPDATES)
    text = "\n".join(EXAMPLE.findall(page.read_text("utf-8")))
    test = doctest.DocTestParser().get_doctest(text, {}, page.stem, str(page), 0)
    outcome = doctest.DocTestRunner().run(test)
    for name in pu_lib.UPDATES.keys() - registered:  # examples register updates
        del pu_lib.UPDATES[name]
    assert outcome.attempted
    assert not outcome.failed


def test_pages_of_the_reference_are_listed_once() -> None:
    contents = yaml.safe_load((ROOT / "_toc.yml").read_text("utf-8"))
    (library,) = [
        chapter
        for part in contents["parts"]
        for chapter in part["chapters"]
        if chapter["file"] == "book/library"
    ]
    names = [section["file"].removeprefix("book/") for section in library["sections"]]
    assert sorted(names) == [f"api/{page.stem}" for page in TOPICS]
    assert re.findall(r"^\| {doc}`(api/\S+)`", LIBRARY.read_text("utf-8"), re.MULTILINE) == names
    assert len(names) <= 15
