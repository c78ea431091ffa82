r"""What the paper's algorithm leaves open, and the settings in use (paper, appendix B.2).

The description of Jekyll & Hyde does not fix every detail of a run. Each such detail is a field of
`Options`; `PRESETS` holds two settings of all of them:

- ``paper``: what the paper says, and where it says nothing the choice closest to its words. One
  choice departs from the words, because they cannot work: Hyde's values "initialised as the
  critic", at 0, make every tried action (whose bonus is positive) better than every untried one,
  so that Hyde repeats itself instead of exploring. Here they start at :math:`1/(1-\gamma)`, the
  largest discounted sum of bonuses there can be.
- ``predecessor``: what the public code of the preceding article of the same authors does. Its
  cap of 150 000 episodes is the one in the configuration of its learning-rate figure; the shape of
  that figure at the largest rates, where a third of the runs never passes, agrees with it.

A `Scheme` gives the probability :math:`\epsilon_t` that Hyde controls the next trajectory and the
probability :math:`o_t` that the update replays one of Hyde's transitions. Both are
:math:`\min(1, c/t^\alpha)` with t the number of the step, from 1.
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
    "PAPER",
    "PREDECESSOR",
    "PRESETS",
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
        Power of the step number.
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
        Its name in tables.
    epsilon : Schedule
        :math:`\epsilon_t`, the probability that Hyde controls the next trajectory.
    off_policy : Schedule
        :math:`o_t`, the probability to replay one of Hyde's transitions.
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
    """Return the scheme of that name.

    Raises
    ------
    ValueError
        If there is none.
    """
    known = {**SCHEMES, **PUBLISHED_SCHEMES}
    return known[find_name("scheme", name, known)]


# The norm of escort parameters never falls (`pu_lib.engine.rows.rescale` counts on it).
_SMALLEST_START = 1e-10


@dataclass(frozen=True)
class Options:
    r"""The open details of a run.

    Attributes
    ----------
    hyde_start : float or "bound"
        Hyde's initial values; ``"bound"`` is :math:`1/(1-\gamma)`.
    hyde_clip : float
        Hyde's values are cut at this number after each update; infinite for no cut.
    bonus : {"root", "log"}
        Hyde's reward, with n the number of visits of (s, a): :math:`1/\sqrt n`, or
        :math:`\sqrt{\log(e+1)/(0.001+n)}` with e the number of finished trajectories.
    sarsa : {"sampled", "expected"}
        The critic's target at the successor: the value of an action drawn from the current policy,
        or the mean over the current policy.
    replay : {"stored", "model"}
        The replayed sample: a stored transition of the chosen personality, or its state and action
        with a successor drawn from all successors seen after them.
    actor_weight : {"one", "discounted"}
        Weight of the actor's step: :math:`\eta`, or :math:`\eta\,e\,\gamma^k/\sum\gamma^k` with k
        the number of steps since the trajectory began, summed over all steps so far.
    ties : {"first", "random", "leave"}
        The greedy action of the cross-entropy updates where several are best.
    escort_start : float
        Initial value of every escort parameter, of modulus between 1e-10 and 1e10.
    cut : int
        Trajectories are cut after this many steps, without ending: the critic bootstraps. Zero
        for no cut.
    stop : {"steps", "episodes"}
        ``"steps"``: the policy is evaluated at step t + max(25 or 100, 3 % of t), the first value
        where the states have an order; in a race at step t + max(1, 3 % of t). ``"episodes"``: it
        is evaluated at every 0.1 % of `max_episodes`, and the mixture with Hyde's greedy policy
        must pass too.
    max_episodes : int
        Cap on the number of trajectories, and the unit of the evaluations by episodes; zero for
        no cap.
    last_state_tie : bool
        Whether on chains both actions pay 1 in the last state before the end.
    precision : {"scaled", "float64"}
        ``"scaled"``: a parameter of the escort update, which a step multiplies, has an exponent of
        its own, so that no number of steps rounds it to 0. ``"float64"``: it is a plain float, as
        in any program that does nothing about it.
    critic_rate, hyde_rate, critic_start : float
        Learning rates of the critic and of Hyde, initial values of the critic.
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
            raise ValueError(f"cut, max_episodes: expected numbers >= 0, got {self}.")
        if self.stop == "episodes" and self.max_episodes < 1:
            raise ValueError("max_episodes: stop='episodes' needs a cap on the episodes.")
        if self.escort_start == 0.0:
            raise ValueError("escort_start: the escort policy is undefined at all-zero parameters.")
        if not _SMALLEST_START <= abs(self.escort_start) <= 1.0 / _SMALLEST_START:
            raise ValueError(
                f"escort_start: expected a modulus from {_SMALLEST_START:g} to "
                f"{1.0 / _SMALLEST_START:g}, got {self.escort_start:g}."
            )


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Options)


