"""The base class of all policy updates, `Update`.

`pu_lib.updates` has the formulas and the registry, and exports these names too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import (
    Floats,
    Seed,
    as_generator,
    as_int,
    first_index,
    require_distributions,
    underflow_to_zero,
)
from pu_lib.kernels import Kernel
from pu_lib.parametrizations import as_rows, as_weights

__all__ = ["Parametrization", "PlotStyle", "Update"]

Parametrization = Literal["softmax", "escort", "direct"]
_MOST_PARAMETERS = 200_000_000  # 1.6 GB as float64


def _copy_array(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


class PlotStyle(NamedTuple):
    """The style of an update in figures, in matplotlib's notation.

    Attributes
    ----------
    colour : str
        A colour in the form ``#rrggbb``.
    dash : str or tuple
        A line style: a short name such as ``"-"``, or a tuple (offset, lengths of dashes and gaps).
    marker : str
        The character of a marker.
    """

    colour: str
    dash: str | tuple[float, tuple[float, ...]]
    marker: str


_HOOKS = {"to_policy", "to_parameters", "advance"}


class Update(ABC):
    r"""A policy update: a parametrization and a step that changes the parameters.

    A subclass defines three hooks, `to_policy`, `to_parameters` and `advance`. The hooks receive
    copies of float arrays that have been checked. Users call `policy`, `parameters` and `step`,
    which check their arguments and call the hooks.

    An update has no memory: the same parameters, values and weight, and the same state of the
    random generator, give the same result. Compiled loops and the comparison of a kernel with
    `advance` rely on this.

    Attributes
    ----------
    name : str
        The name in `UPDATES`, as in ``run(mdp, "pg-sm")``.
    title : str
        The full name, such as "softmax policy gradient". The default is `name`.
    label : str
        The short name in figures, such as "PG-SM". The default is `name` in capitals.
    style : PlotStyle, optional
        The style in figures. The default is the next of four spare styles.
    parametrization : {"softmax", "escort", "direct"} or None
        The parametrization that compiled loops use; required if the update has a kernel.
    in_paper : bool
        Whether the update is one of the paper's five.

    Examples
    --------
    An update that takes one Euler step of the replicator equation :math:`\dot\pi_a =
    \pi_a\,\mathrm{adv}(a)`:

    >>> class Replicator(Update):
    ...     name = "replicator"
    ...
    ...     def to_policy(self, theta):
    ...         return theta
    ...
    ...     def to_parameters(self, pi):
    ...         return pi
    ...
    ...     def advance(self, theta, q, weight, rng):
    ...         advantages = q - (theta * q).sum(axis=-1, keepdims=True)
    ...         return theta * (1.0 + weight * advantages)
    >>> Replicator().step([0.5, 0.5], [1.0, 0.0], 0.4).round(3).tolist()
    [0.6, 0.4]
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    label: ClassVar[str] = ""
    style: ClassVar[PlotStyle | None] = None
    parametrization: ClassVar[Parametrization | None] = None
    in_paper: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A kernel inherited past an overridden hook would compute the step of another class.
        first = next(base for base in cls.__mro__ if {"kernel", *_HOOKS} & vars(base).keys())
        if "kernel" not in vars(first):
            cls.kernel = Update.kernel  # type: ignore[method-assign]

    @property
    def kernel(self) -> Kernel | None:
        """The step at one state in scalar arithmetic (see `pu_lib.kernels`), or None.

        A subclass that overrides one of the three hooks does not inherit the kernel.
        """
        return None

    @abstractmethod
    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy of parameters that have been checked.

        Parameters
        ----------
        theta : ndarray, shape (..., n_actions)
            Parameters of the update.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The policy.
        """

    @abstractmethod
    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters of a policy that has been checked.

        Parameters
        ----------
        pi : ndarray, shape (..., n_actions)
            A policy.

        Returns
        -------
        ndarray, shape (..., n_actions)
            Parameters of the policy `pi`.
        """

    @abstractmethod
    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        r"""Return the parameters after one step. The arguments have been checked and broadcast.

        Parameters
        ----------
        theta : ndarray, shape (..., n_actions)
            Parameters of the update.
        q : ndarray, shape (..., n_actions)
            State-action values.
        weight : ndarray, shape (..., 1)
            :math:`w = \eta\,d(s) \ge 0`.
        rng : numpy.random.Generator
            The generator of random choices, such as the choice among tied actions.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The new parameters.
        """

    @property
    def options(self) -> dict[str, Any]:
        """The options of this update with their values, as keyword arguments of `make_update`."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    @underflow_to_zero
    def policy(self, theta: ArrayLike) -> Floats:
        """Return the policy of parameters `theta`.

        Parameters
        ----------
        theta : array_like, shape (..., n_actions)
            Finite parameters. For `di` the rows must be points of the simplex; for `pg-es` no row
            may be zero.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The policy, which is non-negative and sums to 1 along the last axis.

        Raises
        ------
        ValueError
            If `theta` is not an array of finite parameters of this update, or the hook `to_policy`
            does not return a policy.
        """
        policy = self._unchecked_policy(self._checked_theta(theta))
        require_distributions(f"update {self.name}", policy)
        return policy

    @underflow_to_zero
    def parameters(self, pi: ArrayLike) -> Floats:
        r"""Return parameters of the policy `pi`; the method is a right inverse of `policy`.

        Softmax parameters are :math:`\log\pi`. Escort parameters are :math:`(|A|\,\pi)^{1/p}`:
        their norm determines the size of a step, and equals the norm of the parameters of
        `initial`.

        Parameters
        ----------
        pi : array_like, shape (..., n_actions)
            A policy, with rows that sum to 1. Softmax parameters require positive entries.

        Returns
        -------
        ndarray, shape (..., n_actions)
            Parameters of the policy `pi` up to rounding.

        Raises
        ------
        ValueError
            If `pi` is not a policy that this update can represent.
        """
        pi = as_rows("pi", pi)
        require_distributions("pi", pi)
        return self._call_hook(self.to_parameters, pi)

    @underflow_to_zero
    def step(
        self, theta: ArrayLike, q: ArrayLike, weight: ArrayLike = 1.0, seed: Seed = None
    ) -> Floats:
        r"""Return the parameters after one step.

        Parameters
        ----------
        theta : array_like, shape (..., n_actions)
            Parameters of the update.
        q : array_like, shape (..., n_actions)
            State-action values; broadcasts with `theta`.
        weight : array_like, shape (...)
            :math:`w = \eta\,d(s) \ge 0`, for each row; broadcasts with the leading axes.
        seed : int or numpy.random.Generator, optional
            Seed of random choices, such as those of `ce` and `mce` with ``ties="random"``.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The new parameters, with the broadcast leading axes of `theta`, `q` and `weight`.

        Raises
        ------
        ValueError
            If an argument has an invalid shape or is not finite, a weight is negative, or the new
            parameters exceed the range of floats, 1.8e308.
        """
        theta = self._checked_theta(theta)
        q = as_rows("q", q)
        return self._unchecked_step(theta, q, as_weights("weight", weight, theta, q), seed)

    def _unchecked_step(self, theta: Floats, q: Floats, weight: Floats, seed: Seed) -> Floats:
        """Return the parameters after one step, without checking the arrays."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._unchecked_step_silenced(theta, q, weight, seed)

    def _unchecked_step_silenced(
        self, theta: Floats, q: Floats, weight: Floats, seed: Seed
    ) -> Floats:
        """Return the result of `_unchecked_step`; the caller must silence overflow warnings."""
        if not (theta.shape == q.shape and weight.shape in ((), theta.shape[:-1])):
            theta, q, _ = np.broadcast_arrays(theta, q, weight[..., np.newaxis])
        new = self._call_hook(self.advance, theta, q, weight[..., np.newaxis], as_generator(seed))
        if math.isfinite(np.add.reduce(new, axis=None)):  # a finite sum has finite terms: cheap
            return new
        finite = np.isfinite(new)
        if not finite.all():
            raise ValueError(
                f"weight: the step leaves the range of floats (1.8e308) at index "
                f"{first_index(~finite)}; the parameters, or weight times the differences of q, "
                "are too large for it."
            )
        return new

    def _unchecked_policy(self, theta: Floats) -> Floats:
        """Return the policy of `theta` without checking the argument."""
        return self._call_hook(self.to_policy, theta)

    def _call_hook(self, hook: Callable[..., Floats], *arguments: Any) -> Floats:
        """Validate a hook's result and return it as a new float array.

        The hook receives copies of the arrays, so that writing to them has no effect elsewhere.
        """
        made = hook(*map(_copy_array, arguments))
        got = made.shape if type(made) is np.ndarray else type(made).__name__
        if got != arguments[0].shape:
            raise ValueError(
                f"update {self.name}: {hook.__name__} must return an array of shape "
                f"{arguments[0].shape}, got {got}."
            )
        if made.dtype.kind not in "fiu":
            raise ValueError(
                f"update {self.name}: {hook.__name__} must return an array of floats, got "
                f"{made.dtype}."
            )
        return np.array(made, np.float64)

    def initial(self, n_states: int, n_actions: int) -> Floats:
        """Return parameters of the uniform policy.

        Parameters
        ----------
        n_states : int
            The number of states, at least 1.
        n_actions : int
            The number of actions, at least 2.

        Returns
        -------
        ndarray, shape (n_states, n_actions)
            An array filled with the value of the method `uniform`.

        Raises
        ------
        ValueError
            If an argument is not an integer or is too small, or if the array would have more than
            2e8 parameters (1.6 GB).
        """
        n_states = as_int("n_states", n_states, low=1)
        n_actions = as_int("n_actions", n_actions, low=2)
        if n_states * n_actions > _MOST_PARAMETERS:
            raise ValueError(
                f"n_states: {n_states} states and {n_actions} actions have more than the "
                f"{_MOST_PARAMETERS} parameters that are stored at most."
            )
        return np.full((n_states, n_actions), self.uniform(n_actions))

    @underflow_to_zero
    def uniform(self, n_actions: int) -> float:
        """Return the value of all parameters that gives the uniform policy.

        Parameters
        ----------
        n_actions : int
            The number of actions.

        Returns
        -------
        float
            The common value of the parameters.
        """
        return float(self._call_hook(self.to_parameters, np.full(n_actions, 1.0 / n_actions))[0])

    def _checked_theta(self, theta: ArrayLike) -> Floats:
        """Return `theta` as floats with at least two actions, or raise a `ValueError`."""
        theta = as_rows("theta", theta)
        if theta.shape[-1] < 2:
            raise ValueError(f"theta: expected at least two actions, got shape {theta.shape}.")
        return theta
