r"""Whether one update can lower the value (paper, section 2, Propositions 1 and 2).

Let :math:`\pi \to \pi'` in every state, with :math:`v, q` the values of :math:`\pi`, and let
:math:`A(s) = \sum_a (\pi' - \pi)(a|s)\,q(s,a)` be the *step advantage*. From
:math:`v' = r_{\pi'} + \gamma P_{\pi'} v'` and :math:`r_{\pi'} + \gamma P_{\pi'} v = v + A`,

.. math:: v' - v = (I - \gamma P_{\pi'})^{-1} A = \sum_{k\ge0} \gamma^k P_{\pi'}^k A .

So the value rises everywhere if :math:`A \ge 0` everywhere, and :math:`v'(s) > v(s)` exactly if a
state with :math:`A > 0` can be reached from :math:`s` (only :math:`s` itself if
:math:`\gamma = 0`).

**The sign condition.** Suppose :math:`\pi'(a) \propto \pi(a)\,g_a` with :math:`g_a > 0`, and that
some number :math:`c` separates: :math:`g_a \ge c` where :math:`\mathrm{adv}(a) > 0`,
:math:`g_a \le c` where :math:`\mathrm{adv}(a) < 0`. As :math:`\sum_a\pi(a)\,\mathrm{adv}(a) = 0`,

.. math:: A = \frac{\sum_a \pi(a)\,(g_a - c)\,\mathrm{adv}(a)}{\sum_b \pi(b)\,g_b} \ge 0 .

- `mce`: :math:`g = e^{u}` at :math:`a_q`, and :math:`c = e^{-u/(|A|-1)}` elsewhere. Proposition 2.
- `pg-sm`: :math:`g_a = e^{w\pi(a)\mathrm{adv}(a)}`, :math:`c = 1`. So softmax policy gradient never
  lowers the value either, *for any learning rate*.
- `pg-es`: :math:`g_a = |1 + x_a|^p` with
  :math:`x_a = w\,p\,|\theta_a|^{p-2}\,\mathrm{adv}(a)/\|\theta\|_p^p`, and :math:`c = 1` as long as
  no :math:`x_a` is below -2: no parameter crosses zero to end up larger than it was.
- `di` is no such update, but the projection gives :math:`w A \ge \|\pi' - \pi\|^2`.
- `ce`: :math:`g_a = e^{-w\pi(a)}` for :math:`a \ne a_q`: the order of the factors among the other
  actions is that of their probabilities, whatever their values. Proposition 1.

**The worst decrease.** A `ce` step depends on :math:`q` through :math:`a_q` alone. With values of
range one, :math:`-A` is largest for values one at the actions that lose mass and zero at those that
gain some: :math:`\sup_q(-A) = \sum_{a \ne a_q}(\pi'(a) - \pi(a))^+`. The supremum over policies is
approached as :math:`\pi(a_q) \to 0`. For three actions it is

.. math:: D_3(w) = \max_{x\in[0,1]} \frac{x(1-x)\,(e^{-w(1-x)} - e^{-wx})}
                                          {(1-x)e^{-w(1-x)} + x\,e^{-wx}},

and for any number of actions it is below
:math:`D_\infty(w) = \max_x x(1-x)(1-e^{-wx})/(1 - x + x e^{-wx})`, the limit of many actions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import product

import numpy as np
from flint import arb, arb_mat, ctx
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar

from pu_lib.domains import random_mdp
from pu_lib.exact import Number, Undecided, ball, exact, sign
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, advantage, softmax
from pu_lib.verdict import Status, Verdict

__all__ = [
    "PAPER_Q",
    "PAPER_THETA",
    "CertifiedStep",
    "Drop",
    "ball_direction",
    "ball_softmax",
    "certified_step",
    "check_example_digits",
    "check_imbalance",
    "check_proposition_1",
    "check_proposition_2",
    "check_proposition_2_attack",
    "check_proposition_2_certified",
    "check_sign_condition",
    "check_strict_increase",
    "check_two_actions",
    "check_worst_decrease",
    "decrease_frequency",
    "decreases_in_random_mdps",
    "escort_safe_weight",
    "mass_gained",
    "reachable",
    "search_drop",
    "small_mdp",
    "step_advantage",
    "strict_states",
    "worst_drop_any",
    "worst_drop_three",
]

Floats = NDArray[np.float64]

PAPER_THETA = (10, 0, 0)
PAPER_Q = ("0.99", 1, 0)


ROUNDING = 1e-12
"""Tolerance on values of size one: evaluating a policy loses a few digits to 1/(1 - gamma)."""


@dataclass(frozen=True)
class Drop:
    """The largest decrease a search has found, and the policy and values where it happens."""

    value: float
    policy: Floats
    q: Floats


# The step advantage


def step_advantage(pi: Floats, new: Floats, q: Floats) -> Floats:
    r"""Return :math:`A = \sum_a (\pi' - \pi)(a)\,q(a)` of each row.

    The values are taken relative to the best one, which changes nothing in exact arithmetic and
    keeps the rounding error below the size of the gaps.
    """
    return np.asarray(np.sum((new - pi) * (q - q.max(axis=-1, keepdims=True)), axis=-1))


def mass_gained(pi: Floats, new: Floats, greedy: NDArray[np.bool_]) -> Floats:
    """Return the mass gained by actions other than the greedy one: the worst drop over q."""
    return np.asarray(np.where(greedy, 0.0, np.maximum(new - pi, 0.0)).sum(axis=-1))


def worst_drop_three(w: float) -> float:
    """Return the supremum of the decrease that CE causes with three actions, D_3(w)."""
    return _largest(
        lambda x: x * (1 - x) * -np.expm1(-w * (2 * x - 1)) / (1 - x + x * np.exp(-w * (2 * x - 1)))
    )


def worst_drop_any(w: float) -> float:
    """Return the supremum over all numbers of actions, D_infinity(w)."""
    return _largest(lambda x: x * (1 - x) * -np.expm1(-w * x) / (1 - x + x * np.exp(-w * x)))


def _largest(function: Callable[[Floats], Floats]) -> float:
    """Maximise a function of one variable on [0, 1]: a grid first, then a bracketed search."""
    grid = np.linspace(0, 1, 2001)
    i = int(np.argmax(function(grid)))
    bounds = (grid[max(i - 1, 0)], grid[min(i + 1, 2000)])
    found = minimize_scalar(
        lambda x: float(-function(np.array(x))), bounds=bounds, options={"xatol": 1e-12}
    )
    return float(-found.fun)


def search_drop(
    update: Update,
    n_actions: int,
    weight: float,
    rng: np.random.Generator,
    population: int = 300,
    rounds: int = 400,
) -> Drop:
    """Search policies and values of range one for the largest decrease of one update.

    A population of candidates climbs by random changes of every size, the worst third being
    replaced by the best now and then. The search knows nothing of the update.

    Parameters
    ----------
    update : Update
        The update attacked.
    n_actions : int
        Number of actions of the one state.
    weight : float
        The weight of the step.
    rng : numpy.random.Generator
        Source of randomness.
    population, rounds : int
        Number of candidates, and of changes tried on each.

    Returns
    -------
    Drop
    """
    floor = -30.0 - 2.0 * weight  # CE decreases most as pi(a_q) -> 0, at e^-w and below
    shape = (population, n_actions)
    scores = rng.normal(size=shape) * rng.choice([0.5, 2.0, 6.0], size=(population, 1))
    q = rng.random(shape)
    best = _drops(update, scores, q, weight)
    for turn in range(rounds):
        size = 10.0 ** rng.uniform(-3, 0.5, size=(population, 1))
        moved = scores + 4 * size * rng.normal(size=shape) * rng.integers(0, 2, size=shape)
        moved = np.maximum(moved - moved.max(axis=-1, keepdims=True), max(floor, -600.0))
        changed = q + size * rng.normal(size=shape) * rng.integers(0, 2, size=shape)
        changed = np.clip(changed, 0.0, 1.0)
        drops = _drops(update, moved, changed, weight)
        better = drops > best
        scores[better], q[better], best[better] = moved[better], changed[better], drops[better]
        if turn % 40 == 39:
            order, third = np.argsort(best), population // 3
            for array in (scores, q, best):
                array[order[:third]] = array[order[-third:]]
    top = int(np.argmax(best))
    return Drop(float(best[top]), softmax(scores[top]), q[top])


def _drops(update: Update, scores: Floats, q: Floats, weight: float) -> Floats:
    """Return v - v' after one update of the policies softmax(scores)."""
    pi = softmax(scores)
    new = update.policy(update.step(update.parameters(pi), q, weight))
    return -step_advantage(pi, new, q)


