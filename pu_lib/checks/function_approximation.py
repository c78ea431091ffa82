"""The checks of the chapter on function approximation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad, jacobian, make_vjp

from pu_lib.theory.function_approximation import (
    SPARSEMAX,
    Floats,
    Rationals,
    Scores,
    Task,
    contexts,
    corridor,
    direct_step,
    fitted_direct,
    learn,
    linear,
    neural,
    sparsemax,
    sparsemax_exact,
    sparsemax_jacobian,
    sparsemax_step,
)
from pu_lib.updates import UPDATES, Update, make_update, project_simplex
from pu_lib.verdict import Status, Verdict, check


def _objective(name: str, scores: Scores, q: Floats) -> Callable[[Any], Any]:
    """Return the objective of theta whose gradient is the update, q being held fixed."""
    best = np.argmax(q, axis=1)

    def value(theta: Any) -> Any:
        f = scores.apply(theta)
        if name == "sparsemax":
            return sum(anp.dot(sparsemax(row), values) for row, values in zip(f, q, strict=True))
        if name == "pg-es":
            pi = f**2 / anp.sum(f**2, axis=1, keepdims=True)
            return anp.sum(pi * q)
        log_pi = f - anp.log(anp.sum(anp.exp(f), axis=1, keepdims=True))
        if name == "ce":
            return anp.sum(log_pi[np.arange(len(q)), best])
        return anp.sum(anp.exp(log_pi) * q)

    return value


@check("sec:deepimpl/chain-rule")
def check_chain_rule(
    names: Sequence[str] = ("pg-sm", "pg-es", "ce", "sparsemax"),
    directions: Sequence[str] | None = None,
) -> Verdict:
    """Compare the chain rule through the library's steps with autograd's gradients.

    Parameters
    ----------
    names : sequence of str
        The updates whose objectives are differentiated.
    directions : sequence of str, optional
        The updates whose steps are pulled back; the same if missing.
    """
    rng, worst = np.random.default_rng(0), 0.0
    for name, direction in zip(names, directions or names, strict=True):
        for model in contexts().models(offset=1.0):
            theta = model.initial + 0.3 * rng.normal(size=model.initial.shape)
            vjp, f = make_vjp(model.apply)(theta)
            q = rng.normal(size=f.shape)
            ours = vjp((UPDATES | {"sparsemax": SPARSEMAX})[direction].step(f, q, 1.0) - f)
            true = grad(_objective(name, model, q))(theta)
            worst = max(worst, float(np.abs(ours - true).max() / np.abs(true).max()))
    return Verdict(
        Status.HOLDS if worst < 1e-10 else Status.FALSE,
        1e-10 - worst,
        f"For {', '.join(names)}, with a linear and a neural model, the steps differ from "
        f"autograd's gradients by at most {worst:.2g}, relatively.",
    )


def _direction(update: Update, q: Floats) -> Callable[[Floats], Floats]:
    return lambda theta: update.step(theta, q, 1.0) - theta


@check("sec:deepimpl/mce-gradient")
def check_mce_not_a_gradient(name: str = "mce", n_actions: int = 3) -> Verdict:
    """Show that the direction of `mce` is not a gradient: its Jacobian is not symmetric.

    Central differences; a gradient would leave an asymmetry of the size of their error only.
    """
    rng, h, asymmetry = np.random.default_rng(1), 1e-5, np.inf
    for _ in range(50):
        theta, q = rng.normal(size=(2, n_actions))
        move = _direction(UPDATES[name], q)
        columns = [(move(theta + h * e) - move(theta - h * e)) / (2 * h) for e in np.eye(n_actions)]
        jac = np.stack(columns)
        asymmetry = min(asymmetry, float(np.abs(jac - jac.T).max()))
    return Verdict(
        Status.HOLDS if asymmetry > 1e-6 else Status.FALSE,
        asymmetry,
        f"Over 50 random points with {n_actions} actions the Jacobian of {name}'s direction is "
        f"asymmetric by at least {asymmetry:.3g}.",
    )


@check("sec:deepimpl/ce-mce")
def check_ce_mce(
    names: Sequence[str] = ("ce", "mce"), n_steps: int = 300, eta: float = 1.0
) -> Verdict:
    """Section 3.6: `ce` and `mce` work with function approximation; a linear and a neural policy.

    Parameters
    ----------
    names : sequence of str
        The updates.
    n_steps : int
        Updates a run.
    eta : float
        The rate; a negative one, the wrong sign of the gradient, must be caught.
    """
    rows: list[dict[str, Any]] = []
    worst = np.inf
    for name in names:
        for task in (contexts(), corridor()):
            for model in task.models():
                run = learn(UPDATES[name], task, model, n_steps, eta)
                worst = min(worst, float(run.performance[-1]))
                rows.append(
                    {
                        "update": name,
                        "task": task.name,
                        "model": model.name,
                        "normalised performance": float(run.performance[-1]),
                        "largest one-step loss": run.worst_drop,
                    }
                )
    return Verdict(
        Status.HOLDS if worst > 0.95 else Status.FALSE,
        worst - 0.95,
        f"After {n_steps} updates the normalised performance (1 is the optimum) is at least "
        f"{worst:.4f} over two tasks and two models.",
        tuple(rows),
    )


@check("sec:deepimpl/pg-es")
def check_pg_es(
    exponents: Sequence[float] = (2.0,),
    seeds: Sequence[int] = (0, 1),
    etas: Sequence[float] = (0.1, 1.0),
) -> Verdict:
    """Section 3.6: `pg-es` is easy to implement, but may be unstable where its scores cross zero.

    A step that loses more than 0.001 of normalised performance counts as unstable. With the same
    models and rates `pg-sm` has no such step.

    Parameters
    ----------
    exponents : sequence of float
        Values of p.
    seeds, etas : sequence
        Networks and rates.
    """
    task, rows = contexts(), []
    for p in exponents:
        for seed in seeds:
            for eta in etas:
                rows.append(_instability(make_update("pg-es", p=p), task, seed, eta))
    calm = [_instability(UPDATES["pg-sm"], task, seed, eta) for seed in seeds for eta in etas]
    unstable = all(row["losing steps"] > 0 for row in rows)
    at_zero = all(row["losing steps"] == row["of these crossing zero"] for row in rows)
    flat = learn(UPDATES["pg-es"], task, task.models(offset=1.0)[0]).performance[-1]
    sharp = learn(UPDATES["pg-sm"], task, task.models()[0]).performance[-1]
    reached = min(row["performance"] for row in rows) > 0.9
    lost = max(row["largest one-step loss"] for row in rows)
    holds = unstable and at_zero and reached and not any(row["losing steps"] for row in calm)
    return Verdict(
        (Status.CORRECTED if flat < 0.9 < sharp else Status.HOLDS) if holds else Status.FALSE,
        lost,
        f"The network learns, but single steps lose up to {lost:.3f} of the performance, all while "
        f"scores cross zero; pg-sm has none. And a linear escort policy stops at {flat:.3f}, where "
        f"the linear softmax policy is at {sharp:.3f} and rising: escort does not sharpen.",
        tuple(rows + calm),
    )


def _instability(update: Update, task: Task, seed: int, eta: float) -> dict[str, Any]:
    """Count the steps of a network that lose performance, and those of them that cross zero."""
    offset = 1.0 if update.name == "pg-es" else 0.0
    model = neural(task.features, task.mdp.n_actions, offset, seed=seed)
    run = learn(update, task, model, 200, eta)
    losing = -np.diff(run.performance) > 1e-3
    return {
        "update": update.name,
        "network": seed,
        "eta": eta,
        "performance": float(run.performance[-1]),
        "losing steps": int(losing.sum()),
        "of these crossing zero": int(np.count_nonzero(run.crossings[losing])),
        "largest one-step loss": run.worst_drop,
    }


ExactStep = Callable[[Rationals, Rationals, Fraction], Rationals]


@check("sec:deepimpl/sparsemax")
def check_sparsemax(step: ExactStep = sparsemax_step, n_paths: int = 150) -> Verdict:
    """Section 3.6: sparsemax has no gradient at actions of probability zero; they never return.

    Parameters
    ----------
    step : callable
        The step whose paths are followed exactly; `direct_step` must be caught returning.
    n_paths : int
        Paths of 40 steps with fresh random values at each step.
    """
    rng = np.random.default_rng(6)
    error = off_support = 0.0
    for _ in range(200):
        z = rng.normal(size=5)
        true = jacobian(sparsemax)(z)
        off = project_simplex(z) == 0.0
        error = max(error, float(np.abs(true - sparsemax_jacobian(z)).max()))
        off_support = max(off_support, float(np.abs(true[:, off]).max(initial=0.0)))
    returns = left = 0
    for _ in range(n_paths):
        scores = sparsemax_exact([Fraction(int(x), 20) for x in rng.integers(0, 21, 4)])
        gone: set[int] = set()
        for _ in range(40):
            q = [Fraction(int(x), 10) for x in rng.integers(-10, 11, 4)]
            scores = step(scores, q, Fraction(1, 5))
            policy = sparsemax_exact(scores)
            returns += sum(1 for a in gone if policy[a] > 0)
            gone = {a for a, x in enumerate(policy) if x == 0}
        left += len(gone)
    moved = direct_step([Fraction(1), Fraction(0)], [Fraction(0), Fraction(1)], Fraction(1, 10))
    holds = error < 1e-12 and off_support == 0.0 and returns == 0 and moved[1] > 0
    return Verdict(
        Status.HOLDS if holds else Status.FALSE,
        -float(returns),
        f"autograd's Jacobian is zero off the support and differs from the closed form by at most "
        f"{error:.1g}; on {n_paths} exact paths actions at zero returned {returns} times "
        f"({left} were at zero at the end). DI moves (1, 0) under q = (0, 1), weight 0.1, to "
        f"({moved[0]}, {moved[1]}).",
    )


@check("sec:deepimpl/di")
def check_di_open(eta: float = 0.5) -> Verdict:
    """Section 3.6: a direct parametrization with function approximation is an open problem.

    What exists: sparsemax, stuck after a reversal of the values, and a projection in the space of
    functions by least squares, which is `di` in a table and has no guarantee beyond it.
    """
    tasks = (contexts(), corridor())
    rows: list[dict[str, Any]] = []
    for task in tasks:
        one_hot = np.eye(task.mdp.n_states)
        model = linear(task.features, task.mdp.n_actions)
        rows.append(
            {
                "task": task.name,
                "softmax, linear, MCE": float(
                    learn(UPDATES["mce"], task, model, 400, 1.0, 50).performance[-1]
                ),
                "sparsemax, linear": float(
                    learn(SPARSEMAX, task, model, 400, 1.0, 50).performance[-1]
                ),
                "fitted DI, table": float(
                    fitted_direct(task, 200, eta, one_hot, 50).performance[-1]
                ),
                "fitted DI, linear": float(fitted_direct(task, 200, eta, None, 50).performance[-1]),
            }
        )
    table = min(row["fitted DI, table"] for row in rows)
    best_general = max(
        min(row[method] for row in rows) for method in ("sparsemax, linear", "fitted DI, linear")
    )
    return Verdict(
        Status.OPEN if table > 0.99 > best_general else Status.FALSE,
        0.99 - best_general,
        f"After a reversal of the values the fitted projection reaches {table:.3f} in a table, but "
        f"neither it nor sparsemax reaches more than {best_general:.3f} on both tasks with a "
        "linear model: no method here inherits DI's guarantee.",
        tuple(rows),
    )
