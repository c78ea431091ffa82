"""Checks of the claims on unlearning, which compare bounds with exact counts of updates."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import chain, product
from typing import Any

import numpy as np
from flint import arb

from pu_lib import kernels, trajectories
from pu_lib.chapters.unlearning import quantities as unlearning
from pu_lib.chapters.unlearning.counting import CONVEX, LINKS, UNIFORM, Density, instance_of
from pu_lib.chapters.unlearning.flow_times import step_flow_times
from pu_lib.chapters.unlearning.quantities import count, counts, escort_components, linked_count
from pu_lib.claims.formulas import Formula, formula, log, log1p
from pu_lib.claims.recorder import Recorder, check
from pu_lib.domains import chain as chain_domain
from pu_lib.exact import Number, exact
from pu_lib.mdp import FiniteMDP
from pu_lib.two_action_dynamics import parse_problem
from pu_lib.updates import PAPER, Update, as_update

SMALL_NS = (1, 2, 3, 5, 10, 30, 100, 300)
ETAS = ("0.01", "0.1", "0.3", "1", "2", "5")
CS = (0.01, 0.1, 0.5, 1.0, 2.0, 10.0, 100.0)


def limit_name(bound: Formula) -> str:
    """Return the LaTeX of a formula as the name of a limit, so that the record depends on it."""
    symbols = {"eta": r"\eta", "start": r"\pi_0(a_1)"}
    known = inspect.signature(bound).parameters
    return f"${bound.latex(**{name: symbols[name] for name in known if name in symbols})}$"


def compare_counts(
    method: Callable[..., None],
    bound: Formula,
    ns: Sequence[int],
    *,
    etas: Iterable[Number] = ETAS,
    starts: Iterable[Number] = ("1/2",),
    as_printed: bool = False,
    **arguments: Any,
) -> None:
    """Compare counts with a bound by `method`, which is a method of a recorder."""
    known = inspect.signature(bound).parameters
    for eta, start in product(etas, starts):
        for n, back in zip(ns, counts(ns, step_size=eta, start=start, **arguments), strict=True):
            numbers = {"n": n, "eta": exact(eta), "start": exact(start)}
            where = {**arguments, "n": n, "eta": str(eta), "start": str(start)}
            method(
                "n'", back, bound(*(numbers[name] for name in known)), limit=limit_name(bound),
                as_printed=as_printed, at=where,
            )  # fmt: skip


# The introduction


@check(
    "sec:intro/targets-move",
    wrong={
        "the optimal values move": {"optimal": True},
        "where the policy changes at the first state alone": {"changed": slice(0, 1)},
        "with the discount 0": {"discount": 0.0},
    },
)
def later_choices_move_the_target(
    compare: Recorder,
    optimal: bool = False,
    changed: slice = slice(1, None),
    discount: float = 0.99,
) -> None:
    """On chains the greedy action at the first state depends on the policy at later states.

    Jumping is greedy if the policy is uniform, and walking if it walks from the second state on.
    Under each update the greedy action of the first state changes on the way.
    """
    for n_states in range(6, 11):
        like = chain_domain(n_states)
        mdp = FiniteMDP(like.transitions, like.rewards, like.initial, discount, like.terminal)
        uniform = np.full((n_states, 2), 0.5)
        after = uniform.copy()
        after[changed] = (0.0, 1.0)
        leads = []
        for policy in (uniform, after):
            jump, walk = (mdp.optimal() if optimal else mdp.evaluate(policy)).q[0]
            leads.append(float(walk - jump))
        at = {"states": n_states}
        compare.at_most("lead of walking, uniform policy", leads[0], 0.0, limit="0", at=at)
        compare.at_least("lead of walking, later states walk", leads[1], 0.0, limit="0", at=at)
    for update in PAPER:
        values = trajectories.run(chain_domain(10), update, 100, weighting="uniform").q[:, 0]
        changes = np.count_nonzero(np.diff(values.argmax(axis=1)))
        name = "changes of the greedy action at the first state"
        compare.at_least(name, changes, 1, limit="1", at={"update": update})


@check("sec:intro/unlearning", wrong={"ten actions are still few": {"few": 10}})
def undoing_takes_n_updates_with_few_actions(compare: Recorder, few: int = 9) -> None:
    """PG-SM with up to nine actions needs at least n updates to undo n updates.

    The initial policy is uniform.
    """
    etas = ("0.1", "0.14", "0.25", "0.5", "1", "1.25", "2", "5")
    ns = (1, 2, 3, 5, 10, 30, 79)
    for actions, eta in product(range(2, 13), etas):
        # With q = (1, 0, ..., 0) and its negative the other actions stay equally likely, and the
        # first one behaves as with two actions.
        weight = exact(eta) * Fraction(actions, 2 * (actions - 1))
        steps_back = counts(ns, "pg-sm", weight, start=Fraction(1, actions))
        for n, back in zip(ns, steps_back, strict=True):
            where = {"actions": actions, "eta": eta, "n": n}
            compare.at_least("n'", back, n, limit="n", as_printed=actions > few, at=where)


@check(
    "sec:intro/unlearning/threshold",
    wrong={
        "a deficit of 0.9 is enough": {"needed": 0.9},
        "a deficit of 1.1 is needed": {"needed": 1.1},
    },
)
def short_steps_save_the_integer_part_of_the_deficit(
    compare: Recorder, needed: float = 1.0
) -> None:
    """PG-SM undoes n short steps up to pi(a_1) = 1/2 in n - floor(log(K^2 / 4(K - 1))) steps."""
    for actions in range(3, 16):
        deficit = unlearning.small_step_deficit(actions)
        # The flow time from the log-odds of 1/K to 0, in steps.
        log_odds = math.log(actions - 1)
        n = round((log_odds + math.sinh(log_odds)) / 0.02)
        saved = n - int(count(n, "pg-sm", "0.02", start=Fraction(1, actions)))
        compare.equal(
            "updates saved", saved, math.floor(deficit / needed), tolerance=0,
            limit="the integer part of the deficit",
            at={"actions": actions, "n": n, "deficit": deficit},
        )  # fmt: skip


# The causes


@check(
    "sec:symmetry/cause",
    wrong={
        "symmetric updates alone whose step does not grow": {"growing": {}, "exponents": ()},
        "symmetric updates are slow, growing steps too": {"links": CONVEX},
        "PG-SM is asymmetric, and fast": {"asymmetric": ("pg-sm",)},
        "CE is symmetric": {"symmetric": ("ce",)},
    },
)
def symmetry_and_steps_that_do_not_grow_are_slow(
    compare: Recorder,
    links: Mapping[str, Density] = LINKS | UNIFORM,
    growing: Mapping[str, Density] = CONVEX,
    exponents: Sequence[Number] = ("3/2",),
    symmetric: Sequence[str | Update] = ("pg-sm", "pg-es"),
    asymmetric: Sequence[str | Update] = ("di", "ce", "mce"),
) -> None:
    """Symmetric updates need at least n steps if no step grows; asymmetric updates need fewer."""
    rng = np.random.default_rng(3)
    for update in map(as_update, symmetric):
        for draw in range(50):
            theta, q = update.parameters(rng.dirichlet([2.0, 2.0])), rng.normal(size=2)
            net = sum(update.step(theta, sign * q) - theta for sign in (1, -1))
            compare.at_most(
                "sum of the steps for q and -q", float(np.abs(net).max()), 1e-12, limit="rounding",
                at={"update": update.name, "draw": draw},
            )  # fmt: skip
    for name, density in links.items():
        # The uniform density is a density up to |x| = 2 only.
        for eta in ("1/64",) if name in UNIFORM else ("0.1", "1"):
            where = {"density": name, "eta": eta, "n": 20}
            compare.at_least("n'", linked_count(20, eta, density), 20, limit="n", at=where)
    for update in map(as_update, asymmetric):
        for eta in ("0.1", "1", "5"):
            where = {"update": update.name, "eta": eta, "n": 100}
            compare.at_most("n'", count(100, update, eta), 99, limit="n - 1", at=where)
    cases: list[tuple[dict[str, Any], int | float]] = [
        ({"density": name, "eta": "1", "n": 20}, linked_count(20, "1", density))
        for name, density in growing.items()
    ]
    cases += [
        ({"update": "pg-es", "p": str(p), "eta": "1", "n": 100}, count(100, "pg-es", "1", p=p))
        for p in exponents
    ]
    for where, back in cases:
        compare.at_least("n'", back, where["n"], limit="n", as_printed=True, at=where)


@check(
    "sec:symmetry/concavity",
    wrong={
        "p = 2 in place of p = 1, where it does": {"p": 2.0},
        "softmax from pi(a_1) = 1/4 on": {"start": 0.25},
    },
)
def bounded_policies_need_not_flatten(
    compare: Recorder, p: float = 1.0, start: float = 0.5
) -> None:
    """The gradient length decreases from 1/2 on for softmax, but not for escort with p = 1."""
    pi = np.linspace(start, 1.0, 201)
    components = np.array([escort_components(x, p) for x in pi])  # at parameters of norm 1
    for policy, lengths in {
        "softmax": math.sqrt(2.0) * pi * (1.0 - pi),
        f"escort, p = {p:g}": p * np.hypot(*components.T),
    }.items():
        for k in range(len(pi) - 1):
            compare.at_most(
                "length of the gradient", float(lengths[k + 1]), float(lengths[k]),
                limit="that at a smaller pi(a_1)", as_printed=policy != "softmax",
                at={"policy": policy, "pi(a_1)": float(pi[k + 1])},
            )  # fmt: skip


# Theorem 4


def compare_linked_counts(
    compare: Recorder, bound: Formula, links: Mapping[str, Density], schedule: str = "constant"
) -> None:
    """Compare counts with a bound for policies F(theta_1 - theta_2) with the densities F'.

    A constant policy satisfies the three assumptions as printed.
    """
    tried = product(links.items(), ("0.1", "1", "3"), (1, 2, 5, 20, 50))
    uniform = product(UNIFORM.items() if links is LINKS else (), ("1/64",), (1, 2, 5, 20))
    constant = product({"constant policy": lambda x: 0 * x}.items(), ("1",), (1, 10))
    for (name, density), eta, n in chain(tried, uniform, constant):
        back = linked_count(n, eta, density, schedule)
        compare.at_least(
            "n'", back, bound(n), limit=limit_name(bound), as_printed=name == "constant policy",
            at={"link": name, "eta": eta, "n": n},
        )  # fmt: skip


@check(
    "sec:unlearning/invariance-gloss",
    wrong={
        "a shift does not change the escort policy": {"shifted": "pg-es"},
        "a scale does not change the softmax policy": {"scaled": "pg-sm"},
    },
)
def invariance_excludes_scales_and_no_shifts(
    compare: Recorder, shifted: str = "pg-sm", scaled: str = "pg-es"
) -> None:
    """Softmax satisfies invariance with more parameters than policies; escort does not.

    The gradients at two parameters of the same policy are equal for softmax, and differ for escort
    with p = 2 by the factor between the parameters.
    """
    rng, q = np.random.default_rng(8), np.array([1.0, 0.0])
    for draw in range(100):
        theta, amount = rng.normal(size=2), float(rng.uniform(1.5, 5.0))
        for name, moved, ratio in (
            (shifted, theta + amount, 1.0),
            (scaled, theta * amount, 1.0 / amount),
        ):
            update, at = as_update(name), {"update": name, "draw": draw}
            apart = float(np.abs(update.policy(moved) - update.policy(theta)).max())
            compare.at_most("distance of the policies", apart, 1e-12, limit="rounding", at=at)
            here, there = (float((update.step(x, q) - x)[0]) for x in (theta, moved))
            compare.equal(
                "gradient after the move, over the one before", there / here, ratio,
                tolerance=1e-9, limit="1 or the inverse scale", at=at,
            )  # fmt: skip
            compare.at_least(
                "relative distance of the gradients", abs(there / here - 1.0), 1e-9, limit="1e-9",
                as_printed=name == shifted, at=at,
            )  # fmt: skip


@check("thm:unlearn/i", wrong={"without concavity": {"links": CONVEX}})
def policy_gradients_need_as_many(compare: Recorder, links: Mapping[str, Density] = LINKS) -> None:
    """The three assumptions imply n' >= n, with equality for uniform F', unless F is constant."""
    compare_linked_counts(compare, unlearning.pg_bound_printed, links)


@check(
    "thm:unlearn/i/components",
    wrong={
        "without concavity": {"links": CONVEX},
        "from below one half": {"starts": (-3.0,), "links": {"logistic": LINKS["logistic"]}},
        "after n + 1 updates back": {"extra": 1},
    },
)
def no_component_has_returned_after_n_updates(
    compare: Recorder,
    links: Mapping[str, Density] = LINKS | UNIFORM,
    starts: Sequence[float] = (0.0, 1.0),
    extra: int = 0,
) -> None:
    """After n updates and n opposite ones the first component is no smaller than at the start.

    The second is no larger, and neither is the probability of a_1 smaller; the gradient there is no
    larger than at the start. The first update does not lower the probability. The policy is
    F(a theta_1 - b theta_2), so that the two components move by different amounts.
    """
    slopes = ((1.0, 1.0), (2.0, 1.0), (0.5, 1.0))
    for (name, density), start, (a, b), eta, n in product(
        links.items(), starts, slopes, (1 / 64, 0.1, 1.0), (1, 2, 5, 20)
    ):
        if name in UNIFORM and eta > 1 / 64:
            continue  # the uniform density is a density up to |x| = 2 only
        path = [np.zeros(2)]
        densities = [float(density(arb(start)))]
        for sign in (1.0,) * n + (-1.0,) * (n + extra):
            path.append(path[-1] + sign * eta * densities[-1] * np.array([a, -b]))
            densities.append(float(density(arb(start + float(path[-1] @ [a, -b])))))
        at = {"density": name, "start": start, "a": a, "b": b, "eta": eta, "n": n}
        first, second = path[-1].tolist()
        compare.at_least("change of the first component", first, -1e-12, limit="rounding", at=at)
        compare.at_most("change of the second component", second, 1e-12, limit="rounding", at=at)
        policy = a * first - b * second
        compare.at_least("change of the policy's argument", policy, -1e-12, limit="rounding", at=at)
        rise = float(path[1] @ [a, -b])
        compare.at_least("its change in the first update", rise, -1e-12, limit="rounding", at=at)
        growth = densities[-1] - densities[0]
        compare.at_most("growth of the gradient", growth, 1e-12, limit="rounding", at=at)


@check(
    "thm:unlearn/i/pg-sm",
    wrong={
        "from pi_0(a_1) = 1/20, too": {"starts": ("1/20",)},
        "CE in place of PG-SM": {"update": "ce"},
    },
)
def softmax_needs_one_more_from_one_half(
    compare: Recorder,
    starts: Sequence[Number] = ("1/2", "3/4", "0.99"),
    update: str | Update = "pg-sm",
) -> None:
    """PG-SM has n' >= n + 1 from pi_0(a_1) >= 1/2, but even n' >= n is false from 1/20."""
    compare_counts(compare.at_least, unlearning.pg_bound, SMALL_NS, update=update, starts=starts)
    compare_counts(
        compare.at_least, unlearning.pg_bound_printed, (2, 3, 10), as_printed=True,
        update=update, etas=("5",), starts=("1/20",),
    )  # fmt: skip


@check(
    "thm:unlearn/i/pg-sm-threshold",
    wrong={
        "from 2/5 on": {"threshold": 0.4},
        "only from 0.51 on": {"threshold": 0.51},
        "PG-ES in place of PG-SM": {"update": "pg-es"},
    },
)
def softmax_components_are_monotone_from_one_half(
    compare: Recorder, threshold: float = 0.5, update: str = "pg-sm"
) -> None:
    """The first component of PG-SM's gradient decreases from 1/2 on, and increases up to 1/2.

    The second is its negative. The gradient is the step for q = (1, 0), at two parameters of each
    policy.
    """
    chosen, step = as_update(update), 1e-3
    pi = np.linspace(threshold, 1.0 - step, 200)
    pi = np.concatenate([[threshold - step], pi])
    for shift in (0.0, 5.0):
        theta = chosen.parameters(np.stack([pi, 1.0 - pi], axis=-1)) + shift
        gradient = chosen.step(theta, np.array([1.0, 0.0])) - theta
        for k, sign in enumerate((1.0, -1.0)):
            component, at = sign * gradient[:, k], {"component": k + 1, "shift": shift}
            off = float(np.abs(component - pi * (1.0 - pi)).max())
            compare.at_most("distance from pi (1 - pi)", off, 1e-12, limit="rounding", at=at)
            falls = -np.diff(component)
            least = float(falls[1:].min())
            compare.at_least("least fall of the length above", least, 0, limit="0", at=at)
            compare.at_most("fall of the length below", float(falls[0]), 0, limit="0", at=at)


Instance = tuple[Number, str, Number, int, Number]
"""The arguments of a count of PG-ES: p, factor, eta, n and start."""


def compare_escort_counts(compare: Recorder, instances: Sequence[Instance]) -> None:
    """PG-ES can undo n updates in fewer than n updates."""
    for p, factor, eta, n, start in instances:
        compare_counts(
            compare.at_least, unlearning.pg_bound_printed, (n,),
            update="pg-es", p=p, factor=factor, etas=(eta,), starts=(start,),
        )  # fmt: skip


escort_can_be_faster = check(
    "thm:unlearn/i/pg-es",
    arguments={
        "instances": (
            ("3/2", "keep", "0.1", 2000, "1/2"),
            ("1.9", "keep", "1", 100, "1/2"),
            ("1", "keep", "3", 2, "1/2"),
            ("2", "keep", "1.8", 10, Fraction(10000, 10001)),  # theta_0 is (1, 0.01), scaled
        )
    },
    wrong={
        "only with p >= 2 and the uniform start": {
            "instances": (
                ("2", "keep", "0.1", 100, "1/2"),
                ("2", "keep", "1.8", 10, "1/2"),
                ("3", "keep", "3", 50, "1/2"),
            )
        }
    },
)(compare_escort_counts)

escort_without_its_factor_can_be_faster = check(
    "app:unlearning/pg-es-dropped",
    arguments={"instances": (("2", "drop", "5", 10, "1/2"), ("2", "drop", "8", 100, "1/2"))},
    wrong={"only with short steps": {"instances": (("2", "drop", "0.5", 100, "1/2"),)}},
)(compare_escort_counts)


@check(
    "book:pg-es-retraces",
    wrong={
        "p = 1.9, too": {"exponents": ("1.9",)},
        "p = 3/2, too": {"exponents": ("1.5",)},
        "p = 2 with the factor dropped": {"exponents": (2,), "factor": "drop"},
        "from pi_0(a_1) = 10000/10001, too": {"starts": (Fraction(10000, 10001),)},
    },
)
def escort_needs_one_more(
    compare: Recorder,
    exponents: Sequence[Number] = (2, "2.5", 3, 5),
    factor: str = "keep",
    starts: Sequence[Number] = ("1/2",),
) -> None:
    """PG-ES with p >= 2 and its exact gradient has n' >= n + 1 from the uniform policy."""
    for p in exponents:
        # At eta = 4/p the first update sets theta_2 to zero, and the count is infinite.
        zeroing = (4 / exact(p),) if factor == "keep" else ()
        compare_counts(
            compare.at_least, unlearning.pg_bound, (1, 2, 3, 10, 50, 100),
            etas=("0.05", "0.5", "1.5", "1.8", "3", "5", "20", *zeroing), starts=starts,
            update="pg-es", p=p, factor=factor,
        )  # fmt: skip


