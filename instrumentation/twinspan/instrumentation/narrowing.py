"""Narrowing of unknown values to containers of unknown contents, in one typed place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast


def as_mapping(value: object) -> Mapping[Any, object] | None:
    """The value as a mapping, or None.

    >>> as_mapping({"a": 1})
    {'a': 1}
    >>> as_mapping("a") is None
    True
    """
    return cast("Mapping[Any, object]", value) if isinstance(value, Mapping) else None


def as_sequence(value: object) -> Sequence[object] | None:
    """The value as a sequence of items, or None; text is not one.

    >>> as_sequence((1, 2))
    (1, 2)
    >>> as_sequence("ab") is None
    True
    """
    if isinstance(value, Sequence) and not isinstance(value, str | bytes | bytearray):
        return cast("Sequence[object]", value)
    return None
