"""The explorers of the chapters; each first asks the reader to predict the result."""

from __future__ import annotations

from typing import Any, ClassVar

import traitlets

from pu_lib.chapters.monotonicity.quantities import worst_drop_three
from pu_lib.cycle_examples import THREE_STATES, CycleExample
from pu_lib.explorers.base import COMPUTED, Live, Policy, module
from pu_lib.explorers.controls import constant, number, one_of, some_of, whole
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
    "RewardHack",
    "SampledValues",
    "TakeTurns",
    "TsallisFamily",
]


class Dominoes(Live):
    """The domino setting, with one row of states for each update.

    Each state is drawn as a domino, which leans as its state prefers the suboptimal action and
    falls when the state flips, after the next state. All rows share one time axis. `eta` is the
    weight of every step at every state.
    """

    _esm = module("dominoes")

    states = whole(1, 14, 8)
    eta = one_of(0.125, 0.25, 0.5)


class ChainPlay(Live):
    """The paper's chain, learned by the updates `first` and `second` side by side.

    Attributes
    ----------
    states : int
        The number of states, including the terminal one.
    steps : int
        The number of steps.
    eta : float
        The step size.
    share : float
        The share of the occupancy in the weights; the rest is uniform over the states.
    """

    _esm = module("chain_play")

    updates = some_of(UPDATES, least=1)
    first = one_of(*COMPUTED, start="pg-sm")
    second = one_of(*COMPUTED, start="mce")
    states = whole(3, 12, 10)
    steps = whole(1, 2000, 640)
    eta = number(1e-3, 10.0, 1.0)
    share = number(0.0, 1.0, 0.9)


class GravityWell(Live):
    """The updates `first` and `second` with three actions, of which the first is best.

    Both start from the same policy; the initial escort parameters have norm 1.

    Attributes
    ----------
    policy : list of three numbers
        The initial policy, with positive probabilities that sum to 1.
    middle, low : float
        The values of the second and the third action; the first action has value 1.
    weight : float
        The weight of every step.
    """

    STARTS: ClassVar[dict[str, list[float]]] = {
        "Start (1, 3, 5)": softmax([1.0, 3.0, 5.0]).tolist(),
        "1 % for the best": [0.01, 0.98, 0.01],
        "Uniform start": [1 / 3, 1 / 3, 1 / 3],
    }
    _esm = module("plot", "triangle", "gravity_well")

    updates = some_of(UPDATES, least=1)
    first = one_of(*COMPUTED, start="pg-sm")
    second = one_of(*COMPUTED, start="mce")
    policy = Policy(STARTS["Start (1, 3, 5)"]).tag(sync=True)
    middle = number(0.0, 0.95, 0.9)
    weight = one_of(0.1, 0.2, 0.4, 1.0, 3.0, 10.0, start=0.4)
    low = constant(0.1)
    starts = constant([list(pair) for pair in STARTS.items()])


