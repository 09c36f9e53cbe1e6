"""SQL of somebody we do not know, over the views and nothing else.

The connection is locked by its settings: no other file, no other database, no extension, no
setting. What settings cannot say is read off the parsed statement: it may only select.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import duckdb

from twinspan.analysis.tables import Table
from twinspan.instrumentation.errors import QueryError

DEFAULT_TIMEOUT: Final = 60.0
"""Seconds that a query may take."""

_SELECTING_NODES: Final = frozenset(
    {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
)
"""Kinds of query that only read. `WITH x AS (COPY ...)` would be another kind."""

_TABLE_FUNCTIONS: Final = frozenset(
    {"range", "generate_series", "unnest", "json_each", "json_tree", "repeat", "summary"}
)
"""Functions that may stand behind FROM; others open files, run text as SQL or change state."""

_CURE: Final = "ask with one SELECT over the views; `twinspan schema` lists them"


def check(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    """Refuse whatever is not exactly one statement that selects.

    Raises:
        QueryError: for anything else, and for text that cannot be parsed.
    """
    try:
        parsed = connection.extract_statements(query)
    except duckdb.Error as error:
        raise QueryError(f"{_first_line(error)}; {_CURE}") from error
    if len(parsed) != 1:
        raise QueryError(f"{len(parsed)} statements were given; {_CURE}")
    if parsed[0].type != duckdb.StatementType.SELECT:
        raise QueryError(f"{_word(parsed[0].type)} statements are not allowed; {_CURE}")
    row = connection.execute("SELECT json_serialize_sql(?::VARCHAR)", [query]).fetchone()
    document = json.loads(cast("tuple[str]", row)[0])
    if document.get("error"):
        raise QueryError(f"the query cannot be checked ({document.get('error_message')}); {_CURE}")
    for node in _nodes(document):
        _check_node(node)


def run(
    connection: duckdb.DuckDBPyConnection, query: str, *, timeout: float = DEFAULT_TIMEOUT
) -> Table:
    """Check a query and run it, at most `timeout` seconds.

    Raises:
        QueryError: if it is refused, fails or takes too long.
    """
    check(connection, query)
    with _limited(connection, timeout) as timer:
        try:
            # A transaction that cannot write: no statement inside a SELECT changes anything.
            connection.execute("BEGIN TRANSACTION READ ONLY")
            connection.execute(query)
            columns = tuple(column[0] for column in connection.description or ())
            rows = tuple(connection.fetchall())
        except duckdb.InterruptException as error:
            if not timer.expired:
                raise
            raise QueryError(
                f"the query took longer than {timeout:g} s; narrow it or raise --timeout"
            ) from error
        except duckdb.Error as error:
            raise QueryError(f"{_first_line(error)}; {_CURE}") from error
        finally:
            _roll_back(connection)
    return Table(columns=columns, rows=rows)


class _Timer:
    """Interrupts a connection when the time is over."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, seconds: float) -> None:
        self.expired = False
        self._connection = connection
        self._timer = threading.Timer(seconds, self._expire)
        self._timer.daemon = True

    def start(self) -> None:
        self._timer.start()

    def stop(self) -> None:
        self._timer.cancel()
        self._timer.join()

    def _expire(self) -> None:
        self.expired = True
        self._connection.interrupt()


@contextmanager
def _limited(connection: duckdb.DuckDBPyConnection, seconds: float) -> Generator[_Timer]:
    timer = _Timer(connection, seconds)
    timer.start()
    try:
        yield timer
    finally:
        timer.stop()


def _roll_back(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.execute("ROLLBACK")
    except duckdb.Error:
        pass  # the error of the query has ended the transaction


def _nodes(document: object) -> Iterator[dict[str, Any]]:
    """Every object of a parsed statement."""
    if isinstance(document, dict):
        node = cast("dict[str, Any]", document)
        yield node
        for value in node.values():
            yield from _nodes(value)
    elif isinstance(document, list):
        for value in cast("list[object]", document):
            yield from _nodes(value)


def _check_node(node: dict[str, Any]) -> None:
    kind = node.get("type")
    if isinstance(kind, str) and kind.endswith("_NODE") and kind not in _SELECTING_NODES:
        word = kind.removesuffix("_NODE").removesuffix("_QUERY")
        raise QueryError(f"{word} inside a query is not allowed; {_CURE}")
    if kind == "TABLE_FUNCTION":
        function = cast("dict[str, Any]", node.get("function") or {})
        name = str(function.get("function_name", "")).lower()
        if name not in _TABLE_FUNCTIONS:
            raise QueryError(f"the function {name!r} is not allowed behind FROM; {_CURE}")


def _word(kind: object) -> str:
    return str(kind).rpartition(".")[2]


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".!")
