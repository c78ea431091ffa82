"""``python -m pu_lib claims``: run the checks of claims and print their findings."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from tqdm import tqdm

from pu_lib.claims import Judgement, check_of, judge, judge_wrong, select
from pu_lib.claims import record as write_record


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "claims",
        help="run the checks behind the paper's claims and print their verdicts",
        description="Run the check of every claim (or of those named, with their parts) and print "
        "the verdicts. Exits with 1 when a finding is not the recorded one.",
    )
    parser.add_argument(
        "ids",
        nargs="*",
        metavar="ID",
        help="identifiers, such as thm:unlearn/i, heads of them, chapters, such as unlearning, or "
        "numbers, such as 'Theorem 4'",
    )
    parser.add_argument("--json", action="store_true", help="print one JSON list")
    parser.add_argument(
        "--list",
        action="store_true",
        help="list the claims with their chapters and recorded statuses, and run nothing",
    )
    parser.add_argument(
        "--record",
        action="store_true",
        help="keep the measurements for the book's tables, if their checks refuse what is wrong",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run the checks of the chosen claims, print the findings, and return the exit code."""
    claims = select(arguments.ids)
    if arguments.list:
        rows = [(c.id, c.number, c.chapter, c.status.value) for c in claims]
        print(_table(("claim", "number", "chapter", "status"), rows))
        return 0
    for claim in claims:
        check_of(claim)  # raises an error before any check runs if a package is missing
    if not arguments.ids:
        from pu_lib.experiments.results import committed_file

        committed_file("runs.parquet")  # raises one if the runs of the book are missing
    judgements = []
    # without a terminal, as in a log, there is no progress bar
    with tqdm(claims, file=sys.stderr, unit="claim", disable=None) as progress:
        for claim in progress:
            progress.set_postfix_str(claim.id)
            judgements.append(judge(claim))
            if arguments.record:
                _require_sound(judgements[-1])
    if arguments.record:
        write_record(judgements)  # before any output, which the reader may close
    print(_as_json(judgements) if arguments.json else _as_table(judgements))
    differences = [(j.claim.id, difference) for j in judgements for difference in j.differences]
    for name, difference in differences:
        print(f"{name}: {difference}", file=sys.stderr)
    if differences:
        print("`--record ID` keeps what was found, if that is right.", file=sys.stderr)
    return 1 if differences else 0


def _require_sound(judgement: Judgement) -> None:
    """Raise a `ValueError` if the sentence has an unknown figure or a wrong variant is accepted."""
    try:
        _ = judgement.sentence
        judge_wrong(judgement.claim)
    except AssertionError as accepted:
        raise ValueError(str(accepted)) from None


def _as_json(judgements: list[Judgement]) -> str:
    return json.dumps([judgement.row() for judgement in judgements], indent=2)


def _as_table(judgements: list[Judgement]) -> str:
    rows = [
        (
            j.claim.id,
            j.claim.number,
            j.finding.status.value,
            "" if j.finding.margin is None else f"{j.finding.margin:.3g}",
            f"{j.finding.seconds:.1f}",
        )
        for j in judgements
    ]
    return _table(("claim", "number", "status", "margin", "seconds"), rows)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in (head, *rows)) for i in range(len(head))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (head, *rows)
    )
