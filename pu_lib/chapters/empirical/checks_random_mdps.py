"""Checks of what section 4.1 says it saw on Random MDPs, by the rule of `parts`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

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
    SCHEMES_EXCHANGED,
    SIMILAR,
    Part,
    centres,
    ends,
    held,
    judge_parts,
    labels,
    over_runs,
    refuted,
    share_of,
    slower,
)
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.experiments.curves import (
    CENTRES,
    RANGE,
    alike,
    apart_in_range,
    bandwidth,
    best_of,
    bests,
    both_centres,
    curve_of,
    factor_apart,
    greedy_times,
    over,
    value_at,
)
from pu_lib.experiments.interventions import greedy_with_noise, wrong_share
from pu_lib.experiments.policies import bounced_share, greedy_share
from pu_lib.experiments.results import PANELS, Runs, random_tie_runs, results_of, scale_times
from pu_lib.formatting import percent
from pu_lib.updates import PAPER, label_of

Ints = NDArray[np.int64]

BY_SCHEME = tuple((f"{scheme}, ", f"random-mdp/{scheme}") for scheme in SCHEMES)
"""The panels, each with a mark for the words."""


@check("sec:randommdps/exploration", wrong=slower("scheme", "NoExplo", 50))
def exploration(compare: Recorder, table: Runs = None) -> Status:
    """NoExplo and LowOffPol are similar, each update in its range.

    Within a factor 2 in the geometric mean over the rates that are in the update's range under
    either scheme.
    """
    parts = []
    panels = ("random-mdp/NoExplo", "random-mdp/LowOffPol")
    for s, (curves, _), (no, low) in both_centres(table, *panels):
        for u in PAPER:
            apart = apart_in_range(curve_of(no, u), curve_of(low, u), curves.cap)
            words = f"{label_of(u)}, {s}: LowOffPol against NoExplo"
            parts.append(Part(words, apart, SIMILAR, False))
    return judge_parts(compare, parts)


@check("sec:randommdps/pg-unchanged", wrong=slower("scheme", "HiOffPol", 50))
def pg_unchanged(compare: Recorder, table: Runs = None) -> Status:
    """PG-SM and PG-ES are within a factor 2 between NoExplo and HiOffPol.

    At their best rates, and in the geometric mean over the rates that are in the update's range
    under either scheme.
    """
    best, ranges = [], []
    panels = ("random-mdp/NoExplo", "random-mdp/HiOffPol")
    for s, (curves, _), (no, high) in both_centres(table, *panels):
        for u in PG:
            words = f"{label_of(u)}, {s}: HiOffPol against NoExplo"
            change = factor_apart(best_of(no, u), best_of(high, u))
            best.append(Part(f"{words}, best", change, SIMILAR, False))
            apart = apart_in_range(curve_of(no, u), curve_of(high, u), curves.cap)
            ranges.append(Part(f"{words}, in range", apart, SIMILAR, False))
    told = ends(best, ("least at best", "at best")) | ends(ranges, ("least in range", "in range"))
    return judge_parts(compare, best + ranges, **told)


@check(
    "sec:randommdps/es-bandwidth",
    wrong={"or wider than the narrowest by no more than a decade": {"needed": -1.0}},
)
def es_bandwidth(compare: Recorder, table: Runs = None, needed: float = 0.0) -> Status:
    """The range of PG-ES is narrower than that of each other update, in each scheme."""
    parts = []
    for words, curves, values in centres(table, BY_SCHEME):
        wide = np.stack([bandwidth(curves.axis, curve_of(values, u)) for u in PAPER])
        es = PAPER.index("pg-es")
        lead = np.delete(wide, es, axis=0).min(axis=0) - wide[es]
        what = f"{words}: decades more in the next narrowest range"
        parts.append(Part(what, lead, needed, ratio=False))
    told = {f"narrower by the {s}": refuted(_by(s, parts)) for s in CENTRES}
    return judge_parts(compare, parts, **told)


def _by(statistic: str, parts: Sequence[Part]) -> list[Part]:
    """Return those of several parts that speak of the medians, or of the means."""
    return [part for part in parts if f", {statistic}:" in part.what]


@check("sec:randommdps/es-sides", wrong=GRADIENTS_FOR_OTHERS)
def es_sides(compare: Recorder, table: Runs = None) -> Status:
    """PG-ES leaves its range on both sides, and above it parameters jump through zero.

    At the lowest and at the highest rate the time is more than 3 times the best, in each scheme;
    and of the parameters of visited states, all positive at first, more than 1 % are negative after
    2000 steps at the highest rate, fewer than 1 % at the lowest.
    """
    parts = []
    for words, curves, values in centres(table, BY_SCHEME):
        for side, eta in (("lowest", curves.axis[0]), ("highest", curves.axis[-1])):
            far = value_at(values, curves, "pg-es", eta)
            away = over(far, best_of(values, "pg-es"), curves.cap)
            parts.append(Part(f"{words}: time at the {side} rate over the best", away, RANGE))
    for eta, above in ((1e3, True), (1e-3, False)):
        what = f"share of parameters gone through zero at η = {eta:g}"
        parts.append(Part(what, np.array([bounced_share(eta)]), 0.01, above, ratio=False))
    return judge_parts(compare, parts)


@check("sec:randommdps/di-best", wrong=DI_AND_CE_EXCHANGED | slower("update", "di", 20))
def di_best(compare: Recorder, table: Runs = None) -> Status:
    """DI at its best rate is faster than every other update at its own, in each scheme."""
    parts = []
    for words, _, values in centres(table, BY_SCHEME):
        others = bests(values, [u for u in PAPER if u != "di"]).min(axis=0)
        parts.append(Part(f"{words}: best other over DI", others / best_of(values, "di")))
    least = min(parts, key=lambda part: part.value)
    told = {
        **{f"by the {s}": held(_by(s, parts)) for s in CENTRES},
        "where": least.what.partition(":")[0],
        "how": {True: "certain", None: "within the error", False: "none"}[least.decided()],
    }
    return judge_parts(compare, parts, **told)


@check(
    "sec:randommdps/sarsa-limit",
    wrong={
        "MCE becomes greedy, and the curves meet with DI taking 20 times as long": {
            "updates": ("mce",),
            "table": scale_times("update", "di", 20),
        }
    },
)
def sarsa_limit(compare: Recorder, table: Runs = None, updates: Sequence[str] = FAST) -> Status:
    """DI, CE and MCE become greedy SARSA at huge rates, and their curves meet.

    At eta = 10^9 the policy of each is greedy for the critic in every visited state with one best
    action (a live run; share above 0.999); and in each scheme their times there are within a factor
    1.25 of each other. Where all of them are at the cap, nothing is known of this factor.
    """
    greedy, times = {}, []
    for u in updates:
        words = f"{label_of(u)}: share of states with a greedy policy at η = 10⁹"
        greedy[u] = Part(words, np.array([greedy_share(u)]), 0.999, ratio=False)
    for scheme in SCHEMES:
        for s, values, cap in greedy_times(table, scheme):
            spread = over(values.max(axis=1), values.min(axis=1), cap)
            words = f"{scheme}, {s}: slowest over fastest at η = 10⁹"
            times.append(Part(words, spread, 1.25, False))
    told = {
        "greedy": labels(u for u, part in greedy.items() if part.decided()),
        "not greedy": labels(u for u, part in greedy.items() if part.decided() is False),
        "compared": len(times),
        "meet": held(times),
        "apart": refuted(times),
    }
    return judge_parts(compare, [*greedy.values(), *times], **told)


@check("sec:randommdps/beat-sarsa", wrong=SCHEMES_EXCHANGED | slower("update", "mce", 20))
def beat_sarsa(compare: Recorder, table: Runs = None) -> Status:
    """Every update at its best rate is more than a factor 2 faster than greedy SARSA.

    Greedy SARSA is DI at the rate 10^9, under the same scheme; NoExplo and LowOffPol. These runs
    are fewer than those they are compared with, and resampled apart.
    """
    parts = []
    limits = [limit for scheme in SCHEMES[:2] for limit in greedy_times(table, scheme)]
    ours = centres(table, BY_SCHEME[:2])
    for (words, _, values), (_, greedy, cap) in zip(ours, limits, strict=True):
        for u in PAPER:
            gain = over(greedy[:, 0], best_of(values, u), cap)
            parts.append(Part(f"{words}: greedy SARSA over {label_of(u)}", gain, MUCH))
    return judge_parts(compare, parts)


@check("sec:randommdps/ce-equals-mce", wrong=DI_AND_CE_EXCHANGED)
def ce_equals_mce(compare: Recorder, table: Runs = None) -> Status:
    """CE and MCE are equal up to a factor 1.25, in each scheme.

    In the geometric mean of the size of their ratio over the rates in the range of either.
    """
    parts = []
    for words, curves, values in centres(table, BY_SCHEME):
        apart = apart_in_range(curve_of(values, "ce"), curve_of(values, "mce"), curves.cap)
        parts.append(Part(f"{words}: MCE against CE", apart, 1.25, False))
    return judge_parts(compare, parts)


@check("sec:randommdps/ce-worst", wrong=DI_AND_CE_EXCHANGED)
def ce_worst(compare: Recorder, table: Runs = None) -> Status:
    """CE and MCE at their best rates are slower than each other update at its own.

    Under NoExplo and under LowOffPol. The committed runs are asked again with ties drawn at random;
    what holds then is told, and does not count for the status.
    """
    parts = _behind_the_others(table)
    drawn = parts if table is not None else _behind_the_others(random_tie_runs())
    return judge_parts(compare, parts, drawn=held(drawn))


def _behind_the_others(table: Runs) -> list[Part]:
    """Return by what factor the better of CE and MCE is behind the slowest of the others."""
    parts = []
    for words, _, values in centres(table, BY_SCHEME[:2]):
        lead = bests(values, CROSS).min(axis=0) / bests(values, (*PG, "di")).max(axis=0)
        parts.append(Part(f"{words}: better of CE, MCE over the slowest of the others", lead))
    return parts


@check("sec:randommdps/hioffpol-helps", wrong=SCHEMES_EXCHANGED)
def hioffpol_helps(compare: Recorder, table: Runs = None) -> Status:
    """Under HiOffPol CE and MCE are more than a factor 2 faster, over two decades of rate.

    At its best rate each is more than a factor 2 faster than under NoExplo and under LowOffPol, and
    its range is wider than 2 decades.
    """
    gains, ranges = [], []
    for s, curves, (no, low, high) in both_centres(table, *(name for _, name in BY_SCHEME)):
        for u in CROSS:
            for scheme, before in (("NoExplo", no), ("LowOffPol", low)):
                gain = best_of(before, u) / best_of(high, u)
                words = f"{label_of(u)}, {s}: best under {scheme} over HiOffPol"
                gains.append(Part(words, gain, MUCH))
            wide = bandwidth(curves[2].axis, curve_of(high, u))
            ranges.append(Part(f"{label_of(u)}, {s}: decades in its range", wide, 2.0, ratio=False))
    told = ends(gains, ("least gain", "most gain")) | ends(ranges, ("least range", "most range"))
    told |= {"much faster": held(gains), "compared": len(gains)}
    return judge_parts(compare, gains + ranges, **told)


@check(
    "sec:randommdps/connected", wrong={"each state and action has one successor": {"branching": 1}}
)
def connected(compare: Recorder, branching: int = 2, runs: int = 1000) -> Status:
    """More than half of the Random MDPs are strongly connected.

    Of a thousand draws of the transitions, before one state is made the goal.
    """
    whole = np.fromiter(map(_is_whole, _links(branching, runs)), np.float64)
    part = share_of(f"share of {runs} Random MDPs that is strongly connected", whole, 0.5)
    return judge_parts(compare, [part], share=percent(whole.mean()), draws=runs)


def _links(branching: int, runs: int, n_states: int = 100, n_actions: int = 4) -> Iterator[Ints]:
    """Draw the successors of each state in Random MDPs, as `pu_lib.domains.random_mdp` draws them.

    Yields arrays of shape (n_states, n_actions * branching); all runs are drawn together, which is
    much faster than to make each process.
    """
    rng = np.random.default_rng(2022)
    taken = np.empty((runs, n_states, n_actions, 0), dtype=np.int64)
    for k in range(branching):
        # One of those that are left: their numbers go up by one for each lower one that is taken.
        state = rng.integers(n_states - k, size=(*taken.shape[:3], 1))
        for other in range(k):
            state += state >= taken[..., [other]]
        taken = np.sort(np.concatenate([taken, state], axis=-1), axis=-1)
    yield from taken.reshape(runs, n_states, n_actions * branching)


def _is_whole(successors: Ints) -> bool:
    """Return whether every state of a graph leads to every other one."""
    from scipy.sparse.csgraph import connected_components

    # A full matrix: SciPy does not come back from a sparse one that holds an arc twice.
    graph = np.zeros((len(successors), len(successors)), dtype=np.bool_)
    np.put_along_axis(graph, successors, True, axis=1)
    return bool(connected_components(graph, connection="strong")[0] == 1)


@check("sec:randommdps/unstable-critic", wrong=GRADIENTS_EXCHANGED)
def unstable_critic(compare: Recorder, table: Runs = None) -> Status:
    """A steadier critic helps CE and MCE more than PG-SM: noise in q is what holds them back.

    Under NoExplo, the time at the critic's rate 0.1 over that at 0.01, each at the best of three
    actor rates, is larger for CE and for MCE than for PG-SM. A slower critic costs every update
    time, so that only what it does to one beside the other says anything about its noise.
    """
    results = results_of(table)
    base = PANELS["random-mdp/NoExplo"]
    slow = results.of(replace(base, experiment="critic-rate", preset="paper critic_rate=0.01"))
    fast = alike(results.of(base), slow)
    parts = []
    for statistic, s in CENTRES.items():
        times = [curves.estimates(statistic) for curves in (fast, slow)]
        gains = {}
        for u in ("pg-sm", *CROSS):
            before, after = (best_of(values, u) for values in times)
            gains[u] = over(before, after, slow.cap)
        for u in CROSS:
            lead = gains[u] / gains["pg-sm"][::-1]  # the least over the largest
            words = f"{label_of(u)}, {s}: time at critic rate 0.1 over 0.01, over that of PG-SM"
            parts.append(Part(words, lead))
    return judge_parts(compare, parts)


@check(
    "sec:randommdps/accurate-q",
    wrong={"a tenth of the noise is already too much": {"much": 0.1}},
)
def accurate_q(compare: Recorder, little: float = 0.25, much: float = 1.0) -> Status:
    """A policy that is greedy for values with errors as large as their spread misses the goal.

    The optimal values of Random MDPs with noise: of a quarter of the standard deviation over
    actions, the greedy policy still earns more than 0.95 of the gap on average; of all of it, less.
    """
    parts = []
    for noise, above in ((little, True), (much, False)):
        earned = over_runs(greedy_with_noise(noise))
        parts.append(Part(f"noise {noise:g}: performance", earned, 0.95, above, ratio=False))
    return judge_parts(compare, parts)


@check(
    "sec:randommdps/offpolicy-fixes",
    wrong={"or in no more than three tenths of the states more": {"needed": -0.3}},
)
def offpolicy_fixes(compare: Recorder, needed: float = 0.0) -> Status:
    """Off-policy updates correct the critic: it prefers a wrong action in fewer states.

    Live, CE at its best rate under NoExplo, 10 000 steps: the share of states in which the critic's
    best action is not the policy's own best one, under NoExplo less that under HiOffPol, run by run
    with the same process. Whether this is why they help is not asked; where the difference is not
    told from zero, nothing is decided.
    """
    gain = over_runs(wrong_share("NoExplo") - wrong_share("HiOffPol"))
    part = Part("share of wrong best actions, NoExplo less HiOffPol", gain, needed, ratio=False)
    status = judge_parts(compare, [part])
    return Status.OPEN if part.decided() is None else status
