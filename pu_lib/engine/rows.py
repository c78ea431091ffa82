"""Policies and updates of one state, compiled.

What is fixed when code is compiled comes as a *token*, a tuple of zeros of which only the length
matters. A length is part of the type, so that each combination is compiled as code of its own,
with every small loop unrolled:

- `actions`: as many as there are actions;
- `successors`: as many as every pair has, or none where a plain loop goes through them;
- `update`: the number of a kernel, see `token`;
- `policy`: the number of a parametrization, see `policy_token`;
- `ties`: which action is greedy where several are best, see `ties_token`;
- `scaled`: whether parameters have an exponent of their own, see `rescale`;
- `details`: whether a run has details that are not the paper's, see `pu_lib.engine.loop.Rules`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from pu_lib.engine.arithmetic import LOWEST, exponential, exponentials, vector, whole
from pu_lib.engine.compiling import INLINED, code_of, compiled
from pu_lib.kernels import GREEDY, KERNELS, Kernel, ce, choose

if TYPE_CHECKING:
    from pu_lib.updates import Parametrization, Ties

__all__ = [
    "UNIT",
    "advance",
    "flag_token",
    "greedy",
    "nth_best",
    "policy_token",
    "rescale",
    "set_policy",
    "successor_token",
    "ties_token",
    "token",
]

Token = tuple[int, ...]

_llvm: Any = cgutils

_kernels: dict[Kernel, str] = dict.fromkeys(KERNELS, "")
_MAX_UNROLLED = 8
_FORESEEN = 3
_POLICIES = ("softmax", "escort", "direct")
_TIES = ("first", "random", "leave")

UNIT = 256
"""An exponent of 1 stands for the factor 2^-256."""

_LOWEST, _HIGHEST = 2.0**-480, 2.0**-120  # of a mantissa whose exponent is not 0
_DOWN, _UP = 2.0**-UNIT, 2.0**UNIT


def token(kernel: Kernel) -> Token:
    """Return the token of a kernel: those of the library come first, in a fixed order.

    Parameters
    ----------
    kernel : callable
        The kernel.

    Returns
    -------
    tuple of int
        As many zeros as tell it from all others.

    Raises
    ------
    ValueError
        If what the kernel reads has changed: compiled code has its constants for good.
    """
    code = "" if kernel in KERNELS else code_of(kernel)
    if _kernels.setdefault(kernel, code) != code:
        raise ValueError(
            f"update: what the kernel {kernel.__name__} reads has changed since it was compiled; "
            "define the kernel again."
        )
    return (0,) * (list(_kernels).index(kernel) + 1)


def successor_token(n_successors: int) -> Token:
    """Return the token of a number of successors."""
    return (0,) * (n_successors if n_successors <= _MAX_UNROLLED else 0)


def policy_token(parametrization: Parametrization) -> Token:
    """Return the token of a parametrization."""
    return (0,) * (_POLICIES.index(parametrization) + 1)


def ties_token(ties: Ties) -> Token:
    """Return the token of a rule for ties: the first, one drawn, or no update."""
    return (0,) * _TIES.index(ties)


def flag_token(holds: bool) -> Token:
    """Return the token of what holds or not: of `scaled` and of `details`."""
    return (0,) * holds


def advance(
    update: Token, theta: Any, pi: Any, q: Any, best: int, weight: float, actions: Token | int
) -> None:
    """Call the kernel that a token stands for.

    Parameters
    ----------
    update : tuple of int
        The token, as `token` returns it.
    theta, pi, q : ndarray, shape (n_actions,)
        Parameters, which are moved, policy and values of one state.
    best : int
        The greedy action.
    weight : float
        The weight of the step.
    actions : tuple of int or int
        The token of the number of actions, or the number.
    """
    n_actions = actions if isinstance(actions, int) else len(actions)
    kernel = list(_kernels)[len(update) - 1]
    kernel(theta, pi, q, best, weight, n_actions)


@overload(advance, jit_options=INLINED, strict=False)
def _compile_advance(
    update: Any, theta: Any, pi: Any, q: Any, best: Any, weight: Any, actions: Any
) -> Any:
    chosen = list(_kernels)[len(update) - 1]
    kernel: Any = numba.njit(inline="always")(getattr(chosen, "py_func", chosen))
    if isinstance(actions, types.Integer):
        return lambda update, theta, pi, q, best, weight, actions: kernel(
            theta, pi, q, best, weight, actions
        )
    # The length of a token is a constant in the kernel, whose loops are unrolled.
    if chosen is ce and len(actions) > _FORESEEN:
        # Compared with a float, the greedy action is masked; with an integer, LLVM makes branches,
        # one an action, that nobody foresees, and a step takes a fifth longer.
        return lambda update, theta, pi, q, best, weight, actions: kernel(
            theta, pi, q, whole(best), weight, len(actions)
        )
    if chosen not in GREEDY or len(actions) > _FORESEEN:
        return lambda update, theta, pi, q, best, weight, actions: kernel(
            theta, pi, q, best, weight, len(actions)
        )

    def by_action(
        update: Any, theta: Any, pi: Any, q: Any, best: Any, weight: Any, actions: Any
    ) -> None:
        # Few states with few actions: the processor foresees which is best, and need not wait.
        if best == 0:
            kernel(theta, pi, q, 0, weight, len(actions))
        elif best == 1:
            kernel(theta, pi, q, 1, weight, len(actions))
        else:
            kernel(theta, pi, q, 2, weight, len(actions))

    return by_action


def _select(typing: Any, condition: Any, one: Any, other: Any) -> Any:
    """Type and generate a choice between two floats by an instruction of the processor."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return types.float64(types.boolean, types.float64, types.float64), generate


