r"""The cross-entropy update: what the paper conjectures, what is false, what is true.

The paper conjectures that CE converges to the optimum and names no condition on the weights. Read
under the condition of its Theorem 1, :math:`\sum_t w_t(s)=\infty` at every state, the conjecture
is false: `cycles` has periodic orbits that attract an open set of starts and stay far below the
optimum. Proved in the chapter, and evaluated here:

- **elimination**: an action that is greedy only finitely often loses all its probability;
- **small discount**: with :math:`D=\limsup v_t-\liminf v_t`,
  :math:`D(s)\le2\gamma\max_a\sum_{s'}p(s'|s,a)D(s')`, hence convergence if :math:`\gamma<1/2`;
- **one successor**: convergence for every :math:`\gamma<1` if no state has more than one
  successor in its own strongly connected component;
- **two actions**: CE is MCE;
- **large constant weights**: divided by a large common weight the update becomes the *hardened*
  one: the policy is the top action, and an update moves one unit from the top action to the greedy
  one. With :math:`\kappa_a=\theta_a/w-\mathbb 1[a\text{ is the top}]`, the potential
  :math:`\Psi=\sum_a\kappa_a^2` never increases, and strictly decreases at every error.

Open: the true update with weights constant in time and every state updated (`hunt`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pu_lib.theory.cycles import (
    FOUR_STATES,
    THREE_STATES,
    Certificate,
    CycleExample,
    NotCertifiedError,
    certify,
    compiled_process,
    simulate,
)
from pu_lib.updates import UPDATES, Update, make_update
from pu_lib.verdict import Status, Verdict

__all__ = [
    "check_conjecture",
    "check_constant_step",
    "check_constant_weights",
    "check_elimination",
    "check_hardened",
    "check_on_policy_weights",
    "check_one_successor",
    "check_other_updates",
    "check_small_discount",
    "check_two_actions",
    "contraction_margin",
    "draw_near_cycle",
    "hardened_step",
    "oscillation",
    "pattern_margin",
    "potential",
    "race",
    "reduced_levels",
    "unresolved",
    "without_variation",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Levels = tuple[Fraction, ...]


# The conjecture


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
    claim = "sec:conv/ce-conjecture"
    try:
        certificates = [certify(example.with_spread(spread)) for spread in spreads]
    except NotCertifiedError as error:
        return Verdict(claim, Status.OPEN, None, f"No cycle was certified. {error}")
    return _refutation(
        claim,
        certificates,
        f"CE cycles for ever with period {example.period} and bounded weights; every state's "
        "weights sum to infinity, and with the spread each state is updated at every step.",
    )


def check_constant_step(example: CycleExample = FOUR_STATES) -> Verdict:
    """Certify the cycle of CE with a constant step size (about 15 seconds)."""
    claim = "sec:conv/ce-conjecture/constant-step"
    sizes = {phase.weight for phase in example.phases}
    if len(sizes) != 1:
        return Verdict(
            claim, Status.OPEN, None, f"The step sizes {sorted(sizes)} are not constant."
        )
    try:
        certificate = certify(example)
    except NotCertifiedError as error:
        return Verdict(claim, Status.OPEN, None, f"No cycle was certified. {error}")
    return _refutation(
        claim,
        [certificate],
        f"CE with every step of size {sizes.pop()} cycles for ever with period {example.period}.",
    )


def _refutation(claim: str, certificates: Sequence[Certificate], summary: str) -> Verdict:
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
        claim,
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


# The other updates on the same MDP and schedule


def race(
    example: CycleExample, update: Update, periods: int, start: str = "cycle"
) -> tuple[Floats, Floats]:
    """Run any update on an example's MDP and schedule, through the library's exact process.

    Parameters
    ----------
    example : CycleExample
        The MDP and the schedule.
    update : Update
        The update.
    periods : int
        How many periods.
    start : {"cycle", "uniform"}
        The policy of the cycle at the beginning of its period, or the uniform one.

    Returns
    -------
    v, weights : ndarray, shape (T + 1, n_states) and (T, n_states)
        Values before each update and after the last, and the weights, terminal state left out.
    """
    from pu_lib.trajectories import run
    from pu_lib.updates import softmax

    mdp = example.mdp()
    period = example.weights
    weights = np.hstack([period, np.zeros((len(period), 1))])
    if start == "cycle":
        theta0 = update.parameters(softmax(example.parameters()))
    elif start == "uniform":
        theta0 = update.initial(mdp.n_states, mdp.n_actions)
    else:
        raise ValueError(f"start: expected 'cycle' or 'uniform', got {start!r}.")
    trajectory = run(
        mdp,
        update,
        periods * len(period),
        weighting=lambda t, _: weights[t % len(period)],
        theta0=theta0,
    )
    return trajectory.v[:, :-1], trajectory.weights[:, :-1]


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
        "sec:conv/ce-conjecture/others",
        Status.HOLDS if worst < margin else Status.FALSE,
        margin - worst,
        f"After {periods} periods of the schedule on which CE cycles, from the cycle's own policy, "
        f"the largest distance to the optimum is {worst:.3g}.",
        tuple(rows),
    )


# What is true


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
        "sec:conv/ce-conjecture/elimination",
        Status.HOLDS if worst >= 0.0 else Status.FALSE,
        worst,
        f"Over {n_runs} runs the change of log pi stays above -{bound:g} w by {worst_step:.3g}, "
        f"and the weighted mass of a window, relative to its start, above exp(-{bound:g}) by "
        f"{worst_window:.3g}.",
    )


def oscillation(
    example_rewards: Floats,
    successors: Ints,
    n_actions: Ints,
    discount: float,
    weights: Floats,
    theta: Floats,
    periods: int = 400,
) -> Floats:
    """Return the range of each state's value over the last tenth of a periodic run of CE.

    Parameters
    ----------
    example_rewards, successors, theta : ndarray, shape (S, A)
        The MDP (successor -1 ends) and the start.
    n_actions : ndarray, shape (S,)
        Numbers of actions.
    discount : float
        The discount factor.
    weights : ndarray, shape (period, S)
        One period of the weights.
    periods : int
        How many periods to run.
    """
    steps = periods * len(weights)
    shape = (steps, len(n_actions))
    values, gaps, greedy = np.empty(shape), np.empty(shape), np.empty(shape, dtype=np.int64)
    compiled_process()(
        example_rewards,
        successors,
        n_actions,
        discount,
        theta.copy(),
        weights,
        False,
        False,
        values,
        greedy,
        gaps,
    )
    return np.asarray(np.ptp(values[-(steps // 10) :], axis=0))


def contraction_margin(certificate: Certificate) -> float:
    r"""Return the least of :math:`2\gamma\max_a D(s'_a)-D(s)` over the states of a cycle.

    On a periodic orbit :math:`D` is the range of the values over a period; the inequality of the
    small-discount theorem holds for every :math:`\gamma`, so that this is never negative.
    """
    example = certificate.example
    D = [high - low for low, high in zip(certificate.lowest, certificate.highest, strict=True)]
    return min(
        2.0 * float(example.discount) * max(0.0 if j is None else D[j] for j in row) - D[s]
        for s, row in enumerate(example.successors)
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


def draw_near_cycle(rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Draw the cycle's transitions with rewards moved a little."""
    rewards, successors, n_actions = THREE_STATES.padded()
    return rewards + 0.2 * rng.uniform(-1.0, 1.0, rewards.shape), successors, n_actions


