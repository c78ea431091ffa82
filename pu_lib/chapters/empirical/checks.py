"""Checks of sentences on the experiments, as inequalities between times to threshold.

A check lists the inequalities that make up a sentence of the paper; the module `inequalities`
explains how they determine the status of the sentence. A check takes a table of runs, by default
the table of the committed runs. Checks of sentences about live runs and about the setting are in
`checks_live`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.chapters.empirical import checks_live
from pu_lib.chapters.empirical.inequalities import (
    CROSS_ENTROPY,
    DI_AND_CE_SWAPPED,
    DI_CE_MCE,
    MUCH_FACTOR,
    POLICY_GRADIENTS,
    POLICY_GRADIENTS_FOR_DI_AND_CE,
    POLICY_GRADIENTS_SWAPPED,
    SCHEMES,
    SCHEMES_SWAPPED,
    SIMILAR_FACTOR,
    VERY_FACTOR,
    Inequality,
    count,
    decide,
    estimates,
    estimates_together,
    join_labels,
    least,
    most,
    scaled_times,
    sentence,
    status_of,
    three_digits,
    with_both_betas,
)
from pu_lib.claims.recorder import Check, Finding, Recorder, Status, check
from pu_lib.experiments.curves import (
    CENTRES,
    LONG,
    RANGE,
    bandwidth,
    best_of,
    critic_gains,
    curve_of,
    factor_after_shift,
    factor_apart,
    gains_of_drawing,
    greedy_times,
    long_chains,
    mean_factor_in_range,
    ratio_bounds,
    ratios_to_di,
    value_at,
)
from pu_lib.experiments.policies import bounced_share, greedy_share
from pu_lib.experiments.results import (
    FIXED_STEP_SIZES,
    PANELS,
    TIED,
    Curves,
    Results,
    Runs,
    random_tie_runs,
    results_of,
    scale_times,
    swap_labels,
)
from pu_lib.formatting import percent
from pu_lib.updates import PAPER, label_of

LIVE = tuple(one for one in vars(checks_live).values() if isinstance(one, Check))
"""The checks of `checks_live`."""

NO_EXPLO, LOW_OFF_POL, HIGH_OFF_POL = RANDOM_MDPS = (
    "random-mdp/NoExplo",
    "random-mdp/LowOffPol",
    "random-mdp/HiOffPol",
)
CHAINS = ("chain/NoExplo", "chain/LowOffPol", "chain/HiOffPol")
LENGTHS = ("length/LowOffPol", "length/HiOffPol")

SCHEME_AND_BETA = "{scheme}, β={beta}"
"""The label of panels of chains with different schemes."""

HIGH_RATE = 3.0
"""Rates above this are high, as in `pu_lib.experiments.rounding`."""

RATE_PANELS = (*RANDOM_MDPS, *CHAINS, "cliff")
"""The panels of the paper with the step size on the horizontal axis."""


# The introduction


@check(
    "sec:intro/empirical",
    wrong={
        "policy gradients under the names of CE and MCE": {
            "table": swap_labels(
                "update", {"pg-sm": "ce", "ce": "pg-sm", "pg-es": "mce", "mce": "pg-es"}
            )
        }
    },
)
def as_efficient_as_di(compare: Recorder, table: Runs = None) -> Status:
    """On hard planning tasks CE and MCE are as efficient as DI, and policy gradients fail.

    The hard tasks are the chain of 10 states and the cliff under HiOffPol, with both values of
    beta. At their best rates CE and MCE are less than a factor 1.25 slower than DI, and PG-SM and
    PG-ES are more than a factor 5 slower than DI.
    """
    near, far = [], []
    for t in estimates(table, "chain/HiOffPol", "cliff", label="β={beta}, {experiment}"):
        for u in CROSS_ENTROPY:
            near.append(t.below(f"{label_of(u)} over DI", t.best(u) / t.best("di"), 1.25))
        for u in POLICY_GRADIENTS:
            far.append(t.above(f"{label_of(u)} over DI", t.best(u) / t.best("di"), VERY_FACTOR))
    figures = {"very slow": count(far), "apart": _largest_deviation(near)}
    return decide(
        compare, near + far, least=least(far), most=most(far), compared=len(far), **figures
    )


@sentence(
    "sec:intro/ce-converges",
    wrong={"in 99 % of the runs": {"most": 0.01}} | scaled_times("update", "ce", 1e4),
)
def ce_converges(table: Runs = None, most: float = 0.05) -> Iterator[Inequality]:
    """CE loses fewer than one run in twenty at its best rate, in each rate panel of the paper.

    The chains and the cliff are evaluated with both values of beta.
    """
    for panel in RATE_PANELS:
        for (name,) in with_both_betas(table, panel):
            curves = results_of(table).curves(name)
            lost = best_of(curves.estimates("censored"), "ce")
            words = f"{PANELS[name].words}: CE's smallest censored share"
            # an adaptive sweep makes fewer runs at rates that are not the best
            runs = curves.made[:, PAPER.index("ce")].sum(axis=0)
            at_best = curves.point("censored")[PAPER.index("ce")] == lost[0]
            yield Inequality(words, lost, "<", most, n_runs=int(runs[at_best].max()))


def _largest_deviation(factors: Sequence[Inequality]) -> str:
    """Return the largest deviation of factors from 1, in percent."""
    return percent(max(abs(row.value - 1.0) for row in factors), 1)


# Section 4.1: Random MDPs


@check("sec:randommdps/exploration", wrong=scaled_times("scheme", "NoExplo", 3))
def exploration(compare: Recorder, table: Runs = None) -> Status:
    """Each update takes similar times under NoExplo and LowOffPol at the rates in its range.

    The times are within a factor 2 of each other, in the geometric mean over the rates that are in
    the range of the update under at least one of the two schemes.
    """
    rows, exponents = (list(_low_off_pol_against_no_explo(runs)) for runs in _by_precision(table))
    return decide(compare, rows, **_with_exponents(exponents))


def _by_precision(table: Runs) -> tuple[Results, Results]:
    """Return the results with PG-ES in plain floats, and with parameters that have exponents."""
    results = results_of(table)
    return results.in_floats, results.with_exponents


def _with_exponents(rows: Sequence[Inequality]) -> dict[str, Any]:
    """Return the status and the largest number if parameters of PG-ES cannot be rounded to zero.

    They are reported, but do not count for the status.
    """
    return {"with exponents": str(status_of(rows)), "most with exponents": most(rows)}


def _low_off_pol_against_no_explo(table: Runs) -> Iterator[Inequality]:
    """Yield the inequalities on the mean factor between the two schemes."""
    for no, low in estimates_together(table, NO_EXPLO, LOW_OFF_POL):
        for u in PAPER:
            factor = mean_factor_in_range(no.curve(u), low.curve(u), no.curves.cap)
            name = f"{label_of(u)}, {no.statistic}: LowOffPol against NoExplo"
            yield Inequality(name, factor, "<", SIMILAR_FACTOR)


@check("sec:randommdps/pg-unchanged", wrong=scaled_times("scheme", "HiOffPol", 3))
def pg_unchanged(compare: Recorder, table: Runs = None) -> Status:
    """The times of PG-SM and PG-ES differ by less than a factor 2 between NoExplo and HiOffPol.

    This is true at the best rates, and in the geometric mean over the rates that are in the range
    of the update under at least one of the two schemes.
    """
    at_best, in_range = [], []
    for no, high in estimates_together(table, NO_EXPLO, HIGH_OFF_POL):
        for u in POLICY_GRADIENTS:
            name = f"{label_of(u)}, {no.statistic}: HiOffPol against NoExplo"
            factor = factor_apart(no.best(u), high.best(u))
            at_best.append(Inequality(f"{name}, best", factor, "<", SIMILAR_FACTOR))
            factor = mean_factor_in_range(no.curve(u), high.curve(u), no.curves.cap)
            in_range.append(Inequality(f"{name}, in range", factor, "<", SIMILAR_FACTOR))
    figures = {"at best": most(at_best), "in range": most(in_range)}
    return decide(compare, at_best + in_range, **figures)


@check(
    "sec:randommdps/es-bandwidth",
    wrong={"or wider than the narrowest by no more than a decade": {"limit": -1.0}},
)
def es_bandwidth(compare: Recorder, table: Runs = None, limit: float = 0.0) -> Status:
    """PG-ES has a narrower range of step sizes than any other update, in every scheme.

    Three other statuses are reported, but do not count: if a range ends at a factor 2 or 5 of the
    best time, and not at 3; and if parameters of PG-ES cannot be rounded to zero. The number of
    inequalities that hold if a range ends at 3 times the best time of all updates is reported, too.
    """
    floats, exponents = _by_precision(table)
    rows = _wider_than_pg_es(floats, limit)
    figures: dict[str, Any] = {f"narrower by the {s}": count(_by(s, rows), False) for s in CENTRES}
    for factor in (2.0, 5.0):
        other = status_of(_wider_than_pg_es(floats, limit, factor))
        figures[f"with factor {factor:g}"] = str(other)
    figures |= _with_exponents(_wider_than_pg_es(exponents, limit))
    figures["of the best of all"] = count(_wider_than_pg_es(floats, limit, of_all=True))
    return decide(compare, rows, **figures)


def _wider_than_pg_es(
    table: Runs, limit: float, factor: float = RANGE, of_all: bool = False
) -> list[Inequality]:
    """Return inequalities on the decades by which the next narrowest range is wider.

    A range ends at a factor of the best time of the update itself, or `of_all` updates.
    """
    rows = []
    for t in estimates(table, *RANDOM_MDPS):
        best = t.fastest(PAPER) if of_all else None
        decades = {u: bandwidth(t.curves.axis, t.curve(u), factor, best) for u in PAPER}
        more = np.min([decades[u] for u in PAPER if u != "pg-es"], axis=0) - decades["pg-es"]
        name = "decades more in the next narrowest range"
        rows.append(t.above(name, more, limit, ratio=False))
    return rows


def _by(statistic: str, rows: Sequence[Inequality]) -> list[Inequality]:
    """Return the inequalities between medians or between means."""
    return [row for row in rows if f", {statistic}:" in row.name]


@check("sec:randommdps/es-sides", wrong=POLICY_GRADIENTS_FOR_DI_AND_CE)
def es_sides(compare: Recorder, table: Runs = None) -> Status:
    """PG-ES is slow at both ends of the rate grid, and its parameters change sign at large rates.

    At the lowest and at the highest rate the time is more than 3 times the best time, in each
    scheme. The parameters of visited states are all positive at first; after 2000 steps more than
    1 % of them are negative at the rates 31.6 and 1000, and fewer than 1 % at the lowest rate and
    at 3.16, the best rate by the median under NoExplo. The share of runs lost at 3.16 is reported:
    parameters that change sign do not explain it. It does not count for the status.
    """
    rows = []
    for t in estimates(table, *RANDOM_MDPS):
        for side, rate in (("lowest", t.curves.axis[0]), ("highest", t.curves.axis[-1])):
            factor = t.over_best("pg-es", rate)
            rows.append(t.above(f"time at the {side} rate over the best", factor, RANGE))
    for rate, relation in ((1e3, ">"), (31.6, ">"), (3.16, "<"), (1e-3, "<")):
        name = f"share of parameters gone through zero at η = {rate:g}"
        bounced = np.array([bounced_share(rate)])
        rows.append(Inequality(name, bounced, relation, 0.01, ratio=False))
    curves = results_of(table).in_floats.curves(NO_EXPLO)
    lost = value_at(curves.estimates("censored"), curves, "pg-es", 3.16)[0]
    figures = {"bounced": percent(rows[-2].value), "lost": percent(lost)}
    return decide(compare, rows, **figures)


@check("sec:randommdps/di-best", wrong=DI_AND_CE_SWAPPED | scaled_times("update", "di", 1.5))
def di_best(compare: Recorder, table: Runs = None) -> Status:
    """DI at its best rate is faster than any other update at its best rate, in each scheme."""
    others = [u for u in PAPER if u != "di"]
    leads = [
        t.above("best other over DI", t.fastest(others) / t.best("di"))
        for t in estimates(table, *RANDOM_MDPS)
    ]
    smallest = min(leads, key=lambda row: row.value)
    figures = {
        **{f"by the {s}": count(_by(s, leads)) for s in CENTRES},
        "where": smallest.name.partition(":")[0],
        "how": {True: "certain", None: "within the error", False: "none"}[smallest.holds()],
    }
    return decide(compare, leads, **figures)


@check(
    "sec:randommdps/sarsa-limit",
    wrong={
        "MCE becomes greedy, and the curves meet with DI taking twice as long": {
            "updates": ("mce",),
            "table": scale_times("update", "di", 2),
        }
    },
)
def sarsa_limit(
    compare: Recorder, table: Runs = None, updates: Sequence[str] = DI_CE_MCE
) -> Status:
    """DI, CE and MCE become greedy SARSA at huge rates, and their curves meet.

    At eta = 10^9 the policy of each update is greedy for the critic in every visited state with one
    best action (in a live run, in a share of states above 0.999). In each scheme the times of the
    three updates at this rate are within a factor 1.25 of each other. This factor is unknown if all
    three times are at the cap.
    """
    greedy, times = {}, []
    for u in updates:
        name = f"{label_of(u)}: share of states with a greedy policy at η = 10⁹"
        greedy[u] = Inequality(name, np.array([greedy_share(u)]), ">", 0.999, ratio=False)
    for scheme in SCHEMES:
        for statistic, values, cap in greedy_times(table, scheme):
            spread = ratio_bounds(values.max(axis=1), values.min(axis=1), cap)
            name = f"{scheme}, {statistic}: slowest over fastest at η = 10⁹"
            times.append(Inequality(name, spread, "<", 1.25))
    figures = {
        "greedy": join_labels(u for u, row in greedy.items() if row.holds()),
        "not greedy": join_labels(u for u, row in greedy.items() if row.holds() is False),
        "compared": len(times),
        "meet": count(times, True),
        "apart": count(times, False),
    }
    return decide(compare, [*greedy.values(), *times], **figures)


@sentence("sec:randommdps/beat-sarsa", wrong=SCHEMES_SWAPPED | scaled_times("update", "mce", 2))
def beat_sarsa(table: Runs = None) -> Iterator[Inequality]:
    """Every update at its best rate is more than a factor 2 faster than greedy SARSA.

    Greedy SARSA is DI at the rate 10^9 under the same scheme. The schemes are NoExplo and
    LowOffPol. There are fewer runs of greedy SARSA than of the updates, and they are resampled
    separately.
    """
    limits = (limit for scheme in SCHEMES[:2] for limit in greedy_times(table, scheme))
    for t, (_, greedy, cap) in zip(estimates(table, NO_EXPLO, LOW_OFF_POL), limits, strict=True):
        for u in PAPER:
            gain = ratio_bounds(greedy[:, 0], t.best(u), cap)
            yield t.above(f"greedy SARSA over {label_of(u)}", gain, MUCH_FACTOR)


@sentence("sec:randommdps/ce-equals-mce", wrong=DI_AND_CE_SWAPPED)
def ce_equals_mce(table: Runs = None) -> Iterator[Inequality]:
    """The times of CE and MCE are equal up to a factor 1.25, in each scheme.

    The factor is the geometric mean of the larger time over the smaller time, over the rates in the
    range of at least one of the two updates.
    """
    for t in estimates(table, *RANDOM_MDPS):
        factor = mean_factor_in_range(t.curve("ce"), t.curve("mce"), t.curves.cap)
        yield t.below("MCE against CE", factor, 1.25)


@check("sec:randommdps/ce-worst", wrong=DI_AND_CE_SWAPPED)
def ce_worst(compare: Recorder, table: Runs = None) -> Status:
    """CE and MCE at their best rates are slower than any other update at its own best rate.

    The schemes are NoExplo and LowOffPol. The same inequalities are evaluated on committed runs
    with ties drawn at random; the number of inequalities that hold for these runs is reported, but
    does not count for the status.
    """
    rows = _behind_the_others(table)
    drawn = rows if table is not None else _behind_the_others(random_tie_runs())
    return decide(compare, rows, drawn=count(drawn))


def _behind_the_others(table: Runs) -> list[Inequality]:
    """Return inequalities on the time of the faster of CE and MCE over the slowest other time."""
    name, others = "better of CE, MCE over the slowest of the others", (*POLICY_GRADIENTS, "di")
    return [
        t.above(name, t.fastest(CROSS_ENTROPY) / t.slowest(others))
        for t in estimates(table, NO_EXPLO, LOW_OFF_POL)
    ]


@check("sec:randommdps/hioffpol-helps", wrong=SCHEMES_SWAPPED)
def hioffpol_helps(compare: Recorder, table: Runs = None) -> Status:
    """Under HiOffPol CE and MCE are more than a factor 2 faster, with a range of over two decades.

    At its best rate each of the two is more than a factor 2 faster than under NoExplo and than
    under LowOffPol, and its range is wider than 2 decades.
    """
    gains, ranges = [], []
    for *others, high in estimates_together(table, *RANDOM_MDPS):
        for u in CROSS_ENTROPY:
            name = f"{label_of(u)}, {high.statistic}"
            for t in others:
                words = f"{name}: best under {t.panel.scheme} over HiOffPol"
                gains.append(Inequality(words, t.best(u) / high.best(u), ">", MUCH_FACTOR))
            decades = bandwidth(high.curves.axis, high.curve(u))
            ranges.append(
                Inequality(f"{name}: decades in its range", decades, ">", 2.0, ratio=False)
            )
    figures = {
        "least gain": least(gains),
        "most gain": most(gains),
        "least range": least(ranges),
        "much faster": count(gains),
        "compared": len(gains),
    }
    return decide(compare, gains + ranges, **figures)


@check(
    "sec:randommdps/unstable-critic",
    wrong={
        "it helps them twenty times as much": {"limit": 20.0},
        "it helps them at least a twentieth as much": {"limit": 0.05},
    },
)
def unstable_critic(compare: Recorder, table: Runs = None, limit: float = 1.0) -> Status:
    """A critic without sampling noise helps CE and MCE more than PG-SM.

    The scheme is NoExplo. With expected SARSA and replay from the model of all transitions, neither
    the next action nor the next state is drawn when the critic is updated; its rate is unchanged.
    The gain of an update is its best time with the paper's critic over its best time with this
    critic. It is larger for CE and for MCE than for PG-SM. The same ratio for a critic with a tenth
    of the rate, which is also slower, is reported, but does not count for the status.
    """
    expected = _leads_over_pg_sm("paper sarsa=expected replay=model", table)
    rows = [Inequality(name, lead, ">", limit) for name, lead in expected.items()]
    slower = [
        Inequality(name, lead, ">", limit)
        for name, lead in _leads_over_pg_sm("paper critic_rate=0.01", table).items()
    ]
    figures = {
        "slower least": least(slower),
        "slower most": most(slower),
        "ranges": "; ".join(
            f"{row.name.partition(':')[0]} {row.number} ({row.span})" for row in rows
        ),
    }
    if table is None:
        figures["drawn CE"], figures["drawn MCE"] = map(three_digits, gains_of_drawing()[0][:2])
    return decide(compare, rows, **figures)


def _leads_over_pg_sm(critic: str, table: Runs) -> dict[str, Floats]:
    """Return bounds on the gain of CE and MCE by another critic, over the gain of PG-SM."""
    gains = critic_gains(("pg-sm", *CROSS_ENTROPY), critic, table)
    return {
        # the lower bound over the upper one, and the upper over the lower one
        f"{label_of(u)}, {statistic}: gain over that of PG-SM": gain[u] / gain["pg-sm"][::-1]
        for statistic, gain in gains.items()
        for u in CROSS_ENTROPY
    }


# Section 4.2: the chain


@check(
    "sec:chainexp/noexplo-stuck",
    wrong={"most runs never pass on a chain of 5 states": {"long": "chain/NoExplo"}},
)
def noexplo_stuck(compare: Recorder, table: Runs = None, long: str = "chain/NoExplo/10") -> Status:
    """Without exploration most runs on 10 states never pass, for every update and every rate.

    At the rate with the smallest share of runs censored at a million steps, this share is above one
    half with 10 states and below one half with 5 states.
    """
    rows, figures = [], {}
    for n, panel, relation, extreme in ((10, long, ">", min), (5, "chain/NoExplo", "<", max)):
        curves = results_of(table).in_floats.curves(panel)
        shares = {u: best_of(curves.estimates("censored"), u) for u in PAPER}
        figures[f"lost with {n}"] = percent(extreme(lost[0] for lost in shares.values()))
        for u, lost in shares.items():
            name = f"{label_of(u)}: smallest censored share, {n} states"
            rows.append(_censored(name, lost, relation, 0.5, curves))
    return decide(compare, rows, **figures)


def _censored(name: str, values: Floats, relation: str, limit: float, curves: Curves) -> Inequality:
    """Return an inequality for a share of the runs that the curves show."""
    return Inequality(name, values, relation, limit, n_runs=curves.fewest_runs)


@check("sec:chainexp/ce-best", wrong=DI_AND_CE_SWAPPED)
def ce_best(compare: Recorder, table: Runs = None) -> Status:
    """At their best rates CE and MCE are both faster than PG-SM, PG-ES and DI."""
    rows = []
    for t in estimates(table, *CHAINS, label=SCHEME_AND_BETA):
        lead = t.fastest((*POLICY_GRADIENTS, "di")) / t.slowest(CROSS_ENTROPY)
        rows.append(t.above("best of the others over the slower of CE, MCE", lead))
    alone = [row for row in rows if row.name.startswith("NoExplo")]
    exploring = rows[len(alone) :]
    figures = {
        "least alone": least(alone),
        "most alone": most(alone),
        "apart": _largest_deviation(exploring),
        "compared": len(exploring),
        "certain": count(exploring),
    }
    return decide(compare, rows, **figures)


@sentence("sec:chainexp/shift", wrong=DI_AND_CE_SWAPPED)
def shift(table: Runs = None) -> Iterator[Inequality]:
    """Under LowOffPol and HiOffPol the curves of CE and DI differ by a shift of the rate.

    If the curve of DI is shifted by a suitable number of grid steps, the two curves are within a
    factor 1.5 of each other at every rate in the range of CE that both curves cover.
    """
    for t in estimates(table, *CHAINS[1:], label=SCHEME_AND_BETA):
        factor = factor_after_shift(t.curve("ce"), t.curve("di"))
        yield t.below("CE against DI after the best shift", factor, 1.5)


@sentence(
    "sec:chainexp/noexplo-advantage", wrong=DI_AND_CE_SWAPPED | scaled_times("update", "mce", 1.5)
)
def noexplo_advantage(table: Runs = None) -> Iterator[Inequality]:
    """Under NoExplo CE and MCE at their best rates are faster than DI at its best rate."""
    for t in estimates(table, "chain/NoExplo"):
        for u in CROSS_ENTROPY:
            yield t.above(f"best of DI over {label_of(u)}", t.best("di") / t.best(u))


@sentence("sec:chainexp/di-like-pg", wrong=scaled_times("update", "di", 2))
def di_like_pg(table: Runs = None) -> Iterator[Inequality]:
    """Under NoExplo the best times of DI, PG-SM and PG-ES are similar.

    The best time of DI is within a factor 2 of the best times of PG-SM and PG-ES.
    """
    for t in estimates(table, "chain/NoExplo"):
        for u in POLICY_GRADIENTS:
            factor = factor_apart(t.best("di"), t.best(u))
            yield t.below(f"DI against {label_of(u)}", factor, SIMILAR_FACTOR)


@check("sec:chainexp/di-dilemma", wrong=POLICY_GRADIENTS_FOR_DI_AND_CE)
def di_dilemma(compare: Recorder, table: Runs = None) -> Status:
    """Under NoExplo DI is slow at small rates, and stops exploring for good at large rates.

    At the lowest rate the time of DI is more than 3 times its best time; at the highest rate the
    censored share of DI is above one half. The smallest censored share of any update at the highest
    rate is reported, but does not count for the status.
    """
    slow, stuck, lost = [], [], []
    for t in estimates(table, "chain/NoExplo"):
        factor = t.over_best("di", t.curves.axis[0])
        slow.append(t.above("DI at the lowest rate over its best", factor, RANGE))
    for (panel,) in with_both_betas(table, "chain/NoExplo"):
        curves = results_of(table).in_floats.curves(panel)
        shares, highest = curves.estimates("censored"), curves.axis[-1]
        name = f"β={PANELS[panel].beta}, DI's censored share at the highest rate"
        stuck.append(_censored(name, value_at(shares, curves, "di", highest), ">", 0.5, curves))
        lost += [value_at(shares, curves, u, highest)[0] for u in PAPER]
    figures = {"least slow": least(slow), "most slow": most(slow), "lost": percent(min(lost))}
    return decide(compare, slow + stuck, **figures)


@sentence("sec:chainexp/best-rates", wrong=POLICY_GRADIENTS_SWAPPED)
def best_rates(table: Runs = None) -> Iterator[Inequality]:
    """The paper's fixed step sizes are best: each time is within a factor 1.5 of the best time.

    The chains have 7 states under LowOffPol and 10 states under HiOffPol.
    """
    for t in estimates(table, *CHAINS[1:], label=SCHEME_AND_BETA):
        for u, step_size in FIXED_STEP_SIZES.items():
            loss = t.at(u, step_size) / t.best(u)
            yield t.below(f"{label_of(u)} at η = {step_size:g} over its best", loss, 1.5)


@check(
    "sec:chainexp/length-pg",
    wrong={
        "alike within 1 %, and slower by more than a factor 50": {"similar": 1.01, "much": 50.0}
    },
)
def length_pg(
    compare: Recorder,
    table: Runs = None,
    similar: float = SIMILAR_FACTOR,
    much: float = MUCH_FACTOR,
) -> Status:
    """On long chains PG-SM and PG-ES are similar, and a factor 2 slower than DI, CE and MCE.

    The medians of PG-SM and PG-ES are within a factor 2 of each other, in the geometric mean over
    the lengths of at least 10 states at which fewer than half of the runs of each update are
    censored; at other lengths the times are at the cap and their ratio is unknown. The faster of
    PG-SM and PG-ES is more than a factor 2 slower than the slowest of DI, CE and MCE, by the median
    and by the mean, in the geometric mean over 10 to 25 states; this factor is a lower bound if a
    time is at the cap.

    The paper says in its next sentence that PG-ES diverges sometimes. The mean counts each such run
    as the cap, so the factor between the means of PG-SM and PG-ES is reported, but does not count.
    """
    floats, exponents = (_apart_on_long_chains(runs, similar) for runs in _by_precision(table))
    alike, behind = _by("median", floats), []
    for t in estimates(table, *LENGTHS, label=SCHEME_AND_BETA):
        slow, fast = (long_chains(t.curves, t.values, u) for u in (POLICY_GRADIENTS, DI_CE_MCE))
        ratio = ratio_bounds(slow.min(axis=0), fast.max(axis=0), t.curves.cap)
        factor = 10 ** np.log10(ratio).mean(axis=-1)
        behind.append(t.above("faster of both over the slowest other", factor, much))
    figures = {
        "alike": most(alike),
        "behind": least(behind),
        "by the mean": most(_by("mean", floats)),
        "with exponents": most(exponents),
    }
    return decide(compare, alike + behind, **figures)


def _apart_on_long_chains(table: Runs, similar: float) -> list[Inequality]:
    """Return inequalities on the factor between PG-SM and PG-ES on long chains."""
    rows = []
    for t in estimates(table, *LENGTHS, label=SCHEME_AND_BETA):
        sm, es = long_chains(t.curves, t.values, POLICY_GRADIENTS)
        seen = _few_censored(t.curves)[t.curves.axis >= LONG]
        apart = 10 ** np.abs(np.log10(sm / es)[..., seen].mean(axis=-1))
        rows.append(t.below("PG-ES against PG-SM", apart, similar))
    return rows


def _few_censored(curves: Curves) -> NDArray[np.bool_]:
    """Return the positions at which fewer than half of the runs of PG-SM and PG-ES are censored."""
    rows = [PAPER.index(u) for u in POLICY_GRADIENTS]
    return np.asarray((curves.point("censored")[rows] < 0.5).all(axis=0))


@check(
    "sec:chainexp/length-es-variance",
    wrong={"with parameters that cannot be rounded to zero": {"in_floats": False}},
)
def length_es_variance(compare: Recorder, table: Runs = None, in_floats: bool = True) -> Status:
    """PG-ES varies more between runs than PG-SM, because it sometimes misses the threshold.

    The standard deviation of log10 of the time is averaged over the lengths at which fewer than
    half of the runs of each update are censored. This average is larger for PG-ES than for PG-SM,
    and so is the censored share at these lengths. The parameters of PG-ES are plain floats, which
    most programs use. The numbers of censored runs, and the same numbers with parameters that
    cannot be rounded to zero, are reported, but do not count for the status.
    """
    figures, rows = Counter[str](), []
    panels = [name for length in LENGTHS for (name,) in with_both_betas(table, length)]
    for results, words in zip(_by_precision(table), ("", " with exponents"), strict=True):
        rows.append([row for name in panels for row in _more_variance(results.curves(name), name)])
        for name in panels:
            curves, scheme = results.curves(name), PANELS[name].scheme
            lost = curves.censored[:, :2][:, :, _few_censored(curves)]
            for i, u in enumerate(POLICY_GRADIENTS):
                figures[f"{scheme}, {label_of(u)}{words}"] += int(lost[:, i].sum())
            figures[f"{scheme}, runs{words}"] += lost[:, 0].size
    floats, exponents = rows
    spreads = {"spread": least(floats[::2]), "spread with exponents": most(exponents[::2])}
    return decide(compare, floats if in_floats else exponents, **figures, **spreads)


def _more_variance(curves: Curves, panel: str) -> Iterator[Inequality]:
    """Yield inequalities on the spread and the censored share of PG-ES less those of PG-SM."""
    seen, where = _few_censored(curves), f"{PANELS[panel].scheme}, β={PANELS[panel].beta}"
    times = np.log10(curves.steps[:, :2][:, :, seen])
    lost = curves.censored[:, :2][:, :, seen]
    resamples = [slice(None), *curves.draws]
    spread = np.stack([times[d].std(axis=0).mean(axis=-1) for d in resamples]) @ [-1.0, 1.0]
    name = f"{where}, spread of PG-ES less PG-SM, decades"
    yield Inequality(name, spread, ">", 0.0, ratio=False)
    more = np.stack([lost[d].mean(axis=(0, 2)) for d in resamples]) @ [-1.0, 1.0]
    name = f"{where}, censored share of PG-ES less PG-SM"
    yield replace(_censored(name, more, ">", 0.0, curves), smallest=-1.0)


@sentence("sec:chainexp/length-fast", wrong=scaled_times("update", "di", 1.5))
def length_fast(table: Runs = None) -> Iterator[Inequality]:
    """Under HiOffPol DI, CE and MCE are within a factor 2 of each other at every length."""
    for t in estimates(table, "length/HiOffPol"):
        times = np.stack([t.curve(u) for u in DI_CE_MCE])
        factor = (times.max(axis=0) / times.min(axis=0)).max(axis=-1)
        yield t.below("slowest over fastest, worst length", factor, SIMILAR_FACTOR)


@sentence(
    "sec:chainexp/length-di-slower", wrong=DI_AND_CE_SWAPPED | scaled_times("update", "di", 2)
)
def length_di_slower(table: Runs = None) -> Iterator[Inequality]:
    """On long chains DI at rate 1 is a bit slower than CE and MCE, because its rate is too low.

    DI is slower than the faster of CE and MCE by a factor between 1 and 2, in the geometric mean
    over 10 to 25 states; and on 10 states DI is faster at some higher rate than at rate 1.
    """
    for t in estimates(table, *LENGTHS, label=SCHEME_AND_BETA):
        di, ce, mce = np.log10(long_chains(t.curves, t.values, DI_CE_MCE))
        behind = 10 ** (di - np.minimum(ce, mce)).mean(axis=-1)
        yield t.above("DI over the faster of CE, MCE", behind)
        yield t.below("the same ratio", behind, SIMILAR_FACTOR)
    for t in estimates(table, "chain/HiOffPol", label="10 states, β={beta}"):
        gain = t.at("di", 1.0) / t.curve("di")[:, t.curves.axis > 1.0].min(axis=1)
        yield t.above("DI at rate 1 over its best higher rate", gain)


@sentence("sec:chainexp/duplicates-ce", wrong=DI_AND_CE_SWAPPED)
def duplicates_ce(table: Runs = None) -> Iterator[Inequality]:
    """With duplicates CE is not delayed: it is less than a factor 1.1 slower than DI."""
    for statistic, n_optimal, ratio in ratios_to_di(table, "ce"):
        name = f"{n_optimal:g} optimal actions, {statistic}: CE over DI"
        yield Inequality(name, ratio, "<", 1.1)


@check(
    "sec:chainexp/duplicates-mce",
    wrong=scaled_times("update", "mce", 1.3, " (there it is reproduced)"),
)
def duplicates_mce(compare: Recorder, table: Runs = None) -> Status:
    """With duplicates MCE is slightly delayed: it is slower than CE by a factor between 1 and 2."""
    slower, similar = [], []
    ratios = zip(ratios_to_di(table, "mce"), ratios_to_di(table, "ce"), strict=True)
    for (statistic, n_optimal, mce), (_, _, ce) in ratios:
        where = f"{n_optimal:g} optimal actions, {statistic}"
        slower.append(Inequality(f"{where}: MCE over CE", mce / ce, ">", 1.0))
        similar.append(Inequality(f"{where}: the same ratio", mce / ce, "<", SIMILAR_FACTOR))
    behind = [row.name.partition(":")[0] for row in slower if row.holds()]
    figures = {
        "compared": len(slower),
        "slower": len(behind),
        "where": "; ".join(behind) or "nowhere",
    }
    return decide(compare, slower + similar, **figures)


@sentence(
    "sec:chainexp/duplicates-conjecture",
    wrong=scaled_times("update", "mce", 1e4),
)
def duplicates_converge(table: Runs = None) -> Iterator[Inequality]:
    """With several optimal actions all runs of MCE at the paper's rates pass."""
    curves = results_of(table).curves("duplicates")
    largest = curves.point("censored")[PAPER.index("mce"), curves.axis > 2].max(keepdims=True)
    name = "MCE: largest censored share"
    yield Inequality(name, largest, "<", 0.5 / curves.n_runs, ratio=False)


