"""What option values must be; a value that is not says which would do."""

from __future__ import annotations

from typing import cast

from twinspan.instrumentation.errors import InvalidOption


def at_least(option: str, value: float, least: float) -> None:
    """Refuse a number below `least`, and NaN.

    >>> at_least("retries", -1, 0)
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.InvalidOption: retries is -1; it must be at least 0
    """
    if not value >= least:
        raise InvalidOption(option, value, cure=f"it must be at least {least:g}")


def share(option: str, value: float | None, *, zero: bool = False, one: bool = True) -> None:
    """Refuse a number that is no share: above 0 and up to 1.

    Args:
        option: its name.
        value: the number; None passes.
        zero: whether 0 is one too.
        one: whether 1 is one.

    >>> share("alpha", 1.0, one=False)
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.InvalidOption: alpha is 1.0; it lies between 0 and 1, like 0.05
    """
    if value is None or 0 < value < 1 or (zero and value == 0) or (one and value == 1):
        return
    low = "from 0" if zero else "above 0"
    told = f"it lies {low} and up to 1" if one else "it lies between 0 and 1, like 0.05"
    raise InvalidOption(option, value, cure=told)


def one_of(option: str, value: object, allowed: object, *, optional: bool = False) -> None:
    """Refuse what is none of a `Literal`'s words.

    >>> from typing import Literal
    >>> one_of("stream", "held", Literal["hold", "pass"])
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.InvalidOption: stream is 'held'; use one of hold, pass
    """
    choices = cast("tuple[str, ...]", getattr(allowed, "__args__", ()))
    if value in choices or (optional and value is None):
        return
    raise InvalidOption(option, value, cure=f"use one of {', '.join(choices)}")
