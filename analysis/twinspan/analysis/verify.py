"""Recomputes every number of a recorded run from its raw spans, and names what does not match."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np

from twinspan.analysis.chain import broken_links
from twinspan.analysis.intervention_checks import InterventionSpans, intervention_checks
from twinspan.analysis.recorded import RecordedRun, recorded_runs
from twinspan.analysis.replay import Replayed, replay
from twinspan.analysis.risks import risk_checks
from twinspan.analysis.store import Store
from twinspan.collector.records import ProbeRecord
from twinspan.collector.weights import dependency_weights
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.orbit import orbit_test_triangles

TOLERANCE: Final = 1e-9
"""Relative and absolute: recorded numbers are doubles, but sums may be taken in another order."""

Verdict = Literal["verified", "incomplete", "mismatch"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mismatch:
    """A number that the raw spans do not give.

    Attributes:
        span_id: the span that says it.
        what: the attribute.
        recorded: what the span says.
        recomputed: what the raw spans give.
    """

    span_id: str
    what: str
    recorded: str
    recomputed: str


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
    runs = recorded_runs(store, run_id)
    by_run = {run.run_id: _Findings() for run in runs}
    intervened = InterventionSpans.of(store, run_id)
    _check_scores([record for run in runs for record in run.probe_sets], by_run)
    for run in runs:
        _check_weights(run, by_run[run.run_id])
        _check_decisions(run, by_run[run.run_id])
        for check in intervention_checks(run, intervened):
            by_run[run.run_id].compare(*check)
    for broken in broken_links(store, run_id):
        if broken.run_id in by_run:
            by_run[broken.run_id].note(
                f"decision {broken.audit_seq}", c.AUDIT_HASH, "recorded", broken.reason
            )
    for risk in risk_checks(store, run_id):
        if risk.run_id in by_run:
            by_run[risk.run_id].compare(*risk[1:])
    notes = _note_repeated(store, by_run)
    holes = _holes(store)
    known = [*by_run, *(each for each in holes if each not in by_run)]
    return [
        _verification(each, by_run.get(each, _Findings()), holes.get(each, ()), notes.get(each, ()))
        for each in known
        if run_id is None or each == run_id
    ]


class _Findings:
    """What was checked in one run."""

    def __init__(self) -> None:
        self.checked = 0
        self.mismatches: list[Mismatch] = []

    def compare(self, span_id: str, what: str, recorded: object, recomputed: object) -> None:
        self.checked += 1
        if not _equal(recorded, recomputed):
            self.note(span_id, what, recorded, recomputed)

    def note(self, span_id: str, what: str, recorded: object, recomputed: object) -> None:
        self.mismatches.append(
            Mismatch(span_id=span_id, what=what, recorded=str(recorded), recomputed=str(recomputed))
        )


def _equal(recorded: object, recomputed: object) -> bool:
    if isinstance(recorded, float | int) and isinstance(recomputed, float | int):
        return math.isclose(recorded, recomputed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return recorded == recomputed


def _note_repeated(
    store: Store, by_run: Mapping[str, _Findings]
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
    rows = store.table("SELECT run_id, completeness, incomplete_reason FROM runs").rows
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
    findings: _Findings,
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


# --- scores -------------------------------------------------------------------------------------


def _check_scores(records: Sequence[ProbeRecord], by_run: Mapping[str, _Findings]) -> None:
    """delta, p and e of all probe sets, those of one shape at a time."""
    shapes: dict[tuple[int, int], list[ProbeRecord]] = defaultdict(list)
    for record in records:
        if record.delta is not None and record.distances:
            shapes[record.n_reference, record.n_counterfactual].append(record)
    for (n_reference, _), alike in shapes.items():
        orbit = orbit_test_triangles(np.array([r.distances for r in alike]), n_reference)
        for place, record in enumerate(alike):
            findings, span = by_run[record.run_id], f"{record.span.span_id:016x}"
            findings.compare(span, c.EFFECT_VALUE, record.delta, float(orbit.delta[place]))
            findings.compare(span, c.EFFECT_P_VALUE, record.p_value, float(orbit.p[place]))
            findings.compare(span, c.EFFECT_E_VALUE, record.e_value, float(orbit.e[place]))


# --- weights ------------------------------------------------------------------------------------


def _check_weights(run: RecordedRun, findings: _Findings) -> None:
    options, dag = run.options, run.dag
    if not len(dag):
        return
    weights = dependency_weights(dag, options.weights, options.attenuation)
    for record in run.probe_sets:
        if record.node in weights:
            span = f"{record.span.span_id:016x}"
            findings.compare(span, c.NODE_WEIGHT, record.weight, weights.scaled[record.node])
            findings.compare(span, c.NODE_WEIGHT_SHARE, record.share, weights[record.node])


# --- network score, monitor, decisions ------------------------------------------------------------


def _check_decisions(run: RecordedRun, findings: _Findings) -> None:
    for step in replay(run):
        told, span = step.recorded.told, step.recorded.span_id
        if step.recorded.missing:
            findings.note(span, c.NETWORK_PROBE_SETS, "named", f"{step.recorded.missing} missing")
        for what, again in _recomputed(step):
            findings.compare(span, what, told.get(what), again)


def _recomputed(step: Replayed) -> Iterator[tuple[str, object]]:
    decision = step.decision
    yield c.NETWORK_STEP, step.step
    yield c.NETWORK_SCORE_FAST, decision.b_fast
    yield c.NETWORK_SCORE_SLOW, decision.b_slow
    yield c.NETWORK_SCORE_RAW, step.raw_fast if step.step else None
    yield c.NETWORK_OBSERVED_WEIGHT, step.observed
    yield c.MONITOR_VALUE, decision.monitor
    yield c.MONITOR_THRESHOLD, decision.monitor_limit
    yield c.MONITOR_SPARSE, step.monitor_sparse
    if step.path_ranks is not None:
        yield c.PATH_RANKS, list(step.path_ranks)
        yield c.PATH_FIRED, list(step.path_fired or ())
    yield c.BREAKER_STATE_FROM, decision.state_from.value
    yield c.BREAKER_STATE_TO, decision.state_to.value
    yield c.BREAKER_DECISION, decision.decision.value
    yield c.BREAKER_REASON, decision.reason.value
    yield c.BREAKER_ENFORCED, decision.enforced
