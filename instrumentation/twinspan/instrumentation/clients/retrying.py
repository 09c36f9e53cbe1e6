"""Which failed requests are tried again, when, and what is said of those that are not."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from twinspan.instrumentation.clients.seeds import counter_seed
from twinspan.instrumentation.errors import RequestRejected
from twinspan.instrumentation.narrowing import as_mapping

_TRANSIENT: Final = frozenset({408, 409, 425, 429})

_PLAIN_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,63}")
"""What an error code looks like; anything else could be a prompt or a key."""

_FIELDS: Final = (
    "logprobs",
    "top_logprobs",
    "echo",
    "response_format",
    "max_tokens",
    "max_completion_tokens",
    "temperature",
    "top_p",
    "seed",
    "stop",
    "tools",
    "tool_choice",
    "encoding_format",
)
"""Fields of our requests that a server may name as the reason of its refusal."""

_FILTER_CODES: Final = frozenset(
    {"content_filter", "content_policy_violation", "ResponsibleAIPolicyViolation"}
)

_CURES: Final[Mapping[int, str]] = {
    401: "set a valid api_key or OPENAI_API_KEY",
    402: "the account has no credit left; top it up",
    403: "the key may not do this; use another key or model",
    404: "check the model's name and that base_url ends where /chat/completions begins",
    405: "check that base_url ends where /chat/completions begins",
    413: "shorten the prompt or embed fewer texts at once",
    429: "lower the concurrency, or raise retries and longest_wait",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When a failed try is followed by another.

    Attributes:
        retries: further tries after the first.
        backoff: seconds before the first further try, doubled for each next one.
        longest_wait: most seconds between two tries.
    """

    retries: int
    backoff: float
    longest_wait: float

    def wait(self, attempt: int, key: str, asked: float | None = None) -> float | None:
        """Seconds until the next try, or None for no further one.

        The exponential back-off is spread by up to a half, by a hash of the request: many
        clients that failed together do not come back together, and no run differs from its
        repetition. What the server asks for is kept to, unless it is too long.

        Args:
            attempt: tries made so far, from 1.
            key: what the spread is drawn from.
            asked: seconds the server asked for.

        >>> policy = RetryPolicy(retries=2, backoff=0.5, longest_wait=30.0)
        >>> policy.wait(1, "k", asked=7.0), policy.wait(1, "k", asked=31.0), policy.wait(3, "k")
        (7.0, None, None)
        >>> 0.25 < policy.wait(1, "k") <= 0.5 < policy.wait(2, "k") <= 1.0
        True
        """
        if attempt > self.retries:
            return None
        if asked is not None and asked > self.longest_wait:
            return None
        spread = 1 - counter_seed(key, attempt) / 2**32
        own = min(self.backoff * 2.0 ** (attempt - 1), self.longest_wait) * spread
        return own if asked is None else max(own, asked)


def is_transient(status: int) -> bool:
    """Whether the same request may succeed later.

    >>> [status for status in (400, 408, 409, 425, 429, 500, 503) if is_transient(status)]
    [408, 409, 425, 429, 500, 503]
    """
    return status in _TRANSIENT or 500 <= status < 600


def asked_wait(headers: Mapping[str, str], now: datetime | None = None) -> float | None:
    """Seconds a server asks to be left alone, or None if it does not say.

    Read from `retry-after-ms`, or `retry-after` as seconds or as a date.

    >>> asked_wait({"retry-after": "2.5"}), asked_wait({"retry-after-ms": "250"})
    (2.5, 0.25)
    >>> start = datetime(2026, 1, 1, tzinfo=UTC)
    >>> asked_wait({"retry-after": "Thu, 01 Jan 2026 00:00:10 GMT"}, now=start)
    10.0
    """
    milliseconds = _seconds(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after")
    seconds = _seconds(value)
    return seconds if seconds is not None or value is None else _until(value, now)


def _seconds(value: str | None) -> float | None:
    try:
        seconds = float(value) if value is not None else None
    except ValueError:
        return None
    return seconds if seconds is not None and 0 <= seconds < float("inf") else None


def _until(date: str, now: datetime | None) -> float | None:
    try:
        when = email.utils.parsedate_to_datetime(date)
    except ValueError:
        return None
    aware = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
    return max(0.0, (aware - (now or datetime.now(UTC))).total_seconds())


# --- what a server says of a failure ----------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A server's account of a failure, without its words.

    Attributes:
        status: the status that the body itself states, if any.
        code: the server's own word for the error, if it gave a plain one.
        fields: fields of the request that it names.
    """

    status: int | None = None
    code: str | None = None
    fields: frozenset[str] = frozenset()


def explain(reply: object) -> Explanation:
    """Read an error body, whichever of the common forms it has.

    Known: OpenAI's `{"error": {...}}`, an `error` of plain text (Ollama), fields at the top
    level (older vLLM), and FastAPI's `detail`.

    >>> error = {"message": "no max_tokens here", "code": "unsupported_parameter"}
    >>> explain({"error": error}).fields
    frozenset({'max_tokens'})
    """
    body = as_mapping(reply)
    if body is None:
        return Explanation()
    error = as_mapping(body.get("error"))
    inner = error if error is not None else body
    codes = _plain_words(inner)
    filters = [code for code in codes if code in _FILTER_CODES]
    return Explanation(
        status=_status(inner.get("code")) or _status(inner.get("status")),
        code=next(iter(filters + codes), None),
        fields=_named_fields(body),
    )


def _plain_words(error: Mapping[Any, object]) -> list[str]:
    innermost = as_mapping(error.get("innererror")) or {}
    words = (error.get("code"), error.get("type"), innermost.get("code"))
    return [word for word in words if isinstance(word, str) and _PLAIN_WORD.fullmatch(word)]


def is_content_filter(error: RequestRejected) -> bool:
    """Whether a server declined for its content policy: an answer like a model's refusal.

    >>> is_content_filter(rejection(400, Explanation(code="content_filter"), 1))
    True
    """
    return error.code in _FILTER_CODES


def _status(value: object) -> int | None:
    number = int(value) if isinstance(value, str) and value.isdigit() else value
    return number if type(number) is int and 400 <= number < 600 else None


def _named_fields(body: Mapping[Any, object]) -> frozenset[str]:
    """Request fields that occur as whole words in the explanation."""
    text = str({key: body.get(key) for key in ("error", "message", "param", "detail")})
    return frozenset(
        field for field in _FIELDS if re.search(rf"(?<![A-Za-z0-9_]){field}(?![A-Za-z0-9_])", text)
    )


def rejection(status: int, explanation: Explanation, attempts: int) -> RequestRejected:
    """The error for a request that a server answered with one.

    >>> str(rejection(401, Explanation(), 1))
    'the server answered 401 in 1 try; set a valid api_key or OPENAI_API_KEY'
    """
    return RequestRejected(
        status,
        code=explanation.code,
        fields=explanation.fields,
        attempts=attempts,
        cure=_cure(status, explanation),
    )


def _cure(status: int, explanation: Explanation) -> str:
    if explanation.code in _FILTER_CODES:
        return "its content policy declined; count it as a refusal"
    if explanation.code == "context_length_exceeded":
        return "shorten the prompt or use a model with a longer context"
    if status in (400, 403, 422) and explanation.fields:
        return f"it names {', '.join(sorted(explanation.fields))}; leave that out or change it"
    if 300 <= status < 400:
        return "it points elsewhere; set base_url to the final address"
    if status >= 500:
        return "look at the server's log, or try again later"
    return _CURES.get(status, "check the model, its options and the base URL")
