"""Gives spans of other instrumentations their place among our own names.

The rows that came in stay as they are. Beside them stands a table with the columns that the
dialects make of them, and the relation `recorded` shows both as one.
"""

from __future__ import annotations

import json
import pickle
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby, islice
from pathlib import Path
from typing import Any, Final, cast

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from twinspan.analysis.dialects.autogen import AutoGen
from twinspan.analysis.dialects.base import Problems
from twinspan.analysis.dialects.foreign import Attributes, Dialect, ForeignSpan, Reading
from twinspan.analysis.dialects.genai import GenAI
from twinspan.analysis.dialects.openai_agents import OpenAIAgents
from twinspan.analysis.dialects.openinference import OpenInference
from twinspan.analysis.dialects.pydantic_ai import PydanticAI
from twinspan.analysis.dialects.span_tree import Told
from twinspan.analysis.dialects.teams import TeamReading, teams_of
from twinspan.analysis.dialects.traceloop import Traceloop
from twinspan.analysis.dialects.traces import Row, TraceReading
from twinspan.collector.jsontext import valid_deep
from twinspan.collector.schema import COLUMN_TYPES, PROMOTED_COLUMNS
from twinspan.instrumentation import conventions as c

DIALECTS: Final[tuple[Dialect, ...]] = (
    OpenAIAgents(),
    OpenInference(),
    Traceloop(),
    AutoGen(),
    PydanticAI(),
    GenAI(),
)
"""Every dialect, in the order in which a span is offered to them."""

LONGEST_TRACE: Final = 200_000
"""Spans of a trace that are read together; memory grows with the longest trace, not the source."""

GARBLED: Final = "an attribute that should hold JSON does not and was passed over"
TOO_LONG: Final = f"a span after the first {LONGEST_TRACE} of its trace was not interpreted"
LEFT_OUT: Final = "a span of {dialect} was left out, since {believed} tells the same"

_BATCH: Final = 2_000

_COLUMNS: Final = (
    "trace_id",
    "span_id",
    "start_unix_nano",
    "status_code",
    "span_type",
    "run_id",
    "audit_seq",
    "case_id",
    "run_outcome",
    "run_node_count",
    "run_superstep_count",
    "graph_nodes",
    "graph_edges",
    "node_id",
    "node_kind",
    "node_task_id",
    "node_parent_task_ids",
    "node_parents",
    "node_parent_hashes",
    "node_edge_kind",
    "node_outcome",
    "node_input_hash",
    "node_output_hash",
    "node_output_size",
    "superstep_index",
    "superstep_scope",
    "gen_ai_agent_name",
    "gen_ai_conversation_id",
    "gen_ai_provider_name",
    "gen_ai_request_model",
    "gen_ai_usage_input_tokens",
    "gen_ai_usage_output_tokens",
    "error_type",
    "action_fields",
)
"""Columns that a dialect may give a span."""

_SCHEMA: Final = pa.schema({name: COLUMN_TYPES[name] for name in _COLUMNS})
_KEPT: Final[dict[str, pa.DataType]] = {
    "trace_id": pa.string(),
    "start": pa.int64(),
    "span_id": pa.string(),
    "told": pa.binary(),
}
"""What is kept of a span until its whole trace has come."""
_TEAMS: Final[dict[str, pa.DataType]] = {"trace_id": pa.string(), "team": pa.string()}

_IDS: Final = frozenset({"trace_id", "span_id", "start_unix_nano"})
_DECIDED: Final = frozenset({"error_type", "status_code"})
"""Columns in which the dialect's word stands even where it says nothing: an exception that only
steers is no error."""

_GEN_AI: Final = (
    c.GEN_AI_OPERATION,
    c.GEN_AI_AGENT_NAME,
    c.GEN_AI_WORKFLOW_NAME,
    c.GEN_AI_CONVERSATION_ID,
    c.GEN_AI_PROVIDER,
    c.GEN_AI_REQUEST_MODEL,
    c.GEN_AI_INPUT_TOKENS,
    c.GEN_AI_OUTPUT_TOKENS,
    c.GEN_AI_INPUT_MESSAGES,
    c.GEN_AI_OUTPUT_MESSAGES,
)
"""Attributes of the conventions that the record keeps in columns of their own."""

_FACTS: Final = (
    "trace_id",
    "span_id",
    "parent_span_id",
    "name",
    "scope_name",
    "start_unix_nano",
    "duration_ns",
    "status_code",
    "status_message",
    "error_type",
    "span_type",
    "run_id",
    "node_task_id",
    "node_id",
    "probe_set_id",
    "probe_position",
)

_IS_FOREIGN: Final = """span_type IS NULL AND (
    gen_ai_operation_name IS NOT NULL
    OR scope_name = 'opentelemetry.instrumentation.langchain'
    OR starts_with(scope_name, 'autogen ')
    OR contains(attributes, 'openinference.span.kind')
    OR contains(attributes, 'traceloop.'))"""

_RELATION: Final = "as_recorded"


