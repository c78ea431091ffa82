r"""Two-action policies in coordinates in which steps of unlearning can be counted exactly.

With two actions and values (1, 0), a forward update, or (0, 1), a backward one, the state of each
of the paper's updates is one or two numbers with an exact initial value:

- `pg-sm`, `ce`, `mce`: the change :math:`y = \delta - \delta_0` of the log-odds
  :math:`\delta = \theta_1 - \theta_2`, where :math:`\pi(a_1) = \sigma(\delta)`. `pg-sm` changes it
  by :math:`\pm 2w\,\sigma(\delta)\sigma(-\delta)`. `ce` and `mce`, which coincide for two actions,
  change it by :math:`+2w\,\sigma(-\delta)` forward and :math:`-2w\,\sigma(\delta)` backward;
- `di`: :math:`\pi(a_1)`, a rational number, changes by :math:`\pm w/2` and is clipped to [0, 1];
- `pg-es`: the ratios :math:`u_a = \theta_a/\theta_{0,a}` (see `EscortProcess`).

These classes repeat the updates of `pu_lib.updates` on purpose: the sign of one number, computed in
exact arithmetic and independently of the other chapters, decides whether a policy has returned to
its initial probability. A test compares the two implementations.

Any other update takes its own steps in floats (`FloatProcess`). Its policy counts as equal to the
initial policy if pi(a_1) is within 1e-12 of the initial probability.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import count as count_from
from itertools import repeat
from typing import Any, Literal, get_args

import numpy as np
from flint import arb
from numpy.typing import NDArray

from pu_lib import updates
from pu_lib.arrays import Floats, safe_repr
from pu_lib.exact import Number, ball, exact, is_one, sign
from pu_lib.updates import EscortFactor, EscortPolicyGradient, Update, as_update

__all__ = [
    "PROCESSES",
    "TIE",
    "OutOfReach",
    "TwoActionProblem",
    "TwoActionProcess",
    "equivalent_updates",
    "parse_problem",
    "require_count",
]

Schedule = Literal["constant", "inverse-sqrt", "geometric"]
TIE = 1e-12
"""The tolerance within which a float equals its initial value; rounding errors are 2e-16."""

LARGEST = 10**300
"""The largest number of updates or states that is accepted."""


def require_count(name: str, value: Any, low: int) -> int:
    """Return `value` as an integer from `low` to `LARGEST`, or raise a `ValueError`."""
    try:
        right = not isinstance(value, (bool, str, bytes)) and value == int(value)
        right = bool(right and low <= value <= LARGEST)
    except (TypeError, ValueError, OverflowError):
        right = False
    if not right:
        raise ValueError(
            f"{name}: expected an integer from {low} to 10^300, got {safe_repr(value)}."
        )
    return int(value)


class OutOfReach(ValueError):  # noqa: N818 - an outcome, not an error
    """Raised if a count requires too many steps; the message states the proved bounds."""


@dataclass(frozen=True)
class TwoActionProblem:
    """The arguments of a count as exact numbers (see `parse_problem`).

    `ratio` is the ratio of geometric weights, or 1 for other schedules.
    """

    update: Update
    step_size: Fraction
    schedule: str
    p: Fraction
    factor: str
    start: Fraction
    ratio: Fraction = Fraction(1)

    @property
    def kind(self) -> type[TwoActionProcess]:
        """The class of processes for this update."""
        return PROCESSES.get(type(self.update), FloatProcess)

    @property
    def has_float_weight(self) -> bool:
        """Whether the step size is in the range in which the bounds can be computed as floats."""
        return Fraction(1, 10**150) <= self.step_size <= 10**150

    @property
    def has_root_weights(self) -> bool:
        """Whether the weights of DI have square roots, which `DirectProcess` cannot represent."""
        return self.kind is DirectProcess and self.schedule == "inverse-sqrt"

    def weights(self, first: int = 1) -> Iterator[Any]:
        """Yield the weights of all steps from step `first` in the arithmetic of the process."""
        floats, rational = self.kind is FloatProcess, self.kind is DirectProcess
        if floats and _log(self.step_size) + first * _log(self.ratio) > 700:
            raise OutOfReach(f"weight {first} is beyond the range of floats (1.8e308)")
        if self.schedule == "inverse-sqrt":
            if floats:
                size = float(self.step_size)
                return (size / math.sqrt(t) for t in count_from(first))
            enclosed = ball(self.step_size)
            return (enclosed * arb(t).rsqrt() for t in count_from(first))
        convert: Any = float if floats else (Fraction if rational else ball)
        if self.schedule == "constant":
            return repeat(convert(self.step_size))
        return _geometric(
            convert(self.step_size) * convert(self.ratio) ** (first - 1), convert(self.ratio)
        )

    def require_resolved(self, n: int) -> None:
        """Raise `OutOfReach` if the last of `n` forward steps in floats is too short.

        A step is too short if it would change the initial softmax policy by less than 2500 times
        `TIE`.
        """
        if self.kind is not FloatProcess or n == 0:
            return
        last = _log(self.step_size) + (n - 1) * _log(self.ratio)
        if self.schedule == "inverse-sqrt":
            last -= math.log(n) / 2
        if last + _log(4 * self.start * (1 - self.start)) < math.log(1e4 * TIE):
            raise OutOfReach(
                f"update {n} of {self.update.name} moves the policy by too little: in floats a "
                f"policy within {TIE:g} of its start counts as back at it"
            )

    def process(self) -> TwoActionProcess:
        """Return the process in its initial state at the current precision."""
        return self.kind.at_start(self)

    def batch(self, count: int) -> BatchedProcess:
        """Return a batch of `count` processes in their initial state at the current precision."""
        first = self.process()
        if isinstance(first, FloatProcess):
            return FloatBatch(first, np.tile(first.theta, (count, 1)))
        return BatchedProcess([first, *(self.process() for _ in range(count - 1))])

    def step_hitting_zero(self) -> float:
        r"""Return the number of forward steps after which theta_2 is exactly zero, or infinity.

        Only escort updates can make theta_2 zero, and only the first and the second step are
        tested. The first step multiplies :math:`\theta_2` by :math:`1 - \eta\,p\,c_2\,x` (with the
        factor dropped, :math:`p` is replaced by :math:`2^{1/p}`). With :math:`p = a/b`, the
        :math:`a`-th power of the subtracted number is rational, so that the test is exact. For p =
        2 and the factor kept, both parameters are rational after the first step, and the second
        step is also tested. The second step cannot make theta_2 zero if weights decay, because its
        weight then has a square root.
        """
        if self.kind is not EscortProcess:
            return math.inf
        a, b = self.p.numerator, self.p.denominator
        x, y, eta = self.start, 1 - self.start, self.step_size
        keep = self.factor == "keep"
        times, power = (eta * self.p * x, Fraction(4)) if keep else (eta * x, Fraction(2))
        if is_one((times, a), (y, a - 2 * b), (power, -b)):
            return 1
        if keep and self.p == 2 and self.schedule != "inverse-sqrt":
            u1, norm = 1 + eta * y, 1 + eta**2 * x * y
            return 2 if self.ratio * eta * x * u1**2 == norm**2 else math.inf
        return math.inf


def _log(x: Fraction) -> float:
    """Return the logarithm of a fraction with terms that may exceed the range of floats."""
    return math.log(x.numerator) - math.log(x.denominator)


def _geometric(weight: Any, ratio: Any) -> Iterator[Any]:
    """Yield a weight, then the previous weight times the ratio; floats end at infinity."""
    while True:
        yield weight
        weight = weight * ratio


def parse_problem(
    update: str | Update = "pg-sm",
    step_size: Number = 1,
    schedule: str = "constant",
    p: Number = 2,
    factor: str = "keep",
    start: Number = "1/2",
) -> TwoActionProblem:
    """Return validated arguments of a count as exact numbers.

    Parameters
    ----------
    update : str or Update
        A name or an update. `p` and `factor` are used only for a name without options: an escort
        update that is an object or a name such as ``pg-es factor=drop`` has its own options.
    step_size : int, Fraction, str or float
        The constant or first weight, which is positive and read exactly ("0.3" and 0.3 are 3/10).
    schedule : {"constant", "inverse-sqrt", "geometric:c"}
        The weights step_size, step_size / sqrt(t), or step_size * c^(t - 1) with a number c > 1,
        as in "geometric:1.1"; t = 1, 2, ... counts the steps of both phases.
    p : int, Fraction, str or float
        The exponent of the escort update, at least 1.
    factor : {"keep", "drop"}
        Whether the escort gradient has the factor p / norm.
    start : int, Fraction, str or float
        The initial pi(a_1), in (0, 1) or, for `di`, in [0, 1].
    """
    chosen = as_update(update)
    if chosen.has_memory:
        raise ValueError(
            f"update: {chosen.name} has memory; counts are for updates without memory."
        )
    by_name = isinstance(update, str) and "=" not in update
    if isinstance(chosen, EscortPolicyGradient) and not by_name:
        p, factor = chosen.p, chosen.factor
    schedule, _, ratio = (
        schedule.partition(":") if isinstance(schedule, str) else (schedule, "", "")
    )
    growth = exact(ratio, "schedule") if schedule == "geometric" and ratio else Fraction(1)
    if (schedule == "geometric" and growth <= 1) or (ratio and schedule != "geometric"):
        raise ValueError(
            "schedule: expected a ratio above 1 for geometric weights, as in 'geometric:1.1', and "
            f"none for others, got {schedule + (':' + ratio if ratio else '')!r}."
        )
    for name, value, allowed in (
        ("schedule", schedule, get_args(Schedule)),
        ("factor", factor, get_args(EscortFactor)),
    ):
        if value not in allowed:
            raise ValueError(f"{name}: expected one of {', '.join(allowed)}, got {value!r}.")
    problem = TwoActionProblem(
        chosen,
        exact(step_size, "step_size"),
        schedule,
        exact(p, "p"),
        factor,
        exact(start, "start"),
        growth,
    )
    if problem.step_size <= 0:
        raise ValueError(f"step_size: expected a number above 0, got {problem.step_size}.")
    if not 1 <= problem.p <= LARGEST:
        raise ValueError(f"p: expected a number from 1 to 10^300, got {safe_repr(p)}.")
    closed = problem.kind is DirectProcess
    if not (0 <= problem.start <= 1) or (not closed and problem.start in (0, 1)):
        raise ValueError(
            f"start: expected a probability in {'[0, 1]' if closed else '(0, 1)'} for "
            f"{chosen.name}, got {problem.start}."
        )
    return problem


# The processes, one update at a time


class TwoActionProcess(ABC):
    """A two-action policy that takes forward and backward steps."""

    @classmethod
    def at_start(cls, problem: TwoActionProblem) -> TwoActionProcess:
        """Return the process of a problem in its initial state."""
        return cls(problem.start)  # type: ignore[call-arg]

    @abstractmethod
    def forward(self, w: Any) -> None:
        """Take one step with q = (1, 0) and weight `w`."""

    @abstractmethod
    def backward(self, w: Any) -> None:
        """Take one step with q = (0, 1) and weight `w`."""

    @abstractmethod
    def sign_of_change(self) -> int:
        """Return the sign of pi(a_1) - pi_0(a_1), which is proved except in `FloatProcess`."""

    @abstractmethod
    def probability(self) -> float:
        """Return pi(a_1) as a float, for figures."""

    def is_fixed_point(self) -> bool:
        """Return whether the policy is a fixed point, which no further step changes."""
        return False

    def remaining_weight_bound(self) -> arb:
        """Return a proved lower bound on the sum of the backward weights until recovery."""
        return arb(0)


class _LogOddsProcess(TwoActionProcess):
    """A softmax policy, represented by y = delta - delta_0, which is exactly 0 initially."""

    def __init__(self, start: Fraction) -> None:
        self.origin = (ball(start) / ball(1 - start)).log()
        self.y = arb(0)

    def sign_of_change(self) -> int:
        return sign(self.y)

    def probability(self) -> float:
        return float(1 / (1 + (-self.origin - self.y).exp()))


class SoftmaxProcess(_LogOddsProcess):
    r"""The PG-SM update :math:`\delta \pm 2w\,\sigma(\delta)\sigma(-\delta)`."""

    def _slope(self) -> arb:
        r"""Return :math:`2\,\sigma(\delta)\sigma(-\delta)`."""
        odds = (self.origin + self.y).exp()
        return 2 * odds / (1 + odds) ** 2

    def forward(self, w: arb) -> None:
        self.y += w * self._slope()

    def backward(self, w: arb) -> None:
        self.y -= w * self._slope()

    def remaining_weight_bound(self) -> arb:
        r"""Return the time :math:`\int dx/2g` of the flow down to :math:`\max(\delta_0, 0)`.

        Here :math:`g(x) = \sigma(x)\sigma(-x)`. A backward step of weight w from :math:`\delta > 0`
        covers a time of at most w (comparison lemma).
        """
        here = self.origin + self.y
        goal = self.origin if self.origin > 0 else arb(0)
        return here + here.sinh() - goal - goal.sinh()


class LinkProcess(_LogOddsProcess):
    r"""The policy gradient of :math:`\pi_\theta(a_1) = F(\theta_1-\theta_2)` from probability 1/2.

    `density` is the function :math:`F'` on :math:`[0, \infty)`, from balls to balls.
    """

    def __init__(self, density: Callable[[arb], arb]) -> None:
        super().__init__(Fraction(1, 2))
        self.density = density

    def forward(self, w: arb) -> None:
        self.y += 2 * w * self.density(self.y)

    def backward(self, w: arb) -> None:
        self.y -= 2 * w * self.density(self.y)


class CrossEntropyProcess(_LogOddsProcess):
    r"""CE and MCE: :math:`\delta + 2w\,\sigma(-\delta)` or :math:`\delta - 2w\,\sigma(\delta)`."""

    def forward(self, w: arb) -> None:
        self.y += 2 * w / (1 + (self.origin + self.y).exp())

    def backward(self, w: arb) -> None:
        self.y -= 2 * w / (1 + (-self.origin - self.y).exp())

    def remaining_weight_bound(self) -> arb:
        r"""Return :math:`y / 2\sigma(\delta)`: no backward step is longer than the first."""
        return self.y * (1 + (-self.origin - self.y).exp()) / 2


class DirectProcess(TwoActionProcess):
    r"""DI with rational weights: :math:`\pi(a_1) \pm w/2`, clipped to [0, 1]."""

    def __init__(self, start: Fraction) -> None:
        self.start = self.x = start

    def forward(self, w: Any) -> None:
        self.x = min(self.x + w / 2, Fraction(1))

    def backward(self, w: Any) -> None:
        self.x = max(self.x - w / 2, Fraction(0))

    def sign_of_change(self) -> int:
        return (self.x > self.start) - (self.x < self.start)

    def probability(self) -> float:
        return float(self.x)

    def is_fixed_point(self) -> bool:
        return self.x == 0

    def remaining_weight_bound(self) -> arb:
        return ball(2 * (self.x - self.start))


class EscortProcess(TwoActionProcess):
    r"""PG-ES in the coordinates :math:`u_a = \theta_a / \theta_{0,a}`, which are initially 1.

    With :math:`x_a = \pi_0(a)` and :math:`N = x_1|u_1|^p + x_2|u_2|^p`, the policy is
    :math:`\pi(a) = x_a|u_a|^p/N`. Its probability :math:`\pi(a_1)` exceeds :math:`\pi_0(a_1)` if
    and only if :math:`|u_1| > |u_2|`. The exact gradient changes :math:`u_a` by
    :math:`w\,\mathrm{sign}(u_a)\,|u_a|^{p-1}\,\frac{p\,c_a}{N}\,\mathrm{adv}(a)` with
    :math:`c_a = x_a^{1-2/p}\,4^{-1/p}`. The initial parameters are
    :math:`\theta_0 = ((2x)^{1/p}, (2-2x)^{1/p})`, which is (1, 1) for x = 1/2. ``factor="drop"``
    omits the factor :math:`p/\|\theta\|_p`, as in the paper's appendix. A parameter that becomes
    exactly 0 stays 0, and the policy is then a fixed point. The parameter :math:`u_2` is set to
    zero after `steps_to_zero` forward steps (see `step_hitting_zero`).
    """

    def __init__(
        self, start: Fraction, p: Fraction, factor: str, steps_to_zero: float = math.inf
    ) -> None:
        self.steps_to_zero = steps_to_zero
        half = p / 2 - 1
        self.half: Any = int(half) if half.denominator == 1 else ball(half)
        self.p, self.drop = ball(p), factor == "drop"
        self.x1, self.x2 = ball(start), ball(1 - start)
        self.u1 = self.u2 = arb(1)
        self.has_weight_bound = start == Fraction(1, 2) and p > 2 and not self.drop
        # k_a = p c_a, which is exactly p / 2 at the uniform start.
        if start == Fraction(1, 2):
            self.k1 = self.k2 = self.p / 2
        else:
            scale, power = self.p * arb(4) ** ball(-1 / p), ball(1 - 2 / p)
            self.k1, self.k2 = scale * self.x1**power, scale * self.x2**power

    @classmethod
    def at_start(cls, problem: TwoActionProblem) -> TwoActionProcess:
        return cls(problem.start, problem.p, problem.factor, problem.step_hitting_zero())

    def _move(self, w: arb) -> None:
        """Take one forward step of weight `w`, or a backward step of weight -`w` if `w` < 0."""
        if self.is_fixed_point():
            return
        # sign(u_a) |u_a|^(p-1) = u_a |u_a|^(p-2) makes a step a multiplication, which keeps the
        # relative accuracy of a parameter that shrinks geometrically, and needs no sign.
        square1, square2 = self.u1 * self.u1, self.u2 * self.u2
        slope1, slope2 = square1**self.half, square2**self.half
        share1, share2 = self.x1 * slope1 * square1, self.x2 * slope2 * square2
        norm = share1 + share2
        scale = w / (norm * norm)
        if self.drop:
            scale *= (2 * norm) ** (1 / self.p) / self.p
        # In a forward update adv(a_1) = pi(a_2) and adv(a_2) = -pi(a_1).
        self.u1 *= 1 + scale * self.k1 * slope1 * share2
        self.u2 *= 1 - scale * self.k2 * slope2 * share1

    def forward(self, w: arb) -> None:
        self._move(w)
        self.steps_to_zero -= 1
        if self.steps_to_zero == 0:
            self.u2 = arb(0)  # exactly zero; the ball computed above only contains zero

    def backward(self, w: arb) -> None:
        self._move(-w)

    def sign_of_change(self) -> int:
        return sign(abs(self.u1) - abs(self.u2))

    def probability(self) -> float:
        first, second = self.x1 * abs(self.u1) ** self.p, self.x2 * abs(self.u2) ** self.p
        return float(first / (first + second))

    def is_fixed_point(self) -> bool:
        return bool(self.u1.is_zero() or self.u2.is_zero())

    def remaining_weight_bound(self) -> arb:
        r"""Return a lower bound on :math:`r^2\int d\psi/h` for p > 2 from the uniform start, or 0.

        With :math:`x = \tan\psi \le 1` the integrand, as a function of x, is at least
        :math:`x^{1-p}/4p`, so that the integral up to 1 is at least :math:`(x^{2-p}-1)/4p(p-2)`.
        """
        if not self.has_weight_bound:
            return arb(0)
        x, radius = abs(self.u2 / self.u1), self.u1**2 + self.u2**2
        return radius * (x ** (2 - self.p) - 1) / (4 * self.p * (self.p - 2))


_VALUES = np.array([[1.0, 0.0], [0.0, 1.0]])


class FloatProcess(TwoActionProcess):
    """Any other update, which takes its own steps in floats and compares policies within `TIE`."""

    def __init__(self, update: Update, start: float) -> None:
        self.update, self.unchanged = update, False
        if start == 0.5:
            self.theta = update.initial(1, 2)[0]
        else:
            self.theta = update.parameters([start, 1.0 - start])
        self.start = float(update.policy(self.theta)[0])

    @classmethod
    def at_start(cls, problem: TwoActionProblem) -> TwoActionProcess:
        return cls(problem.update, float(problem.start))

    def forward(self, w: float) -> None:
        self.theta = _step(self.update, self.theta, _VALUES[0], w)

    def backward(self, w: float) -> None:
        before = self.theta
        self.theta = _step(self.update, before, _VALUES[1], w)
        self.unchanged = np.array_equal(before, self.theta)

    def sign_of_change(self) -> int:
        gap = self.probability() - self.start
        return 0 if abs(gap) <= TIE else int(math.copysign(1, gap))

    def probability(self) -> float:
        return float(self.update._unchecked_policy(self.theta)[0])

    def is_fixed_point(self) -> bool:
        return self.unchanged


def _step(update: Update, theta: Floats, q: Floats, w: float | Floats) -> Floats:
    # Skips the validation of `step`, which would take most of the time of a long run.
    return update._unchecked_step(theta, q, np.asarray(w, np.float64), None)


class BatchedProcess:
    """Several processes that take steps together, each forward or backward."""

    def __init__(self, processes: Sequence[TwoActionProcess]) -> None:
        self.processes = processes

    def move(self, forward: Sequence[bool], w: Any) -> None:
        """Take one forward or backward step of weight `w` with each process."""
        for process, ahead in zip(self.processes, forward, strict=True):
            (process.forward if ahead else process.backward)(w)

    def signs_of_change(self) -> list[int]:
        """Return the sign of pi(a_1) - pi_0(a_1) for each process."""
        return [process.sign_of_change() for process in self.processes]

    def probabilities(self) -> list[float]:
        """Return pi(a_1) for each process."""
        return [process.probability() for process in self.processes]

    def are_fixed_points(self, count: int) -> bool:
        """Return whether the first `count` processes are all at fixed points."""
        return all(process.is_fixed_point() for process in self.processes[:count])


class FloatBatch(BatchedProcess):
    """Several `FloatProcess` objects with parameters in the rows of one array."""

    def __init__(self, process: FloatProcess, theta: Floats) -> None:
        self.update, self.start, self.theta = process.update, process.start, theta
        self.unchanged = np.zeros(len(theta), dtype=bool)

    def move(self, forward: Sequence[bool], w: float | Floats) -> None:
        """Take one step with each process; `w` is one weight or an array of weights."""
        before, back = self.theta, np.logical_not(forward)
        self.theta = _step(self.update, before, _VALUES[back.astype(int)], w)
        self.unchanged = back & (before == self.theta).all(axis=-1)

    def select(self, mask: NDArray[np.bool_]) -> None:
        """Remove the processes that a mask does not select."""
        self.theta, self.unchanged = self.theta[mask], self.unchanged[mask]

    def signs_of_change(self) -> list[int]:
        gaps = self.update._unchecked_policy(self.theta)[:, 0] - self.start
        if np.isnan(gaps).any():
            raise ValueError(f"update {self.update.name}: its policy is not a number.")
        signs = np.where(np.abs(gaps) <= TIE, 0.0, np.copysign(1.0, gaps))
        return [int(sign) for sign in signs.tolist()]

    def probabilities(self) -> list[float]:
        return list(self.update._unchecked_policy(self.theta)[:, 0].tolist())

    def are_fixed_points(self, count: int) -> bool:
        return bool(self.unchanged[:count].all())


PROCESSES: Mapping[type[Update], type[TwoActionProcess]] = {
    updates.SoftmaxPolicyGradient: SoftmaxProcess,
    updates.EscortPolicyGradient: EscortProcess,
    updates.Direct: DirectProcess,
    updates.CrossEntropy: CrossEntropyProcess,
    updates.ModifiedCrossEntropy: CrossEntropyProcess,
    updates.MaskedCrossEntropy: CrossEntropyProcess,
}
"""The exact processes by class of update; subclasses of the update classes use `FloatProcess`."""


def equivalent_updates() -> list[tuple[str, ...]]:
    """Return the names of registered updates, grouped by updates that coincide for two actions."""
    groups: dict[Any, list[str]] = {}
    for name, update in updates.UPDATES.items():
        groups.setdefault(PROCESSES.get(type(update), name), []).append(name)
    return [tuple(names) for names in groups.values()]
