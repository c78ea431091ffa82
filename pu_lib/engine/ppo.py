r"""PPO with a critic of states, on the tasks of `pu_lib.engine.networks`.

A rollout takes `STEPS` steps in each of the 32 copies of a task. Generalised advantage estimation
gives each transition an advantage; it continues with the critic's value where an episode is cut.
Then come `EPOCHS` passes over the rollout in `MINIBATCHES` minibatches each, with Adam. Advantages
are normalised in each minibatch.

Actions are drawn from the mixture of the policy and the uniform one, as under all methods, and the
ratio of PPO is that of the mixtures. Actor and critic are two networks, or one with a last output
for the value.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.compiling import compiled, inlined_by_numba
from pu_lib.engine.arithmetic import uniform
from pu_lib.engine.networks import (
    BATCH,
    CAPS,
    CLIP,
    CRITIC_RATE,
    UNITS,
    WINDOW,
    Floats,
    Layers,
    Network,
    adam_step,
    add_entropy,
    backward,
    draw_action,
    forward,
    new_layers,
    policies,
    rows,
    start,
    step_task,
    write_inputs,
)

STEPS = WINDOW
"""Steps of a rollout in each copy of the task."""
ROLLOUT = STEPS * BATCH
"""Transitions of a rollout."""
EPOCHS = 4
MINIBATCHES = 4
MINIBATCH = ROLLOUT // MINIBATCHES
"""Transitions of a minibatch."""
TRACE = 0.95
"""Lambda of generalised advantage estimation."""
VALUE_WEIGHT = 0.5
"""Weight of half the squared error of the value, if actor and critic share a network."""


class State(NamedTuple):
    """What a run carries from one rollout to the next.

    Attributes
    ----------
    words : ndarray of uint64, shape (4,)
        The state of the random stream.
    counts : ndarray of int64, shape (1,)
        The number of updates.
    actor, critic : Network
        The networks; a shared one is both.
    tasks : ndarray, shape (BATCH, 5)
        The states of the copies of the task; the last column counts the steps of the episode.
    order : ndarray of int64, shape (ROLLOUT,)
        The order of the transitions in the last epoch, which the next one shuffles.
    """

    words: NDArray[np.uint64]
    counts: NDArray[np.int64]
    actor: Network
    critic: Network
    tasks: Floats
    order: NDArray[np.int64]


class Workspace(NamedTuple):
    """The arrays of a rollout that the next one overwrites.

    Attributes
    ----------
    now, later : ndarray, shape (ROLLOUT, inputs)
        The inputs of the states and of the next states.
    taken : ndarray of int64, shape (ROLLOUT,)
        The actions taken.
    transitions : ndarray, shape (6, ROLLOUT)
        The probabilities of the actions taken, the rewards, the discount factors, which are 0 if
        the episode ended, the factors of the trace, which are 0 if it ended or was cut, the
        advantages, and the returns that the values fit.
    acting, all_now, all_later : Layers
        The layers of the actor in a step, and those of the critic for the whole rollout.
    policy : ndarray, shape (BATCH, A)
        The policy in a step.
    states : ndarray, shape (MINIBATCH, inputs)
        The inputs of a minibatch.
    actor, critic, actor_slopes, critic_slopes : Layers
        The layers for a minibatch, and the derivatives with respect to them.
    pi : ndarray, shape (A,)
        The policy of a state of a minibatch.
    transpose : ndarray, shape (UNITS, UNITS)
        The transposed weights of the second layer.
    actor_gradient, critic_gradient : ndarray, shape (rows, UNITS)
        The derivatives with respect to the parameters.
    """

    now: Floats
    later: Floats
    taken: NDArray[np.int64]
    transitions: Floats
    acting: Layers
    all_now: Layers
    all_later: Layers
    policy: Floats
    states: Floats
    actor: Layers
    critic: Layers
    actor_slopes: Layers
    critic_slopes: Layers
    pi: Floats
    transpose: Floats
    actor_gradient: Floats
    critic_gradient: Floats


def new_workspace(inputs: int, actions: int, shared: bool) -> Workspace:
    """Return a workspace of zeros."""
    scores, values = (actions + 1, actions + 1) if shared else (actions, 1)
    now, later = np.zeros((2, ROLLOUT, inputs))
    return Workspace(
        now=now,
        later=later,
        taken=np.zeros(ROLLOUT, np.int64),
        transitions=np.zeros((6, ROLLOUT)),
        acting=new_layers(scores),
        all_now=new_layers(values, ROLLOUT),
        all_later=new_layers(values, ROLLOUT),
        policy=np.zeros((BATCH, actions)),
        states=np.zeros((MINIBATCH, inputs)),
        actor=new_layers(scores, MINIBATCH),
        critic=new_layers(values, MINIBATCH),
        actor_slopes=new_layers(scores, MINIBATCH),
        critic_slopes=new_layers(values, MINIBATCH),
        pi=np.zeros(actions),
        transpose=np.zeros((UNITS, UNITS)),
        actor_gradient=np.zeros((rows(inputs, scores), UNITS)),
        critic_gradient=np.zeros((rows(inputs, values), UNITS)),
    )


@compiled
def train(settings: Any, shared: bool, state: Any, work: Any, rollouts: int, earned: Any) -> None:
    """Make a number of rollouts with their epochs.

    Parameters
    ----------
    settings : pu_lib.engine.networks.Settings
        What is fixed during the rollouts; `method` is that of a softmax policy.
    shared : bool
        Whether actor and critic are one network.
    state : State
        What a run carries from one rollout to the next.
    work : Workspace
        The workspace.
    rollouts : int
        The number of rollouts.
    earned : ndarray, shape (rollouts, 2)
        The sum of the rewards and the number of ended episodes, to which those of each rollout are
        added.
    """
    words = state.words
    stream = (words[0], words[1], words[2], words[3])
    for n in range(rollouts):
        stream = _roll_out(settings, state, work, earned[n], stream)
        _estimate(shared, state, work)
        for _ in range(EPOCHS):
            stream = _shuffle(state.order, stream)
            for first in range(0, ROLLOUT, MINIBATCH):
                _fit(settings, shared, state, work, first)
        state.counts[0] += STEPS
    words[0], words[1], words[2], words[3] = stream


@inlined_by_numba
def _roll_out(settings: Any, state: Any, work: Any, earned: Any, stream: Any) -> Any:
    """Fill the rollout with transitions and return the stream."""
    kind, phase, end_rewards, gamma, exploration = settings[:5]
    actions = work.policy.shape[1]
    probabilities, rewards, discounts, traces = work.transitions[:4]
    for t in range(STEPS):
        now = work.now[t * BATCH : (t + 1) * BATCH]
        for b in range(BATCH):
            write_inputs(kind, state.tasks[b], now[b])
        forward(state.actor.parameters, now, work.acting)
        policies(settings.method, work.acting.outputs[:, :actions], work.policy)
        for b in range(BATCH):
            row, task, pi = t * BATCH + b, state.tasks[b], work.policy[b]
            a, stream = draw_action(pi, exploration, stream)
            reward, ended, stream = step_task(kind, phase, end_rewards, task, a, stream)
            write_inputs(kind, task, work.later[row])
            over = ended or task[4] >= CAPS[kind]
            work.taken[row] = a
            probabilities[row] = exploration / actions + (1.0 - exploration) * pi[a]
            rewards[row] = reward
            discounts[row] = 0.0 if ended else gamma
            traces[row] = 0.0 if over else gamma * TRACE
            earned[0] += reward
            if over:
                earned[1] += 1.0
                stream = start(kind, task, stream)
    return stream


@inlined_by_numba
def _estimate(shared: bool, state: Any, work: Any) -> None:
    """Write the advantages of the rollout, and the returns that the values fit."""
    _, rewards, discounts, traces, advantages, returns = work.transitions
    forward(state.critic.parameters, work.now, work.all_now)
    forward(state.critic.parameters, work.later, work.all_later)
    place = work.policy.shape[1] if shared else 0  # of the value among the outputs
    for row in range(ROLLOUT - 1, -1, -1):
        value = work.all_now.outputs[row, place]
        next_value = work.all_later.outputs[row, place]
        advantage = rewards[row] + discounts[row] * next_value - value
        if row + BATCH < ROLLOUT:
            advantage += traces[row] * advantages[row + BATCH]
        advantages[row] = advantage
        returns[row] = advantage + value


@inlined_by_numba
def _shuffle(order: Any, stream: Any) -> Any:
    """Shuffle the order of the transitions and return the stream."""
    for last in range(len(order) - 1, 0, -1):
        u, stream = uniform(stream)
        other = int(u * (last + 1))
        order[last], order[other] = order[other], order[last]
    return stream


@inlined_by_numba
def _fit(settings: Any, shared: bool, state: Any, work: Any, first: int) -> None:
    """Take the steps of actor and critic on a minibatch."""
    actions = work.policy.shape[1]
    probabilities, _, _, _, advantages, returns = work.transitions
    chosen = state.order[first : first + MINIBATCH]
    mean, square = 0.0, 0.0
    for b in range(MINIBATCH):
        for i in range(work.states.shape[1]):
            work.states[b, i] = work.now[chosen[b], i]
        mean += advantages[chosen[b]] / MINIBATCH
    for b in range(MINIBATCH):
        off = advantages[chosen[b]] - mean
        square += off * off
    deviation = math.sqrt(square / MINIBATCH) + 1e-8
    actor, critic = work.actor, work.actor if shared else work.critic
    forward(state.actor.parameters, work.states, actor)
    if not shared:
        forward(state.critic.parameters, work.states, critic)
    for b in range(MINIBATCH):
        row = chosen[b]
        direction(
            actor.outputs[b, :actions],
            work.pi,
            work.taken[row],
            probabilities[row],
            (advantages[row] - mean) / deviation,
            settings.exploration,
            settings.bonus,
            work.actor_slopes.outputs[b, :actions],
        )
        if shared:
            error = returns[row] - actor.outputs[b, actions]
            work.actor_slopes.outputs[b, actions] = VALUE_WEIGHT * error
        else:
            work.critic_slopes.outputs[b, 0] = returns[row] - critic.outputs[b, 0]
    p = state.actor.parameters
    backward(p, work.states, actor, work.actor_slopes, work.transpose, work.actor_gradient)
    adam_step(state.actor, work.actor_gradient, settings.step_size)
    if not shared:
        p = state.critic.parameters
        backward(p, work.states, critic, work.critic_slopes, work.transpose, work.critic_gradient)
        adam_step(state.critic, work.critic_gradient, CRITIC_RATE)


@compiled
def direction(
    f: Any,
    pi: Any,
    taken: int,
    old_probability: float,
    advantage: float,
    exploration: float,
    bonus: float,
    d: Any,
) -> None:
    """Write the direction of the scores `f` of one state, and their softmax into `pi`.

    `old_probability` is that of the action taken under the mixture that drew it.
    """
    for a in range(len(d)):
        d[a] = 0.0
    add_entropy(f, pi, bonus, d)
    share = (1.0 - exploration) * pi[taken] / old_probability
    ratio = exploration / len(d) / old_probability + share
    if (advantage > 0.0 and ratio > 1.0 + CLIP) or (advantage < 0.0 and ratio < 1.0 - CLIP):
        return
    for a in range(len(d)):
        d[a] -= advantage * share * pi[a]
    d[taken] += advantage * share
