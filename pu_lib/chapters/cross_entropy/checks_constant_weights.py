"""The checks on CE with weights that are constant in time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pu_lib.chapters.cross_entropy.constant_weights import (
    Constants,
    Course,
    Floats,
    chatter,
    constants,
    excess_bound,
    excess_entropy,
    late_fall,
    log_softmax,
    potential,
    run_constant,
    start_account,
)
from pu_lib.chapters.cross_entropy.cycles import THREE_STATES
from pu_lib.chapters.cross_entropy.quantities import late_run
from pu_lib.deterministic import DeterministicMDP, run_process
from pu_lib.updates import UPDATES
from pu_lib.verdict import Verdict, Worst, check, judged

ROUNDING = 1e-9
"""What both sides of an identity may differ by, relative to the numbers in it."""


@check(
    "sec:conv/ce-constant/balance",
    moved={
        "weights that alternate between w and 2w": {"factors": (1.0, 2.0)},
        "the probability before the update in place of the one after it": {"after": False},
        "a start that can pay nothing": {"account": 0.0},
        "a bound with e^-w in place of e^(-w/2)": {"rate": 1.0},
    },
    blind={
        "a bound with e^(-0.6 w): the proof gives away a little": {"rate": 0.6},
    },
)
def check_balance(
    factors: Sequence[float] = (1.0,),
    after: bool = True,
    account: float = 1.0,
    rate: float = 0.5,
    n_runs: int = 50,
    n_steps: int = 200,
    seed: int = 0,
) -> Verdict:
    """Draw up the balance of CE at one state, with greedy actions chosen by an adversary.

    One is drawn in one step of five, so that actions become nearly certain in between.

    Parameters
    ----------
    factors : sequence of float
        By what the weight of each step is multiplied, in turn; a single one in the lemma.
    after : bool
        Whether the greedy action's probability after the update is meant, as in the lemma.
    account : float
        What the start can pay, as a multiple of the lemma's amount.
    rate : float
        The one half in the bound of the excess entropy.
    n_runs, n_steps : int
        How many runs for each number of actions, and their length.
    seed : int
        Of the starts, the weights and the adversary.
    """
    rng = np.random.default_rng(seed)
    ours = Worst("1e-9 minus the relative difference of the two sides")
    for n_actions in (2, 3, 5):
        for words, weight, room in _balance(
            rng, (n_runs, n_actions), n_steps, factors, after, account
        ):
            ours.add(min(ROUNDING, room), part=words, actions=n_actions, weight=weight)
        room, weight = _least_bound(n_actions, rate)
        words = "the bound of the excess entropy"
        ours.add(min(ROUNDING, room), part=words, actions=n_actions, weight=weight)
    return judged(ours)


def _balance(
    rng: np.random.Generator,
    shape: tuple[int, int],
    n_steps: int,
    factors: Sequence[float],
    after: bool,
    account: float,
) -> list[tuple[str, float, float]]:
    """Return the least rooms of the balance over some runs, with the weights they are met at."""
    n_runs, n_actions = shape
    weight = 10.0 ** rng.uniform(-1.5, 1.5, n_runs)
    start = weight[:, None] ** 0.5 * 3.0 * rng.standard_normal(shape)
    theta, owing, excess = start.copy(), np.zeros(n_runs), np.zeros(n_runs)
    rows, greedy = np.arange(n_runs), np.zeros(n_runs, dtype=np.int64)
    for t in range(n_steps):
        anew = rng.random(n_runs) < 0.2
        greedy = np.where(anew, rng.integers(n_actions, size=n_runs), greedy)
        w = weight * factors[t % len(factors)]
        new = UPDATES["ce"].step(theta, np.eye(n_actions)[greedy], w)
        excess += excess_entropy(theta, w)
        owing -= log_softmax(new if after else theta)[rows, greedy]
        theta = new
    paid = (potential(start, weight) - potential(theta, weight)) / weight
    funds = start_account(start, weight)
    rooms = {
        "both sides are equal": ROUNDING - np.abs(owing - excess - paid) / (1.0 + owing + funds),
        "what the start can pay": account * funds + excess - owing,
    }
    return [(words, float(weight[r.argmin()]), float(r.min())) for words, r in rooms.items()]


def _least_bound(n_actions: int, rate: float) -> tuple[float, float]:
    """Return the least of bound over excess entropy, less one, and the weight it is met at.

    The policies have k equally rare actions and share the rest among the others: the stationary
    points of the excess entropy under the constraint have at most two different probabilities.
    """
    weights = np.linspace(0.1, 12.0, 120)
    rare = np.logspace(-8, -1e-9, 400)
    rooms = []
    for k in range(1, n_actions):
        pi = np.empty((len(rare), n_actions))
        pi[:, :k] = rare[:, None] / k
        pi[:, k:] = np.maximum(1.0 - rare[:, None], 1e-300) / (n_actions - k)
        for w in weights:
            top = float(excess_entropy(np.log(pi), np.full(len(rare), w)).max())
            if top > 0:
                rooms.append((float(excess_bound(w, n_actions, rate)) / top - 1.0, float(w)))
    return min(rooms)


def _draw(rng: np.random.Generator, n: int, n_states: int, discount: float) -> DeterministicMDP:
    """Draw n MDPs with three actions a state and uniform rewards and successors."""
    shape = (n, n_states, 3)
    return DeterministicMDP(
        rng.uniform(-1.0, 1.0, shape),
        rng.integers(-1, n_states, shape),
        np.full(n_states, 3),
        np.full(n, discount),
    )


def _one(mdps: DeterministicMDP, i: int) -> DeterministicMDP:
    return DeterministicMDP(
        mdps.rewards[i], mdps.successors[i], mdps.n_actions, float(mdps.discount[i])
    )


SIZES = ((3, 0.5), (3, 0.9), (8, 0.9))
"""States and discounts of the MDPs that are drawn."""


@check(
    "sec:conv/ce-constant/excess",
    moved={
        "policy iteration's step without an allowance for what is lacking": {"allowance": 0.0},
        "a lead twenty times as large": {"lead": 20.0},
        "a lead of a thousandth": {"lead": 1e-3},
        "a start that can pay nothing": {"account": 0.0},
    },
    blind={"half of the allowance: the spread is generous": {"allowance": 0.5}},
)
def check_excess(
    allowance: float = 1.0,
    lead: float = 1.0,
    account: float = 1.0,
    n_mdps: int = 8,
    n_steps: int = 100,
    seed: int = 0,
) -> Verdict:
    r"""Evaluate the steps of the proof along runs with small and with large weights.

    Every step must come nearer to the optimum by the discount, up to what the greedy actions lack;
    where a greedy action is not optimal the distance must be at least :math:`\Delta/\gamma`; after
    K + 1 steps in which nobody lacks more than :math:`\varepsilon`, all must be optimal for
    good; and in a run that has not had them the excess entropy must have paid for every window.

    Parameters
    ----------
    allowance : float
        Multiplies :math:`B/(1-\gamma)`.
    lead : float
        Multiplies :math:`\Delta`.
    account : float
        What the start can pay, as a multiple of the lemma's amount.
    n_mdps, n_steps : int
        How many MDPs of each size, and how long the runs.
    seed : int
        Of MDPs, starts and weights.
    """
    ours = Worst("the room of the proof's inequalities")
    for run in _runs(n_mdps, n_steps, seed):
        for i, known in enumerate(run.known):
            course = run.course
            rooms = _rooms(course, i, run.best[i], known, allowance, lead)
            paid = course.excess[:, i].sum(axis=0) - course.owing[:, i].sum(axis=0)
            rooms["the balance"] = float((account * run.start[i] + paid).min())
            where = {"states": len(known.policy), "discount": known.discount, "MDP": i}
            for words, room in rooms.items():
                ours.add(room, part=words, **where)
    return judged(ours)


class _Runs(NamedTuple):
    """Runs on a batch of MDPs, their constants and optima, and what their starts can pay."""

    course: Course
    known: list[Constants]
    best: Floats
    start: Floats


@cache
def _runs(n_mdps: int, n_steps: int, seed: int) -> list[_Runs]:
    """Run CE with small and with large constant weights from bad starts."""
    rng, runs = np.random.default_rng(seed), []
    for n_states, discount in SIZES:
        mdps = _draw(rng, n_mdps, n_states, discount)
        known = [constants(_one(mdps, i)) for i in range(n_mdps)]
        for low, high in ((-1.0, 0.5), (0.5, 2.0)):
            weights = 10.0 ** rng.uniform(low, high, (n_mdps, n_states))
            theta = 2.0 * weights[..., None] * rng.standard_normal(mdps.rewards.shape)
            course = run_constant(mdps, theta, weights, n_steps)
            runs.append(_Runs(course, known, mdps.optimum(400), start_account(theta, weights)))
    return runs


def _rooms(
    course: Course, i: int, best: Floats, known: Constants, allowance: float, lead: float
) -> dict[str, float]:
    """Return the rooms of the proof's inequalities along one run, relative to the spread."""
    far = (best - course.values[:, i]).max(axis=-1) / known.spread
    lacks = (-np.expm1(-course.owing[:, i])).max(axis=-1)
    gamma = known.discount
    step = gamma * far[:-1] + allowance * lacks / (1 - gamma) - far[1:]
    wrong = (course.greedy[:, i] != known.policy).any(axis=-1)
    settled = _after(lacks <= known.slack, known.window + 1)
    rooms = {"a step": float(step.min()) + ROUNDING}
    reach, ahead = gamma * far[:-1], lead * known.lead / known.spread
    if wrong.any():
        rooms["a greedy action that is not optimal"] = float(reach[wrong].min()) - ahead
    if settled.any():
        rooms["after K + 1 good steps"] = float(ahead - reach[settled].max())
    return rooms


