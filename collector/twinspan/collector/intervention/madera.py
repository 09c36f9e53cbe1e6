"""Repairs one node's reasoning: diagnose, retrieve, rewrite, measure, again."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol, Self

from twinspan.collector.intervention.asking import ask
from twinspan.collector.intervention.case import Case, Procedure
from twinspan.collector.intervention.measured import Measured, Score
from twinspan.collector.intervention.retrieval import Passage, Retriever
from twinspan.collector.intervention.revisions import refit
from twinspan.instrumentation.clients import ChatClient, Sampling
from twinspan.instrumentation.errors import ConfigurationError, MalformedReply
from twinspan.instrumentation.hashing import canonical

BOUND: Final = 0.2
"""delta below which, with its whole interval, a repaired procedure counts as unbiased."""

DIAGNOSE: Final = (
    "You find out why an agent's answer depends on a protected attribute. You are told what it "
    "read and what it answered. Name in at most three sentences the step of reasoning that does "
    "not follow from the facts, and which rule or fact should decide in its place."
)
REWRITE: Final = (
    "You rewrite an agent's answer so that it follows from the facts it read and from the rules "
    "that are quoted, and from nothing else. Keep its form: the same keys, the same types. Answer "
    "with the whole rewritten answer and nothing else."
)


class Diagnoser(Protocol):
    """Says what is wrong with an answer."""

    async def diagnose(self, case: Case, measured: Measured | None, /) -> str:
        """A diagnosis, which is also what is looked up.

        Args:
            case: the answer as it stands after the passes so far.
            measured: how the procedure measured; None before the first pass.
        """
        ...


class Rewriter(Protocol):
    """Writes an answer anew."""

    async def rewrite(self, case: Case, diagnosis: str, passages: Sequence[Passage], /) -> Any:
        """The rewritten answer, in the form of the given one."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelDiagnoser:
    """A diagnoser on a chat model; it sees the case blind to the axes."""

    client: ChatClient = field(repr=False)
    prompt: str = DIAGNOSE
    sampling: Sampling = field(default_factory=Sampling)

    async def diagnose(self, case: Case, measured: Measured | None, /) -> str:
        """Ask the model.

        Raises:
            ClientError: if there is no answer.
        """
        reply = await ask(self.client, self.prompt, case.told(), sampling=self.sampling)
        return reply.text


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRewriter:
    """A rewriter on a chat model; it sees the case blind to the axes.

    An answer of another form than the given one changes nothing.
    """

    client: ChatClient = field(repr=False)
    prompt: str = REWRITE
    sampling: Sampling = field(default_factory=Sampling)

    async def rewrite(self, case: Case, diagnosis: str, passages: Sequence[Passage], /) -> Any:
        """Ask the model, and fit its answer to the form.

        Raises:
            ClientError: if there is no answer.
        """
        quoted = "\n\n".join(f"[{each.source}] {each.text}" for each in passages)
        told = (
            f"{case.told()}\nDiagnosis:\n{diagnosis}\n\nRules that apply:\n{quoted or 'none found'}"
        )
        reply = await ask(self.client, self.prompt, told, sampling=self.sampling)
        if reply.refused or not reply.text.strip():
            return case.answer
        try:
            return refit(case.answer, reply.text)
        except MalformedReply:
            return case.answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """One pass over an answer: what was found wrong, and what was looked up for it."""

    diagnosis: str = field(repr=False)
    passages: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A rewrite that was measured.

    Attributes:
        number: from 1.
        passes: the passes that its procedure makes over the node's answer.
        payload: the frozen answer after them.
        procedure: the node followed by them.
        measured: how the procedure measured.
        changed: whether any answer, the frozen one or a sample, came out different.
        converged: changed, and shown to be below the bound.
    """

    number: int
    passes: tuple[Pass, ...]
    payload: Any = field(repr=False)
    procedure: Procedure = field(repr=False)
    measured: Measured
    changed: bool
    converged: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """What the editor came to.

    Attributes:
        attempts: all of them, in order.
        better: those that changed something and measured better than no repair, the best first.
        converged: the best one is shown to be below the bound, or nothing had to be done.
        error: kind of the error that ended the editing early, None if none did.
    """

    attempts: tuple[Attempt, ...]
    better: tuple[Attempt, ...]
    converged: bool
    error: str | None = None

    @property
    def best(self) -> Attempt | None:
        """The attempt that measured best, if it is better than no repair."""
        return self.better[0] if self.better else None


class MaderaEditor:
    """Multi-pass repair of one node's answer, measured after every pass.

    A pass is diagnosed and looked up once, on the frozen answer; then the procedure "the node,
    then the passes" is measured on fresh samples of both arms. Editing stops when the interval
    of delta lies wholly below the bound, at the sample size of the measurement, or after
    `max_rewrites`. Not being significant stops nothing, and an editor that changes nothing
    never converges. Each pass goes on from the best attempt so far.

    Args:
        diagnoser: says what is wrong.
        rewriter: writes anew.
        retriever: looks up what should decide; nothing is looked up if None.
        bound: delta below which a procedure counts as unbiased, in (0, 1).
        max_rewrites: passes at most, at least 1.
        passages: passages looked up for each pass.

    Raises:
        ConfigurationError: an option is out of range.
    """

    def __init__(
        self,
        diagnoser: Diagnoser,
        rewriter: Rewriter,
        retriever: Retriever | None = None,
        *,
        bound: float = BOUND,
        max_rewrites: int = 3,
        passages: int = 3,
    ) -> None:
        if not 0 < bound < 1:
            raise ConfigurationError(f"bound is {bound!r}; a delta lies between 0 and 1, like 0.2")
        if max_rewrites < 1 or passages < 0:
            raise ConfigurationError(
                f"max_rewrites {max_rewrites!r} must be at least 1, "
                f"passages {passages!r} at least 0"
            )
        self.diagnoser = diagnoser
        self.rewriter = rewriter
        self.retriever = retriever
        self.bound = bound
        self.max_rewrites = max_rewrites
        self.passages = passages

    @classmethod
    def of(
        cls,
        client: ChatClient,
        retriever: Retriever | None = None,
        *,
        sampling: Sampling | None = None,
        bound: float = BOUND,
        max_rewrites: int = 3,
    ) -> Self:
        """The reference editor on one chat model."""
        drawn = sampling or Sampling()
        return cls(
            ModelDiagnoser(client=client, sampling=drawn),
            ModelRewriter(client=client, sampling=drawn),
            retriever,
            bound=bound,
            max_rewrites=max_rewrites,
        )

    async def edit(self, case: Case, score: Score, before: Measured | None = None) -> Edited:
        """Repair a case.

        Args:
            case: the answer under suspicion; its node must bear being run again.
            score: measures a procedure on fresh samples.
            before: how the node measured without a repair; measured first if None.

        Raises:
            ConfigurationError: the node must not be run again.
        """
        if case.rerun is None:
            raise ConfigurationError(f"node {case.node!r} must not run again, so no repair can")
        start = before or await score(case.rerun, "unrepaired")
        attempts: list[Attempt] = []
        error = None
        if start.equivalent(self.bound):
            return Edited(attempts=(), better=(), converged=True)
        for number in range(1, self.max_rewrites + 1):
            try:
                attempts.append(await self._attempt(case, score, attempts, start, number))
            except Exception as raised:
                # What was measured so far still stands.
                error = type(raised).__qualname__
                break
            if attempts[-1].converged:
                break
        better = _better(attempts, start)
        return Edited(
            attempts=tuple(attempts),
            better=better,
            converged=bool(better) and better[0].converged,
            error=error,
        )

    async def _attempt(
        self, case: Case, score: Score, earlier: Sequence[Attempt], start: Measured, number: int
    ) -> Attempt:
        base = next(iter(_better(earlier, start)), None)
        standing = case if base is None else case.on(case.payload, base.payload)
        measured = start if base is None else base.measured
        diagnosis = await self.diagnoser.diagnose(standing, measured)
        found = await self._look_up(diagnosis)
        passes = (*(() if base is None else base.passes), Pass(diagnosis=diagnosis, passages=found))
        changes = _Changes()
        payload = await self._rewritten(standing, passes[-1:], changes)
        procedure = self._procedure(case, passes, changes)
        result = await score(procedure, f"rewrite-{number}")
        return Attempt(
            number=number,
            passes=passes,
            payload=payload,
            procedure=procedure,
            measured=result,
            changed=changes.any,
            converged=changes.any and result.equivalent(self.bound),
        )

    async def _look_up(self, query: str) -> tuple[Passage, ...]:
        if self.retriever is None or not self.passages:
            return ()
        found = self.retriever.search(query, most=self.passages)
        return tuple(await found if inspect.isawaitable(found) else found)

    def _procedure(self, case: Case, passes: Sequence[Pass], changes: _Changes) -> Procedure:
        rerun = case.rerun
        assert rerun is not None

        async def procedure(payload: Any) -> Any:
            answer = await rerun(payload)
            return await self._rewritten(case.on(payload, answer), passes, changes)

        return procedure

    async def _rewritten(self, case: Case, passes: Sequence[Pass], changes: _Changes) -> Any:
        """An answer after some passes."""
        for each in passes:
            answer = await self.rewriter.rewrite(case, each.diagnosis, each.passages)
            changes.note(case.answer, answer)
            case = case.on(case.payload, answer)
        return case.answer


@dataclass(slots=True)
class _Changes:
    """Whether rewriting ever changed anything."""

    any: bool = False

    def note(self, before: object, after: object) -> None:
        self.any = self.any or canonical(before) != canonical(after)


def _better(attempts: Sequence[Attempt], start: Measured) -> tuple[Attempt, ...]:
    """The attempts that changed something for the better, the best measured first."""
    unrepaired = 1.0 if start.delta is None else start.delta
    ranked = sorted(
        (each.measured.delta, each.number, each)
        for each in attempts
        if each.changed and each.measured.delta is not None and each.measured.delta < unrepaired
    )
    return tuple(each for _, _, each in ranked)
