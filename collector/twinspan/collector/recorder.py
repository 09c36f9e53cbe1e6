"""Keeps every ended span in Parquet files, without ever harming the host.

Spans gather per run in memory and are written as whole parts by a background thread. Nothing is
dropped while the disk keeps up: a full buffer makes the ending thread wait briefly and then write
itself. Our own failures are counted, told once and survived.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import logging
import os
import threading
import time
import uuid
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, cast

import pyarrow as pa
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from twinspan.collector.otlp_json import span_line
from twinspan.collector.parts import (
    JOURNAL_PREFIX,
    JOURNAL_SUFFIX,
    PART_PREFIX,
    PART_SUFFIX,
    append_journal,
    make_folder,
    partition,
    write_part,
)
from twinspan.collector.rows import plain_attributes, table_of
from twinspan.collector.schema import SPAN_SCHEMA
from twinspan.instrumentation import conventions

_logger = logging.getLogger(__name__)

RAISE_VARIABLE: Final = "TWINSPAN_RAISE"
"""Set to 1 in tests: twinspan's own failures are raised instead of only counted."""

MAX_WAITING: Final = 50_000
"""Spans of all runs that may wait in memory."""

JOURNAL_SPANS: Final = 64
"""Up to so many spans a journal is cheaper than a part."""

BRIEFLY: Final = 0.05
"""Seconds that the end of a span may wait for room before it writes by itself."""

RETRY_SECONDS: Final = 1.0
"""Pause after a failed write; until then spans gather, and beyond the bound they are lost."""

SPAN_BYTES: Final = 1500
"""What a span holds in memory besides its text."""

_DECISIVE: Final = frozenset({"network", "intervention", "run"})
"""Span types that must be on disk before what they tell is done."""

_DAY_NANOS: Final = 86_400 * 1_000_000_000


class _Buffer:
    """The spans of one run that are not in a part yet."""

    def __init__(self) -> None:
        self.since = time.monotonic()
        self.spans: list[ReadableSpan] = []
        self.bytes = 0
        self.journaled: set[int] = set()
        self.journals: set[Path] = set()


