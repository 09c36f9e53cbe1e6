"""A panel of skeptics: independent reviews, weighed without names."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final, Self

from twinspan.collector.intervention.case import Case, Procedure
from twinspan.collector.intervention.proposals import Candidate
from twinspan.collector.intervention.revisions import refit
from twinspan.collector.intervention.roles import PROMPTS
from twinspan.collector.intervention.skeptics import ModelSkeptic, Skeptic, reviewed_by
from twinspan.collector.intervention.trust import Tally, TrustGraph, Weighed, Weighting
from twinspan.collector.intervention.verdicts import Review
from twinspan.instrumentation.clients import ChatClient, Sampling
from twinspan.instrumentation.errors import ConfigurationError, MalformedReply
from twinspan.instrumentation.hashing import canonical

FEWEST: Final = 2
"""Skeptics, and provenances among them, below which there is no panel."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """A revised answer that can be measured.

    Attributes:
        by: position of its skeptic in the panel.
        payload: the revised answer, in the form of the one it replaces.
        procedure: the node followed by that skeptic.
        weight: what the skeptic's review weighs: the order of trying, never a reason to drop.
    """

    by: int
    payload: Any = field(repr=False)
    procedure: Procedure = field(repr=False)
    weight: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelReview:
    """What a panel says of a case.

    Attributes:
        tally: reviews, weights and decision; its reviews are in the panel's order.
        revisions: every revision that fits the answer's form and changes it, the heaviest
            first, whatever the decision: the measurement has the last word, not the vote.
    """

    tally: Tally
    revisions: tuple[Revision, ...] = ()

    @property
    def decision(self) -> str:
        """`rejected`, `revised`, `stands` or `undecided`."""
        return self.tally.decision

    def changed(self, answer: Any) -> list[Revision]:
        """The revisions that are not the answer itself, the heaviest first."""
        same = canonical(answer)
        return [each for each in self.revisions if canonical(each.payload) != same]

    def candidates(self, answer: Any) -> list[Candidate]:
        """Those revisions as candidates; their labels number them and name nobody."""
        return [
            Candidate(label=f"revision-{place}", payload=each.payload, procedure=each.procedure)
            for place, each in enumerate(self.changed(answer), start=1)
        ]


class SkepticPanel:
    """At least two skeptics of different provenance, asked at the same time.

    Two prompts on one model share that model's blind spots, so roles alone make no panel: at
    least two must differ in provenance. A skeptic that fails, is silent for longer than
    `timeout`, or says nothing that can be read abstains, and its abstention is recorded.

    Args:
        skeptics: the reviewers.
        weighting: `uniform` or `trust`, see :class:`TrustGraph`.
        reliability: R by provenance, for `trust`.
        timeout: seconds for one review.

    Raises:
        ConfigurationError: fewer than two skeptics, or all of one provenance.

    >>> from twinspan.instrumentation.clients import ScriptedClient
    >>> one, two = (
    ...     ScriptedClient(lambda request, rng: '{"verdict": "stands"}', model=name)
    ...     for name in ("alpha-7b", "beta-8b")
    ... )
    >>> panel = SkepticPanel.of([one, two])
    >>> [(each.role, each.provenance) for each in panel.skeptics]  # doctest: +NORMALIZE_WHITESPACE
    [('empirical_auditor', 'alpha'), ('devils_advocate', 'beta'), ('diversity_champion', 'alpha')]
    >>> asyncio.run(panel.review(Case(node="a", payload="facts", answer="yes"))).decision
    'stands'
    """

    def __init__(
        self,
        skeptics: Sequence[Skeptic],
        *,
        weighting: Weighting = "uniform",
        reliability: Mapping[str, float] | None = None,
        timeout: float = 60.0,
    ) -> None:
        provenances = {each.provenance for each in skeptics}
        if len(skeptics) < FEWEST or len(provenances) < FEWEST:
            told = ", ".join(sorted(map(repr, provenances))) or "nobody"
            raise ConfigurationError(
                f"a panel of {len(skeptics)} skeptic(s) from {told} has one point of view; give "
                "at least two on models of different families, or name their provenance"
            )
        if not timeout > 0:
            raise ConfigurationError(f"timeout is {timeout!r}; give seconds above 0")
        self.skeptics: tuple[Skeptic, ...] = tuple(skeptics)
        self.graph = TrustGraph(weighting=weighting, reliability=reliability)
        self.timeout = timeout

    @classmethod
    def of(
        cls,
        clients: Sequence[ChatClient],
        *,
        prompts: Mapping[str, str] | None = None,
        sampling: Sampling | None = None,
        weighting: Weighting = "uniform",
        reliability: Mapping[str, float] | None = None,
        timeout: float = 60.0,
    ) -> Self:
        """The reference roles, dealt out to chat models in turn.

        Args:
            clients: the models; at least two of different families.
            prompts: prompt by role, in place of the reference roles.
            sampling: how reviews are drawn.
            weighting: as for the panel.
            reliability: as for the panel.
            timeout: as for the panel.

        Raises:
            ConfigurationError: as for the panel; no client at all.
        """
        if not clients:
            raise ConfigurationError("a panel needs chat models; give at least two of them")
        roles = prompts or PROMPTS
        # With more models than roles, the roles are dealt out again.
        seats = max(len(roles), len(clients))
        dealt = zip(range(seats), cycle(roles.items()), cycle(clients), strict=False)
        skeptics = [
            ModelSkeptic(client=client, role=role, prompt=prompt, sampling=sampling or Sampling())
            for _, (role, prompt), client in dealt
        ]
        return cls(skeptics, weighting=weighting, reliability=reliability, timeout=timeout)

    async def review(self, case: Case, skeptics: Sequence[Skeptic] | None = None) -> PanelReview:
        """Ask every skeptic, and weigh what they say.

        Args:
            case: the answer under suspicion.
            skeptics: the panel's skeptics as they are to be asked, in the panel's order, such as
                ones that write spans; the panel's own if None.
        """
        asked = self.skeptics if skeptics is None else skeptics
        reviews = await asyncio.gather(*(self._one(skeptic, case) for skeptic in asked))
        return self.weigh(case, reviews)

    async def _one(self, skeptic: Skeptic, case: Case) -> Review:
        return await heard(skeptic, case, timeout=self.timeout)

    def weigh(self, case: Case, reviews: Sequence[Review]) -> PanelReview:
        """What reviews come to, wherever they were gathered; in the panel's order."""
        tally = self.graph.decide(reviews, [each.provenance for each in self.skeptics])
        found = [
            self._revision(case, place, weighed) for place, weighed in enumerate(tally.weighed)
        ]
        ranked = sorted((each for each in found if each is not None), key=lambda each: -each.weight)
        return PanelReview(tally=tally, revisions=tuple(ranked))

    def _revision(self, case: Case, place: int, weighed: Weighed) -> Revision | None:
        review = weighed.review
        if case.rerun is None or review.stance != "revise" or review.revision is None:
            return None
        try:
            payload = refit(case.answer, review.revision)
        except MalformedReply:
            return None
        return Revision(
            by=place,
            payload=payload,
            procedure=reviewed_by(self.skeptics[place], case),
            weight=weighed.weight,
        )


async def heard(skeptic: Skeptic, case: Case, *, timeout: float) -> Review:
    """A skeptic's review; one that fails or hangs is an abstention with its reason."""
    try:
        async with asyncio.timeout(timeout):
            return await skeptic.review(case)
    except TimeoutError:
        return Review(stance="abstain", why="timeout")
    except Exception as error:
        return Review(stance="abstain", why=f"error:{type(error).__qualname__}")
