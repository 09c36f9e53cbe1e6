"""The statistic of one probe set under all labellings, without a weight for every pair.

Delta is linear in two numbers of either arm: the sum of the distances inside it, and the sum of
its samples' distances to everyone. Both grow sample by sample, so labellings that begin alike
share the work.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb, frexp, lcm
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]

_MANTISSA: Final = 52
"""Bits that a sum may take, one less than a double has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShares:
    """What a pair's distance adds to delta, in whole numbers over one denominator.

    Attributes:
        across: of a pair across the arms.
        inside: less this of a pair within the reference arm.
        other: less this of a pair within the counterfactual arm.
        denominator: what they stand over.
        grid: the largest power of 2 that leaves every sum of multiples of it in [0, 1] exact.
    """

    across: int
    inside: int
    other: int
    denominator: int
    grid: float

    @classmethod
    def of(cls, n_reference: int, n_counterfactual: int) -> PairShares:
        """The shares of a shape.

        >>> PairShares.of(5, 5).across, PairShares.of(5, 5).inside, PairShares.of(5, 5).denominator
        (4, 5, 100)
        """
        pairs = n_reference * n_counterfactual
        within, beyond = comb(n_reference, 2), comb(n_counterfactual, 2)
        whole = lcm(pairs, 2 * within, 2 * beyond)
        across, inside, other = whole // pairs, whole // (2 * within), whole // (2 * beyond)
        total, size = n_reference + n_counterfactual, min(n_reference, n_counterfactual)
        own, rest = (inside, other) if n_reference == size else (other, inside)
        # No sum below, nor any part of one, exceeds these three together.
        highest = (across + rest) * size * (total - 1)
        highest += (2 * across + own + rest) * comb(size, 2) + rest * comb(total, 2)
        return cls(
            across=across,
            inside=inside,
            other=other,
            denominator=whole,
            grid=2.0 ** (frexp(highest)[1] - _MANTISSA),
        )


class LabelSums(Protocol):
    """Adds up one probe set's distances under every labelling."""

    def of(self, triangle: Floats) -> Floats:
        """Delta times the denominator of every labelling, the observed one first.

        Args:
            triangle: N(N-1)/2 distances, multiples of the grid.
        """
        ...


class _Arm(NamedTuple):
    """The arm by whose members a labelling is known, and how its sums make delta.

    Attributes:
        reach: weight of its samples' distances to everyone.
        inside: weight of the distances inside it, negative.
        total: weight of all distances, negative.
        others: places of each sample's pairs, samples in columns.
    """

    reach: int
    inside: int
    total: int
    others: Places

    @classmethod
    def of(cls, n_reference: int, n_counterfactual: int, *, is_reference: bool) -> _Arm:
        shares = PairShares.of(n_reference, n_counterfactual)
        own, rest = shares.inside, shares.other
        if not is_reference:
            own, rest = rest, own
        total = n_reference + n_counterfactual
        places = pair_places(total)
        others = [np.delete(places[:, sample], sample) for sample in range(total)]
        return cls(
            reach=shares.across + rest,
            inside=-(2 * shares.across + own + rest),
            total=-rest,
            others=np.stack(others, axis=1),
        )

    def reaches(self, triangle: Floats) -> Floats:
        """Each sample's distances to everyone, weighed."""
        reaches: Floats = np.add.reduce(triangle.take(self.others), axis=0) * self.reach
        return reaches


def pair_places(total: int) -> Places:
    """Place of each pair of samples in a row-major upper triangle; 0 on the diagonal.

    >>> pair_places(3)[1].tolist()
    [0, 0, 2]
    """
    places = np.zeros((total, total), dtype=np.intp)
    first, second = np.triu_indices(total, 1)
    places[first, second] = places[second, first] = np.arange(len(first))
    return places


