"""How the magnitudes of one superstep become one number."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspan.collector.reduction import REDUCTIONS, reduce_superstep
from twinspan.collector.weights import dependency_weights
from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement, UnknownNode
from twinspan.instrumentation.settings import Reduction

THREE = {"a": 0.1, "b": 0.9, "c": 0.5}
WEIGHTS = {"a": 0.5, "b": 0.3, "c": 0.2}


@pytest.mark.parametrize("order", ["abc", "cba", "bca"])
def test_vector_41_mean_and_maximum(order: str) -> None:
    magnitudes = {node: THREE[node] for node in order}
    assert reduce_superstep(magnitudes, WEIGHTS, "weighted_mean").value == pytest.approx(0.42)
    assert reduce_superstep(magnitudes, WEIGHTS, "max").value == 0.9


def test_vector_42_a_central_node_dominates_the_mean() -> None:
    weights = {"central": 0.9, "leaf": 0.1}
    found = reduce_superstep({"central": 1.0, "leaf": 0.0}, weights, "weighted_mean")
    assert found.value == pytest.approx(0.9)
    assert reduce_superstep({"central": 0.2, "leaf": 0.7}, weights, "max").value == 0.7


def test_one_node_alone_enters_an_impact_with_exactly_weight_times_magnitude() -> None:
    weights = dependency_weights([("root", "hub"), ("hub", "leaf")])
    for rule in ("impact_sum", "impact_max"):
        found = reduce_superstep({"leaf": 0.4}, weights, rule)
        assert found.value == weights.scaled["leaf"] * 0.4
    assert reduce_superstep({"root": 0.4}, weights, "impact_sum").value == 0.4


def test_impact_sums_and_maxima_of_several_nodes() -> None:
    weights = {"a": 1.0, "b": 0.5}
    magnitudes = {"a": 0.1, "b": 0.6}
    assert reduce_superstep(magnitudes, weights, "impact_sum").value == pytest.approx(0.4)
    assert reduce_superstep(magnitudes, weights, "impact_max").value == pytest.approx(0.3)


@pytest.mark.parametrize("rule", REDUCTIONS)
def test_a_superstep_without_nodes_is_zero(rule: Reduction) -> None:
    found = reduce_superstep({}, WEIGHTS, rule)
    assert found.value == 0.0
    assert found.variance == 0.0


def test_a_weight_sum_of_zero_is_zero_for_the_mean() -> None:
    assert reduce_superstep({"a": 0.4}, {"a": 0.0}, "weighted_mean").value == 0.0


@pytest.mark.parametrize("rule", REDUCTIONS)
def test_negative_magnitudes_are_kept(rule: Reduction) -> None:
    """Clipping at zero would make the mean of a clean node positive."""
    assert reduce_superstep({"a": -0.2}, {"a": 1.0}, rule).value == -0.2


@given(st.dictionaries(st.sampled_from("abc"), st.floats(-1.0, 1.0), min_size=1))
def test_contributions_add_up_and_name_who_put_in_what(magnitudes: dict[str, float]) -> None:
    for rule in ("impact_sum", "weighted_mean"):
        found = reduce_superstep(magnitudes, WEIGHTS, rule)
        assert math.fsum(found.contributions.values()) == found.value
        assert found.contributions.keys() == magnitudes.keys()


def test_variances_of_independent_nodes_add_with_squared_weights() -> None:
    variances = {"a": 0.04, "b": 0.01}
    weights = {"a": 1.0, "b": 0.5}
    magnitudes = {"a": 0.0, "b": 0.0}
    total = reduce_superstep(magnitudes, weights, "impact_sum", variances=variances)
    assert total.variance == pytest.approx(0.04 + 0.25 * 0.01)
    mean = reduce_superstep(magnitudes, weights, "weighted_mean", variances=variances)
    assert mean.variance == pytest.approx((0.04 + 0.25 * 0.01) / 1.5**2)
    assert reduce_superstep(magnitudes, weights, "impact_max", variances=variances).variance is None


def test_a_missing_variance_leaves_none() -> None:
    found = reduce_superstep(THREE, WEIGHTS, "impact_sum", variances={"a": 0.1, "b": 0.1})
    assert found.variance is None


@pytest.mark.parametrize("rule", REDUCTIONS)
def test_a_missing_weight_raises_even_where_weights_play_no_part(rule: Reduction) -> None:
    with pytest.raises(UnknownNode, match="'z'"):
        reduce_superstep({"z": 0.1}, WEIGHTS, rule)


def test_an_impact_refuses_weights_that_were_not_scaled() -> None:
    """Raw Katz values would make the threshold mean something else on every graph."""
    with pytest.raises(InvalidMeasurement, match="at most 1"):
        reduce_superstep({"a": 0.1}, {"a": 1.75}, "impact_sum")
    assert reduce_superstep({"a": 0.1}, {"a": 1.75}, "weighted_mean").value == pytest.approx(0.1)


@pytest.mark.parametrize("variance", [math.nan, -0.1])
def test_a_variance_must_be_one(variance: float) -> None:
    with pytest.raises(InvalidMeasurement, match="variance of 'a'"):
        reduce_superstep({"a": 0.1}, {"a": 1.0}, "impact_sum", variances={"a": variance})


def test_an_unknown_reduction_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="'sum' is unknown"):
        reduce_superstep(THREE, WEIGHTS, "sum")  # type: ignore[arg-type]  # pyright: ignore
