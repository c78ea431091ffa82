"""Test the certificates, the random search and the quantities of the chapter on cross entropy."""

from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from flint import arb

from pu_lib.chapters.cross_entropy import checks, cycles, hexagon, one_half
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
from pu_lib.exact import precision
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES

# The MDP and its cycle


def test_ce_cycle_repeats_in_floats() -> None:
    orbit = simulate(THREE_STATES, 2000)
    assert orbit.drift < 1e-13
    last = orbit.values[-8:, 0]
    assert last.min() == pytest.approx(-4.6944, abs=1e-4)
    assert last.max() == pytest.approx(9.7086, abs=1e-4)
    assert (
        orbit.greedy[-8:][np.arange(8), THREE_STATES.updated_states] == THREE_STATES.claimed_actions
    ).all()


def test_ce_cycle_attracts_distant_initial_parameters() -> None:
    orbit = simulate(THREE_STATES, 20_000, start=[[0.0, -15.0, 15.0], [-5.0, 5.0], [-5.0, 5.0]])
    near = simulate(THREE_STATES, 1)
    assert np.abs(orbit.theta - near.theta).max() < 2e-2


@pytest.mark.parametrize("update", ["ce", "mce"])
def test_compiled_process_agrees_with_run(update: str) -> None:
    example = three_actions_everywhere()
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


def three_actions_everywhere() -> CycleExample:
    """Return the three-state MDP with a third action added to the states with two actions."""
    return replace(
        THREE_STATES,
        rewards=((1, 0, 1), (2, -1, -3), (2, -1, -3)),
        successors=((0, 2, 1), (0, None, None), (None, 0, None)),
    )


def test_ce_cycle_is_unchanged_by_padded_actions() -> None:
    v, _ = ce.race(THREE_STATES, UPDATES["ce"], 200)
    assert v[-8:, 0].max() - v[-8:, 0].min() > 14.0


def test_simulate_and_race_reject_invalid_arguments() -> None:
    with pytest.raises(ValueError, match="update: the compiled process needs"):
        simulate(THREE_STATES, 1, update="di")
    with pytest.raises(ValueError, match="periods: expected an integer, at least 1"):
        simulate(THREE_STATES, 0)
    with pytest.raises(ValueError, match="start: expected 'cycle' or 'uniform'"):
        ce.race(THREE_STATES, UPDATES["ce"], 1, start="nowhere")


def test_optimal_values_of_the_three_state_cycle_match_hand_solution() -> None:
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


# Certificates


def compared(recorder: Recorder) -> list[Comparison]:
    """Return the stored comparisons of a recorder, the worst of each tally first."""
    return [comparison for tally in recorder.tallies.values() for comparison in tally.worst]


def test_cycle_that_does_not_attract_leaves_the_claim_open() -> None:
    """The claim is open if one of two cycles does not attract, in either order."""
    assert ce.certificate(THREE_STATES).attracting
    assert not ce.certificate(THREE_STATES.with_spread("2/5")).attracting
    for spreads in (("0", "2/5"), ("2/5", "0")):
        finding = replace(checks.cross_entropy_cycles, arguments={"spreads": spreads}).run()
        assert finding.status == "open"
        assert "does not attract" in finding.open_because


def test_cycle_that_omits_a_state_leaves_the_claim_open(monkeypatch: pytest.MonkeyPatch) -> None:
    cycle = ce.certificate(THREE_STATES)
    frozen = replace(THREE_STATES, phases=THREE_STATES.phases[1:3])
    monkeypatch.setattr(ce, "certificate", lambda _: cycle)
    arguments = {"example": frozen, "spreads": ("0",)}
    finding = replace(checks.cross_entropy_cycles, arguments=arguments).run()
    assert finding.status == "open"
    assert "never updated" in finding.open_because


