"""Any source of spans into a folder of Parquet as the recorder writes it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa

from twinspan.analysis.connecting import SMALL_MEGABYTES
from twinspan.analysis.dialects import Problem
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.row_order import in_order
from twinspan.analysis.store import Store, open_store
from twinspan.collector.parts import (
    MANY_RUNS,
    PART_PREFIX,
    PART_SUFFIX,
    make_folder,
    partition,
    write_part,
)
from twinspan.collector.schema import COLUMN_TYPES, SPAN_SCHEMA
from twinspan.instrumentation.errors import ConfigurationError, NoSpans, RecordError, SourceError

FOLDER_PER_RUN: Final = 20
"""Up to so many runs each has a folder; more share one, since every file costs a reader time."""

PART_ROWS: Final = 50_000
"""Most rows of a file, and rows that are held and put in order at once."""

_DEFAULTS: Final = {
    "kind": "'UNSPECIFIED'",
    "status_code": "'UNSET'",
    "start_time": "make_timestamptz(0)",
    "start_unix_nano": "0",
    "duration_ns": "0",
    "dropped_attributes": "0",
    "dropped_events": "0",
    "dropped_links": "0",
}
"""What stands where a foreign file leaves out a column that ours always has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did.

    Attributes:
        source: the source.
        spans: spans that were written.
        runs: runs that they belong to.
        known: spans that were there already and were left alone.
        problems: what of the source could not be used.
    """

    source: str
    spans: int
    runs: int
    known: int
    problems: tuple[Problem, ...]


def import_spans(
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    outcomes: Sequence[OutcomeRule] = (),
    reading: Callable[[int], None] | None = None,
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Write a source's spans into a folder; spans that are there already are left alone.

    Args:
        source: whatever `open_store` opens.
        out: the folder; created if there is none.
        outcomes: rules to record on the runs, in place of those they carry.
        reading: told how many spans were read, batch by batch, where reading takes long.
        progress: told of every batch's number of spans that were written.

    Raises:
        SourceError: if the source cannot be read.
        ConfigurationError: if the folder is the source itself.
        RecordError: if the folder cannot be written.
    """
    folder = Path(out)
    if folder.resolve() == Path(source).resolve():
        raise ConfigurationError(f"{str(out)!r} is the source itself; name another folder")
    with open_store(source, megabytes=SMALL_MEGABYTES, progress=reading) as store:
        known = _know(store, folder)
        writer = _Writer(folder, outcomes, progress or (lambda _: None))
        try:
            writer.write(store)
        except duckdb.Error as error:
            told = str(error).partition("\n")[0]
            raise SourceError(
                f"{str(source)!r} cannot be imported ({told}); import it in smaller pieces"
            ) from error
        except OSError as error:
            raise RecordError(
                f"spans cannot be written to {str(out)!r} ({error}); name another folder"
            ) from error
        return Imported(
            source=str(source),
            spans=writer.spans,
            runs=len(writer.runs),
            known=known,
            problems=store.problems,
        )


def _know(store: Store, folder: Path) -> int:
    """Tell the store which spans the folder has; returns how many of the store's they are."""
    ids = SPAN_SCHEMA.empty_table().select(["trace_id", "span_id"])
    if folder.exists():
        try:
            with open_store(folder, megabytes=SMALL_MEGABYTES) as there:
                ids = there.arrow("SELECT trace_id, span_id FROM spans").read_all()
        except NoSpans:
            pass
    store.add_table("known_spans", ids)
    ((known,),) = store.table(
        "SELECT count(*) FROM spans SEMI JOIN known_spans USING (trace_id, span_id)"
    ).rows
    return int(str(known))


class _Writer:
    """Writes the new spans of a store, run by run."""

    def __init__(
        self, folder: Path, outcomes: Sequence[OutcomeRule], progress: Callable[[int], None]
    ) -> None:
        self.spans = 0
        self.runs: set[object] = set()
        self._folder = folder
        self._outcomes = [rule.text for rule in outcomes]
        self._progress = progress
        self._name = uuid.uuid4().hex[:8]
        self._numbers = count()

    def write(self, store: Store) -> None:
        groups = store.table(
            "SELECT start_unix_nano // 86400000000000 AS day, run_id, count(*) FROM spans "
            "ANTI JOIN known_spans USING (trace_id, span_id) GROUP BY ALL "
            "ORDER BY day, min(start_unix_nano), run_id"
        ).rows
        self.runs = {run for _, run, _ in groups if run is not None}
        if len(self.runs) <= FOLDER_PER_RUN:
            for day, run, _ in groups:
                self._write_group(store, int(str(day)), None if run is None else str(run), [run])
        else:
            for day in dict.fromkeys(day for day, _, _ in groups):
                counts = [(run, int(str(n))) for of, run, n in groups if of == day]
                for runs in _portions(counts):
                    self._write_group(store, int(str(day)), MANY_RUNS, runs)

    def _write_group(self, store: Store, day: int, name: str | None, runs: list[object]) -> None:
        """Write the spans that some runs have on one day.

        Their rows are put in order file by file: the whole of a large source, with all its
        columns, could not be sorted in little memory.
        """
        where = "start_unix_nano // 86400000000000 = ?"
        parameters: list[object] = [*([self._outcomes] if self._outcomes else []), day]
        if runs == [None]:
            where += " AND run_id IS NULL"
        else:
            where += " AND list_contains(?, run_id)"
            parameters.append(runs)
        reader = store.arrow(
            f"SELECT {_selected(bool(self._outcomes))} FROM spans "
            f"ANTI JOIN known_spans USING (trace_id, span_id) WHERE {where}",
            parameters,
        )
        folder = partition(self._folder, name, day * 86_400 * 10**9)
        make_folder(folder)
        for table in _tables(reader):
            part = f"{PART_PREFIX}{self._name}-{next(self._numbers):05d}{PART_SUFFIX}"
            write_part(folder / part, in_order(table))
            self.spans += table.num_rows
            self._progress(table.num_rows)


def _portions(counts: Sequence[tuple[object, int]]) -> Iterator[list[object]]:
    """Runs whose spans fill a file; spans of no run by themselves.

    >>> list(_portions([("a", 30_000), (None, 5), ("b", 20_000), ("c", 1)]))
    [['a', 'b'], ['c'], [None]]
    """
    portion: list[object] = []
    rows = 0
    for run, spans in counts:
        if run is None:
            continue
        if portion and rows + spans > PART_ROWS:
            yield portion
            portion, rows = [], 0
        portion.append(run)
        rows += spans
    if portion:
        yield portion
    if any(run is None for run, _ in counts):
        yield [None]


def _selected(with_outcomes: bool) -> str:
    """Every column of the record; with outcomes the first parameter is what runs get."""
    columns: list[str] = []
    for name in COLUMN_TYPES:
        column = f'"{name}"'
        if name in _DEFAULTS:
            column = f"coalesce({column}, {_DEFAULTS[name]}) AS {column}"
        if name == "audit_outcomes" and with_outcomes:
            column = f"CASE WHEN span_type = 'run' THEN ?::VARCHAR[] ELSE {column} END AS {column}"
        columns.append(column)
    return ", ".join(columns)


def _tables(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """The rows of a reader in files' worth."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in reader:
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= PART_ROWS:
            yield pa.Table.from_batches(waiting).cast(SPAN_SCHEMA)
            waiting, rows = [], 0
    if rows:
        yield pa.Table.from_batches(waiting).cast(SPAN_SCHEMA)
