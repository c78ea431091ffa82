"""The checks of the chapter on updates.

Gradients are compared with complex-step derivatives of the policies, up to `ROUNDING`. Claims about
the limits of large or small weights have their own tolerances.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import islice, product
from typing import Any

import numpy as np
import scipy.sparse
from flint import arb

from pu_lib import sparse
from pu_lib.arrays import Floats
from pu_lib.chapters.updates.exact_steps import (
    direction,
    draws,
    exact_optimum,
    exact_values,
    projected,
    two_action_path,
)
from pu_lib.chapters.updates.quantities import (
    GreedyAlone,
    Network,
    Policy,
    complex_step,
    cross_entropy_leftover,
    direct_greedy_weight,
    escort_gradient,
    escort_of,
    escort_step,
    halving_times,
    large_weight_limit,
    middle_line,
    mixture_share,
    softmax_gradient,
    softmax_of,
    softmax_step,
    truncated_objective,
)
from pu_lib.claims.recorder import Recorder, check
from pu_lib.domains import random_mdp
from pu_lib.exact import precision
from pu_lib.formatting import format_number
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import follow
from pu_lib.two_action_dynamics import parse_problem
from pu_lib.updates import Update, advantage, as_update, greedy_mask, make_update, softmax

Step = Callable[[Floats, Floats], Floats]

ROUNDING = 1e-12
"""Tolerance of the gradient checks, for rounding in about 1000 operations on numbers near 1."""

EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0)
"""The exponents p with which the escort policy is checked."""


def _compare_with_zero(
    compare: Recorder,
    quantity: str,
    error: Floats | float,
    at: Mapping[str, Any],
    tolerance: float = ROUNDING,
) -> None:
    """Compare the largest absolute value in `error` with zero up to a tolerance."""
    largest, limit = float(np.max(np.abs(error))), f"0 up to {format_number(tolerance)}"
    compare.equal(quantity, largest, 0.0, tolerance=tolerance, limit=limit, at=at)


# The objective and its gradient


@check("eq:obj", wrong={"rewards that grow by the factor 1/gamma a step": {"growth": 1 / 0.9}})
def rest_of_the_objective_is_bounded(compare: Recorder, growth: float = 1.0) -> None:
    """The remainder of the sum of rewards is at most the geometric bound.

    The bound holds with equality for the first MDP.
    """
    rng = np.random.default_rng(23)
    mdps = [FiniteMDP(np.ones((1, 2, 1)), np.ones((1, 2)), [1.0], 0.9)]
    mdps += [random_mdp(rng, n_states=8, n_actions=3, discount=0.9) for _ in range(10)]
    for i, mdp in enumerate(mdps):
        pi = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
        sums, bounds = truncated_objective(mdp, pi, 400, growth)
        # The sum of all rewards is the solution of the linear system.
        rest = np.abs(mdp.performance(pi) - sums)
        for T, (left, bound) in enumerate(zip(rest / bounds[0], bounds / bounds[0], strict=True)):
            compare.at_most(
                "rest of the sum, relative to its first bound", left, bound + ROUNDING,
                at={"MDP": i}, note={"T": T},
            )  # fmt: skip


@check("eq:pg", wrong={"d is a distribution, of sum one": {"normalised": True}})
def policy_gradient_theorem_holds(compare: Recorder, normalised: bool = False) -> None:
    """Equation (3) is the gradient of the performance."""
    rng, h = np.random.default_rng(6), 1e-5  # central differences leave about 1e-9
    for i in range(12):
        mdp = random_mdp(rng, n_states=8, n_actions=3, discount=0.9, if_none="last")
        theta = rng.normal(size=(mdp.n_states, mdp.n_actions))
        pi = softmax(theta)
        ev = mdp.evaluate(pi)
        d = ev.occupancy * (1 - mdp.discount if normalised else 1.0)
        formula = d[:, np.newaxis] * pi * advantage(pi, ev.q)
        numeric = np.zeros_like(theta)
        for index in np.ndindex(*theta.shape):
            nudge = np.zeros_like(theta)
            nudge[index] = h
            upper, lower = (mdp.performance(softmax(theta + s * nudge)) for s in (1, -1))
            numeric[index] = (upper - lower) / (2 * h)
        error = (numeric - formula) / np.abs(numeric).max()
        _compare_with_zero(compare, "relative error of the formula", error, {"MDP": i}, 1e-6)


def _gradient_without_mean(f: Floats, grad_f: Floats) -> Floats:
    """Return the softmax gradient without the derivative of the normaliser, which is incorrect."""
    return np.asarray(softmax_of(f) * grad_f)


@check("eq:softmax_grad", wrong={"without the sum over a'": {"formula": _gradient_without_mean}})
def softmax_gradient_is_right(compare: Recorder, formula: Step = softmax_gradient) -> None:
    """Equation (5) is the gradient of the softmax policy for the scores of a small network."""
    rng = np.random.default_rng(1)
    for draw in range(300):
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(softmax_of), theta)
        f = network.scores(theta)
        error = exact - formula(f, network.gradient(theta))
        _compare_with_zero(
            compare, "error of the formula", error, {"draw": draw, "actions": len(f)}
        )


@check("eq:escort-grad", wrong={"no signs in the corrected formula": {"signed": False}})
def escort_gradient_needs_signs(compare: Recorder, signed: bool = True) -> None:
    """Equation (7) is the gradient of the escort policy only if it has the signs of the scores."""
    rng = np.random.default_rng(2)
    for draw in range(300):
        p = float(rng.choice(EXPONENTS))
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(partial(escort_of, p=p)), theta)
        f, gradient = network.scores(theta), network.gradient(theta)
        scale = 1 + np.abs(exact).max()  # the gradient grows as the norm of the scores shrinks
        for as_printed in (False, True):
            formula = escort_gradient(f, gradient, p, signed and not as_printed)
            compare.equal(
                "relative error of the formula", float(np.abs((exact - formula) / scale).max()), 0,
                tolerance=ROUNDING, limit=f"0 up to {format_number(ROUNDING)}",
                as_printed=as_printed,
                at={"draw": draw, "p": p, "scores": f.round(3).tolist()},
            )  # fmt: skip


# The steps


def _compare_steps(
    compare: Recorder, claimed: Step, policy: Policy, seed: int, at: Mapping[str, Any]
) -> None:
    """Compare a claimed step with the derivative of sum_a q(a) pi(a) for tabular parameters.

    The first case has the uniform policy of two actions with the values 1 and 0.
    """
    rng = np.random.default_rng(seed)
    cases = [(np.full(2, 0.25), np.array([1.0, 0.0]))]
    cases += [tuple(rng.normal(size=(2, int(rng.integers(2, 7))))) for _ in range(500)]
    for draw, (theta, q) in enumerate(cases):
        exact = complex_step(policy, theta) @ q
        error = (exact - claimed(theta, q)) / (1 + np.abs(exact).max())
        where = {**at, "draw": draw, "q": q.round(3).tolist()}
        _compare_with_zero(compare, "relative error of the step", error, where)


def _unit_step(update: Update, theta: Floats, q: Floats, weight: float = 1.0) -> Floats:
    """Return the change in the parameters after one step, divided by its weight."""
    return np.asarray(update.step(theta, q, weight) - theta) / weight


@check(
    "app:softmax",
    wrong={
        "the line before it is the step": {"formula": middle_line},
        "the library takes the step of CE": {"update": "ce"},
    },
)
def softmax_step_is_probability_times_advantage(
    compare: Recorder, formula: Step = softmax_step, update: str = "pg-sm"
) -> None:
    """The last line of appendix A.1.1 is the softmax step, and the library computes this step."""
    steps: dict[str, Step] = {"formula": formula}
    for weight in (0.1, 1.0, 7.0):
        steps[f"library, weight {weight}"] = partial(_unit_step, as_update(update), weight=weight)
    for source, claimed in steps.items():
        _compare_steps(compare, claimed, softmax_of, 3, {"step": source})


@check("app:softmax/middle-line", wrong={"the last line in its place": {"formula": softmax_step}})
def line_before_the_last_is_the_step(compare: Recorder, formula: Step = middle_line) -> None:
    """The second-to-last line of appendix A.1.1 is the softmax step."""
    _compare_steps(compare, formula, softmax_of, 3, {})


@check("app:escort", wrong={"no sign in the step": {"signed": False}})
def escort_step_has_signs(compare: Recorder, signed: bool = True) -> None:
    """The escort step has the sign of each parameter as a factor, in theory and in the library.

    The gradient of the escort policy has the sign of each score as a factor of its gradient.
    """
    rng = np.random.default_rng(9)
    for p, draw in product(EXPONENTS, range(40)):
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(partial(escort_of, p=p)), theta)
        f = network.scores(theta)
        error = (exact - escort_gradient(f, network.gradient(theta), p, signed)) / (
            1 + np.abs(exact).max()
        )
        where = {"p": p, "step": "network", "draw": draw}
        _compare_with_zero(compare, "relative error of the gradient", error, where)
    for p in EXPONENTS:
        steps = {
            "formula": partial(escort_step, p=p, signed=signed),
            "library": partial(_unit_step, make_update("pg-es", p=p)),
        }
        for source, claimed in steps.items():
            _compare_steps(compare, claimed, partial(escort_of, p=p), 4, {"p": p, "step": source})


@check(
    "eq:di",
    wrong={
        "no projection": {"project": False},
        "the step of PG-SM is projected": {"update": "pg-sm"},
    },
)
def direct_step_is_a_projection(
    compare: Recorder, update: str = "di", project: bool = True
) -> None:
    r"""DI projects :math:`\theta + wq` onto the simplex.

    The projection :math:`x'` of :math:`x` is the point of the simplex for which :math:`x - x'` is
    equal to a constant :math:`\lambda` at all entries with :math:`x' > 0`, and at most
    :math:`\lambda` at all other entries.
    """
    rng, chosen = np.random.default_rng(20), as_update(update)
    for draw in range(500):
        k, w = int(rng.integers(2, 7)), float(10 ** rng.uniform(-2, 2))
        theta, q = rng.dirichlet(np.ones(k)), rng.random(k)
        far = theta + w * q
        near = chosen.policy(chosen.step(chosen.parameters(theta), q, w)) if project else far
        removed = far - near
        shift = removed[near > 0].max()
        on_simplex = abs(near.sum() - 1) + max(-near.min(), 0.0)
        nearest = np.where(near > 0, removed - shift, np.maximum(removed - shift, 0.0))
        where = {"draw": draw, "actions": k, "weight": w}
        error = np.append(nearest, on_simplex)
        _compare_with_zero(compare, "error of the projection", error, where, 1e-11)


@check("eq:ce2", wrong={"MCE is the gradient of the cross-entropy": {"update": "mce"}})
def cross_entropy_step_is_a_gradient(compare: Recorder, update: str = "ce") -> None:
    r"""The step of CE is :math:`w\nabla\log\pi(a_q)`, so the two equations for CE agree."""
    rng, chosen = np.random.default_rng(5), as_update(update)
    for draw in range(500):
        k = int(rng.integers(2, 7))
        theta, q, w = rng.normal(size=k), rng.normal(size=k), float(rng.uniform(0.1, 3))
        gradient = complex_step(lambda x: np.log(softmax_of(x)), theta)[:, np.argmax(q)]
        error = chosen.step(theta, q, w) - theta - w * gradient
        _compare_with_zero(compare, "error of the step", error, {"draw": draw, "actions": k})


# Conserved quantities of MCE


@check(
    "sec:mce/sum",
    wrong={
        "PG-ES keeps the sum": {"update": "pg-es"},
        "MCE that moves the greedy action alone keeps it": {"update": GreedyAlone()},
    },
)
def mce_conserves_the_sum(compare: Recorder, update: str | Update = "mce") -> None:
    r"""MCE conserves :math:`\sum_a\theta_a` for weights from 1e-3 to 1e3."""
    rng, chosen = np.random.default_rng(7), as_update(update)
    theta = rng.normal(size=(200, 4))
    total, length = theta.sum(axis=-1), np.zeros(200)
    for _ in range(50):
        w = 10.0 ** rng.uniform(-3, 3, size=200)
        new = chosen.step(theta, rng.normal(size=(200, 4)), w)
        length += np.abs(new - theta).sum(axis=-1)
        theta = new
    drift = (theta.sum(axis=-1) - total) / (1 + length)
    where = {"states": 200, "steps": 50}
    _compare_with_zero(compare, "drift of the sum, relative to the length travelled", drift, where)


@check(
    "sec:mce/diverge", wrong={"MCE that moves the greedy action alone": {"update": GreedyAlone()}}
)
def mce_parameters_stay_within_the_range_of_log_pi(
    compare: Recorder, update: str | Update = "mce"
) -> None:
    """No parameter of MCE differs from the initial mean by more than the range of log pi.

    The values are drawn at random at every step, so that the policy does not converge and the
    parameters need not diverge.
    """
    rng, chosen = np.random.default_rng(21), as_update(update)
    start = rng.normal(size=(20, 3))
    path = follow(chosen, rng.random((4000, 20, 3)), 1.0, 4000, start)
    away = np.abs(path - start.mean(axis=-1, keepdims=True)).max(axis=-1)
    ranges = np.ptp(np.log(chosen.policy(path)), axis=-1) + 1e-9
    for step, worst in enumerate(np.argmin(ranges - away, axis=1)):
        compare.at_most(
            "distance from the initial mean", away[step, worst], ranges[step, worst],
            limit=r"range of $\log\pi$", at={"step": step},
        )  # fmt: skip


@check(
    "sec:mce/others", wrong={"the same weight instead of (|A| - 1)/|A| times it": {"scaled": False}}
)
def lowering_the_others_is_not_needed(compare: Recorder, scaled: bool = True) -> None:
    """A step of the greedy parameter alone gives MCE's policy at (|A| - 1)/|A| of the weight."""
    rng = np.random.default_rng(10)
    alone, modified = GreedyAlone(), as_update("mce")
    for draw in range(500):
        k, w = int(rng.integers(2, 7)), float(10 ** rng.uniform(-2, 2))
        theta, q = rng.normal(size=(2, k))
        factor = (k - 1) / k if scaled else 1.0
        difference = softmax(alone.step(theta, q, w)) - softmax(modified.step(theta, q, factor * w))
        where = {"draw": draw, "actions": k, "weight": w}
        _compare_with_zero(compare, "difference of the policies", difference, where)


