"""The checks of the chapter on updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from pu_lib.domains import random_mdp
from pu_lib.theory.updates import (
    Floats,
    Network,
    Policy,
    complex_step,
    escort_gradient,
    escort_of,
    escort_step,
    follow,
    middle_line,
    softmax_gradient,
    softmax_of,
    softmax_step,
)
from pu_lib.updates import UPDATES, Update, advantage, greedy_mask, make_update, softmax
from pu_lib.verdict import Status, Verdict, check

Step = Callable[[Floats, Floats], Floats]


ROUNDING = 1e-12
"""Tolerance of the gradient checks: a few hundred rounding errors on numbers of size one."""


def _worst(errors: Sequence[float]) -> float:
    return float(max(errors))


def _gradient_verdict(errors: list[float], what: str) -> Verdict:
    worst = _worst(errors)
    status = Status.HOLDS if worst <= ROUNDING else Status.FALSE
    return Verdict(
        status,
        ROUNDING - worst,
        f"{what}: the largest difference with the derivative of the policy is {worst:.2g} over "
        f"{len(errors)} random cases (tolerance {ROUNDING:g}).",
    )


@check("eq:softmax_grad")
def check_softmax_gradient(
    formula: Callable[[Floats, Floats], Floats] = softmax_gradient, n: int = 300, seed: int = 1
) -> Verdict:
    """Check the gradient of the softmax policy, for scores that come out of a small network.

    Parameters
    ----------
    formula : callable
        The claimed gradient, from the scores and their gradients.
    n, seed : int
        Number of random networks and points, and the seed they are drawn from.

    Returns
    -------
    Verdict
    """
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(n):
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(softmax_of), theta)
        claimed = formula(network.scores(theta), network.gradient(theta))
        errors.append(float(np.abs(exact - claimed).max()))
    return _gradient_verdict(errors, "Gradient of the softmax policy")


@check("eq:escort-grad")
def check_escort_gradient(signed: bool = True, n: int = 300, seed: int = 2) -> Verdict:
    """Check the gradient of the escort policy, for scores of either sign and p from 1 to 4.

    Parameters
    ----------
    signed : bool
        Whether the formula carries the sign of each score; the printed one does not.
    n, seed : int
        Number of random networks and points, and the seed they are drawn from.

    Returns
    -------
    Verdict
        Relative errors, since the gradient grows as the norm of the scores shrinks. "holds with a
        correction": as printed the formula is the gradient where all scores are positive.
    """
    rng = np.random.default_rng(seed)
    errors: list[float] = []
    printed: list[float] = []
    for _ in range(n):
        p = float(rng.choice([1, 1.5, 2, 3, 4]))
        network, theta = Network(rng, int(rng.integers(2, 7)), 5), rng.normal(size=5)
        exact = complex_step(network.then(partial(escort_of, p=p)), theta)
        f, gradient = network.scores(theta), network.gradient(theta)
        for found, sign in ((errors, signed), (printed, False)):
            claimed = escort_gradient(f, gradient, p, sign)
            found.append(float(np.abs(exact - claimed).max() / (1 + np.abs(exact).max())))
    worst = _worst(errors)
    return Verdict(
        Status.CORRECTED if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"With the factor p/||f||_p and sign(f) the formula is the gradient to {worst:.2g} over "
        f"{n} random cases; without the signs the error reaches {_worst(printed):.2g}.",
    )


def _step_errors(
    claimed: Callable[[Floats, Floats], Floats], policy: Policy, n: int, seed: int
) -> list[float]:
    """Compare a claimed step with the derivative of sum_a q(a) pi(a), tabular parameters."""
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(n):
        k = int(rng.integers(2, 7))
        theta, q = rng.normal(size=k), rng.normal(size=k)
        exact = complex_step(policy, theta) @ q
        errors.append(float(np.abs(exact - claimed(theta, q)).max() / (1 + np.abs(exact).max())))
    return errors


def _taken(update: Update, theta: Floats, q: Floats) -> Floats:
    """Return the step of weight one that `update` takes."""
    return np.asarray(update.step(theta, q, 1.0) - theta)


@check("app:softmax")
def check_softmax_step(
    formula: Step = softmax_step, line: Step = middle_line, n: int = 500, seed: int = 3
) -> Verdict:
    """Check the tabular step of `pg-sm`, the line printed before it, and the library's step.

    Parameters
    ----------
    formula : callable
        The claimed step, from the parameters and the values.
    line : callable
        The intermediate line.
    n, seed : int
        Number of random cases and their seed.

    Returns
    -------
    Verdict
        "holds with a correction" if the step is right and the intermediate line is not.
    """
    errors = _step_errors(formula, softmax_of, n, seed)
    errors += _step_errors(partial(_taken, UPDATES["pg-sm"]), softmax_of, n, seed)
    worst, off = _worst(errors), _worst(_step_errors(line, softmax_of, n, seed))
    status = Status.HOLDS if off <= ROUNDING else Status.CORRECTED
    return Verdict(
        status if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"The step pi(a) adv(a) is the gradient to {worst:.2g} over {n} random cases; the line "
        f"before it is off by up to {off:.2g}.",
    )


@check("app:softmax/middle-line")
def check_softmax_middle_line(formula: Step = middle_line) -> Verdict:
    r"""Check the line :math:`\pi q - \sum\pi q` of appendix A.1.1 at its smallest counterexample.

    Parameters
    ----------
    formula : callable
        The line under test.

    Returns
    -------
    Verdict
        For two actions, the uniform policy and q = (1, 0).
    """
    theta, q = np.zeros(2), np.array([1.0, 0.0])
    line, true = formula(theta, q), complex_step(softmax_of, theta) @ q
    error = float(np.abs(line - true).max())
    wrong = error > ROUNDING
    return Verdict(
        Status.FALSE if wrong else Status.HOLDS,
        ROUNDING - error,
        f"At the uniform policy of two actions with q = (1, 0) the line says {line.tolist()} and "
        f"the gradient is {true.tolist()}.",
        counterexample={"theta": [0, 0], "q": [1, 0], "line": line.tolist()} if wrong else None,
    )


@check("app:escort")
def check_escort_step(signed: bool = True, n: int = 500, seed: int = 4) -> Verdict:
    """Check the tabular step of `pg-es` at parameters of either sign, and the library's step.

    Parameters
    ----------
    signed : bool
        Whether the step carries the sign of the parameter; the printed one does not.
    n, seed : int
        Number of random cases for each p, and their seed.

    Returns
    -------
    Verdict
        The paper derives the step for positive parameters and says that the sign multiplies it.
    """
    signless: list[float] = []
    errors: list[float] = []
    for p in (1.0, 1.5, 2.0, 3.0):
        policy, update = partial(escort_of, p=p), make_update("pg-es", p=p)
        for formula in (partial(escort_step, p=p, signed=signed), partial(_taken, update)):
            errors += _step_errors(formula, policy, n, seed)
        printed = partial(escort_step, p=p, signed=False)
        signless += _step_errors(printed, policy, n, seed)
    worst = _worst(errors)
    return Verdict(
        Status.HOLDS if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"With sign(theta_a) the step is the gradient to {worst:.2g} for p = 1, 1.5, 2, 3; as "
        f"printed, without it, the error reaches {_worst(signless):.2g} at negative parameters.",
    )


@check("eq:ce2")
def check_cross_entropy_gradient(
    update: Update = UPDATES["ce"], n: int = 500, seed: int = 5
) -> Verdict:
    r"""Check that the two equations of `ce` agree: the step is :math:`w\nabla\log\pi(a_q)`.

    Parameters
    ----------
    update : Update
        The update whose step is compared with the gradient.
    n, seed : int
        Number of random cases and their seed.

    Returns
    -------
    Verdict
    """
    rng = np.random.default_rng(seed)
    errors = []
    for _ in range(n):
        k = int(rng.integers(2, 7))
        theta, q, w = rng.normal(size=k), rng.normal(size=k), float(rng.uniform(0.1, 3))
        gradient = complex_step(lambda x: np.log(softmax_of(x)), theta)[:, np.argmax(q)]
        errors.append(float(np.abs(update.step(theta, q, w) - theta - w * gradient).max()))
    return _gradient_verdict(errors, "Step of CE against w grad log pi(a_q)")


@check("eq:pg")
def check_policy_gradient(
    normalised: bool = False, n: int = 12, seed: int = 6, h: float = 1e-5
) -> Verdict:
    r"""Check the policy gradient theorem, :math:`\nabla J = \sum_s d(s)\sum_a q\nabla\pi`, on MDPs.

    Parameters
    ----------
    normalised : bool
        Take :math:`d` as a distribution instead of the discounted occupancy, whose sum is
        :math:`1/(1-\gamma)`; then the formula misses that factor.
    n, seed : int
        Number of random MDPs and their seed.
    h : float
        Step of the central differences.

    Returns
    -------
    Verdict
        Relative errors; central differences of step 1e-5 leave about 1e-9, the tolerance is 1e-6.
    """
    rng, tolerance = np.random.default_rng(seed), 1e-6
    errors = []
    for _ in range(n):
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
        errors.append(float(np.abs(numeric - formula).max() / np.abs(numeric).max()))
    worst = _worst(errors)
    return Verdict(
        Status.HOLDS if worst <= tolerance else Status.FALSE,
        tolerance - worst,
        f"Largest relative difference between the formula and central differences of the "
        f"performance: {worst:.2g} over {n} random MDPs (tolerance {tolerance:g}).",
    )


@check("sec:mce/sum")
def check_conserved_sum(
    names: Sequence[str] = ("ce", "mce"), n: int = 200, steps: int = 50, seed: int = 7
) -> Verdict:
    r"""Check that :math:`\sum_a\theta_a` stays constant under the updates called `names`.

    Parameters
    ----------
    names : sequence of str
        The updates to follow.
    n, steps, seed : int
        Number of states followed, of updates of each, and the seed.

    Returns
    -------
    Verdict
        The drift is relative to the total length of the steps taken.
    """
    drifts = {}
    for name in names:
        rng = np.random.default_rng(seed)
        theta = rng.normal(size=(n, 4)) if name != "di" else np.full((n, 4), 0.25)
        total, length = theta.sum(axis=-1), np.zeros(n)
        for _ in range(steps):
            w = 10.0 ** rng.uniform(-3, 3, size=n)
            new = UPDATES[name].step(theta, rng.normal(size=(n, 4)), w)
            length += np.abs(new - theta).sum(axis=-1)
            theta = new
        drift = np.abs(theta.sum(axis=-1) - total) / (1 + length)
        drifts[name] = float(drift.max())
    worst = _worst(list(drifts.values()))
    return Verdict(
        Status.HOLDS if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"Largest drift of the sum of the parameters, relative to the length travelled, over "
        f"{steps} steps with weights 1e-3 to 1e3: {worst:.2g} (tolerance {ROUNDING:g}).",
        tuple({"update": name, "largest relative drift": x} for name, x in drifts.items()),
    )


@check("sec:ce/greedy", names=("ce",))
@check("sec:updates/greedy")
def check_greedy_limit(
    names: Sequence[str] = ("di", "ce", "mce"),
    weights: Sequence[float] = (10.0, 1e2, 1e3, 1e4, 1e6),
    n: int = 2000,
    seed: int = 8,
) -> Verdict:
    """Check that one step becomes greedy as the weight grows (the paper: SARSA).

    Policies are drawn uniformly from the simplex with at most 0.99 on the greedy action and values
    uniformly from the unit cube, with a gap of at least 0.01 to the best one, so that a weight of
    1e6 leaves no doubt.

    Parameters
    ----------
    names : sequence of str
        The updates of which it is claimed.
    weights : sequence of float
        Increasing weights.
    n, seed : int
        Number of random states (four actions), and the seed.

    Returns
    -------
    Verdict
        The margin is 1e-12 minus the largest probability left to other actions at the last weight.
    """
    pi, q = _states_with_a_gap(n, seed)
    missing: dict[str, list[float]] = {}
    for name in names:
        theta = UPDATES[name].parameters(pi)
        stepped = [UPDATES[name].policy(UPDATES[name].step(theta, q, w)) for w in weights]
        greedy = greedy_mask(q)
        missing[name] = [float(np.where(greedy, 0.0, new).sum(axis=-1).max()) for new in stepped]
    evidence = [
        {"weight": w, **{name: missing[name][i] for name in names}} for i, w in enumerate(weights)
    ]
    worst = _worst([left[-1] for left in missing.values()])
    return Verdict(
        Status.HOLDS if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"The largest probability that {', '.join(names)} leave to other actions after one step of "
        f"weight {weights[-1]:g}, over {n} random states: {worst:.2g}.",
        tuple(evidence),
    )


def _states_with_a_gap(n: int, seed: int) -> tuple[Floats, Floats]:
    """Draw policies and values of four actions, 0.99 at most on a greedy action 0.01 ahead."""
    rng = np.random.default_rng(seed)
    pi, q = rng.dirichlet(np.ones(4), size=4 * n), rng.random((4 * n, 4))
    top = np.sort(q, axis=-1)
    fair = (top[:, -1] - top[:, -2] > 0.01) & (np.where(greedy_mask(q), pi, 0).sum(axis=-1) < 0.99)
    return pi[fair][:n], q[fair][:n]


@check("sec:mce/others")
def check_greedy_only(share: float | None = None, n: int = 500, seed: int = 10) -> Verdict:
    r"""Check that lowering the other parameters, as `mce` does, is not necessary.

    Moving :math:`\theta_{a_q}` alone by :math:`w(1-\pi(a_q))` leads to the policy of `mce` with the
    weight :math:`\frac{|A|-1}{|A|}w`.

    Parameters
    ----------
    share : float, optional
        The factor on the weight; :math:`(|A|-1)/|A|` if missing.
    n, seed : int
        Number of random cases and their seed.

    Returns
    -------
    Verdict
    """
    rng, errors = np.random.default_rng(seed), []
    for _ in range(n):
        k, w = int(rng.integers(2, 7)), float(10 ** rng.uniform(-2, 2))
        theta, q = rng.normal(size=k), rng.normal(size=k)
        factor = (k - 1) / k if share is None else share
        alone = theta + w * np.where(greedy_mask(q), 1 - softmax(theta), 0.0)
        update = UPDATES["mce"]
        both = update.policy(update.step(theta, q, factor * w))
        errors.append(float(np.abs(softmax(alone) - both).max()))
    worst = _worst(errors)
    return Verdict(
        Status.HOLDS if worst <= ROUNDING else Status.FALSE,
        ROUNDING - worst,
        f"Largest difference between the two policies over {n} random cases: {worst:.2g}.",
    )


def check_paths(
    straight: str = "mce", n: int = 100, seed: int = 9, weight: float = 1e-4, steps: int = 2000
) -> Verdict:
    r"""Check the shapes of three paths on the simplex.

    Under the update called `straight` the odds between the actions other than the greedy one never
    change; under `di` the policy moves along :math:`q - \bar q` inside the simplex; under `pg-es`
    with :math:`p = 2` and small weights :math:`\log(\pi(b)/\pi(c))` changes in proportion to
    :math:`q(b) - q(c)`.

    Parameters
    ----------
    straight : str
        The update that should move straight to the greedy vertex.
    n, seed : int
        Number of random starts (four actions), and the seed.
    weight : float
        The small weight of the two claims that hold in the limit of small weights.
    steps : int
        How many such steps are taken.

    Returns
    -------
    Verdict
        Margin: tolerance minus error, the smallest of the three. The escort path is followed with
        an error proportional to the weight; its tolerance is ten times the weight.
    """
    rng = np.random.default_rng(seed)
    pi, q = rng.dirichlet(np.full(4, 5.0), size=n), rng.random((n, 4))
    q[:, 0] = 1.5
    errors = {
        f"{straight}: odds of the other actions": (_odds_drift(straight, pi, q, rng), 1e-10),
        "di: direction q - mean(q)": (_direct_turn(pi, q, weight), 1e-10),
        "pg-es, p = 2: exponential curve": (_replicator_gap(pi, q, weight, steps), 10 * weight),
    }
    margin = min(tolerance - error for error, tolerance in errors.values())
    evidence = tuple(
        {"path": key, "error": error, "tolerance": tol} for key, (error, tol) in errors.items()
    )
    failed = [path for path, (error, tolerance) in errors.items() if error > tolerance]
    summary = (
        "All three paths have the shape claimed."
        if not failed
        else f"Not of the shape claimed: {'; '.join(failed)}."
    )
    return Verdict(Status.FALSE if failed else Status.HOLDS, margin, summary, evidence)


def _odds_drift(name: str, pi: Floats, q: Floats, rng: np.random.Generator) -> float:
    """Return the largest change of log odds between actions 1, 2, 3 over 20 steps of any weight."""
    update = UPDATES[name]
    theta = update.parameters(pi)
    start = np.log(pi[:, 1:])
    for _ in range(20):
        theta = update.step(theta, q, 10.0 ** rng.uniform(-2, 1, size=len(pi)))
    end = theta[:, 1:]
    drift = (end - end[:, :1]) - (start - start[:, :1])
    return float(np.abs(drift).max())


def _direct_turn(pi: Floats, q: Floats, weight: float) -> float:
    """Return how far one small step of `di` is from w (q - mean q), at policies inside."""
    step = UPDATES["di"].step(pi, q, weight) - pi
    straight = weight * (q - q.mean(axis=-1, keepdims=True))
    inside = np.all(pi + straight > 0, axis=-1)
    return float(np.abs(step - straight)[inside].max() / weight)


def _replicator_gap(pi: Floats, q: Floats, weight: float, steps: int) -> float:
    """Return the distance of the last escort policy to the curve pi e^(tau q), at its own tau."""
    update = UPDATES["pg-es"]
    end = follow(update, update.parameters(pi), q, weight, steps)[-1]
    # tau from the odds of the actions with the best and the worst value
    best, worst = np.argmax(q, axis=-1), np.argmin(q, axis=-1)
    rows = np.arange(len(pi))
    log_odds = np.log(end / pi)
    tau = (log_odds[rows, best] - log_odds[rows, worst]) / (q[rows, best] - q[rows, worst])
    curve = softmax(np.log(pi) + tau[:, np.newaxis] * q)
    return float(np.abs(curve - end).max())
