"""Turns ended spans into rows of the record.

Spans of one kind carry the same attribute names in the same order. `RowBuilder` keeps the values
of such spans together as tuples and sorts them into columns once for a whole file, so that adding
a span costs no work per attribute.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pyarrow as pa
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, TraceState

from twinspan.collector.jsontext import json_text, valid_deep, valid_text
from twinspan.collector.schema import COLUMN_TYPES, PROMOTED_COLUMNS, SPAN_SCHEMA
from twinspan.instrumentation import conventions
from twinspan.instrumentation.span_attributes import plain_attributes
from twinspan.instrumentation.stamping import is_ours

Column: TypeAlias = "pa.Array[Any]"
EventRow = Mapping[str, object]
LinkRow = Mapping[str, object]

# Its stubs have one overload for each type and none for the type in general.
_nulls: Final = cast("Callable[[int, pa.DataType], Column]", pa.nulls)
_repeat: Final = cast("Callable[[object, int], Column]", pa.repeat)


_MOST: Final[dict[pa.DataType, int]] = {pa.int32(): 2**31, pa.int64(): 2**63}
"""The first number that a type cannot hold; what others sent may be anything."""


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
    """An event as the record keeps it; a time that no clock shows is 0.

    >>> event_row("e", 2**63, {})["unix_nano"]
    0
    """
    shown = unix_nano if abs(unix_nano) < _MOST[pa.int64()] else 0
    return {
        "name": name,
        "time": shown // 1000,
        "unix_nano": shown,
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


_SHORT: Final = frozenset(conventions.CATALOGUE) - conventions.CONTENT
"""Attributes whose text `clean_attributes` keeps short."""


class _Shape:
    """Spans that carry the same attribute names in the same order."""

    def __init__(self, keys: tuple[str, ...]) -> None:
        self.rows: list[int] = []
        # One span's values after the other's: a container for each span would be work for the
        # garbage collector.
        self.values: list[Any] = []
        self._width = len(keys)
        prefix = conventions.ACTION_PREFIX
        self.promoted = [(i, key) for i, key in enumerate(keys) if key in PROMOTED_COLUMNS]
        self.actions = [
            (i, key.removeprefix(prefix)) for i, key in enumerate(keys) if key.startswith(prefix)
        ]
        placed = {i for i, _ in (*self.promoted, *self.actions)}
        self.rest = [(i, key) for i, key in enumerate(keys) if i not in placed]
        self.unlimited = [i for i, key in enumerate(keys) if key not in _SHORT]
        self._kind_at = keys.index(conventions.SPAN_TYPE) if conventions.SPAN_TYPE in keys else None

    def kind(self) -> str:
        """What kind its first span is of; all others mostly are, too."""
        return "" if self._kind_at is None else str(self.values[self._kind_at])

    def column(self, place: int) -> list[Any]:
        """The values of one attribute."""
        return self.values[place :: self._width]

    def action_fields(self) -> list[list[tuple[str, str]] | None]:
        """The fields of each span's action as JSON text."""
        if not self.actions:
            return [None] * len(self.rows)
        return [
            [(name, json_text(value)) for name, value in pairs]
            for pairs in self._pairs(self.actions)
        ]

    def others(self) -> Iterator[dict[str, object]]:
        """What each span says that has no column of its own."""
        return map(dict, self._pairs(self.rest))

    def _pairs(self, some: Sequence[tuple[int, str]]) -> Iterator[list[tuple[str, Any]]]:
        names = [name for _, name in some]
        values = zip(*(self.column(i) for i, _ in some), strict=True)
        return (list(zip(names, each, strict=True)) for each in values)


