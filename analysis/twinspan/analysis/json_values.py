"""Any value in JSON's terms."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any, cast


def json_value(value: object) -> Any:
    """A value that every JSON reader takes: no NaN, no infinity, no object of ours.

    Dataclasses become objects, times ISO texts, arrays and numbers of numpy lists and numbers;
    anything else becomes its text.

    >>> json_value({"at": date(2026, 1, 2), "x": (1, float("nan"))})
    {'at': '2026-01-02', 'x': [1, None]}
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, datetime | date):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        # Not asdict: it copies values, and a read-only mapping cannot be copied.
        return {field.name: json_value(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value)
        return {str(key): json_value(item) for key, item in items.items()}
    if isinstance(value, list | tuple | Set):
        return [json_value(item) for item in cast("Iterable[object]", value)]
    return _of_foreign(value)


def _of_foreign(value: object) -> Any:
    """Numbers and arrays of libraries know their plain form; the rest has only its text."""
    plain = getattr(value, "tolist", None)
    return json_value(plain()) if callable(plain) else str(value)


def finite_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row in which numbers that are none, NaN and infinities, are None.

    >>> finite_row({"delta": float("nan"), "p": 0.5})
    {'delta': None, 'p': 0.5}
    """
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in row.items()
    }
