"""Where in a run we are: the root graph, or a subgraph that a node holds."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.runnables.config import var_child_runnable_config
from langgraph._internal._config import ensure_config
from opentelemetry.sdk.trace import Span

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.chunks import ChunksOfTask
from twinspan.instrumentation.frameworks.langgraph.edges import EdgeTracker
from twinspan.instrumentation.frameworks.place import Place, flow_of
from twinspan.instrumentation.probing.model_call import ModelCall
from twinspan.instrumentation.run import LiveRun, NodeSpan


@dataclass(slots=True, kw_only=True)
class GraphScope:
    """One graph of a run: the root, or a subgraph within the execution that holds it.

    Attributes:
        run: the run.
        scope: '' for the root, else the holder's task, numbered from its second graph on.
        path: prefix of node names, '' or 'writer_team/'.
        owner: the execution that holds it; None for the root.
        edges: the observed edges of this graph.
        loop: LangGraph's loop that runs it, once it has begun.
    """

    run: LiveRun
    scope: str = ""
    path: str = ""
    owner: Holder | None = None
    edges: EdgeTracker = field(default_factory=EdgeTracker)
    loop: Any = None

    def current(self) -> AbstractContextManager[None]:
        """Make the graph's own span current for a block; a subgraph's holder is that already."""
        return nullcontext() if self.owner is not None else self.run.current()

    def name(self, node: str) -> str:
        """A node's name, qualified by the subgraphs around it."""
        return self.path + node

    @property
    def holder(self) -> Span | None:
        """The holder's span; None for the root."""
        return None if self.owner is None else self.owner.span

    @property
    def at_breakpoint(self) -> bool:
        """Whether the graph stopped where the user wanted it to stop."""
        return str(getattr(self.loop, "status", "")).startswith("interrupt_")


Failure = tuple[NodeSpan, BaseException]


@dataclass(slots=True, kw_only=True)
class Holder:
    """The node execution around the running code, which a nested graph belongs to.

    Attributes:
        run: the run.
        node: the node, path-qualified.
        task_id: its execution.
        span: the span of this attempt.
        graphs: numbers the graphs that the execution runs, over all its attempts.
        failures: what failed in its graphs and nobody tried again there; whether the holder is
            tried again decides what they were.
        model_calls: what it asked models, where probing is done at that level.
        tools: the tools that it called.
        chunks: what it streams, where that waits for the decision.
    """

    run: LiveRun
    node: str
    task_id: str
    span: Span
    graphs: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    failures: list[Failure] = field(default_factory=list[Failure])
    model_calls: list[ModelCall] = field(default_factory=list[ModelCall])
    tools: list[str] = field(default_factory=list[str])
    chunks: ChunksOfTask | None = None

    def scope(self) -> GraphScope:
        """The scope of a further graph that is run inside this node."""
        number = next(self.graphs)
        return GraphScope(
            run=self.run,
            scope=self.task_id if number == 1 else f"{self.task_id}#{number}",
            path=f"{self.node}/",
            owner=self,
        )


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


_CONFIGS_MERGE: Final = "a" in names.configurable_of(
    ensure_config({"configurable": {"a": 0}}, {"configurable": {"b": 0}})
)
"""Whether LangGraph adds a config to those around it; before 1.2.4 it took the last one alone."""


def with_scope(graph: Any, config: Any, scope: GraphScope) -> dict[str, Any]:
    """A config that carries the scope to the graph's tasks, and the run to its checkpoints."""
    given: dict[str, Any] = config or {}
    inner = {**_configurable(graph, config), names.SCOPE_KEY: scope}
    carried = {**given, names.CONFIGURABLE: inner}
    if scope.run.tracer.resumable:
        told: dict[str, Any] = given.get(names.METADATA) or {}
        carried[names.METADATA] = {**told, names.RUN_KEY: scope.run.run_id}
    return carried


def _configurable(graph: Any, config: Any) -> dict[str, Any]:
    """What a call gives; where ours would hide it, what the graph or the node around it gives."""
    given = names.configurable_of(config)
    if given or _CONFIGS_MERGE:
        return given
    around = var_child_runnable_config.get()
    return names.configurable_of(graph.config) or names.configurable_of(around)


def scope_of(task: Any) -> GraphScope | None:
    """The scope that a task's config carries; None for a graph that is not instrumented."""
    inner: dict[str, Any] = task.config.get(names.CONFIGURABLE) or {}
    found = inner.get(names.SCOPE_KEY)
    return found if isinstance(found, GraphScope) else None


def place_of_holder() -> Place | None:
    """The LangGraph node around the running code, as other frameworks see it."""
    holder = current_holder.get()
    if holder is None:
        return None
    places = flow_of(holder.run).places
    known = places.get(holder.task_id)
    if known is None or known.span is not holder.span:
        known = Place(run=holder.run, node=holder.node, task_id=holder.task_id, span=holder.span)
        places[holder.task_id] = known
    return known


def scope_in(place: Place, graph: str) -> GraphScope:
    """The scope of a graph that begins at a place of a run that has begun."""
    holder = current_holder.get()
    if holder is not None and holder.task_id == place.task_id:
        return holder.scope()
    number = place.next_step()
    if place.span is None:  # among the steps of a pipeline, in no node
        return GraphScope(run=place.run, scope=f"{graph}#{number}", path=f"{graph}/")
    inner = Holder(
        run=place.run, node=place.node, task_id=f"{place.task_id}#{number}", span=place.span
    )
    return inner.scope()
