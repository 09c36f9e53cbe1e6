"""Bootstrap of cases: intervals for a statistic of pairs.

The independent unit is the case. However many replicates a case has, they are drawn together.
With few cases, or with flips in few of them, such intervals are too short; for rates of
disagreement `korn_graubard` keeps its level there. This one is for any statistic, and for
parity with results that were computed this way.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from twinspan.analysis.pair_statistics import RatioStatistic, Statistic
from twinspan.analysis.pairs import Pair, by_case
from twinspan.instrumentation.errors import ConfigurationError

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]
Method = Literal["percentile", "bca"]

NO_PAIRS: Final = "no_pairs"
ONE_CASE: Final = "fewer_than_two_cases"
ALL_UNDEFINED: Final = "all_resamples_undefined"
TOO_MANY_UNDEFINED: Final = "undefined_resample_fraction_exceeded"

DRAWS: Final = 10_000
"""Resamples of an interval unless said otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """An interval, or the reason why there is none.

    Attributes:
        low: lower end; None together with `high`.
        high: upper end.
        level: nominal coverage.
        method: how it was made.
        draws: resamples drawn.
        undefined: resamples in which the statistic did not exist.
        reason: why there is no interval; None if there is one.
        cases: independent units.
    """

    low: float | None
    high: float | None
    level: float
    method: str
    draws: int
    undefined: int
    cases: int
    reason: str | None = None

    @property
    def ends(self) -> tuple[float | None, float | None]:
        """Both ends; a pair of None where there is no interval."""
        return self.low, self.high

    @property
    def is_point(self) -> bool:
        """Whether it has no width: all resamples agree, which is no proof of certainty."""
        return self.low is not None and self.low == self.high


def cluster_bootstrap(
    pairs: Sequence[Pair],
    statistic: Statistic,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "percentile",
    max_undefined: float = 0.10,
) -> Interval:
    """An interval for a statistic among cases like these (Field & Welsh 2007).

    Args:
        pairs: any number per case.
        statistic: any function of pairs; a `RatioStatistic` is much faster.
        draws: resamples of the cases.
        level: nominal coverage, between 0 and 1.
        seed: of the resampling; the same seed gives the same interval.
        method: ``percentile``, or ``bca``, which corrects bias and skewness (Efron 1987).
        max_undefined: share of resamples that may be undefined before the interval is refused.

    Returns:
        Without ends, and with the reason, if there are no pairs, fewer than two cases, or too
        many undefined resamples.

    Raises:
        ConfigurationError: an option is out of its range.

    >>> from twinspan.analysis.pair_statistics import FLIP_RATE
    >>> pairs = [Pair(f"v{n}", action_ref=True, action_cf=n % 2 == 0) for n in range(40)]
    >>> cluster_bootstrap(pairs, FLIP_RATE, draws=1000, seed=2).ends
    (0.35, 0.65)
    >>> cluster_bootstrap([], FLIP_RATE).reason
    'no_pairs'
    """
    check_options(draws, level)
    cases = list(by_case(pairs).values())
    if len(cases) < 2:
        return _refused(ONE_CASE if cases else NO_PAIRS, len(cases), level, method, 0)
    weights = case_weights(len(cases), draws, seed)
    values = _resampled(cases, statistic, weights)
    left_out = _resampled(cases, statistic, 1 - np.eye(len(cases), dtype=np.int64))
    return interval_of(
        values,
        estimate=statistic(pairs),
        left_out=left_out,
        level=level,
        method=method,
        max_undefined=max_undefined,
    )


def bootstrap_ratio(
    numerators: Floats,
    denominators: Floats,
    *,
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
    method: Method = "percentile",
) -> Interval:
    """An interval for a quotient of totals over cases, from what each case adds to them.

    Args:
        numerators: one number per case, such as its flips.
        denominators: one number per case, such as its comparisons.
        draws: resamples.
        level: nominal coverage.
        seed: of the resampling.
        method: ``percentile`` or ``bca``.

    Raises:
        ConfigurationError: an option is out of its range.

    >>> flips, cells = np.array([0.0, 9, 0, 21]), np.full(4, 45.0)
    >>> bootstrap_ratio(flips, cells, draws=2000).ends
    (0.0, 0.4)
    """
    check_options(draws, level)
    cases = len(numerators)
    if cases < 2:
        return _refused(ONE_CASE if cases else NO_PAIRS, cases, level, method, 0)
    values = quotient(case_weights(cases, draws, seed), numerators, denominators)
    everyone = np.ones((1, cases), dtype=np.int64)
    return interval_of(
        values,
        estimate=float(quotient(everyone, numerators, denominators)[0]),
        left_out=quotient(everyone - np.eye(cases, dtype=np.int64), numerators, denominators),
        level=level,
        method=method,
    )


def check_options(draws: int, level: float) -> None:
    """Refuse an interval that nobody can mean.

    Raises:
        ConfigurationError: no draws, or a level that is no probability.
    """
    if draws < 1 or not 0.0 < level < 1.0:
        raise ConfigurationError(
            f"{draws!r} draws at level {level!r} make no interval; take 10,000 draws and 0.95"
        )


