"""Compare what the checks say now with what is frozen.

    python tests/frozen/gate.py                      # all claims: several minutes
    python tests/frozen/gate.py rates thm:unlearn    # a chapter; a claim with its parts
    python tests/frozen/gate.py runs                 # all 200 frozen runs, bit for bit

Each claim is judged, and its check is tried on every wrong claim that it refused. Exits with 1 if
anything differs.
"""

import os
import sys
import time
from itertools import chain

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy is imported

import adapter
import compare
import runs


def named(words: list[str]) -> list[str]:
    """Return the claims of the chapters and with the identifiers that are named; all if none is."""
    chapters = adapter.claims()
    for word in words:
        if not any(word in (c, n) or n.startswith(f"{word}/") for n, c in chapters.items()):
            raise SystemExit(f"{word}: there is no such chapter or claim.")
    return [
        name
        for name, chapter in chapters.items()
        if not words or any(w in (chapter, name) or name.startswith(f"{w}/") for w in words)
    ]


def differences(name: str) -> list[str]:
    """Judge a claim and the wrong claims of its check, and return what differs."""
    now = adapter.judged(name)
    found = compare.compare_claim(
        name, now["status"], now["margin"], now["sentence"], now["instance"]
    )
    row = compare.frozen("claims").get(name)
    if row is None:
        return found
    found += compare.missing_controls(name, adapter.controls(name))
    for words, refuse in adapter.wrong(name):
        if refuse() == row["status"]:
            found.append(f"{name}: the check accepts {words!r}")
    return found


def main(words: list[str]) -> int:
    """Print the differences as they are found and return the exit code."""
    start, lines = time.monotonic(), []
    if words == ["runs"]:
        found = (runs.compare_run(row) for row in compare.frozen("runs")["runs"])
    else:
        found = (differences(name) for name in named(words))
    if not words:
        gone = sorted(compare.frozen("claims").keys() - adapter.claims().keys())
        found = chain(found, [[f"{name}: the claim is gone" for name in gone]])
    for new in found:
        lines += new
        for line in new:
            print(line, flush=True)
    print(f"{len(lines)} differences, {time.monotonic() - start:.0f} s")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
