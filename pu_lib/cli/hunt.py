"""``python -m pu_lib hunt``: search for cycles of CE under weights that are constant in time."""

from __future__ import annotations

import argparse
import json
from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "hunt", help="look for cycles of CE under weights constant in time; prints JSON"
    )
    parser.add_argument(
        "--mdps",
        type=int,
        default=3000,
        help="how many MDPs, rounded up to a multiple of 3000 (default: 3000)",
    )
    parser.add_argument("--seed", type=int, default=0, help="which ones (default: 0)")
    parser.add_argument(
        "--weighting",
        choices=("constant", "on-policy"),
        default="constant",
        help="the weights of the states (default: constant)",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pu_lib.chapters.random_search.quantities import hunt

    if arguments.mdps < 1:
        raise ValueError(f"--mdps: expected at least one MDP, got {arguments.mdps}.")
    print(json.dumps(hunt(arguments.mdps, arguments.seed, arguments.weighting), indent=1))
    return 0
