r"""Learning in environments without a table, by `reset` and `step`.

`learn` is the algorithm of `pu_lib.experiments.jekyll_hyde` for environments whose dynamics are
unknown. Its tables grow by a row for each new state. If the environment has a table, and its
episodes consume no random numbers of the learner, a run has the same bits as a run of the compiled
loop with the same seed, scheme, critic and cut, except that the parameters of the escort update are
plain floats.

The exact performance of a policy is unknown, too. Instead, the policy plays a number of episodes in
a copy of the environment, and the mean of their returns is reported. Returns are sums of rewards
without discount, as usual for environments, whereas the values of the critic are discounted.

Updates of the library take the steps of their kernels. Other updates take the steps of `advance`,
which are about three times slower.
"""

from __future__ import annotations

import inspect
import json
import math
import signal
import warnings
import zlib
from array import array
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import Floats, as_float, as_int, underflow_to_zero
from pu_lib.environments import Encoder, Environment, Player
from pu_lib.experiments import thresholds
from pu_lib.experiments.jekyll_hyde import seed_state
from pu_lib.experiments.lines import STATISTICS
from pu_lib.experiments.options import PAPER, SCHEMES, Scheme, start_of
from pu_lib.experiments.race import Race, RaceEntry
from pu_lib.experiments.reference import (
    Row,
    Stream,
    escort_of_row,
    greedy_action,
    index_at,
    probability_at,
    softmax_of_row,
)
from pu_lib.experiments.thresholds import Summary, summarise
from pu_lib.extras import naming_the_extra
from pu_lib.progress import progress_bar
from pu_lib.records import Record, axes_of, described, draw_band
from pu_lib.settings import as_list, find_name
from pu_lib.updates import UPDATES, Update, as_update, label_of, name_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

__all__ = ["Learned", "compare", "learn"]

_CRITICS = ("sampled", "expected")
_MOST_STEPS = 10**9
_POLICIES: dict[str, Callable[[Row], Row]] = {
    "softmax": softmax_of_row,
    "escort": escort_of_row,
    "direct": list,
}


@dataclass(frozen=True)
class _Setting:
    """The arguments of a run, and its number."""

    env: Environment
    update: Update
    steps: int
    step_size: float
    scheme: Scheme
    critic: str
    critic_rate: float
    discount: float
    encode: Encoder | None
    cut: int
    evaluate_every: int
    episodes: int
    seed: int
    name: str = ""
    env_options: Mapping[str, str] = field(default_factory=dict)
    run: int = 0
    target: float = math.inf

    @property
    def words(self) -> dict[str, Any]:
        """The settings that `about` records beside updates, step sizes and runs."""
        kept = ["env_options", "steps", "critic", "critic_rate", "discount", "cut"]
        kept += ["evaluate_every", "episodes", "seed"]
        return {
            **{name: getattr(self, name) for name in kept},
            "scheme": self.scheme.name,
            "encode": None if self.encode is None else _text_of(self.encode),
        }

    def seed_of(self, *key: int) -> Any:
        """Return the seed of the environment or of an evaluation in this run."""
        return np.random.SeedSequence(
            self.seed, spawn_key=(zlib.crc32(self.name.encode()), self.run, *key)
        )


def _text_of(encode: Encoder) -> str:
    """Return the source text of a function, or its `repr` if the source cannot be read."""
    try:
        return inspect.getsource(encode)
    except (OSError, TypeError):
        return repr(encode)


