"""The checks of the chapter on function approximation.

Gradients are compared with those of autograd, learning is measured on tasks with a known optimum,
and what is claimed of sparsemax for ever is followed in exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad, jacobian, make_vjp
from flint import fmpq

from pu_lib.chapters.function_approximation import checks_fitted as function_approximation_fitted
from pu_lib.chapters.function_approximation.quantities import (
    SPARSEMAX,
    Floats,
    Learning,
    Rationals,
    Scores,
    Task,
    best_linear,
    contexts,
    corridor,
    exact_projection,
    exact_step,
    learn,
    neural,
    sparsemax,
    sparsemax_jacobian,
)
from pu_lib.updates import Update, as_update, escort, project_simplex, softmax
from pu_lib.verdict import Verdict, Worst, check, judged

__all__ = ["function_approximation_fitted"]


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
"""What an update ascends, as a function of the scores; the values q are held fixed."""


def _chained(update: Update, model: Scores, theta: Floats, q: Floats) -> Floats:
    """Return the step of the parameters of a model: the tabular step through its scores."""
    vjp, f = make_vjp(model.apply)(theta)
    return np.asarray(vjp(update.step(f, q, 1.0) - f))


@check(
    "sec:deepimpl/chain-rule",
    moved={
        "MCE ascends the objective of CE": {"objectives": ("ce",), "updates": ("mce",)},
        "CE ascends the objective of PG-SM": {"objectives": ("pg-sm",), "updates": ("ce",)},
    },
)
def check_chain_rule(
    objectives: Sequence[str] = tuple(OBJECTIVES),
    updates: Sequence[str | Update] = ("pg-sm", "pg-es", "ce", SPARSEMAX),
) -> Verdict:
    """Compare the chain rule through the library's steps with autograd's gradients.

    Parameters
    ----------
    objectives : sequence of str
        What is differentiated, by names in `OBJECTIVES`.
    updates : sequence of str or Update
        The update that should ascend each of them.

    Returns
    -------
    Verdict
        The margin is 1e-10 minus the largest relative error, with a linear and a neural model.
    """
    rng, worst = np.random.default_rng(0), Worst("1e-10 minus the relative error of the gradient")
    for name, update in zip(objectives, updates, strict=True):
        for model in contexts().models(offset=1.0):
            theta = model.initial + 0.3 * rng.normal(size=model.initial.shape)
            q = rng.normal(size=model.apply(theta).shape)
            ours = _chained(as_update(update), model, theta, q)
            true = grad(lambda x, n=name, m=model, q=q: OBJECTIVES[n](m.apply(x), q))(theta)
            error = np.abs(ours - true).max() / np.abs(true).max()
            worst.add(1e-10 - error, objective=name, model=model.name)
    return judged(worst)


@check(
    "sec:deepimpl/mce-gradient",
    moved={
        "CE is no gradient": {"update": "ce"},
        "PG-SM is no gradient": {"update": "pg-sm"},
        "MCE is none with two actions": {"n_actions": 2},
    },
)
def check_mce_not_a_gradient(update: str | Update = "mce", n_actions: int = 3) -> Verdict:
    """Show that the direction of an update is not a gradient: its Jacobian is not symmetric.

    Central differences; a gradient would leave an asymmetry of the size of their error only.

    Parameters
    ----------
    update : str or Update
        The update.
    n_actions : int
        Number of actions.

    Returns
    -------
    Verdict
        The margin is the least asymmetry, over 50 random points, minus 1e-6.
    """
    rng, h, worst = np.random.default_rng(1), 1e-5, Worst("the asymmetry minus 1e-6")
    chosen = as_update(update)
    for _ in range(50):
        theta, q = rng.normal(size=(2, n_actions))
        nudged = theta + h * np.vstack([np.eye(n_actions), -np.eye(n_actions)])
        upper, lower = np.split(chosen.step(nudged, q, 1.0) - nudged, 2)
        jac = (upper - lower) / (2 * h)
        worst.add(np.abs(jac - jac.T).max() - 1e-6, theta=theta.round(3).tolist())
    return judged(worst)


@check(
    "sec:deepimpl/ce-mce",
    moved={
        "a rate of the wrong sign": {"updates": ("ce",), "n_steps": 30, "eta": -1.0},
        "after one update": {"n_steps": 1},
    },
)
def check_ce_mce(
    updates: Sequence[str | Update] = ("ce", "mce"), n_steps: int = 300, eta: float = 1.0
) -> Verdict:
    """Section 3.6: `ce` and `mce` work with function approximation; a linear and a neural policy.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates.
    n_steps : int
        Updates a run.
    eta : float
        The rate.

    Returns
    -------
    Verdict
        The margin is the least final performance (1 is the optimum) minus 0.95.
    """
    worst, rows = Worst("the normalised performance at the end minus 0.95"), []
    for update in map(as_update, updates):
        for task in (contexts(), corridor()):
            for model in task.models():
                run = learn(update, task, model, n_steps, eta)
                end = float(run.performance[-1])
                worst.add(end - 0.95, update=update.name, task=task.name, model=model.name)
                rows.append(
                    {
                        "update": update.name,
                        "task": task.name,
                        "model": model.name,
                        "normalised performance": end,
                        "largest one-step loss": run.worst_drop,
                    }
                )
    return judged(worst, evidence=rows)


@check(
    "sec:deepimpl/pg-es",
    moved={
        "at rates so small that nothing happens": {"networks": 1, "etas": (1e-6,)},
        "PG-SM in its place": {"update": "pg-sm", "networks": 2},
        "whatever crosses no zero loses too": {"crossing": False, "networks": 2},
    },
)
def check_pg_es(
    update: str | Update = "pg-es",
    networks: int = 6,
    etas: Sequence[float] = (1.0, 0.1),
    crossing: bool = True,
) -> Verdict:
    """Section 3.6: `pg-es` is easy to implement, but may be unstable where its scores cross zero.

    A step that loses more than 0.001 of normalised performance counts as unstable. With the same
    networks and rates `pg-sm` has no such step.

    Parameters
    ----------
    update : str or Update
        The update that should be unstable.
    networks : int
        Number of networks that are tried, with the seeds 0, 1, ...
    etas : sequence of float
        Rates, each tried with all networks.
    crossing : bool
        Whether the losing steps should be those at which scores change their sign, or others.

    Returns
    -------
    Verdict
        In every run at least 0.9 of the performance must be reached, at least one step must lose,
        and all of these must come with scores that cross zero.
    """
    worst, rows, task, softmax_update = Worst("the room"), [], contexts(), as_update("pg-sm")
    for eta in etas:
        runs = [_network_run(as_update(update), task, seed, eta) for seed in range(networks)]
        lost = [int(np.count_nonzero(run.losing())) for run in runs]
        at_zero = [
            int(np.count_nonzero(run.losing() & ((run.crossings > 0) == crossing))) for run in runs
        ]
        others = [_network_run(softmax_update, task, seed, eta) for seed in range(networks)]
        beside = int(sum(np.count_nonzero(run.losing()) for run in others))
        for seed, run in enumerate(runs):
            where = {"network": seed, "eta": eta}
            worst.add(run.performance[-1] - 0.9, part="it learns", **where)
            worst.add(lost[seed] - 1, part="some steps lose", **where)
            worst.add(at_zero[seed] - lost[seed], part="all of them cross zero", **where)
        worst.add(0 - beside, part="softmax loses nowhere", eta=eta)
        rows.append(
            {
                "eta": eta,
                "networks": networks,
                "losing steps": sum(lost),
                "of these crossing zero": sum(at_zero),
                "steps": sum(len(run.crossings) for run in runs),
                "crossing zero": sum(int(np.count_nonzero(run.crossings)) for run in runs),
                "largest one-step loss": max(run.worst_drop for run in runs),
                "losing steps of pg-sm": beside,
            }
        )
    return judged(worst, evidence=rows)


def _network_run(update: Update, task: Task, seed: int, eta: float) -> Learning:
    offset = float(update.parametrization == "escort")  # escort scores must not start at zero
    model = neural(task.features, task.mdp.n_actions, offset, seed=seed)
    return learn(update, task, model, 300, eta)


@check(
    "book:escort-scale",
    moved={
        "a linear softmax policy stops there too": {"softmax_stops": True},
        "it stops at 85 per cent": {"level": 0.85},
        "it stops at 87 per cent": {"level": 0.87},
    },
)
def check_escort_scale(level: float = 0.86, softmax_stops: bool = False) -> Verdict:
    """Check that scaling its scores leaves an escort policy as it is, and what that costs.

    Parameters
    ----------
    level : float
        The best normalised performance of a linear escort policy on the contexts, to 0.005.
    softmax_stops : bool
        Claim the same of a linear softmax policy.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(3), Worst("the room")
    f = rng.normal(size=(100, 4))
    policy = softmax if softmax_stops else escort
    worst.add(1e-12 - np.abs(policy(10 * f) - policy(f)).max(), part="scale")
    best = best_linear(contexts(), escort=not softmax_stops)
    worst.add(0.005 - abs(best - level), part="best linear escort policy", performance=best)
    sharp = best_linear(contexts(), escort=False, restarts=3)
    worst.add(sharp - 0.999, part="best linear softmax policy", performance=sharp)
    return judged(worst)


