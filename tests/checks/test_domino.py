"""Test flip times, bounds and checks of the domino chain against hand solutions and simulations."""

import math
from fractions import Fraction

import pytest
from flint import arb

from pu_lib.chapters.domino import checks
from pu_lib.chapters.domino import quantities as do
from pu_lib.chapters.domino.quantities import domino, linked_recursion, recursion, simulate
from pu_lib.chapters.unlearning.counting import UNIFORM
from pu_lib.claims import Check, Recorder, Tally
from pu_lib.experiments.results import FIXED_STEP_SIZES
from pu_lib.two_action_dynamics import OutOfReach
from pu_lib.updates import PAPER, SoftmaxPolicyGradient


def compared(check: Check, **arguments: object) -> dict[tuple[str, bool], Tally]:
    """Return the tallies of a check by quantity and `as_printed`."""
    recorder = Recorder()
    check.function(recorder, **arguments)
    return {(tally.quantity, tally.as_printed): tally for tally in recorder.tallies.values()}


def test_counts_match_hand_solution():
    assert domino(3, "di", "0.5") == 6
    assert [domino(h, "pg-sm", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert domino(7, "pg-es", 5, factor="drop") == 60
    assert domino(5, "pg-es", 1, p="3/2") == 15
    assert domino(4, "pg-es", 2) == math.inf
    assert domino(1, "pg-es", 2) == 1
    assert simulate(4, "pg-es", 2) == recursion(4, "pg-es", 2) == [math.inf] * 3 + [1]


def test_recursion_rejects_initial_policies_that_may_flip_back():
    assert simulate(2, "pg-es", 5, start="1/10") == [6, 2]  # the first flip is reversed
    with pytest.raises(ValueError, match="a state of pg-es may flip back"):
        recursion(2, "pg-es", 5, start="1/10")
    for start in (0, 1):
        with pytest.raises(ValueError, match=rf"inside \(0, 1\), got {start}"):
            recursion(2, "di", "1/3", start=start)


def test_history_ends_when_the_first_state_flips():
    times, probabilities = do.history(4, "ce", "0.5")
    assert times == simulate(4, "ce", "0.5")
    assert len(probabilities) == times[0] + 1
    assert probabilities[-1][0] > 0.5 >= probabilities[-2][0]


@pytest.mark.parametrize("states", [0, -1, 1.5])
def test_invalid_number_of_states_raises(states):
    with pytest.raises(ValueError, match="states: expected an integer from 1"):
        domino(states)


def test_simulation_beyond_max_steps_raises():
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
def test_domino_above_the_step_limit_raises_and_gives_proved_bounds(arguments, words):
    with pytest.raises(OutOfReach, match=words):
        domino(*arguments)


@pytest.mark.parametrize("update", ["di", "ce", "mce"])
def test_large_weights_flip_one_state_per_step(update):
    assert recursion(5, update, 10) == [5, 4, 3, 2, 1]
    assert domino(5, update, 10, max_steps=5) == 5
    with pytest.raises(OutOfReach, match="to solve 5 states; at most 4 are simulated"):
        domino(5, update, 10, max_steps=4)


@pytest.mark.parametrize("states", [1, 2, 5, 6])
def test_escort_domino_with_short_steps_takes_2_to_the_h_minus_1_steps(states):
    """PG-ES takes 2^h - 1 steps if its steps are short."""
    least = 2**states - 1
    assert domino(states, "pg-es", "0.01", max_steps=least) == least
    for fewer in (least - 1, 0):
        with pytest.raises(OutOfReach, match=rf"2\^{states} - 1 .*at most {fewer} are counted"):
            domino(states, "pg-es", "0.01", max_steps=fewer)


def test_step_limit_depends_on_the_number_of_states():
    assert simulate(41, "ce", 100, max_steps=85)[0] == 41
    with pytest.raises(OutOfReach, match="at least 41 steps with 41 states; at most 40 are"):
        simulate(41, "ce", 100, max_steps=83)
    with pytest.raises(OutOfReach, match="with 1000000000000 states"):
        domino(10**12, "pg-es", 1, "3/2", schedule="inverse-sqrt")


def test_theorems_give_flip_times_of_many_states(monkeypatch):
    assert domino(10**9, "di", "0.3") == 3_999_999_995
    assert domino(10**9, "di", "0.3") == recursion(20, "di", "0.3")[0] + 4 * (10**9 - 20)
    # The recoveries of PG-SM are enclosed in blocks above 50 000 steps.
    blocks = domino(18, "pg-sm", "0.5")
    monkeypatch.setattr(do, "MAX_QUICK_STEPS", 10**9)
    assert blocks == domino(18, "pg-sm", "0.5") > 2**18


def test_float_recursion_raises_below_the_tolerance():
    """Each flip time of NPG is twice the next one plus 1 for every constant weight."""
    assert recursion(4, "npg", "1e-6") == [15, 7, 3, 1]
    with pytest.raises(OutOfReach, match="npg moves the policy by too little"):
        recursion(4, "npg", "1e-13")


@pytest.mark.parametrize("states", [0, 2.5])
def test_linked_recursion_rejects_invalid_states(states):
    with pytest.raises(ValueError, match="states: expected an integer"):
        linked_recursion(states, 1, UNIFORM["uniform"])


class Lazy(SoftmaxPolicyGradient):
    """The softmax policy gradient under a different name."""

    name = "lazy"


def test_user_updates_are_solved_in_floats():
    for states, eta in ((1, "0.5"), (4, "0.5"), (6, "2")):
        assert domino(states, Lazy(), eta) == domino(states, "pg-sm", eta)
    times, probabilities = do.history(3, Lazy(), "0.5")
    assert len(probabilities) == times[0] + 1


# Hand solutions


def test_direct_flip_times_match_hand_solution():
    # With weight 1/2, a probability is 0 after two steps, 1/2 after four and above 1/2 after five.
    assert [domino(h, "di", "1/2") for h in range(1, 6)] == [1, 3, 6, 9, 12]
    assert simulate(5, "di", "1/2") == do.direct_flip_times(5, Fraction(1, 2)) == [12, 9, 6, 3, 1]
    # With the default weight 1, it is 0 after one step, 1/2 after two and above 1/2 after three.
    assert simulate(3, "di") == [5, 3, 1]
    assert [do.direct_flip_time(h, Fraction(1, 2)) for h in range(1, 6)] == [1, 3, 6, 9, 12]
    assert do.di_bound_printed(3, Fraction(1, 2)) == 5
    assert do.di_bound(3, Fraction(1, 2)) == 7


@pytest.mark.parametrize("eta", ["0.6", "1", "5"])
def test_direct_bound_holds_with_equality_at_large_weights(eta):
    for h in (1, 2, 7):
        assert simulate(h, "di", eta)[0] == do.di_bound(h, Fraction(eta))


@pytest.mark.parametrize("eta", ["0.05", "0.3", "1/3"])
def test_direct_bound_has_the_slope_of_the_count(eta):
    long, longer = (recursion(h, "di", eta)[0] for h in (30, 31))
    slope = do.di_bound(31, Fraction(eta)) - do.di_bound(30, Fraction(eta))
    assert longer - long == slope


def test_policy_gradient_bound_holds_with_equality():
    assert [domino(h, "pg-sm", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert [domino(h, "pg-es", "0.001") for h in (1, 2, 5)] == [1, 3, 31]
    assert linked_recursion(5, "1/1024", UNIFORM["uniform"]) == [31, 15, 7, 3, 1]
    assert [do.pg_bound(h) for h in (1, 2, 5)] == [1, 3, 31]
    assert [do.pg_bound_printed(h) for h in (1, 2, 5)] == [1, 2, 16]


def test_bounds_and_sequences_match_hand_solution():
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


def test_direct_check_matches_hand_solution():
    # With weight 1, each state takes two steps more than the next; the printed bound allows one.
    finding = checks.direct_is_linear.run()
    assert (finding.margin, finding.instance) == (-20, {"eta": "1", "states": 21})
    assert (finding.figures["steps"], finding.figures["bound"]) == (1 + 2 * 20, 1 + 20)


def test_intermediate_rewards_do_not_lower_the_amplitude():
    # X_k - r_k halves at every state for all intermediate rewards.
    along = [Fraction(k * k % 7 - 3) for k in range(6)]
    worth, leaving = along[-1], along[-1] - 2**5
    for k in range(4, -1, -1):
        leaving, worth = along[k] + (leaving + worth) / 2, along[k] + worth
    assert worth - leaving == 1


def test_chain_flips_match_hand_solution():
    # If one state is left, walking has the value 1 and jumping 0.8 from the first step.
    assert do.chain_flips(1, "ce", 1.0) == [1]
    times = do.chain_flips(9, "di", 1.0)
    assert times == sorted(times, reverse=True)
    assert (times[0], times[-1]) == (11, 1)
    assert do.chain_flips(9, "di", 1.0, max_steps=11) == times
    with pytest.raises(ValueError, match="after 3"):
        do.chain_flips(9, "di", 1.0, max_steps=3)


def test_chain_preference_matches_hand_solution():
    # With g = 0.99, jumping has the value 0.8 g^2, and walking g (0.6 * 0.8 g^2 + 0.4 g).
    walk = 0.99 * (0.6 * 0.8 * 0.99**2 + 0.4 * 0.99)
    assert checks.states_flip_in_order.run().margin == pytest.approx(0.8 * 0.99**2 - walk)


@pytest.mark.parametrize("update", PAPER)
def test_geometric_weights_match_the_simulation(update):
    steps = [domino(h, update, "0.4", schedule="geometric:1.2") for h in (1, 2, 4)]
    assert steps == [simulate(h, update, "0.4", schedule="geometric:1.2")[0] for h in (1, 2, 4)]


@pytest.mark.parametrize(("update", "p"), [("pg-sm", 2), ("di", 2), ("ce", 2), ("pg-es", 3)])
def test_recursion_is_used_if_it_is_proved(monkeypatch, update, p):
    monkeypatch.setattr(do, "simulate", lambda *_, **__: pytest.fail("it was simulated"))
    assert domino(3, update, "0.4", p=p) == recursion(3, update, "0.4", p)[0]


@pytest.mark.parametrize(("p", "schedule"), [("3/2", "constant"), (2, "inverse-sqrt")])
def test_simulation_is_used_if_the_recursion_is_not_proved(monkeypatch, p, schedule):
    monkeypatch.setattr(do, "recursion", lambda *_, **__: pytest.fail("it was not simulated"))
    assert domino(2, "pg-es", "0.4", p=p, schedule=schedule) >= 2


def test_steps_of_the_proof_of_theorem_6_match_hand_solution():
    """With a uniform density n'_k is n_{k+1} + 1; DI of rate 1 flips a state every two steps.

    CE of rate 1 from 0.12 takes one step up and four back.
    """
    doubling = compared(
        checks.each_state_at_least_doubles_the_time, links=UNIFORM, etas=("1/1024",)
    )
    assert [doubling[name, False].worst[0].slack for name in ("n'_k", "n_k")] == [1, 1]
    direct = compared(checks.direct_takes_the_steps_of_the_proof)
    assert direct["n_k", True].worst[0].slack == (1 + 8) - (1 + 8 * 2)
    assert direct["n'_k", True].worst[0].slack == 1 - 2
    assert direct["n'_k", False].worst[0].slack == 0
    start = delta = math.log(0.12 / 0.88)
    delta, back = delta + 2 * 0.88, 0
    while delta >= start:
        delta, back = delta - 2 / (1 + math.exp(-delta)), back + 1
    bound = 2 + math.log(1 + 2 * 1)
    worst = compared(checks.cross_entropy_takes_the_steps_of_the_proof)["n'_k", True].worst[0]
    assert worst.slack == pytest.approx(bound - back)
    assert (back, worst.instance["k"]) == (4, 5)


def test_lemma_13_check_matches_hand_solution():
    for eta, n in ((1.0, 8), (0.5, 100)):
        tallies = compared(checks.lemma_13_proof_loses_a_factor, etas=(eta,))
        slacks = {
            key: next(one.slack for one in tally.worst if one.instance["n"] == n)
            for key, tally in tallies.items()
        }
        eps, largest = 1 / math.log(n), do.largest_sequence(n, eta)[n]
        power = (1 + 2 * eta) ** (1 - eps) + 2 * math.exp(2 * eta) * n / (eta * eps)
        bound = math.log(power) / (1 - eps) - math.log(2 * eta)
        slope = "slope of y through z, over its own"
        assert slacks["log X_n", False] == pytest.approx(bound - math.log(largest))
        assert slacks[slope, False] == pytest.approx(1e-9, abs=1e-12)
        assert slacks[slope, True] == pytest.approx(1e-9 - abs(1 / eta - 1), abs=1e-12)


def test_slope_through_z_matches_hand_solution():
    """If y = 4 and eta = 1, then z = 9, z' = 5 z^(1/2) = 15 and y' = z'/2."""
    assert checks._slope_through_z(4.0, 1.0, 0.5, 5.0) == pytest.approx(7.5, rel=1e-14)


def test_step_sizes_match_the_experiments():
    assert checks.PAPER_STEP_SIZES == FIXED_STEP_SIZES


def test_long_direct_domino_uses_the_theorem(monkeypatch):
    monkeypatch.setattr(do, "MAX_QUICK_STEPS", 10)
    monkeypatch.setattr(do, "recursion", lambda *_, **__: pytest.fail("it was walked"))
    assert domino(8, "di", "0.3") == do.direct_flip_time(8, Fraction("0.3")) > 10


@pytest.mark.parametrize("eta", ["1/8", "1/2", "1", "2"])
def test_direct_domino_with_decaying_weights_matches_floats(eta: str) -> None:
    """The flip times equal those of a simulation in floats without near ties."""
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
def test_fixed_point_of_one_state_does_not_stop_the_others(states: int) -> None:
    """The second step of these growing weights moves one state to a fixed point."""
    arguments = {"step_size": 1, "schedule": "geometric:25/18"}
    steps = simulate(states, "pg-es", **arguments)
    assert steps == [math.inf] * (states - 2) + [3, 1]
    assert steps == recursion(states, "pg-es", **arguments)


def test_rest_term_of_lemma_13_solved_by_hand() -> None:
    """The term is 3 log 2 + 5 + log 2 if log n = 2 and eta = 1, and log X_n is the printed sum."""
    assert do.rest_term(2.0, 1.0) == pytest.approx(4 * math.log(2) + 5)
    eta, log_n = 0.5, 3.0
    factor = 1 + 1 / (log_n - 1)
    inner = 3 * math.log(2) + 4 * eta - math.log(eta) + log_n + math.log(log_n)
    line = -math.log(eta) - math.log(2) + factor * inner
    short = -2 * math.log(eta) + 2 * math.log(2) + 4 * eta + log_n + math.log(log_n) + 1
    assert line == pytest.approx(short + do.rest_term(log_n, eta))
