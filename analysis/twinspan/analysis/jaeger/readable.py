"""A recorded span as Jaeger shows it best, in the form of OTLP JSON.

Jaeger searches for whole values of tags, shows links without their attributes, corrects clocks
between hosts that it does not know, and complains of a parent that never came. What a reader must
see is therefore repeated as tags, and what would only raise a warning is left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from twinspan.analysis.dialects.otlp_values import KINDS, STATUSES
from twinspan.collector.otlp_json import any_value, key_values
from twinspan.collector.schema import PROMOTED_COLUMNS
from twinspan.instrumentation import conventions as c

Row = Mapping[str, Any]
Json = dict[str, Any]

MOST_TEXT: Final = 4096
"""Characters of a text that are sent: a batch that is too large is refused as a whole."""

LINKS_TAG: Final = "twinspan.links"
"""Tag that repeats a span's links in words, since Jaeger drops what they say."""

OUTSIDE_TAG: Final = "twinspan.parent.outside"
"""Tag that names a parent which is not in the record."""

_FIRST: Final = (
    c.BREAKER_DECISION,
    c.BREAKER_REASON,
    c.BREAKER_EDGE,
    c.BREAKER_ENFORCED,
    c.GEN_AI_EVALUATION_LABEL,
    c.PROBE_AXIS,
    c.NODE_ID,
    c.PROBE_ARM,
    c.RUN_OUTCOME,
    c.EFFECT_VALUE,
    c.EFFECT_P_VALUE,
    c.NETWORK_SCORE_FAST,
    c.MONITOR_VALUE,
)
"""What a reader looks for, in this order, before everything else."""

_HOST: Final = {"host.name": "recorded", "ip": "127.0.0.1"}
"""What stands for the host of a span that names none: one and the same for all of them."""

_FINE: Final = frozenset({"proceed", "within_floor"})
_STOPPED: Final = frozenset({"halt", "reroute", "escalate"})


def readable_span(row: Row, known: frozenset[str]) -> Json:
    """One row as a span of OTLP JSON.

    Args:
        row: a row of the view `spans`.
        known: ids of all spans of its trace, to tell a parent that is not there.
    """
    start = int(row["start_unix_nano"])
    parent = row["parent_span_id"]
    here = parent in known
    tags = dict(_tags(row))
    if parent and not here:
        tags[OUTSIDE_TAG] = parent
    span: Json = {
        "traceId": row["trace_id"],
        "spanId": row["span_id"],
        "name": row["name"],
        "kind": KINDS.index(row["kind"]) if row["kind"] in KINDS else 0,
        "startTimeUnixNano": str(start),
        "endTimeUnixNano": str(start + int(row["duration_ns"])),
        "attributes": key_values(tags),
        "events": [_event(event) for event in row["events"] or ()],
        "links": [_link(link) for link in row["links"] or () if here or not _inside(link, row)],
        "status": _status(row),
    }
    if here:
        span["parentSpanId"] = parent
    if row["trace_state"]:
        span["traceState"] = row["trace_state"]
    return span


def readable_resource(row: Row) -> Json:
    """A row's resource, with a host where it names none."""
    attributes = {**_HOST, **_parsed(row["resource_attributes"])}
    if row["service_name"]:
        attributes["service.name"] = row["service_name"]
    attributes.setdefault("service.name", "twinspan")
    return {"attributes": key_values({key: shortened(v) for key, v in attributes.items()})}


def shortened(value: object) -> object:
    """A value whose text is no longer than Jaeger takes; what was cut is counted.

    >>> shortened("x" * 5000)[-22:]
    ' [904 more characters]'
    """
    if isinstance(value, str) and len(value) > MOST_TEXT:
        return f"{value[:MOST_TEXT]} [{len(value) - MOST_TEXT} more characters]"
    if isinstance(value, list | tuple):
        return [shortened(item) for item in cast("Sequence[object]", value)]
    return value


def _tags(row: Row) -> Iterator[tuple[str, object]]:
    """All attributes of a span, those first that a reader looks for."""
    told = {name: row[column] for name, column in PROMOTED_COLUMNS.items()}
    fields: Mapping[str, str] = row["action_fields"] or {}
    told |= {f"{c.ACTION_PREFIX}{name}": _plain(value) for name, value in fields.items()}
    told |= _parsed(row["attributes"])
    links = [_in_words(link) for link in row["links"] or ()]
    if links:
        told[LINKS_TAG] = links
    for name in (*_FIRST, *(name for name in told if name not in _FIRST)):
        value = told.get(name)
        if value is not None:
            yield name, shortened(value)


def _status(row: Row) -> Json:
    """The recorded status; where none was set, whether a check was passed."""
    code, message = row["status_code"], row["status_message"] or ""
    decision, label = row["breaker_decision"], row["gen_ai_evaluation_score_label"]
    if decision in _STOPPED:
        stopped = f"{decision}: {row['breaker_reason'] or 'no reason recorded'}"
        code, message = "ERROR", message or stopped
    elif code == "UNSET" and (decision in _FINE or label in _FINE):
        code = "OK"
    return {"code": STATUSES.index(code) if code in STATUSES else 0, "message": message}


def _inside(link: Mapping[str, Any], row: Row) -> bool:
    """Whether a link stays in its trace: on a root it would be drawn as a parent."""
    return bool(link["trace_id"] == row["trace_id"])


def _in_words(link: Mapping[str, Any]) -> str:
    said = [str(link[name]) for name in ("relation", "edge") if link[name]]
    return " ".join([*said, str(link["span_id"])])


def _event(event: Mapping[str, Any]) -> Json:
    return {
        "name": event["name"] or "",
        "timeUnixNano": str(event["unix_nano"] or 0),
        "attributes": _entries(event["attributes"]),
    }


def _link(link: Mapping[str, Any]) -> Json:
    return {"traceId": link["trace_id"], "spanId": link["span_id"]}


def _entries(document: str | None) -> list[Json]:
    return [
        {"key": key, "value": any_value(shortened(value))}
        for key, value in _parsed(document).items()
    ]


def _parsed(document: str | None) -> dict[str, Any]:
    found = json.loads(document or "{}")
    return cast("dict[str, Any]", found) if isinstance(found, dict) else {}


def _plain(text: str) -> object:
    try:
        return cast(object, json.loads(text))
    except ValueError:
        return text
