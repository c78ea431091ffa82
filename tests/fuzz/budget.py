"""How much the fuzz suite may spend, and how much it has met."""

import atexit
import json
import os
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings

BUDGET = int(os.environ.get("PU_LIB_FUZZ", "1"))
"""1 in the tests, the same few inputs each time; in ``make fuzz`` that many times as many, new."""


def few(examples: int, quiet: list[HealthCheck]) -> settings:
    """Return the budget of one test, with the health checks that do not apply to it."""
    return settings(
        max_examples=examples * BUDGET,
        derandomize=BUDGET == 1,
        deadline=None,
        database=None,
        suppress_health_check=quiet,
    )


def counted(kind: str) -> Counter[str]:
    """Return a count of inputs; with a larger budget it is kept at the end."""
    met: Counter[str] = Counter()

    @atexit.register
    def note() -> None:
        if BUDGET > 1 and met:
            path = Path(__file__).parents[2] / "_build" / "fuzz.jsonl"
            path.parent.mkdir(exist_ok=True)
            with path.open("a") as out:
                out.write(json.dumps({"of": kind, **met}) + "\n")

    return met
