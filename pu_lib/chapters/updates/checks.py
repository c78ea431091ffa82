r"""The checks of the chapter on updates.

Gradients are compared with complex-step derivatives of the policies, to `ROUNDING`; what is
claimed in the limit of huge or tiny weights has its own tolerance, which its check names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pu_lib.chapters.updates import checks_remarks as updates_remarks
from pu_lib.chapters.updates.quantities import (
    Floats,
    GreedyAlone,
    Network,
    Policy,
    complex_step,
    cross_entropy_leftover,
    direct_greedy_weight,
    escort_gradient,
    escort_of,
    escort_step,
    large_weight_limit,
    middle_line,
    softmax_gradient,
    softmax_of,
    softmax_step,
)
from pu_lib.domains import random_mdp
from pu_lib.trajectories import follow
from pu_lib.updates import Update, advantage, as_update, greedy_mask, make_update, softmax
from pu_lib.verdict import Verdict, Worst, check, judged

__all__ = ["updates_remarks"]
"""Importing this module registers the checks of the other one as well."""

Step = Callable[[Floats, Floats], Floats]

ROUNDING = 1e-12
"""Tolerance of the gradient checks: a few hundred rounding errors on numbers of size one."""

EXPONENTS = (1.0, 1.5, 2.0, 3.0, 4.0)
"""Escort exponents that the checks try."""


def _below(error: Floats | float, tolerance: float = ROUNDING) -> float:
    """Return the tolerance minus the largest modulus in `error`: the margin of an equality."""
    return tolerance - float(np.max(np.abs(error)))


def _unit(what: str, tolerance: float = ROUNDING) -> str:
    return f"{tolerance:g} minus the error of {what}"


def _without_mean(f: Floats, grad_f: Floats) -> Floats:
    """Return a wrong gradient of the softmax policy: without the part of the normaliser."""
    return np.asarray(softmax_of(f) * grad_f)


@check("eq:pg", moved={"d is a distribution, of sum one": {"normalised": True}})
def check_policy_gradient(normalised: bool = False, h: float = 1e-5) -> Verdict:
    r"""Check the policy gradient theorem, :math:`\nabla J = \sum_s d(s)\sum_a q\nabla\pi`, on MDPs.

    Parameters
    ----------
    normalised : bool
        Take :math:`d` as a distribution instead of the discounted occupancy, whose sum is
        :math:`1/(1-\gamma)`; then the formula misses that factor.
    h : float
        Step of the central differences.

    Returns
    -------
    Verdict
        Relative errors; central differences of step 1e-5 leave about 1e-9, the tolerance is 1e-6.
    """
    rng = np.random.default_rng(6)
    worst = Worst(_unit("the formula, relative to central differences of the performance,", 1e-6))
    for i in range(12):
        mdp = random_mdp(rng, n_states=8, n_actions=3, discount=0.9, if_none="last")
        theta = rng.normal(size=(mdp.n_states, mdp.n_actions))
        pi = softmax(theta)
        ev = mdp.evaluate(pi)
        d = ev.occupancy * (1 - mdp.discount if normalised else 1.0)
        formula = d[:, np.newaxis] * pi * advantage(pi, ev.q)
        numeric = np.zeros_like(theta)
        for index in np.ndindex(*theta.shape):
            nudge = np.zeros_like(theta)
            nudge[index] = h
            upper, lower = (mdp.performance(softmax(theta + s * nudge)) for s in (1, -1))
            numeric[index] = (upper - lower) / (2 * h)
        worst.add(_below((numeric - formula) / np.abs(numeric).max(), 1e-6), MDP=i)
    return judged(worst)


@check("eq:softmax_grad", moved={"without the sum over a'": {"formula": _without_mean}})
def check_softmax_gradient(formula: Step = softmax_gradient) -> Verdict:
    """Check the gradient of the softmax policy, for scores that come out of a small network.

    Parameters
    ----------
    formula : callable
        The claimed gradient, from the scores and their gradients.

    Returns
    -------
    Verdict
    """
    rng = np.random.default_rng(1)
    worst = Worst(_unit("the formula"))
    for _ in range(300):
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(softmax_of), theta)
        f = network.scores(theta)
        worst.add(_below(exact - formula(f, network.gradient(theta))), actions=len(f))
    return judged(worst)


@check(
    "eq:escort-grad",
    moved={
        "no signs in the corrected formula": {"signed": False},
        "a factor one per cent too large": {"factor": 1.01},
    },
)
def check_escort_gradient(
    signed: bool = True, factor: float = 1.0, n: int = 300, seed: int = 2
) -> Verdict:
    """Check the gradient of the escort policy, for scores of either sign and p from 1 to 4.

    Parameters
    ----------
    signed : bool
        Whether the corrected formula carries the sign of each score; the printed one does not.
    factor : float
        What the corrected formula is multiplied by.
    n, seed : int
        Number of random networks and points, and the seed they are drawn from.

    Returns
    -------
    Verdict
        Relative errors, since the gradient grows as the norm of the scores shrinks. "holds with a
        correction" if the formula with signs is the gradient and the printed one is not.
    """
    rng = np.random.default_rng(seed)
    ours, printed = Worst(_unit("the formula with signs")), Worst(_unit("the printed formula"))
    for _ in range(n):
        p = float(rng.choice(EXPONENTS))
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(partial(escort_of, p=p)), theta)
        f, gradient = network.scores(theta), network.gradient(theta)
        scale = 1 + np.abs(exact).max()
        claimed = factor * escort_gradient(f, gradient, p, signed)
        ours.add(_below((exact - claimed) / scale), p=p, scores=f.round(3).tolist())
        claimed = escort_gradient(f, gradient, p, signed=False)
        printed.add(_below((exact - claimed) / scale), p=p, scores=f.round(3).tolist())
    return judged(ours, printed)


def _compare_steps(worst: Worst, claimed: Step, policy: Policy, n: int, seed: int) -> None:
    """Note how far a claimed step is from the derivative of sum_a q(a) pi(a), tabular parameters.

    The first case is the smallest one: two uniform actions, values 1 and 0.
    """
    rng = np.random.default_rng(seed)
    cases = [(np.full(2, 0.25), np.array([1.0, 0.0]))]
    cases += [tuple(rng.normal(size=(2, int(rng.integers(2, 7))))) for _ in range(n)]
    for theta, q in cases:
        exact = complex_step(policy, theta) @ q
        error = (exact - claimed(theta, q)) / (1 + np.abs(exact).max())
        worst.add(_below(error), actions=len(q), q=q.round(3).tolist())


def _taken(update: Update, theta: Floats, q: Floats) -> Floats:
    """Return the step of weight one that `update` takes."""
    return np.asarray(update.step(theta, q, 1.0) - theta)


@check(
    "app:softmax",
    moved={
        "the line before it is the step": {"formula": middle_line},
        "the library takes the step of CE": {"update": "ce"},
    },
)
@check(
    "app:softmax/middle-line",
    formula=middle_line,
    moved={"the last line in its place": {"formula": softmax_step}},
)
def check_softmax_step(formula: Step = softmax_step, update: str | Update = "pg-sm") -> Verdict:
    """Check a formula for the tabular step of `pg-sm`, and the library's step.

    Parameters
    ----------
    formula : callable
        The claimed step, from the parameters and the values.
    update : str or Update
        The update whose step of weight one is compared as well.

    Returns
    -------
    Verdict
    """
    worst = Worst(_unit("the step"))
    for claimed in (formula, partial(_taken, as_update(update))):
        _compare_steps(worst, claimed, softmax_of, 500, 3)
    return judged(worst)


@check("app:escort", moved={"no sign in the step": {"signed": False}})
def check_escort_step(signed: bool = True) -> Verdict:
    """Check the tabular step of `pg-es` at parameters of either sign, and the library's step.

    Parameters
    ----------
    signed : bool
        Whether the step carries the sign of the parameter, as the appendix says in words.

    Returns
    -------
    Verdict
    """
    worst = Worst(_unit("the step"))
    for p in EXPONENTS:
        for formula in (
            partial(escort_step, p=p, signed=signed),
            partial(_taken, make_update("pg-es", p=p)),
        ):
            _compare_steps(worst, formula, partial(escort_of, p=p), 500, 4)
    return judged(worst)


@check(
    "eq:di",
    moved={
        "no projection": {"project": False},
        "the step of PG-SM is projected": {"update": "pg-sm"},
    },
)
def check_direct_step(update: str | Update = "di", project: bool = True) -> Verdict:
    r"""Check that a step is the point of the simplex nearest to :math:`\theta + wq`.

    That is decided by the conditions that mark the nearest point :math:`x'` to :math:`x`:
    :math:`x - x'` is one number :math:`\lambda` where :math:`x' > 0`, and at most :math:`\lambda`
    elsewhere.

    Parameters
    ----------
    update : str or Update
        The update; the paper's is `di`.
    project : bool
        Whether :math:`\theta + wq` is projected at all.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(20), Worst(_unit("the projection", 1e-11))
    chosen = as_update(update)
    for _ in range(500):
        k, w = int(rng.integers(2, 7)), float(10 ** rng.uniform(-2, 2))
        theta, q = rng.dirichlet(np.ones(k)), rng.random(k)
        far = theta + w * q
        near = chosen.policy(chosen.step(chosen.parameters(theta), q, w)) if project else far
        removed = far - near
        shift = removed[near > 0].max()
        on_simplex = abs(near.sum() - 1) + max(-near.min(), 0.0)
        nearest = np.where(near > 0, removed - shift, np.maximum(removed - shift, 0.0))
        worst.add(_below(np.append(nearest, on_simplex), 1e-11), actions=k, weight=w)
    return judged(worst)


