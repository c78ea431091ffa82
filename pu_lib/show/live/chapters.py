"""The live figures of the chapters; each first asks the reader to predict the result."""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets

from pu_lib.chapters.monotonicity.quantities import worst_drop_three
from pu_lib.cycle_examples import THREE_STATES, CycleExample
from pu_lib.show.live.base import COMPUTED, Live, Policy, module
from pu_lib.updates import UPDATES, softmax

__all__ = [
    "AtTheWall",
    "ChainPlay",
    "Counterexample",
    "CycleComic",
    "Dominoes",
    "FadingWeights",
    "FittedDirect",
    "GravityWell",
    "RateLimit",
    "Remedies",
    "SampledValues",
    "TakeTurns",
    "TsallisFamily",
]


class Dominoes(Live):
    """The domino setting, with one row of states for each update.

    Each state is drawn as a domino, which leans as its state prefers the suboptimal action and
    falls when the state flips, after the next state. All rows share one time axis.

    Attributes
    ----------
    states : int
        The number of states, from 1 to 14.
    eta : float
        The weight of every step at every state, one of `SIZES`.
    """

    SIZES = (0.125, 0.25, 0.5)
    MOST = 14
    _esm = module("dominoes")

    states = traitlets.Int(8, min=1, max=MOST).tag(sync=True)
    eta = traitlets.Enum(SIZES, 0.125).tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)
    most = traitlets.Int(MOST, read_only=True).tag(sync=True)


class ChainPlay(Live):
    """The paper's chain, learned by two updates side by side.

    Attributes
    ----------
    first, second : str
        The two updates.
    states : int
        The number of states, including the terminal one, from 3 to 12.
    steps : int
        The number of steps, from 1 to 2000.
    eta : float
        The step size, from 0.001 to 10.
    share : float
        The share of the occupancy in the weights, in [0, 1]; the rest is uniform over the states.
    """

    _esm = module("chain_play")

    updates = traitlets.List(traitlets.Enum(tuple(UPDATES)), list(UPDATES), minlen=1).tag(sync=True)
    first = traitlets.Enum(COMPUTED, "pg-sm").tag(sync=True)
    second = traitlets.Enum(COMPUTED, "mce").tag(sync=True)
    states = traitlets.Int(10, min=3, max=12).tag(sync=True)
    steps = traitlets.Int(640, min=1, max=2000).tag(sync=True)
    eta = traitlets.Float(1.0, min=1e-3, max=10.0).tag(sync=True)
    share = traitlets.Float(0.9, min=0.0, max=1.0).tag(sync=True)


class GravityWell(Live):
    """Two updates with three actions, of which the first is best, from the same initial policy.

    Attributes
    ----------
    first, second : str
        The two updates.
    policy : list of three numbers
        The initial policy, with positive probabilities that sum to 1.
    middle : float
        The value of the second action, in [0, 0.95]; the first action has value 1.
    low : float
        The value of the third action.
    weight : float
        The weight of every step, one of `WEIGHTS`. The initial escort parameters have norm 1.
    """

    WEIGHTS = (0.1, 0.2, 0.4, 1.0, 3.0, 10.0)
    STARTS: ClassVar[dict[str, list[float]]] = {
        "Start (1, 3, 5)": softmax([1.0, 3.0, 5.0]).tolist(),
        "1 % for the best": [0.01, 0.98, 0.01],
        "Uniform start": [1 / 3, 1 / 3, 1 / 3],
    }
    _esm = module("plot", "triangle", "gravity_well")

    updates = traitlets.List(traitlets.Enum(tuple(UPDATES)), list(UPDATES), minlen=1).tag(sync=True)
    first = traitlets.Enum(COMPUTED, "pg-sm").tag(sync=True)
    second = traitlets.Enum(COMPUTED, "mce").tag(sync=True)
    policy = Policy(STARTS["Start (1, 3, 5)"]).tag(sync=True)
    middle = traitlets.Float(0.9, min=0.0, max=0.95).tag(sync=True)
    low = traitlets.Float(0.1, read_only=True).tag(sync=True)
    weight = traitlets.Enum(WEIGHTS, 0.4).tag(sync=True)
    weights = traitlets.List(list(WEIGHTS), read_only=True).tag(sync=True)
    starts = traitlets.List([list(pair) for pair in STARTS.items()], read_only=True).tag(sync=True)


