r"""Unlearning what has been learnt (paper, section 3.4; Theorems 4 and 5, Lemmas 11 and 12).

One state, two actions. From :math:`\pi_0(a_1) = x`, make :math:`n` *forward* updates with
:math:`q = (1, 0)`, then *backward* updates with :math:`q = (0, 1)`. The count is

.. math:: n' = \min\{m \ge 0 : \pi_{n+m}(a_1) \le \pi_0(a_1)\},

with :math:`<` instead of :math:`\le` for *strict* recovery (:math:`n'_s`), and infinity if that
never happens. The weight of update :math:`t = 1, 2, \dots` is :math:`w_t = \eta` (constant) or
:math:`w_t = \eta/\sqrt t` (one counter through both phases).

In every case the process lives in few dimensions:

- softmax updates: :math:`\delta = \theta_1 - \theta_2`, :math:`\pi(a_1) = \sigma(\delta)`. PG-SM
  moves it by :math:`\pm 2w\,\sigma(\delta)\sigma(-\delta)`; CE and MCE, which are one update when
  there are two actions, by :math:`+2w\,\sigma(-\delta)` forward and :math:`-2w\,\sigma(\delta)`
  backward;
- DI: :math:`\pi(a_1)` moves by :math:`\pm w/2` and stops at 0 and at 1;
- PG-ES: :math:`\theta_a` moves by
  :math:`w\,\mathrm{sign}(\theta_a)\,\frac p{\|\theta\|_p}\,\pi(a)^{1-1/p}\,\mathrm{adv}(a)`. The
  start is :math:`\theta_0 = ((2x)^{1/p}, (2-2x)^{1/p})`, which is :math:`(1, 1)` for
  :math:`x = 1/2`. With ``factor="drop"`` the factor :math:`p/\|\theta\|_p` is left out, as in the
  paper's appendix. A parameter that becomes exactly 0 stays there: the policy is stuck.

Counts are those of exact arithmetic: rationals for DI with constant weights, sums of square roots
for DI with decaying weights (`pu_lib.exact.root_sum` settles its ties), Arb balls for the others,
with the precision raised until the sign of every quantity that matters is proved.

Applicability and issues
------------------------
PG-SM at a large :math:`\eta` jumps so far that coming back takes a number of steps exponential in
:math:`\eta`; `count` gives up after `max_steps` with a sentence. For :math:`p \ne 2` no theorem
excludes that an escort parameter hits zero exactly after the second step; if it did, `count` would
end with `Undecided`, not with a wrong number.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import chain, islice, product, repeat
from itertools import count as count_from
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from flint import arb

from pu_lib.exact import Number, Undecided, ball, certified, exact, root_sum, sign
from pu_lib.verdict import Status, Verdict

__all__ = [
    "count",
    "counts",
    "path",
]

UpdateName = Literal["pg-sm", "pg-es", "di", "ce", "mce"]
Schedule = Literal["constant", "inverse-sqrt"]
Factor = Literal["keep", "drop"]
MAX_STEPS = 20_000_000


# The process, one update at a time


class Walker(ABC):
    """A two-action policy under forward and backward updates, in balls."""

    @abstractmethod
    def forward(self, w: arb) -> None:
        """Make one update with q = (1, 0) and weight `w`."""

    @abstractmethod
    def backward(self, w: arb) -> None:
        """Make one update with q = (0, 1) and weight `w`."""

    @abstractmethod
    def side(self) -> int:
        """Return the proved sign of pi(a_1) - pi_0(a_1)."""

    @abstractmethod
    def probability(self) -> float:
        """Return pi(a_1), for pictures."""

    def stuck(self) -> bool:
        """Say whether no update moves the policy any more."""
        return False


class _Softmax(Walker):
    """The excess y = delta - delta_0, which starts at exactly 0."""

    def __init__(self, start: Fraction) -> None:
        self.origin = (ball(start) / ball(1 - start)).log()
        self.y = arb(0)

    def side(self) -> int:
        return sign(self.y)

    def probability(self) -> float:
        return float(1 / (1 + (-self.origin - self.y).exp()))


class PolicyGradientSoftmax(_Softmax):
    r"""PG-SM: :math:`\delta \pm 2w\,\sigma(\delta)\sigma(-\delta)`."""

    def _pull(self) -> arb:
        odds = (self.origin + self.y).exp()
        return 2 * odds / (1 + odds) ** 2

    def forward(self, w: arb) -> None:
        self.y += w * self._pull()

    def backward(self, w: arb) -> None:
        self.y -= w * self._pull()


class CrossEntropy(_Softmax):
    r"""CE and MCE: :math:`\delta + 2w\,\sigma(-\delta)`, :math:`\delta - 2w\,\sigma(\delta)`."""

    def forward(self, w: arb) -> None:
        self.y += 2 * w / (1 + (self.origin + self.y).exp())

    def backward(self, w: arb) -> None:
        self.y -= 2 * w / (1 + (-self.origin - self.y).exp())


class Escort(Walker):
    r"""PG-ES in the coordinates :math:`u_a = \theta_a / \theta_{0,a}`, which start at exactly 1.

    With :math:`x_a = \pi_0(a)` and :math:`N = x_1|u_1|^p + x_2|u_2|^p`, the policy is
    :math:`\pi(a) = x_a|u_a|^p/N`, it is above its start exactly when :math:`|u_1| > |u_2|`, and the
    exact gradient moves :math:`u_a` by
    :math:`w\,\mathrm{sign}(u_a)\,|u_a|^{p-1}\,\frac{p\,c_a}{N}\,\mathrm{adv}(a)` with
    :math:`c_a = x_a^{1-2/p}\,4^{-1/p}`.
    """

    def __init__(self, start: Fraction, p: Fraction, factor: str) -> None:
        half = p / 2 - 1
        self.half: Any = int(half) if half.denominator == 1 else ball(half)
        self.p, self.drop = ball(p), factor == "drop"
        self.x1, self.x2 = ball(start), ball(1 - start)
        self.u1 = self.u2 = arb(1)
        # p c_a, exact at the uniform start
        if start == Fraction(1, 2):
            self.k1 = self.k2 = self.p / 2
        else:
            scale, power = self.p * arb(4) ** ball(-1 / p), ball(1 - 2 / p)
            self.k1, self.k2 = scale * self.x1**power, scale * self.x2**power

    def _move(self, w: arb) -> None:
        # With |u_a|^(p-2) instead of sign(u_a) |u_a|^(p-1) a step is a product: it loses no
        # relative accuracy where a parameter shrinks geometrically, and it needs no sign.
        square1, square2 = self.u1 * self.u1, self.u2 * self.u2
        slope1, slope2 = square1**self.half, square2**self.half
        share1, share2 = self.x1 * slope1 * square1, self.x2 * slope2 * square2
        norm = share1 + share2
        pull = w / (norm * norm)
        if self.drop:
            pull *= (2 * norm) ** (1 / self.p) / self.p
        # forward, adv(a_1) = pi(a_2) and adv(a_2) = -pi(a_1)
        self.u1 *= 1 + pull * self.k1 * slope1 * share2
        self.u2 *= 1 - pull * self.k2 * slope2 * share1

    def forward(self, w: arb) -> None:
        self._move(w)

    def backward(self, w: arb) -> None:
        self._move(-w)

    def side(self) -> int:
        return sign(abs(self.u1) - abs(self.u2))

    def probability(self) -> float:
        first, second = self.x1 * abs(self.u1) ** self.p, self.x2 * abs(self.u2) ** self.p
        return float(first / (first + second))

    def stuck(self) -> bool:
        return bool(self.u1.is_zero() or self.u2.is_zero())


class Direct(Walker):
    r"""DI: :math:`\pi(a_1)` moves by :math:`\pm w/2`, clipped to [0, 1]; rational weights only."""

    def __init__(self, start: Fraction) -> None:
        self.start = self.x = start

    def forward(self, w: Any) -> None:
        self.x = min(self.x + w / 2, Fraction(1))

    def backward(self, w: Any) -> None:
        self.x = max(self.x - w / 2, Fraction(0))

    def side(self) -> int:
        return (self.x > self.start) - (self.x < self.start)

    def probability(self) -> float:
        return float(self.x)

    def stuck(self) -> bool:
        return self.x == 0


def make_walker(update: str, start: Fraction, p: Fraction, factor: str) -> Walker:
    """Return the process of `update` at its start."""
    if update == "pg-sm":
        return PolicyGradientSoftmax(start)
    if update in ("ce", "mce"):
        return CrossEntropy(start)
    if update == "di":
        return Direct(start)
    return Escort(start, p, factor)


# The count


@dataclass(frozen=True)
class Setting:
    """The arguments of a count, read as exact numbers."""

    update: str
    eta: Fraction
    schedule: str
    p: Fraction
    factor: str
    start: Fraction

    def weights(self, first: int = 1) -> Iterator[Any]:
        """Yield the weights of updates first, first + 1, ... (rational for DI, else balls)."""
        if self.schedule == "constant":
            return repeat(self.eta if self.update == "di" else ball(self.eta))
        eta = ball(self.eta)
        return (eta * arb(t).rsqrt() for t in count_from(first))

    def walker(self) -> Walker:
        """Return the process at its start, at the current precision."""
        return make_walker(self.update, self.start, self.p, self.factor)

    def first_step_kills(self) -> bool:
        r"""Decide by rational arithmetic whether the first forward update makes theta_2 zero.

        That update multiplies :math:`\theta_2` by :math:`1 - \eta\,p\,c_2\,x` (factor kept; for
        the factor dropped, :math:`p` is replaced by :math:`2^{1/p}`). With :math:`p = a/b`, the
        :math:`a`-th power of the subtracted number is rational.
        """
        if self.update != "pg-es":
            return False
        a, b = self.p.numerator, self.p.denominator
        x, y = self.start, 1 - self.start
        if self.factor == "keep":
            return bool((self.eta * self.p * x) ** a * y ** (a - 2 * b) == 4**b)
        return bool((self.eta * x) ** a * y ** (a - 2 * b) == 2**b)


def setting(
    update: str = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
) -> Setting:
    """Read and check the arguments shared by `count`, `counts` and `path`."""
    for name, value, allowed in (
        ("update", update, get_args(UpdateName)),
        ("schedule", schedule, get_args(Schedule)),
        ("factor", factor, get_args(Factor)),
    ):
        if value not in allowed:
            raise ValueError(f"{name} must be one of {', '.join(allowed)}; it is {value!r}")
    made = Setting(
        update, exact(eta, "eta"), schedule, exact(p, "p"), factor, exact(start, "start")
    )
    if made.eta <= 0:
        raise ValueError(f"eta must be positive; it is {made.eta}")
    if made.p < 1:
        raise ValueError(f"p must be at least 1; it is {made.p}")
    if not (0 <= made.start <= 1) or (update != "di" and made.start in (0, 1)):
        raise ValueError(
            f"start, the first pi(a_1), must lie {'in [0, 1]' if update == 'di' else 'in (0, 1)'} "
            f"for {update}; it is {made.start}"
        )
    return made


def count(
    n: int,
    update: str = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
    strict: bool = False,
    max_steps: int = MAX_STEPS,
) -> int | float:
    """Return the number of backward updates that undo `n` forward ones, exactly.

    Parameters
    ----------
    n : int
        The number of forward updates, at least 0.
    update : {"pg-sm", "pg-es", "di", "ce", "mce"}
        The policy update.
    eta : int, Fraction, str or float
        The (first) weight, meaning exactly what it says: "0.3" and 0.3 are 3/10.
    schedule : {"constant", "inverse-sqrt"}
        The weights eta, or eta / sqrt(t) with one counter t = 1, 2, ... through both phases.
    p, factor :
        Of the escort update: the exponent (at least 1), and whether the gradient's factor
        p / norm is kept ("keep") or dropped ("drop").
    start : int, Fraction, str or float
        pi_0(a_1).
    strict : bool
        Wait for pi(a_1) < pi_0(a_1) instead of <=.
    max_steps : int
        Give up, with a RuntimeError, after that many backward updates.

    Returns
    -------
    int or math.inf
    """
    return counts([n], update, eta, schedule, p, factor, start, strict, max_steps)[0]


def counts(
    ns: Sequence[int],
    update: str = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
    strict: bool = False,
    max_steps: int = MAX_STEPS,
) -> list[int | float]:
    """Return `count` for several numbers of forward updates; the forward path is walked once."""
    chosen = setting(update, eta, schedule, p, factor, start)
    for n in ns:
        if n != int(n) or n < 0:
            raise ValueError(f"n must be an integer, at least 0; it is {n!r}")
    if update == "di" and schedule == "inverse-sqrt":
        return [certified(partial(_direct_decaying, int(n), chosen, strict)) for n in ns]
    return certified(partial(_counts, ns, chosen, strict, max_steps))


def _counts(ns: Sequence[int], chosen: Setting, strict: bool, max_steps: int) -> list[int | float]:
    found: dict[int, int | float] = {}
    kills = chosen.first_step_kills()
    walker, weights, made = chosen.walker(), chosen.weights(), 0
    for n in sorted(set(ns)):
        if kills and n > 0:
            found[n] = math.inf
            continue
        for w in islice(weights, n - made):
            walker.forward(w)
        made = n
        found[n] = recover(copy(walker), chosen.weights(n + 1), strict, max_steps)
    return [found[n] for n in ns]


def recover(walker: Walker, weights: Iterator[Any], strict: bool, max_steps: int) -> int | float:
    """Count the backward updates until the policy is back at, or strictly below, its start."""
    goal = -1 if strict else 0
    for m, w in enumerate(weights):
        if walker.side() <= goal:
            return m
        if walker.stuck():
            return math.inf
        if m == max_steps:
            break
        walker.backward(w)
    raise RuntimeError(f"the policy has not recovered after {max_steps} backward updates")


def _direct_decaying(n: int, chosen: Setting, strict: bool) -> int | float:
    r"""Count for DI with weights :math:`\eta/\sqrt t`.

    Forward, :math:`2(\pi - x)` grows to :math:`E = \min\{\eta\sum_{t\le n} t^{-1/2}, 2(1-x)\}`;
    the count is the least :math:`m` with :math:`\eta\sum_{n<t\le n+m} t^{-1/2} \ge E` (strict:
    :math:`>`). Where balls leave a sign open, the sum of square roots is tested for being zero.
    """
    eta, room = chosen.eta, 2 * (1 - chosen.start)
    if strict and chosen.start == 0:
        return math.inf

    def tested_sign(
        value: arb, up_to: Iterable[int], minus: Iterable[int], constant: Fraction
    ) -> int:
        try:
            return sign(value)
        except Undecided:
            terms = [(eta, t) for t in up_to] + [(-eta, t) for t in minus]
            if root_sum([*terms, (constant, 1)]):
                raise
            return 0

    excess, size = arb(0), ball(eta)
    for t in range(1, n + 1):
        excess += size * arb(t).rsqrt()
    clipped = tested_sign(excess - ball(room), range(1, n + 1), (), -room) > 0
    learnt, top = ((), room) if clipped else (range(1, n + 1), Fraction(0))
    if clipped:
        excess = ball(room)
    goal = -1 if strict else 0
    for m in count_from(0):
        if tested_sign(excess, learnt, range(n + 1, n + m + 1), top) <= goal:
            return m
        excess -= size * arb(n + m + 1).rsqrt()
    raise AssertionError("unreachable: the weights do not sum to a finite number")


def path(
    n: int,
    steps: int,
    update: str = "pg-sm",
    eta: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
) -> list[float]:
    """Return pi_t(a_1) for t = 0..n+steps: `n` forward updates, then `steps` backward ones."""
    chosen = setting(update, eta, schedule, p, factor, start)
    walker = chosen.walker()
    values = [walker.probability()]
    for t, w in enumerate(islice(chosen.weights(), n + steps)):
        # DI walks on rationals; for a picture the nearest ones to its irrational weights will do
        weight: Any = Fraction(float(w)) if update == "di" else w
        (walker.forward if t < n else walker.backward)(weight)
        values.append(walker.probability())
    return values


# The bounds


def bound_ce(n: int, eta: float) -> float:
    r"""Return Theorem 4(iii)'s bound, :math:`2 + \frac1\eta\log(1 + 2\eta n)`."""
    return 2 + math.log1p(2 * eta * n) / eta


