r"""A decision process with a performance threshold.

The threshold is :math:`\mathcal J_b + \text{target}\,(\mathcal J_\star - \mathcal J_b)` with the
baseline's performance :math:`\mathcal J_b`. The baseline is the uniform policy (Random MDPs) or the
policy that always takes action 0 (chains). Both performances are computed with plain loops in a
fixed order rather than with LAPACK, so that the threshold has the same bits on x86-64 and on 64-bit
ARM.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import as_float
from pu_lib.domains import Baseline
from pu_lib.engine.rows import static_successors
from pu_lib.engine.values import performance
from pu_lib.experiments.tables import Tables, lay_out
from pu_lib.mdp import FiniteMDP

Floats = NDArray[np.float64]
_ROUNDING = 1e-12  # relative; two performances with a smaller difference are taken as equal


@dataclass(frozen=True)
class Problem(Tables):
    """The arrays of a process for the simulation, with a threshold.

    The other attributes are those of `Tables`.

    Attributes
    ----------
    threshold : float
        The performance to reach.
    baseline_performance, optimal_performance : float
        The performances with normalised values 0 and 1.
    """

    threshold: float
    baseline_performance: float
    optimal_performance: float

    def normalised(self, performance: Any) -> Any:
        """Return performances on the scale on which the baseline has 0 and an optimal policy 1."""
        low, high = self.baseline_performance, self.optimal_performance
        return (performance - low) / (high - low)


def make_problem(mdp: FiniteMDP, target: float, baseline: Baseline = "uniform") -> Problem:
    """Return the tables of a process and the threshold of a normalised performance.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    target : float
        Normalised performance to reach, in (0, 1].
    baseline : {"uniform", "first"}
        The policy with normalised performance 0: the uniform policy, or the policy that always
        takes action 0.

    Returns
    -------
    Problem
        The tables, the threshold, and the performances of the baseline and of an optimal policy.

    Raises
    ------
    ValueError
        If the target is out of range, the baseline is unknown or already optimal, no optimal policy
        is found, or a terminal state is initial.
    """
    target = as_float("target", target)
    if not 0.0 < target <= 1.0:
        raise ValueError(f"target: expected a normalised performance in (0, 1], got {target}.")
    if baseline not in get_args(Baseline):
        raise ValueError(f"baseline: expected one of {get_args(Baseline)}, got {baseline!r}.")
    if starts := np.flatnonzero(mdp.initial * mdp.terminal).tolist():
        raise ValueError(
            "initial: trajectories of the experiments do not begin in terminal states, "
            f"got positive probability in {', '.join(map(mdp._state, starts))}."
        )
    tables = lay_out(mdp)
    policy = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    if baseline == "first":
        policy[:] = np.eye(mdp.n_actions)[0]
    low = exact_performance(tables, policy)
    best = mdp.optimal().require().policy
    high = exact_performance(tables, best)
    # Rounding errors are relative to the performance with absolute rewards, in any unit of reward.
    # That is at most the largest value, so most processes need no evaluation of absolute rewards.
    rewards = np.abs(tables.expected_reward)
    scale = rewards.max() / (1.0 - mdp.discount)
    if not high - low > _ROUNDING * scale:
        size = replace(tables, expected_reward=rewards)
        scale = max(exact_performance(size, each) for each in (policy, best))
    if not high - low > _ROUNDING * scale:
        raise ValueError(
            f"target: the baseline policy ({baseline}) already has the optimal performance "
            f"{high:.6g} up to rounding; there is nothing to learn."
        )
    return Problem(
        **{field.name: getattr(tables, field.name) for field in fields(Tables)},
        threshold=low + target * (high - low),
        baseline_performance=low,
        optimal_performance=high,
    )


def exact_performance(tables: Tables, policy: Floats) -> float:
    """Return the performance of a policy (not normalised), with the same bits on x86-64 and ARM."""
    return float(
        performance(
            np.array(policy, order="C"),  # read-only arrays would trigger another compilation
            np.zeros(tables.n_states),
            tables.process,
            (0,) * tables.n_actions,
            static_successors(tables.n_successors),
        )
    )
