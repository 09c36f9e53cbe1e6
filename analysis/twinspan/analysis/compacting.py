"""Fewer, larger files for the same record; and an end to what is too old to be kept.

Every step leaves the record whole, whenever the process dies: new files are complete before old
ones go, a span that is in both counts once, and the next compaction finishes what was begun. A
run's root stays in another file than the rest of it, so that the loss of any one file shows.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
import uuid
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Final

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from twinspan.analysis.columns import no_rows
from twinspan.analysis.connecting import connect_small
from twinspan.analysis.dialects import Problems, RowSink
from twinspan.analysis.dialects.otlp_json import OtlpJson
from twinspan.analysis.row_order import ROW_ORDER, in_order
from twinspan.collector.parts import (
    JOURNAL_PREFIX,
    JOURNAL_SUFFIX,
    MANY_RUNS,
    NO_PARQUET,
    PART_PREFIX,
    PART_SUFFIX,
    UNFINISHED_SUFFIX,
    run_folder,
    sync_folder,
    write_part,
)
from twinspan.collector.schema import SCHEMA_VERSION_KEY, SPAN_SCHEMA
from twinspan.instrumentation.conventions import SCHEMA_VERSION_VALUE
from twinspan.instrumentation.errors import ConfigurationError, RecordError, SourceError

SETTLED_SECONDS: Final = 60.0
"""Files that were written to since then may still be their writer's, and are left alone."""

PART_ROWS: Final = 100_000
"""Most rows of a file; one that has at least half of them is large enough already."""

LOCK: Final = ".compacting"
EXPIRED_PREFIX: Final = ".expired-"

_PLACES: Final = f"""
CREATE TABLE places AS
SELECT row,
       is_root,
       row_number() OVER (
           ORDER BY is_root DESC, {", ".join(ROW_ORDER)}
       ) AS place
FROM (
    SELECT rowid AS row, trace_id, span_id, run_id, audit_writer, audit_seq, start_unix_nano,
           span_type IS NOT DISTINCT FROM 'run' AS is_root, hash(picked) AS said
    FROM picked
)
QUALIFY row_number() OVER (PARTITION BY trace_id, span_id, said) = 1
"""
"""The rows that stay, once each, and their order: roots by themselves, each run together."""

_FILES: Final = """
SELECT min(place), max(place)
FROM (SELECT *, row_number() OVER (PARTITION BY is_root ORDER BY place) AS number FROM places)
GROUP BY is_root, (number - 1) // ?
ORDER BY min(place)
"""
"""The first and the last place of every file."""


def _united() -> str:
    """Parts as one relation with every column, those that all of them leave out included."""
    return (
        f"{no_rows()} UNION ALL BY NAME "
        "FROM read_parquet(?, union_by_name = true, hive_partitioning = false)"
    )