def bound_ce_sharp(n: int, eta: float) -> float:
    r"""Return :math:`2 + \frac1\eta\log(1 + 2\eta(n-1))`, which also bounds strict recovery."""
    return 2 + math.log1p(2 * eta * max(n - 1, 0)) / eta


def bound_di(n: int, eta: Fraction, start: Fraction = Fraction(1, 2)) -> int:
    r"""Return DI's count :math:`\min\{n, \lceil 2(1-x)/\eta\rceil\}`; at 1/2, Theorem 4(ii)'s."""
    return min(n, math.ceil(2 * (1 - start) / eta))


def bound_decaying_pg(n: int) -> float:
    r"""Return Theorem 5(i)'s lower bound, :math:`3n - 4\sqrt n + 1`."""
    return 3 * n - 4 * math.sqrt(n) + 1


def bound_decaying_di(n: int, eta: float) -> float:
    r"""Return Theorem 5(ii)'s bound."""
    root = math.sqrt(n)
    return min(3 * n + 4 * root + 1, (1 / eta + 1) ** 2 + root * (2 + 2 / eta))


def bound_decaying_ce(n: int, eta: float) -> float:
    r"""Return Theorem 5(iii)'s bound, with :math:`L = \log(1 + 4\eta\sqrt n)`."""
    root = math.sqrt(n)
    log = math.log1p(4 * eta * root)
    return (4 + log / (2 * eta)) ** 2 + root * (8 + log / eta)


