"""Rows that wait in memory for their file: per run, and bounded for all runs together."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from opentelemetry.sdk.trace import ReadableSpan

from twinspan.collector.rows import RowBuilder
from twinspan.instrumentation import conventions

SPAN_BYTES: Final = 1500
"""What a row holds in memory besides its text."""

DECISIVE: Final = frozenset({"network", "intervention", "run"})
"""Span types that must be on disk before what they tell is done."""


class RunBuffer:
    """The rows of one run that are not in a part yet.

    Attributes:
        since: when the first of them came, on the monotonic clock.
        rows: the rows. They are made of plain values, so that a waiting span is no work for the
            garbage collector and keeps nothing of the application alive.
        bytes: what they hold in memory.
        decisive: spans among them that a journal could be asked for and does not have yet.
        journals: journals that hold some of them.
    """

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.rows = RowBuilder()
        self.bytes = 0
        self.decisive: list[ReadableSpan] = []
        self.journals: set[Path] = set()

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, span: ReadableSpan, attributes: Mapping[str, object]) -> int:
        """Add one span; returns what it will hold in memory, in bytes: its text is what varies."""
        size = SPAN_BYTES + self.rows.add_span(span, attributes)
        self.bytes += size
        if attributes.get(conventions.SPAN_TYPE) in DECISIVE:
            self.decisive.append(span)
        return size

    def absorb(self, later: RunBuffer) -> None:
        """Add everything of a buffer that was begun after this one."""
        self.rows.absorb(later.rows)
        self.bytes += later.bytes
        self.decisive += later.decisive
        self.journals |= later.journals


class Waiting:
    """All buffers, and how full they are.

    Args:
        most_spans: rows of all runs together that may wait.
        most_bytes: bytes of all runs together.
    """

    def __init__(self, *, most_spans: int, most_bytes: int) -> None:
        self._most_spans = most_spans
        self._most_bytes = most_bytes
        # A span may end while another one ends on the same thread: in a finalizer.
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._buffers: dict[str | None, RunBuffer] = {}
        self._taken: Counter[str | None] = Counter()
        self._spans = 0
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._buffers)

    @property
    def count(self) -> int:
        """Rows that wait, or are being written."""
        return self._spans

    @property
    def has_room(self) -> bool:
        """Whether another row may wait."""
        return self._spans < self._most_spans and self._bytes < self._most_bytes

    def wait_for_room(self, seconds: float) -> bool:
        """Wait until there is room; returns whether there is."""
        with self._lock:
            return self._room.wait_for(lambda: self.has_room, seconds)

    def add(self, span: ReadableSpan, attributes: Mapping[str, object]) -> int:
        """Add a span to its run; returns how many of the run are waiting now."""
        run_id = run_of(attributes)
        with self._lock:
            buffer = self._buffers.get(run_id)
            if buffer is None:
                buffer = self._buffers[run_id] = RunBuffer()
            self._bytes += buffer.add(span, attributes)
            self._spans += 1
            return len(buffer.rows)

    def take(self, run_id: str | None) -> RunBuffer | None:
        """Take a run's buffer out; its rows count until they are told to be written."""
        with self._lock:
            buffer = self._buffers.pop(run_id, None)
            if buffer is not None:
                self._taken[run_id] += 1
            return buffer

    def put_back(self, run_id: str | None, taken: RunBuffer) -> None:
        """Put a buffer back before what has come since."""
        with self._lock:
            newer = self._buffers.get(run_id)
            if newer is not None:
                taken.absorb(newer)
            self._buffers[run_id] = taken
            self._returned(run_id)

    def written(self, run_id: str | None, taken: RunBuffer) -> None:
        """Make the room of a buffer that was taken out free."""
        with self._lock:
            self._returned(run_id)
            self._spans -= len(taken)
            self._bytes -= taken.bytes
            self._room.notify_all()

    def decisive(self, run_id: str | None) -> tuple[RunBuffer | None, list[ReadableSpan]]:
        """A run's buffer with its decisive spans that no journal has; they are its no more."""
        with self._lock:
            buffer = self._buffers.get(run_id)
            spans = [] if buffer is None else buffer.decisive
            if buffer is not None:
                buffer.decisive = []
            return buffer, spans

    def runs(self) -> list[str | None]:
        """All runs that have rows waiting, or being written by somebody."""
        with self._lock:
            return list({**self._buffers, **self._taken})

    def _returned(self, run_id: str | None) -> None:
        self._taken[run_id] -= 1
        if not self._taken[run_id]:
            del self._taken[run_id]

    def due(self, most_spans: int, most_seconds: float) -> list[str | None]:
        """Runs with so many rows, or with one that waits so long; all of them without room."""
        now = time.monotonic()
        with self._lock:
            crowded = not self.has_room
            return [
                run_id
                for run_id, buffer in self._buffers.items()
                if crowded or len(buffer) >= most_spans or now - buffer.since >= most_seconds
            ]

    def oldest(self) -> float | None:
        """When the row that waits longest came; None where none waits."""
        with self._lock:
            return min((buffer.since for buffer in self._buffers.values()), default=None)


def run_of(attributes: Mapping[str, object]) -> str | None:
    """The run that a span belongs to; None for somebody else's.

    >>> run_of({"twinspan.run.id": "r1"}), run_of({})
    ('r1', None)
    """
    run_id = attributes.get(conventions.RUN_ID)
    return None if run_id is None else str(run_id)
