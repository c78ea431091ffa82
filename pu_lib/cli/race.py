"""``python -m pu_lib race``: compare the speeds of the updates on a given process."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pu_lib.domains import DOMAINS
from pu_lib.extras import installation_advice
from pu_lib.files import replacing


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "race",
        help="race the updates on a process of your own",
        description="Run the updates over a grid of step sizes on a process, print which "
        "reaches the target first, with 95 % intervals, and draw the curves. A policy is evaluated "
        "after each of the first 67 steps, then whenever the steps have grown by 3 %.",
    )
    parser.add_argument(
        "process",
        metavar="PROCESS",
        help=f"a Gymnasium id, a .npz file, module:NAME of a process or of a function that makes "
        f"one, or {', '.join(DOMAINS)} ('chain n_states=7')",
    )
    parser.add_argument(
        "--update",
        nargs="+",
        help="policy updates (default: all; pg-es has the exact factor of its gradient, "
        "'pg-es factor=drop' is the paper's program)",
    )
    parser.add_argument("--scheme", default="HiOffPol", help="NoExplo, LowOffPol or HiOffPol")
    parser.add_argument("--step-size", nargs="+", type=float, help="step sizes (default: a grid)")
    parser.add_argument(
        "--runs",
        type=int,
        default=20,
        help="runs of each setting (default: 20; intervals of means need 100)",
    )
    parser.add_argument("--max-steps", type=int, default=200_000, help="cap of a run")
    parser.add_argument("--target", type=float, help="normalised performance to reach")
    parser.add_argument("--options", default="paper", help="paper or predecessor, 'paper cut=0'...")
    parser.add_argument("--seed", type=int, default=0, help="root of all randomness")
    parser.add_argument("--workers", type=int, help="threads (default: one a processor)")
    parser.add_argument("--figure", metavar="FILE", help="where to draw (default: race.png)")
    parser.set_defaults(run=_run)


def figure_path(text: str) -> Path:
    """Return the path of ``--figure``; raise a `ValueError` if no figure can be written to it."""
    figure = Path(text)
    if not figure.parent.is_dir():
        raise ValueError(f"--figure: there is no directory {figure.parent}.")
    if figure.is_dir():
        raise ValueError(f"--figure: {figure} is a directory.")
    if figure.suffix not in (".png", ".pdf", ".svg"):
        raise ValueError(f"--figure: expected a file named .png, .pdf or .svg, got {figure.name}.")
    return figure


def _run(arguments: argparse.Namespace) -> int:
    figure, can_draw = figure_path(arguments.figure or "race.png"), True
    try:
        from pu_lib.drawing.race import draw_race
        from pu_lib.drawing.style import DPI
    except ModuleNotFoundError as error:
        if arguments.figure or error.name != "matplotlib":
            raise
        can_draw = False
    from pu_lib.experiments.options import parse
    from pu_lib.experiments.race import race

    ranking = race(
        arguments.process,
        scheme=arguments.scheme,
        step_sizes=arguments.step_size,
        runs=arguments.runs,
        max_steps=arguments.max_steps,
        target=arguments.target,
        options=parse(arguments.options),
        seed=arguments.seed,
        workers=arguments.workers,
        updates=arguments.update,
    )
    if not can_draw:
        print(ranking)
        print(f"No figure: {installation_advice('matplotlib')}", file=sys.stderr)
        return 0
    try:
        with replacing(figure) as file:
            draw_race(ranking).savefig(file, format=figure.suffix[1:], dpi=2 * DPI)
    finally:
        print(ranking)  # also if the figure cannot be written
    print(f"Curves: {figure}")
    return 0
