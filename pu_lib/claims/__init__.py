"""The claims of the paper, the checks that judge the claims, and the findings of the checks.

A chapter is a folder of `pu_lib.chapters`: ``claims.toml`` states its claims,
``quantities.py`` computes the quantities in the claims, and ``checks.py`` compares them with the
claims.

- `catalog`: the claims and errata of all chapters.
- `recorder`: `check`, `Recorder`, `Finding`.
- `formulas`: bounds that checks call and statements print.
- `judging`: functions that run checks and compare their findings with the recorded findings.
- `render`, `tables`: HTML for the pages of the book.
- `proofs`: the theorems that Rocq has checked.
"""

from pu_lib.claims.catalog import (
    Change,
    Claim,
    Erratum,
    Scope,
    Severity,
    changes,
    changes_of,
    chapters,
    check_of,
    errata,
    folder_of,
    ledger,
    select,
)
from pu_lib.claims.judging import (
    FINDINGS,
    JudgedClaims,
    Judgement,
    confirm,
    judge,
    judge_wrong,
    record,
    recorded,
    sentence_of,
)
from pu_lib.claims.recorder import Check, Finding, Recorder, Status, Tally, check

__all__ = [
    "FINDINGS",
    "Change",
    "Check",
    "Claim",
    "Erratum",
    "Finding",
    "JudgedClaims",
    "Judgement",
    "Recorder",
    "Scope",
    "Severity",
    "Status",
    "Tally",
    "changes",
    "changes_of",
    "chapters",
    "check",
    "check_of",
    "confirm",
    "errata",
    "folder_of",
    "judge",
    "judge_wrong",
    "ledger",
    "record",
    "recorded",
    "select",
    "sentence_of",
]
