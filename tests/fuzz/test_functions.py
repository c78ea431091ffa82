"""Arbitrary arguments give the right answer, or raise `ValueError` or `TypeError` with a message.

Every argument is drawn from valid values and, occasionally, from invalid ones. A test fails if a
call takes too long, changes its arguments, warns, or raises a different exception. ``make fuzz``
generates new inputs for an hour; here, the inputs are few and always the same.
"""

from __future__ import annotations

import math
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import budget
import numpy as np
import pytest
from budget import BUDGET, input_counter
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from pu_lib import claims, domains, exact, parametrizations, trajectories
from pu_lib import settings as words
from pu_lib.chapters.domino import quantities as domino
from pu_lib.chapters.gravity_well import escape as gravity_well_escape
from pu_lib.chapters.unlearning import quantities as unlearning
from pu_lib.experiments import bootstrap, options, thresholds
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import PAPER, UPDATES, as_update, make_update

SECONDS = 300.0 if BUDGET > 1 else 30.0  # limit of CPU time for one call
# By default, counts stop after two million steps, which takes minutes.
STEP_LIMIT = 200_000 if BUDGET > 1 else 2_000
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]
counter = input_counter("functions")
budgeted = partial(budget.budgeted, quiet=QUIET)


class TimeLimitError(BaseException):
    """Exception raised if a call exceeds its time limit."""


@contextmanager
def time_limit() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TimeLimitError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


# Arguments

NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-10, 10),
    st.integers(-(10**30), 10**30),
    st.sampled_from(
        [0, -1, -0.0, 1e-300, 5e-324, 1e308, -1.7e308, 1e150, 2**63, 10**400, 10**12, 1e12]
    ),
    st.fractions(-3, 3),
)
STRANGE = st.sampled_from(
    [
        None, "", " ", "0.5", "1/0", "a third", "nan", "é\u2028", "\x00", b"1", True,
        np.bool_(False), 1j, math.nan, math.inf, -math.inf, np.float64("nan"),
        np.datetime64("2020-01-01"),
        np.timedelta64(1, "D"), Decimal("0.1"), Decimal("nan"), np.int8(9), np.int64(4),
        np.float16(0.3), object(), int, [], (), {}, {"a": 1}, {1}, [None], ["1", "2"],
        [[1.0], [1.0, 2.0]], [[]], np.zeros(0), np.zeros((0, 2)), np.zeros((2, 0)),
        np.array([0.2, 0.8], dtype=object), np.array(["0.2", "0.8"]), np.array([1j, 2]),
        np.ma.array([0.5, 0.5], mask=[0, 1]), np.array([True, False]), np.array([np.nan, 1.0]),
        np.array([np.inf, 1.0]), np.array([0.5, 0.5], dtype=">f8"), np.zeros((1,) * 20),
        np.float32([0.5, 0.5]), np.zeros(3, dtype=[("a", float)]), range(3), "chain", "ce",
        np.array("2020", dtype="M8"), memoryview(b"ab"), Fraction(1, 3), 10**5000,
    ]
)  # fmt: skip
HOSTILE = STRANGE | NUMBERS
# A call with a limit of 10^12 steps would run for hours, so negate the limit to have it rejected.
BOUNDED = HOSTILE.map(
    lambda x: -x if isinstance(x, (int, float, Fraction)) and x > STEP_LIMIT else x
)


def hostile(key: str) -> st.SearchStrategy:
    """Return a strategy for invalid values of an argument."""
    return BOUNDED if key == "max_steps" else HOSTILE


def arrays(*shapes: tuple[int, ...], low: float = -50.0, high: float = 50.0) -> st.SearchStrategy:
    """Return a strategy for small arrays of one of the shapes, some with extreme entries."""

    def filled(shape: tuple[int, ...]) -> st.SearchStrategy:
        size = math.prod(shape)
        entry = st.floats(low, high) | st.sampled_from([0.0, low, high])
        return st.lists(entry, min_size=size, max_size=size).map(
            lambda values: np.array(values).reshape(shape)
        )

    return st.sampled_from(shapes).flatmap(filled)


