"""Which cells are named at a halt, and the alarm across runs."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspan.collector.cells import Cell
from twinspan.collector.detector import DetectorState, EDetector
from twinspan.collector.discovery import e_benjamini_hochberg
from twinspan.collector.monitor import RunMonitor
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement

ALPHA = 0.1


def logs(e_values: list[float]) -> dict[str, float]:
    return {f"h{i}": math.log(e) if e else -math.inf for i, e in enumerate(e_values)}


@given(st.lists(st.floats(0.0, 500.0), max_size=12))
def test_e_bh_rejects_what_the_definition_says(e_values: list[float]) -> None:
    """The largest k for which k e_(k) / K >= 1 / alpha, tried one by one."""
    ordered = sorted(e_values, reverse=True)
    count = len(e_values)
    passing = [k for k in range(1, count + 1) if k * ordered[k - 1] / count >= (1 - 1e-12) / ALPHA]
    rejected = e_benjamini_hochberg(logs(e_values), alpha=ALPHA)
    assert len(rejected) == max(passing, default=0)


def test_e_bh_keeps_its_rate_under_the_worst_dependence() -> None:
    """Ten e-values that are large together: 200 with a chance of 1 in 200."""
    draw = random.Random(1)
    false = 0
    for _ in range(20_000):
        shared = 200.0 if draw.random() < 1 / 200 else 0.0
        false += bool(e_benjamini_hochberg(logs([shared] * 10), alpha=0.05))
    assert false / 20_000 <= 0.05


def test_unprobed_hypotheses_still_count() -> None:
    assert e_benjamini_hochberg(logs([30.0]), alpha=0.05) == ("h0",)
    assert e_benjamini_hochberg(logs([30.0]), alpha=0.05, hypotheses=2) == ()


def test_e_bh_refuses_what_has_no_meaning() -> None:
    with pytest.raises(ConfigurationError, match="alpha"):
        e_benjamini_hochberg({}, alpha=0.0)
    with pytest.raises(ConfigurationError, match="fewer"):
        e_benjamini_hochberg(logs([1.0, 2.0]), alpha=0.05, hypotheses=1)
    with pytest.raises(InvalidMeasurement, match="log e-value"):
        e_benjamini_hochberg({"a": math.nan}, alpha=0.05)


def test_the_monitor_names_the_guilty_cell_and_nobody_else() -> None:
    monitor = RunMonitor(axes=("age", "gender"), node_count=3)
    for node, e_value in (("a", 1.4), ("b", 400.0), ("c", 0.6)):
        monitor.update(
            [
                Cell(node=node, axis="age", share=0.3, e_value=e_value),
                Cell(node=node, axis="gender", share=0.3, e_value=1.0),
            ]
        )
    assert monitor.guilty() == (("b", "age"),)


def test_fresh_firings_multiply_and_cached_ones_name_nobody() -> None:
    def visit(*, cached: bool) -> tuple[tuple[str, str], ...]:
        monitor = RunMonitor(axes=("age",), cyclic=True, node_count=1)
        for number in range(2):
            monitor.update(
                [Cell(node="a", axis="age", share=0.5, e_value=6.0, cached=cached and number > 0)]
            )
        return monitor.guilty()

    assert visit(cached=False) == (("a", "age"),)  # 36 against 20
    assert visit(cached=True) == ()


def test_a_later_clean_firing_takes_a_name_back() -> None:
    """The evidence is that of the stopping time, not the largest it ever was."""
    monitor = RunMonitor(axes=("age",), cyclic=True, node_count=1)
    monitor.update([Cell(node="a", axis="age", share=0.5, e_value=30.0)])
    assert monitor.guilty() == (("a", "age"),)
    monitor.update([Cell(node="a", axis="age", share=0.5, e_value=0.1)])
    assert monitor.guilty() == ()


def test_an_e_value_of_zero_is_the_end_of_the_evidence() -> None:
    monitor = RunMonitor(axes=("age",), node_count=1)
    monitor.update([Cell(node="a", axis="age", share=0.5, e_value=0.0)])
    assert monitor.state.log_evidence["a", "age"] == -math.inf
    assert monitor.guilty() == ()


def test_the_detector_follows_its_recursion() -> None:
    detector, state = EDetector(alpha=0.001), DetectorState()
    values: list[float] = []
    for e_value in (1.0, 2.0, 0.5):
        state = detector.step(state, e_value)
        values.append(state.value)
    assert values == [1.0, 4.0, 2.5]


def test_the_detector_starts_afresh_after_an_alarm() -> None:
    detector = EDetector(alpha=0.05)
    alarm = detector.step(DetectorState(), 20.0)
    assert alarm.alarm
    assert detector.step(alarm, 3.0) == DetectorState(value=3.0, runs=1)


def test_the_mean_time_to_a_false_alarm_is_at_least_1_over_alpha() -> None:
    """e-values that are 3 with a chance of .3 and 1/7 else: mean 1."""
    rng, detector = np.random.default_rng(5), EDetector(alpha=0.05)
    lengths: list[int] = []
    state = DetectorState()
    for win in rng.random(20_000) < 0.3:
        state = detector.step(state, 3.0 if win else 1 / 7)
        if state.alarm:
            lengths.append(state.runs)
    assert np.mean(lengths) >= 20.0


def test_the_detector_refuses_impossible_numbers() -> None:
    with pytest.raises(ConfigurationError, match="alpha"):
        EDetector(alpha=1.0)
    for e_value in (math.nan, -1.0, math.inf):
        with pytest.raises(InvalidMeasurement, match="e-value of 'run'"):
            EDetector(alpha=0.05).step(DetectorState(), e_value)
