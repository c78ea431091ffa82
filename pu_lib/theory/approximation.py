r"""The five updates with function approximation (paper, section 3.6).

Scores :math:`f_\theta(s,\cdot)` come from a model with parameters :math:`\theta` shared by the
states. An update that moves the tabular parameters of a state by the direction
:math:`g(s,\cdot) = U(f, q) - f` moves the model by the chain rule,

.. math:: \theta' = \theta + \eta \sum_s d(s) \sum_a g(s,a)\, \nabla_\theta f_\theta(s,a),

one vector-Jacobian product, which the library `autograd` takes. For `pg-sm`, `pg-es` and `ce` this
is the gradient of an objective of the policy. For `mce` with three actions or more it is not the
gradient of anything, already in the table: for actions b and c other than :math:`a_q`,
:math:`\partial_b g_c = -\pi(a_q)\pi(b)/(|A|-1)`, which is not symmetric in b and c. An
implementation holds the direction fixed while it differentiates the scores.

**Escort does not sharpen.** The escort policy is the same for f and for cf. A softmax policy with
linear scores becomes deterministic as its weights grow; a linear escort policy is deterministic
only where the scores of all other actions are exactly zero, and a linear function that vanishes at
more states than it has features (in general position) vanishes everywhere.

**Sparsemax.** The policy :math:`\mathrm{Proj}_\Delta(f)` has the Jacobian :math:`\mathrm{diag}(1_S)
- 1_S 1_S^\top/|S|` with S its support: zero in the rows and columns of the other actions. In a
table more is true: *following the gradient, whatever the values and weights, no action ever returns
to the support.* Write :math:`f_a - \tau` for the probabilities on S, so that :math:`\sum_S f = 1 +
|S|\tau` and :math:`f_a \le \tau` off S. A step keeps :math:`\sum_S f` and the scores off S. Let
:math:`\tau'` be the threshold, :math:`S' \subseteq S` the support of the new scores restricted to
S. Those that leave have :math:`f'_a \le \tau'`, so :math:`1 + |S|\tau = \sum_S f' \le 1 + |S'|\tau'
+ (|S| - |S'|)\tau'`, that is :math:`\tau' \ge \tau`, and the scores off S stay below the threshold.
With shared parameters scores off the support move when other states do, by accident.

**Direct parametrization.** What it needs is a projection *in the space of functions*: fit the
scores to :math:`\mathrm{Proj}_\Delta(\pi + \eta d q)`, state by state. In a table the fit is exact
and gives `di` back; `fitted_direct` does it by least squares for a linear model. Nothing is proved
about it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import grad, jacobian, make_vjp
from numpy.typing import ArrayLike, NDArray

from pu_lib.domains import chain
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES, Update, make_update, project_simplex
from pu_lib.verdict import Status, Verdict

__all__ = [
    "SPARSEMAX",
    "Learning",
    "Scores",
    "Sparsemax",
    "Task",
    "check_ce_mce",
    "check_chain_rule",
    "check_di_open",
    "check_mce_not_a_gradient",
    "check_pg_es",
    "check_sparsemax",
    "contexts",
    "corridor",
    "direct_step",
    "fitted_direct",
    "learn",
    "linear",
    "neural",
    "sparsemax",
    "sparsemax_exact",
    "sparsemax_jacobian",
    "sparsemax_step",
]

Floats = NDArray[np.float64]


# Models of the scores


@dataclass(frozen=True)
class Scores:
    """A differentiable model of the scores of all states.

    Attributes
    ----------
    name : str
        What it is.
    apply : callable
        Maps flat parameters to scores, shape (n_states, n_actions); written with autograd.
    initial : ndarray
        Flat initial parameters: every score equals the offset asked for, or nearly.
    """

    name: str
    apply: Callable[[Any], Any]
    initial: Floats


def linear(features: Floats, n_actions: int, offset: float = 0.0) -> Scores:
    """Return scores linear in `features` (n_states, n_features), one weight vector an action.

    A constant feature comes first, and its weights start at `offset`.
    """
    inputs = np.column_stack([np.ones(len(features)), features])
    start = np.zeros((inputs.shape[1], n_actions))
    start[0] = offset
    return Scores(
        "linear",
        lambda theta: anp.dot(inputs, anp.reshape(theta, (inputs.shape[1], n_actions))),
        start.ravel(),
    )


def neural(
    features: Floats, n_actions: int, offset: float = 0.0, hidden: int = 16, seed: int = 0
) -> Scores:
    """Return the scores of a network with one hidden layer of `hidden` tanh units.

    The output weights start small, so that every score starts near `offset`.
    """
    k = features.shape[1]
    rng = np.random.default_rng(seed)
    inner, outer = (k + 1) * hidden, (hidden + 1) * n_actions

    def apply(theta: Any) -> Any:
        first = anp.reshape(theta[:inner], (k + 1, hidden))
        second = anp.reshape(theta[inner:], (hidden + 1, n_actions))
        units = anp.tanh(anp.dot(features, first[1:]) + first[0])
        return anp.dot(units, second[1:]) + second[0]

    start = np.concatenate([rng.normal(size=inner), 0.01 * rng.normal(size=outer)])
    start[inner : inner + n_actions] += offset
    return Scores("neural", apply, start)


# Tasks with a known optimum


@dataclass(frozen=True)
class Task:
    """A problem with features: the process and what the models see of its states.

    Attributes
    ----------
    name : str
        What it is.
    mdp : FiniteMDP
        Its optimum is known, and its values are exact at every step.
    features : ndarray, shape (n_states, n_features)
        What the model sees; the terminal state is included.
    """

    name: str
    mdp: FiniteMDP
    features: Floats

    def models(self, offset: float = 0.0) -> tuple[Scores, Scores]:
        """Return a linear and a neural model for this task."""
        n = self.mdp.n_actions
        return linear(self.features, n, offset), neural(self.features, n, offset)


def contexts(n_contexts: int = 30, n_actions: int = 3, seed: int = 1) -> Task:
    """Return a contextual bandit whose best action is linear in two features.

    Rewards are linear in the features, so that a linear policy can be optimal; the optimum is the
    mean of the largest reward.
    """
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (n_contexts, 2))
    angles = 2 * np.pi * np.arange(n_actions) / n_actions
    rewards = features @ np.stack([np.cos(angles), np.sin(angles)])
    transitions = np.zeros((n_contexts + 1, n_actions, n_contexts + 1))
    transitions[:, :, -1] = 1.0
    terminal = np.arange(n_contexts + 1) == n_contexts
    return Task(
        "contexts",
        FiniteMDP(
            transitions,
            np.vstack([rewards, np.zeros(n_actions)]),
            np.r_[np.full(n_contexts, 1 / n_contexts), 0.0],
            0.0,
            terminal,
        ),
        np.vstack([features, np.zeros(2)]),
    )


def corridor(n_states: int = 6) -> Task:
    """Return the chain of the paper with two features: the position and its square."""
    position = np.linspace(-1, 1, n_states)
    return Task("chain", chain(n_states, discount=0.9), np.column_stack([position, position**2]))


# Learning


@dataclass(frozen=True)
class Learning:
    """A run with function approximation.

    Attributes
    ----------
    performance : ndarray, shape (T + 1,)
        Normalised: 0 is the uniform policy, 1 the optimum.
    crossings : ndarray, shape (T,)
        How many scores changed sign in each step.
    """

    performance: Floats
    crossings: NDArray[np.int_]

    @property
    def worst_drop(self) -> float:
        """The largest loss of performance in one step."""
        return float(np.max(-np.diff(self.performance), initial=0.0))


def learn(
    update: Update,
    task: Task,
    scores: Scores,
    n_steps: int = 300,
    eta: float = 1.0,
    reversed_steps: int = 0,
) -> Learning:
    """Follow an update through a model of the scores, with exact values at every step.

    Every state has weight eta / n_states. In the first `reversed_steps` updates the values are
    those of the opposite rewards, as far as the update sees: it is given -q.

    Raises
    ------
    ValueError
        For `di`, whose parameters are no free scores: see `fitted_direct`.
    """
    if update.name == "di":
        raise ValueError("update: 'di' needs parameters on the simplex; see fitted_direct.")
    theta, mdp = scores.initial.copy(), task.mdp
    weight = eta / mdp.n_states * ~mdp.terminal[:, np.newaxis]
    performance: list[float] = []
    crossings: list[int] = []
    before = None
    for t in range(n_steps + 1):
        vjp, f = make_vjp(scores.apply)(theta)
        if before is not None:
            crossings.append(int(np.count_nonzero(f * before < 0)))
        before, pi = f, update.policy(f)
        performance.append(mdp.normalised_performance(pi))
        if t < n_steps:
            q = mdp.evaluate(pi).q * (-1.0 if t < reversed_steps else 1.0)
            direction = update.step(f, q, 1.0) - f
            theta = theta + vjp(weight * direction)
    return Learning(np.array(performance), np.array(crossings))


def fitted_direct(
    task: Task,
    n_steps: int = 100,
    eta: float = 0.5,
    features: Floats | None = None,
    reversed_steps: int = 0,
) -> Learning:
    r"""Follow `di` by fitting a linear model to :math:`\mathrm{Proj}_\Delta(\pi + \eta q)`.

    The policy is the projection of the scores; the fit is least squares over the states, so that
    with one-hot `features` this is the tabular `di`.
    """
    mdp, x = task.mdp, task.features if features is None else features
    inputs = np.column_stack([np.ones(len(x)), x])
    scores = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    performance = []
    live = ~mdp.terminal
    for t in range(n_steps + 1):
        pi = project_simplex(scores)
        performance.append(mdp.normalised_performance(pi))
        if t < n_steps:
            q = mdp.evaluate(pi).q * (-1.0 if t < reversed_steps else 1.0)
            target = UPDATES["di"].step(pi, q, eta)
            scores = inputs @ np.linalg.lstsq(inputs[live], target[live], rcond=None)[0]
    return Learning(np.array(performance), np.zeros(n_steps, dtype=int))


class Sparsemax(Update):
    """Gradient of the policy that projects its scores on the simplex (Martins and Astudillo)."""

    name = "sparsemax"

    def _policy(self, theta: Floats) -> Floats:
        return project_simplex(theta)

    def _inverse(self, pi: Floats) -> Floats:
        return pi.copy()

    def _step(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        support = project_simplex(theta) > 0.0
        mean = np.sum(q * support, axis=-1, keepdims=True) / support.sum(axis=-1, keepdims=True)
        return np.asarray(theta + weight * np.where(support, q - mean, 0.0))


SPARSEMAX = Sparsemax()


# Checks


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
        "sec:deepimpl/chain-rule",
        Status.HOLDS if worst < 1e-10 else Status.FALSE,
        1e-10 - worst,
        f"For {', '.join(names)}, with a linear and a neural model, the steps differ from "
        f"autograd's gradients by at most {worst:.2g}, relatively.",
    )


def _direction(update: Update, q: Floats) -> Callable[[Floats], Floats]:
    return lambda theta: update.step(theta, q, 1.0) - theta


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
        "sec:deepimpl/mce-gradient",
        Status.HOLDS if asymmetry > 1e-6 else Status.FALSE,
        asymmetry,
        f"Over 50 random points with {n_actions} actions the Jacobian of {name}'s direction is "
        f"asymmetric by at least {asymmetry:.3g}.",
    )


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
        "sec:deepimpl/ce-mce",
        Status.HOLDS if worst > 0.95 else Status.FALSE,
        worst - 0.95,
        f"After {n_steps} updates the normalised performance (1 is the optimum) is at least "
        f"{worst:.4f} over two tasks and two models.",
        tuple(rows),
    )


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
        "sec:deepimpl/pg-es",
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


# Sparsemax and the direct parametrization


def sparsemax(z: Any) -> Any:
    """Return the projection of `z` on the simplex, in operations that autograd differentiates."""
    descending = anp.sort(z)[::-1]
    thresholds = (anp.cumsum(descending) - 1.0) / np.arange(1, len(z) + 1)
    k = sum(1 for x, threshold in zip(descending, thresholds, strict=True) if x > threshold)
    return anp.maximum(z - thresholds[k - 1], 0.0)


def sparsemax_jacobian(z: ArrayLike) -> Floats:
    r"""Return the closed form :math:`\mathrm{diag}(1_S) - 1_S 1_S^\top / |S|`."""
    support = (project_simplex(z) > 0.0).astype(np.float64)
    return np.asarray(np.diag(support) - np.outer(support, support) / support.sum())


Rationals = list[Fraction]
ExactStep = Callable[[Rationals, Rationals, Fraction], Rationals]


def sparsemax_exact(z: Rationals) -> Rationals:
    """Return the projection of rational scores on the simplex, exactly."""
    total, threshold = Fraction(0), Fraction(0)
    for k, x in enumerate(sorted(z, reverse=True), start=1):
        total += x
        if k * x > total - 1:
            threshold = (total - 1) / k
    return [max(x - threshold, Fraction(0)) for x in z]


def sparsemax_step(z: Rationals, q: Rationals, weight: Fraction) -> Rationals:
    """Return the scores after a gradient step of the sparsemax policy, exactly."""
    support = [a for a, x in enumerate(sparsemax_exact(z)) if x > 0]
    mean = sum((q[a] for a in support), Fraction(0)) / len(support)
    return [x + weight * (q[a] - mean) if a in support else x for a, x in enumerate(z)]


def direct_step(z: Rationals, q: Rationals, weight: Fraction) -> Rationals:
    """Return the policy after a step of `di` from the policy `z`, exactly."""
    return sparsemax_exact([x + weight * y for x, y in zip(z, q, strict=True)])


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
        "sec:deepimpl/sparsemax",
        Status.HOLDS if holds else Status.FALSE,
        -float(returns),
        f"autograd's Jacobian is zero off the support and differs from the closed form by at most "
        f"{error:.1g}; on {n_paths} exact paths actions at zero returned {returns} times "
        f"({left} were at zero at the end). DI moves (1, 0) under q = (0, 1), weight 0.1, to "
        f"({moved[0]}, {moved[1]}).",
    )


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
        "sec:deepimpl/di",
        Status.OPEN if table > 0.99 > best_general else Status.FALSE,
        0.99 - best_general,
        f"After a reversal of the values the fitted projection reaches {table:.3f} in a table, but "
        f"neither it nor sparsemax reaches more than {best_general:.3f} on both tasks with a "
        "linear model: no method here inherits DI's guarantee.",
        tuple(rows),
    )
