"""Signed disparity of graded actions: how far, and which way, the grade moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

import numpy as np
from scipy import stats

from twinspan.analysis.inference.sign_flips import sign_flip_test
from twinspan.analysis.pair_statistics import ordinal_difference
from twinspan.analysis.pairs import Pair

NOTHING_TO_COMPARE: Final = "nothing_to_compare"


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedOrdinal:
    """Differences of grades, counterfactual less reference.

    Attributes:
        mean_signed_difference: in grades; None without a pair.
        wilcoxon_w: the smaller of the rank sums of rises and falls, equal pairs left out; None
            if all are equal.
        n: pairs with both grades.
        n_nonzero: pairs whose grades differ.
        n_missing: pairs without both grades.
        transitions: how often each (reference, counterfactual) occurs.
        p_value: of the mean, two-sided, by flipping the signs of whole cases; None without a
            pair.
        exact: whether all sign patterns were enumerated.
    """

    mean_signed_difference: float | None
    wilcoxon_w: float | None
    n: int
    n_nonzero: int
    n_missing: int
    transitions: Mapping[tuple[object, object], int]
    p_value: float | None
    exact: bool

    @property
    def reason(self) -> str | None:
        """Why there is no mean; None if there is one."""
        return None if self.n else NOTHING_TO_COMPARE

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        return {
            "mean_signed_difference": self.mean_signed_difference,
            "wilcoxon_w": self.wilcoxon_w,
            "n": self.n,
            "n_nonzero": self.n_nonzero,
            "n_missing": self.n_missing,
            "transitions": dict(self.transitions),
            "p_value": self.p_value,
            "reason": self.reason,
        }


def signed_ordinal_disparity(pairs: Sequence[Pair], *, seed: int = 0) -> SignedOrdinal:
    """How a grade moves with the descriptor: direction, size and evidence.

    A mean of absolute differences cannot tell a drift from noise; this one can. The p-value is
    for cases like these: replicates of one case add up before its sign is flipped.

    Args:
        pairs: with grades that are numbers.
        seed: used where there are too many cases to enumerate their signs.

    Raises:
        UnsuitableValue: a grade is no number.

    >>> moved = [Pair(f"v{n}", action_ref=2, action_cf=3) for n in range(6)]
    >>> found = signed_ordinal_disparity(moved)
    >>> found.mean_signed_difference, found.wilcoxon_w, found.p_value  # 2 of 64 patterns
    (1.0, 0.0, 0.03125)
    """
    differences = [(pair, ordinal_difference(pair)) for pair in pairs]
    known = [(pair, value) for pair, value in differences if value is not None]
    moved = np.array([value for _, value in known if value != 0])
    totals: dict[str, float] = {}
    for pair, value in known:
        totals[pair.case_id] = totals.get(pair.case_id, 0.0) + value
    test = sign_flip_test(np.array(list(totals.values()), dtype=np.float64), seed=seed)
    return SignedOrdinal(
        mean_signed_difference=sum(value for _, value in known) / len(known) if known else None,
        wilcoxon_w=_smaller_rank_sum(moved) if len(moved) else None,
        n=len(known),
        n_nonzero=len(moved),
        n_missing=len(differences) - len(known),
        transitions=MappingProxyType(
            dict(Counter((pair.action_ref, pair.action_cf) for pair, _ in known))
        ),
        p_value=test.p_value,
        exact=test.exact,
    )


def _smaller_rank_sum(moved: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    ranks = np.asarray(stats.rankdata(np.abs(moved)), dtype=np.float64)
    return float(min(ranks[moved > 0].sum(), ranks[moved < 0].sum()))