def interpret(
    connection: duckdb.DuckDBPyConnection,
    columns: str,
    scratch: Path,
    source: str,
    problems: Problems,
) -> bool:
    """Have the relation `recorded` tell what spans of other instrumentations mean.

    Args:
        connection: holds the view `recorded`, which is replaced if there is anything to tell.
        columns: what a select names to have every column of the record in its type.
        scratch: a folder for what does not fit in memory.
        source: the source, for messages.
        problems: told of what was left out.

    Returns:
        Whether there are such spans.
    """
    connection.execute(f"CREATE VIEW typed AS SELECT {columns} FROM recorded")
    found = connection.execute(f"SELECT 1 FROM typed WHERE {_IS_FOREIGN} LIMIT 1").fetchone()
    if found is None:
        connection.execute("DROP VIEW typed")
        return False
    path = scratch / "meanings.parquet"
    spans = _by_trace(connection, scratch, source, problems)
    _write(path, _SCHEMA, _meanings(spans, source, problems))
    connection.execute(_DERIVED.format(path=_quoted(path)))
    path.unlink()
    connection.execute("DROP VIEW typed")
    connection.execute(f"ALTER VIEW recorded RENAME TO {_RELATION}")
    connection.execute(_joined(columns))
    return True


_DERIVED: Final = """CREATE TABLE meanings AS
SELECT * REPLACE (
           CASE WHEN node_outcome = 'error' AND node_attempt < attempts THEN 'retried'
                ELSE node_outcome END AS node_outcome,
           coalesce(node_parents, first_value(node_parents IGNORE NULLS) OVER tries)
               AS node_parents,
           coalesce(node_parent_task_ids,
                    first_value(node_parent_task_ids IGNORE NULLS) OVER tries)
               AS node_parent_task_ids,
           coalesce(node_parent_hashes, first_value(node_parent_hashes IGNORE NULLS) OVER tries)
               AS node_parent_hashes,
           coalesce(node_edge_kind, first_value(node_edge_kind IGNORE NULLS) OVER tries)
               AS node_edge_kind)
FROM (SELECT *,
             CASE WHEN span_type = 'node' THEN row_number() OVER (tries ORDER BY start_unix_nano)
             END AS node_attempt,
             count(*) OVER tries AS attempts
      FROM read_parquet('{path}')
      WINDOW tries AS (PARTITION BY span_type, coalesce(node_task_id, span_id)))
WINDOW tries AS (PARTITION BY span_type, coalesce(node_task_id, span_id)
                 ORDER BY start_unix_nano
                 ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING)"""
"""Attempts are counted over all traces: a run is often resumed in another."""


def _joined(columns: str) -> str:
    """The view that shows what was recorded and what it means as one."""
    given = [name for name in (*_COLUMNS, "node_attempt") if name not in _IDS]
    replaced = ", ".join(
        f'CASE WHEN meant.span_id IS NULL THEN told."{name}" ELSE meant."{name}" END AS "{name}"'
        if name in _DECIDED
        else f'coalesce(meant."{name}", told."{name}") AS "{name}"'
        for name in given
    )
    return (
        f"CREATE VIEW recorded AS SELECT told.* REPLACE ({replaced}) "
        f"FROM (SELECT {columns} FROM {_RELATION}) AS told LEFT JOIN meanings AS meant "
        "ON meant.span_id = told.span_id AND meant.trace_id = told.trace_id"
    )


def _write(path: Path, schema: pa.Schema, rows: Iterator[Row]) -> None:
    with pq.ParquetWriter(path, schema) as writer:
        while batch := list(islice(rows, _BATCH)):
            writer.write_table(table_of(batch, schema))


def table_of(rows: list[Row], schema: pa.Schema = _SCHEMA) -> pa.Table:
    """Rows as a table; half characters, which a table cannot hold, are replaced."""
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except UnicodeError:
        return pa.Table.from_pylist([cast(Row, valid_deep(row)) for row in rows], schema=schema)


def _meanings(
    spans: Iterator[tuple[str | None, Told]], source: str, problems: Problems
) -> Iterator[Row]:
    """What each trace, or the traces of each team, mean, one after the other."""
    ignored: Counter[tuple[str, str]] = Counter()
    for (team, _), trace in groupby(spans, key=_together):
        told = [each for _, each in islice(trace, LONGEST_TRACE)]
        # What is left of the trace is skipped by the next step of the loop, but not uncounted.
        problems.count(source, TOO_LONG, sum(1 for _ in trace))
        reading = TraceReading(told) if team is None else TeamReading(told)
        yield from reading.rows()
        ignored += reading.ignored
    for (dialect, believed), count in ignored.items():
        problems.count(source, LEFT_OUT.format(dialect=dialect, believed=believed), count)


def _together(told: tuple[str | None, Told]) -> tuple[str | None, str | None]:
    team, each = told
    return team, None if team is not None else each.span.trace_id


