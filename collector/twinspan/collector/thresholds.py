"""Thresholds from control runs that are known to be unbiased."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from twinspan.collector.breaker import CircuitBreaker
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement

SMALLEST_THRESHOLD: Final = 1e-9
EXIT_RATIO: Final = 0.7

Level: TypeAlias = Literal["superstep", "run"]

Vector: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdConfig:
    """Calibrated thresholds, with what they promise.

    Attributes:
        tau_enter, tau_exit, tau_warn: the thresholds.
        target: the share of false halts aimed at.
        level: ``run`` when the target is a share of runs, ``superstep`` when it is a share of
            supersteps, of which a run has many.
        controls: how many control runs or supersteps they rest on.
        degenerate: the control scores never left 0, so anything above 0 would trip.
    """

    tau_enter: float
    tau_exit: float
    tau_warn: float
    target: float
    level: Level
    controls: int
    degenerate: bool

    def breaker(self) -> CircuitBreaker:
        """A breaker with these thresholds."""
        return CircuitBreaker(self.tau_enter, self.tau_exit, tau_warn=self.tau_warn)


def calibrate_thresholds(
    control_fast: Sequence[float],
    control_slow: Sequence[float] | None = None,
    target_false_halt_rate: float = 0.01,
    exit_ratio: float = EXIT_RATIO,
) -> ThresholdConfig:
    """Thresholds that a share ``target_false_halt_rate`` of control **supersteps** exceed.

    A share of supersteps is not a share of runs: with ten supersteps a run, 1 % of the supersteps
    can be 10 % of the runs. :func:`calibrate_run_thresholds` aims at runs.

    Args:
        control_fast: B_fast of the supersteps of unbiased runs, pooled.
        control_slow: B_slow of the same; B_fast stands in for it.
        target_false_halt_rate: the share, in (0, 1).
        exit_ratio: tau_exit as a part of tau_enter, in (0, 1).

    Raises:
        ConfigurationError: a number is out of range, or there are fewer than ``1 / target``
            control values of either score.
        InvalidMeasurement: a control value is not finite.

    >>> config = calibrate_thresholds([i / 100 for i in range(101)], target_false_halt_rate=0.05)
    >>> config.tau_enter, config.tau_exit, config.tau_warn
    (0.95, 0.665, 0.95)
    """
    _check_rates(target_false_halt_rate, exit_ratio)
    fast = _controls("B_fast", control_fast, _needed(target_false_halt_rate))
    slow = fast
    if control_slow is not None:
        slow = _controls("B_slow", control_slow, _needed(target_false_halt_rate))
    quantile = 1.0 - target_false_halt_rate
    return _config(
        float(np.quantile(fast, quantile)),
        float(np.quantile(slow, quantile)),
        target=target_false_halt_rate,
        exit_ratio=exit_ratio,
        level="superstep",
        controls=len(fast),
    )


def calibrate_run_thresholds(
    control_fast: Sequence[Sequence[float]],
    control_slow: Sequence[Sequence[float]] | None = None,
    target_false_halt_rate: float = 0.05,
    exit_ratio: float = EXIT_RATIO,
) -> ThresholdConfig:
    """Thresholds that at most a share ``target_false_halt_rate`` of unbiased **runs** reach.

    tau_enter lies just above the ``ceil((n + 1)(1 - target))``-th smallest of the runs' largest
    B_fast. If the next run is exchangeable with the n control runs, it reaches tau_enter with
    a probability of at most the target (the conformal quantile, Vovk, Gammerman & Shafer 2005).
    That holds for the graph, the temperature and the length that were calibrated.

    Args:
        control_fast: B_fast of every superstep, one sequence per unbiased run.
        control_slow: B_slow of the same; B_fast stands in for it.
        target_false_halt_rate: the share of runs, in (0, 1).
        exit_ratio: tau_exit as a part of tau_enter, in (0, 1).

    Raises:
        ConfigurationError: there are fewer than ``1 / target - 1`` runs, or a run is empty.
        InvalidMeasurement: a control value is not finite.

    >>> runs = [[i / 20, 0.0] for i in range(1, 20)]
    >>> calibrate_run_thresholds(runs, target_false_halt_rate=0.05).tau_enter
    0.95
    """
    _check_rates(target_false_halt_rate, exit_ratio)
    needed = _needed(target_false_halt_rate) - 1
    fast = _controls("B_fast", [_largest(run) for run in control_fast], needed)
    slow = fast
    if control_slow is not None:
        slow = _controls("B_slow", [_largest(run) for run in control_slow], needed)
    return _config(
        _conformal(fast, target_false_halt_rate),
        _conformal(slow, target_false_halt_rate),
        target=target_false_halt_rate,
        exit_ratio=exit_ratio,
        level="run",
        controls=len(fast),
    )


def _config(
    enter: float, warn: float, *, target: float, exit_ratio: float, level: Level, controls: int
) -> ThresholdConfig:
    floored = max(enter, SMALLEST_THRESHOLD)
    return ThresholdConfig(
        tau_enter=floored,
        tau_exit=exit_ratio * floored,
        tau_warn=max(warn, 0.0),
        target=target,
        level=level,
        controls=controls,
        degenerate=enter <= SMALLEST_THRESHOLD,
    )


def _conformal(maxima: Vector, target: float) -> float:
    rank = math.ceil((len(maxima) + 1) * (1.0 - target) - 1e-9)
    # A score halts when it is at the threshold, so the threshold lies above the control.
    return float(np.nextafter(np.sort(maxima)[rank - 1], math.inf))


def _largest(run: Sequence[float]) -> float:
    if not len(run):
        raise ConfigurationError("a control run has no superstep; leave it out")
    return float(np.max(run))


def _controls(name: str, values: Sequence[float], needed: int) -> Vector:
    controls = np.asarray(values, dtype=np.float64)
    if len(controls) < needed:
        raise ConfigurationError(
            f"{len(controls)} control values of {name} cannot show this false halt rate; "
            f"record at least {needed}, or aim at a higher rate"
        )
    for value in controls[~np.isfinite(controls)]:
        raise InvalidMeasurement("control", of=name, value=float(value), must="be finite")
    return controls


def _needed(target: float) -> int:
    return math.ceil(1.0 / target - 1e-9)


def _check_rates(target: float, exit_ratio: float) -> None:
    for name, value in (("target_false_halt_rate", target), ("exit_ratio", exit_ratio)):
        if not 0.0 < value < 1.0:
            raise ConfigurationError(f"{name} {value!r} must lie between 0 and 1")