def _returns(update: Update, rng: np.random.Generator) -> tuple[int, int]:
    """Count actions that come back from zero along an exact path, and those at zero at its end."""
    scores = exact_projection([fmpq(int(x), 20) for x in rng.integers(0, 21, 4)])
    gone: set[int] = set()
    returns = 0
    for _ in range(40):
        q = [fmpq(int(x), 10) for x in rng.integers(-10, 11, 4)]
        scores = exact_step(update, scores, q, fmpq(1, 5))
        policy = exact_projection(scores)
        returns += sum(1 for a in gone if policy[a] > 0)
        gone = {a for a, x in enumerate(policy) if x == 0}
    return returns, len(gone)


@check("sec:deepimpl/sparsemax", moved={"DI does not return either": {"update": "di"}})
def check_sparsemax(update: str | Update = SPARSEMAX, n_paths: int = 150) -> Verdict:
    """Section 3.6: sparsemax has no gradient at actions of probability zero; they never return.

    Parameters
    ----------
    update : str or Update
        The update whose paths are followed exactly.
    n_paths : int
        Paths of 40 steps with fresh random values at each step.

    Returns
    -------
    Verdict
        The closed form of the Jacobian must agree with autograd and vanish off the support, no
        action may return, some must be at zero, and a proper direct update must move the policy
        (1, 0) in one direction and leave it in the other.
    """
    rng, worst = np.random.default_rng(6), Worst("the room")
    for _ in range(200):
        z = rng.normal(size=5)
        true, off = jacobian(sparsemax)(z), project_simplex(z) == 0.0
        worst.add(1e-12 - np.abs(true - sparsemax_jacobian(z)).max(), part="closed form")
        worst.add(0.0 - np.abs(true[:, off]).max(initial=0.0), part="no gradient off the support")
    counts = np.array([_returns(as_update(update), rng) for _ in range(n_paths)]).sum(axis=0)
    worst.add(0.0 - counts[0], part="returns", returns=int(counts[0]), at_zero=int(counts[1]))
    worst.add(float(counts[1]) - 1, part="some are at zero")
    wall: Rationals = [Fraction(1), Fraction(0)]
    for q, moves in (([Fraction(0), Fraction(1)], True), ([Fraction(1), Fraction(0)], False)):
        moved = exact_step("di", wall, q, Fraction(1, 10)) != wall
        worst.add(float(moved == moves) - 1, part="di at the wall", q=[int(x) for x in q])
    return judged(worst)


