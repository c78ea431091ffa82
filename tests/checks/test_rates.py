"""Test exponents, recursions, bounds and checks of rates against hand solutions."""

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pu_lib.arrays import Floats
from pu_lib.chapters.convergence.quantities import (
    instances,
    optimality_bounds,
    settling_time,
    structure,
)
from pu_lib.chapters.rates import checks
from pu_lib.chapters.rates import quantities as rates
from pu_lib.claims.recorder import Check, Comparison, Recorder
from pu_lib.domains import bandit
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES, ModifiedCrossEntropy, make_update


def recorded(check: Check, **arguments: Any) -> Recorder:
    """Run a check with the given arguments and return its recorder."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    return recorder


def worst(check: Check, **arguments: Any) -> dict[tuple[str, bool], list[Comparison]]:
    """Return the worst comparisons of a check by quantity and `as_printed`."""
    tallies = recorded(check, **arguments).tallies.values()
    return {(tally.quantity, tally.as_printed): tally.worst for tally in tallies}


def test_log_times_are_evenly_spaced_in_the_last_decade() -> None:
    times = rates.log_times(10**6)
    assert (np.diff(times) > 0).all()
    assert (times[0], times[-1]) == (1, 10**6)
    np.testing.assert_allclose(times[-17:], 10.0 ** (5 + np.arange(17) / 16), rtol=1e-5)
    assert rates.log_times(100, 2).tolist() == [1, 3, 10, 32, 100]


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_exponent_of_a_power_law_is_recovered(power: float) -> None:
    times = rates.log_times(10_000)
    fit = rates.exponent(times, 3.0 * times**-power)
    assert fit.value == pytest.approx(power, abs=1e-10)
    assert fit.low == pytest.approx(fit.high, abs=1e-10)


def test_exponent_uses_the_last_decade_only() -> None:
    """The decay has two slopes on a log-log scale, each over half a decade."""
    times = np.geomspace(1, 1000, 61)
    bend = 10**2.5
    gaps = np.where(times < bend, times**-1.0, bend * times**-2.0)
    fit = rates.exponent(times, gaps)
    assert (fit.low, fit.high) == (pytest.approx(1.0), pytest.approx(2.0))
    # Least squares on a symmetric bend gives the mean of the two slopes.
    assert fit.value == pytest.approx(1.5, abs=0.01)


def test_exponent_of_exponential_decay_is_infinite_and_short_runs_raise() -> None:
    times = rates.log_times(1000)
    assert rates.exponent(times, np.exp(-1.0 * times)).value == np.inf
    with pytest.raises(ValueError, match="in the last decade"):
        rates.exponent([1, 10, 100], [1.0, 0.1, 0.01])


@pytest.mark.parametrize("p", [3.0, 4.0])
def test_escort_exponent_matches_theory(p: float) -> None:
    """The mass decays with exponent p / (p - 2) if p > 2."""
    update = make_update("pg-es", p=p)
    times = rates.log_times(5000)
    # A step of 1 would put the bad parameter at exactly zero for p = 4.
    mass = rates.bandit_masses(update, [1.0, 0.0], 5000, 0.5)[times]
    assert rates.exponent(times, mass).value == pytest.approx(p / (p - 2), rel=0.03)


def test_escort_limit_matches_leading_order_recursion() -> None:
    """Iterate the two equations of the derivation with constants different from the update's."""
    p, c, r = 1.5, 3.0, 2.0
    x = (c / (2 * r**p)) ** (1 / (2 - p))
    for _ in range(200_000):
        x, r = abs(c * x ** (p - 1) / r**p - x), r + c * x**p / r ** (p + 1)
    assert (x / r) ** p * 200_000 ** (p / 2) == pytest.approx(rates.escort_limit(p), rel=1e-3)
    with pytest.raises(ValueError, match="between 1 and 2"):
        rates.escort_limit(2.0)


