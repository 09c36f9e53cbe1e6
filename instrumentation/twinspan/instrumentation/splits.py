"""Every way to label pooled samples, as matrices that turn distances into statistics.

A probe set pools N samples and asks how the statistic would look had the labels fallen
otherwise. The labellings depend on the shape of the probe set only, so they are made once per
shape and kept: after that, the statistic of all labellings is one product of a matrix and the
vector of pairwise distances.

Sums are exact. Distances are rounded to a grid of about 1e-12 and weighed by whole numbers, so
that every sum is a multiple of the grid that a double holds without rounding. In whatever order
they are added, alone or in a batch, by whatever library on however many threads, the digits are
the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, combinations, product
from math import comb, prod
from typing import Any, Final, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import EstimatorError, InsufficientSamples
from twinspan.instrumentation.evidence import rank_bets
from twinspan.instrumentation.label_sums import (
    LabelSums,
    PairShares,
    enumerated_sums,
    labelled_sums,
)

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]
Numbers = TypeVar("Numbers", Floats, Singles)
Array = TypeVar("Array", bound=NDArray[Any])

EXACT_LIMIT: Final = 20_000
"""Up to this many labellings are enumerated; above it they are drawn at random."""

RANDOM_SPLITS: Final = 1_999
"""Random labellings drawn beside the observed one when enumeration would be too large."""

DEFAULT_SEED: Final = 20_260_731
"""Seed of everything random here, so that a verdict never depends on the order of calls."""

_PAIR_FORM_LIMIT: Final = 1 << 21
"""Entries (16 MiB) up to which a plan keeps one weight per labelling and pair."""

_QUARTERS: Final = 4.0
"""Distances of labels, letters and most actions are multiples of a quarter."""

_LARGEST_SINGLE: Final = float(1 << 24)
"""Whole numbers up to which single precision is exact."""

_PRODUCT_OF_ONE_THREAD: Final = 1 << 18
"""Multiplications up to which OpenBLAS leaves a product of matrices to one thread."""

_SMALL_PRODUCT: Final = 1 << 13
"""Entries up to which one product is the fastest way to the sums of one probe set."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SplitPlan:
    """The labellings of one shape of probe set, the observed one first.

    Attributes:
        n_reference: samples in the reference arm, pooled first.
        n_counterfactual: samples in the counterfactual arm, pooled last.
        labels: one row per kept labelling, True where a sample is labelled reference.
        weights: one row per kept labelling and one column per pair, whole numbers that give delta
            times the denominator, preceded by three rows that add up the pairs across, within the
            reference and within the counterfactual arm; None when that matrix would be large.
        denominator: what the whole numbers stand over.
        grid: what distances are rounded to a multiple of, a power of 2; 0 where they are not.
        pair_counts: pairs across, within the reference and within the counterfactual arm.
        size: labellings in the orbit, counting those that ``fold`` left out.
        fold: labellings that each kept row stands for; 2 when swapping the arms' names leaves
            the statistic alone, so that one half of the orbit tells the other.
        exact: whether the orbit was enumerated rather than sampled.
        smallest_p: the smallest p-value this shape can reach.
        pairs: flat positions of the upper triangle in an N x N matrix, row-major.
        bets: the stakes of the rank bet by position in the ascending orbit.
    """

    n_reference: int
    n_counterfactual: int
    labels: Bools
    weights: Floats | None
    denominator: int
    grid: float
    pair_counts: tuple[int, int, int]
    size: int
    fold: int
    exact: bool
    smallest_p: float
    pairs: NDArray[np.intp]
    bets: Floats

    def parts(self, triangles: Floats) -> tuple[Floats, Floats]:
        """Means and statistics of condensed distances, one row per probe set.

        Args:
            triangles: B x N(N-1)/2 pairwise distances, row-major upper triangles.

        Returns:
            A B x 3 array (mean across arms, within reference, within counterfactual) and a
            B x rows array of delta for each labelling, the observed one first.
        """
        if self.weights is not None:
            both = self._sums(triangles, self.weights)
            return both[:, :3] / self.pair_counts, both[:, 3:] / self.denominator
        return _parts_by_label(self, triangles)

    def _sums(self, triangles: Floats, weights: Floats) -> Floats:
        """Sums by labelling; in single precision where that is as exact, and twice as fast."""
        quarters = triangles * _QUARTERS
        if np.array_equal(np.rint(quarters), quarters) and quarters.max(initial=0.0) <= _QUARTERS:
            single = _single_precision(self)
            if single is not None:
                return _product(quarters.astype(np.float32), single).astype(np.float64) / _QUARTERS
        return _product(self.rounded(triangles), weights)

    def part(self, triangle: Floats) -> tuple[list[float], Floats]:
        """`parts` of one probe set, to the last digit; only the first labelling has its place.

        Args:
            triangle: N(N-1)/2 pairwise distances.
        """
        if self.weights is None:
            means, rows = _parts_by_label(self, triangle[np.newaxis])
            return means[0].tolist(), rows[0]
        triangle = self.rounded(triangle)
        if self.weights.size <= _SMALL_PRODUCT:
            both = self.weights.dot(triangle)
            sums, deltas = both[:3].tolist(), both[3:] / self.denominator
        else:
            # A product with all weights would be bound by reading them.
            sums = self.weights[:3].dot(triangle).tolist()
            deltas = _sums_of(self).of(triangle) / self.denominator
        return [value / count for value, count in zip(sums, self.pair_counts, strict=True)], deltas

    def rounded(self, distances: Floats) -> Floats:
        """Distances as multiples of the grid."""
        if not self.grid:
            return distances
        rounded = distances / self.grid
        np.rint(rounded, out=rounded)
        rounded *= self.grid
        return rounded


