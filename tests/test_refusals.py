"""Invalid arguments raise an error that names the argument."""

from decimal import Decimal
from fractions import Fraction
from itertools import count, repeat

import numpy as np
import pytest

import pu_lib
from pu_lib import domains
from pu_lib.chapters.domino.figures import draw_boards, draw_lines
from pu_lib.chapters.domino.quantities import domino, linked_recursion
from pu_lib.chapters.rates.quantities import di_steps, escort_limit
from pu_lib.chapters.unlearning.figures import draw_comparison, draw_schedules
from pu_lib.chapters.unlearning.quantities import path
from pu_lib.chapters.what_came_after.quantities import (
    geometric_bound,
    geometric_count,
    mirror_step,
    natural_count,
)
from pu_lib.domains import Domain, as_process, register_domain
from pu_lib.exact import ball
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.rounding import pair
from pu_lib.two_action_dynamics import OutOfReach
from pu_lib.updates import Update, register


class Nameless(Update):
    """Update without steps and without a name."""

    parametrization = "direct"

    def to_policy(self, theta):
        return theta.copy()

    def to_parameters(self, pi):
        return pi.copy()

    def advance(self, theta, q, weight, rng):
        return theta.copy()


class Set(Nameless):
    """Update whose name looks like a name with an option."""

    name = "pg-es factor=drop"


class Placed(Nameless):
    """Update whose name looks like ``module:name``."""

    name = "module:place"


class Taken(Nameless):
    """Update with the name of another update."""

    name, label = "mce", "Taken"


class Direct(Nameless):
    """Update with the class name and name of a library update."""

    name = "di"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: domains.DOMAINS["chain"].label(gamma=1), "gamma: chain has no such parameter"),
        (lambda: register_domain(Domain("odd", lambda n=None: None)), "n: a parameter is a"),
        (
            lambda: register_domain(Domain("odd", domains.bandit)),
            "maker of 'odd' without a default: expected none, so give each a default, got rewards",
        ),
        (
            lambda: register_domain(Domain("odd", domains.chain, drawn=True)),
            "random generator alone",
        ),
        (
            lambda: as_process("Nowhere-v0"),
            "process: unknown 'Nowhere-v0'. There are: random-mdp, .* cannot be made",
        ),
        (lambda: pu_lib.run("chain", "mce", 10**9), "1000000000 steps of 20 parameters"),
        (lambda: pu_lib.UPDATES["ce"].initial(10**12, 2), "n_states: 1000000000000 states and 2"),
        (lambda: pu_lib.run("chain", "ce", 1, 1e308, np.full(10, 2.0)), "weight: expected"),
        (lambda: mirror_step([0.5, 0.5], [0, 1], 1.0, Decimal("NaN")), "alpha: expected"),
        (lambda: escort_limit(Decimal("NaN")), "p: expected"),
        (lambda: make_problem(domains.chain(3), Decimal("NaN")), "target: expected"),
        (lambda: pair("no panel", 1.0, 0), "panel: expected one of random-mdp/"),
        (lambda: domino(3, "pg-es", p=10**5000), r"p: expected a number from 1 to 10\^300"),
        (lambda: path(10**12, 10**12), "at most 2000000 updates together"),
        (lambda: register(Nameless), "Nameless has no name; set"),
        (lambda: register(Set), "expected a name without an equals sign, got 'pg-es factor=drop'"),
        (lambda: register(Placed), "expected a name without a colon, got 'module:place'"),
        (lambda: register(Taken), "the name 'mce' is taken by"),
        (lambda: register(Direct), "the name 'di' is taken by pu_lib.updates.Direct"),
    ],
)
def test_error_names_the_argument(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: draw_boards(20), r"pg-sm takes at least 2\^20 - 1 steps"),
        (lambda: draw_boards(10**6), r"at least 2\^1000000 - 1 steps"),
        (lambda: draw_lines(300, "npg"), "not solved after 332 steps"),
        (lambda: draw_lines(60_000, "di"), "di takes at least 60000 steps"),
        (lambda: draw_schedules(10**6), "n: at most 300 updates are drawn, got 1000000"),
        (lambda: draw_comparison(10**9), "n: at most 2000 steps are followed, got 1000000000"),
        (lambda: draw_comparison(1500), "1500 updates and the 1507 that undo them are 3007"),
        (lambda: linked_recursion(40, 1, lambda x: 1 / (1 + x * x)), "at most 200000 updates"),
        (lambda: di_steps([1, 0], Fraction(1, 10**12)), "weight: more than 10000 steps"),
        (lambda: natural_count(3, (Fraction(1, 4**t) for t in count())), "the count: at most"),
        (lambda: natural_count(10**9, repeat(Fraction(1))), "n: at most 10000 for"),
        (lambda: geometric_count(10**12, "1.1"), r"bits of ratio\^n"),
        (lambda: geometric_bound(1 + Fraction(1, 2**1000)), r"bits of ratio\^m"),
    ],
)
def test_work_without_a_bound_is_refused(call, sentence):
    with pytest.raises(OutOfReach, match=sentence):
        call()


def test_register_rejects_other_objects():
    with pytest.raises(TypeError, match="update: expected an Update, an instance or a class"):
        register(3)


def test_ball_returns_balls_and_kernels_are_optional():
    third = ball("1/3")
    assert ball(third) is third
    still = Nameless()
    assert still.kernel is None
    assert still.uniform(4) == 0.25
    assert np.array_equal(still.initial(2, 4), np.full((2, 4), 0.25))
