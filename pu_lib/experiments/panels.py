r"""The experiments of the paper's section 4, as cells to run.

The paper has ten panels: Random MDPs under three schemes, chains of a different length under each
of three schemes, chains of 3 to 25 states under two schemes, duplicated optimal actions, and the
cliff. Further experiments measure the effect of the details that the paper leaves open, reproduce
the learning-rate curve published by the predecessor, and provide comparisons for some claims.

There are two step sizes per decade from 10^-3 to 10^3. The paper states :math:`\beta` as 0.7
(appendix) and as 0.8 (caption of its figure 1), so chains are run with both values. The escort
update is run without the factor that the paper's gradient omits (``pg-es factor=drop``) and, on
Random MDPs and at :math:`\beta = 0.8`, also with the factor (``pg-es``).

Registered updates that are not in the paper are run in all panels of the paper. The cross-entropy
updates are also run with random tie-breaking on Random MDPs, and the escort update with plain
floats. The names of these experiments differ from the names of the paper's experiments, so that the
paper's panels are complete without these runs. Runs of a domain with the same number share their
random stream in all experiments.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from pu_lib.arrays import as_int
from pu_lib.experiments.cells import Cell, Chunk, read_process
from pu_lib.experiments.options import (
    PAPER,
    PREDECESSOR,
    PROGRAM,
    PUBLISHED_SCHEMES,
    Options,
    configured,
    scheme_of,
)
from pu_lib.experiments.results import IN_FLOATS, MORE, SARSA_LIMIT, TIED, fixed_step_size
from pu_lib.updates import PAPER as PAPER_UPDATES
from pu_lib.updates import UPDATES, EscortPolicyGradient, as_update

STEP_SIZES = (
    0.001, 0.00316, 0.01, 0.0316, 0.1, 0.316, 1.0, 3.16, 10.0, 31.6, 100.0, 316.0, 1000.0,
)  # fmt: skip
"""Step sizes of the experiments, two per decade."""

PUBLISHED_STEP_SIZES = (
    0.009993, 0.01584, 0.0251, 0.03979, 0.06307, 0.09997, 0.1584, 0.2511, 0.3981, 0.6309, 1.0,
    1.585, 2.512, 3.982, 6.311, 10.0, 15.86, 25.13, 39.83, 63.14, 100.1, 158.6, 251.4, 398.5, 631.6,
)  # fmt: skip
"""Step sizes of the published curve, as read off its figure."""

DETAIL_STEP_SIZES = (0.1, 1.0, 10.0)
"""Step sizes of the runs with a changed detail."""

_BETAS = (0.8, 0.7)
_HYDE = {"hyde_start", "hyde_clip", "bonus"}

ABLATIONS: tuple[Options, ...] = (
    replace(PAPER, hyde_start=0.0),
    replace(PAPER, hyde_start=1.0, hyde_clip=1.0),
    replace(PAPER, bonus="log"),
    replace(PAPER, sarsa="expected"),
    replace(PAPER, replay="model"),
    replace(PAPER, actor_weight="discounted"),
    replace(PAPER, cut=0),
    replace(PAPER, ties="random"),
    replace(PAPER, ties="leave"),
    replace(PAPER, last_state_tie=True),
    replace(PAPER, escort_start=0.1),
    replace(PAPER, escort_start=10.0),
    replace(PREDECESSOR, stop="steps", max_episodes=0),
)
"""The paper's options with one change each, then the predecessor's with the paper's `stop`."""


def _cell(
    experiment: str,
    domain: str,
    scheme: str,
    update: str,
    step_size: float,
    n_states: int,
    n_actions: int,
    beta: float,
    options: Options,
    seed: int,
) -> Cell:
    sizes = {"n_states": n_states}
    if domain in ("random-mdp", "duplicated-chain"):
        sizes["n_actions"] = n_actions
    process = read_process(domain, **sizes, **({} if math.isnan(beta) else {"beta": beta}))
    return Cell(
        process=process,
        update=configured(update, options),
        step_size=step_size,
        scheme=scheme_of(scheme),
        options=options,
        max_steps=1_000_000,
        target=process.target,
        seed=seed,
        experiment=experiment,
    )


def _updates(beta: float) -> Iterator[str]:
    """Yield the paper's five updates and, unless beta is 0.7, the escort update with its factor."""
    yield from PROGRAM
    if beta != _BETAS[1]:
        yield "pg-es"


def _curve(
    domain: str, scheme: str, n_states: int, n_actions: int, beta: float, seed: int
) -> list[Cell]:
    """Return the cells of all updates at all step sizes."""
    return [
        _cell(domain, domain, scheme, update, step_size, n_states, n_actions, beta, PAPER, seed)
        for step_size in STEP_SIZES
        for update in _updates(beta)
    ]


