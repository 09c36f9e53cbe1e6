"""Scores over supersteps, drawn."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from twinspan.analysis.report.facts import Point
from twinspan.analysis.report.markup import Html, tag
from twinspan.analysis.report.wording import number
from twinspan.analysis.trail_records import HALTING

WIDTH: Final = 1000
HEIGHT: Final = 250
LEFT: Final = 62
RIGHT: Final = 112
TOP: Final = 22
BOTTOM: Final = 52
_MOST_LABELS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One series: its name, its values by decision, and its class in the style sheet."""

    name: str
    values: tuple[float | None, ...]
    look: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A level that means something, by decision; it may change within a run."""

    name: str
    values: tuple[float | None, ...]

    @property
    def known(self) -> list[float]:
        """The values in force, in order."""
        return [value for value in self.values if value is not None]


def score_figure(points: Sequence[Point], key: str) -> Html:
    """B_fast and B_slow over decisions, with the thresholds in force."""
    limits = _limits(
        points, ("tau_enter", lambda p: p.tau_enter), ("tau_exit", lambda p: p.tau_exit)
    )
    lines = (
        Line(name="B_fast", values=tuple(p.b_fast for p in points), look="fast"),
        Line(name="B_slow", values=tuple(p.b_slow for p in points), look="slow"),
    )
    return _figure("Network score B over decisions", points, lines, limits, key, log=False)


def monitor_figure(points: Sequence[Point], key: str) -> Html | None:
    """M over decisions, with the value that halts; None where no run monitor ran."""
    values = tuple(p.monitor for p in points)
    if all(value is None for value in values):
        return None
    limits = _limits(points, ("halts at", lambda p: p.monitor_limit))
    lines = (Line(name="M", values=values, look="monitor"),)
    return _figure(
        "Evidence M of the run monitor over decisions (logarithmic)",
        points,
        lines,
        limits,
        key,
        log=True,
    )


def _limits(
    points: Sequence[Point], *named: tuple[str, Callable[[Point], float | None]]
) -> list[Limit]:
    """The limits that were in force at all."""
    limits = [Limit(name=name, values=tuple(map(read, points))) for name, read in named]
    return [limit for limit in limits if limit.known]


# --- scales ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """Values to heights."""

    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool

    def y(self, value: float) -> float:
        """Where a value lies."""
        at, low, high = map(self._read, (value, self.low, self.high))
        share = (at - low) / (high - low)
        return TOP + (1 - share) * (HEIGHT - TOP - BOTTOM)

    def _read(self, value: float) -> float:
        return math.log10(max(value, self.low)) if self.log else value


def scale_of(values: Sequence[float], *, log: bool) -> Scale:
    """A scale on which all values lie, with round ticks.

    >>> scale_of([0.0, 0.26, -0.03], log=False).ticks
    (-0.1, 0.0, 0.1, 0.2, 0.3)
    >>> scale_of([0.64, 20.0], log=True).ticks
    (0.1, 1.0, 10.0, 100.0)
    """
    if log:
        positive = [value for value in values if value > 0] or [1.0]
        first = math.floor(math.log10(min(positive)))
        last = max(math.ceil(math.log10(max(positive))), first + 1)
        step = max(1, (last - first) // 5)
        ticks = tuple(10.0**power for power in range(first, last + 1, step))
        return Scale(low=10.0**first, high=10.0**last, ticks=ticks, log=True)
    low, high = min(*values, 0.0), max(*values, 0.0)
    size = _round_step((high - low) / 4 or 0.25)
    first, last = math.floor(low / size), max(math.ceil(high / size), math.floor(low / size) + 1)
    ticks = tuple(round(place * size, 12) for place in range(first, last + 1))
    return Scale(low=ticks[0], high=ticks[-1], ticks=ticks, log=False)


def _round_step(rough: float) -> float:
    """The next of 1, 2, 5, 10 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(rough))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * 0.999)


# --- drawing --------------------------------------------------------------------------------------


def _figure(
    title: str,
    points: Sequence[Point],
    lines: Sequence[Line],
    limits: Sequence[Limit],
    key: str,
    *,
    log: bool,
) -> Html:
    values = [value for line in lines for value in line.values if value is not None]
    scale = scale_of(
        [*values, *(each for limit in limits for each in limit.known)] or [0.0], log=log
    )
    xs = _places(len(points))
    svg = tag(
        "svg",
        tag("title", title, id=f"{key}-title"),
        tag("desc", _described(lines, limits), id=f"{key}-desc"),
        *_grid(scale),
        *_axis(points, xs),
        *(_limit(limit, xs, scale) for limit in limits),
        *(_line(line, xs, scale) for line in lines),
        *_names(lines, limits, scale),
        *_halts(points, lines[0], xs, scale),
        class_="series",
        role="img",
        aria_labelledby=f"{key}-title {key}-desc",
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
    )
    return tag("figure", tag("figcaption", title), svg)


