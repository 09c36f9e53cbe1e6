"""What a task wrote: its payload, and where it sends it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from twinspan.instrumentation.frameworks.langgraph import names

Write = tuple[str, Any]

GOTO: Final = "goto"
"""Key of an answer under which a task says whom it hands on to, where it chose that itself."""


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


def command_in(left: BaseException) -> Any:
    """The `Command` with which a node left its graph."""
    return left.args[0]


def command_writes(command: Any) -> list[Write]:
    """What a `Command` to a parent graph says there, as writes.

    >>> from langgraph.types import Command
    >>> command_writes(Command(graph=Command.PARENT, goto="publish", update={"a": 1}))
    [('a', 1), ('branch:to:publish', None)]
    """
    update: list[Write] = list(command._update_as_tuples())
    wakes = [names.BRANCH + target for target in _goto(command.goto)]
    return [*update, *((channel, None) for channel in wakes)]


def _goto(goto: Any) -> list[str]:
    """The nodes that a `Command` goes to: names or `Send`s, one or several.

    >>> _goto("a"), _goto(())
    (['a'], [])
    """
    listed: list[Any] = [goto] if isinstance(goto, str) or hasattr(goto, "node") else list(goto)
    return [str(getattr(target, "node", target)) for target in listed]


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
    found: dict[str, None] = {}
    for channel, value in writes:
        node = _target(channel, value)
        if node and node != names.END:
            found[node] = None
    return tuple(found)


def static_targets(proc: Any) -> frozenset[str] | None:
    """The nodes that a node always wakes; None where a condition on the state chooses them.

    What a node wakes beside these it has chosen itself, by a `Command`.
    """
    found: set[str] = set()
    for step in getattr(proc, "steps", ())[1:]:
        entries = getattr(step, "writes", None)
        if entries is None:
            return None
        channels = (getattr(entry, "channel", None) for entry in entries)
        found.update(filter(None, (_target(each, None) for each in channels if each)))
    return frozenset(found)


class Answer(dict[str, Any]):
    """What a task answered, with the writes that say it.

    Whoever puts an answer in the place of another one needs them: a `Send` or a `Command` is
    more than its targets' names.

    Attributes:
        writes: all that the task wrote.
        targets: the nodes that they wake.
    """

    writes: tuple[Write, ...] = ()
    targets: tuple[str, ...] = ()


def answer_of(writes: Iterable[Write], static: frozenset[str] | None = None) -> Answer:
    """What a task answered: its payload, or its targets where it only routes.

    A node that routes by a `Command` answers with both: whom it hands a case to may be biased
    though what it hands on is not.

    Args:
        writes: what it wrote.
        static: the nodes that it always wakes; None where its targets are no answer of its own.

    >>> answer_of([("a", 1), ("branch:to:b", None)], frozenset({"b"}))
    {'a': 1}
    >>> answer_of([("a", 1), ("branch:to:b", None)], frozenset())
    {'a': 1, 'goto': ['b']}
    """
    listed = tuple(writes)
    payload, targets = payload_of(listed), targets_of(listed)
    chosen = [] if static is None else [each for each in targets if each not in static]
    if not payload:
        payload = {GOTO: list(targets)}
    elif chosen:
        payload[GOTO] = chosen
    answer = Answer(payload)
    answer.writes, answer.targets = listed, targets
    return answer


def replaced(writes: Iterable[Write], payload: Mapping[str, Any]) -> list[Write]:
    """The same writes with the state update replaced by `payload`.

    A node's own new answer replaces all that it wrote, also whom it hands on to; an edited
    payload leaves that as it was.

    >>> replaced([("a", 1), ("branch:to:b", None)], {"a": 2})
    [('branch:to:b', None), ('a', 2)]
    """
    if isinstance(payload, Answer):
        return list(payload.writes)
    kept = [(channel, value) for channel, value in writes if names.is_routing(channel)]
    return [*kept, *payload.items()]
