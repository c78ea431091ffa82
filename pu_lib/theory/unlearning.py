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
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count as count_from
from itertools import islice, repeat
from typing import Any, Literal, get_args

from flint import arb

from pu_lib.exact import Number, Undecided, ball, certified, exact, root_sum, sign

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


def bound_lemma_11(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + cn)`."""
    return c + math.log1p(c * n)


def bound_lemma_12(n: int, c: float) -> float:
    r"""Return :math:`c + \log(1 + 2c\sqrt n)`."""
    return c + math.log1p(2 * c * math.sqrt(n))


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
