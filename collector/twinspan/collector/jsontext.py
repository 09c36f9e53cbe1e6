"""Attribute values as JSON text that every reader of the record accepts."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Final, cast

from twinspan.instrumentation.attributes import clean_text

_NO_LIMIT: Final = 2**31
"""Longer than any text in memory: cleaning here never cuts."""


def _plain(value: object) -> object:
    """What JSON has no form for: bytes as base64, a mapping as an object, the rest by its type."""
    if isinstance(value, bytes | bytearray):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return f"<{type(value).__qualname__}>"


_encode = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
).encode


def _finite(value: object) -> object:
    """The same value with every NaN and infinity as a string, which JSON can hold."""
    if isinstance(value, float):
        return value if value - value == 0 else str(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value)
        return {str(key): _finite(item) for key, item in items.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in cast("Sequence[object]", value)]
    return value


def valid_text(text: str) -> str:
    r"""The same text with every lone surrogate replaced; nothing is cut.

    >>> valid_text("a\ud800b")
    'a\ufffdb'
    """
    return text if text.isascii() else clean_text(text, _NO_LIMIT)


def valid_deep(value: object) -> object:
    """A value with every text in it made valid.

    >>> valid_deep(["a", 1, ("b",)])
    ['a', 1, ('b',)]
    """
    if isinstance(value, str):
        return valid_text(value)
    if isinstance(value, Mapping):
        items = cast("Mapping[str, object]", value)
        return {key: valid_deep(item) for key, item in items.items()}
    if isinstance(value, list):
        return [valid_deep(item) for item in cast("list[object]", value)]
    if isinstance(value, tuple):
        return tuple(valid_deep(item) for item in cast("tuple[object, ...]", value))
    return value


def json_text(value: object) -> str:
    """A value as JSON text.

    Keys stay as they are, dots included. NaN and infinities, for which JSON has no number,
    become strings; a lone surrogate becomes U+FFFD.

    >>> json_text({"a.b": 1, "c": [1.5, True]})
    '{"a.b":1,"c":[1.5,true]}'
    >>> json_text(float("nan"))
    '"nan"'
    """
    try:
        text = _encode(value)
    except (ValueError, TypeError):
        text = _encode(_finite(value))
    return valid_text(text)