@check(
    "thm:unlearn/i/pg-es-threshold",
    wrong={
        "from one half on": {"threshold": lambda p: 0.5},
        "from (p - 1)/(2p - 1) on": {"threshold": lambda p: (p - 1) / (2 * p - 1)},
        "only from 0.01 above on": {"threshold": lambda p: p / (2 * p - 1) + 0.01},
    },
)
def escort_components_are_monotone_above_a_threshold(
    compare: Recorder, threshold: Callable[[float], float] = lambda p: p / (2 * p - 1)
) -> None:
    """The first component decreases and the second one increases from p/(2p - 1) on.

    The second component decreases just below this threshold.
    """
    step = 1e-3
    for p in (1.1, 1.5, 2.0, 3.0, 5.0, 20.0):
        first = threshold(p)
        grid = np.linspace(first, 1.0, 200)
        falls, rises = np.diff([escort_components(x, p) for x in grid], axis=0).T
        before, at = (escort_components(first - k * step, p)[1] for k in (1, 0))
        for quantity, least in {
            "fall of the first component above": (-falls).min(),
            "rise of the second component above": rises.min(),
            "fall of the second component below": before - at,
        }.items():
            compare.at_least(quantity, float(least), 0, limit="0", at={"p": p})


@check(
    "book:pg-es-window",
    wrong={
        "inside and outside of the window exchanged": {"exchanged": True},
        "the window ends at 13": {"end": 13.0},
    },
)
def counts_without_the_factor_approach_their_limit(
    compare: Recorder, exchanged: bool = False, end: float = 11.06
) -> None:
    """PG-ES with p = 2 and no factor has lim n'/n < 1 only if 2 < eta/|theta_0| < 11.06."""
    n, norm, rows = 2000, math.sqrt(2), []
    for x in (0.1, 0.5, 1.0, 1.3, 1.9, 2.2, 3.0, 5.0, 8.0, 10.0, 12.0, 15.0, 25.0):
        eta, where = Fraction(x * norm).limit_denominator(1000), {"eta / |theta_0|": x}
        _, limit = unlearning.escape_ratio(eta)
        below = (2.0 < x < end) != exchanged
        (compare.at_most if below else compare.at_least)("the limit", limit, 1, limit="1", at=where)
        # The difference from the limit is O(1/n).
        ratio = count(n, "pg-es", eta, factor="drop") / n
        compare.equal("n'/n", ratio, limit, tolerance=0.01, limit="its limit", at=where)
        rows.append({**where, "limit": limit, "n'/n": ratio})
    compare.report(**max(rows, key=lambda row: abs(row["n'/n"] - row["limit"])))


