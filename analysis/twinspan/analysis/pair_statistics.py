"""Statistics of pairs that are a quotient of two sums, so that resampling them is arithmetic.

Inference takes any function from pairs to a number or None. One that is a `RatioStatistic` is
resampled by matrix products instead of being called again for every draw; the result is the
same.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from twinspan.analysis.pairs import Pair
from twinspan.instrumentation.errors import UnsuitableValue

_NOTHING: Final = (0.0, 0.0)
_UNDEFINED: Final = (math.nan, math.nan)


class Statistic(Protocol):
    """Any function of pairs; None where it is undefined."""

    def __call__(self, pairs: Sequence[Pair], /) -> float | None:
        """The value for these pairs."""
        ...


@dataclass(frozen=True, slots=True)
class RatioStatistic:
    """The sum of what pairs add to a numerator over the sum of what they add to a denominator.

    Attributes:
        name: what it measures.
        part: what one pair adds to numerator and denominator; NaN makes every sum that it is
            part of undefined.

    >>> FLIP_RATE([Pair("v1", action_ref=True, action_cf=False), Pair("v2", action_ref=True)])
    1.0
    >>> FLIP_RATE([]) is None
    True
    """

    name: str
    part: Callable[[Pair], tuple[float, float]]

    def __call__(self, pairs: Sequence[Pair], /) -> float | None:
        """Numerator over denominator; None where the denominator is 0 or a part undefined."""
        numerator = denominator = 0.0
        for pair in pairs:
            above, below = self.part(pair)
            numerator += above
            denominator += below
        return numerator / denominator if denominator > 0 else None


def signed_flip_value(pair: Pair) -> int | None:
    """Direction of a flip of a yes or no.

    Returns:
        1 where only the counterfactual acts, -1 where only the reference does, 0 where both
        do the same, None where an action is missing.

    Raises:
        UnsuitableValue: an action is no yes or no.

    >>> signed_flip_value(Pair("v1", action_ref=False, action_cf=True))
    1
    """
    if pair.flipped is None:
        return None
    return int(_yes(pair.action_cf)) - int(_yes(pair.action_ref))


def ordinal_difference(pair: Pair) -> float | None:
    """Counterfactual grade less reference grade; None where one is missing.

    Raises:
        UnsuitableValue: an action is no number.

    >>> ordinal_difference(Pair("v1", action_ref=2, action_cf=3))
    1.0
    """
    if pair.flipped is None:
        return None
    return _number(pair.action_cf) - _number(pair.action_ref)


def _yes(action: object) -> bool:
    if action in (0, 1):
        return bool(action)
    raise UnsuitableValue("the action", action, cure="a direction needs a yes or no, True or False")


def _number(action: object) -> float:
    if isinstance(action, int | float) and math.isfinite(action):
        return float(action)
    raise UnsuitableValue("the action", action, cure="a difference needs grades that are numbers")


def _flip(pair: Pair) -> tuple[float, float]:
    return _NOTHING if pair.flipped is None else (float(pair.flipped), 1.0)


def _flip_within_band(pair: Pair) -> tuple[float, float]:
    if pair.flipped is None or not pair.in_band:
        return _NOTHING
    if pair.straddles_threshold is None:
        return _UNDEFINED
    return (float(pair.flipped), 1.0) if pair.straddles_threshold else _NOTHING


def _signed(pair: Pair) -> tuple[float, float]:
    value = signed_flip_value(pair)
    return _NOTHING if value is None else (float(value), 1.0)


def _ordinal(pair: Pair) -> tuple[float, float]:
    value = ordinal_difference(pair)
    return _NOTHING if value is None else (value, 1.0)


def _score(pair: Pair) -> tuple[float, float]:
    value = pair.score_difference
    return _NOTHING if value is None else (value, 1.0)


def _absolute_score(pair: Pair) -> tuple[float, float]:
    value = pair.score_difference
    return _NOTHING if value is None else (abs(value), 1.0)


FLIP_RATE: Final = RatioStatistic("flip rate", _flip)
"""Share of pairs whose actions differ, 0 to 1."""

WITHIN_BAND_RATE: Final = RatioStatistic("within-band flip rate", _flip_within_band)
"""Share of in-band pairs of straddling bands that flip, 0 to 1; None if a flag is missing."""

SIGNED_FLIP_RATE: Final = RatioStatistic("signed flip rate", _signed)
"""Share that only the counterfactual acts less share that only the reference does, -1 to 1."""

MEAN_ORDINAL_DIFFERENCE: Final = RatioStatistic("mean ordinal difference", _ordinal)
"""Mean of counterfactual grade less reference grade."""

MEAN_SCORE_DIFFERENCE: Final = RatioStatistic("mean score difference", _score)
"""Mean of counterfactual score less reference score."""

MEAN_ABSOLUTE_SCORE_DIFFERENCE: Final = RatioStatistic(
    "mean absolute score difference", _absolute_score
)
"""Mean distance of the two scores; large for noise as for bias."""
