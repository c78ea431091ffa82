r"""Two small networks that learn from samples: an actor, a critic, and tasks that change.

Both networks have two hidden layers of 32 units with tanh. Their parameters are rows of 32 numbers:
the weights of the first layer (a row for each input), its biases, the same for the second layer,
the weights of the last layer (a row for each action), and its biases, with zeros after them. An
update takes one step in each of 32 copies of the task, moves the critic by expected SARSA with a
target copy and Adam, and moves the scores of the actor.

The actor's loss is defined by its *direction*: minus its derivative with respect to the scores of a
state. The chain rule takes the mean of the directions over the batch to the parameters.

All arithmetic is that of `pu_lib.engine.arithmetic`, so that a seed gives the same bits everywhere.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.compiling import compiled, inlined_by_numba
from pu_lib.engine.arithmetic import exponential, int_to_float, logarithm, uniform

Floats = NDArray[np.float64]

UNITS = 32
"""Units of each hidden layer."""
BATCH = 32
"""Copies of the task, and states of a batch."""
COPY = 100
"""Updates between two copies of the critic to its target."""
CRITIC_RATE = 1e-3
FIT_RATE = 1e-3
FIT_STEPS = 10
"""Steps of Adam, and their rate, by which DI and NPG fit their targets."""
CLIP = 0.2
CLIP_STEPS = 4
BONUS = 0.01
"""Usual weight of the entropy in the losses of PPO-like, PG-SM with a bonus and soft NeuRD."""
WINDOW = 10
"""Updates whose rewards are added up."""

METHODS = (
    "pg-sm",
    "pg-sm entropy",
    "ppo-like",
    "neurd",
    "soft neurd",
    "npg fit",
    "pg-es",
    "ce",
    "mce",
    "sce",
    "di fit",
    "greedy",
)
"""The methods; compiled code takes the place of a method in this tuple."""
_PG, _ENTROPY, _PPO, _NEURD, _SOFT, _NPG, _ES, _CE, _MCE, _SCE, _DI, _GREEDY = range(12)

CHAIN, GRID, POLE, LARGE = range(4)
"""The kinds of tasks: the chain, the grid, CartPole and a larger grid."""
CAPS = (100, 50, 200, 100)
"""Steps after which an episode of each kind is cut."""
_SIDES = (0, 7, 0, 11)  # of the grids
_LAST = 8  # state of the chain
_SLIP = 0.1  # probability that the chain turns an action around
# The cosines of pi/8, pi/4 and 3 pi/8, from square roots.
_C1 = math.sqrt(2.0 + math.sqrt(2.0)) / 2.0
_C2 = math.sqrt(2.0) / 2.0
_C3 = math.sqrt(2.0 - math.sqrt(2.0)) / 2.0
_QUARTER = [1.0, _C1, _C2, _C3]
_FALLING = [0.0, -_C3, -_C2, -_C1]
_TURN = np.array([*_QUARTER, *_FALLING, *(-x for x in _QUARTER), *(-x for x in _FALLING)])
_TILT = 12 * 2 * math.pi / 360


class Layers(NamedTuple):
    """The layers of a network for a batch, or the derivatives of a loss with respect to them.

    Attributes
    ----------
    hidden1, hidden2 : ndarray, shape (n, UNITS)
        The hidden layers for n states.
    outputs : ndarray, shape (n, A)
        The scores or the values of the actions.
    """

    hidden1: Floats
    hidden2: Floats
    outputs: Floats


class Network(NamedTuple):
    """A network and the state of its optimiser.

    Attributes
    ----------
    parameters : ndarray, shape (rows, UNITS)
        The weights and biases, see `rows`.
    moments : ndarray, shape (2, rows, UNITS)
        Adam's means of the gradient and of its square.
    powers : ndarray, shape (2,)
        The powers of Adam's two factors.
    """

    parameters: Floats
    moments: Floats
    powers: Floats


class Batch(NamedTuple):
    """The arrays on which the directions of a batch of n states depend, all of shape (n, A).

    Attributes
    ----------
    scores, policy : ndarray
        The actor's scores and policy.
    values : ndarray
        The critic's values.
    old_scores, old_policy : ndarray
        The scores and the policy before the first of several steps on the batch.
    """

    scores: Floats
    policy: Floats
    values: Floats
    old_scores: Floats
    old_policy: Floats


class Settings(NamedTuple):
    """What is fixed during a call of `train`.

    Attributes
    ----------
    kind, phase : int
        The kind of the task, and 0 before its change or 1 after it.
    end_rewards : ndarray, shape (2,)
        What the two ends of the chain and of the grid pay in this phase.
    gamma, exploration : float
        The discount factor, and the probability of an action drawn uniformly.
    method : int
        The place of the method in `METHODS`.
    step_size : float
        The step size of the actor; for DI and NPG, that in their targets.
    bonus : float
        The weight of the entropy.
    adam : bool
        Whether the actor's steps are those of Adam, and not plain gradient steps (SGD). PPO-like,
        DI and NPG always use Adam.
    """

    kind: int
    phase: int
    end_rewards: Floats
    gamma: float
    exploration: float
    method: int
    step_size: float
    bonus: float
    adam: bool


class TrainState(NamedTuple):
    """What a run carries from one update to the next.

    Attributes
    ----------
    words : ndarray of uint64, shape (4,)
        The state of the random stream.
    counts : ndarray of int64, shape (2,)
        The numbers of updates and of stored transitions.
    actor, critic : Network
        The networks.
    target : ndarray, shape (rows, UNITS)
        The copy of the critic's parameters that gives the values of next states.
    tasks : ndarray, shape (BATCH, 5)
        The states of the copies of the task; the last column counts the steps of the episode.
    transitions : ndarray, shape (capacity, 2 * inputs + 3)
        The last transitions: the inputs of a state, those of the next one, the action, the reward,
        and the discount factor, which is 0 if the episode ended. If there is room for one batch
        only, the batch of an update is the step just taken; otherwise it is drawn from all of them.
    """

    words: NDArray[np.uint64]
    counts: NDArray[np.int64]
    actor: Network
    critic: Network
    target: Floats
    tasks: Floats
    transitions: Floats


class Workspace(NamedTuple):
    """The arrays of an update that the next one overwrites.

    Attributes
    ----------
    now, states, next_states : ndarray, shape (BATCH, inputs)
        The inputs of the states of the tasks, and those of a batch and of its next states.
    drawn : ndarray of int64, shape (BATCH,)
        The rows of the batch in `TrainState.transitions`.
    actor, critic, derivatives : Layers
        The layers of the networks, and the derivatives with respect to one of them.
    next_values, next_scores : ndarray, shape (BATCH, A)
        The target's values and the actor's scores of the next states.
    policy, old_scores, old_policy : ndarray, shape (BATCH, A)
        See `Batch`.
    transpose : ndarray, shape (UNITS, UNITS)
        The transposed weights of the second layer.
    gradient : ndarray, shape (rows, UNITS)
        The derivative with respect to the parameters.
    """

    now: Floats
    states: Floats
    next_states: Floats
    drawn: NDArray[np.int64]
    actor: Layers
    critic: Layers
    derivatives: Layers
    next_values: Floats
    next_scores: Floats
    policy: Floats
    old_scores: Floats
    old_policy: Floats
    transpose: Floats
    gradient: Floats


def rows(inputs: int, actions: int) -> int:
    """Return the number of rows of the parameters of a network."""
    return inputs + 1 + UNITS + 1 + actions + 1


def new_layers(outputs: int, states: int = BATCH) -> Layers:
    """Return layers of zeros."""
    hidden1, hidden2 = np.zeros((2, states, UNITS))
    return Layers(hidden1, hidden2, np.zeros((states, outputs)))


def new_workspace(inputs: int, actions: int) -> Workspace:
    """Return a workspace of zeros."""
    by_inputs, by_actions = np.zeros((3, BATCH, inputs)), np.zeros((5, BATCH, actions))
    return Workspace(
        now=by_inputs[0],
        states=by_inputs[1],
        next_states=by_inputs[2],
        drawn=np.zeros(BATCH, np.int64),
        actor=new_layers(actions),
        critic=new_layers(actions),
        derivatives=new_layers(actions),
        next_values=by_actions[0],
        next_scores=by_actions[1],
        policy=by_actions[2],
        old_scores=by_actions[3],
        old_policy=by_actions[4],
        transpose=np.zeros((UNITS, UNITS)),
        gradient=np.zeros((rows(inputs, actions), UNITS)),
    )


@compiled
def _tanh(x: float) -> float:
    small = exponential(-2.0 * abs(x))
    return math.copysign((1.0 - small) / (1.0 + small), x)


@compiled
def forward(p: Any, x: Any, layers: Any) -> None:
    """Write the layers of the network with the parameters `p` for the rows of `x`."""
    hidden1, hidden2, outputs = layers
    inputs, actions = x.shape[1], outputs.shape[1]
    b1 = inputs
    w2 = b1 + 1
    b2 = w2 + UNITS
    w3 = b2 + 1
    b3 = w3 + actions
    for b in range(len(x)):
        for j in range(UNITS):
            hidden1[b, j] = p[b1, j]
        for i in range(inputs):
            xi = x[b, i]
            if xi != 0.0:
                for j in range(UNITS):
                    hidden1[b, j] += xi * p[i, j]
        for j in range(UNITS):
            hidden1[b, j] = _tanh(hidden1[b, j])
        for j in range(UNITS):
            hidden2[b, j] = p[b2, j]
        for i in range(0, UNITS, 4):  # four rows at a time, which saves loads and stores
            x0, x1, x2, x3 = hidden1[b, i], hidden1[b, i + 1], hidden1[b, i + 2], hidden1[b, i + 3]
            row = w2 + i
            for j in range(UNITS):
                hidden2[b, j] += (x0 * p[row, j] + x1 * p[row + 1, j]) + (
                    x2 * p[row + 2, j] + x3 * p[row + 3, j]
                )
        for j in range(UNITS):
            hidden2[b, j] = _tanh(hidden2[b, j])
        for a in range(actions):
            t0, t1, t2, t3 = p[b3, a], 0.0, 0.0, 0.0
            for j in range(0, UNITS, 4):
                t0 += hidden2[b, j] * p[w3 + a, j]
                t1 += hidden2[b, j + 1] * p[w3 + a, j + 1]
                t2 += hidden2[b, j + 2] * p[w3 + a, j + 2]
                t3 += hidden2[b, j + 3] * p[w3 + a, j + 3]
            outputs[b, a] = (t0 + t1) + (t2 + t3)


@compiled
def backward(p: Any, x: Any, layers: Any, derivatives: Any, transpose: Any, gradient: Any) -> None:
    """Write the mean gradient of a function with given derivatives with respect to the outputs.

    `layers` are those of `forward`, for a multiple of four states. The hidden layers of
    `derivatives` and `transpose` are scratch.
    """
    hidden1, hidden2, _ = layers
    slope1, slope2, slopes = derivatives
    inputs, actions = x.shape[1], slopes.shape[1]
    b1 = inputs
    w2 = b1 + 1
    b2 = w2 + UNITS
    w3 = b2 + 1
    b3 = w3 + actions
    gradient[:] = 0.0
    for i in range(UNITS):  # the transpose, so that all inner loops run along rows
        for j in range(UNITS):
            transpose[j, i] = p[w2 + i, j]
    for b in range(len(x)):
        for j in range(UNITS):
            slope1[b, j] = 0.0
            slope2[b, j] = 0.0
        for a in range(actions):
            d = slopes[b, a] / len(x)
            gradient[b3, a] += d
            for j in range(UNITS):
                gradient[w3 + a, j] += hidden2[b, j] * d
            for j in range(UNITS):
                slope2[b, j] += d * p[w3 + a, j]
        for j in range(UNITS):
            slope2[b, j] *= 1.0 - hidden2[b, j] * hidden2[b, j]
        for j in range(UNITS):
            gradient[b2, j] += slope2[b, j]
        for j in range(0, UNITS, 4):
            d0, d1, d2, d3 = slope2[b, j], slope2[b, j + 1], slope2[b, j + 2], slope2[b, j + 3]
            for i in range(UNITS):
                slope1[b, i] += (d0 * transpose[j, i] + d1 * transpose[j + 1, i]) + (
                    d2 * transpose[j + 2, i] + d3 * transpose[j + 3, i]
                )
        for j in range(UNITS):
            slope1[b, j] *= 1.0 - hidden1[b, j] * hidden1[b, j]
        for j in range(UNITS):
            gradient[b1, j] += slope1[b, j]
        for i in range(inputs):
            xi = x[b, i]
            if xi != 0.0:
                for j in range(UNITS):
                    gradient[i, j] += xi * slope1[b, j]
    for b in range(0, len(x), 4):
        for i in range(UNITS):
            x0, x1, x2, x3 = hidden1[b, i], hidden1[b + 1, i], hidden1[b + 2, i], hidden1[b + 3, i]
            for j in range(UNITS):
                gradient[w2 + i, j] += (x0 * slope2[b, j] + x1 * slope2[b + 1, j]) + (
                    x2 * slope2[b + 2, j] + x3 * slope2[b + 3, j]
                )


@compiled
def adam_step(network: Any, gradient: Any, rate: float) -> None:
    """Take a step of Adam along the gradient."""
    p, moments, powers = network
    powers[0] *= 0.9
    powers[1] *= 0.999
    first = 1.0 - powers[0]
    second = 1.0 - powers[1]
    for i in range(gradient.shape[0]):
        for j in range(UNITS):
            g = gradient[i, j]
            m = 0.9 * moments[0, i, j] + 0.1 * g
            v = 0.999 * moments[1, i, j] + 0.001 * g * g
            moments[0, i, j] = m
            moments[1, i, j] = v
            p[i, j] += rate * (m / first) / (math.sqrt(v / second) + 1e-8)


# The policies of the methods. In functions of one state f are its scores, pi its policy, q its
# values, v the policy's value and d the direction.


@compiled
def policies(method: int, scores: Any, policy: Any) -> None:
    """Write the policy of each row of scores."""
    for b in range(len(scores)):
        if method == _ES:
            _escort(scores[b], policy[b])
        elif method == _DI:
            _project(scores[b], policy[b])
        elif method == _GREEDY:
            _greedy(scores[b], policy[b])
        else:
            _softmax(scores[b], policy[b])


@inlined_by_numba
def _softmax(f: Any, pi: Any) -> float:
    """Write the softmax and return log sum exp."""
    top = f[0]
    for a in range(1, len(f)):
        top = max(top, f[a])
    total = 0.0
    for a in range(len(f)):
        pi[a] = exponential(f[a] - top)
        total += pi[a]
    for a in range(len(f)):
        pi[a] /= total
    log_sum: float = top + logarithm(total)
    return log_sum


@inlined_by_numba
def _escort(f: Any, pi: Any) -> None:
    """Write the escort policy with p = 2."""
    square = _square(f)
    for a in range(len(f)):
        pi[a] = f[a] * f[a] / square


@inlined_by_numba
def _project(f: Any, pi: Any) -> None:
    """Write the nearest point of the simplex."""
    for a in range(len(f)):
        pi[a] = 1.0
    for _ in range(len(f)):  # each round drops actions below the threshold
        total, count = -1.0, 0.0
        for a in range(len(f)):
            if pi[a] > 0.0:
                total += f[a]
                count += 1.0
        threshold = total / count
        for a in range(len(f)):
            if f[a] <= threshold:
                pi[a] = 0.0
    for a in range(len(f)):
        if pi[a] > 0.0:
            pi[a] = f[a] - threshold


@inlined_by_numba
def _greedy(f: Any, pi: Any) -> None:
    """Give the first best action probability 1."""
    for a in range(len(f)):
        pi[a] = 0.0
    pi[_best(f)] = 1.0


@inlined_by_numba
def _best(q: Any) -> int:
    """Return the first action with the largest value."""
    best = 0
    for a in range(1, len(q)):
        if q[a] > q[best]:
            best = a
    return best


@inlined_by_numba
def _mean(pi: Any, q: Any) -> float:
    """Return the mean of the values under a policy."""
    v = 0.0
    for a in range(len(q)):
        v += pi[a] * q[a]
    return v


@inlined_by_numba
def _square(f: Any) -> float:
    """Return the sum of the squares."""
    total = 0.0
    for a in range(len(f)):
        total += f[a] * f[a]
    return total


# The directions of the losses


@compiled
def directions(
    method: int, batch: Any, step_size: float, bonus: float, scale: float, direction: Any
) -> None:
    """Write the direction of each row of scores.

    `step_size` is the step size in the targets of DI and NPG, `bonus` is the weight of the entropy,
    and PPO-like divides advantages by `scale`.
    """
    for b in range(len(batch.scores)):
        f, pi, q, d = batch.scores[b], batch.policy[b], batch.values[b], direction[b]
        old_f, old_pi = batch.old_scores[b], batch.old_policy[b]
        v = _mean(old_pi, q)
        if method == _PG:
            _pg_sm(pi, q, v, d)
        elif method == _ENTROPY:
            _pg_sm(pi, q, v, d)
            add_entropy(f, pi, bonus, d)
        elif method == _PPO:
            _ppo_like(pi, old_pi, q, v, scale, d)
            add_entropy(f, pi, bonus, d)
        elif method == _NEURD:
            _neurd(q, v, d)
        elif method == _SOFT:
            _soft_neurd(f, pi, q, v, bonus, d)
        elif method == _NPG:
            _npg_fit(f, old_f, q, step_size, d)
        elif method == _ES:
            _pg_es(f, q, v, d)
        elif method == _CE:
            _ce(pi, _best(q), d)
        elif method == _MCE:
            _mce(pi, _best(q), d)
        elif method == _SCE:
            _sce(pi, q, v, _best(q), d)
        elif method == _DI:
            _di_fit(f, old_pi, q, step_size, d)


@inlined_by_numba
def _pg_sm(pi: Any, q: Any, v: float, d: Any) -> None:
    """Write the direction of the policy gradient."""
    for a in range(len(d)):
        d[a] = pi[a] * (q[a] - v)
    _center(pi, d)


@inlined_by_numba
def _ppo_like(pi: Any, old_pi: Any, q: Any, v: float, scale: float, d: Any) -> None:
    """Write the direction of the clipped loss, without its bonus."""
    for a in range(len(d)):
        advantage = (q[a] - v) / scale
        ratio = pi[a] / old_pi[a]
        clipped = (advantage > 0.0 and ratio > 1.0 + CLIP) or (
            advantage < 0.0 and ratio < 1.0 - CLIP
        )
        d[a] = 0.0 if clipped else pi[a] * advantage
    _center(pi, d)


@inlined_by_numba
def _center(pi: Any, d: Any) -> None:
    """Subtract from d its sum times pi, as the derivative of a softmax does."""
    total = 0.0
    for a in range(len(d)):
        total += d[a]
    for a in range(len(d)):
        d[a] -= pi[a] * total


@inlined_by_numba
def _log_sum_and_entropy(f: Any, pi: Any) -> tuple[float, float]:
    """Write the softmax and return log sum exp and the entropy."""
    log_sum = _softmax(f, pi)
    entropy = 0.0
    for a in range(len(f)):
        entropy -= pi[a] * (f[a] - log_sum)
    return log_sum, entropy


@inlined_by_numba
def add_entropy(f: Any, pi: Any, bonus: float, d: Any) -> None:
    """Add the derivative of the bonus for entropy."""
    log_sum, entropy = _log_sum_and_entropy(f, pi)
    for a in range(len(d)):
        d[a] -= bonus * pi[a] * (f[a] - log_sum + entropy)


@inlined_by_numba
def _neurd(q: Any, v: float, d: Any) -> None:
    """Write the advantages."""
    for a in range(len(d)):
        d[a] = q[a] - v


@inlined_by_numba
def _soft_neurd(f: Any, pi: Any, q: Any, v: float, bonus: float, d: Any) -> None:
    """Write the advantages of values with a bonus for entropy."""
    log_sum, entropy = _log_sum_and_entropy(f, pi)
    for a in range(len(d)):
        d[a] = q[a] - v - bonus * (f[a] - log_sum + entropy)


@inlined_by_numba
def _pg_es(f: Any, q: Any, v: float, d: Any) -> None:
    """Write the direction of the policy gradient of the escort policy."""
    square = _square(f)
    for a in range(len(d)):
        d[a] = 2.0 * f[a] / square * (q[a] - v)


@inlined_by_numba
def _ce(pi: Any, best: int, d: Any) -> None:
    """Write the direction of cross-entropy."""
    for a in range(len(d)):
        d[a] = -pi[a]
    d[best] = _others(pi, best)


@inlined_by_numba
def _mce(pi: Any, best: int, d: Any) -> None:
    """Write the direction of modified cross-entropy."""
    missing = _others(pi, best)
    for a in range(len(d)):
        d[a] = -missing / (len(d) - 1.0)
    d[best] = missing


@inlined_by_numba
def _others(pi: Any, best: int) -> float:
    """Return the probability of all actions but the best one."""
    total = 0.0
    for a in range(len(pi)):
        if a != best:
            total += pi[a]
    return total


@inlined_by_numba
def _sce(pi: Any, q: Any, v: float, best: int, d: Any) -> None:
    """Write the direction of masked cross-entropy."""
    below = 0.0
    for a in range(len(d)):
        if a != best and q[a] < v:
            below += pi[a]
    total = below + pi[best]
    for a in range(len(d)):
        d[a] = -pi[a] / total if a != best and q[a] < v else 0.0
    d[best] = below / total


@inlined_by_numba
def _npg_fit(f: Any, old_f: Any, q: Any, step_size: float, d: Any) -> None:
    """Write the differences of the scores from NPG's target, up to a common shift."""
    shift = _to_target(f, old_f, q, step_size, d)
    for a in range(len(d)):
        d[a] -= shift / len(d)


