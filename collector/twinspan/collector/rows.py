"""Turns ended spans into rows of the record.

Spans of one kind carry the same attribute names in the same order. `RowBuilder` keeps the values
of such spans together as tuples and sorts them into columns once for a whole file, so that adding
a span costs no work per attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pyarrow as pa
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.trace import Link, SpanContext

from twinspan.collector.jsontext import json_text, valid_deep, valid_text
from twinspan.collector.schema import COLUMN_TYPES, PROMOTED_COLUMNS, SPAN_SCHEMA
from twinspan.instrumentation import conventions
from twinspan.instrumentation.span_attributes import plain_attributes

Column: TypeAlias = "pa.Array[Any]"
EventRow = Mapping[str, object]
LinkRow = Mapping[str, object]

# Its stubs have one overload for each type and none for the type in general.
_nulls: Final = cast("Callable[[int, pa.DataType], Column]", pa.nulls)


class SpanFacts(NamedTuple):
    """What a row says of a span besides its attributes, events and links.

    A tuple, since one is made for every span. Ids are lower-case hex (32 and 16 digits),
    `start_time` is in microseconds and the other times in nanoseconds; kind and status are
    OpenTelemetry's words; `resource_attributes` is JSON text.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    trace_state: str | None
    name: str
    kind: str
    status_code: str
    status_message: str | None
    start_time: int
    start_unix_nano: int
    duration_ns: int
    service_name: str | None
    scope_name: str | None
    scope_version: str | None
    resource_attributes: str
    dropped_attributes: int = 0
    dropped_events: int = 0
    dropped_links: int = 0


def event_row(name: str, unix_nano: int, attributes: Mapping[str, object]) -> EventRow:
    """An event as the record keeps it."""
    return {
        "name": name,
        "time": unix_nano // 1000,
        "unix_nano": unix_nano,
        "attributes": json_text(dict(attributes)),
    }


def link_row(trace_id: str, span_id: str, attributes: Mapping[str, object]) -> LinkRow:
    """A link as the record keeps it, with our relation and edge in fields of their own.

    >>> link_row("0" * 32, "1" * 16, {"twinspan.link.edge": "a->b", "x": 1})["edge"]
    'a->b'
    """
    rest = dict(attributes)
    relation = rest.pop(conventions.LINK_RELATION, None)
    edge = rest.pop(conventions.LINK_EDGE, None)
    return {
        "trace_id": trace_id,
        "span_id": span_id,
        "relation": None if relation is None else str(relation),
        "edge": None if edge is None else str(edge),
        "attributes": json_text(rest),
    }


