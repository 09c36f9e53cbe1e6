"""Naming the guilty: which hypotheses a set of e-values rejects."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import TypeVar

from twinspan.instrumentation.errors import ConfigurationError, InvalidMeasurement

Key = TypeVar("Key", bound=Hashable)


def e_benjamini_hochberg(
    log_e_values: Mapping[Key, float], *, alpha: float, hypotheses: int | None = None
) -> tuple[Key, ...]:
    """The keys whose e-values are rejected with a false discovery rate of at most ``alpha``.

    With the e-values in falling order, the k largest are rejected for the largest k with
    ``k * e_(k) / hypotheses >= 1 / alpha`` (e-BH, Wang & Ramdas 2022, arXiv 2009.02824). No
    assumption about the dependence of the e-values is made. They must be the values at one
    stopping time; the largest values that processes ever had do not keep the rate.

    Args:
        log_e_values: natural logarithm of one e-value per hypothesis; ``-inf`` for 0.
        alpha: the false discovery rate, in (0, 1).
        hypotheses: how many there were, if more than have an e-value. An e-value of 1 rejects
            nothing, so those without one still count in the denominator.

    Returns:
        The rejected keys, the largest e-value first.

    Raises:
        ConfigurationError: alpha is out of range, or there are fewer hypotheses than e-values.
        InvalidMeasurement: a logarithm is NaN.

    >>> from math import log
    >>> found = {"triage": log(200.0), "admit": log(45.0), "discharge": log(2.0)}
    >>> e_benjamini_hochberg(found, alpha=0.05)  # 60 is needed of the first, 30 of the second
    ('triage', 'admit')
    >>> e_benjamini_hochberg(found, alpha=0.05, hypotheses=10)  # 200, then 100
    ('triage',)
    """
    count = len(log_e_values) if hypotheses is None else hypotheses
    _check(log_e_values, alpha, count)
    ordered = sorted(log_e_values.items(), key=lambda item: item[1], reverse=True)
    rejected = 0
    for rank, (_, log_e) in enumerate(ordered, start=1):
        if log_e + math.log(rank) >= math.log(count / alpha) - 1e-12:
            rejected = rank
    return tuple(key for key, _ in ordered[:rejected])


def _check(log_e_values: Mapping[Key, float], alpha: float, count: int) -> None:
    if not 0.0 < alpha < 1.0:
        raise ConfigurationError(f"alpha {alpha!r} must lie between 0 and 1; 0.05 is usual")
    if count < len(log_e_values):
        raise ConfigurationError(
            f"{count} hypotheses are fewer than the {len(log_e_values)} e-values; count them all"
        )
    for key, log_e in log_e_values.items():
        if math.isnan(log_e):
            must = "be the logarithm of a number that is not negative"
            raise InvalidMeasurement("log e-value", of=str(key), value=log_e, must=must)
