"""The demo's graph with a real model in it: planner -> (analyst_a, analyst_b) -> reviewer.

Plain LangGraph; nothing here knows of twinspan.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Required, TypedDict, cast

from langgraph.graph import END, START, StateGraph

from studies.desks import FAIR, SEEDED, Desk, Speaker

SEEDED_NODE = "analyst_a"


class Review(TypedDict, total=False):
    """The state that the agents share."""

    application: Required[str]
    focus: str
    credit: Required[str]
    risk: Required[str]
    outcome: str


def office(speaker: Speaker, *, seeded: bool = False) -> Any:
    """The compiled graph.

    Args:
        speaker: the model.
        seeded: whether the credit desk has the biased record.
    """
    desks = {**FAIR, SEEDED_NODE: SEEDED} if seeded else FAIR
    graph: Any = StateGraph(Review)
    graph.add_node("planner", _agent(speaker, desks["planner"], "focus", _application))
    graph.add_node("analyst_a", _agent(speaker, desks["analyst_a"], "credit", _application))
    graph.add_node("analyst_b", _agent(speaker, desks["analyst_b"], "risk", _application))
    graph.add_node("reviewer", _agent(speaker, desks["reviewer"], "outcome", _file))
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "analyst_a")
    graph.add_edge("planner", "analyst_b")
    graph.add_edge("analyst_a", "reviewer")
    graph.add_edge("analyst_b", "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="loan_office")


def _agent(
    speaker: Speaker, desk: Desk, key: str, reads: Callable[[Review], str]
) -> Callable[[Review], Review]:
    def agent(state: Review) -> Review:
        return cast(Review, {key: speaker.say(desk, reads(state))})

    return agent


def _application(state: Review) -> str:
    return state["application"]


def _file(state: Review) -> str:
    return f"{state['application']} was {state['credit']}, is rated {state['risk']} and"
