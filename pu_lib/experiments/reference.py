r"""Jekyll & Hyde in plain Python and NumPy: the loop to read, and the check on the compiled one.

This is the algorithm of the paper's appendix B.2, written for reading: no speed, no specialisation,
one short function a formula. It draws from the same random stream as
`pu_lib.experiments.jekyll_hyde` and rounds in the same places, so that both give the same run to
the last bit; the tests compare them. What differs is how: tables are read from the process itself,
the policy is recomputed where it is needed, the performance is solved by LAPACK, which may miss a
target of exactly 1 by a bit.

The loop is one long function on purpose: it reads as the algorithm's order of events. The formulas
of the paper's updates are written here once more, also on purpose, to check the compiled kernels.

Sums are plain loops, left to right: NumPy's and Python's own sums may group or correct terms
differently from one version to the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.experiments.options import PAPER, Options, Schedule, Scheme, configured, start_of
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import (
    CrossEntropy,
    Direct,
    EscortPolicyGradient,
    ModifiedCrossEntropy,
    SoftmaxPolicyGradient,
    Ties,
    Update,
)

__all__ = ["Actor", "Reference", "Stream", "Wide", "exponential", "run_reference"]

Row = list[Any]
_MASK = (1 << 64) - 1


class Stream:
    """The xoshiro256++ generator of Blackman and Vigna.

    Parameters
    ----------
    words : ndarray of uint64, shape (4,)
        Its state.
    """

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
        """Return a generator of NumPy seeded by the state, for updates that draw by themselves."""
        return np.random.default_rng(self._words)

    def choose(self, probabilities: Iterable[float]) -> int:
        """Return an index with the given probabilities."""
        return _index(self.uniform(), probabilities)


def _index(u: float, probabilities: Iterable[float]) -> int:
    """Return the index in whose share of [0, 1) u falls; the last one takes what rounding left."""
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
    r"""Return :math:`e^x` for x <= 0, rounded as the compiled loop does.

    With :math:`x = n\ln(2)/64 + r`, the Taylor polynomial of :math:`e^r` times :math:`2^{n/64}`.
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
    """Return ln n from n = m 2^e and the series of artanh((m - 1) / (m + 1))."""
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
    """A number with the digits of a float and an exponent without bounds.

    Attributes
    ----------
    mantissa : float
        Its digits.
    exponent : int
        The power of 2 that multiplies them.
    """

    mantissa: float
    exponent: int = 0

    def times(self, factor: float, other: float) -> Wide:
        """Return x + factor x other, rounded as floats of any size are.

        Parameters
        ----------
        factor, other : float
            What x is multiplied by, from left to right.

        Returns
        -------
        Wide
            The sum, with its mantissa between 1/2 and 1 in modulus.
        """
        digits = self.mantissa + factor * self.mantissa * other
        mantissa, shift = math.frexp(digits)
        return Wide(mantissa, self.exponent + shift)

    def __float__(self) -> float:
        """Return the float next to it: 0 where it is too small for any."""
        return math.ldexp(self.mantissa, self.exponent)


def _softmax(theta: Row) -> Row:
    weights = [exponential(x - max(theta)) for x in theta]
    scale = 1.0 / _total(weights)
    return [weight * scale for weight in weights]


def _escort(theta: Row) -> Row:
    theta = [float(x) for x in theta]
    scale = 1.0 / _total(x * x for x in theta)
    return [x * x * scale for x in theta]


def _projection(point: Row) -> Row:
    """Project on the simplex: drop what is not above the threshold until nothing is dropped."""
    kept, threshold = point, -math.inf
    while True:
        threshold = max(threshold, (_total(kept) - 1.0) / len(kept))
        above = [x for x in kept if x > threshold]
        if len(above) == len(kept):
            return [max(x - threshold, 0.0) for x in point]
        kept = above


