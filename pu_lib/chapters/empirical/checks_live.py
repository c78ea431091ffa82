"""Checks of sentences on live runs, exact processes, and the setting of the experiments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product

import numpy as np
from numpy.typing import NDArray

from pu_lib.chapters.empirical.inequalities import (
    Inequality,
    bootstrap_means,
    decide,
    estimates,
    least,
    most,
    scaled_times,
    sentence,
    share,
)
from pu_lib.claims.recorder import Recorder, Status, check
from pu_lib.domains import chain
from pu_lib.experiments.curves import value_at
from pu_lib.experiments.interventions import (
    climb_from_jumping,
    greedy_with_noise,
    less_likely_successor,
    planned,
    planned_on_random_mdps,
    reached_zero,
    stopped_exploring,
    wrong_share,
)
from pu_lib.experiments.jekyll_hyde import seed_state
from pu_lib.experiments.options import SCHEMES
from pu_lib.experiments.policies import greedy_probability
from pu_lib.experiments.reference import run_reference
from pu_lib.experiments.results import Runs, results_of
from pu_lib.formatting import percent
from pu_lib.updates import PAPER, as_update, label_of

Ints = NDArray[np.int64]

BEST_AND_SLOW = {"pg-sm": (10.0, 1.0), "pg-es": (3.16, 0.316)}
"""The best rates of the policy gradients on Random MDPs under LowOffPol, and a tenth of them."""


# Random MDPs


@check(
    "sec:randommdps/connected", wrong={"each state and action has one successor": {"branching": 1}}
)
def connected(compare: Recorder, branching: int = 2, runs: int = 1000) -> Status:
    """More than half of the Random MDPs are strongly connected.

    The share is computed from a thousand draws of the transitions, before one state becomes the
    goal.
    """
    marks = np.fromiter(map(_is_strongly_connected, _links(branching, runs)), np.float64)
    row = share(f"share of {runs} Random MDPs that is strongly connected", marks, ">", 0.5)
    return decide(compare, [row], share=percent(marks.mean()), draws=runs)


def _links(branching: int, runs: int, n_states: int = 100, n_actions: int = 4) -> Iterator[Ints]:
    """Yield the random successors of each state in Random MDPs, one array per MDP.

    Successors have the same distribution as in `pu_lib.domains.random_mdp`. The arrays have the
    shape (n_states, n_actions * branching). All MDPs are drawn at once, which is much faster than
    creating each process.
    """
    rng = np.random.default_rng(2022)
    taken = np.empty((runs, n_states, n_actions, 0), dtype=np.int64)
    for k in range(branching):
        # Take the k-th free state: skip each lower state that is already taken.
        state = rng.integers(n_states - k, size=(*taken.shape[:3], 1))
        for other in range(k):
            state += state >= taken[..., [other]]
        taken = np.sort(np.concatenate([taken, state], axis=-1), axis=-1)
    yield from taken.reshape(runs, n_states, n_actions * branching)


def _is_strongly_connected(successors: Ints) -> bool:
    """Return whether every state of a graph is reachable from every other state."""
    from scipy.sparse.csgraph import connected_components

    # Use a dense matrix: SciPy does not terminate on a sparse matrix with a repeated arc.
    graph = np.zeros((len(successors), len(successors)), dtype=np.bool_)
    np.put_along_axis(graph, successors, True, axis=1)
    return bool(connected_components(graph, connection="strong")[0] == 1)


@sentence(
    "sec:randommdps/accurate-q",
    wrong={
        "a tenth of the noise is already too much": {"much": 0.1},
        "the less likely successor comes up three times in ten": {"surprise": 0.3},
    },
)
def accurate_q(
    little: float = 0.25, much: float = 1.0, surprise: float = 0.2
) -> Iterator[Inequality]:
    """A policy that is greedy for values with errors as large as their spread misses the goal.

    The less likely of the two successors has a mean probability above a fifth; a quarter is
    expected, since the two parts of [0, 1] are uniform.
    Noise is added to the optimal values of Random MDPs. If the noise is a quarter of the standard
    deviation over actions, the greedy policy still earns more than 0.95 of the gap on average; if
    the noise is as large as the standard deviation, the greedy policy earns less than 0.95.
    """
    for noise, relation in ((little, ">"), (much, "<")):
        earned = bootstrap_means(greedy_with_noise(noise))
        yield Inequality(f"noise {noise:g}: performance", earned, relation, 0.95, ratio=False)
    name, means = (
        "probability of the less likely successor",
        bootstrap_means(less_likely_successor()),
    )
    yield Inequality(name, means, ">", surprise, ratio=False)


@check(
    "sec:randommdps/offpolicy-fixes",
    wrong={"in at least three tenths of the states": {"limit": 0.3}},
)
def offpolicy_fixes(compare: Recorder, limit: float = 0.0) -> Status:
    """Off-policy updates correct the critic: it prefers a suboptimal action in fewer states.

    Live runs of 10 000 steps use CE at its best rate under NoExplo. The share of states in which
    the best action of the critic does not maximise the exact action values of the policy is smaller
    under HiOffPol than under NoExplo, with the same process in each pair of runs. This check can
    refute the sentence but not confirm it: it does not test whether this is the reason why
    off-policy updates help. The claim is open unless the inequality is refuted.
    """
    gain = bootstrap_means(wrong_share("NoExplo") - wrong_share("HiOffPol"))
    name = "share of wrong best actions, NoExplo less HiOffPol"
    row = Inequality(name, gain, ">", limit, ratio=False)
    status = decide(compare, [row])
    return status if row.holds() is False else Status.OPEN


@check(
    "sec:randomexp/slow-pg",
    wrong={
        "with the two rates exchanged": {"rates": {"pg-sm": (1.0, 10.0), "pg-es": (0.316, 3.16)}}
    },
)
def slow_policies_follow_less(
    compare: Recorder, rates: Mapping[str, tuple[float, float]] = BEST_AND_SLOW
) -> Status:
    """At a tenth of their best rates PG-SM and PG-ES give less probability to the critic's choice.

    Live runs of 20 000 steps use Random MDPs under LowOffPol. This check can refute the sentence
    but not confirm it: it does not test whether this is why off-policy updates change little. The
    claim is open unless an inequality is refuted. The probability of CE at its best rate is
    reported.
    """
    rows: list[Inequality] = []
    figures: dict[str, str] = {}
    for update, (best, slow) in rates.items():
        at_best, at_slow = (greedy_probability(update, eta) for eta in (best, slow))
        name = (
            f"{label_of(update)}: probability of the critic's best action, best rate less a tenth"
        )
        rows.append(Inequality(name, bootstrap_means(at_best - at_slow), ">", 0.0, ratio=False))
        figures |= {f"best {label_of(update)}": percent(at_best.mean(), 0)}
        figures |= {f"slow {label_of(update)}": percent(at_slow.mean(), 0)}
    figures["best CE"] = percent(greedy_probability("ce", 0.0316).mean(), 0)
    status = decide(compare, rows, **figures)
    return status if False in {row.holds() for row in rows} else Status.OPEN


@check("sec:randomexp/sarsa-like", wrong={"under HiOffPol, too": {"schemes": ("HiOffPol",)}})
def nearer_to_sarsa_is_slower(
    compare: Recorder, schemes: Sequence[str] = ("NoExplo", "LowOffPol"), table: Runs = None
) -> Status:
    """CE and MCE at ten times their best rates are greedier, and more than a factor 2 slower.

    At large rates both tend to SARSA. The probability of the critic's best action is measured in
    live runs of 20 000 steps on Random MDPs under LowOffPol, and times are those of the table.
    """
    rows, slower, best, far = [], [], 0.0316, 0.316
    for u in ("ce", "mce"):
        near, fast = (greedy_probability(u, eta) for eta in (far, best))
        name = f"{label_of(u)}: rise of the probability of the critic's best action"
        rows.append(Inequality(name, bootstrap_means(near - fast), ">", 0.0, ratio=False))
    for t in estimates(table, *(f"random-mdp/{scheme}" for scheme in schemes)):
        for u in ("ce", "mce"):
            name = f"{label_of(u)}: time at the rate {far:g} over the best"
            slower.append(t.above(name, t.over_best(u, far), 2.0))
    figures = {
        name: percent(greedy_probability(u, eta).mean(), 0)
        for name, u, eta in (("best CE", "ce", best), ("far CE", "ce", far), ("best DI", "di", 1.0))
    }
    return decide(compare, rows + slower, slower=least(slower), **figures)


@check("sec:exp/planning", wrong={"the two domains exchanged": {"exchanged": True}})
def planning_decides_on_the_chain(
    compare: Recorder, sweeps: int = 4, exchanged: bool = False
) -> None:
    """A few sweeps of value iteration are enough on Random MDPs; on the chain all are needed.

    On the chain with n states the greedy policy earns nothing before n - 1 sweeps.
    """
    short, long = planned_on_random_mdps(9), {}
    for n in (5, 7, 10):
        jumping = np.tile([1.0, 0.0], (n, 1))
        long[n] = planned(chain(n), 9, chain(n).performance(jumping))
    enough, name = {"Random MDP": short[:sweeps]}, "normalised performance"
    if exchanged:
        enough, long = {f"chain of {n}": long[n][:sweeps] for n in (7, 10)}, {10: short}
    for domain, earned in enough.items():
        at = {"domain": domain, "sweeps": len(earned)}
        compare.at_least(name, float(earned[-1]), 0.95, limit="0.95", at=at)
        compare.report(few=round(float(earned[-1]), 2), sweeps=len(earned))
    for n, earned in long.items():
        for k in range(1, n - 1):
            at = {"domain": f"chain of {n}", "sweeps": k}
            compare.at_most(name, float(earned[k - 1]), 0.05, limit="0.05", at=at)


# The chain


@check(
    "sec:chainexp/misled",
    wrong={"the other way round: first to walk": {"reverse": True, "runs": 5}},
)
def jumping_comes_first(
    compare: Recorder, updates: Sequence[str] = PAPER, runs: int = 52, reverse: bool = False
) -> Status:
    """Policies first lead to a_1.

    Live runs use the chain with 10 states under HiOffPol at the fixed rates of the paper. In more
    than nine in ten runs there is a time at which more than half of the states prefer a_1.
    """
    from pu_lib.experiments.live import flip_times

    rows = []
    for u in updates:
        flips = (flip_times(u, run) for run in range(runs))
        jumped = np.array([float(f.jumping > len(f.times) / 2) for f in flips])
        name = f"{label_of(u)}: share of runs in which most states first jump"
        rows.append(share(name, 1.0 - jumped if reverse else jumped, ">", 0.9))
    few = min(row.value for row in rows)
    jumping = "every run" if few == 1.0 else f"{percent(few, 0)} of the runs or more"
    return decide(compare, rows, jumping=jumping)


@check(
    "sec:chainexp/expected-order",
    wrong={"flips from the start": {"reverse": True}},
)
def expected_order(
    compare: Recorder, updates: Sequence[str] = PAPER, runs: int = 52, reverse: bool = False
) -> Status:
    """States flip mostly from the end of the chain to its start.

    Live runs are those of `jumping_comes_first`. In more than half of the pairs of states the state
    nearer to the end prefers a_2 for good no later than the other state.
    """
    from pu_lib.experiments.live import flip_times

    rows = []
    for u in updates:
        ordered = np.array([flip_times(u, run).ordered_share for run in range(runs)])
        name = f"{label_of(u)}: share of pairs flipped end first"
        rows.append(share(name, 1.0 - ordered if reverse else ordered, ">", 0.5))
    ordering = sorted(row.value for row in rows)
    figures = {"least ordered": percent(ordering[0], 0), "most ordered": percent(ordering[-1], 0)}
    return decide(compare, rows, **figures)


@sentence(
    "sec:chainexp/projection",
    wrong={"at a hundred times the rate, where it meets the wall": {"step_size": 0.316}},
)
def no_projection(step_size: float = 0.00316) -> Iterator[Inequality]:
    """Under NoExplo DI at its best rate does not reach the boundary of the simplex.

    In 104 live runs of at most 50 000 steps on the chain of 5 states, fewer than one run in twenty
    has a probability of zero at one of 20 times before the threshold.
    """
    name = f"DI, η = {step_size:g}: runs that met the wall"
    yield share(name, reached_zero("di", step_size, 104), "<", 0.05)


@check("sec:chainexp/still-explores", wrong={"DI and CE exchanged": {"one": "di", "other": "ce"}})
def still_explores(
    compare: Recorder, one: str = "ce", other: str = "di", table: Runs = None
) -> Status:
    """CE and MCE still explore under NoExplo at rates at which DI has stopped exploring.

    There are 52 live runs of CE and of DI at the rate 1, otherwise as in `no_projection`. The
    probability of walking is exactly zero in some state at the end of more than nine in ten runs of
    DI, and of fewer than one in ten runs of CE. In the table of runs, the censored share at the
    rate 0.0316 is larger for DI than for CE. The check does not test whether CE also learns and
    unlearns fast.
    """
    curves = results_of(table).curves("chain/NoExplo")
    shares = curves.estimates("censored")
    at_1, at_small = (
        {u: value_at(shares, curves, u, rate) for u in (one, other)} for rate in (1.0, 0.0316)
    )
    words = "η = 1: runs that have stopped exploring"
    rows = [
        share(f"{label_of(one)}, {words}", stopped_exploring(one, 1.0, 52), "<", 0.1),
        share(f"{label_of(other)}, {words}", stopped_exploring(other, 1.0, 52), ">", 0.9),
        Inequality(
            f"η = 0.0316: censored share of {label_of(other)} less {label_of(one)}",
            at_small[other] - at_small[one],
            ">",
            0.0,
            n_runs=curves.fewest_runs,
            smallest=-1.0,
        ),
    ]
    figures = {
        "walls": percent(rows[1].value),
        "walls of CE": percent(rows[0].value),
        "lost at 1": percent(min(lost[0] for lost in at_1.values())),
        "lost by DI": percent(at_small[other][0]),
        "lost by CE": percent(at_small[one][0]),
    }
    return decide(compare, rows, **figures)


# The cliff


@check(
    "sec:cliff/mce-monotone",
    wrong={"CE is monotone, and MCE is not": {"monotone": "ce", "other": "mce"}},
)
def mce_is_monotone(compare: Recorder, monotone: str = "mce", other: str = "ce") -> Status:
    """After convergence to a_1 MCE never loses performance, CE does, and MCE is faster.

    The check applies exact updates without sampling on the cliff, at small rates, from initial
    policies that jump.
    """
    rows, times = [], []
    for step_size in (0.01, 0.1):
        (quick, none), (slow, some) = (climb_from_jumping(u, step_size) for u in (monotone, other))
        for u, falls, relation in ((monotone, none, "<"), (other, some, ">")):
            name = f"η = {step_size}: falls of {label_of(u)}"
            rows.append(Inequality(name, np.array([falls]), relation, 0.5, ratio=False))
        name = f"η = {step_size}: steps of {label_of(other)} over those of {label_of(monotone)}"
        times.append(Inequality(name, np.array([slow / quick]), ">", 1.0))
        rows.append(times[-1])
    return decide(compare, rows, least=least(times), most=most(times))


@sentence("sec:cliff/order", wrong={"the other way round": {"first": 1, "then": 0, "runs": 5}})
def cliff_order(
    updates: Sequence[str] = PAPER, runs: int = 52, first: int = 0, then: int = 1
) -> Iterator[Inequality]:
    """On the cliff policies first lead to a_1 and in the end to a_2.

    Live runs use seven states under HiOffPol at the fixed rates of the paper. At some time within
    10 000 steps more than half of the states have a probability of a_1 above one half; after
    300 000 steps all states have a probability of a_2 above one half. Each statement is true in
    more than nine in ten runs. The mean share of the states that first come to a_1 is above one
    half, too.
    """
    from pu_lib.experiments.live import policies_along

    caps = np.append(np.geomspace(30, 10_000, 15), 300_000).astype(np.int64)
    most = 0.5
    first_words = f"more than {percent(most, 0)} of the states take a1 within {caps[-2]} steps"
    end_words = f"all take a2 after {caps[-1]} steps"
    for u in updates:
        likely = np.stack([policies_along("cliff", u, run, caps, 7) for run in range(runs)]) > 0.5
        led = likely[:, :-1, :, first].mean(axis=2).max(axis=1)
        yield share(f"{label_of(u)}: share of the states that first take a1", led, ">", most)
        ended = likely[:, -1, :, then].all(axis=1)
        for words, seen in ((first_words, led > most), (end_words, ended)):
            marks = np.asarray(seen, dtype=np.float64)
            yield share(f"{label_of(u)}: runs in which {words}", marks, ">", 0.9)


# The predecessor's curve


@sentence("predecessor/fig11a", wrong=scaled_times("experiment", "published-curve", 1.1))
def published_curve(table: Runs = None) -> Iterator[Inequality]:
    """Our curve equals the predecessor's curve within sampling error, for all four schedules.

    For each schedule the sum of the squares of the z-scores of its points (see `published`) is
    below the 95 % quantile of the chi-squared distribution, which is the limit if both programs
    have the same distribution and points are independent.
    """
    from scipy.stats import chi2

    from pu_lib.experiments.published import comparison

    for schedule, points in comparison(table).groupby("schedule"):
        n = len(points)
        z = np.array([np.sqrt(np.mean(points["z"] ** 2))])
        limit = round(float(np.sqrt(chi2.ppf(0.95, n) / n)), 2)
        yield Inequality(f"{schedule}: root mean square of z, {n} points", z, "<", limit, False)


# The setting: figure 1, the algorithm, the expected update

LENGTHS = range(3, 26)
"""The numbers of states of the chains in figures 3 and 4."""


@check("fig:chain-env", wrong={"jumping is worth 0.7 of walking": {"beta": 0.7}})
def chain_of_figure_1(compare: Recorder, beta: float = 0.8) -> None:
    """Jumping earns 0.8 times as much as walking at the start of the 10-state chain."""
    jumping, walking = chain(10).optimal().q[0]
    compare.equal(
        "what jumping earns over what walking does",
        jumping / walking,
        beta,
        tolerance=1e-12,
        limit="β",
        at={"state": 0},
    )


@check(
    "fig:chain-env/walking",
    wrong={
        "the reward of jumping is discounted once more": {"once_more": 1},
        "jumping pays 1.1 of it, so that jumping is optimal": {"betas": (0.8, 1.1)},
    },
)
def walking_is_optimal(
    compare: Recorder, betas: Sequence[float] = (0.7, 0.8), once_more: int = 0
) -> None:
    """On the paper's chains walking is best in each state, and jumping pays beta gamma^(n-2)."""
    for n_states, beta in product(LENGTHS, betas):
        mdp = chain(n_states, beta)
        pays = beta * mdp.discount ** (n_states - 2 + once_more)
        for s, (jumping, walking) in enumerate(mdp.optimal().q[:-1].tolist()):
            at = {"states": n_states, "beta": beta, "state": s}
            compare.at_least("walking earns", walking, jumping, limit="jumping earns", at=at)
            compare.equal(
                "jumping pays", mdp.rewards[s, 0], pays, tolerance=1e-12, limit="β γⁿ⁻²", at=at
            )