def plan_splits(
    n_reference: int,
    n_counterfactual: int,
    *,
    blocks: Sequence[Hashable] | None = None,
    seed: int | None = None,
) -> SplitPlan:
    """The cached labellings of a shape.

    Args:
        n_reference: samples in the reference arm, at least 2.
        n_counterfactual: samples in the counterfactual arm, at least 2.
        blocks: one label per pooled sample, reference first; labels of the arms are then only
            exchanged inside a block. None exchanges them freely.
        seed: seed of random labellings; unused when the orbit is enumerated.

    Raises:
        InsufficientSamples: an arm has fewer than two samples.
        EstimatorError: the number of block labels is not the number of samples.

    >>> plan = plan_splits(5, 5)
    >>> plan.size, plan.exact, round(plan.smallest_p, 4)
    (252, True, 0.0079)
    >>> plan_splits(2, 2, blocks=[1, 2, 1, 2]).size
    4
    """
    strata = None if blocks is None else _canonical(blocks, n_reference + n_counterfactual)
    return _plan(n_reference, n_counterfactual, strata, DEFAULT_SEED if seed is None else seed)


@lru_cache(maxsize=256)
def upper_triangle(n: int) -> NDArray[np.intp]:
    """Flat positions of the pairs i < j in an n x n matrix, row-major.

    >>> upper_triangle(3).tolist()
    [1, 2, 5]
    """
    rows, columns = np.triu_indices(n, 1)
    return _frozen((rows * n + columns).astype(np.intp))


@lru_cache(maxsize=256)
def _plan(
    n_reference: int, n_counterfactual: int, strata: tuple[int, ...] | None, seed: int
) -> SplitPlan:
    for arm, count in (("reference", n_reference), ("counterfactual", n_counterfactual)):
        if count < 2:
            raise InsufficientSamples(arm, count=count, needed=2)
    # An enumerated orbit has no seed: every seed shares its plan.
    enumerable = _orbit_size(n_reference, n_counterfactual, strata) <= EXACT_LIMIT
    return _build(n_reference, n_counterfactual, strata, None if enumerable else seed)