@dataclass(frozen=True)
class Actor:
    """The formulas of an update.

    Attributes
    ----------
    policy : callable
        Returns the policy of parameters.
    step : callable
        Returns the parameters after a step, from (theta, pi, q, weight, stream).
    start : callable
        Returns a parameter as the two above take it, from the float that a run starts from.
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


def _ce(theta: Row, pi: Row, weight: float, chosen: int) -> Row:
    return [x + weight * ((a == chosen) - pi[a]) for a, x in enumerate(theta)]


def _mce(theta: Row, pi: Row, weight: float, chosen: int) -> Row:
    gain = weight * _total(p for a, p in enumerate(pi) if a != chosen)
    loss = gain / (len(theta) - 1)
    return [x + gain if a == chosen else x - loss for a, x in enumerate(theta)]


def _advantage(pi: Row, q: Row) -> Row:
    v = _total(p * x for p, x in zip(pi, q, strict=True))
    return [x - v for x in q]


def _towards_greedy(formula: Callable[[Row, Row, float, int], Row], ties: Ties) -> Actor:
    """Return the actor of a cross-entropy update."""

    def step(theta: Row, pi: Row, q: Row, weight: float, stream: Stream) -> Row:
        best = [a for a, x in enumerate(q) if x == max(q)]
        if len(best) > 1 and ties == "leave":
            return theta
        drawn = len(best) > 1 and ties == "random"
        return formula(theta, pi, weight, best[stream.below(len(best))] if drawn else best[0])

    return Actor(_softmax, step)


_SCALAR: dict[type[Update], Callable[[Any], Actor]] = {
    SoftmaxPolicyGradient: lambda _: Actor(_softmax, _pg_sm),
    EscortPolicyGradient: lambda update: Actor(
        _escort, lambda theta, pi, q, w, _: _pg_es(theta, pi, q, w, update.factor == "keep"), Wide
    ),
    Direct: lambda _: Actor(list, _di),
    CrossEntropy: lambda update: _towards_greedy(_ce, update.ties),
    ModifiedCrossEntropy: lambda update: _towards_greedy(_mce, update.ties),
}
"""The paper's updates, written a third time: this loop checks the kernels of the compiled one."""


def _actor(update: Update, options: Options = PAPER) -> Actor:
    """Return the formulas of an update: those above, or the hooks of one that is not there."""
    if type(update) in _SCALAR and update.options.get("p", 2.0) == 2.0:
        actor = _SCALAR[type(update)](update)
        return replace(actor, start=float) if options.precision == "float64" else actor
    # the exponential of the machine's library may differ from the engine's in its last bit
    softmax = type(update).to_policy is SoftmaxPolicyGradient.to_policy or update.kernel is not None
    known = _softmax if softmax and update.parametrization == "softmax" else None
    # a run makes tens of thousands of steps, whose arguments need no check
    return Actor(
        known or (lambda theta: update.to_policy(np.array(theta)).tolist()),
        lambda theta, _, q, w, stream: update._unchecked_step(
            np.array(theta), np.array(q), np.array(w), stream.generator()
        ).tolist(),
    )


def _probability(schedule: Schedule, t: int) -> float:
    power = {0.0: 1.0, 0.5: math.sqrt(t), 1.0: float(t)}[schedule.alpha]
    return min(1.0, schedule.c / power)


# The loop


