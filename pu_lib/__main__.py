"""The command line: ``python -m pu_lib SUBCOMMAND``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from pu_lib import __version__
from pu_lib.extras import installation_advice

COMMANDS = ("claims", "collect", "domino", "race", "sweep", "unlearn")
"""The subcommands. Each subcommand is a module of `pu_lib.cli` with a function `add_parser`."""

MAKE_TARGETS = {"bench": "bench", "hunt": "search"}
"""Former subcommands, each with the make target that replaces it."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code.

    Bad input, a missing package, a full disk and too little memory each print one sentence and
    return 2. Ctrl-C prints one line and returns 130.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in MAKE_TARGETS:
        asks_for_help = not {"-h", "--help"}.isdisjoint(words)
        print(
            f"error: the command {words[0]} was removed; run `make {MAKE_TARGETS[words[0]]}` "
            "in the repository instead.",
            file=sys.stdout if asks_for_help else sys.stderr,
        )
        return 0 if asks_for_help else 2
    if argv is None and not sys.flags.safe_path and "" not in sys.path:
        sys.path.insert(0, "")  # so that pu-lib finds module:NAME, as `python -m pu_lib` does
    parser: argparse.ArgumentParser = _Parser(prog="python -m pu_lib", description=__doc__)
    parser.add_argument("--version", action="version", version=f"pu_lib {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    for command in COMMANDS:
        import_module(f"pu_lib.cli.{command.replace('-', '_')}").add_parser(subparsers)
    arguments = parser.parse_args(words)
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # the exit code of shells after Ctrl-C
    except ModuleNotFoundError as error:
        message = installation_advice(str(error.name).partition(".")[0])
        if not message:
            raise
    except MemoryError:
        message = "this needs more memory than there is; make it smaller."
    except (ValueError, OSError, RuntimeError) as error:
        message = str(error)
    print(f"error: {message}", file=sys.stderr)
    return 2


class _Parser(argparse.ArgumentParser):
    """A parser without abbreviated options, which a new option could make ambiguous."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)


if __name__ == "__main__":
    sys.exit(main())