# Related updates


@check(
    "sec:updates/actor-mimic",
    wrong={
        "at the temperature 1 it is CE": {"coldest": 1.0},
        "the squared distance in place of the cross-entropy": {"power": 2},
    },
)
def distillation_is_a_soft_cross_entropy_step(
    compare: Recorder, coldest: float = 1e-3, power: int = 1
) -> None:
    """A step of Actor-Mimic is one towards softmax(Q / tau), and that of CE as tau goes to zero.

    The loss is the cross-entropy between the softened values of an expert and the policy. With
    `power` 2 it is the squared distance.
    """
    rng = np.random.default_rng(13)
    for draw in range(200):
        theta, q = rng.normal(size=4), rng.normal(size=4)
        if np.ptp(np.sort(q)[-2:]) < 0.05:
            continue
        for tau in (1.0, 0.1, coldest):
            expert = softmax(q / tau)
            logs = complex_step(lambda x: np.log(softmax_of(x)), theta) @ expert
            squares = complex_step(softmax_of, theta) @ (2 * (expert - softmax(theta)))
            step, at = logs if power == 1 else squares, {"temperature": tau, "draw": draw}
            towards = expert - softmax(theta)
            _compare_with_zero(compare, "error of the step", step - towards, at)
        apart = towards - _unit_step(as_update("ce"), theta, q)
        _compare_with_zero(compare, "distance from CE at the coldest", apart, at, 1e-9)


