r"""The domains of the paper (section 4, appendix B.1) and registered domains.

Chain
    The states are :math:`s_0,\dots,s_{n-1}`, and the last state is terminal. Action :math:`a_1`
    jumps to the end and pays :math:`\beta\gamma^{n-2}`; action :math:`a_2` walks to the next state,
    and the last walk pays 1. Hence, for :math:`\beta\le1`,
    :math:`\mathcal J(\pi_\star)=\gamma^{n-2}`, and the policy that always jumps earns
    :math:`\beta\gamma^{n-2}`. The paper has :math:`\beta=0.8` in figure 1 and 0.7 in the appendix.
Cliff
    The chain with a third action :math:`a_3`, which ends the trajectory and pays nothing.
Duplicated chain
    The chain with :math:`|A|-1` copies of the walking action, all optimal.
Random MDP
    A Garnet MDP: each state-action pair has `branching` distinct successors, drawn uniformly, with
    the lengths of a uniform partition of [0, 1] as probabilities. One goal state is terminal, and
    entering it pays 1. The goal is the state with the smallest :math:`v_\star(s_0)` among those
    with :math:`v_\star(s_0) > \gamma^{50}`, so that the start is far from the goal, but not too
    far.

>>> DOMAINS["chain"].parameters
{'n_states': 10, 'beta': 0.8, 'discount': 0.99}

Custom domains
--------------
`register_domain` adds a function that returns a `FiniteMDP`. Sweeps, races and the command line
then accept its name, with the parameters of the function as settings.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from os import PathLike, fspath
from os.path import isfile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike

from pu_lib.arrays import (
    Floats,
    Seed,
    as_float,
    as_float_array,
    as_generator,
    as_int,
    safe_repr,
)
from pu_lib.environments import from_gymnasium, make_environment
from pu_lib.mdp import FiniteMDP
from pu_lib.settings import (
    did_you_mean,
    find_name,
    import_object,
    naming_place,
    read_settings,
    write_settings,
)
from pu_lib.updates import UPDATES, Update

if TYPE_CHECKING:
    import gymnasium

    ProcessLike: TypeAlias = FiniteMDP | gymnasium.Env[Any, Any] | str | PathLike[str]
    """The type of a process, or of an environment, a name or a path that stands for one."""
else:
    ProcessLike = object

__all__ = [
    "DOMAINS",
    "PAPER",
    "Baseline",
    "Domain",
    "as_process",
    "bandit",
    "chain",
    "cliff",
    "duplicated_chain",
    "from_gymnasium",
    "is_domain",
    "random_mdp",
    "read_domain",
    "register_domain",
]

Baseline = Literal["uniform", "first"]
IfNone = Literal["redraw", "last", "raise"]
_REDRAWS = 100  # the largest number of draws of a Random MDP
# Entries of a dense table of transitions: 1.6 GB, and construction makes a few copies.
_MOST_ENTRIES = 200_000_000
# Candidate goals times transitions, summed over draws: a few minutes of computing time. Drawing the
# transitions of one state-action pair takes as long as _DRAWING of these units.
_MOST_WORK = 50_000_000
_DRAWING = 5


def bandit(rewards: ArrayLike) -> FiniteMDP:
    """Return a one-state problem that ends after one action, so that q equals the rewards.

    The process has a second, terminal state and discount 0. Raises a `ValueError` unless there are
    at least two finite rewards.
    """
    paid = as_float_array("rewards", rewards)
    if paid.ndim != 1 or len(paid) < 2:
        raise ValueError(
            f"rewards: expected at least two numbers in a row, got shape {paid.shape}."
        )
    transitions = np.zeros((2, len(paid), 2))
    transitions[0, :, 1] = 1.0
    return FiniteMDP(
        transitions, np.stack([paid, np.zeros_like(paid)]), [1.0, 0.0], 0.0, np.array([False, True])
    )


def chain(
    n_states: int = 10, beta: float = 0.8, discount: float = 0.99, last_state_tie: bool = False
) -> FiniteMDP:
    r"""Return the chain of the paper's figure 1, in which action 0 jumps and action 1 walks.

    Parameters
    ----------
    n_states : int
        The number of states, at least 2, including the terminal state.
    beta : float
        The return of jumping at :math:`s_0` divided by the return of walking to the end.
    discount : float
        Discount factor in (0, 1).
    last_state_tie : bool
        Whether jumping pays 1 in the last state before the end, like walking. The code of the
        paper's predecessor has this reward; in the paper's figure jumping pays the same in every
        state.

    Returns
    -------
    FiniteMDP
        The chain.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    return _walk(n_states, beta, discount, copies=1, cliff=False, last_state_tie=last_state_tie)


