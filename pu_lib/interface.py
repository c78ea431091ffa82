"""The base class of all policy updates, `Update`.

`pu_lib.updates` has the formulas and the registry, and exports these names too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple, cast, overload

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import (
    Floats,
    Seed,
    as_float_array,
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


_HOOKS = {"to_policy", "to_parameters", "advance", "initial_memory"}


def _wrong_memory(update: Update) -> str:
    """Return the message of a step with memory for an update without it, or the reverse."""
    if update.has_memory:
        return (
            f"memory: update {update.name} has memory, and this call has none; use run, follow, "
            "race or sweep, or give step the memory, such as initial_memory(n_states, n_actions)."
        )
    return f"memory: update {update.name} has no memory; leave the argument out."


class Update(ABC):
    r"""A policy update: a parametrization and a step that changes the parameters.

    A subclass defines three hooks, `to_policy`, `to_parameters` and `advance`. The hooks receive
    copies of float arrays that have been checked. Users call `policy`, `parameters` and `step`,
    which check their arguments and call the hooks.

    An update keeps nothing between steps: the same parameters, values and weight, and the same
    state of the random generator, give the same result. `run`, `follow`, `race` and `sweep` raise
    a `ValueError` if a repeated call of `advance` gives another result, because several states,
    step sizes and runs would share what an attribute such as ``self.m`` stores.

    An update that needs memory, such as momentum, declares it: `initial_memory` returns one row of
    numbers for each state, and `advance` takes the current rows as a fifth argument and returns the
    new parameters and the new rows. Every run starts from `initial_memory`, and every state has a
    row of its own. The memory of a state changes only in a step of this state. A kernel takes the
    row of its state as a seventh argument and changes it in place.

    Attributes
    ----------
    name : str
        The name in `UPDATES`, as in ``run(mdp, "pg-sm")``.
    title : str
        The full name, such as "softmax policy gradient". The default is `name`.
    label : str
        The short name in figures, such as "PG-SM". The default is `name` in capitals.
    style : PlotStyle, optional
        The style in figures of a registered update. The default is the next of four spare styles.
        Results store only the name of an update that is not registered; figures give it the next
        spare style.
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

    The natural policy gradient with momentum, whose memory is the last change of the parameters:

    >>> class Momentum(Update):
    ...     name = "momentum"
    ...     to_parameters = staticmethod(np.log)
    ...
    ...     def to_policy(self, theta):
    ...         weights = np.exp(theta - theta.max(axis=-1, keepdims=True))
    ...         return weights / weights.sum(axis=-1, keepdims=True)
    ...
    ...     def initial_memory(self, n_states, n_actions):
    ...         return np.zeros((n_states, n_actions))
    ...
    ...     def advance(self, theta, q, weight, rng, memory):
    ...         memory = 0.5 * memory + weight * (q - q.max(axis=-1, keepdims=True))
    ...         return theta + memory, memory
    >>> theta, memory = Momentum().step([0.0, 0.0], [1.0, 0.0], memory=[0.0, 0.0])
    >>> theta, memory = Momentum().step(theta, [1.0, 0.0], memory=memory)
    >>> theta.tolist(), memory.tolist()
    ([0.0, -2.5], [0.0, -1.5])
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

        A subclass that overrides a hook does not inherit the kernel.
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

        Notes
        -----
        The hook of an update with memory is ``advance(theta, q, weight, rng, memory)``. `memory`
        has the shape (..., n_numbers): the rows of `initial_memory` with the leading axes of
        `theta`. The hook returns the new parameters and the new memory, as a tuple.
        """

    def initial_memory(self, n_states: int, n_actions: int) -> Floats | None:
        """Return the memory before the first step, one row for each state, or None for no memory.

        Parameters
        ----------
        n_states : int
            The number of states.
        n_actions : int
            The number of actions.

        Returns
        -------
        ndarray, shape (n_states, n_numbers), or None
            Any number of numbers for each state, such as `n_actions` for momentum. The default is
            None.
        """
        return None

    @property
    def has_memory(self) -> bool:
        """Whether the update has memory, which a subclass declares by defining `initial_memory`."""
        return type(self).initial_memory is not Update.initial_memory

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

    @overload
    def step(
        self,
        theta: ArrayLike,
        q: ArrayLike,
        weight: ArrayLike = 1.0,
        seed: Seed = None,
        *,
        memory: None = None,
    ) -> Floats: ...

    @overload
    def step(
        self,
        theta: ArrayLike,
        q: ArrayLike,
        weight: ArrayLike = 1.0,
        seed: Seed = None,
        *,
        memory: ArrayLike,
    ) -> tuple[Floats, Floats]: ...

    @underflow_to_zero
    def step(
        self,
        theta: ArrayLike,
        q: ArrayLike,
        weight: ArrayLike = 1.0,
        seed: Seed = None,
        *,
        memory: ArrayLike | None = None,
    ) -> Floats | tuple[Floats, Floats]:
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
        memory : array_like, shape (..., n_numbers), optional
            The memory of an update with memory, such as a result of `initial_memory`: one row for
            each state, or one row for all.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The new parameters, with the broadcast leading axes of `theta`, `q` and `weight`. For an
            update with memory, a tuple of the new parameters and the new memory.

        Raises
        ------
        ValueError
            If an argument has an invalid shape or is not finite, a weight is negative, `memory` is
            missing or the update has none, or the new parameters exceed the range of floats,
            1.8e308.
        """
        theta = self._checked_theta(theta)
        q = as_rows("q", q)
        weight = as_weights("weight", weight, theta, q)
        if memory is None:
            return self._unchecked_step(theta, q, weight, seed)
        rows = as_rows("memory", memory)
        leading = np.broadcast_shapes(theta.shape[:-1], q.shape[:-1], weight.shape)
        if rows.shape[:-1] not in ((), leading):
            raise ValueError(
                f"memory: expected shape ({', '.join(map(str, (*leading, 'n_numbers')))}), got "
                f"{rows.shape}."
            )
        with np.errstate(over="ignore", invalid="ignore"):
            return cast(
                "tuple[Floats, Floats]", self._move(theta, q, weight, as_generator(seed), rows)
            )

    def _unchecked_step(self, theta: Floats, q: Floats, weight: Floats, seed: Seed) -> Floats:
        """Return the parameters after one step without memory; the arrays are not checked."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._move(theta, q, weight, as_generator(seed), None)[0]

    def _move(
        self,
        theta: Floats,
        q: Floats,
        weight: Floats,
        rng: np.random.Generator,
        memory: Floats | None,
    ) -> tuple[Floats, Floats | None]:
        """Return the parameters and the memory after one step, without checking the arrays.

        The caller must silence overflow warnings.
        """
        if (memory is None) == self.has_memory:
            raise ValueError(_wrong_memory(self))
        if not (theta.shape == q.shape and weight.shape in ((), theta.shape[:-1])):
            theta, q, _ = np.broadcast_arrays(theta, q, weight[..., np.newaxis])
        new, memory = self._call_advance(theta, q, weight[..., np.newaxis], rng, memory)
        # A finite sum has finite terms: cheap.
        if memory is not None and not math.isfinite(np.add.reduce(memory, axis=None)):
            finite = np.isfinite(memory)
            if not finite.all():
                raise ValueError(
                    f"weight: the memory of {self.name} leaves the range of floats (1.8e308) at "
                    f"index {first_index(~finite)}; use a smaller weight."
                )
        if math.isfinite(np.add.reduce(new, axis=None)):
            return new, memory
        finite = np.isfinite(new)
        if not finite.all():
            raise ValueError(
                f"weight: the step leaves the range of floats (1.8e308) at index "
                f"{first_index(~finite)}; the parameters, or weight times the differences of q, "
                "are too large for it."
            )
        return new, memory

    def _call_advance(
        self,
        theta: Floats,
        q: Floats,
        weight: Floats,
        rng: np.random.Generator,
        memory: Floats | None,
    ) -> tuple[Floats, Floats | None]:
        """Return the results of `advance` as new float arrays; raise if their shapes are wrong."""
        if memory is None:
            return self._call_hook(self.advance, theta, q, weight, rng), None
        memory = np.broadcast_to(memory, (*theta.shape[:-1], memory.shape[-1]))
        advance: Callable[..., Any] = self.advance
        made = advance(*map(_copy_array, (theta, q, weight, rng, memory)))
        if not (isinstance(made, tuple) and len(made) == 2):
            raise ValueError(
                f"update {self.name}: advance must return the new parameters and the new memory, "
                f"got {type(made).__name__}."
            )
        new = self._checked_result("advance", made[0], theta.shape)
        return new, self._checked_result("advance", made[1], memory.shape, "a memory")

    def _memory(self, *leading: int, n_actions: int) -> Floats | None:
        """Return `initial_memory` as finite floats with the given leading axes, or None."""
        if not self.has_memory:
            return None
        n_states = math.prod(leading)
        made: Any = self.initial_memory(n_states, n_actions)
        memory = as_float_array("initial_memory", made)
        if memory.ndim != 2 or len(memory) != n_states:
            raise ValueError(
                f"update {self.name}: initial_memory must return an array of shape ({n_states}, "
                f"n_numbers), one row for each state, got shape {memory.shape}."
            )
        return np.array(memory).reshape(*leading, memory.shape[-1])

    def _require_repeatable(self, theta: Floats) -> None:
        """Raise a `ValueError` if a repeated call of `advance` gives another result.

        The two equal calls have another call between them. Without it, an update such as Adam,
        which divides an average by an average, would give the same result twice. The updates of the
        library are not called.
        """
        if type(self).__module__.startswith("pu_lib."):
            return
        q = np.random.default_rng(0).random(theta.shape)
        weight = np.ones((*theta.shape[:-1], 1))
        memory = self._memory(*theta.shape[:-1], n_actions=theta.shape[-1])

        def call(theta: Floats, q: Floats) -> tuple[Floats, Floats | None]:
            return self._call_advance(theta, q, weight, np.random.default_rng(0), memory)

        with np.errstate(all="ignore"):
            first = call(theta, q)
            call(first[0], -q)
            again = call(theta, q)
        for one, other in zip(first, again, strict=True):
            if one is not None and not np.array_equal(one, other, equal_nan=True):  # type: ignore[arg-type]
                raise ValueError(
                    f"update {self.name}: two calls of advance with the same parameters, values, "
                    "weight and generator gave different results. An attribute that advance "
                    "changes is shared by all states, step sizes and runs: define "
                    "initial_memory(n_states, n_actions) and advance(theta, q, weight, rng, "
                    "memory) instead, and draw random numbers from rng."
                )

    def _unchecked_policy(self, theta: Floats) -> Floats:
        """Return the policy of `theta` without checking the argument."""
        return self._call_hook(self.to_policy, theta)

    def _call_hook(self, hook: Callable[..., Floats], *arguments: Any) -> Floats:
        """Validate a hook's result and return it as a new float array.

        The hook receives copies of the arrays, so that writing to them has no effect elsewhere.
        """
        made = hook(*map(_copy_array, arguments))
        return self._checked_result(hook.__name__, made, arguments[0].shape)

    def _checked_result(
        self, hook: str, made: Any, shape: tuple[int, ...], what: str = "an array"
    ) -> Floats:
        """Return the result of a hook as a new float array; raise if its shape or type is wrong."""
        got = made.shape if type(made) is np.ndarray else type(made).__name__
        if got != shape:
            raise ValueError(
                f"update {self.name}: {hook} must return {what} of shape {shape}, got {got}."
            )
        if made.dtype.kind not in "fiu":
            raise ValueError(
                f"update {self.name}: {hook} must return {what} of floats, got {made.dtype}."
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
