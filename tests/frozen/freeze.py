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
    The hash of the committed table of runs, and 400 of its rows. Those under ``runs`` are 200, each
    of another setting; more than a hundred kinds of code are compiled to compute them, which takes
    minutes, so that ``gate.py runs`` alone does it. Those under ``quick`` are 200 of four kinds.
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
import pandas as pd
import runs

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SEED, MOST_STEPS, RUNS = 20220328, 20_000, 200
QUICK = {
    ("chain", "pg-sm", "paper"): 65,
    ("chain", "di", "paper"): 65,
    ("chain", "pg-es", "paper escort_factor=keep"): 60,
    ("random-mdp", "mce", "paper"): 10,
}
"""Kinds of compiled code, and how many runs of each every run of the tests computes again."""


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
    each = short.groupby(setting).sample(1, random_state=rng).sample(RUNS, random_state=rng)
    quick = pd.concat(
        short[(short[["domain", "update", "preset"]] == list(kind)).all(axis=1)].sample(
            count, random_state=rng
        )
        for kind, count in QUICK.items()
    )
    assert set(quick["n_actions"]) == {2, 4}
    digest = hashlib.sha256(runs.TABLE.read_bytes()).hexdigest()
    return {"sha256": digest, "runs": rows(each), "quick": rows(quick)}


def rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Return rows as plain values; what is not a number is null."""
    by = ["experiment", "domain", "scheme", "update", "preset", "eta", "run"]
    return [
        {k: None if v != v else adapter.plain(v) for k, v in row._asdict().items()}
        for row in frame.sort_values(by).itertuples(index=False)
    ]


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