def cliff(
    n_states: int = 7, beta: float = 0.8, discount: float = 0.99, last_state_tie: bool = False
) -> FiniteMDP:
    """Return the chain with a third action, which ends the trajectory and pays nothing.

    Parameters are those of `chain`. Raises a `ValueError` if one is out of range.
    """
    return _walk(n_states, beta, discount, copies=1, cliff=True, last_state_tie=last_state_tie)


def duplicated_chain(
    n_states: int = 10,
    n_actions: int = 3,
    beta: float = 0.8,
    discount: float = 0.99,
    last_state_tie: bool = False,
) -> FiniteMDP:
    """Return the chain with `n_actions` - 1 copies of the walking action, in which action 0 jumps.

    `n_actions` is at least 2; the other parameters are those of `chain`. Raises a `ValueError` if
    one is out of range.
    """
    copies = as_int("n_actions", n_actions, low=2) - 1
    return _walk(n_states, beta, discount, copies, cliff=False, last_state_tie=last_state_tie)


def _walk(
    n_states: int, beta: float, discount: float, copies: int, cliff: bool, last_state_tie: bool
) -> FiniteMDP:
    """Return a chain: action 0 jumps, `copies` actions walk and, if `cliff`, the last one falls."""
    n_states = as_int("n_states", n_states, low=2)
    as_float("beta", beta)
    discount = _open_unit(discount)
    end, n_actions = n_states - 1, 1 + copies + int(cliff)
    _check_size(n_states, n_actions)
    transitions = np.zeros((n_states, n_actions, n_states))
    rewards = np.zeros((n_states, n_actions))
    for state in range(end):
        transitions[state, :, end] = 1.0
        transitions[state, 1 : 1 + copies] = 0.0
        transitions[state, 1 : 1 + copies, state + 1] = 1.0
    rewards[:end, 0] = beta * _power(discount, n_states - 2)
    rewards[end - 1, 1 : 1 + copies] = 1.0
    if last_state_tie:
        rewards[end - 1, 0] = 1.0
    return FiniteMDP(
        transitions, rewards, np.eye(n_states)[0], discount, np.arange(n_states) == end
    )


def _check_size(n_states: int, n_actions: int) -> None:
    """Raise a `ValueError` if the table of transitions is too large for memory."""
    entries = n_states * n_actions * n_states
    if entries > _MOST_ENTRIES:
        raise ValueError(
            f"n_states: {n_states} states and {n_actions} actions make {entries} transition "
            f"probabilities; at most {_MOST_ENTRIES} are stored."
        )


def _open_unit(discount: float) -> float:
    """Return a discount in (0, 1), or raise a `ValueError`."""
    if not 0.0 < as_float("discount", discount) < 1.0:
        raise ValueError(f"discount: expected a number in (0, 1), got {discount}.")
    return float(discount)


def _power(base: float, exponent: int) -> float:
    """Return the correctly rounded power; the C library's power may differ in the last bit."""
    return float(Fraction(base) ** exponent)


def random_mdp(
    seed: Seed,
    n_states: int = 100,
    n_actions: int = 4,
    branching: int = 2,
    discount: float = 0.99,
    horizon: float = 50.0,
    if_none: IfNone = "redraw",
) -> FiniteMDP:
    r"""Return a random MDP (paper, section 4.1; Laroche et al. 2019, appendix B.1.3).

    The initial state is 0, and the process has `transition_rewards`.

    Parameters
    ----------
    seed : int, numpy.random.Generator or None
        The seed of the random draws; None for a seed from the operating system.
    n_states, n_actions : int
        The numbers of states and actions; the paper has 100 states and 4 actions.
    branching : int
        The number of successors of each state-action pair, from 1 to `n_states`.
    discount : float
        Discount factor in (0, 1).
    horizon : float
        A number of steps. The goal is the state with the smallest :math:`v_\star(s_0)` that is
        larger than :math:`\gamma^{\text{horizon}}`.
    if_none : {"redraw", "last", "raise"}
        What to do if no state qualifies as the goal: draw new transitions, take the last state (as
        in the predecessor's code), or raise an error.

    Returns
    -------
    FiniteMDP
        The process.

    Raises
    ------
    ValueError
        If a parameter is out of range, if no goal qualifies (after up to 100 draws with
        ``"redraw"``), or if trying every goal would take too long.
    """
    n_states = as_int("n_states", n_states, low=2)
    n_actions = as_int("n_actions", n_actions, low=1)
    branching = as_int("branching", branching, low=1, high=n_states)
    _check_size(n_states, n_actions)
    discount = _open_unit(discount)
    if not as_float("horizon", horizon) > 0.0:
        raise ValueError(f"horizon: expected a number of steps > 0, got {horizon}.")
    if if_none not in get_args(IfNone):
        raise ValueError(f"if_none: expected one of {get_args(IfNone)}, got {if_none!r}.")
    rng = as_generator(seed)
    nearest = 0.0
    for _ in range(_draws(n_states, n_actions, branching)):
        garnet = _garnet(rng, n_states, n_actions, branching)
        # One goal at a time: all of them together would need memory of order n_states^3.
        values = np.fromiter(_values_of_goals(garnet, discount), np.float64)
        near = values > discount**horizon
        if np.any(near):
            goal = 1 + int(np.argmin(np.where(near, values, np.inf)))
            return _with_goal(garnet, goal, discount, of_transitions=True)
        if if_none == "last":
            return _with_goal(garnet, n_states - 1, discount, of_transitions=True)
        nearest = max(nearest, float(values.max()))
        if if_none == "raise":
            break
    raise ValueError(
        f"random_mdp: no goal has v*(s_0) > {discount**horizon:.6g}; the best has {nearest:.6g}."
    )