_selected: Any = intrinsic(_select)


@overload(choose, inline="always", strict=False)
def _compile_choose(condition: Any, one: Any, other: Any) -> Any:
    return lambda condition, one, other: _selected(condition, one, other)


@compiled
def set_policy(theta: Any, pi: Any, s: Any, policy: Any, actions: Any) -> None:
    """Set pi(s, .) to the policy of the parameters theta(s, .).

    Parameters
    ----------
    theta : ndarray, shape (n_states, n_actions)
        Parameters.
    pi : ndarray, shape (n_states, n_actions)
        The policy, of which one row is set.
    s : int
        The state.
    policy : tuple of int
        The token of the parametrization.
    actions : tuple of int
        The token of the number of actions.
    """
    if len(policy) == 1:
        _softmax(theta, pi, s, actions)
    elif len(policy) == 2:
        _escort(theta, pi, s, actions)
    else:
        for a in range(len(actions)):
            pi[s, a] = theta[s, a]


@compiled
def _softmax(theta: Any, pi: Any, s: Any, actions: Any) -> None:
    A = len(actions)
    if A == 2:
        # One exponential is enough, and gives the same bits: that of the larger one is 1.
        difference = theta[s, 0] - theta[s, 1]
        # A branch: what follows need not wait for a long computation. With three actions it pays
        # for NPG only, and costs CE and MCE a tenth.
        if abs(difference) >= -LOWEST:
            large_share, small_share = 1.0, exponential(LOWEST)
        else:
            small = exponential(-abs(difference))
            large_share = 1.0 / (1.0 + small)
            small_share = small * large_share
        pi[s, 0] = large_share if difference >= 0.0 else small_share
        pi[s, 1] = small_share if difference >= 0.0 else large_share
        return
    top = theta[s, 0]
    for a in range(1, A):
        top = max(top, theta[s, a])
    if A == 3:
        x0, x1, x2 = theta[s, 0] - top, theta[s, 1] - top, theta[s, 2] - top
        e0, e1, e2 = exponentials((x0, x1, x2))
        scale = 1.0 / (e0 + e1 + e2)
        pi[s, 0], pi[s, 1], pi[s, 2] = e0 * scale, e1 * scale, e2 * scale
        return
    if A == 4:
        x0, x1 = theta[s, 0] - top, theta[s, 1] - top
        x2, x3 = theta[s, 2] - top, theta[s, 3] - top
        e0, e1, e2, e3 = exponentials((x0, x1, x2, x3))
        scale = 1.0 / (e0 + e1 + e2 + e3)
        pi[s, 0], pi[s, 1], pi[s, 2], pi[s, 3] = e0 * scale, e1 * scale, e2 * scale, e3 * scale
        return
    total = 0.0
    for a in range(A):
        pi[s, a] = exponential(theta[s, a] - top)
    for a in range(A):
        total += pi[s, a]
    scale = 1.0 / total
    for a in range(A):
        pi[s, a] *= scale