class Counterexample(Live):
    """One step of CE and of MCE from theta = (top, 0, 0) with the values (first, 1, 0).

    Attributes
    ----------
    first : float
        The value of the likeliest action, in [0, 0.99]; the paper has 0.99.
    top : float
        The parameter of the likeliest action, in [0, 20]; the paper has 10.
    eta : float
        The weight of the step, one of `SIZES`; the paper has 1.
    """

    SIZES = (0.1, 0.3, 1.0, 3.0, 10.0)
    _esm = module("plot", "counterexample")

    first = traitlets.Float(0.99, min=0.0, max=0.99).tag(sync=True)
    top = traitlets.Float(10.0, min=0.0, max=20.0).tag(sync=True)
    eta = traitlets.Enum(SIZES, 1.0).tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)
    worst = traitlets.List(traitlets.Float(), read_only=True).tag(sync=True)

    @traitlets.default("worst")
    def _worst(self) -> list[float]:
        return [worst_drop_three(w) for w in self.SIZES]


def _plain(example: CycleExample) -> dict[str, Any]:
    """Return an example and its optimum as a dictionary for JSON."""
    actions, values = example.optimum()
    return {
        "rewards": [list(row) for row in example.rewards],
        "successors": [list(row) for row in example.successors],
        "discount": float(example.discount),
        "phases": [{"state": p.state, "weight": float(p.weight)} for p in example.phases],
        "start": [list(row) for row in example.start],
        "best": {"actions": list(actions), "v": [float(v) for v in values]},
    }


class CycleComic(Live):
    """The eight steps of CE's cycle with three states, or these steps with another update.

    Attributes
    ----------
    update : str
        The update, which must have softmax parameters.
    period : int
        The period of the schedule that is shown, from 1 to 20.
    """

    MOST = 20
    SOFTMAX = tuple(name for name in COMPUTED if UPDATES[name].parametrization == "softmax")
    _esm = module("cycle_comic")

    updates = traitlets.List(traitlets.Enum(tuple(UPDATES)), list(UPDATES), minlen=1).tag(sync=True)
    update = traitlets.Enum(SOFTMAX, "ce").tag(sync=True)
    period = traitlets.Int(1, min=1, max=MOST).tag(sync=True)
    softmax = traitlets.List(list(SOFTMAX), read_only=True).tag(sync=True)
    most = traitlets.Int(MOST, read_only=True).tag(sync=True)
    example = traitlets.Dict(_plain(THREE_STATES), read_only=True).tag(sync=True)


class FadingWeights(Live):
    """MCE with four actions and weights that decay as a power of time.

    Attributes
    ----------
    exponent : float
        The exponent of the weights eta (t + 1)^-exponent, from 0 to 3.
    eta : float
        The first weight, one of `SIZES`.
    """

    SIZES = (0.1, 1.0, 10.0)
    _esm = module("plot", "fading_weights")

    exponent = traitlets.Float(0.5, min=0.0, max=3.0).tag(sync=True)
    eta = traitlets.Enum(SIZES, 1.0).tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)


class RateLimit(Live):
    """The number of MCE steps until the best of n actions has probability 99.9 %.

    Attributes
    ----------
    actions : int
        The number of actions, one of `COUNTS`.
    eta : float
        The weight of every step, one of `SIZES`.
    """

    COUNTS = (2, 3, 5, 10, 30, 100, 300, 1000)
    SIZES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    _esm = module("plot", "rate_limit")

    actions = traitlets.Enum(COUNTS, 2).tag(sync=True)
    eta = traitlets.Enum(SIZES, 1.0).tag(sync=True)
    counts = traitlets.List(list(COUNTS), read_only=True).tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)


