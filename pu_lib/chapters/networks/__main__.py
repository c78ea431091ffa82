"""``make networks``: make the runs of the chapter on networks."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from pu_lib.chapters.networks.runs import run_all
from pu_lib.chapters.networks.second_runs import run_parts


def main(argv: Sequence[str] | None = None) -> int:
    """Make all runs and return the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m pu_lib.chapters.networks",
        description="Make the runs of the chapter on networks: first those that choose the step "
        "sizes, then the judged ones, then those decided later, then those of the second "
        "protocol. The command can be stopped at any time; started again, it continues where it "
        "was.",
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of the finished runs")
    parser.add_argument("--workers", type=int, help="threads (default: one a processor)")
    arguments = parser.parse_args(argv)
    if arguments.workers is not None and arguments.workers < 1:
        parser.error(f"--workers: expected at least one, got {arguments.workers}.")
    run_all(arguments.out, arguments.workers)
    run_parts(arguments.out, arguments.workers)
    return 0


if __name__ == "__main__":
    sys.exit(main())
