r"""The direct parametrization beyond tables: two fits and an error bound.

A model has scores :math:`f(s,\cdot)`, and the policy is their projection. A step of `di` is
:math:`\mathrm{Proj}_\Delta(\pi+\eta q)`. A model can be fitted in two ways.

- *Before the projection:* fit the scores to :math:`\pi+\eta q`. This is policy mirror descent with
  a general parametrization (Alfano, Yuan and Rebeschini, 2023) for the Euclidean mirror map.
- *After the projection:* fit the scores to :math:`\mathrm{Proj}_\Delta(\pi+\eta q)`.

**Theorem.** *Let* :math:`\pi_{t+1}=\mathrm{Proj}_\Delta(f_t)` *at every state, for any scores, and*

.. math:: e_t = \tfrac1{\eta_t}\big(f_t-\pi_t-\eta_tq_t\big),\qquad
   \varepsilon_t=\max_s\big(\max_ae_t(s,a)-\min_ae_t(s,a)\big).

*Then* :math:`\|v_\star-v_{t+1}\|_\infty\le\gamma\|v_\star-v_t\|_\infty+\frac1{\eta_t}
+\frac{\varepsilon_t}{1-\gamma}`.

*Proof.* By definition :math:`f_t=\pi_t+\eta_t(q_t+e_t)`, so for any model the step is the step of
`di` with the values :math:`\hat q=q_t+e_t`. The projection maximises
:math:`\eta_t\langle\hat q,p\rangle-\frac12\|p-\pi_t\|^2`. The greedy policy p of :math:`q_t` and
the policy :math:`p=\pi_t` therefore satisfy, respectively,

.. math:: \langle\hat q,p-\pi_{t+1}\rangle\le\tfrac1{2\eta_t}\|p-\pi_t\|^2\le\tfrac1{\eta_t},
   \qquad\langle\hat q,\pi_{t+1}-\pi_t\rangle\ge0.

The inner products of two distributions with :math:`e_t` differ by at most :math:`\varepsilon_t`.
Let :math:`T_{t+1}` be the Bellman operator of :math:`\pi_{t+1}`. The second inequality gives
:math:`\langle q_t,\pi_{t+1}\rangle\ge v_t-\varepsilon_t`, and repeated application of
:math:`T_{t+1}` gives :math:`v_{t+1}\ge T_{t+1}v_t-\frac{\gamma\varepsilon_t}{1-\gamma}`. The first
inequality gives :math:`T_{t+1}v_t\ge Tv_t-\frac1{\eta_t}-\varepsilon_t`, and the Bellman optimality
operator T is a contraction with fixed point :math:`v_\star`. The sum of the two bounds is the
claim. ∎

If the weights grow, the middle term vanishes, and the *error floor*
:math:`\varepsilon/(1-\gamma)^2` remains. If the model is fitted before the projection, :math:`e_t`
is the model's error in :math:`\pi_t/\eta_t+q_t`, which is :math:`O(1/\eta_t)` if the model
represents the values. If the model is fitted after the projection, :math:`e_t` contains the
difference between :math:`\pi_t+\eta_tq_t` and its projection. Divided by :math:`\eta_t`, this
difference has the size of the values, so the floor is trivial.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats
from pu_lib.chapters.function_approximation.quantities import Task
from pu_lib.mdp import Evaluation
from pu_lib.updates import project_simplex

Place = Literal["before", "after"]


@dataclass(frozen=True)
class FittedRun:
    r"""A run of the fitted direct parametrization.

    `performance` is 0 for the uniform policy and 1 for the optimum. `gaps` are the largest
    distances of the values from the optimal values. `bounds` are the theorem's bounds on the gaps;
    the first bound is the first gap. These three arrays have shape (T + 1,). `errors` has shape
    (T,) and contains the error :math:`\varepsilon_t` of each fit in the unit of the values.
    """

    performance: Floats
    gaps: Floats
    errors: Floats
    bounds: Floats


def next_bound(gap: float, eta: float, error: float, discount: float) -> float:
    r"""Return the bound :math:`\gamma g+1/\eta+\varepsilon/(1-\gamma)` on the next gap.

    Here :math:`\eta` is the step size.
    """
    return discount * gap + 1.0 / eta + error / (1.0 - discount)


def geometric_weights(first: float, growth: float, n_steps: int) -> Floats:
    """Return the weights ``first * growth**t`` for t = 0, ..., n_steps - 1."""
    return np.asarray(first * growth ** np.arange(n_steps, dtype=np.float64))


def fitted_run(
    task: Task,
    step_sizes: Iterable[float],
    place: Place = "before",
    features: Floats | None = None,
    reversed_steps: int = 0,
) -> FittedRun:
    """Run the direct parametrization with a linear model that is fitted by least squares.

    The first `reversed_steps` steps use -q, and the bound equals the gap until these steps end.
    `features` replace the features of the task.
    """
    if place not in get_args(Place):
        raise ValueError(f"place: expected one of {get_args(Place)}, got {place!r}.")
    mdp, live = task.mdp, ~task.mdp.terminal
    fit = _fit_matrix(task, task.features if features is None else features, live)
    pi = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    evaluation = mdp.evaluate(pi)
    gap = _gap(task, evaluation)
    run: list[tuple[float, float, float, float]] = [(0.0, gap, 0.0, gap)]
    for t, step_size in enumerate(step_sizes):
        wanted = pi + step_size * (-evaluation.q if t < reversed_steps else evaluation.q)
        scores = fit @ (wanted if place == "before" else project_simplex(wanted))
        error = _largest_range((scores - wanted)[live] / step_size)
        pi = project_simplex(scores)
        evaluation = mdp.evaluate(pi)
        gap = _gap(task, evaluation)
        bound = next_bound(run[-1][3], step_size, error, mdp.discount)
        performance = mdp._normalised(evaluation.performance)
        run.append((performance, gap, error, gap if t < reversed_steps else bound))
    performances, gaps, errors, bounds = np.array(run).T
    return FittedRun(performances, gaps, errors[1:], bounds)


def _gap(task: Task, evaluation: Evaluation) -> float:
    """Return the largest distance of a policy's values from the optimal values."""
    return float(np.max(task.mdp.optimal().v - evaluation.v))


def _fit_matrix(task: Task, features: Floats, live: NDArray[np.bool_]) -> Floats:
    """Return the matrix that maps the targets of all states to the fitted scores."""
    inputs = np.column_stack([np.ones(task.mdp.n_states), features])
    solved = np.zeros((inputs.shape[1], task.mdp.n_states))
    solved[:, live] = np.linalg.pinv(inputs[live])
    return np.asarray(inputs @ solved)


def _largest_range(errors: Floats) -> float:
    """Return the largest difference between the errors of two actions at a state."""
    return float(np.max(errors.max(axis=1) - errors.min(axis=1)))


def greedy_fit(task: Task) -> float:
    """Return the performance of the projected least-squares fit of an optimal policy.

    It is the only possible limit of the fit after the projection as the weights grow, because the
    target is then an optimal policy.
    """
    fit = _fit_matrix(task, task.features, ~task.mdp.terminal)
    return task.mdp.normalised_performance(project_simplex(fit @ task.mdp.optimal().policy))
