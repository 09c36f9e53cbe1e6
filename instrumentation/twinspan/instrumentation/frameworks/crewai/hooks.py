"""Installs and removes the hooks in crews, flows, agents, tools and the event bus."""

# CrewAI is not in the development environment, see the group `crewai-tests`.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from crewai import Agent, Crew, LLMGuardrail
from crewai.agents.agent_builder.base_agent_executor import BaseAgentExecutor
from crewai.events.event_bus import CrewAIEventsBus
from crewai.flow.flow import Flow
from crewai.lite_agent import LiteAgent
from crewai.tools.base_tool import BaseTool, Tool
from crewai.tools.structured_tool import CrewStructuredTool

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.crewai import memory
from twinspan.instrumentation.frameworks.crewai.copies import rewritten
from twinspan.instrumentation.frameworks.crewai.flows import (
    PAUSES,
    FlowSession,
    begin_method,
    current_flow,
    is_own,
)
from twinspan.instrumentation.frameworks.crewai.lone import LoneHooks
from twinspan.instrumentation.frameworks.crewai.session import (
    Rerun,
    Session,
    begin,
    check_tool,
    current_session,
    is_at_work,
    of_crewai,
    telling_halts,
)
from twinspan.instrumentation.frameworks.crewai.streams import is_held
from twinspan.instrumentation.frameworks.crewai.topology import topology_of
from twinspan.instrumentation.frameworks.crewai.waiting import working
from twinspan.instrumentation.frameworks.patching import Patches
from twinspan.instrumentation.frameworks.place import current_place, is_unobserved
from twinspan.instrumentation.frameworks.stepwise import Step, run_of
from twinspan.instrumentation.safety import harmless

_patches: Final = Patches()


