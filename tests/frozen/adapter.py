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

from pu_lib.claims import Claim, Status, check_of, judge, ledger
from pu_lib.claims import recorded as records

ROOT = Path(__file__).parents[2]
CLAIMS = ROOT / "pu_lib" / "claims"


def command(words: str) -> str:
    """Return a call of a command with today's names of its options."""
    return words.replace("--eta", "--step-size")


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
    """Return the chapter of every claim, by its identifier, in the order of the book."""
    return {claim.id: claim.chapter for claim in ledger()}


def judged(name: str) -> dict[str, Any]:
    """Run the check of a claim and return what it found."""
    judgement = judge(name)
    finding = judgement.finding
    return {
        "status": finding.status.value,
        "margin": plain(finding.margin),
        "sentence": judgement.sentence,
        "instance": plain(finding.instance),
    }


def controls(name: str) -> list[str]:
    """Return the wrong claims that a check must refuse."""
    return list(check_of(claim_of(name)).wrong)


def wrong(name: str) -> Iterator[tuple[str, Callable[[], str]]]:
    """Yield the wrong claims of a check, each with a function that returns the status it gives."""
    claim = claim_of(name)
    check, stop = check_of(claim), claim.status is Status.HOLDS
    for words in check.wrong:
        yield words, lambda words=words: check.run(words, stop_at_failure=stop).status.value


def claim_of(name: str) -> Claim:
    return next(claim for claim in ledger() if claim.id == name)


def recorded() -> dict[str, dict[str, Any]]:
    """Return what is recorded of each claim."""
    return records()


def theorems() -> list[dict[str, Any]]:
    """Return what is recorded of the theorems that Rocq has checked."""
    found: list[dict[str, Any]] = json.loads((CLAIMS / "proofs.json").read_text("utf-8"))[
        "theorems"
    ]
    return found