@check("thm:unlearn/ii", wrong={"weights that decay": {"schedule": "inverse-sqrt"}})
def direct_count_is_exact(compare: Recorder, schedule: str = "constant") -> None:
    """DI's count is min(n, ceil(2(1 - x)/eta)); the printed formula is correct for x = 1/2."""
    rng = np.random.default_rng(4)
    for _ in range(400):
        n, a, b = (int(rng.integers(*span)) for span in ((0, 40), (1, 40), (1, 40)))
        eta = Fraction(a, b)
        for start in (Fraction(1, 2), Fraction(int(rng.integers(0, 11)), 10)):
            back = count(n, "di", eta, schedule, start=start)
            where = {"n": n, "eta": str(eta), "start": str(start)}
            for as_printed, bound, numbers in (
                (False, unlearning.di_bound, (n, eta, start)),
                (True, unlearning.di_bound_printed, (n, eta)),
            ):
                compare.equal(
                    "n'", back, bound(*numbers), tolerance=0, limit=limit_name(bound),
                    as_printed=as_printed, at=where,
                )  # fmt: skip


@check("thm:unlearn/ii/uniform", wrong={"from pi_0(a_1) = 1/4": {"start": Fraction(1, 4)}})
def direct_count_has_two_cases(compare: Recorder, start: Fraction = Fraction(1, 2)) -> None:
    """From the uniform policy DI needs n steps before the wall, and ceil(1/eta) steps from it."""
    for eta, n in product((Fraction(a, b) for a, b in product(range(1, 6), (3, 4, 7))), range(30)):
        inside, at = n * eta <= 1, {"n": n, "eta": str(eta)}
        policy = [start, 1 - start]
        for _ in range(n):
            kernels.di(policy, policy, [Fraction(1), Fraction(0)], 0, eta, 2)
        back = count(n, "di", eta, start=start)
        compare.equal(
            "pi(a_1) after n updates", policy[0], start + n * eta / 2 if inside else Fraction(1),
            tolerance=0, limit="the sum of the steps, or 1", at=at,
        )  # fmt: skip
        needed = n if inside else math.ceil(1 / eta)
        compare.equal("n'", back, needed, tolerance=0, limit="n, or 1/eta rounded up", at=at)
        both = unlearning.di_bound_printed(n, eta)
        compare.equal("n'", back, both, tolerance=0, limit="the smaller of the two", at=at)


