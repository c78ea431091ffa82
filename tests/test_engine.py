"""The engine, run as plain Python, agrees with hand solutions.

Almost nothing is compiled here, so that these tests detect mistakes in the engine quickly.
`tests/test_kernels.py` and `tests/experiments/test_jekyll_hyde.py` test that the compiled code
gives the same results.
"""

import ctypes
import math
from collections.abc import Iterator
from dataclasses import replace
from types import ModuleType, SimpleNamespace

import numba
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from pu_lib import compiling, domains
from pu_lib.engine import arithmetic, exact, loop, rows, values
from pu_lib.experiments import jekyll_hyde as jh
from pu_lib.experiments import problem as problems
from pu_lib.experiments import reference
from pu_lib.experiments.options import OPTIONS, SCHEMES, Schedule, Scheme
from pu_lib.kernels import KERNELS, pg_es
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import UPDATES

is_due = rows._is_due


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Replace each compiled function by its Python source."""
    for module in (arithmetic, exact, loop, rows, values, problems):
        for name, value in list(vars(module).items()):
            if hasattr(value, "py_func"):
                monkeypatch.setattr(module, name, value.py_func)
    each = arithmetic.exponential
    monkeypatch.setattr(arithmetic, "_bits", lambda x: np.float64(x).view(np.int64))
    monkeypatch.setattr(arithmetic, "_float", lambda n: float(np.int64(n).view(np.float64)))
    monkeypatch.setattr(rows, "exponentials", lambda xs: tuple(map(each, xs)))
    monkeypatch.setattr(rows, "_is_due", lambda *arguments: True)
    monkeypatch.setattr(rows, "_kernels", {kernel: kernel for kernel in KERNELS})
    with np.errstate(over="ignore"):  # random streams overflow 64 bits
        yield


# Arithmetic


def test_uniform_matches_the_test_vector_of_xoshiro():
    """The first words from the state (1, 2, 3, 4) equal those of the authors' test vector."""
    stream, words = tuple(np.uint64(n) for n in (1, 2, 3, 4)), []
    for _ in range(4):
        u, stream = arithmetic.uniform(stream)
        words.append(u * 2**53)
    expected = [41943041, 58720359, 3588806011781223, 3591011842654386]
    assert words == [word >> 11 for word in expected]


def test_table_of_powers_of_two_is_accurate():
    bits = arithmetic._POWERS + (np.arange(64) << 46)
    assert_allclose(bits.view(np.float64), 2.0 ** (np.arange(64) / 64), rtol=1e-15)


def test_exponential_and_logarithm_match_the_reference():
    for x in (0.0, -1e-9, -0.3, -math.log(2.0), -17.0, -700.5, -708.0, -800.0):
        exponential = arithmetic.exponential(x)
        assert exponential == reference.exponential(x)
        assert exponential == pytest.approx(math.exp(max(x, -708.0)), rel=2e-15)
    for n in (1, 2, 3, 10, 724, 10**6):
        assert arithmetic.logarithm(float(n)) == pytest.approx(math.log(n), rel=1e-15)


def test_vectorized_exponentials_match_the_reference():
    """This function is the only one compiled here, because it consists of CPU instructions."""
    xs = (0.0, -0.3, -17.0, -800.0)
    exponentials = compiling.compiled_in_memory(lambda xs: arithmetic._exponentials(xs))(xs)
    assert exponentials == tuple(map(reference.exponential, xs))


# Rows


@pytest.mark.parametrize("n", [2, 3, 4, 6])
def test_set_policy_changes_one_state_only(n):
    rng = np.random.default_rng(n)
    theta, actions = rng.normal(size=(3, n)), (0,) * n
    for name, policy in (("pg-sm", (0,)), ("pg-es", (0, 0))):
        pi = np.full((3, n), 7.0)
        rows.set_policy(theta, pi, 1, policy, actions)
        assert_allclose(pi[1], UPDATES[name].policy(theta[1]), rtol=1e-14)
        assert (pi[[0, 2]] == 7.0).all()
    rows.set_policy(theta, pi, 2, (0, 0, 0), actions)
    assert_array_equal(pi[2], theta[2])


def test_smallest_probability_of_two_actions_is_exp_minus_708():
    pi = np.empty((1, 2))
    for theta, larger in (([0.0, 708.0], 1), ([1e300, -1e300], 0)):
        rows.set_policy(np.array([theta]), pi, 0, (0,), (0, 0))
        assert (pi[0, larger], pi[0, 1 - larger]) == (1.0, reference.exponential(-708.0))


