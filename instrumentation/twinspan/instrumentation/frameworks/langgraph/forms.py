"""What a node's runnable tells of all its executions, found out once."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

from twinspan.instrumentation.frameworks.langgraph.writes import static_targets


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeForm:
    """What does not change from one execution of a node to the next.

    Attributes:
        targets: the nodes that it always wakes; None where a condition chooses them.
        is_tool: whether it calls the tools that a model asked for.
    """

    targets: frozenset[str] | None
    is_tool: bool


_known: weakref.WeakKeyDictionary[Any, NodeForm] = weakref.WeakKeyDictionary()


def form_of(proc: Any) -> NodeForm:
    """The form of a node, by the runnable of its tasks.

    >>> from langchain_core.runnables import RunnableLambda
    >>> form_of(RunnableLambda(str)).is_tool
    False
    """
    try:
        known = _known.get(proc)
    except TypeError:  # not every runnable can be hashed
        return _read(proc)
    if known is None:
        known = _known[proc] = _read(proc)
    return known


def _read(proc: Any) -> NodeForm:
    steps = getattr(proc, "steps", [proc])
    return NodeForm(
        targets=static_targets(proc),
        is_tool=any(type(step).__name__ == "ToolNode" for step in steps),
    )