# Section 4.3: the cliff


@sentence("sec:cliff/pg-sm-slow", wrong=POLICY_GRADIENTS_SWAPPED)
def pg_sm_slow(table: Runs = None) -> Iterator[Inequality]:
    """On the cliff PG-SM at its best rate is more than 5 times slower than the best update."""
    for t in estimates(table, "cliff"):
        yield t.above("PG-SM over the best", t.best("pg-sm") / t.fastest(PAPER), VERY_FACTOR)


@sentence("sec:cliff/pg-es-better", wrong=POLICY_GRADIENTS_SWAPPED)
def pg_es_better(table: Runs = None) -> Iterator[Inequality]:
    """On the cliff PG-ES at its best rate is faster than PG-SM at its best rate."""
    for t in estimates(table, "cliff"):
        yield t.above("best of PG-SM over PG-ES", t.best("pg-sm") / t.best("pg-es"))


@check(
    "sec:cliff/pg-es-wall",
    wrong={"with parameters that cannot be rounded to zero": {"in_floats": False}},
)
def pg_es_wall(compare: Recorder, table: Runs = None, in_floats: bool = True) -> Status:
    """On the cliff PG-ES is more than 5 times slower at rates above 3 than at its best rate.

    The factor is the geometric mean over these rates. The parameters are plain floats, which most
    programs use. The share of runs that are lost at these rates, and the same factor with
    parameters that cannot be rounded to zero, are reported, but do not count for the status.
    """
    floats, exponents = (_loss_at_high_rates(runs) for runs in _by_precision(table))
    lost: list[float] = []
    for (name,) in with_both_betas(table, "cliff"):
        curves = results_of(table).in_floats.curves(name)
        lost += curve_of(curves.point("censored")[np.newaxis], "pg-es")[
            0, curves.axis > HIGH_RATE
        ].tolist()
    figures = {
        "with exponents": most(exponents),
        "least lost": percent(min(lost)),
        "most lost": percent(max(lost)),
    }
    return decide(compare, floats if in_floats else exponents, **figures)


