"""The compiled loop of Jekyll & Hyde, the algorithm of `pu_lib.experiments.jekyll_hyde`.

The compiler decides which functions to inline, except that the policy step `_improve` is always
inlined: a call of `_improve` passes fifty words for all its arrays, and these calls took a fifth of
the time of PG-ES on four actions. Inlining every function made `mce` on chains a fifth slower. The
loop itself is one function, in the order of events. Its data are grouped:

- static arguments (`pu_lib.engine.rows`): fixed at compile time;
- `Process`, `Schedules`, `Rules`, `Limits`: fixed during a run;
- `Arrays`: the memory of a run;
- a stream of random numbers: every function that draws numbers returns the advanced stream.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.compiling import compiled, compiled_in_memory, inlined
from pu_lib.engine.arithmetic import int_to_float, logarithm, uniform
from pu_lib.engine.rows import advance, greedy, nth_best, rescale, set_policy
from pu_lib.engine.values import performance, reaches_threshold

Floats = NDArray[np.float64]

# An index masked by this is known to be non-negative, so numba omits the test for negative indices,
# which count from the end.
_POSITIVE = (1 << 62) - 1


class StaticArgs(NamedTuple):
    """The static arguments of a run, which are tuples of zeros; see `pu_lib.engine.rows`.

    Attributes
    ----------
    actions, successors : tuple of int
        One zero for each action, and one for each successor of a pair; `successors` is empty if
        there are too many to unroll.
    update, policy, ties : tuple of int
        The static arguments of the kernel, of its parametrization and of the rule for tied actions.
    scaled : tuple of int
        Whether the parameters have separate exponents.
    details : tuple of int
        Whether the run has options that are not the paper's. Omitting the tests for these options
        saves up to a seventh of the time of a step.
    """

    actions: tuple[int, ...]
    successors: tuple[int, ...]
    update: tuple[int, ...]
    policy: tuple[int, ...]
    ties: tuple[int, ...]
    scaled: tuple[int, ...]
    details: tuple[int, ...]


class Process(NamedTuple):
    """A decision process with S states, A actions and up to K successors of each pair.

    The fields are those of `pu_lib.experiments.tables.Tables`, in the order of the loop.

    Attributes
    ----------
    probability, cumulative : ndarray, shape (S * A, K)
        The probabilities of the successors, and their cumulative sums.
    successor : ndarray of uint16 or uint32, shape (S * A * K,)
        The next state of each transition.
    reward : ndarray, shape (S * A * K,)
        The reward of each transition.
    expected_reward : ndarray, shape (S * A,)
        The expected reward of each pair.
    gamma : float
        The discount factor.
    terminal : ndarray of uint8, shape (S,)
        1 for terminal states.
    order : ndarray of uint16 or uint32
        The states that are not terminal, successors first as far as possible.
    solver : tuple of int
        The static argument of the method that evaluates policies, see `pu_lib.engine.values`.
    starts : ndarray of uint16 or uint32
        The possible initial states.
    start_cumulative : ndarray
        The cumulative sums of the probabilities of the initial states.
    """

    probability: Floats
    cumulative: Floats
    successor: NDArray[np.unsignedinteger]
    reward: Floats
    expected_reward: Floats
    gamma: float
    terminal: NDArray[np.uint8]
    order: NDArray[np.unsignedinteger]
    solver: tuple[int, ...]
    starts: NDArray[np.unsignedinteger]
    start_cumulative: Floats


class Schedules(NamedTuple):
    """The schedules of exploration and replay.

    The probabilities at step t are min(1, c / t^alpha), with alpha equal to 0, 1/2 or 1.

    Attributes
    ----------
    epsilon_c, epsilon_alpha : float
        c and alpha of the probability that Hyde acts in the next trajectory.
    off_c, off_alpha : float
        c and alpha of the probability that one of Hyde's transitions is replayed.
    """

    epsilon_c: float
    epsilon_alpha: float
    off_c: float
    off_alpha: float


class Rules(NamedTuple):
    """The learning rates, and the options of `pu_lib.experiments.options`.

    Only the learning rates are read if `details` in the static arguments is empty.

    Attributes
    ----------
    eta, critic_rate, hyde_rate : float
        The step size of the actor, and the learning rates of the critic and of Hyde.
    hyde_clip : float
        The upper bound to which Hyde's values are clipped, or infinity for no clipping.
    expected_sarsa : bool
        Whether the critic's target uses the mean value of the policy instead of the value of a
        drawn action.
    log_bonus : bool
        Whether Hyde's reward is the logarithmic bonus.
    model : bool
        Whether the successor of a replayed pair is drawn from all successors seen after the pair.
    discounted : bool
        Whether the actor's steps are weighted by discounting.
    """

    eta: float
    critic_rate: float
    hyde_rate: float
    hyde_clip: float
    expected_sarsa: bool
    log_bonus: bool
    model: bool
    discounted: bool


class Limits(NamedTuple):
    """The limits that determine when a run is evaluated and when it ends.

    Attributes
    ----------
    threshold : float
        The unnormalised performance at which a run ends.
    max_steps : int
        The largest number of steps.
    max_episodes : int
        The largest number of trajectories, or 0 for no limit.
    every : int
        The number of trajectories between evaluations, or 0 to schedule evaluations by steps.
    cut : int
        The number of steps after which a trajectory is cut, or 0 if trajectories are never cut.
    gap : int
        The smallest number of steps between evaluations.
    """

    threshold: float
    max_steps: int
    max_episodes: int
    every: int
    cut: int
    gap: int


class Arrays(NamedTuple):
    """The arrays of a run with S states and A actions, created by `RunBuffers`.

    Attributes
    ----------
    theta : ndarray, shape (S, A)
        The parameters, or their mantissas if `scaled` is set.
    exponent : ndarray of int64, shape (S, A)
        The exponents of the parameters, see `pu_lib.engine.rows.rescale`.
    update_memory : ndarray, shape (S, M)
        The memory of the update; M is 0 for an update without memory.
    pi, running : ndarray, shape (S, A)
        The policy, and its cumulative sums, with which actions are drawn.
    q, hyde : ndarray, shape (S, A)
        The values of the critic and of Hyde.
    visits : ndarray of int64, shape (S * A,)
        The number of visits of each pair.
    bonus : ndarray, shape (S * A,)
        Hyde's reward for each pair.
    seen : ndarray of int64, shape (S * A * K,)
        The number of times each transition was seen.
    v, v_hyde : ndarray, shape (S,)
        Workspace: the values of the policy and of Hyde's greedy policy.
    greedy : ndarray, shape (S, A)
        Workspace: Hyde's greedy policy.
    record_at : ndarray of int64, shape (R,)
        Increasing numbers of steps after which the policy is recorded and evaluated; if empty,
        as is usual, evaluations follow `Limits`.
    recorded : ndarray, shape (R, S, A)
        The recorded policies.
    buffer : ndarray of uint16 or uint32, shape (max_steps,)
        The replay buffer, with Jekyll's transitions stored from the left and Hyde's from the right.
    """

    theta: Floats
    exponent: NDArray[np.int64]
    update_memory: Floats
    pi: Floats
    running: Floats
    q: Floats
    hyde: Floats
    visits: NDArray[np.int64]
    bonus: Floats
    seen: NDArray[np.int64]
    v: Floats
    v_hyde: Floats
    greedy: Floats
    record_at: NDArray[np.int64]
    recorded: Floats
    buffer: NDArray[np.unsignedinteger]


def run(
    static: Any, process: Any, schedules: Any, rules: Any, limits: Any, memory: Any, seeds: Any
) -> Any:
    """Run until the performance reaches the threshold or the run reaches a limit.

    Parameters
    ----------
    static : StaticArgs
        The static arguments.
    process : Process
        The decision process.
    schedules : Schedules
        The schedules of exploration and of the replay of Hyde's transitions.
    rules : Rules
        The learning rates and options.
    limits : Limits
        The limits that determine when the policy is evaluated and when the run ends.
    memory : Arrays
        The memory, which must be in the initial state of a run and is updated to the final state.
    seeds : ndarray of uint64, shape (4,)
        The initial state of the random stream.

    Returns
    -------
    steps, episodes : int
        The number of steps and of finished trajectories.
    passed : bool
        Whether the performance reached the threshold.
    performance : float
        The exact performance of the last policy.

    Raises
    ------
    ValueError
        If the shape of the memory or of the process does not match the static arguments.
    """
    actions, successors = static.actions, static.successors
    _, cumulative, successor, reward, _, gamma, terminal, _, _, starts, start_shares = process
    (
        theta, exponent, update_memory, pi, running, q, hyde, visits, bonus, seen, v, v_hyde,
        best_policy, record_at, recorded, buffer,
    ) = memory  # fmt: skip
    A, K = len(actions), len(successors) if len(successors) > 0 else cumulative.shape[1]
    # After these tests the length of rows is a constant for the compiler, which makes their
    # addresses cheaper to compute.
    for rows in (theta, pi, running, q, hyde):
        if rows.shape[1] != A:
            raise ValueError("memory: not for this number of actions.")
    if len(static.scaled) > 0 and exponent.shape[1] != A:
        raise ValueError("memory: not for this number of actions.")
    if cumulative.shape[1] != K:
        raise ValueError("process: not for this number of successors.")
    explores = schedules.epsilon_c > 0.0 or schedules.off_c > 0.0
    details = len(static.details) > 0
    by_episodes = details and limits.every > 0
    n_jekyll, n_hyde = 0, 0
    hyde_acts, length, episodes, passed = False, 0, 0, False
    discounting, discounted_sum, log_episodes = 1.0, 0.0, 0.0
    next_check, n_recorded = (
        min(record_at[0] if len(record_at) > 0 else limits.gap, limits.max_steps),
        0,
    )
    t = 0
    s, stream = _start(starts, start_shares, (seeds[0], seeds[1], seeds[2], seeds[3]))

    while t < limits.max_steps:
        t += 1
        # Act, and store the transition
        a, stream = _act(s, hyde_acts, running, hyde, actions, stream)
        code, stream = _enter(s * A + a, cumulative, successors, stream)
        entered = np.int64(successor[code])
        n_jekyll, n_hyde = _remember(code, hyde_acts, n_jekyll, n_hyde, buffer)
        if explores or (details and rules.model):
            _count(s * A + a, code, explores, visits, bonus, seen, rules, static.details)

        # Replay
        code, stream = _replay(t, n_jekyll, n_hyde, buffer, explores, schedules, stream)
        if details and rules.model and K > 1:
            code, stream = _from_model(code // K, K, visits, seen, stream)
        i = (code & _POSITIVE) // K
        x, b, after = i // A, i % A, np.int64(successor[code])

        # Learn
        if explores:
            _learn_hyde(
                i, after, hyde, visits, bonus, log_episodes, gamma, rules, actions, static.details
            )
        ahead, stream = _ahead(after, q, pi, running, rules, actions, static.details, stream)
        q[x, b] += rules.critic_rate * (reward[code] + gamma * ahead - q[x, b])
        weight = rules.eta
        if details and rules.discounted:
            discounted_sum += discounting
            weight = rules.eta * (discounting * (episodes / discounted_sum))
            discounting *= gamma
        stream = _improve(x, weight, theta, exponent, update_memory, pi, q, static, stream)
        _cumulate(pi, running, x, actions)

        # End of the trajectory
        s = entered
        length += 1
        ended = terminal[s] != 0 or length == limits.cut
        if ended:
            episodes, length, discounting = episodes + 1, 0, 1.0
            if details and rules.log_bonus:
                log_episodes = logarithm(episodes + 1.0)
            s, stream = _start(starts, start_shares, stream)
            if explores:
                u, stream = uniform(stream)
                hyde_acts = u < _epsilon(schedules, t)

        # Evaluate
        if not by_episodes:
            if t >= next_check:
                # Evaluations cost time, so the gap between them grows with t: it is 3 % of t.
                next_check = min(t + max(limits.gap, np.int64(0.03 * t)), limits.max_steps)
                passed = reaches_threshold(pi, v, process, actions, successors, limits.threshold)
                if n_recorded < len(record_at):
                    _record(pi, recorded, n_recorded, actions)
                    n_recorded += 1
                    next_check = (
                        record_at[n_recorded] if n_recorded < len(record_at) else limits.max_steps
                    )
        elif ended and ((episodes - 1) % limits.every == 0 or episodes == limits.max_episodes):
            J = performance(pi, v, process, actions, successors)
            if J - limits.threshold > 0.0:
                _set_greedy(hyde, best_policy, actions)
                J_hyde = performance(best_policy, v_hyde, process, actions, successors)
                share = _epsilon(schedules, t)
                passed = (1.0 - share) * J + share * J_hyde > limits.threshold
        if passed or (details and 0 < limits.max_episodes == episodes):
            break

    return t, episodes, passed, performance(pi, v, process, actions, successors)


# Acting


@compiled
def _start(starts: Any, cumulative: Any, stream: Any) -> Any:
    """Draw an initial state; no number is drawn if there is only one possible initial state."""
    x = 0
    if len(starts) > 1:
        u, stream = uniform(stream)
        last = len(starts) - 1  # the state is in x..last, the first with u < cumulative
        while x < last:
            middle = (x + last) // 2
            if u >= cumulative[middle]:
                x = middle + 1
            else:
                last = middle
    return np.int64(starts[x]), stream


@compiled
def _act(s: Any, hyde_acts: Any, running: Any, hyde: Any, actions: Any, stream: Any) -> Any:
    """Draw an action from the policy or, if Hyde acts, uniformly among Hyde's best actions."""
    u, stream = uniform(stream)
    a = 0
    if hyde_acts:
        a, n_best = greedy(hyde, s, actions)
        if n_best > 1:
            a = nth_best(hyde, s, a, np.int64(u * n_best), actions)
    else:
        for b in range(len(actions) - 1):
            a += u >= running[s, b]
    return a, stream


