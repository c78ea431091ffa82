r"""The cross-entropy update: the paper's conjecture, counterexamples, and convergence results.

The paper conjectures that CE converges to the optimum and states no condition on the weights. Under
the condition of the paper's Theorem 1, :math:`\sum_t w_t(s)=\infty` at every state, the conjecture
is false: `cycles` contains periodic orbits that attract an open set of initial parameters and stay
far below the optimum. The chapter proves the following results, which this module evaluates:

- **elimination**: the probability of an action that is greedy only finitely often converges to 0;
- **small discount**: :math:`D=\limsup v_t-\liminf v_t` satisfies
  :math:`D(s)\le2\gamma\max_a\sum_{s'}p(s'|s,a)D(s')`, so CE converges if :math:`\gamma<1/2`;
- **one half**: with bounded weights CE converges at :math:`\gamma=1/2`, too, and with weights of
  order log t it may oscillate for ever (`one_half`);
- **one successor**: CE converges for every :math:`\gamma<1` if no state has more than one
  successor in its own strongly connected component;
- **two actions**: CE equals MCE;
- **large constant weights**: divided by a large common weight the update becomes the *hardened*
  one: the policy selects the top action, and an update transfers one unit from the top action to
  the greedy action. With :math:`\kappa_a=\theta_a/w-\mathbb 1[a\text{ is the top}]`, the potential
  :math:`\Psi=\sum_a\kappa_a^2` never increases, and strictly decreases at every error. Hence the
  hardened system (not CE itself) is optimal after finitely many steps, if no two levels of a state
  differ by a multiple of its weight (*generic* levels).

If the weights are constant in time and every state is updated, CE converges for large weights
(`constant_weights`). For small weights the question is open; `random_search` and
`evolutionary_search` search for counterexamples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib import kernels
from pu_lib.chapters.cross_entropy.cycles import (
    THREE_STATES,
    Certificate,
    CycleExample,
    certify,
    simulate,
)
from pu_lib.claims.formulas import exp, formula, log
from pu_lib.deterministic import DeterministicMDP, action_values, run_process
from pu_lib.trajectories import run
from pu_lib.updates import Update, as_update, softmax

__all__ = [
    "LateRun",
    "Period",
    "certificate",
    "hardened_run",
    "hardened_step",
    "late_run",
    "one_period",
    "pattern_margin",
    "perturbed_cycle",
    "potential",
    "race",
    "reduced_levels",
    "top_action",
    "unresolved",
    "value_ranges",
    "with_equal_weights",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Levels = tuple[Fraction, ...]


# The checks call these bounds, and claims.toml prints them.


@formula
def rare_mass(weight: Any, actions: int) -> Any:
    """Return a bound on 1 minus the largest probability if the excess entropy is positive."""
    return (actions - 1) * exp(1 - weight / 2)


@formula
def excess_bound(weight: Any, actions: int, rare: Any) -> Any:
    """Return an upper bound on the excess entropy of a state with the given weight.

    `rare` is the smaller of 1/2 and `rare_mass`.
    """
    return (actions - 1) * exp(-(weight * (1 - rare)))


@formula
def start_bound(square: Any, weight: Any) -> Any:
    """Return a bound on log losses minus excess entropies, from the centred sum of squares."""
    return square / (2 * weight) + weight / 2


@formula
def lack_bound(discount: float, lead: float, spread: float) -> float:
    """Return the bound on 1 minus the greedy action's probability after a good step."""
    return (1 - discount) ** 2 * lead / (2 * spread)


@formula
def exponent_threshold(window: int, states: int, actions: int, lack: float) -> Any:
    """Return the exponent of the excess bound above which CE with constant weights converges."""
    return log((window + 1) * states * (actions - 1) / lack)


def detour_lead(discount: Any) -> Any:
    """Return the lead on the hexagon of the action that pays 0, for large weights."""
    return (2 * discount - 1) / (1 - discount)


def return_lead(discount: Any) -> Any:
    """Return the least lead on the hexagon of the actions that pay 1, for large weights."""
    return 1 - discount**2


def lead_error(discount: Any, unit: Any) -> Any:
    """Return a bound on how far a lead on the hexagon is from its limit for large weights."""
    return 4 * exp(1 - unit) / (1 - discount) ** 2


def mixing_error(discount: Any, mixing: Any) -> Any:
    """Return a bound on how much the bandits behind the hexagon change a lead."""
    return 2 * mixing / (1 - discount) ** 2


def level_error(unit: Any) -> Any:
    """Return a bound on how far a parameter on the hexagon is from its hardened level."""
    return 24000 * unit * exp(1 - unit)


# The cycle


@cache
def certificate(example: CycleExample = THREE_STATES) -> Certificate:
    """Return the certificate of a cycle of CE and cache it."""
    return certify(example)