def _softmax_jacobian(z: Floats) -> Floats:
    """Return the derivative of another policy, for a control."""
    pi = softmax(z)
    return np.asarray(np.diag(pi) - np.outer(pi, pi))


@check(
    "sec:intro/projection-gradient",
    moved={
        "the derivative of softmax in the projection's place": {"formula": _softmax_jacobian},
        "it vanishes on the support as well": {"everywhere": True},
    },
)
def check_projection_gradient(
    formula: Callable[[Floats], Floats] = sparsemax_jacobian,
    everywhere: bool = False,
    n: int = 300,
    h: float = 1e-6,
) -> Verdict:
    """Section 1: the projection "cannot be readily differentiated": its derivative is of no use.

    That is the kinder reading. It has a derivative almost everywhere, in closed form; but this
    vanishes off the support, so that no step along it gives a lost action its probability back.

    Parameters
    ----------
    formula : callable
        The derivative of the projection, from the point.
    everywhere : bool
        Whether to claim that it vanishes on the support, too.
    n : int
        Random points, in two to six dimensions; almost surely none is on a kink.
    h : float
        Step of the central differences, exact up to rounding as the projection is piecewise linear.

    Returns
    -------
    Verdict
        The closed form has to agree with central differences of the library's projection and with
        autograd, and to vanish off the support.
    """
    rng, worst, lost = np.random.default_rng(8), Worst("the room"), 0
    for _ in range(n):
        z = rng.normal(size=int(rng.integers(2, 7)))
        nudge = h * np.eye(len(z))
        central = (project_simplex(z + nudge) - project_simplex(z - nudge)).T / (2 * h)
        claimed, traced = formula(z), jacobian(sparsemax)(z)
        error = max(np.abs(claimed - central).max(), np.abs(claimed - traced).max())
        worst.add(1e-8 - error, actions=len(z), part="closed form")
        off = (project_simplex(z) == 0.0) | everywhere
        worst.add(
            0.0 - np.abs(claimed[:, off]).max(initial=0.0),
            actions=len(z),
            part="vanishes off the support",
        )
        lost += int(off.sum())
    worst.add(lost - 1, actions=lost, part="some are off the support")
    return judged(worst, figures={"points": n})


