"""Test exact counts, bounds and checks of unlearning against hand solutions and float loops."""

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import arb, ctx

from pu_lib.chapters.domino.quantities import domino
from pu_lib.chapters.unlearning import block_counting, checks, counting, flow_times
from pu_lib.chapters.unlearning import quantities as un
from pu_lib.chapters.unlearning.block_counting import count_in_blocks
from pu_lib.chapters.unlearning.counting import CONVEX, LINKS, UNIFORM
from pu_lib.chapters.unlearning.quantities import count, counts, linked_count, path
from pu_lib.claims import errata, judge
from pu_lib.claims.recorder import Recorder, Status
from pu_lib.exact import Undecided, ball
from pu_lib.two_action_dynamics import (
    SoftmaxProcess,
    TwoActionProblem,
    equivalent_updates,
    parse_problem,
)
from pu_lib.updates import PAPER, UPDATES, Direct, SoftmaxPolicyGradient, as_update, make_update

THERE, BACK = np.array([1.0, 0.0]), np.array([0.0, 1.0])


class ListingRecorder(Recorder):
    """A recorder that lists the slack and the instance of every comparison."""

    def __init__(self):
        super().__init__()
        self.found = []

    def _add(self, compared, value, bound, slack, *more, **details):
        self.found.append((slack, {**details["at"], compared[0]: value}))
        super()._add(compared, value, bound, slack, *more, **details)


def listed_comparisons(check, **arguments):
    """Return the slacks and instances of a check with the given arguments, in order."""
    recorder = ListingRecorder()
    check.function(recorder, **{**check.arguments, **arguments})
    return recorder.found


def float_count(n, update, eta, schedule):
    """Return the count computed with the float steps of `pu_lib.updates`."""
    theta = update.initial(1, 2)[0]
    if np.allclose(theta, 0) and "escort" in type(update).__name__.lower():
        theta = np.ones(2)
    weights = (eta / math.sqrt(t) if schedule == "inverse-sqrt" else eta for t in range(1, 10**6))
    start = update.policy(theta)[0]
    for _ in range(n):
        theta = update.step(theta, THERE, next(weights))
    steps = 0
    while update.policy(theta)[0] > start + 1e-13:
        theta = update.step(theta, BACK, next(weights))
        steps += 1
    return steps


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt"])
@pytest.mark.parametrize("eta", [0.3, 1.7])
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("pg-sm", {}),
        ("ce", {}),
        ("mce", {}),
        ("di", {}),
        ("pg-es", {"p": 2}),
        ("pg-es", {"p": 3}),
        ("pg-es", {"p": 2, "factor": "drop"}),
        ("pg-es", {"p": 1.5, "factor": "drop"}),
    ],
)
def test_counts_match_the_updates_of_the_library(name, options, eta, schedule):
    update = make_update(name, **options)
    for n in (1, 2, 7, 25):
        assert count(n, name, eta, schedule, **options) == float_count(n, update, eta, schedule)


def test_counts_are_correct_if_floats_are_not_accurate_enough():
    assert counts([1, 2, 3, 4, 9], "di", "0.3") == [1, 2, 3, 4, 4]
    assert [count(1000, "pg-es", eta) for eta in ("0.5", "0.7", "1")] == [1586, 1892, 2491]
    assert [count(1000, "pg-es", eta, factor="drop") for eta in (2, 5)] == [2657, 686]


def test_fixed_points_are_detected_exactly():
    assert count(3, "pg-es", 2) == math.inf
    assert count(3, "pg-es", "8/3", p="3/2") == math.inf
    assert count(3, "pg-es", 2, p=1, factor="drop") == math.inf
    assert count(3, "pg-es", "2.0000001") < math.inf
    assert count(0, "pg-es", 2) == 0
    assert count(4, "di", 1, start=0, strict=True) == math.inf


def test_zero_forward_steps_need_zero_backward_steps():
    for update in ("pg-sm", "pg-es", "di", "ce", "mce"):
        for schedule in ("constant", "inverse-sqrt"):
            assert count(0, update, "0.4", schedule) == 0
            assert count(0, update, "0.4", schedule, strict=True) == 1


def test_direct_ties_match_hand_solution():
    # pi(a_1) = 1 after 3 steps, and one step of 2 / sqrt(4) = 1 leads exactly to the start.
    assert count(3, "di", 2, "inverse-sqrt") == 1
    assert count(3, "di", 2, "inverse-sqrt", strict=True) == 2
    # 1/3 is not a binary fraction. The first step ends at exactly 1, and a step of 1/3 / sqrt(4)
    # leads from there to the start. The sum of 1/3 / sqrt(2) and 1/3 / sqrt(3) exceeds 1/3.
    for strict, steps in (False, 1), (True, 2):
        assert count(1, "di", "1/3", "inverse-sqrt", start="5/6", strict=strict) == 2
        assert count(3, "di", "1/3", "inverse-sqrt", start="11/12", strict=strict) == steps
    assert count(9, "di", "1/4") == 4
    assert count(9, "di", "1/4", strict=True) == 5