class Recorder(SpanProcessor):
    """Writes ended spans to `folder/date=.../run=.../part-<writer>-NNNNN.parquet`.

    Several processes may write into one folder: each has a writer id of its own, a forked child
    included, and no name is used twice. A run is never a single file, so that a lost file shows.

    Args:
        folder: created when the first part is written.
        max_spans: spans of one run that make a part at once.
        max_seconds: longest time, in seconds, that an ended span stays in memory.
        max_bytes: text and spans held in memory, all runs together, in bytes.
        max_waiting: spans held in memory, all runs together.
        on_error: told of every failed write.

    Attributes:
        writer: this process's part of the file names.
        recorded: spans that are in parts.
        errors: writes that failed.
        lost: spans that were given up because writing failed for too long.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        *,
        max_spans: int = 5000,
        max_seconds: float = 1.0,
        max_bytes: int = 64 * 1024 * 1024,
        max_waiting: int = MAX_WAITING,
        on_error: Callable[[Exception], None] | None = None,
    ) -> None:
        self.folder = Path(folder)
        self._max_spans = max_spans
        self._max_seconds = max_seconds
        self._max_bytes = max_bytes
        self._max_waiting = max_waiting
        self._on_error = on_error
        self.recorded = 0
        self.errors = 0
        self.lost = 0
        self._begin()
        _recorders.add(self)

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: a span is recorded when it has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take over an ended span."""
        self._raise_deferred()
        try:
            self._accept(span)
        except Exception as error:
            self._count_error(error)

    def flush(self, run_id: str | None = None, *, durable: bool = False) -> bool:
        """Have every span that has ended in files; of one run, or of all.

        Args:
            run_id: the run; all runs if None.
            durable: on disk at the least cost, which for a few spans is a journal beside the
                parts; without it, in parts.

        Returns:
            Whether everything is where it should be; a failure is counted, not raised.
        """
        self._raise_deferred()
        runs = self._runs() if run_id is None else [run_id]
        return all([self._flush_run(run, durable=durable) for run in runs])

    def commit(self, run_id: str) -> bool:
        """Have a run's decisions on disk, and nothing else: the cheapest call before enforcing.

        Probes and nodes that ended follow within `max_seconds`.
        """
        self._raise_deferred()
        return self._journal(run_id, decisive=True)

    def close_run(self, run_id: str) -> bool:
        """Write what a run has left and forget it; returns whether all of it was written."""
        self._raise_deferred()
        written = self._write_run(run_id)
        with self._lock:
            self._begun.discard(run_id)
            self._writing.pop(run_id, None)
        return written

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have every ended span in parts."""
        return self.flush()

    def shutdown(self) -> None:
        """Write what is left; spans that end later are written at once."""
        self._stopped = True
        self._due.set()
        self._some.set()
        self.flush()
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout=1.0)

    # --- memory ---------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start with nothing: at first, and in the child of a fork."""
        self.writer = uuid.uuid4().hex[:8]
        self._lock = threading.RLock()
        self._room = threading.Condition(self._lock)
        self._some = threading.Event()
        self._due = threading.Event()
        self._buffers: dict[str | None, _Buffer] = {}
        self._waiting = 0
        self._waiting_bytes = 0
        self._begun: set[str | None] = set()
        self._writing: dict[str | None, threading.RLock] = {}
        self._numbers = itertools.count()
        self._worker: threading.Thread | None = None
        self._stopped = False
        self._failed_at: float | None = None
        self._deferred: Exception | None = None

    def _accept(self, span: ReadableSpan) -> None:
        attributes = plain_attributes(span)
        run_id = _run_of(attributes)
        size = _bytes_of(attributes)
        with self._lock:
            buffer = self._buffers.get(run_id)
            if buffer is None:
                buffer = self._buffers[run_id] = _Buffer()
            buffer.spans.append(span)
            buffer.bytes += size
            self._waiting += 1
            self._waiting_bytes += size
            full = not self._has_room()
            due = len(buffer.spans) >= self._max_spans
        if full or self._stopped:
            self._make_room()
        elif due:
            self._due.set()
        if not self._some.is_set():
            self._ensure_worker()
            self._some.set()

    def _runs(self) -> list[str | None]:
        with self._lock:
            return list(self._buffers)

    def _has_room(self) -> bool:
        return self._waiting < self._max_waiting and self._waiting_bytes < self._max_bytes

    def _make_room(self) -> None:
        """Wait briefly for the writer, then write here; give up spans only if writing fails."""
        if not self._failing():
            self._due.set()
            with self._lock:
                room = not self._stopped and self._room.wait_for(self._has_room, BRIEFLY)
            if room or self.flush():
                return
        with self._lock:
            # Spans that are being written are in no buffer: their writer puts them back.
            while self._buffers and not self._has_room():
                self._give_up_one()

    def _give_up_one(self) -> None:
        """Drop the oldest span of the fullest run; its missing number shows the loss."""
        run_id, buffer = max(self._buffers.items(), key=lambda item: item[1].bytes)
        if len(buffer.spans) == 1:
            del self._buffers[run_id]
        size = _bytes_of(plain_attributes(buffer.spans.pop(0)))
        buffer.bytes -= size
        self._waiting -= 1
        self._waiting_bytes -= size
        self.lost += 1

    def _take(self, run_id: str | None) -> _Buffer | None:
        with self._lock:
            return self._buffers.pop(run_id, None)

    def _put_back(self, run_id: str | None, taken: _Buffer) -> None:
        with self._lock:
            newer = self._buffers.get(run_id)
            if newer is not None:
                taken.spans += newer.spans
                taken.bytes += newer.bytes
            self._buffers[run_id] = taken

    def _written(self, taken: _Buffer, batch: list[ReadableSpan]) -> None:
        left = len(taken.spans) - len(batch)
        size = taken.bytes
        if left:
            done = set(map(id, batch))
            size = sum(_bytes_of(plain_attributes(span)) for span in batch)
            taken.spans = [span for span in taken.spans if id(span) not in done]
        else:
            taken.spans = []
        with self._lock:
            taken.bytes -= size
            self.recorded += len(batch)
            self._waiting -= len(batch)
            self._waiting_bytes -= size
            self._room.notify_all()

    # --- files ----------------------------------------------------------------------------

    def _flush_run(self, run_id: str | None, *, durable: bool) -> bool:
        buffer = self._buffers.get(run_id)
        if durable and buffer is not None and len(buffer.spans) <= JOURNAL_SPANS:
            return self._journal(run_id, decisive=False)
        return self._write_run(run_id)

    def _write_run(self, run_id: str | None) -> bool:
        """Write a run's waiting spans as parts; keeps what cannot be written."""
        with self._writing_of(run_id):
            taken = self._take(run_id)
            if taken is None:
                return True
            try:
                self._write_parts(run_id, taken)
            except Exception as error:
                self._put_back(run_id, taken)
                self._count_error(error)
                return False
            self._failed_at = None
            for journal in taken.journals:
                with contextlib.suppress(OSError):
                    journal.unlink(missing_ok=True)
            return True

    def _write_parts(self, run_id: str | None, taken: _Buffer) -> None:
        for batch in self._batches(run_id, taken.spans):
            folder = partition(self.folder, run_id, batch[0].start_time or 0)
            make_folder(folder)
            write_part(folder / self._next_name(), self._table(batch))
            self._begun.add(run_id)
            self._written(taken, batch)

    def _table(self, batch: list[ReadableSpan]) -> pa.Table:
        """The rows of a batch; a span that cannot be a row costs itself, not its batch."""
        try:
            return table_of(batch)
        except Exception:
            rows = [self._one_row(span) for span in batch]
            return pa.concat_tables([SPAN_SCHEMA.empty_table(), *filter(None, rows)])

    def _one_row(self, span: ReadableSpan) -> pa.Table | None:
        try:
            return table_of([span])
        except Exception as error:
            self.lost += 1
            self._count_error(error)
            return None

    def _batches(
        self, run_id: str | None, spans: list[ReadableSpan]
    ) -> Iterable[list[ReadableSpan]]:
        """Spans by day; the root of a run that has no file yet gets one for itself."""
        begun = run_id in self._begun
        roots = [] if begun else [span for span in spans if _type_of(span) == "run"]
        others = [span for span in spans if span not in roots] if roots else spans
        days: dict[int, list[ReadableSpan]] = {}
        for span in others:
            days.setdefault((span.start_time or 0) // _DAY_NANOS, []).append(span)
        return [*days.values(), *([root] for root in roots)]

    def _next_name(self) -> str:
        return f"{PART_PREFIX}{self.writer}-{next(self._numbers):05d}{PART_SUFFIX}"

    def _writing_of(self, run_id: str | None) -> threading.RLock:
        """Held while a run is written: who waits for it finds everything before on disk."""
        with self._lock:
            return self._writing.setdefault(run_id, threading.RLock())

    def _journal(self, run_id: str | None, *, decisive: bool) -> bool:
        """Append a run's waiting spans to its journal."""
        with self._writing_of(run_id):
            with self._lock:
                buffer = self._buffers.get(run_id)
                spans = [] if buffer is None else _unjournaled(buffer, decisive=decisive)
            if buffer is None or not spans:
                return True
            folder = partition(self.folder, run_id, spans[0].start_time or 0)
            path = folder / f"{JOURNAL_PREFIX}{self.writer}{JOURNAL_SUFFIX}"
            try:
                make_folder(folder)
                append_journal(path, "".join(span_line(span) for span in spans))
            except Exception as error:
                self._count_error(error)
                return False
            with self._lock:
                buffer.journals.add(path)
                buffer.journaled.update(_id_of(span) for span in spans)
            return True

    # --- the background -------------------------------------------------------------------

    def _ensure_worker(self) -> None:
        with self._lock:
            if self._worker is not None or self._stopped:
                return
            self._worker = threading.Thread(
                target=self._work, name="twinspan-recorder", daemon=True
            )
            self._worker.start()

    def _work(self) -> None:
        while not self._stopped:
            self._some.wait()
            self._due.wait(self._pause())
            self._due.clear()
            self._some.clear()
            for run_id in self._due_runs():
                self._write_run(run_id)
            if self._buffers:
                self._some.set()

    def _pause(self) -> float:
        """Seconds until the oldest waiting span must be written."""
        if self._failing():
            return RETRY_SECONDS
        with self._lock:
            oldest = min((buffer.since for buffer in self._buffers.values()), default=0.0)
        return max(0.0, oldest + self._max_seconds - time.monotonic())

    def _due_runs(self) -> list[str | None]:
        now = time.monotonic()
        with self._lock:
            crowded = not self._has_room()
            return [
                run_id
                for run_id, buffer in self._buffers.items()
                if crowded
                or len(buffer.spans) >= self._max_spans
                or now - buffer.since >= self._max_seconds
            ]

    # --- our own failures -----------------------------------------------------------------

    def _failing(self) -> bool:
        failed = self._failed_at
        return failed is not None and time.monotonic() - failed < RETRY_SECONDS

    def _count_error(self, error: Exception) -> None:
        self._failed_at = time.monotonic()
        self.errors += 1
        if self.errors == 1:
            _logger.error(
                "spans cannot be recorded in %s; they are kept in memory and tried again: %s",
                self.folder,
                error,
            )
        if self._on_error is not None:
            self._on_error(error)
        if os.environ.get(RAISE_VARIABLE) == "1":
            if threading.current_thread() is not self._worker:
                raise error
            self._deferred = error

    def _raise_deferred(self) -> None:
        """In tests, raise what failed in the background."""
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            raise deferred


def _run_of(attributes: Mapping[str, object]) -> str | None:
    run_id = attributes.get(conventions.RUN_ID)
    return None if run_id is None else str(run_id)


def _type_of(span: ReadableSpan) -> object:
    return plain_attributes(span).get(conventions.SPAN_TYPE)


def _id_of(span: ReadableSpan) -> int:
    return 0 if span.context is None else span.context.span_id


def _bytes_of(attributes: Mapping[str, object]) -> int:
    size = SPAN_BYTES
    for value in attributes.values():
        if value.__class__ is str:
            size += len(cast(str, value))
    return size


def _unjournaled(buffer: _Buffer, *, decisive: bool) -> list[ReadableSpan]:
    return [
        span
        for span in buffer.spans
        if _id_of(span) not in buffer.journaled and (not decisive or _type_of(span) in _DECISIVE)
    ]


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _after_fork() -> None:
    # What the parent had in memory it writes itself; its locks may be held by nobody here.
    for recorder in list(_recorders):
        recorder._begin()  # pyright: ignore[reportPrivateUsage]


def _at_exit() -> None:
    for recorder in list(_recorders):
        with contextlib.suppress(Exception):
            recorder.shutdown()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
