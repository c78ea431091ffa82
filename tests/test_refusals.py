"""What nobody else asks for: each wrong argument here is refused by a sentence that names it."""

from decimal import Decimal

import numpy as np
import pytest

import pu_lib
from pu_lib import domains
from pu_lib.chapters.domino.quantities import domino
from pu_lib.chapters.gravity_well.escape import escape_steps, well_policy
from pu_lib.chapters.rates.quantities import escort_limit
from pu_lib.chapters.unlearning.quantities import count, path
from pu_lib.chapters.what_came_after.quantities import mirror_step
from pu_lib.domains import Domain, as_process, read_domain, register_domain
from pu_lib.exact import ball
from pu_lib.experiments.bootstrap import interval
from pu_lib.experiments.problem import make_problem
from pu_lib.experiments.rounding import pair
from pu_lib.settings import read_settings
from pu_lib.trajectories import mixture
from pu_lib.updates import Update, register


class Nameless(Update):
    """Holds still; only its name matters here."""

    parametrization = "direct"

    def to_policy(self, theta):
        return theta.copy()

    def to_parameters(self, pi):
        return pi.copy()

    def advance(self, theta, q, weight, rng):
        return theta.copy()


class Set(Nameless):
    """Is called like an update with an option."""

    name = "pg-es factor=drop"


class Placed(Nameless):
    """Is called like a place."""

    name = "module:place"


class Taken(Nameless):
    """Wants the name of another update."""

    name, label = "mce", "Taken"


class Direct(Nameless):
    """Is called like a class of the library, and is another."""

    name = "di"


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: domains.random_mdp(0, n_states=100_000), "n_states: 100000 states"),
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
        (lambda: read_domain(7), "domain: expected a name and parameters, got 7"),
        (lambda: as_process("nowhere.npz"), r"nowhere\.npz: there is no such file"),
        (
            lambda: as_process("Nowhere-v0"),
            "process: unknown 'Nowhere-v0'. There are: random-mdp, .* cannot be made",
        ),
        (lambda: read_settings("preset", 3, {}), "preset: expected words such as"),
        (lambda: read_settings("preset", "cut", {"cut": 1}), "'cut' is not 'option=value' of cut"),
        (lambda: pu_lib.run("chain", "mce", 10**9), "1000000000 steps of 20 parameters"),
        (lambda: pu_lib.UPDATES["ce"].initial(10**12, 2), "n_states: 1000000000000 states and 2"),
        (lambda: pu_lib.run("chain", "ce", 1, 1e308, np.full(10, 2.0)), "weight: expected"),
        (lambda: count(1, "pg-sm", schedule=None), "schedule must be one of .* it is None"),
        (lambda: well_policy(Decimal("NaN")), "epsilon: expected"),
        (lambda: mixture(Decimal("NaN")), "share: expected"),
        (lambda: mirror_step([0.5, 0.5], [0, 1], 1.0, Decimal("NaN")), "alpha: expected"),
        (lambda: escort_limit(Decimal("NaN")), "p: expected"),
        (lambda: make_problem(domains.chain(3), Decimal("NaN")), "target: expected"),
        (lambda: interval([1.0], Decimal("NaN")), "level: expected"),
        (lambda: interval([]), "values: expected at least one"),
        (lambda: pair("no panel", 1.0, 0), "panel: expected one of random-mdp/"),
        (lambda: domino(3, "pg-es", p=10**5000), r"p must be at most 10\^300"),
        (lambda: interval([10**5000]), "values: expected numbers below"),
        (lambda: count(3, max_steps=Decimal("NaN")), "max_steps must be an integer"),
        (lambda: domino(3, max_steps=np.float32("nan")), "max_steps must be an integer"),
        (lambda: path(1, Decimal("sNaN")), "steps must be an integer"),
        (lambda: path(10**12, 10**12), "more than the 2000000 updates"),
        (
            lambda: escape_steps("ce", well_policy(0.1), [1, 0.5, 0], cap=Decimal("NaN")),
            "cap: expected",
        ),
        (
            lambda: escape_steps("ce", well_policy(0.1), [1, 0.5, 10**5000]),
            "q: expected numbers below",
        ),
        (lambda: register(Nameless), "Nameless has no name; set"),
        (lambda: register(Set), "expected a name without an equals sign, got 'pg-es factor=drop'"),
        (lambda: register(Placed), "expected a name without a colon, got 'module:place'"),
        (lambda: register(Taken), "the name 'mce' is taken by"),
        (lambda: register(Direct), "the name 'di' is taken by Direct"),
    ],
)
def test_error_names_the_argument(call, sentence):
    with pytest.raises(ValueError, match=sentence):
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
