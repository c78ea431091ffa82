"""The counts are those of exact arithmetic, and every check of the chapter can fail."""

import math
import time
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.checks import unlearning as checks
from pu_lib.exact import Undecided
from pu_lib.theory import unlearning as un
from pu_lib.theory.unlearning import count, counts, path
from pu_lib.updates import make_update

THERE, BACK = np.array([1.0, 0.0]), np.array([0.0, 1.0])


def float_count(n, update, eta, schedule):
    """Count with the updates of `pu_lib.updates`, in floating point."""
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
def test_counts_agree_with_the_updates_of_the_library(name, options, eta, schedule):
    update = make_update(name, **options)
    for n in (1, 2, 7, 25):
        assert count(n, name, eta, schedule, **options) == float_count(n, update, eta, schedule)


def test_published_hazards_of_floating_point():
    assert counts([1, 2, 3, 4, 9], "di", "0.3") == [1, 2, 3, 4, 4]
    assert [count(1000, "pg-es", eta) for eta in ("0.5", "0.7", "1")] == [1586, 1892, 2491]
    assert [count(1000, "pg-es", eta, factor="drop") for eta in (2, 5)] == [2657, 686]


def test_stuck_policies_are_recognised_exactly():
    assert count(3, "pg-es", 2) == math.inf
    assert count(3, "pg-es", "8/3", p="3/2") == math.inf
    assert count(3, "pg-es", 2, p=1, factor="drop") == math.inf
    assert count(3, "pg-es", "2.0000001") < math.inf
    assert count(0, "pg-es", 2) == 0
    assert count(4, "di", 1, start=0, strict=True) == math.inf


def test_nothing_learnt_is_nothing_to_undo():
    for update in ("pg-sm", "pg-es", "di", "ce", "mce"):
        for schedule in ("constant", "inverse-sqrt"):
            assert count(0, update, "0.4", schedule) == 0
            assert count(0, update, "0.4", schedule, strict=True) == 1


def test_exact_ties_of_di():
    # at the wall after 3 steps; one step of 2 / sqrt(4) = 1 leads exactly to the start
    assert count(3, "di", 2, "inverse-sqrt") == 1
    assert count(3, "di", 2, "inverse-sqrt", strict=True) == 2
    assert count(9, "di", "1/4") == 4
    assert count(9, "di", "1/4", strict=True) == 5


def test_counts_of_several_n_are_the_single_counts():
    ns = [7, 0, 3, 7]
    assert counts(ns, "ce", "0.2") == [count(n, "ce", "0.2") for n in ns]


def test_a_path_ends_where_the_count_says():
    for update in ("pg-sm", "pg-es", "di", "ce"):
        back = count(12, update, "0.3", "inverse-sqrt")
        values = path(12, back, update, "0.3", "inverse-sqrt")
        assert values[-1] <= 0.5 + 1e-12 < values[-2]


@pytest.mark.parametrize("schedule", ["constant", "inverse-sqrt"])
@pytest.mark.parametrize("update", ["pg-sm", "pg-es", "di", "ce"])
def test_a_thousand_updates_take_less_than_two_seconds(update, schedule):
    before = time.process_time()
    count(1000, update, "0.7", schedule)
    assert time.process_time() - before < 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": -1}, "n must be an integer, at least 0"),
        ({"n": 1, "eta": 0}, "eta must be positive"),
        ({"n": 1, "eta": "x"}, "eta must be an integer, a fraction"),
        ({"n": 1, "update": "sarsa"}, "update must be one of pg-sm"),
        ({"n": 1, "schedule": "linear"}, "schedule must be one of"),
        ({"n": 1, "factor": "halve"}, "factor must be one of"),
        ({"n": 1, "p": "0.5"}, "p must be at least 1"),
        ({"n": 1, "start": 1}, r"must lie in \(0, 1\)"),
        ({"n": 1, "start": 2, "update": "di"}, r"must lie in \[0, 1\]"),
    ],
)
def test_errors_are_sentences(arguments, words):
    with pytest.raises(ValueError, match=words):
        count(**arguments)


def test_a_count_out_of_reach_is_refused():
    with pytest.raises(RuntimeError, match="not recovered after 1000"):
        count(1, "pg-sm", 100, max_steps=1000)


def test_an_undecided_tie_is_not_guessed(monkeypatch):
    monkeypatch.setattr(un.Setting, "first_step_kills", lambda self: False)
    monkeypatch.setattr(un, "certified", lambda compute: compute())
    with pytest.raises(Undecided):
        count(3, "pg-es", "8/3", p="3/2")


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (checks.check_intro, {"claimed": lambda n: n + 1}),
        (checks.check_theorem_4_i, {"links": {"convex": lambda x: (1 + x) / 10}}),
        (checks.check_theorem_4_i_softmax, {"extra": 2}),
        (checks.check_theorem_4_i_softmax, {"extra": 0, "starts": ("1/20",)}),
        (checks.check_theorem_4_i_escort, {"extra": 2}),
        (checks.check_theorem_4_i_escort, {"exponents": ("1.5",)}),
        (checks.check_theorem_4_i_escort, {"exponents": (2,), "factor": "drop"}),
        (checks.check_escort_dropped, {"sign_of_limit": -1}),
        (checks.check_theorem_4_ii, {"claimed": lambda n, eta, x: min(n, math.floor(1 / eta))}),
        (checks.check_theorem_4_ii, {"claimed": lambda n, eta, x: un.bound_di(n, eta)}),
        (checks.check_theorem_4_iii, {"update": "pg-sm"}),
        (checks.check_theorem_4_iii, {"bound": lambda n, eta: math.log1p(2 * eta * n) / (2 * eta)}),
        (checks.check_theorem_5_i, {"bound": lambda n: 3 * n}),
        (checks.check_theorem_5_i, {"update": "ce"}),
        (checks.check_theorem_5_i_escort, {"exponents": ("1.5",)}),
        (checks.check_theorem_5_ii, {"bound": lambda n, eta: 2 * n + 1}),
        (checks.check_theorem_5_iii, {"bound": lambda n, eta: 4 + math.sqrt(n)}),
        (checks.check_lemma_11, {"bound": lambda n, c: math.log1p(c * n)}),
        (checks.check_lemma_12, {"bound": lambda n, c: math.log1p(2 * c * math.sqrt(n))}),
    ],
)
def test_checks_catch_what_is_wrong(check, broken):
    verdict = check(**broken)
    assert verdict.status == "false as stated"
    assert verdict.margin < 0
    assert "also as corrected" in verdict.summary


def test_lemma_11_survives_a_dip_that_is_no_dip():
    assert checks.check_lemma_11(dip=0.5).status == "holds"


def test_the_comparison_of_travel_times_fails_for_a_wrong_clock(monkeypatch):
    # a clock that runs at constant speed: forward steps then cover no more than backward ones
    monkeypatch.setattr(un, "_travel_clock", lambda update: lambda walker: 2 * float(walker.y))
    assert checks.check_comparison(((20, "0.3", "pg-sm", "constant"),)).margin < 0


def test_more_actions_reduce_to_two_with_another_start():
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
