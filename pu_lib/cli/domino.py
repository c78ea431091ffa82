"""``python -m pu_lib domino``: print the number of steps to solve the domino setting."""

from __future__ import annotations

import argparse
from typing import Any

from pu_lib.cli.unlearn import add_process, escort_options, step_size


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "domino",
        help="count the steps that solve the domino setting",
        description="Print the number of steps after which the first state has flipped, or "
        "'inf'. The count is that of exact arithmetic for the paper's updates, of floats for any "
        "other; one that is out of reach ends in a sentence with what is proved of it.",
    )
    add_process(parser)
    parser.add_argument("--states", required=True, type=int, help="the number of states")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pu_lib.chapters.domino.quantities import domino

    try:
        number = domino(
            arguments.states,
            arguments.update,
            step_size(arguments),
            *escort_options(arguments),
            schedule=arguments.schedule,
        )
    except ArithmeticError as unfinished:
        raise ValueError(str(unfinished)) from unfinished
    print(number)
    return 0
