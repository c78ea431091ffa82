# ruff: noqa: D401  # a docstring here states a claim, then what is asked of the table
r"""What the paper's section 4 says it saw, as statements about a table of runs.

Each function takes a table of runs (by default the committed one) and returns a `Verdict`. A
statement is cut into *parts*; a part is one inequality between a number computed from the table and
a number fixed here, in words in the function's docstring. The number comes with a 95 % bootstrap
interval over runs, the same runs for all curves (`pu_lib.empirical.results`). **A part holds if its
whole interval satisfies the inequality, and is refuted if its whole interval violates it**;
otherwise the runs do not decide. A statement is

- *reproduced* if all its parts hold,
- *not reproduced* if none holds and some are refuted,
- *partly reproduced* otherwise.

The paper does not say which statistic its curves show. Every part is therefore asked twice, of the
median and of the restricted mean; and statements about chains of both values of :math:`\beta` that
the paper gives, as far as the table has them. The margin of a verdict is that of its worst part:
the base-10 logarithm of the ratio between what was found and what was needed, for shares and
decades the difference; it is negative where even the point estimate fails.

Words and numbers
-----------------
*Best* is the smallest value of a curve over the learning rates. The *range* of an update is where
its curve is within a factor 3 of its best, measured in decades of the rate by joining the points
straight on logarithmic axes; it ends where the grid ends. *Similar* is within a factor 2, *a bit*
or *slightly* is between 1 and 2, *much* is more than a factor 2, *very* more than a factor 5. A
median beyond the cap counts as the cap, so that a ratio to it is a lower bound.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.empirical.results import PANELS, Curves, results_of
from pu_lib.updates import PAPER
from pu_lib.verdict import Status, Verdict, check

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Part", "bandwidth", "judge_parts"]

Floats = NDArray[np.float64]

SIMILAR, MUCH, VERY, RANGE = 2.0, 2.0, 5.0, 3.0
SCHEMES = ("NoExplo", "LowOffPol", "HiOffPol")
WORDS = {"median": "median", "mean": "mean"}
PG, FAST, CROSS = ("pg-sm", "pg-es"), ("di", "ce", "mce"), ("ce", "mce")


@dataclass(frozen=True)
class Part:
    """One inequality of a statement.

    Attributes
    ----------
    what : str
        The number, in words.
    values : ndarray
        The number, and after it its bootstrap resamples, if any.
    needed : float
        The bound.
    at_least : bool
        Whether the number has to be above the bound, or below.
    ratio : bool
        Whether the margin is a ratio (in base-10 logarithms) or a difference.
    """

    what: str
    values: Floats
    needed: float = 1.0
    at_least: bool = True
    ratio: bool = True

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the 95 % interval; the number itself if nothing was resampled."""
        low, high = np.quantile(self.values[1:] if len(self.values) > 1 else self.values, _TAILS)
        return float(low), float(high)

    @property
    def holds(self) -> bool:
        """Whether the whole interval satisfies the inequality."""
        low, high = self.interval
        return low > self.needed if self.at_least else high < self.needed

    @property
    def refuted(self) -> bool:
        """Whether the whole interval violates the inequality."""
        low, high = self.interval
        return high <= self.needed if self.at_least else low >= self.needed

    @property
    def margin(self) -> float:
        """How far the number is on the right side of the bound."""
        value, needed = float(self.values[0]), self.needed
        gap = np.log10(value / needed) if self.ratio else value - needed
        return float(gap if self.at_least else -gap)

    def row(self) -> dict[str, Any]:
        """Return the part as a row of evidence."""
        low, high = self.interval
        return {
            "part": self.what,
            "value": f"{self.values[0]:.3g}",
            "95 % interval": f"{low:.3g} to {high:.3g}" if len(self.values) > 1 else "exact",
            "needed": f"{'>' if self.at_least else '<'} {self.needed:g}",
            "holds": "yes" if self.holds else "no" if self.refuted else "undecided",
        }


_TAILS = [0.025, 0.975]


def judge_parts(parts: Sequence[Part]) -> Verdict:
    """Return the verdict on a statement from its parts."""
    held, refuted = sum(part.holds for part in parts), sum(part.refuted for part in parts)
    # The worst part is one that is refuted, or else undecided, if there is one.
    worst = min(parts, key=lambda part: (part.holds - part.refuted, part.margin))
    low, high = worst.interval
    interval = f" ({low:.3g} to {high:.3g})" if len(worst.values) > 1 else ""
    status = Status.PARTLY
    if held == len(parts):
        status = Status.REPRODUCED
    elif held == 0 and refuted > 0:
        status = Status.NOT_REPRODUCED
    summary = (
        f"{held} of {len(parts)} parts hold, {refuted} are refuted. The "
        f"{'tightest' if worst.holds else 'worst'} is “{worst.what}”: "
        f"{worst.values[0]:.3g}{interval}, needed "
        f"{'more' if worst.at_least else 'less'} than {worst.needed:g}."
    )
    return Verdict(status, worst.margin, summary, tuple(part.row() for part in parts))


# Reading curves


