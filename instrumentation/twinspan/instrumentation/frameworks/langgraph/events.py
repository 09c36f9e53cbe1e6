"""Events of a graph that `astream_events` tells: held back until their superstep is decided.

Nodes, models and tools tell them while they run. Where the breaker enforces they wait for the next
event of the graph itself, which comes when a superstep has closed. What a halted superstep told is
not shown, and of a node whose payload was replaced only that it began and what it handed on.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

Event = dict[str, Any]

_replaced: Final[ContextVar[dict[str, Any] | None]] = ContextVar("twinspan_langgraph_events")


def tell_replaced(task_id: str, payload: Any) -> None:
    """A payload was replaced at its superstep's end; nothing happens where nobody watches."""
    replaced = _replaced.get(None)
    if replaced is not None:
        replaced[task_id] = payload


async def held_events(wrapped: Any, input_: Any, config: Any, kwargs: Any) -> AsyncIterator[Event]:
    """The events of a graph, those of a superstep only once it is decided."""
    config = dict(config or {})
    root = str(config.setdefault("run_id", uuid.uuid4()))
    replaced: dict[str, Any] = {}
    events = wrapped(input_, config, **kwargs)
    waiting: list[Event] = []
    try:
        while (event := await _next(events, replaced)) is not None:
            if event["run_id"] != root:
                waiting.append(event)
                continue
            for each in _shown(waiting, replaced):
                yield each
            waiting = []
            yield event
        for each in _shown(waiting, replaced):
            yield each
    finally:
        await events.aclose()


async def _next(events: Any, replaced: dict[str, Any]) -> Event | None:
    """The next event; the graph's tasks, which begin with the first one, know who watches."""
    with _watched(replaced):
        found: Event | None = await anext(events, None)
        return found


@contextmanager
def _watched(replaced: dict[str, Any]) -> Generator[None]:
    token = _replaced.set(replaced)
    try:
        yield
    finally:
        _replaced.reset(token)


def _shown(events: list[Event], replaced: Mapping[str, Any]) -> list[Event]:
    shown: list[Event] = []
    for event in events:
        task = _task_of(event, replaced)
        if task is None:
            shown.append(event)
        elif _is_of_node(event) and event["event"] == "on_chain_start":
            shown.append(event)
        elif _is_of_node(event) and event["event"] == "on_chain_end":
            shown.append({**event, "data": {**event["data"], "output": replaced[task]}})
    return shown


def _task_of(event: Event, replaced: Mapping[str, Any]) -> str | None:
    """The replaced task that an event comes from."""
    place = str(event.get("metadata", {}).get("langgraph_checkpoint_ns", ""))
    return next((task for task in replaced if task in place), None)


def _is_of_node(event: Event) -> bool:
    return bool(event.get("name") == event.get("metadata", {}).get("langgraph_node"))
