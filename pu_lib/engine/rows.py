"""Compiled policies and updates of one state.

Values that are fixed at compile time are passed as *static arguments*: tuples of zeros of which
only the length matters. The length of a tuple is part of its type, so numba compiles a version for
each combination, with small loops unrolled and unused branches removed. The static arguments are:

- `actions`: one zero for each action;
- `successors`: one zero for each successor of a pair, or none if there are too many to unroll;
- `update`: the number of the kernel, see `static_kernel`;
- `policy`: the number of the parametrization, see `static_policy`;
- `ties`: the number of the rule for tied actions, see `static_ties`;
- `scaled`: whether the parameters have separate exponents, see `rescale`;
- `details`: whether a run has options that are not the paper's, see `pu_lib.engine.loop.Rules`.
"""

from __future__ import annotations

from inspect import signature
from typing import TYPE_CHECKING, Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from pu_lib.compiling import INLINED, code_digest, compiled, inlined, inlined_by_numba
from pu_lib.engine.arithmetic import LOWEST, exponential, exponentials, int_to_float, vector
from pu_lib.kernels import GREEDY, KERNELS, Kernel, ce, choose

if TYPE_CHECKING:
    from pu_lib.updates import Parametrization, Ties

StaticArg = tuple[int, ...]

_llvm: Any = cgutils

# Kernels that have a static argument, in order. The key of a user's kernel is its `code_digest`:
# a function that is defined again with the same code and constants is not compiled again.
_kernels: dict[Kernel | str, Kernel] = {kernel: kernel for kernel in KERNELS}
_MAX_UNROLLED = 8  # successors; if there are more, a loop visits them
_MOST_PREDICTED = 3  # the processor predicts the greedy action of at most this many
_POLICIES = ("softmax", "escort", "direct")
_TIES = ("first", "random", "leave")

UNIT = 256
"""The unit of the exponents of parameters: the exponent 1 denotes the factor 2^-256."""

# The range of a mantissa whose exponent is not 0; see `rescale`.
_LOWEST, _HIGHEST = 2.0**-480, 2.0**-120
_DOWN, _UP = 2.0**-UNIT, 2.0**UNIT


def static_kernel(kernel: Kernel) -> StaticArg:
    """Return the static argument of a kernel; kernels with the same code have the same one."""
    key = kernel if kernel in KERNELS else code_digest(kernel)
    _kernels.setdefault(key, kernel)
    return (0,) * (list(_kernels).index(key) + 1)


def takes_memory(kernel: Kernel) -> bool:
    """Return whether a kernel takes a row of memory as its seventh argument."""
    return len(signature(getattr(kernel, "py_func", kernel)).parameters) > 6


def static_successors(n_successors: int) -> StaticArg:
    """Return the static argument for a number of successors."""
    return (0,) * (n_successors if n_successors <= _MAX_UNROLLED else 0)


def static_policy(parametrization: Parametrization) -> StaticArg:
    """Return the static argument of a parametrization."""
    return (0,) * (_POLICIES.index(parametrization) + 1)


def static_ties(ties: Ties) -> StaticArg:
    """Return the static argument of a rule for tied actions."""
    return (0,) * _TIES.index(ties)


def static_flag(holds: bool) -> StaticArg:
    """Return the static argument of a Boolean, for `scaled` and `details`."""
    return (0,) * holds


def advance(
    update: StaticArg,
    theta: Any,
    pi: Any,
    q: Any,
    best: int,
    weight: float,
    actions: StaticArg | int,
    memory: Any = None,
) -> None:
    """Apply one step of the kernel with the static argument `update` to `theta`, in place.

    `theta`, `pi` and `q` belong to one state and have shape (n_actions,). `actions` is the number
    of actions, as a static argument or as an integer. `memory` is the row of memory, which is
    changed in place; only kernels of updates with memory read it.
    """
    n_actions = actions if isinstance(actions, int) else len(actions)
    kernel = list(_kernels.values())[len(update) - 1]
    kernel(theta, pi, q, best, weight, n_actions, *([memory] * takes_memory(kernel)))


