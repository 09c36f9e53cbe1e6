"""Telemetry never harms the host: our own failures cost a span and one log line."""

from __future__ import annotations

import logging
import os
import traceback
from types import TracebackType
from typing import Final

from twinspan.instrumentation.errors import BiasHalt

_logger = logging.getLogger(__name__)

RAISE_VARIABLE: Final = "TWINSPAN_RAISE"
"""Set to 1, our own failures are raised instead of logged; twinspan's tests do so."""


class Failures:
    """Counts failures of twinspan itself, and tells only of the first.

    >>> failures = Failures()
    >>> failures.count
    0
    """

    def __init__(self) -> None:
        self.count = 0

    def note(self, where: str, error: Exception) -> None:
        """Note a failure.

        Raises:
            Exception: that very exception, when `TWINSPAN_RAISE=1`.
        """
        self.count += 1
        if os.environ.get(RAISE_VARIABLE) == "1":
            raise error
        if self.count == 1:
            _logger.error(
                "twinspan failed in %s and stepped aside; the agent is not affected, "
                "the run's record is incomplete; %s",
                where,
                without_text(error),
            )


def without_text(error: BaseException) -> str:
    """Class of an error and where it was raised; its text may be content.

    >>> try:
    ...     raise ValueError("what a prompt said")
    ... except ValueError as error:
    ...     told = without_text(error)
    >>> told.startswith("ValueError at"), "prompt" in told
    (True, False)
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = ", ".join(f"{frame.filename}:{frame.lineno} in {frame.name}" for frame in frames)
    return f"{type(error).__qualname__} at {places or 'an unknown place'}"


class harmless:
    """Keep failures of the block from the host; a halt that the user switched on passes.

    A class, since every node passes several: a generator would cost three times as much.
    """

    __slots__ = ("_failures", "_where")

    def __init__(self, failures: Failures, where: str) -> None:
        self._failures = failures
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> bool:
        if error is None or isinstance(error, BiasHalt) or not isinstance(error, Exception):
            return False
        self._failures.note(self._where, error)
        return True
