"""`BiasState`: what breaker nodes keep in a graph's state; plain data, fit for a checkpoint."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Annotated, Any, TypedDict


class Incident(TypedDict):
    """A frozen payload and what became of it.

    Attributes:
        id: the incident.
        node: the node whose payload was frozen.
        task_id: its execution.
        reason: why, from the breaker's closed list.
        outcome: `open`, `repaired`, `escalated`, `released` or `replaced`.
    """

    id: str
    node: str
    task_id: str
    reason: str
    outcome: str


def latest(old: dict[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Merge by node; a node whose new value is None is forgotten.

    >>> latest({"a": 1, "b": 2}, {"a": None, "c": 3})
    {'b': 2, 'c': 3}
    """
    merged = {**(old or {}), **new}
    return {node: value for node, value in merged.items() if value is not None}


class BiasState(TypedDict, total=False):
    """The channels of the breaker nodes; `guard` adds them to a graph's own state.

    Attributes:
        bias_incidents: the incidents of the run, by node.
        bias_frozen: payloads that were stopped, by node. They are recovered from here, and
            leave when their incident ends: a frozen payload is never committed later.
        bias_reviews: what skeptics said, with the incident that it was about.
    """

    bias_incidents: Annotated[dict[str, Incident], latest]
    bias_frozen: Annotated[dict[str, Any], latest]
    bias_reviews: Annotated[list[dict[str, Any]], operator.add]
