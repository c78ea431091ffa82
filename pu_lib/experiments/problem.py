r"""A decision process with the performance a run has to reach.

The threshold is :math:`\mathcal J_b + \text{target}\,(\mathcal J_\star - \mathcal J_b)`, where the
baseline is the uniform policy (Random MDPs) or the policy that always takes action 0 (chains).
Both performances are computed with plain loops in a fixed order, not with LAPACK, so that the
threshold has the same bits on x86-64 and on 64-bit ARM.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import get_args

import numpy as np
from numpy.typing import NDArray

from pu_lib.arrays import as_float
from pu_lib.domains import Baseline
from pu_lib.engine.rows import static_successors
from pu_lib.engine.values import performance
from pu_lib.experiments.tables import Tables, lay_out
from pu_lib.mdp import FiniteMDP

__all__ = ["Baseline", "Problem", "exact_performance", "make_problem"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Problem(Tables):
    """A process laid out for simulation, and a goal.

    What is not described here is as in `Tables`.

    Attributes
    ----------
    threshold : float
        The performance to reach.
    baseline_performance, optimal_performance : float
        The ends of the scale of normalised performance.
    """

    threshold: float
    baseline_performance: float
    optimal_performance: float


def make_problem(mdp: FiniteMDP, target: float, baseline: Baseline = "uniform") -> Problem:
    """Lay out a process for simulation, and set its goal.

    Parameters
    ----------
    mdp : FiniteMDP
        The process.
    target : float
        Normalised performance to reach, at most 1.
    baseline : {"uniform", "first"}
        Normalised performance 0: the uniform policy, or always action 0.

    Returns
    -------
    Problem
        The tables of the process, its threshold, and the performances that normalise it.

    Raises
    ------
    ValueError
        If the target is out of range, the baseline unknown, or optimal, the optimum not known, or a
        trajectory may begin in a terminal state.
    """
    target = as_float("target", target)
    if not 0.0 < target <= 1.0:
        raise ValueError(f"target: expected a normalised performance in (0, 1], got {target}.")
    if baseline not in get_args(Baseline):
        raise ValueError(f"baseline: expected one of {get_args(Baseline)}, got {baseline!r}.")
    if mdp.initial[mdp.terminal].any():
        raise ValueError("initial: trajectories of the experiments begin in no terminal state.")
    tables = lay_out(mdp)
    policy = np.full((mdp.n_states, mdp.n_actions), 1.0 / mdp.n_actions)
    if baseline == "first":
        policy[:] = np.eye(mdp.n_actions)[0]
    low = exact_performance(tables, policy)
    high = exact_performance(tables, mdp.optimal().require().policy)
    if not high - low > 1e-12 * max(1.0, abs(high)):
        raise ValueError(
            f"target: the baseline policy ({baseline}) already earns the optimal {high:.6g}; "
            "there is nothing to learn."
        )
    return Problem(
        **{field.name: getattr(tables, field.name) for field in fields(Tables)},
        threshold=low + target * (high - low),
        baseline_performance=low,
        optimal_performance=high,
    )


def exact_performance(tables: Tables, policy: Floats) -> float:
    """Return the exact performance of a policy, with the same bits on x86-64 and ARM.

    Parameters
    ----------
    tables : Tables
        The process.
    policy : ndarray, shape (n_states, n_actions)
        Probabilities.

    Returns
    -------
    float
        The performance, not normalised.
    """
    return float(
        performance(
            np.array(policy, order="C"),  # read-only arrays would be compiled for once more
            np.zeros(tables.n_states),
            tables.process,
            (0,) * tables.n_actions,
            static_successors(tables.n_successors),
        )
    )
