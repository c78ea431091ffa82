"""``python -m pu_lib sweep``: run a grid of settings into a Parquet dataset."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pu_lib.empirical.store import Chunk

__all__ = ["add_parser"]

_DEFAULTS = {  # states, actions, beta, target
    "random-mdp": (100, 4, math.nan, 0.95),
    "chain": (10, 2, 0.8, 0.5),
    "cliff": (7, 3, 0.8, 0.5),
    "duplicated-chain": (10, 3, 0.8, 0.5),
}


def add_parser(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "sweep",
        help="run a grid of settings into a Parquet dataset",
        description="Run Jekyll & Hyde over a grid of settings. The dataset in --out has one row "
        "a run; an interrupted sweep resumes where it was.",
        epilog="`sweep paper --out DIR` runs the whole empirical section.",
    )
    parser.add_argument(
        "domain",
        metavar="DOMAIN",
        help="random-mdp, chain, cliff, duplicated-chain, a Gymnasium id, a .npz file, "
        "or `paper` for everything in section 4",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="directory of the dataset")
    parser.add_argument("--scheme", nargs="+", default=["HiOffPol"], help="exploration schemes")
    parser.add_argument("--update", nargs="+", help="policy updates (default: all five)")
    parser.add_argument("--eta", nargs="+", type=float, help="learning rates of the actor")
    parser.add_argument("--states", nargs="+", type=int, help="numbers of states")
    parser.add_argument("--actions", nargs="+", type=int, help="numbers of actions")
    parser.add_argument("--beta", nargs="+", type=float, help="what jumping earns on chains")
    parser.add_argument("--runs", type=int, help="runs of each setting (default: 20)")
    parser.add_argument("--max-steps", type=int, default=1_000_000, help="cap of a run")
    parser.add_argument("--target", type=float, help="normalised performance to reach")
    parser.add_argument("--seed", type=int, default=0, help="root of all randomness")
    parser.add_argument("--preset", default="paper", help="paper or predecessor, 'paper cut=0'...")
    parser.add_argument("--workers", type=int, help="threads (default: one a processor)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="running Dask scheduler to use")
    parser.set_defaults(run=_run)


def _run(arguments: argparse.Namespace) -> int:
    from pu_lib.empirical.sweep import sweep

    chunks = _chunks(arguments)
    try:
        computed = sweep(
            chunks,
            arguments.out,
            workers=arguments.workers,
            scheduler=arguments.scheduler,
            progress=True,
        )
    except KeyboardInterrupt:
        print("Stopped; the same command goes on from here.", file=sys.stderr)
        return 130
    rows = sum(chunk.count for chunk in chunks)
    print(f"{arguments.out}: {rows} runs, {computed} of {len(chunks)} chunks computed now.")
    return 0


def _chunks(arguments: argparse.Namespace) -> list[Chunk]:
    from itertools import product

    from pu_lib.empirical.options import PUBLISHED_SCHEMES, SCHEMES, describe, parse
    from pu_lib.empirical.panels import RATES, paper_chunks
    from pu_lib.empirical.store import Cell
    from pu_lib.empirical.sweep import chunks_of, sized
    from pu_lib.updates import UPDATES

    if arguments.domain == "paper":
        return paper_chunks(arguments.seed, random_runs=arguments.runs or 1000)
    known = {**SCHEMES, **PUBLISHED_SCHEMES}
    for scheme in arguments.scheme:
        if scheme not in known:
            raise ValueError(f"--scheme: expected one of {', '.join(known)}, got {scheme!r}.")
    updates = arguments.update or list(UPDATES)
    for update in updates:
        if update not in UPDATES:
            raise ValueError(f"--update: expected {', '.join(UPDATES)}, got {update!r}.")
    for eta in arguments.eta or RATES:
        if not (math.isfinite(eta) and eta > 0.0):
            raise ValueError(f"--eta: expected a finite number > 0, got {eta}.")
    if arguments.max_steps < 1:
        raise ValueError(f"--max-steps: expected at least 1, got {arguments.max_steps}.")
    states, actions, beta, target = _DEFAULTS.get(arguments.domain, (0, 0, math.nan, 0.95))
    label = describe(parse(arguments.preset))
    cells = [
        Cell(
            experiment=arguments.domain,
            domain=arguments.domain,
            scheme=scheme,
            update=update,
            eta=eta,
            n_states=n_states,
            n_actions=n_actions,
            beta=b,
            preset=label,
            max_steps=arguments.max_steps,
            target=target if arguments.target is None else arguments.target,
            seed=arguments.seed,
        )
        for n_states, n_actions, b in product(
            arguments.states or [states], arguments.actions or [actions], arguments.beta or [beta]
        )
        for scheme in arguments.scheme
        for eta in arguments.eta or RATES
        for update in updates
    ]
    runs = 20 if arguments.runs is None else arguments.runs
    return chunks_of([sized(cell) for cell in cells], runs, 20)
