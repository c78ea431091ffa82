r"""The compiled simulation of Jekyll & Hyde (paper, appendix B.2).

Each step t = 1, 2, ... of a run

1. takes an action: Jekyll samples it from his policy :math:`\pi`, Hyde takes an action that
   maximises his values :math:`\tilde q`, with ties broken uniformly at random;
2. appends the transition to the replay buffer of the personality in control;
3. samples a stored transition :math:`(s,a,r,s')`, from Hyde's buffer with probability :math:`o_t`
   and from Jekyll's otherwise, and applies to it Q-learning on the exploration bonus,
   :math:`\tilde q(s,a) \mathrel{+}= \alpha(b(s,a)+\gamma\max\tilde q(s',\cdot)-\tilde q(s,a))`,
   for Hyde's values, SARSA,
   :math:`q(s,a) \mathrel{+}= \alpha(r+\gamma q(s',a')-q(s,a))` with
   :math:`a'\sim\pi(\cdot|s')`, for Jekyll's critic, and the expected policy update in s with
   :math:`q(s,\cdot)` and weight :math:`\eta`;
4. if the trajectory has ended, starts the next one, controlled by Hyde with probability
   :math:`\epsilon_t`.

The run ends when the exact performance of Jekyll's policy passes the threshold.
`pu_lib.experiments.reference` is a readable version of the same loop, and
`pu_lib.experiments.options` lists the details that the paper leaves open.

Reproducibility
---------------
All randomness comes from one xoshiro256++ stream seeded by (root seed, domain, run). Apart from
:math:`+,-,\times,/,\sqrt{\ }`, which IEEE 754 specifies exactly, the loop uses its own exponential
and logarithm. Sums are not reordered, and products and sums are not fused, so a run has the same
bits on every processor.

`pu_lib.engine.loop` contains the compiled loop itself.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, get_args

import numba
import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import as_int, require_distributions, underflow_to_zero
from pu_lib.compiling import code_digest
from pu_lib.engine import loop
from pu_lib.engine.comparing import require_kernel
from pu_lib.engine.rows import (
    UNIT,
    static_flag,
    static_kernel,
    static_policy,
    static_successors,
    static_ties,
)
from pu_lib.experiments.options import PAPER, Options, Scheme, configured, start_of
from pu_lib.experiments.problem import Problem
from pu_lib.kernels import KERNELS, MULTIPLICATIVE
from pu_lib.updates import UPDATES, Parametrization, Update

_FIRST_GAP = (100, 25)  # steps between early evaluations, by `Problem.acyclic`
_MOST_ACTIONS = 256  # loops over actions are unrolled; more would take minutes to compile
_GUARD = 0.6180339887498949  # in the rows before and after the states; no kernel may change it
# The loop reads these options only if one of them differs from the paper's.
_DETAILS = ("hyde_clip", "bonus", "sarsa", "replay", "actor_weight", "stop", "max_episodes")


def engine_of(update: Update, options: Options = PAPER) -> str:
    """Return the version of an update's results; it differs if the same seed gives another run.

    The version is "2" for the escort update with scaled parameters and "1" for the other updates of
    the library. For a user's own update it is the `fingerprint`. Tables of runs store the version
    in the column ``engine``.
    """
    usual = UPDATES.get(update.name, update)
    if type(usual) is type(update):
        update = usual  # other columns store the options of registered updates
    if update.kernel is not None and not type(update).__module__.startswith("pu_lib."):
        return fingerprint(update)
    return "2" if update.name == "pg-es" and options.precision == "scaled" else "1"


def fingerprint(update: Update) -> str:
    """Return twelve hexadecimal digits that depend on the code and the options of an update."""
    sizes = range(2, 8)
    read: tuple[Any, ...] = (
        update.options,
        update.parametrization,
        [update.uniform(n) for n in sizes],
    )
    if update.has_memory:
        read += ([np.asarray(update._memory(1, n_actions=n)).tolist() for n in sizes],)
    return hashlib.sha256(f"{read!r} {code_digest(update.kernel)}".encode()).hexdigest()[:12]


def seed_state(root: int, experiment: str, run: int) -> NDArray[np.uint64]:
    """Return the initial state of a run's random stream as an array of four 64-bit words.

    Runs with different root seeds, experiment names or numbers have independent streams.
    """
    key = zlib.crc32(experiment.encode())
    words = np.random.SeedSequence(root, spawn_key=(key, run)).generate_state(4, np.uint64)
    return words.astype(np.uint64)


def checkpoints(max_steps: int) -> NDArray[np.int64]:
    """Return the numbers of steps at which the performance of a learning curve is kept.

    They are the first 20 steps, then steps t + floor(t / 10), and the cap `max_steps`.

    Examples
    --------
    >>> checkpoints(30)[17:].tolist()
    [18, 19, 20, 22, 24, 26, 28, 30]
    """
    steps, t = [], 1
    while t < max_steps:
        steps.append(t)
        t += max(1, t // 10)
    return np.array([*steps, max_steps], np.int64)


@dataclass(frozen=True)
class Run:
    """The outcome of a run.

    Attributes
    ----------
    steps, episodes : int
        Number of steps taken and number of trajectories finished.
    censored : bool
        Whether the run ended at a cap and did not pass the threshold.
    final_performance : float
        Normalised exact performance of the last policy.
    """

    steps: int
    episodes: int
    censored: bool
    final_performance: float


class RunBuffers:
    """The arrays of a run, which can be reused for the next run but not by two threads at once.

    After a run the arrays contain its final state: `theta`, `pi`, `q`, `hyde`, `visits` and the
    replay `buffer` (Jekyll's transitions from the left, Hyde's transitions from the right), and
    `update_memory`, the memory of the update with one row for each state. Scaled
    parameters have the value `theta` times :math:`2^{-256e}`, with the exponents e in `exponent`.

    Parameters
    ----------
    record_at : iterable of int, optional
        Increasing numbers of steps, at least 1, after which the policy is stored in `recorded`.
        The array `recorded` has the shape (number of entries, S, A). A run with `record_at`
        continues to its last step even if it passes the threshold.

    Raises
    ------
    ValueError
        If `record_at` has other entries than integers, or is not increasing.
    """

    def __init__(self, record_at: Iterable[int] = ()) -> None:
        self._shape: tuple[int, ...] = ()
        steps = [as_int("record_at", step) for step in record_at]
        self.record_at = np.array(steps, np.int64)
        if (np.diff(self.record_at, prepend=0) < 1).any():
            raise ValueError(
                "record_at: expected increasing numbers of steps, at least 1, got "
                f"{self.record_at.tolist()}."
            )
        self.buffer: NDArray[np.unsignedinteger] = np.empty(0, np.uint16)

    def prepare(self, problem: Problem, update: str | Update, options: Options, steps: int) -> None:
        """Initialise the arrays for a run of at most `steps` steps."""
        S, A = problem.n_states, problem.n_actions
        shape = (S, A, problem.n_successors)
        if shape != self._shape:
            self._shape = shape
            self.guarded = np.full((3, S + 2, A), _GUARD)
            self.theta, self.pi, self.q = self.guarded[:, 1:-1]
            self.running, self.hyde, self.greedy = (np.empty((S, A)) for _ in range(3))
            self.exponent = np.empty((S, A), np.int64)
            self.visits, self.bonus = np.empty(S * A, np.int64), np.empty(S * A)
            self.seen = np.empty(S * A * problem.n_successors, np.int64)
            self.v, self.v_hyde = np.empty(S), np.empty(S)
            self.recorded = np.empty((len(self.record_at), S, A))
        if len(self.buffer) != steps or self.buffer.dtype != problem.code_type:
            self.buffer = np.empty(steps, problem.code_type)
        chosen = configured(update, options)
        self.theta.fill(start_of(chosen, A, options))
        memory = chosen._memory(S, n_actions=A)
        n_numbers = 0 if memory is None else memory.shape[1]
        self.guarded_memory = np.full((S + 2, n_numbers), _GUARD)
        self.update_memory = self.guarded_memory[1:-1]
        if memory is not None:
            self.update_memory[:] = memory
        self.pi.fill(1.0 / A)
        self.running[:] = np.cumsum(self.pi, axis=1)
        bound = 1.0 / (1.0 - problem.discount)
        self.q.fill(options.critic_start)
        self.hyde.fill(bound if options.hyde_start == "bound" else options.hyde_start)
        self.q[problem.terminal != 0] = 0.0
        self.hyde[problem.terminal != 0] = 0.0
        for array in (self.exponent, self.visits, self.bonus, self.seen, self.v, self.v_hyde):
            array.fill(0)

    @property
    def log_modulus(self) -> NDArray[np.float64]:
        """The base-10 logarithms of the moduli of the parameters, or minus infinity for 0."""
        with np.errstate(divide="ignore"):
            mantissas = np.log10(np.abs(self.theta))
        return np.asarray(mantissas - self.exponent * (UNIT * np.log10(2.0)))

    @property
    def arrays(self) -> loop.Arrays:
        """The arrays as an argument of the compiled loop."""
        return loop.Arrays(*(getattr(self, name) for name in loop.Arrays._fields))


@underflow_to_zero
def simulate(
    problem: Problem,
    update: str | Update,
    step_size: float,
    scheme: Scheme,
    seeds: NDArray[np.uint64],
    options: Options = PAPER,
    max_steps: int = 1_000_000,
    memory: RunBuffers | None = None,
    first_gap: int | None = None,
) -> Run:
    """Run Jekyll & Hyde until the performance passes the threshold of the problem.

    Parameters
    ----------
    problem : Problem
        Process and threshold.
    update : str or Update
        Update of the actor, with a kernel, or a string accepted by `pu_lib.updates.as_update`. If
        the string has no option ``ties``, `options.ties` applies. Compiled kernels of the library
        are cached on disk. Other kernels are compiled once per Python process for each number of
        actions and successors.
    step_size : float
        Step size of the actor.
    scheme : Scheme
        Exploration and off-policy scheme.
    seeds : ndarray of uint64, shape (4,)
        Initial state of the random stream; see `seed_state`.
    options : Options
        The details that the paper leaves open.
    max_steps : int
        Cap on the number of steps. A run that does not pass within the cap is censored.
    memory : RunBuffers, optional
        Arrays to use. They contain the final state of the run afterwards.
    first_gap : int, optional
        Steps between early evaluations, at least 1. The policy is evaluated after `first_gap`
        steps; after an evaluation at step t, the policy is next evaluated at step
        t + max(first_gap, 3 % of t). The default is 25 if the process is acyclic, else 100, as in
        the paper's experiments. The value of `first_gap` only affects the step at which the run
        ends.

    Returns
    -------
    Run
        The outcome of the run.

    Raises
    ------
    ValueError
        If the update is unknown, has no kernel that compiles, or its kernel differs from its
        `advance`; if a number is out of range or `memory.record_at` exceeds `max_steps`; or if
        parameters leave the range of floats.
    """
    chosen = configured(update, options)
    static = _static_args(problem, chosen, options)
    if not (np.isfinite(step_size) and step_size > 0.0):
        raise ValueError(f"step_size: expected a finite number > 0, got {step_size}.")
    max_steps = as_int("max_steps", max_steps, low=1)
    gap = (
        _FIRST_GAP[problem.acyclic] if first_gap is None else as_int("first_gap", first_gap, low=1)
    )
    memory = RunBuffers() if memory is None else memory
    memory.prepare(problem, chosen, options, max_steps)
    run = loop.run_cached if chosen.kernel in KERNELS else loop.run_in_memory
    epsilon, off_policy = scheme.epsilon, scheme.off_policy
    try:
        steps, episodes, passed, J = run(
            static,
            problem.process,
            loop.Schedules(epsilon.c, epsilon.alpha, off_policy.c, off_policy.alpha),
            _rules(step_size, options),
            _limits(problem, options, max_steps, memory.record_at, gap),
            memory.arrays,
            seeds,
        )
    except numba.core.errors.NumbaError as error:
        raise ValueError(f"update: the kernel of {chosen.name} does not compile: {error}") from None
    _require_policies(chosen, memory)
    return Run(int(steps), int(episodes), not passed, problem.normalised(J))


def _require_policies(update: Update, memory: RunBuffers) -> None:
    """Raise a `ValueError` unless the final parameters are finite and the policies sum to 1.

    The loop checks neither parameters nor indices. A parameter that is not finite stays so until
    the end of the run, and a kernel may have written beyond the first or last state.
    """
    guards = memory.guarded[:, [0, -1]], memory.guarded_memory[[0, -1]]
    if not all((guard == _GUARD).all() for guard in guards):
        raise ValueError(
            f"update: the kernel of {update.name} writes outside its row; check its indices."
        )
    for what, rows in (("parameters", memory.theta), ("numbers in memory", memory.update_memory)):
        finite = np.isfinite(rows).all(axis=1)
        if not finite.all():
            state = int(np.argmin(finite))
            raise ValueError(
                f"update: the {what} of {update.name} leave the range of floats (1.8e308) at state "
                f"{state}: {rows[state]}; use a smaller step size."
            )
    try:
        require_distributions("pi", memory.pi)
    except ValueError as error:
        raise ValueError(f"update: the steps of {update.name} give no policy: {error}") from None


def _static_args(problem: Problem, update: Update, options: Options) -> loop.StaticArgs:
    """Return the compile-time arguments of the loop."""
    known = get_args(Parametrization)
    policy = update.parametrization
    if update.kernel is None:
        raise ValueError(
            f"update: {update!r} has no kernel; run it in the plain loop, "
            "pu_lib.experiments.reference."
        )
    if policy is None or policy not in known:
        raise ValueError(f"parametrization: expected one of {', '.join(known)}, got {policy!r}.")
    if problem.n_actions > _MOST_ACTIONS:
        raise ValueError(
            f"n_actions: the compiled loop has at most {_MOST_ACTIONS} actions, got "
            f"{problem.n_actions}; use the exact values of `run`, or an update without a kernel."
        )
    require_kernel(update, problem.n_actions)
    return loop.StaticArgs(
        actions=(0,) * problem.n_actions,
        successors=static_successors(problem.n_successors),
        update=static_kernel(update.kernel),
        policy=static_policy(policy),
        ties=static_ties(update.options.get("ties", "first")),
        scaled=static_flag(update.kernel in MULTIPLICATIVE and options.precision == "scaled"),
        details=static_flag(any(vars(options)[name] != vars(PAPER)[name] for name in _DETAILS)),
    )


def _rules(step_size: float, options: Options) -> loop.Rules:
    """Return the step size, the learning rates and the options that the loop takes."""
    return loop.Rules(
        eta=float(step_size),
        critic_rate=options.critic_rate,
        hyde_rate=options.hyde_rate,
        hyde_clip=options.hyde_clip,
        expected_sarsa=options.sarsa == "expected",
        log_bonus=options.bonus == "log",
        model=options.replay == "model",
        discounted=options.actor_weight == "discounted",
    )


def _limits(
    problem: Problem, options: Options, max_steps: int, record_at: NDArray[np.int64], gap: int
) -> loop.Limits:
    """Return the criteria for evaluation and termination that the loop takes.

    With `record_at` the run continues to its last step.
    """
    by_episodes = options.stop == "episodes"
    limits = loop.Limits(
        threshold=problem.threshold,
        max_steps=max_steps,
        max_episodes=options.max_episodes,
        every=max(1, options.max_episodes // 1000) if by_episodes else 0,
        cut=options.cut,
        gap=gap,
    )
    if len(record_at) == 0:
        return limits
    if record_at[-1] > max_steps:
        raise ValueError(
            f"memory: record_at has steps beyond max_steps, {record_at[-1]} > {max_steps}."
        )
    return limits._replace(threshold=np.inf, every=0, max_episodes=0)
