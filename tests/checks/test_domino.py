"""The recursion is the simulation, the bounds hold, and every check can fail."""

import math
import time
from fractions import Fraction

import pytest

from pu_lib.checks import domino as checks
from pu_lib.theory import domino as do
from pu_lib.theory.domino import domino, recursion, simulate


def test_known_counts():
    assert domino(3, "di", "0.5") == 6
    assert [domino(h, "pg-sm", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert domino(7, "pg-es", 5, factor="drop") == 60
    assert domino(5, "pg-es", 1, p="3/2") == 15
    assert domino(4, "pg-es", 2) == math.inf
    assert domino(1, "pg-es", 2) == 1
    assert simulate(4, "pg-es", 2) == recursion(4, "pg-es", 2) == [math.inf] * 3 + [1]


def test_the_board_ends_when_the_first_state_flips():
    times, history = do.board(4, "ce", "0.5")
    assert times == simulate(4, "ce", "0.5")
    assert len(history) == times[0] + 1
    assert history[-1][0] > 0.5 >= history[-2][0]


@pytest.mark.parametrize("update", ["pg-sm", "di", "ce"])
def test_twelve_states_take_less_than_five_seconds(update):
    before = time.process_time()
    domino(12, update, "0.7")
    assert time.process_time() - before < 5


@pytest.mark.parametrize("states", [0, -1, 1.5])
def test_errors_are_sentences(states):
    with pytest.raises(ValueError, match="states must be an integer, at least 1"):
        domino(states)


def test_a_setting_out_of_reach_is_refused():
    with pytest.raises(RuntimeError, match="not solved after 10 steps"):
        simulate(6, max_steps=10)


@pytest.mark.parametrize(
    ("check", "broken"),
    [
        (checks.check_recursion, {"strict": False}),
        (checks.check_theorem_6_i, {"bound": lambda h: 2**h}),
        (checks.check_theorem_6_i, {"update": "ce"}),
        (checks.check_theorem_6_i_escort, {"factor": "drop"}),
        (checks.check_theorem_6_ii, {"bound": do.bound_di}),
        (checks.check_theorem_6_iii, {"update": "pg-sm"}),
        (checks.check_theorem_6_iii, {"bound": lambda h, eta: float(h)}),
        (checks.check_lemma_13, {"first": 1}),
        (checks.check_lemma_13, {"bound": lambda n, eta: 1 + 2 * n}),
        (checks.check_amplitude, {"start": Fraction(1, 3)}),
    ],
)
def test_checks_catch_what_is_wrong(check, broken):
    verdict = check(**broken)
    assert verdict.status == "false as stated"
    assert verdict.margin < 0
    assert "also as corrected" in verdict.summary