@compiled
def _enter(i: Any, cumulative: Any, successors: Any, stream: Any) -> Any:
    """Draw a successor of the pair i and return the number of the transition."""
    K = len(successors) if len(successors) > 0 else cumulative.shape[1]
    k = 0
    if K > 1:
        u, stream = uniform(stream)
        if len(successors) > 0:
            for j in range(K - 1):
                k += u >= cumulative[i, j]
        else:
            while k < K - 1 and u >= cumulative[i, k]:
                k += 1
    return i * K + k, stream


@compiled
def _remember(code: Any, hyde_acts: Any, n_jekyll: Any, n_hyde: Any, buffer: Any) -> Any:
    """Store a transition in the buffer and return the counts of Jekyll's and Hyde's transitions."""
    if hyde_acts:
        buffer[(len(buffer) - 1 - n_hyde) & _POSITIVE] = code
        n_hyde += 1
    else:
        buffer[n_jekyll & _POSITIVE] = code
        n_jekyll += 1
    return n_jekyll, n_hyde


@compiled
def _count(
    i: Any,
    code: Any,
    explores: Any,
    visits: Any,
    bonus: Any,
    seen: Any,
    rules: Any,
    details: Any,
) -> None:
    """Count a visit of the pair i, update Hyde's bonus and, for a model, count the transition."""
    visits[i] += 1
    if explores and not (len(details) > 0 and rules.log_bonus):
        bonus[i] = 1.0 / np.sqrt(np.float64(visits[i]))
    if len(details) > 0 and rules.model:
        seen[code] += 1


