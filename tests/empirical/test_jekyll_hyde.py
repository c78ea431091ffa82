"""The compiled loop against the plain one, the library's updates and exact performance."""

import threading
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import domains
from pu_lib.empirical import jekyll_hyde as jh
from pu_lib.empirical.options import PRESETS, SCHEMES, Options
from pu_lib.empirical.problem import make_problem
from pu_lib.empirical.reference import Stream, _projection, exponential, run_reference
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import make_update, project_simplex

PAPER = PRESETS["paper"]
PREDECESSOR = replace(PRESETS["predecessor"], max_episodes=150)


def two_starts() -> FiniteMDP:
    """A cyclic process with two starts, three successors and one pair that has only two."""
    rng = np.random.default_rng(5)
    transitions = rng.dirichlet(np.ones(3), size=(3, 3))
    transitions[0, 0] = [0.5, 0.5, 0.0]
    return FiniteMDP(transitions, rng.random((3, 3, 3)), [0.3, 0.7, 0.0], 0.9)


DOMAINS = {
    "random": (lambda: domains.random_mdp(3, n_states=12), "uniform", 0.95),
    "chain": (lambda: domains.chain(5), "first", 0.5),
    "cliff": (lambda: domains.cliff(5), "first", 0.5),
    "duplicated": (lambda: domains.duplicated_chain(5, 6), "first", 0.5),
    "two starts": (two_starts, "uniform", 0.99),
}


def assert_same_run(domain, update, scheme, options, eta=1.0, steps=700, seed=1):
    make, baseline, target = DOMAINS[domain]
    mdp = make()
    problem = make_problem(mdp, target, baseline)
    seeds = jh.seed_state(seed, domain, 0)
    memory = jh.Memory()
    compiled = jh.simulate(problem, update, eta, scheme, seeds, options, steps, memory)
    plain = run_reference(
        mdp,
        problem.threshold,
        update,
        eta,
        scheme,
        seeds,
        options,
        steps,
        first_gap=25 if problem.acyclic else 100,
    )
    assert (compiled.steps, compiled.episodes) == (plain.steps, plain.episodes)
    assert compiled.censored != plain.passed
    assert_array_equal(memory.theta, plain.theta)
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


