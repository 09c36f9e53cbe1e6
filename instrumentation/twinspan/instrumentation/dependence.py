"""Whether samples of an arm depend on when they were drawn.

Label permutations are exact when the samples could have come in any order. A cache, a shared
seed, a drifting service or one batch per arm break that, and then more samples make the false
alarms worse, not better. Drawing both arms in random order repairs it at no cost; drawing them
in blocks and exchanging labels within blocks does, too. This diagnostic looks for what is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import EstimatorError, InsufficientSamples
from twinspan.instrumentation.evidence import standardised, upper_tail
from twinspan.instrumentation.orbit import require_finite
from twinspan.instrumentation.splits import DEFAULT_SEED, upper_triangle

Floats = NDArray[np.float64]

ORDER_DRAWS: Final = 999
"""Random orders drawn beside the observed one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DependenceResult:
    """How samples of one arm relate to the order in which they were drawn.

    Attributes:
        p: p-value of "the order does not matter", in (0, 1]; small means dependence or drift,
            and then neither p nor e of the probe set can be trusted.
        neighbours: how much closer than usual successive samples are, in standard deviations
            of the random orders; large under short memory, such as a cache.
        drift: how strongly distance grows with time apart, in the same unit; large under a
            trend, such as a changing model.
        draws: random orders drawn beside the observed one.
    """

    p: float
    neighbours: float
    drift: float
    draws: int


def dependence_test(
    distances: Floats,
    n_reference: int,
    order: Sequence[float],
    *,
    draws: int = ORDER_DRAWS,
    seed: int | None = None,
) -> DependenceResult:
    """Test whether distance within arms depends on the order of acquisition.

    Only pairs of one arm count, and orders are exchanged within arms, so a real difference
    between the arms is not taken for dependence. The larger of the two standardised statistics
    is compared with the larger in every random order.

    What it cannot see: a shift between arms that were drawn one after the other. That is the
    same data as a bias; only drawing the arms in random order tells them apart.

    Args:
        distances: N x N distances in [0, 1], the reference samples first.
        n_reference: how many samples are reference; both arms need at least 2.
        order: one number per sample, such as a time stamp; only ranks within arms count.
        draws: random orders; the smallest p is 1 / (draws + 1).
        seed: seed of the random orders; fixed by default.

    Raises:
        EstimatorError: the number of order values is not N.
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite.

    Two arms that both drift from one answer to another:

    >>> position = np.array([0, 0, 0, 1, 1, 1] * 2)
    >>> drifting = np.abs(np.subtract.outer(position, position)).astype(float)
    >>> dependence_test(drifting, 6, range(12)).p < 0.05
    True
    """
    if len(order) != len(distances):
        raise EstimatorError(
            f"{len(order)} order values for {len(distances)} samples; give one per sample"
        )
    weights = _weights(
        n_reference,
        len(distances) - n_reference,
        draws,
        DEFAULT_SEED if seed is None else seed,
    )
    require_finite(distances)
    in_time = _by_time(n_reference, order)
    pairs = distances[np.ix_(in_time, in_time)].take(upper_triangle(len(distances)))
    standard = standardised(weights @ pairs)
    largest = standard.max(axis=0)
    return DependenceResult(
        p=upper_tail(largest),
        neighbours=float(standard[0, 0]),
        drift=float(standard[1, 0]),
        draws=draws,
    )


def _by_time(n_reference: int, order: Sequence[float]) -> NDArray[np.intp]:
    times = np.asarray(order, dtype=np.float64)
    first = np.argsort(times[:n_reference], kind="stable")
    second = np.argsort(times[n_reference:], kind="stable")
    return np.concatenate([first, n_reference + second])


@lru_cache(maxsize=16)
def _weights(n_reference: int, n_counterfactual: int, draws: int, seed: int) -> Floats:
    """Two statistics x orders x pairs, the observed order first; larger means dependence."""
    for arm, count in (("reference", n_reference), ("counterfactual", n_counterfactual)):
        if count < 2:
            raise InsufficientSamples(arm, count=count, needed=2)
    rng = np.random.default_rng(seed)
    ranks = np.concatenate(
        [_ranks(rng, n_reference, draws), _ranks(rng, n_counterfactual, draws)], axis=1
    )
    first, second = np.triu_indices(n_reference + n_counterfactual, 1)
    same_arm = (first < n_reference) == (second < n_reference)
    apart = np.abs(ranks[:, first] - ranks[:, second]) * same_arm
    weights: Floats = np.stack([-(apart == 1).astype(np.float64), apart.astype(np.float64)])
    weights.setflags(write=False)
    return weights


def _ranks(rng: np.random.Generator, count: int, draws: int) -> NDArray[np.intp]:
    ranks = np.tile(np.arange(count), (draws + 1, 1))
    ranks[1:] = rng.permuted(ranks[1:], axis=1)
    return ranks
