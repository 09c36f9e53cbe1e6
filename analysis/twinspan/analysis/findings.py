"""What a record has to say against its agents: reactions, breaches, interventions.

A finding is one span that somebody has to look at. Scores within the floor, decisions to proceed
and probe sets without a score are none; they are listed on request, as what was looked at.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from twinspan.analysis.flow import Flow, flow_of, heaviest_path
from twinspan.analysis.store import Store
from twinspan.analysis.trail import AuditTrail
from twinspan.analysis.trail_records import HALTING, Breach, Contribution, Decision, RunTrail
from twinspan.instrumentation.conventions import split_edge

Level = Literal["error", "warning", "note", "none"]
Kind = Literal["fail", "pass", "open"]
Row = Mapping[str, Any]

UNCORRECTED_LEVEL: Final = 0.05
"""Where a probe set carries no label of its own, p at most this and delta > 0 is a reaction."""

ABOVE_FLOOR: Final = (
    "coalesce(label = 'above_floor', "
    f"p_value <= {UNCORRECTED_LEVEL} AND delta > 0 AND isfinite(delta), false)"
)
"""Condition on `probe_sets`: the node reacts."""

_SEVERITY: Final[Mapping[Level, int]] = {"error": 0, "warning": 1, "note": 2, "none": 3}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A node on the way of a biased payload.

    Attributes:
        node: the node.
        contribution: what was measured on it in the run so far; None where nothing was.
        is_cut: it is the consumer whose edge was cut.
    """

    node: str
    contribution: Contribution | None
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing to look at.

    Attributes:
        rule: `bias/AXIS`, `breaker/ACTION` or `intervention/STRATEGY`.
        level: error, warning or note; none for what is only listed.
        kind: fail for a finding; pass or open for what is only listed.
        text: the finding in words.
        run_id: the run.
        graph: name of its graph.
        nodes: the nodes that it is about.
        axis: the axis, where there is one.
        edges: the edges that were cut, or that a repair goes along.
        impact: w * delta, which orders findings; None where it is unknown.
        trace_id: the trace.
        span_id: the span that says so.
        at: when, as recorded.
        paths: for each cut edge, the way the bias took to it.
        numbers: everything measured, absent where it is not known.
    """

    rule: str
    level: Level
    kind: Kind
    text: str
    run_id: str
    graph: str | None
    nodes: tuple[str, ...]
    axis: str | None
    edges: tuple[str, ...]
    impact: float | None
    trace_id: str | None
    span_id: str
    at: object
    paths: tuple[tuple[Step, ...], ...]
    numbers: Mapping[str, object]


def findings(
    store: Store, *, run_id: str | None = None, everything: bool = False
) -> tuple[Finding, ...]:
    """The findings of a store, the gravest first, among equals the largest impact first.

    Args:
        store: opened spans.
        run_id: one run; all of them if None.
        everything: also list what is no finding.

    Raises:
        SourceError: if there is no such run.
    """
    trail = AuditTrail(store)
    runs = trail.runs() if run_id is None else (trail.run(run_id),)
    graphs = {run.run_id: run.graph for run in runs}
    found = [
        *_reactions(store, graphs, everything=everything),
        *_decisions(store, runs, everything=everything),
        *_interventions(store, graphs),
    ]
    return tuple(sorted(found, key=_gravity))


def _gravity(finding: Finding) -> tuple[int, bool, float]:
    impact = finding.impact
    return _SEVERITY[finding.level], impact is None, -(impact or 0.0)


# --- reactions ------------------------------------------------------------------------------------

_SETS = f"""
SELECT run_id, node, axis, superstep, weight, estimator, outcome, delta, ci_low, ci_high, ci_level,
       p_value, e_value, effect_size, reference_count, counterfactual_count, floor, cross_mean,
       undefined_reason, wording, label, intervention_id, audit_seq, start_time, trace_id, span_id,
       {ABOVE_FLOOR} AS reacts