@check("eq:ce2", moved={"MCE is the gradient of the cross-entropy": {"update": "mce"}})
def check_cross_entropy_gradient(update: str | Update = "ce") -> Verdict:
    r"""Check that the two equations of `ce` agree: the step is :math:`w\nabla\log\pi(a_q)`.

    Parameters
    ----------
    update : str or Update
        The update whose step is compared with the gradient.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(5), Worst(_unit("the step"))
    chosen = as_update(update)
    for _ in range(500):
        k = int(rng.integers(2, 7))
        theta, q, w = rng.normal(size=k), rng.normal(size=k), float(rng.uniform(0.1, 3))
        gradient = complex_step(lambda x: np.log(softmax_of(x)), theta)[:, np.argmax(q)]
        worst.add(_below(chosen.step(theta, q, w) - theta - w * gradient), actions=k)
    return judged(worst)


@check(
    "sec:mce/sum",
    updates=("mce",),
    moved={
        "PG-ES keeps the sum": {"updates": ("pg-es",)},
        "MCE that moves the greedy action alone keeps it": {"updates": (GreedyAlone(),)},
    },
    blind={
        "CE and PG-SM in MCE's place: they keep the sum too": {"updates": ("ce", "pg-sm")},
    },
)
def check_conserved_sum(updates: Sequence[str | Update] = ("mce",), steps: int = 50) -> Verdict:
    r"""Check that :math:`\sum_a\theta_a` stays constant.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates to follow; not `di`, whose parameters are a policy.
    steps : int
        Number of updates of each of 200 random states (weights 1e-3 to 1e3).

    Returns
    -------
    Verdict
        The drift is relative to the total length of the steps taken.
    """
    worst = Worst(f"{ROUNDING:g} minus the drift of the sum, relative to the length travelled,")
    for update in map(as_update, updates):
        rng = np.random.default_rng(7)
        theta = rng.normal(size=(200, 4))
        total, length = theta.sum(axis=-1), np.zeros(200)
        for _ in range(steps):
            w = 10.0 ** rng.uniform(-3, 3, size=200)
            new = update.step(theta, rng.normal(size=(200, 4)), w)
            length += np.abs(new - theta).sum(axis=-1)
            theta = new
        drift = (theta.sum(axis=-1) - total) / (1 + length)
        worst.add(_below(drift), update=update.name)
    return judged(worst)


@check(
    "sec:mce/diverge",
    moved={"MCE that moves the greedy action alone": {"update": GreedyAlone()}},
    blind={"CE in MCE's place: it keeps the sum too": {"update": "ce"}},
)
def check_no_artificial_divergence(update: str | Update = "mce", steps: int = 4000) -> Verdict:
    r"""Check that parameters stay as near as their policies stay to the uniform one.

    While :math:`\sum_a\theta_a` is constant, no parameter is farther from the mean of the initial
    ones than :math:`\max_{a,b}\log(\pi(a)/\pi(b))`. The values are drawn anew at every step, so
    that the policy keeps moving about and nothing has to diverge.

    Parameters
    ----------
    update : str or Update
        The update to follow.
    steps : int
        Number of updates, of weight one, of each of 20 states of three actions.

    Returns
    -------
    Verdict
    """
    rng, chosen = np.random.default_rng(21), as_update(update)
    start = rng.normal(size=(20, 3))
    path = follow(chosen, rng.random((steps, 20, 3)), 1.0, steps, start)
    away = np.abs(path - start.mean(axis=-1, keepdims=True)).max(axis=-1)
    room = np.ptp(np.log(chosen.policy(path)), axis=-1) + 1e-9 - away
    worst = Worst("the range of log pi minus the largest parameter")
    for t in np.flatnonzero(np.diff(np.minimum.accumulate(room.min(axis=1)), prepend=np.inf)):
        worst.add(room[t].min(), step=int(t))
    return judged(worst)


@check(
    "sec:ce/greedy",
    updates=("ce",),
    moved={"PG-SM becomes greedy": {"updates": ("pg-sm",)}},
    blind={"DI and MCE become greedy: so they do": {"updates": ("di", "mce")}},
)
@check(
    "sec:updates/greedy",
    moved={
        "PG-SM becomes greedy": {"updates": ("pg-sm",)},
        "PG-ES becomes greedy": {"updates": ("pg-es",)},
    },
)
def check_greedy_limit(
    updates: Sequence[str | Update] = ("di", "ce", "mce"),
    weights: Sequence[float] = (10.0, 1e2, 1e3, 1e4, 1e6),
) -> Verdict:
    """Check that one step becomes greedy as the weight grows (the paper: SARSA).

    Policies are drawn uniformly from the simplex with at most 0.99 on the greedy action and values
    uniformly from the unit cube, with a gap of at least 0.01 to the best one, so that a weight of
    1e6 leaves no doubt.

    Parameters
    ----------
    updates : sequence of str or Update
        The updates of which it is claimed.
    weights : sequence of float
        Increasing weights; the last one decides.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest probability left to other actions at the last weight.
    """
    pi, q = _states_with_a_gap(2000, 8)
    greedy = greedy_mask(q)
    worst = Worst(f"{ROUNDING:g} minus the probability left to other actions")
    rows: list[dict[str, float]] = [{"weight": w} for w in weights]
    for update in map(as_update, updates):
        theta = update.parameters(pi)
        for row, w in zip(rows, weights, strict=True):
            left = np.where(greedy, 0.0, update.policy(update.step(theta, q, w))).sum(axis=-1)
            row[update.name] = float(left.max())
        worst.add(_below(left), update=update.name, weight=weights[-1])
    return judged(worst, evidence=rows)


def _states_with_a_gap(n: int, seed: int) -> tuple[Floats, Floats]:
    """Draw policies and values of four actions, 0.99 at most on a greedy action 0.01 ahead."""
    rng = np.random.default_rng(seed)
    pi, q = rng.dirichlet(np.ones(4), size=4 * n), rng.random((4 * n, 4))
    top = np.sort(q, axis=-1)
    fair = (top[:, -1] - top[:, -2] > 0.01) & (np.where(greedy_mask(q), pi, 0).sum(axis=-1) < 0.99)
    return pi[fair][:n], q[fair][:n]


@check(
    "sec:mce/others",
    moved={"the same weight instead of (|A| - 1)/|A| times it": {"share": 1.0}},
)
def check_greedy_only(share: float | None = None) -> Verdict:
    r"""Check that lowering the other parameters, as `mce` does, is not necessary.

    Moving :math:`\theta_{a_q}` alone by :math:`w(1-\pi(a_q))` leads to the policy of `mce` with the
    weight :math:`\frac{|A|-1}{|A|}w`.

    Parameters
    ----------
    share : float, optional
        The factor on the weight; :math:`(|A|-1)/|A|` if missing.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(10), Worst(_unit("the policy"))
    alone, both = GreedyAlone(), as_update("mce")
    for _ in range(500):
        k, w = int(rng.integers(2, 7)), float(10 ** rng.uniform(-2, 2))
        theta, q = rng.normal(size=(2, k))
        factor = (k - 1) / k if share is None else share
        difference = softmax(alone.step(theta, q, w)) - softmax(both.step(theta, q, factor * w))
        worst.add(_below(difference), actions=k, weight=w)
    return judged(worst)