def _both(
    table: pd.DataFrame | None, *panels: str
) -> Iterator[tuple[str, list[Curves], list[Floats]]]:
    """Yield, for each statistic, its name, the curves of the panels and their estimates."""
    results = results_of(table)
    curves = [results.curves(name) for name in panels]
    for statistic, words in WORDS.items():
        yield words, curves, [c.estimates(statistic) for c in curves]


def _betas(table: pd.DataFrame | None, panel: str) -> list[tuple[str, str]]:
    """Return a panel, and its twin for beta = 0.7 if the table has it, with marks for the words."""
    both = [("β=0.8, ", panel), ("β=0.7, ", f"{panel}/beta=0.7")]
    return both if results_of(table).has(both[1][1]) else both[:1]


def _of(values: Floats, update: str) -> Floats:
    """Return the curves of one update, shape (1 + resamples, positions)."""
    return np.asarray(values[:, PAPER.index(update)])


def _best(values: Floats, update: str) -> Floats:
    return np.asarray(_of(values, update).min(axis=1))


def _bests(values: Floats, updates: Sequence[str]) -> Floats:
    """Return the best of several updates, shape (updates, 1 + resamples)."""
    return np.stack([_best(values, update) for update in updates])


def _at(values: Floats, curves: Curves, update: str, position: float) -> Floats:
    """Return an update's value at one position."""
    x = int(np.argmin(np.abs(np.log(curves.axis / position))))
    return np.asarray(_of(values, update)[:, x])


def _apart(a: Floats, b: Floats) -> Floats:
    """Return by what factor two curves differ, at least 1."""
    return np.asarray(np.maximum(a / b, b / a))


def _name(update: str) -> str:
    return update.upper()


def bandwidth(axis: Floats, curve: Floats, factor: float = RANGE) -> Floats:
    """Return the decades of rate over which curves are within `factor` of their own best.

    Parameters
    ----------
    axis : ndarray, shape (positions,)
        The rates, increasing.
    curve : ndarray, shape (..., positions)
        Values, positive.
    factor : float
        Where the range ends.
    """
    x, y = np.log10(axis), np.log10(curve)
    wall = y.min(axis=-1, keepdims=True) + np.log10(factor)
    low, high = np.minimum(y[..., 1:], y[..., :-1]), np.maximum(y[..., 1:], y[..., :-1])
    rise = np.where(high > low, high - low, 1.0)
    inside = np.where(high <= wall, 1.0, np.clip((wall - low) / rise, 0.0, 1.0))
    return np.asarray((inside * np.diff(x)).sum(axis=-1))


def _in_range(curve: Floats, factor: float = RANGE) -> NDArray[np.bool_]:
    """Return at which positions the point estimate of a curve is within `factor` of its best."""
    return np.asarray(curve[0] <= factor * curve[0].min())


# Section 4.1: Random MDPs


def _apart_in_range(one: Floats, other: Floats) -> Floats:
    """Return the geometric mean of `_apart` over the rates in the range of either curve."""
    near = _in_range(one) | _in_range(other)
    return np.asarray(10 ** np.log10(_apart(one, other)[:, near]).mean(axis=1))


@check("sec:randommdps/exploration")
def exploration(table: pd.DataFrame | None = None) -> Verdict:
    """NoExplo and LowOffPol are similar, each update in its range.

    Within a factor 2 in the geometric mean over the rates that are in the update's range under
    either scheme.
    """
    parts = []
    for s, _, (no, low) in _both(table, "random-mdp/NoExplo", "random-mdp/LowOffPol"):
        for u in PAPER:
            apart = _apart_in_range(_of(no, u), _of(low, u))
            parts.append(Part(f"{_name(u)}, {s}: LowOffPol against NoExplo", apart, SIMILAR, False))
    return judge_parts(parts)


@check("sec:randommdps/pg-unchanged")
def pg_unchanged(table: pd.DataFrame | None = None) -> Verdict:
    """PG-SM and PG-ES at their best rates are within a factor 2 between NoExplo and HiOffPol."""
    parts = []
    for s, _, (no, high) in _both(table, "random-mdp/NoExplo", "random-mdp/HiOffPol"):
        for u in PG:
            change = _apart(_best(no, u), _best(high, u))
            parts.append(
                Part(
                    f"{_name(u)}, {s}: best under HiOffPol against NoExplo", change, SIMILAR, False
                )
            )
    return judge_parts(parts)


@check("sec:randommdps/es-bandwidth")
def es_bandwidth(table: pd.DataFrame | None = None) -> Verdict:
    """The range of PG-ES is narrower than that of each other update, in each scheme."""
    parts = []
    for scheme in SCHEMES:
        for s, (curves,), (values,) in _both(table, f"random-mdp/{scheme}"):
            wide = np.stack([bandwidth(curves.axis, _of(values, u)) for u in PAPER])
            es = PAPER.index("pg-es")
            lead = np.delete(wide, es, axis=0).min(axis=0) - wide[es]
            parts.append(
                Part(
                    f"{scheme}, {s}: decades more in the next narrowest range",
                    lead,
                    0.0,
                    ratio=False,
                )
            )
    return judge_parts(parts)


