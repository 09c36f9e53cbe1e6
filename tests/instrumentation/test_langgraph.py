"""LangGraph programs, instrumented untouched: spans, edges, outcomes, and the same results."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
import sample_agents as agents
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c

PROGRAMS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "parallel": (agents.parallel, {"text": "x"}),
    "send_and_subgraph": (agents.send_and_subgraph, {"text": "x", "items": []}),
    "loop": (agents.loop, {"items": []}),
    "retry": (agents.retry, {"text": "x"}),
    "unequal": (agents.unequal, {"text": "x"}),
}

EDGES: dict[str, set[tuple[str, str]]] = {
    "parallel": {
        ("planner", "analyst_a"),
        ("planner", "analyst_b"),
        ("analyst_a", "reviewer"),
        ("analyst_b", "reviewer"),
    },
    "send_and_subgraph": {
        ("planner", "worker"),
        ("worker", "router"),
        ("router", "writer_team"),
        ("writer_team/draft", "writer_team/polish"),
    },
    "loop": {("step", "step")},
    "retry": set(),
    "unequal": {
        ("start", "short"),
        ("start", "long_1"),
        ("long_1", "long_2"),
        ("short", "join"),
        ("long_2", "join"),
    },
}


def invoke(graph: Any, payload: Any) -> Any:
    return graph.invoke(payload)


def ainvoke(graph: Any, payload: Any) -> Any:
    return asyncio.run(graph.ainvoke(payload))


def stream(graph: Any, payload: Any) -> Any:
    return list(graph.stream(payload, stream_mode=["values", "updates", "debug"]))[-1]


def astream(graph: Any, payload: Any) -> Any:
    async def run() -> Any:
        return [chunk async for chunk in graph.astream(payload, stream_mode="values")][-1]

    return asyncio.run(run())


WAYS = [invoke, ainvoke, stream, astream]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_edges_are_exactly_those_that_were_taken(program: str, way: Callable[..., Any]) -> None:
    """Static, conditional, Send and Command edges, whichever way the graph is run."""
    build, payload = PROGRAMS[program]
    with instrumented() as collector:
        way(build(), payload)
    assert collector.spans.edges() == EDGES[program]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("program", PROGRAMS)
def test_a_run_is_one_trace_and_leaves_nothing_open(program: str, way: Callable[..., Any]) -> None:
    """Async runs too, and every span carries the run's identity."""
    build, payload = PROGRAMS[program]
    with instrumented() as collector:
        way(build(), payload)
    assert len(collector.spans.traces) == 1
    (tracer,) = collector.tracers
    assert tracer.open_count == 0
    assert {attributes[c.RUN_ID] for attributes in collector.spans.of("node")} == {tracer.run_id}
    (run,) = collector.spans.of("run")
    assert run[c.RUN_OUTCOME] == "completed"
    assert run[c.RUN_SPAN_COUNT] == len(collector.spans.ended)


@pytest.mark.parametrize("way", [invoke, ainvoke])
@pytest.mark.parametrize("program", PROGRAMS)
def test_results_are_those_of_the_uninstrumented_run(program: str, way: Callable[..., Any]) -> None:
    """The application's answer does not change."""
    build, payload = PROGRAMS[program]
    plain = way(build(), payload)
    with instrumented():
        observed = way(build(), payload)
    assert observed == plain


def test_parallel_branches_share_a_superstep() -> None:
    """A superstep is a set of nodes."""
    with instrumented() as collector:
        agents.parallel().invoke({"text": "x"})
    assert collector.spans.supersteps() == {
        ("", 1): ["planner"],
        ("", 2): ["analyst_a", "analyst_b"],
        ("", 3): ["reviewer"],
    }


def test_a_subgraph_counts_its_own_supersteps() -> None:
    """LangGraph restarts at 1 inside a subgraph; the scope tells them apart."""
    with instrumented() as collector:
        agents.send_and_subgraph().invoke({"text": "x", "items": []})
    found = collector.spans.supersteps()
    assert found["", 2] == ["worker"] * 3
    assert found["sub", 1] == ["writer_team/draft"]
    assert found["sub", 2] == ["writer_team/polish"]