FROM probe_sets
"""


def _reactions(
    store: Store, graphs: Mapping[str, str | None], *, everything: bool
) -> Iterator[Finding]:
    where = "" if everything else f"WHERE {ABOVE_FLOOR}"
    for row in store.table(f"{_SETS} {where} ORDER BY run_id, audit_seq").dicts():
        if row["run_id"] in graphs:
            yield _reaction(row, graphs)


def _reaction(row: Row, graphs: Mapping[str, str | None]) -> Finding:
    kind: Kind = "fail" if row["reacts"] else "open" if row["delta"] is None else "pass"
    return Finding(
        rule=f"bias/{row['axis'] or 'unnamed'}",
        level="warning" if kind == "fail" else "none",
        kind=kind,
        text=_reaction_text(row),
        run_id=str(row["run_id"]),
        graph=graphs[str(row["run_id"])],
        nodes=_named(row["node"]),
        axis=row["axis"],
        edges=(),
        impact=_product(row["weight"], row["delta"]),
        trace_id=row["trace_id"],
        span_id=str(row["span_id"]),
        at=row["start_time"],
        paths=(),
        numbers=_score_numbers(row),
    )


def _reaction_text(row: Row) -> str:
    where = f"node '{row['node']}' on {row['axis']}"
    counts = [_or_unknown(row[f"{arm}_count"]) for arm in ("reference", "counterfactual")]
    arms = " runs against ".join(counts)
    again = " after the repair" if row["intervention_id"] else ""
    if row["delta"] is None:
        reason = str(row["undefined_reason"] or row["outcome"] or "no score").replace("_", " ")
        return f"No score for {where}{again}: {reason}."
    told = "reacts to the swap" if row["reacts"] else "shows no reaction beyond its own noise"
    return (
        f"{where[0].upper()}{where[1:]} {told}{again}: {_measured(row)}, {arms}"
        f"{_suffix(', blast radius ', row['weight'])}."
    )


def _measured(row: Row) -> str:
    interval = ""
    if row["ci_low"] is not None and row["ci_high"] is not None:
        interval = f" ({_short(row['ci_low'])} to {_short(row['ci_high'])})"
    parts = [f"excess disagreement delta {_short(row['delta'])}{interval}"]
    parts += [f"p {_short(row['p_value'])}"] if row["p_value"] is not None else []
    parts += [f"e {_short(row['e_value'])}"] if row["e_value"] is not None else []
    return ", ".join(parts)


def _score_numbers(row: Row) -> dict[str, object]:
    return {
        "delta": row["delta"],
        "interval": _interval(row["ci_low"], row["ci_high"]),
        "intervalLevel": row["ci_level"],
        "p": row["p_value"],
        "e": row["e_value"],
        "n": _arms(row["reference_count"], row["counterfactual_count"]),
        "estimator": row["estimator"],
        "effectSize": row["effect_size"],
        "floor": row["floor"],
        "cross": row["cross_mean"],
        "weight": row["weight"],
        "impact": _product(row["weight"], row["delta"]),
        "wording": row["wording"],
        "undefinedReason": row["undefined_reason"],
        "superstep": row["superstep"],
        "interventionId": row["intervention_id"],
    }


# --- decisions ------------------------------------------------------------------------------------

_TOLD_OF_DECISIONS = """
SELECT span_id, trace_id, start_time, node, axis, threshold_enter, threshold_exit, margin,
       monitor_threshold, trigger
