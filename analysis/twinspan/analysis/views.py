"""The views over recorded spans: one file of SQL each."""

from __future__ import annotations

import re
from importlib.resources import files
from typing import Final

import duckdb

from twinspan.analysis.columns import no_rows
from twinspan.analysis.outcomes import PATTERN
from twinspan.collector.schema import PROMOTED_COLUMNS
from twinspan.instrumentation import conventions

VIEWS: Final = (
    "spans",
    "runs",
    "audits",
    "nodes",
    "edges",
    "supersteps",
    "llm_calls",
    "probe_sets",
    "probes",
    "network",
    "decisions",
    "interventions",
    "reviews",
    "attempts",
    "actions",
    "answers",
    "conditions",
    "floors",
    "flips",
    "coverage",
    "history",
    "trail",
    "otel_traces",
)
"""The views that users ask, in the order in which they are listed."""

_NEEDS: Final[dict[str, tuple[str, ...]]] = {
    "macros": (),
    "given_outcomes": (),
    "given_reference": (),
    "spans": ("macros",),
    "roots": ("spans",),
    "completeness": ("spans",),
    "runs": ("roots", "completeness"),
    "nodes": ("spans",),
    "edges": ("spans",),
    "llm_calls": ("spans",),
    "probe_sets": ("spans",),
    "probes": ("spans",),
    "network": ("probe_sets",),
    "decisions": ("spans",),
    "interventions": ("spans",),
    "reviews": ("spans",),
    "attempts": ("spans",),
    "supersteps": ("decisions",),
    "counted_runs": ("roots",),
    "audits": ("counted_runs",),
    "conditions": ("counted_runs", "given_reference"),
    "actions": ("counted_runs", "given_outcomes"),
    "answers": ("actions",),
    "floors": ("actions",),
    "flips": ("answers", "conditions"),
    "coverage": ("probe_sets",),
    "history": ("spans",),
    "trail": ("spans",),
    "otel_traces": ("spans",),
}
"""Every file of SQL, and those that it builds on."""


def view_sql(name: str) -> str:
    """The SQL of one file as it is written, places for columns included.

    >>> view_sql("nodes").splitlines()[1]
    'CREATE VIEW nodes AS'
    """
    return files("twinspan.analysis").joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")


_WORD: Final = re.compile(r"[a-z_]+")


class Views:
    """Makes views over a relation `recorded`, each when it is first asked for.

    Binding all of them costs more than most questions.

    Args:
        connection: where they are made.
        columns: what `spans` selects from `recorded`.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, columns: str) -> None:
        self._connection = connection
        self._columns = columns
        self._made: set[str] = set()

    def make(self, name: str) -> None:
        """Make one view with those that it builds on; other names are none of ours."""
        if name in self._made or name not in _NEEDS:
            return
        for needed in _NEEDS[name]:
            self.make(needed)
        self._connection.execute(_filled(name, self._columns))
        self._made.add(name)

    def make_all(self) -> None:
        """Make every view."""
        for name in _NEEDS:
            self.make(name)

    def make_for(self, query: str) -> None:
        """Make the views whose names occur in a query of ours."""
        for word in sorted(set(_WORD.findall(query))):
            self.make(word)


def script(folder: str) -> str:
    """SQL that makes all views over a recorded folder in any DuckDB shell, without twinspan.

    >>> script("SPANS").splitlines()[5]
    "    'SPANS/**/*.parquet', union_by_name = true, hive_partitioning = false);"
    """
    pattern = f"{folder}/**/*.parquet".replace("'", "''")
    made: list[str] = []

    def add(name: str) -> None:
        for needed in _NEEDS[name]:
            add(needed)
        sql = _filled(name, "*").rstrip()
        if sql not in made:
            made.append(sql)

    for name in _NEEDS:
        add(name)
    recorded = (
        "-- The views of twinspan over recorded Parquet.\n"
        "SET TimeZone = 'UTC';\n"
        "-- A file may lack columns in which it has no value; the first SELECT names them all.\n"
        f"CREATE VIEW recorded AS {no_rows()}\n"
        f"UNION ALL BY NAME FROM read_parquet(\n"
        f"    '{pattern}', union_by_name = true, hive_partitioning = false);"
    )
    return "\n\n".join([recorded, *made]) + "\n"


def _filled(name: str, columns: str) -> str:
    """The SQL of one file with what only Python knows put in."""
    return (
        view_sql(name)
        .replace("{columns}", columns)
        .replace("{rule_pattern}", PATTERN)
        .replace("{promoted_entries}", _promoted_entries())
    )


def _promoted_entries() -> str:
    """Each promoted attribute as a pair of its own name and its value as text."""
    return ", ".join(
        f"('{name}', {_as_text(name, column)})" for name, column in PROMOTED_COLUMNS.items()
    )


def _as_text(name: str, column: str) -> str:
    is_list = conventions.CATALOGUE[name].type.endswith("[]")
    return f'to_json("{column}")::VARCHAR' if is_list else f'"{column}"::VARCHAR'