def test_send_tasks_differ_in_their_execution() -> None:
    """Three tasks of one node in one superstep are three executions."""
    with instrumented() as collector:
        agents.send_and_subgraph().invoke({"text": "x", "items": []})
    workers = [n for n in collector.spans.of("node") if n[c.NODE_ID] == "worker"]
    assert len({node[c.NODE_TASK_ID] for node in workers}) == 3


def test_a_graph_compiled_before_is_instrumented_too() -> None:
    """The hooks are in the runtime, not in the builder."""
    graph = agents.parallel()
    with instrumented() as collector:
        graph.invoke({"text": "x"})
    assert len(collector.spans.of("node")) == 4
    graph.invoke({"text": "x"})
    assert len(collector.spans.of("node")) == 4


def test_retried_attempts_are_no_failures() -> None:
    """Two tries were retried, the third is the outcome; the run is fine."""
    with instrumented() as collector:
        agents.retry().invoke({"text": "x"})
    outcomes = [(n[c.NODE_ATTEMPT], n[c.NODE_OUTCOME]) for n in collector.spans.of("node")]
    assert outcomes == [(1, "retried"), (2, "retried"), (3, "ok")]
    assert all(c.ERROR_TYPE not in node for node in collector.spans.of("node"))


@pytest.mark.parametrize("way", WAYS)
def test_a_real_failure_is_one_and_says_nothing_of_its_text(way: Callable[..., Any]) -> None:
    """The exception reaches the caller unchanged; its text stays out of the spans."""
    with instrumented() as collector:
        with pytest.raises(ValueError, match="secret words"):
            way(agents.failing(), {"text": "x"})
    (node,) = collector.spans.of("node")
    assert (node[c.NODE_OUTCOME], node[c.ERROR_TYPE]) == ("error", "ValueError")
    (run,) = collector.spans.of("run")
    assert run[c.RUN_OUTCOME] == "failed"
    assert "secret" not in "".join(span.to_json() for span in collector.spans.ended)


def test_an_interrupt_is_control_flow() -> None:
    """A paused node is no error; resuming it is a run of its own on the same thread."""
    graph = agents.human(InMemorySaver())
    config = {"configurable": {"thread_id": "t1"}}
    with instrumented() as collector:
        graph.invoke({"text": "x"}, config)
        graph.invoke(Command(resume="yes"), config)
    runs = collector.spans.of("run")
    assert [run[c.RUN_OUTCOME] for run in runs] == ["interrupted", "completed"]
    assert {run[c.GEN_AI_CONVERSATION_ID] for run in runs} == {"t1"}
    asked = [n for n in collector.spans.of("node") if n[c.NODE_ID] == "ask"]
    assert [node[c.NODE_OUTCOME] for node in asked] == ["interrupted", "ok"]
    assert len({node[c.NODE_TASK_ID] for node in asked}) == 1
    assert all(c.ERROR_TYPE not in node for node in asked)


def test_an_abandoned_stream_ends_its_spans() -> None:
    """Whoever stops reading cancels the run; nothing stays open."""
    with instrumented() as collector:
        chunks = agents.parallel().stream({"text": "x"})
        next(chunks)
        chunks.close()
    (run,) = collector.spans.of("run")
    assert run[c.RUN_OUTCOME] == "cancelled"
    assert collector.tracers[0].open_count == 0


def test_an_abandoned_async_stream_ends_its_spans() -> None:
    """The same on an event loop."""

    async def read_one() -> None:
        chunks = agents.parallel().astream({"text": "x"})
        await chunks.__anext__()
        await chunks.aclose()

    with instrumented() as collector:
        asyncio.run(read_one())
    (run,) = collector.spans.of("run")
    assert run[c.RUN_OUTCOME] == "cancelled"
    assert collector.tracers[0].open_count == 0


