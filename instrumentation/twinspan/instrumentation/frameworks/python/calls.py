"""A call of a function as a payload, and back."""

from __future__ import annotations

import copy
import dataclasses
import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

_COLLECTIONS: Final[frozenset[Any]] = frozenset({list, tuple, set})
_RECEIVERS: Final = frozenset({"self", "cls"})


@dataclasses.dataclass(frozen=True, slots=True)
class Call:
    """Arguments of one call.

    Attributes:
        payload: them by parameter, as they were before the call; the object that a method
            belongs to is not among them.
        given: the objects themselves.
    """

    payload: dict[str, Any]
    given: dict[str, Any]
    _bound: inspect.BoundArguments
    _receiver: str | None

    @classmethod
    def of(
        cls, signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Call:
        """The call; defaults are part of what a function reads.

        Raises:
            TypeError: if the function cannot be called so.
        """
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        first = next(iter(bound.arguments), None)
        receiver = first if first in _RECEIVERS else None
        given = {key: value for key, value in bound.arguments.items() if key != receiver}
        return cls({key: snapshot(value) for key, value in given.items()}, given, bound, receiver)

    def again(self, function: Callable[..., Any], payload: Mapping[str, Any]) -> Any:
        """Call the function on another payload; what it alters is a copy."""
        bound = inspect.BoundArguments(self._bound.signature, dict(self._bound.arguments))
        bound.arguments.update({key: snapshot(value) for key, value in payload.items()})
        return function(*bound.args, **bound.kwargs)


def _kind(value: object) -> Any:
    return type(value)


def snapshot(value: Any) -> Any:
    """A value whose containers are copies, so that nobody else's changes are seen in it.

    Whatever is no plain container, a client or a lock, is the same object.

    >>> state = {"letter": ["Dear"], "client": print}
    >>> kept = snapshot(state)
    >>> state["letter"].append("Sir")
    >>> kept["letter"], kept["client"] is print
    (['Dear'], True)
    """
    kind = _kind(value)
    if kind is dict:
        return {key: snapshot(item) for key, item in value.items()}
    if kind in _COLLECTIONS:
        return kind(snapshot(item) for item in value)
    if not dataclasses.is_dataclass(kind) and not hasattr(kind, "model_copy"):
        return value
    kept = copy.copy(value)
    for name, item in list(getattr(kept, "__dict__", {}).items()):
        kept.__dict__[name] = snapshot(item)
    return kept
