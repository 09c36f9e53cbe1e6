"""Where in a run we are: the root graph, or a subgraph that a node holds."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.sdk.trace import Span

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.edges import EdgeTracker
from twinspan.instrumentation.run import LiveRun


@dataclass(slots=True, kw_only=True)
class GraphScope:
    """One graph of a run: the root, or a subgraph within the execution that holds it.

    Attributes:
        run: the run.
        scope: '' for the root, else the holder's task.
        path: prefix of node names, '' or 'writer_team/'.
        holder: the holder's span; None for the root.
        edges: the observed edges of this graph.
    """

    run: LiveRun
    scope: str = ""
    path: str = ""
    holder: Span | None = None
    edges: EdgeTracker = field(default_factory=EdgeTracker)

    def current(self) -> AbstractContextManager[None]:
        """Make the graph's own span current for a block; a subgraph's holder is that already."""
        return nullcontext() if self.holder is not None else self.run.current()

    def name(self, node: str) -> str:
        """A node's name, qualified by the subgraphs around it."""
        return self.path + node


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """The node execution around the running code, which a nested graph belongs to."""

    run: LiveRun
    node: str
    task_id: str
    span: Span

    def scope(self) -> GraphScope:
        """The scope of a graph that is run inside this node."""
        return GraphScope(run=self.run, scope=self.task_id, path=f"{self.node}/", holder=self.span)


current_holder: ContextVar[Holder | None] = ContextVar("twinspan_holder", default=None)


class holding:
    """Graphs that begin in the block belong to a node."""

    __slots__ = ("_holder", "_token")

    def __init__(self, holder: Holder) -> None:
        self._holder = holder

    def __enter__(self) -> None:
        self._token = current_holder.set(self._holder)

    def __exit__(self, *_: object) -> None:
        # A coroutine that was thrown away may end in a context that never saw the holder.
        if current_holder.get() is self._holder:
            current_holder.reset(self._token)


def with_scope(config: Any, scope: GraphScope) -> dict[str, Any]:
    """A config that carries the scope to the graph's tasks."""
    inner = {**names.configurable_of(config), names.SCOPE_KEY: scope}
    return {**(config or {}), names.CONFIGURABLE: inner}


def scope_of(task: Any) -> GraphScope | None:
    """The scope that a task's config carries; None for a graph that is not instrumented."""
    found = names.configurable_of(task.config).get(names.SCOPE_KEY)
    return found if isinstance(found, GraphScope) else None