class _Level(NamedTuple):
    """Arms of one size more, in lexicographic order.

    Attributes:
        without_last: place of the arm without its last sample, among those of one less.
        without_second: place of the arm without its last sample but one.
        pair: place of the pair of these two.
    """

    without_last: Places
    without_second: Places
    pair: Places


class _PrefixSums:
    """Every arm of a size, grown from those of one sample less.

    The last sample's distances to the others are those of the arm without the last but one, and
    one distance more; so each arm takes two additions, however many pairs it has.
    """

    def __init__(self, arm: _Arm, pool: range, size: int, observed: tuple[int, ...]) -> None:
        self._arm = arm
        self._pool = np.array(pool, dtype=np.intp)
        places = pair_places(arm.others.shape[1])
        known: dict[tuple[int, ...], int] = {(each,): place for place, each in enumerate(pool)}
        self._levels: list[_Level] = []
        for count in range(2, size + 1):
            members = list(combinations(pool, count))
            self._levels.append(
                _Level(
                    np.array([known[each[:-1]] for each in members], dtype=np.intp),
                    np.array([known[each[:-2] + each[-1:]] for each in members], dtype=np.intp),
                    np.array([places[each[-2], each[-1]] for each in members], dtype=np.intp),
                )
            )
            known = {each: place for place, each in enumerate(members)}
        self._observed = known[observed]

    def of(self, triangle: Floats) -> Floats:
        last = self._arm.reaches(triangle).take(self._pool)
        inside = triangle * self._arm.inside
        sums = last
        for level in self._levels:
            last = last.take(level.without_second)
            last += inside.take(level.pair)
            sums = sums.take(level.without_last)
            sums += last
        sums += self._arm.total * float(np.add.reduce(triangle))
        sums[0], sums[self._observed] = sums[self._observed], sums[0]
        return sums


class _GatheredSums:
    """Labellings without an order: the pairs inside each one's smaller arm are looked up."""

    def __init__(self, arm: _Arm, members: Places) -> None:
        self._arm = arm
        self._members = np.ascontiguousarray(members.T)
        first, second = np.triu_indices(members.shape[1], 1)
        places = pair_places(arm.others.shape[1])
        self._pairs = places[self._members[first], self._members[second]]

    def of(self, triangle: Floats) -> Floats:
        sums: Floats = np.add.reduce(self._arm.reaches(triangle).take(self._members), axis=0)
        sums += np.add.reduce((triangle * self._arm.inside).take(self._pairs), axis=0)
        sums += self._arm.total * float(np.add.reduce(triangle))
        return sums


def enumerated_sums(n_reference: int, n_counterfactual: int) -> LabelSums:
    """For all labellings of a shape; of those that mirror each other one each.

    >>> enumerated_sums(2, 2).of(np.array([0.0, 1.0, 1.0, 1.0, 1.0, 0.0])).tolist()
    [4.0, -2.0, -2.0]
    """
    total = n_reference + n_counterfactual
    by_reference = n_reference < n_counterfactual
    arm = _Arm.of(n_reference, n_counterfactual, is_reference=by_reference)
    if by_reference:
        return _PrefixSums(arm, range(total), n_reference, tuple(range(n_reference)))
    # With arms of one size sample 0 stays in the reference: one of each mirrored couple.
    pool = range(n_reference == n_counterfactual, total)
    return _PrefixSums(arm, pool, n_counterfactual, tuple(range(n_reference, total)))


def labelled_sums(labels: Bools) -> LabelSums:
    """For labellings as they are given, the observed one first.

    Args:
        labels: one row per labelling, True where a sample is labelled reference.
    """
    n_reference = int(labels[0].sum())
    n_counterfactual = labels.shape[1] - n_reference
    by_reference = n_reference < n_counterfactual
    arm = _Arm.of(n_reference, n_counterfactual, is_reference=by_reference)
    chosen = labels if by_reference else ~labels
    members = np.nonzero(chosen)[1].reshape(len(labels), -1)
    return _GatheredSums(arm, members)