@check(
    "app:unlearning/di-one-step",
    wrong={
        "with half of the sum": {"share": Fraction(1, 2)},
        "a step that takes nothing from the other component": {"taken": Fraction(0)},
    },
)
def direct_updates_add_up(
    compare: Recorder, share: Fraction = Fraction(1), taken: Fraction = Fraction(1, 2)
) -> None:
    """Several DI steps with fixed values equal one step with the sum of their weights.

    One step with the values (1, 0) equals one with (1/2, -1/2).
    """
    rng, q = np.random.default_rng(8), [Fraction(1), Fraction(0)]
    for run in range(300):
        start = Fraction(int(rng.integers(0, 21)), 20)
        weights = [Fraction(int(k), 12) for k in rng.integers(1, 12, int(rng.integers(1, 9)))]
        at: dict[str, Any] = {"run": run, "start": str(start), "n": len(weights)}
        one_by_one, at_once = [start, 1 - start], [start, 1 - start]
        for weight in weights:
            kernels.di(one_by_one, one_by_one, q, 0, weight, 2)
        kernels.di(at_once, at_once, q, 0, share * sum(weights), 2)
        compare.equal("policy", one_by_one, at_once, limit="that after one update", at=at)
        for best in (0, 1):
            printed, moved = [start, 1 - start], [start, 1 - start]
            half = [Fraction(1, 2), -taken][:: -1 if best else 1]
            kernels.di(printed, printed, q[:: -1 if best else 1], best, weights[0], 2)
            kernels.di(moved, moved, half, best, weights[0], 2)
            compare.equal("policy", moved, printed, limit="that for q = (1, 0) or (0, 1)", at=at)


