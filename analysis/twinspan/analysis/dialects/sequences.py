"""Agents of which only times and handoffs tell who worked after whom."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One turn of an agent; times in nanoseconds.

    Attributes:
        task: the turn.
        node: the agent, within its own graph.
        source: the agent that handed over, if the record names it.
    """

    task: str
    node: str
    start: int
    end: int
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A turn in its order.

    Attributes:
        layer: its place in the order, from 1; turns that overlap share one or follow another.
        sources: the turns it follows.
        missing: the agent that handed over and has no turn in the record.
        kind: observed where a handoff is recorded, inferred from times, None for the first.
    """

    turn: Turn
    layer: int
    sources: tuple[Turn, ...] = ()
    missing: str | None = None
    kind: str | None = None


def placed(turns: Sequence[Turn]) -> list[Placed]:
    """Turns in the order that their times tell.

    A turn follows all that had ended when it began, so its layer is one more than the highest
    of theirs, and its sources are the turns of that layer.

    >>> a = Turn(task="1", node="a", start=0, end=5)
    >>> b = Turn(task="2", node="b", start=6, end=9)
    >>> [(p.layer, [s.node for s in p.sources], p.kind) for p in placed([b, a])]
    [(1, [], None), (2, ['a'], 'inferred')]
    """
    found: list[Placed] = []
    running: list[tuple[int, int, int]] = []
    ended: dict[int, list[Turn]] = {}
    latest: dict[str, Turn] = {}
    top = 0
    ordered = sorted(turns, key=lambda turn: (turn.start, turn.end, turn.task))
    for number, turn in enumerate(ordered):
        while running and running[0][0] <= turn.start:
            _, other, layer = heapq.heappop(running)
            ended.setdefault(layer, []).append(ordered[other])
            top = max(top, layer)
        found.append(_place(turn, top + 1, tuple(ended.get(top, ())), latest))
        latest[turn.node] = turn
        heapq.heappush(running, (turn.end, number, top + 1))
    return found


def _place(turn: Turn, layer: int, before: tuple[Turn, ...], latest: dict[str, Turn]) -> Placed:
    if turn.source is not None:
        source = latest.get(turn.source)
        return Placed(
            turn=turn,
            layer=layer,
            sources=() if source is None else (source,),
            missing=turn.source if source is None else None,
            kind="observed",
        )
    return Placed(turn=turn, layer=layer, sources=before, kind="inferred" if before else None)
