"""The checks of the chapter on the literature that run long: the ladder, and samples."""

from __future__ import annotations

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.literature import quantities as lit
from pu_lib.chapters.what_came_after.mirror_descent import bounded_mdp
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import JUDGED, label_of, softmax
from pu_lib.verdict import Verdict, Worst, check, judged

SLOW = "pg-sm"
FEW, MANY = 50.0, 200.0


@check(
    "lit:li2021/ladder",
    moved={
        "softmax policy gradient pays no more than the others": {"slow": ()},
        "natural policy gradient climbs at a constant pace": {"steady": ("npg",)},
    },
)
def check_ladder(slow: tuple[str, ...] = (SLOW,), steady: tuple[str, ...] | None = None) -> Verdict:
    """Race all updates on the ladder with 50 and with 200 copies of its lowest states.

    Parameters
    ----------
    slow : tuple of str
        The updates whose time grows faster than the number of copies.
    steady : tuple of str, optional
        The updates claimed to take at most four steps for each rung above the third; by default
        those that follow neither gradient.

    Returns
    -------
    Verdict
    """
    worst, rows = Worst("the room"), []
    gradients = ("pg-sm", "pg-es", "npg")
    steady = tuple(n for n in JUDGED if n not in gradients) if steady is None else steady
    for name in JUDGED:
        few, many = np.array(lit.ladder_times(name, FEW)), np.array(lit.ladder_times(name, MANY))
        factor, waits = many / few, np.diff(many[2:])
        rows.append(
            {
                "update": label_of(name),
                "rung 8, 50 copies": few[-1],
                "rung 8, 200 copies": many[-1],
                "factor": factor[-1],
                "steps from rung 7 to 8": waits[-1],
            }
        )
        if name in slow:
            worst.add(factor[-1] - 8.0, update=name, part="four times the copies, 8 times the time")
            ratios = waits[1:] / waits[:-1]
            worst.add(float(np.min(np.diff(ratios))), update=name, part="waits grow ever faster")
        else:
            worst.add(4.1 - float(np.max(factor)), update=name, part="no more than the copies")
        if name in steady:
            worst.add(4.5 - float(np.max(waits)), update=name, part="four steps a rung at most")
    return judged(worst, evidence=rows)


