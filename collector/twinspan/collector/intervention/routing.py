"""Which intervention fits a halt: a debate about a shared leaning, or a repair of one node."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, Self, cast

from twinspan.collector.decision import BreakerDecision
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation.errors import ConfigurationError

Strategy = Literal["skeptics", "madera", "none"]
RouteReason = Literal["not_halted", "nothing_over_floor", "broad", "entrenched"]

BREADTH: Final = 0.5
"""Share of a graph's nodes over the floor on one axis from which on a leaning is shared."""

OVER_FLOOR: Final = 0.05
"""A node is over its floor on an axis where its p-value is at most this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How many nodes of a run lean the same way.

    Attributes:
        biased: nodes over their floor on the axis, from 0 to `total`.
        total: nodes of the graph.
        axis: the axis with the most such nodes; None where there is none.
        nodes: which they are, where that is known.

    Raises:
        ConfigurationError: more biased nodes than nodes, or a negative number.
    """

    biased: int
    total: int
    axis: str | None = None
    nodes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 0 <= self.biased <= self.total:
            raise ConfigurationError(
                f"{self.biased} biased of {self.total} nodes is no share; "
                "count nodes over their floor on one axis, out of all nodes of the graph"
            )

    @property
    def breadth(self) -> float:
        """Share of the nodes; 0 in a graph without nodes, where nothing can be biased."""
        return self.biased / self.total if self.total else 0.0

    @classmethod
    def of(cls, records: Iterable[ProbeRecord], total: int) -> Self:
        """From the probe sets of a run so far, see :class:`Leaning`."""
        leaning = Leaning()
        leaning.note(records)
        return cast("Self", leaning.spread(total))


@dataclass(slots=True)
class Leaning:
    """Which nodes of a run were over their floor so far, on which axis."""

    over: defaultdict[str, set[str]] = field(default_factory=lambda: defaultdict(set))

    def note(self, records: Iterable[ProbeRecord]) -> None:
        """Take probe sets in. Controls and screens tell of no axis; proxies count as theirs."""
        for record in records:
            if _is_over(record):
                self.over[record.axis.partition("#")[0]].add(record.node)

    def spread(self, total: int) -> Spread:
        """How many nodes lean on the axis with the most of them.

        Args:
            total: nodes of the graph; one that was not announced, such as one of a subgraph,
                widens it.
        """
        if not self.over:
            return Spread(biased=0, total=total)
        axis = min(self.over, key=lambda name: (-len(self.over[name]), name))
        nodes = tuple(sorted(self.over[axis]))
        return Spread(biased=len(nodes), total=max(total, len(nodes)), axis=axis, nodes=nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """Where a halted payload goes, with everything that the choice rests on.

    Attributes:
        strategy: `skeptics`, `madera` or `none`.
        reason: `broad` (many nodes lean the same way), `entrenched` (few do), `not_halted`, or
            `nothing_over_floor`.
        spread: who leans.
        threshold: the breadth from which on a leaning counts as shared.
    """

    strategy: Strategy
    reason: RouteReason
    spread: Spread
    threshold: float = BREADTH


def route_intervention(
    decision: BreakerDecision, spread: Spread, *, threshold: float = BREADTH
) -> Route:
    """Choose the intervention for a decision.

    Where at least a `threshold` share of the graph's nodes is over the floor on one axis, the
    leaning is shared, as in a conformity spiral, and reviewers of other provenance debate it.
    Otherwise it sits in single nodes, and their reasoning is repaired. No other input counts:
    how large an effect is, or how far a node is from its peers, plays no part.

    Args:
        decision: the breaker's; only one that halts is routed.
        spread: how many nodes lean the same way.
        threshold: share of nodes in (0, 1].

    Raises:
        ConfigurationError: the threshold is outside (0, 1].

    >>> from twinspan.collector.decision import BreakerState, Decision, Reason
    >>> halt = BreakerDecision(
    ...     superstep="3",
    ...     state_from=BreakerState.NORMAL,
    ...     state_to=BreakerState.INTERVENTION,
    ...     decision=Decision.HALT,
    ...     reason=Reason.MONITOR_AT_LIMIT,
    ... )
    >>> route_intervention(halt, Spread(biased=3, total=4)).strategy
    'skeptics'
    >>> route_intervention(halt, Spread(biased=1, total=5)).strategy
    'madera'
    """
    if not 0.0 < threshold <= 1.0:
        raise ConfigurationError(f"threshold {threshold!r} must lie in (0, 1], like 0.5")
    if not decision.halted:
        return Route(strategy="none", reason="not_halted", spread=spread, threshold=threshold)
    return route_of(spread, threshold=threshold)


def route_of(spread: Spread, *, threshold: float = BREADTH) -> Route:
    """The route of a payload that was halted."""
    strategy, reason = _choice(spread, threshold)
    return Route(strategy=strategy, reason=reason, spread=spread, threshold=threshold)


def _choice(spread: Spread, threshold: float) -> tuple[Strategy, RouteReason]:
    if not spread.biased:
        return "none", "nothing_over_floor"
    if spread.breadth >= threshold:
        return "skeptics", "broad"
    return "madera", "entrenched"


def _is_over(record: ProbeRecord) -> bool:
    if record.delta is None or record.p_value is None or record.is_screen or record.is_control:
        return False
    return record.delta > 0 and record.p_value <= OVER_FLOOR
