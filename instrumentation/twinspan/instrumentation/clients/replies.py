"""Replies of OpenAI-compatible servers, read with care.

What a call is about (its choices, texts, vectors, log-probabilities) must be there and of the
right type, or the reply is malformed. What only describes it (usage, model, finish reason) is
None where a server leaves it out or gets it wrong. No message here repeats a reply's text.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.values import (
    Completion,
    Sampling,
    TokenLogprob,
    ToolCall,
    Usage,
)
from twinspan.instrumentation.errors import MalformedReply
from twinspan.instrumentation.narrowing import as_mapping, as_sequence

_CURE: Final = "point base_url at a server that speaks the OpenAI protocol, such as .../v1"
_FILTERED: Final = "content_filter"
_THINK_START: Final = "<think>"
_THINK_END: Final = "</think>"


def _malformed(what: str, cure: str = _CURE) -> MalformedReply:
    return MalformedReply(f"{what}; {cure}")


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
        raise _malformed(f"the reply is not JSON ({len(body)} bytes of {kind})") from None


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
        raise _malformed("the reply's choice has no message")
    reasoning, text = _split_thought(_content(message.get("content")))
    thought = _text_or_none(message.get("reasoning_content"))
    thought = thought or _text_or_none(message.get("reasoning")) or reasoning
    return Completion(
        text=text,
        tool_calls=_tool_calls(message),
        finish_reason=_text_or_none(choice.get("finish_reason")),
        refusal=_refusal(message, choice),
        reasoning=thought,
        usage=read_usage(body.get("usage")),
        model=_text_or_none(body.get("model")),
        logprobs=_logprobs(choice, body),
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
        raise _malformed(f"the reply's text is {_kind(text)}")
    finish = _text_or_none(choice.get("finish_reason"))
    return Completion(
        text=text,
        finish_reason=finish,
        refusal="" if finish == _FILTERED else None,
        usage=read_usage(body.get("usage")),
        model=_text_or_none(body.get("model")),
        logprobs=_logprobs(choice, body),
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
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
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
        raise _malformed(f"the reply is {_kind(reply)}, not an object")
    choices = as_sequence(body.get("choices"))
    choice = as_mapping(choices[0]) if choices else None
    if choice is None:
        raise _malformed("the reply has no choices")
    return body, choice


def _content(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    parts = as_sequence(value)
    if parts is None:
        raise _malformed(f"the reply's content is {_kind(value)}")
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
    said = _text_or_none(message.get("refusal"))
    if said is None and choice.get("finish_reason") == _FILTERED:
        return ""
    return said


def _tool_calls(message: Mapping[Any, object]) -> tuple[ToolCall, ...]:
    shown = message.get("tool_calls")
    calls = as_sequence(shown if shown is not None else ())
    if calls is None:
        raise _malformed(f"the reply's tool calls are {_kind(shown)}")
    legacy = as_mapping(message.get("function_call"))
    if not calls and legacy is not None:
        calls = ({"function": legacy},)
    return tuple(_tool_call(each, number) for number, each in enumerate(calls))


def _tool_call(value: object, number: int) -> ToolCall:
    call = as_mapping(value)
    function = as_mapping(call.get("function")) if call is not None else None
    name = _text_or_none(function.get("name")) if function is not None else None
    if call is None or function is None or name is None:
        raise _malformed(f"tool call {number} of the reply names no tool")
    arguments = function.get("arguments")
    return ToolCall(
        id=_text_or_none(call.get("id")) or f"call_{number}",
        name=name,
        arguments=arguments if isinstance(arguments, str) else json.dumps(arguments or {}),
    )


# --- log-probabilities ------------------------------------------------------------------------


def _logprobs(
    choice: Mapping[Any, object], body: Mapping[Any, object]
) -> tuple[TokenLogprob, ...] | None:
    shown = as_mapping(choice.get("logprobs"))
    if shown is not None and as_sequence(shown.get("content")) is not None:
        return _tokens(as_sequence(shown.get("content")) or ())
    if shown is not None and as_sequence(shown.get("tokens")) is not None:
        return _columns(shown)
    for place in (choice, body):
        native = as_sequence(place.get("completion_probabilities"))
        if native is not None:
            return _tokens(native)
    return None


def _tokens(entries: Sequence[object]) -> tuple[TokenLogprob, ...]:
    return tuple(_token(each) for each in entries)


def _token(entry: object) -> TokenLogprob:
    fields = as_mapping(entry)
    if fields is None:
        raise _malformed(f"a token's log-probability is {_kind(entry)}")
    shown = (fields.get(name) for name in ("top_logprobs", "top_probs", "probs"))
    alternatives = next((each for each in map(as_sequence, shown) if each is not None), ())
    pairs = [_pair(each) for each in alternatives]
    return TokenLogprob(
        token=_token_text(fields),
        logprob=_token_value(fields),
        top=_possible(pairs),
    )


def _pair(entry: object) -> tuple[str, float | None]:
    fields = as_mapping(entry)
    if fields is None:
        raise _malformed(f"an alternative token is {_kind(entry)}")
    return _token_text(fields), _token_value(fields)


def _token_text(fields: Mapping[Any, object]) -> str:
    for name in ("token", "tok_str", "content"):
        text = fields.get(name)
        if isinstance(text, str):
            return text
    raise _malformed("a log-probability names no token")


def _token_value(fields: Mapping[Any, object]) -> float | None:
    if "logprob" in fields:
        return log_probability(fields["logprob"])
    probability = fields.get("prob")
    if probability is None:
        return None
    number = _number(probability, "a token's probability")
    if not 0 <= number <= 1 + 1e-6:
        raise _malformed("a token's probability is not in [0, 1]")
    return math.log(min(number, 1.0)) if number > 0 else -math.inf


def _columns(shown: Mapping[Any, object]) -> tuple[TokenLogprob, ...]:
    """The column-wise form of `/completions`."""
    tokens = as_sequence(shown.get("tokens")) or ()
    values = as_sequence(shown.get("token_logprobs")) or ()
    tops = as_sequence(shown.get("top_logprobs")) or (None,) * len(tokens)
    if not len(tokens) == len(values) == len(tops):
        raise _malformed("the reply's columns of log-probabilities differ in length")
    return tuple(
        TokenLogprob(token=_string(token), logprob=log_probability(value), top=_top_of_mapping(top))
        for token, value, top in zip(tokens, values, tops, strict=True)
    )


def _top_of_mapping(value: object) -> tuple[tuple[str, float], ...]:
    alternatives = as_mapping(value) or {}
    pairs = [(_string(token), log_probability(each)) for token, each in alternatives.items()]
    return _possible(pairs)


def _possible(pairs: Sequence[tuple[str, float | None]]) -> tuple[tuple[str, float], ...]:
    return tuple(
        (token, value) for token, value in pairs if value is not None and value > -math.inf
    )


def log_probability(value: object) -> float | None:
    """A log-probability, minus infinity included; None for null, which is not known.

    Raises:
        MalformedReply: for what is no number, not a number, or above 0 by more than rounding.

    >>> log_probability(-0.5), log_probability(None), log_probability(1e-9)
    (-0.5, None, 0.0)
    """
    if value is None:
        return None
    number = _number(value, "a log-probability")
    if math.isnan(number) or number > 1e-3:
        raise _malformed("a log-probability is above 0 or not a number")
    return min(number, 0.0)


# --- vectors ----------------------------------------------------------------------------------


def read_embeddings(reply: object, count: int) -> NDArray[np.float64]:
    """The vectors in an `/embeddings` reply, one row per text, in the texts' order.

    Read in the protocol's form, as a bare list (older llama.cpp), with one row nested in
    another, and base64-coded.

    Raises:
        MalformedReply: for missing, ragged or non-finite vectors.

    >>> read_embeddings({"data": [{"index": 0, "embedding": [1, 2]}]}, 1)
    array([[1., 2.]])
    """
    body = as_mapping(reply)
    rows = as_sequence(body.get("data") if body is not None else reply)
    if rows is None or len(rows) != count:
        found = "no" if rows is None else str(len(rows))
        raise _malformed(f"the reply has {found} vectors for {count} texts")
    vectors = [_vector(row, number) for number, row in enumerate(_in_order(rows))]
    if len({len(vector) for vector in vectors}) > 1:
        raise _malformed("the reply's vectors differ in length")
    return np.stack(vectors)


def _in_order(rows: Sequence[object]) -> Sequence[object]:
    indices = [_index(row) for row in rows]
    if None in indices:
        return rows
    if sorted(indices, key=lambda index: index or 0) != list(range(len(rows))):
        raise _malformed("the reply's vectors are not numbered from 0 without gaps")
    return [rows[indices.index(place)] for place in range(len(rows))]


def _index(row: object) -> int | None:
    fields = as_mapping(row)
    return _count(fields.get("index")) if fields is not None else None


def _vector(row: object, number: int) -> NDArray[np.float64]:
    fields = as_mapping(row)
    value = fields.get("embedding") if fields is not None else row
    if isinstance(value, str):
        vector = _from_base64(value)
    else:
        vector = _from_numbers(value, number)
    if not len(vector) or not np.isfinite(vector).all():
        raise _malformed(f"vector {number} of the reply is empty or not finite")
    return vector


def _from_numbers(value: object, number: int) -> NDArray[np.float64]:
    items = as_sequence(value)
    if items is not None and len(items) == 1 and as_sequence(items[0]) is not None:
        items = as_sequence(items[0])
    if items is None:
        raise _malformed(f"vector {number} of the reply is {_kind(value)}")
    return np.array([_number(item, "a coordinate") for item in items], dtype=np.float64)


def _from_base64(value: str) -> NDArray[np.float64]:
    try:
        return np.frombuffer(base64.b64decode(value, validate=True), dtype="<f4").astype(np.float64)
    except (binascii.Error, ValueError):
        raise _malformed("a vector of the reply is no base64 of 32-bit floats") from None


# --- single values ----------------------------------------------------------------------------


def _kind(value: object) -> str:
    return "null" if value is None else f"of type {type(value).__name__}"


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise _malformed(f"a token is {_kind(value)}")
    return value


def _count(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def _number(value: object, what: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _malformed(f"{what} is {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise _malformed(f"{what} is too large for a float") from None
