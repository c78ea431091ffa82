"""Checks of what section 4.3 says it saw on the cliff, by the rule of `parts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.empirical.parts import (
    DI_AND_CE_EXCHANGED,
    FAST,
    GRADIENTS_EXCHANGED,
    GRADIENTS_FOR_OTHERS,
    MUCH,
    PG,
    SIMILAR,
    VERY,
    Part,
    as_shown,
    centres,
    ends,
    judge_parts,
    labels,
    share_of,
    slower,
)
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.experiments.curves import (
    best_of,
    bests,
    betas,
    both_centres,
    curve_of,
    factor_apart,
    over,
    value_at,
)
from pu_lib.experiments.interventions import climb_from_jumping
from pu_lib.experiments.results import PANELS, Runs
from pu_lib.updates import PAPER, label_of


@check("sec:cliff/pg-sm-slow", wrong=GRADIENTS_EXCHANGED)
def pg_sm_slow(compare: Recorder, table: Runs = None) -> Status:
    """On the cliff PG-SM at its best rate is more than 5 times slower than the best update."""
    parts = []
    for words, _, values in centres(table, betas(table, "cliff")):
        behind = best_of(values, "pg-sm") / bests(values, PAPER).min(axis=0)
        parts.append(Part(f"{words}: PG-SM over the best", behind, VERY))
    return judge_parts(compare, parts)


def _slowdowns(table: Runs, cliff: str = "cliff") -> Iterator[tuple[str, Floats]]:
    """Yield by what factor the third action slows down each update, by median and mean."""
    for s, _, (on_cliff, on_chain) in both_centres(table, cliff, "chain/HiOffPol/7"):
        yield s, bests(on_cliff, PAPER) / bests(on_chain, PAPER)


@check("sec:cliff/gravity", wrong=GRADIENTS_EXCHANGED)
def cliff_gravity(compare: Recorder, table: Runs = None) -> Status:
    """The third action slows PG-SM down more than it does every other update.

    The slowdown is the best time on the cliff with 7 states over the best time on the chain with 7
    states, both under HiOffPol with beta = 0.8.
    """
    parts = []
    for s, slowdown in _slowdowns(table):
        parts += [
            Part(f"{s}: slowdown of PG-SM over that of {label_of(u)}", slowdown[0] / slowdown[i])
            for i, u in enumerate(PAPER)
            if i
        ]
    return judge_parts(compare, parts)


@check(
    "app:Domains/cliff-slowdown",
    wrong={"some are slowed down by the chain itself": {"cliff": "chain/HiOffPol/7"}},
)
def cliff_marginal(compare: Recorder, table: Runs = None, cliff: str = "cliff") -> Status:
    """Some algorithms are slowed down by the third action by more than a factor 2, others by less.

    The slowdown as in `cliff_gravity`: the largest over updates is above 2, the smallest below.
    """
    parts, found = [], []
    for s, slowdown in _slowdowns(table, cliff):
        found.append(slowdown[:, 0])
        parts.append(Part(f"{s}: largest slowdown", slowdown.max(axis=0), MUCH))
        parts.append(Part(f"{s}: smallest slowdown", slowdown.min(axis=0), MUCH, False))
    points = np.array(found)
    much = points.max(axis=0) > MUCH
    told = {
        "slowed much": labels(u for u, slow in zip(PAPER, much, strict=True) if slow),
        "others": as_shown(points[:, ~much].max(initial=0.0)),
    }
    return judge_parts(compare, parts, **told)


@check("sec:cliff/pg-es-better", wrong=GRADIENTS_EXCHANGED)
def pg_es_better(compare: Recorder, table: Runs = None) -> Status:
    """On the cliff PG-ES at its best rate is faster than PG-SM at its own."""
    parts = []
    for words, _, values in centres(table, betas(table, "cliff")):
        lead = best_of(values, "pg-sm") / best_of(values, "pg-es")
        parts.append(Part(f"{words}: best of PG-SM over PG-ES", lead))
    return judge_parts(compare, parts)


@check("sec:cliff/pg-es-wall", wrong=GRADIENTS_EXCHANGED)
def pg_es_wall(compare: Recorder, table: Runs = None) -> Status:
    """On the cliff PG-ES at the highest rate is more than 5 times slower than at its best."""
    parts = []
    for words, curves, values in centres(table, betas(table, "cliff")):
        highest = value_at(values, curves, "pg-es", curves.axis[-1])
        wall = over(highest, best_of(values, "pg-es"), curves.cap)
        parts.append(Part(f"{words}: time at the highest rate over the best", wall, VERY))
    return judge_parts(compare, parts)


@check("sec:cliff/pg-es-gap", wrong=GRADIENTS_EXCHANGED)
def pg_es_gap(compare: Recorder, table: Runs = None, chain: str = "chain/HiOffPol") -> Status:
    """PG-ES is behind the best update by the same factor on the cliff as on the chain.

    Best times over the best of DI, CE, MCE; the two factors are within a factor 1.5. The paper
    compares with its panel of the chain, which has 10 states; what the third action alone does is
    asked of the chain of 7, the length of the cliff.
    """
    parts = []
    # with every beta that both have: on the chain of 7 there is one
    for (mark, cliff), (_, long) in zip(betas(table, "cliff"), betas(table, chain), strict=False):
        for s, _, (on_cliff, on_chain) in both_centres(table, cliff, long):
            gaps = [best_of(v, "pg-es") / bests(v, FAST).min(axis=0) for v in (on_cliff, on_chain)]
            words = f"{mark}{s}: factor on the cliff against the chain of {PANELS[long].n_states}"
            parts.append(Part(f"{words} states", factor_apart(*gaps), 1.5, False))
    return judge_parts(compare, parts)


pg_es_cause = check(
    "sec:cliff/pg-es-cause", wrong=GRADIENTS_EXCHANGED, arguments={"chain": "chain/HiOffPol/7"}
)(pg_es_gap.function)


@check("sec:cliff/best", wrong=GRADIENTS_FOR_OTHERS)
def cliff_best(compare: Recorder, table: Runs = None) -> Status:
    """On the cliff DI, CE and MCE at their best rates are each faster than PG-SM and PG-ES."""
    parts = []
    for words, _, values in centres(table, betas(table, "cliff")):
        lead = bests(values, PG).min(axis=0) / bests(values, FAST).max(axis=0)
        parts.append(Part(f"{words}: faster PG over the slowest of DI, CE, MCE", lead))
    return judge_parts(compare, parts)


@check("sec:cliff/mce-small-rates", wrong=DI_AND_CE_EXCHANGED | slower("update", "mce", 20))
def mce_small_rates(compare: Recorder, table: Runs = None) -> Status:
    """On the cliff MCE is a bit faster than CE at small rates, and similar elsewhere.

    Small rates are those up to 0.1; of them, at those where fewer than half of the runs of either
    are censored, CE over MCE is above 1 in the geometric mean. At all other rates they are within a
    factor 2.
    """
    small_rates, others = [], []
    for words, curves, values in centres(table, betas(table, "cliff")):
        share = curves.point("censored")[-2:].max(axis=0)
        small, seen = curves.axis <= 0.1 * (1 + 1e-9), share < 0.5
        ratio = curve_of(values, "ce") / curve_of(values, "mce")
        if (small & seen).any():
            lead = 10 ** np.log10(ratio[:, small & seen]).mean(axis=1)
            small_rates.append(Part(f"{words}: CE over MCE up to η = 0.1", lead))
        apart = np.maximum(ratio, 1.0 / ratio)[:, ~small].max(axis=1)
        others.append(Part(f"{words}: CE against MCE at higher rates", apart, SIMILAR, False))
    told = ends(small_rates, ("least at small", "most at small"))
    told |= {"most at others": ends(others)["most"]}
    return judge_parts(compare, small_rates + others, **told)


@check("sec:gravity/ce-experiment", wrong=GRADIENTS_FOR_OTHERS)
def ce_without_gravity(compare: Recorder, table: Runs = None) -> Status:
    """The cliff shows no gravity well of CE: it slows CE down by less than a factor 2, PG-SM more.

    The slowdown as in `cliff_gravity`.
    """
    ours, wells = [], []
    for s, slowdown in _slowdowns(table):
        ours.append(Part(f"{s}: slowdown of CE", slowdown[PAPER.index("ce")], MUCH, False))
        wells.append(Part(f"{s}: slowdown of PG-SM", slowdown[PAPER.index("pg-sm")], MUCH))
    told = {"of CE": ends(ours)["most"], "of PG-SM": ends(wells)["least"]}
    return judge_parts(compare, ours + wells, **told)


@check("sec:cliff/order", wrong={"the other way round": {"first": 1, "then": 0, "runs": 5}})
def cliff_order(
    compare: Recorder,
    updates: Sequence[str] = PAPER,
    runs: int = 52,
    first: int = 0,
    then: int = 1,
) -> Status:
    """On the cliff policies first lead to a_1 and in the end to a_2.

    Live, under HiOffPol with seven states at the paper's fixed rates. At some time within 10 000
    steps more than half of the states give a_1 more than half of the probability; after 300 000 all
    give a_2 as much. Each in more than nine runs in ten.
    """
    from pu_lib.experiments.live import policies_along

    parts, caps = [], np.append(np.geomspace(30, 10_000, 15), 300_000).astype(np.int64)
    for u in updates:
        likely = np.stack([policies_along("cliff", u, run, caps, 7) for run in range(runs)]) > 0.5
        led = likely[:, :-1, :, first].mean(axis=2).max(axis=1) > 0.5
        ended = likely[:, -1, :, then].all(axis=1)
        for words, found in (("most states first take a1", led), ("all take a2 in the end", ended)):
            marks = np.asarray(found, dtype=np.float64)
            parts.append(share_of(f"{label_of(u)}: runs in which {words}", marks, 0.9))
    return judge_parts(compare, parts)


@check(
    "sec:cliff/mce-monotone",
    wrong={"CE is monotone, and MCE is not": {"monotone": "ce", "other": "mce"}},
)
def mce_is_monotone(compare: Recorder, monotone: str = "mce", other: str = "ce") -> Status:
    """From past convergence to a_1 MCE never loses performance, CE does, and MCE is faster.

    Without sampling: true updates on the cliff from policies that jump, at small rates.
    """
    parts, times = [], []
    for eta in (0.01, 0.1):
        (quick, none), (slow, some) = (climb_from_jumping(u, eta) for u in (monotone, other))
        words = f"η = {eta}: steps of {label_of(other)} over those of {label_of(monotone)}"
        times.append(Part(words, np.array([slow / quick])))
        parts += [
            Part(f"η = {eta}: falls of {label_of(monotone)}", np.array([none]), 0.5, False, False),
            Part(f"η = {eta}: falls of {label_of(other)}", np.array([some]), 0.5, ratio=False),
            times[-1],
        ]
    return judge_parts(compare, parts, **ends(times))