def bound_decaying_ce_sharp(n: int, eta: float) -> float:
    r"""Return Theorem 5(iii)'s bound with 2 and 4 in the place of 4 and 8."""
    root = math.sqrt(n)
    log = math.log1p(4 * eta * root)
    return (2 + log / (2 * eta)) ** 2 + root * (4 + log / eta)


def escape_ratio(eta: Number, steps: int = 3000) -> tuple[float, float]:
    r"""Return :math:`\kappa_\infty` and the limit of :math:`n'/n` for PG-ES, p = 2, factor dropped.

    From the uniform start (1, 1). :math:`\kappa_k = \eta / (2\|\theta_k\|)` decreases along the
    forward path to :math:`\kappa_\infty`; if that exceeds 1/2 the angle shrinks by
    :math:`2\kappa_\infty - 1` a step, changing sign, and grows by :math:`2\kappa_\infty + 1` a step
    on the way back, so that :math:`n'/n \to -\log(2\kappa_\infty-1)/\log(2\kappa_\infty+1)`.
    """
    chosen = setting("pg-es", eta, factor="drop")
    walker = Escort(chosen.start, chosen.p, chosen.factor)
    for w in islice(chosen.weights(), steps):
        walker.forward(w)
    kappa = float(ball(chosen.eta) / (2 * (walker.u1**2 + walker.u2**2).sqrt()))
    if kappa <= 0.5:
        return kappa, math.inf
    return kappa, -math.log(2 * kappa - 1) / math.log(2 * kappa + 1)


