"""The live figures of the argument: unlearning, symmetry, noise, and loss of value in a step."""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets

from pu_lib.show.live.base import Live, Policy, module
from pu_lib.updates import softmax

__all__ = ["ChangeOfMind", "Noise", "Price", "Symmetry"]


class ChangeOfMind(Live):
    """Unlearning with two actions: after n steps the values are swapped, and the steps are undone.

    Attributes
    ----------
    n : int
        The number of steps before the swap, from 1 to 200.
    eta : float
        The step size, one of `SIZES`. With step size 2 PG-ES never undoes the steps.
    schedule : {"constant", "inverse-sqrt"}
        The weights: eta, or eta / sqrt(t) at step t = 1, 2, ..., counted over both phases.
    """

    SIZES = (0.125, 0.25, 0.5, 1.0, 2.0, 3.0)
    MOST = 200
    _esm = module("change_of_mind")

    n = traitlets.Int(20, min=1, max=MOST).tag(sync=True)
    eta = traitlets.Enum(SIZES, 0.5).tag(sync=True)
    schedule = traitlets.Enum(("constant", "inverse-sqrt"), "constant").tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)
    most = traitlets.Int(MOST, read_only=True).tag(sync=True)


class Symmetry(Live):
    """The step with the values q and the step with -q, from the same policy of two actions.

    Attributes
    ----------
    policy : float
        pi(a_1), from 0.02 to 0.98.
    """

    _esm = module("symmetry")

    policy = traitlets.Float(0.9, min=0.02, max=0.98).tag(sync=True)


class Noise(Live):
    """The step with expected values and the mean step with sampled values, from the uniform policy.

    Action a_1 pays 1 with probability `odds` and 0 otherwise, and a_2 pays a fixed amount.

    Attributes
    ----------
    odds : float
        The probability that a_1 pays, from 0.05 to 0.95.
    sure : float
        The payment of a_2, in (0, 1).
    """

    _esm = module("noise")

    odds = traitlets.Float(0.4, min=0.05, max=0.95).tag(sync=True)
    sure = traitlets.Float(0.3, min=0.01, max=0.99).tag(sync=True)


class Price(Live):
    """One step of each update with three actions, and the value of the policy after the step.

    The second action is the best one.

    Attributes
    ----------
    value : float
        The value of the first action, from 0.5 to 0.99. The second action has value 1, and the
        third has value 0.
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

    value = traitlets.Float(0.95, min=0.5, max=0.99).tag(sync=True)
    policy = Policy(list(START)).tag(sync=True)
    weight = traitlets.Float(1.0, read_only=True).tag(sync=True)
    presets = traitlets.List([list(x) for x in PRESETS.items()], read_only=True).tag(sync=True)
