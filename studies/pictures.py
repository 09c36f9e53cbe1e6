"""A table's shares as a picture: a dot for each, with its interval; an SVG that loads nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from twinspan.analysis.report.markup import Html, tag
from twinspan.analysis.tables import Table

WIDTH, LABELS, LINE = 860, 420, 26
TOP, BOTTOM, RIGHT = 52, 34, 24
LABEL_LETTERS: Final = 60
SHARE: Final = re.compile(r"(-?[\d.]+) \[(-?[\d.]+), (-?[\d.]+)\]")
NOMINAL: Final = re.compile(r"(?:at|<=) (\.\d+)")
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#222}.title{font-weight:600}.small{font-size:11px;"
    "fill:#666}.whisker{stroke:#2563a8;stroke-width:1.5;fill:none}.dot{fill:#2563a8}"
    ".grid{stroke:#e2e2e2}.nominal{stroke:#c2410c;stroke-dasharray:3 3}"
)


class Point(NamedTuple):
    """A share with its interval; `nominal` is the level it is to be compared with, if any."""

    label: str
    value: float
    low: float
    high: float
    nominal: float | None


def points(table: Table) -> Iterator[Point]:
    """The shares of a table, row by row.

    >>> table = Table(columns=("way", "rejected at .05"), rows=(("a", "0.1 [0.0, 0.3]"),))
    >>> next(points(table))
    Point(label='a: rejected at .05', value=0.1, low=0.0, high=0.3, nominal=0.05)
    """
    for row in table.rows:
        cells = [str(cell) for cell in row]
        found = [SHARE.fullmatch(cell) for cell in cells]
        first = next((at for at, match in enumerate(found) if match), 0)
        name = ", ".join(cell for cell in cells[:first] if not cell.isdigit())
        for column, match in zip(table.columns, found, strict=True):
            if match is not None:
                level = NOMINAL.search(column)
                value, low, high = (float(match[each]) for each in (1, 2, 3))
                nominal = None if level is None else float(level[1])
                yield Point(f"{name}: {column}", value, low, high, nominal)


def picture(title: str, table: Table) -> Html | None:
    """All shares of a table on one scale from 0 to 1; None if it has none.

    A dashed line marks the level that a share is to be compared with.
    """
    drawn = list(points(table))
    if not drawn:
        return None
    height = TOP + LINE * len(drawn) + BOTTOM
    scale = [_tick(at / 4, height) for at in range(5)]
    return tag(
        "svg",
        tag("title", title),
        tag("style", STYLE),
        tag("rect", width=WIDTH, height=height, fill="#fff"),
        tag("text", title, x=12, y=24, class_="title"),
        *(part for tick in scale for part in tick),
        *(part for number, point in enumerate(drawn) for part in _line(number, point)),
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {WIDTH} {height}",
        width=WIDTH,
        height=height,
        role="img",
    )


def _x(share: float) -> float:
    return LABELS + (WIDTH - LABELS - RIGHT) * min(max(share, 0.0), 1.0)


def _tick(share: float, height: int) -> tuple[Html, Html]:
    x, end = f"{_x(share):.1f}", height - BOTTOM
    return (
        tag("path", d=f"M{x},{TOP - 8} V{end}", class_="grid"),
        tag("text", f"{share:g}", x=x, y=end + 16, class_="small", text_anchor="middle"),
    )


def _line(number: int, point: Point) -> Iterator[Html]:
    y = TOP + LINE * number + LINE // 2
    label = point.label
    if len(label) > LABEL_LETTERS:
        label = f"{label[: LABEL_LETTERS - 1]}…"
    yield tag("text", label, x=12, y=y + 4)
    if point.nominal is not None:
        yield tag("path", d=f"M{_x(point.nominal):.1f},{y - 12} v24", class_="nominal")
    low, high = _x(point.low), _x(point.high)
    yield tag(
        "path",
        d=f"M{low:.1f},{y} H{high:.1f} M{low:.1f},{y - 4} v8 M{high:.1f},{y - 4} v8",
        class_="whisker",
    )
    yield tag("circle", cx=f"{_x(point.value):.1f}", cy=y, r=4, class_="dot")