def _ring(rng: np.random.Generator) -> tuple[Floats, Ints, Ints]:
    """Draw three states in a ring: each action goes on to the next state or ends."""
    following = np.repeat(np.array([[1], [2], [0]]), 3, axis=1)
    successors = np.where(rng.random((3, 3)) < 0.7, following, -1)
    return rng.uniform(-2.0, 2.0, (3, 3)), successors, np.full(3, 3)


LATE = 2e-3
"""What the values of a convergent run may still move by, relative to their range, late in a run."""


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
        "sec:conv/ce-conjecture/small-discount",
        Status.HOLDS if margin >= 0 else Status.FALSE,
        margin,
        f"At discount {discount:g}, over {n_mdps} MDPs and schedules, the values late in the run "
        f"range over at most {worst:.2g} of their scale; on the certified cycle the inequality "
        f"holds with {slack:.3g} to spare.",
        counterexample=None if worst <= LATE else where,
    )


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
        "sec:conv/ce-conjecture/one-successor",
        Status.HOLDS if worst <= LATE else Status.FALSE,
        LATE - worst,
        f"At discount {discount:g}, over {n_mdps} MDPs and schedules, the values late in the run "
        f"range over at most {worst:.2g} of their scale.",
        counterexample=None if worst <= LATE else where,
    )


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
        "sec:conv/ce-conjecture/two-actions",
        Status.HOLDS if worst >= 0 else Status.FALSE,
        worst,
        f"Over {n_points} points the steps of CE and MCE differ by at most {difference.max():.2g}, "
        "within the rounding of one step.",
    )


# The large-weight limit


def hardened_step(levels: Levels, greedy: int, weight: Fraction | int) -> Levels:
    """Move `weight` from the top level to the greedy one (nothing if they are the same)."""
    moved = list(levels)
    moved[_top(levels)] -= weight
    moved[greedy] += weight
    return tuple(moved)


def reduced_levels(levels: Levels, weight: Fraction | int) -> Levels:
    r"""Return :math:`\kappa_a = \theta_a/w - \mathbb 1[a\text{ is the top}]`."""
    top = _top(levels)
    return tuple(Fraction(level) / weight - (a == top) for a, level in enumerate(levels))


