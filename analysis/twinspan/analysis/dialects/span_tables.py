"""Tables of spans that others keep: under ClickHouse's names, DuckDB's own OTLP reader's, or ours.

A table whose attributes lie in one column is read row by row, so that every attribute we know gets
its column, whatever the others call theirs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, cast

import duckdb
import pyarrow as pa

from twinspan.analysis.dialects.base import Problems, RowSink
from twinspan.analysis.dialects.otlp_json import BAD_ID, BAD_SPAN
from twinspan.analysis.dialects.otlp_values import MALFORMED, hex_id, kind_word, status_word
from twinspan.collector.jsontext import json_text
from twinspan.collector.rows import EventRow, LinkRow, SpanFacts, event_row, link_row
from twinspan.instrumentation import conventions as c

Row = Mapping[str, Any]

BATCH_ROWS: Final = 20_000

_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "trace_id": ("TraceId", "trace_id"),
    "span_id": ("SpanId", "span_id"),
    "parent": ("ParentSpanId", "parent_span_id", "parent_id"),
    "trace_state": ("TraceState", "trace_state"),
    "name": ("SpanName", "span_name", "name"),
    "kind": ("SpanKind", "kind", "span_kind"),
    "status": ("StatusCode", "status_code", "otel_status_code"),
    "message": ("StatusMessage", "status_message", "status_status_message"),
    "start": (
        *("start_unix_nano", "start_time_unix_nano", "Timestamp"),
        *("start_time", "start_timestamp", "timestamp"),
    ),
    "duration": ("duration_ns", "Duration", "duration_time_unix_nano"),
    "end": ("end_unix_nano", "end_time_unix_nano", "end_time", "end_timestamp"),
    "service": ("ServiceName", "service_name"),
    "scope": ("ScopeName", "scope_name", "otel_scope_name"),
    "version": ("ScopeVersion", "scope_version"),
    "attributes": ("SpanAttributes", "span_attributes", "attributes"),
    "resource": ("ResourceAttributes", "resource_attributes", "otel_resource_attributes"),
    "events": ("Events", "events", "events_json", "otel_events"),
    "links": ("Links", "links", "links_json", "otel_links"),
}
"""What a span has, and the names of columns that hold it; those of ClickHouse first."""

_NEEDED: Final = ("trace_id", "span_id", "name")
_OURS: Final = frozenset({"span_type", "run_id", "audit_seq", "node_id"})
"""Columns that only a table of our own layout has."""


def column_names(present: Mapping[str, str]) -> dict[str, str]:
    """Which column of a table holds what of a span, by the columns' names and types.

    >>> column_names({"TraceId": "VARCHAR", "x": "VARCHAR"})
    {'trace_id': 'TraceId'}
    """
    found: dict[str, str] = {}
    for what, names in _NAMES.items():
        column = next((name for name in names if name in present), None)
        if column is not None:
            found[what] = column
    return found


def is_foreign_table(present: Mapping[str, str]) -> bool:
    """Whether columns hold spans in somebody else's layout."""
    found = column_names(present)
    return all(what in found for what in _NEEDED) and (
        found["trace_id"] == "TraceId" or not (_OURS & present.keys())
    )


def holds_spans(present: Mapping[str, str]) -> bool:
    """Whether columns hold spans in any layout."""
    return all(what in column_names(present) for what in _NEEDED)


def read_table(
    connection: duckdb.DuckDBPyConnection,
    relation: str,
    present: Mapping[str, str],
    sink: RowSink,
    problems: Problems,
    source: str,
) -> None:
    """Read a relation of somebody else's layout into rows."""
    found = column_names(present)
    selected = ", ".join(
        f"{_selected(what, column, present[column])} AS {what}" for what, column in found.items()
    )
    nested = _nested_columns(present)
    selected += "".join(f', "{name}" AS "{name}"' for name in nested)
    reader = connection.sql(f"SELECT {selected} FROM {relation}").to_arrow_reader(BATCH_ROWS)
    for batch in cast(pa.RecordBatchReader, reader):
        for row in batch.to_pylist(maps_as_pydicts="lossy"):
            try:
                _add(row, sink, problems, source)
            except MALFORMED:
                problems.count(source, BAD_SPAN)
    sink.flush()


def _nested_columns(present: Mapping[str, str]) -> list[str]:
    """ClickHouse's nested columns where they are columns of their own, like `Events.Name`."""
    return [name for name in present if name.startswith(("Events.", "Links."))]


