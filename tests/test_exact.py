"""Tests of exact numbers: parsing, signs and linear systems."""

import threading
from fractions import Fraction
from math import isclose, prod, sqrt

import pytest
from flint import arb, ctx
from hypothesis import given
from hypothesis import strategies as st

from pu_lib.chapters.domino.quantities import domino
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.exact import (
    Undecided,
    ball,
    certified,
    exact,
    is_one,
    precision,
    root_sum,
    sign,
    solve,
)


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        (3, Fraction(3)),
        ("0.3", Fraction(3, 10)),
        ("3/10", Fraction(3, 10)),
        ("1e-3", Fraction(1, 1000)),
        (Fraction(2, 7), Fraction(2, 7)),
        (0.3, Fraction(3, 10)),
        (1e-7, Fraction(1, 10**7)),
        (2.0, Fraction(2)),
    ],
)
def test_exact_reads_decimals_as_written(given_, expected):
    assert exact(given_) == expected


@pytest.mark.parametrize("given_", ["a third", "nan", float("inf"), "1/0", ""])
def test_exact_rejects_other_values(given_):
    with pytest.raises(ValueError, match="eta: expected an integer"):
        exact(given_, "eta")


@given(st.fractions(-100, 100))
def test_ball_contains_its_rational(x):
    assert (ball(x) * x.denominator - x.numerator).contains(arb(0))
    assert sign(ball(x) - ball(x + Fraction(1, 10**6))) == -1


def test_sign_is_proved_or_raises_undecided():
    assert [sign(arb(x)) for x in (-2, 0, 5)] == [-1, 0, 1]
    assert sign(arb(1) - arb(2)) == -1
    assert sign(arb(2) - arb(2)) == 0
    with pytest.raises(Undecided, match="not decided"):
        sign(ball("0.3") * 10 - 3)


def test_certified_raises_the_precision_until_decided():
    used = []

    def compare():
        used.append(ctx.prec)
        return sign((arb(10) ** 80 + 1).sqrt() - arb(10) ** 40) < 0

    before = ctx.prec
    assert certified(compare, bits=64) is False
    assert used == [64, 128, 256, 512]
    assert ctx.prec == before


def test_threads_do_not_change_each_others_precision():
    before, used = ctx.prec, []
    entered = threading.Event()

    def low():
        with precision(30):
            entered.set()
            used.append(ctx.prec)

    other = threading.Thread(target=low)
    with precision(300):
        other.start()
        assert not entered.wait(0.1)
        used.append(ctx.prec)
    other.join(timeout=600)
    assert used == [300, 30]
    assert ctx.prec == before


def test_certified_raises_undecided_at_an_exact_tie():
    with pytest.raises(Undecided, match="equal, or closer"):
        certified(lambda: sign(arb(2).sqrt() * arb(3).sqrt() - arb(6).sqrt()), max_bits=1024)


@pytest.mark.parametrize("change", [0, 1])
def test_is_one_is_correct_for_large_exponents(change):
    half, n = Fraction(1, 2), 10**280
    for powers in (
        [(Fraction(4), n), (half, 2 * n + change)],
        [(Fraction(6), n), (Fraction(10), -n), (Fraction(5, 3), n + change)],
        [(Fraction(12), 2 * n), (Fraction(18), -n), (half, 3 * n + change), (Fraction(1), 5)],
    ):
        assert is_one(*powers) == (change == 0), powers
    assert is_one()


@given(st.lists(st.tuples(st.fractions(Fraction(1, 9), 9, max_denominator=9), st.integers(-3, 3))))
def test_is_one_agrees_with_the_computed_product(powers):
    product = prod((x**e for x, e in powers), start=Fraction(1))
    assert is_one(*powers) == (product == 1)
    assert is_one(*powers, (product, -1))


def test_root_sum_cancels_equal_roots():
    assert root_sum([(Fraction(2), 4), (Fraction(-1), 1)]) == {}
    assert root_sum([(Fraction(1), 2), (Fraction(1), 8)]) == {2: Fraction(3, 4)}
    assert root_sum([(Fraction(1), 27), (Fraction(1), 12)]) == {3: Fraction(5, 18)}


@given(st.lists(st.tuples(st.fractions(-9, 9, max_denominator=9), st.integers(1, 500)), max_size=8))
def test_root_sum_does_not_change_the_value(terms):
    value = sum(float(c) / sqrt(t) for c, t in terms)
    normal = sum(float(c) * sqrt(r) for r, c in root_sum(terms).items())
    assert isclose(value, normal, abs_tol=1e-9)


def test_solve_works_in_every_arithmetic():
    matrix = [[3, -1, 0], [-1, 4, -2], [0, -1, 2]]
    right = [Fraction(2), Fraction(-1), Fraction(1)]
    solution = solve(matrix, right)
    assert [sum(x * y for x, y in zip(row, solution, strict=True)) for row in matrix] == right
    floats = solve(matrix, [float(x) for x in right])
    balls = solve(matrix, [ball(x) for x in right])
    for x, y, z in zip(solution, floats, balls, strict=True):
        assert y == pytest.approx(float(x), rel=1e-14)
        assert z.contains(ball(x))
        assert z.rad() < 1e-10


def test_solve_works_for_one_equation():
    assert solve([[Fraction(2)]], [Fraction(3)]) == [Fraction(3, 2)]
    assert solve([[arb(2)]], [arb(3)])[0] == arb(3) / 2


@pytest.mark.parametrize(
    ("limits", "tried"),
    [
        ({"bits": 64, "max_bits": 300}, [64, 128, 256]),
        ({"bits": 64, "max_bits": 256}, [64, 128, 256]),
        ({}, [2**k for k in range(7, 15)]),
    ],
)
def test_certified_doubles_the_precision_up_to_the_limit(limits, tried):
    used = []

    def undecided():
        used.append(ctx.prec)
        raise Undecided("too near")

    with pytest.raises(Undecided, match="too near: two of the numbers"):
        certified(undecided, **limits)
    assert used == tried


@pytest.mark.parametrize(
    "text", ["1e3000000000", "1e-100000000", "2.5E+4301", " 1e4_301 ", "1" * 5000]
)
def test_numbers_of_too_many_digits_are_not_expanded(text):
    for call in (
        lambda: exact(text, "eta"),
        lambda: ball(text),
        lambda: count(1, "di", text),
        lambda: count(1, "di", 1, f"geometric:{text}"),
        lambda: count(1, "pg-es", 1, p=text),
        lambda: count(1, "di", 1, start=text),
        lambda: domino(3, "di", text),
    ):
        with pytest.raises(ValueError, match=r"4300 digits|finite decimal") as raised:
            call()
        assert len(str(raised.value)) < 300


def test_numbers_up_to_4300_digits_are_read():
    assert exact("1e4300") == 10**4300
    assert exact("1E-4300") == Fraction(1, 10**4300)
