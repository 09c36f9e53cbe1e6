"""Sign flips: the exact null of differences that are as likely to go one way as the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

EXACT_UP_TO: Final = 16
"""Units whose 2^n sign patterns are all enumerated; more are sampled."""

NO_UNITS: Final = "no_units"

DRAWS: Final = 10_000
"""Sign patterns that are sampled unless said otherwise."""

TOLERANCE: Final = 1e-12
"""Values closer than this, relative to the largest, are ties; ties count against rejection."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlipTest:
    """A two-sided test of a mean against 0.

    Attributes:
        p_value: in (0, 1]; None without a unit.
        exact: whether all sign patterns were enumerated.
        draws: sign patterns looked at.
    """

    p_value: float | None
    exact: bool
    draws: int

    @property
    def reason(self) -> str | None:
        """Why there is no p-value; None if there is one."""
        return NO_UNITS if self.p_value is None else None


def sign_flip_test(differences: Floats, *, draws: int = DRAWS, seed: int = 0) -> SignFlipTest:
    """Whether a mean of differences is 0, one difference per independent unit (Fisher 1935).

    Args:
        differences: one per case.
        draws: sign patterns to sample where there are too many to enumerate.
        seed: of the sampling.

    >>> sign_flip_test(np.array([1.0, 2.0, 0.5]))  # both of 8 patterns with one sign throughout
    SignFlipTest(p_value=0.25, exact=True, draws=8)
    """
    moving = differences[differences != 0]
    if not len(differences):
        return SignFlipTest(p_value=None, exact=True, draws=0)
    patterns, exact = sign_patterns(len(moving), draws, seed)
    sums = np.abs(patterns @ moving)
    hits = int(np.sum(sums >= abs(moving.sum()) * (1 - TOLERANCE) - TOLERANCE))
    return SignFlipTest(
        p_value=hits / len(patterns) if exact else (hits + 1) / (len(patterns) + 1),
        exact=exact,
        draws=len(patterns),
    )


def sign_patterns(
    units: int, draws: int, seed: int, *, exact_up_to: int = EXACT_UP_TO
) -> tuple[Floats, bool]:
    """All patterns of signs for few units, else a sample; the first of all has no minus.

    >>> sign_patterns(2, 10, 0)[0].tolist()
    [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    """
    if units <= exact_up_to:
        bits = np.arange(1 << units)[:, None] >> np.arange(units) & 1
        return np.where(bits == 1, -1.0, 1.0), True
    rng = np.random.default_rng(seed)
    return rng.choice(np.array([1.0, -1.0]), size=(draws, units)), False
