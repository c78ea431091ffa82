"""Rules for the JavaScript of the pages."""

from pathlib import Path

import pytest
from pygments.lexers import JavascriptLexer
from pygments.token import Token

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "pu_lib").rglob("*.js"), *(ROOT / "web").glob("*.js")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_are_looked_up_without_inherited_ones(path: Path) -> None:
    """`name in object` is true for "constructor": use a Map or `Object.hasOwn`."""
    tokens = JavascriptLexer().get_tokens(path.read_text("utf-8"))
    assert (Token.Operator.Word, "in") not in tokens
