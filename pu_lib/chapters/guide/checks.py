"""Checks of the claims behind the recommendations, on more settings than the guide's table has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise, product

import numpy as np

from pu_lib.chapters.function_approximation.quantities import contexts, neural
from pu_lib.chapters.guide.quantities import (
    COMPARED,
    EQUAL,
    STARTS,
    Numbers,
    equal_start,
    final_performance,
    greedy_control,
    initial_offset,
    linear,
    many,
    off_policy,
    off_policy_mean,
    sampled,
    sampled_changing,
    ties,
)
from pu_lib.chapters.literature.quantities import crossing_times, hard_chain, ladder_times
from pu_lib.chapters.remedies.quantities import (
    CHANGES,
    SampledRemedy,
    median_of,
    sampled_median,
    sampled_outcomes,
)
from pu_lib.chapters.unlearning.quantities import counts, steps_to_half
from pu_lib.claims.recorder import Recorder, check
from pu_lib.experiments.results import PANELS, SARSA_LIMIT, committed
from pu_lib.formatting import percent
from pu_lib.updates import label_of

TO_BEST = ("ce", "sce", "mce")
"""The updates that move the policy towards the greedy action."""


def _compare_order(
    compare: Recorder, quantity: str, numbers: Numbers, order: Sequence[Sequence[str]], **at: object
) -> None:
    """Compare the numbers of each group of updates with the smallest of the next group."""
    for group, later in pairwise(order):
        for name in group:
            nearest = min(later, key=numbers.__getitem__)
            compare.at_most(
                quantity, numbers[name], numbers[nearest], limit="that of the next",
                at={**at, "update": label_of(name), "next": label_of(nearest)},
            )  # fmt: skip


@check(
    "guide:exact",
    wrong={
        "CE is done first": {"order": (("ce",), ("di",))},
        "PG-SM is not the last": {"order": (("pg-sm",), ("pg-es",))},
        "CE takes as many steps at the same weight": {"large": 40.0},
    },
)
def ladder_has_an_order(
    compare: Recorder,
    order: Sequence[Sequence[str]] = (("di",), TO_BEST, ("npg", "pg-es"), ("pg-sm",)),
    large: float = 4000.0,
) -> None:
    """The updates climb the ladder in the stated order, and CE like DI at a large weight."""
    for copies in (20.0, 50.0):
        steps = {name: ladder_times(name, copies)[-1] for name in COMPARED}
        _compare_order(compare, "steps to the top", steps, order, copies=copies)
    ladder = hard_chain(8, 50.0)
    direct, greedy = (crossing_times(name, ladder, large, 100)[-1] for name in ("di", "ce"))
    compare.equal("steps of CE at a large weight", greedy, direct, limit="those of DI")
    compare.report(**steps, large=direct)


@check(
    "guide:sampled",
    wrong={
        "NPG is safe, too": {"safe": ("pg-sm", "npg")},
        "DI is safe at a tenth of the weight": {"small": {"pg-es": 0.1, "di": 0.1}},
    },
)
def samples_need_policy_gradient_or_small_weights(
    compare: Recorder,
    safe: Sequence[str] = ("pg-sm",),
    small: dict[str, float] = {"pg-es": 0.1, "di": 1 / 30},  # noqa: B006 it is not changed
) -> None:
    """Only PG-SM finds the best arm at weight 1; PG-ES and DI do at small weights."""

    def shares(names: Sequence[str], weight: float) -> Numbers:
        return sampled(1000, weight=weight, names=names, seed=12)

    for name, weight in small.items():
        share = shares([name], weight)[name]
        at: dict[str, object] = {"update": label_of(name), "weight": weight}
        compare.at_least("share at a small weight", share, 0.95, limit="95 %", at=at)
    at_weight_1 = shares(COMPARED, 1.0)
    for name, share in at_weight_1.items():
        at = {"update": label_of(name)}
        if name in safe:
            compare.at_least("share of PG-SM", share, 0.95, limit="95 %", at=at)
        else:
            compare.at_most("share of the others", share, 0.7, limit="70 %", at=at)
    share = shares(["di"], 0.1)["di"]
    compare.at_most("share of DI at the weight 0.1", share, 0.95, limit="95 %")
    compare.report(**{name: percent(share, 1) for name, share in at_weight_1.items()})


@check(
    "guide:sampled-changing",
    wrong={
        "NPG comes back soon, too": {"quick": ("ce", "di", "npg")},
        "the group's advantages come back before n": {"share": 2.0},
    },
)
def greedy_targets_return_from_samples(
    compare: Recorder, quick: Sequence[str] = ("ce", "di"), share: float = 1.0
) -> None:
    """With learned values and exploration CE and DI return soon; the gradients need about n.

    Counts from regrets that differ by orders of magnitude do not compare two updates, so the
    regrets at the change are measured, too.
    """
    for n, change in product((100, 1000), CHANGES):
        medians = sampled_changing(n, change)
        for name in quick:
            at = {"n": n, "change": change, "update": label_of(name)}
            compare.at_most("median n'", medians[name], 50, limit="50", at=at)
        slow = {"PG-SM": medians["pg-sm"]}
        explored = {}
        for label, normalised in (("group", False), ("normalised group", True)):
            group = SampledRemedy("group", normalised=normalised)
            slow[label] = sampled_median(group, change, n)
            explored[label] = sampled_median(replace(group, exploration=0.05), change, n)
        for label, steps in slow.items():
            at = {"n": n, "change": change, "update": label}
            compare.at_least("median n' of gradients", steps, share * n, limit="n", at=at)
        for label, steps in explored.items():
            at = {"n": n, "change": change, "update": label, "exploration": 0.05}
            compare.at_least(
                "median n' of gradients", steps, 0.97 * share * n, limit="0.97 n", at=at
            )
        figures = {label_of(name): steps for name, steps in medians.items()}
        if change == "swap":
            compare.report(**{f"{label} after {n}": int(k) for label, k in figures.items()})
            compare.report(**{f"explored after {n}": int(explored["normalised group"])})
            for label, normalised in (("group", False), ("normalised group", True)):
                group = SampledRemedy("group", normalised=normalised)
                compare.report(**{f"{label} after {n}": str(median_of(group, change, n))})
            remedies = {label_of(name): SampledRemedy(name, exploration=0.05) for name in medians}
            remedies["group"] = SampledRemedy("group", normalised=True, exploration=0.05)
            regrets = {
                label: float(np.median(sampled_outcomes(remedy, change, n, most=0)[0]))
                for label, remedy in remedies.items()
            }
            compare.report(**{f"regret of {x} after {n}": f"{r:.1g}" for x, r in regrets.items()})
            if n == 1000:
                decades = float(np.log10(regrets["group"] / regrets["CE"]))
                compare.at_most("decades above CE's regret", decades, -50, limit="-50")
        if change == "bad turns good":
            compare.report(**{f"CE to a good one after {n}": int(figures["CE"])})


@check(
    "guide:equal-start",
    wrong={
        "CE is first if the bad action turns good": {"better": "CE"},
        "GRPO is first after a swap": {"swapped": "GRPO"},
        "the ratio does not matter": {"ratio": False},
    },
)
def exploration_and_kind_of_change_decide(
    compare: Recorder, better: str = "GRPO", swapped: str = "CE", ratio: bool = True
) -> None:
    """From one policy CE leads if the good action turns bad; else it depends on exploration."""
    kinds = [(0.0, False), (0.05, False), (0.05, ratio)]
    for start, change, (exploration, weighted) in product(STARTS, CHANGES, kinds):
        for name in EQUAL:
            if weighted and name == "CE":
                continue
            median = equal_start(name, start, change, exploration, weighted)
            key = f"{name}, {start}, {change}, {exploration:g}" + ", ratio" * weighted
            compare.report(**{key: str(median)})
    start = "0.9995"

    def ahead(first: str, then: str, change: str, exploration: float) -> None:
        medians = [equal_start(name, start, change, exploration, False) for name in (first, then)]
        at = {"change": change, "exploration": exploration, "first": first, "then": then}
        compare.at_most("upper end of n'", medians[0].high, medians[1].low - 1, at=at)

    others = {"GRPO": "CE", "CE": "GRPO"}
    for exploration, change in product((0.0, 0.05), ("swap", "good turns bad")):
        ahead(swapped, others[swapped], change, exploration)
    ahead(better, others[better], "bad turns good", 0.0)
    tie = [equal_start(name, start, "bad turns good", 0.05, False) for name in ("GRPO", "CE")]
    compare.equal("n' of GRPO and CE", tie[0].value, tie[1].value, tolerance=5, limit="up to 5")
    slow = equal_start("GRPO", start, "swap", 0.05, ratio)
    compare.at_least("n' of GRPO with the ratio", slow.low, 10 * tie[0].value)
    for change, exploration in product(CHANGES, (0.0, 0.05)):
        ahead("GRPO", "without deviation", change, exploration)
    late = [equal_start(name, "1000 steps", "swap", 0.05, False).regret for name in ("GRPO", "CE")]
    compare.at_most("decades of regret above CE's", float(np.log10(late[0] / late[1])), -50)


@check(
    "guide:off-policy",
    wrong={
        "NPG is the fastest": {"fastest": "npg"},
        "acting greedily is best on Random MDPs, too": {"exploring": ("random-mdp/HiOffPol",)},
    },
)
def direct_is_first_with_data_of_another_policy(
    compare: Recorder,
    fastest: str = "di",
    exploring: Sequence[str] = ("chain/LowOffPol", "chain/HiOffPol", "cliff"),
) -> None:
    """DI is the fastest on Random MDPs; no update beats a greedy policy on the chain and cliff."""
    middles = greedy_control()["off-policy"]
    for statistic, greedy, measured in zip(
        ("median", "mean"), middles, (off_policy(), off_policy_mean()), strict=True
    ):
        others = {label_of(name): steps for name, steps in measured.items() if name != fastest}
        for name, steps in {**others, "greedy": greedy}.items():
            compare.at_most(
                "steps on Random MDPs", measured[fastest], steps, limit="those of the others",
                at={"statistic": statistic, "other": name},
            )  # fmt: skip
        compare.report(**{f"{statistic} of DI": round(measured["di"]), statistic: round(greedy)})
    for name in exploring:
        panel = PANELS[name]
        limit = "greedy-limit" if panel.experiment == "random-mdp" else SARSA_LIMIT
        curves, greedy_curves = (
            committed().of(replace(panel, experiment=experiment))
            for experiment in (panel.experiment, limit)
        )
        for statistic, most in (("median", 1.0), ("mean", 1.01)):
            best = float(curves.point(statistic).min())
            compare.at_most(
                "steps of a greedy policy", float(greedy_curves.point(statistic).min()),
                most * best, limit="the fewest of an update, 1 % more for means",
                at={"panel": panel.words, "statistic": statistic},
            )  # fmt: skip


@check(
    "guide:changing",
    wrong={
        "NPG takes as few as CE": {"few": ("ce", "sce", "mce", "npg")},
        "PG-SM takes less than n": {"slow": -1},
    },
)
def direct_returns_at_once(compare: Recorder, few: Sequence[str] = TO_BEST, slow: int = 7) -> None:
    """DI needs one update, CE and its modifications a few, NPG n, and the gradients more."""
    figures: dict[str, int] = {}
    for n in (10, 30, 100, 300, 1000):
        needed = {name: int(counts([n], name)[0]) for name in COMPARED}
        compare.equal("n' of DI", needed["di"], 1, limit="1", at={"n": n})
        compare.equal("n' of NPG", needed["npg"], n, limit="n", at={"n": n})
        for name in few:
            at = {"n": n, "update": label_of(name)}
            compare.equal("n'", needed[name], needed["ce"], limit="that of CE", at=at)
            compare.at_most("n'", needed[name], 4, limit="4", at=at)
        compare.at_least("n' of PG-SM", needed["pg-sm"], n, limit="n", at={"n": n})
        compare.at_most("n' of PG-SM", needed["pg-sm"], n + slow, limit=f"n + {slow}", at={"n": n})
        compare.equal(
            "n'/n of PG-ES", needed["pg-es"] / n, 2.5, tolerance=0.05, limit="5/2", at={"n": n}
        )
        if n in (100, 1000):
            figures |= {("long " if n == 1000 else "") + name: k for name, k in needed.items()}
    back = {name: steps_to_half(name, 0.999) for name in ("di", "ce", "npg", "pg-sm")}
    compare.at_most(
        "steps of NPG from the probability 0.999", back["npg"], 2 * back["ce"], limit="twice CE's"
    )
    compare.at_least(
        "steps of PG-SM from the probability 0.999", back["pg-sm"], 100 * back["ce"],
        limit="100 times CE's",
    )  # fmt: skip
    compare.report(**figures, **{f"back {name}": int(steps) for name, steps in back.items()})


_linear = cache(linear)
"""The results of `linear`, which the wrong variants of its claim use again."""


@cache
def _end(update: str, seed: int, rate: float) -> float:
    """Return the final performance on the contexts with the network of a seed."""
    task = contexts()
    scores = neural(task.features, 3, initial_offset(update), seed=seed)
    return final_performance(update, task, scores, rate)


@check(
    "guide:linear",
    wrong={
        "CE ends as near as a fit": {"fits": ("di", "npg", "ce")},
        "CE ends ahead of MCE": {"order": (("mce",), ("ce", "sce"))},
    },
)
def fits_end_nearer_than_the_chain_rule(
    compare: Recorder,
    fits: Sequence[str] = ("di", "npg"),
    order: Sequence[Sequence[str]] = (("pg-sm", "pg-es"), ("ce", "sce"), ("mce",)),
) -> None:
    """Fits of DI and NPG reach the optimum after a reversal; the chain rule ends below it."""
    for draw in (1, 2):
        ends = _linear(draw)
        for name in fits:
            at: dict[str, object] = {"draw": draw, "update": label_of(name)}
            compare.at_least("end of a fit", ends[name], 0.999, limit="0.999", at=at)
        _compare_order(compare, "end by the chain rule", ends, order, draw=draw)
        compare.at_least("end of MCE", ends["mce"], 0.97, limit="0.97", at={"draw": draw})
        compare.at_most("end of MCE", ends["mce"], 0.99, limit="0.99", at={"draw": draw})
        apart = abs(ends["ce"] - ends["sce"])
        compare.at_most("CE less SCE", apart, 0.001, limit="0.001", at={"draw": draw})
        if draw == 1:
            compare.report(**{name: percent(end, 1) for name, end in ends.items()})


BEST_WEIGHTS = {"npg": 1.0, "ce": 3.0, "sce": 3.0, "mce": 3.0, "pg-es": 3.0, "pg-sm": 0.3}
"""The weight at which each update is best in the guide's row on a network."""


