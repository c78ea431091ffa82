"""Two deterministic MDPs with periodic weights for which CE cycles forever.

States may have different numbers of actions. `CycleExample.mdp` adds actions that are never greedy
and have a negligible initial probability.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pu_lib.deterministic import DeterministicMDP, policy_values

if TYPE_CHECKING:
    from pu_lib.mdp import FiniteMDP

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Phase:
    """Consecutive updates of one state, during which `greedy` is the claimed greedy action."""

    state: int
    weight: Fraction
    greedy: int
    updates: int = 1


@dataclass(frozen=True)
class CycleExample:
    """A deterministic MDP with periodic weights and initial parameters near a cycle of CE.

    `rewards`, `successors` and `start` have one row for each state and one entry for each action.
    The successor ``None`` ends the episode with value 0. `start` has the parameters before the
    first phase. `spread` is a weight that is added to the weight of every state at every step.
    """

    name: str
    discount: Fraction
    rewards: tuple[tuple[int, ...], ...]
    successors: tuple[tuple[int | None, ...], ...]
    phases: tuple[Phase, ...]
    start: tuple[tuple[float, ...], ...]
    spread: Fraction = Fraction(0)

    @property
    def n_states(self) -> int:
        """The number of states, excluding the end of the episode."""
        return len(self.rewards)

    @property
    def n_actions(self) -> tuple[int, ...]:
        """The number of actions in each state."""
        return tuple(len(row) for row in self.rewards)

    @property
    def period(self) -> int:
        """The number of steps in one period."""
        return sum(phase.updates for phase in self.phases)

    @property
    def weights(self) -> Floats:
        """The weights of one period as an array of shape (period, n_states)."""
        rows = []
        for phase in self.phases:
            row = np.full(self.n_states, float(self.spread))
            row[phase.state] += float(phase.weight)
            rows += [row] * phase.updates
        return np.array(rows)

    @property
    def updated_states(self) -> NDArray[np.int64]:
        """The scheduled state at each step of one period."""
        return np.repeat([p.state for p in self.phases], [p.updates for p in self.phases])

    @property
    def claimed_actions(self) -> NDArray[np.int64]:
        """The claimed greedy action of the scheduled state at each step of one period."""
        return np.repeat([p.greedy for p in self.phases], [p.updates for p in self.phases])

    @property
    def tables(self) -> DeterministicMDP:
        """The MDP as arrays that are padded to a common number of actions."""
        most = max(self.n_actions)
        rewards = np.zeros((self.n_states, most))
        successors = np.full((self.n_states, most), -1)
        for s, (row, nexts) in enumerate(zip(self.rewards, self.successors, strict=True)):
            rewards[s, : len(row)] = row
            successors[s, : len(row)] = [-1 if j is None else j for j in nexts]
        return DeterministicMDP(rewards, successors, np.array(self.n_actions), float(self.discount))

    def parameters(self, missing: float = -60.0) -> Floats:
        """Return the initial parameters of `mdp`, with `missing` for the padding actions."""
        theta = np.full((self.n_states + 1, max(self.n_actions)), missing)
        for s, row in enumerate(self.start):
            theta[s, : len(row)] = row
        theta[-1] = 0.0
        return theta

    def mdp(self) -> FiniteMDP:
        """Return the example as a `FiniteMDP` with an additional terminal state.

        Padding actions end the episode and pay 1 less than the smallest reward, so that they are
        never greedy if another action of the state also ends the episode.
        """
        from pu_lib.mdp import FiniteMDP

        tables = self.tables
        rewards, successors = tables.rewards, tables.successors
        missing = float(rewards.min()) - 1.0
        n, most = rewards.shape
        transitions = np.zeros((n + 1, most, n + 1))
        for s, a in itertools.product(range(n), range(most)):
            transitions[s, a, successors[s, a]] = 1.0
            if not tables.is_action[s, a]:
                rewards[s, a] = missing
        transitions[n, :, n] = 1.0
        initial = np.zeros(n + 1)
        initial[0] = 1.0
        return FiniteMDP(
            transitions,
            np.vstack([rewards, np.zeros(most)]),
            initial,
            float(self.discount),
            terminal=np.arange(n + 1) == n,
        )

    def deterministic_values(self) -> dict[tuple[int, ...], tuple[Fraction, ...]]:
        """Return the exact values of every deterministic policy."""
        table = {}
        for actions in itertools.product(*(range(n) for n in self.n_actions)):
            taken = [
                [Fraction(a == b) for b in range(n)]
                for a, n in zip(actions, self.n_actions, strict=True)
            ]
            values = policy_values(self.rewards, self.successors, self.discount, taken)
            table[actions] = tuple(values)
        return table

    def optimum(self) -> tuple[tuple[int, ...], tuple[Fraction, ...]]:
        """Return the unique optimal policy and its exact values, or raise a `ValueError`."""
        table = self.deterministic_values()
        best = tuple(max(v[s] for v in table.values()) for s in range(self.n_states))
        optimal = [actions for actions, v in table.items() if v == best]
        if len(optimal) != 1:
            raise ValueError(f"{self.name}: expected one optimal policy, found {optimal}.")
        return optimal[0], best

    def with_spread(self, spread: Fraction | int | str) -> CycleExample:
        """Return the example with another `spread`."""
        spread = Fraction(spread)
        return replace(self, spread=spread, name=f"{self.name}, spread {spread}")


_U = 4.999772907537697

THREE_STATES = CycleExample(
    name="three states",
    discount=Fraction(9, 10),
    rewards=((1, 0, 1), (2, -1), (2, -1)),
    successors=((0, 2, 1), (0, None), (None, 0)),
    phases=tuple(
        Phase(state, Fraction(weight), greedy)
        for state, weight, greedy in [
            (2, 10, 0),
            (0, 30, 1),
            (0, 10, 0),
            (2, 10, 1),
            (1, 10, 0),
            (0, 10, 2),
            (1, 10, 1),
            (0, 20, 2),
        ]
    ),
    start=((0.5551179231, -13.9903199088, 13.4352019857), (-_U, _U), (-_U, _U)),
)
"""An example with weights from 10 to 30 and period 8 that update one state per step; CE does not
converge to the optimum."""

_B = 1.9481487330477392

FOUR_STATES = CycleExample(
    name="four states",
    discount=Fraction(97, 100),
    rewards=((-6, -5, 0), (-10, 10), (10, -10), (-10, 10)),
    successors=((2, 3, 1), (None, 0), (1, 0), (None, 0)),
    phases=tuple(
        Phase(state, Fraction(1, 2), greedy, updates)
        for state, greedy, updates in [
            (0, 0, 109302),
            (3, 1, 55),
            (0, 1, 19),
            (2, 1, 55),
            (1, 1, 55),
            (0, 2, 6),
            (1, 0, 55),
            (3, 0, 55),
            (0, 2, 5),
            (2, 0, 55),
        ]
    ),
    start=((-0.4424847643, -0.2911896806, 0.7336744449), (_B, -_B), (_B, -_B), (_B, -_B)),
)
"""An example with constant weight 1/2 and period 109,662 that updates one state per step."""