def _by_trace(
    connection: duckdb.DuckDBPyConnection, scratch: Path, source: str, problems: Problems
) -> Iterator[tuple[str | None, Told]]:
    """The spans of all traces that others wrote in, trace by trace, or team by team.

    A file holds spans in the order in which they ended, with all their prompts. They are read
    as they come, and only what is kept of them is sorted.
    """
    path, teams_path = scratch / "readings.parquet", scratch / "teams.parquet"
    found: defaultdict[str, set[str | None]] = defaultdict(set)
    readings = (
        {
            "trace_id": told.span.trace_id,
            "start": told.span.start,
            "span_id": told.span.span_id,
            "told": pickle.dumps(told, pickle.HIGHEST_PROTOCOL),
        }
        for told in _noting_teams(_as_they_come(connection, source, problems), found)
    )
    _write(path, pa.schema(_KEPT), readings)
    teams = ({"trace_id": trace, "team": team} for trace, team in teams_of(found).items())
    _write(teams_path, pa.schema(_TEAMS), teams)
    for team, told in _stream(
        connection,
        f"SELECT team, told FROM '{_quoted(path)}' LEFT JOIN '{_quoted(teams_path)}' "
        "USING (trace_id) ORDER BY team, if(team IS NULL, trace_id, NULL), start, span_id",
    ):
        # The bytes are our own, written a moment ago to a folder of our own.
        yield team, cast(Told, pickle.loads(told))
    path.unlink()
    teams_path.unlink()


def _noting_teams(
    spans: Iterator[Told], found: defaultdict[str, set[str | None]]
) -> Iterator[Told]:
    """The same spans, with the teams of their traces noted on the way."""
    for told in spans:
        if told.reading is not None and (told.reading.team is not None or told.is_step):
            found[told.span.trace_id].add(told.reading.team)
        yield told


def _as_they_come(
    connection: duckdb.DuckDBPyConnection, source: str, problems: Problems
) -> Iterator[Told]:
    gen_ai = ", ".join(f'"{PROMOTED_COLUMNS[name]}"' for name in _GEN_AI)
    rows = _stream(
        connection,
        f"SELECT {', '.join(_FACTS)}, "
        "[event.attributes FOR event IN events IF event.name = 'exception'][-1] AS exception, "
        f"CASE WHEN {_IS_FOREIGN} THEN attributes END AS rest, "
        "CASE WHEN starts_with(scope_name, 'autogen') THEN [link.span_id FOR link IN links] END, "
        f"{gen_ai} FROM typed "
        f"WHERE trace_id IN (SELECT DISTINCT trace_id FROM typed WHERE {_IS_FOREIGN})",
    )
    for row in rows:
        yield _told(row, source, problems)


def _stream(connection: duckdb.DuckDBPyConnection, query: str) -> Iterator[tuple[Any, ...]]:
    """The rows of a query, never more than a batch of them in memory."""
    with connection.cursor() as cursor:
        reader = cast(pa.RecordBatchReader, cursor.sql(query).to_arrow_reader(_BATCH))
        for batch in reader:
            yield from zip(*batch.to_pydict().values(), strict=True)


def _quoted(path: Path) -> str:
    return str(path).replace("'", "''")


def _told(row: Sequence[Any], source: str, problems: Problems) -> Told:
    facts: dict[str, Any] = dict(zip(_FACTS, row, strict=False))
    exception, rest, links, *named = row[len(_FACTS) :]
    start = int(facts["start_unix_nano"] or 0)
    span = ForeignSpan(
        trace_id=facts["trace_id"],
        span_id=facts["span_id"],
        parent_span_id=facts["parent_span_id"],
        name=facts["name"] or "",
        scope_name=facts["scope_name"] or "",
        start=start,
        end=start + int(facts["duration_ns"] or 0),
        status=facts["status_code"] or "UNSET",
        status_message=facts["status_message"],
        error_type=facts["error_type"],
        span_type=facts["span_type"],
        run_id=facts["run_id"],
        task_id=facts["node_task_id"],
        node_id=facts["node_id"],
        probe=_probe(facts["probe_set_id"], facts["probe_position"]),
        links=tuple(links or ()),
    )
    if rest is None:
        return Told(span=span)
    raised = _mapping(exception, source, problems).get("exception.type")
    span = replace(span, exception=raised if isinstance(raised, str) else None)
    attributes = {
        **_mapping(rest, source, problems),
        **{name: value for name, value in zip(_GEN_AI, named, strict=True) if value is not None},
    }
    reading = _reading(span, attributes)
    problems.count(source, GARBLED, reading.garbled if reading else 0)
    return Told(span=span, reading=reading)


def _probe(set_id: str | None, position: int | None) -> str | None:
    return None if set_id is None else f"{set_id}/{position}"


def _reading(span: ForeignSpan, attributes: Attributes) -> Reading | None:
    for dialect in DIALECTS:
        if dialect.claims(span, attributes):
            return dialect.read(span, attributes)
    return None


def _mapping(text: str | None, source: str, problems: Problems) -> Mapping[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if isinstance(found, dict):
        return cast("dict[str, Any]", found)
    problems.count(source, GARBLED)
    return {}
