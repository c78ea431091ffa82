r"""The five updates with function approximation (paper, section 3.6).

The scores :math:`f_\theta(s,\cdot)` are the output of a model with parameters :math:`\theta` that
all states share. If the tabular step of an update changes the scores of a state by
:math:`g(s,\cdot) = U(f, q) - f`, the chain rule changes the parameters of the model to

.. math:: \theta' = \theta + \eta \sum_s d(s) \sum_a g(s,a)\, \nabla_\theta f_\theta(s,a).

The sum is one vector-Jacobian product, which the library `autograd` computes. For `pg-sm`, `pg-es`
and `ce` it is the gradient of an objective of the policy. For `mce` with three or more actions it
is not the gradient of any function, even in a table: for actions b and c other than :math:`a_q`,
:math:`\partial_b g_c = -\pi(a_q)\pi(b)/(|A|-1)`, which is not symmetric in b and c. An
implementation treats the direction as a constant while it differentiates the scores.

**Natural policy gradient.** The Fisher information of shared parameters mixes the states, so `npg`
has no direction of its own at a state. Its step is the *compatible* least-squares fit: it moves the
parameters by the u that minimises

.. math:: \sum_s d(s) \sum_a \pi(a|s)
   \big(\mathrm{adv}(s,a) - \langle u, \nabla_\theta\log\pi(a|s)\rangle\big)^2.

The chain rule applied to the tabular step of `npg` is another update. With the values centred by
the policy it is `NEURD`, neural replicator dynamics (Hennes et al., 2020). The two agree in a
table. A common shift c(s) of a direction is harmless in a table, and if the scores are linear in
features that the actions of a state share, because it moves the weights of all actions alike. In a
network it moves the hidden units, and the result depends on it.

**Scaling the scores does not sharpen an escort policy.** The escort policy is the same for f and
for cf. A softmax policy with linear scores becomes deterministic as its parameters grow. A linear
escort policy is deterministic at a state only if the scores of all other actions are exactly zero.
A linear function that vanishes at more states than it has features (in general position) vanishes
everywhere.

**Sparsemax.** The policy :math:`\mathrm{Proj}_\Delta(f)` with support S has the Jacobian
:math:`\mathrm{diag}(1_S) - 1_S 1_S^\top/|S|`, which is zero in the rows and columns of the other
actions. In a table a stronger statement is true: *under gradient steps with any values and weights,
no action ever returns to the support.* The probabilities on S are :math:`f_a - \tau`, so
:math:`\sum_S f = 1 + |S|\tau`, and :math:`f_a \le \tau` off S. A step changes neither
:math:`\sum_S f` nor the scores off S. Let :math:`\tau'` be the threshold and :math:`S' \subseteq S`
the support of the new scores restricted to S. The actions in S but not in :math:`S'` have
:math:`f'_a \le \tau'`, so :math:`1 + |S|\tau = \sum_S f' \le 1 + |S'|\tau' + (|S| - |S'|)\tau'`.
Hence :math:`\tau' \ge \tau`, and the scores off S stay at or below the threshold. If states share
parameters, the updates of other states can change the scores off the support.

**Direct parametrization.** It needs a projection *in the space of functions*, which fits the
scores of all states to :math:`\mathrm{Proj}_\Delta(\pi + \eta d q)`. In a table the fit is exact,
and the result is `di`. `fitted_direct` fits a linear model by least squares, which cannot reach its
targets exactly. The module `pu_lib.chapters.function_approximation.fitted_direct` fits before the
projection instead and computes an error bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import autograd.numpy as anp
import numpy as np
from autograd import make_vjp, value_and_grad
from autograd.extend import defvjp, primitive
from numpy.typing import ArrayLike, NDArray

from pu_lib import kernels
from pu_lib.arrays import Floats
from pu_lib.domains import chain
from pu_lib.kernels import Kernel
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import follow
from pu_lib.updates import (
    NaturalPolicyGradient,
    Update,
    as_update,
    project_simplex,
    softmax,
)

__all__ = [
    "NEURD",
    "SPARSEMAX",
    "Learning",
    "NeuralReplicator",
    "ScoreModel",
    "Sparsemax",
    "Task",
    "best_linear",
    "chain_with_features",
    "compatible_direction",
    "contexts",
    "exact_projection",
    "exact_step",
    "fitted_direct",
    "learn",
    "linear",
    "neural",
    "reversal_paths",
    "sparsemax",
    "sparsemax_jacobian",
]

# Models of the scores


DAMPING = 1e-3
"""The damping of the compatible fit for networks, whose features are nearly dependent. On the
contexts any value from 1e-6 to 1e-2 leads to a performance above 0.999 with step size 1."""


@dataclass(frozen=True)
class ScoreModel:
    """A differentiable model of the scores of all states.

    `apply` is written with autograd and maps flat parameters to scores of shape
    (n_states, n_actions). `jacobian` maps them to the derivatives of the scores, of shape
    (n_states, n_actions, n_parameters). `initial` contains the initial parameters. `damping` is
    that of the compatible fit of `npg`.
    """

    name: str
    apply: Callable[[Any], Any]
    jacobian: Callable[[Floats], Floats]
    initial: Floats
    damping: float = 0.0


def linear(features: Floats, n_actions: int, offset: float = 0.0) -> ScoreModel:
    """Return a model of scores that are linear in the features and a constant.

    All initial scores equal the offset.
    """
    inputs = np.column_stack([np.ones(len(features)), features])
    start = np.zeros((inputs.shape[1], n_actions))
    start[0] = offset
    return ScoreModel(
        "linear",
        lambda theta: _product(inputs, anp.reshape(theta, (inputs.shape[1], n_actions))),
        lambda theta: _affine_jacobian(features, n_actions),
        start.ravel(),
    )


def neural(
    features: Floats, n_actions: int, offset: float = 0.0, hidden: int = 16, seed: int = 0
) -> ScoreModel:
    """Return a model of scores by a network with one hidden layer of tanh units.

    The initial output biases are near the offset, and the initial output weights are near zero.
    """
    k = features.shape[1]
    rng = np.random.default_rng(seed)
    inner, outer = (k + 1) * hidden, (hidden + 1) * n_actions

    def apply(theta: Any) -> Any:
        first = anp.reshape(theta[:inner], (k + 1, hidden))
        second = anp.reshape(theta[inner:], (hidden + 1, n_actions))
        return _affine(_tanh(_affine(features, first)), second)

    def jacobian(theta: Floats) -> Floats:
        first = theta[:inner].reshape(k + 1, hidden)
        units = _tanh_by_doubling(_affine_map(features, first))
        slopes = (1 - units * units)[..., np.newaxis] * _affine_jacobian(features, hidden)
        outer_weights = theta[inner + n_actions :].reshape(hidden, n_actions)
        return np.concatenate(
            [outer_weights.T @ slopes, _affine_jacobian(units, n_actions)], axis=2
        )

    start = np.concatenate([rng.normal(size=inner), 0.01 * rng.normal(size=outer)])
    start[inner : inner + n_actions] += offset
    return ScoreModel("neural", apply, jacobian, start, DAMPING)


# Escort may amplify a difference in the last bit of a score until two runs diverge. NumPy's tanh
# and the matrix products of BLAS differ in the last bit between processors, but plain sums and
# products do not differ.


def _matmul(rows: Floats, matrix: Floats) -> Floats:
    """Return the product of two matrices, with the terms added in a fixed order."""
    return np.asarray((rows[:, :, np.newaxis] * matrix).sum(axis=1))


def _affine_map(rows: Floats, weights: Floats) -> Floats:
    """Return the product of rows and all weights except the first row, plus the first row."""
    return np.asarray(_matmul(rows, weights[1:]) + weights[0])


def _affine_jacobian(rows: Floats, n_outputs: int) -> Floats:
    """Return the derivatives of an affine map of the rows with respect to its weights."""
    inputs = np.column_stack([np.ones(len(rows)), rows])
    products = inputs[:, np.newaxis, :, np.newaxis] * np.eye(n_outputs)[:, np.newaxis, :]
    return products.reshape(len(rows), n_outputs, -1)


def _rows_vjp(cotangent: Floats, matrix: Floats) -> Floats:
    """Return the cotangent of the rows of a product."""
    return np.asarray((cotangent[:, np.newaxis, :] * matrix).sum(axis=2))


def _matrix_vjp(cotangent: Floats, rows: Floats) -> Floats:
    """Return the cotangent of the matrix of a product."""
    return np.asarray((rows[:, :, np.newaxis] * cotangent[:, np.newaxis, :]).sum(axis=0))


def _weights_vjp(cotangent: Floats, rows: Floats) -> Floats:
    """Return the cotangent of the weights of an affine map."""
    return np.vstack([cotangent.sum(axis=0), _matrix_vjp(cotangent, rows)])


def _tanh_by_doubling(x: Floats) -> Floats:
    """Return tanh x with an error of about 1e-14, from twelve doublings of the argument.

    A doubling is tanh 2y = 2 tanh y / (1 + tanh^2 y).
    """
    y = x / 4096
    t = y * (1 - y * y / 3)
    for _ in range(12):
        t = 2 * t / (1 + t * t)
    return t


# Each function is one node in autograd's graph, because autograd's run time is proportional to the
# number of nodes.
_tanh: Callable[[Any], Any] = primitive(_tanh_by_doubling)
_product: Callable[[Any, Any], Any] = primitive(_matmul)
_affine: Callable[[Any, Any], Any] = primitive(_affine_map)
defvjp(_tanh, lambda t, _: lambda cotangent: cotangent * (1 - t * t))
defvjp(
    _product,
    lambda _, rows, matrix: lambda cotangent: _rows_vjp(cotangent, matrix),
    lambda _, rows, matrix: lambda cotangent: _matrix_vjp(cotangent, rows),
)
defvjp(
    _affine,
    lambda _, rows, weights: lambda cotangent: _rows_vjp(cotangent, weights[1:]),
    lambda _, rows, weights: lambda cotangent: _weights_vjp(cotangent, rows),
)


# Tasks with a known optimum


@dataclass(frozen=True)
class Task:
    """A process with a known optimum and with features of its states.

    `features` has shape (n_states, n_features) and includes the terminal state.
    """

    name: str
    mdp: FiniteMDP
    features: Floats

    def models(self, offset: float = 0.0) -> tuple[ScoreModel, ScoreModel]:
        """Return a linear and a neural model of the scores for this task."""
        n = self.mdp.n_actions
        return linear(self.features, n, offset), neural(self.features, n, offset)


def contexts(n_contexts: int = 30, n_actions: int = 3, seed: int = 1) -> Task:
    """Return a contextual bandit with rewards linear in two features.

    A linear policy can therefore be optimal. All contexts are equally likely.
    """
    rng = np.random.default_rng(seed)
    features = rng.uniform(-1, 1, (n_contexts, 2))
    angles = 2 * np.pi * np.arange(n_actions) / n_actions
    # The rewards are rounded because the last digits of a cosine and of a product depend on the
    # processor.
    rewards = np.round(features @ np.stack([np.cos(angles), np.sin(angles)]), 12)
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


def chain_with_features(n_states: int = 6) -> Task:
    """Return the paper's chain with two features: the position and its square."""
    position = np.linspace(-1, 1, n_states)
    return Task("chain", chain(n_states, discount=0.9), np.column_stack([position, position**2]))


