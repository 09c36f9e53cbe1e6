"""The columns of the record in DuckDB's types.

A file need not have them all: a writer may leave out those in which it has no value.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import duckdb

from twinspan.collector.schema import SPAN_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Mapping

KNOWN_COLUMNS: Final = "known_columns"
"""Name of an empty table that has every column, where one is needed."""


@cache
def column_types() -> Mapping[str, str]:
    """The type of every column, in the order of the record.

    >>> column_types()["span_id"], column_types()["node_parents"]
    ('VARCHAR', 'VARCHAR[]')
    """
    with duckdb.connect() as connection:
        connection.register(KNOWN_COLUMNS, SPAN_SCHEMA.empty_table())
        rows = connection.execute(f"DESCRIBE {KNOWN_COLUMNS}").fetchall()
    return MappingProxyType({str(row[0]): str(row[1]) for row in rows})


def no_rows() -> str:
    """A SELECT of every column and no row; by name united with files it adds what they lack.

    >>> no_rows()[:32]
    'SELECT NULL::VARCHAR AS trace_id'
    """
    return f"SELECT {', '.join(map(null_column, column_types()))} WHERE false"


def null_column(name: str) -> str:
    """A column of the record without a value.

    >>> null_column("dropped_links")
    'NULL::INTEGER AS dropped_links'
    """
    return f"NULL::{column_types()[name]} AS {name}"