def test_greedy_returns_the_first_best_action_and_the_number_of_ties():
    q = np.array([[9.0, 9.0, 9.0, 9.0], [1.0, 3.0, 0.0, 3.0]])
    four = (0,) * 4
    assert rows.greedy(q, 0, four) == (0, 4)
    assert rows.greedy(q, 1, four) == (1, 2)
    assert [rows.nth_best(q, 1, 1, n, four) for n in (0, 1)] == [1, 3]
    assert [rows.nth_best(q, 0, 0, n, four) for n in range(4)] == [0, 1, 2, 3]


def test_rescaling_does_not_change_the_value_of_a_parameter():
    theta = np.array([[2.0**-481, -(2.0**-120), 2.0**-200, 0.0, 2.0**-100]])
    exponent = np.array([[0, 2, 1, 0, 0]])
    rows.rescale(theta, exponent, 0, (0,) * 5)
    assert theta.tolist() == [[2.0**-225, -(2.0**-376), 2.0**-200, 0.0, 2.0**-100]]
    assert exponent.tolist() == [[1, 1, 1, 0, 0]]
    for others in ([], [1.0]):
        theta, exponent = np.array([[*others, 2.0**-481]]), np.array([[0] * (1 + len(others))])
        rows.rescale(theta, exponent, 0, (0,) * theta.size)
        assert theta.tolist() == [[*others, 2.0**-225]]
        assert exponent.tolist() == [[0] * len(others) + [1]]
    theta, exponent = np.array([[2.0**-100]]), np.array([[1]])
    rows.rescale(theta, exponent, 0, (0,))
    assert (theta.tolist(), exponent.tolist()) == ([[2.0**-356]], [[0]])


def test_rescaling_is_due_if_a_parameter_is_out_of_bounds():
    due = compiling.compiled_in_memory(
        lambda theta, exponent: is_due(theta, exponent, 0, (0, 0, 0))
    )
    inside = [(2.0**-480, 0), (-(2.0**-480), 1), (1.0, 0), (np.nextafter(2.0**-120, 0.0), 1)]
    outside = [(np.nextafter(2.0**-480, 0.0), 0), (2.0**-120, 1), (-1.0, 2)]
    for size, e in inside + outside:
        for place in range(3):
            theta, exponent = np.ones((1, 3)), np.zeros((1, 3), np.int64)
            theta[0, place], exponent[0, place] = size, e
            assert due(theta, exponent) == ((size, e) in outside)


def test_policy_after_a_step_uses_the_rescaled_parameters():
    theta, exponent = np.array([[1.0, 2.0**-481]]), np.zeros((1, 2), np.int64)
    pi, q = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])
    escort, scaled = rows.static_policy("escort"), rows.static_flag(True)
    first, paper = rows.static_ties("first"), rows.static_flag(False)
    static = loop.StaticArgs((0, 0), (0,), rows.static_kernel(pg_es), escort, first, scaled, paper)
    memory = np.empty((1, 0))
    loop._improve(0, 0.0, theta, exponent, memory, pi, q, static, None)
    assert theta.tolist() == [[1.0, 2.0**-225]]
    assert pi.tolist() == [[1.0, 2.0**-450]]


# Linear systems and values


def test_solve_returns_the_solution_of_linear_equations():
    rng = np.random.default_rng(0)
    for n in (1, 2, 5):
        matrix = np.eye(n) - 0.9 * rng.dirichlet(np.ones(n), size=n)
        right, original = rng.normal(size=n), matrix.copy()
        v = right.copy()
        values.solve(matrix, v)
        assert_allclose(original @ v, right, atol=1e-13)
    matrix, v = (
        np.array([[2.0, 1.0], [2.0, 3.0]]),
        np.array([3.0, 5.0]),
    )  # two entries of a column are equal
    values.solve(matrix, v)
    assert v.tolist() == [1.0, 1.0]


