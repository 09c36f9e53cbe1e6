"""What a measurement says of a procedure, and when that is enough to call it unbiased."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Self

from twinspan.collector.intervention.case import Procedure
from twinspan.collector.records import ProbeRecord
from twinspan.instrumentation.effect_interval import unseen_share


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A procedure's excess disagreement on its worst axis.

    Attributes:
        delta: largest delta over the axes; None where nothing could be measured.
        upper: upper end for it, never below what so few samples leave unseen; None likewise.
        n_reference, n_counterfactual: samples on the axis with the fewest.
    """

    delta: float | None
    upper: float | None
    n_reference: int = 0
    n_counterfactual: int = 0

    @classmethod
    def of(cls, records: Sequence[ProbeRecord]) -> Self:
        """From the probe sets of one procedure; one set without a score leaves it unmeasured."""
        if not records or any(record.delta is None for record in records):
            return cls(delta=None, upper=None)
        uppers = [_upper(record) for record in records]
        return cls(
            delta=max(record.delta for record in records if record.delta is not None),
            upper=None if None in uppers else max(each for each in uppers if each is not None),
            n_reference=min(record.n_reference for record in records),
            n_counterfactual=min(record.n_counterfactual for record in records),
        )

    def equivalent(self, bound: float) -> bool:
        """Whether delta is shown to be below a bound: the whole interval lies there.

        Not significant is not enough: with few samples nothing is. Two one-sided tests in
        their one-sided half (Schuirmann 1987), since delta below 0 is no bias.

        >>> Measured(delta=0.01, upper=0.45, n_reference=5, n_counterfactual=5).equivalent(0.2)
        False
        >>> Measured(delta=0.01, upper=0.14, n_reference=20, n_counterfactual=20).equivalent(0.2)
        True
        """
        return self.upper is not None and self.upper < bound


Score = Callable[[Procedure, str], Awaitable[Measured]]
"""Measures a procedure on fresh samples; the second argument names it in the record."""


def _upper(record: ProbeRecord) -> float | None:
    """The interval's upper end; samples that all agree still leave other answers unseen."""
    if record.ci_high is None:
        return None
    fewest = min(record.n_reference, record.n_counterfactual)
    return max(record.ci_high, unseen_share(fewest))
