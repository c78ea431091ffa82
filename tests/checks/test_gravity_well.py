"""Test steps, bounds, escape times and checks of the gravity well against hand solutions."""

import decimal
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pu_lib.chapters.gravity_well import checks, escape
from pu_lib.chapters.gravity_well import quantities as gravity
from pu_lib.claims.recorder import Check, Comparison, Finding, Recorder
from pu_lib.exact import certified
from pu_lib.trajectories import follow
from pu_lib.updates import PAPER, UPDATES, SoftmaxPolicyGradient, make_update, project_simplex


def finding_of(function: Callable[..., Any], **arguments: Any) -> Finding:
    """Return the finding of a check with the given arguments."""
    return Check("x", function, arguments=arguments).run()


@pytest.fixture
def comparisons_of(monkeypatch: pytest.MonkeyPatch) -> Callable[..., dict[str, list[Comparison]]]:
    """Return a function that returns all comparisons of a check by quantity."""
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
def test_certified_increase_agrees_with_floats(name):
    """The kernels on balls (on rationals for DI) agree with the vectorised updates."""
    for example in (gravity.SOFTMAX_EXAMPLE, gravity.ESCORT_EXAMPLE, gravity.CE_EXAMPLE):
        pi, q = example.floats()
        balls = certified(lambda example=example: gravity.certified_increase(name, example, "0.1"))
        np.testing.assert_allclose(
            [float(x) for x in balls], gravity.increase(name, pi, q, 0.1), atol=1e-12
        )


@pytest.mark.parametrize(("p", "factor"), [(1.0, "keep"), (2.0, "drop"), (3.0, "keep")])
def test_certified_escort_increase_agrees_with_floats(p, factor):
    update = make_update("pg-es", p=p, factor=factor)
    pi, q = gravity.FIVE_ACTION_EXAMPLE.floats()
    balls = certified(
        lambda: gravity.certified_increase(update, gravity.FIVE_ACTION_EXAMPLE, "0.1")
    )
    np.testing.assert_allclose(
        [float(x) for x in balls], gravity.increase(update, pi, q, 0.1), atol=1e-12
    )


def test_certified_escort_step_to_zero_is_exact():
    """The step is rational if p = 1: the parameters become (-9, 27, 1, 0)/35."""
    example = gravity.Example(("2/35", "17/35", "12/35", "4/35"), ("-3/4", "3/4", "-3/4", "-1/4"))
    balls = gravity.certified_increase(make_update("pg-es", p=1.0), example, "2/5")
    expected = [9 / 37 - 2 / 35, 27 / 37 - 17 / 35, 1 / 37 - 12 / 35, -4 / 35]
    np.testing.assert_allclose([float(x) for x in balls], expected, atol=1e-12)


def test_certified_increase_defaults_to_weight_one():
    """A step of DI moves a probability of 1/4 if the values of the two actions differ by 1/2."""
    example = gravity.Example(("1/2", "1/2"), ("1/2", 0))
    assert [float(x) for x in gravity.certified_increase("di", example)] == [0.25, -0.25]
    sign, lead = gravity.certified_margin("di", example)
    assert (sign, float(lead)) == (1, 0.5)


@pytest.mark.parametrize(
    ("pi", "words"),
    [
        (("3/2", "-1/2"), "positive numbers that sum to one"),
        ((1, 0), "positive numbers that sum to one"),
        (("1/2", "1/3"), "positive numbers that sum to one"),
        (("1/2", "1/4", "1/4"), "the same two or more actions"),
    ],
)
def test_example_rejects_invalid_policy(pi, words):
    with pytest.raises(ValueError, match=words):
        gravity.Example(pi, (1, 0))


def test_integer_projection_agrees_with_float_projection():
    points = np.random.default_rng(0).integers(-90, 91, (500, 5))
    numerators, support = gravity.project_integers(points, 60)
    assert np.all(numerators.sum(axis=1) == 60 * support[:, 0])
    np.testing.assert_allclose(
        numerators / (60 * support), project_simplex(points / 60), atol=1e-12
    )


def test_failing_shares_match_the_numbers_in_the_correction():
    """The correction of "much more restricted" quotes these shares."""
    shares = [gravity.failing_share(name, (1.0, 0.99, 0.0), 0.1) for name in ("pg-es", "pg-sm")]
    assert [round(100 * share, 1) for share in shares] == [47.6, 48.1]


def test_checks_reject_updates_without_kernel():
    class Mine(SoftmaxPolicyGradient):
        name = "mine"

        @property
        def kernel(self):
            return None

    with pytest.raises(ValueError, match="'mine' has no kernel"):
        finding_of(checks.another_action_gains_more, update=Mine(), example=gravity.SOFTMAX_EXAMPLE)
    with pytest.raises(ValueError, match="'mine' has no kernel"):
        finding_of(checks.the_best_action_gains_most, update=Mine(), n_samples=1)
    with pytest.raises(ValueError, match="no escape bound is proved for 'mine'"):
        finding_of(checks.escape_times_obey_their_bounds, updates=[Mine()], weights=[1.0])


