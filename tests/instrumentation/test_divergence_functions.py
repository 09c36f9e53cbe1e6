"""jsd, softmax and cosine distance: values known in closed form, and what they refuse."""

from __future__ import annotations

from math import log2

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspan.instrumentation.divergence import cosine_distance, jsd, softmax
from twinspan.instrumentation.errors import EstimatorError

shares = st.lists(st.floats(0, 1), min_size=3, max_size=3).filter(lambda p: sum(p) > 0.01)


@pytest.mark.parametrize(
    ("first", "second", "bits"),
    [
        ([0.5, 0.5], [0.5, 0.5], 0.0),
        ([1, 0], [0, 1], 1.0),
        ([1, 0], [0.5, 0.5], 0.3112781244591328),
        ([0.7, 0.2, 0.1], [0.1, 0.3, 0.6], 0.3327511016026796),
        ([0.9, 0.1], [0.1, 0.9], 0.5310044064107189),
        ([0.25] * 4, [1, 0, 0, 0], 0.5487949406953986),
    ],
)
def test_jsd_has_the_known_values_in_both_directions(
    first: list[float], second: list[float], bits: float
) -> None:
    assert jsd(first, second) == pytest.approx(bits, abs=1e-15)
    assert jsd(second, first) == pytest.approx(bits, abs=1e-15)


@pytest.mark.parametrize(
    ("first", "second", "bits"),
    [([2, 1, 0], [0, 1, 2], 0.3571940829917201), ([2, 0], [0, 2], 0.4729346589968383)],
)
def test_jsd_of_raw_scores_goes_through_softmax(
    first: list[float], second: list[float], bits: float
) -> None:
    assert jsd(softmax(first), softmax(second)) == pytest.approx(bits, abs=1e-15)


@given(shares, shares)
def test_jsd_equals_the_entropy_form(first: list[float], second: list[float]) -> None:
    """H((p + q) / 2) - (H(p) + H(q)) / 2, which loses digits but is the definition."""
    p, q = np.array(first) / sum(first), np.array(second) / sum(second)

    entropies = [-sum(w * log2(w) for w in law.tolist() if w > 0) for law in ((p + q) / 2, p, q)]
    assert jsd(p, q) == pytest.approx(entropies[0] - sum(entropies[1:]) / 2, abs=1e-12)


def test_jsd_keeps_its_digits_where_two_laws_are_nearly_the_same() -> None:
    """The leading term of the series is sum (p - q)^2 / (p + q) / (4 ln 2)."""
    step = 1e-9
    assert jsd([0.5, 0.5], [0.5 + step, 0.5 - step]) == pytest.approx(
        2 * step**2 / (4 * np.log(2)), rel=1e-6
    )


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ([0.5, 0.5], [0.5, 0.25, 0.25], "2 and 3 outcomes"),
        ([0.5, 0.4], [0.5, 0.5], "add up to 0.9"),
        ([1.5, -0.5], [0.5, 0.5], "negative"),
        ([np.nan, 1.0], [0.5, 0.5], "NaN"),
        ([], [], "no distribution"),
        ([[0.5, 0.5]], [[0.5, 0.5]], "no distribution"),
    ],
)
def test_jsd_refuses_what_is_no_pair_of_distributions(
    first: list[float], second: list[float], message: str
) -> None:
    with pytest.raises(EstimatorError, match=message):
        jsd(first, second)


def test_softmax_does_not_overflow() -> None:
    assert softmax([1000, 1001]) == pytest.approx([0.26894142, 0.73105858], abs=1e-8)
    assert softmax([5, 5, 5]) == pytest.approx([1 / 3] * 3)
    assert softmax([0, -np.inf]).tolist() == [1, 0]


@pytest.mark.parametrize("scores", [[], [[1.0]], [np.nan], [np.inf, 0], [-np.inf, -np.inf]])
def test_softmax_refuses_what_has_no_maximum(scores: list[float]) -> None:
    with pytest.raises(EstimatorError):
        softmax(scores)


@pytest.mark.parametrize(
    ("first", "second", "distance"),
    [
        ([1, 2, 3], [1, 2, 3], 0),
        ([1, 0], [5, 0], 0),
        ([1, 0], [0, 1], 1),
        ([1, 0], [-1, 0], 2),
        ([1, 2, 3], [3, 1, 2], 0.2142857142857143),
    ],
)
def test_cosine_distance_has_the_known_values(
    first: list[float], second: list[float], distance: float
) -> None:
    assert cosine_distance(first, second) == pytest.approx(distance, abs=1e-15)


@pytest.mark.parametrize(
    ("first", "second"),
    [([0, 0], [1, 0]), ([1, 0], [1, 0, 0]), ([np.nan, 1], [1, 0]), ([[1.0]], [[1.0]])],
)
def test_cosine_distance_refuses_vectors_without_an_angle(
    first: list[float], second: list[float]
) -> None:
    with pytest.raises(EstimatorError):
        cosine_distance(first, second)
