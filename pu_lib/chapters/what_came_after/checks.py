"""The checks of the chapter on what came after: counts, wells, samples, features, costs, a hunt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from itertools import accumulate, repeat

import numpy as np

from pu_lib.chapters.domino.quantities import domino
from pu_lib.chapters.evolutionary_search import quantities as hunt
from pu_lib.chapters.gravity_well.escape import escape_steps, well
from pu_lib.chapters.stochastic_updates.quantities import GAMBLE, THREE, Law, mean_step
from pu_lib.chapters.table1.quantities import COLUMNS, measure
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.chapters.what_came_after import quantities as after
from pu_lib.exact import Number, exact
from pu_lib.trajectories import follow
from pu_lib.updates import JUDGED, UPDATES, Update, as_update
from pu_lib.verdict import Status, Verdict, Worst, check, judged

ETAS = ("1/1000", "1/3", "1", "7/2", "100")
NS = (1, 2, 3, 10, 57, 300)
RATIOS = ("1001/1000", "11/10", "3/2", "2", "10")


@check(
    "after:natural-count",
    moved={
        "NPG unlearns in one update less": {"shift": -1},
        "weights that grow by one in a thousand": {"ratio": "1001/1000"},
        "strict recovery takes no longer": {"strictly": 0},
    },
)
def check_count(
    etas: Sequence[Number] = ETAS,
    ns: Sequence[int] = NS,
    shift: int = 0,
    strictly: int = 1,
    ratio: Number = 1,
) -> Verdict:
    """Compare NPG's counts with n, and those of its dominoes with 2^h - 1, in rationals.

    Parameters
    ----------
    etas : sequence of number
        Weights.
    ns : sequence of int
        Numbers of forward updates.
    shift : int
        What is added to n.
    strictly : int
        What strict recovery is to take more.
    ratio : number
        The ratio of a weight to the one before.
    """
    worst, c = Worst("minus the distance of the count from the claim"), exact(ratio, "ratio")
    for eta in etas:
        weights = [exact(eta, "eta") * c**t for t in range(2 * max(ns) + 2)]
        for n in ns:
            for strict in (False, True):
                found = after.natural_count(n, weights, strict)
                claimed = n + shift + strictly * strict
                worst.add(-abs(found - claimed), eta=str(eta), n=n, strict=strict)
    for states in range(1, 9):
        times = 1
        for _ in range(states - 1):
            times += after.natural_count(times, repeat(Fraction(1)), strict=True)
        worst.add(-abs(times - (2**states - 1)), states=states)
        worst.add(-abs(domino(states, "npg", "1/2") - times), states=states, counted="in floats")
    return judged(worst)


@check(
    "after:natural-rate",
    moved={
        "at twice the rate": {"power": 2.0},
        "PG-SM in its place": {"update": "pg-sm"},
    },
    blind={"DI in its place: it arrives, which is faster than any rate": {"update": "di"}},
)
def check_rate(
    update: str = "npg", power: float = 1.0, n_steps: int = 60, n_bandits: int = 20
) -> Verdict:
    r"""Try :math:`1-\pi_T\le o\,e^{-W\Delta}`, o the odds against the best action at the start.

    Parameters
    ----------
    update : str
        The update.
    power : float
        The exponential is taken to this power.
    n_steps, n_bandits : int
        Updates of each run, and random bandits of two to five actions.
    """
    worst, rng = Worst("the bound over the missing mass, minus 1,"), np.random.default_rng(0)
    for bandit in range(n_bandits):
        actions = 2 + bandit % 4
        q, pi = rng.random(actions), rng.dirichlet(np.ones(actions))
        weight, best = float(10 ** rng.uniform(-1, 0.5)), int(q.argmax())
        gap = float(np.min(q[best] - np.delete(q, best)))
        chosen = as_update(update)
        path = chosen.policy(follow(chosen, q, weight, n_steps, chosen.parameters(pi)))
        missing = np.delete(path, best, axis=1).sum(axis=1)
        odds = (1.0 - pi[best]) / pi[best]
        for t in range(0, n_steps + 1, 5):
            bound = odds * np.exp(-power * weight * gap * t)
            if missing[t] > 1e-250:
                excess = float(bound / missing[t]) - 1.0
                worst.add(excess + 1e-9, bandit=bandit, t=t)
    return judged(worst)


@check(
    "after:geometric-count",
    moved={
        "bounded by one update less": {"bound": -1},
        "one update less": {"shift": -1},
        "with constant weights": {"walked": "1"},
    },
)
def check_geometric(
    ratios: Sequence[Number] = RATIOS,
    ns: Sequence[int] = NS,
    shift: int = 0,
    bound: int = 0,
    walked: Number | None = None,
) -> Verdict:
    r"""Compare counts with growing weights with the least m such that :math:`c^m\ge2-c^{-n}`.

    Parameters
    ----------
    ratios : sequence of number
        The ratios c.
    ns : sequence of int
        Numbers of forward updates.
    shift : int
        What is added to the formula.
    bound : int
        What is added to the bound.
    walked : number, optional
        The ratio with which steps are made, if another one.
    """
    worst = Worst("the room")
    for ratio in ratios:
        c = exact(ratio if walked is None else walked, "ratio")
        for eta in ("1/3", "5"):
            weights = list(accumulate(repeat(c, 1200), Fraction.__mul__, initial=exact(eta, "eta")))
            for n in ns:
                claimed = after.geometric_count(n, ratio) + shift
                lead = after.geometric_bound(ratio) + bound - claimed
                for strict in (False, True):
                    found = after.natural_count(n, weights, strict)
                    where = {"ratio": str(ratio), "eta": eta, "n": n, "strict": strict}
                    worst.add(min(-abs(found - claimed), lead), **where)
    return judged(worst)


@check(
    "after:natural-well",
    moved={
        "in 138 steps": {"steps": 138},
        "the time grows like the depth": {"power": 1.0},
        "PG-SM in its place": {"update": "pg-sm"},
    },
)
def check_well(steps: int = 139, power: float = 0.0, update: str = "npg") -> Verdict:
    """Count NPG's steps out of wells, against the bounds and one exact number.

    Parameters
    ----------
    steps : int
        The steps of weight 1 from probability 1e-6 with values 1, 0.9 and 0.
    power : float
        The lower bound is to grow with the depth to this power besides.
    update : str
        The update.
    """
    worst, q = Worst("the room in the bounds"), np.array([1.0, 0.9, 0.0])
    for weight in (0.1, 1.0, 10.0):
        for depth in (1e-1, 1e-2, 1e-4, 1e-6, 1e-9):
            pi = well(depth)
            found = float(escape_steps(update, pi, q, weight, cap=2_100))
            low, high = after.escape_bounds(pi, q, weight)
            low = max(low, 0.01 * depth**-power / weight if power else low)
            worst.add(min(found - low, high - found), weight=weight, depth=depth)
    counted = float(escape_steps(update, well(1e-6), q, cap=2_100))
    worst.add(-abs(counted - steps), counted="one")
    pi = well(1e-2)
    gain = (after.natural_policy(pi, q, 1.0) - pi)[:2]
    worst.add(float(gain[1] - gain[0]) + 1e-12 if update == "npg" else 0.0, pulled="to the second")
    return judged(worst)


@check(
    "after:family",
    moved={
        "one update less": {"shift": -1},
        "whatever the index, as NPG": {"alpha": "1"},
        "whatever the index, as DI": {"alpha": "2"},
    },
)
def check_family(
    alphas: Sequence[Number] = ("5/4", "3/2", "7/4"), shift: int = 0, alpha: Number | None = None
) -> Verdict:
    r"""Compare counts of the Tsallis family with :math:`\min\{n,\lceil1/((\alpha-1)w)\rceil\}`.

    At the ends of the family the step is compared with those of DI and NPG.

    Parameters
    ----------
    alphas : sequence of number
        Indices between 1 and 2.
    shift : int
        What is added to the formula.
    alpha : number, optional
        The index in the formula, if another one.
    """
    worst, rng = Worst("the room"), np.random.default_rng(0)
    for index in alphas:
        update = after.TsallisDescent(float(exact(index, "alpha")))
        for eta in ("1/7", "3/10", "1", "5"):
            for n in (1, 5, 12, 60):
                claimed = after.family_count(n, eta, index if alpha is None else alpha) + shift
                found = count(n, update, eta)
                worst.add(-abs(found - claimed), alpha=str(index), eta=eta, n=n)
    for _ in range(100):
        pi, q, weight = rng.dirichlet(np.ones(4)), rng.random(4), float(rng.exponential())
        euclidean = UPDATES["di"].step(pi, q, weight)
        apart = np.abs(after.mirror_step(pi, q, weight, 2.0) - euclidean).max()
        worst.add(1e-12 - float(apart), end="DI")
        near = np.abs(
            after.mirror_step(pi, q, weight, 1.0 + 1e-7) - after.natural_policy(pi, q, weight)
        ).max()
        worst.add(1e-5 - float(near), end="NPG")
    return judged(worst)


@check(
    "after:natural-samples",
    moved={"CE in its place": {"update": "ce"}, "DI in its place": {"update": "di"}},
    blind={
        "PG-SM in its place: it is linear in the values, too": {"update": "pg-sm", "drift": False}
    },
)
def check_samples(
    update: str = "npg", drift: bool = True, n_steps: int = 4000, n_runs: int = 50
) -> Verdict:
    r"""Sum the mean step over all outcomes, and run NPG with samples at a constant weight.

    A common shift of softmax parameters is no bias. The slope of the log-odds of the better action
    over the spent weight is to be the gap, within five standard errors of the drawn values.

    Parameters
    ----------
    update : str
        The update.
    drift : bool
        Whether runs are to follow the drift.
    n_steps, n_runs : int
        Steps and number of the runs.
    """
    chosen, rng = as_update(update), np.random.default_rng(2)
    worst = Worst("the room")
    for law in (GAMBLE, THREE):
        for weight in (0.1, 1.0):
            for pi in rng.dirichlet(np.ones(law.outcomes.shape[1]), 20):
                off = mean_step(chosen, pi, law, weight) - mean_step(
                    chosen, pi, Law.of((1.0, tuple(law.mean))), weight
                )
                worst.add(1e-9 - float(np.ptp(off)), weight=weight, actions=len(pi))
    if drift:
        gap = float(law_gap(GAMBLE))
        spread = float(np.sqrt(GAMBLE.probabilities @ (np.ptp(GAMBLE.outcomes, axis=1)) ** 2))
        rows = rng.choice(len(GAMBLE.probabilities), (n_steps, n_runs), p=GAMBLE.probabilities)
        theta = follow(chosen, GAMBLE.outcomes[rows], 1.0, n_steps, chosen.initial(n_runs, 2))[-1]
        slopes = (theta[:, 1] - theta[:, 0]) / n_steps
        off = np.abs(slopes - gap).max()
        worst.add(5.0 * spread / np.sqrt(n_steps) - float(off), runs=n_runs)
    return judged(worst)


def law_gap(law: Law) -> float:
    """Return by how much the second of two actions is better in the mean."""
    return float(law.mean[1] - law.mean[0])


@check(
    "after:compatible",
    moved={
        "the fit without the policy's weights": {"weighted": False},
        "the chain rule in its place": {"fitted": False},
    },
)
def check_compatible(weighted: bool = True, fitted: bool = True, n: int = 60) -> Verdict:
    r"""Compare the natural gradient of linear scores with the least-squares fit of the advantages.

    The natural gradient is computed as it is defined, :math:`F^+g` with the Fisher matrix
    :math:`F = E\,\nabla\log\pi\,\nabla\log\pi^\top` and :math:`g = E\,q\,\nabla\log\pi`.

    Parameters
    ----------
    weighted : bool
        Whether the fit weighs actions by the policy.
    fitted : bool
        Whether values are fitted; else they pass the chain rule.
    n : int
        Random features, policies and values.
    """
    worst, rng = Worst("1e-8 less the difference of the new policies"), np.random.default_rng(1)
    for case in range(n):
        actions, d = int(rng.integers(3, 7)), int(rng.integers(1, 4))
        X, q, pi = (
            rng.normal(size=(actions, d)),
            rng.random(actions),
            rng.dirichlet(np.ones(actions)),
        )
        scores = X - np.einsum("a,ad->d", pi, X)  # the gradient of log pi(a), one a row
        fisher = np.einsum("a,ai,aj->ij", pi, scores, scores)
        gradient = np.einsum("a,a,ai->i", pi, q, scores)
        natural = np.linalg.pinv(fisher, hermitian=True) @ gradient
        shares = pi if weighted else np.full(actions, 1.0 / actions)
        direction = after.compatible_direction(X, shares, q) if fitted else gradient
        ours, theirs = (UPDATES["npg"].policy(np.log(pi) + X @ u) for u in (direction, natural))
        worst.add(1e-8 - float(np.abs(ours - theirs).max()), case=case)
    return judged(worst)


ROWS: Mapping[str, Mapping[str, str]] = {
    "npg": {
        "convergence": "yes",
        "rates": "O(1/t)",
        "gravity-well": "weak",
        "unlearning": "slow",
        "stochastic": "yes",
        "deep": "no",
    },
    "Tsallis, 3/2": {
        "rates": "exact",
        "gravity-well": "weak",
        "unlearning": "fast",
        "stochastic": "no",
    },
}
"""The entries of two more rows. The second has no convergence, whose nine courses take minutes
with a step that solves an equation, and no last column, which asks for a chain rule of its own."""


@check(
    "after:table",
    moved={
        "NPG unlearns fast": {"changed": ("npg", "unlearning", "fast")},
        "NPG has no gravity well": {"changed": ("npg", "gravity-well", "none")},
        "mirror descent between the two is unbiased": {
            "changed": ("Tsallis, 3/2", "stochastic", "yes")
        },
    },
)
def check_table(changed: tuple[str, str, str] | None = None) -> Verdict:
    """Measure two more rows of Table 1 by its rules.

    Parameters
    ----------
    changed : (str, str, str), optional
        A row, a column and another entry to claim there.
    """
    worst, shown = Worst("the distance from another entry, in the column's unit,"), []
    for row, entries in ROWS.items():
        update: Update = as_update(row) if row in UPDATES else after.TsallisDescent(1.5)
        for column, claimed in entries.items():
            if changed and changed[:2] == (row, column):
                claimed = changed[2]
            found = measure(update, column)
            same = found.entry == claimed
            worst.add(found.margin if same else -1.0, row=row, column=column)
            shown.append(
                {
                    "update": row,
                    "column": COLUMNS[column].title,
                    "entry": found.entry,
                    "found": found.found,
                }
            )
    return judged(worst, evidence=shown)


@check(
    "after:cost",
    moved={
        "nobody prefers one of tied actions": {"choosing": ()},
        "CE and MCE see all values": {"blinkered": ()},
        "at most three operations an action": {"most": 3.0},
    },
)
def check_cost(
    choosing: Sequence[str] = ("ce", "mce"),
    blinkered: Sequence[str] = ("ce", "mce"),
    most: float = 21.0,
    sizes: Sequence[int] = (3, 10, 100),
) -> Verdict:
    """Count what a step costs under every update that has a kernel.

    Parameters
    ----------
    choosing : sequence of str
        The updates that prefer one of tied actions.
    blinkered : sequence of str
        The updates that see no value, but which action is greedy.
    most : float
        The operations an action, at most.
    sizes : sequence of int
        Numbers of actions.
    """
    worst, shown = Worst("the room"), []
    for name in JUDGED:
        update = UPDATES[name]
        for size in sizes if update.kernel is not None else ():
            found = after.cost(update, size)
            per_action = found["operations"] / size
            worst.add(most - per_action, update=name, actions=size)
            alike = (found["tied actions"] == "alike") != (name in choosing)
            worst.add(0.0 if alike else -1.0, update=name, actions=size, part="ties")
            sees = (found["sees"] == "all values") != (name in blinkered)
            worst.add(0.0 if sees else -1.0, update=name, actions=size, part="values")
        if update.kernel is not None:
            shown.append(found)
    return judged(worst, evidence=shown)


@check(
    "after:late-drawdown",
    moved={"the fall goes on at the longest horizon": {"lasting": True}},
)
def check_late_drawdown(lasting: bool = False, short: int = 0) -> Verdict:
    """Replay the best run of each stage of the committed search; the question stays open.

    The replayed fall of the first stage must be of the committed size. A fall that the last stage
    could keep would be a candidate for a counterexample.

    Parameters
    ----------
    lasting : bool
        Whether to claim that the last stage kept a fall of a tenth of the rewards' range.
    short : int
        The stage to replay, from 0.
    """
    committed, worst, shown = hunt.load(), Worst("the room"), []
    for restart in committed["restarts"]:
        stage = restart["stages"][short]
        replayed = float(
            hunt.late_drawdown(np.array([stage["point"]]), restart["states"], stage["steps"])[0]
        )
        where = {
            "seed": restart["seed"],
            "states": restart["states"],
            "starts within": restart["start"],
        }
        worst.add(0.01 - abs(replayed / stage["drawdown"] - 1.0), **where)
        last = restart["stages"][-1]["drawdown"]
        worst.add(last - 0.1 if lasting else 0.1 - last, **where)
        names = ("first stage", "second stage", "last stage")
        falls = dict(zip(names, (s["drawdown"] for s in restart["stages"]), strict=True))
        size = {"runs": sum(s["runs"] for s in restart["stages"])}
        shown.append({**where, **falls, "last horizon": restart["stages"][-1]["steps"], **size})
    found = judged(worst, evidence=shown)
    return found if found.status is not Status.HOLDS else _open(found)


def _open(found: Verdict) -> Verdict:
    summary = (
        f"In each of {len(found.evidence)} searches the replayed fall is the recorded one, and at "
        "the last horizon no fall of a tenth of the rewards' range is left. Not proved."
    )
    return Verdict(Status.OPEN, found.margin, summary, found.evidence)
