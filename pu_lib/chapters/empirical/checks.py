"""Checks of what the paper says it saw in its experiments, as statements about a table of runs.

A check takes a table of runs (by default the committed one) and judges by the rule of `parts`. The
paper does not say which statistic its curves show. A part on times is therefore asked twice, of the
median and of the restricted mean; and most statements about chains of both values of beta that the
paper gives, as far as the table has them. What each part asks stands in words in the docstring of
its check.

The statements of section 4 stand in modules of their own, one a domain; here are those about all
experiments together, the curve of the predecessor, and the setting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from pu_lib.chapters.empirical import checks_chain, checks_cliff, checks_random_mdps
from pu_lib.chapters.empirical.checks_chain import CHAINS
from pu_lib.chapters.empirical.parts import (
    CROSS,
    PG,
    SCHEMES,
    VERY,
    Part,
    centres,
    ends,
    held,
    judge_parts,
    slower,
)
from pu_lib.claims.recorder import Check, Finding, Recorder, Status, check
from pu_lib.domains import chain
from pu_lib.experiments.curves import best_of, betas
from pu_lib.experiments.jekyll_hyde import seed_state
from pu_lib.experiments.options import SCHEMES as OPTIONS
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.results import (
    PANELS,
    TIED,
    Results,
    Runs,
    random_tie_runs,
    results_of,
    swap_labels,
)
from pu_lib.formatting import percent
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import PAPER, as_update, label_of

SECTIONS = tuple(
    one
    for module in (checks_random_mdps, checks_chain, checks_cliff)
    for one in vars(module).values()
    if isinstance(one, Check)
)
"""The checks of sections 4.1, 4.2 and 4.3."""

RANDOM_MDPS = tuple(f"random-mdp/{scheme}" for scheme in SCHEMES)

RATE_PANELS = (*RANDOM_MDPS, *CHAINS, "cliff")
"""The panels of the paper with the learning rate on their axis."""


@check("predecessor/fig11a", wrong=slower("experiment", "published-curve", 1.15))
def published_curve(compare: Recorder, table: Runs = None) -> Status:
    """Ours is the predecessor's published curve within sampling error, for all four schedules.

    For each schedule the root mean square of the z of its points, see `published`, is below 1.5.
    """
    from pu_lib.experiments.published import comparison

    parts = []
    for schedule, points in comparison(table).groupby("schedule"):
        z = np.array([np.sqrt(np.mean(points["z"] ** 2))])
        words = f"{schedule}: root mean square of z, {len(points)} points"
        parts.append(Part(words, z, 1.5, False, ratio=False))
    return judge_parts(compare, parts)


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

    Hard: the chain of 10 states and the cliff, HiOffPol, with both values of beta. At their best
    rates CE and MCE are at most a factor 1.25 slower than DI, and PG-SM and PG-ES more than a
    factor 5 slower than DI.
    """
    panels = betas(table, "chain/HiOffPol", "cliff")
    marked = [(f"{mark}{PANELS[name].experiment}, ", name) for mark, name in panels]
    cross, gradients = [], []
    for words, _, values in centres(table, marked):
        ratios = {u: best_of(values, u) / best_of(values, "di") for u in (*CROSS, *PG)}
        what = {u: f"{words}: {label_of(u)} over DI" for u in ratios}
        cross += [Part(what[u], ratios[u], 1.25, False) for u in CROSS]
        gradients += [Part(what[u], ratios[u], VERY) for u in PG]
    told = ends(gradients) | {
        "apart": percent(max(abs(part.value - 1.0) for part in cross), 1),
        "very slow": held(gradients),
        "compared": len(gradients),
    }
    return judge_parts(compare, cross + gradients, **told)


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
    """What PG-ES loses at large rates on the cliff, and on the chain but for NoExplo, is rounding.

    Of the runs at rates above 3 that are censored when parameters are plain floats, more than nine
    in ten pass, from the same random numbers, when parameters have exponents of their own.
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


@check(
    "sec:intro/ce-converges",
    wrong={"on chains under LowOffPol and HiOffPol alone (there it does)": {"panels": CHAINS[1:]}},
)
def ce_converges(
    compare: Recorder, table: Runs = None, panels: Sequence[str] = RATE_PANELS
) -> Status:
    """CE passes the threshold in every run, at its best rate in each rate panel of the paper.

    On the chains and the cliff at both values of beta.
    """
    parts = []
    for _, name in betas(table, *panels):
        curves = results_of(table).curves(name)
        share, few = best_of(curves.point("censored")[None], "ce"), 0.5 / curves.n_runs
        words = f"{PANELS[name].words}: CE's smallest censored share"
        parts.append(Part(words, share, few, False, ratio=False))
    return judge_parts(compare, parts)


# The setting: figure 1, the algorithm, the expected update


@check("fig:chain-env", wrong={"jumping is worth 0.7 of walking": {"beta": 0.7}})
def chain_of_figure_1(compare: Recorder, beta: float = 0.8) -> None:
    """On the chain with ten states jumping earns 0.8 of what walking does; in whose reward."""
    mdp = chain(10)
    rewards = mdp.rewards[:, ::-1].copy()  # the caption gives a2 what pays for jumping
    captioned = FiniteMDP(mdp.transitions, rewards, mdp.initial, mdp.discount, mdp.terminal)
    for process, reward, as_printed in ((mdp, "of a1", False), (captioned, "of a2", True)):
        jumping, walking = process.optimal().q[0]
        compare.equal(
            "what jumping earns over what walking does",
            jumping / walking,
            beta,
            tolerance=1e-12,
            limit="β",
            as_printed=as_printed,
            at={"reward": reward},
        )


@check(
    "fig:chain-env/walking",
    wrong={
        "jumping pays 0.8 discounted nine times": {"power": 9},
        "jumping pays 1.1 of it, so that jumping is optimal": {"beta": 1.1},
    },
)
def walking_is_optimal(compare: Recorder, power: int = 8, beta: float = 0.8) -> None:
    """On the chain with ten states walking is optimal everywhere, and jumping pays 0.8 gamma^8."""
    mdp = chain(10)
    pays = beta * mdp.discount**power
    for s, (jumping, walking) in enumerate(mdp.optimal().q[:9].tolist()):
        reward = mdp.rewards[s, 0]
        compare.at_least("walking earns", walking, jumping, limit="jumping earns", at={"state": s})
        compare.equal(
            "jumping pays", reward, pays, tolerance=1e-12, limit="0.8 γ⁸", at={"state": s}
        )


@check("alg:J&H", wrong={"Hyde has no buffer under HiOffPol either": {"scheme": "HiOffPol"}})
def one_buffer(compare: Recorder, scheme: str = "NoExplo", steps: int = 300) -> None:
    """Without exploration every transition and every update comes from Jekyll's one buffer."""
    for update in PAPER:
        seeds = seed_state(0, "chain", 0)
        run = run_reference(chain(5), np.inf, update, 1.0, OPTIONS[scheme], seeds, max_steps=steps)
        held_by = {who: len(run.buffers[who]) for who in ("jekyll", "hyde")}
        at = {"update": update, "steps": steps}
        compare.at_most("transitions of Hyde", held_by["hyde"], 0, limit="0", at=at)
        compare.at_least("transitions of Jekyll", held_by["jekyll"], steps, limit="all", at=at)


