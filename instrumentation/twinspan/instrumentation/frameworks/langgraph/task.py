"""One task of a superstep: its node spans, its probes, its re-runs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from types import TracebackType
from typing import Any

from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp, GraphInterrupt

from twinspan.instrumentation.current import current
from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.rerun import arerun, rerun
from twinspan.instrumentation.frameworks.langgraph.scope import GraphScope, Holder, holding
from twinspan.instrumentation.frameworks.langgraph.writes import payload_of, replaced, targets_of
from twinspan.instrumentation.gate import Execution, Rerun
from twinspan.instrumentation.run import NodeSpan, NodeStart, Parent
from twinspan.instrumentation.safety import harmless


def outcome_of_error(error: BaseException) -> str:
    """How a node ended that raised; control flow is not failure."""
    if isinstance(error, GraphInterrupt):
        return "interrupted"
    if isinstance(error, GraphBubbleUp):
        return "ok"
    if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
        return "cancelled"
    return "error"


class TaskObserver:
    """Watches one task through its attempts."""

    def __init__(self, scope: GraphScope, task: Any) -> None:
        self.scope = scope
        self.task = task
        self.node = scope.name(task.name)
        self.ok = False
        self._parents = scope.edges.parents_of(task)
        self.payload: dict[str, Any] = {}
        self._attempts = 0
        self._failed: tuple[NodeSpan, BaseException] | None = None
        self._last: NodeSpan | None = None
        self._repaired_hash = ""
        self._config: Any = task.config

    # --- what the runtime is given ---------------------------------------------------------

    def instrumented(self) -> Any:
        """The task with a runnable that tells us when its node runs."""
        return replace(self.task, proc=ObservedProc(self))

    # --- an attempt ------------------------------------------------------------------------

    def attempt(self, payload: Any, config: Any, *, in_loop: bool) -> Attempt:
        """One try of the node: a span that is current while the node runs."""
        return Attempt(self, payload, config, in_loop=in_loop)

    def start(self, payload: Any, config: Any, *, in_loop: bool) -> NodeSpan:
        """A try begins."""
        self._settle_failure("retried")
        self._attempts += 1
        self._config = config
        run = self.scope.run
        node = run.start_node(
            NodeStart(
                node=self.node,
                kind=self._kind(),
                task_id=self.task.id,
                attempt=self._attempts,
                scope=self.scope.scope,
                superstep=self.superstep,
                parents=self._parents,
                payload=payload,
                holder=self.scope.holder,
            )
        )
        self._last = node
        run.launch_probes(node, self._rerunner(in_loop), in_loop=in_loop)
        return node

    def ended(self, node: NodeSpan, error: BaseException | None) -> None:
        """A try is over."""
        run = self.scope.run
        with harmless(run.engine.failures, "ending a node"):
            outcome = "ok" if error is None else outcome_of_error(error)
            self.ok = outcome == "ok"
            run.interrupted = run.interrupted or outcome == "interrupted"
            if outcome == "error" and error is not None:
                # Whether it is a failure is known only when nobody tries again.
                self._failed = (node, error)
                return
            self.payload = payload_of(self.task.writes)
            run.end_node(node, outcome, payload=self.payload)

    def _settle_failure(self, outcome: str) -> None:
        if self._failed is not None:
            node, error = self._failed
            self._failed = None
            self.scope.run.end_node(node, outcome, error=error if outcome == "error" else None)

    def settle(self) -> None:
        """The superstep is over: a failure that nobody retried is one."""
        with harmless(self.scope.run.engine.failures, "ending a node"):
            self._settle_failure("error")

    # --- what the boundary needs -------------------------------------------------------------

    @property
    def superstep(self) -> int:
        """LangGraph's step within the scope."""
        metadata: dict[str, Any] = self.task.config.get("metadata") or {}
        return int(metadata.get("langgraph_step", 0))

    def _kind(self) -> str:
        if self.task.subgraphs:
            return "subgraph"
        steps = getattr(self.task.proc, "steps", [self.task.proc])
        if any(type(step).__name__ == "ToolNode" for step in steps):
            return "tool"
        return "agent" if self.scope.run.engine.settings.probe.covers(self.node) else "function"

    def _rerunner(self, in_loop: bool) -> Callable[[Any], Any]:
        proc, config = self.task.proc, self._config

        async def on_loop(payload: Any) -> Any:
            return await arerun(proc, config, payload)

        def plain(payload: Any) -> Any:
            return rerun(proc, config, payload)

        return on_loop if in_loop else plain

    def execution(self, *, in_loop: bool) -> Execution:
        """The finished task, as the gate sees it."""
        run_again = self._rerunner(in_loop)

        async def in_thread(payload: Any) -> Any:
            return await asyncio.to_thread(run_again, payload)

        again: Rerun = run_again if in_loop else in_thread
        return Execution(
            node=self.node,
            task_id=self.task.id,
            received=self.task.input,
            payload=self.payload,
            targets=tuple(self.scope.name(target) for target in targets_of(self.task.writes)),
            rerun=again,
        )

    def as_parent(self) -> Parent:
        """The finished task, as its readers see it."""
        last = self._last
        hashed = self._repaired_hash or ("" if last is None else last.output_hash)
        return Parent(
            node=self.node,
            task_id=self.task.id,
            payload_hash=hashed,
            span=None if last is None else last.span.get_span_context(),
        )

    def repair(self, payload: dict[str, Any]) -> None:
        """Hand another payload on than the node wrote."""
        writes = replaced(self.task.writes, payload)
        self.task.writes.clear()
        self.task.writes.extend(writes)
        self._repaired_hash = self.scope.run.hasher(payload_of(writes))


