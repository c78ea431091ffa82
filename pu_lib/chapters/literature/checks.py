"""The checks of the chapter on the literature: what others proved, tried here.

A bound is tried over processes, updates and steps; where only the order of a rate is stated, the
constant is measured on one stretch of a run and held against the next one. The ladder and the
samples stand in `pu_lib.chapters.literature.checks_measured`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.literature import checks_measured as literature_measured
from pu_lib.chapters.literature.quantities import greedy_sample_step, linear_natural, linear_softmax
from pu_lib.chapters.what_came_after import mirror_descent as md
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import as_update, make_update, softmax
from pu_lib.verdict import Verdict, Worst, check, judged

__all__ = ["literature_measured"]

ROUNDING = 1e-9
ETAS = (0.1, 1.0, 10.0)


def _lacking(mdp: FiniteMDP, name: str, etas: Floats) -> tuple[Floats, Floats]:
    """Return what the performance lacks at each step of mirror descent, and the first policy."""
    path = run(mdp, name, len(etas), etas, "uniform")
    return mdp.optimal().performance - path.performance, path.policies[0]


def _tried(n_processes: int, sizes: Sequence[float]) -> Iterator[tuple[int, FiniteMDP, str, float]]:
    """Yield random processes, each with every divergence and every size of steps."""
    for seed in range(n_processes):
        mdp = md.bounded_mdp(seed)
        for name, size in product(md.DIVERGENCES, sizes):
            yield seed, mdp, name, size


@check(
    "lit:xiao2022/constant",
    moved={"at the rate 1/k^2": {"power": 2.0}},
)
def check_constant(power: float = 1.0, n_processes: int = 4, n_steps: int = 40) -> Verdict:
    """Try theorem 8 of Xiao (2022): constant steps, any size, and a bound of order 1/k.

    Parameters
    ----------
    power : float
        The power of k + 1 in the bound.
    n_processes, n_steps : int
        Random processes, and updates of each run.

    Returns
    -------
    Verdict
    """
    worst = Worst("the bound over what is lacking, minus 1,")
    for seed, mdp, name, eta in _tried(n_processes, ETAS):
        gaps, first = _lacking(mdp, name, np.full(n_steps, eta))
        for k, gap in enumerate(gaps):
            bound = md.constant_bound(mdp, name, first, eta, k) * (k + 1) ** (1.0 - power)
            worst.add(_excess(bound, gap), process=seed, update=name, eta=eta, k=k)
    return judged(worst)


def _excess(bound: float, gap: float) -> float:
    """Return by which part a bound exceeds what it bounds; nothing is lacking below rounding."""
    return bound / gap - 1.0 if gap > 1e-12 else float("inf")


@check(
    "lit:xiao2022/geometric",
    moved={
        "at twice the rate": {"power": 2.0},
        "without the divergence at the start": {"start": 0.0},
    },
)
def check_geometric(
    power: float = 1.0, start: float = 1.0, n_processes: int = 3, n_steps: int = 30
) -> Verdict:
    """Try theorem 10 of Xiao (2022): steps that grow by 1 / discount, and a linear rate.

    Parameters
    ----------
    power : float
        The rate is taken to this power.
    start : float
        The share of the divergence at the start in the bound.
    n_processes, n_steps : int
        Random processes, and updates of each run.

    Returns
    -------
    Verdict
    """
    worst = Worst("the bound over what is lacking, minus 1,")
    for seed, mdp, name, eta in _tried(n_processes, (0.01, *ETAS)):
        growth = mdp.discount ** -np.arange(n_steps, dtype=np.float64)
        gaps, first = _lacking(mdp, name, eta * growth)
        whole = md.geometric_bound(mdp, name, first, eta, 0)
        for k, gap in enumerate(gaps):
            rate = md.geometric_bound(mdp, name, first, eta, k) / whole
            bound = (gaps[0] + start * (whole - gaps[0])) * rate**power
            worst.add(_excess(bound, gap) + ROUNDING, process=seed, update=name, eta=eta, k=k)
    return judged(worst)


@check(
    "lit:johnson2023/adaptive",
    moved={"at the fourth power of the rate": {"power": 4.0}},
    blind={
        "at twice the rate (random processes are kinder than the worst one)": {"power": 2.0},
    },
)
def check_adaptive(power: float = 1.0, n_processes: int = 6, n_steps: int = 15) -> Verdict:
    """Try the adaptive steps of Johnson et al. (2023): the rate of policy iteration.

    Parameters
    ----------
    power : float
        The discount, which is the rate, is taken to this power.
    n_processes, n_steps : int
        Random processes, and updates of each run.

    Returns
    -------
    Verdict
    """
    worst = Worst("the bound over the distance of the values, minus 1,")
    for seed, mdp, name, first in _tried(n_processes, (0.01, 1.0, 100.0)):
        gaps = md.adaptive_run(mdp, name, n_steps, first)
        slack = md.adaptive_bound(gaps[0], mdp.discount, 0, first)
        for k, gap in enumerate(gaps):
            bound = slack * mdp.discount ** (power * k)
            worst.add(_excess(bound, gap), process=seed, update=name, first=first, k=k)
    return judged(worst)


def _narrow(gap: float) -> FiniteMDP:
    """Return one state with two actions, whose rewards differ by the gap."""
    return FiniteMDP(np.ones((1, 2, 1)), [[0.5 + gap, 0.5]], [1.0], 0.5)


@check(
    "lit:liu2025/finite",
    moved={"a number that does not depend on the gap": {"gap": 1.0}},
    blind={"half as many updates (the bound is far from tight)": {"share": 0.5}},
)
def check_finite(gap: float | None = None, share: float = 1.0) -> Verdict:
    """Try theorems 21 and 22 of Liu et al. (2025): the projected gradient is done in finite time.

    Parameters
    ----------
    gap : float, optional
        What stands in the bound in place of the gap of the narrow process.
    share : float
        The part of the bound that is allowed.

    Returns
    -------
    Verdict
    """
    worst, rows = Worst("the bound over the number of updates, minus 1,"), []
    processes = {f"random {seed}": md.bounded_mdp(seed) for seed in range(3)}
    for name, mdp in {**processes, "gap 0.01": _narrow(0.01)}.items():
        for visits in (False, True):
            for eta in (0.3, 1.0, 10.0):
                took = md.steps_to_finish(mdp, eta, visits)
                like = _narrow(gap) if gap and name == "gap 0.01" else mdp
                bound = share * md.finite_bound(like, eta, visits)
                worst.add(bound / max(took, 1) - 1.0, process=name, visits=visits, eta=eta)
                rows.append(
                    {"process": name, "visits": visits, "eta": eta, "took": took, "bound": bound}
                )
    return judged(worst, evidence=rows)


def _thirds(mdp: FiniteMDP, name: str, eta: float, n: int) -> float:
    """Return three times the gap after 3n steps over that after n, which a rate 1/k makes one."""
    gaps = mdp.optimal().performance - run(mdp, name, 3 * n, eta, "occupancy").performance
    return float(3.0 * gaps[3 * n] / gaps[n]) if gaps[n] > 1e-12 else 0.0


@check(
    "lit:liu2024/rates",
    moved={
        "PG-SM is linear, too": {"linear": ("pg-sm",)},
        "NPG is no faster than 1/k": {"sublinear": ("npg",)},
    },
)
def check_rates(
    sublinear: tuple[str, ...] = ("pg-sm",), linear: tuple[str, ...] = ("npg",), n: int = 60
) -> Verdict:
    """Try the rates of Liu, Li and Wei (2024) for constant steps of several sizes.

    Over the last two thirds of a run a rate 1/k leaves a third of the gap, within a factor of two;
    a linear one leaves less than a tenth of what 1/k would.

    Parameters
    ----------
    sublinear, linear : tuple of str
        The updates with either rate.
    n : int
        A third of the updates of each run.

    Returns
    -------
    Verdict
    """
    worst = Worst("the room")
    for seed in range(2):
        mdp = md.bounded_mdp(seed, 3, 3, 0.6)
        for eta in (1.0, 10.0, 100.0):
            for name in sublinear:
                left = _thirds(mdp, name, eta, n)
                worst.add(min(2.0 - left, left - 0.5), process=seed, update=name, eta=eta)
            for name in linear:
                worst.add(0.1 - _thirds(mdp, name, eta, n), process=seed, update=name, eta=eta)
    return judged(worst)


@check(
    "lit:hadamard2023/kinship",
    moved={"at p = 4": {"p": 4.0}, "the factor dropped": {"factor": "drop"}},
)
def check_hadamard(p: float = 2.0, factor: str = "keep", n_points: int = 50) -> Verdict:
    """Compare the escort step with the gradient on the sphere of the squared coordinates.

    Parameters
    ----------
    p : float
        The exponent of the escort transform.
    factor : {"keep", "drop"}
        As for the update.
    n_points : int
        Random points of the sphere, with random values and weights.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(3), Worst("1e-12 minus the distance of the two steps")
    update = make_update("pg-es", p=p, factor=factor)
    for i in range(n_points):
        x, q, weight = rng.normal(size=4), rng.normal(size=4), float(rng.uniform(0.1, 2.0))
        x /= np.linalg.norm(x)
        gradient = 2.0 * x * q  # of the sum of x^2 q
        tangent = gradient - x * (x @ gradient)
        distance = np.max(np.abs(update.step(x, q, weight) - (x + weight * tangent)))
        worst.add(1e-12 - float(distance), point=i)
    return judged(worst)