class RowBuilder:
    """Gathers spans and gives them back as one Arrow table of `SPAN_SCHEMA`.

    Spans of one kind stand together in it, and among them those that carry the same names: whoever
    asks for one kind need not read what the others say, and a column that a kind does not use is
    one stretch of nothing.

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
        # None stands for the next span of `_kept`, where they lie one after the other.
        self._facts: list[SpanFacts | None] = []
        self._kept: list[Any] = []
        self._unread: dict[int, ReadableSpan] = {}
        self._shapes: dict[tuple[str, ...], _Shape] = {}
        self._events: dict[int, Sequence[EventRow]] = {}
        self._links: dict[int, Sequence[LinkRow]] = {}
        self._resources: dict[int, tuple[Resource, str, str | None]] = {}

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
        self._tell_more(row, events, links)
        self._add_values(row, attributes)

    def add_span(self, span: ReadableSpan, attributes: Mapping[str, object] | None = None) -> int:
        """Add one ended span of the SDK.

        What a row says of a span of ours is taken now and put into words when a table is asked
        for: seldom by the thread that ended it. An odd span must be read here, where it costs
        nothing but itself. Only a span with events or links is held itself: many waiting objects
        would be work for the garbage collector.

        Args:
            span: the span.
            attributes: its attributes, where they were read already.

        Returns:
            Characters of the text that the span holds beside its short labels.
        """
        row = len(self._facts)
        kept = _kept_of(span) if is_ours(span) else None
        if kept is None:
            self._facts.append(self._facts_of(span))
            self._tell_more(row, *_events_and_links(span))
        else:
            self._facts.append(None)
            self._kept += kept[:_KEPT]
            if kept[_KEPT] or kept[_KEPT + 1]:
                self._unread[row] = span
        return self._add_values(row, plain_attributes(span) if attributes is None else attributes)

    def _add_values(self, row: int, attributes: Mapping[str, object]) -> int:
        keys = tuple(attributes)
        shape = self._shapes.get(keys)
        if shape is None:
            shape = self._shapes[keys] = _Shape(keys)
        shape.rows.append(row)
        values = list(attributes.values())
        shape.values += values
        text = 0
        for place in shape.unlimited:
            value = values[place]
            if isinstance(value, str):
                text += len(value)
        return text

    def _tell_more(self, row: int, events: Sequence[EventRow], links: Sequence[LinkRow]) -> None:
        if events:
            self._events[row] = events
        if links:
            self._links[row] = links

    def _read_all(self) -> list[SpanFacts]:
        """The facts of every row."""
        self._read_unread()
        if self._kept:
            told = iter(self._facts_together(*self._kept_columns()))
            self._facts = [next(told) if facts is None else facts for facts in self._facts]
            self._kept.clear()
        return cast("list[SpanFacts]", self._facts)

    def _read_unread(self) -> None:
        """The events and links of every row."""
        for row, span in self._unread.items():
            self._tell_more(row, *_events_and_links(span))
        self._unread.clear()

    def _kept_columns(self) -> list[list[Any]]:
        return [self._kept[i::_KEPT] for i in range(_KEPT)]

    def absorb(self, later: RowBuilder) -> None:
        """Add everything that another builder gathered, behind what is here."""
        offset = len(self._facts)
        self._facts += later._facts
        self._kept += later._kept
        self._unread |= {row + offset: value for row, value in later._unread.items()}
        self._events |= {row + offset: value for row, value in later._events.items()}
        self._links |= {row + offset: value for row, value in later._links.items()}
        for keys, shape in later._shapes.items():
            mine = self._shapes.setdefault(keys, _Shape(keys))
            mine.rows += [row + offset for row in shape.rows]
            mine.values += shape.values

    def table(self) -> pa.Table:
        """Everything that was added, kind by kind."""
        shapes = sorted(self._shapes.values(), key=_Shape.kind)
        columns = self._attribute_columns(shapes)
        order = [row for shape in shapes for row in shape.rows]
        for name, values in zip(SpanFacts._fields, self._fact_columns(order), strict=False):
            columns[name] = _fact_array(values, COLUMN_TYPES[name])
        for name, sparse in (("events", self._events), ("links", self._links)):
            if sparse:
                dense = [sparse.get(row) for row in order]
                columns[name] = _array(dense, COLUMN_TYPES[name])
        # Most columns have no value: those of one type are one array.
        empty = {kind: _nulls(len(self), kind) for kind in set(COLUMN_TYPES.values())}
        return pa.Table.from_arrays(
            [
                columns[name] if name in columns else empty[kind]
                for name, kind in COLUMN_TYPES.items()
            ],
            schema=SPAN_SCHEMA,
        )

    def _fact_columns(self, order: Sequence[int]) -> Iterator[list[Any]]:
        """The facts of all rows in an order, column by column; none without a row."""
        if order and len(self._kept) == _KEPT * len(order):
            # Only spans of ours: no row of them is needed as one.
            self._read_unread()
            sorted_already = order == list(range(len(order)))
            for values in self._columns_together(*self._kept_columns()):
                yield values if sorted_already else [values[row] for row in order]
            return
        read = self._read_all()
        yield from map(list, zip(*[read[row] for row in order], strict=True))

    def _attribute_columns(self, shapes: Sequence[_Shape]) -> dict[str, Column]:
        """The columns of attributes, one shape after the other."""
        dense: dict[str, list[Any]] = {}
        rest: dict[int, dict[str, object]] = {}
        actions: list[list[tuple[str, str]] | None] = []
        done = 0
        for shape in shapes:
            self._append(shape, done, dense, rest)
            actions += shape.action_fields()
            done += len(shape.rows)
        for column in dense.values():
            column += [None] * (done - len(column))
        columns = {
            PROMOTED_COLUMNS[key]: _fitting_array(key, values, rest)
            for key, values in dense.items()
        }
        if any(shape.actions for shape in shapes):
            columns["action_fields"] = _array(actions, COLUMN_TYPES["action_fields"])
        texts = ["{}"] * done
        for row, values in rest.items():
            texts[row] = json_text(values)
        columns["attributes"] = _plain_array(texts, pa.string())
        return columns

    def _append(
        self,
        shape: _Shape,
        done: int,
        dense: dict[str, list[Any]],
        rest: dict[int, dict[str, object]],
    ) -> None:
        """Put the values of one shape behind the rows that are done."""
        for i, key in shape.promoted:
            column = dense.setdefault(key, [])
            column += [None] * (done - len(column))
            column += shape.column(i)
        if shape.rest:
            rest.update(enumerate(shape.others(), done))

    def _facts_of(self, span: ReadableSpan) -> SpanFacts:
        context = cast(SpanContext, span.context)
        (facts,) = self._facts_together(
            [span.name],
            [context.trace_id],
            [context.span_id],
            [context.trace_state],
            [span.parent],
            [span.instrumentation_scope],
            [span.status],
            [span.start_time],
            [span.end_time],
            [span.resource],
            [span.kind],
            [span.dropped_attributes],
            [span.dropped_events],
            [span.dropped_links],
        )
        return facts

    def _facts_together(self, *kept: Sequence[Any]) -> list[SpanFacts]:
        """The facts of many spans, as `_columns_together` takes them."""
        # Plain tuples: naming their fields would cost as much as all of the rest.
        return cast("list[SpanFacts]", list(zip(*self._columns_together(*kept), strict=True)))

    def _columns_together(
        self,
        names: Sequence[str],
        traces: Sequence[int],
        spans: Sequence[int],
        states: Sequence[TraceState | None],
        parents: Sequence[SpanContext | None],
        scopes: Sequence[InstrumentationScope | None],
        statuses: Sequence[Status],
        begun: Sequence[int | None],
        ended: Sequence[int | None],
        resources: Sequence[Resource],
        kinds: Sequence[SpanKind],
        *dropped: Sequence[int],
    ) -> list[list[Any]]:
        """The facts of many spans, column by column: what they share is told once."""
        starts = [start or 0 for start in begun]
        told_statuses = _each_once(lambda one: (one.status_code._name_, one.description), statuses)
        told_resources = _each_once(self._resource, resources)
        told_scopes = _each_once(
            lambda one: (None, None) if one is None else (one.name, one.version), scopes
        )
        return [
            _each_once("{:032x}".format, traces),
            [f"{span:016x}" for span in spans],
            _each_once(lambda one: None if one is None else f"{one.span_id:016x}", parents),
            _each_once(lambda one: one.to_header() if one else None, states),
            list(names),
            _each_once(lambda one: one._name_, kinds),
            [code for code, _ in told_statuses],
            [description for _, description in told_statuses],
            [start // 1000 for start in starts],
            starts,
            [(end or start) - start for end, start in zip(ended, starts, strict=True)],
            [service for _, service in told_resources],
            [name for name, _ in told_scopes],
            [version for _, version in told_scopes],
            [text for text, _ in told_resources],
            *map(list, dropped),
        ]

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


_INSIDE: Final = (
    "_name",
    "_context.trace_id",
    "_context.span_id",
    "_context.trace_state",
    "_parent",
    "_instrumentation_scope",
    "_status",
    "_start_time",
    "_end_time",
    "_resource",
    "_kind",
    "_attributes.dropped",
    "_events.dropped",
    "_links.dropped",
)
"""What is kept of an ended span, as the SDK keeps it: its public face takes three times as long."""

_KEPT: Final = len(_INSIDE)

_inside: Final[Callable[[ReadableSpan], tuple[Any, ...]]] = attrgetter(
    *_INSIDE, "_events._dq", "_links._dq"
)


def _kept_of(span: ReadableSpan) -> tuple[Any, ...] | None:
    """What the SDK keeps of a span, where it is kept as we know it."""
    try:
        return _inside(span)
    except AttributeError:
        return None


def _each_once(tell: Callable[[Any], Any], of: Sequence[Any]) -> list[Any]:
    """What is told of each object, asked once of one that occurs many times."""
    places = list(map(id, of))
    told = {place: tell(one) for place, one in dict(zip(places, of, strict=True)).items()}
    return [told[place] for place in places] if len(told) > 1 else [*told.values()] * len(places)


def _has(span: ReadableSpan, name: str) -> bool:
    """Whether a span has events or links: its properties copy them, even where there are none."""
    inner = getattr(span, name, span)
    return inner is span or bool(inner)


def _events_and_links(span: ReadableSpan) -> tuple[list[EventRow], list[LinkRow]]:
    return (
        [_sdk_event(event) for event in span.events] if _has(span, "_events") else [],
        [_sdk_link(link) for link in span.links] if _has(span, "_links") else [],
    )


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
        return pa.array([_forced(value, kind) for value in values], kind)


def _forced(value: object, kind: pa.DataType) -> object:
    if pa.types.is_string(kind):
        return None if value is None else valid_text(str(value))
    most = _MOST.get(kind, _MOST[pa.int64()])
    return value if isinstance(value, int) and -most <= value < most else 0


def _plain_array(values: list[Any], kind: pa.DataType) -> Column:
    """As Arrow makes it; a text that all rows say is converted once."""
    # Numbers are left out: 0.0 and -0.0 are equal, and not the same.
    if pa.types.is_string(kind) and values:
        first = values[0]
        if type(first) is str and first is values[-1] and values.count(first) == len(values):
            return _repeat(pa.scalar(first, kind), len(values))
    return pa.array(values, kind)


def _array(values: list[Any], kind: pa.DataType) -> Column:
    try:
        return _plain_array(values, kind)
    except UnicodeError:
        return pa.array([valid_deep(value) for value in values], kind)


def _fitting_array(key: str, values: list[Any], rest: dict[int, dict[str, object]]) -> Column:
    """A column; values that do not fit go to the rest of their span instead."""
    kind = COLUMN_TYPES[PROMOTED_COLUMNS[key]]
    if _fit(values, kind):
        try:
            return _plain_array(values, kind)
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
