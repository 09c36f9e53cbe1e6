"""One superstep: its tasks, the stream that waits for its decision, its boundary."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

from twinspan.instrumentation.frameworks.langgraph.scope import GraphScope, scope_of
from twinspan.instrumentation.frameworks.langgraph.task import TaskObserver, is_observable
from twinspan.instrumentation.gate import Verdict
from twinspan.instrumentation.probing.guard import current_probe
from twinspan.instrumentation.safety import harmless


class Superstep:
    """The tasks of one `tick`, observed."""

    def __init__(self, scope: GraphScope, tasks: Sequence[Any]) -> None:
        self.scope = scope
        self._observers = [TaskObserver(scope, task) for task in tasks if is_observable(task)]
        instrumented = {id(o.task): o.instrumented() for o in self._observers}
        self.tasks = [instrumented.get(id(task), task) for task in tasks]

    @classmethod
    def of(cls, tasks: Sequence[Any]) -> Superstep | None:
        """The superstep of these tasks; None where nothing is to be observed."""
        if current_probe() is not None or not any(is_observable(task) for task in tasks):
            return None
        scope = scope_of(tasks[0])
        if scope is None:
            return None
        found: Superstep | None = None
        with harmless(scope.run.engine.failures, "a superstep"):
            found = cls(scope, tasks)
        return found

    @property
    def holds(self) -> bool:
        """Whether what the tasks wrote waits for the decision."""
        return (
            self.scope.run.engine.enforces and self.scope.run.engine.settings.breaker.holds_stream
        )

    @contextmanager
    def holding(self, runner: Any) -> Generator[None]:
        """Keep the tasks' writes from stream and checkpoint until the block is over."""
        put = runner.put_writes
        held: list[tuple[str, Any]] = []

        def hold(task_id: str, writes: Any) -> None:
            held.append((task_id, writes))

        runner.put_writes = lambda: hold
        try:
            yield
        finally:
            runner.put_writes = put
            if not self._halted:
                for task_id, writes in held:
                    put()(task_id, writes)

    _halted = False

    def close(self) -> None:
        """Wait for the probes, ask the gate, do what it says.

        Raises:
            BiasHalt: if the run is halted here.
        """
        run = self.scope.run
        self._close(
            lambda: run.close_superstep(
                self.scope.scope, self._index, self._executions(in_loop=False)
            )
        )

    async def aclose(self) -> None:
        """The same on an event loop.

        Raises:
            BiasHalt: if the run is halted here.
        """
        run = self.scope.run
        verdict: Verdict | None = None
        with self._halting(), harmless(run.engine.failures, "a boundary"):
            self.settle()
            verdict = await run.aclose_superstep(
                self.scope.scope, self._index, self._executions(in_loop=True)
            )
        self._apply(verdict)

    def _close(self, ask: Callable[[], Verdict]) -> None:
        verdict: Verdict | None = None
        with self._halting(), harmless(self.scope.run.engine.failures, "a boundary"):
            self.settle()
            verdict = ask()
        self._apply(verdict)

    @contextmanager
    def _halting(self) -> Generator[None]:
        self._halted = True
        yield
        self._halted = False

    def settle(self) -> None:
        """No task will be tried again."""
        for observer in self._observers:
            observer.settle()

    @property
    def _index(self) -> int:
        return self._observers[0].superstep

    def _executions(self, *, in_loop: bool) -> list[Any]:
        return [o.execution(in_loop=in_loop) for o in self._observers if o.ok]

    def _apply(self, verdict: Verdict | None) -> None:
        with harmless(self.scope.run.engine.failures, "handing a payload on"):
            for observer in self._observers:
                repaired = None if verdict is None else verdict.repairs.get(observer.task.id)
                if repaired is not None:
                    observer.repair(repaired)
            done = [observer for observer in self._observers if observer.ok]
            self.scope.edges.record(
                [observer.task for observer in done], [observer.as_parent() for observer in done]
            )
