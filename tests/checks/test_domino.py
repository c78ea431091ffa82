"""The recursion is the simulation; quantities, bounds and checks have known answers."""

import math
import time
from fractions import Fraction

import pytest
from flint import arb

from pu_lib.chapters.domino import checks
from pu_lib.chapters.domino import quantities as do
from pu_lib.chapters.domino.quantities import domino, linked_recursion, recursion, simulate
from pu_lib.chapters.unlearning.counting import UNIFORM
from pu_lib.claims import Check, Recorder, Tally
from pu_lib.experiments.results import FIXED_RATES
from pu_lib.two_action_dynamics import OutOfReach
from pu_lib.updates import PAPER, SoftmaxPolicyGradient


def compared(check: Check, **arguments: object) -> dict[tuple[str, bool], Tally]:
    """Return what a check compares, by quantity and whether it is as printed."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    return {(tally.quantity, tally.as_printed): tally for tally in recorder.tallies.values()}


def test_known_counts():
    assert domino(3, "di", "0.5") == 6
    assert [domino(h, "pg-sm", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert domino(7, "pg-es", 5, factor="drop") == 60
    assert domino(5, "pg-es", 1, p="3/2") == 15
    assert domino(4, "pg-es", 2) == math.inf
    assert domino(1, "pg-es", 2) == 1
    assert simulate(4, "pg-es", 2) == recursion(4, "pg-es", 2) == [math.inf] * 3 + [1]


def test_the_recursion_refuses_starts_of_which_it_is_not_true():
    assert simulate(2, "pg-es", 5, start="1/10") == [6, 2]  # the first flip comes back
    with pytest.raises(ValueError, match="a state of pg-es may flip back"):
        recursion(2, "pg-es", 5, start="1/10")
    for start in (0, 1):
        with pytest.raises(ValueError, match=rf"inside \(0, 1\), got {start}"):
            recursion(2, "di", "1/3", start=start)


def test_the_board_ends_when_the_first_state_flips():
    times, probabilities = do.history(4, "ce", "0.5")
    assert times == simulate(4, "ce", "0.5")
    assert len(probabilities) == times[0] + 1
    assert probabilities[-1][0] > 0.5 >= probabilities[-2][0]


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
    with pytest.raises(OutOfReach, match="not solved after 10 steps"):
        simulate(6, max_steps=10)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((10**9, "pg-sm"), r"at least 2\^1000000000 - 1 steps"),
        ((30, "pg-es"), r"at least 2\^30 - 1 steps"),
        ((8, "pg-sm", 100), r"at least \d{20,} steps"),
        ((10**9, "ce"), r"at least 1000000000 and at most 4\.62\d+e\+10 steps"),
        ((10**9, "pg-es", 1, "3/2"), "at least 1000000000 steps"),
    ],
)
def test_a_setting_out_of_reach_ends_at_once_with_what_is_proved(arguments, words):
    before = time.process_time()
    with pytest.raises(OutOfReach, match=words):
        domino(*arguments)
    assert time.process_time() - before < 5


@pytest.mark.parametrize("update", ["di", "ce", "mce"])
def test_with_large_weights_each_state_turns_one_step_after_the_next(update):
    assert recursion(5, update, 10) == [5, 4, 3, 2, 1]
    assert domino(5, update, 10, max_steps=5) == 5
    with pytest.raises(OutOfReach, match="to solve 5 states; at most 4 are simulated"):
        domino(5, update, 10, max_steps=4)


@pytest.mark.parametrize("states", [1, 2, 5, 6])
def test_what_doubles_at_least_is_counted_up_to_the_most_steps(states):
    """With short steps PG-ES takes 2^h - 1."""
    least = 2**states - 1
    assert domino(states, "pg-es", "0.01", max_steps=least) == least
    for fewer in (least - 1, 0):
        with pytest.raises(OutOfReach, match=rf"2\^{states} - 1 .*at most {fewer} are counted"):
            domino(states, "pg-es", "0.01", max_steps=fewer)


def test_many_states_that_are_all_walked_share_their_steps():
    assert simulate(41, "ce", 100, max_steps=85)[0] == 41
    with pytest.raises(OutOfReach, match="at least 41 steps with 41 states; at most 40 are"):
        simulate(41, "ce", 100, max_steps=83)
    before = time.process_time()
    with pytest.raises(OutOfReach, match="with 1000000000000 states"):
        domino(10**12, "pg-es", 1, "3/2", schedule="inverse-sqrt")
    assert time.process_time() - before < 5


def test_theorems_answer_what_is_too_long_to_walk(monkeypatch):
    assert domino(10**9, "di", "0.3") == 3_999_999_995
    assert domino(10**9, "di", "0.3") == recursion(20, "di", "0.3")[0] + 4 * (10**9 - 20)
    # above 50 000 steps the recoveries of PG-SM are enclosed in blocks
    blocks = domino(18, "pg-sm", "0.5")
    monkeypatch.setattr(do, "MAX_QUICK_STEPS", 10**9)
    assert blocks == domino(18, "pg-sm", "0.5") > 2**18


def test_a_recursion_in_floats_ends_where_ties_would_decide():
    """With constant weights NPG doubles and adds one, whatever the weight."""
    assert recursion(4, "npg", "1e-6") == [15, 7, 3, 1]
    with pytest.raises(OutOfReach, match="npg moves the policy by too little"):
        recursion(4, "npg", "1e-13")


@pytest.mark.parametrize("states", [0, 2.5])
def test_a_chain_of_a_link_has_states(states):
    with pytest.raises(ValueError, match="states must be an integer"):
        linked_recursion(states, 1, UNIFORM["uniform"])


class Lazy(SoftmaxPolicyGradient):
    """The softmax policy gradient under another name, with its own step."""

    name = "lazy"


def test_any_other_update_is_solved_in_floats_by_its_own_step():
    for states, eta in ((1, "0.5"), (4, "0.5"), (6, "2")):
        assert domino(states, Lazy(), eta) == domino(states, "pg-sm", eta)
    times, probabilities = do.history(3, Lazy(), "0.5")
    assert len(probabilities) == times[0] + 1


# Known answers


def test_di_worked_out_by_hand():
    # weight 1/2: at the wall after two steps, past the start one step after being back
    assert [domino(h, "di", "1/2") for h in range(1, 6)] == [1, 3, 6, 9, 12]
    assert simulate(5, "di", "1/2") == do.direct_flip_times(5, Fraction(1, 2)) == [12, 9, 6, 3, 1]
    # weight 1, the default: at the wall after one step, back after two, past the start after three
    assert simulate(3, "di") == [5, 3, 1]
    assert [do.direct_flip_time(h, Fraction(1, 2)) for h in range(1, 6)] == [1, 3, 6, 9, 12]
    assert do.di_bound_printed(3, Fraction(1, 2)) == 5
    assert do.di_bound(3, Fraction(1, 2)) == 7


@pytest.mark.parametrize("eta", ["0.6", "1", "5"])
def test_the_bound_of_di_is_met_where_the_wall_is_one_step_away(eta):
    for h in (1, 2, 7):
        assert simulate(h, "di", eta)[0] == do.di_bound(h, Fraction(eta))


@pytest.mark.parametrize("eta", ["0.05", "0.3", "1/3"])
def test_the_slope_of_the_bound_of_di_is_that_of_the_count(eta):
    long, longer = (recursion(h, "di", eta)[0] for h in (30, 31))
    slope = do.di_bound(31, Fraction(eta)) - do.di_bound(30, Fraction(eta))
    assert longer - long == slope


def test_the_bound_of_policy_gradients_is_met():
    assert [domino(h, "pg-sm", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert [domino(h, "pg-es", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert linked_recursion(5, "1/1024", UNIFORM["uniform"]) == [31, 15, 7, 3, 1]
    assert [do.pg_bound(h) for h in (1, 2, 5)] == [1, 3, 31]
    assert [do.pg_bound_printed(h) for h in (1, 2, 5)] == [1, 2, 16]


def test_the_other_bounds_worked_out_by_hand():
    assert do.ce_bound(0, 2.0) == 2.25
    assert do.ce_bound(2, 1.0) == pytest.approx(10.5 + 4 * (math.log(8) - 1))
    assert do.ce_bound_printed(2, 1.0) == pytest.approx(64 * math.e**11 * math.log(2))
    assert float(do.ce_bound_printed(arb(2), arb(1)).log()) == pytest.approx(
        math.log(do.ce_bound_printed(2, 1.0))
    )
    assert do.ce_bound_printed(1, 1.0) == 0
    assert do.largest_sequence(2, 0.5) == pytest.approx(
        [1, 3 + 2 * math.log(2), 5 + 2 * math.log(2) + 2 * math.log(4 + 2 * math.log(2))]
    )
    assert do.amplitude(4) == 8
    assert do.amplitude(3, Fraction(1, 3)) == Fraction(9, 4)


# Checks


def test_a_check_reports_the_number_worked_out_by_hand():
    # at weight 1 each state takes two steps more than the next one; the printed bound allows one
    finding = checks.direct_is_linear.run()
    assert (finding.margin, finding.instance) == (-20, {"eta": "1", "states": 21})
    assert (finding.figures["steps"], finding.figures["bound"]) == (1 + 2 * 20, 1 + 20)


def test_chains_with_rewards_along_the_way_are_no_cheaper():
    # X_k - r_k halves at every state, whatever is paid for moving on
    along = [Fraction(k * k % 7 - 3) for k in range(6)]
    worth, leaving = along[-1], along[-1] - 2**5
    for k in range(4, -1, -1):
        leaving, worth = along[k] + (leaving + worth) / 2, along[k] + worth
    assert worth - leaving == 1


def test_two_states_walk_at_once_and_a_long_chain_flips_from_its_end():
    # with one state left to walk, 1 beats 0.8 from the first step on
    assert do.chain_flips(1, "ce", 1.0) == [1]
    times = do.chain_flips(9, "di", 1.0)
    assert times == sorted(times, reverse=True)
    assert (times[0], times[-1]) == (11, 1)
    assert do.chain_flips(9, "di", 1.0, max_steps=11) == times
    with pytest.raises(ValueError, match="after 3"):
        do.chain_flips(9, "di", 1.0, max_steps=3)


def test_a_state_of_the_chain_prefers_to_walk_before_the_next_one_does():
    # jumping 0.8 g^2, g = 0.99; walking g (0.6 0.8 g^2 + 0.4 g)
    walk = 0.99 * (0.6 * 0.8 * 0.99**2 + 0.4 * 0.99)
    assert checks.states_flip_in_order.run().margin == pytest.approx(0.8 * 0.99**2 - walk)


@pytest.mark.parametrize("update", PAPER)
def test_dominoes_with_growing_weights_fall_as_a_simulation_says(update):
    found = [domino(h, update, "0.4", schedule="geometric:1.2") for h in (1, 2, 4)]
    assert found == [simulate(h, update, "0.4", schedule="geometric:1.2")[0] for h in (1, 2, 4)]


@pytest.mark.parametrize(("update", "p"), [("pg-sm", 2), ("di", 2), ("ce", 2), ("pg-es", 3)])
def test_what_the_recursion_is_proved_for_is_not_simulated(monkeypatch, update, p):
    monkeypatch.setattr(do, "simulate", lambda *_, **__: pytest.fail("it was simulated"))
    assert domino(3, update, "0.4", p=p) == recursion(3, update, "0.4", p)[0]


@pytest.mark.parametrize(("p", "schedule"), [("3/2", "constant"), (2, "inverse-sqrt")])
def test_what_it_is_not_proved_for_is(monkeypatch, p, schedule):
    monkeypatch.setattr(do, "recursion", lambda *_, **__: pytest.fail("it was not simulated"))
    assert domino(2, "pg-es", "0.4", p=p, schedule=schedule) >= 2


def test_the_bound_of_ce_is_asked_from_one_state_on():
    # one step is needed; the bound is 2.5 at weight 1, and nothing is printed
    found = compared(checks.cross_entropy_is_almost_linear, etas=("1",), states=(1,))
    assert list(found) == [("steps", False)]
    assert found["steps", False].worst[0].slack == 2.5 - 1


def test_the_bound_after_the_constants_of_lemma_13_by_hand():
    for eta, n in ((1.0, 8), (0.5, 100)):
        found = compared(checks.lemma_13_proof_loses_a_factor, etas=(eta,))
        slacks = {
            key: next(one.slack for one in tally.worst if one.instance["n"] == n)
            for key, tally in found.items()
        }
        eps, largest = 1 / math.log(n), do.largest_sequence(n, eta)[n]
        power = (1 + 2 * eta) ** (1 - eps) + 2 * math.exp(2 * eta) * n / (eta * eps)
        bound = math.log(power) / (1 - eps) - math.log(2 * eta)
        slope = "slope of y through z, over its own"
        assert slacks["log X_n", False] == pytest.approx(bound - math.log(largest))
        assert slacks[slope, False] == pytest.approx(1e-9, abs=1e-12)
        assert slacks[slope, True] == pytest.approx(1e-9 - abs(1 / eta - 1), abs=1e-12)


def test_the_slope_of_a_sequence_whose_z_is_known():
    """From y = 4 at eta = 1 z is 9, and where z' = 5 z^(1/2) = 15 y' is half of it."""
    assert checks._slope_through_z(4.0, 1.0, 0.5, 5.0) == pytest.approx(7.5, rel=1e-14)


def test_dominoes_fall_at_the_rates_that_the_experiments_fix():
    assert checks.PAPER_RATES == FIXED_RATES


def test_a_long_chain_of_di_is_answered_by_its_theorem(monkeypatch):
    monkeypatch.setattr(do, "MAX_QUICK_STEPS", 10)
    monkeypatch.setattr(do, "recursion", lambda *_, **__: pytest.fail("it was walked"))
    assert domino(8, "di", "0.3") == do.direct_flip_time(8, Fraction("0.3")) > 10


def test_the_bound_of_pg_es_is_met_at_small_weights_up_to_seven_states():
    steps = {h: domino(h, "pg-es", "0.001") for h in (1, 2, 3, 5, 7)}
    assert steps == {1: 1, 2: 3, 3: 7, 5: 31, 7: 127}


@pytest.mark.parametrize("more", [1, -1])
def test_an_amplitude_that_is_off_by_one_leaves_no_unit_gap(
    more: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Halved at each state, a reward R leaves R / 2^(h-1) between it and the first threshold."""

    def off(h: int, start: Fraction = Fraction(1, 2)) -> int:
        return 2 ** (h - 1) + more

    monkeypatch.setattr(checks, "amplitude", off)
    monkeypatch.setattr(checks, "pg_bound_printed", off)
    found = compared(checks.rewards_are_exponential)
    gap = found["gap at s_1", False]
    assert (found["amplitude", False].failures, gap.failures) == (0, 20)
    assert [one.slack for one in gap.worst] == [-(0.5 ** (h - 1)) for h in range(1, 7)]


