"""The agent graph: who can hand a payload to whom."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Self, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.edges import Edge, EdgeKind, EdgeLike, deduplicated
from twinspan.collector.graph_readers import (
    LangGraphLike,
    read_langgraph,
    read_networkx,
    read_rows,
)
from twinspan.instrumentation.errors import TopologyError, UnknownNode

if TYPE_CHECKING:
    import networkx as nx

Positions: TypeAlias = NDArray[np.int32]


class AgentDAG:
    """An immutable directed graph of agent nodes, in the order in which they were named.

    The name says what the graph should be; cycles are accepted, because agent frameworks allow
    loops, and :attr:`is_acyclic` tells. Nodes are names. Two edges between the same nodes are
    one edge and keep the most certain kind (:data:`EDGE_KINDS`).

    Args:
        edges: pairs ``(source, target)``, or triples with a kind.
        nodes: names to include first, also those without an edge.

    Raises:
        TopologyError: an edge is not a pair or triple, or its kind is unknown.

    >>> dag = AgentDAG([("router", "worker"), ("router", "judge"), ("worker", "judge")])
    >>> dag.nodes
    ('router', 'worker', 'judge')
    >>> dag.successors("router")
    ('worker', 'judge')
    >>> dag.depth
    3
    >>> AgentDAG([("a", "b"), ("a", "b")]) == AgentDAG([("a", "b")])
    True
    """

    __slots__ = (
        "_depth",
        "_id",
        "_index",
        "_order",
        "_pairs",
        "_predecessors",
        "_sources",
        "_successors",
        "_targets",
    )

    def __init__(self, edges: Iterable[EdgeLike] = (), nodes: Iterable[str] | None = None) -> None:
        self._pairs = deduplicated(edges)
        names = dict.fromkeys(chain(nodes or (), chain.from_iterable(self._pairs)))
        self._index = dict(zip(names, range(len(names)), strict=True))
        ends = np.fromiter(
            map(self._index.__getitem__, chain.from_iterable(self._pairs)),
            dtype=np.int32,
            count=2 * len(self._pairs),
        )
        self._sources, self._targets = _frozen(ends[0::2]), _frozen(ends[1::2])
        self._predecessors: list[list[int]] | None = None
        self._successors: list[list[int]] | None = None
        self._order: tuple[int, ...] | None = None
        self._depth: int | None = None
        self._id: str | None = None

    @classmethod
    def from_adjacency(cls, adjacency: Mapping[str, Iterable[str]]) -> Self:
        """The graph of ``{source: targets}``.

        >>> AgentDAG.from_adjacency({"a": ["b"], "b": []}).edges
        (Edge(source='a', target='b', kind='static'),)
        """
        pairs = ((source, target) for source, targets in adjacency.items() for target in targets)
        return cls(pairs, nodes=adjacency)

    @classmethod
    def from_networkx(cls, graph: nx.DiGraph[str]) -> Self:
        """The graph of a networkx digraph; an edge attribute ``kind`` is kept.

        Raises:
            TopologyError: the graph is undirected.
        """
        edges, nodes = read_networkx(graph)
        return cls(edges, nodes)

    @classmethod
    def from_langgraph(cls, compiled: LangGraphLike, *, subgraphs: bool = True) -> Self:
        """The graph of a compiled LangGraph, or of anything with the same ``get_graph()``.

        The start and end markers are dropped. A node that holds a graph stays, and its inner
        nodes join under the name ``holder/inner``: the holder has a ``subgraph`` edge to each
        inner entry, and each inner exit one to whatever follows the holder. Edges that a
        routing function may take are ``conditional``; LangGraph does not tell a ``Send`` apart.

        Args:
            compiled: the compiled graph.
            subgraphs: False leaves the inner nodes out.
        """
        edges, nodes = read_langgraph(compiled, subgraphs=subgraphs)
        return cls(edges, nodes)

    @classmethod
    def from_rows(cls, rows: Iterable[Mapping[str, object]]) -> Self:
        """The graph of recorded edges: rows with ``source``, ``target`` and perhaps ``kind``.

        A row without a kind is ``observed``.

        >>> AgentDAG.from_rows([{"source": "a", "target": "b"}]).edges[0].kind
        'observed'
        """
        return cls(read_rows(rows))

    @property
    def nodes(self) -> tuple[str, ...]:
        """The names, in the order in which they first came up."""
        return tuple(self._index)

    @property
    def edges(self) -> tuple[Edge, ...]:
        """The edges, in the order in which they first came up."""
        return tuple(Edge(source, target, kind) for (source, target), kind in self._pairs.items())

    @property
    def index(self) -> Mapping[str, int]:
        """Position of every node in :attr:`nodes`."""
        return MappingProxyType(self._index)

    @property
    def sources(self) -> Positions:
        """Position of every edge's source node, read-only."""
        return self._sources

    @property
    def targets(self) -> Positions:
        """Position of every edge's target node, read-only."""
        return self._targets

    @property
    def predecessor_positions(self) -> Sequence[Sequence[int]]:
        """For every node the positions of the nodes with an edge into it."""
        if self._predecessors is None:
            self._predecessors = _adjacency(self._targets, self._sources, len(self))
        return self._predecessors

    @property
    def successor_positions(self) -> Sequence[Sequence[int]]:
        """For every node the positions of the nodes it has an edge to."""
        if self._successors is None:
            self._successors = _adjacency(self._sources, self._targets, len(self))
        return self._successors

    @property
    def out_degree(self) -> NDArray[np.int64]:
        """Number of different successors of every node, shape ``(len(self),)``."""
        return np.bincount(self._sources, minlength=len(self))

    def successors(self, node: str) -> tuple[str, ...]:
        """The nodes that read what ``node`` writes; raises :class:`UnknownNode`."""
        names = self.nodes
        return tuple(names[i] for i in self.successor_positions[self.position(node)])

    def predecessors(self, node: str) -> tuple[str, ...]:
        """The nodes whose output ``node`` reads; raises :class:`UnknownNode`."""
        names = self.nodes
        return tuple(names[i] for i in self.predecessor_positions[self.position(node)])

    def position(self, node: str) -> int:
        """Where ``node`` stands in :attr:`nodes`; raises :class:`UnknownNode`."""
        try:
            return self._index[node]
        except KeyError:
            raise UnknownNode(node, known=self.nodes) from None

    @property
    def is_acyclic(self) -> bool:
        """True when no path leads back to where it began."""
        return len(self._ordered()) == len(self)

    def topological_order(self) -> tuple[str, ...]:
        """Every node after all of its predecessors; ties in insertion order.

        Raises:
            TopologyError: the graph has a cycle, so there is no such order.

        >>> AgentDAG([("a", "b"), ("b", "c"), ("a", "c")]).topological_order()
        ('a', 'b', 'c')
        """
        if not self.is_acyclic:
            raise TopologyError("a graph with a cycle has no topological order; break the loop")
        names = self.nodes
        return tuple(names[i] for i in self._ordered())

    @property
    def depth(self) -> int | None:
        """Nodes on the longest path, 0 without nodes, ``None`` when a cycle has no longest path.

        This is the number of supersteps of a run in which every node waits for its
        predecessors.
        """
        if not self.is_acyclic:
            return None
        if self._depth is None:
            self._depth = self._longest_path()
        return self._depth

    def depth_of(self, covers: Callable[[str], bool]) -> int | None:
        """Supersteps in which one of some nodes can run; ``None`` with a cycle.

        A node can run in as many supersteps as there are different lengths of the paths that end
        in it. Of all nodes it is :attr:`depth`.

        Args:
            covers: which nodes are meant.

        >>> dag = AgentDAG([("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")])
        >>> dag.depth, dag.depth_of({"c", "d"}.__contains__), dag.depth_of({"x"}.__contains__)
        (4, 1, 0)
        """
        if not self.is_acyclic:
            return None
        # Bit k of a number: a path of k + 1 nodes ends here.
        reached = [0] * len(self)
        names, found = self.nodes, 0
        for place in self._ordered():
            for before in self.predecessor_positions[place]:
                reached[place] |= reached[before] << 1
            reached[place] = reached[place] or 1
            found |= reached[place] if covers(names[place]) else 0
        return found.bit_count()

    @property
    def topology_id(self) -> str:
        """32 hexadecimal digits that name the content, whatever the order of insertion.

        The first half of the SHA-256 of the sorted nodes and edges, kinds included.

        >>> one = AgentDAG([("a", "b"), ("a", "c")])
        >>> two = AgentDAG([("a", "c"), ("a", "b")])
        >>> one.topology_id == two.topology_id
        True
        >>> one.topology_id == AgentDAG([("a", "b")]).topology_id
        False
        """
        if self._id is None:
            content = [sorted(map(str, self._index)), sorted(map(_labels, self._pairs.items()))]
            text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
            self._id = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._id

    def __len__(self) -> int:
        return len(self._index)

    def __iter__(self) -> Iterator[str]:
        return iter(self._index)

    def __contains__(self, node: object) -> bool:
        return node in self._index

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AgentDAG):
            return NotImplemented
        return self._index.keys() == other._index.keys() and self._pairs == other._pairs

    def __hash__(self) -> int:
        return hash(self.topology_id)

    def __repr__(self) -> str:
        return f"AgentDAG({len(self)} nodes, {len(self._pairs)} edges, {self.topology_id[:8]})"

    def _ordered(self) -> tuple[int, ...]:
        if self._order is None:
            self._order = _topological(self.successor_positions, self.predecessor_positions)
        return self._order

    def _longest_path(self) -> int:
        level = [1] * len(self)
        for position in self._ordered():
            for successor in self.successor_positions[position]:
                level[successor] = max(level[successor], level[position] + 1)
        return max(level, default=0)