PROCESSES = {
    "chain": lambda: domains.chain(5),
    "random": lambda: domains.random_mdp(3, n_states=12),
    "two starts": lambda: FiniteMDP(
        np.random.default_rng(5).dirichlet(np.ones(3), size=(3, 3)),
        np.random.default_rng(6).random((3, 3, 3)), [0.3, 0.7, 0.0], 0.9,
    ),
    "nine successors": lambda: FiniteMDP(
        np.random.default_rng(7).dirichlet(np.ones(9), size=(9, 2)),
        np.random.default_rng(8).random((9, 2)), np.full(9, 1 / 9), 0.9,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROCESSES)
def test_performance_agrees_with_the_process(name):
    mdp, rng = PROCESSES[name](), np.random.default_rng(1)
    problem = problems.make_problem(mdp, 0.9)
    low, high = problem.baseline_performance, problem.optimal_performance
    uniform = np.full((mdp.n_states, mdp.n_actions), 1 / mdp.n_actions)
    assert low == pytest.approx(mdp.performance(uniform), rel=1e-12)
    assert high == pytest.approx(mdp.optimal().performance, rel=1e-12)
    actions, successors = (0,) * mdp.n_actions, rows.static_successors(problem.n_successors)
    for _ in range(5):
        policy = rng.dirichlet(np.full(mdp.n_actions, 0.3), size=mdp.n_states)
        J = mdp.performance(policy)
        for threshold, expected in ((J - 1e-9, True), (J + 1e-9, False)):
            v = rng.random(mdp.n_states) * (problem.terminal == 0)
            reached = values.reaches_threshold(
                policy, v, problem.process, actions, successors, threshold
            )
            assert reached == expected


def test_value_sweeps_decide_only_if_the_target_is_outside_their_bounds(monkeypatch):
    """If the discount is 1/2, a sweep that changes v by d is within d of the fixed point."""
    monkeypatch.setattr(values, "_sweep", lambda *_: next(swept))
    monkeypatch.setattr(values, "_from_starts", lambda *_: 1.0)
    monkeypatch.setattr(values, "performance", lambda *_: pytest.fail("the sweeps decide"))
    process = (*[None] * 5, 0.5, None, None, (0,), None, None)
    # the fixed point is between 1 - 1/8 and 1 + 1/4
    for threshold, expected in ((0.87, True), (1.26, False)):
        swept = iter([(0.25, 0.125)])
        assert values.reaches_threshold(None, None, process, (), (), threshold) is expected
    for threshold, expected in ((0.88, True), (1.24, False)):
        swept = iter([(0.25, 0.125), (0.0, 0.0)])
        assert values.reaches_threshold(None, None, process, (), (), threshold) is expected
        assert next(swept, None) is None


def test_value_sweeps_within_rounding_of_the_target_do_not_decide(monkeypatch):
    swept = iter([(0.0, 0.0)] * 100)
    monkeypatch.setattr(values, "_sweep", lambda *_: next(swept))
    monkeypatch.setattr(values, "_from_starts", lambda *_: -1.0 + values._MARGIN)
    monkeypatch.setattr(values, "performance", lambda *_: 0.25)
    process = (*[None] * 5, 0.5, None, None, (0,), None, None)
    assert values.reaches_threshold(None, None, process, (), (), -1.0)
    assert next(swept, None) is None


# Comparison of the loop with the reference


def run(name, update, options, scheme="HiOffPol", steps=250):
    mdp = PROCESSES[name]()
    problem, memory = problems.make_problem(mdp, 0.9), jh.RunBuffers()
    setting = (update, 1.0, SCHEMES[scheme], jh.seed_state(1, name, 0), options, steps)
    ended = jh.simulate(problem, *setting, memory)
    first = 25 if problem.acyclic else 100
    return ended, memory, reference.run_reference(mdp, problem.threshold, *setting, first), problem


@pytest.fixture
def uncompiled(monkeypatch):
    monkeypatch.setattr(loop, "run_cached", loop.run)


PAPER = OPTIONS["paper"]
OPTIONS = {
    "paper": PAPER,
    "predecessor": replace(OPTIONS["predecessor"], max_episodes=40),
    "model": replace(PAPER, replay="model"),
    "cut": replace(PAPER, cut=7, ties="random"),
    "leave": replace(PAPER, cut=0, ties="leave", hyde_start=2.0, hyde_clip=3.0),
}


@pytest.mark.parametrize(
    ("name", "update", "options", "scheme"),
    [
        ("chain", "pg-es", "paper", "HiOffPol"),
        ("chain", "di", "predecessor", "HiOffPol"),
        ("random", "ce", "paper", "NoExplo"),
        ("random", "pg-sm", "predecessor", "HiOffPol"),
        ("random", "di", "model", "LowOffPol"),
        ("random", "mce", "cut", "HiOffPol"),
        ("random", "ce", "leave", "HiOffPol"),
        ("two starts", "pg-sm", "paper", "HiOffPol"),
        ("two starts", "di", "model", "HiOffPol"),
    ],
)
def test_uncompiled_run_agrees_with_the_reference(name, update, options, scheme, uncompiled):
    ended, memory, theirs, problem = run(name, update, OPTIONS[options], scheme)
    assert (ended.steps, ended.episodes) == (theirs.steps, theirs.episodes)
    assert ended.censored != theirs.passed
    size = memory.theta * 2.0 ** (-rows.UNIT * memory.exponent)
    assert_array_equal(size, [[float(x) for x in row] for row in theirs.theta])
    assert_array_equal(memory.q, theirs.q)
    assert_array_equal(memory.hyde, theirs.hyde)
    A, K = problem.n_actions, problem.n_successors
    for codes, who in ((memory.buffer, "jekyll"), (memory.buffer[::-1], "hyde")):
        taken = theirs.buffers[who]
        assert_array_equal(codes[: len(taken)] // K, [x.state * A + x.action for x in taken])


@pytest.mark.parametrize(("threshold", "episodes"), [(0.4, 1), (0.6, 5)])
def test_mixture_with_hydes_policy_must_reach_the_threshold(
    threshold, episodes, uncompiled, monkeypatch
):
    """The equal mixture has performance 1/2, Jekyll's policy 1 and Hyde's policy 0."""
    memory, half = jh.RunBuffers(), Schedule(0.5, 0.0)
    monkeypatch.setattr(loop, "performance", lambda pi, *_: 1.0 if pi is memory.pi else 0.0)
    problem = replace(problems.make_problem(domains.chain(4), 0.5, "first"), threshold=threshold)
    options = replace(OPTIONS["predecessor"], max_episodes=5)
    seeds = jh.seed_state(1, "chain", 0)
    ended = jh.simulate(
        problem, "pg-sm", 1.0, Scheme("half", half, half), seeds, options, 100, memory
    )
    assert (ended.episodes, ended.censored) == (episodes, episodes == 5)


def test_schedule_is_a_power_of_time_capped_at_one():
    assert [loop._schedule(3.0, 0.0, t) for t in (1, 100)] == [1.0, 1.0]
    assert [loop._schedule(0.3, 0.0, t) for t in (1, 100)] == [0.3, 0.3]
    assert [loop._schedule(3.0, 0.5, t) for t in (4, 36)] == [1.0, 0.5]
    assert [loop._schedule(3.0, 1.0, t) for t in (2, 12)] == [1.0, 0.25]


def test_model_draws_successors_in_proportion_to_counts(monkeypatch):
    """A draw of 0.55 selects the sixth of ten successors and the third of five.

    Only the loop over five successors is unrolled.
    """
    monkeypatch.setattr(loop, "uniform", lambda stream: (0.55, stream + 1))
    ten, five = np.tile(np.arange(1, 11) / 10, (3, 1)), np.tile(np.arange(1, 6) / 5, (3, 1))
    assert loop._enter(2, ten, (), 7) == (25, 8)
    assert loop._enter(2, five, (0,) * 5, 7) == (12, 8)
    assert loop._enter(2, np.ones((3, 1)), (0,), 7) == (2, 7)  # one successor needs no draw


@pytest.mark.parametrize(
    ("explores", "log_bonus", "bonus"), [(True, False, 0.5), (True, True, 0.0), (False, False, 0.0)]
)
def test_bonus_is_stored_only_if_used(explores, log_bonus, bonus):
    visits, stored, seen = np.full(3, 3), np.zeros(3), np.zeros(6)
    rules = SimpleNamespace(log_bonus=log_bonus, model=True)
    details = rows.static_flag(True)
    loop._count(1, 3, explores, visits, stored, seen, rules, details)
    assert visits.tolist() == [3, 4, 3]
    assert stored.tolist() == [0.0, bonus, 0.0]
    assert seen.tolist() == [0, 0, 0, 1, 0, 0]


# Deterministic MDPs


def test_look_ahead_matches_hand_solution():
    """The actions have values 2, 1/2 * 8 = 4 and 3; the fourth entry is not an action."""
    rewards, successors = np.array([2.0, 0.0, 3.0, 9.0]), np.array([-1, 1, -1, -1])
    q = np.zeros(4)
    assert exact._look_ahead(rewards, successors, 0.5, np.array([0.0, 8.0]), q, 3) == (1, 1.0)
    assert q.tolist() == [2.0, 4.0, 3.0, 0.0]
    assert exact._look_ahead(rewards, successors, 0.5, np.array([0.0, 4.0]), q, 2) == (0, 0.0)
    # state 0 is not terminal
    assert exact._look_ahead(rewards, np.array([-1, 0]), 0.5, np.array([6.0]), q, 2) == (1, 1.0)


def test_softmax_of_a_large_parameter_does_not_overflow_at_any_action():
    for theta in np.eye(3) * 800.0:
        pi = np.empty(3)
        exact._softmax(theta, pi, 3)
        assert pi.tolist() == (theta / 800.0).tolist()


def test_value_of_a_self_loop_is_a_geometric_series():
    """One action loops with reward 1 and one ends with reward 0, so that v = (1 + v / 2) / 2."""
    pi, matrix, v = np.array([[0.5, 0.5]]), np.empty((1, 1)), np.empty(1)
    exact._system(np.array([[1.0, 0.0]]), np.array([[0, -1]]), np.array([2]), 0.5, pi, matrix, v)
    assert (matrix.item(), v.item()) == (0.75, 0.5)


def test_process_of_two_states_matches_hand_solution(monkeypatch):
    """State 0 leads to state 1 or ends with reward 1; state 1 ends with reward 0 or 2."""
    rewards = np.array([[0.0, 1.0, 1.0], [0.0, 2.0, 5.0]])
    successors, n_actions = np.array([[1, -1, -1], [-1, -1, -1]]), np.array([3, 2])
    moved = []

    def advance(update, theta, pi, q, best, weight, n):
        moved.append((pi[:n].tolist(), q[:n].tolist(), best, weight))
        theta[:n] += 0.0

    monkeypatch.setattr(exact, "advance", advance)
    v, greedy, gaps = np.empty((2, 2)), np.empty((2, 2), dtype=np.int64), np.empty((2, 2))
    weights = np.array([[1.0, 0.0], [0.5, 0.25]])
    for on_policy, visits in ((False, [1.0, 1.0]), (True, [12 / 13, 14 / 13])):
        moved.clear()
        theta = np.zeros((2, 3))
        exact.process(
            (0,), rewards, successors, n_actions, 0.5, theta, weights, on_policy, v, greedy, gaps
        )
        # state 1 has value 1, and state 0 (1/2 + 1 + 1) / 3
        assert_allclose(v, [[5 / 6, 1.0]] * 2)
        assert greedy.tolist() == [[1, 1]] * 2
        assert_allclose(gaps, [[0.0, 2.0]] * 2)
        # from a uniform start, state 1 is visited 1 + 1/2 * 1/3 times as often as state 0
        made = [(0, 1.0), (0, 0.5), (1, 0.25)]
        assert [weight for *_, weight in moved] == pytest.approx([w * visits[s] for s, w in made])
        assert_allclose(moved[0][0], [1 / 3] * 3)
        assert_allclose(moved[0][1], [0.5, 1.0, 1.0])
        assert moved[2][1] == [0.0, 2.0]


def test_scan_returns_the_largest_drop_in_each_half(monkeypatch):
    """The largest drops are from 5 to 4 in the first half and from 9 to 2 in the second half."""
    chunks = iter([[1, 5, 4], [5, 6, 5.5], [7, 9, 8], [9, 2, 9], *[[0, 0, 0]] * 4])

    def process(update, rewards, successors, n_actions, discount, theta, weights, *rest):
        path = next(chunks)
        rest[1][:] = path[-1]
        rest[1][:3, 0] = path

    monkeypatch.setattr(exact, "process_cached", process)
    first, last = np.empty(2), np.empty(2)
    shape = (2, 1, 2)
    exact.scan(
        (0,), np.zeros(shape), np.zeros(shape), np.array([2]), np.zeros(2), np.zeros(shape),
        np.ones((2, 1)), False, 4 * exact.CHUNK + 1999, first, last,
    )  # fmt: skip
    assert next(chunks, None) is None
    assert (first.tolist(), last.tolist()) == ([1.0, 0.0], [7.0, 0.0])


# Compilation


def test_source_digest_depends_on_the_sources(monkeypatch):
    monkeypatch.setattr(compiling, "_source_digest", compiling._source_digest.__wrapped__)
    before = compiling._source_digest()
    read = compiling.Path.read_bytes
    for changed in ("compiling.py", "kernels.py", "rows.py", "loop.py"):
        monkeypatch.setattr(
            compiling.Path, "read_bytes",
            lambda path, changed=changed: read(path) + b" " * (path.name == changed),
        )  # fmt: skip
        assert compiling._source_digest() != before
    monkeypatch.setattr(compiling.Path, "read_bytes", read)
    assert compiling._source_digest() == before


# Digests of kernels


SCALE, TABLE, ERF = 1.0, np.zeros(5000), ctypes.CDLL(None).abs


def inner(x):
    return SCALE * x


def outer(x):
    return inner(x)


def kernel(theta, pi, q, best, weight, n_actions):
    theta[best] += outer(weight) + TABLE[7] * math.sqrt(theta.size) + (lambda x: x + SCALE)(0.0)


def factory(c):
    def made(theta, pi, q, best, weight, n_actions, c=c):
        theta[best] += c * ERF(weight)

    return made


def test_code_digest_does_not_depend_on_print_options():
    kernel = factory(np.float64(1.5))
    code = compiling.code_digest(kernel)
    with np.printoptions(legacy="1.13", precision=1):
        assert compiling.code_digest(kernel) == code
    assert compiling.code_digest(factory(np.float64(2.5))) != code


def test_code_digest_depends_on_the_code_of_a_kernel(monkeypatch):
    """The digest depends on the code and the constants that it reads, not on the source file."""
    code = compiling.code_digest(kernel)
    monkeypatch.setattr("inspect.getsource", lambda _: "something else")
    assert compiling.code_digest(kernel) == code
    table = TABLE.copy()
    table[7] = 1e-12
    for name, value in (("SCALE", 2.0), ("TABLE", table), ("inner", abs)):
        with monkeypatch.context() as change:
            change.setitem(globals(), name, value)
            assert compiling.code_digest(kernel) != code
    assert compiling.code_digest(factory(1.0)) == compiling.code_digest(factory(1.0))
    assert compiling.code_digest(factory(1.0)) != compiling.code_digest(factory(2.0))
    assert compiling.code_digest(numba.njit(kernel)) == code
    made = {}
    for function in ("sin", "cos"):
        scope = {"math": math}
        exec(f"def k(theta, pi, q, best, weight, n): theta[best] += math.{function}(weight)", scope)
        made[function] = compiling.code_digest(scope["k"])
    assert made["sin"] != made["cos"]


def test_code_digest_depends_on_constants_of_modules():
    """The digest includes constants that are read through nested modules and closures."""
    module = ModuleType("helpers")
    module.deep = ModuleType("helpers.deep")
    module.deep.rate, module.other = 1.0, 1.0

    def make(helpers):
        def k(theta, pi, q, best, weight, n_actions):
            theta[best] += helpers.deep.rate * weight * theta.size

        return k

    code = compiling.code_digest(make(module))
    module.other, globals()["size"] = 2.0, 3.0
    assert compiling.code_digest(make(module)) == code
    module.deep.rate = 2.0
    assert compiling.code_digest(make(module)) != code


def test_code_digest_depends_on_tuples():
    def made(steps):
        def k(theta, pi, q, best, weight, n_actions):
            theta[best] += steps[0](weight) + steps[1] * steps[2]

        return compiling.code_digest(k)

    several = (
        (inner, 1, 11), (outer, 1, 11), (inner, 11, 1), (inner, 1, 11, 0), (inner, outer, inner),
        (outer, outer, inner),
    )  # fmt: skip
    assert len({made(steps) for steps in several}) == len(several)
    assert made((inner, 1, 11)) == made((inner, 1, 11))


def test_code_digest_depends_on_constants_after_many_names():
    """The digest depends on names whose index needs two bytecode instructions."""
    scope = {f"g{i}": 0.0 for i in range(300)} | {"m": ModuleType("m")}
    names = " + ".join(name for name in scope if name != "m")
    exec(f"def k(theta, pi, q, best, weight, n):\n    theta[best] += {names} + m.c", scope)
    codes = set()
    for scope["m"].c in (1.0, 2.0):
        codes.add(compiling.code_digest(scope["k"]))
    assert len(codes) == 2


def test_code_digest_ignores_docstrings():
    made = []
    for words in ("one", "another"):
        scope = {}
        text = f"def k(theta, pi, q, best, weight, n):\n    '{words}'\n    theta[best] += weight"
        exec(text, scope)
        made.append(compiling.code_digest(scope["k"]))
    assert made[0] == made[1]


def test_code_digest_depends_on_vectorized_callees():
    def made(c):
        @numba.vectorize
        def scaled(x):
            return c * x

        return lambda theta, pi, q, best, weight, n: scaled(weight)

    assert compiling.code_digest(made(1.0)) == compiling.code_digest(made(1.0))
    assert compiling.code_digest(made(1.0)) != compiling.code_digest(made(2.0))