@check(
    "guide:network",
    wrong={
        "CE ends nearer than NPG": {"order": (("npg",), ("ce", "sce"))},
        "NPG does not fail at weight 3": {"failures": 0},
    },
)
def natural_gradient_ends_nearest_with_networks(
    compare: Recorder,
    order: Sequence[Sequence[str]] = (("mce", "pg-es", "pg-sm"), ("ce", "sce"), ("npg",)),
    failures: int = 1,
) -> None:
    """NPG ends nearest to the optimum, then CE and SCE, then the others; NPG may fail."""
    lacks: dict[str, list[float]] = {"npg": [], "ce": []}
    failed = 0
    for seed in (1, 2):
        ends = {name: _end(name, seed, weight) for name, weight in BEST_WEIGHTS.items()}
        _compare_order(compare, "end", ends, order, network=seed)
        apart = abs(ends["ce"] - ends["sce"])
        compare.at_most("CE less SCE", apart, 0.001, limit="0.001", at={"network": seed})
        lacks["npg"].append(1 - ends["npg"])
        lacks["ce"] += [1 - ends["ce"], 1 - ends["sce"]]
        large = _end("npg", seed, 3.0)
        failed += int(large < 0.6)
        at = {"network": seed}
        compare.true("NPG at weight 3 fails or arrives", large < 0.6 or large > 0.999, at=at)
    compare.equal("networks with which NPG fails at weight 3", failed, failures, limit="1")
    compare.report(
        **{
            "lack of NPG": percent(max(lacks["npg"]), 3),
            "lack of CE": percent(min(lacks["ce"]), 2),
            "most": percent(max(lacks["ce"]), 2),
        }
    )


