r"""The details that the paper's algorithm leaves open, and their settings (paper, appendix B.2).

The description of Jekyll & Hyde does not specify every detail of a run. Each such detail is a field
of `Options`, and `OPTIONS` has two settings of all fields:

- ``paper`` follows the paper's text and, if the text leaves a detail open, the closest choice. It
  departs from the text once. If Hyde's values are "initialised as the critic", at 0, every action
  that was tried has a larger value than every untried one, because bonuses are positive. Hyde then
  repeats his actions and does not explore. Here Hyde's initial values are :math:`1/(1-\gamma)`, an
  upper bound on the discounted sum of bonuses.
- ``predecessor`` follows the public code of the preceding article by the same authors. The cap of
  150 000 episodes comes from the configuration of the article's learning-rate figure. The cap
  agrees with the shape of the figure at the largest step sizes, at which a third of the runs
  never passes.

A `Scheme` consists of the probability :math:`\epsilon_t` that Hyde controls the next trajectory and
the probability :math:`o_t` that the update replays one of Hyde's transitions. Both probabilities
have the form :math:`\min(1, c/t^\alpha)` at step t = 1, 2, ...
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cache
from math import inf
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pu_lib.settings import find_name, read_settings, write_settings
from pu_lib.updates import PAPER as PAPER_UPDATES
from pu_lib.updates import Update, as_update

__all__ = [
    "OPTIONS",
    "PAPER",
    "PREDECESSOR",
    "PROGRAM",
    "PUBLISHED_SCHEMES",
    "SCHEMES",
    "Options",
    "Schedule",
    "Scheme",
    "configured",
    "describe",
    "parse",
    "program",
    "require_options",
    "scheme_of",
    "start_of",
]


@dataclass(frozen=True)
class Schedule:
    r"""The probability :math:`\min(1, c/t^\alpha)`.

    Attributes
    ----------
    c : float
        Factor, not negative.
    alpha : {0, 0.5, 1}
        Exponent of the step number.
    """

    c: float
    alpha: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.c < inf:
            raise ValueError(f"c: expected a finite number >= 0, got {self.c}.")
        if self.alpha not in (0.0, 0.5, 1.0):
            raise ValueError(f"alpha: expected 0, 0.5 or 1, got {self.alpha}.")


@dataclass(frozen=True)
class Scheme:
    r"""An exploration and off-policy scheme.

    Attributes
    ----------
    name : str
        The name of the scheme in tables of runs.
    epsilon : Schedule
        :math:`\epsilon_t`, the probability that Hyde controls the next trajectory.
    off_policy : Schedule
        :math:`o_t`, the probability that the update replays one of Hyde's transitions.
    """

    name: str
    epsilon: Schedule
    off_policy: Schedule


_NEVER, _HALF = Schedule(0.0, 0.0), Schedule(0.5, 0.0)
_ROOT, _HYPERBOLA = Schedule(10.0, 0.5), Schedule(100.0, 1.0)

SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("NoExplo", _NEVER, _NEVER),
        Scheme("LowOffPol", _ROOT, _ROOT),
        Scheme("HiOffPol", _ROOT, _HALF),
    )
}
"""The three schemes of the paper's section 4."""

PUBLISHED_SCHEMES: dict[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme("J&H eps=100/t o=0.5", _HYPERBOLA, _HALF),
        Scheme("J&H eps=10/sqrt(t) o=0.5", _ROOT, _HALF),
        Scheme("J&H eps=100/t o=10/sqrt(t)", _HYPERBOLA, _ROOT),
        Scheme("J&H eps=10/sqrt(t) o=10/sqrt(t)", _ROOT, _ROOT),
    )
}
"""The four schemes of the learning-rate curve published by the predecessor."""


def scheme_of(name: str) -> Scheme:
    """Return the scheme with this name.

    Raises
    ------
    ValueError
        If the name is unknown.
    """
    known = {**SCHEMES, **PUBLISHED_SCHEMES}
    return known[find_name("scheme", name, known)]


# Smallest modulus of an initial escort parameter. `pu_lib.engine.rows.rescale` relies on the fact
# that the norm of the parameters never decreases.
_SMALLEST_START = 1e-10