@check(
    "app:unlearning/ce-forward",
    wrong={
        "without the first term of the bound": {"first": 0.0},
        "from pi_0(a_1) = 0.9": {"start": math.log(9.0)},
    },
)
def forward_steps_of_cross_entropy_add_up_to_a_logarithm(
    compare: Recorder, first: float = 1.0, start: float = 0.0
) -> None:
    """The difference of CE's parameters grows as the proofs of (iii) say, with both schedules."""
    chosen, q = as_update("ce"), np.array([1.0, 0.0])
    for eta, power in product((0.01, 0.1, 1.0, 10.0), (0.0, 0.5)):
        theta, before, at = np.array([start + 1.0, 1.0]), start, {"eta": eta, "power": power}
        for n in range(1, 301):
            weight = eta * n**-power
            theta = chosen.step(theta, q, weight)
            delta, where = float(theta[0] - theta[1]), {**at, "n": n}
            step = 2.0 * weight * math.exp(-before)
            compare.at_most("step of delta", delta - before, step, limit="that printed", at=where)
            total = 2.0 * eta * n if power == 0.0 else 4.0 * eta * math.sqrt(n)
            bound = first * 2.0 * eta + math.log1p(total)
            compare.at_most("delta", delta, bound, limit="2 eta plus the logarithm", at=where)
            before = delta
    compare.report(instances=sum(tally.comparisons for tally in compare.tallies.values()))


@check(
    "thm:unlearn/iii",
    wrong={"PG-SM in place of CE": {"update": "pg-sm", "etas": ("0.1", "1"), "starts": ("1/2",)}},
)
def cross_entropy_needs_a_logarithm(
    compare: Recorder,
    update: str | Update = "ce",
    etas: Sequence[Number] = ("0.001", "0.01", "0.1", "0.7", "1", "10", "1000"),
    starts: Sequence[Number] = ("1/2", "0.9", "0.999"),
) -> None:
    """CE's strict count obeys the bound if pi_0(a_1) >= 1/2.

    The printed bound is false for two initial probabilities below 1/2.
    """
    compare_counts(
        compare.at_most, unlearning.ce_bound, (0, *SMALL_NS),
        etas=etas, starts=starts, update=update, strict=True,
    )  # fmt: skip
    compare_counts(
        compare.at_most, unlearning.ce_bound_printed, (3, 6), as_printed=True,
        etas=("1",), starts=("0.12", "1/20000"), update="ce",
    )  # fmt: skip


@check(
    "sec:symmetry/asymptotic",
    wrong={
        "PG-SM in place of CE": {"logarithmic": "pg-sm"},
        "CE in place of DI": {"bounded": "ce"},
    },
)
def direct_is_bounded_and_cross_entropy_logarithmic(
    compare: Recorder, bounded: str | Update = "di", logarithmic: str | Update = "ce"
) -> None:
    """DI's count is bounded in n, and CE's count lies between two logarithms of n."""
    ns, etas = (1, 3, 10, 100, 1000, 3000), ("0.05", "0.5", "1", "3")
    at_most, at_least = compare.at_most, compare.at_least
    compare_counts(at_most, unlearning.di_bound_in_eta, ns, etas=etas, update=bounded)
    compare_counts(at_most, unlearning.ce_bound, ns, etas=etas, update=logarithmic)
    compare_counts(at_least, unlearning.ce_lower_bound, ns, etas=etas, update=logarithmic)


