"""Tests of formatting: numbers and sentences with placeholders."""

import math
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.formatting import (
    fill_placeholders,
    format_number,
    format_value,
    percent,
    placeholders,
    to_html,
)

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
def test_format_number_rounds_to_significant_digits(value: float, text: str) -> None:
    assert format_number(value) == text


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
def test_format_value_returns_the_expected_text(value: object, text: str) -> None:
    assert format_value(value) == text


def test_braces_in_formulas_are_not_placeholders() -> None:
    sentence = r"From $\frac{1}{2}$ it takes {n'} updates."
    assert placeholders(sentence) == ["n'"]
    assert fill_placeholders(sentence, {"n'": 5}) == r"From $\frac{1}{2}$ it takes 5 updates."


def test_percent_rounds_and_adds_a_no_break_space() -> None:
    assert percent(0.25) == "25\N{NO-BREAK SPACE}%"
    assert percent(0.98812) == "98.81\N{NO-BREAK SPACE}%"
    assert percent(0.145, 1) == "14.5\N{NO-BREAK SPACE}%"


@pytest.mark.parametrize(
    ("source", "printed"),
    [
        ("DI's count", "DI\N{RIGHT SINGLE QUOTATION MARK}s count"),
        ("the others' steps", "the others\N{RIGHT SINGLE QUOTATION MARK} steps"),
        ("n' and X_n' - 1", "n&#x27; and X_n&#x27; - 1"),
        ('"a few".', "\N{LEFT DOUBLE QUOTATION MARK}a few\N{RIGHT DOUBLE QUOTATION MARK}."),
    ],
)
def test_to_html_curls_quotation_marks(source: str, printed: str) -> None:
    assert to_html(source) == printed


def test_missing_figure_raises() -> None:
    with pytest.raises(ValueError, match=r"thm:x: no figure 'm' .* there are: n\."):
        fill_placeholders("It takes {m}.", {"n": 5}, "thm:x")


def test_format_number_does_not_round_integers_below_a_million() -> None:
    assert [format_number(x) for x in (12345.0, 999999.0)] == [f"12{THIN}345", f"999{THIN}999"]
