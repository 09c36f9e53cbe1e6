"""Katz blast radius, against a dense solve and networkx."""

from __future__ import annotations

import math

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.sparse import csr_array

from twinspan.collector.katz import blast_radius, katz_weight
from twinspan.collector.spectral import spectral_radius
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation.errors import TopologyError, UnknownNode

NAMES = st.sampled_from("abcdefghij")
EDGES = st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=30)
CHAIN = [("a", "b"), ("b", "c")]


def adjacency(dag: AgentDAG) -> NDArray[np.float64]:
    matrix = np.zeros((len(dag), len(dag)))
    matrix[dag.sources, dag.targets] = 1.0
    return matrix


def dense(dag: AgentDAG, factors: NDArray[np.float64]) -> NDArray[np.float64]:
    """k = 1 + diag(factors) A k, solved densely."""
    system = np.eye(len(dag)) - factors[:, None] * adjacency(dag)
    return np.asarray(np.linalg.solve(system, np.ones(len(dag))), dtype=np.float64)


def values(dag: AgentDAG, attenuation: float) -> NDArray[np.float64]:
    return np.exp(blast_radius(dag, attenuation).log_values)


def layered(layers: int, width: int) -> AgentDAG:
    """Every agent of a layer feeds every agent of the next."""
    return AgentDAG(
        (f"{level}.{one}", f"{level + 1}.{other}")
        for level in range(layers - 1)
        for one in range(width)
        for other in range(width)
    )


def test_vector_30_katz_of_a_chain() -> None:
    assert [katz_weight(CHAIN, node, attenuation=0.5) for node in "abc"] == [1.75, 1.5, 1.0]


def test_the_blast_radius_looks_downstream() -> None:
    """The usual definition would make the leaf the most important node."""
    assert katz_weight(CHAIN, "a") > katz_weight(CHAIN, "c")


def test_an_unknown_node_is_refused() -> None:
    with pytest.raises(UnknownNode):
        katz_weight(CHAIN, "z")


@given(EDGES, st.floats(0.05, 3.0))
@settings(deadline=None, max_examples=50)
def test_without_cycles_it_equals_a_dense_solve_at_any_attenuation(
    edges: list[tuple[str, str]], attenuation: float
) -> None:
    dag = AgentDAG([(s, t) for s, t in edges if s < t])
    expected = dense(dag, np.full(len(dag), attenuation))
    np.testing.assert_allclose(values(dag, attenuation), expected, rtol=1e-10)


@given(EDGES)
@settings(deadline=None, max_examples=40)
def test_without_cycles_it_equals_networkx_on_the_reversed_graph(
    edges: list[tuple[str, str]],
) -> None:
    dag = AgentDAG([(s, t) for s, t in edges if s < t], nodes=["y", "z"])  # networkx needs two
    graph: nx.DiGraph[str] = nx.DiGraph([(t, s) for s, t, _ in dag.edges])
    graph.add_nodes_from(dag.nodes)
    oracle = nx.katz_centrality_numpy(graph, alpha=0.5, beta=1.0, normalized=False)
    np.testing.assert_allclose(values(dag, 0.5), [oracle[node] for node in dag.nodes], rtol=1e-9)


@given(EDGES)
@settings(deadline=None, max_examples=50)
def test_with_cycles_it_equals_a_dense_solve_with_the_reported_factors(
    edges: list[tuple[str, str]],
) -> None:
    dag = AgentDAG(edges)
    radius = blast_radius(dag, 0.5)
    factors = np.full(len(dag), 0.5)
    for component in radius.clamped:
        for node in component.nodes:
            factors[dag.position(node)] = component.attenuation
    np.testing.assert_allclose(np.exp(radius.log_values), dense(dag, factors), rtol=1e-9)


@given(EDGES)
@settings(deadline=None, max_examples=50)
def test_a_piece_is_clamped_exactly_when_its_gain_would_exceed_a_half(
    edges: list[tuple[str, str]],
) -> None:
    dag = AgentDAG(edges)
    clamped = {frozenset(c.nodes): c for c in blast_radius(dag, 0.5).clamped}
    graph: nx.DiGraph[str] = nx.DiGraph(edges)
    for piece in nx.strongly_connected_components(graph):
        matrix = nx.to_numpy_array(graph.subgraph(piece))
        largest = float(np.abs(np.linalg.eigvals(matrix)).max())
        found = clamped.get(frozenset(piece))
        assert (found is not None) == (0.5 * largest > 0.5 + 1e-7)
        if found is not None:
            assert found.spectral_radius == pytest.approx(largest, rel=1e-8)
            assert found.attenuation == pytest.approx(0.5 / largest, rel=1e-8)


