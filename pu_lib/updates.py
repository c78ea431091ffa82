r"""The policy updates: the paper's five updates (section 2), natural policy gradient, and others.

An update maps the parameters :math:`\theta(s,\cdot)` of one state to new ones, given the values
:math:`q(s,\cdot)` and a weight :math:`w = \eta\,d(s) \ge 0`. With
:math:`\mathrm{adv}(a) = q(a) - \sum_{a'} \pi(a') q(a')` and a greedy action
:math:`a_q \in \arg\max_a q(a)`:

- `pg-sm`: policy :math:`\pi(a) \propto e^{\theta_a}`, step
  :math:`\theta_a + w\,\pi(a)\,\mathrm{adv}(a)`.
- `pg-es`: policy :math:`\pi(a) \propto |\theta_a|^p`, step
  :math:`\theta_a + w\,\mathrm{sign}(\theta_a)\,\frac{p}{\|\theta\|_p}\,\pi(a)^{1-1/p}\,
  \mathrm{adv}(a)`.
- `di`: policy :math:`\pi(a) = \theta_a`, step :math:`\mathrm{Proj}_\Delta(\theta + w q)`.
- `ce`: policy :math:`\pi(a) \propto e^{\theta_a}`, step
  :math:`\theta_a + w\,(\mathbb 1_{a=a_q} - \pi(a))`.
- `mce`: policy :math:`\pi(a) \propto e^{\theta_a}`, step :math:`\theta_{a_q} + w\,(1-\pi(a_q))` and
  :math:`\theta_a - \frac{w}{|A|-1}(1-\pi(a_q))` for every other action.

Two further updates, also with :math:`\pi(a) \propto e^{\theta_a}`:

- `npg`: step :math:`\theta_a + w\,q(a)`.
- `sce`: step :math:`\theta_a + w\,(\mathbb 1_{a=a_q} - \pi(a)/\pi(D))` for every action in
  :math:`D = \{a_q\} \cup \{a : \mathrm{adv}(a) < 0\}`, and no change for the others.

Arrays have shape ``(..., n_actions)`` and leading axes broadcast, so that one call updates one
state, all states of an MDP, or a batch of MDPs. Nothing is clipped or renormalised: parameters that
are invalid for an update raise a `ValueError`, and a step whose result exceeds the range of floats,
1.8e308, also raises a `ValueError`.

>>> UPDATES["ce"].step([0.0, 0.0], [1.0, 0.0], 2.0).tolist()
[1.0, -1.0]

Custom updates
--------------
Derive a class from `Update`, set its attributes (name, label, style), define the three hooks
`to_policy`, `to_parameters` and `advance`, and `register` an instance. Runs, races, figures, tables
and the command line then include it. An update with a scalar `kernel` also runs in compiled
experiments. An update that needs earlier steps, such as momentum, defines `initial_memory`, too.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, replace
from typing import Literal, TypeVar, get_args

import numpy as np
from numpy.typing import ArrayLike

from pu_lib import kernels
from pu_lib.arrays import Floats, as_float, first_index, require_distributions
from pu_lib.interface import Parametrization, PlotStyle, Update
from pu_lib.kernels import Kernel
from pu_lib.parametrizations import (
    Mask,
    Ties,
    advantage,
    below_average,
    escort,
    greedy_mask,
    project_simplex,
    require_escort,
    scaled_escort,
    softmax,
    unchecked_greedy_mask,
    unchecked_projection,
    unchecked_softmax,
)
from pu_lib.settings import find_name, import_object, naming_place, read_settings

__all__ = [
    "JUDGED",
    "PAPER",
    "UPDATES",
    "CrossEntropy",
    "Direct",
    "EscortPolicyGradient",
    "MaskedCrossEntropy",
    "ModifiedCrossEntropy",
    "NaturalPolicyGradient",
    "Parametrization",
    "PlotStyle",
    "SoftmaxPolicyGradient",
    "Ties",
    "Update",
    "advantage",
    "as_update",
    "escort",
    "greedy_mask",
    "label_of",
    "make_update",
    "name_of",
    "project_simplex",
    "register",
    "softmax",
    "spare_style",
    "style_of",
]

EscortFactor = Literal["keep", "drop"]


# The updates


class _Softmax(Update):
    """The base class of updates with softmax parameters."""

    parametrization = "softmax"

    def uniform(self, n_actions: int) -> float:
        """Return 0: equal parameters give the uniform policy."""
        return 0.0

    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy of checked parameters."""
        with np.errstate(over="ignore"):
            return unchecked_softmax(theta)

    def to_parameters(self, pi: Floats) -> Floats:
        """Return the logarithms of a checked policy; raise a `ValueError` if it has a zero."""
        if np.any(pi == 0.0):
            raise ValueError(
                f"pi: a softmax policy is positive at every action, got 0 at index "
                f"{first_index(pi == 0.0)}; mix in a small share of the uniform policy: "
                "(1 - epsilon) * pi + epsilon / n_actions, with epsilon such as 1e-6."
            )
        return np.log(pi)


