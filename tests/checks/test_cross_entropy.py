"""Cross entropy: certificates that can fail, and known answers for what the checks compute."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb

from pu_lib.chapters.cross_entropy import checks, cycles
from pu_lib.chapters.cross_entropy import quantities as ce
from pu_lib.chapters.cross_entropy.cycles import (
    FOUR_STATES,
    THREE_STATES,
    CycleExample,
    NotCertifiedError,
    Phase,
    certify,
    simulate,
)
from pu_lib.chapters.random_search import quantities as search
from pu_lib.chapters.random_search.__main__ import main
from pu_lib.claims.recorder import Comparison, Recorder
from pu_lib.deterministic import DeterministicMDP
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES

# The process and its cycle


def test_the_cycle_repeats_in_floating_point() -> None:
    orbit = simulate(THREE_STATES, 2000)
    assert orbit.drift < 1e-13
    last = orbit.values[-8:, 0]
    assert last.min() == pytest.approx(-4.6944, abs=1e-4)
    assert last.max() == pytest.approx(9.7086, abs=1e-4)
    assert (
        orbit.greedy[-8:][np.arange(8), THREE_STATES.updated_states] == THREE_STATES.claimed_actions
    ).all()


def test_the_cycle_attracts_a_distant_start() -> None:
    orbit = simulate(THREE_STATES, 20_000, start=[[0.0, -15.0, 15.0], [-5.0, 5.0], [-5.0, 5.0]])
    near = simulate(THREE_STATES, 1)
    assert np.abs(orbit.theta - near.theta).max() < 2e-2


@pytest.mark.parametrize("update", ["ce", "mce"])
def test_the_compiled_process_is_the_library_s(update: str) -> None:
    example = _three_everywhere()
    weights = np.hstack([example.weights, np.zeros((8, 1))])
    start = [[1.0, 0.5, -1.0], [0.3, -0.3, -1.0], [0.0, 0.2, -1.0]]
    ours = simulate(example, 5, start=start, update=update)
    theirs = run(
        example.mdp(),
        UPDATES[update],
        40,
        weighting=lambda t, _: weights[t % 8],
        theta0=[*start, [0.0, 0.0, 0.0]],
    )
    np.testing.assert_allclose(ours.values, theirs.v[:-1, :-1], rtol=1e-9, atol=1e-9)


def _three_everywhere() -> CycleExample:
    """The three-state MDP with a third action where it has two."""
    return replace(
        THREE_STATES,
        rewards=((1, 0, 1), (2, -1, -3), (2, -1, -3)),
        successors=((0, 2, 1), (0, None, None), (None, 0, None)),
    )


def test_the_cycle_survives_a_common_number_of_actions() -> None:
    v, _ = ce.race(THREE_STATES, UPDATES["ce"], 200)
    assert v[-8:, 0].max() - v[-8:, 0].min() > 14.0


def test_unknown_updates_and_starts_are_refused() -> None:
    with pytest.raises(ValueError, match="update: the compiled process needs"):
        simulate(THREE_STATES, 1, update="di")
    with pytest.raises(ValueError, match="periods: expected an integer, at least 1"):
        simulate(THREE_STATES, 0)
    with pytest.raises(ValueError, match="start: expected 'cycle' or 'uniform'"):
        ce.race(THREE_STATES, UPDATES["ce"], 1, start="nowhere")


def test_optimal_values_are_exact_and_unique() -> None:
    policy, values = THREE_STATES.optimum()
    assert policy == (2, 0, 1)
    assert values == (Fraction(280, 19), Fraction(290, 19), Fraction(233, 19))
    best = THREE_STATES.mdp().optimal()
    np.testing.assert_allclose(best.v[:3], [float(v) for v in values])
    twin = replace(
        THREE_STATES,
        rewards=((1, 0, 1), (2, 2), (2, -1)),
        successors=((0, 2, 1), (0, 0), (None, 0)),
    )
    with pytest.raises(ValueError, match="expected one optimal policy"):
        twin.optimum()


# The certificates


def compared(recorder: Recorder) -> list[Comparison]:
    """Return the comparisons of a run that are kept, the worst of each tally first."""
    return [kept for tally in recorder.tallies.values() for kept in tally.worst]


def test_the_conjecture_s_table() -> None:
    finding = checks.cross_entropy_cycles.run()
    assert finding.status == "false as stated"
    assert finding.margin == pytest.approx(4.367231, abs=1e-6)
    assert finding.figures["distance at s_0"] == pytest.approx(5.028248, abs=1e-6)
    (tally,) = finding.tallies
    multipliers = {
        row.instance["least weight"]: row.note["largest multiplier"] for row in tally.worst
    }
    assert sorted(multipliers) == ["0", "1/10", "1/100", "1/5"]
    assert multipliers["0"] == pytest.approx(0.99977066, abs=1e-8)
    assert all(multiplier < 1 for multiplier in multipliers.values())


def test_the_constant_step_s_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is certified of the cycle takes long; the test of all claims compares it."""
    found = ce.certificate(THREE_STATES)
    monkeypatch.setattr(
        ce, "certificate", lambda example: replace(found, example=example, steps=example.period)
    )
    finding = checks.cross_entropy_cycles_at_a_constant_step.run()
    assert finding.status == "holds"
    assert finding.figures["period"] == 109_662


