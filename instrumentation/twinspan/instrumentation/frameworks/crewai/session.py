"""One run of a crew: which task's output came from which step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from twinspan.instrumentation.errors import BiasHalt, SideEffectBlocked
from twinspan.instrumentation.frameworks.crewai.copies import quieted
from twinspan.instrumentation.frameworks.crewai.topology import name_of, sources_of
from twinspan.instrumentation.frameworks.place import Place
from twinspan.instrumentation.frameworks.stepwise import Step
from twinspan.instrumentation.probing.guard import current_probe
from twinspan.instrumentation.run import Parent


class Session:
    """The tasks of one crew's run."""

    def __init__(self) -> None:
        self._tasks: list[Any] = []
        self._made: dict[str, Parent] = {}

    def parents_of(self, task: Any) -> tuple[Parent, ...]:
        """The steps whose outputs are in a task's context."""
        read = (self._made.get(str(source.id)) for source in sources_of(task, self._tasks))
        found = [parent for parent in read if parent is not None]
        return tuple({parent.task_id: parent for parent in found}.values())

    def made(self, task: Any, step: Step) -> None:
        """A task's output is that step's."""
        if step.handed is not None:
            self._tasks.append(task)
            self._made[str(task.id)] = step.handed


current_session: ContextVar[Session | None] = ContextVar("twinspan_crew", default=None)

_at_work: ContextVar[frozenset[int]] = ContextVar("twinspan_crew_at_work", default=frozenset())
_blocked: ContextVar[list[str] | None] = ContextVar("twinspan_crew_blocked", default=None)


def is_at_work(agent: Any) -> bool:
    """Whether an agent's task is being executed already: CrewAI retries it from within."""
    return id(agent) in _at_work.get()


@contextmanager
def at_work(agent: Any) -> Generator[None]:
    """An agent executes a task in the block."""
    token = _at_work.set(_at_work.get() | {id(agent)})
    try:
        yield
    finally:
        _at_work.reset(token)


_halts: ContextVar[list[BiasHalt] | None] = ContextVar("twinspan_crew_halts", default=None)


@contextmanager
def telling_halts() -> Generator[None]:
    """Tell a halt that leaves the block to the agent around it, if one is at work."""
    try:
        yield
    except BiasHalt as halt:
        around = _halts.get()
        if around is not None:
            around.append(halt)
        raise


@contextmanager
def heeding_halts() -> Generator[None]:
    """Raise, after the block, a halt of what ran within it: CrewAI tells the model instead."""
    told: list[BiasHalt] = []
    token = _halts.set(told)
    try:
        yield
    except Exception as error:
        if told and error is not told[0]:
            raise told[0] from None
        raise
    finally:
        _halts.reset(token)
    if told:
        raise told[0]


_of_crewai: ContextVar[bool] = ContextVar("twinspan_of_crewai", default=False)


def is_of_crewai() -> bool:
    """Whether CrewAI asks an agent of its own here: what it does belongs to the node around it."""
    return _of_crewai.get()


@contextmanager
def of_crewai() -> Generator[None]:
    """CrewAI asks agents of its own in the block."""
    token = _of_crewai.set(True)
    try:
        yield
    finally:
        _of_crewai.reset(token)


def check_tool(name: str) -> None:
    """Let a safe tool pass, and remember one that was blocked: CrewAI tells the model instead.

    Raises:
        SideEffectBlocked: inside a probe, if the tool is not listed as safe.
    """
    frame = current_probe()
    if frame is None:
        return
    try:
        frame.check_tool(name)
    except SideEffectBlocked:
        blocked = _blocked.get()
        if blocked is not None:
            blocked.append(name)
        raise


@contextmanager
def blocking() -> Generator[None]:
    """Raise, after the block, for a tool that was blocked in it."""
    blocked: list[str] = []
    token = _blocked.set(blocked)
    try:
        yield
    finally:
        _blocked.reset(token)
        if blocked:
            raise SideEffectBlocked(blocked[0])


def payload_of(task: Any, context: Any) -> dict[str, Any]:
    """What an agent reads of a task."""
    payload = {"description": task.description}
    return {**payload, "context": context} if context else payload


class Rerun:
    """Runs an agent's task again, with a copy of both.

    Args:
        execute: CrewAI's own `execute_task` or `aexecute_task`, not bound and not wrapped.
        keep: takes the answer and the copy that gave it.
    """

    def __init__(
        self,
        execute: Callable[..., Any],
        agent: Any,
        task: Any,
        tools: Any,
        keep: Callable[[Any, Any], None],
    ) -> None:
        self._execute = execute
        self._agent = agent
        self._task = task
        self._tools = tools
        self._keep = keep

    def _twins(self, payload: dict[str, Any]) -> tuple[Any, Any]:
        # Without a crew nothing is written to its memory, and no callback of it is called.
        twin = quieted(self._agent.copy())
        twin.memory = self._agent.memory  # CrewAI's copy has one made anew, with other models
        task = self._task.model_copy(
            update={"description": payload["description"], "callback": None, "agent": twin}
        )
        return twin, task

    def plain(self, payload: dict[str, Any]) -> Any:
        """The agent's answer."""
        twin, task = self._twins(payload)
        with blocking():
            answer = self._execute(twin, task, payload.get("context"), self._tools)
        self._keep(answer, twin)
        return answer

    async def on_loop(self, payload: dict[str, Any]) -> Any:
        """The same on an event loop."""
        twin, task = self._twins(payload)
        with blocking():
            answer = await self._execute(twin, task, payload.get("context"), self._tools)
        self._keep(answer, twin)
        return answer


def begin(
    place: Place, agent: Any, task: Any, context: Any, rerun: Callable[[Any], Any], *, in_loop: bool
) -> Step | None:
    """The step of an agent at a task."""
    session = current_session.get()
    return Step.begin(
        place,
        name_of(agent),
        payload_of(task, context),
        parents=() if session is None else session.parents_of(task),
        rerun=rerun,
        in_loop=in_loop,
    )
