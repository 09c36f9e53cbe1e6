"""What every estimator is, and why two of them are never mixed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.errors import MixedEstimators

Floats = NDArray[np.float64]


@runtime_checkable
class Estimator(Protocol):
    """A distance on samples, scaled to [0, 1].

    The choice of distance decides which differences can be seen, never whether the test is
    valid: a permutation test is exact under any of them. Distances of strong negative type
    (Székely & Rizzo 2013) see every difference of two laws; all of twinspan's are.
    """

    @property
    def name(self) -> str:
        """What the estimator is called in scores, spans and settings."""
        ...

    @property
    def version(self) -> str:
        """Changes whenever the same samples could get other distances."""
        ...

    @property
    def scale(self) -> str:
        """What a distance of 1 means, in a few words."""
        ...

    def matrix(self, samples: Sequence[object]) -> Floats:
        """The N x N distances of N samples: float64, symmetric, in [0, 1], zero diagonal.

        Raises:
            EstimatorError: samples of a kind the estimator cannot compare.
            NonFiniteSample: a sample with NaN or infinity; its index is among ``samples``.
        """
        ...


class Scored(Protocol):
    """Anything that names the estimator it came from."""

    @property
    def estimator(self) -> str:
        """Name of the estimator."""
        ...

    @property
    def estimator_version(self) -> str:
        """Version of the estimator."""
        ...


def assert_same_estimator(scores: Iterable[Scored]) -> None:
    """Refuse to combine scores that have no common scale.

    Raises:
        MixedEstimators: two scores differ in their estimator's name or version.

    >>> assert_same_estimator([])
    """
    first: tuple[str, str] | None = None
    for score in scores:
        one = (score.estimator, score.estimator_version)
        first = first or one
        if one != first:
            raise MixedEstimators(*_told_apart(first, one))


def _told_apart(first: tuple[str, str], second: tuple[str, str]) -> tuple[str, str]:
    if first[0] != second[0]:
        return first[0], second[0]
    return "/".join(first), "/".join(second)