# The checks


Case: TypeAlias = tuple[dict[str, Any], float]
SMALL_NS = (1, 2, 3, 5, 10, 30, 100, 300)
ETAS = ("0.01", "0.1", "0.3", "1", "2", "5")


def rule(
    claim: str,
    unit: str,
    corrected: Iterable[Case],
    printed: Iterable[Case] = (),
    counterexample: Status = Status.CORRECTED,
    evidence: Sequence[dict[str, Any]] = (),
    corrected_unit: str = "",
) -> Verdict:
    """Turn margins into a verdict.

    Parameters
    ----------
    claim, unit : str
        The claim's identifier; what a margin is.
    corrected : iterable of (instance, margin)
        Instances of the corrected statement (of the printed one, where it needs no correction).
    printed : iterable of (instance, margin)
        Instances that the printed statement covers and the corrected one excludes.
    counterexample : Status
        The status when an instance of `printed` has a negative margin.
    evidence : sequence of dict
        The table to show; by default the worst instances.
    corrected_unit : str
        What a margin of the corrected statement is, where it differs from `unit`.
    """
    ours_unit = corrected_unit or unit
    ours = sorted(corrected, key=lambda case: case[1])
    theirs = sorted(printed, key=lambda case: case[1])
    worst, margin = ours[0]
    table = tuple(evidence) or tuple({**case, "margin": m} for case, m in ours[:4])
    if margin < 0:
        summary = f"Violated, also as corrected: {ours_unit} is {margin:.4g} at {_words(worst)}."
        return Verdict(claim, Status.FALSE, margin, summary, table, worst)
    found = f"over {len(ours)} instances {ours_unit} is at least {margin:.4g} (at {_words(worst)})"
    if theirs and theirs[0][1] < 0:
        instance, violation = theirs[0]
        summary = f"As printed, {unit} is {violation:.4g}; corrected, {found}."
        table = tuple(evidence) or tuple({**case, "margin": m} for case, m in theirs[:6])
        return Verdict(claim, counterexample, violation, summary, table, instance)
    return Verdict(claim, Status.HOLDS, margin, found[0].upper() + found[1:] + ".", table)


