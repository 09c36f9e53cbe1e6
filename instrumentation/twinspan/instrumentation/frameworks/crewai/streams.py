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
    """The pieces of text that one execution of an agent streams, in their order.

    Those of agents that it asks are among them: what they showed is shown with its own answer.
    """

    def __init__(self) -> None:
        self._pieces: list[_Emission] = []
        self._last: _Emission | None = None

    def hold(self, emit: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Keep a piece; where it was emitted decides which streams it belongs to."""
        self._last = (copy_context(), emit, args, kwargs)
        self._pieces.append(self._last)

    def pass_on(self) -> None:
        """The answer stands as it was streamed."""
        pieces, self._pieces = self._pieces, []
        for piece in pieces:
            _tell(piece)

    def replace(self, answer: str) -> None:
        """Another answer stands: it is the stream, in one piece, if there was one at all."""
        self._pieces = []
        if self._last is not None:
            context, emit, args, kwargs = self._last
            source, event = source_and_event(args, kwargs)
            whole = LLMStreamChunkEvent(
                chunk=answer,
                call_id=event.call_id,
                agent_id=event.agent_id,
                agent_role=event.agent_role,
                task_id=event.task_id,
                task_name=event.task_name,
            )
            shown: _Emission = (context, emit, (source, whole), {})
            _tell(shown)

    def add(self, piece: _Emission) -> None:
        """Keep a piece of an agent that was asked."""
        self._pieces.append(piece)


def _tell(piece: _Emission) -> None:
    """Show a piece, or have it wait for the agent around."""
    around = _held.get()
    if around is not None:
        around.add(piece)
        return
    context, emit, args, kwargs = piece
    context.run(emit, *args, **kwargs)


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
