"""OTLP JSON: our journals, the SDK's file exporter, a Collector's file exporter.

One `{"resourceSpans": [...]}` object on each line, or one such object over many lines.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from msgspec import Raw
from msgspec.json import decode

from twinspan.analysis.dialects.base import Problems, RowSink
from twinspan.analysis.dialects.json_files import head, trace_documents
from twinspan.analysis.dialects.otlp_typed import (
    TypedSpan,
    TypedTraces,
    typed_attributes,
    typed_traces,
)
from twinspan.analysis.dialects.otlp_values import (
    MALFORMED,
    Json,
    attributes_of,
    hex_id,
    kind_word,
    nanos,
    status_word,
)
from twinspan.analysis.garbage import garbage_kept
from twinspan.collector.jsontext import json_text
from twinspan.collector.rows import EventRow, LinkRow, SpanFacts, event_row, link_row
from twinspan.instrumentation.errors import SourceError

_SCOPES_ONCE: Final = "instrumentationLibrarySpans"
_SCOPE_ONCE: Final = "instrumentationLibrary"
"""What scopes were called before OTLP 1.0."""

_UNDERSCORED: Final = re.compile("_([a-z])")

_UNWRITTEN: Final = Raw(b"")
"""No resource as it is written in a file: one that was taken over as a dict."""

NO_TRACE: Final = "an object holds no spans and was skipped"
BAD_ID: Final = "a span without a valid trace or span id was skipped"
BAD_SPAN: Final = "a span of another shape was skipped"


class OtlpJson:
    """Reads files of OTLP JSON, packed or not."""

    form = "OTLP JSON"

    def recognises(self, path: Path) -> bool:
        """Whether a file begins like OTLP JSON."""
        beginning = head(path)
        return b"resourceSpans" in beginning or b"resource_spans" in beginning

    @staticmethod
    def reading(name: str, sink: RowSink, problems: Problems) -> DocumentReading:
        """What takes the documents of one file, for readers whose files hold them otherwise."""
        return DocumentReading(name, sink, problems)

    def read(self, paths: Sequence[Path], sink: RowSink, problems: Problems) -> None:
        """Read the spans of files into rows.

        Raises:
            SourceError: for a file that cannot be opened.
        """
        with garbage_kept():  # JSON has no cycles
            for path in paths:
                reading = self.reading(path.name, sink, problems)
                try:
                    for document in trace_documents(path, problems, typed_traces):
                        reading.add_document(document)
                except OSError as error:
                    raise SourceError(
                        f"{str(path)!r} cannot be read ({error}); copy it anew"
                    ) from error
        sink.flush()


class DocumentReading:
    """The reading of one file; remembers the resource that most lines repeat."""

    def __init__(self, name: str, sink: RowSink, problems: Problems) -> None:
        self._name = name
        self._sink = sink
        self._problems = problems
        self._resource: object = None
        self._written = _UNWRITTEN
        self._resource_text = "{}"
        self._service: str | None = None

    def add_document(self, document: object) -> None:
        """Add the spans of one document."""
        if isinstance(document, TypedTraces):
            self._add_typed(document)
            return
        if isinstance(document, list):
            for each in cast("list[object]", document):
                self.add_document(each)
            return
        traces = cast(Json, document) if isinstance(document, dict) else {}
        found = traces.get("resourceSpans") or _camel(traces.get("resource_spans"))
        if not isinstance(found, list):
            self._problems.count(self._name, NO_TRACE)
            return
        for one in cast("list[Json]", found):
            try:
                self._add_resource(one)
            except MALFORMED:
                self._problems.count(self._name, BAD_SPAN)

    def _add_resource(self, document: Json) -> None:
        self._remember(document.get("resource"))
        for scoped in document.get("scopeSpans") or document.get(_SCOPES_ONCE) or ():
            scope: Json = scoped.get("scope") or scoped.get(_SCOPE_ONCE) or {}
            name, version = scope.get("name") or None, scope.get("version") or None
            for span in scoped.get("spans") or ():
                try:
                    self._add_span(span, name, version)
                except MALFORMED:
                    self._problems.count(self._name, BAD_SPAN)

    def _add_typed(self, document: TypedTraces) -> None:
        for one in document.resourceSpans:
            try:
                self._remember_written(one.resource)
            except MALFORMED:
                self._problems.count(self._name, BAD_SPAN)
                continue
            for scoped in one.scopeSpans:
                scope = scoped.scope or {}
                name, version = scope.get("name") or None, scope.get("version") or None
                for span in scoped.spans:
                    try:
                        self._add_typed_span(span, name, version)
                    except MALFORMED:
                        self._problems.count(self._name, BAD_SPAN)

    def _remember_written(self, written: Raw) -> None:
        if written != self._written:
            self._remember(cast("Json | None", decode(written)))
            self._written = written.copy()  # what is not copied would keep its whole line

    def _remember(self, resource: Json | None) -> None:
        if resource == self._resource:
            return
        attributes = attributes_of((resource or {}).get("attributes") or ())
        service = attributes.get("service.name")
        self._resource_text = json_text(attributes)
        self._service = None if service is None else str(service)
        self._resource = resource
        self._written = _UNWRITTEN

    def _add_typed_span(self, span: TypedSpan, scope: str | None, version: str | None) -> None:
        trace_id, span_id = hex_id(span.traceId, 32), hex_id(span.spanId, 16)
        if trace_id is None or span_id is None:
            self._problems.count(self._name, BAD_ID)
            return
        start = nanos(span.startTimeUnixNano)
        status: Json = span.status or {}
        facts = (
            trace_id,
            span_id,
            hex_id(span.parentSpanId, 16),
            span.traceState or None,
            str(span.name),
            kind_word(span.kind),
            status_word(status.get("code")),
            status.get("message") or None,
            start // 1000,
            start,
            max(nanos(span.endTimeUnixNano) - start, 0),
            self._service,
            scope,
            version,
            self._resource_text,
            nanos(span.droppedAttributesCount),
            nanos(span.droppedEventsCount),
            nanos(span.droppedLinksCount),
        )
        self._sink.add(
            SpanFacts._make(facts),
            typed_attributes(span.attributes or ()),
            events=[_event(event) for event in span.events] if span.events else (),
            links=[_link(link) for link in span.links] if span.links else (),
        )

    def _add_span(self, span: Json, scope: str | None, version: str | None) -> None:
        trace_id = hex_id(span.get("traceId"), 32)
        span_id = hex_id(span.get("spanId"), 16)
        if trace_id is None or span_id is None:
            self._problems.count(self._name, BAD_ID)
            return
        start = nanos(span.get("startTimeUnixNano"))
        status: Json = span.get("status") or {}
        facts = SpanFacts(
            trace_id,
            span_id,
            hex_id(span.get("parentSpanId"), 16),
            span.get("traceState") or None,
            str(span.get("name", "")),
            kind_word(span.get("kind")),
            status_word(status.get("code")),
            status.get("message") or None,
            start // 1000,
            start,
            max(nanos(span.get("endTimeUnixNano")) - start, 0),
            self._service,
            scope,
            version,
            self._resource_text,
            nanos(span.get("droppedAttributesCount")),
            nanos(span.get("droppedEventsCount")),
            nanos(span.get("droppedLinksCount")),
        )
        self._sink.add(
            facts,
            attributes_of(span.get("attributes") or ()),
            events=[_event(event) for event in span.get("events") or ()],
            links=[_link(link) for link in span.get("links") or ()],
        )


def _event(event: Json) -> EventRow:
    return event_row(
        str(event.get("name", "")),
        nanos(event.get("timeUnixNano")),
        attributes_of(event.get("attributes") or ()),
    )


def _link(link: Json) -> LinkRow:
    return link_row(
        hex_id(link.get("traceId"), 32) or "",
        hex_id(link.get("spanId"), 16) or "",
        attributes_of(link.get("attributes") or ()),
    )


def _camel(document: object) -> object:
    """The same with the names of JSON: some exporters leave those of protobuf.

    >>> _camel([{"trace_id": "a", "status": {"code": 1}}])
    [{'traceId': 'a', 'status': {'code': 1}}]
    """
    if isinstance(document, dict):
        fields = cast("dict[str, object]", document)
        return {_UNDERSCORED.sub(_capital, name): _camel(value) for name, value in fields.items()}
    if isinstance(document, list):
        return [_camel(each) for each in cast("list[object]", document)]
    return document


def _capital(match: re.Match[str]) -> str:
    return match.group(1).upper()
