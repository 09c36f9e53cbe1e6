"""Hands an incident that no repair ended over to a person."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from opentelemetry.trace import Link

from twinspan.collector.records import ProbeRecord
from twinspan.collector.telling import cut_edges
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.gate import Boundary

HUMAN: Final = "human"


def tell_person(boundary: Boundary, guilty: Sequence[ProbeRecord], *, rounds: int) -> None:
    """Write down that a person is asked: what was cut, and after how many tries.

    What a person needs to decide is in the `BiasHalt` that the run raises: the frozen payload,
    and each repair with its measurement and its payload. Words stay out of the span.
    """
    worst = max(guilty, key=lambda record: record.impact)
    span = boundary.run.start(
        c.operation_name(c.SPAN_INTERVENTION, HUMAN),
        "intervention",
        {
            c.INTERVENTION_ID: uuid.uuid4().hex,
            c.INTERVENTION_STRATEGY: HUMAN,
            c.INTERVENTION_TRIGGER_TASK: worst.task_id,
            c.INTERVENTION_ROUND: rounds + 1,
            c.INTERVENTION_SCORE_BEFORE: worst.delta,
            c.INTERVENTION_EDGE: cut_edges(boundary, guilty)[0],
            c.NODE_ID: worst.node,
            c.SUPERSTEP_INDEX: boundary.superstep,
            c.SUPERSTEP_SCOPE: boundary.scope,
        },
        parent=boundary.parent,
        links=[Link(record.span, {c.LINK_RELATION: "caused_by"}) for record in guilty],
    )
    boundary.run.end(
        span, {c.INTERVENTION_OUTCOME: "escalated", c.INTERVENTION_REASON: "retries_exhausted"}
    )
