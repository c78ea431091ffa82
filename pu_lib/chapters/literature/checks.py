"""Checks of the claims of the literature, which are numerical tests of theorems of other papers.

Bounds are tested over processes, updates and steps. If a theorem states only a limit or the order
of a rate, two parts of a run are compared. No finite run can refute such a theorem, so that it is
at most consistent with what was observed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from pu_lib import domains
from pu_lib.arrays import Floats
from pu_lib.chapters.literature.earlier import (
    EARLIER,
    SURVEY,
    Algorithm,
    Implementation,
    gaussian_of,
    gaussian_values,
    likelihood_ratio,
    loss_step,
    natural_step,
    undiscounted_visits,
)
from pu_lib.chapters.literature.quantities import (
    best_of_n,
    committal,
    greedy_sample_step,
    ladder_times,
    linear_natural,
    linear_softmax,
    off_policy_step,
    regret_bound,
    sampled_regret,
)
from pu_lib.chapters.updates.quantities import Policy, escort_of, softmax_of, softmax_step
from pu_lib.chapters.what_came_after import mirror_descent as md
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.formatting import percent
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import JUDGED, advantage, as_update, label_of, make_update, softmax

ROUNDING = 1e-9
ETAS = (0.1, 1.0, 10.0)


# Policy mirror descent


def _performance_gaps(mdp: FiniteMDP, name: str, etas: Floats) -> tuple[Floats, Floats]:
    """Return the performance gaps of a run of mirror descent, and its initial policy."""
    path = run(mdp, name, len(etas), etas, "uniform")
    return mdp.optimal().performance - path.performance, path.policies[0]


def _random_cases(
    n_processes: int, sizes: Sequence[float]
) -> Iterator[tuple[int, FiniteMDP, str, float]]:
    """Yield the seed, process, update and step size of every combination."""
    for seed in range(n_processes):
        mdp = md.bounded_mdp(seed)
        for name, size in product(md.DIVERGENCES, sizes):
            yield seed, mdp, name, size


def _bound_ratio(bound: float, gap: float) -> float:
    """Return the bound divided by the gap, or infinity if the gap is at most 1e-12."""
    return bound / gap if gap > 1e-12 else float("inf")


@check("lit:xiao2022/constant", wrong={"at the rate 1/k^2": {"power": 2.0}})
def constant_steps_obey_xiaos_bound(compare: Recorder, power: float = 1.0) -> None:
    """The gap with constant steps of any size satisfies a bound of order 1/k (Xiao, theorem 8)."""
    for seed, mdp, name, eta in _random_cases(4, ETAS):
        gaps, first = _performance_gaps(mdp, name, np.full(40, eta))
        for k, gap in enumerate(gaps):
            bound = md.constant_bound(mdp, name, first, eta, k) * (k + 1) ** (1.0 - power)
            at = {"process": seed, "update": name, "eta": eta, "k": k}
            compare.at_least("bound over gap", _bound_ratio(bound, gap), 1, limit="1", at=at)


@check("lit:xiao2022/geometric", wrong={"at twice the rate": {"power": 2.0}})
def growing_steps_obey_xiaos_bound(compare: Recorder, power: float = 1.0) -> None:
    """The gap satisfies a linear bound if steps grow by a factor 1 / discount (Xiao, thm. 10)."""
    for seed, mdp, name, eta in _random_cases(3, (0.01, *ETAS)):
        growth = mdp.discount ** -np.arange(30, dtype=np.float64)
        gaps, first = _performance_gaps(mdp, name, eta * growth)
        start = md.geometric_bound(mdp, name, first, eta, 0)
        for k, gap in enumerate(gaps):
            bound = start * (md.geometric_bound(mdp, name, first, eta, k) / start) ** power
            at = {"process": seed, "update": name, "eta": eta, "k": k}
            quantity, ratio = (
                f"bound over gap{'' if k else ' at the start'}",
                _bound_ratio(bound, gap),
            )
            compare.at_least(quantity, ratio, 1 - ROUNDING, limit="1, to rounding", at=at)


@check(
    "lit:johnson2023/adaptive",
    wrong={"at the fourth power of the rate": {"power": 4.0}},
)
def adaptive_steps_obey_johnsons_bound(compare: Recorder, power: float = 1.0) -> None:
    """Adaptive steps satisfy the bound with the rate of policy iteration (Johnson et al.)."""
    for seed, mdp, name, first in _random_cases(6, (0.01, 1.0, 100.0)):
        gaps = md.adaptive_run(mdp, name, 15, first)
        start = md.adaptive_bound(gaps[0], mdp.discount, 0, first)
        for k, gap in enumerate(gaps):
            ratio = _bound_ratio(start * mdp.discount ** (power * k), gap)
            at = {"process": seed, "update": name, "first": first, "k": k}
            quantity = f"bound over distance of the values{'' if k else ' at the start'}"
            compare.at_least(quantity, ratio, 1, limit="1", at=at)


def _two_action_mdp(gap: float) -> FiniteMDP:
    """Return a process of one state with two actions whose rewards differ by `gap`."""
    return FiniteMDP(np.ones((1, 2, 1)), [[0.5 + gap, 0.5]], [1.0], 0.5)


@check(
    "lit:liu2025/finite",
    wrong={"a number that does not depend on the gap": {"gap": 1.0}},
)
def projected_gradient_is_done_in_finite_time(compare: Recorder, gap: float = 0.01) -> None:
    """DI reaches the optimum in at most the bound's number of steps (Liu et al., theorems 21, 22).

    `gap` replaces the action gap 0.01 of the process "gap 0.01", in the bound only.
    """
    processes = {f"random {seed}": md.bounded_mdp(seed) for seed in range(3)}
    processes["gap 0.01"] = _two_action_mdp(0.01)
    for (name, mdp), visits, eta in product(processes.items(), (False, True), (0.3, 1.0, 10.0)):
        took = md.steps_to_optimum(mdp, eta, visits)
        bound = md.finite_bound(_two_action_mdp(gap) if name == "gap 0.01" else mdp, eta, visits)
        at = {"process": name, "visits": visits, "eta": eta}
        compare.at_least("bound over updates", bound / max(took, 1), 1, limit="1", at=at)
        if (name, visits, eta) == ("random 0", False, 1.0):
            compare.report(updates=took, bound=bound)


def _scaled_gap_ratio(mdp: FiniteMDP, name: str, eta: float) -> float:
    """Return three times the gap after 180 steps over that after 60, which is 1 at the rate 1/k."""
    gaps = mdp.optimal().performance - run(mdp, name, 180, eta, "occupancy").performance
    return float(3.0 * gaps[180] / gaps[60]) if gaps[60] > 1e-12 else 0.0


@check(
    "lit:liu2024/rates",
    wrong={
        "PG-SM is linear, too": {"linear": ("pg-sm",)},
        "NPG is no faster than 1/k": {"sublinear": ("npg",)},
    },
    kept=Status.CONSISTENT,
)
def softmax_is_sublinear_and_npg_linear(
    compare: Recorder, sublinear: Sequence[str] = ("pg-sm",), linear: Sequence[str] = ("npg",)
) -> None:
    """With constant steps PG-SM has the rate 1/k, within a factor of two, and NPG a linear rate."""
    quantity = "gap after three times the updates, over a third of the gap"
    for seed, eta in product(range(2), (1.0, 10.0, 100.0)):
        mdp = md.bounded_mdp(seed, 3, 3, 0.6)
        for name in sublinear:
            left, at = (
                _scaled_gap_ratio(mdp, name, eta),
                {"process": seed, "update": name, "eta": eta},
            )
            compare.at_most(quantity, left, 2.0, limit="2", at=at)
            compare.at_least(quantity, left, 0.5, limit="0.5", at=at)
        for name in linear:
            left, at = (
                _scaled_gap_ratio(mdp, name, eta),
                {"process": seed, "update": name, "eta": eta},
            )
            compare.at_most(quantity, left, 0.1, limit="0.1", at=at)


# Other parametrizations


@check(
    "lit:hadamard2023/kinship",
    wrong={"at p = 4": {"p": 4.0}, "the factor dropped": {"factor": "drop"}},
)
def escort_is_the_gradient_on_the_sphere(
    compare: Recorder, p: float = 2.0, factor: str = "keep"
) -> None:
    """PG-ES with p = 2 takes a gradient step of the value on the sphere, where pi = theta^2."""
    rng, update = np.random.default_rng(3), make_update("pg-es", p=p, factor=factor)
    for point in range(50):
        x, q, weight = rng.normal(size=4), rng.normal(size=4), float(rng.uniform(0.1, 2.0))
        x /= np.linalg.norm(x)
        gradient = 2.0 * x * q  # of the sum of x^2 q
        tangent = gradient - x * (x @ gradient)
        compare.equal(
            "step of PG-ES",
            update.step(x, q, weight),
            x + weight * tangent,
            tolerance=1e-12,
            limit="step of the gradient on the sphere",
            at={"point": point},
        )


def _random_bandits(n: int) -> list[tuple[Floats, Floats]]:
    """Return bandits with two features and a clear best arm in rewards and in fitted rewards."""
    rng = np.random.default_rng(7)
    bandits: list[tuple[Floats, Floats]] = []
    while len(bandits) < n:
        features, rewards = rng.normal(size=(4, 2)), rng.random(4)
        seen = features @ np.linalg.lstsq(features, rewards, rcond=None)[0]
        if min(np.diff(np.sort(rewards))[-1], np.diff(np.sort(seen))[-1]) > 0.05:
            bandits.append((features, rewards))
    return bandits


@check(
    "lit:mei2023/linear",
    wrong={
        "softmax policy gradient has the same criterion": {"softmax_too": True},
        "where the rewards are fitted to within half of their spread": {"by_error": True},
    },
)
def fitted_order_decides(
    compare: Recorder, softmax_too: bool = False, by_error: bool = False
) -> None:
    """NPG with linear scores finds the best arm if and only if the fitted rewards rank it first."""
    apart, quantity = 0, "probability of the best arm at the end"
    for bandit, (features, rewards) in enumerate(_random_bandits(16)):
        best = int(np.argmax(rewards))
        seen = features @ np.linalg.lstsq(features, rewards, rcond=None)[0]
        arrives = int(np.argmax(seen)) == best
        if by_error:
            arrives = bool(np.linalg.norm(seen - rewards) < 0.5 * np.ptp(rewards))
        natural = float(linear_natural(features, rewards, 50.0, 200)[best])
        plain = float(linear_softmax(features, rewards, 10.0, 1000)[best])
        compare.equal(
            "policy after 20 steps of size 1/2",
            linear_natural(features, rewards, 0.5, 20),
            softmax(10.0 * seen),
            tolerance=1e-9,
            limit="softmax of ten times the fitted rewards",
            at={"bandit": bandit},
        )
        apart += (natural > 0.5) != (plain > 0.5)
        for probability in (natural, plain) if softmax_too else (natural,):
            at = {"bandit": bandit, "arrives": arrives}
            if arrives:
                compare.at_least(quantity, probability, 0.5, limit="0.5 if ranked first", at=at)
            else:
                compare.at_most(quantity, probability, 0.5, limit="0.5 if not ranked first", at=at)
    compare.at_least("bandits on which NPG and PG-SM end apart", apart, 1, limit="1")


@check(
    "lit:neumann2023/greedy",
    wrong={
        "one draw is enough": {"n_samples": 1},
        "also where the proposal leaves the greedy action out": {"blind_spot": True},
    },
)
def best_of_many_draws_gives_ce(
    compare: Recorder, n_samples: int = 4000, blind_spot: bool = False
) -> None:
    """CE's step is the mean step to the best of many draws if the greedy action can be drawn."""
    rng = np.random.default_rng(5)
    for point in range(40):
        theta, q = rng.normal(size=4), rng.normal(size=4)
        proposal = 0.02 + rng.dirichlet(np.ones(4)) * 0.92
        if blind_spot:
            proposal[np.argmax(q)] = 0.0
            proposal /= proposal.sum()
        compare.equal(
            "mean step",
            greedy_sample_step(proposal, softmax(theta), q, n_samples),
            as_update("ce").step(theta, q, 1.0) - theta,
            tolerance=1e-6,
            limit="step of CE",
            at={"point": point},
        )


