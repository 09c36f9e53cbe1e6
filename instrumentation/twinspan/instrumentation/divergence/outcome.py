"""Samples that are not ordinary values: refusals, empty answers and errors.

Each is a class of its own, at distance 1 from everything else and 0 from itself. A group that
is refused more often than another is thereby a measured disparity, not a failed measurement.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Sized
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import NonFiniteSample

Floats = NDArray[np.float64]
OutcomeKind = Literal["refusal", "empty", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """A sample that stands for no ordinary value.

    Attributes:
        kind: what happened.
        detail: which error, for errors; otherwise ''.
        refusal: the outcome of a model that declined.
        empty: the outcome of a model that answered nothing.

    >>> Outcome.error("timeout").label, Outcome.refusal.label
    ('error:timeout', 'refusal')
    >>> Outcome.error("timeout") == Outcome.error("rate_limit")
    False
    """

    kind: OutcomeKind
    detail: str = ""

    refusal: ClassVar[Outcome]
    empty: ClassVar[Outcome]

    @classmethod
    def error(cls, kind: str) -> Outcome:
        """The outcome of a call that failed; errors of different kinds are different."""
        return cls(kind="error", detail=kind)

    @property
    def label(self) -> str:
        """The outcome in one word, ``kind`` or ``kind:detail``."""
        return f"{self.kind}:{self.detail}" if self.detail else self.kind


Outcome.refusal = Outcome(kind="refusal")
Outcome.empty = Outcome(kind="empty")


def as_outcome(sample: object) -> Outcome | None:
    """The outcome a sample is, or None for an ordinary value.

    Nothing is guessed from wording: only an `Outcome`, None, blank text and empty containers
    count.

    >>> as_outcome("  ").label, as_outcome(None).label, as_outcome("no")
    ('empty', 'empty', None)
    """
    if isinstance(sample, Outcome):
        return sample
    if sample is None:
        return Outcome.empty
    if isinstance(sample, str):
        return None if sample.strip() else Outcome.empty
    if isinstance(sample, np.ndarray):
        return None if sample.size else Outcome.empty
    if isinstance(sample, Sized):
        return None if len(sample) else Outcome.empty
    return None


def with_outcomes(
    samples: Sequence[object], measure: Callable[[Sequence[object]], Floats]
) -> Floats:
    """Distances of samples some of which are outcomes.

    Args:
        samples: N samples.
        measure: gives the distances of ordinary samples.

    Returns:
        N x N distances: those of ``measure`` among ordinary samples, 0 between equal outcomes,
        1 elsewhere.

    >>> with_outcomes(["a", "", "b", ""], lambda ordinary: np.zeros((2, 2))).tolist()
    [[0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 0.0, 1.0, 0.0]]
    """
    outcomes = [as_outcome(sample) for sample in samples]
    if not any(outcomes):
        return measure(samples)
    ordinary = [index for index, outcome in enumerate(outcomes) if outcome is None]
    distances = np.array([[float(a != b) for b in outcomes] for a in outcomes])
    if ordinary:
        inner = _measured(samples, ordinary, measure)
        distances[np.ix_(ordinary, ordinary)] = inner
    return distances


def _measured(
    samples: Sequence[object],
    ordinary: Sequence[int],
    measure: Callable[[Sequence[object]], Floats],
) -> Floats:
    try:
        return measure([samples[index] for index in ordinary])
    except NonFiniteSample as error:
        raise NonFiniteSample(error.arm, index=ordinary[error.index]) from None
