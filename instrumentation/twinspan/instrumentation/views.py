"""Several views of one output, such as class, wording and length, in one exact test.

Each view's delta is standardised over the same orbit of labellings, and the largest is
compared with the largest of every labelling. That maximum has its own orbit, so its p-value is
exact and costs no Bonferroni factor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import EstimatorError
from twinspan.instrumentation.evidence import standardised, weigh_orbit
from twinspan.instrumentation.orbit import OrbitResult, orbit_test
from twinspan.instrumentation.splits import plan_splits

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class ViewsResult:
    """Several views of one probe set.

    Attributes:
        p: exact p-value of the largest standardised delta, in (0, 1].
        e: e-value of the same, mean exactly 1 over the orbit.
        statistic: that largest standardised delta; 0 when no view has any spread.
        views: each view alone, in the order given.
    """

    p: float
    e: float
    statistic: float
    views: Mapping[str, OrbitResult]

    @property
    def loudest(self) -> str:
        """The view with the largest standardised delta."""
        return max(self.views, key=lambda name: self.views[name].z or 0.0)


def views_test(
    distances: Mapping[str, Floats], n_reference: int, *, seed: int | None = None
) -> ViewsResult:
    """Test several distance matrices of the same samples at once.

    Args:
        distances: N x N distances in [0, 1] by name of the view, reference samples first.
        n_reference: how many samples are reference.
        seed: seed of random labellings, used above 20,000 of them.

    Raises:
        EstimatorError: there is no view, or they differ in the number of samples.
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite.

    A view without any spread neither helps nor costs:

    >>> far = np.kron(np.array([[0.0, 1.0], [1.0, 0.0]]), np.ones((4, 4)))
    >>> found = views_test({"class": far, "length": np.zeros((8, 8))}, 4)
    >>> found.loudest, round(found.p, 4), round(found.views["class"].p, 4)
    ('class', 0.0286, 0.0286)
    """
    totals = {len(matrix) for matrix in distances.values()}
    if len(totals) != 1:
        raise EstimatorError("views must be given and of the same samples; pool all arms alike")
    plan = plan_splits(n_reference, totals.pop() - n_reference, seed=seed)
    alone = {name: orbit_test(matrix, n_reference, seed=seed) for name, matrix in distances.items()}
    triangles = np.stack([matrix.take(plan.pairs) for matrix in distances.values()])
    largest = standardised(plan.parts(triangles)[1]).max(axis=0)
    statistic = float(largest[0])
    found = weigh_orbit(largest, plan.bets)
    return ViewsResult(p=found.p, e=found.e, statistic=statistic, views=alone)