@dataclass(frozen=True)
class Transition:
    """One step in the environment."""

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
        Parameters of Jekyll's policy, which are `Wide` for the escort update, his critic, Hyde's
        values.
    steps, episodes : int
        Steps taken and trajectories finished.
    passed : bool
        Whether the threshold was passed.
    performance : float
        Exact performance of the last policy.
    buffers : dict
        The transitions of "jekyll" and "hyde".
    """

    theta: list[Row]
    q: list[Row]
    hyde: list[Row]
    steps: int = 0
    episodes: int = 0
    passed: bool = False
    performance: float = math.nan
    buffers: dict[str, list[Transition]] = field(default_factory=lambda: {"jekyll": [], "hyde": []})


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
) -> Reference:
    """Run Jekyll & Hyde until the policy's performance reaches `threshold`.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    threshold : float
        Performance to reach (not normalised).
    update : str or Update
        Update of the actor, registered or not, or a string that stands for one. One that is none of
        the paper's five, or has an escort exponent other than 2, takes its steps through
        `pu_lib.updates.Update.advance`.
    eta, scheme, seeds, options, max_steps
        As for `pu_lib.experiments.jekyll_hyde.simulate`.
    first_gap : int
        Steps between the early evaluations: in the paper's experiments 25 where the states have an
        order, else 100.
    actor : Actor, optional
        Formulas to use instead of those of the update, such as its own in another arithmetic.

    Returns
    -------
    Reference
        The state at the end of the run, and how it ended.
    """
    S, A, gamma = mdp.n_states, mdp.n_actions, mdp.discount
    stream = Stream(seeds)
    chosen = configured(update, options)
    actor = _actor(chosen, options) if actor is None else actor
    start = actor.start(start_of(chosen, A, options))
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
        # Act, and remember
        u = stream.uniform()
        a = _index(u, policy[s]) if control == "jekyll" else _greedy_action(run.hyde[s], u)
        possible = successors[s][a]  # processes without chance draw nothing
        step = _transition(possible, stream) if branching > 1 else possible[0][1]
        run.buffers[control].append(step)
        visits[s, a] += 1

        # Replay
        buffer = run.buffers["jekyll"]
        if explores:
            u = stream.uniform()
            if run.buffers["hyde"] and u < _probability(scheme.off_policy, t):
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
        run.theta[x] = actor.step(run.theta[x], policy[x], run.q[x], weight, stream)
        policy[x] = actor.policy(run.theta[x])

        # End of the trajectory
        s, length = step.after, length + 1
        ended = bool(mdp.terminal[s]) or length == options.cut
        if ended:
            run.episodes, length = run.episodes + 1, 0
            s = _first_state(mdp, stream)
            if explores:
                hyde_next = stream.uniform() < _probability(scheme.epsilon, t)
                control = "hyde" if hyde_next else "jekyll"

        # Evaluate
        run.steps, e = t, run.episodes
        every = max(1, options.max_episodes // 1000)
        if options.stop == "steps":
            if t >= next_check or t == max_steps:
                next_check = t + max(first_gap, int(0.03 * t))
                run.passed = mdp.performance(policy) >= threshold
        elif ended and ((e - 1) % every == 0 or e == options.max_episodes):
            share = _probability(scheme.epsilon, t)
            run.passed = _mixture_passes(mdp, policy, run.hyde, share, threshold)
        if run.passed or (options.max_episodes and e == options.max_episodes):
            break
    run.performance = mdp.performance(policy)
    return run


def _mixture_passes(
    mdp: FiniteMDP, policy: list[Row], hyde: list[Row], share: float, threshold: float
) -> bool:
    """Return whether Jekyll's policy passes, and the mixture with Hyde's greedy policy too."""
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
    """Return, for each state and action, the transitions that can follow with their chances."""
    shares, table = mdp.transitions, mdp.transition_rewards
    expected = np.broadcast_to(mdp.rewards[:, :, np.newaxis], shares.shape)
    paid = expected if table is None else table

    def following(s: int, a: int) -> list[tuple[float, Transition]]:
        return [
            (float(shares[s, a, after]), Transition(s, a, float(paid[s, a, after]), int(after)))
            for after in np.flatnonzero(shares[s, a])
        ]

    return [[following(s, a) for a in range(mdp.n_actions)] for s in range(mdp.n_states)]


def _transition(possible: list[tuple[float, Transition]], stream: Stream) -> Transition:
    """Draw one of the transitions."""
    return possible[stream.choose(chance for chance, _ in possible)][1]


def _from_model(
    buffers: dict[str, list[Transition]], sample: Transition, stream: Stream
) -> Transition:
    """Draw from all transitions seen after the state and action of `sample`."""
    seen = [
        step
        for buffer in buffers.values()
        for step in buffer
        if (step.state, step.action) == (sample.state, sample.action)
    ]
    return sorted(seen, key=lambda step: step.after)[stream.below(len(seen))]


def _greedy_action(values: Row, u: float) -> int:
    """Return a best action; u in [0, 1) says which of several."""
    best = [a for a, x in enumerate(values) if x == max(values)]
    return best[int(u * len(best))]


def _power(gamma: float, k: int) -> float:
    power = 1.0
    for _ in range(k):
        power *= gamma
    return power
