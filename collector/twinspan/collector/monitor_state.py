"""The run monitor's memory."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final

from twinspan.collector.cells import CellKey

DEFAULT_ALPHA: Final = 0.05

LIMIT_TOLERANCE: Final = 1e-6
"""Relative; overshoot removal aims exactly at the limit and rounding may end just below it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorState:
    """The monitor after a superstep, immutable.

    Attributes:
        value: M, at least 0, 1 at the start.
        alpha: the error level in force; it shrinks with every restart.
        steps: supersteps with a probe since the last restart.
        restarts: how often the monitor was restarted in this run.
        accumulated: per axis the wealth of bets on bias that started somewhere and spreads.
        dense: wealth of the dense strategy, the mean of ``accumulated`` and what is kept for
            later supersteps.
        sparse: the wealth of bets on single nodes, each paid from its own share.
        spent: the shares staked on single nodes so far, at most 1.
        firings: how often each node fired since the last restart.
        log_evidence: per node and axis the logarithm of the product of its fresh e-values.
        depth: supersteps the start masses are spread over, ``None`` if not known.

    >>> MonitorState(value=19.99999, alpha=0.05).fired
    True
    """

    value: float = 1.0
    alpha: float = DEFAULT_ALPHA
    steps: int = 0
    restarts: int = 0
    accumulated: tuple[float, ...] = ()
    dense: float = 1.0
    sparse: float = 1.0
    spent: float = 0.0
    firings: MappingProxyType[str, int] = field(default_factory=lambda: MappingProxyType({}))
    log_evidence: MappingProxyType[CellKey, float] = field(
        default_factory=lambda: MappingProxyType({})
    )
    depth: int | None = None

    @property
    def limit(self) -> float:
        """1 / alpha: the value at which the run is to be halted."""
        return 1.0 / self.alpha

    @property
    def fired(self) -> bool:
        """M has reached the limit."""
        return self.value >= self.limit * (1.0 - LIMIT_TOLERANCE)