def _loss_at_high_rates(table: Runs) -> list[Inequality]:
    """Return inequalities on the times of PG-ES on the cliff at high rates over its best time."""
    rows = []
    for t in estimates(table, "cliff"):
        high = t.curve("pg-es")[:, t.curves.axis > HIGH_RATE]
        ratio = ratio_bounds(high, t.best("pg-es")[:, np.newaxis], t.curves.cap)
        factor = 10 ** np.log10(ratio).mean(axis=-1)
        rows.append(t.above("time at rates above 3 over the best", factor, VERY_FACTOR))
    return rows


@sentence("sec:cliff/best", wrong=POLICY_GRADIENTS_FOR_DI_AND_CE)
def cliff_best(table: Runs = None) -> Iterator[Inequality]:
    """On the cliff DI, CE and MCE are each faster than PG-SM and PG-ES, all at their best rates."""
    for t in estimates(table, "cliff"):
        lead = t.fastest(POLICY_GRADIENTS) / t.slowest(DI_CE_MCE)
        yield t.above("faster PG over the slowest of DI, CE, MCE", lead)


@sentence("sec:cliff/pg-es-gap", wrong=POLICY_GRADIENTS_SWAPPED)
def pg_es_gap(table: Runs = None, chain: str = "chain/HiOffPol") -> Iterator[Inequality]:
    """PG-ES is slower than the best update by the same factor on the cliff and on the chain.

    The factor is the best time of PG-ES over the best time of DI, CE and MCE. The two factors
    differ by less than a factor 1.5. The paper compares with its panel of the chain, which has 10
    states; `pg_es_cause` uses a chain of 7 states, the length of the cliff, which shows the effect
    of the third action alone.
    """
    for pair in estimates_together(table, "cliff", chain):
        gaps = [t.best("pg-es") / t.fastest(DI_CE_MCE) for t in pair]
        where = f"β={pair[0].panel.beta}, {pair[0].statistic}"
        name = f"{where}: factor on the cliff against the chain of {PANELS[chain].n_states} states"
        yield Inequality(name, factor_apart(*gaps), "<", 1.5)