@check(
    "eq:expected_update",
    wrong={"the printed direction is that of CE and MCE": {"gradients": ("ce", "mce")}},
)
def expected_update(compare: Recorder, gradients: Sequence[str] = ("pg-sm", "pg-es")) -> None:
    """The printed direction is that of the policy gradients, and not that of CE and MCE."""
    pi, q, small = np.array([0.5, 0.3, 0.2]), np.array([0.2, 1.0, 0.5]), 1e-6
    for name in PAPER:
        update = as_update(name)
        if update.parametrization == "direct":
            continue  # the gradient of the identity is q, before its projection
        theta = update.parameters(pi)
        steps = np.eye(3) * small
        gradient = np.array(
            [q @ (update.policy(theta + e) - update.policy(theta - e)) for e in steps]
        )
        taken = update.step(theta, q, small) - theta
        compare.at_most(
            "distance of the directions",
            float(np.linalg.norm(_unit(gradient) - _unit(taken))),
            1e-5,
            limit="1e-5",
            as_printed=name not in gradients,
            at={"update": name},
        )


def _unit(direction: np.ndarray) -> np.ndarray:
    return np.asarray(direction / np.linalg.norm(direction))


# The same checks on other tables


def run_with(check: Check, **arguments: Any) -> Finding:
    """Return what a check finds with other arguments, such as another `table` of runs."""
    return replace(check, arguments={**check.arguments, **arguments}).run()


def stability(check: Check, runs: Sequence[int] = (100, 200, 500, 1000)) -> dict[int, str]:
    """Return the status that a check finds in the first runs of each setting, by their number.

    A status that changes with the number of runs rests on intervals that end near their bound.
    """
    table = results_of(None).table
    return {n: str(run_with(check, table=table[table["run"] < n]).status) for n in runs}


def both_rules(check: Check) -> dict[str, str]:
    """Return the status that a check finds with each rule for tied actions on Random MDPs.

    The rules are the first of tied actions and one drawn, both from as many runs as there are with
    ties drawn.
    """
    n, tables = _by_rule()
    found = {rule: str(run_with(check, table=runs).status) for rule, runs in tables.items()}
    return found | {"runs": str(n)}


@cache
def _by_rule() -> tuple[int, dict[str, Results]]:
    """Return how many runs there are with ties drawn, and as many under either rule."""
    table, drawn = results_of(None).table, random_tie_runs()
    tied = table[table["experiment"] == TIED]
    n = int(tied.groupby(["scheme", "update", "eta"], observed=True)["run"].count().min())
    return n, {rule: Results(t[t["run"] < n]) for rule, t in (("first", table), ("drawn", drawn))}
