r"""The cross-entropy update: what the paper conjectures, what is false, what is true.

The paper conjectures that CE converges to the optimum and names no condition on the weights. Read
under the condition of its Theorem 1, :math:`\sum_t w_t(s)=\infty` at every state, the conjecture
is false: `cycles` has periodic orbits that attract an open set of starts and stay far below the
optimum. Proved in the chapter, and evaluated here:

- **elimination**: an action that is greedy only finitely often loses all its probability;
- **small discount**: with :math:`D=\limsup v_t-\liminf v_t`,
  :math:`D(s)\le2\gamma\max_a\sum_{s'}p(s'|s,a)D(s')`, hence convergence if :math:`\gamma<1/2`;
- **one successor**: convergence for every :math:`\gamma<1` if no state has more than one
  successor in its own strongly connected component;
- **two actions**: CE is MCE;
- **large constant weights**: divided by a large common weight the update becomes the *hardened*
  one: the policy is the top action, and an update moves one unit from the top action to the greedy
  one. With :math:`\kappa_a=\theta_a/w-\mathbb 1[a\text{ is the top}]`, the potential
  :math:`\Psi=\sum_a\kappa_a^2` never increases, and strictly decreases at every error.

Open: the true update with weights constant in time and every state updated (`hunt`).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.theory.cycles import (
    THREE_STATES,
    Certificate,
    CycleExample,
    simulate,
)
from pu_lib.theory.deterministic import DeterministicMDP, run_process
from pu_lib.updates import Update

__all__ = [
    "contraction_margin",
    "draw_near_cycle",
    "hardened_step",
    "oscillation",
    "pattern_margin",
    "potential",
    "race",
    "reduced_levels",
    "unresolved",
    "without_variation",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Levels = tuple[Fraction, ...]


# The conjecture


# The other updates on the same MDP and schedule


def race(
    example: CycleExample, update: Update, periods: int, start: str = "cycle"
) -> tuple[Floats, Floats]:
    """Run any update on an example's MDP and schedule, through the library's exact process.

    Parameters
    ----------
    example : CycleExample
        The MDP and the schedule.
    update : Update
        The update.
    periods : int
        How many periods.
    start : {"cycle", "uniform"}
        The policy of the cycle at the beginning of its period, or the uniform one.

    Returns
    -------
    v, weights : ndarray, shape (T + 1, n_states) and (T, n_states)
        Values before each update and after the last, and the weights, terminal state left out.
    """
    from pu_lib.trajectories import run
    from pu_lib.updates import softmax

    mdp = example.mdp()
    period = example.weights
    weights = np.hstack([period, np.zeros((len(period), 1))])
    if start == "cycle":
        theta0 = update.parameters(softmax(example.parameters()))
    elif start == "uniform":
        theta0 = update.initial(mdp.n_states, mdp.n_actions)
    else:
        raise ValueError(f"start: expected 'cycle' or 'uniform', got {start!r}.")
    trajectory = run(
        mdp,
        update,
        periods * len(period),
        weighting=lambda t, _: weights[t % len(period)],
        theta0=theta0,
    )
    return trajectory.v[:, :-1], trajectory.weights[:, :-1]


# What is true


def oscillation(
    example_rewards: Floats,
    successors: Ints,
    n_actions: Ints,
    discount: float,
    weights: Floats,
    theta: Floats,
    periods: int = 400,
) -> Floats:
    """Return the range of each state's value over the last tenth of a periodic run of CE.

    Parameters
    ----------
    example_rewards, successors, theta : ndarray, shape (S, A)
        The MDP (successor -1 ends) and the start.
    n_actions : ndarray, shape (S,)
        Numbers of actions.
    discount : float
        The discount factor.
    weights : ndarray, shape (period, S)
        One period of the weights.
    periods : int
        How many periods to run.
    """
    steps = periods * len(weights)
    mdp = DeterministicMDP(example_rewards, successors, n_actions, discount)
    values = run_process(mdp, "ce", theta, weights, steps).values
    return np.asarray(np.ptp(values[-(steps // 10) :], axis=0))


def contraction_margin(certificate: Certificate) -> float:
    r"""Return the least of :math:`2\gamma\max_a D(s'_a)-D(s)` over the states of a cycle.

    On a periodic orbit :math:`D` is the range of the values over a period; the inequality of the
    small-discount theorem holds for every :math:`\gamma`, so that this is never negative.
    """
    example = certificate.example
    D = [high - low for low, high in zip(certificate.lowest, certificate.highest, strict=True)]
    return min(
        2.0 * float(example.discount) * max(0.0 if j is None else D[j] for j in row) - D[s]
        for s, row in enumerate(example.successors)
    )


def draw_near_cycle(rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Draw the cycle's transitions with rewards moved a little."""
    tables = THREE_STATES.tables
    rewards = tables.rewards + 0.2 * rng.uniform(-1.0, 1.0, tables.rewards.shape)
    return rewards, tables.successors, tables.n_actions


