"""Text that an agent streams waits until its answer is decided, where the breaker enforces."""

# CrewAI is not in the development environment, see the group `crewai-tests`.
# pyright: reportMissingImports=false, reportUnknownVariableType=false

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from typing import Any, Final

from crewai.events.types.llm_events import LLMStreamChunkEvent, LLMThinkingChunkEvent

_PIECES: Final = (LLMStreamChunkEvent, LLMThinkingChunkEvent)

_Emission = tuple[Context, Callable[..., Any], tuple[Any, ...], dict[str, Any]]


class Held:
    """The pieces of text that one execution of an agent streams, in their order."""

    def __init__(self) -> None:
        self._pieces: list[_Emission] = []

    def hold(self, emit: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep a piece; where it was emitted decides which streams it belongs to."""
        self._pieces.append((copy_context(), emit, args, kwargs))

    def pass_on(self) -> None:
        """The answer stands as it was streamed."""
        pieces, self._pieces = self._pieces, []
        for context, emit, args, kwargs in pieces:
            context.run(emit, *args, **kwargs)

    def replace(self, answer: str) -> None:
        """Another answer stands: it is the stream, in one piece, if there was one at all."""
        pieces, self._pieces = self._pieces, []
        if pieces:
            context, emit, args, kwargs = pieces[-1]
            source, event = source_and_event(args, kwargs)
            whole = LLMStreamChunkEvent(
                chunk=answer,
                call_id=event.call_id,
                agent_id=event.agent_id,
                agent_role=event.agent_role,
                task_id=event.task_id,
                task_name=event.task_name,
            )
            context.run(emit, source, whole)


_held: ContextVar[Held | None] = ContextVar("twinspan_crew_stream", default=None)


@contextmanager
def holding(*, holds: bool) -> Generator[Held]:
    """Keep what is streamed in the block, or let it pass."""
    held = Held()
    token = _held.set(held if holds else None)
    try:
        yield held
    finally:
        _held.reset(token)


def is_held(emit: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether an event is a piece of a stream that waits; it is kept then."""
    held = _held.get()
    if held is None or not isinstance(source_and_event(args, kwargs)[1], _PIECES):
        return False
    held.hold(emit, args, kwargs)
    return True


def source_and_event(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
    """What `emit` of CrewAI's event bus was given."""
    given = dict(zip(("source", "event"), args, strict=False)) | kwargs
    return given.get("source"), given.get("event")
