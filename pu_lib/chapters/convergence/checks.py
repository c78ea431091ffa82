r"""The checks of the chapter on convergence and optimality.

A run of finite length decides about a limit in two ways: from the time when the greedy actions have
settled the key lemma bounds all that follows, and where weights have a finite sum a floor under the
probabilities keeps the values away from the optimum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pu_lib.chapters.convergence import checks_remarks as convergence_remarks
from pu_lib.chapters.convergence.quantities import (
    ADVERSARIES,
    Floats,
    Mask,
    adversarial_run,
    fixed_weights,
    instances,
    key_lemma_bound,
    lemma_8_slack,
    looping_bandit,
    necessity_floor,
    one_way_mdp,
    optimality_bounds,
    settled,
    structure,
    tied_limit_mdp,
    uncontested_start,
)
from pu_lib.domains import bandit
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, Update, as_update
from pu_lib.verdict import Status, Verdict, Worst, check, judged

__all__ = ["convergence_remarks"]
"""Importing this module registers the checks of the other one as well."""

ROUNDING = 1e-12
"""Relative tolerance for values that come from a linear solve of a few dozen states."""

KEY_LEMMA = "the bound of the key lemma over the mass it bounds, minus 1,"


def _note_key_lemma(
    worst: Worst, pi: Floats, top: Mask, weights: Floats, constant: float, **instance: object
) -> None:
    """Note how far the mass outside `top` stays below the key lemma's bound along a run."""
    beta = pi[:, ~top].sum(axis=1)
    spent = np.append(0, np.cumsum(weights))
    bound = key_lemma_bound(beta[0], pi[0, top].min() / beta[0], len(top), spent, constant)
    slack = float((bound / np.maximum(beta, 1e-300)).min()) - 1.0
    worst.add(slack + ROUNDING, **instance)


@check(
    "thm:optimality/key-lemma",
    moved={
        "0.501 in place of 1/2: the constant is sharp": {"constant": 0.501},
        "CE in place of MCE": {"update": "ce"},
        "PG-SM in place of MCE": {"update": "pg-sm"},
    },
)
def check_key_lemma(constant: float = 0.5, update: str | Update = "mce") -> Verdict:
    r"""Attack the key lemma on bandits with ties: random starts, weights of all sizes, adversaries.

    The last run shows that the constant is sharp: two arms, uniform, and tiny weights.

    Parameters
    ----------
    constant : float
        The factor before :math:`c\min(1,e_0)`; 1/2 in the lemma.
    update : str or Update
        MCE in the lemma.

    Returns
    -------
    Verdict
    """
    rng, worst = np.random.default_rng(0), Worst(KEY_LEMMA)
    for i in range(80):
        n_actions = int(rng.integers(2, 7))
        n_top = int(rng.integers(1, n_actions))
        top = np.arange(n_actions) < n_top
        size = 10.0 ** rng.uniform(-2, 2)
        weights = size * rng.exponential(size=100)
        theta0 = rng.uniform(0, 4) * rng.standard_normal(n_actions)
        adversary = list(ADVERSARIES)[i % len(ADVERSARIES)]
        pi = adversarial_run(top.astype(float), adversary, weights, theta0, update)
        instance = {"actions": n_actions, "best": n_top, "ties": adversary, "weights about": size}
        _note_key_lemma(worst, pi, top, weights, constant, **instance)
    tiny = np.full(10, 1e-4)
    pi, top = adversarial_run([1.0, 0.0], "first", tiny, None, update), np.array([True, False])
    _note_key_lemma(worst, pi, top, tiny, constant, actions=2, start="uniform")
    return judged(worst)


