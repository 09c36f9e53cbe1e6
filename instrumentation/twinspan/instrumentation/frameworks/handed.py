"""Who handed on what: edges are observed by the objects that travel along them."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, Final, cast

from twinspan.instrumentation.run import Parent

MOST_OBJECTS: Final = 20_000
"""Objects of one run that are remembered; the oldest beyond them are forgotten."""

_DEPTH: Final = 4
_ITEMS: Final = 200
_NEVER_OWN: Final = (bool, int, float, complex, bytes, Enum, type, type(None))


class Handed:
    """The objects that a run's steps handed on.

    What a step reads is compared by identity: an object that a step returned, or a part of it,
    is that step's wherever it turns up. Two steps that returned the very same object (Python
    keeps one copy of a literal) cannot be told apart by it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[int, tuple[Any, list[Parent]]] = {}
        self._latest: dict[str, Parent] = {}

    def note(self, answer: Any, parent: Parent, received: Any = None) -> None:
        """A step handed on its answer; what it received and passes on is its own from now on."""
        passed_on = {id(part) for part in _parts(received)}
        with self._lock:
            self._latest[parent.node] = parent
            for part in _parts(answer):
                _, parents = self._known.setdefault(id(part), (part, []))
                if id(part) in passed_on:
                    parents.clear()
                if all(known.task_id != parent.task_id for known in parents):
                    parents.append(parent)
            while len(self._known) > MOST_OBJECTS:
                del self._known[next(iter(self._known))]

    def parents_of(self, payload: Any) -> tuple[tuple[Parent, ...], bool]:
        """Whose objects a payload holds, and whether that is certain."""
        found: dict[str, Parent] = {}
        certain = True
        with self._lock:
            for part in _parts(payload):
                _, parents = self._known.get(id(part), (None, []))
                certain = certain and len(parents) < 2
                found.update({parent.task_id: parent for parent in parents})
        return tuple(found.values()), certain

    def latest(self, nodes: Iterable[str]) -> tuple[Parent, ...]:
        """The last executions of some nodes, of those that ran at all."""
        with self._lock:
            return tuple(self._latest[node] for node in nodes if node in self._latest)


def _parts(value: Any, depth: int = _DEPTH) -> Iterator[Any]:
    """A value and what it holds, as far as identity says anything about it."""
    if isinstance(value, _NEVER_OWN) or (isinstance(value, str) and len(value) < 2):
        return
    inner = list(_held(value))[:_ITEMS] if depth else []
    if not inner and isinstance(value, tuple | frozenset):
        return  # one empty tuple serves the whole process
    yield value
    for item in inner:
        yield from _parts(item, depth - 1)


def _kind(value: object) -> Any:
    return type(value)


def _held(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return cast("Iterable[Any]", value.values())
    if isinstance(value, list | tuple | set | frozenset):
        return cast("Iterable[Any]", value)
    kind = _kind(value)
    if dataclasses.is_dataclass(kind) or hasattr(kind, "model_fields"):
        return cast("Iterable[Any]", getattr(value, "__dict__", {}).values())
    return ()