_DAY: Final = re.compile(r"date=(\d{4}-\d{2}-\d{2})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """What a compaction did.

    Attributes:
        files_before: parts and journals that were there.
        files_after: parts and journals that are there now.
        spans: spans in the parts that were written.
        repeated: copies of spans that were in two files and are now in one.
        expired_days: days whose runs were all too old, and are gone.
        expired_spans: spans of runs that were too old, on all days.
        skipped: files of another schema version or layout, which were left alone.
    """

    files_before: int
    files_after: int
    spans: int
    repeated: int
    expired_days: tuple[str, ...]
    expired_spans: int
    skipped: int


def compact(
    folder: str | os.PathLike[str],
    *,
    keep_days: int | None = None,
    settled_seconds: float = SETTLED_SECONDS,
    today: date | None = None,
) -> Compacted:
    """Merge the small files of a recorded folder, day by day; end the runs that are too old.

    Safe beside processes that are recording into the folder: only files that nobody has touched
    for a while are merged. Whoever reads the folder meanwhile may find a file gone.

    Args:
        folder: a folder of recorded Parquet.
        keep_days: days, today included, whose runs are kept; a run that goes on into one of them
            is kept whole. None keeps everything.
        settled_seconds: age in seconds from which on a file is nobody's any more.
        today: the day from which `keep_days` counts, in UTC; the present one if None.

    Raises:
        SourceError: if there is no such folder.
        ConfigurationError: if another compaction is at work, or `keep_days` is below 1.
        RecordError: if the folder cannot be written; the record is as whole as it was.
    """
    root = Path(folder)
    if not root.is_dir():
        raise SourceError(f"{str(folder)!r} is no folder; name one of recorded Parquet")
    if keep_days is not None and keep_days < 1:
        raise ConfigurationError(f"keep_days is {keep_days}; keep at least 1 day")
    try:
        with _alone(root):
            return _Compaction(root, settled_seconds).run(
                None if keep_days is None else _first_kept(keep_days, today)
            )
    except OSError as error:
        raise RecordError(
            f"{str(folder)!r} cannot be compacted ({error}); nothing is lost, free some space "
            "or name another folder"
        ) from error


def _first_kept(keep_days: int, today: date | None) -> str:
    day = today or datetime.now(UTC).date()
    return (day - timedelta(days=keep_days - 1)).isoformat()


@contextlib.contextmanager
def _alone(root: Path) -> Generator[None]:
    """Hold the folder against other compactions; a lock that its process cannot outlive."""
    import fcntl  # not on Windows, where a compaction has to be kept alone by its user

    with (root / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ConfigurationError(
                f"{str(root)!r} is being compacted by another process; wait for it"
            ) from error
        yield
        (root / LOCK).unlink(missing_ok=True)


class _Compaction:
    """One compaction of one folder."""

    def __init__(self, root: Path, settled_seconds: float) -> None:
        self._root = root
        self._settled_before = time.time() - settled_seconds
        self._writer = uuid.uuid4().hex[:8]
        self._numbers = count()
        self._spans = self._repeated = self._skipped = self._expired_spans = 0

    def run(self, first_kept: str | None) -> Compacted:
        before = len(self._files())
        self._sweep()
        self._fold_journals()
        expired = [] if first_kept is None else self._expire(first_kept)
        for day in self._days():
            self._merge_day(day)
        return Compacted(
            files_before=before,
            files_after=len(self._files()),
            spans=self._spans,
            repeated=self._repeated,
            expired_days=tuple(expired),
            expired_spans=self._expired_spans,
            skipped=self._skipped,
        )

    # --- files --------------------------------------------------------------------------------

    def _files(self) -> list[Path]:
        journals = self._root.rglob(f"{JOURNAL_PREFIX}*{JOURNAL_SUFFIX}")
        return [*self._parts(self._root), *journals]

    def _parts(self, folder: Path) -> list[Path]:
        return sorted(folder.rglob(f"{PART_PREFIX}*{PART_SUFFIX}"))

    def _days(self) -> list[Path]:
        return sorted(path for path in self._root.iterdir() if _DAY.fullmatch(path.name))

    def _is_settled(self, path: Path) -> bool:
        try:
            return path.stat().st_mtime < self._settled_before
        except FileNotFoundError:
            return False

    def _sweep(self) -> None:
        """Finish what an earlier compaction or a killed writer left half done."""
        for leftover in self._root.glob(f"{EXPIRED_PREFIX}*"):
            shutil.rmtree(leftover)
        for begun in list(self._root.rglob(f".*{UNFINISHED_SUFFIX}")):
            if self._is_settled(begun):
                begun.unlink(missing_ok=True)

    def _write(self, folder: Path, table: pa.Table) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"{PART_PREFIX}{self._writer}-{next(self._numbers):05d}{PART_SUFFIX}"
        write_part(folder / name, table)
        self._spans += table.num_rows

    # --- journals -----------------------------------------------------------------------------

    def _fold_journals(self) -> None:
        """Make parts of journals whose writer was killed before it did so itself."""
        for journal in list(self._root.rglob(f"{JOURNAL_PREFIX}*{JOURNAL_SUFFIX}")):
            if not self._is_settled(journal):
                continue
            sink = _PartSink(self, journal.parent)
            OtlpJson().read([journal], sink, Problems())
            journal.unlink(missing_ok=True)

    # --- retention ----------------------------------------------------------------------------

    def _expire(self, first_kept: str) -> list[str]:
        """Remove runs of which nothing is as young as `first_kept`; returns emptied days."""
        days = self._days()
        old = [day for day in days if day.name < f"date={first_kept}"]
        young = [part for day in days if day not in old for part in self._parts(day)]
        kept = _runs_of(young)
        gone: list[str] = []
        for day in old:
            parts = self._parts(day)
            staying = _runs_of(parts) & kept
            total = sum(map(_rows_of, parts))
            if staying:
                self._expired_spans += total - self._keep_only(day, parts, staying)
            else:
                self._expired_spans += total
                self._remove_day(day)
                gone.append(day.name.removeprefix("date="))
        return gone

    def _keep_only(self, day: Path, parts: Sequence[Path], staying: set[str]) -> int:
        """Keep a day's spans of some runs; returns how many they are."""
        written = self._spans
        with connect_small() as connection:
            connection.execute("CREATE TABLE staying AS SELECT unnest(?) AS run_id", [[*staying]])
            self._rewrite(
                connection, day, parts, "run_id IN (SELECT run_id FROM staying)", known_as=None
            )
        self._delete(parts)
        return self._spans - written

    def _remove_day(self, day: Path) -> None:
        aside = self._root / f"{EXPIRED_PREFIX}{day.name}-{self._writer}"
        day.rename(aside)  # at once, for every reader
        sync_folder(self._root)
        shutil.rmtree(aside)

    def _delete(self, parts: Sequence[Path]) -> None:
        for part in parts:
            part.unlink(missing_ok=True)
        for folder in {part.parent for part in parts}:
            with contextlib.suppress(OSError):
                folder.rmdir()  # only if nothing is left in it

    # --- merging ------------------------------------------------------------------------------

    def _merge_day(self, day: Path) -> None:
        parts = [part for part in self._parts(day) if self._is_settled(part)]
        small = [part for part in parts if self._may_be_merged(part)]
        # Two files hold as much as one can be split into: a root's, and that of the rest.
        if len(small) <= 2:
            return
        runs = _runs_of(small)
        known_as = run_folder(next(iter(runs))) if len(runs) == 1 else f"run={MANY_RUNS}"
        with connect_small() as connection:
            self._rewrite(connection, day, small, "true", known_as=known_as)
        self._delete(small)

    def _may_be_merged(self, part: Path) -> bool:
        """Whether a part is small and of our layout; what is not ours to change is counted."""
        try:
            file = pq.ParquetFile(part)
        except NO_PARQUET:
            self._skipped += 1
            return False
        with file:
            version = (file.metadata.metadata or {}).get(SCHEMA_VERSION_KEY.encode())
            ours = version == SCHEMA_VERSION_VALUE.encode()
            names = set(file.schema_arrow.names)
            if not ours or not names <= set(SPAN_SCHEMA.names):
                self._skipped += 1
                return False
            return bool(file.metadata.num_rows < PART_ROWS // 2)

    def _rewrite(
        self,
        connection: duckdb.DuckDBPyConnection,
        day: Path,
        parts: Sequence[Path],
        where: str,
        *,
        known_as: str | None,
    ) -> None:
        """Write the distinct rows of parts anew: roots by themselves, each run together."""
        connection.execute(
            f"CREATE TABLE picked AS FROM ({_united()}) WHERE {where}",
            [[str(part) for part in parts]],
        )
        ((before,),) = connection.execute("SELECT count(*) FROM picked").fetchall()
        connection.execute(_PLACES)
        folder = day / (known_as or f"run={MANY_RUNS}")
        written = self._spans
        for first, last in connection.execute(_FILES, [PART_ROWS // 2]).fetchall():
            # All of a day with all its columns could not be sorted in little memory.
            reader = connection.sql(
                "SELECT picked.* FROM picked JOIN places ON picked.rowid = places.row "
                "WHERE place BETWEEN ? AND ?",
                params=[first, last],
            ).to_arrow_reader(PART_ROWS)
            table = pa.Table.from_batches(reader, reader.schema).select(SPAN_SCHEMA.names)
            self._write(folder, in_order(table.cast(SPAN_SCHEMA)))
        self._repeated += before - (self._spans - written)


class _PartSink(RowSink):
    """Takes the rows of a journal and writes them as a lasting part beside it."""

    def __init__(self, compaction: _Compaction, folder: Path) -> None:
        super().__init__(folder)
        self._compaction = compaction

    def flush(self) -> None:
        """Have every row in a part."""
        if len(self._builder):
            self._compaction._write(self.folder, self._builder.table())  # pyright: ignore[reportPrivateUsage]
            self._builder = type(self._builder)()


def _rows_of(part: Path) -> int:
    with pq.ParquetFile(part) as file:
        return int(file.metadata.num_rows)


def _runs_of(parts: Sequence[Path]) -> set[str]:
    """The runs that parts hold spans of."""
    if not parts:
        return set()
    with connect_small() as connection:
        rows = connection.execute(
            f"SELECT DISTINCT run_id FROM ({_united()}) WHERE run_id IS NOT NULL",
            [[str(part) for part in parts]],
        ).fetchall()
    return {str(row[0]) for row in rows}
