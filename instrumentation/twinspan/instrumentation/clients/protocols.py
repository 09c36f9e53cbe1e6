"""What twinspan asks of a model: three small protocols, each in an async and a blocking form.

Bring a class that has the method, or use `OpenAICompatibleClient`, which has them all. A
blocking client becomes an async one by `Threaded`, an async one a blocking one by `Blocking`.

`isinstance` with these protocols tells whether the method is there, not whether it is async.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from twinspan.instrumentation.clients.candidates import CandidateScores
from twinspan.instrumentation.clients.values import ChatRequest, Completion, Prompt


@runtime_checkable
class ChatClient(Protocol):
    """Answers a conversation."""

    async def complete(self, request: ChatRequest, /) -> Completion:
        """One answer.

        A refusal, an empty answer and a tool call are answers.

        Raises:
            ClientError: if there is no answer.
        """
        ...


@runtime_checkable
class CandidateScorer(Protocol):
    """Tells how probable each of some fixed answers is."""

    async def score(
        self, prompt: Prompt, candidates: Sequence[str], /, *, seed: int | None = None
    ) -> CandidateScores:
        """Log-probabilities of the candidates, of any other answer, and of a refusal.

        Args:
            prompt: what is asked.
            candidates: the answers, two or more.
            seed: seed of this scoring, where answers are drawn.

        Raises:
            ClientError: if there is no answer.
            ConfigurationError: for candidates that cannot be told apart.
        """
        ...


@runtime_checkable
class Embedder(Protocol):
    """Places texts in a vector space."""

    async def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """One finite row per text, shape (texts, dimensions).

        Raises:
            ClientError: if there is no answer.
        """
        ...


@runtime_checkable
class BlockingChatClient(Protocol):
    """`ChatClient` for code without an event loop."""

    def complete(self, request: ChatRequest, /) -> Completion:
        """As `ChatClient.complete`."""
        ...


@runtime_checkable
class BlockingCandidateScorer(Protocol):
    """`CandidateScorer` for code without an event loop."""

    def score(
        self, prompt: Prompt, candidates: Sequence[str], /, *, seed: int | None = None
    ) -> CandidateScores:
        """As `CandidateScorer.score`."""
        ...


@runtime_checkable
class BlockingEmbedder(Protocol):
    """`Embedder` for code without an event loop."""

    def embed(self, texts: Sequence[str], /) -> NDArray[np.float64]:
        """As `Embedder.embed`."""
        ...