@check("alg:J&H", wrong={"Hyde has no buffer under HiOffPol either": {"scheme": "HiOffPol"}})
def one_buffer(compare: Recorder, scheme: str = "NoExplo", steps: int = 300) -> None:
    """Without exploration every transition and every update comes from the one buffer of Jekyll."""
    for update in PAPER:
        seeds = seed_state(0, "chain", 0)
        run = run_reference(chain(5), np.inf, update, 1.0, SCHEMES[scheme], seeds, max_steps=steps)
        held_by = {who: len(run.buffers[who]) for who in ("jekyll", "hyde")}
        at = {"update": update, "steps": steps}
        compare.at_most("transitions of Hyde", held_by["hyde"], 0, limit="0", at=at)
        compare.at_least("transitions of Jekyll", held_by["jekyll"], steps, limit="all", at=at)


@check(
    "alg:J&H/on-policy",
    wrong={"with a buffer of the last 300 transitions": {"held": 300}},
)
def buffer_is_older_than_the_policy(compare: Recorder, held: int = 3000, steps: int = 3000) -> None:
    """Without exploration all transitions are Jekyll's own, but those of all his policies so far.

    The printed claim says that the states of the buffer are those of the current policy, up to five
    standard errors. The share of transitions beyond the first state of the chain is compared.
    """
    mdp = chain(5)
    for name in PAPER:
        for seed in range(2):
            seeds = seed_state(0, "chain", seed)
            run = run_reference(mdp, np.inf, name, 0.1, SCHEMES["NoExplo"], seeds, max_steps=steps)
            beyond = np.array([one.state > 0 for one in run.buffers["jekyll"][-held:]])
            at = {"update": label_of(name), "seed": seed, "held": held}
            compare.equal(
                "transitions of Jekyll", len(run.buffers["jekyll"]), steps, limit="all", at=at
            )
            walking = as_update(name).policy(np.array(run.theta, dtype=np.float64))[:-1, 1]
            visits = np.cumprod(np.append(1.0, walking[:-1]))
            now = float(1.0 - visits[0] / visits.sum())
            allowed = 5 * np.sqrt(now * (1.0 - now) / held) + 1.0 / held
            compare.at_most(
                "distance of the shares beyond the first state",
                float(abs(beyond.mean() - now)),
                float(allowed),
                limit="five standard errors",
                as_printed=True,
                at=at,
                note={"in the buffer": percent(beyond.mean()), "now": percent(now)},
            )


