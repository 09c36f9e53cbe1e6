"""Thresholds from recorded control runs, with what is known about their rate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, get_args

from twinspan.analysis.recorded import RecordedRun
from twinspan.analysis.replay import replay, with_orbits
from twinspan.collector.thresholds import ThresholdConfig, calibrate_run_thresholds
from twinspan.instrumentation.settings import BreakerOptions, Reduction

SWEPT_ALPHAS: Final = (0.3, 0.5, 0.7, 0.9, 1.0)
"""Weights of the newest superstep in B_fast that a sweep tries, with every reduction."""

LEVEL: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Thresholds of one configuration.

    Attributes:
        reduction, alpha_fast, alpha_slow: the configuration; alpha_slow is None where every graph
            has its own.
        tau_enter, tau_exit, tau_warn: its thresholds.
        target: the share of unbiased runs that may be halted.
        level: `run`.
        controls: the control runs they rest on.
        rate_low, rate_high: 95 % interval of the share of runs like these that reaches tau_enter,
            which the control runs leave open.
        degenerate: the control scores never left 0, so anything above 0 would trip.
    """

    reduction: Reduction
    alpha_fast: float
    alpha_slow: float | None
    tau_enter: float
    tau_exit: float
    tau_warn: float
    target: float
    level: str
    controls: int
    rate_low: float
    rate_high: float
    degenerate: bool


def calibrated(
    runs: Sequence[RecordedRun],
    target: float,
    exit_ratio: float,
    **changes: object,
) -> Calibrated:
    """Thresholds for the runs' own configuration, with changes.

    Args:
        runs: control runs that are known to be unbiased.
        target: the share of unbiased runs that may be halted, in (0, 1).
        exit_ratio: tau_exit as a part of tau_enter, in (0, 1).
        changes: fields of `BreakerOptions`.

    Raises:
        ConfigurationError: there are too few runs for the target.
    """
    fast: list[list[float]] = []
    slow: list[list[float]] = []
    for run, orbits in with_orbits(runs):
        steps = replay(run, _changed(run.options, changes), orbits)
        scored = [step.decision for step in steps if step.decision.b_fast is not None]
        if scored:
            fast.append([decision.b_fast or 0.0 for decision in scored])
            slow.append([decision.b_slow or 0.0 for decision in scored])
    found = calibrate_run_thresholds(fast, slow, target, exit_ratio)
    used = [_changed(run.options, changes) for run in runs]
    slow_alphas = {options.slow_alpha for options in used}
    return _told(found, used[0], slow_alphas.pop() if len(slow_alphas) == 1 else None)


def _changed(options: BreakerOptions, changes: dict[str, object]) -> BreakerOptions:
    return replace(options, **changes)  # type: ignore[arg-type]


def _told(found: ThresholdConfig, options: BreakerOptions, alpha_slow: float | None) -> Calibrated:
    low, high = rate_interval(found.controls, found.target)
    return Calibrated(
        reduction=options.reduction,
        alpha_fast=options.fast_alpha,
        alpha_slow=alpha_slow,
        tau_enter=found.tau_enter,
        tau_exit=found.tau_exit,
        tau_warn=found.tau_warn,
        target=found.target,
        level=found.level,
        controls=found.controls,
        rate_low=low,
        rate_high=high,
        degenerate=found.degenerate,
    )


def rate_interval(controls: int, target: float, level: float = LEVEL) -> tuple[float, float]:
    """Where the share of unbiased runs lies that reaches a threshold of so many control runs.

    The threshold is the r-th smallest of n control values, r = ceil((n + 1)(1 - target)). The
    share of runs above it is a beta variable with parameters n + 1 - r and r, whatever their law,
    if it is continuous (Vovk 2012); its mean is at most the target.

    >>> low, high = rate_interval(99, 0.05)
    >>> low, high
    (0.0166, 0.1)
    """
    from scipy.special import betaincinv  # a third of what starting a command costs

    rank = math.ceil((controls + 1) * (1.0 - target) - 1e-9)
    above = controls + 1 - rank
    tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
    low, high = (float(betaincinv(above, rank, tail)) for tail in tails)
    return low, high


def sweep(runs: Sequence[RecordedRun], target: float, exit_ratio: float) -> Iterator[Calibrated]:
    """Thresholds for every reduction and several weights of the newest superstep.

    Args:
        runs: control runs.
        target: the share of unbiased runs that may be halted.
        exit_ratio: tau_exit as a part of tau_enter.
    """
    for reduction in get_args(Reduction):
        for alpha in SWEPT_ALPHAS:
            yield calibrated(runs, target, exit_ratio, reduction=reduction, fast_alpha=alpha)