@lru_cache(maxsize=24)
def _build(
    n_reference: int, n_counterfactual: int, strata: tuple[int, ...] | None, seed: int | None
) -> SplitPlan:
    exact = seed is None
    if seed is None:
        labels, fold = _enumerated(n_reference, n_counterfactual, strata)
    else:
        labels, fold = _drawn(n_reference, n_counterfactual, strata, seed), 1
    rows = len(labels)
    mirrored = exact and _mirrors(n_reference, n_counterfactual, strata)
    shares = PairShares.of(n_reference, n_counterfactual)
    weights = _pair_weights(labels, shares)
    return SplitPlan(
        n_reference=n_reference,
        n_counterfactual=n_counterfactual,
        labels=_frozen(labels),
        weights=weights,
        denominator=shares.denominator,
        grid=0.0 if weights is None else shares.grid,
        pair_counts=_pair_counts(n_reference, n_counterfactual),
        size=rows * fold,
        fold=fold,
        exact=exact,
        smallest_p=(2 if mirrored else 1) / (rows * fold),
        pairs=upper_triangle(n_reference + n_counterfactual),
        bets=_frozen(rank_bets(rows)),
    )


def _canonical(blocks: Sequence[Hashable], expected: int) -> tuple[int, ...]:
    if len(blocks) != expected:
        raise EstimatorError(
            f"{len(blocks)} block labels for {expected} samples; give one label per pooled sample"
        )
    codes: dict[Hashable, int] = {}
    return tuple(codes.setdefault(block, len(codes)) for block in blocks)


def _block_counts(n_reference: int, strata: tuple[int, ...]) -> list[tuple[int, int]]:
    """For each block in order of appearance: samples in it, and how many are reference."""
    everyone, reference = Counter(strata), Counter(strata[:n_reference])
    return [(everyone[block], reference[block]) for block in everyone]


def _orbit_size(n_reference: int, n_counterfactual: int, strata: tuple[int, ...] | None) -> int:
    if strata is None:
        return comb(n_reference + n_counterfactual, n_reference)
    return prod(comb(total, chosen) for total, chosen in _block_counts(n_reference, strata))


def _mirrors(n_reference: int, n_counterfactual: int, strata: tuple[int, ...] | None) -> bool:
    """Whether exchanging the two labels everywhere maps the orbit onto itself."""
    if strata is None:
        return n_reference == n_counterfactual
    return all(total == 2 * chosen for total, chosen in _block_counts(n_reference, strata))