# Certified decreases of one state, in ball arithmetic


@dataclass(frozen=True)
class CertifiedStep:
    """One update of one state in ball arithmetic: values before and after, and both policies."""

    v: arb
    new_v: arb
    pi: list[arb]
    new_pi: list[arb]


def certified_step(
    name: str, theta: Sequence[Number], q: Sequence[Number], weight: Number
) -> CertifiedStep:
    """Update one state by CE or MCE with balls that enclose the exact numbers.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update; it is written here a second time, on balls.
    theta, q : sequence of numbers
        Exact parameters and values; the first of the largest values is greedy.
    weight : number
        Exact weight.

    Returns
    -------
    CertifiedStep
    """
    pi = ball_softmax([ball(x) for x in theta])
    greedy = max(range(len(q)), key=lambda a: exact(q[a]))
    steps = ball_direction(name, pi, greedy)
    new = ball_softmax([ball(x) + ball(weight) * d for x, d in zip(theta, steps, strict=True)])
    v, new_v = (sum((x * ball(y) for x, y in zip(p, q, strict=True)), arb(0)) for p in (pi, new))
    return CertifiedStep(v, new_v, pi, new)


def ball_softmax(theta: Sequence[arb]) -> list[arb]:
    """Return the softmax policy in balls, shifted by the largest midpoint."""
    top = max(theta, key=lambda x: float(x.mid())).mid()
    powers = [(x - top).exp() for x in theta]
    total = sum(powers, arb(0))
    return [power / total for power in powers]


