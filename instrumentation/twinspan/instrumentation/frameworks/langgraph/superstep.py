"""One superstep: its tasks, the stream that waits for its decision, its boundary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from langgraph.errors import GraphBubbleUp

from twinspan.instrumentation.errors import BiasHalt
from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.calls import Calls, returned
from twinspan.instrumentation.frameworks.langgraph.chunks import release
from twinspan.instrumentation.frameworks.langgraph.edges import Origin
from twinspan.instrumentation.frameworks.langgraph.events import tell_replaced
from twinspan.instrumentation.frameworks.langgraph.explicit import diverted, is_guarded, opened
from twinspan.instrumentation.frameworks.langgraph.resumed import resumed_origin
from twinspan.instrumentation.frameworks.langgraph.scope import GraphScope, scope_of
from twinspan.instrumentation.frameworks.langgraph.task import (
    ObservedProc,
    TaskObserver,
    is_observable,
)
from twinspan.instrumentation.gate import PROCEED, Boundary, Verdict
from twinspan.instrumentation.probing.guard import current_probe
from twinspan.instrumentation.safety import harmless

_NOT_AN_ANSWER = frozenset({names.ERROR, names.INTERRUPT})


class Superstep:
    """The tasks of one `tick`, or one called task, observed."""

    def __init__(self, scope: GraphScope, observers: Iterable[TaskObserver]) -> None:
        self.scope = scope
        self._observers = list(observers)
        self._skipped: list[TaskObserver] = []
        self._decided: set[str] = set()
        self._closed = self._halted = False
        # Everything that may call tasks: those of the superstep, and those that were called.
        self._callers = {observer.task.id: observer for observer in self._observers}

    @classmethod
    def of(cls, runner: Any, tasks: Sequence[Any]) -> Superstep | None:
        """The superstep that a runner begins; None where nothing is to be observed."""
        if current_probe() is not None:
            return None
        loop = getattr(runner.put_writes(), "__self__", None)
        known = list(tasks) or list(getattr(loop, "tasks", {}).values())
        if not any([is_observable(task) for task in known]):
            return None
        scope = scope_of(known[0])
        if scope is None:
            return None
        found: Superstep | None = None
        with harmless(scope.run.engine.failures, "a superstep"):
            scope.loop = loop
            found = cls(scope, [_observed(scope, task) for task in tasks if is_observable(task)])
            found.skip(_answered(loop, tasks))
        return found

    def instrumented(self, tasks: Sequence[Any]) -> list[Any]:
        """The tasks, with runnables that tell us when their nodes run."""
        made = {observer.task.id: observer.instrumented() for observer in self._observers}
        return [made.get(task.id, task) for task in tasks]

    def skip(self, tasks: Iterable[Any]) -> None:
        """Note tasks that do not run because their answers are known."""
        for task in tasks:
            observer = _observed(self.scope, task)
            observer.skip()
            self._skipped.append(observer)

    # --- tasks that begin within the superstep -------------------------------------------------

    def handling(self, schedule: Callable[..., Any]) -> Callable[..., Any]:
        """LangGraph's scheduler of error handlers, observed."""

        def scheduled(failed: Any, error: BaseException) -> Any:
            return self._handler(failed, schedule(failed, error))

        return scheduled

    def ahandling(self, schedule: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """The same on an event loop."""

        async def scheduled(failed: Any, error: BaseException) -> Any:
            return self._handler(failed, await schedule(failed, error))

        return scheduled

    def _handler(self, failed: Any, handler: Any) -> Any:
        source = self._callers.get(failed.id)
        if handler is None or source is None:
            return handler
        with harmless(self.scope.run.engine.failures, "an error handler"):
            origin = Origin(parents=(source.as_parent(),))
            observer = TaskObserver(self.scope, handler, origin)
            self._observers.append(observer)
            self._callers[handler.id] = observer
            return observer.instrumented()
        return handler

    def calling(self, schedule: Callable[..., Any]) -> Callable[..., Any]:
        """LangGraph's scheduler of called tasks, observed."""

        def scheduled(caller: Any, index: int, call: Any = None) -> Any:
            return self._called(caller, schedule(caller, index, call))

        return scheduled

    def acalling(self, schedule: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
        """The same on an event loop."""

        async def scheduled(caller: Any, index: int, call: Any = None) -> Any:
            return self._called(caller, await schedule(caller, index, call))

        return scheduled

    def _called(self, caller: Any, task: Any) -> Any:
        source = self._callers.get(caller.id)
        calls = None if source is None else source.calls()
        if task is None or calls is None:
            return task
        with harmless(self.scope.run.engine.failures, "a called task"):
            origin = calls.origin_of(task.input)
            observer = TaskObserver(calls.scope, task, origin, superstep=calls.number())
            if task.writes:
                observer.skip()
                calls.answered(observer.as_parent(), returned(task.writes))
                return task
            self._callers[task.id] = observer
            return observer.instrumented(CalledProc(observer, calls, self._decided))
        return task

    # --- the stream --------------------------------------------------------------------------

    @property
    def holds(self) -> bool:
        """Whether what the tasks wrote waits for the decision."""
        return self.scope.run.engine.holds_stream

    def holding(self, runner: Any) -> HeldWrites:
        """Keep the tasks' writes from stream and checkpoint until the block is over."""
        return HeldWrites(self, runner, self._decided)

    @property
    def is_halted(self) -> bool:
        """Whether what the tasks wrote must not pass."""
        return self._halted

    # --- the boundary --------------------------------------------------------------------------

    def close(self) -> None:
        """Wait for the probes, ask the gate, do what it says.

        Raises:
            BiasHalt: if the run is halted here.
        """
        run = self.scope.run
        verdict: Verdict | None = None
        self._closed = self._halted = True
        with harmless(run.engine.failures, "a boundary"):
            self.settle()
            verdict = run.close_superstep(
                self.scope.scope,
                self._index,
                self._executions(in_loop=False),
                divert=self._divert,
            )
        self._halted = False
        self._apply(verdict)

    async def aclose(self) -> None:
        """The same on an event loop.

        Raises:
            BiasHalt: if the run is halted here.
        """
        run = self.scope.run
        verdict: Verdict | None = None
        self._closed = self._halted = True
        with harmless(run.engine.failures, "a boundary"):
            self.settle()
            verdict = await run.aclose_superstep(
                self.scope.scope,
                self._index,
                self._executions(in_loop=True),
                divert=self._divert,
            )
        self._halted = False
        self._apply(verdict)

    def _divert(self, boundary: Boundary, verdict: Verdict) -> Verdict | None:
        """Send frozen payloads to the graph's own mitigation nodes, where it has some."""
        run = self.scope.run
        guilty = [each for each in self._observers if each.task.id in verdict.guilty]
        if not guilty or not all(is_guarded(observer.task) for observer in guilty):
            return None
        executions = {each.task_id: each for each in boundary.executions}
        repairs: dict[str, Any] = {}
        for observer in guilty:
            execution = executions[observer.task.id]
            incident_id = opened(run, boundary, verdict, execution)
            repairs[execution.task_id] = diverted(observer.task, incident_id, execution, verdict)
        return Verdict(action="repair", repairs=repairs, diverted=True)

    def close_after(self, error: Exception) -> None:
        """Decide on what the other tasks wrote although one left the superstep or failed.

        What they wrote is kept for whoever goes on from here: the parent graph, or the run
        that resumes this one. After a failure that is so only where there is a checkpoint; the
        application is told of the failure, and a halt only keeps the writes back.

        Raises:
            BiasHalt: if the run is halted here and no failure comes before it.
        """
        if self._closed:
            return
        if isinstance(error, GraphBubbleUp):
            self.close()
        elif self.holds and self._is_saved:
            with suppress(BiasHalt):
                self.close()

    async def aclose_after(self, error: Exception) -> None:
        """The same on an event loop.

        Raises:
            BiasHalt: if the run is halted here and no failure comes before it.
        """
        if self._closed:
            return
        if isinstance(error, GraphBubbleUp):
            await self.aclose()
        elif self.holds and self._is_saved:
            with suppress(BiasHalt):
                await self.aclose()

    @property
    def _is_saved(self) -> bool:
        return getattr(self.scope.loop, "checkpointer", None) is not None

    def settle(self) -> None:
        """No task will be tried again."""
        for observer in self._observers:
            observer.settle()

    @property
    def _index(self) -> int:
        return (self._observers or self._skipped)[0].superstep

    def _executions(self, *, in_loop: bool) -> list[Any]:
        return [o.execution(in_loop=in_loop) for o in self._observers if o.ok]

    def _apply(self, verdict: Verdict | None) -> None:
        repairs = (verdict or PROCEED).repairs
        with harmless(self.scope.run.engine.failures, "handing a payload on"):
            for observer in self._observers if repairs else ():
                repaired = repairs.get(observer.task.id)
                if repaired is not None:
                    observer.repair(repaired)
                    tell_replaced(str(observer.task.id), repaired)
            done = [o for o in self._observers if o.ok] + self._skipped
            self.scope.edges.record(
                [observer.task for observer in done], [observer.as_parent() for observer in done]
            )
        if self.holds:
            self._release(repairs)

    def _release(self, repairs: Mapping[str, Any]) -> None:
        """Show what the tasks streamed, but of those whose payload was replaced."""
        with harmless(self.scope.run.engine.failures, "streaming what was decided"):
            release(
                (observer.chunks, repairs.get(observer.task.id))
                for observer in self._observers
                if observer.chunks is not None
            )


class HeldWrites:
    """What the tasks of a superstep write waits here for the decision.

    A class, since every superstep passes it: a generator would cost three times as much.

    Args:
        superstep: the superstep.
        runner: LangGraph's runner of it.
        decided: called tasks that were decided already; they wait for nothing.
    """

    __slots__ = ("_decided", "_held", "_put", "_runner", "_superstep")

    def __init__(self, superstep: Superstep, runner: Any, decided: set[str]) -> None:
        self._superstep = superstep
        self._decided = decided
        self._runner = runner
        self._put = runner.put_writes
        self._held: list[tuple[str, Any]] = []

    def __enter__(self) -> None:
        self._runner.put_writes = self._holder

    def __exit__(self, *_: object) -> None:
        self._runner.put_writes = self._put
        if not self._superstep.is_halted:
            for task_id, writes in self._held:
                self._put()(task_id, writes)

    def _holder(self) -> Callable[[str, Any], None]:
        return self._hold

    def _hold(self, task_id: str, writes: Any) -> None:
        if task_id in self._decided:
            self._put()(task_id, writes)
        else:
            self._held.append((task_id, writes))


class CalledProc(ObservedProc):
    """A called task's runnable: the caller gets what the gate lets pass."""

    def __init__(self, observer: TaskObserver, calls: Calls, decided: set[str]) -> None:
        super().__init__(observer)
        self._calls = calls
        self._decided = decided

    def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """Run the task and its boundary."""
        answer = super().invoke(input, config, **kwargs)
        Superstep(self._calls.scope, [self._observer]).close()
        return self._passed(answer)

    async def ainvoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
        """The same on an event loop."""
        answer = await super().ainvoke(input, config, **kwargs)
        await Superstep(self._calls.scope, [self._observer]).aclose()
        return self._passed(answer)

    def _passed(self, answer: Any) -> Any:
        with harmless(self._calls.scope.run.engine.failures, "a called task"):
            answer = returned(self._observer.task.writes)
            self._calls.answered(self._observer.as_parent(), answer)
            self._decided.add(self._observer.task.id)
        return answer


def _observed(scope: GraphScope, task: Any) -> TaskObserver:
    origin = scope.edges.origin_of(task)
    if not origin.parents and not scope.edges.begun:
        origin = resumed_origin(scope, task)
    return TaskObserver(scope, task, origin)


def _answered(loop: Any, tasks: Sequence[Any]) -> list[Any]:
    """The tasks of a superstep that have their writes already, from a cache or a checkpoint."""
    planned: Mapping[str, Any] = getattr(loop, "tasks", {})
    if len(planned) == len(tasks):
        return []
    due = {task.id for task in tasks}
    return [
        task
        for task in planned.values()
        if task.id not in due
        and is_observable(task)
        and task.writes
        and not any(channel in _NOT_AN_ANSWER for channel, _ in task.writes)
    ]
