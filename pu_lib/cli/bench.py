"""``python -m pu_lib bench``: nanoseconds a step of the compiled loop, plain Python and C."""

from __future__ import annotations

import argparse

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
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    if arguments.steps < 1000:
        raise ValueError(f"--steps: expected at least 1000, got {arguments.steps}.")
    from pu_lib.empirical.bench import as_text, bench

    for line in as_text(bench(arguments.steps)):
        print(line, flush=True)
    return 0
