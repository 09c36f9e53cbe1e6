"""Katz blast radius: how much of the run lies downstream of a node."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.topology import AgentDAG, GraphLike, as_dag
from twinspan.instrumentation.errors import TopologyError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

# scipy is imported where it is needed: a third of what starting a command or an agent costs.

DEFAULT_ATTENUATION: Final = 0.5

SMALL: Final = 256
"""Nodes up to which a graph without cycles is solved node by node."""

SAFE_GAIN: Final = 0.5
"""Largest attenuation times spectral radius allowed inside a loop: far from divergence at 1."""

SETTLED: Final = 1e-14

Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClampedComponent:
    """A strongly connected piece in which the asked attenuation was too strong.

    Attributes:
        nodes: the nodes of the piece.
        spectral_radius: growth of the number of walks per step inside it, at least 1.
        attenuation: the factor used for these nodes instead, ``0.5 / spectral_radius``.
    """

    nodes: tuple[str, ...]
    spectral_radius: float
    attenuation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BlastRadius:
    """Katz values of a whole graph.

    Attributes:
        log_values: natural logarithm of k per node, in the order of the graph's nodes.
        attenuation: the factor asked for.
        acyclic: the graph has no cycle.
        clamped: the pieces that got a smaller factor.
    """

    log_values: Vector
    attenuation: float
    acyclic: bool
    clamped: tuple[ClampedComponent, ...] = ()


def katz_weight(dag: GraphLike, node: str, attenuation: float = DEFAULT_ATTENUATION) -> float:
    """Downstream blast radius of one node: Katz centrality along the direction of the edges.

    ``k = 1 + attenuation * sum(k of the successors)``: each walk that leaves the node counts,
    a walk of length n with the factor ``attenuation ** n``. So a leaf has 1 and a node counts
    the more, the more there is downstream (Katz 1953, on the transposed matrix of the usual
    definition, which measures influence that comes in).

    Args:
        dag: any graph :func:`~twinspan.collector.topology.as_dag` reads.
        node: the node.
        attenuation: positive; below 1 if the graph has a cycle. See :func:`blast_radius`.

    Returns:
        k, at least 1.

    Raises:
        UnknownNode: the graph has no such node.
        TopologyError: the attenuation has no meaning, or k is too large for a float.

    >>> chain = [("a", "b"), ("b", "c")]
    >>> [katz_weight(chain, node) for node in "abc"]
    [1.75, 1.5, 1.0]
    """
    graph = as_dag(dag)
    position = graph.position(node)
    log_value = float(blast_radius(graph, attenuation).log_values[position])
    try:
        return math.exp(log_value)
    except OverflowError:
        raise TopologyError(
            f"the blast radius of {node!r} is e**{log_value:.0f}, more than a float holds; "
            "use dependency_weights, which only needs ratios"
        ) from None


def blast_radius(graph: AgentDAG, attenuation: float = DEFAULT_ATTENUATION) -> BlastRadius:
    """Katz values of every node, in time and memory linear in nodes and edges.

    Without a cycle the values follow from the leaves upwards and exist for every positive
    attenuation, also above 1. With a cycle the walks are endless; inside a strongly connected
    piece the factor is therefore limited to ``0.5 / spectral_radius`` of that piece. The limit
    holds for the edges that leave the nodes of the piece and for no others, and is reported.

    Args:
        graph: the graph.
        attenuation: how much one hop downstream counts; positive and finite, below 1 if there
            is a cycle. A knob for how far downstream one cares.

    Raises:
        TopologyError: the attenuation has no meaning for this graph.

    >>> loop = AgentDAG([("write", "review"), ("review", "write"), ("review", "send")])
    >>> [round(math.exp(value), 3) for value in blast_radius(loop, 0.4).log_values]
    [1.857, 2.143, 1.0]
    >>> blast_radius(loop, 0.9).clamped[0].attenuation
    0.5
    """
    _check_positive(attenuation)
    if not len(graph):
        return BlastRadius(log_values=np.zeros(0), attenuation=attenuation, acyclic=True)
    values = (
        _followed(graph, attenuation) if len(graph) <= SMALL else _substituted(graph, attenuation)
    )
    if values is not None:
        return BlastRadius(log_values=np.log(values), attenuation=attenuation, acyclic=True)
    return _Condensed(graph, attenuation).solve()


def _check_positive(attenuation: float) -> None:
    if not (math.isfinite(attenuation) and attenuation > 0):
        raise TopologyError(f"attenuation {attenuation!r} must be positive; 0.5 is the default")


def _followed(graph: AgentDAG, attenuation: float) -> Vector | None:
    """The same as `_substituted`, for a graph so small that importing scipy would take longer."""
    if not graph.is_acyclic:
        return None
    values = [1.0] * len(graph)
    for name in reversed(graph.topological_order()):
        place = graph.position(name)
        below = sum(values[each] for each in graph.successor_positions[place])
        values[place] += attenuation * below
    return np.array(values) if all(map(math.isfinite, values)) else None


def _substituted(graph: AgentDAG, attenuation: float) -> Vector | None:
    """Substitution from the leaves up; ``None`` with a cycle or beyond the range of a float.

    Strongly connected pieces are numbered leaves first. In that order the matrix of a graph
    without cycles is triangular, which is checked, since scipy does not promise the numbering.
    """
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import spsolve_triangular

    size = len(graph)
    count, piece = _pieces(graph)
    rows, columns = piece[graph.sources], piece[graph.targets]
    if count < size or not np.all(rows > columns):
        return None
    diagonal = np.arange(size, dtype=np.int32)
    entries = np.concatenate([np.full(len(rows), -attenuation), np.ones(size)])
    places = (np.concatenate([rows, diagonal]), np.concatenate([columns, diagonal]))
    matrix = csr_array((entries, places), shape=(size, size))
    values = spsolve_triangular(matrix, np.ones(size), unit_diagonal=True, overwrite_A=True)
    return np.asarray(values)[piece] if np.all(np.isfinite(values)) else None


class _Condensed:
    """The general case: strongly connected pieces from the leaves up, in logarithms."""

    def __init__(self, graph: AgentDAG, attenuation: float) -> None:
        self.graph = graph
        self.attenuation = attenuation
        self.piece: list[int] = _pieces(graph)[1].tolist()
        self.members = _members(self.piece)
        self.log_values = np.zeros(len(graph))
        self.clamped: list[ClampedComponent] = []
        self.acyclic = True

    def solve(self) -> BlastRadius:
        for piece in self._leaves_first():
            self._solve_piece(self.members[piece])
        self.clamped.sort(key=lambda component: self.graph.position(component.nodes[0]))
        return BlastRadius(
            log_values=self.log_values,
            attenuation=self.attenuation,
            acyclic=self.acyclic,
            clamped=tuple(self.clamped),
        )

    def _leaves_first(self) -> list[int]:
        waiting = [0] * len(self.members)
        for source in self._crossing_sources():
            waiting[self.piece[source]] += 1
        order = [piece for piece, count in enumerate(waiting) if not count]
        for piece in order:  # grows while it is read
            for node in self.members[piece]:
                for before in self.graph.predecessor_positions[node]:
                    source = self.piece[before]
                    if source != piece:
                        waiting[source] -= 1
                        if not waiting[source]:
                            order.append(source)
        return order

    def _crossing_sources(self) -> list[int]:
        pairs = zip(self.graph.sources.tolist(), self.graph.targets.tolist(), strict=True)
        return [source for source, target in pairs if self.piece[source] != self.piece[target]]

    def _solve_piece(self, nodes: Sequence[int]) -> None:
        if len(nodes) == 1 and nodes[0] not in self.graph.successor_positions[nodes[0]]:
            self.log_values[nodes[0]] = self._from_outside(nodes[0], self.attenuation)
            return
        self.acyclic = False
        inside = self._inside(nodes)
        factor = self._safe_factor(nodes, inside)
        outside = np.array([self._from_outside(node, factor) for node in nodes])
        self.log_values[list(nodes)] = _fixed_point(inside, outside, math.log(factor))

    def _inside(self, nodes: Sequence[int]) -> csr_array:
        from scipy.sparse import csr_array

        local = {node: row for row, node in enumerate(nodes)}
        pairs = [
            (local[node], local[successor])
            for node in nodes
            for successor in self.graph.successor_positions[node]
            if successor in local
        ]
        rows, columns = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        shape = (len(nodes), len(nodes))
        return csr_array((np.ones(len(pairs)), (rows, columns)), shape=shape)

    def _safe_factor(self, nodes: Sequence[int], inside: csr_array) -> float:
        if self.attenuation >= 1:
            raise TopologyError(
                f"attenuation {self.attenuation:g} needs a graph without cycles; use one below 1"
            )
        from twinspan.collector.spectral import spectral_radius

        radius = spectral_radius(inside)
        limit = SAFE_GAIN / radius
        if self.attenuation <= limit * (1 + 1e-9):
            return self.attenuation
        names = self.graph.nodes
        component = ClampedComponent(
            nodes=tuple(names[node] for node in sorted(nodes)),
            spectral_radius=radius,
            attenuation=limit,
        )
        self.clamped.append(component)
        return limit

    def _from_outside(self, node: int, factor: float) -> float:
        piece = self.piece[node]
        logs = [
            self.log_values[successor]
            for successor in self.graph.successor_positions[node]
            if self.piece[successor] != piece
        ]
        return float(np.logaddexp.reduce([0.0, *(math.log(factor) + value for value in logs)]))


def _pieces(graph: AgentDAG) -> tuple[int, NDArray[np.int32]]:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    entries = (np.ones(len(graph.sources)), (graph.sources, graph.targets))
    adjacency = csr_array(entries, shape=(len(graph), len(graph)))
    return connected_components(adjacency, directed=True, connection="strong")


def _members(piece: Sequence[int]) -> list[list[int]]:
    members: list[list[int]] = [[] for _ in range(max(piece, default=-1) + 1)]
    for node, label in enumerate(piece):
        members[label].append(node)
    return members


def _fixed_point(inside: csr_array, outside: Vector, log_factor: float) -> Vector:
    """Solves log k = log(exp(outside) + factor * inside @ k); each sweep halves the error."""
    row_of = np.repeat(np.arange(inside.shape[0]), np.diff(inside.indptr))
    starts = inside.indptr[:-1]
    values = outside
    while True:
        terms = values[inside.indices]
        peak = np.maximum.reduceat(terms, starts)
        spread = np.add.reduceat(np.exp(terms - peak[row_of]), starts)
        updated = np.logaddexp(outside, log_factor + peak + np.log(spread))
        if np.max(np.abs(updated - values)) <= SETTLED * max(1.0, float(np.max(updated))):
            return np.asarray(updated, dtype=np.float64)
        values = updated