def test_e19_one_back_edge_leaves_the_rest_of_the_graph_alone() -> None:
    """A loop between two agents of five hundred changes only what feeds into it."""
    forward = [(f"n{i}", f"n{i + 1}") for i in range(499)]
    plain = AgentDAG(forward)
    looped = AgentDAG([*forward, ("n400", "n398"), ("n400", "n399"), ("n399", "n398")])
    before, after = blast_radius(plain), blast_radius(looped)
    assert after.clamped[0].nodes == ("n398", "n399", "n400")
    assert after.clamped[0].attenuation < 0.5
    np.testing.assert_allclose(before.log_values[401:], after.log_values[401:], rtol=1e-13)
    assert math.exp(after.log_values[0]) == pytest.approx(2.0)


def test_e19_a_loop_that_needs_no_clamp_reports_none() -> None:
    radius = blast_radius(AgentDAG([("a", "b"), ("b", "a")]), 0.5)
    assert radius.clamped == ()
    assert not radius.acyclic


def test_e19_values_beyond_a_float_keep_their_ratios() -> None:
    """380 dense layers of 16: neighbouring layers differ 8-fold, and 8**380 is no float."""
    dag = layered(380, 16)
    logs = blast_radius(dag, 0.5).log_values
    exact = 1
    for _ in range(379):  # 2**n k stays an integer: exact arithmetic as the oracle
        exact = 8 * exact + 1
    first, second = logs[dag.position("0.0")], logs[dag.position("1.0")]
    assert first == pytest.approx(math.log(exact), rel=1e-12)
    assert first - second == pytest.approx(math.log(8), rel=1e-9)
    with pytest.raises(TopologyError, match="more than a float holds"):
        katz_weight(dag, "0.0")


def test_the_log_space_and_the_plain_pass_agree() -> None:
    dag = layered(30, 4)
    with_loop = AgentDAG([*dag.edges, ("lone", "lone")])
    np.testing.assert_allclose(
        blast_radius(with_loop, 0.5).log_values[:-1], blast_radius(dag, 0.5).log_values, rtol=1e-13
    )


@pytest.mark.parametrize("attenuation", [0.0, -3.0, math.nan, math.inf])
def test_e19_an_attenuation_without_meaning_is_refused(attenuation: float) -> None:
    with pytest.raises(TopologyError, match="must be positive"):
        blast_radius(AgentDAG(CHAIN), attenuation)


def test_an_attenuation_of_1_or_more_needs_a_graph_without_cycles() -> None:
    assert katz_weight(CHAIN, "a", attenuation=5.0) == 31.0
    with pytest.raises(TopologyError, match="without cycles"):
        blast_radius(AgentDAG([("a", "b"), ("b", "a")]), 1.0)


@pytest.mark.parametrize("length", [2, 3, 50, 3_000])
def test_the_spectral_radius_of_a_ring_is_1(length: int) -> None:
    ring = csr_array(np.roll(np.eye(length), 1, axis=1))
    assert spectral_radius(ring) == pytest.approx(1.0, rel=1e-10)


def test_the_spectral_radius_of_a_long_loop_with_a_shortcut_is_found() -> None:
    """Power steps alone would take thousands of times as long; the root of a polynomial checks."""
    length = 200
    matrix = np.roll(np.eye(length), 1, axis=1)
    matrix[0, 0] = 0.01
    matrix[0, length // 2] = 1.0
    expected = float(np.abs(np.linalg.eigvals(matrix)).max())
    assert spectral_radius(csr_array(matrix)) == pytest.approx(expected, rel=1e-8)


@given(st.integers(2, 8), st.randoms(use_true_random=False))
@settings(deadline=None, max_examples=50)
def test_the_spectral_radius_equals_the_largest_eigenvalue(size: int, draw: st.DataObject) -> None:
    chance = draw.random  # type: ignore[attr-defined]  # pyright: ignore
    matrix = np.array([[float(chance() < 0.4) for _ in range(size)] for _ in range(size)])
    matrix[np.arange(size), (np.arange(size) + 1) % size] = 1.0  # strongly connected
    expected = float(np.abs(np.linalg.eigvals(matrix)).max())
    assert spectral_radius(csr_array(matrix)) == pytest.approx(expected, rel=1e-8)
