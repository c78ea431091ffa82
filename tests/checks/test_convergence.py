"""Theorem 1 and its lemmas: the checks agree with the ledger and can be made to fail."""

import numpy as np
import pytest

from pu_lib.checks import convergence as checks
from pu_lib.domains import bandit, chain
from pu_lib.mdp import FiniteMDP
from pu_lib.theory import convergence as cv
from pu_lib.trajectories import run
from pu_lib.updates import UPDATES

CE = UPDATES["ce"]


def test_the_verdicts() -> None:
    checks.check_key_lemma().require("holds")
    checks.check_corollary_7().require("holds")
    checks.check_lemma_8_proof().require("holds with a correction")
    checks.check_theorem_1().require("holds with a correction")


def test_the_key_lemma_can_be_broken() -> None:
    checks.check_key_lemma(constant=1.0).require("false as stated")
    checks.check_key_lemma(update=CE).require("false as stated")


def test_sufficiency_can_be_broken() -> None:
    checks.check_lemma_8(constant=3.0).require("false as stated")
    checks.check_lemma_8(exponent=2.0, n_steps=200).require("open")
    checks.check_uniqueness(constant=3.0, n_steps=200).require("false as stated")


def test_monotony_is_not_ce_s() -> None:
    checks.check_corollary_7(update=CE).require("false as stated")


def test_the_printed_lines_fail_for_ce() -> None:
    checks.check_lemma_8_proof(update=CE).require("false as stated")


def test_necessity_can_be_broken() -> None:
    checks.check_necessity(factor=0.5).require("false as stated")
    # A state that is entered again, with a suboptimal action: there the lemma is right.
    loop = FiniteMDP([[[1.0], [1.0]]], [[1.0, 0.0]], [1.0], 0.5)
    checks.check_lemma_9({"entered again": loop}).require("holds")


def test_the_equivalence_needs_the_contested_states() -> None:
    checks.check_equivalence().require("holds")
    checks.check_equivalence(dry="contested").require("false as stated")
    with pytest.raises(ValueError, match="dry: expected"):
        checks.check_equivalence(dry="all")


def test_structure_of_the_chain_with_a_tie() -> None:
    facts = cv.structure(chain(5, discount=0.9, last_state_tie=True))
    assert facts.contested.tolist() == [True, True, True, False, False]
    assert facts.entered.tolist() == [False, True, True, True, False]


@pytest.mark.parametrize("name", list(cv.ADVERSARIES))
def test_adversaries_choose_tied_actions(name: str) -> None:
    pi = cv.adversarial_run([1.0, 1.0, 0.0], name, np.ones(50))
    assert (np.diff(pi[:, 2]) < 0).all()
    np.testing.assert_allclose(pi.sum(axis=1), 1.0)


def test_an_unsettled_run_is_refused() -> None:
    mdp = chain(5, discount=0.9)
    trajectory = run(mdp, UPDATES["mce"], 0)
    with pytest.raises(ValueError, match="greedy actions have not settled"):
        cv.optimality_bounds(mdp, trajectory, cv.structure(mdp))


def test_lines_of_the_proof_are_empty_when_all_actions_tie() -> None:
    trajectory = run(bandit([1.0, 1.0]), UPDATES["mce"], 3, weighting="uniform")
    lines = cv.lemma_8_lines(
        trajectory.policies[:, 0], trajectory.q[:, 0], trajectory.weights[:, 0], trajectory.q[-1, 0]
    )
    assert lines == {}


def test_the_witness_of_the_gap_is_exact() -> None:
    mdp = cv.tied_limit_mdp()
    dry = run(mdp, UPDATES["mce"], 20, weighting=np.array([1.0, 0.0, 0.0]))
    assert dry.q[-1, 0].tolist() == [0.25, 0.25]
    assert cv.structure(mdp).optimal.sum(axis=1).tolist()[:2] == [1, 1]
