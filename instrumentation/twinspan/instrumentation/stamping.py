"""Says on other instrumentations' spans which node and which probe they belong to.

A model call inside a probe is a cost of measuring, one inside the node a cost of the work, and
only we know which is which. A span that starts below one of ours, or below one that was stamped,
is told where it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.util.types import AttributeValue

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.current import our_span
from twinspan.instrumentation.model_calls import is_model_call, without_content
from twinspan.instrumentation.safety import Failures

STAMPED: Final = (
    c.RUN_ID,
    c.NODE_ID,
    c.NODE_TASK_ID,
    c.PROBE_SET_ID,
    c.PROBE_AXIS,
    c.PROBE_ARM,
    c.PROBE_POSITION,
    c.INTERVENTION_ID,
)
"""Attributes that are set on spans of others."""

MOST_OPEN: Final = 10_000
"""Stamped spans that are remembered until they end; beyond it the oldest is forgotten."""

Stamp = Mapping[str, AttributeValue]


class StampingProcessor(SpanProcessor):
    """Stamps the spans of the application's provider as they start.

    A processor cannot be taken off a provider, so it is switched off instead.

    Args:
        on_model_call: told of every model call that ends inside a run, without its content.
    """

    def __init__(self, on_model_call: Callable[[ReadableSpan], None]) -> None:
        self._on = True
        self._on_model_call = on_model_call
        self._open: dict[int, Stamp] = {}
        self.failures = Failures()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Set where the span belongs, if it starts inside a run of ours."""
        if not self._on or is_ours(span):
            return
        try:
            stamp = _stamp(parent_context)
            if stamp:
                span.set_attributes(stamp)
                self._remember(span, stamp)
        except Exception as error:
            self.failures.note("stamping a span", error)

    def on_end(self, span: ReadableSpan) -> None:
        """Hand on a model call that ends inside a run."""
        stamp = self._open.pop(_id(span), None)
        if stamp is None or not self._on:
            return
        try:
            if is_model_call(span.attributes or {}):
                self._on_model_call(without_content(span, stamp))
        except Exception as error:
            self.failures.note("recording a model call", error)

    def shutdown(self) -> None:
        """Stamp nothing any more."""
        self._on = False
        self._open.clear()

    def _remember(self, span: ReadableSpan, stamp: Stamp) -> None:
        # A span with many attributes loses its oldest, the stamp, before it ends.
        if len(self._open) >= MOST_OPEN:
            # It never ended, as spans of abandoned streams do.
            self._open.pop(next(iter(self._open)), None)
        self._open[_id(span)] = stamp


def stamp_spans_of(
    provider: TracerProvider, on_model_call: Callable[[ReadableSpan], None]
) -> StampingProcessor:
    """Stamp every span that a provider starts from now on."""
    processor = StampingProcessor(on_model_call)
    provider.add_span_processor(processor)
    return processor


def _id(span: ReadableSpan) -> int:
    return 0 if span.context is None else span.context.span_id


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
