"""Tests of the updates: gradients, projection, invariances, ties and error messages."""

import math
import sys
import tracemalloc
from decimal import Decimal
from importlib import reload

import autograd
import autograd.numpy as anp
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from pu_lib import kernels, parametrizations
from pu_lib.chapters.unlearning.quantities import count
from pu_lib.experiments.race import Race, race
from pu_lib.parametrizations import as_weights
from pu_lib.updates import (
    UPDATES,
    Update,
    advantage,
    as_update,
    escort,
    greedy_mask,
    make_update,
    name_of,
    project_simplex,
    register,
    softmax,
    style_of,
)

NAMES = list(UPDATES)
SOFTMAX = ["pg-sm", "ce", "mce"]


def numbers(low, high):
    return st.floats(low, high, allow_nan=False, allow_infinity=False, width=64)


@st.composite
def states(draw, name=None, bound=1e3):
    """Draw an update, parameters, values and weights for a few states and actions."""
    name = name or draw(st.sampled_from(NAMES))
    shape = (draw(st.integers(1, 3)), draw(st.integers(2, 6)))
    theta = draw(hnp.arrays(np.float64, shape, elements=numbers(-bound, bound)))
    if name == "di":
        theta = project_simplex(theta)
    if name == "pg-es":  # the factor 1/||theta|| overflows for subnormal parameters
        theta = np.where(np.abs(theta) < 1e-100, 0.0, theta)
        theta = np.where(theta.any(axis=-1, keepdims=True), theta, 1.0)
    q = draw(hnp.arrays(np.float64, shape, elements=numbers(-100, 100)))
    weight = draw(hnp.arrays(np.float64, shape[:1], elements=numbers(0, 1e6)))
    return UPDATES[name], theta, q, weight


# Parametrizations


@given(states())
def test_policies_are_non_negative_and_sum_to_one(case):
    update, theta, _, _ = case
    pi = update.policy(theta)
    assert np.all(pi >= 0)
    np.testing.assert_allclose(pi.sum(axis=-1), 1, rtol=1e-9 if update.name == "di" else 1e-14)


@given(states())
def test_step_returns_valid_parameters(case):
    update, theta, q, weight = case
    new = update.step(theta, q, weight)
    assert new.shape == theta.shape
    assert np.all(np.isfinite(new))
    if new.any(axis=-1).all():
        np.testing.assert_allclose(update.policy(new).sum(axis=-1), 1, rtol=1e-9)


@pytest.mark.parametrize("name", NAMES)
def test_initial_policy_is_uniform(name):
    start = UPDATES[name].initial(3, 5)
    np.testing.assert_allclose(UPDATES[name].policy(start), np.full((3, 5), 0.2), rtol=1e-15)


@pytest.mark.parametrize("update", [*UPDATES.values(), make_update("pg-es", p=3)], ids=repr)
def test_parameters_is_a_right_inverse_of_policy(update):
    pi = np.array([[0.2, 0.3, 0.5], [0.98, 0.01, 0.01]])
    np.testing.assert_allclose(update.policy(update.parameters(pi)), pi, rtol=1e-12)
    uniform = np.full((1, 3), 1 / 3)
    start = update.initial(1, 3)
    np.testing.assert_allclose(np.ptp(update.parameters(uniform) - start), 0, atol=1e-15)


def test_escort_parameters_have_the_norm_of_the_uniform_initial_parameters():
    update = make_update("pg-es", p=3)
    theta = update.parameters([0.2, 0.3, 0.5])
    assert np.sum(theta**3) == pytest.approx(np.sum(update.initial(1, 3) ** 3))


@given(states("ce"), numbers(-1e3, 1e3))
def test_softmax_ignores_a_common_shift(case, shift):
    _, theta, _, _ = case
    np.testing.assert_allclose(softmax(theta + shift), softmax(theta), rtol=1e-9, atol=1e-12)


@given(states("pg-es"), st.sampled_from([1.0, 1.5, 2.0, 3.0]), numbers(1e-3, 1e3))
def test_escort_ignores_scale_and_signs(case, p, scale):
    _, theta, _, _ = case
    theta = np.where(np.abs(theta) < 1e-100, 1.0, theta)
    np.testing.assert_allclose(escort(-scale * theta, p), escort(theta, p), rtol=1e-9, atol=1e-15)


