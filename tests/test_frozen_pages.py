"""Every page of the built book has its address, its anchors and its text from before.

Code, how claims were checked, what was measured of them, and what checks make of other claims are
left out; of the reference, the indices and the page on trust only addresses and anchors are
compared. Differences that are meant are listed in ``tests/frozen/exceptions.toml``.
"""

from pathlib import Path

import pages
import pytest
from compare import compare_page, exceptions, frozen

MOVED = {row["old"]: row["new"] for row in exceptions("address")}
ADDRESSES = {address: MOVED.get(address, address) for address in frozen("pages")}


@pytest.mark.parametrize("address", [old for old, new in ADDRESSES.items() if new])
def test_page_is_the_same(book: Path, address: str) -> None:
    path = book / ADDRESSES[address]
    assert path.is_file(), f"{address}: the page is missing"
    now = pages.read_page(path, pages.has_text(address))
    differences = compare_page(address, now["anchors"], now.get("text"))
    assert not differences, "\n".join(differences)