@check("sec:randommdps/es-sides")
def es_sides(table: pd.DataFrame | None = None) -> Verdict:
    """PG-ES leaves its range on both sides, and above it parameters jump through zero.

    At the lowest and at the highest rate the time is more than 3 times the best, in each scheme;
    and of the parameters of visited states, all positive at first, more than 1 % are negative after
    2000 steps at the highest rate, fewer than 1 % at the lowest.
    """
    parts = []
    for scheme in SCHEMES:
        for s, (curves,), (values,) in _both(table, f"random-mdp/{scheme}"):
            for side, eta in (("lowest", curves.axis[0]), ("highest", curves.axis[-1])):
                away = _at(values, curves, "pg-es", eta) / _best(values, "pg-es")
                parts.append(
                    Part(f"{scheme}, {s}: time at the {side} rate over the best", away, RANGE)
                )
    high, low = (np.array([bounced_share(eta)]) for eta in (1e3, 1e-3))
    parts.append(Part("share of parameters gone through zero at η = 1000", high, 0.01, ratio=False))
    parts.append(
        Part("share of parameters gone through zero at η = 0.001", low, 0.01, False, ratio=False)
    )
    return judge_parts(parts)


def bounced_share(eta: float, runs: int = 4, steps: int = 2000) -> float:
    """Return the share of PG-ES's parameters that are negative after some steps, live.

    Counted over the states of Random MDPs visited under NoExplo; every parameter starts at 1.
    """
    from pu_lib.empirical.live import final_memories

    ends = final_memories("pg-es", eta, "NoExplo", runs, steps)
    return float(np.mean(np.concatenate([memory.theta[moved] for memory, moved in ends]) < 0.0))


@check("sec:randommdps/di-best")
def di_best(table: pd.DataFrame | None = None) -> Verdict:
    """DI at its best rate is faster than every other update at its own, in each scheme."""
    parts = []
    for scheme in SCHEMES:
        for s, _, (values,) in _both(table, f"random-mdp/{scheme}"):
            others = _bests(values, [u for u in PAPER if u != "di"]).min(axis=0)
            parts.append(Part(f"{scheme}, {s}: best other over DI", others / _best(values, "di")))
    return judge_parts(parts)


@check("sec:randommdps/sarsa-limit")
def sarsa_limit(table: pd.DataFrame | None = None, updates: Sequence[str] = FAST) -> Verdict:
    """DI, CE and MCE become greedy SARSA at huge rates, and their curves meet.

    At eta = 10^9 the policy of each is greedy for the critic in every visited state with one best
    action (a live run; share above 0.999); and in each scheme their times there are within a factor
    1.25 of each other.
    """
    parts = [
        Part(
            f"{_name(u)}: share of states with a greedy policy at η = 10⁹",
            np.array([greedy_share(u)]),
            0.999,
            ratio=False,
        )
        for u in updates
    ]
    for scheme in SCHEMES:
        for s, values in _greedy_times(table, scheme):
            spread = values.max(axis=1) / values.min(axis=1)
            parts.append(
                Part(f"{scheme}, {s}: slowest over fastest at η = 10⁹", spread, 1.25, False)
            )
    return judge_parts(parts)


def greedy_share(update: str, eta: float = 1e9, runs: int = 4, steps: int = 20_000) -> float:
    """Return in which share of states the policy is greedy for the critic, live.

    Counted over the states of Random MDPs that were updated under LowOffPol and whose critic has
    one best action.
    """
    from pu_lib.empirical.live import final_memories

    hits = []
    for memory, moved in final_memories(update, eta, "LowOffPol", runs, steps):
        ranked = np.sort(memory.q, axis=1)
        clear = moved & (ranked[:, -1] > ranked[:, -2])
        greedy = memory.pi[np.arange(len(memory.pi)), memory.q.argmax(axis=1)]
        hits.append(greedy[clear] > 0.999)
    return float(np.mean(np.concatenate(hits)))


def _greedy_times(table: pd.DataFrame | None, scheme: str) -> Iterator[tuple[str, Floats]]:
    """Yield the statistics of DI, CE, MCE at the largest rate of the greedy-limit runs."""
    panel = replace(PANELS[f"random-mdp/{scheme}"], experiment="greedy-limit")
    curves = results_of(table).of(panel)
    for statistic, words in WORDS.items():
        yield words, curves.estimates(statistic)[..., -1]


@check("sec:randommdps/beat-sarsa")
def beat_sarsa(table: pd.DataFrame | None = None) -> Verdict:
    """Every update at its best rate is more than a factor 2 faster than greedy SARSA.

    Greedy SARSA is DI at the rate 10^9, under the same scheme; NoExplo and LowOffPol. These runs
    are fewer than those they are compared with, and resampled apart.
    """
    parts = []
    for scheme in ("NoExplo", "LowOffPol"):
        pairs = zip(_both(table, f"random-mdp/{scheme}"), _greedy_times(table, scheme), strict=True)
        for (s, _, (values,)), (_, greedy) in pairs:
            for u in PAPER:
                gain = greedy[:, 0] / _best(values, u)
                parts.append(Part(f"{scheme}, {s}: greedy SARSA over {_name(u)}", gain, MUCH))
    return judge_parts(parts)


