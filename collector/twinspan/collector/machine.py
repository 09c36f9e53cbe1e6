"""The control machine: normal, warning, intervention, recovery, escalated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import NamedTuple, get_args

from twinspan.collector.breaker import CircuitBreaker, check_finite, freeze
from twinspan.collector.control_state import (
    MOST_REMEMBERED,
    WATCHING,
    ControlInputs,
    ControlState,
)
from twinspan.collector.decision import BreakerDecision, BreakerState, Decision, Reason
from twinspan.collector.triggers import MONITOR_WARN, Reading, read
from twinspan.instrumentation.errors import ConfigurationError, NothingToReset
from twinspan.instrumentation.settings import Trigger


class Outcome(NamedTuple):
    """Where a superstep leads.

    Attributes:
        to: the state after it.
        decision, reason: what becomes of the payload, and why.
        attempts: interventions of the incident so far.
        cooldown: supersteps of cool-down still to come.
    """

    to: BreakerState
    decision: Decision
    reason: Reason
    attempts: int = 0
    cooldown: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlMachine:
    """Decides at every superstep whether payloads pass; holds options and no state.

    Every run starts from a :class:`ControlState` of its own, and :meth:`step` returns the next
    one. So runs cannot touch each other, a resumed run goes on where it stopped, and deciding
    a superstep again returns the decision that was made.

    * **normal, warning**: an alarm cuts the edge, freezes a copy of the payload and enters
      intervention. B_slow at its threshold, or the monitor at a quarter of its limit, warns.
    * **intervention, recovery**: payloads are held for the cool-down. A new rise of B_fast to
      ``tau_enter``, or a restarted monitor that fires again, is a new intervention at once.
      After the cool-down, or when the repaired payload was probed, the incident ends if B_fast is
      below ``tau_exit`` and no trigger fires. That takes a measurement: scores that only faded
      end nothing, and a repair whose delta is not shown to be below the bound ends nothing.
      Otherwise, or where a repair failed, the next intervention follows, and after
      ``max_retries`` of them escalation.
    * **escalated**: only :meth:`reset` leads out.

    Args:
        breaker: the thresholds; none by default, so that the monitor decides alone.
        trigger: ``monitor``, ``threshold`` (B_fast at ``tau_enter``), ``either``, ``both`` (the
            monitor fires and B_fast is at or above ``tau_exit``), or ``path`` (a path permutation
            fires). By default ``either`` with thresholds and ``monitor`` without. Only halts that
            need the monitor or the path have their bound on false halts.
        cooldown: supersteps payloads are held for after an intervention, at least 0.
        max_retries: interventions of one incident before it is escalated, at least 1.
        reroute: an alarm sends the payload to repair; False halts.
        enforced: told in every decision; False for shadow mode.
        monitor_warn: share of its limit at which the monitor warns, in (0, 1], ``None`` never.

    Raises:
        ConfigurationError: an option is out of range, or the trigger needs thresholds that the
            breaker does not have.

    >>> machine = ControlMachine(breaker=CircuitBreaker(1.0, 0.5), cooldown=0)
    >>> state = ControlState()
    >>> for superstep, fast in enumerate((0.2, 1.2, 0.7, 0.2)):
    ...     inputs = ControlInputs(superstep=str(superstep), fast=fast)
    ...     state, decision = machine.step(state, inputs)
    ...     print(decision.state_to.value, decision.decision.value)
    normal proceed
    intervention reroute
    intervention reroute
    normal proceed
    """

    breaker: CircuitBreaker = field(default_factory=CircuitBreaker)
    trigger: Trigger | None = None
    cooldown: int = 1
    max_retries: int = 3
    reroute: bool = True
    enforced: bool = True
    monitor_warn: float | None = MONITOR_WARN

    def __post_init__(self) -> None:
        if self.rule not in get_args(Trigger):
            known = ", ".join(get_args(Trigger))
            raise ConfigurationError(f"trigger {self.rule!r} is unknown; use one of {known}")
        if self.rule in ("threshold", "both") and not self.breaker.enabled:
            raise ConfigurationError(
                f"trigger {self.rule!r} needs tau_enter and tau_exit; calibrate them, or use "
                "trigger 'monitor'"
            )
        if self.cooldown < 0 or self.max_retries < 1:
            raise ConfigurationError(
                f"cooldown {self.cooldown!r} must be at least 0, max_retries "
                f"{self.max_retries!r} at least 1"
            )
        if self.monitor_warn is not None and not 0.0 < self.monitor_warn <= 1.0:
            raise ConfigurationError(f"monitor_warn {self.monitor_warn!r} must lie in (0, 1]")

    @property
    def rule(self) -> Trigger:
        """The trigger in force."""
        return self.trigger or ("either" if self.breaker.enabled else "monitor")

    def step(
        self, state: ControlState, inputs: ControlInputs
    ) -> tuple[ControlState, BreakerDecision]:
        """Decides one superstep; a superstep that was decided already is not decided again.

        Args:
            state: the run's state before.
            inputs: what the superstep brought.

        Returns:
            The run's state after, and the decision.

        Raises:
            InvalidMeasurement: a score is NaN or infinite; the state is unchanged.
        """
        known = state.decided.get(inputs.superstep)
        if known is not None:
            return state, known
        for name, value in (("B_fast", inputs.fast), ("B_slow", inputs.slow)):
            check_finite(name, value)
        check_finite("M", inputs.monitor)
        thresholds = self.breaker.in_force(
            step=inputs.step,
            fast_deviation=inputs.fast_deviation,
            slow_deviation=inputs.slow_deviation,
        )
        reading = self._reading(thresholds, inputs)
        outcome = self.outcome(state, inputs, reading)
        return self._moved(state, inputs, outcome, thresholds, reading)

    def reset(
        self, state: ControlState, inputs: ControlInputs
    ) -> tuple[ControlState, BreakerDecision]:
        """A person lets a stopped run go on; the reset is a decision like any other.

        Args:
            state: the run's state before.
            inputs: the numbers as they stand, under an id of the reset's own.

        Raises:
            NothingToReset: the run is not stopped.

        >>> machine = ControlMachine()
        >>> escalated = ControlState(state=BreakerState.ESCALATED, attempts=3)
        >>> state, decision = machine.reset(escalated, ControlInputs(superstep="7/reset-1"))
        >>> state.state.value, state.attempts, decision.reason.value
        ('normal', 0, 'reset_by_person')
        """
        known = state.decided.get(inputs.superstep)
        if known is not None:
            return state, known
        if state.state in WATCHING:
            raise NothingToReset(state=state.state.value)
        outcome = Outcome(BreakerState.NORMAL, Decision.PROCEED, Reason.RESET_BY_PERSON)
        reading = self._reading(self.breaker, inputs)
        return self._moved(state, inputs, outcome, self.breaker, reading)

    def _reading(self, thresholds: CircuitBreaker, inputs: ControlInputs) -> Reading:
        return read(thresholds, inputs, rule=self.rule, monitor_warn=self.monitor_warn)

    def outcome(self, state: ControlState, inputs: ControlInputs, reading: Reading) -> Outcome:
        """Where the numbers of a superstep lead from a state.

        Args:
            state: the run's state before.
            inputs: of it only how it was measured counts, and whether B_fast rose.
            reading: what the numbers mean.
        """
        if state.state == BreakerState.ESCALATED:
            return self._escalated(state, Reason.AWAITING_PERSON)
        if state.state not in WATCHING:
            return self._recovering(state, inputs, reading)
        if reading.alarm:
            return self._intervened(state, reading.alarm)
        return _passing(reading, Reason.WITHIN_LIMITS)

    def _recovering(self, state: ControlState, inputs: ControlInputs, reading: Reading) -> Outcome:
        if inputs.measurement == "failed":
            return self._intervened(state, Reason.REPAIR_FAILED)
        if state.cooldown and inputs.measurement not in ("repair", "unproven"):
            return self._cooling(state, inputs, reading)
        if inputs.measurement == "none":
            return self._held(state, Reason.NOT_REMEASURED, cooldown=0)
        if reading.alarm:
            return self._intervened(state, reading.alarm)
        if reading.holds:
            return self._intervened(state, Reason.NOT_BELOW_EXIT)
        if inputs.measurement == "unproven":
            return self._intervened(state, Reason.REPAIR_UNPROVEN)
        if self.breaker.enabled and not reading.judged:
            return self._held(state, Reason.NOT_REMEASURED, cooldown=0)
        return _passing(reading, Reason.RECOVERED)

    def _cooling(self, state: ControlState, inputs: ControlInputs, reading: Reading) -> Outcome:
        # A restarted monitor has forgotten what it was halted for; the averages fade slowly, so
        # a high B_fast says nothing new unless it rose.
        if reading.restarting and reading.alarm:
            return self._intervened(state, reading.alarm)
        if reading.alarm and _rose(state, inputs):
            return self._intervened(state, Reason.ROSE_IN_COOLDOWN)
        return self._held(state, Reason.COOLING_DOWN, cooldown=state.cooldown - 1)

    def _intervened(self, state: ControlState, reason: Reason) -> Outcome:
        if state.attempts >= self.max_retries:
            return self._escalated(state, Reason.RETRIES_EXHAUSTED)
        decision = Decision.REROUTE if self.reroute else Decision.HALT
        attempts = state.attempts + 1
        return Outcome(BreakerState.INTERVENTION, decision, reason, attempts, self.cooldown)

    def _held(self, state: ControlState, reason: Reason, *, cooldown: int) -> Outcome:
        return Outcome(BreakerState.RECOVERY, Decision.HALT, reason, state.attempts, cooldown)

    def _escalated(self, state: ControlState, reason: Reason) -> Outcome:
        return Outcome(BreakerState.ESCALATED, Decision.ESCALATE, reason, state.attempts)

    def _moved(
        self,
        state: ControlState,
        inputs: ControlInputs,
        outcome: Outcome,
        thresholds: CircuitBreaker,
        reading: Reading,
    ) -> tuple[ControlState, BreakerDecision]:
        frozen, error = _frozen(state, inputs, outcome)
        shown = None if frozen is None else freeze(frozen)[0]
        decision = self._decision(state, inputs, outcome, thresholds, reading, shown, error)
        moved = ControlState(
            state=outcome.to,
            attempts=outcome.attempts,
            cooldown=outcome.cooldown,
            last_fast=inputs.fast,
            frozen_payload=frozen,
            frozen_error=error,
            decided=_remembered(state, decision),
        )
        return moved, decision

    def _decision(
        self,
        state: ControlState,
        inputs: ControlInputs,
        outcome: Outcome,
        thresholds: CircuitBreaker,
        reading: Reading,
        frozen: object,
        error: str | None,
    ) -> BreakerDecision:
        stopped = outcome.to not in WATCHING
        return BreakerDecision(
            superstep=inputs.superstep,
            state_from=state.state,
            state_to=outcome.to,
            decision=outcome.decision,
            reason=outcome.reason,
            b_fast=inputs.fast,
            b_slow=inputs.slow,
            monitor=inputs.monitor,
            monitor_limit=inputs.monitor_limit,
            threshold_enter=thresholds.tau_enter,
            threshold_exit=thresholds.tau_exit,
            threshold_warn=thresholds.warning_threshold,
            margin=thresholds.margin(inputs.fast, state.state),
            trigger=self.rule,
            fired=reading.fired,
            mixing_ratio=thresholds.mixing_ratio(inputs.fast),
            attempts=outcome.attempts,
            cooldown=outcome.cooldown,
            edge=inputs.edge if stopped else None,
            frozen_payload=frozen,
            frozen_error=error,
            enforced=self.enforced,
        )


def _passing(reading: Reading, reason: Reason) -> Outcome:
    if reading.warning:
        return Outcome(BreakerState.WARNING, Decision.WARN, reading.warning)
    return Outcome(BreakerState.NORMAL, Decision.PROCEED, reason)


def _rose(state: ControlState, inputs: ControlInputs) -> bool:
    if inputs.fast is None or state.last_fast is None:
        return False
    return inputs.fast > state.last_fast


def _frozen(
    state: ControlState, inputs: ControlInputs, outcome: Outcome
) -> tuple[object, str | None]:
    if outcome.to in WATCHING:
        return None, None
    if outcome.to == BreakerState.INTERVENTION and inputs.payload is not None:
        return freeze(inputs.payload)
    return state.frozen_payload, state.frozen_error


def _remembered(
    state: ControlState, decision: BreakerDecision
) -> MappingProxyType[str, BreakerDecision]:
    decided = state.decided.copy()
    if state.state not in WATCHING and decision.state_to in WATCHING:
        # The incident is over: a biased payload must not survive it, not even in old decisions.
        for superstep, old in state.decided.items():
            if old.frozen_payload is not None:
                decided[superstep] = replace(old, frozen_payload=None)
    decided[decision.superstep] = decision
    while len(decided) > MOST_REMEMBERED:
        del decided[next(iter(decided))]
    return MappingProxyType(decided)