# The ladder


@check(
    "lit:li2021/ladder",
    wrong={
        "softmax policy gradient pays no more than the others": {"slow": ()},
        "natural policy gradient climbs at a constant pace": {"constant_pace": ("npg",)},
    },
)
def softmax_is_late_on_the_ladder(
    compare: Recorder,
    slow: Sequence[str] = ("pg-sm",),
    constant_pace: Sequence[str] = tuple(u for u in JUDGED if u not in ("pg-sm", "pg-es", "npg")),
) -> None:
    """Only PG-SM slows down by a larger factor than the increase in copies of the lowest rungs."""
    for name in JUDGED:
        few, many = np.array(ladder_times(name, 50.0)), np.array(ladder_times(name, 200.0))
        delay, waits, at = many / few, np.diff(many[2:]), {"update": label_of(name)}
        compare.report(**{f"delay of {label_of(name)}": delay[-1]})
        if name in slow:
            compare.at_least("delay of the top rung", delay[-1], 8.0, limit="8", at=at)
            ratios = waits[1:] / waits[:-1]
            rise = float(np.min(np.diff(ratios)))
            compare.at_least("rise of the ratio of waits", rise, 0.0, limit="0", at=at)
        else:
            longest = float(np.max(delay))
            compare.at_most("longest delay of a rung", longest, 4.1, limit="4.1", at=at)
        if name in constant_pace:
            longest = float(np.max(waits))
            compare.at_most("longest wait from the third rung on", longest, 4.0, limit="4", at=at)


