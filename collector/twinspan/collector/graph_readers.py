"""Readers of other people's graphs: each returns edges and nodes for an AgentDAG."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, cast

from twinspan.collector.edges import EDGE_KINDS, Edge, EdgeKind
from twinspan.instrumentation.errors import TopologyError

if TYPE_CHECKING:
    import networkx as nx

MARKERS: Final = frozenset({"__start__", "__end__"})
"""Nodes LangGraph draws that run nothing."""

Content: TypeAlias = tuple[list[Edge], list[str]]


class DrawnEdge(Protocol):
    """One edge of a LangGraph drawing."""

    @property
    def source(self) -> str:
        """The node that writes."""
        ...

    @property
    def target(self) -> str:
        """The node that reads."""
        ...

    @property
    def conditional(self) -> bool:
        """A routing function decides whether it is taken."""
        ...


class DrawnGraph(Protocol):
    """What LangGraph's ``get_graph()`` returns, as far as it is read here."""

    @property
    def nodes(self) -> Mapping[str, object]:
        """The drawn nodes by name."""
        ...

    @property
    def edges(self) -> Sequence[DrawnEdge]:
        """The drawn edges."""
        ...


class LangGraphLike(Protocol):
    """Anything that can draw itself the way a compiled LangGraph does."""

    def get_graph(self) -> DrawnGraph:
        """The nodes and edges."""
        ...


def read_networkx(graph: nx.DiGraph[str]) -> Content:
    """Edges and nodes of a networkx digraph."""
    if not graph.is_directed():
        raise TopologyError("the graph is undirected; use networkx.DiGraph, an edge is a hand-over")
    triples = cast("Iterable[tuple[str, str, object]]", graph.edges.data("kind"))
    edges = [Edge(source, target, _known_kind(kind)) for source, target, kind in triples]
    return edges, list(graph.nodes)


def _known_kind(kind: object) -> EdgeKind:
    # A networkx attribute of that name may mean something else to its owner.
    for known in EDGE_KINDS:
        if known == kind:
            return known
    return "static"


def read_rows(rows: Iterable[Mapping[str, object]]) -> list[Edge]:
    """Edges of recorded rows."""
    return [_row_edge(row) for row in rows]


def _row_edge(row: Mapping[str, object]) -> Edge:
    try:
        source, target = str(row["source"]), str(row["target"])
    except KeyError as missing:
        raise TopologyError(f"an edge row has no {missing}; it needs source and target") from None
    return Edge(source, target, cast(EdgeKind, row.get("kind") or "observed"))


def read_langgraph(compiled: LangGraphLike, *, subgraphs: bool) -> Content:
    """Edges and nodes of a compiled LangGraph; see :meth:`AgentDAG.from_langgraph`."""
    drawn = compiled.get_graph()
    nodes = [node for node in drawn.nodes if node not in MARKERS]
    edges = [
        Edge(edge.source, edge.target, "conditional" if edge.conditional else "static")
        for edge in drawn.edges
        if not MARKERS & {edge.source, edge.target}
    ]
    if subgraphs:
        for holder in tuple(nodes):
            inner = _held_graph(drawn.nodes[holder])
            if inner is not None:
                followers = [edge.target for edge in edges if edge.source == holder]
                inner_edges, inner_nodes = _nested(holder, inner, followers)
                edges += inner_edges
                nodes += inner_nodes
    return edges, nodes


def _held_graph(node: object) -> LangGraphLike | None:
    # Every runnable can draw itself; only a graph knows subgraphs of its own.
    data = getattr(node, "data", None)
    return cast(LangGraphLike, data) if hasattr(data, "get_subgraphs") else None


def _nested(
    holder: str, inner: LangGraphLike, followers: Sequence[str]
) -> tuple[list[Edge], list[str]]:
    edges, nodes = read_langgraph(inner, subgraphs=True)
    drawn = inner.get_graph().edges
    qualified = [
        Edge(f"{holder}/{edge.source}", f"{holder}/{edge.target}", edge.kind) for edge in edges
    ]
    entries = _beside(drawn, "__start__")
    exits = _beside(drawn, "__end__")
    qualified += [Edge(holder, f"{holder}/{entry}", "subgraph") for entry in entries]
    qualified += [
        Edge(f"{holder}/{last}", follower, "subgraph") for last in exits for follower in followers
    ]
    return qualified, [f"{holder}/{node}" for node in nodes]


def _beside(edges: Iterable[DrawnEdge], marker: str) -> Iterator[str]:
    for edge in edges:
        if edge.source == marker and edge.target not in MARKERS:
            yield edge.target
        elif edge.target == marker and edge.source not in MARKERS:
            yield edge.source
