"""Installs and removes the hooks in teams and in the containers of their agents."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import ExitStack, suppress
from typing import Any, Final

from autogen_agentchat.teams import BaseGroupChat
from autogen_agentchat.teams._group_chat._chat_agent_container import ChatAgentContainer

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.autogen.session import ObservedAgent, Session
from twinspan.instrumentation.frameworks.autogen.topology import topology_of
from twinspan.instrumentation.frameworks.patching import Patches
from twinspan.instrumentation.frameworks.place import (
    Place,
    current_place,
    is_unobserved,
    standing_at,
)
from twinspan.instrumentation.frameworks.stepwise import outcome_of
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
        if is_unobserved():
            async for event in wrapped(*args, **kwargs):
                yield event
            return
        opened: list[tuple[LiveRun | None, Place]] = []
        with harmless(self._engine.failures, "starting a run"):
            opened.append(self._open(team))
        if not opened:
            async for event in wrapped(*args, **kwargs):
                yield event
            return
        ((run, place),) = opened
        session = Session(place, [str(agent.name) for agent in team._participants])
        taking_part = {id(agent): session for agent in team._participants if _speaks(agent)}
        _sessions.update(taking_part)
        events = wrapped(*args, **kwargs)
        try:
            while (event := await _next(events, place)) is not None:
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
        finally:
            for key in taking_part:
                _sessions.pop(key, None)

    def _open(self, team: Any) -> tuple[LiveRun | None, Place]:
        """The team's own run, or its place in the run around it."""
        place = current_place()
        if place is not None:
            return None, place
        run = LiveRun.open(self._engine, topology_of(team))
        return run, Place(run=run)

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
    """Hook every team of the process, and the containers of its agents."""
    hooks = _Hooks(engine)
    _patches.wrap(BaseGroupChat, "run_stream", hooks.run_stream)
    _patches.put(ChatAgentContainer, "_agent", _AgentAttribute())


def uninstall() -> None:
    """Put AutoGen back as it was."""
    _sessions.clear()
    _patches.undo()
