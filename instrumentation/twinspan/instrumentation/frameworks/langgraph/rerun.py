"""Runs a task's node again, with its writes going nowhere.

A re-run must leave no trace in the run: its writes go to a list of its own, its tokens and
custom events are not streamed, nothing of it is checkpointed.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import deque
from functools import partial
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.writes import Write, answer_of


def _silent(_: Any) -> None:
    """A stream writer that writes nowhere."""


def _fresh_read(read: Any, scratch: deque[Write]) -> Any:
    """The task's own reader, seeing the re-run's writes instead of the run's."""
    bound: tuple[Any, ...] = getattr(read, "args", ())
    if len(bound) < 4:
        return read
    scratchpad, channels, managed, task = bound[:4]
    return partial(read.func, scratchpad, channels, managed, task._replace(writes=scratch))


def _fresh_scratchpad(scratchpad: Any) -> Any:
    if not dataclasses.is_dataclass(scratchpad) or isinstance(scratchpad, type):
        return scratchpad
    return dataclasses.replace(
        scratchpad,
        call_counter=itertools.count().__next__,
        interrupt_counter=itertools.count().__next__,
        subgraph_counter=itertools.count().__next__,
        resume=[],
    )


def rerun_config(config: dict[str, Any], scratch: deque[Write], *, in_loop: bool) -> dict[str, Any]:
    """A task's config for a re-run: isolated from the run's writes, streams and checkpoints."""
    inner = names.configurable_of(config)
    for key in (names.SCOPE_KEY, names.STREAM, names.CALL):
        inner.pop(key, None)
    inner[names.SEND] = scratch.extend
    inner[names.CHECKPOINTER] = None
    inner[names.READ] = _fresh_read(inner.get(names.READ), scratch)
    inner[names.SCRATCHPAD] = _fresh_scratchpad(inner.get(names.SCRATCHPAD))
    runtime = inner.get(names.RUNTIME)
    if runtime is not None:
        inner[names.RUNTIME] = runtime.override(stream_writer=_silent)
    # Handlers of the run would stream the re-run's tokens; those that instrumentations add to
    # every manager still see it.
    manager = AsyncCallbackManager([]) if in_loop else CallbackManager([])
    return {**config, names.CONFIGURABLE: inner, "callbacks": manager, "run_id": None}


def rerun(proc: Any, config: dict[str, Any], payload: Any) -> Any:
    """Run a task's node again on `payload`; returns its answer."""
    scratch: deque[Write] = deque()
    proc.invoke(payload, rerun_config(config, scratch, in_loop=False))
    return answer_of(scratch)


async def arerun(proc: Any, config: dict[str, Any], payload: Any) -> Any:
    """The same on an event loop."""
    scratch: deque[Write] = deque()
    await proc.ainvoke(payload, rerun_config(config, scratch, in_loop=True))
    return answer_of(scratch)