def rows(*shapes: tuple[int, ...]) -> st.SearchStrategy:
    """Return a strategy for policies of one of the shapes."""
    return arrays(*shapes, low=0.0, high=30.0).map(
        lambda x: (x + 1e-3) / (x + 1e-3).sum(axis=-1, keepdims=True)
    )


EXTREME = arrays((2,), (3,), (2, 3), low=-1.7e308, high=1.7e308)
THETA = arrays((2,), (3,), (2, 3)) | EXTREME
POLICY = rows((2,), (3,), (2, 3))
WEIGHT = st.floats(0, 100) | st.sampled_from([0.0, 1e308, 5e-324])
UPDATE = st.sampled_from([*PAPER, UPDATES["ce"], make_update("pg-es", p=3.0)])
SMALL = st.integers(1, 12)
COUNT = SMALL | st.integers(0, 10**4) | st.sampled_from([10**6, 10**9, 10**12, 10**18, 10**40])
STEP_SIZE = st.sampled_from(
    ["0.3", "1", "3/10", 0.5, 2, "1e-3", "1e-9", "1e-30", "1e-300", "1e9", "1e300", 1e-320, "100"]
) | st.floats(1e-3, 1e3)
START = st.sampled_from(["1/2", 0.5, "0.9", "1/20", "1e-9", "1e-300", "0", "1", "0.999999999999"])
TIMES = st.lists(st.floats(0.1, 100.0) | st.integers(1, 9), min_size=1, max_size=9)
FLAGS = st.lists(st.booleans(), min_size=1, max_size=9).map(np.array)
TWO = {
    "transitions": arrays((2, 2, 2), low=0.0, high=9.0).map(
        lambda x: (x + 0.1) / (x + 0.1).sum(axis=-1, keepdims=True)
    ),
    "rewards": arrays((2, 2), (2, 2, 2), low=-1e3, high=1e3),
    "initial": rows((2,)),
    "discount": st.floats(0, 0.999),
    "terminal": st.none() | st.just(np.array([False, False])),
}
NAMES = {
    name: st.none() | st.lists(st.text(min_size=1, max_size=3), min_size=2, max_size=2)
    for name in ("states", "actions")
}
CHAIN = {
    "n_states": st.integers(2, 30) | st.sampled_from([10**7, 10**12]),
    "beta": st.floats(0.01, 0.99),
    "discount": st.floats(0.01, 0.999),
    "last_state_tie": st.booleans(),
}
COUNTED = {
    "update": UPDATE,
    "step_size": STEP_SIZE,
    "p": st.sampled_from([2, "2", "3/2", 1, 4, "1.01", 2.5]),
    "factor": st.sampled_from(["keep", "drop"]),
}
LABEL = st.text(max_size=12) | st.sampled_from(
    ["chain", "chain n_states=5", "chain beta=2", "cliff n_states=x", "random-mdp rng=1", "a.npz",
     "chain  beta=0.5", "FrozenLake-v1", "Nothing-v9", "chain n_states=9999999999"]
)  # fmt: skip
OPTIONS = st.sampled_from(
    [
        "paper",
        "paper cut=0",
        "predecessor ties=random",
        "paper hyde_clip=nan",
        "paper critic_rate=1e400",
        "paper max_episodes=" + "9" * 5000,
    ]
)


# Results


def is_distribution(x: Any) -> bool:
    x = np.asarray(x)
    return bool((x >= 0).all() and np.allclose(x.sum(axis=-1), 1.0, atol=1e-9))


def is_finite(x: Any) -> bool:
    return bool(np.isfinite(x).all())


def is_interval(ends: np.ndarray) -> bool:
    return bool(np.all(ends[0] <= ends[1]))  # either end may be infinite, as values can be


def is_solved(process: FiniteMDP) -> bool:
    best = process.optimal()
    # A long chain needs one evaluation per state and may stop at the limit.
    ended = best.converged or best.iterations == 1000 < process.n_states
    return is_distribution(best.policy) and is_finite(best.v) and ended


def is_count(n: Any) -> bool:
    return bool(n == math.inf or (isinstance(n, int) and n >= 0))


def anything(_: Any) -> bool:
    return True


class Target(NamedTuple):
    """Function with its valid arguments and a property of its results."""

    function: Callable[..., Any]
    arguments: dict[str, st.SearchStrategy]
    is_valid: Callable[[Any], bool] = anything


