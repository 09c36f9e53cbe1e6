"""The OpenAI Agents SDK with another instrumentation of it in the same process."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

pytest.importorskip("agents", reason="the extra openai-agents is not installed")
pytest.importorskip(
    "openinference.instrumentation.openai_agents", reason="the group `beside` is not installed"
)

from agents import generation_span, set_trace_processors, set_tracing_disabled
from biased_graph import gate
from framework_contract import LETTER
from frameworks.test_openai_agents import Handoffs, StandIn
from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from other_instrumentations import Watch

from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation import conventions as c

THEIRS = "openinference.instrumentation.openai_agents"


@contextmanager
def openinference(provider: TracerProvider) -> Generator[None]:
    """Their instrumentor for a block; nothing is sent anywhere."""
    set_trace_processors([])
    set_tracing_disabled(False)
    theirs = OpenAIAgentsInstrumentor()
    theirs.instrument(tracer_provider=provider)
    try:
        yield
    finally:
        theirs.uninstrument()
        set_trace_processors([])
        set_tracing_disabled(True)


@contextmanager
def ours(provider: TracerProvider, collector: Any) -> Generator[None]:
    """Our instrumentor for a block."""
    instrumentor = TwinspanInstrumentor()
    instrumentor.instrument(
        collector=collector,
        tracer_provider=provider,
        axes=["gender"],
        nodes=["screener"],
        estimator="category",
    )
    try:
        yield
    finally:
        instrumentor.uninstrument()


def watched(order: tuple[str, ...], *, biased: bool = False) -> tuple[Watch, Any, Any]:
    """What the application saw of a handoff, its answer, and the gate."""
    provider, watch, collector = TracerProvider(shutdown_on_exit=False), Watch(), gate()
    provider.add_span_processor(watch)
    with ExitStack() as stack:
        for who in order:
            stack.enter_context(
                ours(provider, collector) if who == "twinspan" else openinference(provider)
            )
        answer = Handoffs(biased=biased).run(LETTER)
    return watch, answer, collector


def told_by(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


ORDERS = [("twinspan",), ("twinspan", "openinference"), ("openinference", "twinspan")]


@pytest.mark.parametrize("order", ORDERS, ids=" then ".join)
def test_a_handoff_is_told_as_it_ran_whoever_else_watches(order: tuple[str, ...]) -> None:
    """One run, its exact edge, nothing left open, no error, the application's own answer."""
    watch, answer, _ = watched(order)
    assert answer == Handoffs(biased=False).run(LETTER)
    assert not watch.open
    own = [span for span in watch.ended if told_by(span).get(c.SPAN_TYPE)]
    told = [told_by(span) for span in own]
    assert len({span[c.RUN_ID] for span in told}) == 1
    nodes = {span[c.NODE_ID]: span[c.NODE_PARENTS] for span in told if span[c.SPAN_TYPE] == "node"}
    assert nodes == {"screener": (), "writer": ("screener",)}
    assert not [span for span in watch.ended if span.status.status_code.name == "ERROR"]
    of_run = [span for span in own if told_by(span)[c.SPAN_TYPE] in ("run", "node")]
    assert len({span.context.trace_id for span in of_run if span.context}) == 1


def test_their_spans_say_where_they_were_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Agents and turns enclose our nodes and say the run, a model call says its node.

    Fifteen more calls are made by the probes; re-runs leave no trace in what others tell.
    """
    asked = StandIn.get_response

    async def get_response(self: StandIn, *args: Any, **kwargs: Any) -> Any:
        with generation_span(model="stand-in"):
            return await asked(self, *args, **kwargs)

    monkeypatch.setattr(StandIn, "get_response", get_response)
    watch, _, _ = watched(("openinference", "twinspan"))
    theirs = [told_by(span) for span in watch.ended if _scope(span) == THEIRS]
    (run_id,) = {told[c.RUN_ID] for told in theirs}
    assert run_id in {told_by(span).get(c.RUN_ID) for span in watch.ended}
    calls = [told for told in theirs if told.get("openinference.span.kind") == "LLM"]
    assert sorted(str(told[c.NODE_ID]) for told in calls) == ["screener", "writer"]


def _scope(span: ReadableSpan) -> str:
    return "" if span.instrumentation_scope is None else span.instrumentation_scope.name


@pytest.mark.parametrize("order", ORDERS[1:], ids=" then ".join)
def test_decisions_do_not_depend_on_who_else_watches(order: tuple[str, ...]) -> None:
    """The biased handoff is judged by the same numbers."""

    def decisions(watch: Watch) -> list[tuple[Any, ...]]:
        told = [told_by(span) for span in watch.ended]
        return [
            (span[c.SUPERSTEP_INDEX], span[c.BREAKER_DECISION], span.get(c.MONITOR_VALUE))
            for span in told
            if span.get(c.SPAN_TYPE) == "network"
        ]

    alone, _, _ = watched(("twinspan",), biased=True)
    beside, _, _ = watched(order, biased=True)
    assert decisions(beside) == decisions(alone)
    assert any(decision != "proceed" for _, decision, _ in decisions(alone))
