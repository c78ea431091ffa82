"""Measurements of the entries of Table 1 of the paper, with the same criteria for all updates.

The entries of the paper follow from theorems, and its first column says whether a proof exists.
Here each column is one measurement with a criterion for each possible entry. The text of the
criteria is next to the function that applies the criteria, and uses the same constants; the book
prints the text (`COLUMNS`).

The default options of an update determine its entry. The factor of the escort gradient, which the
paper's "proportional to" omits, is an open option: both readings are measured, and the other one is
an exception if it gives another entry. The exponent p of the escort transform is "usually set to 2"
in the paper, and 2 in its experiments. Other exponents are measured, too, but a different entry is
only a remark, which does not change the status of the cell.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

import numpy as np

from pu_lib.arrays import Floats
from pu_lib.chapters.cross_entropy.cycles import THREE_STATES
from pu_lib.chapters.function_approximation.quantities import compatible_direction
from pu_lib.domains import chain, cliff, duplicated_chain, random_mdp
from pu_lib.formatting import format_number, percent
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import follow, run
from pu_lib.updates import (
    PAPER,
    UPDATES,
    Direct,
    NaturalPolicyGradient,
    Update,
    as_update,
    make_update,
    project_simplex,
    softmax,
)

__all__ = ["COLUMNS", "OPEN_OPTIONS", "OTHER_EXPONENTS", "Column", "Entry", "ExceptionalCase"]
__all__ += ["Threshold", "measure", "thresholds", "variants"]

OPEN_OPTIONS: dict[str, dict[str, object]] = {"factor dropped": {"factor": "drop"}}
"""Further values, by name, of the options that the paper leaves open."""

OTHER_EXPONENTS: dict[str, dict[str, object]] = {"p = 1.5": {"p": 1.5}, "p = 4": {"p": 4.0}}
"""Exponents, by name, other than the one that the paper uses."""


@dataclass(frozen=True)
class ExceptionalCase:
    """A case in which the entry of an update differs from its usual entry.

    The margin is the positive distance of the measured number from the range of the usual entry.
    """

    case: str
    entry: str
    margin: float


@dataclass(frozen=True)
class Entry:
    """The result of a measurement: an entry of the column, and a sentence with the numbers.

    The margin is the positive distance of the measured number from the range of any other entry, in
    the unit of the column. `compared` has the measured number that decides the entry at each
    threshold, by the threshold's name. Exceptions change the status of a cell; remarks do not.
    """

    entry: str
    margin: float
    found: str
    exceptions: tuple[ExceptionalCase, ...] = ()
    remarks: tuple[ExceptionalCase, ...] = ()
    compared: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Column:
    """A column of Table 1: its name in identifiers, its title, and its measurement.

    `criteria` maps each entry to its criterion; `measure` measures only the given update, without
    its other options.
    """

    name: str
    title: str
    measured: str
    criteria: dict[str, str]
    measure: Callable[[Update], Entry]


COLUMNS: dict[str, Column] = {}
"""The columns of Table 1, in the order of the paper."""

_Measure = Callable[[Update], Entry]


def _column(
    name: str, title: str, measured: str, criteria: dict[str, str]
) -> Callable[[_Measure], _Measure]:
    """Return a decorator that registers a function as the measurement of a column."""

    def register(function: _Measure) -> _Measure:
        COLUMNS[name] = Column(name, title, measured, criteria, function)
        return function

    return register


def variants(update: Update, options: Mapping[str, Mapping[str, object]]) -> dict[str, Update]:
    """Return the variants of the update with other values of some of its options, by name."""
    return {
        words: make_update(update.name, **values)
        for words, values in options.items()
        if values.keys() <= update.options.keys()
    }


def measure(update: str | Update, column: str) -> Entry:
    """Return the measured entry of an update, which need not be an update from the paper."""
    if column not in COLUMNS:
        raise ValueError(f"column: expected one of {', '.join(COLUMNS)}, got {column!r}.")
    return _measured(as_update(update), column)


@cache  # The key is the update, because its name may be registered again for another update.
def _usual(update: Update, column: str) -> Entry:
    """Return the entry of an update with its own options."""
    return COLUMNS[column].measure(update)


@cache
def _measured(chosen: Update, column: str) -> Entry:
    usual = _usual(chosen, column)
    exceptions = _differing(chosen, column, usual, OPEN_OPTIONS)
    remarks = _differing(chosen, column, usual, OTHER_EXPONENTS)
    return replace(usual, exceptions=usual.exceptions + exceptions, remarks=usual.remarks + remarks)


def _differing(
    update: Update, column: str, usual: Entry, options: Mapping[str, Mapping[str, object]]
) -> tuple[ExceptionalCase, ...]:
    """Return the variants of an update with another entry than the usual one."""
    others = {words: COLUMNS[column].measure(x) for words, x in variants(update, options).items()}
    return tuple(
        ExceptionalCase(words, other.entry, other.margin)
        for words, other in others.items()
        if other.entry != usual.entry
    )


@dataclass(frozen=True)
class Threshold:
    """A threshold of a column, and the updates of the paper nearest to it on either side.

    Attributes
    ----------
    column, name : str
        The names of the column and of the compared number.
    value : float
        The threshold.
    below, above : tuple of float and str, or None
        The largest measured number below the threshold and the smallest at or above it, each with
        the name of its update: if the threshold is moved past the number, the update's entry
        changes. None if there is no such number.
    """

    column: str
    name: str
    value: float
    below: tuple[float, str] | None
    above: tuple[float, str] | None


def thresholds() -> list[Threshold]:
    """Return the thresholds of all columns; raise a `ValueError` if one compares no update."""
    results = []
    for (column, name), value in THRESHOLDS.items():
        entries = {update: _usual(UPDATES[update], column) for update in PAPER}
        numbers = [
            (entry.compared[name], update)
            for update, entry in entries.items()
            if math.isfinite(entry.compared.get(name, math.inf))
        ]
        if not numbers:
            raise ValueError(f"{column}: no update is compared with the threshold {name!r}.")
        below = max((pair for pair in numbers if pair[0] < value), default=None)
        above = min((pair for pair in numbers if pair[0] >= value), default=None)
        results.append(Threshold(column, name, value, below, above))
    return results


# Convergence

STALLS = "gap left when t doubles, relative to the gap before"
STALL_RATIO = 0.9
NEAR = 0.01
STEPS = 1000
PERIODS = 300
PERTURBATIONS = (0.999, 1.001)


@dataclass(frozen=True, eq=False)
class _Case:
    """A process, an initial policy, and weights with an infinite sum at each state."""

    name: str
    problem: FiniteMDP
    weights: Floats
    n_steps: int
    start: Floats | None = None

    def stall_ratio(self, update: Update, scale: float = 1.0) -> float:
        """Return the last gap divided by the gap at half time, or 0 if the last gap is small."""
        period = len(self.weights)
        theta0 = None if self.start is None else update.parameters(self.start)
        weighting = self.weights[0] if period == 1 else lambda t, _: self.weights[t % period]
        v = run(self.problem, update, self.n_steps, scale, weighting, theta0).v
        gap = np.max(self.problem.optimal().v - v, axis=1)
        last, half = gap[-period:].max(), gap[len(gap) // 2 :][:period].max()
        if last < NEAR * gap[0]:
            return 0.0
        return float(last / half) if half > 0 else math.inf


@cache
def _cases() -> tuple[_Case, ...]:
    rng = np.random.default_rng(0)
    garnets = [random_mdp(rng, 12, 3, discount=0.9, horizon=20.0) for _ in range(4)]
    plain = [chain(6), cliff(5), duplicated_chain(5, 4), *garnets]
    sticky = chain(3, beta=0.75, discount=0.5)
    cycle = np.hstack([THREE_STATES.weights, np.zeros((THREE_STATES.period, 1))])
    return (
        *(_Case("weight 1", p, np.ones((1, p.n_states)), STEPS) for p in plain),
        _Case("weight 64", sticky, np.full((1, 3), 64.0), STEPS),
        _Case(
            "the schedule of the CE cycle",
            THREE_STATES.mdp(),
            cycle,
            PERIODS * len(cycle),
            softmax(THREE_STATES.parameters(-30.0)),
        ),
    )


@_column(
    "convergence",
    "Conv. & opt.",
    "The exact process runs with weights that sum to infinity at each state: with weight 1 on "
    "seven problems (a chain, a cliff, duplicated actions, four random MDPs), with weight 64 on a "
    "chain of three states, and on the schedule under which CE cycles. The paper's column says "
    "whether a proof exists; the runs can contradict a proof, but not replace one.",
    {
        "yes": f"every gap to the optimum ends below {percent(NEAR, 0)} of the first one, or falls "
        f"to less than {percent(STALL_RATIO, 0)} when t doubles; a gap that stalls is only a "
        f"remark if it no longer does so when all weights are changed by {percent(0.001, 1)}",
        "no": "a gap stalls, with the weights as they are and with both changes",
    },
)
def _convergence(update: Update) -> Entry:
    stalls = {case: case.stall_ratio(update) for case in _cases()}
    stalled = {case: stall for case, stall in stalls.items() if stall > STALL_RATIO}
    for case, stall in stalled.items():
        least = min(stall, *(case.stall_ratio(update, scale) for scale in PERTURBATIONS))
        if least > STALL_RATIO:
            share = "all" if least >= 0.995 else percent(least, 0)
            doubles = f"as $t$ doubles to {case.n_steps}"
            reason = f"On {case.name} the gap keeps {share} of its size {doubles}."
            return Entry("no", least - STALL_RATIO, reason, compared={STALLS: least})
    remarks = tuple(
        ExceptionalCase(
            f"exactly {case.name} on a chain of three states, where a step lands on a "
            "parameter that never moves again",
            "no",
            stall - STALL_RATIO,
        )
        for case, stall in stalled.items()
    )
    free = (stall for case, stall in stalls.items() if case not in stalled)
    rest = max(free, default=max(stalls.values()))
    small = f"below {percent(NEAR, 0)} of the first one"
    ends = " or ".join(str(n) for n in sorted({case.n_steps for case in stalls}))
    reason = f"Every gap ends {small}, after {ends} steps."
    if rest:
        falls = f"falls to {percent(rest, 0)} of its size or less as $t$ doubles to {ends}"
        reason = f"Every gap that is not {small} {falls}."
    return Entry("yes", STALL_RATIO - rest, reason, remarks=remarks, compared={STALLS: rest})


# Rates

BANDIT = np.array([1.0, 0.6, 0.0])
RATE_WEIGHTS = (0.25, 1.0, 4.0)
ARRIVES, ARRIVED = "steps until the gap is zero", 100
FALLS, SLOPE = "exponent of the gap in 1/t", 0.98


@_column(
    "rates",
    "Rates",
    f"A bandit with values 1, 0.6 and 0 is followed for {STEPS} steps of weight "
    f"{', '.join(f'{w:g}' for w in RATE_WEIGHTS[:-1])} or {RATE_WEIGHTS[-1]:g}; the slowest of the "
    "runs decides.",
    {
        "exact": f"the gap is zero within {ARRIVED} steps",
        "O(1/t)": f"from step {STEPS // 2} to {STEPS} the gap falls like t to the power -{SLOPE} "
        "or faster, at a linear rate, too (the exponents of the updates of order 1/t still differ "
        "from 1 by up to 0.01)",
        "slower": "it falls more slowly",
    },
)
def _rates(update: Update) -> Entry:
    runs = [_speed(update, weight) for weight in RATE_WEIGHTS]
    steps, exponent = max(run[0] for run in runs), min(run[1] for run in runs)
    if steps <= ARRIVED:
        reason = f"The optimum is reached in {steps:g} steps or fewer."
        return Entry("exact", 1.0 - steps / ARRIVED, reason, compared={ARRIVES: steps})
    if exponent > 10.0:
        speed = "falls faster than $t^{-10}$"
    elif exponent < 0.005:
        speed = "hardly falls"
    else:
        speed = f"falls like $t^{{-{exponent:.2f}}}$ or faster"
    return Entry(
        "O(1/t)" if exponent > SLOPE else "slower",
        abs(exponent - SLOPE),
        f"From step {STEPS // 2} to {STEPS} the gap {speed}.",
        compared={ARRIVES: steps, FALLS: exponent},
    )


def _speed(update: Update, weight: float) -> tuple[float, float]:
    """Return the steps until the gap is zero, and the exponent of its decay; both may be inf."""
    pi = update.policy(follow(update, BANDIT, weight, STEPS)[1:])
    gaps = np.sum(pi * (BANDIT[0] - BANDIT), axis=-1)
    steps = int(np.argmax(gaps == 0.0)) + 1 if np.any(gaps == 0.0) else math.inf
    if gaps[-1] == 0.0:
        return steps, math.inf
    return steps, math.log2(gaps[STEPS // 2 - 1] / gaps[-1])


# Gravity wells

PULL, PULL_THRESHOLD = "share of states with a pull", 0.01
DEPTHS = (2.0**-6, 2.0**-10)
ESCAPE, ESCAPE_EXPONENT = "exponent of the steps out of a corner", 0.75
_PULL = np.array([1.0, 0.9, 0.0])


@_column(
    "gravity-well",
    "Gravity well",
    "In 20 000 random states, with weights 0.01 and 1: how often does an action gain most that is "
    "the most probable one and not the best? Then the steps of weight 1 are counted that lead out "
    "of a corner, where the best action has a small probability.",
    {
        "none": f"it happens in less than {percent(PULL_THRESHOLD, 0)} of the states",
        "weak": "it happens, and the steps grow more slowly than the inverse of that probability "
        f"to the power {ESCAPE_EXPONENT}",
        "strong": "it happens, and the steps grow faster than that",
    },
)
def _gravity_well(update: Update) -> Entry:
    pulled = max(_pull_frequency(update, weight) for weight in (0.01, 1.0))
    if pulled < PULL_THRESHOLD:
        return Entry(
            "none",
            PULL_THRESHOLD - pulled,
            f"The pull is felt in {percent(pulled, 1)} of the states.",
            compared={PULL: pulled},
        )
    steps = [_steps_out_of_corner(update, depth) for depth in DEPTHS]
    exponent = math.log(steps[1] / steps[0]) / math.log(DEPTHS[0] / DEPTHS[1])
    reason = (
        f"The pull is felt in {percent(pulled, 1)} of the states; from probability {DEPTHS[0]:.2g} "
        f"the way out takes {format_number(steps[0])} steps, and from {DEPTHS[1]:.2g} it takes "
        f"{format_number(steps[1])}."
    )
    compared = {PULL: pulled, ESCAPE: exponent}
    if exponent > ESCAPE_EXPONENT:
        return Entry("strong", exponent - ESCAPE_EXPONENT, reason, compared=compared)
    margin = min(pulled - PULL_THRESHOLD, ESCAPE_EXPONENT - exponent)
    return Entry("weak", margin, reason, compared=compared)


def _pull_frequency(update: Update, weight: float) -> float:
    """Return the share of states in which a suboptimal most probable action gains most."""
    rng, n = np.random.default_rng(0), 20_000
    pi, q = rng.dirichlet([0.5, 0.5, 0.5], n), rng.random((n, 3))
    theta = update.parameters(pi)
    gains = update.policy(update.step(theta, q, weight)) - update.policy(theta)
    rows = np.arange(n)
    # Differences of probabilities have rounding errors of a few ulp.
    ahead = gains.max(axis=1) > gains[rows, q.argmax(axis=1)] + 1e-12
    return float(np.mean(ahead & (gains.argmax(axis=1) == pi.argmax(axis=1))))


def _steps_out_of_corner(update: Update, depth: float, cap: int = 100_000) -> int:
    """Return the number of steps of weight 1 that raise the best action from `depth` to 1/2."""
    theta = update.parameters(np.array([depth, 1.0 - 2.0 * depth, depth]))
    done, chunk = 0, 64
    while done < cap:
        path = follow(update, _PULL, 1.0, min(chunk, cap - done), theta)
        out = update.policy(path)[:, 0] >= 0.5
        if out.any():
            return max(done + int(np.argmax(out)), 1)
        theta, done, chunk = path[-1], done + chunk, 2 * chunk
    return cap


# Unlearning

N_FORWARD = 250
WEIGHTS = (1.0, 5.0)
FASTEST, SLOW = "least n' / n of the two weights", 1.0
SLOWEST, FAST = "largest n' / n of the two weights", 0.1


@_column(
    "unlearning",
    "Unlearning",
    f"After n = {N_FORWARD} steps towards one of two actions from the uniform policy, the opposite "
    f"steps are counted that undo them, with weights {WEIGHTS[0]:g} and {WEIGHTS[1]:g}.",
    {
        "slow": "at least n, with either weight",
        "fast": f"at most {FAST:g} n, with either weight",
        "between": "neither",
    },
)
def _unlearning(update: Update) -> Entry:
    counts = [_count_undoing_steps(update, weight) for weight in WEIGHTS]
    least, most = min(counts) / N_FORWARD, max(counts) / N_FORWARD
    each = " and ".join(f"{n} at weight {w:g}" for n, w in zip(counts, WEIGHTS, strict=True))
    reason = f"{N_FORWARD} steps are undone in {each}."
    if least >= SLOW:
        return Entry("slow", least - SLOW, reason, compared={FASTEST: least})
    compared = {FASTEST: least, SLOWEST: most}
    if most <= FAST:
        return Entry("fast", FAST - most, reason, compared=compared)
    return Entry("between", min(SLOW - least, most - FAST), reason, compared=compared)


def _count_undoing_steps(update: Update, weight: float) -> int:
    """Return the number of opposite steps that undo `N_FORWARD` steps from the uniform policy."""
    forward = follow(update, [1.0, 0.0], weight, N_FORWARD)[-1]
    back = update.policy(follow(update, [0.0, 1.0], weight, 3 * N_FORWARD, forward))[:, 0]
    # The initial probability is exactly 1/2; a policy that returns to 1/2 may differ by rounding.
    recovered = back <= 0.5 + 1e-12
    return int(np.argmax(recovered)) if recovered.any() else 3 * N_FORWARD


# Stochastic updates

_SAMPLES = np.array([[1.0, 3.0], [1.0, 0.0]])
_CHANCES = np.array([0.4, 0.6])
OFF, BIAS = "bias of a sampled step, in units of the weight", 1e-9
ENDS, AHEAD = "least final probability of the better action", 0.5
RUNS, DRAWS = 40, 20_000


@_column(
    "stochastic",
    "Stochastic",
    "One of two actions pays 1, the other 3 with probability 0.4 and else 0. The mean of a step "
    "with sampled values is compared with the step of their means, at 99 policies with weight 0.5; "
    f"and {RUNS} runs of {DRAWS} samples have the weights that Robbins and Monro ask for.",
    {
        "yes": "the two steps agree, and every run ends with the better action ahead",
        "no": "they do not; if every run ends well all the same, that is an exception",
    },
)
def _stochastic(update: Update) -> Entry:
    bias, best = _bias(update), _final_probability(update)
    # The last digits of rounding depend on the processor.
    size = f"up to {format_number(float(f'{bias:.2g}'))} times the weight"
    reason = (
        f"The mean step with sampled values is off by {size if bias > 1e-12 else 'rounding alone'};"
        f" in each of {RUNS} runs the better action ends with probability {_probability(best)}."
    )
    compared = {OFF: bias, ENDS: best}
    if bias <= BIAS and best > AHEAD:
        return Entry("yes", best - AHEAD, reason, compared=compared)
    if best <= AHEAD:
        return Entry("no", AHEAD - best, reason, compared=compared)
    words = "sampled values of all actions and weights that obey Robbins and Monro"
    exceptions = (ExceptionalCase(words, "yes", best - AHEAD),)
    return Entry("no", bias - BIAS, reason, exceptions, compared=compared)


def _probability(least: float) -> str:
    """Format the smallest of several probabilities."""
    return "1, up to a thousandth" if least > 0.999 else f"{least:.3f} or more"


def _bias(update: Update, weight: float = 0.5) -> float:
    """Return the largest difference of mean step and step of the mean, divided by the weight."""
    first = np.linspace(0.01, 0.99, 99)
    theta = update.parameters(np.stack([first, 1.0 - first], axis=1))
    steps = np.stack([update.step(theta, q, weight) for q in _SAMPLES])
    of_the_mean = update.step(theta, _CHANCES @ _SAMPLES, weight)
    off = np.tensordot(_CHANCES, steps, 1) - of_the_mean
    if update.parametrization == "softmax":  # A common shift, as in `npg`, has no effect.
        off = off - off.mean(axis=-1, keepdims=True)
    return float(np.abs(off).max() / weight)


def _final_probability(update: Update) -> float:
    """Return the smallest final probability of the better action, with weights t^(-3/4)/2."""
    drawn = (np.random.default_rng(1).random((DRAWS, RUNS)) >= _CHANCES[0]).astype(int)
    theta = np.repeat(update.initial(1, 2), RUNS, axis=0)
    weights = [0.5 * t**-0.75 for t in range(1, DRAWS + 1)]
    end = follow(update, _SAMPLES[drawn], weights, DRAWS, theta)[-1]
    return float(update.policy(end)[:, 1].min())


# Deep implementation

TASKS, STATES, FEATURES = 4, 12, 6
LEARNT, HALF = "least final probability of a best action", 0.5
N_WRONG, N_RIGHT, STEP_SIZE = 200, 4000, 0.05
FIT_WEIGHT = 5.0


@_column(
    "deep",
    "Deep impl.",
    f"Linear scores with {FEATURES} features for {STATES} states (each state a mixture, three to "
    f"one, of two of {FEATURES} prototypes) follow the update's direction by the chain rule, "
    "through the projection where the policy is a point of the simplex: "
    f"{N_WRONG} steps of size {STEP_SIZE} with opposite values, then {N_RIGHT} with the right "
    f"ones, on {TASKS} tasks. (The gradient through the projection is that of sparsemax. So DI has "
    f"a second way: its scores are fitted before the projection, with weight {FIT_WEIGHT:g}. The "
    "direction of NPG is no direction of single states: it is the least-squares fit of the "
    "advantages by the centred features.)",
    {
        "yes": "the best action ends with more than half of the probability at every state",
        "no": "it does not",
    },
)
def _deep(update: Update) -> Entry:
    features, q = _shared_features()
    outputs = update.uniform(3) if update.parametrization != "direct" else 1.0 / 3.0
    # Every row of features sums to one, so constant weights give constant outputs.
    weights = np.full((TASKS, FEATURES, 3), outputs)
    for values, n_steps in ((1.0 - q, N_WRONG), (q, N_RIGHT)):
        for _ in range(n_steps):
            weights = weights + STEP_SIZE * _weight_step(update, features, weights, values)
    least, failed = _least_best(_policy_of_outputs(update, features @ weights), q)
    if failed:  # the last digits of `least` depend on the processor if outputs cross zero
        least = round(least, 3)
        reason = f"with half of the probability or less at some state in {failed} of {TASKS} tasks"
    else:
        reason = f"with probability {_probability(least)} at all {STATES} states of {TASKS} tasks"
    fitted = _least_best(_fitted_policy(features, q), q)[0] if isinstance(update, Direct) else 0.0
    words = "scores fitted before the projection"
    exceptions = (ExceptionalCase(words, "yes", fitted - HALF),) if failed and fitted > HALF else ()
    entry = "no" if failed else "yes"
    reason = f"The best action ends {reason}."
    return Entry(entry, abs(least - HALF), reason, exceptions, compared={LEARNT: least})


def _least_best(pi: Floats, q: Floats) -> tuple[float, int]:
    """Return the smallest best-action probability, and the number of tasks with one at most 1/2."""
    best = np.take_along_axis(pi, q.argmax(axis=2)[..., np.newaxis], axis=2)[..., 0]
    return float(best.min()), int(np.count_nonzero(best.min(axis=1) <= HALF))


def _fitted_policy(features: Floats, q: Floats) -> Floats:
    """Return the final policy of DI if linear scores are fitted to each step before projecting."""
    fit = features @ np.linalg.pinv(features)
    pi = np.full(q.shape, 1.0 / q.shape[-1])
    for values, n_steps in ((1.0 - q, N_WRONG), (q, N_RIGHT)):
        for _ in range(n_steps):
            pi = project_simplex(fit @ (pi + FIT_WEIGHT * values))
    return pi


@cache
def _shared_features() -> tuple[Floats, Floats]:
    """Return a (tasks, states, features) array whose rows mix two prototypes, and action values."""
    rng = np.random.default_rng(0)
    features = np.zeros((TASKS, STATES, FEATURES))
    values = rng.permuted(np.tile([1.0, 0.5, 0.0], (TASKS, FEATURES, 1)), axis=2)
    nearest = np.arange(STATES) % FEATURES
    for task in features:
        other = (nearest + rng.integers(1, FEATURES, STATES)) % FEATURES
        task[np.arange(STATES), nearest] += 0.75
        task[np.arange(STATES), other] += 0.25
    return features, features @ values


def _policy_of_outputs(update: Update, outputs: Floats) -> Floats:
    """Return the policy of the outputs; a direct parametrization projects them onto the simplex."""
    return (
        project_simplex(outputs) if update.parametrization == "direct" else update.policy(outputs)
    )


def _weight_step(update: Update, features: Floats, weights: Floats, q: Floats) -> Floats:
    """Return the direction of the weights of linear scores, with the shape of the weights."""
    if isinstance(update, NaturalPolicyGradient):
        columns = features[:, :, np.newaxis, :, np.newaxis] * np.eye(3)[:, np.newaxis, :]
        derivatives = columns.reshape(*features.shape[:2], 3, -1)
        pi = update.policy(features @ weights)
        fits = [compatible_direction(*task) for task in zip(derivatives, pi, q, strict=True)]
        return np.stack(fits).reshape(weights.shape)
    return np.swapaxes(features, 1, 2) @ _direction(update, features @ weights, q)


def _direction(update: Update, outputs: Floats, q: Floats) -> Floats:
    """Return the update's direction in the outputs; DI uses the gradient of sparsemax."""
    if update.parametrization != "direct":
        return update.step(outputs, q, 1.0) - outputs
    support = project_simplex(outputs) > 0.0
    mean = np.sum(q * support, axis=-1, keepdims=True) / support.sum(axis=-1, keepdims=True)
    return np.where(support, q - mean, 0.0)


THRESHOLDS: dict[tuple[str, str], float] = {
    ("convergence", STALLS): STALL_RATIO,
    ("rates", ARRIVES): ARRIVED,
    ("rates", FALLS): SLOPE,
    ("gravity-well", PULL): PULL_THRESHOLD,
    ("gravity-well", ESCAPE): ESCAPE_EXPONENT,
    ("unlearning", SLOWEST): FAST,
    ("unlearning", FASTEST): SLOW,
    ("stochastic", OFF): BIAS,
    ("stochastic", ENDS): AHEAD,
    ("deep", LEARNT): HALF,
}
"""The thresholds of the criteria, by column and by what is compared with them."""