# Huge weights


def _states_with_a_gap(n: int, seed: int) -> tuple[Floats, Floats]:
    """Return random policies and values of four actions.

    The value of the best action exceeds all others by more than 0.01, and the probability of the
    best action is below 0.99.
    """
    rng = np.random.default_rng(seed)
    pi, q = rng.dirichlet(np.ones(4), size=4 * n), rng.random((4 * n, 4))
    top = np.sort(q, axis=-1)
    fair = (top[:, -1] - top[:, -2] > 0.01) & (np.where(greedy_mask(q), pi, 0).sum(axis=-1) < 0.99)
    return pi[fair][:n], q[fair][:n]


def _compare_with_greedy(compare: Recorder, updates: Sequence[str]) -> None:
    """Compare the probability of all suboptimal actions after one step of weight 1e6 with zero.

    The probabilities after steps of smaller weights are reported.
    """
    pi, q = _states_with_a_gap(2000, 8)
    greedy = greedy_mask(q)
    for name in updates:
        update = as_update(name)
        theta = update.parameters(pi)
        for w in (10.0, 100.0, 1e6):
            left = np.where(greedy, 0.0, update.policy(update.step(theta, q, w))).sum(axis=-1)
            compare.report(**{f"{name} at weight {w:g}": float(left.max())})
        where = {"update": name, "weight": w}
        _compare_with_zero(compare, "probability left to other actions", left, where)


