"""The static graph of a compiled LangGraph, read once per graph."""

from __future__ import annotations

import weakref
from typing import Any

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.gate import Topology

_known: weakref.WeakKeyDictionary[Any, Topology] = weakref.WeakKeyDictionary()
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
    edges = [
        (edge.source, edge.target, bool(edge.conditional))
        for edge in drawn.edges
        if edge.source not in _TERMINALS and edge.target not in _TERMINALS
    ]
    return Topology(
        name=str(graph.get_name()),
        nodes=tuple(node for node in drawn.nodes if node not in _TERMINALS),
        edges=tuple(dict.fromkeys((source, target) for source, target, _ in edges)),
        conditional=frozenset((source, target) for source, target, how in edges if how),
    )
