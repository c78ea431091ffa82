"""``python -m pu_lib bench``: print the time of a step in the compiled loop, plain Python and C."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pu_lib.experiments.speeds import Timing

__all__ = ["add_parser"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "bench",
        help="time the compiled loop beside plain Python and C",
        description="Print nanoseconds a step for each domain and update under HiOffPol: the "
        "compiled loop, the share of its exact evaluations, the same loop in C (if there is gcc) "
        "and in plain Python.",
    )
    parser.add_argument("--steps", type=int, default=300_000, help="steps of a compiled run")
    parser.add_argument(
        "--record", action="store_true", help="keep what was measured for the book's table"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    steps = arguments.steps
    if steps < 1000:
        raise ValueError(f"--steps: expected at least 1000, got {steps}.")
    from pu_lib.experiments.bench import PLAIN_STEPS, REPETITIONS, as_text, bench
    from pu_lib.experiments.speeds import record

    measured: list[Timing] = []

    def kept() -> Iterator[Timing]:
        for timing in bench(steps):
            measured.append(timing)
            yield timing

    for line in as_text(kept()):
        print(line, flush=True)
    if arguments.record:
        record(measured, steps, PLAIN_STEPS, REPETITIONS)
    return 0