@check("sec:ce/greedy", wrong={"PG-SM becomes greedy": {"update": "pg-sm"}})
def ce_becomes_greedy(compare: Recorder, update: str = "ce") -> None:
    """The policy after one step of CE tends to the greedy policy as the weight grows."""
    _compare_with_greedy(compare, [update])


@check(
    "sec:updates/greedy",
    wrong={
        "PG-SM becomes greedy": {"updates": ("pg-sm",)},
        "PG-ES becomes greedy": {"updates": ("pg-es",)},
    },
)
def di_ce_and_mce_become_greedy(
    compare: Recorder, updates: Sequence[str] = ("di", "ce", "mce")
) -> None:
    """The policy after one step of DI, CE or MCE tends to the greedy one as the weight grows."""
    _compare_with_greedy(compare, updates)


@check("book:huge-steps", wrong={"PG-ES tends to its limit for p = 3 at p = 2": {"p": 3.0}})
def huge_steps_have_these_limits(compare: Recorder, p: float = 2.0) -> None:
    """The policy after one step tends to the stated limit as the weight of the step grows.

    The policy equals the limit under DI if the weight is large enough.
    """
    pi, q = _states_with_a_gap(300, 22)
    greedy, first = greedy_mask(q), direct_greedy_weight(pi, q)
    too_small, enough = (
        1.0 - np.where(greedy, as_update("di").step(pi, q, share * first), 0.0).sum(axis=-1)
        for share in (1 - 1e-6, 1 + 1e-9)
    )
    missing = "missing to a greedy policy"
    _compare_with_zero(compare, missing, enough, {"update": "di", "weight": "just enough"})
    compare.at_least(
        missing, too_small.min(), 1e-13, limit=format_number(1e-13),
        at={"update": "di", "weight": "a millionth too small"},
    )  # fmt: skip
    for name in ("ce", "mce"):
        update, w = as_update(name), 10.0 ** np.linspace(-3, 2, len(pi))
        new = np.log(update.policy(update.step(update.parameters(pi), q, w)))
        bound = np.log(cross_entropy_leftover(name, pi, q, w)) + 1e-9
        worst = np.unravel_index(np.argmin(bound - new), new.shape)
        compare.at_most(
            "log of the probability left", new[worst], bound[worst], in_logs=True,
            limit="log of its bound", at={"update": name},
        )  # fmt: skip
    for chosen, limit in (
        (as_update("pg-sm"), as_update("pg-sm")),
        (as_update("pg-es"), make_update("pg-es", p=p)),
    ):
        new = chosen.policy(chosen.step(chosen.parameters(pi), q, 1e9))
        # Two actions that nearly tie need a larger weight, so the closest ones are left out.
        clear = np.diff(np.sort(pi * advantage(pi, q)), axis=-1)[:, -1] > 1e-4
        error = (new - large_weight_limit(limit, pi, q))[clear]
        _compare_with_zero(compare, "distance to the limit", error, {"update": chosen.name}, 1e-6)