def _arms(n: int) -> list[tuple[Floats, Floats]]:
    """Return bandits with two features and a best action that stands out, in both senses."""
    rng = np.random.default_rng(7)
    found: list[tuple[Floats, Floats]] = []
    while len(found) < n:
        features, rewards = rng.normal(size=(4, 2)), rng.random(4)
        seen = features @ np.linalg.lstsq(features, rewards, rcond=None)[0]
        if min(np.diff(np.sort(rewards))[-1], np.diff(np.sort(seen))[-1]) > 0.05:
            found.append((features, rewards))
    return found


@check(
    "lit:mei2023/linear",
    moved={
        "softmax policy gradient has the same criterion": {"softmax_too": True},
        "where the rewards are fitted to within half of their spread": {"by_error": True},
    },
)
def check_linear(softmax_too: bool = False, by_error: bool = False, n: int = 16) -> Verdict:
    """Try the criterion of Mei et al. (2023) for natural gradient with linear scores.

    Parameters
    ----------
    softmax_too : bool
        Whether softmax policy gradient is claimed to follow it.
    by_error : bool
        Whether the criterion is the error of the fit instead.
    n : int
        Random bandits of four arms.

    Returns
    -------
    Verdict
    """
    worst, apart = Worst("the room"), 0
    for i, (features, rewards) in enumerate(_arms(n)):
        best = int(np.argmax(rewards))
        seen = features @ np.linalg.lstsq(features, rewards, rcond=None)[0]
        arrives = int(np.argmax(seen)) == best
        if by_error:
            arrives = bool(np.linalg.norm(seen - rewards) < 0.5 * np.ptp(rewards))
        natural = float(linear_natural(features, rewards, 50.0, 200)[best])
        plain = float(linear_softmax(features, rewards, 10.0, 1000)[best])
        apart += (natural > 0.5) != (plain > 0.5)
        probability = min(natural, plain) if softmax_too and arrives else natural
        if softmax_too and not arrives:
            probability = max(natural, plain)
        worst.add((probability - 0.5) * (1 if arrives else -1), bandit=i, arrives=arrives)
    worst.add(apart - 0.5, part="bandits on which the two end apart, minus 1/2")
    return judged(worst)


@check(
    "lit:neumann2023/greedy",
    moved={
        "one draw is enough": {"n_samples": 1},
        "also where the proposal leaves the greedy action out": {"blind_spot": True},
    },
)
def check_greedy(n_samples: int = 4000, blind_spot: bool = False, n_points: int = 40) -> Verdict:
    """Compare the mean step towards the best of many draws with that of `ce`.

    Parameters
    ----------
    n_samples : int
        Draws from the proposal.
    blind_spot : bool
        Whether the proposal never draws the greedy action.
    n_points : int
        Random policies, proposals and values.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(5), Worst("1e-6 minus the distance of the two steps")
    for i in range(n_points):
        theta, q = rng.normal(size=4), rng.normal(size=4)
        proposal = 0.02 + rng.dirichlet(np.ones(4)) * 0.92
        if blind_spot:
            proposal[np.argmax(q)] = 0.0
            proposal /= proposal.sum()
        pi = softmax(theta)
        mean = greedy_sample_step(proposal, pi, q, n_samples)
        step = as_update("ce").step(theta, q, 1.0) - theta
        worst.add(1e-6 - float(np.max(np.abs(mean - step))), point=i)
    return judged(worst)