# The large-weight limit


def hardened_step(levels: Levels, greedy: int, weight: Fraction | int) -> Levels:
    """Move `weight` from the top level to the greedy one (nothing if they are the same)."""
    moved = list(levels)
    moved[_top(levels)] -= weight
    moved[greedy] += weight
    return tuple(moved)


def reduced_levels(levels: Levels, weight: Fraction | int) -> Levels:
    r"""Return :math:`\kappa_a = \theta_a/w - \mathbb 1[a\text{ is the top}]`."""
    top = _top(levels)
    return tuple(Fraction(level) / weight - (a == top) for a, level in enumerate(levels))


def potential(levels: Levels, weight: Fraction | int) -> Fraction:
    r"""Return :math:`\Psi = \sum_a \kappa_a^2`."""
    return sum((kappa**2 for kappa in reduced_levels(levels, weight)), Fraction(0))


def _top(levels: Levels) -> int:
    """Return the action with the largest level; a tie has no hardened policy."""
    best = max(levels)
    tops = [a for a, level in enumerate(levels) if level == best]
    if len(tops) > 1:
        raise ValueError(f"levels: the actions {tops} tie for the top at {best}.")
    return tops[0]


def pattern_margin(discount: float, example: CycleExample = THREE_STATES) -> float:
    """Return how far the greedy actions of the hardened cycle can be ahead, over all rewards.

    Rewards are free in [-1, 1]; the transitions and the hardened policies of the cycle are kept.
    The values are linear in the rewards, so that this is a linear programme; it is zero where no
    rewards make the pattern a cycle of the large-weight limit.
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
        s = int(example.updated[t])
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
    """Return the most probable action of each state before each step of the cycle's period."""
    theta = [np.array(row) for row in example.start]
    policies = []
    for phase in example.phases:
        policies.append(tuple(int(np.argmax(row)) for row in theta))
        row = theta[phase.state]
        pi = np.exp(row - row.max())
        pi /= pi.sum()
        target = np.arange(len(row)) == phase.greedy
        theta[phase.state] = row + float(phase.weight) * (target - pi)
    return policies


# The open case


def unresolved(result: dict[str, Any]) -> list[list[Any]]:
    """Return the suspects of a hunt that did not settle when they were followed for longer."""
    settled = [
        [row["family"], row["block"], row["index"]]
        for row in result.get("followed", [])
        if not row["suspect"]
    ]
    suspects = [
        [family, *where] for family, row in result["families"].items() for where in row["suspects"]
    ]
    return [suspect for suspect in suspects if suspect not in settled]


def without_variation(example: CycleExample = THREE_STATES) -> CycleExample:
    """Return the example with the same weight at every step (it no longer cycles)."""
    return replace(
        example,
        name=f"{example.name}, equal weights",
        phases=tuple(replace(phase, weight=Fraction(10)) for phase in example.phases),
    )