class Counterexample(Live):
    """One step of CE and of MCE from theta = (top, 0, 0) with the values (first, 1, 0).

    `eta` is the weight of the step. The paper has first = 0.99, top = 10 and eta = 1.
    """

    _esm = module("plot", "counterexample")

    first = number(0.0, 0.99, 0.99)
    top = number(0.0, 20.0, 10.0)
    eta = one_of(0.1, 0.3, 1.0, 3.0, 10.0, start=1.0)
    worst = traitlets.List(traitlets.Float(), read_only=True).tag(sync=True)

    @traitlets.default("worst")
    def _worst(self) -> list[float]:
        """Return a bound on the loss of value in a step of CE, for each weight."""
        return [worst_drop_three(w) for w in type(self).eta.values or ()]


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

    The update has softmax parameters, and `period` counts the periods of the schedule from 1.
    """

    _esm = module("cycle_comic")

    updates = some_of(UPDATES, least=1)
    update = one_of(*(x for x in COMPUTED if UPDATES[x].parametrization == "softmax"), start="ce")
    period = whole(1, 20, 1)
    example = constant(_plain(THREE_STATES))


class FadingWeights(Live):
    """MCE with four actions and the weights eta (t + 1)^-exponent."""

    _esm = module("plot", "fading_weights")

    exponent = number(0.0, 3.0, 0.5)
    eta = one_of(0.1, 1.0, 10.0, start=1.0)


class RateLimit(Live):
    """The number of MCE steps of weight eta until the best of n actions has probability 99.9 %."""

    _esm = module("plot", "rate_limit")

    actions = one_of(2, 3, 5, 10, 30, 100, 300, 1000)
    eta = one_of(0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, start=1.0)


class SampledValues(Live):
    """A fixed reward and a gamble with a larger mean; each step uses one sample.

    Attributes
    ----------
    noise : float
        The distance between the samples of the second action and their mean, as in
        `pu_lib.chapters.stochastic_updates.quantities.gamble`.
    seed : int
        The seed of the samples.
    power : float
        The exponent of the weights (t + 1)^-power.
    """

    _esm = module("plot", "sampled_values")

    updates = some_of(UPDATES, least=1)
    noise = number(0.0, 1.0, 1.0)
    seed = traitlets.Int(1, min=0).tag(sync=True)
    power = constant(0.6)


class AtTheWall(Live):
    """Sparsemax, DI and MCE with two actions; the action values are swapped after n steps.

    No step size `eta` is the inverse of an integer, because rounding would then decide whether the
    boundary of the simplex is reached.
    """

    _esm = module("plot", "at_the_wall")

    n = whole(1, 40, 5)
    eta = one_of(0.03, 0.07, 0.15, 0.3, 0.6, start=0.07)


_EXCESSES = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024)


class TsallisFamily(Live):
    """The number of steps to undo n steps, in the mirror descent family between NPG and DI.

    Attributes
    ----------
    alpha : float
        The index of the Tsallis entropy, from 1 (NPG) to 2 (DI).
    weight : float
        The weight of every step. All are binary fractions, so the page counts exactly.
    """

    _esm = module("plot", "tsallis_family")

    alpha = one_of(*(1.0 + k / 1024 for k in _EXCESSES))
    weight = one_of(0.125, 0.25, 0.5, 1.0, 2.0, 4.0, start=0.25)


class FittedDirect(Live):
    """DI with a linear model on thirty contexts; the fit precedes or follows the projection.

    Attributes
    ----------
    growth : float
        The ratio of successive weights.
    place : {"before", "after"}
        Whether the model is fitted before or after the projection.
    """

    _esm = module("plot", "fitted_direct")

    growth = number(0.8, 1.6, 1.0)
    place = one_of("before", "after")
    first = constant(0.5)
    steps = constant(40)
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
        The number of actions.
    order : list of four int
        The best action of each of four steps, which are repeated; not the last action.
    n : int
        The number of steps before the last action becomes the best one.
    gap : float
        The distance of the second best action in these steps from the best.
    """

    _esm = module("take_turns")

    updates = some_of(UPDATES, ["ce", "mce", "sce", "di", "pg-sm", "npg"], least=1)
    actions = whole(3, 4, 3)
    order = traitlets.List(traitlets.Int(min=0, max=2), [0, 1, 0, 1], minlen=4, maxlen=4).tag(
        sync=True
    )
    n = whole(10, 1000, 1000)
    gap = one_of(0.02, 0.4)

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
        The coefficients of the entropy bonus and of the penalty.
    estimator : bool
        Whether the penalty is k3 in the loss, as in `pu_lib.chapters.remedies.quantities.Remedy`.
    reference : float
        The probability of the action that is best at first under the reference.
    epochs : int
        The number of clipped epochs per batch.
    normalised : bool
        Whether advantages are normalised.
    adam : float
        The step size of Adam, or 0 for none.
    decay : float
        The coefficient of weight decay.
    critic : float
        The rate of the learned values.
    heard : bool
        Whether the rate for an action is multiplied by the probability with which it is taken.
    exploration : float
        The probability of a random action; only with `heard`.
    change : {"swap", "good turns bad", "bad turns good"}
        How the values change.
    samples : int
        The number of sampled actions per step, or 0 for exact values. With samples the penalty, the
        epochs, Adam and `heard` have no effect.
    """

    _esm = module("plot", "remedies")

    entropy = one_of(0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, start=0.01)
    penalty = one_of(0.0, 0.001, 0.01, 0.04, 0.1, 0.2)
    estimator = traitlets.Bool(False).tag(sync=True)
    reference = one_of(0.5, 0.9, 0.1)
    epochs = one_of(1, 4, 10)
    normalised = traitlets.Bool(False).tag(sync=True)
    adam = one_of(0.0, 0.01, 0.1)
    decay = one_of(0.0, 0.0001, 0.001, 0.01, 0.1)
    critic = one_of(1.0, 0.1, 0.01)
    heard = traitlets.Bool(False).tag(sync=True)
    exploration = one_of(0.0, 0.01, 0.05, 0.1, 0.2)
    change = one_of("swap", "good turns bad", "bad turns good")
    samples = one_of(0, 4, 8, 16)


_FAILING = 6


class RewardHack(Live):
    """The updates until half after a verifier was mended, from one policy over eight answers.

    Attributes
    ----------
    size : int
        The number of samples in a group.
    weight : float
        The weight of every step.
    pays : float
        What the hack is still paid; the correct answer is paid 1 and the others nothing.
    method : {"RLOO", "GRPO", "MaxRL", "best of the group", "restart"}
        The advantages of the run that is shown; "restart" is GRPO from the reference.
    start, reference : list of float
        The policy at the change and the reference: the hack, the correct answer and the others.
    """

    _esm = module("plot", "groups", "reward_hack")

    size = one_of(2, 4, 8, 16, 32, start=8)
    weight = one_of(0.3, 1.0, 3.0, 10.0, start=1.0)
    pays = one_of(0.0, 0.1, 0.3, 0.5)
    method = one_of("RLOO", "GRPO", "MaxRL", "best of the group", "restart", start="GRPO")
    start = constant([0.999, 6e-5, *[(0.001 - 6e-5) / _FAILING] * _FAILING])
    reference = constant([0.34, 0.02, *[0.64 / _FAILING] * _FAILING])