# Learning


@dataclass(frozen=True)
class Learning:
    """A run with function approximation.

    `performance` has shape (T + 1,) and is 0 for the uniform policy and 1 for the optimum.
    `crossings` has shape (T,) and counts the scores that changed sign in each step.
    """

    performance: Floats
    crossings: NDArray[np.int_]

    def losing_steps(self, least: float = 1e-3) -> NDArray[np.bool_]:
        """Return whether each step decreases the performance by more than `least`."""
        return np.asarray(-np.diff(self.performance) > least)


def learn(
    update: str | Update,
    task: Task,
    scores: ScoreModel,
    n_steps: int = 300,
    step_size: float = 1.0,
    reversed_steps: int = 0,
) -> Learning:
    """Run an update through a model of the scores, with exact values at every step.

    The chain rule is applied to the tabular step with weight step_size / n_states at every
    nonterminal state. The step of `npg` is `step_size` times its `compatible_direction`, in
    which all nonterminal states have the same weight. The first `reversed_steps` steps use -q.
    """
    update = as_update(update)
    if update.parametrization == "direct":
        raise ValueError(
            f"update: {update.name!r} needs parameters on the simplex; use fitted_direct."
        )
    theta, mdp = scores.initial.copy(), task.mdp
    live = ~mdp.terminal
    weight = step_size / mdp.n_states * live[:, np.newaxis]
    performance: list[float] = []
    crossings: list[int] = []
    before = None
    for t in range(n_steps + 1):
        vjp, f = make_vjp(scores.apply)(theta)
        if before is not None:
            crossings.append(int(np.count_nonzero(f * before < 0)))
        pi = update.policy(f)
        before, now = f, mdp.evaluate(pi)
        performance.append(mdp._normalised(now.performance))
        if t < n_steps:
            q = -now.q if t < reversed_steps else now.q
            if isinstance(update, NaturalPolicyGradient):
                features = scores.jacobian(theta)[live]
                fit = compatible_direction(features, pi[live], q[live], scores.damping)
                theta = theta + step_size * fit
            else:
                theta = theta + vjp(weight * (update.step(f, q, 1.0) - f))
    return Learning(np.array(performance), np.array(crossings))