@pytest.mark.parametrize("n", [2, 5])
def test_odds_match_the_update(n: int) -> None:
    masses = rates.bandit_masses("mce", np.eye(n)[0], 300, 0.7)
    np.testing.assert_allclose(1.0 / (1.0 + rates.odds(n, 300, 0.7)), masses, rtol=1e-10)


def test_overtaking_masses_match_the_update() -> None:
    steps, masses = rates.overtaking_steps(8)
    np.testing.assert_allclose(rates.bandit_masses("mce", [1.0, 0.0], 8, steps)[:8], masses)


def test_first_odds_match_hand_solution() -> None:
    """The log-odds of two arms grow by 2 (1 - pi) = 1 and then by 2 / (1 + e) at weight 1."""
    expected = [1.0, np.e, np.exp(1.0 + 2.0 / (1.0 + np.e))]
    np.testing.assert_allclose(rates.odds(2, 2), expected)
    bound = rates.limit_error_bound(np.array([1.0, np.e]), 2)
    assert bound[1] == pytest.approx(2.0 * max(1.0, 2.0 * np.e) * 0.5)


def test_cross_entropy_limit_holds_for_a_nonuniform_initial_policy() -> None:
    mass = rates.bandit_masses("ce", np.eye(3)[0], 5000, theta0=[0.0, 1.0, -2.0])
    assert mass[-1] * 5000 == pytest.approx(2 / 3, abs=1e-2)


def test_alternating_ties_slow_ce_but_not_mce() -> None:
    times, masses = rates.taking_turns("ce", 4000)
    assert times[-1] == 2149
    assert masses[-1] * times[-1] == pytest.approx(5.2938, abs=1e-4)
    _, masses = rates.taking_turns("mce", 25_000)
    assert masses[-1] < 1e-26
    with pytest.raises(ValueError, match="softmax update with a kernel"):
        rates.taking_turns("di", 10)


@pytest.mark.parametrize(("weight", "steps"), [("3/10", 4), ("1/3", 3), ("2", 1), ("1", 1)])
def test_direct_steps_match_hand_solution(weight: str, steps: int) -> None:
    assert rates.di_steps([1, 0], Fraction(weight)) == steps


def test_direct_steps_to_several_best_arms_match_hand_solution() -> None:
    """The third action loses its probability 1/3 in two steps of 2/3 * 1/4."""
    assert rates.di_steps([1, 1, 0], Fraction(1, 4)) == 2
    with pytest.raises(ValueError, match="weight: expected a positive number"):
        rates.di_steps([1, 0], Fraction(0))


def test_direct_bound_holds_with_equality_on_all_problems() -> None:
    """Two steps of DI with values (1, 1/2, 0) lead to (3/4, 1/4, 0) and to (1, 0, 0)."""
    recorder = recorded(checks.direct_arrives_in_finitely_many_steps)
    (tally,) = recorder.tallies.values()
    assert recorder.figures["steps (bandit)"] == 2
    # Every problem attains its bound.
    assert (tally.comparisons, tally.attained, tally.failures) == (11, 11, 0)


def test_optimality_bound_matches_hand_solution() -> None:
    """The greedy actions of the bandit with three best arms of five have settled at step 0."""
    mdp = instances()["bandit, three best arms of five"]
    trajectory = run(mdp, "mce", 400, weighting="uniform")
    start, _, _, ahead = optimality_bounds(mdp, trajectory, structure(mdp))
    assert start == 0
    # beta = 2/5, e0 = (1/5)/(2/5), c = 5/4, W = 400 and rho = 1, so the bound is 1/(5/2 + 125).
    assert ahead[-1] == pytest.approx(1 / 127.5)


def test_rate_claim_is_open_for_the_direct_update() -> None:
    variant = "DI in MCE's place, which arrives before the bound begins"
    finding = checks.gap_falls_like_the_inverse_sum.run(variant)
    assert finding.status == "open"
    assert "nothing is left to lose" in finding.open_because


