"""Single values of replies, read with care; no message repeats a value."""

from __future__ import annotations

from typing import Final

from twinspan.instrumentation.errors import MalformedReply

_CURE: Final = "point base_url at a server that speaks the OpenAI protocol, such as .../v1"


def malformed(what: str) -> MalformedReply:
    """The error for a reply that the protocol does not allow, with the usual cure."""
    return MalformedReply(f"{what}; {_CURE}")


def kind_of(value: object) -> str:
    """What a value is, for a message that may not show it.

    >>> kind_of(None), kind_of("words")
    ('null', 'of type str')
    """
    return "null" if value is None else f"of type {type(value).__name__}"


def text_or_none(value: object) -> str | None:
    """A text that is not empty, or None.

    >>> text_or_none("stop"), text_or_none(3)
    ('stop', None)
    """
    return value if isinstance(value, str) and value else None


def string(value: object) -> str:
    """A token's text.

    Raises:
        MalformedReply: if it is none.
    """
    if not isinstance(value, str):
        raise malformed(f"a token is {kind_of(value)}")
    return value


def count_or_none(value: object) -> int | None:
    """A count, or None for what is no whole number from 0.

    >>> count_or_none(3), count_or_none(-1), count_or_none(True)
    (3, None, None)
    """
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return None


def real(value: object, what: str) -> float:
    """A number as a float; infinities and NaN pass.

    Raises:
        MalformedReply: for anything else, named by `what`.

    >>> real(2, "a coordinate")
    2.0
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise malformed(f"{what} is {kind_of(value)}")
    try:
        return float(value)
    except OverflowError:
        raise malformed(f"{what} is too large for a float") from None