def test_concurrent_runs_do_not_mix() -> None:
    """Ten runs at once on one loop: ten traces, each with its own four nodes."""

    async def many() -> None:
        graph = agents.parallel()
        await asyncio.gather(*(graph.ainvoke({"text": str(i)}) for i in range(10)))

    with instrumented() as collector:
        asyncio.run(many())
    assert len(collector.spans.traces) == 10
    per_run: dict[str, int] = {}
    for node in collector.spans.of("node"):
        per_run[node[c.RUN_ID]] = per_run.get(node[c.RUN_ID], 0) + 1
    assert set(per_run.values()) == {4}


def test_what_a_node_read_is_what_its_predecessors_handed_on() -> None:
    """The hashes on both ends of an edge agree."""
    with instrumented() as collector:
        agents.parallel().invoke({"text": "x"})
    nodes = {node[c.NODE_ID]: node for node in collector.spans.of("node")}
    handed = dict(
        zip(
            nodes["reviewer"][c.NODE_PARENTS],
            nodes["reviewer"][c.NODE_PARENT_HASHES],
            strict=True,
        )
    )
    assert handed == {
        "analyst_a": nodes["analyst_a"][c.NODE_OUTPUT_HASH],
        "analyst_b": nodes["analyst_b"][c.NODE_OUTPUT_HASH],
    }


def test_the_static_graph_is_on_the_run_span() -> None:
    """Readers compare what was taken with what was possible."""
    with instrumented() as collector:
        agents.parallel().invoke({"text": "x"})
    (run,) = collector.spans.of("run")
    assert run[c.GRAPH_NODES] == ("planner", "analyst_a", "analyst_b", "reviewer")
    assert run[c.GRAPH_EDGE_COUNT] == 4


def test_what_is_bound_to_a_graph_reaches_its_nodes() -> None:
    """Our scope travels in the same place of a config, and hides nothing of it."""
    seen: list[object] = []

    def node(state: agents.State, config: RunnableConfig) -> agents.State:
        seen.append((config.get("configurable") or {}).get("tone"))
        return {"a": "x"}

    def graph(run: Any) -> Any:
        built: Any = StateGraph(agents.State)
        built.add_node("node", run)
        built.add_edge(START, "node")
        return built.compile()

    inner = graph(node)
    outer = graph(lambda state: inner.invoke(state)).with_config(configurable={"tone": "warm"})
    for answer in (outer.invoke, inner.with_config(configurable={"tone": "cold"}).invoke):
        answer({"text": "t"})
        with instrumented(SpansOnly()):
            answer({"text": "t"})
    assert seen == ["warm", "warm", "cold", "cold"]


def test_uninstrumenting_restores_langgraph() -> None:
    """Every hooked function is the very same object again, twice in a row."""
    from twinspan.instrumentation.frameworks.langgraph.hooks import _HOOKED

    before = [vars(owner).get(name) for owner, name in _HOOKED]
    for _ in range(2):
        with instrumented():
            during = [vars(owner).get(name) for owner, name in _HOOKED]
        after = [vars(owner).get(name) for owner, name in _HOOKED]
        assert all(ours is not theirs for ours, theirs in zip(during, before, strict=True))
        assert all(again is theirs for again, theirs in zip(after, before, strict=True))


def test_our_own_failure_costs_a_span_and_not_the_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A collector that raises everywhere is logged once and stepped around."""
    monkeypatch.delenv("TWINSPAN_RAISE")

    class Broken(SpansOnly):
        """Fails wherever it is asked."""

        def open_run(self, run: Any, topology: Any) -> Any:
            raise RuntimeError("broken collector")

    with instrumented(Broken()):
        assert agents.parallel().invoke({"text": "x"})["verdict"] == "a plan x + b plan x"
    assert len([r for r in caplog.records if "stepped aside" in r.message]) == 1
