"""An agent's model, observed: what it answers goes through the gate before the SDK sees it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

from openai.types.responses import ResponseCompletedEvent
from wrapt import ObjectProxy

from twinspan.instrumentation.frameworks.openai_agents.answers import is_answer
from twinspan.instrumentation.frameworks.openai_agents.rerun import is_rerun, look
from twinspan.instrumentation.frameworks.openai_agents.session import Session, current_session
from twinspan.instrumentation.frameworks.place import is_unobserved
from twinspan.instrumentation.frameworks.stepwise import Step


class ObservedModel(ObjectProxy):  # type: ignore[type-arg]
    """A model of one agent; whatever is not a model call is the model's own."""

    def __init__(self, model: Any, agent: Any) -> None:
        super().__init__(model)  # pyright: ignore[reportUnknownMemberType]
        self._self_model = model
        self._self_agent = agent

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        """The model's response, or the one that replaces it."""
        call = self._self_model.get_response
        begun = self._begun(args, kwargs)
        if begun is None:
            response = await call(*args, **kwargs)
            return look(response, _handoffs(args, kwargs)) if is_rerun() else response
        session, step = begun
        with step.running():
            response = await call(*args, **kwargs)
        if is_answer(response.output, _handoffs(args, kwargs)):
            return await session.answered(step, response, _handoffs(args, kwargs))
        return response

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        """The same as a stream: held until it is decided where the settings say so."""
        call = self._self_model.stream_response
        begun = self._begun(args, kwargs)
        if begun is None:
            async for event in call(*args, **kwargs):
                yield event
            return
        session, step = begun
        holds = step.run.engine.holds_stream
        held: list[Any] = []
        events = call(*args, **kwargs)
        try:
            while (event := await _next(events, step)) is not None:
                if isinstance(event, ResponseCompletedEvent) and is_answer(
                    event.response.output, _handoffs(args, kwargs)
                ):
                    decided = await session.answered(step, event.response, _handoffs(args, kwargs))
                    if decided is not event.response:
                        held = []
                        event = _completed(event, decided)
                held.append(event)
                if not holds or isinstance(event, ResponseCompletedEvent):
                    for each in held:
                        yield each
                    held = []
        finally:
            await events.aclose()

    def _begun(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Session, Step] | None:
        session = current_session()
        if session is None or is_unobserved() or is_rerun():
            return None
        payload = args[1] if len(args) > 1 else kwargs.get("input")
        step = session.at_work(self._self_agent, payload)
        return None if step is None else (session, step)


async def _next(events: Any, step: Step) -> Any:
    """A stream's next event, read with the node's span current; None at the end."""
    with step.running():
        return await anext(events, None)


def _handoffs(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return (args[5] if len(args) > 5 else kwargs.get("handoffs")) or ()


def _completed(event: Any, decided: Any) -> Any:
    """The event that ends a stream, with another response."""
    response = event.response.model_copy(update={"output": list(decided.output)})
    return event.model_copy(update={"response": response})
