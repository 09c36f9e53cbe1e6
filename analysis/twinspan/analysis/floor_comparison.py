"""Comparison of floors: of two outcomes, or of two models on the same cases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from twinspan.analysis.disagreement import PairCount
from twinspan.analysis.inference.sign_flips import sign_flip_test
from twinspan.analysis.inference.student import t_interval

Floats = NDArray[np.float64]

NO_SHARED_CASES: Final = "no_case_has_pairs_on_both_sides"
TOO_FEW_ACTIONS: Final = "fewer_than_three_actions"
NO_ORDER: Final = "all_floors_of_one_side_are_equal"

_ENUMERATED: Final = 8
_DRAWS: Final = 19_999


@dataclass(frozen=True, slots=True, kw_only=True)
class FloorDifference:
    """One floor less another over the cases that both have.

    Attributes:
        first: mean of the first side's rates over the shared cases; None without one.
        second: of the second side's.
        low: lower end of a t interval for the difference over cases; None if fewer than two,
            or if all differences are equal.
        high: its upper end.
        p_value: two-sided, by exchanging the sides within cases; None without a case.
        cases: shared cases with pairs on both sides.
        left_out: cases without.
    """

    first: float | None
    second: float | None
    low: float | None
    high: float | None
    p_value: float | None
    cases: int
    left_out: int

    @property
    def value(self) -> float | None:
        """The difference, -1 to 1; None without a case."""
        if self.first is None or self.second is None:
            return None
        return self.first - self.second

    @property
    def reason(self) -> str | None:
        """Why there is no difference; None if there is one."""
        return None if self.cases else NO_SHARED_CASES


def compare_floors(
    first: Mapping[str, PairCount],
    second: Mapping[str, PairCount],
    *,
    level: float = 0.95,
    seed: int = 0,
) -> FloorDifference:
    """Whether two floors differ, case by case.

    A case is hard for both sides or for neither, so the difference within cases is what counts;
    intervals of the two floors that overlap say nothing about it.

    Args:
        first: pairs of replicates by case.
        second: of another outcome, or of another model.
        level: nominal coverage.
        seed: used where there are too many cases to enumerate their signs.

    >>> noisy = {f"v{n}": PairCount(flips=20, cells=45) for n in range(6)}
    >>> calm = {f"v{n}": PairCount(flips=n, cells=45) for n in range(6)}
    >>> found = compare_floors(noisy, calm)
    >>> found.value, found.p_value  # both of 64 patterns with one sign throughout
    (0.388889, 0.03125)
    """
    rates = [(first[case].rate, second[case].rate) for case in first if case in second]
    known = [(one, other) for one, other in rates if one is not None and other is not None]
    differences = np.array([one - other for one, other in known], dtype=np.float64)
    low, high = t_interval(differences, level)
    return FloorDifference(
        first=sum(one for one, _ in known) / len(known) if known else None,
        second=sum(other for _, other in known) / len(known) if known else None,
        low=low,
        high=high,
        p_value=sign_flip_test(differences, seed=seed).p_value,
        cases=len(known),
        left_out=len(first.keys() | second.keys()) - len(known),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankAgreement:
    """Whether two models find the same actions noisy.

    Attributes:
        correlation: Spearman's, -1 to 1; None with a `reason`.
        p_value: two-sided, from all orders of up to eight actions, else from a sample.
        actions: actions with a floor on both sides.
        exact: whether all orders were enumerated.
        reason: why there is no correlation; None if there is one.
    """

    correlation: float | None
    p_value: float | None
    actions: int
    exact: bool
    reason: str | None


def rank_agreement(
    first: Mapping[str, float | None], second: Mapping[str, float | None], *, seed: int = 0
) -> RankAgreement:
    """Spearman's rank correlation of the floors of two models (Spearman 1904).

    Args:
        first: floors by action, None where there is none.
        second: of the other model.
        seed: used beyond eight actions.

    >>> found = rank_agreement({"a": .1, "b": .2, "c": .3}, {"a": .2, "b": .3, "c": .4})
    >>> found.correlation, found.p_value  # this order and its reverse, of six
    (1.0, 0.333333)
    """
    shared = [(first[name], second.get(name)) for name in first]
    known = [(one, other) for one, other in shared if one is not None and other is not None]
    if len(known) < 3:
        return _no_agreement(len(known), TOO_FEW_ACTIONS)
    ranks = [_centred_ranks([pair[side] for pair in known]) for side in (0, 1)]
    scale = math.sqrt(float((ranks[0] ** 2).sum() * (ranks[1] ** 2).sum()))
    if scale == 0:
        return _no_agreement(len(known), NO_ORDER)
    orders, exact = _orders(len(known), seed)
    correlations = ranks[1][orders] @ ranks[0] / scale
    hits = int(np.sum(np.abs(correlations) >= abs(correlations[0]) - 1e-12))
    return RankAgreement(
        correlation=float(correlations[0]),
        p_value=hits / len(orders),
        actions=len(known),
        exact=exact,
        reason=None,
    )


def _no_agreement(actions: int, reason: str) -> RankAgreement:
    return RankAgreement(correlation=None, p_value=None, actions=actions, exact=True, reason=reason)


def _centred_ranks(values: list[float]) -> Floats:
    ranks = np.asarray(stats.rankdata(values), dtype=np.float64)
    centred: Floats = ranks - ranks.mean()
    return centred


def _orders(actions: int, seed: int) -> tuple[NDArray[np.intp], bool]:
    """All orders, or a sample of them; the first is the given one."""
    if actions <= _ENUMERATED:
        return np.array(list(permutations(range(actions))), dtype=np.intp), True
    rng = np.random.default_rng(seed)
    given = np.arange(actions)
    drawn = rng.permuted(np.tile(given, (_DRAWS, 1)), axis=1)
    return np.vstack([given, drawn]), False