def _after(good: NDArray[np.bool_], n: int) -> NDArray[np.bool_]:
    """Say of each step whether n good ones in a row lie before it."""
    runs, row = np.zeros(len(good), dtype=bool), 0
    for t, fine in enumerate(good[:-1]):
        row = row + 1 if fine else 0
        runs[t + 1] = runs[t] or row >= n
    return runs


@check(
    "sec:conv/ce-constant/large-weights",
    moved={
        "the weights of the cycle, which vary": {"varying": True},
        "after one update in two hundred": {"n_steps": 20},
    },
    blind={"half of the threshold: it is not where failures begin": {"fraction": 0.5}},
)
def check_large_weights(
    fraction: float = 1.0,
    varying: bool = False,
    n_steps: int = 4_000,
    n_mdps: int = 4,
    seed: int = 0,
) -> Verdict:
    """Attack CE with constant weights above the threshold: every run must end at the optimum.

    The starts are bad ones: Gaussian with a scale of up to three times the weights.

    Parameters
    ----------
    fraction : float
        Of the threshold; 1 in the theorem.
    varying : bool
        Whether to run the cycle with its own weights as well, which vary in time.
    n_steps, n_mdps : int
        How long the runs are, and how many for each size.
    seed : int
        Of MDPs, starts and weights.
    """
    rng = np.random.default_rng(seed)
    ours = Worst(f"{NEAR:g} less the late distance to the optimum, relative to the spread,")
    for n_states, discount in SIZES:
        mdps = _draw(rng, n_mdps, n_states, discount)
        for i in range(n_mdps):
            mdp = _one(mdps, i)
            known = constants(mdp)
            weights = fraction * known.threshold * rng.uniform(1.0, 1.5, (1, n_states))
            scale = weights[0][:, None] * rng.uniform(0.0, 3.0)
            theta = scale * rng.standard_normal(mdp.rewards.shape)
            late = late_run(mdp, weights, theta, n_steps).shortfall.max() / known.spread
            ours.add(NEAR - float(late), states=n_states, discount=discount, MDP=i)
    if varying:
        cycle = THREE_STATES.with_spread("1/5")
        run = late_run(cycle.tables, cycle.weights, cycle.parameters(), n_steps // 8)
        ours.add(NEAR - float(run.shortfall.max()), states=3, discount=0.9, MDP="the cycle's")
    return judged(ours)


NEAR = 1e-4
"""How far from the optimum a run may still be in its last tenth."""


@check(
    "sec:conv/ce-constant/late-fall",
    moved={
        "falls of more than the range of the rewards": {"least": 1.0},
        "MCE in place of CE": {"update": "mce"},
        "two falls": {"falls": 2},
    },
)
def check_late_fall(
    horizons: Sequence[int] = (1_000, 30_000, 250_000),
    least: float = 0.9,
    falls: int = 1,
    update: str = "ce",
) -> Verdict:
    """Replay runs built by hand that fall late, to twice the time of their fall.

    Parameters
    ----------
    horizons : sequence of int
        When to fall, about.
    least : float
        What the fall must be worth at least, as a part of the range of the rewards.
    falls : int
        How many such falls there must be.
    update : str
        The update.
    """
    ours = Worst("the fall minus what it must be, in units of the range of the rewards")
    for horizon in horizons:
        mdp, theta, weights = late_fall(horizon)
        value = run_process(mdp, update, theta, weights, 2 * horizon).values[:, 0]
        below = np.maximum.accumulate(value) - value
        deep = below >= least * np.ptp(mdp.rewards[mdp.real])
        begins = np.flatnonzero(np.diff(deep.astype(int)) == 1) + 1
        when = int(below.argmax())
        room = float(below.max() / np.ptp(mdp.rewards[mdp.real])) - least
        on_time = 0.5 * horizon < when < 1.5 * horizon and below[-1] <= 0
        ours.add(room if len(begins) == falls and on_time else -1.0, horizon=horizon, when=when)
    return judged(ours)


@check(
    "sec:conv/ce-constant/chatter",
    moved={
        "one of the two actions pays a hundredth more": {"extra": 0.01},
        "falls that shrink with the square of the time": {"power": 2.0},
        "the greedy action changes at every other step": {"share": 0.5},
    },
)
def check_chatter(
    extra: float = 0.0, share: float = 0.3, power: float = 1.0, n_steps: int = 500_000
) -> Verdict:
    """Follow a run that chatters between two optimal actions.

    In the second half of each horizon the greedy action must go on changing, the policy stay
    mixed, and the values fall by no more than 30 over the horizon.

    Parameters
    ----------
    extra : float
        What one of the two actions pays more; 0 for the tie.
    share : float
        In how many of the steps the greedy action must change, at least.
    power : float
        Of the horizon that bounds the falls; 1 in the claim.
    n_steps : int
        The longest horizon.
    """
    mdp, theta, weights = chatter(extra)
    run = run_process(mdp, "ce", theta, weights, n_steps)
    ours, shown = Worst("the room of the share of changes, of the falls and of the mixture"), []
    for horizon in (n_steps // 500, n_steps // 50, n_steps // 5, n_steps):
        half = slice(horizon // 2, horizon)
        changes = float((np.diff(run.greedy[half, 2]) != 0).mean())
        value = run.values[half]
        fall = float((np.maximum.accumulate(value) - value).max())
        ours.add(changes - share, part="changes", horizon=horizon)
        ours.add((30.0 / horizon**power - fall) * horizon / 30.0, part="falls", horizon=horizon)
        shown.append({"horizon": horizon, "share of changes": changes, "largest fall": fall})
    mixed = float(excess_entropy(run.theta[2], np.array(1.0)))
    ours.add(mixed - 0.1, part="mixture", horizon=n_steps)
    return judged(ours, evidence=shown)