def _words(instance: dict[str, Any]) -> str:
    return ", ".join(f"{key} = {value}" for key, value in instance.items())


def _cases(
    bound: Callable[[int, Fraction, Fraction], float],
    ns: Sequence[int],
    *,
    upper: bool = False,
    etas: Iterable[Number] = ETAS,
    starts: Iterable[Number] = ("1/2",),
    **process: Any,
) -> Iterator[Case]:
    """Yield how far each count stays on its side of `bound(n, eta, start)`."""
    for eta, start in product(etas, starts):
        found = counts(ns, eta=eta, start=start, **process)
        for n, back in zip(ns, found, strict=True):
            room = back - bound(n, exact(eta), exact(start))
            instance = {"n": n, "eta": str(eta), "start": str(start), "n'": back}
            yield {**process, **instance}, float(-room if upper else room)


def check_intro(claimed: Callable[[int], float] = lambda n: n) -> Verdict:
    """Check that undoing n PG-SM updates takes n, with more than two actions.

    With q = (1, 0, ..., 0), then its opposite, the other K - 1 actions stay equally likely, and the
    first one moves exactly as with two actions, start 1/K and weight eta K / (2(K - 1)).
    """

    def cases(actions: Iterable[int]) -> Iterator[Case]:
        ns = (1, 2, 3, 5, 10)
        for K, eta in product(actions, ("0.25", "0.5", "1", "1.25", "2", "5")):
            weight = exact(eta) * Fraction(K, 2 * (K - 1))
            found = counts(ns, "pg-sm", weight, start=Fraction(1, K))
            for n, back in zip(ns, found, strict=True):
                yield {"actions": K, "eta": eta, "n": n, "n'": back}, float(back - claimed(n))

    return rule("sec:intro/unlearning", "n' - n", cases(range(2, 9)), cases((10, 12)), Status.FALSE)


LINKS: dict[str, Callable[[arb], arb]] = {
    "logistic": lambda x: 1 / (2 + x.exp() + (-x).exp()),
    "normal": lambda x: (-x * x / 2).exp() / (2 * arb.pi()).sqrt(),
    "Cauchy": lambda x: 1 / (arb.pi() * (1 + x * x)),
    "Laplace": lambda x: (-x).exp() / 2,
}
r"""Densities :math:`F'` on :math:`[0, \infty)` of policies :math:`\pi_\theta(a_1) = F(\theta_1 -
\theta_2)` that satisfy the three assumptions of Theorem 4(i) there."""


class Linked(_Softmax):
    r"""The policy gradient of :math:`\pi_\theta(a_1) = F(\theta_1-\theta_2)`, from the median."""

    def __init__(self, density: Callable[[arb], arb]) -> None:
        super().__init__(Fraction(1, 2))
        self.density = density

    def forward(self, w: arb) -> None:
        self.y += 2 * w * self.density(self.y)

    def backward(self, w: arb) -> None:
        self.y -= 2 * w * self.density(self.y)


def linked_count(n: int, eta: Number, density: Callable[[arb], arb]) -> int | float:
    """Return the count n' for the policy gradient of a link with that density."""

    def walk() -> int | float:
        walker, w = Linked(density), ball(eta)
        for _ in range(n):
            walker.forward(w)
        return recover(walker, repeat(w), strict=False, max_steps=MAX_STEPS)

    return certified(walk)


def check_theorem_4_i(links: Mapping[str, Callable[[arb], arb]] | None = None) -> Verdict:
    """Check n' >= n under the three assumptions; a constant policy satisfies them and has n' = 0.

    Parameters
    ----------
    links : mapping
        The densities F' of the policies to try; by default four that the assumptions allow.
    """
    chosen = LINKS if links is None else links

    def cases() -> Iterator[Case]:
        for (name, density), eta, n in product(chosen.items(), ("0.1", "1", "3"), (1, 2, 5, 20)):
            back = linked_count(n, eta, density)
            yield {"link": name, "eta": eta, "n": n, "n'": back}, float(back - n)

    still = [
        ({"link": "constant policy", "eta": "1", "n": n, "n'": back}, float(back - n))
        for n in (1, 10)
        for back in [linked_count(n, 1, lambda x: 0 * x)]
    ]
    return rule("thm:unlearn/i", "n' - n", cases(), still)


