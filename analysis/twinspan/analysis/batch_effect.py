"""Batch effects: whether replicates decide case by case, or once for all cases.

If every case is answered in a context of its own, how many cases a replicate answers with yes
varies only as independent cases do. A replicate that takes one policy for all its cases, because
they were answered together, makes the totals vary more. Floors from such replicates mix decoding
noise with switches of policy, and resampling cases alone does not show it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.inference.multiplicity import adjust
from twinspan.analysis.replicate_table import ReplicateTable

Floats = NDArray[np.float64]

TOO_SMALL: Final = "fewer_than_two_cases_or_replicates"
CONSTANT: Final = "no_case_varies_between_replicates"

DRAWS: Final = 4_999


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEffect:
    """How much more the totals of replicates vary than independent cases allow.

    Attributes:
        action: the outcome.
        ratio: variance of the replicates' totals over the sum of the cases' own variances; 1
            in the mean for independent cases. None with a `reason`.
        p_value: of a larger ratio, by permuting the replicates within each case.
        totals: how many cases each replicate answers with yes; without a yes, with the most
            frequent answer.
        cases: cases that vary.
        reason: why there is no ratio; None if there is one.
    """

    action: str
    ratio: float | None
    p_value: float | None
    totals: tuple[int, ...]
    cases: int
    reason: str | None

    def warning(self, *, alpha: float = 0.05) -> str | None:
        """What to say to the reader of a floor; None where nothing was found at alpha."""
        if self.p_value is None or self.ratio is None or self.p_value > alpha:
            return None
        return (
            f"replicates of {self.action!r} vary {self.ratio:.1f} times as much as independent "
            "cases would; they were answered together, or the model changed between them: "
            "resample both, permute shared replicates, and answer every run by itself"
        )


def batch_effect(table: ReplicateTable, *, draws: int = DRAWS, seed: int = 0) -> BatchEffect:
    """Whether replicates of an outcome stand apart from each other.

    Args:
        table: cases by replicates; the columns are to be the same replicates in every case.
        draws: permutations.
        seed: of the sampling.

    >>> switching = ReplicateTable(action="caution", cases=tuple("abcdefgh"),
    ...     replicates=(1, 2, 3, 4), answers=((True, False, True, False),) * 8)
    >>> found = batch_effect(switching)
    >>> found.ratio, found.totals, found.p_value < 0.001
    (8.0, (8, 0, 8, 0), True)
    """
    centred = _centred(table)
    totals = _totals(table)
    if min(len(table.cases), len(table.replicates)) < 2:
        return _without(table, totals, TOO_SMALL)
    own = float(sum((kind**2).sum() for kind in centred))
    if own == 0:
        return _without(table, totals, CONSTANT)
    observed = sum(float((kind.sum(axis=0) ** 2).sum()) for kind in centred) / own
    rng = np.random.default_rng(seed)
    places = np.broadcast_to(np.arange(len(table.replicates)), (draws, *table.known.shape))
    shuffled = rng.permuted(places, axis=2)
    null = sum(
        (np.take_along_axis(kind[None], shuffled, axis=2).sum(axis=1) ** 2).sum(axis=1)
        for kind in centred
    )
    hits = int(np.sum(np.asarray(null) / own >= observed - 1e-9))
    varying = np.any([np.abs(kind).sum(axis=1) > 0 for kind in centred], axis=0)
    return BatchEffect(
        action=table.action,
        ratio=observed,
        p_value=(hits + 1) / (draws + 1),
        totals=totals,
        cases=int(varying.sum()),
        reason=None,
    )


def batch_effects(
    tables: list[ReplicateTable], *, draws: int = DRAWS, seed: int = 0
) -> tuple[tuple[BatchEffect, ...], tuple[float | None, ...]]:
    """The diagnostic for several outcomes, and its p-values adjusted by Holm.

    >>> batch_effects([])
    ((), ())
    """
    found = tuple(batch_effect(table, draws=draws, seed=seed) for table in tables)
    return found, adjust([each.p_value for each in found]).adjusted


def _centred(table: ReplicateTable) -> list[Floats]:
    """For each kind of answer, its indicator less the case's share of it; 0 where missing."""
    sizes = np.maximum(table.known.sum(axis=1, keepdims=True), 1.0)
    return [
        table.known * (kind - kind.sum(axis=1, keepdims=True) / sizes)
        for kind in table.indicators.values()
    ]


def _totals(table: ReplicateTable) -> tuple[int, ...]:
    if not table.indicators:
        return (0,) * len(table.replicates)
    counted = table.indicators.get("true")
    if counted is None:
        counted = max(table.indicators.values(), key=lambda kind: float(kind.sum()))
    return tuple(int(total) for total in counted.sum(axis=0))


def _without(table: ReplicateTable, totals: tuple[int, ...], reason: str) -> BatchEffect:
    return BatchEffect(
        action=table.action, ratio=None, p_value=None, totals=totals, cases=0, reason=reason
    )
