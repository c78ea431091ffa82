"""The checks of the chapter on cross entropy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from pu_lib.theory.cross_entropy import (
    Floats,
    Ints,
    _top,
    contraction_margin,
    draw_near_cycle,
    hardened_step,
    oscillation,
    potential,
    race,
    reduced_levels,
    unresolved,
)
from pu_lib.theory.cycles import (
    FOUR_STATES,
    THREE_STATES,
    Certificate,
    CycleExample,
    NotCertifiedError,
    certify,
)
from pu_lib.updates import UPDATES, make_update
from pu_lib.verdict import Status, Verdict, check


@check("sec:conv/ce-conjecture")
def check_conjecture(
    example: CycleExample = THREE_STATES, spreads: Sequence[str] = ("0", "1/100", "1/10", "1/5")
) -> Verdict:
    """Certify cycles of CE with bounded weights, one state a step and then every state.

    Parameters
    ----------
    example : CycleExample
        The MDP and the schedule.
    spreads : sequence of str
        Weights added to every state at every step; each gives one certificate.
    """
    try:
        certificates = [certify(example.with_spread(spread)) for spread in spreads]
    except NotCertifiedError as error:
        return Verdict(Status.OPEN, None, f"No cycle was certified. {error}")
    return _refutation(
        certificates,
        f"CE cycles for ever with period {example.period} and bounded weights; every state's "
        "weights sum to infinity, and with the spread each state is updated at every step.",
    )


@check("sec:conv/ce-conjecture/constant-step")
def check_constant_step(example: CycleExample = FOUR_STATES) -> Verdict:
    """Certify the cycle of CE with a constant step size (about 15 seconds)."""
    sizes = {phase.weight for phase in example.phases}
    if len(sizes) != 1:
        return Verdict(Status.OPEN, None, f"The step sizes {sorted(sizes)} are not constant.")
    try:
        certificate = certify(example)
    except NotCertifiedError as error:
        return Verdict(Status.OPEN, None, f"No cycle was certified. {error}")
    return _refutation(
        [certificate],
        f"CE with every step of size {sizes.pop()} cycles for ever with period {example.period}.",
    )


def _refutation(certificates: Sequence[Certificate], summary: str) -> Verdict:
    """Turn certificates into a verdict: false if all orbits attract, far below the optimum."""
    rows = tuple(
        {
            "least weight": str(c.example.spread),
            "period": c.steps,
            "lead of the greedy action >=": c.smallest_gap,
            "largest multiplier": max(max(m) for m in c.multipliers),
            "v(s0) from": c.lowest[0],
            "v(s0) to": c.highest[0],
            "v*(s0) - v(s0) >=": c.shortfall[0],
        }
        for c in certificates
    )
    example = certificates[0].example
    shortfall = min(min(c.shortfall) for c in certificates)
    visited = all(example.weights.sum(axis=0) > 0)
    refuted = visited and shortfall > 0 and all(c.attracting for c in certificates)
    return Verdict(
        Status.FALSE if refuted else Status.OPEN,
        -shortfall,
        f"{summary} Certified in ball arithmetic; no state comes closer than {shortfall:.4g} to "
        "its optimum.",
        rows,
        {
            "discount": str(example.discount),
            "rewards": example.rewards,
            "successors (None ends)": example.successors,
            "schedule (state, weight, times)": [
                (p.state, str(p.weight), p.updates) for p in example.phases
            ],
            "start": [[round(float(x.mid()), 8) for x in row] for row in certificates[0].start],
        },
    )


@check("sec:conv/ce-conjecture/others")
def check_other_updates(
    updates: Sequence[str] = ("mce", "pg-sm", "di"), periods: int = 200, margin: float = 1.0
) -> Verdict:
    """Run the other updates on the three-state cycle's MDP and schedule, from its own policy.

    Each must end within `margin` of the optimum at every state, where CE stays 4.5 away. (This
    is a demonstration that the MDP and the schedule are harmless, not a proof of convergence; for
    MCE the proof is Theorem 1.)

    Parameters
    ----------
    updates : sequence of str
        The updates to run; ``"ce"`` must fail.
    periods : int
        How many periods of the schedule.
    margin : float
        How close to the optimum the values must end.
    """
    best = np.array([float(v) for v in THREE_STATES.optimum()[1]])
    rows: list[dict[str, Any]] = []
    for name in updates:
        v, _ = race(THREE_STATES, UPDATES[name], periods)
        rows.append(
            {
                "update": name,
                "v(s0) at the end": float(v[-1, 0]),
                "largest gap at the end": float((best - v[-1]).max()),
                "largest drop": float(-np.diff(v, axis=0).min()),
            }
        )
    worst = max(float(row["largest gap at the end"]) for row in rows)
    return Verdict(
        Status.HOLDS if worst < margin else Status.FALSE,
        margin - worst,
        f"After {periods} periods of the schedule on which CE cycles, from the cycle's own policy, "
        f"the largest distance to the optimum is {worst:.3g}.",
        tuple(rows),
    )


@check("sec:conv/ce-conjecture/elimination")
def check_elimination(
    n_runs: int = 60, n_steps: int = 300, bound: float = 2.0, seed: int = 0
) -> Verdict:
    r"""Evaluate the two inequalities of the elimination lemma along bandit runs.

    For an action that is never greedy: one update changes :math:`\log\pi(a)` by at least
    :math:`-2w`; hence in a window whose weights before its last step sum to less than 1, and with
    it to at least 1, starting at probability c, :math:`\sum w\pi(a)\ge c e^{-2}`.

    Parameters
    ----------
    n_runs, n_steps : int
        How many runs, and how long.
    bound : float
        The factor before :math:`w`; 2 in the lemma.
    seed : int
        Of the random values, starts and weights.
    """
    rng = np.random.default_rng(seed)
    ce = UPDATES["ce"]
    worst_step, worst_window = np.inf, np.inf
    q = np.array([1.0, 0.5, 0.0])
    for _ in range(n_runs):
        theta = 4.0 * rng.standard_normal(3)
        scale = 10.0 ** rng.uniform(-2, 1)
        weights = scale * rng.exponential(size=n_steps)
        probabilities = np.empty((n_steps + 1, 3))
        for t in range(n_steps + 1):
            probabilities[t] = ce.policy(theta)
            if t < n_steps:
                theta = ce.step(theta, q, weights[t])
        change = np.diff(np.log(probabilities[:, 1:]), axis=0)
        worst_step = min(worst_step, float((change + bound * weights[:, None]).min()))
        spent = np.concatenate([[0.0], np.cumsum(weights)])
        loss = np.vstack(
            [np.zeros(2), np.cumsum(weights[:, None] * probabilities[:-1, 1:], axis=0)]
        )
        for t in range(0, n_steps, 10):
            end = int(np.searchsorted(spent, spent[t] + 1.0))
            if end <= n_steps:
                lost = (loss[end] - loss[t]) / probabilities[t, 1:]
                worst_window = min(worst_window, float((lost - np.exp(-bound)).min()))
    worst = min(worst_step, worst_window)
    return Verdict(
        Status.HOLDS if worst >= 0.0 else Status.FALSE,
        worst,
        f"Over {n_runs} runs the change of log pi stays above -{bound:g} w by {worst_step:.3g}, "
        f"and the weighted mass of a window, relative to its start, above exp(-{bound:g}) by "
        f"{worst_window:.3g}.",
    )


def _attack(
    draw: Callable[[np.random.Generator], tuple[Floats, Ints, Ints]],
    discount: float,
    n_mdps: int,
    seed: int,
) -> tuple[float, dict[str, Any] | None]:
    r"""Run CE on drawn MDPs under the cycle's schedule and random ones; return the worst range.

    The range of the values late in the run is divided by the largest reward over
    :math:`1-\gamma`.
    """
    rng = np.random.default_rng(seed)
    worst, where = 0.0, None
    for i in range(n_mdps):
        rewards, successors, n_actions = draw(rng)
        weights = THREE_STATES.weights
        if i % 2:
            weights = np.zeros((8, len(n_actions)))
            order = rng.permutation(np.arange(8) % len(n_actions))
            weights[np.arange(8), order] = rng.integers(1, 4, 8) * 10.0 ** rng.uniform(-0.5, 1)
        theta = 15.0 * rng.standard_normal(rewards.shape)
        late = oscillation(rewards, successors, n_actions, discount, weights, theta)
        value = float(late.max()) * (1.0 - discount) / max(1.0, float(np.abs(rewards).max()))
        if value > worst:
            worst, where = value, {"rewards": rewards.tolist(), "successors": successors.tolist()}
    return worst, where


def _ring(rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Draw three states in a ring: each action goes on to the next state or ends."""
    following = np.repeat(np.array([[1], [2], [0]]), 3, axis=1)
    successors = np.where(rng.random((3, 3)) < 0.7, following, -1)
    return rng.uniform(-2.0, 2.0, (3, 3)), successors, np.full(3, 3)


