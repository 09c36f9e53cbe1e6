"""Recomputes every number of one recorded run, and names what does not match."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from twinspan.analysis.chain import breaks_in
from twinspan.analysis.columnar.comparing import TOLERANCE
from twinspan.analysis.intervention_checks import InterventionSpans, intervention_checks
from twinspan.analysis.recorded import SPAN_ID, RecordedRun
from twinspan.analysis.replay import Orbits, Replayed, replay
from twinspan.collector.reckoning import graph_weights
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import TwinspanError


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


@dataclass(slots=True)
class Findings:
    """What was checked in one run.

    Attributes:
        checked: numbers that were recomputed.
        mismatches: those that do not fit.
    """

    checked: int = 0
    mismatches: list[Mismatch] = field(default_factory=list[Mismatch])

    def compare(self, span_id: str, what: str, recorded: object, recomputed: object) -> None:
        """Count a comparison, and note it if the two differ."""
        self.checked += 1
        if recorded != recomputed and not _close(recorded, recomputed):
            self.note(span_id, what, recorded, recomputed)

    def note(self, span_id: str, what: str, recorded: object, recomputed: object) -> None:
        """Note what does not fit."""
        self.mismatches.append(
            Mismatch(span_id=span_id, what=what, recorded=str(recorded), recomputed=str(recomputed))
        )


def _close(recorded: object, recomputed: object) -> bool:
    if isinstance(recorded, float | int) and isinstance(recomputed, float | int):
        return math.isclose(recorded, recomputed, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return False


def findings_of(run: RecordedRun, orbits: Orbits, intervened: InterventionSpans) -> Findings:
    """Recompute scores, weights, network score, monitor, decisions, interventions and chain.

    Args:
        run: the run.
        orbits: those of its probe sets.
        intervened: the spans of its interventions.
    """
    findings = Findings()
    _check_scores(run, orbits, findings)
    with suppress(TwinspanError):
        # Options or a graph that are none also stop the decisions, where this is told.
        _check_weights(run, findings)
    _check_decisions(run, orbits, findings)
    check_interventions(run, intervened, findings)
    for broken in breaks_in([run]):
        findings.note(f"decision {broken.audit_seq}", c.AUDIT_HASH, "recorded", broken.reason)
    return findings


def check_interventions(
    run: RecordedRun, intervened: InterventionSpans, findings: Findings
) -> None:
    """Compare what a run's interventions say with what their spans give."""
    for check in intervention_checks(run, intervened):
        findings.compare(*check)


# --- scores -------------------------------------------------------------------------------------


def _check_scores(run: RecordedRun, orbits: Orbits, findings: Findings) -> None:
    """delta, p and e of every probe set that has a score."""
    for record in run.probe_sets:
        if record.delta is None:
            continue
        span = f"{record.span.span_id:016x}"
        orbit = orbits.get((record.n_reference, record.distances))
        if orbit is None:
            samples = f"{record.n_reference} and {record.n_counterfactual} samples"
            findings.note(span, c.DIVERGENCE_DISTANCES, "other numbers", f"those of {samples}")
            continue
        findings.compare(span, c.EFFECT_VALUE, record.delta, orbit.delta)
        findings.compare(span, c.EFFECT_P_VALUE, record.p_value, orbit.p)
        findings.compare(span, c.EFFECT_E_VALUE, record.e_value, orbit.e)


# --- weights ------------------------------------------------------------------------------------


def _check_weights(run: RecordedRun, findings: Findings) -> None:
    options, dag = run.options, run.dag
    if not len(dag):
        return
    weights = graph_weights(dag, options)
    scaled, shares = weights.scaled, weights.shares
    for record in run.probe_sets:
        if record.node in shares:
            span = f"{record.span.span_id:016x}"
            findings.compare(span, c.NODE_WEIGHT, record.weight, scaled[record.node])
            findings.compare(span, c.NODE_WEIGHT_SHARE, record.share, shares[record.node])


# --- network score, monitor, decisions ------------------------------------------------------------


def _check_decisions(run: RecordedRun, orbits: Orbits, findings: Findings) -> None:
    for step in _decided_again(run, orbits, findings):
        told, span = step.recorded.told, step.recorded.span_id
        if step.recorded.missing:
            findings.note(span, c.NETWORK_PROBE_SETS, "named", f"{step.recorded.missing} missing")
        for what, again in _recomputed(step):
            findings.compare(span, what, told.get(what), again)


def _decided_again(run: RecordedRun, orbits: Orbits, findings: Findings) -> Sequence[Replayed]:
    try:
        return replay(run, orbits=orbits)
    except (TwinspanError, ArithmeticError, ValueError) as error:
        # What was altered is not even a number that control could have taken in.
        told = run.last_told
        findings.note(str(told.get(SPAN_ID, "")), "decisions", "taken", f"impossible: {error}")
        return ()


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
