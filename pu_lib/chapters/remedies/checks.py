"""Checks of the claims on remedies, each of which runs in at most a few seconds."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from flint import arb

from pu_lib.chapters.remedies.quantities import (
    CHANGES,
    Median,
    Remedy,
    SampledRemedy,
    count_after,
    count_from,
    count_limits,
    decay_time,
    decaying_bonus,
    entropy_time,
    fixed_odds,
    group_outcome,
    k3,
    many_actions_regret,
    median_of,
    moving_reference,
    no_sample,
    normalised_threshold,
    outcomes,
    penalty_time,
    sampled_counts,
    sampled_median,
    soft_npg_count,
    target_entropy,
    varied_outcome,
)
from pu_lib.claims.recorder import Recorder, check
from pu_lib.formatting import percent
from pu_lib.updates import UPDATES

REGRETS = (1e-2, 1e-3, 1e-4)
RUNS = 100
LEVEL = "95 %"
"""The level of the intervals of `Median`, for sentences."""


def _short(value: float) -> float:
    """Return a number with two significant digits, for sentences."""
    return float(f"{value:.1e}")


def _odds(regret: float) -> float:
    return math.log1p(-regret) - math.log(regret)


@check(
    "remedies:pg-sm",
    wrong={"half of the product": {"product_limit": 0.25}, "NPG in its place": {"update": "npg"}},
)
def counts_are_integrals(
    compare: Recorder, update: str = "pg-sm", product_limit: float = 0.5
) -> None:
    """Counts of PG-SM are between the bounds, and in balls the product is near its limit."""
    counts = []
    for weight, regret in product((0.25, 1.0), REGRETS):
        odds = _odds(regret)
        count = count_from(Remedy(update, weight), 1 - regret)
        low, high = count_limits((odds + math.sinh(odds)) / weight, odds, weight / 2)
        at = {"weight": weight, "regret": regret}
        compare.at_least("n'", count, low, limit="T - κ(D + w/2)", at=at)
        compare.at_most("n'", count, high, limit="T + D + 1", at=at)
        counts += [int(count)] if weight == 1 else []
    for odds in (50, 100, 200):
        low, high = count_limits(arb(odds) + arb(odds).sinh(), odds, 0.5)
        for end in (low, high):
            scaled = end / (1 + arb(odds).exp())
            off = abs(scaled - product_limit)
            compare.at_most("distance from the limit", off, 1e-15, at={"log-odds": odds})
    compare.report(counts=", ".join(map(str, counts)))


@check(
    "remedies:entropy",
    wrong={
        "the product of PG-SM": {"product_limit": 0.5},
        "the integral without the bonus": {"bonus": False},
    },
)
def entropy_bonus_stops_early(
    compare: Recorder, product_limit: float = 0.25, bonus: bool = True
) -> None:
    """Log-odds stay below 1/tau, counts are between the bounds, and balls give the product."""
    edges = [(3.9, 0.5), (1.9, 1.0)]  # w τ is nearly 2
    for weight, tau in [*product((0.25, 1.0), (0.1, 0.2, 0.5)), *edges]:
        at: dict[str, object] = {"weight": weight, "bonus": tau}
        for outcome in outcomes(Remedy(weight=weight, entropy=tau), (1, 30, 300, 3000)):
            lead = _odds(outcome.regret)
            compare.at_most("log-odds", lead, 1 / tau + 1e-9, limit="1/τ", at=at)
            time = entropy_time(tau if bonus else 0, lead, weight)
            low, high = count_limits(time, lead, weight * (1 + tau) / 2)
            compare.at_least("n'", outcome.count, low, limit="T - κ(D + F)", at=at)
            compare.at_most("n'", outcome.count, high, limit="T + D + 1", at=at)
    for tau, most in ((0.01, 0.011), (0.005, 0.0055), (0.0025, 0.0026)):
        odds = fixed_odds("entropy", arb(1) / round(1 / tau) if bonus else tau)
        time = entropy_time(arb(1) / round(1 / tau) if bonus else 0, odds)
        scaled = time / (1 + odds.exp())
        off = abs(scaled - product_limit)
        compare.at_most("distance of n' regret from 1/4", off, most * product_limit, at={"τ": tau})
    largest: dict[str, float] = {}
    for tau in (0.2, 0.1):
        odds = fixed_odds("entropy", 1 / arb(round(1 / tau)))
        count = count_from(Remedy(entropy=tau if bonus else 0.0), 1 - _regret(odds))
        low, high = count_limits(entropy_time(tau, odds), odds, (1 + tau) / 2)
        compare.at_least("largest n'", count, low, limit="T - κ(D + F)", at={"bonus": tau})
        compare.at_most("largest n'", count, high, limit="T + D + 1", at={"bonus": tau})
        largest[f"at {tau}"] = int(count)
    late = float(entropy_time(0.01, 100))
    compare.at_least("T at the bonus 0.01", late, 6e42, limit="6e42")
    compare.report(**largest, **{"at 0.01": late})


@check(
    "remedies:estimator",
    wrong={
        "the gradient of the divergence": {"estimator": False},
        "the limit without log 2": {"share": 1.0},
    },
)
def grpo_penalty_stops_early(
    compare: Recorder, estimator: bool = True, share: float = math.log(2)
) -> None:
    """Log-odds stay at most at the fixed point, counts are between the bounds, balls give log 2."""
    for weight, beta in product((0.25, 1.0), (0.001, 0.01, 0.1)):
        at = {"weight": weight, "penalty": beta}
        remedy = Remedy(weight=weight, penalty=beta, estimator=estimator)
        for outcome in outcomes(remedy, (30, 300, 3000)):
            lead = _odds(outcome.regret)
            limit = float(fixed_odds("estimator", beta))
            compare.at_most("log-odds", lead, limit + 1e-9, limit="arsinh(1/β)", at=at)
            time = penalty_time(beta, lead, weight)
            low, high = count_limits(time, lead, weight * (0.5 + beta))
            compare.at_least("n'", outcome.count, low, limit="T - κ(D + F)", at=at)
            compare.at_most("n'", outcome.count, high, limit="T + D + 1", at=at)
    for k in (4, 8, 12):
        small = arb(10) ** -k
        odds = fixed_odds("estimator", small)
        low, high = count_limits(penalty_time(small, odds), odds, 0.5 + small)
        place = {"β": f"1e-{k}"}
        for end in (low, high):
            # T = log(2)/β + O(log(1/β)), and the bounds add O(log(1/β)), too
            compare.at_most("distance of n' β", abs(end * small - share), 200 * k * small, at=place)
            regret = 1 / (1 + odds.exp())
            off = abs(end * regret - share / 2)
            compare.at_most("distance of n' regret", off, 200 * k * small, at=place)
    for beta in (0.04, 0.001):
        odds = fixed_odds("estimator", beta)
        count = count_from(
            Remedy(penalty=beta, estimator=estimator), 1 - _regret(odds), most=10_000
        )
        low, high = count_limits(penalty_time(beta, odds), odds, 0.5 + beta)
        compare.at_least("largest n'", count, low, limit="T - κ(D + F)", at={"penalty": beta})
        compare.at_most("largest n'", count, high, limit="T + D + 1", at={"penalty": beta})
        compare.report(**{f"at {beta}": int(count) if math.isfinite(count) else count})


@check(
    "remedies:weight-decay",
    wrong={
        "PG-SM without decay": {"decayed": False},
        "the limit of the entropy bonus": {"share": 0.5},
        "the limit alone": {"next_term": 0.0},
    },
)
def weight_decay_stops_early(
    compare: Recorder,
    decayed: bool = True,
    share: float = math.log(2),
    next_term: float = math.pi**2 / 12 - math.log(2),
) -> None:
    """Log-odds stay below the root, counts are between the bounds, balls give two terms."""
    for weight, decay in [*product((0.25, 1.0, 2.0), (0.1, 0.01, 0.001)), (1.0, 0.5), (3.8, 0.01)]:
        at = {"weight": weight, "decay": decay}
        remedy, root = Remedy(weight=weight, decay=decayed * decay), fixed_odds("decay", decay)
        results = outcomes(remedy, (30, 300, 12_000))
        for outcome in results:
            lead = _odds(outcome.regret)
            compare.at_most("log-odds", lead, float(root) + 1e-9, limit="D", at=at)
            low, high = count_limits(
                decay_time(decay, lead, weight), lead, weight * (0.5 + decay * lead)
            )
            compare.at_least("n'", outcome.count, low, limit="T - κ(D + F)", at=at)
            compare.at_most("n'", outcome.count, high, limit="T + D + 1", at=at)
        largest = count_from(Remedy(weight=weight, decay=decay), 1 - _regret(root))
        compare.equal("n' after 12 000 steps and from D", results[-1].count, largest, at=at)
    for k in (10, 100, 1000):
        small = arb(f"1e-{k}")
        odds = fixed_odds("decay", small)
        for end in count_limits(decay_time(small, odds), odds, 0.5 + small * odds):
            off = abs(2 * end / (1 + odds.exp()) - share - next_term / odds)
            compare.at_most("distance of 2wn'e", off, 0.05 / odds**2, at={"λ": f"1e-{k}"})
    for decay in (0.01, 0.001):
        regret = _regret(fixed_odds("decay", decay))
        count = count_from(Remedy(decay=decay), 1 - regret)
        compare.report(**{f"n at {decay}": int(count), f"regret at {decay}": regret})


def _regret(odds: arb) -> float:
    return float(1 / (1 + odds.exp()))


@check("remedies:reference", wrong={"a factor of 3": {"factor": 3.0}})
def reference_is_a_bet(compare: Recorder, factor: float = 9.0) -> None:
    """A reference of 0.9 makes the count nine times as large and the regret a ninth."""
    shift = arb(9).log()
    for k in (50, 200, 800):
        penalty = 1 / arb(k)
        time = entropy_time(penalty, k + shift, reference=shift) / entropy_time(penalty, k)
        at = {"β": f"1/{k}"}
        compare.at_most("distance of the factor", abs(time / factor - 1), 3 / arb(k), at=at)
        regret = (1 + arb(k).exp()) / (1 + (k + shift).exp())
        compare.at_most("distance of the regret's", abs(regret * factor - 1), 1e-9, at=at)
    for beta, reference in product((1.0, 0.5), (0.9, 0.1)):
        [late] = outcomes(Remedy(penalty=beta, reference=reference), [2000], most=0)
        odds = 1 / beta + math.log(reference / (1 - reference))
        compare.equal("log-odds", _odds(late.regret), odds, tolerance=1e-6, at={"β": beta})
    fifty = arb(1) / 50
    ratio = entropy_time(fifty, 50 + shift, reference=shift) / entropy_time(fifty, 50)
    compare.report(factor=float(ratio))


@check(
    "remedies:normalised",
    wrong={
        "the bonus as without normalising": {"normalised": False},
        "a lower bound": {"low": 1.4},
    },
)
def normalised_advantages(compare: Recorder, normalised: bool = True, low: float = 1.5088) -> None:
    """Balls enclose the threshold; runs below it have no end, runs above it have."""
    threshold = normalised_threshold()
    compare.at_most("threshold", abs(threshold - low - 0.00008), 1e-5, limit="1.50888 ± 1e-5")
    # y tanh y increases, so cosh(y)/y has one minimum
    for tau in (1.5, 1.5088):
        compare.at_least("threshold", threshold, tau, limit="bonus without a fixed point")
    for tau, n in product((0.0, 0.1, 0.5), (300, 3000)):
        [outcome] = outcomes(Remedy(normalised=normalised, entropy=tau), [n])
        at = {"bonus": tau, "n": n}
        off, most = abs(outcome.count / n - 1), 25 * math.log(n) / n
        compare.at_most("|n'/n - 1|", off, most, limit="25 log(n)/n", at=at)
        off = abs(outcome.regret * n**2 - 1)
        compare.at_most("|n² regret - 1|", off, most, limit="25 log(n)/n", at=at)
    for tau, regret in product((0.0, 0.1), (1e-4, 1e-6)):
        back = count_from(Remedy(normalised=normalised, entropy=tau), 1 - regret)
        off, most = abs(back * math.sqrt(regret) - 1), 25 * math.sqrt(regret) * -math.log(regret)
        at = {"bonus": tau, "regret": regret}
        compare.at_most("|n' √regret - 1|", off, most, limit="25 √regret log(1/regret)", at=at)
    [stays] = outcomes(Remedy(normalised=True, entropy=1.6), [3000])
    compare.at_least("regret at the bonus 1.6", stays.regret, 0.1)
    [known] = outcomes(Remedy(normalised=normalised, entropy=0.1), [3000])
    sides = {
        name: int(count_from(remedy, 1 - 1e-4))
        for name, remedy in (("normalised", Remedy(normalised=True)), ("pg-sm", Remedy()))
    }
    compare.report(count=int(known.count), regret=known.regret, **sides)


@check(
    "remedies:clip",
    wrong={"a policy that is not at a corner": {"times": 20.0}, "a sharp clip": {"clip": 0.01}},
)
def clipping_does_not_bind(compare: Recorder, times: float = 1.0, clip: float = 0.0) -> None:
    """A batch with clipping leads to the policy of E updates, for regrets up to the bound."""
    for epochs, weight, epsilon in product((1, 4, 10), (1.0, 3.0), (0.1, 0.2, 0.5)):
        bound = math.log1p(epsilon) / (2 * (1 + epsilon) * epochs * weight)
        for share in (1.0, 0.1, 1e-3):
            regret = min(times * share * bound, 0.4)
            theta = np.log([1 - regret, regret])
            clipped = Remedy(epochs=epochs, weight=weight, clip=clip or epsilon)
            after = _one_batch(clipped, regret)
            for _ in range(epochs):
                theta = UPDATES["pg-sm"].step(theta, [0.0, 1.0], weight)
            expected = UPDATES["pg-sm"].policy(theta)[1]
            at = {"E": epochs, "w": weight, "ε": epsilon, "regret": f"{regret:.3g}"}
            off = abs(float(after / expected) - 1)
            compare.at_most("relative distance from E updates", off, 1e-12, at=at)


def _one_batch(remedy: Remedy, regret: float) -> float:
    """Return the probability of the second action after one step from a policy."""
    learner = remedy.start([1 - regret, regret], [1.0, 0.0])
    learner.step([0.0, 1.0])
    return learner.policy()[1]


RATES = (0.003, 0.01, 0.03, 0.1, 0.3)


@check(
    "remedies:adam",
    wrong={"plain gradient steps": {"adam": False}, "smaller rates": {"times": 0.1}},
)
def adam_has_a_plateau(compare: Recorder, adam: bool = True, times: float = 1.0) -> None:
    """Up to 10 000 steps of Adam counts at five step sizes are nearly equal; later they grow."""
    plain = count_after(Remedy(), 100)
    by_rate = {}
    for rate in RATES:
        ns = (100, 1000, 10_000, 60_000) if rate == 0.1 else (100, 1000, 10_000)
        counts = outcomes(Remedy(adam=times * rate if adam else 0.0), ns)
        by_rate[rate] = [int(x.count) for x in counts]
        at = {"step size": rate}
        compare.at_least("n' after 100 steps", by_rate[rate][0], plain + 1, at=at)
        for n, count, low, high in (
            (1000, by_rate[rate][1], 560, 650),
            (10_000, by_rate[rate][2], 1400, 1650),
        ):
            compare.at_least("n' of Adam", count, low, at=at | {"n": n})
            compare.at_most("n' of Adam", count, high, at=at | {"n": n})
    small = count_after(Remedy(adam=0.0003), 10_000)
    compare.at_least("n' at the rate 0.0003", small, 5000, limit="5000")
    long = by_rate[0.1][3]
    compare.at_least("n' after 60 000 steps", long, 30_000, limit="30 000")
    compare.report(
        thousand=", ".join(str(x[1]) for x in by_rate.values()),
        counts=", ".join(str(x[2]) for x in by_rate.values()),
        small=int(small),
        long=long,
    )


@check(
    "remedies:together",
    wrong={
        "plain gradient steps": {"adam": 0.0},
        "advantages as they are": {"normalised": False},
        "one epoch": {"epochs": 1},
    },
)
def all_remedies_together(
    compare: Recorder, adam: float = 0.01, normalised: bool = True, epochs: int = 10
) -> None:
    """All remedies together need fewer batches to undo than were made, because of Adam."""
    together = Remedy(epochs=epochs, clip=0.2, normalised=normalised, adam=adam, entropy=0.01)
    results = outcomes(together, (100, 1000, 3000, 10_000))
    for outcome in results[:3]:
        compare.at_most("n'", outcome.count, outcome.n - 1, at={"batches": outcome.n})
    for n, outcome, alone in zip(
        (100, 1000), results, outcomes(Remedy(adam=0.01), (1000, 10_000)), strict=False
    ):
        ratio = epochs * outcome.count / alone.count
        at = {"batches": n}
        compare.at_most("n' in epochs / n' of Adam", ratio, 1.2, at=at)
        compare.at_least("n' in epochs / n' of Adam", ratio, 0.8, at=at)
    compare.at_most("n' after 1000 batches", results[1].count, 200)
    compare.at_most("regret after 1000 batches", results[1].regret, 1e-8)
    without = Remedy(epochs=10, clip=0.2, normalised=True, entropy=0.01)
    plain = count_after(without, 1000)
    compare.at_least("n' without Adam", plain, 900)
    compare.at_least("n' after 10 000 batches", results[3].count, 5000, limit="5000")
    compare.report(
        counts=", ".join(str(int(x.count)) for x in results[:3]),
        regret=results[1].regret,
        plain=int(plain),
        late=int(results[3].count),
    )


@check(
    "remedies:soft-npg",
    wrong={"PG-SM with the bonus": {"update": "pg-sm"}, "half of the bound": {"share": 0.5}},
)
def soft_npg_is_bounded(compare: Recorder, update: str = "npg", share: float = 1.0) -> None:
    """Counts are at most the bound and attain it; the regret is above its limit."""
    for weight, tau in ((1.0, 0.1), (1.0, 0.2), (0.1, 0.1), (0.5, 0.3), (2.0, 0.05)):
        bound = soft_npg_count(tau, weight)
        remedy = Remedy(update, weight, entropy=tau)
        at = {"weight": weight, "bonus": tau}
        for outcome in outcomes(remedy, (1, 10, 100, 1000)):
            compare.at_most("n'", outcome.count, share * bound, limit="⌈log 2/-log(1 - wτ)⌉", at=at)
            limit = 1 / (1 + math.exp(1 / tau))
            compare.at_least("regret", outcome.regret, limit * (1 - 1e-12), at=at)
    [last] = outcomes(Remedy(update, entropy=0.1), [1000])
    compare.report(count=soft_npg_count(0.1), regret=last.regret)


@check(
    "remedies:critic",
    wrong={"half of the rate": {"times": 0.5}, "the lag of CE for PG-SM": {"lag": True}},
)
def critic_turns_late(compare: Recorder, times: float = 1.0, lag: bool = False) -> None:
    """CE and DI return soon after the critic turns, and the delay of PG-SM is near its formula."""
    histories, policies = (10, 30, 100, 300, 1000), (0.9, 0.99, 0.999)

    def counts_of(name: str, critic: float = 1.0) -> list[float]:
        remedy = Remedy(name, critic=critic)
        return [x.count for x in outcomes(remedy, histories)] + [
            count_from(remedy, p) for p in policies
        ]

    plain = counts_of("pg-sm")
    places = [{"n": n} for n in histories] + [{"from": p} for p in policies]
    for alpha in (0.1, 0.03, 0.01):
        counts = {name: counts_of(name, times * alpha) for name in ("ce", "di", "pg-sm")}
        more = [late - early for late, early in zip(counts["pg-sm"], plain, strict=True)]
        for i, place in enumerate(places):
            at = {"rate": alpha} | place
            known = 1 - (1 - alpha) ** place["n"] if "n" in place else 1.0
            sign = math.ceil(math.log1p(known) / -math.log1p(-alpha))
            for name in ("ce", "di"):
                who, most = at | {"update": name}, sign + 2 / math.sqrt(alpha)
                compare.at_least("n' of CE and DI", counts[name][i], sign, at=who)
                compare.at_most("n' of CE and DI", counts[name][i], most, at=who)
            left = 1 - (1 + known) * (1 - alpha) ** counts["pg-sm"][i]
            sums = (1 - alpha) / alpha * (left if "n" in place else left + 1)
            off = abs(more[i] - (sign if lag else sums))
            compare.at_most("distance of PG-SM's delay from the sums", off, 3, limit="3", at=at)
    shown = {
        name: ", ".join(str(int(x)) for x in row)
        for name, row in {
            "n more": more[: len(histories)],
            "policy more": more[len(histories) :],
        }.items()
    }
    last = len(histories) - 1
    compare.report(ce=int(counts["ce"][last]), di=int(counts["di"][last]), **shown)


@check("remedies:silence", wrong={"a floor for DI": {"floor": 0.05}})
def nobody_hears_what_is_not_tried(compare: Recorder, floor: float = 0.0) -> None:
    """Without exploration DI never returns and NPG may not; with exploration all runs return."""
    silent = no_sample(math.log(999), 0.5, 8)
    for probability in (0.9, 0.99, 0.999):
        chance = no_sample(math.log(probability / (1 - probability)), 0.5, 8)
        compare.at_least("chance of no sample", chance, 1e-2, at={"from": probability})
        remedy = SampledRemedy("npg")
        counts = sampled_counts(
            remedy, "bad turns good", probability=probability, n_runs=RUNS, most=2000
        )
        share = float(np.isinf(counts).mean())
        slack = 3 * math.sqrt(chance * (1 - chance) / RUNS)
        compare.at_least(
            "share of NPG's runs away", share, chance - slack, at={"from": probability}
        )
    away = sampled_counts(
        SampledRemedy("di", exploration=floor), "bad turns good", 100, n_runs=RUNS
    )
    compare.equal("runs of DI that return", int(np.isfinite(away).sum()), 0, at={"n": 100})
    for name in ("di", "npg"):
        remedy = SampledRemedy(name, exploration=0.05)
        counts = sampled_counts(remedy, "bad turns good", 100, n_runs=RUNS)
        compare.true("all runs return with a floor", np.isfinite(counts).all(), at={"update": name})
    compare.report(silent=round(silent, 3), runs=RUNS, back=int(np.isfinite(away).sum()))


@check(
    "remedies:group",
    wrong={
        "CE with a critic in its place": {"update": "ce"},
        "the bonus in all runs": {"bonus": 0.1},
        "a bonus that normalising does not disarm": {"normalised": False},
    },
)
def groups_are_no_faster(
    compare: Recorder, update: str = "group", bonus: float = 0.0, normalised: bool = True
) -> None:
    """Median counts are between 0.9 n and 2.5 n; a bonus reduces them unless normalised, too."""
    better = list(CHANGES)[2]

    def median(remedy: SampledRemedy, n: int, seed: int, change: str = better) -> float:
        return sampled_median(remedy, change, n, n_runs=RUNS, most=3 * n, seed=seed)

    for group, floor, divided in product((4, 16), (0.0, 0.05), (False, True)):
        remedy = SampledRemedy(
            update, exploration=floor, entropy=bonus, normalised=divided, group=group
        )
        at = {"G": group, "floor": floor, "normalised": divided}
        medians = {(n, seed): median(remedy, n, seed) for n, seed in product((50, 300), (1, 2))}
        for (n, seed), middle in medians.items():
            ratio = middle / n
            compare.at_least("median of n'/n", ratio, 0.9, at=at | {"n": n, "seed": seed})
            compare.at_most("median of n'/n", ratio, 2.5, at=at | {"n": n, "seed": seed})
        worse = median(remedy, 50, 1, list(CHANGES)[1])
        compare.equal("median, good turns bad", worse, medians[50, 1], at=at)
    for group, seed in product((4, 16), (1, 2)):
        at = {"G": group, "seed": seed}
        plain = SampledRemedy("group", entropy=0.1, group=group)
        compare.at_most("n'/n with the bonus", median(plain, 500, seed) / 500, 0.2, at=at)
        normalised_too = SampledRemedy("group", entropy=0.1, normalised=normalised, group=group)
        compare.at_least(
            "n'/n, normalised too", median(normalised_too, 500, seed) / 500, 0.5, at=at
        )
    shown = {
        "plain": SampledRemedy("group"),
        "divided": SampledRemedy("group", normalised=True),
        "bonus": SampledRemedy("group", entropy=0.1),
        "both": SampledRemedy("group", entropy=0.1, normalised=True),
    }
    late = {name: median_of(x, better, 500, n_runs=RUNS, seed=1) for name, x in shown.items()}
    compare.report(
        runs=RUNS,
        level=LEVEL,
        **{name: str(x) for name, x in late.items()},
        **{f"{name} regret": _short(x.regret) for name, x in late.items()},
    )


@check("remedies:samples", wrong={"exploration by default": {"floor": 0.05}})
def medians_with_samples(compare: Recorder, floor: float = 0.0) -> None:
    """CE and DI return soon if the good action turns bad, and otherwise need exploration."""

    def median(name: str, change: str, exploration: float) -> Median:
        remedy = SampledRemedy(name, exploration=exploration)
        return median_of(remedy, change, 100, n_runs=RUNS)

    worse, better = list(CHANGES)[1:]
    for name in ("ce", "di"):
        at = {"update": name}
        compare.at_most("median, good turns bad", median(name, worse, floor).value, 10, at=at)
        compare.at_most("median with a floor", median(name, better, 0.05).value, 50, at=at)
    slow = median("pg-sm", worse, floor).value
    compare.at_least("median of PG-SM, good turns bad", slow, 50)
    silent = median("ce", better, floor)
    compare.at_least("median of CE, bad turns good", silent.value, 200)
    compare.report(
        runs=RUNS,
        level=LEVEL,
        **{
            "ce without": str(silent),
            "ce with": str(median("ce", better, 0.05)),
            "di with": str(median("di", better, 0.05)),
            "pg with": str(median("pg-sm", better, 0.05)),
        },
    )


@check(
    "remedies:corrected",
    wrong={
        "k3 in the loss in place of the divergence": {"estimator": True},
        "normalising does not matter": {"normalised": False},
    },
)
def corrected_estimator_hardly_helps(
    compare: Recorder, estimator: bool = False, normalised: bool = True
) -> None:
    """After 1000 steps k3 in the loss bounds the count, and the gradient of the KL hardly does."""
    limits = {(0.04, False): (25, 600), (0.001, False): (500, 990)}
    limits |= {(0.04, True): (40, 1001), (0.001, True): (700, 1001)}
    for (beta, divided), (most, least) in limits.items():
        at = {"penalty": beta, "normalised": divided}
        remedy = Remedy(penalty=beta, normalised=divided and normalised)
        [loss] = outcomes(replace(remedy, estimator=True), [1000])
        [divergence] = outcomes(replace(remedy, estimator=estimator), [1000])
        compare.at_most("n' with k3 in the loss", loss.count, most, at=at)
        compare.at_least("n' with the gradient of the KL", divergence.count, least, at=at)
        for name, outcome in (("k3", loss), ("kl", divergence)):
            key = f"{name} {beta}" + " normalised" * divided
            compare.report(**{key: int(outcome.count), f"regret {key}": _short(outcome.regret)})
    for name, kind in (("k3", True), ("kl", False)):
        count = count_after(Remedy(penalty=0.01, estimator=kind), 1000)
        compare.report(**{f"{name} 0.01": int(count)})


@check("remedies:cap", wrong={"no cap": {"cap": math.inf}, "a cap of 10 000": {"cap": 1e4}})
def cap_of_the_estimator_disarms_it(compare: Recorder, cap: float = 10.0) -> None:
    """With k3 cut at 10, PG-SM needs nearly n steps at each of three coefficients."""
    for beta, normalised in product((0.04, 0.01, 0.001), (False, True)):
        remedy = Remedy(penalty=beta, estimator=True, cap=cap, normalised=normalised)
        for outcome in outcomes(remedy, (1000, 3000)):
            at = {"penalty": beta, "normalised": normalised, "n": outcome.n}
            compare.at_least("n'/n", outcome.count / outcome.n, 0.95, at=at)
    low, high = 13.6, 13.7
    compare.at_most("k3 below the ratio of the cap", k3(low), 10.0)
    compare.at_least("k3 above the ratio of the cap", k3(high), 10.0)
    [capped] = outcomes(Remedy(penalty=0.04, estimator=True, cap=cap), [1000])
    [free] = outcomes(Remedy(penalty=0.04, estimator=True), [1000])
    compare.report(
        capped=int(capped.count), regret=_short(capped.regret), free=int(free.count),
        **{"free regret": _short(free.regret)},
    )  # fmt: skip


@check(
    "remedies:clip-higher",
    wrong={"a clip of 0.01 in place of 0.2": {"clip": 0.01}, "nothing saved": {"saved": 0.0}},
)
def clip_higher_saves_little(compare: Recorder, clip: float = 0.2, saved: float = 1.0) -> None:
    """Clipping increases at 0.28 instead of 0.2 saves at most two batches or 5 %."""
    kinds: dict[str, dict[str, Any]] = {
        "plain": {}, "normalised": {"normalised": True}, "Adam": {"adam": 0.01},
    }  # fmt: skip
    for epochs, (name, options) in product((4, 10), kinds.items()):
        counted = []
        for higher in (None, 0.28):
            remedy = Remedy(epochs=epochs, clip=clip, clip_higher=higher, **options)
            counted.append(
                {f"n = {x.n}": x.count for x in outcomes(remedy, (10, 100, 1000))}
                | {f"from {p}": count_from(remedy, p) for p in (0.9, 0.99)}
            )
        low, high = counted
        for place, count in low.items():
            at = {"epochs": epochs, "remedy": name, "start": place}
            most = saved * max(2.0, 0.05 * count)
            compare.at_most("batches saved", count - high[place], most, limit="2 or 5 %", at=at)
        if (epochs, name) == (4, "plain"):
            for side, row in (("low", low), ("high", high)):
                compare.report(
                    **{side: int(row["n = 1000"]), f"{side} from 0.99": int(row["from 0.99"])}
                )
    for p in (0.9, 0.999):
        once = [_one_batch(Remedy(clip=clip, clip_higher=higher), 1 - p) for higher in (None, 0.28)]
        compare.equal("policy after one epoch", once[1], once[0], at={"from": p})


@check(
    "remedies:target-entropy",
    wrong={
        "advantages as they are": {"normalised": False},
        "a target of 0.02": {"target": 0.02},
    },
)
def target_entropy_bounds_small_gaps(
    compare: Recorder, normalised: bool = True, target: float = 0.2
) -> None:
    """The adaptive bonus bounds the count up to a gap, and not with normalised advantages."""
    for gap, n in product((1.0, 0.1), (100, 300, 1000, 3000)):
        outcome = varied_outcome(target_entropy(target), n, gap)
        at: dict[str, object] = {"gap": gap, "n": n}
        compare.at_most("n'", outcome.count, 20 if gap == 1 else 130, at=at)
        compare.at_least("share of the gap lost", outcome.regret / gap, 0.02, at=at)
        compare.at_most("share of the gap lost", outcome.regret / gap, 0.07, at=at)
        if n == 1000:
            compare.report(**{f"gap {gap:g}": int(outcome.count)})
            compare.report(**{f"regret {gap:g}": _short(outcome.regret)})
    large = varied_outcome(target_entropy(target), 3000, 10.0)
    compare.at_least("n' at a gap of 10", large.count, 200)
    compare.report(**{"gap 10": int(varied_outcome(target_entropy(target), 1000, 10.0).count)})
    for n, most in product((1000, 3000), (1.0, 2.0)):
        count = varied_outcome(target_entropy(target, most=most, normalised=normalised), n).count
        compare.at_least("n'/n, normalised", count / n, 0.85, at={"n": n, "largest bonus": most})
        if (n, most) == (1000, 1.0):
            compare.report(normalised=int(count))


@check(
    "remedies:decaying-bonus",
    wrong={"a bonus that stays": {"steps": math.inf}, "nothing saved": {"saved": 0}},
)
def decaying_bonus_bounds_nothing(
    compare: Recorder, steps: float = 1000.0, saved: int = 500
) -> None:
    """After a bonus has fallen to zero the count grows by one for each step."""
    ns = (1000, 2000, 4000)
    after = [varied_outcome(decaying_bonus(0.2, steps), n) for n in ns]
    for x in after:
        compare.equal("n'", x.count, x.n - saved, tolerance=15, limit=f"n - {saved}", at={"n": x.n})
    compare.report(
        counts=", ".join(str(x.count) for x in after),
        regrets=[_short(x.regret) for x in after],
        constant=int(count_after(Remedy(entropy=0.2), 4000)),
    )


@check(
    "remedies:deviation",
    wrong={"the deviation dropped twice": {"divided": False}, "a larger bonus": {"bonus": 1.6}},
)
def deviation_decides_what_a_bonus_does(
    compare: Recorder, divided: bool = True, bonus: float = 0.1
) -> None:
    """Dividing keeps the counts after n, shortens those from a policy, and disarms the bonus."""
    plain, normalised = Remedy(), Remedy(normalised=divided)
    for one, two in zip(
        *(outcomes(x, (100, 300, 1000, 3000)) for x in (plain, normalised)), strict=True
    ):
        at = {"n": one.n}
        compare.equal("n' of both", two.count, one.count, tolerance=8, limit="plain", at=at)
        compare.at_most("regret with the deviation", two.regret, 0.1 * one.regret, at=at)
        if one.n == 1000:
            for name, x in (("plain", one), ("divided", two)):
                compare.report(**{name: int(x.count), f"{name} regret": _short(x.regret)})
    back = {name: count_from(x, 0.999) for name, x in (("plain", plain), ("divided", normalised))}
    compare.at_least("n' from 0.999", back["plain"], 10 * back["divided"])
    bounded = count_after(Remedy(entropy=0.1), 3000)
    compare.at_most("n' with the bonus", bounded, 750)
    kept_up = count_after(Remedy(normalised=divided, entropy=bonus), 3000)
    compare.at_least("n' with the bonus and the deviation", kept_up, 2900)
    compare.report(
        **{f"{name} back": int(count) for name, count in back.items()},
        **{
            "plain bonus": int(bounded),
            "divided bonus": int(kept_up),
        },
    )


class _Counted(np.random.Generator):
    """A generator that counts the binomial numbers that it draws: the groups of the runs."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64(seed))
        self.groups = 0

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        numbers = super().binomial(n, p, size)
        self.groups += np.size(numbers)
        return numbers