@dataclass(frozen=True)
class Options:
    r"""The details of a run that the paper leaves open.

    Attributes
    ----------
    hyde_start : float or "bound"
        Initial values of Hyde. ``"bound"`` stands for :math:`1/(1-\gamma)`.
    hyde_clip : float
        Upper bound to which Hyde's values are clipped after each update.
    bonus : {"root", "log"}
        Hyde's reward, with n the number of visits of (s, a): :math:`1/\sqrt n`, or
        :math:`\sqrt{\log(e+1)/(0.001+n)}` with e the number of finished trajectories.
    sarsa : {"sampled", "expected"}
        The critic's bootstrap value at the successor: the value of an action sampled from the
        current policy, or the expected value under the current policy.
    replay : {"stored", "model"}
        The replayed sample: a stored transition of the selected personality, or the state and
        action of such a transition with a successor sampled from all stored transitions with the
        same state and action.
    actor_weight : {"one", "discounted"}
        Weight of the actor's step: :math:`\eta`, or :math:`\eta\,e\,\gamma^k/\sum\gamma^k` with k
        the number of steps since the trajectory began. The sum is over all steps so far.
    ties : {"first", "random", "leave"}
        The action that the cross-entropy updates reinforce if several actions are greedy: the first
        one, a random one, or none.
    escort_start : float
        Initial value of every escort parameter. Its modulus is between 1e-10 and 1e10.
    cut : int
        Trajectories are truncated after this many steps, and the critic bootstraps from the last
        state. If 0, trajectories are not truncated.
    stop : {"steps", "episodes"}
        ``"steps"``: after an evaluation at step t, the policy is next evaluated at step
        t + max(g, 3 % of t), with g = 25 if the process is acyclic, else 100, and g = 1 in a race.
        ``"episodes"``: the policy is evaluated after every 0.1 % of `max_episodes`, and the mixture
        of the policy with Hyde's greedy policy must pass too.
    max_episodes : int
        Cap on the number of trajectories. If 0, there is no cap.
    last_state_tie : bool
        Whether both actions pay 1 in the last non-terminal state of chains.
    precision : {"scaled", "float64"}
        ``"scaled"``: each parameter of the escort update has its own exponent, so that the
        parameter does not underflow to 0. ``"float64"``: parameters are plain floats.
    critic_rate, hyde_rate, critic_start : float
        Learning rate of the critic, learning rate of Hyde, and initial value of the critic.
    """

    hyde_start: float | Literal["bound"] = "bound"
    hyde_clip: float = float("inf")
    bonus: Literal["root", "log"] = "root"
    sarsa: Literal["sampled", "expected"] = "sampled"
    replay: Literal["stored", "model"] = "stored"
    actor_weight: Literal["one", "discounted"] = "one"
    ties: Literal["first", "random", "leave"] = "first"
    escort_start: float = 1.0
    cut: int = 100
    stop: Literal["steps", "episodes"] = "steps"
    max_episodes: int = 0
    last_state_tie: bool = False
    precision: Literal["scaled", "float64"] = "scaled"
    critic_rate: float = 0.1
    hyde_rate: float = 0.1
    critic_start: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            _check_kind(field.name, _hints()[field.name], getattr(self, field.name))
        for name in ("critic_rate", "hyde_rate"):
            if not 0.0 < getattr(self, name) <= 1.0:
                raise ValueError(f"{name}: expected a rate in (0, 1], got {getattr(self, name)}.")
        for name in ("critic_start", "escort_start", "hyde_start"):
            if getattr(self, name) in (inf, -inf):
                raise ValueError(f"{name}: expected a finite number, got {getattr(self, name)}.")
        if not self.hyde_clip > 0.0:
            raise ValueError(f"hyde_clip: expected a number > 0, got {self.hyde_clip}.")
        if self.cut < 0 or self.max_episodes < 0:
            raise ValueError(
                f"cut, max_episodes: expected numbers >= 0, got {self.cut} and {self.max_episodes}."
            )
        if self.stop == "episodes" and self.max_episodes < 1:
            raise ValueError(
                "max_episodes: stop='episodes' needs a cap on the episodes, at least 1; got "
                f"{self.max_episodes}."
            )
        if self.escort_start == 0.0:
            raise ValueError(
                "escort_start: expected a number other than 0, at which the escort policy is "
                "undefined."
            )
        if not _SMALLEST_START <= abs(self.escort_start) <= 1.0 / _SMALLEST_START:
            raise ValueError(
                f"escort_start: expected a modulus from {_SMALLEST_START:g} to "
                f"{1.0 / _SMALLEST_START:g}, got {self.escort_start:g}."
            )


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Options)