def ball_direction(name: str, pi: Sequence[arb], greedy: int) -> list[arb]:
    """Return the direction of a CE or MCE step in balls.

    Raises
    ------
    ValueError
        If `name` is another update.
    """
    if name not in ("ce", "mce"):
        raise ValueError(f"name: only ce and mce are written on balls, got {name!r}.")
    missing = sum((p for a, p in enumerate(pi) if a != greedy), arb(0))
    others = [-missing / (len(pi) - 1) if name == "mce" else -p for p in pi]
    return [missing if a == greedy else others[a] for a in range(len(pi))]


def check_proposition_1(
    name: str = "ce",
    theta: Sequence[Number] = PAPER_THETA,
    q: Sequence[Number] = PAPER_Q,
    weight: Number = 1,
) -> Verdict:
    """Certify that one update lowers the value at the paper's example.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update.
    theta, q, weight
        The example: parameters, values and weight of the one state.

    Returns
    -------
    Verdict
        The margin is the decrease.
    """
    with ctx.workprec(256):
        step = certified_step(name, theta, q, weight)
        drop = step.v - step.new_v
        lowered, margin = sign(drop) > 0, float(drop.mid())
        v, new_v = step.v.str(22, radius=False), step.new_v.str(22, radius=False)
    return Verdict(
        "prop:non-monotonicity",
        Status.HOLDS if lowered else Status.FALSE,
        margin,
        f"v = {v} before and {new_v} after the update: a "
        f"{'decrease' if lowered else 'change'} of {margin:.12e}, certified by ball arithmetic.",
        tuple(
            {"action": f"a_{a + 1}", "policy": float(p), "new policy": float(n), "q": str(value)}
            for a, (p, n, value) in enumerate(zip(step.pi, step.new_pi, q, strict=True))
        ),
    )


def check_example_digits(
    before: str = "0.98996", after: str = "0.98988", name: str = "ce"
) -> Verdict:
    """Certify the two values that the proof of Proposition 1 prints with five digits.

    Parameters
    ----------
    before, after : str
        The printed values.
    name : {"ce", "mce"}
        The update.

    Returns
    -------
    Verdict
        The margin is half a unit of the last digit minus the larger error.
    """
    with ctx.workprec(256):
        step = certified_step(name, PAPER_THETA, PAPER_Q, 1)
        errors = [
            abs(value - ball(printed)) for value, printed in ((step.v, before), (step.new_v, after))
        ]
        half_unit = ball("5e-6")
        right = all(bool(error < half_unit) for error in errors)
        margin = min(float((half_unit - error).mid()) for error in errors)
    return Verdict(
        "prop:non-monotonicity/example",
        Status.HOLDS if right else Status.FALSE,
        margin,
        f"The values rounded to five digits are {float(step.v):.5f} and {float(step.new_v):.5f}; "
        f"printed: {before} and {after}.",
    )