def on_bandit(method: str) -> Callable[..., Any]:
    def call(argument: Any) -> Any:
        return getattr(domains.bandit([1.0, 0.0, 0.5]), method)(argument)

    return call


TARGETS = {
    "softmax": Target(parametrizations.softmax, {"theta": THETA}, is_distribution),
    "escort": Target(
        parametrizations.escort, {"theta": THETA, "p": st.floats(1, 9)}, is_distribution
    ),
    "project_simplex": Target(parametrizations.project_simplex, {"x": THETA}, is_distribution),
    **{
        f"{name}.{method}": Target(getattr(UPDATES[name], method), arguments, is_valid)
        for name in PAPER
        for method, arguments, is_valid in (
            ("policy", {"theta": THETA | POLICY}, is_distribution),
            ("parameters", {"pi": POLICY}, is_finite),
            ("step", {"theta": THETA | POLICY, "q": THETA, "weight": WEIGHT}, is_finite),
            ("initial", {"n_states": SMALL, "n_actions": SMALL}, is_finite),
        )
    },
    "as_update": Target(as_update, {"update": UPDATE | LABEL}),
    "make_update": Target(
        lambda name, p, factor: make_update(name, p=p, factor=factor),
        {"name": st.sampled_from(PAPER), "p": st.floats(0, 5), "factor": COUNTED["factor"]},
    ),
    "FiniteMDP": Target(FiniteMDP, {**TWO, **NAMES}, is_solved),
    "from_pymdptoolbox": Target(
        FiniteMDP.from_pymdptoolbox,
        {**TWO, **NAMES, "rewards": arrays((2,), (2, 2), (2, 2, 2), low=-1e3, high=1e3)},
        is_solved,
    ),
    "from_quantecon": Target(
        lambda rewards, transitions, discount, **others: FiniteMDP.from_quantecon(
            SimpleNamespace(R=rewards, Q=transitions, beta=discount, num_states=2), **others
        ),
        {**TWO, **NAMES},
    ),
    "evaluate": Target(on_bandit("evaluate"), {"argument": rows((2, 3))}),
    "backup": Target(on_bandit("backup"), {"argument": arrays((2,))}),
    "normalised_performance": Target(
        on_bandit("normalised_performance"), {"argument": rows((2, 3))}, is_finite
    ),
    "optimal": Target(on_bandit("optimal"), {"argument": SMALL}),
    "bandit": Target(domains.bandit, {"rewards": arrays((2,), (5,))}, is_solved),
    "chain": Target(domains.chain, CHAIN, is_solved),
    "cliff": Target(domains.cliff, CHAIN, is_solved),
    "duplicated_chain": Target(
        domains.duplicated_chain, {**CHAIN, "n_actions": st.integers(1, 9)}, is_solved
    ),
    "random_mdp": Target(
        domains.random_mdp,
        {
            "seed": SMALL,
            "n_states": st.integers(2, 9) | st.just(10**9),
            "n_actions": st.integers(1, 4),
            "branching": st.integers(1, 3),
            "discount": st.floats(0.1, 0.99),
            "horizon": st.floats(0, 9),
        },
        is_solved,
    ),
    "as_process": Target(domains.as_process, {"process": LABEL}),
    "read_domain": Target(domains.read_domain, {"label": LABEL}),
    "from_gymnasium": Target(domains.from_gymnasium, {"env": LABEL, "discount": TWO["discount"]}),
    "run": Target(
        lambda update, n_steps, step_size, weighting, theta0: (
            trajectories.run(
                domains.chain(3), update, n_steps, step_size, weighting, theta0
            ).performance
        ),
        {
            "update": UPDATE,
            "n_steps": st.integers(0, 5),
            "step_size": WEIGHT,
            "weighting": st.sampled_from(["occupancy", "uniform"]) | arrays((3,), low=0.0),
            "theta0": st.none() | arrays((3, 2)),
        },
        is_finite,
    ),
    "follow": Target(
        trajectories.follow,
        {"update": UPDATE, "q": arrays((3,)), "weights": WEIGHT, "n_steps": st.integers(0, 5)},
        is_finite,
    ),
    "mixture": Target(trajectories.mixture, {"share": st.floats(0, 1)}),
    "quantile": Target(
        thresholds.quantile, {"times": TIMES, "censored": FLAGS, "probability": st.floats(0, 1)}
    ),
    "restricted_mean": Target(
        thresholds.restricted_mean,
        {"times": TIMES, "censored": FLAGS, "horizon": st.none() | st.floats(0, 99)},
        is_finite,
    ),
    "compare": Target(
        thresholds.compare,
        {"first": TIMES, "first_censored": FLAGS, "second": TIMES, "second_censored": FLAGS},
    ),
    "interval": Target(
        bootstrap.interval, {"values": arrays((9,)), "level": st.floats(0, 1)}, is_interval
    ),
    "exact": Target(exact.exact, {"x": STEP_SIZE | LABEL}),
    "ball": Target(exact.ball, {"x": STEP_SIZE | LABEL}),
    "read_settings": Target(
        lambda text: words.read_settings("domain", text, {"n": 3, "x": 0.5, "b": True, "w": "a"}),
        {"text": st.text(max_size=20) | st.sampled_from(["n=3", "x=inf", "b=True w=é", "n=3 n=3"])},
    ),
    "options.parse": Target(
        options.parse,
        {"label": LABEL | OPTIONS},
    ),
    "scheme_of": Target(options.scheme_of, {"name": LABEL}),
    "select": Target(lambda name: claims.select([name]), {"name": LABEL}),
    "confirm": Target(claims.confirm, {"claim": LABEL}),
    "judge_wrong": Target(claims.judge_wrong, {"claim": LABEL}),
    "count": Target(
        unlearning.count,
        {
            "n": COUNT,
            **COUNTED,
            "schedule": st.sampled_from(["constant", "inverse-sqrt"]),
            "start": START,
            "strict": st.booleans(),
            "max_steps": st.just(STEP_LIMIT),
        },
        is_count,
    ),
    "domino": Target(
        domino.domino, {"states": COUNT, **COUNTED, "max_steps": st.just(STEP_LIMIT)}, is_count
    ),
    "path": Target(
        unlearning.path, {"n": SMALL, "steps": st.integers(0, 9), **COUNTED, "start": START}
    ),
    "well_policy": Target(
        gravity_well_escape.well_policy, {"epsilon": st.floats(0, 1)}, is_distribution
    ),
    "escape_bound": Target(
        gravity_well_escape.escape_bound,
        {"update": UPDATE, "pi": rows((3,)), "q": arrays((3,)), "weight": WEIGHT},
    ),
    "escape_steps": Target(
        gravity_well_escape.escape_steps,
        {
            "update": UPDATE,
            "pi": rows((3,)),
            "q": arrays((3,)),
            "weight": WEIGHT,
            "cap": st.integers(1, 50),
        },
    ),
}


