r"""Runs beyond the paper's panels, for statements that need something to compare with.

- The chain without exploration at 10 states (is it stuck?), and the chain with 7 states
  under HiOffPol (how much does the cliff slow each update down?).
- Random MDPs with learning rates so large that the policy is greedy: the limit of greedy SARSA.
- Random MDPs with a slower critic: does noise in the critic explain the cross-entropy updates'
  deficit?
"""

from __future__ import annotations

import math
from dataclasses import replace

from pu_lib.empirical.options import PRESETS, describe
from pu_lib.empirical.panels import RATES, UPDATE_NAMES
from pu_lib.empirical.store import Cell, Chunk
from pu_lib.empirical.sweep import chunks_of

__all__ = ["CRITIC_RATE", "GREEDY_RATE", "comparison_chunks"]

GREEDY_RATE = 1e9
CRITIC_RATE = 0.01
_PAPER = PRESETS["paper"]


def _cell(
    experiment: str,
    scheme: str,
    update: str,
    eta: float,
    n_states: int = 100,
    critic_rate: float = 0.1,
    seed: int = 0,
) -> Cell:
    on_chain = experiment == "chain-compared"
    return Cell(
        experiment=experiment,
        domain="chain" if on_chain else "random-mdp",
        scheme=scheme,
        update=update,
        eta=eta,
        n_states=n_states,
        n_actions=2 if on_chain else 4,
        beta=0.8 if on_chain else math.nan,
        preset=describe(replace(_PAPER, critic_rate=critic_rate)),
        max_steps=1_000_000,
        target=0.5 if on_chain else 0.95,
        seed=seed,
    )


def comparison_chunks(seed: int = 0, scale: float = 1.0) -> list[Chunk]:
    """Return the chunks of all comparisons.

    Parameters
    ----------
    seed : int
        Root of all randomness.
    scale : float
        Factor on all numbers of runs; at least one run each.
    """
    chains = [
        _cell("chain-compared", "HiOffPol", update, eta, 7, seed=seed)
        for eta in RATES
        for update in UPDATE_NAMES
    ]
    # Nearly every one of these runs takes all of its million steps: fewer of them.
    stuck = [
        _cell("chain-compared", "NoExplo", update, eta, 10, seed=seed)
        for eta in RATES[::2]
        for update in UPDATE_NAMES
    ]
    greedy = [
        _cell("greedy-limit", scheme, update, GREEDY_RATE, seed=seed)
        for scheme in ("NoExplo", "LowOffPol", "HiOffPol")
        for update in ("di", "ce", "mce")
    ]
    critic = [
        _cell("critic-rate", "NoExplo", update, eta, critic_rate=CRITIC_RATE, seed=seed)
        for eta in (0.1, 1.0, 10.0)
        for update in UPDATE_NAMES
    ]
    return [
        chunk
        for cells, runs in ((greedy, 20), (critic, 20), (chains, 20), (stuck, 8))
        for chunk in chunks_of(cells, max(1, round(runs * scale)), 20)
    ]