def _frozen(positions: Positions) -> Positions:
    copied = np.ascontiguousarray(positions)
    copied.setflags(write=False)
    return copied


def _adjacency(heads: Positions, tails: Positions, size: int) -> list[list[int]]:
    lists: list[list[int]] = [[] for _ in range(size)]
    pairs = cast("Iterator[tuple[int, int]]", zip(heads.tolist(), tails.tolist(), strict=True))
    for head, tail in pairs:
        lists[head].append(tail)
    return lists


def _topological(
    successors: Sequence[Sequence[int]], predecessors: Sequence[Sequence[int]]
) -> tuple[int, ...]:
    """Kahn's order; shorter than the graph when there is a cycle."""
    waiting = [len(before) for before in predecessors]
    order: list[int] = [node for node, count in enumerate(waiting) if not count]
    for node in order:  # grows while it is read
        for successor in successors[node]:
            waiting[successor] -= 1
            if not waiting[successor]:
                order.append(successor)
    return tuple(order)


def _labels(item: tuple[tuple[str, str], EdgeKind]) -> tuple[str, str, str]:
    (source, target), kind = item
    return str(source), str(target), kind


GraphLike: TypeAlias = "AgentDAG | nx.DiGraph[str] | LangGraphLike | Iterable[EdgeLike]"
"""Whatever :func:`as_dag` reads."""


def as_dag(graph: GraphLike) -> AgentDAG:
    """The :class:`AgentDAG` of any graph twinspan can read.

    Args:
        graph: an AgentDAG, a networkx digraph, a compiled LangGraph or an iterable of edges.

    >>> as_dag([("a", "b")]).nodes
    ('a', 'b')
    """
    if isinstance(graph, AgentDAG):
        return graph
    if hasattr(graph, "get_graph"):
        return AgentDAG.from_langgraph(cast(LangGraphLike, graph))
    if hasattr(graph, "is_directed"):
        return AgentDAG.from_networkx(cast("nx.DiGraph[str]", graph))
    return AgentDAG(cast("Iterable[EdgeLike]", graph))  # type: ignore[redundant-cast]
