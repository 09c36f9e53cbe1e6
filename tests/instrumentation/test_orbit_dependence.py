"""Samples that depend on when they were drawn: detected, and repaired by design."""

from __future__ import annotations

import numpy as np
import pytest
from simulated_nodes import Floats, line, margin, series

from twinspan.instrumentation.dependence import dependence_test
from twinspan.instrumentation.errors import EstimatorError, InsufficientSamples, NonFiniteSample
from twinspan.instrumentation.orbit import orbit_test_triangles, square


def test_independent_samples_are_suspected_as_rarely_as_promised() -> None:
    values = np.random.default_rng(1).standard_normal((400, 12))
    p = [dependence_test(square(row), 6, range(12), draws=299).p for row in line(values)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + margin(0.05, 400)


def test_a_long_memory_is_detected() -> None:
    values = series(np.random.default_rng(2), 200, 20, 0.8)
    p = [dependence_test(square(row), 10, range(20), draws=299).p for row in line(values)]
    assert np.mean(np.array(p) <= 0.05) > 0.5


def test_a_real_difference_between_the_arms_is_no_dependence() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((300, 12)) + np.repeat([0, 5], 6)
    p = [dependence_test(square(row), 6, range(12), draws=299).p for row in line(values)]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + margin(0.05, 300)


def test_only_the_order_within_arms_counts() -> None:
    drifting = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0))) / 5
    distances = np.tile(drifting, (2, 2))
    in_order = dependence_test(distances, 6, range(12))
    interleaved = dependence_test(distances, 6, [*range(0, 12, 2), *range(1, 12, 2)])
    shuffled = dependence_test(distances, 6, [3, 0, 5, 1, 4, 2] * 2)
    assert in_order == interleaved
    assert in_order.p < 0.05 < shuffled.p
    assert in_order.drift > shuffled.drift


def test_a_deterministic_node_is_not_suspected() -> None:
    found = dependence_test(np.zeros((10, 10)), 5, range(10))
    assert (found.p, found.neighbours, found.drift) == (1, 0, 0)


def test_wrong_orders_and_bad_distances_are_refused() -> None:
    with pytest.raises(EstimatorError, match="3 order values for 6 samples"):
        dependence_test(np.zeros((6, 6)), 3, [1, 2, 3])
    with pytest.raises(InsufficientSamples):
        dependence_test(np.zeros((6, 6)), 5, range(6))
    with pytest.raises(NonFiniteSample):
        dependence_test(np.full((6, 6), np.nan), 3, range(6))


class TestDesignsUnderDependence:
    """A node without bias whose answers remember the one before, 8 samples an arm."""

    nodes = 800
    values = series(np.random.default_rng(9), 800, 16, 0.8)

    def _false_alarms(self, values: Floats, blocks: list[int] | None = None) -> float:
        return float(np.mean(orbit_test_triangles(line(values), 8, blocks=blocks).p <= 0.05))

    def test_one_arm_after_the_other_is_flagged_far_too_often(self) -> None:
        """No permutation of labels can help here: the design confounds time and arm."""
        assert self._false_alarms(self.values) > 0.4

    def test_both_arms_in_random_order_keep_the_promise(self) -> None:
        shuffled = np.random.default_rng(10).permuted(self.values, axis=1)
        assert self._false_alarms(shuffled) <= 0.05 + margin(0.05, self.nodes)

    def test_pairs_in_random_order_exchanged_within_pairs_keep_the_promise(self) -> None:
        pairs = np.random.default_rng(11).permuted(self.values.reshape(-1, 8, 2), axis=2)
        values = np.concatenate([pairs[:, :, 0], pairs[:, :, 1]], axis=1)
        blocks = [*range(8), *range(8)]
        assert self._false_alarms(values, blocks) <= 0.05 + margin(0.05, self.nodes)
