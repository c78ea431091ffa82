"""Proved bounds are the best that are proved: a check notices if another one takes its place.

The recorder measures how sharp a bound is: the relative tightening that a check would refuse, and
in how many comparisons the bound is attained.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from pu_lib.chapters.convergence import quantities as convergence
from pu_lib.chapters.unlearning import quantities as unlearning
from pu_lib.claims import Judgement, Status, Tally, judge
from pu_lib.claims.formulas import Formula, formula, sqrt

judged = cache(judge)


def tally(found: Judgement, compared: str) -> Tally:
    """Return the comparison as corrected that starts with those words."""
    (chosen,) = [
        row
        for row in found.finding.tallies
        if row.compared.startswith(compared) and not row.as_printed
    ]
    return chosen


@pytest.mark.parametrize(
    ("claim", "compared", "sharpness"),
    [
        ("thm:unlearn/iii", "n' ≤", 0.3632),
        ("thm:unlearndecay/i/pg-sm", "n' ≥", 0.0244),
        ("thm:unlearndecay/ii", "n' ≤ $3n", 0.1219),
        ("thm:unlearndecay/ii", r"n' ≤ $\left", 0.1097),
        ("thm:unlearndecay/iii", "n' ≤", 0.5383),  # not sharp: less than half of it is reached
        ("lem:Xn<", "$X_n$, $n=1$", 0.0),
        ("lem:Xn<", "$X_n$, $n>1$", 0.0025),
        ("lem:Xn<sqrt", "$X_n$, $n=1$", 0.0),
        ("lem:Xn<sqrt", "$X_n$, $n>1$", 0.0108),
    ],
)
def test_a_corrected_bound_holds_and_comes_as_near_as_the_book_says(
    claim: str, compared: str, sharpness: float
) -> None:
    found = tally(judged(claim), compared)
    assert found.failures == 0
    assert found.sharpness == pytest.approx(sharpness, abs=5e-5)


@pytest.mark.parametrize(
    ("claim", "attained", "comparisons"),
    [
        ("thm:unlearn/i", 4, 64),  # by the uniform density
        ("thm:unlearn/i/pg-sm", 90, 144),
        ("book:pg-es-retraces", 35, 192),
        ("thm:unlearn/ii", 800, 800),
    ],
)
def test_a_bound_is_attained_as_often_as_the_book_says(
    claim: str, attained: int, comparisons: int
) -> None:
    found = tally(judged(claim), "n'")
    assert (found.failures, found.attained, found.comparisons) == (0, attained, comparisons)


@pytest.mark.parametrize(
    ("claim", "bound", "weaker"),
    [
        ("thm:unlearn/i/pg-sm", "pg_bound", unlearning.pg_bound_printed),
        ("thm:unlearn/iii", "ce_bound", unlearning.ce_bound_printed),
        ("thm:unlearndecay/iii", "decaying_ce_bound", unlearning.decaying_ce_bound_printed),
    ],
)
def test_a_weaker_bound_is_no_longer_the_best(
    claim: str, bound: str, weaker: Formula, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = tally(judged(claim), "n'")
    monkeypatch.setattr(unlearning, bound, weaker)
    found = judge(claim)
    assert found.finding.status is found.claim.status
    assert tally(found, "n'").sharpness > best.sharpness + 1e-4
    assert found.differences


@formula
def tighter(n):
    return 3 * n - 3 * sqrt(n) + 1


def test_a_tighter_bound_that_no_count_breaks_changes_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No proof gives 3n - 3 sqrt(n) + 1, though all counts tried obey it."""
    claim = "thm:unlearndecay/i/pg-sm"
    proved = tally(judged(claim), "n'")
    monkeypatch.setattr(unlearning, "decaying_pg_bound", tighter)
    found = judge(claim)
    assert found.finding.status is Status.CORRECTED
    assert proved.worst[0].slack == 2.0 > tally(found, "n'").worst[0].slack == 1.0
    assert tally(found, "n'").sharpness < proved.sharpness / 5
    assert any(r"$3n-3\sqrt{n}+1$' is not recorded" in row for row in found.differences)


@pytest.mark.parametrize(
    ("bound", "exact", "nearest"),
    [
        (unlearning.ce_bound, unlearning.count(3000, "ce", "0.01", strict=True), 1.65),
        (
            unlearning.decaying_ce_bound,
            unlearning.count(3000, "ce", "0.01", "inverse-sqrt", strict=True),
            2.0,
        ),
    ],
)
def test_bounds_of_cross_entropy_are_within_a_factor_after_many_updates(
    bound, exact: float, nearest: float
) -> None:
    assert exact < bound(3000, Fraction(1, 100)) <= nearest * exact


def test_the_decaying_bound_of_softmax_is_met_up_to_a_hundredth_after_many_updates() -> None:
    exact = unlearning.count(1000, "pg-sm", "0.01", "inverse-sqrt")
    assert exact / 1.013 <= unlearning.decaying_pg_bound(1000) < exact


@pytest.mark.parametrize("spent", [1e-6, 0.1, 2.0])
def test_the_key_lemma_is_met_by_short_steps(spent: float) -> None:
    """In one step of two arms from the uniform policy 1/pi rises as promised, and no more."""
    pi = convergence.adversarial_run([1.0, 0.0], "first", [spent])
    rise = 1 / pi[1, 1] - 1 / pi[0, 1]

    def promised(constant: float) -> float:
        return 1 / convergence.key_lemma_bound(0.5, 1.0, 2, spent, constant) - 2

    assert promised(0.495) < promised(0.5) <= rise * (1 + 1e-6)
    if spent == 1e-6:
        assert promised(0.495) < 0.995 * rise < rise <= promised(0.5) * 1.00001


def test_the_threshold_of_the_softmax_condition_is_the_least_that_is_needed() -> None:
    """The weight that the condition needs at its easiest is 1 to within a thousandth."""
    finding = judge("sec:gravity/pg-sm-sufficient").finding
    pi, q = np.array(finding.instance["pi"]), np.array(finding.instance["q"])
    assert 1 < finding.figures["least weight that the condition needs"] < 1.001
    assert pi @ q > 0.99


def test_the_floor_of_probabilities_is_met_up_to_the_constant_before_the_exponential() -> None:
    """Weights M leave e^(-2M) of a small probability and more; e^(-3M) is far from what is left."""
    pi = convergence.adversarial_run([1.0, 0.0], "first", [100.0], np.array([-2.0, 2.0]))
    lost = -math.log(pi[1, 1] / pi[0, 1])
    floors = [
        -math.log(convergence.necessity_floor(1.0, 2, 100.0, factor)) for factor in (1.0, 1.5)
    ]
    assert lost <= floors[0] * 1.001
    assert lost > 0.9 * floors[0]
    assert lost < 0.9 * floors[1]