class Period(NamedTuple):
    """One period of a cycle with one update per phase, after the transient.

    Attributes
    ----------
    parameters : list of list of ndarray
        The parameters of every state before each step and after the last step.
    values, greedy : ndarray, shape (period, n_states)
        The values and the greedy actions before each step.
    """

    parameters: list[list[Floats]]
    values: Floats
    greedy: Ints


@cache
def one_period(example: CycleExample = THREE_STATES) -> Period:
    """Return one period of an example with one update per phase, after 20 000 periods."""
    settled = simulate(example, 20_000).theta
    start = [settled[s, :n].tolist() for s, n in enumerate(example.n_actions)]
    orbit = simulate(example, 1, start=start)
    return Period(_parameters(example, start), orbit.values, orbit.greedy)


def _parameters(example: CycleExample, start: Sequence[Sequence[float]]) -> list[list[Floats]]:
    """Return the parameters before each phase and after the last phase, for the claimed actions."""
    path = [[np.array(row) for row in start]]
    for phase in example.phases:
        rows = list(path[-1])
        theta = rows[phase.state].tolist()
        for _ in range(phase.updates):
            pi = softmax(theta).tolist()
            kernels.ce(theta, pi, theta, phase.greedy, float(phase.weight), len(theta))
        rows[phase.state] = np.array(theta)
        path.append(rows)
    return path


# The other updates on the same MDP and schedule


def race(
    example: CycleExample, update: str | Update, periods: int, start: str = "cycle"
) -> tuple[Floats, Floats]:
    """Run any update on an example's MDP and schedule, and return its values and weights.

    If `start` is ``"cycle"``, the initial policy is the policy of the cycle at the beginning of its
    period; if `start` is ``"uniform"``, the initial policy is uniform. The values, before each
    step and after the last step, have shape (T + 1, n_states), and the weights have shape
    (T, n_states). Both exclude the terminal state.
    """
    mdp, chosen = example.mdp(), as_update(update)
    period = example.weights
    weights = np.hstack([period, np.zeros((len(period), 1))])
    if start == "cycle":
        theta0 = chosen.parameters(softmax(example.parameters()))
    elif start == "uniform":
        theta0 = chosen.initial(mdp.n_states, mdp.n_actions)
    else:
        raise ValueError(f"start: expected 'cycle' or 'uniform', got {start!r}.")
    trajectory = run(
        mdp,
        chosen,
        periods * len(period),
        weighting=lambda t, _: weights[t % len(period)],
        theta0=theta0,
    )
    return trajectory.v[:, :-1], trajectory.weights[:, :-1]


# Convergence in special cases


class LateRun(NamedTuple):
    """The range of each state's value late in a run, and its largest distance to the optimum."""

    span: Floats
    shortfall: Floats