@check(
    "remedies:dynamic-sampling",
    wrong={"with an entropy bonus": {"entropy": 0.1}, "no redraws": {"redraws": 0}},
)
def dynamic_sampling_saves_no_sample(
    compare: Recorder, entropy: float = 0.0, redraws: int = 9
) -> None:
    """With the same random numbers the same groups are drawn, in fewer updates."""
    plain = SampledRemedy("group", normalised=True, entropy=entropy)
    redrawn = replace(plain, redraws=redraws)
    for probability, seed in product((0.99, 0.999), range(10)):
        at = {"from": probability, "seed": seed}
        groups, updates = [], []
        for remedy in (plain, redrawn):
            rng = _Counted(seed)
            [count] = sampled_counts(remedy, "swap", probability=probability, n_runs=1, seed=rng)
            groups.append(rng.groups)
            updates.append(count)
        compare.equal("groups drawn with redraws", groups[1], groups[0], at=at)
        compare.at_most("updates with redraws", updates[1], updates[0] - 1, at=at)
    figures: dict[str, str | float] = {}
    for name, remedy in (("updates", plain), ("redrawn", redrawn)):
        figures[name] = str(median_of(remedy, "swap", probability=0.9995, n_runs=400))
    for name, remedy in (("", plain), ("redrawn ", redrawn)):
        median = median_of(remedy, "swap", 1000, n_runs=RUNS, most=3000)
        figures |= {f"{name}after": str(median), f"{name}regret": _short(median.regret)}
    compare.report(runs=400, level=LEVEL, **figures)


