"""``python -m pu_lib show``: print and draw the runs of a sweep."""

from __future__ import annotations

import argparse

from pu_lib.cli.race import figure_path
from pu_lib.files import replacing


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "show",
        help="print and draw the runs of a sweep",
        description="Print the best step size of each update and setting with the times to the "
        "target and 95 % intervals, and draw a panel for each setting.",
    )
    parser.add_argument("directory", metavar="DIR", help="directory of a sweep")
    parser.add_argument(
        "--x",
        help="step_size, n_states, n_actions, or step for learning curves, which need a sweep with "
        "--curves (default: step_size, or a size if the step size does not vary)",
    )
    parser.add_argument("--statistic", default="median", help="median (default), mean or iqm")
    parser.add_argument("--figure", default="sweep.png", metavar="FILE", help="where to draw")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    figure = figure_path(arguments.figure)
    from pu_lib.drawing.race import draw_results
    from pu_lib.drawing.style import DPI
    from pu_lib.experiments.results import read_results

    results = read_results(arguments.directory)
    print(results)
    drawing = draw_results(results, arguments.x, arguments.statistic)
    with replacing(figure) as file:
        drawing.savefig(file, format=figure.suffix[1:], dpi=2 * DPI)
    print(f"Curves: {figure}")
    return 0
