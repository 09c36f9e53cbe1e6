"""A span of another instrumentation, and what one of the dialects makes of it."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, cast

from twinspan.collector.jsontext import json_text
from twinspan.instrumentation.hashing import PayloadHasher, canonical

Attributes = Mapping[str, object]

Role = Literal["graph", "chain", "step", "llm", "other"]
"""What a span stands for; a chain is a graph if it turns out to hold steps."""

LLM_OPERATIONS: Final = frozenset({"chat", "completion", "text_completion", "generate_content"})
"""`gen_ai.operation.name` of one call of a model."""

LONGEST_FIELD: Final = 200
"""Characters of a text that still counts as a field of an action; longer text is prose."""

# Runs of different traces and files are each other's replicates only if equal answers hash
# alike everywhere. The answers stand in the clear in the same spans, so a secret hides nothing.
_HASHER: Final = PayloadHasher(key=b"twinspan: payloads that others recorded")

_VOLATILE: Final = frozenset({"id", "response_metadata", "usage_metadata"})
_SEND: Final = re.compile(r"Send\(node='([^']+)'")
_COMMAND: Final = frozenset({"graph", "update", "resume", "goto"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignSpan:
    """The facts of a span that the rules need; times in nanoseconds since 1970.

    Attributes:
        error_type: the attribute `error.type`.
        exception: type of the last exception event.
        span_type: set on spans of our own.
        run_id: set on spans of our own, and on those that we stamped; so is `task_id`.
        node_id: set on spans of our own.
        probe: the probe that a span of our own is, or one that we stamped is in.
        links: spans that it links to.
    """

    trace_id: str
    span_id: str
    parent_span_id: str | None
    name: str
    scope_name: str
    start: int
    end: int
    status: str
    status_message: str | None = None
    error_type: str | None = None
    exception: str | None = None
    span_type: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    node_id: str | None = None
    probe: str | None = None
    links: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Payload:
    """What is kept of an input or output: enough to compare, not to read.

    Attributes:
        hash: equal for equal payloads, 32 hex characters.
        size: characters of its canonical text.
        fields: its short scalar fields as JSON text.
        jumps: nodes that it sends the run to, if it is a command.
        names: the nodes it names, if it is what a conditional edge answered.
    """

    hash: str
    size: int
    fields: Mapping[str, str]
    jumps: frozenset[str]
    names: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What a dialect says that a span means.

    Attributes:
        dialect: the dialect.
        role: what the span stands for.
        graph: name of the graph, for graphs and chains.
        node: name of the node, for steps.
        namespace: LangGraph's checkpoint namespace of the execution that the span belongs to.
        step: LangGraph's number of the superstep.
        triggers: LangGraph's channels that wake the node.
        is_agent: whether the dialect calls it an agent.
        sequential: whether only times tell which steps ran before which.
        source: the step that handed over, where it is named.
        targets: nodes named to run next.
        nodes: nodes of the static graph.
        edges: edges of the static graph.
        input: what went in, if it was captured.
        output: what came out, if it was captured.
        garbled: attributes that should have been JSON and were not.
        team: the team whose traces belong together.
        starts: whether a run of the team begins.
    """

    dialect: str
    role: Role = "other"
    graph: str | None = None
    node: str | None = None
    namespace: str | None = None
    step: int | None = None
    triggers: tuple[str, ...] = ()
    is_agent: bool = False
    sequential: bool = False
    source: str | None = None
    targets: frozenset[str] = frozenset()
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    input: Payload | None = None
    output: Payload | None = None
    model: str | None = None
    provider: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    conversation: str | None = None
    garbled: int = 0
    team: str | None = None
    starts: bool = False


_RANKS: Final = {"OpenInference": 0, "OpenInference agents": 0, "Traceloop": 1}
_LAST: Final = 2
"""Of those that only tell agents and calls, none is believed before another."""


def rank_of(reading: Reading) -> int:
    """Which of several dialects in one trace is believed: the lowest.

    >>> rank_of(Reading(dialect="OpenInference")) < rank_of(Reading(dialect="GenAI"))
    True
    """
    return _RANKS.get(reading.dialect, _LAST)


class Dialect(Protocol):
    """The rules of one instrumentation; a new one is a new module and a line in `DIALECTS`."""

    @property
    def name(self) -> str:
        """What it is called in messages."""
        ...

    def claims(self, span: ForeignSpan, attributes: Attributes) -> bool:
        """Whether a span is written in this dialect."""
        ...

    def read(self, span: ForeignSpan, attributes: Attributes) -> Reading:
        """What the span means; whatever its attributes hold, this raises nothing."""
        ...


