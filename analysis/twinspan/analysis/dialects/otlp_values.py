"""OTLP JSON's typed values, ids, times and enumerations in plain terms.

Written for speed, since an import spends its time here: what is not of the expected shape raises
one of `MALFORMED`, and the reader counts the span it was in.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Final

MALFORMED: Final = (AttributeError, KeyError, TypeError, ValueError, IndexError)
"""What reading a document of another shape raises."""

Json = dict[str, Any]

KINDS: Final = ("UNSPECIFIED", "INTERNAL", "SERVER", "CLIENT", "PRODUCER", "CONSUMER")
"""OTLP's kinds of span by their number."""

STATUSES: Final = ("UNSET", "OK", "ERROR")
"""OTLP's status codes by their number."""

_INT64: Final = 2**63
_NOTHING: Final[Json] = {}


def _integer(value: Any) -> object:
    number = int(value)
    return number if -_INT64 <= number < _INT64 else str(number)


def _array(value: Json) -> object:
    return [any_value(item) for item in value.get("values", ())]


def _mapping(value: Json) -> object:
    return attributes_of(value.get("values", ()))


_VALUES: Final[dict[str, Callable[[Any], object]]] = {
    "stringValue": str,
    "intValue": _integer,
    "doubleValue": float,
    "boolValue": bool,
    "arrayValue": _array,
    "kvlistValue": _mapping,
    "bytesValue": str,
}


def any_value(value: Json) -> object:
    """A typed value as Python's; bytes stay the base64 text they are written as.

    >>> any_value({"intValue": "3"}), any_value({"doubleValue": "NaN"})
    (3, nan)
    >>> any_value({"arrayValue": {"values": [{"stringValue": "a"}, {"boolValue": True}]}})
    ['a', True]
    """
    for kind, content in value.items():
        return _VALUES.get(kind, str)(content)
    return None


def attributes_of(entries: Sequence[Json]) -> dict[str, object]:
    """A list of keys and values as a dict; a key without a value is left out.

    >>> attributes_of([{"key": "a", "value": {"stringValue": "x"}}, {"key": "b"}])
    {'a': 'x'}
    """
    attributes: dict[str, object] = {}
    for entry in entries:
        value = entry.get("value", _NOTHING)
        text = value.get("stringValue")
        if text is not None:
            attributes[entry["key"]] = text
            continue
        for kind, content in value.items():
            attributes[entry["key"]] = _VALUES.get(kind, str)(content)
    return attributes


@lru_cache(maxsize=4096)  # the spans of a trace repeat its id, and name each other
def hex_id(value: Any, digits: int) -> str | None:
    """An id in lower-case hex; None where it is empty, zero or neither hex nor base64.

    >>> hex_id("00F067AA0BA902B7", 16), hex_id("", 16)
    ('00f067aa0ba902b7', None)
    >>> hex_id("APBnqgupArc=", 16)
    '00f067aa0ba902b7'
    """
    if not isinstance(value, str) or not value:
        return None
    try:
        if len(value) == digits:
            octets = bytes.fromhex(value)
        else:
            # protobuf's own JSON writes bytes as base64, and some exporters left it at that.
            octets = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return None
    return octets.hex() if len(octets) * 2 == digits and any(octets) else None


def nanos(value: Any) -> int:
    """A time in nanoseconds; 0 where there is none.

    >>> nanos("17"), nanos(None)
    (17, 0)
    """
    return int(value) if value else 0


def _word(value: Any, words: Sequence[str], prefix: str) -> str:
    if isinstance(value, str) and not value.isdigit():
        return value.removeprefix(prefix)
    number = nanos(value)
    return words[number] if 0 <= number < len(words) else words[0]


@lru_cache(maxsize=64)
def kind_word(value: Any) -> str:
    """A span's kind in one word.

    >>> kind_word(3), kind_word("SPAN_KIND_SERVER"), kind_word(None)
    ('CLIENT', 'SERVER', 'UNSPECIFIED')
    """
    return _word(value, KINDS, "SPAN_KIND_")


@lru_cache(maxsize=64)
def status_word(value: Any) -> str:
    """A status code in one word.

    >>> status_word(2), status_word(None)
    ('ERROR', 'UNSET')
    """
    return _word(value, STATUSES, "STATUS_CODE_")
