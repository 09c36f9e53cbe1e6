"""Dependency weights, with the numbers that were published for them."""

from __future__ import annotations

import json
import math

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.collector.topology import AgentDAG
from twinspan.collector.weights import dependency_weights
from twinspan.instrumentation.errors import ConfigurationError, TopologyError, UnknownNode

CHAIN = [("a", "b"), ("b", "c")]
FORK = [("root", "x"), ("root", "y")]
HUB = [("root", "hub"), *(("hub", f"w{i}") for i in range(1, 5))]

VECTORS = [
    (CHAIN, {}, {"a": 0.4117647059, "b": 0.3529411765, "c": 0.2352941176}),
    (CHAIN, {"attenuation": 5}, {"a": 0.8157894737, "b": 0.1578947368, "c": 0.0263157895}),
    (
        [("router", f"w{i}") for i in range(1, 4)],
        {},
        {"router": 0.4545454545, "w1": 0.1818181818, "w3": 0.1818181818},
    ),
    (HUB, {}, {"root": 0.2631578947, "hub": 0.3157894737, "w1": 0.1052631579}),
    (
        [("router", "worker"), ("router", "judge"), ("worker", "judge")],
        {},
        {"router": 0.4736842105, "worker": 0.3157894737, "judge": 0.2105263158},
    ),
    (
        [("hub", "a"), ("hub", "b"), ("a", "c")],
        {"method": "out_degree"},
        {"hub": 0.4285714286, "a": 0.2857142857, "b": 0.1428571429, "c": 0.1428571429},
    ),
    (FORK, {"prior": {"x": 3, "y": 1}}, {"root": 1 / 3, "x": 0.5, "y": 1 / 6}),
    (FORK, {"prior": {"x": 2}}, {"root": 0.4, "x": 0.4, "y": 0.2}),
    ([("a", "a"), ("a", "b")], {"attenuation": 0.9}, {"a": 0.75, "b": 0.25}),
    ([("a", "b"), ("b", "c"), ("c", "a")], {"attenuation": 0.9}, {"a": 1 / 3, "b": 1 / 3}),
    ([("a", "b"), ("b", "c"), ("c", "a")], {"attenuation": 0.1}, {"a": 1 / 3, "b": 1 / 3}),
]


@pytest.mark.parametrize(("edges", "options", "expected"), VECTORS)
def test_vectors_30_to_37(
    edges: list[tuple[str, str]], options: dict[str, object], expected: dict[str, float]
) -> None:
    weights = dependency_weights(edges, **options)  # type: ignore[arg-type]  # pyright: ignore
    assert {node: weights[node] for node in expected} == pytest.approx(expected, abs=1e-10)
    assert math.fsum(weights.values()) == pytest.approx(1.0, abs=1e-12)


def test_vector_37_the_clamp_is_reported_with_its_nodes() -> None:
    weights = dependency_weights([("a", "a"), ("a", "b")], attenuation=0.9)
    (component,) = weights.clamped
    assert component.nodes == ("a",)
    assert component.attenuation == 0.5
    assert weights.attenuation == 0.9
    assert not weights.acyclic
    gentle = dependency_weights([("a", "b"), ("b", "c"), ("c", "a")], attenuation=0.1)
    assert gentle.clamped == ()


def test_vector_38_small_graphs_and_wrong_use() -> None:
    assert len(dependency_weights([])) == 0
    assert dependency_weights(AgentDAG(nodes=["only"])) == {"only": 1.0}
    assert len(dependency_weights([("a", "b"), ("a", "b")])) == 2
    with pytest.raises(KeyError):
        dependency_weights(CHAIN)["z"]
    with pytest.raises(ConfigurationError, match="'pagerank' is unknown"):
        dependency_weights(CHAIN, method="pagerank")  # type: ignore[arg-type]  # pyright: ignore


def test_an_agent_dag_a_digraph_and_an_edge_list_weigh_the_same() -> None:
    expected = dict(dependency_weights(HUB))
    assert dependency_weights(AgentDAG(HUB)) == expected
    assert dependency_weights(nx.DiGraph(HUB)) == expected


def test_the_largest_scaled_weight_is_1_and_the_ratios_are_the_same() -> None:
    weights = dependency_weights(HUB)
    assert max(weights.scaled.values()) == 1.0
    for node, share in weights.items():
        assert weights.scaled[node] == pytest.approx(share / weights["hub"])


def test_betweenness_counts_shortest_paths_that_pass() -> None:
    """In a -> b -> c one path passes b: 1 + 0, 1 + 1, 1 + 0 of 4."""
    assert dependency_weights(CHAIN, method="betweenness") == {"a": 0.25, "b": 0.5, "c": 0.25}


def test_a_prior_is_checked_key_by_key() -> None:
    with pytest.raises(UnknownNode, match="'z'"):
        dependency_weights(FORK, prior={"z": 1.0})
    for factor in (-1.0, math.nan, math.inf):
        with pytest.raises(ConfigurationError, match="prior of 'x'"):
            dependency_weights(FORK, prior={"x": factor})
    with pytest.raises(ConfigurationError, match="zero for every node"):
        dependency_weights(FORK, prior=dict.fromkeys(("root", "x", "y"), 0.0))


def test_a_prior_of_zero_takes_a_node_out() -> None:
    weights = dependency_weights(FORK, prior={"root": 0.0})
    assert weights == {"root": 0.0, "x": 0.5, "y": 0.5}
    assert weights.prior_applied


def test_e19_weights_that_overflow_are_still_weights_and_say_how_far_apart() -> None:
    edges = [
        (f"{level}.{one}", f"{level + 1}.{other}")
        for level in range(379)
        for one in range(16)
        for other in range(16)
    ]
    weights = dependency_weights(edges)
    assert math.fsum(weights.values()) == pytest.approx(1.0)
    assert weights["0.0"] == pytest.approx(weights["1.0"] * 8)
    assert weights["0.0"] > 0.05  # uniform would be 0.00016
    assert weights.decades == pytest.approx(379 * math.log10(8), abs=0.2)


def test_e19_a_negative_attenuation_is_refused() -> None:
    with pytest.raises(TopologyError):
        dependency_weights(CHAIN, attenuation=-3)


def test_weights_cannot_be_changed() -> None:
    weights = dependency_weights(CHAIN)
    with pytest.raises(TypeError):
        weights["a"] = 1.0  # type: ignore[index]  # pyright: ignore
    with pytest.raises(TypeError):
        weights.scaled["a"] = 2.0  # type: ignore[index]  # pyright: ignore


def test_weights_go_to_json_as_a_plain_mapping() -> None:
    assert json.loads(json.dumps(dict(dependency_weights(FORK))))["root"] == pytest.approx(0.5)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("abcdef")), max_size=15))
def test_a_node_never_weighs_less_than_the_leaves_it_reaches(edges: list[tuple[str, str]]) -> None:
    forward = [(source, target) for source, target in edges if source < target]
    weights = dependency_weights(forward)
    for source, _ in forward:
        assert weights[source] > min(weights.values())
