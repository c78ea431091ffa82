"""``make reward-hack``: make the runs of the chapter on reward hacks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pu_lib.chapters.reward_hack import runs, tokens


def main(argv: Sequence[str] | None = None) -> int:
    """Make all runs and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pu_lib.chapters.reward_hack",
        description="Make the runs of the chapter on reward hacks. The command can be stopped at "
        "any time; started again, it continues where it was.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the finished runs")
    parser.add_argument("--workers", type=int, help="threads (default: one a processor)")
    arguments = parser.parse_args(argv)
    if arguments.workers is not None and arguments.workers < 1:
        parser.error(f"--workers: expected at least one, got {arguments.workers}.")
    runs.run_all(arguments.out, arguments.workers)
    tokens.run_all(arguments.out, arguments.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