@pytest.mark.parametrize("scheme", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("update", jh.UPDATE_CODES)
@pytest.mark.parametrize("domain", DOMAINS)
def test_same_run_as_the_reference(domain, update, scheme):
    assert_same_run(domain, update, scheme, PAPER)


@pytest.mark.parametrize("update", jh.UPDATE_CODES)
@pytest.mark.parametrize("domain", ["random", "chain"])
def test_same_run_under_the_predecessors_options(domain, update):
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
def test_same_run_for_each_option(change, scheme):
    assert_same_run("random", "di", SCHEMES[scheme], replace(PAPER, **change))


@pytest.mark.parametrize("ties", ["first", "random", "leave"])
@pytest.mark.parametrize("update", ["ce", "mce"])
def test_same_run_however_ties_are_broken(update, ties):
    assert_same_run("random", update, SCHEMES["NoExplo"], replace(PAPER, ties=ties))


@pytest.mark.parametrize("change", [{"escort_factor": "keep"}, {"escort_start": 0.3}], ids=str)
def test_same_run_for_the_escort_options(change):
    assert_same_run("random", "pg-es", SCHEMES["LowOffPol"], replace(PAPER, **change), eta=3.0)


def test_the_comparison_sees_a_changed_option(monkeypatch):
    compiled = jh.simulate

    def changed(problem, update, eta, scheme, seeds, options, *rest):
        return compiled(
            problem, update, eta, scheme, seeds, replace(options, sarsa="expected"), *rest
        )

    monkeypatch.setattr(jh, "simulate", changed)
    with pytest.raises(AssertionError):
        assert_same_run("random", "di", SCHEMES["HiOffPol"], PAPER)


rows = st.lists(st.floats(-3.0, 3.0), min_size=3, max_size=3)


@pytest.mark.parametrize("factor", ["keep", "drop"])
@given(theta=rows, q=rows, weight=st.floats(1e-3, 1e3))
@settings(max_examples=60, deadline=None)
def test_row_kernels_are_the_librarys_updates(factor, theta, q, weight):
    actions, q = (0, 0, 0), np.array([q])
    for name in jh.UPDATE_CODES:
        update = make_update(name, factor=factor) if name == "pg-es" else make_update(name)
        start = np.array([theta])
        if name == "pg-es":
            start = np.where(np.abs(start) < 1e-3, 1e-3, start)
        if name == "di":
            start = make_update("pg-sm").policy(start)
        compiled, pi, best = start.copy(), update.policy(start), int(np.argmax(q))
        if name == "pg-sm":
            jh._step_pg_sm(compiled, pi, q, 0, weight, actions)
        elif name == "pg-es":
            jh._step_pg_es(compiled, pi, q, 0, weight, factor == "keep", actions)
        elif name == "di":
            jh._step_di(compiled, pi, q, 0, weight, actions)
        elif name == "ce":
            jh._step_ce(compiled, pi, 0, best, weight, actions)
        else:
            jh._step_mce(compiled, pi, 0, best, weight, actions)
        scale = max(1.0, weight)
        assert_allclose(compiled, update.step(start, q, weight), rtol=1e-12, atol=1e-13 * scale)
        assert_allclose(pi, update.policy(compiled), rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(
    "point",
    [
        [0.3697774328713505, 0.05712222648621329, 0.08383784832355562, -0.16308749743962686],
        [-0.005334009858097552, 0.34341167548643026, 0.31189305279047397, -0.11667642719373111],
        [0.36267832892052587, 0.07453767765907718, 0.510072762095722, -0.0175704104415583],
    ],
)
def test_projection_ends_where_an_action_is_at_the_threshold(point):
    # Without care an action at the threshold comes and goes with rounding, for ever.
    theta, pi, q, actions = np.array([point]), np.empty((1, 4)), np.zeros((1, 4)), (0,) * 4
    work = threading.Thread(target=jh._step_di, args=(theta, pi, q, 0, 1.0, actions), daemon=True)
    work.start()
    work.join(timeout=60)
    assert not work.is_alive()
    assert_allclose(pi[0], project_simplex(point), atol=1e-15)
    assert pi[0].tolist() == _projection(point)


@given(st.floats(-800.0, 0.0))
@settings(deadline=None)
def test_exponential(x):
    assert jh._exp(x) == exponential(x)
    assert_allclose(jh._exp(x), np.exp(max(x, -708.0)), rtol=2e-15)


@given(st.integers(1, 10**9))
@settings(deadline=None)
def test_logarithm(n):
    assert_allclose(jh._log(float(n)), np.log(n), rtol=1e-15, atol=1e-15)


def test_stream_is_xoshiro():
    # First words from the state (1, 2, 3, 4), as in the authors' own test vector.
    stream = Stream(np.array([1, 2, 3, 4], dtype=np.uint64))
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386]
    assert [stream.uniform() for _ in range(4)] == [(word >> 11) / 2**53 for word in expected]


@pytest.mark.parametrize("domain", DOMAINS)
def test_exact_performance(domain):
    make, baseline, target = DOMAINS[domain]
    mdp = make()
    problem = make_problem(mdp, target, baseline)
    rng = np.random.default_rng(0)
    for _ in range(5):
        policy = rng.dirichlet(np.ones(mdp.n_actions), size=mdp.n_states)
        assert_allclose(jh.exact_performance(problem, policy), mdp.performance(policy), rtol=1e-11)
    assert_allclose(problem.optimal_performance, mdp.optimal().performance, rtol=1e-11)


def test_sweeps_decide_as_elimination_does():
    mdp = domains.random_mdp(0, n_states=40)
    problem = make_problem(mdp, 0.95)
    rng = np.random.default_rng(1)
    for _ in range(20):
        policy = rng.dirichlet(np.full(4, 0.3), size=40)
        J = mdp.performance(policy)
        for threshold, passes in ((J - 1e-9, True), (J + 1e-9, False)):
            decided = jh._passes(
                policy,
                rng.random(40) * (problem.terminal == 0),
                problem.process,
                (0,) * 4,
                (0,) * 2,
                threshold,
            )
            assert decided == passes


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"update": "sgd"}, "update: expected one of"),
        ({"eta": 0.0}, "eta: expected"),
        ({"eta": float("nan")}, "eta: expected"),
        ({"max_steps": 0}, "max_steps: expected"),
    ],
)
def test_bad_arguments_get_a_sentence(arguments, sentence):
    problem = make_problem(domains.chain(4), 0.5, "first")
    given_arguments = {
        "update": "di",
        "eta": 1.0,
        "scheme": SCHEMES["NoExplo"],
        "seeds": jh.seed_state(0, "x", 0),
        **arguments,
    }
    with pytest.raises(ValueError, match=sentence):
        jh.simulate(problem, **given_arguments)


def test_nothing_to_learn_gets_a_sentence():
    with pytest.raises(ValueError, match="nothing to learn"):
        make_problem(domains.chain(4, beta=2.0), 0.5, "first")


def test_options_check_their_values():
    with pytest.raises(ValueError, match="sarsa: expected one of"):
        Options(sarsa="greedy")
    with pytest.raises(ValueError, match="needs a cap"):
        Options(stop="episodes")
