"""Checks of what section 4.2 says it saw on the chain, by the rule of `parts`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pu_lib.chapters.empirical.parts import (
    CROSS,
    DI_AND_CE_EXCHANGED,
    FAST,
    GRADIENTS_EXCHANGED,
    GRADIENTS_FOR_OTHERS,
    MUCH,
    PG,
    SCHEMES,
    SIMILAR,
    Part,
    centres,
    ends,
    held,
    judge_parts,
    share_of,
    slower,
)
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.experiments.curves import (
    LONG,
    RANGE,
    after_shift,
    best_of,
    bests,
    betas,
    curve_of,
    factor_apart,
    long_chains,
    over,
    over_di,
    value_at,
)
from pu_lib.experiments.interventions import stopped, walled
from pu_lib.experiments.results import FIXED_RATES, PANELS, Curves, Runs, results_of
from pu_lib.formatting import percent
from pu_lib.updates import PAPER, label_of

CHAINS = tuple(f"chain/{scheme}" for scheme in SCHEMES)
LENGTHS = ("length/LowOffPol", "length/HiOffPol")


def _schemes(table: Runs, panels: Sequence[str]) -> list[tuple[str, str]]:
    """Return each panel and its twin for beta = 0.7, with the scheme in the mark for the words."""
    return [(f"{PANELS[name].scheme}, {mark}", name) for mark, name in betas(table, *panels)]


@check(
    "sec:chainexp/expected-order",
    wrong={
        "the other way round: first to walk, then flips from the start": {
            "reverse": True,
            "runs": 5,
        }
    },
)
def expected_order(
    compare: Recorder, updates: Sequence[str] = PAPER, runs: int = 52, reverse: bool = False
) -> Status:
    """Policies first lead to a_1, then flip from the end of the chain to its start.

    Live, on the chain with 10 states under HiOffPol at the paper's fixed rates. In more than nine
    runs in ten there is a time when more than half of the states prefer a_1; and of the pairs of
    states more than three in four come to prefer a_2 for good in the order that the paper expects,
    the one nearer to the end no later than the other.
    """
    from pu_lib.experiments.live import flip_times

    first, then = [], []
    for u in updates:
        flips = [flip_times(u, run) for run in range(runs)]
        jumped = np.array([float(f.jumping > len(f.times) / 2) for f in flips])
        ordered = np.array([f.ordered_share for f in flips])
        if reverse:
            jumped, ordered = 1.0 - jumped, 1.0 - ordered
        words = f"{label_of(u)}: share of"
        first.append(share_of(f"{words} runs in which most states first jump", jumped, 0.9))
        then.append(share_of(f"{words} pairs flipped end first", ordered, 0.75))
    jumping = min(part.value for part in first)
    told = {
        "jumping": "every run" if jumping == 1.0 else f"{percent(jumping, 0)} of the runs or more",
        "least ordered": percent(min(part.value for part in then), 0),
        "most ordered": percent(max(part.value for part in then), 0),
    }
    parts = [part for pair in zip(first, then, strict=True) for part in pair]
    return judge_parts(compare, parts, **told)


@check(
    "sec:chainexp/noexplo-stuck",
    wrong={"most runs never pass on a chain of 5 states": {"long": "chain/NoExplo"}},
)
def noexplo_stuck(compare: Recorder, table: Runs = None, long: str = "chain/NoExplo/10") -> Status:
    """Without exploration most runs on 10 states never pass, whatever the update and the rate.

    At the rate where it is smallest, the share of runs censored at a million steps is above one
    half with 10 states and below it with 5.
    """
    parts, told = [], {}
    for words, name, above in (("10", long, True), ("5", "chain/NoExplo", False)):
        curves = results_of(table).curves(name)
        share = curves.estimates("censored")
        lost = [best_of(share[:1], u).item() for u in PAPER]
        told[f"lost with {words}"] = percent(min(lost) if above else max(lost))
        for u in PAPER:
            what = f"{label_of(u)}: smallest censored share, {words} states"
            runs = curves.fewest_runs
            parts.append(Part(what, best_of(share, u), 0.5, above, ratio=False, runs=runs))
    return judge_parts(compare, parts, **told)


@check("sec:chainexp/ce-best", wrong=DI_AND_CE_EXCHANGED)
def ce_best(compare: Recorder, table: Runs = None) -> Status:
    """CE and MCE at their best rates are both faster than PG-SM, PG-ES and DI at theirs."""
    alone: list[Part] = []
    exploring: list[Part] = []
    for parts, panels in ((alone, CHAINS[:1]), (exploring, CHAINS[1:])):
        for words, _, values in centres(table, _schemes(table, panels)):
            lead = bests(values, (*PG, "di")).min(axis=0) / bests(values, CROSS).max(axis=0)
            parts.append(Part(f"{words}: best of the others over the slower of CE, MCE", lead))
    told = ends(alone, ("least alone", "most alone")) | {
        "apart": percent(max(abs(part.value - 1.0) for part in exploring), 1),
        "compared": len(exploring),
        "certain": held(exploring),
    }
    return judge_parts(compare, alone + exploring, **told)


@check("sec:chainexp/shift", wrong=DI_AND_CE_EXCHANGED)
def shift(compare: Recorder, table: Runs = None) -> Status:
    """Under LowOffPol and HiOffPol the curves of CE and DI differ by a shift of the rate.

    Moving DI's curve by some number of grid steps brings it within a factor 1.5 of CE's at every
    rate in CE's range that both then cover.
    """
    parts = []
    for words, _, values in centres(table, _schemes(table, CHAINS[1:])):
        after = after_shift(curve_of(values, "ce"), curve_of(values, "di"))
        parts.append(Part(f"{words}: CE against DI after the best shift", after, 1.5, False))
    return judge_parts(compare, parts)


@check("sec:chainexp/noexplo-advantage", wrong=DI_AND_CE_EXCHANGED | slower("update", "mce", 20))
def noexplo_advantage(compare: Recorder, table: Runs = None) -> Status:
    """Under NoExplo CE and MCE at their best rates are faster than DI at its own."""
    parts = []
    for words, _, values in centres(table, betas(table, "chain/NoExplo")):
        for u in CROSS:
            lead = best_of(values, "di") / best_of(values, u)
            parts.append(Part(f"{words}: best of DI over {label_of(u)}", lead))
    return judge_parts(compare, parts)


@check("sec:chainexp/di-like-pg", wrong=slower("update", "di", 20))
def di_like_pg(compare: Recorder, table: Runs = None) -> Status:
    """Under NoExplo DI at its best rate is within a factor 2 of PG-SM and PG-ES at theirs."""
    parts = []
    for words, _, values in centres(table, betas(table, "chain/NoExplo")):
        for u in PG:
            far = factor_apart(best_of(values, "di"), best_of(values, u))
            parts.append(Part(f"{words}: DI against {label_of(u)}", far, SIMILAR, False))
    return judge_parts(compare, parts)


@check("sec:chainexp/di-dilemma", wrong=GRADIENTS_FOR_OTHERS)
def di_dilemma(compare: Recorder, table: Runs = None) -> Status:
    """Under NoExplo DI is slow at small rates, and at large rates stops exploring for good.

    At the lowest rate its time is more than 3 times its best; at the highest its censored share is
    above one half. The smallest that any update has there is told, and counts for nothing.
    """
    slowness, parts, lost = [], [], []
    panels = betas(table, "chain/NoExplo")
    for words, curves, values in centres(table, panels):
        lowest = value_at(values, curves, "di", curves.axis[0])
        slow = over(lowest, best_of(values, "di"), curves.cap)
        slowness.append(Part(f"{words}: DI at the lowest rate over its best", slow, RANGE))
    for mark, name in panels:
        curves = results_of(table).curves(name)
        share, highest = curves.estimates("censored"), curves.axis[-1]
        stuck, runs = value_at(share, curves, "di", highest), curves.fewest_runs
        words = f"{mark}DI's censored share at the highest rate"
        parts.append(Part(words, stuck, 0.5, ratio=False, runs=runs))
        lost += [value_at(share, curves, u, highest)[0] for u in PAPER]
    told = ends(slowness, ("least slow", "most slow")) | {"lost": percent(min(lost))}
    return judge_parts(compare, slowness + parts, **told)


@check("sec:chainexp/best-rates", wrong=GRADIENTS_EXCHANGED)
def best_rates(compare: Recorder, table: Runs = None) -> Status:
    """The paper's fixed rates are best: times there are within a factor 1.5 of the update's best.

    LowOffPol with 7 states and HiOffPol with 10.
    """
    parts = []
    for words, curves, values in centres(table, _schemes(table, CHAINS[1:])):
        for u, eta in FIXED_RATES.items():
            loss = value_at(values, curves, u, eta) / best_of(values, u)
            what = f"{words}: {label_of(u)} at η = {eta:g} over its best"
            parts.append(Part(what, loss, 1.5, False))
    return judge_parts(compare, parts)


@check(
    "sec:chainexp/length-pg",
    wrong={
        "alike within 1 %, and slower by more than a factor 50": {"similar": 1.01, "much": 50.0}
    },
)
def length_pg(
    compare: Recorder, table: Runs = None, similar: float = SIMILAR, much: float = MUCH
) -> Status:
    """On long chains PG-SM and PG-ES are alike, and slower than DI, CE, MCE by more than 2.

    Alike: within a factor 2 in the geometric mean over the lengths from 10 states on at which fewer
    than half of the runs of either are censored; where more are, both times are the cap and their
    ratio tells nothing. Slower: the faster of both over the slowest of DI, CE, MCE, in the
    geometric mean over 10 to 25 states; with a time at the cap this is a lower bound.
    """
    parts = []
    for words, curves, values in centres(table, _schemes(table, LENGTHS)):
        slow, fast = (long_chains(curves, values, group) for group in (PG, FAST))
        seen = _reached(curves)[curves.axis >= LONG]
        alike = 10 ** np.abs(np.log10(slow[0] / slow[1])[..., seen].mean(axis=-1))
        ratio = over(slow.min(axis=0), fast.max(axis=0), curves.cap)
        behind = 10 ** np.log10(ratio).mean(axis=-1)
        parts.append(Part(f"{words}: PG-ES against PG-SM", alike, similar, False))
        parts.append(Part(f"{words}: faster of both over the slowest other", behind, much))
    return judge_parts(compare, parts)


def _reached(curves: Curves) -> NDArray[np.bool_]:
    """Return at which positions fewer than half of the runs of PG-SM and of PG-ES are censored."""
    share = curves.point("censored")
    rows = [PAPER.index(u) for u in PG]
    return np.asarray((share[rows] < 0.5).all(axis=0))


@check("sec:chainexp/length-es-variance", wrong=GRADIENTS_EXCHANGED)
def length_es_variance(compare: Recorder, table: Runs = None) -> Status:
    """PG-ES varies more between runs than PG-SM, because it sometimes does not get there.

    The standard deviation of log10 of the time, averaged over the lengths at which fewer than half
    of the runs of either are censored, is larger for PG-ES; and so is the censored share there. How
    many are censored there in plain floats is told of the committed runs, and counts for nothing.
    """
    parts: list[Part] = []
    told: Counter[str] = Counter()
    results = results_of(table)
    for mark, name in _schemes(table, LENGTHS):
        curves = results.curves(name)
        reached, runs = _reached(curves), curves.fewest_runs
        times = np.log10(curves.steps[:, :2][:, :, reached])
        lost = curves.censored[:, :2][:, :, reached]
        chosen = [slice(None), *curves.draws]
        spread = np.stack([times[d].std(axis=0).mean(axis=-1) for d in chosen]) @ [-1.0, 1.0]
        gone = np.stack([lost[d].mean(axis=(0, 2)) for d in chosen]) @ [-1.0, 1.0]
        words = PANELS[name].scheme
        told.update({f"{words}, {label_of(u)}": int(lost[:, i].sum()) for i, u in enumerate(PG)})
        told[f"{words}, runs"] += lost[:, 0].size
        if table is None:
            floats = results.of(PANELS[name].in_floats).censored[:, 0]
            told[f"{words}, in floats"] += int(floats[:, reached].sum())
        what = f"{mark}spread of PG-ES less PG-SM, decades"
        parts.append(Part(what, spread, 0.0, ratio=False))
        what = f"{mark}censored share of PG-ES less PG-SM"
        parts.append(Part(what, gone, 0.0, ratio=False, runs=runs, least=-1.0))
    return judge_parts(compare, parts, **told)


@check("sec:chainexp/length-fast", wrong=slower("update", "di", 20))
def length_fast(compare: Recorder, table: Runs = None) -> Status:
    """Under HiOffPol DI, CE and MCE are within a factor 2 of each other at every length."""
    parts = []
    for words, _, values in centres(table, betas(table, "length/HiOffPol")):
        fast = np.stack([curve_of(values, u) for u in FAST])
        worst = (fast.max(axis=0) / fast.min(axis=0)).max(axis=-1)
        parts.append(Part(f"{words}: slowest over fastest, worst length", worst, SIMILAR, False))
    return judge_parts(compare, parts)


@check("sec:chainexp/length-di-slower", wrong=DI_AND_CE_EXCHANGED | slower("update", "di", 20))
def length_di_slower(compare: Recorder, table: Runs = None) -> Status:
    """On long chains DI at rate 1 is a bit slower than CE and MCE, because its rate is too low.

    Over the faster of CE and MCE, in the geometric mean over 10 to 25 states, by a factor between 1
    and 2; and on 10 states DI is faster at some higher rate than at 1.
    """
    parts = []
    for words, curves, values in centres(table, _schemes(table, LENGTHS)):
        di, ce, mce = np.log10(long_chains(curves, values, FAST))
        behind = 10 ** (di - np.minimum(ce, mce)).mean(axis=-1)
        parts.append(Part(f"{words}: DI over the faster of CE, MCE", behind))
        parts.append(Part(f"{words}: the same ratio", behind, SIMILAR, False))
    for words, curves, values in centres(table, betas(table, "chain/HiOffPol")):
        higher = curve_of(values, "di")[:, curves.axis > 1.0].min(axis=1)
        gain = value_at(values, curves, "di", 1.0) / higher
        parts.append(Part(f"10 states, {words}: DI at rate 1 over its best higher rate", gain))
    return judge_parts(compare, parts)


@check("sec:chainexp/duplicates-ce", wrong=DI_AND_CE_EXCHANGED)
def duplicates_ce(compare: Recorder, table: Runs = None) -> Status:
    """With duplicates CE is not delayed: at most a factor 1.1 slower than DI."""
    parts = [
        Part(f"{copies:g} optimal actions, {s}: CE over DI", ratio, 1.1, False)
        for s, copies, ratio in over_di(table, "ce")
    ]
    return judge_parts(compare, parts)


@check(
    "sec:chainexp/duplicates-mce", wrong=slower("update", "mce", 1.3, " (there it is reproduced)")
)
def duplicates_mce(compare: Recorder, table: Runs = None) -> Status:
    """With duplicates MCE is slightly delayed: slower than CE by a factor between 1 and 2."""
    slower, parts = [], []
    ratios = zip(over_di(table, "mce"), over_di(table, "ce"), strict=True)
    for (s, copies, mce), (_, _, ce) in ratios:
        slower.append(Part(f"{copies:g} optimal actions, {s}: MCE over CE", mce / ce))
        parts.append(Part(f"{copies:g} optimal actions, {s}: the same ratio", mce / ce, 2.0, False))
    behind = [part.what.partition(":")[0] for part in slower if part.decided()]
    told = {"compared": len(slower), "slower": len(behind), "where": "; ".join(behind) or "nowhere"}
    return judge_parts(compare, slower + parts, **told)


@check(
    "sec:chainexp/duplicates-conjecture",
    wrong=slower("update", "ce", 1e4) | slower("update", "mce", 1e4),
)
def duplicates_converge(compare: Recorder, table: Runs = None) -> Status:
    """With several optimal actions every run of CE and MCE at the paper's rates passes."""
    curves = results_of(table).curves("duplicates")
    share, few = curves.point("censored")[:, curves.axis > 2], 0.5 / curves.n_runs
    parts = []
    for u in CROSS:
        lost = np.array([share[PAPER.index(u)].max()])
        parts.append(Part(f"{label_of(u)}: largest censored share", lost, few, False, ratio=False))
    return judge_parts(compare, parts)


