"""Paired permutation: exchange reference and counterfactual, and see what the statistic does.

All pairs of a case are exchanged together: replicates of one case are no independent evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.inference.sign_flips import DRAWS, EXACT_UP_TO, sign_patterns
from twinspan.analysis.pair_statistics import RatioStatistic, Statistic
from twinspan.analysis.pairs import Pair, by_case

Floats = NDArray[np.float64]
Unit = Literal["case", "pair"]

NO_PAIRS: Final = "no_pairs"
UNDEFINED: Final = "statistic_undefined"
INVARIANT: Final = "the statistic is invariant under exchanging reference and counterfactual"
NO_VARIATION: Final = "no within-pair variation"

_FLAT: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class PermutationTest:
    """A two-sided permutation test of a statistic of pairs.

    Attributes:
        observed: the statistic; None where it is undefined.
        p_value: in (0, 1]; None where there is no test.
        n: pairs used: with both actions or both scores.
        n_units: units exchanged independently.
        exact: whether all exchanges were enumerated.
        degenerate: whether no exchange can change the statistic although pairs differ; a rate
            that counts flips whichever way they go has no test of this kind.
        draws: exchanges looked at.
        null_centre: mean of the statistic over them; None without a test.
        reason: why there is no p-value, or why it is 1; None otherwise.
    """

    observed: float | None
    p_value: float | None
    n: int
    n_units: int
    exact: bool
    degenerate: bool
    draws: int
    null_centre: float | None
    reason: str | None

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        return {
            "observed": self.observed,
            "p_value": self.p_value,
            "n": self.n,
            "n_units": self.n_units,
            "exact": self.exact,
            "degenerate": self.degenerate,
            "n_reference_draws": self.draws,
            "null_centre": self.null_centre,
            "reason": self.reason,
        }


def paired_permutation_test(
    pairs: Sequence[Pair],
    statistic: Statistic,
    *,
    unit: Unit = "case",
    draws: int = DRAWS,
    seed: int = 0,
    exact_up_to: int = EXACT_UP_TO,
) -> PermutationTest:
    """Whether a statistic would be as extreme if reference and counterfactual had no meaning.

    Args:
        pairs: those without both actions or both scores are left out.
        statistic: any function of pairs that tells the two sides apart, such as
            `SIGNED_FLIP_RATE`; a `RatioStatistic` is much faster.
        unit: what is exchanged as one: a ``case`` with all its pairs, or each ``pair``.
        draws: exchanges to sample where there are too many to enumerate.
        seed: of the sampling.
        exact_up_to: units up to which all exchanges are enumerated.

    Returns:
        Without a p-value for a statistic that does not tell the sides apart: a flip rate cannot
        be tested this way, and a p-value of 1 would say that it had been.

    >>> from twinspan.analysis.pair_statistics import FLIP_RATE, SIGNED_FLIP_RATE
    >>> pairs = [Pair(f"v{n}", action_ref=True, action_cf=False) for n in range(8)]
    >>> paired_permutation_test(pairs, SIGNED_FLIP_RATE).p_value  # 2 of 256 exchanges
    0.0078125
    >>> paired_permutation_test(pairs, FLIP_RATE).degenerate
    True
    """
    used = [p for p in pairs if p.flipped is not None or p.score_difference is not None]
    units = list(by_case(used).values()) if unit == "case" else [[pair] for pair in used]
    observed = statistic(used) if used else None
    if observed is None:
        return _untested(NO_PAIRS if not used else UNDEFINED, None, len(used), len(units))
    patterns, exact = sign_patterns(len(units), draws, seed, exact_up_to=exact_up_to)
    values = _exchanged(units, statistic, patterns < 0)
    if _spread(values) <= _FLAT:
        return _flat(observed, used, len(units), exact, len(values))
    centre = float(np.nanmean(values))
    gap = abs(observed - centre)
    # An exchange without a value could have been extreme; it counts as if it were.
    hits = int(np.sum(~(np.abs(values - centre) < gap - _FLAT)))
    return PermutationTest(
        observed=observed,
        p_value=hits / len(values) if exact else (hits + 1) / (len(values) + 1),
        n=len(used),
        n_units=len(units),
        exact=exact,
        degenerate=False,
        draws=len(values),
        null_centre=centre,
        reason=None,
    )


def _exchanged(
    units: Sequence[Sequence[Pair]], statistic: Statistic, exchanged: NDArray[np.bool_]
) -> Floats:
    """The statistic for each pattern of exchanged units; NaN where it is undefined."""
    turned = [[pair.swapped() for pair in unit] for unit in units]
    if isinstance(statistic, RatioStatistic):
        kept_parts, turned_parts = _parts(statistic, units), _parts(statistic, turned)
        totals: Floats = kept_parts.sum(axis=0) + exchanged @ (turned_parts - kept_parts)
        values: Floats = totals[:, 0] / np.where(totals[:, 1] > 0, totals[:, 1], np.nan)
        return values
    return np.array([_value(units, turned, statistic, row) for row in exchanged])


def _parts(statistic: RatioStatistic, units: Sequence[Sequence[Pair]]) -> Floats:
    return np.array([np.sum([statistic.part(pair) for pair in unit], axis=0) for unit in units])


def _value(
    kept: Sequence[Sequence[Pair]],
    turned: Sequence[Sequence[Pair]],
    statistic: Statistic,
    exchanged: NDArray[np.bool_],
) -> float:
    chosen = [
        pair
        for unit, other, turn in zip(kept, turned, exchanged.tolist(), strict=True)
        for pair in (other if turn else unit)
    ]
    value = statistic(chosen)
    return math.nan if value is None else value


def _spread(values: Floats) -> float:
    return float(np.nanmax(values) - np.nanmin(values)) if not np.isnan(values).all() else 0.0


def _flat(
    observed: float, used: Sequence[Pair], units: int, exact: bool, draws: int
) -> PermutationTest:
    varies = any(pair.flipped or pair.score_difference for pair in used)
    return PermutationTest(
        observed=observed,
        p_value=None if varies else 1.0,
        n=len(used),
        n_units=units,
        exact=exact,
        degenerate=varies,
        draws=draws,
        null_centre=None if varies else observed,
        reason=INVARIANT if varies else NO_VARIATION,
    )


def _untested(reason: str, observed: float | None, n: int, units: int) -> PermutationTest:
    return PermutationTest(
        observed=observed,
        p_value=None,
        n=n,
        n_units=units,
        exact=False,
        degenerate=False,
        draws=0,
        null_centre=None,
        reason=reason,
    )
