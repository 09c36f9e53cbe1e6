"""A user's SQL can ask the views and do nothing else."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from recorded_runs import parts, recording, small_run

from twinspan.analysis.store import Store, open_store
from twinspan.instrumentation.errors import QueryError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One recorded run."""
    path = tmp_path_factory.mktemp("spans")
    with recording(path) as (telemetry, _):
        small_run(telemetry, "r1")
    return path


@pytest.fixture(scope="module")
def store(folder: Path) -> Iterator[Store]:
    """The run, opened."""
    with open_store(folder) as opened:
        yield opened


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count(*) FROM spans",
        "FROM nodes",
        "WITH x AS (SELECT 1 AS a) SELECT * FROM x UNION ALL SELECT 2",
        "WITH RECURSIVE n(a) AS (SELECT 1 UNION ALL SELECT a + 1 FROM n WHERE a < 3) FROM n",
        "SELECT * FROM range(3)",
        "SELECT unnest(node_parents) FROM spans",
        "DESCRIBE edges",
        "SUMMARIZE runs",
        "SHOW TABLES",
        "PIVOT nodes ON node IN ('n0', 'n1') USING count(*)",
        "SELECT * FROM spans WHERE name = 'COPY x TO y; DROP TABLE z'",
        "SELECT 1; -- done",
    ],
)
def test_questions_are_answered(store: Store, query: str) -> None:
    """Whatever only selects is allowed, whatever words its texts hold."""
    store.sql(query)


@pytest.mark.parametrize(
    "query",
    [
        "",
        "SELEC 1",
        "SELECT 1; SELECT 2",
        "COPY spans TO '{folder}/stolen.csv'",
        "WITH x AS (COPY (SELECT 1) TO '{part}') SELECT * FROM x",
        "SELECT (WITH x AS (COPY (SELECT 1) TO '{part}') SELECT count(*) FROM x)",
        "EXPLAIN ANALYZE WITH x AS (COPY (SELECT 1) TO '{part}') SELECT * FROM x",
        "SELECT * FROM query('WITH x AS (COPY (SELECT 1) TO ''{part}'') SELECT * FROM x')",
        "WITH x AS (INSERT INTO given_outcomes VALUES (1,1,1,1,1) RETURNING 1) SELECT * FROM x",
        "WITH x AS (DELETE FROM given_outcomes RETURNING 1) SELECT * FROM x",
        "INSERT INTO given_outcomes VALUES (1, 1, 1, 1, 1)",
        "CREATE TABLE t AS SELECT 1",
        "DROP VIEW spans",
        "ATTACH '{folder}/x.duckdb'",
        "INSTALL httpfs",
        "LOAD json",
        "SET memory_limit = '1TB'",
        "SET VARIABLE a = 1",
        "RESET lock_configuration",
        "PRAGMA database_list",
        "CALL pragma_version()",
        "EXPORT DATABASE '{folder}/all'",
        "CHECKPOINT",
        "USE memory",
        "BEGIN",
        "PREPARE p AS SELECT 1",
        "SELECT * FROM read_csv('/etc/passwd')",
        "SELECT * FROM read_text('/etc/passwd')",
        "SELECT * FROM '/etc/passwd'",
        "SELECT * FROM read_text('{folder}/../secret')",
        "SELECT * FROM glob('/etc/*')",
        "SELECT * FROM read_parquet('https://example.org/x.parquet')",
        "SELECT * FROM arrow_scan(1, 2, 3)",
        "SELECT * FROM json_execute_serialized_sql('{{}}')",
        "SELECT * FROM folder",
        "SELECT getenv('HOME')",
        "SELECT * FROM none",
    ],
)
def test_everything_else_is_refused(store: Store, folder: Path, query: str) -> None:
    """One sentence with the cure, and no file is touched."""
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    with pytest.raises(QueryError) as caught:
        store.sql(query.format(folder=folder, part=parts(folder)[0]))
    assert "\n" not in str(caught.value)
    assert "one SELECT over the views" in str(caught.value)
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


def test_after_a_refusal_questions_go_on(store: Store) -> None:
    """Neither an error nor an interruption leaves the connection unusable."""
    for bad in ("SELECT * FROM none", "SELECT 1 / 'x'"):
        with pytest.raises(QueryError):
            store.sql(bad)
    assert store.sql("SELECT count(*) FROM spans").rows == ((4,),)


def test_a_query_without_end_is_ended(store: Store) -> None:
    """The time is limited, and the message says by how much."""
    begun = time.monotonic()
    with pytest.raises(QueryError, match=r"longer than 0\.3 s"):
        store.sql(
            "SELECT count(*) FROM range(100000000000) a, range(100000000000) b "
            "WHERE a.range * 7 % 11 = b.range % 3",
            timeout=0.3,
        )
    assert time.monotonic() - begun < 30
    assert store.sql("SELECT 1").rows == ((1,),)


def test_a_query_that_wants_all_memory_is_refused(store: Store) -> None:
    """Memory is limited too."""
    with pytest.raises(QueryError):
        store.sql("SELECT repeat('x', 100000000000)")
