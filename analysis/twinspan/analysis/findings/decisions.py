"""Decisions of the breaker that warn of something or stop a payload."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from math import isfinite
from typing import Any, Final, NamedTuple

from twinspan.analysis.findings.paths import Ways
from twinspan.analysis.findings.records import Finding, Kind, Level
from twinspan.analysis.findings.wording import arms, interval, named, product, short
from twinspan.analysis.json_values import finite_row
from twinspan.analysis.store import Store
from twinspan.analysis.trail_records import HALTING, Breach, Contribution, Decision, RunTrail

Row = Mapping[str, Any]

_TOLD_OF_DECISIONS = """
SELECT span_id, trace_id, start_time, node, axis, threshold_enter, threshold_exit, margin,
       monitor_threshold, trigger
FROM decisions
"""


def decisions(store: Store, runs: Sequence[RunTrail], *, everything: bool) -> Iterator[Finding]:
    """The decisions that are findings: every one but proceed.

    Args:
        store: opened spans.
        runs: the trails of the runs that count.
        everything: also those to proceed.
    """
    told = {str(row["span_id"]): finite_row(row) for row in store.table(_TOLD_OF_DECISIONS).dicts()}
    ways = Ways(store, [run.run_id for run in runs if run.breaches])
    for run in runs:
        breaches = {breach.decision.span_id: breach for breach in run.breaches}
        for decision in run.decisions:
            if everything or decision.decision != "proceed":
                breach = breaches.get(decision.span_id) or _judged_again(decision, run.breaches)
                yield _decided(_Case(run, decision, breach, told[decision.span_id]), ways)


class _Case(NamedTuple):
    """A decision, with the breach that it belongs to."""

    run: RunTrail
    decision: Decision
    breach: Breach | None
    told: Row


def _judged_again(decision: Decision, breaches: Sequence[Breach]) -> Breach | None:
    """The breach whose repair a decision judges."""
    if decision.decision not in HALTING or decision.intervention_id is None:
        return None
    return next((each for each in breaches if decision in each.rechecks), None)


def _decided(case: _Case, ways: Ways) -> Finding:
    run, decision, breach, told = case
    worst = _worst(breach)
    node = told["node"] or (breach.node if breach else None)
    edges = decision.edges or (breach.edges if breach else ())
    kind: Kind = "pass" if decision.decision == "proceed" else "fail"
    return Finding(
        rule=f"breaker/{decision.decision}",
        level=_decision_level(decision),
        kind=kind,
        text=_decision_text(decision, node, edges, worst),
        run_id=run.run_id,
        graph=run.graph,
        nodes=named(node),
        axis=told["axis"] or (breach.axis if breach else None),
        edges=edges,
        impact=product(worst.weight, worst.delta) if worst else None,
        trace_id=told["trace_id"],
        span_id=decision.span_id,
        at=told["start_time"],
        paths=ways.to(run.run_id, edges, decision.audit_seq) if breach else (),
        numbers={**_decision_numbers(decision, told), **_cause_numbers(worst, ways)},
    )


def _decision_level(decision: Decision) -> Level:
    if decision.decision == "proceed":
        return "none"
    return "warning" if decision.decision == "warn" else "error"


def _worst(breach: Breach | None) -> Contribution | None:
    """The contribution that a breach is about: its own node and axis, else the largest impact."""
    if breach is None:
        return None
    named = [
        each
        for each in breach.contributions
        if (each.node, each.axis) == (breach.node, breach.axis)
    ]
    found = next(iter([*named, *breach.contributions]), None)
    return None if found is None else Contribution(**finite_row(asdict(found)))


_DID: Final = {
    "halt": "halted the payload",
    "reroute": "rerouted the payload",
    "escalate": "escalated to a person",
    "warn": "warned of a drift",
    "proceed": "let the payload pass",
}


def _decision_text(
    decision: Decision, node: str | None, edges: Sequence[str], worst: Contribution | None
) -> str:
    """What was decided, where and why; what is unknown is left out."""
    did = _DID.get(decision.decision, decision.decision)
    parts = [
        "The breaker",
        "would have (shadow mode)" if decision.enforced is False else "",
        did,
        f"of node '{node}'" if node else "",
        f"at {', '.join(edges)}" if edges else "",
        "after a repair" if decision.intervention_id else "",
        f"in superstep {decision.superstep}" if decision.superstep is not None else "",
    ]
    text = " ".join(part for part in parts if part)
    reason = f": {decision.reason.replace('_', ' ')}" if decision.reason else ""
    numbers = ", ".join(
        f"{name} {short(value)}"
        for name, value in (("B_fast", decision.b_fast), ("M", decision.monitor))
        if value is not None and isfinite(value)
    )
    return text + reason + (f" ({numbers})" if numbers else "") + "." + _cause_text(worst)


def _cause_text(worst: Contribution | None) -> str:
    if worst is None or worst.delta is None:
        return ""
    swapped = f" under {', '.join(worst.perturbations)}" if worst.perturbations else ""
    weighed = "" if worst.weight is None else f", blast radius {short(worst.weight)}"
    return f" Cause: '{worst.node}' on {worst.axis}{swapped}, delta {short(worst.delta)}{weighed}."


def _decision_numbers(decision: Decision, told: Row) -> dict[str, object]:
    return {
        "decision": decision.decision,
        "reason": decision.reason,
        "stateFrom": decision.state_from,
        "stateTo": decision.state_to,
        "enforced": decision.enforced,
        "superstep": decision.superstep,
        "scope": decision.scope or None,
        "auditSeq": decision.audit_seq,
        "bFast": decision.b_fast,
        "bSlow": decision.b_slow,
        "monitor": decision.monitor,
        "monitorThreshold": told["monitor_threshold"],
        "tauEnter": told["threshold_enter"],
        "tauExit": told["threshold_exit"],
        "margin": told["margin"],
        "trigger": told["trigger"],
        "edges": list(decision.edges) or None,
        "interventionId": decision.intervention_id,
    }


def _cause_numbers(worst: Contribution | None, ways: Ways) -> dict[str, object]:
    if worst is None:
        return {}
    row = ways.scores.by_span.get(worst.span_id, {})
    return {
        "node": worst.node,
        "axis": worst.axis,
        "delta": worst.delta,
        "interval": interval(worst.ci_low, worst.ci_high),
        "p": worst.p_value,
        "e": worst.e_value,
        "n": arms(row.get("reference_count"), row.get("counterfactual_count")),
        "estimator": row.get("estimator"),
        "weight": worst.weight,
        "impact": product(worst.weight, worst.delta),
        "perturbations": list(worst.perturbations) or None,
        "targets": list(worst.targets) or None,
        "probeSetSpanId": worst.span_id,
    }