def compatible_direction(
    features: ArrayLike, pi: ArrayLike, q: ArrayLike, damping: float = 0.0
) -> Floats:
    r"""Return the natural gradient of the mean over states of :math:`\sum_a\pi(a|s)q(s,a)`.

    The natural gradient is :math:`(F + \lambda I)^+g` with the gradient g and the Fisher
    information F of the policy, both averaged over the states. It is computed as the minimum-norm
    least-squares fit of the centred features, with one row for each state and action, to the
    advantages, weighted by the policy.

    Parameters
    ----------
    features : array_like, shape (..., n_actions, n_parameters)
        Derivatives of the scores. The leading axes are states.
    pi, q : array_like, shape (..., n_actions)
        The policy and the values.
    damping : float
        The number :math:`\lambda \ge 0`.

    Returns
    -------
    ndarray, shape (n_parameters,)
        The direction. A shift of the features or of q that is common to the actions of a state
        does not change it.
    """
    X, p = np.asarray(features, dtype=np.float64), np.asarray(pi, dtype=np.float64)
    values = np.asarray(q, dtype=np.float64)
    root = np.sqrt(p / (p.size // p.shape[-1]))
    means = np.sum(p * values, axis=-1, keepdims=True)
    # The condition number of this least-squares problem is the square root of that number of F.
    centred = root[..., np.newaxis] * (X - p[..., np.newaxis, :] @ X)
    rows, gains = centred.reshape(-1, X.shape[-1]), (root * (values - means)).ravel()
    if not damping:
        return np.asarray(np.linalg.lstsq(rows, gains)[0])
    gram = rows @ rows.T + damping * np.eye(len(rows))  # smaller than F: fewer rows than parameters
    return np.asarray(rows.T @ np.linalg.solve(gram, gains))


class NeuralReplicator(Update):
    r"""Neural replicator dynamics (Hennes et al., 2020): scores move by :math:`w\,(q - \pi q)`.

    In a table the policies are those of `npg`. With shared parameters the chain rule is applied.
    """

    name = "neurd"
    title = "neural replicator dynamics"
    label = "NeuRD"

    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy for validated parameters."""
        return softmax(theta)

    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters for a validated policy."""
        return as_update("npg").parameters(pi)

    def advance(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        """Return the parameters after one step."""
        mean = np.sum(softmax(theta) * q, axis=-1, keepdims=True)
        return np.asarray(theta + weight * (q - mean))


NEURD = NeuralReplicator()
"""The only instance of `NeuralReplicator`, which is not a registered update."""


def fitted_direct(
    task: Task,
    n_steps: int = 100,
    step_size: float = 0.5,
    features: Floats | None = None,
    reversed_steps: int = 0,
) -> Learning:
    r"""Run `di` with a linear model fitted to :math:`\mathrm{Proj}_\Delta(\pi + \eta q)`.

    The fit is by least squares over the states, so the run is the tabular `di` if the features are
    one-hot. The first `reversed_steps` steps use -q. Crossings are not counted.
    """
    mdp, x = task.mdp, task.features if features is None else features
    inputs = np.column_stack([np.ones(len(x)), x])
    scores = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    performance = []
    live = ~mdp.terminal
    for t in range(n_steps + 1):
        pi = project_simplex(scores)
        now = mdp.evaluate(pi)
        performance.append(mdp._normalised(now.performance))
        if t < n_steps:
            q = -now.q if t < reversed_steps else now.q
            target = as_update("di").step(pi, q, step_size)
            scores = inputs @ np.linalg.lstsq(inputs[live], target[live], rcond=None)[0]
    return Learning(np.array(performance), np.zeros(n_steps, dtype=int))


class Sparsemax(Update):
    """Gradient ascent on scores that are projected onto the simplex (Martins and Astudillo)."""

    name = "sparsemax"

    @property
    def kernel(self) -> Kernel | None:
        """The function that performs one step at one state in plain arithmetic."""
        return _sparsemax_kernel

    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy for validated parameters."""
        return project_simplex(theta)

    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters for a validated policy."""
        return pi.copy()

    def advance(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        """Return the parameters after one step."""
        support = project_simplex(theta) > 0.0
        mean = np.sum(q * support, axis=-1, keepdims=True) / support.sum(axis=-1, keepdims=True)
        return np.asarray(theta + weight * np.where(support, q - mean, 0.0))


def _sparsemax_kernel(theta: Any, pi: Any, q: Any, best: int, weight: Any, n_actions: int) -> None:
    support = [a for a in range(n_actions) if pi[a] > 0]
    mean = sum(q[a] for a in support) / len(support)
    for a in support:
        theta[a] += weight * (q[a] - mean)


SPARSEMAX = Sparsemax()
"""The only instance of `Sparsemax`, which is not a registered update."""


# The best that linear scores can do


def best_linear(task: Task, escort: bool = True, restarts: int = 20, seed: int = 0) -> float:
    """Return the best performance of a linear policy that a search finds on a one-step task.

    The policies are escort policies with p = 2, or softmax policies if `escort` is false. The
    search is BFGS from random initial parameters, so the result is a lower bound on the maximum.
    The uniform policy has performance 0 and the optimum has performance 1.
    """
    from scipy.optimize import minimize  # slow to import

    model, mdp = linear(task.features, task.mdp.n_actions), task.mdp
    chances = mdp.initial[:, np.newaxis] * mdp.rewards

    def loss(theta: Any) -> Any:
        f = model.apply(theta)
        powers = f**2 if escort else anp.exp(f - anp.max(f, axis=1, keepdims=True))
        return -anp.sum(chances * powers / anp.sum(powers, axis=1, keepdims=True))

    rng = np.random.default_rng(seed)
    starts = rng.normal(size=(restarts, model.initial.size))
    losses = [minimize(value_and_grad(loss), start, jac=True).fun for start in starts]
    uniform = mdp.performance(np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions))
    optimum = float(mdp.initial @ mdp.optimal().v)
    return (-float(min(losses)) - uniform) / (optimum - uniform)


# Sparsemax and the direct parametrization


def sparsemax(z: Any) -> Any:
    """Return the projection of scores onto the simplex, written with autograd."""
    z = z - anp.max(z)  # does not change the result, and keeps the digits of large scores
    descending = anp.sort(z)[::-1]
    thresholds = (anp.cumsum(descending) - 1.0) / np.arange(1, len(z) + 1)
    k = sum(1 for x, threshold in zip(descending, thresholds, strict=True) if x > threshold)
    return anp.maximum(z - thresholds[k - 1], 0.0)


def sparsemax_jacobian(z: ArrayLike) -> Floats:
    r"""Return the Jacobian :math:`\mathrm{diag}(1_S) - 1_S 1_S^\top / |S|` of sparsemax at z."""
    support = (project_simplex(z) > 0.0).astype(np.float64)
    return np.asarray(np.diag(support) - np.outer(support, support) / support.sum())


Rationals = list[Any]
"""A list of fractions, or of the faster `fmpq` numbers of python-flint."""


def exact_projection(z: Rationals) -> Rationals:
    """Return the projection of rational scores onto the simplex, by a `di` step of weight zero."""
    point = list(z)
    kernels.di(point, point, [0] * len(z), 0, 0, len(z))
    return point


def exact_step(update: str | Update, z: Rationals, q: Rationals, weight: Any) -> Rationals:
    """Return the rational scores after one step of the update's kernel.

    The update must be `di` or sparsemax, because its policy must be the projection of its scores.
    """
    chosen = as_update(update)
    if chosen.kernel is None:
        raise ValueError(f"update: {chosen.name!r} has no kernel, and an exact step needs one.")
    moved = list(z)
    chosen.kernel(moved, exact_projection(z), q, q.index(max(q)), weight, len(z))
    return moved


def reversal_paths(n: ArrayLike, step_size: float, total: int = 60) -> dict[str, Floats]:
    """Return the probability of action 1 over time if the better action changes after n steps.

    The keys are the names of the updates sparsemax, `di` and `mce`. Each array has the shape of n
    with a leading axis of total + 1 times.
    """
    ns = np.asarray(n)[..., np.newaxis]
    q = np.stack([np.where(t < ns, [1.0, 0.0], [0.0, 1.0]) for t in range(total)])
    paths = {}
    for update in (SPARSEMAX, as_update("di"), as_update("mce")):
        start = update.parameters(np.full(q.shape[1:], 0.5))
        paths[update.name] = update.policy(follow(update, q, step_size, total, start))[..., 0]
    return paths