pg_es_cause = check(
    "sec:cliff/pg-es-cause",
    wrong=POLICY_GRADIENTS_SWAPPED,
    arguments={"chain": "chain/HiOffPol/7"},
)(pg_es_gap.function)


# The slowdown by the third action


def _slowdowns(table: Runs, cliff: str = "cliff") -> Iterator[tuple[str, dict[str, Floats]]]:
    """Yield "median" or "mean", and the slowdown of each update by the third action of the cliff.

    The slowdown is the best time on the cliff with 7 states over the best time on the chain with 7
    states, both under HiOffPol with beta = 0.8.
    """
    for on_cliff, on_chain in estimates_together(table, cliff, "chain/HiOffPol/7"):
        yield on_cliff.statistic, {u: on_cliff.best(u) / on_chain.best(u) for u in PAPER}


@sentence("sec:cliff/gravity", wrong=POLICY_GRADIENTS_SWAPPED)
def cliff_gravity(table: Runs = None) -> Iterator[Inequality]:
    """The third action slows PG-SM down more than any other update."""
    for statistic, slowdown in _slowdowns(table):
        for u in PAPER[1:]:
            name = f"{statistic}: slowdown of PG-SM over that of {label_of(u)}"
            yield Inequality(name, slowdown["pg-sm"] / slowdown[u], ">", 1.0)


