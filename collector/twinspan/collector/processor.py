"""ControlProcessor: the only way by which a score reaches the accumulator."""

from __future__ import annotations

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from twinspan.collector.records import probe_record, span_type
from twinspan.collector.runs import Runs
from twinspan.instrumentation.safety import Failures


class ControlProcessor(SpanProcessor):
    """Reads ended probe sets and puts them where their superstep's boundary finds them.

    It runs on the thread that ends a span, so it only reads attributes and appends to a list
    under one short lock: no I/O, no user code, nothing that raises into the host.
    """

    def __init__(self, runs: Runs, failures: Failures | None = None) -> None:
        self._runs = runs
        self.failures = failures or Failures()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Nothing to do: a score exists only when its span has ended."""

    def on_end(self, span: ReadableSpan) -> None:
        """Take a probe set in, once, whatever the order in which spans end."""
        if span_type(span) != "probe_set":
            return
        try:
            self._runs.take_in(probe_record(span))
        except Exception as error:
            self.failures.note("reading a probe set", error)
