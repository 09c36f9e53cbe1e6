"""Ended spans as typed records: the only form in which a score reaches the accumulator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import INVALID_SPAN_CONTEXT, SpanContext

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.probing.contrast import CONTROLS, SCREEN
from twinspan.instrumentation.span_attributes import plain_attributes


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecord:
    """A probe set that has ended.

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
    return cast("str | None", plain_attributes(span).get(c.SPAN_TYPE))


def _numbers(value: object) -> tuple[float, ...]:
    return tuple(float(item) for item in cast("Sequence[float]", value or ()))


def _real(attributes: Mapping[str, Any], key: str, default: float = 0.0) -> float:
    value = attributes.get(key)
    return default if value is None else float(value)


def _maybe(attributes: Mapping[str, Any], key: str) -> float | None:
    value = attributes.get(key)
    return None if value is None else float(value)


def probe_record(span: ReadableSpan) -> ProbeRecord:
    """Read a `probe {node}` span."""
    return record_of(plain_attributes(span), span.get_span_context() or INVALID_SPAN_CONTEXT)


def record_of(read: Mapping[str, Any], span: SpanContext) -> ProbeRecord:
    """Read a probe set's attributes, of a live span or of a recorded one."""
    return ProbeRecord(
        span=span,
        run_id=str(read[c.RUN_ID]),
        set_id=str(read[c.PROBE_SET_ID]),
        node=str(read[c.NODE_ID]),
        task_id=str(read[c.NODE_TASK_ID]),
        scope=str(read[c.SUPERSTEP_SCOPE]),
        superstep=int(read[c.SUPERSTEP_INDEX]),
        axis=str(read[c.PROBE_AXIS]),
        outcome=str(read.get(c.PROBE_OUTCOME, "error")),
        delta=_maybe(read, c.EFFECT_VALUE),
        p_value=_maybe(read, c.EFFECT_P_VALUE),
        e_value=_maybe(read, c.EFFECT_E_VALUE),
        ci_high=_maybe(read, c.EFFECT_CI_UPPER),
        distances=_numbers(read.get(c.DIVERGENCE_DISTANCES)),
        n_reference=int(read.get(c.DIVERGENCE_REFERENCE_COUNT, 0)),
        n_counterfactual=int(read.get(c.DIVERGENCE_COUNTERFACTUAL_COUNT, 0)),
        weight=_real(read, c.NODE_WEIGHT),
        share=_real(read, c.NODE_WEIGHT_SHARE),
        rate=_real(read, c.PROBE_SAMPLING_RATE, 1.0),
        contrast=str(read.get(c.PROBE_CONTRAST, "attribute_swap")),
        round=int(read.get(c.PROBE_ROUND, 0)),
        estimator=cast("str | None", read.get(c.PROBE_ESTIMATOR)),
        intervention_id=cast("str | None", read.get(c.INTERVENTION_ID)),
        candidate=cast("str | None", read.get(c.INTERVENTION_CANDIDATE)),
    )
