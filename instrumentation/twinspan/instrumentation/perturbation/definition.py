"""Reads the plain data of an axis, strictly: an unknown key is an error, not a comment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypedDict, cast

from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.perturbation.vocabulary import PLACEHOLDER, Slot


class AxisFields(TypedDict):
    """The fields of an axis, checked."""

    name: str
    groups: tuple[str, ...]
    slots: tuple[Slot, ...]
    ignore: tuple[str, ...]
    language: str


_AXIS_KEYS: Final = ("name", "groups", "language", "ignore", "paired", "free")
_SLOT_KEYS: Final = ("name", "neutral", "proxy", "role", "part", "case", "templates")


def parse_axis(mapping: Mapping[str, Any]) -> AxisFields:
    """The fields of an axis from a mapping of strings, lists and tables.

    Keys: ``name``, ``groups``, optional ``language`` and ``ignore``, and any number of tables
    in ``paired`` and ``free``. A table lists words under the name of each group, and may say
    ``name``, ``neutral``, ``proxy`` (true for words that only hint at the attribute),
    ``role``, ``part``, ``case`` and ``templates``.

    Raises:
        ConfigurationError: a key is missing or unknown, or a value has the wrong type.

    >>> fields = parse_axis({"name": "tone", "groups": ["warm", "cool"],
    ...                      "paired": [{"warm": "hi", "cool": "hello"}]})
    >>> fields["slots"][0].forms
    {'warm': ('hi',), 'cool': ('hello',)}
    """
    name = _text(mapping.get("name"), "the name of an axis")
    where = f"axis {name!r}"
    _refuse_unknown(mapping, _AXIS_KEYS, where)
    groups = _texts(mapping.get("groups"), f"{where}: groups")
    if taken := sorted(set(groups) & set(_SLOT_KEYS)):
        raise ConfigurationError(
            f"{where} has a group {taken[0]!r}, which is a key of its tables; rename the group"
        )
    slots = [
        _slot(table, groups, free=kind == "free", where=f"{where}, {kind} table {number}")
        for kind in ("paired", "free")
        for number, table in enumerate(as_tables(mapping.get(kind, ()), f"{where}: {kind}"), 1)
    ]
    return AxisFields(
        name=name,
        groups=groups,
        slots=tuple(slots),
        ignore=_texts(mapping.get("ignore", ()), f"{where}: ignore"),
        language=_text(mapping.get("language", "en"), f"{where}: language"),
    )


def _slot(table: Mapping[str, Any], groups: tuple[str, ...], *, free: bool, where: str) -> Slot:
    _refuse_unknown(table, (*_SLOT_KEYS, *groups), where)
    forms = {group: _texts(table[group], f"{where}: {group}") for group in groups if group in table}
    proxy = table.get("proxy", False)
    if not isinstance(proxy, bool):
        raise ConfigurationError(f"{where}: proxy is {proxy!r}; give true or false")
    return Slot(
        name=_text(table.get("name", where), f"{where}: name"),
        forms=forms,
        neutral=_texts(table.get("neutral", ()), f"{where}: neutral"),
        free=free,
        kind="proxy_swap" if proxy else "attribute_swap",
        role=table.get("role"),
        part=table.get("part", "other"),
        case=table.get("case", "any"),
        templates=_texts(table.get("templates", PLACEHOLDER), f"{where}: templates"),
    )


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            listed = ", ".join(map(repr, known))
            raise ConfigurationError(f"{where} has the unknown key {key!r}; known keys: {listed}")


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ConfigurationError(f"{where} is {value!r}; give a string")
    return value


def _texts(value: object, where: str) -> tuple[str, ...]:
    """One string or a list of strings, as a tuple."""
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple):
        return tuple(_text(item, where) for item in cast("Iterable[object]", value))
    raise ConfigurationError(f"{where} is {value!r}; give a string or a list of strings")


def as_tables(value: object, where: str) -> list[Mapping[str, Any]]:
    """A value as the list of tables it has to be.

    Raises:
        ConfigurationError: it is something else; ``where`` says what was read.
    """
    tables = list(cast("Iterable[object]", value)) if isinstance(value, list | tuple) else [value]
    if not all(isinstance(table, Mapping) for table in tables):
        raise ConfigurationError(f"{where} is {value!r}; give a list of tables")
    return cast("list[Mapping[str, Any]]", tables)