def test_counts_of_several_n_equal_separate_counts():
    ns = [7, 0, 3, 7]
    assert counts(ns, "ce", "0.2") == [count(n, "ce", "0.2") for n in ns]


def test_path_recovers_after_the_count():
    for update in ("pg-sm", "pg-es", "di", "ce"):
        back = count(12, update, "0.3", "inverse-sqrt")
        values = path(12, back, update, "0.3", "inverse-sqrt")
        assert values[-1] <= 0.5 + 1e-12 < values[-2]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": -1}, "n: expected an integer from 0"),
        ({"n": 1, "step_size": 0}, "step_size: expected a number above 0"),
        ({"n": 1, "step_size": "x"}, "step_size: expected an integer, a fraction"),
        ({"n": 1, "update": "sarsa"}, "update: unknown 'sarsa'"),
        ({"n": 1, "schedule": "linear"}, "schedule: expected one of"),
        ({"n": 1, "factor": "halve"}, "factor: expected one of"),
        ({"n": 1, "p": "0.5"}, "p: expected a number from 1"),
        ({"n": 1, "start": 1}, r"start: expected a probability in \(0, 1\)"),
        ({"n": 1, "start": 2, "update": "di"}, r"start: expected a probability in \[0, 1\]"),
    ],
)
def test_invalid_arguments_raise(arguments, words):
    with pytest.raises(ValueError, match=words):
        count(**arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": 10**18}, r"proved: n' is at least 1e\+18"),
        ({"n": 10**9, "update": "pg-es"}, "proved: n' is at least 1e"),
        ({"n": 10**9, "update": "mce"}, "proved: n' is at least 10.36 and at most 23.42"),
        ({"n": 10**12, "update": "ce", "schedule": "inverse-sqrt"}, "at most"),
        (
            {"n": 10**12, "update": "di", "schedule": "inverse-sqrt"},
            r"at least 1e\+06 and at most 4\.001e\+06",
        ),
        ({"n": 10**9, "update": "ce", "start": "1/5"}, "no bound on n' is proved"),
        ({"n": 1, "step_size": 1000}, r"at least 10\^213 backward"),
        ({"n": 1, "step_size": "1e300"}, r"at least 10\^\(10\^299\) backward"),
        ({"n": 1, "step_size": 3 * 10**4000}, r"at least 10\^\(10\^3999\) backward"),
        ({"n": 5, "update": "ce", "start": "1e-300"}, r"at least 10\^29\d backward"),
        (
            {"n": 5, "update": "pg-es", "p": 3, "step_size": "1.33333333334"},
            r"at least 10\^1\d backward",
        ),
    ],
)
def test_count_above_the_step_limit_raises_and_gives_proved_bounds(arguments, words):
    with pytest.raises(un.OutOfReach, match=words):
        count(**arguments)


@pytest.mark.parametrize("eta", ["150", "750.7", "1e6", "1e300"])
def test_count_above_1e30_raises(eta):
    with pytest.raises(un.OutOfReach, match="n = 1000000000 updates of pg-sm may take more"):
        count(10**9, "pg-sm", eta)


def test_count_of_30_digits_has_the_correct_difference():
    # The counts of 30 digits differ by the difference of the numbers of forward updates.
    nearly = count(10**9, "pg-sm", "145") - count(10**8, "pg-sm", "145")
    assert abs(nearly - 9 * 10**8) <= 1


@pytest.mark.parametrize("kind", [np.int8, np.int16, np.uint8])
def test_max_steps_accepts_small_numpy_integers(kind):
    assert count(3, "pg-sm", "0.3", max_steps=kind(9)) == count(3, "pg-sm", "0.3", max_steps=9) == 4
    assert domino(2, "pg-sm", "0.3", max_steps=kind(9)) == domino(2, "pg-sm", "0.3") == 3


def test_negative_escort_parameter_matches_rational_recursion():
    """A step of PG-ES with p = 1 changes theta_a by w sign(theta_a) adv(a) / norm."""
    theta = [Fraction(1, 5), Fraction(9, 5)]

    def move(w):
        sizes = [abs(x) for x in theta]
        norm = sum(sizes)
        for a, lead in enumerate((sizes[1], -sizes[0])):
            theta[a] += w * (1 if theta[a] > 0 else -1) * lead / norm**2

    move(Fraction(3))
    steps, least = 0, theta[0]
    while 9 * abs(theta[0]) > abs(theta[1]):
        move(Fraction(-3))
        steps, least = steps + 1, min(least, theta[0])
    assert least < 0
    assert count(1, "pg-es", 3, p=1, start="1/10") == steps


