"""Conversion and validation of numbers and arrays."""

import os
from collections import deque
from fractions import Fraction

import numpy as np
import pytest

from pu_lib.arrays import (
    as_bool_array,
    as_float,
    as_float_array,
    as_generator,
    as_int,
    first_index,
    require_distributions,
    safe_repr,
)


@pytest.mark.parametrize(
    "value",
    [
        [1, 2.5],
        (np.float32(1.0), 2.5),
        [Fraction(1), Fraction(5, 2)],
        np.array([1, Fraction(5, 2)], dtype=object),
        np.array([1.0, 2.5], dtype=np.longdouble),
    ],
    ids=["list", "tuple of float32", "fractions", "objects", "long doubles"],
)
def test_real_numbers_become_floats(value):
    array = as_float_array("x", value)
    assert array.dtype == np.float64
    assert array.tolist() == [1.0, 2.5]


def test_integers_of_any_size_become_floats():
    assert as_float_array("x", [2**70, 1]).tolist() == [2.0**70, 1.0]


def test_float_arrays_are_copied_only_on_request():
    zeros = np.zeros(2)
    assert as_float_array("x", zeros) is zeros
    assert not np.shares_memory(as_float_array("x", zeros, copy=True), zeros)


class Tracked:
    """Object whose conversion raises, such as a PyTorch tensor that requires a gradient."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("requires grad; use tensor.detach()")


REJECTED = {
    "text": ("12", "text"),
    "numbers as text": (["1", "2"], "text"),
    "one text among numbers": ([1.0, "2"], "text"),
    "bytes": ([b"1"], "text"),
    "booleans": ([True, False], "booleans"),
    "dates": (np.array(["2022-03-28"], dtype="datetime64[D]"), "dates"),
    "durations": (np.array([3], dtype="timedelta64[s]"), "durations"),
    "complex numbers": ([1j, 2.0], "complex numbers"),
    "complex without imaginary part": (np.array([1 + 0j]), "complex numbers"),
    "a masked array": (np.ma.masked_array([1.0, 2.0], [False, True]), "masked"),
    "a masked array in a list": ([np.ma.array([1.0, 2.0], mask=[1, 0]), [0.0, 2.0]], "masked"),
    "a masked array deep in tuples": (([(np.ma.array([1.0], mask=[1]),)],), "masked"),
    "a boolean among numbers": ([True, 0.5], "booleans"),
    "a NumPy boolean among numbers": ([[0.5], [np.True_]], "booleans"),
    "an array of booleans among numbers": ([np.array([True]), np.array([0.5])], "booleans"),
    "a boolean in a deque": (deque([0.5, True]), "booleans"),
    "an array that cannot be converted": (Tracked(), "Tracked cannot be converted: requires grad"),
    "rows of different lengths": ([[1.0, 2.0], [1.0]], "equal length"),
    "nothing": (None, "None"),
    "an object": ([object()], "object"),
    "a boolean among objects": (np.array([Fraction(1), True], dtype=object), "True"),
    "a record": (np.zeros(1, dtype=[("a", float)]), "records"),
    "nan": ([0.0, np.nan], r"finite numbers, got nan at index \(1,\)"),
    "infinity": ([[0.0, 1.0], [np.inf, 0.0]], r"finite numbers, got inf at index \(1, 0\)"),
    "a huge integer": ([10**400], "1.8e308"),
}


@pytest.mark.parametrize(("value", "sentence"), REJECTED.values(), ids=REJECTED)
def test_as_float_array_rejects_other_values(value, sentence):
    with pytest.raises(ValueError, match=f"(?s)^reward: .*{sentence}"):
        as_float_array("reward", value)


def test_as_float_array_checks_axes_shape_and_range():
    for value, conditions, sentence in (
        (3.0, {"axes": 1}, "at least 1 axis, got the single number 3.0"),
        ([3.0], {"axes": 2}, "at least 2 axes, got 1"),
        ([3.0], {"shape": (2,)}, r"expected shape \(2,\), got \(1,\)"),
        ([1.0, -2.0], {"low": 0.0}, r"numbers >= 0, got -2.0 at index \(1,\)"),
        ([1.0, 2.0], {"low": 0.0, "high": 1.0}, r">= 0 and <= 1, got 2.0"),
    ):
        with pytest.raises(ValueError, match=f"^x: .*{sentence}"):
            as_float_array("x", value, **conditions)
    inside = as_float_array("x", [[0.0, 1.0]], axes=2, shape=(1, 2), low=0.0, high=1.0)
    assert inside.shape == (1, 2)


def test_as_float_returns_one_number():
    assert as_float("x", Fraction(1, 2)) == 0.5
    with pytest.raises(ValueError, match=r"x: expected one number, got an array of shape \(1,\)"):
        as_float("x", [1.0])
    with pytest.raises(ValueError, match=r"x: expected numbers <= 1, got 2.0.$"):
        as_float("x", 2, high=1.0)
    with pytest.raises(ValueError, match=r"x: .*booleans"):
        as_float("x", True)


def test_as_int_does_not_overflow():
    n = as_int("n", np.int8(100))
    assert type(n) is int
    assert n * 2 == 200
    for value in (2.0, True, np.True_, "2", None):
        with pytest.raises(ValueError, match="n: expected an integer, got"):
            as_int("n", value)
    with pytest.raises(ValueError, match="n: expected an integer, at least 2 and at most 5, got 1"):
        as_int("n", 1, low=2, high=5)
    with pytest.raises(ValueError, match=r"n: .*at most 5, got 6"):
        as_int("n", 6, high=5)


def test_as_bool_array_rejects_numbers():
    flags = np.array([True, False])
    read = as_bool_array("terminal", flags, (2,))
    assert read.tolist() == [True, False]
    assert not np.shares_memory(read, flags)
    masked = [np.ma.array(True, mask=True), False]
    for value in ([0, 1], [True], ["yes", "no"], np.ma.masked_array([True, False]), masked):
        with pytest.raises(ValueError, match="terminal: expected booleans"):
            as_bool_array("terminal", value, (2,))


def test_require_distributions_rejects_invalid_rows():
    require_distributions("pi", np.array([[0.25, 0.75], [1.0, 0.0]]))
    for rows in ([[0.5, 0.5], [1.5, -0.5]], [[0.5, 0.5], [0.5, 0.6]], [[0.5, 0.5], [1e308, 1e308]]):
        with pytest.raises(ValueError, match=r"pi: expected policies .* at row \(1,\)"):
            require_distributions("pi", np.array(rows), "policies")


def test_first_index_returns_the_position_of_the_first_true_entry():
    assert first_index(np.array([[False, False], [False, True]])) == (1, 1)


def test_safe_repr_cuts_at_eighty_characters():
    assert safe_repr("x" * 78) == f"'{'x' * 78}'"
    assert safe_repr("x" * 79) == f"'{'x' * 76}..."
    assert safe_repr([np.float64(3.0), np.int64(2)]) == "[3.0, 2]"
    assert safe_repr(10**5000) == "more than four thousand digits"


def bytes_of_child() -> bytes:
    """Return eight bytes that a forked child draws without a seed."""
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        try:
            os.write(writing, as_generator(None).bytes(8))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_processes_draw_different_numbers() -> None:
    as_generator(None)
    drawn = {bytes_of_child(), bytes_of_child(), as_generator(None).bytes(8)}
    assert len(drawn) == 3
    assert {len(each) for each in drawn} == {8}
    assert as_generator(None) is as_generator(None)
