"""Small LangGraph programs for tests: real graphs, functions for nodes, no model."""

from __future__ import annotations

import operator
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.types import Command, RetryPolicy, Send, interrupt
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.gate import PROCEED, Boundary, RunPlan, Topology, Verdict
from twinspan.instrumentation.tracing import RunTracer


class State(TypedDict, total=False):
    """A state with plain and accumulating keys."""

    text: str
    plan: str
    a: str
    b: str
    verdict: str
    item: int
    items: Annotated[list[int], operator.add]


def parallel() -> Any:
    """planner -> (analyst_a, analyst_b) -> reviewer."""
    graph: Any = StateGraph(State)
    graph.add_node("planner", lambda s: {"plan": f"plan {s['text']}"})
    graph.add_node("analyst_a", lambda s: {"a": f"a {s['plan']}"})
    graph.add_node("analyst_b", lambda s: {"b": f"b {s['plan']}"})
    graph.add_node("reviewer", lambda s: {"verdict": f"{s['a']} + {s['b']}"})
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "analyst_a")
    graph.add_edge("planner", "analyst_b")
    graph.add_edge(["analyst_a", "analyst_b"], "reviewer")
    graph.add_edge("reviewer", END)
    return graph.compile(name="parallel")


def send_and_subgraph() -> Any:
    """planner -> worker x3 by Send -> router -> writer_team (a subgraph) by Command."""
    team: Any = StateGraph(State)
    team.add_node("draft", lambda s: {"a": "draft"})
    team.add_node("polish", lambda s: {"b": "polished"})
    team.add_edge(START, "draft")
    team.add_edge("draft", "polish")
    team.add_edge("polish", END)

    def fan_out(state: State) -> list[Send]:
        return [Send("worker", {"item": item}) for item in range(3)]

    def route(state: State) -> Command[Any]:
        return Command(goto="writer_team", update={"plan": "routed"})

    graph: Any = StateGraph(State)
    graph.add_node("planner", lambda s: {"plan": "p"})
    graph.add_node("worker", lambda s: {"items": [s["item"]]})
    graph.add_node("router", route, destinations=("writer_team",))
    graph.add_node("writer_team", team.compile())
    graph.add_edge(START, "planner")
    graph.add_conditional_edges("planner", fan_out, ["worker"])
    graph.add_edge("worker", "router")
    graph.add_edge("writer_team", END)
    return graph.compile(name="send_and_subgraph")


def loop() -> Any:
    """One node three times."""
    graph: Any = StateGraph(State)
    graph.add_node("step", lambda s: {"items": [len(s["items"])]})
    graph.add_edge(START, "step")
    graph.add_conditional_edges("step", lambda s: "step" if len(s["items"]) < 3 else END)
    return graph.compile(name="loop")


def retry() -> Any:
    """A node that fails twice, then works."""
    tries: list[int] = []

    def flaky(state: State) -> State:
        tries.append(1)
        if len(tries) % 3:
            raise ConnectionError("not yet")
        return {"a": "done"}

    graph: Any = StateGraph(State)
    policy = RetryPolicy(initial_interval=0.001, jitter=False, retry_on=ConnectionError)
    graph.add_node("flaky", flaky, retry_policy=policy)
    graph.add_edge(START, "flaky")
    graph.add_edge("flaky", END)
    return graph.compile(name="retry")


def failing() -> Any:
    """A node that raises."""

    def broken(state: State) -> State:
        raise ValueError("secret words of a prompt")

    graph: Any = StateGraph(State)
    graph.add_node("broken", broken)
    graph.add_edge(START, "broken")
    return graph.compile(name="failing")


def human(checkpointer: Any) -> Any:
    """A node that asks a person."""

    def ask(state: State) -> State:
        return {"verdict": interrupt("approve?")}

    graph: Any = StateGraph(State)
    graph.add_node("planner", lambda s: {"plan": "p"})
    graph.add_node("ask", ask)
    graph.add_node("act", lambda s: {"a": s["verdict"]})
    graph.add_edge(START, "planner")
    graph.add_edge("planner", "ask")
    graph.add_edge("ask", "act")
    return graph.compile(name="human", checkpointer=checkpointer)


def unequal() -> Any:
    """Two branches of unequal length that join."""
    graph: Any = StateGraph(State)
    graph.add_node("start", lambda s: {"plan": "p"})
    graph.add_node("short", lambda s: {"a": "a"})
    graph.add_node("long_1", lambda s: {"b": "b"})
    graph.add_node("long_2", lambda s: {"b": s["b"] + "b"})
    graph.add_node("join", lambda s: {"verdict": s["a"] + s["b"]})
    graph.add_edge(START, "start")
    graph.add_edge("start", "short")
    graph.add_edge("start", "long_1")
    graph.add_edge("long_1", "long_2")
    graph.add_edge(["short", "long_2"], "join")
    graph.add_edge("join", END)
    return graph.compile(name="unequal")


class Spans(SpanProcessor):
    """Keeps our ended spans, and tells what they say."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)

    def of(self, span_type: str) -> list[dict[str, Any]]:
        """Attributes of the spans of one type, in the order in which they ended."""
        read = [dict(span.attributes or {}) for span in self.ended]
        return [attributes for attributes in read if attributes.get(c.SPAN_TYPE) == span_type]

    def edges(self) -> set[tuple[str, str]]:
        """The observed edges."""
        return {
            (parent, str(node[c.NODE_ID]))
            for node in self.of("node")
            for parent in node[c.NODE_PARENTS]
        }

    def supersteps(self) -> dict[tuple[str, int], list[str]]:
        """Nodes by scope and superstep."""
        found: dict[tuple[str, int], list[str]] = {}
        for node in self.of("node"):
            key = ("" if node[c.SUPERSTEP_SCOPE] == "" else "sub", int(node[c.SUPERSTEP_INDEX]))
            found.setdefault(key, []).append(str(node[c.NODE_ID]))
        return {key: sorted(nodes) for key, nodes in found.items()}

    @property
    def traces(self) -> set[int]:
        """Trace ids of all spans."""
        return {span.context.trace_id for span in self.ended if span.context is not None}


class SpansOnly:
    """A collector that keeps the spans and always lets pass."""

    enforces = False

    def __init__(self) -> None:
        self.spans = Spans()
        self.boundaries: list[Boundary] = []
        self.tracers: list[RunTracer] = []

    @property
    def processors(self) -> list[SpanProcessor]:
        return [self.spans]

    def open_run(self, run: RunTracer, topology: Topology) -> RunPlan:
        self.tracers.append(run)
        return RunPlan()

    def decide(self, boundary: Boundary) -> Verdict:
        self.boundaries.append(boundary)
        return PROCEED

    async def repair(self, boundary: Boundary, verdict: Verdict) -> Verdict:
        return verdict

    def consumed(self, run_id: str, node: str, parents: Any, input_hash: str) -> None:
        pass

    def close_run(self, run_id: str) -> dict[str, object]:
        return {}

    def run_ended(self, run_id: str) -> None:
        pass

    def shutdown(self) -> None:
        pass


@contextmanager
def instrumented(collector: Any = None, **options: Any) -> Generator[Any]:
    """LangGraph instrumented for a block; gives the collector."""
    used = collector or SpansOnly()
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(collector=used, **options)
    try:
        yield used
    finally:
        instrumentor.uninstrument()