def test_remaining_weight_bound_of_cross_entropy_matches_hand_solution():
    """A step of weight 1 from 1/2 leads to y = 1, and a backward step is 2w / (1 + 1/e) long."""
    process = parse_problem("ce").process()
    process.forward(arb(1))
    assert float(process.remaining_weight_bound()) == pytest.approx((1 + math.exp(-1)) / 2)


def test_escort_exponent_is_at_most_1e300():
    assert parse_problem("pg-es", p=10**300).p == 10**300
    with pytest.raises(ValueError, match=r"p: expected a number from 1 to 10\^300"):
        parse_problem("pg-es", p=10**300 + 1)


def test_max_steps_limits_the_recovery():
    with pytest.raises(ValueError, match="not recovered after 10 backward updates"):
        count(10, "pg-es", 1, max_steps=10)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("eta", ["0.01", "0.5", "3", "20"])
def test_block_counts_equal_stepwise_counts(eta, strict):
    problem = parse_problem("pg-sm", eta)
    for n in (5000, 20_001):
        assert count_in_blocks(n, problem, strict) == count(n, "pg-sm", eta, strict=strict)
    above = parse_problem("pg-sm", eta, start="3/4")
    assert count_in_blocks(5000, above, strict) == count(
        5000, "pg-sm", eta, start="3/4", strict=strict
    )


def test_theorems_give_counts_of_many_steps():
    assert count(10**12, "di", "0.3") == 4
    assert count(10**12, "di", "1/4") == 4
    assert count(10**12, "di", "1/4", strict=True) == 5
    assert count(10**12, "di", "1/4", start="9/10") == 1
    assert count(10**12, "di", 1, start=0, strict=True) == math.inf
    assert count(10**12, "pg-es", 2) == math.inf
    # n' - n = log(g_0 / g_n) in the limit of short steps, and g_n is about 1 / (2 n eta).
    assert count(10**9, "pg-sm", "0.001") - 10**9 == math.ceil(math.log(10**6 / 2))


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt"])
@pytest.mark.parametrize("eta", ["0.1", "0.7", "3"])
@pytest.mark.parametrize("name", PAPER)
def test_counts_obey_proved_bounds(name, eta, schedule):
    for n in (0, 1, 2, 9, 60):
        low, high = un.proved_bounds(n, parse_problem(name, eta, schedule))
        assert low - 1e-9 <= count(n, name, eta, schedule) <= high + 1e-9
        if n and schedule == "constant" and name == "di":
            assert low == high


class Lazy(SoftmaxPolicyGradient):
    """The softmax policy gradient under a different name."""

    name = "lazy"


class Clipped(Direct):
    """DI under a different name."""

    name = "clipped"


def test_user_updates_are_counted_in_floats(monkeypatch):
    for n, eta in ((3, "0.3"), (12, "1.7"), (20, "0.05")):
        assert count(n, Lazy(), eta) == count(n, "pg-sm", eta)
        assert count(n, Clipped(), eta) == count(n, "di", eta)
        assert count(n, Clipped(), eta, strict=True) == count(n, "di", eta, strict=True)
        assert count(n, Lazy(), eta, start="3/4") == count(n, "pg-sm", eta, start="3/4")
    assert len(path(3, 2, Lazy(), "0.3")) == 6
    monkeypatch.setitem(UPDATES, "lazy", Lazy())
    assert equivalent_updates()[-1] == ("lazy",)
    assert count(5, "lazy", "0.3", "inverse-sqrt") == count(5, "pg-sm", "0.3", "inverse-sqrt")


def test_batched_float_counts_equal_separate_counts():
    ns = [20, 0, 3, 12, 3]
    for schedule in ("constant", "inverse-sqrt", "geometric:1.1"):
        assert counts(ns, Lazy(), "0.3", schedule) == counts(ns, "pg-sm", "0.3", schedule)
    assert counts([], Lazy()) == []
    # One step of weight 100 leaves the other action e^-50, and float steps back change nothing.
    assert counts([1, 0, 2], Lazy(), 100) == [math.inf, 0, math.inf]
    steps = count(20, Lazy(), "0.3")
    assert counts([1, 20], Lazy(), "0.3", max_steps=steps)[1] == steps
    with pytest.raises(un.OutOfReach, match=f"not recovered after {steps - 1} backward"):
        counts([1, 20], Lazy(), "0.3", max_steps=steps - 1)


def test_equivalent_updates_are_grouped():
    assert equivalent_updates()[:4] == [("pg-sm",), ("pg-es",), ("di",), ("ce", "mce", "sce")]


def test_escort_update_object_keeps_its_options():
    update = make_update("pg-es", p=3.0, factor="drop")
    assert count(9, update, "0.7") == count(9, "pg-es", "0.7", p=3, factor="drop")


# Hand solutions


