"""Write the page *How far to trust this*: ``make report``.

The numbers come from ``tools/report.json``, from ``tools/mutants.jsonl``, which ``make mutants``
writes, and from the records of claims and proofs. ``make report MEASURE="times fuzz"`` first
updates ``tools/report.json``: the times of the two commands and the number of inputs that ``make
fuzz`` has generated.
"""

from __future__ import annotations

import json
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from typing import Any

from mutants import TABLE, part_of, read_lines

from pu_lib.claims import recorded
from pu_lib.claims.proofs import proofs
from pu_lib.files import replace_file

ROOT = Path(__file__).resolve().parent.parent
FUZZ = ROOT / "_build" / "fuzz.jsonl"
TEMPLATE, PAGE = ROOT / "tools" / "report.md", ROOT / "book" / "trust.md"
FIGURES = ROOT / "tools" / "report.json"

# Measurements


def measure_fuzz() -> dict[str, dict[str, int]]:
    """Return the number of inputs that the last ``make fuzz`` generated, by kind."""
    if not FUZZ.exists():
        raise SystemExit(f"{FUZZ} is missing. Run `make fuzz` first.")
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for row in read_lines(FUZZ):
        counts[row.pop("of")].update(row)
    return {kind: dict(count) for kind, count in counts.items()}


def measure_times() -> dict[str, Any]:
    """Run ``make test`` and ``make book`` and return their times and the number of tests."""
    minutes, tests = {}, 0
    for command in ("test", "book"):
        start = time.monotonic()
        done = subprocess.run(["make", command], cwd=ROOT, capture_output=True, text=True)
        minutes[command] = round((time.monotonic() - start) / 60, 1)
        if done.returncode:
            raise SystemExit(f"make {command} failed:\n{done.stdout[-2000:]}")
        if passed := re.search(r"(\d+) passed", done.stdout):
            tests = int(passed[1])
    return {
        "minutes": minutes,
        "tests": tests,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


MEASURES: dict[str, Callable[[], dict[str, Any]]] = {"fuzz": measure_fuzz, "times": measure_times}

# The page


def rows(figures: dict[str, Any]) -> list[str]:
    """Return the rows of the first table."""
    times, minutes = figures["times"], figures["times"]["minutes"]
    where = f"on {times['cores']} cores ({times['machine']}, Python {times['python']})"
    lines = [
        ("tests and notebooks", f"{times['tests']} passed in {minutes['test']} minutes {where}",
         "`make test`"),
        ("the book", f"built in {minutes['book']} minutes after that", "`make book`"),
        ("claims judged by a check", len(recorded()), "`python -m pu_lib claims`"),
        ("theorems checked by Rocq", len(proofs()), "`make proofs`"),
    ]  # fmt: skip
    for kind, counts in sorted(figures["fuzz"].items()):
        numbers = (f"{n:,} {name}".replace(",", "\u202f") for name, n in sorted(counts.items()))
        lines.append((f"{kind}: random inputs", ", ".join(numbers), "`make fuzz`"))
    return [f"| {quantity} | {number} | {command} |" for quantity, number, command in lines]


def mutant_rows(table: list[dict[str, Any]]) -> list[str]:
    """Return the rows of the table of mutants: one for each part of the library, and the total."""
    same = Counter(part_of(row["survivor"]) for row in table if row.get("equivalent"))
    lines, total = [], Counter[str]()
    for row in table:
        if "part" in row:
            counts = Counter({**row, "equivalent": same[row["part"]]})
            del counts["part"]
            total.update(counts)
            lines.append(mutant_row(f"`{row['part']}`", counts))
    return [*lines, mutant_row("**all**", total)]


def mutant_row(name: str, n: Counter[str]) -> str:
    """Return one row of the table of mutants."""
    numbers = [str(n[key]) for key in ("possible", "sampled", "tried", "equivalent")]
    shares = [share(n[key], n["tried"] - n["equivalent"]) for key in ("first", "killed")]
    return f"| {' | '.join([name, *numbers, *shares])} |"


def share(part: int, whole: int) -> str:
    """Return a share as a percentage, or a dash if the whole is zero."""
    return f"{100 * part / whole:.1f}\N{NO-BREAK SPACE}%" if whole else "–"


def wilson(part: int, whole: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval for a proportion estimated from a random sample."""
    z, p = 1.96, part / whole
    centre, width = p + z * z / (2 * whole), z * sqrt(p * (1 - p) / whole + (z / (2 * whole)) ** 2)
    return (centre - width) / (1 + z * z / whole), (centre + width) / (1 + z * z / whole)


def sampled(table: list[dict[str, Any]]) -> str:
    """Return the sentences about the sample of mutants and the interval of the share."""
    head = table[0]
    text = f"Measured at {head['measured']}: {head['sample']}."
    if "seed" in head:  # a simple random sample
        first = sum(row.get("first", 0) for row in table)
        counted = sum(row.get("tried", 0) - row.get("equivalent", False) for row in table)
        low, high = (f"{100 * end:.0f}" for end in wilson(first, counted))
        text += (
            f" The 95 % interval of the share killed at first, of all mutants, is {low} % to "
            f"{high} %."
        )
    if sum(row.get("sampled", 0) - row.get("tried", 0) for row in table):
        text += " Mutants that were sampled but not tried exceeded the time limit."
    return text


def survivors(table: list[dict[str, Any]], equivalent: bool) -> list[str]:
    """Return the surviving mutants that are or are not equivalent, with their explanations."""
    return [
        f"- `` {row['survivor']} ``: {row['why'] or 'not explained yet.'}"
        for row in table
        if row.get("equivalent") is equivalent
    ]


def page(figures: dict[str, Any], table: list[dict[str, Any]]) -> str:
    """Return the text of the page."""
    alive, same = survivors(table, equivalent=False), survivors(table, equivalent=True)
    return TEMPLATE.read_text("utf-8").format(
        rows="\n".join(rows(figures)),
        mutants="\n".join(mutant_rows(table)),
        sampled=sampled(table),
        n_alive=len(alive),
        alive="\n".join(alive),
        n_same=len(same),
        same="\n".join(same),
    )


def main(names: list[str]) -> int:
    """Repeat the named measurements and write the page."""
    if unknown := [name for name in names if name not in MEASURES]:
        print(f"MEASURE: unknown {unknown[0]!r}. Use {' or '.join(MEASURES)}.", file=sys.stderr)
        return 2
    figures = json.loads(FIGURES.read_text("utf-8"))
    for name in names:
        figures[name] = MEASURES[name]()
        replace_file(FIGURES, json.dumps(figures, indent=1, sort_keys=True) + "\n")
    replace_file(PAGE, page(figures, read_lines(TABLE)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