# Paths


@check(
    "book:paths",
    wrong={
        "CE moves straight": {"straight": "ce"},
        "PG-ES follows the curve at p = 3": {"p": 3.0},
        "DI moves along q itself": {"centred": False},
    },
)
def paths_have_these_shapes(
    compare: Recorder, straight: str = "mce", p: float = 2.0, centred: bool = True
) -> None:
    """MCE follows a straight line, DI the direction q - mean(q), PG-ES an exponential curve.

    CE changes the log odds of two actions that are not greedy by -w times the difference of their
    probabilities.
    """
    rng, weight = np.random.default_rng(9), 1e-4
    pi, q = rng.dirichlet(np.full(4, 5.0), size=100), rng.random((100, 4))
    q[:, 0] = 1.5
    weights = 10.0 ** rng.uniform(-2, 1, size=20)
    levelled = _odds_change(as_update("ce"), pi, q, np.ones(1)) + (pi[:, 1:] - pi[:, 1:2])
    # The distance of the escort path from the curve is proportional to the weight.
    for path, error, tolerance in (
        (f"{straight}: odds kept", _odds_change(as_update(straight), pi, q, weights), 1e-10),
        ("di: direction q - mean(q)", _direct_turn(pi, q, weight, centred), 1e-10),
        (
            "pg-es: exponential curve",
            _replicator_gap(make_update("pg-es", p=p), pi, q, weight),
            10 * weight,
        ),
        ("ce: the likelier loses", levelled, 1e-10),
    ):
        _compare_with_zero(compare, "distance from the path", error, {"path": path}, tolerance)


def _odds_change(update: Update, pi: Floats, q: Floats, weights: Floats) -> Floats:
    """Return the change in the log odds of actions 1, 2 and 3 against action 1 over all steps."""
    start, end = follow(update, q, weights, theta0=update.parameters(pi))[[0, -1], :, 1:]
    return np.asarray((end - end[:, :1]) - (start - start[:, :1]))