def test_checks_accept_custom_update_with_kernel():
    class Mine(SoftmaxPolicyGradient):
        name = "mine"

    finding = finding_of(
        checks.another_action_gains_more, update=Mine(), example=gravity.SOFTMAX_EXAMPLE
    )
    assert finding.margin == checks.softmax_favours_another.run().margin


@pytest.mark.parametrize(
    "judge",
    [
        lambda: finding_of(checks.escape_times_obey_their_bounds, updates=["nope"], weights=[1.0]),
        lambda: finding_of(checks.the_best_action_gains_most, update="nope", n_samples=1),
        lambda: finding_of(
            checks.another_action_gains_more, update="nope", example=gravity.CE_EXAMPLE
        ),
        lambda: escape.escape_bound("nope", escape.well_policy(0.1), [1.0, 0.9, 0.0], 1.0),
    ],
)
def test_checks_reject_unknown_update(judge):
    with pytest.raises(ValueError, match=r"update: unknown 'nope'. There are: pg-sm"):
        judge()


def test_escort_has_no_escape_bound_for_large_weights():
    start, q = escape.well_policy(0.01), [1.0, 0.9, 0.0]
    assert escape.escape_bound("pg-es", start, q, 2.0) == (0.0, np.inf)
    with pytest.raises(ValueError, match="no escape bound"):
        escape.escape_bound(make_update("pg-es", p=3.0), start, q, 0.1)


def test_escape_bounds_match_hand_solution():
    start, q = escape.well_policy(0.01), [1.0, 0.5, 0.0]
    assert escape.escape_bound("pg-sm", start, q, 0.5) == (pytest.approx(97.0), np.inf)
    assert escape.escape_bound("mce", start, q, 0.5) == (0.0, 19.0)  # 4 log 99 = 18.4
    assert escape.escape_bound("di", start, q, 0.5) == (0.0, 4.0)  # 0.98 / (1/4) = 3.9
    # Steps of log(1 + (1/4) / sqrt(1 + (9/16) s)) must add up to log 99 / 2 = 2.30.
    _, high = escape.escape_bound("pg-es", start, q, 0.5)
    gains = np.log1p(0.25 / np.sqrt(1 + 9 / 16 * np.arange(100)))
    assert high == 1 + int(np.argmax(np.cumsum(gains) >= np.log(99) / 2))


def test_escape_steps_match_hand_solution():
    """All numbers of this run of DI are dyadic, so the count is exact.

    The first step leads to (3/8, 7/8, 1/8), whose sum exceeds 1 by 3/8, and which is projected to
    (1/4, 3/4, 0). Each later step moves 1/16 from the second action to the first, which has then
    5/16, 6/16, 7/16 and 8/16.
    """
    assert float(escape.escape_steps("di", [0.125, 0.75, 0.125], [1.0, 0.5, 0.0], 0.25)) == 5.0
    assert (
        float(escape.escape_steps("pg-sm", escape.well_policy(1e-6), [1.0, 0.9, 0.0], 1.0, 100))
        == np.inf
    )


@pytest.mark.parametrize(("cap", "steps"), [(0, np.inf), (65, np.inf), (177, np.inf), (178, 178)])
def test_escape_steps_respects_the_cap(cap: int, steps: float) -> None:
    starts = [[1 / 125, 123 / 125, 1 / 125], [0.6, 0.2, 0.2]]
    assert escape.escape_steps("pg-sm", starts, 2 * [[1, 0.5, 0]], cap=cap).tolist() == [steps, 0.0]


def test_batched_escape_steps_agree_with_single_rows():
    starts = np.array([escape.well_policy(d) for d in (0.1, 0.003)])
    q = np.array([[1.0, 0.9, 0.0], [1.0, 0.5, 0.0]])
    for name in PAPER:
        together = escape.escape_steps(name, starts, q)
        alone = [float(escape.escape_steps(name, s, v)) for s, v in zip(starts, q, strict=True)]
        np.testing.assert_array_equal(together, alone)


def test_corner_bound_matches_hand_solution():
    bound = escape.corner_bound([0.2, 0.7, 0.1], [1.0, 0.9, 0.0])
    np.testing.assert_allclose(bound, [np.inf, 0.75, 0.45])


def test_corner_check_margin_matches_hand_solution():
    """The second action reaches 0.68 in one step of DI, and its corner bound is 0.795.

    The step has weight 0.3 and the values (1, 0.9, 0). It adds (0.3, 0.27, 0) to the policy
    (0.01, 0.6, 0.39) and subtracts 0.19 from each probability.
    """
    check = checks.no_wrong_corner_attracts.function
    assert finding_of(check, updates=("di",), n_runs=1, n_steps=1).margin == pytest.approx(
        0.795 - 0.68
    )


