"""`TwinspanInstrumentor`: one call that adds spans, probes and the gate to existing agents."""

from __future__ import annotations

import importlib
import logging
import sys
from collections.abc import Collection
from importlib.util import find_spec
from typing import Any, Final

from opentelemetry.instrumentation.instrumentor import BaseInstrumentor  # type: ignore[attr-defined]
from wrapt import register_post_import_hook

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.gate import Collector, load_collector
from twinspan.instrumentation.safety import harmless
from twinspan.instrumentation.settings import Settings

_logger = logging.getLogger(__name__)

IN_PLACE: Final = {
    "contextvars": "twinspan.instrumentation.frameworks.python",
    "langgraph": "twinspan.instrumentation.frameworks.langgraph",
}
"""Installed package, and our module that hooks it at once; plain Python is always there."""

ON_USE: Final = {
    "agents": ("twinspan.instrumentation.frameworks.openai_agents", "RunHooks"),
    "autogen_agentchat": ("twinspan.instrumentation.frameworks.autogen", "__version__"),
    "crewai": ("twinspan.instrumentation.frameworks.crewai", "Crew"),
    "pydantic_ai": ("twinspan.instrumentation.frameworks.pydantic_ai", "Agent"),
}
"""Package that is hooked when the application imports it, our module, and a name that tells it
from another package of that name."""

_awaited: Final[set[str]] = set()
_hooked: Final[set[str]] = set()
"""Our modules that have hooked a framework on use."""


_OF_OPENTELEMETRY: Final = ("meter_provider", "logger_provider", "auto_instrumentation_version")
"""What OpenTelemetry hands to every instrumentation and twinspan has no use for."""


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

    def flush(self) -> bool:
        """Have every ended span on disk and handed on, before the process goes away.

        An ordinary exit does so by itself. A worker that is killed or leaves by `os._exit` calls
        this at the end of its work.

        Returns:
            Whether everything is; True while uninstrumented.
        """
        return self.engine is None or self.engine.flush()

    def _instrument(self, **kwargs: Any) -> None:
        config = kwargs.pop("config", None)
        provider = kwargs.pop("tracer_provider", None)
        for theirs in _OF_OPENTELEMETRY:
            kwargs.pop(theirs, None)
        is_given = "collector" in kwargs
        given: Collector | None = kwargs.pop("collector", None)
        settings = Settings.resolve(kwargs, config=config)
        collector = given if is_given else load_collector(settings)
        type(self).engine = engine = Engine(settings, collector, tracer_provider=provider)
        for package, module in IN_PLACE.items():
            if find_spec(package) is not None:
                importlib.import_module(module).install(engine)
        for package in ON_USE:
            self._hook_on_use(package)

    def _hook_on_use(self, package: str) -> None:
        """Hook a framework now if it is in use, else as soon as it is."""
        if package in sys.modules:
            self._hook(package)
        elif package not in _awaited:
            _awaited.add(package)
            register_post_import_hook(lambda _: self._hook(package), package)

    def _hook(self, package: str) -> None:
        module, name = ON_USE[package]
        engine = self.engine
        if engine is None or not hasattr(sys.modules[package], name):
            return
        with harmless(engine.failures, f"hooking {package}"):
            importlib.import_module(module).install(engine)
            _hooked.add(module)

    def _uninstrument(self, **kwargs: Any) -> None:
        for package, module in IN_PLACE.items():
            if find_spec(package) is not None:
                importlib.import_module(module).uninstall()
        while _hooked:
            importlib.import_module(_hooked.pop()).uninstall()
        if self.engine is not None:
            self.engine.close()
        type(self).engine = None
