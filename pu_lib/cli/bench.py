"""``python -m pu_lib bench``: report that the benchmarks are run by ``make bench``."""

from __future__ import annotations

import argparse

__all__ = ["add_parser"]


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand with its options from before release 0.3."""
    parser = subparsers.add_parser(
        "bench",
        help="moved to `make bench`",
        description="The benchmarks are no longer part of the package: run `make bench` in a "
        "clone of the repository.",
    )
    parser.add_argument("--steps", help=argparse.SUPPRESS)
    parser.add_argument("--record", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    raise ValueError(
        "The benchmarks are not part of the package: run `make bench` in a clone of the "
        "repository (`make bench RECORD=1` keeps the times for the book)."
    )