def check_imbalance(name: str = "ce") -> Verdict:
    """Certify that the worst action gains probability at the paper's example.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update.

    Returns
    -------
    Verdict
        The margin is what action 3, whose value is 0, gains.
    """
    with ctx.workprec(256):
        step = certified_step(name, PAPER_THETA, PAPER_Q, 1)
        gain = step.new_pi[2] - step.pi[2]
        gains, margin = sign(gain) > 0, float(gain.mid())
    return Verdict(
        "sec:ce/imbalance",
        Status.HOLDS if gains else Status.FALSE,
        margin,
        f"The worst of the three actions goes from probability {float(step.pi[2]):.6e} to "
        f"{float(step.new_pi[2]):.6e}, certified.",
    )


def check_two_actions(n_actions: int = 2, n: int = 300, seed: int = 11) -> Verdict:
    """Certify that CE and MCE are one update when there are two actions, so that none decreases.

    Parameters
    ----------
    n_actions : int
        Number of actions; from three on the two updates differ.
    n, seed : int
        Number of random rational cases and their seed.

    Returns
    -------
    Verdict
        The margin is 1e-30 minus the largest distance between the two steps.
    """
    rng, worst = np.random.default_rng(seed), arb(0)
    with ctx.workprec(256):
        for _ in range(n):
            theta = [Fraction(int(x), 100) for x in rng.integers(-2000, 2000, n_actions)]
            pi = ball_softmax([ball(x) for x in theta])
            greedy = int(rng.integers(n_actions))
            pairs = zip(
                ball_direction("ce", pi, greedy), ball_direction("mce", pi, greedy), strict=True
            )
            worst = max([worst, *((x - y).abs_upper() for x, y in pairs)], key=float)
    distance = float(worst)
    return Verdict(
        "prop:non-monotonicity/two-actions",
        Status.HOLDS if distance <= 1e-30 else Status.FALSE,
        1e-30 - distance,
        f"With {n_actions} actions the steps of CE and MCE differ by at most {distance:.2g} over "
        f"{n} random cases.",
    )


# The worst decrease, and how often there is one


def check_worst_decrease(
    update: Update = UPDATES["ce"], weights: Sequence[float] = (0.1, 1.0, 2.0, 5.0), seed: int = 12
) -> Verdict:
    r"""Check :math:`D_3(w)` and :math:`D_\infty(w)` against a search over policies and values.

    Parameters
    ----------
    update : Update
        The update attacked.
    weights : sequence of float
        Weights at which to search.
    seed : int
        Seed of the search.

    Returns
    -------
    Verdict
        The margin is 1e-4 minus the largest distance, over the weights, between :math:`D_3` and
        what the search found with three actions; with five actions the search must stay between
        :math:`D_3` and :math:`D_\infty`.
    """
    rng, tolerance = np.random.default_rng(seed), 1e-4
    rows: list[dict[str, float]] = []
    for w in weights:
        found = [search_drop(update, n_actions, w, rng).value for n_actions in (3, 5)]
        rows.append(
            {
                "weight": w,
                "found, 3 actions": found[0],
                "D_3": worst_drop_three(w),
                "found, 5 actions": found[1],
                "D_infinity": worst_drop_any(w),
            }
        )
    distance = max(abs(row["found, 3 actions"] - row["D_3"]) for row in rows)
    inside = all(
        row["found, 3 actions"] <= row["D_3"] + ROUNDING
        and row["D_3"] - tolerance <= row["found, 5 actions"] <= row["D_infinity"] + ROUNDING
        for row in rows
    )
    holds = inside and distance <= tolerance
    return Verdict(
        "book:ce-worst-decrease",
        Status.HOLDS if holds else Status.FALSE,
        tolerance - distance,
        f"The search reaches D_3 to {distance:.2g} and "
        f"{'never' if inside else 'does not stay between D_3 and D_infinity: it'} "
        f"{'exceeds the bounds' if inside else 'leaves them'}.",
        tuple(rows),
    )


