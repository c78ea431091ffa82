"""Numbers as people write them, sentences with places, and how a judged claim is drawn."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.spoken import Spoken, box, listed
from pu_lib.verdict import Check, Status, Verdict, Worst, judged
from pu_lib.wording import figures_in, fill, lined, number, percent, prose, words

THIN = "\N{NARROW NO-BREAK SPACE}"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (8452, "8452"),
        (109662, f"109{THIN}662"),
        (-93, "\N{MINUS SIGN}93"),
        (0.9898812, "0.9899"),
        (3.58737e-118, r"$3.6\cdot10^{-118}$"),
        (1e-12, "$10^{-12}$"),
        (math.inf, r"$\infty$"),
        (-math.inf, r"$-\infty$"),
        (12.0, "12"),
        (1e6, "$10^{6}$"),
        (-1e6, "$-10^{6}$"),
    ],
)
def test_numbers_have_four_digits_and_no_exponents(value: float, text: str) -> None:
    assert number(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.True_, "yes"),
        (np.float64(0.25), "0.25"),
        (Fraction(1, 2), "1/2"),
        ((Fraction(1, 2), 1), "(1/2, 1)"),
        (np.array([0.5, 1.0]), "(0.5, 1)"),
        ("pg-sm", "PG-SM"),
        ("37/35", "37/35"),
        (None, "none"),
        ({"n": 3}, "n = 3"),
    ],
)
def test_values_read_like_words(value: object, text: str) -> None:
    assert words(value) == text


def test_places_are_filled_outside_formulas_only() -> None:
    sentence = r"From $\frac{1}{2}$ it takes {n'} updates."
    assert figures_in(sentence) == ["n'"]
    assert fill(sentence, {"n'": 5}) == r"From $\frac{1}{2}$ it takes 5 updates."


def test_shares_are_percentages_where_a_sentence_asks_for_them() -> None:
    verdict = Verdict(Status.HOLDS, None, "", ({"share": 0.98812},), figures={"p": 0.25})
    assert verdict.figure("p %") == percent(0.25) == "25\N{NO-BREAK SPACE}%"
    assert verdict.figure("share of row 1 %") == "98.81\N{NO-BREAK SPACE}%"
    assert percent(0.145, 1) == "14.5\N{NO-BREAK SPACE}%"


@pytest.mark.parametrize(
    ("typed", "printed"),
    [
        ("DI's count", "DI\N{RIGHT SINGLE QUOTATION MARK}s count"),
        ("the others' steps", "the others\N{RIGHT SINGLE QUOTATION MARK} steps"),
        ("n' and X_n' - 1", "n&#x27; and X_n&#x27; - 1"),
        ('"a few".', "\N{LEFT DOUBLE QUOTATION MARK}a few\N{RIGHT DOUBLE QUOTATION MARK}."),
    ],
)
def test_quotation_marks_are_those_of_print_and_primes_stay(typed: str, printed: str) -> None:
    assert prose(typed) == printed


def test_a_place_without_a_figure_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"thm:x: no figure 'm' .* there are: n\."):
        fill("It takes {m}.", {"n": 5}, "thm:x")


def test_a_table_says_once_what_is_the_same_in_every_row() -> None:
    one, other = {"n": 1, "eta": 5, "margin": 0.0}, {"n": 2, "eta": 5, "margin": 0.0}
    table = lined([one, other, other])
    assert table.count("<tr>") == 3  # the head and two rows
    assert "<p>In every row η = 5.</p>" in table, "the margin stands above the table"
    assert "<td>0</td>" not in table
    assert lined([one]) == "<p>There n = 1, η = 5.</p>"
    assert lined([{"margin": 0.0}]) == lined([]) == ""


def test_an_instance_is_told_once() -> None:
    instance = {"n": 4, "bound": 7}
    row = {**instance, "margin": -3.0}
    found = Verdict(Status.FALSE, -3.0, "x", (row,), instance)
    assert found.measured() == "<p>Counterexample: n = 4, bound = 7.</p>"
    more = replace(found, evidence=({**row, "start": 2},))
    assert more.measured().endswith("<p>There n = 4, bound = 7, start = 2.</p>")
    part = Verdict(Status.REPRODUCED, 1.0, "x", ({"part": "y", "value": "2"},))
    assert part.measured() == ""
    assert replace(part, evidence=part.evidence * 2).measured() != ""


def test_what_was_found_is_told_by_status() -> None:
    ours, printed = Worst("the bound minus n'"), Worst("the bound minus n'")
    ours.add(2.0, n=1)
    assert judged(ours).found == "In the case tried the bound exceeds n' by at least 2."
    printed.add(-3.0, n=4)
    corrected = judged(ours, printed, figures={"n'": 7})
    assert corrected.found == (
        "As printed, the bound falls 3 short of n'. "
        "As corrected, in the case tried the bound exceeds n' by at least 2."
    )
    assert (corrected.figure("n"), corrected.figure("n'"), corrected.figure("instances")) == (
        4,
        7,
        1,
    )
    assert corrected.figure("margin of row 1") == -3.0
    with pytest.raises(KeyError):
        corrected.figure("n of row 2")
    assert judged(printed).found == "Here the bound falls 3 short of n'."


def test_errors_are_told_as_errors() -> None:
    worst = Worst("1e-12 minus the error")
    worst.add(1e-12 - 2e-15)
    assert judged(worst).found == (
        r"In the case tried the error is at most $2\cdot10^{-15}$ (allowed: $10^{-12}$)."
    )


@pytest.mark.parametrize(
    ("quantity", "margin", "told"),
    [
        ("the room", 1.0, "it holds"),
        ("room to the bounds", 0.0, "it holds"),
        ("the room of the bound, relative to it,", -0.5, "it fails by 0.5"),
        ("1e-3 minus the error", 0.001, "the error is no more than rounding (allowed: 0.001)"),
        ("0.1 less the gap, scaled,", 0.025, "the gap, scaled, is at most 0.075 (allowed: 0.1)"),
        ("0.1 - |x|", -0.4, "|x| reaches 0.5 (allowed: 0.1)"),
        ("minus the number of errors", 0.0, "the number of errors is 0"),
        ("minus the regret", -2.0, "the regret reaches 2"),
        ("minus the regret", 2.0, "the regret is at most \N{MINUS SIGN}2"),
        ("the bound over the gap, minus 1,", 2.5, "the bound is at least 3.5 times the gap"),
        ("the bound over the gap, minus 1,", -0.5, "the bound is only 0.5 times the gap"),
        ("the bound over it, minus 1,", 1e-12, "the bound is never below it, up to rounding"),
        ("the share less 0.98", 0.01, "the share is at least 0.99 (needed: 0.98)"),
        ("the share, minus 0.9,", -0.4, "the share is only 0.5 (needed: 0.9)"),
        ("n' minus n + 1", 0.0, "n' is never below n + 1"),
        ("the fall less the debt", 1e-12, "the fall is never below the debt, up to rounding"),
        ("the sum minus it, scaled,", 0.5, "the sum exceeds it by at least 0.5, scaled"),
        ("n' minus n", -1969, "n' falls 1969 short of n"),
        ("the lead", 0.0, "the lead is never negative"),
        ("the lead", 0.5, "the lead is at least 0.5"),
        ("the lead", -0.5, "the lead is \N{MINUS SIGN}0.5"),
    ],
)  # fmt: skip
def test_a_margin_is_told_in_the_terms_of_its_quantity(
    quantity: str, margin: float, told: str
) -> None:
    worst = Worst(quantity)
    worst.add(margin)
    head = "Here" if margin < 0 else "In the case tried"
    assert judged(worst).found == f"{head} {told}."


def check_nothing(extra: int = 0) -> Verdict:
    """Check nothing."""
    return Verdict(Status.HOLDS, None, f"It holds {extra}.")


def spoken(status: Status) -> Spoken:
    check = Check("thm:x", check_nothing, {}, {"one < zero": {}}, {"two": {}})
    return Spoken("Theorem 9", "It takes $n$ steps.", Verdict(status, 0.5, "Found."), check)


def test_a_claim_shows_its_sentence_and_folds_the_rest() -> None:
    drawn = box(spoken(Status.HOLDS))
    head, _, folded = drawn.partition("<details")
    assert "It takes" in head
    assert "Theorem 9" in head
    for hidden in ("Found.", "one &lt; zero", "It does not notice", "def check_nothing"):
        assert hidden in folded
        assert hidden not in head
    # what the check refuses never wears the badge of the claim
    assert drawn.count("verdict-status") == 1


def test_a_sentence_that_repeats_its_theorem_opens_with_the_rest() -> None:
    drawn = box(replace(spoken(Status.HOLDS), folded=True))
    head, _, folded = drawn.partition("</summary>")
    assert "Theorem 9" in head
    assert "It takes" not in head
    assert "It takes" in folded
    assert "Found." in folded


def test_several_claims_are_lines_that_open() -> None:
    drawn = listed([spoken(Status.HOLDS), spoken(Status.FALSE)])
    assert drawn.count("<summary><span class") == 2
    assert drawn.count("verdict-status") == 2


def test_a_claim_without_a_check_says_so() -> None:
    verdict = Verdict(Status.PENDING, None, "No check yet.")
    assert "There is no check yet." in box(Spoken("X", "x", verdict, None))


def test_whole_numbers_below_a_million_keep_their_digits() -> None:
    assert [number(x) for x in (12345.0, 999999.0)] == [f"12{THIN}345", f"999{THIN}999"]