def case_weights(cases: int, draws: int, seed: int) -> Counts:
    """How often each case is in each resample: draws x cases, every row adding up to cases."""
    rng = np.random.default_rng(seed)
    drawn = rng.integers(cases, size=(draws, cases))
    flat = (drawn + cases * np.arange(draws)[:, None]).ravel()
    return np.bincount(flat, minlength=draws * cases).reshape(draws, cases)


def quotient(weights: Counts, numerators: Floats, denominators: Floats) -> Floats:
    """The quotient of weighted totals per row of weights; NaN where it does not exist."""
    undefined = np.isnan(numerators) | np.isnan(denominators)
    above = weights @ np.where(undefined, 0.0, numerators)
    below = weights @ np.where(undefined, 0.0, denominators)
    below[(weights[:, undefined] > 0).any(axis=1) | (below <= 0)] = np.nan
    return above / below


def interval_of(
    values: Floats,
    *,
    estimate: float | None,
    left_out: Floats,
    level: float,
    method: Method = "percentile",
    max_undefined: float = 0.10,
) -> Interval:
    """The interval from resampled values.

    Args:
        values: one per resample, NaN where undefined.
        estimate: the value for the data themselves; needed by ``bca``.
        left_out: one value per case, without it; likewise.
        level: nominal coverage.
        method: ``percentile`` or ``bca``.
        max_undefined: share of undefined resamples from which on there is no interval.
    """
    defined = np.sort(values[~np.isnan(values)])
    undefined = len(values) - len(defined)
    cases = len(left_out)
    if not len(defined):
        return _refused(ALL_UNDEFINED, cases, level, method, len(values), undefined)
    if undefined > max_undefined * len(values):
        return _refused(TOO_MANY_UNDEFINED, cases, level, method, len(values), undefined)
    tails = ((1 - level) / 2, (1 + level) / 2)
    if method == "bca" and estimate is not None and defined[0] < defined[-1]:
        tails = _bca_tails(tails, defined, estimate, left_out[~np.isnan(left_out)])
    low, high = order_statistics(defined, *tails)
    return Interval(
        low=low,
        high=high,
        level=level,
        method=method,
        draws=len(values),
        undefined=undefined,
        cases=cases,
    )


def order_statistics(ascending: Floats, lower: float, upper: float) -> tuple[float, float]:
    """The draws that cut off the tails: the only rule for percentiles in twinspan.

    Of m draws in rising order, number floor(m lower) from 0 on, and number floor(m upper) - 1.

    >>> order_statistics(np.arange(1000.0), 0.025, 0.975)
    (25.0, 974.0)
    """
    count = len(ascending)
    # A product like 0.975 * 1000 may come out just below a whole number.
    first = min(count - 1, math.floor(count * lower + 1e-9))
    last = max(0, math.floor(count * upper + 1e-9) - 1)
    return float(ascending[first]), float(ascending[max(first, last)])


def _bca_tails(
    tails: tuple[float, float], values: Floats, estimate: float, left_out: Floats
) -> tuple[float, float]:
    count = len(values)
    below = (np.sum(values < estimate) + np.sum(values == estimate) / 2) / count
    bias = _normal_quantile(min(max(float(below), 0.5 / count), 1 - 0.5 / count))
    gaps = left_out.mean() - left_out
    spread = float(np.sum(gaps**2))
    skew = float(np.sum(gaps**3)) / (6 * spread**1.5) if spread > 0 else 0.0
    low, high = (_bca_tail(bias, skew, tail) for tail in tails)
    return low, high


def _bca_tail(bias: float, skew: float, tail: float) -> float:
    shifted = bias + _normal_quantile(tail)
    return float(ndtr(bias + shifted / (1 - skew * shifted)))


def _normal_quantile(share: float) -> float:
    return float(ndtri(share))


def _resampled(cases: Sequence[Sequence[Pair]], statistic: Statistic, weights: Counts) -> Floats:
    if isinstance(statistic, RatioStatistic):
        parts = np.array(
            [np.sum([statistic.part(pair) for pair in case], axis=0) for case in cases]
        )
        return quotient(weights, parts[:, 0], parts[:, 1])
    return np.array([_value(cases, statistic, row) for row in weights])


def _value(cases: Sequence[Sequence[Pair]], statistic: Statistic, weights: Counts) -> float:
    drawn = [
        pair
        for case, times in zip(cases, weights.tolist(), strict=True)
        for _ in range(times)
        for pair in case
    ]
    value = statistic(drawn)
    return math.nan if value is None else value


def _refused(
    reason: str, cases: int, level: float, method: str, draws: int, undefined: int = 0
) -> Interval:
    return Interval(
        low=None,
        high=None,
        level=level,
        method=method,
        draws=draws,
        undefined=undefined,
        cases=cases,
        reason=reason,
    )
