r"""The checks of the chapter on monotonicity.

What is claimed of single numbers is decided in ball arithmetic; what is claimed of all policies and
values is attacked, at random and by differential evolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from flint import arb, ctx

from pu_lib.chapters.monotonicity.certified import CertifiedStep, certified_changes, certified_step
from pu_lib.chapters.monotonicity.quantities import (
    ROUNDING,
    escort_safe_weight,
    mass_gained,
    mdp_with_equal_actions,
    search_drop,
    small_mdp,
    step_advantage,
    strict_states,
    value_change,
    worst_drop_any,
    worst_drop_three,
)
from pu_lib.chapters.updates.quantities import GreedyAlone
from pu_lib.exact import Number, Undecided, ball
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import Update, as_update, greedy_mask, make_update, softmax
from pu_lib.verdict import Verdict, Worst, check, judged

PAPER_THETA = (10, 0, 0)
PAPER_Q = ("0.99", 1, 0)

MCE_FOR_CE = {"MCE in place of CE": {"update": "mce"}}
CE_FOR_MCE = {"CE in place of MCE": {"update": "ce"}}


def _rows(step: CertifiedStep, q: Sequence[Number]) -> list[dict[str, object]]:
    return [
        {"action": f"a_{a + 1}", "policy": float(p), "new policy": float(n), "q": str(value)}
        for a, (p, n, value) in enumerate(zip(step.pi, step.new_pi, q, strict=True))
    ]


@check(
    "prop:non-monotonicity",
    moved={**MCE_FOR_CE, "at the uniform policy": {"theta": (0, 0, 0)}},
)
def check_proposition_1(
    update: str | Update = "ce",
    theta: Sequence[Number] = PAPER_THETA,
    q: Sequence[Number] = PAPER_Q,
    weight: Number = 1,
) -> Verdict:
    """Certify that one update lowers the value at the paper's example.

    Parameters
    ----------
    update : str or Update
        The update.
    theta, q : sequence of numbers
        Parameters and values of the one state, exact.
    weight : number
        Weight of the step, exact.

    Returns
    -------
    Verdict
        The margin is the certified decrease minus 1e-12.
    """
    worst = Worst(f"the certified decrease of the value minus {ROUNDING:g}")
    with ctx.workprec(256):
        step = certified_step(update, theta, q, weight)
        before, after = (x.str(16, radius=False) for x in (step.v, step.new_v))
        worst.add(float((-step.change).lower()) - ROUNDING, before=before, after=after)
        return judged(worst, evidence=_rows(step, q))


@check(
    "prop:non-monotonicity/example",
    moved={
        **MCE_FOR_CE,
        "0.98997 before": {"before": "0.98997"},
        "0.98989 after": {"after": "0.98989"},
    },
)
def check_example_digits(
    before: str = "0.98996", after: str = "0.98988", update: str | Update = "ce"
) -> Verdict:
    """Certify the two values that the proof of Proposition 1 prints with five digits.

    Parameters
    ----------
    before, after : str
        The printed values.
    update : str or Update
        The update.

    Returns
    -------
    Verdict
        The margin is half a unit of the last digit minus the larger error.
    """
    worst = Worst("5e-6 minus the error of the printed value")
    with ctx.workprec(256):
        step = certified_step(update, PAPER_THETA, PAPER_Q, 1)
        for value, printed in ((step.v, before), (step.new_v, after)):
            error = abs(value - ball(printed))
            worst.add(float((ball("5e-6") - error).lower()), value=float(value), printed=printed)
    return judged(worst)


@check(
    "prop:non-monotonicity/approximations",
    moved={
        **MCE_FOR_CE,
        "e^2 for a_3 as well": {"powers": (2.0, 2.0)},
        "a factor of 7.4": {"powers": (2.002, 1.0)},
    },
)
def check_example_approximations(
    update: str | Update = "ce", powers: Sequence[float] = (2.0, 1.0)
) -> Verdict:
    """Certify the approximations by which the proof of Proposition 1 explains its example.

    Parameters
    ----------
    update : str or Update
        The update.
    powers : sequence of two numbers
        Actions 2 and 3 gain these powers of e as factors.

    Returns
    -------
    Verdict
        The margin is one in a thousand minus the largest relative error.
    """
    worst = Worst("0.001 minus the relative error")
    with ctx.workprec(256):
        step = certified_step(update, PAPER_THETA, PAPER_Q, 1)
        for a, power in enumerate(powers, start=1):
            factor = step.new_pi[a] / step.pi[a]
            error = abs(factor / ball(power).exp() - 1)
            worst.add(float((ball("0.001") - error).lower()), action=a + 1, factor=float(factor))
    return judged(worst)


@check("sec:ce/imbalance", moved=MCE_FOR_CE)
def check_imbalance(update: str | Update = "ce") -> Verdict:
    """Certify that the worst action gains probability at the paper's example.

    Parameters
    ----------
    update : str or Update
        The update.

    Returns
    -------
    Verdict
        The margin is what action 3, whose value is 0, gains, minus 1e-12.
    """
    worst = Worst(f"what the worst action gains minus {ROUNDING:g}")
    with ctx.workprec(256):
        step = certified_step(update, PAPER_THETA, PAPER_Q, 1)
        gain = (step.new_pi[2] - step.pi[2]).lower()
        worst.add(float(gain) - ROUNDING, before=float(step.pi[2]), after=float(step.new_pi[2]))
        return judged(worst, evidence=_rows(step, PAPER_Q))


def _random_balls(rng: np.random.Generator, n_actions: int) -> tuple[list[Fraction], ...]:
    """Draw rational parameters up to 10, and distinct values between 0 and 1."""
    theta = [Fraction(int(x), 100) for x in rng.integers(-1000, 1000, n_actions)]
    q = [Fraction(int(x), 1000) for x in rng.choice(1000, n_actions, replace=False)]
    return theta, q


@check("book:two-actions", moved={"three actions": {"n_actions": 3}})
def check_two_actions(n_actions: int = 2) -> Verdict:
    """Certify that CE and MCE are one update when there are two actions, so that none decreases.

    Parameters
    ----------
    n_actions : int
        Number of actions; from three on the two updates differ.

    Returns
    -------
    Verdict
        The margin is 1e-30 minus the largest distance between the two policies.
    """
    rng, worst = np.random.default_rng(11), Worst("1e-30 minus the distance of the policies")
    with ctx.workprec(256):
        for _ in range(300):
            theta, q = _random_balls(rng, n_actions)
            ce, mce = (certified_step(name, theta, q, "1.5").new_pi for name in ("ce", "mce"))
            distance = max(float((x - y).abs_upper()) for x, y in zip(ce, mce, strict=True))
            worst.add(1e-30 - distance)
    return judged(worst)


@check(
    "book:worst-decrease",
    moved={
        "D_3 one per cent smaller": {"three": 0.99, "weights": (1.0,)},
        "D_3 one per cent larger": {"three": 1.01, "weights": (1.0,)},
        "D_infinity one per cent smaller": {"many": 0.99, "weights": (1.0,)},
        "MCE in place of CE": {"update": "mce", "weights": (1.0,)},
    },
)
def check_worst_decrease(
    update: str | Update = "ce",
    weights: Sequence[float] = (0.1, 1.0, 2.0, 5.0),
    three: float = 1.0,
    many: float = 1.0,
) -> Verdict:
    r"""Check :math:`D_3(w)` and :math:`D_\infty(w)` against a search over policies and values.

    Parameters
    ----------
    update : str or Update
        The update attacked.
    weights : sequence of float
        Weights at which to search.
    three, many : float
        Factors on the two suprema.

    Returns
    -------
    Verdict
        With three actions the search must come within 1e-4 of :math:`D_3`, relatively, and never
        exceed it; with five it must end between :math:`D_3` and :math:`D_\infty`; a policy of
        3000 actions must come within 0.5 % of :math:`D_\infty`.
    """
    worst, rows = Worst("the room, relative to the bound,"), []
    for w in weights:
        d_3, d_many = three * worst_drop_three(w), many * worst_drop_any(w)
        found = {k: search_drop(update, k, w, rounds=250).value for k in (3, 5)}
        crowd = _crowd(update, w)
        worst.add(1e-4 - abs(found[3] / d_3 - 1), weight=w, part="three actions reach D_3")
        worst.add(1 - found[3] / d_3 + 1e-9, weight=w, part="three actions stay below D_3")
        worst.add(found[5] / d_3 - 1 + 1e-4, weight=w, part="five actions reach D_3")
        worst.add(1 - max(found[5], crowd) / d_many, weight=w, part="all stay below D_infinity")
        worst.add(5e-3 - (1 - crowd / d_many), weight=w, part="many actions approach D_infinity")
        rows.append(
            {
                "weight": w,
                "found, 3 actions": found[3],
                "D_3": d_3,
                "found, 5 actions": found[5],
                "3000 actions": crowd,
                "D_infinity": d_many,
            }
        )
    return judged(worst, evidence=rows)


def _crowd(update: str | Update, weight: float, n_actions: int = 3000) -> float:
    """Return the largest decrease at policies of one likely action and many that share the rest."""
    likely = np.linspace(0.5, 0.999, 60)[:, np.newaxis]
    rest = np.full((1, n_actions - 2), 1 / (n_actions - 2))
    pi = np.hstack([np.full_like(likely, 1e-30), likely, (1 - likely) * rest])
    q = np.append([1.0, 1.0], np.zeros(n_actions - 2))
    return float(-value_change(update, np.log(pi), q, weight).min())


@check(
    "book:worst-decrease/values",
    moved={
        "nine tenths of the mass gained": {"factor": 0.9},
        "eleven tenths of the mass gained": {"factor": 1.1},
    },
)
def check_worst_values(factor: float = 1.0) -> Verdict:
    """Check that the worst values for a CE step are 1 where mass is lost and 0 where it is gained.

    Parameters
    ----------
    factor : float
        Factor on the mass gained, the claimed supremum.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(2), Worst("the room")
    theta, greedy_q = 2 * rng.normal(size=(200, 4)), rng.random((200, 4))
    pi, new = softmax(theta), softmax(as_update("ce").step(theta, greedy_q, 2.0))
    claimed, best = factor * mass_gained(pi, new, greedy_q), greedy_mask(greedy_q)
    reached = -step_advantage(pi, new, np.where(best | (new <= pi), 1.0, 0.0))
    worst.add(ROUNDING - float(np.abs(reached - claimed).max()), part="reached")
    for _ in range(50):
        q = np.where(best, 1.0, rng.random((200, 4)))
        worst.add(float((claimed + step_advantage(pi, new, q)).min()) + ROUNDING, part="a bound")
    return judged(worst)


