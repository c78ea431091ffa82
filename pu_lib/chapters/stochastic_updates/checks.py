"""The checks of the chapter on stochastic updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product

import numpy as np
from numpy.typing import ArrayLike

from pu_lib.chapters.gravity_well.quantities import parameters
from pu_lib.chapters.stochastic_updates.quantities import (
    GAMBLE,
    THREE,
    Floats,
    Law,
    Schedule,
    bias,
    ce_limit,
    escort_growth,
    escort_threshold,
    mce_limit,
    mean_step,
    measured_bias,
    power_schedule,
    sample_runs,
    stuck_probability,
    taken_law,
)
from pu_lib.chapters.unlearning.quantities import counts
from pu_lib.exact import Number, exact
from pu_lib.updates import PAPER, Update, as_update
from pu_lib.verdict import Verdict, Worst, check, judged

Updates = Sequence[str | Update]

# The policy gradients: their steps are linear in the values.
_LINEAR = ("pg-sm", "pg-es")

ROUNDING = 1e-13
"""Allowed between two sums of a few numbers of order one."""


@check(
    "sec:expected/pg",
    moved={
        "CE": {"updates": ("ce",)},
        "MCE": {"updates": ("mce",)},
        "DI, near the boundary": {"updates": ("di",)},
    },
)
def check_unbiased(updates: Updates = _LINEAR, n_samples: int = 200_000) -> Verdict:
    """Check that the policy gradients are unbiased under sampled values.

    Exact sums over the outcomes of random laws, and 99.9 % intervals from sampled updates.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates that are to be unbiased.
    n_samples : int
        Sampled updates a law.
    """
    rng = np.random.default_rng(0)
    worst = Worst("what is allowed minus the bias of a parameter step")
    for update in map(as_update, updates):
        for _ in range(200):
            pi, law = rng.dirichlet(np.ones(4)), _random_law(rng, 4)
            largest = float(np.abs(bias(update, parameters(update, pi), law, 1.0)).max())
            worst.add(ROUNDING - largest, update=update.name, how="exact sum", bias=largest)
        theta = parameters(update, [0.5, 0.3, 0.2])
        seen, half = measured_bias(update, theta, THREE, 1.0, n_samples, rng)
        for a in range(3):
            room = float(half[a] - abs(seen[a]))
            worst.add(room, update=update.name, how=f"{n_samples} samples", bias=float(seen[a]))
    return judged(worst)


def _random_law(rng: np.random.Generator, n_actions: int) -> Law:
    return Law(rng.normal(size=(5, n_actions)), rng.dirichlet(np.ones(5)))


@check(
    "sec:expected/symmetric",
    moved={
        "CE": {"updates": ("ce",)},
        "MCE": {"updates": ("mce",)},
        "DI, which meets its wall": {"updates": ("di",)},
    },
)
def check_symmetric(updates: Updates = _LINEAR) -> Verdict:
    """Check that the steps for q and for -q cancel.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates that are to be symmetric.
    """
    rng, worst = np.random.default_rng(1), Worst("1e-13 minus the sum of the two steps")
    for update in map(as_update, updates):
        for _ in range(500):
            theta, q = parameters(update, rng.dirichlet(np.ones(4))), rng.normal(size=4)
            there, back = (update.step(theta, sign * q, 1.0) - theta for sign in (1, -1))
            largest = float(np.abs(there + back).max())
            worst.add(ROUNDING - largest, update=update.name, sum=largest)
    return judged(worst)


@check(
    "sec:expected/asymmetric",
    moved={
        "PG-SM": {"updates": ("pg-sm",)},
        "with three actions and more alone, where it holds as printed": {"two": False},
    },
)
def check_asymmetric(updates: Updates = ("ce", "mce"), two: bool = True) -> Verdict:
    r"""Check that `ce` and `mce` are asymmetric everywhere, but for one policy.

    The `ce` steps for q and -q sum to :math:`w(e_{a_q} + e_{a_{-q}} - 2\pi)`, zero only if
    :math:`\pi` is one half at two actions; a softmax policy is that only with two actions, uniform.
    With three or more the `mce` steps sum to something negative at every other action.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates that are to be asymmetric.
    two : bool
        Whether two actions and the uniform policy are tried, too.
    """
    rng = np.random.default_rng(2)
    unit = "the sum of the steps for q and -q, minus 1e-9,"
    ours, printed = Worst(unit), Worst(unit)
    for update in map(as_update, updates):
        for n_actions in (3, 4, 6):
            theta, q = rng.normal(size=(2, 2000, n_actions))
            both = update.step(theta, q) + update.step(theta, -q) - 2 * theta
            least = float(np.abs(both).max(axis=1).min())
            ours.add(least - 1e-9, update=update.name, actions=n_actions, draws=2000)
        theta = update.initial(1, 2)[0]
        there, back = (update.step(theta, [s, 0.0]) - theta for s in (1.0, -1.0))
        if two:
            both = float(np.abs(there + back).max())
            printed.add(both - 1e-9, update=update.name, actions=2, policy="uniform")
    return judged(ours, printed)


@check(
    "sec:expected/gaps",
    moved={"PG-SM": {"updates": ("pg-sm",)}, "DI": {"updates": ("di",)}},
)
def check_ignores_gaps(updates: Updates = ("ce", "mce")) -> Verdict:
    """Check that the steps for arctan(q) and 1000 q^3, of the same order, are equal exactly.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates that are to ignore the gaps.
    """
    rng, worst = np.random.default_rng(3), Worst("minus the distance of the two steps")
    for update in map(as_update, updates):
        theta, q = parameters(update, rng.dirichlet(np.ones(4), 5000)), rng.normal(size=(5000, 4))
        near, far = (update.step(theta, f(q)) for f in (np.arctan, lambda x: 1e3 * x**3))
        for row in np.abs(near - far).max(axis=1):
            worst.add(0.0 - float(row), update=update.name)
    return judged(worst)


@check(
    "sec:expected/ce",
    moved={
        "the limit of MCE": {"limit": mce_limit},
        "PG-SM, which has no such limit": {"update": "pg-sm"},
    },
)
@check(
    "sec:expected/mce",
    moved={"the limit of CE": {"limit": ce_limit}, "DI, which has no such limit": {"update": "di"}},
    update="mce",
    limit=mce_limit,
)
def check_biased(
    update: str | Update = "ce",
    limit: Callable[[ArrayLike], Floats] = ce_limit,
    n_steps: int = 2000,
) -> Verdict:
    """Check that an update is biased under sampled values, where it goes, and what averages do.

    Parameters
    ----------
    update : str or Update
        The update.
    limit : callable
        Maps the law of the sampled greedy action to the limit of the policy.
    n_steps : int
        Updates a run.
    """
    chosen, worst = as_update(update), Worst("room")
    rows = []
    for label, law in (("two actions", GAMBLE), ("three actions", THREE)):
        runs = sample_runs(chosen, law, power_schedule(), n_steps)
        critic = sample_runs(chosen, law, power_schedule(), n_steps, averaged=True)
        best, target = int(np.argmax(law.mean)), limit(law.greedy)
        uniform = parameters(chosen, np.full(len(target), 1 / len(target)))
        size = float(np.abs(bias(chosen, uniform, law, 1.0)).max())
        # what is left of the start, of order w_T, besides the sampling error
        allowed = runs.interval()[-1].max() + 5 * power_schedule()(n_steps)
        error = float(np.abs(runs.mean[-1] - target).max())
        averaged = float(critic.mean[-1, best])
        worst.add(size - 1e-9, law=label, part="exact bias of a step")
        worst.add(
            allowed - error, law=label, part="what is allowed, minus the distance to the limit"
        )
        worst.add(1 - float(target[best]), law=label, part="1 minus the limit at the best action")
        worst.add(
            averaged - 0.95, law=label, part="the best action with averaged values, minus 0.95"
        )
        rows.append(
            {
                "law": label,
                "exact bias of a step": size,
                "best action": best + 1,
                "its limit": float(target[best]),
                "measured": float(runs.mean[-1, best]),
                "with averaged values": averaged,
            }
        )
    return judged(worst, evidence=rows)


@check(
    "book:sampled-action",
    moved={
        "the first action is the better one": {"rewards": (1, "1/2")},
        "with probability 0.6": {"claimed": Fraction(3, 5)},
    },
    blind={"with probability 0.4: a weaker claim": {"claimed": Fraction(2, 5)}},
)
def check_sampled_action(
    rewards: tuple[Number, Number] = ("1/2", 1), claimed: Fraction = Fraction(1, 2)
) -> Verdict:
    """Check that `di` may get stuck if only the action taken is sampled, weights 1/(t+1).

    Besides, the mean step of `ce` is zero then, whatever the (positive) rewards.

    Parameters
    ----------
    rewards : pair of Number
        Of the two actions; the second one is to be the better one.
    claimed : Fraction
        The probability to end at the first one for ever.
    """
    worst = Worst("the probability to be stuck at the worse action minus the claimed one")
    probability, steps = stuck_probability(rewards, lambda t: Fraction(1, t + 1))
    stuck = probability if exact(rewards[0]) < exact(rewards[1]) else Fraction(0)
    worst.add(float(stuck - claimed), rewards=str(rewards), probability=str(stuck), steps=steps)
    rng = np.random.default_rng(6)
    for _ in range(20):
        pi, paid = rng.dirichlet(np.ones(3)), rng.uniform(1, 9, 3)
        step = float(np.abs(mean_step(as_update("ce"), pi, taken_law(pi, paid))).max())
        worst.add(1e-12 - step, rewards=str(paid.round(2)), probability="mean step of CE", steps=1)
    return judged(worst)


SLOWLY = power_schedule(power=0.75)
"""Robbins-Monro weights."""


@check(
    "sec:expected/di",
    moved={
        "a constant weight 1/2": {"schedule": lambda t: 0.5, "n_steps": 500},
        "unbiased as soon as the policy is inside": {"inside": 1.0},
    },
)
def check_di(schedule: Schedule = SLOWLY, n_steps: int = 4000, inside: float = 50.0) -> Verdict:
    """Check that `di` is biased near the boundary only, and converges with Robbins-Monro weights.

    As printed it would be unbiased inside, and would need the action taken alone to be sampled.

    Parameters
    ----------
    schedule : callable
        The weights.
    n_steps : int
        Updates a run.
    inside : float
        How the policies that are to be unbiased concentrate in the middle (the parameter of a
        symmetric Dirichlet law).
    """
    update, rng = as_update("di"), np.random.default_rng(4)
    ours, printed = Worst("room"), Worst("1e-14 minus the bias")
    for _ in range(200):
        size = float(np.abs(bias(update, rng.dirichlet(np.full(3, inside)), THREE, 0.05)).max())
        ours.add(1e-14 - size, part="1e-14 minus the bias inside")
    for point in ([0.34, 0.33, 0.33], [0.05, 0.05, 0.9], [0.0, 0.05, 0.95]):
        seen, half = measured_bias(update, point, THREE, 0.2, 100_000, rng)
        apart = np.abs(seen - bias(update, point, THREE, 0.2))
        ours.add(float((half - apart).min()) + 1e-12, part=f"interval of the bias at {point}")
    outside = float(np.abs(bias(update, [0.0, 0.05, 0.95], THREE, 0.2)).max())
    ours.add(outside - 1e-3, part="the bias at the boundary, minus 1e-3")
    for law in (GAMBLE, THREE):
        last = sample_runs(update, law, schedule, n_steps).policies[-1]
        least = float(last[:, np.argmax(law.mean)].min())
        ours.add(least - 0.9, part="the best action in the worst of 100 runs, minus 0.9")
    near = [0.05, 0.05, 0.9]
    size = float(np.abs(bias(update, near, THREE, 0.2)).max())
    printed.add(1e-14 - size, policy=str(near), weight=0.2)
    return judged(ours, printed)


# Constant weights


def _least(update: Update, law: Law, weight: float, n_steps: int, n_runs: int = 100) -> float:
    """Return the probability of the second action at the end of the worst run."""
    runs = sample_runs(update, law, lambda _: weight, n_steps, n_runs)
    return float(runs.policies[-1][:, 1].min())


@check(
    "book:constant-rate/pg-sm",
    moved={
        "CE in place of PG-SM": {"update": "ce", "n_steps": 400},
        "DI in place of PG-SM": {"update": "di", "n_steps": 400},
    },
)
def check_constant_softmax(
    update: str | Update = "pg-sm",
    weights: Sequence[float] = (0.05, 0.1, 0.2, 0.5, 1.0),
    n_steps: int = 4000,
) -> Verdict:
    """Check that PG-SM finds the better action from samples at every constant weight tried.

    Parameters
    ----------
    update : str or Update
        The update.
    weights : sequence of float
        The constant weights.
    n_steps : int
        Updates a run; 100 runs a weight.
    """
    chosen, worst = (
        as_update(update),
        Worst("the probability of the better action in the worst run minus 0.9"),
    )
    for weight in weights:
        worst.add(_least(chosen, GAMBLE, weight, n_steps) - 0.9, update=chosen.name, weight=weight)
    return judged(worst)


LAWS = (
    GAMBLE,
    Law.of((0.6, (0.0, 1.0)), (0.4, (1.0, 0.0))),
    Law.of((0.9, (1, 1.3)), (0.1, (1, 0))),
)
"""Laws with two actions, the second one better; of the last two, it mostly looks better."""


@check(
    "book:constant-rate/pg-es",
    moved={
        "at four times the threshold": {"shares": (4.0,), "n_steps": 1000, "laws": LAWS[:1]},
        "CE in place of PG-ES": {"update": "ce", "n_steps": 500, "laws": LAWS[:1]},
        "a mean logarithm of twice the size": {"slope": 2.0, "n_steps": 2000, "laws": LAWS[2:]},
    },
    blind={"up to 0.6 of the threshold: a weaker claim": {"shares": (0.6,), "laws": LAWS[:1]}},
)
def check_constant_escort(
    update: str | Update = "pg-es",
    shares: Sequence[float] = (0.3, 0.9),
    n_steps: int = 4000,
    slope: float = 1.0,
    laws: Sequence[Law] = LAWS,
) -> Verdict:
    r"""Check that PG-ES, p = 2, finds the better action from samples below its threshold.

    The inequality of the proof, on a grid: the mean change of :math:`\log|\theta_2/\theta_1|` is
    at least k times its slope at the first k. Then runs, at shares of `escort_threshold`.

    Parameters
    ----------
    update : str or Update
        The update that runs.
    shares : sequence of float
        Weights, as shares of the threshold.
    n_steps : int
        Updates a run; 100 runs a weight and law.
    slope : float
        Multiplies the lower bound on the mean change.
    laws : sequence of Law
        The laws of the samples.
    """
    chosen, worst = as_update(update), Worst("room")
    second = np.linspace(0.0, 1.0, 41)
    for i, law in enumerate(laws):
        limit = escort_threshold(law)  # equal to the first k, the squared radius being 2
        for share in shares:
            first, where = share * limit, {"law": i + 1, "share": share, "weight": share * limit}
            least = _least(chosen, law, first, n_steps)
            worst.add(least - 0.9, **where, part="the better action in the worst run, minus 0.9")
            if share < 1:
                k = first * np.linspace(0.02, 1.0, 25)[:, np.newaxis]
                floor = slope * k * escort_growth(law, first, 0.0) / first
                room = float((escort_growth(law, k, second) - floor).min())
                worst.add(room + 1e-15, **where, part="the mean logarithm, minus its lower bound")
    return judged(worst)


@check(
    "sec:expected/necessary",
    moved={
        "PG-SM needs expected values, too": {"needing": ("pg-sm",), "without": ()},
        "only for DI, CE and MCE, as corrected": {"without": ()},
    },
)
def check_necessary(
    needing: Updates = tuple(name for name in PAPER if name not in _LINEAR),
    without: Updates = _LINEAR,
    weights: Sequence[float] = (0.05, 0.1),
    n_steps: int = 1500,
) -> Verdict:
    """Check which updates need expected values for a constant rate: all, as printed.

    Parameters
    ----------
    needing : sequence of str or Update
        The updates that fail on samples at every weight.
    without : sequence of str or Update
        Those that do not.
    weights : sequence of float
        Constant weights; below PG-ES's threshold on this law.
    n_steps : int
        Updates a run; 100 runs a weight.
    """
    unit = "0.9 minus the probability of the better action in the worst run"
    ours, printed = Worst(unit), Worst(unit)
    for updates, worst in ((needing, ours), (without, printed)):
        for update in map(as_update, updates):
            for weight in weights:
                least = _least(update, GAMBLE, weight, n_steps)
                worst.add(0.9 - least, update=update.name, weight=weight, worst_run=least)
    return judged(ours, printed if printed.count else None)


@check(
    "sec:symmetry/argument",
    moved={
        "decaying weights in place of constant ones": {"schedule": "inverse-sqrt"},
        "constant weights save every update nine tenths": {"factor": 10.0},
    },
)
def check_argument(schedule: str = "constant", factor: float = 1.0) -> Verdict:
    """Check that every update recovers sooner at constant weights than at decaying ones.

    A weight is the product of the learning rate and the state's share d of the updates: a rate kept
    constant by expected updates, and a d kept up by off-policy updates, together keep it constant.

    Parameters
    ----------
    schedule : {"constant", "inverse-sqrt"}
        The weights that are to recover sooner than those that decay.
    factor : float
        How many times as many updates the decaying weights are to need, at least.
    """
    worst = Worst(
        "the number of updates under decaying weights minus one more than that under constant ones"
    )
    ns, etas = (10, 100, 1000), ("0.1", "0.5", "1")
    for name, eta in product(PAPER, etas):
        fast, slow = (counts(ns, name, eta, kind) for kind in (schedule, "inverse-sqrt"))
        for n, few, many in zip(ns, fast, slow, strict=True):
            where = {"update": name, "eta": eta, "n": n, "constant": few, "decaying": many}
            worst.add(many - factor * few - 1, **where)
    return judged(worst)
