"""Every kind of LangGraph program, untouched, whichever way it is run."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph_programs import PROGRAMS, Edges, breakpoint_before, built
from sample_agents import SpansOnly, instrumented

from twinspan.instrumentation import conventions as c

MODES = ["values", "updates", "debug", "tasks", "custom", "messages"]


def invoke(graph: Any, given: Any, options: Any) -> Any:
    return graph.invoke(given, **options)


def ainvoke(graph: Any, given: Any, options: Any) -> Any:
    return asyncio.run(graph.ainvoke(given, **options))


def stream(graph: Any, given: Any, options: Any) -> Any:
    return list(graph.stream(given, stream_mode=MODES, subgraphs=True, **options))


def astream(graph: Any, given: Any, options: Any) -> Any:
    async def chunks() -> Any:
        found = graph.astream(given, stream_mode=MODES, subgraphs=True, **options)
        return [chunk async for chunk in found]

    return asyncio.run(chunks())


WAYS: dict[str, Callable[..., Any]] = {
    way.__name__: way for way in (invoke, ainvoke, stream, astream)
}
CASES = [
    (name, way)
    for name, program in PROGRAMS.items()
    for way in WAYS
    if way in ("ainvoke", "astream") or not program.is_async
]
every_program = pytest.mark.parametrize(("name", "way"), CASES)


@dataclass(frozen=True)
class Ran:
    """A program's runs without and with twinspan."""

    plain: tuple[Any, ...]
    observed: tuple[Any, ...]
    collector: SpansOnly

    def nodes(self) -> list[dict[str, Any]]:
        return self.collector.spans.of("node")


@cache
def ran(name: str, way: str) -> Ran:
    program = PROGRAMS[name]
    graph, options = built(program)
    plain = tuple(WAYS[way](graph, given, options) for given in program.inputs)
    graph, options = built(program)
    with instrumented() as collector:
        observed = tuple(WAYS[way](graph, given, options) for given in program.inputs)
    return Ran(plain, observed, collector)


def comparable(result: Any) -> str:
    """A result without what differs between any two runs: drawn ids and the time."""
    text = re.sub(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32}", "ID", repr(result))
    # A checkpoint says which run wrote it, so that another process can go on with that run.
    text = re.sub(r", 'twinspan_run_id': 'ID'|'twinspan_run_id': 'ID'(, )?", "", text)
    text = text.replace(", 'metadata': {}", "")
    return re.sub(r"'20\d\d-[^']*'|0x[0-9a-f]+", "TIME", text)


@every_program
def test_the_edges_are_exactly_those_that_were_taken(name: str, way: str) -> None:
    """Static and conditional edges, Command, Send, joins, deferred nodes, tasks, handlers."""
    assert ran(name, way).collector.spans.edges() == PROGRAMS[name].edges


@every_program
def test_every_node_is_there_as_often_as_it_ran(name: str, way: str) -> None:
    """An execution that was retried, interrupted or taken from a cache is not another one."""
    done = Counter(n[c.NODE_ID] for n in ran(name, way).nodes() if n[c.NODE_OUTCOME] == "ok")
    assert done == PROGRAMS[name].executions


@every_program
def test_a_run_is_one_trace_and_leaves_nothing_open(name: str, way: str) -> None:
    """However deep its subgraphs, and on an event loop too."""
    collector = ran(name, way).collector
    runs = collector.spans.of("run")
    assert len(collector.spans.traces) == len(runs) == len(PROGRAMS[name].inputs)
    assert [tracer.open_count for tracer in collector.tracers] == [0] * len(runs)
    assert sum(run[c.RUN_SPAN_COUNT] for run in runs) == len(collector.spans.ended)


@every_program
def test_nothing_is_called_a_failure_that_is_none(name: str, way: str) -> None:
    """Interrupts, commands, retries and handled errors are control flow."""
    spans = ran(name, way).collector.spans
    assert tuple(run[c.RUN_OUTCOME] for run in spans.of("run")) == PROGRAMS[name].outcomes
    assert all(c.ERROR_TYPE not in run for run in spans.of("run"))
    failed = {n[c.NODE_ID] for n in spans.of("node") if c.ERROR_TYPE in n}
    assert failed == set(PROGRAMS[name].failed)


@every_program
def test_the_application_gets_what_it_would_have_got(name: str, way: str) -> None:
    """The result, and every chunk of every stream mode in its order."""
    found = ran(name, way)
    if way in ("invoke", "ainvoke"):
        assert [comparable(each) for each in found.observed] == [
            comparable(each) for each in found.plain
        ]
        return
    # Parallel tasks end in any order, so do their chunks.
    assert [sorted(map(comparable, each)) for each in found.observed] == [
        sorted(map(comparable, each)) for each in found.plain
    ]


