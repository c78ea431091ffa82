"""Checks of the claims on convergence and optimality.

A finite run proves a statement about the limit in two ways: the key lemma bounds all gaps after
the settling time, and if the weights have a finite sum, a lower bound on the probabilities gives a
lower bound on the gap.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.convergence.quantities import (
    ADVERSARIES,
    Mask,
    adversarial_run,
    decaying_weights,
    exponent,
    fading_run,
    fixed_weights,
    instances,
    key_lemma_bound,
    lemma_8_slack,
    log_times,
    looping_bandit,
    necessity_floor,
    one_way_mdp,
    optimality_bounds,
    settling_time,
    structure,
    suboptimal_mass,
    tied_limit_mdp,
    uncontested_start,
    with_contested_start,
)
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.domains import bandit
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, as_update

ROUNDING = 1e-12
"""Relative tolerance for values computed by a linear solve with a few dozen states."""

FIRST_ORDER = 0.97
"""The smallest measured exponent that counts as order 1/t."""


def compare_key_lemma(
    compare: Recorder,
    pi: Floats,
    top: Mask,
    weights: Floats,
    at: Mapping[str, Any],
    constant: float = 0.5,
) -> None:
    """Compare the mass outside `top` with the bound of the key lemma along a run."""
    beta = pi[:, ~top].sum(axis=1)
    weight_sums = np.append(0, np.cumsum(weights))
    bound = key_lemma_bound(beta[0], pi[0, top].min() / beta[0], len(top), weight_sums, constant)
    least = float((bound / np.maximum(beta, 1e-300)).min())
    compare.at_least("bound over mass", least, 1 - ROUNDING, limit="one, up to rounding", at=at)
    compare.at_most("mass at the end", float(beta[-1]), float(bound[-1]), at=at)


@check(
    "thm:optimality/key-lemma",
    wrong={
        "0.501 in place of 1/2: the constant is sharp": {"constant": 0.501},
        "CE in place of MCE": {"update": "ce"},
        "PG-SM in place of MCE": {"update": "pg-sm"},
    },
)
def key_lemma_bounds_the_mass(
    compare: Recorder, constant: float = 0.5, update: str | Update = "mce"
) -> None:
    """The mass outside a set of greedy actions satisfies the bound for every tie-breaking rule."""
    rng = np.random.default_rng(0)
    for i in range(80):
        n_actions = int(rng.integers(2, 7))
        n_top = int(rng.integers(1, n_actions))
        top = np.arange(n_actions) < n_top
        size = 10.0 ** rng.uniform(-2, 2)
        weights = size * rng.exponential(size=100)
        theta0 = rng.uniform(0, 4) * rng.standard_normal(n_actions)
        adversary = list(ADVERSARIES)[i % len(ADVERSARIES)]
        pi = adversarial_run(top.astype(float), adversary, weights, theta0, update)
        at = {"actions": n_actions, "best": n_top, "ties": adversary, "weights about": size}
        compare_key_lemma(compare, pi, top, weights, at, constant)
    # Two uniform arms with tiny weights nearly attain the bound.
    tiny, top = np.full(10, 1e-4), np.array([True, False])
    pi = adversarial_run([1.0, 0.0], "first", tiny, None, update)
    compare_key_lemma(compare, pi, top, tiny, {"actions": 2, "start": "uniform"}, constant)


def compare_finite_run(
    compare: Recorder,
    name: str,
    mdp: FiniteMDP,
    update: str | Update,
    weights: Floats,
    at: Mapping[str, Any],
) -> None:
    """Compare the gap with its bounds at every step after the settling time."""
    facts = structure(mdp)
    trajectory = run(mdp, as_update(update), len(weights), step_size=weights, weighting="uniform")
    compare.require(
        settling_time(trajectory, facts) is not None,
        f"On {name} the greedy actions do not provably settle in {len(weights)} steps.",
    )
    start, gap, now, ahead = optimality_bounds(mdp, trajectory, facts)
    tolerance = ROUNDING * max(1.0, float(np.abs(facts.v).max())) / (1.0 - mdp.discount)
    over_gap = float(((now + tolerance) / np.maximum(gap, tolerance)).min())
    over_now = float(((ahead + tolerance) / np.maximum(now, tolerance)).min())
    compare.at_least("bound from the masses, over the gap", over_gap, 1, limit="one", at=at)
    compare.at_least("proved bound over that from the masses", over_now, 1, limit="one", at=at)
    compare.at_most(
        "gap at the end", float(gap[-1]), float(ahead[-1]), limit="the proved bound", at=at
    )
    compare.report(**{f"settled ({name})": start})


@check(
    "lem:optimality",
    wrong={
        "weights (t + 1)^-2, whose sum is finite": {"decay": 2.0},
        "PG-SM in place of MCE": {"update": "pg-sm"},
    },
)
def infinite_sums_suffice(
    compare: Recorder, update: str | Update = "mce", decay: float = 0.5
) -> None:
    """If the weights have infinite sum, a finite run of MCE proves that the gap tends to zero."""
    weights = decaying_weights(decay, 600)
    for name, mdp in instances().items():
        compare_finite_run(compare, name, mdp, update, weights, at={"MDP": name})


@check("cor:convergence", wrong={"CE in place of MCE": {"update": "ce"}})
def values_converge(compare: Recorder, update: str | Update = "mce") -> None:
    """With random weights no value decreases or exceeds its optimum, so all values converge."""
    rng = np.random.default_rng(0)
    for name, mdp in instances().items():
        facts = structure(mdp)
        theta0 = 3.0 * rng.standard_normal((mdp.n_states, mdp.n_actions))
        weights = fixed_weights(3.0 * rng.exponential(size=(200, mdp.n_states)))
        trajectory = run(mdp, as_update(update), 200, weighting=weights, theta0=theta0)
        tolerance = ROUNDING * max(1.0, float(np.abs(facts.q).max())) / (1.0 - mdp.discount)
        rise = float(np.diff(trajectory.q, axis=0).min())
        rise_of_v = float(np.diff(trajectory.v, axis=0).min())
        left = float((facts.q - trajectory.q).min())
        for quantity, least in (
            ("change of q", rise),
            ("change of v", rise_of_v),
            ("q* - q", left),
        ):
            allowing = f"least {quantity}, plus the rounding allowed"
            compare.at_least(allowing, least + tolerance, 0, limit="zero", at={"MDP": name})


@check("thm:optimality/uniqueness", wrong={"PG-SM in place of MCE": {"update": "pg-sm"}})
def optimum_need_not_be_unique(compare: Recorder, update: str | Update = "mce") -> None:
    """MCE converges if there are several best actions, for every tie-breaking rule."""
    ones = np.ones(600)
    for rewards in ([1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.9, 0.5, 0.0]):
        top = np.array(rewards) == max(rewards)
        for name in ADVERSARIES:
            pi = adversarial_run(rewards, name, ones, None, update)
            at = {"rewards": str(rewards), "ties": name}
            compare_key_lemma(compare, pi, top, ones, at)
    weights = decaying_weights(0.5, 400)
    for name, mdp in with_several_optima().items():
        at = {"part": "MDPs with many optimal policies"}
        compare_finite_run(compare, name, mdp, update, weights, at)


def with_several_optima() -> dict[str, FiniteMDP]:
    """Return the `instances` with a state that has suboptimal actions and several best actions."""
    several = {}
    for name, mdp in instances().items():
        facts = structure(mdp)
        if (facts.optimal[facts.contested].sum(axis=1) > 1).any():
            several[name] = mdp
    return several


def _compare_lines(compare: Recorder, lines: Mapping[str, float]) -> None:
    """Compare the left less the right sides of lines of the proof of Lemma 8 with zero."""
    for name, slack in lines.items():
        allowing = "left minus right side, plus the rounding allowed"
        compare.at_least(allowing, slack + 1e-11, 0, limit="zero", at={"line": name})


@check("lem:optimality/bounds", wrong={"CE in place of MCE": {"update": "ce"}})
def printed_lines_of_lemma_8_hold(compare: Recorder, update: str | Update = "mce") -> None:
    """The printed inequalities hold in runs of MCE whose limit is not optimal.

    The proof assumes such a limit, which is possible if the weights of a state have a finite sum.
    """
    lines = lemma_8_slack(update)
    _compare_lines(compare, {name: lines[name] for name in lines if "missing" not in name})


@check("lem:optimality/proof", wrong={"CE in place of MCE": {"update": "ce"}})
def proof_of_lemma_8_lacks_a_line(compare: Recorder, update: str | Update = "mce") -> None:
    """The printed inequalities and the missing one hold, and the limit may tie despite one optimum.

    The proof assumes that the limit is not optimal, which is possible if the weights of a state
    have a finite sum.
    """
    _compare_lines(compare, lemma_8_slack(update))
    witness = tied_limit_mdp()
    counts = structure(witness).optimal[:2].sum(axis=1)
    compare.equal("optimal actions of the witness", counts, [1, 1], limit="one in each state")
    trajectory = run(witness, as_update(update), 50, weighting=np.array([1.0, 0.0, 0.0]))
    limit = np.sort(trajectory.q[-1, 0])
    at = {"MDP": "tied_limit_mdp()", "q in the limit": limit.tolist()}
    lead = float(limit[-1] - limit[-2])
    compare.at_least(
        "lead of the best action in the limit", lead, 1e-9, as_printed=True, limit="1e-9", at=at
    )


@check("eq:boundedness", wrong={"nine tenths of M": {"share": 0.9}})
def parameters_move_by_at_most_the_weights(compare: Recorder, share: float = 1.0) -> None:
    """No parameter changes by more than the sum of the weights, for any initial parameters."""
    rng, mce = np.random.default_rng(2), UPDATES["mce"]
    for _ in range(200):
        q = rng.random(int(rng.integers(2, 6)))
        weights = rng.dirichlet(np.ones(30)) * 10 ** rng.uniform(-1, 1.5)
        theta = start = rng.uniform(0, 12) * rng.standard_normal(len(q))
        for weight in weights:
            theta = mce.step(theta, q, weight)
        total = float(weights.sum())
        compare.at_most(
            "largest move over the sum of the weights",
            float(np.abs(theta - start).max()) / total,
            share + ROUNDING,
            limit="one, up to rounding",
            at={"actions": len(q), "total": total},
        )


NOT_REENTERED = {
    "one state, discount 0": bandit([1.0, 0.0]),
    "first state never entered": one_way_mdp(),
}


@check(
    "lem:optimality-necessity",
    wrong={
        "necessary in every single MDP": {"everywhere": True},
        "idle in the process of the proof, too": {"idle": {"entered again": looping_bandit()}},
    },
)
def finite_sums_leave_a_gap(
    compare: Recorder, everywhere: bool = False, idle: Mapping[str, FiniteMDP] = NOT_REENTERED
) -> None:
    """For every finite sum of weights there is an MDP in which q does not converge to its optimum.

    The MDP has one recurrent state with two actions. The lemma is about a guarantee for all MDPs,
    so one counterexample for each sum is enough. In the MDPs of `idle`, which never enter the
    state again, q does converge.
    """
    cases = [("entered again", looping_bandit(), total) for total in (2.0, 0.5, 8.0)]
    if everywhere:
        cases += [(name, mdp, 2.0) for name, mdp in NOT_REENTERED.items()]
    for name, mdp, total in cases:
        gap, least = _gap_with_finite_sum(mdp, total)
        compare.at_least(
            "gap of q at the end", gap, least, limit="the floor", at={"case": name, "sum": total}
        )
        compare.report(**{f"gap for sum {total:g}": gap})
    for name, mdp in idle.items():
        # The contested states that are entered again have weights of sum 12 000.
        gap, _ = _gap_with_finite_sum(mdp, 2.0)
        compare.at_most(
            "gap of q at the end where the state is not entered again", gap, 1e-3, limit="1e-3",
            at={"case": name, "sum": 2.0},
        )  # fmt: skip


def _gap_with_finite_sum(mdp: FiniteMDP, total: float) -> tuple[float, float]:
    """Return the final gap of q under MCE and its floor if the first state's weights have a sum."""
    facts = structure(mdp)
    weights = np.full((400, mdp.n_states), 30.0)
    weights[:, 0] = total * 0.5 ** np.arange(1.0, 401)
    path = run(mdp, UPDATES["mce"], 400, weighting=fixed_weights(weights))
    floor = necessity_floor(path.policies[0, 0], mdp.n_actions, total)
    discount = mdp.discount or 1.0  # a claim about every MDP requires a gap with discount 0
    least = discount * float((floor * (facts.v[0] - facts.q[0])).max())
    return float((facts.q - path.q[-1]).max()), least


