"""A copy of an agent that can be run without the agent noticing."""

from __future__ import annotations

import copy
from collections.abc import AsyncGenerator, Iterable
from typing import Any

from autogen_agentchat.base import Response
from autogen_core import CancellationToken
from autogen_core.model_context import ChatCompletionContext
from wrapt import ObjectProxy

from twinspan.instrumentation.probing.guard import current_probe


class GuardedModel(ObjectProxy):  # type: ignore[type-arg]
    """A model client that asks for tools inside a probe only if they are safe.

    The call is stopped where the model asks for it: an assistant whose tool raises waits for it
    for ever.
    """

    def __init__(self, client: Any, handoffs: Iterable[str]) -> None:
        super().__init__(client)  # pyright: ignore[reportUnknownMemberType]
        self._self_client = client
        self._self_handoffs = frozenset(handoffs)

    async def create(self, *args: Any, **kwargs: Any) -> Any:
        """Ask the model."""
        return self._checked(await self._self_client.create(*args, **kwargs))

    async def create_stream(self, *args: Any, **kwargs: Any) -> AsyncGenerator[Any]:
        """The same as a stream."""
        async for part in self._self_client.create_stream(*args, **kwargs):
            yield self._checked(part)

    def _checked(self, result: Any) -> Any:
        content = getattr(result, "content", None)
        asked = _list(content) if isinstance(content, list) else []
        for call in asked:
            if call.name not in self._self_handoffs:
                _check(call.name)
        return result


class GuardedExecutor(ObjectProxy):  # type: ignore[type-arg]
    """A code executor that executes nothing inside a probe unless it is safe."""

    def __init__(self, executor: Any) -> None:
        super().__init__(executor)  # pyright: ignore[reportUnknownMemberType]
        self._self_executor = executor

    async def execute_code_blocks(self, *args: Any, **kwargs: Any) -> Any:
        """Execute code."""
        _check("code_executor")
        return await self._self_executor.execute_code_blocks(*args, **kwargs)


def _list(value: Any) -> list[Any]:
    """What is known to be a list, of anything."""
    found: list[Any] = value
    return found


def _check(tool: str) -> None:
    frame = current_probe()
    if frame is not None:
        frame.check_tool(tool)


def isolated(agent: Any) -> Any:
    """An agent with the same model and tools, and with a memory of its own."""
    twin = copy.copy(agent)
    for name, value in list(twin.__dict__.items()):
        if isinstance(value, ChatCompletionContext):
            setattr(twin, name, _own_context(value))
        elif type(value) in (list, dict, set):
            setattr(twin, name, copy.copy(value))
    if getattr(twin, "_model_client", None) is not None:
        twin._model_client = GuardedModel(twin._model_client, getattr(twin, "_handoffs", ()))
    if getattr(twin, "_code_executor", None) is not None:
        twin._code_executor = GuardedExecutor(twin._code_executor)
    return twin


def _own_context(context: Any) -> Any:
    """A model context whose list of messages is a copy; the messages are never altered."""
    twin = copy.copy(context)
    for name, value in context.__dict__.items():
        if isinstance(value, list):
            setattr(twin, name, copy.copy(_list(value)))
    return twin


async def respond(agent: Any, messages: Any) -> Response:
    """What an agent answers to some messages."""
    found: Response | None = None
    async for event in agent.on_messages_stream(messages, CancellationToken()):
        if isinstance(event, Response):
            found = event
    if found is None:
        raise RuntimeError("the agent gave no response")
    return found
