"""Reading arguments: numbers are taken as numbers, and what is not a number is refused by name.

NumPy turns much into floats without a word: it parses strings, drops imaginary parts and masks,
counts dates in nanoseconds and reads ``True`` as one. Every function of the library that takes
numbers from outside reads them here, so that each of these is refused in one sentence that names
the argument.
"""

from __future__ import annotations

import operator
import sys
from numbers import Real
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "Floats",
    "first_index",
    "flags",
    "number",
    "numbers",
    "require_distributions",
    "shown",
    "whole",
]

Floats = NDArray[np.float64]

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


def numbers(
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
    """Return an argument as an array of floats, all of them numbers.

    Parameters
    ----------
    name : str
        What the argument is called, for the sentence.
    value : array_like
        What was given: integers, floats, fractions, or arrays of them.
    axes : int
        The smallest number of axes it must have.
    shape : tuple of int, optional
        The shape it must have.
    low, high : float
        The range its entries must be in, ends included.
    infinite : bool
        Whether infinite entries are allowed.
    copy : bool
        Whether the result must not share memory with `value`.

    Returns
    -------
    ndarray of float64
        The numbers, in the shape they were given; it is `value` itself where that is an array of
        floats and no copy is asked for.

    Raises
    ------
    ValueError
        If it is something else than real numbers, finite ones, in that range and shape: text,
        booleans, dates, complex numbers, a masked array, rows of different lengths.
    """
    # Floats and arrays of them, which loops pass again and again, need no look at their kind.
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
            + (f"the single number {shown(value)}." if array.ndim == 0 else f"{array.ndim}.")
        )
    if shape is not None and array.shape != shape:
        raise ValueError(f"{name}: expected shape {shape}, got {array.shape}.")
    fine = ~np.isnan(array) if infinite else np.isfinite(array)
    if not fine.all():
        index, what = first_index(~fine), "numbers" if infinite else "finite numbers"
        raise ValueError(f"{name}: expected {what}, got {array[index]}{_at(index)}.")
    if low > -np.inf or high < np.inf:
        _require_range(name, array, low, high)
    return array


def number(name: str, value: Any, *, low: float = -np.inf, high: float = np.inf) -> float:
    """Return an argument as one finite float.

    Parameters
    ----------
    name : str
        What the argument is called.
    value : float, int or Fraction
        What was given.
    low, high : float
        The range it must be in, ends included.

    Returns
    -------
    float
        The number.

    Raises
    ------
    ValueError
        If it is not one real number in that range.
    """
    # What Python calculates with needs no array; the range leaves out NaN, too.
    if type(value) in (int, float) and max(low, -_LARGEST) <= value <= min(high, _LARGEST):
        return float(value)
    array = numbers(name, value, low=low, high=high)
    if array.ndim != 0:
        raise ValueError(f"{name}: expected one number, got an array of shape {array.shape}.")
    return float(array)


def whole(
    name: str, value: SupportsIndex, *, low: int | None = None, high: int | None = None
) -> int:
    """Return an argument as a Python integer, which has no largest value and never wraps around.

    Parameters
    ----------
    name : str
        What the argument is called.
    value : int
        What was given; an integer of NumPy will do, a float or a boolean will not.
    low, high : int, optional
        The range it must be in, ends included.

    Returns
    -------
    int
        The integer.

    Raises
    ------
    ValueError
        If it is not an integer in that range.
    """
    try:
        if isinstance(value, (bool, np.bool_)):
            raise TypeError
        result = operator.index(value)
    except TypeError:
        raise ValueError(f"{name}: expected an integer, got {shown(value)}.") from None
    if (low is not None and result < low) or (high is not None and result > high):
        ends = [f"at least {low}"] * (low is not None) + [f"at most {high}"] * (high is not None)
        raise ValueError(f"{name}: expected an integer, {' and '.join(ends)}, got {result}.")
    return result


