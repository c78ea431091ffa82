"""Checks of the claims on unlearning a reward hack."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np

from pu_lib.chapters.reward_hack import checks_tokens
from pu_lib.chapters.reward_hack.quantities import (
    LOG_ODDS_STEPS,
    count_error,
    exact_mean_count,
    gradient_steps,
    log_odds_step,
    lost_by,
    mean_count,
    protocol,
    runs_of,
    share_falls,
    summary,
    waits,
    waits_table,
)
from pu_lib.claims.recorder import Check, Recorder, check
from pu_lib.formatting import percent
from pu_lib.updates import UPDATES

StepOf = Callable[[str, int, float], float]

SILENT = tuple(LOG_ODDS_STEPS)
"""Methods that do nothing on a group whose samples all fail."""

TOKENS = tuple(one for one in vars(checks_tokens).values() if isinstance(one, Check))
"""The checks of `checks_tokens`."""

STARTS = tuple((start, level) for start, levels in protocol()["starts"].items() for level in levels)
"""The lengths of training and the certainties at which the verifier changes."""


def rloo_step_for_all(name: str, size: int, weight: float) -> float:
    """Return RLOO's step of the log-odds, for each method."""
    return log_odds_step("RLOO", size, weight)


def _cases() -> list[tuple[str, int, float]]:
    """Return methods, sizes and weights with few values of the log-odds on the way."""
    cases = list(product(SILENT, (2, 8), (1.0, 10.0))) + list(product(SILENT, (2,), (0.1,)))
    return cases + [(name, 64, 10.0) for name in SILENT if name != "GRPO"]


@check(
    "hack:waits",
    wrong={
        "one wait is enough": {"step_of": lambda *_: math.inf},
        "half the step": {"step_of": lambda *case: log_odds_step(*case) / 2},
        "RLOO's step for all": {"step_of": rloo_step_for_all},
    },
)
def mean_count_is_a_number_of_waits(compare: Recorder, step_of: StepOf = log_odds_step) -> None:
    """With two answers the exact mean count is 1/(1 - e^-s) waits, up to the stated error."""
    for (name, size, weight), eps in product(_cases(), (0.25, 0.01, 1e-4)):
        exact = eps * size * exact_mean_count(name, eps, size, weight)
        off = abs(exact - waits(step_of(name, size, weight)))
        bound = count_error(eps, size, log_odds_step(name, size, weight))
        at = {"method": name, "G": size, "step size": weight, "eps": eps}
        compare.at_most("error of the mean count, in waits", off, bound, at=at)


@check(
    "hack:waits/measured",
    wrong={
        "one wait is enough": {"step_of": lambda *_: math.inf},
        "RLOO's step for all": {"step_of": rloo_step_for_all},
        "1/s waits": {"first_order": lambda s: 1 / s},
    },
)
def measured_counts_follow_the_formula(
    compare: Recorder,
    step_of: StepOf = log_odds_step,
    first_order: Callable[[float], float] = waits,
) -> None:
    """With eight answers the measured mean counts are within 15 % of 1/(1 - e^-s) waits."""
    limit = protocol()["predictions"]["count_error"]
    largest: dict[float, float] = {}
    rows: list[dict[Any, Any]] = waits_table().to_dict("records")
    for row in rows:
        method, size, weight, seen = (row[x] for x in ("method", "size", "weight", "seen"))
        off = abs(row["mean"] / first_order(step_of(method, size, weight)) - 1)
        largest[seen] = max(largest.get(seen, 0.0), off)
        at = {"method": method, "G": size, "step size": weight, "G eps": seen}
        compare.at_most("relative error of the formula", off, limit, limit="0.15", at=at)
        compare.equal("runs that are lost", row["lost"], 0, limit="0", at=at)
    compare.report(
        cells=len(rows),
        **{f"at {seen:g}": f"{100 * off:.0f} %" for seen, off in largest.items()},
    )


