"""Hands our ended spans on to the application's own processors, without waiting for them.

An exporter that hangs or raises is the application's affair: it may cost a span in the
application's backend, never a decision and never the host's answer. Starts are handed on at
once (a processor may add attributes), ends by a worker thread.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import deque
from typing import Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from twinspan.instrumentation.safety import without_text

_logger = logging.getLogger(__name__)

CAPACITY: Final = 65_536
"""Ended spans that may wait; beyond it the oldest are dropped and counted."""

PAUSE: Final = 0.01
"""Seconds the worker lets spans gather, so that ending one never wakes a thread."""

POLL: Final = 0.001
"""Seconds between looks while a flush waits."""


class ForwardingProcessor(SpanProcessor):
    """Feeds one processor from another's spans, in the background.

    Attributes:
        dropped: ended spans that were never handed on because the target did not keep up.
        errors: exceptions of the target that were swallowed.
    """

    def __init__(self, target: SpanProcessor) -> None:
        self._target = target
        self._waiting: deque[ReadableSpan] = deque()
        self._some = threading.Event()
        self._handing = False
        self._lock = threading.Lock()
        self._worker_pid = 0
        self.dropped = 0
        self.errors = 0

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Hand a start on at once."""
        try:
            self._target.on_start(span, parent_context)
        except Exception as error:
            self._count_error("on_start", error)

    def on_end(self, span: ReadableSpan) -> None:
        """Leave an end to the worker."""
        if len(self._waiting) >= CAPACITY:
            self._waiting.popleft()
            self.dropped += 1
        self._waiting.append(span)
        if not self._some.is_set():
            self._ensure_worker()
            self._some.set()

    def force_flush(self, timeout_millis: int = 1000) -> bool:
        """Wait until the target has seen everything, at most `timeout_millis`."""
        deadline = time.monotonic() + timeout_millis / 1000
        while self._waiting or self._handing:
            if time.monotonic() >= deadline:
                return False
            time.sleep(POLL)
        return True

    def shutdown(self) -> None:
        """Hand on what waits; the target belongs to the application and stays open."""
        self.force_flush()

    def _ensure_worker(self) -> None:
        # A thread does not survive a fork: the child starts its own.
        with self._lock:
            if self._worker_pid == os.getpid():
                return
            self._worker_pid = os.getpid()
            threading.Thread(target=self._work, name="twinspan-forward", daemon=True).start()

    def _work(self) -> None:
        while True:
            self._some.wait()
            time.sleep(PAUSE)
            self._some.clear()
            # Said before the first span is taken: whoever waits must not see neither.
            self._handing = True
            while self._waiting:
                self._hand_on(self._waiting.popleft())
            self._handing = False

    def _hand_on(self, span: ReadableSpan) -> None:
        try:
            self._target.on_end(span)
        except Exception as error:
            self._count_error("on_end", error)

    def _count_error(self, where: str, error: Exception) -> None:
        self.errors += 1
        if self.errors == 1:
            _logger.warning(
                "a span processor of the application raised in %s; its spans of twinspan "
                "may be missing, decisions are not affected; %s",
                where,
                without_text(error),
            )