def test_bounds_match_hand_solution():
    assert un.pg_bound_printed(3) == 3
    assert un.pg_bound(3) == 4
    assert un.ce_bound_printed(3, 1.0) == pytest.approx(2 + math.log(7))
    assert un.ce_bound(3, 1.0) == pytest.approx(2 + math.log(5))
    assert un.ce_bound_printed(3, 0.5) == pytest.approx(2 + 2 * math.log(4))
    assert un.ce_lower_bound(3, 0.5) == pytest.approx(math.log(5 / 2))
    assert un.di_bound(5, Fraction(1), Fraction(1, 4)) == 2
    assert un.di_bound_printed(5, Fraction(2, 5)) == un.di_bound_in_eta(Fraction(2, 5)) == 3
    assert un.di_strict_count(5, Fraction(1, 2)) == 3
    assert un.di_strict_count(9, Fraction(1, 4)) == 5
    assert un.decaying_pg_bound(4) == 5
    assert un.decaying_di_bound_in_n(4) == 21
    assert un.decaying_di_bound_in_eta(4, Fraction(1, 2)) == 21
    assert un.decaying_di_bound(4, 1.0) == min(21, 12)
    assert un.decaying_di_bound(1, 0.1) == 8
    assert un.decaying_ce_bound_printed(30, 1.0) == pytest.approx(91.948, abs=5e-4)
    log = math.log(3)  # log(1 + 4/4 * 2)
    by_hand = (4 + 2 * log) ** 2 + 2 * (8 + 4 * log)
    assert un.decaying_ce_logarithm(4, 0.25) == pytest.approx(log)
    assert un.decaying_ce_bound_printed(4, 0.25) == pytest.approx(by_hand)
    assert un.decaying_ce_bound(4, 0.25) == pytest.approx((2 + 2 * log) ** 2 + 2 * (4 + 4 * log))
    assert un.decaying_di_lower_bound(3, 0.25) == pytest.approx(2 * math.sqrt(3) + 1)
    assert un.lemma_11_bound_printed(3, 2.0) == pytest.approx(2 + math.log(7))
    assert un.lemma_11_bound(3, 2.0) == pytest.approx(2 + math.log(5))
    assert un.lemma_11_lower_bound(3, 2.0) == pytest.approx(math.log(7))
    assert un.lemma_12_bound_printed(4, 1.0) == pytest.approx(1 + math.log(5))
    assert un.lemma_12_bound(4, 1.0) == pytest.approx(1 + math.log(3))
    assert un.lemma_12_lower_bound(8, 1.0) == pytest.approx(math.log(5))
    assert un.small_step_deficit(9) == pytest.approx(math.log(81 / 32))
    assert un.small_step_deficit(9) < 1 < un.small_step_deficit(10)


def test_small_weights_or_many_steps_nearly_reach_each_bound():
    assert count(1, "pg-sm", "0.001") == 2
    for n in (1, 7, 40):
        assert count(n, "pg-sm", "0.001") == n + 1
        assert count(n, "di", "0.3") == un.di_bound(n, Fraction(3, 10))
    strict = count(300, "ce", "0.01", strict=True)
    assert un.ce_bound(300, 0.01) - strict < 0.6 * strict
    assert un.decaying_pg_bound(300) > 0.95 * count(300, "pg-sm", "0.01", "inverse-sqrt")
    low = un.decaying_di_lower_bound(2000, 1.0)
    assert count(2000, "di", 1, "inverse-sqrt") - low < 1
    assert linked_count(20, "1/64", UNIFORM["uniform"]) == 20
    assert linked_count(20, "1/64", UNIFORM["uniform"], strict=True) == 21


def test_largest_sequence_matches_hand_solution():
    worst = un.largest_sequence(2, 1.0, lambda k: 1.0)
    assert worst == pytest.approx([0, 1, 1 + math.exp(-1)])
    # The step from zero reaches 5. The step from the current maximum reaches further.
    assert un.largest_sequence(2, 5.0, lambda k: 1.0)[2] == pytest.approx(5 + 5 * math.exp(-5))


def test_escort_flow_time_matches_numeric_integral():
    assert flow_times.escort_flow_time(math.log(0.3), 2.0) == pytest.approx(-math.log(0.3) / 2)
    x = np.linspace(0.3, 1, 200_001)
    h = 3 * x**2 * (1 + x**2) / (1 + x**3) ** 2
    integral = np.trapezoid(1 / (1 + x**2) / h, x)
    assert flow_times.escort_flow_time(math.log(0.3), 3.0) == pytest.approx(integral, rel=1e-8)


