"""Sums over cases under the null, exactly: each case permutes its own labels.

Within a case of a yes or no, the number of ones that fall to the second arm is hypergeometric.
A statistic that adds up over cases has therefore a null distribution that can be convolved; no
permutation is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import comb, lcm, ulp
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_WORK: Final = 2 * 10**8
"""Additions that a convolution may take; beyond it permutations are drawn."""

CaseStatistic = Callable[[int, int, int, int], Fraction]
"""From ones and size of the first arm, and ones and size of the second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BinaryCase:
    """The answers of one case to a yes or no: ones and sizes of both arms.

    >>> case = BinaryCase(ones_first=3, first=10, ones_second=8, second=10)
    >>> case.ones, case.lowest
    (11, 1)
    """

    ones_first: int
    first: int
    ones_second: int
    second: int

    @property
    def ones(self) -> int:
        """Ones of both arms together; they stay when labels are permuted."""
        return self.ones_first + self.ones_second

    @property
    def lowest(self) -> int:
        """The fewest ones that can fall to the second arm."""
        return max(0, self.ones - self.first)


class ExactSum:
    """The null distribution of a sum over cases, on a lattice of fractions.

    Args:
        cases: at least one.
        statistic: what a case adds.

    >>> signed = lambda a, n, b, m: Fraction(b, m) - Fraction(a, n)
    >>> null = ExactSum([BinaryCase(ones_first=0, first=3, ones_second=3, second=3)], signed)
    >>> float(null.upper_tail()), float(null.two_sided())  # one of C(6, 3) = 20, then two
    (0.05, 0.1)
    """

    def __init__(self, cases: Sequence[BinaryCase], statistic: CaseStatistic) -> None:
        self._cases = tuple(cases)
        self._tables = [_table(case.ones, case.first, case.second, statistic) for case in cases]
        self._observed = sum(
            (statistic(c.ones_first, c.first, c.ones_second, c.second) for c in cases), Fraction(0)
        )
        every = {value.denominator for values, _ in self._tables for value in values}
        self._unit = lcm(*every, self._observed.denominator)

    @property
    def feasible(self) -> bool:
        """Whether the convolution is worth doing."""
        widths = [_span(values, self._unit) for values, _ in self._tables]
        supports = sum(len(values) for values, _ in self._tables)
        return (sum(widths) + 1) * supports <= _MOST_WORK

    def upper_tail(self) -> float:
        """Probability of a sum at least as large as the observed one."""
        law, start = self._law()
        return _clipped(law[max(0, int(self._observed * self._unit) - start) :])

    def two_sided(self) -> float:
        """Probability of a sum at least as far from 0 as the observed one."""
        law, start = self._law()
        distances = np.abs(np.arange(len(law)) + start)
        return _clipped(law[distances >= abs(int(self._observed * self._unit))])

    def sampled(self, draws: int, rng: np.random.Generator) -> Floats:
        """Sums of random labellings, the observed one first: one draw for each case."""
        sums = np.zeros(draws)
        for case, (values, _) in zip(self._cases, self._tables, strict=True):
            zeros = case.first + case.second - case.ones
            ones = rng.hypergeometric(case.ones, zeros, case.second, size=draws)
            sums += np.array([float(value) for value in values])[ones - case.lowest]
        return np.concatenate([[float(self._observed)], sums])

    def _law(self) -> tuple[Floats, int]:
        law, start = np.ones(1), 0
        for values, chances in self._tables:
            places = [int(value * self._unit) for value in values]
            lowest = min(places)
            wider = np.zeros(len(law) + max(places) - lowest)
            for place, chance in zip(places, chances, strict=True):
                wider[place - lowest : place - lowest + len(law)] += chance * law
            law, start = wider, start + lowest
        return law, start


@lru_cache(maxsize=4096)
def _table(
    ones: int, first: int, second: int, statistic: CaseStatistic
) -> tuple[tuple[Fraction, ...], tuple[float, ...]]:
    """What a case can add, and the chances, by the ones that fall to the second arm."""
    counts = range(max(0, ones - first), min(second, ones) + 1)
    ways = [comb(second, k) * comb(first, ones - k) for k in counts]
    total = comb(first + second, ones)
    values = tuple(statistic(ones - k, first, k, second) for k in counts)
    return values, tuple(way / total for way in ways)


def _span(values: Sequence[Fraction], unit: int) -> int:
    return int((max(values) - min(values)) * unit)


def _clipped(law: Floats) -> float:
    # With many cases the observed sum alone may be rarer than a double can tell; it is not 0.
    return min(1.0, max(float(law.sum()), ulp(0.0)))
