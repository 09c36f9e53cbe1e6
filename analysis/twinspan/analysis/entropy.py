"""Entropy of actions: whether an agent decides at all, and whether the case has a say in it."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from twinspan.instrumentation.hashing import canonical

NO_ACTIONS: Final = "no_actions"
ONE_REPLICATE: Final = "no_case_has_two_replicates"
ONE_CASE: Final = "one_case"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionEntropy:
    """Entropy of an agent's actions in bits, and the part of it that the cases explain.

    Attributes:
        total: of all actions together; 0 for an agent that always does the same.
        within: mean over cases of the entropy among replicates of a case: decoding noise. Cases
            with one action say nothing about it; None if no case has two.
        n_actions: actions.
        n_cases: cases.
        n_missing: missing actions.
        correction: what the estimate of `total - within` is too high by, in the mean.

    An agent that tosses a coin has a high total entropy and decides nothing: what counts is
    `between`.
    """

    total: float | None
    within: float | None
    n_actions: int
    n_cases: int
    n_missing: int
    correction: float

    @property
    def between(self) -> float | None:
        """What the case tells about the action: total less within, corrected, at least 0.

        None where there are no replicates: then noise cannot be told from decisions. None for a
        single case, too, which leaves nothing to tell apart.
        """
        if self.total is None or self.within is None or self.n_cases < 2:
            return None
        return max(0.0, self.total - self.within - self.correction)

    @property
    def reason(self) -> str | None:
        """Why there is no total, or no part between cases; None if there are both."""
        if self.total is None:
            return NO_ACTIONS
        if self.within is None:
            return ONE_REPLICATE
        return ONE_CASE if self.n_cases < 2 else None


def action_entropy(actions: Mapping[str, Sequence[object]]) -> ActionEntropy:
    """The entropy of actions by case.

    Args:
        actions: by case, one per replicate, None for a missing one.

    The part between cases is a mutual information; estimated from few replicates it is too high
    by about (cases - 1)(kinds - 1) / (2 n ln 2) bits (Miller 1955), which is taken off.

    >>> found = action_entropy({"a": [True] * 50, "b": [False] * 50})
    >>> found.total, found.within, found.between  # 1 bit less 1 / (200 ln 2)
    (1.0, 0.0, 0.992787)
    >>> action_entropy({"a": [True], "b": [True]}).total
    0.0
    >>> action_entropy({}).reason
    'no_actions'
    """
    told = {
        case: [canonical(a) for a in listed if a is not None] for case, listed in actions.items()
    }
    filled = [listed for listed in told.values() if listed]
    everything = [action for listed in filled for action in listed]
    count, kinds = len(everything), len(set(everything))
    return ActionEntropy(
        total=entropy_bits(Counter(everything).values()) if count else None,
        within=_within([listed for listed in filled if len(listed) > 1]),
        n_actions=count,
        n_cases=len(filled),
        n_missing=sum(map(len, actions.values())) - count,
        correction=(len(filled) - 1) * (kinds - 1) / (2 * count * math.log(2)) if count else 0.0,
    )


def _within(replicated: Sequence[Sequence[str]]) -> float | None:
    count = sum(map(len, replicated))
    if not count:
        return None
    return sum(len(each) * entropy_bits(Counter(each).values()) for each in replicated) / count


def entropy_bits(counts: Iterable[int]) -> float:
    """Shannon entropy of counts in bits; 0 for one kind or none.

    >>> entropy_bits([5, 5]), entropy_bits([4])
    (1.0, 0.0)
    """
    listed = [count for count in counts if count]
    total = sum(listed)
    return sum(count / total * math.log2(total / count) for count in listed)