@check("lem:optimality-necessity/corrected", wrong={"half the exponent": {"factor": 0.5}})
def floors_hold(compare: Recorder, factor: float = 1.0) -> None:
    """Probabilities and gaps are at least their lower bounds if the weights of a state sum to M.

    The weights sum to M at the first state of random MDPs, in one step or in 30 steps, and are
    large at the other states. Two runs on a bandit come close to the bounds: one step of weight 200
    from a tiny probability of the greedy action, and one step of weight 0.001.
    """
    rng = np.random.default_rng(0)
    for i in range(120):
        n_actions = int(rng.integers(2, 5))
        transitions = rng.dirichlet(np.ones(3), size=(3, n_actions))
        rewards = rng.standard_normal((3, n_actions))
        mdp = FiniteMDP(transitions, rewards, np.ones(3) / 3, 0.8)
        total = 10.0 ** rng.uniform(-1, 1.5)
        n_steps = 1 if i % 2 else 30
        weights = np.full((n_steps, 3), 10.0)
        weights[:, 0] = rng.dirichlet(np.ones(n_steps)) * total
        theta0 = rng.uniform(0, 12) * rng.standard_normal((3, n_actions))
        compare_floors(compare, mdp, weights, theta0, factor)
    arms = looping_bandit(discount=0.0)
    compare_floors(compare, arms, np.array([[200.0]]), np.array([[-5.0, 5.0]]), factor)
    compare_floors(compare, arms, np.array([[1e-3]]), np.zeros((1, 2)), factor)


