"""Run the checks of claims, show their findings, and compare these with the record.

The record of a chapter is ``recorded.json`` in its folder: for each claim the status, the margin,
the figures of its sentence and every tally. ``python -m pu_lib claims --record`` writes it; the
tests and the command ``claims`` run the checks again and compare.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

from pu_lib.claims.catalog import Claim, Scope, chapters, check_of, folder_of, ledger, select
from pu_lib.claims.proofs import proofs_of
from pu_lib.claims.recorder import Check, Finding, Status, Tally
from pu_lib.claims.render import claim_html, claims_html, format_tally
from pu_lib.formatting import fill_placeholders, format_value, placeholders

__all__ = ["FINDINGS", "JudgedClaims", "Judgement", "confirm", "judge", "judge_wrong"]
__all__ += ["record", "recorded", "sentence_of"]

FINDINGS = "application/vnd.pu-lib.verdicts+json"
"""The media type of the findings in the output of an executed notebook."""

_RELATIVE, _ABSOLUTE = 1e-6, 1e-9
"""Tolerances between a recorded float and the one found: another version of the linear algebra can
change the last digits."""

_COUNTS = {"instances", "comparisons", "tests"}
"""Figures that say how much was tried, not what was found."""

_COUNTED = ("comparisons", "failures", "undecided", "attained", "least slack", "sharpness")
"""What a tally has to agree with the record in; what is missing in one of them is 0."""


@dataclass(frozen=True)
class Judgement:
    """A claim with the finding of its check.

    Attributes
    ----------
    claim : Claim
        The claim.
    check : Check
        Its check.
    finding : Finding
        The finding of the check.
    """

    claim: Claim
    check: Check
    finding: Finding

    @property
    def figures(self) -> dict[str, str]:
        """The figures that the claim's sentence names, as text.

        Raises a `ValueError` if the finding has no figure of that name.
        """
        known = self.finding.figures
        if missing := [name for name in placeholders(self.claim.sentence) if name not in known]:
            raise ValueError(
                f"{self.claim.id}: its sentence names the figure {missing[0]!r}; "
                f"the finding has {', '.join(known) or 'none'}."
            )
        return {name: format_value(known[name]) for name in placeholders(self.claim.sentence)}

    @property
    def sentence(self) -> str:
        """The claim's sentence with the figures of this finding."""
        return _filled(self.claim, self.figures)

    @property
    def differences(self) -> list[str]:
        """The differences between the finding and the record, one sentence each."""
        return list(_differences(self))

    def row(self) -> dict[str, Any]:
        """Return the judgement as values for JSON, where an infinite margin is null."""
        claim, margin = self.claim, self.finding.margin
        return {
            "id": claim.id,
            "number": claim.number,
            "kind": claim.kind,
            "scope": claim.scope.value,
            "severity": None if claim.severity is None else claim.severity.value,
            "section": claim.section,
            "chapter": claim.chapter,
            "status": self.finding.status.value,
            "margin": margin if margin is not None and math.isfinite(margin) else None,
            "seconds": round(self.finding.seconds, 3),
            "machine_checked": [proof.theorem for proof in proofs_of(claim.id)],
        }

    def record(self) -> dict[str, Any]:
        """Return what is recorded: `row`, the figures of the sentence, and the tallies."""
        return {
            **self.row(),
            "instances": self.finding.instances,
            "figures": self.figures,
            "tallies": [_plain(tally) for tally in self.finding.tallies],
        }

    @property
    def repeats_the_claim(self) -> bool:
        """Whether the sentence says nothing but that a theorem of the book holds.

        The theorem is printed above it on the page, so that only measured figures are new there.
        """
        own = self.claim.scope is Scope.BOOK and self.finding.status is Status.HOLDS
        return own and set(placeholders(self.claim.sentence)) <= _COUNTS

    def _repr_html_(self) -> str:
        return claim_html(self)


def _plain(tally: Tally) -> dict[str, Any]:
    """Return a tally as values for JSON, where infinite numbers are text."""
    least, sharpness = tally.worst[0].slack, tally.sharpness
    return {
        "compared": tally.compared,
        "as printed": tally.as_printed,
        "comparisons": tally.comparisons,
        "failures": tally.failures,
        **({"undecided": tally.undecided} if tally.undecided else {}),
        "attained": tally.attained,
        "least slack": least if math.isfinite(least) else str(least),
        "sharpness": sharpness if math.isfinite(sharpness) else str(sharpness),
        "shown": format_tally(tally),
    }


def _differences(judgement: Judgement) -> Iterator[str]:
    claim = judgement.claim
    if judgement.finding.status != claim.status:
        yield f"recorded {claim.status.value!r}, but found {judgement.finding}"
    try:
        found = judgement.record()
    except ValueError as error:  # a figure of the sentence is missing
        yield str(error)
        return
    kept = recorded().get(claim.id)
    if kept is None:
        yield "nothing is recorded"
        return
    for name in ("status", "margin", "instances"):
        if not _alike(found[name], kept[name]):
            yield f"recorded {name} {kept[name]}, but found {found[name]}"
    old, new = ({_key(t): t for t in row["tallies"]} for row in (kept, found))
    for compared, printed in sorted(old.keys() ^ new.keys()):
        where = "not found" if (compared, printed) in old else "not recorded"
        yield f"the comparison '{compared}'{' as printed' if printed else ''} is {where}"
    for key in sorted(old.keys() & new.keys()):
        for name in _COUNTED:
            before, now = old[key].get(name, 0), new[key].get(name, 0)
            if not _alike(now, before):
                yield f"{key[0]}: recorded {name} {before}, but found {now}"