def _selected(what: str, column: str, kind: str) -> str:
    """A column in plain terms: times in nanoseconds, documents as JSON text."""
    quoted = '"' + column.replace('"', '""') + '"'
    if what in ("start", "end") and kind.startswith("TIMESTAMP"):
        return f"epoch_ns({quoted})"
    if what in ("attributes", "resource") or (what in ("events", "links") and kind != "VARCHAR"):
        return quoted if kind in ("VARCHAR", "JSON") else f"to_json({quoted})::VARCHAR"
    return quoted


def _add(row: Row, sink: RowSink, problems: Problems, source: str) -> None:
    trace_id, span_id = hex_id(_hex(row["trace_id"]), 32), hex_id(_hex(row["span_id"]), 16)
    if trace_id is None or span_id is None:
        problems.count(source, BAD_ID)
        return
    start = _nanos(row.get("start"))
    duration = row.get("duration")
    if duration is None:
        duration = max(_nanos(row.get("end")) - start, 0) if row.get("end") is not None else 0
    service = row.get("service") or None
    resource = _document(row.get("resource"))
    facts = SpanFacts(
        trace_id,
        span_id,
        hex_id(_hex(row.get("parent")), 16),
        row.get("trace_state") or None,
        str(row["name"]),
        kind_word(_word(row.get("kind"))),
        status_word(_word(row.get("status"))),
        row.get("message") or None,
        start // 1000,
        start,
        int(duration),
        service or (str(resource["service.name"]) if "service.name" in resource else None),
        row.get("scope") or None,
        row.get("version") or None,
        json_text(resource),
    )
    sink.add(
        facts,
        {key: _typed(key, value) for key, value in _document(row.get("attributes")).items()},
        events=[_event(event) for event in _items(row, "events", "Events.")],
        links=[_link(link) for link in _items(row, "links", "Links.")],
    )


def _hex(value: object) -> object:
    """An id as text; some keep it as bytes or as a UUID."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value).replace("-", "") if value is not None else None


def _word(value: object) -> object:
    """A kind or status in capitals, without the words before it."""
    return value.upper().rpartition("CODE_")[2] if isinstance(value, str) else value


def _nanos(value: object) -> int:
    if isinstance(value, datetime):
        return round(value.astimezone(UTC).timestamp() * 1e6) * 1000
    return int(str(value)) if value is not None else 0


def _document(value: object) -> dict[str, Any]:
    """A JSON object; text that is none raises one of `MALFORMED`."""
    found = json.loads(value) if isinstance(value, str) else value
    return cast("dict[str, Any]", found or {})


def _typed(key: str, value: object) -> object:
    """A value in the type of its attribute, where somebody made text of it.

    >>> _typed("twinspan.audit.seq", "3"), _typed("mine", "3")
    (3, '3')
    """
    attribute = c.CATALOGUE.get(key)
    if not isinstance(value, str) or attribute is None or attribute.type == "string":
        return value
    try:
        found = json.loads(value)
    except ValueError:
        return value
    if attribute.type == "double" and isinstance(found, int) and not isinstance(found, bool):
        return float(found)
    return cast(object, found)


def _items(row: Row, what: str, prefix: str) -> Iterator[dict[str, Any]]:
    """Events or links one by one, however they are nested; names in lower case."""
    value = row.get(what)
    found = json.loads(value) if isinstance(value, str) else value
    if found is None:
        found = {key.removeprefix(prefix): v for key, v in row.items() if key.startswith(prefix)}
    if isinstance(found, dict):  # lists side by side
        columns = cast("dict[str, list[Any]]", found)
        for values in zip(*(each or () for each in columns.values()), strict=False):
            yield _plain_names(dict(zip(columns, values, strict=True)))
    else:
        for item in cast("list[dict[str, Any]]", found):
            yield _plain_names(item)


def _plain_names(item: Mapping[str, Any]) -> dict[str, Any]:
    return {key.lower().replace("_", ""): value for key, value in item.items()}


def _event(event: Mapping[str, Any]) -> EventRow:
    at = event.get("unixnano", event.get("timeunixnano", event.get("timestamp")))
    return event_row(str(event.get("name", "")), _moment(at), _document(event.get("attributes")))


def _moment(value: object) -> int:
    """A time in nanoseconds: a number, or a date as JSON writes it."""
    if isinstance(value, str) and not value.isdigit():
        return _nanos(datetime.fromisoformat(value))
    return _nanos(value)


def _link(link: Mapping[str, Any]) -> LinkRow:
    return link_row(
        hex_id(_hex(link.get("traceid")), 32) or "",
        hex_id(_hex(link.get("spanid")), 16) or "",
        _document(link.get("attributes")),
    )
