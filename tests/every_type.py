"""Spans that carry every type of attribute, and everything else that a span can carry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import Link, SpanKind, Status, StatusCode

from twinspan.instrumentation import conventions as c

ATTRIBUTES: dict[str, Any] = {
    # Promoted, one of each type.
    c.SPAN_TYPE: "node",
    c.RUN_ID: "r-1",
    c.AUDIT_SEQ: 2**53 + 1,
    c.NODE_ID: "name \u00e9 \u4e16 \U0001f600 'quoted' \"double\"\n",
    c.NODE_ATTEMPT: -1,
    c.NODE_WEIGHT: 0.1 + 0.2,
    c.BREAKER_ENFORCED: False,
    c.NODE_PARENTS: ["a", "", "b"],
    c.NETWORK_PROBE_SETS: [],
    c.DIVERGENCE_DISTANCES: [0.0, 1.0, 1e-300],
    # Not what the column is for: kept in the rest.
    c.NODE_WEIGHT_SHARE: "heavy",
    # Fields of an action.
    f"{c.ACTION_PREFIX}admit": True,
    f"{c.ACTION_PREFIX}level": 3,
    f"{c.ACTION_PREFIX}orders": ["CBC", "EKG"],
    # Somebody's own.
    "mine.text": "",
    "mine.int.max": 2**63 - 1,
    "mine.int.min": -(2**63),
    "mine.double": 1.0,
    "mine.double.tiny": 5e-324,
    "mine.nan": float("nan"),
    "mine.infinity": float("-inf"),
    "mine.bool": True,
    "mine.bytes": b"\x00\xff",
    "mine.ints": [1, 2],
    "mine.doubles": [1.0, 2.5],
    "mine.bools": [True, False],
    "mine.texts": ["x", "y"],
    "mine.map": {"a": 1, "b": {"c": [1.5, "z"]}},
    "mine.with/slash~tilde": "k",
}


def spans() -> Sequence[ReadableSpan]:
    """A parent and a child with everything a span can carry."""
    memory = InMemorySpanExporter()
    provider = TracerProvider(
        resource=Resource({"service.name": "svc", "n": 1, "list": ["a", "b"]}),
        shutdown_on_exit=False,
        span_limits=SpanLimits(max_events=2),
    )
    provider.add_span_processor(SimpleSpanProcessor(memory))
    tracer = provider.get_tracer("a.scope", "1.2.3")
    with tracer.start_as_current_span("root", kind=SpanKind.SERVER) as root:
        root.set_status(Status(StatusCode.OK))
        link = Link(
            root.get_span_context(),
            {c.LINK_RELATION: "data_dependency", c.LINK_EDGE: "a->b", "more": 2},
        )
        with tracer.start_as_current_span("child", attributes=ATTRIBUTES, links=[link]) as child:
            for number in range(3):
                child.add_event("seen", {"number": number, "list": [1.5]}, timestamp=10 + number)
            child.set_status(Status(StatusCode.ERROR, "why"))
    return memory.get_finished_spans()