def decrease_frequency(
    update: Update, n_actions: int, weight: float, scale: float, n: int = 20_000, seed: int = 13
) -> float:
    r"""Return how often one update lowers the value of a random state.

    Parameters
    ----------
    update : Update
        The update.
    n_actions, weight
        The state's number of actions and the step's weight.
    scale : float
        Policies are softmax of normal numbers with this standard deviation.
    n, seed : int
        Number of states, and the seed. Values are uniform on [0, 1].

    Returns
    -------
    float
        The share of states with :math:`A < -10^{-12}`.
    """
    rng = np.random.default_rng(seed)
    scores, q = scale * rng.normal(size=(n, n_actions)), rng.random((n, n_actions))
    return float(np.mean(_drops(update, scores, q, weight) > ROUNDING))


def decreases_in_random_mdps(
    update: Update = UPDATES["ce"],
    etas: Sequence[float] = (0.1, 1.0, 10.0),
    scales: Sequence[float] = (0.0, 1.0, 3.0, 6.0),
    n: int = 20,
    steps: int = 50,
    seed: int = 14,
) -> list[dict[str, float]]:
    """Count the updates that lower the performance of random MDPs (30 states, 4 actions).

    Parameters
    ----------
    update : Update
        The update.
    etas : sequence of float
        Learning rates; all states are updated with d(s) = 1.
    scales : sequence of float
        Standard deviations of the normal initial parameters; 0 is the uniform policy.
    n, steps, seed : int
        Random MDPs for each line, updates of each, and the seed.

    Returns
    -------
    list of dict
        For each rate and scale the share of the updates that lower the performance, the share
        that lower the value of some state, and the largest decrease of the performance as a
        share of the range it can have.
    """
    rng = np.random.default_rng(seed)
    mdps = [random_mdp(rng, n_states=30, n_actions=4, if_none="last") for _ in range(n)]
    rows = []
    for eta, scale in product(etas, scales):
        lower_j, lower_v, worst = [], [], 0.0
        for mdp in mdps:
            theta = scale * rng.normal(size=(mdp.n_states, mdp.n_actions))
            path = run(mdp, update, steps, eta=eta, weighting="uniform", theta0=theta)
            change = np.diff(path.performance)
            lower_j += list(change < -ROUNDING)
            lower_v += list(np.any(np.diff(path.v, axis=0) < -ROUNDING, axis=1))
            worst = max(worst, float(-change.min()))
        rows.append(
            {
                "eta": eta,
                "scale of theta_0": scale,
                "updates that lower J": float(np.mean(lower_j)),
                "lower v somewhere": float(np.mean(lower_v)),
                "largest decrease of J": worst,
            }
        )
    return rows


# Proposition 2


def small_mdp(rng: np.random.Generator) -> FiniteMDP:
    """Draw an MDP of 1 to 6 states and 2 to 5 actions, any branching, discount up to 0.99."""
    n_states, n_actions = int(rng.integers(1, 7)), int(rng.integers(2, 6))
    keep = rng.random((n_states, n_actions, n_states)) < rng.uniform(0.2, 1)
    keep[np.arange(n_states), :, np.arange(n_states)] |= ~keep.any(axis=-1)
    mass = np.where(keep, rng.exponential(size=keep.shape), 0.0)
    transitions = mass / mass.sum(axis=-1, keepdims=True)
    initial = np.full(n_states, 1 / n_states)
    discount = float(rng.choice([0.0, 0.5, 0.9, 0.99]))
    return FiniteMDP(transitions, rng.normal(size=(n_states, n_actions)), initial, discount)