@overload(advance, jit_options=INLINED, strict=False)
def _compile_advance(
    update: Any,
    theta: Any,
    pi: Any,
    q: Any,
    best: Any,
    weight: Any,
    actions: Any,
    memory: Any = None,
) -> Any:
    """Return the compiled form of `advance` for one kernel and one number of actions."""
    chosen = list(_kernels.values())[len(update) - 1]
    kernel: Any = inlined_by_numba(getattr(chosen, "py_func", chosen))
    if takes_memory(chosen):
        return lambda update, theta, pi, q, best, weight, actions, memory=None: kernel(
            theta, pi, q, best, weight, len(actions), memory
        )
    if isinstance(actions, types.Integer):
        return lambda update, theta, pi, q, best, weight, actions, memory=None: kernel(
            theta, pi, q, best, weight, actions
        )
    # len(actions) is a compile-time constant, so that the kernel's loops are unrolled.
    if chosen is ce and len(actions) > _MOST_PREDICTED:
        # With the greedy action as a float, LLVM compiles its comparison with each action to a
        # mask. With an integer it generates a branch for each action; these branches are
        # mispredicted, and a step takes a fifth longer.
        return lambda update, theta, pi, q, best, weight, actions, memory=None: kernel(
            theta, pi, q, int_to_float(best), weight, len(actions)
        )
    if chosen not in GREEDY or len(actions) > _MOST_PREDICTED:
        return lambda update, theta, pi, q, best, weight, actions, memory=None: kernel(
            theta, pi, q, best, weight, len(actions)
        )

    @inlined  # by LLVM: numba would type and lower each of the copies below
    def step(theta: Any, pi: Any, q: Any, best: Any, weight: Any, actions: Any) -> None:
        kernel(theta, pi, q, best, weight, len(actions))

    if len(actions) == 2:

        def by_two(
            update: Any,
            theta: Any,
            pi: Any,
            q: Any,
            best: Any,
            weight: Any,
            actions: Any,
            memory: Any = None,
        ) -> None:
            if best == 0:
                step(theta, pi, q, 0, weight, actions)
            else:
                step(theta, pi, q, 1, weight, actions)

        return by_two

    def by_action(
        update: Any,
        theta: Any,
        pi: Any,
        q: Any,
        best: Any,
        weight: Any,
        actions: Any,
        memory: Any = None,
    ) -> None:
        # With few actions the branch is predicted well: the step is computed speculatively, with a
        # constant greedy action, before the comparison of values is done.
        if best == 0:
            step(theta, pi, q, 0, weight, actions)
        elif best == 1:
            step(theta, pi, q, 1, weight, actions)
        else:
            step(theta, pi, q, 2, weight, actions)

    return by_action


def _select(typing: Any, condition: Any, one: Any, other: Any) -> Any:
    """Type and generate a select instruction, which chooses one of two floats without a branch."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.select(*arguments)

    return types.float64(types.boolean, types.float64, types.float64), generate


_selected: Any = intrinsic(_select)


@overload(choose, inline="always", strict=False)
def _compile_choose(condition: Any, one: Any, other: Any) -> Any:
    return lambda condition, one, other: _selected(condition, one, other)


@compiled
def set_policy(theta: Any, pi: Any, s: Any, policy: Any, actions: Any) -> None:
    """Set pi[s] to the policy of theta[s]; `policy` and `actions` are static."""
    if len(policy) == 1:
        _softmax(theta, pi, s, actions)
    elif len(policy) == 2:
        _escort(theta, pi, s, actions)
    else:
        for a in range(len(actions)):
            pi[s, a] = theta[s, a]


@compiled
def _softmax(theta: Any, pi: Any, s: Any, actions: Any) -> None:
    """Set pi[s] to the softmax of theta[s], with faster code for two, three and four actions."""
    A = len(actions)
    if A == 2:
        # One exponential is enough and gives the same bits, because the other one is e^0 = 1.
        difference = theta[s, 0] - theta[s, 1]
        # If the policy is saturated, this branch skips a long computation, and later instructions
        # need not wait for its result. With three actions such a branch would make only NPG faster,
        # and CE and MCE a tenth slower.
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
    """Set pi[s] to the escort policy with p = 2."""
    total = 0.0
    for a in range(len(actions)):
        total += theta[s, a] * theta[s, a]
    scale = 1.0 / total
    for a in range(len(actions)):
        pi[s, a] = theta[s, a] * theta[s, a] * scale


def _test(typing: Any, theta: Any, exponent: Any, s: Any, actions: Any) -> Any:
    """Type and generate the test, on vector registers, whether a row needs rescaling.

    One branch for the row, which is rarely taken, is cheaper than one branch for each action.
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
    r"""Rescale the parameters of state s, if necessary, to avoid subnormal floats.

    A parameter is :math:`m\,2^{-256e}` with a float m and an integer e, which is 0 until the
    parameter is below :math:`2^{-480}`. If e > 0, m is between :math:`2^{-480}` and
    :math:`2^{-120}`: m is large enough for arithmetic at full speed, since only arithmetic with
    subnormal floats is slow, and so small that neither its square nor the square of the parameter
    changes a sum over actions. Such sums can therefore ignore e. Multiplying by a power of two is
    exact.

    `theta` contains the mantissas and `exponent` the exponents; both have shape
    (n_states, n_actions). Return whether the policy of state s must be set again.
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
    """Return the first best action of state s and the number of best actions."""
    best, top, ties = 0, q[s, 0], 0
    # Selections are used, since branches would be mispredicted: the best action has no pattern.
    for a in range(1, len(actions)):
        better = q[s, a] > top
        best = a if better else best
        top = q[s, a] if better else top
    for a in range(len(actions)):
        ties += q[s, a] == top
    return best, ties


@compiled
def nth_best(q: Any, s: Any, best: Any, n: Any, actions: Any) -> Any:
    """Return the n-th action, counted from 0, among those with the same value as `best`."""
    chosen = best
    for a in range(len(actions)):
        if q[s, a] == q[s, best]:
            if n == 0:
                chosen = a
            n -= 1
    return chosen