def test_large_parameters_and_weights_do_not_overflow():
    theta = np.array([[1e3, -1e3, 0.0], [1e3, 1e3, -1e3]])
    q = np.array([[0.0, 1.0, 0.5], [0.0, -1.0, 1.0]])
    for name in ("pg-sm", "pg-es", "ce", "mce"):
        new = UPDATES[name].step(theta, q, 1e6)
        assert np.all(np.isfinite(UPDATES[name].policy(new)))
    np.testing.assert_array_equal(
        UPDATES["ce"].policy(UPDATES["ce"].step(theta, q, 1e6)).argmax(1), [1, 2]
    )
    np.testing.assert_array_equal(
        UPDATES["di"].step([[0.2, 0.3, 0.5]], q[:1], 1e6), [[0.0, 1.0, 0.0]]
    )


class Renamed(Update):
    """Custom update without a method `uniform`."""

    name, parametrization = "renamed", "direct"

    def to_policy(self, theta):
        return theta.copy()

    def to_parameters(self, pi):
        return pi.copy()

    def advance(self, theta, q, weight, rng):
        return theta


def test_default_initial_parameters_represent_the_uniform_policy():
    np.testing.assert_array_equal(Renamed().initial(2, 4), np.full((2, 4), 0.25))


def test_initial_rejects_more_parameters_than_the_limit(monkeypatch):
    monkeypatch.setattr("pu_lib.interface._MOST_PARAMETERS", 6)
    assert UPDATES["ce"].initial(3, 2).shape == (3, 2)
    with pytest.raises(ValueError, match="have more than the 6 parameters"):
        UPDATES["ce"].initial(4, 2)


def test_default_weight_is_one():
    """DI with weight one moves a probability of 1/4 if the values differ by 1/2."""
    np.testing.assert_array_equal(UPDATES["di"].step([0.5, 0.5], [0.5, 0.0]), [0.75, 0.25])


def test_updates_without_a_style_receive_one_of_four_styles(monkeypatch):
    updates = {name: type(name, (Renamed,), {"name": name})() for name in "abcde"}
    monkeypatch.setattr("pu_lib.updates.UPDATES", {**UPDATES, **updates})
    styles = [style_of(name) for name in updates]
    assert len(set(styles)) == 4  # the number of styles
    assert styles[4] == styles[0]
    assert style_of(type("f", (Renamed,), {"name": "f"})()) in styles  # not registered


# Gradients


def autograd_softmax(theta):
    return anp.exp(theta) / anp.sum(anp.exp(theta))


def autograd_escort(p):
    return lambda theta: anp.abs(theta) ** p / anp.sum(anp.abs(theta) ** p)


GRADIENTS = [
    ("pg-sm", UPDATES["pg-sm"], autograd_softmax),
    *((f"pg-es {p}", make_update("pg-es", p=p), autograd_escort(p)) for p in (1.0, 1.5, 2.0, 3.0)),
]


@pytest.mark.parametrize(
    ("update", "policy"), [g[1:] for g in GRADIENTS], ids=[g[0] for g in GRADIENTS]
)
def test_policy_gradients_agree_with_automatic_differentiation(update, policy):
    rng = np.random.default_rng(0)
    for _ in range(50):
        theta, q = rng.normal(size=4), rng.normal(size=4)
        gradient = autograd.grad(lambda x, q=q: anp.sum(policy(x) * q))(theta)
        np.testing.assert_allclose(update.step(theta, q, 0.7) - theta, 0.7 * gradient, atol=1e-12)


def test_cross_entropy_step_is_the_gradient_of_the_log_probability():
    rng = np.random.default_rng(2)
    for _ in range(50):
        theta, q = rng.normal(size=5), rng.normal(size=5)
        best = int(np.argmax(q))
        gradient = autograd.grad(lambda x, a=best: anp.log(autograd_softmax(x)[a]))(theta)
        np.testing.assert_allclose(
            UPDATES["ce"].step(theta, q, 1.3) - theta, 1.3 * gradient, atol=1e-13
        )


