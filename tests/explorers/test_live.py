"""Test that the explorers agree with the library (in Node) and work in a browser."""

import math
import re
from collections.abc import Callable, Iterator
from itertools import islice, product
from typing import Any

import numpy as np
import pytest
import traitlets
from playwright.sync_api import Page

from pu_lib import explorers
from pu_lib.chapters.convergence.quantities import fading_run
from pu_lib.chapters.cross_entropy.cycles import THREE_STATES, simulate
from pu_lib.chapters.cross_entropy.quantities import one_period
from pu_lib.chapters.domino.quantities import domino, history, recursion
from pu_lib.chapters.function_approximation.fitted_direct import (
    Place,
    fitted_run,
    geometric_weights,
)
from pu_lib.chapters.function_approximation.quantities import contexts, reversal_paths
from pu_lib.chapters.gravity_well.escape import escape_steps
from pu_lib.chapters.gravity_well.quantities import condition_map
from pu_lib.chapters.monotonicity.quantities import value_change
from pu_lib.chapters.more_than_two_actions.quantities import count as count_turns
from pu_lib.chapters.rates.quantities import odds
from pu_lib.chapters.remedies.quantities import (
    CHANGES,
    Remedy,
    SampledRemedy,
    outcomes,
    sampled_outcomes,
)
from pu_lib.chapters.reward_hack.quantities import advantages, log_odds_step, mean_count
from pu_lib.chapters.stochastic_updates.quantities import gamble
from pu_lib.chapters.unlearning.quantities import count, counts, path
from pu_lib.chapters.what_came_after.quantities import family_count
from pu_lib.domains import chain
from pu_lib.explorers import (
    AtTheWall,
    ChainPlay,
    ChangeOfMind,
    Counterexample,
    CycleComic,
    Dominoes,
    FadingWeights,
    FittedDirect,
    GravityWell,
    Live,
    Noise,
    Price,
    RateLimit,
    Remedies,
    RewardHack,
    SampledValues,
    Symmetry,
    TakeTurns,
    TsallisFamily,
)
from pu_lib.explorers.base import COMPUTED
from pu_lib.explorers.simplex_lab import SimplexLab
from pu_lib.mdp import FiniteMDP
from pu_lib.trajectories import mixture, run
from pu_lib.updates import PAPER, UPDATES, label_of

OFFERED = [getattr(explorers, name) for name in explorers.__all__ if name not in ("Live", "module")]
FIGURES = [SimplexLab, *(offered for offered in OFFERED if issubclass(offered, Live))]
per_figure = pytest.mark.parametrize("figure", FIGURES, ids=lambda figure: figure.__name__)

Call = Callable[[list[list[Any]]], Any]
OpenFigure = Callable[..., Page]


def to_float(value: Any) -> float:
    return math.inf if value == "Infinity" else value


# Numbers with an accuracy of 1e-12


def test_pages_compute_every_update(live: Call) -> None:
    known = live([["known", name] for name in UPDATES])
    computed = [name for name, is_known in zip(UPDATES, known, strict=True) if is_known]
    assert computed == list(COMPUTED)
    missing = set(UPDATES) - set(computed)
    assert not missing, "give these a kernel and run `make steps`"


def test_error_in_javascript_fails_its_call_alone(live: Call) -> None:
    with pytest.raises(AssertionError, match="TypeError"):
        live([["no such function"]])
    assert live([["known", "ce"], ["known", "constructor"]]) == [True, False]
    with pytest.raises(pytest.fail.Exception, match="Node has stopped"):
        live([["stop"]])
    assert live([["known", "ce"]]) == [True]


@pytest.mark.parametrize("name", COMPUTED)
def test_parameters_of_a_policy_agree_with_the_library(live: Call, name: str) -> None:
    pi = np.random.default_rng(1).dirichlet(np.ones(4))
    [theta, start] = live([["parametersOf", name, pi.tolist()], ["initial", name, 4]])
    np.testing.assert_allclose(theta, UPDATES[name].parameters(pi), rtol=1e-12)
    np.testing.assert_array_equal(start, UPDATES[name].initial(1, 4)[0])


def as_json(mdp: FiniteMDP) -> dict[str, Any]:
    dense = np.asarray(mdp.transitions).reshape(mdp.n_states, mdp.n_actions, mdp.n_states)
    return {
        "transitions": np.where(mdp.terminal[:, None, None], 0.0, dense).tolist(),
        "rewards": np.asarray(mdp.rewards).tolist(),
        "initial": np.asarray(mdp.initial).tolist(),
        "discount": float(mdp.discount),
        "terminal": [bool(end) for end in mdp.terminal],
    }


