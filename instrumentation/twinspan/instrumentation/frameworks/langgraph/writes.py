"""What a task wrote: its payload, and where it sends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from twinspan.instrumentation.frameworks.langgraph import names

Write = tuple[str, Any]


def payload_of(writes: Iterable[Write]) -> dict[str, Any]:
    """The state update among a task's writes; a channel written more than once gives a list.

    >>> payload_of([("verdict", "refer"), ("branch:to:reviewer", None)])
    {'verdict': 'refer'}
    """
    payload: dict[str, Any] = {}
    repeated: set[str] = set()
    for channel, value in writes:
        if names.is_routing(channel):
            continue
        if channel not in payload:
            payload[channel] = value
        elif channel in repeated:
            payload[channel].append(value)
        else:
            payload[channel] = [payload[channel], value]
            repeated.add(channel)
    return payload


def _target(channel: str, value: Any) -> str | None:
    if channel.startswith(names.BRANCH):
        return channel.removeprefix(names.BRANCH)
    if channel.startswith(names.JOIN):
        return channel.rpartition(":")[2]
    if channel == names.TASKS:
        return getattr(value, "node", None)
    return None


def targets_of(writes: Iterable[Write]) -> tuple[str, ...]:
    """The nodes that a task's writes wake, in order and once each.

    >>> targets_of([("verdict", 1), ("branch:to:a", None), ("join:x+y:b", "x")])
    ('a', 'b')
    """
    found = (_target(channel, value) for channel, value in writes)
    return tuple(dict.fromkeys(node for node in found if node and node != names.END))


def answer_of(writes: Iterable[Write]) -> Any:
    """What a task answered: its payload, or its targets where it only routes."""
    listed = list(writes)
    payload = payload_of(listed)
    return payload or {"goto": list(targets_of(listed))}


def replaced(writes: Iterable[Write], payload: Mapping[str, Any]) -> list[Write]:
    """The same writes with the state update replaced by `payload`.

    >>> replaced([("a", 1), ("branch:to:b", None)], {"a": 2})
    [('branch:to:b', None), ('a', 2)]
    """
    kept = [(channel, value) for channel, value in writes if names.is_routing(channel)]
    return [*kept, *payload.items()]