@check("sec:randommdps/ce-equals-mce")
def ce_equals_mce(table: pd.DataFrame | None = None) -> Verdict:
    """CE and MCE are equal up to a factor 1.25, in each scheme.

    In the geometric mean of the size of their ratio over the rates in the range of either.
    """
    parts = []
    for scheme in SCHEMES:
        for s, _, (values,) in _both(table, f"random-mdp/{scheme}"):
            apart = _apart_in_range(_of(values, "ce"), _of(values, "mce"))
            parts.append(Part(f"{scheme}, {s}: MCE against CE", apart, 1.25, False))
    return judge_parts(parts)


@check("sec:randommdps/ce-worst")
def ce_worst(table: pd.DataFrame | None = None) -> Verdict:
    """CE and MCE at their best rates are slower than each other update at its own.

    Under NoExplo and under LowOffPol.
    """
    parts = []
    for scheme in ("NoExplo", "LowOffPol"):
        for s, _, (values,) in _both(table, f"random-mdp/{scheme}"):
            lead = _bests(values, CROSS).min(axis=0) / _bests(values, (*PG, "di")).max(axis=0)
            parts.append(
                Part(f"{scheme}, {s}: better of CE, MCE over the slowest of the others", lead)
            )
    return judge_parts(parts)


@check("sec:randommdps/hioffpol-helps")
def hioffpol_helps(table: pd.DataFrame | None = None) -> Verdict:
    """Under HiOffPol CE and MCE are more than a factor 2 faster, over two decades of rate.

    At its best rate each is more than a factor 2 faster than under NoExplo and under LowOffPol, and
    its range is wider than 2 decades.
    """
    parts = []
    panels = [f"random-mdp/{scheme}" for scheme in SCHEMES]
    for s, curves, (no, low, high) in _both(table, *panels):
        for u in CROSS:
            for scheme, before in (("NoExplo", no), ("LowOffPol", low)):
                gain = _best(before, u) / _best(high, u)
                parts.append(
                    Part(f"{_name(u)}, {s}: best under {scheme} over HiOffPol", gain, MUCH)
                )
            wide = bandwidth(curves[2].axis, _of(high, u))
            parts.append(Part(f"{_name(u)}, {s}: decades in its range", wide, 2.0, ratio=False))
    return judge_parts(parts)


@check("sec:randommdps/connected")
def connected(branching: int = 2, runs: int = 12) -> Verdict:
    """More than half of the Random MDPs are strongly connected, the goal leading to the start."""
    from scipy.sparse.csgraph import connected_components

    from pu_lib.domains import random_mdp

    whole = []
    for seed in range(runs):
        mdp = random_mdp(seed, branching=branching)
        links = mdp.transitions.sum(axis=1) > 0.0
        links[mdp.terminal] |= mdp.initial > 0.0
        whole.append(connected_components(links, connection="strong")[0] == 1)
    draws = np.random.default_rng(0).binomial(runs, np.mean(whole), 1000) / runs
    share = np.concatenate([[np.mean(whole)], draws])
    part = Part(f"share of {runs} Random MDPs that is strongly connected", share, 0.5, ratio=False)
    return judge_parts([part])


@check("sec:randommdps/unstable-critic")
def unstable_critic(table: pd.DataFrame | None = None) -> Verdict:
    """A steadier critic helps CE and MCE more than PG-SM: noise in q is what holds them back.

    Under NoExplo, the time at the critic's rate 0.1 over that at 0.01, each at the best of three
    actor rates, is larger for CE and for MCE than for PG-SM, and larger than 1.
    """
    results = results_of(table)
    base = PANELS["random-mdp/NoExplo"]
    slow = results.of(replace(base, experiment="critic-rate", preset="paper critic_rate=0.01"))
    fast = _alike(results.of(base), slow)
    parts = []
    for statistic, s in WORDS.items():
        gains = {
            u: _best(fast.estimates(statistic), u) / _best(slow.estimates(statistic), u)
            for u in PAPER
        }
        for u in CROSS:
            parts.append(Part(f"{_name(u)}, {s}: time at critic rate 0.1 over 0.01", gains[u]))
            parts.append(
                Part(f"{_name(u)}, {s}: this ratio over that of PG-SM", gains[u] / gains["pg-sm"])
            )
    return judge_parts(parts)


def _alike(curves: Curves, other: Curves) -> Curves:
    """Return `curves` at the positions of `other`, and as many runs."""
    n = min(curves.n_runs, other.n_runs)
    at = [int(np.argmin(np.abs(curves.axis - x))) for x in other.axis]
    return Curves(
        curves.axis[at], curves.updates, curves.steps[:n, :, at], curves.censored[:n, :, at]
    )


# Section 4.2: the chain

_CHAINS = tuple(f"chain/{scheme}" for scheme in SCHEMES)


@check("sec:chainexp/expected-order")
def expected_order(updates: Sequence[str] = PAPER, runs: int = 10) -> Verdict:
    """Policies first lead to a_1, then flip from the end of the chain to its start.

    Live, on the chain with 10 states under HiOffPol at the paper's fixed rates. In more than nine
    runs in ten there is a time when more than half of the states prefer a_1; and of the pairs of
    states more than three in four come to prefer a_2 for good in the order that the paper expects,
    the one nearer to the end no later than the other.
    """
    from pu_lib.empirical.live import flip_times

    parts = []
    for u in updates:
        flips = [flip_times(u, run) for run in range(runs)]
        jumped = np.array([[f.jumping > len(f.times) / 2 for f in flips]])
        ordered = np.array([[f.ordered_share for f in flips]])
        draws = np.random.default_rng(0).integers(runs, size=(1000, runs))
        for words, share, needed in (
            ("share of runs in which most states first jump", jumped, 0.9),
            ("share of pairs flipped end first", ordered, 0.75),
        ):
            values = np.concatenate([share.mean(axis=1), share[0][draws].mean(axis=1)])
            parts.append(Part(f"{_name(u)}: {words}", values, needed, ratio=False))
    return judge_parts(parts)