def check_proposition_2(update: Update = UPDATES["mce"], n: int = 3000, seed: int = 15) -> Verdict:
    """Check on random MDPs that one update lowers the value of no state.

    Parameters
    ----------
    update : Update
        The update under test.
    n, seed : int
        Number of random MDPs, each with a random policy and weights from 1e-3 to 1e4, and the seed.

    Returns
    -------
    Verdict
        The margin is the smallest change of any state's value, relative to the largest value, plus
        the tolerance of 1e-12 / (1 - discount) that solving for the values allows.
    """
    rng, margin, example = np.random.default_rng(seed), np.inf, None
    lowered = 0
    for _ in range(n):
        mdp = small_mdp(rng)
        shape = (mdp.n_states, mdp.n_actions)
        theta = rng.choice([1.0, 3.0, 8.0]) * rng.normal(size=shape)
        theta = update.parameters(softmax(theta))
        weight = 10.0 ** rng.uniform(-3, 4, size=mdp.n_states)
        before = mdp.evaluate(update.policy(theta))
        after = mdp.evaluate(update.policy(update.step(theta, before.q, weight)))
        scale = 1 + np.abs(before.v).max()
        room = float(((after.v - before.v) / scale).min()) + ROUNDING / (1 - mdp.discount)
        lowered += room < 0
        if room < margin:
            margin, example = room, {"states": mdp.n_states, "actions": mdp.n_actions}
    holds = margin >= 0
    return Verdict(
        "prop:monotonicity",
        Status.HOLDS if holds else Status.FALSE,
        margin,
        f"{lowered} of {n} updates of random MDPs lowered the value of some state; weights 1e-3 to "
        f"1e4, discounts up to 0.99. The smallest change, relative to the values and with the "
        f"tolerance for rounding added, is {margin:.2g}.",
        counterexample=None if holds else example,
    )


def check_proposition_2_attack(
    update: Update = UPDATES["mce"],
    weights: Sequence[float] = (1e-3, 0.1, 1.0, 10.0, 1e3, 1e4),
    seed: int = 16,
) -> Verdict:
    """Search policies and values, at each weight, for a decrease that one update causes.

    Parameters
    ----------
    update : Update
        The update attacked.
    weights : sequence of float
        Weights at which to search.
    seed : int
        Seed of the search.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest decrease found (values of range one).
    """
    rng = np.random.default_rng(seed)
    found = [search_drop(update, k, w, rng, rounds=200) for w in weights for k in (3, 5)]
    worst = max(found, key=lambda drop: drop.value)
    holds = worst.value <= ROUNDING
    return Verdict(
        "prop:monotonicity/attack",
        Status.HOLDS if holds else Status.FALSE,
        ROUNDING - worst.value,
        f"The largest decrease found by {len(found)} searches, with weights {min(weights):g} to "
        f"{max(weights):g} and values of range one, is {max(worst.value, 0.0):.3g}.",
        counterexample=None
        if holds
        else {"policy": worst.policy.round(6).tolist(), "q": worst.q.round(6).tolist()},
    )


def check_proposition_2_certified(name: str = "mce", n: int = 400, seed: int = 17) -> Verdict:
    """Certify in ball arithmetic that one update raises the value of random states.

    Parameters
    ----------
    name : {"ce", "mce"}
        The update.
    n, seed : int
        Number of random rational cases (3 to 6 actions, weights 1e-3 to 1e4), and their seed.

    Returns
    -------
    Verdict
        The margin is the smallest rise, certified.
    """
    rng, smallest, lowered = np.random.default_rng(seed), np.inf, 0
    with ctx.workprec(640):
        for _ in range(n):
            k = int(rng.integers(3, 7))
            theta = [Fraction(int(x), 100) for x in rng.integers(-1000, 1000, k)]
            q = [Fraction(int(x), 1000) for x in rng.choice(1000, k, replace=False)]
            weight = Fraction(int(10 ** rng.uniform(0, 7)), 1000)
            step = certified_step(name, theta, q, weight)
            rise = step.new_v - step.v
            lowered += sign(rise) < 0
            smallest = min(smallest, float(rise.mid()))
    return Verdict(
        "prop:monotonicity/certified",
        Status.HOLDS if lowered == 0 else Status.FALSE,
        smallest,
        f"{lowered} of {n} certified updates lowered the value; the smallest change is "
        f"{smallest:.3g} (values between 0 and 1, weights 1e-3 to 1e4).",
    )


# When the increase is strict


