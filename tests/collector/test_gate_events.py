"""`astream_events`: what nodes and models tell is shown once their superstep is decided."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import pytest
from biased_graph import GENDER, TEXT, Graph, State, gate, says
from langchain_core.language_models import FakeListChatModel
from langgraph.graph import END, START, StateGraph
from sample_agents import Spans, instrumented

from twinspan.instrumentation.errors import BiasHalt

OPTIONS: Any = {"axes": [GENDER], "nodes": ["analyst_*", "speaker"], "estimator": "category"}
Version = Literal["v1", "v2"]


def told(
    graph: Any, mode: str | None, *, version: Version = "v2", **extra: Any
) -> tuple[list[dict[str, Any]], BaseException | None]:
    """The events that an application gets, and what ended them."""
    found: list[dict[str, Any]] = []

    async def listen() -> None:
        async for event in graph.astream_events({"text": TEXT}, version=version, **extra):
            found.append(event)

    try:
        if mode is None:
            asyncio.run(listen())
        else:
            with instrumented(gate(Spans(), mode=mode, **OPTIONS), mode=mode, **OPTIONS):
                asyncio.run(listen())
    except BiasHalt as halt:
        return found, halt
    return found, None


def places(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Kinds and names, in an order that parallel nodes do not change."""
    return sorted((event["event"], event["name"]) for event in events)


@pytest.mark.filterwarnings("ignore:astream_events version")
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_without_bias_every_event_comes_as_it_would(version: Version) -> None:
    graph = Graph()
    graph.biased = False
    plain, _ = told(graph.compiled, None, version=version)
    held, halt = told(graph.compiled, "halt", version=version)
    assert halt is None
    assert places(held) == places(plain) and len(plain) > 10
    assert held[-1]["data"] == plain[-1]["data"]


@pytest.mark.filterwarnings("ignore:astream_events version")
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_a_halted_superstep_tells_nothing(version: Version) -> None:
    """The halt reaches whoever listens; what came before it was told."""
    events, halt = told(Graph().compiled, "halt", version=version)
    assert isinstance(halt, BiasHalt)
    assert "decline" not in str(events)
    names = {event["name"] for event in events}
    assert "planner" in names and not names & {"analyst_a", "analyst_b", "reviewer"}


def test_of_a_repaired_node_it_is_told_what_was_handed_on() -> None:
    events, halt = told(Graph().compiled, "repair")
    assert halt is None
    assert "decline" not in str(events)
    (ended,) = [e for e in events if (e["event"], e["name"]) == ("on_chain_end", "analyst_a")]
    assert "approve" in str(ended["data"]["output"])
    assert ("on_chain_end", "reviewer") in places(events)


def test_a_filter_that_leaves_out_the_graph_lets_nothing_slip() -> None:
    events, halt = told(Graph().compiled, "halt", include_names=["analyst_a", "planner"])
    assert isinstance(halt, BiasHalt) and "decline" not in str(events)


def test_shadow_mode_tells_at_once() -> None:
    events, halt = told(Graph().compiled, "shadow")
    assert halt is None and "decline" in str(events)


def talking(*, biased: bool) -> Any:
    """A node that hands on what its chat model says, word by word."""

    async def speak(state: Any) -> State:
        declines = biased and says(state["text"], "she")
        model = FakeListChatModel(responses=["so decline her" if declines else "so approve her"])
        return {"a": str((await model.ainvoke(state["text"])).content)}

    graph: Any = StateGraph(State)
    graph.add_node("speaker", speak)
    graph.add_edge(START, "speaker")
    graph.add_node("reviewer", lambda s: {"verdict": s["a"]})
    graph.add_edge("speaker", "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="talk")


def test_no_token_of_a_halted_model_is_told() -> None:
    events, halt = told(talking(biased=True), "halt")
    assert isinstance(halt, BiasHalt)
    assert not [event for event in events if event["event"].startswith("on_chat_model")]


def test_tokens_of_a_model_that_was_let_pass_are_told() -> None:
    events, _ = told(talking(biased=False), "halt")
    assert [event for event in events if event["event"] == "on_chat_model_stream"]


def test_whoever_stops_listening_stops_the_run() -> None:
    """Nothing stays open."""
    graph = Graph()

    async def listen() -> None:
        events = graph.compiled.astream_events({"text": TEXT}, version="v2")
        async for event in events:
            if event["name"] == "planner":
                break
        await events.aclose()

    spans = Spans()
    with instrumented(gate(spans, mode="halt", **OPTIONS), mode="halt", **OPTIONS):
        asyncio.run(listen())
    assert [run["twinspan.run.outcome"] for run in spans.of("run")] in (["cancelled"], [])
