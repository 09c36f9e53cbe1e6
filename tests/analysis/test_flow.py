"""The order of a graph, and the way on which the most impact lies."""

from __future__ import annotations

from itertools import pairwise

import networkx as nx
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.analysis.flow import Flow, flow_of, heaviest_path

NODES = "abcdefg"

edge_lists = st.lists(
    st.tuples(st.sampled_from(NODES), st.sampled_from(NODES)), unique=True, max_size=14
)
impact_maps = st.dictionaries(st.sampled_from(NODES), st.floats(-1, 1))


@settings(max_examples=60, deadline=None)
@given(edge_lists)
def test_every_edge_goes_on_or_closes_a_loop(edges: list[tuple[str, str]]) -> None:
    """Forward edges go to later layers only; every node is in exactly one."""
    flow = flow_of(NODES, edges)
    assert sorted(flow.order) == sorted(NODES)
    assert sorted([*flow.forward, *flow.back]) == sorted(edges)
    layer = {node: place for place, layer in enumerate(flow.layers) for node in layer}
    assert all(layer[source] < layer[target] for source, target in flow.forward)


@settings(max_examples=60, deadline=None)
@given(edge_lists)
def test_only_edges_within_a_loop_are_set_aside(edges: list[tuple[str, str]]) -> None:
    """An edge that goes back has a way from its end to its beginning."""
    graph = nx.DiGraph(edges)
    assert all(nx.has_path(graph, target, source) for source, target in flow_of(NODES, edges).back)


def _heaviest_of_all(flow: Flow, end: str, impacts: dict[str, float]) -> float:
    """From every way there is."""
    graph = nx.DiGraph(flow.forward)
    graph.add_nodes_from(NODES)
    sources = [node for node, degree in graph.in_degree() if degree == 0]
    ways = [
        way
        for source in sources
        for way in ([[end]] if source == end else nx.all_simple_paths(graph, source, end))
    ]
    return max(sum(max(0.0, impacts.get(node, 0.0)) for node in way) for way in ways)


@settings(max_examples=60, deadline=None)
@given(edge_lists, st.sampled_from(NODES), impact_maps)
def test_the_heaviest_way_is_the_heaviest_of_all(
    edges: list[tuple[str, str]], end: str, impacts: dict[str, float]
) -> None:
    """It starts at a source, every step is an edge, and no other way carries more."""
    flow = flow_of(NODES, edges)
    way = heaviest_path(flow, end, impacts)
    assert way[-1] == end
    assert all(pair in flow.forward for pair in pairwise(way))
    assert way[0] not in {target for _, target in flow.forward}
    carried = sum(max(0.0, impacts.get(node, 0.0)) for node in way)
    assert abs(carried - _heaviest_of_all(flow, end, impacts)) < 1e-9
