"""Jekyll & Hyde in plain Python and NumPy: a readable version, used to test the compiled loop.

This module implements the algorithm of the paper's appendix B.2 without regard to speed, with one
short function per formula. It uses the same random stream as `pu_lib.experiments.jekyll_hyde` and
rounds in the same places, so both loops compute the same run to the last bit, and tests compare
the runs. The implementations differ: this loop reads transitions from the process itself, and it
computes the performance with LAPACK, which may miss a target of exactly 1 by one bit.

The loop is one long function, so that it reads in the algorithm's order of events. The formulas of
the paper's updates are repeated here, independently of the kernels that they test.

Sums are plain loops from left to right, because the grouping and compensation of NumPy's and
Python's own sums depend on their versions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from pu_lib.experiments.options import PAPER, Options, Schedule, Scheme, configured, start_of
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import (
    CrossEntropy,
    Direct,
    EscortPolicyGradient,
    MaskedCrossEntropy,
    ModifiedCrossEntropy,
    SoftmaxPolicyGradient,
    Ties,
    Update,
)

Row = list[Any]
_MASK = (1 << 64) - 1


class Stream:
    """The xoshiro256++ generator of Blackman and Vigna, from four 64-bit words of state."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self._words = [int(word) for word in words]

    def uniform(self) -> float:
        """Return a number in [0, 1) with 53 random bits."""
        w0, w1, w2, w3 = self._words
        word = (_rotated(w0 + w3 & _MASK, 23) + w0) & _MASK
        shifted = w1 << 17 & _MASK
        w2 ^= w0
        w3 ^= w1
        self._words = [w0 ^ w3, w1 ^ w2, w2 ^ shifted, _rotated(w3, 45)]
        return (word >> 11) / 2**53

    def below(self, n: int) -> int:
        """Return an integer from 0 to n - 1."""
        return int(self.uniform() * n)

    def generator(self) -> np.random.Generator:
        """Return a NumPy generator seeded by the state, for updates that are randomised."""
        return np.random.default_rng(self._words)

    def choose(self, probabilities: Iterable[float]) -> int:
        """Return an index with the given probabilities."""
        return index_at(self.uniform(), probabilities)


def index_at(u: float, probabilities: Iterable[float]) -> int:
    """Return the index of the interval that contains u, with lengths given by `probabilities`."""
    running, index = 0.0, 0
    for index, probability in enumerate(probabilities):  # noqa: B007
        running += probability
        if u < running:
            break
    return index


def _rotated(word: int, by: int) -> int:
    return (word << by & _MASK) | word >> 64 - by


