"""Walks the text of any payload and rebuilds only the containers whose text changed.

Known containers are dictionaries, lists, tuples (named ones stay what they are), sets,
deques, dataclasses and pydantic models, hence LangChain messages. Everything else, keys
included, passes through as the same object. Pydantic is recognised by its shape and never
imported.
"""

from __future__ import annotations

import copy
import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any, Final

from twinspan.instrumentation.errors import PerturbationError

MAX_DEPTH: Final = 100
"""Containers inside containers that are followed before the payload is refused."""

Visit = Callable[[str, str], str]
"""Takes a leaf's pointer and text, gives its new text."""

_MESSAGE_PLUMBING: Final = frozenset(
    {"id", "type", "role", "tool_call_id", "response_metadata", "usage_metadata"}
)
_BLOCK_PLUMBING: Final = frozenset(
    {
        *("id", "type", "name", "call_id", "tool_use_id", "file_id", "mime_type", "media_type"),
        *("data", "base64", "url", "image_url", "signature", "encrypted_content"),
    }
)
_BLOCK_TYPES: Final = frozenset(
    {
        *("text", "input_text", "output_text", "text-plain", "thinking", "reasoning"),
        *("image", "image_url", "input_image", "audio", "input_audio", "video", "file"),
        *("tool_call", "tool_use", "tool_result", "function", "function_call", "refusal"),
    }
)


def map_text(payload: object, visit: Visit) -> Any:
    """Rebuild a payload with every text leaf passed through ``visit``.

    What does not change keeps its identity, down to single containers; the payload itself is
    never altered. Objects are copied, not constructed again: no validator and no
    ``__post_init__`` runs. Members of an ``Enum``, identifiers and roles of chat messages,
    names of tools and embedded files (``data:`` URLs, binary content blocks) are not text.

    Args:
        payload: any object.
        visit: called once per leaf in document order, with an RFC 6901 JSON pointer and the
            text. Fields of objects are addressed by name; members of a set by their rank in
            sorted order, since a set has no order of its own.

    Returns:
        The payload itself when no text changed, else its rebuilt twin of the same type.

    Raises:
        PerturbationError: the payload contains itself, or is nested deeper than
            :data:`MAX_DEPTH`.

    >>> map_text({"he": ("he wins", 3)}, lambda pointer, text: text.upper())
    {'he': ('HE WINS', 3)}
    """
    return _Walk(visit).value(payload, "")


def text_leaves(payload: object) -> list[tuple[str, str]]:
    """Every text leaf as ``(pointer, text)``, in document order.

    >>> text_leaves({"a/b": ["x", 1], "c": "y"})
    [('/a~1b/0', 'x'), ('/c', 'y')]
    """
    if type(payload) is str:
        return [] if _is_embedded_file(payload) else [("", payload)]
    found: list[tuple[str, str]] = []

    def note(pointer: str, text: str) -> str:
        found.append((pointer, text))
        return text

    map_text(payload, note)
    return found


class _Walk:
    """One descent: what to do with text, and which containers are open above us."""

    __slots__ = ("_open", "visit")

    def __init__(self, visit: Visit) -> None:
        self.visit = visit
        self._open: set[int] = set()

    def value(self, value: Any, pointer: str) -> Any:
        handler = _handler(_type(value))
        if handler is None:
            return value
        if handler is _text:
            return _text(self, value, pointer)
        key = id(value)
        self._enter(key, pointer)
        try:
            return handler(self, value, pointer)
        finally:
            self._open.discard(key)

    def _enter(self, key: int, pointer: str) -> None:
        if key in self._open:
            raise PerturbationError(
                f"the payload contains itself at {pointer!r}; hand over a payload without cycles"
            )
        if len(self._open) >= MAX_DEPTH:
            raise PerturbationError(
                f"the payload is nested deeper than {MAX_DEPTH} levels at {pointer[:80]!r}; "
                "hand over the part that holds text"
            )
        self._open.add(key)

    def items(self, values: Iterable[Any], pointer: str) -> list[Any]:
        return [self.value(item, f"{pointer}/{index}") for index, item in enumerate(values)]

    def changed(
        self, entries: Iterable[tuple[Any, str, Any]], pointer: str, skip: frozenset[str]
    ) -> dict[Any, Any]:
        """The new values of those (key, token, value) entries whose text changed."""
        changed: dict[Any, Any] = {}
        for key, token, old in entries:
            if key in skip:
                continue
            new = self.value(old, f"{pointer}/{token}")
            if new is not old:
                changed[key] = new
        return changed


_Handler = Callable[[_Walk, Any, str], Any]
_NOTHING: Final[frozenset[str]] = frozenset()


@lru_cache(maxsize=512)
def _handler(kind: type[Any]) -> _Handler | None:
    """How values of a type are walked; ``None`` for types that are left alone."""
    if issubclass(kind, Enum):
        return None
    if _is_model(kind):
        return _message if {"content", "type"} <= _model_fields(kind).keys() else _model
    if dataclasses.is_dataclass(kind):
        return _dataclass
    for base, handler in _HANDLERS:
        if issubclass(kind, base):
            return handler
    return None


def _type(value: object) -> Any:
    return type(value)


