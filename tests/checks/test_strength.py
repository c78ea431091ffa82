"""Test that the record of the sharpness changes if a different bound replaces a proved bound.

The recorder measures the sharpness of a bound by the relative tightening at which a check fails
and by the number of comparisons in which the bound is attained.
"""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest

from pu_lib.chapters.convergence import quantities as convergence
from pu_lib.chapters.unlearning import quantities as unlearning
from pu_lib.claims import Judgement, Status, Tally, judge, recorded
from pu_lib.claims.formulas import Formula, formula, sqrt

judged = cache(judge)


def tally(judgement: Judgement, compared: str) -> Tally:
    """Return the tally of the corrected comparison that starts with the given words."""
    (chosen,) = [
        row
        for row in judgement.finding.tallies
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
        ("thm:unlearndecay/iii", "n' ≤", 0.5383),  # not sharp: no count reaches half of it
        ("lem:Xn<", "$X_n$, $n=1$", 0.0),
        ("lem:Xn<", "$X_n$, $n>1$", 0.0025),
        ("lem:Xn<sqrt", "$X_n$, $n=1$", 0.0),
        ("lem:Xn<sqrt", "$X_n$, $n>1$", 0.0108),
    ],
)
def test_sharpness_of_bounds_is_as_expected(claim: str, compared: str, sharpness: float) -> None:
    row = tally(judged(claim), compared)
    assert row.failures == 0
    assert row.sharpness == pytest.approx(sharpness, abs=5e-5)


@pytest.mark.parametrize(
    ("claim", "attained", "comparisons"),
    [
        ("thm:unlearn/i", 4, 64),  # attained by the uniform density
        ("thm:unlearn/i/pg-sm", 90, 144),
        ("book:pg-es-retraces", 35, 192),
        ("thm:unlearn/ii", 800, 800),
    ],
)
def test_number_of_equalities_is_as_expected(claim: str, attained: int, comparisons: int) -> None:
    row = tally(judged(claim), "n'")
    assert (row.failures, row.attained, row.comparisons) == (0, attained, comparisons)


@pytest.mark.parametrize(
    ("claim", "bound", "weaker"),
    [
        ("thm:unlearn/i/pg-sm", "pg_bound", unlearning.pg_bound_printed),
        ("thm:unlearn/iii", "ce_bound", unlearning.ce_bound_printed),
        ("thm:unlearndecay/iii", "decaying_ce_bound", unlearning.decaying_ce_bound_printed),
    ],
)
def test_weaker_bound_changes_the_record(
    claim: str, bound: str, weaker: Formula, monkeypatch: pytest.MonkeyPatch
) -> None:
    best = tally(judged(claim), "n'")
    monkeypatch.setattr(unlearning, bound, weaker)
    judgement = judge(claim)
    assert judgement.finding.status is judgement.claim.status
    assert tally(judgement, "n'").sharpness > best.sharpness + 1e-4
    assert judgement.differences


@formula
def tighter(n):
    return 3 * n - 3 * sqrt(n) + 1


def test_unproved_tighter_bound_changes_the_record(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The bound 3n - 3 sqrt(n) + 1 has no proof, although all tested counts obey it."""
    claim = "thm:unlearndecay/i/pg-sm"
    proved = tally(judged(claim), "n'")
    monkeypatch.setattr(unlearning, "decaying_pg_bound", tighter)
    judgement = judge(claim)
    assert judgement.finding.status is Status.CORRECTED
    assert proved.worst[0].slack == 2.0 > tally(judgement, "n'").worst[0].slack == 1.0
    assert tally(judgement, "n'").sharpness < proved.sharpness / 5
    assert any(r"$3n-3\sqrt{n}+1$' is not recorded" in row for row in judgement.differences)


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
def test_cross_entropy_bounds_are_within_a_factor(bound, exact: float, nearest: float) -> None:
    assert exact < bound(3000, Fraction(1, 100)) <= nearest * exact


def test_decaying_softmax_bound_is_nearly_an_equality() -> None:
    exact = unlearning.count(1000, "pg-sm", "0.01", "inverse-sqrt")
    assert exact / 1.013 <= unlearning.decaying_pg_bound(1000) < exact


@pytest.mark.parametrize("spent", [1e-6, 0.1, 2.0])
def test_key_lemma_bound_holds_with_equality_in_the_limit_of_short_steps(spent: float) -> None:
    """One short step from the uniform policy on two arms increases 1/pi by the bound."""
    pi = convergence.adversarial_run([1.0, 0.0], "first", [spent])
    rise = 1 / pi[1, 1] - 1 / pi[0, 1]

    def bound(constant: float) -> float:
        return 1 / convergence.key_lemma_bound(0.5, 1.0, 2, spent, constant) - 2

    assert bound(0.495) < bound(0.5) <= rise * (1 + 1e-6)
    if spent == 1e-6:
        assert bound(0.495) < 0.995 * rise < rise <= bound(0.5) * 1.00001


def test_softmax_condition_threshold_is_sharp() -> None:
    """The least weight that meets the condition is between 1 and 1.02."""
    figures = judge("sec:gravity/pg-sm-sufficient").finding.figures
    assert 1 < figures["least weight that meets it"] < 1.02


def test_necessity_bound_has_a_sharp_exponent() -> None:
    """Weights of sum M multiply a small probability by about e^(-2M), not by e^(-3M)."""
    pi = convergence.adversarial_run([1.0, 0.0], "first", [100.0], np.array([-2.0, 2.0]))
    lost = -math.log(pi[1, 1] / pi[0, 1])
    floors = [
        -math.log(convergence.necessity_floor(1.0, 2, 100.0, factor)) for factor in (1.0, 1.5)
    ]
    assert lost <= floors[0] * 1.001
    assert lost > 0.9 * floors[0]
    assert lost < 0.9 * floors[1]


COARSE = {
    "thm:unlearn/iii": 1.6,
    "thm:unlearndecay/iii": 2.2,
    "thm:domino/iii": 2.1,
    "sec:gravity/pg-es-weak": 2.2,
    "sec:gravity/escape": 2.8,
}
"""Claims with a proved bound on steps that is far from the counts, and a factor that is refused."""


@pytest.mark.parametrize(
    "claim",
    [
        "thm:unlearn/i/pg-sm",
        "thm:unlearn/iii",
        "thm:unlearndecay/i/pg-sm",
        "thm:unlearndecay/ii",
        "thm:unlearndecay/iii",
        "book:pg-es-retraces",
        "thm:domino/i/pg-sm",
        "thm:domino/ii",
        "thm:domino/iii",
        "book:pg-es-doubles",
        "sec:gravity/escape",
        "sec:gravity/pg-es-weak",
    ],
)
def test_counts_wrong_by_a_factor_of_three_halves_are_refused(claim: str) -> None:
    """An upper bound of sharpness s rejects counts that are too large by a factor 1 / (1 - s).

    A lower bound rejects counts that are too small by a factor 1 + s. The committed record has the
    sharpness of each bound. `COARSE` lists the bounds that reject only larger factors.
    """
    for row in recorded()[claim]["tallies"]:
        if (
            row["quantity"].split()[0] in ("n'", "steps")
            and "printed bound" not in row["limit"]
            and not row["as printed"]
            and not row["failures"]
        ):
            s = float(row["sharpness"])
            assert (1 / (1 - s) if row["relation"] == "≤" else 1 + s) <= COARSE.get(claim, 1.5)
