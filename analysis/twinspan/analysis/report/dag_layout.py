"""Where the nodes and edges of a layered graph are drawn."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

NODE_WIDTH: Final = 176
NODE_HEIGHT: Final = 74
GAP_ACROSS: Final = 84
GAP_DOWN: Final = 26
PASSAGE: Final = 18
MARGIN: Final = 14
SWEEPS: Final = 4

Edge = tuple[str, str]
Slot = tuple[str, ...]
"""`(node,)`, or `(source, target, layer)` where an edge passes through a layer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """A drawing's size and places, in its own units.

    Attributes:
        width: of the drawing.
        height: of it.
        corners: upper left corner of each node.
        passages: for each edge, the points through which it passes between its ends.
    """

    width: float
    height: float
    corners: Mapping[str, tuple[float, float]]
    passages: Mapping[Edge, tuple[tuple[float, float], ...]]


def laid_out(layers: Sequence[Sequence[str]], edges: Sequence[Edge]) -> Layout:
    """Layers from left to right; an edge over several layers gets a passage in each.

    Args:
        layers: nodes by layer.
        edges: from a layer to a later one.

    >>> layout = laid_out([["a"], ["b"], ["c"]], [("a", "b"), ("b", "c"), ("a", "c")])
    >>> layout.corners["b"][0] - layout.corners["a"][0] == NODE_WIDTH + GAP_ACROSS
    True
    >>> len(layout.passages["a", "c"])
    1
    """
    layer_of = {node: index for index, layer in enumerate(layers) for node in layer}
    slots: list[list[Slot]] = [[(node,) for node in layer] for layer in layers]
    links: list[tuple[Slot, Slot]] = []
    for source, target in edges:
        chain = _chain(source, target, layer_of)
        for slot in chain[1:-1]:
            slots[int(slot[2])].append(slot)
        links += pairwise(chain)
    _untangle(slots, links)
    return _placed(slots, edges, layer_of)


def _chain(source: str, target: str, layer_of: Mapping[str, int]) -> list[Slot]:
    between = range(layer_of[source] + 1, layer_of[target])
    return [(source,), *((source, target, str(layer)) for layer in between), (target,)]


def _untangle(slots: list[list[Slot]], links: Sequence[tuple[Slot, Slot]]) -> None:
    """Order each layer by where its neighbours are, back and forth, so that few edges cross."""
    before: dict[Slot, list[Slot]] = {}
    after: dict[Slot, list[Slot]] = {}
    for source, target in links:
        before.setdefault(target, []).append(source)
        after.setdefault(source, []).append(target)
    for sweep in range(SWEEPS):
        neighbours, order = (before, slots) if sweep % 2 == 0 else (after, slots[::-1])
        for fixed, moved in pairwise(order):
            _sort_by_neighbours(moved, fixed, neighbours)


def _sort_by_neighbours(
    moved: list[Slot], fixed: Sequence[Slot], neighbours: Mapping[Slot, Sequence[Slot]]
) -> None:
    places = {slot: (place + 0.5) / len(fixed) for place, slot in enumerate(fixed)}
    own = {slot: (place + 0.5) / len(moved) for place, slot in enumerate(moved)}

    def wanted(slot: Slot) -> float:
        found = [places[each] for each in neighbours.get(slot, ()) if each in places]
        return sum(found) / len(found) if found else own[slot]

    moved.sort(key=wanted)


def _placed(
    slots: Sequence[Sequence[Slot]], edges: Sequence[Edge], layer_of: Mapping[str, int]
) -> Layout:
    tallest = max((_height(layer) for layer in slots), default=0.0)
    tops: dict[Slot, float] = {}
    for layer in slots:
        top = MARGIN + (tallest - _height(layer)) / 2
        for slot in layer:
            tops[slot] = top
            top += _slot_height(slot) + GAP_DOWN
    step = NODE_WIDTH + GAP_ACROSS
    return Layout(
        width=2 * MARGIN + len(slots) * step - GAP_ACROSS,
        height=2 * MARGIN + tallest,
        corners={node: (MARGIN + step * layer, tops[(node,)]) for node, layer in layer_of.items()},
        passages={edge: tuple(_passage(edge, layer_of, tops)) for edge in edges},
    )


def _passage(
    edge: Edge, layer_of: Mapping[str, int], tops: Mapping[Slot, float]
) -> Iterator[tuple[float, float]]:
    for slot in _chain(*edge, layer_of)[1:-1]:
        left = MARGIN + (NODE_WIDTH + GAP_ACROSS) * int(slot[2])
        yield left + NODE_WIDTH / 2, tops[slot] + PASSAGE / 2


def _slot_height(slot: Slot) -> float:
    return NODE_HEIGHT if len(slot) == 1 else PASSAGE


def _height(layer: Sequence[Slot]) -> float:
    return sum(map(_slot_height, layer)) + GAP_DOWN * max(0, len(layer) - 1)
