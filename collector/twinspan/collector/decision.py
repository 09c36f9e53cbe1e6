"""What the breaker decided, and why, in words that are true of the numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from twinspan.instrumentation.settings import Trigger


class BreakerState(StrEnum):
    """Where a run stands.

    ``normal`` and ``warning`` let payloads pass. ``intervention`` has just cut an edge,
    ``recovery`` waits for a new measurement, ``escalated`` waits for a person.
    """

    NORMAL = "normal"
    WARNING = "warning"
    INTERVENTION = "intervention"
    RECOVERY = "recovery"
    ESCALATED = "escalated"


class Decision(StrEnum):
    """What is to happen to the payload at the edge."""

    PROCEED = "proceed"
    WARN = "warn"
    HALT = "halt"
    REROUTE = "reroute"
    ESCALATE = "escalate"


class Reason(StrEnum):
    """The closed list of reasons."""

    WITHIN_LIMITS = "within_limits"
    SLOW_AT_WARN = "slow_at_or_above_warn"
    MONITOR_NEAR_LIMIT = "monitor_near_limit"
    FAST_AT_ENTER = "fast_at_or_above_enter"
    MONITOR_AT_LIMIT = "monitor_at_limit"
    BOTH_AT_LIMIT = "fast_at_or_above_enter_and_monitor_at_limit"
    CONFIRMED = "monitor_at_limit_and_fast_at_or_above_exit"
    PATH_AMONG_HIGHEST = "path_among_highest"
    NOT_BELOW_EXIT = "fast_at_or_above_exit"
    COOLING_DOWN = "cooling_down"
    ROSE_IN_COOLDOWN = "fast_rose_to_or_above_enter_in_cooldown"
    NOT_REMEASURED = "not_remeasured"
    REPAIR_FAILED = "repair_failed"
    REPAIR_UNPROVEN = "repair_not_shown_below_bound"
    RECOVERED = "remeasured_below_limits"
    RETRIES_EXHAUSTED = "retries_exhausted"
    AWAITING_PERSON = "awaiting_person"
    RESET_BY_PERSON = "reset_by_person"


_SENTENCES: Final[dict[Reason, str]] = {
    Reason.WITHIN_LIMITS: "no trigger reached its limit: {numbers}",
    Reason.SLOW_AT_WARN: "B_slow {slow} is at or above the warning threshold {warn}",
    Reason.MONITOR_NEAR_LIMIT: "M {monitor} is near its limit {limit}",
    Reason.FAST_AT_ENTER: "B_fast {fast} is at or above tau_enter {enter}",
    Reason.MONITOR_AT_LIMIT: "M {monitor} has reached its limit {limit}",
    Reason.BOTH_AT_LIMIT: (
        "B_fast {fast} is at or above tau_enter {enter} and M {monitor} has reached its "
        "limit {limit}"
    ),
    Reason.CONFIRMED: (
        "M {monitor} has reached its limit {limit} and B_fast {fast} is at or above tau_exit {exit}"
    ),
    Reason.PATH_AMONG_HIGHEST: "B_fast is among the highest of its permuted twins",
    Reason.NOT_BELOW_EXIT: "B_fast {fast} has not fallen below tau_exit {exit}",
    Reason.COOLING_DOWN: "{cooldown} more superstep(s) of cool-down to come",
    Reason.ROSE_IN_COOLDOWN: (
        "B_fast rose to {fast}, at or above tau_enter {enter}, during the cool-down"
    ),
    Reason.NOT_REMEASURED: "no measurement since the intervention tells whether it helped",
    Reason.REPAIR_FAILED: "the repair failed, or could not be measured",
    Reason.REPAIR_UNPROVEN: "the repair's delta was not shown to be below the bound",
    Reason.RECOVERED: "measured again after the intervention, within limits: {numbers}",
    Reason.RETRIES_EXHAUSTED: "still over a limit after {attempts} intervention(s): {numbers}",
    Reason.AWAITING_PERSON: "escalated; only a person can reset the breaker",
    Reason.RESET_BY_PERSON: "a person reset the breaker",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerDecision:
    """The outcome of one superstep at the breaker, with every number it rests on.

    Attributes:
        superstep: the superstep that was decided.
        state_from, state_to: the states before and after.
        decision: what is to happen to the payload.
        reason: why, from a closed list.
        b_fast, b_slow: network scores, ``None`` where none was given.
        monitor: M of the run monitor, ``None`` where there is none.
        monitor_limit: the value at which M fires.
        threshold_enter, threshold_exit, threshold_warn: the thresholds in force at this
            superstep, ``None`` when there are none.
        margin: B_fast minus the threshold that decides in the state it came from, tau_exit
            during an incident and tau_enter otherwise; ``None`` without thresholds.
        trigger: the rule by which the two triggers were combined.
        fired: the triggers that reached their limit, whatever the rule made of it.
        mixing_ratio: advisory, logistic in B_fast around tau_enter, 0 to 1.
        attempts: interventions of the incident so far, this one included.
        cooldown: supersteps of cool-down still to come.
        edge: the edge that was cut, ``source->target``.
        frozen_payload: a copy of what the consumer would have read when the edge was cut; only
            with decisions that stop it, for people to look at. It is never the repaired one.
        frozen_error: why the payload could not be copied.
        enforced: False when the decision is only told, in shadow mode.
    """

    superstep: str
    state_from: BreakerState
    state_to: BreakerState
    decision: Decision
    reason: Reason
    b_fast: float | None = None
    b_slow: float | None = None
    monitor: float | None = None
    monitor_limit: float | None = None
    threshold_enter: float | None = None
    threshold_exit: float | None = None
    threshold_warn: float | None = None
    margin: float | None = None
    trigger: Trigger = "monitor"
    fired: tuple[str, ...] = ()
    mixing_ratio: float | None = None
    attempts: int = 0
    cooldown: int = 0
    edge: str | None = None
    frozen_payload: object = field(default=None, repr=False, compare=False)
    frozen_error: str | None = None
    enforced: bool = True

    @property
    def halted(self) -> bool:
        """The payload does not pass: halt, reroute or escalate."""
        return self.decision in (Decision.HALT, Decision.REROUTE, Decision.ESCALATE)

    @property
    def transition(self) -> bool:
        """The state changed."""
        return self.state_from != self.state_to

    def explain(self) -> str:
        """The reason as a sentence with its numbers.

        >>> BreakerDecision(
        ...     superstep="3",
        ...     state_from=BreakerState.NORMAL,
        ...     state_to=BreakerState.INTERVENTION,
        ...     decision=Decision.REROUTE,
        ...     reason=Reason.MONITOR_AT_LIMIT,
        ...     monitor=24.0,
        ...     monitor_limit=20.0,
        ... ).explain()
        'M 24 has reached its limit 20'
        """
        return _SENTENCES[self.reason].format(
            fast=_number(self.b_fast),
            slow=_number(self.b_slow),
            monitor=_number(self.monitor),
            limit=_number(self.monitor_limit),
            enter=_number(self.threshold_enter),
            exit=_number(self.threshold_exit),
            warn=_number(self.threshold_warn),
            cooldown=self.cooldown,
            attempts=self.attempts,
            numbers=self._numbers(),
        )

    def _numbers(self) -> str:
        parts = (
            ("B_fast", self.b_fast, "tau_enter", self.threshold_enter),
            ("M", self.monitor, "limit", self.monitor_limit),
        )
        told = [
            f"{name} {value:.4g}" + (f" ({limit_name} {limit:.4g})" if limit is not None else "")
            for name, value, limit_name, limit in parts
            if value is not None
        ]
        return ", ".join(told) or "nothing was measured"


def _number(value: float | None) -> str:
    return "(not measured)" if value is None else f"{value:.4g}"
