"""A scripted loan review of known truth, and reviewers of known skill, for the repair study.

intake -> (credit, income, history) -> decide. Every specialist answers by a draw: it declines
with probability `NOISE`, and with `BIAS` an applicant of the group that it is biased against.
`decide` follows the majority. The right verdict is always "approve".
"""

from __future__ import annotations

import asyncio
import json
import random
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypedDict

import numpy as np
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from reviewers import Revise, answer_in

from twinspan.collector import SkepticPanel
from twinspan.collector.intervention.case import Case, Procedure
from twinspan.collector.intervention.measured import Measured
from twinspan.collector.intervention.panel import PanelReview
from twinspan.collector.intervention.strategies import best_first
from twinspan.collector.intervention.trust import Weighting
from twinspan.collector.intervention.verdicts import Review
from twinspan.collector.langgraph import guard
from twinspan.instrumentation.clients import ChatRequest, ScriptedClient
from twinspan.instrumentation.probing.guard import current_probe

WOMAN: Final = "She runs a bakery, and her accounts are in order."
MAN: Final = "He runs a bakery, and his accounts are in order."
WORDS: Final = {"woman": {"she", "her"}, "man": {"he", "his"}}

NOISE: Final = 0.1
BIAS: Final = 0.95
SPECIALISTS: Final = ("credit", "income", "history")


class Loan(TypedDict, total=False):
    """What the agents share."""

    text: str
    plan: str
    credit: str
    income: str
    history: str
    verdict: str


@dataclass(slots=True)
class LoanReview:
    """The graph, with its draws, its calls and what its last node was shown.

    Attributes:
        seed: seed of all draws.
        biased: the specialists that are biased.
        against: the group that they decline.
        noise: how often anybody is declined.
        bias: how often that group is, by those who are biased.
    """

    seed: int = 0
    biased: Sequence[str] = ()
    against: str = "woman"
    noise: float = NOISE
    bias: float = BIAS
    calls: int = 0
    seen: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])
    _asked: Counter[str] = field(default_factory=Counter[str])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def compiled(self) -> Any:
        """The graph, as anyone would write it."""
        return self.builder().compile(name="scripted_loan")

    def guarded(self) -> Any:
        """The graph with breaker nodes behind its specialists."""
        guarded = guard(self.builder(), SPECIALISTS)
        return guarded.compile(name="guarded_loan", checkpointer=InMemorySaver())

    def builder(self) -> Any:
        """The graph before it is compiled."""
        graph: Any = StateGraph(Loan)
        graph.add_node("intake", self._intake)
        for name in SPECIALISTS:
            graph.add_node(name, self._specialist(name))
        graph.add_node("decide", self._decide)
        graph.add_edge(START, "intake")
        for name in SPECIALISTS:
            graph.add_edge("intake", name)
        graph.add_edge([*SPECIALISTS], "decide")
        graph.add_edge("decide", END)
        return graph

    def _drawn(self, node: str, text: str) -> float:
        # Draw k of a text depends on nothing else: however nodes are scheduled, the same answers,
        # and the same verdict whether anybody probes meanwhile or not.
        asked = f"{node}|{text}{'' if current_probe() is None else '|probe'}"
        with self._lock:
            self.calls += 1
            number = self._asked[asked]
            self._asked[asked] += 1
        return random.Random(f"{self.seed}|{number}|{asked}").random()

    def _intake(self, state: Loan) -> Loan:
        self._drawn("intake", "")
        return {"plan": "read the accounts"}

    def _specialist(self, name: str) -> Any:
        def answer(state: Any) -> dict[str, str]:
            text = str(state["text"])
            words = set(text.lower().replace(",", " ").replace(".", " ").split())
            hit = name in self.biased and bool(words & WORDS[self.against])
            declines = self._drawn(name, text) < (self.bias if hit else self.noise)
            return {name: "decline" if declines else "approve"}

        return answer

    def _decide(self, state: Any) -> Loan:
        self._drawn("decide", "")
        read = tuple(str(state[name]) for name in SPECIALISTS)
        self.seen.append(read)
        approves = sum(each == "approve" for each in read)
        return {"verdict": "approve" if approves * 2 > len(read) else "decline"}


def model(name: str, revise: Revise, *, skill: float = 1.0, seed: int = 0) -> ScriptedClient:
    """A reviewing and rewriting model that does its work in a share of its answers."""

    def reply(request: ChatRequest, rng: np.random.Generator) -> str:
        role, told = request.messages[0].content, request.messages[-1].content
        reviews, rewrites = '"verdict"' in role, "Diagnosis:" in told
        if not reviews and not rewrites:
            return "The answer does not follow from the accounts."
        answer = answer_in(request)
        revised = revise(answer) if rng.random() < skill else answer
        if rewrites:
            return json.dumps(revised)
        verdict = "stands" if revised == answer else "revise"
        return json.dumps({"verdict": verdict, "confidence": 0.8, "revision": json.dumps(revised)})

    return ScriptedClient(reply, model=name, seed=seed)


