"""The gate on real graphs: cut, freeze, repair, re-measure, hand on."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from biased_graph import GENDER, TEXT, Graph, State, decisions, gate
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, TraceIdRatioBased
from sample_agents import Spans, instrumented

from twinspan.instrumentation import Axis
from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.errors import BiasHalt


def run(graph: Graph, way: str = "invoke", **options: Any) -> tuple[Any, Spans]:
    spans = Spans()
    settings = {"axes": [GENDER], "nodes": ["*"], **options}
    with instrumented(gate(spans, **options), **settings):
        if way == "invoke":
            result = graph.compiled.invoke({"text": TEXT})
        else:
            result = asyncio.run(graph.compiled.ainvoke({"text": TEXT}))
    return result, spans


@pytest.mark.parametrize("way", ["invoke", "ainvoke"])
def test_the_edge_is_cut_and_the_reader_sees_only_the_repaired_payload(way: str) -> None:
    """The run completes, and the biased answer is nowhere in its state."""
    graph = Graph()
    result, spans = run(graph, way, mode="repair")
    assert set(graph.seen) == {"approve"}
    assert (result["a"], result["verdict"]) == ("approve", "approve")
    decisions = [(d[c.BREAKER_DECISION], d.get(c.BREAKER_EDGE)) for d in spans.of("network")]
    assert decisions == [
        ("proceed", None),
        ("halt", "analyst_a->reviewer"),
        ("proceed", None),
        ("proceed", None),
    ]


def test_the_readers_input_is_what_the_intervention_handed_on() -> None:
    """Hashes tell it: the frozen payload, the repaired one, and the whole input."""
    _, spans = run(Graph(), mode="repair")
    nodes = {node[c.NODE_ID]: node for node in spans.of("node")}
    (repair,) = spans.of("intervention")
    (halt,) = [d for d in spans.of("network") if d[c.BREAKER_DECISION] == "halt"]
    handed = dict(
        zip(
            nodes["reviewer"][c.NODE_PARENTS],
            nodes["reviewer"][c.NODE_PARENT_HASHES],
            strict=True,
        )
    )
    assert halt[c.BREAKER_PAYLOAD_HASH] == nodes["analyst_a"][c.NODE_OUTPUT_HASH]
    assert repair[c.INTERVENTION_PAYLOAD_HASH] == handed["analyst_a"]
    assert repair[c.INTERVENTION_PAYLOAD_HASH] != halt[c.BREAKER_PAYLOAD_HASH]
    assert repair[c.INTERVENTION_HANDED_HASH] == nodes["reviewer"][c.NODE_INPUT_HASH]
    assert repair[c.INTERVENTION_OUTCOME] == "cleared"


def test_the_repair_is_measured_and_not_assumed() -> None:
    """A probe set of its own, and B_net reduced anew with it."""
    _, spans = run(Graph(), mode="repair")
    (repair,) = spans.of("intervention")
    assert (repair[c.INTERVENTION_SCORE_BEFORE], repair[c.INTERVENTION_SCORE_AFTER]) == (1.0, 0.0)
    _, halted, rechecked, _ = [d[c.NETWORK_SCORE] for d in spans.of("network")]
    assert halted > 0.3 and rechecked == 0.0
    again = [p for p in spans.of("probe_set") if p.get(c.INTERVENTION_ID)]
    assert len(again) == 1


def test_a_halted_run_raises_and_the_frozen_payload_can_be_recovered() -> None:
    """The application gets the edge, the reason and a copy of what was stopped."""
    graph = Graph()
    with pytest.raises(BiasHalt) as halted:
        run(graph, mode="halt")
    assert halted.value.edge == "analyst_a->reviewer"
    assert halted.value.reason == "monitor_at_limit"
    assert halted.value.frozen_payload == {"analyst_a": {"a": "decline"}}
    assert graph.seen == []


def test_shadow_mode_tells_and_lets_pass() -> None:
    """The decision is the same, and not enforced."""
    graph = Graph()
    result, spans = run(graph, mode="shadow")
    assert result["verdict"] == "decline"
    halt = next(d for d in spans.of("network") if d[c.BREAKER_STATE_TO] == "intervention")
    assert (halt[c.BREAKER_DECISION], halt[c.BREAKER_ENFORCED]) == ("halt", False)


def test_the_frozen_payload_never_reaches_stream_or_checkpoint() -> None:
    """What was cut is in no chunk, no state and no pending write."""
    saver = InMemorySaver()
    graph = Graph(saver)
    config: Any = {"configurable": {"thread_id": "t"}}
    with instrumented(gate(mode="repair"), axes=[GENDER], nodes=["*"], mode="repair"):
        chunks = list(
            graph.compiled.stream({"text": TEXT}, config, stream_mode=["updates", "values"])
        )
    assert "decline" not in repr(chunks)
    kept = [(t.checkpoint, t.pending_writes) for t in saver.list(config)]
    assert "decline" not in repr(kept)


def test_nothing_is_streamed_before_its_superstep_is_decided() -> None:
    """A halt comes before the first chunk of the halted superstep."""
    graph, chunks = Graph(), []
    with instrumented(gate(mode="halt"), axes=[GENDER], nodes=["*"], mode="halt"):
        with pytest.raises(BiasHalt):
            for chunk in graph.compiled.stream({"text": TEXT}, stream_mode="updates"):
                chunks.append(chunk)
    assert [list(chunk) for chunk in chunks] == [["planner"]]


def test_a_repair_that_raises_is_tried_again_and_then_a_person_is_asked() -> None:
    """Not broken: the payload stays frozen, each try says failed, the last decision escalates."""
    spans = Spans()
    with instrumented(gate(spans, mode="repair"), axes=[GENDER], nodes=["*"], mode="repair"):
        with pytest.raises(BiasHalt) as halted:
            Graph(broken_rerun=True).compiled.invoke({"text": TEXT})
    *repairs, person = spans.of("intervention")
    assert [r[c.INTERVENTION_OUTCOME] for r in repairs] == ["failed"] * 3
    assert {r[c.INTERVENTION_REASON] for r in repairs} == {"error:RuntimeError"}
    assert (person[c.INTERVENTION_STRATEGY], person[c.INTERVENTION_OUTCOME]) == (
        "human",
        "escalated",
    )
    last = spans.of("network")[-1]
    assert (last[c.BREAKER_STATE_TO], last[c.BREAKER_REASON]) == ("escalated", "retries_exhausted")
    assert [tried["outcome"] for tried in halted.value.tried] == ["failed"] * 3
    (root,) = spans.of("run")
    assert root[c.RUN_OUTCOME] == "halted"


def test_an_axis_without_neutral_words_cannot_be_repaired_blind() -> None:
    """The run is halted instead."""
    plain = Axis.from_mapping(
        {"name": "g", "groups": ["w", "m"], "paired": [{"w": ["she", "her"], "m": ["he", "his"]}]}
    )
    spans = Spans()
    collector = gate(spans, axes=[plain], mode="repair")
    with instrumented(collector, axes=[plain], nodes=["*"], mode="repair"):
        with pytest.raises(BiasHalt):
            Graph().compiled.invoke({"text": TEXT})


def test_runs_do_not_touch_each_other() -> None:
    """A biased run leaves nothing behind for the clean ones of the same graph."""
    spans = Spans()
    clean = "An applicant runs a shop."
    with instrumented(gate(spans, mode="halt"), axes=[GENDER], nodes=["*"], mode="halt"):
        graph = Graph()
        with pytest.raises(BiasHalt):
            graph.compiled.invoke({"text": TEXT})
        for _ in range(3):
            assert graph.compiled.invoke({"text": clean})["verdict"] == "approve"


def test_a_payload_without_the_axis_is_a_no_op_and_not_a_score() -> None:
    """Nothing was varied, so nothing is known."""
    spans = Spans()
    with instrumented(gate(spans, mode="halt"), axes=[GENDER], nodes=["*"], mode="halt"):
        Graph().compiled.invoke({"text": "An applicant runs a shop."})
    outcomes = {p[c.PROBE_OUTCOME] for p in spans.of("probe_set")}
    assert outcomes == {"no_op"}
    assert all(c.EFFECT_VALUE not in probe for probe in spans.of("probe_set"))


# --- independence of the application's telemetry ------------------------------------------


class Failing(SpanExporter):
    """An exporter that raises."""

    def export(self, spans: Any) -> SpanExportResult:
        raise RuntimeError("no backend")


class Stuck(SpanProcessor):
    """A processor that does not come back."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def on_end(self, span: ReadableSpan) -> None:
        self.release.wait(20)