def check_theorem_4_i_softmax(
    extra: int = 1, starts: Sequence[Number] = ("1/2", "3/4", "0.99")
) -> Verdict:
    """Check n' >= n + 1 for PG-SM from pi_0(a_1) >= 1/2, and that n' >= n can fail below.

    Parameters
    ----------
    extra : int
        The claim checked is n' >= n + extra.
    starts : sequence
        The starts that the corrected statement covers.
    """
    ours = _cases(lambda n, *_: n + extra, SMALL_NS, update="pg-sm", starts=starts)
    theirs = _cases(lambda n, *_: n, (2, 3, 10), update="pg-sm", etas=("5",), starts=("1/20",))
    return rule("thm:unlearn/i/pg-sm", f"n' - (n + {extra})", ours, theirs)


def check_theorem_4_i_escort(
    extra: int = 1,
    exponents: Sequence[Number] = (2, "2.5", 3, 5),
    factor: str = "keep",
) -> Verdict:
    r"""Check n' >= n + 1 for PG-ES, p >= 2, exact gradient, uniform start, every eta.

    At :math:`\eta = 4/p` the first update sets :math:`\theta_2` to zero and the count is infinite.

    Parameters
    ----------
    extra, exponents, factor :
        The claim checked, n' >= n + extra, and the escort updates it is checked on.
    """
    ns, etas = (1, 2, 3, 10, 50), ("0.05", "0.5", "1.5", "3", "5", "20")

    def ours() -> Iterator[Case]:
        for p in exponents:
            process: dict[str, Any] = {"update": "pg-es", "p": str(p), "factor": factor}
            dead = (4 / exact(p),) if factor == "keep" else ()
            yield from _cases(lambda n, *_: n + extra, ns, etas=(*etas, *dead), **process)

    def theirs() -> Iterator[Case]:
        for p, kind, eta, n in (
            ("3/2", "keep", "0.1", 2000),
            ("1.9", "keep", "1", 100),
            ("1", "keep", "3", 2),
            ("2", "drop", "5", 10),
        ):
            process: dict[str, Any] = {"update": "pg-es", "p": p, "factor": kind}
            yield from _cases(lambda n, *_: n, (n,), etas=(eta,), **process)
        far = Fraction(10000, 10001)  # theta_0 proportional to (1, 0.01)
        process = {"update": "pg-es", "p": "2", "factor": "keep"}
        yield from _cases(lambda n, *_: n, (10,), etas=("1.8",), starts=(far,), **process)

    return rule("thm:unlearn/i/pg-es", f"n' - (n + {extra})", ours(), theirs(), Status.FALSE)


def check_escort_dropped(tolerance: float = 0.01, sign_of_limit: int = 1) -> Verdict:
    r"""Check the window where PG-ES, p = 2, factor dropped, unlearns faster than it learnt.

    The count over n = 2000 updates is compared with the limit of :math:`n'/n` (`escape_ratio`):
    below 1 for :math:`2 < \eta/\|\theta_0\| < 11.06`, above 1 beyond.

    Parameters
    ----------
    tolerance : float
        Allowed between the ratio at n = 2000 and its limit; the remainder is O(1/n).
    sign_of_limit : {1, -1}
        With -1 the two sides are exchanged, which is wrong.
    """
    n, norm = 2000, math.sqrt(2)
    ours: list[Case] = []
    for x, side in ((2.2, -1), (3, -1), (5, -1), (8, -1), (10, -1), (12, 1), (15, 1), (25, 1)):
        eta = Fraction(x * norm).limit_denominator(1000)
        kappa, limit = escape_ratio(eta)
        ratio = count(n, "pg-es", eta, factor="drop") / n
        right_side = sign_of_limit * side * (limit - 1) > 0
        margin = tolerance - abs(ratio - limit) if right_side else -abs(limit - 1)
        row = {"eta / |theta_0|": x, "kappa": kappa, "limit": limit, f"n'/n at {n}": ratio}
        ours.append((row, margin))
    theirs = _cases(lambda n, *_: n, (n,), update="pg-es", etas=("5",), factor="drop")
    claim, room = "thm:unlearn/i/pg-es-dropped", f"{tolerance:g} minus the distance to the limit"
    return rule(claim, "n' - n", ours, theirs, Status.FALSE, [row for row, _ in ours], room)


