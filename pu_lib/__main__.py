"""The command line: ``python -m pu_lib SUBCOMMAND``."""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from importlib import import_module
from typing import Any

from pu_lib import __version__
from pu_lib.extras import installation_advice

COMMANDS = ("claims", "collect", "domino", "race", "show", "sweep", "unlearn")
"""The subcommands. Each subcommand is a module of `pu_lib.cli` with a function `add_parser`."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a subcommand and return its exit code.

    Bad input, a missing package, a full disk and too little memory each print one sentence and
    return 2. Ctrl-C prints one line and returns 130. If the reader of the output has gone, as in
    ``| head``, nothing is printed and 141 is returned.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if argv is None:
        _prepare()
    try:
        try:
            return _run(words)
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()  # an error at the exit would not be reported as a sentence
    except BrokenPipeError:
        code = 141  # the exit code of shells after a closed pipe
    except OSError as error:
        print(f"error: the output cannot be written: {error}", file=sys.stderr)
        code = 2
    with suppress(OSError, AttributeError):  # so that Python does not try again to write the rest
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _prepare() -> None:
    """Set up the process of a command: the path of imports, matplotlib, and the output.

    The current folder is the last entry of the module search path, so that a file such as
    random.py in it does not replace a module that the library needs.
    """
    if not sys.flags.safe_path:
        current = {""}
        with suppress(FileNotFoundError):  # the folder was deleted
            current.add(os.getcwd())
        sys.path[:] = [*sys.path[sys.path[0] in current :], ""]
    os.environ["MPLBACKEND"] = "agg"  # figures are written to files
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # for names that it cannot encode


def _run(words: list[str]) -> int:
    parser: argparse.ArgumentParser = _Parser(prog="python -m pu_lib", description=__doc__)
    parser.add_argument("--version", action="version", version=f"pu_lib {__version__}")
    subparsers = parser.add_subparsers(required=True, metavar="SUBCOMMAND")
    for command in COMMANDS:
        import_module(f"pu_lib.cli.{command.replace('-', '_')}").add_parser(subparsers)
    arguments = parser.parse_args(list(map(_without_exponent, words)))
    try:
        return int(arguments.run(arguments))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130  # the exit code of shells after Ctrl-C
    except BrokenPipeError:
        raise
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


def _without_exponent(word: str) -> str:
    """Return a negative number without an exponent: -1e-2 as -0.01; return other words unchanged.

    Before Python 3.14, argparse takes -1e-2 for an option.
    """
    is_negative = re.fullmatch(r"-(\d+\.?\d*|\.\d+)[eE][+-]?\d{1,3}", word)
    return f"{Decimal(word):f}" if is_negative else word


class _Parser(argparse.ArgumentParser):
    """A parser without abbreviated options, which a new option could make ambiguous."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)


if __name__ == "__main__":
    sys.exit(main())
