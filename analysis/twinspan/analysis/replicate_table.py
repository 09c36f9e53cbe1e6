"""An outcome as a table of cases by replicates: what intervals of floors are made of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from twinspan.analysis.disagreement import PairCount
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.hashing import canonical

Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True, eq=False)
class ReplicateTable:
    """The answers to one outcome, cases down and replicates across.

    Attributes:
        action: the outcome's name.
        cases: the rows.
        replicates: the columns; the same column is the same replicate in every case.
        answers: one row per case, None for a missing answer.

    Raises:
        ConfigurationError: the answers do not fill the table.

    >>> table = ReplicateTable.of([("a", 1, True), ("a", 2, False), ("b", 2, True)], action="admit")
    >>> table.answers
    ((True, False), (None, True))
    >>> table.counts["a"]
    PairCount(flips=1, cells=1)
    """

    cases: tuple[str, ...]
    replicates: tuple[object, ...]
    answers: tuple[tuple[object, ...], ...] = field(repr=False)
    action: str = ""

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.answers} - {len(self.replicates)}
        if widths or len(self.answers) != len(self.cases):
            raise ConfigurationError(
                f"{len(self.answers)} rows of answers do not fill {len(self.cases)} cases by "
                f"{len(self.replicates)} replicates; put None where an answer is missing"
            )

    @classmethod
    def of(cls, rows: Iterable[tuple[str, object, object]], *, action: str = "") -> ReplicateTable:
        """A table from rows of case, replicate and answer, in any order.

        Raises:
            ConfigurationError: a case has a replicate twice.
        """
        found: dict[tuple[str, object], object] = {}
        for case, replicate, answer in rows:
            if (case, replicate) in found:
                raise ConfigurationError(
                    f"case {case!r} has replicate {replicate!r} twice; pass one model and one "
                    "condition at a time"
                )
            found[case, replicate] = answer
        cases = tuple(dict.fromkeys(case for case, _ in found))
        replicates = tuple(sorted(dict.fromkeys(each for _, each in found), key=_order))
        return cls(
            action=action,
            cases=cases,
            replicates=replicates,
            answers=tuple(
                tuple(found.get((case, replicate)) for replicate in replicates) for case in cases
            ),
        )

    @cached_property
    def indicators(self) -> dict[str, Floats]:
        """By kind of answer, as JSON, a table of cases by replicates, 1 where it was given."""
        keys = [
            [None if value is None else canonical(value) for value in row] for row in self.answers
        ]
        kinds = sorted({key for row in keys for key in row if key is not None})
        return {
            kind: np.array([[float(key == kind) for key in row] for row in keys]) for kind in kinds
        }

    @cached_property
    def known(self) -> Floats:
        """A table of cases by replicates that is 1 where there is an answer."""
        return np.array(
            [[float(value is not None) for value in row] for row in self.answers]
        ).reshape(len(self.cases), len(self.replicates))

    def pairs(self, weights: Floats) -> tuple[Floats, Floats]:
        """Flips and comparisons per case, replicates counted with weights.

        A replicate that was drawn twice is not compared with itself.

        Args:
            weights: one row per resample, one column per replicate.

        Returns:
            Two arrays of resamples by cases.
        """
        totals = weights @ self.known.T
        flips = totals**2
        for indicator in self.indicators.values():
            flips -= (weights @ indicator.T) ** 2
        cells: Floats = (totals**2 - weights**2 @ self.known.T) / 2
        return flips / 2, cells

    @property
    def counts(self) -> dict[str, PairCount]:
        """Pairs of replicates by case."""
        flips, cells = self.pairs(np.ones((1, len(self.replicates))))
        return {
            case: PairCount(flips=round(f), cells=round(c))
            for case, f, c in zip(self.cases, flips[0].tolist(), cells[0].tolist(), strict=True)
        }

    def without(
        self, *, cases: Sequence[str] = (), replicates: Sequence[object] = ()
    ) -> ReplicateTable:
        """The table without some cases or replicates."""
        columns = [place for place, each in enumerate(self.replicates) if each not in replicates]
        rows = [place for place, each in enumerate(self.cases) if each not in cases]
        return ReplicateTable(
            action=self.action,
            cases=tuple(self.cases[row] for row in rows),
            replicates=tuple(self.replicates[column] for column in columns),
            answers=tuple(tuple(self.answers[row][column] for column in columns) for row in rows),
        )


def _order(replicate: object) -> tuple[bool, float, str]:
    """Numbers before texts, each in their own order."""
    number = isinstance(replicate, int | float)
    return (
        not number,
        float(replicate) if isinstance(replicate, int | float) else 0.0,
        str(replicate),
    )
