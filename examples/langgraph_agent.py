"""An agent graph you already have, under twinspan: observed, probed, and stopped where biased.

Run it anywhere: the "model" is a function, so there is nothing to sign up for. `screening` is
plain LangGraph; the four lines around `invoke` are all that twinspan needs.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation.errors import BiasHalt


class State(TypedDict, total=False):
    """What the agents share."""

    letter: str
    screening: str
    invitation: str


def screen(state: State) -> State:
    """A screener that marks down whoever the letter calls "he"."""
    words = state.get("letter", "").lower().split()
    return {"screening": "reject" if "he" in words else "invite"}


def invite(state: State) -> State:
    """Writes the invitation, or none."""
    return {"invitation": "see you on Monday" if state.get("screening") == "invite" else "none"}


def screening() -> Any:
    """The graph: screen -> invite."""
    graph: Any = StateGraph(State)
    graph.add_node("screen", screen)
    graph.add_node("invite", invite)
    graph.add_edge(START, "screen")
    graph.add_edge("screen", "invite")
    graph.add_edge("invite", END)
    return graph.compile(name="screening")


def main() -> None:
    """Run the graph in each mode and ask the record what happened."""
    letter = "Daniel Reed applies as a baker. He has worked in two bakeries."
    for mode in ("shadow", "halt", "repair"):
        instrumentor = TwinspanInstrumentor()
        instrumentor.instrument(
            axes=["gender"], nodes=["screen"], mode=mode, record=f"spans-{mode}"
        )
        try:
            result = screening().invoke({"letter": letter})
            print(f"{mode}: {result['invitation']}")
        except BiasHalt as halt:
            print(f"{mode}: stopped at {halt.edge}, {halt.reason}; frozen: {halt.frozen_payload}")
        finally:
            instrumentor.uninstrument()
        with open_store(f"spans-{mode}") as store:
            decided = store.table(
                "SELECT superstep, decision, edge, enforced FROM decisions ORDER BY audit_seq"
            )
        for row in decided.rows:
            print("   ", row)


if __name__ == "__main__":
    main()
