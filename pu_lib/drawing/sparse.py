"""The table of times and memory of exact solutions of large sparse processes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pu_lib.claims.tables import Html

__all__ = ["PATH", "recorded", "sparse_times"]

PATH = Path(__file__).parents[1] / "experiments" / "data" / "sparse.json"
"""The file that ``make bench-sparse`` writes."""

_QUANTECON = "QuantEcon, modified policy iteration"
_NAMES = {"grid": "slippery grid", "garnet": "random successors"}


def recorded() -> list[dict[str, Any]]:
    """Return the rows of the recorded benchmark."""
    rows: list[dict[str, Any]] = json.loads(PATH.read_text("utf-8"))
    return rows


def sparse_times() -> Html:
    """Return an HTML table of optima here and in QuantEcon, with ratios and peak memory."""
    rows = {(row["states"], row["process"], row["method"]): row for row in recorded()}
    lines = []
    for (states, process, method), optimum in rows.items():
        if method == "optimal":
            other = rows.get((states, process, _QUANTECON))
            words = [f"{optimum['seconds']:.2g} s", "", "", f"{optimum['peak_gb']:.2f} GB"]
            if other:
                words[1:3] = f"{other['seconds']:.2g} s", f"{optimum['ratio']:.2f}"
            lines.append([f"{_NAMES[process]}, {states:,} states", *words])
    head = "process", "pu_lib, to rounding", "QuantEcon, to 1e-6", "ratio", "peak memory of pu_lib"
    cells = "".join(f'<th scope="col">{word}</th>' for word in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{word}</td>" for word in line) + "</tr>" for line in lines
    )
    return Html(f"<table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>")