def _described(lines: Sequence[Line], limits: Sequence[Limit]) -> str:
    told: list[str] = []
    for line in lines:
        known = [value for value in line.values if value is not None]
        if known:
            ends = f"from {number(known[0])} to {number(known[-1])}"
            told.append(f"{line.name} {ends}, at most {number(max(known))}")
    told += [f"{limit.name} {number(limit.known[-1])}" for limit in limits]
    return "; ".join(told) or "no values"


def _places(count: int) -> list[float]:
    span = WIDTH - LEFT - RIGHT
    inset = min(70.0, span / (count + 1))
    if count == 1:
        return [LEFT + span / 2]
    return [LEFT + inset + place * (span - 2 * inset) / (count - 1) for place in range(count)]


def _grid(scale: Scale) -> list[Html]:
    drawn: list[Html] = []
    for tick in scale.ticks:
        y = f"{scale.y(tick):.1f}"
        drawn.append(tag("path", d=f"M{LEFT},{y} H{WIDTH - RIGHT}", class_="grid"))
        text = f"{tick:g}".replace("-", "\u2212")
        drawn.append(tag("text", text, x=LEFT - 8, y=f"{float(y) + 4:.1f}", class_="tick y"))
    return drawn


def _axis(points: Sequence[Point], xs: Sequence[float]) -> list[Html]:
    every = -(-len(points) // _MOST_LABELS)
    y = HEIGHT - BOTTOM + 18
    drawn = [
        tag("text", _label(point, every), x=f"{x:.1f}", y=y, class_="tick x")
        for place, (point, x) in enumerate(zip(points, xs, strict=True))
        if place % every == 0
    ]
    middle = LEFT + (WIDTH - LEFT - RIGHT) / 2
    return [*drawn, tag("text", "superstep", x=middle, y=HEIGHT - 8, class_="tick x title")]


def _label(point: Point, every: int) -> str:
    name = "?" if point.superstep is None else str(point.superstep)
    return f"{name} re-measured" if point.after_repair and every == 1 else name


def _limit(limit: Limit, xs: Sequence[float], scale: Scale) -> Html:
    """A step at each change, half-way between two decisions."""
    ends = [LEFT, *((one + other) / 2 for one, other in pairwise(xs)), WIDTH - RIGHT]
    path, last = "", None
    for place, value in enumerate(limit.values):
        if value is None:
            last = None
            continue
        y = f"{scale.y(value):.1f}"
        path += f"M{ends[place]:.1f},{y}" if last is None else f" V{y}"
        path += f" H{ends[place + 1]:.1f}"
        last = value
    return tag("path", d=path, class_="limit")


def _line(line: Line, xs: Sequence[float], scale: Scale) -> Html:
    path, pen = "", "M"
    dots: list[Html] = []
    for x, value in zip(xs, line.values, strict=True):
        if value is None:
            pen = "M"  # a gap where nothing was measured, never a line across it
            continue
        path += f"{pen}{x:.1f},{scale.y(value):.1f} "
        pen = "L"
        if len(xs) <= 60:
            dot = tag("title", f"{line.name} {number(value)}")
            dots.append(tag("circle", dot, cx=f"{x:.1f}", cy=f"{scale.y(value):.1f}", r=3.5))
    return tag("g", tag("path", d=path.strip() or None, class_="line"), *dots, class_=line.look)


def _names(lines: Sequence[Line], limits: Sequence[Limit], scale: Scale) -> list[Html]:
    """Names at the right end, moved apart where they would lie on each other."""
    wanted = [_limit_name(limit, scale) for limit in limits]
    for line in lines:
        known = [value for value in line.values if value is not None]
        wanted += [(scale.y(known[-1]), line.name, line.look)] if known else []
    placed: list[Html] = []
    last = -math.inf
    for y, text, look in sorted(wanted):
        last = max(y + 4, last + 15)
        placed.append(
            tag("text", text, x=WIDTH - RIGHT + 8, y=f"{last:.1f}", class_=f"label {look}")
        )
    return placed


def _limit_name(limit: Limit, scale: Scale) -> tuple[float, str, str]:
    value = limit.known[-1]
    return scale.y(value), f"{limit.name} {number(value, 2)}", "limit"


def _halts(points: Sequence[Point], line: Line, xs: Sequence[float], scale: Scale) -> list[Html]:
    drawn: list[Html] = []
    for point, value, x in zip(points, line.values, xs, strict=True):
        if point.decision in HALTING and value is not None:
            y = scale.y(value)
            drawn.append(tag("circle", cx=f"{x:.1f}", cy=f"{y:.1f}", r=8, class_="halt"))
            drawn.append(
                tag("text", point.decision, x=f"{x:.1f}", y=f"{y - 13:.1f}", class_="haltword")
            )
    return drawn