@check(
    "lem:optimality",
    moved={
        "a bound six times smaller": {"constant": 3.0},
        "weights (t + 1)^-2, whose sum is finite": {"exponent": 2.0, "n_steps": 200},
        "PG-SM in place of MCE": {"update": "pg-sm"},
    },
    blind={
        "CE in place of MCE: on these MDPs its greedy actions settle as well, and its masses "
        "stay below the bound": {"update": "ce"}
    },
)
def check_lemma_8(
    update: str | Update = "mce",
    exponent: float = 0.5,
    constant: float = 0.5,
    n_steps: int = 600,
    several: bool = False,
) -> Verdict:
    r"""Prove convergence of MCE on each instance by a finite run, and test the bounds along it.

    Parameters
    ----------
    update : str or Update
        MCE in the lemma.
    exponent : float
        :math:`x` in the weights :math:`w_t(s)=(t+1)^{-x}`, of infinite sum for :math:`x\le1`.
    constant : float
        The factor in the key lemma.
    n_steps : int
        Length of the runs.
    several : bool
        Take the instances with several optimal policies only.

    Returns
    -------
    Verdict
        "open" where the greedy actions do not provably settle within the runs.
    """
    worst, rows = Worst("the proved bound over the gap, minus 1,"), []
    for name, mdp in instances().items():
        facts = structure(mdp)
        counts = facts.optimal[facts.contested].sum(axis=1)
        if several and (counts == 1).all():
            continue
        weights = (np.arange(n_steps) + 1.0) ** -exponent
        trajectory = run(mdp, as_update(update), n_steps, eta=weights, weighting="uniform")
        if settled(trajectory, facts) is None:
            summary = f"On {name} the greedy actions do not provably settle in {n_steps} steps."
            return Verdict(Status.OPEN, None, summary)
        start, gap, now, ahead = optimality_bounds(mdp, trajectory, facts, constant)
        tolerance = ROUNDING * max(1.0, float(np.abs(facts.v).max())) / (1.0 - mdp.discount)
        slack = min(
            float(((now + tolerance) / np.maximum(gap, tolerance)).min()),
            float(((ahead + tolerance) / np.maximum(now, tolerance)).min()),
        )
        worst.add(slack - 1.0, MDP=name)
        rows.append(
            {
                "MDP": name,
                "optimal actions a state": float(counts.mean()),
                "settled at": start,
                "gap at the end": float(gap[-1]),
                "proved bound at the end": float(ahead[-1]),
            }
        )
    return judged(worst, evidence=rows)


@check("cor:convergence", moved={"CE in place of MCE": {"update": "ce"}})
def check_corollary_7(update: str | Update = "mce") -> Verdict:
    """Follow the values on each instance under random weights; they must never decrease.

    Together with the bound by the optimal values this gives convergence, of the state values by
    monotony and of the state-action values by Bellman's equation.

    Parameters
    ----------
    update : str or Update
        MCE in the corollary.

    Returns
    -------
    Verdict
    """
    rng, worst, rows = np.random.default_rng(0), Worst("the room, rounding allowed,"), []
    for name, mdp in instances().items():
        facts = structure(mdp)
        theta0 = 3.0 * rng.standard_normal((mdp.n_states, mdp.n_actions))
        weights = 3.0 * rng.exponential(size=(200, mdp.n_states))
        weigh = fixed_weights(weights)
        trajectory = run(mdp, as_update(update), 200, weighting=weigh, theta0=theta0)
        tolerance = ROUNDING * max(1.0, float(np.abs(facts.q).max())) / (1.0 - mdp.discount)
        rise = float(np.diff(trajectory.q, axis=0).min())
        room = float((facts.q - trajectory.q).min())
        worst.add(rise + tolerance, MDP=name, part="no value decreases")
        worst.add(room + tolerance, MDP=name, part="none exceeds the optimal one")
        rows.append({"MDP": name, "least change of q": rise, "least q* - q": room})
    return judged(worst, evidence=rows)


@check(
    "thm:optimality/uniqueness",
    moved={"a bound six times smaller": {"constant": 3.0}},
    blind={
        "CE in place of MCE: these adversaries do not slow it down; one that waits until an "
        "action has the lead does, as the chapter on CE shows": {"update": "ce"}
    },
)
def check_uniqueness(update: str | Update = "mce", constant: float = 0.5) -> Verdict:
    """Test the conjecture that Theorem 1 does not need a unique optimum: adversarial ties.

    On bandits with several best arms every adversary must stay below the key lemma's bound, which
    tends to zero; on the instances with many optimal policies the finite-run proof must go through.

    Parameters
    ----------
    update : str or Update
        MCE in the theorem.
    constant : float
        The factor in the key lemma.

    Returns
    -------
    Verdict
    """
    worst, weights = Worst(KEY_LEMMA), np.ones(600)
    for rewards in ([1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 0.0], [1.0, 1.0, 0.9, 0.5, 0.0]):
        top = np.array(rewards) == max(rewards)
        for name in ADVERSARIES:
            pi = adversarial_run(rewards, name, weights, None, update)
            _note_key_lemma(worst, pi, top, weights, constant, rewards=str(rewards), ties=name)
    inner = check_lemma_8(update, constant=constant, n_steps=400, several=True)
    if inner.margin is None:
        return inner
    worst.add(inner.margin, part="MDPs with many optimal policies")
    return judged(worst)


