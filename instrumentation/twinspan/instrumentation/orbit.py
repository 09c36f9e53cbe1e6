"""Exact label permutations: whether an arm is farther off than its own noise.

If the edit changes nothing, every labelling of the pooled samples was equally likely. The orbit
of labellings is then the null distribution itself, for any output law and any number of
samples: nothing is fitted and nothing is asymptotic.

The statistic is the excess disagreement ``delta = C - (W_x + W_y) / 2``: the mean distance
across the arms less the mean of the mean distances within them, half the energy distance of
Székely & Rizzo 2013. It is unbiased, and its mean over the orbit is exactly 0.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import inf, isqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import EstimatorError, NonFiniteSample
from twinspan.instrumentation.evidence import (
    Evidence,
    EvidenceBatch,
    OrbitBets,
    bets_of_orbit,
    stake_orbit,
    stake_orbits,
    weigh_orbit,
    weigh_orbits,
)
from twinspan.instrumentation.splits import SplitPlan, plan_splits, upper_triangle

Floats = NDArray[np.float64]

_CHUNK: Final = 1 << 15
"""Orbit values worked on at a time; a batch of this size stays in a processor's cache."""


class OrbitResult(NamedTuple):
    """One probe set against all its labellings.

    Attributes:
        delta: excess disagreement C - (Wx + Wy) / 2, in [-1, 1]; 0 in the mean without bias.
        C: mean distance across the arms, in [0, 1]; the flip rate when distances are 0 or 1.
        Wx: mean distance within the reference arm: its instability.
        Wy: mean distance within the counterfactual arm.
        p: share of labellings with a delta at least as large, in (0, 1].
        e: e-value of the observed labelling, in [0, size]; mean exactly 1 over the orbit.
        mean: mean of delta over the orbit; 0 up to rounding when labels were exchanged freely.
        sd: population standard deviation of delta over the orbit, 0 when it has no spread.
        z: (delta - mean) / sd, None when the orbit has no spread. Grows with the sample size.
        size: labellings in the orbit.
        ties: labellings tied with the observed one, itself included.
        exact: whether all labellings were enumerated rather than sampled.
        smallest_p: the smallest p that any data of this shape could reach.
    """

    delta: float
    C: float
    Wx: float
    Wy: float
    p: float
    e: float
    mean: float
    sd: float
    z: float | None
    size: int
    ties: int
    exact: bool
    smallest_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class OrbitBatch:
    """The fields of `OrbitResult` for B probe sets of one shape, as arrays of length B.

    ``z`` is NaN where an orbit has no spread: an array has no None.
    """

    delta: Floats
    C: Floats
    Wx: Floats
    Wy: Floats
    p: Floats
    e: Floats
    mean: Floats
    sd: Floats
    z: Floats
    size: int
    ties: NDArray[np.intp]
    exact: bool
    smallest_p: float


def orbit_test(
    distances: Floats,
    n_reference: int,
    *,
    blocks: Sequence[Hashable] | None = None,
    seed: int | None = None,
) -> OrbitResult:
    """Test one probe set against all labellings of its samples.

    Args:
        distances: N x N float64 distances in [0, 1], symmetric with a zero diagonal, the
            reference samples first. Only the upper triangle is read.
        n_reference: how many of the N samples are reference; both arms need at least 2.
        blocks: one label per sample; labels are then exchanged inside blocks only, which keeps
            the test exact when blocks differ (batches, times of day, cases).
        seed: seed of the 1,999 random labellings that stand in above 20,000 labellings. The
            default is fixed, so the same data always give the same verdict; p is then exact
            over seeds, and within a fraction of a percentage point for any one of them.

    Returns:
        The result; see `OrbitResult` for ranges and for what is None.

    Raises:
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite.

    Four samples, two a side, that agree within their arms only. One of the three ways to pair
    four samples separates them as well as that, so p is 1/3:

    >>> far = np.array([[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0.0]])
    >>> found = orbit_test(far, 2)
    >>> found.delta, found.size, round(found.p, 4)
    (1.0, 6, 0.3333)
    """
    total = distances.shape[0]
    plan = plan_splits(n_reference, total - n_reference, blocks=blocks, seed=seed)
    triangle = distances.take(plan.pairs)
    # Comparisons with NaN are false: one bad distance must not read as a clean verdict.
    if not triangle.dot(triangle) < inf:
        raise NonFiniteSample("pooled", index=_first_bad_sample(distances))
    means, statistics = plan.part(triangle)
    return _result(plan, means, weigh_orbit(statistics, plan.bets))