@dataclass(slots=True)
class Json:
    """Reads attributes that hold JSON, and counts those that do not.

    >>> reader = Json()
    >>> reader.mapping('{"a": 1}'), reader.mapping('{"a": '), reader.mapping("[1]")
    ({'a': 1}, {}, {})
    >>> reader.garbled
    2
    """

    garbled: int = field(default=0)

    def mapping(self, value: object) -> Mapping[str, object]:
        """An object; empty where there is none."""
        if value is None:
            return {}
        if isinstance(value, str):
            value = self._parsed(value)
        if isinstance(value, dict):
            return cast("Mapping[str, object]", value)
        self.garbled += 1
        return {}

    def _parsed(self, value: str) -> object:
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return None


def loose(value: object) -> object:
    """JSON where it is JSON, else the text itself: payloads may be either.

    >>> loose('{"a": 1}'), loose("no")
    ({'a': 1}, 'no')
    """
    if isinstance(value, str):
        try:
            return cast(object, json.loads(value))
        except (ValueError, RecursionError):
            pass
    return value


def payload(value: object) -> Payload | None:
    """What is kept of a value; None for no value.

    >>> kept = payload({"admit": True, "why": "x" * 300, "notes": []})
    >>> kept.fields, kept.jumps
    ({'admit': 'true'}, frozenset())
    >>> payload(["Send(node='worker', arg={'item': 'x'})"]).names
    frozenset({'worker'})
    >>> payload({"graph": None, "update": {}, "resume": None, "goto": "writer"}).jumps
    frozenset({'writer'})
    """
    if value is None:
        return None
    try:
        plain = _settled(value)
        written = canonical(plain)
        return Payload(
            hash=_HASHER.of_text(written),
            size=len(written),
            fields=_fields(plain),
            jumps=_jumps(plain),
            names=_named(plain),
        )
    except RecursionError:
        return None


def _settled(value: object) -> object:
    """A value without what differs between equal messages."""
    if isinstance(value, dict):
        items = cast("dict[str, object]", value)
        is_message = "content" in items and ("type" in items or "role" in items)
        return {
            key: _settled(item)
            for key, item in items.items()
            if not (is_message and key in _VOLATILE)
        }
    if isinstance(value, list):
        return [_settled(item) for item in cast("list[object]", value)]
    return value


def _fields(value: object) -> Mapping[str, str]:
    """The short scalar fields of an object; of a command those of its update, and where it goes."""
    if not isinstance(value, dict):
        return {}
    items = cast("dict[str, object]", value)
    if items.keys() >= _COMMAND:
        update = items["update"]
        inner = cast("dict[str, object]", update) if isinstance(update, dict) else {}
        items = {**inner, "goto": items["goto"]}
    return {
        name: json_text(item)
        for name, item in items.items()
        if isinstance(item, bool | int | float)
        or (isinstance(item, str) and len(item) <= LONGEST_FIELD)
    }


def _jumps(value: object) -> frozenset[str]:
    """Where a command goes; one to a graph further out names nobody here."""
    if not isinstance(value, dict):
        return frozenset()
    items = cast("dict[str, object]", value)
    is_command = items.keys() >= _COMMAND and items["graph"] is None
    return _named(items["goto"]) if is_command else frozenset()


def _named(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(_SEND.findall(value) or [value])
    if isinstance(value, list):
        return frozenset[str]().union(*(_named(item) for item in cast("list[object]", value)))
    return frozenset()


def targets(output: Payload | None, *, is_node: bool, is_branch: bool) -> frozenset[str]:
    """The nodes that an output names to run next, by whose output it is.

    >>> targets(payload("worker"), is_node=False, is_branch=True)
    frozenset({'worker'})
    >>> targets(payload("worker"), is_node=True, is_branch=False)
    frozenset()
    """
    if output is None:
        return frozenset()
    return output.names if is_branch else output.jumps if is_node else frozenset()


def text(value: object) -> str | None:
    """A text that says something.

    >>> text("a"), text(""), text(3)
    ('a', None, None)
    """
    return value if isinstance(value, str) and value else None


def number(value: object) -> int | None:
    """A whole number of 64 bits, also one that was written as text.

    >>> number(3), number("3"), number(True), number("x"), number(10**30)
    (3, 3, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | str):
        return None
    try:
        found = int(value)
    except ValueError:
        return None
    return found if -(2**63) <= found < 2**63 else None


def texts(value: object) -> tuple[str, ...]:
    """The texts of a list, also one that was written as JSON.

    >>> texts(["a", 1]), texts('["b"]'), texts(None)
    (('a',), ('b',), ())
    """
    value = loose(value)
    if not isinstance(value, list | tuple):
        return ()
    return tuple(item for item in cast("Sequence[object]", value) if isinstance(item, str))