def test_step_flow_time_matches_hand_solution():
    first, *_ = flow_times.step_flow_times(1, 1, "pg-sm")
    # A step of weight 1 from delta = 0 leads to 1/2.
    assert first["flow time"] == pytest.approx(0.5 + math.sinh(0.5))
    with pytest.raises(ValueError, match="update: expected pg-sm, or pg-es"):
        flow_times.step_flow_times(1, 1, "di")
    with pytest.raises(ValueError, match="with its factor, got pg-es factor=drop"):
        flow_times.step_flow_times(2, 1, make_update("pg-es", factor="drop"))
    with pytest.raises(ValueError, match="n = 1, step_size = 2: the policy never recovers"):
        flow_times.step_flow_times(1, 2, "pg-es")


def test_errata_state_the_computed_numbers():
    why = {row.where: row.why for row in errata() if row.chapter == "unlearning"}
    bound = un.decaying_ce_bound_printed(30, 1.0)
    assert f"the bound is {bound:.3f}" in why["Theorem 5(iii)"]
    steps = count(30, "ce", 1, "inverse-sqrt", start="1/150")
    assert f"takes {steps} updates" in why["Theorem 5(iii)"]
    assert f"the bound is {un.ce_bound_printed(3, 1.0):.2f}" in why["Theorem 4(iii)"]
    assert f"takes {count(3, 'ce', 1, start='0.12')} updates" in why["Theorem 4(iii)"]
    assert f"takes {count(5, 'di', 1, start='1/4')} updates" in why["Theorem 4(ii)"]
    assert f"printed {un.di_bound(5, Fraction(1))}" in why["Theorem 4(ii)"]
    assert count(10, "pg-sm", Fraction(5, 4) * Fraction(10, 18), start="1/10") == 9
    # The y-equation with sqrt(t + 1) and y(0) = 0 has the value y(1) = 2 (sqrt 2 - 1).
    where = "Lemma 12, proof, the two differential equations"
    assert f"y(1)={2 * (math.sqrt(2) - 1):.3f}" in why[where]
    for lemma, bent in (("Lemma 11", 1.0), ("Lemma 12", math.sqrt(0.5))):
        printed = f"{math.floor(100 * (-3 + bent * math.exp(3))) / 100:.2f}"
        assert float(printed) <= -3 + bent * math.exp(3)  # as the lemma assumes
        assert f"$X=(0,-3,{printed})$" in why[f"{lemma}, proof, last line"]


# Checks


def test_compared_counts_match_hand_solution():
    recorder = ListingRecorder()
    checks.compare_counts(recorder.at_least, un.pg_bound_printed, (2,), update="di", etas=("1",))
    checks.compare_counts(recorder.at_most, un.pg_bound, (2,), update="di", etas=("1",))
    instance = {"update": "di", "n": 2, "eta": "1", "start": "1/2", "n'": 1}
    assert recorder.found == [(-1, instance), (2, instance)]
    assert [tally.compared for tally in recorder.tallies.values()] == ["n' ≥ $n$", "n' ≤ $n+1$"]
    # The first update from (1, 1) with p = 2 and eta = 2 sets theta_2 to zero.
    ((slack, _),) = listed_comparisons(
        checks.escort_can_be_faster, instances=(("2", "keep", "2", 3, "1/2"),)
    )
    assert slack == math.inf
    # DI takes ceil(1.5 / 0.5) = 3 steps from x = 1/4, but the printed formula gives 2.
    assert count(9, "di", "1/2", start="1/4") == 3


def test_steps_of_the_proof_of_theorem_5_match_hand_solution():
    """1 >= 1/sqrt(2), but not 1/sqrt(2) + 1/sqrt(3); four weights of CE exceed 200 + log 401."""
    comparisons = listed_comparisons(checks.sums_of_weights_bound_the_updates_back)
    assert [slack for slack, instance in comparisons if instance["n"] == 1] == pytest.approx(
        [2 - (math.sqrt(3) - 1), 8 - 2]
    )
    sums = np.cumsum(100 / np.sqrt(np.arange(2, 6)))
    assert sums[2] < 200 + math.log(401) < sums[3]
    comparisons = listed_comparisons(checks.weights_back_cover_the_distance)
    of_100 = [one for one in comparisons if (one[1]["eta"], one[1]["n"]) == ("100", 1)]
    assert of_100[0] == (3 - 1, {"eta": "100", "n": 1, "n'": 1})
    most = (4 + math.log(401) / 200) ** 2 + 8 + math.log(401) / 100
    assert of_100[1][0] == pytest.approx(most - 4)


def test_comparison_lemma_check_fails_for_an_incorrect_flow_time(monkeypatch):
    # Forward steps cover no more than backward steps if the speed is constant.
    def constant(problem):
        return lambda process: 2 * float(process.y)

    monkeypatch.setattr(flow_times, "_flow_clock", constant)
    runs = ((20, "0.3", "pg-sm", "constant", 2),)
    comparisons = listed_comparisons(
        checks.forward_steps_cover_their_weight_and_backward_steps_at_most, runs=runs
    )
    assert min(slack for slack, _ in comparisons) < 0


