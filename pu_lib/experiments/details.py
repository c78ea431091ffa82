"""The effects of the details that the paper leaves open, changed one at a time.

Each run with a changed detail is compared with *the same run* under the options ``paper``: both
runs have the same domain, scheme, update, step size and random stream. In a cell (domain, scheme,
update, and step size 0.1, 1 or 10) the effect is the ratio of the restricted means. The size of
the effect is the ratio or its inverse, whichever is above 1. The effect of a detail is the
geometric mean of the sizes over the cells to which the detail applies. Sizes exceed 1 even if a
detail only changes the noise. The interval of each ratio, and the share of cells for which the
interval excludes 1, measure significance.

The choice of the statistic is another open detail. The ratio in this case is the median divided by
the restricted mean of the same runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pu_lib.experiments.bootstrap import draws, interval
from pu_lib.experiments.panels import DETAIL_STEP_SIZES
from pu_lib.experiments.results import Results, Runs, results_of

if TYPE_CHECKING:
    import pandas as pd
    from pandas.core.groupby import DataFrameGroupBy

WORDS = {
    "paper hyde_start=0.0": "Hyde starts at 0 (the paper's words)",
    "paper hyde_start=1.0 hyde_clip=1.0": "Hyde starts at 1, clipped at 1",
    "paper bonus=log": "bonus √(log(e+1)/n)",
    "paper sarsa=expected": "expected SARSA",
    "paper replay=model": "successor from the pooled model",
    "paper actor_weight=discounted": "actor's weight discounted",
    "paper cut=0": "trajectories not cut",
    "paper ties=random": "ties broken at random",
    "paper ties=leave": "ties leave the policy",
    "paper last_state_tie=True": "last state pays 1 for both",
    "paper escort_start=0.1": "escort starts at 0.1",
    "paper escort_start=10.0": "escort starts at 10",
    "paper escort_factor=keep": "escort keeps its factor",
    "paper critic_rate=0.01": "critic's rate 0.01",
    "predecessor stop=steps max_episodes=0": "all of the predecessor's",
}
"""The label of each detail, by the description of its options."""

_BETA = "β = 0.7 instead of 0.8"
_CELL = ["domain", "scheme", "update", "step_size", "n_states", "n_actions"]


def effects(table: Runs = None) -> pd.DataFrame:
    """Return the effect of each detail in each cell that was run with the detail changed.

    Returns
    -------
    pandas.DataFrame
        One row per detail and cell: detail, the columns of the cell, runs, the ratio of restricted
        means, the ends low and high of the 95 % bootstrap interval of the ratio, and the censored
        shares before and after the change.
    """
    return _effects(results_of(table)).copy()


@lru_cache(maxsize=2)
def _effects(results: Results) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for detail, cell, before, after in _pairs(results.table):
        centres = (np.median, np.mean) if after is before else (np.mean, np.mean)
        rows.append(
            {
                "detail": detail,
                **dict(zip(_CELL, cell, strict=True)),
                "runs": len(before),
                **_ratio(before["steps"], after["steps"], *centres),
                "censored before": before["censored"].mean(),
                "censored after": after["censored"].mean(),
            }
        )
    return pd.DataFrame(rows)


def _pairs(rows: pd.DataFrame) -> Iterator[tuple[str, tuple[Any, ...], pd.DataFrame, pd.DataFrame]]:
    """Yield each detail and cell with the same runs before and after the change in the detail.

    For the change in the statistic both tables of runs are the same object.
    """
    needed = [*_CELL, "experiment", "beta", "options", "run", "steps", "censored"]
    rows = rows.loc[rows["step_size"].isin(DETAIL_STEP_SIZES), needed]
    plain = rows[
        (rows["options"] == "paper")
        & rows["experiment"].isin(["random-mdp", "chain", "cliff"])
        & ~(rows["beta"] == 0.7)
    ]
    base = dict(iter(_by_cell(plain)))
    for cell, runs in base.items():
        yield "median instead of mean", cell, runs, runs
    changed = rows[rows["options"].isin(list(WORDS)) & (rows["beta"] != 0.7)]
    other = rows[
        (rows["options"] == "paper")
        & (rows["beta"] == 0.7)
        & rows["experiment"].isin(["chain", "cliff"])
    ]
    for detail, part in (*changed.groupby("options", observed=True), (_BETA, other)):
        for cell, after in _by_cell(part.drop_duplicates([*_CELL, "run"])):
            if cell in base and len(shared := after.index.intersection(base[cell].index)):
                yield str(detail), cell, base[cell].loc[shared], after.loc[shared]


def _by_cell(rows: pd.DataFrame) -> DataFrameGroupBy[Any, Any]:
    """Return the times and censoring of each cell, indexed by the number of the run."""
    return rows.set_index("run").groupby(_CELL, observed=True)[["steps", "censored"]]


def _ratio(
    before: pd.Series[Any], after: pd.Series[Any], centre: Any, reference: Any
) -> dict[str, float]:
    """Return the ratio of two statistics of paired runs, with its bootstrap interval."""
    x, y = before.to_numpy(dtype=np.float64), after.to_numpy(dtype=np.float64)
    chosen = draws(len(x))
    low, high = interval(centre(y[chosen], axis=1) / reference(x[chosen], axis=1))
    return {"ratio": centre(y) / reference(x), "low": low, "high": high}


def ranking(table: Runs = None, domain: str | None = None) -> pd.DataFrame:
    """Return the details in decreasing order of the geometric mean size of their effects.

    Parameters
    ----------
    table : Runs
        The runs, or `None` for the committed ones.
    domain : str, optional
        The domain of the cells. By default all cells are used.

    Returns
    -------
    pandas.DataFrame
        One row per detail: detail (its label), cells, effect (a factor), largest and where (the
        largest effect and its cell), clear (the share of cells for which the interval excludes 1).
    """
    import pandas as pd

    ratios = effects(table)
    if domain is not None:
        ratios = ratios[ratios["domain"] == domain]
    ranked = []
    for detail, part in ratios.groupby("detail"):
        size = np.abs(np.log10(part["ratio"]))
        worst = part.loc[size.idxmax()]
        ranked.append(
            {
                "detail": WORDS.get(str(detail), str(detail)),
                "cells": len(part),
                "effect": 10 ** size.mean(),
                "largest": 10 ** size.max(),
                "where": ", ".join(worst[["domain", "scheme", "update"]])
                + f", η={worst.step_size:g}",
                "clear": ((part["low"] > 1.0) | (part["high"] < 1.0)).mean(),
            }
        )
    return pd.DataFrame(ranked).sort_values("effect", ascending=False, ignore_index=True)