@pytest.mark.parametrize("late", [True, False])
def test_flip_times_that_differ_are_counted(late: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of the two recursions, the strict one or the other, is a step late at every state."""
    simulated = {1: [1], 2: [3, 1], 3: [7, 3, 1], 6: [63, 31, 15, 7, 3, 1]}

    def counted(states: int, *, strict: bool, **_: object) -> list[int]:
        return [time + (strict == late) for time in simulated[states]]

    monkeypatch.setattr(checks, "ETAS", ("1",))
    monkeypatch.setattr(checks, "simulate", lambda states, **_: simulated[states])
    monkeypatch.setattr(checks, "recursion", counted)
    found = compared(checks.recursion_gives_the_flip_times, updates=checks.UPDATES[3:4])
    wrong, right = found["flip times", not late], found["flip times", late]
    assert [one.slack for one in wrong.worst] == [-6, -3, -2, -1]
    assert [one.note for one in wrong.worst] == [
        {"n_1": n, "recursion": n + 1} for n in (63, 7, 3, 1)
    ]
    assert (right.comparisons, right.failures) == (4, 0)


@pytest.mark.parametrize("eta", ["1/8", "1/2", "1", "2"])
def test_the_domino_of_di_with_decaying_weights_is_counted(eta: str) -> None:
    """Beside a walk in floats of every state, whose ties are far beyond their rounding."""
    states, policy, flips, t = 4, [0.5] * 4, [0] * 4, 0
    while not flips[0]:
        t += 1
        flipped = [x < 0.5 - 1e-12 for x in policy]
        weight = float(Fraction(eta)) / math.sqrt(t) / 2
        ways = [*(-weight if after else weight for after in flipped[1:]), -weight]
        policy = [min(max(x + way, 0.0), 1.0) for x, way in zip(policy, ways, strict=True)]
        flips = [n or t * (x < 0.5 - 1e-12) for n, x in zip(flips, policy, strict=True)]
    assert recursion(states, "di", eta, schedule="inverse-sqrt") == flips
    assert domino(states, "di", eta, schedule="inverse-sqrt") == flips[0]
    with pytest.raises(ValueError, match="use recursion"):
        simulate(states, "di", eta, schedule="inverse-sqrt")
    with pytest.raises(OutOfReach, match="updates of di may take more than 100 steps"):
        domino(states + 4, "di", "1/8", schedule="inverse-sqrt", max_steps=100)


@pytest.mark.parametrize("states", [2, 3, 4])
def test_a_state_that_is_stuck_does_not_stop_the_others(states: int) -> None:
    """With these growing weights the second step freezes a state that waits for three."""
    arguments = {"eta": 1, "schedule": "geometric:25/18"}
    found = simulate(states, "pg-es", **arguments)
    assert found == [math.inf] * (states - 2) + [3, 1]
    assert found == recursion(states, "pg-es", **arguments)
