"""The chunks that a node streams while it runs: they wait for the decision about it.

A chunk is kept until the task that put it in is decided. Around the task's graph may be another
node: there it waits again. Of a payload that was stopped or replaced nothing is shown.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from langchain_core.messages import BaseMessage

from twinspan.instrumentation.narrowing import as_sequence

MESSAGES: Final = "messages"
"""The mode of a stream in which a message comes with what is known about its origin."""

_numbers: Final = itertools.count()
_deciding: Final = threading.Lock()  # one for all tasks: it is held for an append


class ChunkQueue(Protocol):
    """Where the chunks of a graph wait for whoever iterates over its stream."""

    @property
    def owner(self) -> ChunksOfTask | None:
        """The task that runs the graph; None for a root graph."""
        ...

    def deliver(self, item: Any) -> None:
        """Put a chunk in, from whatever thread."""
        ...


@dataclass(frozen=True, slots=True)
class Chunk:
    """One chunk on its way; the numbers tell which came first."""

    queue: ChunkQueue
    item: Any
    number: int = field(default_factory=_numbers.__next__)


class ChunksOfTask:
    """What one task streams, kept until its superstep is decided.

    Args:
        outer: the same of the task that runs the graph; None in a root graph.
    """

    __slots__ = ("_kept", "_shown", "outer")

    def __init__(self, outer: ChunksOfTask | None) -> None:
        self.outer = outer
        self._kept: list[Chunk] = []
        self._shown: bool | None = None

    def keeps(self, chunk: Chunk) -> bool:
        """Whether a chunk goes no further for now, or for ever."""
        with _deciding:
            if self._shown is None:
                self._kept.append(chunk)
            return not self._shown

    def decide(self, *, shown: bool) -> list[Chunk]:
        """What was kept; what comes from now on is shown too, or is not."""
        with _deciding:
            self._shown = shown
            kept, self._kept = self._kept, []
        return kept


def put(task: ChunksOfTask | None, chunk: Chunk) -> None:
    """Put a chunk in, past all tasks within the graph that hands it out."""
    while task is not None and task is not chunk.queue.owner:
        if task.keeps(chunk):
            return
        task = task.outer
    chunk.queue.deliver(chunk.item)


def release(decided: Iterable[tuple[ChunksOfTask, Mapping[str, Any] | None]]) -> None:
    """Show what the tasks of a superstep streamed, in the order in which it came.

    Args:
        decided: the chunks of each task, and what its payload was replaced by, if it was.
    """
    due: list[tuple[ChunksOfTask | None, Chunk]] = []
    for task, replacement in decided:
        kept = task.decide(shown=replacement is None)
        shown = kept if replacement is None else _messages(kept, replacement)
        due.extend((task.outer, chunk) for chunk in shown)
    for outer, chunk in sorted(due, key=lambda each: each[1].number):
        put(outer, chunk)


def _messages(kept: list[Chunk], replacement: Mapping[str, Any]) -> Iterator[Chunk]:
    """The messages of a replacement, for streams that were to hear those that it replaces."""
    last = {id(chunk.queue): chunk for chunk in kept if _is_message(chunk.item)}
    for chunk in last.values():
        namespace, mode, (_, told) = chunk.item
        for message in _messages_in(replacement):
            yield Chunk(chunk.queue, (namespace, mode, (message, told)))


def _is_message(item: Any) -> bool:
    _, mode, payload = item
    return mode == MESSAGES and isinstance(payload, tuple)


def _messages_in(payload: Mapping[str, Any]) -> Iterator[BaseMessage]:
    for value in payload.values():
        found = as_sequence(value) or (value,)
        yield from [each for each in found if isinstance(each, BaseMessage)]
