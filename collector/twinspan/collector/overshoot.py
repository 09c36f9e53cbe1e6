"""Overshoot removal: what a bet cannot use is shifted to where it can."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import InvalidMeasurement

Floats = NDArray[np.float64]

MEAN_TOLERANCE: Final = 1e-6

HIGHEST_BOOST: Final = 64.0
BOOST_STEP: Final = (HIGHEST_BOOST - 1.0) / 2**20
"""Boosts are rounded down to a grid: a score recorded here is met to the last digit elsewhere."""


def remove_overshoot(e_value: float, orbit: Floats, cap: float) -> float:
    """The e-value after the part of its orbit above ``cap`` was spent on the rest.

    Wealth above the halting limit is worth no more than the limit. So every e-value of the orbit
    is multiplied with the largest factor b in [1, 64] for which the orbit mean of
    ``min(b * e, cap)`` is at most 1, and ``min(b * e_value, cap)`` is an e-value that pays more
    wherever the limit is not reached (Fischer & Ramdas 2024, arXiv 2410.16076; no estimate is
    needed here, because the orbit is known). b is rounded down to a grid of 63 / 2**20. The cap
    may depend on the past only, never on the probe itself.

    Args:
        e_value: the observed e-value, one of the orbit.
        orbit: e-values of every split of the probe's labels, 1-D, mean 1; fastest in ascending
            order.
        cap: the smallest e-value that reaches the limit. At 1 or below the limit is reached
            already and the e-value is returned as it is.

    Raises:
        InvalidMeasurement: the orbit is empty, holds NaN or negative values, or its mean is not
            1, so it is not an orbit of e-values.

    Four splits of which one pays 4: with a cap of 2 the other three may pay 2/3 each instead of
    nothing.

    >>> orbit = np.array([3.7, 0.1, 0.1, 0.1])
    >>> remove_overshoot(0.1, orbit, cap=2.0), remove_overshoot(3.7, orbit, cap=2.0)
    (0.6666, 2.0)
    >>> remove_overshoot(0.1, orbit, cap=4.0)
    0.1
    """
    ascending = _ascending(orbit)
    sums = ascending.cumsum()
    _check_orbit(ascending, sums)
    if cap <= 1.0 or ascending.item(-1) <= cap:
        return e_value
    steps = math.floor((min(_boost(ascending, sums, cap), HIGHEST_BOOST) - 1.0) / BOOST_STEP)
    return min((1.0 + steps * BOOST_STEP) * e_value, cap)


def _ascending(orbit: Floats) -> Floats:
    return orbit if (orbit[1:] >= orbit[:-1]).all() else np.sort(orbit)


def _check_orbit(ascending: Floats, sums: Floats) -> None:
    mean = sums.item(-1) / sums.size if sums.size else float("nan")
    if not abs(mean - 1.0) <= MEAN_TOLERANCE or ascending.item(0) < 0.0:
        must = "be the mean of non-negative e-values, which is 1"
        raise InvalidMeasurement("orbit mean", of="e-value", value=mean, must=must)


def _boost(ascending: Floats, sums: Floats, cap: float) -> float:
    """Newton's method on a concave, piecewise linear mean: climbs to the root and stops on it."""
    size, boost = ascending.size, 1.0
    while True:
        below = int(ascending.searchsorted(cap / boost))
        room = size - cap * (size - below)
        stake = sums.item(below - 1) if below else 0.0
        if stake <= 0.0 or room <= boost * stake * (1.0 + 1e-15):
            return boost
        boost = room / stake
