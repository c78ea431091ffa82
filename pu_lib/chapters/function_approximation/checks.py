"""Checks of the claims about function approximation.

Gradients are compared with autograd. Learning is measured on tasks with a known optimum. Paths of
sparsemax are computed in exact arithmetic. The theorem on fitted DI is tested on random processes
with random features, which cannot represent the values, and on the chapter's two tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad, jacobian, make_vjp
from flint import fmpq

from pu_lib.arrays import Floats
from pu_lib.chapters.function_approximation.fitted_direct import (
    Place,
    fitted_run,
    geometric_weights,
    greedy_fit,
    next_bound,
)
from pu_lib.chapters.function_approximation.quantities import (
    SPARSEMAX,
    Learning,
    Rationals,
    ScoreModel,
    Task,
    best_linear,
    chain_with_features,
    contexts,
    exact_projection,
    exact_step,
    learn,
    neural,
    sparsemax,
    sparsemax_jacobian,
)
from pu_lib.claims.recorder import Recorder, check
from pu_lib.domains import random_mdp
from pu_lib.updates import Update, as_update, escort, project_simplex, softmax

NETWORKS, NETWORK_STEPS = 6, 300
"""The number of networks in the test of PG-ES, and the number of steps of each run."""

ROUNDING = 1e-9


def _log_softmax(f: Any) -> Any:
    return f - anp.log(anp.sum(anp.exp(f), axis=1, keepdims=True))


OBJECTIVES: dict[str, Callable[[Any, Floats], Any]] = {
    "pg-sm": lambda f, q: anp.sum(anp.exp(_log_softmax(f)) * q),
    "pg-es": lambda f, q: anp.sum(f**2 / anp.sum(f**2, axis=1, keepdims=True) * q),
    "ce": lambda f, q: anp.sum(_log_softmax(f)[np.arange(len(q)), np.argmax(q, axis=1)]),
    "sparsemax": lambda f, q: sum(
        anp.dot(sparsemax(row), values) for row, values in zip(f, q, strict=True)
    ),
}
"""The objective that each update ascends, as a function of the scores and the fixed values q."""

ASCENDING: dict[str, str | Update] = {name: name for name in OBJECTIVES} | {"sparsemax": SPARSEMAX}
"""The update that ascends each objective."""


def _chain_rule_step(update: Update, model: ScoreModel, theta: Floats, q: Floats) -> Floats:
    """Return the step of a model's parameters, the tabular step pulled back through the scores."""
    vjp, f = make_vjp(model.apply)(theta)
    return np.asarray(vjp(update.step(f, q, 1.0) - f))


@check(
    "sec:deepimpl/chain-rule",
    wrong={
        "MCE ascends the objective of CE": {"updates": {**ASCENDING, "ce": "mce"}},
        "CE ascends the objective of PG-SM": {"updates": {**ASCENDING, "pg-sm": "ce"}},
    },
)
def chain_rule_gives_the_gradient(
    compare: Recorder, updates: Mapping[str, str | Update] = ASCENDING
) -> None:
    """The chain rule turns tabular steps into the gradients of the objectives.

    The steps through linear and neural scores are compared with gradients from autograd.
    """
    rng = np.random.default_rng(0)
    for name, update in updates.items():
        for model in contexts().models(offset=1.0):
            theta = model.initial + 0.3 * rng.normal(size=model.initial.shape)
            q = rng.normal(size=model.apply(theta).shape)
            ours = _chain_rule_step(as_update(update), model, theta, q)
            true = grad(lambda x, n=name, m=model, q=q: OBJECTIVES[n](m.apply(x), q))(theta)
            compare.at_most(
                "relative error of the gradient",
                np.abs(ours - true).max() / np.abs(true).max(),
                1e-10,
                limit="$10^{-10}$",
                at={"objective": name, "model": model.name},
            )


