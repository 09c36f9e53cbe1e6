"""More than one test: adjusted p-values that keep an error rate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import ConfigurationError

Floats = NDArray[np.float64]


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Step-down adjusted p-values (Holm 1979).

    Rejecting those at most alpha keeps the chance of any false rejection at alpha, under any
    dependence.

    Args:
        p_values: K p-values in [0, 1], in any order.

    Returns:
        K adjusted p-values in the same order, each in [0, 1].

    Raises:
        ConfigurationError: a p-value is NaN or outside [0, 1].

    >>> holm([0.01, 0.04, 0.03])
    (0.03, 0.06, 0.06)
    """
    p, order = _ascending(p_values)
    steps = np.arange(len(p), 0, -1)
    return _restored(np.maximum.accumulate(p * steps), order)


def benjamini_hochberg(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values for the false discovery rate (Benjamini & Hochberg 1995).

    Rejecting those at most alpha keeps the expected share of false ones among the rejected at
    alpha when tests are independent or positively dependent. Axes that share a reference arm
    usually are; where that cannot be argued, use `benjamini_yekutieli`.

    Args:
        p_values: K p-values in [0, 1], in any order.

    Returns:
        K adjusted p-values in the same order, each in [0, 1].

    Raises:
        ConfigurationError: a p-value is NaN or outside [0, 1].

    >>> benjamini_hochberg([0.01, 0.04, 0.03])
    (0.03, 0.04, 0.04)
    """
    return _step_up(p_values, 1.0)


def benjamini_yekutieli(p_values: Sequence[float]) -> tuple[float, ...]:
    """Adjusted p-values for the false discovery rate under any dependence.

    Larger than `benjamini_hochberg` by ``1 + 1/2 + ... + 1/K`` (Benjamini & Yekutieli 2001).

    Args:
        p_values: K p-values in [0, 1], in any order.

    Returns:
        K adjusted p-values in the same order, each in [0, 1].

    Raises:
        ConfigurationError: a p-value is NaN or outside [0, 1].

    >>> benjamini_yekutieli([0.01, 0.04, 0.03])
    (0.055, 0.0733333333, 0.0733333333)
    """
    return _step_up(p_values, float(np.sum(1 / np.arange(1, len(p_values) + 1))))


def _ascending(p_values: Sequence[float]) -> tuple[Floats, NDArray[np.intp]]:
    p = np.asarray(p_values, dtype=np.float64)
    if not ((p >= 0) & (p <= 1)).all():
        raise ConfigurationError("a p-value is NaN or outside 0 to 1; leave undefined tests out")
    order = np.argsort(p, kind="stable")
    return p[order], order


def _step_up(p_values: Sequence[float], factor: float) -> tuple[float, ...]:
    p, order = _ascending(p_values)
    scaled = p * factor * len(p) / np.arange(1, len(p) + 1)
    return _restored(np.minimum.accumulate(scaled[::-1])[::-1], order)


def _restored(adjusted: Floats, order: NDArray[np.intp]) -> tuple[float, ...]:
    values = np.empty(len(adjusted))
    values[order] = np.minimum(adjusted, 1.0)
    return tuple(values.tolist())
