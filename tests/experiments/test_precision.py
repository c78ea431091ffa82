"""Test that no parameter of the escort update underflows and that other updates are unchanged.

An exact escort step multiplies each parameter by a number that is not 0. The compiled loop stores
an exponent with each parameter. The tests compare it with a run of the same random stream at
256-bit precision, which has unlimited exponents, and with plain floats.
"""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from flint import arb, ctx
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import domains
from pu_lib.engine.rows import UNIT
from pu_lib.experiments.jekyll_hyde import RunBuffers, seed_state, simulate
from pu_lib.experiments.options import OPTIONS, SCHEMES
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.reference import Actor, run_reference

SCALED = OPTIONS["paper"]
FLOATS = replace(SCALED, precision="float64")
KEEP, DROP = "pg-es", "pg-es factor=drop"

MAKE = {
    "random-mdp": lambda: (domains.random_mdp(0, n_states=30), 0.95, "uniform"),
    "chain": lambda: (domains.chain(10), 0.5, "first"),
    "cliff": lambda: (domains.cliff(7), 0.5, "first"),
    "duplicated-chain": lambda: (domains.duplicated_chain(10, 5), 0.5, "first"),
}


@cache
def make(domain):
    """Return the MDP of a domain and the problem that the loops run."""
    mdp, target, baseline = MAKE[domain]()
    return mdp, make_problem(mdp, target, baseline)


@pytest.fixture
def many_digits():
    before, ctx.prec = ctx.prec, 256
    yield
    ctx.prec = before


def policy(theta):
    """Return the escort policy of Arb numbers as floats."""
    squares = [x * x for x in theta]
    total = sum(squares, arb(0))
    return [float((x / total).mid()) for x in squares]


def make_step(keep):
    """Return the step of the escort update in the arithmetic of its arguments."""

    def step(theta, _, q, weight, __):
        squares = [x * x for x in theta]
        total = sum(squares, arb(0))
        v = sum((x / total * y for x, y in zip(squares, q, strict=True)), arb(0))
        scale = 2 * arb(weight) / total if keep else arb(weight) / total.sqrt()
        # Keep only the midpoints, since the run needs 256-bit precision but no proof.
        return [(x + scale * x * (arb(y) - v)).mid() for x, y in zip(theta, q, strict=True)]

    return step


def run(domain, step_size, options, steps, number=0, scheme="HiOffPol", update=DROP):
    """Run the compiled loop and return its outcome and its buffers."""
    problem, memory = make(domain)[1], RunBuffers()
    seeds = seed_state(0, domain, number)
    ended = simulate(problem, update, step_size, SCHEMES[scheme], seeds, options, steps, memory)
    return ended, memory


def assert_same_end(domain, update, step_size, options, actor):
    """Compare the end of the compiled loop with that of the plain loop at 256-bit precision."""
    ended, memory = run(domain, step_size, options, 6_000, number=1, update=update)
    mdp, problem = make(domain)
    exact = run_reference(
        mdp,
        problem.threshold,
        update,
        step_size,
        SCHEMES["HiOffPol"],
        seed_state(0, domain, 1),
        options,
        6_000,
        first_gap=100 if domain == "random-mdp" else 25,
        actor=actor,
    )
    assert (ended.steps, ended.episodes, ended.censored) == (
        exact.steps,
        exact.episodes,
        not exact.passed,
    )
    return memory, exact


DEEP = [
    ("random-mdp", 1.0, -5),
    ("random-mdp", 316.0, -450),
    ("chain", 1.0, -15),
    ("chain", 31.6, -200),
    ("cliff", 100.0, -100),
    ("cliff", 1000.0, -100),
    ("duplicated-chain", 100.0, -100),
]


@pytest.mark.parametrize(
    ("update", "domain", "step_size", "depth"),
    [
        *(pytest.param(DROP, *run, id=f"drop-{run[0]}-{run[1]}") for run in DEEP),
        # KEEP differs only in the factor, so two domains suffice.
        *(pytest.param(KEEP, *run, id=f"keep-{run[0]}-{run[1]}") for run in DEEP[:4]),
    ],
)
def test_escort_run_agrees_with_256_bits(update, domain, step_size, depth, many_digits):
    actor = Actor(policy, make_step(update == KEEP), arb)
    memory, exact = assert_same_end(domain, update, step_size, SCALED, actor)
    size = [[float((abs(x).log() / arb(10).log()).mid()) for x in row] for row in exact.theta]
    assert_allclose(memory.log_modulus, size, rtol=0.0, atol=1e-8)
    assert_array_equal(np.sign(memory.theta), [[float(x.sgn()) for x in r] for r in exact.theta])
    if update == DROP:
        assert memory.log_modulus.min() < depth, memory.log_modulus.min()