def test_count_raises_if_a_tie_is_undecided(monkeypatch):
    monkeypatch.setattr(TwoActionProblem, "step_hitting_zero", lambda self: math.inf)
    monkeypatch.setattr(un, "certified", lambda compute: compute())
    with pytest.raises(Undecided):
        count(3, "pg-es", "8/3", p="3/2")


@pytest.mark.parametrize("start", ["1/2", "0.9", "0.999", "0.9999", "0.9999999"])
@pytest.mark.parametrize("eta", ["0.001", "0.01", "1", "5"])
def test_block_counts_equal_stepwise_counts_above_one_half(eta: str, start: str) -> None:
    """The counts agree although a block could lead past a start above 1/2."""
    problem = parse_problem("pg-sm", eta, start=start)
    assert block_counting.count_in_blocks(5000, problem) == count(5000, "pg-sm", eta, start=start)


@pytest.mark.parametrize("n", [0, 1, 10])
def test_decaying_softmax_counts_are_correct_for_a_small_initial_probability(n: int) -> None:
    # An independent run with 50 digits takes 23 updates to undo ten updates.
    assert count(n, "pg-sm", 1, "inverse-sqrt", start="0.0001") == {0: 0, 1: 2, 10: 23}[n]


@pytest.mark.parametrize(("eta", "x"), [("9/2", "8/9"), ("28/3", "27/28"), ("35/12", "27/35")])
def test_second_step_to_zero_is_detected(eta: str, x: str) -> None:
    """theta_2 is zero after two steps with p = 2 if eta^3 x (1 - x)^2 = 1."""
    assert Fraction(eta) ** 3 * Fraction(x) * (1 - Fraction(x)) ** 2 == 1
    assert counts([0, 2, 3, 10**7], "pg-es", eta, start=x) == [0, math.inf, math.inf, math.inf]
    assert math.isfinite(count(1, "pg-es", eta, start=x))
    assert un.path(2, 3, "pg-es", eta, start=x)[2:] == [1.0] * 4
    assert math.isfinite(count(2, "pg-es", eta, "inverse-sqrt", start=x))


@pytest.mark.parametrize(("eta", "p"), [("2", 2), ("4/3", 3), ("16/5", "5/4")])
def test_path_stays_at_a_fixed_point(eta: str, p: int | str) -> None:
    assert un.path(3, 2, "pg-es", eta, p=p) == [0.5, *[1.0] * 5]


def test_huge_escort_exponent_gives_an_infinite_or_bounded_count():
    # The first step from the uniform policy multiplies theta_2 by 1 - eta p / 4.
    p = 10**280
    assert count(1, "pg-es", Fraction(4, p), p=p) == math.inf
    with pytest.raises(ValueError, match=r"takes at least 10\^\(10\^279\) backward updates"):
        count(1, "pg-es", Fraction(5, p), p=p)


def test_high_precision_lowers_the_step_limit():
    # An escort step with p near 1 from a start near 0 loses at least one bit.
    with pytest.raises(un.OutOfReach, match=r"may take more than \d{4} steps"):
        count(3804, "pg-es", "0.3", "inverse-sqrt", "1.01", start="1e-9", max_steps=20_000)
    for bits, steps in ((128, 1000), (256, 1000), (512, 500), (4096, 62)):
        with ctx.workprec(bits):
            assert un.max_steps_at_precision(1000) == steps


def test_problem_of_ten_actions_reduces_to_two_actions():
    K, eta, n = 10, 5.0, 3
    update, q = make_update("pg-sm"), np.eye(10)[0]
    theta = np.zeros(K)
    for _ in range(n):
        theta = update.step(theta, q, eta)
    steps = 0
    while update.policy(theta)[0] > 1 / K:
        theta = update.step(theta, 1 - q, eta)
        steps += 1
    assert steps == count(n, "pg-sm", Fraction(5 * K, 2 * (K - 1)), start="1/10") == 2


def test_tiny_weights_are_counted_stepwise():
    assert count(60_000, "pg-sm", "1e-30") == 60_001
    assert count(60_000, "pg-sm", "0.001") == count(60_000, "pg-sm", "0.00099999999")


def test_symmetric_part_of_a_cross_entropy_step_is_constant():
    for pi in ([0.5, 0.5], [0.9, 0.1]):
        update = as_update("ce")
        theta = update.parameters(pi)
        up, down = (update.step(theta, [s, 0.0], 0.4) - theta for s in (1.0, -1.0))
        np.testing.assert_allclose((up - down) / 2, [0.2, -0.2], atol=1e-12)


def test_escort_components_match_hand_solution():
    assert un.escort_components(0.25, 2) == pytest.approx((0.375, -0.25 * 0.75**0.5))
    assert un.escort_components(0.3, 1) == pytest.approx((0.7, -0.3))


