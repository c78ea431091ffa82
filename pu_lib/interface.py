"""What a policy update is: the class that all updates derive from, the paper's and one's own.

`pu_lib.updates` has the formulas and the registry, and offers these names too.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.arrays import Floats, first_index, require_distributions, whole
from pu_lib.kernels import Kernel
from pu_lib.parametrizations import rows, weights

__all__ = ["Look", "Parametrization", "Update"]

Parametrization = Literal["softmax", "escort", "direct"]
_MOST_PARAMETERS = 200_000_000


def _copied(given: Any) -> Any:
    return given.copy() if isinstance(given, np.ndarray) else given


class Look(NamedTuple):
    """How an update is drawn: a colour, a dash pattern and a marker, as matplotlib takes them.

    Attributes
    ----------
    colour : str
        A colour as ``#rrggbb``.
    dash : str or tuple
        A line style: its short name, as in ``"-"``, or (offset, lengths of dashes and gaps).
    marker : str
        The character of a marker.
    """

    colour: str
    dash: str | tuple[float, tuple[float, ...]]
    marker: str


_HOOKS = {"to_policy", "to_parameters", "advance"}


class Update(ABC):
    """A policy update: a parametrization and the step that moves its parameters.

    A subclass defines the three hooks `to_policy`, `to_parameters` and `advance`, which get checked
    float arrays of their own; users call `policy`, `parameters` and `step`, which check their
    arguments first.

    Attributes
    ----------
    name : str
        The name in `UPDATES`, as in ``run(mdp, "pg-sm")``.
    title : str
        The name in full, as in "softmax policy gradient"; `name` if missing.
    label : str
        The short name in figures, as in "PG-SM"; `name` in capitals if missing.
    look : Look, optional
        How it is drawn; one of four spare looks, in turn, if missing.
    parametrization : {"softmax", "escort", "direct"} or None
        How policies come from parameters, for the compiled loops; needed beside a kernel.
    in_paper : bool
        Whether it is one of the paper's five.
    """

    name: ClassVar[str]
    title: ClassVar[str] = ""
    label: ClassVar[str] = ""
    look: ClassVar[Look | None] = None
    parametrization: ClassVar[Parametrization | None] = None
    in_paper: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        # A kernel from further up than a hook would take the steps of another class.
        first = next(base for base in cls.__mro__ if {"kernel", *_HOOKS} & vars(base).keys())
        if "kernel" not in vars(first):
            cls.kernel = Update.kernel  # type: ignore[method-assign]

    @property
    def kernel(self) -> Kernel | None:
        """One step at one state in plain arithmetic (`pu_lib.kernels`); None if there is none.

        A subclass that defines one of the three hooks anew inherits none.
        """
        return None

    @abstractmethod
    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy of checked parameters, shape (..., n_actions)."""

    @abstractmethod
    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters of a checked policy, shape (..., n_actions)."""

    @abstractmethod
    def advance(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        r"""Return the new parameters after one step, from checked arrays that broadcast.

        Parameters
        ----------
        theta : ndarray, shape (..., n_actions)
            Parameters of the update.
        q : ndarray, shape (..., n_actions)
            Values.
        weight : ndarray, shape (..., 1)
            :math:`w = \eta\,d(s) \ge 0`; the last axis has length one.
        rng : numpy.random.Generator or None
            What a random choice, such as that of a tied action, is drawn from.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The new parameters.
        """

    @property
    def options(self) -> dict[str, Any]:
        """The options of this update and their values, as `make_update` takes them."""
        return {f.name: getattr(self, f.name) for f in fields(self)} if is_dataclass(self) else {}

    def policy(self, theta: ArrayLike) -> Floats:
        """Return the policy of parameters `theta`.

        Parameters
        ----------
        theta : array_like, shape (..., n_actions)
            Finite parameters; for `di` points of the simplex, for `pg-es` no all-zero row.

        Returns
        -------
        ndarray, shape (..., n_actions)
            Non-negative, summing to one along the last axis.

        Raises
        ------
        ValueError
            If `theta` is not an array of finite parameters of this update, or what an update of
            one's own makes of it is no policy.
        """
        policy = self._to_policy(self._checked(theta))
        require_distributions(f"update {self.name}", policy)
        return policy

    def parameters(self, pi: ArrayLike) -> Floats:
        r"""Return parameters whose policy is `pi`: the inverse of `policy`.

        Softmax parameters are :math:`\log\pi`. Escort parameters, whose norm sets the size of a
        step, get the norm they have in `initial`: :math:`(|A|\,\pi)^{1/p}`.

        Parameters
        ----------
        pi : array_like, shape (..., n_actions)
            Rows that sum to one; with positive entries where parameters are those of softmax.

        Returns
        -------
        ndarray, shape (..., n_actions)
            Parameters whose `policy` is `pi`, up to rounding.

        Raises
        ------
        ValueError
            If `pi` is not a policy of this update.
        """
        pi = rows("pi", pi)
        require_distributions("pi", pi)
        return self._called(self.to_parameters, pi)

    def step(
        self,
        theta: ArrayLike,
        q: ArrayLike,
        weight: ArrayLike = 1.0,
        rng: np.random.Generator | None = None,
    ) -> Floats:
        r"""Return the parameters after one update.

        Parameters
        ----------
        theta : array_like, shape (..., n_actions)
            Parameters.
        q : array_like, shape (..., n_actions)
            State-action values; broadcasts with `theta`.
        weight : array_like, shape (...)
            :math:`w = \eta\,d(s) \ge 0`, one a row; broadcasts with the leading axes.
        rng : numpy.random.Generator, optional
            Needed by `ce` and `mce` with ``ties="random"``.

        Returns
        -------
        ndarray, shape (..., n_actions)
            The new parameters; the leading axes are those of `theta`, `q` and `weight` together.

        Raises
        ------
        ValueError
            If an argument has a wrong shape, is not finite, or a weight is negative; or if the
            step leaves the range of floats.
        """
        theta = self._checked(theta)
        q = rows("q", q)
        return self._moved(theta, q, weights("weight", weight, theta, q), rng)

    def _moved(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        """Return the parameters after a step whose arguments have been checked."""
        with np.errstate(over="ignore", invalid="ignore"):
            return self._quietly_moved(theta, q, weight, rng)

    def _quietly_moved(
        self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator | None
    ) -> Floats:
        """Return the same where who calls ignores what overflows, which is refused here."""
        if not theta.shape == q.shape == (*weight.shape, q.shape[-1]):
            theta, q, _ = np.broadcast_arrays(theta, q, weight[..., np.newaxis])
        new = self._called(self.advance, theta, q, weight[..., np.newaxis], rng)
        if math.isfinite(np.add.reduce(new, axis=None)):  # the cheap test: so are its terms
            return new
        finite = np.isfinite(new)
        if not finite.all():
            raise ValueError(
                f"weight: the step leaves the range of floats (1.8e308) at index "
                f"{first_index(~finite)}; the parameters, or weight times the differences of q, "
                "are too large for it."
            )
        return new

    def _to_policy(self, theta: Floats) -> Floats:
        """Return the policy of parameters that have been checked."""
        return self._called(self.to_policy, theta)

    def _called(self, hook: Callable[..., Floats], *given: Any) -> Floats:
        """Call a hook with arrays of its own, and take a copy: what it writes changes no other."""
        made = hook(*map(_copied, given))
        got = made.shape if type(made) is np.ndarray else type(made).__name__
        if got != given[0].shape:
            raise ValueError(
                f"update {self.name}: {hook.__name__} must return an array of shape "
                f"{given[0].shape}, got {got}."
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
            `uniform` in every entry.

        Raises
        ------
        ValueError
            If either is not an integer, or if there is no state, fewer than two actions, or too
            many of both to be stored.
        """
        n_states = whole("n_states", n_states, low=1)
        n_actions = whole("n_actions", n_actions, low=2)
        if n_states * n_actions > _MOST_PARAMETERS:
            raise ValueError(
                f"n_states: {n_states} states and {n_actions} actions have more than the "
                f"{_MOST_PARAMETERS} parameters that are stored at most."
            )
        return np.full((n_states, n_actions), self.uniform(n_actions))

    def uniform(self, n_actions: int) -> float:
        """Return the parameter which, given to every action, is the uniform policy."""
        return float(self._called(self.to_parameters, np.full(n_actions, 1.0 / n_actions))[0])

    def _checked(self, theta: ArrayLike) -> Floats:
        """Return `theta` as floats, or raise `ValueError`."""
        theta = rows("theta", theta)
        if theta.shape[-1] < 2:
            raise ValueError(f"theta: expected at least two actions, got shape {theta.shape}.")
        return theta