def compare_floors(
    compare: Recorder, mdp: FiniteMDP, weights: Floats, theta0: Floats, factor: float = 1.0
) -> None:
    """Compare the probabilities and gaps of an MCE run with their bounds at the first state."""
    facts, total, n_actions = structure(mdp), float(weights[:, 0].sum()), mdp.n_actions
    weighting = fixed_weights(weights)
    trajectory = run(mdp, UPDATES["mce"], len(weights), weighting=weighting, theta0=theta0)
    pi = trajectory.policies[:, 0]
    # The bounds are far below one, so the logarithms are compared.
    compare.at_least(
        "log of probability over the first one",
        float((np.log(pi) - np.log(pi[0])).min()),
        -factor * n_actions / (n_actions - 1) * total - ROUNDING * (1 + total),
        in_logs=True,
        limit="-cM, up to rounding",
        at={"part": "probability", "M": total},
    )
    floor = necessity_floor(pi[0], n_actions, total, factor) * (facts.v[0] - facts.q[0])
    v_gap, q_gap = facts.v[0] - trajectory.v[:, 0], facts.q - trajectory.q
    discounted = mdp.discount * mdp.transitions[:, :, 0]
    for name, gap, least in (("v", v_gap, floor.max()), ("q", q_gap, discounted * floor.max())):
        nearest = np.unravel_index(np.argmin(gap - least), gap.shape)
        compare.at_least(
            f"gap of {name}",
            float(gap[nearest]),
            float(np.broadcast_to(least, gap.shape)[nearest]) - 1e-11,
            limit="its floor, up to rounding",
            at={"part": f"gap of {name}", "M": total},
        )