def test_cycle_that_may_reach_the_optimum_leaves_the_claim_open(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cycle = replace(ce.certificate(THREE_STATES), shortfall=(2.0, 0.0, 1.0))
    monkeypatch.setattr(ce, "certificate", lambda _: cycle)
    finding = checks.cross_entropy_cycles.run()
    assert finding.status == "open"
    assert "stay below the optimum" in finding.open_because


def test_margin_belongs_to_the_nearest_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The margin is the smallest shortfall over all states and cycles."""
    cycle = ce.certificate(THREE_STATES)
    far = {"0": (3.0, 4.0, 5.0), "1/10": (2.0, 9.0, 9.0)}
    monkeypatch.setattr(
        ce, "certificate", lambda example: replace(cycle, shortfall=far[str(example.spread)])
    )
    finding = replace(checks.cross_entropy_cycles, arguments={"spreads": tuple(far)}).run()
    assert finding.margin == 2.0


def test_certify_rejects_update_without_fixed_point() -> None:
    """Updates towards an action that stays greedy have no fixed point."""
    drifting = replace(
        THREE_STATES,
        phases=tuple(Phase(s, Fraction(1), a) for s, a in ((0, 2), (1, 0), (2, 1))),
        start=((0.0, 0.0, 5.0), (5.0, 0.0), (0.0, 5.0)),
    )
    with pytest.raises(NotCertifiedError):
        certify(drifting)


# Claims that hold


def test_late_run_of_a_constant_policy_has_zero_span() -> None:
    """A uniform policy over rewards 1 and 0 has shortfall 1/2 and span 0."""
    ends = np.array([[-1, -1]])
    mdp = DeterministicMDP(np.array([[1.0, 0.0]]), ends, np.array([2]), 0.5)
    late = ce.late_run(mdp, np.zeros((1, 1)), np.zeros((1, 2)), 10)
    assert late.span.tolist() == [0.0]
    assert late.shortfall.tolist() == [0.5]


def test_two_action_check_fails_for_three_actions() -> None:
    """The largest difference of the steps exceeds the tolerance with three actions."""
    rng = np.random.default_rng(0)
    theta, q = 5.0 * rng.standard_normal((50, 3)), rng.standard_normal((50, 3))
    weight = 10.0 ** rng.uniform(-3, 2, 50)
    steps = [UPDATES[name].step(theta, q, weight) for name in ("ce", "mce")]
    largest = np.abs(steps[0] - steps[1]).max()
    compare = Recorder()
    checks.ce_is_mce_for_two_actions.function(compare, n_actions=3, n_points=50)
    assert compared(compare)[0].slack == pytest.approx(-largest, rel=1e-9)


def test_window_losses_match_hand_solution() -> None:
    """A window is two steps of weight 1/2 and loses (c + c/2)/2 if its first probability is c."""
    probabilities = np.column_stack([np.zeros(11), *[2.0 ** -np.arange(11)] * 2])
    losses = checks._window_losses(np.full(10, 0.5), probabilities[:, 1:])
    assert losses == pytest.approx([0.75, 0.75])
    assert checks._window_losses(np.full(10, 0.01), probabilities[:, 1:]) == []


def test_one_period_matches_hand_solution() -> None:
    """An update towards the first of the two actions at s1 moves (-u, u) to (u, -u)."""
    period = ce.one_period()
    u = 4.99977290754
    np.testing.assert_allclose(period.parameters[4][1], [-u, u], atol=1e-9)
    np.testing.assert_allclose(period.parameters[5][1], [u, -u], atol=1e-9)
    np.testing.assert_allclose(period.parameters[8][0], period.parameters[0][0], atol=1e-9)


def test_fixed_point_of_two_actions_matches_hand_solution() -> None:
    """The fixed point is (-u, u) with 2 u (1 + e^(-2u)) = 10 if both weights are 10."""
    moves = [(arb(10), 0, 1), (arb(10), 1, 1)]
    (low, high), _ = cycles._fixed_point(moves, np.array([-5.0, 5.0]), 1e-10, "two")
    assert float(high) == pytest.approx(4.99977290754, abs=1e-9)
    assert (low + high).contains(0)


def test_updates_by_state_match_hand_solution_with_and_without_spread() -> None:
    """The spread adds updates by a state's greedy action to the phases of the other state."""
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


def test_potential_matches_hand_solution() -> None:
    """Levels (2, 1/2, 0) give kappa = (1, 1/2, 0) and Psi = 5/4."""
    levels = (Fraction(2), Fraction(1, 2), Fraction(0))
    assert ce.reduced_levels(levels, 1) == (1, Fraction(1, 2), 0)
    assert ce.reduced_levels((Fraction(3), Fraction(1), Fraction(0)), 2) == (0.5, 0.5, 0)
    assert ce.potential(levels, 1) == Fraction(5, 4)
    assert ce.hardened_step((Fraction(1), Fraction(1, 2), Fraction(-1)), 2, 1) == (
        0,
        Fraction(1, 2),
        0,
    )
    # At an error, Psi falls from 5/4 for (1, 1/2, -1) to 1/4 for (0, 1/2, 0), which has
    # kappa = (0, -1/2, 0). The bound is 2 (kappa_b - kappa_g - 1) = 2 (1/2 + 1 - 1) = 1.
    before = (Fraction(1), Fraction(1, 2), Fraction(-1))
    assert potential_change(before, 2, 1, 1) == (1, 1)
    # The greedy action becomes the top action, and kappa = (0, 0) does not change in units of the
    # weight. With the weight 4 and the unit 2, Psi rises from 1/4 to 13/4, which is not allowed.
    arms = (Fraction(1), Fraction(0))
    assert potential_change(arms, 1, 1, 1) == (0, 0)
    assert potential_change(arms, 1, 4, 2) == (-3, 0)


def potential_change(*arguments: Any) -> tuple[Fraction, Fraction]:
    """Return the decrease of the potential and its limit."""
    compare = Recorder()
    checks._compare_potential(compare, *arguments)
    (row,) = compared(compare)
    return row.value, row.limit


def test_hardened_run_matches_hand_solution() -> None:
    """One update of weight 1 makes up for a lead of 3/2, and two make up for a lead of 5/2."""
    example = CycleExample("one", Fraction(1, 2), ((0, 2),), ((None, None),), (), ((0.0, 0.0),))
    path = ce.hardened_run(example, [(Fraction(3, 2), Fraction(0))], [[1]] * 3)
    assert path == [((0,), 2), ((1,), 0), ((1,), 0), ((1,), 0)]
    path = ce.hardened_run(example, [(Fraction(5, 2), Fraction(0))], [[1], [0], [1]])
    assert [gap for _, gap in path] == [2, 2, 2, 0]


def test_hardened_cycle_has_the_policies_of_the_ce_cycle() -> None:
    """The hardened run takes the most probable actions of the certified cycle."""
    period = [[Fraction(int(w), 10) for w in row] for row in THREE_STATES.weights]
    path = ce.hardened_run(THREE_STATES, checks._cycle_levels(), period * 2)
    tops = [tuple(int(np.argmax(row)) for row in rows) for rows in ce.one_period().parameters]
    assert [policy for policy, _ in path] == [*tops[:8], *tops]


def test_hardened_cycle_requires_varying_weights() -> None:
    """The four updates of the first state with multipliers 3, 1, 1 and 2 restore its levels."""
    levels = (Fraction(0), Fraction(-3, 2), Fraction(3, 2))
    start = levels
    for greedy, weight in ((1, 3), (0, 1), (2, 1), (2, 2)):
        levels = ce.hardened_step(levels, greedy, weight)
    assert levels == start
    with pytest.raises(ValueError, match="tie for the top"):
        ce.hardened_step((Fraction(1), Fraction(1)), 0, 1)


def test_pattern_margin_vanishes_at_the_threshold_discount() -> None:
    assert ce.pattern_margin(0.754) < 1e-9
    assert ce.pattern_margin(0.756) > 1e-4


def test_pattern_margin_of_one_state_matches_hand_solution() -> None:
    """The margin is 2, the largest difference between two rewards in [-1, 1]."""
    phases = (Phase(0, Fraction(1), 1),)
    example = CycleExample("one", Fraction(1, 2), ((0, 2),), ((None, None),), phases, ((0.0, 0.0),))
    assert ce.pattern_margin(0.5, example) == pytest.approx(2.0)


# Random search


@pytest.mark.parametrize("weighting", ["constant", "on-policy"])
def test_committed_search_has_no_unresolved_candidates(weighting: str) -> None:
    result = search.load(weighting)
    assert result["mdps"] >= (100_000 if weighting == "constant" else 50_000)
    assert not ce.unresolved(result)


def test_unresolved_lists_candidates_without_continuation() -> None:
    result = search.load("on-policy")
    dropped = result["followed"].pop()
    assert ce.unresolved(result) == [[dropped["family"], dropped["block"], dropped["index"]]]


def test_run_one_agrees_with_its_block() -> None:
    followed = search.run_one("three", 0, 0, 3, "constant", 2000)
    batch = search.draw("three", 0, 0)
    search._advance(batch, np.array([3]), "constant", 2000)
    best = batch.mdps.optimum()
    gap = (best - batch.mdps.values(batch.theta))[3].max()
    assert followed.largest_gap == pytest.approx(gap / np.abs(best[3]).max())
    with pytest.raises(ValueError, match="weighting: expected one of"):
        search.run_one("three", 0, 0, 3, "random", 2000)


def test_run_one_divides_gaps_by_at_least_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gap of one state with rewards r and 0 is r/2, divided by the larger of r and 1."""
    for pays, gap in ((2 * search.FAR_GAP, search.FAR_GAP), (0.5, 0.25), (1.5, 0.5), (4.0, 0.5)):
        mdp = DeterministicMDP(
            np.array([[[pays, 0.0]]]), np.full((1, 1, 2), -1), np.array([2]), np.array([0.5])
        )
        batch = search.Batch(mdp, np.zeros((1, 1, 2)), np.ones((1, 1)))
        monkeypatch.setattr(search, "draw", lambda *_, batch=batch: batch)
        monkeypatch.setattr(search, "_advance", lambda *_: np.zeros((2, 1)))
        counts = search.run_one("three", 0, 0, 0, "constant", 1)
        assert counts.largest_gap == pytest.approx(gap)
        assert (counts.late, counts.suspects) == (
            ((1,), (0,)) if gap > search.FAR_GAP else ((0,), ())
        )


def test_search_check_detects_changed_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    result = search.load("constant")
    result["families"]["three"]["first_block"]["dropping"] += 1
    monkeypatch.setattr(search, "load", lambda _: result)
    with pytest.raises(ValueError, match="differs in \\['dropping'\\]"):
        checks.no_cycle_with_constant_weights_was_found.run()


def test_search_block_detects_the_known_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three-state MDP with its periodic schedule replaces the sampled MDPs."""
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


def test_random_search_rejects_unknown_names() -> None:
    with pytest.raises(ValueError, match="family: expected one of"):
        search.draw("five", 0, 0)
    with pytest.raises(ValueError, match="weighting: expected one of"):
        search.search_block("three", 0, 0, weighting="random")


def test_random_search_rejects_zero_mdps(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--mdps", "0"])
    assert ended.value.code == 2
    assert "--mdps: expected at least one MDP" in capsys.readouterr().err


def test_race_returns_values_and_weights_of_all_states() -> None:
    v, weights = ce.race(THREE_STATES, UPDATES["ce"], 2)
    assert (v.shape, weights.shape) == ((17, 3), (16, 3))
    np.testing.assert_array_equal(weights[8:], THREE_STATES.weights)


def test_drift_matches_hand_solution() -> None:
    start = [[0.0, -15.0, 15.0], [-5.0, 5.0], [-5.0, 5.0]]
    moved = simulate(THREE_STATES, 1, start=start)
    by_hand = [abs(moved.theta[s, a] - x) for s, row in enumerate(start) for a, x in enumerate(row)]
    assert moved.drift == max(by_hand) > min(by_hand)


def test_late_run_uses_the_last_tenth() -> None:
    """The last tenth of 160 periods of eight steps has 128 steps."""
    mdp, theta = THREE_STATES.tables, np.zeros((3, 3))
    late = ce.late_run(mdp, THREE_STATES.weights, theta, 160)
    values = simulate(THREE_STATES, 160, start=theta.tolist()).values[-128:]
    np.testing.assert_allclose(late.span, np.ptp(values, axis=0))


def test_constant_step_check_requires_a_certificate(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim holds with a certificate and is open without one."""
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


def test_search_sums_blocks_of_each_family(monkeypatch: pytest.MonkeyPatch) -> None:
    """4000 MDPs take two blocks of a thousand for each of the three families."""

    def block(family: str, seed: int, number: int, weighting: str) -> search.SearchCounts:
        assert (seed, weighting) == (7, "on-policy")
        late, first = (3 + number, 2, 1), number == 0
        return search.SearchCounts(
            1000, 5, late, (9,) if first else (), 0.5 - number / 4, number / 8
        )

    monkeypatch.setattr(search, "search_block", block)
    totals = search.search(4000, 7, "on-policy")
    assert totals["mdps"] == 6000
    assert totals["horizons"] == search.load("constant")["horizons"] == [2_000, 40_000, 800_000]
    for family in search.FAMILIES:
        row = totals["families"][family]
        assert (row["mdps"], row["dropping"], row["late"]) == (2000, 10, [7, 4, 2])
        assert row["suspects"] == [[0, 9]]
        assert (row["largest_drop"], row["largest_gap"]) == (0.5, 0.125)
        assert row["first_block"]["late"] == (3, 2, 1)


def test_optimum_sums_3000_sweeps_by_default() -> None:
    """A loop with reward 1 has the value 1 + 0.999 + ... with one term for each sweep."""
    loop = DeterministicMDP(np.ones((1, 1)), np.zeros((1, 1), dtype=int), np.array([1]), 0.999)
    assert loop.optimum()[0] == pytest.approx((1 - 0.999**3000) / 0.001, rel=1e-12)
    assert loop.optimum(2)[0] == 1.999


@pytest.mark.parametrize("example", [THREE_STATES, FOUR_STATES], ids=lambda example: example.name)
def test_examples_repeat_with_the_stated_actions(
    example: CycleExample,
) -> None:
    """The drift is small but positive, since the initial parameters have ten decimals."""
    orbit, begin = simulate(example, 1), 0
    assert orbit.drift < 1e-9
    for phase in example.phases:
        end = begin + phase.updates
        assert (orbit.greedy[begin:end, phase.state] == phase.greedy).all()
        begin = end
    assert begin == len(orbit.greedy)


def test_optimum_of_four_states_matches_hand_solution() -> None:
    """The optimal policy goes from state 0 to state 1 with reward 0 and back with reward 10."""
    v = 0.97 * 10 / (1 - 0.97**2)
    expected = [v, 10 + 0.97 * v, 10 + 0.97 * (10 + 0.97 * v), 10 + 0.97 * v]
    np.testing.assert_allclose(FOUR_STATES.tables.optimum(), expected)


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
        # rotations by 90 degrees, which have imaginary eigenvalues
        ([[0, -0.75], [0.75, 0]], True),
        ([[0, -1], [1, 0]], False),
        ([[0, -2], [2, 0]], False),
        # a matrix with large entries and the double eigenvalue 1/2
        ([[4.5, -4], [4, -3.5]], True),
    ],
)
def test_contraction_matches_hand_solution(matrix: list[list[float]], contracts: bool) -> None:
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
def test_search_continues_runs_that_drop_or_are_far(
    drop: float, gap: float, late: int, suspects: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mock one state with the given gap and drop, whose unit is 1."""
    mdps = SimpleNamespace(optimum=lambda: np.array([[gap]]), values=lambda _: np.zeros((1, 1)))
    batch = SimpleNamespace(mdps=mdps, theta=None)
    monkeypatch.setattr(search, "draw", lambda *_: batch)
    monkeypatch.setattr(search, "_advance", lambda _, rows, *__: np.full((2, len(rows)), drop))
    counts = search.search_block("three", 0, 0, n=1)
    assert counts.late == (late,) * len(search.HORIZONS)
    assert counts.suspects == suspects
    assert (counts.mdps, counts.dropping) == (1, int(drop > search.DROP_TOLERANCE))
    assert (counts.largest_drop, counts.largest_gap) == (drop if late else 0.0, gap)


def test_example_mdp_has_padding_actions() -> None:
    mdp = THREE_STATES.mdp()
    assert mdp.rewards.tolist() == [[1, 0, 1], [2, -1, -2], [2, -1, -2], [0, 0, 0]]
    successors = np.array([[0, 2, 1], [0, 3, 3], [3, 0, 3]])
    np.testing.assert_array_equal(mdp.transitions[:3], np.eye(4)[successors])
    assert mdp.terminal.tolist() == [False, False, False, True]
    assert mdp.initial.tolist() == [1.0, 0.0, 0.0, 0.0]


def test_float_below_rounds_down() -> None:
    third = arb(1) / 3
    assert arb(cycles._float_below(third)) < third
    assert arb(-cycles._float_below(-third)) > third


@pytest.mark.parametrize(("last", "proved"), [((), True), ((5,), False), ((0,), False)])
def test_contraction_is_not_proved_for_3x3_matrices(last: tuple[int, ...], proved: bool) -> None:
    diagonal = (0, 0, *last)
    matrix = [[arb(x if i == j else 0) for j in range(len(diagonal))]
              for i, x in enumerate(diagonal)]  # fmt: skip
    assert cycles._contracts(matrix) is proved


def test_late_run_at_discount_0_99_has_a_small_shortfall() -> None:
    rewards, stay = np.array([[1.0, 0.0]]), np.zeros((1, 2), dtype=np.int64)
    mdp = DeterministicMDP(rewards, stay, np.array([2]), 0.99)
    run = ce.late_run(mdp, np.full((1, 1), 5.0), np.array([[3.0, 0.0]]), 4000)
    assert 0 <= run.shortfall[0] < 0.1


def test_batch_with_shared_discount_ignores_padding() -> None:
    rewards = np.array([[[1.0, np.nan]], [[2.0, np.nan]]])
    batch = DeterministicMDP(rewards, np.zeros((2, 1, 2), dtype=np.int64), np.array([1]), 0.5)
    np.testing.assert_allclose(batch.values(np.zeros((2, 1, 2))), [[2.0], [4.0]])
    np.testing.assert_allclose(batch[1:].optimum(), [[4.0]])


def test_values_on_the_hexagon_swing_in_every_round() -> None:
    """Every value falls to 0 and returns to 1 / (1 - gamma) if gamma is just above 1/2."""
    for rounds in (1, 4):
        swings = hexagon.hexagon_swings(0.55, rounds)
        assert len(swings.weights) == 42 * rounds
        assert swings.margin == pytest.approx(0.1 / 0.45, abs=1e-6)  # gamma / (1 - gamma) - 1
        np.testing.assert_allclose(swings.lowest, 0.0, atol=1e-7)
        np.testing.assert_allclose(swings.highest, 1 / 0.45, atol=1e-7)


def test_the_schedule_of_the_hexagon_needs_a_discount_above_one_half() -> None:
    with pytest.raises(ValueError, match="action 0 is not greedy at state 0"):
        hexagon.hexagon_swings(0.49, 1)


def test_random_mdps_converge_at_half_the_threshold_too() -> None:
    """The runs with large constant weights do not test the threshold, as the claim states."""
    recorder = Recorder()
    checks.large_constant_weights_converge.function(recorder, factor=0.5, n_mdps=2)
    (tally,) = (
        t for t in recorder.tallies.values() if t.quantity == "late distance to the optimum"
    )
    assert (tally.comparisons, tally.failures) == (6, 0)


def test_hexagon_attains_the_bound_on_swings_at_one_half() -> None:
    """All values swing between 0 and 1 / (1 - gamma), and gamma is 0.501."""
    recorder = Recorder()
    checks.swings_are_bounded_by_those_of_the_successors.function(recorder)
    (tally,) = recorder.tallies.values()
    assert tally.sharpness == pytest.approx(1 - 1 / (2 * 0.501), abs=1e-6)


def test_leads_on_the_hexagon_are_those_solved_by_hand() -> None:
    """The optimal value v is 5/2 at discount 3/5; each lead is measured before an update."""
    g, v = Fraction(3, 5), Fraction(5, 2)
    first = hexagon.hardened_steps(g, 1)[:7]
    assert [step.lead for step in first] == [
        1,  # all states play action 1
        1,  # only the state of the block plays action 2, which has the same value
        1 + g,  # the first error leads to a state with the value v
        g * v - 1,  # the other two states have the value 0: (2 g - 1) / (1 - g) = 1/2
        1 + g**2 * v,  # the state of the block has the value g v
        1 - g**4,
        1 - g**2,
    ]
    assert [step.weight for step in first] == [14, 2, 2, 14, 1, 1, 14]
    assert hexagon.least_lead(g) == g * v - 1 == Fraction(1, 2)
    assert (hexagon.unit_for(g), hexagon.mixing_for(g)) == (20, Fraction(1, 50))


def test_without_ties_each_action_of_the_hexagon_is_the_only_greedy_one() -> None:
    """Replay the weights in floats on the eight states with an explicit transition matrix."""
    g, chance = 0.6, 0.02
    neighbour = {0: (5, 1), 1: (2, 0), 2: (1, 3), 3: (4, 2), 4: (3, 5), 5: (0, 4)}
    P, R = np.zeros((8, 3, 8)), np.zeros((8, 3))
    for s, (column, row) in neighbour.items():
        P[s, 0, column] = 1.0
        P[s, 1:, row] = 1.0 - chance
        P[s, 1, 6] = P[s, 2, 7] = chance
        R[s] = 0.0, 1.0, 1.0
    R[6:] = 1.0, 0.0, 0.0
    theta = np.array([[-20.0, 0.0, -280.0]] * 6 + [[0.0, 0.0, -1e3]] * 2)
    steps = hexagon.steps_in_balls(Fraction(3, 5), 2, 20, Fraction(1, 50))
    values = []
    assert len(steps) == 84
    for move, step in zip(hexagon.ROUND * 2, steps, strict=True):
        while True:
            pi = np.exp(theta - theta.max(axis=1, keepdims=True))
            pi /= pi.sum(axis=1, keepdims=True)
            v = np.linalg.solve(np.eye(8) - g * np.einsum("sa,sat->st", pi, P), (pi * R).sum(1))
            better, other = (6, 7) if move.action == 1 else (7, 6)
            if move.action == 0 or v[better] > v[other]:
                break
            theta[better] += np.array([1.0, 0.0, 0.0]) - pi[better]
        q = (R + g * P @ v)[move.state]
        assert np.flatnonzero(q == q.max()).tolist() == [move.action]
        theta[move.state] += float(step.weight) * (np.eye(3)[move.action] - pi[move.state])
        values.append(v[:6])
    late = np.array(values)[42:]
    assert late.min(axis=0) == pytest.approx(np.zeros(6), abs=1e-6)
    assert (late.max(axis=0) > 2.45).all()


def test_hexagon_without_ties_needs_the_bandits() -> None:
    finding = checks.cross_entropy_oscillates_above_one_half.run(
        "no tie to break, but without the bandits"
    )
    assert finding.status is not checks.Status.HOLDS


# Discount 1/2: the hexagon with a fourth action and explicit matrices

NEIGHBOURS = {0: (5, 1), 1: (2, 0), 2: (1, 3), 3: (4, 2), 4: (3, 5), 5: (0, 4)}
"""For each state the one behind its dashed edge and the one behind its thick edge."""


def values_with_exit(theta: Any, discount: float) -> tuple[Any, Any]:
    """Return the state and action values on the hexagon with an action that pays -1."""
    P, R = np.zeros((6, 4, 6)), np.zeros((6, 4))
    for s, (dashed, thick) in NEIGHBOURS.items():
        P[s, 0, dashed] = P[s, 1, thick] = P[s, 2, thick] = 1.0
        R[s] = 0.0, 1.0, 1.0, -1.0
    pi = np.exp(theta - theta.max(axis=1, keepdims=True))
    pi /= pi.sum(axis=1, keepdims=True)
    v = np.linalg.solve(np.eye(6) - discount * np.einsum("sa,sat->st", pi, P), (pi * R).sum(1))
    return v, R + discount * P @ v


def step_of_ce(theta: Any, state: int, action: int, weight: float) -> None:
    pi = np.exp(theta[state] - theta[state].max())
    theta[state] += weight * (np.eye(4)[action] - pi / pi.sum())


def test_ce_follows_the_schedule_at_one_half_on_the_matrices() -> None:
    """Every action of the schedule is greedy if certified weights are replayed in floats."""
    with precision(220):
        units = [one_half.unit_of(n) for n in (5, 6, 7)]
        weights = [float(s.weight) for s in one_half.follow_in_balls(Fraction(1, 2), units)]
    assert len(weights) == 90
    u = 6 * np.log(5)
    theta = np.array([[2 * u / 3, 5 * u / 3, -7 * u / 3, 0.0]] * 6)
    path = []
    for move, weight in zip(one_half.ROUND * 3, weights, strict=True):
        v, q = values_with_exit(theta, 0.5)
        path.append(v)
        best = q[move.state]
        assert best[move.action] > max(best[3], best[1] if move.action == 0 else best[0])
        assert best[1] == best[2]
        step_of_ce(theta, move.state, move.action, weight)
    for values in np.split(np.array(path), 3):
        assert (values.min(axis=0) < 0).all()
        assert (values.min(axis=0) > -0.01).all()
        assert (values.max(axis=0) > 1.999).all()


@pytest.mark.parametrize(("unit", "rounds"), [(5.0, 1), (6.0, 3), (7.0, 9)])
def test_constant_weights_follow_the_schedule_for_a_few_rounds(unit: float, rounds: int) -> None:
    """A loop with matrices and the weights in the page's table counts the same rounds."""
    theta = np.array([[2 * unit / 3, 5 * unit / 3, -7 * unit / 3, 0.0]] * 6)
    blocks = (((1, 2), (0, 3)), ((3, 4), (2, 5)), ((5, 0), (4, 1)))
    done = 0
    while done < 20:
        for low, reset in blocks:
            for states, action, weight in (
                (reset, 2, lambda a, b, c: b - c),
                (low, 2, lambda a, b, c: b - a + unit),
                (reset, 0, lambda a, b, c: (7 * unit + 2 * c - b - a) / 3),
                (low, 1, lambda a, b, c: a - b + unit),
                (reset, 1, lambda a, b, c: (unit + a - b) / 2),
            ):
                for s in states:
                    q = values_with_exit(theta, 0.5)[1][s]
                    if q[action] < q.max():
                        assert action == 0
                        assert done == rounds == one_half.attack(0.5, [unit] * 12).rounds
                        return
                    step_of_ce(theta, s, action, weight(*theta[s, :3]))
        done += 1
    pytest.fail("the detour is still greedy after twenty rounds")


def test_detour_ties_in_the_hardened_system_at_one_half() -> None:
    """The leads of the hardened policy are 1, 1, 1, 3/2 and then 0, at which the run ends."""

    def top(levels: Any) -> list[int]:
        return [int(a == int(np.argmax(levels))) for a in range(len(levels))]

    def lead(discount: Fraction) -> list[hexagon.Step]:
        levels = [[Fraction(x, 3) for x in (2, 5, -7, -30)] for _ in range(6)]
        schedule = [(move, Fraction(1)) for move in one_half.ROUND * 2]
        return list(hexagon.follow_hexagon(discount, schedule, levels, top))

    assert [step.lead for step in lead(Fraction(1, 2))] == [1, 1, 1, Fraction(3, 2)]
    # Above 1/2, the levels are (a, b, b~) = (2, 5, -7) / 3 again after the reset of a block.
    steps = lead(Fraction(3, 5))
    assert [step.weight for step in steps[:10]] == [4, 4, 2, 2, 4, 4, 2, 2, 4, 4]
    assert [step.weight for step in steps[30:40]] == [2, 2, 2, 2, 4, 4, 2, 2, 2, 2]
    assert steps[39].levels[0][:3] == [Fraction(2, 3), Fraction(5, 3), Fraction(-7, 3)]
    assert steps[4].lead == Fraction(1, 2)  # 2/5 / (1 - 3/5) - 1
