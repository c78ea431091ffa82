"""Write the files of this folder. It was run once and is not run again on a later tree.

The files were made on the tree of commit 39c2bea (tag ``before-plain-house``), by Python 3.11.7 on
x86-64 with two processors and OPENBLAS_NUM_THREADS=1, with the book built by the commands of
``make book``:

    python tests/frozen/freeze.py claims          # about 5 minutes: all checks, all wrong claims
    python tests/frozen/freeze.py runs pages commands api imports exercises theorems solved

``claims.json``
    Every claim: status, margin and deciding instance as the check finds them, the margin that
    ``verdicts.json`` records, the sentence, the figures, what the check makes of wrong claims, and
    the claims that it cannot tell from its own.
``runs.json``
    200 runs of the committed table, each of another setting, and the hash of the table. Those under
    ``quick`` need few kinds of compiled code.
``pages.json``
    Address and anchors of every page of the book; the paragraphs of its article, without code,
    without how a claim was checked, what was measured for the ledger, and the table of what the
    checks make of other claims. Pages whose text tells of modules, or figures of the code that are
    measured from time to time, have no text (see ``pages.py``).
``commands.json``, ``api.json``, ``imports.json``, ``exercises.json``
    Answers of the command line; public names and signatures; what notebooks import; exercises with
    their solutions.
``theorems.json``
    The theorems that Rocq has checked, and the claims they prove.
``solved.json``
    Tests with numbers that were solved by hand or by independent code, chosen by `collect.solved`.
"""

import hashlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import adapter
import collect
import numpy as np
import pages
import runs

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEED, MOST_STEPS, RUNS, QUICK_KINDS = 20220328, 20_000, 200, 12


def freeze_claims() -> dict[str, Any]:
    recorded = adapter.recorded()
    found = {}
    for name in adapter.claims():
        found[name] = {**adapter.judged(name), "recorded": recorded[name]["margin"]}
    for name in found:
        moved, blind = adapter.controls(name)
        found[name]["wrong"] = {words: refuse() for words, refuse in adapter.wrong(name)}
        found[name]["blind"] = blind
        assert list(found[name]["wrong"]) == moved
    return found


def freeze_runs() -> dict[str, Any]:
    rng = np.random.default_rng(SEED)
    frame = runs.table()
    short = frame[frame["steps"] <= MOST_STEPS]
    setting = ["experiment", "domain", "scheme", "update", "preset"]
    chosen = short.groupby(setting).sample(1, random_state=rng).sample(RUNS, random_state=rng)
    chosen = chosen.sort_values([*setting, "eta", "run"])
    rows = json.loads(chosen.to_json(orient="records", double_precision=15))
    for row, exact in zip(rows, chosen.itertuples(), strict=True):
        row.update({k: adapter.plain(getattr(exact, k)) for k in row if row[k] is not None})
    kinds = sorted({tuple(row[k] for k in runs.KIND) for row in rows})
    quick = [kinds[i] for i in sorted(rng.choice(len(kinds), QUICK_KINDS, replace=False))]
    digest = hashlib.sha256(runs.TABLE.read_bytes()).hexdigest()
    return {"sha256": digest, "quick": [list(kind) for kind in quick], "runs": rows}


def freeze_theorems() -> list[dict[str, Any]]:
    return [
        {key: row[key] for key in ("theorem", "statement", "claims", "part")}
        for row in adapter.theorems()
    ]


FREEZE: dict[str, Callable[[], Any]] = {
    "claims": freeze_claims,
    "runs": freeze_runs,
    "pages": lambda: pages.read_book(ROOT / "_build" / "html"),
    "commands": collect.commands,
    "api": collect.api,
    "imports": collect.imports,
    "exercises": collect.exercises,
    "theorems": freeze_theorems,
    "solved": collect.solved,
}


def write(name: str, found: Any) -> None:
    """Write a file with one value a line, which makes differences easy to read."""
    text = json.dumps(found, indent=0, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    (HERE / f"{name}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        write(name, FREEZE[name]())
