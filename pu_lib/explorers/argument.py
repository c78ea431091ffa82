"""The explorers of the argument: unlearning, symmetry, noise, and loss of value in a step."""

from __future__ import annotations

from typing import Any, ClassVar

from pu_lib.explorers.base import HERE, Live, Policy, module
from pu_lib.explorers.controls import constant, number, one_of, whole
from pu_lib.updates import softmax

__all__ = ["ChangeOfMind", "Noise", "Opening", "Price", "Symmetry"]


class ChangeOfMind(Live):
    """Unlearning with two actions: after n steps the values are swapped, and the steps are undone.

    Attributes
    ----------
    n : int
        The number of steps before the swap.
    eta : float
        The step size. With step size 2 PG-ES never undoes the steps.
    schedule : {"constant", "inverse-sqrt"}
        The weights: eta, or eta / sqrt(t) at step t = 1, 2, ..., counted over both phases.
    """

    _esm = module("change_of_mind")

    n = whole(1, 200, 20)
    eta = one_of(0.125, 0.25, 0.5, 1.0, 2.0, 3.0, start=0.5)
    schedule = one_of("constant", "inverse-sqrt")


class Opening(Live):
    """The race of the landing page: it runs once by itself, then asks the reader for a guess.

    Attributes
    ----------
    n : int
        The number of steps before the swap.
    again : int
        The number of steps that the reader guesses about.
    most : int
        The largest number of steps that the reader can choose afterwards.
    eta : float
        The step size.
    """

    _esm = module("opening")
    _css = HERE / "opening.css"

    n = constant(20)
    again = constant(200)
    most = constant(200)
    eta = constant(0.5)


class Symmetry(Live):
    """The step with the values q and the step with -q, from the same policy of two actions.

    `policy` is the probability of the first action.
    """

    _esm = module("symmetry")

    policy = number(0.02, 0.98, 0.9)


class Noise(Live):
    """The step with expected values and the mean step with sampled values, from the uniform policy.

    Action a_1 pays 1 with probability `odds` and 0 otherwise, and a_2 always pays `sure`.
    """

    _esm = module("noise")

    odds = number(0.05, 0.95, 0.4)
    sure = number(0.01, 0.99, 0.3)


class Price(Live):
    """One step of each update with three actions, and the value of the policy after the step.

    The second action is the best one.

    Attributes
    ----------
    value : float
        The value of the first action. The second action has value 1, and the third has value 0.
    policy : list of three numbers
        The policy before the step, with positive probabilities that sum to 1.
    weight : float
        The weight of the step.
    """

    START = (0.8, 0.02, 0.18)
    PRESETS: ClassVar[dict[str, dict[str, Any]]] = {
        "Start (0.80, 0.02, 0.18)": {"policy": list(START), "value": 0.95},
        "The paper’s example": {"policy": softmax([10.0, 0.0, 0.0]).tolist(), "value": 0.99},
    }
    _esm = module("plot", "price")

    value = number(0.5, 0.99, 0.95)
    policy = Policy(list(START)).tag(sync=True)
    weight = constant(1.0)
    presets = constant([list(pair) for pair in PRESETS.items()])