# Samples


def _exponent(left: Floats) -> float:
    """Return the exponent k of the decay t^-k of `left` over the last half of the run."""
    return float(np.log2(left[-1 - len(left) // 2] / left[-1])) if left[-1] > 0 else np.inf


@check(
    "lit:mei2021/committal",
    wrong={
        "NPG commits like 1/t": {"fast": (), "slow": ("pg-sm", "npg")},
        "PG-SM commits faster than 1/t": {"fast": ("npg", "pg-sm"), "slow": ()},
    },
)
def npg_commits_and_softmax_does_not(
    compare: Recorder, fast: Sequence[str] = ("npg",), slow: Sequence[str] = ("pg-sm",)
) -> None:
    """NPG can sample the worse action forever with positive probability; PG-SM cannot."""
    for name in JUDGED:
        left, at = committal(name, [0.5, 1.0], 0, 1000), {"update": label_of(name)}
        exponent, stays = _exponent(left), float(np.prod(1.0 - left))
        compare.report(**{f"probability under {label_of(name)}": round(stays, 6)})
        quantity = "probability to stay for ever"
        if name in fast:
            compare.at_least("exponent", exponent, 10.0, limit="10", at=at)
            compare.at_least(quantity, stays, 0.1, limit="0.1", at=at)
        if name in slow:
            compare.equal("exponent", exponent, 1.0, tolerance=0.05, limit="1, to 0.05", at=at)
            compare.at_most(quantity, stays, 0.01, limit="0.01", at=at)


@check(
    "lit:baudry2025/regret",
    wrong={"the logarithm alone bounds it": {"second_term": 0.0, "errors": -4.0}},
)
def sampled_softmax_obeys_baudrys_bound(
    compare: Recorder, second_term: float = 1.0, errors: float = 4.0
) -> None:
    """The mean regret of sampled PG-SM is below the bound (Baudry et al., theorem 1).

    The mean regret plus four standard errors must be at most the bound. A wrong variant is rejected
    if the mean regret minus four standard errors is above its bound.
    """
    n_steps = n_runs = 2000
    for eta, gap in ((0.05, 0.2), (0.1, 0.3), (0.2, 0.5)):
        regret = sampled_regret(eta, gap, n_steps, n_runs)
        error = float(regret.std(ddof=1) / np.sqrt(n_runs))
        logarithm = float(np.log1p(4 * eta * gap * n_steps) / (2 * eta))
        bound = logarithm + second_term * (regret_bound(eta, gap, n_steps) - logarithm)
        compare.at_most(
            "mean regret and four standard errors",
            float(regret.mean()) + errors * error,
            bound,
            at={"eta": eta, "gap": gap},
        )


def _shares_at_best(eta: float, natural: bool) -> tuple[float, float]:
    """Return the share of 100 runs at the best of four arms after 500 and after 10 000 samples.

    The runs use the sampled gradient of NPG if `natural` is true, and that of PG-SM otherwise.
    """
    n_steps, n_runs = 10_000, 100
    rng, shares = np.random.default_rng(11), []
    rewards, theta = np.array([0.1, 0.3, 0.5, 0.9]), np.zeros((n_runs, 4))
    for t in range(n_steps):
        if t == n_steps // 20:
            shares.append(float(np.mean(softmax(theta)[:, 3] > 0.9)))
        pi = softmax(theta)
        drawn = (pi.cumsum(axis=1) > rng.random((n_runs, 1))).argmax(axis=1)
        taken = np.eye(4)[drawn]
        if natural:
            chances = np.sum(pi * taken, axis=1, keepdims=True)
            theta = theta + eta * taken * rewards / np.maximum(chances, 1e-300)
            theta = theta - theta.max(axis=1, keepdims=True)
        else:
            theta = theta + eta * (taken - pi) * rewards[drawn][:, np.newaxis]
    return shares[0], float(np.mean(softmax(theta)[:, 3] > 0.9))


@check(
    "lit:mei2024/any-rate",
    wrong={"so does NPG at such rates": {"natural": True}},
    kept=Status.CONSISTENT,
)
def sampled_softmax_arrives_at_any_rate(compare: Recorder, natural: bool = False) -> None:
    """Sampled PG-SM at two large rates finds the best arm in 95 % or a growing share of runs."""
    for eta in (1.0, 10.0):
        early, end = _shares_at_best(eta, natural)
        bound, limit = min(0.95, early + 0.04), "0.95 or 0.04 more than early on"
        compare.at_least("share at the best arm", end, bound, limit=limit, at={"rate": eta})
        shares = {"at the end": end, "early": early}
        compare.report(**{f"{when} at rate {eta:g}": percent(s) for when, s in shares.items()})


def _single_start_mdp(seed: int) -> FiniteMDP:
    """Return a random process with five states, of which only the first is an initial state."""
    full = md.bounded_mdp(seed)
    return FiniteMDP(full.transitions, full.rewards, np.eye(5)[0], full.discount)


@check(
    "lit:zhang2022/off-policy",
    wrong={"with a pull that does not decay": {"decay": 0.0}},
    kept=Status.CONSISTENT,
)
def off_policy_needs_no_ratio(compare: Recorder, decay: float = 0.12) -> None:
    """The gap falls with the occupancy of another policy if the regularization decays."""
    n_steps = 1500
    for seed in range(2):
        mdp, theta, gaps = _single_start_mdp(seed), np.zeros((5, 3)), []
        behaviour = mdp.evaluate(np.full((5, 3), 1.0 / 3.0)).occupancy * (1.0 - mdp.discount)
        for t in range(n_steps):
            evaluation = mdp.evaluate(softmax(theta))
            gaps.append(float(np.max(mdp.optimal().v - evaluation.v)))
            theta = off_policy_step(theta, evaluation.q, behaviour, 20.0, 0.1 * (t + 1) ** -decay)
        compare.at_most(
            "gap at the end",
            gaps[-1],
            0.9 * gaps[n_steps // 10],
            limit="0.9 of the gap after a tenth of the run",
            at={"process": seed},
        )


# What the paper says of others


@check(
    "sec:intro/priority",
    wrong={
        "the likelihood ratio is meant, which is of 1992": {"values_and_visits": 1992},
        "the likelihood ratio has the reward of the first step only": {"all_rewards": False},
    },
)
def theorem_has_another_form_than_the_likelihood_ratio(
    compare: Recorder, values_and_visits: int = 2000, all_rewards: bool = True
) -> None:
    """The likelihood ratio and equation (3) are the same gradient, of different years.

    The years are those of the two papers that state them.
    """
    rng = np.random.default_rng(21)
    for draw in range(5):
        shape = (2, 2, 3)
        moves = np.concatenate([rng.dirichlet(np.ones(3), shape[:2]), np.zeros((1, 2, 3))])
        moves[:2, :, :2] = 0.0  # from the first state to the second, and then to the end
        moves[0, :, 1] = 1.0 - moves[0, :, 2]
        moves[1, :, 2] = 1.0
        rewards = rng.normal(size=(3, 2)) * [[1.0], [1.0], [0.0]]
        mdp = FiniteMDP(moves, rewards, np.eye(3)[0], 0.9, np.arange(3) == 2)
        theta = rng.normal(size=(3, 2)) * [[1.0], [1.0], [0.0]]
        pi, at = softmax(theta), {"process": draw}
        evaluation = mdp.evaluate(pi)
        theorem = evaluation.occupancy[:, np.newaxis] * pi * advantage(pi, evaluation.q)
        compare.equal(
            "mean likelihood ratio", likelihood_ratio(mdp, theta, 2, all_rewards)[:2], theorem[:2],
            tolerance=1e-12, limit="equation (3)", at=at,
        )  # fmt: skip
    for form, year in {"likelihood ratio": 1992, "values and visits": values_and_visits}.items():
        compare.at_most(
            "year", year, 1992, limit="1992", as_printed=form == "values and visits",
            at={"form": form},
        )  # fmt: skip


def _random_states(n: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield random scores and values of four actions."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        yield rng.normal(size=4), rng.normal(size=4)


@check(
    "sec:policygradient/softmax-common",
    wrong={
        "with the escort transform in place of softmax": {"policy": escort_of},
        "of the losses that weight by the exponential of the advantage": {
            "survey": tuple(one for one in SURVEY if one.objective == "exponential")
        },
    },
)
def most_implementations_are_pg_sm(
    compare: Recorder,
    survey: Sequence[Implementation] = SURVEY,
    policy: Policy = softmax_of,
) -> None:
    """In most implementations read, the mean step of the actor is that of PG-SM.

    Bonuses for entropy are left out.
    """
    agree = dict.fromkeys(survey, True)
    for theta, q in _random_states(20, 22):
        for one in survey:
            step = (
                natural_step(theta, q, policy)
                if one.objective == "natural"
                else loss_step(one.objective, theta, q, policy)
            )
            agree[one] &= bool(np.abs(step - softmax_step(theta, q)).max() < 1e-12)
    same, read = sum(agree.values()), len(survey)
    name = "implementations whose mean step is that of PG-SM"
    at = {"libraries": len({one.library for one in survey})}
    compare.at_least(name, same, read // 2 + 1, limit="half of those read, and one", at=at)
    compare.report(same=same, read=read)


@check(
    "sec:policygradient/all-use-pg",
    wrong={
        "if only policy gradients are counted": {"earlier": ()},
        "the loss of MPO is linear in the values": {"linear": ("softened values",)},
    },
)
def not_all_actor_critics_are_policy_gradients(
    compare: Recorder,
    earlier: Sequence[Algorithm] = EARLIER,
    linear: Sequence[str] = ("log-likelihood", "ratio", "all actions"),
) -> None:
    """Steps of policy gradients double with the values; those of four older algorithms do not."""
    rows = [(Algorithm(name, name), False) for name in linear]
    rows += [(one, True) for one in earlier]
    for one, as_printed in rows:
        for draw, (theta, q) in enumerate(_random_states(10, 23)):
            if one.policy is gaussian_of:
                theta, q = theta[:1], gaussian_values(draw)
            step, double = (loss_step(one.objective, theta, k * q, one.policy) for k in (1, 2))
            compare.equal(
                "step for twice the values, less twice the step",
                float(np.abs(double - 2 * step).max() / np.abs(step).max()),
                0.0,
                tolerance=1e-9,
                limit="0",
                as_printed=as_printed,
                at={"algorithm": one.name, "draw": draw},
            )


@check(
    "sec:policygradient/discount-dropped",
    wrong={
        "at a single state": {"mdp": domains.bandit([1.0, 0.0])},
        "no library replays states without a correction": {
            "survey": tuple(one for one in SURVEY if not one.replayed)
        },
        "all libraries weight states by powers of the discount": {
            "survey": tuple(replace(one, discounted=True) for one in SURVEY)
        },
    },
)
def visits_without_the_discount_are_no_gradient(
    compare: Recorder, mdp: FiniteMDP | None = None, survey: Sequence[Implementation] = SURVEY
) -> None:
    """A step with undiscounted visits is not along the gradient, and some libraries replay states.

    The process is the chain with three states, with the discount 0.9.
    """
    mdp = domains.chain(3, discount=0.9) if mdp is None else mdp
    for draw, (theta, _) in enumerate(_random_states(10, 24)):
        scores = np.resize(theta, (mdp.n_states, mdp.n_actions))
        pi = softmax(scores)
        evaluation = mdp.evaluate(pi)
        local = pi * advantage(pi, evaluation.q)
        plain = undiscounted_visits(mdp, pi)
        steps = [(d[:, np.newaxis] * local).ravel() for d in (evaluation.occupancy, plain)]
        with_discount, without = (step / np.linalg.norm(step) for step in steps)
        apart = float(np.linalg.norm(with_discount - without))
        compare.at_least("distance of the directions", apart, 1e-4, limit="1e-4", at={"draw": draw})
    plain_sums = sum(not one.discounted for one in survey)
    name = "implementations without the discount in the visits"
    at = {"read": len(survey)}
    compare.at_least(name, plain_sums, len(survey) // 2 + 1, limit="half, and one", at=at)
    replaying = sum(one.replayed for one in survey)
    name = "implementations that replay states without a correction"
    compare.at_least(name, replaying, 1, limit="1", at=at)
    compare.report(plain=plain_sums, replaying=replaying, read=len(survey))


@check(
    "sec:intro/novelty",
    wrong={"the best of 10^5 draws is earlier": {"draws": 10**5}},
    kept=Status.OPEN,
)
def no_earlier_step_is_that_of_ce(compare: Recorder, draws: int = 30) -> None:
    """No step of the algorithms read is that of CE or of MCE.

    This check can refute novelty but not confirm it: there may be work that was not read.
    """
    many = lambda new, acted, q, adv: np.log(new) @ best_of_n(acted, q, draws)  # noqa: E731
    names = dict.fromkeys(one.objective for one in (*SURVEY, *EARLIER))
    for theta, q in _random_states(1, 25):
        for update, name in product(("ce", "mce"), names):
            step = (
                natural_step(theta, q)
                if name == "natural"
                else loss_step(many if name == "best of 30" else name, theta, q)
            )
            apart = float(np.abs(step - (as_update(update).step(theta, q, 1.0) - theta)).max())
            at = {"update": update, "objective": name}
            compare.at_least("distance of the steps", apart, 1e-6, limit="1e-6", at=at)
    compare.report(compared=len(names))


@check("sec:policygradient/escort-two", wrong={"at p = 3": {"p": 3.0}}, kept=Status.OPEN)
def exponent_two_is_in_use(compare: Recorder, p: float = 2.0) -> None:
    """The exponent of the paper's experiments is 2, and so is that of squared unit vectors.

    This check can refute the sentence but not confirm it: two uses do not make a habit.
    """
    for theta, _ in _random_states(20, 26):
        squares = theta**2 / (theta @ theta)
        far = float(np.abs(escort_of(theta, p) - squares).max())
        compare.at_most("distance of the policies", far, 1e-12, limit="rounding", at={"p": p})