@dataclass(frozen=True)
class SoftmaxPolicyGradient(_Softmax):
    """The policy gradient of the softmax parametrization, `pg-sm` (paper, eqs. 3 to 5)."""

    name = "pg-sm"
    title = "softmax policy gradient"
    label = "PG-SM"
    style = PlotStyle("#0072b2", "-", "o")
    in_paper = True

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step."""
        return kernels.pg_sm

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        pi = unchecked_softmax(theta)
        return np.asarray(theta + weight * pi * advantage(pi, q))


@dataclass(frozen=True)
class EscortPolicyGradient(Update):
    r"""The policy gradient of the escort parametrization, `pg-es` (paper, section 2.1, app. A.1.2).

    The policy depends on the modulus of the parameters only, so the gradient has a factor
    :math:`\mathrm{sign}(\theta_a)`, and a large step changes the sign of a parameter. A
    parameter that is exactly zero stays zero.

    Parameters
    ----------
    p : float
        The exponent, at least 1; the paper and its predecessors use 2.
    factor : {"keep", "drop"}
        Whether the step has the factor :math:`p/\|\theta\|_p` of the exact gradient. The paper
        states the gradient up to proportionality, which allows both.
    """

    name = "pg-es"
    title = "escort policy gradient"
    label = "PG-ES"
    style = PlotStyle("#a8508a", (0, (6, 1.5)), "s")
    parametrization = "escort"
    in_paper = True
    p: float = 2.0
    factor: EscortFactor = "keep"

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step if p = 2, or None otherwise."""
        if self.p != 2.0:
            return None
        return kernels.pg_es if self.factor == "keep" else kernels.pg_es_drop

    def __post_init__(self) -> None:
        as_float("p", self.p, low=1.0)
        if self.factor not in get_args(EscortFactor):
            raise ValueError(
                f"factor: expected one of {get_args(EscortFactor)}, got {self.factor!r}."
            )

    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy of checked parameters."""
        return scaled_escort(theta, self.p)[0]

    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters of a checked policy."""
        return np.asarray((pi.shape[-1] * pi) ** (1.0 / self.p))

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        pi, scale, total = scaled_escort(theta, self.p)
        # From the parameters rather than the policy: a probability may underflow before they do.
        direction = np.sign(theta) * (np.abs(theta) / scale) ** (self.p - 1.0) * advantage(pi, q)
        # pi^(1 - 1/p) = (|theta| / scale)^(p - 1) / total^(1 - 1/p); the norm is scale total^(1/p).
        if self.factor == "keep":
            weight = weight * self.p / (scale * total)
        else:
            weight = weight / total ** (1.0 - 1.0 / self.p)
        return np.asarray(theta + weight * direction)

    def uniform(self, n_actions: int) -> float:
        """Return 1: equal parameters give the uniform policy."""
        return 1.0

    def _checked_theta(self, theta: ArrayLike) -> Floats:
        theta = super()._checked_theta(theta)
        require_escort(theta)
        return theta


