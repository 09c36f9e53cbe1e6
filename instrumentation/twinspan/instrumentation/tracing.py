"""Opens and closes twinspan's spans.

Control must not depend on the application's telemetry, so our spans come from a provider of our
own: every span is recorded whatever the application's sampler says, `OTEL_SDK_DISABLED` does not
reach it, and its processors are ours first. The application still sees our spans in its own
traces: ids, parents, resource and sampled flag follow its provider, and ended spans are handed on
to its processors.
"""

from __future__ import annotations

import os
import socket
import threading
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from types import MappingProxyType
from typing import Any, Final, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import (
    AlwaysRecordSampler,
    Decision,
    Sampler,
    SamplingResult,
)
from opentelemetry.trace import Link, SpanKind, Status, StatusCode, TraceState
from opentelemetry.util.types import Attributes, AttributeValue

from twinspan.instrumentation import conventions
from twinspan.instrumentation.attributes import clean_attributes
from twinspan.instrumentation.forwarding import ForwardingProcessor
from twinspan.instrumentation.span_attributes import put_attributes
from twinspan.instrumentation.stamping import StampingProcessor, stamp_spans_of

FLUSH_AT_RUN_END_MILLIS: Final = 1000
"""How long a run's end waits for the application's processors."""

# Ours, not the environment's: a low OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT would evict evidence.
_LIMITS: Final = SpanLimits(
    max_span_attributes=SpanLimits.UNSET,
    max_attribute_length=SpanLimits.UNSET,
    max_span_attribute_length=SpanLimits.UNSET,
    max_links=SpanLimits.UNSET,
    max_events=SpanLimits.UNSET,
)


_AT_START: Final = otel_context.create_key("twinspan-attributes-at-start")


class _RecordEverything(AlwaysRecordSampler):
    """Records spans that the application's sampler drops.

    The attributes are put in place by `_AttributesAtStart`: a sampler that drops a span gives
    none back. What comes back from here is what the application's sampler added.
    """

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Record always; what the application's sampler says is only about export."""
        result = super().should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        sampled = cast("Attributes", result.attributes)  # pyright: ignore[reportUnknownMemberType]
        if parent_context is None or _AT_START not in parent_context:
            kept: Attributes = {**(attributes or {}), **(sampled or {})}
        else:
            kept = _added(sampled, attributes)
        return SamplingResult(result.decision, kept, result.trace_state)


class _Everything(Sampler):
    """Records every span where no application samples; always gives the same answer."""

    _answer: Final = SamplingResult(Decision.RECORD_AND_SAMPLE)

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """Record and sample."""
        if parent_context is not None and _AT_START in parent_context:
            return self._answer
        return SamplingResult(Decision.RECORD_AND_SAMPLE, attributes)

    def get_description(self) -> str:
        """What the SDK shows of a sampler."""
        return "twinspan: every span"


def _added(sampled: Attributes, given: Attributes) -> Attributes:
    """What a sampler gave back besides what it was given."""
    if not sampled or sampled == given:
        return None
    known = given or {}
    return {key: value for key, value in sampled.items() if known.get(key) != value}


class _AttributesAtStart(SpanProcessor):
    """Puts a span's attributes in place before any other processor sees it start.

    They travel in the context of the start. Given to the SDK's `start_span` alone they would
    be checked a second time, one by one, and be lost where a sampler drops the span.
    """

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Put them in place."""
        given: Any = None if parent_context is None else parent_context.get(_AT_START)
        if given is not None:
            put_attributes(span, given)


class _PrivateProvider(TracerProvider):
    """An SDK provider that works when the application's SDK is switched off."""

    def __init__(self, app: TracerProvider | None) -> None:
        ours = Resource({"host.name": socket.gethostname(), "ip": _address()})
        base = app.resource if app is not None else Resource.create()
        super().__init__(
            sampler=_RecordEverything(app.sampler) if app is not None else _Everything(),
            resource=ours.merge(base),
            shutdown_on_exit=False,
            id_generator=app.id_generator if app is not None else None,
            span_limits=_LIMITS,
        )
        self._disabled = False