# Other updates at 256-bit precision


def softmax(theta):
    top = max(theta)
    weights = [(x - top).exp() for x in theta]
    total = sum(weights, arb(0))
    return [x / total for x in weights]


def soft(step):
    """Return the actor of a softmax update from its step, a function of (pi, q, weight)."""

    def advance(theta, _, q, weight, __):
        moves = step(softmax(theta), [arb(x) for x in q], arb(weight))
        return [(x + move).mid() for x, move in zip(theta, moves, strict=True)]

    return Actor(lambda theta: [float(x.mid()) for x in softmax(theta)], advance, arb)


def pg_sm(pi, q, w):
    v = sum((p * x for p, x in zip(pi, q, strict=True)), arb(0))
    return [w * p * (x - v) for p, x in zip(pi, q, strict=True)]


def best_of(q):
    return next(a for a, x in enumerate(q) if all(x >= y for y in q))


def ce(pi, q, w):
    best = best_of(q)
    return [w * ((a == best) - p) for a, p in enumerate(pi)]


def mce(pi, q, w):
    best = best_of(q)
    gain = w * sum((p for a, p in enumerate(pi) if a != best), arb(0))
    return [gain if a == best else -gain / (len(pi) - 1) for a in range(len(pi))]


def di(theta, _, q, weight, __):
    """Make a DI step with a projection by sorting, unlike the library's."""
    point = [(x + arb(weight) * arb(y)).mid() for x, y in zip(theta, q, strict=True)]
    ranked = sorted(point, reverse=True)
    sums = [(sum(ranked[: k + 1], arb(0)) - 1) / (k + 1) for k in range(len(ranked))]
    level = max(k for k, mean in enumerate(sums) if ranked[k] > mean)
    return [(x - sums[level]).mid() if x > sums[level] else arb(0) for x in point]


EXACT = {
    "pg-sm": soft(pg_sm),
    "ce": soft(ce),
    "mce": soft(mce),
    "di": Actor(lambda theta: [float(x) for x in theta], di, arb),
}


@pytest.mark.parametrize("step_size", [0.1, 1000.0])
@pytest.mark.parametrize("domain", ["random-mdp", "chain", "cliff"])
@pytest.mark.parametrize("update", EXACT)
def test_other_updates_agree_with_256_bits(update, domain, step_size, many_digits):
    memory, exact = assert_same_end(domain, update, step_size, SCALED, EXACT[update])
    policies = [EXACT[update].policy(row) for row in exact.theta]
    assert_allclose(memory.pi, policies, rtol=0.0, atol=1e-9)
    if update == "di":  # the projections have the same zeros
        assert_array_equal(memory.theta == 0.0, [[float(x) == 0.0 for x in r] for r in exact.theta])


@pytest.mark.parametrize("domain", ["random-mdp", "chain"])
def test_scaled_run_equals_float_run_if_parameters_stay_normal(domain):
    same = 0
    for step_size in (0.1, 1.0, 10.0, 100.0):
        for number in range(6):
            plain, floats = run(domain, step_size, FLOATS, 4_000, number)
            if np.abs(floats.theta).min() > 1e-290:
                scaled, memory = run(domain, step_size, SCALED, 4_000, number)
                assert scaled == plain
                assert_array_equal(memory.theta * 2.0 ** (-UNIT * memory.exponent), floats.theta)
                same += 1
    assert same >= 6


def test_run_that_underflows_in_floats_reaches_the_target_with_exponents():
    lost, floats = run("chain", 100.0, FLOATS, 60_000)
    saved, memory = run("chain", 100.0, SCALED, 60_000)
    assert lost.censored
    assert (floats.theta == 0.0).any()
    assert not saved.censored
    assert not (memory.theta == 0.0).any()
    assert memory.log_modulus.min() < -324
