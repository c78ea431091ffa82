"""The command line: ``python -m pu_lib SUBCOMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module

COMMANDS = ("bench", "claims", "collect", "domino", "hunt", "race", "sweep", "unlearn")
"""The subcommands; each is a module of `pu_lib.cli` with a function `add_parser`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code; bad input is one sentence and exit code 2."""
    parser = argparse.ArgumentParser(prog="python -m pu_lib", description=__doc__)
    subparsers = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    for command in COMMANDS:
        import_module(f"pu_lib.cli.{command.replace('-', '_')}").add_parser(subparsers)
    arguments = parser.parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
