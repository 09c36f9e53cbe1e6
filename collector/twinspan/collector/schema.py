"""The columns of a recorded span.

One row is one ended span. Every attribute that twinspan knows has a typed column of its own
(`conventions.PROMOTED`), the fields of actions share one map, and whatever else a span carries is
kept as JSON text under its own dotted names. A file may leave out columns in which it has no
value: readers take what is not there for NULL.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import pyarrow as pa

from twinspan.instrumentation import conventions

SCHEMA_VERSION_KEY: Final = "schema_version"
"""Key of the file metadata that says which set of names a file uses."""

ROW_GROUP_ROWS: Final = 20_000
"""Rows in a group: small enough to find one run at once, large enough to scan a million."""

_TIME: Final = pa.timestamp("us", tz="UTC")

_TYPES: Final[dict[conventions.ValueType, pa.DataType]] = {
    "string": pa.string(),
    "int": pa.int64(),
    "double": pa.float64(),
    "boolean": pa.bool_(),
    "string[]": pa.list_(pa.string()),
    "int[]": pa.list_(pa.int64()),
    "double[]": pa.list_(pa.float64()),
}

_IDENTITY: Final[dict[str, pa.DataType]] = {
    "trace_id": pa.string(),
    "span_id": pa.string(),
    "parent_span_id": pa.string(),
    "trace_state": pa.string(),
    "name": pa.string(),
    "kind": pa.string(),
    "status_code": pa.string(),
    "status_message": pa.string(),
    "start_time": _TIME,
    "start_unix_nano": pa.int64(),
    "duration_ns": pa.int64(),
    "service_name": pa.string(),
    "scope_name": pa.string(),
    "scope_version": pa.string(),
}

_EVENT: Final = pa.struct(
    [
        ("name", pa.string()),
        ("time", _TIME),
        ("unix_nano", pa.int64()),
        ("attributes", pa.string()),
    ]
)

_LINK: Final = pa.struct(
    [
        ("trace_id", pa.string()),
        ("span_id", pa.string()),
        ("relation", pa.string()),
        ("edge", pa.string()),
        ("attributes", pa.string()),
    ]
)

_REST: Final[dict[str, pa.DataType]] = {
    "action_fields": pa.map_(pa.string(), pa.string()),
    "attributes": pa.string(),
    "resource_attributes": pa.string(),
    "events": pa.list_(_EVENT),
    "links": pa.list_(_LINK),
    "dropped_attributes": pa.int32(),
    "dropped_events": pa.int32(),
    "dropped_links": pa.int32(),
}

REQUIRED_COLUMNS: Final = frozenset(
    {
        "trace_id",
        "span_id",
        "name",
        "kind",
        "status_code",
        "start_time",
        "start_unix_nano",
        "duration_ns",
        "dropped_attributes",
        "dropped_events",
        "dropped_links",
    }
)
"""Columns in which every row has a value."""

PROMOTED_COLUMNS: Final[dict[str, str]] = {
    attribute.name: attribute.column for attribute in conventions.PROMOTED
}
"""The column of each attribute that has one of its own, by the attribute's name."""

COLUMN_TYPES: Final[dict[str, pa.DataType]] = {
    **_IDENTITY,
    **{attribute.column: _TYPES[attribute.type] for attribute in conventions.PROMOTED},
    **_REST,
}
"""Every column in the order of the file; a column is never renamed or given another type."""

SPAN_SCHEMA: Final = pa.schema(
    [pa.field(name, kind, name not in REQUIRED_COLUMNS) for name, kind in COLUMN_TYPES.items()]
)
"""The schema of every recorded file."""


def with_all_columns(tables: Iterable[pa.Table]) -> pa.Table:
    """Tables of recorded spans, one after the other, with what they leave out as NULL.

    >>> some = SPAN_SCHEMA.empty_table().drop_columns(["run_id"])
    >>> with_all_columns([some]).schema.equals(SPAN_SCHEMA)
    True
    """
    every = pa.concat_tables([SPAN_SCHEMA.empty_table(), *tables], promote_options="permissive")
    return every.select(SPAN_SCHEMA.names).cast(SPAN_SCHEMA)
