"""Fits a revised answer, as a model wrote it, to the form of the answer that it replaces.

The next agent reads the answer by its form. A revision changes values; it adds no key, changes no
type, and leaves alone what a model cannot be shown.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from twinspan.instrumentation.errors import MalformedReply
from twinspan.instrumentation.narrowing import as_mapping, as_sequence

_FENCE: Final = "```"


def refit(answer: Any, revision: object) -> Any:
    """The answer with the values of a revision.

    Args:
        answer: the answer that is replaced: text, numbers, mappings, sequences, dataclasses,
            chat messages, in any nesting.
        revision: the revised answer; JSON text is read, unless the answer itself is text.

    Raises:
        MalformedReply: the revision has another form than the answer.

    >>> refit({"advice": "decline", "year": 3}, '{"advice": "approve"}')
    {'advice': 'approve', 'year': 3}
    >>> refit("decline", "approve")
    'approve'
    """
    return _refit(answer, _parsed(answer, revision), "")


def _parsed(answer: Any, revision: object) -> object:
    if not isinstance(revision, str):
        return revision
    text = _without_fence(revision.strip())
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        value = text
    if isinstance(answer, str):
        return value if isinstance(value, str) else text
    return value


def _without_fence(text: str) -> str:
    if not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text.removesuffix(_FENCE).partition("\n")[2].strip()


def _refit(old: Any, new: object, at: str) -> Any:
    if isinstance(old, bool) or old is None:
        return _same_kind(old, new, at)
    if isinstance(old, int | float):
        return _number(old, new, at)
    if isinstance(old, str):
        return _same_kind(old, new, at)
    if callable(getattr(old, "model_copy", None)):
        return _model(old, new, at)
    if dataclasses.is_dataclass(old) and not isinstance(old, type):
        return dataclasses.replace(cast(Any, old), **_fields(old, _named(new, at), at))
    items, mapping = as_sequence(old), as_mapping(old)
    if mapping is not None:
        return {**mapping, **_items(mapping, _named(new, at), at)}
    return old if items is None else _sequence(old, items, new, at)


def _same_kind(old: object, new: object, at: str) -> object:
    if new is None and old is None:
        return None
    if old is None or type(new) is type(old) or (isinstance(old, str) and isinstance(new, str)):
        return new
    raise _unfit(at)


def _number(old: int | float, new: object, at: str) -> int | float:
    if isinstance(new, bool) or not isinstance(new, int | float):
        raise _unfit(at)
    if isinstance(old, int) and not float(new).is_integer():
        raise _unfit(at)
    return int(new) if isinstance(old, int) else float(new)


def _named(new: object, at: str) -> Mapping[Any, object]:
    found = as_mapping(new)
    if found is None:
        raise _unfit(at)
    return found


def _items(old: Mapping[Any, Any], new: Mapping[Any, object], at: str) -> dict[Any, Any]:
    by_name = {str(key): key for key in old}
    if not {str(key) for key in new} <= set(by_name):
        raise _unfit(at)
    return {
        by_name[str(key)]: _refit(old[by_name[str(key)]], value, f"{at}/{key}")
        for key, value in new.items()
    }


def _fields(old: Any, new: Mapping[Any, object], at: str) -> dict[str, Any]:
    known = {each.name: getattr(old, each.name) for each in dataclasses.fields(old)}
    return _items(known, new, at)


def _model(old: Any, new: object, at: str) -> Any:
    """A pydantic model, such as a chat message: by its fields, or by its text alone."""
    if isinstance(new, str) and isinstance(getattr(old, "content", None), str):
        return old.model_copy(update={"content": new})
    names = cast("Mapping[str, object]", cast(Any, type(old)).model_fields)
    known = {name: getattr(old, name) for name in names}
    return old.model_copy(update=_items(known, _named(new, at), at))


def _sequence(old: Any, known: Sequence[object], new: object, at: str) -> Any:
    items = as_sequence(new)
    if items is None or len(items) != len(known):
        raise _unfit(at)
    fitted = [_refit(a, b, f"{at}/{k}") for k, (a, b) in enumerate(zip(known, items, strict=True))]
    make: Any = getattr(old, "_make", cast(Any, type(old)))
    return make(fitted)


def _unfit(at: str) -> MalformedReply:
    where = repr(at) if at else "the top"
    return MalformedReply(
        f"a revision has another form than the answer at {where}; "
        "ask for the whole answer, with the same keys and types"
    )
