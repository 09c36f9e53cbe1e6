"""Runs a task's node again, with its writes going nowhere.

A re-run must leave no trace in the run: its writes go to a list of its own, its tokens and
custom events are not streamed, nothing of it is checkpointed.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import itertools
from collections import deque
from collections.abc import Generator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from langchain_core.callbacks import AsyncCallbackManager, CallbackManager
from langgraph.errors import GraphInterrupt, ParentCommand

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.writes import (
    Write,
    answer_of,
    command_in,
    command_writes,
    static_targets,
)

ASKED: Final = "asked"
"""Key of the answer of a node that asks a person and waits."""


def _silent(_: Any) -> None:
    """A stream writer that writes nowhere."""


def _fresh_read(read: Any, scratch: deque[Write]) -> Any:
    """The task's own reader, seeing the re-run's writes instead of the run's."""
    bound: tuple[Any, ...] = getattr(read, "args", ())
    if len(bound) < 4:
        return read
    scratchpad, channels, managed, task = bound[:4]
    return partial(read.func, scratchpad, channels, managed, task._replace(writes=scratch))


def human_answers(config: Any) -> tuple[Any, ...]:
    """What a person has answered to a task's questions, without using the answers up.

    Read it before the task runs: its own node takes the answers out.
    """
    given: dict[str, Any] = config or {}
    inner: dict[str, Any] = given.get(names.CONFIGURABLE) or {}
    scratchpad = inner.get(names.SCRATCHPAD)
    if scratchpad is None:
        return ()
    newest = scratchpad.get_null_resume(False)
    return (*scratchpad.resume, *(() if newest is None else (newest,)))


def _fresh_scratchpad(scratchpad: Any, answers: tuple[Any, ...]) -> Any:
    if not dataclasses.is_dataclass(scratchpad) or isinstance(scratchpad, type):
        return scratchpad
    return dataclasses.replace(
        scratchpad,
        call_counter=itertools.count().__next__,
        interrupt_counter=itertools.count().__next__,
        subgraph_counter=itertools.count().__next__,
        # The run's own answers stay where they are: a re-run must not take them from the node.
        get_null_resume=_nothing_to_resume,
        resume=list(answers),
    )


def _nothing_to_resume(consume: bool = False) -> None:
    return None


def rerun_config(
    config: dict[str, Any],
    scratch: deque[Write],
    *,
    in_loop: bool,
    answers: tuple[Any, ...] = (),
) -> dict[str, Any]:
    """A task's config for a re-run: isolated from the run's writes, streams and checkpoints.

    A question to a person is answered as it was in the run; one that was not answered yet ends
    the re-run.
    """
    inner = names.configurable_of(config)
    for key in (names.SCOPE_KEY, names.STREAM):
        inner.pop(key, None)
    inner[names.CALL] = call_inline if in_loop else call_at_once
    inner[names.SEND] = scratch.extend
    inner[names.CHECKPOINTER] = None
    inner[names.READ] = _fresh_read(inner.get(names.READ), scratch)
    inner[names.SCRATCHPAD] = _fresh_scratchpad(inner.get(names.SCRATCHPAD), answers)
    runtime = inner.get(names.RUNTIME)
    if runtime is not None:
        inner[names.RUNTIME] = runtime.override(stream_writer=_silent)
    # Handlers of the run would stream the re-run's tokens; those that instrumentations add to
    # every manager still see it.
    manager = AsyncCallbackManager([]) if in_loop else CallbackManager([])
    return {**config, names.CONFIGURABLE: inner, "callbacks": manager, "run_id": None}


def call_at_once(func: Any, given: Any, **_: Any) -> Future[Any]:
    """Call a task of the functional API within a re-run: no scheduling, no checkpoint."""
    args, kwargs = given
    done: Future[Any] = Future()
    try:
        done.set_result(func(*args, **kwargs))
    except Exception as error:
        done.set_exception(error)
    return done


def call_inline(func: Any, given: Any, **_: Any) -> Any:
    """The same on an event loop; for plain code that runs in a thread, at once."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return call_at_once(func, given)
    args, kwargs = given
    if inspect.iscoroutinefunction(func):
        return asyncio.ensure_future(func(*args, **kwargs))
    return asyncio.ensure_future(asyncio.to_thread(func, *args, **kwargs))


@contextmanager
def _told(scratch: deque[Write]) -> Generator[None]:
    """What a node says by an exception is an answer: it leaves its graph, or asks a person."""
    try:
        yield
    except ParentCommand as left:
        scratch.extend(command_writes(command_in(left)))
    except GraphInterrupt as asked:
        questions = [getattr(each, "value", each) for each in asked.args[0]]
        scratch.append((ASKED, questions))


def rerun(proc: Any, config: dict[str, Any], payload: Any, answers: tuple[Any, ...] = ()) -> Any:
    """Run a task's node again on `payload`; returns its answer."""
    scratch: deque[Write] = deque()
    with _told(scratch):
        proc.invoke(payload, rerun_config(config, scratch, in_loop=False, answers=answers))
    return answer_of(scratch, static_targets(proc))


async def arerun(
    proc: Any, config: dict[str, Any], payload: Any, answers: tuple[Any, ...] = ()
) -> Any:
    """The same on an event loop."""
    scratch: deque[Write] = deque()
    with _told(scratch):
        await proc.ainvoke(payload, rerun_config(config, scratch, in_loop=True, answers=answers))
    return answer_of(scratch, static_targets(proc))


async def rerun_in_thread(
    proc: Any, config: dict[str, Any], payload: Any, answers: tuple[Any, ...] = ()
) -> Any:
    """Plain code for those who await it."""
    return await asyncio.to_thread(rerun, proc, config, payload, answers)
