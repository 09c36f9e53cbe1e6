"""Dependency weights: each node's share of the graph's blast radius."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Final, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.katz import DEFAULT_ATTENUATION, ClampedComponent, blast_radius
from twinspan.collector.topology import AgentDAG, GraphLike, as_dag
from twinspan.instrumentation.errors import ConfigurationError, UnknownNode
from twinspan.instrumentation.settings import WeightMethod

METHODS: Final[tuple[WeightMethod, ...]] = get_args(WeightMethod)

Vector: TypeAlias = NDArray[np.float64]


class DependencyWeights(Mapping[str, float]):
    """Weights of every node of one graph, immutable, with how they came about.

    As a mapping it holds the **shares**, which sum to 1: what the run monitor spends.
    :attr:`scaled` holds the same weights with the largest at 1: what the moving average
    multiplies a magnitude with, so that the most central node counts in full.

    Attributes:
        method: how the raw weights were computed.
        attenuation: the Katz factor asked for, ``None`` for other methods.
        clamped: strongly connected pieces in which a smaller factor was used.
        acyclic: the graph has no cycle.
        prior_applied: a prior multiplied the raw weights.
        decades: powers of ten between the smallest and the largest weight. Above about 6 the
            small end takes no part in any decision; a smaller attenuation narrows it.

    >>> weights = dependency_weights([("router", "worker"), ("router", "judge")])
    >>> weights["router"], weights.scaled["worker"]
    (0.5, 0.5)
    >>> sum(weights.values())
    1.0
    """

    __slots__ = (
        "_nodes",
        "_relative",
        "_scaled",
        "_shares",
        "acyclic",
        "attenuation",
        "clamped",
        "decades",
        "method",
        "prior_applied",
    )

    def __init__(
        self,
        nodes: tuple[str, ...],
        log_raw: Vector,
        *,
        method: WeightMethod,
        attenuation: float | None = None,
        clamped: tuple[ClampedComponent, ...] = (),
        acyclic: bool,
        prior_applied: bool = False,
    ) -> None:
        self._nodes = nodes
        self._relative = np.exp(log_raw - log_raw.max()) if len(nodes) else log_raw
        self._shares: dict[str, float] | None = None
        self._scaled: dict[str, float] | None = None
        self.method = method
        self.attenuation = attenuation
        self.clamped = clamped
        self.acyclic = acyclic
        self.prior_applied = prior_applied
        positive = log_raw[np.isfinite(log_raw)]
        self.decades = float(np.ptp(positive)) / math.log(10) if len(nodes) else 0.0

    @property
    def scaled(self) -> Mapping[str, float]:
        """The weights with the largest of the graph at 1."""
        if self._scaled is None:
            self._scaled = dict(zip(self._nodes, self._relative.tolist(), strict=True))
        return MappingProxyType(self._scaled)

    @property
    def shares(self) -> Mapping[str, float]:
        """The weights with the sum of the graph at 1: the same values as the mapping itself."""
        if self._shares is None:
            values = self._relative / (self._relative.sum() or 1.0)
            self._shares = dict(zip(self._nodes, values.tolist(), strict=True))
        return MappingProxyType(self._shares)

    def __getitem__(self, node: str) -> float:
        try:
            return self.shares[node]
        except KeyError:
            raise UnknownNode(node, known=self._nodes) from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)

    def __contains__(self, node: object) -> bool:
        return node in self.shares

    def __repr__(self) -> str:
        return f"DependencyWeights({dict(self.shares)!r}, method={self.method!r})"


def dependency_weights(
    dag: GraphLike,
    method: WeightMethod = "katz",
    attenuation: float = DEFAULT_ATTENUATION,
    prior: Mapping[str, float] | None = None,
) -> DependencyWeights:
    """The weight of every node, in one pass; compute it once per topology.

    Args:
        dag: an AgentDAG, a networkx digraph, a compiled LangGraph or an iterable of edges.
        method: ``katz`` is the blast radius of :func:`~twinspan.collector.katz.blast_radius`,
            linear in the graph; ``out_degree`` is 1 + the number of successors; ``betweenness``
            is 1 + the number of shortest paths between others that pass the node (Freeman 1977,
            unnormalised), quadratic in the graph.
        attenuation: how much one hop downstream counts, for ``katz`` only: positive and finite,
            below 1 in a graph with cycles, any size in a graph without.
        prior: a factor of at least 0 per node, 1 where none is given.

    Returns:
        Shares that sum to 1, as a mapping; empty for a graph without nodes.

    Raises:
        TopologyError: the attenuation has no meaning for this graph.
        UnknownNode: the prior names a node that the graph does not have.
        ConfigurationError: the method is unknown, or the prior is negative, not finite or zero
            for every node.

    >>> dependency_weights([("a", "b"), ("b", "c")])["a"]  # 1.75 of 1.75 + 1.5 + 1
    0.411765
    >>> dependency_weights([("hub", "a"), ("hub", "b")], method="out_degree")["hub"]
    0.6
    >>> dependency_weights([("root", "x"), ("root", "y")], prior={"x": 2})["x"]
    0.4
    """
    graph = as_dag(dag)
    if method not in METHODS:
        raise ConfigurationError(f"method {method!r} is unknown; use one of {', '.join(METHODS)}")
    radius = blast_radius(graph, attenuation) if method == "katz" else None
    log_raw = radius.log_values if radius else np.log(_COUNTS[method](graph))
    if prior is not None:
        log_raw = log_raw + _log_prior(graph, prior)
    return DependencyWeights(
        graph.nodes,
        log_raw,
        method=method,
        attenuation=attenuation if radius else None,
        clamped=radius.clamped if radius else (),
        acyclic=radius.acyclic if radius else graph.is_acyclic,
        prior_applied=prior is not None,
    )


def _degree_counts(graph: AgentDAG) -> Vector:
    return graph.out_degree.astype(np.float64) + 1.0


def _betweenness_counts(graph: AgentDAG) -> Vector:
    import networkx as nx  # half of what starting an agent under instrumentation costs

    digraph: nx.DiGraph[str] = nx.DiGraph()
    digraph.add_nodes_from(graph.nodes)
    digraph.add_edges_from((edge.source, edge.target) for edge in graph.edges)
    between = nx.betweenness_centrality(digraph, normalized=False)
    return np.array([1.0 + between[node] for node in graph.nodes])


_COUNTS: Final[dict[str, Callable[[AgentDAG], Vector]]] = {
    "out_degree": _degree_counts,
    "betweenness": _betweenness_counts,
}


def _log_prior(graph: AgentDAG, prior: Mapping[str, float]) -> Vector:
    factors = np.ones(len(graph))
    for node, factor in prior.items():
        if not (math.isfinite(factor) and factor >= 0):
            raise ConfigurationError(
                f"the prior of {node!r} is {factor!r}; it must be finite and not negative"
            )
        factors[graph.position(node)] = factor
    if len(graph) and not factors.any():
        raise ConfigurationError("the prior is zero for every node; leave one above zero")
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(factors), dtype=np.float64)
