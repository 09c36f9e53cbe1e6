"""The views and their columns, described without any spans."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import duckdb

from twinspan.analysis.views import VIEWS, Views
from twinspan.collector.schema import SPAN_SCHEMA
from twinspan.instrumentation import conventions


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedColumn:
    """One column of a view.

    Attributes:
        view: the view.
        column: the column.
        type: its SQL type.
        attribute: the span attribute that it holds, None for others.
        meaning: what that says.
    """

    view: str
    column: str
    type: str
    attribute: str | None
    meaning: str | None


_ATTRIBUTES: Final = {attribute.column: attribute for attribute in conventions.CATALOGUE.values()}


def described_columns(view: str | None = None) -> list[DescribedColumn]:
    """Every column of one view, or of all, in order.

    >>> [each.column for each in described_columns("edges")][:5]
    ['run_id', 'scope', 'source', 'target', 'kind']
    """
    with duckdb.connect() as connection:
        connection.register("known_columns", SPAN_SCHEMA.empty_table())
        connection.execute("CREATE TABLE recorded AS FROM known_columns")
        Views(connection, "*").make_all()
        return [
            _described(name, str(row[0]), str(row[1]))
            for name in ([view] if view else VIEWS)
            for row in connection.execute(f"DESCRIBE {name}").fetchall()
        ]


def _described(view: str, column: str, kind: str) -> DescribedColumn:
    attribute = _ATTRIBUTES.get(column) if view == "spans" else None
    return DescribedColumn(
        view=view,
        column=column,
        type=kind,
        attribute=attribute.name if attribute else None,
        meaning=attribute.meaning if attribute else None,
    )
