"""A client for servers that speak OpenAI's protocol: hosted ones, vLLM, llama.cpp, Ollama."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType
from typing import Final, Self, Unpack

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.candidates import CandidateScores
from twinspan.instrumentation.clients.replies import read_chat, read_text
from twinspan.instrumentation.clients.reply_vectors import read_embeddings
from twinspan.instrumentation.clients.retrying import is_content_filter
from twinspan.instrumentation.clients.scoring import Known, Method, Scoring, Template, all_of
from twinspan.instrumentation.clients.seeds import DrawCounter, counter_seed, digest_of
from twinspan.instrumentation.clients.settings import ClientOptions, ClientSettings
from twinspan.instrumentation.clients.transport import Transport
from twinspan.instrumentation.clients.values import (
    ChatRequest,
    Completion,
    Prompt,
    Sampling,
    TextRequest,
)
from twinspan.instrumentation.clients.wire import (
    MAX_COMPLETION_TOKENS,
    MAX_TOKENS,
    chat_body,
    embedding_body,
    text_body,
)
from twinspan.instrumentation.errors import ConfigurationError, NotServed, RequestRejected

EMBEDDING_BATCH: Final = 128
"""Texts embedded per request."""

_logger = logging.getLogger(__name__)


class OpenAICompatibleClient:
    """Chat, continuation, candidate scores and embeddings from one server.

    It is a `ChatClient`, a `CandidateScorer` and an `Embedder`. It may be shared by tasks,
    threads and event loops; `Blocking(client)` is its face for code without a loop. Close it,
    or use it in `async with`, where a loop goes on for long after it: connections that are
    not closed end with their loop. Neither key nor prompt nor answer appears in its `repr`,
    its errors or its logs.

    Args:
        settings: all options at once; or give single ones by keyword, which are resolved as
            argument over environment over default.
        template: writes a conversation as the text its model continues; only needed to score
            conversations by whole sequences.
        options: the options of `ClientSettings`.

    Raises:
        ConfigurationError: for an option without meaning.

    >>> OpenAICompatibleClient(base_url="http://localhost:8000/v1", model="m", api_key="secret")
    OpenAICompatibleClient('http://localhost:8000/v1', model='m')
    """

    def __init__(
        self,
        settings: ClientSettings | None = None,
        *,
        template: Template | None = None,
        **options: Unpack[ClientOptions],
    ) -> None:
        if settings is not None and options:
            raise ConfigurationError("give the options either as settings or by name, not both")
        self._settings = settings or ClientSettings.resolve({**options})
        self._transport = Transport(self._settings)
        self._draws = DrawCounter()
        self._limit_field = MAX_TOKENS
        self._template = template
        self._known = Known()

    @property
    def settings(self) -> ClientSettings:
        """The options in force."""
        return self._settings

    def __repr__(self) -> str:
        model = self._settings.model or self._settings.embedding_model
        return f"OpenAICompatibleClient({self._settings.server!r}, model={model!r})"

    # --- asking ---------------------------------------------------------------------------------

    async def complete(self, request: ChatRequest, /) -> Completion:
        """One answer from `/chat/completions`.

        A prompt or answer that the server's content policy declines is a refusal, whether it
        says so in the answer or by an error.

        Raises:
            ClientError: if there is no answer: `ClientTimeout`, `ServerUnreachable`,
                `RequestRejected`, `MalformedReply`, or `NotServed` where the server does not
                know structured answers.
        """
        request = replace(request, sampling=self._drawn(request.sampling, request))
        try:
            reply = await self._post_chat(request)
        except RequestRejected as error:
            if is_content_filter(error):
                return _declined(request.sampling)
            if request.schema is not None and "response_format" in error.fields:
                raise NotServed(
                    "response_format", cure="set structured to 'json_object' or 'off'"
                ) from error
            raise
        return read_chat(reply, request.sampling)

    async def complete_text(self, request: TextRequest, /) -> Completion:
        """One continuation from `/completions`, without a chat template.

        Raises:
            ClientError: if there is none; `RequestRejected` with status 404 where the server
                has chat only.
        """
        request = replace(request, sampling=self._drawn(request.sampling, request))
        try:
            reply = await self._transport.post("/completions", text_body(request))
        except RequestRejected as error:
            if is_content_filter(error):
                return _declined(request.sampling)
            raise
        return read_text(reply, request.sampling)

    async def score(
        self,
        prompt: Prompt,
        candidates: Sequence[str],
        /,
        *,
        method: Method = "auto",
        seed: int | None = None,
    ) -> CandidateScores:
        """How probable each candidate is as the answer.

        `auto` takes the first of these that the server and the candidates allow, and stays
        with it: `first_token` (probabilities of the answer's first token), `sequence` (of
        each candidate's whole text on `/completions` with echo, for plain-text prompts or
        with a template), `sampled` (counts of drawn answers, smoothed). The result names the
        method; scores of different methods have no common scale.

        Args:
            prompt: what is asked.
            candidates: two or more distinct answers.
            method: one way, or `auto`.
            seed: seed of this scoring; sample k of it gets a seed of its own.

        Raises:
            ClientError: if there is no answer; `NotServed` if the named method is not to be
                had here.
            ConfigurationError: for candidates that cannot be told apart.
        """
        scoring = Scoring(
            chat=self.complete,
            text=self.complete_text,
            known=self._known,
            top_logprobs=self._settings.top_logprobs,
            samples=self._settings.samples,
            template=self._template,
        )
        return await scoring.score(prompt, candidates, method=method, seed=seed)

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """One row per text from `/embeddings`, shape (texts, dimensions); (0, 0) for no text.

        Raises:
            ClientError: if there is no answer; `MalformedReply` for vectors that are missing,
                ragged or not finite.
        """
        if isinstance(texts, str):
            raise ConfigurationError("embed takes a list of texts; put the text into a list")
        batches = [texts[at : at + EMBEDDING_BATCH] for at in range(0, len(texts), EMBEDDING_BATCH)]
        if not batches:
            return np.empty((0, 0), dtype=np.float64)
        parts = await all_of(self._embed_batch(batch) for batch in batches)
        return np.concatenate(parts)

    # --- closing --------------------------------------------------------------------------------

    async def aclose(self) -> None:
        """Close the connections of the running loop; loops that end close theirs themselves."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    # --- one request ----------------------------------------------------------------------------

    def _drawn(self, sampling: Sampling, request: ChatRequest | TextRequest) -> Sampling:
        """The sampling after all defaults, with a seed of this draw's own."""
        sampling = sampling.over(self._settings.sampling())
        if sampling.seed is not None or self._settings.seed is None:
            return sampling
        digest = digest_of(request)
        seed = counter_seed(self._settings.seed, digest, self._draws.next(digest))
        return replace(sampling, seed=seed)

    async def _post_chat(self, request: ChatRequest) -> object:
        field = self._limit_field
        body = chat_body(request, self._settings.structured, field)
        try:
            return await self._transport.post("/chat/completions", body)
        except RequestRejected as error:
            if field not in body or not _wants_other_limit(error, field):
                raise
        _logger.debug("the server takes %s in place of %s", MAX_COMPLETION_TOKENS, field)
        self._limit_field = MAX_COMPLETION_TOKENS
        body = chat_body(request, self._settings.structured, MAX_COMPLETION_TOKENS)
        return await self._transport.post("/chat/completions", body)

    async def _embed_batch(self, texts: Sequence[str]) -> NDArray[np.float64]:
        model = self._settings.embedding_model or self._settings.model
        reply = await self._transport.post("/embeddings", embedding_body(texts, model))
        return read_embeddings(reply, len(texts))


def _declined(sampling: Sampling) -> Completion:
    return Completion(refusal="", finish_reason="content_filter", sampling=sampling)


def _wants_other_limit(error: RequestRejected, field: str) -> bool:
    return field == MAX_TOKENS and error.status == 400 and MAX_COMPLETION_TOKENS in error.fields
