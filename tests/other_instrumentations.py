"""twinspan beside the other instrumentations of LangChain and LangGraph, in one process."""

from __future__ import annotations

import logging
from collections.abc import Collection, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import langchain.agents
import langchain.agents.factory
from biased_graph import gate
from langchain.agents.middleware.types import AgentMiddleware
from langchain_core.callbacks import BaseCallbackManager
from langgraph.pregel import Pregel
from langgraph.types import Command
from openinference.instrumentation.langchain import LangChainInstrumentor as OpenInference
from opentelemetry import context as otel_context
from opentelemetry.context import Context
from opentelemetry.instrumentation.genai.langchain import LangChainInstrumentor as GenAI
from opentelemetry.instrumentation.langchain import LangchainInstrumentor as Traceloop
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler
from sample_agents import Spans

from twinspan.instrumentation import TwinspanInstrumentor
from twinspan.instrumentation import conventions as c

OTHERS: dict[str, Any] = {
    "openinference": OpenInference,
    "traceloop": Traceloop,
    "genai": GenAI,
}
ALONE: tuple[str, ...] = ()
EACH: Sequence[tuple[str, ...]] = (ALONE, *((name,) for name in OTHERS), tuple(OTHERS))
"""twinspan alone, beside each of them, and beside all of them at once."""

SCOPES = {
    "openinference": "openinference.instrumentation.langchain",
    "traceloop": "opentelemetry.instrumentation.langchain",
    "genai": "opentelemetry.instrumentation.genai.langchain",
}


_MIDDLEWARE = ("before_model", "after_model", "before_agent", "after_agent")
_WRAPPED: Sequence[tuple[Any, str]] = (
    (BaseCallbackManager, "__init__"),
    (Pregel, "stream"),
    (Pregel, "astream"),
    (Command, "__init__"),
    (langchain.agents, "create_agent"),
    (langchain.agents.factory, "create_agent"),
    *((AgentMiddleware, f"{a}{name}") for name in _MIDDLEWARE for a in ("", "a")),
)
"""What Traceloop wraps. It takes none of it off again, so that the next test would be told by
the tracer of the last one."""


@contextmanager
def _put_back() -> Generator[None]:
    known = [(owner, name, vars(owner)[name]) for owner, name in _WRAPPED]
    try:
        yield
    finally:
        for owner, name, original in known:
            setattr(owner, name, original)


class Watch(SpanProcessor):
    """The application's own processor: keeps what ended, and knows what did not."""

    def __init__(self) -> None:
        self.open: dict[int, Span] = {}
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        self.open[span.get_span_context().span_id] = span

    def on_end(self, span: ReadableSpan) -> None:
        assert span.context is not None
        self.open.pop(span.context.span_id, None)
        self.ended.append(span)


@dataclass
class World:
    """What a program did while twinspan and others watched.

    Attributes:
        watch: all spans of the application's provider, ours included.
        spans: ours, as our own processors got them.
    """

    provider: TracerProvider
    watch: Watch = field(default_factory=Watch)
    spans: Spans = field(default_factory=Spans)

    @property
    def traces(self) -> set[int]:
        """Trace ids of all spans that anybody made."""
        return {span.context.trace_id for span in self.watch.ended if span.context is not None}

    @property
    def left_open(self) -> list[str]:
        """Spans that nobody has ended."""
        return [span.name for span in self.watch.open.values()]

    @property
    def errors(self) -> list[str]:
        """Spans of ours that say something failed."""
        return [
            span.name
            for span in self.spans.ended
            if c.SPAN_TYPE in (span.attributes or {})
            and (not span.status.is_ok or c.ERROR_TYPE in (span.attributes or {}))
        ]

    def foreign(self) -> list[ReadableSpan]:
        """Ended spans that are not ours."""
        return [
            span
            for span in self.watch.ended
            if span.instrumentation_scope is None or span.instrumentation_scope.name != c.SCOPE
        ]

    def flush(self) -> None:
        """Have every span of ours seen by the application's processor."""
        engine = TwinspanInstrumentor().engine
        if engine is not None:
            engine.telemetry.flush()


@contextmanager
def beside(
    names: Collection[str],
    *,
    ours: bool = True,
    ours_first: bool = True,
    sampler: Sampler | None = None,
    **options: Any,
) -> Generator[World]:
    """A world in which twinspan and some others are switched on for a block."""
    world = World(TracerProvider(sampler=sampler) if sampler else TracerProvider())
    world.provider.add_span_processor(world.watch)
    others = [OTHERS[name]() for name in names]
    mine = TwinspanInstrumentor()
    collector = gate(world.spans, **options)
    given: dict[str, Any] = {"tracer_provider": world.provider, "collector": collector}

    def on(instrumentors: Sequence[Any]) -> None:
        for each in instrumentors:
            each.instrument(**given if each is mine else {"tracer_provider": world.provider})

    me = [mine] if ours else []
    order = [*me, *others] if ours_first else [*others, *me]
    probing = {key: value for key, value in options.items() if key != "folder"}
    given |= {"axes": collector.settings.probe.axes, "nodes": ["*"], **probing}
    before = otel_context.get_current()
    with _put_back():
        on(order)
        try:
            yield world
            world.flush()
        finally:
            for each in order:
                each.uninstrument()
            # Two others at once leave each other's spans current, with and without twinspan.
            otel_context.attach(before)


@contextmanager
def nothing_logged(name: str = "opentelemetry") -> Generator[None]:
    """Nothing above a warning is logged in the block, by OpenTelemetry or by us."""
    heard: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            heard.append(record.getMessage())

    ear = Ear(level=logging.WARNING)
    loggers = [logging.getLogger(name), logging.getLogger("twinspan")]
    for logger in loggers:
        logger.addHandler(ear)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeHandler(ear)
    assert heard == []