def test_one_cycle_that_does_not_attract_spoils_the_refutation() -> None:
    """All certificates have to attract, not any."""
    assert ce.certificate(THREE_STATES).attracting
    assert not ce.certificate(THREE_STATES.with_spread("2/5")).attracting
    for spreads in (("0", "2/5"), ("2/5", "0")):
        finding = replace(checks.cross_entropy_cycles, arguments={"spreads": spreads}).run()
        assert finding.status == "open"
        assert "does not attract" in finding.open_because


def test_a_state_that_is_never_updated_is_no_refutation(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = ce.certificate(THREE_STATES)
    frozen = replace(THREE_STATES, phases=THREE_STATES.phases[1:3])
    monkeypatch.setattr(ce, "certificate", lambda _: cycle)
    given = {"example": frozen, "spreads": ("0",)}
    finding = replace(checks.cross_entropy_cycles, arguments=given).run()
    assert finding.status == "open"
    assert "never updated" in finding.open_because


def test_a_cycle_that_may_reach_the_optimum_is_no_refutation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cycle = replace(ce.certificate(THREE_STATES), shortfall=(2.0, 0.0, 1.0))
    monkeypatch.setattr(ce, "certificate", lambda _: cycle)
    finding = checks.cross_entropy_cycles.run()
    assert finding.status == "open"
    assert "stay below the optimum" in finding.open_because


def test_the_nearest_of_several_cycles_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose one state is nearest to its optimum, however far its other states are."""
    cycle = ce.certificate(THREE_STATES)
    far = {"0": (3.0, 4.0, 5.0), "1/10": (2.0, 9.0, 9.0)}
    monkeypatch.setattr(
        ce, "certificate", lambda example: replace(cycle, shortfall=far[str(example.spread)])
    )
    finding = replace(checks.cross_entropy_cycles, arguments={"spreads": tuple(far)}).run()
    assert finding.margin == 2.0


def test_a_box_without_the_fixed_point_is_refused() -> None:
    """One update towards an action that stays greedy has no fixed point."""
    drifting = replace(
        THREE_STATES,
        phases=tuple(Phase(s, Fraction(1), a) for s, a in ((0, 2), (1, 0), (2, 1))),
        start=((0.0, 0.0, 5.0), (5.0, 0.0), (0.0, 5.0)),
    )
    with pytest.raises(NotCertifiedError):
        certify(drifting)


# What holds


def test_a_late_run_of_a_policy_that_never_moves() -> None:
    """One state, uniform between 1 and 0: half a unit short, and no movement."""
    ends = np.array([[-1, -1]])
    mdp = DeterministicMDP(np.array([[1.0, 0.0]]), ends, np.array([2]), 0.5)
    late = ce.late_run(mdp, np.zeros((1, 1)), np.zeros((1, 2)), 10)
    assert late.span.tolist() == [0.0]
    assert late.shortfall.tolist() == [0.5]


def test_an_attack_is_measured_in_what_a_largest_reward_for_ever_is_worth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Losses of 1 and 3 at discount 1/2: the unit is 6."""
    losses = DeterministicMDP(np.array([[-1.0, -3.0]]), np.array([[-1, -1]]), np.array([2]), 0.5)
    late = SimpleNamespace(shortfall=np.array([1.5]), span=np.array([3.0]))
    monkeypatch.setattr(ce, "late_run", lambda *_: late)
    compare = Recorder()
    checks._run_random_mdps(compare, lambda *_: losses, 0.5, n_mdps=1)
    (row,) = compared(compare)
    assert row.slack == pytest.approx(checks.LATE_GAP - 0.25)
    assert (row.instance, row.note) == ({"MDP": 0}, {"moving": 0.5})


def test_the_rounding_of_two_actions_by_hand() -> None:
    """The worst of all points: the difference of three actions outgrows what rounding allows."""
    rng = np.random.default_rng(0)
    theta, q = 5.0 * rng.standard_normal((50, 3)), rng.standard_normal((50, 3))
    weight = 10.0 ** rng.uniform(-3, 2, 50)
    steps = [UPDATES[name].step(theta, q, weight) for name in ("ce", "mce")]
    largest = np.abs(steps[0] - steps[1]).max()
    compare = Recorder()
    checks.ce_is_mce_for_two_actions.function(compare, n_actions=3, n_points=50)
    assert compared(compare)[0].slack == pytest.approx(-largest, rel=1e-9)


def test_the_least_window_by_hand() -> None:
    """Weights 1/2: a window is two steps, and takes (c + c/2)/2 of what it starts from."""
    probabilities = np.column_stack([np.zeros(11), *[2.0 ** -np.arange(11)] * 2])
    losses = checks._window_losses(np.full(10, 0.5), probabilities[:, 1:])
    assert losses == pytest.approx([0.75, 0.75])
    assert checks._window_losses(np.full(10, 0.01), probabilities[:, 1:]) == []


def test_the_period_by_hand() -> None:
    """Two actions at s1: from (-u, u) an update towards the first leads to (u, -u)."""
    period = ce.one_period()
    u = 4.99977290754
    np.testing.assert_allclose(period.parameters[4][1], [-u, u], atol=1e-9)
    np.testing.assert_allclose(period.parameters[5][1], [u, -u], atol=1e-9)
    np.testing.assert_allclose(period.parameters[8][0], period.parameters[0][0], atol=1e-9)


def test_the_enclosed_fixed_point_of_two_actions_sums_to_zero() -> None:
    """Weights of 10 to either side: u solves 2 u (1 + e^(-2u)) = 10, and the point is (-u, u)."""
    moves = [(arb(10), 0, 1), (arb(10), 1, 1)]
    (low, high), _ = cycles._fixed_point(moves, np.array([-5.0, 5.0]), 1e-10, "two")
    assert float(high) == pytest.approx(4.99977290754, abs=1e-9)
    assert (low + high).contains(0)


def test_states_move_at_every_step_while_there_is_a_spread() -> None:
    """Two updates of the first state, one of the second; in between each has its greedy action."""
    example = CycleExample(
        "two",
        Fraction(1, 2),
        ((0, 1), (1, 0)),
        ((None, None), (None, None)),
        (Phase(0, Fraction(2), 1, 2), Phase(1, Fraction(3), 0)),
        ((0.0, 0.0), (0.0, 0.0)),
    )
    greedy = np.array([[1, 0], [1, 1], [0, 0]])
    assert cycles._updates_by_state(example, greedy) == [[(2, 1, 2)], [(3, 0, 1)]]
    spread = replace(example, spread=Fraction(1))
    assert cycles._updates_by_state(spread, greedy) == [
        [(3, 1, 2), (1, 0, 1)],
        [(1, 0, 1), (1, 1, 1), (4, 0, 1)],
    ]


def test_the_potential_by_hand() -> None:
    """Levels (2, 1/2, 0): kappa = (1, 1/2, 0), Psi = 5/4; one unit from the top to the last."""
    levels = (Fraction(2), Fraction(1, 2), Fraction(0))
    assert ce.reduced_levels(levels, 1) == (1, Fraction(1, 2), 0)
    assert ce.reduced_levels((Fraction(3), Fraction(1), Fraction(0)), 2) == (0.5, 0.5, 0)
    assert ce.potential(levels, 1) == Fraction(5, 4)
    assert ce.hardened_step((Fraction(1), Fraction(1, 2), Fraction(-1)), 2, 1) == (
        0,
        Fraction(1, 2),
        0,
    )
    # An error: (1, 1/2, -1) has Psi = 5/4; (0, 1/2, 0) has kappa = (0, -1/2, 0), Psi = 1/4.
    # Owed: 2 (kappa_b - kappa_g - 1) = 2 (1/2 + 1 - 1) = 1.
    before = (Fraction(1), Fraction(1, 2), Fraction(-1))
    assert potential_change(before, 2, 1, 1) == (1, 1)
    # The greedy action becomes the top: kappa = (0, 0) stays in units of the weight. In units of
    # half of it, from (1, 0) to (-3, 4), Psi rises from 1/4 to 13/4, which is not allowed either.
    arms = (Fraction(1), Fraction(0))
    assert potential_change(arms, 1, 1, 1) == (0, 0)
    assert potential_change(arms, 1, 4, 2) == (-3, 0)


def potential_change(*given: Any) -> tuple[Fraction, Fraction]:
    """Return by how much the potential falls and what is asked of it."""
    compare = Recorder()
    checks._compare_potential(compare, *given)
    (row,) = compared(compare)
    return row.value, row.limit


def test_the_hardened_system_by_hand() -> None:
    """One state that ends: 2 pays, 0 does not; level 3/2 ahead takes two updates to undo."""
    example = CycleExample("one", Fraction(1, 2), ((0, 2),), ((None, None),), (), ((0.0, 0.0),))
    path = ce.hardened_run(example, [(Fraction(3, 2), Fraction(0))], [[1]] * 3)
    assert path == [((0,), 2), ((1,), 0), ((1,), 0), ((1,), 0)]
    path = ce.hardened_run(example, [(Fraction(5, 2), Fraction(0))], [[1], [0], [1]])
    assert [gap for _, gap in path] == [2, 2, 2, 0]


def test_the_hardened_cycle_is_the_cycle_of_ce() -> None:
    """The policies of the hardened run are the most probable actions of the certified cycle."""
    period = [[Fraction(int(w), 10) for w in row] for row in THREE_STATES.weights]
    path = ce.hardened_run(THREE_STATES, checks._cycle_levels(), period * 2)
    tops = [tuple(int(np.argmax(row)) for row in rows) for rows in ce.one_period().parameters]
    assert [policy for policy, _ in path] == [*tops[:8], *tops]


def test_hardened_cycle_needs_varying_weights() -> None:
    """The four moves at the first state, with multipliers 3, 1, 1, 2, lead back to the start."""
    levels = (Fraction(0), Fraction(-3, 2), Fraction(3, 2))
    start = levels
    for greedy, weight in ((1, 3), (0, 1), (2, 1), (2, 2)):
        levels = ce.hardened_step(levels, greedy, weight)
    assert levels == start
    with pytest.raises(ValueError, match="tie for the top"):
        ce.hardened_step((Fraction(1), Fraction(1)), 0, 1)


def test_the_pattern_needs_a_discount_above_the_plastic_threshold() -> None:
    assert ce.pattern_margin(0.754) < 1e-9
    assert ce.pattern_margin(0.756) > 1e-4


def test_a_pattern_of_one_state_that_ends_leads_by_two() -> None:
    """Rewards in [-1, 1] are at most 2 apart."""
    phases = (Phase(0, Fraction(1), 1),)
    example = CycleExample("one", Fraction(1, 2), ((0, 2),), ((None, None),), phases, ((0.0, 0.0),))
    assert ce.pattern_margin(0.5, example) == pytest.approx(2.0)


# The hunt


@pytest.mark.parametrize("weighting", ["constant", "on-policy"])
def test_the_committed_hunt_found_nothing(weighting: str) -> None:
    result = search.load(weighting)
    assert result["mdps"] >= (100_000 if weighting == "constant" else 50_000)
    assert not ce.unresolved(result)


def test_a_suspect_that_was_not_followed_is_noticed() -> None:
    result = search.load("on-policy")
    dropped = result["followed"].pop()
    assert ce.unresolved(result) == [[dropped["family"], dropped["block"], dropped["index"]]]


def test_following_runs_the_same_mdp() -> None:
    followed = search.run_one("three", 0, 0, 3, "constant", 2000)
    batch = search.draw("three", 0, 0)
    search._advance(batch, np.array([3]), "constant", 2000)
    best = batch.mdps.optimum()
    gap = (best - batch.mdps.values(batch.theta))[3].max()
    assert followed.largest_gap == pytest.approx(gap / np.abs(best[3]).max())
    with pytest.raises(ValueError, match="weighting: expected one of"):
        search.run_one("three", 0, 0, 3, "random", 2000)


def test_a_run_that_is_followed_is_measured_in_units_of_one_at_least(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One state, an action that pays and one that does not: the uniform policy has half of it.

    A run that is no farther from the optimum than it may be is not suspect.
    """
    for pays, gap in ((2 * search.FAR_GAP, search.FAR_GAP), (0.5, 0.25), (1.5, 0.5), (4.0, 0.5)):
        mdp = DeterministicMDP(
            np.array([[[pays, 0.0]]]), np.full((1, 1, 2), -1), np.array([2]), np.array([0.5])
        )
        batch = search.Batch(mdp, np.zeros((1, 1, 2)), np.ones((1, 1)))
        monkeypatch.setattr(search, "draw", lambda *_, batch=batch: batch)
        monkeypatch.setattr(search, "_advance", lambda *_: np.zeros((2, 1)))
        found = search.run_one("three", 0, 0, 0, "constant", 1)
        assert found.largest_gap == pytest.approx(gap)
        assert (found.late, found.suspects) == (
            ((1,), (0,)) if gap > search.FAR_GAP else ((0,), ())
        )


def test_a_falsified_hunt_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = search.load("constant")
    result["families"]["three"]["first_block"]["dropping"] += 1
    monkeypatch.setattr(search, "load", lambda _: result)
    with pytest.raises(ValueError, match="differs in \\['dropping'\\]"):
        checks.no_cycle_with_constant_weights_was_found.run()


def test_the_hunt_sees_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the three-state MDP and its periodic schedule in place of constant weights."""
    batch = search.draw("near", 0, 0, 2)
    mdps = batch.mdps
    mdps.rewards[:] = THREE_STATES.tables.rewards
    mdps.discount[:] = 0.9
    for s, row in enumerate(THREE_STATES.start):
        batch.theta[:, s, : len(row)] = row
    late = ce.late_run(
        replace(THREE_STATES.tables, discount=0.9), THREE_STATES.weights, batch.theta[0]
    )
    assert late.span[0] > 14.0
    monkeypatch.setattr(search, "draw", lambda *_: batch)
    monkeypatch.setattr(search, "HORIZONS", (2000,))
    monkeypatch.setattr(search, "SUSPECT_DROP", -1.0)
    monkeypatch.setattr(search, "DROP_TOLERANCE", -1.0)
    assert search.search_block("near", 0, 0, n=2).suspects == (0, 1)


def test_the_hunt_refuses_unknown_names() -> None:
    with pytest.raises(ValueError, match="family: expected one of"):
        search.draw("five", 0, 0)
    with pytest.raises(ValueError, match="weighting: expected one of"):
        search.search_block("three", 0, 0, weighting="random")


def test_random_search_rejects_zero_mdps(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--mdps", "0"])
    assert ended.value.code == 2
    assert "--mdps: expected at least one MDP" in capsys.readouterr().err


def test_a_race_tells_of_the_states_that_are_updated() -> None:
    v, weights = ce.race(THREE_STATES, UPDATES["ce"], 2)
    assert (v.shape, weights.shape) == ((17, 3), (16, 3))
    np.testing.assert_array_equal(weights[8:], THREE_STATES.weights)


def test_the_drift_is_the_largest_change_of_a_parameter_in_a_period() -> None:
    start = [[0.0, -15.0, 15.0], [-5.0, 5.0], [-5.0, 5.0]]
    moved = simulate(THREE_STATES, 1, start=start)
    by_hand = [abs(moved.theta[s, a] - x) for s, row in enumerate(start) for a, x in enumerate(row)]
    assert moved.drift == max(by_hand) > min(by_hand)


def test_late_is_the_last_tenth() -> None:
    """Of 160 periods of eight steps; the cycle's values span 14.4 in the first state."""
    mdp, theta = THREE_STATES.tables, np.zeros((3, 3))
    late = ce.late_run(mdp, THREE_STATES.weights, theta, 160)
    values = simulate(THREE_STATES, 160, start=theta.tolist()).values[-128:]
    np.testing.assert_allclose(late.span, np.ptp(values, axis=0))


def test_a_cycle_of_equal_steps_is_what_the_theorem_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """A certificate makes it hold; where there is none it is open."""
    cycle = replace(ce.certificate(THREE_STATES), shortfall=(3.0, 4.0, 5.0))
    monkeypatch.setattr(ce, "certificate", lambda _: cycle)
    finding = checks.cross_entropy_cycles_at_a_constant_step.run()
    assert (finding.status, finding.margin) == ("holds", 3.0)

    def refuse(_: CycleExample) -> None:
        raise NotCertifiedError("The test fails.")

    monkeypatch.setattr(ce, "certificate", refuse)
    finding = checks.cross_entropy_cycles_at_a_constant_step.run()
    assert (finding.status, finding.margin) == ("open", None)
    assert finding.open_because == "No cycle was certified. The test fails."


def test_a_hunt_sums_up_whole_blocks_of_each_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """4000 MDPs are two blocks of a thousand for each of three families."""

    def block(family: str, seed: int, number: int, weighting: str) -> search.SearchCounts:
        assert (seed, weighting) == (7, "on-policy")
        late, first = (3 + number, 2, 1), number == 0
        return search.SearchCounts(
            1000, 5, late, (9,) if first else (), 0.5 - number / 4, number / 8
        )

    monkeypatch.setattr(search, "search_block", block)
    found = search.search(4000, 7, "on-policy")
    assert found["mdps"] == 6000
    assert found["horizons"] == search.load("constant")["horizons"] == [2_000, 40_000, 800_000]
    for family in search.FAMILIES:
        row = found["families"][family]
        assert (row["mdps"], row["dropping"], row["late"]) == (2000, 10, [7, 4, 2])
        assert row["suspects"] == [[0, 9]]
        assert (row["largest_drop"], row["largest_gap"]) == (0.5, 0.125)
        assert row["first_block"]["late"] == (3, 2, 1)


def test_the_optimum_is_that_of_three_thousand_sweeps() -> None:
    """A loop that pays 1 is worth 1 + 0.999 + ... after as many sweeps as there are terms."""
    loop = DeterministicMDP(np.ones((1, 1)), np.zeros((1, 1), dtype=int), np.array([1]), 0.999)
    assert loop.optimum()[0] == pytest.approx((1 - 0.999**3000) / 0.001, rel=1e-12)
    assert loop.optimum(2)[0] == 1.999


@pytest.mark.parametrize("example", [THREE_STATES, FOUR_STATES], ids=lambda example: example.name)
def test_a_cycle_ends_where_it_starts_by_the_greedy_actions_that_it_says(
    example: CycleExample,
) -> None:
    """Starts are written with ten decimals."""
    orbit, begin = simulate(example, 1), 0
    assert orbit.drift < 1e-9
    for phase in example.phases:
        end = begin + phase.updates
        assert (orbit.greedy[begin:end, phase.state] == phase.greedy).all()
        begin = end
    assert begin == len(orbit.greedy)


def test_the_optimum_of_the_four_states_by_hand() -> None:
    """Best is 0, 1, 0, ...: state 0 pays 0 on the way to state 1, which pays 10 on the way back."""
    v = 0.97 * 10 / (1 - 0.97**2)
    expected = [v, 10 + 0.97 * v, 10 + 0.97 * (10 + 0.97 * v), 10 + 0.97 * v]
    np.testing.assert_allclose(FOUR_STATES.tables.optimum(), expected)


def test_steps_of_two_actions_may_differ_by_roundings_of_the_larger_parameter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Steps that are 1e-14 and 2e-14 apart, where 8 roundings of |theta| + w are allowed."""
    apart = {"ce": np.zeros((9, 2)), "mce": np.tile([2e-14, -1e-14], (9, 1))}
    monkeypatch.setattr(
        checks, "as_update", lambda name: SimpleNamespace(step=lambda *_: apart[name])
    )
    compare = Recorder()
    checks.ce_is_mce_for_two_actions.function(compare, n_points=9)
    assert len(compared(compare)) == 6
    for row in compared(compare):
        size = max(map(abs, row.instance["theta"])) + row.instance["weight"]
        assert row.slack == pytest.approx(8 * 2.0**-52 * size - 2e-14, rel=1e-6, abs=0.0)


@pytest.mark.parametrize(
    ("matrix", "contracts"),
    [
        ([[0.75]], True),
        ([[-0.75]], True),
        ([[1]], False),
        ([[-1]], False),
        ([[-2]], False),
        ([[0.75, 0], [0, -0.75]], True),
        ([[0.75, 0], [0, 1]], False),
        ([[0.75, 0], [0, 2]], False),
        ([[0.75, 0], [0, -1]], False),
        ([[0.75, 0], [0, -2]], False),
        # turns by a right angle: the eigenvalues are imaginary
        ([[0, -0.75], [0.75, 0]], True),
        ([[0, -1], [1, 0]], False),
        ([[0, -2], [2, 0]], False),
        # eigenvalues 1/2 twice, in a matrix with large entries
        ([[4.5, -4], [4, -3.5]], True),
    ],
)
def test_a_matrix_contracts_if_its_eigenvalues_are_inside_the_unit_circle(
    matrix: list[list[float]], contracts: bool
) -> None:
    assert cycles._contracts([[arb(x) for x in row] for row in matrix]) is contracts


@pytest.mark.parametrize(
    ("drop", "gap", "late", "suspects"),
    [
        (0.0, 0.0, 0, ()),
        (search.DROP_TOLERANCE, search.FAR_GAP, 0, ()),
        (search.SUSPECT_DROP, search.FAR_GAP, 1, ()),
        (0.0, 0.1, 1, (0,)),
        (0.5, 0.0, 1, (0,)),
    ],
)
def test_a_run_is_followed_while_it_drops_or_is_far(
    drop: float, gap: float, late: int, suspects: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One state, whose values are measured in units of 1: how far it is and how much it drops."""
    mdps = SimpleNamespace(optimum=lambda: np.array([[gap]]), values=lambda _: np.zeros((1, 1)))
    batch = SimpleNamespace(mdps=mdps, theta=None)
    monkeypatch.setattr(search, "draw", lambda *_: batch)
    monkeypatch.setattr(search, "_advance", lambda _, rows, *__: np.full((2, len(rows)), drop))
    found = search.search_block("three", 0, 0, n=1)
    assert found.late == (late,) * len(search.HORIZONS)
    assert found.suspects == suspects
    assert (found.mdps, found.dropping) == (1, int(drop > search.DROP_TOLERANCE))
    assert (found.largest_drop, found.largest_gap) == (drop if late else 0.0, gap)


def test_actions_that_a_state_lacks_end_the_episode_for_one_less_than_the_least_reward() -> None:
    mdp = THREE_STATES.mdp()
    assert mdp.rewards.tolist() == [[1, 0, 1], [2, -1, -2], [2, -1, -2], [0, 0, 0]]
    successors = np.array([[0, 2, 1], [0, 3, 3], [3, 0, 3]])
    np.testing.assert_array_equal(mdp.transitions[:3], np.eye(4)[successors])
    assert mdp.terminal.tolist() == [False, False, False, True]
    assert mdp.initial.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_bounds_are_rounded_away_from_what_they_bound() -> None:
    third = arb(1) / 3
    assert arb(cycles._float_below(third)) < third
    assert arb(-cycles._float_below(-third)) > third


@pytest.mark.parametrize(("last", "proved"), [((), True), ((5,), False), ((0,), False)])
def test_no_matrix_larger_than_two_by_two_is_said_to_contract(
    last: tuple[int, ...], proved: bool
) -> None:
    diagonal = (0, 0, *last)
    matrix = [[arb(x if i == j else 0) for j in range(len(diagonal))]
              for i, x in enumerate(diagonal)]  # fmt: skip
    assert cycles._contracts(matrix) is proved


def test_a_late_run_is_measured_against_the_optimum_whatever_the_discount() -> None:
    rewards, stay = np.array([[1.0, 0.0]]), np.zeros((1, 2), dtype=np.int64)
    mdp = DeterministicMDP(rewards, stay, np.array([2]), 0.99)
    found = ce.late_run(mdp, np.full((1, 1), 5.0), np.array([[3.0, 0.0]]), 4000)
    assert 0 <= found.shortfall[0] < 0.1


def test_a_batch_may_share_its_discount_and_pad_with_anything() -> None:
    rewards = np.array([[[1.0, np.nan]], [[2.0, np.nan]]])
    batch = DeterministicMDP(rewards, np.zeros((2, 1, 2), dtype=np.int64), np.array([1]), 0.5)
    np.testing.assert_allclose(batch.values(np.zeros((2, 1, 2))), [[2.0], [4.0]])
    np.testing.assert_allclose(batch[1:].optimum(), [[4.0]])
