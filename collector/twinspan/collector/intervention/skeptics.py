"""Skeptics: reviewers of a suspected answer, and the reference one on a chat model."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Protocol, runtime_checkable

from twinspan.collector.intervention.asking import ask
from twinspan.collector.intervention.case import Case, Procedure
from twinspan.collector.intervention.quotes import found_in
from twinspan.collector.intervention.revisions import refit
from twinspan.collector.intervention.roles import FORM, PROMPTS, SCHEMA
from twinspan.collector.intervention.verdicts import Review, read_review
from twinspan.instrumentation.clients import ChatClient, Sampling
from twinspan.instrumentation.errors import ConfigurationError, MalformedReply


@runtime_checkable
class Skeptic(Protocol):
    """Reviews an answer. Bring a class of your own, or use :class:`ModelSkeptic`."""

    @property
    def role(self) -> str:
        """What it looks for, one word."""
        ...

    @property
    def provenance(self) -> str:
        """Where its judgement comes from: a model family, a rule book, a team."""
        ...

    async def review(self, case: Case, /) -> Review:
        """Its verdict; an error counts as an abstention."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSkeptic:
    """A skeptic on a chat model.

    It sees the case blind to the axes and answers in JSON, by the server's schema where it has
    one; whatever comes instead is read with care. Its quotes are checked against the case.

    Args:
        client: the model.
        role: one of the reference roles, or any word with a prompt of its own.
        prompt: what the role is told to be; the reference prompt of the role if None.
        provenance: where its judgement comes from; the model's family if "".
        sampling: how its answers are drawn.

    Raises:
        ConfigurationError: a role without a prompt.
    """

    client: ChatClient = field(repr=False)
    role: str
    prompt: str | None = None
    provenance: str = ""
    sampling: Sampling = field(default_factory=Sampling)

    def __post_init__(self) -> None:
        if self.prompt is None and self.role not in PROMPTS:
            known = ", ".join(PROMPTS)
            raise ConfigurationError(
                f"role {self.role!r} has no prompt; give it one, or use one of {known}"
            )
        if not self.provenance:
            object.__setattr__(self, "provenance", model_family(self.client))

    async def review(self, case: Case, /) -> Review:
        """Ask the model, read its reply, check its quotes.

        Raises:
            ClientError: if there is no answer.
        """
        told = self.prompt or PROMPTS[self.role]
        reply = await ask(
            self.client,
            f"Role: {self.role}\n{told}\n\n{FORM}",
            case.told(),
            sampling=self.sampling,
            schema=SCHEMA,
        )
        if reply.refused:
            return Review(stance="abstain", why="refused")
        review = read_review(reply.text)
        return replace(review, checked=found_in(review.evidence, case.sources))


def model_family(client: object) -> str:
    """The family of a client's model, by its name; the client's kind where it has no name.

    >>> from twinspan.instrumentation.clients import ScriptedClient
    >>> model_family(ScriptedClient(lambda request, rng: "", model="org/Llama-3-8B-Instruct"))
    'llama'
    """
    settings = getattr(client, "settings", None)
    name = getattr(client, "model", None) or getattr(settings, "model", None)
    if not isinstance(name, str) or not name:
        return type(client).__name__
    word = re.match(r"[^\W\d_]+", name.rsplit("/", 1)[-1])
    return (word[0] if word else name).casefold()


def applied(review: Review, answer: object) -> object:
    """The answer after a review: its revision where it has one that fits, else as it was."""
    if review.stance != "revise" or review.revision is None:
        return answer
    try:
        return refit(answer, review.revision)
    except MalformedReply:
        return answer


class Rejected(Exception):
    """A reviewer holds that no answer can be given."""


def reviewed_by(skeptic: Skeptic, case: Case) -> Procedure:
    """The node followed by one skeptic, as a procedure that can be measured.

    Raises:
        ConfigurationError: the node of the case must not be run again.
    """
    rerun = case.rerun
    if rerun is None:
        raise ConfigurationError(f"node {case.node!r} must not run again, so no repair of it can")

    async def procedure(payload: object) -> object:
        answer = await rerun(payload)
        review = await skeptic.review(case.on(payload, answer))
        if review.stance == "reject":
            raise Rejected(case.node)
        return applied(review, answer)

    return procedure