def check_theorem_4_ii(
    claimed: Callable[[int, Fraction, Fraction], int] = bound_di, trials: int = 400
) -> Verdict:
    """Check DI's exact count on random rational weights and starts.

    Parameters
    ----------
    claimed : callable
        The count expected, a function of n, eta and the start.
    trials : int
        How many random instances.
    """
    rng = np.random.default_rng(4)

    def cases() -> Iterator[Case]:
        for i in range(trials):
            n, a, b = (int(rng.integers(*span)) for span in ((0, 40), (1, 40), (1, 40)))
            start = Fraction(1, 2) if i % 2 else Fraction(int(rng.integers(0, 11)), 10)
            back = count(n, "di", Fraction(a, b), start=start)
            instance = {"n": n, "eta": f"{a}/{b}", "start": str(start), "n'": back}
            yield instance, 0.0 - abs(float(back - claimed(n, Fraction(a, b), start)))

    return rule("thm:unlearn/ii", "minus the distance to the formula", cases())


def check_theorem_4_iii(
    bound: Callable[[int, float], float] = bound_ce_sharp, update: str = "ce"
) -> Verdict:
    """Check the logarithmic bound of CE and MCE, strict recovery included.

    Parameters
    ----------
    bound : callable
        The bound on the strict count, a function of n and eta.
    update : str
        The update that is claimed to obey it.
    """
    starts = ("1/2", "0.9", "0.999") if update == "ce" else ("1/2",)
    etas = ("0.001", "0.01", "0.1", "1", "10", "1000") if update == "ce" else ("0.1", "1")
    shared: dict[str, Any] = {"upper": True, "update": update, "strict": True}
    ours = _cases(
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        etas=etas,
        starts=starts,
        **shared,
    )
    theirs = _cases(
        lambda n, eta, _: bound_ce(n, float(eta)),
        (3, 6),
        upper=True,
        etas=("1",),
        starts=("0.12", "1/20000"),
        update="ce",
    )
    return rule("thm:unlearn/iii", "bound - n'", ours, theirs)


def check_theorem_5_i(
    bound: Callable[[int], float] = bound_decaying_pg,
    update: str = "pg-sm",
    etas: Sequence[Number] = ETAS,
) -> Verdict:
    """Check the lower bound for PG-SM with decaying weights; at n = 0 it says 0 >= 1.

    Parameters
    ----------
    bound, update, etas :
        The lower bound on the count, and where it is checked.
    """
    shared: dict[str, Any] = {"update": update, "schedule": "inverse-sqrt"}
    starts = ("1/2", "0.9")
    ours = _cases(lambda n, *_: bound(n), SMALL_NS, etas=etas, starts=starts, **shared)
    none = _cases(lambda n, *_: bound(n), (0,), etas=("1",), **shared)
    low = _cases(lambda n, *_: bound(n), (2,), etas=("8.9",), starts=("1/20",), **shared)
    return rule("thm:unlearndecay/i", "n' - (3n - 4 sqrt(n) + 1)", ours, chain(none, low))


def check_theorem_5_i_escort(
    exponents: Sequence[Number] = (2, 3, 5), factor: str = "keep"
) -> Verdict:
    """Check the same bound for PG-ES: it holds for p >= 2 and fails for p < 2.

    Parameters
    ----------
    exponents, factor :
        The escort updates on which the bound is checked.
    """
    shared: dict[str, Any] = {"update": "pg-es", "schedule": "inverse-sqrt", "factor": factor}

    def cases(ps: Iterable[Number], etas: Iterable[Number], ns: Sequence[int]) -> Iterator[Case]:
        for p in ps:
            yield from _cases(lambda n, *_: bound_decaying_pg(n), ns, etas=etas, p=str(p), **shared)

    ours = cases(exponents, ("0.1", "1", "5"), (1, 2, 10, 100))
    theirs = cases(("3/2",), ("0.1", "1"), (10, 100, 1000))
    unit = "n' - (3n - 4 sqrt(n) + 1)"
    return rule("thm:unlearndecay/i/pg-es", unit, ours, theirs, Status.FALSE)


def check_theorem_5_ii(bound: Callable[[int, float], float] = bound_decaying_di) -> Verdict:
    """Check the upper bound for DI with decaying weights, from any start."""
    cases = _cases(
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        upper=True,
        starts=("0", "1/4", "1/2", "9/10", "1"),
        update="di",
        schedule="inverse-sqrt",
    )
    return rule("thm:unlearndecay/ii", "bound - n'", cases)


def check_theorem_5_iii(
    bound: Callable[[int, float], float] = bound_decaying_ce_sharp,
) -> Verdict:
    """Check the upper bound for CE and MCE with decaying weights, strict recovery included."""
    shared: dict[str, Any] = {"upper": True, "update": "ce", "schedule": "inverse-sqrt"}
    ours = _cases(
        lambda n, eta, _: bound(n, float(eta)),
        (0, *SMALL_NS),
        starts=("1/2", "0.9"),
        strict=True,
        **shared,
    )
    theirs = _cases(
        lambda n, eta, _: bound_decaying_ce(n, float(eta)),
        (30,),
        etas=("1",),
        starts=("1/150",),
        **shared,
    )
    return rule("thm:unlearndecay/iii", "bound - n'", ours, theirs)