class SampledValues(Live):
    """A fixed reward and a gamble with a larger mean; each step uses one sample.

    Attributes
    ----------
    noise : float
        The distance between the samples of the second action and their mean, from 0 to 1, as in
        `pu_lib.chapters.stochastic_updates.quantities.gamble`.
    seed : int
        The seed of the samples.
    power : float
        The exponent of the weights (t + 1)^-power.
    """

    _esm = module("plot", "sampled_values")

    updates = traitlets.List(traitlets.Enum(tuple(UPDATES)), list(UPDATES), minlen=1).tag(sync=True)
    noise = traitlets.Float(1.0, min=0.0, max=1.0).tag(sync=True)
    seed = traitlets.Int(1, min=0).tag(sync=True)
    power = traitlets.Float(0.6, read_only=True).tag(sync=True)


class AtTheWall(Live):
    """Sparsemax, DI and MCE with two actions; the action values are swapped after n steps.

    Attributes
    ----------
    n : int
        The number of steps before the swap, from 1 to 40.
    eta : float
        The weight of every step, one of `SIZES`. No size is the inverse of an integer, because
        rounding would then decide whether the boundary of the simplex is reached.
    """

    SIZES = (0.03, 0.07, 0.15, 0.3, 0.6)
    _esm = module("plot", "at_the_wall")

    n = traitlets.Int(5, min=1, max=40).tag(sync=True)
    eta = traitlets.Enum(SIZES, 0.07).tag(sync=True)
    sizes = traitlets.List(list(SIZES), read_only=True).tag(sync=True)


class TsallisFamily(Live):
    """The number of steps to undo n steps, in the mirror descent family between NPG and DI.

    Attributes
    ----------
    alpha : float
        The index of the Tsallis entropy, one of `ALPHAS`, from 1 (NPG) to 2 (DI).
    weight : float
        The weight of every step, one of `WEIGHTS`. All weights are binary fractions, so the page
        counts exactly.
    """

    EXCESSES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)
    ALPHAS = (1.0, *(1.0 + k / 1024 for k in EXCESSES))
    WEIGHTS = (0.125, 0.25, 0.5, 1.0, 2.0, 4.0)
    _esm = module("plot", "tsallis_family")

    alpha = traitlets.Enum(ALPHAS, 1.0).tag(sync=True)
    weight = traitlets.Enum(WEIGHTS, 0.25).tag(sync=True)
    alphas = traitlets.List(list(ALPHAS), read_only=True).tag(sync=True)
    weights = traitlets.List(list(WEIGHTS), read_only=True).tag(sync=True)


class FittedDirect(Live):
    """DI with a linear model on thirty contexts; the fit precedes or follows the projection.

    Attributes
    ----------
    growth : float
        The ratio of successive weights, from 0.8 to 1.6.
    place : {"before", "after"}
        Whether the model is fitted before or after the projection.
    """

    _esm = module("plot", "fitted_direct")

    growth = traitlets.Float(1.0, min=0.8, max=1.6).tag(sync=True)
    place = traitlets.Enum(("before", "after"), "before").tag(sync=True)
    first = traitlets.Float(0.5, read_only=True).tag(sync=True)
    steps = traitlets.Int(40, read_only=True).tag(sync=True)
    task = traitlets.Dict(read_only=True).tag(sync=True)

    @traitlets.default("task")
    def _thirty_contexts(self) -> dict[str, Any]:
        """Return the features and rewards of the contexts."""
        from pu_lib.chapters.function_approximation.quantities import (
            contexts,  # imports autograd, hence not at the top
        )

        task = contexts()
        live = ~task.mdp.terminal
        rewards = task.mdp.rewards[live]
        return {"features": task.features[live].tolist(), "rewards": rewards.tolist()}


