"""Checks of the claims on the policy that writes tokens; their limits are those of its protocol."""

from __future__ import annotations

from pu_lib.chapters.reward_hack.tokens import protocol, summary
from pu_lib.claims.recorder import Recorder, check

SOON = ("GRPO, k3 0.04", "GRPO, entropy 0.1", "best of the group")
"""The methods that come back soon after a swap, at a larger regret at the change."""


def _interval(change: str, n: int, method: str) -> str:
    """Return a median with its interval as text."""
    cell = summary(change, n, method)
    high = f"{cell.high:.0f}" if cell.high < float("inf") else "more than the cap"
    return f"{cell.half:.0f} ({cell.low:.0f} to {high})"


@check(
    "hack:tokens/order",
    wrong={
        "MaxRL in place of the restart": {"first": "MaxRL"},
        "GRPO among those that are back soon": {"soon": (*SOON, "GRPO")},
    },
)
def order_of_the_methods_survives(
    compare: Recorder, first: str = "GRPO, restart", soon: tuple[str, ...] = SOON
) -> None:
    """After a swap the restart is back first, then k3, entropy and best of the group, not GRPO."""
    for n in (300, 1000):
        restart = summary("swap", n, first)
        compare.at_most("median of the restart", restart.half, 400.0, limit="400", at={"n": n})
        for method in protocol()["methods"]:
            if method != first:
                compare.at_most(
                    "median of the restart, beside others",
                    restart.half,
                    summary("swap", n, method).half,
                    limit="the other's",
                    at={"n": n, "method": method},
                )
    for method in soon:
        cell, at = summary("swap", 300, method), {"method": method}
        compare.at_most("median", cell.half, 700.0, limit="700", at=at)
        compare.at_most("share lost", cell.lost / cell.runs, 0.1, limit="0.1", at=at)
    grpo, later = summary("swap", 300, "GRPO"), summary("swap", 1000, "GRPO")
    compare.at_least("median of GRPO", grpo.half, 1500.0, limit="1500")
    compare.at_least("share of GRPO lost after 1000", later.lost / later.runs, 0.5, limit="0.5")
    compare.at_least(
        "samples of GRPO over those to the first correct one",
        grpo.samples / grpo.first,
        3.0,
        limit="3",
    )
    compare.report(
        grpo=_interval("swap", 300, "GRPO"),
        restart=_interval("swap", 300, "GRPO, restart"),
        k3=_interval("swap", 300, "GRPO, k3 0.04"),
        entropy=_interval("swap", 300, "GRPO, entropy 0.1"),
        best=_interval("swap", 300, "best of the group"),
        lost=grpo.lost,
        later=later.lost,
        runs=grpo.runs,
        times=f"{grpo.samples / grpo.first:.1f}",
        certain=f"{grpo.regret:.4f}",
        k3_regret=f"{summary('swap', 300, 'GRPO, k3 0.04').regret:.3f}",
        entropy_regret=f"{summary('swap', 300, 'GRPO, entropy 0.1').regret:.3f}",
        best_regret=f"{summary('swap', 300, 'best of the group').regret:.3f}",
    )


@check(
    "hack:tokens/prompts",
    wrong={
        "GRPO solves all four": {"whole": (*SOON, "GRPO")},
        "best of the group leaves prompts": {"partly": ("GRPO", "best of the group")},
    },
)
def prompts_stay_unsolved(
    compare: Recorder,
    whole: tuple[str, ...] = SOON,
    partly: tuple[str, ...] = ("GRPO", "GRPO, Adam reset"),
) -> None:
    """After a swap GRPO leaves prompts unsolved; k3, entropy and best of the group solve all."""
    for method in whole:
        cell = summary("swap", 300, method)
        at = {"method": method}
        compare.at_least("all solved", cell.solved[4] / cell.runs, 0.8, limit="0.8", at=at)
    for method in partly:
        cell = summary("swap", 300, method)
        at = {"method": method}
        compare.at_most("all solved, few", cell.solved[4] / cell.runs, 0.6, limit="0.6", at=at)
    compare.report(
        least=min(summary("swap", 300, method).solved[4] for method in whole),
        grpo=summary("swap", 300, "GRPO").solved[4],
        reset=summary("swap", 300, "GRPO, Adam reset").solved[4],
        maxrl=summary("swap", 300, "MaxRL").solved[4],
        runs=summary("swap", 300, "GRPO").runs,
    )


@check("hack:tokens/partial", wrong={"MaxRL in its place": {"method": "MaxRL"}})
def only_best_of_the_group_leaves_the_well(
    compare: Recorder, method: str = "best of the group"
) -> None:
    """If the hack still pays a half, all but best of the group are lost, the restart included."""
    cell = summary("partial", 300, method)
    compare.at_most("share lost of the one", cell.lost / cell.runs, 0.3, limit="0.3")
    compare.at_most("median of the one", cell.half, 2000.0, limit="2000")
    others = {name: summary("partial", 300, name) for name in protocol()["methods"]}
    del others[method]
    for name, other in others.items():
        at = {"method": name}
        compare.at_least("share lost", other.lost / other.runs, 0.8, limit="0.8", at=at)
    least = min(other.lost for other in others.values())
    compare.report(
        best=_interval("partial", 300, method),
        lost=cell.lost,
        runs=cell.runs,
        others=f"all {least}" if least == cell.runs else f"at least {least}",
        whole=cell.solved[4],
    )
