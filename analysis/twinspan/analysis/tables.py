"""The answer to a query: named columns and rows of plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Rows with names for their columns.

    >>> table = Table(columns=("a", "b"), rows=((1, None),))
    >>> list(table.dicts())
    [{'a': 1, 'b': None}]
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[object, ...], ...]

    def dicts(self) -> Iterator[dict[str, object]]:
        """Each row as a dict."""
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))

    def column(self, name: str) -> list[object]:
        """All values of one column."""
        place = self.columns.index(name)
        return [row[place] for row in self.rows]