@check("sec:chainexp/noexplo-stuck")
def noexplo_stuck(table: pd.DataFrame | None = None) -> Verdict:
    """Without exploration most runs on 10 states never pass, whatever the update and the rate.

    At the rate where it is smallest, the share of runs censored at a million steps is above one
    half with 10 states and below it with 5.
    """
    results = results_of(table)
    parts = []
    for words, name, above in (("10", "chain/NoExplo/10", True), ("5", "chain/NoExplo", False)):
        share = results.curves(name).estimates("censored")
        parts += [
            Part(
                f"{_name(u)}: smallest censored share, {words} states",
                _best(share, u),
                0.5,
                above,
                ratio=False,
            )
            for u in PAPER
        ]
    return judge_parts(parts)


@check("sec:chainexp/ce-best")
def ce_best(table: pd.DataFrame | None = None) -> Verdict:
    """CE and MCE at their best rates are both faster than PG-SM, PG-ES and DI at theirs."""
    parts = []
    for panel in _CHAINS:
        for mark, name in _betas(table, panel):
            for s, _, (values,) in _both(table, name):
                lead = _bests(values, (*PG, "di")).min(axis=0) / _bests(values, CROSS).max(axis=0)
                words = PANELS[panel].scheme
                parts.append(
                    Part(f"{words}, {mark}{s}: best of the others over the slower of CE, MCE", lead)
                )
    return judge_parts(parts)


@check("sec:chainexp/shift")
def shift(table: pd.DataFrame | None = None) -> Verdict:
    """Under LowOffPol and HiOffPol the curves of CE and DI differ by a shift of the rate.

    Moving DI's curve by some number of grid steps brings it within a factor 1.5 of CE's at every
    rate in CE's range that both then cover.
    """
    parts = []
    for panel in _CHAINS[1:]:
        for mark, name in _betas(table, panel):
            for s, _, (values,) in _both(table, name):
                words = PANELS[panel].scheme
                after = _shifted(_of(values, "ce"), _of(values, "di"))
                parts.append(
                    Part(
                        f"{words}, {mark}{s}: CE against DI after the best shift", after, 1.5, False
                    )
                )
    return judge_parts(parts)


