"""Which of two instrumentors' spans mean the same thing: those at one time in one place."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_NEIGHBOURS: Final = 64
"""Spans on either side in time that are looked at: cost stays linear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Something that one dialect tells; times in nanoseconds.

    Attributes:
        rank: 0 for the dialect that is believed first.
        place: run and execution it is in, None where unknown.
    """

    span_id: str
    rank: int
    start: int
    end: int
    place: tuple[str | None, ...] = ()

    def may_be(self, other: Interval) -> bool:
        """Whether both may be one thing: they overlap, and no place contradicts."""
        return (
            self.start <= other.end
            and other.start <= self.end
            and all(
                mine is None or theirs is None or mine == theirs
                for mine, theirs in zip(self.place, other.place, strict=True)
            )
        )


def same(told: Sequence[Interval]) -> dict[str, str]:
    """For each span id the one that stands for the same thing, of the lowest rank that has it.

    A span is taken for the nearest in time that no other span of its dialect was taken for: two
    things side by side stay two.

    >>> def span(name, rank, start, end):
    ...     return Interval(span_id=name, rank=rank, start=start, end=end)
    >>> same([span("a", 0, 0, 9), span("b", 0, 2, 8), span("a2", 1, 1, 7),
    ...       span("b2", 1, 3, 7), span("c", 1, 20, 30)])
    {'a': 'a', 'b': 'b', 'a2': 'a', 'b2': 'b', 'c': 'c'}
    """
    found: dict[str, str] = {}
    kept: list[Interval] = []
    for rank in sorted({each.rank for each in told}):
        ordered = sorted((each for each in told if each.rank == rank), key=_start)
        pairs = _pairs(ordered, kept)
        found |= {
            each.span_id: each.span_id if match is None else match.span_id for each, match in pairs
        }
        kept += [each for each, match in pairs if match is None]
        kept.sort(key=_start)
    return found


def _start(interval: Interval) -> int:
    return interval.start


def _pairs(
    told: Sequence[Interval], kept: Sequence[Interval]
) -> list[tuple[Interval, Interval | None]]:
    """The spans of one dialect, each with what it was told as before."""
    starts = [each.start for each in kept]
    taken: set[int] = set()
    found: list[tuple[Interval, Interval | None]] = []
    for each in told:
        place = bisect_left(starts, each.start)
        near = range(max(0, place - _NEIGHBOURS), min(len(kept), place + _NEIGHBOURS))
        free = [i for i in near if i not in taken and kept[i].may_be(each)]
        best = min(free, key=lambda i: abs(starts[i] - each.start), default=None)
        if best is not None:
            taken.add(best)
        found.append((each, None if best is None else kept[best]))
    return found
