"""Excess over the floor: whether a descriptor changes answers more than chance changes them.

Within a case, answers under the reference and under the counterfactual descriptor are
exchangeable if the descriptor does nothing. The tests permute them there and nowhere else, so
that neither the difference between cases nor the floor itself can look like a disparity.

Flips less the reference's own floor is the obvious excess and the wrong one: for a yes or no
it is (q - p)(1 - 2p), nothing at p = 1/2 whatever q is, and negative where the descriptor makes
the agent more decisive. With the floors of both arms it is (p - q)^2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.disagreement import disagreement
from twinspan.analysis.inference.answers import (
    Answers,
    Distance,
    Pooled,
    Shared,
    distances,
    numbers_of,
    shared_cases,
)
from twinspan.analysis.inference.labels import (
    block_rows,
    excess_rows,
    label_rows,
    shift_rows,
    tail_share,
)
from twinspan.analysis.inference.multiplicity import adjust
from twinspan.analysis.inference.strata import BinaryCase, ExactSum
from twinspan.analysis.inference.student import t_interval
from twinspan.instrumentation.errors import ConfigurationError

Floats = NDArray[np.float64]

NO_SHARED_CASE: Final = "no_case_has_answers_in_both_arms"
ONE_RUN_PER_ARM: Final = "no_case_has_two_answers_in_both_arms"

DRAWS: Final = 9_999
"""Labellings that are sampled where the null is not computed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Excess:
    """A counterfactual arm against the reference, net of the noise of both.

    Attributes:
        cross: mean over cases of the disagreement between the arms; the flip rate.
        floor_reference: mean over cases of the disagreement within the reference arm.
        floor_counterfactual: within the counterfactual arm.
        value: cross less the mean of both floors; 0 in the mean if the descriptor does
            nothing, and not clipped there. None unless cases have two answers in each arm.
        low: lower end of a t interval for `value` over cases; None if fewer than two, or all alike.
        high: its upper end.
        shift: mean over cases of the counterfactual mean less the reference mean; None for
            answers without an order.
        p_excess: of `value`, one-sided: any change counts, whichever way it goes.
        p_shift: of `shift`, two-sided: changes that agree in direction count.
        n_cases: cases with answers in both arms.
        n_cases_left_out: cases without.
        n_missing: missing answers.
        exact: whether both null distributions were computed and not sampled.
        draws: labellings sampled, 0 if exact.
        reason: why there is no test, or no `value`; None otherwise.
    """

    cross: float | None
    floor_reference: float | None
    floor_counterfactual: float | None
    value: float | None
    low: float | None
    high: float | None
    shift: float | None
    p_excess: float | None
    p_shift: float | None
    n_cases: int
    n_cases_left_out: int
    n_missing: int
    exact: bool
    draws: int
    reason: str | None

    @property
    def adjusted(self) -> tuple[float | None, float | None]:
        """Both p-values, excess and shift, adjusted by Holm for there being two."""
        first, second = adjust([self.p_excess, self.p_shift]).adjusted
        return first, second

    @property
    def p_value(self) -> float | None:
        """The smaller of the adjusted p-values: the arm differs from the reference at all."""
        return min((p for p in self.adjusted if p is not None), default=None)

    def as_dict(self) -> dict[str, object]:
        """Plain data."""
        excess, shift = self.adjusted
        return {
            "cfr": self.cross,
            "floor_reference": self.floor_reference,
            "floor_counterfactual": self.floor_counterfactual,
            "excess": self.value,
            "ci_low": self.low,
            "ci_high": self.high,
            "shift": self.shift,
            "p_excess": self.p_excess,
            "p_shift": self.p_shift,
            "p_excess_holm": excess,
            "p_shift_holm": shift,
            "p_value": self.p_value,
            "n_cases": self.n_cases,
            "n_cases_left_out": self.n_cases_left_out,
            "n_missing": self.n_missing,
            "exact": self.exact,
            "reason": self.reason,
        }


