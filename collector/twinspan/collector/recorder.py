"""Keeps every ended span in Parquet files, without ever harming the host.

Rows gather per run in memory and are written as whole parts by a background thread. Nothing is
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
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from twinspan.collector.otlp_json import span_line
from twinspan.collector.parts import (
    JOURNAL_PREFIX,
    JOURNAL_SUFFIX,
    MANY_RUNS,
    PART_PREFIX,
    PART_SUFFIX,
    append_journal,
    make_folder,
    partition,
    write_part,
)
from twinspan.collector.rows import RowBuilder
from twinspan.collector.waiting import DECISIVE, RunBuffer, Waiting
from twinspan.instrumentation import conventions
from twinspan.instrumentation.span_attributes import plain_attributes

_logger = logging.getLogger(__name__)

RAISE_VARIABLE: Final = "TWINSPAN_RAISE"
"""Set to 1 in tests: twinspan's own failures are raised instead of only counted."""

MAX_WAITING: Final = 50_000
"""Spans of all runs that may wait in memory."""

BRIEFLY: Final = 0.05
"""Seconds that the end of a span may wait for room before it writes by itself."""

AT_MOST: Final = 5.0
"""Seconds after which a span is given up for which there is no room."""

BEGIN_SHARE: Final = 0.5
"""Share of the longest time in memory after which writing begins: the rest is for the writing."""

RETRY_SECONDS: Final = 1.0
"""Pause after a failed write; until then spans gather, and beyond the bound they are lost."""

_DAY_NANOS: Final = 86_400 * 1_000_000_000


