"""Perturb results that IEEE 754 does not specify, to find tests that depend on the processor.

The last digits of transcendental functions and of linear algebra differ between processors and
library versions. `disturb` changes results of NumPy and `math` functions, and inputs of LAPACK, by
at most one unit in the last place. The change is a function of the seed and the number, so equal
calls give equal results. Numbers that float32 represents exactly do not change, for example exp(0)
and the entries of a permutation matrix. Operators (``**``, ``@``) and compiled code are not
perturbed.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg.lapack
from numba import njit
from numba.extending import overload
from numpy.typing import NDArray

FUNCTIONS = "exp exp2 expm1 log log2 log10 log1p sin cos tan sinh cosh tanh arcsin arccos arctan"
FUNCTIONS += " arctan2 arcsinh arccosh arctanh asin acos atan atan2 asinh acosh atanh power pow"
LAPACK = "solve inv pinv det eig eigh eigvals eigvalsh svd lstsq cholesky qr matrix_rank"


def disturbed(x: Any, seed: int) -> NDArray[np.float64]:
    """Return floats changed by -1, 0 or 1 unit in the last place, except float32 numbers."""
    floats = np.array(x, dtype=np.float64, ndmin=1)
    bits = floats.view(np.int64)
    mixed = (bits.view(np.uint64) ^ np.uint64(seed)) * np.uint64(0x9E3779B97F4A7C15)
    steps = (mixed >> np.uint64(40)).astype(np.int64) % 3 - 1
    with np.errstate(all="ignore"):
        short = ~np.isfinite(floats) | (floats.astype(np.float32) == floats)
    return np.where(short, floats, (bits + steps).view(np.float64)).reshape(np.shape(x))


def _with_other_results(function: Callable[..., Any], seed: int) -> Callable[..., Any]:
    @functools.wraps(function)
    def changed(*args: Any, **options: Any) -> Any:
        result = function(*args, **options)
        if isinstance(result, float):
            return type(result)(disturbed(result, seed))
        if getattr(result, "dtype", None) == np.float64:  # an array or a column of a table
            result[:] = disturbed(result, seed)  # in place, because it may be the argument `out`
        return result

    if isinstance(function, np.ufunc):
        for name in ("nin", "nout", "outer", "reduce", "accumulate", "at"):  # not perturbed
            setattr(changed, name, getattr(function, name))
    overload(changed)(lambda x: lambda x: function(x))  # compiled code calls the original function
    return changed


def _with_other_inputs(function: Callable[..., Any], seed: int) -> Callable[..., Any]:
    @functools.wraps(function)
    def changed(a: Any, *args: Any, **options: Any) -> Any:
        exact = not np.issubdtype(np.asarray(a).dtype, np.float64)
        return function(a if exact else disturbed(a, seed), *args, **options)

    return changed


def disturb(seed: int) -> None:
    """Replace the functions by perturbed ones for the rest of the process."""
    njit(lambda x: np.exp(x))(1.0)  # numba looks up NumPy's functions at the first compilation
    for module in (np, math):
        for name in FUNCTIONS.split():
            if hasattr(module, name):
                setattr(module, name, _with_other_results(getattr(module, name), seed))
    for name in LAPACK.split():
        setattr(np.linalg, name, _with_other_inputs(getattr(np.linalg, name), seed))
    lapack = scipy.linalg.lapack
    lapack.dgetrf = _with_other_inputs(lapack.dgetrf, seed)