def _direct_turn(pi: Floats, q: Floats, weight: float, centred: bool) -> Floats:
    """Return the difference of a small `di` step from w (q - mean(q)), divided by w.

    Only the policies inside the simplex after the step are included.
    """
    step = as_update("di").step(pi, q, weight) - pi
    straight = weight * (q - centred * q.mean(axis=-1, keepdims=True))
    inside = np.all(pi + step > 0, axis=-1)
    return np.asarray((step - straight)[inside] / weight)


def _replicator_gap(update: Update, pi: Floats, q: Floats, weight: float) -> Floats:
    """Return the difference between the curve pi e^(tau q) and the last escort policy."""
    end = update.policy(follow(update, q, weight, 2000, update.parameters(pi))[-1])
    # tau follows from the odds of the actions with the best and the worst value.
    best, worst = np.argmax(q, axis=-1), np.argmin(q, axis=-1)
    rows = np.arange(len(pi))
    log_odds = np.log(end / pi)
    tau = (log_odds[rows, best] - log_odds[rows, worst]) / (q[rows, best] - q[rows, worst])
    return np.asarray(softmax(np.log(pi) + tau[:, np.newaxis] * q) - end)


# The wall, and damping


@check(
    "sec:intro/wall",
    wrong={
        "PG-SM in DI's place, which always goes a little further": {"update": "pg-sm"},
        "MCE in DI's place, which does as well": {"update": "mce"},
    },
)
def wall_stops_forward_steps_only(compare: Recorder, update: str = "di") -> None:
    r"""A forward step of DI does not change the greedy policy, but one backward step does.

    Let :math:`R` be the range of q. The projection of a backward step from the greedy vertex
    reduces the top coordinate by :math:`\lambda`, and :math:`(1-\lambda)_++(wR-\lambda)_+\le1`
    implies :math:`\lambda\ge wR/2`. The change is therefore at least :math:`\min(1,wR/2)`, with
    equality for two actions.
    """
    rng, chosen = np.random.default_rng(24), as_update(update)
    for draw in range(50):
        k, w = int(rng.integers(2, 6)), float(10 ** rng.uniform(-0.5, 0.5))
        q = np.append(rng.uniform(0.0, 0.9, k - 1), 1.0)
        start = chosen.parameters(rng.dirichlet(np.ones(k)))
        end = follow(chosen, q, w, 80, start)[-1]  # farther than the diameter of the simplex
        where = {"draw": draw, "actions": k, "weight": w}
        further = chosen.step(end, q, w) - end
        _compare_with_zero(compare, "way of a step forward", further, {"step": "forward", **where})
        back = 1.0 - chosen.policy(chosen.step(end, -q, w))[-1]
        least = min(1.0, 0.5 * w * np.ptp(q))
        compare.at_least(
            "way of a step back", back, least - ROUNDING, limit=r"$\min\{1,wR/2\}$",
            at={"step": "back", **where},
        )  # fmt: skip


@check(
    "sec:updates/damping",
    wrong={
        "MCE in PG-ES's place, which is as slow": {"cure": "mce"},
        "PG-ES with p = 3, whose halvings take longer and longer": {
            "cure": make_update("pg-es", p=3.0)
        },
        "PG-ES in PG-SM's place": {"damped": "pg-es"},
    },
)
def escort_halvings_do_not_slow_down(
    compare: Recorder, damped: str | Update = "pg-sm", cure: str | Update = "pg-es"
) -> None:
    """Under PG-SM each halving of the suboptimal probability takes twice as long as the last one.

    Under PG-ES with p = 2 all halvings take equally long.
    """
    ratios, details = [], []
    for update, steps in ((as_update(damped), 16_000), (as_update(cure), 160)):
        # With so small a weight and p = 2 no escort parameter crosses zero.
        mass = update.policy(follow(update, [1.0, 0.0], 0.1, steps))[:, 1]
        times = halving_times(mass)
        ratios.append(float(times[-1] / times[-2]))
        details.append({"halvings": len(times), "steps of the last": float(times[-1])})
    quantity = "last halving over the one before"
    at = [{"update": as_update(update).name} for update in (damped, cure)]
    compare.at_least(quantity, ratios[0], 1.9, limit="1.9", at=at[0], note=details[0])
    compare.equal(
        quantity, ratios[1], 1.0, tolerance=0.02, limit="1 up to 0.02", at=at[1], note=details[1]
    )
    compare.report(ratio=ratios[0])


# The library


