"""Replies of OpenAI-compatible servers, read with care.

What a call is about (its choices, texts, vectors, log-probabilities) must be there and of the
right type, or the reply is malformed. What only describes it (usage, model, finish reason) is
None where a server leaves it out or gets it wrong. No message here repeats a reply's text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from twinspan.instrumentation.clients.reply_fields import (
    count_or_none,
    kind_of,
    malformed,
    text_or_none,
)
from twinspan.instrumentation.clients.reply_logprobs import read_logprobs
from twinspan.instrumentation.clients.values import Completion, Sampling, ToolCall, Usage
from twinspan.instrumentation.narrowing import as_mapping, as_sequence

_FILTERED: Final = "content_filter"
_THINK_START: Final = "<think>"
_THINK_END: Final = "</think>"


def decode(body: bytes, content_type: str) -> object:
    """A reply's JSON value.

    Raises:
        MalformedReply: for anything else, such as a page of HTML.

    >>> decode(b'{"a": 1}', "application/json")
    {'a': 1}
    """
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        # Without the cause: a decoder's error carries the whole body.
        kind = content_type.partition(";")[0].strip()[:40] or "no type"
        raise malformed(f"the reply is not JSON ({len(body)} bytes of {kind})") from None


# --- answers ----------------------------------------------------------------------------------


def read_chat(reply: object, sampling: Sampling) -> Completion:
    """The answer in a `/chat/completions` reply.

    Handled besides the protocol itself: no usage, no or null log-probabilities, null content
    with a refusal, content in parts, reasoning in `reasoning_content`, `reasoning` or a
    leading `<think>` block, tool arguments as an object, tool calls without an id, the
    legacy `function_call`.

    Raises:
        MalformedReply: if there is no choice, no message, or something of a wrong type.

    >>> reply = {"choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}
    >>> read_chat(reply, Sampling()).text
    'yes'
    """
    body, choice = _first_choice(reply)
    message = as_mapping(choice.get("message"))
    if message is None:
        raise malformed("the reply's choice has no message")
    reasoning, text = _split_thought(_content(message.get("content")))
    thought = text_or_none(message.get("reasoning_content"))
    thought = thought or text_or_none(message.get("reasoning")) or reasoning
    return Completion(
        text=text,
        tool_calls=_tool_calls(message),
        finish_reason=text_or_none(choice.get("finish_reason")),
        refusal=_refusal(message, choice),
        reasoning=thought,
        usage=read_usage(body.get("usage")),
        model=text_or_none(body.get("model")),
        logprobs=read_logprobs(choice, body),
        sampling=sampling,
    )


def read_text(reply: object, sampling: Sampling) -> Completion:
    """The continuation in a `/completions` reply.

    Log-probabilities are read in the protocol's own form, in that of chat replies, and in
    llama.cpp's `completion_probabilities`, old and new.

    Raises:
        MalformedReply: if there is no choice or no text in it.

    >>> read_text({"choices": [{"text": " 2"}]}, Sampling()).text
    ' 2'
    """
    body, choice = _first_choice(reply)
    text = choice.get("text")
    if not isinstance(text, str):
        raise malformed(f"the reply's text is {kind_of(text)}")
    finish = text_or_none(choice.get("finish_reason"))
    return Completion(
        text=text,
        finish_reason=finish,
        refusal="" if finish == _FILTERED else None,
        usage=read_usage(body.get("usage")),
        model=text_or_none(body.get("model")),
        logprobs=read_logprobs(choice, body),
        sampling=sampling,
    )


def read_usage(value: object) -> Usage | None:
    """The tokens a reply counts, or None where it does not say.

    >>> read_usage({"prompt_tokens": 3, "completion_tokens": None})
    Usage(input_tokens=3, output_tokens=None)
    >>> read_usage(None) is None
    True
    """
    usage = as_mapping(value)
    if usage is None:
        return None
    return Usage(
        input_tokens=count_or_none(usage.get("prompt_tokens")),
        output_tokens=count_or_none(usage.get("completion_tokens")),
    )


def add_usage(usages: Sequence[Usage | None]) -> Usage | None:
    """The tokens of several calls; None where any of them is unknown.

    >>> add_usage([Usage(input_tokens=1), Usage(input_tokens=2)])
    Usage(input_tokens=3, output_tokens=None)
    """
    known = [usage for usage in usages if usage is not None]
    if not known or len(known) < len(usages):
        return None
    return Usage(
        input_tokens=_sum([usage.input_tokens for usage in known]),
        output_tokens=_sum([usage.output_tokens for usage in known]),
    )


def _sum(counts: Sequence[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None


def _first_choice(reply: object) -> tuple[Mapping[Any, object], Mapping[Any, object]]:
    body = as_mapping(reply)
    if body is None:
        raise malformed(f"the reply is {kind_of(reply)}, not an object")
    choices = as_sequence(body.get("choices"))
    choice = as_mapping(choices[0]) if choices else None
    if choice is None:
        raise malformed("the reply has no choices")
    return body, choice


def _content(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    parts = as_sequence(value)
    if parts is None:
        raise malformed(f"the reply's content is {kind_of(value)}")
    return "".join(map(_part, parts))


def _part(value: object) -> str:
    fields = as_mapping(value)
    text = fields.get("text") if fields is not None else value
    return text if isinstance(text, str) else ""


def _split_thought(text: str) -> tuple[str | None, str]:
    """A leading block of thought and the answer behind it."""
    start = text.lstrip()
    if not start.startswith(_THINK_START) or _THINK_END not in start:
        return None, text
    thought, _, answer = start.removeprefix(_THINK_START).partition(_THINK_END)
    return thought.strip(), answer.lstrip()


def _refusal(message: Mapping[Any, object], choice: Mapping[Any, object]) -> str | None:
    said = text_or_none(message.get("refusal"))
    if said is None and choice.get("finish_reason") == _FILTERED:
        return ""
    return said


def _tool_calls(message: Mapping[Any, object]) -> tuple[ToolCall, ...]:
    shown = message.get("tool_calls")
    calls = as_sequence(shown if shown is not None else ())
    if calls is None:
        raise malformed(f"the reply's tool calls are {kind_of(shown)}")
    legacy = as_mapping(message.get("function_call"))
    if not calls and legacy is not None:
        calls = ({"function": legacy},)
    return tuple(_tool_call(each, number) for number, each in enumerate(calls))


def _tool_call(value: object, number: int) -> ToolCall:
    call = as_mapping(value)
    function = as_mapping(call.get("function")) if call is not None else None
    name = text_or_none(function.get("name")) if function is not None else None
    if call is None or function is None or name is None:
        raise malformed(f"tool call {number} of the reply names no tool")
    arguments = function.get("arguments")
    return ToolCall(
        id=text_or_none(call.get("id")) or f"call_{number}",
        name=name,
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )
