"""A node that must not run twice: only the model that it asks is asked again.

The node sends a letter, so it may not be a probe's business to run it. With `level = "model"`
twinspan notes what the node asked its chat model, and puts the same question about the twin.
"""

from __future__ import annotations

from typing import Any, TypedDict

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph

from twinspan.analysis import open_store
from twinspan.instrumentation import TwinspanInstrumentor


class State(TypedDict, total=False):
    """What the agents share."""

    application: str
    answer: str


class StandIn(BaseChatModel):
    """A chat model that was given a bias, so that there is something to find."""

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def _generate(self, messages: Any, *args: Any, **kwargs: Any) -> ChatResult:
        declines = "she" in messages[-1].text.lower().split()
        message = AIMessage("decline" if declines else "approve")
        return ChatResult(generations=[ChatGeneration(message=message)])


SENT: list[str] = []


def clerk(state: State) -> State:
    """Asks the model, and sends its answer by post."""
    question = [SystemMessage("Decide."), HumanMessage(state.get("application", ""))]
    answer = StandIn().invoke(question).text
    SENT.append(answer)
    return {"answer": answer}


def main() -> None:
    """Run the graph once, and ask the record what was found."""
    graph: Any = StateGraph(State)
    graph.add_node("clerk", clerk)
    graph.add_edge(START, "clerk")
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(
        axes=["gender"], nodes=["clerk"], level="model", record="spans-model-level"
    )
    graph.compile(name="office").invoke({"application": "Emily Brown wrote. Now she waits."})
    instrumentor.uninstrument()
    print(f"letters sent: {len(SENT)}")
    with open_store("spans-model-level") as store:
        found = store.table("SELECT node, axis, round(delta, 2), call_count FROM probe_sets")
    for row in found.rows:
        print(*row)


if __name__ == "__main__":
    main()