@check(
    "app:Domains/cliff-slowdown",
    wrong={"some are slowed down by the chain itself": {"cliff": "chain/HiOffPol/7"}},
)
def cliff_marginal(compare: Recorder, table: Runs = None, cliff: str = "cliff") -> Status:
    """The third action slows some updates down by more than a factor 2, and others less."""
    rows, points = [], dict.fromkeys(PAPER, 0.0)
    for statistic, slowdown in _slowdowns(table, cliff):
        factors = np.stack(list(slowdown.values()))
        for words, factor, relation in (
            ("largest", factors.max(axis=0), ">"),
            ("smallest", factors.min(axis=0), "<"),
        ):
            rows.append(Inequality(f"{statistic}: {words} slowdown", factor, relation, MUCH_FACTOR))
        points = {u: max(points[u], slowdown[u][0]) for u in PAPER}
    figures = {
        "slowed much": join_labels(u for u in PAPER if points[u] > MUCH_FACTOR),
        "others": three_digits(max((x for x in points.values() if x <= MUCH_FACTOR), default=0.0)),
    }
    return decide(compare, rows, **figures)


@check("sec:gravity/ce-experiment", wrong=POLICY_GRADIENTS_FOR_DI_AND_CE)
def ce_without_gravity(compare: Recorder, table: Runs = None) -> Status:
    """The cliff shows no gravity well of CE, but one of PG-SM.

    The third action of the cliff slows CE down by less than a factor 2, and PG-SM by more than a
    factor 2.
    """
    ce, pg_sm = (
        [
            Inequality(f"{s}: slowdown of {label_of(u)}", slowdown[u], relation, MUCH_FACTOR)
            for s, slowdown in _slowdowns(table)
        ]
        for u, relation in (("ce", "<"), ("pg-sm", ">"))
    )
    return decide(compare, ce + pg_sm, **{"of CE": most(ce), "of PG-SM": least(pg_sm)})


