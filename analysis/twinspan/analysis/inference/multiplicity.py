"""More than one test in an audit, some of which could not be made."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np

from twinspan.collector.discovery import e_benjamini_hochberg
from twinspan.instrumentation.audit.analysis_options import Procedure
from twinspan.instrumentation.errors import ConfigurationError
from twinspan.instrumentation.multiplicity import (
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
)

Key = TypeVar("Key", bound=Hashable)

_PROCEDURES: Final[Mapping[str, Callable[[Sequence[float]], tuple[float, ...]]]] = {
    "holm": holm,
    "bh": benjamini_hochberg,
    "by": benjamini_yekutieli,
}

_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """Tests of one family, adjusted together.

    Attributes:
        procedure: ``holm``, ``bh`` or ``by``.
        alpha: the rate that is kept.
        p_values: as given; None for a test that could not be made.
        adjusted: in the same order; None stays None.
        n_tests: tests that were made: the size of the family.
        c_m: the factor of ``by``, 1 + 1/2 + ... + 1/n_tests; None for the others.
    """

    procedure: Procedure
    alpha: float
    p_values: tuple[float | None, ...]
    adjusted: tuple[float | None, ...]
    n_tests: int
    c_m: float | None

    @property
    def rejected(self) -> tuple[bool | None, ...]:
        """Which are rejected; None for a test that could not be made."""
        return tuple(
            None if value is None else value <= self.alpha + _ROUNDING for value in self.adjusted
        )

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        found: dict[str, object] = {
            "qvalues": list(self.adjusted),
            "rejected": list(self.rejected),
            "n_tests": self.n_tests,
        }
        return found if self.c_m is None else {**found, "c_m": self.c_m}


def adjust(
    p_values: Sequence[float | None], *, procedure: Procedure = "holm", alpha: float = 0.05
) -> Adjusted:
    """Adjust the p-values of a family, leaving out tests that could not be made.

    ``holm`` keeps the chance of any false rejection, ``bh`` and ``by`` the share of false ones
    among the rejected. Conditions that share a reference arm depend on each other; ``by`` holds
    whatever the dependence.

    Args:
        p_values: in any order, None for a test that could not be made.
        procedure: which.
        alpha: the rate to keep, between 0 and 1.

    Raises:
        ConfigurationError: an unknown procedure, or a number that is no probability.

    >>> adjust([0.01, None, 0.04, 0.03]).adjusted
    (0.03, None, 0.06, 0.06)
    """
    if procedure not in _PROCEDURES or not 0.0 < alpha < 1.0:
        raise ConfigurationError(
            f"procedure {procedure!r} at alpha {alpha!r} is not known; take one of "
            f"{', '.join(_PROCEDURES)} and an alpha such as 0.05"
        )
    made = [value for value in p_values if value is not None]
    values = iter(_PROCEDURES[procedure](made))
    return Adjusted(
        procedure=procedure,
        alpha=alpha,
        p_values=tuple(p_values),
        adjusted=tuple(None if value is None else next(values) for value in p_values),
        n_tests=len(made),
        c_m=float(np.sum(1 / np.arange(1, len(made) + 1))) if procedure == "by" else None,
    )


def e_discoveries(e_values: Mapping[Key, float | None], *, alpha: float = 0.05) -> tuple[Key, ...]:
    """What e-BH rejects: a false discovery rate of alpha whatever the dependence.

    A test that could not be made has no e-value; it rejects nothing and still counts as one.

    Args:
        e_values: not negative, by hypothesis; None for a test that could not be made.
        alpha: the false discovery rate.

    Raises:
        ConfigurationError: alpha is out of range, or an e-value is negative.
        InvalidMeasurement: an e-value is NaN.

    >>> e_discoveries({"admit": 200.0, "icu": 25.0, "referral": None})  # 60, 30
    ('admit',)
    """
    if negative := [key for key, value in e_values.items() if value is not None and value < 0]:
        raise ConfigurationError(
            f"the e-value of {negative[0]!r} is negative; an e-value is 0 or more"
        )
    logs = {
        key: math.log(value) if value else -math.inf
        for key, value in e_values.items()
        if value is not None
    }
    return e_benjamini_hochberg(logs, alpha=alpha, hypotheses=len(e_values))


def e_from_p(p_value: float | None) -> float | None:
    """An e-value from a p-value, for families in which not every test has one of its own.

    (1 - p + p ln p) / (p ln^2 p), the mean of the calibrators k p^(k - 1) over k in (0, 1)
    (Vovk & Wang 2021). Much is lost: p = 0.05 is worth an e of 1.8 only.

    Args:
        p_value: in [0, 1]; None stays None.

    Raises:
        ConfigurationError: the p-value is NaN or outside 0 to 1.

    >>> e_from_p(0.05), e_from_p(0.0001), e_from_p(1.0), e_from_p(None)
    (1.7833, 117.76, 0.5, None)
    """
    if p_value is None:
        return None
    if not 0.0 <= p_value <= 1.0:
        raise ConfigurationError(f"{p_value!r} is no p-value; it lies between 0 and 1")
    if p_value == 0.0:
        return math.inf
    log = math.log(p_value)
    # Near 1 numerator and denominator vanish together; their quotient tends to 1/2.
    return (1 - p_value + p_value * log) / (p_value * log * log) if p_value < 1 - 1e-6 else 0.5
