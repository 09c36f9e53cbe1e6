"""How often two replicates of one case disagree: the instability floor, by counting.

A disparity between groups means nothing below the rate at which the same agent, asked the same
twice, answers differently. That rate is counted from the number of each answer; pairs are never
formed, so ten thousand replicates cost no more than ten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import fmean

from scipy.special import betaincinv, ndtri, stdtrit

from twinspan.instrumentation.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class PairCount:
    """Pairs of replicates, and how many of them disagree.

    Attributes:
        flips: pairs that disagree.
        cells: pairs compared.
    """

    flips: int
    cells: int

    @property
    def rate(self) -> float | None:
        """Share of pairs that disagree, 0 to 1; None where no pair was compared.

        >>> PairCount(flips=1, cells=4).rate, PairCount(flips=0, cells=0).rate
        (0.25, None)
        """
        return self.flips / self.cells if self.cells else None


def disagreement(counts: Sequence[int]) -> PairCount:
    """Pairs among replicates of one case, from how often each answer was given.

    Of N answers with n_k of kind k, C(N, 2) pairs exist and (N^2 - sum n_k^2) / 2 disagree; for a
    yes or no that is k (N - k). Its rate is an unbiased estimate of the probability that two
    further replicates disagree, 2 p (1 - p) for a yes or no.

    Args:
        counts: number of each answer; missing answers are left out before.

    >>> disagreement([7, 3])
    PairCount(flips=21, cells=45)
    >>> disagreement([2, 1, 1]).flips  # all pairs but the one within the first kind
    5
    """
    total = sum(counts)
    squares = sum(count * count for count in counts)
    return PairCount(flips=(total * total - squares) // 2, cells=comb(total, 2))


def majority_disagreement(counts: Sequence[int], group: int) -> PairCount:
    """Pairs of disjoint groups of replicates whose majority votes disagree, exactly.

    All ways to choose two disjoint groups of `group` replicates are counted in closed form from
    hypergeometric terms; nothing is sampled.

    Args:
        counts: number of each of at most two answers.
        group: replicates in a vote, odd, so that no vote is a tie.

    Returns:
        No pairs where fewer than two groups fit.

    Raises:
        ConfigurationError: if `group` is even or not positive, or there are three answers.

    >>> majority_disagreement([2, 4], 3)  # of ten splits, four put both on one side
    PairCount(flips=4, cells=10)
    >>> majority_disagreement([5, 0], 3)
    PairCount(flips=0, cells=0)
    """
    check_group(group)
    if len(counts) > 2:
        raise ConfigurationError(
            "a majority is of a yes or no; give an outcome rule like name=step.field<=2"
        )
    total = sum(counts)
    if 2 * group > total:
        return PairCount(flips=0, cells=0)
    ordered = comb(total, group) * comb(total - group, group)
    flips = sum(
        _ways(counts[0], total, group, first, second)
        for first in range(group + 1)
        for second in range(group + 1)
        if (2 * first > group) != (2 * second > group)
    )
    return PairCount(flips=flips // 2, cells=ordered // 2)


def check_group(group: int) -> None:
    """Refuse a number of replicates whose vote can be a tie.

    Raises:
        ConfigurationError: if it is even or not positive.

    >>> check_group(3)
    """
    if group < 1 or group % 2 == 0:
        raise ConfigurationError(
            f"a majority of {group} replicates can be a tie; take an odd number like 3"
        )


def _ways(ones: int, total: int, group: int, first: int, second: int) -> int:
    """Ordered pairs of groups that hold `first` and `second` of the ones."""
    zeros = total - ones
    if first > ones or group - first > zeros:
        return 0
    left_ones, left_zeros = ones - first, zeros - (group - first)
    return (
        comb(ones, first)
        * comb(zeros, group - first)
        * comb(left_ones, second)
        * comb(left_zeros, group - second)
    )


def pooled(pairs: Sequence[PairCount]) -> PairCount:
    """The pairs of several cases together.

    >>> pooled([PairCount(flips=1, cells=3), PairCount(flips=0, cells=3)])
    PairCount(flips=1, cells=6)
    """
    return PairCount(
        flips=sum(each.flips for each in pairs), cells=sum(each.cells for each in pairs)
    )


def korn_graubard(cases: Sequence[PairCount], *, level: float = 0.95) -> tuple[float, float] | None:
    """An interval for the rate among cases like these; pairs within a case are no evidence.

    The variance between cases gives an effective number of observations, with which the exact
    binomial interval of Clopper and Pearson is taken: never of zero width, and right at sixteen
    cases, where a bootstrap of cases is not (Korn & Graubard 1998).

    Args:
        cases: the pairs of each case.
        level: nominal coverage, between 0 and 1.

    Returns:
        Its ends, between 0 and 1; None with fewer than two cases that have a pair.

    >>> low, high = korn_graubard([PairCount(flips=0, cells=45)] * 16)
    >>> low, high  # as 0 of 16: 1 - 0.025 ** (1 / 16)
    (0.0, 0.205907)
    """
    counted = [case for case in cases if case.cells]
    number = len(counted)
    rate = pooled(counted).rate
    if number < 2 or rate is None:
        return None
    variance = _variance_between(counted, rate)
    effective = float(number)
    if variance > 0 and 0 < rate < 1:
        narrow = _normal_quantile(level) / _t_quantile(level, number - 1)
        effective = rate * (1 - rate) / variance * narrow**2
    return clopper_pearson(rate * effective, effective, level=level)


def _variance_between(cases: Sequence[PairCount], rate: float) -> float:
    """Variance of a ratio of totals over cases."""
    number = len(cases)
    mean_cells = fmean(case.cells for case in cases)
    residuals = ((case.flips - rate * case.cells) / mean_cells for case in cases)
    return sum(residual * residual for residual in residuals) / (number * (number - 1))


def _normal_quantile(level: float) -> float:
    return float(ndtri((1 + level) / 2))


def _t_quantile(level: float, freedom: int) -> float:
    return float(stdtrit(freedom, (1 + level) / 2))


def clopper_pearson(successes: float, trials: float, *, level: float = 0.95) -> tuple[float, float]:
    """The exact binomial interval (Clopper & Pearson 1934), also for fractional counts.

    >>> clopper_pearson(0, 10)
    (0.0, 0.308497)
    """
    tail = (1 - level) / 2
    low = float(betaincinv(successes, trials - successes + 1, tail)) if successes > 0 else 0.0
    high = (
        float(betaincinv(successes + 1, trials - successes, 1 - tail))
        if successes < trials
        else 1.0
    )
    return low, high


def kappa(pairs: PairCount, totals: Sequence[int]) -> float | None:
    """Agreement beyond chance, Fleiss' kappa: 1 - floor / disagreement of any two runs.

    Args:
        pairs: the pairs within the cases.
        totals: number of each answer over all cases.

    Returns:
        1 for replicates that always agree, 0 for agreement by chance, below 0 for less; None
        where all runs gave one answer, so that chance would agree too.

    >>> kappa(PairCount(flips=4, cells=12), [5, 3])  # chance: 15 of 28 pairs differ
    0.377778
    >>> kappa(PairCount(flips=0, cells=12), [8]) is None
    True
    """
    chance = disagreement(totals).rate
    rate = pairs.rate
    if rate is None or not chance:
        return None
    return 1 - rate / chance
