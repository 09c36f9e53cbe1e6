"""Telemetry never harms the host: our own failures cost a span and one log line."""

from __future__ import annotations

import logging
import os
from collections.abc import Generator
from contextlib import contextmanager
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

    def note(self, where: str) -> None:
        """Note the exception that is being handled.

        Raises:
            Exception: that very exception, when `TWINSPAN_RAISE=1`.
        """
        self.count += 1
        if os.environ.get(RAISE_VARIABLE) == "1":
            raise
        if self.count == 1:
            _logger.exception(
                "twinspan failed in %s and stepped aside; the agent is not affected, "
                "the run's record is incomplete",
                where,
            )


@contextmanager
def harmless(failures: Failures, where: str) -> Generator[None]:
    """Keep failures of the block from the host; a halt that the user switched on passes."""
    try:
        yield
    except BiasHalt:
        raise
    except Exception:
        failures.note(where)
