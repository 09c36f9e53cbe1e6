"""The run monitor: one number that an unbiased run almost never lets grow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Self

from twinspan.collector.cells import Cell, CellKey, Superstep, gather
from twinspan.collector.discovery import e_benjamini_hochberg
from twinspan.collector.monitor_state import DEFAULT_ALPHA, MonitorState
from twinspan.collector.overshoot import remove_overshoot
from twinspan.collector.stakes import Stakes, Strategy, mixed, stake
from twinspan.collector.topology import AgentDAG
from twinspan.instrumentation.errors import ConfigurationError

DEFAULT_SPARSE_SHARE: Final = 0.2

WEALTH_CEILING: Final = 1e300
"""Far above any limit; keeps products finite when a run goes on after an alarm."""


@dataclass(slots=True)
class RunMonitor:
    """Watches a whole run: without bias M ever reaches 1 / alpha with probability <= alpha.

    M is a non-negative martingale as long as no probed node reacts to an attribute, so the bound
    is Ville's inequality. It holds for any number of supersteps, nodes and axes, any dependence
    between the axes, any stopping, and any choice of what to probe next that uses only the past.

    Two strategies share the wealth. The *dense* part multiplies the mean e-value of each
    superstep, weighted by blast radius, along each axis: bias that starts somewhere and spreads.
    The *sparse* part adds up what each node wins with its own share: one guilty node. e-values
    come from the orbit of label splits (Koning 2023, arXiv 2310.01153).

    One instance belongs to one run; :meth:`step` is the pure transition behind :meth:`update`.

    Args:
        axes: every protected attribute that may be probed.
        alpha: P(any false halt in a run), in (0, 1).
        depth: supersteps of the run with a probe, if known; start masses are then equal, else they
            fall like 1 / (t (t + 1)).
        sparse_share: part of the wealth given to the sparse strategy, in [0, 1].
        overshoot: use the orbits of the cells to shift what lies above the limit.
        cyclic: nodes may fire again; the k-th firing stakes ``share / (k (k + 1))`` on itself.
            Without it the first firing stakes the whole share and later ones nothing.
        node_count: nodes of the graph, for the number of hypotheses in :meth:`guilty`.

    Raises:
        ConfigurationError: an argument is out of range.

    >>> monitor = RunMonitor(axes=("age", "gender"), depth=3)
    >>> cells = [
    ...     Cell(node="triage", axis="age", share=0.3, e_value=1.2),
    ...     Cell(node="triage", axis="gender", share=0.3, e_value=0.8),
    ... ]
    >>> monitor.update(cells).value  # what one axis wins the other loses
    1.0
    >>> monitor.state.fired
    False
    """

    axes: Sequence[str]
    alpha: float = DEFAULT_ALPHA
    depth: int | None = None
    sparse_share: float = DEFAULT_SPARSE_SHARE
    overshoot: bool = True
    cyclic: bool = False
    node_count: int | None = None
    strategy: Strategy = field(init=False, repr=False)
    state: MonitorState = field(init=False)

    def __post_init__(self) -> None:
        self.axes = tuple(dict.fromkeys(self.axes))
        _check(bool(self.axes), "axes", self.axes, "name at least one axis")
        _check(0.0 < self.alpha < 1.0, "alpha", self.alpha, "lie between 0 and 1")
        _check(0.0 <= self.sparse_share <= 1.0, "sparse_share", self.sparse_share, "lie in [0, 1]")
        _check(self.depth is None or self.depth >= 1, "depth", self.depth, "be at least 1")
        self.strategy = Strategy(axes=self.axes, sparse_share=self.sparse_share, cyclic=self.cyclic)
        self.state = self.initial()

    @classmethod
    def for_graph(
        cls,
        graph: AgentDAG,
        axes: Sequence[str],
        *,
        alpha: float = DEFAULT_ALPHA,
        probed_depth: int | None = None,
    ) -> Self:
        """A monitor that knows the depth, the cycles and the size of the graph.

        Args:
            graph: the nodes and edges that are known before the run.
            axes: every protected attribute that may be probed.
            alpha: P(any false halt in a run), in (0, 1).
            probed_depth: supersteps in which a node that may be probed can run, if known; no
                wealth is kept for the others.

        >>> RunMonitor.for_graph(AgentDAG([("a", "b")]), ("age",)).depth
        2
        """
        return cls.for_shape(
            axes,
            depth=graph.depth or None,
            node_count=len(graph),
            alpha=alpha,
            probed_depth=probed_depth,
        )

    @classmethod
    def for_shape(
        cls,
        axes: Sequence[str],
        *,
        depth: int | None,
        node_count: int,
        alpha: float = DEFAULT_ALPHA,
        probed_depth: int | None = None,
    ) -> Self:
        """The same for a graph of which only depth and size are known.

        Args:
            axes: every protected attribute that may be probed.
            depth: nodes on its longest path; None with a cycle.
            node_count: its nodes.
            alpha: P(any false halt in a run), in (0, 1).
            probed_depth: see :meth:`for_graph`.

        >>> RunMonitor.for_shape(("age",), depth=3, node_count=4, probed_depth=1).depth
        1
        """
        return cls(
            axes=axes,
            alpha=alpha,
            depth=depth and (probed_depth or depth),
            cyclic=depth is None,
            node_count=node_count,
        )

    def initial(self) -> MonitorState:
        """The state before the first superstep."""
        return MonitorState(alpha=self.alpha, depth=self.depth, accumulated=(0.0,) * len(self.axes))

    def update(
        self, cells: Iterable[Cell], unprobed: Mapping[str, float] | None = None
    ) -> MonitorState:
        """Takes in one superstep and returns the new state.

        Args:
            cells: one per probe that ended in the superstep; without any it is skipped. Axes of
                a probed node that have no cell count with e = 1.
            unprobed: share of the nodes that fired without a probe; they count with e = 1.

        Raises:
            UnknownAxis: a cell's axis is not one of the monitor's.
            ConfigurationError: a cell came twice, or the shares spent exceed 1.
            InvalidMeasurement: an orbit is none.
        """
        self.state = self.step(self.state, cells, unprobed)
        return self.state

    def step(
        self,
        state: MonitorState,
        cells: Iterable[Cell],
        unprobed: Mapping[str, float] | None = None,
    ) -> MonitorState:
        """The state after one more superstep; changes nothing."""
        superstep = gather(cells, unprobed or {}, self.axes)
        if not superstep.cells:
            return state
        stakes = stake(self.strategy, state, superstep)
        paid = [self._paid(stakes, cell) for cell in superstep.cells]
        return _settled(state, superstep, stakes, paid)

    def caps(
        self,
        shares: Mapping[str, float],
        unprobed: Mapping[str, float] | None = None,
        *,
        state: MonitorState | None = None,
    ) -> dict[CellKey, float]:
        """The smallest e-value with which each coming cell alone would reach the limit.

        Known before the superstep is probed, so probing in rounds may stop there and
        :func:`~twinspan.collector.overshoot.remove_overshoot` may use it, divided by the wealth
        of the rounds so far, in **every** round.

        Args:
            shares: share of each node that is about to be probed, on all axes.
            unprobed: share of the nodes that fire with them and will not be probed.
            state: the state to look from, the current one by default.
        """
        cells = [
            Cell(node=node, axis=axis, share=share, e_value=1.0)
            for node, share in shares.items()
            for axis in self.axes
        ]
        if not cells:
            return {}
        superstep = gather(cells, unprobed or {}, self.axes)
        stakes = stake(self.strategy, self.state if state is None else state, superstep)
        return {(cell.node, cell.axis): stakes.cap(cell) for cell in cells}

    def restart(self) -> MonitorState:
        """A fresh M after a repair, with ``alpha / 2**(k + 1)`` for the k-th restart.

        All restarts together spend at most ``alpha / 2``, so however often a run is repaired
        the false halts that follow a repair have a probability of at most alpha.
        """
        past = self.state
        count = past.restarts + 1
        left = None if past.depth is None else max(1, past.depth - past.steps)
        self.state = replace(
            self.initial(), alpha=self.alpha / 2.0 ** (count + 1), restarts=count, depth=left
        )
        return self.state

    def guilty(self, *, alpha: float | None = None) -> tuple[CellKey, ...]:
        """The cells that can be named, now that the run has stopped, at this FDR.

        e-BH on the products of each cell's fresh e-values since the last restart. Evidence
        with a cached reference names nobody.

        Args:
            alpha: false discovery rate, the monitor's alpha by default.

        >>> monitor = RunMonitor(axes=("age",), node_count=2)
        >>> hub = Cell(node="hub", axis="age", share=0.7, e_value=60.0)
        >>> leaf = Cell(node="leaf", axis="age", share=0.3, e_value=0.5)
        >>> _ = monitor.update([hub, leaf])
        >>> monitor.guilty()  # of two hypotheses one needs 2 / 0.05
        (('hub', 'age'),)
        """
        evidence = self.state.log_evidence
        total = (self.node_count or 0) * len(self.axes)
        return e_benjamini_hochberg(
            evidence, alpha=alpha or self.alpha, hypotheses=max(total, len(evidence), 1)
        )

    def _paid(self, stakes: Stakes, cell: Cell) -> float:
        if cell.orbit is None or not self.overshoot:
            return cell.e_value
        return remove_overshoot(cell.e_value, cell.orbit, stakes.cap(cell))


def _settled(
    state: MonitorState, superstep: Superstep, stakes: Stakes, paid: Sequence[float]
) -> MonitorState:
    accumulated = _spread(superstep, stakes, paid)
    dense = math.fsum(accumulated) / len(accumulated) + stakes.tail
    sparse = max(state.sparse + _won(superstep, stakes, paid), 0.0)
    return replace(
        state,
        value=min(mixed(stakes.strategy, dense, sparse), WEALTH_CEILING),
        steps=state.steps + 1,
        accumulated=accumulated,
        dense=dense,
        sparse=sparse,
        spent=state.spent + math.fsum(stakes.single.values()),
        firings=_counted(state.firings, superstep),
        log_evidence=_evidence(state.log_evidence, superstep.cells),
    )


def _spread(superstep: Superstep, stakes: Stakes, paid: Sequence[float]) -> tuple[float, ...]:
    axes = stakes.strategy.axes
    gains: list[list[float]] = [[1.0] for _ in axes]
    for cell, e_value in zip(superstep.cells, paid, strict=True):
        if not cell.cached:
            gain = stakes.dense[cell.firing] * (e_value - 1.0)
            gains[axes.index(cell.axis)].append(gain)
    means = [max(math.fsum(terms), 0.0) for terms in gains]
    pairs = zip(stakes.entering, means, strict=True)
    return tuple(min(entering * mean, WEALTH_CEILING) for entering, mean in pairs)


def _won(superstep: Superstep, stakes: Stakes, paid: Sequence[float]) -> float:
    terms = (
        stakes.single[cell.firing] * (e_value - 1.0) / len(stakes.strategy.axes)
        for cell, e_value in zip(superstep.cells, paid, strict=True)
    )
    return math.fsum(terms)


def _counted(
    firings: MappingProxyType[str, int], superstep: Superstep
) -> MappingProxyType[str, int]:
    counts = firings.copy()
    for firing in superstep.shares:
        counts[firing.node] = counts.get(firing.node, 0) + 1
    return MappingProxyType(counts)


def _evidence(
    known: MappingProxyType[CellKey, float], cells: Sequence[Cell]
) -> MappingProxyType[CellKey, float]:
    logs = known.copy()
    for cell in cells:
        if not cell.cached:
            gain = math.log(cell.e_value) if cell.e_value else -math.inf
            key = (cell.node, cell.axis)
            logs[key] = logs.get(key, 0.0) + gain
    return MappingProxyType(logs)


def _check(holds: bool, name: str, value: object, must: str) -> None:
    if not holds:
        raise ConfigurationError(f"{name} {value!r} must {must}")