def _check_kind(name: str, hint: Any, value: object) -> None:
    """Raise an error if a value does not have the declared type of a field."""
    words = _choices(hint)
    takes_float = float in get_args(hint)
    number = isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
    if words:
        expected = f"one of {words}" + (" or a number" if takes_float else "")
        right = value in words or (takes_float and number)
    elif hint is bool:
        expected, right = "True or False", isinstance(value, bool)
    elif hint is int:
        expected, right = "an integer", number and isinstance(value, int)
    else:
        expected, right = "a number", number
    if not right:
        raise ValueError(f"{name}: expected {expected}, got {value!r}.")


def _choices(hint: Any) -> tuple[str, ...]:
    """Return the strings that a field accepts."""
    if get_origin(hint) is Literal:
        return tuple(get_args(hint))
    return tuple(word for part in get_args(hint) for word in _choices(part))


PAPER = Options()
"""The paper's choices and, for each detail that the paper leaves open, the closest choice."""

PREDECESSOR = Options(
    hyde_start=1.0,
    hyde_clip=1.0,
    bonus="log",
    sarsa="expected",
    replay="model",
    actor_weight="discounted",
    stop="episodes",
    max_episodes=150_000,
    last_state_tie=True,
)
"""The choices in the public code of the preceding article."""

OPTIONS: dict[str, Options] = {"paper": PAPER, "predecessor": PREDECESSOR}
"""The two settings of all open details, by name."""


def require_options(options: object) -> Options:
    """Return the argument; raise a `ValueError` unless it is an `Options` object."""
    if not isinstance(options, Options):
        raise ValueError(
            f"options: expected Options, such as PAPER or replace(PAPER, cut=0), got {options!r}."
        )
    return options


@cache
def describe(options: Options) -> str:
    """Return the name of the nearest of `OPTIONS`, followed by the options that differ from it.

    >>> describe(replace(OPTIONS["paper"], cut=0))
    'paper cut=0'
    """

    def words(name: str) -> str:
        return write_settings(name, vars(options), vars(OPTIONS[name]))

    return min((words(name) for name in OPTIONS), key=lambda text: len(text.split()))


@cache
def parse(label: str) -> Options:
    """Return the options with the description `label`; the inverse of `describe`.

    Raises
    ------
    ValueError
        If the name, an option or its value is unknown or out of range.
    """
    if not isinstance(label, str):
        raise ValueError(f"options: expected a text such as 'paper cut=0', got {label!r}.")
    if "escort_factor=" in label:
        raise ValueError(
            "options: escort_factor is an option of the update; set it there, as in "
            "'pg-es factor=drop'."
        )
    name, _, changes = label.strip().partition(" ")
    name = find_name("options", name, OPTIONS)
    # An option that is a string in one of them may be a string or a number.
    usual = vars(OPTIONS[name]) | {
        key: value
        for named in OPTIONS.values()
        for key, value in vars(named).items()
        if isinstance(value, str)
    }
    return replace(OPTIONS[name], **read_settings("options", changes, usual))


# Updates in the experiments


def program(name: str) -> str:
    """Return the update's string in the paper's program, in which ``pg-es`` drops its factor."""
    return "pg-es factor=drop" if name == "pg-es" else name


def configured(update: str | Update, options: Options) -> Update:
    """Return the update of a run, with `options.ties` unless the update specifies ``ties``."""
    chosen = as_update(update)
    if isinstance(update, Update) or "ties" not in chosen.options or " ties=" in update:
        return chosen
    return replace(chosen, ties=options.ties)  # type: ignore[type-var]


def start_of(update: Update, n_actions: int, options: Options) -> float:
    """Return the initial parameter of all actions; the initial policy is uniform."""
    if update.parametrization == "escort":
        return options.escort_start
    return update.uniform(n_actions)


PROGRAM = tuple(map(program, PAPER_UPDATES))
"""The strings of the five updates in the paper's experiments."""