def excess_over_floor(
    reference: Answers,
    counterfactual: Answers,
    *,
    distance: Distance = "flip",
    shared_replicates: bool = False,
    level: float = 0.95,
    draws: int = DRAWS,
    seed: int = 0,
) -> Excess:
    """Test a counterfactual arm against the reference within cases.

    For a yes or no both null distributions are computed. Other answers, and replicates that
    cases share, are permuted `draws` times or exhaustively.

    Args:
        reference: answers by case, one per replicate, None for a missing one.
        counterfactual: the same under the other descriptor.
        distance: ``flip`` counts different answers; ``absolute`` measures numbers.
        shared_replicates: permute whole replicates across all cases. Needed where a replicate
            was answered in one context, so that its cases are not independent; the sequences
            are then in the order of the replicates, without gaps.
        level: nominal coverage of the interval.
        draws: labellings to sample where the null is not computed.
        seed: of the sampling.

    Raises:
        ConfigurationError: shared replicates were asked for and cases differ in number.
        UnsuitableValue: ``absolute`` was asked of an answer that is no number.

    >>> reference = {f"v{n}": [True] * 5 + [False] * 5 for n in range(4)}
    >>> always = {f"v{n}": [True] * 10 for n in range(4)}
    >>> found = excess_over_floor(reference, always)
    >>> found.cross, found.floor_reference, found.floor_counterfactual, found.value
    (0.5, 0.555556, 0.0, 0.222222)
    >>> found.shift, found.p_value < 0.001  # although fewer answers differ than before
    (0.5, True)
    """
    shared = shared_cases([reference, counterfactual])
    pooled = list(shared.cases.values())
    if not pooled:
        return _nothing(shared)
    parts = [_parts_of(case, distance) for case in pooled]
    values = np.array([part.excess for part in parts if part.excess is not None])
    ordered = all(case.numeric for case in pooled)
    if all(case.binary for case in pooled) and not shared_replicates:
        tests = _binary_p(pooled, draws, seed)
    else:
        labels = _labels(shared, draws, seed, shared_replicates)
        tests = _drawn_p(pooled, distance, labels, ordered)
    low, high = t_interval(values, level)
    return Excess(
        cross=_mean([part.cross for part in parts]),
        floor_reference=_mean([part.first for part in parts]),
        floor_counterfactual=_mean([part.second for part in parts]),
        value=float(values.mean()) if len(values) else None,
        low=low,
        high=high,
        shift=float(np.mean([_shift(case) for case in pooled])) if ordered else None,
        p_excess=tests.p_excess,
        p_shift=tests.p_shift,
        n_cases=len(pooled),
        n_cases_left_out=shared.n_left_out,
        n_missing=shared.n_missing,
        exact=tests.draws == 0,
        draws=tests.draws,
        reason=None if len(values) else ONE_RUN_PER_ARM,
    )


class _Parts(NamedTuple):
    """Disagreement of one case: across the arms, and within each that has two answers."""

    cross: float
    first: float | None
    second: float | None

    @property
    def excess(self) -> float | None:
        if self.first is None or self.second is None:
            return None
        return self.cross - (self.first + self.second) / 2


class _Tests(NamedTuple):
    """The two p-values, and how many labellings were sampled for them."""

    p_excess: float
    p_shift: float | None
    draws: int


def _parts_of(case: Pooled, distance: Distance) -> _Parts:
    if case.binary:
        return _parts_of_counts(_counts(case))
    table, first = distances(case, distance), case.sizes[0]
    return _Parts(
        cross=float(table[:first, first:].mean()),
        first=_within(table[:first, :first]),
        second=_within(table[first:, first:]),
    )


def _parts_of_counts(case: BinaryCase) -> _Parts:
    first, second = case.ones_first, case.ones_second
    crossing = first * (case.second - second) + second * (case.first - first)
    return _Parts(
        cross=crossing / (case.first * case.second),
        first=disagreement([first, case.first - first]).rate,
        second=disagreement([second, case.second - second]).rate,
    )


def _within(table: Floats) -> float | None:
    size = len(table)
    return float(table.sum()) / (size * (size - 1)) if size > 1 else None


