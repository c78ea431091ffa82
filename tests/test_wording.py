"""Numbers as people write them, sentences with places, and how a judged claim is drawn."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.spoken import Spoken, box, listed
from pu_lib.verdict import Check, Status, Verdict, Worst, judged
from pu_lib.wording import figures_in, fill, lined, number, words

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
        (12.0, "12"),
        (1e6, "$10^{6}$"),
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


def test_a_place_without_a_figure_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"thm:x: no figure 'm' .* there are: n\."):
        fill("It takes {m}.", {"n": 5}, "thm:x")


def test_a_table_says_once_what_is_the_same_in_every_row() -> None:
    rows = [{"n": 1, "margin": 0.0}, {"n": 2, "margin": 0.0}, {"n": 2, "margin": 0.0}]
    table = lined(rows)
    assert table.count("<tr>") == 3  # the head and two rows
    assert "In every row margin = 0." in table
    assert "<td>0</td>" not in table
    assert lined([]) == ""


def test_what_was_found_is_told_by_status() -> None:
    ours, printed = Worst("the bound minus n'"), Worst("the bound minus n'")
    ours.add(2.0, n=1)
    assert judged(ours).found == "Over 1 instance the bound minus n' is at least 2."
    printed.add(-3.0, n=4)
    corrected = judged(ours, printed, figures={"n'": 7})
    assert corrected.found.startswith(
        "As printed, the bound minus n' is \N{MINUS SIGN}3; corrected"
    )
    assert (corrected.figure("n"), corrected.figure("n'"), corrected.figure("instances")) == (
        4,
        7,
        1,
    )
    assert corrected.figure("margin of row 1") == -3.0
    with pytest.raises(KeyError):
        corrected.figure("n of row 2")
    assert judged(printed).found.endswith("in the worst of 1 instance.")


def test_errors_are_told_as_errors() -> None:
    worst = Worst("1e-12 minus the error of the step")
    worst.add(1e-12 - 2e-15)
    assert judged(worst).found == (
        r"Over 1 instance the error of the step is at most $2\cdot10^{-15}$ (allowed: $10^{-12}$)."
    )


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


def test_several_claims_are_lines_that_open() -> None:
    drawn = listed([spoken(Status.HOLDS), spoken(Status.FALSE)])
    assert drawn.count("<summary><span class") == 2
    assert drawn.count("verdict-status") == 2


def test_a_claim_without_a_check_says_so() -> None:
    verdict = Verdict(Status.PENDING, None, "No check yet.")
    assert "There is no check yet." in box(Spoken("X", "x", verdict, None))


def test_whole_numbers_below_a_million_keep_their_digits() -> None:
    assert [number(x) for x in (12345.0, 999999.0)] == [f"12{THIN}345", f"999{THIN}999"]