@check(
    "sec:chainexp/unlearns-slower",
    wrong={
        "after few short updates, too": {"ns": (10,), "etas": ("0.1",)},
        "PG-SM is as fast as CE": {"slower": "pg-sm"},
        "DI and CE exchanged": {"slower": "di", "faster": "ce"},
    },
)
def cross_entropy_is_slower_than_direct(
    compare: Recorder,
    slower: str | Update = "ce",
    faster: str | Update = "di",
    ns: Sequence[int] = (1000, 3000),
    etas: Sequence[Number] = ETAS,
) -> None:
    """CE undoes many updates in at least as many steps as DI, and in at most a logarithm of n."""
    for eta in etas:
        pairs = zip(ns, counts(ns, slower, eta), counts(ns, faster, eta), strict=True)
        for n, long, short in pairs:
            where = {"eta": eta, "n": n}
            compare.at_least("n' of CE", long, short, limit="n' of DI", at=where)
            compare.at_most(
                "n' of CE", long, unlearning.ce_bound(n, exact(eta)),
                limit=limit_name(unlearning.ce_bound), at=where,
            )  # fmt: skip


# The comparison lemma

Run = tuple[int, Number, str, str, Number]
"""The arguments of a run: n, eta, update, schedule and p."""

RUNS: tuple[Run, ...] = (
    (20, "0.3", "pg-sm", "constant", 2),
    (20, "3", "pg-sm", "inverse-sqrt", 2),
    (20, "1", "pg-es", "constant", 2),
    (20, "5", "pg-es", "constant", 2),
    (20, "5", "pg-es", "inverse-sqrt", 2),
    (20, "1", "pg-es", "constant", "5/2"),
    (20, "1", "pg-es", "constant", 3),
    (20, "5", "pg-es", "constant", 3),
    (10, "0.3", "pg-es", "inverse-sqrt", 5),
)

ROUNDING = 1e-9
"""Relative tolerance, above the errors of the quadrature (1e-12) and of sums of 100 floats."""


@check("lem:comparison", wrong={"p = 3/2, too": {"runs": ((20, "1", "pg-es", "constant", "3/2"),)}})
def forward_steps_cover_their_weight_and_backward_steps_at_most(
    compare: Recorder, runs: Sequence[Run] = RUNS
) -> None:
    """Forward steps have flow times of at least, and backward steps of at most, the weight."""
    for n, eta, update, schedule, p in runs:
        for row in step_flow_times(n, eta, update, schedule, p):
            ratio = row["flow time"] / row["weight"]
            where = {
                **instance_of(update, p=p),
                "eta": str(eta),
                "schedule": schedule,
                "t": row["t"],
            }
            quantity = f"travel time of a {row['phase']} step over its weight"
            if row["phase"] == "forward":
                compare.at_least(quantity, ratio, 1 - ROUNDING, limit="1", at=where)
            else:
                compare.at_most(quantity, ratio, 1 + ROUNDING, limit="1", at=where)


# Theorem 5


@check(
    "thm:unlearndecay/i",
    wrong={"without concavity": {"links": {"convex": lambda x: (1 + 9 * x) / 10}}},
)
def policy_gradients_need_almost_three_times_as_many(
    compare: Recorder, links: Mapping[str, Density] = LINKS
) -> None:
    """The three assumptions imply the bound for decaying weights, unless the policy is constant."""
    compare_linked_counts(compare, unlearning.decaying_pg_bound, links, "inverse-sqrt")


@check(
    "thm:unlearndecay/i/steps",
    wrong={
        "without concavity": {"links": CONVEX},
        "one step before the policy is back": {"extra": -1},
    },
)
def backward_steps_outweigh_forward_ones(
    compare: Recorder, links: Mapping[str, Density] = LINKS, extra: int = 0
) -> None:
    """The sum of the backward steps is no less than that of the forward ones, for policies F(x).

    Each gradient of the way back lies between two consecutive gradients of the way out.
    """
    for (name, density), start, eta, n in product(
        links.items(), (0.0, 1.0), (0.1, 1.0), (1, 2, 5, 20)
    ):
        at = {"density": name, "start": start, "eta": eta, "n": n}
        x, weights, gradients = start, list[float](), list[float]()
        while len(weights) < n or x > start:
            weights.append(eta / math.sqrt(len(weights) + 1))
            gradients.append(float(density(arb(x))))
            x += (1 if len(weights) <= n else -1) * 2 * weights[-1] * gradients[-1]
        steps = np.array(weights) * gradients
        back = float(steps[n : len(steps) + extra].sum())
        forward = float(steps[:n].sum()) - 1e-12
        compare.at_least("sum of the steps back", back, forward, limit="that of those out", at=at)
        first, last, backward = gradients[0], gradients[n], np.array(gradients[n:])
        for quantity, room in {"above": first - backward, "below": backward - last}.items():
            least = float(room.min())
            compare.at_least(f"room {quantity}", least, -1e-12, limit="rounding", at=at)
        # sigma(t) is the first index whose gradient is at most the one of step t of the way back.
        sigma = (np.array(gradients[: n + 1]) > backward[:, np.newaxis] + 1e-12).sum(axis=1)
        above = np.array(gradients)[np.maximum(sigma - 1, 0)] * weights[n:]
        least = float(steps[:n].sum()) - 1e-9
        quantity = "sum of the steps back with the gradients above"
        compare.at_least(quantity, float(above.sum()), least, limit="that of those out", at=at)
        rise = float(np.diff(backward).min(initial=0.0))
        compare.at_least("rise of the gradient on the way back", rise, 0, limit="0", at=at)
    compare.report(instances=sum(tally.comparisons for tally in compare.tallies.values()))