@check("lem:optimality/proof", moved={"CE in place of MCE": {"update": "ce"}})
def check_lemma_8_proof(update: str | Update = "mce") -> Verdict:
    r"""Evaluate the printed proof's inequalities where its hypothesis is true: finite sums.

    The proof supposes that the limit is not optimal, which happens exactly when the weights sum to
    a finite value (`lemma_8_slack`). It ends with "If the optimal action is unique", which does not
    make the argmax of the *limit* unique: the verdict holds a witness. As in every limit that is
    not optimal, the weights of a state have a finite sum there. The missing line is that for a top
    action :math:`\pi_t(a)/\pi_t(\text{others})` never decreases: :math:`\pi_t(a_q)\ge e_0m`.

    Parameters
    ----------
    update : str or Update
        MCE in the proof.

    Returns
    -------
    Verdict
    """
    ours, printed = (
        Worst("the left side minus the right side"),
        Worst("the lead in the limit minus 1e-9"),
    )
    slack = lemma_8_slack(update)
    for name, value in slack.items():
        ours.add(value + 1e-11, line=name)
    witness = tied_limit_mdp()
    if (structure(witness).optimal[:2].sum(axis=1) == 1).all():
        dry = run(witness, as_update(update), 50, weighting=np.array([1.0, 0.0, 0.0]))
        limit = np.sort(dry.q[-1, 0])
        lead = float(limit[-1] - limit[-2]) - 1e-9
        printed.add(lead, MDP="tied_limit_mdp()", **{"q in the limit": limit.tolist()})
    rows = [{"line": name, "least left - right": value} for name, value in slack.items()]
    return judged(ours, printed, evidence=rows)


@check(
    "eq:boundedness",
    moved={"nine tenths of M": {"share": 0.9}},
    blind={"CE in place of MCE: its steps are no longer either": {"update": "ce"}},
)
def check_boundedness(update: str | Update = "mce", share: float = 1.0) -> Verdict:
    r"""Check that no parameter moves by more than the sum of the weights.

    Bandits with starts far from uniform, and 30 weights whose sum is between 0.1 and 30.

    Parameters
    ----------
    update : str or Update
        MCE in the proof of Lemma 9.
    share : float
        Factor on the sum.

    Returns
    -------
    Verdict
    """
    rng, chosen = np.random.default_rng(2), as_update(update)
    worst = Worst("the sum of the weights minus the distance, relative to the sum,")
    for _ in range(200):
        q = rng.random(int(rng.integers(2, 6)))
        weights = rng.dirichlet(np.ones(30)) * 10 ** rng.uniform(-1, 1.5)
        theta = start = rng.uniform(0, 12) * rng.standard_normal(len(q))
        for weight in weights:
            theta = chosen.step(theta, q, weight)
        away = np.abs(theta - start).max()
        worst.add(share - away / weights.sum() + ROUNDING, actions=len(q), total=weights.sum())
    return judged(worst)


SUMS = (2.0, 0.5, 8.0)

NOT_REENTERED = {
    "one state, discount 0": bandit([1.0, 0.0]),
    "first state never entered": one_way_mdp(),
}


@check(
    "lem:optimality-necessity",
    moved={
        "necessary in every single MDP": {"everywhere": True},
        "a finite sum of weights leaves half of the first gap": {"share": 0.5},
    },
)
def check_lemma_9(everywhere: bool = False, share: float = 0.0) -> Verdict:
    """Ask whether a finite sum of weights can leave the state-action values short of the optimum.

    The lemma speaks of a guarantee: for each sum there has to be an MDP that is left with a gap.
    Two arms that are entered again and again are one. In a single MDP a finite sum may do no harm:
    with discount 0, or at a state that is never entered.

    Parameters
    ----------
    everywhere : bool
        Whether to claim a gap in every single MDP.
    share : float
        How much of the first gap is to be left, beside what the floor leaves.

    Returns
    -------
    Verdict
        The weights of the first state have a finite sum, the others get plenty.
    """
    worst, rows = Worst("the gap of q at the end minus what the floor leaves"), []
    tried = [("entered again", looping_bandit(), total) for total in SUMS]
    for name, mdp, total in (*tried, *((name, mdp, 2.0) for name, mdp in NOT_REENTERED.items())):
        facts = structure(mdp)
        weights = np.full((400, mdp.n_states), 30.0)
        weights[:, 0] = total * 0.5 ** np.arange(1.0, 401)
        path = run(mdp, UPDATES["mce"], 400, weighting=fixed_weights(weights))
        first, last = (float((facts.q - path.q[t]).max()) for t in (0, -1))
        floor = necessity_floor(path.policies[0, 0], mdp.n_actions, total)
        passed_on = mdp.discount or 1.0  # a claim on every MDP asks for some gap with discount 0
        least = passed_on * (floor * (facts.v[0] - facts.q[0])).max() + share * first
        if everywhere or name == "entered again":
            worst.add(last - least, case=name, sum=total)
        rows.append(
            {
                "case": name,
                "sum of weights": float(path.weights[:, 0].sum()),
                "q* - q at the end": last,
                "v* - v at the end": float((facts.v - path.v[-1]).max()),
            }
        )
    return judged(worst, evidence=rows)


