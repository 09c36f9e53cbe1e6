"""Each call of a model once, however many instrumentors watched it."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

_NEIGHBOURS: Final = 64
"""Calls on either side in time that are looked at for the same call: time stays linear."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One call as one instrumentor told it; times in nanoseconds.

    Attributes:
        rank: 0 for the dialect that is believed first.
        run_id: the run, if it is known.
        task_id: the node's execution, if it is known.
    """

    span_id: str
    rank: int
    start: int
    end: int
    run_id: str | None = None
    task_id: str | None = None

    def may_be(self, other: ModelCall) -> bool:
        """Whether two instrumentors may mean the same call: at one time, in one place."""
        return (
            self.start <= other.end
            and other.start <= self.end
            and _agree(self.run_id, other.run_id)
            and _agree(self.task_id, other.task_id)
        )


def _agree(one: str | None, other: str | None) -> bool:
    return one is None or other is None or one == other


def once(calls: Sequence[ModelCall]) -> list[ModelCall]:
    """The calls, each told by the dialect of the lowest rank that saw it.

    A call of another dialect is the same call if it overlaps in time and place with one that no
    other call of that dialect was taken for: two calls side by side stay two.

    >>> def call(name, rank, start, end):
    ...     return ModelCall(span_id=name, rank=rank, start=start, end=end)
    >>> kept = once([call("a", 0, 0, 9), call("b", 0, 0, 8), call("a2", 1, 1, 7),
    ...              call("b2", 1, 2, 7), call("c", 1, 20, 30)])
    >>> [each.span_id for each in kept]
    ['a', 'b', 'c']
    """
    kept: list[ModelCall] = []
    for rank in sorted({call.rank for call in calls}):
        told = sorted((each for each in calls if each.rank == rank), key=lambda each: each.start)
        kept += _new(told, kept)
        kept.sort(key=lambda each: each.start)
    return kept


def _new(told: Sequence[ModelCall], kept: Sequence[ModelCall]) -> list[ModelCall]:
    """Those of one dialect that nobody told before."""
    starts = [each.start for each in kept]
    taken: set[int] = set()
    found: list[ModelCall] = []
    for call in told:
        near = _near(bisect_left(starts, call.start), len(kept))
        free = [i for i in near if i not in taken and kept[i].may_be(call)]
        if free:
            taken.add(min(free, key=lambda i: abs(kept[i].start - call.start)))
        else:
            found.append(call)
    return found


def _near(place: int, length: int) -> Iterator[int]:
    return iter(range(max(0, place - _NEIGHBOURS), min(length, place + _NEIGHBOURS)))