def test_options_may_follow_the_name_of_an_update():
    assert as_update("pg-es factor=drop") == make_update("pg-es", factor="drop")
    assert as_update("pg-es p=3 factor=keep") == make_update("pg-es", p=3.0)
    assert as_update("pg-es factor=keep") == UPDATES["pg-es"]
    for text in ("pg-es", "pg-es factor=drop", "pg-es p=3.0 factor=drop", "mce ties=leave"):
        assert name_of(as_update(text)) == text
    for text, sentence in {
        "pg-es factor=maybe": "factor: expected one of",
        "pg-es p=two": "p: expected a number",
        "pg-sm factor=drop": "is not 'option=value' of nothing",
        "sgd rate=1": "update: unknown 'sgd'",
        "pg-es factor": "update: unknown 'pg-es factor'",
    }.items():
        with pytest.raises(ValueError, match=sentence):
            as_update(text)


@pytest.mark.parametrize("name", list(UPDATES))
def test_update_names_and_labels_ignore_case(name):
    label = UPDATES[name].label
    for text in (label, label.lower(), name.upper(), name.replace("-", "_"), f" {name} "):
        assert as_update(text) is UPDATES[name]
        assert make_update(text) == UPDATES[name]


@pytest.mark.parametrize(
    ("name", "suggestion"),
    [("pg-smm", "pg-sm"), ("PGSM", "pg-sm"), ("nppg", "npg"), ("mcce", "mce")],
)
def test_unknown_update_suggests_the_nearest_name(name, suggestion):
    for read in (as_update, make_update):
        with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
            read(name)
        assert str(error.value) == (
            f"update: unknown {name!r}; did you mean {suggestion!r}? "
            f"There are: {', '.join(UPDATES)}."
        )


# Projection


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=7),
        elements=numbers(-1e6, 1e6),
    )
)
def test_projection_satisfies_the_kkt_conditions(x):
    y = project_simplex(x)
    scale = 1 + np.abs(x).max()
    assert np.all(y >= 0)
    np.testing.assert_allclose(y.sum(axis=-1), 1, atol=1e-12)
    # stationarity: x - y equals the multiplier where y > 0, and does not exceed it where y = 0
    slack = x - y
    multiplier = np.where(y > 0, slack, -np.inf).max(axis=-1, keepdims=True)
    assert np.all(np.where(y > 0, np.abs(slack - multiplier), 0) <= 1e-12 * scale)
    assert np.all(slack <= multiplier + 1e-12 * scale)


def test_projection_is_the_identity_on_the_simplex_up_to_shifts():
    rng = np.random.default_rng(3)
    points = rng.dirichlet(np.ones(4), size=100)
    np.testing.assert_allclose(project_simplex(points), points, atol=1e-15)
    np.testing.assert_allclose(project_simplex(points + 1e3), points, atol=1e-12)


@pytest.mark.parametrize(
    "x",
    [[0.0, -700.0, -1e308, -1e308], [1e308, -1e308, 0.0], [-1e308] * 3, [1e308, 1e308]],
    ids=["sums overflow", "differences overflow", "all lowest", "two largest"],
)
def test_projection_of_huge_entries_is_exact(x):
    y = project_simplex(x)
    top = np.equal(x, max(x))
    np.testing.assert_array_equal(y, top / top.sum())


def test_huge_values_and_large_values_give_the_same_step():
    for name in ("di", "ce", "mce"):
        update = UPDATES[name]
        start = update.initial(1, 3)[0]
        huge, large = (update.step(start, [s, 0.0, -s]) for s in (1e308, 1e3))
        np.testing.assert_array_equal(huge, large)


# Invariants of steps


@pytest.mark.parametrize("name", SOFTMAX)
@given(data=st.data())
def test_sum_of_the_parameters_is_constant(name, data):
    update, theta, q, weight = data.draw(states(name, bound=20))
    new = update.step(theta, q, weight)
    drift = np.abs(new.sum(axis=-1) - theta.sum(axis=-1))
    assert np.all(
        drift <= 1e-13 * (1 + np.abs(theta).sum(-1) + np.abs(new).sum(-1)) * (1 + np.abs(q).max())
    )


@given(states("ce"))
def test_ce_equals_mce_for_two_actions(case):
    _, theta, q, weight = case
    theta, q = theta[:, :2], q[:, :2]
    ce, mce = UPDATES["ce"].step(theta, q, weight), UPDATES["mce"].step(theta, q, weight)
    np.testing.assert_allclose(ce, mce, rtol=1e-12, atol=1e-12 * (1 + weight.max()))


def test_ce_differs_from_mce_for_three_actions():
    theta, q = np.array([1.0, 0.0, -1.0]), np.array([0.0, 1.0, 0.0])
    assert np.abs(UPDATES["ce"].step(theta, q) - UPDATES["mce"].step(theta, q)).max() > 0.1