@every_program
def test_every_superstep_comes_to_the_gate_once(name: str, way: str) -> None:
    """Each superstep of an invocation is closed once, and every finished node is in one."""
    found = ran(name, way)
    boundaries = found.collector.boundaries
    places = [(id(b.run), b.scope, b.superstep) for b in boundaries]
    assert len(places) == len(set(places))
    closed = Counter(each.node for b in boundaries for each in b.executions)
    assert closed == PROGRAMS[name].executions


# --- what the table does not say ---------------------------------------------------------------


def edges_of(collector: SpansOnly, run: int) -> Edges:
    tracer = collector.tracers[run]
    return {
        (parent, node[c.NODE_ID])
        for node in collector.spans.of("node")
        if node[c.RUN_ID] == tracer.run_id
        for parent in node[c.NODE_PARENTS]
    }


def test_a_node_whose_answer_is_cached_is_told_as_skipped() -> None:
    """It did not run, was not probed, and its readers have it as their source all the same."""
    collector = ran("cached", "invoke").collector
    second = collector.tracers[1].run_id
    (slow,) = [
        n for n in collector.spans.of("node") if n[c.NODE_ID] == "slow" and n[c.RUN_ID] == second
    ]
    assert (slow[c.NODE_OUTCOME], slow[c.PROBE_DECISION]) == ("skipped", "exempt")
    assert edges_of(collector, 1) == {("before", "slow"), ("slow", "after")}


def test_the_origin_of_a_resumed_runs_first_node_is_inferred() -> None:
    """The run that woke it is over: its checkpoint tells, and the edge says so."""
    collector = ran("breakpoint_before", "invoke").collector
    (act,) = [n for n in collector.spans.of("node") if n[c.NODE_ID] == "act"]
    assert (act[c.NODE_PARENTS], act[c.NODE_EDGE_KIND]) == (("plan",), "inferred")
    (tell,) = [n for n in collector.spans.of("node") if n[c.NODE_ID] == "tell"]
    assert tell[c.NODE_EDGE_KIND] == "observed"


def test_each_graph_that_a_node_runs_has_a_scope_of_its_own() -> None:
    """Supersteps of equal number in two graphs of one node are two supersteps."""
    nodes = ran("called_inside", "invoke").nodes()
    scopes = [n[c.SUPERSTEP_SCOPE] for n in nodes if n[c.NODE_ID] == "office/write"]
    assert len(scopes) == len(set(scopes)) == 2


def test_an_attempt_of_a_subgraph_that_is_tried_again_is_no_failure() -> None:
    """The inner node failed in the first attempt; its holder was retried, and so was it."""
    nodes = ran("retried_subgraph", "ainvoke").nodes()
    outcomes = [(n[c.NODE_ID], n[c.NODE_OUTCOME]) for n in nodes]
    assert outcomes == [
        ("team/write", "ok"),
        ("team/flaky", "retried"),
        ("team", "retried"),
        ("team/write", "ok"),
        ("team/flaky", "ok"),
        ("team", "ok"),
        ("publish", "ok"),
    ]


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
@pytest.mark.parametrize("forked", [False, True])
def test_a_replay_from_a_checkpoint_is_a_run_from_there_on(way: str, forked: bool) -> None:
    """Only what runs again is there, its first node's origin inferred, its result the plain one."""

    def replayed(observe: bool) -> tuple[Any, SpansOnly | None]:
        graph = breakpoint_before(InMemorySaver())
        thread: Any = {"configurable": {"thread_id": "t"}}
        graph.invoke({"path": []}, thread)
        graph.invoke(None, thread)
        (past,) = [s for s in graph.get_state_history(thread) if s.next == ("act",)][:1]
        config = past.config
        if forked:
            config = graph.update_state(config, {"path": ["edited"]}, as_node="plan")
        options = {"config": config, "interrupt_before": []}
        if not observe:
            return WAYS[way](graph, None, options), None
        with instrumented() as collector:
            return WAYS[way](graph, None, options), collector

    plain, _ = replayed(observe=False)
    result, collector = replayed(observe=True)
    assert comparable(result) == comparable(plain)
    assert collector is not None
    assert [n[c.NODE_ID] for n in collector.spans.of("node")] == ["act", "tell"]
    assert collector.spans.edges() == {("plan", "act"), ("act", "tell")}
    kinds = [n[c.NODE_EDGE_KIND] for n in collector.spans.of("node")]
    assert kinds == ["inferred", "observed"]
