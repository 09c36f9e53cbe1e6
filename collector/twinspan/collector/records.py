"""Ended spans as typed records: the only form in which a score reaches the accumulator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.probing.contrast import CONTROLS, SCREEN
from twinspan.instrumentation.span_attributes import plain_attributes


class ProbeRecord(NamedTuple):
    """A probe set that has ended; a tuple, since one is made while its span ends.

    Attributes:
        span: its span; the id is the key under which it counts once.
        run_id, node, task_id, scope, superstep, axis: where it stands.
        set_id: the probe set.
        outcome: how it ended; only `ok` and `partial` carry a score.
        delta: excess disagreement; None without a score.
        p_value, e_value: its evidence.
        distances, n_reference, n_counterfactual: the raw parts.
        weight: blast radius, the graph's largest being 1.
        share: blast radius as a share of the graph's.
        rate: probability with which the node was probed, in (0, 1].
        contrast: what the counterfactual arm changed.
        round: round of adaptive probing, from 0.
        estimator: the distance in force.
        intervention_id: the intervention that it re-measures; None for an ordinary probe.
        candidate: the candidate repair that it compares with others; None for the measurement
            that decides.
        calls: node runs that it cost.
    """

    span: SpanContext
    run_id: str
    set_id: str
    node: str
    task_id: str
    scope: str
    superstep: int
    axis: str
    outcome: str
    delta: float | None
    p_value: float | None
    e_value: float | None
    ci_high: float | None
    distances: tuple[float, ...]
    n_reference: int
    n_counterfactual: int
    weight: float
    share: float
    rate: float
    contrast: str
    round: int
    estimator: str | None
    intervention_id: str | None
    candidate: str | None = None
    calls: int = 0

    @property
    def key(self) -> tuple[str, str]:
        """Node and axis."""
        return self.node, self.axis

    @property
    def is_control(self) -> bool:
        """Whether the attribute was left alone: such a set decides nothing."""
        return self.contrast in CONTROLS

    @property
    def is_screen(self) -> bool:
        """Whether all axes were swapped at once."""
        return self.contrast == SCREEN

    @property
    def impact(self) -> float:
        """w_i * B_i / pi_i: what the node adds to the network score; 0 without a score."""
        return 0.0 if self.delta is None else self.weight * self.delta / self.rate


def span_type(span: ReadableSpan) -> str | None:
    """What kind of our spans this is; None for a foreign one."""
    kind: Any = plain_attributes(span).get(c.SPAN_TYPE)
    return None if kind is None else str(kind)


def probe_record(span: ReadableSpan) -> ProbeRecord:
    """Read a `probe {node}` span."""
    return record_of(plain_attributes(span), span.get_span_context() or INVALID_SPAN_CONTEXT)


def record_of(read: Mapping[str, Any], span: SpanContext) -> ProbeRecord:
    """Read a probe set's attributes, of a live span or of a recorded one.

    Raises:
        KeyError: an attribute is missing without which a score has no place.
    """
    rate: float | None = read.get(c.PROBE_SAMPLING_RATE)
    return ProbeRecord(
        span=span,
        run_id=read[c.RUN_ID],
        set_id=read[c.PROBE_SET_ID],
        node=read[c.NODE_ID],
        task_id=read[c.NODE_TASK_ID],
        scope=read[c.SUPERSTEP_SCOPE],
        superstep=read[c.SUPERSTEP_INDEX],
        axis=read[c.PROBE_AXIS],
        outcome=read.get(c.PROBE_OUTCOME, "error"),
        delta=read.get(c.EFFECT_VALUE),
        p_value=read.get(c.EFFECT_P_VALUE),
        e_value=read.get(c.EFFECT_E_VALUE),
        ci_high=read.get(c.EFFECT_CI_UPPER),
        distances=tuple(read.get(c.DIVERGENCE_DISTANCES) or ()),
        n_reference=read.get(c.DIVERGENCE_REFERENCE_COUNT) or 0,
        n_counterfactual=read.get(c.DIVERGENCE_COUNTERFACTUAL_COUNT) or 0,
        weight=read.get(c.NODE_WEIGHT) or 0.0,
        share=read.get(c.NODE_WEIGHT_SHARE) or 0.0,
        rate=1.0 if rate is None else rate,
        contrast=read.get(c.PROBE_CONTRAST) or "attribute_swap",
        round=read.get(c.PROBE_ROUND) or 0,
        estimator=read.get(c.PROBE_ESTIMATOR),
        intervention_id=read.get(c.INTERVENTION_ID),
        candidate=read.get(c.INTERVENTION_CANDIDATE),
        calls=read.get(c.PROBE_CALL_COUNT) or 0,
    )
