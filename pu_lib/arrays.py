"""Validation of arguments: numbers, arrays and seeds.

NumPy converts silently: it parses strings, drops imaginary parts and masks, turns dates into
nanoseconds and reads ``True`` as 1. The functions here raise a `ValueError` that names the argument
instead.
"""

from __future__ import annotations

import operator
import os
import sys
from collections.abc import Callable, Sequence
from functools import cache
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np
import scipy.sparse
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Seed = int | np.random.Generator | None

underflow_to_zero = np.errstate(under="ignore")
"""Decorator of functions in which probabilities and small products may underflow to 0.

NumPy ignores underflow by default, and then these functions do not emit other floating-point
errors either. Without the decorator, they would raise after ``np.seterr(all="raise")``.
"""

# Names of the non-numeric kinds of dtype in error messages.
_KINDS = {
    "b": "booleans",
    "c": "complex numbers",
    "S": "text",
    "T": "text",
    "U": "text",
    "M": "dates",
    "m": "durations",
    "V": "records",
}
_LARGEST = sys.float_info.max


def as_float_array(
    name: str,
    value: ArrayLike,
    *,
    axes: int = 0,
    shape: tuple[int, ...] | None = None,
    low: float = -np.inf,
    high: float = np.inf,
    infinite: bool = False,
    copy: bool = False,
) -> Floats:
    """Return `value` as a float64 array, or raise a `ValueError` that names the argument.

    Text, booleans, dates, complex numbers, masked arrays, ragged rows and NaN are rejected.
    Infinite entries (unless `infinite` is true), entries outside [`low`, `high`], arrays with fewer
    than `axes` axes and shapes other than `shape` (if given) are rejected, too. A float64 array is
    returned without a copy unless `copy` is true.
    """
    # Fast path: loops pass floats and float64 arrays, whose kind need not be checked.
    if type(value) is np.ndarray and value.dtype == np.float64:
        array: Floats = value.copy() if copy else value
    elif type(value) in (float, np.float64):
        array = np.array(value)
    else:
        array = _as_floats(name, value, copy)
    if array.ndim < axes:
        raise ValueError(
            f"{name}: expected an array with at least {axes} "
            f"{'axis' if axes == 1 else 'axes'}, got "
            + (f"the single number {safe_repr(value)}." if array.ndim == 0 else f"{array.ndim}.")
        )
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}.")
    fine = ~np.isnan(array) if infinite else np.isfinite(array)
    if not fine.all():
        index, expected = first_index(~fine), "numbers" if infinite else "finite numbers"
        raise ValueError(f"{name}: expected {expected}, got {array[index]}{_at(index)}.")
    if low > -np.inf or high < np.inf:
        _require_range(name, array, low, high)
    return array


def as_float(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf) -> float:
    """Return `value` as one finite float in [`low`, `high`], or raise a `ValueError`."""
    # Fast path: no array for a Python number. NaN and infinity are outside any range here.
    if type(value) in (int, float) and max(low, -_LARGEST) <= value <= min(high, _LARGEST):
        return float(value)
    array = as_float_array(name, value, low=low, high=high)
    if array.ndim != 0:
        raise ValueError(f"{name}: expected one number, got an array of shape {array.shape}.")
    return float(array)


def as_int(
    name: str, value: SupportsIndex, *, low: int | None = None, high: int | None = None
) -> int:
    """Return `value` as a Python integer in [`low`, `high`], or raise a `ValueError`.

    NumPy integers are accepted; floats and booleans are rejected. A Python integer cannot overflow.
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected an integer, got {safe_repr(value)}.") from None
    if (low is not None and result < low) or (high is not None and result > high):
        ends = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        raise ValueError(f"{name}: expected an integer, {' and '.join(ends)}, got {result}.")
    return result


def as_bool_array(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return a copy of `value` as a boolean array of shape `shape`, or raise a `ValueError`.

    Numbers are rejected.
    """
    array = _as_array(name, value, "booleans", copy=True)
    if array.dtype != np.bool_ or array.shape != shape:
        raise ValueError(
            f"{name}: expected booleans of shape {shape}, got shape {array.shape} of type "
            f"{array.dtype}."
        )
    return array


def as_generator(seed: Seed) -> np.random.Generator:
    """Return the random generator of a seed.

    The generator of an integer is ``np.random.default_rng(seed)``, and a generator is returned
    unchanged. The generator of None is the same at every call in a process and is seeded by the
    operating system. Any other seed raises a `ValueError`.
    """
    if seed is None:
        return _unseeded()
    if isinstance(seed, np.random.Generator):
        return seed
    try:
        return np.random.default_rng(as_int("seed", seed, low=0))
    except ValueError:
        raise ValueError(
            "seed: expected None, a non-negative integer or a numpy Generator, "
            f"got {safe_repr(seed)}."
        ) from None


@cache
def _unseeded() -> np.random.Generator:
    """Return the generator that is used if no seed is given."""
    return np.random.default_rng()


if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
    # Otherwise all children would draw the numbers that the parent draws next.
    os.register_at_fork(after_in_child=_unseeded.cache_clear)


def as_csr(name: str, matrix: Any) -> scipy.sparse.csr_array:
    """Return a copy in CSR form; raise a `ValueError` if indices are out of range or inconsistent.

    SciPy's conversions and products do not check indices: they would read or write foreign memory.
    """
    try:
        if getattr(matrix, "format", "") in ("coo", "dia"):  # the constructors check the indices
            indices = matrix.coords if matrix.format == "coo" else matrix.offsets
            matrix = type(matrix)((matrix.data, indices), shape=matrix.shape)
        elif hasattr(matrix, "check_format"):  # csr, csc, bsr
            matrix.check_format(full_check=True)
        copy = scipy.sparse.csr_array(matrix, dtype=np.float64, copy=True)
        copy.check_format(full_check=True)
    except Exception as error:  # of any kind, because a damaged matrix can have any attributes
        raise ValueError(f"{name}: the sparse matrix is invalid ({error}).") from None
    return copy


