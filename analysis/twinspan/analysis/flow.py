"""Which way payloads went through a graph, loops set aside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

Edge = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """The order of a graph's nodes.

    Attributes:
        layers: the nodes by their longest way from a source, first layer first.
        forward: edges that go on; together they have no cycle.
        back: edges that close a loop.
    """

    layers: tuple[tuple[str, ...], ...]
    forward: tuple[Edge, ...]
    back: tuple[Edge, ...]

    @property
    def order(self) -> tuple[str, ...]:
        """All nodes, none before one that it depends on."""
        return tuple(node for layer in self.layers for node in layer)


def flow_of(nodes: Sequence[str], edges: Iterable[Edge]) -> Flow:
    """The flow of a graph.

    Args:
        nodes: in the order in which they first ran; it decides where a loop is entered.
        edges: among them; ends that are not in `nodes` are added.

    >>> flow = flow_of(["a", "b"], [("a", "b"), ("b", "a"), ("b", "c")])
    >>> flow.layers, flow.back
    ((('a',), ('b',), ('c',)), (('b', 'a'),))
    """
    given = list(dict.fromkeys(edges))
    places = {node: place for place, node in enumerate(_all_nodes(nodes, given))}
    rank = _ranks(places, given)
    forward = tuple(edge for edge in given if rank[edge[0]] < rank[edge[1]])
    graph = _digraph(places, forward)
    layers = tuple(
        tuple(sorted(layer, key=lambda node: places[node]))
        for layer in nx.topological_generations(graph)
    )
    back = tuple(edge for edge in given if rank[edge[0]] >= rank[edge[1]])
    return Flow(layers=layers, forward=forward, back=back)


def heaviest_path(flow: Flow, end: str, impacts: Mapping[str, float]) -> tuple[str, ...]:
    """The way to a node on which the most impact lies.

    Args:
        flow: the graph.
        end: where the way ends.
        impacts: w_i * B_i of the nodes that were measured; the rest, and what is below zero,
            count nothing.

    Returns:
        Nodes from a source to `end`, each handing its payload to the next.

    >>> flow = flow_of("abcd", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    >>> heaviest_path(flow, "d", {"a": 0.1, "c": 0.4, "b": 0.2})
    ('a', 'c', 'd')
    """
    before: dict[str, list[str]] = {}
    for source, target in flow.forward:
        before.setdefault(target, []).append(source)
    carried: dict[str, float] = {}
    for node in flow.order:
        largest = max((carried[each] for each in before.get(node, ())), default=0.0)
        carried[node] = largest + max(0.0, impacts.get(node, 0.0))
    path = [end]
    while before.get(path[-1]):
        path.append(max(before[path[-1]], key=lambda node: carried[node]))
    return tuple(reversed(path))


def _all_nodes(nodes: Sequence[str], edges: Sequence[Edge]) -> list[str]:
    return list(dict.fromkeys([*nodes, *(end for edge in edges for end in edge)]))


def _digraph(nodes: Iterable[str], edges: Iterable[Edge]) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(nodes)
    graph.add_edges_from(edges)
    return graph


def _ranks(places: Mapping[str, int], edges: Sequence[Edge]) -> dict[str, int]:
    """A rank for each node such that only edges within a loop can go down."""
    loops = [
        sorted(loop, key=lambda node: places[node])
        for loop in nx.strongly_connected_components(_digraph(places, edges))
    ]
    number = {node: index for index, loop in enumerate(loops) for node in loop}
    between: nx.DiGraph[int] = nx.DiGraph()
    between.add_nodes_from(range(len(loops)))
    between.add_edges_from(
        (number[source], number[target])
        for source, target in edges
        if number[source] != number[target]
    )

    def first_place(index: int) -> int:
        return places[loops[index][0]]

    ordered = nx.lexicographical_topological_sort(between, key=first_place)
    members = [node for index in ordered for node in loops[index]]
    return {node: rank for rank, node in enumerate(members)}
