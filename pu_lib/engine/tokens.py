r"""A small network that writes three tokens for a prompt and learns from groups of samples.

There are four prompts and six tokens. A *context* is a prompt with the tokens written so far, so a
prompt has 1 + 6 + 36 contexts. One layer of 16 units with tanh is fed by the prompt, by the
position and by each earlier token at its distance; a linear layer and a softmax follow. The
parameters are rows of 16 numbers: one for each prompt, one for each position, one for each earlier
token at each distance, the weights of the last layer (a row for each token), and its biases, with
zeros after them. All contexts share them.

The verifier rejects or accepts a whole sequence. A sequence with token 0 is the *hack*. A sequence
without it is correct if its last two tokens are those of the prompt.

All arithmetic is that of `pu_lib.engine.arithmetic`, so that a seed gives the same bits everywhere.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.compiling import compiled, inlined_by_numba
from pu_lib.engine.arithmetic import exponential, logarithm, uniform
from pu_lib.engine.groups import write_advantages

Floats = NDArray[np.float64]

PROMPTS, TOKENS, LENGTH, UNITS = 4, 6, 3, 16
CONTEXTS = 1 + TOKENS + TOKENS**2
"""Contexts of a prompt: no token, one token and two tokens."""
GROUP = 8
"""Samples of a prompt in an update."""
RATE = 2e-3
"""Step size of Adam."""

_POSITION = PROMPTS
_EARLIER = _POSITION + LENGTH
_OUT = _EARLIER + (LENGTH - 1) * TOKENS
_BIAS = _OUT + TOKENS
ROWS = _BIAS + 1
"""Rows of the parameters."""


class Settings(NamedTuple):
    """What is fixed during a call of `train`.

    Attributes
    ----------
    advantages : int
        The place in `pu_lib.engine.groups.ADVANTAGES`.
    k3, entropy : float
        The coefficients of the penalty k3 in the loss and of the entropy bonus of each token.
    draws : int
        How often a group whose rewards agree is drawn, at most.
    hack_reward, correct_reward : float
        The rewards of the hack and of the correct answer.
    """

    advantages: int
    k3: float
    entropy: float
    draws: int
    hack_reward: float
    correct_reward: float


class TokenState(NamedTuple):
    """What a run carries from one update to the next.

    Attributes
    ----------
    words : ndarray of uint64, shape (4,)
        The state of the random stream.
    counts : ndarray of int64, shape (2,)
        The samples drawn, and how many of them were drawn up to the first correct one (0 if none).
    answers : ndarray of int64, shape (PROMPTS, 2)
        The last two tokens of the correct answer to each prompt.
    parameters : ndarray, shape (ROWS, UNITS)
        The parameters.
    moments, powers : ndarray, shape (2, ROWS, UNITS) and (2,)
        Adam's means of the gradient and of its square, and the powers of its two factors.
    reference : ndarray, shape (PROMPTS, CONTEXTS, TOKENS)
        The policy of the reference.
    """

    words: NDArray[np.uint64]
    counts: NDArray[np.int64]
    answers: NDArray[np.int64]
    parameters: Floats
    moments: Floats
    powers: Floats
    reference: Floats


class Workspace(NamedTuple):
    """The arrays of an update that the next one overwrites.

    Attributes
    ----------
    known : ndarray of bool, shape (PROMPTS, CONTEXTS)
        Whether this update has computed the policy of a context.
    hidden, policy, direction : ndarray, shape (PROMPTS, CONTEXTS, UNITS or TOKENS)
        The hidden layer and the policy of each context, and minus the derivative of the loss with
        respect to its scores.
    gradient : ndarray, shape (ROWS, UNITS)
        Minus the derivative of the loss with respect to the parameters.
    tokens : ndarray of int64, shape (PROMPTS, GROUP, LENGTH)
        The samples of each prompt.
    rewards, advantages : ndarray, shape (PROMPTS, GROUP)
        Their rewards and advantages.
    ones : ndarray, shape (GROUP,)
        How often each sample counts: once.
    """

    known: NDArray[np.bool_]
    hidden: Floats
    policy: Floats
    direction: Floats
    gradient: Floats
    tokens: NDArray[np.int64]
    rewards: Floats
    advantages: Floats
    ones: Floats


def new_workspace() -> Workspace:
    """Return a workspace of zeros."""
    contexts = PROMPTS, CONTEXTS
    return Workspace(
        known=np.zeros(contexts, bool),
        hidden=np.zeros((*contexts, UNITS)),
        policy=np.zeros((*contexts, TOKENS)),
        direction=np.zeros((*contexts, TOKENS)),
        gradient=np.zeros((ROWS, UNITS)),
        tokens=np.zeros((PROMPTS, GROUP, LENGTH), np.int64),
        rewards=np.zeros((PROMPTS, GROUP)),
        advantages=np.zeros((PROMPTS, GROUP)),
        ones=np.ones(GROUP),
    )


@inlined_by_numba
def _context(tokens: Any, written: int) -> Any:
    """Return the number of the context after the first `written` tokens."""
    if written == 0:
        return 0
    if written == 1:
        return 1 + tokens[0]
    return 1 + TOKENS + TOKENS * tokens[0] + tokens[1]


@inlined_by_numba
def _inputs(context: int) -> Any:
    """Return the row of the position and those of the earlier tokens, or -1 for no token."""
    if context == 0:
        return _POSITION, -1, -1
    if context <= TOKENS:
        return _POSITION + 1, _EARLIER + context - 1, -1
    pair = context - 1 - TOKENS
    return _POSITION + 2, _EARLIER + pair % TOKENS, _EARLIER + TOKENS + pair // TOKENS


@compiled
def _forward(p: Any, prompt: int, context: int, hidden: Any, policy: Any) -> None:
    """Write the hidden layer and the policy of a context."""
    position, last, before = _inputs(context)
    for v in range(TOKENS):
        policy[v] = p[_BIAS, v]
    for j in range(UNITS):
        x = p[prompt, j] + p[position, j]
        if last >= 0:
            x += p[last, j]
        if before >= 0:
            x += p[before, j]
        small = exponential(-2.0 * abs(x))
        h = math.copysign((1.0 - small) / (1.0 + small), x)  # tanh
        hidden[j] = h
        for v in range(TOKENS):
            policy[v] += h * p[_OUT + v, j]
    top = policy[0]
    for v in range(1, TOKENS):
        top = max(top, policy[v])
    total = 0.0
    for v in range(TOKENS):
        policy[v] = exponential(policy[v] - top)
        total += policy[v]
    for v in range(TOKENS):
        policy[v] /= total


@compiled
def _backward(
    p: Any, prompt: int, context: int, hidden: Any, direction: Any, gradient: Any
) -> None:
    """Add what a direction of the scores of a context means for the parameters."""
    position, last, before = _inputs(context)
    for v in range(TOKENS):
        gradient[_BIAS, v] += direction[v]
    for j in range(UNITS):
        slope = 0.0
        for v in range(TOKENS):
            slope += direction[v] * p[_OUT + v, j]
            gradient[_OUT + v, j] += direction[v] * hidden[j]
        slope *= 1.0 - hidden[j] * hidden[j]
        gradient[prompt, j] += slope
        gradient[position, j] += slope
        if last >= 0:
            gradient[last, j] += slope
        if before >= 0:
            gradient[before, j] += slope


@compiled
def write_policy(p: Any, work: Any) -> None:
    """Write the policies of all contexts into a workspace."""
    for prompt in range(PROMPTS):
        for context in range(CONTEXTS):
            _forward(p, prompt, context, work.hidden[prompt, context], work.policy[prompt, context])


@inlined_by_numba
def _reward(tokens: Any, answer: Any, settings: Any) -> Any:
    """Return the reward of a sample."""
    for t in range(LENGTH):
        if tokens[t] == 0:
            return settings.hack_reward
    if tokens[1] == answer[0] and tokens[2] == answer[1]:
        return settings.correct_reward
    return 0.0


@compiled
def _draw_group(settings: Any, state: Any, work: Any, prompt: int, stream: Any) -> Any:
    """Draw a group of samples with their rewards, and return the stream."""
    tokens, rewards = work.tokens[prompt], work.rewards[prompt]
    for i in range(GROUP):
        for t in range(LENGTH):
            context = _context(tokens[i], t)
            policy = work.policy[prompt, context]
            if not work.known[prompt, context]:
                _forward(state.parameters, prompt, context, work.hidden[prompt, context], policy)
                work.known[prompt, context] = True
                for v in range(TOKENS):
                    work.direction[prompt, context, v] = 0.0
            u, stream = uniform(stream)
            token = 0
            while token < TOKENS - 1 and u >= policy[token]:
                u -= policy[token]
                token += 1
            tokens[i, t] = token
        rewards[i] = _reward(tokens[i], state.answers[prompt], settings)
        state.counts[0] += 1
        if rewards[i] == 1.0 and settings.correct_reward == 1.0 and state.counts[1] == 0:
            state.counts[1] = state.counts[0]
    return stream


@inlined_by_numba
def _differ(rewards: Any) -> bool:
    """Return whether the rewards of a group differ."""
    differ = False
    for i in range(1, len(rewards)):
        differ = differ or rewards[i] != rewards[0]
    return differ


@compiled
def _add_directions(settings: Any, state: Any, work: Any, prompt: int) -> None:
    """Add the directions of a group, a mean over the samples of all prompts."""
    tokens, share = work.tokens[prompt], 1.0 / (PROMPTS * GROUP)
    for i in range(GROUP):
        for t in range(LENGTH):
            context, token = _context(tokens[i], t), tokens[i, t]
            policy, d = work.policy[prompt, context], work.direction[prompt, context]
            w = work.advantages[prompt, i]
            if settings.k3 > 0.0:
                w -= settings.k3 * (1.0 - state.reference[prompt, context, token] / policy[token])
            if settings.entropy > 0.0:
                entropy = 0.0
                for v in range(TOKENS):
                    entropy += policy[v] * logarithm(1.0 / policy[v])
                for v in range(TOKENS):
                    surprise = logarithm(1.0 / policy[v]) - entropy
                    d[v] += share * settings.entropy * policy[v] * surprise
            for v in range(TOKENS):
                d[v] -= share * w * policy[v]
            d[token] += share * w


@compiled
def _adam(state: Any, gradient: Any) -> None:
    """Take a step of Adam along the gradient."""
    state.powers[0] *= 0.9
    state.powers[1] *= 0.999
    first, second = 1.0 - state.powers[0], 1.0 - state.powers[1]
    for i in range(ROWS):
        for j in range(UNITS):
            g = gradient[i, j]
            m = 0.9 * state.moments[0, i, j] + 0.1 * g
            v = 0.999 * state.moments[1, i, j] + 0.001 * g * g
            state.moments[0, i, j] = m
            state.moments[1, i, j] = v
            state.parameters[i, j] += RATE * (m / first) / (math.sqrt(v / second) + 1e-8)


@compiled
def write_gradient(settings: Any, state: Any, work: Any) -> None:
    """Draw a group for each prompt and write the gradient of their loss into the workspace."""
    stream = (state.words[0], state.words[1], state.words[2], state.words[3])
    work.known[:] = False
    work.gradient[:] = 0.0
    for prompt in range(PROMPTS):
        for _ in range(settings.draws):
            stream = _draw_group(settings, state, work, prompt, stream)
            if _differ(work.rewards[prompt]):
                break
        write_advantages(
            settings.advantages, GROUP, work.rewards[prompt], work.ones, work.advantages[prompt]
        )
        _add_directions(settings, state, work, prompt)
        for context in range(CONTEXTS):
            if work.known[prompt, context]:
                _backward(
                    state.parameters, prompt, context, work.hidden[prompt, context],
                    work.direction[prompt, context], work.gradient,
                )  # fmt: skip
    state.words[0], state.words[1], state.words[2], state.words[3] = stream


@compiled
def train(settings: Any, state: Any, work: Any, updates: int) -> None:
    """Make a number of updates, each a step of Adam on a group of samples for each prompt."""
    for _ in range(updates):
        write_gradient(settings, state, work)
        _adam(state, work.gradient)


@compiled
def write_correct(state: Any, work: Any, correct: Any) -> None:
    """Write the probability of the correct answer to each prompt."""
    for prompt in range(PROMPTS):
        second, third = state.answers[prompt, 0], state.answers[prompt, 1]
        hidden, policy = work.hidden[prompt], work.policy[prompt]
        _forward(state.parameters, prompt, 0, hidden[0], policy[0])
        total = 0.0
        for first in range(1, TOKENS):
            one, two = 1 + first, 1 + TOKENS + TOKENS * first + second
            _forward(state.parameters, prompt, one, hidden[one], policy[one])
            _forward(state.parameters, prompt, two, hidden[two], policy[two])
            total += policy[0, first] * policy[one, second] * policy[two, third]
        correct[prompt] = total


@compiled
def recover(
    settings: Any, state: Any, work: Any, every: int, cap: int, correct: Any
) -> tuple[int, int, int]:
    """Train until each correct answer has probability one half, or for `cap` updates.

    The probabilities are measured every so many updates; `correct` has the last ones.

    Returns
    -------
    half, samples : int
        The updates and the samples until their mean is one half, or -1.
    all : int
        The updates until the least of them is one half, or -1.
    """
    half, samples, updates = -1, -1, 0
    while True:
        write_correct(state, work, correct)
        mean, least = 0.0, 1.0
        for prompt in range(PROMPTS):
            mean += correct[prompt] / PROMPTS
            least = min(least, correct[prompt])
        if half < 0 and mean >= 0.5:
            half, samples = updates, state.counts[0]
        if least >= 0.5:
            return half, samples, updates
        if updates >= cap:
            return half, samples, -1
        train(settings, state, work, every)
        updates += every