@check("book:step-advantage", moved={"the chain of the old policy": {"old": True}})
def check_step_advantage(old: bool = False) -> Verdict:
    r"""Check :math:`v' - v = (I - \gamma P_{\pi'})^{-1} A` on random MDPs and pairs of policies.

    Parameters
    ----------
    old : bool
        Put :math:`P_\pi` in place of :math:`P_{\pi'}`.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(4), Worst("1e-11 minus the error, relative to the values,")
    for _ in range(200):
        mdp = small_mdp(rng)
        pi, new = rng.dirichlet(np.ones(mdp.n_actions), size=(2, mdp.n_states))
        before, after = mdp.evaluate(pi), mdp.evaluate(new)
        chain = np.einsum("sa,sax->sx", pi if old else new, mdp.transitions)
        system = np.eye(mdp.n_states) - mdp.discount * chain
        change = np.linalg.solve(system, step_advantage(pi, new, before.q))
        error = np.abs(after.v - before.v - change).max() / (1 + np.abs(before.v).max())
        worst.add(1e-11 - error, states=mdp.n_states, discount=mdp.discount)
    return judged(worst)


@check("prop:monotonicity", moved={**CE_FOR_MCE, "PG-ES in its place": {"update": "pg-es"}})
def check_proposition_2(update: str | Update = "mce", n: int = 3000) -> Verdict:
    """Check on random MDPs that one update lowers the value of no state.

    Parameters
    ----------
    update : str or Update
        The update under test.
    n : int
        Number of random MDPs, each with a random policy and weights from 1e-3 to 1e4.

    Returns
    -------
    Verdict
        The margin is the smallest change of any state's value, relative to the largest value, plus
        the tolerance of 1e-12 / (1 - discount) that solving for the values allows.
    """
    rng, chosen = np.random.default_rng(15), as_update(update)
    worst = Worst("the room of the change of a value")
    for _ in range(n):
        mdp = small_mdp(rng)
        shape = (mdp.n_states, mdp.n_actions)
        theta = chosen.parameters(softmax(rng.choice([1.0, 3.0, 8.0]) * rng.normal(size=shape)))
        weight = 10.0 ** rng.uniform(-3, 4, size=mdp.n_states)
        before = mdp.evaluate(chosen.policy(theta))
        after = mdp.evaluate(chosen.policy(chosen.step(theta, before.q, weight)))
        change = (after.v - before.v).min() / (1 + np.abs(before.v).max())
        room = change + ROUNDING / (1 - mdp.discount)
        worst.add(room, states=mdp.n_states, actions=mdp.n_actions, discount=mdp.discount)
    return judged(worst)


@check("prop:monotonicity/attack", moved=CE_FOR_MCE)
def check_proposition_2_attack(
    update: str | Update = "mce", weights: Sequence[float] = (1e-3, 0.1, 1.0, 10.0, 1e3, 1e4)
) -> Verdict:
    """Search policies and values, at each weight, for a decrease that one update causes.

    Parameters
    ----------
    update : str or Update
        The update attacked.
    weights : sequence of float
        Weights at which to search, with three and with five actions.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest decrease found (values of range one).
    """
    worst = Worst(f"{ROUNDING:g} minus the largest decrease found")
    for w in weights:
        for n_actions in (3, 5):
            drop = search_drop(update, n_actions, w, seed=16, rounds=200, restarts=1)
            policy, q = drop.policy.round(6).tolist(), drop.q.round(6).tolist()
            worst.add(ROUNDING - drop.value, weight=w, policy=policy, q=q)
    return judged(worst)


@check(
    "prop:monotonicity/certified",
    moved=CE_FOR_MCE,
    blind={"PG-SM in place of MCE: it does not lower the value either": {"update": "pg-sm"}},
)
def check_proposition_2_certified(update: str | Update = "mce", n: int = 400) -> Verdict:
    """Certify in ball arithmetic that one update raises the value of random states.

    Parameters
    ----------
    update : str or Update
        The update; a softmax policy with a kernel.
    n : int
        Number of random rational cases (3 to 6 actions, weights 1e-3 to 1e4).

    Returns
    -------
    Verdict
        The margin is the smallest rise, a certified lower bound.
    """
    rng, worst = np.random.default_rng(17), Worst("the certified rise")
    with ctx.workprec(640):
        for _ in range(n):
            theta, q = _random_balls(rng, int(rng.integers(3, 7)))
            weight = Fraction(int(10 ** rng.uniform(0, 7)), 1000)
            rise = certified_step(update, theta, q, weight).change.lower()
            worst.add(float(rise), actions=len(q), weight=str(weight))
    return judged(worst)


@check(
    "eq:monotonic-decrease-policy",
    moved=CE_FOR_MCE,
    blind={
        "MCE that moves the greedy action alone: only differences of parameters count": {
            "update": GreedyAlone()
        }
    },
)
def check_equal_penalty(update: str | Update = "mce", n: int = 2000) -> Verdict:
    """Check that all suboptimal actions lose alike: their odds stay, and none gains probability.

    Parameters
    ----------
    update : str or Update
        The update; a softmax policy.
    n : int
        Number of random states (2 to 6 actions, weights 1e-3 to 1e4).

    Returns
    -------
    Verdict
        The margin is the tolerance minus what an action gains, or minus the change of log odds.
    """
    rng, chosen, worst = np.random.default_rng(23), as_update(update), Worst("the room")
    for _ in range(n):
        theta, q = 3 * rng.normal(size=(2, int(rng.integers(2, 7))))
        weight = 10 ** rng.uniform(-3, 4)
        moved = chosen.step(theta, q, weight)
        others = ~greedy_mask(q)
        change = (moved - theta)[others]
        worst.add(1e-11 * (1 + weight) - np.ptp(change), part="odds", weight=weight)
        gain = (chosen.policy(moved) - chosen.policy(theta))[others].max()
        worst.add(1e-15 - gain, part="probability", weight=weight)
    return judged(worst)


@check(
    "eq:advantage",
    moved={**CE_FOR_MCE},
)
def check_advantage(update: str | Update = "mce", n: int = 2000) -> Verdict:
    """Check the sum over the suboptimal actions that the proof of Proposition 2 arrives at.

    Parameters
    ----------
    update : str or Update
        The update; a softmax policy.
    n : int
        Number of random states.

    Returns
    -------
    Verdict
        The sum must equal the advantage of the new policy, and each of its terms must not be
        negative, to 1e-14 (values of size one).
    """
    rng, chosen, worst = np.random.default_rng(24), as_update(update), Worst("the room")
    for _ in range(n):
        theta, q = rng.normal(size=(2, int(rng.integers(2, 7))))
        weight = 10 ** rng.uniform(-2, 2)
        pi, new = softmax(theta), softmax(chosen.step(theta, q, weight))
        others = ~greedy_mask(q)
        terms = ((new - pi) * (q - q.max()))[others]
        worst.add(1e-14 - abs((new - pi) @ q - terms.sum()), part="the sum", weight=weight)
        worst.add(terms.min() + 1e-14, part="each term", weight=weight)
    return judged(worst)


@check(
    "prop:monotonicity/strict",
    moved={
        "only the states that are updated themselves": {"only_moving": True},
        "reached through discount 0 as well": {"through_zero": True},
    },
)
def check_strict_increase(
    only_moving: bool = False, through_zero: bool = False, n: int = 150
) -> Verdict:
    """Certify which values rise strictly, by solving small MDPs in ball arithmetic.

    States with identical actions (equal values) and states of weight zero are frequent, so that
    many values do not move; there must be some of each kind.

    Parameters
    ----------
    only_moving : bool
        Passed to `strict_states`: with true the predicted set leaves out what is reached.
    through_zero : bool
        Predict as if the discount were not zero where it is.
    n : int
        Number of random MDPs.

    Returns
    -------
    Verdict
        The margin of an MDP is minus the number of wrong predictions.
    """
    rng, rising, still = np.random.default_rng(18), 0, 0
    worst = Worst("minus the number of wrong predictions")
    with ctx.workprec(256):
        for i in range(n):
            mdp, equal = mdp_with_equal_actions(rng)
            idle = rng.random(mdp.n_states) < 0.4
            weight = np.where(idle, 0.0, 2.0 ** rng.integers(-3, 4, mdp.n_states))
            theta = rng.integers(-8, 9, (mdp.n_states, mdp.n_actions)) / 4
            rises = [_rises(x) for x in certified_changes("mce", mdp, theta, weight, equal)]
            discount = 0.5 if through_zero else mdp.discount
            seen = FiniteMDP(mdp.transitions, mdp.rewards, mdp.initial, discount)
            predicted = strict_states(seen, np.asarray(~(idle | equal)), only_moving)
            worst.add(0.0 - np.sum(rises != predicted), MDP=i, discount=mdp.discount)
            rising, still = rising + sum(rises), still + len(rises) - sum(rises)
    worst.add(min(rising, still) - 1, rising=rising, still=still)
    return judged(worst)


def _rises(change: arb) -> bool:
    """Decide whether a change is positive; one enclosed in +-1e-40 is taken to be none.

    That two values are equal cannot be certified.
    """
    if change > 0:
        return True
    if float(change.abs_upper()) < 1e-40:
        return False
    raise Undecided("256 bits do not decide whether a value rose")


@check(
    "book:sign-condition",
    moved={
        "CE is monotone too": {"updates": ("ce",)},
        "PG-ES is safe up to 1.5 times its limit": {"stretch": 1.5},
        "the limit for p = 2 whatever p": {"limit_p": 2.0},
    },
)
def check_sign_condition(
    updates: Sequence[str | Update] = ("pg-sm", "di", "mce"),
    weights: Sequence[float] = (0.1, 1.0, 10.0, 1e3),
    exponents: Sequence[float] = (1.5, 2.0, 3.0, 4.0),
    stretch: float = 1.0,
    limit_p: float | None = None,
) -> Verdict:
    """Check that some updates never lower the value, nor `pg-es` up to its limit.

    Parameters
    ----------
    updates : sequence of str or Update
        Updates attacked by a search at every weight.
    weights : sequence of float
        The weights.
    exponents : sequence of float
        The exponents p of `pg-es`.
    stretch : float
        `pg-es` is tried with this multiple of the weight up to which it is safe.
    limit_p : float, optional
        The exponent with which the limit is computed; p itself if missing.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest decrease found (values of range one).
    """
    worst = Worst(f"{ROUNDING:g} minus the largest decrease found")
    for update in map(as_update, updates):
        for w in weights:
            drop = search_drop(update, 3, w, seed=19, rounds=100, restarts=1)
            worst.add(ROUNDING - drop.value, update=update.name, weight=w)
    rng = np.random.default_rng(19)
    for p in exponents:
        pi, q = rng.dirichlet(np.full(4, 0.4), size=20_000), rng.random((20_000, 4))
        pi, update = np.maximum(pi, 1e-12), make_update("pg-es", p=p)
        theta = update.parameters(pi / pi.sum(axis=-1, keepdims=True))
        limit = escort_safe_weight(theta, q, p if limit_p is None else limit_p)
        weight = stretch * limit * rng.uniform(0.5, 1, size=len(q))
        drop_at = -value_change(update, theta, q, weight)
        worst.add(ROUNDING - drop_at.max(), update=f"pg-es, p = {p:g}", weight="up to its limit")
    return judged(worst)
