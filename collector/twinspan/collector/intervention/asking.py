"""Asks a chat model for a form of answer, with or without a server that enforces it."""

from __future__ import annotations

from dataclasses import replace

from twinspan.instrumentation.clients import (
    ChatClient,
    ChatRequest,
    Completion,
    JsonSchema,
    Message,
    Sampling,
)
from twinspan.instrumentation.errors import NotServed


async def ask(
    client: ChatClient,
    system: str,
    user: str,
    *,
    sampling: Sampling,
    schema: JsonSchema | None = None,
) -> Completion:
    """One answer; a server that knows no schemas is asked again without one.

    Raises:
        ClientError: if there is no answer.
    """
    request = ChatRequest(
        messages=(Message.system(system), Message.user(user)), sampling=sampling, schema=schema
    )
    if schema is None:
        return await client.complete(request)
    try:
        return await client.complete(request)
    except NotServed:
        return await client.complete(replace(request, schema=None))
