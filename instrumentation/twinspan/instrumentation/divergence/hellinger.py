"""Token or choice probabilities: the Hellinger distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.divergence.distributions import align
from twinspan.instrumentation.divergence.outcome import with_outcomes

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class HellingerEstimator:
    """``sqrt(sum (sqrt p - sqrt q)^2 / 2)`` of two samples' probabilities, in [0, 1].

    Close to the Jensen-Shannon distance and a little cheaper; a metric as well.

    >>> import math
    >>> sure, even = {"yes": 0.0}, {"yes": math.log(0.5), "no": math.log(0.5)}
    >>> HellingerEstimator().matrix([sure, even]).round(4).tolist()
    [[0.0, 0.5412], [0.5412, 0.0]]
    """

    name: str = field(default="hellinger", init=False)
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


def _between(samples: Sequence[object]) -> Floats:
    roots = np.sqrt(align(samples))
    distances = np.zeros((len(roots), len(roots)))
    for index, row in enumerate(roots[:-1]):
        gaps = roots[index + 1 :] - row
        distances[index, index + 1 :] = np.sqrt(np.vecdot(gaps, gaps) / 2)
    return np.minimum(distances + distances.T, 1.0)
