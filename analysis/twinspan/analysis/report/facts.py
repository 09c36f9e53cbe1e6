"""The values of a report. Whatever the page says is in here first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Literal, TypeVar

from twinspan.analysis.audit_gate import GateRow
from twinspan.analysis.audit_paths import AccumulationRow, ForcedRow, PropagationRow
from twinspan.analysis.flip_rows import FlipRow
from twinspan.analysis.floors import FloorRow
from twinspan.analysis.graphs import GraphEdge, GraphNode
from twinspan.analysis.trail_records import Breach

Verdict = Literal["incomplete", "flagged", "inconclusive", "clear"]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Capped(Generic[T]):
    """The first of many: what is shown, and how many there are."""

    items: tuple[T, ...]
    total: int

    @property
    def left_out(self) -> int:
        """How many are not shown."""
        return self.total - len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How much was recorded.

    Attributes:
        runs: runs.
        spans: spans of these runs.
        executions: executions of nodes.
        probe_sets: probe sets, and how many of them have a score.
        scored: those with one.
        above_floor: those that say that a node reacts.
        calls: runs of nodes made by probes.
        decisions: decisions of the breaker.
        breaches: those that stopped a payload, or would have in shadow mode.
        enforced: those that did stop it.
        interventions: repairs that were tried.
        cleared: those after which the new measurement was within limits.
        first: time of the first run; None without one.
        last: time of the last.
    """

    runs: int
    spans: int
    executions: int
    probe_sets: int
    scored: int
    above_floor: int
    calls: int
    decisions: int
    breaches: int
    enforced: int
    interventions: int
    cleared: int
    first: str | None
    last: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """Whether a run's record gives the numbers that it states.

    Attributes:
        verdict: verified, incomplete or mismatch.
        checked: numbers that were recomputed.
        mismatches: span, attribute, recorded and recomputed value of those that do not fit.
        reasons: why it is incomplete.
    """

    verdict: str
    checked: int
    mismatches: Capped[tuple[str, str, str, str]]
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """One run in one line.

    Attributes:
        run_id: the run.
        graph: its graph.
        verdict: of the trail.
        reasons: why.
        outcome: how it ended.
        breaches: payloads that were stopped.
        impact: the largest w * delta among them; None without one.
        peak_fast: largest B_fast.
        peak_monitor: largest M.
        check: the record, verified.
        trace_id: its trace.
        start: when it began.
    """

    run_id: str
    graph: str | None
    verdict: Verdict
    reasons: tuple[str, ...]
    outcome: str | None
    breaches: int
    impact: float | None
    peak_fast: float | None
    peak_monitor: float | None
    check: Check
    trace_id: str | None
    start: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One probe set: a node on one axis.

    Attributes:
        run_id: the run.
        node: the node.
        axis: the axis.
        superstep: where.
        after_repair: it measures a repaired procedure.
        weight: w_i, the graph's largest being 1.
        delta: excess disagreement; None with `reason`.
        ci_low: its interval.
        ci_high: its interval.
        p_value: exact permutation p.
        e_value: e-value.
        cross: disagreement across the swap.
        floor: disagreement among repeated runs.
        estimator: what measured.
        wording: how descriptors were worded; `random` separates the axis from the words.
        n_reference: runs as they were.
        n_counterfactual: runs with the swap.
        label: above_floor, within_floor or inconclusive.
        reason: why there is no score.
        span_id: its span.
        trace_id: its trace.
    """

    run_id: str
    node: str | None
    axis: str | None
    superstep: int | None
    after_repair: bool
    weight: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    e_value: float | None
    cross: float | None
    floor: float | None
    estimator: str | None
    wording: str | None
    n_reference: int | None
    n_counterfactual: int | None
    label: str
    reason: str | None
    span_id: str
    trace_id: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The network score at one decision."""

    superstep: int | None
    after_repair: bool
    decision: str
    reason: str | None
    state: str | None
    b_fast: float | None
    b_slow: float | None
    monitor: float | None
    tau_enter: float | None
    tau_exit: float | None
    monitor_limit: float | None
    enforced: bool | None
    span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnGraph:
    """A run's graph, in layers.

    Attributes:
        nodes: with weights and largest scores.
        edges: as payloads went, and those that were cut before anything did.
        layers: names of nodes, first layer first.
        back: edges that close a loop.
    """

    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    layers: tuple[tuple[str, ...], ...]
    back: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStory:
    """One run in full.

    Attributes:
        row: the run in one line.
        graph: its graph.
        points: its decisions; only some of very many, peaks and breaches kept.
        breaches: what was stopped, the largest impact first.
        scores: its probe sets, reactions first.
        reacting: every node with a score above its floor, those of repaired procedures left out.
        trigger: the rule by which the breaker decided.
    """

    row: RunRow
    graph: DrawnGraph
    points: Capped[Point]
    breaches: Capped[Breach]
    scores: Capped[Score]
    reacting: tuple[str, ...]
    trigger: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What of a node was probed, over all runs.

    Attributes:
        graph: the graph.
        node: the node.
        weight: its largest weight.
        executions: how often it ran.
        probed: executions that were probed.
        screened: looked at cheaply only.
        sampled_out: left out by sampling.
        budget: left out for want of budget.
        exempt: not to be probed.
        unknown: not told.
        axes: the axes that were varied.
        scored: probe sets with a score.
        calls: runs that its probes made.
    """

    graph: str | None
    node: str
    weight: float | None
    executions: int
    probed: int
    screened: int
    sampled_out: int
    budget: int
    exempt: int
    unknown: int
    axes: tuple[str, ...]
    scored: int
    calls: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedPlan:
    """The plan of an audit, and whether all of it was run.

    Attributes:
        name: the audit's name.
        plan_hash: SHA-256 of the design.
        sealed_before_results: whether it was recorded before the first run.
        expected_runs: runs of the plan.
        observed_runs: those that are recorded.
        wording: random or same; None if not recorded.
    """

    name: str | None
    plan_hash: str | None
    sealed_before_results: bool
    expected_runs: int | None
    observed_runs: int
    wording: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Outcomes of repeated runs.

    Attributes:
        floors: how often replicates of one case disagree, the pooled row last.
        reference: the condition that others are compared with; None if unknown.
        conditions: all conditions.
        disparities: conditions against it, all of them, controls last.
        reason: why there are no disparities; None if there are some.
        alpha: level of the tests.
        procedure: what p is adjusted by.
        warnings: what to mind.
        propagation: whether later outcomes flip where earlier ones have.
        forced: what forcing an earlier step did to later outcomes.
        accumulation: whether the shifts of a swap add up along the trajectory.
        gate: which outcomes may be ranked; empty if no thresholds were given.
        plans: sealed plans of the audits; none for imported runs.
    """

    floors: Capped[FloorRow]
    reference: str | None
    conditions: tuple[str, ...]
    disparities: Capped[FlipRow]
    reason: str | None
    alpha: float = 0.05
    procedure: str = "holm"
    warnings: tuple[str, ...] = ()
    propagation: Capped[PropagationRow]
    forced: Capped[ForcedRow]
    accumulation: Capped[AccumulationRow]
    gate: tuple[GateRow, ...] = ()
    plans: tuple[SealedPlan, ...] = ()

    @property
    def findings(self) -> tuple[FlipRow, ...]:
        """Disparities above the floor."""
        return tuple(row for row in self.disparities.items if row.is_finding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """A heading and what is to be said under it."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a report says.

    Attributes:
        source: what was opened.
        version: of twinspan.
        verdict: the gravest of the runs' verdicts.
        headline: the verdict in one sentence.
        summary: what it rests on, in sentences.
        counts: how much was recorded.
        verdicts: how many runs have which verdict.
        runs: the runs, the gravest first.
        stories: some runs in full.
        coverage: what was probed.
        audit: floors and disparities; None where runs have no outcomes.
        problems: what of the source could not be used.
        limits: what the report does not say.
        jaeger: address of a Jaeger that has the traces.
    """

    source: str
    version: str
    verdict: Verdict
    headline: str
    summary: tuple[str, ...]
    counts: Counts
    verdicts: dict[str, int]
    runs: Capped[RunRow]
    stories: Capped[RunStory]
    coverage: Capped[Coverage]
    audit: Audit | None
    problems: tuple[str, ...]
    limits: tuple[Remark, ...]
    jaeger: str | None