@check(
    "book:paths",
    moved={
        "CE moves straight": {"straight": "ce"},
        "PG-ES follows the curve at p = 3": {"p": 3.0},
        "DI moves along q itself": {"centred": False},
        "under CE the odds change half as fast": {"speed": 0.5},
    },
)
def check_paths(
    straight: str | Update = "mce",
    p: float = 2.0,
    centred: bool = True,
    speed: float = 1.0,
    weight: float = 1e-4,
) -> Verdict:
    r"""Check the shapes of four paths on the simplex.

    Under the update called `straight` the odds between the actions other than the greedy one never
    change; under `di` the policy moves along :math:`q - \bar q` inside the simplex; under `pg-es`
    with :math:`p = 2` and small weights :math:`\log(\pi(b)/\pi(c))` changes in proportion to
    :math:`q(b) - q(c)`; under `ce` it changes by :math:`-w(\pi(b)-\pi(c))`.

    Parameters
    ----------
    straight : str or Update
        The update that should move straight to the greedy vertex.
    p : float
        The escort exponent.
    centred : bool
        Whether DI's direction is :math:`q - \bar q`, or :math:`q`.
    speed : float
        The factor on the change of the odds under CE.
    weight : float
        The small weight of the two claims that hold in the limit of small weights; 2000 steps of
        it are taken under `pg-es`.

    Returns
    -------
    Verdict
        Margin: tolerance minus error, the smallest of the four. The escort path is followed with
        an error proportional to the weight; its tolerance is ten times the weight.
    """
    rng = np.random.default_rng(9)
    pi, q = rng.dirichlet(np.full(4, 5.0), size=100), rng.random((100, 4))
    q[:, 0] = 1.5
    weights = 10.0 ** rng.uniform(-2, 1, size=20)
    worst = Worst("the room")
    drift = _odds_change(as_update(straight), pi, q, weights)
    worst.add(_below(drift, 1e-10), path=f"{as_update(straight).name}: odds kept")
    turn = _direct_turn(pi, q, weight, centred)
    worst.add(_below(turn, 1e-10), path="di: direction q - mean(q)")
    gap = _replicator_gap(make_update("pg-es", p=p), pi, q, weight)
    worst.add(_below(gap, 10 * weight), path="pg-es: exponential curve")
    change = _odds_change(as_update("ce"), pi, q, np.ones(1))
    levelling = -speed * (pi[:, 1:] - pi[:, 1:2])
    worst.add(_below(change - levelling, 1e-10), path="ce: the likelier loses")
    return judged(worst)


