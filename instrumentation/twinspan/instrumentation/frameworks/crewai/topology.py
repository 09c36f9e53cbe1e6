"""The graph of a crew: whose output may reach whom."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinspan.instrumentation.gate import ANYONE, Topology
from twinspan.instrumentation.narrowing import as_sequence


def name_of(agent: Any) -> str:
    """An agent is known by its role."""
    return str(agent.role).strip()


def topology_of(crew: Any) -> Topology:
    """A crew's agents, and who may read whose output.

    In a sequential crew a task reads the outputs that its `context` lists, all earlier ones if it
    says nothing. In a hierarchical one the manager and every agent may reach each other.
    """
    nodes = [name_of(agent) for agent in crew.agents]
    nodes += [name_of(task.agent) for task in crew.tasks if task.agent is not None]
    edges = tuple(dict.fromkeys(_edges(crew)))
    listed = dict.fromkeys([*nodes, *(node for edge in edges for node in edge)])
    return Topology(name=str(crew.name or "crew"), nodes=tuple(listed), edges=edges)


def topology_of_one(agent: Any) -> Topology:
    """An agent without a crew; its tools may ask others."""
    name = name_of(agent)
    return Topology(name=name, nodes=(name, ANYONE) if agent.tools else (name,))


def _edges(crew: Any) -> Iterator[tuple[str, str]]:
    manager = getattr(crew, "manager_agent", None)
    if getattr(crew.process, "value", crew.process) == "hierarchical":
        lead = "Crew Manager" if manager is None else name_of(manager)
        for agent in crew.agents:
            yield lead, name_of(agent)
            yield name_of(agent), lead
        return
    for position, task in enumerate(crew.tasks):
        for source in sources_of(task, crew.tasks[:position]):
            if source.agent is not None and task.agent is not None:
                yield name_of(source.agent), name_of(task.agent)


def sources_of(task: Any, earlier: Any) -> list[Any]:
    """The tasks whose outputs a task reads."""
    listed = as_sequence(task.context)
    if listed is not None:
        return list(listed)
    return [] if task.context is None else list(earlier)