@check(
    "sec:deepimpl/mce-gradient",
    wrong={
        "CE is no gradient": {"update": "ce"},
        "PG-SM is no gradient": {"update": "pg-sm"},
        "MCE is none with two actions": {"n_actions": 2},
    },
)
def mce_is_no_gradient(compare: Recorder, update: str = "mce", n_actions: int = 3) -> None:
    """The direction of MCE has an asymmetric Jacobian, so it is not the gradient of a function."""
    rng, h, chosen = np.random.default_rng(1), 1e-5, as_update(update)
    for _ in range(50):
        theta, q = rng.normal(size=(2, n_actions))
        nudged = theta + h * np.vstack([np.eye(n_actions), -np.eye(n_actions)])
        upper, lower = np.split(chosen.step(nudged, q, 1.0) - nudged, 2)
        jac = (upper - lower) / (2 * h)  # central differences, with an error below 1e-6
        compare.at_least(
            "asymmetry of the Jacobian",
            np.abs(jac - jac.T).max(),
            1e-6,
            limit="$10^{-6}$",
            at={"theta": theta.round(3).tolist()},
        )


@check(
    "sec:deepimpl/ce-mce",
    wrong={"a rate of the wrong sign": {"eta": -1.0}, "after one update": {"n_steps": 1}},
)
def ce_and_mce_learn(compare: Recorder, n_steps: int = 300, eta: float = 1.0) -> None:
    """CE and MCE reach a performance of 0.95 on both tasks, with linear and with neural scores."""
    for update in ("ce", "mce"):
        for task in (contexts(), chain_with_features()):
            for model in task.models():
                end = float(learn(update, task, model, n_steps, eta).performance[-1])
                at = {"update": update, "task": task.name, "model": model.name}
                compare.at_least("performance", end, 0.95, limit="0.95", at=at)


@check(
    "sec:deepimpl/pg-es",
    wrong={
        "at rates so small that nothing happens": {"etas": (1e-6,)},
        "PG-SM in its place": {"update": "pg-sm"},
        "whatever crosses no zero loses too": {"crossing": False},
    },
)
def escort_is_unstable_at_zero(
    compare: Recorder,
    update: str = "pg-es",
    etas: tuple[float, ...] = (1.0, 0.1),
    crossing: bool = True,
) -> None:
    """PG-ES learns, but some of its steps decrease the performance; no step of PG-SM does.

    In every step of PG-ES that decreases the performance, a score crosses zero.
    """
    for eta in etas:
        losing = crossed = losing_softmax = 0
        for network in range(NETWORKS):
            run, at = _network_run(update, network, eta), {"network": network, "eta": eta}
            lost = run.losing_steps()
            at_zero = lost & ((run.crossings > 0) == crossing)
            compare.at_least(
                "losing steps that cross zero",
                int(at_zero.sum()),
                int(lost.sum()),
                limit="all losing steps",
                at=at,
            )
            compare.at_least("losing steps", int(lost.sum()), 1, limit="1", at=at)
            compare.at_least("performance", run.performance[-1], 0.9, limit="0.9", at=at)
            losing += int(lost.sum())
            crossed += int(np.count_nonzero(run.crossings))
            losing_softmax += int(_network_run("pg-sm", network, eta).losing_steps().sum())
        compare.at_most("losing steps of PG-SM", losing_softmax, 0, limit="0", at={"eta": eta})
        figures = {"losing steps": losing, "steps crossing zero": crossed}
        compare.report(**{f"{name} at rate {eta:g}": count for name, count in figures.items()})
    compare.report(networks=NETWORKS, steps=NETWORKS * NETWORK_STEPS)


def _network_run(name: str, seed: int, eta: float) -> Learning:
    """Run an update with a network on the contexts and return the run."""
    task, offset = contexts(), float(name == "pg-es")  # escort scores must not start at zero
    model = neural(task.features, task.mdp.n_actions, offset, seed=seed)
    return learn(name, task, model, NETWORK_STEPS, eta)