@check(
    "thm:optimality/equivalence",
    wrong={
        "no weight at a contested state": {"starve_contested": True},
        "v in place of q, without weights at a state that no action enters": {"values_too": True},
        "PG-SM in place of MCE": {"update": "pg-sm"},
    },
)
def uncontested_states_need_no_weight(
    compare: Recorder,
    starve_contested: bool = False,
    values_too: bool = False,
    update: str | Update = "mce",
) -> None:
    """The values become optimal even if states with only optimal actions have no weight.

    The action values become optimal even if contested states that no action enters have no weight.
    Suboptimal actions keep at most a hundredth of the probability in the states with weights.
    """
    mdp = uncontested_start()
    facts = structure(mdp)
    weights = facts.contested.astype(float)
    if starve_contested:
        weights[np.flatnonzero(facts.contested)[0]] = 0.0
    trajectory = run(mdp, as_update(update), 600, weighting=weights)
    gaps = (facts.v - trajectory.v).max(axis=1)
    at: dict[str, Any] = {"states without weight": int((weights[~mdp.terminal] == 0).sum())}
    left, small = "share of the gap that is left", 0.01
    compare.at_most(left, float(gaps[-1] / gaps[0]), small, at=at)
    mass = float(suboptimal_mass(trajectory, facts)[-1].max())
    compare.at_most("probability of suboptimal actions at the end", mass, small, at=at)
    compare.require(
        settling_time(trajectory, facts) is not None, "The greedy actions do not settle."
    )
    _, gap, now, ahead = optimality_bounds(mdp, trajectory, facts)
    least = float(min((now / gap).min(), (ahead / now).min()))
    compare.at_least("bound over gap", least, 1 - 1e-9, limit="one, up to rounding", at=at)
    for name, base in instances().items():
        mdp = with_contested_start(base)
        facts, first = structure(mdp), np.arange(mdp.n_states) == 0
        trajectory = run(mdp, as_update(update), 600, weighting=np.where(first, 0.0, 1.0))
        at = {"MDP": f"{name}, behind a state that no action enters"}
        q_gaps = (facts.q - trajectory.q).max(axis=(1, 2))
        v_gaps = (facts.v - trajectory.v).max(axis=1)
        if base.discount > 0:
            compare.at_most(f"{left}, of q", float(q_gaps[-1] / q_gaps[0]), small, at=at)
        compare.at_least("gap of v at the state without weight", float(v_gaps[-1]), 0.25, at=at)
        if values_too:
            compare.at_most(f"{left}, of v", float(v_gaps[-1] / v_gaps[0]), small, at=at)
        rest = suboptimal_mass(trajectory, facts)[-1, 1:]
        compare.at_most(
            "probability of suboptimal actions at the end", float(rest.max()), small, at=at
        )


