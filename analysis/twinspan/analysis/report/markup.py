"""HTML and SVG that cannot be broken out of: text is escaped unless it was made here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Final


class Html(str):
    """Markup that was made by `tag`; everything else is text."""

    __slots__ = ()


_VOID: Final = frozenset({"br", "hr", "meta", "col"})


def tag(name: str, *children: object, **attributes: object) -> Html:
    """An element; children that are no `Html` are escaped, attributes always.

    Attributes that are None are left out; `class_` is class, `aria_label` aria-label.

    >>> tag("b", "<script>", title='"', hidden=None)
    '<b title="&quot;">&lt;script&gt;</b>'
    """
    told = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{told}>")
    return Html(f"<{name}{told}>{join(*children)}</{name}>")


def join(*parts: object) -> Html:
    """Parts one after the other; None is nothing.

    >>> join(tag("i", "a"), " & ", None)
    '<i>a</i> &amp; '
    """
    return Html("".join(_part(part) for part in parts if part is not None))


def _part(part: object) -> str:
    return part if isinstance(part, Html) else escape(str(part))


def listed(items: Sequence[object], **attributes: object) -> Html | None:
    """A list; None without items."""
    if not items:
        return None
    return tag("ul", *(tag("li", item) for item in items), **attributes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table.

    Attributes:
        title: its heading.
        number: its cells are numbers, set right.
    """

    title: str
    number: bool = False


def columns(*titles: str) -> tuple[Column, ...]:
    """Columns from their headings; those that begin with # hold numbers.

    >>> [(each.title, each.number) for each in columns("node", "#delta")]
    [('node', False), ('delta', True)]
    """
    return tuple(
        Column(title=title.removeprefix("#"), number=title.startswith("#")) for title in titles
    )


def data_table(
    caption: str,
    heads: Sequence[Column],
    rows: Sequence[Sequence[object]],
    *,
    total: int | None = None,
) -> Html:
    """A table with a caption; the first cell of each row is its heading.

    The region around it can be scrolled and reached with the keyboard.

    Args:
        caption: what the table shows.
        heads: its columns.
        rows: its cells.
        total: how many rows there are, where not all are shown.
    """
    cut = total is not None and total > len(rows)
    told = f"{caption} (the first {len(rows):,} of {total:,})" if cut else caption
    head = tag("tr", *(_head(column) for column in heads))
    body = [tag("tr", *_cells(heads, row)) for row in rows]
    table = tag(
        "table", tag("caption", told), tag("thead", head), tag("tbody", *body), class_="data"
    )
    return tag("div", table, class_="scroll", role="region", aria_label=told, tabindex=0)


def _head(column: Column) -> Html:
    return tag("th", column.title, scope="col", class_="n" if column.number else None)


def _cells(heads: Sequence[Column], row: Sequence[object]) -> list[Html]:
    kinds = ["n" if column.number else None for column in heads]
    first = tag("th", row[0], scope="row", class_=kinds[0])
    return [
        first,
        *(tag("td", cell, class_=kind) for cell, kind in zip(row[1:], kinds[1:], strict=True)),
    ]