LATE = 2e-3
"""What the values of a convergent run may still move by, relative to their range, late in a run."""


@check("sec:conv/ce-conjecture/small-discount")
def check_small_discount(
    discount: float = 0.45, n_mdps: int = 400, seed: int = 0, factor: float = 2.0
) -> Verdict:
    r"""Attack CE with the cycle's schedule and random ones at a discount below one half.

    Also evaluates, on the certified cycle at discount 0.9, the inequality behind the theorem.

    Parameters
    ----------
    discount : float
        Below 1/2 in the theorem.
    n_mdps : int
        How many MDPs to try.
    seed : int
        Of the draws.
    factor : float
        The 2 in :math:`D(s)\le2\gamma\max_aPD`.
    """
    worst, where = _attack(draw_near_cycle, discount, n_mdps, seed)
    certificate = certify(THREE_STATES)
    D = np.array(certificate.highest) - np.array(certificate.lowest)
    slack = contraction_margin(certificate) - (2.0 - factor) * 0.9 * float(D.max())
    margin = min(LATE - worst, slack)
    return Verdict(
        Status.HOLDS if margin >= 0 else Status.FALSE,
        margin,
        f"At discount {discount:g}, over {n_mdps} MDPs and schedules, the values late in the run "
        f"range over at most {worst:.2g} of their scale; on the certified cycle the inequality "
        f"holds with {slack:.3g} to spare.",
        counterexample=None if worst <= LATE else where,
    )