# Learning


@compiled
def _replay(
    t: Any, n_jekyll: Any, n_hyde: Any, buffer: Any, explores: Any, schedules: Any, stream: Any
) -> Any:
    """Draw one of the stored transitions, either Jekyll's or Hyde's."""
    from_hyde = False
    if explores:
        u, stream = uniform(stream)
        share = _schedule(schedules.off_c, schedules.off_alpha, int_to_float(t))
        from_hyde = n_hyde > 0 and u < share
    u, stream = uniform(stream)
    # The processor cannot predict which half of the buffer is read, and a mispredicted branch would
    # cost as much as this function. The mask is all ones for Hyde and 0 for Jekyll. Without a
    # branch, it selects n_hyde or n_jekyll, and then len(buffer) - 1 - place or place.
    mask = -np.int64(from_hyde)
    place = np.int64(u * (n_jekyll ^ ((n_jekyll ^ n_hyde) & mask)))
    return np.int64(buffer[((place ^ mask) + (len(buffer) & mask)) & _POSITIVE]), stream


@compiled
def _from_model(i: Any, K: Any, visits: Any, seen: Any, stream: Any) -> Any:
    """Draw one of the transitions seen from the pair i, in proportion to their counts."""
    u, stream = uniform(stream)
    left = np.int64(u * visits[i])
    code = i * K
    while left >= seen[code]:
        left -= seen[code]
        code += 1
    return code, stream