def _library_updates() -> dict[str, Update]:
    """Return the updates with a formula; PG-ES for three exponents, with and without factor."""
    escort = {
        f"pg-es p={p} factor={factor}": make_update("pg-es", p=p, factor=factor)
        for p in (1.5, 2.0, 3.0)
        for factor in ("keep", "drop")
    }
    return {name: as_update(name) for name in ("pg-sm", "di", "ce", "mce", "npg", "sce")} | escort


@check(
    "book:library-steps",
    wrong={
        "steps 1 % longer for weights above 1000": {"stretch": 1.01, "above": 1e3},
        "steps longer by 1e-9": {"stretch": 1 + 1e-9},
        "the factor of PG-ES is p": {"escort_factor": "drop"},
        "MCE is CE": {"modified": "ce"},
        "SCE is CE": {"masked": "ce"},
    },
)
def library_computes_the_steps(
    compare: Recorder,
    stretch: float = 1.0,
    above: float = 0.0,
    escort_factor: str = "",
    modified: str = "mce",
    masked: str = "sce",
) -> None:
    """The steps of the library equal those of the formulas in 200-bit or rational arithmetic.

    Errors are relative to the largest parameter and the largest step, which are rounded to 53 bits.
    """
    for name, update in _library_updates().items():
        for draw, (pi, q, w) in enumerate(draws(0, 150)):
            theta = update.parameters(pi)
            if update.name == "pg-es":
                theta = theta * np.random.default_rng(draw).choice([-1.0, 1.0], len(theta))
            new = update.step(theta, q, w)
            new = theta + (stretch if w > above else 1.0) * (new - theta)
            if update.name == "di":
                expected = np.array(projected(theta.tolist(), q.tolist(), w))
                size = 1.0 + 1e-3 * w * np.abs(q).max()  # the difference of values is rounded
            else:
                with precision(200):
                    formula = {"mce": modified, "sce": masked}.get(name, update.name)
                    options = dict(update.options)
                    if update.name == "pg-es" and escort_factor:
                        options["factor"] = escort_factor
                    options.pop("ties", None)
                    rows = direction(formula, theta.tolist(), q.tolist(), **options)
                    steps = [arb(w) * x for x in rows]
                    size = np.abs(theta).max() + max(abs(float(x)) for x in steps)
                    expected = np.array(
                        [float(arb(x) + y) for x, y in zip(theta.tolist(), steps, strict=True)]
                    )
            error = (new - expected) / size
            where = {"update": name, "draw": draw, "actions": len(q), "weight": w}
            _compare_with_zero(compare, "relative error of the step", error, where)


@check("book:library-counts", wrong={"CE moves as DI": {"cross_entropy": "di"}})
def library_counts_with_the_steps(compare: Recorder, cross_entropy: str = "ce") -> None:
    """The exact processes of two actions, which count updates, follow the formulas."""
    with precision(200):
        for name in ("pg-sm", "pg-es", "di", "ce", "mce"):
            for weight in (Fraction(1, 10), Fraction(1, 2), Fraction(7, 5)):
                problem = parse_problem(name, weight)
                process, probabilities = problem.process(), [0.5]
                for t, w in enumerate(islice(problem.weights(), 40)):
                    (process.forward if t < 20 else process.backward)(w)
                    probabilities.append(process.probability())
                formula = cross_entropy if name == "ce" else name
                expected = np.array(two_action_path(formula, 20, 20, weight))
                where = {"update": name, "weight": str(weight)}
                error = (np.array(probabilities) - expected) / np.where(expected > 0, expected, 1.0)
                _compare_with_zero(compare, "relative error of a probability", error, where)


@check("book:library-ties", wrong={"the first of them is always chosen": {"ties": "first"}})
def library_breaks_ties(compare: Recorder, ties: str = "random") -> None:
    """CE and MCE choose among tied actions with equal frequencies, or leave tied states unchanged.

    The frequencies are compared within five standard deviations of a binomial count.
    """
    rows, best = 3000, np.array([0, 2, 4])
    values = np.array([1.0, 0.0, 1.0, 0.5, 1.0])
    for name in ("ce", "mce"):
        theta, q = np.zeros((rows, 5)), np.tile(values, (rows, 1))
        chosen = make_update(name, ties=ties).step(theta, q, 1.0, seed=2) > 0
        where = {"update": name}
        compare.equal("greedy actions in each state", np.ptp(chosen.sum(axis=1)), 0, at=where)
        away = np.abs(chosen.sum(axis=0)[best] - rows / 3).max()
        compare.at_most(
            "distance of a count from one third of the states", away, 5 * np.sqrt(rows * 2 / 9),
            at=where,
        )  # fmt: skip
        q = np.array([values, values + np.arange(5.0)])
        left = make_update(name, ties="leave").step(np.zeros((2, 5)), q, 2.0)
        usual = make_update(name).step(np.zeros((2, 5)), q, 2.0)
        compare.equal("change of a tied state", np.abs(left[0]).max(), 0.0, at=where)
        compare.equal("difference where no action ties", left[1] - usual[1], np.zeros(5), at=where)


