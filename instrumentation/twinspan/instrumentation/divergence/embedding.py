"""Vectors: half the straight-line distance between their directions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinspan.instrumentation.divergence.outcome import Outcome, as_outcome, with_outcomes
from twinspan.instrumentation.divergence.values import require_finite_rows
from twinspan.instrumentation.errors import EstimatorError

Floats = NDArray[np.float64]

_NEAR: Final = 1e-6
"""Below this value of 2(1 - cos) rounding shows after the root, so pairs are taken anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingEstimator:
    """Chordal distance ``sqrt(2 (1 - cos)) / 2`` of vectors, in [0, 1].

    0 for one direction, 0.707 for orthogonal ones, 1 for opposite ones; length does not count.
    Unlike ``1 - cos``, half a squared distance and so little more than a comparison of means,
    it also sees an arm that has merely become more or less varied.

    >>> EmbeddingEstimator().matrix([[1.0, 0.0], [5.0, 0.0], [-1.0, 0.0]]).tolist()
    [[0.0, 0.0, 1.0], [0.0, 0.0, 1.0], [1.0, 1.0, 0.0]]
    """

    name: str = field(default="embedding", init=False)
    version: str = field(default="1", init=False)
    scale: str = field(default="1 = opposite direction", init=False)

    def matrix(self, samples: Sequence[object]) -> Floats:
        """N x N chordal distances.

        Args:
            samples: N vectors of one width; an empty or all-zero vector has no direction and
                is the empty outcome.

        Raises:
            EstimatorError: something is not a vector of numbers, or widths differ.
            NonFiniteSample: a vector holds NaN or infinity.
        """
        vectors = [_vector(sample) for sample in samples]
        return with_outcomes(vectors, _between)


def cosine_distance(first: ArrayLike, second: ArrayLike) -> float:
    """``1 - cos`` of the angle between two vectors, in [0, 2].

    Args:
        first: a non-zero vector.
        second: a non-zero vector of the same width.

    Raises:
        EstimatorError: the shapes differ, a vector is zero, or one is not finite.

    >>> round(cosine_distance([1, 2, 3], [3, 1, 2]), 6), cosine_distance([1, 0], [0, 1])
    (0.214286, 1.0)
    """
    one, other = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    if one.shape != other.shape or one.ndim != 1:
        raise EstimatorError(
            f"vectors of shapes {one.shape} and {other.shape} have no angle; embed both alike"
        )
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    if not 0 < lengths < np.inf:
        raise EstimatorError(
            "a zero or non-finite vector has no direction; drop it or treat it as an outcome"
        )
    cosine = float(one @ other) / lengths
    return 1.0 - min(1.0, max(-1.0, cosine))


def chordal(vectors: Floats) -> Floats:
    """Chordal distances of the rows of an N x K array, none of them zero.

    >>> chordal(np.array([[1.0, 0.0], [0.0, 2.0]])).round(4).tolist()
    [[0.0, 0.7071], [0.7071, 0.0]]
    """
    # Dividing by the largest entry first keeps squares from vanishing or overflowing.
    scaled = vectors / np.abs(vectors).max(axis=1, keepdims=True)
    units: Floats = scaled / np.linalg.norm(scaled, axis=1, keepdims=True)
    squared = np.maximum(2.0 - 2.0 * (units @ units.T), 0.0)
    np.fill_diagonal(squared, 0.0)
    first, second = np.nonzero((squared < _NEAR) & ~np.eye(len(units), dtype=np.bool_))
    gaps = units[first] - units[second]
    squared[first, second] = np.vecdot(gaps, gaps)
    return np.minimum(np.sqrt(squared) / 2, 1.0)


def _vector(sample: object) -> Floats | Outcome:
    outcome = as_outcome(sample)
    if outcome is not None:
        return outcome
    try:
        vector = np.asarray(sample, dtype=np.float64)
    except (TypeError, ValueError):
        raise EstimatorError(
            f"{type(sample).__name__!r} is no vector of numbers; choose another method"
        ) from None
    if vector.ndim != 1:
        raise EstimatorError(
            f"a sample has {vector.ndim} dimensions; one vector per sample is needed"
        )
    return vector if vector.any() else Outcome.empty


def _between(vectors: Sequence[object]) -> Floats:
    rows = cast(Sequence[Floats], vectors)
    widths = sorted({len(row) for row in rows})
    if len(widths) > 1:
        raise EstimatorError(f"vectors of widths {widths} cannot be compared; embed all alike")
    matrix = np.stack(rows)
    require_finite_rows(matrix)
    return chordal(matrix)
