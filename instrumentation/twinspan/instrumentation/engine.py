"""What one `instrument()` call sets up: settings, collector, telemetry, the probes' loop."""

from __future__ import annotations

import threading
from functools import cached_property

from opentelemetry import trace

from twinspan.instrumentation.background import BackgroundLoop
from twinspan.instrumentation.gate import Collector
from twinspan.instrumentation.safety import Failures
from twinspan.instrumentation.settings import Settings
from twinspan.instrumentation.tracing import Telemetry


class Engine:
    """The process-wide part; everything about a run lives in its `LiveRun`.

    Attributes:
        settings: the resolved options.
        collector: what listens and decides; None records nothing and decides nothing.
        failures: twinspan's own failures since `instrument()`.
    """

    def __init__(
        self,
        settings: Settings,
        collector: Collector | None,
        *,
        tracer_provider: object | None = None,
    ) -> None:
        self.settings = settings
        self.collector = collector
        self.failures = Failures()
        self.loop = BackgroundLoop()
        self._tracer_provider = tracer_provider
        self._lock = threading.Lock()
        self._telemetry: dict[int, tuple[object, Telemetry]] = {}

    @property
    def telemetry(self) -> Telemetry:
        """Our provider beside the application's present one.

        Looked up at each run: an application may set its provider after we were set up.
        """
        provider = self._tracer_provider or trace.get_tracer_provider()
        with self._lock:
            known = self._telemetry.get(id(provider))
            if known is None:
                processors = () if self.collector is None else self.collector.processors
                known = (provider, Telemetry(processors, app_provider=provider))
                self._telemetry[id(provider)] = known
            return known[1]

    @cached_property
    def enforces(self) -> bool:
        """Whether a verdict may stop or change a run."""
        return self.collector is not None and self.collector.enforces

    @cached_property
    def holds_stream(self) -> bool:
        """Whether what a node streams waits until its answer is decided."""
        return self.enforces and self.settings.breaker.holds_stream

    def flush(self) -> bool:
        """Have every ended span on disk and with the application's processors.

        For programs that end without saying goodbye (`os._exit`, recycled workers).

        Returns:
            Whether it is; the application's processors are waited for a bounded time.
        """
        telemetries = [telemetry for _, telemetry in self._telemetry.values()]
        processors = () if self.collector is None else self.collector.processors
        done = [each.flush() for each in telemetries]
        return all([*done, *(processor.force_flush() for processor in processors)])

    def close(self) -> None:
        """Flush everything and let go of threads."""
        for _, telemetry in self._telemetry.values():
            telemetry.flush()
            telemetry.stop_stamping()
        if self.collector is not None:
            self.collector.shutdown()
        self.loop.close()