@pytest.mark.parametrize(
    "mdp", [chain(3), chain(10), chain(12, beta=0.7), THREE_STATES.mdp()], ids=lambda m: m.n_states
)
def test_policy_evaluation_agrees_with_the_library(live: Call, mdp: FiniteMDP) -> None:
    rng = np.random.default_rng(2)
    shape = (mdp.n_states, mdp.n_actions)
    policies = [rng.dirichlet(np.full(shape[1], 0.4), size=shape[0]) for _ in range(20)]
    evaluations = live([["evaluate", as_json(mdp), policy.tolist()] for policy in policies])
    for policy, values in zip(policies, evaluations, strict=True):
        expected = mdp.evaluate(policy)
        for key in ("v", "q", "occupancy", "performance"):
            np.testing.assert_allclose(values[key], getattr(expected, key), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("states", range(3, 13))
def test_chain_agrees_with_the_library(live: Call, states: int) -> None:
    [process] = live([["chain", states]])
    expected = as_json(chain(states))
    for key in ("transitions", "initial", "discount", "terminal"):
        assert process[key] == expected[key]
    np.testing.assert_allclose(process["rewards"], expected["rewards"], rtol=1e-15)


@pytest.mark.parametrize("name", COMPUTED)
def test_chain_run_agrees_with_the_library(live: Call, name: str) -> None:
    shown = ChainPlay()
    mdp = chain(shown.states)
    [frames] = live([["learn", as_json(mdp), name, shown.steps, shown.eta, shown.share]])
    expected = run(mdp, UPDATES[name], shown.steps, shown.eta, mixture(shown.share))
    inner = shown.states - 1
    for key, values in (("policies", expected.policies), ("q", expected.q)):
        played = np.array([frame[key] for frame in frames])
        # The tolerance allows for the rounding errors of 640 steps with values of at most 1.
        np.testing.assert_allclose(played[:, :inner], values[:, :inner], atol=1e-11)
    np.testing.assert_allclose(
        [frame["performance"] for frame in frames], expected.performance, atol=1e-11
    )
    # No performance is so close to 95 % that rounding changes the step of the crossing.
    goal = 0.95 * mdp.optimal().performance
    assert np.abs(expected.performance - goal).min() > 1e-9


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt"])
@pytest.mark.parametrize("name", PAPER)
def test_race_paths_agree_with_the_library(live: Call, name: str, schedule: str) -> None:
    [paths] = live([["race", name, 30, 0.5, schedule]])
    home = len(paths["home"]) - 1
    expected = path(30, home, name, "1/2", schedule)
    np.testing.assert_allclose(paths["out"], expected[:31], rtol=1e-12)
    np.testing.assert_allclose(paths["home"], expected[30:], rtol=1e-11, atol=1e-12)


def test_only_policy_gradient_steps_are_symmetric(live: Call) -> None:
    grid = [round(0.02 + 0.01 * i, 2) for i in range(97)]
    for name in PAPER:
        pairs = np.array(live([["mirror", name, x, 0.5] for x in grid]))
        cancels = np.abs(pairs.sum(axis=1)) < 1e-12
        update = UPDATES[name]
        for x, pair in zip(grid, pairs, strict=True):
            theta = update.parameters([x, 1 - x])
            moves = [update.step(theta, [sign, 0.0], 0.5) - theta for sign in (1.0, -1.0)]
            np.testing.assert_allclose(pair, [m[0] - m[1] for m in moves], atol=1e-12)
        if name.startswith("pg"):
            assert cancels.all()
        elif name == "di":  # within one step of the boundary, a probability of 1/4
            assert cancels.tolist() == [0.25 <= x <= 0.75 for x in grid]
        else:
            assert cancels.tolist() == [x == 0.5 for x in grid]


@pytest.mark.parametrize("name", PAPER)
def test_mean_of_sampled_steps_agrees_with_the_library(live: Call, name: str) -> None:
    update, theta = UPDATES[name], UPDATES[name].initial(1, 2)[0]
    odds = [round(0.05 + 0.01 * i, 2) for i in range(91)]
    pairs = live([["sampled", name, p, 0.3, 0.5] for p in odds])
    for p, (exact, mean) in zip(odds, pairs, strict=True):
        win, lose, expected = (
            float(np.subtract(*(update.step(theta, [paid, 0.3], 0.5) - theta)))
            for paid in (1.0, 0.0, p)
        )
        assert exact == pytest.approx(expected, abs=1e-12)
        assert mean == pytest.approx(p * win + (1 - p) * lose, abs=1e-12)
        assert (abs(exact - mean) < 1e-12) == (name not in ("ce", "mce"))


@pytest.mark.parametrize("name", PAPER)
def test_value_change_of_one_step_agrees_with_the_library(live: Call, name: str) -> None:
    shown = Price()
    update, pi = UPDATES[name], np.array(shown.policy)
    grid = [[round(0.5 + 0.01 * i, 2), 1.0, 0.0] for i in range(50)]
    steps = live([["oneStep", name, shown.policy, q, shown.weight] for q in grid])
    for q, step in zip(grid, steps, strict=True):
        after = update.policy(update.step(update.parameters(pi), q, shown.weight))
        np.testing.assert_allclose(step["after"], after, atol=1e-12)
        assert step["change"] == pytest.approx((after - pi) @ q, abs=1e-12)
        # Only CE lowers the value, and only if q(a_1) is large enough, as the page states.
        assert step["change"] > 0 or name == "ce"
    assert (steps[-1]["change"] < 0) == (name == "ce")


@pytest.mark.parametrize("eta", Counterexample.eta.values)
@pytest.mark.parametrize("name", ["ce", "mce"])
def test_counterexample_agrees_with_the_library(live: Call, name: str, eta: float) -> None:
    tops = np.arange(201) / 10
    theta = np.stack([tops, np.zeros(201), np.zeros(201)], axis=-1)
    values = [round(0.01 * i, 2) for i in range(100)]
    changes = live([["lowering", name, first, eta, tops.tolist()] for first in values])
    expected = [value_change(name, theta, np.array([first, 1.0, 0.0]), eta) for first in values]
    np.testing.assert_allclose(changes, expected, rtol=0, atol=1e-12)
    # No update crosses the dashed line, and only CE lowers the value.
    assert np.min(changes) > -Counterexample().worst[Counterexample.eta.values.index(eta)]
    assert (np.min(changes) < -1e-12) == (name == "ce" and eta < 10)


@pytest.mark.parametrize("eta", AtTheWall.eta.values)
def test_reversal_paths_agree_with_the_library(live: Call, eta: float) -> None:
    lengths = list(range(1, 41))
    expected = reversal_paths(lengths, eta, 80)
    for name in ("sparsemax", "di", "mce"):
        paths = live([["reversal", name, n, eta, 80] for n in lengths])
        np.testing.assert_allclose(paths, expected[name].T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("place", FittedDirect.place.values)
def test_fitted_runs_agree_with_the_library(live: Call, place: Place) -> None:
    shown, task = FittedDirect(), contexts()
    ratios = [round(0.8 + 0.01 * i, 2) for i in range(81)]
    calls = [["fittedRun", shown.task, shown.first, x, shown.steps, place] for x in ratios]
    for ratio, fitted in zip(ratios, live(calls), strict=True):
        expected = fitted_run(task, geometric_weights(shown.first, ratio, shown.steps), place)
        # A distance is a difference of values of size 1, the last digits of which are rounded.
        np.testing.assert_allclose(fitted["gaps"], expected.gaps, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(fitted["bounds"], expected.bounds, rtol=1e-12, atol=1e-14)
        np.testing.assert_array_equal(np.array(fitted["gaps"]) > 0, expected.gaps > 0)
        assert expected.gaps[expected.gaps > 0].min() > 1e-5  # visible on the page


def cycle(live: Call, name: str) -> list[dict[str, Any]]:
    example = CycleComic().example
    return list(
        live(
            [
                [
                    "cycle",
                    *(example[key] for key in ("rewards", "successors", "discount")),
                    *(name, example["start"], example["phases"], CycleComic.period.max),
                ]
            ]
        )[0]
    )


@pytest.mark.parametrize("name", CycleComic.update.values)
def test_cycle_agrees_with_the_library(live: Call, name: str) -> None:
    frames = cycle(live, name)
    orbit = simulate(THREE_STATES, CycleComic.period.max, update=name)
    values = [frame["v"][:3] for frame in frames[:-1]]
    np.testing.assert_allclose(values, orbit.values, rtol=1e-11, atol=1e-11)
    greedy = [int(np.argmax(row)) for frame in frames[:-1] for row in frame["q"][:3]]
    assert greedy == orbit.greedy.ravel().tolist()
    for s, row in enumerate(frames[-1]["theta"]):
        np.testing.assert_allclose(row, orbit.theta[s, : len(row)], rtol=1e-11, atol=1e-11)


def test_every_period_of_the_cycle_has_one_suboptimal_step(live: Call) -> None:
    frames = cycle(live, "ce")
    expected = one_period()
    for start in range(0, len(frames) - 1, 8):
        for t, frame in enumerate(frames[start : start + 8]):
            np.testing.assert_allclose(frame["v"][:3], expected.values[t], atol=1e-8)
            assert frame["greedy"] == THREE_STATES.phases[t].greedy
        tops = [(np.argmax(f["after"]), f["greedy"]) for f in frames[start : start + 8]]
        assert [t for t, (top, target) in enumerate(tops) if top != target] == [5]


@pytest.mark.parametrize("eta", FadingWeights.eta.values)
def test_mass_under_decaying_weights_agrees_with_the_library(live: Call, eta: float) -> None:
    for x in (0.0, 0.5, 0.95, 1.0, 1.05, 2.0, 3.0):
        [fading] = live([["fading", x, eta, 4, 3000]])
        weights = eta * (np.arange(3000) + 1.0) ** -x
        mass = 1 / (1 + odds(4, 3000, weights))
        times = np.array(fading["times"])
        np.testing.assert_allclose(fading["mass"], mass[times], rtol=1e-9)
        if eta == 1.0:
            expected = fading_run(x, 1, 3000)
            for key, values in zip(("mass", "bound", "floor"), expected, strict=True):
                np.testing.assert_allclose(fading[key], values[times], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 0.2, 0.25, 1.0])
@pytest.mark.parametrize("name", COMPUTED)
def test_sampled_runs_agree_with_the_library(live: Call, name: str, noise: float) -> None:
    shown, update, law = SampledValues(), UPDATES[name], gamble(noise)
    [outcomes, sampled] = live(
        [["lawOf", noise], ["sampledLaw", name, noise, shown.power, 200, 5, 7]]
    )
    np.testing.assert_allclose([row[1] for row in outcomes], law.outcomes, rtol=1e-15)
    draws = np.array(list(islice(mulberry(7), 5 * 201))).reshape(5, 201)
    theta, mean = np.tile(update.initial(1, 2), (5, 1)), np.zeros(201)
    for t in range(201):
        mean[t] = update.policy(theta)[:, 1].mean()
        values = law.outcomes[np.where(draws[:, t] < law.probabilities[0], 0, 1)]
        theta = update.step(theta, values, (t + 1.0) ** -shown.power)
    np.testing.assert_allclose(sampled, mean, atol=1e-11)


def mulberry(seed: int) -> Iterator[float]:
    """Yield the outputs of the generator mulberry32, written from its published definition."""
    word = 0xFFFFFFFF
    while True:
        seed = (seed + 0x6D2B79F5) & word
        x = ((seed ^ (seed >> 15)) * (seed | 1)) & word
        x ^= (x + (((x ^ (x >> 7)) * (x | 61)) & word)) & word
        yield ((x ^ (x >> 14)) & word) / 2**32


# Exact counts over the whole range of the controls


@pytest.mark.parametrize("weight", TsallisFamily.weight.values)
def test_counts_of_the_family_are_exact(live: Call, weight: float) -> None:
    for alpha in TsallisFamily.alpha.values:
        corner = 100_000 if alpha == 1.0 else round(1 / ((alpha - 1) * weight))
        ns = [*range(1, 40), *(10**k for k in range(2, 6)), *range(max(1, corner - 2), corner + 3)]
        steps = live([["familyCount", n, alpha, weight] for n in ns])
        assert steps == [family_count(n, weight, alpha) for n in ns]


@pytest.mark.parametrize("schedule", ChangeOfMind.schedule.values)
@pytest.mark.parametrize("eta", ChangeOfMind.eta.values)
@pytest.mark.parametrize("name", COMPUTED)
def test_counts_of_the_race_are_exact(live: Call, name: str, eta: float, schedule: str) -> None:
    ns = list(range(1, ChangeOfMind.n.max + 1))
    steps = live([["raceCount", name, n, eta, schedule] for n in ns])
    assert [to_float(count) for count in steps] == counts(ns, name, eta, schedule)


@pytest.mark.parametrize("eta", Dominoes.eta.values)
@pytest.mark.parametrize("name", COMPUTED)
def test_counts_of_the_dominoes_are_exact(live: Call, name: str, eta: float) -> None:
    all_times = live([["dominoTimes", name, h, eta] for h in range(1, Dominoes.states.max + 1)])
    expected = recursion(Dominoes.states.max, name, eta)
    most = Dominoes.states.max if name in PAPER else 8  # other updates are simulated
    assert expected[-most] == domino(most, name, eta)
    for h, times in enumerate(all_times, start=1):
        assert [to_float(t) for t in times] == expected[Dominoes.states.max - h :]


@pytest.mark.parametrize("name", COMPUTED)
def test_domino_probabilities_agree_with_the_library(live: Call, name: str) -> None:
    """The probabilities of each state agree up to its flip."""
    times, probabilities = history(6, name, "1/4")
    places = [[k, t] for k, flip in enumerate(times) for t in range(int(flip) + 1)]
    shares = live([["dominoShare", name, 6, 0.25, k, t] for k, t in places])
    expected = [probabilities[t][k] for k, t in places]
    np.testing.assert_allclose(shares, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("weight", GravityWell.weight.values)
@pytest.mark.parametrize("name", COMPUTED)
def test_counts_of_the_gravity_well_are_exact(live: Call, name: str, weight: float) -> None:
    middles = [round(0.05 * i, 2) for i in range(20)]
    low, starts = GravityWell().low, GravityWell.STARTS.values()
    cases = [(start, [1.0, middle, low]) for start in starts for middle in middles]
    steps = live([["escape", name, start, q, weight, 20_000] for start, q in cases])
    policies, values = (np.array(part) for part in zip(*cases, strict=True))
    expected = escape_steps(name, policies, values, weight, 20_000)
    shown = np.array([to_float(x) for x in steps], dtype=float)
    np.testing.assert_array_equal(shown, np.where(expected > 20_000, np.inf, expected))


@pytest.mark.parametrize("eta", RateLimit.eta.values)
def test_counts_of_the_rate_are_exact(live: Call, eta: float) -> None:
    runs = live([["rateRun", n, eta, 0.001, 1_000_000] for n in RateLimit.actions.values])
    for n, run_ in zip(RateLimit.actions.values, runs, strict=True):
        steps = int(run_["count"])
        mass = 1 / (1 + odds(n, steps, eta))
        assert mass[steps] <= 0.001 < mass[steps - 1]
        assert run_["reached"] == pytest.approx(mass[steps], rel=1e-9)


@pytest.mark.parametrize("weight", [0.1, 0.4, 10.0])
@pytest.mark.parametrize("name", COMPUTED)
def test_gravity_well_map_agrees_with_the_library(live: Call, name: str, weight: float) -> None:
    points = np.random.default_rng(4).dirichlet(np.ones(3), size=300)
    for middle in (0.0, 0.5, 0.9):
        q = [1.0, middle, 0.1]
        conditions = live([["gravity", name, pi.tolist(), q, weight] for pi in points])
        np.testing.assert_array_equal(conditions, condition_map(name, points, q, weight))


@pytest.mark.parametrize("name", TakeTurns().updates)
def test_counts_after_turns_agree_with_the_library(live: Call, name: str) -> None:
    cases = [(3, [0, 1, 0, 1], 1000), (3, [0, 0, 0, 0], 100), (4, [0, 1, 2, 1], 300)]
    for (actions, order, n), gap in product(cases, TakeTurns.gap.values):
        used = [a in order for a in range(actions)]
        history = [[1.0 if a == b else (1 - gap) * used[a] for a in range(actions)] for b in order]
        [turns] = live([["takeTurns", name, actions, order, n, gap, 1, 2000]])
        assert turns["count"] == count_turns(name, history, n)
        assert len(turns["path"]) == turns["count"] + 1


REMEDY_SETTINGS: list[dict[str, Any]] = [
    {},
    {"entropy": 0.01},
    {"entropy": 0.2},
    {"penalty": 0.1, "reference": 0.9},
    {"penalty": 0.04, "estimator": True, "reference": 0.1},
    {"penalty": 0.04, "estimator": True, "epochs": 4, "clip": 0.2},
    {"penalty": 0.2, "estimator": True, "reference": 0.9, "epochs": 10, "normalised": True},
    {"normalised": True, "entropy": 0.1},
    {"epochs": 4, "clip": 0.2},
    {"adam": 0.01},
    {"adam": 0.1, "normalised": True, "entropy": 0.01, "clip": 0.2, "epochs": 4},
    {"critic": 0.1, "sampled": True, "exploration": 0.05},
    {"decay": 0.001},
    {"decay": 0.1, "entropy": 0.01, "epochs": 4, "clip": 0.2},
    {"decay": 0.01, "normalised": True, "penalty": 0.04, "estimator": True},
    {"decay": 0.01, "adam": 0.01},
    {"decay": 0.001, "adam": 0.1, "normalised": True},
    {"decay": 0.0001, "critic": 0.1, "sampled": True},
    {"update": "npg", "entropy": 0.1},
    {"update": "npg", "critic": 0.1},
    {"update": "ce", "critic": 0.1, "sampled": True},
    {"update": "di", "critic": 0.1, "sampled": True, "exploration": 0.1},
    {"update": "di", "critic": 0.01},
]
"""Settings of every control; both sides follow them to counts of up to ten thousand."""


@pytest.mark.parametrize("settings", REMEDY_SETTINGS, ids=str)
def test_remedies_agree_with_the_library(live: Call, settings: dict[str, Any]) -> None:
    for change, values in CHANGES.items():
        ns = [1, 30, 1000] if change != "swap" else [10, 300, 3000]
        if change == "swap" and settings in ({}, {"entropy": 0.01}):
            ns.append(9_900)
        [curve] = live([["remedyCurve", settings, ns, change, 10_100]])
        for shown, known in zip(
            curve, outcomes(Remedy(**settings), ns, values, 10_100), strict=True
        ):
            assert to_float(shown["count"]) == known.count
            assert shown["regret"] == pytest.approx(known.regret, rel=1e-10, abs=1e-300)


SAMPLED_SETTINGS: list[dict[str, Any]] = [
    {"update": "group", "group": 4},
    {"update": "group", "group": 16, "normalised": True, "exploration": 0.05},
    {"update": "group", "group": 8, "entropy": 0.1, "decay": 0.01},
    {"update": "pg-sm", "group": 8, "critic": 0.01, "entropy": 0.02, "decay": 0.001},
    {"update": "npg", "group": 8, "entropy": 0.1, "exploration": 0.1},
    {"update": "ce", "group": 4, "exploration": 0.05},
    {"update": "ce", "group": 16, "critic": 1.0},
    {"update": "di", "group": 8},
    {"update": "di", "group": 8, "exploration": 0.01},
]
"""Settings of the simulated rows."""


class Mulberry(np.random.Generator):
    """A generator that draws binomial numbers by inversion from mulberry32."""

    def __init__(self, seed: int) -> None:
        super().__init__(np.random.PCG64())
        self.numbers = mulberry(seed)

    def binomial(self, n: int, p: Any, size: Any = None) -> Any:  # type: ignore[override]
        """Return the least k with P(X <= k) > u for each probability."""
        numbers = []
        for chance in p:
            rare, u = min(chance, 1 - chance), next(self.numbers)
            below = np.cumsum([math.comb(n, k) * rare**k * (1 - rare) ** (n - k) for k in range(n)])
            k = int(np.searchsorted(below, u, side="right"))
            numbers.append(k if chance <= 0.5 else n - k)
        return np.array(numbers)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("settings", SAMPLED_SETTINGS, ids=str)
def test_simulated_remedies_agree_with_the_library(
    live: Call, settings: dict[str, Any], change: str
) -> None:
    ns, seeds, most = [1, 30, 400], (1, 7), 1000
    curves = [live([["sampledCurve", settings, ns, change, most, seed]])[0] for seed in seeds]
    for (i, n), (curve, seed) in product(enumerate(ns), zip(curves, seeds, strict=True)):
        [regret], [count] = sampled_outcomes(
            SampledRemedy(**settings), change, n, n_runs=1, most=most, seed=Mulberry(seed)
        )
        assert to_float(curve[i]["count"]) == count
        assert curve[i]["regret"] == pytest.approx(regret, rel=1e-10, abs=1e-300)


# Groups of samples

GROUPS = [method for method in RewardHack.method.values if method != "restart"]
"""The kinds of advantages."""


@pytest.mark.parametrize("method", GROUPS)
def test_advantages_of_groups_agree_with_the_library(live: Call, method: str) -> None:
    rng = np.random.default_rng(4)
    rewards = [rng.choice([0, 0.1, 0.5, 1], size) for size in (2, 3, 8, 32) for _ in range(20)]
    rewards.append(np.ones(4))
    shown = live([["groupAdvantages", method, group.tolist()] for group in rewards])
    for known, group in zip(shown, rewards, strict=True):
        np.testing.assert_allclose(known, advantages(method, group), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", GROUPS)
def test_mean_counts_of_groups_agree_with_the_library(live: Call, method: str) -> None:
    cases = list(product(RewardHack.size.values, RewardHack.weight.values))
    steps = live([["sightStep", method, size, w] for size, w in cases])
    means = live([["expectedReturn", method, size, w, 6e-5] for size, w in cases])
    for (size, w), step, mean in zip(cases, steps, means, strict=True):
        assert step == pytest.approx(log_odds_step(method, size, w), rel=1e-12)
        assert mean == pytest.approx(mean_count(method, 6e-5, size, w), rel=1e-12)


def group_run(
    method: str, start: list[float], pays: float, size: int, w: float, most: float, seed: int
) -> tuple[float, list[tuple[float, float, bool]]]:
    """Return what `groupRun` does, with the library's advantages and the same random numbers."""
    draws = mulberry(seed)
    rewards = np.array([pays, 1.0] + [0.0] * (len(start) - 2))
    levels = [np.flatnonzero(rewards == reward) for reward in dict.fromkeys(rewards.tolist())]
    pi, theta = np.array(start), np.log(start)
    count, path = 0.0, []

    def pick(weights: Any) -> int:
        if len(weights) == 1:
            return 0
        below = np.cumsum(weights)
        return int(np.searchsorted(below, next(draws) * below[-1], side="right"))

    while pi[1] < 0.5:
        masses = [pi[level].sum() for level in levels]
        others = [sum(masses[:k]) + sum(masses[k + 1 :]) for k in range(len(levels))]
        logs = [math.log1p(-other) for other in others]
        top = int(np.argmax(masses))
        rest = sum(mass**size for k, mass in enumerate(masses) if k != top)
        mixed = -math.expm1(size * logs[top]) - rest
        count += math.floor(math.log1p(-next(draws)) / math.log1p(-mixed)) + 1
        if count > most:
            return math.inf, path
        leaves = [m * -math.expm1((size - 1) * x) for m, x in zip(masses, logs, strict=True)]
        first = pick(leaves)
        stay = math.log1p(next(draws) * math.expm1((size - 1) * logs[first])) / logs[first]
        other = pick([0.0 if k == first else mass for k, mass in enumerate(masses)])
        group = []
        for i in range(size):
            inside = levels[first] if i <= math.floor(stay) else levels[other]
            free = i > math.floor(stay) + 1
            group.append(pick(pi) if free else int(inside[pick(pi[inside])]))
        weights = advantages(method, rewards[group])
        counted = np.bincount(group, weights, len(pi))
        theta = theta + w / size * (counted - weights.sum() * pi)
        pi = np.exp(theta - theta.max())
        pi /= pi.sum()
        path.append((count, float(pi[1]), 1 in group))
    return count, path


@pytest.mark.parametrize("pays", RewardHack.pays.values)
@pytest.mark.parametrize("method", GROUPS)
def test_runs_of_groups_agree_with_the_library(live: Call, method: str, pays: float) -> None:
    shown = RewardHack()
    for start, size, w, seed in (
        (shown.start, 8, 1.0, 1),
        (shown.start, 2, 3.0, 5),
        (shown.reference, 32, 0.3, 2),
    ):
        case = method, start, pays, size, w, 20_000, seed
        [run] = live([["groupRun", *case]])
        count, path = group_run(*case)
        assert to_float(run["count"]) == count
        assert [(at, seen) for at, _, seen in run["path"]] == [(at, seen) for at, _, seen in path]
        # The tolerance allows for the rounding errors of hundreds of steps.
        for (_, one, _), (_, other, _) in zip(run["path"], path, strict=True):
            assert one == pytest.approx(other, rel=1e-10)


@pytest.mark.parametrize(
    ("method", "pays"), [("GRPO", 0.0), ("RLOO", 0.5), ("best of the group", 0.3)]
)
def test_runs_of_groups_have_the_law_of_single_groups(live: Call, method: str, pays: float) -> None:
    """Groups that agree are jumped over; here each is drawn, and the first steps are compared."""
    start, size, runs, rng = [0.9, 0.02, 0.05, 0.03], 4, 4000, np.random.default_rng(9)
    rewards = np.array([pays, 1.0, 0.0, 0.0])
    most = 40 if pays else 400  # the first wait is shorter
    cases = [["groupRun", method, start, pays, size, 1.0, most, seed] for seed in range(runs)]
    shown = np.array([run["path"][0] for run in live(cases)], float)
    groups = rng.choice(4, (100_000, size), p=start)
    changing = np.flatnonzero(np.ptp(rewards[groups], axis=1))
    changed = groups[changing]
    weights = advantages(method, rewards[changed])[..., None] * (changed[..., None] == range(4))
    theta = np.log(start) + weights.sum(axis=1) / size
    theta -= weights.sum(axis=(1, 2))[:, None] * start / size
    correct = np.exp(theta[:, 1]) / np.exp(theta).sum(axis=1)
    seen = (changed == 1).any(axis=1)
    expected = np.column_stack([np.diff(changing, prepend=-1), correct, seen])
    errors = np.sqrt(shown.var(axis=0) / runs + expected.var(axis=0) / len(expected))
    assert (np.abs(shown.mean(axis=0) - expected.mean(axis=0)) <= 4 * errors).all()
    assert shown[:, 0].min() == 1
    assert len(expected) > 5000


def test_medians_of_simulated_remedies(live: Call) -> None:
    runs = [(0.3, 10), (0.1, 9), (0.2, 300)]
    [medians] = live([["medianCurve", [[{"n": 5, "regret": r, "count": c}] for r, c in runs]]])
    assert medians == [{"n": 5, "regret": 0.2, "count": 10}]


# Widgets


@pytest.mark.parametrize(
    ("figure", "wrong"),
    [
        (ChangeOfMind, {"n": 0}),
        (ChangeOfMind, {"n": 201}),
        (ChangeOfMind, {"eta": 0.3}),
        (ChangeOfMind, {"schedule": "linear"}),
        (Symmetry, {"policy": 1.0}),
        (Dominoes, {"states": 15}),
        (Dominoes, {"eta": 1.0}),
        (ChainPlay, {"first": "nope"}),
        (ChainPlay, {"share": 1.5}),
        (Noise, {"odds": 0.0}),
        (GravityWell, {"policy": [0.5, 0.5, 0.5]}),
        (GravityWell, {"middle": 1.0}),
        (Price, {"value": 1.0}),
        (Counterexample, {"first": 1.0}),
        (Counterexample, {"eta": 2.0}),
        (AtTheWall, {"n": 41}),
        (TsallisFamily, {"alpha": 1.1}),
        (TsallisFamily, {"weight": 3.0}),
        (FittedDirect, {"growth": 1.7}),
        (FittedDirect, {"place": "beside"}),
        (Remedies, {"entropy": 0.3}),
        (Remedies, {"change": "none"}),
        (Remedies, {"decay": 0.5}),
        (Remedies, {"samples": 5}),
        (TakeTurns, {"n": 5}),
        (TakeTurns, {"order": [0, 1, 2, 0]}),
    ],
)
def test_settings_outside_the_controls_range_raise(figure: Any, wrong: dict[str, Any]) -> None:
    [trait] = wrong
    with pytest.raises(traitlets.TraitError, match=rf"'?{trait}'? trait of an? {figure.__name__}"):
        figure(**wrong)


@per_figure
def test_figure_is_one_module_without_imports(figure: Any) -> None:
    widget = figure()
    least = set(PAPER) - {"pg-es"} if figure is TakeTurns else set(PAPER)
    assert least <= set(widget.updates) <= set(UPDATES)
    assert widget.labels == {name: label_of(name) for name in UPDATES}
    text = str(figure._esm)
    assert text.count("export default") == 1
    assert not re.search(r"^\s*import\b", text, re.MULTILINE)
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


def caption(page: Page) -> str:
    return page.locator(".pu-live-words").inner_text()


@per_figure
def test_figure_is_accessible_narrow_and_keyboard_operable(
    open_figure: OpenFigure, violations_of: Callable[[Page], list[str]], figure: Any
) -> None:
    page = open_figure(figure(), width=390)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert violations_of(page) == []  # test_pages checks the dark mode
    for fold in page.locator("summary").all():
        fold.click()
    for control in page.locator("input[type=range]").all():
        before = page.locator(".pu-live").inner_html()
        at_end = control.input_value() == control.get_attribute("max")
        control.press("ArrowLeft" if at_end else "ArrowRight")
        assert page.locator(".pu-live").inner_html() != before
        assert len(caption(page)) > 40, "pu-live-words has 40 characters or fewer"
        assert not re.search(r"undefined|NaN|\[object", caption(page))


@per_figure
def test_very_narrow_figure_has_no_negative_sizes(open_figure: OpenFigure, figure: Any) -> None:
    """Browsers report a negative width or radius as an error, on which `open_figure` fails."""
    page = open_figure(figure(), width=200)
    page.set_viewport_size({"width": 120, "height": 844})
    page.evaluate("new Promise((done) => setTimeout(done, 100))")


def test_opening_asks_for_a_guess_and_shows_the_exact_counts(open_figure: OpenFigure) -> None:
    page = open_figure(explorers.Opening(), reduced_motion="reduce")
    names = ("pg-sm", "pg-es", "mce", "di")
    shown = page.locator(".pu-open-count b")
    assert shown.all_inner_texts() == [str(count(20, name, "1/2")) for name in names]
    page.get_by_role("button", name="200", exact=True).click()
    assert shown.all_inner_texts() == [str(count(200, name, "1/2")) for name in names]
    assert caption(page).startswith(f"Right: {shown.first.inner_text()}, as slow as learning.")
    page.get_by_role("slider", name="Learn for").press("ArrowLeft")
    assert shown.first.inner_text() == str(count(199, "pg-sm", "1/2"))


@pytest.mark.parametrize(("eta", "n"), [(0.5, 20), (2.0, 7)])
def test_race_shows_the_exact_counts(open_figure: OpenFigure, eta: float, n: int) -> None:
    page = open_figure(ChangeOfMind(n=n, eta=eta), reduced_motion="reduce")
    assert page.get_by_role("button", name="Flip the values").is_disabled()
    page.get_by_role("button", name=f"Train {n} steps").press("Enter")
    assert "Who will be the first back" in caption(page)
    page.get_by_role("radio", name=label_of("pg-sm")).press("Space")
    assert f"Your guess is {label_of('pg-sm')}" in caption(page)
    page.get_by_role("button", name="Flip the values").press("Enter")
    exact = [counts([n], name, eta)[0] for name in PAPER]
    shown = page.locator(".pu-live-time").all_inner_texts()
    assert shown == ["never" if math.isinf(m) else f"back: {m}" for m in exact]
    assert f"Not quite: your guess was {label_of('pg-sm')}." in caption(page)
    assert ("never comes back" in caption(page)) == (math.inf in exact)


@pytest.mark.parametrize(
    "figure", [Dominoes, ChainPlay, SimplexLab, GravityWell, CycleComic, SampledValues]
)
def test_animated_figure_can_be_paused(open_figure: OpenFigure, figure: Any) -> None:
    page = open_figure(figure())
    time = page.get_by_role("slider", name=re.compile("^(step|step t|update t)$"))
    page.get_by_role("button", name="Play").press("Enter")
    page.wait_for_function("(slider) => slider.value > 0", arg=time.element_handle())
    page.get_by_role("button", name="Pause").press("Enter")
    reached = time.input_value()
    assert 0 < int(reached) < int(time.get_attribute("max") or 0)
    page.wait_for_timeout(200)
    assert time.input_value() == reached
    assert page.locator(".pu-live-words").get_attribute("aria-live") == "polite"
    assert len(caption(page)) > 40


def share_after(updates: int) -> str:
    """Return the probability of the other 99 actions at weight 10 times the sum of the weights."""
    return f"{10 * updates / (1 + odds(100, updates, 10.0)[-1]):.3f}"


def group_median(method: str, pays: float) -> tuple[int, int]:
    """Return the median count of 21 runs, and how many of its groups had no correct sample."""
    shown = RewardHack()
    start = shown.reference if method == "restart" else shown.start
    name = "GRPO" if method == "restart" else method
    runs = [group_run(name, start, pays, 8, 1.0, 1e5, seed) for seed in range(1, 22)]
    count = sorted(count for count, _ in runs)[10]
    path = next(path for one, path in runs if one == count)
    return int(count), int(count) - sum(seen for _, _, seen in path)


Act = tuple[str, str, str]
PLAY = ("button", "Play", "Enter")
STORIES: dict[str, tuple[Callable[[], Any], list[Act | str]]] = {
    "rate": (
        lambda: RateLimit(eta=10.0, actions=100),
        [f"the share of the others, times η t, is {share_after(78)}"],
    ),
    "dominoes": (
        lambda: Dominoes(states=14),
        [
            ("radio", "as many again, or more", "Space"),
            PLAY,
            *(str(domino(14, name, "1/8")) for name in PAPER),
            "Your guess, “as many again, or more”, was right. With one state fewer, "
            f"{label_of('pg-sm')} needs {domino(13, 'pg-sm', '1/8')}.",
        ],
    ),
    "one domino more": (
        lambda: Dominoes(states=8, updates=list(COMPUTED)),
        [
            ("radio", "a few", "Space"),
            "Add a state: is your guess right?",
            ("button", "Add a state", "Enter"),
            *(
                f"{label_of(name)} {words} instead of {domino(8, name, '1/8')}"
                for name, words in (
                    ("pg-sm", f"needs {domino(9, 'pg-sm', '1/8')}"),
                    ("mce", f"{domino(9, 'mce', '1/8')}"),
                )
            ),
        ],
    ),
    "gravity well": (
        GravityWell,
        [
            ("radio", "it falls, then rises", "Space"),
            PLAY,
            "Under PG-SM the probability of a₁ rises from 0.02 to 0.03, falls back to 0.0034",
            "8452 steps. Under MCE it never falls, and is at one half after 9 steps.",
        ],
    ),
    "cycle": (
        CycleComic,
        [
            ("button", "Step 6", "Enter"),
            "This is the mistaken step: a₁ is neither greedy nor was it on top",
            PLAY,
            "all parameters are what they were before step 1",
        ],
    ),
    "chain": (ChainPlay, [PLAY, "PG-SM reached 95 % of the best return after 587"]),
    "chain, at once": (
        ChainPlay,
        [
            ("radio", "the lower one", "Space"),
            ("button", "To the end", "Enter"),
            "Your guess, “the lower one”, was right. PG-SM reached 95 %",
        ],
    ),
    "fading weights": (
        FadingWeights,
        [("slider", "x", "End"), "x = 3.00: a million weights add up"],
    ),
    "counterexample": (
        Counterexample,
        [
            "one step of CE lowers the value, one of MCE raises it. Make a guess",
            ("radio", "more", "Space"),
            "At θ₁ = 10.0 one step of CE adds −7.4 · 10⁻⁵ to the value",
            ("slider", "q(a₁)", "Home"),
            "With q(a₁) = 0.00 and this step size no θ₁ makes CE lower it",
        ],
    ),
    "price": (
        Price,
        [
            "Make a guess",
            ("radio", "CE", "Space"),
            "Your guess, “CE”, was right. One step. CE lowers the value from 0.780 to 0.701",
            ("radio", "none of them", "Space"),
            "Not quite: you guessed “none of them”. CE takes most from the likeliest action",
            ("button", "The paper’s example", "Enter"),
            "One step. CE lowers the value from 0.98996 to 0.98988",
        ],
    ),
    "symmetry": (
        Symmetry,
        [
            "Make a guess",
            ("radio", "CE and MCE", "Space"),
            "Not quite: you guessed “CE and MCE”. Only under PG-SM and PG-ES is the step linear",
            ("radio", "PG-SM and PG-ES", "Space"),
            "Your guess, “PG-SM and PG-ES”, was right. At π(a₁) = 0.90, under PG-SM and PG-ES",
            ("slider", "policy", "End"),
            "Look how short they are: 0.02 under PG-SM, there and back.",
        ],
    ),
    "noise": (
        Noise,
        [
            "Make a guess",
            ("radio", "only CE and MCE", "Space"),
            "Not quite: you guessed “only CE and MCE”. What decides is whether an update uses",
            ("radio", "all but CE and MCE", "Space"),
            "Your guess, “all but CE and MCE”, was right. a₁ pays 1 in 40 % of the tries",
            "as everywhere in the shaded part of the slider",
            ("slider", "a₁ wins", "End"),
            "a₁ pays 1 in 95 % of the tries",
        ],
    ),
    "a guess about a hundred actions": (
        RateLimit,
        [
            ("radio", "about ten times", "Space"),
            "Now move the actions to 100",
            ("slider", "actions", "ArrowRight"),
            "Your guess is about 100 actions.",
            ("slider", "actions", "End"),
            "Your guess is about 100 actions. With 1000",
            *[("slider", "actions", "ArrowLeft")]
            * (len(RateLimit.actions.values) - 1 - RateLimit.actions.values.index(100)),
            "Not quite: you guessed “about ten times”. In the long run the share of the others is",
            "with two after 500: 2.0 times as many",
        ],
    ),
    "wall": (
        AtTheWall,
        [
            ("radio", "both together", "Space"),
            "They walk home together, in 5 updates",
            ("slider", "updates n", "End"),
            "After 40 updates a₁ has 1.00",
            "DI is back at one half after 15 updates",
        ],
    ),
    "samples": (
        SampledValues,
        [PLAY, "CE and MCE end up playing it as often as it wins"],
    ),
    "turns": (
        TakeTurns,
        [
            ("radio", "about a third of n", "Space"),
            "Run the clocks",
            ("button", "Run the clocks", "Enter"),
            "Your guess, “about a third of n”, was right.",
            "5 steps under CE and SCE, 307 steps under MCE, 990 steps under NPG and 996 steps",
            ("combobox", "step 2", "ArrowUp"),
            ("combobox", "step 4", "ArrowUp"),
            "in which a₁ alone is best",
            "Your turns keep MCE waiting less long than a₁ and a₂ one by one do (307).",
        ],
    ),
    "remedies": (
        Remedies,
        [
            "Make a guess about the bonus",
            "Without a bonus plain PG-SM needs 10009 steps after 10000.",
            ("radio", "nearly all", "Space"),
            "Not quite: you guessed “nearly all”. The bonus ends the growth only where",
            ("radio", "about a sixth", "Space"),
            "Your guess, “about a sixth”, was right.",
            "After 10000 steps PG-SM as set needs 8389 steps",
            "plain PG-SM needs 10009, at 5.0 · 10⁻⁵",
            ("slider", "entropy bonus τ", "End"),
            "at a regret of 0.269",
            ("slider", "weight decay λ", "End"),
            "PG-SM as set needs 1 step to come back",
            ("slider", "entropy bonus τ", "Home"),
            "PG-SM as set needs 5 steps to come back, at a regret of 0.115",
            ("summary", "More", "Enter"),
            ("combobox", "change", "ArrowDown"),
            ("combobox", "values", "ArrowDown"),
            "After 10000 steps the policy gradient of group advantages needs",
            "These are medians of 5 runs",
        ],
    ),
    "reward hack": (
        RewardHack,
        [
            "Make a guess",
            ("radio", "GRPO", "Space"),
            "Not quite: you guessed “GRPO”. The reference gives the correct answer in 2 %",
            f"GRPO: {group_median('GRPO', 0.0)[0]} updates",
            f"The formula’s mean is {mean_count('GRPO', 6e-5, 8):.0f} updates, 2.17 times the",
            f"Restart: {group_median('restart', 0.0)[0]} updates",
            ("radio", "restart", "Space"),
            "Your guess, “restart from the reference”, was right.",
            ("button", "Show the waiting groups", "Enter"),
            f"In the run shown {group_median('GRPO', 0.0)[1]} of {group_median('GRPO', 0.0)[0]}",
            ("combobox", "run shown", "ArrowDown"),
            f"MaxRL: {group_median('MaxRL', 0.0)[0]} updates",
            ("combobox", "the hack still pays", "End"),
            "MaxRL: 21 of 21 runs are not back within 100000 updates",
        ],
    ),
    "family": (
        TsallisFamily,
        [
            "α = 1, w = 1/4: every step back takes off",
            ("radio", "only at α = 2", "Space"),
            ("slider", "index α", "End"),
            "All three answers can still be right: move α to just above 1. α = 2",
            ("slider", "index α", "Home"),
            ("slider", "index α", "ArrowRight"),
            "Not quite: you guessed “only at α = 2”. For every α above 1 the corner",
            f"{family_count(10**6, '1/4', '1025/1024')} updates are enough to undo any number",
            ("slider", "index α", "End"),
            ("slider", "step size w", "End"),
            "α = 2, w = 4: 1 update is enough to undo any number of them",
        ],
    ),
}
"""Figures with actions, (role or "summary", name, key), and texts expected in the caption."""


@pytest.mark.parametrize("story", STORIES)
def test_captions_contain_the_numbers_of_the_library(open_figure: OpenFigure, story: str) -> None:
    figure, steps = STORIES[story]
    page = open_figure(figure(), reduced_motion="reduce")
    for step in steps:
        if isinstance(step, str):
            assert step in caption(page).replace("\u202f", "")
        else:
            role, name, key = step
            if role == "summary":
                page.locator("summary", has_text=name).press(key)
            else:
                page.get_by_role(role, name=name).first.press(key)  # type: ignore[arg-type]


def test_remedies_show_pg_sm_and_four_controls_before_a_guess(open_figure: OpenFigure) -> None:
    page = open_figure(Remedies())
    controls = page.get_by_role("slider").or_(page.get_by_role("combobox"))
    assert controls.count() == 4
    curves = page.locator("svg .pu-live-curve")
    assert curves.count() == 1
    rows = [row.replace("\u202f", "").split() for row in page.locator("tbody tr").all_inner_texts()]
    assert rows[1] == ["PG-SM", "1007", "10009", "5.0", "·", "10⁻⁵"]
    assert [row[-3:] for row in rows[2:]] == 3 * [["…", "…", "…"]]
    page.get_by_role("radio", name="about half").press("Space")
    assert curves.count() == 5
    page.get_by_text("More", exact=True).click()
    assert controls.count() == 13


def test_remedies_open_the_fold_if_the_address_sets_one_of_its_controls(
    open_figure: OpenFigure,
) -> None:
    page = open_figure(Remedies(penalty=0.04, estimator=True))
    assert page.get_by_role("slider", name="KL penalty β").is_visible()


def test_remedies_that_need_exact_values_are_off_with_samples(open_figure: OpenFigure) -> None:
    page = open_figure(Remedies(adam=0.1, penalty=0.2))
    page.get_by_role("radio").first.press("Space")
    controls = ["KL penalty β", "penalty", "reference", "epochs", "Adam", "critic sees"]
    exact, names = caption(page), [re.compile(rf"^{name}") for name in controls]
    assert all(page.get_by_label(name).first.is_enabled() for name in names)
    page.get_by_role("combobox", name="values").select_option("8")
    assert all(page.get_by_label(name).first.is_disabled() for name in names)
    page.get_by_role("combobox", name="change").select_option("good turns bad")
    words = caption(page).replace("\u202f", "")
    [regrets, counts] = np.median(
        [
            np.concatenate(
                sampled_outcomes(
                    SampledRemedy("group", entropy=0.01),
                    "good turns bad",
                    10_000,
                    n_runs=1,
                    most=20_000,
                    seed=Mulberry(seed),
                )
            )
            for seed in range(1, 6)
        ],
        axis=0,
    )
    assert f"group advantages needs {counts:.0f} steps" in words
    row = page.get_by_role("row", name="group advantages").get_by_role("cell").last.inner_text()
    assert float(re.sub(" · 10⁻⁵", "e-5", row)) == pytest.approx(regrets, rel=0.02)
    page.get_by_role("combobox", name="change").select_option("swap")
    page.get_by_role("combobox", name="values").select_option("0")
    assert caption(page) == exact


@pytest.mark.parametrize(
    ("figure", "before"),
    [(Symmetry, 2), (Noise, 0), (Price, 3), (RewardHack, 0)],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_answer_is_hidden_until_the_guess(
    open_figure: OpenFigure, figure: Any, before: int
) -> None:
    page = open_figure(figure(updates=["ce"]))
    shapes = page.locator("svg .pu-live-shaft, svg .pu-live-head, svg rect, svg .pu-live-curve")
    assert shapes.count() == before
    page.emulate_media(media="print")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert shapes.count() > before  # the printed page shows the answer
    assert "Make a guess" not in caption(page)
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    page.emulate_media(media="screen")
    assert shapes.count() == before
    page.get_by_role("radio").first.press("Space")
    assert shapes.count() > before


def test_fitting_before_the_projection_reaches_the_optimum(open_figure: OpenFigure) -> None:
    page = open_figure(FittedDirect())
    lines = page.locator("polyline.pu-live-curve")
    assert lines.count() == 1  # the second fit is hidden until the guess
    page.get_by_role("radio", name="both").press("Space")
    page.get_by_role("combobox").select_option("after")
    assert "you guessed" not in caption(page)
    assert "Now let the weights grow" in caption(page)
    assert lines.count() == 2
    for _ in range(40):
        page.get_by_role("slider", name="growth").press("ArrowRight")
    runs = {
        place: fitted_run(contexts(), geometric_weights(0.5, 1.4, 40), place)
        for place in ("before", "after")
    }
    end = int(np.flatnonzero(runs["before"].gaps > 0)[-1]) + 1
    assert "Not quite: you guessed “both, if the weights grow”. Only the target before" in caption(
        page
    )
    assert f"the distance is 0 at all contexts from update {end} on" in caption(page)
    assert f"the worst context is {runs['after'].gaps[-1]:.3f} from its optimum" in caption(page)
    assert page.get_by_text(f"0 from {end} on", exact=True).count() == 1
    thin, _ = lines.all()
    assert len((thin.get_attribute("points") or "").split()) == end + 1


def test_slider_is_shaded_where_greedy_updates_go_wrong(open_figure: OpenFigure) -> None:
    page = open_figure(Noise())
    strip = page.locator(".pu-live-shaded")
    background = "(strip) => strip.style.background"
    assert strip.evaluate(background) == ""  # until the guess
    page.get_by_role("radio").first.press("Space")
    assert "linear-gradient" in strip.evaluate(background)


def test_prompt_names_what_is_left_to_try(open_figure: OpenFigure) -> None:
    page = open_figure(FittedDirect())
    page.get_by_role("radio", name="both").press("Space")
    assert "Now move the fit, and let the weights grow." in caption(page)
    page.get_by_role("slider", name="growth").press("End")
    assert "Now move the fit." in caption(page)


def test_ratio_of_the_rates_is_drawn(open_figure: OpenFigure) -> None:
    page = open_figure(RateLimit(actions=100))
    assert page.locator("svg text", has_text="2.0 times").count() == 1
    page = open_figure(RateLimit())
    assert page.locator("svg text", has_text="times").count() == 0


def test_guess_of_the_race_can_be_made_before_the_training(open_figure: OpenFigure) -> None:
    page = open_figure(ChangeOfMind(), reduced_motion="reduce")
    assert page.get_by_text("Who will be back first?").is_visible()
    page.get_by_role("radio", name=label_of("di")).press("Space")
    page.get_by_role("button", name="Train 20 steps").press("Enter")
    assert f"Your guess is {label_of('di')}" in caption(page)
    page.get_by_role("button", name="Flip the values").press("Enter")
    assert f"Your guess, {label_of('di')}, was right." in caption(page)
    page.get_by_role("button", name="Train 20 steps").press("Enter")
    assert "Choose a runner" in caption(page)


def test_focus_stays_on_the_turn_that_was_chosen(open_figure: OpenFigure) -> None:
    page = open_figure(TakeTurns())
    page.get_by_role("combobox", name="step 2").focus()
    page.keyboard.press("ArrowUp")
    assert page.evaluate("models[0].get('order')") == [0, 0, 0, 1]
    assert page.evaluate("document.activeElement.closest('label').textContent").startswith("step 2")