def _odds_change(update: Update, pi: Floats, q: Floats, weights: Floats) -> Floats:
    """Return the change of the log odds of actions 1, 2, 3 against action 1 along some steps."""
    start, end = follow(update, q, weights, theta0=update.parameters(pi))[[0, -1], :, 1:]
    return np.asarray((end - end[:, :1]) - (start - start[:, :1]))


def _direct_turn(pi: Floats, q: Floats, weight: float, centred: bool) -> Floats:
    """Return how far one small step of `di` is from its direction, at policies inside."""
    step = as_update("di").step(pi, q, weight) - pi
    straight = weight * (q - centred * q.mean(axis=-1, keepdims=True))
    inside = np.all(pi + step > 0, axis=-1)
    return np.asarray((step - straight)[inside] / weight)


def _replicator_gap(update: Update, pi: Floats, q: Floats, weight: float) -> Floats:
    """Return the distance of the last escort policy to the curve pi e^(tau q), at its own tau."""
    end = update.policy(follow(update, q, weight, 2000, update.parameters(pi))[-1])
    # tau from the odds of the actions with the best and the worst value
    best, worst = np.argmax(q, axis=-1), np.argmin(q, axis=-1)
    rows = np.arange(len(pi))
    log_odds = np.log(end / pi)
    tau = (log_odds[rows, best] - log_odds[rows, worst]) / (q[rows, best] - q[rows, worst])
    return np.asarray(softmax(np.log(pi) + tau[:, np.newaxis] * q) - end)


