"""Propagation: whether a step flips more often where an earlier step has flipped.

Observed, this is an association: a case that is hard upstream is often hard downstream too.
Where the upstream action was forced both ways it is an effect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from twinspan.analysis.inference.sign_flips import sign_flip_test
from twinspan.analysis.pairs import Pair, by_case
from twinspan.analysis.rates import Rate, counterfactual_flip_rate
from twinspan.instrumentation.errors import ConfigurationError

NO_UPSTREAM_FLIP: Final = "no_pair_flipped_upstream"
NO_UPSTREAM_STABLE: Final = "no_pair_was_stable_upstream"
UNBALANCED: Final = "the arms do not have the same cases equally often"
EMPTY_ARM: Final = "an arm has no pair with both actions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Propagation:
    """Downstream flips, split by whether the upstream step flipped.

    Attributes:
        given_flip: downstream flip rate where upstream flipped.
        given_stable: where it did not.
        baseline: downstream flip rate of a comparison without any upstream difference; None if
            none was given.
        pooled: downstream flip rate of both together.
        n_unmatched: downstream pairs without an upstream pair, or whose upstream flip is not
            known.
    """

    given_flip: Rate
    given_stable: Rate
    pooled: Rate
    baseline: Rate | None
    n_unmatched: int

    @property
    def value(self) -> float | None:
        """Rate given a flip less rate given none, -1 to 1; None where either is undefined."""
        if self.given_flip.value is None or self.given_stable.value is None:
            return None
        return self.given_flip.value - self.given_stable.value

    @property
    def versus_baseline(self) -> float | None:
        """Pooled rate less baseline rate; None where either is undefined."""
        if self.baseline is None or self.baseline.value is None or self.pooled.value is None:
            return None
        return self.pooled.value - self.baseline.value

    @property
    def reason(self) -> str | None:
        """Why there is no value; None if there is one."""
        if self.given_flip.value is None:
            return NO_UPSTREAM_FLIP
        return NO_UPSTREAM_STABLE if self.given_stable.value is None else None

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        found: dict[str, object] = {
            "downstream_cfr_given_upstream_flip": self.given_flip.value,
            "downstream_cfr_given_upstream_stable": self.given_stable.value,
            "propagation": self.value,
            "n_upstream_flipped": self.given_flip.total,
            "n_upstream_stable": self.given_stable.total,
            "n_unmatched": self.n_unmatched,
            "reason": self.reason,
        }
        if self.baseline is not None:
            found |= {
                "baseline_cfr": self.baseline.value,
                "vs_baseline": self.versus_baseline,
                "n_baseline": self.baseline.total,
            }
        return found


def disparity_propagation(
    upstream: Iterable[Pair], downstream: Iterable[Pair], baseline: Iterable[Pair] | None = None
) -> Propagation:
    """How much more often a step flips where an earlier one has.

    Pairs are matched by case and replicate. Nothing is guessed: a case with several upstream
    pairs needs numbered replicates.

    Args:
        upstream: pairs of the earlier step.
        downstream: pairs of the later one, in the same runs.
        baseline: downstream pairs of runs whose descriptors do not differ, such as a
            re-render control.

    Raises:
        ConfigurationError: two upstream pairs are of one case and replicate.

    >>> up = [Pair("a", action_ref=1, action_cf=2), Pair("b", action_ref=1, action_cf=1)]
    >>> down = [Pair("a", action_ref=0, action_cf=1), Pair("b", action_ref=0, action_cf=0)]
    >>> disparity_propagation(up, down).value
    1.0
    """
    flipped = _flips_by_run(upstream)
    listed = list(downstream)
    after_flip = [pair for pair in listed if flipped.get(_run(pair)) is True]
    after_stable = [pair for pair in listed if flipped.get(_run(pair)) is False]
    return Propagation(
        given_flip=counterfactual_flip_rate(after_flip),
        given_stable=counterfactual_flip_rate(after_stable),
        pooled=counterfactual_flip_rate([*after_flip, *after_stable]),
        baseline=None if baseline is None else counterfactual_flip_rate(baseline),
        n_unmatched=len(listed) - len(after_flip) - len(after_stable),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class InterventionalPropagation:
    """Downstream flips under a forced upstream flip and under a forced reference action.

    Attributes:
        flipped_arm: downstream flip rate with the upstream action forced to flip.
        held_arm: with it held at the reference action.
        paired_cases: cases in both arms.
        balanced: whether both arms have the same cases equally often.
        p_value: of the effect, two-sided, by flipping the signs of whole cases; None without
            an effect.
    """

    flipped_arm: Rate
    held_arm: Rate
    paired_cases: int
    balanced: bool
    p_value: float | None

    @property
    def value(self) -> float | None:
        """The effect, -1 to 1: rate with the flip forced less rate with it held."""
        if self.reason is not None:
            return None
        assert self.flipped_arm.value is not None and self.held_arm.value is not None
        return self.flipped_arm.value - self.held_arm.value

    @property
    def reason(self) -> str | None:
        """Why there is no effect; None if there is one."""
        if not self.balanced:
            return UNBALANCED
        return EMPTY_ARM if None in (self.flipped_arm.value, self.held_arm.value) else None

    def as_dict(self) -> dict[str, object]:
        """Under FairMedAgent's names, ours added."""
        return {
            "downstream_cfr_upstream_forced_flipped": self.flipped_arm.value,
            "downstream_cfr_upstream_forced_reference": self.held_arm.value,
            "controlled_propagation_effect": self.value,
            "n_flipped_arm": self.flipped_arm.total,
            "n_reference_arm": self.held_arm.total,
            "paired_vignettes": self.paired_cases,
            "balanced": self.balanced,
            "withheld_reason": self.reason,
            "p_value": self.p_value,
        }