PLACES = {
    "the text of the paper": False,
    "an index of public repositories, by the names of the authors": False,
    "stored pages, by the title of the paper": False,
}
"""Where we looked for the paper's program, and whether it was there."""


@check("sec:intro/code", wrong={"one place has it": {"places": {"the proceedings": True}}})
def program_is_attached(compare: Recorder, places: Mapping[str, bool] = PLACES) -> None:
    """One of the places that we looked at has the paper's program."""
    compare.require(any(places.values()), "we found no program of the paper")
    compare.at_least("places with the program", sum(places.values()), 1, limit="1")


@check(
    "eq:expected_update",
    wrong={"the printed direction is that of CE and MCE": {"gradients": ("ce", "mce")}},
)
def expected_update(compare: Recorder, gradients: Sequence[str] = ("pg-sm", "pg-es")) -> None:
    """The printed direction is the direction of the policy gradients, but not of CE and MCE."""
    pi, q, small = np.array([0.5, 0.3, 0.2]), np.array([0.2, 1.0, 0.5]), 1e-6
    for name in PAPER:
        update = as_update(name)
        if update.parametrization == "direct":
            continue  # the policy is the parameter itself, so the gradient is q before projection
        theta = update.parameters(pi)
        steps = np.eye(3) * small
        gradient = np.array(
            [q @ (update.policy(theta + e) - update.policy(theta - e)) for e in steps]
        )
        taken = update.step(theta, q, small) - theta
        compare.at_most(
            "distance of the directions",
            float(np.linalg.norm(_unit(gradient) - _unit(taken))),
            1e-5,
            limit="1e-5",
            as_printed=name not in gradients,
            at={"update": name},
        )


def _unit(direction: np.ndarray) -> np.ndarray:
    return np.asarray(direction / np.linalg.norm(direction))