def near_average(update, theta, q):
    """Return whether rounding may decide if an action is below average, which affects SCE."""
    adv = advantage(softmax(theta), q)
    return update.name == "sce" and bool((np.abs(adv) < 1e-9 * (1 + np.ptp(q))).any())


@given(states(bound=5), numbers(-50, 50))
def test_step_ignores_a_common_shift_of_the_values(case, shift):
    update, theta, q, weight = case
    weight = weight / 1e5
    if update.kernel in kernels.GREEDY:
        q = np.round(q, 3)  # a shift could round different values to a tie
        shift = round(shift)
    assume(not near_average(update, theta, q))
    before = update.step(theta, q, weight)
    after = update.step(theta, q + shift, weight)
    np.testing.assert_allclose(after, before, atol=1e-9 * (1 + np.abs(before).max()))


@given(states(bound=5), st.randoms(use_true_random=False))
def test_step_commutes_with_permutations_of_actions(case, random):
    update, theta, q, weight = case
    q = q + np.arange(q.shape[1]) * 1e-3 * (1 + np.abs(q).max())  # avoid most ties
    if any(len(np.unique(row)) < len(row) for row in q):
        return
    order = list(range(theta.shape[1]))
    random.shuffle(order)
    assume(not near_average(update, theta, q))
    permuted = update.step(theta[:, order], q[:, order], weight)
    new = update.step(theta, q, weight)[:, order]
    np.testing.assert_allclose(permuted, new, atol=1e-9 * (1 + np.abs(new).max()))


@given(states(bound=5))
def test_zero_weight_does_not_change_the_parameters(case):
    update, theta, q, _ = case
    np.testing.assert_allclose(update.step(theta, q, 0.0), theta, atol=1e-15)


@given(states("pg-es"))
def test_escort_step_is_orthogonal_to_the_parameters(case):
    update, theta, q, _ = case
    step = update.step(theta, q, 1.0) - theta
    size = np.abs(theta * step).sum(axis=-1) + np.abs(theta).max() * 1e-13 * (
        1 + np.abs(theta).max()
    )
    assert np.all(np.abs(np.sum(theta * step, axis=-1)) <= 1e-9 * (1 + size))


def test_escort_step_follows_the_sign_across_zero():
    theta, q = np.array([1.0, 0.1]), np.array([1.0, 0.0])
    update = UPDATES["pg-es"]
    crossed = update.step(theta, q, 20.0)
    assert crossed[1] < 0
    pushed = update.step(crossed, q[::-1], 1.0)
    assert pushed[1] < crossed[1]  # an action that is now good moves away from zero
    stuck = update.step([1.0, 0.0], q[::-1], 5.0)
    assert stuck[1] == 0.0


def test_masked_step_leaves_out_actions_above_average():
    """The advantages are (5/16, 17/80, -11/16), so that the second action does not move."""
    new = UPDATES["sce"].step(np.log([1 / 8, 5 / 8, 1 / 4]), [1.0, 0.9, 0.0], 3.0)
    np.testing.assert_allclose(new - np.log([1 / 8, 5 / 8, 1 / 4]), [2.0, 0.0, -2.0], atol=1e-15)


@pytest.mark.parametrize(
    ("theta", "q", "step"),
    [
        # adv(1) = e^-2000 (-0.1 + 0.9) > 0, although e^-2000 underflows
        ([2000.0, 0.0, 0.0], [0.9, 1.0, 0.0], [0.0, 0.5, -0.5]),
        # adv(1) = e^-2000 (0.4 - 1 + 0.4) < 0, so that action 1 is lowered and has all of pi(D)
        ([2000.0, 0.0, 0.0], [0.4, 1.0, 0.0], [-1.0, 1.0, 0.0]),
        # the value of action 1 equals v to 16 digits, but its advantage is positive
        ([40.0, 0.0, 1.0], [0.5, 1.0, 0.0], [0.0, np.e / (1 + np.e), -np.e / (1 + np.e)]),
        ([0.0, 0.0, 0.0], [1.0, 1.0, 0.0], [0.5, 0.0, -0.5]),  # a tied action does not move
        ([3.0, 1.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]),
    ],
)
def test_masked_step_has_the_sign_of_the_exact_advantage(theta, q, step):
    with np.errstate(all="raise", under="ignore"):
        new = UPDATES["sce"].step(theta, q, 1.0)
    np.testing.assert_allclose(new - theta, step, atol=1e-12)