@compiled
def _learn_hyde(
    i: Any,
    after: Any,
    hyde: Any,
    visits: Any,
    bonus: Any,
    log_episodes: Any,
    gamma: Any,
    rules: Any,
    actions: Any,
    details: Any,
) -> None:
    """Update Hyde's value of the pair i by Q-learning with the bonus as the reward."""
    A = len(actions)
    x = i // A
    a = i - x * A
    top = hyde[after, 0]
    for b in range(1, A):
        top = max(top, hyde[after, b])
    gift = bonus[i]
    if len(details) > 0 and rules.log_bonus:
        gift = np.sqrt(log_episodes / (0.001 + visits[i]))
    hyde[x, a] += rules.hyde_rate * (gift + gamma * top - hyde[x, a])
    if len(details) > 0:
        hyde[x, a] = min(hyde[x, a], rules.hyde_clip)


@compiled
def _ahead(
    after: Any,
    q: Any,
    pi: Any,
    running: Any,
    rules: Any,
    actions: Any,
    details: Any,
    stream: Any,
) -> Any:
    """Return the critic's value of the next state, for a drawn action or as the policy's mean."""
    ahead = 0.0
    if len(details) > 0 and rules.expected_sarsa:
        for b in range(len(actions)):
            ahead += pi[after, b] * q[after, b]
    else:
        u, stream = uniform(stream)
        b = 0
        for j in range(len(actions) - 1):
            b += u >= running[after, j]
        ahead = q[after, b]
    return ahead, stream