GAINS: dict[str, Callable[[int], float]] = {
    "RLOO": lambda size: 1.0,
    "Dr. GRPO": lambda size: (size - 1) / size,
    "GRPO": lambda size: (size - 1) / size**0.5,
    "MaxRL": lambda size: size - 1.0,
    "rejection sampling": float,
    "best of the group": float,
}
"""The factor by which a group of a given size shortens the count at small weights."""


@check(
    "hack:sizes",
    wrong={
        "RLOO gains like the root of G": {"gains": {"RLOO": math.sqrt}},
        "GRPO gains like G": {"gains": {"GRPO": float}},
        "MaxRL does not gain": {"gains": {"MaxRL": lambda size: 1.0}},
    },
)
def larger_groups_help_some_methods(
    compare: Recorder, gains: dict[str, Callable[[int], float]] | None = None
) -> None:
    """From equal certainty, at small weights, the count falls as stated with the group size."""
    for name, gain in {**GAINS, **(gains or {})}.items():
        for size, weight in product((2, 8, 64), (0.1, 1.0, 10.0)):
            count, small = mean_count(name, 1.0, size, weight), 1 / (2 * weight * gain(size))
            at: dict[str, Any] = {"method": name, "G": size, "step size": weight}
            compare.at_least("mean count times eps", count, small, at=at)
            compare.at_most("mean count times eps", count, small + 1 / size, at=at)
        rows = waits_table()
        rows = rows[(rows.method == name) & (rows.weight == 0.1) & (rows.seen == 0.001)]
        few, many = rows[rows["size"] == 8].iloc[0], rows[rows["size"] == 64].iloc[0]
        measured = (few["mean"] / 8) / (many["mean"] / 64)
        expected = gain(64) / gain(8)
        off, at = abs(measured / expected - 1), {"method": name, "step size": 0.1}
        compare.at_most("relative error of the gain, measured", off, 0.15, limit="0.15", at=at)
        compare.report(**{name: round(float(measured), 1)})


@check(
    "hack:redrawn",
    wrong={"after equally many updates, too": {"start": "updates", "levels": (300, 1000, 3000)}},
)
def redrawing_saves_updates_and_no_sample(
    compare: Recorder,
    start: str = "certainty",
    levels: tuple[float, ...] = (0.99, 0.999, 0.9999),
) -> None:
    """From an equal certainty redrawn groups take GRPO's samples, in each run."""
    pair = ("GRPO", "GRPO, groups redrawn")
    for change, size, level in product(("swap", "fix"), (8, 64), levels):
        plain, redrawn = (
            runs_of(change, method, size, start, level)
            for method in ("GRPO", "GRPO, groups redrawn")
        )
        both = np.isfinite(plain.groups.to_numpy()) & np.isfinite(redrawn.groups.to_numpy())
        apart = plain.groups.to_numpy() != redrawn.groups.to_numpy()
        at = {"change": change, "G": size, "level": level}
        compare.equal("runs with other samples", int((apart & both).sum()), 0, limit="0", at=at)
        compare.at_least("runs compared", int(both.sum()), 150, limit="150", at=at)
    few, fewer = (summary("swap", method, 8, "certainty", 0.999) for method in pair)
    late, later = (summary("swap", method, 8, "updates", 1000) for method in pair)
    compare.report(
        updates=int(few.after),
        redrawn=int(fewer.after),
        times=f"{later.samples / late.samples:.1f}",
    )