def _shifted(ce: Floats, di: Floats) -> Floats:
    """Return the worst factor between CE's range and DI's curve after the best shift."""
    near, n = _in_range(ce), ce.shape[1]
    found = []
    for k in range(n // 2):  # DI needs larger rates: at k steps higher it does what CE does
        both = near[: n - k]
        if both.sum() >= 3:
            found.append(_apart(ce[:, : n - k], di[:, k:])[:, both].max(axis=1))
    return np.asarray(np.min(found, axis=0))


@check("sec:chainexp/noexplo-advantage")
def noexplo_advantage(table: pd.DataFrame | None = None) -> Verdict:
    """Under NoExplo CE and MCE at their best rates are faster than DI at its own."""
    parts = []
    for mark, name in _betas(table, "chain/NoExplo"):
        for s, _, (values,) in _both(table, name):
            for u in CROSS:
                lead = _best(values, "di") / _best(values, u)
                parts.append(Part(f"{mark}{s}: best of DI over {_name(u)}", lead))
    return judge_parts(parts)


@check("sec:chainexp/di-like-pg")
def di_like_pg(table: pd.DataFrame | None = None) -> Verdict:
    """Under NoExplo DI at its best rate is within a factor 2 of PG-SM and PG-ES at theirs."""
    parts = []
    for mark, name in _betas(table, "chain/NoExplo"):
        for s, _, (values,) in _both(table, name):
            for u in PG:
                far = _apart(_best(values, "di"), _best(values, u))
                parts.append(Part(f"{mark}{s}: DI against {_name(u)}", far, SIMILAR, False))
    return judge_parts(parts)


@check("sec:chainexp/di-dilemma")
def di_dilemma(table: pd.DataFrame | None = None) -> Verdict:
    """Under NoExplo DI is slow at small rates, and at large rates stops exploring for good.

    At the lowest rate its time is more than 3 times its best; at the highest its censored share is
    above one half, and larger than the smallest censored share of CE.
    """
    parts = []
    for mark, name in _betas(table, "chain/NoExplo"):
        for s, (curves,), (values,) in _both(table, name):
            slow = _at(values, curves, "di", curves.axis[0]) / _best(values, "di")
            parts.append(Part(f"{mark}{s}: DI at the lowest rate over its best", slow, RANGE))
        share = curves.estimates("censored")
        stuck = _at(share, curves, "di", curves.axis[-1])
        parts.append(
            Part(f"{mark}DI's censored share at the highest rate", stuck, 0.5, ratio=False)
        )
        gap = stuck - _best(share, "ce")
        parts.append(Part(f"{mark}this share less CE's smallest", gap, 0.0, ratio=False))
    return judge_parts(parts)


@check("sec:chainexp/best-rates")
def best_rates(table: pd.DataFrame | None = None) -> Verdict:
    """The paper's fixed rates are best: times there are within a factor 1.5 of the update's best.

    LowOffPol with 7 states and HiOffPol with 10.
    """
    from pu_lib.empirical.results import FIXED_RATES

    parts = []
    for panel in _CHAINS[1:]:
        for s, (curves,), (values,) in _both(table, panel):
            for u, eta in FIXED_RATES.items():
                loss = _at(values, curves, u, eta) / _best(values, u)
                words = PANELS[panel].scheme
                parts.append(
                    Part(f"{words}, {s}: {_name(u)} at η = {eta:g} over its best", loss, 1.5, False)
                )
    return judge_parts(parts)


_LENGTHS = ("length/LowOffPol", "length/HiOffPol")
LONG = 10
"""From this number of states a chain counts as long."""


def _long(curves: Curves, values: Floats, updates: Sequence[str]) -> Floats:
    """Return the values on long chains, shape (updates, 1 + resamples, lengths)."""
    return np.stack([_of(values, u)[:, curves.axis >= LONG] for u in updates])


@check("sec:chainexp/length-pg")
def length_pg(table: pd.DataFrame | None = None) -> Verdict:
    """On long chains PG-SM and PG-ES are alike, and slower than DI, CE, MCE by more than 2.

    Alike: within a factor 2 in the geometric mean over 10 to 25 states. Slower: the faster of both
    over the slowest of DI, CE, MCE, in the same mean.
    """
    parts = []
    for panel in _LENGTHS:
        for s, (curves,), (values,) in _both(table, panel):
            slow, fast = (np.log10(_long(curves, values, group)) for group in (PG, FAST))
            alike = 10 ** np.abs((slow[0] - slow[1]).mean(axis=-1))
            behind = 10 ** (slow.min(axis=0) - fast.max(axis=0)).mean(axis=-1)
            words = PANELS[panel].scheme
            parts.append(Part(f"{words}, {s}: PG-ES against PG-SM", alike, SIMILAR, False))
            parts.append(Part(f"{words}, {s}: faster of both over the slowest other", behind, MUCH))
    return judge_parts(parts)


@check("sec:chainexp/length-es-variance")
def length_es_variance(table: pd.DataFrame | None = None) -> Verdict:
    """PG-ES varies more between runs than PG-SM, because it sometimes does not get there.

    The standard deviation of log10 of the time, averaged over the lengths at which fewer than half
    of the runs of either are censored, is larger for PG-ES; and so is the censored share there.
    """
    parts = []
    results = results_of(table)
    for panel in _LENGTHS:
        curves = results.curves(panel)
        share = curves.point("censored")[:2]
        reached = (share < 0.5).all(axis=0)
        times = np.log10(curves.steps[:, :2][:, :, reached])
        lost = curves.censored[:, :2][:, :, reached]
        draws = [slice(None), *curves.draws]
        spread = np.stack([times[d].std(axis=0).mean(axis=-1) for d in draws])
        gone = np.stack([lost[d].mean(axis=(0, 2)) for d in draws])
        words = PANELS[panel].scheme
        parts.append(
            Part(
                f"{words}: spread of PG-ES less PG-SM, decades",
                spread @ [-1.0, 1.0],
                0.0,
                ratio=False,
            )
        )
        parts.append(
            Part(
                f"{words}: censored share of PG-ES less PG-SM", gone @ [-1.0, 1.0], 0.0, ratio=False
            )
        )
    return judge_parts(parts)


@check("sec:chainexp/length-fast")
def length_fast(table: pd.DataFrame | None = None) -> Verdict:
    """Under HiOffPol DI, CE and MCE are within a factor 2 of each other at every length."""
    parts = []
    for mark, name in _betas(table, "length/HiOffPol"):
        for s, _, (values,) in _both(table, name):
            fast = np.stack([_of(values, u) for u in FAST])
            worst = (fast.max(axis=0) / fast.min(axis=0)).max(axis=-1)
            parts.append(
                Part(f"{mark}{s}: slowest over fastest, worst length", worst, SIMILAR, False)
            )
    return judge_parts(parts)


@check("sec:chainexp/length-di-slower")
def length_di_slower(table: pd.DataFrame | None = None) -> Verdict:
    """On long chains DI at rate 1 is a bit slower than CE and MCE, because its rate is too low.

    Over the faster of CE and MCE, in the geometric mean over 10 to 25 states, by a factor between 1
    and 2; and on 10 states DI is faster at some higher rate than at 1.
    """
    parts = []
    for panel in _LENGTHS:
        for s, (curves,), (values,) in _both(table, panel):
            di, ce, mce = np.log10(_long(curves, values, FAST))
            behind = 10 ** (di - np.minimum(ce, mce)).mean(axis=-1)
            words = PANELS[panel].scheme
            parts.append(Part(f"{words}, {s}: DI over the faster of CE, MCE", behind))
            parts.append(Part(f"{words}, {s}: the same ratio", behind, SIMILAR, False))
    for s, (curves,), (values,) in _both(table, "chain/HiOffPol"):
        higher = _of(values, "di")[:, curves.axis > 1.0].min(axis=1)
        gain = _at(values, curves, "di", 1.0) / higher
        parts.append(Part(f"10 states, {s}: DI at rate 1 over its best higher rate", gain))
    return judge_parts(parts)


def _duplicates(table: pd.DataFrame | None, update: str) -> Iterator[tuple[str, float, Floats]]:
    """Yield statistic, number of optimal actions and the update's time over DI's."""
    for s, (curves,), (values,) in _both(table, "duplicates"):
        for x, n_actions in enumerate(curves.axis):
            if n_actions > 2:
                ratio = _of(values, update)[:, x] / _of(values, "di")[:, x]
                yield s, n_actions - 1, ratio


@check("sec:chainexp/duplicates-ce")
def duplicates_ce(table: pd.DataFrame | None = None) -> Verdict:
    """With duplicates CE is not delayed: at most a factor 1.1 slower than DI."""
    parts = [
        Part(f"{copies:g} optimal actions, {s}: CE over DI", ratio, 1.1, False)
        for s, copies, ratio in _duplicates(table, "ce")
    ]
    return judge_parts(parts)


@check("sec:chainexp/duplicates-mce")
def duplicates_mce(table: pd.DataFrame | None = None) -> Verdict:
    """With duplicates MCE is slightly delayed: slower than CE by a factor between 1 and 2."""
    parts = []
    ratios = zip(_duplicates(table, "mce"), _duplicates(table, "ce"), strict=True)
    for (s, copies, mce), (_, _, ce) in ratios:
        parts.append(Part(f"{copies:g} optimal actions, {s}: MCE over CE", mce / ce))
        parts.append(Part(f"{copies:g} optimal actions, {s}: the same ratio", mce / ce, 2.0, False))
    return judge_parts(parts)


@check("sec:chainexp/duplicates-conjecture")
def duplicates_converge(table: pd.DataFrame | None = None) -> Verdict:
    """With several optimal actions every run of CE and MCE at the paper's rates passes."""
    curves = results_of(table).curves("duplicates")
    share = curves.point("censored")
    several = curves.axis > 2
    parts = [
        Part(
            f"{_name(u)}: largest censored share",
            np.array([share[PAPER.index(u), several].max()]),
            0.5 / curves.n_runs,
            False,
            ratio=False,
        )
        for u in CROSS
    ]
    return judge_parts(parts)


# Section 4.3: the cliff


@check("sec:cliff/pg-sm-slow")
def pg_sm_slow(table: pd.DataFrame | None = None) -> Verdict:
    """On the cliff PG-SM at its best rate is more than 5 times slower than the best update."""
    parts = []
    for mark, name in _betas(table, "cliff"):
        for s, _, (values,) in _both(table, name):
            behind = _best(values, "pg-sm") / _bests(values, PAPER).min(axis=0)
            parts.append(Part(f"{mark}{s}: PG-SM over the best", behind, VERY))
    return judge_parts(parts)


@check("sec:cliff/gravity")
def cliff_gravity(table: pd.DataFrame | None = None) -> Verdict:
    """The third action slows PG-SM down more than it does every other update.

    The slowdown is the best time on the cliff with 7 states over the best time on the chain with 7
    states, both under HiOffPol with beta = 0.8.
    """
    parts = []
    for s, _, (on_cliff, on_chain) in _both(table, "cliff", "chain/HiOffPol/7"):
        slowdown = _bests(on_cliff, PAPER) / _bests(on_chain, PAPER)
        parts += [
            Part(f"{s}: slowdown of PG-SM over that of {_name(u)}", slowdown[0] / slowdown[i])
            for i, u in enumerate(PAPER)
            if i
        ]
    return judge_parts(parts)


@check("app:Domains/cliff-slowdown")
def cliff_marginal(table: pd.DataFrame | None = None) -> Verdict:
    """Some algorithms are slowed down by the third action by more than a factor 2, others by less.

    The slowdown as in `cliff_gravity`: the largest over updates is above 2, the smallest below.
    """
    parts = []
    for s, _, (on_cliff, on_chain) in _both(table, "cliff", "chain/HiOffPol/7"):
        slowdown = _bests(on_cliff, PAPER) / _bests(on_chain, PAPER)
        parts.append(Part(f"{s}: largest slowdown", slowdown.max(axis=0), MUCH))
        parts.append(Part(f"{s}: smallest slowdown", slowdown.min(axis=0), MUCH, False))
    return judge_parts(parts)


@check("sec:cliff/pg-es-better")
def pg_es_better(table: pd.DataFrame | None = None) -> Verdict:
    """On the cliff PG-ES at its best rate is faster than PG-SM at its own."""
    parts = []
    for mark, name in _betas(table, "cliff"):
        for s, _, (values,) in _both(table, name):
            lead = _best(values, "pg-sm") / _best(values, "pg-es")
            parts.append(Part(f"{mark}{s}: best of PG-SM over PG-ES", lead))
    return judge_parts(parts)


@check("sec:cliff/pg-es-wall")
def pg_es_wall(table: pd.DataFrame | None = None) -> Verdict:
    """On the cliff PG-ES at the highest rate is more than 5 times slower than at its best."""
    parts = []
    for mark, name in _betas(table, "cliff"):
        for s, (curves,), (values,) in _both(table, name):
            wall = _at(values, curves, "pg-es", curves.axis[-1]) / _best(values, "pg-es")
            parts.append(Part(f"{mark}{s}: time at the highest rate over the best", wall, VERY))
    return judge_parts(parts)


@check("sec:cliff/pg-es-gap")
def pg_es_gap(table: pd.DataFrame | None = None) -> Verdict:
    """PG-ES is behind the best update by the same factor on the cliff as on the chain.

    Best times over the best of DI, CE, MCE; the two factors are within a factor 1.5, with the chain
    of 10 states (the paper's panel) and of 7 (the cliff's length).
    """
    parts = []
    for words, name in (("10", "chain/HiOffPol"), ("7", "chain/HiOffPol/7")):
        for s, _, (on_cliff, on_chain) in _both(table, "cliff", name):
            gaps = [_best(v, "pg-es") / _bests(v, FAST).min(axis=0) for v in (on_cliff, on_chain)]
            parts.append(
                Part(
                    f"{s}: factor on the cliff against chain of {words}", _apart(*gaps), 1.5, False
                )
            )
    return judge_parts(parts)


@check("sec:cliff/best")
def cliff_best(table: pd.DataFrame | None = None) -> Verdict:
    """On the cliff DI, CE and MCE at their best rates are each faster than PG-SM and PG-ES."""
    parts = []
    for mark, name in _betas(table, "cliff"):
        for s, _, (values,) in _both(table, name):
            lead = _bests(values, PG).min(axis=0) / _bests(values, FAST).max(axis=0)
            parts.append(Part(f"{mark}{s}: faster PG over the slowest of DI, CE, MCE", lead))
    return judge_parts(parts)


@check("sec:cliff/mce-small-rates")
def mce_small_rates(table: pd.DataFrame | None = None) -> Verdict:
    """On the cliff MCE is a bit faster than CE at small rates, and similar elsewhere.

    Small rates are those up to 0.1; of them, at those where fewer than half of the runs of either
    are censored, CE over MCE is above 1 in the geometric mean. At all other rates they are within a
    factor 2.
    """
    parts = []
    for mark, name in _betas(table, "cliff"):
        for s, (curves,), (values,) in _both(table, name):
            share = curves.point("censored")[-2:].max(axis=0)
            small, seen = curves.axis <= 0.1 * (1 + 1e-9), share < 0.5
            ratio = _of(values, "ce") / _of(values, "mce")
            if (small & seen).any():
                lead = 10 ** np.log10(ratio[:, small & seen]).mean(axis=1)
                parts.append(Part(f"{mark}{s}: CE over MCE up to η = 0.1", lead))
            apart = np.maximum(ratio, 1.0 / ratio)[:, ~small].max(axis=1)
            parts.append(Part(f"{mark}{s}: CE against MCE at higher rates", apart, SIMILAR, False))
    return judge_parts(parts)


# The predecessor's curve and the introduction


@check("predecessor/fig11a")
def published_curve(table: pd.DataFrame | None = None) -> Verdict:
    """Ours is the predecessor's published curve within sampling error, for all four schedules.

    For each schedule the root mean square of the z of its points, see `published`, is below 1.5.
    """
    from pu_lib.empirical.published import comparison

    found = comparison(table)
    parts = [
        Part(
            f"{schedule}: root mean square of z, {len(part)} points",
            np.array([np.sqrt(np.mean(part["z"] ** 2))]),
            1.5,
            False,
            ratio=False,
        )
        for schedule, part in found.groupby("schedule")
    ]
    return judge_parts(parts)


@check("sec:intro/empirical")
def as_efficient_as_di(table: pd.DataFrame | None = None) -> Verdict:
    """On hard planning tasks CE and MCE are as efficient as DI, and policy gradients fail.

    Hard: the chain of 10 states and the cliff, HiOffPol. At their best rates CE and MCE are at most
    a factor 1.25 slower than DI, and PG-SM and PG-ES more than a factor 5 slower than DI.
    """
    parts = []
    for name in ("chain/HiOffPol", "cliff"):
        for s, _, (values,) in _both(table, name):
            di, words = _best(values, "di"), PANELS[name].experiment
            for u in CROSS:
                ratio = _best(values, u) / di
                parts.append(Part(f"{words}, {s}: {_name(u)} over DI", ratio, 1.25, False))
            for u in PG:
                parts.append(Part(f"{words}, {s}: {_name(u)} over DI", _best(values, u) / di, VERY))
    return judge_parts(parts)


@check("sec:intro/ce-converges")
def ce_converges(table: pd.DataFrame | None = None) -> Verdict:
    """CE passes the threshold in every run, at its best rate in each rate panel of the paper."""
    results = results_of(table)
    parts = []
    for name in (*(f"random-mdp/{scheme}" for scheme in SCHEMES), *_CHAINS, "cliff"):
        curves = results.curves(name)
        share = _best(curves.point("censored")[None], "ce")
        parts.append(
            Part(
                f"{PANELS[name].words}: CE's smallest censored share",
                share,
                0.5 / curves.n_runs,
                False,
                ratio=False,
            )
        )
    return judge_parts(parts)