def _total(values: Iterable[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total


def exponential(x: float) -> float:
    r"""Return :math:`e^x` for x <= 0, rounded as in the compiled loop.

    With :math:`x = n\ln(2)/64 + r`, the result is the Taylor polynomial of :math:`e^r` times
    :math:`2^{n/64}`.
    """
    x = max(x, -708.0)
    n = round(x * 92.33248261689366)  # 64 / ln 2
    r = (x - n * 0.010830424695996044) - n * 2.5310172166650877e-13  # ln(2) / 64 in two parts
    polynomial = (1.0 + r) + ((1 / 2 + 1 / 6 * r) + (1 / 24 + 1 / 120 * r) * (r * r)) * (r * r)
    return math.ldexp(polynomial * _root_power(n % 64), n // 64)


@cache
def _root_power(j: int) -> float:
    """Return 2^(j/64) as a product of repeated square roots of 2."""
    power, root = 1.0, 2.0
    for bit in (32, 16, 8, 4, 2, 1):
        root = math.sqrt(root)
        if j & bit:
            power *= root
    return power


def _logarithm(n: int) -> float:
    """Return ln n, computed from n = m 2^e and the series of artanh((m - 1) / (m + 1))."""
    m, e = math.frexp(n)
    m, e = 2.0 * m, e - 1
    if m > math.sqrt(2.0):
        m, e = m / 2.0, e + 1
    ratio, series = (m - 1.0) / (m + 1.0), 0.0
    for power in range(21, 0, -2):
        series = series * (ratio * ratio) + 1.0 / power
    return e * 0.6931471805599453 + 2.0 * ratio * series


# Policies and updates of one state


@dataclass(frozen=True)
class Wide:
    """A number `mantissa` times 2 to the power `exponent`, which does not underflow."""

    mantissa: float
    exponent: int = 0

    def times(self, factor: float, other: float) -> Wide:
        """Return x + factor x other with a normalised mantissa, evaluated from left to right."""
        digits = self.mantissa + factor * self.mantissa * other
        mantissa, shift = math.frexp(digits)
        return Wide(mantissa, self.exponent + shift)

    def __float__(self) -> float:
        """Return the nearest float, which is 0 on underflow."""
        return math.ldexp(self.mantissa, self.exponent)


def softmax_of_row(theta: Row) -> Row:
    """Return the softmax of a row, rounded as in the compiled loop."""
    weights = [exponential(x - max(theta)) for x in theta]
    scale = 1.0 / _total(weights)
    return [weight * scale for weight in weights]


def escort_of_row(theta: Row) -> Row:
    """Return the escort policy of a row with p = 2, rounded as in the compiled loop."""
    theta = [float(x) for x in theta]
    scale = 1.0 / _total(x * x for x in theta)
    return [x * x * scale for x in theta]


def _projection(point: Row) -> Row:
    """Return the Euclidean projection on the simplex, by dropping entries below the threshold."""
    entries, threshold = point, -math.inf
    while True:
        threshold = max(threshold, (_total(entries) - 1.0) / len(entries))
        above = [x for x in entries if x > threshold]
        if len(above) == len(entries):
            return [max(x - threshold, 0.0) for x in point]
        entries = above


@dataclass(frozen=True)
class Actor:
    """The formulas of an update.

    Attributes
    ----------
    policy : callable
        Returns the policy for a row of parameters.
    step : callable
        Returns the parameters after a step, given (theta, pi, q, weight, stream).
    start : callable
        Converts the initial parameter, a float, to the type of number that `step` uses.
    """

    policy: Callable[[Row], Row]
    step: Callable[[Row, Row, Row, float, Stream], Row]
    start: Callable[[float], Any] = field(default_factory=lambda: float)


def _pg_sm(theta: Row, pi: Row, q: Row, weight: float, _: Stream) -> Row:
    adv = _advantage(pi, q)
    return [x + weight * p * y for x, p, y in zip(theta, pi, adv, strict=True)]


def _pg_es(theta: Row, pi: Row, q: Row, weight: float, keep: bool) -> Row:
    square = _total(float(x) * float(x) for x in theta)
    scale = weight * 2.0 / square if keep else weight / math.sqrt(square)
    return [
        x.times(scale, y) if isinstance(x, Wide) else x + scale * x * y
        for x, y in zip(theta, _advantage(pi, q), strict=True)
    ]


def _di(theta: Row, _: Row, q: Row, weight: float, __: Stream) -> Row:
    return _projection([x + weight * (y - max(q)) for x, y in zip(theta, q, strict=True)])


def _ce(theta: Row, pi: Row, _: Row, weight: float, chosen: int) -> Row:
    return [x + weight * ((a == chosen) - pi[a]) for a, x in enumerate(theta)]


def _mce(theta: Row, pi: Row, _: Row, weight: float, chosen: int) -> Row:
    gain = weight * _total(p for a, p in enumerate(pi) if a != chosen)
    loss = gain / (len(theta) - 1)
    return [x + gain if a == chosen else x - loss for a, x in enumerate(theta)]


def _sce(theta: Row, pi: Row, q: Row, weight: float, chosen: int) -> Row:
    gaps = [x - q[pi.index(max(pi))] for x in q]
    average = _total(p * x for p, x in zip(pi, gaps, strict=True))
    masked = [p if a == chosen or gaps[a] < average else 0.0 for a, p in enumerate(pi)]
    total, gain = _total(masked), _total(p for a, p in enumerate(masked) if a != chosen)
    return [
        x + weight * (gain / total if a == chosen else -(masked[a] / total))
        for a, x in enumerate(theta)
    ]


def _advantage(pi: Row, q: Row) -> Row:
    v = _total(p * x for p, x in zip(pi, q, strict=True))
    return [x - v for x in q]


def _towards_greedy(formula: Callable[[Row, Row, Row, float, int], Row], ties: Ties) -> Actor:
    """Return the actor of a cross-entropy update."""

    def step(theta: Row, pi: Row, q: Row, weight: float, stream: Stream) -> Row:
        best = [a for a, x in enumerate(q) if x == max(q)]
        if len(best) > 1 and ties == "leave":
            return theta
        drawn = len(best) > 1 and ties == "random"
        return formula(theta, pi, q, weight, best[stream.below(len(best))] if drawn else best[0])

    return Actor(softmax_of_row, step)


_SCALAR: dict[type[Update], Callable[[Any], Actor]] = {
    SoftmaxPolicyGradient: lambda _: Actor(softmax_of_row, _pg_sm),
    EscortPolicyGradient: lambda update: Actor(
        escort_of_row,
        lambda theta, pi, q, w, _: _pg_es(theta, pi, q, w, update.factor == "keep"),
        Wide,
    ),
    Direct: lambda _: Actor(list, _di),
    CrossEntropy: lambda update: _towards_greedy(_ce, update.ties),
    ModifiedCrossEntropy: lambda update: _towards_greedy(_mce, update.ties),
    MaskedCrossEntropy: lambda update: _towards_greedy(_sce, update.ties),
}
"""The paper's updates and SCE, written independently of the kernels that they test."""


def actor_of(update: Update, options: Options = PAPER) -> Actor:
    """Return the formulas above for an update that has them, or else the methods of the update."""
    if type(update) in _SCALAR and update.options.get("p", 2.0) == 2.0:
        actor = _SCALAR[type(update)](update)
        return replace(actor, start=float) if options.precision == "float64" else actor
    # The exponential of the C library may differ from the engine's in its last bit.
    softmax = type(update).to_policy is SoftmaxPolicyGradient.to_policy or update.kernel is not None
    known = softmax_of_row if softmax and update.parametrization == "softmax" else None
    # Skip the checks of arguments: a run takes tens of thousands of steps.
    return Actor(
        known or (lambda theta: update.to_policy(np.array(theta)).tolist()),
        lambda theta, _, q, w, stream: update._unchecked_step(
            np.array(theta), np.array(q), np.array(w), stream.generator()
        ).tolist(),
    )


def probability_at(schedule: Schedule, t: int) -> float:
    """Return the probability of a schedule at step t."""
    power = {0.0: 1.0, 0.5: math.sqrt(t), 1.0: float(t)}[schedule.alpha]
    return min(1.0, schedule.c / power)


# The loop


@dataclass(frozen=True)
class Transition:
    """A transition of the process."""

    state: int
    action: int
    reward: float
    after: int


@dataclass
class Reference:
    """The final state of a run.

    Attributes
    ----------
    theta, q, hyde : list of lists, shape (n_states, n_actions)
        Parameters of Jekyll's policy (of type `Wide` for the escort update unless the precision is
        ``"float64"``), values of Jekyll's critic, and Hyde's values.
    steps, episodes : int
        Number of steps taken and number of trajectories finished.
    passed : bool
        Whether the run passed the threshold.
    performance : float
        Exact performance of the last policy.
    buffers : dict
        The transitions of "jekyll" and "hyde".
    recorded : list of float
        Exact performance after each step of `record_at`.
    """

    theta: list[Row]
    q: list[Row]
    hyde: list[Row]
    steps: int = 0
    episodes: int = 0
    passed: bool = False
    performance: float = math.nan
    buffers: dict[str, list[Transition]] = field(default_factory=lambda: {"jekyll": [], "hyde": []})
    recorded: list[float] = field(default_factory=list)


def run_reference(
    mdp: FiniteMDP,
    threshold: float,
    update: str | Update,
    eta: float,
    scheme: Scheme,
    seeds: NDArray[np.uint64],
    options: Options = PAPER,
    max_steps: int = 1000,
    first_gap: int = 100,
    actor: Actor | None = None,
    record_at: Collection[int] = (),
) -> Reference:
    """Run Jekyll & Hyde until the policy's performance reaches `threshold`.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    threshold : float
        Performance to reach (not normalised).
    update : str or Update
        Update of the actor, or a string accepted by `pu_lib.updates.as_update`. The steps of
        updates other than the paper's five, and of escort updates with an exponent other than 2,
        are computed by the methods of the update.
    eta, scheme, seeds, options, max_steps
        As for `pu_lib.experiments.jekyll_hyde.simulate`.
    first_gap : int
        Steps between early evaluations. In the paper's experiments `first_gap` is 25 if the process
        is acyclic, else 100.
    actor : Actor, optional
        Formulas that replace the formulas of the update, for example in another arithmetic.
    record_at : collection of int
        Steps after which the performance is recorded, if the run lasts so long.

    Returns
    -------
    Reference
        The final state of the run.
    """
    S, A, gamma = mdp.n_states, mdp.n_actions, mdp.discount
    stream = Stream(seeds)
    chosen = configured(update, options)
    actor = actor_of(chosen, options) if actor is None else actor
    start = actor.start(start_of(chosen, A, options))
    memory = chosen._memory(S, n_actions=A)
    hyde_start = 1.0 / (1.0 - gamma) if options.hyde_start == "bound" else options.hyde_start
    live = [[0.0 if mdp.terminal[s] else 1.0] * A for s in range(S)]
    run = Reference(
        theta=[[start] * A for _ in range(S)],
        q=[[x * options.critic_start for x in row] for row in live],
        hyde=[[x * hyde_start for x in row] for row in live],
    )
    explores = scheme.epsilon.c > 0.0 or scheme.off_policy.c > 0.0
    uniform = [1.0 / A] * A
    policy = [list(uniform) for _ in range(S)]
    visits = np.zeros((S, A), dtype=int)
    successors = _successors(mdp)
    branching = max(len(possible) for pairs in successors for possible in pairs)
    control, length, next_check = "jekyll", 0, first_gap
    factor_sum = 0.0
    s = _first_state(mdp, stream)

    for t in range(1, max_steps + 1):
        # Take an action and store the transition
        u = stream.uniform()
        a = index_at(u, policy[s]) if control == "jekyll" else greedy_action(run.hyde[s], u)
        possible = successors[s][a]  # deterministic processes consume no random number
        step = _transition(possible, stream) if branching > 1 else possible[0][1]
        run.buffers[control].append(step)
        visits[s, a] += 1

        # Replay
        buffer = run.buffers["jekyll"]
        if explores:
            u = stream.uniform()
            if run.buffers["hyde"] and u < probability_at(scheme.off_policy, t):
                buffer = run.buffers["hyde"]
        sample = buffer[stream.below(len(buffer))]
        if options.replay == "model" and branching > 1:
            sample = _from_model(run.buffers, sample, stream)
        x, b, after = sample.state, sample.action, sample.after

        # Hyde: Q-learning on the bonus
        if explores:
            n = int(visits[x, b])
            bonus = (
                math.sqrt(_logarithm(run.episodes + 1) / (0.001 + n))
                if options.bonus == "log"
                else 1.0 / math.sqrt(n)
            )
            error = bonus + gamma * max(run.hyde[after]) - run.hyde[x][b]
            run.hyde[x][b] = min(run.hyde[x][b] + options.hyde_rate * error, options.hyde_clip)

        # Jekyll's critic: SARSA
        if options.sarsa == "expected":
            ahead = _total(p * y for p, y in zip(policy[after], run.q[after], strict=True))
        else:
            ahead = run.q[after][stream.choose(policy[after])]
        run.q[x][b] += options.critic_rate * (sample.reward + gamma * ahead - run.q[x][b])

        # Jekyll's actor: expected update
        weight = eta
        if options.actor_weight == "discounted":
            factor = _power(gamma, length)
            factor_sum += factor
            weight = eta * (factor * (run.episodes / factor_sum))
        if memory is None:
            run.theta[x] = actor.step(run.theta[x], policy[x], run.q[x], weight, stream)
        else:
            row = np.array(run.theta[x]), np.array(run.q[x]), np.array(weight)
            with np.errstate(over="ignore", invalid="ignore"):
                new, memory[x] = chosen._move(*row, stream.generator(), memory[x])
            run.theta[x] = new.tolist()
        policy[x] = actor.policy(run.theta[x])

        # End of the trajectory
        s, length = step.after, length + 1
        ended = bool(mdp.terminal[s]) or length == options.cut
        if ended:
            run.episodes, length = run.episodes + 1, 0
            s = _first_state(mdp, stream)
            if explores:
                hyde_next = stream.uniform() < probability_at(scheme.epsilon, t)
                control = "hyde" if hyde_next else "jekyll"

        # Evaluate
        if t in record_at:
            run.recorded.append(mdp.performance(policy))
        run.steps, e = t, run.episodes
        every = max(1, options.max_episodes // 1000)
        if options.stop == "steps":
            if t >= next_check or t == max_steps:
                next_check = t + max(first_gap, int(0.03 * t))
                run.passed = mdp.performance(policy) >= threshold
        elif ended and ((e - 1) % every == 0 or e == options.max_episodes):
            share = probability_at(scheme.epsilon, t)
            run.passed = _mixture_passes(mdp, policy, run.hyde, share, threshold)
        if run.passed or (options.max_episodes and e == options.max_episodes):
            break
    run.performance = mdp.performance(policy)
    return run


def _mixture_passes(
    mdp: FiniteMDP, policy: list[Row], hyde: list[Row], share: float, threshold: float
) -> bool:
    """Return whether Jekyll's policy and its mixture with Hyde's greedy policy both pass."""
    greedy = np.eye(mdp.n_actions)[np.argmax(hyde, axis=1)]
    J = mdp.performance(policy)
    mixture = (1.0 - share) * J + share * mdp.performance(greedy)
    return min(J, mixture) > threshold


def _first_state(mdp: FiniteMDP, stream: Stream) -> int:
    possible = np.flatnonzero(mdp.initial)
    if len(possible) == 1:
        return int(possible[0])
    return int(possible[stream.choose(float(p) for p in mdp.initial[possible])])


def _successors(mdp: FiniteMDP) -> list[list[list[tuple[float, Transition]]]]:
    """Return the possible transitions of each state and action with their probabilities."""
    matrix = scipy.sparse.csr_array(mdp._matrix)
    table = mdp.transition_rewards

    def following(s: int, a: int) -> list[tuple[float, Transition]]:
        row = slice(*matrix.indptr[s * mdp.n_actions + a :][:2])
        entries = sorted(zip(matrix.indices[row], matrix.data[row], strict=True))
        return [
            (
                float(share),
                Transition(
                    s,
                    a,
                    float(mdp.rewards[s, a] if table is None else table[s, a, after]),
                    int(after),
                ),
            )
            for after, share in entries
            if share > 0.0
        ]

    return [[following(s, a) for a in range(mdp.n_actions)] for s in range(mdp.n_states)]


def _transition(possible: list[tuple[float, Transition]], stream: Stream) -> Transition:
    """Sample one of the transitions."""
    return possible[stream.choose(chance for chance, _ in possible)][1]


def _from_model(
    buffers: dict[str, list[Transition]], sample: Transition, stream: Stream
) -> Transition:
    """Sample from all stored transitions with the state and action of `sample`."""
    seen = [
        step
        for buffer in buffers.values()
        for step in buffer
        if (step.state, step.action) == (sample.state, sample.action)
    ]
    return sorted(seen, key=lambda step: step.after)[stream.below(len(seen))]


def greedy_action(values: Row, u: float) -> int:
    """Return an action that maximises the values; the number u in [0, 1) breaks ties."""
    best = [a for a, x in enumerate(values) if x == max(values)]
    return best[int(u * len(best))]


def _power(gamma: float, k: int) -> float:
    power = 1.0
    for _ in range(k):
        power *= gamma
    return power
