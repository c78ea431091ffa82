"""``python -m pu_lib unlearn``: print the number of opposite updates that undo n updates."""

from __future__ import annotations

import argparse
from fractions import Fraction
from typing import Any

from pu_lib.updates import UPDATES, EscortPolicyGradient, as_update, make_update


def add_process(parser: argparse.ArgumentParser) -> None:
    """Add the options for the update and its weights, shared with ``domino``."""
    parser.add_argument(
        "--update", required=True, help=f"{', '.join(UPDATES)}, or module:NAME of an own one"
    )
    parser.add_argument(
        "--step-size",
        required=True,
        help="the step size, read exactly: 0.3 or 3/10 is three tenths",
    )
    parser.add_argument(
        "--schedule",
        default="constant",
        metavar="{constant, inverse-sqrt, geometric:C}",
        help="weight of update t: the step size, the step size / sqrt(t), or the step size times "
        "C^(t-1) with a number C above 1, as in geometric:1.1; t counts all updates "
        "(default: constant)",
    )
    parser.add_argument("--p", help="exponent of the escort update (default: 2)")
    parser.add_argument(
        "--escort-factor",
        choices=("keep", "drop"),
        help="keep or drop the factor p / norm of the escort gradient (default: keep)",
    )


def step_size(arguments: argparse.Namespace) -> Fraction:
    """Return ``--step-size`` as a fraction; raise a `ValueError` if it is not a positive number."""
    from pu_lib.exact import exact

    size = exact(arguments.step_size, "--step-size")
    if size <= 0:
        raise ValueError(f"--step-size: expected a number above 0, got {arguments.step_size}.")
    return size


def escort_options(arguments: argparse.Namespace) -> tuple[str, str]:
    """Return the escort exponent and factor; raise a `ValueError` if given for another update."""
    options = {"--p": arguments.p, "--escort-factor": arguments.escort_factor}
    names = [option for option, value in options.items() if value is not None]
    if names and as_update(arguments.update).name != "pg-es":
        raise ValueError(f"{', '.join(names)}: only pg-es has it, not {arguments.update}.")
    return arguments.p or "2", arguments.escort_factor or "keep"


def add_parser(subparsers: Any) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "unlearn",
        help="count the opposite updates that undo n updates",
        description="Make n updates with q = (1, 0) and print the number of updates with "
        "q = (0, 1) until pi(a_1) is back at its start, or 'inf'. The count is that of exact "
        "arithmetic for the paper's updates, of floats for any other; one that is out of reach "
        "ends in a sentence with what is proved of it.",
    )
    add_process(parser)
    parser.add_argument("--n", required=True, type=int, help="the number of updates to undo")
    parser.add_argument("--start", default="1/2", help="the first pi(a_1) (default: 1/2)")
    parser.add_argument(
        "--strict", action="store_true", help="wait until pi(a_1) is below its start"
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pu_lib.chapters.unlearning.quantities import unlearn
    from pu_lib.exact import exact

    update = as_update(arguments.update)
    p, factor = escort_options(arguments)
    if isinstance(update, EscortPolicyGradient) and "=" not in arguments.update:
        update = make_update("pg-es", p=exact(p, "p"), factor=factor)
    try:
        number = unlearn(
            update,
            arguments.n,
            step_size(arguments),
            arguments.schedule,
            start=arguments.start,
            strict=arguments.strict,
        )
    except ArithmeticError as unfinished:
        raise ValueError(str(unfinished)) from unfinished
    print(number)
    return 0
