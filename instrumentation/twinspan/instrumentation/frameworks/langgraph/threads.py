"""Whether a call goes on with an earlier run, maybe of another process, and with which.

The graph's own checkpoints say it: every checkpoint's metadata carries the id of the run that
wrote it. A call without input, or with a `Command`, on a thread that stands at such a checkpoint
goes on with that run. New input begins a new run, and so does a call at an older checkpoint: it
leaves the path that was decided.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from langgraph.types import Command

from twinspan.instrumentation.frameworks.langgraph import names

MOST_EDITS: Final = 20
"""Checkpoints without a run, made by editing the state, that are looked behind."""

_EDITS: Final = frozenset({"update", "fork"})


@dataclass(frozen=True, slots=True)
class Thread:
    """A call on a thread whose checkpoints are kept.

    Attributes:
        saver: keeps the checkpoints.
        config: the call's `configurable` part.
    """

    saver: Any
    config: dict[str, Any]

    @classmethod
    def of(cls, graph: Any, config: Any) -> Thread | None:
        """The thread of a call; None where nothing of it is kept."""
        inner = {**names.configurable_of(graph.config), **names.configurable_of(config)}
        saver = inner.get(names.CHECKPOINTER, graph.checkpointer)
        if not hasattr(saver, "get_tuple") or inner.get(names.THREAD_ID) is None:
            return None
        return cls(saver, inner)

    def run_to_resume(self, input_: Any) -> str | None:
        """The run that a call with this input goes on with; None where one begins."""
        if not _continues(input_):
            return None
        found = self.saver.get_tuple(self._head)
        if self._leaves(found):
            return None
        for _ in range(MOST_EDITS):
            if found is None or not _is_edit(found):
                return _run_of(found)
            found = found.parent_config and self.saver.get_tuple(found.parent_config)
        return None

    async def arun_to_resume(self, input_: Any) -> str | None:
        """The same on an event loop."""
        if not _continues(input_):
            return None
        found = await self.saver.aget_tuple(self._head)
        if self._leaves(found):
            return None
        for _ in range(MOST_EDITS):
            if found is None or not _is_edit(found):
                return _run_of(found)
            found = found.parent_config and await self.saver.aget_tuple(found.parent_config)
        return None

    @property
    def _head(self) -> dict[str, Any]:
        inner = {key: value for key, value in self.config.items() if key != names.CHECKPOINT_ID}
        return {names.CONFIGURABLE: inner}

    def _leaves(self, head: Any) -> bool:
        """Whether the call starts at an older checkpoint than the thread stands at."""
        asked = self.config.get(names.CHECKPOINT_ID)
        if asked is None or head is None:
            return False
        return bool(head.config[names.CONFIGURABLE].get(names.CHECKPOINT_ID) != asked)


def _continues(input_: Any) -> bool:
    return input_ is None or isinstance(input_, Command)


def _is_edit(found: Any) -> bool:
    metadata: dict[str, Any] = found.metadata
    return names.RUN_KEY not in metadata and metadata.get("source") in _EDITS


def _run_of(found: Any) -> str | None:
    run_id = None if found is None else found.metadata.get(names.RUN_KEY)
    return None if run_id is None else str(run_id)