@check(
    "hack:predictions",
    wrong={
        "RLOO is back in time in the partial change": {"lost": ("best of the group",)},
        "GRPO is as fast as its restart": {"restarted": "GRPO"},
        "GRPO is as fast as with samples of the reference": {"mixing": "GRPO"},
        "GRPO does not slow down": {"flat": "GRPO"},
    },
)
def predictions_come_true(
    compare: Recorder,
    lost: tuple[str, ...] | None = None,
    restarted: str | None = None,
    mixing: str | None = None,
    flat: str | None = None,
) -> None:
    """The predictions 3 to 7 of the protocol, except for GRPO's share in the third.

    The predictions 1 and 2 are claims of their own.
    """
    plan = protocol()["predictions"]
    certain = ("partial", 8, "certainty", 0.99)
    for method in lost or plan["lost"]["methods"]:
        share = lost_by("partial", method, *certain[1:], updates=plan["lost_at"])
        at: dict[str, Any] = {"method": method}
        least, quantity = plan["lost"]["least"], "share lost in partial"
        if method == "GRPO":
            compare.true("share of GRPO below 0.8", share < least, at=at)
            compare.report(missed=percent(share))
        else:
            compare.at_least(quantity, share, least, limit="0.8", at=at)
    well = summary("partial", plan["well"]["method"], *certain[1:])
    at, quantity = {"method": plan["well"]["method"]}, "median in partial"
    compare.at_most(quantity, well.after, plan["well"]["most"], limit="500", at=at)
    for change, (start, level) in product(("swap", "fix"), STARTS):
        name = restarted or plan["restart"]["method"]
        median = summary(change, name, 8, start, level).after
        at = {"change": change, "level": level}
        most = plan["restart"]["most"]
        compare.at_most("median of the restart", median, most, limit="40", at=at)
    for start, level in STARTS:
        name, most = mixing or plan["mixing"]["method"], plan["mixing"]["most"]
        median, at = summary("swap", name, 8, start, level).after, {"level": level}
        quantity = "median with samples of the reference"
        compare.at_most(quantity, median, most, limit="200", at=at)
    early, late = (
        summary("swap", flat or plan["flat"]["method"], 8, "updates", n).after for n in (300, 3000)
    )
    quantity, most = "median after 3000 over that after 300", plan["flat"]["most"]
    compare.at_most(quantity, late / early, most, limit="1.5", at={"method": "k3 0.04"})
    for name in ("RLOO", "GRPO", "MaxRL", "rejection sampling", "best of the group"):
        swap, fix = (summary(change, name, 8, "updates", 1000).after for change in ("swap", "fix"))
        at = {"method": name}
        compare.at_most(
            "median of swap over that of fix", swap / fix, plan["fix"], limit="3", at=at
        )


@check(
    "hack:restart",
    wrong={
        "in the partial change, too": {"changes": ("swap", "fix", "partial")},
        "ten times as soon from 0.99": {"from_least": 10.0},
        "a hundred times as soon from the others": {"from_others": 100.0},
    },
)
def a_restart_is_back_sooner(
    compare: Recorder,
    changes: tuple[str, ...] = ("swap", "fix"),
    from_least: float = 8.0,
    from_others: float = 50.0,
) -> None:
    """GRPO restarted from the reference is back in 26 updates or less, and so much sooner."""
    pair = ("GRPO, restart", "GRPO")
    for change, size, (start, level) in product(changes, (8, 64), STARTS):
        restarted, going_on = (summary(change, method, size, start, level) for method in pair)
        at = {"change": change, "G": size, "level": level}
        quantity = "upper end of the median of the restart"
        compare.at_most(quantity, restarted.high, 26, limit="26", at=at)
        times = from_least if level == 0.99 else from_others
        ratio, limit = going_on.low / restarted.high, f"{times:g}"
        compare.at_least("least ratio of the medians", ratio, times, limit=limit, at=at)
    restarted, going_on = (summary("swap", method, 8, "updates", 1000) for method in pair)
    compare.report(
        restarted=int(restarted.after),
        on=int(going_on.after),
        reference=protocol()["reference"][1],
        left=going_on.correct,
    )


