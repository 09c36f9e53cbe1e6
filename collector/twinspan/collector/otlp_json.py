"""One ended span as a line of OTLP JSON, the form every OpenTelemetry reader knows."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any, cast

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext

from twinspan.collector.jsontext import json_text

_SPECIAL = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}


def any_value(value: object) -> dict[str, Any]:
    """A value in OTLP's typed form; integers are strings there, since JSON's are inexact.

    >>> any_value([1, 2.5, "x", True])["arrayValue"]["values"][:2]
    [{'intValue': '1'}, {'doubleValue': 2.5}]
    """
    if value is None:
        return {}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": _SPECIAL.get(str(value), value)}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode("ascii")}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": key_values(cast("Mapping[str, object]", value))}}
    if isinstance(value, list | tuple):
        items = cast("Sequence[object]", value)
        return {"arrayValue": {"values": [any_value(item) for item in items]}}
    return {"stringValue": str(value)}


def key_values(attributes: Mapping[str, object]) -> list[dict[str, Any]]:
    """Attributes in OTLP's form.

    >>> key_values({"a": True})
    [{'key': 'a', 'value': {'boolValue': True}}]
    """
    return [{"key": key, "value": any_value(value)} for key, value in attributes.items()]


def span_line(span: ReadableSpan) -> str:
    """One line, newline included, that holds one span with its resource and scope."""
    scope = span.instrumentation_scope
    named = {} if scope is None else {"name": scope.name, "version": scope.version or ""}
    scoped = {"scope": named, "spans": [_span(span)]}
    return json_text({"resourceSpans": [{**_resource(span.resource), "scopeSpans": [scoped]}]}) + (
        "\n"
    )


def _resource(resource: Resource) -> dict[str, Any]:
    return {"resource": {"attributes": key_values(resource.attributes)}}


def _span(span: ReadableSpan) -> dict[str, Any]:
    context = cast(SpanContext, span.context)
    status = span.status
    line: dict[str, Any] = {
        "traceId": f"{context.trace_id:032x}",
        "spanId": f"{context.span_id:016x}",
        "name": span.name,
        "kind": span.kind.value + 1,  # OTLP counts from UNSPECIFIED = 0, the SDK from INTERNAL
        "startTimeUnixNano": str(span.start_time or 0),
        "endTimeUnixNano": str(span.end_time or span.start_time or 0),
        "attributes": key_values(span.attributes or {}),
        "events": [_event(event) for event in span.events],
        "links": [_link(link) for link in span.links],
        "status": {"code": status.status_code.value, "message": status.description or ""},
        "droppedAttributesCount": span.dropped_attributes,
        "droppedEventsCount": span.dropped_events,
        "droppedLinksCount": span.dropped_links,
    }
    if span.parent is not None:
        line["parentSpanId"] = f"{span.parent.span_id:016x}"
    if context.trace_state:
        line["traceState"] = context.trace_state.to_header()
    return line


def _event(event: Event) -> dict[str, Any]:
    return {
        "name": event.name,
        "timeUnixNano": str(event.timestamp),
        "attributes": key_values(event.attributes or {}),
    }


def _link(link: Link) -> dict[str, Any]:
    return {
        "traceId": f"{link.context.trace_id:032x}",
        "spanId": f"{link.context.span_id:016x}",
        "attributes": key_values(link.attributes or {}),
    }
