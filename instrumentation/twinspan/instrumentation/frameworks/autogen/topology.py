"""The graph of a team: who may read whom next."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from twinspan.instrumentation.gate import ANYONE, Topology


def topology_of(team: Any) -> Topology:
    """A team's participants, and who may speak after whom.

    A graph flow says so itself, a round robin is a circle, a swarm goes by handoffs; in every
    other team anyone may follow anyone.
    """
    names = [str(agent.name) for agent in team._participants]
    edges = tuple(dict.fromkeys(_edges(team, names)))
    return Topology(
        name=str(team.name),
        nodes=tuple(names),
        edges=edges,
        conditional=frozenset(edges),
    )


def topology_of_one(agent: Any) -> Topology:
    """An agent without a team; its tools may ask others."""
    name = str(agent.name)
    has_tools = bool(getattr(agent, "_tools", None) or getattr(agent, "_workbench", None))
    return Topology(name=name, nodes=(name, ANYONE) if has_tools else (name,))


def _edges(team: Any, names: list[str]) -> Iterator[tuple[str, str]]:
    graph = getattr(team, "_graph", None)
    kind = type(team).__name__
    if graph is not None:
        for name, node in graph.nodes.items():
            yield from ((name, edge.target) for edge in node.edges)
    elif kind == "RoundRobinGroupChat":
        yield from zip(names, [*names[1:], *names[:1]], strict=True)
    elif kind == "Swarm":
        for agent in team._participants:
            handoffs = getattr(agent, "_handoffs", {}).values()
            yield from ((agent.name, handoff.target) for handoff in handoffs)
    else:
        yield from ((a, b) for a in names for b in names if a != b)
