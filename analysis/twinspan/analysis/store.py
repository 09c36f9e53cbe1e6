"""Any source of spans as one relation `spans`, with the views on top."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

import duckdb
import pyarrow as pa

from twinspan.analysis import locked_sql
from twinspan.analysis.dialects import Problem
from twinspan.analysis.dialects.interpretation import interpret
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.sources import KNOWN_FORMS, Found, damaged, find
from twinspan.analysis.tables import Table
from twinspan.analysis.views import Views
from twinspan.collector.schema import SPAN_SCHEMA
from twinspan.instrumentation.errors import NoSpans, SourceError

SMALL_FILE_BYTES: Final = 256 * 1024
"""Below this mean size files are read once into memory: opening each costs more than its rows."""

REPEATED: Final = "a span that was recorded twice was counted once"
NAMELESS: Final = "a row without trace or span id was left out"


class Store:
    """Recorded spans, ready for questions.

    Made by `open_store`; closes its connection and its temporary files when it is left.

    Attributes:
        source: what was opened.
        problems: what of it could not be used.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        views: Views,
        *,
        source: str,
        problems: Sequence[Problem],
        scratch: tempfile.TemporaryDirectory[str],
    ) -> None:
        self._connection = connection
        self._views = views
        self._scratch = scratch
        self.source = source
        self.problems = tuple(problems)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the files."""
        self._connection.close()
        self._scratch.cleanup()

    def table(self, query: str, parameters: Sequence[object] = ()) -> Table:
        """The answer to a query of our own.

        Raises:
            SourceError: if a file turns out to be damaged, or is gone.
        """
        try:
            self._views.make_for(query)
            self._connection.execute(query, list(parameters))
            columns = tuple(column[0] for column in self._connection.description or ())
            return Table(columns=columns, rows=tuple(self._connection.fetchall()))
        except (duckdb.IOException, duckdb.InvalidInputException) as error:
            raise SourceError(
                f"{self.source!r} cannot be read ({_first_line(error)}); "
                "restore the files, or leave them alone while they are read"
            ) from error

    def sql(self, query: str, *, timeout: float = locked_sql.DEFAULT_TIMEOUT) -> Table:
        """The answer to a user's query: one SELECT, no files, no changes, limited time.

        Raises:
            QueryError: if it is refused, fails or takes longer than `timeout` seconds.
        """
        self._views.make_all()
        return locked_sql.run(self._connection, query, timeout=timeout)

    def arrow(self, query: str, parameters: Sequence[object] = ()) -> pa.RecordBatchReader:
        """The answer to a query of our own, batch by batch."""
        self._views.make_for(query)
        relation = self._connection.sql(query, params=list(parameters))
        return cast(pa.RecordBatchReader, relation.to_arrow_reader(20_000))

    def add_table(self, name: str, table: pa.Table) -> None:
        """Make a table of ours visible to our own queries."""
        self._connection.register(name, table)

    def compare_with(self, reference: str) -> None:
        """Take a condition as the one that the view `flips` compares others with."""
        self._connection.execute("DELETE FROM given_reference")
        self._connection.execute("INSERT INTO given_reference VALUES (?)", [reference])

    def run_ids(self) -> list[str]:
        """All runs, in the order of their beginning."""
        rows = self.table("SELECT run_id FROM runs ORDER BY start_unix_nano, run_id").rows
        return [str(row[0]) for row in rows]


def open_store(source: str | os.PathLike[str], *, outcomes: Sequence[OutcomeRule] = ()) -> Store:
    """Open spans, wherever they are.

    Args:
        source: a folder of recorded Parquet, one Parquet file, a file or folder of OTLP JSON
            lines or FairMedAgent trajectories, packed or not, or a DuckDB file.
        outcomes: outcome rules in force instead of those recorded with the runs.

    Raises:
        SourceError: if there is no such place, or it is damaged or something else.
        NoSpans: if it can be read and holds no spans.
    """
    scratch = tempfile.TemporaryDirectory(prefix="twinspan-")
    try:
        read = Path(scratch.name) / "read"
        read.mkdir()
        found = find(Path(source), read)
        connection = _connect(Path(scratch.name))
        try:
            _load(connection, found)
            interpret(connection, _columns(connection), read, found.source, found.problems)
            views = Views(connection, _columns(connection))
            views.make("spans")
            views.make("given_outcomes")
            views.make("given_reference")
            _give_outcomes(connection, outcomes)
            _lock(connection, found.parquet)
        except BaseException:
            connection.close()
            raise
        return Store(
            connection,
            views,
            source=found.source,
            problems=found.problems.listed(),
            scratch=scratch,
        )
    except BaseException:
        scratch.cleanup()
        raise


def _connect(scratch: Path) -> duckdb.DuckDBPyConnection:
    settings: Mapping[str, str | bool | int | float | list[str]] = {
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
        "python_enable_replacements": False,
        "memory_limit": f"{_memory_megabytes()}MB",
        "temp_directory": str(scratch / "spill"),
    }
    connection = duckdb.connect(config=dict(settings))
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET parquet_metadata_cache = true")
    return connection


def _memory_megabytes() -> int:
    """Half of the machine's memory, between 512 MB and 8 GB."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return 1024
    return max(512, min(8192, total // 2**21))


def _load(connection: duckdb.DuckDBPyConnection, found: Found) -> None:
    """Make the relation `recorded`: every span once."""
    if found.database is not None:
        _load_database(connection, found.database)
    else:
        _load_parquet(connection, found)
    _check_rows(connection, found)


def _load_parquet(connection: duckdb.DuckDBPyConnection, found: Found) -> None:
    paths = "[" + ", ".join(_quoted(str(path)) for path in found.parquet) + "]"
    try:
        union = str(_schemas_differ(connection, paths)).lower()
        relation = f"read_parquet({paths}, union_by_name = {union}, hive_partitioning = false)"
        bytes_each = sum(path.stat().st_size for path in found.parquet) / len(found.parquet)
        kept = len(found.parquet) > 1 and bytes_each < SMALL_FILE_BYTES
        kind = "TABLE" if kept else "VIEW"
        connection.execute(f"CREATE {kind} loaded AS FROM {relation}")
    except (duckdb.Error, OSError) as error:
        raise damaged(found.parquet) or SourceError(
            f"{found.source!r} cannot be read ({_first_line(error)}); name {KNOWN_FORMS}"
        ) from error


def _schemas_differ(connection: duckdb.DuckDBPyConnection, paths: str) -> bool:
    """Whether files have different columns; uniting equal ones anew costs every question."""
    row = connection.execute(
        "SELECT count(DISTINCT columns) > 1 FROM (SELECT list((name, type)) AS columns "
        f"FROM parquet_schema({paths}) GROUP BY file_name)"
    ).fetchone()
    return bool((row or (True,))[0])


def _load_database(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
    try:
        connection.execute(f"ATTACH {_quoted(str(path))} AS source (READ_ONLY)")
        connection.execute("CREATE TABLE loaded AS FROM source.spans")
        connection.execute("DETACH source")
    except duckdb.Error as error:
        raise SourceError(
            f"{str(path)!r} cannot be read ({_first_line(error)}); "
            "it is to be a DuckDB file with a table spans"
        ) from error


def _check_rows(connection: duckdb.DuckDBPyConnection, found: Found) -> None:
    """Refuse what are not spans; leave out rows without ids and repeated ones."""
    names = {name for name, *_ in _described(connection, "loaded")}
    lacking = [name for name in ("trace_id", "span_id", "name") if name not in names]
    if lacking:
        raise SourceError(
            f"{found.source!r} holds no spans: a column {lacking[0]!r} is missing; "
            f"name {KNOWN_FORMS}"
        )
    total, named, distinct = _counted(
        connection, "count(*), count(trace_id), count(DISTINCT span_id)"
    )
    if not named:
        raise NoSpans(found.source, hint=f"name {KNOWN_FORMS}")
    if distinct < named:
        (distinct,) = _counted(connection, "count(DISTINCT (trace_id, span_id))")
    found.problems.count(found.source, NAMELESS, total - named)
    found.problems.count(found.source, REPEATED, max(0, named - distinct))
    once = total == named == distinct
    if not once:
        connection.execute(
            "CREATE TABLE once AS FROM loaded WHERE trace_id IS NOT NULL AND span_id IS NOT NULL "
            "QUALIFY row_number() OVER (PARTITION BY trace_id, span_id) = 1"
        )
    connection.execute(f"CREATE VIEW recorded AS FROM {'loaded' if once else 'once'}")


def _counted(connection: duckdb.DuckDBPyConnection, counts: str) -> tuple[int, ...]:
    return connection.execute(f"SELECT {counts} FROM loaded").fetchone() or (0, 0, 0)


def _described(connection: duckdb.DuckDBPyConnection, relation: str) -> list[tuple[str, str]]:
    """Names and types of a relation's columns."""
    rows = connection.execute(f"DESCRIBE {relation}").fetchall()
    return [(str(row[0]), str(row[1])) for row in rows]


def _give_outcomes(connection: duckdb.DuckDBPyConnection, outcomes: Sequence[OutcomeRule]) -> None:
    for rule in outcomes:
        connection.execute(
            "INSERT INTO given_outcomes VALUES (?, ?, ?, ?, ?)",
            [rule.name, rule.step, rule.field, rule.operator, rule.literal],
        )


def _columns(connection: duckdb.DuckDBPyConnection) -> str:
    """What `spans` selects: every known column in its type, then whatever else there is."""
    connection.register("known_columns", SPAN_SCHEMA.empty_table())
    known = dict(_described(connection, "known_columns"))
    connection.unregister("known_columns")
    present = dict(_described(connection, "recorded"))
    selected = [_column(name, kind, present.get(name)) for name, kind in known.items()]
    others = [_named(name) for name in present if name.lower() not in known]
    return ", ".join([*selected, *others])


def _column(name: str, kind: str, present: str | None) -> str:
    if present == kind:
        return _named(name)
    if present is None:
        return f"NULL::{kind} AS {_named(name)}"
    return f"TRY_CAST({_named(name)} AS {kind}) AS {_named(name)}"


def _lock(connection: duckdb.DuckDBPyConnection, paths: Sequence[Path]) -> None:
    """Close every door but the files of this source."""
    allowed = ", ".join(_quoted(str(path)) for path in paths)
    connection.execute(f"SET allowed_paths = [{allowed}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _named(column: str) -> str:
    return '"' + column.replace('"', '""') + '"'


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