FROM decisions
"""


def _decisions(store: Store, runs: Sequence[RunTrail], *, everything: bool) -> Iterator[Finding]:
    told = {str(row["span_id"]): row for row in store.table(_TOLD_OF_DECISIONS).dicts()}
    flows = _Flows(store, [run.run_id for run in runs if run.breaches])
    sets = _Scores(store, [run.run_id for run in runs if run.breaches])
    for run in runs:
        breaches = {breach.decision.span_id: breach for breach in run.breaches}
        for decision in run.decisions:
            if everything or decision.decision != "proceed":
                breach = breaches.get(decision.span_id) or _judged_again(decision, run.breaches)
                yield _decided(run, decision, breach, told[decision.span_id], flows, sets)


def _judged_again(decision: Decision, breaches: Sequence[Breach]) -> Breach | None:
    """The breach whose repair a decision judges."""
    if decision.decision not in HALTING or decision.intervention_id is None:
        return None
    return next((each for each in breaches if decision in each.rechecks), None)


def _decided(
    run: RunTrail,
    decision: Decision,
    breach: Breach | None,
    told: Row,
    flows: _Flows,
    sets: _Scores,
) -> Finding:
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
        nodes=_named(node),
        axis=told["axis"] or (breach.axis if breach else None),
        edges=edges,
        impact=_product(worst.weight, worst.delta) if worst else None,
        trace_id=told["trace_id"],
        span_id=decision.span_id,
        at=told["start_time"],
        paths=_paths(run.run_id, edges, flows, sets, decision) if breach else (),
        numbers={**_decision_numbers(decision, told), **_cause_numbers(worst, sets)},
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
    return next(iter([*named, *breach.contributions]), None)


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
        f"{name} {_short(value)}"
        for name, value in (("B_fast", decision.b_fast), ("M", decision.monitor))
        if value is not None
    )
    return text + reason + (f" ({numbers})" if numbers else "") + "." + _cause_text(worst)


def _cause_text(worst: Contribution | None) -> str:
    if worst is None or worst.delta is None:
        return ""
    swapped = f" under {', '.join(worst.perturbations)}" if worst.perturbations else ""
    weighed = "" if worst.weight is None else f", blast radius {_short(worst.weight)}"
    return f" Cause: '{worst.node}' on {worst.axis}{swapped}, delta {_short(worst.delta)}{weighed}."


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


def _cause_numbers(worst: Contribution | None, sets: _Scores) -> dict[str, object]:
    if worst is None:
        return {}
    row = sets.by_span.get(worst.span_id, {})
    return {
        "node": worst.node,
        "axis": worst.axis,
        "delta": worst.delta,
        "interval": _interval(worst.ci_low, worst.ci_high),
        "p": worst.p_value,
        "e": worst.e_value,
        "n": _arms(row.get("reference_count"), row.get("counterfactual_count")),
        "estimator": row.get("estimator"),
        "weight": worst.weight,
        "impact": _product(worst.weight, worst.delta),
        "perturbations": list(worst.perturbations) or None,
        "targets": list(worst.targets) or None,
        "probeSetSpanId": worst.span_id,
    }


# --- the way of a biased payload ------------------------------------------------------------------


class _Flows:
    """Each run's graph, loops set aside, made when it is asked for."""

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self._nodes: dict[str, list[str]] = {}
        self._edges: dict[str, list[tuple[str, str]]] = {}
        self._made: dict[str, Flow] = {}
        if not runs:
            return
        for run, node in store.table(
            "SELECT run_id, node FROM nodes WHERE run_id IN (SELECT unnest(?)) "
            "GROUP BY ALL ORDER BY min(start_unix_nano), min(audit_seq)",
            [list(runs)],
        ).rows:
            self._nodes.setdefault(str(run), []).append(str(node))
        for run, source, target in store.table(
            "SELECT run_id, source, target FROM edges WHERE run_id IN (SELECT unnest(?)) "
            "ORDER BY last_audit_seq, source, target",
            [list(runs)],
        ).rows:
            self._edges.setdefault(str(run), []).append((str(source), str(target)))

    def of(self, run_id: str) -> Flow:
        """The flow of one run."""
        if run_id not in self._made:
            edges = self._edges.get(run_id, [])
            self._made[run_id] = flow_of(self._nodes.get(run_id, []), edges)
        return self._made[run_id]


class _Scores:
    """The largest impact of each node of a run, and each probe set by its span."""

    def __init__(self, store: Store, runs: Sequence[str]) -> None:
        self.by_span: dict[str, Row] = {}
        self._by_run: dict[str, list[Row]] = {}
        if not runs:
            return
        for row in store.table(
            f"{_SETS} WHERE run_id IN (SELECT unnest(?)) ORDER BY audit_seq", [list(runs)]
        ).dicts():
            self.by_span[str(row["span_id"])] = row
            self._by_run.setdefault(str(row["run_id"]), []).append(row)

    def before(self, run_id: str, audit_seq: int) -> dict[str, Contribution]:
        """What was measured on each node until a decision, the largest impact where several."""
        found: dict[str, Contribution] = {}
        for row in self._by_run.get(run_id, ()):
            if row["delta"] is None or row["node"] is None or (row["audit_seq"] or 0) > audit_seq:
                continue
            each = _contribution(row)
            known = found.get(each.node)
            if known is None or (each.impact or 0.0) > (known.impact or 0.0):
                found[each.node] = each
        return found


