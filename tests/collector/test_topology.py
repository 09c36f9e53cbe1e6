"""The agent graph."""

from __future__ import annotations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.collector.edges import Edge
from twinspan.collector.topology import AgentDAG, as_dag
from twinspan.instrumentation.errors import TopologyError, UnknownNode

NAMES = st.sampled_from("abcdefgh")
EDGES = st.lists(st.tuples(NAMES, NAMES), max_size=20)


def forward(edges: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The edges that go down the alphabet: never a cycle."""
    return [(source, target) for source, target in edges if source < target]


def test_nodes_and_edges_keep_the_order_in_which_they_came_up() -> None:
    dag = AgentDAG([("b", "a"), ("a", "c")], nodes=["lone", "c"])
    assert dag.nodes == ("lone", "c", "b", "a")
    assert [str(edge) for edge in dag.edges] == ["b->a", "a->c"]


def test_an_edge_that_comes_twice_is_one_edge() -> None:
    assert len(AgentDAG([("a", "b"), ("a", "b")]).edges) == 1


def test_of_two_kinds_of_one_edge_the_more_certain_is_kept() -> None:
    dag = AgentDAG([("a", "b", "conditional"), ("a", "b", "static"), ("a", "b", "observed")])
    assert dag.edges == (Edge("a", "b", "static"),)


@pytest.mark.parametrize("edge", ["ab", ("a",), ("a", "b", "static", 1)])
def test_what_is_no_edge_is_refused(edge: object) -> None:
    with pytest.raises(TopologyError, match="no edge"):
        AgentDAG([edge])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


def test_an_unknown_kind_of_edge_is_refused() -> None:
    with pytest.raises(TopologyError, match="'magic' is unknown"):
        AgentDAG([("a", "b", "magic")])  # type: ignore[list-item]  # pyright: ignore


def test_an_unknown_node_is_a_key_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UnknownNode, match="'a', 'b'") as error:
        AgentDAG([("a", "b")]).successors("c")
    assert isinstance(error.value, KeyError)
    assert error.value.node == "c"


def test_neighbours_are_named() -> None:
    dag = AgentDAG([("a", "c"), ("b", "c"), ("c", "d")])
    assert dag.predecessors("c") == ("a", "b")
    assert dag.successors("c") == ("d",)
    assert "c" in dag
    assert "z" not in dag
    assert list(dag) == ["a", "c", "b", "d"]


def test_vector_39_order_and_cycles() -> None:
    assert AgentDAG([("a", "b"), ("b", "c"), ("a", "c")]).topological_order() == ("a", "b", "c")
    loop = AgentDAG([("a", "a")])
    assert not loop.is_acyclic
    with pytest.raises(TopologyError, match="cycle"):
        loop.topological_order()


def test_the_empty_graph_is_a_graph() -> None:
    dag = AgentDAG()
    assert dag.is_acyclic
    assert dag.depth == 0
    assert dag.nodes == ()


def test_a_cycle_has_no_depth() -> None:
    assert AgentDAG([("a", "b"), ("b", "a")]).depth is None


@settings(max_examples=40)
@given(EDGES)
def test_depth_is_the_longest_path_networkx_finds(edges: list[tuple[str, str]]) -> None:
    dag = AgentDAG(forward(edges))
    longest = nx.dag_longest_path_length(nx.DiGraph(forward(edges))) if dag.edges else -1
    assert dag.depth == longest + 1


@settings(max_examples=40)
@given(EDGES, st.sets(NAMES))
def test_a_node_can_run_at_every_length_of_a_path_that_ends_in_it(
    edges: list[tuple[str, str]], meant: set[str]
) -> None:
    """Against all paths, one by one."""
    graph = nx.DiGraph(forward(edges))
    first = [node for node in graph if not graph.in_degree(node)]
    lengths = {
        len(path)
        for node in meant & set(graph)
        for start in first
        for path in ([[node]] if start == node else nx.all_simple_paths(graph, start, node))
    }
    dag = AgentDAG(forward(edges))
    assert dag.depth_of(meant.__contains__) == len(lengths)
    assert dag.depth_of(lambda node: True) == dag.depth


def test_with_a_cycle_nobody_knows_when_a_node_can_run() -> None:
    assert AgentDAG([("a", "b"), ("b", "a")]).depth_of(lambda node: True) is None


@settings(max_examples=40)
@given(EDGES)
def test_acyclic_means_what_networkx_means(edges: list[tuple[str, str]]) -> None:
    assert AgentDAG(edges).is_acyclic == nx.is_directed_acyclic_graph(nx.DiGraph(edges))


@settings(max_examples=40)
@given(EDGES)
def test_every_node_comes_after_its_predecessors(edges: list[tuple[str, str]]) -> None:
    order = AgentDAG(forward(edges)).topological_order()
    assert all(order.index(source) < order.index(target) for source, target in forward(edges))


@settings(max_examples=40)
@given(EDGES, st.randoms(use_true_random=False))
def test_the_topology_id_depends_on_the_content_alone(
    edges: list[tuple[str, str]], draw: st.DataObject
) -> None:
    shuffled = list(edges)
    draw.shuffle(shuffled)  # type: ignore[attr-defined]  # pyright: ignore
    one, other = AgentDAG(edges), AgentDAG(shuffled)
    assert one.topology_id == other.topology_id
    assert one == other
    assert hash(one) == hash(other)


def test_a_kind_a_lone_node_and_a_direction_each_change_the_topology_id() -> None:
    graphs = [
        AgentDAG([("a", "b")]),
        AgentDAG([("a", "b", "conditional")]),
        AgentDAG([("a", "b")], nodes=["c"]),
        AgentDAG([("b", "a")]),
    ]
    assert len({graph.topology_id for graph in graphs}) == 4
    assert len(graphs[0].topology_id) == 32


def test_positions_cannot_be_written_to() -> None:
    dag = AgentDAG([("a", "b")])
    with pytest.raises(ValueError, match="read-only"):
        dag.sources[0] = 1
    with pytest.raises(TypeError):
        dag.index["a"] = 7  # type: ignore[index]  # pyright: ignore


def test_a_networkx_digraph_is_read_with_its_kinds() -> None:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_node("lone")
    graph.add_edge("a", "b", kind="send")
    graph.add_edge("b", "c", kind="a colour")
    dag = AgentDAG.from_networkx(graph)
    assert dag.nodes == ("lone", "a", "b", "c")
    assert [edge.kind for edge in dag.edges] == ["send", "static"]


def test_an_undirected_graph_is_refused() -> None:
    with pytest.raises(TopologyError, match="undirected"):
        as_dag(nx.path_graph(["a", "b"]))  # pyright: ignore


def test_recorded_edge_rows_are_read() -> None:
    rows: list[dict[str, object]] = [
        {"run_id": "r", "source": "a", "target": "b", "kind": "observed"},
        {"run_id": "r", "source": "b", "target": "c", "kind": None},
    ]
    dag = AgentDAG.from_rows(rows)
    assert [str(edge) for edge in dag.edges] == ["a->b", "b->c"]
    with pytest.raises(TopologyError, match="'target'"):
        AgentDAG.from_rows([{"source": "a"}])


def test_any_readable_graph_becomes_a_dag() -> None:
    edges = [("a", "b"), ("b", "c")]
    dag = AgentDAG(edges)
    assert as_dag(dag) is dag
    assert (
        as_dag(edges)
        == as_dag(nx.DiGraph(edges))
        == AgentDAG.from_adjacency({"a": ["b"], "b": ["c"]})
    )
