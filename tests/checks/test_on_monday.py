"""The code for PyTorch on the page *On Monday* makes the steps that were measured."""

import re
from pathlib import Path

import nbformat
import numpy as np
from autograd import grad
from torch_stand_in import Tensor

from pu_lib.chapters.networks.losses import LOSSES
from pu_lib.chapters.reward_hack.quantities import advantages
from pu_lib.chapters.reward_hack.runs import Learner, protocol
from pu_lib.experiments.jekyll_hyde import seed_state

PAGE = Path(__file__).parents[2] / "book" / "on-monday.ipynb"
SIZE = 8


def printed():
    """Return the code for PyTorch on the page: k3, best of the group, soft NeuRD."""
    prose = "\n".join(c.source for c in nbformat.read(PAGE, 4).cells if c.cell_type == "markdown")
    return re.findall(r"^```python\n(.*?)^```$", prose, re.MULTILINE | re.DOTALL)


def updates_of_the_engine(pays, **options):
    """Yield parameters, samples, their rewards, and the step that the engine makes from them."""
    rewards = np.zeros(8)
    rewards[:2] = pays
    for seed in range(40):
        words = seed_state(0, "on monday", seed)
        learner = Learner(protocol()["reference"], words, SIZE, **options)
        theta = np.random.default_rng(seed).normal(size=8)
        learner._state.theta[:] = theta
        learner.improve(list(pays), 1, 2.0, 1)
        samples = np.repeat(np.arange(8), learner._work.counts.astype(int))
        yield theta, samples, rewards[samples], learner._work.direction.copy()


def gradient_of(code, theta, samples, arrays):
    """Return the gradient of a loss of one group; `arrays` are what it reads besides `logp`."""

    def loss(theta):
        names = {name: Tensor(x[np.newaxis]) for name, x in arrays.items()}
        names["logp"] = Tensor(Tensor(theta).log_softmax(-1).x[samples][np.newaxis])
        exec(code, {}, names)
        return names["loss"].x

    return grad(loss)(theta)


def largest_error_of_k3(code):
    reference, errors = np.log(protocol()["reference"]), []
    for theta, samples, rewards, step in updates_of_the_engine((0, 1), advantages="GRPO", k3=0.04):
        arrays = {"logp_ref": reference[samples], "adv": advantages("GRPO", rewards)}
        errors.append(np.abs(step + gradient_of(code, theta, samples, arrays)).max())
    return max(errors)


def largest_error_of_the_best(code):
    errors, moved = [], 0
    options = {"advantages": "best of the group", "mixed": SIZE}  # makes every update, one by one
    for theta, samples, rewards, step in updates_of_the_engine((0.5, 1), **options):
        gradient = gradient_of(code, theta, samples, {"r": rewards})
        errors.append(np.abs(step + gradient).max())
        moved += bool(step.any())
    assert moved > 10
    return max(errors)


def test_k3_in_the_loss_is_the_step_of_the_runs():
    code = printed()[0]
    assert largest_error_of_k3(code) < 1e-12
    assert largest_error_of_k3(code.replace("logp_ref - logp", "logp - logp_ref")) > 1e-3


def test_best_of_the_group_is_the_step_of_the_runs():
    code = printed()[1]
    assert largest_error_of_the_best(code) < 1e-12
    assert largest_error_of_the_best(code.replace("best / share", "best")) > 1e-3


def test_soft_neurd_is_the_loss_of_the_chapter_on_networks():
    """Whose gradient the tests of that chapter compare with the engine."""
    code = printed()[2]
    assert code.rstrip() == LOSSES["soft neurd"].code.replace("0.01", "tau")