def reachable(mdp: FiniteMDP) -> NDArray[np.bool_]:
    """Mark the pairs (s, s') such that s' can be reached from s with full-support policies.

    Every state reaches itself; with discount 0 it reaches nothing else.
    """
    reach = np.eye(mdp.n_states, dtype=bool)
    if mdp.discount == 0:
        return reach
    edges = mdp.transitions.sum(axis=1) > 0
    for _ in range(mdp.n_states):
        reach = reach | (reach.astype(int) @ edges.astype(int) > 0)
    return np.asarray(reach)


def strict_states(
    mdp: FiniteMDP, moving: NDArray[np.bool_], only_moving: bool = False
) -> NDArray[np.bool_]:
    """Mark the states whose value an MCE update raises.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    moving : ndarray of bool, shape (n_states,)
        The states with a positive weight and values that are not all equal.
    only_moving : bool
        Mark only the moving states themselves: the condition without its second half.
    """
    return moving if only_moving else np.asarray((reachable(mdp) & moving).any(axis=1))


def check_strict_increase(only_moving: bool = False, n: int = 150, seed: int = 18) -> Verdict:
    """Certify which values rise strictly, by solving small MDPs in ball arithmetic.

    States with identical actions (equal values) and states of weight zero are frequent, so that
    many values do not move.

    Parameters
    ----------
    only_moving : bool
        Passed to `strict_states`: with true the predicted set leaves out what is reached.
    n, seed : int
        Number of random MDPs and their seed.

    Returns
    -------
    Verdict
        The margin counts wrong predictions, negatively.
    """
    rng, wrong, rising, still = np.random.default_rng(seed), 0, 0, 0
    with ctx.workprec(256):
        for _ in range(n):
            mdp, equal = _mdp_with_equal_actions(rng)
            idle = rng.random(mdp.n_states) < 0.4
            weight = np.where(idle, 0.0, 2.0 ** rng.integers(-3, 4, mdp.n_states))
            theta = rng.integers(-8, 9, (mdp.n_states, mdp.n_actions)) / 4
            change = _ball_change(mdp, theta, weight, equal)
            predicted = strict_states(mdp, np.asarray(~(idle | equal)), only_moving)
            rises = [bool(x > 0) for x in change]
            # equality cannot be certified; a change enclosed in +-1e-40 is taken to be none
            stays = [float(x.abs_upper()) < 1e-40 for x in change]
            if not all(a != b for a, b in zip(rises, stays, strict=True)):
                raise Undecided("256 bits do not decide whether a value rose")
            rising, still = rising + sum(rises), still + sum(stays)
            wrong += int(np.sum(np.array(rises) != predicted))
    return Verdict(
        "prop:monotonicity/strict",
        Status.CORRECTED if wrong == 0 else Status.FALSE,
        float(-wrong),
        f"In {n} random MDPs {rising} values rose, certified, and {still} did not move; the "
        f"condition predicts {rising + still - wrong} of these {rising + still}.",
    )


def _mdp_with_equal_actions(rng: np.random.Generator) -> tuple[FiniteMDP, NDArray[np.bool_]]:
    """Draw an MDP with dyadic numbers; return it and where all actions are the same."""
    n_states, n_actions = int(rng.integers(2, 6)), int(rng.integers(2, 5))
    successors = rng.integers(0, n_states, (n_states, n_actions, 4))
    # distinct rewards within a state, so that with discount 0 no two actions tie by accident
    rewards = np.argsort(rng.random((n_states, 129)), axis=1)[:, :n_actions] / 64.0 - 1
    equal = rng.random(n_states) < 0.5
    successors[equal], rewards[equal] = successors[equal, :1], rewards[equal, :1]
    transitions = np.eye(n_states)[successors].mean(axis=2)
    discount = float(rng.choice([0.0, 0.5, 0.875]))
    initial = np.eye(n_states)[0]
    return FiniteMDP(transitions, rewards, initial, discount), equal


def _ball_change(
    mdp: FiniteMDP, theta: Floats, weight: Floats, equal: NDArray[np.bool_]
) -> list[arb]:
    """Return v' - v after one MCE update, in balls; every number given is dyadic, so exact."""
    pi = [ball_softmax([arb(x) for x in row]) for row in theta.tolist()]
    v = _ball_values(mdp, pi)
    new = []
    for s, row in enumerate(theta.tolist()):
        q = [_ball_q(mdp, v, s, a) for a in range(mdp.n_actions)]
        greedy = 0 if equal[s] else _certified_argmax(q)
        direction = ball_direction("mce", pi[s], greedy)
        step = [arb(x) + arb(float(weight[s])) * d for x, d in zip(row, direction, strict=True)]
        new.append(ball_softmax(step) if weight[s] > 0 else pi[s])
    return [after - before for before, after in zip(v, _ball_values(mdp, new), strict=True)]