def test_equality_sequence_matches_hand_solution():
    lemma_11 = un.equality_sequence(2, 1.0, lambda k: 1.0)
    assert lemma_11 == pytest.approx([0.0, 1.0, 1.0 + math.exp(-1.0)])
    lemma_12 = un.equality_sequence(2, 2.0, lambda k: (k + 1) ** -0.5)
    assert lemma_12 == pytest.approx([0.0, 2.0, 2.0 + 2.0**0.5 * math.exp(-2.0)])


@pytest.mark.parametrize("update", [*PAPER, "npg"])
def test_geometric_weights_match_a_float_loop(update):
    chosen, ratio, n = as_update(update), 1.25, 12
    theta, start = chosen.initial(1, 2)[0], 0.5
    for t in range(n):
        theta = chosen.step(theta, [1.0, 0.0], 0.3 * ratio**t)
    back = 0
    while chosen.policy(theta)[0] > start + 1e-12:
        theta = chosen.step(theta, [0.0, 1.0], 0.3 * ratio ** (n + back))
        back += 1
    assert count(n, update, "0.3", "geometric:5/4") == back


@pytest.mark.parametrize("wrong", ["geometric", "geometric:1", "geometric:0.9", "constant:2"])
def test_geometric_ratio_must_exceed_one(wrong):
    with pytest.raises(ValueError, match="schedule: expected a ratio above 1"):
        count(3, "npg", 1, wrong)


def test_weights_beyond_floats_raise():
    with pytest.raises(ValueError, match="range of floats"):
        count(5000, "npg", 1, "geometric:2")
    assert count(5000, "di", 1, "geometric:2") == 1


def test_direct_updates_with_decaying_weights_have_a_step_limit() -> None:
    """The limit of 9 steps allows n = 3 for PG-SM but not for DI, which may take 3 n steps."""
    assert un.counts([3], "pg-sm", 1, "inverse-sqrt", max_steps=9) == un.counts(
        [3], "pg-sm", 1, "inverse-sqrt"
    )
    with pytest.raises(un.OutOfReach):
        un.counts([3], "di", "0.1", "inverse-sqrt", max_steps=9)


@pytest.mark.parametrize("eta", ["1/100", "1/2", "5"])
def test_forward_blocks_enclose_single_steps(eta: str) -> None:
    with ctx.workprec(128):
        w, process = ball(Fraction(eta)), SoftmaxProcess(Fraction(1, 2))
        for _ in range(40):
            process.forward(w)
        time = block_counting._flow_time(process.origin + process.y)
        for _ in range(50):
            process.forward(w)
        there = block_counting._flow_time(process.origin + process.y)
        for part in (Fraction(1, 1000), Fraction(1, 20)):
            blocks = block_counting._forward(time, w, 50, part)
            assert blocks.overlaps(there)
            assert blocks.rad() < 1e-3 * there


@pytest.mark.parametrize("eta", ["1e-6", "1e-10", "1e-12"])
def test_escape_ratio_is_accurate_for_tiny_weights(eta: str) -> None:
    """The ratio is -log(1 - x) / log(1 + x) = 1 + x + O(x^2) with x = 2 kappa."""
    kappa, limit = un.escape_ratio(eta, 10)
    assert limit - 1 == pytest.approx(2 * kappa, rel=1e-5, abs=4e-16)


def test_stepwise_count_is_correct_for_an_initial_probability_near_one() -> None:
    """The first step is too long for blocks, and backward steps are slightly shorter."""
    start = 1 - Fraction(1, 10**40)
    assert [count(n, "pg-sm", 1, start=start) for n in (50_000, 50_001)] == [50_001, 50_002]


def test_linked_count_rejects_negative_n() -> None:
    with pytest.raises(ValueError, match="n: expected an integer"):
        linked_count(-1, 1, UNIFORM["uniform"])


@pytest.mark.parametrize("eta", ["1/5", "1/2", "1", "19/10", "3"])
def test_escape_ratio_matches_counts(eta: str) -> None:
    _, limit = un.escape_ratio(eta)
    assert count(3000, "pg-es", eta, factor="drop") / 3000 == pytest.approx(limit, abs=0.002)


def test_escape_ratio_is_infinite_at_the_threshold() -> None:
    """The initial kappa is eta / (2 sqrt 2), which is 1/2 if eta = sqrt 2."""
    root = Fraction(math.isqrt(2 * 10**80), 10**40)
    assert un.escape_ratio(root, 0) == (0.5, math.inf)
    kappa, ratio = un.escape_ratio(2, 0)
    assert kappa == pytest.approx(2**-0.5)
    assert ratio == pytest.approx(-math.log(2**0.5 - 1) / math.log(2**0.5 + 1))