class TakeTurns(Live):
    """The steps until the last action is back, after others took turns as the best one.

    Attributes
    ----------
    actions : int
        The number of actions, 3 or 4.
    order : list of four int
        The best action of each of four steps, which are repeated; not the last action.
    n : int
        The number of steps before the last action becomes the best one, from 10 to 1000.
    gap : float
        The distance of the second best action in these steps from the best, one of `GAPS`.
    """

    GAPS = (0.02, 0.4)
    _esm = module("take_turns")

    updates = traitlets.List(
        traitlets.Enum(tuple(UPDATES)), ["ce", "mce", "sce", "di", "pg-sm", "npg"], minlen=1
    ).tag(sync=True)
    actions = traitlets.Int(3, min=3, max=4).tag(sync=True)
    order = traitlets.List(traitlets.Int(min=0, max=2), [0, 1, 0, 1], minlen=4, maxlen=4).tag(
        sync=True
    )
    n = traitlets.Int(1000, min=10, max=1000).tag(sync=True)
    gap = traitlets.Enum(GAPS, 0.02).tag(sync=True)
    gaps = traitlets.List(list(GAPS), read_only=True).tag(sync=True)

    @traitlets.validate("order")
    def _within(self, proposal: Any) -> list[int]:
        if max(proposal["value"]) > self.actions - 2:
            raise traitlets.TraitError(
                f"The 'order' trait of a TakeTurns instance expected actions from 0 to "
                f"{self.actions - 2}, not {proposal['value']}."
            )
        return list(proposal["value"])


class Remedies(Live):
    """The steps to unlearn under PG-SM with remedies, beside four other updates.

    Attributes
    ----------
    entropy, penalty : float
        The coefficients of the entropy bonus and of the penalty, from `ENTROPIES` and `PENALTIES`.
    estimator : bool
        Whether the penalty is k3 in the loss, as in `pu_lib.chapters.remedies.quantities.Remedy`.
    reference : float
        The probability of the action that is best at first under the reference: 0.5, 0.9 or 0.1.
    epochs : int
        The number of clipped epochs per batch: 1, 4 or 10.
    normalised : bool
        Whether advantages are normalised.
    adam : float
        The step size of Adam: 0 for none, 0.01 or 0.1.
    decay : float
        The coefficient of weight decay, one of `DECAYS`.
    critic : float
        The rate of the learned values: 1, 0.1 or 0.01.
    heard : bool
        Whether the rate for an action is multiplied by the probability with which it is taken.
    exploration : float
        The probability of a random action, one of `EXPLORATIONS`; only with `heard`.
    change : {"swap", "good turns bad", "bad turns good"}
        How the values change.
    samples : int
        The number of sampled actions per step, 4, 8 or 16, or 0 for exact values. With samples the
        penalty, the epochs, Adam and `heard` have no effect.
    """

    ENTROPIES = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
    PENALTIES = (0.0, 0.001, 0.01, 0.04, 0.1, 0.2)
    DECAYS = (0.0, 0.0001, 0.001, 0.01, 0.1)
    EXPLORATIONS = (0.0, 0.01, 0.05, 0.1, 0.2)
    _esm = module("plot", "remedies")

    entropy = traitlets.Enum(ENTROPIES, 0.01).tag(sync=True)
    penalty = traitlets.Enum(PENALTIES, 0.0).tag(sync=True)
    estimator = traitlets.Bool(False).tag(sync=True)
    reference = traitlets.Enum((0.5, 0.9, 0.1), 0.5).tag(sync=True)
    epochs = traitlets.Enum((1, 4, 10), 1).tag(sync=True)
    normalised = traitlets.Bool(False).tag(sync=True)
    adam = traitlets.Enum((0.0, 0.01, 0.1), 0.0).tag(sync=True)
    decay = traitlets.Enum(DECAYS, 0.0).tag(sync=True)
    critic = traitlets.Enum((1.0, 0.1, 0.01), 1.0).tag(sync=True)
    heard = traitlets.Bool(False).tag(sync=True)
    exploration = traitlets.Enum(EXPLORATIONS, 0.0).tag(sync=True)
    change = traitlets.Enum(("swap", "good turns bad", "bad turns good"), "swap").tag(sync=True)
    samples = traitlets.Enum((0, 4, 8, 16), 0).tag(sync=True)
    entropies = traitlets.List(list(ENTROPIES), read_only=True).tag(sync=True)
    penalties = traitlets.List(list(PENALTIES), read_only=True).tag(sync=True)
    decays = traitlets.List(list(DECAYS), read_only=True).tag(sync=True)
    explorations = traitlets.List(list(EXPLORATIONS), read_only=True).tag(sync=True)
