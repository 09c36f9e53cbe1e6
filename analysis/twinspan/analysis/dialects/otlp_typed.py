"""OTLP JSON of the expected shape, decoded straight into what an import needs.

Most of a file is attributes, and most of the work of reading them as JSON is making a dict for
each value. A line whose shape is another one is none of these, and is read as any JSON is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from twinspan.analysis.dialects.otlp_values import any_value


class AnyValue(msgspec.Struct, gc=False):
    """A typed value: one of these is there."""

    stringValue: str | None = None
    intValue: Any = None
    doubleValue: Any = None
    boolValue: Any = None
    arrayValue: Any = None
    kvlistValue: Any = None
    bytesValue: Any = None


class KeyValue(msgspec.Struct, gc=False):
    """An attribute."""

    key: str
    value: AnyValue | None = None


class TypedSpan(msgspec.Struct):
    """A span; what is not of the spec's type is found out where it is used."""

    traceId: Any = None
    spanId: Any = None
    parentSpanId: Any = None
    traceState: Any = None
    name: Any = ""
    kind: Any = None
    startTimeUnixNano: Any = None
    endTimeUnixNano: Any = None
    attributes: list[KeyValue] | None = None
    events: Any = None
    links: Any = None
    status: Any = None
    droppedAttributesCount: Any = None
    droppedEventsCount: Any = None
    droppedLinksCount: Any = None


class TypedScope(msgspec.Struct):
    """Spans of one instrumentation."""

    spans: list[TypedSpan]
    scope: dict[str, Any] | None = None


class TypedResource(msgspec.Struct):
    """Spans of one resource, which stays as it is written: most lines repeat it."""

    scopeSpans: list[TypedScope]
    resource: msgspec.Raw = msgspec.Raw(b"null")


class TypedTraces(msgspec.Struct):
    """One document."""

    resourceSpans: list[TypedResource]


_decode: Final = msgspec.json.Decoder(TypedTraces).decode

_SURE_DIGITS: Final = 19
"""Every number of fewer digits fits 64 bits."""

_OTHERS: Final = (
    "intValue",
    "doubleValue",
    "boolValue",
    "arrayValue",
    "kvlistValue",
    "bytesValue",
)


def typed_traces(text: bytes) -> TypedTraces | None:
    """A document; None where the text is none, or one of another shape.

    >>> found = typed_traces(b'{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"a"}]}]}]}')
    >>> found.resourceSpans[0].scopeSpans[0].spans[0].name
    'a'
    >>> typed_traces(b'{"resourceSpans": 1}') is typed_traces(b"{") is None
    True
    """
    try:
        found = _decode(text)
        return found if found.resourceSpans else None
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None


def typed_attributes(entries: Sequence[KeyValue]) -> dict[str, object]:
    """As `otlp_values.attributes_of`.

    >>> typed_attributes([KeyValue("a", AnyValue(intValue="3")), KeyValue("b")])
    {'a': 3}
    """
    attributes: dict[str, object] = {}
    for entry in entries:
        value = entry.value
        if value is None:
            continue
        text = value.stringValue
        if text is not None:
            attributes[entry.key] = text
            continue
        written = value.intValue
        if type(written) is str and written.isdigit() and len(written) < _SURE_DIGITS:
            attributes[entry.key] = int(written)
            continue
        number = value.doubleValue
        if written is None and type(number) is float:
            attributes[entry.key] = number
            continue
        for kind in _OTHERS:
            content = getattr(value, kind)
            if content is not None:
                attributes[entry.key] = any_value({kind: content})
                break
    return attributes
