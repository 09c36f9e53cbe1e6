"""Categories: two samples are the same or they are not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.divergence.outcome import with_outcomes
from twinspan.instrumentation.divergence.values import mismatches, require_finite

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class CategoryEstimator:
    """Distance 0 between equal values and 1 between different ones.

    The mean distance across the arms is then the flip rate, and delta is half the sum over
    classes of the squared difference of their shares.

    >>> CategoryEstimator().matrix(["hire", "reject", "hire"]).tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """

    name: str = field(default="category", init=False)
    version: str = field(default="1", init=False)
    scale: str = field(default="1 = another class", init=False)

    def matrix(self, samples: Sequence[object]) -> Floats:
        """N x N zeros and ones.

        Args:
            samples: values of any kind; blank text and None are the empty outcome.

        Raises:
            NonFiniteSample: a value is or holds NaN or infinity.
        """
        return with_outcomes(samples, _mismatches)


def _mismatches(samples: Sequence[object]) -> Floats:
    require_finite(samples)
    return mismatches(samples)
