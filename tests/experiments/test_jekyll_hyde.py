"""Test the compiled loop against the plain loop, the updates and the exact performance."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import domains
from pu_lib.engine.arithmetic import exponential as compiled_exponential
from pu_lib.engine.arithmetic import logarithm
from pu_lib.engine.rows import UNIT
from pu_lib.experiments import jekyll_hyde as jh
from pu_lib.experiments.options import OPTIONS, SCHEMES, Options
from pu_lib.experiments.problem import exact_performance, make_problem
from pu_lib.experiments.reference import Stream, Wide, exponential, run_reference
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES

PAPER = OPTIONS["paper"]
PREDECESSOR = replace(OPTIONS["predecessor"], max_episodes=150)


def two_starts() -> FiniteMDP:
    """Return a cyclic MDP with two initial states and two or three successors per pair."""
    rng = np.random.default_rng(5)
    transitions = rng.dirichlet(np.ones(3), size=(3, 4))
    transitions[0, 0] = [0.5, 0.5, 0.0]
    return FiniteMDP(transitions, rng.random((3, 4, 3)), [0.3, 0.7, 0.0], 0.9)


DOMAINS = {
    "random": (lambda: domains.random_mdp(3, n_states=12), "uniform", 0.95),
    "chain": (lambda: domains.chain(5), "first", 0.5),
    "cliff": (lambda: domains.cliff(5), "first", 0.5),
    "duplicated": (lambda: domains.duplicated_chain(5, 5), "first", 0.5),
    "two starts": (two_starts, "uniform", 0.99),
}


def assert_same_parameters(memory, plain):
    """Compare parameters by value, since the two loops rescale them at different steps."""
    digits, power = np.frexp(memory.theta)
    wide = [
        [x if isinstance(x, Wide) else Wide(*math.frexp(x)) for x in row] for row in plain.theta
    ]
    assert_array_equal(digits, [[math.frexp(x.mantissa)[0] for x in row] for row in wide])
    expected = [[x.exponent + math.frexp(x.mantissa)[1] for x in row] for row in wide]
    assert_array_equal(power - UNIT * memory.exponent, expected)


def assert_same_run(domain, update, scheme, options, step_size=1.0, steps=700, seed=1):
    make, baseline, target = DOMAINS[domain]
    mdp = make()
    problem = make_problem(mdp, target, baseline)
    seeds = jh.seed_state(seed, domain, 0)
    memory = jh.RunBuffers()
    compiled = jh.simulate(problem, update, step_size, scheme, seeds, options, steps, memory)
    plain = run_reference(
        mdp,
        problem.threshold,
        update,
        step_size,
        scheme,
        seeds,
        options,
        steps,
        first_gap=25 if problem.acyclic else 100,
    )
    assert (compiled.steps, compiled.episodes) == (plain.steps, plain.episodes)
    assert compiled.censored != plain.passed
    assert_same_parameters(memory, plain)
    assert_array_equal(memory.q, plain.q)
    assert_array_equal(memory.hyde, plain.hyde)
    K, A = problem.n_successors, problem.n_actions
    jekyll = memory.buffer[: len(plain.buffers["jekyll"])]
    hyde = memory.buffer[::-1][: len(plain.buffers["hyde"])]
    for codes, steps_taken in ((jekyll, plain.buffers["jekyll"]), (hyde, plain.buffers["hyde"])):
        assert_array_equal(codes // K, [step.state * A + step.action for step in steps_taken])
        assert_array_equal(problem.successor[codes], [step.after for step in steps_taken])
    scale = problem.optimal_performance - problem.baseline_performance
    assert_allclose(
        compiled.final_performance * scale + problem.baseline_performance,
        plain.performance,
        rtol=1e-10,
    )


# More than four actions affect only the policy, which `tests/test_kernels.py` tests with seven
# actions for every update. Several initial states or three successors affect only the trajectory.
# One update suffices for each and saves compile time. It is a policy gradient, whose parameters
# depend on the last bit of the policy, unlike those of NPG.
ENOUGH = {"duplicated": ["pg-sm"], "two starts": ["pg-sm"]}
RUNS = [(domain, update) for domain in DOMAINS for update in ENOUGH.get(domain, UPDATES)]


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize(("domain", "update"), RUNS)
def test_compiled_run_equals_the_reference(domain, update, scheme):
    assert_same_run(domain, update, scheme, PAPER)


@pytest.mark.parametrize("update", UPDATES)
@pytest.mark.parametrize("domain", ["random", "chain"])
def test_compiled_run_equals_the_reference_with_predecessor_options(domain, update):
    assert_same_run(domain, update, SCHEMES["HiOffPol"], PREDECESSOR)


@pytest.mark.parametrize(
    "change",
    [
        {"hyde_start": 0.0},
        {"hyde_clip": 3.0, "hyde_start": 2.0},
        {"bonus": "log"},
        {"sarsa": "expected"},
        {"replay": "model"},
        {"actor_weight": "discounted"},
        {"cut": 0},
        {"cut": 7},
        {"critic_start": 0.5},
        {"max_episodes": 20},
    ],
    ids=str,
)
@pytest.mark.parametrize("scheme", ["NoExplo", "HiOffPol"])
def test_compiled_run_equals_the_reference_for_each_option(change, scheme):
    assert_same_run("random", "di", SCHEMES[scheme], replace(PAPER, **change))


@pytest.mark.parametrize(
    ("update", "ties"), [("ce", "first"), ("mce", "first"), ("ce", "random"), ("mce", "leave")]
)
def test_compiled_run_equals_the_reference_for_each_tie_rule(update, ties):
    assert_same_run("random", update, SCHEMES["NoExplo"], replace(PAPER, ties=ties))


@pytest.mark.parametrize("start", [1.0, 0.3])
@pytest.mark.parametrize("update", ["pg-es", "pg-es factor=drop"])
def test_compiled_run_equals_the_reference_for_escort_options(update, start):
    options = replace(PAPER, escort_start=start)
    assert_same_run("random", update, SCHEMES["LowOffPol"], options, step_size=3.0)


@pytest.mark.parametrize("update", sorted(UPDATES))
@pytest.mark.parametrize("stop", ["steps", "episodes"])
def test_recorded_policies_equal_the_policies_of_shorter_runs(update, stop):
    """A run with `record_at` continues after the target is reached."""
    problem = make_problem(domains.chain(5), 0.9, "first")
    options = replace(OPTIONS["paper"], stop=stop, max_episodes=20)
    arguments = problem, update, 1.0, SCHEMES["HiOffPol"], jh.seed_state(0, "noted", 0)
    recording, stopped = jh.RunBuffers([1, 40, 3000, 9000]), jh.RunBuffers()
    assert jh.simulate(*arguments, options, 9500, recording).steps == 9500
    assert jh.simulate(*arguments, options, 9500).steps < 9500
    far = replace(problem, threshold=math.inf), *arguments[1:]
    for mark, policy in zip(recording.record_at.tolist(), recording.recorded, strict=True):
        jh.simulate(*far, max_steps=mark, memory=stopped)
        assert_array_equal(policy, stopped.pi)
    assert not np.array_equal(recording.recorded[0], recording.recorded[1])


def test_record_at_must_not_exceed_max_steps():
    problem = make_problem(domains.chain(5), 0.9, "first")
    arguments = problem, "mce", 1.0, SCHEMES["HiOffPol"], jh.seed_state(0, "noted", 0)
    with pytest.raises(ValueError, match="record_at has steps beyond max_steps"):
        jh.simulate(*arguments, max_steps=9, memory=jh.RunBuffers([4, 10]))


@pytest.mark.parametrize("record_at", [[0, 4], [4, 4], [5, 4], [-1]])
def test_record_at_must_increase(record_at):
    with pytest.raises(ValueError, match="record_at: expected increasing numbers of steps"):
        jh.RunBuffers(record_at)


def test_comparison_detects_a_changed_option(monkeypatch):
    compiled = jh.simulate

    def changed(problem, update, step_size, scheme, seeds, options, *rest):
        return compiled(
            problem, update, step_size, scheme, seeds, replace(options, sarsa="expected"), *rest
        )

    monkeypatch.setattr(jh, "simulate", changed)
    with pytest.raises(AssertionError):
        assert_same_run("random", "di", SCHEMES["HiOffPol"], PAPER)


@given(st.floats(-800.0, 0.0))
def test_compiled_exponential_agrees_with_numpy(x):
    assert compiled_exponential(x) == exponential(x)
    assert_allclose(compiled_exponential(x), np.exp(max(x, -708.0)), rtol=2e-15)


@given(st.integers(1, 10**9))
def test_logarithm_agrees_with_numpy(n):
    assert_allclose(logarithm(float(n)), np.log(n), rtol=1e-15, atol=1e-15)


def test_stream_matches_the_test_vector_of_xoshiro():
    # The first words from the state (1, 2, 3, 4) are those of the authors' test vector.
    stream = Stream(np.array([1, 2, 3, 4], dtype=np.uint64))
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386]
    assert [stream.uniform() for _ in range(4)] == [(word >> 11) / 2**53 for word in expected]


@pytest.mark.parametrize("domain", DOMAINS)
def test_compiled_performance_agrees_with_exact_performance(domain):
    make, baseline, target = DOMAINS[domain]
    mdp = make()
    problem = make_problem(mdp, target, baseline)
    rng = np.random.default_rng(0)
    for _ in range(5):
        policy = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
        assert_allclose(exact_performance(problem, policy), mdp.performance(policy), rtol=1e-11)
    assert_allclose(problem.optimal_performance, mdp.optimal().performance, rtol=1e-11)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"update": "sgd"}, "update: unknown 'sgd'"),
        ({"step_size": 0.0}, "step_size: expected"),
        ({"step_size": float("nan")}, "step_size: expected"),
        ({"max_steps": 0}, "max_steps: expected"),
    ],
)
def test_simulate_rejects_invalid_arguments(arguments, sentence):
    problem = make_problem(domains.chain(4), 0.5, "first")
    given_arguments = {
        "update": "di",
        "step_size": 1.0,
        "scheme": SCHEMES["NoExplo"],
        "seeds": jh.seed_state(0, "x", 0),
        **arguments,
    }
    with pytest.raises(ValueError, match=sentence):
        jh.simulate(problem, **given_arguments)


def test_options_reject_invalid_values():
    with pytest.raises(ValueError, match="sarsa: expected one of"):
        Options(sarsa="greedy")
    with pytest.raises(ValueError, match="needs a cap"):
        Options(stop="episodes")
