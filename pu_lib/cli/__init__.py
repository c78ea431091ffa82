"""The subcommands of ``python -m pu_lib``, one module each."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

__all__ = ["add_renamed"]


def add_renamed(parser: argparse.ArgumentParser, old: str, new: str) -> None:
    """Add the old name of an option as an error that gives the new name; ``--help`` omits it."""
    parser.add_argument(
        old,
        nargs="*",
        action=_Renamed,
        const=new,
        dest=argparse.SUPPRESS,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS,
    )


class _Renamed(argparse.Action):
    """Exit with an error that gives the new name of an option, stored as the action's constant."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: str | Sequence[Any] | None,
        option_string: str | None = None,
    ) -> None:
        parser.error(f"there is no option {option_string}; it is {self.const} now")
