"""Thresholds on the network score, with hysteresis."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from twinspan.collector.accumulator import FAST_ALPHA, SLOW_ALPHA, warmup_factor
from twinspan.collector.decision import BreakerDecision, BreakerState, Decision, Reason
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement

SMALLEST_KAPPA: Final = 1e-9

Scaling: TypeAlias = Literal["constant", "warmup", "deviation"]

_INCIDENT: Final = frozenset(
    {BreakerState.INTERVENTION, BreakerState.RECOVERY, BreakerState.ESCALATED}
)


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """Turns network scores into decisions; holds thresholds and no state.

    Trips when B_fast reaches ``tau_enter`` and clears when it falls below ``tau_exit``, so a
    score that hovers between the two changes nothing. B_slow only warns. The thresholds have
    no default: they come from recorded control runs or from the user. Without them this trigger
    is off.

    Args:
        tau_enter: B_fast that trips, above ``tau_exit``.
        tau_exit: B_fast below which an incident is over, at least 0.
        tau_warn: B_slow that warns; ``tau_exit`` unless given, ``inf`` never.
        kappa: width of the mixing ratio's transition, positive; a quarter of the distance
            between the two thresholds unless given.
        scaling: what the thresholds are measured in.

            * ``constant``: in units of the scores, the same at every superstep.
            * ``warmup``: raised in early supersteps by how much wider than in the long run the
              averages scatter there, see :func:`~twinspan.collector.accumulator.warmup_factor`.
            * ``deviation``: in null standard deviations of the score at hand. Where none is
              known the thresholds are off.
        fast_alpha, slow_alpha: smoothing factors of the averages, for ``warmup``.

    Raises:
        ConfigurationError: only one threshold is given, or a value is out of range.

    >>> breaker = CircuitBreaker(tau_enter=1.0, tau_exit=0.5)
    >>> tripped = breaker.check(1.2, 0.1, payload="text")
    >>> tripped.decision.value, tripped.frozen_payload
    ('reroute', 'text')
    >>> breaker.check(0.7, 0.1, state=tripped.state_to).reason.value  # not below tau_exit yet
    'fast_at_or_above_exit'
    """

    tau_enter: float | None = None
    tau_exit: float | None = None
    tau_warn: float | None = None
    kappa: float | None = None
    scaling: Scaling = "constant"
    fast_alpha: float = FAST_ALPHA
    slow_alpha: float = SLOW_ALPHA

    def __post_init__(self) -> None:
        if (self.tau_enter is None) != (self.tau_exit is None):
            raise ConfigurationError("tau_enter and tau_exit go together; give both or neither")
        if self.tau_enter is not None and self.tau_exit is not None:
            _check_order(self.tau_enter, self.tau_exit)
        elif self.tau_warn is not None:
            raise ConfigurationError("tau_warn needs tau_enter and tau_exit; give all three")
        if self.tau_warn is not None and not self.tau_warn >= 0:
            raise ConfigurationError(f"tau_warn {self.tau_warn!r} must be at least 0")
        if self.kappa is not None and not self.kappa > 0:
            raise ConfigurationError(f"kappa {self.kappa!r} must be positive")

    @property
    def enabled(self) -> bool:
        """The breaker has thresholds."""
        return self.tau_enter is not None

    def in_force(
        self,
        *,
        step: int | None = None,
        fast_deviation: float | None = None,
        slow_deviation: float | None = None,
    ) -> CircuitBreaker:
        """The breaker with the thresholds of one superstep, in units of the scores.

        Args:
            step: supersteps accumulated, for ``warmup``.
            fast_deviation: null standard deviation of B_fast, for ``deviation``.
            slow_deviation: the same of B_slow.

        >>> CircuitBreaker(1.0, 0.5, scaling="warmup", fast_alpha=0.7).in_force(step=1).tau_enter
        1.36277
        >>> CircuitBreaker(3.0, 1.5, scaling="deviation").in_force(fast_deviation=0.1).tau_enter
        0.3
        >>> CircuitBreaker(3.0, 1.5, scaling="deviation").in_force().enabled
        False
        """
        if self.scaling == "constant" or not self.enabled:
            return self
        if self.scaling == "deviation":
            return self._scaled(fast_deviation, slow_deviation)
        if not step:
            return replace(self, scaling="constant")
        return self._scaled(
            warmup_factor(self.fast_alpha, step), warmup_factor(self.slow_alpha, step)
        )

    def _scaled(self, fast: float | None, slow: float | None) -> CircuitBreaker:
        if not fast or self.tau_enter is None or self.tau_exit is None:
            return CircuitBreaker()
        return CircuitBreaker(
            self.tau_enter * fast,
            self.tau_exit * fast,
            tau_warn=(self.warning_threshold or 0.0) * slow if slow else math.inf,
            kappa=None if self.kappa is None else self.kappa * fast,
        )

    @property
    def warning_threshold(self) -> float | None:
        """``tau_warn``, or what stands in for it."""
        return self.tau_exit if self.tau_warn is None else self.tau_warn

    @property
    def transition_width(self) -> float | None:
        """``kappa``, or what stands in for it; ``None`` without thresholds."""
        if self.kappa is not None or self.tau_enter is None or self.tau_exit is None:
            return self.kappa
        return max((self.tau_enter - self.tau_exit) / 4.0, SMALLEST_KAPPA)

    def trips(self, fast: float | None) -> bool:
        """B_fast is at or above ``tau_enter``."""
        return self.tau_enter is not None and fast is not None and fast >= self.tau_enter

    def holds(self, fast: float | None) -> bool:
        """B_fast is at or above ``tau_exit``: an incident is not over."""
        return self.tau_exit is not None and fast is not None and fast >= self.tau_exit

    def warns(self, slow: float | None) -> bool:
        """B_slow is at or above ``tau_warn`` and above 0: a clean run never warns."""
        warn = self.warning_threshold
        return warn is not None and slow is not None and slow >= warn and slow > 0.0

    def mixing_ratio(self, fast: float | None) -> float | None:
        """Advisory share of oversight: ``1 / (1 + exp(-(B_fast - tau_enter) / kappa))``.

        >>> CircuitBreaker(1.0, 0.5).mixing_ratio(1.0), CircuitBreaker(1.0, 0.5).mixing_ratio(1.1)
        (0.5, 0.689974)
        """
        if fast is None or self.tau_enter is None:
            return None
        width = self.transition_width
        if width is None:
            return None
        # Of the smaller share, so that neither end overflows or loses digits.
        distance = (fast - self.tau_enter) / width
        less = math.exp(-abs(distance))
        return (1.0 if distance >= 0 else less) / (1.0 + less)

    def margin(self, fast: float | None, state: BreakerState) -> float | None:
        """B_fast minus the threshold that decides in this state."""
        threshold = self.tau_exit if state in _INCIDENT else self.tau_enter
        return None if threshold is None or fast is None else fast - threshold

    def check(
        self,
        fast: float,
        slow: float,
        payload: object = None,
        *,
        state: BreakerState | str = BreakerState.NORMAL,
        superstep: str = "",
    ) -> BreakerDecision:
        """The decision on thresholds alone, without cool-down and retries.

        Args:
            fast: B_fast, finite.
            slow: B_slow, finite.
            payload: what the consumer is about to read; a deep copy goes into the decision
                when it must not.
            state: the state before, ``state_to`` of the decision before.
            superstep: named in the decision.

        Raises:
            InvalidMeasurement: a score is NaN or infinite.
            ConfigurationError: the breaker has no thresholds.
        """
        if not self.enabled:
            raise ConfigurationError("the breaker has no thresholds; give tau_enter and tau_exit")
        check_finite("B_fast", fast)
        check_finite("B_slow", slow)
        before = BreakerState(state)
        tripped = self.trips(fast) or (before in _INCIDENT and self.holds(fast))
        frozen, error = freeze(payload) if tripped else (None, None)
        to, decision, reason = self._outcome(fast, slow, tripped=tripped)
        return BreakerDecision(
            superstep=superstep,
            state_from=before,
            state_to=to,
            decision=decision,
            reason=reason,
            b_fast=fast,
            b_slow=slow,
            threshold_enter=self.tau_enter,
            threshold_exit=self.tau_exit,
            threshold_warn=self.warning_threshold,
            margin=self.margin(fast, before),
            trigger="threshold",
            fired=("threshold",) if self.trips(fast) else (),
            mixing_ratio=self.mixing_ratio(fast),
            frozen_payload=frozen,
            frozen_error=error,
        )

    def _outcome(
        self, fast: float, slow: float, *, tripped: bool
    ) -> tuple[BreakerState, Decision, Reason]:
        if tripped:
            reason = Reason.FAST_AT_ENTER if self.trips(fast) else Reason.NOT_BELOW_EXIT
            return BreakerState.INTERVENTION, Decision.REROUTE, reason
        if self.warns(slow):
            return BreakerState.WARNING, Decision.WARN, Reason.SLOW_AT_WARN
        return BreakerState.NORMAL, Decision.PROCEED, Reason.WITHIN_LIMITS


def freeze(payload: object) -> tuple[object, str | None]:
    """A deep copy of a payload, or ``None`` and why it cannot be copied.

    A payload that refuses to be copied must not keep its edge from being cut.

    >>> freeze({"text": ["a"]})
    ({'text': ['a']}, None)
    """
    try:
        return copy.deepcopy(payload), None
    except Exception as error:
        return None, f"{type(error).__name__}: the payload cannot be copied"


def check_finite(name: str, value: float | None) -> None:
    """Raises :class:`InvalidMeasurement` on NaN and infinity."""
    if value is not None and not math.isfinite(value):
        raise InvalidMeasurement("score", of=name, value=value, must="be finite")


def _check_order(enter: float, leave: float) -> None:
    if not (math.isfinite(enter) and enter > leave >= 0.0):
        raise ConfigurationError(
            f"tau_enter {enter!r} must be above tau_exit {leave!r}, which must be at least 0"
        )
