"""Reads and writes a span's attributes where the SDK keeps them.

The SDK's public face checks every value anew and takes a lock for it, which costs more than all
else that happens to a span. What passes `clean_attributes` needs no second check, and a span that
nobody else holds needs no lock. Should the SDK keep its attributes elsewhere one day, the public
face is used instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, Span


def _dict_of(span: Any) -> dict[str, Any] | None:
    try:
        plain: Any = span._attributes._dict
    except AttributeError:
        return None
    return plain if type(plain) is dict else None  # pyright: ignore[reportUnknownVariableType]


def plain_attributes(span: ReadableSpan) -> Mapping[str, object]:
    """The attributes of a span as the dict that the SDK keeps, to be read only.

    >>> from opentelemetry.sdk.trace import TracerProvider
    >>> span = TracerProvider(shutdown_on_exit=False).get_tracer("t").start_span("s")
    >>> put_attributes(span, {"a": 1})
    >>> dict(plain_attributes(span)), dict(span.attributes)
    ({'a': 1}, {'a': 1})
    """
    plain = _dict_of(span)
    return plain if plain is not None else span.attributes or {}


def put_attributes(span: Span, cleaned: Mapping[str, Any]) -> None:
    """Put attributes on an open span.

    Args:
        span: a span of ours that nobody else writes to.
        cleaned: what `clean_attributes` gave.
    """
    plain = _dict_of(span)
    if plain is None:
        span.set_attributes(cleaned)
    else:
        plain.update(cleaned)
