"""Three ways to learn how probable fixed answers are, best first.

1. `first_token`: one call; the likeliest first tokens of the answer with their probabilities.
   Needs a server that shows them, and candidates that no frequent first token has in common.
2. `sequence`: one call per candidate; the probability of its whole text after the prompt.
   Needs `/completions` with `echo`, and a prompt that is plain text.
3. `sampled`: several answers are drawn and counted. Always works, and is the noisiest.

The first two show the model's own law (temperature 1), the third that of the sampling asked
for. What a server turns out not to serve is remembered, so that one client scores one set of
candidates one way; the result names it, and results of different ways are not comparable.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import replace
from typing import Any, Final, Literal, TypeVar

from twinspan.instrumentation.clients.candidates import (
    AMBIGUITY_LIMIT,
    REFUSAL,
    CandidateScores,
    ScoringMethod,
    check_candidates,
    count_outcomes,
    first_token_mass,
    sequence_masses,
    smoothed,
    spread,
)
from twinspan.instrumentation.clients.replies import add_usage
from twinspan.instrumentation.clients.seeds import counter_seed
from twinspan.instrumentation.clients.values import (
    ChatRequest,
    Completion,
    Message,
    Prompt,
    Sampling,
    TextRequest,
    TokenLogprob,
    as_messages,
)
from twinspan.instrumentation.errors import (
    ConfigurationError,
    MalformedReply,
    NotServed,
    RequestRejected,
)

Method = Literal["auto", "first_token", "sequence", "sampled"]
Template = Callable[[Sequence[Message]], str]
"""Writes a conversation as the one text that a model is to continue."""

_T = TypeVar("_T")
_TOP: Final = "top_logprobs"
_ECHO: Final = "echo"
_DISTINCT: Final = "distinct first tokens"
_SAMPLED_CURE: Final = "use method='sampled', or a server that shows them"
_REMEMBERED: Final = 4096
_FEW: Final = 5


async def all_of(calls: Iterable[Coroutine[Any, Any, _T]]) -> list[_T]:
    """The results of simultaneous calls, in order; the first failure cancels the others."""
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(call) for call in calls]
    except BaseExceptionGroup as failures:
        raise failures.exceptions[0] from None
    return [task.result() for task in tasks]


class Known:
    """What has turned out about a server: methods it lacks, candidates it cannot tell apart.

    Attributes:
        longest_list: most alternatives it shows per token.
    """

    def __init__(self) -> None:
        self.longest_list = sys.maxsize
        self._lacking: set[ScoringMethod] = set()
        self._ambiguous: set[tuple[str, ...]] = set()

    def allows(self, method: ScoringMethod, names: tuple[str, ...]) -> bool:
        """Whether nothing is known against a method."""
        return method not in self._lacking and not (
            method == "first_token" and names in self._ambiguous
        )

    def learn(self, lacking: NotServed, method: ScoringMethod, names: tuple[str, ...]) -> None:
        """Remember why a method was not to be had."""
        if lacking.capability != _DISTINCT:
            self._lacking.add(method)
            return
        if len(self._ambiguous) >= _REMEMBERED:
            self._ambiguous.clear()
        self._ambiguous.add(names)


class Scoring:
    """Scores candidates through two ways of asking one server.

    Args:
        chat: answers a conversation.
        text: continues a text.
        known: what has turned out about the server so far; grows.
        top_logprobs: alternatives asked for per token.
        samples: answers drawn by `sampled`.
        template: writes a conversation as text, for `sequence`.
    """

    def __init__(
        self,
        *,
        chat: Callable[[ChatRequest], Coroutine[Any, Any, Completion]],
        text: Callable[[TextRequest], Coroutine[Any, Any, Completion]],
        known: Known,
        top_logprobs: int,
        samples: int,
        template: Template | None = None,
    ) -> None:
        self._chat = chat
        self._text = text
        self._top_logprobs = top_logprobs
        self._samples = samples
        self._template = template
        self._known = known

    async def score(
        self, prompt: Prompt, candidates: Sequence[str], *, method: Method, seed: int | None
    ) -> CandidateScores:
        """Log-probabilities of the candidates, of other answers and of a refusal.

        Raises:
            NotServed: if the one method that was asked for is not to be had.
        """
        names = check_candidates(candidates)
        if method == "first_token":
            return await self._first_token(prompt, names, seed)
        if method == "sequence":
            return await self._sequence(prompt, names)
        if method == "auto" and self._known.allows("first_token", names):
            try:
                return await self._first_token(prompt, names, seed)
            except NotServed as lacking:
                self._known.learn(lacking, "first_token", names)
        if method == "auto" and self._known.allows("sequence", names) and self._writable(prompt):
            try:
                return await self._sequence(prompt, names)
            except NotServed as lacking:
                self._known.learn(lacking, "sequence", names)
        return await self._sampled(prompt, names, seed)

    # --- first token ----------------------------------------------------------------------------

    async def _first_token(
        self, prompt: Prompt, names: tuple[str, ...], seed: int | None
    ) -> CandidateScores:
        request = ChatRequest(
            messages=as_messages(prompt),
            sampling=Sampling(max_tokens=1, seed=seed),
            logprobs=min(self._top_logprobs, self._known.longest_list),
        )
        completion = await _unless_named(
            self._with_shorter_list(request),
            {"logprobs", "top_logprobs"},
            NotServed(_TOP, cure=_SAMPLED_CURE),
        )
        if completion.refused:
            return _result(names, {REFUSAL: 0.0}, "first_token", [completion])
        return _from_first_token(names, completion)

    async def _with_shorter_list(self, request: ChatRequest) -> Completion:
        """The answer, with the few alternatives that every server shows if it declines more."""
        try:
            return await self._chat(request)
        except RequestRejected as error:
            if "top_logprobs" not in error.fields or (request.logprobs or 0) <= _FEW:
                raise
        completion = await self._chat(replace(request, logprobs=_FEW))
        self._known.longest_list = _FEW
        return completion

    # --- whole sequence -------------------------------------------------------------------------

    async def _sequence(self, prompt: Prompt, names: tuple[str, ...]) -> CandidateScores:
        context = self._written(prompt)
        gap = "" if context[-1:].isspace() or not context else " "
        completions = await all_of(self._echoed(context, gap + name) for name in names)
        log_probs = {
            name: _continuation(completion, gap + name)
            for name, completion in zip(names, completions, strict=True)
        }
        return _result(names, spread(sequence_masses(log_probs)), "sequence", completions)

    def _writable(self, prompt: Prompt) -> bool:
        return isinstance(prompt, str) or self._template is not None

    def _written(self, prompt: Prompt) -> str:
        if isinstance(prompt, str):
            return prompt
        if self._template is None:
            raise ConfigurationError(
                "a conversation cannot be scored by method 'sequence' without its template; "
                "give template=..., or the prompt as plain text"
            )
        return self._template(as_messages(prompt))

    async def _echoed(self, context: str, continuation: str) -> Completion:
        # One token is asked for, and dropped: several servers refuse to generate none.
        request = TextRequest(
            prompt=context + continuation, sampling=Sampling(max_tokens=1), logprobs=1, echo=True
        )
        return await _unless_named(
            self._text(request),
            {"echo", "logprobs"},
            NotServed(_ECHO, cure=_SAMPLED_CURE),
            statuses=frozenset({404, 405, 501}),
        )

    # --- sampling -------------------------------------------------------------------------------

    async def _sampled(
        self, prompt: Prompt, names: tuple[str, ...], seed: int | None
    ) -> CandidateScores:
        messages = as_messages(prompt)
        requests = [
            ChatRequest(
                messages=messages,
                sampling=Sampling(seed=None if seed is None else counter_seed(seed, number)),
            )
            for number in range(self._samples)
        ]
        completions = await all_of(map(self._chat, requests))
        return scores_of_answers(completions, names)


def scores_of_answers(
    completions: Sequence[Completion], candidates: Sequence[str]
) -> CandidateScores:
    """Scores from answers that were drawn.

    >>> answers = [Completion(text="yes"), Completion(text="yes"), Completion(text="no")]
    >>> scores_of_answers(answers, ("yes", "no")).counts["yes"]
    2
    """
    names = check_candidates(candidates)
    counts = count_outcomes(completions, names)
    return _result(names, smoothed(counts), "sampled", completions, counts=counts)


def _from_first_token(names: tuple[str, ...], completion: Completion) -> CandidateScores:
    top = completion.logprobs[0].top if completion.logprobs else ()
    if len(top) < 2:
        raise NotServed(_TOP, cure=_SAMPLED_CURE)
    mass = first_token_mass(top, names)
    if mass.ambiguous > AMBIGUITY_LIMIT:
        raise NotServed(
            _DISTINCT,
            cure=f"{mass.ambiguous:.2g} of the probability is on tokens that several candidates "
            "begin with; name them by distinct letters, or use method 'sampled'",
        )
    missing = len(mass.by_candidate) < len(names)
    return _result(
        names,
        spread(mass.by_candidate),
        "first_token",
        [completion],
        unseen_log_prob=mass.least if missing else None,
    )


def _continuation(completion: Completion, text: str) -> float:
    """Log-probability of the end of an echoed prompt, minus infinity for an impossible one.

    The tokens are counted from the end: a start token shifts the offsets that servers give.
    """
    tokens = completion.logprobs
    if not tokens:
        raise NotServed(_ECHO, cure=_SAMPLED_CURE)
    for echoed in (tokens[:-1], tokens):
        if "".join(token.token for token in echoed).endswith(text):
            return _sum_of_tail(echoed, text)
    raise NotServed(_ECHO, cure=_SAMPLED_CURE)


def _sum_of_tail(tokens: Sequence[TokenLogprob], text: str) -> float:
    total, length = 0.0, 0
    for token in reversed(tokens):
        if length >= len(text):
            break
        if token.logprob is None:
            raise NotServed(_ECHO, cure=_SAMPLED_CURE)
        length += len(token.token)
        total += token.logprob
    if length > len(text):
        raise MalformedReply(
            "a token of the server spans the end of the prompt and the candidate's beginning; "
            "end the prompt with a line break, or use method 'sampled'"
        )
    return total


def _result(
    names: tuple[str, ...],
    log_probs: Any,
    method: ScoringMethod,
    completions: Sequence[Completion],
    *,
    counts: dict[str, int] | None = None,
    unseen_log_prob: float | None = None,
) -> CandidateScores:
    return CandidateScores(
        candidates=names,
        log_probs=log_probs,
        method=method,
        counts=counts,
        calls=len(completions),
        unseen_log_prob=unseen_log_prob,
        model=completions[0].model,
        sampling=completions[0].sampling,
        usage=add_usage([completion.usage for completion in completions]),
    )


async def _unless_named(
    call: Awaitable[Completion],
    fields: set[str],
    lacking: NotServed,
    statuses: frozenset[int] = frozenset(),
) -> Completion:
    """An answer, or `lacking` if the server declines because of one of the fields."""
    try:
        return await call
    except RequestRejected as error:
        if fields & error.fields or error.status in statuses:
            raise lacking from error
        raise
