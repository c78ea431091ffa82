"""``python -m pu_lib claims``: run the checks and print the ledger."""

from __future__ import annotations

import argparse
import json
import sys

from tqdm import tqdm

from pu_lib.claims import Judgement, check_of, controls, judge, record, select
from pu_lib.verdict import Status

__all__ = ["add_parser"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "claims",
        help="run the checks behind the paper's claims and print their verdicts",
        description="Run the check of every claim (or of those named, with their parts) and print "
        "the verdicts. Exits with 1 when a verdict is not the one the ledger records.",
    )
    parser.add_argument("ids", nargs="*", metavar="ID", help="identifiers, such as thm:unlearn/i")
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the measurements for the book's tables, if their checks refuse what is wrong",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Judge the chosen claims, print them, and return the exit code."""
    claims = select(arguments.ids)
    for claim in claims:
        if claim.status is not Status.PENDING:
            check_of(claim)  # a package that is missing is missed here, before the work
    judgements = []
    with tqdm(claims, file=sys.stderr, unit="claim") as progress:
        for claim in progress:
            progress.set_postfix_str(claim.id)
            judgements.append(judge(claim))
            if arguments.record:
                _require_sound(judgements[-1])
    print(_as_json(judgements) if arguments.json else _as_table(judgements))
    if arguments.record:
        record(judgements)
    surprises = [judgement for judgement in judgements if not judgement.as_recorded]
    for surprise in surprises:
        recorded = surprise.claim.status.value
        print(f"recorded {recorded!r}, but found {surprise.verdict}", file=sys.stderr)
    return 1 if surprises else 0


def _require_sound(judgement: Judgement) -> None:
    """Refuse a sentence with a place that nothing fills, and a check that accepts what is wrong."""
    try:
        _ = judgement.sentence
        if judgement.claim.status is not Status.PENDING:
            controls(judgement.claim)
    except AssertionError as accepted:
        raise ValueError(str(accepted)) from None


def _as_json(judgements: list[Judgement]) -> str:
    return json.dumps([judgement.row() for judgement in judgements], indent=2)


def _as_table(judgements: list[Judgement]) -> str:
    head = ("claim", "number", "status", "margin", "seconds")
    rows = [
        (
            j.claim.id,
            j.claim.number,
            j.verdict.status.value,
            "" if j.verdict.margin is None else f"{j.verdict.margin:.3g}",
            f"{j.seconds:.1f}",
        )
        for j in judgements
    ]
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )
