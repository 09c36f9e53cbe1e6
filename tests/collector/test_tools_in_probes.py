"""Tools inside probes of real agents: blocked unless safe, and told, whoever catches the error."""

from __future__ import annotations

from typing import Any

import pytest
from biased_graph import GENDER, gate
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langgraph_programs import ToolModel
from sample_agents import Spans, instrumented

from twinspan.instrumentation import conventions as c

ASKED = {"messages": [HumanMessage("Emily wants to know. She asks about the weather.")]}


def agent(called: list[str], handles: bool) -> Any:
    """An agent in a node: model, ToolNode, model."""

    @tool
    def weather(city: str) -> str:
        """Say what the weather is like in a city."""
        called.append(city)
        return f"sunny in {city}"

    model = ToolModel()
    inner: Any = StateGraph(MessagesState)
    inner.add_node("think", lambda s: {"messages": [model.invoke(s["messages"])]})
    inner.add_node("tools", ToolNode([weather], handle_tool_errors=handles))
    inner.add_edge(START, "think")
    inner.add_conditional_edges("think", tools_condition)
    inner.add_edge("tools", "think")
    graph: Any = StateGraph(MessagesState)
    graph.add_node("helper", inner.compile())
    graph.add_edge(START, "helper")
    return graph.compile()


def ready_made(called: list[str], handles: bool) -> Any:
    """LangChain's own agent in a node."""

    @tool
    def weather(city: str) -> str:
        """Say what the weather is like in a city."""
        called.append(city)
        return f"sunny in {city}"

    graph: Any = StateGraph(MessagesState)
    graph.add_node("helper", create_agent(ToolModel(), [weather]))
    graph.add_edge(START, "helper")
    return graph.compile()


def probed(graph: Any, **options: Any) -> Spans:
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], **options}
    with instrumented(gate(spans, **settings), **settings):
        graph.invoke(ASKED)
    return spans


@pytest.mark.parametrize("handles", [False, True])
@pytest.mark.parametrize("build", [agent, ready_made])
def test_a_tool_of_an_agent_is_blocked_in_its_probes_and_told(build: Any, handles: bool) -> None:
    """Also where the agent would make a message of the error and go on."""
    called: list[str] = []
    spans = probed(build(called, handles), nodes=["helper"])
    assert called == ["Graz"]
    (found,) = spans.of("probe_set")
    assert (found[c.PROBE_OUTCOME], found[c.EFFECT_UNDEFINED]) == ("error", "side_effect_blocked")
    assert {probe[c.ERROR_TYPE] for probe in spans.of("probe")} == {"SideEffectBlocked"}


def test_a_tool_that_is_safe_runs_in_every_probe() -> None:
    """The user vouches for it."""
    called: list[str] = []
    spans = probed(agent(called, False), nodes=["helper"], safe_tools=["weather"])
    assert len(called) == 16
    assert {found[c.PROBE_OUTCOME] for found in spans.of("probe_set")} == {"ok"}


def test_a_tool_node_is_never_probed_and_tells_its_tools() -> None:
    """Whatever the globs say; the model nodes around it are."""
    spans = probed(ready_made([], False), nodes=["helper/*"])
    nodes = {n[c.NODE_ID]: n for n in spans.of("node")}
    tools = nodes["helper/tools"]
    assert (tools[c.NODE_KIND], tools[c.PROBE_DECISION]) == ("tool", "exempt")
    assert tools[c.NODE_TOOLS] == ("weather",)
    assert nodes["helper/model"][c.PROBE_DECISION] == "probed"