@inlined
def _improve(
    x: Any,
    weight: Any,
    theta: Any,
    exponent: Any,
    update_memory: Any,
    pi: Any,
    q: Any,
    static: Any,
    stream: Any,
) -> Any:
    """Update the parameters of state x by one step of the kernel, and then set its policy."""
    actions, ties = static.actions, len(static.ties)
    best, n_best = greedy(q, x, actions)
    if n_best > 1 and ties == 1:
        u, stream = uniform(stream)
        best = nth_best(q, x, best, np.int64(u * n_best), actions)
    if n_best == 1 or ties != 2:
        row = update_memory[x]
        advance(static.update, theta[x], pi[x], q[x], best, weight, actions, row)
        set_policy(theta, pi, x, static.policy, actions)
        # Rescaling is rarely due. If its test comes last and the policy is set again when it was
        # due, the test is not on the critical path.
        if len(static.scaled) > 0 and rescale(theta, exponent, x, actions):
            set_policy(theta, pi, x, static.policy, actions)
    return stream


@compiled
def _cumulate(pi: Any, running: Any, x: Any, actions: Any) -> None:
    """Set running[x] to the cumulative sums of pi[x]."""
    if len(actions) == 2:
        # Both probabilities are read before a sum is written. Otherwise the compiler, which cannot
        # exclude that the arrays overlap, would load the second probability again.
        first, second = pi[x, 0], pi[x, 1]
        running[x, 0], running[x, 1] = first, first + second
        return
    total = pi[x, 0]
    running[x, 0] = total
    for a in range(1, len(actions)):
        total += pi[x, a]
        running[x, a] = total


@compiled
def _record(pi: Any, recorded: Any, n: Any, actions: Any) -> None:
    """Record the policy as entry n of `recorded`."""
    for s in range(len(pi)):
        for a in range(len(actions)):
            recorded[n, s, a] = pi[s, a]


# Schedules and evaluations


@compiled
def _schedule(c: float, alpha: float, t: Any) -> Any:
    """Return min(1, c / t^alpha) for alpha equal to 0, 1/2 or 1."""
    if alpha == 0.0:
        return min(1.0, c)
    if alpha == 0.5:
        return min(1.0, c / np.sqrt(t))
    return min(1.0, c / t)


@compiled
def _epsilon(schedules: Any, t: Any) -> Any:
    """Return the probability that Hyde acts in a trajectory that starts at step t."""
    return _schedule(schedules.epsilon_c, schedules.epsilon_alpha, int_to_float(t))


@compiled
def _set_greedy(hyde: Any, policy: Any, actions: Any) -> None:
    """Set `policy` to Hyde's greedy policy."""
    for s in range(len(policy)):
        best, _ = greedy(hyde, s, actions)
        for b in range(len(actions)):
            policy[s, b] = 1.0 if b == best else 0.0


run_cached = compiled(run)
"""The loop compiled for the library's kernels, with its code cached on disk."""

run_in_memory = compiled_in_memory(run)
"""The loop compiled in memory for other kernels, which can change between sessions."""