def orbit_test_batch(
    distances: Floats,
    n_reference: int,
    *,
    blocks: Sequence[Hashable] | None = None,
    seed: int | None = None,
) -> OrbitBatch:
    """Test B probe sets of one shape at once, with one matrix product.

    Args:
        distances: B x N x N distances, each as in `orbit_test`.
        n_reference: reference samples in each.
        blocks: as in `orbit_test`, the same for all.
        seed: as in `orbit_test`.

    Raises:
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite; its index is the probe set's.

    >>> orbit_test_batch(np.zeros((2, 6, 6)), 3).p.tolist()
    [1.0, 1.0]
    """
    rows, total = distances.shape[0], distances.shape[1]
    flat = distances.reshape(rows, total * total)
    return orbit_test_triangles(
        flat[:, upper_triangle(total)], n_reference, blocks=blocks, seed=seed
    )


def orbit_test_triangles(
    triangles: Floats,
    n_reference: int,
    *,
    blocks: Sequence[Hashable] | None = None,
    seed: int | None = None,
) -> OrbitBatch:
    """`orbit_test_batch` on upper triangles, row-major, as a recorded score keeps them.

    Args:
        triangles: B x N(N-1)/2 distances.
        n_reference: reference samples in each.
        blocks: as in `orbit_test`, the same for all.
        seed: as in `orbit_test`.

    Raises:
        EstimatorError: the width is not the number of pairs of any number of samples.
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite; its index is the probe set's.

    >>> found = orbit_test_triangles(np.array([[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]]), 2)
    >>> found.delta.tolist(), found.p.round(4).tolist()
    ([1.0], [0.3333])
    """
    total = samples_of_pairs(triangles.shape[1])
    plan = plan_splits(n_reference, total - n_reference, blocks=blocks, seed=seed)
    require_finite(triangles)
    chunks = [_weigh_chunk(plan, chunk) for chunk in _chunked(triangles, len(plan.labels))]
    means = np.concatenate([means for means, _ in chunks])
    return _batch(plan, means, [found for _, found in chunks])


class StakedOrbit(NamedTuple):
    """What control takes from one probe set, to the last digit the same alone and in a batch.

    Attributes:
        delta: excess disagreement.
        p: share of labellings with a delta at least as large, in (0, 1].
        e: e-value of the observed labelling.
        sd: population standard deviation of delta over the orbit.
        e_values: e-values of the whole orbit in ascending order, mean 1; of labellings that
            mirror each other, which pay alike, one each.
    """

    delta: float
    p: float
    e: float
    sd: float
    e_values: Floats


def stake_triangle(triangle: Iterable[float], n_reference: int) -> StakedOrbit:
    """All that control takes from one probe set, its orbit enumerated once.

    Args:
        triangle: N(N-1)/2 distances, a row-major upper triangle as a recorded score keeps it.
        n_reference: how many of the N samples are reference.

    Raises:
        EstimatorError: the length is not the number of pairs of any number of samples.
        InsufficientSamples: an arm has fewer than two samples.
        NonFiniteSample: a distance is NaN or infinite.

    >>> found = stake_triangle([0.0, 1.0, 1.0, 1.0, 1.0, 0.0], 2)
    >>> found.delta, round(found.p, 4), float(found.e_values.mean())
    (1.0, 0.3333, 1.0)
    """
    values = np.fromiter(triangle, dtype=np.float64)
    total = samples_of_pairs(len(values))
    plan = plan_splits(n_reference, total - n_reference)
    require_finite(values[np.newaxis])
    (across, within, other), statistics = plan.part(values)
    found, everyone = stake_orbit(statistics, plan.bets)
    return StakedOrbit(across - (within + other) / 2, found.p, found.e, found.sd, everyone)


def stake_triangles(triangles: Floats, n_reference: int) -> Iterator[StakedOrbit]:
    """`stake_triangle` of B probe sets of one shape, batch by batch.

    Args:
        triangles: B x N(N-1)/2 distances.
        n_reference: reference samples in each.

    Raises:
        EstimatorError, InsufficientSamples, NonFiniteSample: as in `orbit_test_triangles`.

    >>> [found.p for found in stake_triangles(np.zeros((2, 15)), 3)]
    [1.0, 1.0]
    """
    for chunk in staked_chunks(triangles, n_reference):
        columns = (chunk.delta.tolist(), chunk.p.tolist(), chunk.e.tolist(), chunk.sd.tolist())
        everyone = map(chunk.bets.of, range(len(chunk.delta)))
        yield from map(StakedOrbit, *columns, everyone)


@dataclass(frozen=True, slots=True, kw_only=True)
class StakedChunk:
    """The fields of `StakedOrbit` for some probe sets of one shape.

    Attributes:
        delta, p, e, sd: one number a probe set.
        bets: e-values of their orbits.
    """

    delta: Floats
    p: Floats
    e: Floats
    sd: Floats
    bets: OrbitBets


def staked_chunks(triangles: Floats, n_reference: int) -> Iterator[StakedChunk]:
    """`stake_triangles` as arrays, in chunks that fit a processor's cache.

    Args:
        triangles: B x N(N-1)/2 distances.
        n_reference: reference samples in each.

    Raises:
        EstimatorError, InsufficientSamples, NonFiniteSample: as in `orbit_test_triangles`.

    >>> [chunk.delta.tolist() for chunk in staked_chunks(np.zeros((2, 15)), 3)]
    [[0.0, 0.0]]
    """
    total = samples_of_pairs(triangles.shape[1])
    plan = plan_splits(n_reference, total - n_reference)
    require_finite(triangles)
    for chunk in _chunked(triangles, len(plan.labels)):
        means, statistics = plan.parts(chunk)
        found, bets = stake_orbits(statistics, plan.bets)
        delta = means[:, 0] - (means[:, 1] + means[:, 2]) / 2
        yield StakedChunk(delta=delta, p=found.p, e=found.e, sd=found.sd, bets=bets)


def orbit_e_values(
    distances: Floats,
    n_reference: int,
    *,
    blocks: Sequence[Hashable] | None = None,
    seed: int | None = None,
) -> tuple[float, Floats]:
    """The observed e-value and those of the whole orbit, whose mean is exactly 1.

    A monitor that caps its bets needs to know what every other labelling would have paid.

    Args:
        distances: as in `orbit_test`.
        n_reference: as in `orbit_test`.
        blocks: as in `orbit_test`.
        seed: as in `orbit_test`.

    Returns:
        The e-value of the observed labelling, and an array of the e-values of all labellings
        with the observed one first.

    >>> observed, everyone = orbit_e_values(np.zeros((6, 6)), 3)
    >>> observed, len(everyone), float(everyone.mean())
    (1.0, 20, 1.0)
    """
    total = distances.shape[0]
    plan = plan_splits(n_reference, total - n_reference, blocks=blocks, seed=seed)
    triangle = distances.take(plan.pairs)
    require_finite(triangle[np.newaxis])
    values = bets_of_orbit(plan.part(triangle)[1], plan.bets)
    return float(values[0]), np.repeat(values, plan.fold)


