"""Several views of one output in one exact test."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from simulated_nodes import SKEWED, classes, margin, mismatch

from twinspan.instrumentation.errors import EstimatorError
from twinspan.instrumentation.orbit import orbit_test, square
from twinspan.instrumentation.splits import plan_splits
from twinspan.instrumentation.views import views_test

Floats = NDArray[np.float64]


def _random(seed: int, total: int = 9) -> Floats:
    return square(np.random.default_rng(seed).random(total * (total - 1) // 2))


def test_p_is_the_rank_of_the_largest_standardised_delta() -> None:
    views = {"class": _random(1), "length": _random(2)}
    found = views_test(views, 5)
    plan = plan_splits(5, 4)
    rows = [plan.parts(view.take(plan.pairs)[np.newaxis])[1][0] for view in views.values()]
    largest = np.max([(row - row.mean()) / row.std() for row in rows], axis=0)
    assert found.p == pytest.approx(np.mean(largest >= largest[0] - 1e-9))
    assert found.statistic == pytest.approx(largest[0])


def test_one_view_is_the_plain_test() -> None:
    view = _random(3)
    found, plain = views_test({"class": view}, 5), orbit_test(view, 5)
    assert (found.p, found.e, found.statistic) == pytest.approx((plain.p, plain.e, plain.z))
    assert found.views["class"] == plain


def test_the_loudest_view_is_named() -> None:
    arms = np.arange(10) >= 5
    clear = np.not_equal.outer(arms, arms).astype(float)
    found = views_test({"noise": _random(4, 10), "class": clear}, 5)
    assert found.loudest == "class"
    assert found.p == pytest.approx(2 / 252)


def test_views_without_spread_are_no_evidence() -> None:
    found = views_test({"class": np.zeros((8, 8)), "length": np.zeros((8, 8))}, 4)
    assert (found.p, found.e, found.statistic) == (1, 1, 0)


def test_unbiased_nodes_are_flagged_as_rarely_as_promised() -> None:
    nodes = 600
    codes = classes(np.random.default_rng(5), SKEWED, (nodes, 10))
    coarse, fine = mismatch(codes // 2), mismatch(codes)
    p = [
        views_test({"coarse": square(one), "fine": square(other)}, 5).p
        for one, other in zip(coarse, fine, strict=True)
    ]
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + margin(0.05, nodes)


def test_views_must_be_of_the_same_samples() -> None:
    with pytest.raises(EstimatorError, match="same samples"):
        views_test({"class": np.zeros((8, 8)), "length": np.zeros((9, 9))}, 4)
    with pytest.raises(EstimatorError, match="must be given"):
        views_test({}, 4)
