"""Policy updates beyond the policy gradient theorem.

The library behind the executable companion to Laroche and Tachet des Combes, *Beyond the
Policy Gradient Theorem for Efficient Policy Updates in Actor-Critic Algorithms* (AISTATS 2022).

`updates` has the policy updates, `mdp` and `domains` have the finite Markov decision processes,
`trajectories` computes exact runs of an update, `experiments` has the experiments of section 4, and
`claims` has the claims of the paper and the code that judges them. `chapters` has one folder per
chapter of the book, with the chapter's claims, quantities, checks and figures.

The names below are the public API. Each name is imported at its first use, so that
``import pu_lib`` is fast:

>>> import pu_lib
>>> print(pu_lib.run("chain", "mce", n_steps=100, weighting="uniform"))
MCE, 100 updates on 10 states and 2 actions: performance 0.7314 to 0.9133
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from pu_lib.extras import naming_the_extra

if TYPE_CHECKING:
    from pu_lib.chapters.unlearning.quantities import unlearn
    from pu_lib.claims import Finding, confirm, judge, ledger
    from pu_lib.domains import DOMAINS
    from pu_lib.environments import bins, estimate, from_gymnasium
    from pu_lib.experiments.learning import Learned, compare, learn
    from pu_lib.experiments.race import Race, race
    from pu_lib.experiments.results import Results
    from pu_lib.experiments.sweep import merge_parts, sweep
    from pu_lib.mdp import FiniteMDP
    from pu_lib.trajectories import Trajectory, follow, run
    from pu_lib.updates import UPDATES, Update, make_update, register

__version__ = "0.3.0.dev0"

_HOMES = {
    "DOMAINS": "domains",
    "Finding": "claims",
    "FiniteMDP": "mdp",
    "Learned": "experiments.learning",
    "Race": "experiments.race",
    "Results": "experiments.results",
    "Trajectory": "trajectories",
    "UPDATES": "updates",
    "Update": "updates",
    "bins": "environments",
    "compare": "experiments.learning",
    "confirm": "claims",
    "estimate": "environments",
    "follow": "trajectories",
    "from_gymnasium": "environments",
    "judge": "claims",
    "learn": "experiments.learning",
    "ledger": "claims",
    "make_update": "updates",
    "merge_parts": "experiments.sweep",
    "race": "experiments.race",
    "register": "updates",
    "run": "trajectories",
    "sweep": "experiments.sweep",
    "unlearn": "chapters.unlearning.quantities",
}
_MODULES = ("claims", "domains", "exact", "mdp", "trajectories", "updates")

__all__ = [
    "DOMAINS",
    "UPDATES",
    "Finding",
    "FiniteMDP",
    "Learned",
    "Race",
    "Results",
    "Trajectory",
    "Update",
    "bins",
    "compare",
    "confirm",
    "estimate",
    "follow",
    "from_gymnasium",
    "judge",
    "learn",
    "ledger",
    "make_update",
    "merge_parts",
    "race",
    "register",
    "run",
    "sweep",
    "unlearn",
]


def __getattr__(name: str) -> Any:
    """Import a public name or a module of the library at its first use and return it."""
    with naming_the_extra():
        if name in _HOMES:
            return getattr(import_module(f"pu_lib.{_HOMES[name]}"), name)
        if name in _MODULES:
            return import_module(f"pu_lib.{name}")
    raise AttributeError(f"module 'pu_lib' has no attribute {name!r}; it offers {__all__}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_MODULES, "__version__"])
