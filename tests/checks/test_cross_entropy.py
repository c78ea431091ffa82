"""The cycles of CE are certified, the certificate can fail, and what holds can be broken."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.checks import cross_entropy as checks
from pu_lib.theory import cross_entropy as ce
from pu_lib.theory import hunt
from pu_lib.theory.cycles import (
    THREE_STATES,
    CycleExample,
    NotCertifiedError,
    Phase,
    certify,
    simulate,
)
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES
from pu_lib.verdict import Status

# The process and its cycle


def test_the_cycle_repeats_in_floating_point() -> None:
    orbit = simulate(THREE_STATES, 2000)
    assert orbit.drift < 1e-13
    last = orbit.values[-8:, 0]
    assert last.min() == pytest.approx(-4.6944, abs=1e-4)
    assert last.max() == pytest.approx(9.7086, abs=1e-4)
    assert (orbit.greedy[-8:][np.arange(8), THREE_STATES.updated] == THREE_STATES.claimed).all()


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
    with pytest.raises(ValueError, match="update: the compiled process knows"):
        simulate(THREE_STATES, 1, update="di")
    with pytest.raises(ValueError, match="periods: expected at least one"):
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


def test_the_conjecture_is_refuted() -> None:
    verdict = checks.check_conjecture().require("false as stated")
    assert verdict.margin is not None
    assert verdict.margin < -4.3
    assert all(row["largest multiplier"] < 1 for row in verdict.evidence)


def test_the_constant_step_is_refuted() -> None:
    verdict = checks.check_constant_step().require("false as stated")
    assert verdict.evidence[0]["period"] == 109_662


@pytest.mark.parametrize(
    "broken",
    [
        ce.without_variation(),
        replace(THREE_STATES, discount=Fraction(2, 5)),
        replace(THREE_STATES, phases=(Phase(2, Fraction(10), 1), *THREE_STATES.phases[1:])),
    ],
    ids=["equal weights", "small discount", "wrong greedy action"],
)
def test_no_cycle_is_certified_where_there_is_none(broken: CycleExample) -> None:
    checks.check_conjecture(broken, spreads=("0",)).require("open")


def test_a_box_without_the_fixed_point_is_refused() -> None:
    """One update towards an action that stays greedy has no fixed point."""
    drifting = replace(
        THREE_STATES,
        phases=tuple(Phase(s, Fraction(1), a) for s, a in ((0, 2), (1, 0), (2, 1))),
        start=((0.0, 0.0, 5.0), (5.0, 0.0), (0.0, 5.0)),
    )
    with pytest.raises(NotCertifiedError):
        certify(drifting)


def test_an_unstable_cycle_is_not_called_attracting() -> None:
    certificate = certify(THREE_STATES.with_spread("2/5"))
    assert not certificate.attracting
    checks.check_conjecture(spreads=("2/5",)).require("open")


def test_varying_step_sizes_do_not_pass_for_constant_ones() -> None:
    checks.check_constant_step(THREE_STATES).require("open")


# What holds


def test_what_holds() -> None:
    for check in (
        checks.check_other_updates,
        checks.check_elimination,
        checks.check_small_discount,
        checks.check_one_successor,
        checks.check_two_actions,
        checks.check_hardened,
    ):
        check().require("holds")


def test_what_holds_can_be_broken() -> None:
    checks.check_other_updates(("ce",)).require("false as stated")
    checks.check_elimination(bound=0.5).require("false as stated")
    checks.check_small_discount(discount=0.9).require("false as stated")
    checks.check_small_discount(n_mdps=2, factor=1.0).require("false as stated")
    checks.check_one_successor(ce.draw_near_cycle).require("false as stated")
    checks.check_two_actions(n_actions=3).require("false as stated")
    checks.check_hardened(weights=(1, 2, 3)).require("false as stated")


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


# The hunt


@pytest.mark.parametrize("weighting", ["constant", "on-policy"])
def test_the_committed_hunt_found_nothing(weighting: str) -> None:
    result = hunt.load(weighting)
    assert result["mdps"] >= (100_000 if weighting == "constant" else 50_000)
    assert not ce.unresolved(result)


def test_a_block_of_the_hunt_is_recomputed() -> None:
    checks.check_constant_weights().require("open")


def test_a_suspect_that_was_not_followed_is_noticed() -> None:
    result = hunt.load("on-policy")
    dropped = result["followed"].pop()
    assert ce.unresolved(result) == [[dropped["family"], dropped["block"], dropped["index"]]]


def test_following_runs_the_same_mdp() -> None:
    followed = hunt.follow("three", 0, 0, 3, "constant", 2000)
    batch = hunt.draw("three", 0, 0)
    hunt._run(batch, np.array([3]), "constant", 2000)
    best = batch.mdps.optimum()
    gap = (best - batch.mdps.values(batch.theta))[3].max()
    assert followed.largest_gap == pytest.approx(gap / np.abs(best[3]).max())
    with pytest.raises(ValueError, match="weighting: expected one of"):
        hunt.follow("three", 0, 0, 3, "random", 2000)


def test_a_falsified_hunt_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    result = hunt.load("constant")
    result["families"]["near"]["first_block"]["dropping"] += 1
    monkeypatch.setattr(hunt, "load", lambda _: result)
    with pytest.raises(ValueError, match="differ in \\['dropping'\\]"):
        checks.check_constant_weights(("near",))


def test_the_hunt_sees_a_cycle(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the three-state MDP and its periodic schedule in place of constant weights."""
    batch = hunt.draw("near", 0, 0, 2)
    mdps = batch.mdps
    mdps.rewards[:] = THREE_STATES.tables.rewards
    mdps.discount[:] = 0.9
    for s, row in enumerate(THREE_STATES.start):
        batch.theta[:, s, : len(row)] = row
    late = ce.oscillation(
        mdps.rewards[0],
        mdps.successors[0],
        mdps.n_actions,
        0.9,
        THREE_STATES.weights,
        batch.theta[0],
    )
    assert late[0] > 14.0
    monkeypatch.setattr(hunt, "draw", lambda *_: batch)
    monkeypatch.setattr(hunt, "HORIZONS", (2000,))
    monkeypatch.setattr(hunt, "SUSPECT", -1.0)
    monkeypatch.setattr(hunt, "TOLERANCE", -1.0)
    assert hunt.hunt_block("near", 0, 0, n=2).suspects == (0, 1)


def test_the_hunt_refuses_unknown_names() -> None:
    with pytest.raises(ValueError, match="family: expected one of"):
        hunt.draw("five", 0, 0)
    with pytest.raises(ValueError, match="weighting: expected one of"):
        hunt.hunt_block("three", 0, 0, weighting="random")


def test_the_command_prints_the_hunt(capsys: pytest.CaptureFixture[str]) -> None:
    from pu_lib.__main__ import main

    assert main(["hunt", "--mdps", "0"]) == 2
    assert "--mdps: expected at least one MDP" in capsys.readouterr().err


def test_statuses_are_the_ledger_s() -> None:
    from pu_lib.claims import ledger

    recorded = {claim.id: claim.status for claim in ledger()}
    assert recorded["sec:conv/ce-conjecture"] is Status.FALSE
    assert recorded["sec:conv/ce-constant"] is Status.OPEN