@check("remedies:mask", wrong={"half of the penalty": {"share": 0.5}})
def mask_of_agreeing_groups_changes_nothing(compare: Recorder, share: float = 1.0) -> None:
    """The penalty of groups with both rewards gives the count of the penalty of all groups."""
    for size, beta, normalised in product((8, 64), (0.04, 0.001), (False, True)):
        everywhere, masked = (
            group_outcome(1000, size, coefficient, mask, normalised)
            for coefficient, mask in ((beta, False), (share * beta, True))
        )
        at = {"G": size, "penalty": beta, "normalised": normalised}
        compare.equal("n' with the mask", masked.count, everywhere.count, tolerance=1, at=at)
        if size == 8 and not normalised:
            small = " small" * (beta == 0.001)
            compare.report(
                **{f"masked{small}": int(masked.count), f"all{small}": int(everywhere.count)}
            )


@check(
    "remedies:reference-odds",
    wrong={
        "the gradient of the divergence": {"estimator": False},
        "a reference that stays": {"share": 0.0},
    },
)
def certain_references_do_not_help(
    compare: Recorder, estimator: bool = True, share: float = 0.6
) -> None:
    """Counts grow with the odds of the reference, whether it is given or moves to the policy."""
    limits = {1.0: (0, 30), 9.0: (0, 110), 99.0: (900, math.inf), 1e3: (5000, math.inf)}
    limits[1e6] = (10_000, math.inf)
    late = []
    for odds, (least, most) in limits.items():
        remedy = Remedy(penalty=0.04, estimator=estimator, reference=odds / (1 + odds))
        [outcome] = outcomes(remedy, [10_000])
        compare.at_least("n'", outcome.count, least, at={"odds": odds})
        compare.at_most("n'", outcome.count, most, at={"odds": odds})
        late.append(outcome)
    moving = [
        varied_outcome(moving_reference(0.04, estimator, share=share), n)
        for n in (1000, 1500, 3000)
    ]
    compare.at_least("n' with a moving reference", moving[0].count, 100, at={"n": 1000})
    compare.at_least("n' with a moving reference", moving[2].count, 1800, at={"n": 3000})
    [plain] = outcomes(Remedy(), [1000])
    known = 1 - plain.regret
    starts = {
        name: count_from(Remedy(penalty=0.04, estimator=estimator, reference=reference), known)
        for name, reference in (("uniform", 0.5), ("nine", 0.9), ("itself", known))
    }
    compare.at_most("n' if the penalty starts at the change", starts["uniform"], plain.count / 10)
    compare.at_least("n' towards the policy itself", starts["itself"], plain.count)
    compare.report(
        odds=[int(odds) for odds in limits],
        counts=", ".join(str(int(x.count)) for x in late),
        regrets=[_short(x.regret) for x in late],
        moving=", ".join(str(int(x.count)) for x in moving),
        regret=_short(plain.regret),
        plain=int(plain.count),
        **{name: int(count) for name, count in starts.items()},
    )


