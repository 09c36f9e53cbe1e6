"""The two triggers of one superstep, and the rule that combines them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, NamedTuple

from twinspan.collector.breaker import CircuitBreaker
from twinspan.collector.control_state import ControlInputs
from twinspan.collector.decision import Reason
from twinspan.collector.monitor_state import LIMIT_TOLERANCE
from twinspan.instrumentation.settings import Trigger

MONITOR_WARN: Final = 0.25
"""Share of its limit at which the monitor warns: at most 4 alpha of unbiased runs do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What the numbers of one superstep mean under a rule.

    Attributes:
        fired: the triggers that reached their limit, whatever the rule.
        alarm: why the rule calls for an intervention, ``None`` when it does not.
        restarting: the alarm rests on a test that begins afresh after every intervention.
        judged: B_fast could be compared with thresholds.
        holds: B_fast is at or above ``tau_exit``.
        warning: why to warn, ``None`` when there is no reason.
    """

    fired: tuple[str, ...]
    alarm: Reason | None
    restarting: bool
    judged: bool
    holds: bool
    warning: Reason | None


class Signals(NamedTuple):
    """Which limits the numbers of one superstep reached.

    Attributes:
        over, holds: B_fast is at or above `tau_enter`, `tau_exit`.
        slow: B_slow is where it warns.
        monitor, near: M is at its limit, at the share of it that warns.
        path: a path permutation stopped the observed path.
        judged: B_fast could be compared with thresholds.
    """

    over: bool
    holds: bool
    slow: bool
    monitor: bool
    near: bool
    path: bool
    judged: bool


def read(
    thresholds: CircuitBreaker, inputs: ControlInputs, *, rule: Trigger, monitor_warn: float | None
) -> Reading:
    """Evaluates both triggers.

    >>> inputs = ControlInputs(superstep="1", fast=0.6, monitor=30.0, monitor_limit=20.0)
    >>> read(CircuitBreaker(1.0, 0.5), inputs, rule="both", monitor_warn=None).alarm.value
    'monitor_at_limit_and_fast_at_or_above_exit'
    """
    signals = Signals(
        over=thresholds.trips(inputs.fast),
        holds=thresholds.holds(inputs.fast),
        slow=thresholds.warns(inputs.slow),
        monitor=_reaches(inputs, 1.0 - LIMIT_TOLERANCE),
        near=monitor_warn is not None and _reaches(inputs, monitor_warn),
        path=inputs.path,
        judged=thresholds.enabled and inputs.fast is not None,
    )
    return reading_of(signals, rule)


def reading_of(signals: Signals, rule: Trigger) -> Reading:
    """What the limits that were reached mean under a rule."""
    over, holds, slow, monitor, near, path, judged = signals
    fired = {"threshold": over, "monitor": monitor, "path": path}
    alarm = Reason.PATH_AMONG_HIGHEST if path and rule == "path" else None
    return Reading(
        fired=tuple(name for name, has_fired in fired.items() if has_fired),
        alarm=alarm or _alarm(rule, over=over, monitor=monitor, holds=holds),
        restarting=_restarting(rule, monitor=monitor, path=path, holds=holds),
        judged=judged,
        holds=holds,
        warning=_warning(slow=slow, near=near and rule not in ("threshold", "path")),
    )


def _restarting(rule: Trigger, *, monitor: bool, path: bool, holds: bool) -> bool:
    if rule == "path":
        return path
    return monitor and rule != "threshold" and (holds or rule != "both")


def _alarm(rule: Trigger, *, over: bool, monitor: bool, holds: bool) -> Reason | None:
    if rule == "path":
        return None
    if rule == "both":
        return Reason.CONFIRMED if monitor and holds else None
    by_threshold = over and rule != "monitor"
    by_monitor = monitor and rule != "threshold"
    if by_threshold and by_monitor:
        return Reason.BOTH_AT_LIMIT
    if by_threshold:
        return Reason.FAST_AT_ENTER
    return Reason.MONITOR_AT_LIMIT if by_monitor else None


def _warning(*, slow: bool, near: bool) -> Reason | None:
    if slow:
        return Reason.SLOW_AT_WARN
    return Reason.MONITOR_NEAR_LIMIT if near else None


def _reaches(inputs: ControlInputs, share: float) -> bool:
    if inputs.monitor is None or inputs.monitor_limit is None:
        return False
    return inputs.monitor >= share * inputs.monitor_limit