def mend(answer: Any) -> Any:
    """What the facts say, in either graph."""
    if isinstance(answer, dict) and answer.keys() == {"advice", "risk"}:
        return {"advice": "approve", "risk": "low"}
    if isinstance(answer, dict):
        return {key: mend(value) for key, value in answer.items()}
    return "approve"


def soften(answer: Any) -> Any:
    """Other words for the same difference."""
    if isinstance(answer, dict):
        return {key: soften(value) for key, value in answer.items()}
    return "turn down" if answer == "decline" else answer


# --- panels of known truth ----------------------------------------------------------------------

FACTS: Final = "accounts are in order"


@dataclass(frozen=True, slots=True)
class Member:
    """A skeptic whose review is given."""

    role: str
    provenance: str
    given: Review
    repairs: bool = False

    async def review(self, case: Case, /) -> Review:
        """The same on every case; one that repairs gives everybody the same answer."""
        return self.given


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelCase:
    """One simulated panel: some let a biased answer stand, or make it worse; one is right.

    Attributes:
        members: the skeptics, the dissenter among them.
        dissenter: its position.
    """

    members: tuple[Member, ...]
    dissenter: int


def panel_case(
    rng: np.random.Generator,
    *,
    size: int,
    evidence: float,
    misled: float = 0.0,
    wrong_revisions: float = 0.3,
) -> PanelCase:
    """A panel in which one is alone, confident and right.

    Args:
        rng: source of everything.
        size: skeptics.
        evidence: probability that the dissenter quotes what is really there.
        misled: the same for each of the others, who are wrong.
        wrong_revisions: probability that one of the others revises, for the worse.
    """
    place = int(rng.integers(size))
    members: list[Member] = []
    for number in range(size):
        right = number == place
        shows = rng.random() < (evidence if right else misled)
        revises = right or rng.random() < wrong_revisions
        review = Review(
            stance="revise" if revises else "stands",
            confidence=float(rng.uniform(0.9, 1.0) if right else rng.uniform(0.3, 1.0)),
            checked=(FACTS,) if shows else (),
            revision=("approve" if right else "refer") if revises else None,
            form="json",
        )
        members.append(Member(f"r{number}", f"p{number}", review, right))
    return PanelCase(members=tuple(members), dissenter=place)


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelOutcome:
    """What became of a simulated panel.

    Attributes:
        vote: the panel's vote.
        vote_is_right: the vote is to revise, and its heaviest revision is the right one.
        kept: the dissenter's revision was among the candidates.
        handed_on: who proposed what measured best.
    """

    vote: str
    vote_is_right: bool
    kept: bool
    handed_on: int | None


async def _node(payload: Any) -> str:
    """Declines women; every revision is judged by what it makes of that."""
    return "decline" if "she" in str(payload).lower().split() else "approve"


async def _exactly(procedure: Procedure, candidate: str) -> Measured:
    """delta of a procedure that gives one answer a group: whether the answers differ."""
    woman, man = await procedure(WOMAN), await procedure(MAN)
    delta = float(woman != man)
    return Measured(delta=delta, upper=delta, n_reference=1000, n_counterfactual=1000)


def run_panel(case: PanelCase, weighting: Weighting) -> PanelOutcome:
    """Review, weigh, measure every revision, take the best."""
    asked = Case(node="n", payload=WOMAN, answer="decline", rerun=_node)
    panel = SkepticPanel(_on_twins(case.members), weighting=weighting)
    return asyncio.run(_outcome(panel, asked, case))


def _on_twins(members: Sequence[Member]) -> list[_OnTwins]:
    return [_OnTwins(each) for each in members]


@dataclass(frozen=True, slots=True)
class _OnTwins:
    """A member as it acts on any case: only the one who is right repairs the favoured too."""

    member: Member

    @property
    def role(self) -> str:
        return self.member.role

    @property
    def provenance(self) -> str:
        return self.member.provenance

    async def review(self, case: Case, /) -> Review:
        given = self.member.given
        if given.stance != "revise" or self.member.repairs or case.answer == "decline":
            return given
        return Review(stance="stands", confidence=given.confidence, checked=given.checked)


async def _outcome(panel: SkepticPanel, asked: Case, case: PanelCase) -> PanelOutcome:
    found: PanelReview = await panel.review(asked)
    ranked = await best_first(found.candidates(asked.answer), _exactly, before=1.0)
    proposers = [each.by for each in found.revisions]
    chosen = None if not ranked else int(ranked[0].label.rsplit("-", 1)[1]) - 1
    handed_on = None if chosen is None else found.changed(asked.answer)[chosen].by
    heaviest = proposers[0] if proposers else None
    return PanelOutcome(
        vote=found.decision,
        vote_is_right=found.decision == "revised" and heaviest == case.dissenter,
        kept=case.dissenter in proposers,
        handed_on=handed_on,
    )
