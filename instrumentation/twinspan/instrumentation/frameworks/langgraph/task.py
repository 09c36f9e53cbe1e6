"""One task of a superstep: its node spans, its probes, its re-runs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Any, Final

from langchain_core.runnables import Runnable
from langgraph.errors import GraphBubbleUp, GraphInterrupt, ParentCommand

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.current import current
from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.calls import Calls
from twinspan.instrumentation.frameworks.langgraph.chunks import ChunksOfTask
from twinspan.instrumentation.frameworks.langgraph.edges import Origin
from twinspan.instrumentation.frameworks.langgraph.explicit import is_control
from twinspan.instrumentation.frameworks.langgraph.forms import form_of
from twinspan.instrumentation.frameworks.langgraph.queues import chunks_around
from twinspan.instrumentation.frameworks.langgraph.rerun import (
    arerun,
    human_answers,
    rerun,
    rerun_in_thread,
)
from twinspan.instrumentation.frameworks.langgraph.scope import (
    Failure,
    GraphScope,
    Holder,
    holding,
)
from twinspan.instrumentation.frameworks.langgraph.writes import (
    GOTO,
    Answer,
    Write,
    answer_of,
    command_in,
    command_writes,
    replaced,
)
from twinspan.instrumentation.gate import Execution
from twinspan.instrumentation.run import NodeSpan, NodeStart, Parent
from twinspan.instrumentation.safety import harmless

UNSETTLED: Final = "error"
"""An outcome that becomes one only if nobody tries again."""


def outcome_of_error(error: BaseException) -> str:
    """How a node ended that raised; control flow is not failure."""
    if isinstance(error, GraphInterrupt):
        return "interrupted"
    if isinstance(error, GraphBubbleUp):
        return "ok"
    if isinstance(error, BiasHalt):
        return "halted"
    if isinstance(error, asyncio.CancelledError | GeneratorExit | KeyboardInterrupt):
        return "cancelled"
    return UNSETTLED


class TaskObserver:
    """Watches one task through its attempts.

    Args:
        scope: the graph that the task belongs to.
        task: LangGraph's task.
        origin: the executions that woke it.
        superstep: its superstep within the scope; LangGraph's step if None.
    """

    def __init__(
        self, scope: GraphScope, task: Any, origin: Origin, *, superstep: int | None = None
    ) -> None:
        self.scope = scope
        self.task = task
        self.node = scope.name(task.name)
        self.ok = False
        self.answer = Answer()
        self.superstep = _step(task) if superstep is None else superstep
        self.chunks = ChunksOfTask(chunks_around()) if scope.run.engine.holds_stream else None
        self._origin = origin
        self._repeat = scope.run.repeat_of(self.node, self.superstep)
        self._form = form_of(task.proc)
        self._graphs = itertools.count(1)
        self._attempts = 0
        self._failed: Failure | None = None
        self._nested: list[Failure] = []
        self._last: NodeSpan | None = None
        self._repaired_hash = ""
        self._config: Any = task.config
        self._in_loop = False
        self._answers: tuple[Any, ...] = ()
        self._left: ParentCommand | None = None
        self._holder: Holder | None = None
        self._calls: Calls | None = None

    # --- what the runtime is given ---------------------------------------------------------

    def instrumented(self, proc: ObservedProc | None = None) -> Any:
        """The task with a runnable that tells us when its node runs."""
        return replace(self.task, proc=proc or ObservedProc(self))

    # --- an attempt ------------------------------------------------------------------------

    def attempt(self, payload: Any, config: Any, *, in_loop: bool) -> Attempt:
        """One try of the node: a span that is current while the node runs."""
        return Attempt(self, payload, config, in_loop=in_loop)

    def hold(self, node: NodeSpan) -> Holder:
        """What graphs and tasks that the node runs in this try belong to."""
        self._holder = Holder(
            run=self.scope.run,
            node=self.node,
            task_id=self.task.id,
            span=node.span,
            graphs=self._graphs,
            chunks=self.chunks,
        )
        self._calls = None
        return self._holder

    def calls(self) -> Calls | None:
        """The tasks that this attempt has called; None before it runs."""
        if self._calls is None and self._holder is not None:
            self._calls = Calls(self._holder.scope())
        return self._calls

    def start(self, payload: Any, config: Any, *, in_loop: bool) -> NodeSpan:
        """A try begins."""
        self._settle_failure("retried")
        self._attempts += 1
        self._config = config
        self._in_loop = in_loop
        self._answers = human_answers(config)
        self._left = None
        run = self.scope.run
        node = self._last = run.start_node(self._node_start(payload))
        if node.probed:
            run.launch_probes(node, self._rerunner(arerun if in_loop else rerun), in_loop=in_loop)
        return node

    def _node_start(self, payload: Any, *, skipped: bool = False) -> NodeStart:
        return NodeStart(
            node=self.node,
            kind=self._kind(),
            task_id=self.task.id,
            attempt=max(self._attempts, 1),
            scope=self.scope.scope,
            superstep=self.superstep,
            parents=self._origin.parents,
            payload=payload,
            holder=self.scope.holder,
            edges_observed=self._origin.observed,
            repeat=self._repeat,
            skipped=skipped,
        )

    def skip(self) -> None:
        """The task's answer was known already, from a cache or a checkpoint: it did not run."""
        run = self.scope.run
        self.answer = answer_of(self._written, self._form.targets)
        self._last = run.start_node(self._node_start(self.task.input, skipped=True))
        run.end_node(self._last, "skipped", payload=self.answer)

    def ended(self, node: NodeSpan, holder: Holder, error: BaseException | None) -> None:
        """A try is over."""
        run = self.scope.run
        with harmless(run.engine.failures, "ending a node"):
            outcome = "ok" if error is None else outcome_of_error(error)
            self.ok = outcome == "ok"
            self._left = error if isinstance(error, ParentCommand) else None
            run.interrupted = run.interrupted or outcome == "interrupted"
            self._nested.extend(holder.failures)
            if outcome == UNSETTLED and error is not None:
                # Whether it is a failure is known only when nobody tries again.
                self._failed = (node, error)
                return
            self._settle_nested("error")
            self.answer = answer_of(self._written, self._form.targets)
            if holder.tools:
                node.span.set_attribute(c.NODE_TOOLS, tuple(dict.fromkeys(holder.tools)))
            run.end_node(node, outcome, payload=self.answer)
            if outcome == "ok":
                run.launch_model_probes(node, holder.model_calls, in_loop=self._in_loop)

    # --- failures ----------------------------------------------------------------------------

    def _settle_failure(self, outcome: str) -> None:
        self._settle_nested(outcome)
        if self._failed is not None:
            self._end_failed(self._failed, outcome)
            self._failed = None

    def _settle_nested(self, outcome: str) -> None:
        for failure in self._nested:
            self._end_failed(failure, outcome)
        self._nested.clear()

    def _end_failed(self, failure: Failure, outcome: str) -> None:
        node, error = failure
        self.scope.run.end_node(node, outcome, error=error if outcome == "error" else None)

    def settle(self) -> None:
        """The superstep is over: nobody tries this task again, only perhaps its holder."""
        if self._failed is None and not self._nested:
            return
        with harmless(self.scope.run.engine.failures, "ending a node"):
            owner = self.scope.owner
            if owner is None:
                self._settle_failure("error")
                return
            owner.failures.extend([*self._nested, *([self._failed] if self._failed else [])])
            self._nested, self._failed = [], None

    # --- what the boundary needs -------------------------------------------------------------

    @property
    def _written(self) -> list[Write]:
        """What it wrote, in its own graph or, leaving that, in the one above."""
        if self.task.writes or self._left is None:
            return list(self.task.writes)
        return command_writes(command_in(self._left))

    def _kind(self) -> str:
        if is_control(self.task):
            return "router"
        if self.task.subgraphs:
            return "subgraph"
        if self._form.is_tool:
            return "tool"
        return "function" if self.scope.run.rate(self.node) is None else "agent"

    def _rerunner(self, run_again: Callable[..., Any]) -> Callable[[Any], Any]:
        return partial(run_again, self.task.proc, self._config, answers=self._answers)

    def execution(self, *, in_loop: bool) -> Execution:
        """The finished task, as the gate sees it."""
        at_nodes = self.scope.run.engine.settings.probe.level == "node"
        return Execution(
            node=self.node,
            task_id=self.task.id,
            received=self.task.input,
            payload=self.answer,
            targets=tuple([self.scope.name(target) for target in self.answer.targets]),
            rerun=self._rerunner(arerun if in_loop else rerun_in_thread) if at_nodes else None,
        )

    def repair(self, repaired: dict[str, Any]) -> None:
        """Hand another payload on than the node wrote."""
        if self._left is not None and not self.task.writes:
            update = {key: value for key, value in repaired.items() if key != GOTO}
            self._left.args = (replace(command_in(self._left), update=update),)
        else:
            writes = replaced(self.task.writes, repaired)
            self.task.writes.clear()
            self.task.writes.extend(writes)
        self.answer = answer_of(self._written, self._form.targets)
        self._repaired_hash = self.scope.run.hasher(self.answer)

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