class Recorder(SpanProcessor):
    """Writes ended spans to `folder/date=.../run=.../part-<writer>-NNNNN.parquet`.

    Several processes may write into one folder: each has a writer id of its own, a forked child
    included, and no name is used twice. A run is never in a single file, so that a lost file
    shows. Runs whose spans are due at the same time share their files, under `run=_many`: a file
    costs as much as hundreds of spans.

    Args:
        folder: created when the first part is written.
        max_spans: spans of one run that make a part at once.
        max_seconds: longest time, in seconds, that an ended span stays in memory.
        max_bytes: text and spans held in memory, all runs together, in bytes.
        max_waiting: spans held in memory, all runs together.
        on_error: told of every failure.

    Attributes:
        writer: this process's part of the file names.
        recorded: spans that are in parts.
        errors: our own failures.
        lost: spans that were given up: writing failed for too long, or they could not be rows.
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
        self._begin_seconds = max_seconds * BEGIN_SHARE
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
            self.lost += 1
            self._count_error(error)

    def flush(self, run_id: str | None = None) -> bool:
        """Have every span that has ended in parts on disk; of one run, or of all.

        Returns:
            Whether it is; a failure is counted, not raised.
        """
        self._raise_deferred()
        if run_id is not None:
            return self._write([run_id])
        due = self._write_what_is_due()
        return all([due, *(self._write([run]) for run in self._waiting.runs())])

    def commit(self, run_id: str) -> bool:
        """Have a run's decisions on disk, and nothing else: the cheapest call before enforcing.

        They go to a journal beside the parts, which is removed when they are in a part. Probes
        and nodes that ended follow within `max_seconds`.

        Returns:
            Whether they are; a failure is counted, not raised.
        """
        self._raise_deferred()
        return self._journal(run_id)

    def close_run(self, run_id: str) -> bool:
        """Write what a run has left and forget it; returns whether all of it was written."""
        self._raise_deferred()
        written = self._write([run_id])
        self._forget([run_id])
        return written

    def end_run(self, run_id: str) -> None:
        """Say that a run is over: within `max_seconds` the rest of it is written and forgotten.

        Unlike `close_run` it does not wait for the disk, so it costs the run's caller nothing.
        """
        with self._lock:
            self._over[run_id] = None

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have every ended span in parts on disk."""
        return self.flush()

    def shutdown(self) -> None:
        """Write what is left; spans that end later are written at once."""
        self._stopped = True
        self._due.set()
        self._some.set()
        if not self.flush():
            self._tell_what_is_left()
        worker = self._worker
        if worker is not None and worker is not threading.current_thread():
            worker.join(timeout=1.0)

    def _tell_what_is_left(self) -> None:
        left = self._waiting.count
        self.lost += left
        _logger.error(
            "%d spans were never recorded in %s; their runs read as incomplete", left, self.folder
        )

    # --- memory ---------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start with nothing: at first, and in the child of a fork."""
        self.writer = uuid.uuid4().hex[:8]
        self._waiting = Waiting(most_spans=self._max_waiting, most_bytes=self._max_bytes)
        self._lock = threading.Lock()
        self._some = threading.Event()
        self._due = threading.Event()
        self._begun: set[str | None] = set()
        self._over: dict[str, None] = {}
        self._writing: dict[str | None, threading.RLock] = {}
        self._numbers = itertools.count()
        self._worker: threading.Thread | None = None
        self._stopped = False
        self._failed_at: float | None = None
        self._deferred: Exception | None = None

    def _accept(self, span: ReadableSpan) -> None:
        attributes = plain_attributes(span)
        room = self._waiting.has_room or self._make_room()
        if not room and attributes.get(conventions.SPAN_TYPE) not in DECISIVE:
            self.lost += 1
            return
        count = self._waiting.add(span, attributes)
        if count >= self._max_spans:
            self._due.set()
        if not self._some.is_set():
            self._ensure_worker()
            self._some.set()
        if self._stopped:
            self.flush()

    def _make_room(self) -> bool:
        """Wait briefly for the writer, then write here; returns whether there is room now.

        Other threads fill the room as well, so this may take several rounds. A disk that hangs
        costs spans in the end, never the host.
        """
        deadline = time.monotonic() + AT_MOST
        while not self._failing() and time.monotonic() < deadline:
            self._due.set()
            if self._waiting.wait_for_room(BRIEFLY) or (self.flush() and self._waiting.has_room):
                return True
        return False

    # --- files ----------------------------------------------------------------------------

    def _forget(self, runs: Collection[str]) -> None:
        with self._lock:
            for run_id in runs:
                self._begun.discard(run_id)
                self._writing.pop(run_id, None)

    def _write(self, runs: Collection[str | None]) -> bool:
        """Write the waiting rows of runs as parts that they share; keeps them if that fails."""
        with contextlib.ExitStack() as held:
            for run_id in runs:
                held.enter_context(self._writing_of(run_id))
            found = {run_id: self._waiting.take(run_id) for run_id in runs}
            taken = {run_id: buffer for run_id, buffer in found.items() if buffer is not None}
            if not taken:
                return True
            try:
                self._write_parts(taken)
            except Exception as error:
                for run_id, buffer in taken.items():
                    self._waiting.put_back(run_id, buffer)
                self._count_error(error)
                return False
            self._failed_at = None
            for run_id, buffer in taken.items():
                self._written(run_id, buffer)
            return True

    def _written(self, run_id: str | None, taken: RunBuffer) -> None:
        with self._lock:
            self.recorded += len(taken)
        self._waiting.written(run_id, taken)
        for journal in taken.journals:
            _remove(journal)

    def _write_parts(self, taken: Mapping[str | None, RunBuffer]) -> None:
        """Write all parts of some buffers, or none."""
        place = next(iter(taken)) if len(taken) == 1 else MANY_RUNS
        rows = _together([buffer.rows for buffer in taken.values()])
        table = rows.table()
        done: list[Path] = []
        try:
            for numbers, nanos in self._groups(taken, table):
                folder = partition(self.folder, place, nanos)
                make_folder(folder)
                path = folder / self._next_name()
                write_part(path, table if len(numbers) == len(table) else table.take(numbers))
                done.append(path)
        except BaseException:
            for path in done:
                _remove(path)
            raise
        self._begun.update(taken)

    def _groups(
        self, runs: Collection[str | None], table: pa.Table
    ) -> list[tuple[Sequence[int], int]]:
        """Rows that make a part, and when they began.

        Rows part by day. The roots of runs that have no file yet get one for themselves.
        """
        roots: set[int] = set()
        if not self._begun.issuperset(runs):
            kinds = table.column("span_type").to_pylist()
            roots = {row for row, kind in enumerate(kinds) if kind == "run"}
        starts = table.column("start_unix_nano").to_numpy()
        days = starts // _DAY_NANOS
        if not roots and len(days) and (days == days[0]).all():
            return [(range(len(days)), int(starts[0]))]
        groups: dict[tuple[bool, int], list[int]] = {}
        for row, day in enumerate(days.tolist()):
            groups.setdefault((row in roots, day), []).append(row)
        return [(rows, int(starts[rows[0]])) for rows in groups.values()]

    def _next_name(self) -> str:
        return f"{PART_PREFIX}{self.writer}-{next(self._numbers):05d}{PART_SUFFIX}"

    def _writing_of(self, run_id: str | None) -> threading.RLock:
        """Held while a run is written: who waits for it finds everything before on disk."""
        with self._lock:
            return self._writing.setdefault(run_id, threading.RLock())

    def _journal(self, run_id: str) -> bool:
        """Append a run's waiting decisions to its journal."""
        with self._writing_of(run_id):
            buffer, spans = self._waiting.decisive(run_id)
            if buffer is None or not spans:
                return True
            folder = partition(self.folder, run_id, spans[0].start_time or 0)
            path = folder / f"{JOURNAL_PREFIX}{self.writer}{JOURNAL_SUFFIX}"
            try:
                make_folder(folder)
                append_journal(path, "".join(span_line(span) for span in spans))
            except Exception as error:
                buffer.decisive = [*spans, *buffer.decisive]
                self._count_error(error)
                return False
            buffer.journals.add(path)
            return True

    # --- the background -------------------------------------------------------------------

    def _take_over(self) -> list[str]:
        with self._lock:
            over, self._over = list(self._over), {}
        return over

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
            self._write_what_is_due()
            if self._waiting:
                self._some.set()

    def _write_what_is_due(self) -> bool:
        """Write what waits long enough, and what is over; returns whether all is written.

        With a file for each run, a hundred live ones would cost a processor of their own.
        """
        over = self._take_over()
        due = self._waiting.due(self._max_spans, self._begin_seconds)
        of_nobody = None in due
        written = self._write(list(dict.fromkeys([*over, *(run for run in due if run)])))
        self._forget(over)
        return written and (not of_nobody or self._write([None]))

    def _pause(self) -> float:
        """Seconds until the oldest waiting span must be written."""
        if self._failing():
            return RETRY_SECONDS
        oldest = self._waiting.oldest()
        left = 0.0 if oldest is None else oldest + self._begin_seconds - time.monotonic()
        return max(0.0, left)

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


def _together(builders: Sequence[RowBuilder]) -> RowBuilder:
    """The rows of several builders in one; the builders stay as they are."""
    if len(builders) == 1:
        return builders[0]
    gathered = RowBuilder()
    for builder in builders:
        gathered.absorb(builder)
    return gathered


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)


_recorders: weakref.WeakSet[Recorder] = weakref.WeakSet()


def _after_fork() -> None:
    # What the parent had in memory it writes itself; its locks may be held by nobody here.
    for recorder in list(_recorders):
        recorder._begin()  # pyright: ignore[reportPrivateUsage]


def _at_exit() -> None:
    for recorder in list(_recorders):
        with contextlib.suppress(Exception):
            recorder.shutdown()


if hasattr(os, "register_at_fork"):  # where processes can fork
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