def randomised_p(result: OrbitResult, uniform: float) -> float:
    """The p-value with ties split by a coin: exactly uniform under the null.

    Meant for checking a test's calibration. Decisions use the plain p, which never depends on
    a coin.

    Args:
        result: what `orbit_test` gave.
        uniform: a number drawn uniformly from [0, 1).

    >>> even = orbit_test(np.zeros((6, 6)), 3)
    >>> even.p, randomised_p(even, 0.25)
    (1.0, 0.25)
    """
    return result.p - (1 - uniform) * result.ties / result.size


def samples_of_pairs(pairs: int) -> int:
    """How many samples have this many pairs.

    Raises:
        EstimatorError: no number of samples has.

    >>> samples_of_pairs(105)
    15
    """
    total = (1 + isqrt(1 + 8 * pairs)) // 2
    if total * (total - 1) // 2 != pairs:
        raise EstimatorError(f"{pairs} distances are no upper triangle; give N(N-1)/2 of them")
    return total


def square(triangle: Iterable[float]) -> Floats:
    """The N x N matrix of a row-major upper triangle.

    Raises:
        EstimatorError: the length is not the number of pairs of any number of samples.

    >>> square([0.5, 1.0, 0.25]).tolist()
    [[0.0, 0.5, 1.0], [0.5, 0.0, 0.25], [1.0, 0.25, 0.0]]
    """
    values = np.fromiter(triangle, dtype=np.float64)
    total = samples_of_pairs(len(values))
    matrix = np.zeros((total, total))
    matrix.flat[upper_triangle(total)] = values
    return matrix + matrix.T


def require_finite(rows: Floats) -> None:
    """Refuse rows of distances that hold NaN or infinity.

    Raises:
        NonFiniteSample: with the index of the first bad row.

    >>> require_finite(np.zeros((2, 3)))
    """
    bad = ~(np.vecdot(rows, rows) < inf)
    if bad.any():
        raise NonFiniteSample("pooled", index=int(np.argmax(bad)))


def _chunked(triangles: Floats, labellings: int) -> Iterator[Floats]:
    step = max(48, _CHUNK // labellings)
    for start in range(0, max(len(triangles), 1), step):
        yield triangles[start : start + step]


def _weigh_chunk(plan: SplitPlan, triangles: Floats) -> tuple[Floats, EvidenceBatch]:
    means, rows = plan.parts(triangles)
    return means, weigh_orbits(rows, plan.bets)


def _first_bad_sample(distances: Floats) -> int:
    return int(np.argmax((~np.isfinite(distances)).sum(axis=1)))


def _result(plan: SplitPlan, means: list[float], found: Evidence) -> OrbitResult:
    across, within, other = means
    p, e, mean, sd, ties = found
    delta = across - (within + other) / 2
    z = (delta - mean) / sd if sd else None
    fold = plan.fold
    return OrbitResult(
        delta, across, within, other, p, e, mean, sd, z,
        plan.size, ties * fold, plan.exact, plan.smallest_p,
    )  # fmt: skip


def _batch(plan: SplitPlan, means: Floats, found: list[EvidenceBatch]) -> OrbitBatch:
    across, within, other = np.ascontiguousarray(means.T)
    mean = np.concatenate([part.mean for part in found])
    sd = np.concatenate([part.sd for part in found])
    delta = across - (within + other) / 2
    z = np.divide(delta - mean, sd, out=np.full_like(sd, np.nan), where=sd > 0)
    return OrbitBatch(
        delta=delta,
        C=across,
        Wx=within,
        Wy=other,
        p=np.concatenate([part.p for part in found]),
        e=np.concatenate([part.e for part in found]),
        mean=mean,
        sd=sd,
        z=z,
        size=plan.size,
        ties=np.concatenate([part.ties for part in found]) * plan.fold,
        exact=plan.exact,
        smallest_p=plan.smallest_p,
    )
