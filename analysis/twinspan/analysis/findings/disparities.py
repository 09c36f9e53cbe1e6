"""Disparities of an audit above its floor, and outcomes that its gate holds out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from twinspan.analysis.audit_gate import GateRow, gate_rows, outcome_rules
from twinspan.analysis.findings.records import Finding, Kind
from twinspan.analysis.findings.wording import interval, named, short
from twinspan.analysis.flip_family import NAMES
from twinspan.analysis.flip_judgement import Judgement
from twinspan.analysis.flip_rows import FlipReport, FlipRow
from twinspan.analysis.flip_verdicts import MEANINGS
from twinspan.analysis.flips import flip_report
from twinspan.analysis.gate_options import GateOptions
from twinspan.analysis.store import Store
from twinspan.instrumentation.audit.analysis_options import AnalysisOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditQuestion:
    """What is asked of audited runs.

    Attributes:
        reference: the condition that others are compared with; the recorded one if None.
        analysis: level and adjustment of the tests.
        judgement: bands and contrasts that disparities are judged by as well.
        gate: thresholds that outcomes are held against; None to hold none out.
    """

    reference: str | None = None
    analysis: AnalysisOptions = field(default_factory=AnalysisOptions)
    judgement: Judgement | None = None
    gate: GateOptions | None = None


_KINDS: Final[Mapping[str, Kind]] = {"above_floor": "fail", "inconclusive": "open"}
"""What is a finding and what could not be told; every other comparison passes."""


def audit_answer(store: Store, question: AuditQuestion) -> FlipReport:
    """The comparisons of a store's audits.

    Raises:
        ConfigurationError: the reference is none of the conditions.
    """
    return flip_report(
        store,
        reference=question.reference,
        alpha=question.analysis.alpha,
        judgement=question.judgement,
        procedure=question.analysis.adjust,
    )


def disparities(
    store: Store, question: AuditQuestion, answer: FlipReport, *, everything: bool
) -> Iterator[Finding]:
    """Comparisons above the floor, and outcomes that the gate holds out.

    Args:
        store: opened spans.
        question: what was asked.
        answer: what `audit_answer` found.
        everything: also comparisons that are none, those of which nothing can be said, and
            outcomes that the gate lets pass.
    """
    if not answer.rows:
        return
    audit = _audit_name(store)
    steps = {rule.name: rule.step for rule in outcome_rules(store)}
    for row in answer.rows:
        if row.is_finding or (everything and not row.is_control):
            yield _disparity(row, audit, steps.get(row.action))
    if question.gate is None:
        return
    for held in gate_rows(store, question.gate, reference=question.reference):
        if everything or not held.decision.eligible:
            yield _held_out(held, audit, steps.get(held.action))


def _audit_name(store: Store) -> str:
    names = store.table("SELECT DISTINCT name FROM audits ORDER BY name").column("name")
    return str(names[0]) if len(names) == 1 and names[0] is not None else "audit"


def _disparity(row: FlipRow, audit: str, step: str | None) -> Finding:
    kind: Kind = _KINDS.get(row.verdict, "pass")
    return Finding(
        rule=f"disparity/{row.axis or row.condition}",
        level="error" if kind == "fail" else "none",
        kind=kind,
        text=_text(row),
        graph=audit,
        nodes=named(step),
        axis=row.axis,
        subject=_subject(row.model, row.arm, row.action, row.condition),
        numbers=_numbers(row),
    )


def _subject(*parts: str | None) -> tuple[str, ...]:
    return tuple(part or "" for part in parts)


def _text(row: FlipRow) -> str:
    who = f" of '{row.model}'" if row.model else ""
    where = f"'{row.condition}' against '{row.reference}' on outcome '{row.action}'{who}"
    why = MEANINGS.get(row.reason, row.reason.replace("_", " "))
    if row.flip_rate is None or row.floor is None:
        return f"Nothing can be said of {where}: {why}."
    told = f"{where[0]}{where[1:]} is {row.verdict.replace('_', ' ')}: {why}"
    measured = f"answers differ in {row.flip_rate:.1%} of comparisons, among repeated runs in "
    measured += f"{row.floor:.1%}"
    return f"{told}; {measured}{_tested(row)}."


def _tested(row: FlipRow) -> str:
    if row.p_adjusted is None or row.adjusted_by is None:
        return ""
    family = "1 comparison" if row.n_tests == 1 else f"{row.n_tests} comparisons"
    told = f", p {short(row.p_adjusted)} by {NAMES[row.adjusted_by]} over {family}"
    if row.p_controls is None:
        return told
    return f"{told}, p {short(row.p_controls)} against the control '{row.hardest_control}'"


def _numbers(row: FlipRow) -> dict[str, object]:
    return {
        "condition": row.condition,
        "reference": row.reference,
        "outcome": row.action,
        "model": row.model,
        "arm": row.arm,
        "axis": row.axis,
        "verdict": row.verdict,
        "reason": row.reason,
        "flips": row.flips,
        "comparisons": row.cells,
        "cases": row.cases,
        "n": {"reference": row.runs_reference, "counterfactual": row.runs},
        "missing": {"reference": row.missing_reference, "counterfactual": row.missing},
        "flipRate": row.flip_rate,
        "floor": row.floor,
        "excess": row.excess,
        "interval": interval(row.ci_low, row.ci_high),
        "shift": row.shift,
        "p": row.p_value,
        "e": row.e_value,
        "pAdjusted": row.p_adjusted,
        "adjustedBy": row.adjusted_by,
        "tests": row.n_tests,
        "pSmallest": row.p_smallest,
        "pControls": row.p_controls,
        "hardestControl": row.hardest_control,
        "withinBandRate": row.wcfr,
        "groundTruth": row.ground_truth,
        "family": row.family,
    }


def _held_out(row: GateRow, audit: str, step: str | None) -> Finding:
    decision = row.decision
    who = f" of '{row.model}'" if row.model else ""
    told = "may be ranked" if decision.eligible else "is held out of a ranking"
    detail = f" ({decision.detail})" if decision.detail else ""
    return Finding(
        rule=f"gate/{decision.reason}",
        level="none" if decision.eligible else "warning",
        kind="pass" if decision.eligible else "fail",
        text=f"Outcome '{row.action}'{who} {told}: {decision.reason.replace('_', ' ')}{detail}.",
        graph=audit,
        nodes=named(step),
        subject=_subject(row.model, row.action),
        numbers={
            "outcome": row.action,
            "model": row.model,
            "reason": decision.reason,
            "withinBandRate": decision.wcfr,
            "pairsInBand": row.rate.n_in_band,
            "pairsThatCouldFlip": row.rate.n_band_straddling,
            "groundTruth": row.rate.ground_truth,
            "capability": row.capability,
            "entropyBits": row.entropy,
            "floor": row.floor,
        },
    )