def _ball_values(mdp: FiniteMDP, pi: list[list[arb]]) -> list[arb]:
    """Solve (I - gamma P) v = r in balls."""
    n, gamma = mdp.n_states, arb(mdp.discount)
    matrix = [[arb(int(s == x)) for x in range(n)] for s in range(n)]
    right = [arb(0)] * n
    for s, a in product(range(n), range(mdp.n_actions)):
        right[s] = right[s] + pi[s][a] * arb(float(mdp.rewards[s, a]))
        for x in np.flatnonzero(mdp.transitions[s, a]):
            chance = arb(float(mdp.transitions[s, a, x]))
            matrix[s][x] = matrix[s][x] - gamma * pi[s][a] * chance
    solution = arb_mat(matrix).solve(arb_mat([[x] for x in right]))
    return [solution[s, 0] for s in range(n)]


def _ball_q(mdp: FiniteMDP, v: list[arb], s: int, a: int) -> arb:
    chances = mdp.transitions[s, a]
    following = sum((arb(float(chances[x])) * v[x] for x in np.flatnonzero(chances)), arb(0))
    return arb(float(mdp.rewards[s, a])) + arb(mdp.discount) * following


def _certified_argmax(q: list[arb]) -> int:
    """Return the action whose ball lies above all others, or raise."""
    for a, value in enumerate(q):
        if all(value > other for b, other in enumerate(q) if b != a):
            return a
    raise Undecided("the balls of two values overlap: the greedy action is not decided")


# Which of the five updates never lower the value


def escort_safe_weight(theta: Floats, q: Floats) -> Floats:
    r"""Return the weight up to which a `pg-es` step with p = 2 cannot lower the value.

    It is :math:`\|\theta\|^2 / \max_a (v - q(a))`: no parameter crosses zero to end up larger.
    """
    pi = UPDATES["pg-es"].policy(theta)
    worst = (-advantage(pi, q)).max(axis=-1)
    return np.asarray(np.sum(theta**2, axis=-1) / worst)


def check_sign_condition(
    names: Sequence[str] = ("pg-sm", "di", "mce"),
    weights: Sequence[float] = (0.1, 1.0, 10.0, 1e3),
    stretch: float = 1.0,
    seed: int = 19,
) -> Verdict:
    """Check that the updates called `names` never lower the value, nor `pg-es` up to its limit.

    Parameters
    ----------
    names : sequence of str
        Updates attacked by a search at every weight.
    weights : sequence of float
        The weights.
    stretch : float
        `pg-es` is tried with this multiple of the weight up to which it is safe.
    seed : int
        Seed of the searches.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest decrease found (values of range one).
    """
    rng = np.random.default_rng(seed)
    drops = {
        name: max(
            search_drop(UPDATES[name], k, w, rng, 200, 150).value for w in weights for k in (3, 5)
        )
        for name in names
    }
    pi, q = rng.dirichlet(np.full(4, 0.4), size=20_000), rng.random((20_000, 4))
    update, pi = UPDATES["pg-es"], np.maximum(pi, 1e-12)
    theta = update.parameters(pi / pi.sum(axis=-1, keepdims=True))
    weight = stretch * escort_safe_weight(theta, q) * rng.uniform(0.5, 1, size=len(q))
    new = update.policy(update.step(theta, q, weight))
    drops[f"pg-es up to {stretch:g} x its limit"] = float(
        -step_advantage(update.policy(theta), new, q).min()
    )
    worst = max(drops.values())
    return Verdict(
        "book:sign-condition",
        Status.HOLDS if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"The largest decrease found is {max(worst, 0.0):.3g} (values of range one, weights "
        f"{min(weights):g} to {max(weights):g}).",
        tuple(
            {"update": name, "largest decrease found": abs(max(x, 0.0))}
            for name, x in drops.items()
        ),
    )
