"""Thresholds from control runs."""

from __future__ import annotations

import math

import numpy as np
import pytest

from twinspan.collector.accumulator import NetworkAccumulator
from twinspan.collector.thresholds import (
    ThresholdConfig,
    calibrate_run_thresholds,
    calibrate_thresholds,
)
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement


def triple(config: ThresholdConfig) -> tuple[float, float, float]:
    return config.tau_enter, config.tau_exit, config.tau_warn


def test_vector_54_percentiles_of_supersteps() -> None:
    hundred = calibrate_thresholds(list(np.linspace(0, 1, 100)), target_false_halt_rate=0.01)
    assert triple(hundred) == pytest.approx((0.99, 0.693, 0.99))
    more = calibrate_thresholds(list(np.linspace(0, 1, 101)), target_false_halt_rate=0.05)
    assert triple(more) == pytest.approx((0.95, 0.665, 0.95))


def test_vector_54_and_s16_control_runs_that_never_left_zero_are_told_apart() -> None:
    config = calibrate_thresholds([0.0] * 100)
    assert triple(config) == pytest.approx((1e-9, 7e-10, 0.0), abs=1e-15)
    assert config.degenerate
    assert config.breaker().check(0.0, 0.0).decision == "proceed"
    assert not calibrate_thresholds([0.0] * 99 + [1.0] * 9).degenerate


def test_vector_54_too_few_control_values_are_refused() -> None:
    with pytest.raises(ConfigurationError, match="at least 100"):
        calibrate_thresholds([0.1] * 10)


def test_s16_too_few_slow_values_are_refused_too() -> None:
    with pytest.raises(ConfigurationError, match="1 control values of B_slow"):
        calibrate_thresholds([0.1] * 100, [0.1])


def test_the_warning_comes_from_the_slow_scale() -> None:
    fast, slow = list(np.linspace(0, 1, 101)), list(np.linspace(0, 0.5, 101))
    config = calibrate_thresholds(fast, slow, target_false_halt_rate=0.05)
    assert config.tau_warn == pytest.approx(0.475)
    assert config.level == "superstep"


def test_e10_a_control_value_that_is_no_number_is_refused() -> None:
    with pytest.raises(InvalidMeasurement, match="control of 'B_fast'"):
        calibrate_thresholds([0.1] * 100 + [math.nan])


@pytest.mark.parametrize("rate", [0.0, 1.0, math.nan])
def test_rates_out_of_range_are_refused(rate: float) -> None:
    with pytest.raises(ConfigurationError, match="target_false_halt_rate"):
        calibrate_thresholds([0.1] * 100, target_false_halt_rate=rate)
    with pytest.raises(ConfigurationError, match="exit_ratio"):
        calibrate_thresholds([0.1] * 100, exit_ratio=rate)


def clean_run(rng: np.random.Generator, steps: int) -> tuple[list[float], list[float]]:
    """Both scores of a run of clean supersteps."""
    accumulator = NetworkAccumulator()
    states = [accumulator.update({"a": value}, {"a": 1.0}) for value in rng.normal(0, 0.1, steps)]
    return [state.fast for state in states], [state.slow for state in states]


def test_s2_the_level_of_runs_holds_for_runs_that_were_not_calibrated() -> None:
    """199 control runs; 1,500 new ones: about 5 % reach tau_enter, not 5 % of supersteps."""
    rng = np.random.default_rng(7)
    controls = [clean_run(rng, 10) for _ in range(199)]
    by_run = calibrate_run_thresholds([f for f, _ in controls], [s for _, s in controls])
    pooled = [value for fast, _ in controls for value in fast]
    by_step = calibrate_thresholds(pooled, target_false_halt_rate=0.05)
    new = [max(clean_run(rng, 10)[0]) for _ in range(1_500)]
    assert np.mean([highest >= by_run.tau_enter for highest in new]) <= 0.05 + 0.03
    assert np.mean([highest >= by_step.tau_enter for highest in new]) > 0.25
    assert by_run.level == "run"
    assert by_run.controls == 199


def test_s2_on_average_over_calibrations_the_run_level_is_exact() -> None:
    """Nineteen runs at .05: the next run is the highest of twenty once in twenty times."""
    rng = np.random.default_rng(8)
    reached = 0
    for _ in range(2_000):
        runs = rng.normal(size=(20, 3))
        config = calibrate_run_thresholds([list(run) for run in runs[1:]])
        reached += bool(runs[0].max() >= config.tau_enter)
    assert reached / 2_000 == pytest.approx(0.05, abs=0.015)


def test_the_calibrated_run_itself_does_not_halt() -> None:
    """tau_enter lies above the control value; a halt is at or above tau_enter."""
    runs = [[i / 19] for i in range(1, 20)]
    config = calibrate_run_thresholds(runs)
    assert config.tau_enter > 1.0
    assert config.tau_enter == pytest.approx(1.0)


def test_run_level_calibration_refuses_what_cannot_show_the_rate() -> None:
    with pytest.raises(ConfigurationError, match="at least 19"):
        calibrate_run_thresholds([[0.1]] * 18)
    with pytest.raises(ConfigurationError, match="no superstep"):
        calibrate_run_thresholds([*[[0.1]] * 19, []])