def interventional_propagation(
    flipped_arm: Iterable[Pair], held_arm: Iterable[Pair], *, seed: int = 0
) -> InterventionalPropagation:
    """The effect of an upstream flip on a later step, where the flip was forced.

    Args:
        flipped_arm: downstream pairs of runs whose upstream action was forced to flip.
        held_arm: of runs whose upstream action was forced to the reference's.
        seed: used where there are too many cases to enumerate their signs.

    Returns:
        Without an effect if the arms do not have the same cases equally often.

    >>> forced = [Pair(c, action_ref=0, action_cf=1) for c in "abcd"]
    >>> held = [Pair(c, action_ref=0, action_cf=0) for c in "abcd"]
    >>> found = interventional_propagation(forced, held)
    >>> found.value, found.p_value  # both of 16 patterns with one sign throughout
    (1.0, 0.125)
    """
    flipped = [pair for pair in flipped_arm if pair.flipped is not None]
    held = [pair for pair in held_arm if pair.flipped is not None]
    cases = Counter(pair.case_id for pair in flipped), Counter(pair.case_id for pair in held)
    balanced = cases[0] == cases[1]
    return InterventionalPropagation(
        flipped_arm=counterfactual_flip_rate(flipped),
        held_arm=counterfactual_flip_rate(held),
        paired_cases=len(cases[0].keys() & cases[1].keys()),
        balanced=balanced,
        p_value=_paired_p(flipped, held, seed) if balanced else None,
    )


def _run(pair: Pair) -> Hashable:
    return pair.case_id, pair.replicate


def _flips_by_run(pairs: Iterable[Pair]) -> dict[Hashable, bool | None]:
    flipped: dict[Hashable, bool | None] = {}
    for pair in pairs:
        if _run(pair) in flipped:
            raise ConfigurationError(
                f"case {pair.case_id!r} has two upstream pairs of replicate {pair.replicate!r}; "
                "number the replicates of both steps"
            )
        flipped[_run(pair)] = pair.flipped
    return flipped


def _paired_p(flipped: Sequence[Pair], held: Sequence[Pair], seed: int) -> float | None:
    of_held = by_case(held)
    differences = [
        _flips(pairs) - _flips(of_held[case]) for case, pairs in by_case(flipped).items()
    ]
    return sign_flip_test(np.array(differences, dtype=np.float64), seed=seed).p_value


def _flips(pairs: Sequence[Pair]) -> int:
    return sum(pair.flipped is True for pair in pairs)
