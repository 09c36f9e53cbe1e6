"""Any source of spans as one relation `spans`, with the views on top."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Final, Self, cast

import duckdb
import pyarrow as pa

from twinspan.analysis import locked_sql
from twinspan.analysis.columns import column_types, null_column
from twinspan.analysis.connecting import connect, memory_megabytes
from twinspan.analysis.dialects import Problem, RowSink
from twinspan.analysis.dialects.interpretation import interpret
from twinspan.analysis.dialects.span_tables import holds_spans, is_foreign_table, read_table
from twinspan.analysis.outcomes import OutcomeRule
from twinspan.analysis.schema_versions import (
    NEWER,
    first_layout_as_present,
    is_first_layout,
    is_newer,
)
from twinspan.analysis.sources import KNOWN_FORMS, Found, damaged, find
from twinspan.analysis.tables import Table
from twinspan.analysis.views import Views
from twinspan.collector.schema import SCHEMA_VERSION_KEY
from twinspan.instrumentation.conventions import SCHEMA_VERSION_VALUE
from twinspan.instrumentation.errors import NoSpans, SourceError

SMALL_FILE_BYTES: Final = 256 * 1024
SMALL_FILE_ROWS: Final = 5_000
"""Files below both means are read once into memory: opening each costs more than its rows.

Bytes alone do not tell: where spans have little text, as many as a file should have are as small,
and to copy every column of them costs more than all that is asked of them.
"""

REPEATED: Final = "a span that was recorded twice was counted once"
NAMELESS: Final = "a row without trace or span id was left out"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated:
    """A span that is recorded more than once.

    Attributes:
        span_id: its id, 16 hex digits.
        run_id: its run, if it has one.
        copies: how often it is recorded.
        alike: whether all copies say the same; what differs was altered.
    """

    span_id: str
    run_id: str | None
    copies: int
    alike: bool


class Store:
    """Recorded spans, ready for questions.

    Made by `open_store`; closes its connection and its temporary files when it is left.

    Attributes:
        source: what was opened.
        problems: what of it could not be used.
        present: the columns that it has; `spans` gives NULL for the others.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        views: Views,
        *,
        source: str,
        problems: Sequence[Problem],
        present: frozenset[str],
        scratch: tempfile.TemporaryDirectory[str],
    ) -> None:
        self._connection = connection
        self._views = views
        self._scratch = scratch
        self._kept: set[str] = set()
        self.source = source
        self.problems = tuple(problems)
        self.present = present

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
        except (duckdb.Error, UnicodeError) as error:
            if _is_ours(error):
                raise
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

    def keep(self, name: str, query: str) -> None:
        """Keep the answer to a query of ours as a table, where it is asked again and again."""
        if not self.keeps(name):
            self.table(f"CREATE TEMP TABLE {name} AS {query}")
            self._kept.add(name)

    def keeps(self, name: str) -> bool:
        """Whether the answer of this name is kept already."""
        return name in self._kept

    def compare_with(self, reference: str) -> None:
        """Take a condition as the one that the view `flips` compares others with."""
        self._connection.execute("DELETE FROM given_reference")
        self._connection.execute("INSERT INTO given_reference VALUES (?)", [reference])

    def repeated(self) -> tuple[Repeated, ...]:
        """Spans that are recorded more than once, in the order of their ids."""
        there = self.table("SELECT count(*) FROM duckdb_tables() WHERE table_name = 'repeated'")
        if there.rows == ((0,),):
            return ()
        return tuple(
            Repeated(
                span_id=str(span_id),
                run_id=None if run_id is None else str(run_id),
                copies=int(str(copies)),
                alike=kinds == 1,
            )
            for span_id, run_id, copies, kinds in self.table(
                "SELECT span_id, run_id, copies, kinds FROM repeated ORDER BY trace_id, span_id"
            ).rows
        )

    def run_ids(self) -> list[str]:
        """All runs, in the order of their beginning."""
        rows = self.table("SELECT run_id FROM runs ORDER BY start_unix_nano, run_id").rows
        return [str(row[0]) for row in rows]


