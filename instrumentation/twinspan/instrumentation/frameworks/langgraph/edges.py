"""Real edges: who wrote the channel that woke a task.

LangGraph wakes a task by channels (`branch:to:x`, `join:a+b:x`, a `Send`). Which tasks wrote
them is known when their superstep is over, so an edge is observed, never guessed, whether it
was static, conditional, a `Command` or a `Send`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.run import Parent


class Origin(NamedTuple):
    """Where a task's payload comes from.

    Attributes:
        parents: the executions that woke it.
        observed: whether that was seen; otherwise it follows from the graph and the checkpoint.
    """

    parents: tuple[Parent, ...] = ()
    observed: bool = True


class EdgeTracker:
    """The writers of the wake-up channels of one scope of one run."""

    def __init__(self) -> None:
        self._writers: dict[str, list[Parent]] = {}
        self._sends: list[Parent] = []
        self.begun = False

    def origin_of(self, task: Any) -> Origin:
        """The executions that woke a task."""
        path: Sequence[Any] = task.path
        if path and path[0] == names.PUSH:
            index = path[1] if len(path) > 1 else None
            if isinstance(index, int) and index < len(self._sends):
                return Origin(parents=(self._sends[index],))
            return Origin()
        found: dict[str, Parent] = {}
        for trigger in task.triggers:
            for parent in self._writers.get(trigger, ()):
                found.setdefault(parent.task_id, parent)
        return Origin(parents=tuple(found.values()))

    def record(self, tasks: Sequence[Any], parents: Sequence[Parent]) -> None:
        """Remember what a finished superstep wrote; what it was woken by is used up.

        A join waits until all its writers have written and a deferred node until nothing else
        is left, over several supersteps.
        """
        self.begun = True
        for task in tasks:
            for trigger in task.triggers:
                self._writers.pop(trigger, None)
        self._sends = []
        pairs = list(zip(tasks, parents, strict=True))
        if len(pairs) > 1:
            pairs.sort(key=lambda pair: _order(pair[0]))
        for task, parent in pairs:
            for channel, _ in task.writes:
                if channel == names.TASKS:
                    self._sends.append(parent)
                elif names.is_routing(channel):
                    self._writers.setdefault(channel, []).append(parent)


def _order(task: Any) -> str:
    # LangGraph applies the writes of a superstep in the order of the tasks' paths.
    return repr(tuple(task.path[:3]))
