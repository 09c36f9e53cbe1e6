"""Routing, trust, panels: the prior implementation's vectors where shared, and its faults."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from twinspan.collector import SkepticPanel, route_intervention
from twinspan.collector.decision import BreakerDecision, BreakerState, Decision, Reason
from twinspan.collector.intervention.case import Case
from twinspan.collector.intervention.routing import Spread
from twinspan.collector.intervention.skeptics import ModelSkeptic
from twinspan.collector.intervention.trust import Trust, TrustGraph
from twinspan.collector.intervention.verdicts import Review, Stance
from twinspan.instrumentation import builtin_axis
from twinspan.instrumentation.clients import ChatRequest, Completion, ScriptedClient
from twinspan.instrumentation.errors import ConfigurationError, NotServed

ANSWER = {"advice": "decline"}


def halt(decision: Decision = Decision.HALT) -> BreakerDecision:
    return BreakerDecision(
        superstep="1",
        state_from=BreakerState.NORMAL,
        state_to=BreakerState.INTERVENTION,
        decision=decision,
        reason=Reason.MONITOR_AT_LIMIT,
    )


# --- routing ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("biased", "total", "threshold", "strategy"),
    [
        (3, 4, 0.5, "skeptics"),
        (1, 5, 0.5, "madera"),
        (1, 4, 0.2, "skeptics"),
        (2, 4, 0.5, "skeptics"),
        (0, 4, 0.5, "none"),
        (0, 0, 0.5, "none"),
    ],
)
def test_a_shared_leaning_is_debated_and_a_single_one_repaired(
    biased: int, total: int, threshold: float, strategy: str
) -> None:
    """Vector 57, and the breadth exactly at the threshold."""
    route = route_intervention(halt(), Spread(biased=biased, total=total), threshold=threshold)
    assert route.strategy == strategy


def test_what_was_not_halted_is_not_routed() -> None:
    """Whatever leans."""
    route = route_intervention(halt(Decision.PROCEED), Spread(biased=4, total=4))
    assert (route.strategy, route.reason) == ("none", "not_halted")


@pytest.mark.parametrize(("biased", "total"), [(5, 3), (-1, 3)])
def test_more_biased_nodes_than_nodes_is_an_error(biased: int, total: int) -> None:
    """Vector 57."""
    with pytest.raises(ConfigurationError):
        Spread(biased=biased, total=total)


# --- trust ------------------------------------------------------------------------------------


def test_trust_is_the_sum_over_self_orientation_clamped() -> None:
    """Vector 55."""
    parts = {"credibility": 1.0, "reliability": 2.0, "intimacy": 3.0}
    assert Trust(**parts, self_orientation=2).value == 3
    clamped = Trust(credibility=1, reliability=1, intimacy=1, self_orientation=0)
    assert clamped.value == pytest.approx(3000)
    with pytest.raises(ConfigurationError):
        Trust(**parts, self_orientation=-1)


@pytest.mark.parametrize(
    ("confidence", "value"),
    [(0, 9.2), (0.25, 5.257), (0.5, 3.68), (0.7, 2.968), (0.89, 2.507), (1, 2.3)],
)
def test_trust_without_evidence_falls_with_confidence(confidence: float, value: float) -> None:
    """Vector 56."""
    bare = Review(stance="stands", confidence=confidence)
    shown = Review(stance="stands", confidence=confidence, checked=("a quote",))
    assert Trust.of(bare).value == pytest.approx(value, abs=5e-4)
    assert Trust.of(shown).value == 12


def reviews(*stances: Stance) -> list[Review]:
    return [Review(stance=stance, confidence=0.7) for stance in stances]


@pytest.mark.parametrize(
    ("stances", "decision"),
    [
        (("stands", "stands", "revise"), "stands"),
        (("stands", "reject"), "rejected"),
        (("stands", "revise"), "revised"),
        (("abstain", "abstain", "revise"), "revised"),
        (("abstain", "abstain"), "undecided"),
    ],
)
def test_uniform_weighting_counts_verdicts(stances: tuple[Stance, ...], decision: str) -> None:
    """Vector 58; but silence is no agreement: a panel without a verdict is undecided."""
    assert TrustGraph().decide(reviews(*stances)).decision == decision


def test_an_undecided_panel_has_no_confidence() -> None:
    """Vector 58."""
    assert TrustGraph().decide(reviews("abstain")).confidence == 0


@pytest.mark.parametrize("doubters", [(0.0, 2), (0.89, 5), (0.99, 3)])
def test_e18_claims_without_evidence_do_not_outvote_evidence(doubters: tuple[float, int]) -> None:
    """Neither many who doubt themselves, nor some who are sure."""
    confidence, count = doubters
    many = [Review(stance="stands", confidence=confidence)] * count
    one = Review(stance="revise", confidence=0.9, checked=("a quote",))
    assert TrustGraph(weighting="trust").decide([*many, one]).decision == "revised"


stances = st.sampled_from(["stands", "revise", "reject", "abstain"])
drawn = st.builds(
    lambda stance, confidence, quotes: Review(stance=stance, confidence=confidence, checked=quotes),
    stances,
    st.none() | st.floats(0, 1),
    st.sampled_from([(), ("a quote",)]),
)


@given(st.lists(drawn, max_size=7), st.sampled_from(["uniform", "trust"]), st.randoms())
def test_a_panels_decision_does_not_depend_on_who_spoke_first(
    given_reviews: list[Review], weighting: str, random: object
) -> None:
    """Nor does anybody fall out: every review is weighed, and only abstentions weigh nothing."""
    graph = TrustGraph(weighting=weighting)  # type: ignore[arg-type]
    tally = graph.decide(given_reviews)
    shuffled = list(given_reviews)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert graph.decide(shuffled).decision == tally.decision
    assert len(tally.weighed) == len(given_reviews)
    assert 0 <= tally.confidence <= 1 + 1e-9
    if weighting == "uniform":
        assert all((w.weight > 0) == (w.review.stance != "abstain") for w in tally.weighed)


# --- panels -----------------------------------------------------------------------------------


def client(reply: str, model: str, **options: object) -> ScriptedClient:
    return ScriptedClient(lambda request, rng: reply, model=model, **options)  # type: ignore[arg-type]


async def rerun(payload: object) -> object:
    return ANSWER


def case(payload: object = "She has traded for nine years.") -> Case:
    return Case(
        node="analyst", payload=payload, answer=ANSWER, axes=(builtin_axis("gender"),), rerun=rerun
    )


async def gathered(*work: Awaitable[object]) -> list[object]:
    return list(await asyncio.gather(*work))


@pytest.mark.parametrize("models", [("alpha",), ("alpha", "alpha"), ("alpha-7b", "org/Alpha-8b")])
def test_a_panel_of_one_provenance_is_an_error(models: tuple[str, ...]) -> None:
    """Vector 60: different prompts on one model family are one point of view."""
    with pytest.raises(ConfigurationError, match="point of view"):
        SkepticPanel.of([client("STANDS", model) for model in models])


def test_three_roles_are_dealt_out_over_the_models() -> None:
    """Each with a prompt that may be overridden."""
    panel = SkepticPanel.of([client("STANDS", "alpha"), client("STANDS", "beta")])
    assert len({each.role for each in panel.skeptics}) == 3
    own = SkepticPanel.of(
        [client("STANDS", "alpha"), client("STANDS", "beta")], prompts={"lawyer": "Read the law."}
    )
    assert {each.role for each in own.skeptics} == {"lawyer"}


def test_skeptics_see_the_case_blind_to_the_axis() -> None:
    """What they cannot see they cannot lean on."""
    seen: list[str] = []

    def reply(request: ChatRequest, rng: object) -> str:
        seen.append(request.messages[1].content)
        return "STANDS"

    panel = SkepticPanel.of([ScriptedClient(reply, model=name) for name in ("alpha", "beta")])
    asyncio.run(panel.review(case()))
    assert len(seen) == 3
    assert all("traded for nine years" in text and " she " not in text.lower() for text in seen)


def test_e18_a_dissenting_revision_is_kept_whatever_the_vote() -> None:
    """Two agree with the answer, one revises it: the vote says so, the revision stays."""
    revising = client('{"verdict": "revise", "revision": "{\\"advice\\": \\"approve\\"}"}', "beta")
    panel = SkepticPanel.of([client('{"verdict": "stands"}', "alpha"), revising])
    found = asyncio.run(panel.review(case()))
    assert found.decision == "stands"
    (revision,) = found.revisions
    assert revision.payload == {"advice": "approve"}
    (handed_on,) = asyncio.run(gathered(revision.procedure("anything")))
    assert handed_on == {"advice": "approve"}


@pytest.mark.parametrize("revision", ['"approve"', '"{\\"verdict\\": 1}"', "null"])
def test_a_revision_that_does_not_fit_is_a_vote_and_no_candidate(revision: str) -> None:
    """The next agent could not read it."""
    revising = client(f'{{"verdict": "revise", "revision": {revision}}}', "beta")
    found = asyncio.run(SkepticPanel.of([client("STANDS", "alpha"), revising]).review(case()))
    assert found.revisions == ()
    assert [each.review.stance for each in found.tally.weighed].count("revise") == 1


def test_evidence_is_checked_against_what_the_skeptic_was_shown() -> None:
    """A passage that is there counts, one that is not does not."""
    told = '{"verdict": "revise", "evidence": ["traded for nine years", "EVIDENCE: none found"]}'
    panel = SkepticPanel.of([client(told, "alpha"), client("STANDS", "beta")])
    first = asyncio.run(panel.review(case())).tally.weighed[0].review
    assert first.checked == ("traded for nine years",)


@dataclass(frozen=True)
class Broken:
    """A skeptic that does not answer."""

    hang: bool
    role: str = "auditor"
    provenance: str = "rules"

    async def review(self, case: Case, /) -> Review:
        if self.hang:
            await asyncio.sleep(3600)
        raise ConnectionError("gone")


@pytest.mark.parametrize(
    ("hang", "why"), [(True, "timeout"), (False, "error:ConnectionError")], ids=["hangs", "fails"]
)
def test_a_skeptic_that_fails_or_hangs_abstains(hang: bool, why: str) -> None:
    """The others are heard, and nothing agrees by falling silent."""
    other = ModelSkeptic(client=client("REJECT", "alpha"), role="devils_advocate")
    panel = SkepticPanel([Broken(hang), other], timeout=0.05)
    found = asyncio.run(panel.review(case()))
    assert found.decision == "rejected"
    assert [each.review.why for each in found.tally.weighed] == [why, None]


def test_a_refusal_abstains() -> None:
    """A model that declines to review has not reviewed."""
    refusing = ScriptedClient(lambda request, rng: Completion(refusal="no"), model="alpha")
    found = asyncio.run(SkepticPanel.of([refusing, client("STANDS", "beta")]).review(case()))
    assert found.tally.weighed[0].review.why == "refused"


def test_a_server_without_schemas_is_asked_again_without_one() -> None:
    """Structured answers where they are served, plain ones else."""

    def reply(request: ChatRequest, rng: object) -> str:
        if request.schema is not None:
            raise NotServed("response_format", cure="set structured to 'off'")
        return "REVISE"

    panel = SkepticPanel.of([ScriptedClient(reply, model=name) for name in ("alpha", "beta")])
    found = asyncio.run(panel.review(case()))
    assert [each.review.stance for each in found.tally.weighed] == ["revise"] * 3


def test_skeptics_are_asked_at_the_same_time() -> None:
    """Each waits until all have been asked; in turn, nobody would ever answer."""
    arrived, everybody = [], asyncio.Event()

    @dataclass(frozen=True)
    class Waiting:
        role: str
        provenance: str

        async def review(self, case: Case, /) -> Review:
            arrived.append(self.role)
            if len(arrived) == 3:
                everybody.set()
            await everybody.wait()
            return Review(stance="stands")

    panel = SkepticPanel([Waiting(name, name) for name in "abc"], timeout=20)
    found = asyncio.run(panel.review(case()))
    assert found.tally.confidence == 1 and not math.isnan(found.tally.confidence)