def open_store(
    source: str | os.PathLike[str],
    *,
    outcomes: Sequence[OutcomeRule] = (),
    megabytes: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> Store:
    """Open spans, wherever they are.

    Args:
        source: a folder of recorded Parquet, one Parquet file, a file or folder of OTLP JSON
            lines or FairMedAgent trajectories, packed or not, or a DuckDB file.
        outcomes: outcome rules in force instead of those recorded with the runs.
        megabytes: most memory that a question takes; half of the machine's, at most 8 GB, if None.
        progress: told how many spans were read, batch by batch, where they are no table.

    Raises:
        SourceError: if there is no such place, or it is damaged or something else.
        NoSpans: if it can be read and holds no spans.
    """
    scratch = tempfile.TemporaryDirectory(prefix="twinspan-")
    try:
        read = Path(scratch.name) / "read"
        read.mkdir()
        found = find(Path(source), read, progress)
        connection = connect(Path(scratch.name), megabytes or memory_megabytes())
        try:
            _load(connection, found, read)
            columns = _columns(dict(_described(connection, "recorded")))
            interpret(connection, columns, read, found.source, found.problems)
            present = dict(_described(connection, "recorded"))
            views = Views(connection, _columns(present))
            views.make("spans")
            views.make("given_outcomes")
            views.make("given_reference")
            _give_outcomes(connection, outcomes)
            _lock(connection, found.parquet)
        except (duckdb.Error, pa.ArrowException, UnicodeError) as error:
            connection.close()
            if _is_ours(error):
                raise
            raise damaged(found.parquet) or SourceError(
                f"{found.source!r} cannot be read ({_first_line(error)}); name {KNOWN_FORMS}"
            ) from error
        except BaseException:
            connection.close()
            raise
        return Store(
            connection,
            views,
            source=found.source,
            problems=found.problems.listed(),
            present=frozenset(present),
            scratch=scratch,
        )
    except BaseException:
        scratch.cleanup()
        raise


def _is_ours(error: Exception) -> bool:
    """Whether an error is in our SQL, and not in the data that it met."""
    return isinstance(
        error, duckdb.BinderException | duckdb.CatalogException | duckdb.ParserException
    )


def _load(connection: duckdb.DuckDBPyConnection, found: Found, scratch: Path) -> None:
    """Make the relation `recorded`: every span once."""
    if found.database is not None:
        _load_database(connection, found.database)
    else:
        _load_parquet(connection, found)
    _adopt(connection, found, scratch)
    _check_rows(connection, found)


def _load_parquet(connection: duckdb.DuckDBPyConnection, found: Found) -> None:
    paths = "[" + ", ".join(_quoted(str(path)) for path in found.parquet) + "]"
    try:
        union = str(_schemas_differ(connection, paths)).lower()
        relation = _present(connection, found, paths, union)
        kind = "TABLE" if _are_small(connection, found.parquet, paths) else "VIEW"
        connection.execute(f"CREATE {kind} loaded AS FROM {relation}")
    except (duckdb.Error, OSError) as error:
        raise damaged(found.parquet) or SourceError(
            f"{found.source!r} cannot be read ({_first_line(error)}); name {KNOWN_FORMS}"
        ) from error


def _are_small(connection: duckdb.DuckDBPyConnection, files: Sequence[Path], paths: str) -> bool:
    """Whether there are several files, and on average they are small in bytes and in rows."""
    bytes_each = sum(path.stat().st_size for path in files) / len(files)
    if len(files) == 1 or bytes_each >= SMALL_FILE_BYTES:
        return False
    ((rows_each,),) = connection.execute(
        f"SELECT avg(num_rows) FROM parquet_file_metadata({paths})"
    ).fetchall()
    return bool(rows_each < SMALL_FILE_ROWS)


def _present(connection: duckdb.DuckDBPyConnection, found: Found, paths: str, union: str) -> str:
    """All files as one relation in the present names, whatever version each of them has."""
    versions = dict(
        connection.execute(
            f"SELECT file_name, decode(value) FROM parquet_kv_metadata({paths}) "
            "WHERE key = encode(?)",
            [SCHEMA_VERSION_KEY],
        ).fetchall()
    )
    older: list[str] = []
    for path in found.parquet if set(versions.values()) != {SCHEMA_VERSION_VALUE} else ():
        version = versions.get(str(path))
        if is_newer(version):
            told = NEWER.format(version=version, ours=SCHEMA_VERSION_VALUE)
            found.problems.count(path.name, told)
        elif version in (None, "0") and is_first_layout(version, _columns_of(connection, path)):
            older.append(_quoted(str(path)))
    options = "union_by_name = {union}, hive_partitioning = false"
    if not older:
        return f"read_parquet({paths}, {options.format(union=union)})"
    first = f"read_parquet([{', '.join(older)}], {options.format(union='true')})"
    columns = [name for name, _ in _described(connection, first)]
    relation = f"SELECT {first_layout_as_present(columns)} FROM {first}"
    others = [_quoted(str(p)) for p in found.parquet if _quoted(str(p)) not in set(older)]
    if others:
        rest = f"read_parquet([{', '.join(others)}], {options.format(union='true')})"
        relation = f"{relation} UNION ALL BY NAME FROM {rest}"
    return f"({relation})"


def _columns_of(connection: duckdb.DuckDBPyConnection, path: Path) -> list[str]:
    return [name for name, _ in _described(connection, f"read_parquet([{_quoted(str(path))}])")]


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
        table = _table_of_spans(connection, path)
        connection.execute(f"CREATE TABLE loaded AS FROM source.{table}")
        connection.execute("DETACH source")
    except duckdb.Error as error:
        raise SourceError(
            f"{str(path)!r} cannot be read ({_first_line(error)}); "
            "it is to be a DuckDB file with a table of spans"
        ) from error


def _table_of_spans(connection: duckdb.DuckDBPyConnection, path: Path) -> str:
    """The table or view of an attached database that holds spans: `spans`, else the only one."""
    columns: dict[str, dict[str, str]] = {}
    for schema, table, name, kind in connection.execute(
        "SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns() "
        "WHERE database_name = 'source' AND NOT internal"
    ).fetchall():
        columns.setdefault(f"{_named(schema)}.{_named(table)}", {})[name] = kind
    holding = [table for table, present in columns.items() if holds_spans(present)]
    for preferred in ("spans", "otel_traces"):
        named = [table for table in holding if table.endswith(f".{_named(preferred)}")]
        holding = named or holding
    if len(holding) != 1:
        told = ", ".join(sorted(holding)) or "none"
        raise SourceError(
            f"{str(path)!r} is to have one table of spans and has {told}; "
            "name the right one spans, or make a view of that name"
        )
    return holding[0]


def _adopt(connection: duckdb.DuckDBPyConnection, found: Found, scratch: Path) -> None:
    """Turn a relation of somebody else's layout into rows of ours."""
    present = dict(_described(connection, "loaded"))
    if not is_foreign_table(present):
        return
    folder = scratch / "adopted"
    folder.mkdir()
    sink = RowSink(folder)
    try:
        read_table(connection, "loaded", present, sink, found.problems, found.source)
    except (duckdb.Error, pa.ArrowException, UnicodeError) as error:
        raise SourceError(
            f"{found.source!r} cannot be read ({_first_line(error)}); name {KNOWN_FORMS}"
        ) from error
    ((is_view,),) = connection.execute(
        "SELECT count(*) FROM duckdb_views() WHERE view_name = 'loaded'"
    ).fetchall()
    connection.execute(f"DROP {'VIEW' if is_view else 'TABLE'} loaded")
    if not sink.rows:
        raise NoSpans(found.source, hint=f"name {KNOWN_FORMS}")
    found.parquet[:] = sorted(folder.glob("*.parquet"))
    paths = ", ".join(_quoted(str(path)) for path in found.parquet)
    connection.execute(f"CREATE VIEW loaded AS FROM read_parquet([{paths}])")


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
        _note_repeated(connection)
        connection.execute(
            "CREATE TABLE once AS FROM loaded WHERE trace_id IS NOT NULL AND span_id IS NOT NULL "
            "QUALIFY row_number() OVER (PARTITION BY trace_id, span_id) = 1"
        )
    connection.execute(f"CREATE VIEW recorded AS FROM {'loaded' if once else 'once'}")


def _note_repeated(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep which spans are there more than once, and whether all copies say the same."""
    columns = dict(_described(connection, "loaded"))
    run = "any_value(run_id)" if "run_id" in columns else "NULL::VARCHAR"
    connection.execute(
        "CREATE TABLE repeated AS "
        f"SELECT trace_id, span_id, {run} AS run_id, count(*) AS copies, "
        "count(DISTINCT hash(loaded)) AS kinds FROM loaded "
        "WHERE trace_id IS NOT NULL AND span_id IS NOT NULL "
        "GROUP BY trace_id, span_id HAVING count(*) > 1"
    )


def _counted(connection: duckdb.DuckDBPyConnection, counts: str) -> tuple[int, ...]:
    return connection.execute(f"SELECT {counts} FROM loaded").fetchone() or (0, 0, 0)


def _described(connection: duckdb.DuckDBPyConnection, relation: str) -> list[tuple[str, str]]:
    """Names and types of a relation's columns."""
    rows = connection.execute(f"DESCRIBE FROM {relation}").fetchall()
    return [(str(row[0]), str(row[1])) for row in rows]


def _give_outcomes(connection: duckdb.DuckDBPyConnection, outcomes: Sequence[OutcomeRule]) -> None:
    for rule in outcomes:
        connection.execute(
            "INSERT INTO given_outcomes VALUES (?, ?, ?, ?, ?)",
            [rule.name, rule.step, rule.field, rule.operator, rule.literal],
        )


def _columns(present: Mapping[str, str]) -> str:
    """What `spans` selects: every known column in its type, then whatever else there is."""
    known = column_types()
    selected = [_column(name, kind, present.get(name)) for name, kind in known.items()]
    others = [_named(name) for name in present if name.lower() not in known]
    return ", ".join([*selected, *others])


def _column(name: str, kind: str, present: str | None) -> str:
    if present == kind:
        return _named(name)
    if present is None:
        return null_column(name)
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
