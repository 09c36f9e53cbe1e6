"""Log-probabilities in replies, in the four forms that servers write them in."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from twinspan.instrumentation.clients.reply_fields import kind_of, malformed, real, string
from twinspan.instrumentation.clients.values import TokenLogprob
from twinspan.instrumentation.narrowing import as_mapping, as_sequence


def read_logprobs(
    choice: Mapping[Any, object], body: Mapping[Any, object]
) -> tuple[TokenLogprob, ...] | None:
    """The tokens of an answer with their log-probabilities, or None if a reply has none.

    Args:
        choice: the choice they belong to.
        body: the reply; older llama.cpp servers write them there.

    Raises:
        MalformedReply: for entries of wrong types, and for values that are no log-probability.

    >>> shown = {"content": [{"token": "yes", "logprob": -0.5}]}
    >>> [token.logprob for token in read_logprobs({"logprobs": shown}, {}) or ()]
    [-0.5]
    """
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
        raise malformed(f"a token's log-probability is {kind_of(entry)}")
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
        raise malformed(f"an alternative token is {kind_of(entry)}")
    return _token_text(fields), _token_value(fields)


def _token_text(fields: Mapping[Any, object]) -> str:
    for name in ("token", "tok_str", "content"):
        text = fields.get(name)
        if isinstance(text, str):
            return text
    raise malformed("a log-probability names no token")


def _token_value(fields: Mapping[Any, object]) -> float | None:
    if "logprob" in fields:
        return log_probability(fields["logprob"])
    probability = fields.get("prob")
    if probability is None:
        return None
    number = real(probability, "a token's probability")
    if not 0 <= number <= 1 + 1e-6:
        raise malformed("a token's probability is not in [0, 1]")
    return math.log(min(number, 1.0)) if number > 0 else -math.inf


def _columns(shown: Mapping[Any, object]) -> tuple[TokenLogprob, ...]:
    """The column-wise form of `/completions`."""
    tokens = as_sequence(shown.get("tokens")) or ()
    values = as_sequence(shown.get("token_logprobs")) or ()
    tops = as_sequence(shown.get("top_logprobs")) or (None,) * len(tokens)
    if not len(tokens) == len(values) == len(tops):
        raise malformed("the reply's columns of log-probabilities differ in length")
    return tuple(
        TokenLogprob(token=string(token), logprob=log_probability(value), top=_top_of_mapping(top))
        for token, value, top in zip(tokens, values, tops, strict=True)
    )


def _top_of_mapping(value: object) -> tuple[tuple[str, float], ...]:
    alternatives = as_mapping(value) or {}
    pairs = [(string(token), log_probability(each)) for token, each in alternatives.items()]
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
    number = real(value, "a log-probability")
    if math.isnan(number) or number > 1e-3:
        raise malformed("a log-probability is above 0 or not a number")
    return min(number, 0.0)