# CE and MCE


@check("sec:cliff/mce-small-rates", wrong=DI_AND_CE_SWAPPED | scaled_times("update", "mce", 1.5))
def mce_small_rates(compare: Recorder, table: Runs = None) -> Status:
    """MCE is slightly faster than CE on the cliff at small rates, and similar at all other rates.

    Rates of at most 0.1 are small. The time of CE over the time of MCE is above 1 in the geometric
    mean over the small rates. At all other rates the two times are within a factor 2 of each other.
    """
    at_small, at_others = [], []
    for t in estimates(table, "cliff"):
        small = t.curves.axis <= 0.1 * (1 + 1e-9)
        ce, mce = t.curve("ce"), t.curve("mce")
        # a time at the cap is a lower bound, so that no rate has to be left out
        with np.errstate(divide="ignore"):
            lead = 10 ** np.log10(ratio_bounds(ce, mce, t.curves.cap)[..., small]).mean(axis=-1)
        at_small.append(t.above("CE over MCE up to η = 0.1", lead))
        apart = factor_apart(ce, mce)[:, ~small].max(axis=1)
        at_others.append(t.below("CE against MCE at higher rates", apart, SIMILAR_FACTOR))
    figures = {
        "least at small": least(at_small),
        "most at small": most(at_small),
        "most at others": most(at_others),
    }
    return decide(compare, at_small + at_others, **figures)


