"""The values of an audit trail: decisions, breaches and what they go back to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Verdict = Literal["incomplete", "flagged", "inconclusive", "clear"]

HALTING: Final = frozenset({"halt", "reroute", "escalate"})
"""Decisions that stop a payload: each is a breach."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contribution:
    """What one node and axis put into the score of a superstep.

    Attributes:
        node: the node.
        axis: the axis that was varied.
        weight: w_i, the node's blast radius, the graph's largest being 1.
        magnitude: B_i, the largest delta over the node's axes.
        impact: w_i * B_i.
        delta: excess disagreement on this axis, with its interval.
        ci_low: lower end.
        ci_high: upper end.
        p_value: exact permutation p.
        e_value: e-value.
        perturbations: what was swapped, like `gender:woman>man`.
        targets: where in the payload, as JSON pointers.
        span_id: the probe set's span.
    """

    node: str
    axis: str
    weight: float | None
    magnitude: float | None
    impact: float | None
    delta: float | None
    ci_low: float | None
    ci_high: float | None
    p_value: float | None
    e_value: float | None
    perturbations: tuple[str, ...]
    targets: tuple[str, ...]
    span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """One decision of the breaker.

    Attributes:
        audit_seq: number of its span.
        scope: scope of the superstep.
        superstep: the superstep that was decided.
        decision: proceed, warn, halt, reroute or escalate.
        reason: from the breaker's closed list.
        state_from: state before.
        state_to: state after.
        b_fast: network score, fast.
        b_slow: network score, slow.
        monitor: M, the run's evidence.
        edges: edges that were cut.
        enforced: False in shadow mode.
        intervention_id: the intervention that it judges, if it does.
        span_id: its span.
    """

    audit_seq: int
    scope: str
    superstep: int | None
    decision: str
    reason: str | None
    state_from: str | None
    state_to: str | None
    b_fast: float | None
    b_slow: float | None
    monitor: float | None
    edges: tuple[str, ...]
    enforced: bool | None
    intervention_id: str | None
    span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionFact:
    """One intervention: what was tried, why so, and what the new measurement said.

    Attributes:
        intervention_id: the intervention.
        strategy: blind_rerun, skeptics, madera or human.
        node: whose payload.
        round: number of the try.
        score_before: delta of the node as it was.
        score_after: delta of the repaired procedure, measured afresh.
        upper_after: upper end for it.
        outcome: cleared, unchanged, escalated or failed.
        reason: why, from a closed list.
        edge: the edge on which the repaired payload went.
        panel: what the panel voted; None without one.
        reviews: the reviews' stances.
        attempts: the candidates that were measured, with their deltas.
        span_id: its span.
    """

    intervention_id: str | None
    strategy: str | None
    node: str | None
    round: int | None
    score_before: float | None
    score_after: float | None
    upper_after: float | None = None
    outcome: str | None
    reason: str | None = None
    edge: str | None
    panel: str | None = None
    reviews: tuple[str, ...] = ()
    attempts: tuple[tuple[str, float | None], ...] = ()
    span_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Breach:
    """A payload that was stopped, and why.

    Attributes:
        decision: the halting decision.
        node: the node whose payload was frozen.
        axis: the axis on which it was.
        perturbations: what was swapped there.
        edges: the edges that were cut.
        contributions: what each node and axis put in, the largest impact first.
        interventions: what was done about it, in order.
        rechecks: the decisions on the repaired payload.
    """

    decision: Decision
    node: str | None
    axis: str | None
    perturbations: tuple[str, ...]
    edges: tuple[str, ...]
    contributions: tuple[Contribution, ...]
    interventions: tuple[InterventionFact, ...]
    rechecks: tuple[Decision, ...]

    @property
    def path(self) -> tuple[str, ...]:
        """From the breach to its origin: superstep, node, axis, perturbation, edge."""
        named = (
            ("superstep", self.decision.superstep),
            ("node", self.node),
            ("axis", self.axis),
            ("perturbation", ", ".join(self.perturbations)),
            ("edge", ", ".join(self.edges)),
        )
        return tuple(f"{name} {value}" for name, value in named if value not in (None, ""))


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTrail:
    """The trail of one run.

    Attributes:
        run_id: the run.
        graph: name of its graph.
        verdict: `incomplete` where spans are missing, `flagged` after a breach, `inconclusive`
            where nothing was measured, else `clear`.
        reasons: why, in sentences.
        decisions: all decisions, in order.
        breaches: the ones that stopped a payload, with their origins.
    """

    run_id: str
    graph: str | None
    verdict: Verdict
    reasons: tuple[str, ...]
    outcome: str | None
    span_count: int
    decisions: tuple[Decision, ...]
    breaches: tuple[Breach, ...]