class _Shape:
    """Spans that carry the same attribute names in the same order."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.rows: list[int] = []
        self.values: list[tuple[Any, ...]] = []
        prefix = conventions.ACTION_PREFIX
        self.promoted = [(i, key) for i, key in enumerate(keys) if key in PROMOTED_COLUMNS]
        self.actions = [
            (i, key.removeprefix(prefix)) for i, key in enumerate(keys) if key.startswith(prefix)
        ]
        placed = {i for i, _ in (*self.promoted, *self.actions)}
        self.rest = [(i, key) for i, key in enumerate(keys) if i not in placed]


class RowBuilder:
    """Gathers spans and gives them back as one Arrow table of `SPAN_SCHEMA`.

    An attribute whose value does not fit its column (somebody else's text under a number's
    name) is kept in the JSON rest, so nothing is lost and no span spoils a file.

    >>> builder = RowBuilder()
    >>> builder.add(
    ...     SpanFacts("0" * 32, "0" * 16, None, None, "n", "INTERNAL", "UNSET", None, 2, 2000, 9,
    ...               None, None, None, "{}"),
    ...     {"twinspan.node.id": "a", "twinspan.action.admit": True, "mine.x": 1},
    ... )
    >>> row = builder.table().to_pylist()[0]
    >>> row["node_id"], row["action_fields"], row["attributes"]
    ('a', [('admit', 'true')], '{"mine.x":1}')
    """

    def __init__(self) -> None:
        self._facts: list[SpanFacts] = []
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._events: dict[int, Sequence[EventRow]] = {}
        self._links: dict[int, Sequence[LinkRow]] = {}
        self._resources: dict[int, tuple[Resource, str, str | None]] = {}
        self._trace = (-1, "")

    def __len__(self) -> int:
        return len(self._facts)

    def add(
        self,
        facts: SpanFacts,
        attributes: Mapping[str, object],
        *,
        events: Sequence[EventRow] = (),
        links: Sequence[LinkRow] = (),
    ) -> None:
        """Add one span."""
        row = len(self._facts)
        self._facts.append(facts)
        if events:
            self._events[row] = events
        if links:
            self._links[row] = links
        keys = tuple(attributes)
        shape = self._shapes.get(keys)
        if shape is None:
            shape = self._shapes[keys] = _Shape(keys)
        shape.rows.append(row)
        shape.values.append(tuple(attributes.values()))

    def add_span(self, span: ReadableSpan) -> None:
        """Add one ended span of the SDK."""
        self.add(
            self._facts_of(span),
            plain_attributes(span),
            events=[_sdk_event(event) for event in span.events] if _has(span, "_events") else (),
            links=[_sdk_link(link) for link in span.links] if _has(span, "_links") else (),
        )

    def absorb(self, later: RowBuilder) -> None:
        """Add everything that another builder gathered, behind what is here."""
        offset = len(self._facts)
        self._facts += later._facts
        self._events |= {row + offset: value for row, value in later._events.items()}
        self._links |= {row + offset: value for row, value in later._links.items()}
        for keys, shape in later._shapes.items():
            mine = self._shapes.setdefault(keys, _Shape(keys))
            mine.rows += [row + offset for row in shape.rows]
            mine.values += shape.values

    @property
    def start_nanos(self) -> list[int]:
        """When each span started, in nanoseconds since 1970."""
        return [facts.start_unix_nano for facts in self._facts]

    def table(self) -> pa.Table:
        """Everything that was added, in that order."""
        columns = self._attribute_columns()
        facts = zip(*self._facts, strict=True) if self._facts else iter(())
        for name, values in zip(SpanFacts._fields, facts, strict=False):
            columns[name] = _fact_array(list(values), COLUMN_TYPES[name])
        for name, sparse in (("events", self._events), ("links", self._links)):
            if sparse:
                dense = [sparse.get(row) for row in range(len(self))]
                columns[name] = _array(dense, COLUMN_TYPES[name])
        return pa.Table.from_arrays(
            [
                columns[name] if name in columns else _nulls(len(self), kind)
                for name, kind in COLUMN_TYPES.items()
            ],
            schema=SPAN_SCHEMA,
        )

    def _attribute_columns(self) -> dict[str, Column]:
        count = len(self)
        dense: dict[str, list[Any]] = {}
        rest: dict[int, dict[str, object]] = {}
        actions: list[list[tuple[str, str]] | None] = [None] * count
        for shape in self._shapes.values():
            self._spread(shape, dense, rest)
            for row, values in zip(shape.rows, shape.values, strict=True) if shape.actions else ():
                actions[row] = [(name, json_text(values[i])) for i, name in shape.actions]
        columns = {
            PROMOTED_COLUMNS[key]: _fitting_array(key, values, rest)
            for key, values in dense.items()
        }
        columns["action_fields"] = _array(actions, COLUMN_TYPES["action_fields"])
        texts = [json_text(rest[row]) if row in rest else "{}" for row in range(count)]
        columns["attributes"] = pa.array(texts, pa.string())
        return columns

    def _spread(
        self, shape: _Shape, dense: dict[str, list[Any]], rest: dict[int, dict[str, object]]
    ) -> None:
        """Put the values of one shape into the columns and the rest."""
        by_key = list(zip(*shape.values, strict=True))
        if len(shape.rows) == len(self):
            dense.update((key, list(by_key[i])) for i, key in shape.promoted)
        for i, key in shape.promoted if len(shape.rows) < len(self) else ():
            column = dense.get(key)
            if column is None:
                column = dense[key] = [None] * len(self)
            for row, value in zip(shape.rows, by_key[i], strict=True):
                column[row] = value
        for row, values in zip(shape.rows, shape.values, strict=True) if shape.rest else ():
            rest[row] = {key: values[i] for i, key in shape.rest}

    def _facts_of(self, span: ReadableSpan) -> SpanFacts:
        context = cast(SpanContext, span.context)
        parent, scope, status = span.parent, span.instrumentation_scope, span.status
        start = span.start_time or 0
        state = context.trace_state
        resource_text, service = self._resource(span.resource)
        if context.trace_id != self._trace[0]:
            self._trace = (context.trace_id, f"{context.trace_id:032x}")
        # Past the named constructor, which costs as much as all of the rest.
        facts = (
            self._trace[1],
            f"{context.span_id:016x}",
            None if parent is None else f"{parent.span_id:016x}",
            state.to_header() if state else None,
            span.name,
            span.kind._name_,
            status.status_code._name_,
            status.description,
            start // 1000,
            start,
            (span.end_time or start) - start,
            service,
            None if scope is None else scope.name,
            None if scope is None else scope.version,
            resource_text,
            span.dropped_attributes,
            span.dropped_events,
            span.dropped_links,
        )
        return SpanFacts._make(facts)

    def _resource(self, resource: Resource) -> tuple[str, str | None]:
        """A resource as JSON text, and its service; each resource is written out once."""
        known = self._resources.get(id(resource))
        if known is None:
            # The resource itself is kept so that its id stays its own.
            service = resource.attributes.get("service.name")
            text = json_text(dict(resource.attributes))
            known = (resource, text, None if service is None else str(service))
            self._resources[id(resource)] = known
        return known[1], known[2]


def _has(span: ReadableSpan, name: str) -> bool:
    """Whether a span has events or links: its properties copy them, even where there are none."""
    inner = getattr(span, name, span)
    return inner is span or bool(inner)


def _sdk_event(event: Event) -> EventRow:
    return event_row(event.name, event.timestamp, event.attributes or {})


def _sdk_link(link: Link) -> LinkRow:
    context = link.context
    return link_row(f"{context.trace_id:032x}", f"{context.span_id:016x}", link.attributes or {})


_MISFITS: Final = (pa.ArrowException, TypeError, ValueError, OverflowError)
"""What Arrow raises for a value of another type, and for text with a lone surrogate."""


def _fact_array(values: list[Any], kind: pa.DataType) -> Column:
    """A column of facts; what is not of its type becomes text or 0, so that no file fails."""
    try:
        return _array(values, kind)
    except _MISFITS:
        as_text = pa.types.is_string(kind)
        return pa.array([_forced(value, as_text) for value in values], kind)


def _forced(value: object, as_text: bool) -> object:
    if as_text:
        return None if value is None else valid_text(str(value))
    return value if isinstance(value, int) and -(2**63) <= value < 2**63 else 0


def _array(values: list[Any], kind: pa.DataType) -> Column:
    try:
        return pa.array(values, kind)
    except UnicodeError:
        return pa.array([valid_deep(value) for value in values], kind)


def _fitting_array(key: str, values: list[Any], rest: dict[int, dict[str, object]]) -> Column:
    """A column; values that do not fit go to the rest of their span instead."""
    kind = COLUMN_TYPES[PROMOTED_COLUMNS[key]]
    if _fit(values, kind):
        try:
            return pa.array(values, kind)
        except _MISFITS:
            pass
    fitting: list[Any] = []
    for row, value in enumerate(values):
        cleaned = valid_deep(value)
        if not _fits(cleaned, kind):
            rest.setdefault(row, {})[key] = cleaned
            cleaned = None
        fitting.append(cleaned)
    return pa.array(fitting, kind)


def _fit(values: list[Any], kind: pa.DataType) -> bool:
    """Whether all values are of the column's type: Arrow itself would cut 0.5 to 0."""
    kinds = set(map(type, values))
    if pa.types.is_list(kind):
        inner: set[type] = set()
        for value in values:
            if isinstance(value, list | tuple):
                inner.update(map(type, cast("Sequence[object]", value)))
        return kinds <= _SEQUENCES and inner <= _ALLOWED[kind.value_type]
    return kinds <= _ALLOWED[kind]


def _fits(value: object, kind: pa.DataType) -> bool:
    if not _fit([value], kind):
        return False
    try:
        pa.array([value], kind)
    except _MISFITS:
        return False
    return True


_NOTHING: Final = type(None)
_SEQUENCES: Final[set[type]] = {list, tuple, _NOTHING}
_ALLOWED: Final[dict[pa.DataType, set[type]]] = {
    pa.string(): {str, _NOTHING},
    pa.int64(): {int, _NOTHING},
    pa.float64(): {float, int, _NOTHING},
    pa.bool_(): {bool, _NOTHING},
}