@inlined_by_numba
def _di_fit(f: Any, old_pi: Any, q: Any, step_size: float, d: Any) -> None:
    """Write the differences of the scores from DI's target, shifted so that its sum is 1."""
    shift = _to_target(f, old_pi, q, step_size, d)
    for a in range(len(d)):
        shift += f[a]
    shift -= 1.0
    for a in range(len(d)):
        d[a] -= shift / len(d)


@inlined_by_numba
def _to_target(f: Any, old: Any, q: Any, step_size: float, d: Any) -> float:
    """Write the differences from old + step_size q and return their sum."""
    total = 0.0
    for a in range(len(d)):
        d[a] = old[a] + step_size * q[a] - f[a]
        total += d[a]
    return total


@compiled
def _spread(policy: Any, values: Any) -> float:
    """Return the standard deviation of the advantages over states and policy."""
    total = 0.0
    for b in range(len(policy)):
        pi, q = policy[b], values[b]
        v = _mean(pi, q)
        for a in range(len(q)):
            total += pi[a] * (q[a] - v) * (q[a] - v)
    return math.sqrt(total / len(policy)) + 1e-8


# The tasks


@compiled
def start(kind: int, state: Any, stream: Any) -> Any:
    """Put a task into a first state and return the stream."""
    state[4] = 0.0
    if kind == CHAIN:
        state[0] = 4.0
    elif kind != POLE:
        side = _SIDES[kind]
        u, stream = uniform(stream)
        place = 1 + int(u * (side * side - 2))  # any place but the two corners
        state[0] = int_to_float(place // side)
        state[1] = int_to_float(place % side)
    else:
        for i in range(4):
            u, stream = uniform(stream)
            state[i] = (u - 0.5) / 10.0
    return stream


@compiled
def start_all(kind: int, tasks: Any, words: Any) -> None:
    """Put all copies of a task into first states and advance the stream."""
    stream = (words[0], words[1], words[2], words[3])
    for b in range(len(tasks)):
        stream = start(kind, tasks[b], stream)
    words[0], words[1], words[2], words[3] = stream


@compiled
def _series(x: float, last: int) -> float:
    """Return the series of the cosine of |x| < 1, or of sin(x) / x if `last` is even."""
    square = x * x
    series = 0.0
    for n in range(last, 0, -2):
        series = (1.0 + series) * (-square / (n * (n + 1)))
    return 1.0 + series


@compiled
def step_task(kind: int, phase: int, end_rewards: Any, state: Any, a: int, stream: Any) -> Any:
    """Take action a and return the reward, whether the episode ended, and the stream.

    The chain and the grid pay `end_rewards` at their two ends. CartPole-v1 pays -1 for a fall, and
    its two actions change places in phase 1.
    """
    state[4] += 1.0
    if kind == CHAIN:
        u, stream = uniform(stream)
        if u < _SLIP:
            a = 1 - a
        state[0] += 1.0 if a == 1 else -1.0
        if state[0] <= 0.0:
            return end_rewards[0], True, stream
        if state[0] >= _LAST:
            return end_rewards[1], True, stream
        return 0.0, False, stream
    if kind != POLE:
        side = _SIDES[kind]
        way = 1.0 if a % 2 == 0 else -1.0
        state[a // 2] = min(max(state[a // 2] + way, 0.0), side - 1.0)
        if state[0] == 0.0 and state[1] == 0.0:
            return end_rewards[0], True, stream
        if state[0] == side - 1.0 and state[1] == side - 1.0:
            return end_rewards[1], True, stream
        return 0.0, False, stream
    force = 10.0 if (a == 1) == (phase == 0) else -10.0
    x, speed, tilt, turn = state[0], state[1], state[2], state[3]
    cosine = _series(tilt, 17)
    sine = tilt * _series(tilt, 18)
    push = (force + 0.05 * turn * turn * sine) / 1.1
    turning = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
    pull = push - 0.05 * turning * cosine / 1.1
    state[0] = x + 0.02 * speed
    state[1] = speed + 0.02 * pull
    state[2] = tilt + 0.02 * turn
    state[3] = turn + 0.02 * turning
    fell = abs(state[0]) > 2.4 or abs(state[2]) > _TILT
    return (-1.0 if fell else 0.0), fell, stream


@compiled
def write_inputs(kind: int, state: Any, x: Any) -> None:
    """Write the inputs of the networks for the state of a task."""
    if kind == CHAIN:
        for k in range(4):
            x[k] = _TURN[((k + 1) * int(state[0])) % 16]
    elif kind != POLE:
        side = _SIDES[kind]
        for i in range(2 * side):
            x[i] = 0.0
        x[int(state[0])] = 1.0
        x[side + int(state[1])] = 1.0
    else:
        x[0] = state[0] / 2.4
        x[1] = state[1]
        x[2] = state[2] / 0.21
        x[3] = state[3]


# The loop


@compiled
def train(settings: Any, state: Any, work: Any, updates: int, earned: Any) -> None:
    """Make a number of updates and add up the rewards and the ended episodes of each window.

    Parameters
    ----------
    settings : Settings
        What is fixed during the updates.
    state : TrainState
        What a run carries from one update to the next.
    work : Workspace
        The workspace.
    updates : int
        The number of updates.
    earned : ndarray, shape (windows, 2)
        The sum of the rewards and the number of ended episodes, to which those of each window of
        `WINDOW` updates are added.
    """
    # The parameters of the network whose outputs determine the policy
    acting = state.actor.parameters
    if settings.method == _GREEDY:
        acting = state.critic.parameters
    words = state.words
    stream = (words[0], words[1], words[2], words[3])
    for n in range(updates):
        stream = _act(settings, acting, state, work, earned[n // WINDOW], stream)
        stream = _draw_batch(state, work, stream)
        _train_critic(settings.method, acting, state, work)
        if settings.method != _GREEDY:
            _train_actor(settings, state, work)
    words[0], words[1], words[2], words[3] = stream


@inlined_by_numba
def draw_action(pi: Any, exploration: float, stream: Any) -> Any:
    """Draw an action, with a probability uniformly, and return it and the stream."""
    actions = len(pi)
    u, stream = uniform(stream)
    a, total = 0, exploration / actions + (1.0 - exploration) * pi[0]
    while u >= total and a < actions - 1:
        a += 1
        total += exploration / actions + (1.0 - exploration) * pi[a]
    return a, stream


@inlined_by_numba
def _act(settings: Any, acting: Any, state: Any, work: Any, earned: Any, stream: Any) -> Any:
    """Take a step in each copy of the task, store the transitions and return the stream."""
    kind, phase, end_rewards, gamma, exploration, method = settings[:6]
    inputs = work.now.shape[1]
    for b in range(BATCH):
        write_inputs(kind, state.tasks[b], work.now[b])
    forward(acting, work.now, work.actor)
    policies(method, work.actor.outputs, work.policy)
    for b in range(BATCH):
        task, pi = state.tasks[b], work.policy[b]
        a, stream = draw_action(pi, exploration, stream)
        reward, ended, stream = step_task(kind, phase, end_rewards, task, a, stream)
        stored = state.transitions[state.counts[1] % len(state.transitions)]
        state.counts[1] += 1
        for i in range(inputs):
            stored[i] = work.now[b, i]
        write_inputs(kind, task, stored[inputs : 2 * inputs])
        stored[2 * inputs] = int_to_float(a)
        stored[2 * inputs + 1] = reward
        stored[2 * inputs + 2] = 0.0 if ended else gamma
        earned[0] += reward
        if ended or task[4] >= CAPS[kind]:
            earned[1] += 1.0
            stream = start(kind, task, stream)
    return stream


@inlined_by_numba
def _draw_batch(state: Any, work: Any, stream: Any) -> Any:
    """Draw the batch of an update from the stored transitions and return the stream."""
    inputs, capacity = work.now.shape[1], len(state.transitions)
    filled = min(state.counts[1], capacity)
    for b in range(BATCH):
        place = b
        if capacity > BATCH:
            u, stream = uniform(stream)
            place = int(u * filled)
        work.drawn[b] = place
        for i in range(inputs):
            work.states[b, i] = state.transitions[place, i]
            work.next_states[b, i] = state.transitions[place, inputs + i]
    return stream


@inlined_by_numba
def _train_critic(method: int, acting: Any, state: Any, work: Any) -> None:
    """Take the critic's step by expected SARSA; its values before the step stay in `work`."""
    inputs, actions = work.now.shape[1], work.policy.shape[1]
    hidden1, hidden2, values = work.critic
    errors, critic = work.derivatives.outputs, state.critic
    forward(state.target, work.next_states, Layers(hidden1, hidden2, work.next_values))
    forward(acting, work.next_states, Layers(hidden1, hidden2, work.next_scores))
    policies(method, work.next_scores, work.policy)
    forward(critic.parameters, work.states, work.critic)
    for b in range(BATCH):
        transition = state.transitions[work.drawn[b]]
        taken, reward = int(transition[2 * inputs]), transition[2 * inputs + 1]
        ahead = transition[2 * inputs + 2] * _mean(work.policy[b], work.next_values[b])
        for a in range(actions):
            errors[b, a] = 0.0
        errors[b, taken] = reward + ahead - values[b, taken]
    backward(
        critic.parameters, work.states, work.critic, work.derivatives, work.transpose, work.gradient
    )
    adam_step(critic, work.gradient, CRITIC_RATE)
    state.counts[0] += 1
    if state.counts[0] % COPY == 0:
        for i in range(len(state.target)):
            for j in range(UNITS):
                state.target[i, j] = critic.parameters[i, j]


@inlined_by_numba
def _train_actor(settings: Any, state: Any, work: Any) -> None:
    """Take the actor's steps, at the critic's values before its step."""
    method, step_size, p = settings.method, settings.step_size, state.actor.parameters
    scores, values = work.actor.outputs, work.critic.outputs
    batch = Batch(scores, work.policy, values, work.old_scores, work.old_policy)
    steps, scale = 1, 1.0
    if method == _PPO:
        steps = CLIP_STEPS
    elif method in (_NPG, _DI):
        steps = FIT_STEPS
    for step in range(steps):
        if step > 0 or len(state.transitions) > BATCH:  # else the layers are those of `_act`
            forward(p, work.states, work.actor)
        policies(method, scores, work.policy)
        if step == 0:
            for b in range(BATCH):
                for a in range(scores.shape[1]):
                    work.old_scores[b, a] = scores[b, a]
                    work.old_policy[b, a] = work.policy[b, a]
            if method == _PPO:
                scale = _spread(work.policy, values)
        directions(method, batch, step_size, settings.bonus, scale, work.derivatives.outputs)
        backward(p, work.states, work.actor, work.derivatives, work.transpose, work.gradient)
        if method == _PPO or (settings.adam and steps == 1):
            adam_step(state.actor, work.gradient, step_size)
        elif method in (_NPG, _DI):
            adam_step(state.actor, work.gradient, FIT_RATE)
        else:
            for i in range(len(p)):
                for j in range(UNITS):
                    p[i, j] += step_size * work.gradient[i, j]