@check(
    "book:huge-steps",
    moved={
        "DI is greedy from a weight one per cent smaller on": {"direct": 0.99},
        "DI is greedy only from a weight one per cent larger on": {"direct": 1.01},
        "CE and MCE leave half as much": {"leftover": 0.5},
        "PG-ES tends to its limit for p = 3 at p = 2": {"p": 3.0},
    },
)
def check_huge_steps(direct: float = 1.0, leftover: float = 1.0, p: float = 2.0) -> Verdict:
    """Check the limits of one step as its weight grows, and how far finite weights are from them.

    Parameters
    ----------
    direct : float
        Factor on the weight from which a `di` step is greedy.
    leftover : float
        Factor on the bound of what `ce` and `mce` leave to other actions.
    p : float
        Exponent of the limit that a `pg-es` step with p = 2 is compared with.

    Returns
    -------
    Verdict
    """
    pi, q = _states_with_a_gap(300, 22)
    greedy, worst = greedy_mask(q), Worst("the room")
    first = direct * direct_greedy_weight(pi, q)
    for share, sign in ((1 + 1e-9, 1), (1 - 1e-6, -1)):
        kept = np.where(greedy, as_update("di").step(pi, q, share * first), 0.0).sum(axis=-1)
        room = sign * (kept - 1) + (ROUNDING if sign > 0 else -1e-13)
        worst.add(room.min(), part=f"di, {share:.9g} times its weight")
    for name in ("ce", "mce"):
        update, w = as_update(name), 10.0 ** np.linspace(-3, 2, len(pi))
        new = update.policy(update.step(update.parameters(pi), q, w))
        bound = leftover * cross_entropy_leftover(name, pi, q, w)
        # relative: what is left is often far below one
        worst.add((np.log(bound) - np.log(new) + 1e-9).min(), part=f"{name}: bound of what is left")
    for chosen, limit in (
        (as_update("pg-sm"), as_update("pg-sm")),
        (as_update("pg-es"), make_update("pg-es", p=p)),
    ):
        new = chosen.policy(chosen.step(chosen.parameters(pi), q, 1e9))
        # two actions that nearly tie need a larger weight: leave the closest out
        clear = np.diff(np.sort(pi * advantage(pi, q)), axis=-1)[:, -1] > 1e-4
        error = (new - large_weight_limit(limit, pi, q))[clear]
        worst.add(_below(error, 1e-6), part=f"{chosen.name}: limit")
    return judged(worst)
