"""The one gate through which values become span attributes.

OpenTelemetry drops or silently rewrites what it does not know: a `numpy.int64` becomes the
string "3", a lone surrogate makes a whole file unreadable, a 2**70 overflows an exporter. Every
value that twinspan writes passes `clean_attributes` first, so that what is recorded is what was
meant, or is absent with a reason.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, cast

from opentelemetry.util.types import AttributeValue

from twinspan.instrumentation import conventions

LABEL_LIMIT: Final = 1024
"""Characters kept of an ordinary string."""

CONTENT_LIMIT: Final = 32 * 1024
"""Characters kept of a prompt or an answer, when the content switch lets them out."""

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

Scalar = bool | int | float | str

_DOUBLES: Final = frozenset(
    name for name, attribute in conventions.CATALOGUE.items() if attribute.type == "double"
)

_SURROGATE: Final = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Absent:
    """A value that cannot be recorded, and why."""

    reason: str


def clean_text(text: str, limit: int = LABEL_LIMIT) -> str:
    r"""Text that every exporter and reader accepts: no lone surrogates, at most `limit` long.

    >>> clean_text("a\ud800b")
    'a\ufffdb'
    >>> clean_text("abcdef", limit=3)
    'abc'
    """
    cut = str(text[:limit])
    return cut if cut.isascii() else _SURROGATE.sub("\ufffd", cut)


def _clean_int(value: int) -> int | Absent:
    if INT64_MIN <= value <= INT64_MAX:
        return int(value)
    return Absent("integer_over_64_bit")


def _clean_float(value: float) -> float | Absent:
    if math.isnan(value):
        return Absent("nan")
    if math.isinf(value):
        return Absent("infinite")
    return float(value)


def clean_scalar(value: object, limit: int = LABEL_LIMIT) -> Scalar | Absent:
    """One plain bool, int, float or str, or the reason why there is none.

    Numpy scalars become Python's, an enum its value, bytes and other objects their type's name
    (their text could be content).

    >>> clean_scalar(True), clean_scalar(2), clean_scalar(0.5), clean_scalar("yes")
    (True, 2, 0.5, 'yes')
    >>> clean_scalar(float("nan"))
    Absent(reason='nan')
    >>> clean_scalar(2**70)
    Absent(reason='integer_over_64_bit')
    >>> clean_scalar(None)
    Absent(reason='none')
    """
    if isinstance(value, Enum):
        return clean_scalar(cast(object, value.value), limit)
    if value is None:
        return Absent("none")
    if isinstance(value, bool):
        return value
    if isinstance(value, int):
        return _clean_int(value)
    if isinstance(value, float):
        return _clean_float(value)
    if isinstance(value, str):
        return clean_text(value, limit)
    item = getattr(value, "item", None)
    if callable(item) and getattr(value, "ndim", None) == 0:
        return clean_scalar(item(), limit)
    return Absent(f"unsupported_type:{type(value).__name__}")


def _unify(scalars: Sequence[Scalar]) -> tuple[Scalar, ...]:
    """One type for a whole array: OpenTelemetry refuses mixed ones."""
    kinds = set(map(type, scalars))
    if len(kinds) <= 1:
        return tuple(scalars)
    if kinds == {int, float}:
        return tuple(map(float, scalars))
    return tuple(map(str, scalars))


def _clean_array(values: Iterable[object], limit: int) -> tuple[Scalar, ...] | Absent:
    cleaned = [clean_scalar(value, limit) for value in values]
    for scalar in cleaned:
        if isinstance(scalar, Absent):
            return Absent(f"array_element_{scalar.reason}")
    return _unify(cast(list[Scalar], cleaned))


def clean_value(value: object, limit: int = LABEL_LIMIT) -> AttributeValue | Absent:
    """A scalar or a homogeneous tuple, which OpenTelemetry keeps unchanged.

    >>> clean_value([1, 2.5])
    (1.0, 2.5)
    >>> clean_value([1, None])
    Absent(reason='array_element_none')
    >>> clean_value({"a": 1})
    Absent(reason='unsupported_type:dict')
    """
    if isinstance(value, list | tuple | set | frozenset):
        items = cast(Iterable[object], value)
        ordered = items if isinstance(value, list | tuple) else sorted(items, key=repr)
        return cast("AttributeValue | Absent", _clean_array(ordered, limit))
    tolist = getattr(value, "tolist", None)
    if callable(tolist) and getattr(value, "ndim", 0) == 1:
        return cast("AttributeValue | Absent", _clean_array(cast(list[object], tolist()), limit))
    return clean_scalar(value, limit)


def _is_plain_text(value: Any) -> bool:
    return type(value) is str and len(value) <= LABEL_LIMIT and value.isascii()


def _limit_of(key: str) -> int:
    return CONTENT_LIMIT if key in conventions.CONTENT else LABEL_LIMIT


def _was_cut(value: object, limit: int) -> bool:
    if isinstance(value, str):
        return len(value) > limit
    if isinstance(value, list | tuple):
        items = cast("list[object] | tuple[object, ...]", value)
        return any(isinstance(item, str) and len(item) > limit for item in items)
    return False


def clean_attributes(attributes: Mapping[str, Any]) -> dict[str, AttributeValue]:
    """Attributes that survive every exporter; what was cut or left out is named.

    `None` means "not known" and is simply left out. Any other value without a faithful
    form is left out and named in `twinspan.undefined` with its reason; text over the limit
    is cut and named in `twinspan.truncated`.

    >>> clean_attributes({"twinspan.effect.value": float("nan"), "twinspan.node.id": "a"})
    {'twinspan.node.id': 'a', 'twinspan.undefined': ('twinspan.effect.value=nan',)}
    """
    cleaned: dict[str, AttributeValue] = {}
    undefined: list[str] = []
    truncated: list[str] = []
    for key, value in attributes.items():
        # Nearly every value may pass as it is, and every span asks dozens of times: in place.
        kind: object = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is str:
            plain = len(value) <= LABEL_LIMIT and value.isascii()
        elif kind is float:
            plain = value - value == 0.0  # neither infinite nor NaN
        elif kind is int:
            plain = INT64_MIN <= value <= INT64_MAX
            if key in _DOUBLES:
                value = float(value)  # a number must not change its type on the way to a file
        elif kind is tuple:
            plain = all(map(_is_plain_text, value))
        elif value is None:
            continue
        else:
            plain = kind is bool
        if plain:
            cleaned[key] = value
            continue
        limit = _limit_of(key)
        result = clean_value(value, limit)
        if isinstance(result, Absent):
            undefined.append(f"{key}={result.reason}")
            continue
        cleaned[key] = result
        if _was_cut(value, limit):
            truncated.append(key)
    if undefined:
        cleaned[conventions.UNDEFINED] = tuple(undefined)
    if truncated:
        cleaned[conventions.TRUNCATED] = tuple(truncated)
    return cleaned