def same(x: object, y: object) -> bool:
    if isinstance(x, np.ndarray):
        return isinstance(y, np.ndarray) and x.tobytes() == y.tobytes()
    if isinstance(x, int):  # repr fails for integers with too many digits
        return type(x) is type(y) and x == y
    return repr(x) == repr(y)


@pytest.mark.parametrize("name", TARGETS)
def test_function_returns_a_valid_result_or_raises_with_a_message(name: str) -> None:
    target = TARGETS[name]

    # Draw at most one invalid argument per call, because its error would hide that of a second.
    @budgeted(12)
    @given(st.data())
    def calls(data: st.DataObject) -> None:
        spoilt = data.draw(st.sampled_from([None, None, *target.arguments]), "spoilt")
        given_ = {
            key: data.draw(hostile(key) if key == spoilt else valid, key)
            for key, valid in target.arguments.items()
        }
        before = {k: v.copy() if isinstance(v, np.ndarray) else v for k, v in given_.items()}
        counter["calls"] += 1
        with warnings.catch_warnings(), time_limit():
            warnings.simplefilter("error", RuntimeWarning)
            try:
                answer = target.function(**given_)
                refusal = None
            except (ValueError, TypeError) as error:
                refusal = error
            if refusal is None:
                assert target.is_valid(answer), answer
            else:
                counter["refused"] += 1
                assert len(str(refusal).split()) > 2, "no sentence"
        assert all(same(given_[k], before[k]) for k in given_), "an argument was changed"

    calls()