def _enumerated(
    n_reference: int, n_counterfactual: int, strata: tuple[int, ...] | None
) -> tuple[Bools, int]:
    total = n_reference + n_counterfactual
    if strata is not None:
        return _rows_to_labels(_blocked_choices(n_reference, strata), n_reference, total), 1
    # Combinations come in lexicographic order: the observed labelling is the first of them, and
    # those that keep sample 0 in the reference are a prefix, one of each mirrored couple.
    labels = _rows_to_labels(combinations(range(total), n_reference), n_reference, total)
    if n_reference != n_counterfactual:
        return labels, 1
    return labels[: len(labels) // 2], 2


def _blocked_choices(n_reference: int, strata: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    members: dict[int, list[int]] = {}
    for sample, block in enumerate(strata):
        members.setdefault(block, []).append(sample)
    counts = Counter(strata[:n_reference])
    # Reference samples are pooled first, so the first choice of every block is the observed one.
    choices = (combinations(samples, counts[block]) for block, samples in members.items())
    return (tuple(chain.from_iterable(choice)) for choice in product(*choices))


def _rows_to_labels(rows: Iterator[tuple[int, ...]], n_reference: int, total: int) -> Bools:
    chosen = np.fromiter(chain.from_iterable(rows), dtype=np.intp).reshape(-1, n_reference)
    labels = np.zeros((len(chosen), total), dtype=np.bool_)
    np.put_along_axis(labels, chosen, True, axis=1)
    return labels


def _drawn(
    n_reference: int, n_counterfactual: int, strata: tuple[int, ...] | None, seed: int
) -> Bools:
    rng = np.random.default_rng(seed)
    observed = np.arange(n_reference + n_counterfactual) < n_reference
    labels = np.tile(observed, (RANDOM_SPLITS + 1, 1))
    blocks = np.zeros(len(observed), np.intp) if strata is None else np.asarray(strata)
    for block in np.unique(blocks):
        columns = np.flatnonzero(blocks == block)
        labels[1:, columns] = rng.permuted(labels[1:, columns], axis=1)
    return labels


def _pair_weights(labels: Bools, shares: PairShares) -> Floats | None:
    total = labels.shape[1]
    if len(labels) * comb(total, 2) > _PAIR_FORM_LIMIT:
        return None
    first, second = np.triu_indices(total, 1)
    left, right = labels[:, first], labels[:, second]
    apart, together = left != right, left & right
    delta = np.where(apart, shares.across, np.where(together, -shares.inside, -shares.other))
    # Sums and not means: with distances of 0 and 1 they stay whole numbers, without rounding.
    sums = np.stack([apart[0], together[0], ~(apart[0] | together[0])])
    return _frozen(np.concatenate([sums.astype(np.float64), delta.astype(np.float64)]))


@lru_cache(maxsize=24)
def _sums_by_shape(n_reference: int, n_counterfactual: int) -> LabelSums:
    return enumerated_sums(n_reference, n_counterfactual)


@lru_cache(maxsize=8)
def _sums_by_labels(plan: SplitPlan) -> LabelSums:
    return labelled_sums(plan.labels)


def _sums_of(plan: SplitPlan) -> LabelSums:
    """How one probe set's sums over all labellings are added up; made when first needed."""
    total = plan.n_reference + plan.n_counterfactual
    if plan.exact and plan.size == comb(total, plan.n_reference):
        return _sums_by_shape(plan.n_reference, plan.n_counterfactual)
    return _sums_by_labels(plan)


@lru_cache(maxsize=24)
def _single_precision(plan: SplitPlan) -> Singles | None:
    """The weights of a plan whose sums of quarters are whole numbers that a single holds."""
    if plan.weights is None or np.abs(plan.weights).sum(axis=1).max() * _QUARTERS > _LARGEST_SINGLE:
        return None
    return _frozen(plan.weights.astype(np.float32))


def _product(triangles: Numbers, weights: Numbers) -> Numbers:
    """``triangles @ weights.T`` in pieces too small to be handed to several threads.

    On a machine at work, threads that wait for each other cost many times what they save.
    """
    rows, pairs = triangles.shape
    product = np.empty((rows, len(weights)), dtype=weights.dtype)
    step = max(1, _PRODUCT_OF_ONE_THREAD // (max(rows, 1) * pairs))
    for start in range(0, len(weights), step):
        piece = weights[start : start + step]
        np.matmul(triangles, piece.T, out=product[:, start : start + step])
    return cast("Numbers", product)


def _pair_counts(n_reference: int, n_counterfactual: int) -> tuple[int, int, int]:
    return n_reference * n_counterfactual, comb(n_reference, 2), comb(n_counterfactual, 2)


def _parts_by_label(plan: SplitPlan, triangles: Floats) -> tuple[Floats, Floats]:
    """The same as a product with pair weights, in memory of labellings x samples."""
    total = plan.n_reference + plan.n_counterfactual
    labels = plan.labels.astype(np.float64)
    deltas = np.empty((len(triangles), len(labels)))
    means = np.empty((len(triangles), 3))
    for row, triangle in enumerate(triangles):
        distances = np.zeros((total, total))
        distances.flat[plan.pairs] = triangle
        distances += distances.T
        inside = np.vecdot(labels @ distances, labels) / 2
        across = labels @ distances.sum(axis=1) - 2 * inside
        other = triangle.sum() - inside - across
        sums = np.stack([across, inside, other], axis=1) / plan.pair_counts
        deltas[row] = sums[:, 0] - (sums[:, 1] + sums[:, 2]) / 2
        means[row] = sums[0]
    return means, deltas


def _frozen(array: Array) -> Array:
    array.setflags(write=False)
    return array
