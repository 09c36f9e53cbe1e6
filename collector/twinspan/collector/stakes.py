"""What the run monitor bets on a superstep, known before any of its outcomes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from twinspan.collector.cells import Cell, Firing, Superstep
from twinspan.collector.monitor_state import MonitorState
from twinspan.instrumentation.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class Strategy:
    """How the wealth is spread; fixed for a run.

    Attributes:
        axes: the axes, each with an equal part of the wealth.
        sparse_share: part of the wealth that bets on single nodes.
        cyclic: nodes may fire again and must keep some of their share for it.
    """

    axes: tuple[str, ...]
    sparse_share: float
    cyclic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stakes:
    """The bets on one superstep.

    M is linear in the e-values of the superstep: ``at_rest`` plus the sum over the cells of
    coefficient times e-value. The coefficients depend on the past only.

    Attributes:
        strategy: how the wealth is spread.
        limit: the value of M that halts.
        dense: weight of each firing's e-value within the superstep, sums to 1.
        entering: per axis the wealth that is bet on the superstep.
        tail: wealth of the dense strategy kept for later supersteps.
        single: share each firing stakes on itself.
        at_rest: M if every cell paid 0.
    """

    strategy: Strategy
    limit: float
    dense: Mapping[Firing, float]
    entering: tuple[float, ...]
    tail: float
    single: Mapping[Firing, float]
    at_rest: float

    def coefficient(self, cell: Cell) -> float:
        """How much M grows with the e-value of one cell."""
        return _coefficient(self.strategy, self.dense, self.entering, self.single, cell)

    def cap(self, cell: Cell) -> float:
        """The smallest e-value with which this cell alone reaches the limit."""
        coefficient = self.coefficient(cell)
        return (self.limit - self.at_rest) / coefficient if coefficient > 0.0 else math.inf


def stake(strategy: Strategy, state: MonitorState, superstep: Superstep) -> Stakes:
    """The bets a state makes on the firings of a superstep.

    Raises:
        ConfigurationError: the shares staked in the run would exceed 1.
    """
    start, tail = start_masses(state.steps + 1, state.depth)
    entering = tuple(wealth + start for wealth in state.accumulated)
    dense = _normalised(superstep.shares)
    single = _singles(strategy, state, superstep)
    at_stake = math.fsum(
        _coefficient(strategy, dense, entering, single, cell) for cell in superstep.cells
    )
    spreading = math.fsum(entering) / len(entering) + tail
    return Stakes(
        strategy=strategy,
        limit=state.limit,
        dense=dense,
        entering=entering,
        tail=tail,
        single=single,
        at_rest=mixed(strategy, spreading, state.sparse) - at_stake,
    )


def mixed(strategy: Strategy, dense: float, sparse: float) -> float:
    """M of the two strategies' wealth."""
    return (1.0 - strategy.sparse_share) * dense + strategy.sparse_share * sparse


def start_masses(step: int, depth: int | None) -> tuple[float, float]:
    """The mass that enters at a step, and the mass kept for the steps after it.

    >>> start_masses(1, 4), start_masses(2, None)
    ((0.25, 0.75), (0.166667, 0.333333))
    """
    if depth is None:
        return 1.0 / (step * (step + 1)), 1.0 / (step + 1)
    return (1.0 / depth, (depth - step) / depth) if step <= depth else (0.0, 0.0)


def _coefficient(
    strategy: Strategy,
    dense: Mapping[Firing, float],
    entering: tuple[float, ...],
    single: Mapping[Firing, float],
    cell: Cell,
) -> float:
    # A cached reference makes e-values of different supersteps dependent: they may be added up,
    # not multiplied.
    wealth = 0.0 if cell.cached else entering[strategy.axes.index(cell.axis)]
    spreading = wealth * dense[cell.firing]
    return mixed(strategy, spreading, single[cell.firing]) / len(strategy.axes)


def _singles(strategy: Strategy, state: MonitorState, superstep: Superstep) -> dict[Firing, float]:
    counts = state.firings.copy()
    staked: dict[Firing, float] = {}
    for firing, share in superstep.shares.items():
        counts[firing.node] = counts.get(firing.node, 0) + 1
        staked[firing] = share * _part_of_share(strategy, counts[firing.node])
    total = state.spent + math.fsum(staked.values())
    if total > 1.0 + 1e-9:
        raise ConfigurationError(
            f"the shares of the nodes that fired sum to {total:.6g}; give shares of the whole "
            "graph, which sum to 1, not weights scaled to 1"
        )
    return staked


def _part_of_share(strategy: Strategy, firing: int) -> float:
    if strategy.cyclic:
        return 1.0 / (firing * (firing + 1))
    return 1.0 if firing == 1 else 0.0


def _normalised(shares: Mapping[Firing, float]) -> dict[Firing, float]:
    total = math.fsum(shares.values())
    if not total:  # weights too small for a float: bet evenly
        return dict.fromkeys(shares, 1.0 / len(shares))
    return {firing: share / total for firing, share in shares.items()}
