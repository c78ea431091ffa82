"""What the gate asks of the library as it is now: this follows when modules move.

Beside it only `runs` (the experiments) and `collect` (public names, the command line) import the
library.
"""

import enum
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from pu_lib.claims import check_of, judge, ledger
from pu_lib.wording import words

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "pu_lib" / "ledger"


def plain(value: Any) -> Any:
    """Return a value as JSON has it: numbers and lists as they are, all else as text."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, enum.Enum):
        return str(value.value)
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return str(value)


def claims() -> dict[str, str]:
    """Return the chapter of every claim, by its identifier, in the order of the ledger."""
    return {claim.id: claim.chapter for claim in ledger()}


def judged(name: str) -> dict[str, Any]:
    """Run the check of a claim and return what it found."""
    judgement = judge(name)
    verdict = judgement.verdict
    instance = verdict.counterexample or next(iter(verdict.evidence), {})
    return {
        "status": verdict.status.value,
        "margin": plain(verdict.margin),
        "sentence": judgement.sentence,
        "instance": plain(instance),
        "figures": {key: str(words(value)) for key, value in verdict.figures.items()},
    }


def controls(name: str) -> tuple[list[str], list[str]]:
    """Return the wrong claims that a check must refuse, and those that it cannot tell apart."""
    check = check_of(next(claim for claim in ledger() if claim.id == name))
    return list(check.moved), list(check.blind)


def wrong(name: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the wrong claims of a check, each with a function that returns the status it gives."""
    claim = next(claim for claim in ledger() if claim.id == name)
    check = check_of(claim)
    # A claim that holds is tried until the first instance that breaks it, as the library does.
    refuse = check.refute if claim.status.value == "holds" else check.run_moved
    for told in check.moved:
        yield told, lambda told=told: refuse(told).status.value


def recorded() -> dict[str, dict[str, Any]]:
    """Return the recorded verdicts, by claim."""
    rows = json.loads((LEDGER / "verdicts.json").read_text("utf-8"))
    return {row["id"]: row for row in rows}


def theorems() -> list[dict[str, Any]]:
    """Return what is recorded of the theorems that Rocq has checked."""
    found: list[dict[str, Any]] = json.loads((LEDGER / "proofs.json").read_text("utf-8"))[
        "theorems"
    ]
    return found
