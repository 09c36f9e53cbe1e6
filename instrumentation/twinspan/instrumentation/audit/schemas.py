"""Answers held against a JSON schema, of which the part that structured answers need is read.

A schema that uses anything else is refused rather than half obeyed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from twinspan.instrumentation.errors import ConfigurationError

Schema = Mapping[str, Any]

KEYWORDS: Final = (
    "type",
    "properties",
    "required",
    "additionalProperties",
    "enum",
    "minimum",
    "maximum",
    "items",
)
"""Keywords that are checked."""

ANNOTATIONS: Final = ("title", "description", "examples", "default", "$schema", "$id")
"""Keywords that say nothing about what is valid."""

_TYPES: Final = ("object", "array", "string", "integer", "number", "boolean", "null")


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """One way in which an answer does not fit.

    Attributes:
        pointer: where, as a JSON pointer; empty for the answer itself.
        keyword: the keyword that it does not fit.
        message: what was found and what was asked for.

    >>> print(violations({"grade": 9}, {"properties": {"grade": {"maximum": 5}}})[0])
    /grade: 9 is above 5
    """

    pointer: str
    keyword: str
    message: str

    def __str__(self) -> str:
        return f"{self.pointer or 'the answer'}: {self.message}"


def violations(answer: object, schema: Schema) -> tuple[Violation, ...]:
    """Everything in which an answer does not fit a schema; empty if it fits.

    As in JSON Schema, ``true`` is no number, and 2.0 is an integer.

    Args:
        answer: as JSON gives it: dictionaries, lists, texts, numbers, booleans, None.
        schema: of the supported keywords; see `check_schema`.

    >>> schema = {"type": "object", "required": ["admit"],
    ...           "properties": {"admit": {"type": "boolean"}}}
    >>> violations({"admit": True}, schema)
    ()
    >>> [violation.message for violation in violations({"admit": 1}, schema)]
    ['1 is no boolean']
    >>> [violation.keyword for violation in violations({}, schema)]
    ['required']
    """
    return tuple(_found(answer, schema, ""))


def check_schema(schema: Schema, *, where: str = "") -> None:
    """Refuse a schema that `violations` would not fully obey.

    Raises:
        ConfigurationError: it has a keyword or a type that is not supported.

    >>> check_schema({"type": "string", "pattern": "a+"})
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.ConfigurationError: the schema has the keyword 'pattern', \
which is not checked; use only type, properties, ...
    """
    place = f" at {where}" if where else ""
    for keyword in schema:
        if keyword not in (*KEYWORDS, *ANNOTATIONS):
            raise ConfigurationError(
                f"the schema has the keyword {keyword!r}{place}, which is not checked; use only "
                f"{', '.join(KEYWORDS)}"
            )
    for name in _types(schema):
        if name not in _TYPES:
            raise ConfigurationError(
                f"the schema has the type {name!r}{place}; take one of {', '.join(_TYPES)}"
            )
    if not isinstance(schema.get("additionalProperties", True), bool):
        raise ConfigurationError(f"additionalProperties{place} is to be true or false")
    for name, inner in _properties(schema).items():
        check_schema(inner, where=f"{where}/{name}")
    if "items" in schema:
        check_schema(schema["items"], where=f"{where}/items")


def _found(answer: object, schema: Schema, at: str) -> Iterator[Violation]:
    types = _types(schema)
    if types and not any(_is(answer, name) for name in types):
        yield Violation(pointer=at, keyword="type", message=f"{answer!r} is no {_or(types)}")
        return
    if "enum" in schema and not any(_equal(answer, value) for value in schema["enum"]):
        message = f"{answer!r} is none of {list(schema['enum'])!r}"
        yield Violation(pointer=at, keyword="enum", message=message)
    if _is(answer, "number"):
        yield from _out_of_range(cast(float, answer), schema, at)
    if isinstance(answer, Mapping):
        yield from _in_object(cast("Mapping[str, object]", answer), schema, at)
    if isinstance(answer, list) and "items" in schema:
        for place, item in enumerate(cast("list[object]", answer)):
            yield from _found(item, schema["items"], f"{at}/{place}")


def _out_of_range(number: float, schema: Schema, at: str) -> Iterator[Violation]:
    if "minimum" in schema and number < schema["minimum"]:
        message = f"{number!r} is below {schema['minimum']!r}"
        yield Violation(pointer=at, keyword="minimum", message=message)
    if "maximum" in schema and number > schema["maximum"]:
        message = f"{number!r} is above {schema['maximum']!r}"
        yield Violation(pointer=at, keyword="maximum", message=message)


def _in_object(answer: Mapping[str, object], schema: Schema, at: str) -> Iterator[Violation]:
    properties = _properties(schema)
    for name in schema.get("required", ()):
        if name not in answer:
            yield Violation(pointer=at, keyword="required", message=f"{name!r} is missing")
    for name, value in answer.items():
        if name in properties:
            yield from _found(value, properties[name], f"{at}/{name}")
        elif schema.get("additionalProperties") is False:
            message = f"{name!r} was not asked for"
            yield Violation(pointer=at, keyword="additionalProperties", message=message)


def _is(answer: object, name: str) -> bool:
    if isinstance(answer, bool):
        return name == "boolean"
    if name in ("integer", "number"):
        return _is_number(answer, whole=name == "integer")
    if name == "object":
        return isinstance(answer, Mapping)
    kinds: dict[str, type | tuple[type, ...]] = {"array": list, "string": str, "null": type(None)}
    return name in kinds and isinstance(answer, kinds[name])


def _is_number(answer: object, *, whole: bool) -> bool:
    if isinstance(answer, int):
        return True
    return (
        isinstance(answer, float) and math.isfinite(answer) and (not whole or answer.is_integer())
    )


def _equal(answer: object, value: object) -> bool:
    """Equality of JSON: true is not 1."""
    return isinstance(answer, bool) == isinstance(value, bool) and answer == value


def _types(schema: Schema) -> Sequence[str]:
    given: str | Sequence[str] = schema.get("type", ())
    return (given,) if isinstance(given, str) else tuple(given)


def _properties(schema: Schema) -> Mapping[str, Schema]:
    return cast("Mapping[str, Schema]", schema.get("properties", {}))


def _or(names: Sequence[str]) -> str:
    return " or ".join(names)