@check("sec:conv/ce-conjecture/one-successor")
def check_one_successor(
    draw: Callable[[np.random.Generator], tuple[Floats, Ints, Ints]] = _ring,
    discount: float = 0.9,
    n_mdps: int = 400,
    seed: int = 1,
) -> Verdict:
    """Attack CE on rings, where each state has one successor in its component.

    Parameters
    ----------
    draw : callable
        Draws an MDP; rings by default.
    discount : float
        The discount factor; the theorem allows any below 1.
    n_mdps, seed : int
        How many MDPs to try, and the seed of the draws.
    """
    worst, where = _attack(draw, discount, n_mdps, seed)
    return Verdict(
        Status.HOLDS if worst <= LATE else Status.FALSE,
        LATE - worst,
        f"At discount {discount:g}, over {n_mdps} MDPs and schedules, the values late in the run "
        f"range over at most {worst:.2g} of their scale.",
        counterexample=None if worst <= LATE else where,
    )


@check("sec:conv/ce-conjecture/two-actions")
def check_two_actions(n_actions: int = 2, n_points: int = 2000, seed: int = 0) -> Verdict:
    """Compare the steps of CE and MCE, which are the same formula for two actions."""
    rng = np.random.default_rng(seed)
    theta = 5.0 * rng.standard_normal((n_points, n_actions))
    q = rng.standard_normal((n_points, n_actions))
    weight = 10.0 ** rng.uniform(-3, 2, n_points)
    ce, mce = (make_update(name).step(theta, q, weight) for name in ("ce", "mce"))
    # Both steps have a few roundings of numbers not larger than |theta| + w.
    allowed = 8 * np.finfo(float).eps * (np.abs(theta).max(axis=1) + weight)
    difference = np.abs(ce - mce).max(axis=1)
    worst = float((allowed - difference).min())
    return Verdict(
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"Over {n_points} points the steps of CE and MCE differ by at most {difference.max():.2g}, "
        "within the rounding of one step.",
    )