def with_provider(build: Callable[[], Any]) -> list[tuple[Any, ...]]:
    spans = Spans()
    options: dict[str, Any] = {"axes": [GENDER], "nodes": ["*"], "mode": "repair"}
    collector = gate(spans, mode="repair")
    with instrumented(collector, tracer_provider=build(), **options):
        Graph().compiled.invoke({"text": TEXT})
    return decisions(spans)


def provider(sampler: Any = None, processor: SpanProcessor | None = None) -> TracerProvider:
    made = TracerProvider(sampler=sampler)
    if processor is not None:
        made.add_span_processor(processor)
    return made


def test_decisions_do_not_depend_on_the_applications_telemetry(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Sampler on, off, at one percent; no provider; an exporter that raises or hangs."""
    stuck = Stuck()
    usual = with_provider(provider)
    assert [d[0] for d in usual] == ["proceed", "halt", "proceed", "proceed"]
    assert with_provider(lambda: provider(ALWAYS_OFF)) == usual
    assert with_provider(lambda: provider(TraceIdRatioBased(0.01))) == usual
    assert with_provider(lambda: trace.NoOpTracerProvider()) == usual
    assert with_provider(lambda: provider(processor=SimpleSpanProcessor(Failing()))) == usual
    assert with_provider(lambda: provider(processor=stuck)) == usual
    stuck.release.set()
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert with_provider(provider) == usual


# --- side effects ---------------------------------------------------------------------------


def with_tool(sent: list[str], **options: Any) -> Spans:
    """A node that calls a tool, probed."""

    @tool
    def send_email(to: str) -> str:
        """Send an email."""
        sent.append(to)
        return "sent"

    graph: Any = StateGraph(State)
    graph.add_node("agent", lambda s: {"a": send_email.invoke({"to": s["text"][:5]})})
    graph.add_edge(START, "agent")
    spans = Spans()
    settings: dict[str, Any] = {"axes": [GENDER], "nodes": ["agent"], **options}
    with instrumented(gate(spans, **settings), **settings):
        graph.compile().invoke({"text": TEXT})
    return spans


def test_a_tool_inside_a_probe_is_blocked_unless_it_is_safe() -> None:
    """The run's own call goes through, the probes' do not, and the probe says so."""
    sent: list[str] = []
    spans = with_tool(sent)
    assert sent == ["Emily"]
    (probe,) = spans.of("probe_set")
    assert probe[c.PROBE_OUTCOME] == "error"
    assert probe[c.EFFECT_UNDEFINED] == "side_effect_blocked"


def test_a_tool_that_is_listed_as_safe_runs_again() -> None:
    """The user vouches for it."""
    sent: list[str] = []
    spans = with_tool(sent, safe_tools=["send_*"])
    assert len(sent) == 16
    (probe,) = spans.of("probe_set")
    assert probe[c.PROBE_OUTCOME] == "ok"


# --- content ----------------------------------------------------------------------------------


def test_no_word_of_a_prompt_or_an_answer_is_exported() -> None:
    """Names, words of the axis and answers stay in the process."""
    _, spans = run(Graph(), mode="repair")
    text = "".join(span.to_json() for span in spans.ended)
    for word in ("Emily", "Brown", "shop", "decline", "approve", "income", "accounts"):
        assert word not in text
