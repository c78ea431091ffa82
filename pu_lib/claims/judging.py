"""Run the checks of claims, show the findings, and compare them with the recorded findings.

The record of a chapter is ``recorded.json`` in its folder. It has one line for each claim, with the
status, the margin, the figures of its sentence and the inputs tried, and one line for each tally.
``python -m pu_lib claims --record`` writes it; the tests and the command ``claims`` run the checks
again and compare. The words of a tally's worst comparison are for the pages and are not compared:
among rounding errors, the worst depends on the processor.
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
from pu_lib.claims.recorder import Check, Finding, Status
from pu_lib.claims.render import claim_html, claims_html, tally_row
from pu_lib.files import replace_file
from pu_lib.formatting import fill_placeholders, format_value, placeholders

__all__ = ["FINDINGS", "JudgedClaims", "Judgement", "confirm", "judge", "judge_wrong"]
__all__ += ["record", "recorded", "sentence_of"]

FINDINGS = "application/vnd.pu-lib.verdicts+json"
"""The media type of the findings in the output of an executed notebook."""

_RELATIVE, _ABSOLUTE = 1e-4, 1e-9
"""Tolerances between a recorded float and the one found. LAPACK and the functions of libm and NumPy
differ between processors by some 1e-16 of a value. Checks enlarge this: the training of a network
by PG-ES (tab:analysis/pg-es/deep) to 4e-5 of a margin, the runs with growing weights of thm:rates
to 4e-6, finite differences to 2e-6."""

_COUNTS = {"instances", "comparisons", "tests"}
"""Figures that count comparisons and instances, as opposed to measured results."""

_COUNTED = ("comparisons", "failures", "undecided", "attained", "least slack", "sharpness")
"""The numbers of a tally that must agree with the recorded numbers."""


@dataclass(frozen=True)
class Judgement:
    """A claim with its check and the finding of the check.

    Attributes
    ----------
    claim : Claim
        The claim.
    check : Check
        The check of the claim.
    finding : Finding
        The finding of the check.
    """

    claim: Claim
    check: Check
    finding: Finding

    @property
    def figures(self) -> dict[str, str]:
        """The formatted figures that the claim's sentence names.

        Raises a `ValueError` if the finding lacks a figure that the sentence names.
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
        """One sentence for each difference between the finding and the recorded finding."""
        return list(_differences(self))

    def row(self) -> dict[str, Any]:
        """Return the judgement as a dict for JSON, with None for an infinite margin."""
        claim = self.claim
        return {
            "id": claim.id,
            "number": claim.number,
            "kind": claim.kind,
            "scope": claim.scope.value,
            "severity": None if claim.severity is None else claim.severity.value,
            "section": claim.section,
            "chapter": claim.chapter,
            "status": self.finding.status.value,
            "margin": _finite(self.finding.margin),
            "seconds": round(self.finding.seconds, 3),
            "machine_checked": [proof.theorem for proof in proofs_of(claim.id)],
        }

    def record(self) -> dict[str, Any]:
        """Return the values to record as a dict for JSON, with None for an infinite margin."""
        return {
            "id": self.claim.id,
            "status": self.finding.status.value,
            "margin": _finite(self.finding.margin),
            "instances": self.finding.instances,
            "figures": self.figures,
            "inputs": dict(self.finding.inputs),
            "tallies": [tally_row(tally) for tally in self.finding.tallies],
        }

    @property
    def repeats_the_claim(self) -> bool:
        """Whether the sentence only restates a theorem of the book that holds.

        The page prints the theorem above the sentence, so that only measured figures are new.
        """
        is_true_theorem = self.claim.scope is Scope.BOOK and self.finding.status is Status.HOLDS
        return is_true_theorem and set(placeholders(self.claim.sentence)) <= _COUNTS

    def _repr_html_(self) -> str:
        return claim_html(self)


def _finite(margin: float | None) -> float | None:
    return margin if margin is not None and math.isfinite(margin) else None


def _differences(judgement: Judgement) -> Iterator[str]:
    claim = judgement.claim
    if judgement.finding.status != claim.status:
        yield f"recorded {claim.status.value!r}, but found {judgement.finding}"
    try:
        current = judgement.record()
    except ValueError as error:  # a figure of the sentence is missing
        yield str(error)
        return
    stored = recorded().get(claim.id)
    if stored is None:
        yield "nothing is recorded"
        return
    for name in ("status", "margin", "instances"):
        if not _alike(current[name], stored[name]):
            yield f"recorded {name} {stored[name]}, but found {current[name]}"
    if current["figures"] != stored["figures"]:
        yield f"recorded figures {stored['figures']}, but found {current['figures']}"
    for name in sorted(current["inputs"].keys() | stored["inputs"].keys()):
        before, now = stored["inputs"].get(name), current["inputs"].get(name)
        if not _alike(now, before):
            yield f"recorded inputs {name} = {before}, but tried {now}"
    old_tallies, new_tallies = ({_key(t): t for t in row["tallies"]} for row in (stored, current))
    for compared, printed in sorted(old_tallies.keys() ^ new_tallies.keys()):
        where = "not found" if (compared, printed) in old_tallies else "not recorded"
        yield f"the comparison '{compared}'{' as printed' if printed else ''} is {where}"
    for key in sorted(old_tallies.keys() & new_tallies.keys()):
        for name in _COUNTED:
            before, now = old_tallies[key][name], new_tallies[key][name]
            if not _alike(now, before):
                yield f"{key[0]}: recorded {name} {before}, but found {now}"