def _contribution(row: Row) -> Contribution:
    return Contribution(
        node=str(row["node"]),
        axis=str(row["axis"]),
        weight=row["weight"],
        magnitude=row["delta"],
        impact=_product(row["weight"], row["delta"]),
        delta=row["delta"],
        ci_low=row["ci_low"],
        ci_high=row["ci_high"],
        p_value=row["p_value"],
        e_value=row["e_value"],
        perturbations=(),
        targets=(),
        span_id=str(row["span_id"]),
    )


def _paths(
    run_id: str, edges: Sequence[str], flows: _Flows, sets: _Scores, decision: Decision
) -> tuple[tuple[Step, ...], ...]:
    measured = sets.before(run_id, decision.audit_seq)
    impacts = {node: each.impact or 0.0 for node, each in measured.items()}
    paths: list[tuple[Step, ...]] = []
    for source, target in map(split_edge, edges):
        way = heaviest_path(flows.of(run_id), source, impacts)
        steps = [Step(node=node, contribution=measured.get(node)) for node in way]
        consumer = [Step(node=target, contribution=None, is_cut=True)] if target else []
        paths.append((*steps, *consumer))
    return tuple(paths)


# --- interventions --------------------------------------------------------------------------------


def _interventions(store: Store, graphs: Mapping[str, str | None]) -> Iterator[Finding]:
    rows = store.table("SELECT * FROM interventions ORDER BY run_id, audit_seq").dicts()
    for row in rows:
        if row["run_id"] in graphs:
            yield _intervention(row, graphs)


def _intervention(row: Row, graphs: Mapping[str, str | None]) -> Finding:
    return Finding(
        rule=f"intervention/{row['strategy'] or 'unnamed'}",
        level="note" if row["outcome"] == "cleared" else "warning",
        kind="fail",
        text=_intervention_text(row),
        run_id=str(row["run_id"]),
        graph=graphs[str(row["run_id"])],
        nodes=_named(row["node"]),
        axis=None,
        edges=_named(row["edge"]),
        impact=None,
        trace_id=row["trace_id"],
        span_id=str(row["span_id"]),
        at=row["start_time"],
        paths=(),
        numbers={
            "strategy": row["strategy"],
            "outcome": row["outcome"],
            "round": row["round"],
            "deltaBefore": row["score_before"],
            "deltaAfter": row["score_after"],
            "superstep": row["superstep"],
            "interventionId": row["intervention_id"],
            "errorType": row["error_type"],
            "causedBy": list(row["caused_by"] or ()) or None,
        },
    )


def _intervention_text(row: Row) -> str:
    strategy = str(row["strategy"] or "unnamed").replace("_", " ")
    node = f" on node '{row['node']}'" if row["node"] else ""
    outcome = f": {row['outcome']}" if row["outcome"] else ": its outcome is not recorded"
    before, after = row["score_before"], row["score_after"]
    scores = ""
    if before is not None:
        now = "not measured again" if after is None else f"{_short(after)} after"
        scores = f"; delta {_short(before)} before, {now}"
    failed = f"; it failed with {row['error_type']}" if row["error_type"] else ""
    return f"Intervention {strategy}{node}{outcome}{scores}{failed}."


# --- small things ---------------------------------------------------------------------------------


def _named(value: object) -> tuple[str, ...]:
    return () if value is None else (str(value),)


def _short(value: object) -> str:
    return f"{cast(float, value):.3g}"


def _or_unknown(value: object) -> str:
    return "an unknown number of" if value is None else str(value)


def _suffix(words: str, value: object) -> str:
    return "" if value is None else f"{words}{_short(value)}"


def _product(weight: float | None, delta: float | None) -> float | None:
    return None if weight is None or delta is None else weight * delta


def _interval(low: float | None, high: float | None) -> list[float] | None:
    return None if low is None or high is None else [low, high]


def _arms(reference: object, counterfactual: object) -> dict[str, object] | None:
    if reference is None and counterfactual is None:
        return None
    return {"reference": reference, "counterfactual": counterfactual}
