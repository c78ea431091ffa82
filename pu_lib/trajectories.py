r"""The exact process :math:`\theta_{t+1} = U(\theta_t, d_t, q_t, \eta_t)` (paper, equation 2).

Nothing is sampled: at every step the values :math:`q_t` of the current policy come from a linear
solve, and each state is updated with weight :math:`w_t(s) = \eta_t\,d_t(s)`. The paper allows any
:math:`d_t \ge 0`; three choices have names here.

- ``"occupancy"``: the discounted expected number of visits, with which `pg-sm` and `pg-es` follow
  the exact gradient of the objective;
- ``"uniform"``: :math:`d_t(s) = 1` at every state;
- ``mixture(share)``: `share` times the first plus 1 - `share` times the second, the form that
  off-policy updates give it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pu_lib.mdp import Evaluation, FiniteMDP
from pu_lib.updates import Update, as_update

__all__ = ["Trajectory", "follow", "mixture", "run"]

Floats = NDArray[np.float64]
Weighting = Callable[[int, Evaluation], ArrayLike]


@dataclass(frozen=True)
class Trajectory:
    """What happened along a run of T updates.

    Attributes
    ----------
    theta, policies, q : ndarray, shape (T + 1, n_states, n_actions)
        Parameters, policies and their state-action values, before the first update and after each.
    v : ndarray, shape (T + 1, n_states)
        State values.
    performance : ndarray, shape (T + 1,)
        Expected discounted return.
    weights : ndarray, shape (T, n_states)
        The weight of each update; zero at terminal states.
    """

    theta: Floats
    policies: Floats
    q: Floats
    v: Floats
    performance: Floats
    weights: Floats


def mixture(share: float) -> Weighting:
    """Return the weighting `share` x occupancy + (1 - `share`) x uniform.

    Raises
    ------
    ValueError
        If `share` is outside [0, 1].
    """
    if not 0.0 <= share <= 1.0:
        raise ValueError(f"share: expected a number in [0, 1], got {share}.")
    return lambda _, evaluation: share * evaluation.occupancy + (1.0 - share)


def run(
    mdp: FiniteMDP,
    update: Update,
    n_steps: int,
    eta: float | Callable[[int], float] | ArrayLike = 1.0,
    weighting: str | Weighting | ArrayLike = "occupancy",
    theta0: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Trajectory:
    r"""Run the exact process.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    update : Update
        One of `pu_lib.updates.UPDATES`, or `make_update` with options.
    n_steps : int
        Number of updates T.
    eta : float, callable or array_like, shape (T,)
        :math:`\eta_t` for t = 0, ..., T - 1: constant, a function of t, or listed.
    weighting : {"occupancy", "uniform"}, callable or array_like, shape (n_states,)
        :math:`d_t`: by name, constant, or a function of t and of the current `Evaluation`.
    theta0 : array_like, shape (n_states, n_actions), optional
        Initial parameters; the uniform policy if missing.
    rng : numpy.random.Generator, optional
        For updates that draw among tied actions.

    Raises
    ------
    ValueError
        If an argument has a wrong shape or a value out of range.
    """
    if n_steps < 0:
        raise ValueError(f"n_steps: expected a number of updates >= 0, got {n_steps}.")
    rates = _rates(eta, n_steps)
    weigh = _weighting(weighting, mdp.n_states)
    theta = _start(theta0, update, mdp)
    recorded: list[tuple[Floats, Floats, Evaluation]] = []
    weights = np.zeros((n_steps, mdp.n_states))
    for t in range(n_steps + 1):
        policy = update.policy(theta)
        evaluation = mdp.evaluate(policy)
        recorded.append((theta, policy, evaluation))
        if t < n_steps:
            weights[t] = rates[t] * np.where(mdp.terminal, 0.0, weigh(t, evaluation))
            theta = update.step(theta, evaluation.q, weights[t], rng)
    return Trajectory(
        theta=np.stack([theta for theta, _, _ in recorded]),
        policies=np.stack([policy for _, policy, _ in recorded]),
        q=np.stack([evaluation.q for _, _, evaluation in recorded]),
        v=np.stack([evaluation.v for _, _, evaluation in recorded]),
        performance=np.array([evaluation.performance for _, _, evaluation in recorded]),
        weights=weights,
    )


def _rates(eta: float | Callable[[int], float] | ArrayLike, n_steps: int) -> Floats:
    if callable(eta):
        return np.array([float(eta(t)) for t in range(n_steps)])
    rates = np.asarray(eta, dtype=np.float64)
    if rates.shape not in ((), (n_steps,)):
        raise ValueError(f"eta: expected one number or {n_steps}, got shape {rates.shape}.")
    return np.asarray(np.broadcast_to(rates, n_steps))


def _weighting(weighting: str | Weighting | ArrayLike, n_states: int) -> Weighting:
    if isinstance(weighting, str):
        named = {"occupancy": mixture(1.0), "uniform": mixture(0.0)}
        if weighting not in named:
            raise ValueError(f"weighting: expected one of {list(named)}, got {weighting!r}.")
        return named[weighting]
    if callable(weighting):
        return weighting
    constant = np.asarray(weighting, dtype=np.float64)
    if constant.shape != (n_states,):
        raise ValueError(f"weighting: expected {n_states} numbers, got shape {constant.shape}.")
    return lambda _, __: constant


def _start(theta0: ArrayLike | None, update: Update, mdp: FiniteMDP) -> Floats:
    if theta0 is None:
        return update.initial(mdp.n_states, mdp.n_actions)
    shape = (mdp.n_states, mdp.n_actions)
    try:
        theta = np.array(theta0, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"theta0: expected numbers of shape {shape}, got {theta0!r}.") from None
    if theta.shape != shape:
        raise ValueError(f"theta0: expected shape {shape}, got {theta.shape}.")
    return theta


def follow(
    update: str | Update,
    q: ArrayLike,
    weights: float | ArrayLike,
    n_steps: int | None = None,
    theta0: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
) -> Floats:
    r"""Follow an update with fixed values: the parameters of one state, or of a batch of states.

    Parameters
    ----------
    update : str or Update
        The update, or its name.
    q : array_like, shape (..., n_actions) or (n_steps, ..., n_actions)
        Values, the same at every step; or, with one axis more than `theta0`, those of each step.
    weights : float or array_like, shape (n_steps,)
        :math:`w_t`, constant or listed.
    n_steps : int, optional
        Number of updates; may be left out where weights are listed.
    theta0 : array_like, shape (..., n_actions), optional
        Initial parameters; one state with the uniform policy if missing.
    rng : numpy.random.Generator, optional
        For updates that draw among tied actions.

    Returns
    -------
    ndarray, shape (n_steps + 1, ..., n_actions)
        Parameters before the first update and after each.

    Raises
    ------
    ValueError
        If an argument has a wrong shape or a value out of range.
    """
    chosen = as_update(update)
    steps = np.size(weights) if n_steps is None else n_steps
    rates = _rates(weights, steps)
    values = np.asarray(q, dtype=np.float64)
    theta = chosen.initial(1, values.shape[-1])[0] if theta0 is None else np.asarray(theta0)
    varying = values.ndim > theta.ndim and values.shape[0] == steps
    path = [theta]
    for t, rate in enumerate(rates):
        path.append(chosen.step(path[-1], values[t] if varying else values, rate, rng))
    return np.stack([np.broadcast_to(point, path[-1].shape) for point in path])
