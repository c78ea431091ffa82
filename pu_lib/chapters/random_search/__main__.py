"""``make search``: search for cycles of CE under weights that are constant in time."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from pu_lib.chapters.random_search.quantities import WEIGHTINGS, search


def main(argv: Sequence[str] | None = None) -> int:
    """Print the counts of a search as JSON and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pu_lib.chapters.random_search", description=__doc__
    )
    parser.add_argument(
        "--mdps",
        type=int,
        default=3000,
        help="number of MDPs, rounded up to a multiple of 3000 (default: 3000)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the MDPs (default: 0)")
    parser.add_argument(
        "--weighting",
        choices=WEIGHTINGS,
        default="constant",
        help="weights of the states (default: constant)",
    )
    arguments = parser.parse_args(argv)
    if arguments.mdps < 1:
        parser.error(f"--mdps: expected at least one MDP, got {arguments.mdps}.")
    print(json.dumps(search(arguments.mdps, arguments.seed, arguments.weighting), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
