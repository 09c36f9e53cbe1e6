"""An interval for delta: indicative at small n, never the decision.

A naive bootstrap of a two-sample discrepancy draws the same original twice and finds it at
distance 0 from itself, which adds a second helping of sampling noise: up to four in five
intervals then exclude 0 on unbiased, varied nodes. Here pairs of the same original do not count.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import comb
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import ConfigurationError, InsufficientSamples
from twinspan.instrumentation.splits import DEFAULT_SEED, upper_triangle

Floats = NDArray[np.float64]

DRAWS: Final = 1_000
"""Bootstrap draws of an interval."""

MIN_ARM: Final = 3
"""With two samples there is one way to draw two different ones, and no interval."""

_DUST: Final = 1e-12
"""Ends nearer to 0 than this are rounding."""

_PAIR_FORM_LIMIT: Final = 1 << 20
"""Entries up to which one weight per draw and pair is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Resamples:
    """Bootstrap draws of one shape.

    Attributes:
        reference: draws x n_reference, how often each sample was drawn.
        counterfactual: the same for the other arm.
        weights: draws x pairs, so that delta is a product with the distances; None if large.
    """

    reference: Floats
    counterfactual: Floats
    weights: Floats | None


def effect_interval(
    distances: Floats, n_reference: int, *, confidence: float = 0.95, seed: int | None = None
) -> tuple[float, float]:
    """Percentile interval for delta from a bootstrap within each arm.

    Each draw weighs samples by how often they were drawn, ``w``; the mean distance within an
    arm is ``w'Dw / (n^2 - sum w^2)``, which leaves out pairs of one original and so stays
    unbiased.

    Args:
        distances: N x N distances in [0, 1], the reference samples first.
        n_reference: how many samples are reference; both arms need at least 3.
        confidence: nominal coverage in (0, 1). Measured coverage of 95% at five samples an arm
            is above .99 without an effect, about .94 for moderate ones, .77 when one arm is
            deterministic (see `unseen_share`) and .6 for a small shift among thirty classes.
        seed: seed of the draws; fixed by default.

    Raises:
        ConfigurationError: confidence is outside (0, 1).
        InsufficientSamples: an arm has fewer than three samples.

    Deterministic arms have an interval of no width:

    >>> far = np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((3, 3)))
    >>> effect_interval(far, 3)
    (1.0, 1.0)
    """
    triangle = distances.take(upper_triangle(len(distances)))
    low, high = intervals(
        triangle[np.newaxis], n_reference, len(distances), confidence=confidence, seed=seed
    )
    return float(low[0]), float(high[0])


def intervals(
    triangles: Floats,
    n_reference: int,
    total: int,
    *,
    confidence: float = 0.95,
    seed: int | None = None,
) -> tuple[Floats, Floats]:
    """`effect_interval` for B probe sets of one shape: lower and upper ends.

    Args:
        triangles: B x N(N-1)/2 distances, row-major upper triangles.
        n_reference: reference samples in each.
        total: N.
        confidence: nominal coverage in (0, 1).
        seed: seed of the draws; fixed by default.

    Raises:
        ConfigurationError: confidence is outside (0, 1).
        InsufficientSamples: an arm has fewer than three samples.
    """
    if not 0 < confidence < 1:
        raise ConfigurationError(f"confidence {confidence!r} is not between 0 and 1")
    resamples = _resamples(n_reference, total - n_reference, DEFAULT_SEED if seed is None else seed)
    if resamples.weights is not None:
        deltas = triangles @ resamples.weights.T
    else:
        deltas = np.stack([_deltas(resamples, triangle, total) for triangle in triangles])
    deltas.sort(axis=1)
    tail = (1 - confidence) / 2
    return _quantile(deltas, tail), _quantile(deltas, 1 - tail)


def unseen_share(n: int, confidence: float = 0.95) -> float:
    """How large a share of other outcomes n equal samples still leave possible.

    The exact form of the rule of three: an outcome with this share stays unseen in n draws
    with probability ``1 - confidence``.

    Args:
        n: samples that all agreed, at least 1.
        confidence: of the bound, in (0, 1).

    Raises:
        ConfigurationError: n is below 1 or confidence outside (0, 1).

    >>> round(unseen_share(5), 2), round(unseen_share(300), 3)
    (0.45, 0.01)
    """
    if n < 1 or not 0 < confidence < 1:
        raise ConfigurationError(
            f"n={n!r} with confidence {confidence!r} has no bound; "
            "give at least one sample and a confidence between 0 and 1"
        )
    return float(1 - (1 - confidence) ** (1 / n))


@lru_cache(maxsize=16)
def _resamples(n_reference: int, n_counterfactual: int, seed: int) -> _Resamples:
    for arm, count in (("reference", n_reference), ("counterfactual", n_counterfactual)):
        if count < MIN_ARM:
            raise InsufficientSamples(arm, count=count, needed=MIN_ARM)
    rng = np.random.default_rng(seed)
    reference = _draw(rng, n_reference)
    counterfactual = _draw(rng, n_counterfactual)
    weights = None
    if DRAWS * comb(n_reference + n_counterfactual, 2) <= _PAIR_FORM_LIMIT:
        weights = _pair_weights(reference, counterfactual)
    return _Resamples(reference=reference, counterfactual=counterfactual, weights=weights)


def _draw(rng: np.random.Generator, n: int) -> Floats:
    """Counts of n draws from n samples, given that at least two samples were drawn."""
    counts = rng.multinomial(n, np.full(n, 1 / n), size=DRAWS)
    while (alone := np.flatnonzero(counts.max(axis=1) == n)).size:
        counts[alone] = rng.multinomial(n, np.full(n, 1 / n), size=alone.size)
    return counts.astype(np.float64)


def _distinct_pairs(counts: Floats) -> Floats:
    pairs: Floats = counts.shape[1] ** 2 - np.vecdot(counts, counts)
    return pairs


def _pair_weights(reference: Floats, counterfactual: Floats) -> Floats:
    n, m = reference.shape[1], counterfactual.shape[1]
    first, second = np.triu_indices(n + m, 1)
    pooled = np.concatenate([reference, counterfactual], axis=1)
    products: Floats = pooled[:, first] * pooled[:, second]
    inside, other = second < n, first >= n
    products[:, inside] *= -1 / _distinct_pairs(reference)[:, np.newaxis]
    products[:, other] *= -1 / _distinct_pairs(counterfactual)[:, np.newaxis]
    products[:, ~(inside | other)] /= n * m
    products.setflags(write=False)
    return products


def _deltas(resamples: _Resamples, triangle: Floats, total: int) -> Floats:
    square = np.zeros((total, total))
    square.flat[upper_triangle(total)] = triangle
    square += square.T
    x, y = resamples.reference, resamples.counterfactual
    n, m = x.shape[1], y.shape[1]
    across = np.vecdot(x @ square[:n, n:], y) / (n * m)
    inside = np.vecdot(x @ square[:n, :n], x) / _distinct_pairs(x)
    other = np.vecdot(y @ square[n:, n:], y) / _distinct_pairs(y)
    deltas: Floats = across - (inside + other) / 2
    return deltas


def _quantile(ascending: Floats, share: float) -> Floats:
    """Linear interpolation between order statistics, as numpy's default."""
    position = share * (ascending.shape[1] - 1)
    low = int(position)
    high = min(low + 1, ascending.shape[1] - 1)
    left, right = ascending[:, low], ascending[:, high]
    between: Floats = left + (right - left) * (position - low)
    # An end at 0 must not read as an end above it.
    between[np.abs(between) < _DUST] = 0.0
    return between
