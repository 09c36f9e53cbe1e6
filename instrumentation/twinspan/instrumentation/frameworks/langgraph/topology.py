"""The static graph of a compiled LangGraph, read once per graph."""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.explicit import CONTROL, GATE, MITIGATION
from twinspan.instrumentation.gate import Topology

_known: weakref.WeakKeyDictionary[Any, Topology] = weakref.WeakKeyDictionary()
_Edge = tuple[str, str, bool]
_TERMINALS = frozenset({names.START, names.END})


def topology_of(graph: Any) -> Topology:
    """Nodes and edges of a compiled graph, without LangGraph's start and end."""
    known = _known.get(graph)
    if known is None:
        known = _read(graph)
        _known[graph] = known
    return known


def _read(graph: Any) -> Topology:
    drawn = graph.get_graph()
    ours = {name: mark for name, node in drawn.nodes.items() if (mark := _mark(node))}
    edges = [
        (edge.source, edge.target, bool(edge.conditional))
        for edge in drawn.edges
        if edge.source not in _TERMINALS and edge.target not in _TERMINALS
    ]
    seen = _without(ours, edges)
    return Topology(
        name=str(graph.get_name()),
        nodes=tuple(node for node in drawn.nodes if node not in _TERMINALS and node not in ours),
        edges=tuple(dict.fromkeys((source, target) for source, target, _ in seen)),
        conditional=frozenset((source, target) for source, target, how in seen if how),
    )


def _mark(node: Any) -> str:
    metadata: dict[str, Any] = getattr(node, "metadata", None) or {}
    return str(metadata.get(CONTROL, ""))


def _without(ours: dict[str, str], edges: list[_Edge]) -> list[_Edge]:
    """The edges as they would be without nodes of ours: readers count, not who stands between."""
    if not ours:
        return edges

    def readers(target: str, how: bool) -> Iterator[tuple[str, bool]]:
        if target not in ours:
            yield target, how
        elif ours[target] == GATE:
            for source, beyond, conditional in edges:
                # A breaker's way to its release is a condition only on our side.
                if source == target and ours.get(beyond) != MITIGATION:
                    yield from readers(beyond, conditional and beyond not in ours)

    return [
        (source, reader, conditional)
        for source, target, how in edges
        if source not in ours
        for reader, conditional in readers(target, how)
    ]
