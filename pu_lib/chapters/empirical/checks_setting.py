# ruff: noqa: D401  # a docstring here states a claim
"""What section 4 and appendix B say of the setting: figure, algorithm, expected update."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pu_lib.domains import chain
from pu_lib.empirical.jekyll_hyde import seed_state
from pu_lib.empirical.options import SCHEMES
from pu_lib.empirical.reference import run_reference
from pu_lib.mdp import FiniteMDP
from pu_lib.updates import PAPER, as_update
from pu_lib.verdict import Verdict, Worst, check, judged


@check("fig:chain-env", moved={"jumping is worth 0.7 of walking": {"beta": 0.7}})
def chain_of_figure_1(beta: float = 0.8) -> Verdict:
    """On the chain with ten states jumping earns 0.8 of what walking does; in whose reward."""
    mdp = chain(10)
    values = mdp.optimal().q[0]
    error = "1e-12 less the error of q(s0, a1) / q*(s0, a2) as β"
    ours, printed = Worst(error), Worst(error)
    ours.add(1e-12 - abs(values[0] / values[1] - beta), reward="of a1")
    rewards = mdp.rewards[:, ::-1].copy()  # the caption gives a2 what pays for jumping
    as_printed = FiniteMDP(mdp.transitions, rewards, mdp.initial, mdp.discount, mdp.terminal)
    values = as_printed.optimal().q[0]
    printed.add(1e-12 - abs(values[0] / values[1] - beta), reward="of a2")
    return judged(ours, printed)


@check("alg:J&H", moved={"Hyde has no buffer under HiOffPol either": {"scheme": "HiOffPol"}})
def one_buffer(scheme: str = "NoExplo", steps: int = 300) -> Verdict:
    """Without exploration every transition and every update comes from Jekyll's one buffer."""
    worst, rows = Worst("minus the number of transitions that Jekyll's buffer lacks"), []
    for update in PAPER:
        seeds = seed_state(0, "chain", 0)
        run = run_reference(chain(5), np.inf, update, 1.0, SCHEMES[scheme], seeds, max_steps=steps)
        held = {who: len(run.buffers[who]) for who in ("jekyll", "hyde")}
        worst.add(0.0 - held["hyde"], update=update)
        worst.add(held["jekyll"] - steps, update=update)
        rows.append(
            {"update": update, "steps": steps, "of Jekyll": held["jekyll"], "of Hyde": held["hyde"]}
        )
    return judged(worst, evidence=rows)


@check(
    "eq:expected_update",
    moved={"the printed direction is that of CE and MCE": {"gradients": ("ce", "mce")}},
)
def expected_update(gradients: Sequence[str] = ("pg-sm", "pg-es")) -> Verdict:
    """The printed direction is that of the policy gradients, and not that of CE and MCE."""
    ours, printed = (Worst("1e-5 less the distance of the directions") for _ in range(2))
    pi, q, small = np.array([0.5, 0.3, 0.2]), np.array([0.2, 1.0, 0.5]), 1e-6
    for name in PAPER:
        update = as_update(name)
        if update.parametrization == "direct":
            continue  # the gradient of the identity is q, before its projection
        theta = update.parameters(pi)
        steps = np.eye(3) * small
        gradient = np.array(
            [q @ (update.policy(theta + e) - update.policy(theta - e)) for e in steps]
        )
        taken = update.step(theta, q, small) - theta
        distance = np.linalg.norm(_unit(gradient) - _unit(taken))
        (ours if name in gradients else printed).add(1e-5 - float(distance), update=name)
    return judged(ours, printed)


def _unit(direction: np.ndarray) -> np.ndarray:
    return np.asarray(direction / np.linalg.norm(direction))


@check(
    "fig:chain-env/walking",
    moved={
        "jumping pays 0.8 discounted nine times": {"power": 9},
        "jumping pays 1.1 of it, so that jumping is optimal": {"beta": 1.1},
    },
)
def walking_is_optimal(power: int = 8, beta: float = 0.8) -> Verdict:
    """On the chain with ten states walking is optimal everywhere, and jumping pays 0.8 gamma^8."""
    worst, mdp, rows = Worst("what walking earns more than jumping"), chain(10), []
    pays = beta * mdp.discount**power
    for s, (jumping, walking) in enumerate(mdp.optimal().q[:9].tolist()):
        wrong = abs(mdp.rewards[s, 0] - pays)
        worst.add(walking - jumping if wrong < 1e-12 else -wrong, state=s)
        rows.append({"state": s, "jumping earns": jumping, "walking earns": walking})
    return judged(worst, evidence=rows)