@check(
    "book:escort-scale",
    wrong={"a linear softmax policy stops there too": {"softmax_stops": True}},
)
def scaling_does_not_sharpen_escort(compare: Recorder, softmax_stops: bool = False) -> None:
    """Scaling the scores does not change an escort policy.

    The best linear escort policy has a performance of only 0.86, unlike the best linear softmax
    policy.
    """
    f, policy = np.random.default_rng(3).normal(size=(100, 4)), softmax if softmax_stops else escort
    change = np.abs(policy(10 * f) - policy(f)).max()
    compare.at_most(
        "change of the policy if its scores are scaled", change, 1e-12, limit="$10^{-12}$"
    )
    best = best_linear(contexts(), escort=not softmax_stops)
    compare.equal(
        "best linear escort policy", best, 0.86, tolerance=0.005, limit="0.86 to two digits"
    )
    sharp = best_linear(contexts(), escort=False, restarts=3)
    compare.at_least("best linear softmax policy", sharp, 0.999, limit="0.999")


def _count_returns(update: str | Update, rng: np.random.Generator) -> tuple[int, int]:
    """Return the number of returns from probability zero on an exact path, and the final zeros."""
    scores = exact_projection(_rationals(rng.integers(0, 21, 4), 20))
    gone: set[int] = set()
    returns = 0
    for _ in range(40):
        scores = exact_step(update, scores, _rationals(rng.integers(-10, 11, 4)), fmpq(1, 5))
        policy = exact_projection(scores)
        returns += sum(1 for a in gone if policy[a] > 0)
        gone = {a for a, x in enumerate(policy) if x == 0}
    return returns, len(gone)


def _rationals(numerators: Any, denominator: int = 10) -> Rationals:
    """Return the fractions with the given integer numerators and a common denominator."""
    return [fmpq(int(x), denominator) for x in numerators]


@check("sec:deepimpl/sparsemax", wrong={"DI does not return either": {"update": "di"}})
def sparsemax_never_returns(compare: Recorder, update: str | Update = SPARSEMAX) -> None:
    """Actions of probability zero never return under sparsemax, but can return under DI.

    The derivative of sparsemax with respect to their scores is zero.
    """
    rng = np.random.default_rng(6)
    for point in range(200):
        z, at = rng.normal(size=5), {"point": point}
        true, off = jacobian(sparsemax)(z), project_simplex(z) == 0.0
        error = np.abs(true - sparsemax_jacobian(z)).max()
        _compare_derivative(compare, error, 1e-12, true[:, off], at)
    at_zero = 0
    for path in range(150):
        returns, zeros = _count_returns(update, rng)
        compare.at_most("actions that return", returns, 0, limit="0", at={"path": path})
        at_zero += zeros
    compare.at_least("actions at zero", at_zero, 1, limit="1")
    wall: Rationals = [Fraction(1), Fraction(0)]
    for q, leaves in (([Fraction(0), Fraction(1)], True), ([Fraction(1), Fraction(0)], False)):
        moved = exact_step("di", wall, q, Fraction(1, 10)) != wall
        quantity = "DI leaves the wall only if the other action is better"
        compare.true(quantity, moved == leaves, at={"q": q})


def _compare_derivative(
    compare: Recorder,
    error: float,
    tolerance: float,
    off_support: Floats,
    at: Mapping[str, int],
) -> None:
    """Compare the error of the closed form and the derivative off the support with zero."""
    quantity, limit = "error of the closed form", "0, to rounding"
    compare.equal(quantity, error, 0.0, tolerance=tolerance, limit=limit, at=at)
    largest = np.abs(off_support).max(initial=0.0)
    compare.at_most("derivative off the support", largest, 0.0, limit="0", at=at)


def _softmax_jacobian(z: Floats) -> Floats:
    """Return the Jacobian of a softmax policy."""
    pi = softmax(z)
    return np.asarray(np.diag(pi) - np.outer(pi, pi))


