"""Every item of the paper that asserts something has a claim in the ledger."""

import tomllib
from pathlib import Path

import pytest

from pu_lib.claims import select

ITEMS = tomllib.loads((Path(__file__).parent / "paper_items.toml").read_text("utf-8"))["item"]


def claims_of(item: dict) -> list[str]:
    """Return the claims that judge an item: those it names, or its own label."""
    return item.get("claims") or [label.strip() for label in item["label"].split(",")]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: f"{item['where']}, {item['what']}")
def test_item_is_checked_or_asserts_nothing(item: dict) -> None:
    if "nothing" in item:
        assert item["nothing"], "say why it asserts nothing"
        assert "claims" not in item
        return
    for name in claims_of(item):
        assert select([name])


def test_equations_are_numbered_consecutively() -> None:
    last = 0
    for item in ITEMS:
        if item["what"].startswith("Equation"):
            numbers = [int(word.strip("()")) for word in item["what"].split() if word[0] == "("]
            assert numbers[0] == last + 1, item
            last = numbers[-1]
    assert last == 229


def test_items_are_listed_once() -> None:
    names = [(item["where"], item["what"], item.get("label")) for item in ITEMS]
    assert len(names) == len(set(names))