def test_direct_regret_matches_hand_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The policies of DI at weight 1 are (0.7, 0.3, 0), (0.9, 0.1, 0) and (1, 0, 0)."""
    masses = rates.bandit_masses("di", (1.0, 0.6, 0.2), 3)
    assert masses == pytest.approx([2 / 3, 0.3, 0.1, 0.0])
    monkeypatch.setattr(checks, "PAPER", ["di"])
    (ratio,) = worst(checks.regret_grows_at_most_like_log_t)[REGRET, False]
    assert ratio.value == 0.0


def test_softmax_and_mce_have_the_same_limit_on_two_arms() -> None:
    """(1 - pi) W is close to 1/2 for both updates if the arms have the values 1 and 0."""
    for update in ("pg-sm", "mce"):
        mass = rates.bandit_masses(update, (1.0, 0.0), 4000)
        assert mass[-1] * 4000 == pytest.approx(0.5, rel=0.01)


def escort_mass(p: float, weight: float, steps: int) -> float:
    """Return the bad arm's probability under PG-ES, independently of the library."""
    x, y = 1.0, 1.0  # the parameters of the good arm and the bad arm
    for _ in range(steps):
        total = abs(x) ** p + abs(y) ** p
        good, bad, scale = abs(x) ** p / total, abs(y) ** p / total, weight * p / total ** (1 / p)
        x += scale * np.sign(x) * good ** (1 - 1 / p) * bad
        y -= scale * np.sign(y) * bad ** (1 - 1 / p) * good
    return abs(y) ** p / (abs(x) ** p + abs(y) ** p)


def test_escort_limit_check_matches_independent_loop() -> None:
    comparisons = worst(checks.escort_below_two_has_a_limit)["product over its limit", False]
    at = {"p": 1.5, "weight": 2.0}
    (comparison,) = (each for each in comparisons if each.instance == at)
    product = escort_mass(1.5, 2.0, 4000) * 4000**0.75
    expected = 0.02 - abs(product / rates.escort_limit(1.5) - 1)
    assert comparison.slack == pytest.approx(expected, abs=1e-9)


def test_softmax_exponents_match_independent_fit() -> None:
    """The independent fit is a log-log regression over the last decade of the sum of weights."""
    arguments = {"updates": ("pg-sm",)}
    comparisons = worst(checks.softmax_has_the_rate_of_mce, **arguments)[
        "exponent in the sum", False
    ]
    assert len(comparisons) == 4
    for comparison in comparisons:
        x, arms = comparison.instance["x"], comparison.instance["arms"]
        weights = np.array([(t + 1.0) ** -x for t in range(4000)])
        mass = rates.bandit_masses("pg-sm", (1.0, 0.0, 0.0)[:arms], 4000, weights)
        spent, times = weights.cumsum(), rates.log_times(4000)
        last = times[spent[times - 1] >= spent[-1] / 10]
        again = -np.polyfit(np.log(spent[last - 1]), np.log(mass[last]), 1)[0]
        assert comparison.value == pytest.approx(again, rel=1e-9)
        assert comparison.slack == pytest.approx(0.05 - abs(again - 1.0))


REGRET = "regret of the last decade over that of the one before"