@compiled
def _escort(theta: Any, pi: Any, s: Any, actions: Any) -> None:
    """Set the escort policy with p = 2."""
    total = 0.0
    for a in range(len(actions)):
        total += theta[s, a] * theta[s, a]
    scale = 1.0 / total
    for a in range(len(actions)):
        pi[s, a] = theta[s, a] * theta[s, a] * scale


def _test(typing: Any, theta: Any, exponent: Any, s: Any, actions: Any) -> Any:
    """Type and generate whether `rescale` has anything to do: a test of a vector of the processor.

    One branch that is hardly ever taken costs less than one an action.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def row(which: int) -> Any:
            kind = signature.args[which]
            array = context.make_array(kind)(context, builder, arguments[which])
            entries = []
            for a in range(actions.count):
                place = [arguments[2], ir.IntType(64)(a)]
                pointer = _llvm.get_item_pointer(context, builder, kind, array, place)
                entries.append(builder.load(pointer))
            return vector(builder, entries)

        def each(value: float, kind: Any) -> Any:
            return ir.Constant(kind, [value] * actions.count)

        mantissas, exponents = row(0), row(1)
        floats, integers = mantissas.type, exponents.type
        sizes = builder.and_(builder.bitcast(mantissas, integers), each((1 << 63) - 1, integers))
        sizes = builder.bitcast(sizes, floats)
        low = builder.fcmp_ordered("<", sizes, each(_LOWEST, floats))
        high = builder.fcmp_ordered(">=", sizes, each(_HIGHEST, floats))
        high = builder.and_(high, builder.icmp_signed(">", exponents, each(0, integers)))
        mask = ir.IntType(actions.count)
        return builder.icmp_signed("!=", builder.bitcast(builder.or_(low, high), mask), mask(0))

    return types.boolean(theta, exponent, s, actions), generate


_is_due: Any = intrinsic(_test)


@compiled
def rescale(theta: Any, exponent: Any, s: Any, actions: Any) -> bool:
    r"""Keep the parameters of state s, which a step has multiplied, clear of the smallest floats.

    A parameter is :math:`m\,2^{-256e}` with a float m and an integer e, which is 0 until the
    parameter is below :math:`2^{-480}`. While e > 0, m stays between :math:`2^{-480}` and
    :math:`2^{-120}`: its square, like that of the parameter, is too small to count in a sum over
    actions, none of which need know of e; and it is large enough to be computed at full speed,
    which the smallest floats are not. Multiplying by a power of two rounds nothing.

    Parameters
    ----------
    theta : ndarray, shape (n_states, n_actions)
        The mantissas.
    exponent : ndarray of int64, shape (n_states, n_actions)
        The exponents.
    s : int
        The state.
    actions : tuple of int
        The token of the number of actions.

    Returns
    -------
    bool
        Whether a parameter may have been multiplied, so that the policy has to be set again.
    """
    due: bool = _is_due(theta, exponent, s, actions)
    if due:
        for a in range(len(actions)):
            size = abs(theta[s, a])
            if 0.0 < size < _LOWEST:
                theta[s, a] *= _UP
                exponent[s, a] += 1
            elif size >= _HIGHEST and exponent[s, a] > 0:
                theta[s, a] *= _DOWN
                exponent[s, a] -= 1
    return due


@compiled
def greedy(q: Any, s: Any, actions: Any) -> Any:
    """Return the first best action and the number of best actions.

    Parameters
    ----------
    q : ndarray, shape (n_states, n_actions)
        Values.
    s : int
        The state.
    actions : tuple of int
        The token of the number of actions.

    Returns
    -------
    best, ties : int
        The action, and how many have its value, itself included.
    """
    best, top, ties = 0, q[s, 0], 0
    for a in range(1, len(actions)):  # selections, not branches: which action it is has no pattern
        better = q[s, a] > top
        best = a if better else best
        top = q[s, a] if better else top
    for a in range(len(actions)):
        ties += q[s, a] == top
    return best, ties


@compiled
def nth_best(q: Any, s: Any, best: Any, n: Any, actions: Any) -> Any:
    """Return the n-th action (from 0) whose value equals that of `best`.

    Parameters
    ----------
    q : ndarray, shape (n_states, n_actions)
        Values.
    s : int
        The state.
    best : int
        One of its best actions.
    n : int
        Which of them, from 0.
    actions : tuple of int
        The token of the number of actions.

    Returns
    -------
    int
        The action.
    """
    chosen = best
    for a in range(len(actions)):
        if q[s, a] == q[s, best]:
            if n == 0:
                chosen = a
            n -= 1
    return chosen
