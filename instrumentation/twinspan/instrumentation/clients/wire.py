"""Requests as the OpenAI-compatible protocol writes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from twinspan.instrumentation.clients.settings import StructuredMode
from twinspan.instrumentation.clients.values import (
    ChatRequest,
    JsonSchema,
    Message,
    Sampling,
    TextRequest,
    ToolSpec,
)
from twinspan.instrumentation.errors import ConfigurationError

Body = dict[str, object]

MAX_TOKENS: Final = "max_tokens"
MAX_COMPLETION_TOKENS: Final = "max_completion_tokens"
"""The newer name of the former; reasoning models of hosted services take no other."""


def encode(body: Mapping[str, object]) -> bytes:
    r"""A body as JSON bytes; any Python text survives, even a lone surrogate.

    >>> encode({"a": "\ud800"})
    b'{"a": "\\ud800"}'
    """
    try:
        return json.dumps(body, ensure_ascii=True, allow_nan=False).encode("ascii")
    except (TypeError, ValueError):
        # Without the cause, whose text may show a part of the request.
        raise ConfigurationError(
            "a request has a value that JSON cannot hold; look at its tools and schema"
        ) from None


def chat_body(
    request: ChatRequest, structured: StructuredMode, limit_field: str = MAX_TOKENS
) -> Body:
    """The body of a `/chat/completions` request.

    >>> chat_body(ChatRequest.of("hello", Sampling(model="m", max_tokens=5)), "off")
    {'model': 'm', 'max_tokens': 5, 'messages': [{'role': 'user', 'content': 'hello'}]}
    """
    body = _sampling(request.sampling, limit_field)
    body["messages"] = [_message(each) for each in request.messages]
    if request.tools:
        body["tools"] = [_tool(each) for each in request.tools]
    if request.tool_choice is not None:
        body["tool_choice"] = _tool_choice(request.tool_choice)
    if request.schema is not None and structured != "off":
        body["response_format"] = _response_format(request.schema, structured)
    if request.logprobs is not None:
        body["logprobs"] = True
        body["top_logprobs"] = request.logprobs
    return body


def text_body(request: TextRequest) -> Body:
    """The body of a `/completions` request.

    >>> text_body(TextRequest(prompt="1 + 1 =", logprobs=5, echo=True))
    {'prompt': '1 + 1 =', 'logprobs': 5, 'echo': True}
    """
    body = _sampling(request.sampling, MAX_TOKENS)
    body["prompt"] = request.prompt
    if request.logprobs is not None:
        body["logprobs"] = request.logprobs
    if request.echo:
        body["echo"] = True
    return body


def embedding_body(texts: Sequence[str], model: str | None) -> Body:
    """The body of an `/embeddings` request.

    >>> embedding_body(["a"], "m")
    {'input': ['a'], 'encoding_format': 'float', 'model': 'm'}
    """
    body: Body = {"input": list(texts), "encoding_format": "float"}
    if model is not None:
        body["model"] = model
    return body


def _sampling(sampling: Sampling, limit_field: str) -> Body:
    values: Body = {
        "model": sampling.model,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        limit_field: sampling.max_tokens,
        "stop": list(sampling.stop) or None,
    }
    return {name: value for name, value in values.items() if value is not None}


def _message(message: Message) -> Body:
    body: Body = {"role": message.role, "content": message.content}
    if message.tool_calls:
        body["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        body["tool_call_id"] = message.tool_call_id
    return body


def _tool(tool: ToolSpec) -> Body:
    function: Body = {"name": tool.name, "parameters": dict(tool.parameters)}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}


def _tool_choice(choice: str) -> object:
    if choice in {"auto", "none", "required"}:
        return choice
    return {"type": "function", "function": {"name": choice}}


def _response_format(schema: JsonSchema, structured: StructuredMode) -> Body:
    if structured == "json_object":
        return {"type": "json_object"}
    return {
        "type": "json_schema",
        "json_schema": {
            "name": schema.name,
            "schema": dict(schema.schema),
            "strict": schema.strict,
        },
    }