def _address() -> str:
    """The address under which this machine speaks to others; its own where it speaks to none.

    Readers of traces compare clocks of spans whose hosts differ or are unknown.
    """
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as unused:
            unused.connect(("192.0.2.1", 9))  # nothing is sent: it only asks for the route
            return str(unused.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _usable(provider: object) -> TracerProvider | None:
    """The application's provider, if it is a real one that is switched on."""
    if isinstance(provider, TracerProvider) and not getattr(provider, "_disabled", False):
        return provider
    return None


class Telemetry:
    """twinspan's provider beside one provider of the application.

    Args:
        processors: ours, called in this order before anything of the application.
        app_provider: the application's provider; None for none. One that is a no-op, a proxy
            or switched off counts as none.
    """

    def __init__(
        self, processors: Sequence[SpanProcessor], *, app_provider: object | None = None
    ) -> None:
        app = _usable(app_provider)
        self._provider = _PrivateProvider(app)
        self._provider.add_span_processor(_AttributesAtStart())
        self._ours = tuple(processors)
        for processor in processors:
            self._provider.add_span_processor(processor)
        self.forwarding: ForwardingProcessor | None = None
        self.stamping: StampingProcessor | None = None
        if app is not None:
            self.stamping = stamp_spans_of(app, self._record)
            self.forwarding = ForwardingProcessor(app._active_span_processor)  # pyright: ignore[reportPrivateUsage]
            self._provider.add_span_processor(self.forwarding)
        self.tracer = self._provider.get_tracer(conventions.SCOPE, version("twinspan"))

    def run(
        self,
        run_id: str | None = None,
        *,
        base: Mapping[str, object] | None = None,
        resumed: bool = False,
    ) -> RunTracer:
        """A tracer for one run; `base` attributes go on every span of it.

        A run that goes on, `resumed`, keeps its id, also in another process. Its spans are
        numbered from 0 again, under a writer of their own.
        """
        return RunTracer(self, run_id or uuid.uuid4().hex, base or {}, resumed=resumed)

    def flush(self, timeout_millis: int = FLUSH_AT_RUN_END_MILLIS) -> bool:
        """Wait, for a bounded time, until the application's processors have seen our spans."""
        return self.forwarding is None or self.forwarding.force_flush(timeout_millis)

    def _record(self, span: ReadableSpan) -> None:
        """Give our processors a span that is not ours."""
        for processor in self._ours:
            processor.on_end(span)

    def stop_stamping(self) -> None:
        """Leave the application's own spans alone from now on."""
        if self.stamping is not None:
            self.stamping.shutdown()

    def shutdown(self) -> None:
        """Shut our processors down; the application's stay as they are."""
        self.stop_stamping()
        self._provider.shutdown()


class RunTracer:
    """The spans of one run: their identity, their numbers, their completeness.

    Every span carries `twinspan.run.id`; a span gets its `twinspan.audit.seq` when it ends, so
    a gap in the record is a span that was lost.

    Attributes:
        resumed: the run was begun before, maybe by another process.
        resumable: the run may go on after its end here.

    >>> from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    >>> from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    >>> memory = InMemorySpanExporter()
    >>> run = Telemetry([SimpleSpanProcessor(memory)]).run("r1")
    >>> span = run.start("invoke_node a", "node", {"twinspan.node.id": "a"})
    >>> run.end(span)
    >>> ended = memory.get_finished_spans()[0].attributes
    >>> ended["twinspan.run.id"], ended["twinspan.audit.seq"]
    ('r1', 0)
    """

    def __init__(
        self,
        telemetry: Telemetry,
        run_id: str,
        base: Mapping[str, object],
        *,
        resumed: bool = False,
    ) -> None:
        self.telemetry = telemetry
        self.run_id = run_id
        self.resumed = resumed
        self.resumable = False
        self.writer = f"{os.getpid():x}-{uuid.uuid4().hex[:8]}"
        self._fixed = clean_attributes(
            {
                conventions.SCHEMA_VERSION: conventions.SCHEMA_VERSION_VALUE,
                conventions.RUN_ID: run_id,
                conventions.AUDIT_WRITER: self.writer,
                **base,
            }
        )
        self._lock = threading.Lock()
        self._ended = 0
        self._open: dict[int, Span] = {}
        self.started: Counter[str] = Counter()

    @property
    def open_count(self) -> int:
        """Spans that were started and have not ended."""
        return len(self._open)

    @property
    def ended_count(self) -> int:
        """Spans that have ended."""
        return self._ended

    def start(
        self,
        name: str,
        span_type: str,
        attributes: Mapping[str, object] = MappingProxyType({}),
        *,
        fixed: Mapping[str, AttributeValue] = MappingProxyType({}),
        parent: Context | Span | None = None,
        links: Sequence[Link] = (),
        start_time: int | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
    ) -> Span:
        """Open a span below `parent`, or below the current span where none is given.

        Args:
            name: the span's name.
            span_type: what kind of our spans it is.
            attributes: what it says; cleaned here.
            fixed: what it says besides, cleaned before: of a node, the same at every execution.
            parent: context or span that it hangs under.
            links: links to other spans.
            start_time: when it began, in nanoseconds since 1970; now if None.
            kind: OpenTelemetry's kind.
        """
        cleaned = {
            **self._fixed,
            conventions.SPAN_TYPE: span_type,
            **fixed,
            **clean_attributes(attributes),
        }
        # Asked of the context, since asking whether something is a span is slow: an abstract class.
        if parent is not None and not isinstance(parent, Context):
            parent = trace.set_span_in_context(parent)
        span = self.telemetry.tracer.start_span(
            name,
            context=otel_context.set_value(_AT_START, cleaned, parent),
            kind=kind,
            attributes=cleaned,
            links=links,
            start_time=start_time,
        )
        span = cast(Span, span)  # AlwaysRecordSampler: every span is a recording one
        with self._lock:
            self._open[id(span)] = span
            self.started[span_type] += 1
        return span

    def end(
        self,
        span: Span,
        attributes: Mapping[str, object] | None = None,
        *,
        error: BaseException | None = None,
        end_time: int | None = None,
    ) -> None:
        """Close a span once; a second call does nothing.

        `error` is a real failure: it sets status ERROR and `error.type`, never the message,
        which could be content.
        """
        with self._lock:
            if self._open.pop(id(span), None) is None:
                return
            seq = self._ended
            self._ended += 1
        closing = dict(attributes or {})
        if error is not None:
            closing[conventions.ERROR_TYPE] = type(error).__qualname__
            span.set_status(Status(StatusCode.ERROR))
        closing[conventions.AUDIT_SEQ] = seq
        put_attributes(span, clean_attributes(closing))
        span.end(end_time)

    def end_open(self, attributes: Mapping[str, object], *, keep: Span | None = None) -> None:
        """Close whatever is still open, except `keep`: nothing may outlive its run."""
        with self._lock:
            leftover = [span for span in self._open.values() if span is not keep]
        for span in reversed(leftover):
            self.end(span, attributes)
