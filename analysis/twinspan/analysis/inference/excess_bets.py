"""An e-value for excess over the floor: what a bet on each case has paid.

Within a case the labels of reference and counterfactual are exchanged. The bet of one probe set
(`twinspan.instrumentation.orbit`) has mean 1 if the descriptor does nothing, and cases are
independent, so that the product over cases has mean 1 too: evidence that e-BH takes whatever
the dependence between comparisons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from twinspan.analysis.inference.answers import Answers, distances, shared_cases
from twinspan.instrumentation.orbit import orbit_test
from twinspan.instrumentation.splits import DEFAULT_SEED

_MOST: Final = 700.0
"""Logarithm up to which an e-value is written as a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExcessBets:
    """The product of the bets of all cases.

    Attributes:
        e_value: 0 or more; its mean is 1 if the descriptor does nothing.
        largest: what it would be if all answers of one arm differed from all of the other.
        n_cases: cases with two answers in each arm; others pay 1, whatever they are.
    """

    e_value: float
    largest: float
    n_cases: int


def excess_bets(reference: Answers, counterfactual: Answers) -> ExcessBets | None:
    """The evidence that a counterfactual arm differs from the reference within cases.

    Args:
        reference: answers by case, one per replicate, None for a missing one.
        counterfactual: the same under the other descriptor.

    Returns:
        None where no case has two answers in each arm, so that nothing could be bet on.

    >>> reference = {f"v{n}": [True] * 4 for n in range(3)}
    >>> found = excess_bets(reference, {f"v{n}": [False] * 4 for n in range(3)})
    >>> found.e_value == found.largest, found.n_cases
    (True, 3)
    >>> excess_bets(reference, reference).e_value
    1.0
    """
    logs: list[float] = []
    most: list[float] = []
    for number, case in enumerate(shared_cases([reference, counterfactual]).cases.values()):
        first, second = case.sizes
        if min(first, second) < 2:
            continue
        # A seed of its own for each case: labellings that are sampled must not be shared.
        bet = orbit_test(distances(case, "flip"), first, seed=DEFAULT_SEED + number)
        logs.append(math.log(bet.e) if bet.e > 0 else -math.inf)
        most.append(_largest(first, second))
    if not logs:
        return None
    return ExcessBets(
        e_value=math.exp(min(sum(logs), _MOST)),
        largest=math.exp(min(sum(most), _MOST)),
        n_cases=len(logs),
    )


@lru_cache(maxsize=256)
def _largest(first: int, second: int) -> float:
    """The logarithm of the most that a case of this shape can pay."""
    label = np.repeat([0, 1], [first, second])
    apart = (label[:, None] != label[None, :]).astype(np.float64)
    return math.log(orbit_test(apart, first).e)
