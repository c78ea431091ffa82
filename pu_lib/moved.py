"""Modules that have moved; importing an old name works for one release and gives a warning.

The reference also uses `MOVED` to preserve the old addresses of moved modules.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

__all__ = ["MOVED", "install"]

MOVED = {
    "checks.claims": "chapters.table1.checks",
    "checks.convergence": "chapters.convergence.checks",
    "checks.convergence_remarks": "chapters.convergence.checks",
    "checks.counting": "chapters.unlearning.counting",
    "checks.cross_entropy": "chapters.cross_entropy.checks",
    "checks.cross_entropy_constant": "chapters.cross_entropy.checks",
    "checks.domino": "chapters.domino.checks",
    "checks.empirical": "chapters.empirical.checks",
    "checks.empirical_chain": "chapters.empirical.checks",
    "checks.empirical_cliff": "chapters.empirical.checks",
    "checks.empirical_random_mdps": "chapters.empirical.checks",
    "checks.empirical_setting": "chapters.empirical.checks_live",
    "checks.function_approximation": "chapters.function_approximation.checks",
    "checks.function_approximation_fitted": "chapters.function_approximation.checks",
    "checks.gravity_well": "chapters.gravity_well.checks",
    "checks.gravity_well_escort": "chapters.gravity_well.checks",
    "checks.literature": "chapters.literature.checks",
    "checks.literature_measured": "chapters.literature.checks",
    "checks.monotonicity": "chapters.monotonicity.checks",
    "checks.parts": "chapters.empirical.inequalities",
    "checks.rates": "chapters.rates.checks",
    "checks.rates_remarks": "chapters.rates.checks",
    "checks.stochastic_updates": "chapters.stochastic_updates.checks",
    "checks.unlearning": "chapters.unlearning.checks",
    "checks.unlearning_decaying": "chapters.unlearning.checks",
    "checks.unlearning_remarks": "chapters.unlearning.checks",
    "checks.updates": "chapters.updates.checks",
    "checks.updates_remarks": "chapters.updates.checks",
    "checks.what_came_after": "chapters.what_came_after.checks",
    "empirical.actors": "experiments.options",
    "empirical.adaptive": "experiments.adaptive",
    "empirical.bootstrap": "experiments.bootstrap",
    "empirical.cells": "experiments.cells",
    "empirical.collect": "experiments.collect",
    "empirical.curves": "experiments.curves",
    "empirical.database": "experiments.database",
    "empirical.details": "experiments.details",
    "empirical.interventions": "experiments.interventions",
    "empirical.jekyll_hyde": "experiments.jekyll_hyde",
    "empirical.live": "experiments.live",
    "empirical.options": "experiments.options",
    "empirical.panels": "experiments.panels",
    "empirical.policies": "experiments.policies",
    "empirical.problem": "experiments.problem",
    "empirical.processes": "experiments.cells",
    "empirical.published": "experiments.published",
    "empirical.race": "experiments.race",
    "empirical.reference": "experiments.reference",
    "empirical.results": "experiments.results",
    "empirical.rounding": "experiments.rounding",
    "empirical.speeds": "experiments.speeds",
    "empirical.store": "experiments.database",
    "empirical.sweep": "experiments.sweep",
    "empirical.tables": "experiments.tables",
    "empirical.thresholds": "experiments.thresholds",
    "proved": "claims.proofs",
    "show.convergence": "chapters.convergence.figures",
    "show.cross_entropy": "chapters.cross_entropy.figures",
    "show.domino": "chapters.domino.figures",
    "show.empirical": "chapters.empirical.figures",
    "show.experiments": "chapters.empirical.figures_domains",
    "show.function_approximation": "chapters.function_approximation.figures",
    "show.gravity_well": "chapters.gravity_well.figures",
    "show.guide": "chapters.guide.figures",
    "show.ledger": "claims.tables",
    "show.literature": "chapters.literature.figures",
    "show.monotonicity": "chapters.monotonicity.figures",
    "show.rates": "chapters.rates.figures",
    "show.rounding": "chapters.empirical.figures_rounding",
    "show.stochastic_updates": "chapters.stochastic_updates.figures",
    "show.unlearning": "chapters.unlearning.figures",
    "show.updates": "chapters.updates.figures",
    "show.what_came_after": "chapters.what_came_after.figures",
    "spoken": "claims.render",
    "theory.certified": "chapters.monotonicity.certified",
    "theory.claims": "chapters.table1.quantities",
    "theory.convergence": "chapters.convergence.quantities",
    "theory.cross_entropy": "chapters.cross_entropy.quantities",
    "theory.cross_entropy_constant": "chapters.cross_entropy.constant_weights",
    "theory.cycle_examples": "cycle_examples",
    "theory.cycles": "chapters.cross_entropy.cycles",
    "theory.deterministic": "deterministic",
    "theory.domino": "chapters.domino.quantities",
    "theory.far_counts": "chapters.unlearning.block_counting",
    "theory.fitted_direct": "chapters.function_approximation.fitted_direct",
    "theory.function_approximation": "chapters.function_approximation.quantities",
    "theory.gravity_well": "chapters.gravity_well.quantities",
    "theory.gravity_well_escape": "chapters.gravity_well.escape",
    "theory.guide": "chapters.guide.quantities",
    "theory.hunt": "chapters.random_search.quantities",
    "theory.late_drawdown": "chapters.evolutionary_search.quantities",
    "theory.literature": "chapters.literature.quantities",
    "theory.mirror_descent": "chapters.what_came_after.mirror_descent",
    "theory.monotonicity": "chapters.monotonicity.quantities",
    "theory.rates": "chapters.rates.quantities",
    "theory.stochastic_updates": "chapters.stochastic_updates.quantities",
    "theory.travel_times": "chapters.unlearning.flow_times",
    "theory.unlearning": "chapters.unlearning.quantities",
    "theory.unlearning_bounds": "chapters.unlearning.quantities",
    "theory.updates": "chapters.updates.quantities",
    "theory.walkers": "two_action_dynamics",
    "theory.what_came_after": "chapters.what_came_after.quantities",
    "verdict": "claims.recorder",
    "wording": "formatting",
}
"""A mapping from old to new names of modules, both relative to ``pu_lib``."""

GONE = {"empirical.bench": "The benchmarks are run by `make bench` in a clone of the repository."}
"""Removed modules, each with a sentence that names the replacement."""

_PACKAGES = ("checks", "empirical", "theory")
"""Packages whose modules have all moved or been removed."""


class _Finder(MetaPathFinder, Loader):
    """An importer that imports the new module in place of the old module."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a moved module, or None; raise an error for removed modules."""
        package, _, rest = name.partition(".")
        if package == "pu_lib" and rest in GONE:
            raise ModuleNotFoundError(f"pu_lib.{rest} is gone. {GONE[rest]}", name=name)
        if package != "pu_lib" or rest not in (*MOVED, *_PACKAGES):
            return None
        return ModuleSpec(name, self, is_package=rest in _PACKAGES)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """Import and return the new module, or return None for an empty package."""
        old = spec.name.partition(".")[2]
        if old in _PACKAGES:
            return None
        warnings.warn(
            f"pu_lib.{old} is now pu_lib.{MOVED[old]}; the old name goes with release 0.4.",
            DeprecationWarning,
            stacklevel=2,
        )
        new = import_module(f"pu_lib.{MOVED[old]}")
        spec.loader_state = new.__spec__
        return new

    def exec_module(self, module: ModuleType) -> None:
        """Restore the specification of a new module, which is already imported."""
        if module.__spec__ and module.__spec__.loader_state:
            module.__spec__ = module.__spec__.loader_state


def install() -> None:
    """Install an importer that also finds modules by their old names."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