@check("thm:unlearndecay/i/pg-sm", wrong={"CE in place of PG-SM": {"update": "ce"}})
def softmax_obeys_the_decaying_bound_from_one_half(
    compare: Recorder, update: str | Update = "pg-sm"
) -> None:
    """PG-SM with decaying weights obeys the bound from pi_0(a_1) >= 1/2, but not from 1/20."""
    for as_printed, ns, etas, starts in (
        (False, SMALL_NS, ETAS, ("1/2", "0.9")),
        (True, (2,), ("8.9",), ("1/20",)),
    ):
        compare_counts(
            compare.at_least, unlearning.decaying_pg_bound, ns, as_printed=as_printed,
            etas=etas, starts=starts, update=update, schedule="inverse-sqrt",
        )  # fmt: skip


def compare_decaying_escort(
    compare: Recorder, exponents: Sequence[Number], counterexamples: Sequence[Number] = ()
) -> None:
    """PG-ES with decaying weights obeys the bound for policy gradients only if p >= 2."""
    for p in (*exponents, *counterexamples):
        compare_counts(
            compare.at_least, unlearning.decaying_pg_bound, (1, 2, 10, 100, 300),
            etas=("0.1", "1", "5"), as_printed=p in counterexamples,
            update="pg-es", schedule="inverse-sqrt", p=p,
        )  # fmt: skip


escort_obeys_the_decaying_bound_from_2_on = check(
    "thm:unlearndecay/i/pg-es",
    arguments={"exponents": (2, 3), "counterexamples": ("1", "1.5")},
    wrong={
        "p = 3/2, too": {"exponents": (2, "1.5"), "counterexamples": ("1",)},
        "p = 2 as a counterexample": {"exponents": (3,), "counterexamples": (2,)},
    },
)(compare_decaying_escort)

escort_obeys_the_decaying_bound = check(
    "book:pg-es-retraces/decaying",
    arguments={"exponents": (2, "2.5", 3, 5)},
    wrong={"p = 3/2, too": {"exponents": ("1.5",)}},
)(compare_decaying_escort)


@check("thm:unlearndecay/ii", wrong={"also the strict count": {"strict": True}})
def direct_obeys_the_decaying_bound(compare: Recorder, strict: bool = False) -> None:
    """DI with decaying weights obeys both terms of the bound from every initial policy."""
    for bound in (unlearning.decaying_di_bound_in_n, unlearning.decaying_di_bound_in_eta):
        compare_counts(
            compare.at_most, bound, (0, *SMALL_NS), starts=("0", "1/4", "1/2", "9/10", "1"),
            update="di", schedule="inverse-sqrt", strict=strict,
        )  # fmt: skip


@check("thm:unlearndecay/ii/steps", wrong={"with 2 n in place of 3 n": {"factor": 2}})
def sums_of_weights_bound_the_updates_back(compare: Recorder, factor: int = 3) -> None:
    """The most updates back whose weights but the last add up to those out obey Theorem 5(ii)."""
    longest = 5 * max(SMALL_NS) + 100
    sums = np.concatenate([[0.0], np.cumsum(1.0 / np.sqrt(np.arange(1, longest)))])
    for n in range(1, max(SMALL_NS) + 1):
        # The sum of the first n + n' - 1 weights is at most twice that of the first n.
        back = int(np.searchsorted(sums, 2.0 * sums[n] + 1e-12, side="right")) - n
        at, root = {"n": n}, math.sqrt(n + back) - 1.0
        compare.at_most("sqrt(n + n') - 1", root, 2.0 * math.sqrt(n), limit="2 sqrt(n)", at=at)
        most = factor * n + 4 * math.sqrt(n) + 1
        compare.at_most("largest n'", back, most, limit="3 n + 4 sqrt(n) + 1", at=at)
    compare.report(instances=sum(tally.comparisons for tally in compare.tallies.values()))


@check(
    "thm:unlearndecay/iii/steps",
    wrong={
        "PG-SM in place of CE": {"update": "pg-sm"},
        "without the first term of the distance": {"first": 0.0},
    },
)
def weights_back_cover_the_distance(
    compare: Recorder, update: str | Update = "ce", first: float = 1.0
) -> None:
    """CE from uniform is back before the weights add up to the bound on the distance.

    The number of weights that add up to it obeys Theorem 5(iii).
    """
    for eta in ("0.1", "0.3", "1", "5", "100"):
        backs = counts(SMALL_NS, update, eta, "inverse-sqrt")
        for n, back in zip(SMALL_NS, backs, strict=True):
            at, rate = {"eta": eta, "n": n}, float(exact(eta))
            distance = first * 2 * rate + math.log1p(4 * rate * math.sqrt(n))
            most = unlearning.decaying_ce_bound_printed(n, rate)
            weights = rate / np.sqrt(np.arange(n + 1, n + math.ceil(most) + 2))
            enough = 1 + int(np.searchsorted(np.cumsum(weights), distance))
            compare.at_most("n'", back, enough - 1, limit="one less than the weights need", at=at)
            compare.at_most("updates whose weights are enough", enough, most, at=at)
    compare.report(instances=sum(tally.comparisons for tally in compare.tallies.values()))


@check("thm:unlearndecay/iii", wrong={"PG-SM in place of CE": {"update": "pg-sm"}})
def cross_entropy_obeys_the_decaying_bound_from_one_half(
    compare: Recorder, update: str | Update = "ce"
) -> None:
    """CE with decaying weights obeys the bound from pi_0(a_1) >= 1/2.

    The printed bound is false from pi_0(a_1) = 1/150.
    """
    process: dict[str, Any] = {"update": update, "schedule": "inverse-sqrt"}
    compare_counts(
        compare.at_most, unlearning.decaying_ce_bound, (0, *SMALL_NS),
        starts=("1/2", "0.9"), strict=True, **process,
    )  # fmt: skip
    compare_counts(
        compare.at_most, unlearning.decaying_ce_bound_printed, (30,), as_printed=True,
        etas=("1",), starts=("1/150",), **process,
    )  # fmt: skip


