"""The gravity well: known answers for steps, bounds, fits and the checks' arithmetic."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.gravity_well import checks
from pu_lib.chapters.gravity_well import escape as well
from pu_lib.chapters.gravity_well import quantities as gravity
from pu_lib.claims.recorder import Check, Comparison, Finding, Recorder
from pu_lib.exact import certified
from pu_lib.trajectories import follow
from pu_lib.updates import PAPER, UPDATES, SoftmaxPolicyGradient, make_update, project_simplex


def found(function: Callable[..., Any], **arguments: Any) -> Finding:
    """Return what a check finds with other arguments."""
    return Check("x", function, arguments=arguments).run()


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, list[Comparison]]]:
    """Return a function that returns all comparisons of a check, by quantity."""
    monkeypatch.setattr("pu_lib.claims.recorder.KEPT_COMPARISONS", 1000)

    def all_of(function: Callable[..., Any], **arguments: Any) -> dict[str, list[Comparison]]:
        recorder = Recorder()
        function(recorder, **arguments)
        return {
            tally.quantity + " as printed" * tally.as_printed: tally.worst
            for tally in recorder.tallies.values()
        }

    return all_of


@pytest.mark.parametrize("name", PAPER)
def test_ball_and_float_increases_agree(name):
    """The kernels on balls (on rationals, for DI) and the vectorised updates."""
    for case in (gravity.SOFTMAX_CASE, gravity.ESCORT_CASE, gravity.CE_CASE):
        pi, q = case.floats()
        balls = certified(lambda case=case: gravity.certified_increase(name, case, "0.1"))
        np.testing.assert_allclose(
            [float(x) for x in balls], gravity.increase(name, pi, q, 0.1), atol=1e-12
        )


@pytest.mark.parametrize(("p", "factor"), [(1.0, "keep"), (2.0, "drop"), (3.0, "keep")])
def test_escort_without_a_kernel_agrees_with_the_library(p, factor):
    update = make_update("pg-es", p=p, factor=factor)
    pi, q = gravity.MANY_CASE.floats()
    balls = certified(lambda: gravity.certified_increase(update, gravity.MANY_CASE, "0.1"))
    np.testing.assert_allclose(
        [float(x) for x in balls], gravity.increase(update, pi, q, 0.1), atol=1e-12
    )


def test_an_escort_parameter_that_lands_on_zero_is_certified():
    """With p = 1 the step is rational: the parameters become (-9, 27, 1, 0)/35."""
    case = gravity.Case(("2/35", "17/35", "12/35", "4/35"), ("-3/4", "3/4", "-3/4", "-1/4"))
    balls = gravity.certified_increase(make_update("pg-es", p=1.0), case, "2/5")
    expected = [9 / 37 - 2 / 35, 27 / 37 - 17 / 35, 1 / 37 - 12 / 35, -4 / 35]
    np.testing.assert_allclose([float(x) for x in balls], expected, atol=1e-12)


def test_a_certified_step_has_weight_one_unless_told():
    """DI moves a quarter between two actions whose values differ by one half."""
    case = gravity.Case(("1/2", "1/2"), ("1/2", 0))
    assert [float(x) for x in gravity.certified_increase("di", case)] == [0.25, -0.25]
    sign, lead = gravity.certified_margin("di", case)
    assert (sign, float(lead)) == (1, 0.5)


@pytest.mark.parametrize(
    ("pi", "words"),
    [
        (("3/2", "-1/2"), "must be positive and sum to one"),
        ((1, 0), "must be positive and sum to one"),
        (("1/2", "1/3"), "must be positive and sum to one"),
        (("1/2", "1/4", "1/4"), "the same two or more actions"),
    ],
)
def test_a_case_has_a_policy_of_its_actions(pi, words):
    with pytest.raises(ValueError, match=words):
        gravity.Case(pi, (1, 0))


def test_integer_projection_is_the_projection():
    points = np.random.default_rng(0).integers(-90, 91, (500, 5))
    numerators, support = gravity.project_integers(points, 60)
    assert np.all(numerators.sum(axis=1) == 60 * support[:, 0])
    np.testing.assert_allclose(
        numerators / (60 * support), project_simplex(points / 60), atol=1e-12
    )


def test_documented_digits():
    change = checks.softmax_decreases_the_best_action.run().figures["change at weight 1"]
    assert change == pytest.approx(-5.67629302977e-4)
    figures = checks.cross_entropy_favours_another.run().figures
    assert figures["gain of the best action at weight 1"] == pytest.approx(3.74399575e-3)
    assert figures["largest gain at weight 1"] == pytest.approx(8.82549616e-2)
    assert gravity.convexity_slope(gravity.SOFTMAX_CASE) == Fraction(3789, 100000)


def test_the_ledger_s_shares():
    """What the correction of "much more restricted" quotes."""
    shares = [gravity.failing_share(name, (1.0, 0.99, 0.0), 0.1) for name in ("pg-es", "pg-sm")]
    assert [round(100 * share, 1) for share in shares] == [47.6, 48.1]


def test_an_own_update_without_a_kernel_gets_a_sentence():
    class Mine(SoftmaxPolicyGradient):
        name = "mine"

        @property
        def kernel(self):
            return None

    with pytest.raises(ValueError, match="'mine' has no kernel"):
        found(checks.another_action_gains_more, update=Mine(), case=gravity.SOFTMAX_CASE)
    with pytest.raises(ValueError, match="'mine' has no kernel"):
        found(checks.the_best_action_gains_most, update=Mine(), n_samples=1)
    with pytest.raises(ValueError, match="no escape bound is proved of 'mine'"):
        found(checks.escapes_keep_within_the_bounds, updates=[Mine()], weights=[1.0])


def test_an_own_update_with_a_kernel_is_judged():
    class Mine(SoftmaxPolicyGradient):
        name = "mine"

    own = found(checks.another_action_gains_more, update=Mine(), case=gravity.SOFTMAX_CASE)
    assert own.margin == checks.softmax_favours_another.run().margin


@pytest.mark.parametrize(
    "judge",
    [
        lambda: found(checks.escapes_keep_within_the_bounds, updates=["nope"], weights=[1.0]),
        lambda: found(checks.the_best_action_gains_most, update="nope", n_samples=1),
        lambda: found(checks.another_action_gains_more, update="nope", case=gravity.CE_CASE),
        lambda: well.escape_bound("nope", well.well(0.1), [1.0, 0.9, 0.0], 1.0),
    ],
)
def test_unknown_updates_are_refused(judge):
    with pytest.raises(ValueError, match=r"update: unknown 'nope'. There are: pg-sm"):
        judge()


def test_what_is_not_proved_of_escort_is_not_claimed():
    start, q = well.well(0.01), [1.0, 0.9, 0.0]
    assert well.escape_bound("pg-es", start, q, 2.0) == (0.0, np.inf)
    with pytest.raises(ValueError, match="no escape bound"):
        well.escape_bound(make_update("pg-es", p=3.0), start, q, 0.1)


def test_escape_bounds_by_hand():
    start, q = well.well(0.01), [1.0, 0.5, 0.0]
    assert well.escape_bound("pg-sm", start, q, 0.5) == (pytest.approx(97.0), np.inf)
    assert well.escape_bound("mce", start, q, 0.5) == (0.0, 19.0)  # 4 log 99 = 18.4
    assert well.escape_bound("di", start, q, 0.5) == (0.0, 4.0)  # 0.98 / (1/4) = 3.9
    # log 99 / 2 = 2.30 in steps of log(1 + (1/4) / sqrt(1 + (9/16) s)).
    _, high = well.escape_bound("pg-es", start, q, 0.5)
    gains = np.log1p(0.25 / np.sqrt(1 + 9 / 16 * np.arange(100)))
    assert high == 1 + int(np.argmax(np.cumsum(gains) >= np.log(99) / 2))


def test_escape_steps_by_hand():
    """DI from (1/8, 3/4, 1/8), values (1, 1/2, 0), weight 1/4: all numbers are dyadic.

    (3/8, 7/8, 1/8) exceeds one by 3/8 and projects to (1/4, 3/4, 0). From then on a step moves
    1/16 from the second to the first: 5/16, 6/16, 7/16, 8/16.
    """
    assert float(well.escape_steps("di", [0.125, 0.75, 0.125], [1.0, 0.5, 0.0], 0.25)) == 5.0
    assert float(well.escape_steps("pg-sm", well.well(1e-6), [1.0, 0.9, 0.0], 1.0, 100)) == np.inf


@pytest.mark.parametrize(("cap", "steps"), [(0, np.inf), (65, np.inf), (177, np.inf), (178, 178)])
def test_no_more_than_the_cap_is_walked(cap: int, steps: float) -> None:
    starts = [[1 / 125, 123 / 125, 1 / 125], [0.6, 0.2, 0.2]]
    assert well.escape_steps("pg-sm", starts, 2 * [[1, 0.5, 0]], cap=cap).tolist() == [steps, 0.0]


def test_escapes_of_a_batch_are_those_of_its_rows():
    starts = np.array([well.well(d) for d in (0.1, 0.003)])
    q = np.array([[1.0, 0.9, 0.0], [1.0, 0.5, 0.0]])
    for name in PAPER:
        together = well.escape_steps(name, starts, q)
        alone = [float(well.escape_steps(name, s, v)) for s, v in zip(starts, q, strict=True)]
        np.testing.assert_array_equal(together, alone)


def test_the_corner_bound_by_hand():
    bound = well.corner_bound([0.2, 0.7, 0.1], [1.0, 0.9, 0.0])
    np.testing.assert_allclose(bound, [np.inf, 0.75, 0.45])


def test_the_first_run_that_the_condition_keeps_away_by_hand():
    """DI in one step of 0.3 with values (1, 0.9, 0): (0.31, 0.87, 0.39) less 0.19 each.

    The second action, which started with 0.6 against 0.01, has 0.68 of the 0.795 it may reach.
    """
    check = checks.no_wrong_corner_attracts.function
    assert found(check, updates=("di",), n_runs=1, n_steps=1).margin == pytest.approx(0.795 - 0.68)


def test_the_lead_of_a_projection_by_hand():
    """One broken projection: the first coordinate keeps all of the mass."""

    def stuck(points, unit):
        numerators = np.zeros_like(points)
        numerators[:, 0] = unit
        return numerators, np.ones((len(points), 1), dtype=np.int64)

    check = checks.the_largest_move_gains_most
    finding = found(check, draw=checks._any_moves, project=stuck, n_samples=50)
    assert finding.status == "false as stated"
    # At worst the mass of another coordinate, which gains nothing, was one: -1 - 1.
    assert finding.margin is not None
    assert -2.0 <= finding.margin < -1.0


def test_sufficient_condition_at_its_easiest():
    """One policy by hand: pi(b) = 0.9, drive = adv(b) pi(b) - adv(a_q) pi(a_q)."""
    finding = checks.the_sufficient_condition_needs_large_weights.run()
    pi, q = np.array(finding.instance["pi"]), np.array(finding.instance["q"])
    adv = q - pi @ q
    needed = -np.log(pi[1]) / (adv[1] * pi[1] - adv[0] * pi[0])
    assert finding.margin == pytest.approx(0.1 - needed)
    assert needed > 1.0


def test_exact_escort_step_agrees_with_the_library():
    theta, q = (
        [Fraction(1), Fraction(3, 2), Fraction(1, 2)],
        [Fraction(1), Fraction(0), Fraction(2)],
    )
    policy, crossed = gravity.escort_step_exact(theta, q, Fraction(1, 3))
    update = UPDATES["pg-es"]
    floats = update.policy(update.step([1.0, 1.5, 0.5], [1.0, 0.0, 2.0], 1 / 3))
    np.testing.assert_allclose([float(x) for x in policy], floats, atol=1e-14)
    assert not crossed


def test_errors_are_sentences():
    with pytest.raises(ValueError, match="sum to one"):
        gravity.Case(("0.5", "0.4"), (1, 0))
    for outside in (0.0, 0.5):
        with pytest.raises(ValueError, match=r"epsilon: expected a number in \(0, 1/2\), got"):
            well.well(outside)


def test_remainders_of_the_escort_expansion_by_hand():
    """At p = 2 and with values that hardly differ the remainders are the squares of the steps."""
    b, c = gravity.escort_remainders(2.0, "1e-2", "1e-40")
    assert c == pytest.approx(1e-6, rel=1e-12)  # adv(c) = eps, squared, times pi(c) = eps
    # b: (eps sqrt(1 - 2 eps))^2, less the 2 eps (eps theta_b)... that the first term has too much
    theta = np.sqrt(0.98)
    assert b == pytest.approx(abs((theta + 0.01 * theta) ** 2 - 0.98 - 0.02 * theta), rel=1e-9)


def test_at_p_one_the_expansion_at_c_is_exact():
    assert gravity.escort_remainders(1.0, "1e-2", "1e-40")[1] < 1e-40


def test_a_deeper_well_of_escort_holds_as_much_longer_as_its_power_says():
    figures = checks.deeper_wells_of_escort_hold_by_a_power.run().figures
    assert figures["power at p = 4"] == pytest.approx(0.51, abs=0.02)


def test_remainders_are_measured_in_powers_of_epsilon(compared) -> None:
    """p = 2, epsilon = 1/100, delta = 1/10000: orders 3/2 at b, and 5/2 at c, below 3."""
    sizes = remainders(compared(checks.the_expansion_leaves_out_small_terms.function))
    b, c = gravity.escort_remainders(2.0, "1e-2", "1e-4", 1.0)
    here = {place: size for (place, *where), size in sizes.items() if where == [2.0, 1e-2, 1e-4]}
    assert here == {
        "b": pytest.approx(b / (1e-3 + 1e-4)),
        "c": pytest.approx(c / (1e-5 + 1e-4)),
        "c as printed": pytest.approx(c / (1e-5 + 1e-4)),
    }


def remainders(comparisons: dict[str, list[Comparison]]) -> dict[tuple[Any, ...], float]:
    """Return the remainders over their orders by place, p, epsilon and delta."""
    return {
        (quantity.replace("remainder at ", "").replace(" over its order", ""), *at.values()): value
        for quantity, kept in comparisons.items()
        for value, at in ((one.value, one.instance) for one in kept)
    }


def test_escapes_are_bounded_by_logarithms_and_by_the_gap() -> None:
    """Odds 9 to 1 and weight 1/2: 4 log 9 = 8.8 for CE; 0.8 over 1/2 for DI."""
    assert well.escape_bound("ce", [0.1, 0.9], [1.0, 0.0], 0.5) == (0.0, 9.0)
    assert well.escape_bound("di", [0.1, 0.9], [1.0, 0.0], 0.5) == (0.0, 2.0)
    # PG-SM: (9 - 1) / (2 w) at least
    assert well.escape_bound("pg-sm", [0.1, 0.9], [1.0, 0.0], 0.5) == (pytest.approx(8.0), np.inf)


def test_a_tie_of_another_action_does_not_count() -> None:
    """DI moves (1/4, 1/4, 1/2) to (3/8, 3/8, 1/4): the first two actions gain the same."""
    tied = gravity.Case(("1/4", "1/4", "1/2"), (1, 1, 0))
    finding = found(checks.another_action_gains_more, update="di", case=tied, weights=("3/8",))
    assert finding.status == "false as stated"
    assert finding.margin == -np.finfo(float).tiny


def test_from_three_halves_on_the_printed_order_is_the_true_one(compared) -> None:
    """At p = 3/2 both are 7/3, and the next term of the binomial series has p(p - 1)/2 = 3/8."""
    sizes = remainders(compared(checks.the_expansion_leaves_out_small_terms.function, below=()))
    deep = (1.5, 1e-16, 1e-96)
    assert sizes["c", *deep] == sizes["c as printed", *deep] == pytest.approx(3 / 8)


def test_the_easiest_policy_is_one() -> None:
    check = checks.the_sufficient_condition_needs_large_weights.function
    easiest = found(check, n_samples=1000).instance
    assert sum(easiest["pi"]) == pytest.approx(1.0, abs=1e-12)
    assert min(easiest["pi"]) > 0.0


def test_projections_have_two_to_nine_coordinates(compared) -> None:
    comparisons = compared(checks.the_largest_move_gains_most, draw=checks._any_moves, n_samples=20)
    (kept,) = comparisons.values()
    points = [[Fraction(x) for x in one.instance["theta"].split(", ")] for one in kept]
    assert sorted(map(len, points)) == [2, 3, 4, 6, 9]
    assert all(sum(point) == 1 for point in points)


@pytest.mark.parametrize("draw", [checks._any_moves, checks._weighted_values])
def test_projections_are_tried_with_zeros_and_ties(draw) -> None:
    rng = np.random.default_rng(0)
    assert (checks._compositions(rng, 1000, 4, 60) == 0).any(axis=1).mean() > 0.2
    moves = draw(rng, 1000, 4)
    ties = (moves == moves.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert ties.mean() > 0.1


def test_a_path_ends_where_the_greedy_action_has_0_99() -> None:
    """A step of DI with weight 1/2 moves a quarter between two actions whose values differ by 1."""
    path = [well.greedy_path("di", [0.5, 0.5], [1.0, 0.0], 0.5, n) for n in (1, 9)]
    assert [each.tolist() for each in path] == [[0.5, 0.75], [0.5, 0.75, 1.0]]
    assert well.greedy_path("di", [0.99, 0.01], [1.0, 0.0], 0.001, 9).tolist() == [0.99]
    assert well.greedy_path("di", [0.5, 0.5], [1.0, 0.0], 0.98, 9).tolist() == [0.5, 0.99]


def test_no_path_is_walked_much_farther_than_it_is_shown(monkeypatch) -> None:
    walked = []

    def counted(*given):
        walked.append(given[3])
        return follow(*given)

    monkeypatch.setattr(well, "follow", counted)
    assert len(well.greedy_path("di", [0.5, 0.5], [1.0, 0.0], 0.01, 100_000)) == 99
    assert sum(walked) < 1000


def test_direct_steps_out_of_a_well_by_hand(compared) -> None:
    """From (0, 1, 0), nearly, half of the lead of the best value moves over at each step."""
    (kept,) = compared(
        checks.escapes_keep_within_the_bounds, updates=("di",), weights=(1.0,)
    ).values()
    counts = {one.instance["q"]: one.value for one in kept if one.instance["epsilon"] == 0.001}
    assert counts == {(1.0, 0.9, 0.0): 10, (1.0, 0.5, 0.0): 2, (1.0, 0.8, 0.6): 5}


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1, 3)])
def test_a_margin_by_hand(shape: tuple[int, ...]) -> None:
    """DI, weight 3/10: from (1/5, 3/10, 1/2) to (2/5, 1/5, 2/5)."""
    pi = np.broadcast_to([0.2, 0.3, 0.5], shape)
    found = gravity.margin("di", pi, [1.0, 0.0, 0.0], 0.3)
    np.testing.assert_allclose(found, np.full(shape[:-1], 0.3))


def test_much_more_restricted_is_by_a_factor_of_two(compared, monkeypatch) -> None:
    """PG-ES fails on a tenth of the simplex where PG-SM does on three, and once nowhere at all."""

    def failing_share(update: str, q: tuple[float, ...], _: float) -> float:
        return 0.3 if update == "pg-sm" else 0.0 if q[1] == 0.9 else 0.1

    monkeypatch.setattr(gravity, "failing_share", failing_share)
    corrected, printed = compared(checks.escort_fails_less_often.function).values()
    ratios = dict.fromkeys((0.1, 0.3, 0.5, 0.7, 0.99), 3.0) | {0.9: 3000.0}
    for kept, factor in ((corrected, 1.0), (printed, 2.0)):
        assert {one.limit for one in kept} == {factor}
        assert {one.instance["middle"]: one.value for one in kept} == pytest.approx(ratios)
    nbsp = "\N{NO-BREAK SPACE}"
    assert corrected[0].note == {"PG-ES fails": f"10{nbsp}%", "PG-SM fails": f"30{nbsp}%"}


def test_one_set_is_in_another_up_to_the_square_of_the_weight(monkeypatch) -> None:
    """PG-ES fails where the first probability is below one half; PG-SM leads by the second."""

    def margin(update: str, pi: np.ndarray, _: np.ndarray, weight: float) -> np.ndarray:
        inner = np.where(pi[:, 0] < 0.5, -1.5e-6, -0.5e-6)
        return weight * (inner if update == "pg-es" else weight * pi[:, 1])

    monkeypatch.setattr(gravity, "margin", margin)
    finding = found(checks.softmax_fails_where_escort_does.function, weight=0.01)
    pi = finding.instance["pi"]
    assert pi[0] < 0.5
    assert pi[1] > 0.99
    assert finding.margin == pytest.approx(0.01 - 0.01 * pi[1], abs=1e-6)
    # the expected share of first probabilities below one half, of four alike
    assert 0.8 < finding.figures["failing"] / 200_000 < 0.9


@pytest.mark.parametrize("allowed", [False, True])
def test_steps_across_zero_are_left_out(allowed, compared, monkeypatch) -> None:
    """Every step leads to the uniform policy; those with three actions cross zero."""

    def step(theta, q, weight):
        return [Fraction(1, len(theta))] * len(theta), len(theta) == 3

    monkeypatch.setattr(gravity, "escort_step_exact", step)
    check = checks.escort_with_p_2_never_decreases_the_best_action.function
    (kept,) = compared(check, allow_crossing=allowed, n_samples=9).values()
    sizes = []
    for one in kept:
        theta, q = (
            [Fraction(x) for x in one.instance[name].split(", ")] for name in ("theta", "q")
        )
        squares = [x**2 for x in theta]
        assert one.value == Fraction(1, len(theta)) - squares[q.index(max(q))] / sum(squares)
        sizes.append(len(theta))
    assert sorted(sizes) == sorted([2, 3, 4] * 3 if allowed else [2, 4] * 3)


def test_the_greedy_action_loses_under_four_escort_updates_and_one_of_many_actions(
    compared, monkeypatch
) -> None:
    monkeypatch.setattr(checks, "signed_change", lambda *_: -0.25)
    (kept,) = compared(checks.escort_may_decrease_the_best_action.function).values()
    tried = [(p, factor, 3) for p in (3.0, 4.0) for factor in ("keep", "drop")]
    assert [one.value for one in kept] == [0.25] * 5
    assert [tuple(one.instance.values()) for one in kept] == [*tried, (1.0, "keep", 5)]


def test_the_second_action_of_each_well_is_the_second_best() -> None:
    assert all(best > second > third for best, second, third in checks.WELL_VALUES)


@pytest.mark.parametrize("name", ["di", "pg-sm", "pg-es"])
def test_the_margin_is_that_of_the_action_that_gains_most_however_near_the_next(name: str) -> None:
    """Two leads that agree as floats: the ball has to hold the smaller one."""
    small = Fraction(1, 10**20)
    case = gravity.Case((Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)), (1, 0, small))
    _, margin = gravity.certified_margin(name, case)

    def leads():
        own, *others = gravity.certified_increase(name, case)
        return [own - gain for gain in others]

    first, second = certified(leads, bits=400)
    assert margin.overlaps(second)
    assert not margin.overlaps(first)


def test_one_policy_meets_several_rows_of_values():
    together = well.escape_steps("npg", [0.01, 0.6, 0.39], [[1, 0.9, 0], [1, 0.5, 0]])
    assert together.tolist() == [41.0, 9.0]