def as_names(name: str, values: Sequence[str] | None, count: int) -> tuple[str, ...] | None:
    """Return `count` names as a tuple; raise a `ValueError` that shows the first invalid one."""
    if values is None:
        return None
    listed = values.tolist() if isinstance(values, np.ndarray) else values
    if isinstance(listed, str) or not isinstance(listed, Sequence) or len(listed) != count:
        raise ValueError(f"{name}: expected {count} names, got {safe_repr(values)}.")
    for value in listed:
        # Files store no lone surrogates, and NumPy drops null characters at the end of a text.
        if not (isinstance(value, str) and value and "\0" not in value and is_unicode(value)):
            raise ValueError(
                f"{name}: expected texts, not empty and without null characters or lone "
                f"surrogates, got {safe_repr(value)}."
            )
    return tuple(map(str, listed))


def is_unicode(text: str) -> bool:
    """Return whether a text has no lone surrogates, which no encoding of Unicode can write."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def require_distributions(name: str, rows: Floats, expected: str = "probabilities") -> None:
    """Raise a `ValueError` unless each row (last axis) is non-negative and sums to 1 within 1e-9.

    Entries must be finite; `expected` describes the rows in the error message.
    """
    # Rounding moves the sum of n probabilities by less than n ulp, 2e-16 n: 1e-9 suits all sizes
    # in use, and is far below any difference between policies that the book examines.
    with np.errstate(over="ignore"):
        outside = (rows < 0.0).any(axis=-1) | ~(np.abs(rows.sum(axis=-1) - 1.0) <= 1e-9)
    if outside.any():
        row = first_index(outside)
        raise ValueError(
            f"{name}: expected {expected} (non-negative, sum 1), got {rows[row]} at row {row}."
        )


def first_index(marks: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first true entry in C order; at least one entry must be true."""
    return tuple(int(i) for i in np.argwhere(marks)[0])


def safe_repr(value: object) -> str:
    """Return the `repr` of a value for an error message, truncated to 80 characters."""
    try:
        with np.printoptions(legacy="1.25"):  # 3.0 rather than np.float64(3.0)
            text = repr(value)
    except ValueError:  # an integer with more digits than Python converts to text
        return "more than four thousand digits"
    return text if len(text) <= 80 else text[:77] + "..."


def _as_array(name: str, value: ArrayLike, expected: str, copy: bool) -> NDArray[Any]:
    """Return `value` as an array; raise a `ValueError` if it is masked, ragged or no array."""
    try:
        array = np.array(value) if copy else np.asarray(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: expected an array of {expected} with rows of equal length, "
            f"got {safe_repr(value)}."
        ) from None
    except Exception as error:  # of the object's own conversion
        raise ValueError(
            f"{name}: expected an array of {expected}; {type(value).__name__} cannot be converted: "
            f"{error}"
        ) from None
    if _contains(value, _is_masked):
        raise ValueError(f"{name}: expected {expected}, got a masked array; fill it first.")
    return array


def _contains(value: object, test: Callable[[object], bool]) -> bool:
    """Return whether a value, or an entry of nested sequences, passes a test."""
    if test(value):
        return True
    if not isinstance(value, Sequence) or isinstance(value, (str, bytes)):
        return False
    others = set(map(type, value)) - {float, int}
    return bool(others) and any(type(x) in others and _contains(x, test) for x in value)


def _is_masked(value: object) -> bool:
    return isinstance(value, np.ma.MaskedArray)


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool) or getattr(getattr(value, "dtype", None), "kind", "") == "b"


def _as_floats(name: str, value: ArrayLike, copy: bool) -> Floats:
    """Return `value` as a float64 array; raise a `ValueError` if an entry is not a real number."""
    array = _as_array(name, value, "numbers", copy)
    # NumPy would read booleans beside numbers as 0 and 1.
    kind = "b" if _contains(value, _is_boolean) else array.dtype.kind
    if kind in _KINDS:
        raise ValueError(
            f"{name}: expected an array of numbers, got {_KINDS[kind]}: {safe_repr(value)}."
        )
    if array.dtype.kind == "O":
        for entry in array.flat:  # Fraction, or an integer beyond 64 bits
            if not isinstance(entry, Real) or isinstance(entry, bool):
                raise ValueError(
                    f"{name}: expected an array of numbers, got {safe_repr(entry)} in it."
                )
    try:
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=np.float64)
    except OverflowError:
        raise ValueError(
            f"{name}: expected numbers below 1.8e308 in modulus, got {safe_repr(value)}."
        ) from None


def _require_range(name: str, array: Floats, low: float, high: float) -> None:
    """Raise a `ValueError` that names the first entry outside [`low`, `high`]."""
    outside = (array < low) | (array > high)
    if outside.any():
        index = first_index(outside)
        ends = [f">= {low:g}"] * (low > -np.inf) + [f"<= {high:g}"] * (high < np.inf)
        raise ValueError(
            f"{name}: expected numbers {' and '.join(ends)}, got {array[index]}{_at(index)}."
        )


def _at(index: tuple[int, ...]) -> str:
    """Return text that locates an index in an error message, or an empty string for a scalar."""
    return f" at index {index}" if index else ""
