"""Breaker nodes in a LangGraph graph: a frozen payload waits for a person, and goes on.

`guard` puts a breaker behind the analyst. The analyst cannot be repaired here, so a person is
asked by LangGraph's own `interrupt`; their answer takes the place of the frozen payload.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command

from twinspan.collector.langgraph import guard
from twinspan.instrumentation import TwinspanInstrumentor


class State(TypedDict, total=False):
    """What the agents share."""

    application: str
    advice: str
    letter: str


def analyst(state: State) -> State:
    """Advises against women, and cannot work without knowing."""
    words = state.get("application", "").lower().split()
    if "she" not in words and "he" not in words:
        raise ValueError("who applies?")
    return {"advice": "decline" if "she" in words else "approve"}


def writer(state: State) -> State:
    """Writes what was advised."""
    return {"letter": f"We {state.get('advice')}."}


def main() -> None:
    """Run into the breaker, ask, go on."""
    graph: Any = StateGraph(State)
    graph.add_node("analyst", analyst)
    graph.add_node("writer", writer)
    graph.add_edge(START, "analyst")
    graph.add_edge("analyst", "writer")
    guarded = guard(graph, ["analyst"]).compile(checkpointer=InMemorySaver())

    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(axes=["gender"], nodes=["analyst"], mode="repair")
    thread: Any = {"configurable": {"thread_id": "1"}}
    stopped = guarded.invoke({"application": "Emily Brown applies. Now she waits."}, thread)
    question = stopped["__interrupt__"][0].value
    print(f"frozen behind {question['node']}: {question['frozen']}")
    print(f"repairs tried: {[tried['outcome'] for tried in question['tried']]}")
    answer = {"payload": {"advice": "approve"}, "by": "Kim"}
    print(guarded.invoke(Command(resume=answer), thread)["letter"])
    instrumentor.uninstrument()


if __name__ == "__main__":
    main()