def _draws(n_states: int, n_actions: int, branching: int) -> int:
    """Return the largest number of draws, at most 100, with total work of at most `_MOST_WORK`."""
    work = n_states * n_actions * (n_states * branching + _DRAWING)
    if work > _MOST_WORK:
        raise ValueError(
            f"n_states: to find the goal each of {n_states} states is tried, in a process of "
            f"{n_states * n_actions * branching} transitions; that takes {work} steps of work, "
            f"{_MOST_WORK} at most are made."
        )
    return min(_REDRAWS, _MOST_WORK // work)


@dataclass(frozen=True)
class _Garnet:
    """Successors and their probabilities as arrays of shape (n_states, n_actions, branching)."""

    successors: np.ndarray[Any, np.dtype[np.int64]]
    probabilities: Floats


def _garnet(rng: np.random.Generator, n_states: int, n_actions: int, branching: int) -> _Garnet:
    """Draw successors, and draw their probabilities as a uniform partition of [0, 1]."""
    successors = np.zeros((n_states, n_actions, branching), dtype=np.int64)
    cuts = np.zeros((n_states, n_actions, branching + 1))
    cuts[:, :, -1] = 1.0
    for state in range(n_states):
        for action in range(n_actions):
            successors[state, action] = rng.choice(n_states, size=branching, replace=False)
            cuts[state, action, 1:-1] = np.sort(rng.random(branching - 1))
    return _Garnet(successors, np.diff(cuts))


def _values_of_goals(garnet: _Garnet, discount: float) -> Iterator[float]:
    """Yield the optimal value of state 0 for each goal other than state 0."""
    for goal in range(1, len(garnet.successors)):
        yield float(_with_goal(garnet, goal, discount).optimal().v[0])


def _with_goal(
    garnet: _Garnet, goal: int, discount: float, of_transitions: bool = False
) -> FiniteMDP:
    """Return the process that ends with reward 1 on entering `goal`.

    The rewards are expected rewards or, if `of_transitions`, a table of shape (n_states, n_actions,
    n_states).
    """
    n_states, n_actions, branching = garnet.successors.shape
    probabilities = garnet.probabilities.copy()
    probabilities[goal] = 0.0
    edges = np.arange(0, probabilities.size + 1, branching)
    transitions = scipy.sparse.csr_array(
        (probabilities.ravel(), garnet.successors.ravel(), edges),
        shape=(n_states * n_actions, n_states),
    )
    if of_transitions:
        rewards = np.zeros((n_states, n_actions, n_states))
        rewards[:, :, goal] = 1.0
    else:
        rewards = np.where(garnet.successors == goal, probabilities, 0.0).sum(axis=2)
    return FiniteMDP(
        transitions, rewards, np.eye(1, n_states)[0], discount, np.arange(n_states) == goal
    )


# The registry


@dataclass(frozen=True)
class Domain:
    """An entry of `DOMAINS`.

    Attributes
    ----------
    name : str
        The name in tables and on the command line, which is a single word.
    make : callable
        A function that returns the process. The keyword parameters of the function and their
        defaults are the parameters of the domain. The process must depend only on the parameters,
        because processes are cached by parameters.
    title : str
        The name in figures, or an empty string to use `name`.
    baseline : {"uniform", "first"}
        The policy with normalised performance 0: the uniform policy, or always action 0.
    target : float
        The normalised performance that a run must reach.
    drawn : bool
        Whether each run has its own random process. If so, the first argument of `make` is a
        generator.
    details : tuple of str
        Parameters of `make` that are options of the experiments (`pu_lib.experiments.options`)
        instead of parameters of the domain.
    axes : mapping of str to str
        Labels of parameters on the axes of figures. A parameter without a label is shown by name.
    """

    name: str
    make: Callable[..., FiniteMDP]
    title: str = ""
    baseline: Baseline = "uniform"
    target: float = 0.95
    drawn: bool = False
    details: tuple[str, ...] = ()
    axes: Mapping[str, str] = field(default_factory=dict)

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the domain with their defaults, in the order of `make`."""
        return dict(self._defaults)

    @cached_property  # every run of a sweep reads them
    def _defaults(self) -> dict[str, Any]:
        return {
            name: parameter.default
            for name, parameter in inspect.signature(self.make).parameters.items()
            if parameter.default is not inspect.Parameter.empty and name not in self.details
        }

    def label(self, **parameters: Any) -> str:
        """Return the name and the given parameters as text for `read_domain`: ``chain beta=0.7``.

        Raises a `ValueError` if the domain has no parameter of that name.
        """
        for name in parameters:
            if name not in self.parameters:
                raise ValueError(
                    f"{name}: {self.name} has no such parameter; it has "
                    f"{', '.join(self.parameters)}."
                )
        return write_settings(self.name, parameters, self.parameters)


_DOMAINS: dict[str, Domain] = {}
DOMAINS: Mapping[str, Domain] = MappingProxyType(_DOMAINS)
"""The domains by name: the paper's domains, then registered domains in order of registration."""


def register_domain(domain: Domain) -> Domain:
    """Add a domain to `DOMAINS`, so that sweeps, races and the command line accept it.

    Parameters
    ----------
    domain : Domain
        The entry.

    Returns
    -------
    Domain
        The same entry, unchanged.

    Raises
    ------
    TypeError
        If `domain` is not a `Domain`.
    ValueError
        If the name is not a single word or is already in use, or a parameter has no default or
        cannot be written as a word. A function that is defined again, as in a notebook, replaces
        its earlier definition.

    Examples
    --------
    >>> def bet(stake: float = 1.0) -> FiniteMDP:
    ...     return bandit([0.0, stake])
    >>> entry = register_domain(Domain("bet", bet, "A bet"))
    >>> read_domain("bet stake=2")[1]
    {'stake': 2.0}
    >>> _ = _DOMAINS.pop("bet")
    """
    if not isinstance(domain, Domain):
        raise TypeError(f"domain: expected a Domain, got {domain!r}.")
    if not domain.name or domain.name.split() != [domain.name]:
        raise ValueError(f"domain: expected a name of one word, got {domain.name!r}.")
    if domain.name in _DOMAINS and not _replaces(domain.make, _DOMAINS[domain.name].make):
        raise ValueError(f"domain: the name {domain.name!r} is taken.")
    if domain.baseline not in get_args(Baseline):
        raise ValueError(
            f"baseline: expected one of {get_args(Baseline)}, got {domain.baseline!r}."
        )
    for name, default in domain.parameters.items():
        is_word = isinstance(default, str) and default.split() == [default]
        if not is_word and not (isinstance(default, (bool, int, float)) and default == default):
            raise ValueError(f"{name}: a parameter is a number, a boolean or a word: {default!r}.")
    required = [
        name
        for name, parameter in inspect.signature(domain.make).parameters.items()
        if parameter.default is inspect.Parameter.empty
    ]
    if len(required) != domain.drawn:
        expected = "the random generator alone" if domain.drawn else "none, so give each a default"
        raise ValueError(
            f"domain: parameters of the maker of {domain.name!r} without a default: expected "
            f"{expected}, got {', '.join(required) or 'none'}."
        )
    _DOMAINS[domain.name] = domain
    return domain


def _replaces(new: Callable[..., FiniteMDP], old: Callable[..., FiniteMDP]) -> bool:
    """Return whether `new` is the function `old` or a new definition of it."""
    places = [(make.__module__, getattr(make, "__qualname__", "")) for make in (new, old)]
    return new is old or (
        places[0] == places[1] and new.__module__ != __name__ and "<lambda>" not in places[0][1]
    )


def read_domain(label: str) -> tuple[Domain, dict[str, Any]]:
    """Return the domain and the parameters in text such as ``chain beta=0.7``.

    Upper and lower case of the name are equivalent. Raises a `ValueError` if the domain or a
    parameter is unknown.

    Examples
    --------
    >>> domain, parameters = read_domain("Chain beta=0.7")
    >>> domain.title, parameters
    ('Chain', {'beta': 0.7})
    """
    if not isinstance(label, str):
        raise ValueError(f"domain: expected a name and parameters, got {safe_repr(label)}.")
    name, _, rest = label.strip().partition(" ")
    name = find_name("domain", name, DOMAINS)
    return DOMAINS[name], read_settings(name, rest, DOMAINS[name].parameters)


def is_domain(text: str) -> bool:
    """Return whether a text begins with the name of a domain, in upper or lower case."""
    try:
        find_name("domain", text.strip().partition(" ")[0], DOMAINS)
    except ValueError:
        return False
    return True


def _imported(place: str) -> Any:
    """Return the object at ``module:NAME``, or the result of calling it if it is a function.

    Gymnasium's ids may have the same form; `place` is returned unchanged if the module has no such
    name.
    """
    value = import_object("process", place)
    if value is None:
        return place
    if not callable(value):
        return value
    with naming_place("process", place, "failed when called without arguments"):
        return value()


def is_path(process: Any) -> bool:
    """Return whether a process is given as the path of a file.

    Text is a path if it ends in ``.npz``, in any case, or names a file but no domain.
    """
    if not isinstance(process, str):
        return isinstance(process, PathLike)
    return process.lower().endswith(".npz") or (not is_domain(process) and isfile(process))


def as_process(process: ProcessLike) -> FiniteMDP:
    """Return the process that an environment, a name or a path stands for.

    Parameters
    ----------
    process : FiniteMDP, gymnasium.Env, str or path
        A process, which is returned unchanged; an environment or its id; a domain with its
        parameters, as in ``chain beta=0.7`` (a random process is drawn with seed 0); the path of
        an ``.npz`` file written by `FiniteMDP.save`; or ``module:NAME``, a process, an
        environment, or a function without arguments that returns one of them.

    Returns
    -------
    FiniteMDP
        The process.

    Raises
    ------
    ValueError
        If `process` is none of these, or the file or module cannot be read.
    """
    if isinstance(process, FiniteMDP):
        return process
    if isinstance(process, Update) or (isinstance(process, str) and process in UPDATES):
        raise ValueError(
            f"process: {safe_repr(process)} is an update; the process comes first, as in "
            "run(process, update, n_steps)."
        )
    if is_path(process):
        if not isfile(process):
            raise ValueError(f"process: {fspath(process)}: there is no such file.")
        return FiniteMDP.load(process)
    if isinstance(process, str) and is_domain(process):
        domain, parameters = read_domain(process)
        drawn_by = (np.random.default_rng(0),) if domain.drawn else ()
        return domain.make(*drawn_by, **parameters)
    if isinstance(process, str) and ":" in process:
        process = _imported(process)
        if isinstance(process, FiniteMDP):
            return process
    if not isinstance(process, str) and not (
        hasattr(process, "P") or hasattr(process, "unwrapped")
    ):
        raise ValueError(
            "process: expected a FiniteMDP, a Gymnasium environment, a name or a path, got "
            f"{safe_repr(process)}."
        )
    try:
        env = make_environment(process) if isinstance(process, str) else process
    except ValueError as error:
        raise ValueError(
            f"process: unknown {safe_repr(process)}"
            f"{did_you_mean(str(process).partition(' ')[0], DOMAINS)} "
            f"There are: {', '.join(DOMAINS)}, .npz files and ids of Gymnasium environments; "
            f"{str(error).removeprefix('env: ')}"
        ) from None
    try:
        return from_gymnasium(env)
    except ValueError as error:
        raise ValueError(f"process: {str(error).removeprefix('env: ')}") from None


_CHAIN_AXES = {"n_states": "number of states |S|", "n_actions": "number of actions |A|"}

register_domain(Domain("random-mdp", random_mdp, "Random MDPs", drawn=True, axes=_CHAIN_AXES))
for _name, _make_chain, _title in (
    ("chain", chain, "Chain"),
    ("cliff", cliff, "Cliff"),
    ("duplicated-chain", duplicated_chain, "Duplicated actions"),
):
    register_domain(
        Domain(
            _name,
            _make_chain,
            _title,
            baseline="first",
            target=0.5,
            details=("last_state_tie",),
            axes=_CHAIN_AXES,
        )
    )

PAPER = tuple(DOMAINS)
"""The names of the paper's domains."""
