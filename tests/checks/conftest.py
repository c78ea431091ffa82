"""What several tests of checks use."""

from typing import Any

import pytest

from pu_lib.verdict import Worst

Noted = list[tuple[float, dict[str, Any]]]


@pytest.fixture
def noted(monkeypatch: pytest.MonkeyPatch) -> Noted:
    """Return every margin that checks note from now on, with its instance, in their order."""
    found: Noted = []
    add = Worst.add

    def note(self: Worst, margin: float, **instance: Any) -> None:
        found.append((float(margin), instance))
        add(self, margin, **instance)

    monkeypatch.setattr(Worst, "add", note)
    return found
