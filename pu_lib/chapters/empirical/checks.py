# ruff: noqa: D401  # a docstring here states a claim, then what is asked of the table
"""What the paper says it saw in its experiments, as statements about a table of runs.

Each function takes a table of runs (by default the committed one) and returns a `Verdict` by the
rule of `pu_lib.chapters.empirical.parts`. The paper does not say which statistic its curves show. A part on
times is therefore asked twice, of the median and of the restricted mean; and most statements about
chains of both values of beta that the paper gives, as far as the table has them. What each part
asks stands in words in the docstring of its function.

The statements of section 4 stand in modules of their own, one a domain; here are those about all
experiments together, and the curve of the predecessor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from pu_lib.chapters.empirical import checks_chain as empirical_chain
from pu_lib.chapters.empirical import checks_cliff as empirical_cliff
from pu_lib.chapters.empirical import checks_random_mdps as empirical_random_mdps
from pu_lib.chapters.empirical import checks_setting as empirical_setting
from pu_lib.chapters.empirical.parts import (
    CROSS,
    PG,
    SCHEMES,
    VERY,
    Part,
    ends,
    judge_parts,
    slower,
)
from pu_lib.empirical.curves import best_of, betas, both_centres
from pu_lib.empirical.results import (
    PANELS,
    TIED,
    Results,
    Runs,
    exchanged,
    results_of,
    with_ties_drawn,
)
from pu_lib.updates import label_of
from pu_lib.verdict import Verdict, Worst, check, judged
from pu_lib.wording import percent

__all__ = [
    "both_rules",
    "empirical_chain",
    "empirical_cliff",
    "empirical_random_mdps",
    "empirical_setting",
    "stability",
]

RATE_PANELS = (
    *(f"random-mdp/{scheme}" for scheme in SCHEMES), *empirical_chain.CHAINS, "cliff",
)  # fmt: skip
"""The panels of the paper with the learning rate on their axis."""


@check("predecessor/fig11a", moved=slower("experiment", "published-curve", 1.15))
def published_curve(table: Runs = None) -> Verdict:
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


@check(
    "sec:intro/empirical",
    moved={
        "policy gradients under the names of CE and MCE": {
            "table": exchanged(
                "update", {"pg-sm": "ce", "ce": "pg-sm", "pg-es": "mce", "mce": "pg-es"}
            )
        }
    },
)
def as_efficient_as_di(table: Runs = None) -> Verdict:
    """On hard planning tasks CE and MCE are as efficient as DI, and policy gradients fail.

    Hard: the chain of 10 states and the cliff, HiOffPol, with both values of beta. At their best
    rates CE and MCE are at most a factor 1.25 slower than DI, and PG-SM and PG-ES more than a
    factor 5 slower than DI.
    """
    cross, gradients = [], []
    for mark, name in betas(table, "chain/HiOffPol", "cliff"):
        for s, _, (values,) in both_centres(table, name):
            di, words = best_of(values, "di"), f"{mark}{PANELS[name].experiment}"
            for u in CROSS:
                ratio = best_of(values, u) / di
                cross.append(Part(f"{words}, {s}: {label_of(u)} over DI", ratio, 1.25, False))
            for u in PG:
                gradients.append(
                    Part(f"{words}, {s}: {label_of(u)} over DI", best_of(values, u) / di, VERY)
                )
    told = ends(gradients) | {
        "apart": percent(max(abs(part.value - 1.0) for part in cross), 1),
        "very slow": sum(part.holds() for part in gradients),
        "compared": len(gradients),
    }
    return judge_parts(cross + gradients, told)


@check(
    "book:wall-is-rounding",
    moved={
        "on Random MDPs too": {"panels": tuple(f"random-mdp/{scheme}" for scheme in SCHEMES)},
    },
)
def wall_is_rounding(
    table: Runs = None,
    panels: Sequence[str] = (
        *empirical_chain.CHAINS[1:],
        *(f"{name}/beta=0.7" for name in empirical_chain.CHAINS[1:]),
        "cliff",
        "cliff/beta=0.7",
    ),
) -> Verdict:
    """What PG-ES loses at large rates on the cliff, and on the chain but for NoExplo, is rounding.

    Of the runs at rates above 3 that are censored when parameters are plain floats, more than nine
    in ten pass, from the same random numbers, when parameters have exponents of their own.
    """
    from pu_lib.empirical.rounding import lost_and_passed

    worst = Worst("0.1 less the share of the lost runs that do not pass")
    rows, least = [], 1.0
    for name in panels:
        lost, passed = lost_and_passed(name, table)
        missing = (lost - passed) / lost if lost else 1.0
        least = min(least, 1.0 - missing)
        worst.add(0.1 - missing, panel=PANELS[name].words)
        rows.append({"panel": PANELS[name].words, "lost in floats": lost, "of them pass": passed})
    return judged(worst, evidence=rows, figures={"least share": percent(least)})


@check(
    "sec:intro/ce-converges",
    moved={
        "on chains under LowOffPol and HiOffPol alone (there it does)": {
            "panels": empirical_chain.CHAINS[1:]
        }
    },
)
def ce_converges(table: Runs = None, panels: Sequence[str] = RATE_PANELS) -> Verdict:
    """CE passes the threshold in every run, at its best rate in each rate panel of the paper.

    On the chains and the cliff at both values of beta.
    """
    results = results_of(table)
    parts = []
    for _, name in betas(table, *panels):
        curves = results.curves(name)
        share = best_of(curves.point("censored")[None], "ce")
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


def stability(
    judge: Callable[[Runs], Verdict], runs: Sequence[int] = (100, 200, 500, 1000)
) -> dict[int, str]:
    """Return the status that a check finds in the first runs of each setting, by their number.

    A status that changes with the number of runs rests on intervals that end near their bound.

    Parameters
    ----------
    judge : callable
        A check of this package that takes a table of runs.
    runs : sequence of int
        How many runs to keep of each setting, all positive.

    Returns
    -------
    dict of int to str
        The status by the number of runs.
    """
    table = results_of(None).table
    return {n: judge(table[table["run"] < n]).status.value for n in runs}


def both_rules(judge: Callable[[Runs], Verdict]) -> dict[str, str]:
    """Return the status that a check finds with each rule for tied actions on Random MDPs.

    Parameters
    ----------
    judge : callable
        A check of this package that takes a table of runs.

    Returns
    -------
    dict of str to str
        The status with the first of tied actions and with one drawn, both from as many runs as
        there are with ties drawn.
    """
    n, tables = _by_rule()
    return {rule: judge(runs).status.value for rule, runs in tables.items()} | {"runs": str(n)}


@cache
def _by_rule() -> tuple[int, dict[str, Results]]:
    """Return how many runs there are with ties drawn, and as many under either rule."""
    table, drawn = results_of(None).table, with_ties_drawn()
    tied = table[table["experiment"] == TIED]
    n = int(tied.groupby(["scheme", "update", "eta"], observed=True)["run"].count().min())
    return n, {rule: Results(t[t["run"] < n]) for rule, t in (("first", table), ("drawn", drawn))}