@check("remedies:restart-adam", wrong={"no restart": {"restart": False}})
def restarting_adam_helps(compare: Recorder, restart: bool = True) -> None:
    """Adam with averages of zero at the change needs fewer steps, at usual rates far fewer."""
    figures: dict[str, list[int]] = {}
    regrets = []
    for rate in (0.01, 0.1, 0.0003):
        remedy = Remedy(adam=rate)
        for outcome in outcomes(remedy, (1000, 10_000)):
            # from a policy Adam has seen no gradient, as after a restart
            again = count_from(remedy, 1 - outcome.regret) if restart else outcome.count
            at = {"step size": rate, "n": outcome.n}
            if rate == 0.0003:
                compare.at_least("share of n' left", again / outcome.count, 0.9, at=at)
            else:
                most = 0.5 if outcome.n == 1000 else 0.25
                compare.at_most("share of n' left", again / outcome.count, most, at=at)
            figures.setdefault(f"kept {rate}", []).append(int(outcome.count))
            figures.setdefault(f"restarted {rate}", []).append(int(again))
            regrets += [_short(outcome.regret)] if rate == 0.01 else []
    words = {name: " and ".join(map(str, row)) for name, row in figures.items()}
    compare.report(
        kept=words["kept 0.01"], restarted=words["restarted 0.01"], regrets=regrets,
        **{"small kept": words["kept 0.0003"], "small restarted": words["restarted 0.0003"]},
    )  # fmt: skip