class Attempt:
    """The node's span is current while its block runs, and closed with what came of it.

    A class, since every node passes it: a generator would cost three times as much.
    """

    __slots__ = (
        "_config",
        "_holder",
        "_holding",
        "_in_loop",
        "_node",
        "_observer",
        "_payload",
        "_shown",
    )

    def __init__(self, observer: TaskObserver, payload: Any, config: Any, *, in_loop: bool) -> None:
        self._observer = observer
        self._payload = payload
        self._config = config
        self._in_loop = in_loop
        self._node: NodeSpan | None = None

    def __enter__(self) -> None:
        observer = self._observer
        with harmless(observer.scope.run.engine.failures, "starting a node"):
            self._node = observer.start(self._payload, self._config, in_loop=self._in_loop)
        node = self._node
        if node is None:
            return
        self._shown = current(node.context)
        self._shown.__enter__()
        self._holder = observer.hold(node)
        self._holding = holding(self._holder)
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
            self._observer.ended(node, self._holder, error)
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


def _step(task: Any) -> int:
    """LangGraph's step within the scope."""
    metadata: dict[str, Any] = task.config.get("metadata") or {}
    return int(metadata.get("langgraph_step", 0))


def is_observable(task: Any) -> bool:
    """Whether a task is a node; LangGraph's own start task is not."""
    return bool(task.name != names.START)
