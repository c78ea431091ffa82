"""HTML of a judged claim: a badge, the claim's sentence, and a table of the comparisons."""

from __future__ import annotations

import html
import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pu_lib.claims.catalog import Claim, changes_of, row_address
from pu_lib.claims.proofs import proofs_of, theorem_link
from pu_lib.claims.recorder import Check, Status, Tally
from pu_lib.formatting import format_value, to_html

if TYPE_CHECKING:
    from pu_lib.claims.judging import Judgement

_ROOT = Path(__file__).resolve().parent.parent.parent

_ENTRIES, _DIGITS = 4, 16
"""The largest numbers of entries of a sequence and of characters of a number in a cell."""

_HEAD = ("Compared", "Outcome", "Closest case", "At", "Sharpness")


def badge(status: Status) -> str:
    """Return the HTML of a status badge, which is bold where there is no style sheet."""
    return f'<strong class="verdict-status verdict-{status.name.lower()}">{status.value}</strong>'


def earlier_badge(claim: Claim) -> str:
    """Return the earlier statuses of a claim by another criterion, or an empty string."""
    statuses = dict.fromkeys(change.before for change in changes_of(claim))
    return f" <small>earlier: {html.escape(', '.join(statuses))}</small>" if statuses else ""


def earlier_html(claim: Claim) -> str:
    """Return an HTML list of the criteria by which a claim had another status."""
    items = "".join(
        f"<li>{html.escape(change.before)} until {html.escape(change.when)}. The criterion was: "
        f"{to_html(change.old)} It was changed to: {to_html(change.new)}</li>"
        for change in changes_of(claim)
    )
    return f"<ul>{items}</ul>" if items else ""


def tally_row(tally: Tally) -> dict[str, Any]:
    """Return a tally as a dict for JSON, with its worst comparison in words.

    Infinite numbers are text.
    """
    worst = tally.worst[0]
    return {
        "quantity": tally.quantity,
        "relation": tally.relation,
        "limit": tally.limit,
        "as printed": tally.as_printed,
        "comparisons": tally.comparisons,
        "failures": tally.failures,
        "undecided": tally.undecided,
        "attained": tally.attained,
        "least slack": _for_json(worst.slack),
        "sharpness": _for_json(tally.sharpness),
        "closest": ""
        if tally.relation == "is"
        else f"{_short(worst.value)} and {_short(worst.limit)}",
        "at": format_value({name: _short(entry) for name, entry in worst.instance.items()}),
    }


def _for_json(number: float) -> float | str:
    return number if math.isfinite(number) else str(number)


def format_tally(row: Mapping[str, Any]) -> list[str]:
    """Return the cells of a tally's row in the table with columns ``_HEAD``."""
    compared = f"{row['quantity']} {row['relation']} {row['limit']}"
    printed = ", as printed" if row["as printed"] else ""
    return [compared + printed, _outcome(row), row["closest"], row["at"], _sharpness(row)]


def _outcome(row: Mapping[str, Any]) -> str:
    """Return how many comparisons hold, fail or are undecided, as text."""
    if row["comparisons"] == 1:
        return "fails" if row["failures"] else "undecided" if row["undecided"] else "holds"
    total = format_value(row["comparisons"])
    counts = ((row["failures"], "fail"), (row["undecided"], "undecided"))
    parts = [f"{format_value(count)} of {total} {outcome}" for count, outcome in counts if count]
    return ", ".join(parts) or f"all {total} hold"


def _short(value: Any) -> str:
    """Return a value as text with few entries and digits, so that it fits a cell."""
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0:
        entries = [_short(entry) for entry in value[:_ENTRIES]]
        return f"({', '.join(entries + ['…'] * (len(value) > _ENTRIES))})"
    text = format_value(value)
    return format_value(float(value)) if len(text) > _DIGITS and _is_number(value) else text


def _is_number(value: Any) -> bool:
    try:
        return math.isfinite(float(value))
    except (TypeError, ValueError, OverflowError):
        return False


def _sharpness(row: Mapping[str, Any]) -> str:
    """Return how much the bound could be tightened before the check would fail, as text."""
    if row["failures"] or row["undecided"] or row["relation"] in ("=", "is"):
        return ""
    if row["attained"]:
        return f"attained in {format_value(row['attained'])} of {format_value(row['comparisons'])}"
    whole = math.inf if row["relation"] == "≥" else 1  # at 1, even the limit 0 would hold
    sharpness = float(row["sharpness"])
    if sharpness >= whole:
        return ""
    return f"fails if tightened by more than {format_value(100 * sharpness)}\N{NO-BREAK SPACE}%"