@check(
    "sec:chainexp/projection",
    wrong={"at a hundred times the rate, where it meets the wall": {"eta": 0.316}},
)
def no_projection(compare: Recorder, eta: float = 0.00316) -> Status:
    """Under NoExplo DI at its best rate never meets the wall of the simplex on its way.

    Live, 104 runs of at most 50 000 steps on the chain of 5 states: in fewer than one run in twenty
    a probability is zero at one of 20 times up to the goal.
    """
    words = f"DI, η = {eta:g}: runs that met the wall"
    return judge_parts(compare, [share_of(words, walled("di", eta, 104), 0.05, False)])


@check("sec:chainexp/still-explores", wrong={"DI and CE exchanged": {"one": "di", "other": "ce"}})
def still_explores(
    compare: Recorder, one: str = "ce", other: str = "di", table: Runs = None
) -> Status:
    """Under NoExplo CE and MCE still explore at rates at which DI has stopped.

    Live, 52 runs of each at the rate 1, otherwise as in `no_projection`: the probability of walking
    is exactly zero in some state at the end in more than nine runs of DI in ten, and in fewer than
    one in ten of CE. And of the table: at the rate 0.0316 a larger share of the runs of DI is
    censored. That CE also learns and unlearns fast is not asked here.
    """
    parts = []
    for u, needed, above in ((one, 0.1, False), (other, 0.9, True)):
        words = f"{label_of(u)}, η = 1: runs that have stopped exploring"
        parts.append(share_of(words, stopped(u, 1.0, 52), needed, above))
    curves = results_of(table).curves("chain/NoExplo")
    share, runs = curves.estimates("censored"), curves.fewest_runs
    lost = {
        (u, eta): value_at(share, curves, u, eta) for u in (one, other) for eta in (1.0, 0.0316)
    }
    more = lost[other, 0.0316] - lost[one, 0.0316]
    words = f"η = 0.0316: censored share of {label_of(other)} less {label_of(one)}"
    parts.append(Part(words, more, 0.0, ratio=False, runs=runs, least=-1.0))
    told = {
        "walls": percent(parts[1].value),
        "walls of CE": percent(parts[0].value),
        "lost at 1": percent(min(lost[one, 1.0][0], lost[other, 1.0][0])),
        "lost by DI": percent(lost[other, 0.0316][0]),
        "lost by CE": percent(lost[one, 0.0316][0]),
    }
    return judge_parts(compare, parts, **told)
