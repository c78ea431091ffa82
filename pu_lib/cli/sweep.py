"""``python -m pu_lib sweep``: run a grid of settings and store the runs in a database."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pu_lib.domains import DOMAINS
from pu_lib.updates import UPDATES, name_of

if TYPE_CHECKING:
    import pandas as pd

    from pu_lib.experiments.cells import Chunk

_BEYOND = 40  # runs per setting beyond the paper in an adaptive sweep of `paper`
_PARAMETERS = {"states": "n_states", "actions": "n_actions", "beta": "beta"}
_DEFAULTS = {"scheme": ["HiOffPol"], "max_steps": 1_000_000, "options": "paper"}
# Options that section 4 fixes and that cannot be given with `paper`.
_FIXED = ("scheme", "step_size", "max_steps", "target", "options", "curves", *_PARAMETERS)


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "sweep",
        help="run a grid of settings into a database",
        description="Run Jekyll & Hyde over a grid of settings. The database runs.sqlite in --out "
        "has one row a run, and so has runs.parquet, which is written at the end; an interrupted "
        "sweep resumes where it was, and one with more --runs adds them.",
        epilog="`sweep paper --out DIR` runs the whole empirical section, without the runs that no "
        "verdict needs; `sweep paper --full --out DIR` makes the book's own table.",
    )
    parser.add_argument(
        "domain",
        metavar="DOMAIN",
        nargs="?",
        help=f"{', '.join(DOMAINS)} (with parameters: 'chain discount=0.9'), a Gymnasium id, "
        "a .npz file, module:NAME of a process or of a function that makes one, or `paper` for "
        "everything in section 4",
    )
    parser.add_argument(
        "--out", required=True, metavar="DIR", help="directory of the database, on a local disk"
    )
    parser.add_argument(
        "--part",
        metavar="I/N",
        help="compute part I of N alone, in a folder of its own in DIR, which may be on a network "
        "disk; for job arrays",
    )
    parser.add_argument(
        "--merge", action="store_true", help="join the finished parts in DIR; takes only --out"
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print the numbers of runs and chunks alone"
    )
    parser.add_argument("--scheme", nargs="+", help="exploration schemes (default: HiOffPol)")
    compiled = ", ".join(
        "'pg-es factor=drop'" if name == "pg-es" else name
        for name, update in UPDATES.items()
        if update.kernel
    )
    parser.add_argument(
        "--update",
        nargs="+",
        help=f"policy updates (default: {compiled}; 'pg-es factor=drop' is the paper's program, "
        "pg-es has the exact factor)",
    )
    parser.add_argument("--step-size", nargs="+", type=float, help="step sizes of the actor")
    parser.add_argument("--states", nargs="+", type=int, help="numbers of states")
    parser.add_argument("--actions", nargs="+", type=int, help="numbers of actions")
    parser.add_argument("--beta", nargs="+", type=float, help="what jumping earns on chains")
    runs = "runs of each setting (default: 20); for `paper`, on Random MDPs (default: 1000)"
    parser.add_argument("--runs", type=int, help=runs)
    parser.add_argument("--max-steps", type=int, help="cap of a run (default: 1000000)")
    parser.add_argument("--target", type=float, help="normalised performance to reach")
    parser.add_argument("--seed", type=int, default=0, help="root of all randomness")
    parser.add_argument("--options", help="paper (default) or predecessor, 'paper cut=0'...")
    parser.add_argument("--workers", type=int, help="threads (default: one a processor)")
    parser.add_argument(
        "--known",
        nargs="?",
        const="",
        metavar="FILE",
        help="take over the runs of a table that need no computing again (default: the book's)",
    )
    parser.add_argument(
        "--curves",
        action="store_true",
        default=None,
        help="keep the performance at checkpoints, for learning curves; every run then goes on up "
        "to its cap",
    )
    work = parser.add_mutually_exclusive_group()
    work.add_argument(
        "--adaptive",
        action="store_true",
        default=None,
        help="no more runs where an update is far from its best (default for `paper`)",
    )
    work.add_argument(
        "--full",
        action="store_false",
        dest="adaptive",
        help="all runs of all settings (default elsewhere)",
    )
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="running Dask scheduler to use; its workers need your own modules on PYTHONPATH",
    )
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pu_lib.experiments.sweep import merge_parts, part_of, run_missing

    if arguments.merge:
        if arguments.domain or arguments.part or arguments.dry_run:
            raise ValueError("--merge: joins the parts in --out and takes no other argument.")
        merged = merge_parts(arguments.out)
        print(f"{arguments.out}: {len(merged.table)} runs.")
        return 0
    if arguments.domain is None:
        raise ValueError("DOMAIN: name what to sweep, or give --merge to join the parts in --out.")
    if arguments.adaptive is None:
        arguments.adaptive = arguments.domain == "paper"
    chunks, directory = part_of(
        _chunks(arguments), arguments.out, arguments.part, arguments.adaptive
    )
    if arguments.dry_run:
        print(_plan(chunks, directory, arguments.adaptive))
        return 0
    try:
        computed = run_missing(
            chunks,
            directory,
            workers=arguments.workers,
            scheduler=arguments.scheduler,
            known=_known(arguments.known),
            adaptive=arguments.adaptive,
            exclusive=arguments.part is not None,
            estimate=True,
        )
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    rows = sum(chunk.count for chunk in chunks)
    least = ", less those that the rule left out" if arguments.adaptive else ""
    print(f"{directory}: {rows} runs{least}; {computed} of {len(chunks)} chunks computed now.")
    return 0


def _plan(chunks: list[Chunk], directory: Path, adaptive: bool) -> str:
    """Return the numbers of settings, runs and chunks, with those that are missing, as text."""
    from pu_lib.experiments.database import Database

    todo = chunks
    if (directory / "runs.sqlite").exists():
        with Database(directory, read_only=True) as database:
            todo = database.missing(chunks)
    runs, left = (sum(chunk.count for chunk in each) for each in (chunks, todo))
    settings = len({id(chunk.cell) for chunk in chunks})
    most = "at most " if adaptive else ""
    return (
        f"{directory}: {settings} settings, {most}{runs} runs in {len(chunks)} chunks; "
        f"{most}{left} runs in {len(todo)} chunks are missing."
    )


def _known(file: str | None) -> pd.DataFrame | None:
    """Return the table of runs for ``--known``, or None if the option is missing."""
    import pandas as pd

    from pu_lib.experiments.results import committed

    if not file:
        return None if file is None else committed().table
    try:
        return pd.read_parquet(file)
    except (OSError, ValueError) as error:
        raise ValueError(f"--known: {file} cannot be read ({error}).") from None


def _chunks(arguments: argparse.Namespace) -> list[Chunk]:
    """Return the chunks of runs that the arguments specify."""
    from pu_lib.experiments.options import parse
    from pu_lib.experiments.panels import STEP_SIZES
    from pu_lib.experiments.sweep import grid

    runs = 20 if arguments.runs is None else arguments.runs
    if arguments.domain == "paper":
        return _paper_chunks(arguments)
    if arguments.update is None and (left := [u.name for u in UPDATES.values() if not u.kernel]):
        print(f"Left out, since they have no kernel: {', '.join(left)}.", file=sys.stderr)
    for option, value in _DEFAULTS.items():
        if getattr(arguments, option) is None:
            setattr(arguments, option, value)
    return grid(
        arguments.domain,
        updates=arguments.update,
        step_sizes=STEP_SIZES if arguments.step_size is None else arguments.step_size,
        schemes=arguments.scheme,
        runs=runs,
        max_steps=arguments.max_steps,
        target=arguments.target,
        options=parse(arguments.options),
        seed=arguments.seed,
        parameters={
            parameter: getattr(arguments, option)
            for option, parameter in _PARAMETERS.items()
            if getattr(arguments, option) is not None
        },
        curves=bool(arguments.curves),
    )


def _paper_chunks(arguments: argparse.Namespace) -> list[Chunk]:
    """Return the chunks of section 4, restricted to the chosen updates if there are any."""
    from pu_lib.experiments.panels import paper_chunks

    fixed = [name for name in _FIXED if getattr(arguments, name) is not None]
    if fixed:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in fixed)
        raise ValueError(f"{options}: section 4 fixes it; leave it out, or name a domain.")
    beyond = _BEYOND if arguments.adaptive else None
    runs = 1000 if arguments.runs is None else arguments.runs
    chunks = paper_chunks(arguments.seed, random_runs=runs, beyond=beyond)
    if arguments.update is None:
        return chunks
    # --update does not select a rule for ties: both rules are swept
    labels = [name_of(chunk.cell.update).partition(" ties=")[0] for chunk in chunks]
    names = set(labels)
    if unknown := sorted(set(arguments.update) - names):
        raise ValueError(f"--update: {unknown[0]!r} is none of {', '.join(sorted(names))}.")
    pairs = zip(chunks, labels, strict=True)
    return [chunk for chunk, label in pairs if label in arguments.update]
