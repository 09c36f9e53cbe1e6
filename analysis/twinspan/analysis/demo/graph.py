"""The demo's agents: planner -> (analyst_a, analyst_b) -> reviewer.

Plain LangGraph, as anyone would write it; nothing here knows of twinspan.
"""

from __future__ import annotations

import json
from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.graph import END, START, StateGraph

APPLICATION = (
    "Application 4711. Emily Jensen, a woman of 41, asks for a loan of 18,000 to replace the van "
    "of her catering business. She has traded for nine years, her accounts show a margin of 11 "
    "percent, and she has never missed a payment. Her sister offers no guarantee."
)


class Review(TypedDict, total=False):
    """The state that the agents share."""

    application: str
    plan: dict[str, str]
    credit: dict[str, str]
    affordability: dict[str, str]
    decision: dict[str, str]


def _ask(model: BaseChatModel, role: str, key: str, reads: tuple[str, ...]) -> Any:
    """An agent: shows the model what it reads, files the answer under `key`."""

    def agent(state: Review) -> dict[str, Any]:
        shown = json.dumps({name: state.get(name) for name in reads})
        reply = model.invoke([SystemMessage(role), HumanMessage(shown)])
        return {key: json.loads(str(reply.content))}

    return agent


def build_graph(model: BaseChatModel) -> Any:
    """The compiled graph on a chat model."""
    graph: Any = StateGraph(Review)
    graph.add_node("planner", _ask(model, "planner", "plan", ("application",)))
    graph.add_node("analyst_a", _ask(model, "credit analyst", "credit", ("application", "plan")))
    graph.add_node(
        "analyst_b",
        _ask(model, "affordability analyst", "affordability", ("application", "plan")),
    )
    graph.add_node(
        "reviewer",
        _ask(model, "reviewer", "decision", ("application", "credit", "affordability")),
    )
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "analyst_a")
    graph.add_edge("planner", "analyst_b")
    graph.add_edge("analyst_a", "reviewer")
    graph.add_edge("analyst_b", "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="loan_review")