def _random(seed: int) -> list[Cell]:
    return [
        cell
        for scheme in ("HiOffPol", "NoExplo", "LowOffPol")
        for cell in _curve("random-mdp", scheme, 100, 4, math.nan, seed)
    ]


def _chain(seed: int, beta: float) -> list[Cell]:
    lengths = {"NoExplo": 5, "LowOffPol": 7, "HiOffPol": 10}
    return [
        cell
        for scheme, n_states in lengths.items()
        for cell in _curve("chain", scheme, n_states, 2, beta, seed)
    ]


def _cliff(seed: int, beta: float) -> list[Cell]:
    return _curve("cliff", "HiOffPol", 7, 3, beta, seed)


def _lengths(seed: int, beta: float) -> list[Cell]:
    return [
        _cell("chain-length", "chain", scheme, update, step_size, n, 2, beta, PAPER, seed)
        for scheme in ("LowOffPol", "HiOffPol")
        for n in range(3, 26)
        for update in _updates(beta)
        for step_size in [fixed_step_size(as_update(update).name)]
    ]


def _duplicates(seed: int) -> list[Cell]:
    return [
        cell
        for n_actions in (2, 3, 5, 9)
        for cell in _curve("duplicated-chain", "HiOffPol", 10, n_actions, 0.8, seed)
    ]


def _ablations(seed: int) -> list[Cell]:
    settings = (
        ("random-mdp", 100, 4, math.nan, "HiOffPol"),
        ("random-mdp", 100, 4, math.nan, "NoExplo"),
        ("random-mdp", 100, 4, math.nan, "LowOffPol"),
        ("chain", 10, 2, 0.8, "HiOffPol"),
        ("chain", 7, 2, 0.8, "LowOffPol"),
    )
    return [
        _cell("open-details", domain, scheme, update, step_size, n, n_actions, beta, options, seed)
        for domain, n, n_actions, beta, scheme in settings
        for options in ABLATIONS
        if _matters(options, domain, scheme)
        for step_size in DETAIL_STEP_SIZES
        for update in PROGRAM
        if _touches(options, update)
    ]


def _changed(options: Options) -> set[str]:
    """Return the names of the options that differ from the options of the paper."""
    return {name for name, value in vars(options).items() if value != vars(PAPER)[name]}


def _matters(options: Options, domain: str, scheme: str) -> bool:
    """Return whether an ablation has an effect in a domain under a scheme."""
    changed = _changed(options)
    if domain == "random-mdp":
        idle = changed == {"last_state_tie"}
    else:  # deterministic, with trajectories shorter than the cut
        idle = changed in ({"cut"}, {"replay"})
    return not idle and (scheme != "NoExplo" or not changed <= _HYDE)


def _touches(options: Options, update: str) -> bool:
    """Return whether an ablation has an effect on an update."""
    changed = _changed(options)
    if changed == {"ties"}:
        return update in ("ce", "mce")
    if changed == {"escort_start"}:
        return as_update(update).name == "pg-es"
    return True


def _published(seed: int) -> list[Cell]:
    return [
        replace(
            _cell("published-curve", "chain", s, "pg-sm", step_size, 10, 2, 0.8, PREDECESSOR, seed),
            # Trajectories have at most 9 steps, so that the cap on the episodes is reached first.
            max_steps=9 * PREDECESSOR.max_episodes,
        )
        for s in PUBLISHED_SCHEMES
        for step_size in PUBLISHED_STEP_SIZES
    ]


def _compared_chains(seed: int) -> list[Cell]:
    """Return cells of a chain as long as the cliff, and of a chain of 10 states under NoExplo."""
    return [
        _cell("chain-compared", "chain", scheme, update, step_size, n, 2, 0.8, PAPER, seed)
        for scheme, n, step_sizes in (("HiOffPol", 7, STEP_SIZES), ("NoExplo", 10, STEP_SIZES[::2]))
        for step_size in step_sizes
        for update in PROGRAM
    ]


# The policies of policy gradients do not become greedy at large step sizes.
_GREEDY_STEP_SIZE, _GREEDY = 1e9, ("di", "ce", "mce")


def _greedy_limit(seed: int) -> list[Cell]:
    """Return cells with a step size so large that policies are greedy, as in greedy SARSA."""
    step_size, none = _GREEDY_STEP_SIZE, math.nan
    return [
        _cell("greedy-limit", "random-mdp", scheme, update, step_size, 100, 4, none, PAPER, seed)
        for scheme in ("NoExplo", "LowOffPol", "HiOffPol")
        for update in _GREEDY
    ]


def _sarsa_limit(seed: int) -> list[Cell]:
    """Return the same on the chain and the cliff, for each scheme and both values of beta."""
    shown = [cell for beta in _BETAS for cell in _cliff(seed, beta) + _chain(seed, beta)]
    return [
        replace(cell, experiment=SARSA_LIMIT, step_size=_GREEDY_STEP_SIZE)
        for cell in shown
        if cell.step_size == STEP_SIZES[0] and cell.update.name in _GREEDY
    ]