@check(
    "hack:well",
    wrong={
        "if failing answers are likelier than the correct one": {"failing_over": 1.0},
        "if the hack pays less than half": {"pays": 0.4},
    },
)
def failing_answers_pay_the_hack(
    compare: Recorder, failing_over: float | None = None, pays: float = 0.5
) -> None:
    """The step of PG-SM lowers the odds of the correct answer to the hack as stated."""
    rng, step = np.random.default_rng(58), UPDATES["pg-sm"]
    q = np.array([0.5, 1.0, *[0.0] * 6])
    for draw in range(2000):
        corner = 10 ** -rng.uniform(0, 4)
        others = rng.dirichlet(np.full(7, 0.5)) * min(corner, 0.9)
        pi = np.array([1 - others.sum(), *others])
        if pi.min() < 1e-12:
            continue
        theta = np.log(pi)
        after = step.step(theta, q, float(10 ** rng.uniform(-2, 1)))
        change = float((after - theta)[1] - (after - theta)[0])
        if abs(change) < 1e-12:
            continue
        h, c, f = float(pi[0]), float(pi[1]), float(pi[2:].sum())
        falls = f > failing_over * c if failing_over else share_falls(h, c, pays)
        at = {"draw": draw}
        compare.equal("sign of the change", change < 0, falls, limit="the condition", at=at)
        if pays == 0.5 and failing_over is None:
            written = c * (1 + f - c) < h * (f - c)
            compare.equal("condition", falls, written, limit="c(1+f-c) < h(f-c)", at=at)


@check(
    "hack:well/counts",
    wrong={
        "three failing answers": {"n_failing": 3},
        "the hack pays 0.4": {"pays": 0.4},
        "step size 2": {"weight": 2.0},
    },
)
def exact_counts_of_the_partial_change(
    compare: Recorder, pays: float = 0.5, weight: float = 1.0, n_failing: int = 6
) -> None:
    """The exact gradient needs the stated numbers of steps."""
    counts = {
        (0.99, 5e-4, 0.0095): 636_723,
        (1 - 5e-4, 5e-4, 0.0): 2018,
        (0.34, 0.02, 0.64): 23_456,
        (0.98, 0.02, 0.0): 59,
        (0.34, 0.1, 0.56): 21,
    }
    for (h, c, f), expected in counts.items():
        found = gradient_steps(h, c, f, pays, weight, n_failing)
        at = {"hack": h, "correct": c, "failing": f}
        compare.equal("steps", found, expected, limit="the number stated", at=at)
    zero = gradient_steps(0.99, 5e-4, 0.0095, 0.0)
    compare.equal("steps if the hack pays nothing", zero, 1030, limit="1030", at={"hack": 0.99})


@check(
    "hack:lost",
    wrong={
        "best of the group is lost, too": {"lost": ("best of the group",)},
        "RLOO is back": {"back": ("RLOO",)},
        "a restart saves GRPO": {"back": ("GRPO, restart",)},
    },
)
def policy_gradients_are_lost_in_the_partial_change(
    compare: Recorder,
    lost: tuple[str, ...] = ("RLOO", "GRPO", "MaxRL", "rejection sampling"),
    back: tuple[str, ...] = ("best of the group",),
) -> None:
    """In partial most runs are lost at 100 000 updates, except those of best of the group."""
    trained, most = ("updates", 1000), 100_000
    for size in (8, 64):
        for method in lost:
            share = lost_by("partial", method, size, *trained, most)
            at = {"method": method, "G": size}
            compare.at_least("share of runs lost", share, 0.85, limit="0.85", at=at)
        for method in back:
            share = lost_by("partial", method, size, *trained, most)
            at = {"method": method, "G": size}
            compare.equal("share of runs lost", share, 0.0, limit="0", at=at)
    best = summary("partial", "best of the group", 8, *trained)
    certain = {
        f"{method} from 0.99": percent(lost_by("partial", method, 8, "certainty", 0.99, most))
        for method in ("GRPO", "GRPO, restart")
    }
    figures = {
        method: percent(lost_by("partial", method, 8, *trained, most))
        for method in (*lost, "GRPO, restart")
    }
    compare.report(
        best=int(best.after), low=int(best.low), high=int(best.high), **figures, **certain
    )
