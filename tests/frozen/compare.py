"""What is frozen, the exceptions from it, and how later results are compared with it."""

import difflib
import json
import math
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
RELATIVE, ABSOLUTE = 1e-12, 1e-15
SHOWN = 12
"""Differing paragraphs of a page that are told."""


@cache
def frozen(name: str) -> Any:
    """Return what a file of this folder holds."""
    return json.loads((HERE / f"{name}.json").read_text("utf-8"))


def exceptions(kind: str) -> list[dict[str, Any]]:
    """Return the listed exceptions of a kind; see `exceptions.toml`."""
    listed = tomllib.loads((HERE / "exceptions.toml").read_text("utf-8")).get(kind, [])
    for row in listed:
        if not str(row.get("reason", "")).strip():
            raise ValueError(f"exceptions.toml: a [[{kind}]] has no reason: {row}")
    return list(listed)


def close(old: Any, new: Any) -> bool:
    """Return whether two values are equal, numbers up to the rounding of the last digits."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, int | float) and isinstance(new, int | float):
        return math.isclose(old, new, rel_tol=RELATIVE, abs_tol=ABSOLUTE)
    if isinstance(old, list) and isinstance(new, list):
        return len(old) == len(new) and all(map(close, old, new))
    if isinstance(old, dict) and isinstance(new, dict):
        return old.keys() == new.keys() and all(close(old[key], new[key]) for key in old)
    return bool(old == new)


def margins(name: str, also: str = "") -> list[Any]:
    """Return the margins that a claim may have: what was frozen, and a listed exception."""
    row = frozen("claims")[name]
    listed = [e for e in exceptions("margin") if e["claim"] == name]
    for exception in listed:
        if not close(row["margin"], exception["old"]):
            raise ValueError(
                f"exceptions.toml: {name} had the margin {row['margin']!r}, not "
                f"{exception['old']!r}."
            )
    if listed:
        return [exception["new"] for exception in listed]
    return [row["margin"], *([row[also]] if also else [])]


def compare_claim(
    name: str,
    status: str,
    margin: float | str | None,
    sentence: str | None = None,
    instance: dict[str, Any] | None = None,
) -> list[str]:
    """Return how what a check found differs from what is frozen.

    A sentence or an instance that is not given is not compared. A margin that is not finite is
    given as text. The instance is compared where no exception says that the margin has changed.
    """
    row = frozen("claims").get(name)
    if row is None:
        return [f"{name}: there was no such claim"]
    found = []
    if status != row["status"]:
        found.append(f"{name}: the status was {row['status']!r}, is {status!r}")
    allowed = margins(name)
    if not any(close(old, margin) for old in allowed):
        found.append(f"{name}: the margin was {allowed[0]!r}, is {margin!r}")
    said = row["sentence"]
    for exception in exceptions("sentence"):
        if exception["claim"] == name:
            said = said.replace(exception["old"], exception["new"])
    if sentence is not None and sentence != said:
        found.append(f"{name}: the sentence was {said!r}, is {sentence!r}")
    # An instance is described by fewer or other names now; what both name is compared.
    both = [key for key in row["instance"] if key in (instance or {})]
    same = instance is None or all(close(row["instance"][key], instance[key]) for key in both)
    if not same and not has_other_margin(name):
        found.append(f"{name}: the deciding instance was {row['instance']}, is {instance}")
    return found


def has_other_margin(name: str) -> bool:
    """Return whether the margin of a claim, and with it the deciding instance, may differ."""
    return any(exception["claim"] == name for exception in exceptions("margin"))


def compare_record(name: str, status: str, margin: float | None) -> list[str]:
    """Return how a recorded verdict differs from the frozen record.

    The margin may be the one that was recorded, or the one that was measured for this comparison:
    the two differ by the rounding of two machines. JSON has no infinity; the record has null.
    """
    row = frozen("claims").get(name)
    if row is None:
        return [f"{name}: there was no such claim"]
    allowed = [None if isinstance(old, str) else old for old in margins(name, "recorded")]
    found = []
    if status != row["status"]:
        found.append(f"{name}: the recorded status was {row['status']!r}, is {status!r}")
    if not any(close(old, margin) for old in allowed):
        found.append(f"{name}: the recorded margin was {row['recorded']!r}, is {margin!r}")
    return found


def missing_controls(name: str, wrong: list[str]) -> list[str]:
    """Return the wrong claims that a check refused and is no longer given.

    What a check was said not to notice is not looked for: tallies measure how sharp a bound is.
    """
    row = frozen("claims")[name]
    listed = {e["words"] for e in exceptions("wrong") if e["claim"] == name}
    lost = [words for words in row["wrong"] if words not in wrong and words not in listed]
    return [f"{name}: the check is no longer given {words!r}" for words in lost]


# Pages


def old_text(address: str) -> tuple[list[str], list[str]]:
    """Return the frozen paragraphs of a page with the listed changes, and unfounded changes."""
    text, unfounded = "\n".join(frozen("pages")[address]["text"]), []
    for exception in exceptions("page"):
        if exception["address"] == address:
            if exception["old"] not in text:
                unfounded.append(f"exceptions.toml: {address} had no {exception['old']!r}")
            text = text.replace(exception["old"], exception["new"])
    return [line for line in text.split("\n") if line.strip()], unfounded


def compare_page(address: str, anchors: list[str], text: list[str] | None) -> list[str]:
    """Return the anchors that a page has lost, and how its text differs."""
    listed = {e["id"] for e in exceptions("anchor") if e["address"] == address}
    lost = sorted(set(frozen("pages")[address]["anchors"]) - set(anchors) - listed)
    lost = [anchor for anchor in lost if not anchor.startswith("pst-")]  # the theme's own frame
    found = [f"{address}: the anchor #{anchor} is missing" for anchor in lost]
    if "text" not in frozen("pages")[address]:
        return found
    before, unfounded = old_text(address)
    return [*found, *unfounded, *difference(before, text or [])]


def difference(before: list[str], now: list[str]) -> list[str]:
    """Return the paragraphs that differ, cut to what is different in them."""
    if before == now:
        return []
    told: list[str] = []
    for kind, i, j, k, end in difflib.SequenceMatcher(
        None, before, now, autojunk=False
    ).get_opcodes():
        if kind == "equal":
            continue
        olds, news = before[i:j], now[k:end]
        for n in range(max(len(olds), len(news))):
            old, new = olds[n] if n < len(olds) else "", news[n] if n < len(news) else ""
            told += [f"- {line}" for line in (excerpt(old, new),) if line]
            told += [f"+ {line}" for line in (excerpt(new, old),) if line]
    more = len(told) - 2 * SHOWN
    return told[: 2 * SHOWN] + ([f"and {more} lines more"] if more > 0 else [])


def excerpt(line: str, other: str, around: int = 40) -> str:
    """Return a line from shortly before it differs from another until shortly after."""
    start = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), None)
    if start is None:
        start = min(len(line), len(other))
    end = 0
    while end < min(len(line), len(other)) - start and line[-1 - end] == other[-1 - end]:
        end += 1
    first, last = max(start - around, 0), min(len(line) - end + around, len(line))
    return ("…" if first else "") + line[first:last] + ("…" if last < len(line) else "")


# Everything else


def lost(kind: str, before: Any, now: Any, path: str = "") -> list[str]:
    """Return what is missing or different in a tree of names; what is new is not told."""
    if isinstance(before, dict) and isinstance(now, dict):
        return [
            line
            for key, old in before.items()
            for line in (
                lost(kind, old, now[key], f"{path} {key}")
                if key in now
                else [f"{kind}{path}: {key!r} is missing"]
            )
        ]
    if isinstance(before, list) and isinstance(now, list) and kind == "names":
        return [f"{kind}{path}: {old!r} is missing" for old in before if old not in now]
    return [] if before == now else [f"{kind}{path}: was {before!r}, is {now!r}"]


def missing_tests(present: dict[str, int]) -> list[str]:
    """Return the frozen tests that are defined less often than before, by name."""
    listed = {e["old"]: e["new"] for e in exceptions("test")}
    before: dict[str, list[str]] = {}
    for node in frozen("solved"):
        before.setdefault(node.partition("::")[2], []).append(node)
    found = []
    for name, nodes in before.items():
        renamed = [listed[node] for node in nodes if node in listed]
        if present.get(name, 0) < len(nodes) - len(renamed):
            found.append(f"{' or '.join(nodes)}: there is no such test any more")
        found += [
            f"exceptions.toml: there is no test {new!r}"
            for new in renamed
            if new and not present.get(new.rpartition("::")[2], 0)
        ]
    return found
