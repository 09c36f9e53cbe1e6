"""Recomputes every number of recorded runs from their raw spans, and names what does not match.

Runs are checked many at a time; one in which anything does not fit, or that is out of the
ordinary, is checked once more by itself (`run_checks`), which names the span and the attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from twinspan.analysis.columnar.brief import brief_runs
from twinspan.analysis.columnar.comparing import compare
from twinspan.analysis.columnar.reckoning import reckon
from twinspan.analysis.columnar.spans import RunBatch, run_batches
from twinspan.analysis.garbage import garbage_kept
from twinspan.analysis.intervention_checks import InterventionSpans
from twinspan.analysis.replay import with_orbits
from twinspan.analysis.risks import risk_checks
from twinspan.analysis.run_checks import Findings, Mismatch, check_interventions, findings_of
from twinspan.analysis.store import Store

Verdict = Literal["verified", "incomplete", "mismatch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """What became of one run.

    Attributes:
        run_id: the run.
        verdict: `mismatch` if a number does not fit or the chain is broken, else `incomplete` if
            spans are missing, else `verified`.
        checked: numbers that were recomputed.
        mismatches: those that do not fit.
        reasons: why it is incomplete.
        notes: what is odd and changes nothing: a span that is recorded twice, alike.
    """

    run_id: str
    verdict: Verdict
    checked: int
    mismatches: tuple[Mismatch, ...]
    reasons: tuple[str, ...]
    notes: tuple[str, ...] = ()


def verify(store: Store, run_id: str | None = None) -> list[Verification]:
    """Recompute scores, weights, network score, monitor, decisions, interventions, risks and chain.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
    """
    with garbage_kept():
        return _verified(store, run_id)


def _verified(store: Store, run_id: str | None) -> list[Verification]:
    # Asked first: the runs are read while they are checked.
    risks, holes = list(risk_checks(store, run_id)), _holes(store)
    by_run = _findings(store, run_id)
    for risk in risks:
        if risk.run_id in by_run:
            by_run[risk.run_id].compare(*risk[1:])
    notes = _note_repeated(store, by_run)
    known = [*by_run, *(each for each in holes if each not in by_run)]
    return [
        _verification(each, by_run.get(each, Findings()), holes.get(each, ()), notes.get(each, ()))
        for each in known
        if run_id is None or each == run_id
    ]


def _findings(store: Store, run_id: str | None) -> dict[str, Findings]:
    """What was found in every run that has a root span, in the order of their beginning."""
    found: list[tuple[int, str, Findings]] = []
    for batch in run_batches(store, run_id):
        found += _checked(batch)
    return {run: findings for _, run, findings in sorted(found, key=lambda each: each[:2])}


def _checked(batch: RunBatch) -> Iterator[tuple[int, str, Findings]]:
    """When each run of a batch that has a root began, its id, and what was found in it."""
    reckoned = reckon(batch)
    fits, checked = compare(reckoned)
    found = {
        run: Findings(checked=int(count))
        for run, fit, count in zip(batch.run_ids, fits.tolist(), checked.tolist(), strict=True)
        if fit
    }
    alone = batch.of([place for place, fit in enumerate(fits.tolist()) if not fit])
    intervened = InterventionSpans.of(alone)
    for run, orbits in with_orbits(run for run in alone.recorded() if run.told):
        found[run.run_id] = findings_of(run, orbits, intervened)
    for run_id, span_id, name in alone.placeless():
        if run_id in found:
            found[run_id].note(span_id, name, "missing", "named")
    repaired = [place for place in batch.runs_with("intervention") if fits[place]]
    intervened = InterventionSpans.of(batch) if repaired else intervened
    for run in brief_runs(reckoned, repaired) if repaired else ():
        check_interventions(run, intervened, found[run.run_id])
    for run_id, started in zip(batch.run_ids, reckoned.roots.started.tolist(), strict=True):
        if run_id in found:
            yield started, run_id, found[run_id]


def _note_repeated(
    store: Store, by_run: Mapping[str, Findings]
) -> dict[str | None, tuple[str, ...]]:
    """Spans that are there twice: copies that differ do not fit, equal ones are only told."""
    notes: dict[str | None, tuple[str, ...]] = {}
    for span in store.repeated():
        findings = by_run.get(str(span.run_id))
        if not span.alike and findings is not None:
            findings.note(span.span_id, "span", f"{span.copies} that differ", "one")
        told = f"span {span.span_id} is recorded {span.copies} times"
        notes[span.run_id] = (*notes.get(span.run_id, ()), f"{told} and counts once")
    return notes


_GAPS = """
WITH numbered AS (
    SELECT run_id, audit_writer, audit_seq,
           lag(audit_seq, 1, -1) OVER (
               PARTITION BY run_id, audit_writer ORDER BY audit_seq) AS before
    FROM spans
    WHERE audit_seq IS NOT NULL AND list_contains(?, run_id)
)
SELECT run_id, string_agg(
           CASE WHEN audit_seq = before + 2 THEN (before + 1)::VARCHAR
                ELSE (before + 1) || '-' || (audit_seq - 1) END, ', ' ORDER BY audit_seq)
FROM numbered
WHERE audit_seq > before + 1
GROUP BY run_id
"""
"""Numbers between spans that are there: which ones are missing."""


def _holes(store: Store) -> dict[str, tuple[str, ...]]:
    rows = store.table("SELECT run_id, completeness, incomplete_reason FROM completeness").rows
    broken = [str(run) for run, state, _ in rows if state != "complete"]
    gaps = {run: told for run, told in store.table(_GAPS, [broken]).rows} if broken else {}
    return {
        str(run): () if state == "complete" else _reasons(reason, gaps.get(run))
        for run, state, reason in rows
    }


def _reasons(reason: object, gaps: object) -> tuple[str, ...]:
    told = (str(reason or "incomplete"),)
    return told if gaps is None else (*told, f"the numbers that are missing: {gaps}")


def _verification(
    run_id: str,
    findings: Findings,
    reasons: tuple[str, ...],
    notes: tuple[str, ...],
) -> Verification:
    verdict: Verdict = "verified"
    if reasons:
        verdict = "incomplete"
    if findings.mismatches:
        verdict = "mismatch"
    return Verification(
        run_id=run_id,
        verdict=verdict,
        checked=findings.checked,
        mismatches=tuple(findings.mismatches),
        reasons=reasons,
        notes=notes,
    )
