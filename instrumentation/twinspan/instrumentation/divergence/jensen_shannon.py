"""Token or choice probabilities: the root of the Jensen-Shannon divergence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from twinspan.instrumentation.divergence.distributions import align
from twinspan.instrumentation.divergence.outcome import with_outcomes
from twinspan.instrumentation.errors import EstimatorError

Floats = NDArray[np.float64]

_SMALL: Final = 1e-2
_LN2: Final = float(np.log(2.0))


@dataclass(frozen=True, slots=True, kw_only=True)
class JensenShannonEstimator:
    """Root of the base-2 Jensen-Shannon divergence of two samples' probabilities, in [0, 1].

    The root is a metric (Endres & Schindelin 2003); the divergence itself is not. Each sample
    is compared as a whole distribution: nothing is averaged before the distance is taken, so
    an arm that splits into extremes differs from one that stays in the middle.

    >>> import math
    >>> sure, even = {"yes": 0.0}, {"yes": math.log(0.5), "no": math.log(0.5)}
    >>> JensenShannonEstimator().matrix([sure, even]).round(4).tolist()
    [[0.0, 0.5579], [0.5579, 0.0]]
    """

    name: str = field(default="js_logprob", init=False)
    version: str = field(default="1", init=False)
    scale: str = field(default="1 = nothing in common", init=False)

    def matrix(self, samples: Sequence[object]) -> Floats:
        """N x N distances.

        Args:
            samples: N maps from outcome to log-probability, or N equally long sequences.

        Raises:
            EstimatorError: something is no such map, or its masses add up to more than 1.
            NonFiniteSample: a log-probability is NaN or +inf.
        """
        return with_outcomes(samples, _between)


def jsd(first: ArrayLike, second: ArrayLike) -> float:
    """Jensen-Shannon divergence of two distributions in bits, in [0, 1] (Lin 1991).

    Args:
        first: probabilities: one non-negative vector that adds up to 1 within 1e-9.
        second: probabilities over the same outcomes in the same order.

    Raises:
        EstimatorError: lengths differ, a vector is empty, has a negative entry or another sum.

    >>> jsd([1, 0], [0, 1]), jsd([0.5, 0.5], [0.5, 0.5]), round(jsd([1, 0], [0.5, 0.5]), 6)
    (1.0, 0.0, 0.311278)
    """
    one, other = _distribution(first), _distribution(second)
    if one.shape != other.shape:
        raise EstimatorError(
            f"distributions over {len(one)} and {len(other)} outcomes; align their supports"
        )
    return float(_divergences(one, other))


def _between(samples: Sequence[object]) -> Floats:
    rows = align(samples)
    distances = np.zeros((len(rows), len(rows)))
    for index, row in enumerate(rows[:-1]):
        distances[index, index + 1 :] = np.sqrt(_divergences(row, rows[index + 1 :]))
    return distances + distances.T


def _divergences(row: Floats, others: Floats) -> Floats:
    """Divergences in bits of one distribution from others, without cancellation.

    With ``x = (p - q) / (p + q)`` each outcome adds ``(p + q) / 2`` times a term in x that is
    never negative, so nothing is lost where the two are nearly the same.
    """
    total = row + others
    x = np.abs(np.divide(row - others, total, out=np.zeros_like(total), where=total > 0))
    bits: Floats = (total / 2 * _excess(x)).sum(axis=-1) / _LN2
    return np.clip(bits, 0.0, 1.0)


def _excess(x: Floats) -> Floats:
    """``((1 + x) ln(1 + x) + (1 - x) ln(1 - x)) / 2`` for x in [0, 1]."""
    power = x * x
    series = power * (1 / 2 + power * (1 / 12 + power * (1 / 30 + power / 56)))
    rest = np.maximum(1 - x, 0.0)
    logs = np.log(np.where(rest > 0, rest, 1.0))
    direct = ((1 + x) * np.log1p(x) + rest * logs) / 2
    return np.where(x < _SMALL, series, direct)


def _distribution(values: ArrayLike) -> Floats:
    vector = np.asarray(values, dtype=np.float64)
    if vector.ndim != 1 or not vector.size:
        raise EstimatorError(f"shape {vector.shape} is no distribution; give one vector")
    if not (vector >= 0).all():
        raise EstimatorError("a probability is negative or NaN; normalise the distribution")
    total = float(vector.sum())
    if abs(total - 1) > 1e-9:
        raise EstimatorError(f"probabilities add up to {total:.12g}; normalise the distribution")
    return vector