def late_run(mdp: DeterministicMDP, weights: Floats, theta: Floats, periods: int = 400) -> LateRun:
    """Run CE for `periods` periods of its weights and return statistics of the last tenth."""
    values = run_process(mdp, "ce", theta, weights, periods * len(weights)).values
    late = values[-(len(values) // 10) :]
    sweeps = round(15 / (1 - float(np.max(mdp.discount))))  # relative error e^-15
    return LateRun(np.ptp(late, axis=0), mdp.optimum(sweeps) - late.min(axis=0))


def value_ranges(cycle: Certificate) -> list[float]:
    """Return an upper bound on the range of each state's value over a period of a cycle."""
    return [high - low for low, high in zip(cycle.lowest, cycle.highest, strict=True)]


def perturbed_cycle(rng: np.random.Generator, discount: float) -> DeterministicMDP:
    """Draw an MDP with the cycle's transitions and each of its rewards changed by up to 0.2."""
    tables = THREE_STATES.tables
    rewards = tables.rewards + 0.2 * rng.uniform(-1.0, 1.0, tables.rewards.shape)
    return replace(tables, rewards=rewards, discount=discount)


# The large-weight limit


def hardened_step(levels: Levels, greedy: int, weight: Fraction | int) -> Levels:
    """Return the exact levels after one step of CE with the hardened policy."""
    moved, top = list(levels), top_action(levels)
    policy = [int(a == top) for a in range(len(levels))]
    kernels.ce(moved, policy, moved, greedy, weight, len(levels))
    return tuple(moved)


def hardened_run(
    example: CycleExample,
    levels: Sequence[Levels],
    schedule: Sequence[Sequence[Fraction | int]],
) -> list[tuple[tuple[int, ...], Fraction]]:
    """Run the hardened updates on a small deterministic MDP in exact arithmetic.

    `levels` are the initial levels of each state. `schedule` contains the weight of each state in
    each step, or 0 if the state is not updated. Return the policies before each step and after the
    last step, with the largest distance of each policy's values to the optimum.
    """
    table = example.deterministic_values()
    best = [max(v[s] for v in table.values()) for s in range(example.n_states)]

    @cache  # a run visits few policies, each of them often
    def outlook(policy: tuple[int, ...]) -> tuple[Fraction, list[int]]:
        """Return a policy's largest distance to the optimum, and each state's greedy action."""
        v, towards = table[policy], []
        for s, top in enumerate(policy):
            q = action_values(example.rewards[s], example.successors[s], example.discount, v)
            # The top action wins a tie; otherwise the first of the tied actions does.
            towards.append(top if q[top] == max(q) else kernels.greedy(q, len(q)))
        return max(x - y for x, y in zip(best, v, strict=True)), towards

    now, path = list(levels), []
    for weights in [*schedule, [0] * example.n_states]:
        policy = tuple(top_action(row) for row in now)
        gap, towards = outlook(policy)
        path.append((policy, gap))
        now = [hardened_step(*each) for each in zip(now, towards, weights, strict=True)]
    return path


def reduced_levels(levels: Levels, weight: Fraction | int) -> Levels:
    r"""Return :math:`\kappa_a = \theta_a/w - \mathbb 1[a\text{ is the top}]` of each action."""
    top = top_action(levels)
    return tuple(level / weight - (a == top) for a, level in enumerate(levels))


def potential(levels: Levels, weight: Fraction | int) -> Any:
    r"""Return the potential :math:`\Psi = \sum_a \kappa_a^2`."""
    return sum(kappa**2 for kappa in reduced_levels(levels, weight))


def top_action(levels: Levels) -> int:
    """Return the action with the largest level, or raise an error if the largest levels tie."""
    best = max(levels)
    tops = [a for a, level in enumerate(levels) if level == best]
    if len(tops) > 1:
        raise ValueError(f"levels: the actions {tops} tie for the top at {best}.")
    return tops[0]


def pattern_margin(discount: float, example: CycleExample = THREE_STATES) -> float:
    """Return the smallest lead of the greedy actions, maximised over rewards in [-1, 1].

    The transitions and the hardened policies are fixed to those of the cycle. The values are linear
    in the rewards, so the maximisation is a linear programme. The margin is zero if no rewards make
    the pattern a cycle of the large-weight limit.
    """
    from scipy.optimize import linprog

    index = {
        pair: k
        for k, pair in enumerate(
            (s, a) for s in range(example.n_states) for a in range(example.n_actions[s])
        )
    }
    orbit = simulate(example, 50)
    constraints = []
    for t, policy in enumerate(_hardened_policies(example)):
        matrix, reward = np.eye(example.n_states), np.zeros((example.n_states, len(index)))
        for s, a in enumerate(policy):
            reward[s, index[s, a]] = 1.0
            j = example.successors[s][a]
            if j is not None:
                matrix[s, j] -= discount
        v = np.linalg.solve(matrix, reward)
        s = int(example.updated_states[t])
        q = []
        for a, j in enumerate(example.successors[s]):
            row = np.zeros(len(index)) if j is None else discount * v[j]
            q.append(row + np.eye(len(index))[index[s, a]])
        g = int(orbit.greedy[t - example.period, s])
        constraints += [np.append(q[a] - q[g], 1.0) for a in range(example.n_actions[s]) if a != g]
    objective = np.append(np.zeros(len(index)), -1.0)
    bounds = [(-1.0, 1.0)] * len(index) + [(0.0, None)]
    solution = linprog(objective, np.array(constraints), np.zeros(len(constraints)), bounds=bounds)
    return float(solution["x"][-1])


def _hardened_policies(example: CycleExample) -> list[tuple[int, ...]]:
    """Return the most probable action of each state before each phase of the cycle's period."""
    return [
        tuple(int(np.argmax(row)) for row in rows)
        for rows in _parameters(example, example.start)[:-1]
    ]


# The open case


def unresolved(result: dict[str, Any]) -> list[list[Any]]:
    """Return the family, block and index of each suspect of a random search that did not settle.

    `result` is the return value of `pu_lib.chapters.random_search.quantities.load`, which includes
    the suspects that were continued for longer.
    """
    settled = [
        [row["family"], row["block"], row["index"]]
        for row in result.get("followed", [])
        if not row["suspect"]
    ]
    suspects = [
        [family, *where] for family, row in result["families"].items() for where in row["suspects"]
    ]
    return [suspect for suspect in suspects if suspect not in settled]


def with_equal_weights(example: CycleExample = THREE_STATES) -> CycleExample:
    """Return the example with weight 10 in every phase, for which CE does not cycle."""
    return replace(
        example,
        name=f"{example.name}, equal weights",
        phases=tuple(replace(phase, weight=Fraction(10)) for phase in example.phases),
    )
