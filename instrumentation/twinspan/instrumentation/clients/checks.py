"""Checks of numeric options, shared by the values of this folder."""

from __future__ import annotations

import math
from collections.abc import Callable

from twinspan.instrumentation.errors import ConfigurationError


def check_number(
    name: str, value: float | None, *, valid: Callable[[float], bool], range_: str
) -> None:
    """Let a finite number within its range pass, and None.

    Raises:
        ConfigurationError: naming the option, its value and its range.

    >>> check_number("timeout", 3.0, valid=lambda x: x > 0, range_="over 0")
    >>> check_number("timeout", 0.0, valid=lambda x: x > 0, range_="over 0")
    Traceback (most recent call last):
    ...
    twinspan.instrumentation.errors.ConfigurationError: timeout is 0.0; it must be over 0
    """
    if value is not None and not (math.isfinite(value) and valid(value)):
        raise ConfigurationError(f"{name} is {value!r}; it must be {range_}")
