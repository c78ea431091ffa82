r"""Two small networks that learn from samples: an actor, a critic, and tasks that change.

Both networks have two hidden layers of 32 units with tanh. Their parameters are rows of 32 numbers:
the weights of the first layer (a row for each input), its biases, the same for the second layer,
the weights of the last layer (a row for each action), and its biases, with zeros after them. An
update takes one step in each of 32 copies of the task, moves the critic by expected SARSA with a
target copy and Adam, and moves the scores of the actor.

The actor's loss is known by its *direction*: minus its derivative with respect to the scores of a
state. The chain rule takes the mean of the directions over the batch to the parameters.

All arithmetic is that of `pu_lib.engine.arithmetic`, so that a seed gives the same bits everywhere.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pu_lib.compiling import compiled
from pu_lib.engine.arithmetic import exponential, int_to_float, logarithm, uniform

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
"""Weight of the entropy in the loss of PPO-like and of PG-SM with a bonus, and of soft NeuRD."""
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
"""The methods; the loop knows them by their place."""
_PG, _BONUS, _PPO, _NEURD, _SOFT, _NPG, _ES, _CE, _MCE, _SCE, _DI, _GREEDY = range(12)

CHAIN, GRID, POLE = range(3)
"""The kinds of tasks."""
CAPS = (100, 50, 200)
"""Steps after which an episode of each kind is cut."""
_SIDE = 7  # of the grid
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


def rows(inputs: int, actions: int) -> int:
    """Return the number of rows of the parameters of a network."""
    return inputs + 1 + UNITS + 1 + actions + 1


@compiled
def _tanh(x: float) -> float:
    small = exponential(-2.0 * abs(x))
    return math.copysign((1.0 - small) / (1.0 + small), x)


@compiled
def forward(P: Any, net: int, X: Any, H1: Any, H2: Any, F: Any) -> None:
    """Write the hidden layers and the outputs of network `net` for the rows of X."""
    inputs, actions = X.shape[1], F.shape[1]
    b1 = inputs
    w2 = b1 + 1
    b2 = w2 + UNITS
    w3 = b2 + 1
    b3 = w3 + actions
    for b in range(BATCH):
        for j in range(UNITS):
            H1[b, j] = P[net, b1, j]
        for i in range(inputs):
            x = X[b, i]
            if x != 0.0:
                for j in range(UNITS):
                    H1[b, j] += x * P[net, i, j]
        for j in range(UNITS):
            H1[b, j] = _tanh(H1[b, j])
        for j in range(UNITS):
            H2[b, j] = P[net, b2, j]
        for i in range(0, UNITS, 4):  # four rows at a time, which saves loads and stores
            x0, x1, x2, x3 = H1[b, i], H1[b, i + 1], H1[b, i + 2], H1[b, i + 3]
            row = w2 + i
            for j in range(UNITS):
                H2[b, j] += (x0 * P[net, row, j] + x1 * P[net, row + 1, j]) + (
                    x2 * P[net, row + 2, j] + x3 * P[net, row + 3, j]
                )
        for j in range(UNITS):
            H2[b, j] = _tanh(H2[b, j])
        for a in range(actions):
            t0, t1, t2, t3 = P[net, b3, a], 0.0, 0.0, 0.0
            for j in range(0, UNITS, 4):
                t0 += H2[b, j] * P[net, w3 + a, j]
                t1 += H2[b, j + 1] * P[net, w3 + a, j + 1]
                t2 += H2[b, j + 2] * P[net, w3 + a, j + 2]
                t3 += H2[b, j + 3] * P[net, w3 + a, j + 3]
            F[b, a] = (t0 + t1) + (t2 + t3)


@compiled
def backward(
    P: Any, net: int, X: Any, H1: Any, H2: Any, D: Any, E1: Any, E2: Any, W: Any, G: Any
) -> None:
    """Write to G the mean over the rows of X of D times the derivative of the outputs.

    E1, E2 and W are scratch for the derivatives by the hidden layers and for a transpose.
    """
    inputs, actions = X.shape[1], D.shape[1]
    b1 = inputs
    w2 = b1 + 1
    b2 = w2 + UNITS
    w3 = b2 + 1
    b3 = w3 + actions
    G[:] = 0.0
    for i in range(UNITS):  # the transpose, so that all inner loops run along rows
        for j in range(UNITS):
            W[j, i] = P[net, w2 + i, j]
    for b in range(BATCH):
        for j in range(UNITS):
            E1[b, j] = 0.0
            E2[b, j] = 0.0
        for a in range(actions):
            d = D[b, a] / BATCH
            G[b3, a] += d
            for j in range(UNITS):
                G[w3 + a, j] += H2[b, j] * d
            for j in range(UNITS):
                E2[b, j] += d * P[net, w3 + a, j]
        for j in range(UNITS):
            E2[b, j] *= 1.0 - H2[b, j] * H2[b, j]
        for j in range(UNITS):
            G[b2, j] += E2[b, j]
        for j in range(0, UNITS, 4):
            d0, d1, d2, d3 = E2[b, j], E2[b, j + 1], E2[b, j + 2], E2[b, j + 3]
            for i in range(UNITS):
                E1[b, i] += (d0 * W[j, i] + d1 * W[j + 1, i]) + (
                    d2 * W[j + 2, i] + d3 * W[j + 3, i]
                )
        for j in range(UNITS):
            E1[b, j] *= 1.0 - H1[b, j] * H1[b, j]
        for j in range(UNITS):
            G[b1, j] += E1[b, j]
        for i in range(inputs):
            x = X[b, i]
            if x != 0.0:
                for j in range(UNITS):
                    G[i, j] += x * E1[b, j]
    for b in range(0, BATCH, 4):
        for i in range(UNITS):
            x0, x1, x2, x3 = H1[b, i], H1[b + 1, i], H1[b + 2, i], H1[b + 3, i]
            for j in range(UNITS):
                G[w2 + i, j] += (x0 * E2[b, j] + x1 * E2[b + 1, j]) + (
                    x2 * E2[b + 2, j] + x3 * E2[b + 3, j]
                )


@compiled
def _adam(P: Any, net: int, G: Any, moments: Any, powers: Any, rate: float) -> None:
    """Move network `net` along G by Adam, whose moments are rows 2 net and 2 net + 1."""
    powers[2 * net] *= 0.9
    powers[2 * net + 1] *= 0.999
    first = 1.0 - powers[2 * net]
    second = 1.0 - powers[2 * net + 1]
    for i in range(G.shape[0]):
        for j in range(UNITS):
            g = G[i, j]
            m = 0.9 * moments[2 * net, i, j] + 0.1 * g
            v = 0.999 * moments[2 * net + 1, i, j] + 0.001 * g * g
            moments[2 * net, i, j] = m
            moments[2 * net + 1, i, j] = v
            P[net, i, j] += rate * (m / first) / (math.sqrt(v / second) + 1e-8)


# The policies of scores, and the directions of the losses


@compiled
def policies(method: int, F: Any, PI: Any) -> None:
    """Write the policy of each row of scores."""
    rows, actions = F.shape
    for b in range(rows):
        if method == _ES:
            total = 0.0
            for a in range(actions):
                total += F[b, a] * F[b, a]
            for a in range(actions):
                PI[b, a] = F[b, a] * F[b, a] / total
        elif method == _DI:
            _project(F, b, PI)
        elif method == _GREEDY:
            best = 0
            for a in range(actions):
                PI[b, a] = 0.0
                if F[b, a] > F[b, best]:
                    best = a
            PI[b, best] = 1.0
        else:
            _softmax(F, b, PI)


@compiled
def _softmax(F: Any, b: int, PI: Any) -> float:
    """Write the softmax of row b and return log sum exp."""
    actions = F.shape[1]
    top = F[b, 0]
    for a in range(1, actions):
        top = max(top, F[b, a])
    total = 0.0
    for a in range(actions):
        PI[b, a] = exponential(F[b, a] - top)
        total += PI[b, a]
    for a in range(actions):
        PI[b, a] /= total
    level: float = top + logarithm(total)
    return level


@compiled
def _level_and_entropy(F: Any, b: int, PI: Any) -> tuple[float, float]:
    """Write the softmax of row b and return log sum exp and the entropy."""
    level = _softmax(F, b, PI)
    entropy = 0.0
    for a in range(F.shape[1]):
        entropy -= PI[b, a] * (F[b, a] - level)
    return level, entropy


@compiled
def _project(F: Any, b: int, PI: Any) -> None:
    """Write the point of the simplex that is nearest to row b."""
    actions = F.shape[1]
    for a in range(actions):
        PI[b, a] = 1.0
    for _ in range(actions):  # each round drops actions below the threshold
        total, count = -1.0, 0.0
        for a in range(actions):
            if PI[b, a] > 0.0:
                total += F[b, a]
                count += 1.0
        threshold = total / count
        for a in range(actions):
            if F[b, a] <= threshold:
                PI[b, a] = 0.0
    for a in range(actions):
        if PI[b, a] > 0.0:
            PI[b, a] = F[b, a] - threshold


@compiled
def directions(
    method: int, F: Any, PI: Any, Q: Any, F0: Any, PI0: Any, rate: float, scale: float, D: Any
) -> None:
    """Write the direction of each row of scores F of policy PI at the values Q.

    F0 and PI0 are the scores and the policy before the first of several steps, `rate` is the step
    size of DI and NPG, whose targets depend on it, and `scale` divides the advantages.
    """
    rows, actions = F.shape
    for b in range(rows):
        best, v = 0, 0.0
        for a in range(actions):
            v += PI0[b, a] * Q[b, a]
            if Q[b, a] > Q[b, best]:
                best = a
        if method in (_PG, _BONUS, _PPO):
            inside = 0.0
            for a in range(actions):
                advantage = (Q[b, a] - v) / scale
                D[b, a] = PI[b, a] * advantage
                if method == _PPO:
                    ratio = PI[b, a] / PI0[b, a]
                    if (advantage > 0.0 and ratio > 1.0 + CLIP) or (
                        advantage < 0.0 and ratio < 1.0 - CLIP
                    ):
                        D[b, a] = 0.0
                inside += D[b, a]
            for a in range(actions):
                D[b, a] -= PI[b, a] * inside
            if method != _PG:
                level, entropy = _level_and_entropy(F, b, PI)
                for a in range(actions):
                    D[b, a] -= BONUS * PI[b, a] * (F[b, a] - level + entropy)
        elif method == _NEURD:
            for a in range(actions):
                D[b, a] = Q[b, a] - v
        elif method == _SOFT:
            level, entropy = _level_and_entropy(F, b, PI)
            for a in range(actions):
                D[b, a] = Q[b, a] - v - BONUS * (F[b, a] - level + entropy)
        elif method == _ES:
            square = 0.0
            for a in range(actions):
                square += F[b, a] * F[b, a]
            for a in range(actions):
                D[b, a] = 2.0 * F[b, a] / square * (Q[b, a] - v)
        elif method == _CE:
            for a in range(actions):
                D[b, a] = -PI[b, a]
            D[b, best] = _others(PI, b, best)
        elif method == _MCE:
            missing = _others(PI, b, best)
            for a in range(actions):
                D[b, a] = -missing / (actions - 1.0)
            D[b, best] = missing
        elif method == _SCE:
            below = 0.0
            for a in range(actions):
                if a != best and Q[b, a] < v:
                    below += PI[b, a]
            total = below + PI[b, best]
            for a in range(actions):
                D[b, a] = -PI[b, a] / total if a != best and Q[b, a] < v else 0.0
            D[b, best] = below / total
        else:  # a fit, up to a common shift of the scores
            shift = 0.0
            for a in range(actions):
                old = PI0[b, a] if method == _DI else F0[b, a]
                D[b, a] = old + rate * Q[b, a] - F[b, a]
                shift += D[b, a]
            if method == _DI:  # the shift itself is that of policies, which add up to 1
                for a in range(actions):
                    shift += F[b, a]
                shift -= 1.0
            for a in range(actions):
                D[b, a] -= shift / actions


@compiled
def _others(PI: Any, b: int, best: int) -> float:
    """Return the probability of all actions but one."""
    total = 0.0
    for a in range(PI.shape[1]):
        if a != best:
            total += PI[b, a]
    return total


@compiled
def _spread(PI: Any, Q: Any) -> float:
    """Return the standard deviation of the advantages over states and policy."""
    rows, actions = PI.shape
    total = 0.0
    for b in range(rows):
        v = 0.0
        for a in range(actions):
            v += PI[b, a] * Q[b, a]
        for a in range(actions):
            total += PI[b, a] * (Q[b, a] - v) * (Q[b, a] - v)
    return math.sqrt(total / rows) + 1e-8


# The tasks


@compiled
def start(kind: int, S: Any, b: int, stream: Any) -> Any:
    """Put copy b of a task into a first state and return the stream; column 4 counts the steps."""
    S[b, 4] = 0.0
    if kind == CHAIN:
        S[b, 0] = 4.0
    elif kind == GRID:
        u, stream = uniform(stream)
        place = 1 + int(u * (_SIDE * _SIDE - 2))  # any place but the two corners
        S[b, 0] = int_to_float(place // _SIDE)
        S[b, 1] = int_to_float(place % _SIDE)
    else:
        for i in range(4):
            u, stream = uniform(stream)
            S[b, i] = (u - 0.5) / 10.0
    return stream


@compiled
def start_all(kind: int, S: Any, words: Any) -> None:
    """Put all copies of a task into first states and advance the stream."""
    stream = (words[0], words[1], words[2], words[3])
    for b in range(S.shape[0]):
        stream = start(kind, S, b, stream)
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
def step_task(kind: int, pays: Any, phase: int, S: Any, b: int, a: int, stream: Any) -> Any:
    """Take action a in copy b and return the reward, whether the task ended, and the stream.

    The chain and the grid pay `pays[phase]` at their two ends. CartPole-v1 pays -1 for a fall, and
    its two actions change places in phase 1.
    """
    S[b, 4] += 1.0
    if kind == CHAIN:
        u, stream = uniform(stream)
        if u < _SLIP:
            a = 1 - a
        S[b, 0] += 1.0 if a == 1 else -1.0
        if S[b, 0] <= 0.0:
            return pays[phase, 0], True, stream
        if S[b, 0] >= _LAST:
            return pays[phase, 1], True, stream
        return 0.0, False, stream
    if kind == GRID:
        way = 1.0 if a % 2 == 0 else -1.0
        S[b, a // 2] = min(max(S[b, a // 2] + way, 0.0), _SIDE - 1.0)
        if S[b, 0] == 0.0 and S[b, 1] == 0.0:
            return pays[phase, 0], True, stream
        if S[b, 0] == _SIDE - 1.0 and S[b, 1] == _SIDE - 1.0:
            return pays[phase, 1], True, stream
        return 0.0, False, stream
    force = 10.0 if (a == 1) == (phase == 0) else -10.0
    x, speed, tilt, turn = S[b, 0], S[b, 1], S[b, 2], S[b, 3]
    cosine = _series(tilt, 17)
    sine = tilt * _series(tilt, 18)
    push = (force + 0.05 * turn * turn * sine) / 1.1
    turning = (9.8 * sine - cosine * push) / (0.5 * (4.0 / 3.0 - 0.1 * cosine * cosine / 1.1))
    pull = push - 0.05 * turning * cosine / 1.1
    S[b, 0] = x + 0.02 * speed
    S[b, 1] = speed + 0.02 * pull
    S[b, 2] = tilt + 0.02 * turn
    S[b, 3] = turn + 0.02 * turning
    fell = abs(S[b, 0]) > 2.4 or abs(S[b, 2]) > _TILT
    return (-1.0 if fell else 0.0), fell, stream


@compiled
def _features(kind: int, S: Any, b: int, X: Any, row: int) -> None:
    """Write the inputs of the networks for copy b."""
    if kind == CHAIN:
        for k in range(4):
            X[row, k] = _TURN[((k + 1) * int(S[b, 0])) % 16]
    elif kind == GRID:
        for i in range(2 * _SIDE):
            X[row, i] = 0.0
        X[row, int(S[b, 0])] = 1.0
        X[row, _SIDE + int(S[b, 1])] = 1.0
    else:
        X[row, 0] = S[b, 0] / 2.4
        X[row, 1] = S[b, 1]
        X[row, 2] = S[b, 2] / 0.21
        X[row, 3] = S[b, 3]


# The loop


@compiled
def train(
    kind: int,
    pays: Any,
    phase: int,
    method: int,
    rate: float,
    gamma: float,
    exploration: float,
    updates: int,
    words: Any,
    counts: Any,
    powers: Any,
    P: Any,
    moments: Any,
    S: Any,
    memory: Any,
    W: Any,
    X: Any,
    H: Any,
    scores: Any,
    G: Any,
    earned: Any,
) -> None:
    """Make a number of updates and write the reward and the ended episodes of each window.

    Everything that a run carries from one update to the next is in `words` to `memory`: the random
    stream, the counts of updates and of transitions in memory, the powers of Adam's factors, the
    networks (actor, critic, target), Adam's moments, the states, and the memory of transitions. If
    the memory has room for one batch, the batch is the step just taken, otherwise it is drawn from
    the memory. The arrays from `W` to `G` are scratch.
    """
    inputs = X.shape[2]
    actions = scores.shape[2]
    room = memory.shape[0]
    actor = 1 if method == _GREEDY else 0
    now, batch, after = X[0], X[1], X[2]
    H1, H2, C1, C2, E1, E2 = H[0], H[1], H[2], H[3], H[4], H[5]
    F, PI, Q, ahead, other, F0, PI0, D = (
        scores[0], scores[1], scores[2], scores[3], scores[4], scores[5], scores[6], scores[7],
    )  # fmt: skip
    stream = (words[0], words[1], words[2], words[3])
    steps = 1
    if method == _PPO:
        steps = CLIP_STEPS
    elif method in (_NPG, _DI):
        steps = FIT_STEPS
    for n in range(updates):
        for b in range(BATCH):
            _features(kind, S, b, now, b)
        forward(P, actor, now, H1, H2, F)
        policies(method, F, PI)
        for b in range(BATCH):
            u, stream = uniform(stream)
            a, total = 0, exploration / actions + (1.0 - exploration) * PI[b, 0]
            while u >= total and a < actions - 1:
                a += 1
                total += exploration / actions + (1.0 - exploration) * PI[b, a]
            reward, ended, stream = step_task(kind, pays, phase, S, b, a, stream)
            place = counts[1] % room
            counts[1] += 1
            for i in range(inputs):
                memory[place, i] = now[b, i]
            _features(kind, S, b, after, b)
            for i in range(inputs):
                memory[place, inputs + i] = after[b, i]
            memory[place, 2 * inputs] = int_to_float(a)
            memory[place, 2 * inputs + 1] = reward
            memory[place, 2 * inputs + 2] = 0.0 if ended else gamma
            earned[n // WINDOW, 0] += reward
            if ended or S[b, 4] >= CAPS[kind]:
                earned[n // WINDOW, 1] += 1.0
                stream = start(kind, S, b, stream)
        filled = min(counts[1], room)
        for b in range(BATCH):
            place = b
            if room > BATCH:
                u, stream = uniform(stream)
                place = int(u * filled)
            for i in range(inputs):
                batch[b, i] = memory[place, i]
                after[b, i] = memory[place, inputs + i]
            D[b, 0] = memory[place, 2 * inputs]
            D[b, 1] = memory[place, 2 * inputs + 1]
            F0[b, 0] = memory[place, 2 * inputs + 2]
        # the critic
        forward(P, 2, after, C1, C2, ahead)
        forward(P, actor, after, C1, C2, other)
        policies(method, other, PI)
        forward(P, 1, batch, C1, C2, Q)
        for b in range(BATCH):
            value = 0.0
            for a in range(actions):
                value += PI[b, a] * ahead[b, a]
            taken = int(D[b, 0])
            error = D[b, 1] + F0[b, 0] * value - Q[b, taken]
            for a in range(actions):
                D[b, a] = 0.0
            D[b, taken] = error
        backward(P, 1, batch, C1, C2, D, E1, E2, W, G)
        _adam(P, 1, G, moments, powers, CRITIC_RATE)
        counts[0] += 1
        if counts[0] % COPY == 0:
            for i in range(G.shape[0]):
                for j in range(UNITS):
                    P[2, i, j] = P[1, i, j]
        # the actor, at the values before the critic's step
        if method == _GREEDY:
            continue
        for step in range(steps):
            if step > 0 or room > BATCH:
                forward(P, 0, batch, H1, H2, F)
            policies(method, F, PI)
            if step == 0:
                for b in range(BATCH):
                    for a in range(actions):
                        F0[b, a] = F[b, a]
                        PI0[b, a] = PI[b, a]
                scale = _spread(PI, Q) if method == _PPO else 1.0
            directions(method, F, PI, Q, F0, PI0, rate, scale, D)
            backward(P, 0, batch, H1, H2, D, E1, E2, W, G)
            if method == _PPO:
                _adam(P, 0, G, moments, powers, rate)
            elif method in (_NPG, _DI):
                _adam(P, 0, G, moments, powers, FIT_RATE)
            else:
                for i in range(G.shape[0]):
                    for j in range(UNITS):
                        P[0, i, j] += rate * G[i, j]
    words[0], words[1], words[2], words[3] = stream