@check("sec:conv/ce-conjecture/hardened")
def check_hardened(
    weights: Sequence[int] = (1,), n_starts: int = 100, n_steps: int = 60, seed: int = 0
) -> Verdict:
    r"""Follow the potential of hardened updates under arbitrary greedy actions, in exact numbers.

    With one constant weight an update must leave :math:`\kappa` as it is when the greedy action
    becomes the top, and lower :math:`\Psi` by at least the amount of the proof otherwise.

    Parameters
    ----------
    weights : sequence of int
        The weights the adversary may choose from; one in the theorem.
    n_starts, n_steps : int
        How many generic starts of three to five actions, and how many updates each.
    seed : int
        Of the starts and of the adversary.
    """
    rng = np.random.default_rng(seed)
    worst, updates, errors = Fraction(10), 0, 0
    counterexample = None
    for _ in range(n_starts):
        n_actions = int(rng.integers(3, 6))
        # Distinct fractional parts: no two levels ever tie.
        levels = tuple(
            Fraction(int(rng.integers(-4, 5))) + Fraction(a, n_actions) for a in range(n_actions)
        )
        for _ in range(n_steps):
            weight = int(rng.choice(list(weights)))
            greedy = int(rng.integers(n_actions))
            top = _top(levels)
            if greedy == top:
                continue
            after = hardened_step(levels, greedy, weight)
            before = potential(levels, weights[0])
            fall = before - potential(after, weights[0])
            kappa = reduced_levels(levels, weights[0])
            new = _top(after)
            owed = Fraction(0) if new == greedy else 2 * (kappa[new] - kappa[greedy] - 1)
            margin = fall - owed if new != greedy else -abs(fall)
            updates, errors = updates + 1, errors + (new not in (greedy, top))
            if margin < worst:
                worst = margin
                counterexample = {"levels": levels, "greedy": greedy, "weight": weight}
            levels = after
    holds = worst >= 0
    return Verdict(
        Status.HOLDS if holds else Status.FALSE,
        float(worst),
        f"{updates} exact updates, {errors} of them errors (a third action on top): the potential "
        f"changed as the proof says, up to {float(worst):g}.",
        counterexample=None if holds else counterexample,
    )


@check("sec:conv/ce-constant")
def check_constant_weights(families: Sequence[str] = ("three",), block: int = 0) -> Verdict:
    """Run one block of the committed hunt again and compare; the conjecture stays open.

    Parameters
    ----------
    families : sequence of str
        Which families to run again (about three seconds each).
    block : int
        Which block; the committed result holds the record of block 0.
    """
    return _hunted("constant", families, block)


@check("sec:conv/ce-on-policy")
def check_on_policy_weights(families: Sequence[str] = ("near",), block: int = 0) -> Verdict:
    """Do the same for weights proportional to the occupancy of the current policy."""
    return _hunted("on-policy", families, block)


def _hunted(weighting: str, families: Sequence[str], block: int) -> Verdict:
    from pu_lib.theory.hunt import SUSPECT, hunt_block, load

    committed = load(weighting)
    left = unresolved(committed)
    followed = committed.get("followed", [])
    largest = max(
        [0.0, *(row["drop"] for row in followed)]
        if followed
        else [row["largest_drop"] for row in committed["families"].values()]
    )
    for family in families:
        ours = hunt_block(family, committed["seed"], block, weighting)
        theirs = committed["families"][family]["first_block"]
        mismatch = [
            key
            for key in ("mdps", "dropping", "late", "suspects")
            if list(np.atleast_1d(getattr(ours, key))) != list(np.atleast_1d(theirs[key]))
        ]
        if mismatch:
            raise ValueError(
                f"{family}, block {block}: the committed hunt and this run differ in {mismatch}: "
                f"{theirs} against {ours}."
            )
    more = f" {len(followed)} suspects settled when followed for longer." if followed else ""
    return Verdict(
        Status.FALSE if left else Status.OPEN,
        SUSPECT - largest,
        f"No cycle among {committed['mdps']} MDPs ({committed['command']}, "
        f"{committed['seconds']:g} s).{more} The sample run again agrees. Not proved.",
        tuple(
            {
                "family": name,
                "MDPs": row["mdps"],
                "with a drop": row["dropping"],
                **{
                    f"moving after {h}": n
                    for h, n in zip(committed["horizons"], row["late"], strict=True)
                },
                "suspects": len(row["suspects"]),
                "largest late drop": row["largest_drop"],
            }
            for name, row in committed["families"].items()
        ),
        {"unresolved": left} if left else None,
    )
