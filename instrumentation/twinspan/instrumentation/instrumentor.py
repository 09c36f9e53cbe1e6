"""`TwinspanInstrumentor`: one call that adds spans, probes and the gate to existing agents."""

from __future__ import annotations

import importlib
import logging
from collections.abc import Collection
from importlib.util import find_spec
from typing import Any, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.gate import Collector, load_collector
from twinspan.instrumentation.settings import Settings

_logger = logging.getLogger(__name__)

FRAMEWORKS: Final = {
    "contextvars": "twinspan.instrumentation.frameworks.python",
    "langgraph": "twinspan.instrumentation.frameworks.langgraph",
}
"""Installed package, and our module that hooks it; plain Python is always there."""


class TwinspanInstrumentor(BaseInstrumentor):  # type: ignore[misc]
    """Instruments the agent frameworks that are installed.

    `instrument()` takes every option of `Settings` by its name, and

    - `config`: path of a `twinspan.toml`;
    - `tracer_provider`: the application's provider, if it is not the global one;
    - `collector`: what decides and records; the installed one if not given, None for spans only.

    Arguments win over the environment, the environment over the file.

    Attributes:
        engine: what the present instrumentation set up; None while uninstrumented.

    Example::

        TwinspanInstrumentor().instrument(
            axes=["gender"], nodes=["analyst_*"], mode="repair", record="spans"
        )
    """

    engine: Engine | None = None

    def instrumentation_dependencies(self) -> Collection[str]:
        """Nothing is required: what is not installed is not hooked."""
        return ()

    def _instrument(self, **kwargs: Any) -> None:
        config = kwargs.pop("config", None)
        provider = kwargs.pop("tracer_provider", None)
        is_given = "collector" in kwargs
        given: Collector | None = kwargs.pop("collector", None)
        settings = Settings.resolve(kwargs, config=config)
        collector = given if is_given else load_collector(settings)
        type(self).engine = engine = Engine(settings, collector, tracer_provider=provider)
        for package, module in FRAMEWORKS.items():
            if find_spec(package) is not None:
                importlib.import_module(module).install(engine)

    def _uninstrument(self, **kwargs: Any) -> None:
        for package, module in FRAMEWORKS.items():
            if find_spec(package) is not None:
                importlib.import_module(module).uninstall()
        if self.engine is not None:
            self.engine.close()
        type(self).engine = None
