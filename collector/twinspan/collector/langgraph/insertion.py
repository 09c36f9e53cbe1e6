"""Inserts the breaker nodes into a graph that exists already."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Any

from twinspan.collector.langgraph.nodes import (
    MITIGATION_NODES,
    PANEL,
    PERSON,
    REPAIR,
    SKEPTIC,
    breaker_of,
    make_breaker,
    release,
    release_of,
)
from twinspan.collector.langgraph.state import BiasState
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.frameworks.langgraph.explicit import CONTROL, GATE, MITIGATION


def guard(builder: Any, nodes: Sequence[str]) -> Any:
    """Put breakers behind nodes of a `StateGraph`, and one mitigation subgraph behind them.

    A guarded node's edges, joins and conditions are kept; they begin at its release, which its
    breaker lets through or the mitigation reaches by `Command(goto=..., update=...)`. Compile
    the graph afterwards, as ever. It needs twinspan instrumented with `mode` `repair` or `halt`;
    otherwise the breakers let everything pass. A node that hands on by a `Command` of its own
    cannot be guarded so: there the gate raises `BiasHalt`, as without `guard`.

    Args:
        builder: the `StateGraph`, before `compile`.
        nodes: globs of the nodes to guard.

    Returns:
        The builder.

    Raises:
        ConfigurationError: no node has such a name, or the graph is guarded already.

    >>> from typing import TypedDict
    >>> from langgraph.graph import START, StateGraph
    >>> class State(TypedDict, total=False):
    ...     answer: str
    >>> graph = StateGraph(State)
    >>> _ = graph.add_node("analyst", lambda state: {"answer": "yes"})
    >>> _ = graph.add_edge(START, "analyst")
    >>> guard(graph, ["analyst"]).compile().invoke({})
    {'answer': 'yes'}
    """
    guarded = [name for name in builder.nodes if any(fnmatchcase(name, each) for each in nodes)]
    if not guarded:
        raise ConfigurationError(
            f"no node is named like {', '.join(map(repr, nodes))}; the graph has "
            f"{', '.join(builder.nodes)}"
        )
    if PERSON in builder.nodes:
        raise ConfigurationError("the graph is guarded already; name all nodes in one call")
    for node in guarded:
        _move_edges(builder, node)
        _add_gate(builder, node)
    releases = tuple(release_of(node) for node in guarded)
    for name, (work, beside) in MITIGATION_NODES.items():
        targets = releases if name in (REPAIR, PANEL, PERSON) else ()
        builder.add_node(
            name,
            work,
            metadata={CONTROL: MITIGATION},
            destinations=(*beside, *targets),
            input_schema=BiasState if name == PANEL else dict,
        )
    builder.add_edge(SKEPTIC, PANEL)
    return builder


def _add_gate(builder: Any, node: str) -> None:
    builder.add_node(
        breaker_of(node),
        make_breaker(node),
        metadata={CONTROL: GATE},
        destinations=(release_of(node), "bias.router"),
        input_schema=BiasState,
    )
    builder.add_node(
        release_of(node),
        release,
        metadata={CONTROL: GATE},
        # A condition reads the state as the node that it follows does.
        input_schema=builder.nodes[node].input_schema,
    )
    builder.add_edge(node, breaker_of(node))


def _move_edges(builder: Any, node: str) -> None:
    """Have everything that begins at a node begin at its release."""
    begins = release_of(node)
    builder.edges = {
        (begins if source == node else source, target) for source, target in builder.edges
    }
    builder.waiting_edges = {
        (tuple(begins if source == node else source for source in sources), target)
        for sources, target in builder.waiting_edges
    }
    if node in builder.branches:
        builder.branches[begins] = builder.branches.pop(node)
