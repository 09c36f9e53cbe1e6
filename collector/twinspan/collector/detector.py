"""Across runs: an alarm for a deployment that has no end."""

from __future__ import annotations

import math
from dataclasses import dataclass

from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement


@dataclass(frozen=True, slots=True, kw_only=True)
class DetectorState:
    """The e-detector after some runs.

    Attributes:
        value: R after the last run, 0 at the start.
        runs: runs taken in since the start or the last alarm.
        alarm: the last run raised R to the limit.
    """

    value: float = 0.0
    runs: int = 0
    alarm: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EDetector:
    """Watches a stream of runs for a change towards bias.

    ``R = (R before + 1) * e`` with one e-value per run, such as the run monitor's value when the
    run ended; alarm at 1 / alpha (Shin, Ramdas & Rinaldo 2022, arXiv 2203.03532). A stream
    without end has no probability of a false alarm other than 1. What is bounded is the
    average run length: without bias it takes at least 1 / alpha runs on average to a false
    alarm.

    Args:
        alpha: inverse of the guaranteed average run length, in (0, 1).

    >>> detector = EDetector(alpha=0.1)
    >>> state = DetectorState()
    >>> for e_value in (1.0, 2.0, 3.0):  # 1, then 4, then 15
    ...     state = detector.step(state, e_value)
    >>> state
    DetectorState(value=15.0, runs=3, alarm=True)
    """

    alpha: float

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise ConfigurationError(
                f"alpha {self.alpha!r} must lie between 0 and 1; 0.001 waits 1,000 runs"
            )

    def step(self, state: DetectorState, e_value: float) -> DetectorState:
        """The state after one more run; after an alarm it starts afresh.

        Raises:
            InvalidMeasurement: the e-value is negative or not finite.
        """
        if not (math.isfinite(e_value) and e_value >= 0.0):
            must = "be finite and not negative"
            raise InvalidMeasurement("e-value", of="run", value=e_value, must=must)
        before = DetectorState() if state.alarm else state
        value = (before.value + 1.0) * e_value
        return DetectorState(
            value=value, runs=before.runs + 1, alarm=value >= (1.0 / self.alpha) * (1.0 - 1e-12)
        )
