"""Installs and removes the hooks in teams, in the containers of their agents, and in agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack, suppress
from typing import Any, Final

from autogen_agentchat.agents import BaseChatAgent
from autogen_agentchat.teams import BaseGroupChat
from autogen_agentchat.teams._group_chat._chat_agent_container import ChatAgentContainer

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.autogen.session import Alone, ObservedAgent, Session
from twinspan.instrumentation.frameworks.autogen.topology import topology_of, topology_of_one
from twinspan.instrumentation.frameworks.patching import Patches
from twinspan.instrumentation.frameworks.place import (
    Place,
    current_place,
    is_unobserved,
    standing_at,
)
from twinspan.instrumentation.frameworks.stepwise import outcome_of
from twinspan.instrumentation.gate import Topology
from twinspan.instrumentation.run import LiveRun
from twinspan.instrumentation.safety import harmless

_patches: Final = Patches()
_sessions: Final[dict[int, Session]] = {}
"""The run that each agent takes part in, by the agent's identity: a runtime may have been started
elsewhere, and its tasks know no context of ours."""


class _AgentAttribute:
    """A container's agent: observed while its team runs, itself otherwise."""

    def __get__(self, container: Any, owner: Any = None) -> Any:
        agent = container.__dict__["_agent"]
        session = _sessions.get(id(agent))
        return agent if session is None else ObservedAgent(agent, session)

    def __set__(self, container: Any, agent: Any) -> None:
        container.__dict__["_agent"] = agent


class _Hooks:
    """The wrappers of one instrumentation."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def run_stream(
        self, wrapped: Any, team: Any, args: Any, kwargs: Any
    ) -> AsyncGenerator[Any]:
        """A team's run, from its first message to its result."""
        opened = None if is_unobserved() else self._opened(lambda: topology_of(team))
        if opened is None:
            async for event in wrapped(*args, **kwargs):
                yield event
            return
        run, place = opened
        session = Session(place, [str(agent.name) for agent in team._participants])
        taking_part = {id(agent): session for agent in team._participants if _speaks(agent)}
        _sessions.update(taking_part)
        try:
            async for event in self._told(wrapped(*args, **kwargs), run, session):
                yield event
        finally:
            for key in taking_part:
                _sessions.pop(key, None)

    async def agent_run(self, wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        """The run of an agent without a team."""
        opened = None if is_unobserved() else self._opened(lambda: topology_of_one(agent))
        if opened is None:
            return await wrapped(*args, **kwargs)
        run, place = opened
        observed = ObservedAgent(agent, Alone(place, agent, is_root=run is not None))
        try:
            with ExitStack() as at:
                if current_place() is not place:
                    at.enter_context(standing_at(place, place.run.context))
                result = await wrapped.__func__(observed, *args, **kwargs)
        except BaseException as error:
            self._close(run, error)
            raise
        self._close(run, None)
        return result

    async def agent_run_stream(
        self, wrapped: Any, agent: Any, args: Any, kwargs: Any
    ) -> AsyncGenerator[Any]:
        """The same as a stream."""
        opened = None if is_unobserved() else self._opened(lambda: topology_of_one(agent))
        if opened is None:
            async for event in wrapped(*args, **kwargs):
                yield event
            return
        run, place = opened
        session = Alone(place, agent, is_root=run is not None)
        events = wrapped.__func__(ObservedAgent(agent, session), *args, **kwargs)
        async for event in self._told(events, run, session):
            yield event

    async def _told(
        self, events: Any, run: LiveRun | None, session: Session
    ) -> AsyncGenerator[Any]:
        """Events of a run, each made at the run's place; at their end the run is closed."""
        try:
            while (event := await _next(events, session.place)) is not None:
                yield event
        except BaseException as error:
            with suppress(Exception):
                await events.aclose()
            failure = session.halt or error
            self._close(run, failure)
            if failure is error:
                raise
            raise failure from None
        else:
            self._close(run, None)

    def _opened(self, topology: Callable[[], Topology]) -> tuple[LiveRun | None, Place] | None:
        """A run of its own, or the place in the run around it; None where twinspan failed."""
        place = current_place()
        if place is not None:
            return None, place
        opened: list[LiveRun] = []
        with harmless(self._engine.failures, "starting a run"):
            opened.append(LiveRun.open(self._engine, topology()))
        return (opened[0], Place(run=opened[0])) if opened else None

    def _close(self, run: LiveRun | None, error: BaseException | None) -> None:
        if run is None:
            return
        outcome = "completed" if error is None else outcome_of(error)
        with harmless(self._engine.failures, "ending a run"):
            run.close("failed" if outcome == "error" else outcome, error)


def _speaks(agent: Any) -> bool:
    """Whether a participant is an agent and no team within the team."""
    return hasattr(agent, "on_messages_stream")


async def _next(events: Any, place: Place) -> Any:
    """A stream's next event, read at the run's place; None at the end."""
    with ExitStack() as at:
        if current_place() is not place:
            at.enter_context(standing_at(place, place.run.context))
        return await anext(events, None)


def install(engine: Engine) -> None:
    """Hook every team of the process, the containers of its agents, and agents without a team."""
    hooks = _Hooks(engine)
    _patches.wrap(BaseGroupChat, "run_stream", hooks.run_stream)
    _patches.wrap(BaseChatAgent, "run", hooks.agent_run)
    _patches.wrap(BaseChatAgent, "run_stream", hooks.agent_run_stream)
    _patches.put(ChatAgentContainer, "_agent", _AgentAttribute())


def uninstall() -> None:
    """Put AutoGen back as it was."""
    _sessions.clear()
    _patches.undo()
