"""Measurements that support the recommendations of the guide.

Each situation has a function that returns one number for every update. `measure` calls all these
functions, and ``experiments/data/guide.json`` stores the results, which the page shows. A test
repeats the measurements and compares every recommendation with the new results.

With exact values in a table DI, CE and MCE become faster as the weight increases and have no best
weight, so `exact`, `changing`, `many` and `ties` compare all updates at one weight. `sampled` also
compares all updates at one weight, although smaller weights are safer, and so does
`sampled_changing`. `off_policy`, `linear` and
`network` compare the updates at the best tried weight of each update. `critic` reads the committed
runs of the chapter on networks, whose rates were tuned before the values change.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from pu_lib.chapters.function_approximation.fitted_direct import fitted_run, geometric_weights
from pu_lib.chapters.function_approximation.quantities import ScoreModel, Task, contexts, learn
from pu_lib.chapters.literature.quantities import ladder_times
from pu_lib.chapters.networks.quantities import lengths, level, methods
from pu_lib.chapters.remedies.quantities import (
    Median,
    SampledRemedy,
    median_of,
    sampled_median,
)
from pu_lib.chapters.unlearning.quantities import counts, steps_to_half
from pu_lib.experiments.results import committed_file
from pu_lib.updates import JUDGED, UPDATES

__all__ = [
    "EQUAL",
    "MEASURES",
    "STARTS",
    "STEP_SIZES",
    "back_from",
    "changing",
    "critic",
    "critic_mean",
    "equal_start",
    "exact",
    "final_performance",
    "greedy_control",
    "initial_offset",
    "kept",
    "linear",
    "many",
    "measure",
    "network",
    "off_policy",
    "off_policy_mean",
    "sampled",
    "sampled_changing",
    "ties",
]

Numbers = dict[str, float]

COMPARED = (*JUDGED, "sce")
"""The updates that are compared."""

STEP_SIZES = (0.3, 1.0, 3.0)
"""The weights of which the best is used for models; with weight 10 networks amplify rounding."""


def exact() -> Numbers:
    """Return the number of steps until the top of the hard ladder has learned.

    The two lowest rungs have 50 copies each, and the weight is 40 times the occupancy for all
    updates. Fewer steps are better.
    """
    return {name: float(ladder_times(name, 50.0)[-1]) for name in COMPARED}


def sampled(
    n_steps: int = 3000,
    n_runs: int = 200,
    weight: float = 1.0,
    names: Sequence[str] = COMPARED,
    seed: int = 11,
) -> Numbers:
    r"""Return the share of runs that find the best of four arms from samples of the taken action.

    The sampled values are :math:`\hat q=e_A\,r/\pi(A)`; an arm is found if its probability exceeds
    0.9. A larger share is better.
    """
    rewards, shares = np.array([0.1, 0.3, 0.5, 0.9]), {}
    for name in names:
        update = UPDATES[name]
        rng, theta = np.random.default_rng(seed), update.initial(n_runs, 4)
        for _ in range(n_steps):
            pi = update.policy(theta)
            drawn = (pi.cumsum(axis=1) > rng.random((n_runs, 1))).argmax(axis=1)
            taken = np.eye(4)[drawn]
            values = taken * rewards / np.maximum(pi, 1e-12)
            theta = update.step(theta, values, np.full(n_runs, weight))
        shares[name] = float(np.mean(update.policy(theta)[:, 3] > 0.9))
    return shares


def sampled_changing(n: int = 100, change: str = "swap") -> Numbers:
    """Return the median number of steps to come back after n steps, with samples.

    There are two actions, eight samples per step and values for each action, which are learned at
    the rate 0.1 per sample; 5 % of the actions are random and the weight is 1. The change is one of
    `pu_lib.chapters.remedies.quantities.CHANGES`. Fewer steps are better.
    """
    return {
        name: sampled_median(SampledRemedy(name, exploration=0.05), change, n)
        for name in ("pg-sm", "di", "ce", "npg")
    }


EQUAL = {
    "GRPO": SampledRemedy("group", normalised=True),
    "without deviation": SampledRemedy("group"),
    "CE": SampledRemedy("ce"),
}
"""The updates of `equal_start`: two kinds of advantages of a group, and CE on learned values."""

STARTS: dict[str, dict[str, Any]] = {
    "0.99": {"probability": 0.99},
    "0.9995": {"probability": 0.9995},
    "1000 steps": {"n": 1000},
}
"""The starts of `equal_start`: a policy's probability of the old action, or steps before it."""