def _exponent(left: Floats) -> float:
    """Return by which power of the time what is left falls over the last octave."""
    return float(np.log2(left[-1 - len(left) // 2] / left[-1])) if left[-1] > 0 else np.inf


@check(
    "lit:mei2021/committal",
    moved={
        "NPG commits like 1/t": {"fast": (), "slow": ("pg-sm", "npg")},
        "PG-SM commits faster than 1/t": {"fast": ("npg", "pg-sm"), "slow": ()},
    },
)
def check_committal(
    fast: tuple[str, ...] = ("npg",), slow: tuple[str, ...] = ("pg-sm",), n_steps: int = 1000
) -> Verdict:
    """Measure how fast each update commits to the worse of two actions that is always sampled.

    Parameters
    ----------
    fast, slow : tuple of str
        The updates that commit faster than any power of the time, and like 1/t.
    n_steps : int
        Samples.

    Returns
    -------
    Verdict
    """
    worst, rows = Worst("the room"), []
    for name in JUDGED:
        left = lit.committed(name, [0.5, 1.0], 0, n_steps)
        exponent, stays = _exponent(left), float(np.prod(1.0 - left))
        rows.append(
            {"update": label_of(name), "exponent": exponent, "never the other": round(stays, 6)}
        )
        if name in fast:
            worst.add(min(exponent, 1e3) - 10.0, update=name, part="exponent above 10")
            worst.add(stays - 0.1, update=name, part="stays for ever with probability 0.1")
        if name in slow:
            worst.add(0.05 - abs(exponent - 1.0), update=name, part="exponent 1")
            worst.add(0.01 - stays, update=name, part="does not stay")
    return judged(worst, evidence=rows)


@check(
    "lit:baudry2025/regret",
    moved={"the logarithm alone bounds it": {"failure": 0.0}},
)
def check_regret(failure: float = 1.0, n_steps: int = 2000, n_runs: int = 2000) -> Verdict:
    """Try theorem 1 of Baudry et al. (2025) on rewards of plus or minus one.

    Parameters
    ----------
    failure : float
        The share of the second term of the bound.
    n_steps, n_runs : int
        Samples of each run, and runs.

    Returns
    -------
    Verdict
    """
    worst = Worst("the bound minus the mean regret and 4 standard errors")
    for eta, gap in ((0.05, 0.2), (0.1, 0.3), (0.2, 0.5)):
        regret = lit.sampled_regret(eta, gap, n_steps, n_runs)
        error = float(regret.std(ddof=1) / np.sqrt(n_runs))
        logarithm = float(np.log1p(4 * eta * gap * n_steps) / (2 * eta))
        whole = lit.regret_bound(eta, gap, n_steps)
        bound = logarithm + failure * (whole - logarithm)
        sign = 4.0 if failure == 1.0 else -4.0
        worst.add(bound - float(regret.mean()) - sign * error, eta=eta, gap=gap)
    return judged(worst)


@check(
    "lit:mei2024/any-rate",
    moved={"so does NPG at such rates": {"natural": True}},
)
def check_any_rate(natural: bool = False, n_steps: int = 10_000, n_runs: int = 100) -> Verdict:
    """Run the stochastic gradient bandit on four arms, rewards without noise, at large rates.

    Parameters
    ----------
    natural : bool
        Whether natural gradient is run in its place.
    n_steps, n_runs : int
        Samples of each run, and runs.

    Returns
    -------
    Verdict
    """
    worst, rows = Worst("the room"), []
    for eta in (1.0, 10.0):
        rng, shares = np.random.default_rng(11), []
        rewards, theta = np.array([0.1, 0.3, 0.5, 0.9]), np.zeros((n_runs, 4))
        for t in range(n_steps):
            if t == n_steps // 20:
                shares.append(float(np.mean(softmax(theta)[:, 3] > 0.9)))
            pi = softmax(theta)
            drawn = (pi.cumsum(axis=1) > rng.random((n_runs, 1))).argmax(axis=1)
            taken = np.eye(4)[drawn]
            if natural:
                own = np.sum(pi * taken, axis=1, keepdims=True)
                theta = theta + eta * taken * rewards / np.maximum(own, 1e-300)
                theta = theta - theta.max(axis=1, keepdims=True)
            else:
                theta = theta + eta * (taken - pi) * rewards[drawn][:, np.newaxis]
        shares.append(float(np.mean(softmax(theta)[:, 3] > 0.9)))
        rows.append({"rate": eta, "early": shares[0], "at the end": shares[1]})
        leave = shares[1] - shares[0] - 0.04
        worst.add(max(shares[1] - 0.95, leave), eta=eta, part="at the best arm, or still coming")
    return judged(worst, evidence=rows)


def _unseen(seed: int) -> FiniteMDP:
    """Return a random process that starts in the first of its five states only."""
    full = bounded_mdp(seed)
    return FiniteMDP(full.transitions, full.rewards, np.eye(5)[0], full.discount)


@check(
    "lit:zhang2022/off-policy",
    moved={"with a pull that does not decay": {"decay": 0.0}},
)
def check_off_policy(decay: float = 0.12, n_processes: int = 2, n_steps: int = 1500) -> Verdict:
    """Follow the mean step of the off-policy actor, with states weighted by a behaviour's visits.

    Parameters
    ----------
    decay : float
        The pull towards the uniform policy falls like this power of the time.
    n_processes, n_steps : int
        Random processes, and updates of each run.

    Returns
    -------
    Verdict
    """
    worst = Worst("0.9 times the gap after a tenth of the run minus the gap at its end")
    for seed in range(n_processes):
        mdp, theta, gaps = _unseen(seed), np.zeros((5, 3)), []
        behaviour = mdp.evaluate(np.full((5, 3), 1.0 / 3.0)).occupancy * (1.0 - mdp.discount)
        for t in range(n_steps):
            evaluation = mdp.evaluate(softmax(theta))
            gaps.append(float(np.max(mdp.optimal().v - evaluation.v)))
            theta = lit.visited_step(theta, evaluation.q, behaviour, 20.0, 0.1 * (t + 1) ** -decay)
        worst.add(0.9 * gaps[n_steps // 10] - gaps[-1], process=seed, gap=gaps[-1])
    return judged(worst)