@check(
    "remedies:explored",
    wrong={
        "with the ratio": {"ratio": True},
        "without random actions": {"exploration": 0.0},
        "k3 of the samples": {"expected": False},
    },
)
def exploration_without_ratio_outruns_penalties(
    compare: Recorder, ratio: bool = False, exploration: float = 0.05, expected: bool = True
) -> None:
    """Random actions without a ratio push more than the mean penalty of the policy pulls."""
    ns, change = (300, 1000, 2000), "bad turns good"

    def medians(remedy: SampledRemedy) -> list[Median]:
        return [median_of(remedy, change, n, n_runs=RUNS, most=3000) for n in ns]

    grpo = SampledRemedy("group", normalised=True, penalty=0.04, expected=True)
    free = replace(grpo, exploration=exploration, ratio=ratio, expected=expected)
    rows = {
        "mean": free,
        "ratio": replace(grpo, exploration=0.05, ratio=True),
        "none": grpo,
        "samples": replace(grpo, exploration=0.05, expected=False),
    }
    results = {name: medians(remedy) for name, remedy in rows.items()}
    for name, row in results.items():
        for n, median in zip(ns, row, strict=True):
            at = {"n": n, "with": name}
            if name == "mean":
                compare.at_least("median of n'/n", median.value / n, 0.45, at=at)
            else:
                compare.at_most("median of n'", median.high, 30, at=at)
    bonus = SampledRemedy("group", entropy=0.1)
    loose = replace(bonus, exploration=exploration, ratio=ratio)
    for name, remedy, most in (
        ("bonus", loose, math.inf),
        ("bonus ratio", replace(bonus, exploration=0.05, ratio=True), 80),
        ("bonus none", bonus, 80),
    ):
        row = results[name] = medians(remedy)
        for n, median in zip(ns, row, strict=True):
            at = {"n": n, "with": name}
            if name == "bonus":
                compare.at_least("median of n'/n", median.value / n, 0.6, at=at)
            else:
                compare.at_most("median of n' with the bonus", median.value, most, at=at)
    compare.report(
        runs=RUNS,
        level=LEVEL,
        **{name: ", ".join(map(str, row)) for name, row in results.items()},
        **{f"{name} regret": _short(results[name][2].regret) for name in ("mean", "samples")},
    )