class Learner:
    """Jekyll & Hyde in an environment, with tables that grow by a row for each new state.

    The order of random numbers and of roundings is that of `pu_lib.experiments.reference`.

    Attributes
    ----------
    rows : dict of state to int
        The row of each state in the tables, in the order in which states were first seen.
    theta, pi, q, visits : list of lists
        The parameters, the policy, the values of the critic, and the number of visits of each
        action.
    """

    def __init__(self, setting: _Setting, player: Player, stream: Stream) -> None:
        self._setting, self._player, self._stream = setting, player, stream
        self._update, scheme = setting.update, setting.scheme
        self._explores = scheme.epsilon.c > 0.0 or scheme.off_policy.c > 0.0
        self._start = start_of(self._update, player.n_actions, PAPER)
        # The kernels of the library are checked against `advance` by tests; a user's is not used.
        known = type(self._update).__module__.startswith("pu_lib.")
        self._kernel: Any = self._update.kernel if known else None
        self._ties = self._update.options.get("ties", "first")
        self.rows: dict[Hashable, int] = {}
        self.theta: list[Row] = []
        self.pi: list[Row] = []
        self.q: list[Row] = []
        self.visits: list[list[int]] = []
        self._hyde: list[Row] = []
        self._memory: list[Any] = []
        self._transitions: dict[tuple[int, int, float, int], int] = {}
        self._seen: list[tuple[int, int, float, int]] = []
        self._buffers = array("q"), array("q")  # of Jekyll and Hyde
        self._t, self._hyde_acts = 0, False
        seed = int(setting.seed_of(2).generate_state(1)[0])
        self._state = self._row(player.reset(seed))

    def _row(self, state: Hashable) -> int:
        """Return the row of a state, and add it to the tables if it is new."""
        row = self.rows.setdefault(state, len(self.rows))
        if row == len(self.pi):
            A = self._player.n_actions
            self.theta.append([self._start] * A)
            self.pi.append([1.0 / A] * A)
            self.q.append([PAPER.critic_start] * A)
            self.visits.append([0] * A)
            self._hyde.append([1.0 / (1.0 - self._setting.discount)] * A)
            memory = self._update._memory(1, n_actions=A)
            self._memory.append(None if memory is None else memory[0])
        return row

    def step(self) -> None:
        """Take one step in the environment and learn from one stored transition."""
        setting, stream, s = self._setting, self._stream, self._state
        self._t += 1
        # Take an action and store the transition; the successor -1 is the end.
        u = stream.uniform()
        a = greedy_action(self._hyde[s], u) if self._hyde_acts else index_at(u, self.pi[s])
        key, reward, terminated, over = self._player.step(a)
        entered = -1 if terminated else self._row(key)
        transition = s, a, reward, entered
        code = self._transitions.setdefault(transition, len(self._seen))
        if code == len(self._seen):
            self._seen.append(transition)
        self._buffers[self._hyde_acts].append(code)
        self.visits[s][a] += 1

        # Replay
        buffer = self._buffers[0]
        if self._explores:
            u = stream.uniform()
            if self._buffers[1] and u < probability_at(setting.scheme.off_policy, self._t):
                buffer = self._buffers[1]
        x, b, r, after = self._seen[buffer[stream.below(len(buffer))]]

        # Learn
        if self._explores:
            top = 0.0 if after < 0 else max(self._hyde[after])
            bonus = 1.0 / math.sqrt(self.visits[x][b])
            error = bonus + setting.discount * top - self._hyde[x][b]
            self._hyde[x][b] += PAPER.hyde_rate * error
        ahead = self._ahead(after)
        self.q[x][b] += setting.critic_rate * (r + setting.discount * ahead - self.q[x][b])
        self._improve(x)

        # End of the trajectory
        self._state = entered
        if over:
            self._state = self._row(self._player.reset())
            if self._explores:
                u = stream.uniform()
                self._hyde_acts = u < probability_at(setting.scheme.epsilon, self._t)

    def _ahead(self, after: int) -> float:
        """Return the critic's value of a successor, for a drawn action or as the policy's mean."""
        if self._setting.critic == "sampled":
            u = self._stream.uniform()
            return 0.0 if after < 0 else self.q[after][index_at(u, self.pi[after])]
        total = 0.0
        if after >= 0:
            for p, y in zip(self.pi[after], self.q[after], strict=True):
                total += p * y
        return total

    def _improve(self, x: int) -> None:
        """Take the step of the update at row x, and set its policy."""
        theta, q, weight = self.theta[x], self.q[x], self._setting.step_size
        if self._kernel is None:
            theta = self._advance(x, weight)
        else:
            top = max(q)
            best = [a for a, y in enumerate(q) if y == top]
            if len(best) > 1 and self._ties == "leave":
                return
            drawn = len(best) > 1 and self._ties == "random"
            chosen = best[self._stream.below(len(best)) if drawn else 0]
            try:
                self._kernel(theta, self.pi[x], q, chosen, weight, len(q))
                if math.isfinite(sum(theta)):
                    self.pi[x] = _POLICIES[str(self._update.parametrization)](theta)
            except ZeroDivisionError:  # all parameters of an escort policy underflow
                theta[0] = math.nan
        if not math.isfinite(sum(theta) + sum(q)):
            raise ValueError(
                f"step_size: parameters or values leave the range of floats (1.8e308): {theta} and "
                f"{q}; use a smaller step size."
            )
        if not (min(self.pi[x]) >= 0.0 and abs(sum(self.pi[x]) - 1.0) <= 1e-9):
            raise ValueError(
                f"update: the steps of {self._update.name} give no policy: expected probabilities "
                f"(non-negative, sum 1), got {self.pi[x]}."
            )

    def _advance(self, x: int, weight: float) -> Row:
        """Take the step of `advance` at row x, set its policy, and return the parameters."""
        update, rng, memory = self._update, self._stream.generator(), self._memory[x]
        theta, q = np.array(self.theta[x]), np.array(self.q[x])
        theta, self._memory[x] = update._move(theta, q, np.array(weight), rng, memory)
        self.theta[x] = theta.tolist()
        self.pi[x] = update._unchecked_policy(theta).tolist()
        return self.theta[x]

    def performance(self, player: Player, number: int) -> float:
        """Return the mean return of episodes with the policy; `number` counts the evaluations.

        The policy is uniform in states that the learner has not seen.
        """
        seed, words = self._setting.seed_of(3, number).spawn(2)
        stream = Stream(words.generate_state(4, np.uint64))
        state, total = player.reset(int(seed.generate_state(1)[0])), 0.0
        uniform = [1.0 / player.n_actions] * player.n_actions
        for episode in range(self._setting.episodes):
            over = False
            if episode:
                state = player.reset()
            while not over:
                pi = self.pi[self.rows[state]] if state in self.rows else uniform
                state, reward, _, over = player.step(index_at(stream.uniform(), pi))
                total += reward
        return total / self._setting.episodes