def _shift(case: Pooled) -> float:
    first = case.sizes[0]
    numbers = numbers_of(case)
    return float(numbers[first:].mean() - numbers[:first].mean())


def _binary_p(pooled: Sequence[Pooled], draws: int, seed: int) -> _Tests:
    """Both p-values for a yes or no, computed unless the sums have too many values."""
    cases = [_counts(case) for case in pooled]
    excess, shift = ExactSum(cases, excess_fraction), ExactSum(cases, shift_fraction)
    if excess.feasible and shift.feasible:
        return _Tests(excess.upper_tail(), shift.two_sided(), 0)
    return _Tests(
        p_excess=tail_share(excess.sampled(draws, np.random.default_rng(seed))),
        p_shift=tail_share(shift.sampled(draws, np.random.default_rng(seed)), two_sided=True),
        draws=draws,
    )


def _counts(case: Pooled) -> BinaryCase:
    first, second = ([bool(value) for value in arm] for arm in case.values)
    return BinaryCase(
        ones_first=sum(first), first=len(first), ones_second=sum(second), second=len(second)
    )


def excess_fraction(ones: int, size: int, other_ones: int, other: int) -> Fraction:
    """Excess disagreement of two arms of a yes or no, as a fraction.

    >>> excess_fraction(5, 10, 10, 10)
    Fraction(2, 9)
    """
    crossing = ones * (other - other_ones) + other_ones * (size - ones)
    own = [
        Fraction(2 * k * (n - k), n * (n - 1))
        for k, n in ((ones, size), (other_ones, other))
        if n > 1
    ]
    across = Fraction(crossing, size * other)
    return across - sum(own, Fraction(0)) / len(own) if own else across


def shift_fraction(ones: int, size: int, other_ones: int, other: int) -> Fraction:
    """Share of ones in the second arm less that in the first, as a fraction.

    >>> shift_fraction(5, 10, 10, 10)
    Fraction(1, 2)
    """
    return Fraction(other_ones, other) - Fraction(ones, size)


def _labels(
    shared: Shared, draws: int, seed: int, shared_replicates: bool
) -> Callable[[Pooled], tuple[Floats, bool]]:
    """What gives the labellings of a case, and says whether they are all there are."""
    rng = np.random.default_rng(seed)
    if not shared_replicates:
        return lambda case: (label_rows(case.sizes[0], case.sizes[1], draws, rng), False)
    sizes = {case.sizes for case in shared.cases.values()}
    if len(sizes) > 1 or shared.n_missing:
        raise ConfigurationError(
            "replicates that cases share need an answer of every case in every replicate; leave "
            "out the cases or replicates with gaps"
        )
    first, second = sizes.pop()
    rows = block_rows(first, second, draws, rng)
    return lambda _: rows


def _drawn_p(
    pooled: Sequence[Pooled],
    distance: Distance,
    labels: Callable[[Pooled], tuple[Floats, bool]],
    ordered: bool,
) -> _Tests:
    excess: Floats | float = 0.0
    shift: Floats | float = 0.0
    rows, exact = np.empty((0, 0)), False
    for case in pooled:
        rows, exact = labels(case)
        excess = excess + excess_rows(rows, distances(case, distance))
        if ordered:
            shift = shift + shift_rows(rows, numbers_of(case))
    return _Tests(
        p_excess=tail_share(np.asarray(excess)),
        p_shift=tail_share(np.asarray(shift), two_sided=True) if ordered else None,
        draws=0 if exact else len(rows) - 1,
    )


def _mean(known_or_none: Sequence[float | None]) -> float | None:
    known = [value for value in known_or_none if value is not None]
    return sum(known) / len(known) if known else None


def _nothing(shared: Shared) -> Excess:
    return Excess(
        cross=None,
        floor_reference=None,
        floor_counterfactual=None,
        value=None,
        low=None,
        high=None,
        shift=None,
        p_excess=None,
        p_shift=None,
        n_cases=0,
        n_cases_left_out=shared.n_left_out,
        n_missing=shared.n_missing,
        exact=True,
        draws=0,
        reason=NO_SHARED_CASE,
    )