@check(
    "book:library-values",
    wrong={"the discount is larger by 1e-6": {"more_discount": 1e-6}},
)
def library_solves_processes(compare: Recorder, more_discount: float = 0.0) -> None:
    """Values, visits and optimal values equal rational solutions.

    They are computed from dense and from sparse transitions. The optimal values are the largest
    among all deterministic policies.
    """
    rng = np.random.default_rng(12)
    for draw in range(12):
        states, actions = int(rng.integers(2, 5)), int(rng.integers(2, 4))
        size = 10.0 ** rng.integers(-6, 7)
        rewards = size * rng.uniform(-1, 1, (states, actions))
        moves = rng.dirichlet(np.ones(states), (states, actions))
        initial, discount = rng.dirichlet(np.ones(states)), float(rng.choice([0.5, 0.9, 0.99]))
        mdp = FiniteMDP(moves, rewards, initial, discount)
        pi = rng.dirichlet(np.ones(actions), states)
        v, d = (np.array([float(x) for x in xs]) for xs in exact_values(mdp, pi))
        best = np.array([float(x) for x in exact_optimum(mdp)])
        shifted = FiniteMDP(moves, rewards, initial, discount + more_discount * (1 - discount))
        dense, optimum = shifted.evaluate(pi), shifted.optimal()
        chain = scipy.sparse.csr_array(np.einsum("sa,sat->st", pi, moves))
        paid = np.sum(pi * rewards, axis=1)
        flat = scipy.sparse.csr_array(moves.reshape(-1, states))
        cases = {
            "values, dense": (dense.v, v),
            "visits, dense": (dense.occupancy, d),
            "optimal values, dense": (optimum.v, best),
            "values, sparse": (sparse.evaluate(chain, paid, shifted.discount).x, v),
            "visits, sparse": (sparse.visits(chain, initial, shifted.discount).x, d),
            "optimal values, sparse": (
                sparse.optimal(flat, rewards, shifted.discount, 1000).v, best
            ),
        }  # fmt: skip
        for quantity, (value, expected) in cases.items():
            scale = np.abs(expected).max() + (size if "values" in quantity else 0.0)
            _compare_with_zero(
                compare, f"relative error of {quantity}", (value - expected) / scale, {"draw": draw}
            )


@check(
    "sec:updates/related",
    wrong={
        "CE in place of MCE": {"update": "ce"},
        "PG-SM in place of MCE": {"update": "pg-sm"},
        "w(1 - p) in place of |A|/(|A| - 1) w(1 - p)": {"factor": lambda n: 1.0},
    },
)
def modified_cross_entropy_mixes_with_the_greedy_policy(
    compare: Recorder,
    update: str = "mce",
    factor: Callable[[int], float] = lambda n: n / (n - 1),
) -> None:
    """A step of MCE is the mixture of the policy with the greedy policy, with the share alpha.

    The two policies are compared at weights from 1e-6 to 1e6 with 2 to 9 actions, and so are the
    factors by which they multiply the other actions, which the smallest weights hardly change.
    """
    rng, rule = np.random.default_rng(7), as_update(update)
    for draw in range(600):
        n, weight = 2 + draw % 8, 10.0 ** rng.uniform(-6, 6)
        theta = rng.uniform(0.0, 4.0) * rng.standard_normal(n)
        best = int(rng.integers(n))
        pi, after = softmax(theta), rule.policy(rule.step(theta, np.eye(n)[best], weight))
        share = mixture_share(pi[best], factor(n) * weight * (1.0 - pi[best]))
        mixture = (1.0 - share) * pi + share * np.eye(n)[best]
        at = {"actions": n, "weight": weight, "draw": draw}
        _compare_with_zero(compare, "error of the mixture", after - mixture, at)
        lost = np.delete(after / pi, best) - (1.0 - share)
        _compare_with_zero(compare, "error of the factor of other actions", lost, at)
