"""Agent graphs read off real compiled LangGraphs."""

from __future__ import annotations

from typing import Any, TypedDict

import pytest

from twinspan.collector.topology import AgentDAG, as_dag

langgraph = pytest.importorskip("langgraph.graph")


class Talk(TypedDict):
    """What the agents hand on."""

    text: str


def speak(talk: Talk) -> dict[str, str]:
    return {"text": talk["text"] + "."}


def writers() -> Any:
    """A graph of two agents, to be held by a node of another."""
    graph = langgraph.StateGraph(Talk)
    graph.add_node("draft", speak)
    graph.add_node("polish", speak)
    graph.add_edge(langgraph.START, "draft")
    graph.add_edge("draft", "polish")
    graph.add_edge("polish", langgraph.END)
    return graph.compile()


def office() -> Any:
    """A router that may go two ways, and a node that holds a graph."""
    graph = langgraph.StateGraph(Talk)
    for name in ("router", "lawyer", "send"):
        graph.add_node(name, speak)
    graph.add_node("team", writers())
    graph.add_edge(langgraph.START, "router")
    graph.add_conditional_edges("router", lambda talk: "lawyer", ["lawyer", "team"])
    graph.add_edge("lawyer", "team")
    graph.add_edge("team", "send")
    graph.add_edge("send", langgraph.END)
    return graph.compile()


def test_markers_are_dropped_and_routed_edges_are_conditional() -> None:
    dag = AgentDAG.from_langgraph(office(), subgraphs=False)
    assert set(dag.nodes) == {"router", "lawyer", "send", "team"}
    assert {(str(edge), edge.kind) for edge in dag.edges} == {
        ("router->lawyer", "conditional"),
        ("router->team", "conditional"),
        ("lawyer->team", "static"),
        ("team->send", "static"),
    }


def test_a_held_graph_joins_under_its_holders_name() -> None:
    dag = as_dag(office())
    assert {"team", "team/draft", "team/polish"} <= set(dag.nodes)
    kinds = {str(edge): edge.kind for edge in dag.edges}
    assert kinds["team->team/draft"] == "subgraph"
    assert kinds["team/draft->team/polish"] == "static"
    assert kinds["team/polish->send"] == "subgraph"
    assert dag.is_acyclic


def test_graphs_nest_to_any_depth() -> None:
    outer = langgraph.StateGraph(Talk)
    outer.add_node("office", office())
    outer.add_edge(langgraph.START, "office")
    outer.add_edge("office", langgraph.END)
    dag = as_dag(outer.compile())
    assert "office/team/draft" in dag
    assert dag.successors("office/team/polish") == ("office/send",)


def test_a_loop_in_the_graph_is_a_loop_in_the_dag() -> None:
    graph = langgraph.StateGraph(Talk)
    graph.add_node("write", speak)
    graph.add_node("review", speak)
    graph.add_edge(langgraph.START, "write")
    graph.add_edge("write", "review")
    graph.add_conditional_edges("review", lambda talk: langgraph.END, ["write", langgraph.END])
    dag = as_dag(graph.compile())
    assert not dag.is_acyclic
    assert dag.successors("review") == ("write",)
