"""The two moving averages."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from twinspan.collector.accumulator import (
    MovingAverage,
    NetworkAccumulator,
    NetworkState,
    slow_alpha_for_depth,
    warmup_factor,
)
from twinspan.collector.reduction import reduce_superstep
from twinspan.instrumentation.errors import (
    ConfigurationError,
    InvalidMeasurement,
    MixedEstimators,
    UnknownNode,
)

INPUTS = st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=25)
ALPHAS = st.floats(0.05, 1.0)
ONE = {"a": 1.0}


def fed(inputs: list[float], **options: float) -> list[NetworkState]:
    """The states after each input of one node of weight 1."""
    accumulator = NetworkAccumulator(**options)  # type: ignore[arg-type]
    return [accumulator.update({"a": value}, ONE) for value in inputs]


def test_vector_40_a_constant_is_reported_at_once() -> None:
    for state in fed([0.4] * 5):
        assert state.fast == pytest.approx(0.4)
        assert state.slow == pytest.approx(0.4)


def test_vector_43_five_zeros_and_a_one() -> None:
    state = fed([0.0] * 5 + [1.0])[-1]
    assert state.fast == pytest.approx(0.7005106723, abs=1e-10)
    assert state.slow == pytest.approx(0.2134202950, abs=1e-10)


def test_vector_44_a_superstep_without_nodes_counts_as_zero() -> None:
    accumulator = NetworkAccumulator(reduction="weighted_mean")
    states = [accumulator.update(magnitudes, ONE) for magnitudes in ({"a": 1.0}, {}, {})]
    assert [s.fast for s in states] == pytest.approx([1, 0.2307692308, 0.0647482014], abs=1e-10)
    assert [s.slow for s in states] == pytest.approx([1, 0.4736842105, 0.2988929889], abs=1e-10)


def test_vector_45_both_scales() -> None:
    states = fed([0.0, 0.1, 0.2, 0.4, 0.0])
    assert [s.fast for s in states] == pytest.approx(
        [0, 0.076923, 0.165468, 0.330981, 0.098730], abs=1e-6
    )
    assert [s.slow for s in states] == pytest.approx(
        [0, 0.052632, 0.107011, 0.192207, 0.145271], abs=1e-6
    )


def test_vector_46_wrong_use_is_refused() -> None:
    with pytest.raises(UnknownNode, match="'b'"):
        NetworkAccumulator().update({"b": 0.1}, ONE)
    for alpha in (0.0, 1.5, math.nan):
        with pytest.raises(ConfigurationError, match="fast_alpha"):
            NetworkAccumulator(fast_alpha=alpha)
        with pytest.raises(ConfigurationError, match="slow_alpha"):
            NetworkAccumulator(slow_alpha=alpha)
    with pytest.raises(ConfigurationError, match="'median' is unknown"):
        NetworkAccumulator(reduction="median")  # type: ignore[arg-type]  # pyright: ignore


def test_the_defaults_are_the_published_ones() -> None:
    accumulator = NetworkAccumulator()
    assert (accumulator.fast_alpha, accumulator.slow_alpha) == (0.7, 0.1)
    assert accumulator.reduction == "impact_sum"
    assert slow_alpha_for_depth(9) == pytest.approx(0.2)
    assert NetworkAccumulator.for_depth(3).slow_alpha == 0.5


@settings(max_examples=40)
@given(INPUTS, ALPHAS)
def test_every_value_equals_the_weighted_sum_over_all_inputs(
    inputs: list[float], alpha: float
) -> None:
    """B_t = sum of a (1-a)^(t-s) / (1 - (1-a)^t) x_s, computed in one go."""
    for steps, state in enumerate(fed(inputs, fast_alpha=alpha), start=1):
        factors = alpha * (1 - alpha) ** np.arange(steps - 1, -1, -1.0)
        expected = factors @ np.array(inputs[:steps]) / (1 - (1 - alpha) ** steps)
        assert state.fast == pytest.approx(float(expected), abs=1e-9)


@settings(max_examples=40)
@given(st.lists(st.floats(0.0, 4.0), min_size=1, max_size=25), ALPHAS)
def test_the_variance_is_the_sum_of_squared_coefficients(
    variances: list[float], alpha: float
) -> None:
    average = MovingAverage(alpha=alpha)
    for steps, variance in enumerate(variances, start=1):
        average = average.after(0.0, variance=variance)
        factors = alpha * (1 - alpha) ** np.arange(steps - 1, -1, -1.0)
        factors /= 1 - (1 - alpha) ** steps
        expected = float((factors**2) @ np.array(variances[:steps]))
        assert average.variance == pytest.approx(expected, rel=1e-9, abs=1e-12)


@settings(max_examples=40)
@given(ALPHAS, st.integers(1, 60))
def test_the_warm_up_factor_is_the_ratio_of_deviations_at_equal_variances(
    alpha: float, step: int
) -> None:
    average = MovingAverage(alpha=alpha)
    for _ in range(step):
        average = average.after(0.0, variance=1.0)
    long_run = math.sqrt(alpha / (2 - alpha))
    assert average.deviation == pytest.approx(long_run * warmup_factor(alpha, step))


def test_a_deviation_exists_only_while_every_variance_is_known() -> None:
    accumulator = NetworkAccumulator()
    known = accumulator.update({"a": 0.3}, ONE, variances={"a": 0.04})
    assert known.fast_standardised == pytest.approx(1.5)
    assert accumulator.update({"a": 0.3}, ONE).fast_standardised is None
    assert accumulator.update({}, ONE).slow_standardised is None


def test_a_deviation_of_zero_standardises_nothing() -> None:
    state = NetworkAccumulator().update({"a": 0.0}, ONE, variances={"a": 0.0})
    assert state.fast_average.deviation == 0.0
    assert state.fast_standardised is None


def test_e10_a_nan_magnitude_raises_and_poisons_nothing() -> None:
    accumulator = NetworkAccumulator()
    before = accumulator.update({"a": 0.4}, ONE)
    for value in (math.nan, math.inf, -math.inf):
        with pytest.raises(InvalidMeasurement, match="magnitude of 'a'"):
            accumulator.update({"a": value}, ONE)
    assert accumulator.state is before
    assert accumulator.update({"a": 0.4}, ONE).fast == pytest.approx(0.4)


def test_e10_negative_weights_and_mixed_scales_raise() -> None:
    accumulator = NetworkAccumulator()
    with pytest.raises(InvalidMeasurement, match="weight of 'a'"):
        accumulator.update({"a": 0.4}, {"a": -1.0})
    accumulator.update({"a": 0.4}, ONE, estimators={"a": "action"})
    with pytest.raises(MixedEstimators, match="'action' and 'embedding'"):
        accumulator.update({"a": 0.4}, ONE, estimators={"a": "embedding"})
    assert accumulator.state.step == 1


def test_e10_two_scales_in_one_superstep_raise() -> None:
    with pytest.raises(MixedEstimators):
        NetworkAccumulator().update(
            {"a": 0.1, "b": 0.2},
            {"a": 1.0, "b": 1.0},
            estimators={"a": "action", "b": "embedding"},
        )


def test_e3_only_the_nodes_that_fired_are_fed() -> None:
    """A chain of four, the first with .2, the others clean: the .2 is counted once."""
    accumulator = NetworkAccumulator()
    weights = dict.fromkeys("abcd", 1.0)
    for node, magnitude in zip("abcd", (0.2, 0.0, 0.0, 0.0), strict=True):
        accumulator.update({node: magnitude}, weights)
    state = accumulator.state
    assert state.fast == pytest.approx(0.0038, abs=5e-5)
    assert state.slow == pytest.approx(0.0424, abs=5e-5)


def test_e6_a_fan_out_is_one_superstep_and_a_loop_three() -> None:
    """Two branches that end together are one input; a node visited three times gives three."""
    fan_out = NetworkAccumulator()
    state = fan_out.update({"left": 0.2, "right": 0.4}, {"left": 0.5, "right": 0.5, "hub": 1.0})
    assert state.step == 1
    assert state.fast == pytest.approx(0.3)
    assert [s.step for s in fed([0.1, 0.2, 0.3])] == [1, 2, 3]


@settings(max_examples=40)
@given(st.dictionaries(st.sampled_from("abcdefgh"), st.floats(-1.0, 1.0), min_size=2))
def test_the_order_of_nodes_within_a_superstep_plays_no_part(
    magnitudes: dict[str, float],
) -> None:
    """To the last bit: a replay in another order must give the same score."""
    weights = {node: 1 / (place + 1) for place, node in enumerate("abcdefgh")}
    shuffled = list(magnitudes.items())
    random.Random(1).shuffle(shuffled)
    one = NetworkAccumulator().update(magnitudes, weights)
    other = NetworkAccumulator().update(dict(shuffled), weights)
    assert one.fast == other.fast


def test_e1_and_e4_the_state_is_rebuilt_from_recorded_inputs() -> None:
    live = NetworkAccumulator()
    recorded = [{"a": 0.1}, {"a": 0.5, "b": -0.2}, {}, {"b": 0.3}]
    weights = {"a": 1.0, "b": 0.5}
    for magnitudes in recorded:
        live.update(magnitudes, weights)
    state = live.initial()
    for magnitudes in recorded:
        reduced = reduce_superstep(magnitudes, weights, live.reduction)
        state = NetworkAccumulator.step(state, reduced)
    assert state == live.state


def test_e1_two_accumulators_share_nothing() -> None:
    first, second = NetworkAccumulator(), NetworkAccumulator()
    first.update({"a": 0.9}, ONE)
    assert second.state.step == 0
    assert second.state.fast == 0.0


def test_s3_with_a_factor_the_first_supersteps_are_no_noisier_than_the_last() -> None:
    """Slow scale, 20,000 clean runs: exceedances at step 1 against step 40."""
    rng = np.random.default_rng(3)
    raw = np.zeros(20_000)
    constant: list[float] = []
    scaled: list[float] = []
    limit = 2.0 * math.sqrt(0.1 / 1.9)
    for step in range(1, 41):
        raw = 0.1 * rng.normal(size=raw.size) + 0.9 * raw
        value = raw / (1 - 0.9**step)
        constant.append(float((value >= limit).mean()))
        scaled.append(float((value >= limit * warmup_factor(0.1, step)).mean()))
    assert constant[0] > 10 * constant[-1]
    assert max(scaled) < 1.5 * min(scaled)


def test_s3_halts_within_twenty_clean_steps() -> None:
    """Three deviations of the long run: .384 with a constant limit, .014 with the factor."""
    rng = np.random.default_rng(4)
    raw = np.zeros(20_000)
    fired = np.zeros((2, raw.size), dtype=np.bool_)
    limit = 3.0 * math.sqrt(0.1 / 1.9)
    for step in range(1, 21):
        raw = 0.1 * rng.normal(size=raw.size) + 0.9 * raw
        value = raw / (1 - 0.9**step)
        fired[0] |= value >= limit
        fired[1] |= value >= limit * warmup_factor(0.1, step)
    assert fired[0].mean() == pytest.approx(0.384, abs=0.02)
    assert fired[1].mean() == pytest.approx(0.014, abs=0.004)


@pytest.mark.parametrize("depth", [0, -1])
def test_a_graph_has_at_least_one_level(depth: int) -> None:
    with pytest.raises(ConfigurationError, match="depth"):
        slow_alpha_for_depth(depth)


def test_there_is_no_warm_up_factor_before_the_first_step() -> None:
    with pytest.raises(ConfigurationError, match="step"):
        warmup_factor(0.1, 0)