@check(
    "sec:deepimpl/sparsemax-projection",
    moved={
        "a softmax policy, which is no projection": {"policy": softmax},
        "DI in sparsemax's place, which turns round": {"update": "di"},
        "without putting the projected point back, DI results as well": {"put_back": False},
    },
)
def check_sparsemax_projection(
    update: str | Update = SPARSEMAX,
    policy: Callable[[Floats], Floats] = SPARSEMAX.policy,
    put_back: bool = True,
    n_paths: int = 60,
) -> Verdict:
    """Section 3.6: sparsemax "omits the projection step" and misses the asymmetry.

    It misses the asymmetry: pushed against the wall it does not come back. But its policy is the
    projection; what is omitted is to continue from the projected point, with the gradient taken
    before the projection. Scores that do both are the parameters of DI.

    Parameters
    ----------
    update : str or Update
        The update that should be stuck at the wall.
    policy : callable
        Its policy, from scores.
    put_back : bool
        Whether the projected point is put back into the scores.
    n_paths : int
        Random paths of 30 steps with fresh values, in exact fractions.

    Returns
    -------
    Verdict
    """
    rng, ours = np.random.default_rng(9), Worst("the room")
    wall: Rationals = [Fraction(1), Fraction(0)]
    back = exact_step(update, wall, [Fraction(0), Fraction(1)], Fraction(1, 10))
    ours.add(-float(wall[0] - exact_projection(back)[0]), part="no way back from the wall")
    for i in range(n_paths):
        direct = scores = exact_projection([fmpq(int(x), 20) for x in rng.integers(0, 21, 4)])
        for _ in range(30):
            q = [fmpq(int(x), 10) for x in rng.integers(-10, 11, 4)]
            direct = exact_step("di", direct, q, fmpq(1, 5))
            scores = [x + value / 5 for x, value in zip(scores, q, strict=True)]
            scores = exact_projection(scores) if put_back else scores
        pairs = zip(exact_projection(scores), direct, strict=True)
        ours.add(-float(max(abs(x - y) for x, y in pairs)), part="put back, it is DI", path=i)
    z = rng.normal(size=(200, 4))
    printed = Worst("the distance of the policy from the projection of its scores, minus 1e-12,")
    printed.add(float(np.abs(policy(z) - project_simplex(z)).max()) - 1e-12, points=len(z))
    return judged(ours, printed)
