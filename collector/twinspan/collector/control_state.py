"""What the control machine is told, and what it remembers."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from twinspan.collector.decision import BreakerDecision, BreakerState

Measurement: TypeAlias = Literal["none", "fresh", "repair", "unproven", "failed"]

WATCHING: Final = frozenset({BreakerState.NORMAL, BreakerState.WARNING})
"""States in which payloads pass."""

MOST_REMEMBERED: Final = 128
"""Decisions of a run that are remembered: a superstep that is executed again is a late one, and a
run without end must not grow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlInputs:
    """What is known at the end of a superstep.

    Attributes:
        superstep: an id that is unique in the run; the same id is decided once.
        fast, slow: B_fast and B_slow, ``None`` where nothing was accumulated.
        step: number of supersteps accumulated, for thresholds that depend on it.
        fast_deviation, slow_deviation: null standard deviations of the scores, likewise.
        monitor, monitor_limit: M and the value at which it fires. After an intervention M is
            that of the restarted monitor.
        path: a path permutation stopped the observed path. After an intervention it is that of
            the restarted paths.
        measurement: ``none`` when no probe ended in this superstep; ``fresh`` when nodes were
            probed on what they read; ``repair`` when the repaired payload itself was probed,
            which may end a cool-down early; ``unproven`` when it was, and delta was not shown to
            be below the bound; ``failed`` when a repair failed or could not be measured.
        payload: what the consumer is about to read.
        edge: where it is about to go, ``source->target``.
    """

    superstep: str
    fast: float | None = None
    slow: float | None = None
    step: int | None = None
    fast_deviation: float | None = None
    slow_deviation: float | None = None
    monitor: float | None = None
    monitor_limit: float | None = None
    path: bool = False
    measurement: Measurement = "fresh"
    payload: object = field(default=None, repr=False, compare=False)
    edge: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlState:
    """Where one run stands, immutable; all of the machine's memory.

    Attributes:
        state: the breaker's state.
        attempts: interventions of the incident so far.
        cooldown: supersteps of cool-down still to come.
        last_fast: B_fast of the superstep before.
        frozen_payload, frozen_error: the payload of the edge that was cut last, until recovery.
        decided: the latest decisions, at most `MOST_REMEMBERED`, by superstep.
    """

    state: BreakerState = BreakerState.NORMAL
    attempts: int = 0
    cooldown: int = 0
    last_fast: float | None = None
    frozen_payload: object = field(default=None, repr=False, compare=False)
    frozen_error: str | None = None
    decided: MappingProxyType[str, BreakerDecision] = field(
        default_factory=lambda: MappingProxyType({}), repr=False
    )

    @classmethod
    def after(cls, decision: BreakerDecision) -> ControlState:
        """The state a recorded decision left behind, to resume a run in another process."""
        return cls(
            state=decision.state_to,
            attempts=decision.attempts,
            cooldown=decision.cooldown,
            last_fast=decision.b_fast,
            frozen_payload=decision.frozen_payload,
            frozen_error=decision.frozen_error,
            decided=MappingProxyType({decision.superstep: decision}),
        )
