"""Says on other instrumentations' spans which node and which probe they belong to.

A model call inside a probe is a cost of measuring, one inside the node a cost of the work, and
only we know which is which. A span that starts below one of ours, or below one that was stamped,
is told where it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.util.types import AttributeValue

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.current import our_span
from twinspan.instrumentation.safety import Failures

STAMPED: Final = (
    c.RUN_ID,
    c.NODE_ID,
    c.NODE_TASK_ID,
    c.PROBE_SET_ID,
    c.PROBE_AXIS,
    c.PROBE_ARM,
    c.INTERVENTION_ID,
)
"""Attributes that are set on spans of others."""

Stamp = Mapping[str, AttributeValue]


class StampingProcessor(SpanProcessor):
    """Stamps the spans of the application's provider as they start.

    A processor cannot be taken off a provider, so it is switched off instead.
    """

    def __init__(self) -> None:
        self._on = True
        self.failures = Failures()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Set where the span belongs, if it starts inside a run of ours."""
        if not self._on or is_ours(span):
            return
        try:
            stamp = _stamp(parent_context)
            if stamp:
                span.set_attributes(stamp)
        except Exception as error:
            self.failures.note("stamping a span", error)

    def shutdown(self) -> None:
        """Stamp nothing any more."""
        self._on = False


def stamp_spans_of(provider: TracerProvider) -> StampingProcessor:
    """Stamp every span that a provider starts from now on."""
    processor = StampingProcessor()
    provider.add_span_processor(processor)
    return processor


def is_ours(span: ReadableSpan) -> bool:
    """Whether twinspan made a span."""
    scope = span.instrumentation_scope
    return scope is not None and scope.name == c.SCOPE


def _stamp(parent_context: Context | None) -> Stamp:
    """What is known of the place where a span starts; whoever says the most is right.

    An instrumentation that keeps its own tree names a parent that knows less than the code
    around does, or makes that parent current. A callback in another thread has nothing around
    it but the parent that it is given.
    """
    told = _told_by(our_span())
    for span in (trace.get_current_span(), trace.get_current_span(parent_context)):
        other = _told_by(span)
        told = other if len(other) > len(told) else told
    return told


def _told_by(span: trace.Span) -> Stamp:
    if not isinstance(span, ReadableSpan):
        return {}
    attributes = span.attributes or {}
    return {key: attributes[key] for key in STAMPED if key in attributes}
