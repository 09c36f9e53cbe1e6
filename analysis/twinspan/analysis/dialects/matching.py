"""Which of two instrumentors' spans mean the same thing: those at one time in one place."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_NEIGHBOURS: Final = 64
"""Spans on either side in time that are looked at: cost stays linear."""

_LOOKED_AT: Final = 2_000
"""Places that are looked at for one span before it is left alone."""


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

    No two spans of a dialect are taken for the same one: two things side by side stay two. As
    many as can be are taken for one, each for the nearest in time as far as that goes.

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
    matching = _Matching([_near(each, kept, starts) for each in told])
    found = matching.found()
    return [
        (each, kept[found[number]] if number in found else None) for number, each in enumerate(told)
    ]


def _near(each: Interval, kept: Sequence[Interval], starts: Sequence[int]) -> list[int]:
    """Places in `kept` of what a span may be, the nearest in time first."""
    place = bisect_left(starts, each.start)
    near = range(max(0, place - _NEIGHBOURS), min(len(kept), place + _NEIGHBOURS))
    may_be = [other for other in near if kept[other].may_be(each)]
    return sorted(may_be, key=lambda other: abs(starts[other] - each.start))


class _Matching:
    """A largest matching by augmenting paths (Berge 1957): who has no choice is asked for none.

    Args:
        wishes: for each span the places that it may have, the best first.
    """

    def __init__(self, wishes: Sequence[Sequence[int]]) -> None:
        self._wishes = wishes
        self._owner: dict[int, int] = {}
        self._place: dict[int, int] = {}

    def found(self) -> dict[int, int]:
        """The place of each span that has one."""
        for number in range(len(self._wishes)):
            self._settle(number)
        return self._place

    def _settle(self, number: int) -> None:
        """Give a span a place; those in its way move on to other places of theirs."""
        came_from: dict[int, int] = {}
        waiting = deque([number])
        while waiting and len(came_from) < _LOOKED_AT:
            asking = waiting.popleft()
            for place in self._wishes[asking]:
                if place in came_from:
                    continue
                came_from[place] = asking
                if place not in self._owner:
                    self._move_up(place, came_from)
                    return
                waiting.append(self._owner[place])

    def _move_up(self, free: int, came_from: dict[int, int]) -> None:
        """Everybody on the way takes the next place, from the free one backwards."""
        place: int | None = free
        while place is not None:
            mover = came_from[place]
            left = self._place.get(mover)
            self._owner[place], self._place[mover] = mover, place
            place = left
