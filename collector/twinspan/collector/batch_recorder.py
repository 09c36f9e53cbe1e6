"""Keeps the spans of many short runs in few files, run by run.

A run's spans are held until its root has ended and are then written whole: a process that is
killed leaves finished runs and nothing of the others, so that whoever goes on knows which are
done. Spans that belong to no run, like an audit's sealed plan, are on disk when they have ended.
"""

from __future__ import annotations

import threading
import time
import uuid
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from twinspan.collector.parts import (
    MANY_RUNS,
    PART_PREFIX,
    PART_SUFFIX,
    make_folder,
    partition,
    write_part,
)
from twinspan.collector.rows import RowBuilder
from twinspan.collector.schema import with_all_columns
from twinspan.instrumentation import conventions
from twinspan.instrumentation.errors import RecordError

MAX_SECONDS: Final = 1.0
MAX_SPANS: Final = 5_000


class BatchRecorder(SpanProcessor):
    """Writes whole runs to `folder/date=.../run=_many/part-<writer>-NNNNN.parquet`.

    Unlike `Recorder` it is for runs that it is the only purpose of to be recorded: a write that
    fails is raised where the run is made, for an audit without a record is waste.

    Args:
        folder: created when the first part is written.
        max_seconds: a run that ends so long after the last write is written at once.
        max_spans: finished spans that make a part in any case.

    Raises:
        RecordError: by `flush` and by what ends a span, if the folder cannot be written.
    """

    def __init__(
        self,
        folder: str | PathLike[str],
        *,
        max_seconds: float = MAX_SECONDS,
        max_spans: int = MAX_SPANS,
    ) -> None:
        self.folder = Path(folder)
        self.writer = uuid.uuid4().hex[:8]
        self._max_seconds = max_seconds
        self._max_spans = max_spans
        self._lock = threading.RLock()
        self._open: dict[str, RowBuilder] = {}
        self._ready = RowBuilder()
        self._day = 0
        self._numbers = count()
        self._written_at = time.monotonic()
        self._parts: list[Path] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Do nothing: a span is recorded when it has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take over an ended span; a run's root brings all of the run."""
        attributes = span.attributes or {}
        run_id = attributes.get(conventions.RUN_ID)
        with self._lock:
            self._day = span.start_time or 0
            if run_id is None:
                self._ready.add_span(span)
                self.flush()
                return
            rows = self._open.setdefault(str(run_id), RowBuilder())
            rows.add_span(span)
            if attributes.get(conventions.SPAN_TYPE) == "run":
                self._ready.absorb(self._open.pop(str(run_id)))
                if self._is_due():
                    self.flush()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Have every finished run on disk."""
        self.flush()
        return True

    def flush(self) -> None:
        """Have every finished run on disk.

        Raises:
            RecordError: it cannot be written; the runs are kept and tried again.
        """
        with self._lock:
            if not len(self._ready):
                return
            path = self._write(self._ready.table())
            self._parts.append(path)
            self._ready = RowBuilder()
            self._written_at = time.monotonic()

    def shutdown(self) -> None:
        """Write what is finished, and make one file of this writer's many."""
        with self._lock:
            self.flush()
            if len(self._parts) > 1:
                self._compact()

    def _is_due(self) -> bool:
        waited = time.monotonic() - self._written_at
        return waited >= self._max_seconds or len(self._ready) >= self._max_spans

    def _compact(self) -> None:
        # Between the two steps a span is there twice, and readers count it once.
        merged = self._write(with_all_columns(map(_read, self._parts)))
        for path in self._parts:
            path.unlink(missing_ok=True)
        self._parts = [merged]

    def _write(self, table: pa.Table) -> Path:
        folder = partition(self.folder, MANY_RUNS, self._day)
        path = folder / f"{PART_PREFIX}{self.writer}-{next(self._numbers):05d}{PART_SUFFIX}"
        try:
            make_folder(folder)
            write_part(path, table)
        except OSError as error:
            raise RecordError(
                f"spans cannot be written to {str(self.folder)!r} ({error.strerror}); name a "
                "folder that can be written"
            ) from error
        return path


def _read(path: Path) -> pa.Table:
    return pq.ParquetFile(path).read()  # pyright: ignore[reportUnknownMemberType]
