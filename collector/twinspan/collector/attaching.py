"""Sets up what listens and decides, as the options ask for."""

from __future__ import annotations

from twinspan.collector.control import ControlGate
from twinspan.collector.recorder import Recorder
from twinspan.instrumentation.settings import Settings


def attach(settings: Settings) -> ControlGate:
    """The collector for these options: control, and a recorder where a folder is named.

    `TwinspanInstrumentor` finds it by the entry point `twinspan_collector`.
    """
    options = settings.record
    recorder = None
    if options.record is not None:
        recorder = Recorder(
            options.record, max_spans=options.flush_spans, max_seconds=options.flush_seconds
        )
    return ControlGate(settings, recorder=recorder)