@check(
    "sec:conv/uniqueness-others",
    wrong={
        "weights (t + 1)^-2, whose sum is finite": {"decay": 2.0},
        "PG-SM arrives as DI does": {"arriving": ("di", "pg-sm")},
    },
)
def others_need_no_unique_optimum(
    compare: Recorder, arriving: Sequence[str] = ("di",), decay: float = 0.0
) -> None:
    """With many optimal policies DI reaches the optimum, and the gap of PG-SM is of order 1/t.

    DI runs for 400 steps. The gap of PG-SM must decrease to at most a third from step 250 to step
    1000, and again from step 1000 to step 4000.
    """

    def gaps(mdp: FiniteMDP, update: str, n_steps: int) -> Floats:
        weights = decaying_weights(decay, n_steps)
        path = run(mdp, as_update(update), n_steps, step_size=weights, weighting="uniform")
        return np.asarray((structure(mdp).v - path.v).max(axis=1))

    for name, mdp in with_several_optima().items():
        for update in arriving:
            gap, at = gaps(mdp, update, 400), {"MDP": name, "update": update}
            compare.at_most("gap at the end", float(gap[-1]), 1e-9, limit="1e-9", at=at)
        gap, at = gaps(mdp, "pg-sm", 4000), {"MDP": name, "update": "pg-sm"}
        share = float(max(gap[1000] / gap[250], gap[4000] / gap[1000]))
        compare.at_most("share left after four times as long", share, 1 / 3, limit="1/3", at=at)


@check(
    "sec:conv/cited-proofs",
    wrong={"with the visits of the policy as weights": {"weighting": "occupancy"}},
    kept=Status.OPEN,
)
def cited_theorems_are_not_contradicted(compare: Recorder, weighting: str = "uniform") -> None:
    """Runs of PG-SM, PG-ES and DI lose 19 twentieths of their gap in 300 steps.

    This check can refute that such theorems are true, and does not read them.
    """
    for name in ("bandit, three best arms of five", "cliff", "random"):
        mdp = instances()[name]
        for update in ("pg-sm", "pg-es", "di"):
            path = run(mdp, as_update(update), 300, weighting=weighting)
            gap = (structure(mdp).v - path.v).max(axis=1)
            left, at = float(gap[-1] / gap[0]), {"problem": name, "update": update}
            compare.at_most("share of the gap left", left, 0.05, limit="1/20", at=at)