@check(
    "lem:optimality-necessity/corrected",
    moved={
        "half the exponent": {"factor": 0.5},
        "nine tenths of the exponent": {"factor": 0.9},
        "gaps of twice their floor": {"scale": 2.0},
    },
)
def check_necessity(factor: float = 1.0, scale: float = 1.0) -> Verdict:
    r"""Attack the corrected Lemma 9: no probability, and no gap, falls below its floor.

    Random MDPs, weights that sum to M at one state (one large step, or many) and are large
    elsewhere. At that state :math:`\pi_t(a)\ge\pi_0(a)e^{-cM}`,
    :math:`v_\star-v_t\ge\max_b\pi_0(b)e^{-cM}(v_\star-q_\star(\cdot,b))`, and
    :math:`q_\star-q_t\ge\gamma p` times that where the state is entered. Two bandits come close to
    the floors: one step of weight 200 from a tiny greedy probability, and one of weight 0.001.

    Parameters
    ----------
    factor : float
        1 in the lemma; the exponent is ``factor * c * M``.
    scale : float
        1 in the lemma; factor on the floors of the gaps.

    Returns
    -------
    Verdict
    """
    rng = np.random.default_rng(0)
    worst = Worst("the room above the floors, in logarithms for probabilities,")
    for i in range(120):
        n_actions = int(rng.integers(2, 5))
        transitions = rng.dirichlet(np.ones(3), size=(3, n_actions))
        rewards = rng.standard_normal((3, n_actions))
        mdp = FiniteMDP(transitions, rewards, np.ones(3) / 3, 0.8)
        total = 10.0 ** rng.uniform(-1, 1.5)
        n_steps = 1 if i % 2 else 30
        weights = np.full((n_steps, 3), 10.0)
        weights[:, 0] = rng.dirichlet(np.ones(n_steps)) * total
        theta0 = rng.uniform(0, 12) * rng.standard_normal((3, n_actions))
        _note_floors(worst, mdp, weights, theta0, factor, scale)
    arms = looping_bandit(discount=0.0)
    _note_floors(worst, arms, np.array([[200.0]]), np.array([[-5.0, 5.0]]), factor, scale)
    _note_floors(worst, arms, np.array([[1e-3]]), np.zeros((1, 2)), factor, scale)
    return judged(worst)


def _note_floors(
    worst: Worst, mdp: FiniteMDP, weights: Floats, theta0: Floats, factor: float, scale: float
) -> None:
    """Run MCE, and note how far the first state stays above the floors."""
    facts, total, n_actions = structure(mdp), float(weights[:, 0].sum()), mdp.n_actions
    weigh = fixed_weights(weights)
    trajectory = run(mdp, UPDATES["mce"], len(weights), weighting=weigh, theta0=theta0)
    pi = trajectory.policies[:, 0]
    # In logarithms: the floors are far below one.
    log_floor = -factor * n_actions / (n_actions - 1) * total
    worst.add(
        float((np.log(pi) - np.log(pi[0])).min()) - log_floor + ROUNDING * (1 + total),
        part="probability",
        M=total,
    )
    floor = necessity_floor(pi[0], n_actions, total, factor) * (facts.v[0] - facts.q[0])
    least = scale * floor.max()
    v_gap, q_gap = facts.v[0] - trajectory.v[:, 0], facts.q - trajectory.q
    passed_on = mdp.discount * mdp.transitions[:, :, 0]
    worst.add(float((v_gap - least).min()) + 1e-11, part="gap of v", M=total)
    worst.add(float((q_gap - passed_on * least).min()) + 1e-11, part="gap of q", M=total)