def worst_sequence(n: int, c: float, decay: Callable[[int], float]) -> list[float]:
    r"""Return the largest :math:`X_0, \dots, X_n \ge 0` that the recursion of a lemma allows.

    Of :math:`X_{k+1} \le X_k + c\,r_k e^{-X_k}` the right-hand side is convex in :math:`X_k`, so
    its maximum over :math:`0 \le X_k \le M_k` is taken at an end: :math:`M_{k+1} = \max(c\,r_k,
    M_k + c\,r_k e^{-M_k})` is attained.
    """
    largest = [0.0]
    for k in range(n):
        step = c * decay(k)
        largest.append(max(step, largest[-1] + step * math.exp(-largest[-1])))
    return largest


def _check_lemma(
    claim: str,
    decay: Callable[[int], float],
    bound: Callable[[int, float], float],
    dip: float,
) -> Verdict:
    def ours() -> Iterator[Case]:
        for c in (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0):
            for n, largest in enumerate(worst_sequence(2000, c, decay)):
                if n:
                    yield {"c": c, "n": n, "largest X_n": largest}, bound(n, c) - largest

    last = dip + decay(1) * math.exp(-dip)
    row = {"c": 1.0, "X_0, X_1, X_2": f"0, {dip:g}, {last:.6f}", "bound": bound(2, 1.0)}
    return rule(claim, "bound - X_n", ours(), [(row, bound(2, 1.0) - last)], Status.FALSE)


def bound_lemma_11(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + cn)`."""
    return c + math.log1p(c * n)


def bound_lemma_12(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + 2c\sqrt n)`."""
    return c + math.log1p(2 * c * math.sqrt(n))


def check_lemma_11(
    bound: Callable[[int, float], float] = bound_lemma_11, dip: float = -3.0
) -> Verdict:
    """Check Lemma 11 on the extremal non-negative sequence, and break it with a negative term.

    Parameters
    ----------
    bound : callable
        The bound on X_n, a function of n and c.
    dip : float
        X_1 of the sequence that is allowed to be negative.
    """
    return _check_lemma("lem:Xn<", lambda _: 1.0, bound, dip)


def check_lemma_12(
    bound: Callable[[int, float], float] = bound_lemma_12, dip: float = -3.0
) -> Verdict:
    """Check Lemma 12 in the same way as Lemma 11."""
    return _check_lemma("lem:Xn<sqrt", lambda k: 1 / math.sqrt(k + 1), bound, dip)


def comparison(
    n: int, eta: Number, update: str = "pg-sm", schedule: str = "constant"
) -> list[dict[str, Any]]:
    r"""Evaluate each term of the comparison lemma along one run from the uniform start.

    For PG-SM the travel time of a step from :math:`\delta` to :math:`\delta'` is
    :math:`|\int dx / 2g|` with :math:`\int dx/g = 2x + 2\sinh x`; for PG-ES, p = 2, it is
    :math:`R^2|\int d\varphi / \sin 2\varphi|` with
    :math:`\int d\varphi/\sin 2\varphi = \frac12\log\tan\varphi` and :math:`R = \|\theta_n\|`. The
    rows hold, step by step, the weight and the travel time: at least the weight forward, at most
    the weight backward (the last step is cut at the start).
    """
    chosen = setting(update, eta, schedule)
    walker: Any = chosen.walker()
    clock = _travel_clock(update)
    rows, times, steps = [], [clock(walker)], []
    total = n + int(count(n, update, eta, schedule))
    scale = 1.0
    for t, w in enumerate(islice(chosen.weights(), total), start=1):
        (walker.forward if t <= n else walker.backward)(w)
        times.append(clock(walker) if t < total else clock(chosen.walker()))
        steps.append(float(w))
        if t == n and update == "pg-es":
            scale = float(walker.u1**2 + walker.u2**2)
    for t, w in enumerate(steps, start=1):
        travel = scale * abs(times[t] - times[t - 1])
        phase = "forward" if t <= n else "backward"
        rows.append({"t": t, "phase": phase, "weight": w, "travel time": travel})
    return rows


def _travel_clock(update: str) -> Callable[[Any], float]:
    if update == "pg-sm":
        return lambda walker: float(walker.y + walker.y.sinh())
    if update == "pg-es":
        return lambda walker: float(abs(walker.u2 / walker.u1).log() / 2)
    raise ValueError(f"update must be pg-sm or pg-es (with p = 2); it is {update!r}")


def check_comparison(
    runs: Sequence[tuple[int, Number, str, str]] = (
        (20, "0.3", "pg-sm", "constant"),
        (20, "3", "pg-sm", "inverse-sqrt"),
        (20, "1", "pg-es", "constant"),
        (20, "5", "pg-es", "constant"),
        (20, "5", "pg-es", "inverse-sqrt"),
    ),
) -> Verdict:
    """Check the comparison lemma term by term: forward travel >= weight >= backward travel.

    Float arithmetic: the terms are compared to a relative accuracy of 1e-9, far above the rounding
    of their sum of at most a few hundred numbers.
    """
    cases: list[Case] = []
    for n, eta, update, schedule in runs:
        for row in comparison(n, eta, update, schedule):
            excess = row["travel time"] / row["weight"] - 1
            room = excess if row["phase"] == "forward" else -excess
            instance = {"update": update, "eta": str(eta), "schedule": schedule, "t": row["t"]}
            cases.append((instance, room + 1e-9))
    return rule("lem:comparison", "relative room", cases)
