"""OTLP protobuf: a Collector's file exporter with `format: proto`, or a request that was kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa

from twinspan.analysis.dialects.base import Problems, RowSink
from twinspan.analysis.dialects.json_files import (
    CUT_PACKED,
    DAMAGED_PACKED,
    PACKED_JUNK,
    head,
    opened,
)
from twinspan.analysis.dialects.otlp_json import BAD_ID, BAD_SPAN, NO_TRACE, OtlpJson
from twinspan.analysis.dialects.otlp_values import KINDS, STATUSES
from twinspan.analysis.dialects.wire_messages import (
    CutOff,
    Malformed,
    looks_like_spans,
    resource_spans,
)
from twinspan.collector.jsontext import json_text
from twinspan.collector.rows import EventRow, LinkRow, SpanFacts, event_row, link_row
from twinspan.instrumentation.errors import MissingExtra, SourceError

SUFFIXES: Final = frozenset({".pb", ".binpb", ".bin", ".otlp", ".proto", ".zst", ".zstd"})
"""Names under which such files are looked for in a folder; packed by gzip as well."""

PACKAGE: Final = "opentelemetry.proto"

JUNK: Final = "bytes that are no span message were not read, nor what follows them"
CUT: Final = "the last message is cut off and was skipped"

_NO_TRACE_ID: Final = bytes(16)
_NO_SPAN_ID: Final = bytes(8)

Message = Any
"""A message of the generated classes, which are there only with the extra."""


class OtlpProtobuf:
    """Reads files of OTLP protobuf, packed or not."""

    form = "OTLP protobuf"

    def recognises(self, path: Path) -> bool:
        """Whether a file begins like OTLP protobuf."""
        return looks_like_spans(head(path))

    def read(self, paths: Sequence[Path], sink: RowSink, problems: Problems) -> None:
        """Read the spans of files into rows.

        Raises:
            MissingExtra: without the package that knows the messages.
            SourceError: for a file that cannot be opened.
        """
        decode = _decoder()
        for path in paths:
            reading = _Reading(path.name, sink, problems, decode)
            try:
                with opened(path) as file:
                    for message in resource_spans(file):
                        reading.add(message)
            except CutOff:
                problems.count(path.name, CUT)
            except EOFError:
                problems.count(path.name, CUT_PACKED)
            except PACKED_JUNK:
                problems.count(path.name, DAMAGED_PACKED)
            except (Malformed, pa.ArrowException):
                problems.count(path.name, JUNK)
            except OSError as error:
                raise SourceError(
                    f"{str(path)!r} cannot be read ({error}); copy it anew"
                ) from error
        sink.flush()


def _decoder() -> Callable[[bytes], Message]:
    """What turns bytes into a `ResourceSpans`."""
    try:
        found = find_spec(f"{PACKAGE}.trace")
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MissingExtra(PACKAGE, extra="otlp")
    from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

    return cast("Callable[[bytes], Message]", ResourceSpans.FromString)


class _Reading:
    """The reading of one file."""

    def __init__(
        self, name: str, sink: RowSink, problems: Problems, decode: Callable[[bytes], Message]
    ) -> None:
        self._name = name
        self._sink = sink
        self._problems = problems
        self._decode = decode
        self._json = OtlpJson.reading(name, sink, problems)

    def add(self, encoded: bytes) -> None:
        if encoded[:1] == b"{":
            self._add_json(encoded)
            return
        try:
            self._add_resource(self._decode(encoded))
        except _undecodable():
            self._problems.count(self._name, NO_TRACE)

    def _add_json(self, encoded: bytes) -> None:
        try:
            self._json.add_document(json.loads(encoded.decode("utf-8", "replace")))
        except (ValueError, RecursionError):
            self._problems.count(self._name, NO_TRACE)

    def _add_resource(self, document: Message) -> None:
        attributes = _attributes(document.resource.attributes)
        service = attributes.get("service.name")
        resource = (json_text(attributes), None if service is None else str(service))
        for scoped in document.scope_spans:
            scope = (scoped.scope.name or None, scoped.scope.version or None)
            for span in scoped.spans:
                try:
                    self._add_span(span, scope, resource)
                except (ValueError, OverflowError):
                    self._problems.count(self._name, BAD_SPAN)

    def _add_span(
        self,
        span: Message,
        scope: tuple[str | None, str | None],
        resource: tuple[str, str | None],
    ) -> None:
        trace_id, span_id = _hex(span.trace_id, _NO_TRACE_ID), _hex(span.span_id, _NO_SPAN_ID)
        if trace_id is None or span_id is None:
            self._problems.count(self._name, BAD_ID)
            return
        start = span.start_time_unix_nano
        facts = SpanFacts(
            trace_id,
            span_id,
            _hex(span.parent_span_id, _NO_SPAN_ID),
            span.trace_state or None,
            span.name,
            _word(span.kind, KINDS),
            _word(span.status.code, STATUSES),
            span.status.message or None,
            start // 1000,
            start,
            max(span.end_time_unix_nano - start, 0),
            resource[1],
            scope[0],
            scope[1],
            resource[0],
            span.dropped_attributes_count,
            span.dropped_events_count,
            span.dropped_links_count,
        )
        self._sink.add(
            facts,
            _attributes(span.attributes),
            events=[_event(event) for event in span.events],
            links=[_link(link) for link in span.links],
        )


def _undecodable() -> tuple[type[Exception], ...]:
    from google.protobuf.message import DecodeError

    return (DecodeError, RecursionError, UnicodeDecodeError)


def _word(number: int, words: Sequence[str]) -> str:
    return words[number] if 0 <= number < len(words) else words[0]


def _hex(identifier: bytes, none: bytes) -> str | None:
    """An id in hex; None for one that is empty, zero or of another length."""
    return identifier.hex() if len(identifier) == len(none) and identifier != none else None


def _attributes(entries: Iterable[Message]) -> dict[str, object]:
    """Keys and values as a dict; a key without a value is left out, as in OTLP JSON."""
    attributes: dict[str, object] = {}
    for entry in entries:
        value = entry.value
        kind = value.WhichOneof("value")
        if kind is not None:
            attributes[entry.key] = _VALUES[kind](getattr(value, kind))
    return attributes


def _any_value(value: Message) -> object:
    kind = value.WhichOneof("value")
    return None if kind is None else _VALUES[kind](getattr(value, kind))


def _same(value: object) -> object:
    return value


_VALUES: Final[dict[str, Callable[[Any], object]]] = {
    "string_value": _same,
    "bool_value": _same,
    "int_value": _same,
    "double_value": _same,
    "bytes_value": _same,
    "string_value_strindex": _same,
    "array_value": lambda value: [_any_value(item) for item in value.values],
    "kvlist_value": lambda value: _attributes(value.values),
}


def _event(event: Message) -> EventRow:
    return event_row(event.name, event.time_unix_nano, _attributes(event.attributes))


def _link(link: Message) -> LinkRow:
    return link_row(
        _hex(link.trace_id, _NO_TRACE_ID) or "",
        _hex(link.span_id, _NO_SPAN_ID) or "",
        _attributes(link.attributes),
    )