@dataclass(frozen=True)
class _Run:
    """The result of a run: the returns at its checkpoints and, unless it raced, its tables."""

    returns: list[float]
    passed: bool
    states: tuple[Hashable, ...] = ()
    policies: Floats = field(default_factory=lambda: np.empty(0))
    q: Floats = field(default_factory=lambda: np.empty(0))
    visits: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))


@underflow_to_zero
def _run(setting: _Setting) -> _Run:
    """Compute a run, which ends at the first mean return that reaches the target."""
    stream = Stream(seed_state(setting.seed, setting.name, setting.run))
    player, other = (Player(setting.env, setting.encode, setting.cut) for _ in range(2))
    returns: list[float] = []
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            learner = Learner(setting, player, stream)
            for t in range(1, setting.steps + 1):
                learner.step()
                if t % setting.evaluate_every == 0:
                    returns.append(learner.performance(other, len(returns)))
                    if returns[-1] >= setting.target:
                        return _Run(returns, True)
    except ValueError as error:
        raise ValueError(
            f"run {setting.run} of {name_of(setting.update)} with step size {setting.step_size:g} "
            f"in {setting.name}: {error}"
        ) from None
    if setting.target < math.inf:
        return _Run(returns, False)
    return _Run(
        returns,
        False,
        tuple(learner.rows),
        np.array(learner.pi),
        np.array(learner.q),
        np.array(learner.visits),
    )


def _run_pickled(pickled: bytes) -> _Run:
    """Compute a run in another process."""
    import cloudpickle

    return _run(cloudpickle.loads(pickled))


