"""Checks of the claims on monotonicity.

Claims on single numbers are proved or refuted in ball arithmetic. Claims on all policies and values
are tested on random draws and by differential evolution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb

from pu_lib.chapters.monotonicity.approximate import erring_chain
from pu_lib.chapters.monotonicity.certified import certified_changes, certified_step
from pu_lib.chapters.monotonicity.quantities import (
    ROUNDING,
    escort_safe_weight,
    improving_states,
    long_run_gap,
    mass_gained,
    mdp_with_equal_actions,
    mdp_with_values,
    search_drop,
    small_mdp,
    step_advantage,
    value_change,
    value_loss,
    worst_drop_any,
    worst_drop_three,
)
from pu_lib.claims.recorder import Recorder, check
from pu_lib.exact import Number, Undecided, ball, precision
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, as_update, greedy_mask, make_update, softmax

PAPER_THETA = (10, 0, 0)
PAPER_Q = ("0.99", 1, 0)

ZERO = "0 up to rounding"

MCE_FOR_CE = {"MCE in place of CE": {"update": "mce"}}
CE_FOR_MCE = {"CE in place of MCE": {"update": "ce"}}


# The paper's example


@check(
    "prop:non-monotonicity",
    wrong={**MCE_FOR_CE, "at the uniform policy": {"theta": (0, 0, 0)}},
)
def ce_may_lower_the_value(
    compare: Recorder, update: str = "ce", theta: Sequence[Number] = PAPER_THETA
) -> None:
    """CE decreases the value in the example of the paper."""
    with precision(256):
        step = certified_step(update, theta, PAPER_Q, 1)
        before, after = (x.str(10, radius=False) for x in (step.v, step.new_v))
        compare.at_least(
            "certified decrease of the value", -step.change, ROUNDING, limit="rounding",
            at={"before": before, "after": after},
        )  # fmt: skip


@check(
    "prop:non-monotonicity/example",
    wrong={
        **MCE_FOR_CE,
        "0.98997 before": {"before": "0.98997"},
        "0.98989 after": {"after": "0.98989"},
    },
)
def printed_values_are_right(
    compare: Recorder, before: str = "0.98996", after: str = "0.98988", update: str = "ce"
) -> None:
    """CE changes the value from 0.98996 to 0.98988, up to half a unit in the last digit."""
    with precision(256):
        step = certified_step(update, PAPER_THETA, PAPER_Q, 1)
        for value, printed in ((step.v, before), (step.new_v, after)):
            compare.at_most(
                "error of the printed value", abs(value - ball(printed)), ball("5e-6"),
                limit=r"$5\cdot10^{-6}$", at={"printed": printed},
            )  # fmt: skip
    compare.report(before=before, after=after)


@check(
    "prop:non-monotonicity/approximations",
    wrong={
        **MCE_FOR_CE,
        "e^2 for a_3 as well": {"powers": (2.0, 2.0)},
        "a factor of 7.4": {"powers": (2.002, 1.0)},
    },
)
def printed_approximations_are_right(
    compare: Recorder, update: str = "ce", powers: Sequence[float] = (2.0, 1.0)
) -> None:
    """CE multiplies the probabilities of actions 2 and 3 by e^2 and e, up to a relative 0.001.

    It moves the parameters to (9, 1, 0), up to 0.001.
    """
    moved = as_update(update).step(np.array(PAPER_THETA, float), np.array(PAPER_Q, float), 1.0)
    for a, (now, printed) in enumerate(zip(moved.tolist(), (9.0, 1.0, 0.0), strict=True), start=1):
        off = abs(now - printed)
        compare.at_most("error of a parameter", off, 0.001, limit="0.001", at={"action": a})
    with precision(256):
        step = certified_step(update, PAPER_THETA, PAPER_Q, 1)
        for a, power in enumerate(powers, start=1):
            factor = step.new_pi[a] / step.pi[a]
            compare.at_most(
                "relative error", abs(factor / ball(power).exp() - 1), ball("0.001"),
                limit="0.001", at={"action": a + 1, "factor": float(factor)},
            )  # fmt: skip
            compare.report(**{f"factor of action {a + 1}": float(factor)})


@check("sec:ce/imbalance", wrong=MCE_FOR_CE)
def ce_may_raise_the_worst_action(compare: Recorder, update: str = "ce") -> None:
    """CE increases the probability of the worst action in the example of the paper."""
    with precision(256):
        step = certified_step(update, PAPER_THETA, PAPER_Q, 1)
        before, after = step.pi[2], step.new_pi[2]
        compare.at_least(
            "certified gain of the worst action", after - before, ROUNDING, limit="rounding",
            at={"before": float(before), "after": float(after)},
        )  # fmt: skip


# How far CE may lower the value


def _random_rationals(rng: np.random.Generator, n_actions: int) -> tuple[list[Fraction], ...]:
    """Return random rational parameters in [-10, 10) and distinct rational values in [0, 1)."""
    theta = [Fraction(int(x), 100) for x in rng.integers(-1000, 1000, n_actions)]
    q = [Fraction(int(x), 1000) for x in rng.choice(1000, n_actions, replace=False)]
    return theta, q


@check("book:two-actions", wrong={"three actions": {"n_actions": 3}})
def ce_is_mce_with_two_actions(compare: Recorder, n_actions: int = 2) -> None:
    """CE and MCE compute the same policy if there are two actions."""
    rng = np.random.default_rng(11)
    with precision(256):
        for draw in range(300):
            theta, q = _random_rationals(rng, n_actions)
            ce, mce = (certified_step(name, theta, q, "1.5").new_pi for name in ("ce", "mce"))
            distance = max(float((x - y).abs_upper()) for x, y in zip(ce, mce, strict=True))
            compare.equal(
                "certified distance of the policies", distance, 0, tolerance=1e-30,
                limit="0 up to $10^{-30}$", at={"draw": draw},
            )  # fmt: skip
            start, values = np.array(theta, dtype=float), np.array(q, dtype=float)
            missing = 1.0 - softmax(start)[greedy_mask(values)].sum()
            printed = 1.5 * missing * np.where(greedy_mask(values), 1.0, -1.0)
            steps = [as_update(name).step(start, values, 1.5) - start for name in ("ce", "mce")]
            off = float(np.abs(np.array(steps) - printed).max())
            compare.equal(
                "step of the parameters less the printed one", off, 0, tolerance=1e-12,
                limit=ZERO, at={"draw": draw},
            )  # fmt: skip


@check(
    "book:worst-decrease",
    wrong={
        "MCE in place of CE": {"update": "mce", "weights": (1.0,)},
        "no more than in one state, in an MDP": {"of_horizon": 0.0, "weights": (1.0,)},
        "by a horizon that is 1 % longer": {"of_horizon": 1.01, "weights": (1.0,)},
    },
)
def decrease_of_ce_has_these_suprema(
    compare: Recorder,
    update: str = "ce",
    weights: Sequence[float] = (0.1, 1.0, 2.0, 5.0),
    of_horizon: float = 1.0,
) -> None:
    r"""The largest decrease under CE is D_3 for three actions, and D_infinity for any number.

    In an MDP, whose action values change with the policy, the supremum is
    :math:`1/(1-\gamma)` times as large.
    """
    for w in weights:
        _decreases_in_mdps(compare, update, w, of_horizon)
        d_3, d_many = worst_drop_three(w), worst_drop_any(w)
        drops = {k: search_drop(update, k, w, rounds=250).value for k in (3, 5)}
        crowd, at = _decrease_with_many_actions(update, w), {"weight": w}
        three = "decrease found with three actions over $D_3$"
        compare.equal(three, drops[3] / d_3, 1, tolerance=1e-4, limit="1 up to 0.01 %", at=at)
        compare.at_most(three, drops[3] / d_3, 1 + 1e-9, limit="1", at=at)
        five = "decrease found with five actions over $D_3$"
        compare.at_least(five, drops[5] / d_3, 1 - 1e-4, limit="1", at=at)
        any_number = r"decrease found with five or 3000 actions over $D_\infty$"
        compare.at_most(any_number, max(drops[5], crowd) / d_many, 1, limit="1", at=at)
        many = r"decrease found with 3000 actions over $D_\infty$"
        compare.at_least(many, crowd / d_many, 1 - 5e-3, limit="99.5 %", at=at)
        if w == 1.0:
            compare.report(**{"with three actions": drops[3], "D_3": d_3})
            compare.report(**{"with 3000 actions": crowd, "D_infinity": d_many})


def _decrease_with_many_actions(
    update: str | Update, weight: float, n_actions: int = 3000
) -> float:
    """Return the largest decrease over policies with one likely and many unlikely actions."""
    likely = np.linspace(0.5, 0.999, 60)[:, np.newaxis]
    rest = np.full((1, n_actions - 2), 1 / (n_actions - 2))
    pi = np.hstack([np.full_like(likely, 1e-30), likely, (1 - likely) * rest])
    q = np.append([1.0, 1.0], np.zeros(n_actions - 2))
    return float(-value_change(update, np.log(pi), q, weight).min())


def _decreases_in_mdps(compare: Recorder, update: str, weight: float, of_horizon: float) -> None:
    """Compare decreases in MDPs, relative to the range of the values, with D_3 times the horizon.

    In every second MDP all states have the policy and the action values of the worst decrease that
    was found in one state. `of_horizon` multiplies the horizon in excess of one step.
    """
    rng, chosen = np.random.default_rng(25), as_update(update)
    worst = search_drop(update, 3, weight, rounds=250)
    for i in range(200):
        n_states, discount = int(rng.integers(1, 6)), float(rng.choice([0.0, 0.5, 0.9, 0.99]))
        if i % 2:
            pi = softmax(rng.choice([1.0, 3.0, 8.0]) * rng.normal(size=(n_states, 3)))
            q = rng.random((n_states, 3))
        else:
            order = rng.permuted(np.tile(np.arange(3), (n_states, 1)), axis=1)
            pi, q = worst.policy[order], worst.q[order]
        mdp = mdp_with_values(rng, pi, q + rng.normal(size=(n_states, 1)), discount)
        before = mdp.evaluate(pi)
        after = mdp.evaluate(chosen.policy(chosen.step(chosen.parameters(pi), before.q, weight)))
        horizon = 1 + of_horizon * discount / (1 - discount)
        spread = np.ptp(before.q, axis=1).max()  # 0 if a search without a decrease ends at a tie
        loss = float((before.v - after.v).max() / spread / horizon) if spread else 0.0
        at = {"weight": weight, "MDP": i, "states": n_states, "discount": discount}
        quantity = r"decrease in an MDP over $D_3/(1-\gamma)$"
        ratio = loss / worst_drop_three(weight)
        compare.at_most(quantity, ratio, 1 + 1e-9, limit="1", at=at)
        if not i % 2:
            compare.at_least(quantity, ratio, 1 - 1e-4, limit="99.99 % at the worst", at=at)


@check(
    "book:worst-decrease/values",
    wrong={"the actions whose probability falls are worth nothing, too": {"falling": 0.0}},
)
def worst_values_are_one_and_zero(compare: Recorder, falling: float = 1.0) -> None:
    """CE loses most value if the gaining actions have value 0 and the losing actions value 1."""
    rng = np.random.default_rng(2)
    theta, greedy_q = 2 * rng.normal(size=(200, 4)), rng.random((200, 4))
    pi, new = softmax(theta), softmax(as_update("ce").step(theta, greedy_q, 2.0))
    claimed, best = mass_gained(pi, new, greedy_q), greedy_mask(greedy_q)
    worst = np.where(best, 1.0, np.where(new <= pi, falling, 0.0))
    error = np.abs(-step_advantage(pi, new, worst) - claimed).max()
    compare.equal(
        "decrease at the worst values less the mass gained", error, 0, tolerance=ROUNDING,
        limit=ZERO, at={"values": "the worst"},
    )  # fmt: skip
    for draw in range(50):
        decreases = -step_advantage(pi, new, np.where(best, 1.0, rng.random((200, 4))))
        for state, (decrease, mass) in enumerate(zip(decreases, claimed, strict=True)):
            compare.at_most(
                "decrease at other values", decrease, mass + ROUNDING, limit="the mass gained",
                at={"values": "random", "draw": draw, "state": state},
            )  # fmt: skip


# Proposition 2


@check("book:step-advantage", wrong={"the chain of the old policy": {"old": True}})
def step_advantage_gives_the_change(compare: Recorder, old: bool = False) -> None:
    r"""The change in the values is :math:`v' - v = (I - \gamma P_{\pi'})^{-1} A`."""
    rng = np.random.default_rng(4)
    for i in range(200):
        mdp = small_mdp(rng)
        pi, new = rng.dirichlet(np.ones(mdp.n_actions), size=(2, mdp.n_states))
        before, after = mdp.evaluate(pi), mdp.evaluate(new)
        chain = np.einsum("sa,sax->sx", pi if old else new, mdp.transitions)
        system = np.eye(mdp.n_states) - mdp.discount * chain
        change = np.linalg.solve(system, step_advantage(pi, new, before.q))
        error = np.abs(after.v - before.v - change).max() / (1 + np.abs(before.v).max())
        compare.equal(
            "error, relative to the values", error, 0, tolerance=1e-11, limit=ZERO,
            at={"MDP": i, "states": mdp.n_states, "discount": mdp.discount},
        )  # fmt: skip


@check("prop:monotonicity", wrong={**CE_FOR_MCE, "PG-ES in its place": {"update": "pg-es"}})
def mce_lowers_no_value(compare: Recorder, update: str = "mce") -> None:
    """MCE does not decrease the value of any state, at weights from 1e-3 to 1e4."""
    rng, chosen = np.random.default_rng(15), as_update(update)
    for i in range(3000):
        mdp = small_mdp(rng)
        shape = (mdp.n_states, mdp.n_actions)
        theta = chosen.parameters(softmax(rng.choice([1.0, 3.0, 8.0]) * rng.normal(size=shape)))
        weight = 10.0 ** rng.uniform(-3, 4, size=mdp.n_states)
        before = mdp.evaluate(chosen.policy(theta))
        after = mdp.evaluate(chosen.policy(chosen.step(theta, before.q, weight)))
        change = (after.v - before.v).min() / (1 + np.abs(before.v).max())
        rounding = ROUNDING / (1 - mdp.discount)  # from solving for the values
        compare.at_least(
            "change of a value, relative to the values, plus rounding", change + rounding, 0,
            limit="0", at={"MDP": i, "states": mdp.n_states, "actions": mdp.n_actions,
                           "discount": mdp.discount},
        )  # fmt: skip


@check("prop:monotonicity/attack", wrong=CE_FOR_MCE)
def mce_resists_a_search(compare: Recorder, update: str = "mce") -> None:
    """A search over policies and values finds no decrease under MCE, at six weights."""
    for w in (1e-3, 0.1, 1.0, 10.0, 1e3, 1e4):
        for n_actions in (3, 5):
            drop = search_drop(update, n_actions, w, seed=16, rounds=200, restarts=1)
            compare.equal(
                "largest decrease found", max(drop.value, 0.0), 0, tolerance=ROUNDING, limit=ZERO,
                at={"weight": w, "actions": n_actions}, note={"policy": drop.policy, "q": drop.q},
            )  # fmt: skip


@check("prop:monotonicity/certified", wrong=CE_FOR_MCE)
def mce_certainly_raises_the_value(compare: Recorder, update: str = "mce") -> None:
    """MCE increases the value in random rational one-state problems with three to six actions."""
    rng = np.random.default_rng(17)
    with precision(640):
        for draw in range(400):
            theta, q = _random_rationals(rng, int(rng.integers(3, 7)))
            weight = Fraction(int(10 ** rng.uniform(0, 7)), 1000)
            rise = certified_step(update, theta, q, weight).change
            where = {"draw": draw, "actions": len(q), "weight": str(weight)}
            compare.at_least("certified rise of the value", rise, 0, limit="0", at=where)


@check("eq:monotonic-decrease-policy", wrong=CE_FOR_MCE)
def mce_penalises_equally(compare: Recorder, update: str | Update = "mce") -> None:
    """MCE preserves the odds of suboptimal actions, and no suboptimal action gains probability."""
    rng, chosen = np.random.default_rng(23), as_update(update)
    for _ in range(2000):
        theta, q = 3 * rng.normal(size=(2, int(rng.integers(2, 7))))
        weight = 10 ** rng.uniform(-3, 4)
        moved = chosen.step(theta, q, weight)
        others = ~greedy_mask(q)
        change = np.ptp((moved - theta)[others])
        compare.equal(
            "change of log odds", change, 0, tolerance=1e-11 * (1 + weight), limit=ZERO,
            at={"part": "odds", "weight": weight},
        )  # fmt: skip
        gains = chosen.policy(moved) - chosen.policy(theta)
        compare.at_most(
            "gain of probability less $10^{-15}$", gains[others].max() - 1e-15, 0, limit="0",
            at={"part": "probability", "weight": weight},
        )  # fmt: skip
        compare.at_least(
            "gain of the greedy action plus $10^{-15}$", gains[~others].min() + 1e-15, 0,
            limit="0", at={"part": "greedy action", "weight": weight},
        )  # fmt: skip


@check("eq:advantage", wrong=CE_FOR_MCE)
def advantage_is_a_sum_of_gains(compare: Recorder, update: str | Update = "mce") -> None:
    """The step advantage of MCE is a sum of nonnegative terms over the suboptimal actions."""
    rng, chosen = np.random.default_rng(24), as_update(update)
    for _ in range(2000):
        theta, q = rng.normal(size=(2, int(rng.integers(2, 7))))
        weight = 10 ** rng.uniform(-2, 2)
        pi, new = softmax(theta), softmax(chosen.step(theta, q, weight))
        others = ~greedy_mask(q)
        terms = ((new - pi) * (q - q.max()))[others]
        compare.equal(
            "advantage", (new - pi) @ q, terms.sum(), tolerance=1e-14,
            limit="the sum up to rounding", at={"part": "the sum", "weight": weight},
        )  # fmt: skip
        compare.at_least(
            "least term plus $10^{-14}$", terms.min() + 1e-14, 0, limit="0",
            at={"part": "each term", "weight": weight},
        )  # fmt: skip


@check(
    "prop:monotonicity/strict",
    wrong={
        **CE_FOR_MCE,
        "only the states that are updated themselves": {"only_updated": True},
        "reached through discount 0 as well": {"through_zero": True},
    },
)
def values_rise_exactly_if_an_update_is_reached(
    compare: Recorder,
    update: str | Update = "mce",
    only_updated: bool = False,
    through_zero: bool = False,
) -> None:
    """MCE increases the value of a state exactly if the state can reach a state that MCE changes.

    Many states have identical actions or weight zero, so many values do not change.
    """
    rng, rising, still = np.random.default_rng(18), 0, 0
    with precision(256):
        for i in range(150):
            mdp, equal = mdp_with_equal_actions(rng)
            idle = rng.random(mdp.n_states) < 0.4
            weight = np.where(idle, 0.0, 2.0 ** rng.integers(-3, 4, mdp.n_states))
            theta = rng.integers(-8, 9, (mdp.n_states, mdp.n_actions)) / 4
            signs = [_sign(x) for x in certified_changes(update, mdp, theta, weight, equal)]
            discount = 0.5 if through_zero else mdp.discount
            seen = FiniteMDP(mdp.transitions, mdp.rewards, mdp.initial, discount)
            predicted = improving_states(seen, np.asarray(~(idle | equal)), only_updated)
            compare.equal(
                "sign of the change of each value", signs, predicted.astype(int).tolist(),
                limit="the prediction", at={"MDP": i, "discount": mdp.discount},
            )  # fmt: skip
            rising, still = rising + signs.count(1), still + signs.count(0)
    compare.at_least(
        "values of each kind", min(rising, still), 1, limit="1",
        at={"rising": rising, "still": still},
    )  # fmt: skip


def _sign(change: arb) -> int:
    """Return the sign of a change; a change within 1e-40 of zero counts as zero.

    Ball arithmetic cannot certify that two values are equal.
    """
    if change > 0:
        return 1
    if change < 0:
        return -1
    if float(change.abs_upper()) < 1e-40:
        return 0
    raise Undecided("256 bits do not decide whether a value rises")


@check(
    "book:sign-condition",
    wrong={
        "CE is monotone too": {"updates": ("ce",)},
        "the limit for p = 2 whatever p": {"limit_p": 2.0},
    },
)
def these_updates_are_monotone(
    compare: Recorder,
    updates: Sequence[str] = ("pg-sm", "di", "mce"),
    limit_p: float | None = None,
) -> None:
    """PG-SM, DI and MCE never decrease the value, and neither does PG-ES up to its safe weight."""
    largest = "largest decrease found"
    for update in updates:
        for w in (0.1, 1.0, 10.0, 1e3):
            drop = search_drop(update, 3, w, seed=19, rounds=100, restarts=1)
            compare.equal(
                largest, max(drop.value, 0.0), 0, tolerance=ROUNDING, limit=ZERO,
                at={"update": update, "weight": w},
            )  # fmt: skip
    rng = np.random.default_rng(19)
    for p in (1.5, 2.0, 3.0, 4.0):
        pi, q = rng.dirichlet(np.full(4, 0.4), size=20_000), rng.random((20_000, 4))
        pi, escort = np.maximum(pi, 1e-12), make_update("pg-es", p=p)
        theta = escort.parameters(pi / pi.sum(axis=-1, keepdims=True))
        limit = escort_safe_weight(theta, q, limit_p or p)
        weight = limit * rng.uniform(0.5, 1, size=len(q))
        decrease = -value_change(escort, theta, q, weight).min()
        compare.equal(
            largest, max(decrease, 0.0), 0, tolerance=ROUNDING, limit=ZERO,
            at={"update": f"pg-es, p = {p:g}", "weight": "up to its limit"},
        )  # fmt: skip


# Approximate values


@check(
    "book:mce-approximate",
    wrong={
        "CE in place of MCE": {"update": "ce"},
        "nine tenths of the loss": {"factor": 0.9},
        "nine tenths of the change at two actions": {"weight_factor": 0.45},
    },
)
def approximate_values_cost_mce_little(
    compare: Recorder, update: str = "mce", factor: float = 1.0, weight_factor: float = 1.0
) -> None:
    """A step of MCE with values that are off by eps loses at most 2 eps times its change.

    The last instances are two actions whose values are off by eps in opposite directions.
    """
    rng, chosen = np.random.default_rng(0), as_update(update)
    for draw in range(2000):
        n = int(rng.integers(2, 6))
        theta, q = 3.0 * rng.standard_normal(n), rng.random(n)
        weight, eps = 10.0 ** rng.uniform(-2, 2), 10.0 ** rng.uniform(-3, 0)
        approximate = q + eps * rng.choice([-1.0, 1.0], n)
        pi, new = softmax(theta), chosen.policy(chosen.step(theta, approximate, weight))
        moved = float(np.abs(new - pi).sum() / 2)
        at = {"draw": draw}
        compare.at_most(
            "loss", float((pi - new) @ q), 2 * eps * factor * moved + ROUNDING,
            limit="2ε times the change of the policy", at=at,
        )  # fmt: skip
        span = weight_factor * n / (n - 1) * weight
        compare.at_most(
            "change of the policy", moved, math.tanh(span / 4) + ROUNDING,
            limit="tanh(cw/4)", at=at,
        )  # fmt: skip
    for weight in (0.01, 0.1, 1.0, 3.0):
        for p in np.linspace(0.01, 0.5, 100):
            theta, q = np.log([p, 1 - p]), np.array([-1.0, 1.0])
            new = chosen.policy(chosen.step(theta, np.array([1e-13, 0.0]), weight))
            moved = float(new[0] - p)
            where = {"weight": weight, "p": float(p)}
            compare.at_most(
                "loss", float(new @ -q + (1 - 2 * p)), 2 * factor * moved + ROUNDING,
                limit="2ε times the change of the policy", at=where,
            )  # fmt: skip
            compare.at_most(
                "change of the policy", moved, math.tanh(weight_factor * weight / 2) + ROUNDING,
                limit="tanh(cw/4)", at=where,
            )  # fmt: skip
    for draw in range(200):
        mdp = small_mdp(rng)
        theta, eps = 2.0 * rng.standard_normal(mdp.rewards.shape), 10.0 ** rng.uniform(-2, 0)
        weight = 10.0 ** rng.uniform(-1, 1)
        now = mdp.evaluate(softmax(theta))
        approximate = now.q + eps * rng.choice([-1.0, 1.0], now.q.shape)
        new = chosen.policy(chosen.step(theta, approximate, weight))
        moved = float(np.abs(new - softmax(theta)).sum(axis=1).max() / 2)
        compare.at_most(
            "fall of a value", float((now.v - mdp.evaluate(new).v).max()),
            factor * value_loss(eps, moved, mdp.discount) + ROUNDING, at={"process": draw},
        )  # fmt: skip


@check(
    "book:approximate-gap",
    wrong={
        "a limit of 2ε/(1-γ)": {"refuted": False},
        "values that are off by 0.49": {"error": "0.49"},
        "parameters that differ by 1, far from certain": {"lead": 1},
    },
)
def errors_in_the_values_add_up(
    compare: Recorder, lead: int = 100, refuted: bool = True, error: str = "1/2"
) -> None:
    """On the chain MCE with approximate values returns to a gap of more than 2 eps / (1 - gamma).

    A period is run in balls. The error of the values is measured: the actions of the schedule are
    greedy for some values that are off by no more.
    """
    for text in ("1/10", "1/2", "9/10", "99/100"):
        for n_states in (2, 3, 10, 40):
            discount, at = Fraction(text), {"discount": text, "states": n_states}
            with precision(512):
                run = erring_chain(discount, n_states, lead)
                allowed = ball(error) + ball("1e-30")
                compare.at_most("error of the values", run.error, allowed, limit="1/2", at=at)
                plain = 2 * run.error / (1 - ball(discount))
                compare.at_most(
                    "distance to the initial parameters after a period", run.drift, ball("1e-30"),
                    limit="$10^{-30}$", at=at,
                )  # fmt: skip
                limit = long_run_gap(n_states, ball(1) / 2, ball(discount)) - ball("1e-20")
                if refuted:
                    compare.at_least("gap once a period", run.gap, limit, at=at)
                else:
                    compare.at_most("gap once a period", run.gap, plain, at=at)