@check("book:wall-is-rounding", wrong={"on Random MDPs too": {"panels": RANDOM_MDPS}})
def wall_is_rounding(
    compare: Recorder,
    table: Runs = None,
    panels: Sequence[str] = (
        *CHAINS[1:],
        *(f"{name}/beta=0.7" for name in CHAINS[1:]),
        "cliff",
        "cliff/beta=0.7",
    ),
) -> None:
    """Rounding censors runs of PG-ES at large rates on the cliff and on the chain with exploration.

    More than nine in ten of the runs at rates above 3 that are censored if parameters are plain
    floats pass with the same random numbers if each parameter has a separate exponent.
    """
    from pu_lib.experiments.rounding import lost_and_passed

    shares = []
    for name in panels:
        lost, passed = lost_and_passed(name, table)
        still_lost = (lost - passed) / lost if lost else 1.0
        shares.append(1.0 - still_lost)
        compare.at_most(
            f"{PANELS[name].words}: share still lost of what plain floats lose",
            still_lost,
            0.1,
            limit="0.1",
            at={"lost in floats": lost, "of them pass": passed},
        )
    compare.report(**{"least share": percent(min(shares))})


# The same checks on other tables


def run_with(check: Check, **arguments: Any) -> Finding:
    """Return the finding of a check with other arguments, such as another `table` of runs."""
    return replace(check, arguments={**check.arguments, **arguments}).run()


