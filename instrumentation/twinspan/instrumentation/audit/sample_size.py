"""Sample size and power for a wanted excess over the floor, before anything is run.

The tests are those of an audit's analysis: the stratified signed test, which looks for shifts
that agree in direction, and the excess test, which looks for any. Both compare N reference with
M counterfactual replicates within each case. The formulas are normal approximations for a yes
or no; the floor enters as twice the variance of a single answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import NormalDist, fmean
from typing import Final, Literal

from twinspan.instrumentation.errors import ConfigurationError

Test = Literal["shift", "excess"]

MOST_CASES: Final = 100_000
_NORMAL: Final = NormalDist()


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleSize:
    """What a design needs.

    Attributes:
        cases: cases needed; None where even 100,000 are too few.
        power: reached with so many; None likewise.
        runs: cases times replicates of both arms.
        reason: why there is no number; None if there is one.
    """

    cases: int | None
    power: float | None
    runs: int | None
    reason: str | None = None


def power(
    excess: float,
    floor: float | Sequence[float],
    *,
    cases: int,
    reference: int,
    counterfactual: int,
    test: Test = "shift",
    alpha: float = 0.05,
) -> float:
    """Probability that a test finds an excess.

    Args:
        excess: the wanted excess of the flip rate over the floor, (q - p)^2 for shares p and q
            of a yes; above 0. A shift of 0.2 in every case is an excess of 0.04.
        floor: disagreement of two replicates, 0 to 1; or one floor for each case of a pilot. A
            single number means that all cases are equally unstable, which for ``excess`` is
            too hopeful if few of them are.
        cases: cases.
        reference: replicates of each case under the reference.
        counterfactual: under the other descriptor.
        test: ``shift`` assumes that all cases move in one direction; ``excess`` does not.
        alpha: level of the test.

    Returns:
        The power, 0 to 1.

    Raises:
        ConfigurationError: a number is out of its range, or ``excess`` is asked for with one
            replicate in an arm.

    >>> power(0.04, 0.087, cases=16, reference=10, counterfactual=10)
    1.0
    >>> power(0.01, 0.2, cases=16, reference=5, counterfactual=5)  # (0.1 - 0.0125) / 0.05 = 1.75
    0.417
    """
    _check(excess, floor, cases, reference, counterfactual, test, alpha)
    law = _shift_law if test == "shift" else _excess_law
    return law(excess, _variances(floor), cases, reference, counterfactual, alpha)


def cases_needed(
    excess: float,
    floor: float | Sequence[float],
    *,
    reference: int,
    counterfactual: int,
    wanted_power: float = 0.8,
    test: Test = "shift",
    alpha: float = 0.05,
) -> SampleSize:
    """The fewest cases with which a test finds an excess often enough.

    Args:
        excess: as in `power`.
        floor: as in `power`.
        reference: replicates of each case under the reference.
        counterfactual: under the other descriptor.
        wanted_power: between 0 and 1.
        test: as in `power`.
        alpha: level of the test.

    Raises:
        ConfigurationError: as in `power`.

    >>> found = cases_needed(0.01, 0.2, reference=5, counterfactual=5)
    >>> found.cases, found.runs
    (36, 360)
    """
    if not 0.0 < wanted_power < 1.0:
        raise ConfigurationError(f"a power of {wanted_power!r} is none; 0.8 is usual")

    def reached(cases: int) -> float:
        return power(
            excess,
            floor,
            cases=cases,
            reference=reference,
            counterfactual=counterfactual,
            test=test,
            alpha=alpha,
        )

    found = _fewest(lambda cases: reached(cases) >= wanted_power)
    if found is None:
        return SampleSize(
            cases=None, power=None, runs=None, reason=f"more than {MOST_CASES} cases are needed"
        )
    return SampleSize(cases=found, power=reached(found), runs=found * (reference + counterfactual))


def detectable_excess(
    floor: float | Sequence[float],
    *,
    cases: int,
    reference: int,
    counterfactual: int,
    wanted_power: float = 0.8,
    test: Test = "shift",
    alpha: float = 0.05,
) -> float | None:
    """The smallest excess that a design finds often enough; None if not even the largest is.

    >>> detectable_excess(0.087, cases=16, reference=10, counterfactual=10)
    0.005123
    """
    low, high = 0.0, 1.0

    def enough(excess: float) -> bool:
        found = power(
            excess,
            floor,
            cases=cases,
            reference=reference,
            counterfactual=counterfactual,
            test=test,
            alpha=alpha,
        )
        return found >= wanted_power

    if not enough(high):
        return None
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def pairs_for_discordance(floor: float, discordant: int = 25) -> int:
    """Pairs of single runs in which so many flip by chance alone.

    Args:
        floor: disagreement of two runs, above 0 and at most 1.
        discordant: flips wanted for McNemar's test.

    Raises:
        ConfigurationError: the floor is out of range.

    >>> pairs_for_discordance(374 / 4320)
    289
    """
    if not 0.0 < floor <= 1.0:
        raise ConfigurationError(f"a floor of {floor!r} gives no flips; it lies in (0, 1]")
    return round(discordant / floor)


def smallest_p(cases: int, reference: int, counterfactual: int) -> float:
    """The smallest p-value that a signed test within cases can reach, if all answers agree.

    >>> smallest_p(1, 3, 3)  # 2 of 20 labellings: three against three never reaches 0.05
    0.1
    """
    if min(cases, reference, counterfactual) < 1:
        raise ConfigurationError("a test needs a case and a replicate in each arm; add some")
    labellings = math.comb(reference + counterfactual, counterfactual)
    return min(1.0, 2.0 * float(labellings) ** -cases)


def _shift_law(
    excess: float, variances: list[float], cases: int, n: int, m: int, alpha: float
) -> float:
    error = math.sqrt(fmean(variances) * (1 / n + 1 / m) / cases)
    # The statistic is counted in whole answers: half a step is lost.
    step = (1 / n + 1 / m) / (2 * cases)
    shift = max(0.0, math.sqrt(excess) - step)
    return _two_sided(shift / error if error else math.inf, alpha)


def _excess_law(
    excess: float, variances: list[float], cases: int, n: int, m: int, alpha: float
) -> float:
    arms = 1 / n + 1 / m
    spread = arms**2 + 1 / (n * n * (n - 1)) + 1 / (m * m * (m - 1))
    null = 2 * fmean(variance**2 for variance in variances) * spread
    moved = null + 4 * excess * fmean(variances) * arms
    if moved == 0:
        return 1.0
    critical = _critical(variances, cases, arms, null, alpha) * math.sqrt(null / cases)
    return _NORMAL.cdf((excess - critical) / math.sqrt(moved / cases))


def _critical(variances: list[float], cases: int, arms: float, null: float, alpha: float) -> float:
    """The critical value in standard deviations, for a null that is skewed as squares are.

    The second term is the first of Cornish and Fisher's expansion (1938).
    """
    plain = _NORMAL.inv_cdf(1 - alpha)
    if null == 0:
        return plain
    third = 8 * fmean((variance * arms) ** 3 for variance in variances)
    skewness = third / math.pow(null, 1.5) / math.sqrt(cases)
    return plain + skewness * (plain**2 - 1) / 6


def _two_sided(distance: float, alpha: float) -> float:
    if math.isinf(distance):
        return 1.0
    critical = _NORMAL.inv_cdf(1 - alpha / 2)
    return _NORMAL.cdf(distance - critical) + _NORMAL.cdf(-distance - critical)


def _variances(floor: float | Sequence[float]) -> list[float]:
    floors = [floor] if isinstance(floor, int | float) else list(floor)
    return [value / 2 for value in floors]


def _fewest(enough: Callable[[int], bool]) -> int | None:
    high = 1
    while not enough(high):
        high *= 2
        if high > MOST_CASES:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


def _check(
    excess: float,
    floor: float | Sequence[float],
    cases: int,
    reference: int,
    counterfactual: int,
    test: str,
    alpha: float,
) -> None:
    floors = [2 * variance for variance in _variances(floor)]
    if not 0.0 < excess <= 1.0 or not floors or not all(0.0 <= each <= 1.0 for each in floors):
        raise ConfigurationError(
            f"an excess of {excess!r} over a floor of {floor!r} cannot be; both are rates, and "
            "the excess is above 0"
        )
    if min(cases, reference, counterfactual) < 1 or not 0.0 < alpha < 1.0:
        raise ConfigurationError(
            f"{cases} cases with {reference} and {counterfactual} replicates at level {alpha!r} "
            "make no test; give one or more of each and a level such as 0.05"
        )
    if test not in ("shift", "excess"):
        raise ConfigurationError(f"there is no test {test!r}; take 'shift' or 'excess'")
    if test == "excess" and min(reference, counterfactual) < 2:
        raise ConfigurationError("an excess needs two replicates in each arm; add one")
