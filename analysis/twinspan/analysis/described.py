"""The views and their columns, described without any spans.

What a column means is written once: an attribute's meaning where the attribute is defined, that of
a column which a view computes at the end of the view's SQL, as `-- column [unit]: meaning`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import duckdb

from twinspan.analysis.views import VIEWS, Views, view_sql
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
        unit: what it is counted in, or how it is written; None where that is plain.
    """

    view: str
    column: str
    type: str
    attribute: str | None
    meaning: str | None
    unit: str | None


_ATTRIBUTES: Final = {attribute.column: attribute for attribute in conventions.CATALOGUE.values()}
_SAID: Final = re.compile(r"^-- (?P<column>\w+)(?: \[(?P<unit>[^\]]+)\])?: (?P<meaning>.+)$", re.M)
_NAMED: Final = re.compile(r'(?:\w+\.)?(\w+) AS "?(\w+)"?')


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


def view_meaning(view: str) -> str:
    """What a view holds, as the beginning of its SQL says.

    >>> view_meaning("nodes")
    'One row per execution of a node; a retry or a resumption is a row of its own.'
    """
    lines: list[str] = []
    for line in view_sql(view).splitlines():
        if not line.startswith("--"):
            break
        lines.append(line.removeprefix("--").strip())
    return " ".join(lines)


def _described(view: str, column: str, kind: str) -> DescribedColumn:
    said = _said(view).get(column)
    source = column if view == "spans" else _source(view, column)
    attribute = None if said else _rest_attribute(view, column) or _ATTRIBUTES.get(source or "")
    if said is None and attribute is None and source is not None:
        said = _said("spans").get(source)
    if said is None and attribute is None:
        said = _said("macros").get(column)
    unit, meaning = said or (None, attribute.meaning if attribute else None)
    return DescribedColumn(
        view=view,
        column=column,
        type=kind,
        attribute=attribute.name if attribute else None,
        meaning=meaning,
        unit=unit,
    )


def _said(view: str) -> dict[str, tuple[str | None, str]]:
    """Unit and meaning of each column that a view's SQL speaks of."""
    _, _, told = view_sql(view).partition("\n-- Columns\n")
    return {match["column"]: (match["unit"], match["meaning"]) for match in _SAID.finditer(told)}


def _rest_attribute(view: str, column: str) -> conventions.Attribute | None:
    """The attribute that a view takes out of the JSON rest under this name."""
    found = re.search(rf"attr\(attributes, '([^']+)'\)\S* AS {column}\b", view_sql(view))
    return conventions.CATALOGUE.get(found[1]) if found else None


def _source(view: str, column: str) -> str | None:
    """The column of `spans` that a view hands on under this name."""
    known: set[str] = set(SPAN_SCHEMA.names)
    sql = re.sub(r"--.*", "", view_sql(view))
    sources: set[str] = {
        was for was, named in _NAMED.findall(sql) if named == column and was in known
    }
    if len(sources) == 1:
        return sources.pop()
    return column if column in known else None
