"""Intervals for instability floors by resampling, and how far a floor hangs on one case.

Which interval is right depends on what varies. "These cases" fixes the cases and resamples
replicates; "cases like these" resamples cases. Where a replicate is a whole run over all cases,
answered in one context, both have to be resampled. `korn_graubard` is the default for "cases
like these": it needs no resampling and keeps its level with few cases.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.disagreement import PairCount, pooled
from twinspan.analysis.inference.bootstrap import (
    DRAWS,
    NO_PAIRS,
    ONE_CASE,
    Interval,
    case_weights,
    check_options,
    interval_of,
)
from twinspan.analysis.rates import NOTHING_TO_COMPARE, Rate
from twinspan.analysis.replicate_table import ReplicateTable
from twinspan.instrumentation.errors import ConfigurationError

Floats = NDArray[np.float64]
Resampled = Literal["cases", "replicates", "both"]

TOO_FEW_REPLICATES: Final = "fewer_than_three_replicates"
_BLOCK: Final = 500


def floor_of(tables: Sequence[ReplicateTable]) -> PairCount:
    """The pooled pairs of one or more outcomes.

    >>> table = ReplicateTable(cases=("a", "b"), replicates=(1, 2),
    ...                        answers=((True, False), (True, True)))
    >>> floor_of([table]).rate
    0.5
    """
    return pooled([count for table in tables for count in table.counts.values()])


def floor_interval(
    tables: Sequence[ReplicateTable],
    *,
    resample: Resampled = "both",
    draws: int = DRAWS,
    level: float = 0.95,
    seed: int = 0,
) -> Interval:
    """A percentile interval for the floor of one outcome, or of several pooled.

    Args:
        tables: outcomes of the same cases and replicates.
        resample: ``cases``, ``replicates``, or ``both`` at once (Owen 2007).
        draws: resamples.
        level: nominal coverage.
        seed: of the resampling.

    Returns:
        Without ends, and with the reason, if there are fewer than two cases, or fewer than
        three replicates to resample.

    Raises:
        ConfigurationError: the tables differ in cases or replicates, or an option is out of
            range.

    >>> table = ReplicateTable(cases=("a", "b", "c"), replicates=(1, 2, 3),
    ...     answers=((True, True, True), (True, False, True), (False, False, False)))
    >>> floor_interval([table], resample="cases", draws=999).ends
    (0.0, 0.666667)
    """
    check_options(draws, level)
    cases, replicates = _shape(tables)
    method = f"percentile over {resample}"
    reason = _refusal(len(cases), len(replicates), resample)
    if reason is not None:
        return Interval(
            low=None,
            high=None,
            level=level,
            method=method,
            draws=0,
            undefined=0,
            cases=len(cases),
            reason=reason,
        )
    values = np.concatenate(
        [
            _resampled(tables, resample, min(_BLOCK, draws - start), seed + 1000 * start)
            for start in range(0, draws, _BLOCK)
        ]
    )
    found = interval_of(values, estimate=None, left_out=np.zeros(len(cases)), level=level)
    return Interval(
        low=found.low,
        high=found.high,
        level=level,
        method=method,
        draws=draws,
        undefined=found.undefined,
        cases=len(cases),
        reason=found.reason,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The floor without one of its parts.

    Attributes:
        floor: the floor of everything; None where nothing can be compared.
        low: the lowest floor with one part left out; None where there is none.
        high: the highest.
        lowest_without: the part whose absence makes it lowest.
        highest_without: the part whose absence makes it highest.
    """

    floor: float | None
    low: float | None
    high: float | None
    lowest_without: object
    highest_without: object

    @property
    def reason(self) -> str | None:
        """Why there is no floor; None if there is one."""
        return NOTHING_TO_COMPARE if self.floor is None else None


def leave_one_out(
    tables: Sequence[ReplicateTable], *, by: Literal["case", "replicate"] = "case"
) -> LeftOut:
    """How far the floor moves when one case, or one replicate, is left out.

    Args:
        tables: outcomes of the same cases and replicates.
        by: what is left out.

    Raises:
        ConfigurationError: the tables differ in cases or replicates.

    >>> table = ReplicateTable(cases=("calm", "torn"), replicates=(1, 2),
    ...                        answers=((True, True), (True, False)))
    >>> found = leave_one_out([table])
    >>> found.low, found.lowest_without, found.high
    (0.0, 'torn', 1.0)
    """
    cases, replicates = _shape(tables)
    parts: Sequence[object] = cases if by == "case" else replicates
    rates = {
        part: floor_of(
            [
                table.without(cases=[str(part)])
                if by == "case"
                else table.without(replicates=[part])
                for table in tables
            ]
        ).rate
        for part in parts
    }
    known = {part: rate for part, rate in rates.items() if rate is not None}
    lowest = min(known, key=lambda part: known[part], default=None)
    highest = max(known, key=lambda part: known[part], default=None)
    return LeftOut(
        floor=floor_of(tables).rate,
        low=known.get(lowest),
        high=known.get(highest),
        lowest_without=lowest,
        highest_without=highest,
    )


def base_rate(table: ReplicateTable, answer: object = True) -> Rate:
    """Share of an answer among all known ones; a floor of 0 at a base rate of 0 says little.

    >>> base_rate(ReplicateTable(cases=("a",), replicates=(1, 2), answers=((True, None),)))
    Rate(count=1, total=1, n_missing=1)
    """
    told = [value for row in table.answers for value in row]
    known = [value for value in told if value is not None]
    return Rate(
        count=sum(value == answer for value in known),
        total=len(known),
        n_missing=len(told) - len(known),
    )


def _shape(tables: Sequence[ReplicateTable]) -> tuple[tuple[str, ...], tuple[object, ...]]:
    shapes = {(table.cases, table.replicates) for table in tables}
    if len(shapes) != 1:
        raise ConfigurationError(
            f"{len(tables)} tables have {len(shapes)} sets of cases and replicates; pool outcomes "
            "of the same runs"
        )
    return shapes.pop()


def _refusal(cases: int, replicates: int, resample: Resampled) -> str | None:
    if not cases:
        return NO_PAIRS
    if resample != "replicates" and cases < 2:
        return ONE_CASE
    return TOO_FEW_REPLICATES if resample != "cases" and replicates < 3 else None


def _resampled(
    tables: Sequence[ReplicateTable], resample: Resampled, draws: int, seed: int
) -> Floats:
    """Pooled rates of resampled tables; NaN where nothing was left to compare."""
    first = tables[0]
    of_replicates = np.ones((draws, len(first.replicates)))
    if resample != "cases":
        of_replicates = case_weights(len(first.replicates), draws, seed).astype(np.float64)
    of_cases = np.ones((draws, len(first.cases)))
    if resample != "replicates":
        # Another stream than the replicates': equal numbers of both must not move together.
        of_cases = case_weights(len(first.cases), draws, seed + 1).astype(np.float64)
    flips = cells = np.zeros(draws)
    for table in tables:
        of_table = table.pairs(of_replicates)
        flips = flips + (of_table[0] * of_cases).sum(axis=1)
        cells = cells + (of_table[1] * of_cases).sum(axis=1)
    rates: Floats = flips / np.where(cells > 0, cells, np.nan)
    return rates


def counts_by_case(tables: Iterable[ReplicateTable]) -> dict[str, PairCount]:
    """Pairs by case, several outcomes added up."""
    found: dict[str, list[PairCount]] = {}
    for table in tables:
        for case, count in table.counts.items():
            found.setdefault(case, []).append(count)
    return {case: pooled(counts) for case, counts in found.items()}