def test_regret_over_two_decades_matches_sums_of_masses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last two decades of 5000 steps begin at step 500 and at step 50."""
    monkeypatch.setattr(checks, "PAPER", ["mce"])
    comparisons = worst(checks.regret_grows_at_most_like_log_t)
    for update, as_printed in (("mce", False), (make_update("pg-es", p=1.5), True)):
        mass = rates.bandit_masses(update, (1.0, 0.6, 0.2), 5000)
        (comparison,) = comparisons[REGRET, as_printed]
        assert comparison.slack == pytest.approx(1.05 - mass[500:5000].sum() / mass[50:500].sum())
    assert comparison.slack < -0.2


def test_limit_check_matches_independent_loop() -> None:
    """The log-odds y of two arms grow by 2 / (1 + e^y) per step, and (1 - pi) t tends to 1/2."""
    log_odds = 0.0
    for _ in range(5_000):
        log_odds += 2 / (1 + np.exp(log_odds))
    figures = recorded(checks.mass_times_weight_has_a_limit).figures
    assert figures["product for 2 actions"] == pytest.approx(5_000 / (1 + np.exp(log_odds)))
    assert rates.mass_limit(2) == 0.5


@dataclass(frozen=True)
class WeakPenalty(ModifiedCrossEntropy):
    """MCE whose suboptimal actions together lose nine tenths of the gain of the greedy action."""

    def advance(self, theta: Floats, q: Floats, weight: Floats, rng: np.random.Generator) -> Floats:
        moved = super().advance(theta, q, weight, rng)
        return np.where(moved > theta, moved, theta + 0.9 * (moved - theta))


def test_limit_check_refuses_mce_with_another_penalty() -> None:
    weak = WeakPenalty()
    np.testing.assert_allclose(weak.step(np.zeros(2), [1.0, 0.0], 1.0), [0.5, -0.45])
    tallies = recorded(checks.mass_times_weight_has_a_limit, update=weak).tallies.values()
    assert all(tally.failures > tally.comparisons / 2 for tally in tallies)


def test_batch_masses_match_the_runs_of_each_bandit() -> None:
    weights = np.array([[0.5, 2.0], [1.0, 0.0], [3.0, 1.0]])
    starts = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 0.5]])
    masses = rates.batch_masses("mce", [1.0, 0.5, 0.0], weights, starts)
    for i in range(2):
        alone = rates.bandit_masses("mce", [1.0, 0.5, 0.0], 3, weights[:, i], starts[i])
        np.testing.assert_allclose(masses[:, i], alone)


def test_decaying_weights_check_matches_independent_loop() -> None:
    """A step of weight w on two arms multiplies the odds by e^(2 w (1 - pi))."""
    log_odds, spent = 0.0, 0.0
    for t in range(1, 20_001):
        log_odds += 2.0 * t**-0.5 / (1.0 + np.exp(log_odds))
        spent += t**-0.5
    comparisons = worst(checks.decaying_weights_slow_the_rate)["mass at the end", False]
    (comparison,) = (each for each in comparisons if each.instance == {"x": 0.5, "arms": 2})
    assert comparison.value == pytest.approx(1.0 / (1.0 + np.exp(log_odds)))
    assert comparison.limit == pytest.approx(1.0 / (2.0 + spent))


def worse_arm_probability(weights: list[float]) -> float:
    """Return the worse arm's probability under MCE from the recursion of the odds."""
    odds = 1.0
    for weight in weights:
        odds *= np.exp(2.0 * weight / (1.0 + odds))
    return 1.0 / (1.0 + odds)


def test_separate_bandits_match_independent_loop() -> None:
    """The first bandit has weights 1/(t + 1); the second is in the support and has weights 1."""
    comparisons = worst(checks.minimum_is_over_the_states_reached)
    weights = 1.0 / np.arange(1.0, 2001.0)
    first, second = worse_arm_probability(weights.tolist()), worse_arm_probability([1.0] * 2000)
    corrected = {each.instance["state"]: each.slack for each in comparisons["gap", False]}
    printed = {each.instance["state"]: each.slack for each in comparisons["gap", True]}
    inside = pytest.approx(1 / 2002 - second)
    assert corrected == {"outside": pytest.approx(1 / (2 + weights.sum()) - first)} | {
        "inside": inside
    }
    assert printed == {"outside": pytest.approx(1 / 2002 - first), "inside": inside}


