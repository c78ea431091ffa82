r"""Exact runs of the process :math:`\theta_{t+1} = U(\theta_t, d_t, q_t, \eta_t)` (paper, eq. 2).

Nothing is sampled. At every step the values :math:`q_t` of the current policy solve a linear
system, and each state is updated with weight :math:`w_t(s) = \eta_t\,d_t(s)`. The paper allows any
:math:`d_t \ge 0`; three choices have names:

- ``"occupancy"``: the discounted expected number of visits, for which `pg-sm` and `pg-es` follow
  the exact gradient of the objective;
- ``"uniform"``: :math:`d_t(s) = 1` at every state;
- ``mixture(share)``: `share` times the occupancy plus 1 - `share` times the uniform weighting, as
  in off-policy updates.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.arrays import (
    Seed,
    as_float,
    as_float_array,
    as_generator,
    as_int,
    underflow_to_zero,
)
from pu_lib.domains import ProcessLike, as_process
from pu_lib.extras import naming_the_extra
from pu_lib.mdp import Evaluation, FiniteMDP
from pu_lib.parametrizations import as_rows, as_weights
from pu_lib.progress import steps
from pu_lib.records import Record, axes_of, described, line_of
from pu_lib.settings import find_name
from pu_lib.updates import Update, as_update, label_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Trajectory", "follow", "mixture", "run"]

Floats = NDArray[np.float64]
_MAX_BYTES = 4_800_000_000  # of all arrays of a record
Weighting = Callable[[int, Evaluation], ArrayLike]
Evaluator = Callable[[int, Floats, bool], tuple[Floats, Floats, float, ArrayLike]]
_WEIGHTINGS = ("occupancy", "uniform")


@dataclass(frozen=True, eq=False)
class Trajectory(Record):
    r"""The record of a run of T steps.

    Attributes
    ----------
    theta, policies, q : ndarray, shape (T + 1, n_states, n_actions)
        Parameters, policies and state-action values before the first step and after each step.
    v : ndarray, shape (T + 1, n_states)
        State values.
    performance : ndarray, shape (T + 1,)
        Expected discounted return from the initial distribution.
    weights : ndarray, shape (T, n_states)
        The weight :math:`\eta_t\,d_t(s)` of each step, which is 0 at terminal states.
    label : str
        The short name of the update.
    about : mapping
        What made the run: the update, its source if it is not of the library, step sizes,
        weighting and seed, the digest of the process, the names of its states and actions if it has
        any, and versions.

    Examples
    --------
    >>> path = run("chain n_states=4", "ce", 2)
    >>> path.policies.shape, path.weights.shape
    ((3, 4, 2), (2, 4))
    >>> bool((path.performance[1:] > path.performance[:-1]).all())
    True
    """

    theta: Floats
    policies: Floats
    q: Floats
    v: Floats
    performance: Floats
    weights: Floats
    label: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        steps, n_states, n_actions = len(self.weights), *self.policies.shape[1:]
        return (
            f"{self.label or 'Trajectory'}, {steps} updates on {n_states} states and {n_actions} "
            f"actions: performance {self.performance[0]:.4g} to {self.performance[-1]:.4g}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table with one row for each time, state and action.

        Returns
        -------
        pandas.DataFrame
            A table with the columns ``t``, ``state``, ``action``, ``theta``, ``policy``, ``q``,
            ``v``, ``performance`` and ``weight``. The weight is the weight of the step at time t,
            or NaN at the last time. If states or actions have names, the columns ``state_name`` and
            ``action_name`` have them.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        with naming_the_extra():
            import pandas as pd

        times, n_states, n_actions = self.policies.shape
        weights = np.vstack([self.weights, np.full((1, n_states), np.nan)])
        grid = np.indices((times, n_states, n_actions))
        names = {
            f"{axis}_name": np.array(self.about[f"{axis}s"], dtype=object)[numbers.ravel()]
            for axis, numbers in zip(_AXES, grid, strict=True)
            if f"{axis}s" in self.about
        }
        return pd.DataFrame(
            {
                **{name: axis.ravel() for name, axis in zip(_AXES, grid, strict=True)},
                **names,
                "theta": self.theta.ravel(),
                "policy": self.policies.ravel(),
                "q": self.q.ravel(),
                "v": np.repeat(self.v, n_actions),
                "performance": np.repeat(self.performance, n_states * n_actions),
                "weight": np.repeat(weights, n_actions),
            }
        )

    def plot(self, ax: Axes | None = None, **style: Any) -> Axes:
        """Draw the performance against the number of steps and return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes. The default is axes in a new figure.
        **style
            Further arguments of `matplotlib.axes.Axes.plot`, such as ``color`` or ``label``.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the curve.

        Raises
        ------
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        ax = axes_of(ax)
        updates = self.about.get("updates", ())
        style = {"label": self.label, **(line_of(updates[0]) if updates else {}), **style}
        ax.plot(np.arange(len(self.performance)), self.performance, **style)
        ax.set(xlabel="updates", ylabel="performance")
        ax.legend()
        return ax

    def _arrays(self) -> dict[str, Any]:
        return {"label": self.label} | {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def _of(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Trajectory:
        return cls(
            **{name: arrays[name] for name in _ARRAYS}, label=str(arrays["label"]), about=about
        )


_AXES = ("t", "state", "action")
_ARRAYS = ("theta", "policies", "q", "v", "performance", "weights")


def mixture(share: float) -> Weighting:
    """Return the weighting `share` x occupancy + (1 - `share`) x uniform.

    Raises a `ValueError` if `share` is outside [0, 1].
    """
    share = as_float("share", share)
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share: expected a number in [0, 1], got {share}.")
    return lambda _, evaluation: share * evaluation.occupancy + (1.0 - share)


@underflow_to_zero
def run(
    process: ProcessLike,
    update: str | Update,
    n_steps: int,
    step_size: float | Callable[[int], float] | ArrayLike = 1.0,
    weighting: str | Weighting | ArrayLike = "occupancy",
    theta0: ArrayLike | None = None,
    seed: Seed = None,
    *,
    policy0: ArrayLike | None = None,
) -> Trajectory:
    r"""Run an update on a process with exact values and return the trajectory.

    Parameters
    ----------
    process : FiniteMDP, str or gymnasium.Env
        The process, or anything that `pu_lib.domains.as_process` converts to one.
    update : str or Update
        A name in `UPDATES`, or an update such as the result of `make_update`.
    n_steps : int
        The number of steps T.
    step_size : float, callable or array_like, shape (T,)
        The step size :math:`\eta_t \ge 0` for t = 0, ..., T - 1: a constant, a function of t, or an
        array.
    weighting : {"occupancy", "uniform"}, callable or array_like, shape (n_states,)
        :math:`d_t \ge 0`: a name, a constant array, or a function of t and of the current
        `Evaluation`.
    theta0 : array_like, shape (n_states, n_actions), optional
        Initial parameters. The default is the parameters of the uniform policy.
    seed : int or numpy.random.Generator, optional
        Seed of random choices, for updates that draw among tied actions.
    policy0 : array_like, shape (n_states, n_actions), optional
        Initial policy, in place of `theta0`. Softmax policies are positive.

    Returns
    -------
    Trajectory
        The parameters, policies, values and weights at every step.

    Raises
    ------
    ValueError
        If an argument has an invalid shape or a value out of range, both `theta0` and `policy0` are
        given, the update keeps state in its attributes (see `Update`), or the arrays of
        the trajectory would need more than 4.8 GB.

    Warns
    -----
    UserWarning
        If `theta0` looks like a policy, but is not one of this update.

    Examples
    --------
    >>> path = run("chain n_states=4", "di", 3, step_size=0.5, weighting="uniform")
    >>> print(path)
    DI, 3 updates on 4 states and 2 actions: performance 0.8047 to 0.8213
    >>> path.policies[:, 0, 1].round(3).tolist()
    [0.5, 0.51, 0.523, 0.537]
    """
    mdp, update, rng = as_process(process), as_update(update), as_generator(seed)
    n_steps = as_int("n_steps", n_steps, low=0)
    shape = n_steps + 1, mdp.n_states, mdp.n_actions
    size = mdp.n_states * mdp.n_actions
    _require_memory("n_steps", n_steps, size, 3 * size + 2 * mdp.n_states + 1)
    step_sizes = _step_sizes("step_size", step_size, n_steps)
    evaluate = _evaluator(weighting, mdp)
    theta = _initial_theta(update, theta0, policy0, shape[1:])
    if theta is None:
        theta = update.initial(*shape[1:])
    update._require_repeatable(theta)
    memory = update._memory(mdp.n_states, n_actions=mdp.n_actions)
    thetas, policies, qs = np.empty(shape), np.empty(shape), np.empty(shape)
    vs, performances, weights = np.empty(shape[:2]), np.empty(n_steps + 1), np.zeros(shape[:2])
    with np.errstate(over="ignore"):  # infinite weights, policies and parameters raise below
        for t in steps(n_steps + 1):
            policy = _policy(update, mdp, theta)
            q, v, performance, weight = evaluate(t, policy, t == n_steps)
            thetas[t], policies[t], qs[t], vs[t], performances[t] = theta, policy, q, v, performance
            if t < n_steps:
                weights[t] = step_sizes[t] * np.where(mdp.terminal, 0.0, weight)
                theta, memory = _step(update, theta, q, weights[t], rng, memory)
    varying = callable(step_size) or np.ndim(step_size) > 0
    return Trajectory(
        theta=thetas,
        policies=policies,
        q=qs,
        v=vs,
        performance=performances,
        weights=weights[:-1],
        label=label_of(update),
        about=described(
            [update],
            mdp.digest,
            **{
                name: list(names) for name in ("states", "actions") if (names := getattr(mdp, name))
            },
            step_size=step_sizes.tolist() if varying else float(step_size),  # type: ignore[arg-type]
            weighting=weighting if isinstance(weighting, str) else type(weighting).__name__,
            seed=int(seed) if isinstance(seed, (int, np.integer)) else seed and "a generator",
        ),
    )


def _require_memory(name: str, steps: int, size: int, numbers: int) -> None:
    """Raise a `ValueError` if a record of the given numbers at each time is too large."""
    if (steps + 1) * numbers * 8 > _MAX_BYTES:
        raise ValueError(
            f"{name}: {steps} steps of {size} parameters need {(steps + 1) * numbers * 8e-9:.3g} "
            f"GB; at most {_MAX_BYTES * 1e-9:g} GB are recorded."
        )


# Within a run, shapes are known to be right, so that values are checked by two cheap tests. Only if
# one fails, the public method is called, which checks in full and raises with a message.


def _policy(update: Update, mdp: FiniteMDP, theta: Floats) -> Floats:
    """Return the policy of parameters, or raise a `ValueError` if the result is not a policy."""
    policy = update._unchecked_policy(theta)
    return policy if mdp._is_policy(policy) else mdp._checked_policy(update.policy(theta))


def _step(
    update: Update,
    theta: Floats,
    q: Floats,
    weights: Floats,
    rng: np.random.Generator,
    memory: Floats | None,
) -> tuple[Floats, Floats | None]:
    """Return parameters and memory after one step; raise a `ValueError` if a weight is invalid."""
    if not (np.minimum.reduce(weights) >= 0.0 and weights.dot(weights) < np.inf):
        as_weights("weight", weights, theta, q)
    with np.errstate(over="ignore", invalid="ignore"):
        return update._move(theta, q, weights, rng, memory)


def _step_sizes(
    name: str, values: float | Callable[[int], float] | ArrayLike, n_steps: int
) -> Floats:
    """Return an argument as an array of non-negative numbers of shape (n_steps,)."""
    if callable(values):
        return np.array([as_float(name, values(t), low=0.0) for t in range(n_steps)])
    array = as_float_array(name, values, low=0.0)
    if array.shape not in ((), (n_steps,)):
        raise ValueError(f"{name}: expected one number or {n_steps}, got shape {array.shape}.")
    return np.asarray(np.broadcast_to(array, n_steps))


def _evaluator(weighting: str | Weighting | ArrayLike, mdp: FiniteMDP) -> Evaluator:
    """Return a function that returns q, v, the performance and d_t for a time and a policy."""
    if isinstance(weighting, str):
        weighting = find_name("weighting", weighting, _WEIGHTINGS)
    if callable(weighting):
        return lambda t, policy, last: _evaluate_with(mdp._evaluate(policy), weighting, t, last)
    constant = None
    if not isinstance(weighting, str):
        constant = as_float_array("weighting", weighting, shape=(mdp.n_states,), low=0.0)
    elif weighting == "uniform":
        constant = np.ones(mdp.n_states)

    def evaluate(t: int, policy: Floats, last: bool) -> tuple[Floats, Floats, float, ArrayLike]:
        # Only a callable weighting needs an `Evaluation`; this is the part of it that a run uses.
        v, visits, _ = mdp._solve(*mdp._under(policy))
        weight = visits() if constant is None and not last else constant
        return mdp._backup(v), v, float(mdp.initial.dot(v)), 0.0 if weight is None else weight

    return evaluate


def _evaluate_with(
    evaluation: Evaluation, weighting: Weighting, t: int, last: bool
) -> tuple[Floats, Floats, float, ArrayLike]:
    """Return q, v, the performance and the validated weights of a callable weighting."""
    for array in (evaluation.q, evaluation.v):
        array.setflags(write=False)  # a weighting must not change the values of the step
    if last:
        return evaluation.q, evaluation.v, evaluation.performance, 0.0
    weight = as_float_array("weighting", weighting(t, evaluation), low=0.0)
    if weight.shape not in ((), (1,), evaluation.v.shape):
        raise ValueError(
            f"weighting: expected one number or {len(evaluation.v)}, got shape {weight.shape}."
        )
    return evaluation.q, evaluation.v, evaluation.performance, weight


def _initial_theta(
    update: Update,
    theta0: ArrayLike | None,
    policy0: ArrayLike | None,
    shape: tuple[int, ...] | None = None,
) -> Floats | None:
    """Validate and return the initial parameters, or None if neither argument is given."""
    if policy0 is not None:
        if theta0 is not None:
            raise ValueError("policy0: expected either theta0 or policy0, got both.")
        return update.parameters(as_float_array("policy0", policy0, axes=1, shape=shape))
    if theta0 is None:
        return None
    theta = as_float_array("theta0", theta0, axes=1, shape=shape, copy=True)
    policy = update.policy(theta)  # raises if these are not parameters of this update
    rows = (theta >= 0.0).all() and np.abs(theta.sum(axis=-1) - 1.0).max(initial=0.0) <= 1e-9
    if rows and np.abs(policy - theta).max(initial=0.0) > 1e-9:
        warnings.warn(
            f"theta0: every row is a distribution, but theta0 has parameters of {update.name}, "
            "whose policy is another one. To start from a policy, use policy0.",
            stacklevel=4,
        )
    return theta


@underflow_to_zero
def follow(
    update: str | Update,
    q: ArrayLike,
    weight: float | ArrayLike,
    n_steps: int | None = None,
    theta0: ArrayLike | None = None,
    seed: Seed = None,
    *,
    policy0: ArrayLike | None = None,
) -> Floats:
    r"""Run an update with given values at one state or at a batch of states.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    q : array_like, shape (..., n_actions) or (n_steps, ..., n_actions)
        State-action values. An array with one axis more than `theta0` or `policy0` has the values
        of each step; any other array is used at every step.
    weight : float or array_like, shape (n_steps,)
        The weight :math:`w_t \ge 0`, as a constant or as an array with an entry for each step.
    n_steps : int, optional
        The number of steps. The default is the length of `weight`.
    theta0 : array_like, shape (..., n_actions), optional
        Initial parameters. The default is the uniform policy at one state.
    seed : int or numpy.random.Generator, optional
        Seed of random choices, for updates that draw among tied actions.
    policy0 : array_like, shape (..., n_actions), optional
        Initial policy, in place of `theta0`. Softmax policies are positive.

    Returns
    -------
    ndarray, shape (n_steps + 1, ..., n_actions)
        The parameters before the first step and after each step.

    Raises
    ------
    ValueError
        If an argument has an invalid shape or a value out of range, both `theta0` and `policy0` are
        given, the update keeps state in its attributes (see `Update`), or the result
        would need more than 4.8 GB.

    Warns
    -----
    UserWarning
        If `theta0` looks like a policy, but is not one of this update.

    Examples
    --------
    >>> follow("di", [1.0, 0.0], 0.1, 2).round(3).tolist()
    [[0.5, 0.5], [0.55, 0.45], [0.6, 0.4]]
    """
    chosen, rng = as_update(update), as_generator(seed)
    n = as_int("n_steps", np.size(weight) if n_steps is None else n_steps, low=0)
    values = as_float_array("q", q, axes=1)
    theta = _initial_theta(chosen, theta0, policy0)
    if theta is None:
        theta = chosen.initial(1, values.shape[-1])[0]
    varying = values.ndim > theta.ndim
    if varying and len(values) != n:
        raise ValueError(
            f"q: expected the values of {n} steps, got shape {values.shape}; for a batch of "
            "states give theta0 as many axes."
        )
    shape = _step_shape(theta, values[0] if varying else values) if n else theta.shape
    _require_memory("n_steps", n, math.prod(shape), math.prod(shape))
    weights = _step_sizes("weight", weight, n)
    chosen._require_repeatable(np.broadcast_to(theta, shape))
    memory = chosen._memory(*shape[:-1], n_actions=shape[-1])
    path = np.empty((n + 1, *shape))
    path[0] = theta
    with np.errstate(over="ignore", invalid="ignore"):  # a step raises if it is not finite
        for t, w in zip(steps(n), weights, strict=True):
            # The first step checks shapes and start. Later steps have the same shapes and values
            # that have been checked, so that they need no checks of their own.
            if t == 1 and not varying:
                values = np.broadcast_to(values, shape)  # once rather than at every step
            now = values[t] if varying else values
            if not t:
                theta, now = chosen._checked_theta(theta), as_rows("q", now)
                w = as_weights("weight", w, theta, now)
            theta, memory = chosen._move(theta, now, w, rng, memory)
            path[t + 1] = theta
    return chosen._checked_theta(path)


def _step_shape(theta: Floats, q: Floats) -> tuple[int, ...]:
    """Return the shape of the parameters after a step; a step raises if shapes do not match."""
    try:
        return np.broadcast_shapes(theta.shape, q.shape)
    except ValueError:
        return theta.shape
