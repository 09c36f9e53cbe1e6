"""Queues in which a graph's chunks wait for whoever iterates over its stream.

They stand in for LangGraph's own, and keep what a task puts in until the task is decided.
"""

# LangGraph's queues have no types.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false

from __future__ import annotations

import asyncio
from typing import Any, Final

from langgraph._internal._queue import AsyncQueue, SyncQueue  # type: ignore[attr-defined]
from langgraph.pregel import main

from twinspan.instrumentation.frameworks.langgraph.chunks import Chunk, ChunksOfTask, put
from twinspan.instrumentation.frameworks.langgraph.scope import current_holder


def chunks_around() -> ChunksOfTask | None:
    """Those of the task that is running; None where nothing waits."""
    holder = current_holder.get()
    return None if holder is None else holder.chunks


class KeepingQueue(SyncQueue):  # type: ignore[misc]
    """The queue of a graph that runs on threads."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = chunks_around()

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """Put a chunk in, or keep it."""
        task = chunks_around()
        if task is self.owner:  # the graph's own chunks, by far the most
            super().put(item)
        else:
            put(task, Chunk(self, item))

    def deliver(self, item: Any) -> None:
        """Put a chunk in."""
        super().put(item)


class AsyncKeepingQueue(AsyncQueue):  # type: ignore[misc]
    """The queue of a graph that runs on an event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.owner = chunks_around()
        self._home = asyncio.get_running_loop()

    def put_nowait(self, item: Any) -> None:
        """Put a chunk in, or keep it."""
        task = chunks_around()
        if task is self.owner:
            self.deliver(item)
        else:
            put(task, Chunk(self, item))

    def deliver(self, item: Any) -> None:
        """Put a chunk in; a plain task that was called is decided in a thread of its own."""
        if asyncio._get_running_loop() is self._home:
            super().put_nowait(item)
        else:
            self._home.call_soon_threadsafe(super().put_nowait, item)


_KEEPING: Final[dict[str, type]] = {"SyncQueue": KeepingQueue, "AsyncQueue": AsyncKeepingQueue}
_OWN: Final[dict[str, type]] = {"SyncQueue": SyncQueue, "AsyncQueue": AsyncQueue}


def keep_chunks() -> None:
    """Graphs that begin from now on hand out their chunks by queues of ours."""
    _use(_KEEPING)


def keep_no_chunks() -> None:
    """Graphs that begin from now on hand out their chunks by LangGraph's own queues."""
    _use(_OWN)


def _use(queues: dict[str, type]) -> None:
    for name, queue in queues.items():
        setattr(main, name, queue)
