"""``python -m pu_lib collect``: export the runs of a sweep with a record of their origin."""

from __future__ import annotations

import argparse


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "collect",
        help="export the runs of a sweep to one file",
        description="Write the runs of a sweep, sorted, to runs.parquet in DIR, and what made "
        "them to provenance.json. Where a sweep was interrupted, a setting keeps the runs that all "
        "settings of its panel have.",
    )
    parser.add_argument("dataset", metavar="DATASET", help="directory of a sweep")
    parser.add_argument("--out", required=True, metavar="DIR", help="where to write")
    parser.add_argument("--command", default="", help="the command that made the dataset")
    parser.add_argument("--seconds", type=float, default=0.0, help="its wall time")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pu_lib.experiments.collect import collect

    print(collect(arguments.dataset, arguments.out, arguments.command, arguments.seconds))
    return 0