def _finished(
    settings: Sequence[_Setting], runs: int, workers: int, progress: bool | None
) -> list[list[_Run]]:
    """Compute the runs of all settings; return a list for each run with one entry per setting.

    An interrupt ends the computation with a warning. The runs that are complete are returned, and
    if there are none, the interrupt is raised again.
    """
    tasks = [replace(setting, run=run) for run in range(runs) for setting in settings]
    done: dict[int, _Run] = {}
    try:
        with progress_bar(len(tasks), progress) as bar:
            for number, result in _computed(tasks, workers):
                done[number] = result
                bar.update(1)
    except KeyboardInterrupt:
        pass
    n = len(settings)
    rows = [[done.get(i) for i in range(run * n, (run + 1) * n)] for run in range(runs)]
    complete = [[result for result in row if result] for row in rows if None not in row]
    if not complete:
        raise KeyboardInterrupt
    if len(complete) < runs:
        warnings.warn(f"interrupted after {len(complete)} of {runs} runs.", stacklevel=3)
    return complete


def _computed(tasks: Sequence[_Setting], workers: int) -> Iterator[tuple[int, _Run]]:
    """Yield the numbers of tasks with their results, from this process or from others."""
    if workers == 1:
        for number, task in enumerate(tasks):
            yield number, _run(task)
        return
    import cloudpickle  # Gymnasium requires it

    # Processes, because threads would take turns in Python code. An interrupt kills them silently.
    pool = ProcessPoolExecutor(
        min(workers, len(tasks)),
        get_context("spawn"),
        signal.signal,
        (signal.SIGINT, signal.SIG_DFL),
    )
    try:
        futures = {
            pool.submit(_run_pickled, cloudpickle.dumps(task)): number
            for number, task in enumerate(tasks)
        }
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BrokenProcessPool:
        raise ValueError(
            "workers: a process ended before its run; in a script, make the call under "
            'if __name__ == "__main__":, or use workers=1.'
        ) from None
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Record):
    """The results of `learn`: learning curves, policies and values of several runs.

    Attributes
    ----------
    steps : ndarray of int, shape (n_evaluations,)
        The numbers of steps after which the policy was evaluated.
    returns : ndarray, shape (n_runs, n_evaluations)
        The mean return of the episodes of each evaluation.
    states : tuple
        The states that any run has seen.
    policies, q : ndarray, shape (n_runs, n_states, n_actions)
        The last policy and the last values of the critic. They are uniform and 0 in a state that
        the run has not seen.
    visits : ndarray of int, shape (n_runs, n_states, n_actions)
        The number of times the run took each action in each state.
    label : str
        The short name of the update.
    about : mapping
        What made the result: the environment, the update with its source if it is not of the
        library, the settings, the seed, and versions.
    """

    steps: NDArray[np.int64]
    returns: Floats
    states: tuple[Hashable, ...]
    policies: Floats
    q: Floats
    visits: NDArray[np.int64]
    label: str = ""
    about: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        n_runs, n_states, n_actions = self.policies.shape
        return (
            f"{self.label}, {n_runs} run{'s' * (n_runs > 1)} of {self.about['steps']} steps in "
            f"{self.about['process']}, {n_states} states and {n_actions} actions: mean return "
            f"{self.returns[:, -1].mean():.4g}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Return a table of the evaluations.

        Returns
        -------
        pandas.DataFrame
            A table with the columns ``run``, ``step`` and ``return``.

        Raises
        ------
        ModuleNotFoundError
            If pandas is not installed.
        """
        with naming_the_extra():
            import pandas as pd
        runs, number = np.indices(self.returns.shape)
        return pd.DataFrame(
            {
                "run": runs.ravel(),
                "step": self.steps[number.ravel()],
                "return": self.returns.ravel(),
            }
        )

    def plot(self, ax: Axes | None = None, statistic: str = "median", **style: Any) -> Axes:
        """Draw the mean return of an evaluation against the number of steps and return the axes.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            The axes. The default is axes in a new figure.
        statistic : {"median", "mean", "iqm"}
            The median, the mean or the interquartile mean of the runs. The band has its 95 %
            intervals, for medians from 6 runs and for means from 100.
        **style
            Further arguments of `matplotlib.axes.Axes.plot`, such as ``color`` or ``label``.

        Returns
        -------
        matplotlib.axes.Axes
            The axes with the learning curve.

        Raises
        ------
        ValueError
            If the statistic is unknown.
        ModuleNotFoundError
            If matplotlib is not installed.
        """
        statistic, ax = find_name("statistic", statistic, STATISTICS), axes_of(ax)
        curve = thresholds.estimate(self.returns, statistic)
        name, label = self.about["updates"][0], self.label
        draw_band(ax, name, self.steps, curve, **{"label": label, **style})
        ax.set(xlabel="steps", ylabel=f"mean return of an evaluation ({STATISTICS[statistic]})")
        ax.legend()
        return ax

    def _arrays(self) -> dict[str, Any]:
        # JSON keeps nested lists of numbers and text; NumPy has no array of tuples of any shape.
        words = {"label": self.label, "states": json.dumps(self.states)}
        return words | {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def _of(cls, arrays: Mapping[str, NDArray[Any]], about: Mapping[str, Any]) -> Learned:
        return cls(
            **{name: arrays[name] for name in _ARRAYS},
            states=_as_tuples(json.loads(str(arrays["states"]))),
            label=str(arrays["label"]),
            about=about,
        )


_ARRAYS = ("steps", "returns", "policies", "q", "visits")


def _as_tuples(value: Any) -> Any:
    """Return nested lists as nested tuples."""
    return tuple(map(_as_tuples, value)) if isinstance(value, list) else value


def _settings(
    env: Environment,
    updates: Sequence[str | Update],
    step_sizes: Sequence[float],
    steps: int,
    scheme: str,
    critic: str,
    critic_rate: float,
    discount: float,
    encode: Encoder | None,
    cut: int,
    evaluate_every: int | None,
    episodes: int,
    seed: int,
) -> list[_Setting]:
    """Return the settings of each update and step size; raise a `ValueError` if one is invalid."""
    steps = as_int("steps", steps, low=1, high=_MOST_STEPS)
    every = max(1, steps // 20) if evaluate_every is None else evaluate_every
    if encode is not None and not callable(encode):
        raise ValueError(f"encode: expected a function of an observation, got {encode!r}.")
    setting = _Setting(
        env=env,
        update=as_update(updates[0]),
        steps=steps,
        step_size=1.0,
        scheme=SCHEMES[find_name("scheme", scheme, SCHEMES)],
        critic=find_name("critic", critic, _CRITICS),
        critic_rate=as_float("critic_rate", critic_rate),
        discount=as_float("discount", discount),
        encode=encode,
        cut=as_int("cut", cut, low=1),
        evaluate_every=as_int("evaluate_every", every, low=1, high=steps),
        episodes=as_int("episodes", episodes, low=1),
        seed=as_int("seed", seed, low=0, high=2**63 - 1),
    )
    if not 0.0 < setting.critic_rate <= 1.0:
        raise ValueError(f"critic_rate: expected a rate in (0, 1], got {critic_rate}.")
    if not 0.0 <= setting.discount < 1.0:
        raise ValueError(f"discount: expected a number in [0, 1), got {discount}.")
    player = Player(env, encode, setting.cut)
    player.reset(0)  # raises if an observation is no state
    setting = replace(setting, name=player.name, env_options=player.options)
    settings = []
    for update in map(as_update, updates):
        update._require_repeatable(update.initial(1, player.n_actions)[0])
        for step_size in step_sizes:
            if not as_float("step_size", step_size) > 0.0:
                raise ValueError(f"step_size: expected a finite number > 0, got {step_size}.")
            settings.append(replace(setting, update=update, step_size=float(step_size)))
    return settings


def learn(
    env: Environment,
    update: str | Update,
    steps: int,
    step_size: float = 1.0,
    *,
    scheme: str = "HiOffPol",
    critic: str = "sampled",
    critic_rate: float = PAPER.critic_rate,
    discount: float = 0.99,
    runs: int = 10,
    encode: Encoder | None = None,
    cut: int = 1000,
    evaluate_every: int | None = None,
    episodes: int = 20,
    seed: int = 0,
    workers: int = 1,
    progress: bool | None = None,
) -> Learned:
    r"""Learn a policy in an environment by `reset` and `step`, with tables of states and actions.

    The algorithm is the actor-critic of `race`: after each step in the environment it draws a
    stored transition, takes a step of the critic at it, and a step of the update in its state with
    the values of the critic and the weight `step_size`.

    Parameters
    ----------
    env : gymnasium.Env, str or callable
        An environment with discrete actions, of which copies are played; its id; or a function
        without arguments that makes it.
    update : str or Update
        A name in `UPDATES`, or an update such as the result of `make_update`.
    steps : int
        Number of steps of a run.
    step_size : float
        The step size of the actor.
    scheme : {"HiOffPol", "LowOffPol", "NoExplo"}
        Exploration scheme. In the first two, another policy that seeks pairs of state and action
        with few visits plays whole episodes with probability :math:`\min(1, 10/\sqrt t)` after t
        steps. Its transitions are half of the drawn ones (HiOffPol) or a share of
        :math:`\min(1, 10/\sqrt t)` (LowOffPol).
    critic : {"sampled", "expected"}
        SARSA with the value of a drawn next action, or with the mean value of the policy.
    critic_rate : float
        Learning rate of the critic, in (0, 1].
    discount : float
        Discount factor in [0, 1).
    runs : int
        Number of independent runs.
    encode : callable, optional
        Converts an observation to a state: numbers, text, or tuples of these, such as the result of
        `bins`. By default observations are states; they must not have floats.
    cut : int
        Largest number of steps of an episode, in learning and in evaluations. At an episode that is
        cut or truncated the critic learns from the value of the last state, which is not an end.
    evaluate_every : int, optional
        Number of steps between evaluations. The default is a twentieth of `steps`.
    episodes : int
        Number of episodes of an evaluation, which the policy plays in a copy of the environment.
    seed : int
        Root seed of the learner and of the environment, which gets a seed at its first reset.
    workers : int
        Number of processes. With several, a script must call this function under
        ``if __name__ == "__main__":``. The results do not depend on this number.
    progress : bool, optional
        Whether to show progress and the remaining time on standard error. By default progress is
        shown in terminals and notebooks.

    Returns
    -------
    Learned
        The learning curves, policies and values of the runs. After an interrupt (Ctrl-C), those of
        the runs that were complete.

    Raises
    ------
    ValueError
        If the environment cannot be made or played, its actions are not discrete, an observation is
        no state, a name is unknown, an argument is out of range, or an update keeps state in its
        attributes.

    Warns
    -----
    UserWarning
        If an interrupt ended the computation after some of the runs.

    Examples
    --------
    >>> learned = learn("FrozenLake-v1", "mce", 3000, 10.0, runs=2, evaluate_every=1000)
    >>> learned.steps.tolist(), learned.returns.shape, learned.policies.shape
    ([1000, 2000, 3000], (2, 3), (2, 11, 4))
    """
    (setting,) = _settings(
        env,
        [update],
        [step_size],
        steps,
        scheme,
        critic,
        critic_rate,
        discount,
        encode,
        cut,
        evaluate_every,
        episodes,
        seed,
    )
    runs, workers = as_int("runs", runs, low=1), as_int("workers", workers, low=1)
    results = [result for (result,) in _finished([setting], runs, workers, progress)]
    rows: dict[Hashable, int] = {}
    for result in results:
        for state in result.states:
            rows.setdefault(state, len(rows))
    n_actions = results[0].policies.shape[1]
    shape = len(results), len(rows), n_actions
    policies, q, visits = np.full(shape, 1.0 / n_actions), np.zeros(shape), np.zeros(shape, int)
    for run, result in enumerate(results):
        at = [rows[state] for state in result.states]
        policies[run, at], q[run, at], visits[run, at] = result.policies, result.q, result.visits
    every = setting.evaluate_every
    return Learned(
        steps=np.arange(every, setting.steps + 1, every),
        returns=np.array([result.returns for result in results]),
        states=tuple(rows),
        policies=policies,
        q=q,
        visits=visits,
        label=label_of(setting.update),
        about=described(
            [setting.update],
            setting.name,
            step_size=setting.step_size,
            runs=len(results),
            **setting.words,
        ),
    )


@underflow_to_zero
def compare(
    env: Environment,
    updates: str | Update | Sequence[str | Update] | None = None,
    step_sizes: float | Sequence[float] = (0.1, 1.0, 10.0),
    runs: int = 20,
    *,
    steps: int = 100_000,
    target: float | None = None,
    scheme: str = "HiOffPol",
    critic: str = "sampled",
    critic_rate: float = PAPER.critic_rate,
    discount: float = 0.99,
    encode: Encoder | None = None,
    cut: int = 1000,
    evaluate_every: int | None = None,
    episodes: int = 20,
    seed: int = 0,
    workers: int = 1,
    progress: bool | None = None,
) -> Race:
    """Compare updates in an environment by the number of steps until they reach a target.

    The time of a run is the number of steps until the mean return of an evaluation reaches the
    target; the run then ends. Mean returns of a few episodes are noisy, so that a run can pass
    early by luck: more `episodes` make times more accurate. All updates and step sizes share the
    random streams of the learner and of the environment.

    Parameters
    ----------
    env
        As for `learn`.
    updates : str, Update or sequence of these, optional
        Updates, or strings accepted by `pu_lib.updates.as_update`. The default is all registered
        updates, `UPDATES`.
    step_sizes : float or sequence of float
        Step sizes of the actor.
    runs : int
        Number of runs of each update and step size. Medians have intervals from 6 runs, means from
        100.
    steps : int
        The cap on the steps of a run.
    target : float, optional
        The mean return to reach. The default is the reward threshold of the environment, if it has
        one, such as 475 for CartPole-v1.
    scheme, critic, critic_rate, discount, encode, cut, evaluate_every, episodes, seed, workers
        As for `learn`.
    progress : bool, optional
        As for `learn`.

    Returns
    -------
    Race
        The statistics of the times, from the fastest update to the slowest. After an interrupt
        (Ctrl-C), those of the runs that were complete for every update and step size.

    Raises
    ------
    ValueError
        As for `learn`, or if an update or step size is given twice, or the environment has no
        reward threshold and no target is given.

    Warns
    -----
    UserWarning
        If an interrupt ended the computation after some of the runs.
    """
    chosen = list(map(as_update, as_list(UPDATES if updates is None else updates)))
    names, sizes = list(map(name_of, chosen)), as_list(step_sizes)
    for argument, values in (("updates", names), ("step_sizes", sizes)):
        if not values or len(set(values)) < len(values):
            raise ValueError(f"{argument}: expected at least one, each once, got {values}.")
    settings = _settings(
        env,
        chosen,
        sizes,
        steps,
        scheme,
        critic,
        critic_rate,
        discount,
        encode,
        cut,
        evaluate_every,
        episodes,
        seed,
    )
    target = _target(env, target)
    racing = [replace(setting, target=target) for setting in settings]
    runs, workers = as_int("runs", runs, low=1), as_int("workers", workers, low=1)
    results = _finished(racing, runs, workers, progress)
    summaries: dict[str, dict[float, Summary]] = {name: {} for name in names}
    for setting, *column in zip(racing, *results, strict=True):
        recorded = [len(result.returns) * setting.evaluate_every for result in column]
        censored = np.array([not result.passed for result in column])
        times = np.where(censored, setting.steps, recorded)
        summaries[name_of(setting.update)][setting.step_size] = summarise(
            times, censored, horizon=setting.steps
        )
    entries = [RaceEntry(name, dict(sorted(by.items()))) for name, by in summaries.items()]
    entries.sort(key=lambda entry: (not entry.finished, entry.best.mean))
    about = described(chosen, racing[0].name, target=target, runs=len(results), **racing[0].words)
    return Race(tuple(entries), racing[0].steps, about)


def _target(env: Environment, target: float | None) -> float:
    """Return the mean return to reach, by default the reward threshold of the environment."""
    if target is not None:
        return as_float("target", target)
    player = Player(env, None, 1)
    if player.threshold is None:
        raise ValueError(
            f"target: {player.name} has no reward threshold; give the mean return to reach."
        )
    return player.threshold
