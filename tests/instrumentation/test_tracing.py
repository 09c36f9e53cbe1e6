"""Our spans are recorded and numbered whatever the application's telemetry does."""

from __future__ import annotations

import threading
import time

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, Sampler

from twinspan.instrumentation import conventions as c
from twinspan.instrumentation.tracing import Telemetry


class Listener(SpanProcessor):
    """Keeps what it hears."""

    def __init__(self) -> None:
        self.ended: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


class Raising(SpanProcessor):
    """An application's processor that fails at everything."""

    def on_start(self, span: object, parent_context: Context | None = None) -> None:
        raise RuntimeError("start")

    def on_end(self, span: ReadableSpan) -> None:
        raise RuntimeError("end")


class Hanging(SpanProcessor):
    """An application's processor that never comes back."""

    def __init__(self) -> None:
        self.release = threading.Event()

    def on_end(self, span: ReadableSpan) -> None:
        self.release.wait(30)


def one_span(listener: Listener, provider: object | None) -> ReadableSpan:
    run = Telemetry([listener], app_provider=provider).run("r")
    run.end(run.start("invoke_node a", "node"))
    return listener.ended[0]


def test_spans_are_numbered_in_the_order_in_which_they_end() -> None:
    """A gap in the numbers is a span that was lost."""
    listener = Listener()
    run = Telemetry([listener]).run("r")
    first, second = run.start("a", "node"), run.start("b", "node")
    run.end(second)
    run.end(first)
    run.end(first)
    numbers = [(span.name, (span.attributes or {})[c.AUDIT_SEQ]) for span in listener.ended]
    assert numbers == [("b", 0), ("a", 1)]
    assert (run.ended_count, run.open_count) == (2, 0)


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, ALWAYS_ON])
def test_every_span_is_recorded_whatever_the_sampler_says(sampler: Sampler) -> None:
    """Control hears a span that the application does not export."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=sampler)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    listener = Listener()
    telemetry = Telemetry([listener], app_provider=provider)
    run = telemetry.run("r")
    run.end(run.start("a", "node", {c.NODE_ID: "n"}))
    telemetry.flush()
    (span,) = listener.ended
    assert (span.attributes or {})[c.NODE_ID] == "n"
    assert len(exporter.get_finished_spans()) == (sampler is ALWAYS_ON)


def test_a_switched_off_sdk_does_not_reach_us(monkeypatch: pytest.MonkeyPatch) -> None:
    """OTEL_SDK_DISABLED silences the application's spans, not the breaker's."""
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")
    assert one_span(Listener(), TracerProvider()).name == "invoke_node a"


def test_low_limits_of_the_environment_do_not_evict_evidence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The SDK would drop the oldest attributes first, which are the identity."""
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "1")
    span = one_span(Listener(), None)
    assert (span.attributes or {})[c.RUN_ID] == "r"
    assert span.dropped_attributes == 0


def test_our_spans_join_the_applications_trace() -> None:
    """Trace id and parent are those of the span that is current."""
    provider = TracerProvider()
    listener = Listener()
    with provider.get_tracer("app").start_as_current_span("request") as request:
        span = one_span(listener, provider)
    assert span.context is not None and span.parent is not None
    assert span.context.trace_id == request.get_span_context().trace_id
    assert span.parent.span_id == request.get_span_context().span_id


def test_a_raising_processor_of_the_application_costs_nothing() -> None:
    """It neither raises into the host nor keeps the span from our processors."""
    provider = TracerProvider()
    provider.add_span_processor(Raising())
    assert one_span(Listener(), provider).name == "invoke_node a"


def test_a_hanging_processor_of_the_application_does_not_hold_us_up() -> None:
    """Ended spans are handed on in the background."""
    hanging = Hanging()
    provider = TracerProvider()
    provider.add_span_processor(hanging)
    listener = Listener()
    telemetry = Telemetry([listener], app_provider=provider)
    run = telemetry.run("r")
    for _ in range(10):
        run.end(run.start("a", "node"))
    assert len(listener.ended) == 10
    assert telemetry.flush(timeout_millis=50) is False
    hanging.release.set()


def test_everything_that_ended_reaches_the_application() -> None:
    """Nothing is lost on the way to its processors, from many threads."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    telemetry = Telemetry([], app_provider=provider)
    run = telemetry.run("r")

    def work() -> None:
        for _ in range(200):
            run.end(run.start("a", "node"))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert telemetry.flush(timeout_millis=10_000)
    assert len(exporter.get_finished_spans()) == 1600
    numbers = sorted(int((s.attributes or {})[c.AUDIT_SEQ]) for s in exporter.get_finished_spans())  # type: ignore[arg-type]
    assert numbers == list(range(1600))


def test_an_error_sets_its_class_and_never_its_text() -> None:
    """An exception's text may quote a prompt."""
    listener = Listener()
    run = Telemetry([listener]).run("r")
    run.end(run.start("a", "node"), error=ValueError("she said"))
    span = listener.ended[0]
    assert (span.attributes or {})[c.ERROR_TYPE] == "ValueError"
    assert span.status.status_code is trace.StatusCode.ERROR
    assert "she said" not in span.to_json()


def test_nothing_stays_open_when_a_run_is_closed() -> None:
    """Whatever is open is ended; the root only by its owner."""
    listener = Listener()
    run = Telemetry([listener]).run("r")
    root = run.start("root", "run")
    run.start("child", "node")
    run.end_open({c.NODE_OUTCOME: "cancelled"}, keep=root)
    assert [span.name for span in listener.ended] == ["child"]
    assert run.open_count == 1


def test_an_end_time_may_lie_before_the_call() -> None:
    """A sample's span ends when its run ended, though it is scored later."""
    listener = Listener()
    run = Telemetry([listener]).run("r")
    span = run.start("a", "probe")
    ended = time.time_ns()
    run.end(span, end_time=ended)
    assert listener.ended[0].end_time == ended