def _check_kind(name: str, hint: Any, value: object) -> None:
    """Refuse a value that is not of the kind a field is declared with."""
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
    """Return the words a field accepts, if any."""
    if get_origin(hint) is Literal:
        return tuple(get_args(hint))
    return tuple(word for part in get_args(hint) for word in _choices(part))


PAPER = Options()
"""What the paper says, and the choice closest to its words where it says nothing."""

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
"""What the public code of the preceding article does."""

PRESETS: dict[str, Options] = {"paper": PAPER, "predecessor": PREDECESSOR}
"""The two settings of all open details by name; see the module's text."""


def require_options(options: object) -> Options:
    """Return the options; raise a `ValueError` if the argument is something else."""
    if not isinstance(options, Options):
        raise ValueError(
            f"options: expected Options, such as PAPER or replace(PAPER, cut=0), got {options!r}."
        )
    return options


@cache
def describe(options: Options) -> str:
    """Return the name of the nearest preset, followed by what differs from it.

    >>> describe(replace(PRESETS["paper"], cut=0))
    'paper cut=0'
    """

    def words(name: str) -> str:
        return write_settings(name, vars(options), vars(PRESETS[name]))

    return min((words(name) for name in PRESETS), key=lambda text: len(text.split()))


@cache
def parse(label: str) -> Options:
    """Return the options whose description is `label`; the inverse of `describe`.

    Raises
    ------
    ValueError
        If the preset, an option or its value is unknown or out of range.
    """
    if not isinstance(label, str):
        raise ValueError(f"preset: expected a name and changes, got {label!r}.")
    if "escort_factor=" in label:
        raise ValueError(
            "preset: escort_factor is an option of the update, 'pg-es' or 'pg-es factor=drop'."
        )
    name, _, changes = label.strip().partition(" ")
    name = find_name("preset", name, PRESETS)
    # Where one preset has a word, numbers and words may stand in any.
    usual = vars(PRESETS[name]) | {
        key: value
        for preset in PRESETS.values()
        for key, value in vars(preset).items()
        if isinstance(value, str)
    }
    return replace(PRESETS[name], **read_settings("preset", changes, usual))


# Updates in the experiments


def program(name: str) -> str:
    """Return an update as the paper's experiments run it: ``pg-es`` drops its factor."""
    return "pg-es factor=drop" if name == "pg-es" else name


def configured(update: str | Update, options: Options) -> Update:
    """Return the update of a run, in which the options break ties if a string does not say how."""
    chosen = as_update(update)
    if isinstance(update, Update) or "ties" not in chosen.options or " ties=" in update:
        return chosen
    return replace(chosen, ties=options.ties)  # type: ignore[type-var]


def start_of(update: Update, n_actions: int, options: Options) -> float:
    """Return the parameter that all actions start from, so that the first policy is uniform."""
    if update.parametrization == "escort":
        return options.escort_start
    return update.uniform(n_actions)


PROGRAM = tuple(map(program, PAPER_UPDATES))
"""The paper's five updates as its experiments run them."""