def _slow_critic(seed: int) -> list[Cell]:
    """Return cells with a less noisy critic, to test whether noise slows down CE and MCE."""
    slow = replace(PAPER, critic_rate=0.01)
    return [
        _cell(
            "critic-rate", "random-mdp", "NoExplo", update, step_size, 100, 4, math.nan, slow, seed
        )
        for step_size in DETAIL_STEP_SIZES
        for update in PROGRAM
    ]


def _tied(seed: int) -> list[Cell]:
    """Return the cells of the cross-entropy updates on Random MDPs with ties broken at random."""
    random = replace(PAPER, ties="random")
    return [
        _cell(TIED, "random-mdp", scheme, update, step_size, 100, 4, math.nan, random, seed)
        for scheme in ("HiOffPol", "NoExplo", "LowOffPol")
        for step_size in STEP_SIZES
        for update in PROGRAM
        if _touches(random, update)
    ]


def _more(cells: list[Cell]) -> list[Cell]:
    """Return the given cells with each registered update that is not in the paper."""
    model = "ce"  # any update of the paper has one cell per position
    return [
        replace(
            cell,
            experiment=cell.experiment + MORE,
            update=update,
            step_size=fixed_step_size(name)
            if cell.experiment == "chain-length"
            else cell.step_size,
        )
        for cell in cells
        for name, update in UPDATES.items()
        if cell.update.name == model and name not in PAPER_UPDATES and update.kernel is not None
    ]


def _in_floats(cells: list[Cell]) -> list[Cell]:
    """Return the given cells of the escort update with parameters stored as plain floats."""
    floats = replace(PAPER, precision="float64")
    return [
        replace(cell, experiment=cell.experiment + IN_FLOATS, options=floats)
        for cell in cells
        if cell.update.name == "pg-es" and not _keeps_factor(cell)
    ]


def _keeps_factor(cell: Cell) -> bool:
    """Return whether a cell has the escort update with its factor, which is not in the paper."""
    return isinstance(cell.update, EscortPolicyGradient) and cell.update.factor == "keep"


def paper_chunks(seed: int = 0, random_runs: int = 1000, beyond: int | None = None) -> list[Chunk]:
    """Return all runs of all panels in rounds that end at run 20, 40, 100, 200, ...

    There are three groups of runs, each with its own rounds: the published curve, the paper's
    panels and the other experiments (with the tie rules of `ABLATIONS`); then plain floats; then
    random tie-breaking on Random MDPs and the updates that are not in the paper.

    Parameters
    ----------
    seed : int
        Root seed.
    random_runs : int
        Number of runs on Random MDPs; the paper has 1000.
    beyond : int, optional
        Cap on the number of runs of the escort update with its factor, of random tie-breaking in
        the last group, and of updates that are not in the paper. The default is `random_runs`. The
        tie rules of `ABLATIONS` are not capped.

    Returns
    -------
    list of Chunk
        The chunks, in order of computation.

    Raises
    ------
    ValueError
        If `random_runs` is not a positive integer.
    """
    random_runs = as_int("runs", random_runs, low=1)
    shown = [
        (_random(seed), random_runs),
        (_cliff(seed, 0.8) + _chain(seed, 0.8), 100),
        (_lengths(seed, 0.8) + _duplicates(seed), 40),
    ]
    for beta in _BETAS[1:]:
        shown += [
            (_cliff(seed, beta) + _chain(seed, beta), 100),
            (_lengths(seed, beta), 40),
        ]
    others = [
        (_ablations(seed), 40),
        (_compared_chains(seed) + _greedy_limit(seed) + _slow_critic(seed), 100),
        (_sarsa_limit(seed), 100),
    ]
    most = random_runs if beyond is None else beyond
    without_factor = [
        ([cell for cell in cells if not _keeps_factor(cell)], runs) for cells, runs in shown
    ]
    factor = [
        ([cell for cell in cells if _keeps_factor(cell)], min(runs, most)) for cells, runs in shown
    ]
    floats = [(_in_floats(cells), runs) for cells, runs in shown]
    more = [(_more(cells), min(runs, most)) for cells, runs in shown]
    return [
        *_rounds([(_published(seed), 100), *without_factor, *factor, *others]),
        *_rounds(floats),
        *_rounds([(_tied(seed), min(random_runs, most)), *more]),
    ]


def _rounds(panels: list[tuple[list[Cell], int]]) -> list[Chunk]:
    """Return the runs of lists of cells in rounds; each list has its own number of runs."""
    most = max(runs for _, runs in panels)
    bounds = [0, 20, 40, *range(100, max(100, most) + 100, 100)]
    return [
        Chunk(cell, first, min(last, count) - first)
        for first, last in pairwise(bounds)
        for cells, runs in panels
        if (count := max(1, runs)) > first
        for cell in cells
    ]