def test_projection_check_rejects_incorrect_projection():
    """The check fails for a projection that gives all mass to the first coordinate."""

    def stuck(points, unit):
        numerators = np.zeros_like(points)
        numerators[:, 0] = unit
        return numerators, np.ones((len(points), 1), dtype=np.int64)

    check = checks.the_largest_move_gains_most
    finding = finding_of(check, draw=checks._any_moves, project=stuck, n_samples=50)
    assert finding.status == "false as stated"
    # At worst, the top coordinate loses a mass of 1 to the first coordinate: -1 - 1.
    assert finding.margin is not None
    assert -2.0 <= finding.margin < -1.0


def test_sufficient_condition_weight_matches_hand_solution():
    """A step of the least weight decreases the probability of the best action."""
    finding = checks.the_sufficient_condition_is_met_near_the_corner.run()
    (tally,) = [t for t in finding.tallies if t.quantity == "least weight that meets it"]
    easiest = tally.worst[0].instance
    pi, q = np.array(easiest["pi"]), np.array(easiest["q"])
    assert pi.sum() == pytest.approx(1.0, abs=1e-12)
    adv = q - pi @ q
    needed = -np.log(pi[1]) / (adv[1] * pi[1] - adv[0] * pi[0])
    assert tally.worst[0].value == pytest.approx(needed)
    after = pi * np.exp(needed * pi * adv)
    assert after[0] / after.sum() < pi[0]


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


def test_invalid_arguments_raise():
    with pytest.raises(ValueError, match="sum to one"):
        gravity.Example(("0.5", "0.4"), (1, 0))
    for outside in (0.0, 0.5):
        with pytest.raises(ValueError, match=r"epsilon: expected a number in \(0, 1/2\), got"):
            escape.well_policy(outside)


def test_remainders_of_the_escort_expansion_match_hand_solution():
    """The steps are epsilon theta_b and epsilon theta_c if p = 2 and delta is tiny."""
    b, c = gravity.escort_remainders(2.0, "1e-2", "1e-40")
    assert c == pytest.approx(1e-6, rel=1e-12)  # adv(c)^2 pi(c) = eps^3
    # theta_b = sqrt(1 - 2 eps), and the first-order term is 2 eps theta_b
    theta = np.sqrt(0.98)
    assert b == pytest.approx(abs((theta + 0.01 * theta) ** 2 - 0.98 - 0.02 * theta), rel=1e-9)


def test_expansion_at_c_is_exact_for_p_one():
    assert gravity.escort_remainders(1.0, "1e-2", "1e-40")[1] < 1e-40


def test_remainders_do_not_depend_on_the_decimal_context() -> None:
    expected = gravity.escort_remainders(2.0, "1e-2", "1e-40")
    context = decimal.Context(prec=2, traps=[decimal.Inexact, decimal.FloatOperation])
    with decimal.localcontext(context):
        assert gravity.escort_remainders(2.0, "1e-2", "1e-40") == expected


def test_remainders_are_scaled_by_their_order(comparisons_of) -> None:
    """The orders for p = 2 are 3/2 at b and 5/2 at c, the smaller of 3 - 1/p and 5 - 4/p."""
    sizes = remainders(comparisons_of(checks.the_expansion_leaves_out_small_terms.function))
    b, c = gravity.escort_remainders(2.0, "1e-2", "1e-4", 1.0)
    here = {place: size for (place, *where), size in sizes.items() if where == [2.0, 1e-2, 1e-4]}
    assert here == {
        "b": pytest.approx(b / (1e-3 + 1e-4)),
        "c": pytest.approx(c / (1e-5 + 1e-4)),
        "c as printed": pytest.approx(c / (1e-5 + 1e-4)),
    }


def remainders(comparisons: dict[str, list[Comparison]]) -> dict[tuple[Any, ...], float]:
    """Return the ratios of the remainders to their orders by place, p, epsilon and delta."""
    return {
        (quantity.replace("remainder at ", "").replace(" over its order", ""), *at.values()): value
        for quantity, group in comparisons.items()
        for value, at in ((one.value, one.instance) for one in group)
    }


def test_escape_bounds_of_two_actions_match_hand_solution() -> None:
    """The bounds at odds of 9 and weight 1/2 are 4 log 9 = 8.8 for CE and 0.8 / (1/2) for DI."""
    assert escape.escape_bound("ce", [0.1, 0.9], [1.0, 0.0], 0.5) == (0.0, 9.0)
    assert escape.escape_bound("di", [0.1, 0.9], [1.0, 0.0], 0.5) == (0.0, 2.0)
    # PG-SM takes at least (9 - 1) / (2 w) steps.
    assert escape.escape_bound("pg-sm", [0.1, 0.9], [1.0, 0.0], 0.5) == (pytest.approx(8.0), np.inf)


