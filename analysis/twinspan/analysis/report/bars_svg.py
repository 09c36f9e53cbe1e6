"""Values with their intervals, drawn in the cell of a table."""

from __future__ import annotations

from typing import Final

from twinspan.analysis.report.markup import Html, tag
from twinspan.analysis.report.wording import NOTHING

WIDTH: Final = 220
HEIGHT: Final = 18


def interval_bar(
    value: float | None,
    low: float | None,
    high: float | None,
    *,
    start: float,
    end: float,
    told: str,
    look: str = "",
) -> Html:
    """A bar from zero to a value, with a whisker over its interval.

    Args:
        value: the value; nothing is drawn without one.
        low: lower end of the interval.
        high: its upper end.
        start: value at the left of the cell.
        end: value at its right.
        told: the same in words.
        look: a class of the style sheet.
    """
    if value is None:
        return tag("span", NOTHING)

    def x(at: float) -> float:
        return WIDTH * (min(max(at, start), end) - start) / ((end - start) or 1.0)

    left, right = sorted((x(0.0), x(value)))
    whisker = None
    if low is not None and high is not None:
        whisker = tag(
            "path",
            d=f"M{x(low):.1f},9 H{x(high):.1f} M{x(low):.1f},5 v8 M{x(high):.1f},5 v8",
            class_="whisker",
        )
    return tag(
        "svg",
        tag("title", told),
        tag("path", d=f"M{x(0.0):.1f},0 V{HEIGHT}", class_="zero"),
        tag("rect", x=f"{left:.1f}", y=4, width=f"{right - left:.1f}", height=10, class_="bar"),
        whisker,
        class_=f"cellbar {look}".strip(),
        role="img",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        width=WIDTH,
        height=HEIGHT,
    )