def _is_model(kind: type[Any]) -> bool:
    return isinstance(getattr(kind, "model_fields", None), Mapping) and hasattr(kind, "model_copy")


def _model_fields(kind: type[Any]) -> Mapping[str, object]:
    fields: Mapping[str, object] = getattr(kind, "model_fields")  # noqa: B009 - known by shape
    return fields


def _text(walk: _Walk, value: str, pointer: str) -> str:
    if _is_embedded_file(value):
        return value
    new = walk.visit(pointer, value)
    if new == value:
        return value
    return new if type(value) is str else _retyped(str, value, new)


def _is_embedded_file(text: str) -> bool:
    return text.startswith("data:") and ";base64," in text[:200]


def _retyped(base: Any, original: Any, content: Any) -> Any:
    """New content in the exact type of the original, its constructor not called."""
    new = base.__new__(type(original), content)
    if attributes := getattr(original, "__dict__", None):
        new.__dict__.update(attributes)
    return new


def _same(old: Iterable[Any], new: Iterable[Any]) -> bool:
    return all(before is after for before, after in zip(old, new, strict=True))


def _list(walk: _Walk, value: list[Any], pointer: str) -> list[Any]:
    items = walk.items(value, pointer)
    if _same(value, items):
        return value
    new = copy.copy(value)
    new[:] = items
    return new


def _tuple(walk: _Walk, value: tuple[Any, ...], pointer: str) -> tuple[Any, ...]:
    items = walk.items(value, pointer)
    if _same(value, items):
        return value
    twin: tuple[Any, ...] = tuple(items) if type(value) is tuple else _retyped(tuple, value, items)
    return twin


def _deque(walk: _Walk, value: deque[Any], pointer: str) -> deque[Any]:
    items = walk.items(value, pointer)
    if _same(value, items):
        return value
    new = copy.copy(value)
    new.clear()
    new.extend(items)
    return new


def _set(walk: _Walk, value: set[Any] | frozenset[Any], pointer: str) -> Any:
    # Sorted, because the order of a set depends on the process's hash seed.
    members = sorted(value, key=lambda member: (type(member).__name__, repr(member)))
    items = walk.items(members, pointer)
    if _same(members, items):
        return value
    if isinstance(value, frozenset):
        return _retyped(frozenset, value, items)
    new = copy.copy(value)
    new.clear()
    new.update(items)
    return new


def _dict(walk: _Walk, value: dict[Any, Any], pointer: str) -> dict[Any, Any]:
    changed = walk.changed(_dict_entries(value), pointer, _dict_plumbing(value))
    if not changed:
        return value
    new = copy.copy(value)
    for key, item in changed.items():
        new[key] = item
    return new


def _dict_entries(value: dict[Any, Any]) -> Iterator[tuple[Any, str, Any]]:
    taken = {key for key in value if isinstance(key, str)}
    for key, item in value.items():
        if isinstance(key, str):
            yield key, escape_token(key), item
            continue
        token = repr(key)
        while token in taken:  # 1 and "1" are two keys and need two pointers
            token += "'"
        taken.add(token)
        yield key, escape_token(token), item


def _dict_plumbing(value: dict[Any, Any]) -> frozenset[str]:
    """Keys that hold no wording, if the dictionary is a chat message or a content block."""
    kind = value.get("type")
    if isinstance(kind, str) and kind in _BLOCK_TYPES:
        return _BLOCK_PLUMBING
    return _MESSAGE_PLUMBING if "role" in value and "content" in value else _NOTHING


def escape_token(key: str) -> str:
    """A key as one reference token of an RFC 6901 JSON pointer.

    >>> escape_token("a/b~c")
    'a~1b~0c'
    """
    return key.replace("~", "~0").replace("/", "~1")


def _dataclass(walk: _Walk, value: Any, pointer: str) -> Any:
    entries = (
        (field.name, field.name, getattr(value, field.name))
        for field in dataclasses.fields(value)
        if hasattr(value, field.name)
    )
    changed = walk.changed(entries, pointer, _NOTHING)
    if not changed:
        return value
    new = copy.copy(value)
    for name, item in changed.items():
        object.__setattr__(new, name, item)  # a frozen class refuses the ordinary way
    return new


def _model(walk: _Walk, value: Any, pointer: str) -> Any:
    return _copied_model(walk, value, pointer, _NOTHING)


def _message(walk: _Walk, value: Any, pointer: str) -> Any:
    return _copied_model(walk, value, pointer, _MESSAGE_PLUMBING)


def _copied_model(walk: _Walk, value: Any, pointer: str, skip: frozenset[str]) -> Any:
    names = [*_model_fields(_type(value)), *(getattr(value, "model_extra", None) or ())]
    entries = (
        (name, escape_token(name), getattr(value, name)) for name in names if hasattr(value, name)
    )
    changed = walk.changed(entries, pointer, skip)
    return value.model_copy(update=changed) if changed else value


_HANDLERS: Final[tuple[tuple[type | tuple[type, ...], _Handler], ...]] = (
    (str, _text),
    (dict, _dict),
    (list, _list),
    (tuple, _tuple),
    (deque, _deque),
    ((set, frozenset), _set),
)
