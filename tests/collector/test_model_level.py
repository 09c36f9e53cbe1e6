"""Probing at the level of models: a node that must not run twice is asked about all the same."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, State, gate, says
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, StateGraph
from sample_agents import Spans, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt


class Clerk(BaseChatModel):
    """Declines women, or nobody."""

    fair: bool = False

    @property
    def _llm_type(self) -> str:
        return "stand-in"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self.bind(tools=[each.name for each in tools])

    def _generate(self, messages: Any, stop: Any = None, *args: Any, **kwargs: Any) -> ChatResult:
        declines = not self.fair and says(messages[-1].text, "she")
        if kwargs.get("tools"):
            queue = "long" if declines else "short"
            call = {"name": kwargs["tools"][0], "args": {"queue": queue}, "id": "1"}
            answer = AIMessage("", tool_calls=[call])
        else:
            answer = AIMessage("decline" if declines else "approve")
        return ChatResult(generations=[ChatGeneration(message=answer)])


def graph(model: Any, ran: list[str], way: str) -> Any:
    """A node that writes a letter, which must happen once, after it asked the model twice."""
    asked = [SystemMessage("You decide.")]

    def decide(state: Any) -> State:
        ran.append("letter")
        first = model.invoke([*asked, HumanMessage(state["text"])])
        second = model.invoke([*asked, HumanMessage("Say that again.")])
        return {"a": first.text, "b": second.text}

    async def adecide(state: Any) -> State:
        ran.append("letter")
        first = await model.ainvoke([*asked, HumanMessage(state["text"])])
        second = await model.ainvoke([*asked, HumanMessage("Say that again.")])
        return {"a": first.text, "b": second.text}

    made: Any = StateGraph(State)
    made.add_node("decide", decide if way == "invoke" else adecide)
    made.add_node("reader", lambda s: {"verdict": s["a"]})
    made.add_edge(START, "decide")
    made.add_edge("decide", "reader")
    return made.compile()


def probed(compiled: Any, way: str = "invoke", **options: Any) -> Spans:
    spans = Spans()
    settings: dict[str, Any] = {
        "axes": [GENDER],
        "nodes": ["decide"],
        "level": "model",
        **options,
    }
    with instrumented(gate(spans, **settings), **settings):
        if way == "invoke":
            compiled.invoke({"text": TEXT})
        else:
            asyncio.run(compiled.ainvoke({"text": TEXT}))
    return spans


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_models_are_asked_again_and_the_node_is_not_run(way: str) -> None:
    """Each call is a probe set of its own; one that does not have the axis is no_op."""
    ran: list[str] = []
    spans = probed(graph(Clerk(), ran, way), way)
    assert ran == ["letter"]
    first, second = sorted(spans.of("probe_set"), key=lambda each: each[c.PROBE_CALL])
    assert (first[c.PROBE_LEVEL], first[c.PROBE_CALL], first[c.EFFECT_VALUE]) == ("model", 1, 1.0)
    assert (second[c.PROBE_CALL], second[c.PROBE_OUTCOME]) == (2, "no_op")
    assert len(spans.of("probe")) == first[c.PROBE_CALL_COUNT] == 15


def test_a_fair_model_is_clear() -> None:
    """The same probes, no effect."""
    found = probed(graph(Clerk(fair=True), [], "invoke")).of("probe_set")
    assert [each[c.EFFECT_VALUE] for each in found if each[c.PROBE_CALL] == 1] == [0.0]


def test_the_gate_halts_on_what_models_were_asked() -> None:
    """The edge is the node's; the reader sees nothing."""
    with pytest.raises(BiasHalt) as halted:
        probed(graph(Clerk(), [], "invoke"), mode="halt")
    assert halted.value.edge == "decide->reader"


def test_a_node_that_must_not_run_again_is_not_repaired_by_running_it() -> None:
    """It runs once; the run is halted where repairing would mean to run it."""
    ran: list[str] = []
    with pytest.raises(BiasHalt):
        probed(graph(Clerk(), ran, "invoke"), mode="repair")
    assert ran == ["letter"]


def test_the_tools_that_a_model_wants_called_are_its_answer() -> None:
    """They are compared, and none of them runs."""
    called: list[str] = []

    @tool
    def enqueue(queue: str) -> str:
        """Put the case into a queue."""
        called.append(queue)
        return queue

    model = Clerk().bind_tools([enqueue])

    def decide(state: Any) -> State:
        answer = model.invoke(state["text"])
        return {"a": enqueue.invoke(answer.tool_calls[0]["args"])}

    made: Any = StateGraph(State)
    made.add_node("decide", decide)
    made.add_edge(START, "decide")
    (found,) = probed(made.compile()).of("probe_set")
    assert called == ["long"]
    assert found[c.EFFECT_VALUE] > 0.3


def test_a_node_without_a_model_is_told_to_be_unprobed() -> None:
    """Coverage is not overstated."""
    made: Any = StateGraph(State)
    made.add_node("decide", lambda s: {"a": "approve"})
    made.add_edge(START, "decide")
    (found,) = probed(made.compile()).of("probe_set")
    assert (found[c.PROBE_OUTCOME], found[c.EFFECT_UNDEFINED]) == ("no_op", "no_model_call")