@cache
def equal_start(name: str, start: str, change: str, exploration: float, ratio: bool) -> Median:
    """Return the median steps to come back of an update of `EQUAL` from one of `STARTS`.

    There are eight samples per step, weight 1 and 400 runs. Fewer steps are better. Advantages
    divided by their deviation depend only on which reward is larger, so that all changes are alike.
    """
    remedy = replace(EQUAL[name], exploration=exploration, ratio=ratio)
    if remedy.normalised:
        change = "swap"
    return median_of(remedy, change, n_runs=400, most=7000, **STARTS[start])


def off_policy(statistic: str = "median") -> Numbers:
    r"""Return a statistic of the steps of the committed HiOffPol runs on Random MDPs.

    The statistic is "median", or "mean" for the restricted mean, which counts a run that did not
    pass as a million steps. Each update is at its best step size for the statistic. As in the
    experiments, PG-ES omits its factor :math:`p/\lVert\theta\rVert_p`. Fewer steps are better.
    """
    import pandas as pd

    path = committed_file("runs.parquet")
    wanted = [
        ("experiment", "in", ["random-mdp", "random-mdp more"]),
        ("scheme", "==", "HiOffPol"),
        ("options", "==", "paper"),  # other options are PG-ES with its factor
    ]
    table = pd.read_parquet(path, columns=["update", "step_size", "steps"], filters=wanted)
    steps = table.groupby(["update", "step_size"], observed=True).steps
    # As in the experiments, a median is one of the recorded numbers of steps.
    middle = steps.mean() if statistic == "mean" else steps.quantile(0.5, interpolation="lower")
    best = middle.groupby("update", observed=True).min()
    return {name: float(best[name]) for name in COMPARED if name in best.index}


def off_policy_mean() -> Numbers:
    """Return the restricted means of the runs of `off_policy`."""
    return off_policy("mean")


def critic(statistic: str = "median") -> Numbers:
    """Return a statistic of the updates to recover on the grid after the longest phase 1.

    Actor and critic are networks that learn from samples, and the rewards of the two goals change
    places. The statistic is "median" or "mean"; a run that has not recovered counts as the cap of
    the runs. Methods too few of whose runs had learnt are left out. Fewer updates are better.
    """
    statistics = {}
    for method in methods("grid"):
        name, result = method.removesuffix(" fit"), level("grid", method, lengths("grid")[-1])
        if name in UPDATES and result.judged:
            statistics[name] = result.average if statistic == "mean" else result.median
    return statistics


def critic_mean() -> Numbers:
    """Return the means of the runs of `critic`."""
    return critic("mean")


def changing() -> Numbers:
    """Return the number of steps to undo a hundred steps of weight 1 with two actions."""
    return {name: float(counts([100], name)[0]) for name in COMPARED}


def back_from(probability: float, weight: float = 1.0) -> Numbers:
    """Return the number of steps from a probability of the worse of two actions to one half.

    All updates start from the same policy; `changing` starts them after the same number of steps.
    """
    return {name: float(steps_to_half(name, probability, weight)) for name in COMPARED}


def linear(seed: int = 1) -> Numbers:
    """Return the final performance of linear policies on the contexts; the optimum is 1.

    The contexts are a contextual bandit, so the values do not depend on the policy (their discount
    is 0), and they are linear in the features. A run has 200 steps, and the values are reversed in
    the first fifty. The result is for the best of `STEP_SIZES`, but `di` is fitted before the
    projection and has growing weights. `npg` is fitted, too, with constant weights; the other
    updates follow the chain rule. The contexts are drawn with the seed.
    """
    task = contexts(seed=seed)
    weights = np.r_[np.full(50, 0.5), geometric_weights(0.5, 1.2, 150)]
    fitted = fitted_run(task, weights, reversed_steps=50)
    return _best_performances(task, 0) | {"di": float(fitted.performance[-1])}