@check(
    "sec:symmetry/decay",
    wrong={
        "weights that do not decay": {"schedule": "constant"},
        "PG-SM in place of PG-ES at its peak": {"peaked": "pg-sm"},
    },
)
def decaying_weights_increase_counts(
    compare: Recorder, schedule: str = "inverse-sqrt", peaked: str | Update = "pg-es"
) -> None:
    """Counts with decaying weights are at least the proved lower bounds for all updates.

    The count of PG-ES at eta = 2.1 is smaller with decaying than with constant weights.
    """
    ns, etas = (1, 2, 5, 30, 300, 2000), ("0.1", "0.5", "1", "5")
    for name, eta in product(PAPER, etas):
        decaying = parse_problem(name, eta, "inverse-sqrt")
        for n, back in zip(ns, counts(ns, name, eta, schedule), strict=True):
            least, _ = unlearning.proved_bounds(n, decaying)
            where = {"update": name, "eta": eta, "n": n}
            compare.at_least("n'", back, least, limit="what is proved", at=where)
    at_peak = (counts((100, 1000), peaked, "2.1", kind) for kind in (schedule, "constant"))
    for n, back, constant in zip((100, 1000), *at_peak, strict=True):
        compare.at_least(
            "n'", back, constant, limit="n' with constant weights", as_printed=True,
            at={**instance_of(peaked), "eta": "2.1", "n": n}, note={"constant": constant},
        )  # fmt: skip


# Lemmas 11 and 12


def index_range(n: int) -> str:
    """Return the label of a range of n; Lemmas 11 and 12 hold with equality at n = 1."""
    return "$n=1$" if n == 1 else "$n>1$"


def decay(k: int, power: float) -> float:
    """Return the weight of step k in Lemma 11 (power 0) or 12 (power 1/2)."""
    return float((k + 1.0) ** -power)


def largest_sequence_obeys_the_bound(
    compare: Recorder, power: float, bound: Formula, printed: Formula, dip: float = -3.0
) -> None:
    """Nonnegative sequences obey the bound; one with a negative term violates the printed bound."""
    for c in CS:
        for n, largest in enumerate(
            unlearning.largest_sequence(2000, c, lambda k: decay(k, power))
        ):
            if n:
                compare.at_most(
                    f"$X_n$, {index_range(n)}", largest, bound(n, c), limit=limit_name(bound),
                    at={"c": c, "n": n},
                )  # fmt: skip
    # Rounded down to the printed digits, so that the printed sequence satisfies the hypothesis.
    last = math.floor(100 * (dip + decay(1, power) * math.exp(-dip))) / 100
    terms = {"X_0, X_1, X_2": (0, dip, last)}
    compare.report(**terms)
    compare.at_most(
        "$X_n$", last, printed(2, 1.0), limit=limit_name(printed), as_printed=True,
        at={"c": 1.0, "n": 2, **terms},
    )  # fmt: skip


lemma_11_needs_terms_that_are_not_negative = check(
    "lem:Xn<",
    arguments={
        "power": 0.0,
        "bound": unlearning.lemma_11_bound,
        "printed": unlearning.lemma_11_bound_printed,
    },
    wrong={"a dip to 0.5, which is none": {"dip": 0.5}},
)(largest_sequence_obeys_the_bound)

lemma_12_needs_terms_that_are_not_negative = check(
    "lem:Xn<sqrt",
    arguments={
        "power": 0.5,
        "bound": unlearning.lemma_12_bound,
        "printed": unlearning.lemma_12_bound_printed,
    },
    wrong={"a dip to 0.5, which is none": {"dip": 0.5}},
)(largest_sequence_obeys_the_bound)


def equality_lies_between_the_bounds(
    compare: Recorder, power: float, bound: Formula, printed: Formula, below: Formula
) -> None:
    """The sequence lies between the two bounds if the recursion is an equality.

    The lower one is zero at 0 and solves z' = c r(t) exp(-z), where r is 1 or the inverse root.
    """
    for c in CS:
        for t in (1, 3, 40):
            z, slope, h = below(t, c), c * decay(t, power), 1e-4
            rise = (below(t + h, c) - below(t - h, c)) / (2 * h)
            where = {"c": c, "t": t}
            compare.equal(
                "slope of z over c r exp(-z)", rise * math.exp(z) / slope, 1.0,
                tolerance=1e-6, limit="1", at=where,
            )  # fmt: skip
        compare.equal("z(0)", below(0, c), 0.0, tolerance=1e-12, limit="0", at={"c": c})
        terms = unlearning.equality_sequence(2000, c, lambda k: decay(k, power))
        for n in (0, 1, 2, 10, 2000):  # the bound at n + 1 is the printed one at n
            compare.at_most(
                "$Y_n$", terms[n], printed(n, c), limit=limit_name(printed), at={"c": c, "n": n}
            )
        for n, term in enumerate(terms[1:], 1):
            quantity, where = f"$Y_n$, {index_range(n)}", {"c": c, "n": n}
            compare.at_most(quantity, term, bound(n, c), limit=limit_name(bound), at=where)
            compare.at_least(quantity, term, below(n, c), limit=limit_name(below), at=where)


@formula
def solution_of_the_printed_equation(n: Any, c: Any) -> Any:
    """Return the solution of the equation in the proof of Lemma 12, with the weight c/(t + 1)."""
    return c + log1p(c * log(n + 1))


lemma_11_sequence_lies_between_logarithms = check(
    "lem:Xn</Y",
    arguments={
        "power": 0.0,
        "bound": unlearning.lemma_11_bound,
        "printed": unlearning.lemma_11_bound_printed,
        "below": unlearning.lemma_11_lower_bound,
    },
    wrong={"weights that decay, as in Lemma 12": {"power": 0.5}},
)(equality_lies_between_the_bounds)

lemma_12_sequence_lies_between_logarithms = check(
    "lem:Xn<sqrt/Y",
    arguments={
        "power": 0.5,
        "bound": unlearning.lemma_12_bound,
        "printed": unlearning.lemma_12_bound_printed,
        "below": unlearning.lemma_12_lower_bound,
    },
    wrong={
        "weights that do not decay, as in Lemma 11": {"power": 0.0},
        "the solution of the printed equation, weight c/(t + 1), from above": {
            "bound": solution_of_the_printed_equation
        },
    },
)(equality_lies_between_the_bounds)