@check(
    "sec:intro/conditions",
    wrong={
        "the order 1/t also for weights (t + 1)^-1/2": {"bounded_below": (0.0, 0.5)},
        "constant weights alone, for which it holds as printed": {"fading": 0.0},
        "the order 1/W also where the sum of the weights is finite": {"infinite": (0.5, 1.5)},
    },
)
def rate_is_the_inverse_sum_of_the_weights(
    compare: Recorder,
    bounded_below: Sequence[float] = (0.0,),
    infinite: Sequence[float] = (0.25, 0.5),
    fading: float = 0.5,
) -> None:
    """Masses are of order 1/t for weights bounded below, and 1/W for weights with infinite sum.

    Here W is the sum of the weights so far. The bandit has four arms, one, two or three of them
    optimal, and the weights are (t + 1)^-x.
    """
    in_t, in_sum, n_steps = "exponent in t", "exponent in the sum of the weights", 1500
    cases = [(in_t, x, False) for x in bounded_below] + [(in_sum, x, False) for x in infinite]
    times = log_times(n_steps)
    for best, (quantity, x, as_printed) in product((1, 2, 3), [*cases, (in_t, fading, True)]):
        mass, _, _ = fading_run(x, best, n_steps)
        weight_sums = np.cumsum(decaying_weights(x, n_steps))[times - 1]
        fit = exponent(times if quantity == in_t else weight_sums, mass[times])
        at = {"best arms": best, "x": x}
        compare.at_least(
            quantity, fit.value, FIRST_ORDER, limit="0.97", as_printed=as_printed, at=at
        )


@check(
    "sec:conv/same-condition",
    wrong={
        "DI needs an infinite sum in every single MDP": {"everywhere": True},
        "arms that differ by 1.1/M": {"apart": 1.1},
    },
)
def others_need_infinite_sums(
    compare: Recorder, everywhere: bool = False, apart: float = 0.9
) -> None:
    r"""If the weights sum to M, PG-SM and DI do not become optimal on some recurrent bandit.

    Under PG-SM :math:`\pi_t(a)\ge\pi_0(a)e^{-2MR}`, with R the range of the values. DI does not
    become optimal if the rewards of the two arms differ by less than :math:`1/M`; if they differ by
    1, DI is optimal after one step of weight 1.
    """
    total = 2.0
    weights = total * 0.5 ** np.arange(1.0, 61.0)

    def gap(update: str, mdp: FiniteMDP) -> float:
        end = run(mdp, as_update(update), len(weights), step_size=weights, weighting="uniform")
        return float((structure(mdp).q - end.q[-1]).max())

    loop = looping_bandit()
    spread = float(np.ptp(structure(loop).q))
    floor = loop.discount * 0.5 * float(np.exp(-2 * total * spread)) * spread
    at: dict[str, Any] = {"update": "pg-sm", "M": total}
    compare.at_least("gap of q at the end", gap("pg-sm", loop), floor, limit="the floor", at=at)
    close = looping_bandit(gap=apart / total)
    short = gap("di", close)
    # DI shifts the mass total * gap / 2 to the best arm, which starts at probability 1/2.
    left = close.discount / (1 - close.discount) * (0.5 - apart / 2) * apart / total
    at = {"update": "di", "M": total, "apart": apart / total}
    compare.at_least("gap of q at the end", short, 1e-9, limit="1e-9", at=at)
    compare.at_least(
        "gap of q at the end", short, left - 1e-9, limit="what DI's steps leave", at=at
    )
    if everywhere:
        at = {"update": "di", "M": total, "apart": 1.0}
        compare.at_least("gap of q at the end", gap("di", loop), 1e-9, limit="1e-9", at=at)
    compare.report(close=short)


@check("thm:optimality", wrong={"PG-SM in place of MCE": {"update": "pg-sm"}})
def infinite_sums_are_sufficient_and_necessary(
    compare: Recorder, update: str | Update = "mce"
) -> None:
    """Infinite sums suffice for optimality, with one or many optima, and a guarantee needs them."""
    infinite_sums_suffice.function(compare, update)
    optimum_need_not_be_unique.function(compare, update)
    floors_hold.function(compare)
    uncontested_states_need_no_weight.function(compare)
    finite_sums_leave_a_gap.function(compare)