@dataclass(frozen=True)
class Direct(Update):
    """The direct parametrization with projection on the simplex, `di` (paper, section 2.2)."""

    name = "di"
    title = "direct parametrization"
    label = "DI"
    style = PlotStyle("#00815e", (0, (1.2, 1.2)), "D")
    parametrization = "direct"
    in_paper = True

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step."""
        return kernels.di

    def to_policy(self, theta: Floats) -> Floats:
        """Return the policy of checked parameters."""
        return theta.copy()

    def to_parameters(self, pi: Floats) -> Floats:
        """Return parameters of a checked policy."""
        return pi.copy()

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        # A constant shift of q does not change the projection. With the largest value at 0, a huge
        # weight makes the other actions very negative; without, every entry would be huge.
        return unchecked_projection(theta + weight * (q - q.max(axis=-1, keepdims=True)))

    def uniform(self, n_actions: int) -> float:
        """Return 1 / n_actions."""
        return 1.0 / n_actions

    def _checked_theta(self, theta: ArrayLike) -> Floats:
        theta = super()._checked_theta(theta)
        require_distributions("theta", theta, "points of the simplex")
        return theta


@dataclass(frozen=True)
class CrossEntropy(_Softmax):
    """The gradient step on the cross-entropy to the greedy action, `ce` (paper, eqs. 10, 11).

    Parameters
    ----------
    ties : {"first", "random", "leave"}
        The choice among tied greedy actions: the first, a uniformly random one, or none. If none is
        chosen, the state is not updated.
    """

    name = "ce"
    title = "cross-entropy update"
    label = "CE"
    style = PlotStyle("#b37400", (0, (5, 1.5, 1.2, 1.5)), "^")
    in_paper = True
    ties: Ties = "first"

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step, for a given greedy action."""
        return kernels.ce

    def __post_init__(self) -> None:
        if self.ties not in get_args(Ties):
            raise ValueError(f"ties: expected one of {get_args(Ties)}, got {self.ties!r}.")

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        mask, pi = unchecked_greedy_mask(q, self.ties, rng), unchecked_softmax(theta)
        # 1 - pi(a_q) as the sum of the others: no cancellation when it is small
        missing = np.where(mask, 0.0, pi).sum(axis=-1, keepdims=True)
        return np.asarray(theta + weight * self._moving(mask, np.where(mask, missing, -pi)))

    def _moving(self, mask: Mask, direction: Floats) -> Floats:
        """Return `direction`, with zeros in the rows without a greedy action."""
        if self.ties != "leave":
            return direction
        return np.where(mask.any(axis=-1, keepdims=True), direction, 0.0)


@dataclass(frozen=True)
class ModifiedCrossEntropy(CrossEntropy):
    """The cross-entropy update with equal decreases for other actions, `mce` (eqs. 12, 13).

    Parameters
    ----------
    ties : {"first", "random", "leave"}
        The choice among tied greedy actions, as for `CrossEntropy`.
    """

    name = "mce"
    title = "modified cross-entropy update"
    label = "MCE"
    style = PlotStyle("#d0450f", (0, (9, 2)), "v")
    in_paper = True

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step, for a given greedy action."""
        return kernels.mce

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        mask, pi = unchecked_greedy_mask(q, self.ties, rng), unchecked_softmax(theta)
        missing = np.where(mask, 0.0, pi).sum(axis=-1, keepdims=True)
        others = missing * (-1.0 / (theta.shape[-1] - 1))
        return np.asarray(theta + weight * self._moving(mask, np.where(mask, missing, others)))


UPDATES: dict[str, Update] = {}
"""The updates by name: the paper's five updates with the paper's settings (p = 2, exact gradient,
first of tied actions), `npg` and `sce`, then registered updates in the order of registration."""

_SPARE_STYLES = (
    PlotStyle("#56606b", (0, (3, 1)), "P"),
    PlotStyle("#7a6a00", (0, (7, 1, 1, 1)), "X"),
    PlotStyle("#8c564b", (0, (2, 2)), "*"),
    PlotStyle("#5a4fcf", (0, (4, 1, 1, 1, 1, 1)), "h"),
)


_Registered = TypeVar("_Registered", bound="Update | type[Update]")


def register(update: _Registered) -> _Registered:
    """Add an update to `UPDATES`, so that runs, races, tables and the command line include it.

    Parameters
    ----------
    update : Update or subclass of Update
        An instance, or a class that is instantiated with its default settings, so that
        ``@register`` can decorate it.

    Returns
    -------
    Update or subclass of Update
        The argument, unchanged.

    Raises
    ------
    TypeError
        If `update` is not an `Update`.
    ValueError
        If the name is missing, contains a colon (``module:NAME`` is an import path) or an equals
        sign (``name option=value`` has options), or belongs to an update of another class or to
        an update of the library with other settings. A class that is defined again in the same
        module, as in a notebook, replaces its earlier definition.

    Examples
    --------
    >>> @register
    ... class Halved(CrossEntropy):
    ...     name = "halved"
    ...
    ...     def advance(self, theta, q, weight, rng):
    ...         return super().advance(theta, q, weight / 2, rng)
    >>> UPDATES["halved"].step([0.0, 0.0], [1.0, 0.0], 2.0).tolist()
    [0.5, -0.5]
    >>> _ = UPDATES.pop("halved")
    """
    instance = update() if isinstance(update, type) else update
    if not isinstance(instance, Update):
        raise TypeError(f"update: expected an Update, an instance or a class, got {update!r}.")
    _require_hooks(instance)
    kind, name = type(instance), instance.name
    if ":" in name:
        raise ValueError(f"update: expected a name without a colon, got {name!r}.")
    if "=" in name:
        raise ValueError(f"update: expected a name without an equals sign, got {name!r}.")
    # A class that is defined again, as when a notebook cell is run twice, replaces itself.
    old = type(UPDATES.get(name, instance))
    places = [(each.__module__, each.__qualname__) for each in (old, kind)]
    if old is not kind and (places[0] != places[1] or old.__module__ == __name__):
        raise ValueError(f"update: the name {name!r} is taken by {'.'.join(places[0])}.")
    if old.__module__ == __name__ and instance != UPDATES.get(name, instance):
        raise ValueError(
            f"update: the name {name!r} stands for the settings {UPDATES[name].options}; register "
            "others under a name of their own, in a subclass."
        )
    UPDATES[name] = instance
    return update


def _require_hooks(update: Update) -> None:
    """Raise a `ValueError` if an update has no name or its `advance` takes other arguments."""
    if type(update).__module__ == __name__:
        return
    name = getattr(update, "name", "")
    if not name or not isinstance(name, str):
        kind = type(update).__name__
        raise ValueError(f"update: {kind} has no name; set `name = '...'` in it.")
    has = "has" if update.has_memory else "does not define"
    arguments = ["theta", "q", "weight", "rng", "memory"][: 5 if update.has_memory else 4]
    try:
        inspect.signature(update.advance).bind(*arguments)
    except TypeError:
        raise ValueError(
            f"update {name}: it {has} initial_memory, so advance must take "
            f"({', '.join(arguments)})."
        ) from None


for _kind in (
    SoftmaxPolicyGradient,
    EscortPolicyGradient,
    Direct,
    CrossEntropy,
    ModifiedCrossEntropy,
):
    register(_kind())

PAPER = tuple(UPDATES)
"""The names of the paper's five updates."""

