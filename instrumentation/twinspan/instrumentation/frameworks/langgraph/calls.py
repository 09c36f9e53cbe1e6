"""Tasks of the functional API: nodes that another node's code calls.

A called task is a superstep of its own: its caller gets the answer only when it was decided.
Nobody declares who reads whose answer. An argument that is, or is a part of, what an earlier
task returned is an observed edge; where there is none, the tasks that had ended before and whose
answers nobody else has read stand in, inferred.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any, Final

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.edges import Origin
from twinspan.instrumentation.frameworks.langgraph.scope import GraphScope
from twinspan.instrumentation.narrowing import as_mapping, as_sequence
from twinspan.instrumentation.run import Parent

MOST_PARTS: Final = 1000
"""Parts of an argument or an answer that are looked at."""

# What Python keeps one copy of says nothing about where it comes from.
_SHARED: Final = (bool, int, float, type(None), type(Ellipsis))


class Calls:
    """The tasks that one execution has called.

    Args:
        scope: where they are observed.
    """

    def __init__(self, scope: GraphScope) -> None:
        self.scope = scope
        self._lock = threading.Lock()
        self._count = 0
        self._sources: dict[int, Parent] = {}
        # Keeps the parts alive: an id is only good as long as its object lives.
        self._kept: list[Any] = []
        self._unread: dict[str, Parent] = {}

    def number(self) -> int:
        """The number of a further call, from 1."""
        with self._lock:
            self._count += 1
            return self._count

    def origin_of(self, arguments: Any) -> Origin:
        """The earlier calls whose answers are among the arguments."""
        with self._lock:
            read = {
                parent.task_id: parent
                for part in _parts(arguments)
                if (parent := self._sources.get(id(part))) is not None
            }
            found = read or self._unread
            origin = Origin(parents=tuple(found.values()), observed=bool(read) or not found)
            for task_id in found:
                self._unread.pop(task_id, None)
            return origin

    def answered(self, parent: Parent, answer: Any) -> None:
        """Remember what a call returned."""
        with self._lock:
            self._unread[parent.task_id] = parent
            for part in _parts(answer):
                self._kept.append(part)
                self._sources[id(part)] = parent


def _parts(value: Any) -> Iterator[Any]:
    """A value and what it is made of, without what is the same object everywhere."""
    due: list[Any] = [value]
    for _ in range(MOST_PARTS):
        if not due:
            return
        part = due.pop()
        mapping, items = as_mapping(part), as_sequence(part)
        due.extend([] if mapping is None else mapping.values())
        due.extend(items or ())
        if not isinstance(part, _SHARED) and not (isinstance(part, str) and len(part) < 2):
            yield part


def returned(writes: Any) -> Any:
    """What a called task returned, among its writes."""
    return next((value for channel, value in writes if channel == names.RETURN), None)
