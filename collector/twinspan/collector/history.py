"""Error history: how often a node was found biased, as a probability."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, Self

from twinspan.instrumentation.errors import ConfigurationError


@dataclass(frozen=True, slots=True, kw_only=True)
class BetaPosterior:
    """What is believed about one probability: a beta distribution.

    Attributes:
        biased: pseudo-count of biased verdicts, positive.
        clear: pseudo-count of clear verdicts, positive.

    Raises:
        ConfigurationError: a count is not positive and finite.

    >>> BetaPosterior(biased=1, clear=9).updated(biased=True).mean  # 2 of 11
    0.181818
    """

    biased: float
    clear: float

    def __post_init__(self) -> None:
        for name, count in (("biased", self.biased), ("clear", self.clear)):
            if not (math.isfinite(count) and count > 0):
                raise ConfigurationError(
                    f"the pseudo-count {name!r} is {count!r}; give a positive number, 1 and 1 "
                    "for a prior that favours nothing"
                )

    @property
    def mean(self) -> float:
        """The expected probability, in (0, 1)."""
        return self.biased / (self.biased + self.clear)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """The central credible interval.

        >>> low, high = BetaPosterior(biased=1, clear=1).interval(0.9)
        >>> low, high
        (0.05, 0.95)
        """
        if not 0 < level < 1:
            raise ConfigurationError(f"level {level!r} must lie between 0 and 1; 0.95 is usual")
        from scipy.special import betaincinv  # a third of what starting a command costs

        tails = ((1 - level) / 2, (1 + level) / 2)
        low, high = (float(betaincinv(self.biased, self.clear, tail)) for tail in tails)
        return low, high

    def updated(self, *, biased: bool) -> BetaPosterior:
        """The belief after one more verdict (conjugate update)."""
        return BetaPosterior(biased=self.biased + biased, clear=self.clear + (not biased))


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One recorded judgement of one node by its own probe.

    Attributes:
        verdict_id: what makes it unique, usually the span id of the probe set.
        node: the node that was probed.
        biased: the node was found to react to a protected attribute.
    """

    verdict_id: str
    node: str
    biased: bool


class BetaHistory:
    """P(biased | history) per node, from the node's own recorded verdicts only.

    Never from what other nodes said: a node that disagrees with its peers has no record for it.
    A verdict counts once, whatever how often it is delivered. Not thread-safe; keep one per
    writer and :meth:`merge`.

    Args:
        prior: belief about a node without verdicts. Explicit, because it decides how many
            verdicts it takes to move a node.

    >>> history = BetaHistory(BetaPosterior(biased=1, clear=9))
    >>> history.record(Verdict(verdict_id="s1", node="triage", biased=True))
    True
    >>> history.record(Verdict(verdict_id="s1", node="triage", biased=True))  # again: ignored
    False
    >>> history.probability("triage"), history.probability("router")
    (0.181818, 0.1)
    """

    __slots__ = ("_posteriors", "_prior", "_verdicts")

    def __init__(self, prior: BetaPosterior) -> None:
        self._prior = prior
        self._verdicts: dict[str, Verdict] = {}
        self._posteriors: dict[str, BetaPosterior] = {}

    @classmethod
    def of(cls, verdicts: Iterable[Verdict], *, prior: BetaPosterior) -> Self:
        """The history of recorded verdicts, in any order."""
        history = cls(prior)
        for verdict in verdicts:
            history.record(verdict)
        return history

    @property
    def prior(self) -> BetaPosterior:
        """The belief about a node without verdicts."""
        return self._prior

    @property
    def posteriors(self) -> Mapping[str, BetaPosterior]:
        """The belief about every node that has a verdict."""
        return MappingProxyType(self._posteriors)

    def record(self, verdict: Verdict) -> bool:
        """Takes in one verdict; False when its id is known already."""
        if verdict.verdict_id in self._verdicts:
            return False
        self._verdicts[verdict.verdict_id] = verdict
        self._posteriors[verdict.node] = self.posterior(verdict.node).updated(biased=verdict.biased)
        return True

    def posterior(self, node: str) -> BetaPosterior:
        """The belief about one node; the prior when it was never judged."""
        return self._posteriors.get(node, self._prior)

    def probability(self, node: str) -> float:
        """The posterior mean of one node, in (0, 1)."""
        return self.posterior(node).mean

    def merge(self, other: BetaHistory) -> BetaHistory:
        """The history of both; a verdict that both hold counts once.

        Raises:
            ConfigurationError: the two start from different priors.
        """
        if other._prior != self._prior:
            raise ConfigurationError("two histories with different priors; use one prior for both")
        both = self._verdicts | other._verdicts
        return BetaHistory.of(both.values(), prior=self._prior)


class History(Protocol):
    """What is believed about every node, judged before or not."""

    def posterior(self, node: str) -> BetaPosterior:
        """The belief about one node; the prior when it was never judged."""
        ...

    def probability(self, node: str) -> float:
        """The posterior mean of one node, in (0, 1)."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CompositeRisk:
    """Where a biased output would reach far and has happened before.

    Attributes:
        share: the node's share of the graph's blast radius.
        probability: posterior mean of P(biased | history).
        risk: their product. It orders nodes for scrutiny and decides nothing.
    """

    share: float
    probability: float
    risk: float


def composite_risks(shares: Mapping[str, float], history: History) -> dict[str, CompositeRisk]:
    """Blast share times error history of every node, both factors kept beside the product.

    Args:
        shares: share of the blast radius per node of the graph.
        history: verdicts, also of nodes that this graph does not have.

    >>> history = BetaHistory(BetaPosterior(biased=1, clear=3))
    >>> composite_risks({"hub": 0.8, "leaf": 0.2}, history)["hub"].risk
    0.2
    """
    return {node: _risk(share, history.probability(node)) for node, share in shares.items()}


def _risk(share: float, probability: float) -> CompositeRisk:
    return CompositeRisk(share=share, probability=probability, risk=share * probability)