@check(
    "sec:intro/projection-gradient",
    wrong={
        "the derivative of softmax in the projection's place": {"formula": _softmax_jacobian},
        "it vanishes on the support as well": {"everywhere": True},
    },
)
def projection_has_no_derivative_off_its_support(
    compare: Recorder,
    formula: Callable[[Floats], Floats] = sparsemax_jacobian,
    everywhere: bool = False,
) -> None:
    """The projection has a derivative, but this derivative is zero off the support."""
    rng, h, lost, points = np.random.default_rng(8), 1e-6, 0, 300
    for point in range(points):
        z = rng.normal(size=int(rng.integers(2, 7)))
        nudge, at = h * np.eye(len(z)), {"point": point, "actions": len(z)}
        # Exact up to rounding, because the projection is linear near each of these points.
        central = (project_simplex(z + nudge) - project_simplex(z - nudge)).T / (2 * h)
        claimed, traced = formula(z), jacobian(sparsemax)(z)
        error = max(np.abs(claimed - central).max(), np.abs(claimed - traced).max())
        off = (project_simplex(z) == 0.0) | everywhere
        _compare_derivative(compare, error, 1e-8, claimed[:, off], at)
        lost += int(off.sum())
    compare.at_least("actions off the support", lost, 1, limit="1")
    compare.report(points=points)


@check(
    "sec:deepimpl/sparsemax-projection",
    wrong={
        "a softmax policy, which is no projection": {"policy": softmax},
        "DI in sparsemax's place, which turns round": {"update": "di"},
        "without putting the projected point back, DI results as well": {"put_back": False},
    },
)
def sparsemax_is_the_projection(
    compare: Recorder,
    update: str | Update = SPARSEMAX,
    policy: Callable[[Floats], Floats] = SPARSEMAX.policy,
    put_back: bool = True,
) -> None:
    """Sparsemax is the projection of its scores, although it cannot leave the boundary.

    If its scores continue from the projected point and use all values, the policies are those of
    DI.
    """
    rng, wall = np.random.default_rng(9), [Fraction(1), Fraction(0)]
    back = exact_step(update, wall, [Fraction(0), Fraction(1)], Fraction(1, 10))
    compare.equal(
        "policy after a step from the wall", exact_projection(back), wall, limit="the wall"
    )
    for path in range(60):
        direct = scores = exact_projection(_rationals(rng.integers(0, 21, 4), 20))
        for _ in range(30):
            q = _rationals(rng.integers(-10, 11, 4))
            direct = exact_step("di", direct, q, fmpq(1, 5))
            scores = [x + value / 5 for x, value in zip(scores, q, strict=True)]
            scores = exact_projection(scores) if put_back else scores
        compare.equal(
            "policy of scores that continue from the projected point",
            exact_projection(scores),
            direct,
            limit="that of DI",
            at={"path": path},
        )
    z = rng.normal(size=(200, 4))
    compare.at_least(
        "distance of the policy from the projection of its scores",
        float(np.abs(policy(z) - project_simplex(z)).max()),
        1e-12,
        limit="$10^{-12}$",
        as_printed=True,
        at={"points": len(z)},
    )


def _unrelated_tasks(n_tasks: int) -> list[Task]:
    """Return random processes with features that are independent of the values."""
    tasks = []
    for seed in range(n_tasks):
        mdp = random_mdp(seed, 6, 3, discount=0.5 + 0.1 * (seed % 5), if_none="last")
        features = np.random.default_rng(seed).normal(size=(mdp.n_states, 1 + seed % 3))
        tasks.append(Task(f"random {seed}", mdp, features))
    return tasks


