"""Several axes of one node in one test."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from simulated_nodes import SKEWED, classes, margin, mismatch

from twinspan.instrumentation.errors import EstimatorError, InsufficientSamples, NonFiniteSample
from twinspan.instrumentation.joint import joint_maxima, joint_test
from twinspan.instrumentation.orbit import orbit_test, square

Floats = NDArray[np.float64]


def _distances(codes: NDArray[np.intp]) -> Floats:
    return square(mismatch(codes[np.newaxis])[0])


def test_each_axis_alone_is_the_pairwise_test() -> None:
    codes = np.random.default_rng(1).integers(0, 3, 17)
    found = joint_test(_distances(codes), 5, {"age": 5, "gender": 4, "name": 3})
    alone = {"age": codes[:10], "gender": codes[[*range(5), *range(10, 14)]]}
    for axis in found.axes[:2]:
        assert axis.alone == pytest.approx(orbit_test(_distances(alone[axis.axis]), 5))
    assert [axis.axis for axis in found.axes] == ["age", "gender", "name"]


def test_the_statistic_is_the_largest_delta() -> None:
    codes = np.random.default_rng(2).integers(0, 3, 20)
    found = joint_test(_distances(codes), 5, {"age": 5, "gender": 5, "name": 5})
    assert found.statistic == pytest.approx(max(axis.alone.delta for axis in found.axes))
    assert found.worst.alone.delta == pytest.approx(found.statistic)


def test_with_one_axis_it_is_the_pairwise_test_on_random_labellings() -> None:
    codes = np.random.default_rng(3).integers(0, 3, 10)
    found = joint_test(_distances(codes), 5, {"age": 5}, draws=4_999)
    exact = found.axes[0].alone.p
    assert found.axes[0].p_holm == exact
    assert found.p == pytest.approx(exact, abs=margin(exact, 5_000))


def test_no_axis_matters_is_rejected_as_rarely_as_promised() -> None:
    """Six axes share a reference; the largest of six 5% tests would be wrong far more often."""
    rng = np.random.default_rng(4)
    nodes, sizes = 500, (5,) * 6
    codes = classes(rng, SKEWED, (nodes, 40))
    maxima = np.stack([joint_maxima(_distances(row), 10, sizes, draws=299) for row in codes])
    p = np.mean(maxima >= maxima[:, :1] - 1e-9, axis=1)
    assert np.mean(p <= 0.05) <= 0.05 + margin(0.05, nodes)


def test_a_guilty_axis_is_found_and_named() -> None:
    codes = np.array([0] * 10 + [0, 0, 0, 0, 1] + [2] * 5 + [0] * 5)
    found = joint_test(_distances(codes), 10, {"age": 5, "gender": 5, "name": 5})
    assert found.p <= 0.002
    assert found.worst.axis == "gender"
    assert [axis.p_holm <= 0.05 for axis in found.axes] == [False, True, False]


def test_arms_of_different_sizes_are_standardised_before_the_largest_is_taken() -> None:
    """A small arm's delta is noisier; raw, it would drown a clear large arm."""
    rng = np.random.default_rng(6)
    codes = rng.integers(0, 2, 30)
    statistic = joint_maxima(_distances(codes), 10, (15, 5))
    assert statistic.mean() > 0
    assert statistic[1:].std() == pytest.approx(1, abs=0.5)


def test_the_same_data_give_the_same_answer() -> None:
    distances = _distances(np.random.default_rng(8).integers(0, 3, 15))
    arms = {"age": 5, "gender": 5}
    assert joint_test(distances, 5, arms) == joint_test(distances, 5, arms)
    assert joint_test(distances, 5, arms) != joint_test(distances, 5, arms, seed=1)


def test_wrong_sizes_missing_axes_and_bad_distances_are_refused() -> None:
    distances = np.zeros((10, 10))
    with pytest.raises(EstimatorError, match="do not add up to 10"):
        joint_test(distances, 5, {"age": 4})
    with pytest.raises(EstimatorError, match="at least one"):
        joint_test(distances, 10, {})
    with pytest.raises(InsufficientSamples):
        joint_test(distances, 5, {"age": 4, "gender": 1})
    with pytest.raises(NonFiniteSample):
        joint_test(np.full((10, 10), np.nan), 5, {"age": 5})