@pytest.mark.parametrize(
    ("name", "at_zero", "at_one"),
    [
        ("logistic", 1 / 4, math.e / (1 + math.e) ** 2),
        ("normal", (2 * math.pi) ** -0.5, (2 * math.pi * math.e) ** -0.5),
        ("Cauchy", 1 / math.pi, 1 / (2 * math.pi)),
        ("Laplace", 1 / 2, 1 / (2 * math.e)),
        ("uniform", 1 / 4, 1 / 4),
        ("convex", 1 / 10, 1 / 5),
    ],
)
def test_densities_match_hand_solution(name: str, at_zero: float, at_one: float) -> None:
    density = (LINKS | UNIFORM | CONVEX)[name]
    assert [float(density(arb(x))) for x in (0, 1)] == pytest.approx([at_zero, at_one])


@pytest.mark.parametrize("eta", ["1/100", "1/2", "5"])
def test_backward_blocks_enclose_single_steps(eta: str) -> None:
    with ctx.workprec(128):
        w, process, times = ball(Fraction(eta)), SoftmaxProcess(Fraction(1, 2)), []
        for _ in range(90):
            process.forward(w)
            times.append(block_counting._flow_time(process.origin + process.y))
        reached, made = block_counting._backward(times[-1], times[39], w, Fraction(1, 1000))
        assert made in (50, 51, 52)
        for _ in range(made):
            process.backward(w)
        there = block_counting._flow_time(process.origin + process.y)
        assert reached.overlaps(there)
        assert reached.rad() < 1e-3 * there


def test_excess_is_bounded_up_to_the_end_of_a_block(monkeypatch) -> None:
    ends = []
    place = block_counting._log_odds_at
    monkeypatch.setattr(block_counting, "_log_odds_at", lambda a, b: ends.append(b) or place(a, b))
    w, start = arb(1) / 10, arb(50)
    time = block_counting._forward(start, w, 20, Fraction(1, 10))
    assert time > start + 20 * w
    assert ends[-1] >= time


def test_escort_variants_match_float_counts() -> None:
    counts = {
        (row["p"], row["n"]): row["n'"]
        for _, row in listed_comparisons(checks.escort_can_be_faster)
    }
    for p, factor, eta, n, start in checks.escort_can_be_faster.arguments["instances"]:
        if start == "1/2":
            update = make_update("pg-es", p=float(Fraction(p)), factor=factor)
            assert counts[p, n] == float_count(n, update, float(eta), "constant")
    assert counts == {("3/2", 2000): 31, ("1.9", 100): 13, ("1", 2): 1, ("2", 10): 3}


def test_escort_peak_matches_float_counts() -> None:
    finding = judge("sec:symmetry/decay").finding
    (printed,) = (tally for tally in finding.tallies if tally.as_printed)
    peak = {each.instance["n"]: (each.value, each.limit) for each in printed.worst}
    assert peak[100] == (406, 911)
    for schedule, steps in (("inverse-sqrt", 406), ("constant", 911)):
        assert float_count(100, make_update("pg-es"), 2.1, schedule) == steps
    assert sorted(peak) == [100, 1000]
    assert finding.status is Status.CORRECTED


def test_float_weights_range_from_1e_minus_150_to_1e150() -> None:
    size = 10**150
    inside, outside = (size, Fraction(1, size)), (size + 1, Fraction(1, size + 1))
    assert all(parse_problem("ce", eta).has_float_weight for eta in inside)
    assert not any(parse_problem("ce", eta).has_float_weight for eta in outside)


def test_instance_has_the_options_of_its_update():
    assert counting.instance_of("pg-sm", p=2, factor="keep") == {"update": "pg-sm"}
    assert counting.instance_of("pg-es", p=Fraction(5, 2)) == {"update": "pg-es", "p": "5/2"}


def test_growth_of_the_escort_gradient_matches_hand_solution() -> None:
    """The gradient of the escort policy with p = 1 at theta = (x, 1 - x) has the norm of theta."""
    finding = judge("sec:symmetry/concavity").finding
    assert finding.instance == {"policy": "escort, p = 1", "pi(a_1)": 1.0}
    assert finding.margin == pytest.approx(math.hypot(0.9975, 0.0025) - 1)


@pytest.mark.parametrize(
    ("n", "eta", "start"), [(5, "1e-6", "1e-7"), (5, 1, "1e-13"), (5, "1e-9", "1/2")]
)
def test_float_steps_below_the_tolerance_raise(n: int, eta: int | str, start: str) -> None:
    with pytest.raises(un.OutOfReach, match=f"update {n} of npg moves the policy by too little"):
        count(n, "npg", eta, start=start)
    assert count(0, "npg", eta, start=start) == 0


def test_float_steps_above_the_tolerance_are_counted() -> None:
    assert count(5, "npg", "1e-7") == 5
    assert count(40, "npg", "1e-9", "geometric:2") == 1
    assert math.isfinite(un.path(3, 2, "npg", "1e-9")[-1])
    with pytest.raises(un.OutOfReach, match="weight 1 is beyond the range of floats"):
        count(1, "npg", 10**400)