class Attempt:
    """The node's span is current while its block runs, and closed with what came of it.

    A class, since every node passes it: a generator would cost three times as much.
    """

    __slots__ = ("_config", "_holding", "_in_loop", "_node", "_observer", "_payload", "_shown")

    def __init__(self, observer: TaskObserver, payload: Any, config: Any, *, in_loop: bool) -> None:
        self._observer = observer
        self._payload = payload
        self._config = config
        self._in_loop = in_loop
        self._node: NodeSpan | None = None

    def __enter__(self) -> None:
        observer = self._observer
        run = observer.scope.run
        with harmless(run.engine.failures, "starting a node"):
            self._node = observer.start(self._payload, self._config, in_loop=self._in_loop)
        node = self._node
        if node is None:
            return
        self._shown = current(node.context)
        self._shown.__enter__()
        self._holding = holding(
            Holder(run=run, node=observer.node, task_id=observer.task.id, span=node.span)
        )
        self._holding.__enter__()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        node = self._node
        if node is None:
            return
        try:
            self._observer.ended(node, error)
        finally:
            self._holding.__exit__()
            self._shown.__exit__()


class ObservedProc(Runnable[Any, Any]):
    """A task's runnable, observed; what it returns and raises is the original's."""

    def __init__(self, observer: TaskObserver) -> None:
        self._observer = observer
        self._proc = observer.task.proc

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run the node."""
        with self._observer.attempt(input, config, in_loop=False):
            return self._proc.invoke(input, config, **kwargs)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run the node on an event loop."""
        with self._observer.attempt(input, config, in_loop=True):
            return await self._proc.ainvoke(input, config, **kwargs)

    def stream(self, input: Any, config: Any = None, **kwargs: Any) -> Iterator[Any]:
        """Run the node; its chunks are gathered first, so that no context crosses a yield."""
        with self._observer.attempt(input, config, in_loop=False):
            chunks = list(self._proc.stream(input, config, **kwargs))
        yield from chunks

    async def astream(self, input: Any, config: Any = None, **kwargs: Any) -> AsyncIterator[Any]:
        """The same on an event loop."""
        with self._observer.attempt(input, config, in_loop=True):
            chunks = [chunk async for chunk in self._proc.astream(input, config, **kwargs)]
        for chunk in chunks:
            yield chunk


def is_observable(task: Any) -> bool:
    """Whether a task is a node; LangGraph's own start task is not."""
    return bool(task.name != names.START)
