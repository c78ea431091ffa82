"""Settings of the fuzz tests, and a counter of their inputs."""

import atexit
import json
import os
from collections import Counter
from pathlib import Path

from hypothesis import HealthCheck, settings

BUDGET = int(os.environ.get("PU_LIB_FUZZ", "1"))
"""Factor for the number of examples: 1 in the tests (fixed inputs), larger in ``make fuzz``."""


def budgeted(examples: int, quiet: list[HealthCheck]) -> settings:
    """Return the settings of one test with some health checks disabled."""
    return settings(
        max_examples=examples * BUDGET,
        derandomize=BUDGET == 1,
        deadline=None,
        database=None,
        suppress_health_check=quiet,
    )


def input_counter(kind: str) -> Counter[str]:
    """Return a counter of inputs, which is written to a file at exit if the budget is above 1."""
    counter: Counter[str] = Counter()

    @atexit.register
    def note() -> None:
        if BUDGET > 1 and counter:
            path = Path(__file__).parents[2] / "_build" / "fuzz.jsonl"
            path.parent.mkdir(exist_ok=True)
            with path.open("a") as out:
                out.write(json.dumps({"of": kind, **counter}) + "\n")

    return counter
