"""Every option with its variable, default and meaning, read from where it is defined."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, get_args

from twinspan.instrumentation import settings
from twinspan.instrumentation.option_sources import variable


@dataclass(frozen=True, slots=True, kw_only=True)
class OptionDescription:
    """One option.

    Attributes:
        section: its section in a `twinspan.toml`.
        name: its key there, and its keyword.
        variable: its environment variable.
        default: its default as TOML has it; '' where it has none.
        kind: what it may be: a type, or its words.
        meaning: what it does.
    """

    section: str
    name: str
    variable: str
    default: str
    kind: str
    meaning: str


def described_options() -> tuple[OptionDescription, ...]:
    """All options, by section, in the order of their definition.

    >>> next(each for each in described_options() if each.name == "alpha").variable
    'TWINSPAN_BREAKER_ALPHA'
    """
    return tuple(
        each
        for name, section in settings.SECTIONS.items()
        for each in _described(name, section.options)
    )


def _described(section: str, options: type[Any]) -> Iterator[OptionDescription]:
    meanings = attribute_meanings(options)
    for field in dataclasses.fields(options):
        yield OptionDescription(
            section=section,
            name=field.name,
            variable=variable(section, field.name),
            default=_toml(field.default),
            kind=_kind(str(field.type)),
            meaning=meanings.get(field.name, ""),
        )


def attribute_meanings(owner: type[Any]) -> dict[str, str]:
    """What a class' docstring says of its attributes, by their names.

    >>> sorted(attribute_meanings(OptionDescription))[:2]
    ['default', 'kind']
    """
    _, _, listed = (inspect.getdoc(owner) or "").partition("Attributes:\n")
    entries = re.split(r"\n(?= {4}\w[\w, ]*:)", "\n" + listed.partition("\n\n")[0])
    found: dict[str, str] = {}
    for entry in filter(str.strip, entries):
        names, _, meaning = entry.strip().partition(":")
        for name in names.split(","):
            found[name.strip()] = " ".join(meaning.split())
    return found


def _toml(value: object) -> str:
    if value is None or value is dataclasses.MISSING:
        return ""
    if isinstance(value, tuple):
        return "[]"
    return f'"{value}"' if isinstance(value, str) else str(value)


_KINDS = {
    "tuple[Axis, ...]": "list of axes",
    "tuple[str, ...]": "list of globs",
    "tuple[Control, ...]": "list of controls",
    "tuple[object, ...]": "list of models",
    "object | None": "model or object",
    "int": "whole number",
    "float": "number",
    "Path": "path",
    "str": "text",
}


def _kind(annotation: str) -> str:
    plain = annotation.removesuffix(" | None")
    known = _KINDS.get(annotation) or _KINDS.get(plain)
    words = get_args(getattr(settings, plain, None))
    return known or ", ".join(f"`{word}`" for word in words)