def tallies_html(rows: Sequence[Sequence[str]]) -> str:
    """Return the HTML table of comparisons, without columns in which every cell is empty."""
    shown = [k for k in range(len(_HEAD)) if any(row[k] for row in rows)]
    head = "".join(f'<th scope="col">{_HEAD[k]}</th>' for k in shown)
    body = "".join(
        "<tr>" + "".join(f"<td>{to_html(row[k])}</td>" for k in shown) + "</tr>" for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="tallies" tabindex="0">{table}</div>' if rows else ""


def tallies_list_html(rows: Sequence[Sequence[str]]) -> str:
    """Return the comparisons as an HTML list, for places that are too narrow for a table."""
    items = "".join(f"<li>{to_html(_in_words(*row))}</li>" for row in rows)
    return f"<ul>{items}</ul>" if rows else ""


def _in_words(compared: str, outcome: str, sides: str, where: str, sharpness: str) -> str:
    closest = f"closest case {sides}" if sides else ""
    place = f"at {where}" if where else ""
    return f"{compared}: {'; '.join(filter(None, (outcome, closest, place, sharpness)))}"


def claim_html(judged: Judgement) -> str:
    """Return the HTML of a judged claim; its sentence is followed by details that can be opened."""
    if judged.repeats_the_claim:
        return claims_html([judged])
    return (
        f'<div {_attributes(judged)}><p>{_line(judged)}</p><details class="how">'
        f"<summary>How this was checked</summary>{_how(judged)}</details></div>"
    )


def claims_html(judgements: Sequence[Judgement]) -> str:
    """Return the HTML of judged claims; each line opens to show the details of the check."""
    if len(judgements) == 1 and not judgements[0].repeats_the_claim:
        return claim_html(judgements[0])
    lines = "".join(
        f"<details {_attributes(judged, 'how')}><summary>{_line(judged)}</summary>"
        f"{_how(judged)}</details>"
        for judged in judgements
    )
    return f'<div class="verdicts">{lines}</div>'


def _attributes(judged: Judgement, more: str = "") -> str:
    """Return the identifier, which is that of the claim's row in the ledger, and the classes."""
    classes = f"verdict verdict-{judged.finding.status.name.lower()} {more}".rstrip()
    return f'id="{html.escape(judged.claim.id)}" class="{classes}"'


def _line(judged: Judgement) -> str:
    """Return the badge and number, and the sentence unless the sentence repeats the claim."""
    number = html.escape(judged.claim.number)
    said = f':</small> <span class="said">{to_html(judged.sentence)}</span>'
    said = "</small>" if judged.repeats_the_claim else said
    return f"{badge(judged.finding.status)}{earlier_badge(judged.claim)} <small>{number}{said}"


def _how(judged: Judgement) -> str:
    """Return the HTML details of a check: comparisons, proofs, wrong variants and code."""
    finding, theorems = judged.finding, proofs_of(judged.claim.id)
    said = f"<p>{to_html(judged.sentence)}</p>" if judged.repeats_the_claim else ""
    because = f"<p>{to_html(finding.open_because)}</p>" if finding.open_because else ""
    earlier = earlier_html(judged.claim)
    changed = f"<p>Earlier verdict:</p>{earlier}" if earlier else ""
    proved = "".join(f"<p>Machine-checked: {theorem_link(proof)}.</p>" for proof in theorems)
    table = tallies_html([format_tally(tally_row(tally)) for tally in finding.tallies])
    refused = _refused(judged.check.wrong)
    address = html.escape(row_address(judged.claim))
    row = f'<p class="other"><a href="{address}">In the ledger</a></p>'
    return f"{said}{because}{changed}{table}{proved}{refused}{_code(judged.check)}{row}"


def _refused(wrong: Iterable[str]) -> str:
    items = "".join(f"<li>{to_html(variant)}</li>" for variant in wrong)
    head = '<p class="other">The same check refuses:</p>'
    return f'{head}<ul class="other">{items}</ul>' if items else ""


def _code(check: Check) -> str:
    """Return the HTML of the call that runs a check and of the check's source."""
    function = inspect.unwrap(check.function)
    source = html.escape(inspect.getsource(function).strip())
    file = Path(inspect.getsourcefile(function) or "").resolve()
    where = file.relative_to(_ROOT) if file.is_relative_to(_ROOT) else file
    return (
        f'<p class="other">Run it with <code>confirm("{html.escape(check.claim)}")</code>.</p>'
        f'<details class="code"><summary><code>{html.escape(function.__name__)}</code> in '
        f'<code>{where.as_posix()}</code></summary><pre tabindex="0">{source}</pre></details>'
    )