def test_tied_gain_is_not_counted_as_a_lead() -> None:
    """DI moves (1/4, 1/4, 1/2) to (3/8, 3/8, 1/4), so the first two actions gain equally."""
    tied = gravity.Example(("1/4", "1/4", "1/2"), (1, 1, 0))
    finding = finding_of(
        checks.another_action_gains_more, update="di", example=tied, weights=("3/8",)
    )
    assert finding.status == "false as stated"
    assert finding.margin == -np.finfo(float).tiny


def test_printed_remainder_order_is_correct_for_p_three_halves(comparisons_of) -> None:
    """Both orders are 7/3 for p = 3/2, and the next binomial coefficient is p(p - 1)/2 = 3/8."""
    sizes = remainders(
        comparisons_of(checks.the_expansion_leaves_out_small_terms.function, below=())
    )
    deep = (1.5, 1e-16, 1e-96)
    assert sizes["c", *deep] == sizes["c as printed", *deep] == pytest.approx(3 / 8)


@pytest.mark.parametrize("draw", [checks._any_moves, checks._weighted_values])
def test_random_projection_points_have_zeros_and_ties(draw) -> None:
    rng = np.random.default_rng(0)
    assert (checks._compositions(rng, 1000, 4, 60) == 0).any(axis=1).mean() > 0.2
    moves = draw(rng, 1000, 4)
    ties = (moves == moves.max(axis=1, keepdims=True)).sum(axis=1) > 1
    assert ties.mean() > 0.1


def test_greedy_path_ends_at_0_99() -> None:
    """A step of DI with weight 1/2 moves a probability of 1/4 if the two values differ by 1."""
    path = [escape.greedy_path("di", [0.5, 0.5], [1.0, 0.0], 0.5, n) for n in (1, 9)]
    assert [each.tolist() for each in path] == [[0.5, 0.75], [0.5, 0.75, 1.0]]
    assert escape.greedy_path("di", [0.99, 0.01], [1.0, 0.0], 0.001, 9).tolist() == [0.99]
    assert escape.greedy_path("di", [0.5, 0.5], [1.0, 0.0], 0.98, 9).tolist() == [0.5, 0.99]


def test_greedy_path_stops_early(monkeypatch) -> None:
    walked = []

    def counted(*arguments):
        walked.append(arguments[3])
        return follow(*arguments)

    monkeypatch.setattr(escape, "follow", counted)
    assert len(escape.greedy_path("di", [0.5, 0.5], [1.0, 0.0], 0.01, 100_000)) == 99
    assert sum(walked) < 1000


def test_di_escape_steps_in_the_check_match_hand_solution(comparisons_of) -> None:
    """Each step of DI from about (0, 1, 0) moves half of the value gap to the best action."""
    (comparisons,) = comparisons_of(
        checks.escape_times_obey_their_bounds, updates=("di",), weights=(1.0,)
    ).values()
    counts = {
        one.instance["q"]: one.value for one in comparisons if one.instance["epsilon"] == 0.001
    }
    assert counts == {(1.0, 0.9, 0.0): 10, (1.0, 0.5, 0.0): 2, (1.0, 0.8, 0.6): 5}


@pytest.mark.parametrize("shape", [(3,), (1, 3), (2, 1, 3)])
def test_margin_matches_hand_solution(shape: tuple[int, ...]) -> None:
    """DI with weight 3/10 moves (1/5, 3/10, 1/2) to (2/5, 1/5, 2/5)."""
    pi = np.broadcast_to([0.2, 0.3, 0.5], shape)
    margins = gravity.margin("di", pi, [1.0, 0.0, 0.0], 0.3)
    np.testing.assert_allclose(margins, np.full(shape[:-1], 0.3))


@pytest.mark.parametrize("name", ["di", "pg-sm", "pg-es"])
def test_certified_margin_uses_the_smaller_of_two_close_leads(name: str) -> None:
    """Two leads are equal as floats, and the ball contains only the smaller lead."""
    small = Fraction(1, 10**20)
    example = gravity.Example((Fraction(1, 5), Fraction(2, 5), Fraction(2, 5)), (1, 0, small))
    _, margin = gravity.certified_margin(name, example)

    def leads():
        best, *others = gravity.certified_increase(name, example)
        return [best - gain for gain in others]

    first, second = certified(leads, bits=400)
    assert margin.overlaps(second)
    assert not margin.overlaps(first)


def test_escape_steps_broadcasts_policy_over_values():
    together = escape.escape_steps("npg", [0.01, 0.6, 0.39], [[1, 0.9, 0], [1, 0.5, 0]])
    assert together.tolist() == [41.0, 9.0]