def potential(levels: Levels, weight: Fraction | int) -> Fraction:
    r"""Return :math:`\Psi = \sum_a \kappa_a^2`."""
    return sum((kappa**2 for kappa in reduced_levels(levels, weight)), Fraction(0))


def _top(levels: Levels) -> int:
    """Return the action with the largest level; a tie has no hardened policy."""
    best = max(levels)
    tops = [a for a, level in enumerate(levels) if level == best]
    if len(tops) > 1:
        raise ValueError(f"levels: the actions {tops} tie for the top at {best}.")
    return tops[0]


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
        "sec:conv/ce-conjecture/hardened",
        Status.HOLDS if holds else Status.FALSE,
        float(worst),
        f"{updates} exact updates, {errors} of them errors (a third action on top): the potential "
        f"changed as the proof says, up to {float(worst):g}.",
        counterexample=None if holds else counterexample,
    )


def pattern_margin(discount: float, example: CycleExample = THREE_STATES) -> float:
    """Return how far the greedy actions of the hardened cycle can be ahead, over all rewards.

    Rewards are free in [-1, 1]; the transitions and the hardened policies of the cycle are kept.
    The values are linear in the rewards, so that this is a linear programme; it is zero where no
    rewards make the pattern a cycle of the large-weight limit.
    """
    from scipy.optimize import linprog

    index = {
        pair: k
        for k, pair in enumerate(
            (s, a) for s in range(example.n_states) for a in range(example.n_actions[s])
        )
    }
    orbit = simulate(example, 50)
    constraints = []
    for t, policy in enumerate(_hardened_policies(example)):
        matrix, reward = np.eye(example.n_states), np.zeros((example.n_states, len(index)))
        for s, a in enumerate(policy):
            reward[s, index[s, a]] = 1.0
            j = example.successors[s][a]
            if j is not None:
                matrix[s, j] -= discount
        v = np.linalg.solve(matrix, reward)
        s = int(example.updated[t])
        q = []
        for a, j in enumerate(example.successors[s]):
            row = np.zeros(len(index)) if j is None else discount * v[j]
            q.append(row + np.eye(len(index))[index[s, a]])
        g = int(orbit.greedy[t - example.period, s])
        constraints += [np.append(q[a] - q[g], 1.0) for a in range(example.n_actions[s]) if a != g]
    objective = np.append(np.zeros(len(index)), -1.0)
    bounds = [(-1.0, 1.0)] * len(index) + [(0.0, None)]
    solution = linprog(objective, np.array(constraints), np.zeros(len(constraints)), bounds=bounds)
    return float(solution["x"][-1])


def _hardened_policies(example: CycleExample) -> list[tuple[int, ...]]:
    """Return the most probable action of each state before each step of the cycle's period."""
    theta = [np.array(row) for row in example.start]
    policies = []
    for phase in example.phases:
        policies.append(tuple(int(np.argmax(row)) for row in theta))
        row = theta[phase.state]
        pi = np.exp(row - row.max())
        pi /= pi.sum()
        target = np.arange(len(row)) == phase.greedy
        theta[phase.state] = row + float(phase.weight) * (target - pi)
    return policies


# The open case


def check_constant_weights(families: Sequence[str] = ("three",), block: int = 0) -> Verdict:
    """Run one block of the committed hunt again and compare; the conjecture stays open.

    Parameters
    ----------
    families : sequence of str
        Which families to run again (about three seconds each).
    block : int
        Which block; the committed result holds the record of block 0.
    """
    return _hunted("sec:conv/ce-constant", "constant", families, block)


def check_on_policy_weights(families: Sequence[str] = ("near",), block: int = 0) -> Verdict:
    """Do the same for weights proportional to the occupancy of the current policy."""
    return _hunted("sec:conv/ce-on-policy", "on-policy", families, block)


def unresolved(result: dict[str, Any]) -> list[list[Any]]:
    """Return the suspects of a hunt that did not settle when they were followed for longer."""
    settled = [
        [row["family"], row["block"], row["index"]]
        for row in result.get("followed", [])
        if not row["suspect"]
    ]
    suspects = [
        [family, *where] for family, row in result["families"].items() for where in row["suspects"]
    ]
    return [suspect for suspect in suspects if suspect not in settled]


def _hunted(claim: str, weighting: str, families: Sequence[str], block: int) -> Verdict:
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
        claim,
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


def without_variation(example: CycleExample = THREE_STATES) -> CycleExample:
    """Return the example with the same weight at every step (it no longer cycles)."""
    return replace(
        example,
        name=f"{example.name}, equal weights",
        phases=tuple(replace(phase, weight=Fraction(10)) for phase in example.phases),
    )
