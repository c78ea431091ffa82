r"""Compute periodic orbits of the cross-entropy update in floats, and certify them.

With exact values :math:`q_t` and the greedy action :math:`g_t(s)` the process is

.. math:: \theta_{t+1}(s,a) = \theta_t(s,a) + w_t(s)\,(\mathbb 1[a=g_t(s)] - \pi_t(a|s)),
   \qquad w_t(s) = \eta_t d_t(s) \ge 0 .

**Cycles.** While the greedy actions are fixed, the states evolve independently of each other:
state :math:`s` sees a fixed sequence of maps :math:`x \mapsto x + w(e_l - \mathrm{softmax}(x))`.
A periodic orbit of the whole process is therefore certified in two stages. First, the **Krawczyk
test** certifies, for each state, a fixed point of the composed map of one period in the plane
:math:`\sum_a x_a = 0`. For a box :math:`X` with centre :math:`c`, a matrix :math:`Y` close to
:math:`(F'(c)-I)^{-1}` and an enclosure :math:`F'(X)` of the derivatives on the box,

.. math:: K = c - Y\,(F(c)-c) + \bigl(I - Y\,(F'(X)-I)\bigr)(X-c) \subset \mathrm{int}\,X

implies that :math:`F` has exactly one fixed point in :math:`X`, and that it lies in :math:`K`.
Second, the period is run from these boxes with the exact values of the policy, and each assumed
greedy action must be the strict argmax. Every number is an Arb ball, so a comparison that returns
true is proved. The orbit attracts if the derivative of each state's period map at the fixed point
has all its eigenvalues inside the unit circle. For one free coordinate the condition is
:math:`|J|<1`; for two the Jury conditions are :math:`1\pm\mathrm{tr}J+\det J>0` and
:math:`\det J<1`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat
from numpy.typing import NDArray

from pu_lib.arrays import as_int
from pu_lib.cycle_examples import FOUR_STATES, THREE_STATES, CycleExample, Phase
from pu_lib.deterministic import (
    ProcessRun,
    action_values,
    policy_values,
    run_process,
)
from pu_lib.exact import ball, precision
from pu_lib.kernels import ce
from pu_lib.updates import Update

__all__ = [
    "FOUR_STATES",
    "THREE_STATES",
    "Certificate",
    "CycleExample",
    "NotCertifiedError",
    "Orbit",
    "Phase",
    "certify",
    "simulate",
]

Floats = NDArray[np.float64]
Ball = Any
"""An Arb ball; python-flint has no type stubs."""


class NotCertifiedError(ValueError):
    """The error raised if ball arithmetic cannot prove that there is a cycle."""


# The process in floating point


@dataclass(frozen=True)
class Orbit(ProcessRun):
    """A run of the process, with the largest change in a parameter over its last period."""

    drift: float


def simulate(
    example: CycleExample,
    periods: int,
    start: Sequence[Sequence[float]] | None = None,
    update: str | Update = "ce",
) -> Orbit:
    """Run an update with softmax parameters and a kernel on an example in floats."""
    periods = as_int("periods", periods, low=1)
    mdp, weights = example.tables, example.weights
    theta = np.zeros_like(mdp.rewards)
    for s, row in enumerate(example.start if start is None else start):
        theta[s, : len(row)] = row
    first = run_process(mdp, update, theta, weights, (periods - 1) * len(weights))
    last = run_process(mdp, update, first.theta, weights, len(weights))
    return Orbit(
        values=np.concatenate([first.values, last.values]),
        greedy=np.concatenate([first.greedy, last.greedy]),
        gaps=np.concatenate([first.gaps, last.gaps]),
        theta=last.theta,
        drift=float(np.abs(last.theta - first.theta).max()),
    )


# The certificate


@dataclass(frozen=True)
class Certificate:
    """A periodic orbit of CE, proved to exist by ball arithmetic.

    Attributes
    ----------
    start : tuple of tuple of Ball
        Enclosures of the parameters at the beginning of the period.
    radius : float
        The largest radius of these enclosures.
    multipliers : tuple of tuple of float
        The moduli of the eigenvalues of each state's period map at the fixed point (midpoints).
    attracting : bool
        Whether all eigenvalues are proved to be inside the unit circle.
    smallest_gap : float
        A lower bound on the lead of the greedy action, over all steps and updated states.
    lowest, highest : tuple of float
        Lower bounds on the minima and upper bounds on the maxima of the states' values.
    shortfall : tuple of float
        Lower bounds on the distance of each state's value from the optimum, over all steps.
    steps : int
        The length of the period.
    """

    example: CycleExample
    start: tuple[tuple[Ball, ...], ...]
    radius: float
    multipliers: tuple[tuple[float, ...], ...]
    attracting: bool
    smallest_gap: float
    lowest: tuple[float, ...]
    highest: tuple[float, ...]
    shortfall: tuple[float, ...]
    steps: int


_SHORT_STEP = 1e-10
"""After a Newton step shorter than this length, the next step reuses the derivative."""

UpdateSequence = list[tuple[Ball, int, int]]
"""The updates of one state in a period as triples (weight, greedy action, repetitions)."""


def certify(
    example: CycleExample, bits: int = 256, radius: float = 1e-40, burn_in: int | None = None
) -> Certificate:
    """Prove that CE has a periodic orbit near the initial parameters of `example`.

    The greedy actions are taken from a run in floats of `burn_in` periods, by default about
    200 000 updates. The fixed point is enclosed in a box of the given radius.

    Raises
    ------
    NotCertifiedError
        If a greedy action differs from the claimed one, Newton's method does not converge, the
        Krawczyk test fails, or a greedy action is not the strict argmax of the exact values.
    """
    burn_in = max(3, 200_000 // example.period) if burn_in is None else burn_in
    orbit = simulate(example, burn_in)
    greedy = orbit.greedy[-example.period :]
    wrong = np.flatnonzero(
        greedy[np.arange(example.period), example.updated_states] != example.claimed_actions
    )
    if len(wrong):
        t = int(wrong[0])
        raise NotCertifiedError(
            f"{example.name}: at step {t} of the period the greedy action at state "
            f"{example.updated_states[t]} is {greedy[t, example.updated_states[t]]}, not "
            f"{example.claimed_actions[t]} as claimed."
        )
    with precision(bits):
        moves = _updates_by_state(example, greedy)
        boxes, jacobians = [], []
        for s in range(example.n_states):
            guess = orbit.theta[s, : example.n_actions[s]]
            box, jacobian = _fixed_point(moves[s], guess, radius, f"{example.name}, state {s}")
            boxes.append(box)
            jacobians.append(jacobian)
        gap, lowest, highest, shortfall = _certified_run(example, greedy, boxes)
        return Certificate(
            example,
            tuple(tuple(box) for box in boxes),
            max(float(x.rad()) for box in boxes for x in box),
            tuple(_moduli(jacobian) for jacobian in jacobians),
            all(_contracts(jacobian) for jacobian in jacobians),
            gap,
            lowest,
            highest,
            shortfall,
            example.period,
        )


def _updates_by_state(example: CycleExample, greedy: NDArray[np.int64]) -> list[UpdateSequence]:
    """Return the updates of each state over one period, with one entry per phase of its own."""
    moves: list[UpdateSequence] = [[] for _ in range(example.n_states)]
    spread = example.spread
    t = 0
    for phase in example.phases:
        for s in range(example.n_states):
            weight = spread + (phase.weight if s == phase.state else 0)
            if weight == 0:
                continue
            size = ball(weight)
            if s == phase.state:
                moves[s].append((size, phase.greedy, phase.updates))
            else:
                moves[s] += [(size, int(greedy[t + k, s]), 1) for k in range(phase.updates)]
        t += phase.updates
    return moves


def softmax_balls(x: Sequence[Ball]) -> list[Ball]:
    """Return the softmax in balls; subtracting the largest entry keeps the radii small."""
    floats = [float(y) for y in x]
    top = floats.index(max(floats))
    powers = [arb(1) if i == top else (y - x[top]).exp() for i, y in enumerate(x)]
    total = sum(powers[1:], powers[0])
    return [power / total for power in powers]


def _period_map(
    moves: UpdateSequence, x: list[Ball], derivative: bool = True
) -> tuple[list[Ball], list[list[Ball]]]:
    """Return the image of a state under one period's updates, and the derivative.

    The derivative is in the free coordinates. They are all coordinates except the first, which is
    minus the sum of the free ones.
    """
    x = list(x)
    k = len(x)
    free = range(k - 1)
    columns = [[arb(int(i == j)) for i in free] for j in free]
    for weight, greedy, updates in moves:
        for _ in range(updates):
            p = softmax_balls(x)
            if derivative:
                # d(softmax_i)/dx_j - d(softmax_i)/dx_0 = p_i (1[i=j] - p_j + p_0)
                for column in columns:
                    mean = sum([(p[m + 1] - p[0]) * column[m] for m in free])
                    for i in free:
                        column[i] -= weight * p[i + 1] * (column[i] - mean)
            ce(x, p, None, greedy, weight, k)
    return x, [list(row) for row in zip(*columns, strict=True)]


def _all_coordinates(free: Sequence[Ball]) -> list[Ball]:
    """Return all coordinates of a point from its free coordinates."""
    return [-sum(free, arb(0)), *free]


def _fixed_point(
    moves: UpdateSequence, guess: Floats, radius: float, name: str
) -> tuple[list[Ball], list[list[Ball]]]:
    """Return enclosures of the fixed point of a period map and of the derivative at that point.

    Newton's method on midpoints computes the centre, and reuses the last derivative once its steps
    are short. The Krawczyk test proves the enclosure.
    """
    d = len(guess) - 1
    identity = arb_mat([[int(i == j) for j in range(d)] for i in range(d)])
    centre = [arb(float(y)) for y in guess[1:]]
    step = np.inf
    for _ in range(12):
        image, J = _period_map(moves, _all_coordinates(centre), derivative=step > _SHORT_STEP)
        if step > _SHORT_STEP:
            inverse = (arb_mat(J) - identity).inv()
            Y = arb_mat([[arb(inverse[i, j].mid()) for j in range(d)] for i in range(d)])
        newton = Y * arb_mat([[image[i + 1] - centre[i]] for i in range(d)])
        step = max(abs(float(newton[i, 0].mid())) for i in range(d))
        if step < radius * 1e-3:
            break
        centre = [arb((centre[i] - newton[i, 0]).mid()) for i in range(d)]
    else:
        raise NotCertifiedError(f"{name}: Newton's method finds no fixed point.")
    box = [c + arb(0, radius) for c in centre]
    _, J_box = _period_map(moves, _all_coordinates(box))
    rest = (identity - Y * (arb_mat(J_box) - identity)) * arb_mat(
        [[arb(0, radius)] for _ in range(d)]
    )
    K = [centre[i] - newton[i, 0] + rest[i, 0] for i in range(d)]
    if not all(box[i].contains_interior(K[i]) for i in range(d)):
        raise NotCertifiedError(
            f"{name}: the Krawczyk test fails on the box of radius {radius:g} around "
            f"{[float(c) for c in centre]}."
        )
    return _all_coordinates(K), J_box


def _contracts(J: list[list[Ball]]) -> bool:
    """Return whether all eigenvalues are proved to be inside the unit circle.

    The result is false for matrices of size 3x3 or larger.
    """
    if len(J) > 2:
        return False
    if len(J) == 1:
        return bool(abs(J[0][0]) < 1)
    trace = J[0][0] + J[1][1]
    determinant = J[0][0] * J[1][1] - J[0][1] * J[1][0]
    return bool(1 - trace + determinant > 0 and 1 + trace + determinant > 0 and determinant < 1)


def _moduli(J: list[list[Ball]]) -> tuple[float, ...]:
    """Return the moduli of the eigenvalues of the midpoint matrix, largest first."""
    eigenvalues = np.linalg.eigvals(np.array([[float(x.mid()) for x in row] for row in J]))
    return tuple(sorted((float(abs(z)) for z in eigenvalues), reverse=True))


class _AffineValues(NamedTuple):
    """The values of all states and of one state's actions, as functions b + cx of its value x.

    Both fields are lists of pairs (b, c). The pairs depend only on the policies of the other
    states.
    """

    states: list[tuple[Ball, Ball]]
    actions: list[tuple[Ball, Ball]]

    @classmethod
    def of(
        cls, example: CycleExample, s: int, gamma: Ball, pi: Sequence[Sequence[Ball]]
    ) -> _AffineValues:
        """Return the functions for state `s`, from evaluations with its value set to 0 and to 1."""
        rewards, successors, policy = list(example.rewards), list(example.successors), list(pi)
        successors[s], policy[s] = (None,), [arb(1)]
        ends = []
        for x in (0, 1):
            rewards[s] = (x,)
            v = policy_values(rewards, successors, gamma, policy)
            q = action_values(example.rewards[s], example.successors[s], gamma, v)
            ends.append(v + q)
        lines = [(b, y - b) for b, y in zip(*ends, strict=True)]
        return cls(lines[: example.n_states], lines[example.n_states :])

    def values(self, pi: Sequence[Ball]) -> list[Ball]:
        """Return the values of all states if the selected state has the policy `pi`."""
        pairs = list(zip(pi, self.actions, strict=True))
        x = sum(p * b for p, (b, _) in pairs) / (1 - sum(p * c for p, (_, c) in pairs))
        return [b + c * x for b, c in self.states]


def _certified_run(
    example: CycleExample, greedy: NDArray[np.int64], boxes: Sequence[Sequence[Ball]]
) -> tuple[float, tuple[float, ...], tuple[float, ...], tuple[float, ...]]:
    """Return bounds on the lead, the values and the shortfall over one period from the boxes.

    Raise an error unless every greedy action is the strict argmax.
    """
    n = example.n_states
    gamma, spread = ball(example.discount), ball(example.spread)
    theta = [list(box) for box in boxes]
    pi = [softmax_balls(row) for row in theta]
    gap, lowest, highest = np.inf, [arb.pos_inf()] * n, [arb.neg_inf()] * n
    t = 0
    for phase in example.phases:
        scheduled = ball(phase.weight)
        for k in range(phase.updates):
            if k == 0 or example.spread:
                lines = _AffineValues.of(example, phase.state, gamma, pi)
            values = lines.values(pi[phase.state])
            lowest = [low.min(v) for low, v in zip(lowest, values, strict=True)]
            highest = [high.max(v) for high, v in zip(highest, values, strict=True)]
            for s in range(n) if example.spread else (phase.state,):
                weight = spread + scheduled if s == phase.state else spread
                g = int(greedy[t, s])
                gap = min(gap, _certified_lead(example, s, g, values, gamma, t))
                ce(theta[s], pi[s], None, g, weight, example.n_actions[s])
                pi[s] = softmax_balls(theta[s])
            t += 1
    _, best = example.optimum()
    short = [ball(v) - high for v, high in zip(best, highest, strict=True)]
    low, high = map(_float_below, lowest), (-_float_below(-v) for v in highest)
    return float(gap), tuple(low), tuple(high), tuple(map(_float_below, short))


def _float_below(x: Ball) -> float:
    """Return a float below the ball; the float nearest to the lower end may lie above that end."""
    return math.nextafter(float(x.lower()), -math.inf)


def _certified_lead(
    example: CycleExample, s: int, g: int, values: Sequence[Ball], gamma: Ball, t: int
) -> float:
    """Return a lower bound on the lead of action `g` at state `s`.

    Raise an error if the bound is not positive.
    """
    q = action_values(example.rewards[s], example.successors[s], gamma, values)
    lead = min(_float_below(q[g] - x) for a, x in enumerate(q) if a != g)
    if not lead > 0:
        raise NotCertifiedError(
            f"{example.name}: at step {t} action {g} is not certified to be greedy at state {s}."
        )
    return lead