@pytest.mark.parametrize(
    ("theta", "q", "step"),
    [
        # the step is that of CE, although the sum of the advantages underflows
        ([0.0, -1000.0], [0.0, 1.0], [-1.0, 1.0]),
        # the probabilities of D also underflow
        ([0.0, -2000.0, -1000.0], [0.5, 1.0, 0.0], [0.0, 1.0, -1.0]),
        ([0.0, -1000.0, -2000.0], [0.5, 1.0, 0.0], [-1.0, 1.0, 0.0]),
        ([0.0, -720.0, -715.0], [0.5, 1.0, 0.0], np.array([0, 1, -1]) / (1 + np.exp(-5))),
    ],
)
def test_masked_kernel_is_the_step_where_probabilities_underflow(theta, q, step):
    weight, moved = 1000.0, np.array(theta)
    pi = UPDATES["sce"].policy(theta)
    kernels.sce(moved, pi, np.array(q), int(np.argmax(q)), weight, len(q))
    np.testing.assert_allclose(moved - theta, weight * np.array(step), atol=1e-3)
    np.testing.assert_allclose(moved, UPDATES["sce"].step(theta, q, weight), atol=1e-3)


def test_masked_step_of_a_tie_that_is_left_is_zero():
    update, theta = make_update("sce", ties="leave"), [[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]
    new = update.step(theta, [[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]], 1.0)
    np.testing.assert_allclose(new, [[1.0, 0.0, 2.0], [2 / 3, -1 / 3, -1 / 3]])


def test_leading_axes_broadcast():
    rng = np.random.default_rng(4)
    theta, q = rng.random((2, 5, 3)), rng.random((5, 3))
    for name in ("pg-sm", "pg-es", "ce", "mce"):
        together = UPDATES[name].step(theta, q, np.arange(5.0))
        alone = UPDATES[name].step(theta[1, 2], q[2], 2.0)
        np.testing.assert_allclose(together[1, 2], alone, rtol=1e-13)


def test_steps_do_not_change_their_arguments():
    for name, update in UPDATES.items():
        theta = update.initial(2, 3)
        copy = theta.copy()
        update.step(theta, [[0.0, 1.0, 2.0]], 3.0)
        update.policy(theta)[...] = 0
        np.testing.assert_array_equal(theta, copy, err_msg=name)


# Ties


def test_greedy_mask_follows_the_tie_rule():
    q = np.array([[0.0, 1.0, 1.0], [2.0, 0.0, 0.0]])
    np.testing.assert_array_equal(greedy_mask(q), [[0, 1, 0], [1, 0, 0]])
    np.testing.assert_array_equal(greedy_mask(q, "leave"), [[0, 0, 0], [1, 0, 0]])
    rng = np.random.default_rng(5)
    share = np.mean([greedy_mask(q, "random", rng) for _ in range(2000)], axis=0)
    np.testing.assert_allclose(share, [[0, 0.5, 0.5], [1, 0, 0]], atol=0.05)


@pytest.mark.parametrize("ties", ["first", "random", "leave"])
def test_greedy_mask_marks_one_action_of_each_row(ties):
    q, rng = np.array([[[0.0, 1.0, 0.5]], [[2.0, 0.0, 1.0]]]), np.random.default_rng(6)
    np.testing.assert_array_equal(greedy_mask(q, ties, rng), [[[0, 1, 0]], [[1, 0, 0]]])
    np.testing.assert_array_equal(greedy_mask(q[0, 0], ties, rng), [0, 1, 0])


# Invalid input


STEP = UPDATES["ce"].step
BAD_INPUT = {
    "an unknown update": (
        lambda: make_update("sarsa"),
        "update: unknown 'sarsa'. There are: pg-sm",
    ),
    "a small exponent": (lambda: make_update("pg-es", p=0.5), "p: expected numbers >= 1"),
    "an exponent as text": (lambda: make_update("pg-es", p="2"), "p: .*got text: '2'"),
    "two options, one unknown": (
        lambda: make_update("pg-es", p=3.0, q=1),
        "update: pg-es has no option q; its options are: p, factor",
    ),
    "an unknown factor": (lambda: make_update("pg-es", factor="maybe"), "factor: expected one of"),
    "an unknown rule for ties": (lambda: make_update("ce", ties="last"), "ties: expected one of"),
    "an option of another": (
        lambda: make_update("di", p=2),
        "update: di has no option p; its options are: none",
    ),
    "a seed that is text": (lambda: greedy_mask([1, 1], "random", "0"), "seed: expected None"),
    "a mask with unknown ties": (lambda: greedy_mask([1, 1], "last"), "ties: expected one of"),
    "a mask of text": (
        lambda: greedy_mask(["1", "2"]),
        "q: expected an array of numbers, got text",
    ),
    "a negative weight": (lambda: STEP([0, 0], [0, 1], -1.0), "weight: expected .* got -1.0"),
    "a negative weight among others": (
        lambda: STEP(np.zeros((2, 2)), [0, 1], [0.5, -1.0]),
        r"weight: expected .* got -1.0 at index \(1,\)",
    ),
    "a nan parameter": (lambda: STEP([0, np.nan], [0, 1]), r"theta: .*nan at index \(1,\)"),
    "an infinite value": (lambda: STEP([0, 0], [0, np.inf]), r"q: .*inf at index \(1,\)"),
    "a value too many": (lambda: STEP([0, 0], [0, 1, 2]), "q: expected 2 actions"),
    "shapes apart": (lambda: STEP(np.zeros((2, 2)), np.zeros((3, 2))), "do not broadcast"),
    "text": (lambda: STEP("no", [0, 1]), "theta: expected an array of numbers"),
    "a number": (lambda: UPDATES["ce"].policy(3.0), "theta: .*single number"),
    "no action": (lambda: softmax(np.zeros((2, 0))), r"theta: .*shape \(2, 0\)"),
    "one action": (lambda: UPDATES["ce"].policy([3.0]), "theta: expected at least two actions"),
    "a row off the simplex": (
        lambda: UPDATES["di"].policy([[0.5, 0.5], [0.7, 0.7]]),
        r"theta: .* at row \(1,\)",
    ),
    "a negative probability": (lambda: UPDATES["di"].policy([1.5, -0.5]), "theta: .*simplex"),
    "a zero row": (lambda: UPDATES["pg-es"].policy([0.0, 0.0]), "the escort policy is undefined"),
    "a zero row among others": (
        lambda: UPDATES["pg-es"].step([[1.0, 0.0], [0.0, 0.0]], [0.0, 1.0]),
        r"the escort policy is undefined .* at row \(1,\)",
    ),
    "zeros as escort weights": (lambda: escort([0, 0]), r"theta: the escort policy .* row \(\)"),
    "a policy that does not sum to one": (
        lambda: UPDATES["pg-es"].parameters([0.5, 0.4]),
        r"pi: .*sum 1.*at row \(\)",
    ),
    "a policy with a negative entry": (
        lambda: UPDATES["ce"].parameters([1.5, -0.5]),
        "pi: expected probabilities",
    ),
    "a softmax policy with a zero": (
        lambda: UPDATES["mce"].parameters([[0.5, 0.5], [1, 0]]),
        r"pi: .*0 at index \(1, 1\)",
    ),
    "no state": (lambda: UPDATES["ce"].initial(0, 2), "n_states"),
    "a number of states that is none": (
        lambda: UPDATES["ce"].initial(Decimal("NaN"), 2),
        "n_states: expected an integer",
    ),
    "a start with one action": (lambda: UPDATES["ce"].initial(2, 1), "n_actions"),
    "a step beyond the range of floats": (
        lambda: STEP([1.7e308] * 2, [0.0, 1.0], 1.7e308),
        r"weight: the step leaves the range of floats \(1.8e308\) at index \(\d,\)",
    ),
    "values too far apart": (
        lambda: UPDATES["pg-sm"].step([0.0, 0.0], [1e308, -1e308]),
        "weight: the step leaves the range of floats",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), BAD_INPUT.values(), ids=BAD_INPUT)
def test_error_names_the_argument(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


class Careless(Update):
    """Update whose step is a given function."""

    name = "careless"
    to_policy = to_parameters = staticmethod(np.copy)

    def __init__(self, result):
        self.result = result

    def advance(self, theta, q, weight, rng):
        return self.result(theta)


@pytest.mark.parametrize(
    ("result", "got"),
    [
        (lambda theta: None, "got NoneType"),
        (lambda theta: theta.tolist(), "got list"),
        (lambda theta: theta.sum(axis=-1), r"got \(4,\)"),
        (lambda theta: np.ma.masked_array(theta, theta > 0), "got MaskedArray"),
    ],
)
def test_result_of_a_hook_is_checked(result, got):
    words = rf"update careless: advance must return an array of shape \(4, 2\), {got}"
    with pytest.raises(ValueError, match=words):
        Careless(result).step(np.full((4, 2), 0.5), np.eye(4, 2))


def test_hook_receives_broadcast_arrays():
    class Greedy(Careless):
        def advance(self, theta, q, weight, rng):
            assert theta.shape == q.shape
            return theta + weight * (q == q.max(axis=-1, keepdims=True))

    new = Greedy(None).step(np.zeros((3, 2)), [1.0, 0.0])
    np.testing.assert_array_equal(new, [[1.0, 0.0]] * 3)
    assert Greedy(None).step(np.zeros(2), [[1.0, 0.0]] * 3, np.ones(3)).shape == (3, 2)
    assert Careless(np.copy).step(np.zeros(2), [1.0, 0.0], np.ones(4)).shape == (4, 2)
    with pytest.raises(ValueError, match=r"shape \(4, 2\), got \(2,\)"):
        Careless(lambda theta: theta[0]).step(np.zeros(2), [1.0, 0.0], np.ones(4))


def test_advantage_has_mean_zero():
    pi, q = np.array([0.2, 0.3, 0.5]), np.array([1.0, -1.0, 4.0])
    assert abs(np.sum(pi * advantage(pi, q))) < 1e-15


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_escort_policy_does_not_depend_on_scale(size):
    np.testing.assert_allclose(escort(np.array([size, -2 * size])), [0.2, 0.8])


@pytest.mark.parametrize(
    ("theta", "q", "weight"),
    [((4, 2), (4, 2), (3,)), ((5, 4, 2), (5, 2), (5,)), ((5, 2), (5, 4, 2), (5,))],
)
def test_shapes_that_do_not_broadcast_are_rejected(theta, q, weight):
    with pytest.raises(ValueError, match="do not broadcast"):
        as_weights("weight", np.ones(weight), np.zeros(theta), np.zeros(q))


def test_escort_step_updates_parameters_with_underflowing_probability():
    # for p = 2, a step multiplies the parameter by 1 + 2 w adv / |theta|^2 = 3
    new = UPDATES["pg-es"].step([1.0, 1e-170], [0.0, 1.0], 1.0)
    assert new.tolist() == [1.0, pytest.approx(3e-170, rel=1e-12)]


def test_result_of_a_hook_is_converted_to_floats():
    with pytest.raises(ValueError, match="advance must return an array of floats, got complex128"):
        Careless(lambda theta: theta + 1j).step(np.full((4, 2), 0.5), np.eye(4, 2))
    moved = Careless(lambda theta: np.ones(theta.shape, int)).step(np.eye(4, 2), np.eye(4, 2))
    assert moved.dtype == np.float64
    assert (moved == 1.0).all()


def test_subclass_that_overrides_a_hook_inherits_no_kernel(tmp_path):
    class Frozen(type(UPDATES["pg-sm"])):
        name = "frozen"

        def advance(self, theta, q, weight, rng):
            return theta

    class Louder(type(UPDATES["pg-sm"])):
        name, label = "louder", "Louder"

    class Still:
        def advance(self, theta, q, weight, rng):
            return theta

    class Mixed(Still, type(UPDATES["pg-sm"])):
        name = "mixed"

    assert Mixed().kernel is None
    assert Louder().kernel is UPDATES["pg-sm"].kernel
    assert Frozen().kernel is None
    ranking = race(
        "chain", step_sizes=[1.0], runs=2, max_steps=20_000, updates=[Frozen(), Louder()]
    )
    assert [(entry.label, entry.finished) for entry in ranking] == [
        ("Louder", True),
        ("FROZEN", False),
    ]
    assert ranking.notes[0].startswith("No run of FROZEN reached")
    ranking.save(tmp_path / "race.npz")
    assert Race.load(tmp_path / "race.npz").notes == ranking.notes


def test_plain_loop_calls_a_custom_policy():
    class Level(type(UPDATES["pg-sm"])):
        name = "level"

        def to_policy(self, theta):
            return np.full(theta.shape, 1.0 / theta.shape[-1])

    (entry,) = race("chain n_states=4", step_sizes=[1.0], runs=2, max_steps=3000, updates=[Level()])
    assert not entry.finished


def test_custom_policy_is_checked():
    class Heavy(Careless):
        name = "heavy"

        def to_policy(self, theta):
            return self.result(theta)

    for odd in (np.ones, lambda shape: np.full(shape, np.nan)):
        update = Heavy(lambda theta, odd=odd: odd(theta.shape))
        with pytest.raises(ValueError, match="update heavy: expected probabilities"):
            update.policy([0.5, 0.5])
        with pytest.raises(ValueError, match="update heavy: expected probabilities"):
            count(3, update)


def test_register_rejects_a_class_of_the_same_name_in_another_module(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, share in (("here", 0.5), ("there", 0.25)):
        (tmp_path / f"{name}.py").write_text(
            "from pu_lib.updates import CrossEntropy\n\n\n"
            'class Own(CrossEntropy):\n    name = "own"\n\n'
            "    def advance(self, theta, q, weight, rng):\n"
            f"        return super().advance(theta, q, {share} * weight, rng)\n"
        )
    try:
        here = as_update("here:Own")
        with pytest.raises(ValueError, match=r"the name 'own' is taken by here[.]Own"):
            as_update("there:Own")
        assert as_update("own") is here
        again = reload(sys.modules["here"]).Own  # the module was edited, as in a notebook
        assert register(again) is again
        assert type(as_update("own")) is again is not type(here)
    finally:
        UPDATES.pop("own", None)


def test_register_rejects_other_settings_under_a_library_name():
    with pytest.raises(ValueError, match="the name 'pg-es' stands for the settings"):
        register(make_update("pg-es", p=4.0))
    assert register(make_update("pg-es")) == UPDATES["pg-es"]


def test_kernel_with_invalid_policies_is_rejected():
    def wild(theta, pi, q, best, weight, n_actions):
        theta[0] = 3.0

    class Wild(type(UPDATES["di"])):
        name = "wild"

        @property
        def kernel(self):
            return wild

        def to_policy(self, theta):
            return theta

        def advance(self, theta, q, weight, rng):
            theta[..., 0] = 3.0
            return theta

    with pytest.raises(ValueError, match="the steps of wild give no policy: pi: expected"):
        race("chain n_states=4", step_sizes=[1.0], runs=1, max_steps=1000, updates=[Wild()])


@pytest.mark.parametrize("scale", [1.0, 30.0, 300.0])
@pytest.mark.parametrize("ties", [False, True])
def test_advantage_of_many_actions_is_as_accurate_as_that_of_few(ties, scale):
    rng = np.random.default_rng(0)
    q = rng.integers(0, 3, (2, 5000)) / 2 if ties else rng.normal(size=(2, 5000))
    pi = softmax(scale * rng.normal(size=5000))
    advantages = advantage(pi, q)
    assert advantages.shape == q.shape
    for row, each in zip(advantages, q, strict=True):
        for a in [*rng.integers(5000, size=50), pi.argmax(), each.argmax(), each.argmin()]:
            terms = pi * (each[a] - each)
            # two nested sums of 5000 non-negative terms have at most 10,000 roundings of 1.1e-16
            assert abs(row[a] - math.fsum(terms)) <= 1.2e-12 * math.fsum(abs(terms))


def test_advantage_needs_memory_linear_in_the_number_of_actions(monkeypatch):
    rng = np.random.default_rng(0)
    pi, q = rng.dirichlet(np.ones(70), size=(3, 2)), rng.normal(size=(2, 70))
    whole = advantage(pi, q)
    np.testing.assert_allclose(whole, q - (pi * q).sum(axis=-1, keepdims=True), atol=1e-14)
    for block in (1, 1000, 3000):
        monkeypatch.setattr(parametrizations, "_BLOCK", block)
        np.testing.assert_array_equal(advantage(pi, q), whole)
    monkeypatch.undo()
    pi, q = np.full(4000, 1 / 4000), np.arange(4000.0)
    for name in ("pg-sm", "pg-es"):
        theta = UPDATES[name].parameters(pi)
        tracemalloc.start()
        new = UPDATES[name].step(theta, q, 1e-3)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 100e6  # an array of 4000 x 4000 floats would take 128 MB
        assert new[0] < theta[0] == theta[-1] < new[-1]
