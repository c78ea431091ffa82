"""Tables of the policy that writes tokens."""

from __future__ import annotations

import math

import pandas as pd

from pu_lib.chapters.reward_hack.figures import number
from pu_lib.chapters.reward_hack.tokens import protocol, summary


def shared_parameters_table(change: str = "swap", n: int = 300) -> pd.DataFrame:
    """Return the runs of each method with tokens after one change.

    The columns are the medians at the change of the regret and of the probability of the correct
    answer, the medians of the updates until half, with an interval, and of the samples, the runs
    lost, and how many runs end with 0, 1, 2, 3 and 4 prompts solved.
    """
    rows = {}
    for method in protocol()["methods"]:
        cell = summary(change, n, method)
        back = cell.half < math.inf
        interval = f"{number(cell.half)} [{number(cell.low)}, {number(cell.high)}]"
        rows[method] = {
            "regret": f"{cell.regret:.1e}".replace("-", "\N{MINUS SIGN}"),  # which does not wrap
            "correct": f"{cell.correct:.1e}".replace("-", "\N{MINUS SIGN}"),
            "updates until half": interval if back else "lost",
            "samples until half": number(cell.samples) if back else "lost",
            f"lost of {cell.runs}": str(cell.lost),
            "0, 1, 2, 3, 4 prompts solved": ", ".join(str(count) for count in cell.solved),
        }
    return pd.DataFrame(rows).T


def predictions_table() -> pd.DataFrame:
    """Return what the protocol predicts, what the runs show, and whether the two agree."""
    swap = {method: summary("swap", 300, method) for method in protocol()["methods"]}
    later = {method: summary("swap", 1000, method) for method in protocol()["methods"]}
    partial = {method: summary("partial", 300, method) for method in protocol()["methods"]}
    soon = ("GRPO, k3 0.04", "GRPO, entropy 0.1", "best of the group")
    grpo, restart, best = "GRPO", "GRPO, restart", "best of the group"
    medians = [
        *((cells[restart].half, [cell.half for cell in cells.values()]) for cells in (swap, later))
    ]
    grown = max(later[method].half / swap[method].half for method in soon[:2])
    few = [swap[method].solved[4] for method in (grpo, "GRPO, Adam reset", "MaxRL")]
    many = [swap[method].solved[4] for method in soon]
    redrawn = swap["GRPO, groups redrawn"].samples / swap[grpo].samples
    reset = swap["GRPO, Adam reset"].half / swap[grpo].half
    seen = swap[grpo].samples / swap[grpo].first
    lost = [cell.lost for method, cell in partial.items() if method != best]
    rows = [
        (
            "the restart has the smallest median, below 400",
            " and ".join(f"{first:.0f}" for first, _ in medians),
            all(first == min(all_) and first < 400 for first, all_ in medians),
        ),
        (
            "k3, entropy, best of the group: median below 700, at most 10 % lost; GRPO above 1500",
            f"at most {max(swap[m].half for m in soon):.0f}, {max(swap[m].lost for m in soon)} "
            f"lost; {swap[grpo].half:.0f}",
            all(swap[m].half < 700 and swap[m].lost <= 10 for m in soon) and swap[grpo].half > 1500,
        ),
        (
            "k3 and entropy after 1000: at most 1.5 times as long; GRPO loses more than half",
            f"{grown:.2f} times; {later[grpo].lost} lost",
            grown <= 1.5 and 2 * later[grpo].lost > later[grpo].runs,
        ),
        (
            "all four solved in 80 % or more (k3, entropy, best of the group), in 60 % or less "
            "(GRPO, Adam reset, MaxRL)",
            f"{', '.join(map(str, many))} %; {', '.join(map(str, few))} %",
            min(many) >= 80 and max(few) <= 60,
        ),
        ("redrawn groups take 5 times GRPO's samples", f"{redrawn:.1f} times", redrawn >= 5),
        ("Adam's reset takes at most 0.75 of GRPO's updates", f"{reset:.2f}", reset <= 0.75),
        ("GRPO's samples are 3 times those to the first correct one", f"{seen:.1f}", seen >= 3),
        (
            "partial: 80 % lost except best of the group, at most 30 %, median below 2000",
            f"{', '.join(map(str, lost))} %; {partial[best].lost} %, {partial[best].half:.0f}",
            min(lost) >= 80 and partial[best].lost <= 30 and partial[best].half < 2000,
        ),
    ]
    columns = ["predicted", "found", "agrees"]
    table = pd.DataFrame([(*row[:2], "yes" if row[2] else "no") for row in rows], columns=columns)
    return table.set_index("predicted")