@check(
    "remedies:many-actions",
    wrong={"the policy of two actions": {"others": 1}, "half of the bonus": {"share": 0.5}},
)
def price_of_a_bonus_grows_with_the_actions(
    compare: Recorder, others: int = 0, share: float = 1.0
) -> None:
    """The softmax of q/τ stays where it is, runs end there, and half is lost from log(A - 1) on."""
    update = UPDATES["pg-sm"]
    for n_actions, tau in product((2, 19, 1000, 100_000), (0.5, 0.1)):
        q = np.zeros(n_actions)
        q[0] = 1.0
        policy = np.exp((q - 1) / tau)
        policy /= policy.sum()
        at = {"actions": n_actions, "bonus": tau}
        values = q - share * tau * np.log(policy)
        moved = policy * (values - policy @ values)
        compare.at_most("step at the fixed point", float(np.abs(moved).max()), 1e-12, at=at)
        regret = many_actions_regret(tau, others + 1 if others else n_actions)
        compare.equal("regret", regret, float(1 - policy[0]), tolerance=1e-9, at=at)
        half = math.log(n_actions - 1) > 1 / tau
        compare.equal("more than half is lost", float(1 - policy[0]) > 0.5, half, at=at)
    for n_actions in (2, 19):
        theta, q = np.zeros(n_actions), np.eye(n_actions)[0]
        for _ in range(4000):
            policy = update.policy(theta)
            theta = update.step(theta, q - share * 0.5 * np.log(policy), 1.0)
        end = float(1 - update.policy(theta)[0])
        at = {"actions": n_actions, "bonus": 0.5}
        compare.equal(
            "regret of a run", end, many_actions_regret(0.5, n_actions), tolerance=1e-6, at=at
        )
    compare.report(
        **{
            str(a): percent(many_actions_regret(0.1, a), 3 if a == 2 else 1)
            for a in (2, 19, 100_000)
        }
    )
