"""Where the first tasks of a resumed run come from, as far as its checkpoint tells.

The run that wrote the channels they are woken by is over. A checkpoint knows for every channel
the version at which it was written, and for every node the versions that it had read when it
ran last: of the nodes with an edge to a task, those that ran last before its trigger was written
are the ones that wrote it. That is inferred, not observed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twinspan.instrumentation.frameworks.langgraph import names
from twinspan.instrumentation.frameworks.langgraph.edges import Origin
from twinspan.instrumentation.frameworks.langgraph.scope import GraphScope
from twinspan.instrumentation.gate import Topology
from twinspan.instrumentation.run import Parent


def resumed_origin(scope: GraphScope, task: Any) -> Origin:
    """The nodes that woke a task before its run began; none for a graph's first tasks."""
    checkpoint: Mapping[str, Any] = getattr(scope.loop, "checkpoint", None) or {}
    versions: Mapping[str, Any] = checkpoint.get("channel_versions") or {}
    seen: Mapping[str, Mapping[str, Any]] = checkpoint.get("versions_seen") or {}
    found: dict[str, None] = {}
    for trigger in task.triggers:
        written = _number(versions.get(trigger))
        sources = _sources(scope.run.topology, trigger, task.name)
        ran = {node: _last_run(seen.get(node), before=written) for node in sources}
        latest = max(ran.values(), default=-1)
        found.update(dict.fromkeys(node for node, when in ran.items() if when == latest >= 0))
    parents = tuple(
        Parent(node=scope.name(node), task_id="", payload_hash="", span=None) for node in found
    )
    return Origin(parents=parents, observed=not parents)


def _sources(topology: Topology, trigger: str, task: str) -> tuple[str, ...]:
    """The nodes that may write a trigger; a join says so itself."""
    if trigger.startswith(names.JOIN):
        return tuple(trigger.removeprefix(names.JOIN).rpartition(":")[0].split("+"))
    return tuple(source for source, target in topology.edges if target == task)


def _last_run(seen: Mapping[str, Any] | None, *, before: int) -> int:
    """The version that a node's trigger had when it ran last, -1 if it did not run before."""
    ran = [_number(version) for version in (seen or {}).values()]
    return max((version for version in ran if version < before), default=-1)


def _number(version: Any) -> int:
    """A channel's version as a number; checkpointers write it as one, or as `0003.<random>`.

    >>> _number(3), _number("00000000000000000000000000000003.0.12"), _number(None)
    (3, 3, -1)
    """
    if version is None:
        return -1
    return int(str(version).partition(".")[0] or 0)