@check(
    "guide:many",
    wrong={
        "CE takes as many as DI": {"most": 1.0},
        "NPG takes one at weight 10": {"at_once": ("di", "npg")},
    },
)
def direct_is_first_with_many_actions(
    compare: Recorder, most: float = 2.0, at_once: Sequence[str] = ("di", *TO_BEST)
) -> None:
    """DI takes nine updates with any number of actions, CE at most twice as many."""
    for n_actions in (10, 30, 100):
        steps, at = many(n_actions), {"actions": n_actions}
        compare.equal("updates of DI", steps["di"], 9.0, limit="9", at=at)
        for name in TO_BEST:
            where = {**at, "update": label_of(name)}
            compare.equal("updates", steps[name], steps["ce"], limit="those of CE", at=where)
        compare.at_most("updates of CE", steps["ce"], most * steps["di"], limit="twice DI's", at=at)
        order = (("ce",), ("npg",), ("pg-sm", "pg-es"))
        _compare_order(compare, "updates", steps, order, **at)
        large = many(n_actions, weight=10.0)
        for name in at_once:
            where = {**at, "update": label_of(name)}
            compare.equal("updates at weight 10", large[name], 1.0, limit="1", at=where)
    compare.report(**steps)


@check(
    "guide:ties",
    wrong={
        "SCE jumps as CE does": {"jump": ("ce", "mce", "sce")},
        "PG-SM moves as little as DI": {"calm": ("di", "npg", "pg-es", "pg-sm")},
        "the weight 0.1 is small enough": {"least": 0.1},
    },
)
def near_ties_move_two_updates_only(
    compare: Recorder,
    jump: Sequence[str] = ("ce", "mce"),
    calm: Sequence[str] = ("di", "npg", "pg-es"),
    least: float = 0.01,
) -> None:
    """CE and MCE jump between two nearly equal actions, SCE a little, the others do not."""
    for noise in (1e-6, 1e-9):
        changes = ties(noise=noise)
        for name in changes:
            at: dict[str, object] = {"update": label_of(name), "noise": noise}
            if name in jump:
                compare.at_least("largest late change", changes[name], 0.2, limit="0.2", at=at)
            elif name in calm:
                compare.at_most("change", changes[name], 2 * noise, limit="twice the noise", at=at)
            else:
                limit = 1e-3 if name == "sce" else 1e-5
                compare.at_most("change", changes[name], limit, limit=f"{limit:g}", at=at)
        small = ties(noise=noise, weight=least, names=jump)
        for name, change in small.items():
            at = {"update": label_of(name), "noise": noise}
            compare.at_most("change at a small weight", change, 0.003, limit="0.3 %", at=at)
    compare.report(
        ce=percent(changes["ce"], 0),
        mce=percent(changes["mce"], 0),
        sce=percent(changes["sce"], 2),
        small=percent(max(small.values()), 2),
    )