class _Hooks:
    """The wrappers of one instrumentation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # --- runs --------------------------------------------------------------------------------

    def kickoff(self, wrapped: Any, crew: Any, args: Any, kwargs: Any) -> Any:
        """A crew's run."""
        if is_unobserved() or crew.stream:
            return wrapped(*args, **kwargs)  # a stream kicks off once more, from within
        with self._run(crew):
            return wrapped(*args, **kwargs)

    async def akickoff(self, wrapped: Any, crew: Any, args: Any, kwargs: Any) -> Any:
        """The same on an event loop."""
        if is_unobserved() or crew.stream:
            return await wrapped(*args, **kwargs)
        with self._run(crew):
            return await wrapped(*args, **kwargs)

    @contextmanager
    def _run(self, crew: Any) -> Generator[None]:
        with ExitStack() as run:
            if current_place() is None:
                run.enter_context(run_of(self._engine, topology_of(crew)))
            token = current_session.set(Session())
            try:
                yield
            finally:
                current_session.reset(token)

    async def flow(self, wrapped: Any, flow: Any, args: Any, kwargs: Any) -> Any:
        """A flow's run; a flow that is started by a run's node belongs to that node."""
        if is_unobserved() or is_own(flow) or flow.stream:
            return await wrapped(*args, **kwargs)
        with ExitStack() as run:
            with harmless(self._engine.failures, "reading a flow"):
                session = FlowSession(flow)
                topology = session.topology(str(flow.name or type(flow).__name__))
                if current_place() is None:
                    run.enter_context(run_of(self._engine, topology))
                token = current_flow.set(session)
                run.callback(current_flow.reset, token)
            return await wrapped(*args, **kwargs)

    async def method(self, wrapped: Any, flow: Any, args: Any, kwargs: Any) -> Any:
        """A flow's method: a node, whose answer is decided before another one is woken."""
        place, session = current_place(), current_flow.get()
        if is_unobserved() or is_own(flow) or place is None or session is None:
            return await wrapped(*args, **kwargs)
        name, arguments = str(args[0]), {f"_{at}": each for at, each in enumerate(args[2:])}
        step: Step | None = None
        with harmless(self._engine.failures, "starting a node"):
            step = begin_method(place, flow, session, name, {**arguments, **kwargs})
        if step is None:
            return await wrapped(*args, **kwargs)
        with step.running(pauses=PAUSES):
            answer, event_id = await wrapped(*args, **kwargs)
        handed = await step.aclose(answer)
        session.made(name, step)
        return handed, event_id

    # --- agents ------------------------------------------------------------------------------

    def execute(self, wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        """An agent at a task: its answer is decided before the task has it."""
        if is_unobserved() or is_at_work(agent):
            return wrapped(*args, **kwargs)
        kept: dict[int, tuple[Any, Any]] = {}
        step, task = self._begin(wrapped, agent, args, kwargs, kept, in_loop=False)
        if step is None:
            return wrapped(*args, **kwargs)
        with telling_halts():
            with step.running(), working(agent, self._engine) as waits:
                answer = wrapped(*args, **kwargs)
            handed = step.close(answer)
        waits.settle(None if handed is answer else str(handed))
        return self._handed(step, agent, task, answer, handed, kept)

    async def aexecute(self, wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        """The same on an event loop."""
        if is_unobserved() or is_at_work(agent):
            return await wrapped(*args, **kwargs)
        kept: dict[int, tuple[Any, Any]] = {}
        step, task = self._begin(wrapped, agent, args, kwargs, kept, in_loop=True)
        if step is None:
            return await wrapped(*args, **kwargs)
        with telling_halts():
            with step.running(), working(agent, self._engine) as waits:
                answer = await wrapped(*args, **kwargs)
            handed = await step.aclose(answer)
        waits.settle(None if handed is answer else str(handed))
        return self._handed(step, agent, task, answer, handed, kept)

    def _begin(
        self,
        wrapped: Any,
        agent: Any,
        args: Any,
        kwargs: Any,
        kept: dict[int, tuple[Any, Any]],
        *,
        in_loop: bool,
    ) -> tuple[Step | None, Any]:
        given = dict(zip(("task", "context", "tools"), args, strict=False)) | kwargs
        place, task, context = current_place(), given["task"], given.get("context")
        if place is None:
            return None, task

        def keep(answer: Any, twin: Any) -> None:
            kept[id(answer)] = (answer, twin)

        rerun = Rerun(wrapped.__func__, agent, task, given.get("tools"), keep)
        again = rerun.on_loop if in_loop else rerun.plain
        return begin(place, agent, task, context, again, in_loop=in_loop), task

    @staticmethod
    def _handed(
        step: Step, agent: Any, task: Any, answer: Any, handed: Any, kept: dict[int, Any]
    ) -> Any:
        if handed is not answer:
            # A task's output carries the agent's messages, the frozen answer among them.
            _, twin = kept.get(id(handed), (None, None))
            agent._last_messages = (
                rewritten(agent._last_messages, str(answer), str(handed))
                if twin is None
                else twin._last_messages
            )
        session = current_session.get()
        if session is not None:
            session.made(task, step)
        return handed

    # --- tools and events ----------------------------------------------------------------------

    def tool(self, wrapped: Any, tool: Any, args: Any, kwargs: Any) -> Any:
        """A tool call; inside a probe only safe tools pass."""
        check_tool(tool.name)
        return wrapped(*args, **kwargs)

    def guardrail(self, wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        """A guardrail in words: CrewAI asks an agent of its own."""
        with of_crewai():
            return wrapped(*args, **kwargs)

    def emit(self, wrapped: Any, _: Any, args: Any, kwargs: Any) -> Any:
        """An event; what is run again is no event of the application."""
        if is_unobserved() or is_held(wrapped, args, kwargs):
            return None
        return wrapped(*args, **kwargs)


def install(engine: Engine) -> None:
    """Hook every crew of the process, every flow, and agents outside of both."""
    hooks, lone = _Hooks(engine), LoneHooks(engine)
    _patches.wrap(Crew, "kickoff", hooks.kickoff)
    _patches.wrap(Crew, "akickoff", hooks.akickoff)
    for name in ("kickoff_async", "resume_async"):
        _patches.wrap(Flow, name, hooks.flow)
    _patches.wrap(Flow, "_execute_method", hooks.method)
    _patches.wrap(Agent, "execute_task", hooks.execute)
    _patches.wrap(Agent, "aexecute_task", hooks.aexecute)
    for owner in (Agent, LiteAgent):
        _patches.wrap(owner, "kickoff", lone.kickoff)
    _patches.wrap(Agent, "kickoff_async", lone.akickoff)  # a LiteAgent's asks `kickoff`
    _patches.wrap(LLMGuardrail, "__call__", hooks.guardrail)
    _patches.wrap(Agent, "_save_kickoff_to_memory", memory.of_kickoff)
    _patches.wrap(LiteAgent, "_save_to_memory", memory.of_lite_agent)
    _patches.wrap(BaseAgentExecutor, "_save_to_memory", memory.of_task)
    for owner in (BaseTool, Tool):
        _patches.wrap(owner, "run", hooks.tool)
        _patches.wrap(owner, "arun", hooks.tool)
    for name in ("invoke", "ainvoke"):
        _patches.wrap(CrewStructuredTool, name, hooks.tool)
    _patches.wrap(CrewAIEventsBus, "emit", hooks.emit)


def uninstall() -> None:
    """Put CrewAI back as it was."""
    _patches.undo()