@check(
    "thm:optimality/equivalence",
    moved={"no weight at a contested state": {"dry": "contested"}},
    blind={"weights everywhere: the values become optimal too": {"dry": "none"}},
)
def check_equivalence(dry: str = "uncontested") -> Verdict:
    """Give no weight at all where it is not needed, and see the values become optimal.

    Parameters
    ----------
    dry : {"uncontested", "contested", "none"}
        Which states get no weight: those where all actions are optimal, one where they are not, or
        none.

    Returns
    -------
    Verdict
        The final gap is measured, whatever was given no weight; it must be below one hundredth of
        the first one, and below the bound that tends to 0.

    Raises
    ------
    ValueError
        If `dry` is unknown.
    """
    mdp = uncontested_start()
    facts = structure(mdp)
    weights = np.where(facts.contested | (dry == "none"), 1.0, 0.0)
    if dry == "contested":
        weights[np.flatnonzero(facts.contested)[0]] = 0.0
    elif dry not in ("uncontested", "none"):
        raise ValueError(f"dry: expected 'uncontested', 'contested' or 'none', got {dry!r}.")
    trajectory = run(mdp, UPDATES["mce"], 600, weighting=weights)
    gaps = (facts.v - trajectory.v).max(axis=1)
    worst, idle = Worst("the room"), int((weights[~mdp.terminal] == 0).sum())
    worst.add(0.01 - gaps[-1] / gaps[0], part="the share of the gap that is left", idle=idle)
    if settled(trajectory, facts) is not None:
        _, gap, now, ahead = optimality_bounds(mdp, trajectory, facts)
        worst.add(float(min((now / gap).min(), (ahead / now).min())) - 1 + 1e-9, part="the bound")
    return judged(worst)


@check(
    "sec:conv/uniqueness-others",
    moved={
        "weights (t + 1)^-2, whose sum is finite": {"exponent": 2.0},
        "PG-SM arrives as DI does": {"exact": ("di", "pg-sm")},
        "the gap of PG-SM falls to a fifth": {"share": 0.2},
    },
    blind={"MCE in place of PG-SM: it has the same rate": {"falling": ("mce",)}},
)
def check_uniqueness_of_others(
    exact: Sequence[str | Update] = ("di",),
    falling: Sequence[str | Update] = ("pg-sm",),
    exponent: float = 0.0,
    share: float = 1 / 3,
) -> Verdict:
    """Run DI and PG-SM where there are several optimal policies.

    Parameters
    ----------
    exact : sequence of str or Update
        Updates that must be optimal, to 1e-9, after 400 steps.
    falling : sequence of str or Update
        Updates whose gap must fall, from step 250 to 1000 and from there to 4000, to `share`.
    exponent : float
        The weights are (t + 1)^-exponent.
    share : float
        How much of the gap may be left; like 1/t it falls to a quarter.

    Returns
    -------
    Verdict
        What is measured is no proof; the paper cites one.
    """
    worst = Worst("the room")
    for name, mdp in instances().items():
        facts = structure(mdp)
        if (facts.optimal[facts.contested].sum(axis=1) == 1).all():
            continue
        for update in (*map(as_update, exact), *map(as_update, falling)):
            n_steps = 400 if update in map(as_update, exact) else 4000
            weights = (np.arange(n_steps) + 1.0) ** -exponent
            path = run(mdp, update, n_steps, eta=weights, weighting="uniform")
            gap = (facts.v - path.v).max(axis=1)
            room = 1e-9 - gap[-1]
            if n_steps == 4000:
                room = share - max(gap[1000] / gap[250], gap[4000] / gap[1000])
            worst.add(float(room), MDP=name, update=update.name)
    return judged(worst)


@check(
    "thm:optimality",
    moved={
        "a bound six times smaller": {"constant": 3.0},
        "PG-SM in place of MCE": {"update": "pg-sm"},
    },
)
def check_theorem_1(update: str | Update = "mce", constant: float = 0.5) -> Verdict:
    """Put Theorem 1 together: sufficient, also without uniqueness, and necessary to guarantee it.

    Parameters
    ----------
    update : str or Update
        MCE in the theorem.
    constant : float
        The factor in the key lemma.

    Returns
    -------
    Verdict
        The margins are those of the parts.
    """
    ours = Worst("the room")
    parts = {
        "sufficient": check_lemma_8(update, constant=constant),
        "without uniqueness": check_uniqueness(update, constant),
        "necessary where a suboptimal action is": check_necessity(),
        "enough where a suboptimal action is": check_equivalence(),
        "necessary to guarantee it (Lemma 9)": check_lemma_9(),
    }
    rows = [
        {"part": name, "status": part.status.value, "margin": part.margin}
        for name, part in parts.items()
    ]
    for name, part in parts.items():
        if part.margin is None:
            return part
        ours.add(part.margin, part=name)
    return judged(ours, evidence=rows)