JUDGED = (*PAPER, "npg")
"""The names of the updates in the claims: the paper's five and the natural policy gradient."""


# Beyond the paper


@register
@dataclass(frozen=True)
class NaturalPolicyGradient(_Softmax):
    r"""The natural policy gradient of the softmax parametrization, `npg` (Kakade, 2001).

    The gradient of `pg-sm`, multiplied by the pseudo-inverse of the Fisher information
    :math:`\mathrm{diag}(\pi) - \pi\pi^\top`, equals the values up to a common shift, which does not
    change a softmax policy. The new policy is proportional to :math:`\pi(a)\,e^{w q(a)}`. The
    values are shifted so that the largest is 0, which leaves the parameter of the best action
    unchanged. These statements hold for tables. If states share parameters, the natural gradient is
    a least-squares fit, and the shift matters if the step is pulled back through a network.
    """

    name = "npg"
    title = "natural policy gradient"
    label = "NPG"
    style = PlotStyle("#b0123b", (0, (3, 1.2, 1.2, 1.2, 1.2, 1.2)), "<")

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step."""
        return kernels.npg

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        return np.asarray(theta + weight * (q - q.max(axis=-1, keepdims=True)))


@register
@dataclass(frozen=True)
class MaskedCrossEntropy(CrossEntropy):
    r"""The sign-masked cross-entropy update, `sce`: the greedy action and those below average.

    The step is that of `ce` for the actions of :math:`D = \{a_q\} \cup \{a : \mathrm{adv}(a) < 0\}`
    with the policy :math:`\pi(a)/\pi(D)`. The parameters of all other actions stay as they are. It
    is a gradient step on the cross-entropy of the softmax over D to the greedy action. With two
    actions of different values it is the step of `ce`. The chapter "More than two actions" of the
    book introduces it: no step decreases the value.

    Parameters
    ----------
    ties : {"first", "random", "leave"}
        The choice among tied greedy actions, as for `CrossEntropy`. The parameters of greedy
        actions that are not chosen stay as they are.
    """

    name = "sce"
    title = "sign-masked cross-entropy update"
    label = "SCE"
    style = PlotStyle("#6b4fc8", (0, (8, 1.2, 1.2, 1.2, 1.2, 1.2)), ">")
    in_paper = False

    @property
    def kernel(self) -> Kernel | None:
        """The scalar form of the step, for a given greedy action."""
        return kernels.sce

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        """Return the new parameters."""
        mask = unchecked_greedy_mask(q, self.ties, rng)
        lowered = below_average(theta, q) & ~mask
        # A row without a greedy action is not changed, but its softmax must be defined.
        moved = mask | lowered | ~mask.any(axis=-1, keepdims=True)
        pi = unchecked_softmax(np.where(moved, theta, -np.inf))
        missing = np.where(mask, 0.0, pi).sum(axis=-1, keepdims=True)
        direction = np.where(mask, missing, np.where(lowered, -pi, 0.0))
        return np.asarray(theta + weight * self._moving(mask, direction))


def as_update(update: str | Update) -> Update:
    """Return the update that a string stands for; return an update unchanged.

    A string is a name or label in `UPDATES`, in any case; a name with options as in
    ``pg-es factor=drop``; or ``module:NAME``, a class or instance that is imported and registered.
    Raises a `ValueError` if there is no such update or option, or an update lacks a name or has
    hooks that do not fit.

    Examples
    --------
    >>> as_update("PG-ES factor=drop")
    EscortPolicyGradient(p=2.0, factor='drop')
    """
    if isinstance(update, Update):
        _require_hooks(update)
        return update
    if isinstance(update, type) and issubclass(update, Update):
        kind = update.__name__
        raise ValueError(
            f"update: got the class {kind}; give an instance, {kind}(), or register it and give "
            "its name."
        )
    if isinstance(update, str) and "=" in update:
        name, _, words = update.partition(" ")
        usual = as_update(name)
        return _with_options(usual, read_settings("update", words, usual.options))
    if isinstance(update, str) and ":" in update:
        return _imported(update)
    labels = {kind.label: name for name, kind in UPDATES.items() if kind.label}
    return UPDATES[find_name("update", update, UPDATES, labels)]


def _with_options(update: Update, options: dict[str, object]) -> Update:
    """Return an update like the given one, but with the given options."""
    return replace(update, **options)  # type: ignore[type-var]


def name_of(update: Update) -> str:
    """Return the string that stands for an update: the inverse of `as_update`.

    The string has the name, then the options that differ from the options of the registered update.

    Examples
    --------
    >>> name_of(make_update("pg-es", factor="drop"))
    'pg-es factor=drop'
    """
    usual = UPDATES.get(update.name, update)
    if type(usual) is not type(update):
        return update.name
    changed = [
        f"{key}={value}"
        for key, value in update.options.items()
        if not np.array_equal(value, usual.options[key])
    ]
    return " ".join([update.name, *changed])


def _imported(place: str) -> Update:
    """Import, register and return the update at ``module:NAME``."""
    value = import_object("update", place)
    if value is None:
        name = place.partition(":")[2]
        raise ValueError(f"update: {place!r} cannot be imported: the module has no {name!r}.")
    if not (isinstance(value, Update) or (isinstance(value, type) and issubclass(value, Update))):
        raise ValueError(f"update: {place!r} is neither an Update nor a class of them: {value!r}.")
    with naming_place("update", place, "cannot be registered"):
        registered = register(value)
    return UPDATES[registered.name]


def label_of(name: str | Update) -> str:
    """Return the short name of an update for figures and tables."""
    update = as_update(name)
    return update.label or update.name.upper()


def style_of(name: str | Update) -> PlotStyle:
    """Return the style of an update in figures, or a spare style if the update has none."""
    update = as_update(name)
    if update.style is not None:
        return update.style
    plain = _without_style()
    if update.name not in plain:
        return spare_style(0)
    return _SPARE_STYLES[plain.index(update.name) % len(_SPARE_STYLES)]


def spare_style(number: int) -> PlotStyle:
    """Return the style of update `number` of those that are not registered, counted from 0."""
    return _SPARE_STYLES[(len(_without_style()) + number) % len(_SPARE_STYLES)]


def _without_style() -> list[str]:
    """Return the names of the registered updates without a style of their own."""
    return [name for name, update in UPDATES.items() if update.style is None]


def make_update(name: str, **options: object) -> Update:
    """Return the update called `name` with the given options.

    Parameters
    ----------
    name : str
        A name or label in `UPDATES`, in any case.
    **options
        Options of the update: ``p`` and ``factor`` for `pg-es`, ``ties`` for `ce`, `mce`, `sce`.
        Omitted options have their defaults.

    Returns
    -------
    Update
        The update; `UPDATES` is not changed.

    Raises
    ------
    ValueError
        If the name or an option is unknown, or a value is out of range.

    Examples
    --------
    >>> make_update("pg-es", p=1.0).policy([1.0, 3.0]).tolist()
    [0.25, 0.75]
    """
    usual = as_update(name)
    try:
        return type(usual)(**(usual.options | options))
    except TypeError as error:
        unknown = sorted(options.keys() - usual.options.keys())
        if not unknown:
            raise ValueError(f"update: {usual.name}: {error}.") from None
        raise ValueError(
            f"update: {usual.name} has no option {', '.join(unknown)}; its options are: "
            f"{', '.join(usual.options) or 'none'}."
        ) from None