def flags(name: str, value: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return an argument as a new array of booleans.

    Parameters
    ----------
    name : str
        What the argument is called.
    value : array_like of bool
        What was given; numbers are not taken for booleans.
    shape : tuple of int
        The shape it must have.

    Returns
    -------
    ndarray of bool
        A copy of what was given, of shape `shape`.

    Raises
    ------
    ValueError
        If it is something else, masked, or of another shape.
    """
    array = _as_array(name, value, "booleans", copy=True)
    if array.dtype != np.bool_ or array.shape != shape:
        raise ValueError(
            f"{name}: expected booleans of shape {shape}, got shape {array.shape} of type "
            f"{array.dtype}."
        )
    return array


def require_distributions(name: str, rows: Floats, what: str = "probabilities") -> None:
    """Refuse an array unless every row along the last axis is a point of the simplex.

    Parameters
    ----------
    name : str
        What the argument is called.
    rows : ndarray, shape (..., n)
        Finite numbers.
    what : str
        What the rows are, for the sentence.

    Raises
    ------
    ValueError
        If a row has a negative entry or does not sum to one.
    """
    # The sum of n rounded probabilities is within n ulp of one; 1e-9 leaves room for every size
    # in use and is far below any policy difference the book looks at.
    with np.errstate(over="ignore"):
        outside = (rows < 0.0).any(axis=-1) | ~(np.abs(rows.sum(axis=-1) - 1.0) <= 1e-9)
    if outside.any():
        row = first_index(outside)
        raise ValueError(
            f"{name}: expected {what} (non-negative, sum 1), got {rows[row]} at row {row}."
        )


def first_index(marks: NDArray[np.bool_]) -> tuple[int, ...]:
    """Return the index of the first mark.

    Parameters
    ----------
    marks : ndarray of bool, shape (...)
        At least one of them is true.

    Returns
    -------
    tuple of int
        One entry an axis, in the order in which NumPy goes through an array.
    """
    return tuple(int(i) for i in np.argwhere(marks)[0])


def shown(value: object) -> str:
    """Return how a value looks in a sentence: its `repr`, cut where it is long."""
    try:
        text = repr(value)
    except ValueError:  # an integer that Python does not write out
        return "more than four thousand digits"
    return text if len(text) <= 80 else text[:77] + "..."


def _as_array(name: str, value: ArrayLike, what: str, copy: bool) -> NDArray[Any]:
    """Return `value` as an array of whatever it holds, unless it is masked or ragged."""
    if isinstance(value, np.ma.MaskedArray):
        raise ValueError(f"{name}: expected {what}, got a masked array; fill it first.")
    try:
        return np.array(value) if copy else np.asarray(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name}: expected an array of {what} with rows of equal length, got {shown(value)}."
        ) from None


def _as_floats(name: str, value: ArrayLike, copy: bool) -> Floats:
    """Return `value` as floats, unless it holds something else than real numbers."""
    array = _as_array(name, value, "numbers", copy)
    if array.dtype.kind in _KINDS:
        raise ValueError(
            f"{name}: expected an array of numbers, got {_KINDS[array.dtype.kind]}: {shown(value)}."
        )
    if array.dtype.kind == "O":
        for entry in array.flat:  # fractions and integers beyond 64 bits are numbers too
            if not isinstance(entry, Real) or isinstance(entry, bool):
                raise ValueError(f"{name}: expected an array of numbers, got {shown(entry)} in it.")
    try:
        with np.errstate(over="ignore"):
            return np.asarray(array, dtype=np.float64)
    except OverflowError:
        raise ValueError(
            f"{name}: expected numbers below 1.8e308 in modulus, got {shown(value)}."
        ) from None


def _require_range(name: str, array: Floats, low: float, high: float) -> None:
    outside = (array < low) | (array > high)
    if outside.any():
        index = first_index(outside)
        ends = [f">= {low:g}"] * (low > -np.inf) + [f"<= {high:g}"] * (high < np.inf)
        raise ValueError(
            f"{name}: expected numbers {' and '.join(ends)}, got {array[index]}{_at(index)}."
        )


def _at(index: tuple[int, ...]) -> str:
    return f" at index {index}" if index else ""
