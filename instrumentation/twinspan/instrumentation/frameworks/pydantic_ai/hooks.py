"""Adds the capability to every agent run, however it is started."""

from __future__ import annotations

from typing import Any, Final

from pydantic_ai import Agent

from twinspan.instrumentation.engine import Engine
from twinspan.instrumentation.frameworks.patching import Patches
from twinspan.instrumentation.frameworks.pydantic_ai.capability import Observing
from twinspan.instrumentation.frameworks.pydantic_ai.streams import awaited, run_stream

_patches: Final = Patches()


def install(engine: Engine) -> None:
    """Hook every agent of the process: `run`, `run_sync`, `run_stream` and `iter` all iterate."""

    def iterate(wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        options = dict(kwargs)
        if args:
            options["user_prompt"] = args[0]
        given = options.get("capabilities") or ()
        observing = Observing(engine=engine, agent=agent, options=options, decided=awaited())
        return wrapped(**{**options, "capabilities": [*given, observing]})

    def stream(wrapped: Any, agent: Any, args: Any, kwargs: Any) -> Any:
        return run_stream(engine, wrapped, args, kwargs)

    _patches.wrap(Agent, "iter", iterate)
    _patches.wrap(Agent, "run_stream", stream)


def uninstall() -> None:
    """Put pydantic-ai back as it was."""
    _patches.undo()
