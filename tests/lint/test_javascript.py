"""The JavaScript of the pages follows rules that ESLint does not check."""

from pathlib import Path

import pytest
from pygments.lexers import JavascriptLexer
from pygments.token import Token

ROOT = Path(__file__).parents[2]
FILES = sorted([*(ROOT / "pu_lib").rglob("*.js"), *(ROOT / "web").glob("*.js")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_names_are_looked_up_without_inherited_ones(path: Path) -> None:
    """Sources do not use `in`, because it is true for inherited names such as "constructor"."""
    tokens = JavascriptLexer().get_tokens(path.read_text("utf-8"))
    assert (Token.Operator.Word, "in") not in tokens