def _key(tally: Mapping[str, Any]) -> tuple[str, bool]:
    return f"{tally['quantity']} {tally['relation']} {tally['limit']}", tally["as printed"]


def _alike(current: Any, stored: Any) -> bool:
    """Return whether a found value equals a recorded value; floats are compared up to rounding."""
    if isinstance(current, list) and isinstance(stored, list):
        return len(current) == len(stored) and all(map(_alike, current, stored))
    if isinstance(current, int) and isinstance(stored, int):
        return current == stored
    if isinstance(current, int | float) and isinstance(stored, int | float):
        return math.isclose(current, stored, rel_tol=_RELATIVE, abs_tol=_ABSOLUTE)
    return bool(current == stored)


def _filled(claim: Claim, figures: Mapping[str, str]) -> str:
    """Return the claim's sentence with its figures, or its other texts if it has no sentence."""
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
        The claim with its check and the finding of the check.

    Raises
    ------
    ValueError
        If no claim has this name, or if several claims do.

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
    """Return the claim with the given name; raise a `ValueError` unless there is exactly one."""
    claims = _chosen(claim)
    if len(claims) > 1:
        names = ", ".join(known.id for known in claims)
        raise ValueError(f"claim: {claim!r} stands for several claims; name one of {names}.")
    return claims[0]


@dataclass(frozen=True)
class JudgedClaims:
    """Claims whose findings have the recorded status; notebooks display them as HTML.

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
    """Run the checks of claims and raise an error if a finding does not have the recorded status.

    Parameters
    ----------
    *claims : Claim or str
        Claims, their identifiers or numbers in the paper. The part of an identifier before the
        slash, such as ``thm:unlearn``, selects all parts of the statement.

    Returns
    -------
    JudgedClaims
        The claims with their findings. Notebooks display a badge and a sentence for each claim,
        with details that can be opened.

    Raises
    ------
    AssertionError
        If a finding does not have the recorded status.
    ValueError
        If no claim has a given name, or no name is given.

    Examples
    --------
    >>> judged = confirm("prop:non-monotonicity/example")
    >>> [(j.claim.number, j.finding.status.value) for j in judged.judgements]
    [('Proposition 1, proof', 'holds')]
    """
    if not claims:
        raise ValueError(
            "claims: expected at least one claim; `python -m pu_lib claims --list` lists them all."
        )
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
    """Return the claim with the given identifier, or all claims that `select` finds by name."""
    if isinstance(claim, Claim):
        return (claim,)
    claims = select([claim])
    return tuple(known for known in claims if known.id == claim) or claims


def judge_wrong(claim: Claim | str) -> dict[str, Finding]:
    """Run the check of a claim on its wrong variants and return a dict of findings by variant.

    If the claim holds, a variant is run up to its first failure, which refutes the variant.
    Raises an `AssertionError` if the finding for a variant has the recorded status.
    """
    claim = _one(claim)
    check, stop = check_of(claim), claim.status is Status.HOLDS
    findings = {wrong: check.run(wrong, stop_at_failure=stop) for wrong in check.wrong}
    if accepted := [wrong for wrong, finding in findings.items() if finding.status == claim.status]:
        raise AssertionError(f"{claim.id}: the check accepts what is wrong: {accepted}.")
    return findings


def _record_of(chapter: str) -> Any:
    return resources.files("pu_lib") / "chapters" / folder_of(chapter) / "recorded.json"


@cache
def recorded() -> dict[str, dict[str, Any]]:
    """Return the recorded findings by claim identifier, in the form of `Judgement.record`."""
    files = (path for path in map(_record_of, chapters()) if path.is_file())
    return {row["id"]: row for path in files for row in json.loads(path.read_text("utf-8"))}


def record(judgements: Iterable[Judgement]) -> None:
    """Write findings to ``recorded.json``; the lines of other claims are not changed."""
    judged = {judgement.claim: judgement.record() for judgement in judgements}
    rows = {**recorded(), **{claim.id: row for claim, row in judged.items()}}
    for chapter in dict.fromkeys(claim.chapter for claim in judged):
        records = [rows[c.id] for c in ledger() if c.chapter == chapter and c.id in rows]
        replace_file(_record_of(chapter), _as_lines(records))
    recorded.cache_clear()


def _as_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as JSON with one line for each claim and one for each tally."""
    claims = []
    for row in rows:
        head = _json({name: entry for name, entry in row.items() if name != "tallies"})
        tallies = ",\n  ".join(map(_json, row["tallies"]))
        claims.append(f'{head[:-1]}, "tallies": [\n  {tallies}]}}')
    return "[\n" + ",\n".join(claims) + "\n]\n"


def _json(row: Mapping[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False)