def test_constants_check_matches_hand_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mass decreases from 1/2 to 1 / (1 + e), and its bound from 1/2 to 1/3."""
    mdp = bandit([1.0, 0.0])
    path = run(mdp, UPDATES["mce"], 1, weighting="uniform")
    monkeypatch.setattr(checks, "unique_instances", lambda: ["arms"])
    monkeypatch.setattr(checks, "run_with_bound_start", lambda *_: (mdp, structure(mdp), path, 0))
    comparisons = worst(checks.constants_of_the_proof_hold)
    (printed,), (ours,) = (
        comparisons["mass over its bound", True],
        comparisons["mass over its bound", False],
    )
    (end,) = comparisons["mass at the end", False]
    assert printed.value == pytest.approx(3.0 / (1.0 + np.e))
    assert ours.slack == pytest.approx(0.0, abs=2e-9)
    assert (end.value, end.limit) == pytest.approx((1.0 / (1.0 + np.e), 1.0 / 3.0))


@pytest.mark.parametrize(
    ("name", "n_steps", "start"),
    [
        # One step of weight 1 makes the best arm e times as probable as each of the other two.
        ("bandit", 3, 1),
        # The best actions have probability 1/2, but the greedy actions have not settled.
        ("chain", 1, None),
        # The greedy actions have settled, but the best actions have probabilities below 1/2.
        ("cliff", 8, None),
        ("bandit", 0, None),
    ],
)
def test_bound_starts_after_settling_and_a_probability_of_one_half(
    name: str, n_steps: int, start: int | None
) -> None:
    assert rates.run_with_bound_start(name, n_steps)[3] == start


def test_bound_of_a_random_mdp_starts_at_the_settling_time() -> None:
    """The best actions of the random MDP reach probability 1/2 before the settling time."""
    _, facts, trajectory, start = rates.run_with_bound_start("random", 30)
    assert start == settling_time(trajectory, facts)


def test_largest_ratio_tolerates_rounding() -> None:
    def slack(gaps: list[float], bounds: list[float]) -> float:
        return 1.0 - checks.largest_ratio(np.array(gaps), np.array(bounds))

    assert slack([0.5, 0.0], [1.0, 1.0]) == pytest.approx(0.5)
    assert slack([0.5, 0.25], [1.0, 0.25]) == pytest.approx(checks.ROUNDING, rel=1e-3)
    assert slack([1e-14], [0.0]) == 0.0


def test_odds_that_overflow_floats_raise() -> None:
    with pytest.raises(ValueError, match="weights: 1000 leads the odds out of the range"):
        rates.odds(2, 3, 1000.0)
    with pytest.raises(ValueError, match=r"weights: 9\.5e\+262 leads the odds out of the range"):
        rates.odds(2, 3, [600.0, 9.5e262, 1.0])
    with pytest.raises(ValueError, match="n_actions: "):
        rates.odds(1, 3)


def test_overshoot_of_an_escort_step_solved_by_hand() -> None:
    """If p = 3/2, r = 1, x = 1/4 and w = 1, the overshoot is 1.5 * 2 / (1 + 1/8)^2 = 64/27."""
    y = rates.overshoot(np.array([1.0, -0.25]), 1.5, 1.0)
    assert float(y) == pytest.approx(64 / 27)
    moved = make_update("pg-es", p=1.5).step(np.array([1.0, -0.25]), [1.0, 0.0], 1.0)
    assert moved == pytest.approx([1 + 64 / 27 / 16, -0.25 * (1 - 64 / 27)])
    assert rates.overshoot_map(5.0, 1.5) == pytest.approx(2.5)
    assert rates.overshoot_map(0.75, 1.5) == pytest.approx(1.5)
    assert rates.overshoot_map(2.0, 1.3) == 2.0


def test_comparison_floor_solved_by_hand() -> None:
    """The floor for two actions and kappa = 1 is log(W + 1)."""
    assert float(rates.comparison_floor(2, 1.0, np.e - 1.0)) == pytest.approx(1.0)
    assert float(rates.comparison_floor(3, 2.0, 8.0)) == pytest.approx(np.log(4.0))
