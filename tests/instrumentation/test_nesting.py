"""Frameworks inside of each other: one run, one trace, qualified names."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

import sample_agents as agents
from biased_graph import GENDER, TEXT, gate, says
from sample_agents import Spans, SpansOnly, instrumented

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation import node, pipeline
from twinspan.instrumentation.errors import BiasHalt


@node
def helper(x: str) -> str:
    return x


def graph_with_a_plain_node() -> Any:
    """A LangGraph node that calls a plain one."""
    from langgraph.graph import END, START, StateGraph

    graph: Any = StateGraph(agents.State)
    graph.add_node("outer", lambda state: {"plan": helper("x")})
    graph.add_edge(START, "outer")
    graph.add_edge("outer", END)
    return graph.compile(name="outside")


@node
def asks_a_graph(text: str) -> str:
    return str(agents.parallel().invoke({"text": text})["verdict"])


@pipeline
def with_a_graph(text: str) -> str:
    return asks_a_graph(text)


@pipeline
def graph_in_a_row(text: str) -> str:
    agents.parallel().invoke({"text": text})
    return helper(text)


def names(collector: SpansOnly) -> set[str]:
    return {str(n[c.NODE_ID]) for n in collector.spans.of("node")}


def test_a_plain_node_inside_a_langgraph_node_belongs_to_it() -> None:
    """One run."""
    with instrumented() as collector:
        graph_with_a_plain_node().invoke({"text": "x"})
    assert names(collector) == {"outer", "outer/helper"}
    assert (len(collector.spans.traces), len(collector.spans.of("run"))) == (1, 1)
    assert collector.tracers[0].open_count == 0


def test_a_langgraph_graph_inside_a_plain_node_belongs_to_it() -> None:
    """Its edges are observed as ever."""
    with instrumented() as collector:
        with_a_graph("x")
    inner = {"planner", "analyst_a", "analyst_b", "reviewer"}
    assert names(collector) == {"asks_a_graph", *(f"asks_a_graph/{each}" for each in inner)}
    assert len(collector.spans.of("run")) == 1
    assert ("asks_a_graph/analyst_a", "asks_a_graph/reviewer") in collector.spans.edges()
    assert collector.tracers[0].open_count == 0


def test_a_langgraph_graph_among_the_steps_of_a_pipeline_is_part_of_its_run() -> None:
    """It has a scope of its own."""
    with instrumented() as collector:
        graph_in_a_row("x")
    assert len(collector.spans.of("run")) == 1
    assert len(collector.spans.traces) == 1
    assert "parallel/reviewer" in names(collector) and "helper" in names(collector)


def test_what_a_repair_runs_again_is_no_run_of_its_own() -> None:
    """A graph inside the repaired node is not observed a second time."""

    @node
    def analyst(text: str) -> str:
        agents.loop().invoke({"items": []})
        return "decline" if says(text, "she") else "approve"

    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["analyst"], "mode": "repair"}
    with instrumented(gate(spans, **settings), **settings):
        assert analyst(TEXT) == "approve"
    assert len(spans.of("run")) == 1
    assert len([n for n in spans.of("node") if n[c.NODE_ID] == "analyst/step"]) == 3


def test_a_plain_node_on_a_loop_does_not_wait_for_a_repair_that_needs_the_loop() -> None:
    """It is decided out of turn: while evidence is at the limit that is a halt, and no hang."""

    @node
    async def biased(text: str) -> str:
        await asyncio.sleep(0.02)
        return "decline" if says(text, "she") else "approve"

    async def other() -> None:
        for _ in range(10):
            await asyncio.sleep(0.005)
            helper("x")

    async def program() -> None:
        with pipeline("mixed", nodes=[biased, helper]):
            await asyncio.gather(biased(TEXT), other())

    def run() -> None:
        with suppress(BiasHalt):
            asyncio.run(program())

    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "repair"}
    with instrumented(gate(Spans(), **settings), **settings):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()


def test_a_node_that_fires_again_within_another_firing_is_worded_anew() -> None:
    """Its superstep has the same number, its seeds have not."""

    @node
    def inner(text: str) -> str:
        return "approve"

    @node
    def outer(text: str) -> str:
        return inner(text)

    def program() -> None:
        with pipeline("twice", nodes=[outer]):
            outer(TEXT)
            outer(TEXT)

    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["*/inner"], "mode": "shadow"}
    with instrumented(gate(spans, **settings), **settings):
        program()
    seeds: dict[str, set[int]] = {}
    for probe in spans.of("probe"):
        seeds.setdefault(str(probe[c.NODE_TASK_ID]), set()).add(int(probe[c.PROBE_SEED]))
    first, second = seeds.values()
    assert not first & second