def stability(check: Check, runs: Sequence[int] = (100, 200, 500, 1000)) -> dict[int, str]:
    """Return the status of a check for the first runs of each setting, by the number of runs.

    A status that changes with the number of runs depends on intervals that end near the limit of an
    inequality.
    """
    table = results_of(None).table
    return {n: str(run_with(check, table=table[table["run"] < n]).status) for n in runs}


def both_rules(check: Check) -> dict[str, str]:
    """Return the status of a check with each rule for tied actions on Random MDPs.

    The rules are "first" and "drawn". Both tables of runs have as many runs as are available with
    ties drawn at random; the key "runs" has this number.
    """
    n, tables = _by_rule()
    statuses = {rule: str(run_with(check, table=runs).status) for rule, runs in tables.items()}
    return statuses | {"runs": str(n)}


@cache
def _by_rule() -> tuple[int, dict[str, Results]]:
    """Return the number of runs with ties drawn, and a table with this number of runs per rule."""
    table, drawn = results_of(None).table, random_tie_runs()
    tied = table[table["experiment"] == TIED]
    n = int(tied.groupby(["scheme", "update", "step_size"], observed=True)["run"].count().min())
    return n, {rule: Results(t[t["run"] < n]) for rule, t in (("first", table), ("drawn", drawn))}
