"""How much each review weighs, and what a panel's reviews come to.

The trust equation of Maister, Green and Galford (2000) is a heuristic from consulting, not a
measurement: its components are set here from what can be checked. A panel's decision is advice;
which revision is handed on is decided by measuring every one of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, Self

from twinspan.collector.intervention.verdicts import Review, Stance
from twinspan.instrumentation.errors import ConfigurationError

Weighting = Literal["uniform", "trust"]
PanelDecision = Literal["rejected", "revised", "stands", "undecided"]

LEAST_SELF: Final = 0.001
"""S is never taken for smaller: a heuristic that keeps T finite, not a property of anyone."""

UNSTATED_CONFIDENCE: Final = 0.5
"""Stands in for a confidence that a reviewer did not state."""

_DECISIONS: Final[Mapping[Stance, PanelDecision]] = MappingProxyType(
    {"reject": "rejected", "revise": "revised", "stands": "stands"}
)
"""What a stance comes to when it wins; in a tie the more cautious one, which is first, does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """The components of T = (C + R + I) / S.

    Attributes:
        credibility: C, 1 with evidence that was checked, 0.3 without.
        reliability: R, what the user says of the reviewer; 1 by default.
        intimacy: I, always 1: reviewers are anonymous to each other.
        self_orientation: S, 0.25 with checked evidence; without, the surer the larger, up to 1.

    Raises:
        ConfigurationError: a component is negative.

    >>> Trust(credibility=1, reliability=2, intimacy=3, self_orientation=2).value
    3.0
    >>> round(Trust(credibility=1, reliability=1, intimacy=1, self_orientation=0).value)
    3000
    """

    credibility: float
    reliability: float = 1.0
    intimacy: float = 1.0
    self_orientation: float = 0.25

    def __post_init__(self) -> None:
        parts = (self.credibility, self.reliability, self.intimacy, self.self_orientation)
        if not all(part >= 0 for part in parts):
            raise ConfigurationError(f"trust components {parts!r} must not be negative")

    @property
    def value(self) -> float:
        """T, with S no smaller than :data:`LEAST_SELF`."""
        summed = self.credibility + self.reliability + self.intimacy
        return summed / max(self.self_orientation, LEAST_SELF)

    @classmethod
    def of(cls, review: Review, reliability: float = 1.0) -> Self:
        """The trust in one review.

        >>> sure = Review(stance="stands", confidence=1.0)
        >>> Trust.of(sure).value
        2.3
        >>> shown = Review(stance="revise", confidence=1.0, checked=("five years in the trade",))
        >>> Trust.of(shown).value
        12.0
        """
        if review.has_evidence:
            return cls(credibility=1.0, reliability=reliability)
        own = 0.25 + 0.75 * _confidence(review)
        return cls(credibility=0.3, reliability=reliability, self_orientation=own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Weighed:
    """A review with what it weighs; an abstention weighs nothing."""

    review: Review
    trust: Trust
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """What reviews come to.

    Attributes:
        decision: `rejected`, `revised`, `stands`, or `undecided` where everybody abstained.
        confidence: share of the weight that the decision has, 0 where there is none.
        weighed: the reviews, in the order in which they were given.
    """

    decision: PanelDecision
    confidence: float
    weighed: tuple[Weighed, ...]

    @property
    def abstained(self) -> int:
        """Reviews without a verdict."""
        return sum(each.review.stance == "abstain" for each in self.weighed)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustGraph:
    """Weighs anonymous reviews.

    Nobody is dropped for standing alone, however sure: a review without checked evidence
    weighs less in `trust` weighting, at most 2.3 to the 12 of one with it, and in
    proportion to its confidence, so that many who doubt themselves do not outvote one who
    shows what it saw.

    Args:
        weighting: `uniform` (each verdict counts once) or `trust`.
        reliability: R by provenance, where something is known; 1 otherwise.

    Raises:
        ConfigurationError: an unknown weighting.

    >>> two = [Review(stance="stands"), Review(stance="revise")]
    >>> TrustGraph().decide(two).decision  # in a tie the more cautious one wins
    'revised'
    """

    weighting: Weighting = "uniform"
    reliability: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        if self.weighting not in ("uniform", "trust"):
            raise ConfigurationError(
                f"weighting {self.weighting!r} is unknown; use 'uniform' or 'trust'"
            )

    def decide(self, reviews: Sequence[Review], provenances: Sequence[str] = ()) -> Tally:
        """What reviews come to.

        Args:
            reviews: the reviews, without names.
            provenances: where each comes from, to look up its reliability; may be left out.
        """
        known = self.reliability or {}
        origins = list(provenances) or [""] * len(reviews)
        weighed = tuple(
            self._weigh(review, known.get(origin, 1.0))
            for review, origin in zip(reviews, origins, strict=True)
        )
        return tally(weighed)

    def _weigh(self, review: Review, reliability: float) -> Weighed:
        trust = Trust.of(review, reliability)
        return Weighed(
            review=review, trust=trust, weight=vote_weight(review, trust, self.weighting)
        )


def vote_weight(review: Review, trust: Trust, weighting: str) -> float:
    """What a review weighs in the vote."""
    if review.stance == "abstain":
        return 0.0
    if weighting == "uniform":
        return 1.0
    return trust.value if review.has_evidence else trust.value * _confidence(review)


def tally(weighed: Sequence[Weighed]) -> Tally:
    """The stance with the most weight; the more cautious one in a tie."""
    cast = [each for each in weighed if each.review.stance != "abstain"]
    total = sum(each.weight for each in cast)
    shares: dict[Stance, float] = {
        stance: sum(each.weight for each in cast if each.review.stance == stance)
        for stance in _DECISIONS
        if any(each.review.stance == stance for each in cast)
    }
    if not shares:
        return Tally(decision="undecided", confidence=0.0, weighed=tuple(weighed))
    # Of equal ones the first, which is the more cautious.
    best = max(shares, key=lambda stance: shares[stance])
    confidence = shares[best] / total if total else 0.0
    return Tally(decision=_DECISIONS[best], confidence=confidence, weighed=tuple(weighed))


def _confidence(review: Review) -> float:
    return UNSTATED_CONFIDENCE if review.confidence is None else review.confidence