def _key(tally: Mapping[str, Any]) -> tuple[str, bool]:
    return tally["compared"], tally["as printed"]


def _alike(found: Any, kept: Any) -> bool:
    """Return whether two recorded values are equal, floats up to rounding."""
    if isinstance(found, float) and isinstance(kept, int | float):
        return math.isclose(found, kept, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(found == kept)


def _filled(claim: Claim, figures: Mapping[str, str]) -> str:
    """Return the claim's sentence with its figures; if it has none, the texts of its file."""
    if not claim.sentence:
        return f"{claim.wrong} {claim.correction}".strip() or claim.statement
    return fill_placeholders(claim.sentence, figures, claim.id)


def sentence_of(claim: Claim) -> str:
    """Return the sentence of a claim with the recorded figures.

    Raises a `ValueError` if the sentence names a figure that is not recorded.
    """
    return _filled(claim, recorded().get(claim.id, {}).get("figures", {}))


def judge(claim: Claim | str) -> Judgement:
    """Run the check of one claim.

    Parameters
    ----------
    claim : Claim or str
        A claim, its identifier (``thm:unlearn/i``), or its number in the paper (``Theorem 4(i)``).

    Returns
    -------
    Judgement
        The claim with its check and the finding.

    Raises
    ------
    ValueError
        If there is no such claim, or several.

    Examples
    --------
    >>> finding = judge("prop:non-monotonicity/example").finding
    >>> finding.status.value, finding.instance
    ('holds', {'printed': '0.98996'})
    """
    claim = _one(claim)
    check = check_of(claim)
    return Judgement(claim, check, check.run())


def _one(claim: Claim | str) -> Claim:
    """Return the one claim of that name, or raise a `ValueError`."""
    found = _chosen(claim)
    if len(found) > 1:
        names = ", ".join(known.id for known in found)
        raise ValueError(f"claim: {claim!r} stands for several claims; name one of {names}.")
    return found[0]


@dataclass(frozen=True)
class JudgedClaims:
    """Claims whose findings have the recorded status, as notebooks display them.

    Attributes
    ----------
    judgements : tuple of Judgement
        The claims with their findings.
    """

    judgements: tuple[Judgement, ...]

    def __str__(self) -> str:
        return "\n".join(
            f"{judged.claim.number}: {judged.finding.status.value}. {judged.sentence}"
            for judged in self.judgements
        )

    __repr__ = __str__  # editors without HTML show this below the cell

    def _repr_html_(self) -> str:
        return claims_html(self.judgements)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        """Return the findings as data, for programs that read the executed notebook."""
        rows = [
            {**judged.record(), "sentence": judged.sentence, "differences": judged.differences}
            for judged in self.judgements
        ]
        return {FINDINGS: rows}


def confirm(*claims: Claim | str) -> JudgedClaims:
    """Run the checks of claims and show their findings, which must have the recorded status.

    Parameters
    ----------
    *claims : Claim or str
        Claims, their identifiers or numbers in the paper. A head of identifiers, such as
        ``thm:unlearn``, selects all claims below it.

    Returns
    -------
    JudgedClaims
        Notebooks display it as a badge and a sentence for each claim, with details to open.

    Raises
    ------
    AssertionError
        If a finding does not have the recorded status.
    ValueError
        If there is no such claim.

    Examples
    --------
    >>> judged = confirm("prop:non-monotonicity/example")
    >>> [(j.claim.number, j.finding.status.value) for j in judged.judgements]
    [('Proposition 1, proof', 'holds')]
    """
    chosen = [one for name in claims for one in _chosen(name)]
    judgements = tuple(map(judge, chosen))
    for judged in judgements:
        if judged.finding.status != judged.claim.status:
            raise AssertionError(
                f"{judged.claim.id}: recorded {judged.claim.status.value!r}, "
                f"but found {judged.finding}."
            )
    return JudgedClaims(judgements)


def _chosen(claim: Claim | str) -> tuple[Claim, ...]:
    """Return the claim with that identifier, or all claims that the name stands for."""
    if isinstance(claim, Claim):
        return (claim,)
    found = select([claim])
    return tuple(known for known in found if known.id == claim) or found


def judge_wrong(claim: Claim | str) -> dict[str, Finding]:
    """Run the check of a claim on its wrong variants; return the findings by variant.

    If the claim holds, a variant is run up to its first failure, which is enough to refute it.
    Raises an `AssertionError` if the finding for a variant has the recorded status.
    """
    claim = _one(claim)
    check, stop = check_of(claim), claim.status is Status.HOLDS
    findings = {wrong: check.run(wrong, stop_at_failure=stop) for wrong in check.wrong}
    if accepted := [wrong for wrong, found in findings.items() if found.status == claim.status]:
        raise AssertionError(f"{claim.id}: the check accepts what is wrong: {accepted}.")
    return findings


def _record_of(chapter: str) -> Any:
    return resources.files("pu_lib") / "chapters" / folder_of(chapter) / "recorded.json"


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return the recorded findings by claim: rows of `Judgement.record`."""
    files = (path for path in map(_record_of, chapters()) if path.is_file())
    return {row["id"]: row for path in files for row in json.loads(path.read_text("utf-8"))}


def record(judgements: Iterable[Judgement]) -> None:
    """Record findings; the rows of other claims are kept."""
    found = {judged.claim.id: judged.record() for judged in judgements}
    rows = {**recorded(), **found}
    for chapter in dict.fromkeys(row["chapter"] for row in found.values()):
        kept = [rows[c.id] for c in ledger() if c.chapter == chapter and c.id in rows]
        text = json.dumps(kept, indent=1, ensure_ascii=False) + "\n"
        _record_of(chapter).write_text(text, encoding="utf-8")
    recorded.cache_clear()