def network() -> Numbers:
    """Return the final performance of networks on the contexts, as in `linear` but without `di`."""
    return _best_performances(contexts(), 1)


def final_performance(update: str, task: Task, scores: ScoreModel, step_size: float) -> float:
    """Return the final performance of one run of `linear` or `network`."""
    return float(learn(update, task, scores, 200, step_size, 50).performance[-1])


def initial_offset(update: str) -> float:
    """Return the initial score of an action: a policy in escort form cannot start at 0."""
    return float(UPDATES[update].parametrization == "escort")


def _best_performances(task: Task, model: int) -> Numbers:
    """Return the best final performance of each update with linear (0) or neural (1) scores."""
    performances = {}
    for name in COMPARED:
        if UPDATES[name].parametrization != "direct":
            scores = task.models(initial_offset(name))[model]
            performances[name] = max(
                final_performance(name, task, scores, size) for size in STEP_SIZES
            )
    return performances


def many(n_actions: int = 100, most: int = 3000, weight: float = 1.0) -> Numbers:
    """Return the number of steps, at most `most`, until the best action has probability 0.9.

    The best action has value 1, and all other actions have value 0.9. Fewer steps are better.
    """
    q, counts = np.full(n_actions, 0.9), {}
    q[0] = 1.0
    for name in COMPARED:
        update = UPDATES[name]
        theta, steps = update.initial(1, n_actions)[0], 0
        while update.policy(theta)[0] < 0.9 and steps < most:
            theta, steps = update.step(theta, q, weight), steps + 1
        counts[name] = float(steps)
    return counts


def ties(
    n_steps: int = 400,
    noise: float = 1e-6,
    weight: float = 1.0,
    names: Sequence[str] = COMPARED,
) -> Numbers:
    """Return the largest late change in a probability if two actions alternate as the best one.

    The values of the two actions differ by twice `noise`. The change is the largest in one of the
    last fifty steps. Smaller is better.
    """
    changes = {}
    for name in names:
        update = UPDATES[name]
        theta, policies = update.initial(1, 3)[0], []
        for t in range(n_steps):
            sign = noise if t % 2 else -noise
            theta = update.step(theta, [1.0 + sign, 1.0 - sign, 0.0], weight)
            policies.append(update.policy(theta))
        changes[name] = float(np.abs(np.diff(policies[-50:], axis=0)).max())
    return changes


def greedy_control() -> dict[str, tuple[float, float]]:
    """Return the median and the mean of a greedy policy, by situation, where it was run.

    With data of another policy this is DI at its largest step size, where its policy is greedy
    for the critic, which is greedy SARSA; with a learned critic it has no actor.
    """
    import pandas as pd

    path = committed_file("runs.parquet")
    wanted = [
        ("experiment", "==", "greedy-limit"),
        ("scheme", "==", "HiOffPol"),
        ("update", "==", "di"),
    ]
    runs = pd.read_parquet(path, columns=["step_size", "steps"], filters=wanted)
    steps = runs.steps[runs.step_size == runs.step_size.max()]
    control = level("grid", "greedy", lengths("grid")[-1])
    return {
        "off-policy": (float(steps.quantile(0.5, interpolation="lower")), float(steps.mean())),
        "critic": (control.median, control.average),
    }


MEASURES = {
    "exact": exact,
    "sampled": sampled,
    "sampled-changing": sampled_changing,
    "off-policy": off_policy,
    "off-policy, mean": off_policy_mean,
    "changing": changing,
    "linear": linear,
    "network": network,
    "critic": critic,
    "critic, mean": critic_mean,
    "many": many,
    "ties": ties,
}
"""The functions that measure the updates, by situation of the guide."""


def measure() -> dict[str, Numbers]:
    """Return the results of `MEASURES` by situation and update, rounded to six digits."""
    return {
        situation: {name: float(f"{value:.6g}") for name, value in function().items()}
        for situation, function in MEASURES.items()
    }


def kept() -> dict[str, Numbers]:
    """Return the committed results of `measure`, by situation and update."""
    path = resources.files("pu_lib.experiments") / "data" / "guide.json"
    numbers: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return numbers
