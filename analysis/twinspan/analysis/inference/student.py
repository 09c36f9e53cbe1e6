"""Student's interval for a mean over cases."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit


def t_interval(
    values: NDArray[np.float64], level: float = 0.95
) -> tuple[float | None, float | None]:
    """An interval for the mean of independent values, one for each case (Student 1908).

    Args:
        values: one per case.
        level: nominal coverage.

    Returns:
        Its ends; a pair of None with fewer than two values, or if all are equal: cases that
        agree show no variance to make an interval of, which is not certainty.

    >>> t_interval(np.array([1.0, 2.0, 3.0]))  # 2 -+ 4.303 / sqrt(3)
    (-0.484138, 4.484138)
    >>> t_interval(np.zeros(9))
    (None, None)
    """
    if len(values) < 2 or np.ptp(values) == 0:
        return None, None
    centre = float(values.mean())
    error = float(values.std(ddof=1)) / math.sqrt(len(values))
    half = error * float(stdtrit(len(values) - 1, (1 + level) / 2))
    return centre - half, centre + half