@check(
    "book:fitted-di",
    wrong={
        "the error of the fit costs nothing": {"cost": 0.0},
        "the error costs itself, without the horizon": {"cost": 1.0},
    },
)
def fitted_direct_obeys_its_bound(compare: Recorder, cost: float | None = None) -> None:
    """Fitted DI satisfies the theorem's bound at every step, fitted before or after projection."""
    places: tuple[Place, ...] = ("before", "after")
    for seed, task in enumerate([*_unrelated_tasks(20), contexts(), chain_with_features()]):
        etas, discount = (
            geometric_weights(10.0 ** (seed % 4 - 1), 1.0 + 0.2 * (seed % 2), 25),
            task.mdp.discount,
        )
        share = 1.0 if cost is None else cost * (1.0 - discount)
        for place in places:
            run = fitted_run(task, etas, place)
            for t, eta in enumerate(etas.tolist()):
                bound = next_bound(run.gaps[t], eta, share * run.errors[t], discount) + ROUNDING
                at = {"task": task.name, "fit": place, "step": t, "eta": eta}
                compare.at_most("next gap", run.gaps[t + 1], bound, at=at)


@check(
    "book:fitted-after",
    wrong={"fitted before the projection it stalls there, too": {"place": "before"}},
)
def fit_after_the_projection_stalls(compare: Recorder, place: Place = "after") -> None:
    """Linear DI fitted after the projection stalls below the optimum, and its bound is trivial."""
    task = contexts()
    for eta in (0.5, 5.0, 50.0, 500.0):
        run, at = fitted_run(task, geometric_weights(eta, 1.0, 200), place), {"eta": eta}
        end = float(run.performance[-1])
        compare.at_most("performance", end, 0.797, limit="0.797", at=at)
        compare.at_least("performance", end, 0.775, limit="0.775", at=at)
        compare.at_least("bound", run.bounds[-1], run.gaps[0], limit="the first gap", at=at)
        if eta >= 50.0:
            compare.equal(
                "performance",
                end,
                greedy_fit(task),
                tolerance=1e-9,
                limit="that of the projected fit",
                at=at,
            )


@check(
    "sec:deepimpl/di",
    wrong={
        "DI in sparsemax's place": {"update": "di"},
        "fitted before the projection, with growing weights": {"place": "before", "growth": 1.2},
    },
)
def two_adaptations_fail(
    compare: Recorder,
    update: str | Update = SPARSEMAX,
    place: Place = "after",
    growth: float = 1.0,
) -> None:
    """Sparsemax does not return from the wall, and DI fitted after the projection stalls.

    That no other adaptation was known when the paper appeared is not computed.
    """
    returns = sum(_count_returns(update, np.random.default_rng(seed))[0] for seed in range(20))
    compare.at_most("actions that return from zero", returns, 0, limit="0", at={"paths": 20})
    ends = []
    for eta in (0.5, 5.0, 50.0, 500.0):
        run = fitted_run(contexts(), geometric_weights(eta, growth, 100), place)
        ends.append(float(run.performance[-1]))
        compare.at_most("performance", ends[-1], 0.9, limit="0.9", at={"eta": eta})
    compare.report(most=round(max(ends), 3))


@check(
    "book:fitted-before",
    wrong={
        "the fit stands after the projection": {"place": "after"},
        "at weights that stay at 0.5": {"growth": 1.0},
    },
)
def fit_before_the_projection_arrives(
    compare: Recorder, place: Place = "before", growth: float = 1.2
) -> None:
    """Linear DI fitted before the projection reaches the optimum, even after reversed values."""
    reversed_steps = 50
    etas = np.r_[np.full(reversed_steps, 0.5), geometric_weights(0.5, growth, 100)]
    for task in (contexts(), chain_with_features()):
        at = {"task": task.name}
        run = fitted_run(task, etas, place, None, reversed_steps)
        table = fitted_run(task, etas, "before", np.eye(task.mdp.n_states), reversed_steps)
        error = np.max(table.errors)
        compare.at_most("error of the fit in a table", error, 1e-9, limit="$10^{-9}$", at=at)
        for step in range(reversed_steps + 1, len(run.gaps)):
            bound = run.bounds[step] + ROUNDING
            compare.at_most("gap", run.gaps[step], bound, at={**at, "step": step})
        short = 1.0 - float(run.performance[-1])
        name = "distance from the optimum at the end"
        compare.at_most(name, short, 1e-3, limit="$10^{-3}$", at=at)
