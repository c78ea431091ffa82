r"""A softmax policy over a few answers that learns from groups of samples, until a probability.

An update draws a group of samples and makes a step along the mean of advantage times score, minus a
penalty. A method is *silent* if it does nothing on a group whose rewards agree. Silent methods jump
over these groups: the number of groups that agree before one that does not is drawn from its
geometric law, and then a group that does not agree. Counts have the same law as those of single
groups, and a run takes as long at a probability of 1e-9 as at 1e-3. The other methods make each
update; where all samples are the most probable answer, one random number says so.

All arithmetic is that of `pu_lib.engine.arithmetic`, so that a seed gives the same bits everywhere.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.compiling import compiled, inlined_by_numba
from pu_lib.engine.arithmetic import exponential, logarithm, uniform

Floats = NDArray[np.float64]

ADVANTAGES = ("RLOO", "Dr. GRPO", "GRPO", "MaxRL", "rejection sampling", "best of the group")
"""The advantages; compiled code takes the place in this tuple."""

_RLOO, _CENTRED, _GRPO, _MAXRL, _REJECTION, _BEST = range(len(ADVANTAGES))
_MEAN, _SQUARE, _TINY = 0.9, 0.999, 1e-8  # Adam's usual constants


class Settings(NamedTuple):
    """What is fixed during a call of `improve`.

    Attributes
    ----------
    advantages : int
        The place in `ADVANTAGES`.
    weight : float
        The step size, of Adam if `adam`.
    size : int
        The number of samples of a group.
    mixed : int
        How many of them are drawn from the reference, without a ratio.
    draws : int
        How often an update draws a group whose rewards agree, at most.
    k3, kl : float
        The coefficients of the penalty k3 in the loss, and of the exact gradient of the divergence
        from `Problem.anchor`.
    adam : bool
        Whether steps are those of Adam.
    """

    advantages: int
    weight: float
    size: int
    mixed: int
    draws: int
    k3: float
    kl: float
    adam: bool


class Problem(NamedTuple):
    """The rewards of the answers, the reference, and logarithms of the policy of the penalty `kl`.

    Constant logarithms are those of the uniform policy: the penalty is then an entropy bonus.
    """

    rewards: Floats
    reference: Floats
    anchor: Floats


class State(NamedTuple):
    """What a run carries from one update to the next.

    Attributes
    ----------
    words : ndarray of uint64, shape (4,)
        The state of the random stream.
    theta : ndarray, shape (K,)
        The parameters.
    moments, powers : ndarray, shape (2, K) and (2,)
        Adam's means of the gradient and of its square, and the powers of its two factors.
    """

    words: NDArray[np.uint64]
    theta: Floats
    moments: Floats
    powers: Floats


class Workspace(NamedTuple):
    """The arrays of an update that the next one overwrites, each of shape (K,).

    Attributes
    ----------
    pi, counts, direction : ndarray
        The policy, how often a group has each answer, and the step.
    inside : ndarray of bool
        The answers that most groups have none but.
    """

    pi: Floats
    counts: Floats
    direction: Floats
    inside: NDArray[np.bool_]


def new_workspace(answers: int) -> Workspace:
    """Return the arrays for a number of answers."""
    pi, counts, direction = np.zeros((3, answers))
    return Workspace(pi, counts, direction, np.zeros(answers, np.bool_))


@compiled
def _log_survival(q: float) -> float:
    """Return -log(1 - q) for 0 <= q < 1."""
    if q < 1e-3:
        return q * (1.0 + q * (1 / 2 + q * (1 / 3 + q * (1 / 4 + q / 5))))
    return logarithm(1.0 / (1.0 - q))


@compiled
def _at_least_once(q: float, trials: int) -> float:
    """Return 1 - (1 - q)^trials, the probability of a success in independent trials."""
    chance = 0.0
    while trials > 0:
        if trials & 1:
            chance += q * (1.0 - chance)
        q *= 2.0 - q
        trials >>= 1
    return chance


@compiled
def _policy(theta: Any, pi: Any) -> Any:
    """Write the softmax policy, and return the logarithm of the sum of exponentials."""
    largest = theta[0]
    for a in range(1, theta.size):
        largest = max(largest, theta[a])
    total = 0.0
    for a in range(theta.size):
        pi[a] = exponential(theta[a] - largest)
        total += pi[a]
    for a in range(theta.size):
        pi[a] /= total
    return largest + logarithm(total)


@compiled
def _draw(pi: Any, inside: Any, wanted: bool, mass: float, stream: Any) -> Any:
    """Draw an answer whose entry of `inside` is `wanted`; `mass` is their probability."""
    u, stream = uniform(stream)
    left, last = u * mass, 0
    for a in range(pi.size):
        if inside[a] == wanted:
            last = a
            left -= pi[a]
            if left < 0.0:
                break
    return last, stream


@compiled
def _any(pi: Any, stream: Any) -> Any:
    """Draw an answer."""
    left, stream = uniform(stream)
    last = pi.size - 1
    for a in range(pi.size):
        left -= pi[a]
        if left < 0.0:
            last = a
            break
    return last, stream


@compiled
def _group_with_another(size: int, outside: float, work: Any, stream: Any) -> Any:
    """Add to the counts a group of the policy that is not all inside.

    The place of the first sample that is outside has a geometric law, cut off at the size.
    """
    u, stream = uniform(stream)
    chance = u * _at_least_once(outside, size)
    first: Any = min(np.int64(_log_survival(chance) / _log_survival(outside)), size - 1)
    for _ in range(first):
        a, stream = _draw(work.pi, work.inside, True, 1.0 - outside, stream)
        work.counts[a] += 1.0
    a, stream = _draw(work.pi, work.inside, False, outside, stream)
    work.counts[a] += 1.0
    for _ in range(first + 1, size):
        a, stream = _any(work.pi, stream)
        work.counts[a] += 1.0
    return stream


@inlined_by_numba
def _group(settings: Any, problem: Any, work: Any, stream: Any) -> Any:
    """Draw the group of one update."""
    pi, counts, inside = work.pi, work.counts, work.inside
    top = 0
    for a in range(1, pi.size):
        if pi[a] > pi[top]:
            top = a
    outside = 0.0
    for a in range(pi.size):
        counts[a] = 0.0
        inside[a] = a == top
        if a != top:
            outside += pi[a]
    for _ in range(settings.mixed):
        a, stream = _any(problem.reference, stream)
        counts[a] += 1.0
    own = settings.size - settings.mixed
    u, stream = uniform(stream)
    if u < _at_least_once(outside, own):
        stream = _group_with_another(own, outside, work, stream)
    else:
        counts[top] += own
    return stream


@inlined_by_numba
def _class_outside(rewards: Any, work: Any, size: int) -> Any:
    """Mark the most probable answers with one reward, and return two probabilities.

    They are the probability of all other answers, and that of a group whose rewards differ.
    """
    pi, inside = work.pi, work.inside
    best, mass = 0, -1.0
    for a in range(pi.size):
        equal = 0.0
        for b in range(pi.size):
            if rewards[b] == rewards[a]:
                equal += pi[b]
        if equal > mass:
            best, mass = a, equal
    outside = 0.0
    for a in range(pi.size):
        inside[a] = rewards[a] == rewards[best]
        if not inside[a]:
            outside += pi[a]
    differs = _at_least_once(outside, size)
    for a in range(pi.size):
        equal, first = 0.0, True
        for b in range(pi.size):
            if rewards[b] == rewards[a]:
                first = first and b >= a
                equal += pi[b]
        if first and not inside[a]:
            differs -= equal**size
    return outside, differs


@inlined_by_numba
def _group_that_differs(size: int, outside: float, rewards: Any, work: Any, stream: Any) -> Any:
    """Draw a group whose rewards differ."""
    counts, differs = work.counts, False
    while not differs:
        for a in range(counts.size):
            counts[a] = 0.0
        stream = _group_with_another(size, outside, work, stream)
        least, most = np.inf, -np.inf
        for a in range(counts.size):
            if counts[a] > 0.0:
                least, most = min(least, rewards[a]), max(most, rewards[a])
        differs = least < most
    return stream


@compiled
def write_advantages(kind: int, size: int, rewards: Any, counts: Any, direction: Any) -> None:
    """Write for each answer its number of samples times their advantage."""
    mean, least, most = 0.0, np.inf, -np.inf
    for a in range(counts.size):
        if counts[a] > 0.0:
            mean += counts[a] * rewards[a] / size
            least, most = min(least, rewards[a]), max(most, rewards[a])
    square, best = 0.0, 0.0
    for a in range(counts.size):
        square += counts[a] * (rewards[a] - mean) ** 2
        if counts[a] > 0.0 and rewards[a] == most:
            best += counts[a]
    if kind == _REJECTION:
        scale = 1.0 / mean if mean > 0.0 else 0.0
        mean = 0.0
    elif least == most:
        scale = 0.0
    elif kind == _RLOO:
        scale = size / (size - 1.0)
    elif kind == _GRPO:
        scale = 1.0 / np.sqrt(square / (size - 1.0))
    elif kind == _MAXRL:
        scale = 1.0 / mean
    else:
        scale = 1.0
    for a in range(counts.size):
        if kind == _BEST:
            advantage = scale * size / best if rewards[a] == most else 0.0
        else:
            advantage = scale * (rewards[a] - mean)
        direction[a] = counts[a] * advantage


@inlined_by_numba
def _direction(settings: Any, problem: Any, state: Any, work: Any, log_sum: float) -> None:
    """Write the step of unit weight."""
    pi, counts, direction = work.pi, work.counts, work.direction
    write_advantages(settings.advantages, settings.size, problem.rewards, counts, direction)
    total = 0.0
    for a in range(pi.size):
        if settings.k3 > 0.0 and counts[a] > 0.0:
            direction[a] -= counts[a] * settings.k3 * (1.0 - problem.reference[a] / pi[a])
        total += direction[a]
    for a in range(pi.size):
        direction[a] = (direction[a] - pi[a] * total) / settings.size
    if settings.kl > 0.0:
        divergence = 0.0
        for a in range(pi.size):
            divergence += pi[a] * (state.theta[a] - log_sum - problem.anchor[a])
        for a in range(pi.size):
            excess = state.theta[a] - log_sum - problem.anchor[a] - divergence
            direction[a] -= settings.kl * pi[a] * excess


@inlined_by_numba
def _move(settings: Any, state: Any, direction: Any) -> None:
    """Make the step."""
    if not settings.adam:
        for a in range(direction.size):
            state.theta[a] += settings.weight * direction[a]
        return
    state.powers[0] *= _MEAN
    state.powers[1] *= _SQUARE
    for a in range(direction.size):
        d = direction[a]
        state.moments[0, a] = _MEAN * state.moments[0, a] + (1.0 - _MEAN) * d
        state.moments[1, a] = _SQUARE * state.moments[1, a] + (1.0 - _SQUARE) * d * d
        mean = state.moments[0, a] / (1.0 - state.powers[0])
        square = state.moments[1, a] / (1.0 - state.powers[1])
        state.theta[a] += settings.weight * mean / (np.sqrt(square) + _TINY)


@compiled
def is_silent(settings: Any) -> bool:
    """Return whether an update does nothing on a group whose rewards agree."""
    penalised = settings.k3 > 0.0 or settings.kl > 0.0
    samples_own = settings.mixed == 0 and settings.advantages != _REJECTION
    return samples_own and not penalised and not settings.adam


@compiled
def improve(
    settings: Any, problem: Any, state: Any, work: Any, answer: int, level: float, most: float
) -> tuple[float, float]:
    """Make updates until an answer has at least the probability `level`, or `most` updates.

    Returns
    -------
    updates, groups : float
        The numbers of updates and of groups drawn.
    """
    stream = (state.words[0], state.words[1], state.words[2], state.words[3])
    jumps = is_silent(settings)
    updates, groups = 0.0, 0.0
    log_sum = _policy(state.theta, work.pi)
    while updates < most and work.pi[answer] < level:
        if jumps:
            outside, differs = _class_outside(problem.rewards, work, settings.size)
            u, stream = uniform(stream)
            agreeing = np.floor(logarithm(1.0 / (1.0 - u)) / _log_survival(differs))
            needed = np.floor(agreeing / settings.draws) + 1.0
            if updates + needed > most:
                groups += (most - updates) * settings.draws
                updates = most
                break
            updates += needed
            groups += agreeing + 1.0
            stream = _group_that_differs(settings.size, outside, problem.rewards, work, stream)
        else:
            updates += 1.0
            groups += 1.0
            stream = _group(settings, problem, work, stream)
        _direction(settings, problem, state, work, log_sum)
        _move(settings, state, work.direction)
        log_sum = _policy(state.theta, work.pi)
    for k in range(4):
        state.words[k] = stream[k]
    return updates, groups
